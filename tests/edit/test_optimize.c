/* SPDX-License-Identifier: MIT */
/* The optimizing pass: what it does to small bodies, and that random kernels compute the same behind it, built and read from
 * text, on the emulator. */
#include "../emu/trial.h"
#include <cptx/cptx.h>
#include <cptx/optimize.h>

#include <stdint.h>

/* ---- small bodies ---- */

/* The body of a kernel behind its registers and the load of its parameter, after the pass; to be freed. */
static char *optimized(cptx_module *m, cptx_optimized *done)
{
	cptx_error err = { .code = CPTX_OK };

	ck_assert_msg(cptx_optimize(m, NULL, done, &err), "%s", err.text);
	cptx_ptx *p = cptx_emit(m, "sm_80", NULL, &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	const char *body = strstr(cptx_ptx_text(p), "cvta");
	ck_assert_ptr_nonnull(body);
	char *text = strdup(strchr(body, '\n') + 1);
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	return text;
}

static cptx_kernel *begin(cptx_module **m, cptx_val *p)
{
	*m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(*m, "k", .block = { 32 });
	*p = cptx_param(k, CPTX_PTR, "p");
	return k;
}

START_TEST(what_was_computed_is_read)
{
	cptx_optimized done;
	cptx_module *m;
	cptx_val p;
	cptx_kernel *k = begin(&m, &p);
	cptx_val a = cptx_ld(k, p, .type = CPTX_U32), b = cptx_add(k, a, 5), c = cptx_add(k, a, 5);
	cptx_val d = cptx_mov(k, c), e = cptx_mul(k, d, b, .mode = CPTX_LO), unread = cptx_xor(k, e, a);

	(void)cptx_not(k, unread);
	cptx_st(k, p, e);
	char *text = optimized(m, &done);
	ck_assert_str_eq(text, "\tld.u32 %r1, [%rd1];\n\tadd.u32 %r2, %r1, 5;\n\tmul.lo.u32 %r5, %r2, %r2;\n"
	                       "\tst.u32 [%rd1], %r5;\n\tret;\n}\n");
	ck_assert_uint_eq(done.common, 1);
	ck_assert_uint_eq(done.copies, 1);
	ck_assert_uint_eq(done.dead, 4);
	free(text);
}
END_TEST

START_TEST(constants_and_addresses_are_folded)
{
	cptx_optimized done;
	cptx_module *m;
	cptx_val p;
	cptx_kernel *k = begin(&m, &p);
	cptx_val four = cptx_mov(k, 4, .type = CPTX_U32), n = cptx_shl(k, four, 3, .type = CPTX_B32);
	cptx_val q = cptx_add(k, p, 64), a = cptx_ld(k, cptx_offset(q, 8), .type = CPTX_U32);

	cptx_st(k, q, cptx_add(k, a, n, .type = CPTX_U32));
	char *text = optimized(m, &done);
	ck_assert_str_eq(text, "\tld.u32 %r3, [%rd1+72];\n\tadd.u32 %r4, %r3, 32;\n\tst.u32 [%rd1+64], %r4;\n\tret;\n}\n");
	ck_assert_uint_eq(done.addresses, 2);
	ck_assert_uint_eq(done.dead, 3);
	free(text);
}
END_TEST

/* A value of one arm is no value of the other, nor of what follows; one of in front is. */
START_TEST(only_what_dominates_is_read)
{
	cptx_optimized done;
	cptx_module *m;
	cptx_val p;
	cptx_kernel *k = begin(&m, &p);
	cptx_val a = cptx_ld(k, p, .type = CPTX_U32), front = cptx_add(k, a, 1), is = cptx_setp(k, a, 7, .cmp = CPTX_LT);

	CPTX_IF(k, is)
		cptx_st(k, p, cptx_mul(k, a, cptx_add(k, a, 1), .mode = CPTX_LO));
	CPTX_ELSE(k)
		cptx_st(k, p, cptx_mul(k, a, front, .mode = CPTX_LO));
	cptx_st(k, p, cptx_mul(k, a, front, .mode = CPTX_LO));
	char *text = optimized(m, &done);
	unsigned products = 0, sums = 0;
	for (const char *s = text; (s = strstr(s, "mul.lo")); s++)
		products++;
	for (const char *s = text; (s = strstr(s, "add.u32")); s++)
		sums++;
	ck_assert_uint_eq(products, 3);
	ck_assert_uint_eq(sums, 1);
	free(text);
}
END_TEST

START_TEST(what_is_off_is_not_done)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_optimized done;
	cptx_module *m;
	cptx_val p;
	cptx_kernel *k = begin(&m, &p);
	cptx_val a = cptx_ld(k, p, .type = CPTX_U32);

	cptx_st(k, cptx_add(k, p, 4), cptx_add(k, cptx_mov(k, a), cptx_add(k, a, cptx_mov(k, 3, .type = CPTX_U32))));
	cptx_st(k, cptx_add(k, p, 4), a);
	ck_assert(cptx_optimize(m,
	                        CPTX_OPT(cptx_optimize_opt, .keep_copies = true, .keep_constants = true, .keep_common = true,
	                                 .keep_addresses = true, .keep_dead = true),
	                        &done, &err));
	ck_assert_uint_eq(done.copies + done.constants + done.common + done.addresses + done.dead, 0);
	ck_assert(cptx_module_freeze(m));
	ck_assert(!cptx_optimize(m, NULL, &done, &err));
	ck_assert_int_eq(err.code, CPTX_E_STATE);
	cptx_module_destroy(m);
	ck_assert(!cptx_optimize(NULL, NULL, NULL, FRESH(&err)));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
}
END_TEST

