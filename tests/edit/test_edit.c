/* SPDX-License-Identifier: MIT */
/* Each call that looks into or edits a body, on text and on built modules. */
#include "scene.h"

/* ---- looking ---- */

START_TEST(bodies_are_listed)
{
	open_text(text);
	ck_assert_ptr_eq(cptx_module_body_at(m, 0), f);
	ck_assert_ptr_eq(cptx_module_body_at(m, 1), k);
	ck_assert_ptr_null(cptx_module_body_at(m, 2));
	ck_assert_ptr_eq(cptx_module_body(m, NULL), k);
	ck_assert_ptr_null(cptx_module_body(m, "none"));
	ck_assert_str_eq(cptx_body_name(f), "helper");
	ck_assert(cptx_body_is_func(f) && !cptx_body_is_func(k));
	ck_assert_ptr_null(cptx_module_body_at(NULL, 0));
	ck_assert_ptr_null(cptx_item_first(NULL));
	ck_assert_ptr_null(cptx_item_find(NULL, NULL, "bar"));
	ck_assert_int_eq(cptx_body_value(NULL, "x").kind, CPTX_VAL_NONE);
}
END_TEST

START_TEST(items_are_what_the_text_says)
{
	cptx_item_info info;
	char name[64];

	open_text(text);
	cptx_item *st = find("st.global.v2");
	ck_assert(cptx_item_look(k, st, &info));
	ck_assert(!cptx_item_look(f, st, &info) && !cptx_item_look(k, NULL, &info));
	ck_assert_int_eq(info.kind, CPTX_ITEM_INSN);
	ck_assert_int_eq(info.op, CPTX_OP_ST);
	ck_assert_uint_eq(info.at.line, 38);
	ck_assert_str_eq(info.at.file, "t.ptx");
	ck_assert_int_eq(info.guard.kind, CPTX_VAL_NONE);
	ck_assert_ptr_nonnull(strstr(info.form, "st"));
	ck_assert_uint_eq(cptx_item_spelling(st, name, sizeof name), 16);
	ck_assert_str_eq(name, "st.global.v2.u32");
	ck_assert_uint_eq(cptx_item_spelling(st, name, 4), 16);
	ck_assert_str_eq(name, "st.");
	ck_assert_int_eq(cptx_item_modifier(st, "type"), CPTX_U32);
	ck_assert_int_eq(cptx_item_modifier(st, "space"), CPTX_GLOBAL);
	ck_assert_int_eq(cptx_item_modifier(st, "sem"), 0);
	ck_assert_int_eq(cptx_item_modifier(st, "nothing"), 0);
	cptx_val a = cptx_item_operand(st, 0), b = cptx_item_operand(st, 1);
	ck_assert_int_eq(a.offset, 8);
	ck_assert_uint_eq(b.count, 2);
	ck_assert_uint_eq(cptx_body_name_of(k, cptx_body_element(k, b, 1), name, sizeof name), 3);
	ck_assert_str_eq(name, "%r2");
	ck_assert_int_eq(cptx_body_element(k, b, 2).kind, CPTX_VAL_BAD);
	ck_assert_int_eq(cptx_item_operand(st, 9).kind, CPTX_VAL_NONE);
	ck_assert(cptx_item_look(k, find("bra"), &info));
	ck_assert_int_eq(info.guard.kind, CPTX_VAL_REG);
	ck_assert(!info.guard.negated);
	size_t n = 0, kinds[CPTX_ITEM_PROTO + 1] = { 0 };
	for (cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it), n++) {
		ck_assert(cptx_item_look(k, it, &info));
		kinds[info.kind]++;
		if (info.kind == CPTX_ITEM_COMMENT && info.at.line == 29)
			ck_assert_str_eq(info.text, "between");
	}
	ck_assert_uint_eq(kinds[CPTX_ITEM_INSN], 11);
	ck_assert_uint_eq(kinds[CPTX_ITEM_REGS], 4);
	ck_assert_uint_eq(kinds[CPTX_ITEM_VAR], 4);
	ck_assert_uint_eq(kinds[CPTX_ITEM_COMMENT], 2);
	ck_assert_uint_eq(kinds[CPTX_ITEM_LABEL] + kinds[CPTX_ITEM_SCOPE] + kinds[CPTX_ITEM_END], 3);
	for (cptx_item *it = cptx_item_last(k); it; it = cptx_item_prev(it))
		n--;
	ck_assert_uint_eq(n, 0);
	ck_assert_ptr_eq(cptx_item_find_op(k, NULL, CPTX_OP_ST), cptx_item_find(k, NULL, "st.param"));
	ck_assert_ptr_null(cptx_item_find(k, NULL, "st.glob"));
	ck_assert_uint_eq(cptx_item_slot(st, "b"), 1);
	ck_assert(cptx_item_slot(st, "into") == SIZE_MAX);
	ck_assert_uint_eq(cptx_item_slot(find("mov"), "into"), 0);
	ck_assert_ptr_null(cptx_item_find_op(k, cptx_item_find_op(k, NULL, CPTX_OP_RET), CPTX_OP_RET));
}
END_TEST

