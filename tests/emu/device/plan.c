/* SPDX-License-Identifier: MIT */
/* From a spelling to a kernel. */
#include "case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const arch_operand *operand_of(unsigned form, unsigned i) { return &arch_operands[arch_forms[form].operand + i]; }

const char *plan_refuses(unsigned form)
{
	const arch_form *f = &arch_forms[form];
	bool result = false;

	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = operand_of(form, i);
		if (o->kind == OPERAND_ADDR)
			return "it is about memory";
		if (o->kind != OPERAND_REG && o->kind != OPERAND_IMM)
			return "it is about control flow";
		result |= (o->flags & OPERAND_DEST) != 0;
	}
	return result ? NULL : "it has no result";
}

/* ---- availability ---- */

static bool needs(unsigned avail, unsigned target, unsigned *version)
{
	unsigned v = arch_avails[avail][target];

	if (!v || arch_ends[avail][target])
		return false;
	*version = v > *version ? v : *version;
	return true;
}

static bool has_mods(const spelling *s, unsigned target, unsigned *version)
{
	const arch_form *f = &arch_forms[s->form];

	if (!needs(f->avail, target, version))
		return false;
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; s->mod[i] && a < g->nalt; a++) {
			const arch_alt *alt = &arch_alts[g->alt + a];
			if (alt->mod == s->mod[i] && alt->avail && !needs(alt->avail, target, version))
				return false;
		}
	}
	return true;
}

/* ---- operands ---- */

static unsigned type_of(const spelling *s, const arch_operand *o)
{
	unsigned t = o->type ? o->type : o->tgroup != ARCH_NO ? s->mod[o->tgroup] : 0;

	if (!(o->flags & OPERAND_DOUBLE))
		return t;
	return t == CPTX_U16 ? CPTX_U32 : t == CPTX_S16 ? CPTX_S32 : t == CPTX_U32 ? CPTX_U64 : CPTX_S64;
}

/* A wider register where the form takes one. */
static unsigned bits_of(const arch_operand *o, unsigned type, source *random)
{
	static const unsigned widths[] = { 16, 32, 64 };
	unsigned bits = arch_types[type].bits, pick = widths[draw_below(random, 3)];

	if (!(o->flags & OPERAND_WIDER) || o->count > 1)
		return bits;
	return pick > bits ? pick : bits == 8 ? 16 : bits;
}

static char *put(char *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	p += vsprintf(p, format, ap);
	va_end(ap);
	return p;
}

static int constant(const arch_operand *o, source *random)
{
	for (;;) {
		int64_t span = (int64_t)o->hi - o->lo + 1;
		int n = (int)(o->lo + (int64_t)(draw(random) % (uint64_t)span));
		if (!o->set || (n >= 0 && n < 64 && o->set >> n & 1))
			return n;
	}
}

/* Adds a port; false: too many. */
static bool add_port(plan *p, bool out, unsigned type, unsigned bits)
{
	unsigned *n = out ? &p->nout : &p->nin;

	if (*n == (out ? (unsigned)MOST_OUT : (unsigned)MOST_IN))
		return false;
	(out ? p->out : p->in)[(*n)++] = (port){ (uint8_t)type, (uint8_t)bits };
	return true;
}

/* A part of a register, some or none; of a result that shall be a part there must be one. */
static char *put_selector(char *at, const arch_operand *o, source *random)
{
	bool masks = o->select == SELECT_MASK_2 || o->select == SELECT_MASK_4, out = o->flags & OPERAND_DEST;
	unsigned n = o->select == SELECT_2 || o->select == SELECT_MASK_2 ? 2 : 4, mask = draw_below(random, (1u << n) - 1) + 1;

	if (!o->select || (!(out && !masks) && draw_below(random, 3) == 0))
		return at;
	if (o->select == SELECT_SCALAR)
		return draw(random) & 1 ? put(at, ".b%u", draw_below(random, 4)) : put(at, ".h%u", draw_below(random, 2));
	at = put(at, n == 2 ? ".h" : ".b");
	for (unsigned i = n; i--;)
		if (!masks)
			at = put(at, "%u", draw_below(random, 2 * n));
		else if (mask >> i & 1)
			at = put(at, "%u", i);
	return at;
}

static char *put_registers(plan *p, char *at, const arch_operand *o, source *random)
{
	bool out = o->flags & OPERAND_DEST;
	unsigned n = arch_operand_count(o, p->s.mod), type = type_of(&p->s, o), bits = bits_of(o, type, random);

	if (o->flags & OPERAND_NEGATABLE && type == CPTX_PRED && draw(random) & 1)
		at = put(at, "!");
	if (n > 1 || o->brace)
		at = put(at, "{");
	for (unsigned i = 0; i < n; i++) {
		if (!add_port(p, out, type, bits))
			return NULL;
		at = put(at, "%s%%%c%u", i ? ", " : "", out ? 'o' : 'i', (out ? p->nout : p->nin) - 1);
	}
	return n > 1 || o->brace ? put(at, "}") : put_selector(at, o, random);
}

