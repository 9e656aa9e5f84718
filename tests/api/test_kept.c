/* SPDX-License-Identifier: MIT */
/* Modules and texts that are used again and again, and calls that threads make at one place. */
#include "../meter.h"
#include "../test.h"
#include <cptx/cptx.h>
#include <cptx/fast.h>

#include <pthread.h>

/* A kernel with `n` times the same sum; returns the last. */
static cptx_val build(cptx_module *m, unsigned n, bool fast)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), at = cptx_param(k, CPTX_U32, "at");
	cptx_val x = cptx_add(k, p, cptx_mul_wide(k, at, 4)), sum = cptx_var(k, CPTX_F32, 0.5f);

	for (unsigned i = 0; i < n; i++) {
		cptx_val v = fast ? CPTX_FAST(cptx_ld, k, cptx_offset(x, 4 * (int64_t)i), .type = CPTX_F32, .space = CPTX_GLOBAL)
		                  : cptx_ld(k, cptx_offset(x, 4 * (int64_t)i), .type = CPTX_F32, .space = CPTX_GLOBAL);
		cptx_val w = fast ? CPTX_FAST(cptx_fma, k, v, v, sum, .rnd = CPTX_RN) : cptx_fma(k, v, v, sum, .rnd = CPTX_RN);
		cptx_val q = fast ? CPTX_FAST(cptx_setp, k, w, 1.0f, .cmp = CPTX_GT) : cptx_setp(k, w, 1.0f, .cmp = CPTX_GT);
		if (fast)
			CPTX_FAST(cptx_add, k, sum, w, .into = sum, .unless = q);
		else
			cptx_add(k, sum, w, .into = sum, .unless = q);
	}
	cptx_st(k, x, sum, .space = CPTX_GLOBAL);
	return sum;
}

static char *text_of(unsigned n, bool fast)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);

	build(m, n, fast);
	cptx_ptx *p = cptx_emit(m, "sm_80", NULL, &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	char *text = strdup(cptx_ptx_text(p));
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	return text;
}

START_TEST(fast_and_ordinary_are_one)
{
	char *a = text_of(40, false), *b = text_of(40, true);

	ck_assert_str_eq(a, b);
	free(a), free(b);
}
END_TEST

START_TEST(nothing_is_allocated_again)
{
	meter c = { 0 };
	cptx_allocator hook = { metered, &c };
	unsigned kernels = getenv("CPTX_WHOLE") ? 1000000 : 5000;
	cptx_module *m = cptx_module_new(&hook);
	cptx_ptx *p = cptx_ptx_new(&hook);
	char *expected = text_of(300, true), *small = text_of(9, true);
	cptx_error err = { .code = CPTX_OK };
	unsigned long requests = 0;
	long live = 0;

	for (unsigned i = 0; i < kernels; i++) {
		bool big = i % 100 < 2;
		ck_assert(cptx_module_clear(m));
		build(m, big ? 300 : 9, i % 3 != 0);
		SURE(cptx_emit_again(p, m, "sm_80", NULL, &err), "%s", err.text);
		SURE(!strcmp(cptx_ptx_text(p), big ? expected : small), "kernel %u is another one", i);
		if (i == 2) /* one big kernel of each path was there */
			requests = c.requests, live = c.live;
	}
	ck_assert_uint_eq(c.requests, requests);
	ck_assert_int_eq(c.live, live);
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	ck_assert_int_eq(c.live, 0);
	free(expected), free(small);
}
END_TEST

START_TEST(what_was_cleared_is_gone)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_val old = build(m, 2, true);

	ck_assert(cptx_module_clear(m));
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val f = cptx_reg(k, CPTX_F32);
	for (unsigned i = 0; i < 20; i++)
		f = CPTX_FAST(cptx_add, k, f, f);
	ck_assert_ptr_null(cptx_module_error(m));
	cptx_add(k, f, old);
	ck_assert_ptr_nonnull(cptx_module_error(m));
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "operand b"));
	ck_assert(cptx_module_clear(m)); /* errors go, too */
	ck_assert_ptr_null(cptx_module_error(m));
	ck_assert(!cptx_module_clear(NULL));
	cptx_module_destroy(m);
}
END_TEST

