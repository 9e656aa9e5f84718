/* SPDX-License-Identifier: MIT */
/* Lists of problems in one launch, on a GPU that has the kernel, else on the emulator: each result must have the bytes that
 * a launch of its own gives. */
#include "gemm_draw.h"
#include "gemm_tests.h"

enum { MOST = 6, POISON = 0xff, GUARD = 256 };

typedef struct size {
	uint64_t m, n, k;
} size;

typedef struct list {
	cptx_gemm_opt o;
	size size[MOST];
} list;

static cptx_device *dev;

static uint64_t upload_bytes(const void *from, uint64_t bytes, cptx_error *err)
{
	uint64_t to = cptx_mem_alloc(dev, bytes ? bytes : 1, err);

	if (bytes)
		cptx_mem_write(dev, to, from, bytes, err);
	return to;
}

/* Numbers that no two of which are alike, as far as the type can, so that a swapped operand shows. */
static uint64_t upload(uint64_t n, enum cptx_type type, uint64_t seed, cptx_error *err)
{
	uint64_t bits = number_packed_bits(type), bytes = (n * bits + 7) / 8, s = seed * 0x9e3779b97f4a7c15u | 1;
	uint8_t *host = calloc(bytes + 1, 1);
	double scale = bits == 4 ? 4 : 1;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t word = number_bits(type, scale * ((double)(number_random(&s) >> 40) - 8388608) / 8388608);
		for (uint64_t b = 0; b < bits; b += 4)
			host[(i * bits + b) / 8] |= (uint8_t)((word >> b & 15) << (i * bits + b) % 8);
	}
	uint64_t to = upload_bytes(host, bytes, err);
	free(host);
	return to;
}

/* Factors from 1/2 to 4. */
static uint64_t upload_factors(uint64_t rows, uint64_t k, uint64_t seed, cptx_error *err)
{
	uint64_t bytes = cptx_gemm_scales_bytes(rows, k, 32), s = seed * 0x9e3779b97f4a7c15u | 1;
	uint8_t *host = malloc(bytes + 1);

	for (uint64_t i = 0; i < bytes; i++)
		host[i] = (uint8_t)(126 + below(&s, 4));
	uint64_t to = upload_bytes(host, bytes, err);
	free(host);
	return to;
}

static uint64_t bytes_of(const cptx_gemm_opt *o, const cptx_gemm_problem *p)
{
	return p->m * p->n * cptx_type_bits(o->out) / 8 + GUARD;
}

static cptx_program *load(const cptx_gemm_opt *o, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_build(m, o, err);
	cptx_program *p = cptx_device_load(dev, m, NULL, err);
	cptx_module_destroy(m);
	ck_assert_msg(p != NULL, "%s", err->text);
	return p;
}

static void run(cptx_launch *l, cptx_error *err)
{
	ck_assert_msg(l && cptx_launch_run(l, NULL, err) && cptx_device_synchronize(dev, err), "%s", err->text);
	cptx_launch_destroy(l);
}

static size_t prepare(const list *x, cptx_gemm_problem *p, cptx_error *err)
{
	size_t n = 0;

	for (; n < MOST && x->size[n].k; n++) {
		const size *s = &x->size[n];
		p[n] = (cptx_gemm_problem){ .m = s->m, .n = s->n, .k = s->k, .ctas = 5 };
		p[n].alpha = x->o.alpha ? 0.5f : 0, p[n].beta = x->o.beta ? 2.0f : 0;
		p[n].a = upload(s->m * s->k, x->o.a, 4 * n + 1, err), p[n].b = upload(s->n * s->k, x->o.b, 4 * n + 2, err);
		p[n].c = upload(s->m * s->n, x->o.out, 4 * n + 3, err), p[n].bias = upload(s->n, CPTX_F32, 4 * n + 4, err);
		if (x->o.scale) {
			p[n].scale_a = upload_factors(s->m, s->k, 4 * n + 5, err);
			p[n].scale_b = upload_factors(s->n, s->k, 4 * n + 6, err);
		}
		p[n].d = cptx_mem_alloc(dev, bytes_of(&x->o, &p[n]), err);
		cptx_mem_fill8(dev, p[n].d, POISON, bytes_of(&x->o, &p[n]), err);
	}
	ck_assert_msg(err->code == CPTX_OK, "%s", err->text);
	return n;
}

