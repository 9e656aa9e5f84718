/* From what was asked of `cptx gemm` to the options of a kernel: the generator, types, and a shape where none was given. */
#include "gemm_request.h"

#include <string.h>

enum { CHOICES = 5 };

/* The shape is for the problem of --run or --explain, without one for 4096 cubed. */
static cptx_gemm_problem problem_of(const gemm_request *q)
{
	const gemm_problem *r = &q->problem;

	return (cptx_gemm_problem){ .m = r->m ? r->m : 4096, .n = r->m ? r->n : 4096, .k = r->m ? r->k : 4096 };
}

/* ---- --explain ---- */

/* What a model says of a shape. */
typedef struct verdict {
	double us, mma_us, load_us, memory_us, tail;
	uint32_t grid, group;
} verdict;
#define VERDICT(c, grid_)                                                                                                   \
	{                                                                                                                       \
		(c).us, (c).mma_us, (c).load_us, (c).memory_us, (c).tail, (grid_), (c).opt.group                                    \
	}

static void explain(const gemm_kind *g, const verdict *v, bool first, FILE *out)
{
	char shape[160];

	if (first)
		fprintf(out, "%9s %9s %9s %9s %6s %5s %5s  %s\n", "us", "mma us", "load us", "memory us", "idle", "CTAs", "group",
		        "shape");
	gemm_kind_text(g, shape, sizeof shape);
	fprintf(out, "%9.1f %9.1f %9.1f %9.1f %5.1f%% %5u %5u  %s\n", v->us, v->mma_us, v->load_us, v->memory_us, 100 * v->tail,
	        v->grid, v->group, shape);
}

/* ---- the generators ---- */

static bool rows_of_m(const gemm_request *q, int which) { return q->layout && q->layout[which] == 'n'; }

/* --tile has all three sides, but only one third is possible. */
static int check_tile_k(const gemm_request *q, uint32_t bk, const char *with)
{
	if (!asked(q, OPTION_TILE) || q->o.bk == bk)
		return EXIT_OK;
	return cli_failed(q->cmd, "tile K = %u; with %s it is %u, 128 bytes", q->o.bk, with, bk);
}

/* The tuned shape of the target, with what was asked for in its place; a tile without warps gets warps of about 64 x 64. */
static int complete_mma(gemm_request *q, const cptx_target *target)
{
	cptx_gemm_opt d = cptx_gemm_default(target), *o = &q->g.mma;

	if (q->o.in != q->in_b)
		return cli_failed(q->cmd, "A is .%s and B .%s; with mma.sync both are bf16, or both f16", cptx_type_name(q->o.in),
		                  cptx_type_name(q->in_b));
	*o = q->o;
	if (!asked(q, OPTION_TILE))
		o->bm = d.bm, o->bn = d.bn, o->bk = d.bk;
	if (!asked(q, OPTION_WARPS)) {
		o->warps_m = o->bm >= 128 ? o->bm / 64 : 1;
		o->warps_n = o->bn >= 128 ? o->bn / 64 : 1;
		if (o->warps_m * o->warps_n < 4 && o->bn % 64 == 0)
			o->warps_n *= 2;
	}
	if (!asked(q, OPTION_STAGES))
		o->stages = asked(q, OPTION_TILE) ? 3 : d.stages;
	return EXIT_OK;
}

static int pick_wgmma(gemm_request *q, const cptx_gemm_problem *p, uint32_t sms, FILE *out)
{
	cptx_gemm_sm90_choice c[CHOICES];
	cptx_gemm_sm90_plan plan;
	cptx_error err = { 0 };
	size_t n = cptx_gemm_sm90_auto(&q->g.sm90, p, sms, c, CHOICES, &err);

	if (!n)
		return cli_failed(q->cmd, "%s", err.text);
	for (size_t i = 0; i < n && asked(q, OPTION_EXPLAIN); i++) {
		cptx_gemm_problem with = *p;
		with.ctas = c[i].ctas;
		cptx_gemm_sm90_check_problem(&c[i].opt, &with, sms, &plan, &err);
		explain(&(gemm_kind){ GEMM_WGMMA, .sm90 = c[i].opt }, &(verdict)VERDICT(c[i], plan.grid), i == 0, out);
	}
	q->g.sm90 = c[0].opt, q->g.ctas = c[0].ctas;
	return EXIT_OK;
}

