/* What is computed for a GEMM and cannot fail: there in every build, as there is no way to say that it is left out. */
#include "kernels/gemm_tma.h"

#include <cptx/kernels.h>

cptx_gemm_opt cptx_gemm_default(const cptx_target *target)
{
	cptx_gemm_opt o = {
		.bm = 128, .bn = 256, .bk = 64, .warps_m = 2, .warps_n = 4, .stages = 4, .in = CPTX_BF16, .out = CPTX_F32
	};

	if (target && target->smem_per_cta < 192 * 1024)
		o.stages = 3;
	if (target && target->smem_per_cta < 144 * 1024)
		o.bk = 32, o.stages = 4;
	if (target && target->family == 12) /* ptxas takes more registers there: 64 x 64 a warp would spill */
		o.bn = 128, o.bk = 64, o.stages = 3;
	return o;
}

uint32_t cptx_gemm_grid(const cptx_gemm_opt *o, uint64_t m, uint64_t n, uint32_t resident)
{
	if (!o || !o->bm || !o->bn)
		return 0;
	uint64_t tiles = (m + o->bm - 1) / o->bm * ((n + o->bn - 1) / o->bn);
	return (uint32_t)MIN(tiles, MAX(resident, 1u));
}

/* ---- scale factors ---- */

uint64_t cptx_gemm_scales_bytes(uint64_t rows, uint64_t k, uint32_t vec)
{
	uint64_t down = blocks_along(rows, FACTOR_ROWS), along = vec ? blocks_along(k, (uint64_t)vec * FACTORS) : 0;

	return !along || down <= UINT64_MAX / FACTOR_BYTES / along ? down * along * FACTOR_BYTES : UINT64_MAX;
}

void cptx_gemm_scales_pack(uint8_t *to, const uint8_t *from, uint64_t rows, uint64_t k, uint32_t vec)
{
	uint64_t factors = vec ? blocks_along(k, vec) : 0, across = blocks_along(factors, FACTORS);
	uint64_t bytes = cptx_gemm_scales_bytes(rows, k, vec);

	if (!to || !from || bytes == UINT64_MAX) /* nobody has such a buffer */
		return;
	memset(to, 0, bytes);
	for (uint64_t r = 0; r < rows; r++)
		for (uint64_t f = 0; f < factors; f++)
			to[(r / FACTOR_ROWS * across + f / FACTORS) * FACTOR_BYTES + r % 32 * 16 + r % FACTOR_ROWS / 32 * 4 +
			   f % FACTORS] = from[r * factors + f];
}

/* ---- timelines ---- */

cptx_timeline_layout cptx_gemm_timeline(uint32_t grid, uint32_t threads, uint32_t stamps)
{
	static const char *const phases[] = {
		[CPTX_GEMM_WAIT_ROOM] = "wait for room", [CPTX_GEMM_LOAD] = "load",
		[CPTX_GEMM_WAIT_DATA] = "wait for data", [CPTX_GEMM_MULTIPLY] = "multiply",
		[CPTX_GEMM_WAIT_SUMS] = "wait for sums", [CPTX_GEMM_BRING_OUT] = "bring out",
	};

	return (cptx_timeline_layout){
		.ctas = grid, .warps = threads / 32, .events = stamps, .phases = phases, .phase_count = ARRAY_LEN(phases)
	};
}
