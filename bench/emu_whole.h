/* SPDX-License-Identifier: MIT */
/* Whole kernels on the emulator, each in a process of its own: time and memory. */
#ifndef BENCH_EMU_WHOLE_H
#define BENCH_EMU_WHOLE_H

#include <stdbool.h>

/** False: one of them failed, or took more memory than its bound. */
bool emu_whole(void);

#endif
