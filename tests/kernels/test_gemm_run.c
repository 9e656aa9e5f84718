/* SPDX-License-Identifier: MIT */
/* cptx_gemm_run on the emulator: right results by every generator, programs that are found again, errors, threads. */
#include "../test.h"
#include "reference/number.h"

#include <cptx/emu.h>
#include <cptx/gemm.h>

#include <pthread.h>

enum { M = 72, N = 64, K = 128, MOST = M * K };

/* What a run multiplies: small whole numbers, as bf16 or e4m3. */
typedef struct run {
	const char *target;
	cptx_gemm_opt opt;
} run;

static const run runs[] = {
	{ "sm_80", { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 } },
	{ "sm_90a", { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 } },
	{ "sm_100a", { .mma = CPTX_GEMM_TCGEN05, .kind = CPTX_TCGEN05_F16, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 } },
	{ "sm_120a", { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 } },
	{ "sm_120a", { .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_F32, .scale = CPTX_UE8M0 } },
};
enum { RUNS = sizeof runs / sizeof *runs };

typedef struct matrices {
	cptx_device *dev;
	int a[M * K], b[N * K];
	cptx_gemm_problem p;
} matrices;

static int value(int i) { return (i * 7 + i / 5) % 5 - 2; }

static uint64_t upload(cptx_device *dev, const int *v, size_t n, enum cptx_type type)
{
	uint16_t words[MOST];
	uint8_t bytes[MOST];
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = 0; i < n; i++)
		words[i] = (uint16_t)number_bits(CPTX_BF16, v[i]), bytes[i] = (uint8_t)number_bits(CPTX_E4M3, v[i]);
	const void *from = type == CPTX_BF16 ? (const void *)words : bytes;
	size_t size = type == CPTX_BF16 ? 2 * n : n;
	uint64_t at = cptx_mem_alloc(dev, size, &err);
	ck_assert_msg(cptx_mem_write(dev, at, from, size, &err), "%s", err.text);
	return at;
}

static uint64_t factors(cptx_device *dev, uint64_t rows)
{
	uint8_t plain[MOST], packed[1 << 14];
	cptx_error err = { .code = CPTX_OK };
	uint64_t n = cptx_gemm_scales_bytes(rows, K, 32);

	ck_assert_uint_le(n, sizeof packed);
	memset(plain, 127, sizeof plain); /* 1 */
	cptx_gemm_scales_pack(packed, plain, rows, K, 32);
	uint64_t at = cptx_mem_alloc(dev, n, &err);
	ck_assert_msg(cptx_mem_write(dev, at, packed, n, &err), "%s", err.text);
	return at;
}

static void setup(matrices *x, const run *r)
{
	cptx_error err = { .code = CPTX_OK };
	char name[32];

	snprintf(name, sizeof name, "emu:%s", r->target);
	x->dev = cptx_device_open(name, &err);
	ck_assert_msg(x->dev, "%s", err.text);
	for (int i = 0; i < M * K; i++)
		x->a[i] = value(i);
	for (int i = 0; i < N * K; i++)
		x->b[i] = value(3 * i + 1);
	x->p = (cptx_gemm_problem){ .m = M, .n = N, .k = K };
	x->p.a = upload(x->dev, x->a, M * K, r->opt.a), x->p.b = upload(x->dev, x->b, N * K, r->opt.b);
	if (r->opt.scale != CPTX_TYPE_NONE)
		x->p.scale_a = factors(x->dev, M), x->p.scale_b = factors(x->dev, N);
	x->p.d = cptx_mem_alloc(x->dev, M * N * sizeof(float), &err);
	ck_assert_msg(x->p.d, "%s", err.text);
}

static void check_result(matrices *x, const char *what)
{
	static float d[M * N];
	cptx_error err = { .code = CPTX_OK };

	ck_assert_msg(cptx_device_synchronize(x->dev, &err) && cptx_mem_read(x->dev, d, x->p.d, sizeof d, &err), "%s: %s", what,
	              err.text);
	for (uint32_t i = 0; i < x->p.m; i++)
		for (int j = 0; j < N; j++) {
			int sum = 0;
			for (int k = 0; k < K; k++)
				sum += x->a[i * K + (uint32_t)k] * x->b[j * K + k];
			ck_assert_msg(d[i * N + (uint32_t)j] == (float)sum, "%s: D[%u][%d] = %g, not %d", what, i, j,
			              (double)d[i * N + (uint32_t)j], sum);
		}
	ck_assert_msg(cptx_mem_fill8(x->dev, x->p.d, 0xff, sizeof d, &err), "%s", err.text);
}

