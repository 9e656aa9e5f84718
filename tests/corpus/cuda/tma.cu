/* SPDX-License-Identifier: MIT */
// Bulk and tensor copies (TMA), mbarriers, multicast, reductions and prefetches through inline PTX.
// archs: 90a 100a 120a

struct alignas(64) TensorMap {
	unsigned long long words[16];
};

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
	return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

static __device__ __forceinline__ void wait_parity(unsigned bar, unsigned parity)
{
	asm volatile(
		"{\n\t"
		".reg .pred p;\n"
		"LAB_WAIT_%=:\n\t"
		"mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
		"@p bra LAB_DONE_%=;\n\t"
		"bra LAB_WAIT_%=;\n"
		"LAB_DONE_%=:\n\t"
		"}"
		:: "r"(bar), "r"(parity) : "memory");
}

extern "C" __global__ void bulk_copy(const float *in, float *out, float *sum)
{
	__shared__ alignas(128) float tile[256];
	__shared__ alignas(8) unsigned long long bar;
	unsigned at = shared_address(&bar), to = shared_address(tile);
	if (threadIdx.x == 0) {
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at) : "memory");
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(1024) : "memory");
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
			:: "r"(to), "l"(in), "r"(1024), "r"(at) : "memory");
	}
	__syncthreads();
	wait_parity(at, 0);
	tile[threadIdx.x] += 1.0f;
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	if (threadIdx.x == 0) {
		asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(out), "r"(to), "r"(1024) : "memory");
		asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" :: "l"(sum), "r"(to), "r"(1024) : "memory");
		asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"(in + 256), "r"(1024) : "memory");
		asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
	}
}

extern "C" __global__ void tensor_tiles(const __grid_constant__ TensorMap map, float *out, int x, int y)
{
	__shared__ alignas(128) float tile[2][32 * 32];
	__shared__ alignas(8) unsigned long long bar[2];
	const void *m = &map;
	if (threadIdx.x == 0) {
		asm volatile("prefetch.param.tensormap [%0];" :: "l"(m) : "memory");
		for (int i = 0; i < 2; ++i) {
			unsigned at = shared_address(&bar[i]), to = shared_address(tile[i]);
			unsigned long long state;
			asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at), "r"(1) : "memory");
			asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(at), "r"(4096) : "memory");
			out[i] = static_cast<float>(state & 1);
			asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
				:: "r"(to), "l"(m), "r"(x + 32 * i), "r"(y), "r"(at) : "memory");
		}
	}
	__syncthreads();
	for (int i = 0; i < 2; ++i) {
		wait_parity(shared_address(&bar[i]), 0);
		out[threadIdx.x] += tile[i][threadIdx.x];
		tile[i][threadIdx.x] = 0.0f;
	}
	asm volatile("fence.proxy.async;" ::: "memory");
	__syncthreads();
	if (threadIdx.x == 0) {
		asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
			:: "l"(m), "r"(x), "r"(y), "r"(shared_address(tile[0])) : "memory");
		asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];"
			:: "l"(m), "r"(x), "r"(y), "r"(shared_address(tile[1])) : "memory");
		asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
	}
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) tensor_cluster(const __grid_constant__ TensorMap map, int *out,
	unsigned long long policy)
{
	__shared__ alignas(128) int tile[4096];
	__shared__ alignas(8) unsigned long long bar;
	unsigned at = shared_address(&bar), to = shared_address(tile);
	if (threadIdx.x == 0) {
		unsigned remote;
		asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote) : "r"(at));
		asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(remote) : "memory");
		asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
			"[%0], [%1, {%2, %3, %4}], [%5], %6, %7;"
			:: "r"(to), "l"(&map), "r"(0), "r"(1), "r"(2), "r"(at), "h"(static_cast<short>(3)), "l"(policy) : "memory");
		asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
			:: "r"(to + 8192), "l"(&map), "r"(0), "r"(1), "r"(2), "r"(3), "r"(at), "h"(static_cast<short>(1)), "h"(static_cast<short>(2)) : "memory");
		asm volatile("cp.async.bulk.prefetch.tensor.1d.L2.global [%0, {%1}];" :: "l"(&map), "r"(5) : "memory");
	}
	wait_parity(at, 1);
	asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at) : "memory");
	out[threadIdx.x] = tile[threadIdx.x];
}
