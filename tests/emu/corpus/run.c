/* SPDX-License-Identifier: MIT */
#include "run.h"
#include "../../sanitized.h"

#include "reference/number.h"

#include <dirent.h>

enum { MOST_BYTES = 1 << 20, MOST_WARNED = 1 << 13 };

typedef struct job {
	const corpus_case *c;
	run_arg arg[16];
	size_t narg;
	void *want[16], *got[16]; /* buffers, by argument */
	cptx_launch_opt shape;
	unsigned seeds, files;
	cptx_device *dev; /* NULL: the emulator */
	bool ok;
} job;

/* ---- files ---- */

static char *read_text(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(MOST_BYTES);

	ck_assert_msg(f != NULL, "%s", path);
	ck_assert_ptr_nonnull(text);
	*size = fread(text, 1, MOST_BYTES, f);
	ck_assert_msg(*size > 0 && *size < MOST_BYTES, "%s", path);
	fclose(f);
	text[*size] = 0;
	return text;
}

bool corpus_files(const char *name, corpus_file_fn *each, void *user)
{
	char folder[512], path[1024], target[16];
	const char *stem = strchr(name, '/') + 1;
	unsigned n = 0;

	snprintf(folder, sizeof folder, "%s/%.*s", CORPUS, (int)(stem - 1 - name), name);
	DIR *d = opendir(folder);
	ck_assert_msg(d != NULL, "%s", folder);
	for (struct dirent *e; (e = readdir(d));) {
		size_t k = strlen(stem), size;
		const char *end = strstr(e->d_name, ".ptx");
		if (strncmp(e->d_name, stem, k) || (k ? e->d_name[k] != '.' : !strncmp(e->d_name, "clang_", 6)) || !end || end[4])
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		ck_assert_int_eq(sscanf(strchr(e->d_name, '.'), ".%15[^.]", target), 1);
		char *text = read_text(path, &size);
		bool more = each(user, e->d_name, text, size, target);
		free(text);
		n++;
		if (!more)
			break;
	}
	closedir(d);
	return n > 0;
}

/* ---- a row ---- */

static void read_shape(job *j)
{
	uint32_t *const field[] = { j->shape.grid, j->shape.block, j->shape.cluster, &j->shape.dyn_smem };
	char *end = NULL;
	unsigned f = 0, i = 0;

	for (const char *p = j->c->shape; *p; p = *end ? end + 1 : end) {
		ck_assert_msg(f < 4 && i < 3, "%s: %s", j->c->kernel, j->c->shape);
		field[f][i++] = (uint32_t)strtoul(p, &end, 10);
		ck_assert_msg(end > p, "%s: %s", j->c->kernel, j->c->shape);
		if (*end == '/')
			f++, i = 0;
	}
}

static void read_args(job *j)
{
	char *copy = strdup(j->c->args ? j->c->args : ""), *rest = copy, why[512];

	ck_assert_ptr_nonnull(copy);
	for (char *word; (word = strtok_r(rest, " ", &rest)); j->narg++) {
		ck_assert_uint_lt(j->narg, 16);
		ck_assert_msg(run_arg_read(&j->arg[j->narg], word, why, sizeof why), "%s: %s: %s", j->c->kernel, word, why);
	}
	free(copy);
}

static void open_job(job *j)
{
	read_shape(j);
	read_args(j);
	for (size_t i = 0; i < j->narg; i++) {
		run_arg *a = &j->arg[i];
		if (!a->data)
			continue;
		j->want[i] = a->data;
		j->got[i] = malloc(a->size);
		ck_assert_ptr_nonnull(j->got[i]);
	}
	if (j->c->prepare)
		j->c->prepare(j->want, NULL);
}

static void close_job(job *j)
{
	for (size_t i = 0; i < j->narg; i++) {
		free(j->got[i]);
		run_arg_free(&j->arg[i]);
	}
}

/* ---- one launch ---- */

static void collect(const cptx_device *dev, char *message)
{
	const cptx_emu_finding *f;
	size_t n = 0;

	*message = 0;
	for (size_t i = 0; (f = cptx_emu_finding_at(dev, i)) && n < MOST_WARNED - 1; i++)
		n += (size_t)snprintf(message + n, MOST_WARNED - n, "    %s:%u: %s\n", cptx_finding_name(f->code),
		                      (unsigned)f->at.line, f->text);
}

