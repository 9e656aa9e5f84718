/* SPDX-License-Identifier: MIT */
/* The sm_100a GEMM: on a GPU that has tcgen05, else on the emulator.  CPTX_SEEDS=50 runs each trial with so many seeds. */
#include "../ask.h"
#include "../verify/assemble.h"
#include "gemm_draw.h"
#include "gemm_tests.h"

static const char *const targets[] = { "sm_100a", "sm_103a" }; /* the second has no kind i8 */

/* ---- kinds and shapes ---- */

/* k: in units of a stage, and what is over; n: rounded to what the tile allows. */
#define TILE(m_, n_, s) .bm = m_, .bn = n_, .stages = s
static const struct shape {
	uint32_t m, n, k, over, ctas, batch;
	cptx_gemm_opt o;
} shapes[] = {
	{ 128, 64, 1, 0, 0, 0, { TILE(128, 64, 2), .out = CPTX_F32 } },
	{ 256, 128, 2, 0, 0, 0, { TILE(256, 128, 2), .out = CPTX_BF16 } },
	{ 1, 16, 0, 1, 0, 0, { TILE(128, 64, 2), .out = CPTX_F16, .alpha = true } },
	{ 129, 72, 2, 1, 2, 0, { TILE(128, 64, 3), .out = CPTX_F32, .bias = true, GEMM_TRIAL_VISITORS } },
	{ 300, 72, 1, 1, 2, 0, { TILE(256, 64, 2), .out = CPTX_BF16, .a_tmem = true } },
	{ 130, 64, 1, 0, 0, 0, { TILE(128, 64, 2), .out = CPTX_F16, .cluster_m = 2, .epilogue = gemm_trial_epilogue } },
	{ 100, 192, 2, 0, 2, 0, { TILE(128, 64, 2), .out = CPTX_BF16, .cluster_n = 2, .a_tmem = true } },
	{ 300, 136, 1, 0, 4, 0, { TILE(256, 128, 2), .out = CPTX_F32, .cluster_m = 2, .a_m_major = true } },
	{ 136, 200, 1, 1, 0, 0, { TILE(256, 128, 2), .out = CPTX_BF16, .cluster_n = 2, .b_n_major = true } },
	{ 65, 192, 0, 1, 1, 2, { TILE(128, 192, 2), .out = CPTX_F32, .alpha = true, .beta = true, .bias = true } },
	{ 72, 256, 1, 0, 0, 0, { TILE(128, 256, 2), .out = CPTX_BF16, .a_m_major = true, .b_n_major = true, .beta = true } },
	{ 140, 264, 0, 1, 2, 2, { TILE(256, 192, 2), .out = CPTX_F16, .epilogue = gemm_trial_epilogue } },
	/* fewer tiles than CTAs, which share each; one to two for each; whole ones first */
	{ 100, 64, 5, 1, 3, 0, { TILE(128, 64, 2), .out = CPTX_F32, .stream_k = true, .beta = true } },
	{ 200, 136, 2, 1, 4, 2, { TILE(256, 64, 2), .out = CPTX_BF16, .stream_k = true, .alpha = true } },
	{ 260, 72, 3, 0, 4, 0, { TILE(128, 64, 3), .out = CPTX_F16, .stream_k = true, .cluster_m = 2, GEMM_TRIAL_VISITORS } },
	{ 128, 264, 1, 1, 2, 0, { TILE(128, 64, 2), .out = CPTX_F32, .stream_k = true, .epilogue = gemm_trial_epilogue } },
	/* the tile's rows along N */
	{ 5, 200, 2, 1, 0, 0, { TILE(128, 64, 2), .out = CPTX_F32, .swap = true, .per_sm = 2 } },
	{ 77,
	  136,
	  1,
	  1,
	  2,
	  2,
	  { TILE(128, 64, 2), .out = CPTX_BF16, .swap = true, .alpha = true, .bias = true, GEMM_TRIAL_VISITORS } },
	{ 64,
	  264,
	  1,
	  0,
	  2,
	  0,
	  { TILE(256, 64, 2), .out = CPTX_F16, .swap = true, .b_n_major = true, .epilogue = gemm_trial_epilogue } },
	{ 72,
	  136,
	  1,
	  1,
	  0,
	  0,
	  { TILE(128, 64, 2), .out = CPTX_F32, .swap = true, .a_m_major = true, .cluster_n = 2, .beta = true } },
	{ 100,
	  264,
	  1,
	  0,
	  4,
	  0,
	  { TILE(256, 64, 2), .out = CPTX_BF16, .swap = true, .cluster_m = 2, .a_tmem = true, .bias = true } },
	{ 130, 200, 3, 1, 6, 0, { TILE(128, 64, 2), .out = CPTX_F16, .swap = true, .stream_k = true, .cluster_m = 2 } },
	/* two CTAs on a multiprocessor */
	{ 200, 136, 2, 1, 0, 2, { TILE(128, 64, 2), .out = CPTX_BF16, .per_sm = 2, .alpha = true } },
	{ 300, 136, 3, 0, 0, 0, { TILE(256, 64, 2), .out = CPTX_F32, .per_sm = 2, .stream_k = true, .beta = true } },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static gemm_trial trial_of(const gemm_kind *kind, const struct shape *s)
{
	gemm_trial t = { .m = s->m, .n = s->n, .batch = s->batch, .ctas = s->ctas };
	cptx_gemm_opt *o = &t.opt;
	cptx_gemm_plan plan = { 0 };
	cptx_error err = { .code = CPTX_OK };

	*o = gemm_of_kind(kind, s->o);
	o->a_m_major &= number_packed_bits(o->a) >= 8, o->b_n_major &= number_packed_bits(o->b) >= 8, o->batched = s->batch > 0;
	/* a pair's half of B (with swap A) of bytes, stored by N (M), is 128 wide */
	if (o->swap ? o->a_m_major && number_packed_bits(kind->a) == 8 : o->b_n_major && number_packed_bits(kind->b) == 8)
		o->bn = o->bm == 256 ? 256 : (o->bn + 127) / 128 * 128;
	if (o->kind == CPTX_TCGEN05_I8 && o->out == CPTX_F32 && !o->alpha && !o->beta && !o->bias && !o->epilogue)
		o->out = CPTX_S32;
	ck_assert_msg(cptx_gemm_check(o, NULL, &plan, &err), "%s", err.text);
	t.k = s->k * plan.bk + (s->over ? plan.bk / 4 : 0);
	gemm_fit_sm100(&t);
	return t;
}

START_TEST(gives_the_exact_sums)
{
	for (unsigned i = 0; i < SHAPES; i++)
		for (unsigned seed = 0; seed < gemm_seeds(1); seed++) {
			bool some = shapes[i].o.stream_k || shapes[i].o.swap || shapes[i].o.per_sm;
			if (some && gemm_seeds(1) == 1 && (i + (unsigned)_i) % 4) /* each with some of the kinds */
				continue;
			gemm_trial t = trial_of(&gemm_sm100_kinds[_i], &shapes[i]);
			t.seed = seed + i + (unsigned)_i;
			gemm_right(&t, targets, (unsigned)t.seed);
		}
}
END_TEST

/* Tiles of D of 512 bytes, which stand 1024 apart in shared memory.  _i: with swap? */
START_TEST(stores_narrow_tiles_of_bytes)
{
	const struct shape s = { 40, 96, 1, 0, 0, 0, { TILE(128, 48, 2), .out = _i ? CPTX_E5M2 : CPTX_E4M3, .swap = _i } };
	gemm_trial t = trial_of(&gemm_sm100_kinds[0], &s);

	gemm_right(&t, targets, 0);
}
END_TEST

/* ---- options and sizes at random ---- */

START_TEST(options_at_random) { gemm_right_at_random(gemm_draw_sm100, targets); }
END_TEST

/* ---- ptxas ---- */

/* The tile that fills an SM, with everything behind the sums; the same of a transposed product, of two CTAs on a
 * multiprocessor, of both; and the picked one. */
enum way { FULL, SWAPPED, TWO, SWAPPED_TWO, PICKED, WAYS };

static cptx_gemm_opt option_set(const gemm_kind *kind, enum way way)
{
	cptx_gemm_opt o = gemm_of_kind(kind, (cptx_gemm_opt){ .out = CPTX_BF16 });
	cptx_error err = { 0 };

	if (way == PICKED) {
		cptx_gemm_problem p = { .m = 4096, .n = 4096, .k = 4096 };
		cptx_gemm_choice c;
		ck_assert_msg(cptx_gemm_auto(&o, &p, 148, &c, 1, &err) == 1, "%s", err.text);
		return c.opt;
	}
	bool two = way == TWO || way == SWAPPED_TWO;
	o.swap = way == SWAPPED || way == SWAPPED_TWO, o.per_sm = two ? 2 : 1;
	o.bm = 128, o.bn = two ? 128 : 256, o.stages = 2, o.out = o.swap ? CPTX_F16 : CPTX_F32;
	o.a_tmem = !two && kind->scale != CPTX_UE4M3, o.cluster_n = two ? 1 : 2;
	o.alpha = o.beta = o.bias = o.batched = o.stream_k = true, o.epilogue = gemm_trial_epilogue;
	return o;
}

START_TEST(ptxas_neither_warns_nor_spills)
{
	enum { JOBS = 2 * WAYS };
	unsigned n = getenv("CPTX_WHOLE") ? JOBS : 1; /* each option set for both targets, or one of all */
	assembly jobs[JOBS] = { { 0 } };
	cptx_ptx *ptx[JOBS] = { NULL };
	cptx_error err = { 0 };

	if (!test_ptxas()) {
		skip("ptxas, to judge the kernels");
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		const gemm_kind *kind = &gemm_sm100_kinds[_i];
		bool i8 = kind->kind == CPTX_TCGEN05_I8;
		unsigned which = n > 1 ? i : (unsigned)_i % JOBS;
		cptx_module *m = cptx_module_new(NULL);
		cptx_gemm_opt o = option_set(kind, (enum way)(which / 2));
		const char *target = targets[i8 ? 0 : which % 2];
		ck_assert_msg(cptx_gemm_build(m, &o, &err) != NULL, "%s", err.text);
		ptx[i] = cptx_emit(m, target, NULL, &err);
		ck_assert_msg(ptx[i] != NULL, "%s", err.text);
		jobs[i] = (assembly){ .target = target, .ptx = cptx_ptx_text(ptx[i]) };
		cptx_module_destroy(m);
	}
	assemble(jobs, n);
	for (unsigned i = 0; i < n; i++) {
		unsigned kernels = 0, spills = assembly_spills(jobs[i].said, &kernels);
		ck_assert_msg(!jobs[i].status && kernels == 1 && !spills, "%u: %s", i, jobs[i].said);
		ck_assert_msg(!strstr(jobs[i].said, "warning") && !strstr(jobs[i].said, "C7"), "%u: %s", i, jobs[i].said);
	}
	assemble_free(jobs, n);
	for (unsigned i = 0; i < n; i++)
		cptx_ptx_destroy(ptx[i]);
}
END_TEST

/* ---- rules ---- */

#define OPT(kind_, a_, b_, out_, stages_, ...)                                                                              \
	{                                                                                                                       \
		.mma = CPTX_GEMM_TCGEN05, .kind = CPTX_TCGEN05_##kind_, .a = CPTX_##a_, .b = CPTX_##b_, .out = CPTX_##out_,         \
		.stages = stages_, __VA_ARGS__                                                                                      \
	}
#define F16(...) OPT(F16, BF16, BF16, F32, 2, __VA_ARGS__)
#define FP4(...) OPT(MXF4, E2M1, E2M1, F32, 2, __VA_ARGS__)
#define I8(...) OPT(I8, S8, S8, S32, 2, __VA_ARGS__)

START_TEST(says_which_rule_is_broken)
{
	static const struct {
		cptx_gemm_opt o;
		const char *said, *target;
	} bad[] = {
		{ F16(.bm = 64, .bn = 64), "tile M = 64; 128 (one CTA) and 256 (two) are possible", NULL },
		{ F16(.bm = 128, .bn = 64, .grouped = true, .stream_k = true), "a list of problems cannot be shared along K", NULL },
		{ F16(.bm = 128, .bn = 64, .grouped = true, .timeline = 8), "a list of problems has no timeline", NULL },
		{ F16(.bm = 128, .bn = 40), "tile N = 40; multiples of 16 up to 256 are possible with 128 rows", NULL },
		{ F16(.bm = 256, .bn = 48), "tile N = 48; multiples of 32 up to 256", NULL },
		{ FP4(.bm = 128, .bn = 96, .scale = CPTX_UE8M0),
		  "multiples of 64 up to 256 are possible with 128 rows and scale factors", NULL },
		{ FP4(.bm = 128, .bn = 128), "kind mxf4: ", NULL },
		{ FP4(.bm = 128, .bn = 128, .scale = CPTX_UE4M3), "type of the scale factors is ue4m3; possible: ue8m0", NULL },
		{ F16(.bm = 128, .bn = 64, .scale = CPTX_UE8M0), "scale factors of a kind that has none", NULL },
		{ OPT(F16, BF16, F16, F32, 2, .bm = 128, .bn = 64), "both must be bf16, or both f16", NULL },
		{ OPT(F16, E4M3, E4M3, F32, 2, .bm = 128, .bn = 64), "type of A is e4m3; possible: f16 bf16", NULL },
		{ OPT(F16, BF16, BF16, S32, 2, .bm = 128, .bn = 64), "output type .s32; it must be f32, bf16, f16, e4m3 or e5m2",
		  NULL },
		{ OPT(F16, BF16, BF16, F32, 1, .bm = 128, .bn = 64), "1 stages; 2 to 16 are possible", NULL },
		{ OPT(F16, BF16, BF16, F32, 9, .bm = 128, .bn = 256), "(4 stages fit)", NULL },
		{ F16(.bm = 128, .bn = 64, .cluster_m = 3), "a cluster of 3x1 CTAs; 1, 2, 4 or 8 are", NULL },
		{ F16(.bm = 128, .bn = 64, .cluster_m = 2, .cluster_n = 2), "one side must be 1", NULL },
		{ F16(.bm = 128, .bn = 16, .cluster_m = 4),
		  "16 columns of B in a CTA, in 4 parts; each part must be a multiple of 8", NULL },
		{ F16(.bm = 128, .bn = 96, .b_n_major = true),
		  "96 columns of B in a CTA, in 1 part; each part must be a multiple of 64", NULL },
		{ F16(.bm = 128, .bn = 64, .a_m_major = true, .a_tmem = true),
		  "A stored as rows of M cannot come from tensor memory", NULL },
		{ OPT(F8F6F4, E2M1, E4M3, F32, 2, .bm = 128, .bn = 64, .a_m_major = true), "elements of 4 and 6 bits lie along K",
		  NULL },
		{ F16(.bm = 128, .bn = 64), "sm_90a has no tcgen05; sm_100a and sm_103a have. Instead: wgmma", "sm_90a" },
		{ F16(.bm = 128, .bn = 64), "sm_120a has no tcgen05; sm_100a and sm_103a have. Instead: mma.sync", "sm_120a" },
		{ I8(.bm = 128, .bn = 64), "sm_103a has no tcgen05.mma of kind i8; sm_100a has", "sm_103a" },
		{ F16(.bm = 64, .bn = 64, .swap = true), "tile N = 64; 128 (one CTA) and 256 (two) are possible", NULL },
		{ F16(.bm = 256, .bn = 48, .swap = true), "tile M = 48; multiples of 32 up to 256 are possible with 256 columns",
		  NULL },
		{ F16(.bm = 128, .bn = 96, .a_m_major = true, .swap = true), "96 rows of A in a CTA, in 1 part; each part must be",
		  NULL },
		{ F16(.bm = 128, .bn = 64, .b_n_major = true, .a_tmem = true, .swap = true),
		  "B stored as rows of N cannot come from tensor memory", NULL },
		{ F16(.bm = 128, .bn = 64, .per_sm = 3), "per_sm = 3; 1 or 2 CTAs on a multiprocessor", NULL },
		{ F16(.bm = 128, .bn = 240, .per_sm = 2, .a_tmem = true),
		  "272 columns of tensor memory, of 256 that each of two CTAs on a multiprocessor has", NULL },
		{ OPT(F16, BF16, BF16, F32, 4, .bm = 128, .bn = 128, .per_sm = 2), "(2 stages fit)", NULL },
		{ I8(.bm = 128, .bn = 64, .bias = true), "output type .s32 with alpha, beta, bias or an epilogue", NULL },
	};
	cptx_error err = { .code = CPTX_OK };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		ck_assert_msg(!cptx_gemm_check(&bad[i].o, bad[i].target ? cptx_target_find(bad[i].target) : NULL, NULL, FRESH(&err)),
		              "%s", bad[i].said);
		ck_assert_msg(strstr(err.text, bad[i].said) != NULL, "%s: not %s", err.text, bad[i].said);
	}
}
END_TEST