static void expect(cptx_gemm_runner *r, uint64_t hits, uint64_t misses, uint64_t programs)
{
	cptx_gemm_runner_stats s = cptx_gemm_runner_count(r);

	ck_assert_uint_eq(s.hits, hits);
	ck_assert_uint_eq(s.misses, misses);
	ck_assert_uint_eq(s.programs, programs);
}

START_TEST(every_generator_runs_and_is_found_again)
{
	static matrices x;

	for (int i = 0; i < RUNS; i++) {
		cptx_error err = { .code = CPTX_OK };
		char what[64];
		setup(&x, &runs[i]);
		snprintf(what, sizeof what, "run %d on %s", i, runs[i].target);
		cptx_gemm_runner *r = cptx_gemm_runner_new(x.dev, NULL, &err);
		ck_assert_msg(r, "%s", err.text);
		for (int turn = 0; turn < 2; turn++) {
			ck_assert_msg(cptx_gemm_run(r, &runs[i].opt, &x.p, NULL, &err), "%s: %s", what, err.text);
			check_result(&x, what);
			expect(r, (uint64_t)turn, 1, 1);
		}
		/* a name of its own is a kernel of its own; the text need not stay */
		char name[] = "mine";
		cptx_gemm_opt named = runs[i].opt;
		named.name = name;
		ck_assert_msg(cptx_gemm_run(r, &named, &x.p, NULL, &err), "%s: %s", what, err.text);
		memset(name, 'x', 4);
		named.name = "mine";
		ck_assert_msg(cptx_gemm_run(r, &named, &x.p, NULL, &err), "%s: %s", what, err.text);
		check_result(&x, what);
		expect(r, 2, 2, 2);
		cptx_gemm_runner_destroy(r);
		cptx_device_close(x.dev);
	}
}
END_TEST

/* With a shape of the caller's one program serves all sizes; without, sizes of the same shape share one. */
START_TEST(sizes_share_programs)
{
	static matrices x;
	cptx_error err = { .code = CPTX_OK };
	cptx_gemm_opt o = runs[1].opt;

	setup(&x, &runs[1]);
	cptx_gemm_runner *r = cptx_gemm_runner_new(x.dev, NULL, &err);
	o.bm = 64, o.bn = 64, o.stages = 2;
	for (x.p.m = M; x.p.m > M - 3; x.p.m--) {
		ck_assert_msg(cptx_gemm_run(r, &o, &x.p, NULL, &err), "%s", err.text);
		check_result(&x, "its shape");
	}
	expect(r, 2, 1, 1);
	cptx_gemm_runner_destroy(r);
	r = cptx_gemm_runner_new(x.dev, NULL, &err);
	o = runs[1].opt;
	for (x.p.m = M; x.p.m > M - 2; x.p.m--) {
		ck_assert_msg(cptx_gemm_run(r, &o, &x.p, NULL, &err), "%s", err.text);
		check_result(&x, "a shape that is picked");
	}
	expect(r, 0, 2, 1);
	cptx_gemm_runner_destroy(r);
	cptx_device_close(x.dev);
}
END_TEST

/* Copies of A and B of other sizes lie in the workspace of an earlier run: its barrier must still be one. */
START_TEST(sizes_share_a_workspace)
{
	static matrices x;
	cptx_error err = { .code = CPTX_OK };
	cptx_gemm_opt o = runs[1].opt;

	setup(&x, &runs[1]);
	cptx_gemm_runner *r = cptx_gemm_runner_new(x.dev, NULL, &err);
	o.bm = 64, o.bn = 64, o.stages = 2, o.unaligned = CPTX_GEMM_A | CPTX_GEMM_B;
	for (x.p.m = M; x.p.m > M - 16; x.p.m -= 15) {
		ck_assert_msg(cptx_gemm_run(r, &o, &x.p, NULL, &err), "%s", err.text);
		check_result(&x, "unaligned");
	}
	cptx_gemm_runner_destroy(r);
	cptx_device_close(x.dev);
}
END_TEST

