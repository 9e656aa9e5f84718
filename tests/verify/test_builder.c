/* SPDX-License-Identifier: MIT */
/* Values, modules, bodies and launch bounds: what the calls do and what they refuse. */
#include "verify.h"

/* ---- values, types, codes: no module needed ---- */

START_TEST(version_and_codes)
{
	ck_assert_str_eq(cptx_version(), CPTX_VERSION);
	ck_assert_str_eq(cptx_code_name(CPTX_E_TARGET), "TARGET");
	ck_assert_str_eq(cptx_code_name(CPTX_OK), "OK");
	ck_assert_str_eq(cptx_code_name((enum cptx_code)999), "?");
	ck_assert_ptr_nonnull(strstr(cptx_code_meaning(CPTX_E_MEMORY), "allocation"));
	ck_assert_str_eq(cptx_code_meaning((enum cptx_code) - 1), "?");
}
END_TEST

START_TEST(types_of_values)
{
	ck_assert_uint_eq(cptx_type_bits(CPTX_PRED), 1);
	ck_assert_uint_eq(cptx_type_bits(CPTX_BF16X2), 32);
	ck_assert_uint_eq(cptx_type_bits(CPTX_B128), 128);
	ck_assert_uint_eq(cptx_type_bits(CPTX_PTR), 64);
	ck_assert_uint_eq(cptx_type_bits(CPTX_TYPE_NONE), 0);
	ck_assert_uint_eq(cptx_type_bits((enum cptx_type)9999), 0);
	ck_assert_str_eq(cptx_type_name(CPTX_F32), "f32");
	ck_assert_str_eq(cptx_type_name(CPTX_TYPE_NONE), "?");
	ck_assert_str_eq(cptx_mod_name(CPTX_M64N256K16), "m64n256k16");
	ck_assert_str_eq(cptx_mod_name((enum cptx_mod)CPTX_F32), "?");
	ck_assert_int_eq(cptx_mod_find("m64n256k16"), CPTX_M64N256K16);
	ck_assert_int_eq(cptx_mod_find("m64n256k"), 0);
	ck_assert_int_eq(cptx_mod_find("f32"), 0);
	ck_assert_int_eq(cptx_mod_find(""), 0);
	ck_assert_int_eq(cptx_mod_find(NULL), 0);
	cptx_error named = { 0 };
	ck_assert(cptx_name_check("kernel", "gemm_1$", &named));
	ck_assert(!cptx_name_check("kernel", "a b", &named));
	ck_assert_str_eq(named.text, "kernel name 'a b' is no PTX identifier (a letter, then letters, digits, _ and $)");
	ck_assert(!cptx_name_check("kernel", "$Lx", NULL) && !cptx_name_check(NULL, NULL, NULL));
	ck_assert_str_eq(cptx_type_name((enum cptx_type)9999), "?");
	ck_assert_int_eq(cptx_type_find("bf16x2"), CPTX_BF16X2);
	ck_assert_int_eq(cptx_type_find("pred"), CPTX_PRED);
	ck_assert_int_eq(cptx_type_find("float"), CPTX_TYPE_NONE);
	ck_assert_int_eq(cptx_type_find(NULL), CPTX_TYPE_NONE);
	for (int t = CPTX_PRED; t < CPTX_PTR; t++)
		ck_assert_int_eq(cptx_type_find(cptx_type_name((enum cptx_type)t)), t);
}
END_TEST

START_TEST(numbers_become_values)
{
	cptx_val big = CPTX_V(UINT64_MAX), v = CPTX_V(-3), f = CPTX_V(1.5f);

	ck_assert_int_eq(v.kind, CPTX_VAL_INT);
	ck_assert_int_eq(v.i, -3);
	ck_assert_int_eq(f.kind, CPTX_VAL_FLOAT);
	ck_assert(f.f == 1.5);
	ck_assert_uint_eq(big.negated, 1); /* unsigned, above the largest signed number */
	ck_assert_uint_eq(CPTX_V(7ul).negated, 0);
	ck_assert_int_eq(CPTX_V(big).kind, CPTX_VAL_INT);
	ck_assert_int_eq(cptx_imm(5).i, 5);
	ck_assert(cptx_immf(0.5).f == 0.5);
	fresh();
	ck_assert_uint_eq(CPTX_V(s.w).id, s.w.id);
}
END_TEST

