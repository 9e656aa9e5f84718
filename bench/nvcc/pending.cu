/* SPDX-License-Identifier: MIT */
// Does mbarrier.arrive wait for loads of shared memory whose registers nobody has taken?  A producer fills a stage anew by a bulk copy as
// soon as eight warps have given it back, and these compare what they read with what the stage held.
//   nvcc -O3 -std=c++17 -arch=sm_90a -o pending pending.cu && ./pending LAUNCHES
// bench/sass_pending.py shows that of "at once" all loads are pending at the arrival, of "behind the values" none.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

enum { WARPS = 8, THREADS = WARPS * 32 + 32, STAGE = 16384, STAGES = 2, SOURCES = 16, LOADS = 8, ROW = STAGE / WARPS, TURNS = 20000, SMS = 132 };
enum load { LDMATRIX, LDMATRIX_CONFLICTS, LD_V4, LD_V4_CONFLICTS, LD_U32 };
static const char *const names[] = { "ldmatrix.x4", "ldmatrix.x4, bank conflicts", "ld.v4", "ld.v4, bank conflicts", "ld" };

static __device__ uint32_t shared(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

static __device__ void wait(const uint64_t *barrier, uint32_t parity)
{
	asm volatile("{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(shared(barrier)), "r"(parity)
	             : "memory");
}

static __device__ void produce(const uint8_t *from, uint8_t *ring, uint64_t *full, uint64_t *empty, int turns)
{
	for (int i = 0; i < turns; i++) {
		const int s = i % STAGES;
		wait(&empty[s], (i / STAGES & 1) ^ 1);
		asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&full[s])), "r"(STAGE) : "memory");
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared(ring + s * STAGE)),
		             "l"(from + (size_t)(i % SOURCES) * STAGE), "r"(STAGE), "r"(shared(&full[s]))
		             : "memory");
	}
}

template <load KIND> static __device__ void read(uint32_t stage, int warp, int lane, int i, uint32_t v[4])
{
	constexpr bool conflicts = KIND == LDMATRIX_CONFLICTS || KIND == LD_V4_CONFLICTS, matrix = KIND == LDMATRIX || KIND == LDMATRIX_CONFLICTS;
	const uint32_t row = stage + (warp + i) % WARPS * ROW;
	const uint32_t at = conflicts ? stage + (lane * 512 + warp * 16 + i * 128) % STAGE : row + lane * (KIND == LD_U32 ? 4 : 16);

	if (matrix)
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
	else if (KIND == LD_U32)
		for (int j = 0; j < 4; j++)
			asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v[j]) : "r"(at + j * 128) : "memory");
	else
		asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
}

static __device__ bool differs(const uint32_t v[LOADS][4], uint32_t word)
{
	uint32_t all = 0;

	for (int i = 0; i < LOADS; i++)
		for (int j = 0; j < 4; j++)
			all |= v[i][j] ^ word;
	return all;
}

template <load KIND, bool LATE>
static __global__ void __launch_bounds__(THREADS) compare(const uint8_t *from, int turns, unsigned long long *wrong)
{
	extern __shared__ __align__(1024) uint8_t ring[];
	__shared__ volatile uint32_t words[SOURCES];
	__shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	unsigned bad = 0;

	if (threadIdx.x < SOURCES)
		words[threadIdx.x] = 0x01010101u * (threadIdx.x + 1);
	for (int i = 0; threadIdx.x == 0 && i < STAGES; i++) {
		asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&full[i])));
		asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared(&empty[i])), "r"(WARPS));
		asm volatile("fence.mbarrier_init.release.cluster;");
	}
	__syncthreads();
	if (warp == WARPS) {
		if (lane == 0)
			produce(from, ring, full, empty, turns);
		return;
	}
	for (int i = 0; i < turns; i++) {
		const int s = i % STAGES;
		uint32_t v[LOADS][4];
		bool differ = false;
		wait(&full[s], i / STAGES & 1);
#pragma unroll
		for (int j = 0; j < LOADS; j++)
			read<KIND>(shared(ring + s * STAGE), warp, lane, j, v[j]);
		if (LATE)
			differ = differs(v, 0x01010101u * (i % SOURCES + 1));
		// of what differs no lane but the first arrives, either way
		asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %1, 0;\nbar.warp.sync 0xffffffff;\n@p mbarrier.arrive.shared.b64 _, [%0];\n}" ::"r"(shared(&empty[s])),
		             "r"(LATE && differ ? lane * 2 : lane)
		             : "memory");
		if (!LATE) // the word is read behind the arrival, so that nothing takes the loads' registers in front of it
			differ = differs(v, words[i % SOURCES]);
		bad += differ;
	}
	if (bad)
		atomicAdd(wrong, (unsigned long long)bad);
}

template <load KIND, bool LATE> static void run(const uint8_t *from, unsigned long long *wrong, int launches)
{
	unsigned long long all = 0, n = 0;
	int runs = 0;

	for (int i = 0; i < launches; i++) {
		const int waves = i % 4 + 1; // CTAs that share a multiprocessor
		cudaMemset(wrong, 0, sizeof *wrong);
		compare<KIND, LATE><<<SMS * waves, THREADS, STAGE * STAGES>>>(from, TURNS / waves, wrong);
		cudaMemcpy(&n, wrong, sizeof n, cudaMemcpyDeviceToHost);
		all += n, runs += n != 0;
	}
	printf("%-28s arrival %-18s %d of %d launches wrong, %llu turns of threads (%s)\n", names[KIND], LATE ? "behind the values:" : "at once:", runs, launches, all,
	       cudaGetErrorString(cudaGetLastError()));
	fflush(stdout);
}

template <load KIND> static void both(const uint8_t *from, unsigned long long *wrong, int launches)
{
	run<KIND, false>(from, wrong, launches);
	run<KIND, true>(from, wrong, launches);
}

int main(int argc, char **argv)
{
	const int launches = argc > 1 ? atoi(argv[1]) : 10;
	unsigned long long *wrong;
	uint8_t *from;

	cudaMalloc(&from, SOURCES * STAGE), cudaMalloc(&wrong, sizeof *wrong);
	for (int i = 0; i < SOURCES; i++)
		cudaMemset(from + (size_t)i * STAGE, i + 1, STAGE);
	both<LDMATRIX>(from, wrong, launches), both<LDMATRIX_CONFLICTS>(from, wrong, launches);
	both<LD_V4>(from, wrong, launches), both<LD_V4_CONFLICTS>(from, wrong, launches);
	both<LD_U32>(from, wrong, launches);
	return 0;
}
