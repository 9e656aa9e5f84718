/* SPDX-License-Identifier: MIT */
#include "reference/rows_check.h"
#include "reference/measure.h"
#include "reference/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	POISON = 0xff,
	GUARD = 256 /* bytes behind each buffer that must stay */,
	TABLE = 4096,
	CLASSES = CPTX_ROWS_OPERANDS
};

enum kind { MATRIX, VECTOR, SCALAR };
enum element { IN, OUT, WEIGHT, F32, INDEX };
static const struct {
	enum kind kind;
	enum element type;
} operands[] = {
#define ROWS_OPERAND(ID, name, kind, type, about) { kind, type },
#include <cptx/rows.def>
};

typedef struct check {
	cptx_device *dev;
	cptx_rows_opt o; /* complete */
	const rows_case *c;
	cptx_rows_plan plan;
	uint32_t drawn, sets; /* rows of the host; sets of buffers that timed launches take in turn */
	enum cptx_type type[CLASSES];
	uint8_t *host[CLASSES];
	uint64_t dev_at[CLASSES], bytes[CLASSES], pitch[CLASSES], more[2 /* sets behind the first */][CLASSES];
	uint64_t workspace;
	double *row[CLASSES], *mag[CLASSES], *sum[CLASSES], *sum_mag[CLASSES];
	rows_report *r;
} check;

static bool has(uint32_t set, unsigned i) { return set >> i & 1; }
static uint32_t size_of(enum cptx_type t) { return cptx_type_bits(t) / 8; }
/* Two elements in a byte. */
static bool is_packed(const check *t, unsigned i) { return t->o.out == CPTX_E2M1 && i == CPTX_ROWS_Y; }
static bool is_transposed(const check *t, unsigned i) { return t->o.kernel == CPTX_ROWS_TRANSPOSE && i == CPTX_ROWS_Y; }
static uint32_t row_count(const check *t, unsigned i)
{
	const bool shares = i == CPTX_ROWS_COS || i == CPTX_ROWS_SIN;

	return operands[i].kind == VECTOR ? 1
	       : shares                   ? (t->c->rows + t->o.heads - 1) / t->o.heads
	       : is_transposed(t, i)      ? t->o.n
	                                  : t->c->rows;
}
/* How many rows of an operand are drawn. */
static uint32_t drawn_of(const check *t, unsigned i)
{
	const bool shares = i == CPTX_ROWS_COS || i == CPTX_ROWS_SIN;

	return operands[i].kind == VECTOR ? 1 : shares ? (t->drawn + t->o.heads - 1) / t->o.heads : t->drawn;
}
static uint32_t columns(const check *t, unsigned i)
{
	const bool several = (i == CPTX_ROWS_AT || i == CPTX_ROWS_TOP) && t->o.k > 1;

	if (is_packed(t, i))
		return t->o.n / 2;
	return is_transposed(t, i) ? t->c->rows : operands[i].kind != SCALAR ? t->o.n : several ? t->o.k : 1;
}

static bool no_memory(cptx_error *err)
{
	err->code = CPTX_E_MEMORY;
	snprintf(err->text, sizeof err->text, "out of host memory");
	return false;
}

static double element(const check *t, unsigned i, const uint8_t *at)
{
	uint64_t bits = 0;

	memcpy(&bits, at, size_of(t->type[i]));
	if (t->type[i] == CPTX_F32) { /* NaN and infinities, too */
		float f;
		memcpy(&f, at, 4);
		return (double)f;
	}
	if (t->type[i] == CPTX_BF16)
		return number_value(t->type[i], bits);
	if (t->type[i] == CPTX_S32)
		return (int32_t)bits;
	if (t->type[i] == CPTX_S64)
		return (double)(int64_t)bits;
	return number_value(t->type[i], bits);
}

static const uint8_t *place(const check *t, unsigned i, uint32_t row, uint32_t column)
{
	return t->host[i] + (operands[i].kind == VECTOR ? 0 : row * t->pitch[i]) + (uint64_t)column * size_of(t->type[i]);
}

/* ---- inputs ---- */

