/* SPDX-License-Identifier: MIT */
/* What options and arguments of the kit take. */
#include "kit/value.h"

#include <cptx/cptx.h>

#include <stdio.h>

/* The bit of a register's type; 0: none takes it. */
static uint32_t class_of(uint8_t type)
{
	switch ((enum cptx_type)type) {
	case CPTX_PRED: return KIT_PRED;
	case CPTX_F32: return KIT_F32;
	case CPTX_F64: return KIT_F64;
	case CPTX_U16:
	case CPTX_S16:
	case CPTX_B16: return KIT_U16;
	case CPTX_U32:
	case CPTX_S32:
	case CPTX_B32: return KIT_U32;
	case CPTX_PTR:
	case CPTX_U64:
	case CPTX_S64:
	case CPTX_B64: return KIT_U64;
	default: return 0;
	}
}

/* ".u32, .s32 or a constant" */
static const char *taken(uint32_t takes, char *to, size_t size)
{
	static const struct {
		uint32_t of;
		const char *name;
	} all[] = {
		{ KIT_PRED, "a predicate" },
		{ KIT_U16, ".u16" },
		{ KIT_U32, ".u32" },
		{ KIT_U32, ".s32" },
		{ KIT_U64, ".u64" },
		{ KIT_F32, ".f32" },
		{ KIT_F64, ".f64" },
		{ KIT_COUNT, "a constant from 1 on" },
		{ KIT_WHOLE, "a constant from 0 on" },
		{ KIT_SIGNED, "a constant" },
		{ KIT_REAL, "a constant" },
		{ KIT_VARIABLE, "a variable" },
	};
	size_t n = 0, left = 0;

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		left += (takes & all[i].of) != 0;
	to[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (takes & all[i].of) {
			n += (size_t)snprintf(to + n, size - n, "%s%s", all[i].name, left > 2 ? ", " : left == 2 ? " or " : "");
			left--;
		}
	return to;
}

static bool is_constant_taken(cptx_val v, uint32_t takes)
{
	if (v.kind == CPTX_VAL_FLOAT || takes & (KIT_REAL | KIT_SIGNED))
		return takes & KIT_REAL || (takes & KIT_SIGNED && v.kind == CPTX_VAL_INT);
	return (takes & KIT_COUNT && v.i >= 1 && v.i <= UINT32_MAX) || (takes & KIT_WHOLE && v.i >= 0);
}

static bool is_taken(cptx_val v, uint32_t takes)
{
	switch (v.kind) {
	case CPTX_VAL_NONE: return takes & KIT_NONE;
	case CPTX_VAL_REG: return v.count == 1 && takes & class_of(v.type);
	case CPTX_VAL_INT:
	case CPTX_VAL_FLOAT: return is_constant_taken(v, takes);
	case CPTX_VAL_SYM: return takes & KIT_VARIABLE;
	case CPTX_VAL_BAD: return true; /* an error was made where it came from, or is where it is used */
	default: return false;
	}
}

/* Describes a value for an error. */
static const char *found(cptx_val v, char *to, size_t size)
{
	const char *const type = v.type == CPTX_PTR ? "ptr" : cptx_type_name((enum cptx_type)v.type);

	switch (v.kind) {
	case CPTX_VAL_NONE: return "left out";
	case CPTX_VAL_INT: snprintf(to, size, "%lld", (long long)v.i); return to;
	case CPTX_VAL_FLOAT: snprintf(to, size, "%g", v.f); return to;
	case CPTX_VAL_REG:
		if (v.count == 1)
			snprintf(to, size, ".%s", type);
		else
			snprintf(to, size, "an array of %u registers", v.count);
		return to;
	case CPTX_VAL_SYM: return "the address of a variable, no register";
	case CPTX_VAL_SREG: return "a special register, which cptx_mov reads";
	default: return "no register";
	}
}

bool kit_value(cptx_kernel *k, cptx_site at, const char *where, const char *what, cptx_val v, uint32_t takes)
{
	char is[64], may_be[160];
	const bool zero = !v.type && !v.negated && !v.space && !v.count && !v.owner && !v.i;

	if (zero && v.kind != CPTX_VAL_NONE && v.kind != CPTX_VAL_BAD)
		cptx_fail_(k, at, "%s: %s is no value: a number is written cptx_imm%s(%u)", where, what,
		           takes & (KIT_COUNT | KIT_WHOLE | KIT_SIGNED) || !(takes & KIT_REAL) ? "" : "f", v.kind);
	else if (!is_taken(v, takes))
		cptx_fail_(k, at, "%s: %s is %s; it is %s", where, what, found(v, is, sizeof is),
		           taken(takes, may_be, sizeof may_be));
	else
		return true;
	return false;
}

bool kit_threads(cptx_kernel *k, cptx_site at, const char *where, uint32_t threads, const char *advice)
{
	const uint32_t x = cptx_kernel_block(k, 0), all = x * cptx_kernel_block(k, 1) * cptx_kernel_block(k, 2);

	if (!x || (advice ? threads == x : threads <= all))
		return true;
	cptx_fail_(k, at, "%s: .threads = %u; the kernel's .block has %u%s%s", where, threads, advice ? x : all,
	           advice && x != all ? " along x" : "", advice ? advice : "");
	return false;
}

/* ---- arithmetic ---- */

cptx_val kit_quotient(cptx_kernel *k, cptx_site at, cptx_val v, uint32_t n)
{
	const cptx_val a = v.kind == CPTX_VAL_REG ? cptx_as(v, CPTX_U32) : v;
	uint32_t bits = 0;

	while (bits < 31 && 1u << bits < n)
		bits++;
	return 1u << bits == n ? CALL(shr, .a = a, .b = cptx_imm(bits)) : CALL(div, .a = a, .b = cptx_imm(n));
}

/* Rows of a box from `row` to `end`. */
static cptx_val rows_there(cptx_kernel *k, cptx_site at, uint32_t rows, cptx_val end, cptx_val row)
{
	const cptx_val left = CALL(sub, .a = end.kind == CPTX_VAL_REG ? cptx_as(end, CPTX_S32) : end, .b = row);

	return CALL(max, .a = CALL(min, .a = left, .b = cptx_imm(rows)), .b = cptx_imm(0));
}

void kit_cut_load(cptx_kernel *k, cptx_site at, uint32_t rows, cptx_val end, cptx_val *row, cptx_val *window)
{
	const cptx_val there = rows_there(k, at, rows, end, *row);

	*window = *row;
	*row = CALL(sub, .a = there, .b = cptx_imm(rows));
}

void kit_cut_box(cptx_kernel *k, cptx_site at, uint32_t rows, cptx_val end, cptx_val *row, cptx_val *window)
{
	const cptx_val there = rows_there(k, at, rows, end, *row);

	*window = CALL(add, .a = there, .b = *row);
	*row = CALL(sub, .a = cptx_imm(rows), .b = there);
}
