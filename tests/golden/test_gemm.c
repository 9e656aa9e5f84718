/* SPDX-License-Identifier: MIT */
/*
 * Random GEMM shapes: what is illegal is refused by a message that names the rule, what is legal builds and prints; ptxas
 * takes a sample of those, and the registers that the plan estimates are held against what ptxas needs.
 */
#include <cptx/gemm.h>

#include "../test.h"
#include "../reparse.h"
#include "../kernels/gemm_draw.h"
#include "../verify/assemble.h"
#include "../ask.h"

enum {
	SHAPES = 300,
	SAMPLE = 20,
	PTX_MOST = 100 * 1024 /* twice with more than the sums */,
	REGS_OFF_MOST = 32,
	SPILL_MOST = 80
};

static const char *describe(const cptx_gemm_opt *o)
{
	static char text[128];
	snprintf(text, sizeof text, "%ux%ux%u, %ux%u warps, %u stages, %s to %s", o->bm, o->bn, o->bk, o->warps_m, o->warps_n,
	         o->stages, cptx_type_name(o->a), cptx_type_name(o->out));
	return text;
}

/* An illegal shape's message is one of these. */
static const char *const rules[] = {
	"both must be bf16, both f16, both tf32, both f64, or each e4m3 or e5m2, or each s8 or u8",
	"a sparse A ",
	"of .f64; it is 16 or 32",
	"it must be f32, bf16, f16, e4m3 or e5m2",
	"are multiplied along K only",
	"C would have that type too",
	"the swizzle is made for ",
	"2 to 16 are possible",
	"a CTA has 1 to 32",
	"is not divisible into",
	"copy at most 64 times 16 bytes each of A and of B: take more warps or a smaller tile",
	"a list of problems cannot be",
	"registers per thread are needed",
	"bytes of shared memory; a CTA of",
	"at most 1024 rows of tiles",
	"no options were given",
};
enum { NRULE = sizeof rules / sizeof rules[0] };
static bool broken[NRULE];

static void names_a_rule(const cptx_gemm_opt *o, const cptx_error *err)
{
	bool found = false;

	for (unsigned i = 0; i < NRULE; i++)
		if (strstr(err->text, rules[i]))
			found = broken[i] = true;
	ck_assert_msg(err->code == CPTX_E_ARG && found && !strncmp(err->text, "gemm", 4), "%s: %s", o ? describe(o) : "NULL",
	              err->text);
}

static char *text_of(const cptx_gemm_opt *o, const char *target)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { .code = CPTX_OK };

	ck_assert_msg(cptx_gemm_build(m, o, &err) != NULL, "%s: %s", describe(o), err.text);
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);
	ck_assert_msg(ptx != NULL, "%s: %s", describe(o), err.text);
	ck_assert(test_reparses(cptx_ptx_text(ptx)));
	char *text = strdup(cptx_ptx_text(ptx));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return text;
}

static unsigned number_before(const char *said, const char *what)
{
	const char *p = strstr(said, what);

	ck_assert_msg(p != NULL, "no \"%s\" in: %s", what, said);
	const char *digit = p;
	while (digit > said && digit[-1] >= '0' && digit[-1] <= '9')
		digit--;
	return (unsigned)strtoul(digit, NULL, 10);
}

/* The sums alone. */
static void make_plain(cptx_gemm_opt *o)
{
	o->stream_k = o->grouped = o->batched = o->alpha = o->beta = o->bias = false;
	o->strided = false, o->unaligned = 0, o->epilogue = NULL;
}

static bool is_plain(const cptx_gemm_opt *o)
{
	return !o->stream_k && !o->grouped && !o->batched && !o->alpha && !o->beta && !o->bias && !o->unaligned && !o->epilogue;
}

/* sm_90 multiplies f16 in place of 8-bit floats, so that ptxas 13.0 takes 180 registers for a tile of 64x32x128 of e5m2 by
 * two warps, of which it takes 128 on sm_89, whose tensor cores have these types. */
