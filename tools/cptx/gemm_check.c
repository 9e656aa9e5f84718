#include "gemm_check.h"
#include "number.h"

#include <cptx/emu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 4096 /* poisoned bytes behind D, which must stay */, POISON = 0xff /* NaN in every type */ };

/* ---- the reference: one thread an element, f64 sums of f32 operands, no shared memory and no tensor cores ---- */

/* Four elements of a column of B: neighbours, or one in each row. */
static void read_column(cptx_kernel *k, const gemm_subject *s, cptx_val b, cptx_val pitch, cptx_val v[4])
{
	cptx_val y = { 0 };

	if (!s->b_rows)
		y = cptx_ld(k, b, .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_F32);
	for (uint32_t i = 0; i < 4; i++) {
		cptx_val f = s->b_rows ? cptx_ld(k, b, .space = CPTX_GLOBAL, .type = CPTX_F32) : cptx_elem(y, i);
		v[i] = cptx_cvt(k, f, .dtype = CPTX_F64);
		if (s->b_rows)
			cptx_add(k, b, pitch, .into = b);
	}
	if (!s->b_rows)
		cptx_add(k, b, 16, .into = b);
}

/* ref[i][j] = sum of A[i][l] * B[j][l], bound[i][j] = sum of their magnitudes */
static void build_reference(cptx_module *m, const gemm_subject *s)
{
	cptx_kernel *k = cptx_kernel_begin(m, "gemm_reference", .block = { 16, 16 });
	cptx_val a = cptx_param(k, CPTX_PTR, "A"), b = cptx_param(k, CPTX_PTR, "B"), ref = cptx_param(k, CPTX_PTR, "ref");
	cptx_val bound = cptx_param(k, CPTX_PTR, "bound"), M = cptx_param(k, CPTX_U32, "M"), N = cptx_param(k, CPTX_U32, "N");
	cptx_val K = cptx_param(k, CPTX_U32, "K");
	cptx_val id = cptx_ctaid_x(k), across = cptx_div(k, cptx_add(k, N, 15), 16); /* grid.y would end at 65535 */
	cptx_val col = cptx_mad(k, cptx_rem(k, id, across), 16, cptx_tid_x(k), .mode = CPTX_LO);
	cptx_val row = cptx_mad(k, cptx_div(k, id, across), 16, cptx_tid_y(k), .mode = CPTX_LO);
	cptx_val pitch = cptx_shl(k, K, 2), sum = cptx_var(k, CPTX_F64, 0.0), mag = cptx_var(k, CPTX_F64, 0.0),
			 l = cptx_var(k, CPTX_U32, 0);

	cptx_exit(k, .when = cptx_setp(k, row, M, .cmp = CPTX_GE));
	cptx_exit(k, .when = cptx_setp(k, col, N, .cmp = CPTX_GE));
	cptx_mad_wide(k, row, pitch, a, .into = a);
	cptx_mad_wide(k, col, s->b_rows ? cptx_imm(4) : pitch, b, .into = b);
	cptx_val pitch_b = cptx_mul_wide(k, N, 4);
	CPTX_FOR(k, l, K, 4) {
		cptx_val x = cptx_ld(k, a, .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_F32), v[4];
		read_column(k, s, b, pitch_b, v);
		for (uint32_t i = 0; i < 4; i++) {
			cptx_val u = cptx_cvt(k, cptx_elem(x, i), .dtype = CPTX_F64);
			cptx_fma(k, u, v[i], sum, .rnd = CPTX_RN, .into = sum);
			cptx_fma(k, cptx_abs(k, u), cptx_abs(k, v[i]), mag, .rnd = CPTX_RN, .into = mag);
		}
		cptx_add(k, a, 16, .into = a);
	}
	cptx_val at =
		cptx_mul(k, cptx_add(k, cptx_mul_wide(k, row, N), cptx_cvt(k, col, .dtype = CPTX_U64)), 4, .mode = CPTX_LO);
	cptx_st(k, cptx_add(k, ref, at), cptx_cvt(k, sum, .rnd = CPTX_RN, .dtype = CPTX_F32), .space = CPTX_GLOBAL);
	cptx_st(k, cptx_add(k, bound, at), cptx_cvt(k, mag, .rnd = CPTX_RN, .dtype = CPTX_F32), .space = CPTX_GLOBAL);
}

/* ---- the run ---- */

