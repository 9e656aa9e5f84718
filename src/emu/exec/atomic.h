/* SPDX-License-Identifier: MIT */
/* What atomic operations make of memory: for those of threads, and for asynchronous ones. */
#ifndef CPTX_EMU_EXEC_ATOMIC_H
#define CPTX_EMU_EXEC_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* op: CPTX_ADD ... CPTX_EXCH; up to 64 bits. */
uint64_t emu_atomic(unsigned op, unsigned type, uint64_t old, uint64_t b, bool ftz);

#endif
