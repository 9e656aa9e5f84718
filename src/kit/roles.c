/* SPDX-License-Identifier: MIT */
/* Warp roles. */
#include <cptx/cptx.h>
#include <cptx/roles.h>

#include "base/options.h"
#include "kit/made.h"
#include "kit/value.h"

enum { GROUP = 4 /* warps that setmaxnreg is for */, LEAST_REGS = 24, MOST_REGS = 256, UNIT = 8, LONGEST = 2 /* blocks */ };

/* Whether an instruction has a form on the target; NULL: it has. */
static bool has(const cptx_target *target, enum cptx_op op) { return !target || cptx_form_on_target(op, 0, target); }

void cptx_roles_begin_(cptx_kernel *k, cptx_site at, cptx_roles *r, const cptx_roles_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, r, "roles"))
		return;
	*r = (cptx_roles){ .open = 0 };
	cptx_roles_opt given, *o = &given;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_roles_opt, o, opt, at, k))
		return;
	const uint32_t ctas = o->ctas ? o->ctas : 1;
	const cptx_target *target = o->target ? cptx_target_find(o->target) : NULL;

	if (!o->threads || o->threads % CPTX_WARP || o->threads > CPTX_THREADS_PER_CTA) {
		cptx_fail_(k, at, "roles of %u threads; a CTA has 32 to %d, a multiple of 32", o->threads, CPTX_THREADS_PER_CTA);
		return;
	}
	if (!kit_threads(k, at, "cptx_roles_begin", o->threads, ""))
		return;
	if (ctas > CPTX_REGS_PER_SM / UNIT / o->threads) {
		cptx_fail_(k, at, "roles of %u CTAs of %u threads on an SM; it has %d registers", ctas, o->threads,
		           CPTX_REGS_PER_SM);
		return;
	}
	if (o->target && !target) {
		cptx_fail_(k, at, "roles for target '%s', which does not exist", o->target);
		return;
	}
	r->made = kit_made(k, KIT_cptx_roles);
	r->threads = o->threads;
	r->room = CPTX_REGS_PER_SM / ctas;
	r->regs = MIN(r->room / o->threads, (uint32_t)CPTX_REGS_PER_THREAD) / UNIT * UNIT;
	r->moves = !o->keep_regs && has(target, CPTX_OP_SETMAXNREG);
	r->elects = has(target, CPTX_OP_ELECT_SYNC);
	r->tid = cptx_tid_x(k);
	cptx_val warp = CALL(shr, .a = r->tid, .b = cptx_imm(5));
	r->warp = CALL(shfl_sync, .a = warp, .b = cptx_imm(0), .c = cptx_imm(31), .mask = cptx_imm(-1), .mode = CPTX_IDX);
	r->lane = CALL(and, .a = r->tid, .b = cptx_imm(CPTX_WARP - 1));
}

static bool is_begun(cptx_kernel *k, cptx_site at, const cptx_roles *r) { return KIT_IS_MADE(cptx_roles, k, at, r); }

static bool check_regs(cptx_kernel *k, cptx_site at, const cptx_roles *r, const cptx_role_opt *o)
{
	const uint32_t used = r->used + o->warps * CPTX_WARP * (o->regs ? o->regs : r->regs);

	if (o->regs && (o->regs < LEAST_REGS || o->regs > MOST_REGS || o->regs % UNIT))
		cptx_fail_(k, at, "a role with %u registers a thread; setmaxnreg has %d to %d, a multiple of %d", o->regs,
		           LEAST_REGS, MOST_REGS, UNIT);
	else if (o->regs && !cptx_kernel_fixes_regs(k))
		cptx_fail_(k, at,
		           "a role with registers of its own in a kernel of which ptxas does not know how many it begins with: it "
		           "would ignore setmaxnreg.  Give cptx_kernel_begin both .block and .min_ctas");
	else if (o->regs && (r->next % GROUP || o->warps % GROUP))
		cptx_fail_(k, at,
		           "a role of warps %u to %u with registers of its own; setmaxnreg is for whole warpgroups: begin at a "
		           "multiple of %d warps, and take a multiple of %d",
		           r->next, r->next + o->warps - 1, GROUP, GROUP);
	else if (used > r->room)
		cptx_fail_(
			k, at,
			"a role of %u warps with %u registers a thread: the roles have %u registers then, and a CTA %u; setmaxnreg "
			"would wait for ever",
			o->warps, o->regs ? o->regs : r->regs, used, r->room);
	else
		return true;
	return false;
}

