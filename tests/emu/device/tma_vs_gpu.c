/* SPDX-License-Identifier: MIT */
/*
 * Tensor copies on the emulator and on a GPU: random maps of all ranks, types, boxes, swizzles and interleaves, loads,
 * stores and reductions.  Shared and global memory must be the same byte for byte, and so the bytes that a load completes.
 *
 *     tma_vs_gpu [--device NAME] [--cases N] [--seed N] [--show N] [--only WORD] [--seconds N]
 *                [--record FILE | --replay FILE]
 *
 * --device: the GPU (default cuda:0); --cases: of each kind (default 500); --show: differences printed (10); --only: cases
 * whose description (as --show prints it) has that word, "interleave 16" for example; --seconds: for all that the GPU does,
 * what is left then is skipped (default: any).  --record keeps what the GPU did, and
 * --replay compares with it where there is no GPU; --cases and --seed must be the same.  A copy that the GPU refuses takes
 * the context with it, so they are made in child processes.  Skipped where there is no GPU, or one without tensor maps.
 */
#include "../tensor.h"
#include "jobs.h"

#include <stddef.h>

enum { WAYS = 4, WORKERS = 10, SECONDS = 20, TEXT = 1400, ROOM = 65536 };

/* What a copy did. */
typedef struct outcome {
	uint32_t state;     /* enum state */
	uint32_t bytes;     /* that a load has completed */
	uint32_t size;      /* of `runs`; more than ROOM: too much was changed */
	char why[244];      /* FAILED */
	uint8_t runs[ROOM]; /* what is not as it was: offset and length, 4 bytes each, then the bytes */
} outcome;
enum state { NOT_RUN, STARTED, FAILED, DONE };

typedef struct session {
	const char *device, *only, *record, *replay;
	unsigned cases, show, shown, differ, run, skipped, seconds;
	uint64_t seed;
	cptx_device *emu;
	tensor_runner *runner;
	bool newer;
	outcome *gpu; /* WAYS * cases */
} session;

/* ---- cases ---- */

static const char *const way_names[WAYS] = { "loads", "stores", "reductions", "reductions of floats" };

/* Each on its own: any of them can be made again. */
static tensor_case case_of(const session *s, size_t i, uint64_t *state)
{
	*state = (s->seed << 32 | i) * UINT64_C(0x9e3779b97f4a7c15) + 1;
	return i / s->cases < 3 ? tensor_random(state, (enum tensor_way)(i / s->cases), s->newer)
	                        : tensor_random_float(state, s->newer);
}

static bool wanted(const session *s, const tensor_case *c)
{
	char text[TEXT];

	tensor_print(c, text, sizeof text);
	return !s->only || strstr(text, s->only);
}

/* Global and shared memory. */
typedef struct image {
	uint8_t *buffer;
	uint8_t smem[TENSOR_SMEM];
} image;

static image *new_image(const tensor_case *c, uint64_t state)
{
	image *m = malloc(sizeof *m);

	if (!m || !(m->buffer = malloc(c->size)))
		abort();
	for (size_t i = 0; i < c->size; i++)
		m->buffer[i] = (uint8_t)tensor_below(&state, 256);
	for (size_t i = 0; i < sizeof m->smem; i++)
		m->smem[i] = c->way == TENSOR_LOAD ? TENSOR_FILL : (uint8_t)tensor_below(&state, 256);
	return m;
}

static void free_image(image *m)
{
	free(m->buffer);
	free(m);
}

/* What a copy changes. */
static uint8_t *changing(const tensor_case *c, image *m, size_t *size)
{
	*size = c->way == TENSOR_LOAD ? sizeof m->smem : c->size;
	return c->way == TENSOR_LOAD ? m->smem : m->buffer;
}

/* ---- outcomes as differences ---- */

static void put(outcome *o, const void *p, uint32_t n)
{
	if (o->size + n <= ROOM)
		memcpy(o->runs + o->size, p, n);
	o->size = o->size + n <= ROOM ? o->size + n : ROOM + 1;
}

static void note_changes(outcome *o, const uint8_t *before, const uint8_t *after, size_t size)
{
	for (uint32_t i = 0, n; i < size; i += n ? n : 1) {
		for (n = 0; i + n < size && before[i + n] != after[i + n];)
			n++;
		if (!n)
			continue;
		put(o, &i, 4);
		put(o, &n, 4);
		put(o, after + i, n);
	}
}

static void apply_changes(const outcome *o, uint8_t *p)
{
	for (uint32_t i = 0, run[2]; i < o->size; i += run[1]) {
		memcpy(run, o->runs + i, sizeof run);
		i += (uint32_t)sizeof run;
		memcpy(p + run[0], o->runs + i, run[1]);
	}
}

/* ---- on the GPU ---- */

static void *open_gpu(void *user)
{
	const session *s = user;

	cptx_device *dev = cptx_device_open(s->device, NULL);

	return dev ? tensor_runner_new(dev) : NULL;
}

