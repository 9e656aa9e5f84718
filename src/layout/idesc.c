/* SPDX-License-Identifier: MIT */
/* Instruction descriptors of tcgen05.mma. */
#include "base/options.h"
#include "layout/layout.h"

typedef struct type_code {
	enum cptx_type type;
	uint8_t code;
} type_code;

/* The codes of types in the fields; a list ends with type NONE. */
static const type_code tf32[] = { { CPTX_TF32, 2 }, { CPTX_TYPE_NONE, 0 } };
static const type_code f16[] = { { CPTX_F16, 0 }, { CPTX_BF16, 1 }, { CPTX_TYPE_NONE, 0 } };
static const type_code small[] = { { CPTX_E4M3, 0 }, { CPTX_E5M2, 1 }, { CPTX_E2M3, 3 },
	                               { CPTX_E3M2, 4 }, { CPTX_E2M1, 5 }, { CPTX_TYPE_NONE, 0 } };
static const type_code bytes[] = { { CPTX_U8, 0 }, { CPTX_S8, 1 }, { CPTX_TYPE_NONE, 0 } };
static const type_code fp4[] = { { CPTX_E2M1, 1 }, { CPTX_TYPE_NONE, 0 } };
static const type_code to_f32[] = { { CPTX_F32, 1 }, { CPTX_TYPE_NONE, 0 } };
static const type_code to_float[] = { { CPTX_F16, 0 }, { CPTX_F32, 1 }, { CPTX_TYPE_NONE, 0 } };
static const type_code to_s32[] = { { CPTX_S32, 2 }, { CPTX_TYPE_NONE, 0 } };
static const type_code ue8m0[] = { { CPTX_UE8M0, 1 }, { CPTX_TYPE_NONE, 0 } };
static const type_code any_scale[] = { { CPTX_UE4M3, 0 }, { CPTX_UE8M0, 1 }, { CPTX_TYPE_NONE, 0 } };

/* Sets of kinds, a bit each. */
enum {
	PLAIN = 1 << CPTX_TCGEN05_TF32 | 1 << CPTX_TCGEN05_F16 | 1 << CPTX_TCGEN05_F8F6F4 | 1 << CPTX_TCGEN05_I8,
	FP4 = 1 << CPTX_TCGEN05_MXF4 | 1 << CPTX_TCGEN05_MXF4NVF4,
	SCALED = 1 << CPTX_TCGEN05_MXF8F6F4 | FP4,
	ALL = PLAIN | SCALED,
	INTEGER = 1 << CPTX_TCGEN05_I8
};

static const struct kind {
	const char *name;
	uint8_t k; /* elements along k of a dense instruction */
	const type_code *ab, *d, *scale;
} kinds[CPTX_TCGEN05_KINDS] = {
	[CPTX_TCGEN05_TF32] = { "tf32", 8, tf32, to_f32, NULL },
	[CPTX_TCGEN05_F16] = { "f16", 16, f16, to_float, NULL },
	[CPTX_TCGEN05_F8F6F4] = { "f8f6f4", 32, small, to_float, NULL },
	[CPTX_TCGEN05_I8] = { "i8", 32, bytes, to_s32, NULL },
	[CPTX_TCGEN05_MXF8F6F4] = { "mxf8f6f4", 32, small, to_f32, ue8m0 },
	[CPTX_TCGEN05_MXF4] = { "mxf4", 64, fp4, to_f32, ue8m0 },
	[CPTX_TCGEN05_MXF4NVF4] = { "mxf4nvf4", 64, fp4, to_f32, any_scale },
};

/* The meaning of a field. */
enum content {
	SELECTOR,
	SPARSE,
	SATURATE,
	TYPE_D,
	B_SCALE_ID,
	TYPE_A,
	TYPE_B,
	A_NEGATED,
	B_NEGATED,
	A_MAJOR,
	B_MAJOR,
	SIZE_N,
	TYPE_SCALE,
	SIZE_M,
	A_SCALE_ID,
	REUSE_SHIFT,
	LONG_K
};

