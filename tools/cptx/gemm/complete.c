/* SPDX-License-Identifier: MIT */
/* From what was asked of `cptx gemm` to the options of a kernel: what multiplies, types, and a shape where none was given.
 */
#include "gemm/request.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The kernels, in the order of GEMM_SET. */
enum { BY_SYNC, BY_SCALED, BY_WGMMA, BY_TCGEN05, BY_GEMV, BYS };
static const struct {
	const char *name;
	uint32_t stages; /* with --tile */
} kernels[BYS] = {
	{ "--mma sync", 3 }, { "--mma sync with --scale", 2 }, { "--mma wgmma", 3 }, { "--mma tcgen05", 3 }, { "--mma gemv", 0 }
};

static unsigned kernel_of(const cptx_gemm_opt *o)
{
	return o->mma == CPTX_GEMM_GEMV      ? BY_GEMV
	       : o->mma == CPTX_GEMM_TCGEN05 ? BY_TCGEN05
	       : o->mma == CPTX_GEMM_WGMMA   ? BY_WGMMA
	       : o->scale != CPTX_TYPE_NONE  ? BY_SCALED
	                                     : BY_SYNC;
}

/* ---- in words ---- */

static void add(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t size, const char *format, ...)
{
	size_t n = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + n, size - n, format, args);
	va_end(args);
}

static uint32_t or_one(uint32_t v) { return v ? v : 1; }

void gemm_text(const cptx_gemm_opt *o, char *text, size_t size)
{
	unsigned by = kernel_of(o);
	cptx_gemm_plan plan = { 0 };

	cptx_gemm_check(o, NULL, &plan, NULL);
	*text = 0;
	if (by == BY_TCGEN05 || by == BY_SCALED)
		add(text, size, "kind %s, ", cptx_tcgen05_kind_name(plan.kind));
	add(text, size, "tile %ux%ux%u%s", o->bm, o->bn, plan.bk, o->swap ? " swapped" : "");
	if (by == BY_TCGEN05)
		add(text, size, " by %u CTA%s", o->bm / 128, o->bm > 128 ? "s" : "");
	if (by == BY_GEMV)
		add(text, size, " by gemv, %u warps along K, %u along N%s", or_one(o->warps_m), or_one(o->warps_n),
		    o->zeros ? ", zero points" : "");
	else if (by == BY_SYNC || by == BY_SCALED)
		add(text, size, ", %ux%u warps%s", o->warps_m, o->warps_n, o->tma ? ", by TMA" : "");
	else
		add(text, size, ", cluster %ux%u", or_one(o->cluster_m), or_one(o->cluster_n));
	if (by != BY_GEMV)
		add(text, size, ", %u stages", o->stages);
	if (by == BY_TCGEN05)
		add(text, size, ", %u accumulator%s", plan.accumulators, plan.accumulators > 1 ? "s" : "");
	if (by == BY_GEMV && o->unaligned)
		add(text, size, ", any rows");
	else if (o->unaligned & (CPTX_GEMM_A | CPTX_GEMM_B))
		add(text, size, ", %s%s copied to aligned rows", o->unaligned & CPTX_GEMM_A ? "A" : "",
		    !(o->unaligned & CPTX_GEMM_B) ? ""
		    : o->unaligned & CPTX_GEMM_A  ? " and B"
		                                  : "B");
	const bool rows = o->mma == CPTX_GEMM_WGMMA && !o->swap && !o->scatter;
	add(text, size, "%s%s%s%s%s%s%s%s%s",
	    by == BY_GEMV || !(o->unaligned & CPTX_GEMM_D) ? ""
	    : rows                                         ? ", D row by row"
	                                                   : ", D by elements",
	    o->per_sm > 1 ? ", 2 a multiprocessor" : "",
	    !o->a_tmem ? ""
	    : o->swap  ? ", B in tensor memory"
	               : ", A in tensor memory",
	    o->stream_k ? ", stream-K" : "", o->batched ? ", batched" : "", o->grouped ? ", for lists" : "",
	    o->alpha ? ", alpha" : "", o->beta ? ", beta" : "", o->bias ? ", bias" : "");
	if (o->scale_rows)
		add(text, size, ", factors of B by rows");
	if (o->sparse)
		add(text, size, ", A sparse");
	if (o->swiglu || o->scale_out)
		add(text, size, "%s%s", o->swiglu ? ", gated columns" : "", o->scale_out ? ", D quantized" : "");
	if (o->experts)
		add(text, size, ", %s experts%s%s", cptx_gemm_experts_name(o->experts),
		    o->gather ? ", rows of A gathered by cp.async" : "", o->scatter ? ", rows added to D by red" : "");
}

