/* SPDX-License-Identifier: MIT */
/*
 * Work grows with the number of names and not with its square: each way is gone with n and with 4n of them, and the time of
 * the processor (not of the clock: other programs may run) is compared.  What grows with the square takes 16 times as long;
 * the least of a few tries counts, and less than STEP seconds is no time that could be compared.
 */
#include "../test.h"

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/edit.h>
#include <cptx/emu.h>
#include <time.h>

enum { FEW = 4000, TRIES = 3, SEED = 7 };
static const double STEP_SECONDS = 0.02, MOST_RATIO = 11;

typedef struct text {
	char *p;
	size_t n, cap;
} text;

static void put(text *t, const char *format, unsigned i)
{
	if (t->cap - t->n < 300) {
		t->cap = 2 * t->cap + 1000;
		t->p = realloc(t->p, t->cap);
		ck_assert_ptr_nonnull(t->p);
	}
	t->n += (size_t)snprintf(t->p + t->n, t->cap - t->n, format, i, i, i);
}

static text head(void)
{
	text t = { 0 };

	put(&t, ".version 8.0\n.target sm_80\n.address_size 64\n", 0);
	return t;
}

static cptx_module *read_text(text *t)
{
	cptx_module *m = cptx_parse(t->p, t->n, &(cptx_parse_opt){ .keep = true });

	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
	free(t->p);
	return m;
}

/* No error so far. */
static void good(const cptx_module *m) { ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m)->text); }

static void finish(cptx_module *m)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, "sm_80", NULL, &err);

	ck_assert_msg(ptx != NULL, "%s", err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}

static const char *name_of(const char *prefix, unsigned i)
{
	static char made[64];

	snprintf(made, sizeof made, "%s%u_", prefix, i);
	return made;
}

/* ---- what is built ---- */

static void build_kernels(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel_info info;

	for (unsigned i = 0; i < n; i++) {
		cptx_kernel *k = cptx_kernel_begin(m, name_of("k", i));
		cptx_shared(k, CPTX_B32, 1);
	}
	good(m);
	ck_assert(cptx_module_freeze(m));
	for (unsigned i = 0; i < n; i++) {
		ck_assert(cptx_module_kernel(m, name_of("k", i), &info));
		ck_assert_ptr_nonnull(cptx_module_body(m, info.name));
	}
	finish(m);
}

static void build_functions(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);

	for (unsigned i = 0; i < n; i++) {
		cptx_func_begin(m, name_of("f", i), CPTX_TYPE_NONE);
		cptx_variable(m, CPTX_B32, name_of("g", i));
		ck_assert_int_ne(cptx_find(m, name_of("f", i)).kind, CPTX_VAL_NONE);
	}
	finish(m);
}

static void build_declared(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);

	for (unsigned i = 0; i < n; i++)
		cptx_func_declare(m, name_of("f", i));
	for (unsigned i = 0; i < n; i++)
		cptx_func_define(m, name_of("f", n - 1 - i));
	finish(m);
}

static void build_body(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	for (unsigned i = 0; i < n; i++) {
		cptx_local(k, CPTX_B32, name_of("l", i));
		cptx_label_named(k, name_of("there", i));
		cptx_global(m, CPTX_B32, 1, name_of("g", i));
	}
	good(m);
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(cptx_body_value(k, name_of("l", i)).kind, CPTX_VAL_SYM);
	finish(m);
}

static void build_shared(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	for (unsigned i = 0; i < n; i++)
		i % 2 ? cptx_shared_named(k, CPTX_B8, 1, 1, name_of("s", i)) : cptx_shared(k, CPTX_B8, 1);
	ck_assert(cptx_module_freeze(m)); /* no target has as much */
	cptx_module_destroy(m);
}

static void build_scopes(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	for (unsigned i = 0; i < n; i++)
		CPTX_SCOPE(k) { cptx_local(k, CPTX_B32, "same"); }
	finish(m);
}

