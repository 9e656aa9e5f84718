/* SPDX-License-Identifier: MIT */
/* Row kernels: what is refused, by which words. */
#include "../test.h"

#include <cptx/rows.h>

static void refuses(const cptx_rows_opt *o, const char *target, const char *says)
{
	cptx_error err = { .code = CPTX_OK };

	ck_assert_msg(!cptx_rows_check(o, cptx_target_find(target), 4096, 0, NULL, &err), "taken, not: %s", says);
	ck_assert_msg(strstr(err.text, says) != NULL, "%s\nnot: %s", err.text, says);
}
#define OPT(...)                                                                                                            \
	&(cptx_rows_opt) { .kernel = CPTX_ROWS_SOFTMAX, .in = CPTX_BF16, .n = 4096, __VA_ARGS__ }
#define REFUSES(says, ...) refuses(OPT(__VA_ARGS__), "sm_90a", says)

static void nothing(cptx_kernel *k, cptx_rows_row *row, void *user) { (void)k, (void)row, (void)user; }

#pragma GCC diagnostic ignored "-Woverride-init"
START_TEST(options)
{
	REFUSES("rows of 0 elements; they have 1 to 262144", .n = 0);
	REFUSES("rows of 262145 elements", .n = 262145);
	REFUSES(".in is .e4m3; rows are read as .f32, .f16 or .bf16", .in = CPTX_E4M3);
	REFUSES(".out is .e4m3; softmax writes", .out = CPTX_E4M3);
	REFUSES("quantize writes .e4m3 or .e2m1", .kernel = CPTX_ROWS_QUANTIZE, .out = CPTX_F32);
	REFUSES("rows of 12 elements at multiples of 4, in .e2m1", .kernel = CPTX_ROWS_QUANTIZE, .out = CPTX_E2M1, .n = 12);
	REFUSES("the 65 largest of 4096 elements", .kernel = CPTX_ROWS_TOP_K, .k = 65);
	REFUSES("the 9 largest of 8 elements", .kernel = CPTX_ROWS_TOP_K, .k = 9, .n = 8);
	REFUSES("softmax has no option .k", .k = 2);
	REFUSES("pairs need an even number", .kernel = CPTX_ROWS_ROTARY_PAIRS, .n = 7);
	REFUSES("transpose writes .f32 and reads .bf16", .kernel = CPTX_ROWS_TRANSPOSE, .out = CPTX_F32);
	REFUSES("transpose works on tiles", .kernel = CPTX_ROWS_TRANSPOSE, .place = CPTX_ROWS_REGISTERS);
	REFUSES(".weight is .s32", .weight = CPTX_S32);
	REFUSES(".index is .u32", .index = CPTX_U32);
	REFUSES("softmax has no operand w to ask for by .with", .with = CPTX_ROWS_BIT(CPTX_ROWS_W));
	REFUSES("softmax has no option .eps", .eps = 1e-6f);
	REFUSES("softmax has no option .tanh", .tanh = true);
	REFUSES("softmax has no option .ignore", .ignore = true);
	REFUSES(".smoothing is 2; it is a part, 0 to 1", .kernel = CPTX_ROWS_CROSS_ENTROPY, .smoothing = 2);
	REFUSES("softmax is built by the library", .body = nothing);
	REFUSES(".align is a power of two", .align = 3);
	REFUSES("<cptx/rows.def> lists the kernels", .kernel = CPTX_ROWS_KERNELS);
}
END_TEST

