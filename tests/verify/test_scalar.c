/* SPDX-License-Identifier: MIT */
/* Instructions whose operands are unlike others: textures, calls, parts of registers, registers of 8 bits. */
#include "verify.h"

#include <cptx/insn.h>

static cptx_kernel *k;

static void begin(void)
{
	blank();
	k = cptx_kernel_begin(s.m, "k");
}

/* ---- textures ---- */

static cptx_val at(cptx_val x, cptx_val y) { return cptx_pack(k, 2, ((cptx_val[]){ x, y })); }

static cptx_val sample(cptx_val texture, cptx_val sampler)
{
	cptx_val x = cptx_reg(k, CPTX_F32), y = cptx_reg(k, CPTX_F32);
	return cptx_tex(k, texture, at(x, y), .b = sampler, .geom = CPTX_DIM_2D, .vec = CPTX_V4, .dtype = CPTX_F32);
}

START_TEST(samplers_by_name)
{
	begin();
	cptx_val t = cptx_global(s.m, CPTX_B32, 1, "image", .space = CPTX_TEXREF);
	cptx_val by = cptx_global(s.m, CPTX_B32, 1, "linear", .space = CPTX_SAMPLERREF);
	ck_assert_uint_eq(sample(t, by).count, 4);
	cptx_txq(k, by, .query = CPTX_FILTER_MODE);
	shows("sm_80", ".target sm_80, texmode_independent\n.address_size 64\n", ".global .texref image;",
	      ".global .samplerref linear;", "\ttex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [image, linear, {%f1, %f2}];\n",
	      "txq.filter_mode.b32 %r1, [linear];", NULL);
}
END_TEST

START_TEST(samplers_in_registers)
{
	begin();
	cptx_val t = cptx_reg(k, CPTX_U64);
	sample(t, cptx_reg(k, CPTX_U64));
	shows("sm_80", ".target sm_80, texmode_independent\n", "[%rd1, %rd2, {%f1, %f2}];", NULL);
	begin();
	sample(cptx_reg(k, CPTX_U64), (cptx_val){ 0 });
	shows("sm_80", ".target sm_80\n", "[%rd1, {%f1, %f2}];", NULL);
}
END_TEST

START_TEST(samplers_are_all_or_none)
{
	begin();
	cptx_val t = cptx_reg(k, CPTX_U64);
	sample(t, cptx_reg(k, CPTX_U64));
	sample(t, (cptx_val){ 0 });
	cannot_print("sm_80", CPTX_E_ARG, "tex without a sampler, while the module names samplers");
	begin();
	t = cptx_reg(k, CPTX_U64);
	sample(t, (cptx_val){ 0 });
	sample(t, cptx_reg(k, CPTX_U64));
	cannot_print("sm_80", CPTX_E_ARG, "tex with a sampler, while others of the module have none");
}
END_TEST

/* In text, braces tell an offset from a depth. */
START_TEST(depth_or_offset)
{
	begin();
	cptx_val t = cptx_reg(k, CPTX_U64), c = cptx_reg(k, CPTX_F32), d = cptx_regs(k, CPTX_F32, 4), b = cptx_reg(k, CPTX_B32);
	cptx_asm(k, "tex.1d.v4.f32.f32 {}, [{}, {{}}], {};", d, t, c, b);
	cptx_asm(k, "tex.1d.v4.f32.f32 {}, [{}, {{}}], {{}};", d, t, c, b);
	cptx_asm(k, "tex.1d.v4.f32.f32 {}, [{}, {{}}], {{}}, {};", d, t, c, b, c);
	cptx_asm(k, "tex.1d.v4.f32.f32 {}, [{}, {}];", d, t, c);
	shows("sm_80", "[%rd1, {%f1}], %r1;\n", "[%rd1, {%f1}], {%r1};\n", "[%rd1, {%f1}], {%r1}, %f1;\n", "[%rd1, {%f1}];\n",
	      NULL);
}
END_TEST

START_TEST(bad_textures)
{
	fresh();
	k = s.k;
	REFUSED(CPTX_E_FORM, "f16x2 comes as .v2",
	        cptx_tex(k, s.ptr, at(s.f, s.f), .geom = CPTX_DIM_2D, .vec = CPTX_V4, .dtype = CPTX_F16X2));
	fresh();
	k = s.k;
	REFUSED(CPTX_E_FORM, "a is no register with a handle", cptx_txq(k, cptx_offset(s.ptr, 4), .query = CPTX_WIDTH));
	fresh();
	k = s.k;
	REFUSED(CPTX_E_FORM, "more than 128 bits",
	        cptx_suld(k, s.ptr, at(s.a, s.b), .geom = CPTX_DIM_2D, .vec = CPTX_V4, .type = CPTX_B64, .oob = CPTX_TRAP));
}
END_TEST

