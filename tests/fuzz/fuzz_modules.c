/* SPDX-License-Identifier: MIT */
/*
 * Random modules all the way through: a file of the corpus or a random kernel of ../emu/fuzz_kernel.h, mutated, is parsed,
 * checked, printed and parsed again (fuzz_ptx.h says what must hold), printed as C, and loaded on the emulator, where each
 * kernel that it has is launched.  For builds with sanitizers.
 *
 *     fuzz_modules [--seed N] [--modules N] [--seconds N] [--jobs N] [--show 1]      as farm.h says
 *
 * CPTX_FUZZ_CORPUS: the folder of the corpus, where it is not in the source tree.
 */
#include "farm.h"
#include "fuzz_ptx.h"
#include "mutate.h"

#include "../emu/fuzz_kernel.h"

#include <cptx/emu.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST_FILES = 2048,
	MOST_TEXT = 40000 /* bytes of a file, or it is left out */,
	ROOM = 400000,
	STEPS = 3000,
	MOST_KERNELS = 3
};
enum { ACCEPTED, AS_C, LOADED, LAUNCHED, RAN, FROM_CORPUS, FROM_KERNELS };

/* ---- the corpus ---- */

typedef struct text {
	char *p;
	size_t n;
} text;

static text file[MOST_FILES];
static char *file_name[MOST_FILES];
static unsigned nfile;

static text read_text(const char *path)
{
	text t = { .p = malloc(MOST_TEXT + 1) };
	FILE *f = fopen(path, "rb");

	if (!t.p || !f)
		abort();
	t.n = fread(t.p, 1, MOST_TEXT + 1, f);
	fclose(f);
	return t;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list(const char *folder, const char *under)
{
	char path[4096];

	snprintf(path, sizeof path, "%s/%s", folder, under);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = strlen(e->d_name), size = strlen(path) + n + 2;
		if (n < 5 || strcmp(e->d_name + n - 4, ".ptx") != 0 || nfile == MOST_FILES)
			continue;
		file_name[nfile] = malloc(size);
		if (!file_name[nfile])
			abort();
		snprintf(file_name[nfile++], size, "%s/%s", path, e->d_name);
	}
	if (d)
		closedir(d);
}

static void begin(void)
{
	const char *folder = getenv("CPTX_FUZZ_CORPUS");

	pool_init();
	list(folder ? folder : CORPUS, "hand");
	list(folder ? folder : CORPUS, "ptx");
	qsort(file_name, nfile, sizeof *file_name, by_name);
	unsigned kept = 0;
	for (unsigned i = 0; i < nfile; i++) {
		text t = read_text(file_name[i]);
		free(file_name[i]);
		if (t.n > MOST_TEXT)
			free(t.p);
		else
			file[kept++] = t;
	}
	nfile = kept;
	if (!nfile) {
		printf("fuzz_modules: no corpus in %s\n", folder ? folder : CORPUS);
		exit(1);
	}
}

/* ---- texts ---- */

static uint8_t room[ROOM], other[ROOM];

/* A random text to begin with; its size. */
static size_t choose(dice *d, farm_sum *sum)
{
	static fuzz_kernel k;

	if (roll(d, 3)) {
		const text *t = &file[roll(d, nfile)];
		memcpy(room, t->p, t->n);
		sum->count[FROM_CORPUS]++;
		return t->n;
	}
	sum->count[FROM_KERNELS]++;
	fuzz_make(&k, d->state);
	char *s = fuzz_text(&k);
	fuzz_free(&k);
	size_t n = strlen(s) < ROOM / 2 ? strlen(s) : ROOM / 2;
	memcpy(room, s, n);
	free(s);
	return n;
}