/* A row of --explain. */
static void explain(const cptx_gemm_choice *c, uint32_t grid, bool first, FILE *out)
{
	char shape[200];

	if (first)
		fprintf(out, "%9s %9s %9s %9s %6s %5s %5s  %s\n", "us", "mma us", "load us", "memory us", "idle", "CTAs", "group",
		        "shape");
	gemm_text(&c->opt, shape, sizeof shape);
	fprintf(out, "%9.1f %9.1f %9.1f %9.1f %5.1f%% %5u %5u  %s\n", c->us, c->mma_us, c->load_us, c->memory_us, 100 * c->tail,
	        grid, c->opt.group, shape);
}

/* ---- what fits what ---- */

/* "; sm_100a has tcgen05" for sm_100, where the target chose mma.sync; else "". */
static const char *variant(const gemm_request *q, const cptx_target *target, char *text, size_t size)
{
	char own[32];

	snprintf(own, sizeof own, "%sa", target->name);
	const cptx_target *a = cptx_target_find(own);
	*text = 0;
	if (!asked(q, OPTION_MMA) && a && cptx_gemm_mma_of(a) != cptx_gemm_mma_of(target))
		add(text, size, "; %s has %s", own, cptx_gemm_mma_name(cptx_gemm_mma_of(a)));
	return text;
}

/* Options that only some kernels have. */
static int check_placed(const gemm_request *q, const cptx_target *target)
{
	unsigned by = kernel_of(&q->o);
	char of[120] = "", more[80];

	for (int i = 0; i < OPTIONS; i++) {
		if (!asked(q, i) || gemm_option_of(i) >> by & 1)
			continue;
		for (unsigned k = 0; k < BYS; k++)
			if (gemm_option_of(i) >> k & 1)
				add(of, sizeof of, "%s%s", *of ? " and of " : "", kernels[k].name);
		return cli_usage(q->cmd, "--%s is an option of %s; this kernel is by %s%s%s%s", gemm_options[i].name, of,
		                 kernels[by].name, asked(q, OPTION_MMA) ? "" : ", by --arch ",
		                 asked(q, OPTION_MMA) ? "" : target->name, variant(q, target, more, sizeof more));
	}
	return EXIT_OK;
}

static int check_explain(const gemm_request *q)
{
	static const int picked[] = { OPTION_TILE, OPTION_WARPS, OPTION_STAGES, OPTION_CLUSTER, OPTION_STREAM_K };

	for (size_t i = 0; i < sizeof picked / sizeof *picked && asked(q, OPTION_EXPLAIN); i++)
		if (asked(q, picked[i]))
			return cli_usage(q->cmd, "--explain tells how a shape is picked, all of it; leave --%s away",
			                 q->cmd->options[picked[i]].name);
	if (asked(q, OPTION_EXPLAIN) && asked(q, OPTION_RUN))
		return cli_usage(q->cmd, "--explain or --run, not both: --run picks the same shape");
	if (!asked(q, OPTION_TILE) && (asked(q, OPTION_SWAP) || asked(q, OPTION_PER_SM)))
		return cli_usage(q->cmd, "--%s goes with --tile; without, the model picks it",
		                 asked(q, OPTION_SWAP) ? "swap" : "per-sm");
	return EXIT_OK;
}

/* ---- types ---- */

/* The kind of tcgen05.mma for A and B of such types and factors of that (NONE: no factors). */
static enum cptx_tcgen05_kind kind_of(enum cptx_type a, enum cptx_type b, enum cptx_type scale)
{
	bool scaled = scale != CPTX_TYPE_NONE;

	if (a == CPTX_E2M1 && b == CPTX_E2M1 && scaled) /* without factors in bytes */
		return scale == CPTX_UE4M3 ? CPTX_TCGEN05_MXF4NVF4 : CPTX_TCGEN05_MXF4;
	switch (a) {
	case CPTX_F16:
	case CPTX_BF16: return CPTX_TCGEN05_F16;
	case CPTX_F32:
	case CPTX_TF32: return CPTX_TCGEN05_TF32;
	case CPTX_S8:
	case CPTX_U8: return CPTX_TCGEN05_I8;
	default: return scaled ? CPTX_TCGEN05_MXF8F6F4 : CPTX_TCGEN05_F8F6F4;
	}
}