/* p, whose D has what the list gave, by a launch of its own. */
static void compare(const cptx_gemm_opt *o, const cptx_program *alone, cptx_gemm_problem p, size_t i, cptx_error *err)
{
	uint64_t bytes = bytes_of(o, &p), d = p.d;
	uint8_t *got = malloc(bytes), *want = malloc(bytes);

	p.d = cptx_mem_alloc(dev, bytes, err);
	cptx_mem_fill8(dev, p.d, POISON, bytes, err);
	if (p.m)
		run(cptx_gemm_launch(alone, dev, o, &p, err), err);
	cptx_mem_read(dev, got, d, bytes, err), cptx_mem_read(dev, want, p.d, bytes, err);
	for (uint64_t at = 0; at < bytes; at++)
		ck_assert_msg(got[at] == want[at], "problem %zu, %llux%llux%llu: byte %llu is 0x%02x, alone 0x%02x", i,
		              (unsigned long long)p.m, (unsigned long long)p.n, (unsigned long long)p.k, (unsigned long long)at,
		              got[at], want[at]);
	ck_assert_msg(!p.m || want[0] != POISON || want[1] != POISON, "nothing was computed");
	cptx_mem_free(dev, p.d);
	free(got), free(want);
}

#define TYPES(a_, b_) .mma = CPTX_GEMM_WGMMA, .a = CPTX_##a_, .b = CPTX_##b_
#define BF16 TYPES(BF16, BF16)

#define TCGEN05(kind_, t_) .mma = CPTX_GEMM_TCGEN05, .kind = CPTX_TCGEN05_##kind_, .a = CPTX_##t_, .b = CPTX_##t_

static const list lists[] = {
	{ { .bm = 128, .bn = 64, .stages = 3, BF16, .out = CPTX_BF16 },
	  { { 200, 136, 136 }, { 1, 72, 64 }, { 0, 72, 64 }, { 130, 200, 328 }, { 64, 8, 8 } } },
	{ { .bm = 64,
	    .bn = 24,
	    .stages = 4,
	    BF16,
	    .out = CPTX_F32,
	    .swap = true,
	    .per_sm = 2,
	    .alpha = true,
	    .beta = true,
	    .bias = true },
	  { { 50, 132, 200 }, { 7, 260, 64 }, { 80, 64, 520 } } },
	{ { .bm = 256, .bn = 88, .stages = 2, TYPES(E4M3, E5M2), .out = CPTX_F16, .cluster_m = 2, .bias = true },
	  { { 300, 96, 144 }, { 600, 200, 272 } } },
	{ { .bm = 128, .bn = 64, .stages = 3, BF16, .out = CPTX_F16, .a_m_major = true, .b_n_major = true, .cluster_n = 4 },
	  { { 136, 136, 77 }, { 8, 264, 200 }, { 264, 8, 64 } } },
	{ { .bm = 128, .bn = 64, .stages = 2, TCGEN05(F16, BF16), .out = CPTX_F32, .cluster_m = 2, .beta = true },
	  { { 300, 136, 136 }, { 1, 72, 64 }, { 0, 72, 64 }, { 64, 8, 8 } } },
	{ { .bm = 256, .bn = 64, .stages = 2, TCGEN05(F16, BF16), .out = CPTX_BF16, .bias = true, .alpha = true },
	  { { 257, 64, 72 }, { 0, 8, 8 }, { 130, 200, 200 } } },
	{ { .bm = 128, .bn = 192, .stages = 2, TCGEN05(MXF4, E2M1), .scale = CPTX_UE8M0, .out = CPTX_F32, .bias = true },
	  { { 130, 200, 320 }, { 40, 392, 96 }, { 8, 8, 544 } } },
};