static int complete_wgmma(gemm_request *q, uint32_t sms, FILE *out)
{
	cptx_gemm_problem p = problem_of(q);
	cptx_gemm_sm90_opt *o = &q->g.sm90;
	cptx_gemm_sm90_plan plan;
	cptx_error err = { 0 };
	int status = EXIT_OK;
	char with[40];

	*o = (cptx_gemm_sm90_opt){ .a = q->o.in,
		                       .b = q->in_b,
		                       .out = q->o.out,
		                       .group = q->o.group,
		                       .a_m_major = rows_of_m(q, 0),
		                       .b_n_major = rows_of_m(q, 1) };
	if (asked(q, OPTION_TILE))
		o->bm = q->o.bm, o->bn = q->o.bn, o->stages = 3, o->swap = asked(q, OPTION_SWAP), o->per_sm = q->per_sm;
	else if (asked(q, OPTION_SWAP) || asked(q, OPTION_PER_SM))
		return cli_usage(q->cmd, "--%s goes with --tile; without, the model picks it",
		                 asked(q, OPTION_SWAP) ? "swap" : "per-sm");
	else if ((status = pick_wgmma(q, &p, sms, out)))
		return status;
	if (asked(q, OPTION_STAGES))
		o->stages = q->o.stages;
	if (asked(q, OPTION_CLUSTER))
		o->cluster_m = q->cluster[0], o->cluster_n = q->cluster[1];
	o->stream_k |= asked(q, OPTION_STREAM_K);
	if ((o->grouped = asked(q, OPTION_GROUPED))) /* a choice of the model may share K */
		o->stream_k = asked(q, OPTION_STREAM_K), q->g.ctas = 0;
	if (!cptx_gemm_sm90_check(o, &plan, &err))
		return cli_failed(q->cmd, "%s", err.text);
	snprintf(with, sizeof with, ".%s", cptx_type_name(o->a));
	return check_tile_k(q, plan.bk, with);
}

static int pick_tcgen05(gemm_request *q, const cptx_gemm_problem *p, uint32_t sms, FILE *out)
{
	cptx_gemm_sm100_choice c[CHOICES];
	cptx_gemm_sm100_plan plan;
	cptx_error err = { 0 };
	size_t n = cptx_gemm_sm100_auto(&q->g.sm100, p, sms, c, CHOICES, &err);

	if (!n)
		return cli_failed(q->cmd, "%s", err.text);
	for (size_t i = 0; i < n && asked(q, OPTION_EXPLAIN); i++) {
		cptx_gemm_problem with = *p;
		with.ctas = c[i].ctas;
		cptx_gemm_sm100_check_problem(&c[i].opt, &with, sms, &plan, &err);
		explain(&(gemm_kind){ GEMM_TCGEN05, .sm100 = c[i].opt }, &(verdict)VERDICT(c[i], plan.grid), i == 0, out);
	}
	q->g.sm100 = c[0].opt, q->g.ctas = c[0].ctas;
	return EXIT_OK;
}

static int complete_tcgen05(gemm_request *q, uint32_t sms, const cptx_target *target, FILE *out)
{
	cptx_gemm_problem p = problem_of(q);
	cptx_gemm_sm100_opt *o = &q->g.sm100;
	cptx_gemm_sm100_plan plan;
	cptx_error err = { 0 };
	int status = EXIT_OK;
	char with[40];

	*o = (cptx_gemm_sm100_opt){ .a = q->o.in == CPTX_F32 ? CPTX_TF32 : q->o.in,
		                        .b = q->in_b == CPTX_F32 ? CPTX_TF32 : q->in_b,
		                        .scale = q->scale,
		                        .out = q->o.out,
		                        .group = q->o.group,
		                        .a_m_major = rows_of_m(q, 0),
		                        .b_n_major = rows_of_m(q, 1),
		                        .a_tmem = asked(q, OPTION_A_TMEM) };
	o->kind = q->multiplies < CPTX_TCGEN05_KINDS ? q->multiplies : gemm_tcgen05_kind(o->a, o->b, q->scale);
	if (asked(q, OPTION_TILE))
		o->bm = q->o.bm, o->bn = q->o.bn, o->stages = 3;
	else if ((status = pick_tcgen05(q, &p, sms, out)))
		return status;
	if (asked(q, OPTION_STAGES))
		o->stages = q->o.stages;
	if (asked(q, OPTION_CLUSTER))
		o->cluster_m = q->cluster[0], o->cluster_n = q->cluster[1];
	o->stream_k |= asked(q, OPTION_STREAM_K);
	if ((o->grouped = asked(q, OPTION_GROUPED))) /* a choice of the model may share K */
		o->stream_k = asked(q, OPTION_STREAM_K), q->g.ctas = 0;
	if (!cptx_gemm_sm100_check(o, target, &plan, &err))
		return cli_failed(q->cmd, "%s", err.text);
	snprintf(with, sizeof with, "kind %s", cptx_tcgen05_kind_name(o->kind));
	return check_tile_k(q, plan.bk, with);
}

