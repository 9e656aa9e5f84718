/* SPDX-License-Identifier: MIT */
/* Each error of the calls that edit, what freezing finds, and memory that runs out. */
#include "scene.h"

#define REFUSES(code, part, call)                                                                                           \
	do {                                                                                                                    \
		open_text(text);                                                                                                    \
		(void)(call);                                                                                                       \
		says((code), (part));                                                                                               \
	} while (0)
/* Found when the module is frozen. */
#define BREAKS(part, call)                                                                                                  \
	do {                                                                                                                    \
		open_text(text);                                                                                                    \
		(void)(call);                                                                                                       \
		ck_assert_ptr_null(cptx_module_error(m));                                                                           \
		ck_assert(!cptx_module_freeze(m));                                                                                  \
		says(CPTX_E_STATE, (part));                                                                                         \
	} while (0)

START_TEST(edits_refuse)
{
	cptx_item *it;
	cptx_val nothing = { 0 };

	REFUSES(CPTX_E_STATE, "kernel main: the body is that of the text; cptx_edit_before", cptx_add(k, 1, 2));
	REFUSES(CPTX_E_ARG, "the item is NULL", cptx_edit_before(k, NULL));
	REFUSES(CPTX_E_ARG, "belongs to another", cptx_edit_after(k, cptx_item_first(f)));
	REFUSES(CPTX_E_ARG, "belongs to another", cptx_edit_remove(k, cptx_item_first(f)));
	REFUSES(CPTX_E_STATE, "the item was removed", (it = find("bar"), cptx_edit_remove(k, it), cptx_edit_before(k, it)));
	REFUSES(CPTX_E_STATE, "frozen", (cptx_module_freeze(m), cptx_edit_end(k)));
	REFUSES(CPTX_E_STATE, "frozen", (cptx_module_freeze(m), cptx_edit_rename_global(m, "one", "x")));
	REFUSES(CPTX_E_STATE, "frozen", (cptx_module_freeze(m), cptx_edit_target(m, "sm_90", 0)));
	REFUSES(CPTX_E_STATE, "is open", (cptx_edit_end(k), cptx_if_begin_(k, CPTX_HERE, value("%p1")), cptx_edit_end(k)));
	REFUSES(CPTX_E_ARG, "together with its {", cptx_edit_remove(k, cptx_item_next(find("ld.param.b32"))));
	REFUSES(CPTX_E_ARG, "there is no operand 7; it has 4", cptx_edit_operand(k, find("setp"), 7, 1));
	REFUSES(CPTX_E_FORM, "setp.lt.u32: q is .b64, not .pred", cptx_edit_operand(k, find("setp"), 1, value("%rd1")));
	REFUSES(CPTX_E_ARG, "the destination is missing", cptx_edit_operand(k, find("mov"), 0, nothing));
	REFUSES(CPTX_E_ARG, "another kernel", cptx_edit_operand(k, find("setp"), 1, cptx_body_value(f, "%r1")));
	REFUSES(CPTX_E_ARG, "no instruction", cptx_edit_operand(k, cptx_item_first(k), 0, 1));
	REFUSES(CPTX_E_ARG, "has no modifier .colour", cptx_edit_modifier(k, find("setp"), "colour", CPTX_LT));
	REFUSES(CPTX_E_FORM, ".cmp = CPTX_GLOBAL does not fit: write .cmp = CPTX_EQ (also CPTX_NE, ",
	        cptx_edit_modifier(k, find("setp"), "cmp", CPTX_GLOBAL));
	REFUSES(CPTX_E_ARG, "must be a predicate", cptx_edit_guard(k, find("bar"), value("%r1")));
	REFUSES(CPTX_E_ARG, "only kernels", cptx_edit_bounds(f, .block = { 32 }));
	REFUSES(CPTX_E_LIMIT, "a CTA has at most 1024", cptx_edit_bounds(k, .block = { 2048 }));
	open_text(".version 9.0\n.target sm_90\n.entry main() .reqntid 32 .reqnctapercluster 2 .blocksareclusters { ret; }\n");
	cptx_edit_bounds(k, .block = { 64 });
	says(CPTX_E_ARG, ".blocksareclusters of the text needs .block and .cluster");
	REFUSES(CPTX_E_TARGET, "there is no target 'sm_1'", cptx_edit_target(m, "sm_1", 0));
	REFUSES(CPTX_E_ARG, "no PTX version 33", cptx_edit_target(m, "sm_90", 33));
	REFUSES(CPTX_E_TARGET, "needs .version 7.8", cptx_edit_target(m, "sm_90", 70));
	REFUSES(CPTX_E_STATE, "only kernels of parsed text", (cptx_edit_end(f), cptx_param(f, CPTX_U32, "x")));
	REFUSES(CPTX_E_ARG, "already has a parameter", (cptx_edit_end(k), cptx_param(k, CPTX_U32, "p")));
	REFUSES(CPTX_E_ARG, "register or label named 'DONE'", (cptx_edit_end(k), cptx_param(k, CPTX_U32, "DONE")));
	REFUSES(CPTX_E_ARG, "would hide it there", cptx_global(m, CPTX_U32, 1, "buffer"));
	REFUSES(CPTX_E_ARG, "call: the function has 1 parameters",
	        cptx_edit_operand(k, find("call"), 2, (cptx_edit_end(k), cptx_list(k, 0, NULL))));
}
END_TEST