START_TEST(gives_what_single_launches_give)
{
	const list *x = &lists[_i];
	cptx_gemm_opt grouped = x->o;
	cptx_gemm_problem p[MOST];
	cptx_error err = { 0 };

	dev = gemm_device(&x->o, x->o.mma == CPTX_GEMM_WGMMA ? "sm_90a" : _i % 2 ? "sm_103a" : "sm_100a", NULL);
	grouped.grouped = true;
	size_t n = prepare(x, p, &err);
	cptx_program *all = load(&grouped, &err), *alone = load(&x->o, &err);
	uint64_t table = cptx_mem_alloc(dev, n * CPTX_GEMM_GROUP_BYTES, &err);
	run(cptx_gemm_launch_grouped(all, dev, &grouped, p, n, table, &err), &err);
	for (size_t i = 0; i < n; i++) {
		compare(&x->o, alone, p[i], i, &err);
		cptx_mem_free(dev, p[i].a), cptx_mem_free(dev, p[i].b), cptx_mem_free(dev, p[i].c);
		cptx_mem_free(dev, p[i].d), cptx_mem_free(dev, p[i].bias);
		cptx_mem_free(dev, p[i].scale_a), cptx_mem_free(dev, p[i].scale_b);
	}
	cptx_mem_free(dev, table);
	cptx_program_destroy(all);
	cptx_program_destroy(alone);
	gemm_device_done(dev, "a list");
}
END_TEST

START_TEST(bad_calls_end_well)
{
	cptx_gemm_opt o = { .bm = 64, .bn = 16, .stages = 2, BF16, .out = CPTX_BF16, .grouped = true }, one = o;
	cptx_gemm_problem p[2] = { { .m = 8, .n = 8, .k = 8 }, { .m = 8, .n = 8, .k = 12 } };
	cptx_error err = { 0 };

	dev = gemm_device(&o, "sm_90a", NULL);
	one.grouped = false;
	cptx_program *program = load(&o, &err);
	p[0].a = p[0].b = p[0].d = p[1].a = p[1].b = p[1].d = cptx_mem_alloc(dev, 4096, &err);
	uint64_t table = cptx_mem_alloc(dev, 4096, &err);
#define REFUSED(call, want)                                                                                                 \
	do {                                                                                                                    \
		err = (cptx_error){ 0 };                                                                                            \
		ck_assert_ptr_null(call);                                                                                           \
		ck_assert_msg(strstr(err.text, want) != NULL, "%s", err.text);                                                      \
	} while (0)
	REFUSED(cptx_gemm_launch_grouped(program, dev, &o, p, 0, table, FRESH(&err)), "there are no problems");
	REFUSED(cptx_gemm_launch_grouped(program, dev, &o, p, 1, 0, FRESH(&err)), "the address of the table is 0");
	REFUSED(cptx_gemm_launch_grouped(program, dev, &o, p, 1, table + 64, FRESH(&err)), "no multiple of 128");
	REFUSED(cptx_gemm_launch_grouped(program, dev, &one, p, 1, table, FRESH(&err)), ".grouped makes it take a list");
	REFUSED(cptx_gemm_launch_grouped(program, dev, &o, p, 2, table, FRESH(&err)), "rows of A have 12 elements");
	REFUSED(cptx_gemm_launch(program, dev, &o, p, FRESH(&err)), "takes a list of problems");
	p[0].d = 0;
	REFUSED(cptx_gemm_launch_grouped(program, dev, &o, p, 1, table, FRESH(&err)), "the address of D is 0");
	o.stream_k = true;
	ck_assert(!cptx_gemm_check(&o, NULL, NULL, FRESH(&err)));
	ck_assert_msg(strstr(err.text, "a list of problems cannot be shared along K") != NULL, "%s", err.text);
	cptx_mem_free(dev, p[0].a);
	cptx_mem_free(dev, table);
	cptx_program_destroy(program);
	gemm_device_done(dev, "bad calls");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_group");
	TCase *c = tcase_create("c");

	tcase_add_loop_test(c, gives_what_single_launches_give, 0, sizeof lists / sizeof *lists);
	tcase_add_test(c, bad_calls_end_well);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return gemm_tests_main("gemm_group", s);
}
