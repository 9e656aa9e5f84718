/* SPDX-License-Identifier: MIT */
// Kernels as programs have them: matrix product, transpose, prefix sum, histogram, stencil, bitonic sort, row softmax.
// archs: 75 80 90a 100a 120a

extern "C" __global__ void __launch_bounds__(256) matmul(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
	int m, int n, int k)
{
	__shared__ float sa[16][17], sb[16][17];
	int x = threadIdx.x, y = threadIdx.y;
	int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
	float sum = 0.0f;
	for (int i = 0; i < k; i += 16) {
		sa[y][x] = row < m && i + x < k ? a[row * k + i + x] : 0.0f;
		sb[y][x] = i + y < k && column < n ? b[(i + y) * n + column] : 0.0f;
		__syncthreads();
		for (int j = 0; j < 16; ++j)
			sum = fmaf(sa[y][j], sb[j][x], sum);
		__syncthreads();
	}
	if (row < m && column < n)
		c[row * n + column] = sum;
}

extern "C" __global__ void transpose(const double *in, double *out, int n)
{
	__shared__ double tile[32][33];
	for (int j = threadIdx.y; j < 32; j += 8)
		tile[j][threadIdx.x] = in[(blockIdx.y * 32 + j) * n + blockIdx.x * 32 + threadIdx.x];
	__syncthreads();
	for (int j = threadIdx.y; j < 32; j += 8)
		out[(blockIdx.x * 32 + j) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][j];
}

extern "C" __global__ void prefix_sum(const int *in, int *out, int n)
{
	__shared__ int totals[32];
	int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	int v = i < n ? in[i] : 0;
	for (int d = 1; d < 32; d *= 2) {
		int up = __shfl_up_sync(0xffffffff, v, d);
		if (lane >= d)
			v += up;
	}
	if (lane == 31)
		totals[warp] = v;
	__syncthreads();
	for (int w = 0; w < warp; ++w)
		v += totals[w];
	if (i < n)
		out[i] = v;
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n)
{
	__shared__ unsigned local[256];
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		local[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&local[in[i]], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		if (local[i])
			atomicAdd(&bins[i], local[i]);
}

extern "C" __global__ void stencil(const float *in, float *out, int w, int h)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	if (x <= 0 || y <= 0 || x >= w - 1 || y >= h - 1)
		return;
	const float *p = in + y * w + x;
	out[y * w + x] = 0.25f * (p[-1] + p[1] + p[-w] + p[w]) - p[0];
}

extern "C" __global__ void bitonic(unsigned *keys, int *values)
{
	extern __shared__ unsigned shared_keys[];
	unsigned t = threadIdx.x;
	shared_keys[t] = keys[t];
	__syncthreads();
	for (unsigned k = 2; k <= blockDim.x; k <<= 1)
		for (unsigned j = k >> 1; j > 0; j >>= 1) {
			unsigned other = t ^ j;
			if (other > t && (shared_keys[t] > shared_keys[other]) == ((t & k) == 0)) {
				unsigned swap = shared_keys[t];
				shared_keys[t] = shared_keys[other];
				shared_keys[other] = swap;
			}
			__syncthreads();
		}
	keys[t] = shared_keys[t];
	values[t] = static_cast<int>(shared_keys[t] & 0xff);
}

extern "C" __global__ void softmax(const float *in, float *out, int n)
{
	const float *row = in + static_cast<long long>(blockIdx.x) * n;
	float most = -INFINITY, sum = 0.0f;
	for (int i = threadIdx.x; i < n; i += 32)
		most = fmaxf(most, row[i]);
	for (int d = 16; d; d >>= 1)
		most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, d));
	for (int i = threadIdx.x; i < n; i += 32)
		sum += __expf(row[i] - most);
	for (int d = 16; d; d >>= 1)
		sum += __shfl_xor_sync(0xffffffff, sum, d);
	for (int i = threadIdx.x; i < n; i += 32)
		out[static_cast<long long>(blockIdx.x) * n + i] = __fdividef(__expf(row[i] - most), sum);
}
