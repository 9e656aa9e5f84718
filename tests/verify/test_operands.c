/* SPDX-License-Identifier: MIT */
/* Parameters, registers, variables and instructions: what the calls do and what they refuse. */
#include "verify.h"

/* ---- parameters ---- */

START_TEST(params)
{
	static const enum cptx_type types[] = { CPTX_U8,   CPTX_S8,  CPTX_B8,  CPTX_U16, CPTX_S16, CPTX_B16,   CPTX_F16,
		                                    CPTX_BF16, CPTX_U32, CPTX_S32, CPTX_B32, CPTX_F32, CPTX_F16X2, CPTX_BF16X2,
		                                    CPTX_U64,  CPTX_S64, CPTX_B64, CPTX_F64, CPTX_PTR };
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		char name[8];
		snprintf(name, sizeof name, "p%zu", i);
		cptx_val v = cptx_param(k, types[i], name);
		ck_assert_int_eq(v.kind, CPTX_VAL_REG);
		ck_assert_uint_eq(cptx_type_bits((enum cptx_type)v.type),
		                  cptx_type_bits(types[i]) < 16 ? 16 : cptx_type_bits(types[i]));
	}
	cptx_val map = cptx_param_bytes(k, 128, 64, "map"),
			 first = cptx_ld(k, cptx_offset(map, 8), .space = CPTX_PARAM, .type = CPTX_U64);
	cptx_st(k, cptx_cvta(k, cptx_mov(k, map, .type = CPTX_U64), .space = CPTX_PARAM), first);
	shows("sm_80", "\t.param .u8 p0,\n\t.param .s8 p1,\n\t.param .b8 p2,\n\t.param .u16 p3,",
	      "\t.param .b16 p6,\n\t.param .b16 p7,", "\t.param .b32 p13,",
	      "\t.param .u64 p18,\n\t.param .align 64 .b8 map[128]\n)", "ld.param.u8 %h1, [p0];", "ld.param.s8", "ld.param.b8",
	      "ld.param.b16 %h7, [p6];", "ld.param.f64 %fd1, [p17];", "cvta.to.global.u64", "ld.param.u64 %rd5, [map+8];",
	      "mov.u64 %rd6, map;", "cvta.param.u64 %rd7, %rd6;", NULL);
}
END_TEST

START_TEST(bad_params)
{
	REFUSES(CPTX_E_ARG, "kernel k: parameter 'x': a scalar parameter has 8 to 64 bits; cptx_param_bytes passes more",
	        cptx_param(s.k, CPTX_B128, "x"));
	REFUSES(CPTX_E_ARG, "8 to 64 bits", cptx_param(s.k, CPTX_PRED, "x"));
	REFUSES(CPTX_E_ARG, "8 to 64 bits", cptx_param(s.k, (enum cptx_type)9999, NULL));
	REFUSES(CPTX_E_ARG, "1 to 4096 bytes and a power of two up to 128 as alignment; 0 and 8 were given",
	        cptx_param_bytes(s.k, 0, 8, "x"));
	REFUSES(CPTX_E_ARG, "4097 and 8 were given", cptx_param_bytes(s.k, 4097, 8, "x"));
	REFUSES(CPTX_E_ARG, "8 and 3 were given", cptx_param_bytes(s.k, 8, 3, "x"));
	REFUSES(CPTX_E_ARG, "8 and 256 were given", cptx_param_bytes(s.k, 8, 256, "x"));
	fresh();
	cptx_kernel *f = cptx_func_begin(s.m, "f", CPTX_TYPE_NONE);
	REFUSED(CPTX_E_ARG, "function f: parameter 'x': byte parameters belong to kernels", cptx_param_bytes(f, 8, 8, "x"));
}
END_TEST

