/* SPDX-License-Identifier: MIT */
// printf with every kind of argument, assert, trap and breakpoint.
// archs: 75 80 90a 100a 120a
#include <cassert>
#include <cstdio>

extern "C" __global__ void talk(const float *in, const char *name, int n)
{
	int i = threadIdx.x;
	assert(n > 0 && "no elements");
	if (i == 0)
		printf("%s: %d elements at %p\n", name, n, static_cast<const void *>(in));
	if (i < n)
		printf("%3d %8.3f %lld %c 100%% \"quoted\"\t\\\n", i, in[i], static_cast<long long>(n) << 33, 'a' + i % 26);
	else
		printf("nothing\n");
}

extern "C" __global__ void stop(const int *in)
{
	if (in[0] < 0)
		__trap();
	if (in[1] < 0)
		__brkpt();
	if (in[2] < 0)
		__builtin_unreachable();
	assert(in[threadIdx.x] != 7);
}