/* ---- registers of 8 bits ---- */

START_TEST(bytes)
{
	begin();
	cptx_val f = cptx_reg(k, CPTX_F32), h = cptx_reg(k, CPTX_BF16);
	cptx_val two = cptx_cvt(k, f, .b = f, .rnd = CPTX_RN, .satfinite = 1, .dtype = CPTX_E2M1X2);
	ck_assert_uint_eq(two.type, CPTX_E2M1X2);
	cptx_cvt(k, cptx_as(two, CPTX_U8), .dtype = CPTX_U16);
	cptx_val byte = cptx_cvt(k, h, .rnd = CPTX_RZI, .dtype = CPTX_U8);
	ck_assert_uint_eq(byte.type, CPTX_U8);
	cptx_cvt(k, byte, .rnd = CPTX_RN, .dtype = CPTX_BF16);
	shows("sm_100a", ".reg .b8 %c<3>;", "\tcvt.rn.satfinite.e2m1x2.f32 %c1, %f1, %f1;\n\tcvt.u16.u8 %h2, %c1;\n",
	      "\tcvt.rzi.u8.bf16 %c2, %h1;\n\tcvt.rn.bf16.u8 %h3, %c2;\n", NULL);
}
END_TEST

START_TEST(wider_than_bytes)
{
	begin();
	cptx_val byte = cptx_reg(k, CPTX_U8);
	ck_assert_uint_eq(cptx_cvt(k, byte, .dtype = CPTX_U8, .atype = CPTX_U16).type, CPTX_U16);
	shows("sm_75", "\tcvt.u8.u16 %h2, %h1;\n", NULL);
}
END_TEST

/* ---- predicates ---- */

START_TEST(predicates)
{
	begin();
	cptx_val p = cptx_is_explicit_cluster(k);
	ck_assert_uint_eq(p.type, CPTX_PRED);
	cptx_mov(k, 0, .into = p, .type = CPTX_PRED);
	cptx_mov(k, -1, .into = p, .type = CPTX_PRED);
	cptx_xor(k, p, -1, .into = p);
	shows("sm_90",
	      "\tmov.pred %p1, %is_explicit_cluster;\n\tmov.pred %p1, 0;\n\tmov.pred %p1, -1;\n\txor.pred %p1, %p1, -1;\n",
	      NULL);
	REFUSES(CPTX_E_FORM, "is a predicate: a register, 0 or 1", cptx_mov(s.k, 2, .into = s.p, .type = CPTX_PRED));
	REFUSES(CPTX_E_FORM, "is a predicate", cptx_mov(s.k, cptx_sreg_val(CPTX_SREG_IS_EXPLICIT_CLUSTER), .type = CPTX_U32));
}
END_TEST

/* ---- calls ---- */

static cptx_val list(cptx_val v) { return cptx_list(s.k, 1, &v); }

START_TEST(calls)
{
	static const enum cptx_type parameters[] = { CPTX_U32 };

	fresh();
	cptx_call_func(s.k, s.func, .r = list(s.a), .a = list(s.b));
	cptx_call_func(s.k, s.func, .r = list(cptx_sink()), .a = list(cptx_imm(5)), .uni = 1);
	cptx_val proto = cptx_prototype(s.k, CPTX_U32, 1, parameters), to = cptx_reg(s.k, CPTX_U64);
	cptx_call_ptr(s.k, to, proto, .r = list(s.a), .a = list(s.b));
	shows("sm_80", "\tcall (%r1), twice, (%r2);\n\tcall.uni (_), twice, (5);\n",
	      ": .callprototype (.param .b32 _) _(\n\t.param .b32 _\n);\n", "\tcall (%r1), %rd", ", (%r2), $L0;\n", NULL);
}
END_TEST

