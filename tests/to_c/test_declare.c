/* SPDX-License-Identifier: MIT */
/* Declarations in full, loops without a test of their own, and waiting: what they print, and what is refused. */
#include "../test.h"

#include <cptx/cptx.h>

static cptx_module *m;
static cptx_kernel *k;

static void begin(void)
{
	m = cptx_module_new(NULL);
	k = cptx_kernel_begin(m, "k");
}

/* The module, printed, holds the text. */
static void prints(const char *text)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, &err);

	ck_assert_msg(ptx != NULL, "%s", err.text);
	ck_assert_msg(strstr(cptx_ptx_text(ptx), text) != NULL, "no\n%s\nin\n%s", text, cptx_ptx_text(ptx));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}

/* The first error holds the text and names this file. */
static void refused(const char *text)
{
	const cptx_error *e = cptx_module_error(m);

	ck_assert_msg(e != NULL, "taken, where \"%s\" was expected", text);
	ck_assert_msg(strstr(e->text, text) && strstr(e->text, "test_declare.c"), "no \"%s\" in: %s", text, e->text);
	cptx_module_destroy(m);
}

START_TEST(variables)
{
	static const unsigned char init[] = { 1, 2, 3 };
	m = cptx_module_new(NULL);
	cptx_val a = cptx_variable(m, CPTX_B8, "a", .dim = { 2, 3 }, .init = init, .ninit = 3, .linkage = CPTX_LINK_WEAK);
	cptx_variable(m, CPTX_U64, "b", .unsized = true, .init = (uint64_t[]){ 0, 7 }, .ninit = 2,
	              .address = ((cptx_address[]){ { 0, cptx_offset(a, 4), 0, true } }), .naddress = 1);
	cptx_variable(m, CPTX_F32, "c", .space = CPTX_SHARED, .linkage = CPTX_LINK_EXTERN, .unsized = true, .align = 16,
	              .vec = 2);
	k = cptx_kernel_begin(m, "k");
	prints(".weak .global .b8 a[2][3]={{1, 2, 3}};\n.global .u64 b[]={generic(a)+4, 7};\n"
	       ".extern .shared .align 16 .v2 .f32 c[];\n");
}
END_TEST

START_TEST(signatures)
{
	m = cptx_module_new(NULL);
	cptx_kernel *f = cptx_func_declare(m, "f");
	cptx_result_reg(f, CPTX_B32, "r");
	cptx_param_var(f, CPTX_B8, "bytes", .dim = { 12 }, .align = 4);
	cptx_directive(f, ".noreturn");
	k = cptx_kernel_begin(m, "k");
	cptx_set_linkage(k, CPTX_LINK_NONE);
	cptx_param_var(k, CPTX_U64, "p", .pointer = true, .ptr_space = CPTX_GLOBAL, .ptr_align = 8);
	prints(".func (.reg .b32 r) f(\n\t.param .align 4 .b8 bytes[12]\n)\n.noreturn;\n\n"
	       ".entry k(\n\t.param .u64 .ptr .global .align 8 p\n)\n");
}
END_TEST

START_TEST(names_of_scopes)
{
	begin();
	for (int i = 0; i < 2; i++)
		CPTX_SCOPE(k) { cptx_st(k, cptx_local(k, CPTX_B32, "x"), 1, .type = CPTX_B32); }
	prints("\t{\n\t.local .b32 x;\n\tst.local.b32 [x], 1;\n\t}\n\t{\n\t.local .b32 x;\n\tst.local.b32 [x], 1;\n\t}\n");
	begin();
	CPTX_SCOPE(k)
	{
		cptx_local(k, CPTX_B32, "x");
		cptx_local(k, CPTX_B32, "x");
	}
	refused("already has a variable named 'x'");
}
END_TEST

START_TEST(waits)
{
	static const char *const text[] = {
		[CPTX_WAIT_LOOP] = "$L1:\n\tmbarrier.test_wait.shared.b64 %p1, [bar], %rd1;\n\t@!%p1 bra $L1;\n\tret;\n",
		[CPTX_WAIT_UNIFORM] = "$L1:\n\tmbarrier.test_wait.shared.b64 %p1, [bar], %rd1;\n\t@!%p1 bra.uni $L1;\n\tret;\n",
		[CPTX_WAIT_DONE] =
			"$L1:\n\tmbarrier.test_wait.shared.b64 %p1, [bar], %rd1;\n\t@%p1 bra $L0;\n\tbra $L1;\n$L0:\n\tret;\n",
	};
	begin();
	cptx_val bar = cptx_local(k, CPTX_B64, "bar", .space = CPTX_SHARED), state = cptx_mbarrier_arrive(k, bar);
	cptx_mbarrier_wait(k, (enum cptx_wait_shape)_i, cptx_mbarrier_test_wait(k, bar, state));
	prints(text[_i]);
}
END_TEST

