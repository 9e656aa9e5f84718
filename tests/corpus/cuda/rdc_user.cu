/* SPDX-License-Identifier: MIT */
// One half of a separately compiled program: uses functions and variables which another file defines.
// archs: 75 80 90a 100a 120a
// flags: -rdc=true

struct Item {
	int key;
	float value;
	Item *next;
};

extern __device__ int table[];
extern __device__ Item *head;
extern __constant__ float gain;
extern __device__ float weigh(const Item *item, float by);
extern "C" __device__ void visit(int key, void (*then)(int));
extern __shared__ float shared_scratch[];

static __device__ int seen;

static __device__ void count(int key)
{
	seen += key;
}

__device__ __noinline__ int public_helper(int a)
{
	return a * table[a & 3];
}

extern "C" __global__ void walk(float *out, int n)
{
	float sum = 0.0f;
	for (Item *p = head; p; p = p->next) {
		sum += weigh(p, gain);
		visit(p->key, count);
	}
	shared_scratch[threadIdx.x] = sum;
	__syncthreads();
	out[threadIdx.x] = shared_scratch[n - threadIdx.x] + table[n] + seen;
}
