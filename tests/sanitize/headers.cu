/* SPDX-License-Identifier: MIT */
/*
 * Kernels made of the toolkit's headers: CUB, libcu++'s barriers, pipelines and atomics, cooperative groups, cuRAND.  Each
 * checks what it computes; the argument names one, or there is none: all.  The last line says how many are right.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <curand_kernel.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

namespace cg = cooperative_groups;

enum { N = 1024, THREADS = 128, EACH = 4 };

template <class T> struct buffer {
	T *d;
	size_t n;
	explicit buffer(const std::vector<T> &from) : n(from.size())
	{
		cudaMalloc(&d, n * sizeof(T));
		cudaMemcpy(d, from.data(), n * sizeof(T), cudaMemcpyHostToDevice);
	}
	explicit buffer(size_t count) : buffer(std::vector<T>(count)) {}
	std::vector<T> back() const
	{
		std::vector<T> h(n);
		cudaMemcpy(h.data(), d, n * sizeof(T), cudaMemcpyDeviceToHost);
		return h;
	}
	~buffer() { cudaFree(d); }
};

static std::vector<int> numbers(size_t n)
{
	std::vector<int> v(n);
	unsigned x = 12345;

	for (auto &i : v)
		i = (int)((x = x * 1664525u + 1013904223u) >> 20);
	return v;
}

/* ---- CUB ---- */

__global__ void block_sort(int *p)
{
	using load = cub::BlockLoad<int, THREADS, EACH, cub::BLOCK_LOAD_TRANSPOSE>;
	using store = cub::BlockStore<int, THREADS, EACH, cub::BLOCK_STORE_TRANSPOSE>;
	using sort = cub::BlockRadixSort<int, THREADS, EACH>;
	__shared__ union {
		typename load::TempStorage l;
		typename store::TempStorage s;
		typename sort::TempStorage r;
	} t;
	int x[EACH], *at = p + blockIdx.x * THREADS * EACH;

	load(t.l).Load(at, x);
	__syncthreads();
	sort(t.r).Sort(x);
	__syncthreads();
	store(t.s).Store(at, x);
}

static bool cub_block_sort()
{
	auto h = numbers(N);
	buffer<int> d(h);

	block_sort<<<N / THREADS / EACH, THREADS>>>(d.d);
	for (int i = 0; i < N; i += THREADS * EACH)
		std::sort(h.begin() + i, h.begin() + i + THREADS * EACH);
	return d.back() == h;
}

__global__ void block_scan(const int *p, int *sums, int *all)
{
	using scan = cub::BlockScan<int, THREADS>;
	using reduce = cub::BlockReduce<int, THREADS>;
	__shared__ typename scan::TempStorage s;
	__shared__ typename reduce::TempStorage r;
	int i = blockIdx.x * THREADS + threadIdx.x, x = p[i], y;

	scan(s).InclusiveSum(x, y);
	sums[i] = y;
	int z = reduce(r).Sum(x);
	if (!threadIdx.x)
		all[blockIdx.x] = z;
}

static bool cub_block_scan()
{
	auto h = numbers(N);
	buffer<int> d(h), sums(N), all(N / THREADS);
	bool ok = true;

	block_scan<<<N / THREADS, THREADS>>>(d.d, sums.d, all.d);
	auto s = sums.back(), a = all.back();
	for (int b = 0; b < N / THREADS; b++) {
		std::partial_sum(h.begin() + b * THREADS, h.begin() + (b + 1) * THREADS, h.begin() + b * THREADS);
		ok &= a[b] == h[(b + 1) * THREADS - 1];
	}
	return ok && s == h;
}

static bool cub_device()
{
	auto h = numbers(3000);
	buffer<int> in(h), out(h.size());
	size_t size = 0, more = 0;
	void *t = nullptr;

	cub::DeviceScan::InclusiveSum(nullptr, size, in.d, out.d, (int)h.size());
	cub::DeviceRadixSort::SortKeys(nullptr, more, in.d, out.d, (int)h.size());
	cudaMalloc(&t, std::max(size, more));
	cub::DeviceScan::InclusiveSum(t, size, in.d, out.d, (int)h.size());
	auto sums = h, sorted = h;
	std::partial_sum(sums.begin(), sums.end(), sums.begin());
	bool ok = out.back() == sums;
	cub::DeviceRadixSort::SortKeys(t, more, in.d, out.d, (int)h.size());
	std::sort(sorted.begin(), sorted.end());
	ok &= out.back() == sorted;
	cudaFree(t);
	return ok;
}

