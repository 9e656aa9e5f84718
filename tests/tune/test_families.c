/* SPDX-License-Identifier: MIT */
/* What the runners of GEMM, attention and rows take from the database and put there, and measuring, on the emulator. */
#include "store.h"

#include <cptx/attention.h>
#include <cptx/cptx.h>
#include <cptx/emu.h>
#include <cptx/gemm.h>
#include <cptx/rows.h>

enum { M = 64, N = 64, K = 64, ROWS = 8, COLUMNS = 256 };

static cptx_error err;
static cptx_device *dev;
static cptx_tune *db;

static void before(void)
{
	folder_make();
	setenv("CPTX_TUNE_DIR", "/nonexistent/tune", 1);
	setenv("CPTX_TUNE_PATH", "/nonexistent/shipped", 1);
	unsetenv("CPTX_TUNE");
	err = (cptx_error){ 0 };
	dev = cptx_emu_open("sm_90a", NULL, &err);
	db = open_place(&err);
	OK(err);
}

static void after(void)
{
	cptx_tune_close(db);
	cptx_device_close(dev);
	folder_remove();
}

static uint64_t alloc(size_t bytes)
{
	const uint64_t at = cptx_mem_alloc(dev, bytes, &err);

	cptx_mem_fill8(dev, at, 0x38, bytes, &err);
	OK(err);
	return at;
}

/* Instructions of warps since the last call. */
static uint64_t steps(void)
{
	static uint64_t last;
	cptx_emu_counters c;

	ck_assert(cptx_emu_get_counters(dev, &c));
	const uint64_t n = c.warp_instructions - last;
	last = c.warp_instructions;
	return n;
}

/* The key of the first record. */
static cptx_tune_key planted;
static char planted_text[4][CPTX_TUNE_TEXT];

static bool take_key(void *user, const cptx_tune_record *r)
{
	const char *const from[] = { r->key->generator, r->key->problem, r->key->device, r->key->compiler };

	(void)user;
	planted = *r->key;
	for (int i = 0; i < 4; i++)
		snprintf(planted_text[i], CPTX_TUNE_TEXT, "%s", from[i]);
	planted.generator = planted_text[0], planted.problem = planted_text[1];
	planted.device = planted_text[2], planted.compiler = planted_text[3];
	return false;
}

/* Plants a record of the problem that was measured, with another candidate. */
static void put_planted(const char *candidate, double us)
{
	ck_assert(cptx_tune_each(db, take_key, NULL, NULL, &err));
	ck_assert(put(db, &planted, candidate, us, &err));
	OK(err);
}

static const cptx_tune_use never = { .policy = CPTX_TUNE_NEVER }, once = { .policy = CPTX_TUNE_ONCE, .candidates = 3 },
						   off = { .policy = CPTX_TUNE_OFF }, always = { .policy = CPTX_TUNE_ALWAYS, .candidates = 3 };

static const cptx_tune_use *with_db(const cptx_tune_use *use)
{
	static cptx_tune_use u;

	u = *use, u.db = db;
	return &u;
}

/* ---- GEMM ---- */

static cptx_gemm_problem gemm_operands(void)
{
	return (
		cptx_gemm_problem){ .m = M, .n = N, .k = K, .a = alloc(M * K * 2), .b = alloc(N * K * 2), .d = alloc(M * N * 4) };
}

static const cptx_gemm_opt bf16 = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 };

/* Steps of a GEMM by a new runner. */
static uint64_t steps_of(const cptx_tune_use *use, const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	cptx_gemm_runner *r = cptx_gemm_runner_new(dev, NULL, &err);

	OK(err);
	if (use)
		ck_assert(cptx_gemm_runner_set_tune(r, use, &err));
	ck_assert_msg(cptx_gemm_run(r, o, p, NULL, &err), "%s", err.text); /* which measures, too */
	steps();
	ck_assert(cptx_gemm_run(r, o, p, NULL, &err));
	const uint64_t n = steps();
	cptx_gemm_runner_destroy(r);
	return n;
}

