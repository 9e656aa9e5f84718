/* SPDX-License-Identifier: MIT */
/* Barriers of CTAs and clusters. */
#ifndef CPTX_EMU_EXEC_BARRIER_H
#define CPTX_EMU_EXEC_BARRIER_H

#include "emu/core/cluster.h"

void emu_barriers_free(emu_barrier *b, size_t n);
void emu_barrier_exit(emu_warp *w); /* all its lanes have exited: barriers may be complete now */
void emu_describe_wait(buf *b, const emu_warp *w, const emu_waiting *x); /* for the report of a deadlock */

#endif
