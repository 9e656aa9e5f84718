/* SPDX-License-Identifier: MIT */
/* Instructions as text, pragmas and comments; printing for targets; the map from lines of PTX to those of the user. */
#include "verify.h"

/* ---- cptx_asm ---- */

START_TEST(asm_holes)
{
	fresh();
	cptx_val l = cptx_label(s.k), sh = cptx_shared(s.k, CPTX_F32, 4), x[2] = { s.a, s.b };
	cptx_asm(s.k, "ld.global.v4.b32 {}, [{}+16];", s.w, s.ptr);
	cptx_asm(s.k, "  ld.global.v2.b32 { {}, {} }, [ {} - 8 ] ", s.a, s.b, s.ptr);
	cptx_asm(s.k, "st.shared.f32 [{}+4], {};", sh, s.f);
	cptx_asm(s.k, "st.global.v2.u32 [{}], {};", cptx_offset(s.ptr, 4), cptx_pack(s.k, 2, x));
	cptx_asm(s.k, "@{} bra {};", s.p, l);
	cptx_asm(s.k, "@!{} add.u32 {}, {}, 0x10;", s.p, s.a, s.a);
	cptx_asm(s.k, "fma.rn.f32 {}, {}, 0f3F000000, {};", s.f, s.f, cptx_immf(2));
	cptx_asm(s.k, "add.f64 {}, {}, 0d3FF0000000000000;", s.d, s.d);
	cptx_asm(s.k, "add.s32 {}, {}, -7;", s.a, s.a);
	cptx_asm(s.k, "mov.u32\t{}, %ctaid.y;", s.a);
	cptx_asm(s.k, "setp.lt.u32 {}|{}, {}, {};", s.p, s.p, s.a, cptx_imm(4));
	cptx_asm(s.k, "vote.sync.any.pred {}, !{}, -1;", s.p, s.p);
	cptx_asm(s.k, "bar.sync 0;");
	cptx_asm(s.k, "mov.u32 {}, {};", s.a, sh);
	cptx_place(s.k, l);
	cptx_val d = cptx_asm(s.k, "mov.b32 {}, {};", s.b, s.a), none = cptx_asm(s.k, "ret;");
	ck_assert_msg(!cptx_module_error(s.m), "%s", cptx_module_error(s.m) ? cptx_module_error(s.m)->text : "");
	ck_assert_uint_eq(d.id, s.b.id);
	ck_assert_int_eq(none.kind, CPTX_VAL_NONE);
	shows("sm_80", "ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1+16];", "ld.global.v2.b32 {%r1, %r2}, [%rd1+-8];",
	      "st.shared.f32 [shared_0+4], %f1;", "st.global.v2.u32 [%rd1+4], {%r1, %r2};", "@%p1 bra $L0;",
	      "@!%p1 add.u32 %r1, %r1, 16;", "fma.rn.f32 %f1, %f1, 0f3F000000, 0f40000000;",
	      "add.f64 %fd1, %fd1, 0d3FF0000000000000;", "add.s32 %r1, %r1, -7;", "mov.u32 %r1, %ctaid.y;",
	      "setp.lt.u32 %p1|%p1, %r1, 4;", "vote.sync.any.pred %p1, !%p1, -1;", "bar.sync 0;", "mov.u32 %r1, shared_0;",
	      "$L0:\n\tmov.b32 %r2, %r1;\n\tret;\n}", NULL);
}
END_TEST