START_TEST(parts_of_arrays)
{
	fresh();
	cptx_val e = cptx_elem(s.w, 3), two = cptx_slice(s.w, 1, 2);

	ck_assert_uint_eq(e.id, s.w.id + 3);
	ck_assert_uint_eq(e.count, 1);
	ck_assert_uint_eq(two.id, s.w.id + 1);
	ck_assert_uint_eq(two.count, 2);
	ck_assert_int_eq(cptx_elem(s.w, 4).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_slice(s.w, 0, 0).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_slice(s.w, 2, 3).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_slice(s.w, 1, UINT32_MAX).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_elem(cptx_imm(1), 0).kind, CPTX_VAL_BAD);
	REFUSED(CPTX_E_FORM, "a is no value", cptx_mov(s.k, cptx_elem(s.w, 4), .type = CPTX_B32));
	/* what is not there is not the same as what was not given */
	REFUSES(CPTX_E_FORM, "d is no value", cptx_add(s.k, s.a, s.b, .into = cptx_elem(s.w, 4)));
	REFUSES(CPTX_E_ARG, ".when must be a predicate register", cptx_add(s.k, s.a, s.b, .when = cptx_negated(s.a)));
	REFUSES(CPTX_E_ARG, ".unless must be a predicate register", cptx_add(s.k, s.a, s.b, .unless = cptx_elem(s.p, 1)));
	REFUSES(CPTX_E_FORM, "b is no value", cptx_bar_sync(s.k, 0, .b = cptx_offset(s.p, INT64_MAX)));
	REFUSES(CPTX_E_ARG, "must be a predicate register", cptx_asm(s.k, "@!{} add.u32 {}, {}, 1;", s.a, s.a, s.b));
	fresh();
}
END_TEST

START_TEST(offsets_and_views)
{
	fresh();
	ck_assert_int_eq(cptx_offset(cptx_offset(s.ptr, 16), -4).offset, 12);
	ck_assert_int_eq(cptx_offset(s.ptr, INT64_C(1) << 31).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_offset(cptx_offset(s.ptr, INT32_MAX), 1).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_offset(cptx_offset(s.ptr, 1), INT64_MAX).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_offset(s.foreign_label, 4).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_offset((cptx_val){ 0 }, 4).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_as(s.f, CPTX_B32).type, CPTX_B32);
	ck_assert_int_eq(cptx_as(s.f, CPTX_B64).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_as(cptx_imm(1), CPTX_B32).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_negated(s.p).negated, 1);
	ck_assert_int_eq(cptx_negated(cptx_negated(s.p)).negated, 0);
	cptx_st(s.k, cptx_offset(s.ptr, -8), cptx_as(s.f, CPTX_U32), .space = CPTX_GLOBAL, .when = cptx_negated(s.p));
	shows("sm_80", "@!%p1 st.global.u32 [%rd1+-8], %f1;\n", NULL);
}
END_TEST

START_TEST(offset_is_for_addresses)
{
	REFUSES(CPTX_E_FORM, "a carries an offset, which only an address can", cptx_add(s.k, cptx_offset(s.a, 4), s.b));
	REFUSES(CPTX_E_FORM, "a cannot be negated here", cptx_not(s.k, cptx_negated(s.a)));
}
END_TEST

/* ---- everything takes NULL ---- */

START_TEST(null_module)
{
	cptx_error err = { 0 };
	cptx_kernel_info info;

	ck_assert_int_eq(cptx_module_error(NULL)->code, CPTX_E_ARG);
	ck_assert_ptr_null(cptx_kernel_begin(NULL, "k"));
	ck_assert_ptr_null(cptx_func_begin(NULL, "f", CPTX_U32));
	ck_assert_int_eq(cptx_global(NULL, CPTX_U32, 1, "g").kind, CPTX_VAL_NONE);
	ck_assert(!cptx_module_freeze(NULL));
	ck_assert_uint_eq(cptx_module_size(NULL), 0);
	ck_assert(!cptx_module_kernel(NULL, NULL, &info));
	ck_assert_ptr_null(cptx_emit(NULL, "sm_90", NULL, &err));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
	ck_assert_msg(strstr(err.text, "the module is NULL") != NULL, "%s", err.text);
	cptx_module_destroy(NULL);
}
END_TEST

