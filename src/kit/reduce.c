/* SPDX-License-Identifier: MIT */
/* Reductions and scans: operations, then who takes part. */
#include <cptx/cptx.h>
#include <cptx/reduce.h>

#include "base/options.h"
#include "kit/made.h"
#include "kit/value.h"

enum {
	LANES = 32,
	MOST_WORDS = 16,
	MOST_CLUSTER = 16,
	MOST_BARRIER = 15,
	MBARRIER = 8, /* bytes */
	CALLS = 16,   /* of a cluster before what one sent is overwritten */
	ALL_LANES = -1
};
/* Bits of f32 numbers.  The lowest maximum is -1e38: times log2(e) it is finite, where -FLT_MAX would become NaN. */
static const uint32_t bits_lowest = 0xfe967699, bits_minus_inf = 0xff800000, bits_inf = 0x7f800000,
					  bits_minus_most = 0xff7fffff;

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n && p < 1u << 30)
		p *= 2;
	return p;
}

/* ---- operations ---- */

uint32_t cptx_reduce_parts(enum cptx_reduce_op op)
{
	switch (op) {
	case CPTX_REDUCE_SUM:
	case CPTX_REDUCE_MAX:
	case CPTX_REDUCE_MIN: return 1;
	case CPTX_REDUCE_ARG_MAX:
	case CPTX_REDUCE_ARG_MIN:
	case CPTX_REDUCE_SOFTMAX:
	case CPTX_REDUCE_SOFTMAX2: return 2;
	case CPTX_REDUCE_WELFORD: return 3;
	}
	return 0;
}

static bool check(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op)
{
	const uint32_t parts = cptx_reduce_parts(op);
	const bool is_f32 = v.type == CPTX_F32, only_f32 = op >= CPTX_REDUCE_SOFTMAX;

	if (!parts)
		cptx_fail_(k, at, "there is no reduction %d; see enum cptx_reduce_op", (int)op);
	else if (v.kind != CPTX_VAL_REG || v.offset || !v.count || v.count % parts || v.count > MOST_WORDS)
		cptx_fail_(k, at, "a value of %u registers; this reduction is of %u each, cptx_regs(k, type, %u), and %d at most",
		           v.count, parts, parts, MOST_WORDS);
	else if (!is_f32 && (only_f32 || (v.type != CPTX_S32 && v.type != CPTX_U32)))
		cptx_fail_(k, at, "a reduction of .%s; this one is of .f32%s", cptx_type_name((enum cptx_type)v.type),
		           only_f32 ? "" : ", .s32 or .u32");
	else
		return true;
	return false;
}

/* The value that loses against all others (wins: the largest does not). */
static cptx_val extreme(enum cptx_type type, bool largest)
{
	switch (type) {
	case CPTX_F32: return cptx_f32_bits(largest ? bits_inf : bits_minus_inf);
	case CPTX_S32: return cptx_imm(largest ? INT32_MAX : INT32_MIN);
	default: return cptx_imm(largest ? UINT32_MAX : 0);
	}
}

/* The neutral element of an operation, number `part` of its values. */
static cptx_val nothing(enum cptx_reduce_op op, enum cptx_type type, uint32_t part)
{
	switch (op) {
	case CPTX_REDUCE_MAX: return extreme(type, false);
	case CPTX_REDUCE_MIN: return extreme(type, true);
	case CPTX_REDUCE_ARG_MAX:
	case CPTX_REDUCE_ARG_MIN: return part ? cptx_imm(UINT32_MAX) : extreme(type, op == CPTX_REDUCE_ARG_MIN);
	case CPTX_REDUCE_SOFTMAX:
	case CPTX_REDUCE_SOFTMAX2: return part ? cptx_immf(0) : cptx_f32_bits(bits_lowest);
	default: return type == CPTX_F32 ? cptx_immf(0) : cptx_imm(0);
	}
}

static bool is_softmax(enum cptx_reduce_op op) { return op == CPTX_REDUCE_SOFTMAX || op == CPTX_REDUCE_SOFTMAX2; }
static bool is_arg(enum cptx_reduce_op op) { return op == CPTX_REDUCE_ARG_MAX || op == CPTX_REDUCE_ARG_MIN; }

