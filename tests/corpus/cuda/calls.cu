/* SPDX-License-Identifier: MIT */
// Device functions: not inlined, recursive, with struct parameters and results, through pointers, never returning.
// archs: 75 80 90a 100a 120a

struct Pair {
	float a;
	double b;
};

struct Big {
	int words[12];
	char tail[3];
};

typedef int (*Step)(int, int);

static __device__ __noinline__ int add(int a, int b)
{
	return a + b;
}

static __device__ __noinline__ int sub(int a, int b)
{
	return a - 3 * b;
}

static __device__ __noinline__ int blend(int a, int b)
{
	return a ^ (b << 3);
}

__device__ Step steps[3] = {add, sub, blend};

static __device__ __noinline__ Pair swap(Pair p)
{
	Pair r = {static_cast<float>(p.b), p.a};
	return r;
}

static __device__ __noinline__ int weigh(Big big, bool flag, short s, unsigned char c)
{
	return big.words[s & 7] * c + (flag ? big.tail[1] : big.words[11]);
}

static __device__ __noinline__ void fill(float4 *to, float4 v)
{
	*to = v;
}

static __device__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static __device__ __noinline__ bool odd(int n);

static __device__ __noinline__ bool even(int n)
{
	return n == 0 || odd(n - 1);
}

static __device__ __noinline__ bool odd(int n)
{
	return n != 0 && even(n - 1);
}

[[noreturn]] static __device__ __noinline__ void give_up()
{
	__trap();
	while (true)
		;
}

extern "C" __global__ void call_plain(int *out, float4 *v, Pair *pairs, const Big *big)
{
	int i = threadIdx.x;
	pairs[i] = swap(pairs[i]);
	fill(v + i, make_float4(i, 1, 2, 3));
	out[i] = add(i, sub(i, 7)) + weigh(big[i], i > 3, i, 200);
	if (out[i] == 12345)
		give_up();
}

extern "C" __global__ void call_recursive(int *out)
{
	out[threadIdx.x] = fibonacci(threadIdx.x & 7) + even(threadIdx.x);
}

extern "C" __global__ void call_indirect(int *out, Step given, int n)
{
	Step local = n > 5 ? add : blend;
	int v = local(n, 1);
	for (int i = 0; i < n; ++i)
		v = steps[i % 3](v, i);
	if (given)
		v = given(v, n);
	out[threadIdx.x] = v;
}
