/* SPDX-License-Identifier: MIT */
/*
 * The emulator's matrix instructions against a GPU: for every form of mma, wmma, wgmma, ldmatrix, stmatrix and movmatrix
 * that sm_90a has, kernels with operands of all kinds: small integers, similar and wild exponents, zeros, cancellation, any
 * bits.  Results must be the same bit by bit where the order of sums is known (emu/tensor/dot.h); those of floating point
 * with a sparse A, where it is not, within a bound that follows from the format.  mma.m8n8k4 of f16 is left out: what ptxas
 * makes of it for sm_80 and later is no product of matrices.
 *
 *     matrix_vs_gpu [--device NAME] [--cases N] [--seed N] [--show N] [--only TEXT]
 *
 * --device: the GPU (default cuda:0); --cases: of each form and kind of operands (default 64; wgmma has an eighth);
 * --show: differences printed of a form (3); --only: forms that contain TEXT.  Without a GPU the emulator runs alone, and
 * everything counts as skipped.
 */
#include "../move_forms.h"
#include "../wgmma_forms.h"

#include <cptx/emu.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char target[] = "sm_90a";

typedef struct session {
	cptx_device *emu, *gpu; /* gpu NULL: there is none */
	const char *device, *only;
	unsigned cases, show;
	uint64_t seed;
	unsigned passed, failed, skipped;
	uint64_t results, within, zeros, nans, differ; /* elements */
} session;

typedef struct tally {
	uint64_t results, within, zeros, nans, differ;
} tally;

/* Of a form of which it is not known in which order it adds. */
static bool order_unknown(const form *f) { return f->sparse && form_is_float(f->a); }

/* ---- one element ---- */

typedef struct element {
	const form *f;
	const char *what, *fill;
	unsigned row, col;
	uint64_t c, emu, gpu;
	double want, magnitude;
	unsigned bits; /* that a sum keeps */
} element;

static bool is_nan(enum cptx_type t, uint64_t bits) { return form_is_float(t) && isnan(form_value(t, bits)); }

static void compare(session *s, tally *t, const element *e)
{
	double emu = form_value(e->f->d, e->emu), gpu = form_value(e->f->d, e->gpu);

	t->results++;
	if (!s->gpu || e->emu == e->gpu)
		return;
	if (is_nan(e->f->d, e->emu) && is_nan(e->f->d, e->gpu)) {
		t->nans++;
	} else if (emu == 0 && gpu == 0) {
		t->zeros++;
	} else if (order_unknown(e->f) && fabs(emu - gpu) <= 2 * form_bound(e->f, e->bits, e->want, e->magnitude)) {
		t->within++;
		return;
	} else {
		t->differ++;
	}
	if (t->differ + t->nans + t->zeros <= s->show)
		printf("    %s, %s, (%u, %u): emulator %0*" PRIx64 " (%.9g), GPU %0*" PRIx64 " (%.9g), C %" PRIx64
		       " (%.9g), in double %.17g\n",
		       e->what, e->fill, e->row, e->col, (int)cptx_type_bits(e->f->d) / 4, e->emu, emu,
		       (int)cptx_type_bits(e->f->d) / 4, e->gpu, gpu, e->c, form_value(e->f->c, e->c), e->want);
}

static void finish(session *s, const char *what, const tally *t)
{
	uint64_t bad = t->differ + t->nans + t->zeros;

	s->results += t->results, s->within += t->within, s->zeros += t->zeros, s->nans += t->nans, s->differ += t->differ;
	printf("%-9s %s: %" PRIu64 " results", !s->gpu ? "skipped" : bad ? "DIFFERS" : "ok", what, t->results);
	if (t->within)
		printf(", %" PRIu64 " within the bound", t->within);
	if (bad)
		printf(", %" PRIu64 " differ, %" PRIu64 " NaN and %" PRIu64 " zeros have other bits", t->differ, t->nans, t->zeros);
	printf("\n");
	if (!s->gpu)
		s->skipped++;
	else if (bad)
		s->failed++;
	else
		s->passed++;
}

static void broken(session *s, const char *what, const cptx_error *err)
{
	printf("FAILED    %s: %s\n", what, err->text);
	s->failed++;
}