/* Steps of a GEMM by a new runner, whose D must be that of the first GEMM that was run. */
static uint64_t run_gemm(const cptx_tune_use *use, const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	static float first[M * N], d[M * N];
	static bool have;

	cptx_mem_fill8(dev, p->d, 0xff, sizeof d, &err);
	const uint64_t n = steps_of(use, o, p);
	cptx_mem_read(dev, d, p->d, sizeof d, &err);
	OK(err);
	if (!have)
		memcpy(first, d, sizeof d), have = true;
	ck_assert_mem_eq(d, first, sizeof d);
	return n;
}

START_TEST(a_gemm_takes_the_best_that_was_measured)
{
	const cptx_gemm_problem p = gemm_operands();
	const uint64_t by_model = run_gemm(&off, &bf16, &p);
	cptx_gemm_opt shape = bf16;

	ck_assert_uint_eq(run_gemm(with_db(&never), &bf16, &p), by_model);
	ck_assert_uint_eq(count_records(db, NULL), 0);
	const uint64_t measured = run_gemm(with_db(&once), &bf16, &p);
	ck_assert_uint_le(measured, by_model);
	ck_assert_uint_eq(count_records(db, NULL), 3);
	ck_assert_uint_eq(run_gemm(with_db(&once), &bf16, &p), measured);
	ck_assert_uint_eq(count_records(db, NULL), 3); /* not again */
	ck_assert_uint_eq(run_gemm(with_db(&never), &bf16, &p), measured);
	/* another shape, said to be the fastest */
	const char *planted_shape = "bm=128 bn=64 stages=3 group=1 cluster_m=1 cluster_n=1";
	shape.bm = 128, shape.bn = 64, shape.stages = 3, shape.group = 1, shape.cluster_m = shape.cluster_n = 1;
	put_planted(planted_shape, 4);
	const uint64_t wanted = run_gemm(&off, &shape, &p);
	ck_assert_uint_ne(wanted, measured);
	ck_assert_uint_eq(run_gemm(with_db(&never), &bf16, &p), wanted);
	/* a neighbour, with fewer rows than were measured */
	cptx_gemm_problem near = p;
	near.m = M - 8;
	cptx_gemm_runner *r = cptx_gemm_runner_new(dev, NULL, &err);
	ck_assert(cptx_gemm_runner_set_tune(r, with_db(&never), &err));
	ck_assert(cptx_gemm_run(r, &shape, &near, NULL, &err));
	steps();
	ck_assert(cptx_gemm_run(r, &shape, &near, NULL, &err));
	const uint64_t wanted_near = steps();
	ck_assert(cptx_gemm_run(r, &bf16, &near, NULL, &err));
	ck_assert_uint_eq(steps(), wanted_near);
	cptx_gemm_runner_destroy(r);
	/* ones that the problem cannot have are passed over */
	put_planted("bm=7 bn=64 stages=3", 3);
	put_planted("bm=128 bn=64 stages=3 of=another", 2);
	put_planted("bm=128 bn=64 stages=3 stream_k=1", 1);
	ck_assert_uint_eq(run_gemm(with_db(&never), &bf16, &p), wanted);
	ck_assert_uint_eq(run_gemm(with_db(&off), &bf16, &p), by_model);
	ck_assert_uint_gt(run_gemm(with_db(&always), &bf16, &p), 0);
	ck_assert_uint_eq(count_records(db, NULL), 3 + 4 + 3);
}
END_TEST

