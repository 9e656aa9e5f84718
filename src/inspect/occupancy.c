/* SPDX-License-Identifier: MIT */
/*
 * Occupancy.  Registers are allocated to warps in units, within one of the four partitions of a multiprocessor; shared
 * memory to CTAs in units, with what the system keeps for each.  CUDA programming guide, "Technical Specifications"; units:
 * target.def.
 */
#include "base/options.h"
#include "inspect/remark.h"

static const char *const names[] = { "nothing", "CTAs", "threads", "registers", "shared memory", "barriers" };

const char *cptx_limit_name(enum cptx_limit limit) { return (unsigned)limit < ARRAY_LEN(names) ? names[limit] : "?"; }

static uint32_t round_to_unit(uint32_t n, uint32_t unit) { return (n + unit - 1) / unit * unit; }

bool cptx_occupancy_of_(const cptx_target *t, uint32_t registers, uint32_t smem, uint32_t threads, cptx_occupancy *out,
                        size_t size)
{
	cptx_occupancy o = { 0 };

	if (!out)
		return false;
	RESULT_FILL(out, size, &o);
	if (!t || !t->smem_unit || !threads || threads > CPTX_THREADS_PER_CTA || registers > CPTX_REGS_PER_THREAD + 1 ||
	    smem > INT32_MAX)
		return false;
	uint32_t warps = round_to_unit(threads, CPTX_WARP) / CPTX_WARP,
			 per_warp = round_to_unit(MAX(registers, 1u) * CPTX_WARP, CPTX_REGS_UNIT);
	uint32_t part_warps = CPTX_REGS_PER_SM / CPTX_SM_PARTS / per_warp;
	o.most_warps = t->threads_per_sm / CPTX_WARP;
	o.cta_registers = per_warp * warps;
	o.cta_smem = round_to_unit(smem + t->smem_reserved, t->smem_unit);
	o.by_ctas = t->ctas_per_sm;
	o.by_threads = o.most_warps / warps;
	o.by_registers = part_warps * CPTX_SM_PARTS / warps;
	o.by_smem = smem > t->smem_per_cta ? 0 : o.cta_smem ? t->smem_per_sm / o.cta_smem : o.by_ctas;
	o.ctas = MIN(MIN(o.by_ctas, o.by_threads), MIN(o.by_registers, o.by_smem));
	o.limit = o.ctas == o.by_smem && o.cta_smem ? CPTX_LIMIT_SMEM
	          : o.ctas == o.by_registers        ? CPTX_LIMIT_REGISTERS
	          : o.ctas == o.by_threads          ? CPTX_LIMIT_THREADS
	                                            : CPTX_LIMIT_CTAS;
	o.warps = o.ctas * warps;
	RESULT_FILL(out, size, &o);
	return true;
}