static bool is_converted(const cptx_gemm_opt *o) { return o->a == CPTX_E4M3 || o->a == CPTX_E5M2; }

static void judge(const cptx_gemm_opt *o, unsigned n, const char *target)
{
	assembly jobs[SAMPLE] = { { 0 } };
	char *text[SAMPLE];
	unsigned spilled = 0;
	int low = 0, high = 0;

	for (unsigned i = 0; i < n; i++) {
		text[i] = text_of(&o[i], target);
		jobs[i] = (assembly){ .target = target, .ptx = text[i] };
	}
	assemble(jobs, n);
	for (unsigned i = 0; i < n; i++) {
		cptx_gemm_plan plan;
		ck_assert(cptx_gemm_check(&o[i], cptx_target_find(target), &plan, NULL));
		ck_assert_msg(!jobs[i].status, "%s: %s", describe(&o[i]), jobs[i].said);
		unsigned regs = number_before(jobs[i].said, " registers"),
				 spill = number_before(jobs[i].said, " bytes spill stores");
		int off = (int)regs - (int)plan.regs;
		low = off < low ? off : low;
		high = off > high ? off : high;
		spilled += spill > (is_plain(&o[i]) ? 0 : (unsigned)SPILL_MOST);
		if (spill || getenv("CPTX_TABLE_ALL"))
			printf("%s: %u registers, %u estimated, %u bytes spilled\n", describe(&o[i]), regs, plan.regs, spill);
		ck_assert_msg(abs(off) <= REGS_OFF_MOST || !is_plain(&o[i]) || is_converted(&o[i]), "%s: %u registers, %u estimated",
		              describe(&o[i]), regs, plan.regs);
	}
	printf("%u shapes: ptxas takes %d to %+d registers more than estimated; %u spill\n", n, low, high, spilled);
	ck_assert_uint_eq(spilled, 0);
	assemble_free(jobs, n);
	for (unsigned i = 0; i < n; i++)
		free(text[i]);
}

START_TEST(random_shapes)
{
	cptx_gemm_opt sample[SAMPLE];
	unsigned legal = 0, nsample = 0;
	const cptx_target *t = cptx_target_find("sm_90a");

	for (unsigned i = 0; i < SHAPES || legal < 60; i++) {
		cptx_gemm_opt o = gemm_draw_sm80(i + 1).opt;
		if (i % 2)
			make_plain(&o);
		cptx_gemm_plan plan = { 0 };
		cptx_error err = { .code = CPTX_OK };
		ck_assert_uint_lt(i, 100 * SHAPES);
		if (!cptx_gemm_check(&o, t, &plan, FRESH(&err))) {
			names_a_rule(&o, &err);
			continue;
		}
		ck_assert_int_eq(err.code, CPTX_OK);
		ck_assert_uint_eq(plan.threads, o.warps_m * o.warps_n * 32);
		ck_assert_uint_eq(plan.smem, o.stages * (o.bm / (o.sparse ? 2 : 1) + o.bn) * o.bk *
		                                 (o.a == CPTX_TF32 ? 32 : cptx_type_bits(o.a)) / 8);
		char *text = text_of(&o, "sm_90a");
		ck_assert_msg(strlen(text) < (i % 2 ? 1 : 2) * (size_t)PTX_MOST, "%s: %zu bytes", describe(&o), strlen(text));
		free(text);
		if (legal++ % 3 == 0 && nsample < SAMPLE)
			sample[nsample++] = o;
	}
	printf("%u legal shapes\n", legal);
	ck_assert_uint_ge(nsample, SAMPLE);
	if (test_ptxas())
		judge(sample, nsample, "sm_90a");
	else
		skip("ptxas, to judge %u shapes", nsample);
}
END_TEST