START_TEST(the_environment_says_when)
{
	const cptx_gemm_problem p = gemm_operands();
	const uint64_t by_model = run_gemm(&off, &bf16, &p);

	setenv("CPTX_TUNE_DIR", place, 1);
	setenv("CPTX_TUNE_BUDGET", "1", 1);
	setenv("CPTX_TUNE", "once", 1);
	const uint64_t measured = run_gemm(NULL, &bf16, &p);
	ck_assert_uint_gt(count_records(db, NULL), 0);
	setenv("CPTX_TUNE", "off", 1);
	ck_assert_uint_eq(run_gemm(NULL, &bf16, &p), by_model);
	setenv("CPTX_TUNE", "never", 1);
	ck_assert_uint_eq(run_gemm(NULL, &bf16, &p), measured);
	unsetenv("CPTX_TUNE");
	ck_assert_uint_eq(run_gemm(NULL, &bf16, &p), measured);
	setenv("CPTX_TUNE", "sometimes", 1);
	ck_assert_int_eq(cptx_tune_policy_of(CPTX_TUNE_AS_SET, &err), CPTX_TUNE_AS_SET);
	FAILS(err, CPTX_E_ARG, "CPTX_TUNE is \"sometimes\"");
	ck_assert(!cptx_gemm_runner_new(dev, NULL, &err));
	FAILS(err, CPTX_E_ARG, "CPTX_TUNE is \"sometimes\"");
	ck_assert(!cptx_gemm_runner_new(dev, NULL, NULL));
	setenv("CPTX_TUNE_BUDGET", "soon", 1);
	ck_assert(!cptx_gemm_measure(db, dev, &bf16, &p, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "CPTX_TUNE_BUDGET");
	unsetenv("CPTX_TUNE_BUDGET");
	unsetenv("CPTX_TUNE");
}
END_TEST

static cptx_val twice(cptx_kernel *k, void *user, cptx_val v, cptx_val row, cptx_val col)
{
	(void)user, (void)row, (void)col;
	return cptx_add(k, v, v);
}

static bool has_function(void *user, const cptx_tune_record *r)
{
	*(bool *)user |= strstr(r->key->problem, " function=doubled") != NULL;
	return true;
}

START_TEST(a_function_is_known_by_its_name)
{
	cptx_gemm_opt o = bf16;
	const cptx_gemm_problem p = { .m = M, .n = N, .k = K };
	bool found = false;

	o.epilogue = twice;
	ck_assert(!cptx_gemm_measure(db, dev, &o, &p, &once, NULL, FRESH(&err)));
	FAILS(err, CPTX_E_ARG, "give it a .name");
	o.name = "doubled";
	ck_assert_msg(cptx_gemm_measure(db, dev, &o, &p, &once, NULL, FRESH(&err)), "%s", err.text);
	ck_assert(cptx_tune_each(db, has_function, &found, NULL, &err));
	ck_assert(found);
}
END_TEST

/* Scale factors and zero points are made, too: one for each row of B, or for a group along K. */
START_TEST(weights_of_few_bits_are_measured)
{
	cptx_gemm_opt o = { .mma = CPTX_GEMM_GEMV, .a = CPTX_BF16, .b = CPTX_U4, .out = CPTX_F32, .scale = CPTX_BF16 };
	const cptx_gemm_problem p = { .m = 1, .n = 40, .k = 256 };

	ck_assert_msg(cptx_gemm_measure(db, dev, &o, &p, &once, NULL, FRESH(&err)), "%s", err.text);
	o.scale_k = 128, o.zeros = true;
	ck_assert_msg(cptx_gemm_measure(db, dev, &o, &p, &once, NULL, FRESH(&err)), "%s", err.text);
}
END_TEST

/* Weights take the kernel and shape that were the fastest at a neighbour, and the model's where these cannot be made. */
START_TEST(weights_take_what_a_neighbour_had)
{
	cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_U4, .out = CPTX_F32, .scale = CPTX_BF16 };
	cptx_gemm_opt shape, few;
	cptx_gemm_problem p = { .m = 16, .n = 128, .k = 256 };

	o.scale_k = 128, o.zeros = true;
	ck_assert_msg(cptx_gemm_measure(db, dev, &o, &p, &once, NULL, FRESH(&err)), "%s", err.text);
	ck_assert_uint_eq(count_records(db, NULL), 3);
	p.m = 20; /* log2(20/16) is within the radius */
	p.a = alloc(p.m * p.k * 2), p.b = alloc(p.n * p.k / 2), p.d = alloc(p.m * p.n * 4);
	p.scale_b = alloc(p.k / 128 * p.n * 2), p.zero_b = alloc(p.k / 128 * p.n * 2);
	const uint64_t by_model = steps_of(with_db(&off), &o, &p);
	put_planted("bm=64 bn=8 stages=3 group=1 cluster_m=1 cluster_n=1 per_sm=1 swap=1", 1);
	shape = o, shape.bm = 64, shape.bn = 8, shape.stages = 3, shape.group = shape.per_sm = 1;
	shape.cluster_m = shape.cluster_n = 1, shape.swap = true;
	const uint64_t wanted = steps_of(with_db(&off), &shape, &p);
	ck_assert_uint_ne(wanted, by_model);
	ck_assert_uint_eq(steps_of(with_db(&never), &o, &p), wanted);
	put_planted("mma=gemv bm=8 bn=16 bk=512 warps_m=16 warps_n=1", .5); /* the other kernel of weights */
	few = o, few.mma = CPTX_GEMM_GEMV, few.bm = 8, few.bn = 16, few.bk = 512, few.warps_m = 16, few.warps_n = 1;
	const uint64_t by_few = steps_of(with_db(&off), &few, &p);
	ck_assert_uint_ne(by_few, wanted);
	ck_assert_uint_eq(steps_of(with_db(&never), &o, &p), by_few);
	put_planted("bm=256 bn=72 stages=3 swap=1", .25); /* for which there are no registers */
	ck_assert_uint_eq(steps_of(with_db(&never), &o, &p), by_model);
}
END_TEST