static bool launch(job *j, cptx_device *dev, cptx_program *p, cptx_error *err)
{
	uint64_t at[16] = { 0 };
	cptx_arg args[16], first[16];
	cptx_tensor_map map[16];
	cptx_error ignored = { 0 };

	cptx_launch_opt before = { .grid = { 1 }, .block = { 32 } };

	j->shape.args = args;
	j->shape.cooperative = j->c->cooperative;
	j->shape.nargs = 0;
	for (size_t i = 0; i < j->narg; i++) {
		run_arg *a = &j->arg[i];
		cptx_tensor_map_opt over = a->map;
		if (a->is_buffer) {
			at[i] = cptx_mem_alloc(dev, a->size, err);
			cptx_mem_write(dev, at[i], a->data, a->size, err);
		}
		if (a->is_map) {
			over.address = at[a->over];
			cptx_tensor_map_make(dev, &over, &map[i], err);
			args[j->shape.nargs++] = CPTX_ARG_BYTES(&map[i], sizeof map[i]);
		} else if (!a->is_hidden) {
			args[j->shape.nargs++] = run_arg_value(a, at[i]);
		}
	}
	for (const char *s = j->c->first ? j->c->first_args : ""; *s; s += strspn(s, " "))
		first[before.nargs++] = args[*s++ - '0'];
	before.args = first;
	bool ok = err->code == CPTX_OK && (!j->c->first || cptx_launch_once(p, j->c->first, &before, NULL, err)) &&
	          cptx_launch_once(p, j->c->kernel, &j->shape, NULL, err);
	for (size_t i = 0; i < j->narg; i++)
		if (at[i])
			cptx_mem_read(dev, j->got[i], at[i], j->arg[i].size, &ignored);
	return ok;
}

/* ---- what came out ---- */

static bool differs(const job *j, enum cptx_type type, const unsigned char *want, const unsigned char *got)
{
	unsigned each = cptx_type_bits(type) / 8;
	uint64_t a = 0, b = 0;

	if (!memcmp(want, got, each))
		return false;
	if (!number_is_float(type) || !(j->c->tolerance > 0))
		return true;
	memcpy(&a, want, each);
	memcpy(&b, got, each);
	double x = number_value(type, a), y = number_value(type, b);
	return !(isnan(x) && isnan(y)) && !(fabs(x - y) <= j->c->tolerance * fmax(1, fabs(x)));
}

/* Of the first difference; empty: all is as it should be. */
static void compare(job *j, char *why, size_t size)
{
	void *want[16] = { 0 };

	*why = 0;
	for (size_t i = 0; i < j->narg; i++)
		if (j->want[i]) {
			want[i] = malloc(j->arg[i].size);
			ck_assert_ptr_nonnull(want[i]);
			memcpy(want[i], j->want[i], j->arg[i].size);
		}
	if (j->c->expect)
		j->c->expect(want, j->got);
	for (size_t i = 0; i < j->narg && !*why; i++) {
		const run_arg *a = &j->arg[i];
		unsigned each = cptx_type_bits(a->type) / 8;
		for (uint64_t k = 0; a->is_buffer && k < a->count && !*why; k++) {
			const unsigned char *x = (unsigned char *)want[i] + k * each, *y = (unsigned char *)j->got[i] + k * each;
			uint64_t u = 0, v = 0;
			if (!differs(j, a->type, x, y))
				continue;
			memcpy(&u, x, each);
			memcpy(&v, y, each);
			snprintf(why, size, "argument %zu, element %llu is 0x%llx (%.9g), expected 0x%llx (%.9g)", i,
			         (unsigned long long)k, (unsigned long long)v, number_value(a->type, v), (unsigned long long)u,
			         number_value(a->type, u));
		}
	}
	for (size_t i = 0; i < j->narg; i++)
		free(want[i]);
}

/* In words; empty: the run is what the row says. */
static void judge(job *j, const cptx_device *dev, bool ok, const cptx_error *err, char *why, size_t size)
{
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
	static char message[MOST_WARNED];

	*why = 0;
	collect(dev, message);
	if (j->c->refused)
		snprintf(why, size, "%s",
		         !ok && strstr(err->text, j->c->refused) ? ""
		         : err->code                             ? err->text
		                                                 : "it is not refused");
	else if (j->c->finds ? !f || (f->code != j->c->finds && j->c->finds != CPTX_FIND_COUNT) : !ok || f)
		snprintf(why, size, "%s\n%s", err->text, message);
	else if (!j->c->any_result && !j->c->finds)
		compare(j, why, size);
}