/* All fields of all kinds; bits that are in no field of a kind are reserved. */
static const struct field {
	cptx_desc_field f;
	enum content content;
	uint8_t kinds;
} fields[] = {
	{ { "selector", "sparsity selector", 0, 1, 1 }, SELECTOR, PLAIN },
	{ { "sparse", "A is sparse", 2, 2, 0 }, SPARSE, ALL },
	{ { "saturate", "D is saturated", 3, 3, 0 }, SATURATE, INTEGER },
	{ { "d", "type of D: 0 f16, 1 f32, 2 s32", 4, 5, 0 }, TYPE_D, PLAIN },
	{ { "b_scale_id", "byte of the scale factors of B", 4, 5, 1 }, B_SCALE_ID, SCALED },
	{ { "a", "type of A", 7, 9, 0 }, TYPE_A, ALL },
	{ { "b", "type of B", 10, 12, 0 }, TYPE_B, ALL & ~FP4 },
	{ { "b", "type of B", 10, 11, 0 }, TYPE_B, FP4 },
	{ { "a_negated", "-A in place of A", 13, 13, 0 }, A_NEGATED, ALL & ~INTEGER },
	{ { "b_negated", "-B in place of B", 14, 14, 0 }, B_NEGATED, ALL & ~INTEGER },
	{ { "a_mn_major", "A is MN-major (transposed)", 15, 15, 0 }, A_MAJOR, ALL & ~FP4 },
	{ { "b_mn_major", "B is MN-major (transposed)", 16, 16, 0 }, B_MAJOR, ALL & ~FP4 },
	{ { "n", "N", 17, 22, 8 }, SIZE_N, ALL },
	{ { "scale", "type of the scale factors: 0 ue4m3, 1 ue8m0", 23, 23, 0 }, TYPE_SCALE, SCALED },
	{ { "m", "M", 24, 28, 16 }, SIZE_M, PLAIN },
	{ { "m", "M", 27, 28, 128 }, SIZE_M, SCALED },
	{ { "a_scale_id", "byte of the scale factors of A", 29, 30, 1 }, A_SCALE_ID, SCALED },
	{ { "reuse_shift", "largest shift for reusing B, .ws: 1 8, 2 16, 3 32", 30, 31, 0 }, REUSE_SHIFT, PLAIN },
	{ { "k96", "96 elements along k", 31, 31, 0 }, LONG_K, FP4 },
};

static bool has_field(enum cptx_tcgen05_kind kind, const struct field *f) { return f->kinds >> kind & 1; }

bool cptx_insn_desc_field_(enum cptx_tcgen05_kind kind, size_t i, cptx_desc_field *field, size_t size)
{
	for (size_t f = 0; field && (unsigned)kind < CPTX_TCGEN05_KINDS && f < ARRAY_LEN(fields); f++)
		if (has_field(kind, &fields[f]) && !i--) {
			RESULT_FILL(field, size, &fields[f].f);
			return true;
		}
	return false;
}

const char *cptx_tcgen05_kind_name(enum cptx_tcgen05_kind kind)
{
	return (unsigned)kind < CPTX_TCGEN05_KINDS ? kinds[kind].name : "?";
}

uint32_t cptx_insn_desc_k(const cptx_insn_desc *d)
{
	if (!d || (unsigned)d->kind >= CPTX_TCGEN05_KINDS)
		return 0;
	return d->k96 ? 96 : kinds[d->kind].k * (d->sparse ? 2u : 1u);
}

/* ---- rules ---- */

#define RULE(ok, format, ...)                                                                                               \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "instruction descriptor, kind %s: " format, kinds[d->kind].name,     \
			                 __VA_ARGS__);                                                                                  \
	while (0)

static const type_code *find_type(const type_code *list, enum cptx_type type)
{
	while (list->type != CPTX_TYPE_NONE && list->type != type)
		list++;
	return list->type == CPTX_TYPE_NONE ? NULL : list;
}

static bool check_type(const cptx_insn_desc *d, const char *what, enum cptx_type type, const type_code *list,
                       cptx_error *err)
{
	char legal[64] = "";

	if (find_type(list, type))
		return true;
	for (; list->type != CPTX_TYPE_NONE; list++) {
		size_t n = strlen(legal);
		const char *name = cptx_type_name(list->type);
		memcpy(legal + n, " ", 2);
		memcpy(legal + n + 1, name, strlen(name) + 1);
	}
	RULE(false, "type of %s is %s; possible:%s", what, type == CPTX_TYPE_NONE ? "none" : cptx_type_name(type), legal);
	return false;
}

static bool is_scaled(const cptx_insn_desc *d) { return kinds[d->kind].scale != NULL; }
static bool is_fp4(const cptx_insn_desc *d) { return kinds[d->kind].ab == fp4; }