static double normal(uint64_t *s)
{
	const double u = ((double)(number_random(s) >> 11) + 1) / 9007199254740993.0;
	const double v = (double)(number_random(s) >> 11) / 9007199254740992.0;

	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Elements of NaN and infinities into some rows of the drawn ones. */
static double special_of(unsigned operand, uint32_t row, uint32_t column, uint32_t n, double v)
{
	if (operand != CPTX_ROWS_X)
		return v;
	switch (row % 8) {
	case 1: return column == n / 2 ? (double)NAN : v;
	case 2: return column == n - 1 ? (double)INFINITY : v;
	case 3: return -(double)INFINITY;
	case 4: return column % 2 ? -(double)INFINITY : v;
	case 5: return 0;
	default: return v;
	}
}

static void draw(check *t, unsigned i)
{
	double table[TABLE];
	uint64_t seed = t->c->seed * 2654435761u + i * 77u + 88172645463325252u;
	const uint32_t rows = drawn_of(t, i), n = columns(t, i), size = size_of(t->type[i]);

	for (int j = 0; j < TABLE; j++)
		table[j] = normal(&seed);
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t c = 0; c < n; c++) {
			double v = table[number_random(&seed) >> 40 & (TABLE - 1)];
			if (i == CPTX_ROWS_TARGET) {
				const uint32_t kind = (uint32_t)(number_random(&seed) >> 33) % 16;
				v = (double)(number_random(&seed) % t->o.n);
				v = kind == 1 && t->o.ignore ? (double)t->o.ignored_label : kind == 2 && t->c->special ? t->o.n : v;
			} else if (i == CPTX_ROWS_RSTD) {
				v = 0.5 + fabs(v);
			} else if (i == CPTX_ROWS_LSE) {
				v = log((double)t->o.n) + 0.5 + 0.01 * v;
			} else if (i == CPTX_ROWS_Y) { /* of a softmax, or its logarithm */
				v = t->o.kernel == CPTX_ROWS_SOFTMAX_BACKWARD ? exp(v) / t->o.n : v - log((double)t->o.n);
			} else if (i == CPTX_ROWS_X && t->o.kernel == CPTX_ROWS_LAYER_NORM) {
				v += 3;
			}
			if (t->c->special)
				v = special_of(i, r, c, t->o.n, v);
			uint64_t bits = number_bits(t->type[i], v);
			memcpy(t->host[i] + (operands[i].kind == VECTOR ? 0 : r * t->pitch[i]) + (uint64_t)c * size, &bits, size);
		}
}

/* The drawn rows, again and again. */
static bool upload(const check *t, unsigned i, uint64_t to, cptx_error *err)
{
	const uint64_t all = t->bytes[i], period = drawn_of(t, i) * t->pitch[i];
	uint64_t there = period < all ? period : all;

	if (!cptx_mem_write(t->dev, to, t->host[i], there, err))
		return false;
	while (there < all) {
		const uint64_t n = there < all - there ? there : all - there;
		if (!cptx_mem_copy(t->dev, to + there, to, n, err))
			return false;
		there += n;
	}
	return true;
}

static uint64_t off_of(const check *t, unsigned i)
{
	return operands[i].kind == MATRIX ? (uint64_t)t->c->off * size_of(t->type[i]) : 0;
}

/* The operand that lies at the same place; i: none does. */
static unsigned same_place(const check *t, unsigned i)
{
	static const unsigned char pairs[][2] = { { CPTX_ROWS_Y, CPTX_ROWS_X },
		                                      { CPTX_ROWS_Y2, CPTX_ROWS_X2 },
		                                      { CPTX_ROWS_DX, CPTX_ROWS_DY },
		                                      { CPTX_ROWS_DX, CPTX_ROWS_X } };

	for (size_t p = 0; t->c->in_place && p < sizeof pairs / sizeof *pairs; p++)
		if (pairs[p][0] == i && has(t->plan.writes, i) && has(t->plan.reads, pairs[p][1]) &&
		    t->type[i] == t->type[pairs[p][1]])
			return pairs[p][1];
	return i;
}

static bool allocate(check *t, unsigned i, cptx_error *err)
{
	const bool reads = has(t->plan.reads, i);
	const uint64_t host = operands[i].kind == VECTOR ? t->bytes[i] : (uint64_t)row_count(t, i) * t->pitch[i];

	t->host[i] = malloc(host + GUARD);
	const uint32_t elements = is_packed(t, i) ? t->o.n : columns(t, i);
	t->row[i] = malloc(elements * sizeof(double)), t->mag[i] = malloc(elements * sizeof(double));
	t->sum[i] = calloc(columns(t, i), sizeof(double)), t->sum_mag[i] = calloc(columns(t, i), sizeof(double));
	if (!t->host[i] || !t->row[i] || !t->mag[i] || !t->sum[i] || !t->sum_mag[i])
		return no_memory(err);
	memset(t->host[i], 0, host + GUARD);
	if (reads)
		draw(t, i);
	for (uint32_t s = 0; s < t->sets; s++) {
		uint64_t *at = s ? &t->more[s - 1][i] : &t->dev_at[i];
		const unsigned other = same_place(t, i);
		if (other != i) {
			*at = s ? t->more[s - 1][other] : t->dev_at[other];
			continue;
		}
		*at = cptx_mem_alloc(t->dev, off_of(t, i) + t->bytes[i] + GUARD, err);
		if (!*at || !cptx_mem_fill8(t->dev, *at, POISON, off_of(t, i) + t->bytes[i] + GUARD, err))
			return false;
		if (reads && !upload(t, i, *at + off_of(t, i), err))
			return false;
	}
	return true;
}