START_TEST(much_parameter_space)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_param_bytes(k, 4096, 16, "x");
	cptx_param_bytes(k, 256, 128, "y");
	shows("sm_80", ".version 7.0\n", NULL);
	blank();
	k = cptx_kernel_begin(s.m, "k");
	cptx_param_bytes(k, 4096, 16, "x");
	cptx_param_bytes(k, 4096, 16, "y");
	shows("sm_80", ".version 8.1\n", NULL);
	fresh();
	for (char name[] = "a"; name[0] < 'h'; name[0]++)
		ck_assert_int_eq(cptx_param_bytes(s.k, 4096, 16, name).kind, CPTX_VAL_SYM);
	REFUSED(CPTX_E_LIMIT, "kernel k: parameter 'h' would end at byte 32784; a kernel has at most 32764 bytes of parameters",
	        cptx_param_bytes(s.k, 4096, 16, "h"));
}
END_TEST

/* ---- registers ---- */

START_TEST(registers)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_val one = cptx_reg(k, CPTX_F16), byte = cptx_reg(k, CPTX_U8), many = cptx_regs(k, CPTX_F32, 65535),
			 p = cptx_reg(k, CPTX_PTR);

	ck_assert_uint_eq(one.count, 1);
	ck_assert_uint_eq(cptx_type_bits((enum cptx_type)byte.type), 16);
	ck_assert_uint_eq(many.count, 65535);
	ck_assert_int_eq(p.type, CPTX_U64);
	ck_assert_int_eq(cptx_reg(k, CPTX_B128).kind, CPTX_VAL_REG);
	cptx_mov(k, 0.5f, .into = cptx_elem(many, 65534));
	shows("sm_90", ".version 8.3\n", ".reg .b16 %h<3>;", ".reg .b32 %f<65536>;", ".reg .b64 %rd<2>;", ".reg .b128 %rq<2>;",
	      "mov.f32 %f65535, 0f3F000000;", NULL);
}
END_TEST

START_TEST(bad_registers)
{
	REFUSES(CPTX_E_ARG, "kernel k: cannot make 0 registers", cptx_regs(s.k, CPTX_U32, 0));
	REFUSES(CPTX_E_ARG, "cannot make 65536 registers", cptx_regs(s.k, CPTX_U32, 65536));
	REFUSES(CPTX_E_ARG, "of type number 9999 (1 to 65535 of a type of isa.h)", cptx_reg(s.k, (enum cptx_type)9999));
	REFUSES(CPTX_E_ARG, "of type number 0", cptx_reg(s.k, CPTX_TYPE_NONE));
}
END_TEST

START_TEST(variables_in_registers)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_val i = cptx_var(k, CPTX_S32, -1);
	cptx_var(k, CPTX_F32, 1);
	cptx_var(k, CPTX_F64, 0.1);
	cptx_var(k, CPTX_U64, UINT64_MAX);
	cptx_var(k, CPTX_U32, i);
	cptx_var(k, CPTX_BF16X2, 0x3f803f80);
	body_is("sm_80",
	        "\tmov.s32 %r1, -1;\n\tmov.f32 %f1, 0f3F800000;\n\tmov.f64 %fd1, 0d3FB999999999999A;\n\tmov.u64 %rd1, -1;\n"
	        "\tmov.s32 %r2, %r1;\n\tmov.b32 %r3, 1065369472;\n\tret;\n");
}
END_TEST

START_TEST(bad_variables_in_registers)
{
	REFUSES(CPTX_E_FORM, "kernel k: mov: .type is missing: write .type = CPTX_B32", cptx_var(s.k, CPTX_U32, s.f));
	REFUSES(CPTX_E_FORM, "mov", cptx_var(s.k, CPTX_U32, 0.5));
	REFUSES(CPTX_E_FORM, "mov", cptx_var(s.k, CPTX_U32, INT64_C(1) << 32));
	REFUSES(CPTX_E_ARG, "mov: operand a belongs to another kernel", cptx_var(s.k, CPTX_U32, s.foreign));
	REFUSES(CPTX_E_ARG, "cannot make 1 registers", cptx_var(s.k, (enum cptx_type)9999, 1));
}
END_TEST

