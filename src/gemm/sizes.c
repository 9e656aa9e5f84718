/* SPDX-License-Identifier: MIT */
/* Public calls of the GEMM that cannot fail.  Every build has them, since they have no way to say that they are left out. */
#include "base/options.h"
#include "gemm/tma/tma.h"

enum cptx_gemm_mma cptx_gemm_mma_of(const cptx_target *t)
{
	return t && cptx_form_on_target(CPTX_OP_TCGEN05_MMA, 0, t)       ? CPTX_GEMM_TCGEN05
	       : t && cptx_form_on_target(CPTX_OP_WGMMA_MMA_ASYNC, 0, t) ? CPTX_GEMM_WGMMA
	                                                                 : CPTX_GEMM_SYNC;
}

const char *cptx_gemm_mma_name(enum cptx_gemm_mma mma)
{
	static const char *const names[] = { "mma.sync", "wgmma", "tcgen05", "gemv" };

	return (unsigned)mma < ARRAY_LEN(names) ? names[mma] : "?";
}

const char *cptx_gemm_experts_name(enum cptx_gemm_experts experts)
{
	static const char *const names[] = { "none", "contiguous", "masked", "along-k" };

	return (unsigned)experts < ARRAY_LEN(names) ? names[experts] : "?";
}

/* mma.sync fed by TMA: warps of 64 x 64, eight where setmaxnreg gives them the registers; on sm_12x, which has less shared
 * memory and of which ptxas takes more registers, of 32 x 64. */
static cptx_gemm_opt default_by_tma(cptx_gemm_opt o, const cptx_target *target)
{
	o.tma = true, o.bk = 64, o.stages = 3, o.group = 4;
	o.bm = 256, o.bn = 128, o.warps_m = 4, o.warps_n = 2;
	if (target->family == 12)
		o.bm = 128, o.bk = 32, o.stages = 4;
	else if (!cptx_form_on_target(CPTX_OP_SETMAXNREG, 0, target))
		o.bm = 128, o.warps_m = 2, o.stages = 4;
	return o;
}

static cptx_gemm_opt usual(enum cptx_gemm_mma mma, const cptx_target *target)
{
	cptx_gemm_opt o = { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .bm = 128, .bn = 256, .stages = 4 };

	if (mma == CPTX_GEMM_TCGEN05) {
		o.mma = mma, o.kind = CPTX_TCGEN05_F16, o.bm = 256, o.stages = 6;
		return o;
	}
	if (mma == CPTX_GEMM_WGMMA) {
		o.mma = mma, o.cluster_m = o.cluster_n = 1;
		return o;
	}
	if (mma == CPTX_GEMM_GEMV) {
		o.mma = mma, o.bm = 8, o.bn = 16, o.bk = 128, o.warps_m = 8, o.warps_n = 1, o.stages = 0;
		return o;
	}
	if (target && target->number >= 90)
		return default_by_tma(o, target);
	o.bk = 64, o.warps_m = 2, o.warps_n = 4;
	if (target && target->smem_per_cta < 192 * 1024)
		o.stages = 3;
	if (target && target->smem_per_cta < 144 * 1024)
		o.bk = 32, o.stages = 4;
	return o;
}

void cptx_gemm_default_(enum cptx_gemm_mma mma, const cptx_target *target, cptx_gemm_opt *opt)
{
	const cptx_gemm_opt o = usual(mma, target);

	if (opt)
		OPTIONS_WRITE(cptx_gemm_opt, opt, &o);
}

/* ---- scale factors ---- */

uint64_t cptx_gemm_scales_bytes(uint64_t rows, uint64_t k, uint32_t vec)
{
	uint64_t down = divide_up(rows, CPTX_SCALE_ROWS), along = vec ? divide_up(k, (uint64_t)vec * CPTX_SCALE_FACTORS) : 0;

	return !along || down <= UINT64_MAX / CPTX_SCALE_BYTES / along ? down * along * CPTX_SCALE_BYTES : UINT64_MAX;
}

void cptx_gemm_scales_pack(uint8_t *to, const uint8_t *from, uint64_t rows, uint64_t k, uint32_t vec)
{
	uint64_t factors = vec ? divide_up(k, vec) : 0, across = divide_up(factors, CPTX_SCALE_FACTORS);
	uint64_t bytes = cptx_gemm_scales_bytes(rows, k, vec);

	if (!to || !from || bytes == UINT64_MAX) /* nobody has such a buffer */
		return;
	memset(to, 0, bytes);
	for (uint64_t r = 0; r < rows; r++)
		for (uint64_t f = 0; f < factors; f++)
			to[(r / CPTX_SCALE_ROWS * across + f / CPTX_SCALE_FACTORS) * CPTX_SCALE_BYTES + r % 32 * 16 +
			   r % CPTX_SCALE_ROWS / 32 * 4 + f % CPTX_SCALE_FACTORS] = from[r * factors + f];
}

void cptx_gemm_pack_weights(uint8_t *to, const uint8_t *codes, uint64_t n, uint64_t k)
{
	for (uint64_t word = 0; to && codes && word < n * (k / 8); word++) {
		uint32_t v = 0;
		for (uint32_t i = 0; i < 8; i++)
			v |= (uint32_t)(codes[8 * word + i] & 15) << (i / 2 * 4 + i % 2 * 16);
		for (uint32_t i = 0; i < 4; i++)
			to[4 * word + i] = (uint8_t)(v >> 8 * i);
	}
}

/* ---- timelines ---- */

cptx_timeline_layout cptx_gemm_timeline(uint32_t grid, uint32_t threads, uint32_t stamps)
{
	static const char *const phases[] = {
		[CPTX_GEMM_WAIT_ROOM] = "wait for room", [CPTX_GEMM_LOAD] = "load",
		[CPTX_GEMM_WAIT_DATA] = "wait for data", [CPTX_GEMM_MULTIPLY] = "multiply",
		[CPTX_GEMM_WAIT_SUMS] = "wait for sums", [CPTX_GEMM_EPILOGUE] = "epilogue",
	};

	return (cptx_timeline_layout){
		.ctas = grid, .warps = threads / 32, .events = stamps, .phases = phases, .phase_count = ARRAY_LEN(phases)
	};
}