static bool prepare(check *t, cptx_error *err)
{
	const cptx_rows_opt *o = &t->o;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		const enum cptx_type types[] = { o->in, o->out, o->weight, CPTX_F32, o->index };
		t->type[i] = types[operands[i].type];
		t->pitch[i] = (columns(t, i) + (operands[i].kind == MATRIX ? t->c->pad : 0)) * (uint64_t)size_of(t->type[i]);
		t->bytes[i] = row_count(t, i) * t->pitch[i];
	}
	/* inputs first: results may lie at their places */
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (has(t->plan.reads, i) && !allocate(t, i, err))
			return false;
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (has(t->plan.writes, i) && !allocate(t, i, err))
			return false;
	if (t->plan.workspace)
		t->workspace = cptx_mem_alloc(t->dev, t->plan.workspace, err);
	return err->code == CPTX_OK;
}

static void release(check *t)
{
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		for (uint32_t s = 0; s < t->sets; s++)
			if (same_place(t, i) == i)
				cptx_mem_free(t->dev, s ? t->more[s - 1][i] : t->dev_at[i]);
		free(t->host[i]), free(t->row[i]), free(t->mag[i]), free(t->sum[i]), free(t->sum_mag[i]);
	}
	cptx_mem_free(t->dev, t->workspace);
}

/* ---- comparison ---- */

static double half_ulp(enum cptx_type t)
{
	return t == CPTX_BF16 ? 0x1p-8 : t == CPTX_F16 ? 0x1p-11 : t == CPTX_E4M3 ? 0x1p-3 : 0x1p-23;
}
/* Half of the distance of the smallest numbers, which are not normal. */
static double least_of(enum cptx_type t) { return t == CPTX_F16 ? 0x1p-24 : t == CPTX_E4M3 ? 0x1p-9 : 1e-37; }

static void wrong_at(check *t, unsigned operand, uint32_t row, uint32_t column, double value, double reference)
{
	rows_report *r = t->r;

	if (!r->wrong++)
		r->wrong_operand = operand, r->wrong_row = row, r->wrong_column = column, r->wrong_value = value,
		r->wrong_reference = reference;
}

/* An .e2m1: the lower half of a byte, or the upper one. */
static double half_of_byte(uint8_t byte, bool upper) { return number_value(CPTX_E2M1, upper ? byte >> 4 : byte & 15); }

/* Results err by their rounding (of numbers that round up to the next power of two by twice of that), and by what f32
 * arithmetic and approximate functions do to the terms. */
static void compare(check *t, unsigned operand, uint32_t row, uint32_t column, double want, double mag)
{
	const double got = is_packed(t, operand) ? half_of_byte(*place(t, operand, row, column / 2), column % 2)
	                                         : element(t, operand, place(t, operand, row, column)),
				 arithmetic = operands[operand].kind == VECTOR ? 2e-6 : 5e-6;
	const double rounding = is_packed(t, operand) ? fabs(want) < 2   ? 0.25
	                                                : fabs(want) < 4 ? 0.5
	                                                                 : 1 /* half of the distance */
	                                              : half_ulp(t->type[operand]) * fabs(want) + least_of(t->type[operand]);
	const double allowed = rounding + arithmetic * mag;
	const double error = fabs(got - want);

	t->r->elements++;
	if (isnan(want) ? isnan(got) : isinf(want) ? got == want : error <= allowed)
		t->r->worst = isfinite(want) && error / allowed > t->r->worst ? error / allowed : t->r->worst;
	else
		wrong_at(t, operand, row, column, got, want);
}