START_TEST(bad_calls_end_well)
{
	cptx_gemm_opt o = F16(.bm = 128, .bn = 64), small = OPT(F8F6F4, E2M1, E4M3, F32, 2, .bm = 128, .bn = 64);
	cptx_gemm_problem p = { .m = 64, .n = 64, .k = 12 };
	cptx_error err = { 0 };

	ck_assert(!cptx_gemm_check_problem(&o, &p, 148, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "rows of A have 12 elements of 2 bytes; they must be a multiple of 16 bytes (pad to 16)"),
	              "%s", err.text);
	p.k = 64;
	ck_assert(!cptx_gemm_check_problem(&small, &p, 148, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "they must be a multiple of 128 (pad to 128)"), "%s", err.text);
	ck_assert(!cptx_gemm_check(NULL, NULL, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "no options were given"), "%s", err.text);
	ck_assert(!cptx_gemm_check_problem(&o, NULL, 148, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "no problem was given (NULL)"), "%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_gemm_launch(NULL, NULL, &o, &p, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "the device is NULL"), "%s", err.text);
	err = (cptx_error){ 0 };
	cptx_gemm_choice c;
	ck_assert_uint_eq(cptx_gemm_auto(NULL, &p, 148, &c, 1, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, "no options"), "%s", err.text);
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 148, &c, 0, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, "no room for choices"), "%s", err.text);
	err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_gemm_build(NULL, &o, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "the module is NULL"), "%s", err.text);
	p.batch = 2, err = (cptx_error){ 0 };
	ck_assert_uint_eq(cptx_gemm_auto(&o, &p, 148, &c, 1, FRESH(&err)), 0);
	ck_assert_msg(strstr(err.text, "2 matrices; the kernel is made for one"), "%s", err.text);
}
END_TEST

