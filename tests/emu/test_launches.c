/* SPDX-License-Identifier: MIT */
/* Kernels that launch kernels, through the calls of CUDA's device runtime: which launches are refused, and that many are
 * fast. */
#include "trial.h"

#include <stdio.h>
#include <time.h>

typedef struct request {
	const char *child; /* what stands behind .visible .entry child */
	uint32_t grid[3], block[3];
	uint32_t smem;
	const char *repeat; /* "1": how many times it is launched by each thread, a positive number */
	bool keep;          /* only asks for the parameters' room */
} request;

/* Its kernel k launches the child, with the address p as the first parameter. */
static cptx_program *load(cptx_device *dev, const request *r, cptx_error *err)
{
	char text[4096];

	snprintf(text, sizeof text,
	         ".version 8.1\n.target sm_90\n.address_size 64\n"
	         ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 (.param .b64 a, .param .align 4 .b8 b[12], "
	         ".param .align 4 .b8 c[12], .param .b32 d);\n"
	         ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 a, .param .b64 b);\n"
	         ".extern .shared .align 16 .b8 sm[];\n"
	         ".visible .entry child%s\n"
	         ".visible .entry k(.param .u64 p)\n{\n"
	         ".reg .b32 %%r<3>; .reg .b64 %%d<4>; .reg .pred %%q<2>;\n"
	         "mov.u64 %%d1, child; ld.param.u64 %%d3, [p]; mov.u32 %%r1, 0;\n"
	         "again:\n{\n"
	         ".param .b64 a; .param .align 4 .b8 b[12]; .param .align 4 .b8 c[12]; .param .b32 d; .param .b64 r;\n"
	         "st.param.b64 [a], %%d1; st.param.b32 [b], %u; st.param.b32 [b+4], %u; st.param.b32 [b+8], %u;\n"
	         "st.param.b32 [c], %u; st.param.b32 [c+4], %u; st.param.b32 [c+8], %u; st.param.b32 [d], %u;\n"
	         "call.uni (r), __cudaCDP2GetParameterBufferV2, (a, b, c, d);\nld.param.b64 %%d2, [r];\n}\n"
	         "st.u64 [%%d2], %%d3;\n%s"
	         "add.u32 %%r1, %%r1, 1; setp.lt.u32 %%q1, %%r1, %s; @%%q1 bra again;\nret;\n}\n",
	         r->child, r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2], r->smem,
	         r->keep ? ""
	                 : "{\n.param .b64 a; .param .b64 b; .param .b32 r;\nst.param.b64 [a], %d2; st.param.b64 [b], 0;\n"
	                   "call.uni (r), __cudaCDP2LaunchDeviceV2, (a, b);\nld.param.b32 %r2, [r];\n}\n",
	         r->repeat ? r->repeat : "1");
	return cptx_device_load_text(dev, text, strlen(text), NULL, err);
}

/* The word at p after a launch of k by so many CTAs of 256 threads, or by one thread if none are given. */
static uint32_t run(const request *r, uint32_t ctas, enum cptx_emu_schedule schedule, cptx_error *err)
{
	cptx_device *dev = cptx_emu_open("sm_90", &(cptx_emu_opt){ .schedule = schedule }, err);
	cptx_program *p = load(dev, r, err);
	uint64_t at = cptx_mem_alloc(dev, 4, err);
	uint32_t word = 0;
	cptx_error own = { 0 };

	ck_assert_msg(p && at, "%s", err->text);
	cptx_mem_write(dev, at, &word, sizeof word, err);
	cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { ctas ? ctas : 1 }, .block = { ctas ? 256 : 1 }, CPTX_ARGS(at) },
	                 NULL, err);
	ck_assert(cptx_mem_read(dev, &word, at, sizeof word, &own));
	cptx_program_destroy(p);
	cptx_device_close(dev);
	return word;
}

#define COUNTS "(.param .u64 p) { .reg .b64 %d<2>; ld.param.u64 %d1, [p]; red.relaxed.gpu.global.add.u32 [%d1], 1; ret; }"