START_TEST(names_are_values)
{
	static const char *const names[] = { "%r5", "%x", "p", "buffer", "other", "DONE", "one", "helper", "%inner", "a" };
	char name[64];

	open_text(text);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		cptx_val v = value(names[i]);
		cptx_body_name_of(k, v, name, sizeof name);
		ck_assert_str_eq(name, names[i]);
	}
	ck_assert_int_eq(cptx_body_value(k, "%r8").kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_body_value(k, "%r05").kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_body_value(k, "in").kind, CPTX_VAL_NONE);
	cptx_item_info info;
	ck_assert(cptx_item_look(k, cptx_item_declaring(k, value("%x")), &info));
	ck_assert_uint_eq(info.at.line, 21);
	ck_assert(cptx_item_look(k, cptx_item_declaring(k, value("DONE")), &info));
	ck_assert_int_eq(info.kind, CPTX_ITEM_LABEL);
	ck_assert_ptr_null(cptx_item_declaring(k, value("one")));
}
END_TEST

/* ---- editing ---- */

START_TEST(inserting)
{
	open_text(text);
	cptx_edit_before(k, find("bar.sync"));
	cptx_val t = cptx_add(k, value("%r1"), 1);
	cptx_edit_after(k, find("ld.param"));
	CPTX_IF(k, cptx_setp(k, t, 5, .cmp = CPTX_LT))
		cptx_call(k, cptx_func_val(f), 0, NULL);
	ck_assert_ptr_nonnull(cptx_module_error(m)); /* helper takes one */

	open_text(text);
	cptx_edit_before(k, find("bar.sync"));
	t = cptx_add(k, cptx_as(value("%r1"), CPTX_U32), 1);
	cptx_edit_after(k, find("setp"));
	CPTX_IF(k, cptx_setp(k, t, 5, .cmp = CPTX_LT))
		cptx_st(k, cptx_shared_named(k, CPTX_U32, 4, 4, "mine"), t, .space = CPTX_SHARED);
	cptx_edit_end(k);
	cptx_comment(k, "the end");
	changes("+    .reg .pred %cptx_p<2>;\n"
	        "+    .reg .b32 %cptx_r<2>;\n"
	        "+    .shared .align 4 .b8 mine[16];\n"
	        "-    setp.lt.u32 %p1, %r1, 16; @%p1 bra DONE;\n"
	        "+    setp.lt.u32 %p1, %r1, 16;\n"
	        "+    setp.lt.u32 %cptx_p1, %cptx_r1, 5;\n"
	        "+    @!%cptx_p1 bra $cptx_L1;\n"
	        "+    st.shared.u32 [mine], %cptx_r1;\n"
	        "+$cptx_L1:\n"
	        "+    @%p1 bra DONE;\n"
	        "+    add.u32 %cptx_r1, %r1, 1;\n"
	        "+    // the end\n");
}
END_TEST

START_TEST(calling)
{
	open_text(text);
	cptx_edit_before(k, find("bar.sync"));
	cptx_val r = cptx_call(k, value("helper"), 1, (cptx_val[]){ value("%r1") });
	cptx_st(k, value("one"), r, .space = CPTX_GLOBAL);
	changes("+    .reg .b32 %cptx_r<2>;\n"
	        "+    {\n"
	        "+    .param .b32 __cptx_arg0;\n"
	        "+    st.param.b32 [__cptx_arg0], %r1;\n"
	        "+    .param .b32 __cptx_value;\n"
	        "+    call (__cptx_value), helper, (__cptx_arg0);\n"
	        "+    ld.param.b32 %cptx_r1, [__cptx_value];\n"
	        "+    }\n"
	        "+    st.global.b32 [one], %cptx_r1;\n");
	open_text(".version 8.0\n.target sm_90\n.func helper(.reg .b32 %x)\n{\n\tret;\n}\n.entry main()\n{\n\tret;\n}\n");
	cptx_edit_before(k, find("ret"));
	cptx_call(k, value("helper"), 1, (cptx_val[]){ cptx_tid_x(k) });
	says(CPTX_E_ARG, "function helper passes more than single values in .param; write the call with cptx_asm");
}
END_TEST

