/* SPDX-License-Identifier: MIT */
/* Pipelines over cp.async: by groups of all threads, and by mbarriers from producers to consumers. */
#include "../test.h"
#include "../verify/assemble.h"
#include "cli/ptxas.h"

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/emu.h>
#include <cptx/pipeline.h>

enum { THREADS = 64, WORDS = 4 * THREADS /* of a stage */, MOST_TURNS = 11 };

static cptx_error err;

#define RIGHT(what)                                                                                                         \
	do {                                                                                                                    \
		bool right_ = (what);                                                                                               \
		SURE(right_ &&err.code == CPTX_OK, "%s", err.text);                                                                 \
	} while (0)

/* A loop over k-tiles of WORDS words: thread `tid` of THREADS copies 16 bytes of each. */
typedef struct loop {
	cptx_kernel *k;
	cptx_val from, out, n, tid, data, to, sum;
	cptx_pipe p;
} loop;

static loop begin(cptx_module *m, uint32_t threads, const cptx_pipe_opt *o)
{
	loop l = { .k = cptx_kernel_begin(m, "pipe", .block = { threads }) };
	cptx_kernel *k = l.k;

	l.from = cptx_param(k, CPTX_PTR, "from"), l.out = cptx_param(k, CPTX_PTR, "out"), l.n = cptx_param(k, CPTX_U32, "n");
	l.data = cptx_var(k, CPTX_U32, cptx_shared_named(k, CPTX_B32, o->stages * WORDS, 16, "data"));
	l.tid = cptx_and(k, cptx_tid_x(k), THREADS - 1);
	l.to = cptx_mad(k, l.tid, 16, l.data, .mode = CPTX_LO);
	l.sum = cptx_var(k, CPTX_U32, 0);
	cptx_pipe_new_(k, CPTX_HERE, &l.p, o);
	cptx_pipe_init(k, &l.p, cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ));
	return l;
}

/* Tile i to the stage at `at`, where there is one. */
static void copy(const loop *l, const cptx_pipe_at *at, cptx_val i)
{
	cptx_kernel *k = l->k;
	cptx_val word = cptx_mad(k, i, WORDS, cptx_shl(k, l->tid, 2), .mode = CPTX_LO);
	cptx_val from = cptx_add(k, l->from, cptx_mul_wide(k, word, 4));

	cptx_cp_async(k, cptx_mad(k, at->stage, 4 * WORDS, l->to, .mode = CPTX_LO), from, 16, .cop = CPTX_CG,
	              .when = cptx_setp(k, i, l->n, .cmp = CPTX_LT));
}

/* Words that other threads have copied, with a weight for each turn. */
static void use(const loop *l, const cptx_pipe_at *at, cptx_val i)
{
	cptx_kernel *k = l->k;
	cptx_val mine = cptx_mad(k, cptx_xor(k, l->tid, THREADS - 1), 16, l->data, .mode = CPTX_LO);
	cptx_val v = cptx_ld(k, cptx_offset(cptx_mad(k, at->stage, 4 * WORDS, mine, .mode = CPTX_LO), 4), .space = CPTX_SHARED,
	                     .type = CPTX_U32);

	cptx_mad(k, cptx_add(k, i, 1), v, l->sum, .mode = CPTX_LO, .into = l->sum);
}

static void give(const loop *l)
{
	cptx_kernel *k = l->k;

	cptx_st(k, cptx_add(k, l->out, cptx_mul_wide(k, l->tid, 4)), l->sum, .space = CPTX_GLOBAL);
}

/* fills_first: the copies of a turn stand in front of its wait, one stage less ahead. */
static void build_groups(cptx_module *m, const cptx_pipe_opt *o, bool fills_first)
{
	loop l = begin(m, THREADS, o);
	cptx_kernel *k = l.k;
	cptx_pipe_at to = cptx_pipe_producer(k, &l.p), at = cptx_pipe_consumer(k, &l.p);
	uint32_t in_front = l.p.opt.ahead - fills_first;
	cptx_val i = cptx_var(k, CPTX_U32, 0);

	for (uint32_t s = 0; s < in_front; s++) {
		copy(&l, &to, cptx_var(k, CPTX_U32, s));
		cptx_pipe_filled(k, &l.p, &to);
		cptx_pipe_next(k, &l.p, &to);
	}
	CPTX_FOR(k, i, l.n, 1) {
		if (!fills_first)
			cptx_pipe_wait_full(k, &l.p, &at);
		cptx_pipe_wait_empty(k, &l.p, &to);
		cptx_pipe_expect(k, &l.p, &to, 4 * WORDS);
		copy(&l, &to, cptx_add(k, i, in_front));
		cptx_pipe_copied(k, &l.p, &to);
		if (fills_first)
			cptx_pipe_wait_full(k, &l.p, &at);
		use(&l, &at, i);
		cptx_pipe_release(k, &l.p, &at, CPTX_NONE_);
		cptx_pipe_next(k, &l.p, &to);
		cptx_pipe_next(k, &l.p, &at);
	}
	cptx_pipe_drain(k, &l.p, &to);
	cptx_st(k, l.to, 0, .space = CPTX_SHARED, .type = CPTX_U32); /* the stages are free */
	give(&l);
}