START_TEST(bad_calls)
{
	REFUSES(CPTX_E_ARG, "the function has 1 parameters and 1 results, the call 0 and 1",
	        cptx_call_func(s.k, s.func, .r = list(s.a)));
	REFUSES(CPTX_E_ARG, "the call 1 and 0", cptx_call_func(s.k, s.func, .a = list(s.a)));
	REFUSES(CPTX_E_ARG, "argument 0 is a .f64 register, the function has .b32 there",
	        cptx_call_func(s.k, s.func, .r = list(s.a), .a = list(s.d)));
	REFUSES(CPTX_E_ARG, "argument 0 is the sink _", cptx_call_func(s.k, s.func, .r = list(s.a), .a = list(cptx_sink())));
	REFUSES(CPTX_E_ARG, "a result goes to a register", cptx_call_func(s.k, s.func, .r = list(cptx_imm(1)), .a = list(s.a)));
}
END_TEST

START_TEST(table_of_branches)
{
	begin();
	cptx_val l[] = { cptx_label(k), cptx_label(k) };
	cptx_brx_idx(k, cptx_tid_x(k), cptx_targets(k, 2, l));
	cptx_place(k, l[0]);
	cptx_exit(k);
	cptx_place(k, l[1]);
	shows("sm_75", ": .branchtargets $L0, $L1;\n", "\tbrx.idx %r1, $L2;\n", "$L0:\n\texit;\n$L1:\n", NULL);
}
END_TEST

/* ---- parts of registers ---- */

START_TEST(parts)
{
	begin();
	cptx_val a = cptx_reg(k, CPTX_S32), b = cptx_reg(k, CPTX_U32), d = cptx_reg(k, CPTX_S32);
	cptx_vadd(k, cptx_select(a, "b1"), cptx_select(b, "h0"), .dtype = CPTX_S32, .sat = 1);
	cptx_vadd(k, a, b, .c = a, .dtype = CPTX_S32, .into = cptx_select(d, "h1"));
	cptx_vmad(k, cptx_negated(a), b, a, .dtype = CPTX_S32, .scale = CPTX_SHR7);
	shows("sm_75", "\tvadd.s32.s32.u32.sat %r4, %r1.b1, %r2.h0;\n\tvadd.s32.s32.u32 %r3.h1, %r1, %r2, %r1;\n",
	      "\tvmad.s32.s32.u32.shr7 %r5, -%r1, %r2, %r1;\n", NULL);
	begin();
	a = cptx_reg(k, CPTX_S32);
	REFUSED(CPTX_E_FORM, "the product and c cannot both be negated",
	        cptx_vmad(k, cptx_negated(a), a, cptx_negated(a), .dtype = CPTX_S32));
}
END_TEST

START_TEST(bad_constants)
{
	REFUSES(CPTX_E_FORM, "not a multiple of 8", cptx_setmaxnreg(s.k, 100, .op = CPTX_INC));
	REFUSES(CPTX_E_FORM, "not a power of two", cptx_alloca(s.k, s.ptr, .n = cptx_imm(24)));
}
END_TEST

/* As bits, -0 would be another number than 0, and a NaN would equal itself. */
START_TEST(numbers_are_compared_as_numbers)
{
	begin();
	cptx_val f = cptx_reg(k, CPTX_F32), d = cptx_reg(k, CPTX_F64), h = cptx_reg(k, CPTX_F16), w = cptx_reg(k, CPTX_U32);
	cptx_val p = cptx_setp(k, f, f, .cmp = CPTX_EQ);
	cptx_setp(k, f, 0.0f, .cmp = CPTX_NE);
	cptx_setp(k, d, d, .cmp = CPTX_EQ);
	cptx_setp(k, h, h, .cmp = CPTX_EQ);
	cptx_setp(k, f, f, .cmp = CPTX_EQ, .boolop = CPTX_AND, .c = p);
	cptx_set(k, f, f, .cmp = CPTX_EQ, .dtype = CPTX_U32);
	cptx_setp(k, w, w, .cmp = CPTX_EQ);
	cptx_setp(k, f, f, .cmp = CPTX_EQ, .type = CPTX_B32);
	shows("sm_80", "setp.eq.f32 %p1, %f1, %f1;", "setp.ne.f32 %p2, %f1, 0f00000000;", "setp.eq.f64", "setp.eq.f16",
	      "setp.eq.and.f32", "set.eq.u32.f32", "setp.eq.u32", "setp.eq.b32 %p7, %f1, %f1;", NULL);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		numbers_are_compared_as_numbers,
		samplers_by_name,
		samplers_in_registers,
		samplers_are_all_or_none,
		depth_or_offset,
		bad_textures,
		bytes,
		wider_than_bytes,
		predicates,
		calls,
		bad_calls,
		table_of_branches,
		parts,
		bad_constants,
	};
	return verify_run("scalar", tests, ARRAY_LEN(tests), true);
}