/* What the host has of inputs is what it drew, also where a result lies in their place. */
static void compare_row(check *t, uint32_t row, uint32_t times, uint8_t *const inputs[CLASSES])
{
	rows_line l = { .o = &t->o, .reads = t->plan.reads, .writes = t->plan.writes };
	uint8_t *host[CLASSES];

	memcpy(host, t->host, sizeof host);
	memcpy(t->host, inputs, sizeof t->host);
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		l.v[i] = t->row[i], l.mag[i] = t->mag[i];
		const bool shares = i == CPTX_ROWS_COS || i == CPTX_ROWS_SIN;
		for (uint32_t c = 0; has(l.reads, i) && c < columns(t, i); c++)
			t->row[i][c] = element(t, i, place(t, i, shares ? row / t->o.heads : row, c));
	}
	memcpy(t->host, host, sizeof host);
	rows_reference(&l);
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		for (uint32_t c = 0; has(l.writes, i) && c < columns(t, i) * (is_packed(t, i) ? 2 : 1); c++)
			if (operands[i].kind == VECTOR)
				t->sum[i][c] += times * t->row[i][c], t->sum_mag[i][c] += times * t->mag[i][c];
			else
				compare(t, i, row, c, t->row[i][c], t->mag[i][c]);
}

/* Compares all bits of a transposition. */
static void compare_transposed(check *t, const uint8_t *x)
{
	const uint32_t size = size_of(t->type[CPTX_ROWS_X]);

	for (uint32_t c = 0; c < t->o.n; c++)
		for (uint32_t r = 0; r < t->c->rows; r++) {
			const uint8_t *got = place(t, CPTX_ROWS_Y, c, r),
						  *want = x + r % t->drawn * t->pitch[CPTX_ROWS_X] + c * (uint64_t)size;
			t->r->elements++;
			if (memcmp(got, want, size) != 0)
				wrong_at(t, CPTX_ROWS_Y, c, r, element(t, CPTX_ROWS_Y, got), element(t, CPTX_ROWS_X, want));
		}
}

/* Rows behind the drawn ones have the same bits as these; what is between rows and around them is as it was. */
static void compare_rest(check *t, unsigned i)
{
	const uint64_t bytes = (uint64_t)columns(t, i) * size_of(t->type[i]);

	for (uint32_t r = t->drawn; operands[i].kind != VECTOR && !is_transposed(t, i) && r < t->c->rows; r++) {
		t->r->elements += columns(t, i);
		if (memcmp(place(t, i, r, 0), place(t, i, r % t->drawn, 0), bytes) != 0)
			wrong_at(t, i, r, 0, element(t, i, place(t, i, r, 0)), element(t, i, place(t, i, r % t->drawn, 0)));
	}
	for (uint32_t r = 0; operands[i].kind == MATRIX && r < row_count(t, i); r++)
		for (uint64_t b = bytes; b < t->pitch[i] && same_place(t, i) == i; b++)
			if (place(t, i, r, 0)[b] != POISON)
				wrong_at(t, i, r, t->o.n, 0, 0);
	for (uint32_t b = 0; b < GUARD; b++)
		if (t->host[i][t->bytes[i] + b] != POISON)
			wrong_at(t, i, t->c->rows, 0, 0, 0);
}

static bool compare_all(check *t, cptx_error *err)
{
	uint8_t *inputs[CLASSES];

	memcpy(inputs, t->host, sizeof inputs);
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!has(t->plan.writes, i))
			continue;
		if (has(t->plan.reads, i))
			return no_memory(err);
		if (!cptx_mem_read(t->dev, t->host[i], t->dev_at[i] + off_of(t, i), t->bytes[i] + GUARD, err))
			return false;
	}
	if (t->o.kernel == CPTX_ROWS_TRANSPOSE)
		compare_transposed(t, inputs[CPTX_ROWS_X]);
	for (uint32_t r = 0; t->o.kernel != CPTX_ROWS_TRANSPOSE && r < t->drawn; r++)
		compare_row(t, r, (t->c->rows - r + t->drawn - 1) / t->drawn, inputs);
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		for (uint32_t c = 0; has(t->plan.writes, i) && operands[i].kind == VECTOR && c < t->o.n; c++)
			compare(t, i, 0, c, t->sum[i][c], t->sum_mag[i][c]);
		if (has(t->plan.writes, i))
			compare_rest(t, i);
	}
	return true;
}

/* ---- runs ---- */

typedef struct launches {
	cptx_launch *l[3][2];
} launches;

static bool run_once(const check *t, const launches *all, uint32_t set, cptx_stream *stream, cptx_error *err)
{
	for (uint32_t i = 0; i < t->plan.launches; i++)
		if (all->l[set][i] && !cptx_launch_run(all->l[set][i], stream, err))
			return false;
	return true;
}