/* Vectors with constants and sinks, brackets with more than an address, modifiers that an operand brings along. */
START_TEST(asm_and_calls_with_elements)
{
	fresh();
	cptx_val policy = cptx_reg(s.k, CPTX_B64), map = cptx_reg(s.k, CPTX_U64), bar = cptx_reg(s.k, CPTX_U32);
	cptx_asm(s.k, "st.global.v2.f32 [{}], {0f3F800000, {}};", s.ptr, s.f);
	cptx_st(s.k, s.ptr, cptx_pack(s.k, 2, ((cptx_val[]){ cptx_imm(1), s.f })), .space = CPTX_GLOBAL, .type = CPTX_F32);
	cptx_asm(s.k, "ld.global.L2::cache_hint.u32 {}, [{}], {};", s.a, s.ptr, policy);
	cptx_ld(s.k, s.ptr, .space = CPTX_GLOBAL, .policy = policy, .into = s.a);
	cptx_asm(s.k, "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [{}, {{}, 0}];", map, s.a);
	cptx_asm(s.k, "mbarrier.arrive.shared.b64 _, [{}];", bar);
	cptx_mbarrier_arrive(s.k, bar, .space = CPTX_SHARED, .into = cptx_sink());
	shows("sm_90", "st.global.v2.f32 [%rd1], {0f3F800000, %f1};", "st.global.v2.f32 [%rd1], {0f3F800000, %f1};",
	      "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;", "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
	      "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd3, {%r1, 0}];", "mbarrier.arrive.shared.b64 _, [%r7];",
	      "mbarrier.arrive.shared.b64 _, [%r7];", NULL);
	REFUSES(CPTX_E_FORM, "policy and .l2hint belong together",
	        cptx_ld(s.k, s.ptr, .space = CPTX_GLOBAL, .l2hint = 1, .type = CPTX_U32));
	REFUSES(CPTX_E_FORM, "not these operands", cptx_asm(s.k, "ld.global.L2::cache_hint.u32 {}, [{}];", s.a, s.ptr));
	/* a label is no prototype, though a prototype's name looks like one */
	REFUSES(CPTX_E_FORM, "t is not a prototype", cptx_asm(s.k, "call ({}), {}, {};", s.a, s.ptr, cptx_label(s.k)));
	REFUSES(CPTX_E_FORM, "has no element that is a register", cptx_asm(s.k, "ld.global.v2.u32 {_, _}, [{}];", s.ptr));
}
END_TEST

/* The same checks as a call: what is printed is what the call would have printed. */
START_TEST(asm_equals_call)
{
	fresh();
	cptx_asm(s.k, "cp.async.cg.shared.global.L2::128B [{}], [{}], 16, {};", s.a, s.ptr, s.b);
	cptx_cp_async(s.k, s.a, s.ptr, 16, .cop = CPTX_CG, .l2 = CPTX_L2_128B, .src_size = s.b);
	char *text = printed("sm_80", NULL), *one = strstr(text, "\tcp.async"), *two = one ? strchr(one, '\n') + 1 : NULL;
	ck_assert_msg(one && !strncmp(one, two, (size_t)(two - one)), "%s", text);
	free(text);
}
END_TEST

