/* SPDX-License-Identifier: MIT */
/* An arm of bench_jit where LLVM with its NVPTX back end is there (Debian: llvm-dev). */
#ifndef BENCH_JIT_LLVM_H
#define BENCH_JIT_LLVM_H

#include "jit_trace.h"

/* Builds the trace as LLVM IR and prints it as PTX for sm_80, without passes over the IR; returns the nanoseconds.  *lines
 * gets the lines of the text, which are fewer than the trace's: what nothing uses is gone. */
double llvm_print(const trace *t, size_t *lines);

#endif
