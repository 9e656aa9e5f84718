/* SPDX-License-Identifier: MIT */
/* Whether anybody can still go on. */
#ifndef CPTX_EMU_CORE_STALL_H
#define CPTX_EMU_CORE_STALL_H

#include "emu/core/types.h"

/* Between rounds in which no cluster has changed anything.  True: all warps wait, or go round for ever. */
bool emu_cluster_stalls(emu_cluster *c);
/* Something has changed, here or elsewhere: what was seen before counts no more. */
void emu_cluster_changed(emu_cluster *c);
/* A number for where its groups are and what is in their registers. */
uint64_t emu_warp_state(const emu_warp *w);
void emu_warp_changed(emu_warp *w); /* it read what changes by itself: the clock */

#endif
