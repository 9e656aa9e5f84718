/* SPDX-License-Identifier: MIT */
/* How far apart results may be: approximations have bounds in the manual, all else is the same bit by bit. */
#include "case.h"
#include "emu/num/num.h"

/* What the manual promises of a result: within abs + rel * |it| + ulp units of its last place, for |a| below `below`. */
struct promise {
	unsigned op, type; /* of an element */
	double abs, rel, ulp, below;
};
static const struct promise promises[] = {
	{ CPTX_OP_SIN, CPTX_F32, 0x1.6a09e6p-21, 0, 0, 6.2831853 }, /* 2^-20.5 */
	{ CPTX_OP_SIN, CPTX_F32, 0x1.3b2c48p-15, 0, 0, 314.15926 }, /* 2^-14.7 */
	{ CPTX_OP_COS, CPTX_F32, 0x1.6a09e6p-21, 0, 0, 6.2831853 },
	{ CPTX_OP_COS, CPTX_F32, 0x1.3b2c48p-15, 0, 0, 314.15926 },
	{ CPTX_OP_LG2, CPTX_F32, 0x1p-22, 0x1p-22, 0, INFINITY },
	{ CPTX_OP_EX2, CPTX_F32, 0, 0, 2, INFINITY },
	{ CPTX_OP_EX2, CPTX_F16, 0, 0x1.125fbep-10, 0, INFINITY }, /* 2^-9.9 */
	{ CPTX_OP_EX2, CPTX_BF16, 0, 0x1p-7, 0, INFINITY },
	{ CPTX_OP_TANH, CPTX_F32, 0, 0x1p-11, 0, INFINITY },
	{ CPTX_OP_TANH, CPTX_F16, 0x1.024d12p-11, 0, 0, INFINITY }, /* 2^-10.987 */
	{ CPTX_OP_TANH, CPTX_BF16, 0x1p-8, 0, 0, INFINITY },
	{ CPTX_OP_RCP, CPTX_F32, 0, 0, 1, INFINITY },
	{ CPTX_OP_RCP, CPTX_F64, 0, 0x1p-20, 0, INFINITY }, /* "gross": 20 bits of the mantissa are there */
	{ CPTX_OP_SQRT, CPTX_F32, 0, 0x1p-23, 0, INFINITY },
	{ CPTX_OP_RSQRT, CPTX_F32, 0, 0x1.125fbep-23, 0, INFINITY }, /* 2^-22.9 */
	{ CPTX_OP_RSQRT, CPTX_F64, 0, 0x1p-20, 0, INFINITY },        /* of .ftz; the other has no bound, and is much better */
	{ CPTX_OP_DIV, CPTX_F32, 0, 0, 2, INFINITY },
};

static unsigned mod_named(const plan *p, const char *field)
{
	const arch_form *f = &arch_forms[p->s.form];

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		if (g->kind != GROUP_REPEAT && !strcmp(arch_ops[f->op].field[g->field], field))
			return p->s.mod[i];
	}
	return 0;
}

static bool approximates(const plan *p)
{
	unsigned rnd = mod_named(p, "rnd");

	return rnd == CPTX_APPROX || rnd == CPTX_FULL || strstr(p->opcode, ".approx");
}

/* The promise for an argument; NULL: there is none. */
static const struct promise *promise_for(const plan *p, unsigned type, double a, double b)
{
	unsigned op = arch_forms[p->s.form].op;

	if (op == CPTX_OP_DIV && mod_named(p, "rnd") == CPTX_APPROX && fabs(b) < 0x1p-126)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(promises); i++)
		if (promises[i].op == op && promises[i].type == type && (!(fabs(a) > promises[i].below)))
			return &promises[i];
	return NULL;
}

/* The unit in the last place of a number of the type. */
static double unit(unsigned type, double x)
{
	int man = type == CPTX_F64 ? 52 : type == CPTX_F32 ? 23 : type == CPTX_F16 ? 10 : 7;
	int least = type == CPTX_F64 ? -1022 : type == CPTX_F16 ? -14 : -126, e = x == 0 || !isfinite(x) ? least : ilogb(x);

	return ldexp(1, (e < least ? least : e) - man);
}

static bool near_enough(const struct promise *q, unsigned type, double x, double y, bool ftz)
{
	double least = type == CPTX_F64 ? 0x1p-1022 : type == CPTX_F16 ? 0x1p-14 : 0x1p-126, most = fmax(fabs(x), fabs(y));

	if (isnan(x) || isnan(y))
		return isnan(x) && isnan(y);
	if (isinf(x) || isinf(y))
		return x == y;
	if (ftz && most <= least && (x == 0 || y == 0)) /* rounded up to a normal number, or flushed */
		return true;
	/* Both may round once more. */
	return fabs(x - y) <= q->abs + q->rel * most + (q->ulp + 1) * unit(type, most);
}

static enum verdict_of compare_element(const plan *p, unsigned type, uint64_t a, uint64_t b, uint64_t x, uint64_t y)
{
	const struct promise *q = promise_for(p, type, num_to_f64(type, a), num_to_f64(type, b));

	if (x == y)
		return SAME;
	if (!q)
		return NO_GUARANTEE;
	return near_enough(q, type, num_to_f64(type, x), num_to_f64(type, y), strstr(p->opcode, ".ftz")) ? WITHIN_BOUND
	                                                                                                 : DIFFERENT;
}

enum verdict_of compare(const plan *p, unsigned i, const unsigned char *in, size_t stride, const unsigned char *a,
                        const unsigned char *b)
{
	unsigned bytes = p->out[i].bits < 8 ? 1 : p->out[i].bits / 8;
	struct num_packing pack = num_packing(p->out[i].type);
	enum verdict_of worst = SAME;
	uint64_t x = 0, y = 0, arg[2] = { 0 };

	if (!memcmp(a, b, bytes))
		return SAME;
	if (!approximates(p))
		return DIFFERENT;
	memcpy(&x, a, bytes < 8 ? bytes : 8);
	memcpy(&y, b, bytes < 8 ? bytes : 8);
	memcpy(&arg[0], in, 8);
	if (p->nin > 1)
		memcpy(&arg[1], in + stride, 8);
	for (unsigned e = 0; e < pack.count; e++) {
		unsigned at = e * pack.bits;
		uint64_t mask = UINT64_MAX >> (64 - pack.bits);
		enum verdict_of v =
			compare_element(p, pack.type, arg[0] >> at & mask, arg[1] >> at & mask, x >> at & mask, y >> at & mask);
		worst = v > worst ? v : worst;
	}
	return worst;
}
