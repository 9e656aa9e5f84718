/* SPDX-License-Identifier: MIT */
/*
 * wgmma: products of a warpgroup, four warps, asynchronous.
 *
 * An operation starts when all four warps have come to it, reads shared memory and registers when the seed lets it, in the
 * order of the warpgroup's operations, and writes its accumulators then.  For each warp there is noted what is under way
 * (emu_wgmma): in kernels that have wgmma, every other instruction is looked at before it runs, whether it touches a
 * register that an operation still uses. "Under way" lasts until wgmma.wait_group has said otherwise, however early the
 * operation was done.
 */
#ifndef CPTX_EMU_TENSOR_WGMMA_H
#define CPTX_EMU_TENSOR_WGMMA_H

#include "emu/core/types.h"

void emu_wgmma_free(emu_warp *w);
bool emu_is_wgmma(const emu_op *op); /* it looks itself at what is under way */
/* Before another instruction is executed: whether it touches a register that is in use. */
void emu_wgmma_watch(emu_warp *w, const emu_op *op);

#endif