START_TEST(null_kernel)
{
	cptx_kernel *k = NULL;
	cptx_val v = cptx_imm(1);
	int passes = 0;

	ck_assert_int_eq(cptx_param(k, CPTX_U32, "a").kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_param_bytes(k, 8, 8, "a").kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_reg(k, CPTX_U32).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_var(k, CPTX_U32, 1).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_pack(k, 1, &v).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_tid_x(k).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_shared(k, CPTX_U32, 1).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_shared_dyn(k, 4, 4, "d").kind, CPTX_VAL_NONE);
	ck_assert_uint_eq(cptx_kernel_dyn_smem(k), 0);
	ck_assert_int_eq(cptx_add(k, v, v).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_asm(k, "ret;").kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_label(k).kind, CPTX_VAL_NONE);
	cptx_place(k, v);
	cptx_pragma(k, "x");
	cptx_comment(k, "x");
	ck_assert_int_eq(cptx_func_val(k).kind, CPTX_VAL_NONE);
	cptx_func_return(k, v);
	ck_assert_int_eq(cptx_call(k, v, 0, NULL).kind, CPTX_VAL_NONE);
	CPTX_IF(k, v)
		passes++;
	CPTX_ELSE(k)
		passes++;
	CPTX_FOR(k, v, 10, 1)
		passes++;
	CPTX_WHILE(k, v)
		passes++;
	cptx_break_when(k, v);
	cptx_continue_when(k, v);
	ck_assert_int_eq(passes, 4); /* the C code runs all the same */
}
END_TEST

START_TEST(null_results)
{
	ck_assert_ptr_null(cptx_ptx_text(NULL));
	ck_assert_uint_eq(cptx_ptx_size(NULL), 0);
	ck_assert_uint_eq(cptx_ptx_version(NULL), 0);
	ck_assert_ptr_null(cptx_ptx_target(NULL));
	ck_assert_ptr_null(cptx_ptx_origin(NULL, 1).file);
	cptx_ptx_destroy(NULL);
}
END_TEST

/* ---- modules and bodies ---- */

START_TEST(bodies)
{
	fresh();
	ck_assert_ptr_null(cptx_module_error(s.m));
	size_t n = cptx_module_size(s.m);
	cptx_add(s.k, s.a, s.b);
	cptx_comment(s.k, "no instruction");
	ck_assert_uint_eq(cptx_module_size(s.m), n + 1);
	shows("sm_75", ".func (.param .b32 __cptx_result) twice(\n\t.param .b32 x\n);", ".visible .entry other()\n",
	      ".visible .entry k(\n\t.param .u64 ptr\n)\n", "\tadd.u32 %r7, %r1, %r2;\n\t// no instruction\n\tret;\n}\n", NULL);
	ck_assert(cptx_module_freeze(s.m));
}
END_TEST

START_TEST(names)
{
	static char longest[3001]; /* names of templates are that long */

	memset(longest, 'a', 3000);
	blank();
	ck_assert_ptr_nonnull(cptx_kernel_begin(s.m, longest));
	cptx_kernel *k = cptx_kernel_begin(s.m, "_$2");
	cptx_param(k, CPTX_U32, "$x");
	shows("sm_80", longest, ".entry _$2(\n\t.param .u32 $x\n)", NULL);
	REFUSES(CPTX_E_ARG, "kernel name '' is no PTX identifier (a letter, then letters, digits, _ and $)",
	        cptx_kernel_begin(s.m, ""));
	REFUSES(CPTX_E_ARG, "the kernel name is NULL", cptx_kernel_begin(s.m, NULL));
	REFUSES(CPTX_E_ARG, "kernel name '1a'", cptx_kernel_begin(s.m, "1a"));
	REFUSES(CPTX_E_ARG, "kernel name 'a-b'", cptx_kernel_begin(s.m, "a-b"));
	REFUSES(CPTX_E_ARG, "kernel name '_'", cptx_kernel_begin(s.m, "_"));
	REFUSES(CPTX_E_ARG, "function name 'a b'", cptx_func_begin(s.m, "a b", CPTX_TYPE_NONE));
	REFUSES(CPTX_E_ARG, "parameter name 'x;y'", cptx_param(s.k, CPTX_U32, "x;y"));
	REFUSES(CPTX_E_ARG, "the parameter name is NULL", cptx_param_bytes(s.k, 8, 8, NULL));
	REFUSES(CPTX_E_ARG, "variable name '%r1'", cptx_shared_named(s.k, CPTX_U32, 1, 16, "%r1"));
	REFUSES(CPTX_E_ARG, "variable name 'x]'", cptx_shared_dyn(s.k, 4, 4, "x]"));
	REFUSES(CPTX_E_ARG, "variable name 'p\xc3\xa9'", cptx_global(s.m, CPTX_U32, 1, "p\xc3\xa9"));
}
END_TEST

