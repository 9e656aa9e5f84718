/* SPDX-License-Identifier: MIT */
/*
 * cptx diff: two kernels beside each other: what they take, their PTX, their machine code.
 *
 * The items of parsed bodies are aligned by what they are without the names of registers and labels; those that are aligned
 * are the same if one renaming makes all of a body so.
 */
#include "inspect/align.h"
#include "inspect/diff.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_ARCH, OPTION_BRIEF };
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "assemble both for that target; default: that of each text", "@arch" },
	[OPTION_BRIEF] = { "brief", 'b', NULL, "no lines, only how many differ", NULL },
};

enum { TROUBLE = 2 };

/* ---- names: one renaming for both bodies ---- */

static bool room_for(diff_renaming *r, int side, uint32_t name)
{
	if (name < r->n[side])
		return true;
	size_t n = 2 * (size_t)name + 64;
	uint32_t *grown = realloc(r->to[side], n * sizeof *grown);
	if (!grown)
		return false;
	memset(grown + r->n[side], 0, (n - r->n[side]) * sizeof *grown);
	r->to[side] = grown, r->n[side] = n;
	return true;
}

bool diff_maps(diff_renaming *r, uint32_t a, uint32_t b, bool *trouble)
{
	if (!room_for(r, 0, a) || !room_for(r, 1, b)) {
		*trouble = true;
		return false;
	}
	if (!r->to[0][a] && !r->to[1][b])
		r->to[0][a] = b + 1, r->to[1][b] = a + 1;
	return r->to[0][a] == b + 1;
}

uint32_t diff_image(const diff_renaming *r, uint32_t a) { return a < r->n[0] ? r->to[0][a] : 0; }

/* Lines of one key are the same if their names correspond. */
static bool same_line(diff_renaming *r, const diff_line *a, const diff_line *b, bool *trouble)
{
	for (size_t i = 0; i < a->nname && i < b->nname; i++)
		if (!diff_maps(r, a->name[i], b->name[i], trouble))
			return false;
	return a->nname == b->nname && diff_same_registers(r, a, b, trouble);
}

/* ---- the report ---- */

typedef struct tally {
	size_t less, more, other, a, b;
	bool rough;
} tally;

/* Names and paths may have any bytes. */
static void put_name(const char *name) { cli_put(stdout, name, strlen(name)); }

static void put_line(char side, const diff_line *l)
{
	printf("%c ", side);
	cli_put(stdout, l->text, l->n);
	putchar('\n');
}

/* Aligns, prints what differs and counts it. */
static void put_lines(tally *t, diff_lines *a, diff_lines *b, bool brief, bool *trouble)
{
	diff_renaming r = { 0 };
	size_t n = 0;
	uint32_t *x = malloc((a->n + 1) * sizeof *x), *y = malloc((b->n + 1) * sizeof *y);
	bool ok = x && y && diff_number(a, b);

	for (size_t i = 0; ok && i < a->n; i++)
		x[i] = a->at[i].same;
	for (size_t i = 0; ok && i < b->n; i++)
		y[i] = b->at[i].same;
	align_pair *p = ok ? align(x, a->n, y, b->n, &n, &t->rough) : NULL;
	*trouble |= !p;
	for (size_t i = 0; p && i < n; i++) {
		const diff_line *la = p[i].a != SIZE_MAX ? &a->at[p[i].a] : NULL, *lb = p[i].b != SIZE_MAX ? &b->at[p[i].b] : NULL;
		bool changed = la && lb && !same_line(&r, la, lb, trouble);
		t->less += !lb, t->more += !la, t->other += changed;
		if (!brief && la && (changed || !lb))
			put_line('-', la);
		if (!brief && lb && (changed || !la))
			put_line('+', lb);
	}
	t->a += a->n, t->b += b->n;
	free(p), free(r.to[0]), free(r.to[1]), free(x), free(y);
}

/* True: no difference. */
static bool put_tally(const char *what, const tally *t)
{
	if (t->less + t->more + t->other)
		printf("%s: %zu lines only in the first, %zu only in the second, %zu with other operands, of %zu and %zu\n", what,
		       t->less, t->more, t->other, t->a, t->b);
	else
		printf("%s: the same, %zu lines\n", what, t->a);
	if (t->rough)
		printf("%s: too much is different to be aligned; lines that are only in one may stand in the other, too\n", what);
	return !(t->less + t->more + t->other);
}