static bool check(cptx_kernel *k, cptx_site at, const cptx_roles *r, const cptx_role_opt *o)
{
	const uint32_t all = r->threads / CPTX_WARP;

	if (r->open)
		cptx_fail_(k, at, "a role inside of another one; roles stand one after another");
	else if (!o->warps)
		cptx_fail_(k, at, "a role of 0 warps; say .warps, 1 on");
	else if (r->next > all || o->warps > all - r->next)
		cptx_fail_(k, at, "a role of %u warps, where %u of %u are left: the CTA has %u threads", o->warps,
		           r->next > all ? 0 : all - r->next, all, r->threads);
	else
		return !r->moves || check_regs(k, at, r, o);
	return false;
}

/* A predicate: the warp is one of the role's. */
static cptx_val is_in(cptx_kernel *k, cptx_site at, const cptx_roles *r)
{
	if (!r->first)
		return CALL(setp, .a = r->warp, .b = cptx_imm(r->warps), .cmp = CPTX_LT);
	if (r->warps == 1)
		return CALL(setp, .a = r->warp, .b = cptx_imm(r->first), .cmp = CPTX_EQ);
	if (r->next == r->threads / CPTX_WARP)
		return CALL(setp, .a = r->warp, .b = cptx_imm(r->first), .cmp = CPTX_GE);
	cptx_val number = CALL(sub, .a = r->warp, .b = cptx_imm(r->first));
	return CALL(setp, .a = number, .b = cptx_imm(r->warps), .cmp = CPTX_LT);
}

/* A predicate of one thread of the role's first warp. */
static cptx_val elected(cptx_kernel *k, cptx_site at, const cptx_roles *r)
{
	cptx_val one, first;

	if (r->elects) {
		one = cptx_regs_(k, at, CPTX_PRED, 1);
		CALL(elect_sync, .mask = cptx_imm(-1), .p = one, .into = cptx_sink());
	} else {
		one = CALL(setp, .a = r->lane, .b = cptx_imm(0), .cmp = CPTX_EQ);
	}
	if (r->warps == 1)
		return one;
	first = CALL(setp, .a = r->warp, .b = cptx_imm(r->first), .cmp = CPTX_EQ);
	return CALL(and, .a = one, .b = first, .type = CPTX_PRED);
}

int cptx_role_begin_(cptx_kernel *k, cptx_site at, cptx_roles *r, const cptx_role_opt *opt)
{
	cptx_role_opt given, *o = &given;

	if (!is_begun(k, at, r) || !IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_role_opt, o, opt, at, k) ||
	    !check(k, at, r, o))
		return 1;
	r->first = r->next, r->warps = o->warps, r->exits = o->exits;
	r->next += o->warps, r->used += o->warps * CPTX_WARP * (o->regs ? o->regs : r->regs);
	cptx_region_begin_(k, at, "CPTX_ROLE");
	cptx_if_begin_(k, at, is_in(k, at, r));
	r->open = 1;
	if (o->regs && r->moves && o->regs != r->regs)
		CALL(setmaxnreg, .n = cptx_imm(o->regs), .op = o->regs > r->regs ? CPTX_INC : CPTX_DEC);
	if (o->elect) {
		cptx_if_begin_(k, at, elected(k, at, r));
		r->open = 2;
	}
	return 1;
}

int cptx_role_end_(cptx_kernel *k, cptx_site at, cptx_roles *r)
{
	if (!is_begun(k, at, r) || !r->open) {
		cptx_fail_(k, at, "the end of a role that did not begin"); /* why: an error before */
		return 0;
	}
	for (; r->open; r->open--) {
		if (r->open == 1 && r->exits)
			CALL(exit, .z_ = 0);
		cptx_block_end_(k, at);
	}
	return cptx_region_end_(k, at);
}

cptx_val cptx_role_number_(cptx_kernel *k, cptx_site at, const cptx_roles *r, bool thread)
{
	if (!is_begun(k, at, r))
		return (cptx_val){ 0 };
	if (!r->open)
		return cptx_fail_(k, at, "the number in a role, where none is open");
	if (!r->first)
		return thread ? r->tid : r->warp;
	return CALL(sub, .a = thread ? r->tid : r->warp, .b = cptx_imm(r->first * (thread ? CPTX_WARP : 1)));
}