static void no_visitors(cptx_kernel *k, void *user, cptx_epilogue *e, const cptx_gemm_operands *x)
{
	(void)k, (void)user, (void)e, (void)x;
}

struct own_args {
	float most;
};
static const cptx_param_row own_rows[] = { CPTX_PARAM_ROW(struct own_args, CPTX_F32, most) };

START_TEST(errors_name_what_is_wrong)
{
	static matrices x;
	cptx_error err = { .code = CPTX_OK };
	cptx_gemm_opt o = runs[1].opt;

	ck_assert(!cptx_gemm_runner_new(NULL, NULL, FRESH(&err)));
	ck_assert_ptr_nonnull(strstr(err.text, "the device is NULL"));
	cptx_gemm_runner_destroy(NULL);
	setup(&x, &runs[1]);
	cptx_gemm_runner *r = cptx_gemm_runner_new(x.dev, NULL, FRESH(&err));
	ck_assert(!cptx_gemm_run(NULL, &o, &x.p, NULL, FRESH(&err)) && strstr(err.text, "the runner is NULL"));
	ck_assert(!cptx_gemm_run(r, NULL, &x.p, NULL, FRESH(&err)) && strstr(err.text, "the options struct is NULL"));
	ck_assert(!cptx_gemm_run(r, &o, NULL, NULL, FRESH(&err)) && strstr(err.text, "the problem is NULL"));
	o.grouped = true;
	ck_assert(!cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)) && strstr(err.text, "cptx_gemm_launch_grouped"));
	o = runs[1].opt, o.warps_m = 2;
	ck_assert(!cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)) && strstr(err.text, ".warps_m is an option of mma.sync"));
	o = runs[2].opt; /* no such instruction there */
	ck_assert(!cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)));
	ck_assert_int_eq(err.code, CPTX_E_TARGET);
	o = runs[1].opt;
	x.p.alpha = 0.5f; /* the kernel would not read it */
	ck_assert(!cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)) && strstr(err.text, "say .alpha in its options"));
	x.p.alpha = 1, x.p.beta = 2;
	ck_assert(!cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)) && strstr(err.text, "say .beta in its options"));
	x.p.beta = 0;
	ck_assert_msg(cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)), "%s", err.text);
	o.visitors = no_visitors, o.params = own_rows, o.nparams = CPTX_PARAM_COUNT(own_rows);
	ck_assert(!cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)) && strstr(err.text, "the problem no .args, the struct that"));
	o = runs[1].opt, x.p.d = 0;
	ck_assert(!cptx_gemm_run(r, &o, &x.p, NULL, FRESH(&err)) && err.text[0]);
	cptx_gemm_runner_destroy(r);
	cptx_device_close(x.dev);
}
END_TEST

enum { THREADS = 4, TURNS = 3 };
typedef struct worker {
	cptx_gemm_runner *r;
	matrices *x;
	bool ok;
} worker;

static void *work(void *user)
{
	worker *w = user;
	cptx_error err = { .code = CPTX_OK };

	w->ok = true;
	for (int i = 0; i < TURNS; i++)
		w->ok &= cptx_gemm_run(w->r, &runs[1].opt, &w->x->p, NULL, &err);
	return NULL;
}

START_TEST(threads_share_a_runner)
{
	static matrices x;
	cptx_error err = { .code = CPTX_OK };
	pthread_t thread[THREADS];
	worker w[THREADS];

	setup(&x, &runs[1]);
	cptx_gemm_runner *r = cptx_gemm_runner_new(x.dev, NULL, &err);
	for (int i = 0; i < THREADS; i++) {
		w[i] = (worker){ .r = r, .x = &x };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &w[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		ck_assert(w[i].ok);
	}
	check_result(&x, "threads");
	expect(r, THREADS * TURNS - 1, 1, 1);
	cptx_gemm_runner_destroy(r);
	cptx_device_close(x.dev);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm run");
	TCase *t = test_case(s, "run");

	tcase_add_test(t, every_generator_runs_and_is_found_again);
	tcase_add_test(t, sizes_share_programs);
	tcase_add_test(t, sizes_share_a_workspace);
	tcase_add_test(t, errors_name_what_is_wrong);
	tcase_add_test(t, threads_share_a_runner);
	return test_main("gemm_run", s);
}