static void build_files(unsigned n)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	for (unsigned i = 0; i < n; i++)
		cptx_place_(k, (cptx_site){ name_of("a/file", i), i + 1 }, cptx_label(k));
	finish(m);
}

/* ---- what is edited ---- */

static cptx_module *many_kernels(unsigned n)
{
	text t = head();

	for (unsigned i = 0; i < n; i++)
		put(&t, ".visible .entry k%u_() {\n.reg .b32 %%r<3>, one%u_;\nmov.b32 %%r1, 1;\nthere%u_:\nret;\n}\n", i);
	return read_text(&t);
}

static void edit_kernels(unsigned n)
{
	cptx_module *m = many_kernels(n);

	for (unsigned i = 0; i < n; i++) {
		cptx_kernel *k = cptx_module_body(m, name_of("k", i));
		ck_assert_ptr_nonnull(k);
		cptx_edit_end(k);
		cptx_label_named(k, name_of("more", i));
		cptx_edit_rename(k, cptx_body_value(k, "%r1"), "%x");
		cptx_edit_rename(k, cptx_body_value(k, name_of("there", i)), name_of("here", i));
	}
	finish(m);
}

static void rename_kernels(unsigned n)
{
	cptx_module *m = many_kernels(n);
	char old[64];

	for (unsigned i = 0; i < n; i++) {
		memcpy(old, name_of("k", i), sizeof old);
		cptx_edit_rename_global(m, old, name_of("kernel", i));
	}
	finish(m);
}

static void remove_kernels(unsigned n)
{
	cptx_module *m = many_kernels(n);

	for (unsigned i = 1; i < n; i++) {
		cptx_edit_remove_global(m, name_of("k", i % 2 ? i : n - i));
		ck_assert_ptr_nonnull(cptx_module_body_at(m, 0));
	}
	ck_assert_ptr_null(cptx_module_body_at(m, 1));
	finish(m);
}

static cptx_module *one_body(unsigned n, cptx_kernel **k)
{
	text t = head();

	put(&t, ".visible .entry k() {\n.reg .b32 %%r<3>;\n", 0);
	for (unsigned i = 0; i < n; i++) {
		put(&t, ".reg .b32 one%u_;\n.local .b32 loc%u_;\n", i);
		put(&t, "mov.b32 one%u_, 1;\nst.local.b32 [loc%u_], one%u_;\n", i);
		put(&t, "lab%u_:\nbra lab%u_;\n", i);
	}
	put(&t, "ret;\n}\n", 0);
	cptx_module *m = read_text(&t);
	*k = cptx_module_body(m, "k");
	return m;
}

static void look_up(unsigned n)
{
	cptx_kernel *k;
	cptx_module *m = one_body(n, &k);

	ck_assert(cptx_module_freeze(m));
	for (unsigned i = 0; i < n; i++) {
		ck_assert_int_eq(cptx_body_value(k, name_of("one", i)).kind, CPTX_VAL_REG);
		ck_assert_int_eq(cptx_body_value(k, name_of("loc", i)).kind, CPTX_VAL_SYM);
		ck_assert_int_eq(cptx_body_value(k, name_of("lab", i)).kind, CPTX_VAL_LABEL);
		ck_assert_int_eq(cptx_body_value(k, name_of("none", i)).kind, CPTX_VAL_NONE);
	}
	cptx_module_destroy(m);
}

static void rename_all(unsigned n)
{
	static const char *const names[] = { "one", "loc", "lab" };
	cptx_kernel *k;
	cptx_module *m = one_body(n, &k);

	for (unsigned i = 0; i < 3 * n; i++) {
		cptx_val v = cptx_body_value(k, name_of(names[i % 3], i / 3));
		cptx_edit_rename(k, v, name_of("new", i));
	}
	finish(m);
}