START_TEST(packs)
{
	fresh();
	cptx_val v = cptx_pack(s.k, 2, ((cptx_val[]){ cptx_elem(s.w, 3), cptx_elem(s.w, 0) }));
	ck_assert_int_eq(v.kind, CPTX_VAL_VEC);
	cptx_st(s.k, s.ptr, v, .space = CPTX_GLOBAL);
	cptx_st(s.k, s.ptr, cptx_pack(s.k, 2, ((cptx_val[]){ s.a, s.b })), .space = CPTX_GLOBAL, .type = CPTX_U32);
	cptx_ld(s.k, s.ptr, .space = CPTX_GLOBAL, .into = cptx_pack(s.k, 4, ((cptx_val[]){ s.f, s.f, s.f, s.f })));
	shows("sm_80", "st.global.v2.b32 [%rd1], {%r6, %r3};", "st.global.v2.u32 [%rd1], {%r1, %r2};",
	      "ld.global.v4.f32 {%f1, %f1, %f1, %f1}, [%rd1];", NULL);
}
END_TEST

START_TEST(bad_packs)
{
	REFUSES(CPTX_E_ARG, "kernel k: cptx_pack takes 1 to 65535 registers", cptx_pack(s.k, 0, &s.a));
	REFUSES(CPTX_E_ARG, "cptx_pack takes 1 to 65535 registers", cptx_pack(s.k, 2, NULL));
	REFUSES(CPTX_E_ARG, "cptx_pack: value 1 is not a single register", cptx_pack(s.k, 2, ((cptx_val[]){ s.a, s.w })));
	REFUSES(CPTX_E_ARG, "cptx_pack: value 0 is not a single register",
	        cptx_pack(s.k, 1, ((cptx_val[]){ cptx_sreg_val(CPTX_SREG_TID_X) })));
	REFUSES(CPTX_E_ARG, "cptx_pack: value 0 is not a single register",
	        cptx_pack(s.k, 1, ((cptx_val[]){ cptx_offset(s.a, 4) })));
	REFUSES(CPTX_E_ARG, "an element belongs to another kernel", cptx_pack(s.k, 2, ((cptx_val[]){ s.a, s.foreign })));
	REFUSES(CPTX_E_ARG, "cptx_pack: value 1 is .f64; those before it have another width",
	        cptx_pack(s.k, 2, ((cptx_val[]){ s.a, s.d })));
	REFUSES(CPTX_E_ARG, "cptx_pack: value 1 is not a single register",
	        cptx_pack(s.k, 2, ((cptx_val[]){ s.p, cptx_negated(s.p) })));
}
END_TEST

START_TEST(special_registers)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_mov(k, cptx_sreg_val(CPTX_SREG_CLOCK64));
	cptx_val v = cptx_ctaid_z(k);
	ck_assert_int_eq(v.type, CPTX_U32);
	ck_assert_int_eq(cptx_sreg_val((enum cptx_sreg)9999).kind, CPTX_VAL_BAD);
	body_is("sm_80", "\tmov.u64 %rd1, %clock64;\n\tmov.u32 %r1, %ctaid.z;\n\tret;\n");
	REFUSES(CPTX_E_FORM, "a is a special register; cptx_mov it to a register first",
	        cptx_add(s.k, cptx_sreg_val(CPTX_SREG_TID_X), 1));
	REFUSES(CPTX_E_FORM, "a is no value", cptx_sreg_(s.k, CPTX_HERE, (enum cptx_sreg)9999));
	fresh();
	cptx_cluster_ctarank(s.k);
	cannot_print("sm_80", CPTX_E_TARGET,
	             "kernel k: %cluster_ctarank is not available on sm_80; targets that have it: sm_90 and later");
}
END_TEST

/* ---- memory ---- */