/* All turns of the other half: stages are released in the turn after, in front of the wait. */
static void use_and_leave(const loop *l, cptx_val i)
{
	cptx_kernel *k = l->k;
	cptx_pipe_at at = cptx_pipe_consumer(k, &l->p);
	cptx_pipe_left left = cptx_pipe_left_none(k, &l->p, &at);
	const cptx_val all = cptx_setp(k, cptx_tid_x(k), THREADS, .cmp = CPTX_GE);

	CPTX_FOR(k, i, l->n, 1) {
		cptx_pipe_release(k, &l->p, &left.at, left.when);
		cptx_pipe_wait_full(k, &l->p, &at);
		use(l, &at, i);
		cptx_pipe_leave(k, &l->p, &left, &at, all);
		cptx_pipe_next(k, &l->p, &at);
	}
	cptx_pipe_release(k, &l->p, &left.at, left.when); /* for the producer's drain */
}

/* The first half of the threads copies, the other one uses. */
static void build_mbarriers(cptx_module *m, const cptx_pipe_opt *o, bool later)
{
	loop l = begin(m, 2 * THREADS, o);
	cptx_kernel *k = l.k;
	cptx_val i = cptx_var(k, CPTX_U32, 0);

	CPTX_IF(k, cptx_setp(k, cptx_tid_x(k), THREADS, .cmp = CPTX_LT)) {
		cptx_pipe_at at = cptx_pipe_producer(k, &l.p);
		CPTX_FOR(k, i, l.n, 1) {
			cptx_pipe_wait_empty(k, &l.p, &at);
			cptx_pipe_expect(k, &l.p, &at, 4 * WORDS);
			copy(&l, &at, i);
			cptx_pipe_copied(k, &l.p, &at);
			cptx_pipe_next(k, &l.p, &at);
		}
		cptx_pipe_drain(k, &l.p, &at);
	}
	CPTX_ELSE(k) {
		if (later) {
			use_and_leave(&l, i);
		} else {
			cptx_pipe_at at = cptx_pipe_consumer(k, &l.p);
			CPTX_FOR(k, i, l.n, 1) {
				cptx_pipe_wait_full(k, &l.p, &at);
				use(&l, &at, i);
				cptx_pipe_release(k, &l.p, &at, CPTX_NONE_);
				cptx_pipe_next(k, &l.p, &at);
			}
		}
		give(&l);
	}
}

static void run(cptx_module *m, const char *target, uint64_t seed)
{
	static uint32_t from[MOST_TURNS * WORDS], out[THREADS];

	err = (cptx_error){ .code = CPTX_OK };
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	cptx_device *dev =
		cptx_emu_open(target, &(cptx_emu_opt){ .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3) }, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	for (uint32_t i = 0; i < MOST_TURNS * WORDS; i++)
		from[i] = i * 2654435761u;
	uint64_t a = cptx_mem_alloc(dev, sizeof from, &err), b = cptx_mem_alloc(dev, sizeof out, &err);
	RIGHT(p && cptx_mem_write(dev, a, from, sizeof from, &err));
	for (uint32_t n = 0; n <= MOST_TURNS; n += n < 5 ? 1 : 3) {
		RIGHT(cptx_launch_once(p, NULL, CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(a, b, n)), NULL, &err));
		RIGHT(cptx_mem_read(dev, out, b, sizeof out, &err));
		for (uint32_t t = 0; t < THREADS; t++) {
			uint32_t right = 0;
			for (uint32_t i = 0; i < n; i++)
				right += (i + 1) * from[i * WORDS + 4 * (t ^ (THREADS - 1)) + 1];
			SURE(out[t] == right, "%s, %u turns, thread %u: %u, not %u", target, n, t, out[t], right);
		}
	}
	cptx_program_destroy(p);
	cptx_mem_free(dev, a);
	cptx_mem_free(dev, b);
	cptx_device_close(dev);
	cptx_module_destroy(m);
}