/* From the end, where what was removed comes in the wrong order. */
static void remove_all(unsigned n)
{
	cptx_kernel *k;
	cptx_module *m = one_body(n, &k);
	cptx_item *it = cptx_item_prev(cptx_item_last(k));

	for (cptx_item *before; cptx_item_prev(it); it = before) {
		before = cptx_item_prev(it);
		cptx_edit_remove(k, it);
	}
	finish(m);
}

static void insert_all(unsigned n)
{
	cptx_kernel *k;
	cptx_module *m = one_body(n, &k);

	cptx_edit_end(k);
	for (unsigned i = 0; i < n; i++)
		cptx_st(k, cptx_body_value(k, name_of("loc", i)), cptx_body_value(k, name_of("one", i)), .space = CPTX_LOCAL);
	cptx_ret(k);
	finish(m);
}

/* Each line comes from another line than the one behind it. */
static void look_up_origins(unsigned n)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	for (unsigned i = 0; i < n; i++) {
		cptx_comment(k, "one");
		cptx_comment(k, "other");
	}
	cptx_ret(k);
	cptx_ptx *ptx = cptx_emit(m, "sm_80", NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	unsigned named = 0;
	for (uint32_t line = 1; line <= 2 * n; line++)
		named += cptx_ptx_origin(ptx, line).file != NULL;
	ck_assert_uint_gt(named, n);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}

/* ---- what runs ---- */

static void load_kernels(unsigned n)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_80", &(cptx_emu_opt){ .threads = 1, .seed = SEED }, &err);
	ck_assert_msg(dev != NULL, "%s", err.text);
	text t = head();
	for (unsigned i = 0; i < n; i++)
		put(&t, ".global .b32 g%u_;\n.visible .entry k%u_() {\n.shared .b32 s%u_;\nret;\n}\n", i);
	cptx_program *p = cptx_device_load_text(dev, t.p, strlen(t.p), NULL, &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_ne(cptx_program_global(p, name_of("g", i), NULL, &err), 0);
	for (unsigned i = 0; i < n; i++)
		ck_assert_msg(cptx_launch_once(p, name_of("k", i), &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 } }, NULL, &err),
		              "%s", err.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	free(t.p);
}

/* Loads the text, and launches its only kernel with one thread. */
static void load_text(text *t, enum cptx_emu_schedule schedule)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90", &(cptx_emu_opt){ .threads = 1, .seed = SEED, .schedule = schedule }, &err);
	cptx_program *p = dev ? cptx_device_load_text(dev, t->p, strlen(t->p), NULL, &err) : NULL;

	ck_assert_msg(p && cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 } }, NULL, &err), "%s",
	              err.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	free(t->p);
}

/* Functions each of which calls the one in front of it; the kernel reaches them one by one, and calls none. */
static void load_chain(unsigned n)
{
	text t = head();

	put(&t, ".func f0_() { ret; }\n", 0);
	for (unsigned i = 1; i < n; i++)
		put(&t, ".func f%u_() { call f", i), put(&t, "%u_; ret; }\n", i - 1);
	put(&t,
	    ".visible .entry k() { .reg .pred p; .reg .b32 x; mov.u32 x, %%tid.x; setp.ne.u32 p, x, 0;\n@p call f%u_; ret; }\n",
	    n - 1);
	load_text(&t, CPTX_EMU_RANDOM);
}

