/* SPDX-License-Identifier: MIT */
// Stencils with shared memory: steps of the heat equation on a plane, and a wide filter along rows.
// archs: 80 120a
// variants: O0 G

enum { SIDE = 16, RADIUS = 4, WIDE = 64 };

__constant__ float weight[RADIUS + 1] = {0.3125f, 0.21875f, 0.09375f, 0.03125f, 0.015625f};

// A tile and the elements around it; what lies outside the plane counts as its border.
extern "C" __global__ void __launch_bounds__(SIDE * SIDE) heat(const float *in, float *out, int w, int h, float k)
{
	__shared__ float tile[SIDE + 2][SIDE + 2];
	int x0 = blockIdx.x * SIDE - 1, y0 = blockIdx.y * SIDE - 1, me = threadIdx.y * SIDE + threadIdx.x;
	for (int i = me; i < (SIDE + 2) * (SIDE + 2); i += SIDE * SIDE) {
		int x = min(max(x0 + i % (SIDE + 2), 0), w - 1), y = min(max(y0 + i / (SIDE + 2), 0), h - 1);
		tile[i / (SIDE + 2)][i % (SIDE + 2)] = in[y * w + x];
	}
	__syncthreads();
	int tx = threadIdx.x + 1, ty = threadIdx.y + 1, x = x0 + tx, y = y0 + ty;
	if (x < w && y < h) {
		float c = tile[ty][tx];
		out[y * w + x] = c + k * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx] - 4.0f * c);
	}
}

// The tile slides down a column of rows: each row is loaded while the one before is used.
extern "C" __global__ void __launch_bounds__(WIDE) filter_rows(const float *in, float *out, int w, int h)
{
	__shared__ float row[2][WIDE + 2 * RADIUS];
	int x0 = blockIdx.x * WIDE;
	auto load = [&](int y) {
		for (int i = threadIdx.x; i < WIDE + 2 * RADIUS; i += WIDE) {
			int x = x0 + i - RADIUS;
			row[y & 1][i] = x >= 0 && x < w ? in[y * w + x] : 0.0f;
		}
	};
	load(0);
	for (int y = 0; y < h; ++y) {
		__syncthreads();
		if (y + 1 < h)
			load(y + 1);
		const float *p = row[y & 1] + threadIdx.x + RADIUS;
		float sum = weight[0] * p[0];
#pragma unroll
		for (int d = 1; d <= RADIUS; ++d)
			sum += weight[d] * (p[-d] + p[d]);
		if (x0 + threadIdx.x < w)
			out[y * w + x0 + threadIdx.x] = sum;
	}
}