START_TEST(removing)
{
	open_text(text);
	cptx_edit_remove(k, find("setp"));
	cptx_edit_remove(k, find("ld.param"));
	cptx_edit_remove(k, find("bar.sync"));
	cptx_item *scope = cptx_item_prev(cptx_item_declaring(k, value("%inner")));
	cptx_edit_remove(k, scope);
	cptx_edit_remove(k, cptx_item_declaring(k, value("buffer")));
	ck_assert_uint_eq(cptx_module_size(m), 3 + 5);
	changes("-    .shared .b32 buffer[32], other;\n"
	        "+    .shared .b32 other;\n"
	        "-    ld.param.u64 %rd1, [p]; // the pointer\n"
	        "+    // the pointer\n"
	        "-    setp.lt.u32 %p1, %r1, 16; @%p1 bra DONE;\n"
	        "+    @%p1 bra DONE;\n"
	        "-    bar.sync 0;\n"
	        "-    {\n"
	        "-        .reg .b32 %inner;\n"
	        "-        .param .b32 a, b;\n"
	        "-        st.param.b32 [a], %r1;\n"
	        "-        call (b), helper, (a);\n"
	        "-        ld.param.b32 %inner, [b];\n"
	        "-    }\n");
}
END_TEST

START_TEST(replacing_and_changing)
{
	cptx_item_info info;

	open_text(text);
	cptx_edit_replace(k, find("bar.sync"));
	cptx_bar_sync(k, 1);
	cptx_item *set = cptx_edit_operand(k, find("setp"), cptx_item_slot(find("setp"), "b"), 20);
	set = cptx_edit_modifier(k, set, "cmp", CPTX_GE);
	ck_assert(cptx_item_look(k, set, &info));
	ck_assert_int_eq(cptx_item_modifier(set, "cmp"), CPTX_GE);
	cptx_edit_guard(k, find("bra"), cptx_negated(value("%p1")));
	cptx_edit_operand(k, find("st.global.u32"), 1, value("%r3"));
	cptx_edit_guard(k, find("st.global.u32"), value("%p1"));
	cptx_edit_guard(k, find("st.global.u32"), (cptx_val){ 0 });
	cptx_edit_bounds(k, .block = { 128 });
	changes("-.visible .entry main( // its head\n"
	        "-    .param .u64 p\n"
	        "+.visible .entry main(\n"
	        "+	.param .u64 p\n"
	        "-.maxntid 64\n"
	        "+.reqntid 128, 1, 1\n"
	        "-    setp.lt.u32 %p1, %r1, 16; @%p1 bra DONE;\n"
	        "+    setp.ge.u32 %p1, %r1, 20; @!%p1 bra DONE;\n"
	        "-    bar.sync 0;\n"
	        "+    bar.sync 1;\n"
	        "-    st.global.u32 [one], %r1;\n"
	        "+    st.global.u32 [one], %r3;\n");
}
END_TEST

