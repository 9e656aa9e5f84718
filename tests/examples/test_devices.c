/* SPDX-License-Identifier: MIT */
/*
 * The kernels of the examples: the same on the emulator in every schedule, with nothing found, and, where there is a GPU, on
 * both devices.  CPTX_SEEDS: how many schedules, in place of 2.  The GEMMs for tcgen05 are in tests/blackwell.
 */
#include "examples.h"
#include "hgemm_run.h"
#include "reference/number.h"

#include "../test.h"

#include <cptx/emu.h>

#include <math.h>

enum { ROWS = 6, N = 516, NORM_N = 520, NORM_THREADS = 96, THREADS = 128, SIDE = 256, DEPTH = 128 };

typedef struct example example;
struct example {
	const char *name;
	uint64_t out; /* bytes that it leaves */
	enum cptx_type type;
	double tolerance; /* between devices, relative, and absolute below 1: 0 the same bits */
	unsigned number;
	/* Inputs are on the device; false with err. */
	bool (*run)(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err);
};

/* ---- rows ---- */

static cptx_program *load(cptx_device *dev, cptx_module *m, cptx_error *err)
{
	cptx_program *p = cptx_device_load(dev, m, NULL, err);

	cptx_module_destroy(m);
	return p;
}

static bool launched(cptx_program *p, const cptx_launch_opt *o, cptx_error *err)
{
	bool ok = p && cptx_launch_once(p, NULL, o, NULL, err);

	cptx_program_destroy(p);
	return ok;
}

static bool run_rms_norm(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);

	(void)e;
	rms_norm(m, N, THREADS);
	return launched(load(dev, m, err), &(cptx_launch_opt){ .grid = { ROWS }, CPTX_ARGS(in, in + 1024, out, 1e-5f) }, err);
}

static bool run_softmax(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);

	(void)e;
	softmax(m, N, THREADS);
	return launched(load(dev, m, err), &(cptx_launch_opt){ .grid = { ROWS }, CPTX_ARGS(in, out) }, err);
}

static bool run_layer_norm(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);

	(void)e;
	layer_norm(m, NORM_N, NORM_THREADS);
	return launched(load(dev, m, err),
	                &(cptx_launch_opt){ .grid = { ROWS }, CPTX_ARGS(in, in + 1024, in + 4096, out, 1e-5f) }, err);
}

static bool run_swiglu(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	uint32_t vectors = ROWS * N / 4;

	(void)e;
	swiglu(m, THREADS, 2);
	return launched(load(dev, m, err),
	                &(cptx_launch_opt){ .grid = { (vectors + 2 * THREADS - 1) / (2 * THREADS) },
	                                    .block = { THREADS },
	                                    CPTX_ARGS(in, in + 256, out, vectors) },
	                err);
}

static bool run_saxpy(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	uint32_t n = (uint32_t)e->out / 4;

	cptx_mem_copy(dev, out, in + 512, e->out, err);
	saxpy(m);
	return launched(load(dev, m, err), &(cptx_launch_opt){ .grid = { n / 256 + 1 }, CPTX_ARGS(in, out, 2.5f, n - 3) }, err);
}

/* What a block writes, its threads turn around behind a barrier, around which stamps are put. */
static bool run_stamp(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry turn(.param .u64 x)\n.reqntid 256\n{\n"
		".reg .b32 %r<4>; .reg .b64 %rd<3>; .shared .b32 kept[256];\n"
		"ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"
		"mov.u32 %r1, kept; mad.lo.u32 %r2, %r0, 4, %r1; ld.global.u32 %r3, [%rd1]; st.shared.u32 [%r2], %r3;\n"
		"bar.sync 0; xor.b32 %r2, %r0, 255; mad.lo.u32 %r2, %r2, 4, %r1; ld.shared.u32 %r3, [%r2];\n"
		"st.global.u32 [%rd1], %r3; ret;\n}\n";
	cptx_module *m = cptx_parse(text, sizeof text - 1, &(cptx_parse_opt){ .name = "turn" });
	uint64_t stamps = cptx_mem_alloc(dev, 8 * 2 * sizeof(uint64_t), err);

	cptx_mem_copy(dev, out, in, e->out, err);
	ck_assert_uint_eq(stamp_waits(cptx_module_body(m, "turn")), 1);
	bool ok = launched(load(dev, m, err), &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(out, stamps) }, err);
	cptx_mem_free(dev, stamps);
	return ok;
}

/* ---- the ladder of GEMMs ---- */

static bool run_hgemm(const example *e, cptx_device *dev, uint64_t in, uint64_t out, cptx_error *err)
{
	const cptx_target *target = cptx_target_find("sm_90a");
	hgemm_case c = { .rung = (enum hgemm_rung)e->number };
	gemm_problem p = { .m = SIDE, .n = SIDE, .k = DEPTH };
	gemm_matrices at = { .a = in, .b = in + SIDE * DEPTH * 2, .d = out };
	cptx_module *m = cptx_module_new(NULL);
	gemm_report r;

	c.o = hgemm_default(c.rung, 32, CPTX_BF16, target);
	hgemm_build(m, c.rung, &c.o);
	cptx_program *program = load(dev, m, err);
	cptx_launch *l = program ? hgemm_launch(&c, dev, program, &p, &at, &r, err) : NULL;
	bool ok = l && cptx_launch_run(l, NULL, err);
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	return ok;
}