static bool check_ws(const cptx_insn_desc *d, cptx_error *err)
{
	RULE(!is_scaled(d), "%s", "there is no tcgen05.mma.ws of a block-scaled kind");
	RULE(d->ctas < 2, "tcgen05.mma.ws with cta_group::%u; it has only 1", d->ctas);
	RULE(d->m == 32 || d->m == 64 || d->m == 128, "M = %u; with .ws it is 32, 64 or 128", d->m);
	RULE(d->n == 64 || d->n == 128 || (d->n == 256 && !d->sparse), "N = %u; with .ws it is 64, 128%s", d->n,
	     d->sparse ? "" : " or 256");
	RULE(!d->reuse_shift || d->reuse_shift == 8 || d->reuse_shift == 16 || d->reuse_shift == 32,
	     "largest shift %u; it is 0, 8, 16 or 32", d->reuse_shift);
	return true;
}

static bool check_shape(const cptx_insn_desc *d, cptx_error *err)
{
	bool pair = d->ctas == 2, i8 = d->kind == CPTX_TCGEN05_I8;
	uint32_t least = pair ? (i8 ? 32 : 16) : 8, step = least, group = pair ? 2 : 1;
	bool wide_b = d->b_mn_major && kinds[d->kind].k == 32; /* true for 8-bit elements */

	RULE(d->ctas <= 2, "cta_group::%u; it is 1 or 2", d->ctas);
	if (d->ws)
		return check_ws(d, err);
	RULE(!d->reuse_shift, "largest shift %u without .ws; it must be 0", d->reuse_shift);
	if (is_scaled(d) && pair && d->sparse)
		RULE(d->m == 256, "M = %u; sparse with cta_group::2 it is 256", d->m);
	else if (is_scaled(d) && !pair)
		RULE(d->m == 128, "M = %u; with cta_group::1 it is 128", d->m);
	else
		RULE(d->m == 64 * group || d->m == 128 * group, "M = %u; with cta_group::%u it is %u or %u", d->m, group, 64 * group,
		     128 * group);
	if (i8 && !pair && d->n > 32)
		step = 16;
	if (wide_b)
		step = MAX(step, 16 * group), least = MAX(least, 16 * group);
	RULE(d->n >= least && d->n <= 256 && d->n % step == 0, "N = %u; with cta_group::%u%s it is %u to 256 in steps of %u%s",
	     d->n, group, wide_b ? " and B of bytes MN-major" : "", least, step,
	     i8 && !pair && step == 16 && !wide_b ? " (of 8 up to 32)" : "");
	return true;
}

static bool check_scale(const cptx_insn_desc *d, cptx_error *err)
{
	if (!is_scaled(d)) {
		RULE(d->scale == CPTX_TYPE_NONE && !d->a_scale_id && !d->b_scale_id, "%s",
		     "scale factors of a kind that has none; leave them out");
		return true;
	}
	if (!check_type(d, "the scale factors", d->scale, kinds[d->kind].scale, err))
		return false;
	RULE(d->a_scale_id < 4 && d->b_scale_id < 4, "scale ids %u and %u; they are 0 to 3", d->a_scale_id, d->b_scale_id);
	RULE(!is_fp4(d) || d->k96 || (d->a_scale_id % 2 == 0 && d->b_scale_id % 2 == 0), "scale ids %u and %u; they are 0 or 2",
	     d->a_scale_id, d->b_scale_id);
	return true;
}