START_TEST(duplicate_names)
{
	REFUSES(CPTX_E_ARG, "the module already has a kernel named 'k'", cptx_kernel_begin(s.m, "k"));
	REFUSES(CPTX_E_ARG, "the module already has a function named 'twice'", cptx_kernel_begin(s.m, "twice"));
	REFUSES(CPTX_E_ARG, "the module already has a kernel named 'other'", cptx_func_begin(s.m, "other", CPTX_U32));
	REFUSES(CPTX_E_ARG, "the module already has a kernel named 'k'", cptx_global(s.m, CPTX_U32, 1, "k"));
	REFUSES(CPTX_E_ARG, "kernel k: it already has a parameter named 'ptr'", cptx_param(s.k, CPTX_U32, "ptr"));
	REFUSES(CPTX_E_ARG, "kernel k: it already has a parameter named 'ptr'", cptx_param_bytes(s.k, 8, 8, "ptr"));
	REFUSES(CPTX_E_ARG, "kernel k: it already has a parameter named 'ptr'", cptx_shared_named(s.k, CPTX_U32, 1, 16, "ptr"));
	fresh();
	cptx_global(s.m, CPTX_U32, 1, "g");
	REFUSED(CPTX_E_ARG, "the module already has a variable named 'g'", cptx_global(s.m, CPTX_U32, 1, "g"));
	fresh();
	cptx_global(s.m, CPTX_U32, 1, "g");
	REFUSED(CPTX_E_ARG, "the module already has a variable named 'g'", cptx_kernel_begin(s.m, "g"));
	fresh();
	cptx_shared_named(s.k, CPTX_U32, 1, 16, "sh");
	REFUSED(CPTX_E_ARG, "kernel k: it already has a variable named 'sh'", cptx_shared_named(s.k, CPTX_U32, 1, 16, "sh"));
	fresh();
	cptx_shared_named(s.k, CPTX_U32, 1, 16, "sh");
	REFUSED(CPTX_E_ARG, "kernel k: it already has a variable named 'sh'", cptx_param(s.k, CPTX_U32, "sh"));
}
END_TEST

START_TEST(names_of_other_places)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_param(k, CPTX_U32, "x");
	cptx_st(k, cptx_shared_named(k, CPTX_U32, 1, 4, "shared_1"), 1, .type = CPTX_U32);
	cptx_st(k, cptx_shared(k, CPTX_U32, 1), 2, .type = CPTX_U32);
	k = cptx_kernel_begin(s.m, "x2");
	cptx_st(k, cptx_shared_named(k, CPTX_U32, 1, 4, "shared_1"), 1, .type = CPTX_U32);
	shows("sm_80", ".param .u32 x\n", "st.shared.u32 [shared_1], 1;", "st.shared.u32 [shared_2], 2;", NULL);
	/* nothing may hide what the body could mean, or be taken for what we print */
	fresh();
	cptx_global(s.m, CPTX_U32, 1, "x");
	REFUSED(CPTX_E_ARG, "the module already has a variable named 'x', which this one would hide",
	        cptx_param(s.k, CPTX_U32, "x"));
	fresh();
	cptx_param(s.k, CPTX_U32, "x");
	REFUSED(CPTX_E_ARG, "kernel k, which is still open, has a parameter named 'x'", cptx_global(s.m, CPTX_U32, 1, "x"));
	REFUSES(CPTX_E_ARG, "the module already has a function named 'twice'", cptx_shared_named(s.k, CPTX_U32, 1, 4, "twice"));
	REFUSES(CPTX_E_ARG, "reserved", cptx_global(s.m, CPTX_U32, 1, "__cptx_smem"));
	REFUSES(CPTX_E_ARG, "reserved", cptx_param(s.k, CPTX_U32, "WARP_SZ"));
	REFUSES(CPTX_E_ARG, "reserved", cptx_shared_named(s.k, CPTX_U32, 1, 4, "$L0"));
}
END_TEST