static bool put_number(const char *kernel, const char *what, uint32_t a, uint32_t b)
{
	if (a != b)
		put_name(kernel), printf(": %s %u, %u\n", what, a, b);
	return a == b;
}

static bool put_resources(const inspect_kernel *a, const inspect_kernel *b)
{
	bool same = put_number(a->name, "registers", a->registers, b->registers);

	same &= put_number(a->name, "static shared memory", a->static_smem, b->static_smem);
	same &= put_number(a->name, "stack frame", a->frame, b->frame);
	same &= put_number(a->name, "barriers", a->barriers, b->barriers);
	same &= put_number(a->name, "bytes of machine code", a->code, b->code);
	same &= put_number(a->name, "spill stores", a->spill_stores, b->spill_stores);
	same &= put_number(a->name, "spill loads", a->spill_loads, b->spill_loads);
	same &= put_number(a->name, "threads of a CTA", a->threads, b->threads);
	if (a->has_occupancy && b->has_occupancy)
		same &= put_number(a->name, "resident warps", a->occupancy.warps, b->occupancy.warps);
	if (same)
		put_name(a->name), puts(": resources are the same");
	return same;
}

static const inspect_kernel *twin(const inspected *b, const inspect_kernel *k, size_t i, bool single)
{
	const inspect_kernel *same = inspect_named(b, k->name, strlen(k->name));

	if (same)
		return same;
	return single && b->nkernel == 1 ? &b->kernel[i] : NULL;
}

static void put_missing(const char *kernel, const char *path)
{
	fputs("kernel ", stdout), put_name(kernel), fputs(": only in ", stdout), put_name(path), putchar('\n');
}

/* *unseen: of a kernel the machine code is not known. */
static bool put_kernels(const inspected *a, const inspected *b, bool brief, bool *unseen, bool *trouble)
{
	bool same = true;

	for (size_t i = 0; i < a->nkernel; i++) {
		const inspect_kernel *k = &a->kernel[i], *l = twin(b, k, i, a->nkernel == 1);
		diff_lines la = { 0 }, lb = { 0 };
		tally t = { 0 };
		if (!l) {
			put_missing(k->name, a->path), same = false;
			continue;
		}
		same &= put_resources(k, l);
		bool by_letter = !diff_code_known(k) || !diff_code_known(l);
		*trouble |= !diff_code(&la, k, by_letter) || !diff_code(&lb, l, by_letter);
		if (la.n && lb.n && !*trouble) {
			put_lines(&t, &la, &lb, brief, trouble);
			same &= put_tally("machine code", &t);
		}
		*unseen |= !la.n || !lb.n;
		diff_free(&la), diff_free(&lb);
		if (*trouble)
			return cli_no_memory(a->cmd);
	}
	for (size_t i = 0; i < b->nkernel; i++)
		if (!twin(a, &b->kernel[i], i, b->nkernel == 1))
			put_missing(b->kernel[i].name, b->path), same = false;
	return same;
}

/* The body of b that is to be compared with k: of its name, or where both have one only, that one. */
static const cptx_kernel *body_like(const cptx_module *a, const cptx_module *b, const cptx_kernel *k)
{
	const cptx_kernel *same = cptx_module_body(b, cptx_body_name(k));
	bool single = !cptx_module_body_at(a, 1) && !cptx_module_body_at(b, 1);

	return same || !single ? same : cptx_module_body_at(b, 0);
}

/* Bodies of both, either of which may be NULL. */
static void put_bodies(tally *t, const inspected *a, const cptx_kernel *k, const inspected *b, const cptx_kernel *l,
                       bool brief, bool *trouble)
{
	diff_lines la = { 0 }, lb = { 0 };

	*trouble |= !diff_body(&la, a, k) || !diff_body(&lb, b, l);
	if (!*trouble)
		put_lines(t, &la, &lb, brief, trouble);
	if (*trouble)
		cli_no_memory(a->cmd);
	diff_free(&la), diff_free(&lb);
}

