/* SPDX-License-Identifier: MIT */
// The other half: defines what the first file uses, some of it weak, and a kernel of its own.
// archs: 75 80 90a 100a 120a
// flags: -rdc=true

struct Item {
	int key;
	float value;
	Item *next;
};

__device__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ Item last = {7, 0.5f, nullptr};
__device__ Item first = {1, 2.5f, &last};
__device__ Item *head = &first;
__constant__ float gain = 1.25f;
static __device__ int hidden[4] = {1, 2};
extern __device__ int public_helper(int a);

template <class T>
__device__ __noinline__ T twice(T v)
{
	return v + v;
}

__device__ float weigh(const Item *item, float by)
{
	return twice(item->value) * by + twice(hidden[item->key & 3]);
}

extern "C" __device__ void visit(int key, void (*then)(int))
{
	then(key + public_helper(hidden[0]));
}

extern "C" __device__ __attribute__((weak)) int spare(int v)
{
	return v + 1;
}

inline __device__ int counter = 4;

extern "C" __global__ void touch(int *out)
{
	hidden[threadIdx.x & 3] = spare(table[threadIdx.x & 7]) + counter++;
	out[threadIdx.x] = hidden[1];
}
