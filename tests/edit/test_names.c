/* SPDX-License-Identifier: MIT */
/* Names have no limit: built, edited, printed, read again, made C; messages show their ends. */
#include "../test.h"

#include <cptx/cptx.h>
#include <cptx/edit.h>

enum { MOST_LINE = 3000 };

static const size_t lengths[] = { 1023, 1024, 2047, 2048, 5000, 100000 };

/* `first`, then as many characters as the length needs; to be freed. */
static char *name_of(char first, size_t n)
{
	char *s = malloc(n + 1);

	ck_assert_ptr_nonnull(s);
	memset(s, 'n', n);
	s[0] = first;
	s[n] = 0;
	return s;
}

static char *print(cptx_module *m)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, "sm_80", NULL, &err);

	ck_assert_msg(ptx != NULL, "%s", err.text);
	char *text = strdup(cptx_ptx_text(ptx));
	cptx_ptx_destroy(ptx);
	return text;
}

START_TEST(built)
{
	size_t n = lengths[_i];
	char *k = name_of('k', n), *f = name_of('f', n), *g = name_of('g', n), *l = name_of('l', n), *p = name_of('p', n);
	cptx_module *m = cptx_module_new(NULL);

	cptx_global(m, CPTX_U32, 1, g);
	cptx_ret(cptx_func_begin(m, f, CPTX_TYPE_NONE));
	cptx_kernel *kernel = cptx_kernel_begin(m, k);
	cptx_val x = cptx_param(kernel, CPTX_U32, p), there = cptx_label_named(kernel, l);
	cptx_local(kernel, CPTX_U32, "local");
	cptx_place(kernel, there);
	cptx_st(kernel, cptx_find(m, g), x, .space = CPTX_GLOBAL);
	cptx_bra(kernel, there);
	const cptx_error *e = cptx_module_error(m);
	ck_assert_msg(!e, "%zu: %s", n, e ? e->text : "");
	char *text = print(m);
	cptx_module_destroy(m);
	m = cptx_parse(text, strlen(text), NULL);
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
	kernel = cptx_module_body(m, k);
	ck_assert_ptr_nonnull(kernel);
	ck_assert_int_eq(cptx_body_value(kernel, l).kind, CPTX_VAL_LABEL);
	ck_assert_int_eq(cptx_body_value(kernel, g).kind, CPTX_VAL_SYM);
	free(k), free(f), free(g), free(l), free(p), free(text);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(renamed)
{
	static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %r<4>, one;\n"
							   ".local .b32 v;\nmov.b32 one, 1;\nst.local.b32 [v], one;\nmov.b32 %r1, one;\nret;\n}\n";
	size_t n = lengths[_i];
	char *a = name_of('a', n), *b = name_of('b', n), *c = name_of('c', n), *k = name_of('k', n);
	cptx_module *m = cptx_parse(text, sizeof text - 1, &(cptx_parse_opt){ .keep = true });
	cptx_kernel *body = cptx_module_body(m, "k");

	cptx_edit_rename(body, cptx_body_value(body, "one"), a);
	cptx_edit_rename(body, cptx_body_value(body, "v"), b);
	cptx_edit_rename(body, cptx_body_value(body, "%r1"), c);
	cptx_edit_rename_global(m, "k", k);
	cptx_edit_end(body); /* names of what is put in are looked up whole */
	cptx_st(body, cptx_body_value(body, b), cptx_body_value(body, a), .space = CPTX_LOCAL);
	cptx_ret(body);
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
	char *printed = print(m);
	ck_assert(strstr(printed, a) && strstr(printed, b) && strstr(printed, c) && strstr(printed, k));
	free(printed), free(a), free(b), free(c), free(k);
	cptx_module_destroy(m);
}
END_TEST

/* What hides something else is found by all of its name. */
START_TEST(hidden)
{
	size_t n = lengths[_i];
	char *a = name_of('a', n), *text = malloc(4 * n + 1000);

	a[n - 1] = 'x';
	sprintf(text,
	        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %s;\nmov.b32 %s, 1;\n{ .reg .b32 %s;\n"
	        "mov.b32 %s, 2; }\nret;\n}\n",
	        a, a, a, a);
	cptx_module *m = cptx_parse(text, strlen(text), NULL);
	cptx_kernel *k = cptx_module_body(m, "k");
	cptx_item *first = cptx_item_find(k, NULL, "mov"), *second = cptx_item_find(k, first, "mov");
	cptx_edit_before(k, second);
	cptx_mov(k, cptx_imm(3), .into = cptx_item_operand(first, 0));
	ck_assert(!cptx_module_freeze(m));
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "means something else in this scope"));
	ck_assert_uint_lt(strlen(cptx_module_error(m)->text), MOST_LINE);
	free(a), free(text);
	cptx_module_destroy(m);
}
END_TEST

/* The end of a message is not lost behind a name. */
START_TEST(messages)
{
	size_t n = lengths[_i];
	char *k = name_of('k', n), *text = malloc(2 * n + 1000);
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *kernel = cptx_kernel_begin(m, k);

	cptx_fail(kernel, "something is wrong at the end");
	ck_assert_msg(strstr(cptx_module_error(m)->text, "something is wrong at the end"), "%.300s", cptx_module_error(m)->text);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "nnn...nnn"));
	cptx_module_destroy(m);
	sprintf(text, ".version 8.0\n.target sm_80\n.address_size 64\n.func %s();\n.func %s() { ret; }\n.func %s() { ret; }\n",
	        "f", k, k);
	m = cptx_parse(text, strlen(text), NULL);
	ck_assert_msg(strstr(cptx_module_error(m)->text, "is defined above already"), "%.300s", cptx_module_error(m)->text);
	free(k), free(text);
	cptx_module_destroy(m);
}
END_TEST

/* Names of two kinds of things with one hash: of a function and a variable, of a label and a variable of a body. */
START_TEST(equal_hashes)
{
	static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
							   ".func f959888()\n{\nf774628:\n\tret;\n}\n";
	cptx_module *m = cptx_module_new(NULL);

	cptx_ret(cptx_func_begin(m, "f959888", CPTX_TYPE_NONE));
	cptx_ret(cptx_func_begin(m, "v334080", CPTX_TYPE_NONE));
	ck_assert_int_eq(cptx_find(m, "v334080").kind, CPTX_VAL_FUNC);
	ck_assert_ptr_nonnull(cptx_module_body(m, "v334080"));
	free(print(m));
	cptx_module_destroy(m);
	m = cptx_parse(text, strlen(text), NULL);
	cptx_kernel *k = cptx_module_body(m, "f959888");
	ck_assert_int_eq(cptx_body_value(k, "f774628").kind, CPTX_VAL_LABEL);
	ck_assert_int_eq(cptx_body_value(k, "v182830").kind, CPTX_VAL_NONE);
	ck_assert(!cptx_module_error(m));
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("names");
	TCase *c = test_case(s, "names");
	int n = (int)(sizeof lengths / sizeof *lengths);

	tcase_add_loop_test(c, built, 0, n);
	tcase_add_loop_test(c, renamed, 0, n);
	tcase_add_loop_test(c, hidden, 0, n);
	tcase_add_loop_test(c, messages, 0, n);
	tcase_add_test(c, equal_hashes);
	return test_main("edit_names", s);
}
