/* SPDX-License-Identifier: MIT */
/* Findings: made by clusters that run in parallel, kept by each, and merged into the machine's behind a round, in the order
 * of clusters. */
#ifndef CPTX_EMU_CORE_FINDING_H
#define CPTX_EMU_CORE_FINDING_H

#include "emu/core/code.h"

/*
 * Notes what is wrong, once for each instruction and code: kernel, line, instruction, block and thread, then the text.
 * lane EMU_ALL: the whole warp.  Returns STEP_FAULT: those codes that end a run also end this one.
 */
enum emu_step emu_find(emu_warp *w, const emu_op *op, int lane, enum cptx_finding_code code, const char *format, ...)
	CPTX_PRINTF_(5, 6);
/* Notes what is wrong with a call of the host program. */
void emu_find_host(emu_machine *m, enum cptx_finding_code code, const char *what);
/* Finding i as it is now, which nobody changes; NULL behind the last. */
const cptx_emu_finding *emu_finding_now(emu_machine *m, size_t i);
/* Nobody can go on, or the launch's limit has come: who waits for what (stuck.c). */
void emu_find_deadlock(emu_cluster *c);
void emu_find_limit(emu_cluster *c);
/* A finding if the register is undefined in one of the lanes: "the address", "the predicate" ... */
bool emu_need(emu_warp *w, const emu_op *op, uint32_t slot, uint32_t mask, const char *what);
/* Calls emu_need for each register of an operand, those of an address or of a vector; an operand that is left out has none.
 */
void emu_need_arg(emu_warp *w, const emu_op *op, const emu_arg *a, uint32_t mask, const char *what);

/* One that a cluster has made since the last round. */
typedef struct emu_found {
	struct emu_found *next;
	enum cptx_finding_code code;
	enum cptx_finding_rank rank;
	const emu_op *op;
	uint32_t block[3], thread[3];
	bool has_thread;
	uint64_t count;
	char text[];
} emu_found;

/*
 * As emu_find for a code of CPTX_LENIENT_, with what the manual says behind it.  True: it is a warning, and the instruction
 * does what a GPU does.
 */
bool emu_lenient(emu_warp *w, const emu_op *op, int lane, enum cptx_finding_code code, const char *format, ...)
	CPTX_PRINTF_(5, 6);
/* Whether the cluster has made it already at this instruction in this round: it is counted then, and needs no words. */
bool emu_found_before(emu_warp *w, const emu_op *op, enum cptx_finding_code code);
bool emu_found_merge(emu_machine *m, emu_cluster *c); /* false: memory is short */
void emu_found_free(emu_cluster *c);

void emu_thread_of(const emu_warp *w, unsigned lane, uint32_t out[3]);
/* "st.shared.u32 (kernel.ptx:12)" */
void emu_put_op(buf *b, const emu_grid *g, const emu_op *op);
cptx_site emu_site_of(const emu_program *p, const emu_op *op);

#endif