typedef struct bench {
	cptx_device *dev;
	const gemm_subject *s;
	const gemm_problem *p;
	gemm_operand a, b;
	unsigned char *d;
	float *ref, *bound;
	uint64_t dev_d, dev_ref, dev_bound, d_bytes;
} bench;

static bool prepare(bench *t, cptx_error *err)
{
	const gemm_problem *p = t->p;
	uint64_t nd = p->m * p->n;

	t->d_bytes = nd * (cptx_type_bits(t->s->out) / 8);
	t->d = gemm_host(t->d_bytes + GUARD, err);
	t->ref = gemm_host(nd * 4, err);
	t->bound = gemm_host(nd * 4, err);
	t->dev_d = cptx_mem_alloc(t->dev, t->d_bytes + GUARD, err);
	t->dev_ref = cptx_mem_alloc(t->dev, nd * 4, err);
	t->dev_bound = cptx_mem_alloc(t->dev, nd * 4, err);
	if (err->code != CPTX_OK)
		return false;
	t->a = (gemm_operand){ .type = t->s->in, .scale = t->s->scale, .vec = t->s->vec, .rows = p->m, .k = p->k };
	t->b = t->a;
	t->b.type = t->s->in_b ? t->s->in_b : t->s->in, t->b.rows = p->n;
	return gemm_operand_make(&t->a, t->dev, p->seed * 2 + 1, err) &&
	       gemm_operand_make(&t->b, t->dev, p->seed * 2 + 2, err) &&
	       cptx_mem_fill8(t->dev, t->dev_d, POISON, t->d_bytes + GUARD, err);
}

static void release(bench *t)
{
	gemm_operand_free(&t->a, t->dev);
	gemm_operand_free(&t->b, t->dev);
	cptx_mem_free(t->dev, t->dev_d);
	cptx_mem_free(t->dev, t->dev_ref);
	cptx_mem_free(t->dev, t->dev_bound);
	free(t->d);
	free(t->ref);
	free(t->bound);
}

/* Where element l of a column of B is. */
static uint64_t place_of_b(const bench *t, uint64_t col, uint64_t l)
{
	return t->s->b_rows ? l * t->p->n + col : col * t->p->k + l;
}

/* The reference itself, at 64 places, against sums made on the host. */
static bool check_reference(const bench *t, cptx_error *err)
{
	uint64_t s = t->p->seed + 7;

	for (int i = 0; i < 64; i++) {
		uint64_t row = number_random(&s) % t->p->m, col = number_random(&s) % t->p->n, at = row * t->p->n + col;
		double sum = 0;
		for (uint64_t l = 0; l < t->p->k; l++)
			sum += (double)t->a.value[row * t->p->k + l] * (double)t->b.value[place_of_b(t, col, l)];
		if (!(fabs(sum - (double)t->ref[at]) <= 1e-6 * (double)t->bound[at])) {
			err->code = CPTX_E_WRONG;
			snprintf(err->text, sizeof err->text, "the reference kernel is wrong at (%llu, %llu): %g, not %g",
			         (unsigned long long)row, (unsigned long long)col, (double)t->ref[at], sum);
			return false;
		}
	}
	return true;
}

/* The emulator would take longer for the reference than for the kernel. */
static void reference_on_host(bench *t)
{
	const gemm_problem *p = t->p;

	for (uint64_t i = 0; i < p->m; i++)
		for (uint64_t j = 0; j < p->n; j++) {
			double sum = 0, bound = 0;
			for (uint64_t l = 0; l < p->k; l++) {
				double v = (double)t->a.value[i * p->k + l] * (double)t->b.value[place_of_b(t, j, l)];
				sum += v;
				bound += fabs(v);
			}
			t->ref[i * p->n + j] = (float)sum;
			t->bound[i * p->n + j] = (float)bound;
		}
}

static bool emulated(const cptx_device *dev)
{
	cptx_emu_counters c;

	return cptx_emu_get_counters(dev, &c);
}