START_TEST(renaming)
{
	open_text(text);
	cptx_edit_rename(k, value("%r1"), "%s");
	cptx_edit_rename(k, value("DONE"), "END");
	cptx_edit_rename(k, value("p"), "pointer");
	cptx_edit_rename(k, value("a"), "argument");
	cptx_edit_rename_global(m, "helper", "assistant");
	cptx_edit_rename_global(m, "one", "uno");
	cptx_edit_rename(k, value("%x"), "%y");
	changes("-.global .align 4 .b32 one, two;\n"
	        "-.func (.param .b32 out) helper(.param .b32 in);\n"
	        "-.global .u64 table[2] = { generic(one), helper };\n"
	        "+.global .align 4 .b32 uno;\n"
	        "+.global .align 4 .b32 two;\n"
	        "+.func (.param .b32 out) assistant(\n"
	        "+	.param .b32 in\n"
	        "+);\n"
	        "+.global .u64 table[2]={generic(uno), assistant};\n"
	        "-.func (.param .b32 out) helper(.param .b32 in)\n"
	        "+.func (.param .b32 out) assistant(\n"
	        "+	.param .b32 in\n"
	        "+)\n"
	        "-.visible .entry main( // its head\n"
	        "-    .param .u64 p\n"
	        "+.visible .entry main(\n"
	        "+	.param .u64 pointer\n"
	        "-.maxntid 64\n"
	        "+.maxntid 64, 1, 1\n"
	        "-    .reg .b32 %r<8>, %x;\n"
	        "+    .reg .b32 %s<8>, %y;\n"
	        "-    ld.param.u64 %rd1, [p]; // the pointer\n"
	        "-    mov.u32 %r1, %tid.x;\n"
	        "-    setp.lt.u32 %p1, %r1, 16; @%p1 bra DONE;\n"
	        "+    ld.param.u64 %rd1, [pointer]; // the pointer\n"
	        "+    mov.u32 %s1, %tid.x;\n"
	        "+    setp.lt.u32 %p1, %s1, 16; @%p1 bra END;\n"
	        "-        .param .b32 a, b;\n"
	        "-        st.param.b32 [a], %r1;\n"
	        "-        call (b), helper, (a);\n"
	        "+        .param .b32 argument;\n"
	        "+        .param .b32 b;\n"
	        "+        st.param.b32 [argument], %s1;\n"
	        "+        call (b), assistant, (argument);\n"
	        "-    st.global.v2.u32 [%rd1+8], {%r1, %r2};\n"
	        "-    st.global.u32 [one], %r1;\n"
	        "-DONE:\n"
	        "+    st.global.v2.u32 [%rd1+8], {%s1, %s2};\n"
	        "+    st.global.u32 [uno], %s1;\n"
	        "+END:\n");
}
END_TEST

START_TEST(module_level)
{
	open_text(text);
	cptx_edit_remove_global(m, "two");
	cptx_val table = cptx_global(m, CPTX_U32, 4, "added");
	cptx_edit_before(k, find("bar.sync"));
	cptx_val p = cptx_param(k, CPTX_PTR, "more");
	cptx_st(k, p, cptx_ld(k, table, .space = CPTX_GLOBAL, .type = CPTX_U32), .space = CPTX_GLOBAL);
	changes("-.global .align 4 .b32 one, two;\n"
	        "+.global .align 4 .b32 one;\n"
	        "+.global .align 16 .b8 added[16];\n"
	        "-.visible .entry main( // its head\n"
	        "-    .param .u64 p\n"
	        "+.visible .entry main(\n"
	        "+	.param .u64 p,\n"
	        "+	.param .u64 more\n"
	        "-.maxntid 64\n"
	        "+.maxntid 64, 1, 1\n"
	        "+    .reg .b32 %cptx_r<2>;\n"
	        "+    .reg .b64 %cptx_rd<2>;\n"
	        "+    ld.param.u64 %cptx_rd1, [more];\n"
	        "+    cvta.to.global.u64 %cptx_rd1, %cptx_rd1;\n"
	        "+    ld.global.u32 %cptx_r1, [added];\n"
	        "+    st.global.u32 [%cptx_rd1], %cptx_r1;\n");
	cptx_kernel_info info;
	ck_assert(cptx_module_kernel(m, "main", &info));
	ck_assert_uint_eq(info.nparams, 2);
	ck_assert_str_eq(info.params[1].name, "more");

	open_text(
		".version 8.0\n.target sm_90\n.entry main(.param .u64 a);\n.func helper();\n.func other();\n.alias other, helper;\n"
		".entry main(.param .u64 b)\n{\n\tret;\n}\n.func helper() { ret; }\n.section .debug_x { .b64 helper }\n");
	cptx_edit_before(k, find("ret"));
	cptx_param_bytes(k, 8, 8, "more");
	cptx_edit_rename_global(m, "helper", "aid");
	char *now = print_module(m, NULL, true);
	ck_assert_str_eq(now, ".version 8.0\n.target sm_90\n.entry main(\n\t.param .u64 a,\n\t.param .align 8 .b8 more[8]\n);\n"
	                      ".func aid();\n.func other();\n.alias other, aid;\n"
	                      ".entry main(\n\t.param .u64 b,\n\t.param .align 8 .b8 more[8]\n)\n{\n\tret;\n}\n"
	                      ".func aid()\n{ ret; }\n.section .debug_x { .b64 aid }\n");
	free(now);

	open_text(text);
	cptx_edit_remove_global(m, "main");
	cptx_kernel *fresh = cptx_kernel_begin(m, "fresh");
	cptx_add(fresh, cptx_tid_x(fresh), 1);
	ck_assert_ptr_null(cptx_module_body(m, "main"));
	now = print_module(m, NULL, true);
	ck_assert_ptr_nonnull(strstr(now, ".visible .entry fresh()\n{\n"));
	ck_assert_ptr_null(strstr(now, "main"));
	free(now);

	open_text(".version 8.0\n.target sm_90\n.entry main() { ret; }\n.entry j() { ret; }\n");
	cptx_edit_remove_global(m, "main");
	ck_assert_ptr_nonnull(cptx_module_body_at(m, 0));
	ck_assert_str_eq(cptx_body_name(cptx_module_body_at(m, 0)), "j");
	ck_assert_ptr_null(cptx_module_body_at(m, 1));
}
END_TEST