START_TEST(shapes)
{
	REFUSES("CTAs of 48 threads; .threads is a multiple of 32 up to 1024", .place = CPTX_ROWS_REGISTERS, .threads = 48,
	        .per_row = 48, .split = 1);
	REFUSES("CTAs of 48 threads", .threads = 48);
	REFUSES("CTAs of 4294967295 threads", .threads = UINT32_MAX); /* a search that doubles them would not end */
	REFUSES("CTAs of 4294967264 threads", .threads = UINT32_MAX - 31);
	REFUSES("rows of 2147483648 threads; a CTA has up to 1024", .per_row = 1u << 31); /* twice of it is 0 */
	REFUSES("rows of 536870912 CTAs; .split is at most 1024", .split = 1u << 29);
	REFUSES("4294967295 rows in shared memory; .stages is 1 to 8", .stages = UINT32_MAX);
	REFUSES("no shape with what is given", .split = 3);
	REFUSES("17 chunks of rows in shared memory; .chunks is 2 to 16", .chunks = 17);
	REFUSES(".chunks = 4; only rows in shared memory have any", .place = CPTX_ROWS_REGISTERS, .chunks = 4);
	REFUSES("17 chunks of rows in shared memory; .chunks is 2 to 16", .place = CPTX_ROWS_SHARED, .threads = 64,
	        .per_row = 64, .split = 1, .stages = 1, .rows_each = 1, .chunks = 17);
	REFUSES("of which registers keep up to 4", .place = CPTX_ROWS_SHARED, .threads = 32, .per_row = 32, .split = 1,
	        .stages = 1, .rows_each = 1, .chunks = 3);
	REFUSES(".stages = 2 beside .chunks = 4", .place = CPTX_ROWS_SHARED, .threads = 64, .per_row = 64, .split = 1,
	        .stages = 2, .rows_each = 1, .chunks = 4);
	REFUSES(".chunks are of kernels that write rows", .kernel = CPTX_ROWS_ARGMAX, .place = CPTX_ROWS_SHARED, .threads = 64,
	        .per_row = 64, .split = 1, .stages = 1, .rows_each = 1, .chunks = 4);
	REFUSES("128 rows at once in a CTA, each with a list of", .kernel = CPTX_ROWS_TOP_K, .k = 8, .n = 64,
	        .place = CPTX_ROWS_REGISTERS, .threads = 256, .per_row = 2, .split = 1);
	refuses(OPT(.split = 4), "sm_80", "sm_80 has no clusters, by which 4 CTAs would share a row");
	refuses(OPT(.kernel = CPTX_ROWS_QUANTIZE), "sm_80", "sm_80 cannot convert to .e4m3; sm_89 and later can");
	refuses(OPT(.prefetch = true), "sm_80", "sm_80 has no bulk prefetch");
	refuses(OPT(.in = CPTX_F32), "sm_75", "sm_75 is not served");
}
END_TEST

START_TEST(own)
{
	const uint32_t x = CPTX_ROWS_BIT(CPTX_ROWS_X), y = CPTX_ROWS_BIT(CPTX_ROWS_Y), w = CPTX_ROWS_BIT(CPTX_ROWS_W);

	REFUSES("CPTX_ROWS_OWN is built by .body, which is NULL", .kernel = CPTX_ROWS_OWN, .reads = x, .writes = y);
	REFUSES("those of CPTX_ROWS_OWN are .reads and .writes", .kernel = CPTX_ROWS_OWN, .body = nothing, .with = w);
	REFUSES("a kernel that writes nothing", .kernel = CPTX_ROWS_OWN, .body = nothing, .reads = x);
	REFUSES("a kernel that reads nothing", .kernel = CPTX_ROWS_OWN, .body = nothing, .writes = y);
	REFUSES("x is read and written", .kernel = CPTX_ROWS_OWN, .body = nothing, .reads = x, .writes = x);
	REFUSES("no row can write them", .kernel = CPTX_ROWS_OWN, .body = nothing, .reads = x, .writes = w);
}
END_TEST

static int which;

static void wrong(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	const uint32_t x = CPTX_ROWS_BIT(CPTX_ROWS_X), y = CPTX_ROWS_BIT(CPTX_ROWS_Y);
	cptx_rows_at e = { .reserved_ = { 0 } }, inner;

	(void)user;
	switch (which) {
	case 0: CPTX_ROWS_EACH(k, row, &e, .reads = CPTX_ROWS_BIT(CPTX_ROWS_X2)) {
		}
		break;
	case 1: CPTX_ROWS_EACH(k, row, &e, .reads = x, .writes = y) {
		}
		break;
	case 2:
		CPTX_ROWS_EACH(k, row, &e, .reads = x)
		{
			CPTX_ROWS_EACH(k, row, &inner, .reads = x) {}
		}
		break;
	case 3: cptx_rows_column(k, row, &e); break;
	case 4: cptx_rows_put(k, row, CPTX_ROWS_LSE, 0.0f); break;
	case 5: cptx_rows_get(k, row, CPTX_ROWS_X); break;
	default: cptx_rows_reduce(k, row, cptx_var(k, CPTX_F32, 0.0f), CPTX_REDUCE_SUM); break;
	}
}