static bool reference_on_device(bench *t, cptx_error *err)
{
	const gemm_problem *p = t->p;
	uint64_t size_a = p->m * p->k * sizeof(float), size_b = p->n * p->k * sizeof(float);
	uint64_t a = cptx_mem_alloc(t->dev, size_a, err), b = a ? cptx_mem_alloc(t->dev, size_b, err) : 0;
	cptx_module *m = cptx_module_new(NULL);
	build_reference(m, t->s);
	cptx_program *program = b ? cptx_device_load(t->dev, m, &p->load, err) : NULL;
	bool ok = program && cptx_mem_write(t->dev, a, t->a.value, size_a, err) &&
	          cptx_mem_write(t->dev, b, t->b.value, size_b, err) &&
	          cptx_launch_once(program, "gemm_reference",
	                           &(cptx_launch_opt){ .grid = { (uint32_t)((p->n + 15) / 16 * ((p->m + 15) / 16)) },
	                                               CPTX_ARGS(a, b, t->dev_ref, t->dev_bound, (uint32_t)p->m, (uint32_t)p->n,
	                                                         (uint32_t)p->k) },
	                           NULL, err) &&
	          cptx_mem_read(t->dev, t->ref, t->dev_ref, p->m * p->n * 4, err) &&
	          cptx_mem_read(t->dev, t->bound, t->dev_bound, p->m * p->n * 4, err);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
	cptx_mem_free(t->dev, a);
	cptx_mem_free(t->dev, b);
	return ok && check_reference(t, err);
}

static bool make_reference(bench *t, cptx_error *err)
{
	if (!emulated(t->dev))
		return reference_on_device(t, err);
	reference_on_host(t);
	return true;
}

static double element(const bench *t, uint64_t i)
{
	uint16_t h;
	int32_t n;
	float f;

	if (t->s->out == CPTX_F32) {
		memcpy(&f, t->d + i * 4, sizeof f);
		return (double)f;
	}
	if (t->s->out == CPTX_S32) {
		memcpy(&n, t->d + i * 4, sizeof n);
		return n;
	}
	memcpy(&h, t->d + i * 2, sizeof h);
	return number_value(t->s->out, h);
}

/*
 * Sums of K products in f32, in whatever order: the error grows with the square root of the additions and the magnitude of
 * what is added; tensor cores truncate, hence the factor.  Half an ulp more where the result is rounded to 16 bits.
 * Sums of integers are exact, and rounded once.
 */