START_TEST(retargeting)
{
	cptx_error err = { .code = CPTX_OK };

	open_text(text);
	cptx_edit_target(m, "sm_80", 0);
	changes("-.target sm_90 // the target\n"
	        "+.target sm_80 // the target\n");
	open_text(text);
	cptx_edit_target(m, "sm_120", 0);
	changes("-.version 8.0\n"
	        "-.target sm_90 // the target\n"
	        "+.version 8.7\n"
	        "+.target sm_120 // the target\n");
	open_text(".version 8.0\n.target sm_90\n.address_size 64\n.entry main()\n{\n\tbarrier.cluster.arrive;\n\tret;\n}\n");
	ck_assert_ptr_null(cptx_emit(m, "sm_80", &(cptx_emit_opt){ .keep = true }, &err));
	ck_assert_int_eq(err.code, CPTX_E_TARGET);
	ck_assert_msg(strstr(err.text, "t.ptx:6:2: error: barrier.cluster.arrive is not available on sm_80") != NULL, "%s",
	              err.text);
	open_text(text);
	cptx_set_target(m, "sm_90", 80, "texmode_unified");
	changes("-.target sm_90 // the target\n"
	        "+.target sm_90, texmode_unified // the target\n");
	open_text(".version 8.0\r\n.target sm_90\r\n.address_size 64\r\n.entry main()\r\n{\r\n  ret;\r\n}");
	cptx_edit_before(k, find("ret"));
	cptx_bar_sync(k, 0);
	char *now = print_module(m, NULL, true);
	ck_assert_str_eq(
		now, ".version 8.0\r\n.target sm_90\r\n.address_size 64\r\n.entry main()\r\n{\r\n  bar.sync 0;\r\n  ret;\r\n}");
	free(now);
	open_text(".version 7.0\n.target sm_80\n.entry main() { ret; }");
	cptx_edit_before(k, find("ret"));
	cptx_bar_sync(k, 0);
	now = print_module(m, NULL, true);
	ck_assert_str_eq(now, ".version 7.0\n.target sm_80\n.entry main() {\n\tbar.sync 0;\n\tret; }");
	free(now);
	open_text(".version 7.0\n.target sm_80\n.entry main() { ret; }");
	cptx_edit_before(k, find("ret"));
	cptx_fence(k, .sem = CPTX_ACQ_REL, .scope = CPTX_GPU);
	cptx_edit_target(m, "sm_80", 78);
	now = print_module(m, NULL, true);
	ck_assert_str_eq(now, ".version 7.8\n.target sm_80\n.entry main() {\n\tfence.acq_rel.gpu;\n\tret; }");
	free(now);
}
END_TEST

START_TEST(made_names_are_new)
{
	open_text(
		".version 8.0\n.target sm_90\n.address_size 64\n.entry main()\n{\n\t.reg .b32 %cptx_r<4>;\n\t.reg .b32 shared_0;\n"
		"$cptx_L0:\n\tmov.u32 %cptx_r1, 1;\n\tmov.u32 shared_0, 2;\n\tbra $cptx_L0;\n}\n");
	cptx_edit_before(k, find("bra"));
	cptx_val t = cptx_tid_x(k), l = cptx_label(k);
	cptx_st(k, cptx_shared(k, CPTX_U32, 1), t, .space = CPTX_SHARED);
	cptx_bra(k, l);
	cptx_place(k, l);
	char *now = print_module(m, NULL, true);
	ck_assert_str_eq(now, ".version 8.0\n.target sm_90\n.address_size 64\n.entry main()\n{\n\t.reg .b32 %cptx2_r<2>;\n"
	                      "\t.shared .align 16 .b8 shared_1[4];\n\t.reg .b32 %cptx_r<4>;\n\t.reg .b32 shared_0;\n"
	                      "$cptx_L0:\n\tmov.u32 %cptx_r1, 1;\n\tmov.u32 shared_0, 2;\n\tmov.u32 %cptx2_r1, %tid.x;\n"
	                      "\tst.shared.u32 [shared_1], %cptx2_r1;\n\tbra $cptx2_L1;\n$cptx2_L1:\n\tbra $cptx_L0;\n}\n");
	free(now);
}
END_TEST