START_TEST(into_a_buffer)
{
	static char buffer[1 << 16];
	char *expected = text_of(50, true), says[32];
	size_t n = strlen(expected);
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *p = cptx_ptx_new(NULL);
	cptx_error err = { .code = CPTX_OK };

	build(m, 50, true);
	for (size_t size = n - 1; size <= sizeof buffer; size = size < n + 3 ? size + 1 : size + 9000) {
		memset(buffer, 'x', sizeof buffer);
		bool ok =
			cptx_emit_again(p, m, "sm_80", CPTX_OPT(cptx_emit_opt, .buffer = buffer, .buffer_size = size), FRESH(&err));
		ck_assert_int_eq(ok, size > n);
		if (!ok) {
			ck_assert_int_eq(err.code, CPTX_E_LIMIT);
			snprintf(says, sizeof says, "takes %zu bytes", n + 1);
			ck_assert_msg(strstr(err.text, says) != NULL, "%s", err.text);
			ck_assert_str_eq(cptx_ptx_text(p), "");
			continue;
		}
		ck_assert_ptr_eq(cptx_ptx_text(p), buffer);
		ck_assert_uint_eq(cptx_ptx_size(p), n);
		ck_assert_str_eq(buffer, expected);
		SURE(size == sizeof buffer || buffer[size] == 'x', "it wrote behind %zu bytes", size);
		ck_assert_uint_gt(cptx_ptx_origin(p, 20).line, 0);
	}
	ck_assert(cptx_emit_again(p, m, "sm_80", NULL, FRESH(&err))); /* to its own memory again */
	ck_assert_ptr_ne(cptx_ptx_text(p), buffer);
	ck_assert_str_eq(cptx_ptx_text(p), expected);
	ck_assert(!cptx_emit_again(p, m, "sm_1", NULL, FRESH(&err)));
	ck_assert_str_eq(cptx_ptx_text(p), "");
	ck_assert(!cptx_emit_again(NULL, m, "sm_80", NULL, FRESH(&err)));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	free(expected);
}
END_TEST

static void *in_thread(void *user)
{
	unsigned n = 20 + (unsigned)(uintptr_t)user % 3;

	for (unsigned i = 0; i < 50; i++) {
		char *a = text_of(n, true), *b = text_of(n, false);
		if (strcmp(a, b))
			return user;
		free(a), free(b);
	}
	return NULL;
}

START_TEST(threads_share_a_place)
{
	pthread_t t[8];

	for (uintptr_t i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, in_thread, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < 8; i++) {
		void *failed;
		pthread_join(t[i], &failed);
		ck_assert_ptr_null(failed);
	}
}
END_TEST

/* Calls that differ in their operands alone share what they have in common; editing one leaves the others as they are. */
START_TEST(one_of_many_is_edited)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_val x = cptx_tid_x(k);

	for (unsigned i = 0; i < 6; i++)
		x = CPTX_FAST(cptx_add, k, x, i + 1, .type = CPTX_U32);
	for (unsigned i = 0; i < 3; i++)
		x = cptx_mul(k, x, x, .mode = CPTX_LO, .type = CPTX_U32);
	cptx_item *second = cptx_item_find_op(k, cptx_item_find_op(k, NULL, CPTX_OP_ADD), CPTX_OP_ADD);
	cptx_item *third = cptx_item_find_op(k, second, CPTX_OP_ADD), *fourth = cptx_item_find_op(k, third, CPTX_OP_ADD);
	ck_assert_ptr_nonnull(cptx_edit_operand(k, second, 2, INT64_C(4000000000)));
	ck_assert_ptr_nonnull(cptx_edit_modifier(k, third, "type", (enum cptx_mod)CPTX_S32));
	cptx_edit_remove(k, fourth);
	cptx_item *product = cptx_item_find_op(k, NULL, CPTX_OP_MUL);
	ck_assert_ptr_nonnull(cptx_edit_modifier(k, cptx_item_find_op(k, product, CPTX_OP_MUL), "mode", CPTX_HI));
	cptx_ptx *p = cptx_emit(m, "sm_80", NULL, &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	ck_assert_str_eq(
		strstr(cptx_ptx_text(p), "\tadd"),
		"\tadd.u32 %r2, %r1, 1;\n\tadd.u32 %r3, %r2, 4000000000;\n\tadd.s32 %r4, %r3, 3;\n\tadd.u32 %r6, %r5, 5;\n"
		"\tadd.u32 %r7, %r6, 6;\n\tmul.lo.u32 %r8, %r7, %r7;\n\tmul.hi.u32 %r9, %r8, %r8;\n"
		"\tmul.lo.u32 %r10, %r9, %r9;\n\tret;\n}\n");
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
}
END_TEST

