/* SPDX-License-Identifier: MIT */
/* The other object of linked.cu. */
#include <cstdio>

__device__ int factor = 1;
static __device__ int kept = 1000;

__device__ int scaled(int x) { return x * factor; }
static __device__ int add_kept(int x) { return x + kept; }
typedef int (*step_fn)(int);
__device__ step_fn step = add_kept;

int set_factor(int to) { return cudaMemcpyToSymbol(factor, &to, sizeof to); }