START_TEST(bodies)
{
	static const char *const says[] = { "the pass reads x2, which the kernel's options do not say",
		                                "the pass writes y, and its body sets no v[CPTX_ROWS_...] of that",
		                                "a pass inside of another",
		                                "an element of a row outside of a pass: CPTX_ROWS_EACH",
		                                "the body writes lse, which the kernel's options do not say",
		                                "x is no scalar of a row",
		                                "a reduction in a kernel whose options say .local" };

	for (which = 0; which < 7; which++) {
		cptx_rows_opt o = { .kernel = CPTX_ROWS_OWN,
			                .in = CPTX_F32,
			                .n = 256,
			                .body = wrong,
			                .local = which == 6,
			                .reads = CPTX_ROWS_BIT(CPTX_ROWS_X),
			                .writes = CPTX_ROWS_BIT(CPTX_ROWS_Y),
			                .place = CPTX_ROWS_REGISTERS,
			                .threads = 64,
			                .per_row = 64,
			                .split = 1 };
		cptx_error err = { .code = CPTX_OK };
		cptx_module *m = cptx_module_new(NULL);
		ck_assert(!cptx_rows_build(m, &o, FRESH(&err)));
		ck_assert_msg(strstr(err.text, says[which]) && strstr(err.text, "test_rules.c"), "%s\nnot: %s", err.text,
		              says[which]);
		cptx_module_destroy(m);
	}
}
END_TEST

static void forgets(cptx_kernel *k, cptx_rows_row *row, void *user)
{
	cptx_rows_at e = { .reserved_ = { 0 } };
	const bool *puts = (const bool *)user;

	CPTX_ROWS_EACH(k, row, &e, .reads = CPTX_ROWS_BIT(CPTX_ROWS_X), .writes = *puts ? 0 : CPTX_ROWS_BIT(CPTX_ROWS_Y))
	{
		e.v[CPTX_ROWS_Y] = e.v[CPTX_ROWS_X];
	}
	if (*puts)
		cptx_rows_put(k, row, CPTX_ROWS_LSE, cptx_var(k, CPTX_F32, 0.0f));
}

/* A body that sets no result which its options promise. */
START_TEST(results)
{
	for (int puts = 0; puts < 2; puts++) {
		bool user = puts;
		cptx_rows_opt o = { .kernel = CPTX_ROWS_OWN,
			                .in = CPTX_F32,
			                .n = 256,
			                .body = forgets,
			                .user = &user,
			                .reads = CPTX_ROWS_BIT(CPTX_ROWS_X),
			                .writes = CPTX_ROWS_BIT(CPTX_ROWS_Y) | CPTX_ROWS_BIT(CPTX_ROWS_LSE),
			                .place = CPTX_ROWS_REGISTERS,
			                .threads = 64,
			                .per_row = 64,
			                .split = 1 };
		cptx_error err = { .code = CPTX_OK };
		cptx_module *m = cptx_module_new(NULL);
		ck_assert(!cptx_rows_build(m, &o, &err));
		ck_assert_msg(strstr(err.text, puts ? "the body writes no y, which is among .writes: CPTX_ROWS_EACH"
		                                    : "the body writes no lse, which is among .writes: cptx_rows_put") != NULL,
		              "%s", err.text);
		cptx_module_destroy(m);
	}
}
END_TEST

static void refuses_problem(cptx_device *dev, const cptx_rows_opt *o, const cptx_rows_problem *p, const char *says)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, FRESH(&err));

	ck_assert_msg(!cptx_rows_run(r, o, p, NULL, FRESH(&err)) && strstr(err.text, says), "%s\nnot: %s", err.text, says);
	cptx_rows_runner_destroy(r);
}

