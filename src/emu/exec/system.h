/* SPDX-License-Identifier: MIT */
/* Functions of the system that kernels call: vprintf, malloc, free, __assertfail ... */
#ifndef CPTX_EMU_EXEC_SYSTEM_H
#define CPTX_EMU_EXEC_SYSTEM_H

#include "emu/core/code.h"
#include "emu/core/grid.h"

emu_fn emu_builtin(const char *name); /* of a function that the system defines, vprintf; NULL */
/* What such a call passes, as number i, and what it gets back. */
uint64_t emu_builtin_argument(const emu_warp *w, const emu_op *op, unsigned i, unsigned lane);
void emu_builtin_result(const emu_warp *w, const emu_op *op, unsigned lane, uint64_t v);
uint64_t emu_heap_new(emu_machine *m, uint64_t size); /* malloc in a kernel; 0: no room */
enum emu_step emu_free_heap(emu_warp *w, const emu_op *op, uint32_t mask);
emu_fn emu_device_runtime(const char *name); /* launch.c: functions of cudadevrt */
/* Launches that kernels of the last grid have made, and theirs; false with an error. */
bool emu_children_run(emu_machine *m, cptx_site at, cptx_error *err);
void emu_children_drop(emu_machine *m); /* without running them */
bool emu_print_out(emu_cluster *c);     /* gives the user what was printed; false: memory is short */

#endif