static int pick_block_scale(gemm_request *q, const cptx_gemm_problem *p, uint32_t sms, FILE *out)
{
	cptx_gemm_sm120_choice c[CHOICES];
	cptx_gemm_sm120_plan plan;
	cptx_error err = { 0 };
	size_t n = cptx_gemm_sm120_auto(&q->g.sm120, p, sms, c, CHOICES, &err);

	if (!n)
		return cli_failed(q->cmd, "%s", err.text);
	for (size_t i = 0; i < n && asked(q, OPTION_EXPLAIN); i++) {
		cptx_gemm_sm120_check_problem(&c[i].opt, p, sms, &plan, &err);
		explain(&(gemm_kind){ GEMM_BLOCK_SCALE, .sm120 = c[i].opt }, &(verdict)VERDICT(c[i], plan.grid), i == 0, out);
	}
	q->g.sm120 = c[0].opt;
	return EXIT_OK;
}

static int complete_block_scale(gemm_request *q, uint32_t sms, const cptx_target *target, FILE *out)
{
	cptx_gemm_problem p = problem_of(q);
	cptx_gemm_sm120_opt *o = &q->g.sm120;
	cptx_gemm_sm120_plan plan;
	cptx_error err = { 0 };
	int status = EXIT_OK;

	*o = (cptx_gemm_sm120_opt){
		.a = q->o.in, .b = q->in_b, .scale = q->scale, .out = q->o.out, .group = q->o.group, .warps_m = 2, .warps_n = 2
	};
	enum cptx_tcgen05_kind is = gemm_tcgen05_kind(o->a, o->b, o->scale);
	if (q->multiplies < CPTX_TCGEN05_KINDS && q->multiplies != is)
		return cli_failed(q->cmd, "kind %s of mma.sync does not take .%s and .%s by .%s; these are kind %s",
		                  cptx_tcgen05_kind_name(q->multiplies), cptx_type_name(o->a), cptx_type_name(o->b),
		                  cptx_type_name(o->scale), cptx_tcgen05_kind_name(is));
	if (asked(q, OPTION_TILE))
		o->bm = q->o.bm, o->bn = q->o.bn, o->stages = 2;
	else if ((status = pick_block_scale(q, &p, sms, out)))
		return status;
	if (asked(q, OPTION_WARPS))
		o->warps_m = q->o.warps_m, o->warps_n = q->o.warps_n;
	if (asked(q, OPTION_STAGES))
		o->stages = q->o.stages;
	if (!cptx_gemm_sm120_check(o, target, &plan, &err))
		return cli_failed(q->cmd, "%s", err.text);
	char with[40];
	snprintf(with, sizeof with, "kind %s", cptx_tcgen05_kind_name(is));
	return check_tile_k(q, plan.bk, with);
}

/* ---- which of them ---- */

static bool scaled(enum cptx_tcgen05_kind k) { return k >= CPTX_TCGEN05_MXF8F6F4 && k < CPTX_TCGEN05_KINDS; }

static enum gemm_with choose_with(const gemm_request *q, const cptx_target *target)
{
	bool block_scale = cptx_form_on_target(CPTX_OP_MMA_BLOCK_SCALE, 0, target);