START_TEST(asm_errors)
{
	REFUSES(CPTX_E_PARSE, "kernel k: cptx_asm(\"add.u32 {}, {}, {};\"): column 19: there are more {} than values",
	        cptx_asm(s.k, "add.u32 {}, {}, {};", s.a, s.a));
	REFUSES(CPTX_E_PARSE, "there are more values than {}", cptx_asm(s.k, "add.u32 {}, {}, 1;", s.a, s.a, s.b));
	REFUSES(CPTX_E_PARSE, "the value for this {} is none (from a call that failed, or an element out of range?)",
	        cptx_asm(s.k, "add.u32 {}, {}, {};", s.a, (cptx_val){ 0 }, s.b));
	REFUSES(CPTX_E_PARSE, "column 1: expected an instruction", cptx_asm(s.k, ""));
	REFUSES(CPTX_E_PARSE, "expected an instruction", cptx_asm(s.k, " ; "));
	REFUSES(CPTX_E_PARSE, "expected an instruction", cptx_asm_(s.k, CPTX_HERE, NULL, NULL, 0));
	REFUSES(CPTX_E_PARSE, "column 6: expected the end of one instruction", cptx_asm(s.k, "ret; ret;"));
	REFUSES(CPTX_E_PARSE, "expected {}, a number, a special register, [address] or {a, b}",
	        cptx_asm(s.k, "add.u32 {}, x, 1;", s.a));
	REFUSES(CPTX_E_PARSE, "expected {}, a number", cptx_asm(s.k, "add.u32 {}, , 1;", s.a));
	REFUSES(CPTX_E_PARSE, "expected {}, a number", cptx_asm(s.k, "add.u32 {}, {},", s.a, s.a));
	REFUSES(CPTX_E_PARSE, "no such special register; registers of the kernel go through a {}",
	        cptx_asm(s.k, "mov.u32 {}, %r1;", s.a));
	REFUSES(CPTX_E_PARSE, "decimal fractions depend on the locale", cptx_asm(s.k, "mov.f32 {}, 1.5;", s.f));
	REFUSES(CPTX_E_PARSE, "expected {} for the guard", cptx_asm(s.k, "@%p1 ret;"));
	REFUSES(CPTX_E_ARG, "must be a predicate register", cptx_asm(s.k, "@{} ret;", s.a));
	REFUSES(CPTX_E_PARSE, "expected {}, a number", cptx_asm(s.k, "st.global.v2.b32 [{}], {x, {}};", s.ptr, s.a));
	REFUSES(CPTX_E_FORM, "element 0 of b cannot be the sink _",
	        cptx_asm(s.k, "st.global.v2.b32 [{}], {_, {}};", s.ptr, s.a));
	REFUSES(CPTX_E_PARSE, "expected a selector", cptx_asm(s.k, "mov.u32 {}, {}.b8;", s.a, s.b));
	REFUSES(CPTX_E_FORM, "a takes no selector", cptx_asm(s.k, "mov.u32 {}, {}.b0;", s.a, s.b));
	REFUSES(CPTX_E_PARSE, "expected , or }", cptx_asm(s.k, "st.global.v2.b32 [{}], {{} {}};", s.ptr, s.a, s.b));
	REFUSES(CPTX_E_ARG, "cptx_pack: value 1 is not a single register",
	        cptx_asm(s.k, "st.global.v2.b32 [{}], {{}, {}};", s.ptr, s.a, s.w));
	REFUSES(CPTX_E_PARSE, "expected an offset", cptx_asm(s.k, "ld.global.b32 {}, [{}+x];", s.a, s.ptr));
	REFUSES(CPTX_E_PARSE, "expected ]", cptx_asm(s.k, "ld.global.b32 {}, [{};", s.a, s.ptr));
	REFUSES(CPTX_E_PARSE, "too many operands", cptx_asm(s.k, "ret 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17;"));
	REFUSES(CPTX_E_PARSE, "more than 64 bits", cptx_asm(s.k, "mov.u64 {}, 99999999999999999999;", s.ptr));
	REFUSES(CPTX_E_PARSE, "more than 64 bits", cptx_asm(s.k, "mov.s64 {}, -99999999999999999999;", s.ptr));
}
END_TEST

START_TEST(asm_long_vector)
{
	char text[257 * 4 + 64] = "st.global.v4.b32 [{}], {";
	cptx_val v[258];

	fresh();
	v[0] = s.ptr;
	for (int i = 1; i < 258; i++) {
		v[i] = s.a;
		strcat(text, i == 257 ? "{}};" : "{},");
	}
	REFUSED(CPTX_E_PARSE, "more than 256 elements", cptx_asm_(s.k, CPTX_HERE, text, v, 258));
}
END_TEST

START_TEST(asm_forms)
{
	REFUSES(CPTX_E_FORM, "cptx_asm: 'frob.u32' is no instruction; `cptx insn` lists them",
	        cptx_asm(s.k, "frob.u32 {}, 1;", s.a));
	REFUSES(CPTX_E_FORM, "cptx_asm: mul.wide.f32: '.wide' does not belong there; write mul.f32\n    mul{.rnd=rn|rz|rm|rp}",
	        cptx_asm(s.k, "mul.wide.f32 {}, {}, {};", s.f, s.f, s.f));
	REFUSES(CPTX_E_FORM,
	        "mul.wide.u32: not these operands: 2, where it has 3\n    mul.wide.type=u32|s32|u16|s16 d:2type, a, b",
	        cptx_asm(s.k, "mul.wide.u32 {}, {};", s.ptr, s.a));
	REFUSES(CPTX_E_FORM, "a is .f32, not .u32", cptx_asm(s.k, "mul.wide.u32 {}, {}, {};", s.ptr, s.f, s.a));
	REFUSES(CPTX_E_FORM, "braces, brackets or | are wrong", cptx_asm(s.k, "ld.global.b32 {}, {};", s.a, s.ptr));
}
END_TEST

