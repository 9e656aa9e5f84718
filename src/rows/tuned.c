/* SPDX-License-Identifier: MIT */
/* Row kernels in the tuning database: a candidate is the shape that the options leave open. */
#include "rows/tuned.h"
#include "base/options.h"
#include "kit/tuned.h"
#include "rows/rows.h"

/* Goes up with a change of the kernels after which a shape may take another time. */
enum { VERSION = 5 };

static const char *kernel_word(unsigned v)
{
	return v < CPTX_ROWS_KERNELS ? cptx_rows_kernel_name((enum cptx_rows_kernel)v) : "?";
}

static const char *place_word(unsigned v) { return cptx_rows_place_name((enum cptx_rows_place)v); }

#define ROWS_WORD_NUMBER KIT_NUMBER, NULL
#define ROWS_WORD_BOOL KIT_BOOL, NULL
#define ROWS_WORD_TYPE KIT_TYPE, NULL
#define ROWS_WORD_F32 KIT_FLOAT, NULL
#define ROWS_WORD_S64 KIT_S64, NULL
#define ROWS_WORD_KERNEL KIT_WORD, kernel_word
#define ROWS_WORD_PLACE KIT_WORD, place_word
#define ROWS_WORD_POINTER KIT_NOT_TEXT, NULL
static const kit_field fields[] = {
#define ROWS_FIELD(field, type) KIT_FIELD(#field, offsetof(cptx_rows_opt, field), ROWS_WORD_##type),
#include "rows/options.def"
};
static const kit_family family = { "rows", VERSION, fields, ARRAY_LEN(fields), sizeof(cptx_rows_opt) };

uint32_t rows_about(uint32_t rows)
{
	uint32_t p = 1;

	while (p <= rows / 2)
		p *= 2;
	return p;
}

/* base: options that have what is no part of the problem's text: the length of the rows, which is a size, and the library's
 * bodies. */
static kit_problem problem_of(const cptx_rows_opt *o, cptx_rows_opt *base, uint32_t rows)
{
	*base = (cptx_rows_opt){ .n = o->n, .body = o->kernel == CPTX_ROWS_OWN ? NULL : o->body };
	return (kit_problem){ .family = &family, .asked = o, .base = base, .function = o->name, .dims = { rows, o->n } };
}

/* ---- measuring ---- */

typedef struct bench {
	cptx_device *dev;
	const cptx_target *target;
	const cptx_rows_opt *asked;
	cptx_rows_problem p;
} bench;

static bool build(void *user, const void *candidate, cptx_module *m, cptx_error *err)
{
	(void)user;
	return cptx_rows_build(m, (const cptx_rows_opt *)candidate, err) != NULL;
}

static uint32_t launch(void *user, const void *candidate, const cptx_program *program, cptx_launch **launches, uint32_t room,
                       cptx_error *err)
{
	const bench *b = (const bench *)user;
	const cptx_rows_opt *o = (const cptx_rows_opt *)candidate;
	const rows_shape s = rows_shape_of(o);
	const uint32_t n = MIN(room, rows_launches(&s));

	for (uint32_t l = 0; l < n; l++)
		if (!(launches[l] = cptx_rows_launch(program, b->dev, o, &b->p, l, err)))
			return 0;
	return n;
}

static size_t choose(void *user, void *choices, size_t room, cptx_error *err)
{
	const bench *b = (const bench *)user;

	return rows_auto(b->asked, b->target, b->p.rows, cptx_device_get_info(b->dev)->sms, (cptx_rows_choice *)choices, room,
	                 err);
}

/* The largest workspace of the candidates. */
static bool make_workspace(bench *b, const cptx_rows_opt *candidates, uint32_t n, cptx_error *err)
{
	const uint32_t sms = cptx_device_get_info(b->dev)->sms;
	uint64_t most = 0;
	cptx_rows_plan plan;

	for (uint32_t i = 0; i < n; i++)
		if (cptx_rows_check(&candidates[i], b->target, b->p.rows, sms, &plan, NULL))
			most = MAX(most, plan.workspace);
	b->p.workspace = most ? kit_tuned_operand(b->dev, CPTX_F32, most, err) : 0;
	return err->code == CPTX_OK;
}

/* Dense operands of random numbers; labels are 0. */
static bool make_operands(void *user, const void *candidates, uint32_t n, cptx_error *err)
{
	bench *b = (bench *)user;
	const cptx_rows_opt *o = b->asked;
	const rows_shape s = rows_shape_of(o);

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		const enum cptx_type type = rows_type_of(o, (enum cptx_rows_operand)i);
		const enum rows_kind kind = rows_operands[i].kind;
		const uint64_t elements =
			(uint64_t)(kind == ROWS_VECTOR ? 1 : b->p.rows) * (kind == ROWS_SCALAR ? rows_scalars(o, i) : o->n);
		if (!rows_has(s.reads | s.writes, i))
			continue;
		b->p.at[i].address = kit_tuned_operand(b->dev, type, elements * rows_bytes(type), err);
		if (rows_operands[i].type == ROWS_INDEX && err->code == CPTX_OK)
			cptx_mem_fill8(b->dev, b->p.at[i].address, 0, elements * rows_bytes(type), err);
	}
	return err->code == CPTX_OK && make_workspace(b, (const cptx_rows_opt *)candidates, n, err);
}

