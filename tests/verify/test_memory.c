/* SPDX-License-Identifier: MIT */
/* An allocator that fails at the n-th request, for every n: what is built is then right or says MEMORY; nothing leaks. */
#include "verify.h"

#include "shapes.h"

#include "../meter.h"

typedef void scene_fn(cptx_module *m);
static char *expected; /* what it prints with all the memory in the world; NULL: the scene ends in an error */
static char expected_error[CPTX_ERROR_TEXT];

/* One run.  True if no request failed, so that there is no larger n. */
static bool attempt(scene_fn *build, unsigned long n, bool forever)
{
	meter a = { .fail_at = n, .forever = forever };
	cptx_allocator hook = { metered, &a };
	cptx_module *m = cptx_module_new(&hook);
	cptx_error err = { .code = CPTX_OK };

	build(m);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", &(cptx_emit_opt){ .lines = true }, &err);
	if (ptx) {
		ck_assert_msg(expected && !strcmp(cptx_ptx_text(ptx), expected), "request %lu failed: other text", n);
		for (uint32_t line = 1; line < 2000; line += 7)
			cptx_ptx_origin(ptx, line);
	} else {
		bool memory = m ? err.code == CPTX_E_MEMORY && strstr(err.text, "out of memory")
		                : strstr(err.text, "the module is NULL") != NULL;
		ck_assert_msg(memory || (!expected && !strcmp(err.text, expected_error)) || strstr(err.text, "(out of memory)"),
		              "request %lu failed: %s: %s", n, cptx_code_name(err.code), err.text);
	}
	ck_assert(m || err.code == CPTX_E_ARG);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	ck_assert_msg(a.live == 0, "request %lu failed: %ld blocks are left", n, a.live);
	return !n || a.requests < n;
}

static void run(scene_fn *build, unsigned long least)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { .code = CPTX_OK };
	build(m);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", &(cptx_emit_opt){ .lines = true }, &err);
	expected = ptx ? strdup(cptx_ptx_text(ptx)) : NULL;
	strcpy(expected_error, err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);

	for (int forever = 0; forever < 2; forever++) {
		unsigned long n = 1;
		while (!attempt(build, n, forever))
			n++;
		ck_assert_uint_ge(n - 1, least);
		ck_assert(attempt(build, 0, false));
	}
	free(expected);
	expected = NULL;
}

START_TEST(everything) { run(build_everything, 8); }
END_TEST

/* Many of each, so that every array grows at a request of its own. */
static void build_arrays(cptx_module *m)
{
	char name[32];
	cptx_kernel *k;

	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "variable_%u", i);
		cptx_global(m, CPTX_U32, 64, name, .init = (uint32_t[64]){ i });
	}
	k = cptx_kernel_begin(m, "k");
	for (unsigned i = 0; i < 100; i++) {
		cptx_site at = { name, i };
		snprintf(name, sizeof name, "name_%u", i);
		cptx_val r = cptx_regs_(k, at, CPTX_B32, 40), l = cptx_label(k);
		cptx_param_(k, at, CPTX_U32, name);
		cptx_shared_(k, at, CPTX_U32, 1, 4, NULL);
		cptx_comment_(k, at, "%u", i);
		cptx_pragma_(k, at, "nounroll");
		cptx_pack_(k, at, (cptx_val[]){ cptx_elem(r, 0), cptx_elem(r, 1) }, 2);
		cptx_place_(k, at, l);
		for (unsigned j = 0; j < 40; j++)
			cptx_sreg_(k, at, CPTX_SREG_TID_X);
	}
}

/* As above, of several source files: a name that could not be kept must not be lost in silence. */
static void build_files(cptx_module *m)
{
	static char names[600][16];
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	for (unsigned i = 0; i < 600; i++) {
		snprintf(names[i], sizeof names[i], "file_%u.c", i);
		cptx_sreg_(k, (cptx_site){ names[i], i + 1 }, CPTX_SREG_TID_X);
	}
	cptx_asm_(k, (cptx_site){ names[0], 1 }, "ret;", NULL, 0);
}

START_TEST(arrays)
{
	run(build_arrays, 8);
	run(build_files, 8);
}
END_TEST

static void build_no_form(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_cvt(k, cptx_tid_x(k), .dtype = CPTX_F16X2);
}

static void build_no_spelling(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_asm(k, "ld.global.f16 {}, [{}];", cptx_reg(k, CPTX_F16), cptx_param(k, CPTX_PTR, "p"));
}

static void build_open_block(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_if_begin_(k, CPTX_HERE, cptx_setp(k, cptx_tid_x(k), 3, .cmp = CPTX_LT));
}

static void build_for_another_target(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_shared(k, CPTX_B8, 200 * 1024);
	cptx_shared_dyn(k, 100 * 1024, 16, "more");
}

START_TEST(errors)
{
	run(build_no_form, 1);
	run(build_no_spelling, 1);
	run(build_open_block, 1);
	run(build_for_another_target, 1);
}
END_TEST

/* What a target lacks is told with a list that needs memory of its own. */
START_TEST(what_a_target_lacks)
{
	bool done = false;
	unsigned told = 0;

	for (unsigned long n = 1; !done; n++) {
		meter a = { .fail_at = n };
		cptx_module *m = cptx_module_new(&(cptx_allocator){ metered, &a });
		cptx_kernel *k = cptx_kernel_begin(m, "k");
		cptx_error err = { .code = CPTX_OK };
		cptx_redux_sync(k, cptx_tid_x(k), -1, .op = CPTX_ADD);
		ck_assert_ptr_null(cptx_emit(m, "sm_75", NULL, FRESH(&err)));
		ck_assert_msg(err.code == CPTX_E_MEMORY || (!m && strstr(err.text, "the module is NULL")) ||
		                  (err.code == CPTX_E_TARGET && strstr(err.text, "redux.sync.add.u32 is not available on sm_75")),
		              "%s", err.text);
		told += err.code == CPTX_E_TARGET;
		done = a.requests < n;
		cptx_module_destroy(m);
		ck_assert_int_eq(a.live, 0);
	}
	ck_assert_uint_ge(told, 1);
}
END_TEST

START_TEST(no_hook_is_malloc)
{
	cptx_module *m = cptx_module_new(&(cptx_allocator){ NULL, NULL });
	ck_assert_ptr_nonnull(m);
	ck_assert_ptr_null(cptx_module_error(m));
	cptx_module_destroy(m);
}
END_TEST

START_TEST(not_even_a_module)
{
	meter a = { .fail_at = 1, .forever = true };
	cptx_module *m = cptx_module_new(&(cptx_allocator){ metered, &a });
	ck_assert_ptr_null(m);
	ck_assert_int_eq(a.live, 0);
	says(cptx_module_error(m), CPTX_E_ARG, "the module is NULL");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { everything, arrays, errors, what_a_target_lacks, no_hook_is_malloc, not_even_a_module };
	return verify_run("memory", tests, ARRAY_LEN(tests), false);
}