START_TEST(in_groups)
{
	static const char *const targets[] = { "sm_80", "sm_90a", "sm_120a" };
	uint64_t seed = 0;

	for (uint32_t stages = 2; stages <= 5; stages++)
		for (uint32_t ahead = 0; ahead < stages; ahead++)
			for (int first = 0; first < (ahead > 0 ? 2 : 1); first++, seed++) {
				cptx_pipe_opt o = { .stages = stages, .by = CPTX_PIPE_CP_ASYNC_GROUPS, .ahead = ahead };
				if (seed & 1)
					o.threads = THREADS, o.named = 3;
				cptx_module *m = cptx_module_new(NULL);
				build_groups(m, &o, first);
				run(m, targets[seed % 3], seed);
			}
}
END_TEST

START_TEST(by_mbarriers)
{
	for (uint32_t i = 0; i < 12; i++) {
		const bool sleeps = i >= 6;
		cptx_module *m = cptx_module_new(NULL);
		build_mbarriers(m,
		                &(cptx_pipe_opt){ .stages = 1 + i % 4,
		                                  .producers = THREADS,
		                                  .consumers = THREADS,
		                                  .by = CPTX_PIPE_CP_ASYNC,
		                                  .sleeps = sleeps },
		                i % 3 == 1);
		run(m, sleeps ? "sm_90a" : "sm_80", i);
	}
}
END_TEST

/* Without the groups of the tail, the last turns wait for too little, which the emulator finds. */
START_TEST(tail_rule)
{
	bool found = false;

	for (uint32_t seed = 0; seed < 8 && !found; seed++) {
		cptx_module *m = cptx_module_new(NULL);
		loop l = begin(m, THREADS, &(cptx_pipe_opt){ .stages = 3, .by = CPTX_PIPE_CP_ASYNC_GROUPS });
		cptx_kernel *k = l.k;
		cptx_pipe_at to = cptx_pipe_producer(k, &l.p), at = cptx_pipe_consumer(k, &l.p);
		for (uint32_t s = 0; s < 2; s++) {
			copy(&l, &to, cptx_var(k, CPTX_U32, s));
			cptx_pipe_filled(k, &l.p, &to);
			cptx_pipe_next(k, &l.p, &to);
		}
		for (uint32_t s = 0; s < 2; s++) { /* nothing is filled */
			cptx_pipe_wait_full(k, &l.p, &at);
			use(&l, &at, cptx_var(k, CPTX_U32, s));
			cptx_pipe_next(k, &l.p, &at);
		}
		give(&l);
		err = (cptx_error){ .code = CPTX_OK };
		cptx_device *dev =
			cptx_emu_open("sm_80", &(cptx_emu_opt){ .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3) }, &err);
		cptx_program *p = cptx_device_load(dev, m, NULL, &err);
		uint64_t a = cptx_mem_alloc(dev, 2 * 4 * WORDS, &err), b = cptx_mem_alloc(dev, 4 * THREADS, &err);
		RIGHT(p && cptx_mem_fill8(dev, a, 1, 2 * 4 * WORDS, &err));
		found = !cptx_launch_once(p, NULL, CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(a, b, 2u)), NULL, &err);
		err = (cptx_error){ .code = CPTX_OK };
		cptx_program_destroy(p);
		cptx_device_close(dev);
		cptx_module_destroy(m);
	}
	ck_assert(found);
}
END_TEST

static void wrong(cptx_pipe_opt o, bool asks, const char *words)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_pipe p;

	cptx_pipe_new_(k, CPTX_HERE, &p, &o);
	if (asks) {
		cptx_pipe_at at = cptx_pipe_consumer(k, &p);
		cptx_pipe_is_full(k, &at);
	}
	SURE(cptx_module_error(m) && strstr(cptx_module_error(m)->text, words), "%s\nlacks: %s",
	     cptx_module_error(m) ? cptx_module_error(m)->text : "no error", words);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "test_pipeline.c:"));
	cptx_module_destroy(m);
}