/* No text may crash the reader or leave something behind: mutations of instructions that are right. */
START_TEST(asm_of_noise)
{
	static const char *const seeds[] = { "@!{} ld.global.v4.b32 {}, [{}+16];", "st.global.v2.b32 [{}], {{}, {}};",
		                                 "mov.u32 {}, %ctaid.x;", "fma.rn.f32 {}, {}, 0f3F000000, 0d12;",
		                                 "setp.lt.and.u32 {}|{}, {}, -4, !{};" };
	static const char letters[] = "{}[]@!|,;.+-% 0x1fdsu9:\t\n\\\"";
	uint32_t seed = 1;

	for (unsigned n = 0; n < 3000; n++) {
		char text[128];
		fresh();
		size_t len = (size_t)snprintf(text, sizeof text, "%s", seeds[n % ARRAY_LEN(seeds)]);
		for (unsigned e = 0; e < 1 + n % 4; e++) {
			seed = seed * 1664525 + 1013904223;
			text[(seed >> 8) % len] = letters[(seed >> 24) % (sizeof letters - 1)];
		}
		cptx_val holes[] = { s.p, s.w, s.ptr, s.a, s.b, s.p };
		size_t before = cptx_module_size(s.m);
		cptx_asm_(s.k, CPTX_HERE, text, holes, (seed >> 16) % 7);
		ck_assert_uint_eq(cptx_module_size(s.m), before + !cptx_module_error(s.m));
		if (cptx_module_error(s.m))
			ck_assert_int_ne(cptx_module_error(s.m)->code, CPTX_E_MEMORY);
	}
}
END_TEST

/* ---- text beside instructions ---- */

START_TEST(pragmas_and_comments)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_comment(k, "row %d of %s\nsecond line", 3, "A");
	cptx_pragma(k, "nounroll");
	cptx_pragma(k, "used_bytes_mask \"0xf\"");
	cptx_pragma(k, NULL);
	ck_assert_uint_eq(cptx_module_size(s.m), 0);
	char *text = NULL;
	cptx_ptx *ptx = cptx_emit(s.m, "sm_80", NULL, NULL);
	ck_assert_ptr_nonnull(ptx);
	text = strdup(cptx_ptx_text(ptx));
	cptx_ptx_destroy(ptx);
	ck_assert_ptr_nonnull(strstr(text, "{\n\t// row 3 of A second line\n\t.pragma \"nounroll\";\n\t.pragma "
	                                   "\"used_bytes_mask  0xf \";\n\t.pragma \"\";\n\tret;\n}"));
	free(text);
}
END_TEST

START_TEST(long_comment)
{
	char many[1000];

	memset(many, 'x', sizeof many);
	many[sizeof many - 1] = 0;
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_comment(k, "%s", many);
	shows("sm_80", "\t// xxxx", "xxxx\n\tret;\n", NULL);
}
END_TEST

START_TEST(text_in_closed_bodies)
{
	REFUSES(CPTX_E_STATE, "kernel other: the body is closed", cptx_pragma(s.other, "nounroll"));
	REFUSES(CPTX_E_STATE, "kernel other: the body is closed", cptx_comment(s.other, "x"));
	REFUSES(CPTX_E_STATE, "kernel other: the body is closed", cptx_asm(s.other, "ret;"));
	REFUSES(CPTX_E_STATE, "kernel other: the body is closed", cptx_place(s.other, s.foreign_label));
}
END_TEST

/* ---- targets ---- */