START_TEST(one_body_at_a_time)
{
	fresh();
	REFUSED(CPTX_E_STATE, "kernel other: the body is closed, since another one was begun; build one at a time",
	        cptx_ret(s.other));
	fresh();
	ck_assert(cptx_module_freeze(s.m));
	REFUSED(CPTX_E_STATE, "kernel k: the module is frozen; build everything before it is printed or loaded",
	        cptx_add(s.k, s.a, s.b));
	fresh();
	ck_assert(cptx_module_freeze(s.m));
	REFUSED(CPTX_E_STATE, "kernel z: the module is frozen", cptx_kernel_begin(s.m, "z"));
	fresh();
	ck_assert(cptx_module_freeze(s.m));
	REFUSED(CPTX_E_STATE, "variable 'z': the module is frozen", cptx_global(s.m, CPTX_U32, 1, "z"));
	fresh();
	cptx_ptx_destroy(cptx_emit(s.m, "sm_90", NULL, NULL)); /* freezes too */
	REFUSED(CPTX_E_STATE, "kernel k: the module is frozen", cptx_param(s.k, CPTX_U32, "n"));
}
END_TEST

START_TEST(returns_are_added)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_exit(k);
	cptx_comment(k, "behind");
	body_is("sm_80", "\texit;\n\t// behind\n");
	blank();
	k = cptx_kernel_begin(s.m, "k");
	cptx_val p = cptx_setp(k, cptx_tid_x(k), 3, .cmp = CPTX_EQ);
	cptx_ret(k, .when = p);
	body_is("sm_80", "\tmov.u32 %r1, %tid.x;\n\tsetp.eq.u32 %p1, %r1, 3;\n\t@%p1 ret;\n\tret;\n");
}
END_TEST

START_TEST(kernel_info)
{
	cptx_kernel_info info;

	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k", .max_block = { 64, 2 }, .min_ctas = 2);
	cptx_param(k, CPTX_PTR, "p");
	cptx_param(k, CPTX_BF16, "h");
	cptx_param_bytes(k, 128, 64, "map");
	cptx_shared(k, CPTX_F32, 8);
	cptx_shared_dyn(k, 100, 16, "x");
	ck_assert(cptx_module_freeze(s.m));
	ck_assert(cptx_module_kernel(s.m, NULL, &info));
	ck_assert_str_eq(info.name, "k");
	ck_assert_uint_eq(info.nparams, 3);
	ck_assert_str_eq(info.params[0].name, "p");
	ck_assert_int_eq(info.params[0].type, CPTX_PTR);
	ck_assert_uint_eq(info.params[1].size, 2);
	ck_assert_uint_eq(info.params[2].size, 128);
	ck_assert_uint_eq(info.params[2].align, 64);
	ck_assert_uint_eq(info.dyn_smem, 100);
	ck_assert_uint_eq(info.static_smem, 32);
	ck_assert_uint_eq(info.bounds.max_block[1], 2);
	ck_assert_uint_eq(info.bounds.max_block[2], 1);
	ck_assert(!cptx_module_kernel(s.m, "z", &info));
	ck_assert(!cptx_module_kernel(s.m, "k", NULL));
	fresh();
	ck_assert(cptx_module_freeze(s.m));
	ck_assert(!cptx_module_kernel(s.m, NULL, &info)); /* which of two? */
	ck_assert(cptx_module_kernel(s.m, "other", &info));
	ck_assert(!cptx_module_kernel(s.m, "twice", &info)); /* a function */
}
END_TEST

/* ---- launch bounds ---- */