/* An element of A, of B: for who wants to compute the sum by hand. */
static void print_terms(const session *s, const form *f, const uint64_t *a, const uint64_t *b, const uint16_t *at,
                        const element *e)
{
	if (!s->gpu || e->emu == e->gpu || !s->show)
		return;
	printf("      ");
	for (unsigned j = 0; j < f->ka; j++) {
		unsigned k = f->sparse ? at[e->row * f->ka + j] : j;
		printf(" %" PRIx64 "*%" PRIx64, a[e->row * f->ka + j], b[k * f->n + e->col]);
	}
	printf("\n");
}

/* ---- mma and wmma: form_case ---- */

typedef bool (*run_fn)(const void *form, cptx_device *dev, const char *target, form_case *c, size_t n, cptx_error *err);

static bool run_mma(const void *f, cptx_device *dev, const char *name, form_case *c, size_t n, cptx_error *err)
{
	return form_run(f, dev, name, c, n, err);
}

static bool run_wmma(const void *w, cptx_device *dev, const char *name, form_case *c, size_t n, cptx_error *err)
{
	return wm_run(w, dev, name, c, n, err);
}

static void compare_cases(session *s, tally *t, const form *f, enum form_fill fill, const form_case *emu,
                          const form_case *gpu)
{
	for (size_t i = 0; i < s->cases; i++)
		for (unsigned j = 0; j < f->m * f->n; j++) {
			element e = {
				.f = f, .what = f->opcode, .fill = form_fill_name(fill), .row = j / f->n, .col = j % f->n, .bits = 22
			};
			uint64_t before = t->differ;
			e.c = emu[i].c[j], e.emu = emu[i].d[j], e.gpu = gpu[i].d[j];
			e.want = form_expected(f, &emu[i], e.row, e.col, &e.magnitude);
			compare(s, t, &e);
			if (t->differ > before && t->differ <= s->show)
				print_terms(s, f, emu[i].a, emu[i].b, emu[i].at, &e);
		}
}

static void one_form(session *s, const form *f, const void *how, run_fn run)
{
	form_case *emu = calloc(s->cases, sizeof *emu), *gpu = calloc(s->cases, sizeof *gpu);
	cptx_error err = { 0 };
	tally t = { 0 };
	bool ok = emu && gpu;

	for (unsigned fill = 0; ok && fill < FILL_COUNT; fill++) {
		for (size_t i = 0; i < s->cases; i++) {
			form_fill(f, &emu[i], fill, &s->seed);
			gpu[i] = emu[i];
		}
		ok = run(how, s->emu, target, emu, s->cases, &err) && (!s->gpu || run(how, s->gpu, target, gpu, s->cases, &err));
		if (ok)
			compare_cases(s, &t, f, fill, emu, gpu);
	}
	if (ok)
		finish(s, f->opcode, &t);
	else
		broken(s, f->opcode, &err);
	free(emu);
	free(gpu);
}

/* ---- wgmma ---- */

static void one_wgmma_run(session *s, tally *t, const wg_form *w, enum form_fill fill, const wg_case *emu,
                          const wg_case *gpu)
{
	const form *f = &w->f;
	char what[256];

	wg_describe(w, what, sizeof what);
	for (unsigned j = 0; j < WG_ROWS * f->n; j++) {
		element e = { .f = f, .what = what, .fill = form_fill_name(fill), .row = j / f->n, .col = j % f->n };
		uint64_t before = t->differ;
		e.bits = f->abits == 8 ? 12 : 22;
		e.c = emu->c[j], e.emu = emu->d[j], e.gpu = gpu->d[j];
		e.want = wg_expected(w, emu, e.row, e.col, &e.magnitude);
		compare(s, t, &e);
		if (t->differ > before && t->differ <= s->show)
			print_terms(s, f, emu->a, emu->b, emu->at, &e);
	}
}

static void one_wgmma(session *s, const char *opcode)
{
	size_t n = s->cases / 8 ? s->cases / 8 : 1;
	wg_case *emu = calloc(1, sizeof *emu), *gpu = calloc(1, sizeof *gpu);
	cptx_error err = { 0 };
	tally t = { 0 };
	bool ok = emu && gpu;

	for (size_t i = 0; ok && i < n * FILL_COUNT; i++) {
		enum form_fill fill = (enum form_fill)(i % FILL_COUNT);
		wg_form w;
		while (!wg_parse(&w, opcode, &s->seed)) /* a layout that is too large */
			;
		wg_fill(&w, emu, fill, &s->seed);
		*gpu = *emu;
		ok = wg_run(&w, s->emu, target, emu, 1, &err) && (!s->gpu || wg_run(&w, s->gpu, target, gpu, 1, &err));
		if (ok)
			one_wgmma_run(s, &t, &w, fill, emu, gpu);
	}
	if (ok)
		finish(s, opcode, &t);
	else
		broken(s, opcode, &err);
	free(emu);
	free(gpu);
}

