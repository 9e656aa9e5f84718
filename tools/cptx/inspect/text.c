/* SPDX-License-Identifier: MIT */
/* The report as text. */
#include "inspect/inspect.h"

#include <string.h>

enum { MOST_SHOWN = 5 /* conflicts */ };

static void put_place(const inspected *in, uint32_t ptx_line)
{
	cptx_site at = inspect_source(in, ptx_line);

	if (at.file)
		cli_put(stdout, at.file, strlen(at.file)), printf(":%u (", at.line);
	cli_put(stdout, in->path, strlen(in->path));
	printf(at.file ? ":%u)" : ":%u", ptx_line);
}

static void put_usage(const inspect_kernel *k)
{
	printf("  %-22s %u%s", "registers", k->registers, k->has_usage ? "" : k->registers ? " (estimate)" : " (not known)");
	if (k->has_spills && (k->spill_stores || k->spill_loads))
		printf(", spills: %u bytes stored, %u loaded", k->spill_stores, k->spill_loads);
	else
		printf(k->has_spills ? ", no spills" : ", spills: only ptxas -v tells");
	printf("\n  %-22s %u bytes static", "shared memory", k->static_smem);
	if (k->dynamic_smem)
		printf(", %u dynamic", k->dynamic_smem);
	if (k->has_usage)
		printf("\n  %-22s %u bytes\n  %-22s %u", "stack frame", k->frame, "barriers", k->barriers);
	if (k->code)
		printf("\n  %-22s %u bytes, %u instructions\n  %-22s %u bytes, parameters %u", "code", k->code, k->code / 16,
		       "constant bank 0", k->constant0, k->param_bytes);
	putchar('\n');
}

static bool declares_dynamic(const inspect_kernel *k)
{
	size_t n;
	const cptx_shared_var *v = cptx_flow_shared(k->flow, &n);

	for (size_t i = 0; i < n; i++)
		if (!v[i].size)
			return true;
	return false;
}

static void put_occupancy(const inspected *in, const inspect_kernel *k)
{
	const cptx_occupancy *o = &k->occupancy;

	if (!k->has_occupancy) {
		printf("  %-22s not known: %s\n", "occupancy",
		       k->threads ? "no such launch" : "the kernel does not say how many threads a CTA has; --threads does");
		return;
	}
	printf("  %-22s %u CTA%s of %u threads on a multiprocessor of %s: %u of %u warps\n", "occupancy", o->ctas,
	       o->ctas == 1 ? "" : "s", k->threads, in->target->name, o->warps, o->most_warps);
	printf("  %-22s %s (CTAs by registers %u, shared memory %u, threads %u, CTAs %u)\n", "limited by",
	       cptx_limit_name(o->limit), o->by_registers, o->by_smem, o->by_threads, o->by_ctas);
	if (!k->smem_given)
		printf("  %-22s no dynamic shared memory%s; --smem says how much a launch has\n", "assumed",
		       declares_dynamic(k) ? ", though some is declared" : "");
}

static void put_mix(const char *title, const uint32_t count[CPTX_UNITS])
{
	uint32_t all = 0;

	for (unsigned u = 0; u < CPTX_UNITS; u++)
		all += count[u];
	printf("  %-22s", title);
	for (unsigned u = 0; u < CPTX_UNITS; u++)
		if (count[u])
			printf(" %s %u", cptx_unit_name(u), count[u]);
	printf(" (of %u)\n", all);
}

static void put_loop(const inspected *in, const inspect_kernel *k)
{
	size_t n, nloop;
	uint32_t count[CPTX_UNITS] = { 0 }, hot = cptx_flow_hottest(k->flow), tensor = 0, all = 0;
	const cptx_point *p = cptx_flow_points(k->flow, &n);
	const cptx_loop *l = cptx_flow_loops(k->flow, &nloop);

	printf("  %-22s %zu\n", "loops", nloop);
	if (hot == UINT32_MAX)
		return;
	for (size_t i = l[hot].first; i <= l[hot].last && i < n; i++)
		if (p[i].loop == hot)
			count[p[i].unit]++, all++, tensor += p[i].unit == CPTX_UNIT_TENSOR;
	printf("  %-22s ", "hottest loop");
	put_place(in, p[l[hot].first].line);
	printf(" to line %u, depth %u, %u of its %u instructions are tensor instructions (by its text, not measured)\n",
	       p[l[hot].last].line, l[hot].depth, tensor, all);
	put_mix("its instructions", count);
}

static void put_flow(const inspected *in, const inspect_kernel *k)
{
	uint32_t count[CPTX_UNITS], at;
	double weight[CPTX_UNITS];
	size_t n;
	const cptx_point *p = cptx_flow_points(k->flow, &n);

	if (!p)
		return;
	cptx_flow_mix(k->flow, count, weight);
	put_mix("PTX instructions", count);
	put_loop(in, k);
	if (!k->live) {
		printf("  %-22s %u registers of the PTX at ", "most alive", cptx_flow_peak(k->flow, &at));
		put_place(in, p[at].line);
		printf("; estimate of what ptxas needs: %u\n", cptx_flow_registers(k->flow));
	}
	uint32_t known, accesses, conflicts = cptx_flow_conflicts(k->flow, &known, &accesses);
	if (accesses)
		printf("  %-22s %u, of %u ld.shared and st.shared of %u whose addresses the text tells\n", "bank conflicts",
		       conflicts, known, accesses);
	for (size_t i = 0, shown = 0; i < n && shown <= MOST_SHOWN; i++) {
		if (!p[i].conflicts)
			continue;
		printf("    ");
		if (shown++ == MOST_SHOWN) {
			puts("and more; --json has all");
			break;
		}
		put_place(in, p[i].line);
		printf(": %u more turns than needed\n", p[i].conflicts);
	}
}

