/* SPDX-License-Identifier: MIT */
/* Findings: what is wrong with a kernel, said once for each instruction. */
#include "emu/core/finding.h"
#include "emu/core/cluster.h"
#include "emu/core/grid.h"
#include "emu/core/machine.h"
#include "emu/core/registers.h"
#include "base/printable.h"

#include <stdio.h>
#include <stdlib.h>

/* section NULL: an error. */
static const struct {
	const char *name;
	bool ends;
	const char *section, *sentence;
} codes[CPTX_FIND_COUNT] = {
	{ "none", false, NULL, NULL },
#define CPTX_FINDING_(id, text, ends) { text, ends, NULL, NULL },
#define CPTX_LENIENT_(id, text, ends, section, sentence) { text, ends, section, sentence },
#include <cptx/findings.def>
#undef CPTX_FINDING_
};

static enum cptx_finding_rank rank_of(const emu_machine *m, enum cptx_finding_code code)
{
	return codes[code].section && !m->opt.pedantic ? CPTX_FIND_WARNING : CPTX_FIND_ERROR;
}

const char *cptx_finding_name(enum cptx_finding_code code)
{
	return (unsigned)code < CPTX_FIND_COUNT ? codes[code].name : NULL;
}

/* The line of C where the text has one, else of the text. */
cptx_site emu_site_of(const emu_program *p, const emu_op *op)
{
	const ir_item *it = op ? op->item : NULL;

	if (!it || !it->file)
		return NOWHERE;
	cptx_site at = { p->module->file[it->file - 1], it->line };
	cptx_site from = p->ptx ? cptx_ptx_origin(p->ptx, it->line) : NOWHERE;
	return from.file ? from : at;
}

void emu_put_op(buf *b, const emu_grid *g, const emu_op *op)
{
	char opcode[ARCH_OPCODE];
	cptx_site at = emu_site_of(g->image->program, op);

	*arch_put_opcode(opcode, op->form, ir_mods(op->item)) = 0;
	buf_str(b, opcode);
	if (at.file)
		buf_printf(b, " (%s:%u)", at.file, (unsigned)at.line);
}

void emu_thread_of(const emu_warp *w, unsigned lane, uint32_t out[3])
{
	const uint32_t *b = w->grid->block;
	uint32_t t = w->number * WARP + lane;

	out[0] = t % b[0];
	out[1] = t / b[0] % b[1];
	out[2] = t / b[0] / b[1];
}

/* ---- of a cluster ---- */

bool emu_found_before(emu_warp *w, const emu_op *op, enum cptx_finding_code code)
{
	for (emu_found *f = w->cluster->found; f; f = f->next)
		if (f->code == code && f->op == op) {
			f->count++;
			return true;
		}
	return false;
}

static void add(emu_warp *w, const emu_op *op, int lane, enum cptx_finding_code code, const char *what)
{
	emu_cluster *c = w->cluster;
	size_t size = strlen(what) + 1;
	emu_found **end = &c->found;

	enum cptx_finding_rank rank = rank_of(w->grid->machine, code);
	if (c->nfound[rank] >= w->grid->machine->opt.most_findings)
		return;
	emu_found *f = NEW_SIZED(emu_found, sizeof *f + size);
	if (!f) {
		c->no_memory = c->failed = true;
		return;
	}
	*f = (emu_found){ .code = code, .rank = rank, .op = op, .has_thread = lane != EMU_ALL, .count = 1 };
	memcpy(f->block, w->cta->id, sizeof f->block);
	if (f->has_thread)
		emu_thread_of(w, (unsigned)lane, f->thread);
	memcpy(f->text, what, size);
	while (*end)
		end = &(*end)->next;
	*end = f;
	c->nfound[rank]++;
}

static void find(emu_warp *w, const emu_op *op, int lane, enum cptx_finding_code code, const char *format, va_list ap)
{
	enum { MOST = 8192 /* bytes; who waits for what takes many */ };
	char what[MOST], shown[MOST];

	if (codes[code].ends && rank_of(w->grid->machine, code) == CPTX_FIND_ERROR)
		w->cluster->failed = true;
	if (emu_found_before(w, op, code))
		return;
	vsnprintf(what, sizeof what, format, ap);
	printable(shown, sizeof shown, what, strlen(what)); /* what a kernel asserts may have any bytes */
	add(w, op, lane, code, shown);
}

enum emu_step emu_find(emu_warp *w, const emu_op *op, int lane, enum cptx_finding_code code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	find(w, op, lane, code, format, ap);
	va_end(ap);
	return STEP_FAULT;
}

bool emu_lenient(emu_warp *w, const emu_op *op, int lane, enum cptx_finding_code code, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	find(w, op, lane, code, format, ap);
	va_end(ap);
	return rank_of(w->grid->machine, code) == CPTX_FIND_WARNING;
}

void emu_found_free(emu_cluster *c)
{
	while (c->found) {
		emu_found *next = c->found->next;
		free(c->found);
		c->found = next;
	}
	memset(c->nfound, 0, sizeof c->nfound);
}

/* ---- of the machine ---- */

/* "kernel k, mma.sync..., block (x, y, z), thread (x, y, z): what" */
static const char *full_text(emu_machine *m, const cptx_emu_finding *f, const char *what)
{
	char shown[NAME_SHOWN + 1];
	buf b;

	buf_init(&b, NULL);
	buf_printf(&b, "kernel %s", name_shown(f->kernel, shown));
	if (*f->instruction)
		buf_printf(&b, ", %s", f->instruction);
	buf_printf(&b, ", block (%u, %u, %u)", f->block[0], f->block[1], f->block[2]);
	if (f->has_thread)
		buf_printf(&b, ", thread (%u, %u, %u)", f->thread[0], f->thread[1], f->thread[2]);
	buf_printf(&b, ": %s%s: %s", f->rank == CPTX_FIND_WARNING ? "warning: " : "", codes[f->code].name, what);
	if (codes[f->code].section)
		buf_printf(&b, ".  PTX manual, %s: %s%s", codes[f->code].section, codes[f->code].sentence,
		           f->rank == CPTX_FIND_WARNING ? ".  GPUs take it" : "");
	buf_put(&b, "", 1);
	const char *text = b.failed ? NULL : arena_strdup(&m->text, b.p);
	buf_free(&b);
	return text;
}