static size_t mutate_bytes(dice *d, size_t n)
{
	size_t at = roll(d, (unsigned)n), many = 1 + roll(d, 8);

	many = many < n - at ? many : n - at;
	switch (roll(d, 4)) {
	case 0: room[at] = (uint8_t)roll(d, 256); return n;
	case 1: room[at] ^= (uint8_t)(1u << roll(d, 8)); return n;
	case 2: memmove(room + at, room + at + many, n - at - many); return n - many;
	default: return roll(d, 16) ? n : at; /* the end is missing */
	}
}

static size_t mutate(dice *d, size_t n)
{
	static const uint8_t often[] = { 0, 0, 1, 1, 1, 1, 2, 3, 5, 30 };

	for (unsigned times = often[roll(d, sizeof often)]; times && n; times--) {
		uint32_t seed = (uint32_t)fuzz_wide(d);
		switch (roll(d, 16)) {
		case 0:
		case 1: n = mutate_bytes(d, n); break;
		case 2: {
			const text *t = &file[roll(d, nfile)];
			n = fuzz_cross(room, n, (const uint8_t *)t->p, t->n, other, ROOM, seed);
			memcpy(room, other, n);
			break;
		}
		case 3:
		case 4:
		case 5: n = fuzz_mutate_statement(room, n, ROOM, seed); break;
		default: n = fuzz_mutate_word(room, n, ROOM, seed); break;
		}
	}
	return n && !roll(d, 24) ? fuzz_mutate_memory(room, n, ROOM, (uint32_t)fuzz_wide(d)) : n;
}

/* ---- what is done with them ---- */

static void add_text(void *user, const char *s)
{
	uint64_t *hash = user;

	for (; *s; s++)
		*hash = *hash * 31 + (unsigned char)*s;
}

static const char *as_c(const char *p, size_t n, bool program, farm_sum *sum, uint64_t *hash)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_parse(p, n, NULL);

	if (cptx_module_error(m)) {
		cptx_module_destroy(m);
		return NULL;
	}
	sum->count[ACCEPTED]++;
	cptx_ptx *c = cptx_to_c(m, &(cptx_to_c_opt){ .main = program }, &err);
	const char *fault = NULL;
	sum->count[AS_C] += c != NULL;
	if (c)
		add_text(hash, cptx_ptx_text(c));
	else if (!err.code || !err.text[0])
		fault = "it is not printed as C, and there is no error";
	cptx_ptx_destroy(c);
	cptx_module_destroy(m);
	return fault;
}

/* An argument that a parameter takes: a pointer to memory, a small number, zeros. */
static cptx_arg argument(const cptx_param_info *p, uint64_t memory, dice *d)
{
	static const uint8_t zeros[32768];

	switch (p->type) {
	case CPTX_PTR:
	case CPTX_U64: return (cptx_arg){ .kind = CPTX_ARG_INT, .size = p->size, .u.u64 = memory };
	case CPTX_U8:
	case CPTX_U16:
	case CPTX_U32:
	case CPTX_S8:
	case CPTX_S16:
	case CPTX_S32:
	case CPTX_S64: return (cptx_arg){ .kind = CPTX_ARG_INT, .size = p->size, .u.u64 = roll(d, 100) };
	case CPTX_F32:
	case CPTX_F64: return (cptx_arg){ .kind = CPTX_ARG_FLOAT, .size = p->size, .u.f64 = 1 };
	default:
		return (cptx_arg){ .kind = CPTX_ARG_OBJECT, .size = p->size, .u.object = p->size <= sizeof zeros ? zeros : NULL };
	}
}

static void launch(const cptx_program *p, const cptx_kernel_info *k, uint64_t memory, dice *d, farm_sum *sum)
{
	cptx_arg args[64];
	cptx_error err = { 0 };
	cptx_launch_opt o = { .grid = { 1 + roll(d, 2) }, .nargs = k->nparams, .args = args };

	if (k->nparams > ARRAY_LEN(args))
		return;
	for (size_t i = 0; i < k->nparams; i++)
		args[i] = argument(&k->params[i], memory, d);
	if (!k->bounds.block[0])
		o.block[0] = roll(d, 2) ? 32 : 128;
	cptx_launch *l = cptx_launch_new(p, k->name, &o, &err);
	sum->count[LAUNCHED] += l != NULL;
	sum->count[RAN] += l && cptx_launch_run(l, NULL, &err);
	cptx_launch_destroy(l);
}

