/* SPDX-License-Identifier: MIT */
/* What loops over lanes calculate in the host's arithmetic is what num.h says, for special and random operands. */
#include "trial.h"

#include "arch/arch.h"
#include "device/operand.h"
#include "emu/num/num.h"

enum { LANES = 4096, BLOCK = 128 };
static const struct num_mode plain, ftz = { .ftz = true }, rzi = { .rnd = CPTX_RZI };

typedef uint64_t (*expected)(uint64_t a, uint64_t b, uint64_t c);
typedef struct loop {
	const char *insn; /* of %d, %a, %b, %c */
	uint8_t dtype, type, ctype;
	expected fn;
} loop;

#define SAME(name, expr)                                                                                                    \
	static uint64_t name(uint64_t a, uint64_t b, uint64_t c)                                                                \
	{                                                                                                                       \
		(void)b, (void)c;                                                                                                   \
		return expr;                                                                                                        \
	}
/* add, sub, mul, fma, min, max of a type. */
#define SIX(suffix, type, mode)                                                                                             \
	SAME(add_##suffix, num_add(type, a, b, &mode))                                                                          \
	SAME(sub_##suffix, num_sub(type, a, b, &mode))                                                                          \
	SAME(mul_##suffix, num_mul(type, a, b, &mode))                                                                          \
	SAME(fma_##suffix, num_fma(type, a, b, c, &mode))                                                                       \
	SAME(min_##suffix, num_min(type, a, b, &mode))                                                                          \
	SAME(max_##suffix, num_max(type, a, b, &mode))
#define ROW2(op, text, type, suffix)                                                                                        \
	{                                                                                                                       \
		op text " %d, %a, %b;", type, type, type, suffix                                                                    \
	}
#define ROWS(suffix, text, lo, mad, type)                                                                                   \
	ROW2("add", text, type, add_##suffix), ROW2("sub", text, type, sub_##suffix), ROW2("mul" lo, text, type, mul_##suffix), \
		ROW2("min", text, type, min_##suffix), ROW2("max", text, type, max_##suffix),                                       \
	{                                                                                                                       \
		mad lo text " %d, %a, %b, %c;", type, type, type, fma_##suffix                                                      \
	}
SIX(u16, CPTX_U16, plain)
SIX(s16, CPTX_S16, plain)
SIX(u32, CPTX_U32, plain)
SIX(s32, CPTX_S32, plain)
SIX(u64, CPTX_U64, plain)
SIX(s64, CPTX_S64, plain)
SIX(f32, CPTX_F32, plain)
SIX(f32z, CPTX_F32, ftz)
SIX(f64, CPTX_F64, plain)
SIX(f16, CPTX_F16, plain)
SIX(f16x2, CPTX_F16X2, plain)
SIX(bf16, CPTX_BF16, plain)
SIX(bf16x2, CPTX_BF16X2, plain)

SAME(wide_u32, num_mul_wide(CPTX_U32, a, b))
SAME(wide_s32, num_mul_wide(CPTX_S32, a, b))
SAME(wide_u16, num_mul_wide(CPTX_U16, a, b))
SAME(wide_s16, num_mul_wide(CPTX_S16, a, b))
SAME(mad_wide_s32, num_mul_wide(CPTX_S32, a, b) + c)
SAME(mad_wide_u32, num_mul_wide(CPTX_U32, a, b) + c)
SAME(lop3, num_lop3((uint32_t)a, (uint32_t)b, (uint32_t)c, 0x1d))
SAME(shl_b32, num_shl(CPTX_B32, a, (uint32_t)b))
SAME(shl_b16, num_shl(CPTX_B16, a, (uint32_t)c))
SAME(shr_u32, num_shr(CPTX_U32, a, (uint32_t)b))
SAME(shr_s32, num_shr(CPTX_S32, a, (uint32_t)b))
SAME(shr_u16, num_shr(CPTX_U16, a, (uint32_t)c))
SAME(shr_s64_17, num_shr(CPTX_S64, a, 17))
SAME(shl_b64_33, num_shl(CPTX_B64, a, 33))
SAME(mul_hi_u32, num_mul_hi(CPTX_U32, a, b))
SAME(mul_hi_s32, num_mul_hi(CPTX_S32, a, b))
SAME(popc_b32, num_popc(CPTX_B32, a))
SAME(clz_b32, num_clz(CPTX_B32, a))
SAME(bfe_u32, num_bfe(CPTX_U32, a, (uint32_t)b, (uint32_t)c))
SAME(shf_l, num_shf(CPTX_L, CPTX_WRAP, (uint32_t)a, (uint32_t)b, (uint32_t)c))
SAME(shf_r, num_shf(CPTX_R, CPTX_WRAP, (uint32_t)a, (uint32_t)b, (uint32_t)c))
SAME(prmt, num_prmt(0, (uint32_t)a, (uint32_t)b, (uint32_t)c))
SAME(not_b16, ~a & 0xffff)
SAME(abs_s32, num_abs(CPTX_S32, a, &plain))
SAME(abs_f32, num_abs(CPTX_F32, a, &plain))
SAME(neg_f64, num_neg(CPTX_F64, a, &plain))

SAME(cvt_s64_s32, num_cvt(CPTX_S64, CPTX_S32, a, &plain))
SAME(cvt_u16_u32, num_cvt(CPTX_U16, CPTX_U32, a, &plain))
SAME(cvt_s32_s8, num_cvt(CPTX_S32, CPTX_S8, a, &plain))
SAME(cvt_u32_s16, num_cvt(CPTX_U32, CPTX_S16, a, &plain))
SAME(cvt_f32_s32, num_cvt(CPTX_F32, CPTX_S32, a, &plain))
SAME(cvt_f32_u32, num_cvt(CPTX_F32, CPTX_U32, a, &plain))
SAME(cvt_f64_s32, num_cvt(CPTX_F64, CPTX_S32, a, &plain))
SAME(cvt_s32_f32, num_cvt(CPTX_S32, CPTX_F32, a, &rzi))
SAME(cvt_f32_f64, num_cvt(CPTX_F32, CPTX_F64, a, &plain))
SAME(cvt_f32_f16, num_cvt(CPTX_F32, CPTX_F16, a, &plain))
SAME(cvt_f32_bf16, num_cvt(CPTX_F32, CPTX_BF16, a, &plain))
SAME(cvt_f16_f32, num_cvt(CPTX_F16, CPTX_F32, a, &plain))
SAME(cvt_bf16_f32, num_cvt(CPTX_BF16, CPTX_F32, a, &plain))
SAME(cvt_f16x2_f32, num_cvt_pack(CPTX_F16X2, (uint32_t[]){ (uint32_t)a, (uint32_t)b }, &plain))
SAME(cvt_bf16x2_f32, num_cvt_pack(CPTX_BF16X2, (uint32_t[]){ (uint32_t)a, (uint32_t)b }, &plain))

static const loop loops[] = {
	ROWS(u16, ".u16", ".lo", "mad", CPTX_U16),
	ROWS(s16, ".s16", ".lo", "mad", CPTX_S16),
	ROWS(u32, ".u32", ".lo", "mad", CPTX_U32),
	ROWS(s32, ".s32", ".lo", "mad", CPTX_S32),
	ROWS(u64, ".u64", ".lo", "mad", CPTX_U64),
	ROWS(s64, ".s64", ".lo", "mad", CPTX_S64),
	ROWS(f32, ".f32", "", "fma.rn", CPTX_F32),
	ROWS(f32z, ".ftz.f32", "", "fma.rn", CPTX_F32),
	ROWS(f64, ".f64", "", "fma.rn", CPTX_F64),
	ROWS(f16, ".f16", "", "fma.rn", CPTX_F16),
	ROWS(f16x2, ".f16x2", "", "fma.rn", CPTX_F16X2),
	ROWS(bf16, ".bf16", "", "fma.rn", CPTX_BF16),
	ROWS(bf16x2, ".bf16x2", "", "fma.rn", CPTX_BF16X2),
	{ "mul.wide.u32 %d, %a, %b;", CPTX_U64, CPTX_U32, CPTX_U32, wide_u32 },
	{ "mul.wide.s32 %d, %a, %b;", CPTX_S64, CPTX_S32, CPTX_S32, wide_s32 },
	{ "mul.wide.u16 %d, %a, %b;", CPTX_U32, CPTX_U16, CPTX_U16, wide_u16 },
	{ "mul.wide.s16 %d, %a, %b;", CPTX_S32, CPTX_S16, CPTX_S16, wide_s16 },
	{ "mad.wide.s32 %d, %a, %b, %c;", CPTX_S64, CPTX_S32, CPTX_S64, mad_wide_s32 },
	{ "mad.wide.u32 %d, %a, %b, %c;", CPTX_U64, CPTX_U32, CPTX_U64, mad_wide_u32 },
	{ "lop3.b32 %d, %a, %b, %c, 0x1d;", CPTX_B32, CPTX_B32, CPTX_B32, lop3 },
	{ "shl.b32 %d, %a, %b;", CPTX_B32, CPTX_B32, CPTX_B32, shl_b32 },
	{ "shl.b16 %d, %a, %c;", CPTX_B16, CPTX_B16, CPTX_U32, shl_b16 },
	{ "shr.u32 %d, %a, %b;", CPTX_U32, CPTX_U32, CPTX_U32, shr_u32 },
	{ "shr.s32 %d, %a, %b;", CPTX_S32, CPTX_S32, CPTX_S32, shr_s32 },
	{ "shr.u16 %d, %a, %c;", CPTX_U16, CPTX_U16, CPTX_U32, shr_u16 },
	{ "shr.s64 %d, %a, 17;", CPTX_S64, CPTX_S64, CPTX_S64, shr_s64_17 },
	{ "shl.b64 %d, %a, 33;", CPTX_B64, CPTX_B64, CPTX_B64, shl_b64_33 },
	{ "mul.hi.u32 %d, %a, %b;", CPTX_U32, CPTX_U32, CPTX_U32, mul_hi_u32 },
	{ "mul.hi.s32 %d, %a, %b;", CPTX_S32, CPTX_S32, CPTX_S32, mul_hi_s32 },
	{ "popc.b32 %d, %a;", CPTX_U32, CPTX_B32, CPTX_B32, popc_b32 },
	{ "clz.b32 %d, %a;", CPTX_U32, CPTX_B32, CPTX_B32, clz_b32 },
	{ "bfe.u32 %d, %a, %b, %c;", CPTX_U32, CPTX_U32, CPTX_U32, bfe_u32 },
	{ "shf.l.wrap.b32 %d, %a, %b, %c;", CPTX_B32, CPTX_B32, CPTX_B32, shf_l },
	{ "shf.r.wrap.b32 %d, %a, %b, %c;", CPTX_B32, CPTX_B32, CPTX_B32, shf_r },
	{ "prmt.b32 %d, %a, %b, %c;", CPTX_B32, CPTX_B32, CPTX_B32, prmt },
	{ "not.b16 %d, %a;", CPTX_B16, CPTX_B16, CPTX_B16, not_b16 },
	{ "abs.s32 %d, %a;", CPTX_S32, CPTX_S32, CPTX_S32, abs_s32 },
	{ "abs.f32 %d, %a;", CPTX_F32, CPTX_F32, CPTX_F32, abs_f32 },
	{ "neg.f64 %d, %a;", CPTX_F64, CPTX_F64, CPTX_F64, neg_f64 },
	{ "cvt.s64.s32 %d, %a;", CPTX_S64, CPTX_S32, CPTX_S32, cvt_s64_s32 },
	{ "cvt.u16.u32 %d, %a;", CPTX_U16, CPTX_U32, CPTX_U32, cvt_u16_u32 },
	{ "cvt.s32.s8 %d, %a;", CPTX_S32, CPTX_S32, CPTX_S32, cvt_s32_s8 },
	{ "cvt.u32.s16 %d, %a;", CPTX_U32, CPTX_S16, CPTX_S16, cvt_u32_s16 },
	{ "cvt.rn.f32.s32 %d, %a;", CPTX_F32, CPTX_S32, CPTX_S32, cvt_f32_s32 },
	{ "cvt.rn.f32.u32 %d, %a;", CPTX_F32, CPTX_U32, CPTX_U32, cvt_f32_u32 },
	{ "cvt.rn.f64.s32 %d, %a;", CPTX_F64, CPTX_S32, CPTX_S32, cvt_f64_s32 },
	{ "cvt.rzi.s32.f32 %d, %a;", CPTX_S32, CPTX_F32, CPTX_F32, cvt_s32_f32 },
	{ "cvt.rn.f32.f64 %d, %a;", CPTX_F32, CPTX_F64, CPTX_F64, cvt_f32_f64 },
	{ "cvt.f32.f16 %d, %a;", CPTX_F32, CPTX_F16, CPTX_F16, cvt_f32_f16 },
	{ "cvt.f32.bf16 %d, %a;", CPTX_F32, CPTX_BF16, CPTX_BF16, cvt_f32_bf16 },
	{ "cvt.rn.f16.f32 %d, %a;", CPTX_F16, CPTX_F32, CPTX_F32, cvt_f16_f32 },
	{ "cvt.rn.bf16.f32 %d, %a;", CPTX_BF16, CPTX_F32, CPTX_F32, cvt_bf16_f32 },
	{ "cvt.rn.f16x2.f32 %d, %a, %b;", CPTX_F16X2, CPTX_F32, CPTX_F32, cvt_f16x2_f32 },
	{ "cvt.rn.bf16x2.f32 %d, %a, %b;", CPTX_BF16X2, CPTX_F32, CPTX_F32, cvt_bf16x2_f32 },
};

static uint64_t word_of(const unsigned char *x, unsigned i, unsigned bits)
{
	uint64_t u;

	memcpy(&u, x + i * SLOT, sizeof u);
	return bits < 64 ? u & ((UINT64_C(1) << bits) - 1) : u;
}

START_TEST(loops_and_numbers)
{
	const loop *l = &loops[_i];
	unsigned type[4] = { l->type, l->type, l->ctype, l->dtype }, bits[4];
	unsigned char *x = calloc(LANES, (size_t)4 * SLOT);
	source random = { (uint64_t)_i + 1 };
	char body[2000], *at = body;

	ck_assert_ptr_nonnull(x);
	for (unsigned i = 0; i < 4; i++)
		bits[i] = arch_types[type[i]].bits;
	for (unsigned n = 0; n < LANES; n++)
		for (unsigned i = 0; i < 3; i++) {
			unsigned char *to = x + ((size_t)n * 4 + i) * SLOT;
			operand_fill(to, type[i], i && type[i] == type[i - 1] ? to - SLOT : NULL, &random);
		}
	at += sprintf(at, "{ .reg .b%u %%a, %%b; .reg .b%u %%c; .reg .b%u %%d;", bits[0], bits[2], bits[3]);
	at += sprintf(at, "mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%r1, %%r1, %d, %%r0; mad.wide.u32 %%rd1, %%r1, %d, %%rd0;",
	              BLOCK, 4 * SLOT);
	for (unsigned i = 0; i < 3; i++)
		at += sprintf(at, "ld.global.b%u %%%c, [%%rd1+%u];", bits[i], "abc"[i], i * SLOT);
	sprintf(at, "\n%s\nst.global.b%u [%%rd1+%d], %%d; }", l->insn, bits[3], 3 * SLOT);
	trial t = { .target = "sm_90a",
		        .version = "8.6",
		        .grid = { LANES / BLOCK },
		        .block = { BLOCK },
		        .data = x,
		        .size = (size_t)LANES * 4 * SLOT,
		        .body = body };
	trial_run(&t);
	ck_assert_msg(t.ok, "%s: %s", l->insn, t.err.text);
	for (unsigned n = 0; n < LANES; n++) {
		const unsigned char *row = x + (size_t)n * 4 * SLOT;
		uint64_t a = word_of(row, 0, bits[0]), b = word_of(row, 1, bits[1]), c = word_of(row, 2, bits[2]),
				 d = word_of(row, 3, bits[3]);
		uint64_t due = l->fn(a, b, c);
		due = bits[3] < 64 ? due & ((UINT64_C(1) << bits[3]) - 1) : due;
		ck_assert_msg(d == due, "%s of 0x%llx 0x%llx 0x%llx: 0x%llx, not 0x%llx", l->insn, (unsigned long long)a,
		              (unsigned long long)b, (unsigned long long)c, (unsigned long long)d, (unsigned long long)due);
	}
	free(x);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("emu_loops");
	TCase *c = tcase_create("emu_loops");

	tcase_add_loop_test(c, loops_and_numbers, 0, ARRAY_LEN(loops));
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return test_main("emu_loops", s);
}