/* One thread that starts asynchronous work n times, and then waits for all of it. */
static void start_work(const char *work, const char *wait, unsigned n, enum cptx_emu_schedule schedule)
{
	text t = { 0 };

	put(&t, ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 16 .b8 g[16];\n.visible .entry k() {\n", 0);
	put(&t, ".shared .align 16 .b8 s[16]; .shared .b64 bar; .shared .b32 to[8000];\n", 0);
	put(&t, ".reg .pred q; .reg .b32 d; mov.u32 d, to; mbarrier.init.shared.b64 [bar], %u;\n", n);
	put(&t, ".reg .pred p; .reg .b32 i; .reg .b64 a; mov.u64 a, g; mov.u32 i, 0;\n", 0);
	put(&t, "st.shared.v4.u32 [s], {i, i, i, i}; st.global.v4.u32 [a], {i, i, i, i}; fence.proxy.async;\nagain:\n", 0);
	put(&t, work, 0);
	put(&t, "add.u32 i, i, 1; setp.lt.u32 p, i, %u; @p bra again;\n", n);
	put(&t, wait, 0);
	put(&t, "ret;\n}\n", 0);
	load_text(&t, schedule);
}

static void start_stores(unsigned n)
{
	start_work("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [a], [s], 16; cp.async.bulk.commit_group;\n",
	           "cp.async.bulk.wait_group 0;\n", n, CPTX_EMU_RANDOM);
}

/* Fewer of them, for each copies to a place of its own, which to[] must have.  All copies are under way when the first ends.
 */
static void start_copies(unsigned n)
{
	n = (n + 31) / 32;
	ck_assert_uint_le(n, 8000);
	start_work("cp.async.ca.shared.global [d], [a], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; add.u32 d, d, 4;\n",
	           "wait: mbarrier.try_wait.parity.shared.b64 q, [bar], 0; @!q bra wait;\n", n, CPTX_EMU_LATE);
}

static void to_c(unsigned n)
{
	cptx_error err = { 0 };
	cptx_kernel *k;
	cptx_module *m = one_body(n, &k);
	cptx_ptx *c = cptx_to_c(m, NULL, &err);

	ck_assert_msg(c != NULL, "%s", err.text);
	cptx_ptx_destroy(c);
	cptx_module_destroy(m);
}

static const struct {
	const char *name;
	void (*go)(unsigned n);
} ways[] = {
	{ "build kernels", build_kernels },
	{ "build functions", build_functions },
	{ "declare and define", build_declared },
	{ "build in one body", build_body },
	{ "shared variables", build_shared },
	{ "scopes", build_scopes },
	{ "files", build_files },
	{ "edit kernels", edit_kernels },
	{ "rename kernels", rename_kernels },
	{ "remove kernels", remove_kernels },
	{ "look up in a body", look_up },
	{ "rename in a body", rename_all },
	{ "remove in a body", remove_all },
	{ "insert in a body", insert_all },
	{ "origins of lines", look_up_origins },
	{ "load and launch", load_kernels },
	{ "functions in a chain", load_chain },
	{ "bulk stores", start_stores },
	{ "copies that arrive", start_copies },
	{ "to C", to_c },
};

/* The least of TRIES, or the first that is less than `enough`. */
static double seconds(void (*go)(unsigned), unsigned n, double enough)
{
	double least = 1e9;

	for (int i = 0; i < TRIES; i++) {
		struct timespec a, b;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		go(n);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		double s = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
		least = s < least ? s : least;
		if (s < enough || s > 20) /* over 20 it is the square for sure, and others wait */
			break;
	}
	return least;
}

START_TEST(test_grows_with_names)
{
	unsigned n = FEW;
	double few = seconds(ways[_i].go, n, 0);

	for (; few < STEP_SECONDS && n < 16 * FEW; n *= 2)
		few = seconds(ways[_i].go, 2 * n, 0);
	double many = seconds(ways[_i].go, 4 * n, MOST_RATIO * few);
	printf("%-20s %7u: %.3f s, %7u: %.3f s, ratio %.1f\n", ways[_i].name, n, few, 4 * n, many, many / few);
	ck_assert_msg(many < MOST_RATIO * few || many < STEP_SECONDS, "%s: %u names take %.3f s of the processor, %u %.3f s",
	              ways[_i].name, n, few, 4 * n, many);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("scale");
	TCase *c = test_case(s, "names");

	tcase_add_loop_test(c, test_grows_with_names, 0, (int)(sizeof ways / sizeof *ways));
	return test_main("edit_scale", s);
}