/* ---- libcu++ ---- */

/* Half of the warps write, the others read what they wrote, twice over two buffers. */
__global__ void exchange(int *p)
{
	using barrier = cuda::barrier<cuda::thread_scope_block>;
	__shared__ alignas(barrier) char room[4][sizeof(barrier)];
	__shared__ int kept[2][THREADS / 2];
	barrier *full = reinterpret_cast<barrier *>(room[0]), *empty = reinterpret_cast<barrier *>(room[2]);
	int half = THREADS / 2, i = threadIdx.x % half;

	if (!threadIdx.x)
		for (int b = 0; b < 2; b++) {
			init(full + b, THREADS);
			init(empty + b, THREADS);
		}
	__syncthreads();
	if (threadIdx.x < half) {
		for (int k = 0; k < 6; k++) {
			empty[k % 2].arrive_and_wait();
			kept[k % 2][i] = p[i] + k;
			(void)full[k % 2].arrive();
		}
	} else {
		int sum = 0;
		(void)empty[0].arrive();
		(void)empty[1].arrive();
		for (int k = 0; k < 6; k++) {
			full[k % 2].arrive_and_wait();
			sum += kept[k % 2][half - 1 - i];
			(void)empty[k % 2].arrive();
		}
		p[threadIdx.x] = sum;
	}
}

static bool barriers()
{
	auto h = numbers(THREADS);
	buffer<int> d(h);
	bool ok = true;

	exchange<<<1, THREADS>>>(d.d);
	auto r = d.back();
	for (int i = 0; i < THREADS / 2; i++)
		ok &= r[THREADS / 2 + i] == 6 * h[THREADS / 2 - 1 - i] + 15;
	return ok;
}

/* A ring of asynchronous copies in front of their sums. */
__global__ void staged(const int *p, int *q, int tiles)
{
	constexpr int stages = 2;
	__shared__ int tile[stages][THREADS];
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
	auto block = cg::this_thread_block();
	auto pipe = cuda::make_pipeline(block, &state);
	int sum = 0;

	for (int use = 0, get = 0; use < tiles; use++) {
		for (; get < tiles && get < use + stages; get++) {
			pipe.producer_acquire();
			cuda::memcpy_async(block, tile[get % stages], p + get * THREADS, cuda::aligned_size_t<16>(THREADS * sizeof(int)), pipe);
			pipe.producer_commit();
		}
		pipe.consumer_wait();
		sum += tile[use % stages][(threadIdx.x + 37) % THREADS];
		pipe.consumer_release();
	}
	q[threadIdx.x] = sum;
}

static bool pipelines()
{
	auto h = numbers(5 * THREADS);
	buffer<int> in(h), out(THREADS);
	bool ok = true;

	staged<<<1, THREADS>>>(in.d, out.d, 5);
	auto r = out.back();
	for (int i = 0; i < THREADS; i++) {
		int sum = 0;
		for (int t = 0; t < 5; t++)
			sum += h[t * THREADS + (i + 37) % THREADS];
		ok &= r[i] == sum;
	}
	return ok;
}

/* The last block sums what all have published. */
__global__ void last_sums(const int *p, int *part, int *out, unsigned *count)
{
	__shared__ bool last;
	int sum = p[blockIdx.x * blockDim.x + threadIdx.x];

	for (int d = 16; d; d /= 2)
		sum += __shfl_down_sync(~0u, sum, d);
	if (!threadIdx.x) {
		part[blockIdx.x] = sum;
		cuda::atomic_ref<unsigned, cuda::thread_scope_device> n(*count);
		last = n.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
	}
	__syncthreads();
	if (last && threadIdx.x < gridDim.x)
		atomicAdd(out, part[threadIdx.x]);
}

