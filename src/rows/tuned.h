/* SPDX-License-Identifier: MIT */
/* Row kernels and the tuning database. */
#ifndef CPTX_ROWS_TUNED_H
#define CPTX_ROWS_TUNED_H

#include "kit/runner.h"

#include <cptx/rows.h>

/* The largest power of two that is no more: shapes for about as many rows are the same. */
uint32_t rows_about(uint32_t rows);
/* The best shape that was measured for completed options and about so many rows; false: none is known that fits. */
bool rows_tuned_choose(kit_runner *r, cptx_rows_opt *o, uint32_t rows);

#endif