static const char *emulate(const char *p, size_t n, dice *d, farm_sum *sum, uint64_t *hash)
{
	static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_120a" };
	enum { MEMORY = 65536 };
	cptx_emu_opt opt = { .seed = d->state, .step_limit = STEPS, .print = add_text, .user = hash };
	cptx_error err = { 0 };
	cptx_module *m = cptx_parse(p, n, NULL);
	opt.threads = 1 + roll(d, 2);
	const cptx_target *own = cptx_module_error(m) ? NULL : cptx_module_target(m);
	cptx_device *dev = cptx_emu_open(own && roll(d, 4) ? own->name : targets[roll(d, ARRAY_LEN(targets))], &opt, &err);
	cptx_program *program = dev ? cptx_device_load_text(dev, p, n, &(cptx_load_opt){ .name = "fuzz" }, &err) : NULL;
	uint64_t memory = dev ? cptx_mem_alloc(dev, MEMORY, NULL) : 0;
	const char *name, *fault = NULL;
	const cptx_emu_finding *f;
	cptx_kernel_info k;

	if (!program && (!err.code || !err.text[0]))
		fault = "it is not loaded, and there is no error";
	if (memory)
		cptx_mem_fill8(dev, memory, 0, MEMORY, NULL);
	sum->count[LOADED] += program != NULL;
	for (size_t i = 0; program && i < MOST_KERNELS && (name = cptx_program_kernel_at(program, i)); i++)
		if (cptx_module_freeze(m) && cptx_module_kernel(m, name, &k))
			launch(program, &k, memory, d, sum);
	for (size_t i = 0; dev && (f = cptx_emu_finding_at(dev, i)); i++)
		add_text(hash, f->text);
	cptx_program_destroy(program);
	cptx_device_close(dev);
	cptx_module_destroy(m);
	return fault;
}

static const char *one(uint64_t seed, bool show, farm_sum *sum)
{
	dice d = { seed * UINT64_C(0x9e3779b97f4a7c15) + 7 };
	uint64_t hash = 1;

	for (unsigned i = 0; i < 4; i++)
		roll(&d, 2);
	size_t n = mutate(&d, choose(&d, sum));
	if (show) {
		fwrite(room, 1, n, stdout);
		fflush(stdout);
	}
	char *exact = malloc(n + !n); /* no byte behind it may be read */
	if (!exact)
		abort();
	memcpy(exact, room, n);
	const char *fault = fuzz_ptx(exact, n);
	if (!fault)
		fault = as_c(exact, n, roll(&d, 2), sum, &hash);
	if (!fault)
		fault = emulate(exact, n, &d, sum, &hash);
	free(exact);
	sum->digest += hash * (seed * 2 + 1);
	return fault;
}

static bool report(const farm_sum *sum, uint64_t cases)
{
	const uint64_t *n = sum->count;

	printf(
		"%llu from the corpus and %llu random kernels, mutated: %llu accepted, %llu printed as C, %llu loaded; %llu kernels "
		"launched, %llu without a finding\n",
		(unsigned long long)n[FROM_CORPUS], (unsigned long long)n[FROM_KERNELS], (unsigned long long)n[ACCEPTED],
		(unsigned long long)n[AS_C], (unsigned long long)n[LOADED], (unsigned long long)n[LAUNCHED],
		(unsigned long long)n[RAN]);
	return cases < 500 || (n[ACCEPTED] > cases / 10 && n[LAUNCHED] > cases / 50 && n[RAN]);
}

int main(int argc, char **argv)
{
	return farm_main(&(farm){ .name = "fuzz_modules", .noun = "modules", .begin = begin, .one = one, .report = report },
	                 argc, argv);
}
