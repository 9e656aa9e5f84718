/* SPDX-License-Identifier: MIT */
// Surface objects: reads and writes of every dimension, element width and boundary mode.
// archs: 75 80 90a 100a 120a
#include <cuda_runtime.h>

extern "C" __global__ void surf_flat(cudaSurfaceObject_t in, cudaSurfaceObject_t out, int layer)
{
	int x = threadIdx.x, y = threadIdx.y;
	float v;
	surf2Dread(&v, in, x * 4, y, cudaBoundaryModeClamp);
	surf2Dwrite(v * 2.0f, out, x * 4, y, cudaBoundaryModeTrap);
	uchar4 c = surf1Dread<uchar4>(in, x * 4, cudaBoundaryModeZero);
	surf1Dwrite(make_uchar4(c.w, c.z, c.y, c.x), out, x * 4);
	int2 d = surf2DLayeredread<int2>(in, x * 8, y, layer);
	surf2DLayeredwrite(make_int2(d.y, d.x), out, x * 8, y, layer, cudaBoundaryModeZero);
}

extern "C" __global__ void surf_deep(cudaSurfaceObject_t in, cudaSurfaceObject_t out, int face)
{
	int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
	float4 a = surf3Dread<float4>(in, x * 16, y, z, cudaBoundaryModeClamp);
	surf3Dwrite(make_float4(a.w, a.x, a.y, a.z), out, x * 16, y, z);
	short2 b = surfCubemapread<short2>(in, x * 4, y, face);
	surfCubemapwrite(make_short2(b.y, b.x), out, x * 4, y, face);
	longlong2 c = surf1DLayeredread<longlong2>(in, x * 16, face);
	surf1DLayeredwrite(c, out, x * 16, face);
	unsigned short s = surfCubemapLayeredread<unsigned short>(in, x * 2, y, face);
	surfCubemapLayeredwrite(s, out, x * 2, y, face);
}
