/* SPDX-License-Identifier: MIT */
/*
 * The timeline of a launch: when warps ran and what they waited for, when asynchronous operations were under way.
 *
 * Time is c->step - c->idle, so one instruction of one warp of the cluster; clusters that start when others are over begin
 * where the last of those ended.  Spans stand with their cluster until the round is over, and are given to the
 * user by the thread that launched, cluster after cluster: the same seed gives the same timeline.
 */
#ifndef CPTX_EMU_CORE_TRACE_H
#define CPTX_EMU_CORE_TRACE_H

#include "emu/core/types.h"

bool emu_trace_init(emu_cluster *c, uint64_t base); /* its time begins there; nothing, if nobody looks.  False: no memory */
uint64_t emu_trace_now(const emu_cluster *c);       /* 0: nobody looks */
void emu_trace_free(emu_cluster *c);
void emu_trace_warp(emu_cluster *c, const emu_warp *w, uint64_t before); /* it has had its turn, from this step on */
void emu_trace_begin(const emu_cluster *c, emu_async *a);
bool emu_trace_run(emu_cluster *c, emu_async *a); /* a->run, watched */
void emu_trace_cut(emu_cluster *c);               /* it is over before its end: what goes on ends now */
bool emu_trace_out(emu_cluster *c);               /* to the user; false: memory was short */

#endif