START_TEST(shared_memory)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_val a = cptx_shared(k, CPTX_F32, 3), b = cptx_shared_named(k, CPTX_U8, 5, 256, "bytes"), pa = cptx_mov(k, a);
	cptx_val x = cptx_shared_dyn(k, 100, 4, "x"), y = cptx_shared_dyn(k, 64, 128, "y"), z = cptx_shared_dyn(k, 8, 8, "z");

	ck_assert_int_eq(pa.type, CPTX_U32);
	cptx_st(k, b, 1, .type = CPTX_U8);
	cptx_st(k, x, 1.0f, .type = CPTX_F32);
	cptx_st(k, y, 2, .type = CPTX_U32);
	cptx_st(k, cptx_offset(z, 4), 3, .type = CPTX_U32);
	ck_assert_uint_eq(cptx_kernel_dyn_smem(k), 200);
	shows("sm_80", ".extern .shared .align 128 .b8 __cptx_smem[];", ".shared .align 16 .b8 shared_0[12];",
	      ".shared .align 256 .b8 bytes[5];", "mov.u32 %r1, shared_0;", "st.shared.u8 [bytes], 1;",
	      "st.shared.f32 [__cptx_smem], 0f3F800000;", "st.shared.u32 [__cptx_smem+128], 2;",
	      "st.shared.u32 [__cptx_smem+196], 3;", NULL);
}
END_TEST

START_TEST(bad_shared_memory)
{
	REFUSES(CPTX_E_ARG, "variable 'v': 0 elements of .f32, aligned to 4: it must have at least one element",
	        cptx_shared_named(s.k, CPTX_F32, 0, 4, "v"));
	REFUSES(CPTX_E_ARG, "a power of two up to 1024 as alignment", cptx_shared_named(s.k, CPTX_F32, 1, 12, "v"));
	REFUSES(CPTX_E_ARG, "aligned to 2048", cptx_shared_named(s.k, CPTX_F32, 1, 2048, "v"));
	REFUSES(CPTX_E_ARG, "elements of .pred", cptx_shared(s.k, CPTX_PRED, 1));
	REFUSES(CPTX_E_ARG, "at most 232448 bytes", cptx_shared(s.k, CPTX_F32, 58113));
	REFUSES(CPTX_E_ARG, "at most 232448 bytes", cptx_shared(s.k, CPTX_F64, 0x80000001u));
	REFUSES(CPTX_E_ARG, "dynamic shared memory 'd': 0 bytes aligned to 4; it takes 1 to 232448 bytes",
	        cptx_shared_dyn(s.k, 0, 4, "d"));
	REFUSES(CPTX_E_ARG, "232449 bytes aligned to 4", cptx_shared_dyn(s.k, 232449, 4, "d"));
	REFUSES(CPTX_E_ARG, "4 bytes aligned to 0", cptx_shared_dyn(s.k, 4, 0, "d"));
	fresh();
	cptx_shared_dyn(s.k, 200000, 4, "d");
	REFUSED(CPTX_E_LIMIT, "dynamic shared memory 'e' would end at byte 240000; no target has more than 232448",
	        cptx_shared_dyn(s.k, 40000, 4, "e"));
}
END_TEST

START_TEST(shared_memory_of_targets)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_shared(k, CPTX_B8, 48 * 1024 + 1);
	shows("sm_90a", "shared_0[49153]", NULL);
	cannot_print("sm_90", CPTX_E_LIMIT,
	             "kernel k: 49153 bytes of static shared memory; sm_90 allows 49152. Use cptx_shared_dyn for more");
	blank();
	k = cptx_kernel_begin(s.m, "k");
	cptx_shared(k, CPTX_B8, 1024);
	cptx_shared_dyn(k, 100 * 1024, 16, "d");
	shows("sm_80", "__cptx_smem", NULL);
	cannot_print("sm_86", CPTX_E_LIMIT,
	             "kernel k: 103424 bytes of shared memory (1024 static, 102400 dynamic); a CTA of sm_86 has at most 101376");
}
END_TEST

