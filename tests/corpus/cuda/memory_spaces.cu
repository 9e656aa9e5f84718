/* SPDX-License-Identifier: MIT */
// Every state space once: global, constant, static and dynamic shared, local, param structs, managed and generic.
// archs: 75 80 90a 100a 120a

struct Shape {
	int width, height;
	float scale[6];
	const float *bias;
	short tag;
	char flag;
};

__constant__ float taps[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
__constant__ Shape fixed_shape;
__device__ float carry = 0.5f;
__device__ int histogram[64];
__managed__ int launches;
__managed__ double running[4];

extern __shared__ __align__(16) unsigned char pool[];

// Struct by value, its array indexed at run time (which forces a local copy).
extern "C" __global__ void param_struct(float *out, const Shape shape, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float v = shape.scale[i % 6] * taps[i % 9];
	if (shape.bias && shape.flag)
		v += shape.bias[i % shape.width];
	out[i] = v + shape.tag * carry;
}

extern "C" __global__ void grid_constant(float *out, const __grid_constant__ Shape shape)
{
	const Shape *p = &shape;
	const float *from = (threadIdx.x & 1) ? p->scale : fixed_shape.scale;
	out[threadIdx.x] = from[threadIdx.x % 6] + p->height;
}

// Dynamic shared memory cut into two arrays of different types, a static array beside it.
extern "C" __global__ void shared_mix(const double *in, double *out, int n)
{
	__shared__ float tile[32][33];
	double *wide = reinterpret_cast<double *>(pool);
	short *narrow = reinterpret_cast<short *>(pool + blockDim.x * sizeof(double));
	int t = threadIdx.x;
	wide[t] = t < n ? in[t] : 0.0;
	narrow[t] = static_cast<short>(wide[t]);
	tile[t & 31][t >> 5] = static_cast<float>(narrow[t]);
	__syncthreads();
	out[t] = wide[blockDim.x - 1 - t] + tile[t >> 5][t & 31] + narrow[t ^ 1];
	if (t == 0) {
		launches += 1;
		running[n & 3] += out[0];
	}
}

// A generic pointer that may be shared, global or local.
extern "C" __global__ void generic_pick(int *data, int which, int n)
{
	__shared__ int scratch[64];
	int mine[16];
	for (int i = 0; i < 16; ++i)
		mine[i] = data[i] ^ n;
	scratch[threadIdx.x & 63] = n;
	__syncthreads();
	int *p = which == 0 ? data : which == 1 ? scratch : which == 2 ? histogram : mine;
	p[n & 15] += which;
	data[threadIdx.x] = p[(n + 1) & 15] + (__isShared(p) ? 1 : 0) + (__isGlobal(p) ? 2 : 0) + (__isLocal(p) ? 4 : 0) +
		mine[n & 15] + static_cast<int>(__cvta_generic_to_shared(scratch));
}