/* A text that is used again knows lines of its last print: of another target they are checked anew. */
START_TEST(each_target_is_asked)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);
	cptx_ptx *p = cptx_ptx_new(NULL);

	for (unsigned turn = 0; turn < 3; turn++) {
		cptx_module_clear(m);
		cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
		cptx_val x = cptx_tid_x(k);
		for (unsigned i = 0; i < 3; i++)
			x = CPTX_FAST(cptx_redux_sync, k, x, 0xffffffff, .op = CPTX_ADD, .type = CPTX_U32);
		ck_assert_msg(cptx_emit_again(p, m, "sm_80", NULL, &err), "%s", err.text);
		ck_assert_ptr_nonnull(strstr(cptx_ptx_text(p), ".version 7.0\n"));
		ck_assert(!cptx_emit_again(p, m, "sm_75", NULL, &err));
		ck_assert_int_eq(err.code, CPTX_E_TARGET);
		err = (cptx_error){ .code = CPTX_OK };
		ck_assert_msg(turn % 2 || cptx_emit_again(p, m, "sm_90", NULL, &err), "%s", err.text);
	}
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
}
END_TEST

/* A text for which memory was short at any request is printed once memory is there again. */
START_TEST(memory_comes_back)
{
	char *expected = text_of(300, true);
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		meter c = { 0 };
		cptx_allocator hook = { metered, &c };
		cptx_error err = { .code = CPTX_OK };
		cptx_module *m = cptx_module_new(NULL);
		cptx_ptx *p = cptx_ptx_new(&hook);
		build(m, 300, true);
		c.fail_at = c.requests + n;
		failed = !cptx_emit_again(p, m, "sm_80", NULL, &err);
		ck_assert(!failed || err.code == CPTX_E_MEMORY);
		failed |= c.requests >= c.fail_at; /* some requests are for speed alone */
		err.code = CPTX_OK;
		c.fail_at = 0;
		SURE(cptx_emit_again(p, m, "sm_80", NULL, &err), "behind request %u: %s", n, err.text);
		SURE(!strcmp(cptx_ptx_text(p), expected), "behind request %u the text is another one", n);
		cptx_ptx_destroy(p);
		cptx_module_destroy(m);
		ck_assert_int_eq(c.live, 0);
	}
	free(expected);
}
END_TEST

/* More places than a module's table has at first: each keeps its own file and line, from kernel to kernel. */
START_TEST(places_of_a_large_program)
{
	enum { PLACES = 600, TURNS = 4 };
	static cptx_again again[PLACES];
	static char file[PLACES][8];
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);

	for (unsigned i = 0; i < PLACES; i++)
		snprintf(file[i], sizeof file[i], "%u.c", i);
	for (unsigned fill = 0; fill < 3; fill++) {
		ck_assert(cptx_module_clear(m));
		cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
		cptx_val x = cptx_tid_x(k);
		for (unsigned i = 0; i < PLACES * TURNS; i++)
			cptx_add_again_(k, (cptx_site){ file[i * 7 % PLACES], i * 7 % PLACES + 1 },
			                &(struct cptx_add_){ .a = x, .b = cptx_imm(i), .type = CPTX_U32 }, &again[i * 7 % PLACES]);
		cptx_ptx *p = cptx_emit(m, "sm_80", NULL, &err);
		ck_assert_msg(p != NULL, "%s", err.text);
		uint32_t line = 1;
		const char *text = cptx_ptx_text(p), *first = strstr(text, "add.u32");
		for (const char *c = text; c < first; c++)
			line += *c == '\n';
		for (unsigned i = 0; i < PLACES * TURNS; i++) {
			cptx_site at = cptx_ptx_origin(p, line + i);
			SURE(at.file && !strcmp(at.file, file[i * 7 % PLACES]) && at.line == i * 7 % PLACES + 1, "line %u is from %s:%u",
			     line + i, at.file, at.line);
		}
		cptx_ptx_destroy(p);
	}
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kept");
	TCase *c = test_case(s, "kept");

	tcase_add_test(c, threads_share_a_place); /* first: its places are empty then */
	tcase_add_test(c, fast_and_ordinary_are_one);
	tcase_add_test(c, nothing_is_allocated_again);
	tcase_add_test(c, what_was_cleared_is_gone);
	tcase_add_test(c, into_a_buffer);
	tcase_add_test(c, one_of_many_is_edited);
	tcase_add_test(c, each_target_is_asked);
	tcase_add_test(c, places_of_a_large_program);
	tcase_add_test(c, memory_comes_back);
	return test_main("api_kept", s);
}
