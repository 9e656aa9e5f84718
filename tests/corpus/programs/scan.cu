/* SPDX-License-Identifier: MIT */
// Inclusive prefix sums of any length in one pass: blocks publish their sums and look back at those before them.
// archs: 80 120a
// variants: O0 G

enum { THREADS = 128, EACH = 4, TILE = THREADS * EACH };
enum { NOTHING = 0, OWN_SUM = 1, WHOLE_PREFIX = 2 };

// A state and a value in one word, so that both are seen together.
static __device__ __forceinline__ unsigned long long packed(unsigned state, int value)
{
	return static_cast<unsigned long long>(state) << 32 | static_cast<unsigned>(value);
}

static __device__ int warp_scan(int v)
{
	int lane = threadIdx.x & 31;
	for (int d = 1; d < 32; d *= 2) {
		int up = __shfl_up_sync(0xffffffff, v, d);
		if (lane >= d)
			v += up;
	}
	return v;
}

// The sum of all tiles before this one: 32 tiles at a time, the nearest first.
static __device__ int look_back(volatile unsigned long long *tiles, int tile)
{
	int lane = threadIdx.x & 31, sum = 0;
	for (int at = tile - 1 - lane;; at -= 32) {
		unsigned long long word = at >= 0 ? tiles[at] : packed(WHOLE_PREFIX, 0);
		while (__any_sync(0xffffffff, static_cast<unsigned>(word >> 32) == NOTHING))
			word = at >= 0 ? tiles[at] : packed(WHOLE_PREFIX, 0);
		unsigned whole = __ballot_sync(0xffffffff, static_cast<unsigned>(word >> 32) == WHOLE_PREFIX);
		int nearest = whole ? __ffs(whole) - 1 : 31;
		sum += __reduce_add_sync(0xffffffff, lane <= nearest ? static_cast<int>(word) : 0);
		if (whole)
			return sum;
	}
}

// tiles: a word for each tile, and *ticket: all zero before.
extern "C" __global__ void __launch_bounds__(THREADS) scan(const int *in, int *out, unsigned long long *tiles, unsigned *ticket, int n)
{
	__shared__ int warp_total[THREADS / 32], tile_shared, before_shared;
	int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	if (threadIdx.x == 0)
		tile_shared = atomicAdd(ticket, 1);
	__syncthreads();
	int tile = tile_shared, first = tile * TILE + threadIdx.x * EACH, v[EACH], sum = 0;
	for (int i = 0; i < EACH; ++i) {
		sum += first + i < n ? in[first + i] : 0;
		v[i] = sum;
	}
	int upto = warp_scan(sum);
	if (lane == 31)
		warp_total[warp] = upto;
	__syncthreads();
	int before = upto - sum, total = 0;
	for (int i = 0; i < THREADS / 32; ++i) {
		if (i < warp)
			before += warp_total[i];
		total += warp_total[i];
	}
	if (warp == 0) {
		volatile unsigned long long *word = tiles;
		if (lane == 0)
			word[tile] = packed(tile ? OWN_SUM : WHOLE_PREFIX, total);
		int prefix = tile ? look_back(tiles, tile) : 0;
		if (lane == 0) {
			if (tile)
				word[tile] = packed(WHOLE_PREFIX, prefix + total);
			before_shared = prefix;
		}
	}
	__syncthreads();
	before += before_shared;
	for (int i = 0; i < EACH; ++i)
		if (first + i < n)
			out[first + i] = before + v[i];
}
