/* SPDX-License-Identifier: MIT */
// Texture objects: every dimension, filtered and fetched, with levels, gradients, layers, cubes and gathers.
// archs: 75 80 90a 100a 120a
#include <cuda_runtime.h>

extern "C" __global__ void tex_plain(cudaTextureObject_t t, float4 *out, int w)
{
	int i = threadIdx.x;
	float u = (i + 0.5f) / w;
	float4 a = tex1D<float4>(t, u);
	float4 b = tex2D<float4>(t, u, u * 0.5f);
	float4 c = tex3D<float4>(t, u, 0.25f, 0.75f);
	int2 d = tex1Dfetch<int2>(t, i);
	unsigned e = tex2D<unsigned>(t, u, u);
	out[i] = make_float4(a.x + b.y, b.z * c.w, d.x + d.y, e);
}

extern "C" __global__ void tex_levels(cudaTextureObject_t t, float *out)
{
	float u = threadIdx.x * 0.125f;
	float v = tex1DLod<float>(t, u, 1.0f) + tex2DLod<float>(t, u, u, 2.0f) + tex3DLod<float>(t, u, u, u, 0.0f);
	v += tex1DGrad<float>(t, u, 0.1f, 0.2f) + tex2DGrad<float>(t, u, u, make_float2(0.1f, 0.2f), make_float2(0.3f, 0.4f));
	v += tex3DGrad<float>(t, u, u, u, make_float4(1, 2, 3, 4), make_float4(5, 6, 7, 8));
	out[threadIdx.x] = v;
}

extern "C" __global__ void tex_layers(cudaTextureObject_t t, float *out, int layer)
{
	float u = threadIdx.x * 0.25f;
	float v = tex1DLayered<float>(t, u, layer) + tex2DLayered<float2>(t, u, u, layer).y;
	v += tex1DLayeredLod<float>(t, u, layer, 1.5f) + tex2DLayeredLod<float>(t, u, u, layer, 1.5f);
	v += texCubemap<float>(t, u, u, 1.0f) + texCubemapLayered<float>(t, u, u, 1.0f, layer);
	v += texCubemapLod<float>(t, u, u, 1.0f, 2.0f) + texCubemapLayeredLod<float>(t, u, u, 1.0f, layer, 2.0f);
	out[threadIdx.x] = v;
}

extern "C" __global__ void tex_gather(cudaTextureObject_t t, float4 *out, bool *resident)
{
	float u = threadIdx.x * 0.5f;
	float4 g = tex2Dgather<float4>(t, u, u, 0);
	int4 h = tex2Dgather<int4>(t, u, u, 3);
	bool there = false;
	float s = tex2D<float>(t, u, u, &there);
	out[threadIdx.x] = make_float4(g.x + h.y, g.y, g.z * s, h.w);
	resident[threadIdx.x] = there;
}