void cptx_reduce_clear_(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op)
{
	if (!check(k, at, v, op))
		return;
	const uint32_t parts = cptx_reduce_parts(op);

	for (uint32_t i = 0; i < v.count; i++) {
		cptx_val part = cptx_elem(v, i), to = is_arg(op) && i % parts ? cptx_as(part, CPTX_U32) : part;
		CALL(mov, .a = nothing(op, (enum cptx_type)v.type, i % parts), .into = to);
	}
}

static void combine_one(cptx_kernel *k, cptx_site at, enum cptx_reduce_op op, cptx_val v, cptx_val other)
{
	if (op == CPTX_REDUCE_SUM)
		CALL(add, .a = v, .b = other, .into = v);
	else if (op == CPTX_REDUCE_MAX)
		CALL(max, .a = v, .b = other, .into = v);
	else
		CALL(min, .a = v, .b = other, .into = v);
}

static void combine_arg(cptx_kernel *k, cptx_site at, enum cptx_reduce_op op, cptx_val v, cptx_val value, cptx_val index)
{
	cptx_val mine = cptx_elem(v, 0), my_index = cptx_as(cptx_elem(v, 1), CPTX_U32);
	uint16_t wins = op == CPTX_REDUCE_ARG_MAX ? CPTX_GT : CPTX_LT;

	index = cptx_as(index, CPTX_U32);
	cptx_val better = CALL(setp, .a = value, .b = mine, .cmp = wins),
			 equal = CALL(setp, .a = value, .b = mine, .cmp = CPTX_EQ);
	cptx_val earlier = CALL(setp, .a = index, .b = my_index, .cmp = CPTX_LT);
	cptx_val tie = CALL(and, .a = equal, .b = earlier), takes = CALL(or, .a = better, .b = tie);

	CALL(mov, .a = value, .into = mine, .when = takes);
	CALL(mov, .a = index, .into = my_index, .when = takes);
}

/* 2^((v - from) * scale) */
static cptx_val power_above(cptx_kernel *k, cptx_site at, enum cptx_reduce_op op, cptx_val v, cptx_val from)
{
	cptx_val d = CALL(sub, .a = v, .b = from);

	return op == CPTX_REDUCE_SOFTMAX2 ? CALL(ex2, .a = d) : cptx_exp_(k, at, d);
}

static void combine_softmax(cptx_kernel *k, cptx_site at, enum cptx_reduce_op op, cptx_val v, cptx_val other)
{
	cptx_val top = cptx_elem(v, 0), sum = cptx_elem(v, 1), most = CALL(max, .a = top, .b = cptx_elem(other, 0));
	cptx_val mine = power_above(k, at, op, top, most), its = power_above(k, at, op, cptx_elem(other, 0), most);

	CALL(mul, .a = sum, .b = mine, .into = sum);
	CALL(fma, .a = cptx_elem(other, 1), .b = its, .c = sum, .rnd = CPTX_RN, .into = sum);
	CALL(mov, .a = most, .into = top);
}

/* Chan's formulas.  Symmetric, without a contracted sum, so that both lanes of a pair get the same bits. */
static void combine_welford(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val b_mean, cptx_val b_m2, cptx_val b_count)
{
	cptx_val mean = cptx_elem(v, 0), m2 = cptx_elem(v, 1), count = cptx_elem(v, 2);
	cptx_val all = CALL(add, .a = count, .b = b_count), some = CALL(max, .a = all, .b = cptx_immf(1));
	cptx_val part = CALL(rcp, .a = some, .rnd = CPTX_RN), apart = CALL(sub, .a = b_mean, .b = mean);
	/* parts of the mean, not sums: those of large elements would be infinite */
	cptx_val a_part = CALL(mul, .a = mean, .b = CALL(mul, .a = count, .b = part), .rnd = CPTX_RN);
	cptx_val b_part = CALL(mul, .a = b_mean, .b = CALL(mul, .a = b_count, .b = part), .rnd = CPTX_RN);
	cptx_val weight = CALL(mul, .a = CALL(mul, .a = count, .b = b_count), .b = part);
	cptx_val between = CALL(mul, .a = CALL(mul, .a = apart, .b = apart), .b = weight, .rnd = CPTX_RN);
	cptx_val within = CALL(add, .a = m2, .b = b_m2, .rnd = CPTX_RN);

	CALL(add, .a = within, .b = between, .rnd = CPTX_RN, .into = m2);
	CALL(add, .a = a_part, .b = b_part, .rnd = CPTX_RN, .into = mean);
	CALL(mov, .a = all, .into = count);
}