/* Metadata are made, too, of each matrix of a batch. */
START_TEST(a_sparse_gemm_is_measured)
{
	cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .sparse = true };
	cptx_gemm_problem p = { .m = M, .n = N, .k = K };

	ck_assert_msg(cptx_gemm_measure(db, dev, &o, &p, &once, NULL, FRESH(&err)), "%s", err.text);
	o.mma = CPTX_GEMM_SYNC, o.batched = true, p.batch = 2;
	ck_assert_msg(cptx_gemm_measure(db, dev, &o, &p, &once, NULL, FRESH(&err)), "%s", err.text);
}
END_TEST

/* ---- attention and rows ---- */

START_TEST(attention_takes_what_was_measured)
{
	enum { HEADS = 2, QUERIES = 128, DIM = 64 };
	const size_t bytes = HEADS * QUERIES * DIM * 2;
	const cptx_attention_opt o = { .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = DIM };
	cptx_attention_opt shape = o;
	const cptx_attention_problem p = { .batch = 1,
		                               .heads = HEADS,
		                               .queries = QUERIES,
		                               .keys = QUERIES,
		                               .q = alloc(bytes),
		                               .k = alloc(bytes),
		                               .v = alloc(bytes),
		                               .o = alloc(bytes) };
	uint64_t got[2];

	ck_assert_msg(cptx_attention_measure(db, dev, &o, &p, &once, NULL, &err), "%s", err.text);
	ck_assert_uint_eq(count_records(db, NULL), 3);
	put_planted("bq=64 bk=32 stages=3", 1);
	shape.bq = 64, shape.bk = 32, shape.stages = 3;
	for (int i = 0; i < 2; i++) {
		cptx_attention_runner *r = cptx_attention_runner_new(dev, NULL, &err);
		ck_assert(cptx_attention_runner_set_tune(r, with_db(i ? &never : &off), &err));
		steps();
		for (int again = 0; again < 2; again++) {
			ck_assert_msg(cptx_attention_run(r, i ? &o : &shape, &p, NULL, &err), "%s", err.text);
			got[i] = steps();
		}
		if (!i) { /* without the database it is another shape */
			ck_assert(cptx_attention_run(r, &o, &p, NULL, &err));
			ck_assert_uint_ne(steps(), got[0]);
		}
		cptx_attention_runner_destroy(r);
	}
	ck_assert_uint_eq(got[0], got[1]);
}
END_TEST

START_TEST(rows_take_what_was_measured)
{
	const cptx_rows_opt o = { .kernel = CPTX_ROWS_RMS_NORM, .in = CPTX_BF16, .n = COLUMNS };
	cptx_rows_opt shape = o;
	cptx_rows_problem p = { .rows = ROWS };
	uint64_t got[3];

	p.at[CPTX_ROWS_X].address = alloc(ROWS * COLUMNS * 2), p.at[CPTX_ROWS_Y].address = alloc(ROWS * COLUMNS * 2);
	ck_assert_msg(cptx_rows_measure(db, dev, &o, ROWS, &once, NULL, &err), "%s", err.text);
	ck_assert_uint_ge(count_records(db, NULL), 1);
	put_planted("place=registers threads=128 per_row=128 split=1", 1);
	shape.place = CPTX_ROWS_REGISTERS, shape.threads = 128, shape.per_row = 128, shape.split = 1;
	for (int i = 0; i < 3; i++) {
		cptx_rows_runner *r = cptx_rows_runner_new(dev, NULL, &err);
		ck_assert(cptx_rows_runner_set_tune(r, with_db(i == 2 ? &never : &off), &err));
		steps();
		ck_assert_msg(cptx_rows_run(r, i ? &o : &shape, &p, NULL, &err), "%s", err.text);
		got[i] = steps();
		cptx_rows_runner_destroy(r);
	}
	ck_assert_uint_ne(got[0], got[1]);
	ck_assert_uint_eq(got[0], got[2]);
}
END_TEST