START_TEST(targets)
{
	const cptx_target *t;
	size_t n = 0;

	for (; (t = cptx_target_at(n)); n++) {
		ck_assert_ptr_eq(cptx_target_find(t->name), t);
		ck_assert_uint_ge(t->smem_per_sm, t->smem_per_cta);
	}
	ck_assert_uint_gt(n, 15);
	ck_assert_ptr_null(cptx_target_at(SIZE_MAX));
	ck_assert_ptr_null(cptx_target_find("sm_1"));
	ck_assert_ptr_null(cptx_target_find(NULL));
	ck_assert_str_eq(cptx_target_for_device(90)->name, "sm_90a");
	ck_assert_str_eq(cptx_target_for_device(89)->name, "sm_89");
	ck_assert_str_eq(cptx_target_for_device(88)->name, "sm_87");
	ck_assert_str_eq(cptx_target_for_device(100)->name, "sm_100a");
	ck_assert_str_eq(cptx_target_for_device(110)->name, "sm_110a");
	ck_assert_str_eq(cptx_target_for_device(121)->name, "sm_121a");
	ck_assert_ptr_null(cptx_target_for_device(70));
}
END_TEST

START_TEST(unknown_target)
{
	fresh();
	cannot_print("sm_90b", CPTX_E_TARGET, "there is no target 'sm_90b'; did you mean sm_90? ");
	cannot_print("sm90a", CPTX_E_TARGET, "did you mean sm_90a? `cptx arch` lists them");
	cannot_print("hopper", CPTX_E_TARGET, "there is no target 'hopper'; `cptx arch` lists them");
	cannot_print("", CPTX_E_TARGET, "there is no target ''");
	cannot_print(NULL, CPTX_E_TARGET, "no target is named, and the module has none of its own: say one");
	ck_assert_ptr_null(cptx_module_error(s.m)); /* another may do */
	shows("sm_90a", ".target sm_90a\n", NULL);
}
END_TEST

/* The instruction, the user's line, who has it, what to use instead. */
START_TEST(instructions_that_a_target_lacks)
{
	cptx_error err = { .code = CPTX_OK };

	fresh();
	cptx_kernel *k = s.k;
	cptx_val b = cptx_slice(s.w, 0, 2), c = cptx_regs(k, CPTX_F32, 4);
	uint32_t line = __LINE__ + 1;
	cptx_mma(k, s.w, b, c, .shape = CPTX_M16N8K16, .dtype = CPTX_F32, .atype = CPTX_F16);
	ck_assert_ptr_null(cptx_emit(s.m, "sm_75", NULL, &err));
	says(&err, CPTX_E_TARGET,
	     "kernel k: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 is not available on sm_75; targets that have it: "
	     "sm_80 and later");
	says(&err, CPTX_E_TARGET, "Instead: mma.m16n8k8 with f16 inputs, twice for k = 16, exists from sm_75 on");
	ck_assert_uint_eq(err.line, line);
	ck_assert_str_eq(err.file, __FILE__);
	ck_assert(!strncmp(err.text, __FILE__ ":", strlen(__FILE__) + 1));
	fresh();
	cptx_redux_sync(s.k, s.a, -1, .op = CPTX_ADD);
	cannot_print("sm_75", CPTX_E_TARGET, "redux.sync.add.u32 is not available on sm_75");
	cannot_print("sm_75", CPTX_E_TARGET, "Instead: five steps of shfl.sync.bfly and the operation");
}
END_TEST