/* Combines one value with another. */
static void combine(cptx_kernel *k, cptx_site at, enum cptx_reduce_op op, cptx_val v, cptx_val other)
{
	if (is_arg(op))
		combine_arg(k, at, op, v, cptx_elem(other, 0), cptx_elem(other, 1));
	else if (is_softmax(op))
		combine_softmax(k, at, op, v, other);
	else if (op == CPTX_REDUCE_WELFORD)
		combine_welford(k, at, v, cptx_elem(other, 0), cptx_elem(other, 1), cptx_elem(other, 2));
	else
		combine_one(k, at, op, v, other);
}

void cptx_reduce_with_(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val other, enum cptx_reduce_op op)
{
	if (!check(k, at, v, op) || !check(k, at, other, op))
		return;
	if (other.count != v.count || other.type != v.type) {
		cptx_fail_(k, at, "values of %u and %u registers (or of two types) cannot be reduced to one", v.count, other.count);
		return;
	}
	const uint32_t parts = cptx_reduce_parts(op);
	for (uint32_t i = 0; i < v.count; i += parts)
		combine(k, at, op, cptx_slice(v, i, parts), cptx_slice(other, i, parts));
}

/* ---- lanes ---- */

static cptx_val shuffled(cptx_kernel *k, cptx_site at, cptx_val v, uint32_t mask)
{
	return CALL(shfl_sync, .a = v, .b = cptx_imm(mask), .c = cptx_imm(31), .mask = cptx_imm(ALL_LANES), .mode = CPTX_BFLY);
}

static void one_over_lanes(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, uint32_t lanes)
{
	if (lanes == LANES && v.type != CPTX_F32) {
		uint16_t mod = op == CPTX_REDUCE_SUM ? CPTX_ADD : op == CPTX_REDUCE_MAX ? CPTX_MAX : CPTX_MIN;
		CALL(redux_sync, .a = v, .mask = cptx_imm(ALL_LANES), .op = mod, .type = v.type, .into = v);
		return;
	}
	for (uint32_t mask = lanes / 2; mask; mask /= 2)
		combine_one(k, at, op, v, shuffled(k, at, v, mask));
}

/* Reduces the maximum first: the sums are then rescaled once, not in each step. */
static void softmax_over_lanes(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, uint32_t lanes)
{
	cptx_val top = cptx_elem(v, 0), sum = cptx_elem(v, 1), own = cptx_var_(k, at, CPTX_F32, top);

	one_over_lanes(k, at, top, CPTX_REDUCE_MAX, lanes);
	CALL(mul, .a = sum, .b = power_above(k, at, op, own, top), .into = sum);
	one_over_lanes(k, at, sum, CPTX_REDUCE_SUM, lanes);
}

static void over_lanes(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, uint32_t lanes)
{
	const uint32_t parts = cptx_reduce_parts(op);
	cptx_val other[3] = { { 0 } };

	if (lanes == 1)
		return;
	if (parts == 1) {
		one_over_lanes(k, at, v, op, lanes);
		return;
	}
	if (is_softmax(op)) {
		softmax_over_lanes(k, at, v, op, lanes);
		return;
	}
	for (uint32_t mask = lanes / 2; mask; mask /= 2) {
		for (uint32_t p = 0; p < parts; p++)
			other[p] = shuffled(k, at, cptx_elem(v, p), mask);
		if (is_arg(op))
			combine_arg(k, at, op, v, other[0], other[1]);
		else
			combine_welford(k, at, v, other[0], other[1], other[2]);
	}
}

void cptx_reduce_lanes_(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, uint32_t lanes)
{
	if (!check(k, at, v, op))
		return;
	if (!lanes || lanes > LANES || lanes & (lanes - 1)) {
		cptx_fail_(k, at, "a reduction over %u lanes; it is over 1, 2, 4, 8, 16 or 32", lanes);
		return;
	}
	const uint32_t parts = cptx_reduce_parts(op);
	for (uint32_t i = 0; i < v.count; i += parts)
		over_lanes(k, at, cptx_slice(v, i, parts), op, lanes);
}