START_TEST(globals)
{
	static const float table[] = { 1.0f, -2.0f };
	static const uint64_t big = 0x0102030405060708;
	blank();
	cptx_val c = cptx_global(s.m, CPTX_F32, 2, "table", .space = CPTX_CONST, .init = table, .align = 64);
	cptx_val g = cptx_global(s.m, CPTX_U32, 4, "counters", .export_ = true),
			 q = cptx_global(s.m, CPTX_PTR, 1, "where", .init = &big);
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_val v = cptx_ld(k, cptx_offset(c, 4), .type = CPTX_F32);
	cptx_st(k, cptx_mov(k, g), v, .space = CPTX_GLOBAL);
	cptx_ld(k, q, .type = CPTX_U64);
	cptx_cvta(k, cptx_mov(k, c), .space = CPTX_CONST);
	shows("sm_80", ".const .align 64 .b8 table[8]={0, 0, 128, 63, 0, 0, 0, 192};\n",
	      ".visible .global .align 16 .b8 counters[16];\n", ".global .align 16 .b8 where[8]={8, 7, 6, 5, 4, 3, 2, 1};",
	      "ld.const.f32 %f1, [table+4];", "mov.u64 %rd1, counters;", "st.global.f32 [%rd1], %f1;",
	      "ld.global.u64 %rd2, [where];", "cvta.const.u64", NULL);
}
END_TEST

START_TEST(bad_globals)
{
	REFUSES(CPTX_E_ARG, "variable 'g': .space must be CPTX_GLOBAL, CPTX_CONST, or CPTX_TEXREF",
	        cptx_global(s.m, CPTX_U32, 1, "g", .space = CPTX_SHARED));
	REFUSES(CPTX_E_ARG, "variable 'g': 0 elements of .u32", cptx_global(s.m, CPTX_U32, 0, "g"));
	REFUSES(CPTX_E_ARG, "aligned to 3", cptx_global(s.m, CPTX_U32, 1, "g", .align = 3));
	REFUSES(CPTX_E_ARG, "at most 2147483647 bytes", cptx_global(s.m, CPTX_U64, 0x10000000, "g"));
	fresh();
	cptx_global(s.m, CPTX_U8, 65536, "c", .space = CPTX_CONST);
	REFUSED(CPTX_E_LIMIT, "variable 'd': 65537 bytes of constant memory; a module has at most 65536",
	        cptx_global(s.m, CPTX_U8, 1, "d", .space = CPTX_CONST, .align = 1));
}
END_TEST

/* ---- instructions ---- */

START_TEST(what_to_change_comes_first)
{
	REFUSES(CPTX_E_FORM,
	        "kernel k: cvt.bf16.f32: .rnd is missing: write .rnd = CPTX_RN (also CPTX_RZ, CPTX_RM, CPTX_RP)\n    "
	        "cvt.rnd=rn|rz|rm|rp{.ftz}.dtype=bf16.atype=f32 d:dtype, a:atype\n    cvt",
	        cptx_cvt(s.k, s.f, .dtype = CPTX_BF16));
	REFUSES(CPTX_E_FORM, "kernel k: fma.f32: .rnd is missing: write .rnd = CPTX_RN (also CPTX_RZ, CPTX_RM, CPTX_RP)\n",
	        cptx_fma(s.k, s.f, s.f, s.f));
	REFUSES(CPTX_E_FORM, "kernel k: setp.u32: .cmp is missing: write .cmp = CPTX_EQ (also CPTX_NE, CPTX_LT,",
	        cptx_setp(s.k, s.a, s.b));
	REFUSES(CPTX_E_FORM, "kernel k: setp.f32: .cmp = CPTX_LO does not fit: write .cmp = CPTX_EQ (also CPTX_NE, ",
	        cptx_setp(s.k, s.f, s.f, .cmp = CPTX_LO));
	REFUSES(CPTX_E_FORM,
	        "kernel k: add.f64: .sat does not go with it: leave it out\n    add{.rnd=rn|rz|rm|rp}.type=f64 d, a, b",
	        cptx_add(s.k, s.d, s.d, .sat = 1));
	REFUSES(CPTX_E_FORM,
	        "kernel k: add.u32: b is .f64, not .u32; write cptx_cvt(k, b, .dtype = CPTX_U32, .rnd = CPTX_RZI)\n",
	        cptx_add(s.k, s.a, s.d));
	REFUSES(CPTX_E_FORM,
	        "a is .f32, not .u32; write cptx_as(a, CPTX_U32) for the same bits, or cptx_cvt for the same number\n",
	        cptx_mov(s.k, s.f, .type = CPTX_U32));
	REFUSES(CPTX_E_FORM, "b is .u32, not .u64; write cptx_cvt(k, b, .dtype = CPTX_U64)\n", cptx_add(s.k, s.ptr, s.a));
	REFUSES(CPTX_E_FORM, "c is .u32, not .pred; write cptx_setp(k, c, 0, .cmp = CPTX_NE)\n", cptx_selp(s.k, s.a, s.b, s.a));
	REFUSES(CPTX_E_FORM, "d is .f32, not .u32; give .into a register of CPTX_U32, or leave it out\n",
	        cptx_add(s.k, s.a, s.b, .into = s.f));
	REFUSES(CPTX_E_FORM, "kernel k: mul.wide: a is .f32, not .u32", cptx_mul_wide(s.k, s.f, s.f));
	REFUSES(CPTX_E_FORM, "d has 1 register, 4 needed; cptx_regs(k, CPTX_F32, 4) makes them",
	        cptx_mma(s.k, s.w, cptx_slice(s.w, 0, 2), s.w, .shape = CPTX_M16N8K16, .dtype = CPTX_F32, .atype = CPTX_F16,
	                 .into = s.f));
}
END_TEST