/* Approximate functions and sums in another order: a few units in the last place. */
#define FLOATS(n) (n) * 4, CPTX_F32
static const example examples[] = {
	{ "rms_norm", FLOATS(ROWS *N), 1e-5, 0, run_rms_norm },
	{ "softmax", FLOATS(ROWS *N), 1e-5, 0, run_softmax },
	{ "swiglu", FLOATS(ROWS *N), 1e-5, 0, run_swiglu },
	{ "layer_norm", ROWS *NORM_N * 2, CPTX_BF16, 1. / 64, 0, run_layer_norm },
	{ "saxpy", FLOATS(1000), 0, 0, run_saxpy },
	{ "stamp", FLOATS(256), 0, 0, run_stamp },
	{ "hgemm_bcf_dbf_rw", SIDE *SIDE * 2, CPTX_BF16, 1. / 64, HGEMM_BCF_DBF_RW, run_hgemm },
	{ "hgemm_k_stages", SIDE *SIDE * 2, CPTX_BF16, 1. / 64, HGEMM_K_STAGES, run_hgemm },
	{ "hgemm_tma_r_k_stages", SIDE *SIDE * 2, CPTX_BF16, 1. / 64, HGEMM_TMA_R, run_hgemm },
	{ "hgemm_tma_rw_k_stages", SIDE *SIDE * 2, CPTX_BF16, 1. / 64, HGEMM_TMA_RW, run_hgemm },
};

/* ---- running ---- */

/* Fills inputs with normal numbers, runs it, gives back what it has left. */
static void run_on(const example *e, cptx_device *dev, unsigned char *left)
{
	enum { IN = SIDE * DEPTH * 4 };
	static uint16_t halves[IN / 2];
	static float floats[IN / 4];
	bool f32 = e->type == CPTX_F32;
	cptx_error err = { 0 };

	gemm_fill_normal(halves, IN / 2, CPTX_BF16, 5);
	for (size_t i = 0; i < IN / 4; i++)
		floats[i] = (float)number_value(CPTX_BF16, halves[i]);
	uint64_t in = cptx_mem_alloc(dev, IN, &err), out = cptx_mem_alloc(dev, e->out, &err);
	cptx_mem_write(dev, in, f32 ? (const void *)floats : halves, IN, &err);
	cptx_mem_fill8(dev, out, 0xff, e->out, &err);
	bool ok = e->run(e, dev, in, out, &err);
	cptx_mem_read(dev, left, out, e->out, &err);
	cptx_mem_free(dev, in);
	cptx_mem_free(dev, out);
	ck_assert_msg(ok && !err.code, "%s on %s: %s", e->name, cptx_device_get_info(dev)->name, err.text);
}

static void compare(const example *e, const unsigned char *a, const unsigned char *b)
{
	unsigned each = cptx_type_bits(e->type) / 8;

	for (uint64_t i = 0; i < e->out; i += each) {
		uint64_t x = 0, y = 0;
		memcpy(&x, a + i, each);
		memcpy(&y, b + i, each);
		double v = number_value(e->type, x), w = number_value(e->type, y);
		ck_assert_msg(x == y || fabs(v - w) <= e->tolerance * fmax(1, fabs(v)), "%s: element %llu is %g and %g", e->name,
		              (unsigned long long)(i / each), v, w);
	}
}

static cptx_device *emulator(uint64_t seed)
{
	cptx_error err = { 0 };
	cptx_emu_opt o = {
		.seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .threads = 1 + seed % 2, .pedantic = true
	};
	cptx_device *dev = cptx_emu_open("sm_90a", &o, &err);

	ck_assert_msg(dev != NULL, "%s", err.text);
	return dev;
}

static unsigned char *room(const example *e)
{
	unsigned char *p = calloc(1, e->out);

	ck_assert_ptr_nonnull(p);
	return p;
}

START_TEST(in_every_schedule)
{
	const example *e = &examples[_i];
	unsigned char *first = room(e), *now = room(e);
	const char *more = getenv("CPTX_SEEDS");
	unsigned seeds = more ? (unsigned)atoi(more) : 2;

	for (unsigned seed = 0; seed < seeds; seed++) {
		cptx_device *dev = emulator(seed);
		run_on(e, dev, seed ? now : first);
		const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
		ck_assert_msg(!f, "%s: seed %u: %s", e->name, seed, f ? f->text : "");
		ck_assert_msg(!seed || !memcmp(first, now, e->out), "%s: seed %u gives other bits than seed 0", e->name, seed);
		cptx_device_close(dev);
	}
	free(first);
	free(now);
}
END_TEST

START_TEST(on_both_devices)
{
	const example *e = &examples[_i];
	cptx_error err = { 0 };
	cptx_device *gpu = cptx_device_open("cuda", &err), *emu;
	unsigned char *a, *b;

	if (!gpu) {
		skip("no GPU: %s", err.text);
		return;
	}
	if (!cptx_device_get_info(gpu)->clusters && e->number >= HGEMM_TMA_R) {
		skip("%s: the GPU has no TMA", e->name);
		cptx_device_close(gpu);
		return;
	}
	emu = emulator(1);
	a = room(e), b = room(e);
	run_on(e, gpu, a);
	run_on(e, emu, b);
	compare(e, a, b);
	printf("%s: %llu bytes, %s\n", e->name, (unsigned long long)e->out, memcmp(a, b, e->out) ? "alike" : "the same");
	free(a);
	free(b);
	cptx_device_close(emu);
	cptx_device_close(gpu);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("examples_devices");
	TCase *emu = tcase_create("emulator"), *gpu = tcase_create("gpu");

	tcase_add_loop_test(emu, in_every_schedule, 0, sizeof examples / sizeof *examples);
	tcase_add_loop_test(gpu, on_both_devices, 0, sizeof examples / sizeof *examples);
	tcase_set_timeout(emu, 0);
	tcase_set_timeout(gpu, 0);
	suite_add_tcase(s, emu);
	suite_add_tcase(s, gpu);
	return test_main("examples_devices", s);
}
