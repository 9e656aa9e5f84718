/* SPDX-License-Identifier: MIT */
/*
 * A program whose headers are older or newer than the library: options.sh compiles it against headers where structs of
 * options have a field more, .later (MORE), or lack their last one (LESS).  What lies behind a struct is 0xff: nobody may
 * read it.
 */
#include <cptx/device.h>
#include <cptx/gemm.h>

#include <stdio.h>
#include <string.h>

static int failed;

static void check(bool ok, const char *what, const cptx_error *err)
{
	if (!ok) {
		printf("FAIL: %s: %s\n", what, err->text);
		failed++;
	}
}

/* The options among bytes that are not theirs. */
#define AMONG(type, name, opt)                                                                                              \
	union {                                                                                                                 \
		type o;                                                                                                             \
		unsigned char bytes[sizeof(type) + 64];                                                                             \
	} name##_at;                                                                                                            \
	memset(&name##_at, 0xff, sizeof name##_at);                                                                             \
	memcpy(&name##_at, &(opt), offsetof(type, z_));                                                                         \
	const type *name = &name##_at.o

static void build(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "fill", .block = { 32 }, .min_ctas = 2);
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), i = cptx_tid_x(k);
	cptx_val at = cptx_mad_wide(k, i, 4, p);

	cptx_st(k, at, i, .space = CPTX_GLOBAL, .type = CPTX_U32);
}

static void run_kernel(cptx_device *dev)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);
	uint32_t v[32] = { 0 };
	uint64_t at = cptx_mem_alloc(dev, sizeof v, &err);
	bool right = true;

	build(m);
	cptx_load_opt load = { .size = CPTX_OPT_SIZE(cptx_load_opt), .target = "sm_90a" };
	AMONG(cptx_load_opt, l, load);
	cptx_program *p = cptx_device_load(dev, m, l, &err);
	check(p, "load", &err);
	check(cptx_launch_once(p, "fill", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(at)), NULL, &err), "launch", &err);
	check(cptx_device_synchronize(dev, &err) && cptx_mem_read(dev, v, at, sizeof v, &err), "read", &err);
	for (uint32_t i = 0; i < 32; i++)
		right &= v[i] == i;
	check(right, "the result of the kernel", &err);
#ifdef MORE
	cptx_error refused = { .code = CPTX_OK };
	check(!cptx_launch_once(p, "fill", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(at), .later = 1), NULL, &refused) &&
	          refused.code == CPTX_E_ARG && strstr(refused.text, "cptx_launch_opt: the program's header has an option"),
	      "a launch with what the library does not know", &refused);
	cptx_module *bad = cptx_module_new(NULL);
	cptx_kernel_begin(bad, "k", .block = { 32 }, .later = 1);
	check(cptx_module_error(bad) && cptx_module_error(bad)->line, "a kernel with what the library does not know", &err);
	cptx_module_destroy(bad);
#endif
	cptx_program_destroy(p);
	cptx_module_destroy(m);
}

/* One problem, and a list, whose next one stands where the caller's struct ends. */
static void run_gemm(cptx_device *dev)
{
	enum { SIDE = 64, ELEMENTS = SIDE * SIDE };
	static uint16_t ones[ELEMENTS];
	static float d[2][ELEMENTS];
	cptx_error err = { .code = CPTX_OK };
	cptx_gemm_opt opt = cptx_gemm_default(CPTX_GEMM_WGMMA, NULL);
	cptx_gemm_problem p[2] = { { .size = CPTX_OPT_SIZE(cptx_gemm_problem), .m = SIDE, .n = SIDE, .k = SIDE } };
	bool right = true;

	check(opt.size == CPTX_OPT_SIZE(cptx_gemm_opt) && opt.bm == 128 && opt.bn == 256, "cptx_gemm_default", &err);
	opt.bm = 64, opt.bn = 64, opt.stages = 2, opt.grouped = true;
	for (int i = 0; i < ELEMENTS; i++)
		ones[i] = 0x3f80;
	p[0].a = p[0].b = cptx_mem_alloc(dev, sizeof ones, &err);
	cptx_mem_write(dev, p[0].a, ones, sizeof ones, &err);
	p[0].d = cptx_mem_alloc(dev, sizeof d[0], &err);
	p[1] = p[0];
	p[1].d = cptx_mem_alloc(dev, sizeof d[0], &err);
	uint64_t table = cptx_mem_alloc(dev, 2 * CPTX_GEMM_GROUP_BYTES + 128, &err);
	table = (table + 127) / 128 * 128;
	cptx_module *m = cptx_module_new(NULL);
	AMONG(cptx_gemm_opt, o, opt);
	check(cptx_gemm_build(m, o, &err), "build", &err);
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	cptx_launch *l = cptx_gemm_launch_grouped(program, dev, o, p, 2, table, &err);
	check(l && cptx_launch_run(l, NULL, &err) && cptx_device_synchronize(dev, &err), "a list of problems", &err);
	for (int i = 0; i < 2; i++) {
		cptx_mem_read(dev, d[i], p[i].d, sizeof d[i], &err);
		for (int j = 0; j < ELEMENTS; j++)
			right &= d[i][j] == SIDE;
	}
	check(right, "the result of the list", &err);
	cptx_launch_destroy(l);
	opt.grouped = false;
	cptx_gemm_runner *r = cptx_gemm_runner_new(dev, NULL, &err);
	check(cptx_gemm_run(r, &opt, &p[1], NULL, &err), "cptx_gemm_run", &err);
#ifdef MORE
	opt.later = 1;
	check(!cptx_gemm_check(&opt, NULL, NULL, &err) && strstr(err.text, "does not know"), "what the library does not know",
	      &err);
	opt.size = 0; /* as version 0.1 */
	check(cptx_gemm_check(&opt, NULL, NULL, &err), "options as of version 0.1", &err);
#endif
	opt.size = 3;
	check(!cptx_gemm_check(&opt, NULL, NULL, &err) && strstr(err.text, ".size = 3"), "a size that cannot be", &err);
	cptx_gemm_runner_destroy(r);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
}

int main(void)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_device_open("emu:sm_90a", &err);

	check(dev, "open", &err);
	if (!dev)
		return 1;
	run_kernel(dev);
	run_gemm(dev);
	cptx_device_close(dev);
	return failed != 0;
}
