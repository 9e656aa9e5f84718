// What the kernels with TMA share: mbarriers, tensor copies, addresses in shared memory.
#pragma once
#include <cuda.h>
#include <cuda_bf16.h>

static __device__ __forceinline__ unsigned address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void barrier_init(unsigned long long *bar, unsigned count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(address(bar)), "r"(count) : "memory");
}

static __device__ __forceinline__ void barrier_expect(unsigned long long *bar, unsigned bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(address(bar)), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(unsigned long long *bar)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(address(bar)) : "memory");
}

static __device__ __forceinline__ void barrier_wait(unsigned long long *bar, unsigned parity)
{
	asm volatile(
		"{\n\t.reg .pred done;\nagain_%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again_%=;\n\t}"
		:: "r"(address(bar)), "r"(parity) : "memory");
}

static __device__ __forceinline__ void load_tile(void *to, const CUtensorMap *map, int x, int y, unsigned long long *bar)
{
	asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
		:: "r"(address(to)), "l"(map), "r"(x), "r"(y), "r"(address(bar)) : "memory");
}

static __device__ __forceinline__ bool elected()
{
	unsigned yes;
	asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.b32 %0, 1, 0, p;\n\t}" : "=r"(yes));
	return yes != 0;
}