static void put_shared(const inspect_kernel *k)
{
	size_t n;
	const cptx_shared_var *v = cptx_flow_shared(k->flow, &n);

	for (size_t i = 0; i < n; i++) {
		printf("  %-22s %s, ", i ? "" : "in shared memory", v[i].name);
		if (v[i].size)
			printf("%llu bytes, aligned to %u\n", (unsigned long long)v[i].size, v[i].align);
		else
			printf("as long as the launch says, aligned to %u\n", v[i].align);
	}
}

/* The mbarriers of each ring of stages, and the lines that use them. */
static void put_barriers(const inspect_kernel *k)
{
	size_t n, nvar, nuse, npoint;
	const cptx_barrier_set *b = cptx_flow_barriers(k->flow, &n);
	const cptx_shared_var *v = cptx_flow_shared(k->flow, &nvar);
	const cptx_stage_use *u = cptx_flow_stages(k->flow, &nuse);
	const cptx_point *p = cptx_flow_points(k->flow, &npoint);

	for (size_t i = 0; i < n; i++) {
		printf("  %-22s %s+%u", i ? "" : "mbarriers", v[b[i].variable].name, b[i].offset);
		if (b[i].n)
			printf(", %u stage%s", b[i].n, b[i].n > 1 ? "s" : "");
		if (b[i].arrivals)
			printf(" of %u arrival%s", b[i].arrivals, b[i].arrivals > 1 ? "s" : "");
		for (unsigned role = CPTX_STAGE_ARRIVE; role <= CPTX_STAGE_WAIT; role++) {
			bool first = true;
			for (size_t j = 0; j < nuse; j++) {
				if (u[j].set != i || u[j].role != role)
					continue;
				if (first)
					printf("; %s in line", cptx_stage_role_name((enum cptx_stage_role)role));
				printf("%s%u", first ? " " : ", ", p[u[j].point].line);
				first = false;
			}
		}
		putchar('\n');
	}
}

static void put_sass(const inspected *in, const inspect_kernel *k)
{
	uint32_t count[CPTX_UNITS] = { 0 }, known = 0, lined = 0;
	const sass_line *alive = NULL;

	for (size_t i = 0; i < k->nsass; i++) {
		if (k->sass[i].live > (alive ? alive->live : 0))
			alive = &k->sass[i];
		if (k->sass[i].text)
			count[k->sass[i].unit]++, known++;
		lined += k->sass[i].ptx_line != 0;
	}
	if (known)
		put_mix("machine instructions", count);
	if (lined && in->m)
		printf("  %-22s %u of %zu machine instructions\n", "lines known of", lined, k->nsass);
	if (alive) {
		printf("  %-22s %u registers", "most alive", alive->live);
		if (alive->live <= k->registers) /* setmaxnreg may give it more than it starts with */
			printf(" of the %u", k->registers);
		printf(" at ");
		if (alive->ptx_line)
			put_place(in, alive->ptx_line);
		printf("%s0x%04x of the machine code\n", alive->ptx_line ? ", " : "", alive->address);
	} else if (*k->live_unknown) {
		printf("  %-22s %s\n", "in the machine code", k->live_unknown);
	}
}

static const char *const severities[] = { "note", "concern", "warning", "error" };

static void put_remarks(const inspected *in)
{
	const cptx_remark *r;
	size_t i = 0;

	for (; (r = cptx_verdict_remark(in->verdict, i)); i++) {
		printf("%s", i ? "" : "\nremarks of ptxas\n");
		if (r->ptx_line)
			put_place(in, r->ptx_line);
		else
			cli_put(stdout, in->path, strlen(in->path));
		printf(": %s: ", severities[r->severity]);
		cli_put(stdout, r->function, strlen(r->function));
		fputs(*r->function ? ": " : "", stdout);
		cli_put(stdout, r->text, strlen(r->text));
		printf("%s%s\n", *r->code ? " " : "", r->code);
		if (*r->advice)
			printf("    %s%s\n", r->found ? "(the line is where it must be meant) " : "", r->advice);
	}
	if (!i && in->verdict && in->kernel && in->kernel[0].has_spills)
		puts("\nptxas has no remark: no spills, no serialised wgmma, no setmaxnreg ignored");
}

void inspect_text(const inspected *in)
{
	cli_put(stdout, in->path, strlen(in->path));
	printf(", %s\n", in->target ? in->target->name : "target not known");
	for (size_t i = 0; i < in->nkernel; i++) {
		const inspect_kernel *k = &in->kernel[i];
		fputs("\nkernel ", stdout);
		cli_put(stdout, k->name, strlen(k->name));
		putchar('\n');
		put_usage(k);
		put_occupancy(in, k);
		put_flow(in, k);
		put_shared(k);
		put_barriers(k);
		put_sass(in, k);
	}
	put_remarks(in);
	if (*in->note)
		fputs("\nnote: ", stdout), cli_put(stdout, in->note, strlen(in->note)), putchar('\n');
}