/* What multiplies: --mma, or the best that the target has.  What a kind multiplies where --in and --scale do not say. */
static void complete_types(gemm_request *q, const cptx_target *target)
{
	static const struct {
		enum cptx_type in, scale;
	} of[] = {
		[CPTX_TCGEN05_TF32] = { CPTX_TF32, CPTX_TYPE_NONE },   [CPTX_TCGEN05_F16] = { CPTX_BF16, CPTX_TYPE_NONE },
		[CPTX_TCGEN05_F8F6F4] = { CPTX_E4M3, CPTX_TYPE_NONE }, [CPTX_TCGEN05_I8] = { CPTX_S8, CPTX_TYPE_NONE },
		[CPTX_TCGEN05_MXF8F6F4] = { CPTX_E4M3, CPTX_UE8M0 },   [CPTX_TCGEN05_MXF4] = { CPTX_E2M1, CPTX_UE8M0 },
		[CPTX_TCGEN05_MXF4NVF4] = { CPTX_E2M1, CPTX_UE4M3 },
	};
	cptx_gemm_opt *o = &q->o;

	if (!asked(q, OPTION_MMA))
		o->mma = cptx_gemm_mma_of(target);
	if (asked(q, OPTION_KIND) && !asked(q, OPTION_IN))
		o->a = o->b = of[q->kind].in;
	if (asked(q, OPTION_KIND) && !asked(q, OPTION_SCALE))
		o->scale = of[q->kind].scale;
	if (o->mma == CPTX_GEMM_TCGEN05)
		o->a = o->a == CPTX_F32 ? CPTX_TF32 : o->a, o->b = o->b == CPTX_F32 ? CPTX_TF32 : o->b;
	if (asked(q, OPTION_KIND))
		o->kind = q->kind;
	else if (o->mma == CPTX_GEMM_TCGEN05)
		o->kind = kind_of(o->a, o->b, o->scale);
}

/* ---- shapes ---- */

/* The best of the model's shapes that has what was asked for of it; if none has, the best. */
static size_t best_with(const gemm_request *q, const cptx_target *target, const cptx_gemm_opt *want, cptx_gemm_choice *c,
                        size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cptx_gemm_opt o = c[i].opt;
		bool warps = o.warps_m == want->warps_m && o.warps_n == want->warps_n;
		bool cluster = or_one(o.cluster_m) == or_one(want->cluster_m) && or_one(o.cluster_n) == or_one(want->cluster_n);
		o.stages = asked(q, OPTION_STAGES) ? want->stages : o.stages;
		if ((!asked(q, OPTION_CLUSTER) || cluster) && (!asked(q, OPTION_WARPS) || warps) &&
		    (o.stream_k || !asked(q, OPTION_STREAM_K)) && cptx_gemm_check(&o, target, NULL, NULL))
			return i;
	}
	return 0;
}

/* Few rows, or weights of few bits that the target's own kernel does not take (found: it does), and nothing was asked for
 * that the kernel for few rows has not. */
static bool may_be_gemv(const gemm_request *q, const cptx_gemm_problem *p, bool found)
{
	for (int i = 0; i < OPTIONS; i++)
		if (asked(q, i) && !(gemm_option_of(i) >> BY_GEMV & 1))
			return false;
	const bool alone = !found && cptx_type_bits(q->o.a) != cptx_type_bits(q->o.b);
	return !asked(q, OPTION_MMA) && (alone || p->m <= GEMM_GEMV_ROWS_MOST);
}

/* Puts the choices of gemv among the n that there are, by their times; gives their number. */
static size_t add_gemv(const gemm_request *q, const cptx_target *target, const cptx_gemm_problem *p, uint32_t sms,
                       cptx_gemm_choice *c, size_t n, size_t room)
{
	enum { CHOICES = 5 };
	cptx_gemm_choice more[CHOICES];
	cptx_gemm_opt o = q->o;

	o.mma = CPTX_GEMM_GEMV, o.kind = (enum cptx_tcgen05_kind)0;
	const size_t found = cptx_gemm_auto_for(&o, target, p, sms, more, CHOICES, NULL);
	for (size_t i = 0; i < found; i++) {
		size_t at = n < room ? n++ : room;
		for (; at && more[i].us < c[at - 1].us; at--)
			if (at < room)
				c[at] = c[at - 1];
		if (at < room)
			c[at] = more[i];
	}
	return n;
}

/* The best shape by the model for the problem of --run or --explain, without one for 4096 cubed; on the GPU of the model if
 * there is no device. */