/* Gone from a version on: on targets that came later, and beside what needs that version. */
START_TEST(instructions_that_were_removed)
{
	cptx_error err = { .code = CPTX_OK };

	fresh();
	cptx_shfl(s.k, s.a, 1, 31, .mode = CPTX_BFLY);
	cptx_ptx *ptx = cptx_emit(s.m, "sm_75", NULL, FRESH(&err)); /* ptxas takes it with a warning */
	ck_assert_msg(ptx != NULL, "%s", err.text);
	ck_assert_uint_eq(cptx_ptx_version(ptx), 63);
	ck_assert_ptr_nonnull(strstr(cptx_ptx_text(ptx), "shfl.bfly.b32 %r7, %r1, 1, 31;"));
	cptx_ptx_destroy(ptx);
	cannot_print("sm_80", CPTX_E_TARGET,
	             "shfl.bfly.b32 was removed in PTX 6.4 for sm_70 and later; targets that have it: sm_75");
	ck_assert_ptr_null(cptx_emit(s.m, "sm_75", &(cptx_emit_opt){ .min_version = 64 }, FRESH(&err)));
	says(&err, CPTX_E_TARGET, "was removed in PTX 6.4 for sm_70 and later; this module is printed for PTX 6.4");
	fresh();
	uint32_t line = __LINE__ + 1;
	cptx_shfl(s.k, s.a, 1, 31, .mode = CPTX_BFLY);
	cptx_tanh(s.k, s.f);
	ck_assert_ptr_null(cptx_emit(s.m, "sm_75", NULL, FRESH(&err)));
	says(&err, CPTX_E_TARGET,
	     "kernel k: shfl.bfly.b32 was removed in PTX 6.4 for sm_70 and later; this module is printed for PTX 7.0");
	ck_assert_uint_eq(err.line, line);
}
END_TEST

/* One value of a modifier, where the form itself is there. */
START_TEST(modifiers_that_a_target_lacks)
{
	fresh();
	cptx_min(s.k, s.f, s.f, .NaN = 1);
	cannot_print("sm_75", CPTX_E_TARGET,
	             "kernel k: min.NaN.f32 is not available on sm_75 (.NaN); targets that have it: sm_80");
	shows("sm_80", ".version 7.0\n", "min.NaN.f32", NULL);
	fresh();
	cptx_fence(s.k, .sem = CPTX_ACQ_REL, .scope = CPTX_CLUSTER);
	cannot_print("sm_89", CPTX_E_TARGET,
	             "fence.acq_rel.cluster is not available on sm_89 (.cluster); targets that have it: sm_90 and later");
	shows("sm_90", ".version 7.8\n", "fence.acq_rel.cluster;", NULL);
}
END_TEST

START_TEST(versions)
{
	cptx_error err = { .code = CPTX_OK };

	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_tid_x(k);
	cptx_ptx *ptx = cptx_emit(s.m, "sm_80", NULL, FRESH(&err));
	ck_assert_uint_eq(cptx_ptx_version(ptx), 70);
	ck_assert_ptr_eq(cptx_ptx_target(ptx), cptx_target_find("sm_80"));
	cptx_ptx_destroy(ptx);
	free(printed("sm_80", &(cptx_emit_opt){ .min_version = 83 }));
	ptx = cptx_emit(s.m, "sm_80", &(cptx_emit_opt){ .min_version = 83 }, FRESH(&err));
	ck_assert_uint_eq(cptx_ptx_version(ptx), 83);
	ck_assert_ptr_nonnull(strstr(cptx_ptx_text(ptx), "\n.version 8.3\n"));
	cptx_ptx_destroy(ptx);
	ptx = cptx_emit(s.m, "sm_80", &(cptx_emit_opt){ .min_version = 10 }, FRESH(&err));
	ck_assert_uint_eq(cptx_ptx_version(ptx), 70);
	cptx_ptx_destroy(ptx);
	ck_assert_ptr_null(cptx_emit(s.m, "sm_80", &(cptx_emit_opt){ .min_version = 100 }, FRESH(&err)));
	says(&err, CPTX_E_ARG, "min_version = 100: there is no such PTX version");
	err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_emit(s.m, "sm_80", &(cptx_emit_opt){ .min_version = 79 }, FRESH(&err)));
	says(&err, CPTX_E_ARG, "min_version = 79: there is no such PTX version");
}
END_TEST

