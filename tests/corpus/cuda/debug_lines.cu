/* SPDX-License-Identifier: MIT */
// A little of everything that debug information describes: structs, inlined calls, locals, shared variables, loops.
// archs: 75 80 90a 100a 120a
// variants: G lineinfo

namespace geometry {

struct Point {
	float x, y;
	int tags[2];
};

enum Mode { plain, mirrored = 4 };

template <class T>
__device__ inline T clamp(T v, T low, T high)
{
	return v < low ? low : v > high ? high : v;
}

__device__ inline Point move(Point p, float by, Mode mode)
{
	Point r = p;
	r.x = clamp(p.x + by, -1.0f, 1.0f);
	if (mode == mirrored)
		r.y = -r.y;
	return r;
}

}	// namespace geometry

__constant__ float step = 0.125f;
__device__ unsigned moved;

extern "C" __global__ void move_points(geometry::Point *points, int n, geometry::Mode mode)
{
	__shared__ float farthest[32];
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) {
		geometry::Point p = geometry::move(points[i], step, mode);
		farthest[threadIdx.x & 31] = p.x;
		for (int k = 0; k < 2; ++k) {
			int before = p.tags[k];
			p.tags[k] = geometry::clamp(before + k, 0, 9);
		}
		points[i] = p;
		atomicAdd(&moved, 1u);
	}
	__syncthreads();
	if (threadIdx.x == 0)
		points[0].y = farthest[5];
}