START_TEST(bounds)
{
	blank();
	cptx_kernel_begin(s.m, "a", .block = { 128, 2 }, .min_ctas = 2);
	cptx_kernel_begin(s.m, "b", .max_block = { 1024 }, .max_regs = 64);
	cptx_kernel_begin(s.m, "c", .block = { 32 }, .cluster = { 4, 2 });
	cptx_kernel_begin(s.m, "d", .max_block = { 32 }, .max_cluster_rank = 8);
	shows("sm_90", ".entry a()\n.reqntid 128, 2, 1\n.minnctapersm 2\n{", ".entry b()\n.maxntid 1024, 1, 1\n.maxnreg 64\n{",
	      ".reqntid 32, 1, 1\n.reqnctapercluster 4, 2, 1\n{", ".maxntid 32, 1, 1\n.maxclusterrank 8\n{", NULL);
	cannot_print("sm_80", CPTX_E_TARGET, "kernel c: .reqnctapercluster is not available on sm_80; it needs sm_90 or later");
}
END_TEST

START_TEST(directives)
{
	blank();
	cptx_kernel *k = cptx_kernel_begin(s.m, "k");
	cptx_directive(k, ".explicitcluster");
	shows("sm_90", ".version 7.8\n", ".explicitcluster\n{", NULL);
	cannot_print("sm_80", CPTX_E_TARGET, "kernel k: .explicitcluster is not available on sm_80; it needs sm_90 or later");
}
END_TEST

START_TEST(bad_bounds)
{
	REFUSES(CPTX_E_ARG, "kernel z: launch bounds: y and z are given without x",
	        cptx_kernel_begin(s.m, "z", .block = { 0, 2 }));
	REFUSES(CPTX_E_ARG, "y and z are given without x", cptx_kernel_begin(s.m, "z", .cluster = { 0, 0, 2 }));
	REFUSES(CPTX_E_LIMIT, "1025 x 1 x 1 threads; a CTA has at most 1024", cptx_kernel_begin(s.m, "z", .block = { 1025 }));
	REFUSES(CPTX_E_LIMIT, "32 x 32 x 2 threads", cptx_kernel_begin(s.m, "z", .max_block = { 32, 32, 2 }));
	REFUSES(CPTX_E_ARG, "function z: a result has 8 to 64 bits", cptx_func_begin(s.m, "z", CPTX_PRED));
	REFUSES(CPTX_E_ARG, "function z: a result has 8 to 64 bits", cptx_func_begin(s.m, "z", CPTX_B128));
	REFUSES(CPTX_E_LIMIT, "a CTA has at most 1024", cptx_kernel_begin(s.m, "z", .block = { 1u << 22, 1u << 21, 1u << 21 }));
	REFUSES(CPTX_E_ARG, "give .block (exact) or .max_block (upper bound), not both",
	        cptx_kernel_begin(s.m, "z", .block = { 32 }, .max_block = { 32 }));
	REFUSES(CPTX_E_ARG, "give .cluster (exact) or .max_cluster_rank (upper bound), not both",
	        cptx_kernel_begin(s.m, "z", .cluster = { 2 }, .max_cluster_rank = 4));
	REFUSES(CPTX_E_ARG, ".min_ctas needs .block or .max_block", cptx_kernel_begin(s.m, "z", .min_ctas = 2));
	REFUSES(CPTX_E_LIMIT, ".max_regs = 256; a thread has at most 255 registers",
	        cptx_kernel_begin(s.m, "z", .max_regs = 256));
}
END_TEST

START_TEST(more_ctas_than_fit)
{
	blank();
	cptx_kernel_begin(s.m, "k", .block = { 512 }, .min_ctas = 4);
	shows("sm_90", ".minnctapersm 4", NULL);
	cannot_print(
		"sm_89", CPTX_E_LIMIT,
		"kernel k: launch bounds: 4 CTAs of 512 threads; a multiprocessor of sm_89 holds at most 1536 threads and 24 CTAs");
	blank();
	cptx_kernel_begin(s.m, "k", .max_block = { 32 }, .min_ctas = 24);
	shows("sm_120", ".minnctapersm 24", NULL);
	cannot_print("sm_86", CPTX_E_LIMIT, "and 16 CTAs");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		version_and_codes,
		types_of_values,
		numbers_become_values,
		parts_of_arrays,
		offsets_and_views,
		offset_is_for_addresses,
		null_module,
		null_kernel,
		null_results,
		bodies,
		names,
		duplicate_names,
		names_of_other_places,
		one_body_at_a_time,
		returns_are_added,
		kernel_info,
		bounds,
		directives,
		bad_bounds,
		more_ctas_than_fit,
	};
	return verify_run("builder", tests, ARRAY_LEN(tests), true);
}