	if (q->multiplies < CPTX_TCGEN05_KINDS)
		return block_scale && scaled(q->multiplies) ? GEMM_BLOCK_SCALE : GEMM_TCGEN05;
	if (q->kind)
		return !strcmp(q->kind, "wgmma") ? GEMM_WGMMA : !strcmp(q->kind, "tcgen05") ? GEMM_TCGEN05 : GEMM_MMA;
	if (block_scale && asked(q, OPTION_SCALE))
		return GEMM_BLOCK_SCALE;
	if (asked(q, OPTION_TILE) || asked(q, OPTION_WARPS))
		return GEMM_MMA;
	return !strcmp(target->name, "sm_90a")                       ? GEMM_WGMMA
	       : cptx_form_on_target(CPTX_OP_TCGEN05_MMA, 0, target) ? GEMM_TCGEN05
	                                                             : GEMM_MMA;
}

/* Options that only some generators have. */
enum { MMA = 1 << GEMM_MMA, WGMMA = 1 << GEMM_WGMMA, TCGEN05 = 1 << GEMM_TCGEN05, BLOCK_SCALE = 1 << GEMM_BLOCK_SCALE };
static const struct {
	int option;
	unsigned of;
} only_of[] = {
	{ OPTION_WARPS, MMA | BLOCK_SCALE },
	{ OPTION_EXPLAIN, WGMMA | TCGEN05 | BLOCK_SCALE },
	{ OPTION_STREAM_K, WGMMA | TCGEN05 },
	{ OPTION_SWAP, WGMMA },
	{ OPTION_PER_SM, WGMMA },
	{ OPTION_GROUPED, WGMMA | TCGEN05 },
	{ OPTION_LAYOUT, WGMMA | TCGEN05 },
	{ OPTION_CLUSTER, WGMMA | TCGEN05 },
	{ OPTION_TIMELINE, WGMMA | TCGEN05 },
	{ OPTION_SCALE, TCGEN05 | BLOCK_SCALE },
	{ OPTION_A_TMEM, TCGEN05 },
};

static int check_placed(const gemm_request *q)
{
	static const char *const names[] = { [GEMM_MMA] = "mma",
		                                 [GEMM_WGMMA] = "wgmma",
		                                 [GEMM_TCGEN05] = "tcgen05",
		                                 [GEMM_BLOCK_SCALE] = "mxf8f6f4, mxf4 and mxf4nvf4" };
	char of[120] = "";

	for (size_t i = 0; i < sizeof only_of / sizeof *only_of; i++) {
		if (!asked(q, only_of[i].option) || only_of[i].of >> q->g.with & 1)
			continue;
		for (unsigned w = 0; w < sizeof names / sizeof *names; w++)
			if (only_of[i].of >> w & 1)
				snprintf(of + strlen(of), sizeof of - strlen(of), "%s--kind %s", *of ? " and of " : "", names[w]);
		return cli_usage(q->cmd, "--%s is an option of %s", q->cmd->options[only_of[i].option].name, of);
	}
	return EXIT_OK;
}

int gemm_complete(gemm_request *q, const cptx_target *target, const cptx_device *dev, FILE *out)
{
	/* multiprocessors of a GPU that a target has */
	static const uint16_t
		sms[] = { [GEMM_WGMMA] = 132 /* H200 */, [GEMM_TCGEN05] = 148 /* B200 */, [GEMM_BLOCK_SCALE] = 170 /* RTX 5090 */ };

	q->g.with = choose_with(q, target);
	int status = check_placed(q);
	if (status)
		return status;
	static const int picked[] = { OPTION_TILE, OPTION_WARPS, OPTION_STAGES, OPTION_CLUSTER, OPTION_STREAM_K };
	for (size_t i = 0; i < sizeof picked / sizeof *picked && asked(q, OPTION_EXPLAIN); i++)
		if (asked(q, picked[i]))
			return cli_usage(q->cmd, "--explain tells how a shape is picked, all of it; leave --%s away",
			                 q->cmd->options[picked[i]].name);
	if (asked(q, OPTION_EXPLAIN) && asked(q, OPTION_RUN))
		return cli_usage(q->cmd, "--explain or --run, not both: --run picks the same shape");
	uint32_t here = dev ? cptx_device_get_info(dev)->sms : q->g.with == GEMM_MMA ? 0 : sms[q->g.with];
	switch (q->g.with) {
	case GEMM_WGMMA: return complete_wgmma(q, here, out);
	case GEMM_TCGEN05: return complete_tcgen05(q, here, target, out);
	case GEMM_BLOCK_SCALE: return complete_block_scale(q, here, target, out);
	default: return complete_mma(q, target);
	}
}
