/* SPDX-License-Identifier: MIT */
/* What mma.c and acc.c share. */
#ifndef KIT_MMA_H
#define KIT_MMA_H

#include <cptx/mma.h>
#include <cptx/tmem.h>

#include "base/base.h"

/* Threads of a unit. */
uint32_t kit_unit_threads(enum cptx_mma_by by);
/* False, with an error, for what the calls did not make. */
bool kit_mma_is_made(cptx_kernel *k, cptx_site at, const cptx_tiled_mma *mma);
bool kit_acc_is_made(cptx_kernel *k, cptx_site at, const cptx_acc *acc);
/* An address for arithmetic: an offset that it carries (cptx_offset) is added. */
cptx_val kit_plain(cptx_kernel *k, cptx_site at, cptx_val address);
/* Fills in the rows of one instruction's D that a thread has elements of, ascending, and how many all of D has. */
void kit_acc_find_rows(cptx_acc *acc);
/* The number of the element in that row and column from the thread's first on; UINT32_MAX: the thread has none there. */
uint32_t kit_acc_number(const cptx_acc *acc, uint32_t row, uint32_t col);

#endif