START_TEST(loops)
{
	begin();
	cptx_val i = cptx_var(k, CPTX_U32, 4);
	CPTX_DO(k)
	{
		cptx_break_when(k, cptx_setp(k, i, 0, .cmp = CPTX_EQ));
		cptx_sub(k, i, 1, .into = i);
		cptx_continue(k);
	}
	prints("$L1:\n\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 bra $L0;\n\tsub.u32 %r1, %r1, 1;\n\tbra $L1;\n$L0:\n");
}
END_TEST

START_TEST(what_is_refused)
{
	begin();
	cptx_variable(m, CPTX_B32, "v", .dim = { 2 }, .init = "12345678abcd", .ninit = 3);
	refused("1 to 2 of them, 3 were given");
	begin();
	cptx_variable(m, CPTX_B32, "v", .ninit = 3);
	refused(".ninit is given, but .init is NULL");
	begin();
	cptx_param_var(k, CPTX_U64, "p", .ptr_align = 16);
	refused("say .pointer too");
	begin();
	cptx_variable(m, CPTX_B32, "v", .align = 3);
	refused("alignments that are powers of two");
	begin();
	cptx_local(k, CPTX_B32, "v", .space = CPTX_TEXREF);
	refused(".space must be CPTX_LOCAL, CPTX_SHARED or CPTX_PARAM");
	begin();
	cptx_result_var(k, CPTX_B32, "r");
	refused("only functions have results");
	begin();
	cptx_param_reg(k, CPTX_B32, "r");
	refused("only device functions have parameters in registers");
	begin();
	cptx_ret(cptx_func_declare(m, "f"));
	refused("it is only declared; cptx_func_define opens its body");
	begin();
	cptx_func_define(m, "g");
	refused("no function 'g' was declared that lacks a body");
	begin();
	cptx_find(m, "nothing");
	refused("no variable, function or kernel 'nothing'");
	begin();
	cptx_set_target(m, "sm_90a", 70, NULL);
	refused("'sm_90a', 70");
	begin();
	cptx_module_text(m, ".version 8.0");
	refused("one .file, .section, .alias or .pragma");
	begin();
	cptx_text(k, ".loc 1 1\n1");
	refused("on one line");
	begin();
	cptx_directive(k, ".noreturn {");
	refused("one directive of a head");
	begin();
	cptx_label_named(k, "$L7");
	refused("of the form $L1");
	begin();
	cptx_break(k);
	refused("cptx_break stands in no loop");
	begin();
	cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_imm(1));
	refused("must be a predicate register");
}
END_TEST

/* ---- cptx_to_c when memory runs out: at every allocation once ---- */

static long left; /* allocations that succeed */

static void *failing(void *user, void *old, size_t size)
{
	(void)user;
	if (!size) {
		free(old);
		return NULL;
	}
	return left-- > 0 ? realloc(old, size) : NULL;
}

START_TEST(memory_runs_out)
{
	const cptx_allocator hook = { failing, NULL };
	char text[1 << 14];
	cptx_error err = { .code = CPTX_OK };
	bool done = false;

	FILE *f = fopen(TO_C_DIR "/calls.ptx", "rb");
	ck_assert(f != NULL);
	size_t n = fread(text, 1, sizeof text, f);
	fclose(f);
	for (long fail = 0; !done && fail < 1000; fail++) {
		left = 1 << 20;
		m = cptx_parse(text, n, &(cptx_parse_opt){ .allocator = &hook });
		ck_assert_ptr_null(cptx_module_error(m));
		left = fail;
		cptx_ptx *c = cptx_to_c(m, NULL, FRESH(&err));
		done = c != NULL;
		ck_assert(done || err.code == CPTX_E_MEMORY);
		cptx_ptx_destroy(c);
		cptx_module_destroy(m);
	}
	ck_assert(done);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("declare");
	TCase *c = tcase_create("declare");

	tcase_add_test(c, variables);
	tcase_add_test(c, signatures);
	tcase_add_test(c, names_of_scopes);
	tcase_add_loop_test(c, waits, CPTX_WAIT_LOOP, CPTX_WAIT_DONE + 1);
	tcase_add_test(c, loops);
	tcase_add_test(c, what_is_refused);
	tcase_add_test(c, memory_runs_out);
	suite_add_tcase(s, c);
	return test_main("declare", s);
}