START_TEST(the_instruction_table)
{
	cptx_op_info op;
	cptx_form_info form;
	const cptx_target *t75 = cptx_target_find("sm_75"), *t90 = cptx_target_find("sm_90a");
	size_t i = 0;

	ck_assert(!cptx_op_at(SIZE_MAX, &op));
	ck_assert(!cptx_op_at(0, NULL));
	while (cptx_op_at(i, &op) && strcmp(op.name, "cp_async"))
		i++;
	ck_assert_str_eq(op.name, "cp_async");
	ck_assert_ptr_nonnull(strstr(op.chapter, "cp.async"));
	ck_assert(cptx_form_at(i, 0, &form));
	ck_assert_ptr_nonnull(strstr(form.text, "cp.async"));
	ck_assert_ptr_nonnull(strstr(form.availability, "PTX 7.0, sm_80"));
	ck_assert(!cptx_form_at(i, op.nforms, &form));
	ck_assert(!cptx_form_at(SIZE_MAX, 0, &form));
	ck_assert(cptx_form_on_target(i, 0, t90));
	ck_assert(!cptx_form_on_target(i, 0, t75));
	ck_assert(!cptx_form_on_target(i, 0, NULL));
	ck_assert(!cptx_form_on_target(SIZE_MAX, 0, t90));
}
END_TEST

/* ---- lines ---- */

/* A kernel whose sources are given. */
static cptx_module *with_lines(void)
{
	blank();
	cptx_kernel *f = cptx_func_begin_(s.m, (cptx_site){ "b.c", 1 }, "f", CPTX_U32);
	cptx_func_return_(f, (cptx_site){ "b.c", 3 }, cptx_param_(f, (cptx_site){ "b.c", 2 }, CPTX_U32, "x"));
	cptx_kernel *k = cptx_kernel_begin_(s.m, (cptx_site){ "a.c", 10 }, "k", NULL);
	cptx_val x = cptx_sreg_(k, (cptx_site){ "a.c", 11 }, CPTX_SREG_TID_X);
	cptx_comment_(k, (cptx_site){ "a.c", 12 }, "twice");
	cptx_call_(k, (cptx_site){ "a.c", 12 }, cptx_func_val(f), &x, 1);
	cptx_asm_(k, (cptx_site){ NULL, 0 }, "membar.gl;", NULL, 0);
	cptx_pragma_(k, (cptx_site){ "b.c", 14 }, "nounroll");
	return s.m;
}

START_TEST(locations)
{
	with_lines();
	char *text = printed("sm_80", &(cptx_emit_opt){ .lines = true });
	ck_assert_ptr_nonnull(strstr(text, ".address_size 64\n.file 1 \"b.c\"\n.file 2 \"a.c\"\n"));
	ck_assert_ptr_nonnull(strstr(text, "\t.loc 2 11 0\n\tmov.u32 %r1, %tid.x;\n\t// twice\n\t.loc 2 12 0\n\t{\n"));
	ck_assert_ptr_nonnull(strstr(text, "\t}\n\tmembar.gl;\n\t.loc 1 14 0\n\t.pragma \"nounroll\";\n"));
	free(text);
	text = printed("sm_80", NULL);
	ck_assert_ptr_null(strstr(text, ".loc"));
	ck_assert_ptr_null(strstr(text, ".file"));
	free(text);
}
END_TEST

START_TEST(file_names_are_quoted)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin_(s.m, (cptx_site){ "a\"b\\c\n\xc3.c", 1 }, "k", NULL);
	cptx_sreg_(k, (cptx_site){ "a\"b\\c\n\xc3.c", 2 }, CPTX_SREG_TID_X);
	char *text = printed("sm_80", &(cptx_emit_opt){ .lines = true });
	ck_assert_ptr_nonnull(strstr(text, ".file 1 \"a_b_c__.c\"\n"));
	free(text);
}
END_TEST

