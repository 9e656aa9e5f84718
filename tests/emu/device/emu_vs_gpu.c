/* SPDX-License-Identifier: MIT */
/*
 * The emulator against a GPU: for every row of the table that the target has and that works on each lane alone, kernels for
 * the combinations of its modifiers (a sample of the large rows), with random operands and special values in all lanes.
 * Results must be the same bit by bit; those of approximate functions within the manual's bound.
 *
 *     emu_vs_gpu [--device NAME] [--lanes N] [--spellings N] [--seed N] [--show N] [--save DIR] [--list]
 *
 * --device: the GPU (default cuda:0); --lanes: threads per spelling (default 1024, a multiple of 128); --spellings: most of
 * a row (150); --show: differences printed (200); --save: writes the PTX of each row to DIR; --list: each row, not only
 * instructions.  CPTX_TABLE_ONLY=add picks one instruction.  Without a GPU the emulator runs alone, and everything counts as
 * skipped.
 */
#include "case.h"

#include <cptx/emu.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	BLOCK = 128,
	MOST_SPELLINGS = 2000,
	LEAST = 24 /* kernels of a row: of few spellings several each, with other constants */
};
static const char target_name[] = "sm_90a";

typedef struct tally {
	uint64_t forms, spellings, cases, within, loose, differ, alone /* cases that only the emulator has run */,
		failed /* rows */;
} tally;

typedef struct side {
	cptx_device *dev; /* NULL: there is none */
	const char *name;
	uint64_t in, out;
	unsigned char *got;
	unsigned version; /* highest it reads */
} side;

typedef struct session {
	unsigned target, lanes, spellings, show, shown;
	uint64_t seed;
	const char *save, *device;
	bool list;
	unsigned char *in;
	side emu, gpu;
} session;

static size_t in_size(const session *s) { return (size_t)MOST_IN * s->lanes * SLOT; }
static size_t out_size(const session *s) { return (size_t)MOST_OUT * s->lanes * SLOT; }

/* ---- one row ---- */

typedef struct row {
	unsigned form, n, version;
	plan *plan;
	char *text;
	source random;
} row;

static void row_free(row *r)
{
	free(r->plan);
	free(r->text);
}

static char *whole_text(const plan *p, unsigned n, unsigned version)
{
	size_t size = 100 + n * (size_t)6000, used;
	char *text = malloc(size);

	if (!text)
		return NULL;
	used = (size_t)snprintf(text, size, ".version %u.%u\n.target %s\n.address_size 64\n", version / 10, version % 10,
	                        target_name);
	for (unsigned i = 0; i < n; i++) {
		char *k = plan_kernel(&p[i], i);
		used += (size_t)snprintf(text + used, size - used, "%s", k ? k : "");
		free(k);
	}
	return text;
}

/* Whether a constraint of the row lets this spelling through. */
static bool legal(const plan *p)
{
	char *text = whole_text(p, 1, p->version);
	cptx_module *m = text ? cptx_parse(text, strlen(text), NULL) : NULL;
	bool ok = m && !cptx_module_error(m);

	cptx_module_destroy(m);
	free(text);
	return ok;
}

/* NULL, or why there is nothing to run. */
static const char *row_make(const session *s, unsigned form, row *r)
{
	const char *why = plan_refuses(form);
	unsigned n;

	*r = (row){ .form = form, .random = { spell_seed(form) ^ s->seed } };
	if (why)
		return why;
	spelling *all = spell_all(form, s->spellings, &n);
	unsigned times = n < LEAST ? (LEAST + n - 1) / n : 1;
	r->plan = calloc(n * times + 1u, sizeof *r->plan);
	for (unsigned i = 0; r->plan && i < n * times; i++) {
		plan *p = &r->plan[r->n];
		const char *not = plan_make(p, &all[i % n], s->target, &r->random);
		why = why ? why : not ;
		if (not || !legal(p))
			continue;
		r->version = p->version > r->version ? p->version : r->version;
		r->n++;
	}
	free(all);
	if (r->n)
		r->text = whole_text(r->plan, r->n, r->version);
	return !r->n ? (why ? why : "no spelling is legal") : r->text ? NULL : "out of memory";
}

