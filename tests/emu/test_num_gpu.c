/* SPDX-License-Identifier: MIT */
/*
 * The emulator's arithmetic against a GPU, bit by bit: a kernel for each spelling, the same operands for all.  Skipped on a
 * machine without one.  What is only bounded (.approx) is not here.
 */
#include "num_ref.h"

#include <cptx/device.h>

#include <stdarg.h>

enum { ROWS = 8192, BLOCK = 256 };
enum op { ADD, SUB, MUL, FMA, DIV, RCP, SQRT, MIN, MAX, ABS, NEG, CVT, CVT2, SETP, REM, MULHI, BITS3 };

struct probe {
	char text[96]; /* with %d, %a, %b, %c and the width: %a32 */
	uint8_t op, dtype, atype, cmp;
	struct num_mode m;
	uint64_t (*fn)(uint64_t a, uint64_t b, uint64_t c); /* BITS3 */
};
struct probes {
	struct probe *row;
	size_t n, cap;
};

static unsigned width_of(unsigned type)
{
	unsigned bits = cptx_type_bits((enum cptx_type)type);
	return bits < 16 ? 32 : bits; /* cvt takes wider registers */
}

static struct probe *probe(struct probes *p, unsigned op, unsigned type, struct num_mode m, const char *format, ...)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 256;
		p->row = realloc(p->row, p->cap * sizeof *p->row);
		ck_assert_ptr_nonnull(p->row);
	}
	struct probe *r = &p->row[p->n++];
	*r = (struct probe){ .op = (uint8_t)op, .dtype = (uint8_t)type, .atype = (uint8_t)type, .m = m };
	va_list ap;
	va_start(ap, format);
	vsnprintf(r->text, sizeof r->text, format, ap);
	va_end(ap);
	return r;
}

static uint64_t emulate(const struct probe *r, const uint64_t *x)
{
	const struct num_mode *m = &r->m;
	switch (r->op) {
	case ADD: return num_add(r->atype, x[0], x[1], m);
	case SUB: return num_sub(r->atype, x[0], x[1], m);
	case MUL: return num_mul(r->atype, x[0], x[1], m);
	case FMA: return num_fma(r->atype, x[0], x[1], x[2], m);
	case DIV: return num_div(r->atype, x[0], x[1], m);
	case REM: return num_rem(r->atype, x[0], x[1]);
	case MULHI: return num_mul_hi(r->atype, x[0], x[1]);
	case RCP: return num_rcp(r->atype, x[0], m);
	case SQRT: return num_sqrt(r->atype, x[0], m);
	case MIN: return num_min(r->atype, x[0], x[1], m);
	case MAX: return num_max(r->atype, x[0], x[1], m);
	case ABS: return num_abs(r->atype, x[0], m);
	case NEG: return num_neg(r->atype, x[0], m);
	case CVT: return num_cvt(r->dtype, r->atype, x[0], m);
	case CVT2: return num_cvt_pack(r->dtype, (uint32_t[]){ (uint32_t)x[0], (uint32_t)x[1] }, m);
	case SETP: return num_cmp(r->atype, r->cmp, x[0], x[1], m->ftz);
	default: return r->fn(x[0], x[1], x[2]);
	}
}

/* ---- the spellings ---- */
static const char *const rnd_names[] = { "rn", "rz", "rm", "rp" };
static const struct {
	const char *name;
	uint8_t op, operands;
} arithmetic[] = { { "add", ADD, 2 }, { "sub", SUB, 2 }, { "mul", MUL, 2 },  { "fma", FMA, 3 },
	               { "div", DIV, 2 }, { "rcp", RCP, 1 }, { "sqrt", SQRT, 1 } };

static const char *operands(unsigned n, unsigned width)
{
	static char text[64];
	snprintf(text, sizeof text, "%%d%u, %%a%u", width, width);
	for (unsigned i = 1; i < n; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), ", %%%c%u", 'a' + (int)i, width);
	return text;
}