static bool on_gpu(void *user, void *runner, size_t i)
{
	const session *s = user;
	outcome *o = &s->gpu[i];
	cptx_error err = { 0 };
	uint64_t state;
	tensor_case c = case_of(s, i, &state);
	size_t size;

	if (!wanted(s, &c))
		return true;
	image *before = new_image(&c, state), *after = new_image(&c, state);
	const uint8_t *was = changing(&c, before, &size), *is = changing(&c, after, &size);
	o->state = STARTED;
	bool ok = tensor_measure(runner, &c, after->buffer, after->smem, &o->bytes, &err);
	if (ok)
		note_changes(o, was, is, size);
	else
		snprintf(o->why, sizeof o->why, "%.240s", err.text);
	o->state = ok ? DONE : FAILED;
	free_image(before);
	free_image(after);
	return ok;
}

/* ---- records ---- */

static bool record(const session *s, size_t n)
{
	FILE *f = fopen(s->record, "wb");
	bool ok = f != NULL;

	for (size_t i = 0; ok && i < n; i++) {
		const outcome *o = &s->gpu[i];
		ok = fwrite(o, offsetof(outcome, runs), 1, f) && (!o->size || fwrite(o->runs, o->size, 1, f));
	}
	ok = f && !fclose(f) && ok;
	if (!ok)
		fprintf(stderr, "tma_vs_gpu: %s cannot be written\n", s->record);
	return ok;
}

static bool replay(const session *s, size_t n)
{
	FILE *f = fopen(s->replay, "rb");
	bool ok = f != NULL;

	for (size_t i = 0; ok && i < n; i++) {
		outcome *o = &s->gpu[i];
		ok = fread(o, offsetof(outcome, runs), 1, f) && o->size <= ROOM && (!o->size || fread(o->runs, o->size, 1, f));
	}
	if (f)
		fclose(f);
	if (!ok)
		fprintf(stderr, "tma_vs_gpu: %s is no record of so many cases\n", s->replay);
	return ok;
}

/* ---- comparing ---- */

/* Where bytes of a tensor came from, for who has to find out what the GPU does; -1: nowhere. */
static long origin(const uint8_t *buffer, size_t size, const uint8_t *bytes)
{
	enum { ENOUGH = 8 };

	for (size_t i = 0; i + ENOUGH <= size; i++)
		if (!memcmp(buffer + i, bytes, ENOUGH))
			return (long)i;
	return -1;
}

/* The same for each 16 bytes that a load wrote, as long as there is room. */
static void origins(const tensor_case *c, const uint8_t *buffer, const uint8_t *smem, char *text, size_t size)
{
	size_t n = strlen(text);

	n += (size_t)snprintf(text + n, size - n, "\n    offsets of the GPU's chunks in the buffer:");
	for (uint32_t i = 0; i < tensor_bytes(c) && n + 20 < size; i += 16)
		n += (size_t)snprintf(text + n, size - n, " %ld", origin(buffer, c->size, smem + c->at + i));
}

/* What differs first, in words; false: nothing. */
static bool differs(const tensor_case *c, const outcome *o, const uint8_t *gpu, const uint8_t *emu, size_t size, char *text)
{
	size_t first = size, count = 0, at;

	for (size_t i = size; i-- > 0;)
		if (gpu[i] != emu[i]) {
			first = i;
			count++;
		}
	if (c->way == TENSOR_LOAD && o->bytes != tensor_told(c))
		at = (size_t)snprintf(text, TEXT, "the GPU completes %u bytes, not %u; ", o->bytes, tensor_told(c));
	else if (first == size)
		return false;
	else
		at = 0;
	at += (size_t)snprintf(text + at, TEXT - at, "%zu bytes of %s memory differ, from byte %zu on: GPU", count,
	                       c->way == TENSOR_LOAD ? "shared" : "global", first);
	for (size_t i = first; i < size && i < first + 16; i++)
		at += (size_t)snprintf(text + at, TEXT - at, " %02x", gpu[i]);
	at += (size_t)snprintf(text + at, TEXT - at, ", emulator");
	for (size_t i = first; i < size && i < first + 16; i++)
		at += (size_t)snprintf(text + at, TEXT - at, " %02x", emu[i]);
	return true;
}

/* A new one: a launch that ends with a finding is the last of its device. */
static bool open_emulator(session *s)
{
	/* Bytes of padding, which nobody has written, are compared too. */
	s->emu = cptx_emu_open(s->newer ? "sm_100a" : "sm_90", &(cptx_emu_opt){ .no_undefined = true }, NULL);
	s->runner = s->emu ? tensor_runner_new(s->emu) : NULL;
	return s->runner;
}

static void close_emulator(session *s)
{
	if (s->runner)
		tensor_runner_free(s->runner);
	cptx_device_close(s->emu);
}