/* ---- a group of warps ---- */

static uint32_t warps_of(const cptx_reduce *r) { return r->opt.threads / LANES; }

static bool check_group(cptx_kernel *k, cptx_site at, const cptx_reduce_opt *o)
{
	if (!o->threads || o->threads % LANES || o->threads > CPTX_THREADS_PER_CTA)
		cptx_fail_(k, at, "a reduction over %u threads; say .threads, a multiple of 32 up to %d", o->threads,
		           CPTX_THREADS_PER_CTA);
	else if (o->barrier > MOST_BARRIER)
		cptx_fail_(k, at, "barrier %u; there are 0 to %d", o->barrier, MOST_BARRIER);
	else if (o->cluster == 1 || o->cluster > MOST_CLUSTER)
		cptx_fail_(k, at, "a reduction over a cluster of %u CTAs; it has 2 to %d (0: none)", o->cluster, MOST_CLUSTER);
	else if (o->words > MOST_WORDS)
		cptx_fail_(k, at, "values of %u words; they have at most %d", o->words, MOST_WORDS);
	else
		return KIT_OPTION("cptx_reduce_new", o, thread, KIT_U32 | KIT_NONE) && KIT_THREADS("cptx_reduce_new", o);
	return false;
}

/* Initializes the cluster's mbarriers and lets all know: one of each call (the announcement), and of both halves of the
 * calls the empty ones (an arrival of each CTA). */
static void prepare_cluster(cptx_kernel *k, cptx_site at, cptx_reduce *r)
{
	const uint32_t bytes = CALLS * power_of_two(r->opt.cluster) * r->slot;

	r->rank = cptx_sreg_(k, at, CPTX_SREG_CLUSTER_CTARANK);
	r->slots = CALL(mov, .a = cptx_shared_(k, at, CPTX_B8, bytes, 16, NULL), .type = CPTX_U32);
	r->barriers = CALL(mov, .a = cptx_shared_(k, at, CPTX_B64, CALLS + 2, 16, NULL), .type = CPTX_U32);
	r->calls = cptx_var_(k, at, CPTX_U32, cptx_imm(0));
	cptx_if_begin_(k, at, CALL(setp, .a = r->thread, .b = cptx_imm(0), .cmp = CPTX_EQ));
	for (uint32_t i = 0; i < CALLS + 2; i++)
		CALL(mbarrier_init, .a = cptx_offset(r->barriers, i * MBARRIER), .count = cptx_imm(i < CALLS ? 1 : r->opt.cluster),
		     .space = CPTX_SHARED);
	CALL(fence_mbarrier_init, .z_ = 0);
	cptx_block_end_(k, at);
	CALL(barrier_cluster_arrive, .aligned = true);
	CALL(barrier_cluster_wait, .aligned = true);
}

void cptx_reduce_new_(cptx_kernel *k, cptx_site at, cptx_reduce *r, const cptx_reduce_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, r, "reduction"))
		return;
	*r = (cptx_reduce){ .slot = 0 };
	cptx_reduce_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_reduce_opt, &o, opt, at, k) ||
	    !check_group(k, at, &o))
		return;
	opt = &o;
	r->opt = o;
	r->opt.words = opt->words ? opt->words : 4;
	r->slot = 4 * power_of_two(r->opt.words);
	r->half = power_of_two(warps_of(r)) * r->slot;
	r->thread = opt->thread.kind == CPTX_VAL_NONE ? cptx_sreg_(k, at, CPTX_SREG_TID_X) : opt->thread;
	r->lane = CALL(and, .a = r->thread, .b = cptx_imm(LANES - 1));
	r->warp = CALL(shr, .a = r->thread, .b = cptx_imm(5));
	r->at = cptx_var_(k, at, CPTX_U32, cptx_shared_(k, at, CPTX_B8, 2 * r->half, MAX(16, 2 * r->half), NULL));
	if (opt->cluster)
		prepare_cluster(k, at, r);
	r->made = kit_made(k, KIT_cptx_reduce);
}