START_TEST(problems)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_device_open("emu:sm_90a", &err);
	const uint64_t at = cptx_mem_alloc(dev, 1 << 16, &err), to = cptx_mem_alloc(dev, 1 << 16, &err);
	cptx_rows_opt o = { .kernel = CPTX_ROWS_SOFTMAX, .in = CPTX_BF16, .n = 256 }, sum = o;
	cptx_rows_problem p = { .rows = 2 };

	p.at[CPTX_ROWS_X].address = at;
	refuses_problem(dev, &o, &p, "the problem has no address of y");
	p.at[CPTX_ROWS_Y].address = to + 1;
	refuses_problem(dev, &o, &p, "is no multiple of its elements' 2 bytes");
	o.align = 8, p.at[CPTX_ROWS_Y].address = to + 2;
	refuses_problem(dev, &o, &p, "do not begin at multiples of 8 elements: say .align = 1");
	p.at[CPTX_ROWS_Y] = (cptx_rows_matrix){ .address = at, .stride = 512 };
	refuses_problem(dev, &o, &p, "y in place of x, which has another type or stride");
	p.at[CPTX_ROWS_Y] = (cptx_rows_matrix){ .address = at };
	o.place = CPTX_ROWS_MEMORY;
	refuses_problem(dev, &o, &p, "y in place of x, of which rows in memory are read again");
	p.at[CPTX_ROWS_Y].address = to, p.at[CPTX_ROWS_LSE].address = to;
	refuses_problem(dev, &o, &p, "the problem has an operand lse, and the kernel none: .with");
	sum.kernel = CPTX_ROWS_COLUMN_SUM;
	p = (cptx_rows_problem){ .rows = 2, .at = { [CPTX_ROWS_X] = { .address = at }, [CPTX_ROWS_DW] = { .address = to } } };
	refuses_problem(dev, &sum, &p, "the problem has no workspace; sums of columns need");
	/* rows in parts, which only a launch by hand starts without rows */
	cptx_rows_opt parts = { .kernel = CPTX_ROWS_ARGMAX, .in = CPTX_BF16, .n = 8192, .split = 4 };
	cptx_rows_choice c;
	ck_assert(cptx_rows_auto(&parts, cptx_target_find("sm_90a"), 1, 0, &c, 1, FRESH(&err)));
	cptx_module *m = cptx_module_new(NULL);
	ck_assert(cptx_rows_build(m, &c.opt, FRESH(&err)));
	cptx_program *program = cptx_device_load(dev, m, NULL, FRESH(&err));
	ck_assert_msg(program != NULL, "%s", err.text);
	p = (cptx_rows_problem){ .workspace = at };
	ck_assert(!cptx_rows_launch(program, dev, &c.opt, &p, 1, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "launch 1 of 2: of no rows there is none"), "%s", err.text);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	cptx_device_close(dev);
}
END_TEST

/* The workspace of many rows has more than 2^32 entries, so a part's bytes are multiplied into 64 bits: here 3 of 8. */
START_TEST(parts_of_many_rows)
{
	const cptx_rows_opt o = { .kernel = CPTX_ROWS_TOP_K,
		                      .in = CPTX_BF16,
		                      .n = 8192,
		                      .place = CPTX_ROWS_REGISTERS,
		                      .threads = 64,
		                      .per_row = 64,
		                      .split = 4,
		                      .k = 3 };
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);

	ck_assert_msg(cptx_rows_build(m, &o, FRESH(&err)) != NULL, "%s", err.text);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, FRESH(&err));
	ck_assert_msg(ptx != NULL, "%s", err.text);
	const char *text = cptx_ptx_text(ptx), *second = strstr(strstr(text, ".entry") + 1, ".entry");
	const char *base = strstr(text, ", 24;");
	ck_assert(second && base && base < second);
	while (base > text && base[-1] != '\n')
		base--;
	ck_assert_msg(strstr(base, "mul.wide.u32") && strstr(base, "mul.wide.u32") < strchr(base, '\n'), "%.60s", base);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

/* A shape that only whole vectors have; one that nothing has says why. */
START_TEST(workspaces)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_device_open("emu:sm_90a", &err);
	cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, FRESH(&err));
	cptx_rows_opt o = { .kernel = CPTX_ROWS_COLUMN_SUM, .in = CPTX_BF16, .n = 1024, .place = CPTX_ROWS_SHARED };

	ck_assert_msg(cptx_rows_workspace(r, &o, 64, FRESH(&err)) > 0, "%s", err.text);
	ck_assert_msg(err.code == CPTX_OK, "%s", err.text);
	o.align = 1;
	ck_assert_uint_eq(cptx_rows_workspace(r, &o, 64, FRESH(&err)), 0);
	ck_assert_msg(err.code == CPTX_E_ARG && err.text[0], "%s", err.text);
	cptx_rows_runner_destroy(r);
	cptx_device_close(dev);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rows_rules");
	TCase *c = test_case(s, "rules");

	tcase_add_test(c, options);
	tcase_add_test(c, shapes);
	tcase_add_test(c, own);
	tcase_add_test(c, bodies);
	tcase_add_test(c, results);
	tcase_add_test(c, problems);
	tcase_add_test(c, workspaces);
	tcase_add_test(c, parts_of_many_rows);
	return test_main("rows_rules", s);
}