static void save(const session *s, const row *r)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s-%u.ptx", s->save, arch_ops[arch_forms[r->form].op].name, r->form);
	f = fopen(path, "w");
	if (!f || fputs(r->text, f) < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	if (f)
		fclose(f);
}

/* ---- running ---- */

static void fill(session *s, const plan *p, source *random)
{
	for (unsigned i = 0; i < p->nin; i++)
		for (unsigned l = 0; l < s->lanes; l++) {
			unsigned char *to = s->in + ((size_t)i * s->lanes + l) * SLOT;
			bool like = i && p->in[i - 1].type == p->in[i].type;
			operand_fill(to, p->in[i].type, like ? to - (size_t)s->lanes * SLOT : NULL, random);
		}
}

static bool run(const session *s, side *d, cptx_program *program, unsigned number, unsigned nin, cptx_error *err)
{
	char name[16];
	uint32_t lanes = s->lanes;

	snprintf(name, sizeof name, "k%u", number);
	return cptx_mem_write(d->dev, d->in, s->in, (size_t)nin * s->lanes * SLOT, err) &&
	       cptx_launch_once(
			   program, name,
			   &(cptx_launch_opt){ .grid = { lanes / BLOCK }, .block = { BLOCK }, CPTX_ARGS(d->in, d->out, lanes) }, NULL,
			   err) &&
	       cptx_mem_read(d->dev, d->got, d->out, out_size(s), err);
}

static void put_hex(const unsigned char *p, unsigned bits)
{
	for (unsigned i = bits < 8 ? 1 : bits / 8; i-- > 0;)
		printf("%02x", p[i]);
}

static void show(session *s, const plan *p, unsigned out, unsigned lane)
{
	size_t at = ((size_t)out * s->lanes + lane) * SLOT;

	if (s->shown++ >= s->show)
		return;
	printf("  %s%s%s%s:", p->before, p->opcode, p->operands, *p->after ? "; ..." : "");
	for (unsigned i = 0; i < p->nin; i++) {
		printf(" %%i%u=", i);
		put_hex(s->in + ((size_t)i * s->lanes + lane) * SLOT, p->in[i].bits);
	}
	printf("  %%o%u: %s ", out, s->gpu.name);
	put_hex(s->gpu.got + at, p->out[out].bits);
	printf(", emulator ");
	put_hex(s->emu.got + at, p->out[out].bits);
	printf("\n");
}

static void compare_all(session *s, const plan *p, tally *t)
{
	size_t stride = (size_t)s->lanes * SLOT;
	unsigned shown = 0;

	for (unsigned l = 0; l < s->lanes; l++) {
		enum verdict_of worst = SAME;
		unsigned which = 0;
		for (unsigned i = 0; i < p->nout; i++) {
			size_t at = ((size_t)i * s->lanes + l) * SLOT;
			enum verdict_of v = compare(p, i, s->in + (size_t)l * SLOT, stride, s->gpu.got + at, s->emu.got + at);
			which = v > worst ? i : which;
			worst = v > worst ? v : worst;
		}
		t->cases++;
		t->within += worst == WITHIN_BOUND;
		t->loose += worst == NO_GUARANTEE;
		t->differ += worst == DIFFERENT;
		if (worst == DIFFERENT && shown++ < 3)
			show(s, p, which, l);
	}
}

/* The row's programs on both; what fails is told, and counts as a failed row. */
static cptx_program *load(const side *d, const row *r, cptx_error *err)
{
	const cptx_load_opt opt = { .name = arch_forms[r->form].text };

	return cptx_device_load_text(d->dev, r->text, strlen(r->text), &opt, err);
}