static bool atomics()
{
	auto h = numbers(20 * 32);
	buffer<int> in(h), part(20), out((size_t)1);
	buffer<unsigned> count((size_t)1);

	last_sums<<<20, 32>>>(in.d, part.d, out.d, count.d);
	return out.back()[0] == std::accumulate(h.begin(), h.end(), 0);
}

/* ---- cooperative groups ---- */

__global__ void grouped(const int *p, int *q, int *r)
{
	__shared__ int s[THREADS], sums[THREADS / 32];
	auto block = cg::this_thread_block();
	auto warp = cg::tiled_partition<32>(block);
	auto quarter = cg::tiled_partition<8>(warp);
	int i = block.thread_rank(), sum = 0;

	cg::memcpy_async(block, s, p + blockIdx.x * THREADS, sizeof s);
	cg::wait(block);
	int x = s[THREADS - 1 - i];
	int before = cg::exclusive_scan(quarter, x);
	int all = cg::reduce(warp, x, cg::plus<int>());
	if (!warp.thread_rank())
		sums[warp.meta_group_rank()] = all;
	block.sync();
	for (int w = 0; w < THREADS / 32; w++)
		sum += sums[w];
	q[blockIdx.x * THREADS + i] = before;
	auto grid = cg::this_grid();
	if (!i)
		r[blockIdx.x] = sum;
	grid.sync();
	if (!grid.thread_rank()) {
		int n = 0;
		for (unsigned b = 0; b < gridDim.x; b++)
			n += r[b];
		r[gridDim.x] = n;
	}
}

static bool groups()
{
	int blocks = 4;
	auto h = numbers(4 * THREADS);
	buffer<int> in(h), out(h.size()), sums((size_t)5);
	void *args[] = { &in.d, &out.d, &sums.d };
	bool ok = cudaLaunchCooperativeKernel((const void *)grouped, dim3(blocks), dim3(THREADS), args, 0, 0) == cudaSuccess;
	auto q = out.back(), r = sums.back();

	for (int i = 0; i < (int)h.size(); i++) {
		int base = i / THREADS * THREADS, at = i - base, sum = 0;
		for (int k = at / 8 * 8; k < at; k++)
			sum += h[base + THREADS - 1 - k];
		ok &= q[i] == sum;
	}
	return ok && r[4] == std::accumulate(h.begin(), h.end(), 0);
}

/* ---- cuRAND ---- */

__global__ void draw(float *sums)
{
	__shared__ float s[THREADS];
	curandStatePhilox4_32_10_t a;
	curandStateXORWOW_t b;
	float sum = 0;

	curand_init(1234, threadIdx.x, 0, &a);
	curand_init(1234, threadIdx.x, 0, &b);
	for (int i = 0; i < 8; i++)
		sum += curand_uniform(&a) + curand_uniform(&b);
	s[threadIdx.x] = sum;
	for (int n = THREADS / 2; n; n /= 2) {
		__syncthreads();
		if (threadIdx.x < n)
			s[threadIdx.x] += s[threadIdx.x + n];
	}
	if (!threadIdx.x)
		*sums = s[0];
}

static bool curand()
{
	buffer<float> d((size_t)1);

	draw<<<1, THREADS>>>(d.d);
	float mean = d.back()[0] / (16 * THREADS);
	return mean > 0.45f && mean < 0.55f;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool (*run)();
	} all[] = { { "cub_block_sort", cub_block_sort }, { "cub_block_scan", cub_block_scan }, { "cub_device", cub_device },
		        { "barriers", barriers },             { "pipelines", pipelines },           { "atomics", atomics },
		        { "groups", groups },                 { "curand", curand } };
	int right = 0, wrong = 0;

	for (auto &x : all) {
		if (argc > 1 && strcmp(argv[1], x.name))
			continue;
		bool ok = x.run() && cudaDeviceSynchronize() == cudaSuccess;
		if (!ok)
			printf("%s is wrong: %s\n", x.name, cudaGetErrorName(cudaGetLastError()));
		*(ok ? &right : &wrong) += 1;
	}
	printf("%d right, %d wrong\n", right, wrong);
	return wrong || !right;
}
