/* SPDX-License-Identifier: MIT */
// Cooperative groups of a block: blocks, tiles, coalesced groups, partitions, reductions and scans.
// archs: 75 80 90a 100a 120a
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tile_sum(const float *in, float *out, int n)
{
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
	float v = block.thread_rank() < n ? in[block.thread_rank()] : 0.0f;
	for (int d = tile.size() / 2; d > 0; d /= 2)
		v += tile.shfl_down(v, d);
	if (tile.thread_rank() == 0)
		out[tile.meta_group_rank()] = v;
	block.sync();
	if (tile.any(v > 1.0f) && tile.all(v < 9.0f))
		out[n] = static_cast<float>(tile.ballot(v > 2.0f));
}

extern "C" __global__ void tile_reduce(const int *in, int *out)
{
	cg::thread_block block = cg::this_thread_block();
	auto tile = cg::tiled_partition<32>(block);
	int v = in[block.thread_rank()];
	int sum = cg::reduce(tile, v, cg::plus<int>());
	int most = cg::reduce(tile, v, cg::greater<int>());
	int before = cg::exclusive_scan(tile, v);
	out[block.thread_rank()] = sum * most + before;
}

extern "C" __global__ void coalesced_count(const int *in, int *count)
{
	if (in[threadIdx.x] > 0) {
		cg::coalesced_group active = cg::coalesced_threads();
		if (active.thread_rank() == 0)
			atomicAdd(count, static_cast<int>(active.size()));
		count[1 + threadIdx.x] = active.shfl(in[threadIdx.x], 0);
	}
}