/* The rules are those of launches by the host program. */
START_TEST(refused)
{
	static const struct {
		request r;
		const char *why;
		enum cptx_code code;
	} all[] = {
		{ { COUNTS, { 1, 1, 1 }, { 32, 1, 1 }, 4294967280u, NULL, false }, "4294967280 bytes of dynamic", CPTX_E_LIMIT },
		{ { COUNTS, { 1, 1, 1 }, { 32, 1, 1 }, 2000000, NULL, false }, "2000000 bytes of dynamic", CPTX_E_LIMIT },
		{ { ".reqntid 64" COUNTS, { 1, 1, 1 }, { 32, 1, 1 }, 0, NULL, false }, "its .reqntid is 64 x 1 x 1", CPTX_E_ARG },
		{ { ".maxntid 32" COUNTS, { 1, 1, 1 }, { 64, 1, 1 }, 0, NULL, false }, "its .maxntid allows 32", CPTX_E_LIMIT },
		{ { COUNTS, { 1, 70000, 1 }, { 32, 1, 1 }, 0, NULL, false }, "the grid is 1 x 70000 x 1", CPTX_E_LIMIT },
		{ { COUNTS, { 1, 1, 1 }, { 1, 1, 128 }, 0, NULL, false }, "a block of 1 x 1 x 128", CPTX_E_LIMIT },
		/* their product is 2^64 */
		{ { COUNTS, { 1, 1, 1 }, { 2147483648u, 2147483648u, 4 }, 0, NULL, false }, "a block of 2147483648", CPTX_E_LIMIT },
		{ { COUNTS, { 1, 0, 1 }, { 32, 1, 1 }, 0, NULL, false }, "none of them may be 0", CPTX_E_ARG },
		{ { COUNTS, { 1, 1, 1 }, { 0, 0, 0 }, 0, NULL, false }, "none of them may be 0", CPTX_E_ARG },
		{ { ".reqnctapercluster 4, 1, 1" COUNTS, { 3, 1, 1 }, { 32, 1, 1 }, 0, NULL, false },
		  "no multiple of the cluster, 4 x 1 x 1",
		  CPTX_E_ARG },
		{ { "(.param .align 8 .b8 x[20000]) { ret; }", { 1, 1, 1 }, { 32, 1, 1 }, 0, NULL, false },
		  "its parameters take 20000 bytes; a kernel that launches it can pass 4096",
		  CPTX_E_LIMIT },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		request r = all[i].r;
		char child[512];
		const char *params = strchr(r.child, '(');
		const char *end = strchr(params, ')') + 1; /* directives stand behind the parameters */
		cptx_error err = { 0 };
		snprintf(child, sizeof child, "%.*s %.*s %s", (int)(end - params), params, (int)(params - r.child), r.child, end);
		r.child = child;
		run(&r, 0, CPTX_EMU_RANDOM, &err);
		ck_assert_msg(strstr(err.text, all[i].why) && strstr(err.text, "kernel child"), "%zu: %s", i, err.text);
		ck_assert_uint_eq(err.code, all[i].code);
	}
}
END_TEST

START_TEST(clusters_are_those_of_the_kernel)
{
	static const request r = { "(.param .u64 p) .reqnctapercluster 4, 1, 1 { .reg .b64 %d<2>; .reg .b32 %r<2>;"
		                       "ld.param.u64 %d1, [p]; mov.u32 %r1, %cluster_nctarank;"
		                       "red.relaxed.gpu.global.add.u32 [%d1], %r1; ret; }",
		                       { 8, 1, 1 },
		                       { 1, 1, 1 },
		                       0,
		                       NULL,
		                       false };
	cptx_error err = { 0 };

	ck_assert_uint_eq(run(&r, 0, CPTX_EMU_RANDOM, &err), 32);
	ck_assert_msg(err.code == CPTX_OK, "%s", err.text);
}
END_TEST

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The work for each launch does not grow with their number. */
START_TEST(many_launches)
{
	static const request r = { COUNTS, { 1, 1, 1 }, { 1, 1, 1 }, 0, NULL, false };
	cptx_error err = { 0 };
	double from = seconds();

	ck_assert_uint_eq(run(&r, 4, CPTX_EMU_RANDOM, &err), 1024);
	const double few = seconds() - from;
	from = seconds();
	ck_assert_uint_eq(run(&r, 64, CPTX_EMU_RANDOM, &err), 16384);
	const double many = seconds() - from;
	ck_assert_msg(err.code == CPTX_OK, "%s", err.text);
	ck_assert_msg(many < 80 * few + 0.5, "1024 launches take %g s, 16384 %g", few, many);
}
END_TEST

/* A kernel that asks for room without end, or launches itself without end, is told so. */
START_TEST(bounded)
{
	static const request all[] = {
		{ COUNTS, { 1, 1, 1 }, { 1, 1, 1 }, 0, "1000000", true },
		{ COUNTS, { 1, 1, 1 }, { 1, 1, 1 }, 0, "1000000", false },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cptx_error err = { 0 };
		run(&all[i], 0, CPTX_EMU_RANDOM, &err);
		ck_assert_uint_eq(err.code, CPTX_E_FINDING);
		ck_assert_msg(strstr(err.text, "of 65536 launches") != NULL, "%s", err.text);
	}
}
END_TEST

/* Trying all orders of one child leaves those that were launched behind it alone. */
START_TEST(all_orders)
{
	static const request r = { COUNTS, { 2, 1, 1 }, { 32, 1, 1 }, 0, "3", false };
	cptx_error err = { 0 };

	ck_assert_uint_eq(run(&r, 0, CPTX_EMU_ALL, &err), 3 * 64);
	ck_assert_msg(err.code == CPTX_OK, "%s", err.text);
}
END_TEST

TRIAL_MAIN("emu_launches", refused, clusters_are_those_of_the_kernel, many_launches, bounded, all_orders)
