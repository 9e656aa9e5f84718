/* SPDX-License-Identifier: MIT */
// Classes with virtual functions, made in device memory and called through the table.
// archs: 75 80 90a 100a 120a
#include <new>

struct Shape {
	__device__ virtual ~Shape() {}
	__device__ virtual float area() const = 0;
	__device__ virtual int sides() const { return 0; }
	float colour = 0.25f;
};

struct Box : Shape {
	float w, h;
	__device__ Box(float a, float b) : w(a), h(b) {}
	__device__ float area() const override { return w * h; }
	__device__ int sides() const override { return 4; }
};

struct Disc : Shape {
	double r;
	__device__ explicit Disc(double a) : r(a) {}
	__device__ float area() const override { return static_cast<float>(3.25 * r * r); }
};

extern "C" __global__ void make(Shape **list, int n)
{
	int i = threadIdx.x;
	if (i >= n)
		return;
	if (i & 1)
		list[i] = new Box(i, 2.0f);
	else
		list[i] = new Disc(i * 0.5);
}

extern "C" __global__ void measure(Shape **list, float *out, int n)
{
	float sum = 0.0f;
	for (int i = 0; i < n; ++i)
		sum += list[i]->area() * list[i]->sides() + list[i]->colour;
	out[0] = sum;
	delete list[threadIdx.x];
}

// A class template with an operator, called through a lambda.
template <class F>
static __device__ float apply(F f, float x)
{
	return f(f(x));
}

extern "C" __global__ void lambdas(float *out, float k)
{
	auto scale = [k](float v) { return v * k + 1.0f; };
	out[threadIdx.x] = apply(scale, out[threadIdx.x]) + apply([&](float v) { return v - out[0]; }, 3.0f);
}