START_TEST(renames_refuse)
{
	REFUSES(CPTX_E_ARG, "no kernel, function or variable named 'none'", cptx_edit_rename_global(m, "none", "x"));
	REFUSES(CPTX_E_ARG, "no PTX identifier", cptx_edit_rename_global(m, "one", "1"));
	REFUSES(CPTX_E_ARG, "already has a function", cptx_edit_rename_global(m, "one", "helper"));
	REFUSES(CPTX_E_ARG, "would hide it there", cptx_edit_rename_global(m, "one", "other"));
	REFUSES(CPTX_E_ARG, "reserved", cptx_edit_rename_global(m, "one", "__cptx_x"));
	REFUSES(CPTX_E_ARG, "the name '%rd' is taken", cptx_edit_rename(k, value("%r1"), "%rd"));
	REFUSES(CPTX_E_ARG, "the name 'one' is taken", cptx_edit_rename(k, value("%x"), "one"));
	REFUSES(CPTX_E_ARG, "the name '%r7' is taken", cptx_edit_rename(k, value("%x"), "%r7"));
	REFUSES(CPTX_E_ARG, "'%tid' is reserved", cptx_edit_rename(k, value("%r1"), "%tid"));
	REFUSES(CPTX_E_ARG, "'%envreg' is reserved", cptx_edit_rename(k, value("%r1"), "%envreg"));
	REFUSES(CPTX_E_ARG, "'%cptx_r' is reserved", cptx_edit_rename(k, value("%r1"), "%cptx_r"));
	REFUSES(CPTX_E_ARG, "no PTX identifier", cptx_edit_rename(k, value("DONE"), "a b"));
	REFUSES(CPTX_E_ARG, "the name '%x' is taken", cptx_edit_rename(k, value("DONE"), "%x"));
	REFUSES(CPTX_E_ARG, "already has a variable", cptx_edit_rename(k, value("p"), "buffer"));
	REFUSES(CPTX_E_ARG, "only registers, variables", cptx_edit_rename(k, cptx_imm(1), "x"));
	REFUSES(CPTX_E_ARG, "registers that calls made", (cptx_edit_end(k), cptx_edit_rename(k, cptx_reg(k, CPTX_U32), "%q")));
	REFUSES(CPTX_E_ARG, "belongs to another", cptx_edit_rename(k, cptx_body_value(f, "%r1"), "%q"));
	REFUSES(CPTX_E_ARG, "no kernel, function or variable", cptx_edit_remove_global(m, "none"));
	REFUSES(CPTX_E_STATE, "it was removed", (cptx_edit_remove_global(m, "main"), cptx_edit_end(k)));
}
END_TEST