/* ---- moves ---- */

static void one_move(session *s, const char *opcode)
{
	move_case *emu = calloc(s->cases, sizeof *emu), *gpu = calloc(s->cases, sizeof *gpu);
	cptx_error err = { 0 };
	move_form f;
	tally t = { 0 };

	for (size_t i = 0; emu && gpu && i < s->cases; i++) {
		move_fill(&emu[i], &s->seed);
		gpu[i] = emu[i];
	}
	if (!emu || !gpu || !move_parse(&f, opcode) || !move_run(&f, s->emu, target, emu, s->cases, &err) ||
	    (s->gpu && !move_run(&f, s->gpu, target, gpu, s->cases, &err))) {
		broken(s, opcode, &err);
	} else {
		for (size_t i = 0; i < s->cases; i++)
			for (unsigned j = 0; j < MOVE_WORDS; j++) {
				t.results++;
				t.differ += s->gpu && emu[i].out[j] != gpu[i].out[j];
			}
		finish(s, opcode, &t);
	}
	free(emu);
	free(gpu);
}

/* ---- all ---- */

static bool wanted(const session *s, const char *opcode) { return !s->only || strstr(opcode, s->only); }

static void run_all(session *s)
{
	for (size_t i = 0; i < form_nmma; i++) {
		form f;
		if (wanted(s, form_mma[i]) && form_parse(&f, form_mma[i]))
			one_form(s, &f, &f, run_mma);
	}
	for (size_t i = 0; i < form_nwmma; i++) {
		wm_form w;
		if (wanted(s, form_wmma[i]) && wm_parse(&w, form_wmma[i], &s->seed))
			one_form(s, &w.f, &w, run_wmma);
	}
	for (size_t i = 0; i < form_nwgmma; i++)
		if (wanted(s, form_wgmma[i]))
			one_wgmma(s, form_wgmma[i]);
	for (size_t i = 0; i < form_nmove; i++)
		if (wanted(s, form_move[i]))
			one_move(s, form_move[i]);
}

static bool arguments(session *s, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (!value)
			return false;
		if (!strcmp(argv[i], "--device"))
			s->device = value;
		else if (!strcmp(argv[i], "--only"))
			s->only = value;
		else if (!strcmp(argv[i], "--cases"))
			s->cases = (unsigned)strtoul(value, NULL, 10);
		else if (!strcmp(argv[i], "--show"))
			s->show = (unsigned)strtoul(value, NULL, 10);
		else if (!strcmp(argv[i], "--seed"))
			s->seed = strtoull(value, NULL, 10);
		else
			return false;
	}
	return s->cases > 0;
}

int main(int argc, char **argv)
{
	session s = { .device = "cuda:0", .cases = 64, .show = 3, .seed = 1 };
	cptx_error err = { 0 };

	if (!arguments(&s, argc, argv)) {
		fprintf(stderr, "usage: matrix_vs_gpu [--device NAME] [--cases N] [--seed N] [--show N] [--only TEXT]\n");
		return 2;
	}
	s.emu = cptx_emu_open(target, NULL, &err);
	if (!s.emu) {
		fprintf(stderr, "matrix_vs_gpu: %s\n", err.text);
		return 1;
	}
	s.gpu = cptx_device_open(s.device, &err);
	if (!s.gpu)
		printf("no GPU to compare with: %s\n", err.text);
	else if (cptx_device_get_info(s.gpu)->compute_capability != 90) {
		printf("%s is no GPU of compute capability 9.0, which %s needs\n", cptx_device_get_info(s.gpu)->name, target);
		cptx_device_close(s.gpu);
		s.gpu = NULL;
	}
	run_all(&s);
	printf("%" PRIu64 " results on %s and the emulator: %" PRIu64 " within the bound where the order is not known, %" PRIu64
	       " differ, %" PRIu64 " NaN and %" PRIu64 " zeros have other bits\n",
	       s.results, s.gpu ? cptx_device_get_info(s.gpu)->name : "no GPU", s.within, s.differ, s.nans, s.zeros);
	printf("matrix_vs_gpu: %u passed, %u failed, %u skipped\n", s.passed, s.failed, s.skipped);
	cptx_device_close(s.gpu);
	cptx_device_close(s.emu);
	return s.failed != 0;
}