static bool put_ptx(const inspected *a, const inspected *b, bool brief, bool *trouble)
{
	diff_lines la = { 0 }, lb = { 0 };
	cptx_error err = { 0 };
	const cptx_kernel *k;
	tally t = { 0 };

	if (!a->m || !b->m) {
		fputs("PTX: not compared, ", stdout), put_name(a->m ? b->path : a->path), puts(" has none");
		return true;
	}
	if (!diff_head(&la, a->m, &err) || !diff_head(&lb, b->m, &err)) {
		cli_failed(a->cmd, "%s", err.code ? err.text : "out of memory");
		*trouble = true;
	} else {
		put_lines(&t, &la, &lb, brief, trouble);
		if (*trouble)
			cli_no_memory(a->cmd);
	}
	for (size_t i = 0; !*trouble && (k = cptx_module_body_at(a->m, i)); i++)
		put_bodies(&t, a, k, b, body_like(a->m, b->m, k), brief, trouble);
	for (size_t i = 0; !*trouble && (k = cptx_module_body_at(b->m, i)); i++)
		if (!body_like(b->m, a->m, k))
			put_bodies(&t, a, NULL, b, k, brief, trouble);
	diff_free(&la), diff_free(&lb);
	return !*trouble && put_tally("PTX", &t);
}

/* Neither PTX nor machine code was compared: cubins are the same if all of their bytes are; else nobody can tell. */
static bool put_bytes(const inspected *a, const inspected *b)
{
	if (a->code && b->code && a->ncode == b->ncode && !memcmp(a->code, b->code, a->ncode)) {
		puts("machine code: the same bytes");
		return true;
	}
	cli_failed(a->cmd, "%s and %s have other bytes, and what they do was not compared: that takes nvdisasm or cuobjdump",
	           a->path, b->path);
	return false;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	inspect_opt o = { 0 };
	const char *value;
	bool brief = false, trouble = false, same = true, unseen = false;
	int status = EXIT_OK, option;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0) {
		if (option == OPTION_ARCH && !cli_target(cmd, value))
			return EXIT_USAGE;
		if (option == OPTION_ARCH)
			o.arch = value;
		else
			brief = true;
	}
	if (option == -2)
		return status;
	if (optind + 2 != argc)
		return cli_usage(cmd, "give two files, PTX or cubins");
	inspected *in = calloc(2, sizeof *in);
	if (!in)
		cli_no_memory(cmd);
	if (!in || !inspect_load(&in[0], cmd, argv[optind], &o) || !inspect_load(&in[1], cmd, argv[optind + 1], &o))
		trouble = true;
	if (!trouble && (!diff_find_lines(&in[0]) || !diff_find_lines(&in[1]))) {
		cli_no_memory(cmd);
		trouble = true;
	}
	if (!trouble) {
		same &= put_kernels(&in[0], &in[1], brief, &unseen, &trouble);
		same &= !trouble && put_ptx(&in[0], &in[1], brief, &trouble);
		for (int i = 0; i < 2; i++)
			if (*in[i].note)
				fputs("note: ", stdout), put_name(in[i].path), fputs(": ", stdout), put_name(in[i].note), putchar('\n');
		trouble |= same && unseen && (!in[0].m || !in[1].m) && !put_bytes(&in[0], &in[1]);
	}
	for (int i = 0; in && i < 2; i++)
		inspect_free(&in[i]);
	free(in);
	if (cli_flush(cmd, EXIT_OK))
		trouble = true;
	return trouble ? TROUBLE : same ? EXIT_OK : EXIT_FAILED;
}

const cli_command cmd_diff = {
	.name = "diff",
	.arguments = "[OPTION]... A B",
	.about = "Compares two kernels: what they take, their PTX, their machine code.",
	.details = "A and B are PTX or cubins. PTX is compared as it is understood, up to the names of registers and labels;\n"
			   "machine code too, where it is known which registers each instruction uses; without nvdisasm or cuobjdump\n"
			   "cubins are the same byte by byte, or it is trouble.\n"
			   "Exit status: 0 the same, 1 different, 2 trouble.\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.run = run,
};
