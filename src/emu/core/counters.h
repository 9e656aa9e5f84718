/* SPDX-License-Identifier: MIT */
/* Counters of clusters, launches and instructions. */
#ifndef CPTX_EMU_CORE_COUNTERS_H
#define CPTX_EMU_CORE_COUNTERS_H

#include "emu/memory/place.h"

/* Of an operation. */
typedef struct emu_traffic {
	uint64_t wavefronts, conflicts, sectors;
} emu_traffic;

/* Lanes of an instruction have touched `size` bytes each, where they resolved addresses last. */
void emu_traffic_count(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t size, unsigned access);
/* Counts the traffic of a whole warp at elements of `each` bytes, one behind the other (stride: each) or all at one (0). */
void emu_traffic_row(emu_warp *w, const emu_op *op, const emu_place *p, uint32_t each, uint32_t stride, unsigned access);
void emu_counters_add(emu_grid *g, const emu_cluster *c);
bool emu_counters_finish(emu_grid *g); /* the launch's, to the machine's; false: memory is short */

#endif
