/* SPDX-License-Identifier: MIT */
/* Functions of the system that kernels call: vprintf, malloc, free, __assertfail ... */
#ifndef CPTX_EMU_EXEC_SYSTEM_H
#define CPTX_EMU_EXEC_SYSTEM_H

#include "emu/core/code.h"

emu_fn emu_builtin(const char *name); /* of a function that the system defines, vprintf; NULL */
bool emu_print_out(emu_cluster *c);   /* gives the user what was printed; false: memory is short */

#endif