/* Each rule, broken on purpose. */
START_TEST(every_rule)
{
	cptx_gemm_opt good = cptx_gemm_default(CPTX_GEMM_SYNC, NULL);

	good.bn = 128, good.bk = 32, good.warps_m = good.warps_n = 2, good.stages = 3;
	struct {
		cptx_gemm_opt o;
		const char *text;
	} bad[] = {
		{ good, "gemm for sm_80: A is .f32 and B .bf16; both must be bf16, both f16" },
		{ good, "gemm for sm_80: output type .s32; it must be f32, bf16, f16, e4m3 or e5m2" },
		{ good, "gemm for sm_80: tile K = 48; the swizzle is made for 32, 64 and 128" },
		{ good, "gemm for sm_80: 17 stages; 2 to 16 are possible" },
		{ good, "gemm for sm_80: 1 stages; 2 to 16 are possible" },
		{ good, "gemm for sm_80: 0x2 warps; a CTA has 1 to 32" },
		{ good, "gemm for sm_80: 8x8 warps; a CTA has 1 to 32" },
		{ good, "gemm for sm_80: tile M = 100 is not divisible into 2 warps of a multiple of 16 rows (try 96)" },
		{ good, "gemm for sm_80: tile N = 136 is not divisible into 2 warps of a multiple of 16 columns (try 128)" },
		{ good, "gemm for sm_80: tile 16x144x128; 32 threads copy at most 64 times 16 bytes each of A and of B" },
		{ good, "gemm for sm_80: a list of problems cannot be batched" },
		{ good, "registers per thread are needed, 128 threads can have 255 each: take more warps or a smaller tile" },
		{ good, "gemm for sm_80: 4 stages of 128x128x128 need 262144 bytes of shared memory; a CTA of sm_90a has at most "
		        "232448 (3 "
		        "stages fit)" },
		{ good, "gemm for sm_80: group = 2000; at most 1024 rows of tiles" },
	};
	enum { NBAD = sizeof bad / sizeof bad[0] };
	cptx_error err = { .code = CPTX_OK };

	bad[0].o.a = CPTX_F32, bad[1].o.out = CPTX_S32, bad[2].o.bk = 48, bad[3].o.stages = 17, bad[4].o.stages = 1,
	bad[5].o.warps_m = 0;
	bad[6].o.warps_m = bad[6].o.warps_n = 8, bad[7].o.bm = 100, bad[8].o.bn = 136;
	bad[9].o.warps_m = bad[9].o.warps_n = 1, bad[9].o.bk = 128, bad[9].o.bm = 16, bad[9].o.bn = 144;
	bad[10].o.grouped = bad[10].o.batched = true, bad[11].o.bm = bad[11].o.bn = 256;
	bad[12].o.bk = 128, bad[12].o.warps_m = bad[12].o.warps_n = 4, bad[12].o.stages = 4;
	bad[13].o.group = 2000;
	ck_assert_msg(cptx_gemm_check(&good, cptx_target_find("sm_90a"), NULL, FRESH(&err)), "%s", err.text);
	for (unsigned i = 0; i < NBAD; i++) {
		ck_assert_msg(!cptx_gemm_check(&bad[i].o, cptx_target_find("sm_90a"), NULL, FRESH(&err)), "%s", bad[i].text);
		ck_assert_msg(strstr(err.text, bad[i].text) != NULL, "not \"%s\": %s", bad[i].text, err.text);
		names_a_rule(&bad[i].o, &err);
		ck_assert(!cptx_gemm_check(&bad[i].o, cptx_target_find("sm_90a"), NULL, NULL));
	}
	ck_assert(!cptx_gemm_check(NULL, NULL, NULL, FRESH(&err)));
	names_a_rule(NULL, &err);
	ck_assert(!cptx_gemm_check(&bad[12].o, NULL, NULL, FRESH(&err))); /* no target, but no target can */
	names_a_rule(&bad[12].o, &err);
	for (unsigned i = 0; i < NRULE; i++)
		ck_assert_msg(broken[i], "never seen: %s", rules[i]);
}
END_TEST