static bool is_made(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op)
{
	if (!KIT_IS_MADE(cptx_reduce, k, at, r) || !check(k, at, v, op))
		return false;
	if (v.count > r->opt.words)
		cptx_fail_(k, at, "a value of %u registers; the reduction has room for %u: say .words", v.count, r->opt.words);
	else
		return true;
	return false;
}

static void meet(cptx_kernel *k, cptx_site at, const cptx_reduce *r)
{
	if (r->opt.thread.kind == CPTX_VAL_NONE && !r->opt.barrier)
		CALL(bar_sync, .a = cptx_imm(0));
	else
		CALL(bar_sync, .a = cptx_imm(r->opt.barrier), .b = cptx_imm(r->opt.threads));
}

/* The other half is for the next call: who writes this one again has passed the next call's barrier, behind all reads. */
static void turn(cptx_kernel *k, cptx_site at, const cptx_reduce *r)
{
	CALL(xor, .a = r->at, .b = cptx_imm(r->half), .into = r->at);
}

/* Registers of v in vectors: how many from number i on. */
static uint32_t vector_at(cptx_val v, uint32_t i) { return v.count - i >= 4 ? 4 : v.count - i >= 2 ? 2 : 1; }

static void store(cptx_kernel *k, cptx_site at, cptx_val to, cptx_val v, enum cptx_mod space, cptx_val when)
{
	for (uint32_t i = 0, n; i < v.count; i += n) {
		n = vector_at(v, i);
		CALL(st, .a = cptx_offset(to, i * 4), .b = cptx_slice(v, i, n), .space = space, .when = when);
	}
}

static void load(cptx_kernel *k, cptx_site at, cptx_val from, cptx_val v, enum cptx_mod space, cptx_val when)
{
	for (uint32_t i = 0, n; i < v.count; i += n) {
		n = vector_at(v, i);
		CALL(ld, .a = cptx_offset(from, i * 4), .space = space, .into = cptx_slice(v, i, n), .when = when);
	}
}

/* v of each lane: value lane % p2 of n that lie at `from`; p2: n, rounded up to a power of two. */
static void gather(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op, cptx_val from,
                   uint32_t n)
{
	const uint32_t p2 = power_of_two(n);
	cptx_val i = CALL(and, .a = r->lane, .b = cptx_imm(p2 - 1)), is_one = { 0 };

	if (p2 != n) {
		cptx_reduce_clear_(k, at, v, op);
		for (uint32_t part = 0; is_softmax(op) && part < v.count; part += 2) /* below the lowest maximum of others, too */
			CALL(mov, .a = cptx_f32_bits(bits_minus_most), .into = cptx_elem(v, part));
		is_one = CALL(setp, .a = i, .b = cptx_imm(n), .cmp = CPTX_LT);
	}
	load(k, at, CALL(mad, .a = i, .b = cptx_imm(r->slot), .c = from, .mode = CPTX_LO), v, CPTX_SHARED, is_one);
}

/* Combines the values of all warps, in all lanes. */
static void exchange(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op, uint32_t lane)
{
	cptx_val mine = CALL(mad, .a = r->warp, .b = cptx_imm(r->slot), .c = r->at, .mode = CPTX_LO);

	store(k, at, mine, v, CPTX_SHARED, CALL(setp, .a = r->lane, .b = cptx_imm(lane), .cmp = CPTX_EQ));
	meet(k, at, r);
	gather(k, at, r, v, op, r->at, warps_of(r));
	turn(k, at, r);
}

void cptx_reduce_cta_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op)
{
	if (!is_made(k, at, r, v, op))
		return;
	cptx_reduce_lanes_(k, at, v, op, LANES);
	if (warps_of(r) == 1)
		return;
	exchange(k, at, r, v, op, 0);
	cptx_reduce_lanes_(k, at, v, op, power_of_two(warps_of(r)));
}

/* ---- a cluster ---- */

/* A call's place among the last ones: its slots, its barrier and the parity of that. */
typedef struct call_place {
	cptx_val slots, barrier, parity;
} call_place;