/* What the maps do not check; `which`: offset of the address in the problem. */
START_TEST(addresses_are_checked)
{
	static const struct {
		size_t which;
		const char *name;
	} all[] = { { offsetof(cptx_gemm_problem, a), "A" },
		        { offsetof(cptx_gemm_problem, b), "B" },
		        { offsetof(cptx_gemm_problem, d), "D" },
		        { offsetof(cptx_gemm_problem, c), "C" },
		        { offsetof(cptx_gemm_problem, bias), "the bias" },
		        { offsetof(cptx_gemm_problem, timeline), "the timeline" },
		        { offsetof(cptx_gemm_problem, scale_a), "the scale factors of A" },
		        { offsetof(cptx_gemm_problem, scale_b), "the scale factors of B" } };
	cptx_gemm_opt o = FP4(.bm = 128, .bn = 128, .scale = CPTX_UE8M0, .beta = true, .bias = true, .timeline = 4);
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_device *dev = cptx_device_open("emu:sm_100a", &err);
	char said[100];

	o.kind = CPTX_TCGEN05_MXF4NVF4;
	ck_assert_msg(cptx_gemm_build(m, &o, FRESH(&err)) != NULL, "%s", err.text);
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	uint64_t at = cptx_mem_alloc(dev, 1 << 16, &err);
	ck_assert_msg(!err.code, "%s", err.text);
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		for (int zero = 0; zero < 2; zero++) {
			cptx_gemm_problem p = { .m = 128,
				                    .n = 128,
				                    .k = 256,
				                    .a = at,
				                    .b = at,
				                    .d = at,
				                    .c = at,
				                    .bias = at,
				                    .scale_a = at,
				                    .scale_b = at,
				                    .timeline = at };
			uint64_t bad = zero ? 0 : at + 8;
			memcpy((char *)&p + all[i].which, &bad, sizeof bad);
			snprintf(said, sizeof said,
			         zero ? "gemm for sm_100a: the address of %s is 0" : "the address of %s, 0x%llx, is no multiple of 16",
			         all[i].name, (unsigned long long)bad);
			err = (cptx_error){ 0 };
			ck_assert_ptr_null(cptx_gemm_launch(program, dev, &o, &p, FRESH(&err)));
			/* tensor maps tell where theirs begin, in front of this */
			ck_assert_msg(strstr(err.text, said) || (!zero && strstr(err.text, "tensor map")), "%s\nnot: %s", err.text,
			              said);
		}
	cptx_program_destroy(program);
	cptx_device_close(dev);
	cptx_module_destroy(m);
}
END_TEST

