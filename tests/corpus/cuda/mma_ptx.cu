/* SPDX-License-Identifier: MIT */
// mma and ldmatrix through inline PTX, the shapes growing with the target.
// archs: 75 80 90a 100a 120a
#include <cuda_fp16.h>

extern "C" __global__ void mma_half(const __half *a, const __half *b, float *out)
{
	__shared__ __align__(128) __half sa[16 * 16], sb[8 * 16];
	int t = threadIdx.x;
	for (int i = t; i < 16 * 16; i += 32)
		sa[i] = a[i];
	for (int i = t; i < 8 * 16; i += 32)
		sb[i] = b[i];
	__syncwarp();
	unsigned ra[4], rb[2];
	float c[4] = {0, 0, 0, 0};
	unsigned pa = static_cast<unsigned>(__cvta_generic_to_shared(sa + (t & 15) * 16 + (t >> 4) * 8));
	unsigned pb = static_cast<unsigned>(__cvta_generic_to_shared(sb + (t & 7) * 16 + ((t >> 3) & 1) * 8));
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		: "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
#if __CUDA_ARCH__ >= 800
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
#else
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(ra[0]), "r"(ra[1]), "r"(rb[0]));
#endif
	for (int i = 0; i < 4; ++i)
		out[t * 4 + i] = c[i];
}

extern "C" __global__ void mma_int(const unsigned *a, const unsigned *b, int *out)
{
	int t = threadIdx.x, c[4] = {0, 1, 2, 3};
	asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
		: "+r"(c[0]), "+r"(c[1]) : "r"(a[t]), "r"(b[t]));
#if __CUDA_ARCH__ >= 800
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[t]), "r"(a[t + 1]), "r"(a[t + 2]), "r"(a[t + 3]), "r"(b[t]), "r"(b[t + 1]));
	asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[t]), "r"(a[t + 1]), "r"(a[t + 2]), "r"(a[t + 3]), "r"(b[t]), "r"(b[t + 1]));
	asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3}, %8, 0x1;"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[t]), "r"(a[t + 1]), "r"(b[t]), "r"(b[t + 1]), "r"(a[t + 4]));
#endif
	out[t] = c[0] + c[1] + c[2] + c[3];
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void mma_double(const double *a, const double *b, double *out)
{
	double c0 = 0, c1 = 0;
	asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
		: "+d"(c0), "+d"(c1) : "d"(a[threadIdx.x]), "d"(b[threadIdx.x]));
	out[2 * threadIdx.x] = c0;
	out[2 * threadIdx.x + 1] = c1;
}
#endif

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void store_matrix(const unsigned *in, unsigned *out)
{
	__shared__ __align__(128) unsigned tile[128];
	int t = threadIdx.x;
	unsigned p = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + t * 16;
	asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
		:: "r"(p), "r"(in[t]), "r"(in[t + 32]), "r"(in[t + 64]), "r"(in[t + 96]) : "memory");
	unsigned moved;
	asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"(in[t]));
	__syncwarp();
	out[t] = tile[t] + moved;
}
#endif