START_TEST(options_are_text)
{
	cptx_gemm_opt g = { .a = CPTX_BF16, .bn = 7 };
	cptx_attention_opt a = { .in = CPTX_BF16 };
	cptx_rows_opt r = { .in = CPTX_F32 };

	ck_assert(cptx_gemm_options_read("mma=tcgen05  b=e4m3 kind=f8f6f4 swap=1 stages=12", &g, FRESH(&err)));
	ck_assert(g.mma == CPTX_GEMM_TCGEN05 && g.a == CPTX_BF16 && g.b == CPTX_E4M3 && g.kind == CPTX_TCGEN05_F8F6F4 &&
	          g.swap && g.stages == 12 && g.bn == 7);
	ck_assert(cptx_attention_options_read("dim=64 causal=1", &a, FRESH(&err)));
	ck_assert(a.dim == 64 && a.causal && a.in == CPTX_BF16);
	ck_assert(cptx_rows_options_read("kernel=softmax eps=0x3f000000 ignored_label=-100", &r, FRESH(&err)));
	ck_assert(r.kernel == CPTX_ROWS_SOFTMAX && !(r.eps < 0.5f || r.eps > 0.5f) && r.ignored_label == -100);
	ck_assert(!cptx_gemm_options_read("stage=3", &g, FRESH(&err)));
	FAILS(err, CPTX_E_ARG, "\"stage=3\" is no option; did you mean stages=?");
	ck_assert(!cptx_gemm_options_read("a=bf17", &g, FRESH(&err)));
	FAILS(err, CPTX_E_ARG, "\"a=bf17\" is no value of a");
	ck_assert(!cptx_gemm_options_read("swap=2", &g, FRESH(&err)));
	FAILS(err, CPTX_E_ARG, "no value of swap");
	ck_assert(!cptx_gemm_options_read("epilogue=1", &g, FRESH(&err)));
	FAILS(err, CPTX_E_ARG, "no option");
	ck_assert(!cptx_gemm_options_read("ctas=1", &g, FRESH(&err)));
	FAILS(err, CPTX_E_ARG, "of a problem");
	ck_assert_uint_eq(g.stages, 12);
}
END_TEST

/* ---- measuring ---- */

enum { JOBS = 12, BROKEN = 3, WEDGED = 5 };
static volatile unsigned builds;

static const char *job_name(void *user, uint32_t i)
{
	static const char *const names[JOBS] = { "n=1", "n=2", "n=3", "n=4",  "n=5",  "n=6",
		                                     "n=7", "n=8", "n=9", "n=10", "n=11", "n=12" };

	(void)user;
	return names[i];
}

/* A kernel of some additions; one breaks a rule of the library. */
static bool job_build(void *user, uint32_t i, cptx_module *m, cptx_error *e)
{
	cptx_kernel *k = cptx_kernel_begin(m, "job", .block = { 1 });
	cptx_val p = cptx_param(k, CPTX_PTR, "p");
	cptx_val v = cptx_tid_x(k);

	(void)user;
	__atomic_fetch_add(&builds, 1, __ATOMIC_SEQ_CST);
	for (uint32_t n = 0; n < 4 * i; n++)
		v = cptx_add(k, v, v);
	if (i == BROKEN)
		cptx_add(k, p, v);
	cptx_st(k, p, v, .space = CPTX_GLOBAL);
	cptx_ret(k);
	const cptx_error *said = cptx_module_error(m);
	if (said)
		*e = *said;
	return !said;
}