/* Matrices of 2^62 bytes, 2^65 bits: no map has that stride. */
START_TEST(large_strides_stay_large)
{
	cptx_gemm_opt o = OPT(TF32, TF32, TF32, F32, 2, .bm = 128, .bn = 64, .batched = true);
	cptx_gemm_problem p = { .m = 1 << 30, .n = 64, .k = 1 << 30, .batch = 2, .a = 4096, .b = 4096, .d = 4096 };
	cptx_tensor_map_opt map[CPTX_GEMM_MAPS];
	cptx_error err = { 0 };

	ck_assert(!cptx_gemm_maps(&o, &p, map, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "A has 4611686018427387904 bytes"), "%s", err.text);
	p.m = 1 << 18, p.k = 1 << 19;
	ck_assert_msg(cptx_gemm_maps(&o, &p, map, FRESH(&err)), "%s", err.text);
	ck_assert_uint_eq(map[0].stride[2], 1ull << 39);
}
END_TEST

/* ---- choices ---- */

/* Of the emulator no time means anything: all choices are run, and are there in the order of what was measured. */
START_TEST(tunes)
{
	enum { M = 130, N = 64, K = 320, CHOICES = 3 };
	cptx_gemm_choice c[CHOICES] = {
		{ .us = 5000, .opt = F16(.bm = 128, .bn = 64) },
		{ .us = 5000, .ctas = 3, .opt = F16(.bm = 128, .bn = 32, .stream_k = true) },
		{ .us = 5000, .opt = F16(.bm = 256, .bn = 32) },
	};
	cptx_gemm_problem p = { .m = M, .n = N, .k = K };
	cptx_error err = { 0 };
	cptx_device *dev = gemm_device(&c[0].opt, "sm_100a", &(cptx_emu_opt){ .sms = 4 });
	static uint16_t ones[M * K];
	static float d[M * N];
	unsigned seen = 0;

	for (unsigned i = 0; i < M * K; i++)
		ones[i] = 0x3f80;
	p.a = cptx_mem_alloc(dev, sizeof ones, &err), p.b = cptx_mem_alloc(dev, N * K * 2, &err);
	p.d = cptx_mem_alloc(dev, sizeof d, &err);
	ck_assert(cptx_mem_write(dev, p.a, ones, sizeof ones, &err) && cptx_mem_write(dev, p.b, ones, N * K * 2, &err));
	ck_assert_msg(cptx_gemm_tune(dev, &p, c, CHOICES, FRESH(&err)), "%s", err.text);
	for (unsigned i = 0; i < CHOICES; i++) {
		seen |= c[i].opt.bm == 256 ? 1 : c[i].opt.stream_k ? 2 : 4;
		ck_assert(c[i].measured_us > 0 && (!i || c[i - 1].measured_us <= c[i].measured_us));
	}
	ck_assert_uint_eq(seen, 7);
	ck_assert(cptx_mem_read(dev, d, p.d, sizeof d, &err));
	for (unsigned i = 0; i < M * N; i++)
		ck_assert_msg(d[i] == K, "%u: %g", i, (double)d[i]);
	c[1].opt.bn = 40;
	seen = c[0].opt.bm;
	ck_assert(!cptx_gemm_tune(dev, &p, c, CHOICES, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "tile N = 40") && c[1].opt.bn == 40 && c[0].opt.bm == seen, "%s", err.text);
	cptx_mem_free(dev, p.a), cptx_mem_free(dev, p.b), cptx_mem_free(dev, p.d);
	gemm_device_done(dev, "tune");
}
END_TEST