static call_place place_of(cptx_kernel *k, cptx_site at, const cptx_reduce *r)
{
	const uint32_t bytes = power_of_two(r->opt.cluster) * r->slot;
	cptx_val i = CALL(and, .a = r->calls, .b = cptx_imm(CALLS - 1)), again = CALL(shr, .a = r->calls, .b = cptx_imm(4));
	call_place p = { .parity = CALL(and, .a = again, .b = cptx_imm(1)) };

	_Static_assert(CALLS == 1 << 4, "the shift is by its logarithm");
	p.slots = CALL(mad, .a = i, .b = cptx_imm(bytes), .c = r->slots, .mode = CPTX_LO);
	p.barrier = CALL(mad, .a = i, .b = cptx_imm(MBARRIER), .c = r->barriers, .mode = CPTX_LO);
	return p;
}

static void wait_for(cptx_kernel *k, cptx_site at, cptx_val barrier, cptx_val parity)
{
	cptx_wait_begin_(k, at);
	cptx_wait_end_(k, at, CPTX_WAIT_DONE,
	               CALL(mbarrier_try_wait_parity, .a = barrier, .parity = parity, .sem = CPTX_ACQUIRE, .scope = CPTX_CLUSTER,
	                    .space = CPTX_SHARED_CTA));
}

static cptx_val there(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val here)
{
	return CALL(mapa, .a = here, .b = r->thread, .space = CPTX_SHARED_CLUSTER, .type = CPTX_U32);
}

/*
 * At the first call of a half of the last CALLS: thread i tells CTA i that this CTA has read the half before, which all
 * threads have done in front of the barrier of cptx_reduce_cta, and waits until all have read this one, some calls ago.  To
 * tell it is a release, for which the thread waits until all of its stores are done: too long to do it in each call.
 */
static void change_halves(cptx_kernel *k, cptx_site at, const cptx_reduce *r)
{
	enum { HALF = CALLS / 2, LOG = 3 };
	_Static_assert(HALF == 1 << LOG, "the shift is by its logarithm");
	cptx_val in_half = CALL(and, .a = r->calls, .b = cptx_imm(HALF - 1)),
			 half = CALL(shr, .a = r->calls, .b = cptx_imm(LOG));
	cptx_val empty = CALL(add, .a = r->barriers, .b = cptx_imm(CALLS * MBARRIER)),
			 odd = CALL(and, .a = half, .b = cptx_imm(1));
	cptx_val first = CALL(setp, .a = in_half, .b = cptx_imm(0), .cmp = CPTX_EQ);

	cptx_if_begin_(k, at, first);
	cptx_val this_half = CALL(mad, .a = odd, .b = cptx_imm(MBARRIER), .c = empty, .mode = CPTX_LO);
	cptx_val other = CALL(xor, .a = odd, .b = cptx_imm(1));
	cptx_val before = CALL(mad, .a = other, .b = cptx_imm(MBARRIER), .c = empty, .mode = CPTX_LO);
	CALL(mbarrier_arrive, .a = there(k, at, r, before), .into = cptx_sink(), .sem = CPTX_RELEASE, .scope = CPTX_CLUSTER,
	     .space = CPTX_SHARED_CLUSTER, .when = CALL(setp, .a = r->calls, .b = cptx_imm(0), .cmp = CPTX_NE));
	/* a fresh barrier has completed the phase before the first, of parity 1: the first two halves do not wait */
	cptx_val turn = CALL(and, .a = CALL(shr, .a = half, .b = cptx_imm(1)), .b = cptx_imm(1));
	wait_for(k, at, this_half, CALL(xor, .a = turn, .b = cptx_imm(1)));
	cptx_block_end_(k, at);
}

/* Thread i sends v to CTA i; thread 0 announces what this CTA gets. */
static void send(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, const call_place *p)
{
	const uint32_t n = r->opt.cluster;
	cptx_val mine = CALL(mad, .a = r->rank, .b = cptx_imm(r->slot), .c = p->slots, .mode = CPTX_LO);

	cptx_if_begin_(k, at, CALL(setp, .a = r->thread, .b = cptx_imm(n), .cmp = CPTX_LT));
	CALL(mbarrier_arrive_expect_tx, .a = p->barrier, .tx = cptx_imm(n * v.count * 4), .into = cptx_sink(),
	     .space = CPTX_SHARED_CTA, .when = CALL(setp, .a = r->thread, .b = cptx_imm(0), .cmp = CPTX_EQ));
	change_halves(k, at, r);
	cptx_val its_slot = there(k, at, r, mine), its_barrier = there(k, at, r, p->barrier);
	for (uint32_t i = 0; i < v.count; i++)
		CALL(st_async, .a = cptx_offset(its_slot, i * 4), .b = cptx_elem(v, i), .mbar = its_barrier,
		     .space = CPTX_SHARED_CLUSTER, .type = v.type);
	cptx_block_end_(k, at);
}