static uint32_t job_launch(void *user, uint32_t i, const cptx_program *program, cptx_launch **launches, uint32_t room,
                           cptx_error *e)
{
	const uint64_t at = i == WEDGED ? 16 : *(const uint64_t *)user; /* the emulator finds the wrong address */

	(void)room;
	launches[0] = cptx_launch_new(program, "job", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(at)), e);
	return launches[0] != NULL;
}

START_TEST(what_fails_is_passed_over)
{
	const uint64_t at = alloc(128);
	char text[CPTX_TUNE_TEXT];
	cptx_tune_key key = { .generator = "job", .version = 1, .problem = "usual", .dims = { 32 } };
	const cptx_tune_job job = {
		.key = &key, .candidates = JOBS, .name = job_name, .build = job_build, .launch = job_launch, .user = (void *)&at
	};
	cptx_tune_done done;
	cptx_tune_found found[JOBS];

	ck_assert(cptx_tune_describe(dev, CPTX_COMPILER_AUTO, &key, text, &err));
	ck_assert_str_eq(key.compiler, "emulator");
	ck_assert_uint_eq(key.driver, 0);
	for (uint32_t part = 0; part < 3; part++) {
		ck_assert(cptx_tune_measure(db, dev, &job, &(cptx_tune_use){ .part = part, .parts = 3, .offset = 1 }, &done, &err));
		ck_assert_uint_eq(done.candidates, JOBS);
		ck_assert_uint_eq(done.measured + done.failed, JOBS / 3);
		ck_assert_uint_eq(done.left, JOBS - JOBS / 3);
		ck_assert_uint_eq(done.failed, part < 2); /* numbers 1 + 5 and 1 + 3 */
	}
	ck_assert_uint_eq(count_records(db, NULL), JOBS - 2);
	builds = 0;
	ck_assert(cptx_tune_measure(db, dev, &job, &(cptx_tune_use){ .workers = 3 }, &done, &err));
	ck_assert_uint_eq(done.known, JOBS - 2);
	ck_assert_uint_eq(done.failed, 2);
	ck_assert_ptr_nonnull(strstr(done.why, "n=4: "));
	ck_assert_uint_eq(builds, 2); /* of those that are known none */
	ck_assert_uint_eq(cptx_tune_find(db, &key, 0, found, JOBS, &err), JOBS - 2);
	ck_assert_str_eq(found[0].candidate, "n=1"); /* has the fewest instructions */
	ck_assert_str_eq(found[JOBS - 3].candidate, "n=12");
	ck_assert(
		cptx_tune_measure(db, dev, &job, &(cptx_tune_use){ .budget_s = 1e-9, .policy = CPTX_TUNE_ALWAYS }, &done, &err));
	ck_assert_uint_eq(done.measured, 1); /* at least one */
	ck_assert_uint_eq(done.left, JOBS - 1);
	key.problem = "another"; /* where none can be measured, that is an error */
	const cptx_tune_job broken = { .key = &key,
		                           .candidates = BROKEN + 1,
		                           .name = job_name,
		                           .build = job_build,
		                           .launch = job_launch,
		                           .user = (void *)&at };
	ck_assert(!cptx_tune_measure(db, dev, &broken, &(cptx_tune_use){ .part = BROKEN, .parts = BROKEN + 1 }, &done, &err));
	FAILS(err, CPTX_E_STATE, "none of 1 candidates could be measured: n=4: ");
	ck_assert(!cptx_tune_measure(db, dev, &broken, &(cptx_tune_use){ .part = 4, .parts = 4 }, &done, &err));
	FAILS(err, CPTX_E_ARG, "part 4 of 4");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tune_families");
	TCase *c = test_case(s, "tune_families");

	tcase_add_checked_fixture(c, before, after);
	tcase_add_test(c, a_gemm_takes_the_best_that_was_measured);
	tcase_add_test(c, the_environment_says_when);
	tcase_add_test(c, a_function_is_known_by_its_name);
	tcase_add_test(c, weights_of_few_bits_are_measured);
	tcase_add_test(c, weights_take_what_a_neighbour_had);
	tcase_add_test(c, a_sparse_gemm_is_measured);
	tcase_add_test(c, attention_takes_what_was_measured);
	tcase_add_test(c, rows_take_what_was_measured);
	tcase_add_test(c, options_are_text);
	tcase_add_test(c, what_fails_is_passed_over);
	return test_main("tune_families", s);
}
