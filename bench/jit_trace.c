/* SPDX-License-Identifier: MIT */
/* Traces, and the printer that bench_jit holds cptx against. */
#include "jit_trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- traces ---- */

static uint32_t roll(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % n);
}

/* The variables of a type so far. */
typedef struct pile {
	uint32_t *var, n;
} pile;

typedef struct maker {
	trace t;
	pile of[TRACE_TYPES];
	uint64_t dice;
	bool unrolled;
	unsigned turn;
} maker;

static const uint8_t result_of[TRACE_OPS] = {
	[U32_ADD] = TYPE_U32,     [U32_ADD_IMM] = TYPE_U32, [U32_AND] = TYPE_U32,    [U32_MAD] = TYPE_U32,
	[U64_ELEMENT] = TYPE_U64, [U64_ADDRESS] = TYPE_U64, [F32_LOAD] = TYPE_F32,   [F32_CVT] = TYPE_F32,
	[F32_IMM] = TYPE_F32,     [F32_ADD] = TYPE_F32,     [F32_MUL] = TYPE_F32,    [F32_FMA] = TYPE_F32,
	[F32_EX2] = TYPE_F32,     [F32_SELECT] = TYPE_F32,  [PRED_LESS] = TYPE_PRED,
};

static void add_step(maker *m, unsigned op, uint32_t a, uint32_t b, uint32_t c)
{
	trace_step *s = &m->t.step[m->t.n];
	unsigned type = result_of[op];

	*s = (trace_step){ .op = (uint8_t)op, .type = (uint8_t)type, .a = a, .b = b, .c = c };
	if (type) {
		s->reg = ++m->t.regs[type];
		m->of[type].var[m->of[type].n++] = (uint32_t)m->t.n;
	}
	m->t.n++;
}

/* One of the latest 40 variables of a type, as expressions mostly use what was just computed. */
static uint32_t any(maker *m, unsigned type)
{
	const pile *p = &m->of[type];
	uint32_t back = p->n < 40 ? p->n : 40;

	return p->var[p->n - 1 - roll(&m->dice, back)];
}

static void add_random(maker *m)
{
	static const uint8_t mix[] = { U32_ADD, U32_ADD_IMM, U32_AND,   U32_MAD,  F32_CVT, F32_IMM, F32_ADD,
		                           F32_ADD, F32_MUL,     F32_MUL,   F32_FMA,  F32_FMA, F32_FMA, F32_FMA,
		                           F32_EX2, F32_SELECT,  PRED_LESS, F32_LOAD, STORE };
	unsigned op = mix[m->unrolled ? m->turn++ % sizeof mix : roll(&m->dice, sizeof mix)];
	unsigned of = op <= U32_MAD || op == F32_CVT ? TYPE_U32 : TYPE_F32;

	if (op == F32_LOAD || op == STORE) {
		add_step(m, U64_ELEMENT, any(m, TYPE_U32), 0, 0);
		add_step(m, U64_ADDRESS, (uint32_t)m->t.n - 1, 0, 0);
		add_step(m, op, (uint32_t)m->t.n - 1, op == STORE ? any(m, TYPE_F32) : 0, 0);
		return;
	}
	uint32_t a = any(m, of), b = any(m, of), c = any(m, op == F32_SELECT ? TYPE_PRED : of);
	if (op == U32_ADD_IMM || op == F32_IMM)
		b = roll(&m->dice, TRACE_NUMBERS);
	add_step(m, op, a, b, c);
}

trace trace_make(size_t n, bool unrolled)
{
	maker m = { .dice = n, .unrolled = unrolled };

	m.t.step = calloc(n + 16, sizeof *m.t.step);
	for (unsigned i = 0; i < TRACE_TYPES; i++)
		m.of[i].var = calloc(n + 16, sizeof(uint32_t));
	m.t.step[VAR_POINTER] = (trace_step){ .type = TYPE_U64, .reg = 1 };
	m.t.step[VAR_SIZE] = (trace_step){ .type = TYPE_U32, .reg = 1 };
	m.t.step[VAR_TID] = (trace_step){ .type = TYPE_U32, .reg = 2 };
	m.t.n = TRACE_FIRST;
	m.t.regs[TYPE_U64] = 1, m.t.regs[TYPE_U32] = 2;
	m.of[TYPE_U32].n = 2, m.of[TYPE_U32].var[0] = VAR_SIZE, m.of[TYPE_U32].var[1] = VAR_TID;
	add_step(&m, F32_CVT, VAR_TID, 0, 0);
	add_step(&m, PRED_LESS, (uint32_t)m.t.n - 1, (uint32_t)m.t.n - 1, 0);
	while (m.t.n + 2 < n) /* the parameters take 4 instructions, their variables and %tid.x 3 places; the end is a ret */
		add_random(&m);
	for (unsigned i = 0; i < TRACE_TYPES; i++)
		free(m.of[i].var);
	return m.t;
}