static bool check(const cptx_insn_desc *d, cptx_error *err)
{
	if ((unsigned)d->kind >= CPTX_TCGEN05_KINDS)
		return error_set(err, CPTX_E_ARG, NOWHERE, "instruction descriptor: there is no kind %u", (unsigned)d->kind);
	const struct kind *k = &kinds[d->kind];

	if (!check_type(d, "A", d->a, k->ab, err) || !check_type(d, "B", d->b, k->ab, err) ||
	    !check_type(d, "D", d->d, k->d, err) || !check_scale(d, err))
		return false;
	RULE(d->kind != CPTX_TCGEN05_F16 || d->d != CPTX_F16 || (d->a == CPTX_F16 && d->b == CPTX_F16), "%s",
	     "D of f16 with bf16 operands; it needs f16 ones, or D of f32");
	RULE(d->kind == CPTX_TCGEN05_I8 || !d->saturate, "%s", "saturation is possible with kind i8 only");
	RULE(d->kind != CPTX_TCGEN05_I8 || (!d->a_negated && !d->b_negated), "%s", "integer operands cannot be negated");
	RULE(!is_fp4(d) || (!d->a_mn_major && !d->b_mn_major), "%s", "packed e2m1 operands are K-major only");
	bool selects = d->sparse && (d->kind == CPTX_TCGEN05_F16 || d->kind == CPTX_TCGEN05_TF32);
	RULE(d->selector < 4 && (!d->selector || selects), "sparsity selector %u; it is 0%s", d->selector,
	     selects ? " to 3" : "");
	RULE(!d->k96 || (is_fp4(d) && !d->sparse), "%s", "96 elements along k are possible with dense mxf4 and mxf4nvf4 only");
	RULE(!d->k96 || d->ctas < 2 || d->m == 256, "M = %u; with 96 elements along k and cta_group::2 it is 256", d->m);
	return check_shape(d, err);
}

/* ---- the word ---- */

static uint32_t code_of(const cptx_insn_desc *d, const struct field *f)
{
	const struct kind *k = &kinds[d->kind];

	switch (f->content) {
	case SELECTOR: return d->selector;
	case SPARSE: return d->sparse;
	case SATURATE: return d->saturate;
	case TYPE_D: return find_type(k->d, d->d)->code;
	case B_SCALE_ID: return d->b_scale_id;
	case TYPE_A: return find_type(k->ab, d->a)->code;
	case TYPE_B: return find_type(k->ab, d->b)->code;
	case A_NEGATED: return d->a_negated;
	case B_NEGATED: return d->b_negated;
	case A_MAJOR: return d->a_mn_major;
	case B_MAJOR: return d->b_mn_major;
	case SIZE_N: return d->n / f->f.unit;
	case TYPE_SCALE: return find_type(k->scale, d->scale)->code;
	case SIZE_M: return d->m / f->f.unit;
	case A_SCALE_ID: return d->a_scale_id;
	case REUSE_SHIFT: return d->reuse_shift == 32 ? 3 : d->reuse_shift / 8u;
	case LONG_K: return d->k96;
	}
	return 0;
}

bool cptx_insn_desc_encode(const cptx_insn_desc *d, uint32_t *word, cptx_error *err)
{
	if (!IS_GIVEN(word, "word", NOWHERE, err) || !IS_GIVEN(d, "descriptor", NOWHERE, err))
		return false;
	*word = 0;
	if (!check(d, err))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (has_field(d->kind, &fields[i]))
			*word |= (uint32_t)field_put(code_of(d, &fields[i]), &fields[i].f);
	return true;
}

static enum cptx_type type_of(const type_code *list, uint32_t code)
{
	while (list->type != CPTX_TYPE_NONE && list->code != code)
		list++;
	return list->type;
}

static bool set_type(const cptx_insn_desc *d, enum cptx_type *type, const type_code *list, const struct field *f,
                     uint32_t code, cptx_error *err)
{
	*type = type_of(list, code);
	RULE(*type != CPTX_TYPE_NONE, "bits %u to %u are %u; no %s has that number", f->f.low, f->f.high, code, f->f.about);
	return true;
}

static bool set_code(cptx_insn_desc *d, const struct field *f, uint32_t v, cptx_error *err)
{
	const struct kind *k = &kinds[d->kind];

	switch (f->content) {
	case SELECTOR: d->selector = (uint8_t)v; break;
	case SPARSE: d->sparse = v; break;
	case SATURATE: d->saturate = v; break;
	case TYPE_D: return set_type(d, &d->d, k->d, f, v, err);
	case B_SCALE_ID: d->b_scale_id = (uint8_t)v; break;
	case TYPE_A: return set_type(d, &d->a, k->ab, f, v, err);
	case TYPE_B: return set_type(d, &d->b, k->ab, f, v, err);
	case A_NEGATED: d->a_negated = v; break;
	case B_NEGATED: d->b_negated = v; break;
	case A_MAJOR: d->a_mn_major = v; break;
	case B_MAJOR: d->b_mn_major = v; break;
	case SIZE_N: d->n = (uint16_t)(v * f->f.unit); break;
	case TYPE_SCALE: return set_type(d, &d->scale, k->scale, f, v, err);
	case SIZE_M: d->m = (uint16_t)(v * f->f.unit); break;
	case A_SCALE_ID: d->a_scale_id = (uint8_t)v; break;
	case REUSE_SHIFT: d->reuse_shift = v ? (uint8_t)(4u << v) : 0; break;
	case LONG_K: d->k96 = v; break;
	}
	return true;
}