static unsigned lines_of(const char *text)
{
	unsigned n = 1;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Three forms, and all on request, as far as the text holds them. */
START_TEST(all_forms_on_request)
{
	cptx_op_info op;
	cptx_form_info form;
	char line[1024];

	fresh();
	cptx_setp(s.k, s.a, s.b);
	ck_assert_uint_eq(lines_of(cptx_module_error(s.m)->text), 1 + 3 + 1);
	ck_assert_ptr_nonnull(
		strstr(cptx_module_error(s.m)->text, "\n    15 more: `cptx insn setp`, or CPTX_FORMS=all in the environment"));
	setenv("CPTX_FORMS", "all", 1);
	fresh();
	cptx_add(s.k, s.ptr, s.a);
	const char *message = cptx_module_error(s.m)->text;
	ck_assert_ptr_nonnull(strstr(message, "b is .u32, not .u64; write"));
	ck_assert(cptx_op_at(CPTX_OP_ADD, &op));
	ck_assert_uint_eq(lines_of(message), 1 + op.nforms);
	for (size_t i = 0; cptx_form_at(CPTX_OP_ADD, i, &form); i++) {
		snprintf(line, sizeof line, "\n    %.*s", (int)strcspn(form.text, "<"), form.text);
		ck_assert_ptr_nonnull(strstr(message, line));
	}
	fresh();
	cptx_cvt(s.k, s.f, .dtype = CPTX_BF16); /* more than fit */
	ck_assert_ptr_nonnull(strstr(cptx_module_error(s.m)->text, " more lines; `cptx insn` lists all forms"));
	unsetenv("CPTX_FORMS");
}
END_TEST

/* Is the line, up to n characters, that form, without availabilities? */
static bool is_form(const char *line, size_t n, size_t op, const cptx_op_info *info)
{
	cptx_form_info form;

	for (size_t f = 0; f < info->nforms && cptx_form_at(op, f, &form); f++) {
		size_t at = 0;
		for (const char *p = form.text; *p && at < n; p++) {
			p += *p == '<' ? strcspn(p, ">") : 0;
			if (*p != '>' && *p != line[at++])
				at = n + 1;
		}
		if (at == n)
			return true;
	}
	return false;
}

static void check_message(size_t i, const cptx_op_info *op, const char *message)
{
	size_t lines = lines_of(message), forms = op->nforms < 3 ? op->nforms : 3, n = strcspn(message, "\n");
	const char *left = strstr(message, " more lines; `cptx insn` lists all forms");
	char more[128];

	snprintf(more, sizeof more, "\n    %zu more: `cptx insn %s`, or CPTX_FORMS=all in the environment", op->nforms - forms,
	         op->name);
	ck_assert_msg(left || (strstr(message, more) != NULL) == (op->nforms > 3), "%s: %s", op->name, message);
	ck_assert_msg(left || lines == 1 + forms + (op->nforms > 3), "%s: %s", op->name, message);
	const char *kernel = strstr(message, "kernel k: "), *colon = kernel ? strstr(kernel + 10, ": ") : NULL;
	ck_assert_msg(colon && colon < message + n && colon[2] != '\n', "%s has no reason: %s", op->name, message);
	for (size_t f = 0; f < forms && message[n]; f++) {
		const char *line = message + n + 5, *end = line + strcspn(line, "\n"), *reason = strstr(line, "  -- ");
		if (!strncmp(line, "and ", 4))
			return;
		bool reasoned = reason && reason + 5 < end;
		ck_assert_msg(reasoned == (f > 0), "%s, form %zu: %s", op->name, f, message);
		ck_assert_msg(is_form(line, (size_t)((reasoned ? reason : end) - line), i, op), "%s, form %zu: %s", op->name, f,
		              message);
		n = (size_t)(end - message);
	}
}

/* A call without any operand fits no form that needs one: its message must name a reason, and forms, whole. */
START_TEST(every_message_is_whole)
{
	cptx_op_info op;
	cptx_val vals[16] = { { 0 } };
	uint16_t mods[32] = { 0 };
	unsigned seen = 0;

	for (size_t i = 0; cptx_op_at(i, &op); i++) {
		fresh();
		size_t n = cptx_module_size(s.m);
		cptx_insn_(s.k, CPTX_HERE, (enum cptx_op)i, vals, mods);
		if (!cptx_module_error(s.m)) {
			ck_assert_uint_eq(cptx_module_size(s.m), n + 1); /* ret, and its like */
			continue;
		}
		seen++;
		check_message(i, &op, cptx_module_error(s.m)->text);
	}
	ck_assert_uint_gt(seen, 40);
}
END_TEST

START_TEST(guards)
{
	fresh();
	cptx_add(s.k, s.a, 1, .into = s.a, .when = s.p);
	cptx_add(s.k, s.a, 2, .into = s.a, .unless = s.p);
	cptx_add(s.k, s.a, 3, .into = s.a, .unless = cptx_negated(s.p));
	shows("sm_80", "\t@%p1 add.u32 %r1, %r1, 1;\n\t@!%p1 add.u32 %r1, %r1, 2;\n\t@%p1 add.u32 %r1, %r1, 3;\n", NULL);
	REFUSES(CPTX_E_ARG, "kernel k: give .when or .unless, not both", cptx_add(s.k, s.a, 1, .when = s.p, .unless = s.p));
	REFUSES(CPTX_E_ARG, "kernel k: .when must be a predicate register", cptx_add(s.k, s.a, 1, .when = s.a));
	REFUSES(CPTX_E_ARG, "kernel k: .unless must be a predicate register", cptx_add(s.k, s.a, 1, .unless = cptx_imm(1)));
}
END_TEST

START_TEST(values_of_others)
{
	REFUSES(CPTX_E_ARG, "kernel k: add: operand a belongs to another kernel or function of the module",
	        cptx_add(s.k, s.foreign, 1));
	REFUSES(CPTX_E_ARG, "add: operand into belongs to another", cptx_add(s.k, s.a, 1, .into = s.foreign));
	REFUSES(CPTX_E_ARG, "add: operand when belongs to another", cptx_add(s.k, s.a, 1, .when = s.foreign));
	REFUSES(CPTX_E_ARG, "bra: operand t belongs to another", cptx_bra(s.k, s.foreign_label));
	REFUSES(CPTX_E_ARG, "kernel k: cptx_place: that is no label of this kernel", cptx_place(s.k, s.foreign_label));
	REFUSES(CPTX_E_ARG, "a value belongs to another kernel", cptx_asm(s.k, "mov.u32 {}, {};", s.a, s.foreign));
	REFUSES(CPTX_E_ARG, "an argument belongs to another kernel", cptx_call(s.k, s.func, 1, &s.foreign));
}
END_TEST

/* Kernels of two modules may have the same number: no value may reach behind what its new kernel has. */
START_TEST(values_of_another_module)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_global(m, CPTX_U32, 1, "g1");
	cptx_val g = cptx_global(m, CPTX_U32, 1, "g2");
	cptx_func_begin(m, "x", CPTX_TYPE_NONE);
	cptx_kernel_begin(m, "y");
	cptx_kernel *k = cptx_kernel_begin(m, "z");
	cptx_val r = cptx_elem(cptx_regs(k, CPTX_U32, 1000), 999), sh = cptx_shared(k, CPTX_U32, 1), l = cptx_label(k),
			 v[2] = { r, r };
	cptx_val vec = cptx_pack(k, 2, v), p = cptx_reg(k, CPTX_PRED);

	REFUSES(CPTX_E_ARG, "kernel k: add: operand a belongs to another kernel or function", cptx_add(s.k, r, 1));
	REFUSES(CPTX_E_ARG, "operand b belongs to another", cptx_st(s.k, s.ptr, vec, .space = CPTX_GLOBAL, .type = CPTX_U32));
	REFUSES(CPTX_E_ARG, "operand a belongs to another", cptx_mov(s.k, sh));
	REFUSES(CPTX_E_ARG, "operand a belongs to another", cptx_mov(s.k, g));
	REFUSES(CPTX_E_ARG, "operand t belongs to another", cptx_bra(s.k, l));
	REFUSES(CPTX_E_ARG, "that is no label of this kernel", cptx_place(s.k, l));
	REFUSES(CPTX_E_ARG, "operand when belongs to another", cptx_add(s.k, s.a, 1, .when = p));
	REFUSES(CPTX_E_ARG, "an element belongs to another", cptx_pack(s.k, 2, v));
	REFUSES(CPTX_E_ARG, "a value belongs to another", cptx_asm(s.k, "mov.u32 {}, {};", s.a, r));
	REFUSES(CPTX_E_ARG, "an argument belongs to another", cptx_call(s.k, s.func, 1, &r));
	cptx_module_destroy(m);
}
END_TEST

