/* SPDX-License-Identifier: MIT */
/* Values as C expressions, and as matching will see them. */
#include "to_c/to_c.h"

#include <stdio.h>
#include <stdlib.h>

void put(to_c_body *b, const char *s) { buf_str(&b->line, s); }

void put_u64(to_c_body *b, uint64_t v)
{
	char text[24];
	buf_put(&b->line, text, (size_t)(text_u64(text, v) - text));
}

void put_type(to_c_body *b, unsigned type)
{
	put(b, "CPTX_");
	put(b, arch_mods[type].id);
}

/* ---- numbers ---- */

/* Writes the shortest decimal that reads back as the same number. */
static void shortest(char text[40], double d, bool wide)
{
	bool whole = d > -1e9 && d < 1e9 && d == (double)(int64_t)d;
	for (int digits = 1; digits <= 17; digits++) {
		if (whole) {
			snprintf(text, 40, "%.1f", d);
			break;
		}
		snprintf(text, 40, "%.*g", digits, d);
		double back = wide ? strtod(text, NULL) : (double)strtof(text, NULL);
		if (!memcmp(&back, &d, sizeof d))
			break;
	}
	char *point = NULL;
	for (char *p = text; *p; p++)
		if (!((*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e'))
			point = p;
	if (point)
		*point = '.'; /* the locale may have another decimal point */
	else if (!strchr(text, 'e') && !whole)
		strcat(text, ".0");
}

void put_float(buf *out, double d, bool wide, bool as_value)
{
	uint64_t bits;
	char text[40];

	memcpy(&bits, &d, sizeof bits);
	if ((bits >> 52 & 0x7ff) == 0x7ff) {
		if (wide)
			buf_printf(out, "cptx_f64_bits(0x%016llX)", (unsigned long long)bits);
		else
			buf_printf(out, "cptx_f32_bits(0x%08X)", (unsigned)text_f32_bits(d));
		return;
	}
	shortest(text, d, wide);
	buf_printf(out, as_value ? "cptx_immf(%s%s)" : "%s%s", text, wide ? "" : "f");
}

/* Whether a number is better read in hexadecimal: plain bits, and patterns such as 0xFFFFFFFF. */
static bool is_pattern(uint64_t v, bool bits)
{
	unsigned seen = 0, digits = 0;

	for (uint64_t rest = v; rest; rest >>= 4)
		seen |= 1u << (rest & 15);
	for (; seen; seen &= seen - 1)
		digits++;
	return (bits && v > 9) || (v > 0xffff && digits <= 2);
}

static void put_int(to_c_body *b, int64_t i, bool bits)
{
	if (i == INT64_MIN)
		put(b, "INT64_MIN");
	else if (i > 0 && is_pattern((uint64_t)i, bits))
		buf_printf(&b->line, "0x%llX", (unsigned long long)i);
	else
		buf_printf(&b->line, "%lld", (long long)i);
}

/* ---- registers ---- */

/* The variable that the registers of a value are a part of, or NULL. */
static const to_c_var *part_of(const to_c_body *b, const cptx_val *v)
{
	const to_c_var *var = &b->var[b->reg_var[v->id]];
	return v->id + v->count <= var->first_reg + var->count ? var : NULL;
}

static void put_part(to_c_body *b, const to_c_var *var, uint32_t first, uint32_t count)
{
	if (count == var->count) {
		put(b, var->name);
		return;
	}
	buf_printf(&b->line, count == 1 ? "cptx_elem(%s, %u" : "cptx_slice(%s, %u", var->name, (unsigned)first);
	if (count > 1)
		buf_printf(&b->line, ", %u", (unsigned)count);
	put(b, ")");
}

static void put_elements(to_c_body *b, const cptx_val *v)
{
	put(b, v->kind == CPTX_VAL_LIST ? "cptx_args(k, " : "cptx_vec(k, ");
	for (uint32_t i = 0; i < v->count; i++) {
		cptx_val e = { .kind = CPTX_VAL_REG, .type = v->type, .count = 1 };
		e.id = v->id + i;
		put(b, i ? ", " : "");
		put_value(b, v->kind == CPTX_VAL_REG ? &e : &b->k->vec[v->id + i], 0);
	}
	put(b, ")");
}

static void put_selector(to_c_body *b, const cptx_val *v)
{
	put(b, v->space & SELECTED_H ? ", \"h" : ", \"b");
	for (unsigned i = 0; i < (v->space & SELECTED_DIGITS); i++)
		put_u64(b, (uint32_t)v->offset >> 3 * i & 7);
	put(b, "\")");
}

static void put_registers(to_c_body *b, const cptx_val *v, unsigned as)
{
	const to_c_var *var = v->kind == CPTX_VAL_REG ? part_of(b, v) : NULL;

	bool selects = v->kind == CPTX_VAL_REG && v->space & SELECTED;

	put(b, selects ? "cptx_select(" : v->kind == CPTX_VAL_REG && v->offset ? "cptx_offset(" : "");
	put(b, v->negated ? "cptx_negated(" : "");
	put(b, as ? "cptx_as(" : "");
	if (var)
		put_part(b, var, v->id - var->first_reg, v->count);
	else
		put_elements(b, v);
	if (as) {
		put(b, ", ");
		put_type(b, as);
		put(b, ")");
	}
	put(b, v->negated ? ")" : "");
	if (selects)
		put_selector(b, v);
	else if (v->kind == CPTX_VAL_REG && v->offset)
		buf_printf(&b->line, ", %d)", (int)v->offset);
}

static const char *var_name(const to_c_body *b, uint32_t var)
{
	return var == IR_NONE || !b->var[var].name ? "?" : b->var[var].name;
}

void put_value(to_c_body *b, const cptx_val *v, unsigned as)
{
	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG:
	case CPTX_VAL_VEC: put_registers(b, v, as); break;
	case CPTX_VAL_LIST:
		if (v->count)
			put_elements(b, v);
		else
			put(b, "cptx_list(k, 0, NULL)");
		break;
	case CPTX_VAL_INT:
		put(b, "cptx_imm(");
		put_int(b, v->i, false);
		put(b, ")");
		break;
	case CPTX_VAL_FLOAT: put_float(&b->line, v->f, v->type == CPTX_F64, true); break;
	case CPTX_VAL_SYM:
		if (v->offset)
			put(b, "cptx_offset(");
		put(b, var_name(b, v->id >= MODULE_SYM ? b->t->found_var[v->id - MODULE_SYM] : b->sym_var[v->id]));
		if (v->offset)
			buf_printf(&b->line, ", %d)", (int)v->offset);
		break;
	case CPTX_VAL_SREG: {
		put(b, "cptx_sreg_val(CPTX_SREG_");
		for (const char *p = arch_sregs[v->id].name; *p; p++) {
			char c = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
			buf_put(&b->line, &c, 1);
		}
		put(b, ")");
		break;
	}
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO: put(b, var_name(b, b->label_var[v->id])); break;
	case CPTX_VAL_FUNC: put(b, var_name(b, b->t->found_var[b->k->m->nsym + v->id - 1])); break;
	case CPTX_VAL_SINK: put(b, "cptx_sink()"); break;
	case CPTX_VAL_NONE:
	case CPTX_VAL_BAD: put(b, "(cptx_val){ 0 }"); break;
	}
}

void put_argument(to_c_body *b, const cptx_val *v, unsigned as, bool bits, bool wide)
{
	if (v->kind == CPTX_VAL_INT)
		put_int(b, v->i, bits);
	else if (v->kind == CPTX_VAL_FLOAT)
		put_float(&b->line, v->f, wide, false);
	else
		put_value(b, v, as);
}

/* ---- what matching sees ---- */

static unsigned c_type(const to_c_body *b, uint32_t reg) { return b->var[b->reg_var[reg]].c_type; }

static bool push_element(to_c_body *b, cptx_val e)
{
	if (e.kind == CPTX_VAL_REG)
		e.type = (uint8_t)c_type(b, e.id);
	if (!arena_push(&b->t->a, &b->vec, b->nvec, &b->cap_vec, sizeof *b->vec))
		return to_c_no_memory(b->t);
	b->vec[b->nvec++] = e;
	return true;
}

cptx_val value_of(to_c_body *b, const cptx_val *v, unsigned as)
{
	cptx_val out = *v;

	if (v->kind == CPTX_VAL_INT || v->kind == CPTX_VAL_FLOAT)
		out.type = 0;
	if (v->kind == CPTX_VAL_REG)
		out.type = (uint8_t)(as ? as : c_type(b, v->id));
	if (v->kind != CPTX_VAL_VEC && (v->kind != CPTX_VAL_REG || part_of(b, v)))
		return out;
	out = (cptx_val){ .kind = CPTX_VAL_VEC, .count = v->count, .owner = v->owner };
	out.id = (uint32_t)b->nvec;
	if (v->kind == CPTX_VAL_VEC)
		out.space = v->space;
	for (uint32_t i = 0; i < v->count; i++) {
		cptx_val e = { .kind = CPTX_VAL_REG, .count = 1, .owner = v->owner };
		e.id = v->id + i;
		if (v->kind == CPTX_VAL_VEC)
			e = b->k->vec[v->id + i];
		if (!push_element(b, e))
			return (cptx_val){ 0 };
		if (e.kind == CPTX_VAL_REG && !out.type)
			out.type = (uint8_t)(as ? as : c_type(b, e.id));
	}
	return out;
}