void trace_free(trace *t) { free(t->step); }

/* ---- the printer ---- */

static char *put_text(char *p, const char *s, size_t n)
{
	memcpy(p, s, n);
	return p + n;
}
#define PUT(p, literal) put_text((p), "" literal, sizeof(literal) - 1)

static char *put_number(char *p, uint32_t v)
{
	char digits[10];
	int n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

static const char prefixes[TRACE_TYPES][4] = { "", "%r", "%rd", "%f", "%p" };

static inline char *put_var(char *p, const trace *t, uint32_t var)
{
	const trace_step *s = &t->step[var];

	p = put_text(p, prefixes[s->type], s->type == TYPE_U64 ? 3 : 2);
	return put_number(p, s->reg);
}

static char *put_bits(char *p, float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	for (int i = 28; i >= 0; i -= 4)
		*p++ = "0123456789ABCDEF"[bits >> i & 15];
	return p;
}

/* `format` is copied; $d, $a, $b, $c become registers, $i the number b, $f its bits as .f32: such a table of formats is what
 * these printers are made of. */
static char *put_format(char *p, const char *format, const trace *t, uint32_t var)
{
	const trace_step *s = &t->step[var];

	for (;; format++) {
		if (*format != '$') {
			if (!(*p = *format))
				return p;
			p++;
			continue;
		}
		switch (*++format) {
		case 'd': p = put_var(p, t, var); break;
		case 'a': p = put_var(p, t, s->a); break;
		case 'b': p = put_var(p, t, s->b); break;
		case 'c': p = put_var(p, t, s->c); break;
		case 'i': p = put_number(p, s->b); break;
		case 'f': p = put_bits(p, (float)s->b); break;
		}
	}
}

static const char *const formats[TRACE_OPS] = {
	[U32_ADD] = "\tadd.u32 $d, $a, $b;\n",         [U32_ADD_IMM] = "\tadd.u32 $d, $a, $i;\n",
	[U32_AND] = "\tand.b32 $d, $a, $b;\n",         [U32_MAD] = "\tmad.lo.u32 $d, $a, $b, $c;\n",
	[U64_ELEMENT] = "\tmul.wide.u32 $d, $a, 4;\n", [U64_ADDRESS] = "\tadd.u64 $d, $a, %rd1;\n",
	[F32_LOAD] = "\tld.global.nc.f32 $d, [$a];\n", [F32_CVT] = "\tcvt.rn.f32.u32 $d, $a;\n",
	[F32_IMM] = "\tmov.f32 $d, 0f$f;\n",           [F32_ADD] = "\tadd.ftz.f32 $d, $a, $b;\n",
	[F32_MUL] = "\tmul.ftz.f32 $d, $a, $b;\n",     [F32_FMA] = "\tfma.rn.ftz.f32 $d, $a, $b, $c;\n",
	[F32_EX2] = "\tex2.approx.ftz.f32 $d, $a;\n",  [F32_SELECT] = "\tselp.f32 $d, $a, $b, $c;\n",
	[PRED_LESS] = "\tsetp.lt.f32 $d, $a, $b;\n",   [STORE] = "\tst.global.f32 [$a], $b;\n",
};

static char *put_registers(char *p, const char *type, const char *prefix, uint32_t n)
{
	if (!n)
		return p;
	p = PUT(p, "\t.reg .");
	p = put_text(p, type, strlen(type));
	p = PUT(p, " ");
	p = put_text(p, prefix, strlen(prefix));
	p = PUT(p, "<");
	p = put_number(p, n + 1);
	return PUT(p, ">;\n");
}

size_t trace_print(const trace *t, char *to)
{
	char *p = to;

	p = PUT(p, "// cptx 0.1.0\n.version 7.0\n.target sm_80\n.address_size 64\n\n.visible .entry trace(\n"
	           "\t.param .u64 p,\n\t.param .u32 n\n)\n.reqntid 256, 1, 1\n{\n");
	p = put_registers(p, "pred", "%p", t->regs[TYPE_PRED]);
	p = put_registers(p, "b32", "%r", t->regs[TYPE_U32]);
	p = put_registers(p, "b32", "%f", t->regs[TYPE_F32]);
	p = put_registers(p, "b64", "%rd", t->regs[TYPE_U64]);
	p = PUT(p, "\tld.param.u64 %rd1, [p];\n\tcvta.to.global.u64 %rd1, %rd1;\n\tld.param.u32 %r1, [n];\n"
	           "\tmov.u32 %r2, %tid.x;\n");
	for (size_t i = TRACE_FIRST; i < t->n; i++)
		p = put_format(p, formats[t->step[i].op], t, (uint32_t)i);
	p = PUT(p, "\tret;\n}\n");
	return (size_t)(p - to);
}