/* The same finding at the same instruction, made before. */
static emu_kept *known(emu_machine *m, const emu_found *x, cptx_site at, const char *kernel)
{
	for (size_t i = 0; i < m->nfinding; i++) {
		const cptx_emu_finding *f = &m->finding[i].f;
		if (f->code == x->code && m->finding[i].op == x->op && f->at.line == at.line && !strcmp(f->kernel, kernel))
			return &m->finding[i];
	}
	return NULL;
}

static bool room(emu_machine *m) { return array_room(&m->finding, m->nfinding, &m->cap_finding, sizeof *m->finding, 16); }

/* Behind room(). */
static bool put(emu_machine *m, const cptx_emu_finding *f, const emu_op *op)
{
	const cptx_emu_finding *snapshot = ARENA_COPY(&m->text, cptx_emu_finding, f, 1);

	if (!snapshot)
		return false;
	m->finding[m->nfinding++] = (emu_kept){ *f, snapshot, op };
	m->nwarning += f->rank == CPTX_FIND_WARNING;
	return true;
}

/* Whether as many as are wanted have been kept of that rank. */
static bool is_full(const emu_machine *m, enum cptx_finding_rank rank)
{
	size_t n = rank == CPTX_FIND_WARNING ? m->nwarning : m->nfinding - m->nwarning;

	return n >= m->opt.most_findings;
}

static bool put_found(emu_machine *m, const emu_found *x, cptx_emu_finding f)
{
	char opcode[ARCH_OPCODE] = "";

	if (!room(m))
		return false;
	memcpy(f.block, x->block, sizeof f.block);
	memcpy(f.thread, x->thread, sizeof f.thread);
	if (x->op && x->op->item)
		*arch_put_opcode(opcode, x->op->form, ir_mods(x->op->item)) = 0;
	f.at.file = f.at.file ? arena_strdup(&m->text, f.at.file) : NULL;
	f.kernel = arena_strdup(&m->text, f.kernel);
	f.instruction = arena_strdup(&m->text, opcode);
	f.text = f.kernel && f.instruction ? full_text(m, &f, x->text) : NULL;
	return f.text && put(m, &f, x->op);
}

void emu_find_host(emu_machine *m, enum cptx_finding_code code, const char *what)
{
	cptx_emu_finding f = { .code = code, .kernel = "", .instruction = "", .count = 1 };
	buf b;

	if (is_full(m, CPTX_FIND_ERROR) || !room(m))
		return;
	buf_init(&b, NULL);
	buf_printf(&b, "cptx_mem_free: %s: %s", codes[code].name, what);
	buf_put(&b, "", 1);
	f.text = b.failed ? NULL : arena_strdup(&m->text, b.p);
	buf_free(&b);
	if (f.text)
		put(m, &f, NULL);
}

/* What a caller has been given stays as it is: only the launching thread counts on. */
const cptx_emu_finding *emu_finding_now(emu_machine *m, size_t i)
{
	emu_kept *kept = i < m->nfinding ? &m->finding[i] : NULL;

	if (!kept)
		return NULL;
	if (kept->snapshot->count != kept->f.count) {
		const cptx_emu_finding *now = ARENA_COPY(&m->text, cptx_emu_finding, &kept->f, 1);
		if (now)
			kept->snapshot = now;
	}
	return kept->snapshot;
}

static bool keep(emu_machine *m, emu_grid *g, const emu_found *x)
{
	cptx_emu_finding f = { .code = x->code,
		                   .rank = x->rank,
		                   .kernel = g->image->kernel->name,
		                   .at = emu_site_of(g->image->program, x->op),
		                   .has_thread = x->has_thread,
		                   .count = x->count };
	emu_kept *old = known(m, x, f.at, f.kernel);

	if (f.rank == CPTX_FIND_ERROR && !g->wrong)
		g->wrong = old ? (size_t)(old - m->finding) + 1 : is_full(m, f.rank) ? SIZE_MAX : m->nfinding + 1;
	if (old)
		old->f.count += x->count;
	return old || is_full(m, f.rank) || put_found(m, x, f);
}

bool emu_found_merge(emu_machine *m, emu_cluster *c)
{
	bool ok = true;

	for (const emu_found *f = c->found; f; f = f->next)
		ok &= keep(m, c->grid, f);
	emu_found_free(c);
	return ok;
}

bool emu_need(emu_warp *w, const emu_op *op, uint32_t slot, uint32_t mask, const char *what)
{
	uint32_t missing = mask & ~*emu_defined(w, slot);

	if (missing && !w->grid->machine->opt.no_undefined)
		emu_find(w, op, __builtin_ctz(missing), CPTX_FIND_UNDEFINED,
		         "%s was never written in this thread, or comes from what was not", what);
	return true;
}

void emu_need_arg(emu_warp *w, const emu_op *op, const emu_arg *a, uint32_t mask, const char *what)
{
	if (a->kind == ARG_ADDR ? a->base : a->kind == ARG_REG)
		emu_need(w, op, a->slot, mask, what);
	for (unsigned i = 0; a->kind == ARG_VEC && i < a->count; i++)
		emu_need(w, op, a->slots[i], mask, what);
}
