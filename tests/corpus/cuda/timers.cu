/* SPDX-License-Identifier: MIT */
// Clocks, timers, sleeping and the other special registers.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void clocks(long long *out, unsigned wait)
{
	long long begin = clock64();
	clock_t low = clock();
	__nanosleep(wait);
	__nanosleep(100);
	unsigned long long now;
	unsigned now_low, sm, grid, shared_size, env;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(now_low));
	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	asm volatile("mov.u32 %0, %%nsmid;" : "=r"(grid));
	asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(shared_size));
	asm volatile("mov.b32 %0, %%envreg3;" : "=r"(env));
	asm volatile("pmevent 3;");
	out[threadIdx.x] = clock64() - begin + low + now + now_low + sm + grid + shared_size + env;
}

extern "C" __global__ void shape(int *out)
{
	out[threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)] =
		blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z) + warpSize;
}