static void free_operands(void *user)
{
	bench *b = (bench *)user;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		cptx_mem_free(b->dev, b->p.at[i].address);
	cptx_mem_free(b->dev, b->p.workspace);
}

bool cptx_rows_measure(cptx_tune *db, cptx_device *dev, const cptx_rows_opt *opt, uint32_t rows, const cptx_tune_use *use,
                       cptx_tune_done *done, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_rows_opt o, base;
	cptx_tune_use u;
	bench b = { .dev = dev, .asked = &o };

	err = err ? err : &own;
	if (!IS_GIVEN(dev, "device", NOWHERE, err) || !IS_GIVEN(opt, "options struct", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_rows_opt, &o, opt, NOWHERE, err) || !kit_tuned_read_use(&u, use, err))
		return false;
	const char *target = cptx_device_get_info(dev)->target;
	b.target = target ? cptx_target_find(target) : NULL;
	b.p.rows = rows_about(MAX(rows, 1u));
	o.bandwidth = o.bandwidth ? o.bandwidth : cptx_rows_bandwidth(cptx_device_get_info(dev));
	if (!rows_complete(&o, b.target, err))
		return false;
	o.align = o.align ? o.align : rows_align_of_problem(&o, &b.p);
	const kit_offer offer = { .problem = problem_of(&o, &base, b.p.rows),
		                      .choice = sizeof(cptx_rows_choice),
		                      .at = offsetof(cptx_rows_choice, opt),
		                      .choose = choose,
		                      .operands = make_operands,
		                      .release = free_operands,
		                      .build = build,
		                      .launch = launch,
		                      .user = &b };
	return kit_tuned_measure_offer(db, dev, &offer, &u, done, err);
}

/* ---- look-ups ---- */

typedef struct search {
	const kit_runner *r;
	const cptx_rows_opt *asked;
	uint32_t rows;
} search;

/* Bytes of the workspace of a shape; they do not fall with the number of rows. */
static uint64_t workspace_of(const search *s, const cptx_rows_opt *o, uint32_t rows)
{
	cptx_rows_plan plan = { .workspace = UINT64_MAX };

	return cptx_rows_check(o, s->r->target, rows, cptx_device_get_info(s->r->dev)->sms, &plan, NULL) ? plan.workspace
	                                                                                                 : UINT64_MAX;
}

/* Whether the caller's workspace, which is that of the model's shape, is large enough for all rows of which there are about
 * as many. */
static bool has_room(const search *s, const cptx_rows_opt *o)
{
	cptx_rows_choice c;

	const rows_shape shape = rows_shape_of(o);

	if (rows_launches(&shape) == 1)
		return true;
	if (!rows_auto(s->asked, s->r->target, s->rows, cptx_device_get_info(s->r->dev)->sms, &c, 1, NULL))
		return false;
	const uint32_t rows = shape.parts ? s->rows : 2 * s->rows - 1; /* parts need as much for each row */
	return workspace_of(s, o, rows) <= workspace_of(s, &c.opt, s->rows);
}

static bool fits(void *user, const void *found)
{
	const search *s = (const search *)user;
	const cptx_rows_opt *o = (const cptx_rows_opt *)found;

	return o->threads && cptx_rows_check(o, s->r->target, s->rows, cptx_device_get_info(s->r->dev)->sms, NULL, NULL) &&
	       has_room(s, o);
}

static bool measure_missing(void *user, cptx_tune *db, const cptx_tune_use *use)
{
	const search *s = (const search *)user;

	return cptx_rows_measure(db, s->r->dev, s->asked, s->rows, use, NULL, NULL);
}

bool rows_tuned_choose(kit_runner *r, cptx_rows_opt *o, uint32_t rows)
{
	const cptx_rows_opt asked = *o;
	cptx_rows_opt base;
	search s = { r, &asked, rows };
	const kit_search k = { problem_of(&asked, &base, rows), fits, measure_missing, &s };

	return !asked.threads && kit_tuned_find(r, &k, o);
}

/* ---- options as text ---- */

bool cptx_rows_options_read(const char *text, cptx_rows_opt *opt, cptx_error *err)
{
	cptx_rows_opt o;

	if (!IS_GIVEN(opt, "options struct", NOWHERE, err) || !OPTIONS_READ(cptx_rows_opt, &o, opt, NOWHERE, err) ||
	    !kit_options_read(&family, text, &o, err))
		return false;
	OPTIONS_WRITE(cptx_rows_opt, opt, &o);
	return true;
}
