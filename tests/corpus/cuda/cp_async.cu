/* SPDX-License-Identifier: MIT */
// Asynchronous copies of Ampere through inline PTX.
// archs: 80 90a 100a 120a

extern "C" __global__ void staged_sum(const float4 *in, float *out, int stages)
{
	__shared__ __align__(16) float4 ring[4][64];
	int t = threadIdx.x;
	for (int s = 0; s < 3; ++s) {
		unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&ring[s][t]));
		asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to), "l"(in + s * 64 + t) : "memory");
		asm volatile("cp.async.commit_group;" ::: "memory");
	}
	float sum = 0.0f;
	for (int s = 0; s < stages; ++s) {
		asm volatile("cp.async.wait_group 2;" ::: "memory");
		__syncthreads();
		float4 v = ring[s & 3][63 - t];
		sum += v.x + v.y + v.z + v.w;
		unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&ring[(s + 3) & 3][t]));
		int bytes = s + 3 < stages ? 16 : 0;
		asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(in + (s + 3) * 64 + t), "r"(bytes) : "memory");
		asm volatile("cp.async.commit_group;" ::: "memory");
	}
	asm volatile("cp.async.wait_all;" ::: "memory");
	out[t] = sum;
}

extern "C" __global__ void hinted_copy(const int *in, int *out, unsigned long long policy_bits)
{
	__shared__ int cell[128];
	__shared__ __align__(8) unsigned long long bar;
	int t = threadIdx.x;
	unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(cell + t));
	unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
	unsigned long long policy;
	asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(policy));
	if (t == 0)
		asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(128) : "memory");
	__syncthreads();
	asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 4, %2;" :: "r"(to), "l"(in + t), "l"(policy) : "memory");
	asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at) : "memory");
	unsigned long long state;
	asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
	asm volatile("{\n\t.reg .pred done;\nagain:\n\tmbarrier.test_wait.shared.b64 done, [%0], %1;\n\t@!done bra again;\n\t}"
		:: "r"(at), "l"(state) : "memory");
	out[t] = cell[127 - t] + static_cast<int>(policy_bits);
}