static int pick(gemm_request *q, const cptx_target *target, const cptx_device *dev, FILE *out)
{
	enum { CHOICES = 5, ALL = 2000 };
	const bool some =
		asked(q, OPTION_CLUSTER) || asked(q, OPTION_STAGES) || asked(q, OPTION_STREAM_K) || asked(q, OPTION_WARPS);
	const gemm_problem *r = &q->problem;
	cptx_gemm_problem p = { .m = r->m ? r->m : 4096, .n = r->m ? r->n : 4096, .k = r->m ? r->k : 4096, .batch = r->batch };
	cptx_gemm_choice *c = calloc(some ? ALL : CHOICES, sizeof *c);
	cptx_gemm_plan plan;
	cptx_error err = { 0 };
	const cptx_gemm_opt want = q->o;
	char more[80];
	uint32_t sms;
	const char *model = cptx_gemm_model(&q->o, target, &sms);

	if (!c)
		return cli_failed(q->cmd, "out of memory");
	sms = dev ? cptx_device_get_info(dev)->sms : sms;
	q->o.stream_k = false;
	size_t n = cptx_gemm_auto_for(&q->o, target, &p, sms, c, some ? ALL : CHOICES, &err);
	if (!some && may_be_gemv(q, &p, n != 0))
		n = add_gemv(q, target, &p, sms, c, n, CHOICES);
	if (!n) {
		free(c);
		return *variant(q, target, more, sizeof more) ? cli_usage(q->cmd, "%s%s", err.text, more)
		                                              : cli_refused(q->cmd, &err);
	}
	if (asked(q, OPTION_EXPLAIN))
		fprintf(out, "model: %s; %u multiprocessors\n", model, sms);
	for (size_t i = 0; i < n && asked(q, OPTION_EXPLAIN); i++) {
		p.ctas = c[i].ctas;
		cptx_gemm_check_problem(&c[i].opt, &p, sms, &plan, &err);
		explain(&c[i], plan.grid, i == 0, out);
	}
	size_t best = some ? best_with(q, target, &want, c, n) : 0;
	q->o = c[best].opt, q->problem.ctas = c[best].ctas;
	free(c);
	return EXIT_OK;
}

/* Warps of about 64 x 64. */
static void choose_warps(cptx_gemm_opt *o)
{
	o->warps_m = o->bm >= 128 ? o->bm / 64 : 1;
	o->warps_n = o->bn >= 128 ? o->bn / 64 : 1;
	if (o->warps_m * o->warps_n < 4 && o->bn % 64 == 0)
		o->warps_n *= 2;
}

/* With --tile: the fewest matrices that the sizes of --run or --explain ask to be unaligned; 0 where that does not help. */
static void choose_unaligned(gemm_request *q)
{
	enum { ALL = CPTX_GEMM_A | CPTX_GEMM_B | CPTX_GEMM_D };
	const gemm_problem *p = &q->problem;
	const cptx_gemm_problem sizes = { .m = p->m, .n = p->n, .k = p->k, .batch = p->batch };

	if (asked(q, OPTION_UNALIGNED) || !p->m)
		return;
	while (!cptx_gemm_check_problem(&q->o, &sizes, 1, NULL, NULL) && q->o.unaligned <= ALL)
		q->o.unaligned++;
	q->o.unaligned = q->o.unaligned > ALL ? 0 : q->o.unaligned;
}

/* What was asked for, and around it a usual or the picked shape. */
static int complete_shape(gemm_request *q, const cptx_target *target, const cptx_device *dev, FILE *out)
{
	const cptx_gemm_opt want = q->o;
	cptx_gemm_opt *o = &q->o;
	unsigned by = kernel_of(o);
	int status;

	if (asked(q, OPTION_TILE))
		o->stages = kernels[by].stages;
	else if ((status = pick(q, target, dev, out)))
		return status;
	if (asked(q, OPTION_WARPS))
		o->warps_m = want.warps_m, o->warps_n = want.warps_n;
	else if (by == BY_SYNC && asked(q, OPTION_TILE))
		choose_warps(o);
	else if (by == BY_SCALED && asked(q, OPTION_TILE))
		o->warps_m = o->warps_n = 2;
	else if (by == BY_GEMV && asked(q, OPTION_TILE))
		o->warps_m = 8, o->warps_n = 1;
	if (asked(q, OPTION_STAGES))
		o->stages = want.stages;
	if (asked(q, OPTION_CLUSTER))
		o->cluster_m = want.cluster_m, o->cluster_n = want.cluster_n;
	o->stream_k |= want.stream_k;
	if (by == BY_SYNC && asked(q, OPTION_TILE)) { /* by TMA where the target has it; cp.async takes more shapes */
		o->tma = cptx_gemm_default(CPTX_GEMM_SYNC, target).tma;
		o->tma = cptx_gemm_check(o, target, NULL, NULL) && o->tma;
	}
	if (asked(q, OPTION_TILE))
		choose_unaligned(q);
	return EXIT_OK;
}

int gemm_complete(gemm_request *q, const cptx_target *target, const cptx_device *dev, FILE *out)
{
	cptx_error err = { 0 };
	char more[80];

	complete_types(q, target);
	int status = check_placed(q, target);
	if (status || (status = check_explain(q)))
		return status;
	if ((status = complete_shape(q, target, dev, out)))
		return status;
	if (cptx_gemm_check(&q->o, target, NULL, &err))
		return EXIT_OK;
	return cli_usage(q->cmd, "%s%s", err.text, variant(q, target, more, sizeof more));
}
