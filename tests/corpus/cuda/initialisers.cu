/* SPDX-License-Identifier: MIT */
// Initialisers of global variables: arrays, nested structs, pointers to other variables, strings, function tables.
// archs: 75 80 90a 100a 120a

struct Leaf {
	char kind;
	double weight;
	const char *name;
};

struct Tree {
	Leaf leaves[2];
	const int *numbers;
	Tree *parent;
	short pad[3];
	unsigned bits : 5, more : 9;
	float (*fold)(float);
};

union Either {
	float f;
	unsigned char bytes[4];
};

static __device__ float half_of(float v)
{
	return v * 0.5f;
}

static __device__ float square_of(float v)
{
	return v * v;
}

__device__ int grid_of_numbers[2][3][2] = {{{1, 2}, {3}}, {{-4, 5}, {6, 7}, {8, 2147483647}}};
__device__ const char message[] = "two\tlines\n\"quoted\" and \\ and \xe9";
__device__ const char *const words[] = {"alpha", "beta", message + 4, nullptr};
__device__ unsigned char bytes[13] = {0xff, 1, 2};
__device__ short odd_sizes[] = {-1, 0x7fff, -0x8000};
__device__ unsigned long long wide[] = {0xffffffffffffffffull, 1ull << 63};
__device__ float floats[] = {0.1f, -0.0f, 1e30f, 1e-42f, __builtin_inff()};
__device__ double doubles[3] = {0.1, -1e300};
__device__ bool flags[3] = {true, false, true};
__device__ __int128 huge = (static_cast<__int128>(0x0123456789abcdefll) << 64) + 5;
__device__ Either either = {1.0f};
__device__ Tree root = {{{'a', 0.5, "leaf one"}, {'b', -1.5, message}}, &grid_of_numbers[1][0][1], nullptr, {1, 2}, 21, 300, half_of};
__device__ Tree child = {{{'c', 2.0, nullptr}}, grid_of_numbers[0][1], &root, {}, 1, 2, square_of};
__device__ Tree *const both[2] = {&root, &child};
__constant__ float (*const folds[])(float) = {half_of, square_of, nullptr};
__constant__ alignas(32) int aligned_table[4] = {4, 3, 2, 1};
__device__ char zeros[1000];
__device__ volatile int *at_number = &grid_of_numbers[0][2][1];
__shared__ int uninitialised[7];

extern "C" __global__ void use_all(float *out, int i)
{
	const Tree *t = both[i & 1];
	float v = t->fold(floats[i]) + folds[i & 1](static_cast<float>(t->leaves[i & 1].weight));
	v += t->numbers[0] + (t->parent ? t->parent->bits : t->more) + words[i & 3][0] + message[i];
	v += bytes[i] + odd_sizes[i & 1] + static_cast<float>(wide[i & 1]) + static_cast<float>(doubles[i & 1]) + either.bytes[i & 3];
	v += flags[i & 1] + static_cast<float>(huge >> 60) + aligned_table[i & 3] + zeros[i] + *at_number + grid_of_numbers[i & 1][i % 3][1];
	uninitialised[i & 3] = static_cast<int>(v);
	__syncthreads();
	out[threadIdx.x] = v + uninitialised[threadIdx.x & 3];
}