START_TEST(freezing_finds)
{
	BREAKS("'%rd1' is not declared where this uses it", cptx_edit_remove(k, cptx_item_declaring(k, value("%rd1"))));
	BREAKS("t.ptx:28: kernel main: 'DONE' is a label that stands nowhere",
	       cptx_edit_remove(k, cptx_item_declaring(k, value("DONE"))));
	BREAKS("'b' is not declared", cptx_edit_remove(k, cptx_item_declaring(k, value("b"))));
	BREAKS("'helper' was removed", (cptx_edit_remove_global(m, "table"), cptx_edit_remove_global(m, "helper")));
	BREAKS("variable 'table': 'helper', whose address it holds, was removed", cptx_edit_remove_global(m, "helper"));
	BREAKS("variable 'table': 'one'", cptx_edit_remove_global(m, "one"));
	BREAKS("'%inner' is not declared", (cptx_edit_end(k), cptx_mov(k, value("%r1"), .into = value("%inner"))));
	BREAKS("'%r1' is not declared",
	       (cptx_edit_before(k, cptx_item_first(k)), cptx_add(k, value("%r1"), value("%r1"), .type = CPTX_U32)));
	BREAKS("a label that stands nowhere; cptx_place puts it",
	       (cptx_edit_before(k, find("bar")), cptx_bra(k, cptx_label(k))));
	open_text(text); /* a label in a scope is seen in it only */
	cptx_edit_after(k, find("ld.param.b32"));
	cptx_val in = cptx_label(k);
	cptx_place(k, in);
	cptx_edit_before(k, find("bar"));
	cptx_bra(k, in);
	ck_assert(!cptx_module_freeze(m));
	says(CPTX_E_STATE, "is a label of another scope");
	open_text(".version 8.0\n.target sm_90\n.entry main()\n{\n\t.reg .b32 %a;\n\t{\n\t.reg .b32 %a;\n\tmov.u32 %a, "
	          "1;\n\t}\n\tret;\n}\n");
	cptx_val outer = cptx_body_value(k, "%a");
	cptx_edit_after(k, find("mov"));
	cptx_mov(k, 2, .into = outer);
	ck_assert(!cptx_module_freeze(m));
	says(CPTX_E_STATE, "'%a' means something else in this scope");
}
END_TEST

/* ---- memory ---- */

static size_t left; /* allocations that still work */

static void *limited(void *user, void *old, size_t size)
{
	(void)user;
	if (!size) {
		free(old);
		return NULL;
	}
	return left && left-- ? realloc(old, size) : NULL;
}

/* All calls; true if the text was printed. */
static bool work(void)
{
	cptx_allocator hook = { limited, NULL };
	cptx_module *mine =
		cptx_parse(text, strlen(text), &(cptx_parse_opt){ .name = "t.ptx", .keep = true, .allocator = &hook });
	cptx_kernel *body = cptx_module_body(mine, "main");
	cptx_error err = { 0 };

	if (mine && !cptx_module_error(mine)) {
		cptx_item *it = cptx_item_find(body, NULL, "bar");
		cptx_edit_before(body, it);
		for (int i = 0; i < 300; i++)
			cptx_add(body, cptx_tid_x(body), 1);
		cptx_place(body, cptx_label(body));
		cptx_param(body, CPTX_PTR, "more");
		cptx_shared(body, CPTX_U32, 4);
		cptx_edit_remove(body, it);
		cptx_edit_operand(body, cptx_item_find(body, NULL, "setp"), 2, 5);
		cptx_edit_rename(body, cptx_body_value(body, "%r1"), "%s");
		cptx_edit_rename(body, cptx_body_value(body, "DONE"), "END");
		cptx_edit_rename_global(mine, "one", "uno");
		cptx_edit_remove_global(mine, "two");
		cptx_edit_bounds(body, .block = { 32 });
	}
	cptx_ptx *ptx = mine ? cptx_emit(mine, "sm_100", &(cptx_emit_opt){ .keep = true }, &err) : NULL;
	bool done = ptx != NULL;
	ck_assert_msg(done || !mine || err.code == CPTX_E_MEMORY, "%s", err.text);
	if (done)
		ck_assert_ptr_nonnull(strstr(cptx_ptx_text(ptx), "uno"));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(mine);
	return done;
}

START_TEST(memory_runs_out_anywhere)
{
	size_t n = 0;
	do {
		left = n++;
	} while (!work());
	ck_assert_uint_gt(n, 10);
}
END_TEST

int main(void)
{
	const TTest *tests[] = { edits_refuse, renames_refuse, freezing_finds, memory_runs_out_anywhere };
	Suite *s = suite_create("refuse");
	TCase *c = tcase_create("refuse");
	tcase_set_timeout(c, 0);
	tcase_add_checked_fixture(c, NULL, drop);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		tcase_add_test(c, tests[i]);
	suite_add_tcase(s, c);
	return test_main("edit_refuse", s);
}
