/* SPDX-License-Identifier: MIT */
// Functions that are called: structs by value, recursion, pointers to functions, virtual functions.
// archs: 70 75
#include "device.h"

struct Triple {
	int a;
	double b;
	short c[3];
};

struct Base {
	__device__ virtual int value(int x) { return x; }
	int bias;
};

struct Derived : Base {
	__device__ int value(int x) override { return x * bias; }
};

__device__ __noinline Triple turn(Triple t)
{
	Triple r = {static_cast<int>(t.b), static_cast<double>(t.a), {t.c[2], t.c[1], t.c[0]}};
	return r;
}

__device__ int ackermann(int m, int n)
{
	return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

__device__ __noinline int plus(int a, int b)
{
	return a + b;
}

__device__ __noinline int times(int a, int b)
{
	return a * b;
}

__device__ int (*const table[2])(int, int) = {plus, times};

extern "C" __global__ void call(Triple *t, int *out, int n)
{
	t[tid_x] = turn(t[tid_x]);
	Derived d;
	d.bias = n;
	Base *b = &d;
	out[tid_x] = ackermann(2, tid_x & 3) + table[n & 1](n, 7) + b->value(3);
}
