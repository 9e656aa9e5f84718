/* SPDX-License-Identifier: MIT */
// The softmax loop of attention by FlashAttention 4's algorithm, in plain CUDA C: what the threads of a tile's softmax warps do for
// each block of 128 keys.  -DFAST_EX2: as for sm_103a, without the polynomial.
#include "tcgen05.cuh"

enum { KEYS = 128, QUARTER = KEYS / 4, PERIOD = 16, KEPT = 12, SLACK = 8 };

__device__ inline void start_read(uint32_t from, float *v)
{
	uint32_t *u = (uint32_t *)v;
	asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"
	             "%25,%26,%27,%28,%29,%30,%31}, [%32];"
	             : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]), "=r"(u[4]), "=r"(u[5]), "=r"(u[6]), "=r"(u[7]), "=r"(u[8]),
	               "=r"(u[9]), "=r"(u[10]), "=r"(u[11]), "=r"(u[12]), "=r"(u[13]), "=r"(u[14]), "=r"(u[15]), "=r"(u[16]),
	               "=r"(u[17]), "=r"(u[18]), "=r"(u[19]), "=r"(u[20]), "=r"(u[21]), "=r"(u[22]), "=r"(u[23]), "=r"(u[24]),
	               "=r"(u[25]), "=r"(u[26]), "=r"(u[27]), "=r"(u[28]), "=r"(u[29]), "=r"(u[30]), "=r"(u[31])
	             : "r"(from));
}

__device__ inline void write(uint32_t to, const uint32_t w[16])
{
	asm volatile("tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16};" ::"r"(to), "r"(w[0]),
	             "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(w[4]), "r"(w[5]), "r"(w[6]), "r"(w[7]), "r"(w[8]), "r"(w[9]), "r"(w[10]), "r"(w[11]),
	             "r"(w[12]), "r"(w[13]), "r"(w[14]), "r"(w[15])
	             : "memory");
}

__device__ inline float max3(float a, float b, float c)
{
	float d;
	asm("max.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
	return d;
}

__device__ inline float ex2(float x)
{
	float d;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
	return d;
}

__device__ inline void arrive(uint32_t bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }

__device__ inline void tell(uint32_t bar)
{
	asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
	asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
	arrive(bar);
}

// Two exponentials without the unit for them: a polynomial in what lies behind the point, and the rest into the exponent.
__device__ inline float2 polynomial(float2 x)
{
	const float round = 12582912.0f;
	x.x = fmaxf(x.x, -127.0f), x.y = fmaxf(x.y, -127.0f);
	const float2 up = __fadd2_rd(x, make_float2(round, round)), whole = __fadd2_rn(up, make_float2(-round, -round));
	const float2 part = __ffma2_rn(whole, make_float2(-1, -1), x);
	float2 p = make_float2(0.077119089663028717041015625f, 0.077119089663028717041015625f);
	p = __ffma2_rn(p, part, make_float2(0.227564394474029541015625f, 0.227564394474029541015625f));
	p = __ffma2_rn(p, part, make_float2(0.695146143436431884765625f, 0.695146143436431884765625f));
	p = __ffma2_rn(p, part, make_float2(1, 1));
	p.x = __int_as_float((__float_as_int(up.x) << 23) + __float_as_int(p.x));
	p.y = __int_as_float((__float_as_int(up.y) << 23) + __float_as_int(p.y));
	return p;
}

__device__ inline void exponentiate(float *v, uint32_t to, float scale, float less, bool last)
{
	uint32_t w[QUARTER / 2];
#pragma unroll
	for (int i = 0; i < QUARTER; i += 2) {
		float2 x = __ffma2_rn(make_float2(v[i], v[i + 1]), make_float2(scale, scale), make_float2(less, less));
#ifdef FAST_EX2
		const bool kept = true;
#else
		const bool kept = last || i % PERIOD < KEPT;
#endif
		x = kept ? make_float2(ex2(x.x), ex2(x.y)) : polynomial(x);
		v[i] = x.x, v[i + 1] = x.y;
		w[i / 2] = pack(__float_as_uint(x.x), __float_as_uint(x.y));
	}
	write(to, w);
}

__device__ inline float largest(const float *v, float so_far)
{
	float m[4] = { max3(v[0], v[1], so_far), fmaxf(v[2], v[3]), fmaxf(v[4], v[5]), fmaxf(v[6], v[7]) };
#pragma unroll
	for (int i = 8; i < KEYS; i += 2)
		m[i / 2 % 4] = max3(m[i / 2 % 4], v[i], v[i + 1]);
	return fmaxf(max3(m[0], m[1], m[2]), m[3]);
}

__device__ inline float total(const float *v)
{
	float2 s[4];
#pragma unroll
	for (int i = 0; i < KEYS; i += 2)
		s[i / 2 % 4] = i < 8 ? make_float2(v[i], v[i + 1]) : __fadd2_rn(s[i / 2 % 4], make_float2(v[i], v[i + 1]));
	const float2 t = __fadd2_rn(__fadd2_rn(s[0], s[1]), __fadd2_rn(s[2], s[3]));
	return t.x + t.y;
}

extern "C" __global__ void __launch_bounds__(256, 1) softmax(float *out, uint32_t tmem, float scale, int blocks)
{
	__shared__ volatile float factors[256];
	__shared__ uint64_t bars[4][2];
	const uint32_t warp = __shfl_sync(~0u, threadIdx.x / 32, 0), tile = warp / 4, s = tmem + tile * KEYS + ((warp % 4) << 21);
	const uint32_t full = shared(&bars[0][tile]), factor_bar = shared(&bars[1][tile]), early = shared(&bars[2][tile]),
				   late = shared(&bars[3][tile]);
	float max = -INFINITY, sum = 0, v[KEYS];
	uint32_t parity = 0;

#pragma unroll 1
	for (int i = 0; i < blocks; i++) {
		wait(full, parity);
		parity ^= 1;
		fence_after();
#pragma unroll
		for (int q = 0; q < 4; q++)
			start_read(s + q * QUARTER, v + q * QUARTER);
		asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
		const float top = largest(v, max), old = max, grown = (top - old) * scale;
		max = grown <= SLACK ? old : top;
		const float safe = max == -INFINITY ? 0 : max, less = -safe * scale;
		const float factor = grown <= SLACK ? 1 : ex2(old * scale + less);
		factors[threadIdx.x] = factor;
		arrive(factor_bar);
#pragma unroll
		for (int q = 0; q < 3; q++)
			exponentiate(v + q * QUARTER, s + KEYS / 2 + q * QUARTER / 2, scale, less, false);
		tell(early);
		exponentiate(v + 3 * QUARTER, s + KEYS / 2 + 3 * QUARTER / 2, scale, less, true);
		tell(late);
		sum = sum * factor + total(v);
	}
	out[2 * (blockIdx.x * 256 + threadIdx.x)] = max;
	out[2 * (blockIdx.x * 256 + threadIdx.x) + 1] = sum;
}