static void row_run(session *s, row *r, tally *t)
{
	cptx_error err = { 0 };
	bool both = s->gpu.dev && r->version <= s->gpu.version;
	cptx_program *a = load(&s->emu, r, &err), *b = both ? load(&s->gpu, r, &err) : NULL;

	if (s->gpu.dev && !both)
		printf("  %s: the GPU's driver reads PTX up to %u.%u, the row needs %u.%u\n", arch_forms[r->form].text,
		       s->gpu.version / 10, s->gpu.version % 10, r->version / 10, r->version % 10);
	for (unsigned i = 0; i < r->n && !err.code; i++) {
		fill(s, &r->plan[i], &r->random);
		if (!run(s, &s->emu, a, i, r->plan[i].nin, &err) || (both && !run(s, &s->gpu, b, i, r->plan[i].nin, &err)))
			break;
		t->spellings++;
		if (both)
			compare_all(s, &r->plan[i], t);
		else
			t->alone += s->lanes;
	}
	if (err.code) {
		printf("  %s: %s\n", arch_forms[r->form].text, err.text);
		t->failed++;
	}
	t->forms++;
	cptx_program_destroy(a);
	cptx_program_destroy(b);
}

/* ---- all rows ---- */

static void print_tally(const char *name, const tally *t)
{
	printf("%-14s %3" PRIu64 " rows, %5" PRIu64 " spellings, %8" PRIu64 " cases, %" PRIu64 " differ", name, t->forms,
	       t->spellings, t->cases, t->differ);
	if (t->within)
		printf("; %" PRIu64 " within the manual's bound", t->within);
	if (t->loose)
		printf("; %" PRIu64 " where it promises nothing", t->loose);
	if (t->alone)
		printf("; %" PRIu64 " by the emulator alone", t->alone);
	printf("%s\n", t->failed ? "; FAILED" : "");
}

static void add(tally *to, const tally *t)
{
	to->forms += t->forms;
	to->spellings += t->spellings;
	to->cases += t->cases;
	to->within += t->within;
	to->loose += t->loose;
	to->differ += t->differ;
	to->alone += t->alone;
	to->failed += t->failed;
}

/* Chapters of the manual whose instructions work on each lane alone, and such instructions of others. */
static bool is_scalar(unsigned op)
{
	static const char *const chapters[] = { "Integer Arithmetic", "Extended-Precision", "Floating Point",
		                                    "Half Precision",     "Mixed Precision",    "Comparison and Selection",
		                                    "Logic and Shift",    "SIMD Video" };
	static const uint16_t others[] = { CPTX_OP_MOV, CPTX_OP_PRMT, CPTX_OP_CVT, CPTX_OP_CVT_PACK };

	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		if (others[i] == op)
			return true;
	for (unsigned i = 0; i < ARRAY_LEN(chapters); i++)
		if (!strncmp(arch_ops[op].chapter, chapters[i], strlen(chapters[i])))
			return true;
	return false;
}

static void op_run(session *s, unsigned op, tally *t)
{
	for (unsigned form = arch_ops[op].form; form < arch_ops[op].form + arch_ops[op].nform; form++) {
		row r;
		tally one = { 0 };
		if (!arch_avails[arch_forms[form].avail][s->target] || !spell_wanted(form))
			continue;
		const char *why = row_make(s, form, &r);
		if (why) {
			printf("  %s: %s\n", arch_forms[form].text, why);
		} else {
			if (s->save)
				save(s, &r);
			row_run(s, &r, &one);
			if (s->list)
				print_tally(arch_forms[form].text, &one);
			add(t, &one);
		}
		row_free(&r);
	}
}

/* ---- the program ---- */

static bool side_open(session *s, side *d, cptx_device *dev, cptx_error *err)
{
	d->dev = dev;
	if (!dev)
		return false;
	d->version = cptx_device_get_info(dev)->ptx;
	d->in = cptx_mem_alloc(dev, in_size(s), err);
	d->out = cptx_mem_alloc(dev, out_size(s), err);
	d->got = calloc(1, out_size(s));
	return d->got && d->in && d->out && cptx_mem_fill8(dev, d->out, 0, out_size(s), err);
}

