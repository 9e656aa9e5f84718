/* SPDX-License-Identifier: MIT */
// Newer memory instructions: multimem, asynchronous stores and reductions, 128-bit atomics and 256-bit loads.
// archs: 90a 100a 120a

extern "C" __global__ void multicast_memory(float *mc, float *out)
{
	float a, b[4];
	asm volatile("multimem.ld_reduce.weak.global.add.f32 %0, [%1];" : "=f"(a) : "l"(mc) : "memory");
	asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
		: "=f"(b[0]), "=f"(b[1]), "=f"(b[2]), "=f"(b[3]) : "l"(mc + 4) : "memory");
	asm volatile("multimem.st.release.gpu.global.f32 [%0], %1;" :: "l"(mc + 8), "f"(a) : "memory");
	asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0], %1;" :: "l"(mc + 12), "r"(1) : "memory");
	out[threadIdx.x] = a + b[0] + b[1] + b[2] + b[3];
}

extern "C" __global__ void remote_store(unsigned cell, unsigned bar, int *out)
{
	asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: "r"(cell), "r"(5), "r"(bar) : "memory");
	asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
		:: "r"(cell), "r"(5), "r"(bar) : "memory");
	unsigned space, is_cluster, size;
	asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(space) : "r"(cell));
	asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(size));
	asm("{\n\t.reg .pred p;\n\tisspacep.shared::cluster p, %1;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(is_cluster) : "l"(out));
	out[threadIdx.x] = static_cast<int>(space + is_cluster + size);
}

extern "C" __global__ void wide_memory(unsigned long long *p, const float *in, float *out)
{
	unsigned long long lo, hi;
	asm volatile("{\n\t.reg .b128 v, w;\n\tmov.b128 v, {%2, %3};\n\tatom.global.exch.b128 w, [%4], v;\n\tmov.b128 {%0, %1}, w;\n\t}"
		: "=l"(lo), "=l"(hi) : "l"(p[2]), "l"(p[3]), "l"(p) : "memory");
	p[4] = lo + hi;
	asm volatile("{\n\t.reg .f32 a, b;\n\tatom.global.v2.f32.add {a, b}, [%0], {%1, %1};\n\tred.global.add.v4.f32 [%0], {a, b, a, b};\n\t}"
		:: "l"(out), "f"(1.0f) : "memory");
#if __CUDA_ARCH__ >= 1000
	float v[8];
	asm volatile("ld.global.v8.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
		: "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]) : "l"(in));
	asm volatile("st.global.v4.f64 [%0], {%1, %1, %1, %1};" :: "l"(out + 32), "d"(static_cast<double>(v[3])) : "memory");
	unsigned long long packed;
	asm("fma.rn.f32x2 %0, %1, %1, %1;" : "=l"(packed) : "l"(p[0]));
	asm volatile("{\n\t.reg .f32 t;\n\tadd.f32 t, %1, 0f3F800000;\n\tst.global.f32 [%0], t;\n\t}" :: "l"(out + 40), "f"(v[7] + v[0]));
	p[5] = packed;
#else
	out[32] = in[0];
#endif
}