bool cptx_insn_desc_decode(enum cptx_tcgen05_kind kind, uint8_t ctas, bool ws, uint32_t w, cptx_insn_desc *d,
                           cptx_error *err)
{
	uint32_t reserved = UINT32_MAX;
	cptx_error bad = { .code = CPTX_OK };

	if (!IS_GIVEN(d, "descriptor", NOWHERE, err))
		return false;
	*d = (cptx_insn_desc){ .kind = kind, .ctas = ctas, .ws = ws };
	if ((unsigned)kind >= CPTX_TCGEN05_KINDS)
		return error_set(err, CPTX_E_ARG, NOWHERE, "instruction descriptor: there is no kind %u", (unsigned)kind);
	if (is_scaled(d))
		d->d = CPTX_F32;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (has_field(kind, &fields[i])) {
			reserved &= ~(uint32_t)field_mask(&fields[i].f);
			/* the first error stays, later ones are dropped */
			set_code(d, &fields[i], (uint32_t)field_get(w, &fields[i].f), &bad);
		}
	for (unsigned bit = 0; bit < 32; bit++)
		RULE(!((w & reserved) >> bit & 1), "bit %u is 1; it must be 0", bit);
	if (bad.code)
		return error_set(err, CPTX_E_ARG, NOWHERE, "%s", bad.text);
	return check(d, err);
}

/* ---- members by name ---- */

static bool set_text(cptx_insn_desc *d, const struct field *f, const char *value, cptx_error *err)
{
	enum cptx_type type = cptx_type_find(value);
	uint32_t v = 0;
	bool flag = false;

	switch (f->content) {
	case TYPE_D:
	case TYPE_A:
	case TYPE_B:
	case TYPE_SCALE:
		RULE(type != CPTX_TYPE_NONE, "%s=%s: there is no such type", f->f.name, value);
		*(f->content == TYPE_D ? &d->d : f->content == TYPE_A ? &d->a : f->content == TYPE_B ? &d->b : &d->scale) = type;
		return true;
	case SIZE_N:
	case SIZE_M:
	case SELECTOR:
	case A_SCALE_ID:
	case B_SCALE_ID:
	case REUSE_SHIFT:
		if (!layout_number(f->f.name, value, 256, &v, err))
			return false;
		if (f->content == SIZE_N || f->content == SIZE_M)
			*(f->content == SIZE_N ? &d->n : &d->m) = (uint16_t)v;
		else
			*(f->content == SELECTOR     ? &d->selector
			  : f->content == A_SCALE_ID ? &d->a_scale_id
			  : f->content == B_SCALE_ID ? &d->b_scale_id
			                             : &d->reuse_shift) = (uint8_t)MIN(v, 255u);
		return true;
	default: return layout_flag(f->f.name, value, &flag, err) && set_code(d, f, flag, err);
	}
}

bool cptx_insn_desc_set(cptx_insn_desc *d, const char *name, const char *value, cptx_error *err)
{
	uint32_t v = 0;

	if (!IS_GIVEN(d, "descriptor", NOWHERE, err) || !IS_GIVEN(name, "name", NOWHERE, err) ||
	    !IS_GIVEN(value, "value", NOWHERE, err))
		return false;
	if ((unsigned)d->kind >= CPTX_TCGEN05_KINDS)
		return check(d, err);
	if (!strcmp(name, "ws"))
		return layout_flag(name, value, &d->ws, err);
	if (!strcmp(name, "ctas")) {
		bool ok = layout_number(name, value, 2, &v, err);
		d->ctas = (uint8_t)v;
		return ok;
	}
	if (is_scaled(d) && !strcmp(name, "d")) { /* d of the scaled kinds has no bits: it is f32 */
		d->d = cptx_type_find(value);
		RULE(d->d == CPTX_F32, "d=%s: D of kind %s is f32", value, kinds[d->kind].name);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (has_field(d->kind, &fields[i]) && !strcmp(fields[i].f.name, name))
			return set_text(d, &fields[i], value, err);
	RULE(false, "there is no field '%s'; `cptx desc %s` lists them", name, kinds[d->kind].name);
	return false;
}