static void compare(const bench *t, gemm_report *r)
{
	bool integers = t->s->in == CPTX_S8 || t->s->in == CPTX_U8;
	double grow = integers ? 0 : ldexp(sqrt((double)t->p->k) + 8, -24);
	double rounding = t->s->out == CPTX_BF16  ? ldexp(1, -9)
	                  : t->s->out == CPTX_F16 ? ldexp(1, -12)
	                  : integers              ? ldexp(1, -25)
	                                          : 0;

	r->elements = t->p->m * t->p->n;
	for (uint64_t i = 0; i < r->elements; i++) {
		double v = element(t, i), ref = (double)t->ref[i], error = fabs(v - ref);
		double allowed = grow * (double)t->bound[i] + 2 * rounding * fabs(ref) + 1e-7;
		if (error <= allowed) {
			if (error / allowed > r->worst)
				r->worst = error / allowed;
			continue;
		}
		if (!r->wrong++) {
			r->wrong_row = i / t->p->n, r->wrong_column = i % t->p->n;
			r->wrong_value = v, r->wrong_reference = ref;
		}
	}
	for (uint64_t i = 0; i < GUARD; i++)
		if (t->d[t->d_bytes + i] != POISON && !r->wrong++) {
			r->wrong_row = t->p->m, r->wrong_column = i;
			r->wrong_value = t->d[t->d_bytes + i], r->wrong_reference = POISON;
		}
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* Median over bursts of about 3 ms each; a pause before each keeps the device out of its power limit. */
static bool measure(const bench *t, cptx_launch *launch, gemm_report *r, cptx_error *err)
{
	float times[64];
	unsigned n = t->p->bursts > 64 ? 64 : t->p->bursts, done = 0, runs = 1;
	cptx_event *start = cptx_event_new(t->dev, err), *end = cptx_event_new(t->dev, err);

	for (unsigned i = 0; i <= n && err->code == CPTX_OK; i++) {
		float ms = 0;
		for (int warm = 0; warm < 2; warm++)
			cptx_launch_run(launch, NULL, err);
		cptx_event_record(start, NULL, err);
		for (unsigned j = 0; j < runs; j++)
			cptx_launch_run(launch, NULL, err);
		cptx_event_record(end, NULL, err);
		cptx_event_synchronize(end, err);
		if (!cptx_event_elapsed(start, end, &ms, err))
			break;
		if (i == 0)
			runs = ms < 3 ? (unsigned)(3 / (ms > 0.003f ? ms : 0.003f)) + 1 : 1;
		else
			times[done++] = ms / (float)runs;
		nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
	}
	if (done && err->code == CPTX_OK) {
		qsort(times, done, sizeof *times, by_value);
		r->ms = (double)times[done / 2];
	}
	cptx_event_destroy(start);
	cptx_event_destroy(end);
	return err->code == CPTX_OK;
}

static bool run(bench *t, cptx_module *module, gemm_report *r, cptx_error *err)
{
	const gemm_problem *p = t->p;
	const gemm_matrices at = { t->a.at, t->b.at, t->dev_d, t->a.scales, t->b.scales };
	cptx_program *program = cptx_device_load(t->dev, module, &p->load, err);
	cptx_launch *launch = program ? t->s->launch(t->s, t->dev, program, p, &at, r, err) : NULL;
	bool ok = launch && cptx_launch_run(launch, NULL, err) && cptx_device_synchronize(t->dev, err) &&
	          cptx_mem_read(t->dev, t->d, t->dev_d, t->d_bytes + GUARD, err);
	if (ok)
		compare(t, r);
	if (ok && p->bursts && !r->wrong && !emulated(t->dev))
		ok = measure(t, launch, r, err);
	cptx_launch_destroy(launch);
	cptx_program_destroy(program);
	return ok;
}

bool gemm_check_subject(cptx_device *dev, cptx_module *module, const gemm_subject *s, const gemm_problem *p, gemm_report *r,
                        cptx_error *err)
{
	bench t = { .dev = dev, .s = s, .p = p };

	*r = (gemm_report){ 0 };
	*err = (cptx_error){ 0 };
	bool ok = prepare(&t, err) && make_reference(&t, err) && run(&t, module, r, err);
	release(&t);
	return ok;
}

/* ---- kernels of the library's generators ---- */

typedef struct generated {
	const gemm_kind *kind;
	gemm_operands at;
} generated;

static cptx_launch *launch_kind(const gemm_subject *s, cptx_device *dev, const cptx_program *program, const gemm_problem *p,
                                const gemm_matrices *at, gemm_report *r, cptx_error *err)
{
	generated *g = s->user;
	const char *name = cptx_program_kernel_at(program, 0);

	g->at = (gemm_operands){
		.m = p->m, .n = p->n, .k = p->k, .a = at->a, .b = at->b, .d = at->d, .scale_a = at->scale_a, .scale_b = at->scale_b
	};
	return gemm_kind_launch(g->kind, dev, program, name, &g->at, &r->resources, &r->grid, err);
}

void gemm_wrong_text(const gemm_report *r, char *text, size_t size)
{
	snprintf(text, size, "%llu of %llu elements are wrong; the first at row %llu, column %llu: %g, not %g",
	         (unsigned long long)r->wrong, (unsigned long long)r->elements, (unsigned long long)r->wrong_row,
	         (unsigned long long)r->wrong_column, r->wrong_value, r->wrong_reference);
}

bool gemm_read_timeline(cptx_device *dev, const cptx_timeline_layout *l, uint64_t from, char **json, cptx_error *err)
{
	uint64_t size = cptx_timeline_bytes(l);
	void *data = gemm_host(size, err);
	size_t n = data && cptx_mem_read(dev, data, from, size, err) ? cptx_timeline_json(l, data, NULL, 0) + 1 : 0;

	*json = n ? gemm_host(n, err) : NULL;
	if (*json)
		cptx_timeline_json(l, data, *json, n);
	free(data);
	return *json != NULL;
}

bool gemm_check(cptx_device *dev, cptx_module *module, const gemm_kind *kind, const gemm_problem *p, gemm_report *r,
                cptx_error *err)
{
	generated g = { .kind = kind };
	gemm_subject s = {
		.in = gemm_in(kind), .in_b = gemm_in_b(kind), .out = gemm_out(kind), .launch = launch_kind, .user = &g
	};

	s.vec = gemm_factors(kind, &s.scale);
	bool ok = gemm_check_subject(dev, module, &s, p, r, err);

	if (ok && g.at.timeline)
		ok = gemm_read_timeline(dev, &g.at.line, g.at.timeline, &r->timeline, err);
	cptx_mem_free(dev, g.at.workspace);
	cptx_mem_free(dev, g.at.timeline);
	return ok;
}
