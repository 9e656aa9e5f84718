/* SPDX-License-Identifier: MIT */
// Warp operations: shuffles, votes, matches, reductions, active masks and lane registers.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void shuffles(const int *in, const double *d, int *out, double *dout)
{
	int v = in[threadIdx.x];
	v += __shfl_sync(0xffffffff, v, 5) + __shfl_up_sync(0xffffffff, v, 1, 16) + __shfl_down_sync(0xffffffff, v, 2, 8);
	v += __shfl_xor_sync(0x0000ffff, v, 4);
	out[threadIdx.x] = v;
	double e = d[threadIdx.x];
	for (int step = 16; step; step >>= 1)
		e += __shfl_xor_sync(0xffffffff, e, step);
	dout[threadIdx.x] = e + __shfl_sync(0xffffffff, static_cast<long long>(v), v & 31);
}

extern "C" __global__ void votes(const unsigned *in, unsigned *out)
{
	unsigned v = in[threadIdx.x];
	unsigned r = __any_sync(0xffffffff, v > 3) + __all_sync(0xffffffff, v < 100);
	if (v & 1)
		r += __ballot_sync(__activemask(), v > 7);
	r += __match_any_sync(0xffffffff, v) ^ __match_any_sync(0xffffffff, static_cast<unsigned long long>(v) << 20);
	int same;
	r += __match_all_sync(0xffffffff, v, &same);
	__syncwarp(0xffffffff);
	unsigned lane, below, warp;
	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
	asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
	out[threadIdx.x] = r + same + __popc(below & r) + lane * warp;
#if __CUDA_ARCH__ >= 800
	r = __reduce_add_sync(0xffffffff, v) + __reduce_min_sync(0xffffffff, static_cast<int>(v)) + __reduce_max_sync(0xffffffff, v);
	out[threadIdx.x] += r + (__reduce_or_sync(0xffffffff, v) ^ __reduce_and_sync(0xff, v) ^ __reduce_xor_sync(0xffffffff, v));
#endif
}

// Block barriers with a verdict.
extern "C" __global__ void block_votes(const int *in, int *out)
{
	int v = in[threadIdx.x];
	int n = __syncthreads_count(v > 0);
	if (__syncthreads_and(v < 50))
		n += 1000;
	if (__syncthreads_or(v == 13))
		n += 2000;
	asm volatile("barrier.sync 3, 64;\n\tbar.warp.sync 0xffffffff;" ::: "memory");
	out[threadIdx.x] = n;
}
