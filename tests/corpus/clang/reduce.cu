/* SPDX-License-Identifier: MIT */
// A reduction in shared memory, barriers, shuffles and votes.
// archs: 70 75
#include "device.h"

extern "C" __global__ void block_sum(const float *in, float *out, int n)
{
	__shared__ float part[256];
	float sum = 0;
	for (int i = tid_x; i < n; i += 256)
		sum += in[i];
	part[tid_x] = sum;
	__syncthreads();
	for (unsigned d = 128; d > 0; d /= 2) {
		if (tid_x < d)
			part[tid_x] += part[tid_x + d];
		__syncthreads();
	}
	if (tid_x == 0)
		*out = part[0];
}

extern "C" __global__ void warp_sum(const int *in, int *out)
{
	int v = in[tid_x];
	for (int d = 16; d > 0; d /= 2)
		v += __nvvm_shfl_sync_down_i32(0xffffffff, v, d, 0x1f);
	if (__nvvm_vote_any_sync(0xffffffff, v > 9))
		v += __nvvm_vote_ballot_sync(0xffffffff, v > 3);
	__nvvm_bar_warp_sync(0xffffffff);
	out[tid_x] = v;
}
