/* SPDX-License-Identifier: MIT */
/* What the files of emu/exec share: their decoders, and loops over lanes. */
#ifndef CPTX_EMU_EXEC_EXEC_H
#define CPTX_EMU_EXEC_EXEC_H

#include "emu/core/cluster.h"
#include "emu/core/decode.h"
#include "emu/core/grid.h"

#define EXEC(op, decoder, reads, idle) bool decoder(emu_decoder *d, emu_op *op_);
#define LEFT_OUT(op, why)
#define NO_EFFECT(field, why)
#include "emu/exec/exec.def"
#undef EXEC
#undef LEFT_OUT
#undef NO_EFFECT

/* Whether what orders clusters has to wait for the cluster's turn; and whether an access to that address is such. */
static inline bool emu_wants_turn(const emu_warp *w) { return !w->cluster->turn && w->grid->nclusters > 1; }
static inline bool emu_orders_clusters(const emu_warp *w, const emu_arg *a, uint64_t addr)
{
	return emu_wants_turn(w) &&
	       (a->space == SPACE_GLOBAL || (a->space == SPACE_GENERIC && (addr < WINDOW_SHARED || addr >= FUNC_FIRST)));
}
/* The register of an element of a vector, or the register. */
static inline uint32_t emu_slot_of(const emu_arg *a, unsigned i) { return a->kind == ARG_VEC ? a->slots[i] : a->slot; }
enum emu_step exec_nothing(emu_warp *w, const emu_op *op, uint32_t mask); /* exec/move.c */

/* Registers that are the same or none of the other: a loop over lanes may be done for several lanes at once. */
#if defined __GNUC__ && !defined __clang__
#define LANES_ARE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define LANES_ARE_INDEPENDENT
#endif

/*
 * For each lane of the mask; written so that the compiler makes vector code of the common case, a whole warp.  The statement
 * must not leave the loop.
 */
#define LANES(l, mask, ...)                                                                                                 \
	do {                                                                                                                    \
		if ((mask) == ALL_LANES) {                                                                                          \
			LANES_ARE_INDEPENDENT                                                                                           \
			for (unsigned l = 0; l < WARP; l++) {                                                                           \
				__VA_ARGS__;                                                                                                \
			}                                                                                                               \
		} else {                                                                                                            \
			EACH_LANE(l, mask) {                                                                                            \
				__VA_ARGS__;                                                                                                \
			}                                                                                                               \
		}                                                                                                                   \
	} while (0)

#endif