START_TEST(built_modules_too)
{
	drop();
	m = cptx_module_new(NULL);
	k = cptx_kernel_begin(m, "first");
	cptx_val a = cptx_tid_x(k);
	cptx_val s = cptx_shared_named(k, CPTX_U32, 4, 4, "buffer");
	cptx_st(k, s, a, .space = CPTX_SHARED);
	cptx_kernel *second = cptx_kernel_begin(m, "second");
	cptx_bar_sync(second, 0);
	cptx_edit_after(k, find("mov"));
	cptx_val b = cptx_add(k, a, 1);
	cptx_edit_operand(k, find("st"), 1, b);
	cptx_edit_rename(k, s, "mine");
	cptx_edit_rename_global(m, "second", "third");
	cptx_edit_remove(second, cptx_item_find(second, NULL, "bar"));
	cptx_edit_target(m, "sm_80", 0);
	char *now = print_module(m, NULL, false);
	ck_assert_msg(strstr(now,
	                     "{\n\t.reg .b32 %r<3>;\n\t.shared .align 4 .b8 mine[16];\n\tmov.u32 %r1, %tid.x;\n"
	                     "\tadd.u32 %r2, %r1, 1;\n\tst.shared.u32 [mine], %r2;\n\tret;\n}\n\n.visible .entry third()\n{\n"
	                     "\tret;\n}\n") != NULL,
	              "%s", now);
	free(now);
}
END_TEST

START_TEST(functions_further_down_are_declared)
{
	open_text(".version 8.0\n.target sm_90\n.entry main()\n{\n\tret;\n}\n.func helper()\n{\n\tret;\n}\n");
	cptx_edit_before(k, find("ret"));
	cptx_asm(k, "call {};", cptx_func_val(f));
	char *now = print_module(m, NULL, true);
	ck_assert_str_eq(now, ".version 8.0\n.target sm_90\n\n.func helper();\n.entry main()\n{\n\tcall helper;\n\tret;\n}\n"
	                      ".func helper()\n{\n\tret;\n}\n");
	cptx_module *again = corpus_parse("again", now, strlen(now));
	ck_assert_ptr_nonnull(again);
	cptx_module_destroy(again);
	free(now);
}
END_TEST

START_TEST(lines_are_mapped)
{
	open_text(text);
	cptx_edit_before(k, find("bar.sync"));
	uint32_t here = __LINE__ + 1;
	cptx_bar_sync(k, 2);
	cptx_ptx *ptx = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = true }, NULL);
	ck_assert_ptr_nonnull(ptx);
	for (uint32_t line = 21; line <= 42; line++) {
		cptx_site at = cptx_ptx_origin(ptx, line);
		if (line == 30) {
			ck_assert_uint_eq(at.line, here);
			ck_assert_str_eq(at.file, __FILE__);
		} else if (line != 25) { /* an empty one */
			ck_assert_uint_eq(at.line, line < 30 ? line : line - 1);
			ck_assert_str_eq(at.file, "t.ptx");
		}
	}
	ck_assert_ptr_null(cptx_ptx_origin(ptx, 5).file);
	ck_assert_ptr_null(cptx_ptx_origin(ptx, 17).file);
	cptx_ptx_destroy(ptx);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { bodies_are_listed,
		                     items_are_what_the_text_says,
		                     names_are_values,
		                     inserting,
		                     calling,
		                     removing,
		                     replacing_and_changing,
		                     renaming,
		                     module_level,
		                     retargeting,
		                     made_names_are_new,
		                     built_modules_too,
		                     functions_further_down_are_declared,
		                     lines_are_mapped };
	Suite *s = suite_create("edit");
	TCase *c = tcase_create("edit");
	tcase_set_timeout(c, 0);
	tcase_add_checked_fixture(c, NULL, drop);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return test_main("edit_edit", s);
}