void cptx_reduce_cluster_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op)
{
	if (!is_made(k, at, r, v, op))
		return;
	if (r->calls.kind != CPTX_VAL_REG || !r->opt.cluster) {
		cptx_fail_(k, at, "a reduction over a cluster that was made without .cluster, the number of its CTAs");
		return;
	}
	if (warps_of(r) == 1) /* lanes have read the half of the call before */
		CALL(bar_warp_sync, .mask = cptx_imm(0xffffffffu));
	cptx_reduce_cta_(k, at, r, v, op);
	const call_place p = place_of(k, at, r);
	send(k, at, r, v, &p);
	CALL(add, .a = r->calls, .b = cptx_imm(1), .into = r->calls);
	wait_for(k, at, p.barrier, p.parity);
	gather(k, at, r, v, op, p.slots, r->opt.cluster);
	cptx_reduce_lanes_(k, at, v, op, power_of_two(r->opt.cluster));
}

/* ---- the grid ---- */

/* Thread 0 leaves the CTA's value and counts; all threads learn whether theirs is the last CTA. */
static cptx_val is_last(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, cptx_val workspace, cptx_val values)
{
	cptx_val cta = cptx_sreg_(k, at, CPTX_SREG_CTAID_X), ctas = cptx_sreg_(k, at, CPTX_SREG_NCTAID_X);
	cptx_val first = CALL(setp, .a = r->thread, .b = cptx_imm(0), .cmp = CPTX_EQ);
	cptx_val last = CALL(sub, .a = ctas, .b = cptx_imm(1)), before = cptx_var_(k, at, CPTX_U32, cptx_imm(0));

	store(k, at, CALL(mad_wide, .a = cta, .b = cptx_imm(r->slot), .c = values), v, CPTX_GLOBAL, first);
	/* it wraps: the last one makes it 0 again */
	CALL(atom, .a = workspace, .b = last, .op = CPTX_INC, .sem = CPTX_ACQ_REL, .scope = CPTX_GPU, .space = CPTX_GLOBAL,
	     .type = CPTX_U32, .into = before, .when = first);
	CALL(st, .a = r->at, .b = before, .space = CPTX_SHARED, .when = first);
	meet(k, at, r);
	before = CALL(ld, .a = r->at, .space = CPTX_SHARED, .type = CPTX_U32);
	turn(k, at, r);
	return CALL(setp, .a = before, .b = last, .cmp = CPTX_EQ);
}

cptx_val cptx_reduce_grid_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op,
                           cptx_val workspace)
{
	if (!is_made(k, at, r, v, op) || !kit_value(k, at, "cptx_reduce_grid", "the workspace", workspace, KIT_U64))
		return (cptx_val){ 0 };
	cptx_reduce_cta_(k, at, r, v, op);
	cptx_val values = CALL(add, .a = workspace, .b = cptx_imm(16)), last = is_last(k, at, r, v, workspace, values);

	cptx_if_begin_(k, at, last);
	cptx_val ctas = cptx_sreg_(k, at, CPTX_SREG_NCTAID_X), i = cptx_var_(k, at, CPTX_U32, r->thread);
	cptx_val other = cptx_regs_(k, at, (enum cptx_type)v.type, v.count);
	cptx_reduce_clear_(k, at, v, op);
	cptx_for_begin_(k, at, i, ctas, cptx_imm(r->opt.threads));
	load(k, at, CALL(mad_wide, .a = i, .b = cptx_imm(r->slot), .c = values), other, CPTX_GLOBAL, (cptx_val){ 0 });
	cptx_reduce_with_(k, at, v, other, op);
	cptx_block_end_(k, at);
	cptx_reduce_cta_(k, at, r, v, op);
	cptx_block_end_(k, at);
	return last;
}