static void side_close(side *d)
{
	if (d->dev && d->in)
		cptx_mem_free(d->dev, d->in);
	if (d->dev && d->out)
		cptx_mem_free(d->dev, d->out);
	cptx_device_close(d->dev);
	free(d->got);
}

static bool number(const char *name, const char *text, unsigned long lo, unsigned long hi, unsigned long *to)
{
	char *end;

	*to = strtoul(text ? text : "", &end, 0);
	if (text && end != text && !*end && *to >= lo && *to <= hi)
		return true;
	fprintf(stderr, "%s takes a number from %lu to %lu\n", name, lo, hi);
	return false;
}

static bool arguments(session *s, int argc, char **argv)
{
	unsigned long n;

	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (!strcmp(name, "--list")) {
			s->list = true;
			continue;
		}
		if (!strcmp(name, "--save") && value)
			s->save = value;
		else if (!strcmp(name, "--device") && value)
			s->device = value;
		else if (!strcmp(name, "--lanes") && number(name, value, BLOCK, 1 << 20, &n))
			s->lanes = (unsigned)n / BLOCK * BLOCK;
		else if (!strcmp(name, "--spellings") && number(name, value, 1, MOST_SPELLINGS, &n))
			s->spellings = (unsigned)n;
		else if (!strcmp(name, "--show") && number(name, value, 0, 1 << 20, &n))
			s->show = (unsigned)n;
		else if (!strcmp(name, "--seed") && number(name, value, 0, UINT32_MAX, &n))
			s->seed = n;
		else {
			fprintf(stderr, "usage: emu_vs_gpu [--device NAME] [--lanes N] [--spellings N] [--seed N] [--show N] [--save "
			                "DIR] [--list]\n");
			return false;
		}
		i++;
	}
	return true;
}

static int run_all(session *s)
{
	tally all = { 0 };
	unsigned passed = 0, failed = 0, skipped = 0;

	for (unsigned op = 0; op < arch_nop; op++) {
		tally t = { 0 };
		if (!is_scalar(op))
			continue;
		op_run(s, op, &t);
		if (!t.forms)
			continue;
		print_tally(arch_ops[op].name, &t);
		if (t.differ || t.failed)
			failed++;
		else if (t.cases)
			passed++;
		else
			skipped++;
		add(&all, &t);
		fflush(stdout);
	}
	print_tally("all", &all);
	printf("emu_vs_gpu: %u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed != 0;
}

int main(int argc, char **argv)
{
	session s = { .lanes = 1024, .spellings = 150, .show = 200, .device = "cuda:0" };
	cptx_error err = { 0 }, none = { 0 };
	int status = 2;

	if (!arguments(&s, argc, argv))
		return 2;
	s.target = arch_target_index(cptx_target_find(target_name));
	s.emu.name = "emulator";
	s.gpu.name = "GPU";
	s.in = calloc(1, in_size(&s));
	if (!side_open(&s, &s.emu, cptx_emu_open(target_name, NULL, &err), &err) || !s.in) {
		fprintf(stderr, "%s\n", err.code ? err.text : "out of memory");
	} else {
		cptx_device *gpu = cptx_device_open(s.device, &none);
		const char *has = gpu ? cptx_device_get_info(gpu)->target : NULL;
		if (gpu && (!has || strcmp(has, target_name))) {
			printf("SKIP the GPU: it is %s, not %s\n", has ? has : "of no target that is known", target_name);
			cptx_device_close(gpu);
			gpu = NULL;
		} else if (!gpu) {
			printf("SKIP the GPU: %s\n", none.text);
		}
		if (gpu)
			printf("%s against the emulator, %s, %u lanes, seed %" PRIu64 "\n", cptx_device_get_info(gpu)->name, target_name,
			       s.lanes, s.seed);
		if (gpu && !side_open(&s, &s.gpu, gpu, &err))
			fprintf(stderr, "%s\n", err.code ? err.text : "out of memory");
		else
			status = run_all(&s);
	}
	side_close(&s.emu);
	side_close(&s.gpu);
	free(s.in);
	return status;
}