/* What the model leaves of few tiles, and of many. */
START_TEST(the_model_shares_few_tiles)
{
	cptx_gemm_opt o = F16(0);
	cptx_gemm_choice c[3];
	cptx_error err = { .code = CPTX_OK };

	ck_assert_uint_eq(cptx_gemm_auto(&o, &(cptx_gemm_problem){ .m = 256, .n = 256, .k = 16384 }, 148, c, 3, &err), 3);
	ck_assert(c[0].opt.stream_k && c[0].us <= c[1].us && c[1].us <= c[2].us && c[0].opt.group > 0);
	ck_assert_uint_eq(cptx_gemm_auto(&o, &(cptx_gemm_problem){ .m = 8192, .n = 8192, .k = 8192 }, 148, c, 3, &err), 3);
	ck_assert(!c[0].opt.stream_k && c[0].opt.bm == 256 && c[0].opt.bn == 256 && c[0].opt.group > 1);
	/* tensor cores would make 128 rows of 16 */
	ck_assert_uint_eq(cptx_gemm_auto(&o, &(cptx_gemm_problem){ .m = 16, .n = 8192, .k = 8192 }, 148, c, 3, &err), 3);
	ck_assert(c[0].opt.swap && c[0].opt.bn == 16);
}
END_TEST

/* ---- scale factors ---- */