static bool run_once(job *j, const char *path, const char *text, size_t size, const char *target, const cptx_emu_opt *opt)
{
	static const char *const how[] = { "random", "eager", "late" };
	static char why[MOST_WARNED + sizeof((cptx_error *)0)->text];
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(target, opt, &err);
	ck_assert_msg(dev != NULL, "%s", err.text);
	cptx_program *p = cptx_device_load_text(dev, text, size, &(cptx_load_opt){ .name = path }, &err);
	bool ok = p && launch(j, dev, p, &err);

	judge(j, dev, ok, &err, why, sizeof why);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	if (*why)
		printf("%s, %s, seed %llu, %s: %s\n", path, j->c->kernel, (unsigned long long)opt->seed, how[opt->schedule], why);
	return !*why;
}

static bool has_kernel(const char *text, const char *name)
{
	char call[256];

	snprintf(call, sizeof call, ".entry %s(", name);
	return strstr(text, call) != NULL;
}

/* sm_90a: on that alone; sm_80: on all later ones. */
static bool runs_on(const char *target, unsigned capability)
{
	unsigned long n = strtoul(target + 3, NULL, 10);
	bool exact = target[strlen(target) - 1] == 'a';

	return exact ? n == capability : n <= capability;
}

/* On a device that is no emulator. */
static bool run_there(job *j, const char *path, const char *text, size_t size, cptx_device *dev)
{
	static char why[MOST_WARNED + sizeof((cptx_error *)0)->text];
	cptx_error err = { 0 };
	cptx_program *p = cptx_device_load_text(dev, text, size, &(cptx_load_opt){ .name = path }, &err);

	*why = 0;
	if (p && launch(j, dev, p, &err))
		compare(j, why, sizeof why);
	else
		snprintf(why, sizeof why, "%s", err.text);
	cptx_program_destroy(p);
	if (*why)
		printf("%s, %s, %s: %s\n", path, j->c->kernel, cptx_device_get_info(dev)->name, why);
	return !*why;
}

static bool run_file(void *user, const char *path, const char *text, size_t size, const char *target)
{
	job *j = user;

	if (!has_kernel(text, j->c->kernel) || atoi(target + 3) < 80 || (j->c->only && !strstr(path, j->c->only)) ||
	    (j->c->except && strstr(path, j->c->except)))
		return true;
	if (j->dev && !runs_on(target, cptx_device_get_info(j->dev)->compute_capability))
		return true;
	j->files++;
	if (j->dev)
		return j->ok = run_there(j, path, text, size, j->dev) && j->ok;
	for (unsigned i = 0; i < j->seeds + SAMPLE_OF(2u, 1u) && j->ok; i++) {
		cptx_emu_opt opt = { .seed = i, .threads = 1, .step_limit = 200000000 };
		opt.schedule = i < j->seeds ? CPTX_EMU_RANDOM : i == j->seeds ? CPTX_EMU_EAGER : CPTX_EMU_LATE;
		j->ok = run_once(j, path, text, size, target, &opt);
		if (j->c->refused)
			break;
	}
	return true;
}

bool corpus_run(const corpus_case *c, unsigned seeds)
{
	const char *more = getenv("CPTX_SEEDS");
	job j = { .c = c, .seeds = more ? (unsigned)atoi(more) : seeds, .ok = true };

	if (!c->shape) {
		ck_assert_msg(c->why != NULL, "%s: why is it not run?", c->kernel);
		return true;
	}
	open_job(&j);
	ck_assert_msg(corpus_files(c->file, run_file, &j) && j.files, "%s: no file has %s", c->file, c->kernel);
	close_job(&j);
	return j.ok;
}

bool corpus_run_on(cptx_device *dev, const corpus_case *c, unsigned *files)
{
	job j = { .c = c, .dev = dev, .ok = true };

	open_job(&j);
	ck_assert_msg(corpus_files(c->file, run_file, &j), "%s: no file", c->file);
	close_job(&j);
	*files = j.files;
	return j.ok;
}