START_TEST(build_refuses)
{
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, NULL);
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { .code = CPTX_OK };

	o.bk = 48;
	ck_assert_ptr_null(cptx_gemm_build(m, &o, FRESH(&err)));
	ck_assert_ptr_nonnull(strstr(err.text, "tile K = 48"));
	ck_assert_ptr_null(cptx_module_error(m)); /* nothing was begun */
	ck_assert_uint_eq(cptx_module_size(m), 0);
	ck_assert_ptr_null(cptx_gemm_build(m, NULL, FRESH(&err)));
	o.bk = 64, o.name = "a b";
	ck_assert_ptr_null(cptx_gemm_build(m, &o, FRESH(&err)));
	ck_assert_ptr_nonnull(strstr(err.text, "kernel name 'a b' is no PTX identifier"));
	ck_assert_ptr_null(cptx_module_error(m));
	ck_assert_ptr_null(cptx_gemm_build(NULL, &(cptx_gemm_opt){ .bm = 0 }, NULL));
	o.name = "fine";
	ck_assert_ptr_null(cptx_gemm_build(NULL, &o, FRESH(&err)));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
	ck_assert_ptr_nonnull(strstr(err.text, "NULL"));
	cptx_module_destroy(m);
}
END_TEST

START_TEST(problems)
{
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, NULL);
	cptx_error err = { .code = CPTX_OK };

	const struct {
		uint64_t m, n, k;
		const char *said;
		uint32_t grid;
	} all[] = {
		{ 1, 1, 8, NULL, 1 },
		{ 129, 257, 8, NULL, 4 },
		{ 8192, 8192, 8192, NULL, 128 },
		{ 0, 1, 8, "gemm for sm_80: M = 0, N = 1, K = 8; each must be from 1 to 2^30", 0 },
		{ 1, 1, 12, "gemm for sm_80: rows of A have 12 elements of 2 bytes; they must be a multiple of 16 bytes (pad to 16)",
		  0 },
		{ 1ull << 31, 1, 8, "each must be from 1 to 2^30", 0 },
		{ 1, 1, 1u << 30, "rows that threads copy have less than 2^31 bytes", 0 },
		{ (1u << 30) - 8, (1u << 30) - 8, 8, "are too many", 0 },
	};
	cptx_gemm_plan plan;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cptx_gemm_problem p = { .m = all[i].m, .n = all[i].n, .k = all[i].k };
		ck_assert(cptx_gemm_check_problem(&o, &p, 132, &plan, FRESH(&err)) == !all[i].said);
		ck_assert_msg(all[i].said ? strstr(err.text, all[i].said) != NULL : plan.grid == all[i].grid, "%s", err.text);
	}
	ck_assert(!cptx_gemm_check_problem(NULL, &(cptx_gemm_problem){ .m = 1, .n = 1, .k = 8 }, 1, NULL, FRESH(&err)));
	ck_assert_ptr_nonnull(strstr(err.text, "no options were given"));
	ck_assert(!cptx_gemm_check_problem(&o, NULL, 1, NULL, FRESH(&err)));
	ck_assert_ptr_nonnull(strstr(err.text, "no problem was given"));
}
END_TEST