START_TEST(factors_are_packed_as_said)
{
	enum { ROWS = 130, K = 200, VEC = 32, FACTORS = 7 };
	uint8_t plain[ROWS * FACTORS], packed[2 * 2 * 512];

	for (unsigned i = 0; i < sizeof plain; i++)
		plain[i] = (uint8_t)(i * 37 % 251 + 1);
	ck_assert_uint_eq(cptx_gemm_scales_bytes(ROWS, K, VEC), sizeof packed);
	cptx_gemm_scales_pack(packed, plain, ROWS, K, VEC);
	for (unsigned r = 0; r < 256; r++)
		for (unsigned f = 0; f < 8; f++) {
			unsigned at = (r / 128 * 2 + f / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + f % 4;
			ck_assert_uint_eq(packed[at], r < ROWS && f < FACTORS ? plain[r * FACTORS + f] : 0);
		}
	ck_assert_uint_eq(cptx_gemm_scales_bytes(1, 1, 16), 512);
	ck_assert_uint_eq(cptx_gemm_scales_bytes(1, 1, 0), 0);
	ck_assert_uint_eq(cptx_gemm_scales_bytes(1ull << 40, 1ull << 40, 16), UINT64_MAX);
	ck_assert_uint_eq(cptx_gemm_scales_bytes(1ull << 33, 1ull << 30, 16), 1ull << 59);
	cptx_gemm_scales_pack(NULL, plain, 1ull << 40, 1ull << 40, 16);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_sm100");
	TCase *rules = test_case(s, "rules");

	tcase_add_loop_test(test_case(s, "shapes"), gives_the_exact_sums, 0, GEMM_SM100_KINDS);
	tcase_add_loop_test(test_case(s, "narrow"), stores_narrow_tiles_of_bytes, 0, 2);
	tcase_add_test(test_case(s, "random"), options_at_random);
	tcase_add_loop_test(test_case(s, "ptxas"), ptxas_neither_warns_nor_spills, 0, GEMM_SM100_KINDS);
	tcase_add_test(rules, says_which_rule_is_broken);
	tcase_add_test(rules, bad_calls_end_well);
	tcase_add_test(rules, addresses_are_checked);
	tcase_add_test(rules, large_strides_stay_large);
	tcase_add_test(rules, factors_are_packed_as_said);
	tcase_add_test(rules, the_model_shares_few_tiles);
	tcase_add_test(test_case(s, "tune"), tunes);
	return gemm_tests_main("gemm_sm100", s);
}