/* The carry flag comes from an input that is not zero, and goes to an output. */
static bool surround(plan *p)
{
	const arch_form *f = &arch_forms[p->s.form];
	bool sub = f->op == CPTX_OP_SUB_CC || f->op == CPTX_OP_SUBC;
	bool reads = f->op == CPTX_OP_ADDC || f->op == CPTX_OP_SUBC || f->op == CPTX_OP_MADC;
	bool carries = reads || f->op == CPTX_OP_ADD_CC || f->op == CPTX_OP_SUB_CC || f->op == CPTX_OP_MAD_CC;

	if (!carries)
		return true;
	if (reads) {
		if (!add_port(p, false, CPTX_U32, 32))
			return false;
		put(p->before, sub ? "sub.cc.u32 %%t, 0, %%i%u; " : "add.cc.u32 %%t, %%i%u, -1; ", p->nin - 1);
	}
	if (strstr(p->opcode, ".cc")) {
		if (!add_port(p, true, CPTX_U32, 32))
			return false;
		put(p->after, sub ? "subc.u32 %%o%u, 0, 0; " : "addc.u32 %%o%u, 0, 0; ", p->nout - 1);
	}
	return true;
}

const char *plan_make(plan *p, const spelling *s, unsigned target, source *random)
{
	const arch_form *f = &arch_forms[s->form];
	bool first = true;

	*p = (plan){ .s = *s };
	if (!has_mods(s, target, &p->version))
		return "not on this target";
	spell(s, p->opcode);
	char *at = p->operands;
	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = operand_of(s->form, i);
		if (o->given != ARCH_NO && !s->mod[o->given])
			continue;
		if (o->avail && !needs(o->avail, target, &p->version))
			continue;
		at = put(at, "%s", first ? " " : o->flags & OPERAND_PIPE ? "|" : ", ");
		first = false;
		at = o->kind == OPERAND_IMM ? put(at, "%d", constant(o, random)) : put_registers(p, at, o, random);
		if (!at)
			return "too many operands";
	}
	return surround(p) ? NULL : "too many operands";
}

/* ---- text ---- */

static char *put_move(char *at, const port *x, char name, unsigned i, bool load)
{
	const char *op = load ? "ld" : "st";
	char value[32];

	snprintf(value, sizeof value, x->bits == 1 ? "%%t" : "%%%c%u", name, i);
	if (x->bits == 1 && !load)
		at = put(at, "\tselp.u32 %%t, 1, 0, %%%c%u;\n", name, i);
	at = put(at, "\tmad.wide.u32 %%a, %%n, %u, %%%s;\n", i * SLOT, load ? "in" : "out");
	if (load)
		at = put(at, "\t%s.global.b%u %s, [%%a];\n", op, x->bits == 1 ? 32 : x->bits, value);
	else
		at = put(at, "\t%s.global.b%u [%%a], %s;\n", op, x->bits == 1 ? 32 : x->bits, value);
	if (x->bits == 1 && load)
		at = put(at, "\tsetp.ne.u32 %%%c%u, %%t, 0;\n", name, i);
	return at;
}

static char *put_register(char *at, const port *x, char name, unsigned i)
{
	return x->bits == 1 ? put(at, "\t.reg .pred %%%c%u;\n", name, i) : put(at, "\t.reg .b%u %%%c%u;\n", x->bits, name, i);
}

char *plan_kernel(const plan *p, unsigned number)
{
	char *text = malloc(6000), *at = text;

	if (!text)
		return NULL;
	at =
		put(at,
	        ".visible .entry k%u(.param .u64 p_in, .param .u64 p_out, .param .u32 p_n)\n{\n\t.reg .b32 %%t, %%n, %%l, %%c;\n"
	        "\t.reg .b64 %%in, %%out, %%a;\n",
	        number);
	for (unsigned i = 0; i < p->nin; i++)
		at = put_register(at, &p->in[i], 'i', i);
	for (unsigned i = 0; i < p->nout; i++)
		at = put_register(at, &p->out[i], 'o', i);
	at = put(
		at,
		"\tld.param.u64 %%in, [p_in];\n\tld.param.u64 %%out, [p_out];\n\tld.param.u32 %%n, [p_n];\n"
		"\tmov.u32 %%l, %%tid.x;\n\tmov.u32 %%c, %%ctaid.x;\n\tmov.u32 %%t, %%ntid.x;\n\tmad.lo.u32 %%l, %%c, %%t, %%l;\n"
		"\tmul.wide.u32 %%a, %%l, %d;\n\tadd.u64 %%in, %%in, %%a;\n\tadd.u64 %%out, %%out, %%a;\n",
		SLOT);
	for (unsigned i = 0; i < p->nin; i++)
		at = put_move(at, &p->in[i], 'i', i, true);
	at = put(at, "\t%s%s%s; %s\n", p->before, p->opcode, p->operands, p->after);
	for (unsigned i = 0; i < p->nout; i++)
		at = put_move(at, &p->out[i], 'o', i, false);
	put(at, "\tret;\n}\n");
	return text;
}