/* What only some kernels have, asked of one that does not have it. */
START_TEST(options_of_other_kernels)
{
	const cptx_gemm_opt sync = cptx_gemm_default(CPTX_GEMM_SYNC, NULL);
	cptx_gemm_opt o[8] = { sync, sync, sync, sync, sync, sync, sync, sync };
	static const char *const said[] = {
		"gemm: .a_tmem is an option of tcgen05; this kernel is by mma.sync: there is no tensor memory",
		"gemm: .per_sm is an option of mma.sync with scale factors, of wgmma, of tcgen05; this kernel is by mma.sync: "
		"there a launch asks the device how many fit",
		"gemm: .warps_m is an option of mma.sync, of mma.sync with scale factors, of gemv; this kernel is by wgmma: there "
		"the "
		"instruction says which warps compute what",
		"gemm: .zeros is an option of wgmma, of gemv; this kernel is by mma.sync: there no operand has few bits and scale "
		"factors for "
		"groups "
		"along K",
		"gemm: .swap is an option of wgmma, of tcgen05; this kernel is by mma.sync with scale factors: there both sides of "
		"a tile can be as small",
		"gemm: .cluster_n is an option of wgmma, of tcgen05; this kernel is by mma.sync with scale factors: there "
		"copies do not multicast to a cluster, or slowly",
		"gemm for sm_90a: tile K = 32; with .bf16 it is 64, 128 bytes",
		"gemm: .mma = 4; there are mma.sync, wgmma, tcgen05 and gemv",
	};
	cptx_error err = { .code = CPTX_OK };

	o[0].a_tmem = true, o[1].per_sm = 2;
	o[2].mma = o[6].mma = CPTX_GEMM_WGMMA, o[7].mma = CPTX_GEMM_MMAS;
	o[3].warps_m = o[3].warps_n = o[6].warps_m = o[6].warps_n = 0;
	o[3].zeros = true, o[4].scale = o[5].scale = CPTX_UE8M0, o[4].swap = true, o[5].cluster_n = 2, o[6].bk = 32;
	for (size_t i = 0; i < 8; i++) {
		ck_assert(!cptx_gemm_check(&o[i], NULL, NULL, FRESH(&err)));
		ck_assert_str_eq(err.text, said[i]);
		ck_assert_ptr_null(cptx_gemm_build(NULL, &o[i], NULL));
	}
	ck_assert_uint_eq(cptx_gemm_mma_of(cptx_target_find("sm_90")), CPTX_GEMM_SYNC);
	ck_assert_uint_eq(cptx_gemm_mma_of(cptx_target_find("sm_103a")), CPTX_GEMM_TCGEN05);
	ck_assert_str_eq(cptx_gemm_mma_name(CPTX_GEMM_MMAS), "?");
}
END_TEST

/* Of every kernel on every target that has it. */
START_TEST(the_default_fits)
{
	static const uint16_t needs[] = {
		[CPTX_GEMM_WGMMA] = CPTX_OP_WGMMA_MMA_ASYNC, [CPTX_GEMM_TCGEN05] = CPTX_OP_TCGEN05_MMA
	};
	const cptx_target *t;
	unsigned seen = 0;

	for (size_t i = 0; (t = cptx_target_at(i)); i++)
		for (enum cptx_gemm_mma mma = 0; mma < CPTX_GEMM_MMAS; mma++) {
			cptx_gemm_opt o = cptx_gemm_default(mma, t);
			cptx_gemm_plan plan;
			cptx_error err = { .code = CPTX_OK };
			bool ok = cptx_gemm_check(&o, t, &plan, &err),
				 has = mma && mma != CPTX_GEMM_GEMV ? cptx_form_on_target(needs[mma], 0, t) : t->number >= 80;
			ck_assert_msg(ok == has && o.mma == mma, "%s: %s", t->name, err.text);
			if (ok)
				ck_assert_uint_le(plan.smem, t->smem_per_cta);
			seen |= (unsigned)ok << mma;
		}
	ck_assert_uint_eq(seen, 15);
	ck_assert_uint_eq(cptx_gemm_default(CPTX_GEMM_MMAS, NULL).mma, CPTX_GEMM_SYNC);
	ck_assert_uint_eq(cptx_gemm_default(CPTX_GEMM_SYNC, NULL).stages, 4);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm");
	TCase *c = tcase_create("gemm");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 0);
	tcase_add_test(c, random_shapes);
	tcase_add_test(c, every_rule);
	tcase_add_test(c, build_refuses);
	tcase_add_test(c, problems);
	tcase_add_test(c, options_of_other_kernels);
	tcase_add_test(c, the_default_fits);
	suite_add_tcase(s, c);
	return test_main("gemm", s);
}