/* The median of bursts that take the sets of buffers in turn. */
static bool measure(check *t, const launches *all, cptx_error *err)
{
	cptx_launch *each[6];
	unsigned n = 0;
	double ms = 0;

	for (uint32_t s = 0; s < t->sets; s++)
		for (uint32_t i = 0; i < t->plan.launches; i++)
			if (all->l[s][i])
				each[n++] = all->l[s][i];
	const bool ok = measure_launches(t->dev, each, n, t->c->bursts, &ms, err);
	t->r->ms = ms / t->sets;
	return ok;
}

static cptx_rows_problem problem_of(const check *t, uint32_t set)
{
	cptx_rows_problem p = { .rows = t->c->rows, .workspace = t->workspace };

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!has(t->plan.reads | t->plan.writes, i))
			continue;
		p.at[i].address = (set ? t->more[set - 1][i] : t->dev_at[i]) + off_of(t, i);
		if (operands[i].kind == MATRIX)
			p.at[i].stride = columns(t, i) + t->c->pad;
	}
	return p;
}

static bool run(check *t, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	launches all = { { { NULL } } };
	cptx_program *p = cptx_rows_build(m, &t->o, err) ? cptx_device_load(t->dev, m, &t->c->load, err) : NULL;
	bool ok = p != NULL;

	for (uint32_t s = 0; ok && s < t->sets; s++) {
		const cptx_rows_problem problem = problem_of(t, s);
		for (uint32_t i = t->c->rows ? 0 : 1; ok && i < t->plan.launches; i++)
			ok = (all.l[s][i] = cptx_rows_launch(p, t->dev, &t->o, &problem, i, err)) != NULL;
	}
	ok = ok && (!all.l[0][0] || cptx_launch_resources(all.l[0][0], &t->r->resources, err));
	ok = ok && run_once(t, &all, 0, NULL, err) && compare_all(t, err);
	if (ok && t->c->bursts && !t->r->wrong)
		ok = measure(t, &all, err);
	for (int s = 0; s < 3; s++)
		for (int i = 0; i < 2; i++)
			cptx_launch_destroy(all.l[s][i]);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	return ok;
}

bool rows_check(cptx_device *dev, const cptx_rows_opt *o, const rows_case *c, rows_report *r, cptx_error *err)
{
	const cptx_device_info *info = cptx_device_get_info(dev);
	const cptx_target *target = cptx_target_find(info->target ? info->target : "");
	check t = { .dev = dev, .o = *o, .c = c, .r = r, .sets = c->bursts ? 3 : 1 };
	cptx_rows_choice choice;

	*r = (rows_report){ .elements = 0 };
	*err = (cptx_error){ .code = CPTX_OK };
	if (!t.o.align && (c->pad || c->off || o->kernel == CPTX_ROWS_TRANSPOSE)) {
		const uint32_t across = o->kernel == CPTX_ROWS_TRANSPOSE ? c->rows + c->pad : 0;
		const uint32_t bits = (o->n + c->pad) | across | c->off | 16;
		t.o.align = bits & (~bits + 1);
	}
	t.o.bandwidth = t.o.bandwidth ? t.o.bandwidth : cptx_rows_bandwidth(info);
	if (!cptx_rows_auto(&t.o, target, c->rows, info->sms, &choice, 1, err))
		return false;
	t.o = choice.opt;
	if (!cptx_rows_check(&t.o, target, c->rows, info->sms, &t.plan, err))
		return false;
	r->plan = t.plan;
	t.drawn = c->drawn && c->drawn < c->rows ? c->drawn : c->rows;
	t.drawn = t.drawn > t.o.heads ? t.drawn / t.o.heads * t.o.heads : t.drawn;
	const bool ok = prepare(&t, err) && run(&t, err);
	release(&t);
	return ok;
}

void rows_report_text(const rows_report *r, char *text, size_t size)
{
	if (!r->wrong)
		snprintf(text, size, "all %llu elements right, the largest error is %.2f of what is allowed",
		         (unsigned long long)r->elements, r->worst);
	else
		snprintf(text, size, "%llu of %llu elements are wrong; the first: %s[%u][%u] is %.9g, not %.9g",
		         (unsigned long long)r->wrong, (unsigned long long)r->elements,
		         cptx_rows_operand_name((enum cptx_rows_operand)r->wrong_operand), r->wrong_row, r->wrong_column,
		         r->wrong_value, r->wrong_reference);
}