static bool is_wrong(session *s, const tensor_case *c, const outcome *o, uint64_t state, char *text)
{
	image *gpu = new_image(c, state), *emu = new_image(c, state);
	cptx_error err = { 0 };
	bool done = tensor_run(s->runner, c, emu->buffer, emu->smem, &err), wrong = true;
	size_t size;
	uint8_t *from_gpu = changing(c, gpu, &size), *from_emu = changing(c, emu, &size);

	if (!done && o->state == FAILED) {
		wrong = false; /* both refuse it */
	} else if (!done || o->state != DONE || o->size > ROOM) {
		snprintf(text, TEXT, "GPU: %s; emulator: %.600s",
		         o->state == DONE      ? "done"
		         : o->state == STARTED ? "no answer in time"
		                               : o->why,
		         done ? "done" : err.text);
	} else {
		apply_changes(o, from_gpu);
		wrong = differs(c, o, from_gpu, from_emu, size, text);
		if (wrong && c->way == TENSOR_LOAD)
			origins(c, gpu->buffer, gpu->smem, text, TEXT);
	}
	if (!done) {
		close_emulator(s);
		wrong |= !open_emulator(s);
	}
	free_image(gpu);
	free_image(emu);
	return wrong;
}

static void compare(session *s, unsigned way)
{
	unsigned before = s->differ, run = s->run;
	char text[TEXT], what[TEXT];

	for (size_t i = way * s->cases; i < (way + 1) * s->cases; i++) {
		uint64_t state;
		tensor_case c = case_of(s, i, &state);
		if (!wanted(s, &c))
			continue;
		s->skipped += s->gpu[i].state == NOT_RUN;
		if (s->gpu[i].state == NOT_RUN)
			continue;
		s->run++;
		if (!is_wrong(s, &c, &s->gpu[i], state, text))
			continue;
		s->differ++;
		tensor_print(&c, what, sizeof what);
		if (s->shown++ < s->show)
			printf("DIFFERS: %zu: %s\n    %s\n", i, what, text);
	}
	printf("%s: %u cases, %u differ\n", way_names[way], s->run - run, s->differ - before);
}

/* ---- all ---- */

/* In a process of its own: the parent has to stay free of the driver. */
typedef struct facts {
	uint32_t compute_capability;
	char why[200];
} facts;

static void *look(void *user)
{
	session *s = user;
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open(s->device, &err);
	facts *f = (facts *)(void *)s->gpu;

	if (dev)
		f->compute_capability = cptx_device_get_info(dev)->compute_capability;
	snprintf(f->why, sizeof f->why, "%.190s", dev ? "it has no tensor maps" : err.text);
	return f;
}

static bool nothing(void *user, void *opened, size_t i)
{
	(void)user, (void)opened, (void)i;
	return true;
}

static bool read_options(session *s, int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--device"))
			s->device = argv[i + 1];
		else if (!strcmp(argv[i], "--only"))
			s->only = argv[i + 1];
		else if (!strcmp(argv[i], "--cases"))
			s->cases = (unsigned)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--show"))
			s->show = (unsigned)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			s->seconds = (unsigned)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seed"))
			s->seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--record"))
			s->record = argv[i + 1];
		else if (!strcmp(argv[i], "--replay"))
			s->replay = argv[i + 1];
		else
			return false;
	}
	return argc % 2 == 1 && s->cases;
}

/* What the GPU did, now or earlier; false: there is none, and it has been said. */
static bool fetch(session *s, size_t n)
{
	jobs j = { .count = 1, .workers = 1, .seconds = SECONDS, .user = s, .open = look, .run = nothing };

	if (s->replay)
		return replay(s, n);
	bool ok = jobs_run(&j);
	facts f = *(facts *)(void *)s->gpu;
	memset(s->gpu, 0, sizeof f);
	if (!ok || f.compute_capability < 90) {
		printf("tma_vs_gpu: 0 passed, 0 failed, 1 skipped (%s: %s)\n", s->device, f.why);
		return false;
	}
	s->newer = f.compute_capability >= 100 && f.compute_capability < 120;
	j = (jobs){ .count = n, .workers = WORKERS, .seconds = SECONDS, .all_seconds = s->seconds };
	j.user = s, j.open = open_gpu, j.run = on_gpu;
	return jobs_run(&j) && (!s->record || record(s, n));
}

int main(int argc, char **argv)
{
	session s = { .device = "cuda:0", .cases = 500, .show = 10 };

	if (!read_options(&s, argc, argv)) {
		fprintf(stderr, "usage: tma_vs_gpu [--device NAME] [--cases N] [--seed N] [--show N] [--only WORD] "
		                "[--seconds N] [--record FILE | --replay FILE]\n");
		return 2;
	}
	s.gpu = jobs_memory((size_t)WAYS * s.cases * sizeof *s.gpu);
	if (!s.gpu) {
		fprintf(stderr, "tma_vs_gpu: no memory for %u cases\n", s.cases);
		return 1;
	}
	if (!fetch(&s, (size_t)WAYS * s.cases))
		return s.replay || s.record;
	if (!open_emulator(&s)) {
		fprintf(stderr, "tma_vs_gpu: no memory for the emulator\n");
		return 1;
	}
	for (unsigned way = 0; s.runner && way < WAYS; way++)
		compare(&s, way);
	printf("tma_vs_gpu: %u passed, %u failed, %u skipped\n", s.run - s.differ, s.differ, s.skipped);
	close_emulator(&s);
	return s.differ != 0;
}