/* ---- scans ---- */

static bool check_scan(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op)
{
	if (!check(k, at, v, op))
		return false;
	if (cptx_reduce_parts(op) == 1)
		return true;
	cptx_fail_(k, at, "a scan is of CPTX_REDUCE_SUM, MAX or MIN");
	return false;
}

/* The value of lane - by; p: there is one. */
static cptx_val from_before(cptx_kernel *k, cptx_site at, cptx_val v, uint32_t by, cptx_val p)
{
	return CALL(shfl_sync, .a = v, .b = cptx_imm(by), .c = cptx_imm(0), .mask = cptx_imm(ALL_LANES), .mode = CPTX_UP,
	            .p = p);
}

static void scan_lanes(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, uint32_t lanes)
{
	cptx_val p = cptx_regs_(k, at, CPTX_PRED, 1);

	for (uint32_t by = 1; by < lanes; by *= 2) {
		cptx_val other = from_before(k, at, v, by, p);
		if (op == CPTX_REDUCE_SUM)
			CALL(add, .a = other, .b = v, .into = v, .when = p);
		else if (op == CPTX_REDUCE_MAX)
			CALL(max, .a = other, .b = v, .into = v, .when = p);
		else
			CALL(min, .a = other, .b = v, .into = v, .when = p);
	}
}

/* Makes an inclusive scan exclusive: the value of the lane before. */
static void shift(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op)
{
	cptx_val p = cptx_regs_(k, at, CPTX_PRED, 1), before = from_before(k, at, v, 1, p);

	CALL(selp, .a = before, .b = nothing(op, (enum cptx_type)v.type, 0), .c = p, .type = v.type, .into = v);
}

void cptx_scan_warp_(cptx_kernel *k, cptx_site at, cptx_val v, enum cptx_reduce_op op, bool exclusive)
{
	for (uint32_t i = 0; check_scan(k, at, v, op) && i < v.count; i++) {
		scan_lanes(k, at, cptx_elem(v, i), op, LANES);
		if (exclusive)
			shift(k, at, cptx_elem(v, i), op);
	}
}

static cptx_val of_lane(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val lane)
{
	return CALL(shfl_sync, .a = v, .b = lane, .c = cptx_imm(31), .mask = cptx_imm(ALL_LANES), .mode = CPTX_IDX);
}

cptx_val cptx_scan_cta_(cptx_kernel *k, cptx_site at, const cptx_reduce *r, cptx_val v, enum cptx_reduce_op op,
                        bool exclusive)
{
	if (!is_made(k, at, r, v, op) || !check_scan(k, at, v, op))
		return (cptx_val){ 0 };
	const uint32_t warps = warps_of(r);
	cptx_val total = cptx_regs_(k, at, (enum cptx_type)v.type, v.count), parts = total;

	for (uint32_t i = 0; i < v.count; i++) {
		scan_lanes(k, at, cptx_elem(v, i), op, LANES);
		CALL(mov, .a = cptx_elem(v, i), .into = cptx_elem(parts, i));
		if (exclusive)
			shift(k, at, cptx_elem(v, i), op);
	}
	if (warps > 1)
		exchange(k, at, r, parts, op, LANES - 1);
	cptx_val before = CALL(sub, .a = r->warp, .b = cptx_imm(1)),
			 is_later = CALL(setp, .a = r->warp, .b = cptx_imm(0), .cmp = CPTX_GT);
	for (uint32_t i = 0; i < v.count; i++) {
		cptx_val part = cptx_elem(parts, i), one = cptx_elem(v, i);
		if (warps > 1) {
			scan_lanes(k, at, part, op, power_of_two(warps));
			cptx_val front = of_lane(k, at, part, before);
			front = CALL(selp, .a = front, .b = nothing(op, (enum cptx_type)v.type, 0), .c = is_later, .type = v.type);
			combine_one(k, at, op, one, front);
		}
		cptx_val all = of_lane(k, at, part, cptx_imm(warps > 1 ? warps - 1 : LANES - 1));
		CALL(mov, .a = all, .into = part);
	}
	return total;
}