/* ---- bodies of text ---- */

#define KERNEL_HEAD                                                                                                         \
	".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\t.reg .b32 %r<8>;\n"              \
	"\t.reg .b64 %rd<8>;\n\t.reg .pred %p;\n\tld.param.u64 %rd1, [p];\n"

/* The body behind its first line, in which the parameter is loaded, after the pass; to be freed. */
static char *optimized_text(const char *body, bool keep)
{
	char text[2000];
	cptx_error err = { .code = CPTX_OK };

	snprintf(text, sizeof text, "%s%s\tret;\n}\n", KERNEL_HEAD, body);
	cptx_module *m = cptx_parse(text, strlen(text), CPTX_OPT(cptx_parse_opt, .keep = keep));
	ck_assert_msg(cptx_optimize(m, NULL, NULL, &err), "%s", err.text);
	cptx_ptx *p = cptx_emit(m, "sm_80", CPTX_OPT(cptx_emit_opt, .keep = keep), &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	char *found = strdup(strstr(cptx_ptx_text(p), "[p];") + 5);
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	return found;
}

/* A register may be written again in front of all labels; an address that was computed from it before keeps the old value.
 */
START_TEST(a_base_that_is_written_again_stays)
{
	static const char *const body[] = {
		"\tadd.s64 %rd2, %rd1, 8;\n\tadd.s64 %rd1, %rd1, 64;\n\tld.global.u32 %r1, [%rd2];\n\tst.global.u32 [%rd1], %r1;\n",
		/* the base of the turn before */
		"\tmov.b64 %rd3, %rd1;\nL:\n\tadd.s64 %rd2, %rd3, 8;\n\tld.global.u64 %rd3, [%rd1];\n\tld.global.u32 %r1, [%rd2];\n"
		"\tst.global.u32 [%rd3], %r1;\n\tsetp.eq.u32 %p, %r1, 3;\n\t@%p bra L;\n",
	};
	for (int i = 0; i < 4; i++) {
		char *text = optimized_text(body[i / 2], i % 2);
		ck_assert_msg(strstr(text, "ld.global.u32 %r1, [%rd2];") != NULL, "%s", text);
		free(text);
	}
}
END_TEST

/* A register that is declared inside { } is not read behind the }. */
START_TEST(a_scope_is_not_left)
{
	static const char *const body[] = {
		"\tld.global.u32 %r1, [%rd1];\n{\n\t.reg .b32 %t;\n\tadd.s32 %t, %r1, 5;\n\tmov.b32 %r2, %t;\n}\n"
		"\tst.global.b32 [%rd1], %r2;\n",
		"\tld.global.u32 %r1, [%rd1];\n{\n\t.reg .b32 %t;\n\tadd.s32 %t, %r1, 5;\n\tst.global.b32 [%rd1+4], %t;\n}\n"
		"\tadd.s32 %r2, %r1, 5;\n\tst.global.b32 [%rd1], %r2;\n",
		"{\n\t.reg .b64 %t;\n\tld.global.u64 %t, [%rd1];\n\tadd.s64 %rd2, %t, 8;\n}\n\tst.global.b32 [%rd2], 7;\n",
	};
	static const char *const stays[] = { "[%rd1], %r2;", "[%rd1], %r2;", "[%rd2], 7;" };

	for (int i = 0; i < 6; i++) {
		char *text = optimized_text(body[i / 2], i % 2);
		ck_assert_msg(strstr(text, stays[i / 2]) != NULL, "%s", text);
		free(text);
	}
	char *text = optimized_text("{\n\t.reg .b64 %t;\n\tadd.s64 %t, %rd1, 8;\n\tst.global.b32 [%t], 7;\n}\n", false);
	ck_assert_msg(strstr(text, "[%rd1+8], 7;") != NULL, "%s", text); /* of what is around it, as before */
	free(text);
}
END_TEST

/* ---- random kernels ---- */

enum { THREADS = 32, SLOTS = 24, POOL = 48 };

typedef struct maker {
	cptx_kernel *k;
	cptx_val p;
	cptx_val u32[POOL], u64[POOL], f32[POOL], pred[POOL];
	unsigned nu32, nu64, nf32, npred, depth;
	uint64_t dice;
} maker;

static unsigned roll(maker *g, unsigned n)
{
	g->dice = g->dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(g->dice >> 33) % n;
}

#define ANY(g, pool) ((g)->pool[roll((g), (g)->n##pool)])
#define KEEP(g, pool, v)                                                                                                    \
	do {                                                                                                                    \
		cptx_val new_ = (v);                                                                                                \
		(g)->pool[(g)->n##pool < POOL ? (g)->n##pool++ : roll((g), POOL)] = new_;                                           \
	} while (0)

/* A register that is written twice, and a value of each. */
static void add_twice(maker *g)
{
	cptx_val twice = cptx_add(g->k, ANY(g, u32), ANY(g, u32), .type = CPTX_U32);

	KEEP(g, u32, cptx_add(g->k, twice, (int)roll(g, 5), .type = CPTX_U32));
	KEEP(g, u32, cptx_mov(g->k, twice, .type = CPTX_U32));
	cptx_xor(g->k, twice, ANY(g, u32), .into = twice, .type = CPTX_B32);
	KEEP(g, u32, twice);
}

static void add_number(maker *g)
{
	cptx_kernel *k = g->k;
	cptx_val a = ANY(g, u32), b = ANY(g, u32), c = ANY(g, u32);
	int n = (int)roll(g, 5);

	switch (roll(g, 17)) {
	case 0: KEEP(g, u32, cptx_add(k, a, b, .type = CPTX_U32)); break;
	case 1: KEEP(g, u32, cptx_add(k, a, n, .type = CPTX_S32)); break;
	case 2: KEEP(g, u32, cptx_sub(k, a, b, .type = CPTX_U32)); break;
	case 3: KEEP(g, u32, cptx_mul(k, a, b, .mode = CPTX_LO, .type = CPTX_U32)); break;
	case 4: KEEP(g, u32, cptx_mad(k, a, b, c, .mode = CPTX_HI, .type = CPTX_S32)); break;
	case 5: KEEP(g, u32, cptx_and(k, a, b, .type = CPTX_B32)); break;
	case 6: KEEP(g, u32, cptx_shl(k, a, n * 9, .type = CPTX_B32)); break;
	case 7: KEEP(g, u32, cptx_shr(k, a, n * 9, .type = CPTX_S32)); break;
	case 8: KEEP(g, u32, cptx_mov(k, n * 1000003 - 7, .type = CPTX_S32)); break;
	case 9: KEEP(g, u32, cptx_mov(k, a, .type = CPTX_U32)); break;
	case 10: KEEP(g, u32, cptx_selp(k, a, b, ANY(g, pred), .type = CPTX_B32)); break;
	case 11: KEEP(g, u32, cptx_min(k, a, b, .type = CPTX_S32)); break;
	case 12: KEEP(g, u32, cptx_cvt(k, ANY(g, u64), .dtype = CPTX_U32, .atype = CPTX_U64)); break;
	case 13: KEEP(g, u32, cptx_not(k, a, .type = CPTX_B32)); break;
	case 14: KEEP(g, u32, cptx_shr(k, a, b, .type = CPTX_U32)); break;
	case 15: add_twice(g); break;
	default: KEEP(g, pred, cptx_setp(k, a, roll(g, 2) ? b : cptx_imm(n), .cmp = CPTX_LT, .type = CPTX_S32)); break;
	}
}

static void add_other(maker *g)
{
	cptx_kernel *k = g->k;
	cptx_val a = ANY(g, f32), b = ANY(g, f32), w = ANY(g, u64);

	switch (roll(g, 8)) {
	case 0: KEEP(g, f32, cptx_add(k, a, b)); break;
	case 1: KEEP(g, f32, cptx_fma(k, a, b, ANY(g, f32), .rnd = CPTX_RN)); break;
	case 2: KEEP(g, f32, cptx_cvt(k, ANY(g, u32), .dtype = CPTX_F32, .atype = CPTX_S32, .rnd = CPTX_RN)); break;
	case 3: KEEP(g, u64, cptx_mul_wide(k, ANY(g, u32), ANY(g, u32), .type = CPTX_S32)); break;
	case 4: KEEP(g, u64, cptx_add(k, w, roll(g, 2) ? cptx_imm(roll(g, 9)) : ANY(g, u64), .type = CPTX_U64)); break;
	case 5: KEEP(g, u64, cptx_mov(k, w, .type = CPTX_U64)); break;
	case 6: KEEP(g, pred, cptx_setp(k, a, b, .cmp = CPTX_GT)); break;
	default: KEEP(g, f32, cptx_mul(k, a, 0.5f)); break;
	}
}

static int64_t some_slots(maker *g) { return (int64_t)(roll(g, SLOTS / 3) * THREADS * 4); }

/* An address in the thread's own slots; its base may be written again in front of the access. */
static cptx_val address(maker *g)
{
	cptx_val base = cptx_add(g->k, g->p, cptx_imm(some_slots(g)), .type = CPTX_U64);
	cptx_val at = cptx_add(g->k, base, cptx_imm(some_slots(g)), .type = CPTX_U64);

	if (roll(g, 2))
		cptx_add(g->k, g->p, cptx_imm(some_slots(g)), .into = base, .type = CPTX_U64);
	return cptx_offset(at, some_slots(g));
}

static void add_memory(maker *g)
{
	switch (roll(g, 4)) {
	case 0: KEEP(g, u32, cptx_ld(g->k, address(g), .type = CPTX_U32)); break;
	case 1: cptx_st(g->k, address(g), ANY(g, f32), .type = CPTX_F32); break;
	case 2: cptx_st(g->k, address(g), ANY(g, u32), .type = CPTX_U32, .when = ANY(g, pred)); break;
	default: cptx_st(g->k, address(g), ANY(g, u32), .type = CPTX_U32); break;
	}
}

static void add_some(maker *g, unsigned n);

/* Blocks: what was made inside is forgotten behind, since it was not made on every way. */
static void add_block(maker *g)
{
	maker before = *g;
	cptx_kernel *k = g->k;
	cptx_val sum = cptx_var(k, CPTX_U32, ANY(g, u32)), i = cptx_var(k, CPTX_U32, 0);

	if (roll(g, 2)) {
		CPTX_IF(k, ANY(g, pred)) {
			add_some(g, 12);
			cptx_add(k, sum, ANY(g, u32), .into = sum, .type = CPTX_U32);
		}
		g->nu32 = before.nu32, g->nu64 = before.nu64, g->nf32 = before.nf32, g->npred = before.npred;
		memcpy(g->u32, before.u32, sizeof g->u32), memcpy(g->u64, before.u64, sizeof g->u64);
		memcpy(g->f32, before.f32, sizeof g->f32), memcpy(g->pred, before.pred, sizeof g->pred);
		CPTX_ELSE(k)
			add_some(g, 6);
	} else {
		CPTX_FOR(k, i, 3, 1) {
			KEEP(g, u32, i);
			KEEP(g, u32, sum);
			add_some(g, 12);
			cptx_add(k, sum, ANY(g, u32), .into = sum, .type = CPTX_U32);
		}
	}
	before.dice = g->dice;
	*g = before;
	KEEP(g, u32, sum);
}

static void add_some(maker *g, unsigned n)
{
	g->depth++;
	for (unsigned i = 0; i < n; i++)
		switch (roll(g, 16)) {
		case 0:
		case 1:
		case 2: add_memory(g); break;
		case 3:
			if (g->depth < 4) {
				add_block(g);
				break;
			}
			add_number(g);
			break;
		case 4:
		case 5:
		case 6:
		case 7: add_other(g); break;
		default: add_number(g);
		}
	g->depth--;
}

static cptx_module *random_module(unsigned seed)
{
	cptx_module *m = cptx_module_new(NULL);
	maker g = { .dice = seed * 2654435761u + 1 };

	g.k = cptx_kernel_begin(m, "k", .block = { THREADS });
	cptx_val p = cptx_param(g.k, CPTX_PTR, "p"), tid = cptx_tid_x(g.k);
	g.p = cptx_add(g.k, p, cptx_mul_wide(g.k, tid, 4));
	KEEP(&g, u32, tid);
	KEEP(&g, u32, cptx_ld(g.k, g.p, .type = CPTX_U32));
	KEEP(&g, u64, cptx_mul_wide(g.k, tid, tid));
	KEEP(&g, f32, cptx_cvt(g.k, tid, .dtype = CPTX_F32, .rnd = CPTX_RN));
	KEEP(&g, pred, cptx_setp(g.k, tid, 9, .cmp = CPTX_GT));
	add_some(&g, 60);
	for (unsigned i = 0; i < g.nu32; i++)
		cptx_st(g.k, cptx_offset(g.p, (int64_t)(i % SLOTS) * THREADS * 4), g.u32[i], .type = CPTX_U32);
	return m;
}

static char *text_of(cptx_module *m, bool keep)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *p = cptx_emit(m, "sm_80", CPTX_OPT(cptx_emit_opt, .keep = keep), &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	char *text = strdup(cptx_ptx_text(p));

	cptx_ptx_destroy(p);
	return text;
}

/* Runs a text on the emulator; fills in what it leaves. */
static void run(const char *text, uint32_t *data, unsigned seed)
{
	for (unsigned i = 0; i < SLOTS * THREADS; i++)
		data[i] = (i * 2654435761u) ^ seed;
	trial t = { .target = "sm_80", .text = text, .data = data, .size = SLOTS * THREADS * sizeof *data };
	trial_run(&t);
	ck_assert_msg(t.ok, "seed %u: %s\n%s\n%s", seed, t.err.text, t.message, text);
}

static size_t all_done;

/* Optimizes a module, which ends, and compares what its text does with `expected`. */
static void compare(cptx_module *m, bool keep, const uint32_t *expected, unsigned seed)
{
	uint32_t data[SLOTS * THREADS];
	cptx_error err = { .code = CPTX_OK };
	cptx_optimized done;

	ck_assert_msg(cptx_optimize(m, NULL, &done, &err), "%s", err.text);
	all_done += done.copies + done.constants + done.common + done.addresses + done.dead;
	char *text = text_of(m, keep);
	run(text, data, seed);
	if (memcmp(data, expected, sizeof data))
		fputs(text, stderr); /* which is longer than Check's messages may be */
	for (unsigned i = 0; i < SLOTS * THREADS; i++)
		ck_assert_msg(data[i] == expected[i], "seed %u: word %u of thread %u: %#x for %#x", seed, i / THREADS, i % THREADS,
		              data[i], expected[i]);
	free(text);
	cptx_module_destroy(m);
}

START_TEST(random_kernels_compute_the_same)
{
	unsigned seeds = getenv("CPTX_WHOLE") ? 3000 : 25;

	for (unsigned seed = 1; seed <= seeds; seed++) {
		uint32_t expected[SLOTS * THREADS];
		cptx_module *m = random_module(seed);
		char *text = text_of(m, false);
		run(text, expected, seed);
		cptx_module_destroy(m);
		compare(random_module(seed), false, expected, seed);
		compare(cptx_parse(text, strlen(text), NULL), false, expected, seed);
		compare(cptx_parse(text, strlen(text), CPTX_OPT(cptx_parse_opt, .keep = true)), true, expected, seed);
		free(text);
	}
	ck_assert_uint_gt(all_done, 10 * seeds);
}
END_TEST

TRIAL_MAIN("optimize", what_was_computed_is_read, constants_and_addresses_are_folded, only_what_dominates_is_read,
           what_is_off_is_not_done, a_base_that_is_written_again_stays, a_scope_is_not_left, random_kernels_compute_the_same)