START_TEST(errors)
{
	const enum cptx_pipe_by by_groups = CPTX_PIPE_CP_ASYNC_GROUPS;

	wrong((cptx_pipe_opt){ .stages = 2, .by = (enum cptx_pipe_by)7 }, false, "a pipeline with .by = 7");
	wrong((cptx_pipe_opt){ .stages = 1, .by = by_groups }, false, "with 1 stage; it has 2 to 64");
	wrong((cptx_pipe_opt){ .stages = 3, .by = by_groups, .ahead = 3 }, false, "filled 3 ahead; 1 to 2");
	wrong((cptx_pipe_opt){ .stages = 3, .by = by_groups, .threads = 40 }, false, "40 threads");
	wrong((cptx_pipe_opt){ .stages = 3, .by = by_groups, .named = 16 }, false, "barriers 0 to 15");
	wrong((cptx_pipe_opt){ .stages = 3, .by = CPTX_PIPE_CP_ASYNC, .multicast = 2 }, false,
	      "cp.async fills its own CTA alone");
	wrong((cptx_pipe_opt){ .stages = 3, .by = by_groups }, true, "which can be waited for only");
	wrong((cptx_pipe_opt){ .stages = 3, .by = by_groups, .consumers = 2 }, false, "over groups of cp.async with .consumers");
	wrong((cptx_pipe_opt){ .stages = 3, .by = by_groups, .producers = 2 }, false, "over groups of cp.async with .producers");
	wrong((cptx_pipe_opt){ .stages = 3, .cta_release = true }, false, "with .cta_release; that is for consumers of several");
}
END_TEST

static void cannot_skip(const cptx_pipe_opt *o, uint32_t n, const char *words)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_pipe p;

	cptx_pipe_new_(k, CPTX_HERE, &p, o);
	cptx_pipe_at at = cptx_pipe_consumer(k, &p);
	cptx_pipe_skip(k, &p, &at, 2);
	const bool early = cptx_module_error(m) != NULL;
	cptx_pipe_skip(k, &p, &at, n);
	SURE(early == (n == 2) && cptx_module_error(m) && strstr(cptx_module_error(m)->text, words), "%s\nlacks: %s",
	     cptx_module_error(m) ? cptx_module_error(m)->text : "no error", words);
	cptx_module_destroy(m);
}

START_TEST(skips_divide_the_stages)
{
	cannot_skip(&(cptx_pipe_opt){ .stages = 8 }, 3, "3 stages of 8 are skipped; it is a divisor");
	cannot_skip(&(cptx_pipe_opt){ .stages = 8 }, 0, "0 stages of 8 are skipped; it is a divisor");
	cannot_skip(&(cptx_pipe_opt){ .stages = 4, .by = CPTX_PIPE_CP_ASYNC_GROUPS }, 2,
	            "2 stages of 4 are skipped of groups of cp.async");
}
END_TEST

/* The places of one pipeline are not those of another, also without barriers. */
START_TEST(places_of_groups)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_pipe first, second;

	cptx_pipe_new(k, &first, .stages = 3, .by = CPTX_PIPE_CP_ASYNC_GROUPS, .threads = 64);
	cptx_pipe_new(k, &second, .stages = 3, .by = CPTX_PIPE_CP_ASYNC_GROUPS, .threads = 64);
	cptx_pipe_at at = cptx_pipe_consumer(k, &first);
	cptx_pipe_next(k, &first, &at);
	ck_assert_ptr_null(cptx_module_error(m));
	cptx_pipe_next(k, &second, &at);
	ck_assert(cptx_module_error(m) && strstr(cptx_module_error(m)->text, "a place in another pipeline"));
	cptx_module_destroy(m);
}
END_TEST

START_TEST(ptxas_accepts)
{
	static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };
	char path[4096];

	if (!ptxas_find(path, sizeof path)) {
		skip("ptxas, to judge the pipelines");
		return;
	}
	for (uint32_t i = 0; i < 8; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_error e = { .code = CPTX_OK };
		cptx_pipe_opt o = { .stages = 4, .sleeps = i > 4 };
		o.by = i < 4 ? CPTX_PIPE_CP_ASYNC_GROUPS : CPTX_PIPE_CP_ASYNC;
		o.producers = o.consumers = i < 4 ? 0 : THREADS;
		if (i < 4)
			build_groups(m, &o, false);
		else
			build_mbarriers(m, &o, false);
		cptx_ptx *ptx = cptx_emit(m, targets[i % 4], NULL, &e);
		SURE(ptx != NULL, "%s", e.text);
		assembly job = { .target = targets[i % 4], .ptx = cptx_ptx_text(ptx) };
		assemble(&job, 1);
		SURE(!job.status, "%s: %s", targets[i % 4], job.said);
		assemble_free(&job, 1);
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "pipeline");

	tcase_add_test(c, in_groups);
	tcase_add_test(c, by_mbarriers);
	tcase_add_test(c, tail_rule);
	tcase_add_test(c, errors);
	tcase_add_test(c, places_of_groups);
	tcase_add_test(c, skips_divide_the_stages);
	tcase_add_test(c, ptxas_accepts);
	return test_main("kit pipeline", s);
}