static void add_floats(struct probes *p)
{
	for (unsigned r = 0; r < 4; r++)
		for (unsigned i = 0; i < sizeof arithmetic / sizeof arithmetic[0]; i++) {
			const char *name = arithmetic[i].name, *rnd = rnd_names[r];
			unsigned n = arithmetic[i].operands, op = arithmetic[i].op;
			for (unsigned k = 0; k < 4; k++)
				if (op <= FMA || !(k & 2))
					probe(p, op, CPTX_F32, (struct num_mode){ .rnd = roundings[r], .ftz = k & 1, .sat = k & 2 },
					      "%s.%s%s%s.f32 %s", name, rnd, k & 1 ? ".ftz" : "", k & 2 ? ".sat" : "", operands(n, 32));
			probe(p, op, CPTX_F64, (struct num_mode){ .rnd = roundings[r] }, "%s.%s.f64 %s", name, rnd, operands(n, 64));
		}
	static const struct {
		const char *name;
		uint8_t type;
	} half[] = { { "f16", CPTX_F16 }, { "bf16", CPTX_BF16 }, { "f16x2", CPTX_F16X2 }, { "bf16x2", CPTX_BF16X2 } };
	for (unsigned h = 0; h < 4; h++) {
		unsigned type = half[h].type, width = width_of(type);
		for (unsigned i = 0; i < 4; i++) {
			unsigned n = arithmetic[i].operands, op = arithmetic[i].op;
			for (unsigned k = 0; k < (h & 1 ? 1u : 4u); k++)
				probe(p, op, type, (struct num_mode){ .ftz = k & 1, .sat = k & 2 }, "%s.rn%s%s.%s %s", arithmetic[i].name,
				      k & 1 ? ".ftz" : "", k & 2 ? ".sat" : "", half[h].name, operands(n, width));
		}
		probe(p, FMA, type, (struct num_mode){ .relu = true }, "fma.rn.relu.%s %s", half[h].name, operands(3, width));
		probe(p, FMA, type, (struct num_mode){ .oob = true }, "fma.rn.oob.%s %s", half[h].name, operands(3, width));
		probe(p, ABS, type, nothing, "abs.%s %s", half[h].name, operands(1, width));
		probe(p, NEG, type, nothing, "neg.%s %s", half[h].name, operands(1, width));
		for (unsigned k = 0; k < 4; k++)
			for (unsigned max = 0; max < 2; max++)
				probe(p, max ? MAX : MIN, type, (struct num_mode){ .nan = k & 1, .abs = k & 2, .xorsign = k & 2 },
				      "%s%s%s.%s %s", max ? "max" : "min", k & 1 ? ".NaN" : "", k & 2 ? ".xorsign.abs" : "", half[h].name,
				      operands(2, width));
	}
	for (unsigned k = 0; k < 8; k++)
		for (unsigned max = 0; max < 2; max++)
			probe(p, max ? MAX : MIN, CPTX_F32,
			      (struct num_mode){ .ftz = k & 4, .nan = k & 1, .abs = k & 2, .xorsign = k & 2 }, "%s%s%s%s.f32 %s",
			      max ? "max" : "min", k & 4 ? ".ftz" : "", k & 1 ? ".NaN" : "", k & 2 ? ".xorsign.abs" : "",
			      operands(2, 32));
	for (unsigned ftz = 0; ftz < 2; ftz++) {
		probe(p, ABS, CPTX_F32, (struct num_mode){ .ftz = ftz }, "abs%s.f32 %s", ftz ? ".ftz" : "", operands(1, 32));
		probe(p, NEG, CPTX_F32, (struct num_mode){ .ftz = ftz }, "neg%s.f32 %s", ftz ? ".ftz" : "", operands(1, 32));
	}
	probe(p, MIN, CPTX_F64, nothing, "min.f64 %s", operands(2, 64));
	probe(p, MAX, CPTX_F64, nothing, "max.f64 %s", operands(2, 64));
	probe(p, ABS, CPTX_F64, nothing, "abs.f64 %s", operands(1, 64));
	probe(p, NEG, CPTX_F64, nothing, "neg.f64 %s", operands(1, 64));
	static const char *const cmps[] = { "eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
		                                "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
	for (unsigned c = 0; c < sizeof cmps / sizeof cmps[0]; c++)
		for (unsigned k = 0; k < 3; k++) {
			unsigned width = k == 2 ? 64 : 32;
			struct probe *r = probe(p, SETP, k == 2 ? CPTX_F64 : CPTX_F32, (struct num_mode){ .ftz = k == 1 },
			                        "setp.%s%s.f%u %%p, %%a%u, %%b%u", cmps[c], k == 1 ? ".ftz" : "", width, width, width);
			r->cmp = (uint8_t)(CPTX_EQ + c);
			r->dtype = CPTX_PRED;
		}
}

static void add_conversions(struct probes *p)
{
	static const struct {
		const char *name;
		uint8_t type;
	} ints[] = { { "u8", CPTX_U8 },   { "s8", CPTX_S8 },   { "u16", CPTX_U16 }, { "s16", CPTX_S16 },
		         { "u32", CPTX_U32 }, { "s32", CPTX_S32 }, { "u64", CPTX_U64 }, { "s64", CPTX_S64 } },
	  floats[] = { { "f16", CPTX_F16 }, { "bf16", CPTX_BF16 }, { "f32", CPTX_F32 }, { "f64", CPTX_F64 } };
	for (unsigned r = 0; r < 4; r++)
		for (unsigned f = 0; f < 4; f++) {
			unsigned ft = floats[f].type, fw = width_of(ft);
			static const uint16_t integer[] = { CPTX_RNI, CPTX_RZI, CPTX_RMI, CPTX_RPI };
			for (unsigned i = f == 1 ? 2 : 0; i < 8; i++) { /* ptxas wants a register of 8 bits for bf16 and u8 */
				struct probe *q =
					probe(p, CVT, ints[i].type, (struct num_mode){ .rnd = integer[r] }, "cvt.%si.%s.%s %%d%u, %%a%u",
				          rnd_names[r], ints[i].name, floats[f].name, width_of(ints[i].type), fw);
				q->atype = (uint8_t)ft;
				q = probe(p, CVT, ft, (struct num_mode){ .rnd = roundings[r] }, "cvt.%s.%s.%s %%d%u, %%a%u", rnd_names[r],
				          floats[f].name, ints[i].name, fw, width_of(ints[i].type));
				q->atype = ints[i].type;
			}
			probe(p, CVT, ft, (struct num_mode){ .rnd = integer[r] }, "cvt.%si.%s.%s %s", rnd_names[r], floats[f].name,
			      floats[f].name, operands(1, fw));
			for (unsigned g = 0; g < 4; g++) /* to narrower ones */
				if (width_of(floats[g].type) > fw || (f != g && fw == 16 && width_of(floats[g].type) == 16)) {
					struct probe *q =
						probe(p, CVT, ft, (struct num_mode){ .rnd = roundings[r] }, "cvt.%s.%s.%s %%d%u, %%a%u",
					          rnd_names[r], floats[f].name, floats[g].name, fw, width_of(floats[g].type));
					q->atype = floats[g].type;
				}
		}
	for (unsigned f = 0; f < 4; f++)
		for (unsigned g = 0; g < 4; g++)
			if (width_of(floats[f].type) > width_of(floats[g].type)) {
				struct probe *q = probe(p, CVT, floats[f].type, nothing, "cvt.%s.%s %%d%u, %%a%u", floats[f].name,
				                        floats[g].name, width_of(floats[f].type), width_of(floats[g].type));
				q->atype = floats[g].type;
			}
	const struct num_mode ftz_rn = { .ftz = true }, sat = { .sat = true }, finite = { .satfinite = true },
						  relu = { .relu = true };
	probe(p, CVT, CPTX_F32, ftz_rn, "cvt.rn.ftz.f32.f64 %%d32, %%a64")->atype = CPTX_F64;
	probe(p, CVT, CPTX_F16, ftz_rn, "cvt.rn.ftz.f16.f32 %%d16, %%a32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_F16, sat, "cvt.rn.sat.f16.f32 %%d16, %%a32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_F32, sat, "cvt.sat.f32.f32 %%d32, %%a32");
	probe(p, CVT, CPTX_F16, finite, "cvt.rn.satfinite.f16.f32 %%d16, %%a32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_BF16, finite, "cvt.rn.satfinite.bf16.f32 %%d16, %%a32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_BF16, relu, "cvt.rn.relu.bf16.f32 %%d16, %%a32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_TF32, (struct num_mode){ .rnd = CPTX_RNA }, "cvt.rna.tf32.f32 %%d32, %%a32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_TF32, nothing, "cvt.rn.tf32.f32 %%d32, %%a32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_TF32, (struct num_mode){ .rnd = CPTX_RZ }, "cvt.rz.tf32.f32 %%d32, %%a32")->atype = CPTX_F32;
	probe(p, CVT2, CPTX_F16X2, nothing, "cvt.rn.f16x2.f32 %%d32, %%a32, %%b32")->atype = CPTX_F32;
	probe(p, CVT2, CPTX_BF16X2, relu, "cvt.rn.relu.bf16x2.f32 %%d32, %%a32, %%b32")->atype = CPTX_F32;
	probe(p, CVT2, CPTX_E4M3X2, finite, "cvt.rn.satfinite.e4m3x2.f32 %%d16, %%a32, %%b32")->atype = CPTX_F32;
	probe(p, CVT2, CPTX_E5M2X2, finite, "cvt.rn.satfinite.e5m2x2.f32 %%d16, %%a32, %%b32")->atype = CPTX_F32;
	probe(p, CVT, CPTX_E4M3X2, finite, "cvt.rn.satfinite.e4m3x2.f16x2 %%d16, %%a32")->atype = CPTX_F16X2;
	probe(p, CVT, CPTX_E5M2X2, finite, "cvt.rn.satfinite.e5m2x2.f16x2 %%d16, %%a32")->atype = CPTX_F16X2;
	probe(p, CVT, CPTX_F16X2, nothing, "cvt.rn.f16x2.e4m3x2 %%d32, %%a16")->atype = CPTX_E4M3X2;
	probe(p, CVT, CPTX_F16X2, nothing, "cvt.rn.f16x2.e5m2x2 %%d32, %%a16")->atype = CPTX_E5M2X2;
}

#define THREE(name, value)                                                                                                  \
	static uint64_t name(uint64_t a, uint64_t b, uint64_t c)                                                                \
	{                                                                                                                       \
		(void)a, (void)b, (void)c;                                                                                          \
		return value;                                                                                                       \
	}
THREE(sad_s32, num_sad(CPTX_S32, a, b, c))
THREE(mad_hi_sat, num_mad_hi_sat((uint32_t)a, (uint32_t)b, (uint32_t)c))
THREE(mul24_hi, num_mul24(CPTX_S32, true, (uint32_t)a, (uint32_t)b))
THREE(bfe_s64, num_bfe(CPTX_S64, a, (uint32_t)b % 300, (uint32_t)c % 300))
THREE(bfe_u32, num_bfe(CPTX_U32, a, (uint32_t)b, (uint32_t)c))
THREE(bfind_s32, num_bfind(CPTX_S32, a, true))
THREE(fns, num_fns((uint32_t)a, (uint32_t)b & 31, (int32_t)c))
THREE(szext_clamp, num_szext(CPTX_S32, CPTX_CLAMP, (uint32_t)a, (uint32_t)b))
THREE(bmsk_clamp, num_bmsk(CPTX_CLAMP, (uint32_t)a, (uint32_t)b))
THREE(bmsk_wrap, num_bmsk(CPTX_WRAP, (uint32_t)a, (uint32_t)b))
THREE(prmt, num_prmt(0, (uint32_t)a, (uint32_t)b, (uint32_t)c))
THREE(prmt_ecl, num_prmt(CPTX_ECL, (uint32_t)a, (uint32_t)b, (uint32_t)c))
THREE(prmt_b4e, num_prmt(CPTX_B4E, (uint32_t)a, (uint32_t)b, (uint32_t)c))
THREE(shf_l, num_shf(CPTX_L, CPTX_CLAMP, (uint32_t)a, (uint32_t)b, (uint32_t)c))
THREE(dp4a, num_dp4a(CPTX_S32, CPTX_U32, (uint32_t)a, (uint32_t)b, (uint32_t)c))
THREE(dp2a, num_dp2a(true, CPTX_U32, CPTX_S32, (uint32_t)a, (uint32_t)b, (uint32_t)c))
THREE(lop3, num_lop3((uint32_t)a, (uint32_t)b, (uint32_t)c, 0xd2))

static void add_integers(struct probes *p)
{
	static const struct {
		const char *text;
		uint64_t (*fn)(uint64_t, uint64_t, uint64_t);
	} row[] = { { "sad.s32 %d32, %a32, %b32, %c32", sad_s32 },
		        { "mad.hi.sat.s32 %d32, %a32, %b32, %c32", mad_hi_sat },
		        { "mul24.hi.s32 %d32, %a32, %b32", mul24_hi },
		        { "rem.u32 %b32, %b32, 300; rem.u32 %c32, %c32, 300; bfe.s64 %d64, %a64, %b32, %c32", bfe_s64 },
		        { "bfe.u32 %d32, %a32, %b32, %c32", bfe_u32 },
		        { "bfind.shiftamt.s32 %d32, %a32", bfind_s32 },
		        { "and.b32 %b32, %b32, 31; fns.b32 %d32, %a32, %b32, %c32", fns },
		        { "szext.clamp.s32 %d32, %a32, %b32", szext_clamp },
		        { "bmsk.clamp.b32 %d32, %a32, %b32", bmsk_clamp },
		        { "bmsk.wrap.b32 %d32, %a32, %b32", bmsk_wrap },
		        { "prmt.b32 %d32, %a32, %b32, %c32", prmt },
		        { "prmt.b32.ecl %d32, %a32, %b32, %c32", prmt_ecl },
		        { "prmt.b32.b4e %d32, %a32, %b32, %c32", prmt_b4e },
		        { "shf.l.clamp.b32 %d32, %a32, %b32, %c32", shf_l },
		        { "dp4a.s32.u32 %d32, %a32, %b32, %c32", dp4a },
		        { "dp2a.hi.u32.s32 %d32, %a32, %b32, %c32", dp2a },
		        { "lop3.b32 %d32, %a32, %b32, %c32, 0xd2", lop3 } };
	for (unsigned i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct probe *r = probe(p, BITS3, strstr(row[i].text, "%d64") ? CPTX_U64 : CPTX_U32, nothing, "%s", row[i].text);
		r->fn = row[i].fn;
	}
	static const struct {
		const char *name;
		uint8_t type;
	} ints[] = { { "u16", CPTX_U16 }, { "s16", CPTX_S16 }, { "u32", CPTX_U32 },
		         { "s32", CPTX_S32 }, { "u64", CPTX_U64 }, { "s64", CPTX_S64 } };
	for (unsigned i = 0; i < 6; i++) {
		unsigned type = ints[i].type, width = width_of(type);
		probe(p, DIV, type, nothing, "div.%s %s", ints[i].name, operands(2, width));
		probe(p, REM, type, nothing, "rem.%s %s", ints[i].name, operands(2, width));
		probe(p, MULHI, type, nothing, "mul.hi.%s %s", ints[i].name, operands(2, width));
	}
	probe(p, ADD, CPTX_S32, (struct num_mode){ .sat = true }, "add.sat.s32 %s", operands(2, 32));
	probe(p, SUB, CPTX_S32, (struct num_mode){ .sat = true }, "sub.sat.s32 %s", operands(2, 32));
	probe(p, MIN, CPTX_S16X2, (struct num_mode){ .relu = true }, "min.relu.s16x2 %s", operands(2, 32));
}

/* ---- text, operands, comparison ---- */
static char *module_text(const struct probes *p)
{
	size_t size = 1024 + p->n * 1400, n;
	char *text = malloc(size);
	ck_assert_ptr_nonnull(text);
	n = (size_t)snprintf(text, size, ".version 8.1\n.target sm_90\n.address_size 64\n");
	for (size_t i = 0; i < p->n; i++) {
		const struct probe *r = &p->row[i];
		unsigned width = width_of(r->dtype);
		const char *store = r->op == SETP ? "selp.b64 %d64, 1, 0, %p;"
		                    : width == 64 ? ""
		                    : width == 32 ? "mov.b64 %d64, {%d32, 0};"
		                                  : "mov.b32 %d32, {%d16, 0}; mov.b64 %d64, {%d32, 0};";
		n += (size_t)snprintf(
			text + n, size - n,
			".visible .entry k%zu(.param .u64 in, .param .u64 out)\n{\n"
			"\t.reg .b16 %%a16, %%b16, %%c16, %%d16, %%h; .reg .b32 %%a32, %%b32, %%c32, %%d32, %%i, %%t; .reg .pred %%p;\n"
			"\t.reg .b64 %%a64, %%b64, %%c64, %%d64, %%in, %%out;\n"
			"\tmov.u32 %%i, %%ctaid.x; mov.u32 %%t, %%tid.x; mad.lo.u32 %%i, %%i, %d, %%t;\n"
			"\tld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];\n"
			"\tmad.wide.u32 %%in, %%i, 24, %%in; mad.wide.u32 %%out, %%i, 8, %%out;\n"
			"\tld.global.b64 %%a64, [%%in]; ld.global.b64 %%b64, [%%in+8]; ld.global.b64 %%c64, [%%in+16];\n"
			"\tcvt.u32.u64 %%a32, %%a64; cvt.u32.u64 %%b32, %%b64; cvt.u32.u64 %%c32, %%c64;\n"
			"\tcvt.u16.u32 %%a16, %%a32; cvt.u16.u32 %%b16, %%b32; cvt.u16.u32 %%c16, %%c32;\n"
			"\t%s;\n\t%s\n\tst.global.b64 [%%out], %%d64;\n\tret;\n}\n",
			i, BLOCK, r->text, store);
		ck_assert(n < size);
	}
	return text;
}

/* Each row holds numbers of all types: low halves of operands are f16 and bf16, low words f32. */
static void fill(uint64_t *in)
{
	uint64_t state = 9;
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned k = 0; k < 3; k++) {
			uint64_t like = k ? in[3 * i + k - 1] : 0, d;
			switch (i % 4) {
			case 0: d = ref_operand(&state, 8, 23, k ? like : (uint64_t)127 << 23) | ref_random(&state) << 32; break;
			case 1: d = ref_operand(&state, 11, 52, k ? like : (uint64_t)1023 << 52); break;
			case 2:
				d = ref_operand(&state, 5, 10, k ? like : 15 << 10) | ref_operand(&state, 8, 7, k ? like >> 16 : 127 << 7)
				                                                          << 16;
				break;
			default: d = ref_random(&state) >> ref_random(&state) % 64;
			}
			in[3 * i + k] = d;
		}
}

START_TEST(test_against_gpu)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open("cuda", &err);
	if (!dev) {
		skip("needs a GPU: %s", err.text);
		return;
	}
	struct probes p = { 0 };
	add_floats(&p);
	add_conversions(&p);
	add_integers(&p);
	char *text = module_text(&p);
	cptx_program *program = cptx_device_load_text(dev, text, strlen(text), NULL, &err);
	ck_assert_msg(program != NULL, "%s", err.text);
	uint64_t *in = malloc(ROWS * 3 * sizeof *in), *out = malloc(ROWS * sizeof *out);
	ck_assert(in && out);
	fill(in);
	uint64_t gin = cptx_mem_alloc(dev, ROWS * 3 * sizeof *in, &err), gout = cptx_mem_alloc(dev, ROWS * sizeof *out, &err);
	ck_assert(cptx_mem_write(dev, gin, in, ROWS * 3 * sizeof *in, &err));
	unsigned wrong = 0;
	for (size_t i = 0; i < p.n; i++) {
		const struct probe *r = &p.row[i];
		char name[32];
		snprintf(name, sizeof name, "k%zu", i);
		cptx_launch_once(program, name,
		                 &(cptx_launch_opt){ .grid = { ROWS / BLOCK }, .block = { BLOCK }, CPTX_ARGS(gin, gout) }, NULL,
		                 &err);
		ck_assert_msg(cptx_mem_read(dev, out, gout, ROWS * sizeof *out, &err), "%s", err.text);
		uint64_t mask = UINT64_MAX >> (64 - (r->op == SETP ? 64 : width_of(r->dtype)));
		unsigned rows = 0, first = 0;
		for (unsigned k = 0; k < ROWS; k++)
			if ((emulate(r, &in[3 * k]) & mask) != out[k] && !rows++)
				first = k;
		if (!rows)
			continue;
		wrong++;
		const uint64_t *x = &in[3 * first];
		printf("%s: %u of %d differ, as %llx %llx %llx: %llx, emulated %llx\n", r->text, rows, ROWS,
		       (unsigned long long)x[0], (unsigned long long)x[1], (unsigned long long)x[2], (unsigned long long)out[first],
		       (unsigned long long)(emulate(r, x) & mask));
	}
	printf("%zu instructions, %d rows each\n", p.n, ROWS);
	cptx_mem_free(dev, gin);
	cptx_mem_free(dev, gout);
	free(in);
	free(out);
	free(text);
	free(p.row);
	cptx_program_destroy(program);
	cptx_device_close(dev);
	ck_assert_msg(wrong == 0, "%u instructions differ", wrong);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("num_gpu");
	TCase *t = tcase_create("gpu");
	tcase_set_timeout(t, 300);
	tcase_add_test(t, test_against_gpu);
	suite_add_tcase(s, t);
	return test_main("num_gpu", s);
}