/* Every line of the text, with the source line in front of it. */
static char *annotate(const cptx_ptx *ptx)
{
	const char *text = cptx_ptx_text(ptx);
	size_t room = 2 * cptx_ptx_size(ptx) + 2048, n = 0;
	char *out = malloc(room);

	for (uint32_t line = 1; *text; line++) {
		int len = (int)strcspn(text, "\n");
		cptx_site at = cptx_ptx_origin(ptx, line);
		n += (size_t)snprintf(out + n, room - n, "%s%u|%.*s\n", at.file ? at.file : "-", at.line, len, text);
		text += len + (text[len] == '\n');
	}
	return out;
}

START_TEST(origin_of_every_line)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(with_lines(), "sm_80", &(cptx_emit_opt){ .lines = true }, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	char *got = annotate(ptx);
	ck_assert_msg(strstr(got, "-0|.target sm_80\n") && strstr(got, "-0|.file 1 \"b.c\"\n"), "%s", got);
	ck_assert_msg(strstr(got, "b.c3|\t.loc 1 3 0\nb.c3|\tst.param.b32 [__cptx_result], %r1;\nb.c3|\tret;\n") != NULL, "%s",
	              got);
	ck_assert_msg(
		strstr(got,
	           "-0|.visible .entry k()\n-0|{\n-0|\t.reg .b32 %r<3>;\na.c11|\t.loc 2 11 0\na.c11|\tmov.u32 %r1, %tid.x;\n"
	           "a.c12|\t// twice\na.c12|\t.loc 2 12 0\na.c12|\t{\na.c12|\t.param .b32 __cptx_arg0;\n") != NULL,
		"%s", got);
	ck_assert_msg(strstr(got, "a.c12|\tld.param.b32 %r2, [__cptx_value];\na.c12|\t}\n-0|\tmembar.gl;\nb.c14|\t.loc 1 14 "
	                          "0\nb.c14|\t.pragma \"nounroll\";\n"
	                          "a.c10|\t.loc 2 10 0\na.c10|\tret;\na.c10|}\n") != NULL,
	              "%s", got);
	ck_assert_ptr_null(cptx_ptx_origin(ptx, 0).file);
	ck_assert_ptr_null(cptx_ptx_origin(ptx, UINT32_MAX).file);
	free(got);
	cptx_ptx_destroy(ptx);
}
END_TEST

/* Without .loc lines the map is the same. */
START_TEST(origin_without_locations)
{
	cptx_ptx *ptx = cptx_emit(with_lines(), "sm_80", NULL, NULL);
	ck_assert_ptr_nonnull(ptx);
	char *got = annotate(ptx);
	ck_assert_msg(strstr(got, "a.c11|\tmov.u32 %r1, %tid.x;\na.c12|\t// twice\na.c12|\t{\n") != NULL, "%s", got);
	ck_assert_msg(strstr(got, "a.c12|\t}\n-0|\tmembar.gl;\nb.c14|\t.pragma") != NULL, "%s", got);
	free(got);
	cptx_module_destroy(s.m); /* the result does not need it */
	s.m = NULL;
	ck_assert_str_eq(cptx_ptx_target(ptx)->name, "sm_80");
	got = annotate(ptx);
	ck_assert_ptr_nonnull(strstr(got, "a.c11|"));
	free(got);
	cptx_ptx_destroy(ptx);
}
END_TEST

START_TEST(emitting_again)
{
	fresh();
	char *one = printed("sm_80", NULL), *two = printed("sm_80", NULL), *other = printed("sm_90a", NULL);
	ck_assert_str_eq(one, two);
	ck_assert_str_ne(one, other);
	free(one), free(two), free(other);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		asm_holes,
		asm_and_calls_with_elements,
		asm_equals_call,
		asm_errors,
		asm_long_vector,
		asm_forms,
		asm_of_noise,
		pragmas_and_comments,
		long_comment,
		text_in_closed_bodies,
		targets,
		unknown_target,
		instructions_that_a_target_lacks,
		instructions_that_were_removed,
		modifiers_that_a_target_lacks,
		versions,
		the_instruction_table,
		locations,
		file_names_are_quoted,
		origin_of_every_line,
		origin_without_locations,
		emitting_again,
	};
	return verify_run("text", tests, ARRAY_LEN(tests), true);
}
