/* SPDX-License-Identifier: MIT */
/*
 * The emulator: executes the IR of a module on the CPU.
 *
 * A program is a parsed module with its global variables in memory.  A kernel is decoded once per program (decode.c) into an
 * image: for each function it reaches, an array of emu_op.  A launch (grid.c) makes clusters of CTAs (cluster.c), each warp
 * of which runs groups of lanes that are at the same place (warp.c).  An emu_op carries the function that executes it for a
 * mask of lanes, all modifiers by name, and its operands as places in the registers of a frame.  Those functions stand in
 * emu/exec, and exec.def says which instruction each of them is for.
 *
 * Registers: each has one 32-bit word per lane (64-bit ones two, as uint64_t; .b128 four: 32 low halves, then 32 high ones;
 * predicates one word in all, a bit per lane); 8- and 16-bit values are kept with zeros above.  The word two in front of a
 * register is the mask of the lanes in which it is defined (undefined.h has what is so in part).  Constants and special
 * registers are registers filled beforehand.
 *
 * Time: one step is one instruction of one warp.  What is asynchronous is an emu_async in its cluster's queue, due at a step
 * that the seed chose; the queue is emptied early when nothing else can run.
 *
 * Threads: clusters run in parallel, in rounds, and change nothing common: what they store to global memory gets there
 * behind the round (view.h).  What orders them (atomics, strong and volatile accesses of global memory, fences wider than
 * the cluster) waits for the cluster's turn, one after another behind each round: so a run is the same whatever the number
 * of threads.  Whether anybody can go on at all is looked at there too (stall.c).
 */
#ifndef CPTX_EMU_CORE_TYPES_H
#define CPTX_EMU_CORE_TYPES_H

#include "ir/ir.h"
#include <cptx/emu.h>

enum { WARP = 32, EMU_MAX_WARPS = 32, EMU_MAX_CTAS = 16, EMU_ALL = -1 };
#define ALL_LANES UINT32_C(0xffffffff)
#define EACH_LANE(l, mask)                                                                                                  \
	for (uint32_t l##_left = (mask), l; l##_left && (l = (uint32_t)__builtin_ctz(l##_left), true); l##_left &= l##_left - 1)

typedef struct emu_program emu_program;
typedef struct emu_image emu_image;
typedef struct emu_function emu_function;
typedef struct emu_grid emu_grid;
typedef struct emu_cluster emu_cluster;
typedef struct emu_cta emu_cta;
typedef struct emu_warp emu_warp;
typedef struct emu_op emu_op;
typedef struct emu_async emu_async;
typedef struct emu_machine emu_machine;

#endif