START_TEST(unknown_instruction)
{
	cptx_val vals[16] = { { 0 } };
	uint16_t mods[32] = { 0 };
	REFUSES(CPTX_E_ARG, "instruction number 60000 is not in this library's table",
	        cptx_insn_(s.k, CPTX_HERE, (enum cptx_op)60000, vals, mods));
}
END_TEST

enum { LINE_OF_ADD = __LINE__ + 6 };
START_TEST(the_line_is_the_calls)
{
	fresh();
	cptx_kernel *k = s.k;
	cptx_val a = s.a;
	cptx_add(k, a, 0.5);
	ck_assert_uint_eq(cptx_module_error(s.m)->line, LINE_OF_ADD);
	ck_assert_str_eq(cptx_module_error(s.m)->file, __FILE__);
}
END_TEST

START_TEST(names_of_files_are_copied)
{
	char file[] = "my.c";
	blank();
	cptx_kernel *k = cptx_kernel_begin_(s.m, (cptx_site){ file, 7 }, "k", NULL);
	cptx_site at = { file, 8 };
	cptx_sreg_(k, at, CPTX_SREG_TID_X);
	memset(file, 'x', 4);
	cptx_sreg_(k, (cptx_site){ "other.c", 9 }, CPTX_SREG_TID_X);
	char *text = printed("sm_80", &(cptx_emit_opt){ .lines = true });
	ck_assert_ptr_nonnull(strstr(text, ".file 1 \"my.c\"\n.file 2 \"other.c\"\n"));
	free(text);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		params,
		bad_params,
		much_parameter_space,
		registers,
		bad_registers,
		variables_in_registers,
		bad_variables_in_registers,
		packs,
		bad_packs,
		special_registers,
		shared_memory,
		bad_shared_memory,
		shared_memory_of_targets,
		globals,
		bad_globals,
		what_to_change_comes_first,
		all_forms_on_request,
		every_message_is_whole,
		guards,
		values_of_others,
		values_of_another_module,
		unknown_instruction,
		the_line_is_the_calls,
		names_of_files_are_copied,
	};
	return verify_run("operands", tests, ARRAY_LEN(tests), true);
}
