/*
 * Tensor copies on the emulator and on a GPU: random maps of all ranks, types, boxes, swizzles and interleaves, loads,
 * stores and reductions.  Shared and global memory must be the same byte for byte.
 *
 *     tma_vs_gpu [--device NAME] [--cases N] [--seed N] [--show N] [--only WORD]
 *
 * --device: the GPU (default cuda:0); --cases: of each kind (default 500); --show: differences printed (10); --only: cases
 * whose description (as --show prints it) has that word, "interleave 16" for example.  Skipped where there is no GPU, or one
 * without tensor maps.
 */
#include "../tensor.h"

typedef struct session {
	const char *device, *only;
	unsigned cases, show, shown, run, differ;
	uint64_t seed;
	cptx_device *gpu, *emu;
	bool newer;
} session;

typedef struct image {
	uint8_t *buffer, smem[TENSOR_SMEM];
} image;

static void fill(uint8_t *p, size_t n, uint64_t *state)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)tensor_below(state, 256);
}

/* What differs first, in words; false: nothing. */
static bool differs(const char *what, const uint8_t *gpu, const uint8_t *emu, size_t n, char *text, size_t size)
{
	size_t first = n, count = 0;

	for (size_t i = 0; i < n; i++)
		if (gpu[i] != emu[i]) {
			first = first == n ? i : first;
			count++;
		}
	if (first == n)
		return false;
	size_t at = (size_t)snprintf(text, size, "%zu bytes of %s memory differ, from byte %zu on: GPU", count, what, first);
	for (size_t i = first; i < n && i < first + 16; i++)
		at += (size_t)snprintf(text + at, size - at, " %02x", gpu[i]);
	at += (size_t)snprintf(text + at, size - at, ", emulator");
	for (size_t i = first; i < n && i < first + 16; i++)
		at += (size_t)snprintf(text + at, size - at, " %02x", emu[i]);
	return true;
}

/* Where bytes of a tensor came from, for who has to find out what the GPU does. */
static long origin(const uint8_t *buffer, size_t size, const uint8_t *bytes)
{
	enum { ENOUGH = 8 };

	for (size_t i = 0; i + ENOUGH <= size; i++)
		if (!memcmp(buffer + i, bytes, ENOUGH))
			return (long)i;
	return -1;
}

/* The same for each 16 bytes of the box, as long as there is room. */
static void origins(const tensor_case *c, const uint8_t *buffer, const uint8_t *smem, char *text, size_t size)
{
	size_t n = strlen(text);

	n += (size_t)snprintf(text + n, size - n, "\n    offsets of the GPU's chunks in the buffer:");
	for (uint32_t i = 0; i < tensor_bytes(c) && n + 20 < size; i += 16)
		n += (size_t)snprintf(text + n, size - n, " %ld", origin(buffer, c->size, smem + c->at + i));
}

static void report(session *s, const tensor_case *c, const char *why)
{
	char text[1200];

	s->differ++;
	if (s->shown++ >= s->show)
		return;
	tensor_print(c, text, sizeof text);
	printf("DIFFERS: %s\n    %s\n", text, why);
}

/* False: the GPU is of no more use. */
static bool one(session *s, const tensor_case *c, uint64_t *state)
{
	image *m = calloc(2, sizeof *m);
	cptx_error gpu = { 0 }, emu = { 0 };
	char text[1400];
	bool ok = false;

	for (int i = 0; m && i < 2; i++)
		m[i].buffer = malloc(c->size);
	if (m && m[0].buffer && m[1].buffer) {
		fill(m[0].buffer, c->size, state);
		fill(m[0].smem, sizeof m[0].smem, state);
		memcpy(m[1].buffer, m[0].buffer, c->size);
		memcpy(m[1].smem, m[0].smem, sizeof m[0].smem);
		bool on_emu = tensor_run(c, s->emu, m[1].buffer, m[1].smem, &emu),
			 on_gpu = tensor_run(c, s->gpu, m[0].buffer, m[0].smem, &gpu);
		s->run++;
		if (!on_emu || !on_gpu) {
			snprintf(text, sizeof text, "GPU: %.600s; emulator: %.600s", on_gpu ? "done" : gpu.text,
			         on_emu ? "done" : emu.text);
			report(s, c, text);
		} else if (differs("shared", m[0].smem, m[1].smem, sizeof m[0].smem, text, sizeof text) ||
		           differs("global", m[0].buffer, m[1].buffer, c->size, text, sizeof text)) {
			if (c->way == TENSOR_LOAD)
				origins(c, m[1].buffer, m[0].smem, text, sizeof text);
			report(s, c, text);
		}
		ok = on_gpu || gpu.code == CPTX_E_STATE;
	}
	for (int i = 0; m && i < 2; i++)
		free(m[i].buffer);
	free(m);
	return ok;
}

static bool kind(session *s, enum tensor_way way, const char *name)
{
	uint64_t state = s->seed * 3 + way + 1;
	unsigned before = s->differ, run = s->run;
	char text[1200];
	bool ok = true;

	for (unsigned i = 0; i < s->cases && ok; i++) {
		tensor_case c = tensor_random(&state, way, s->newer);
		c.target = s->newer ? "sm_100a" : "sm_90";
		tensor_print(&c, text, sizeof text);
		if (!s->only || strstr(text, s->only))
			ok = one(s, &c, &state);
	}
	printf("%s: %u cases, %u differ%s\n", name, s->run - run, s->differ - before, ok ? "" : "; the GPU can go on no more");
	return ok;
}

static bool open_devices(session *s, cptx_error *err)
{
	s->gpu = cptx_device_open(s->device, err);
	if (!s->gpu)
		return false;
	const cptx_device_info *i = cptx_device_get_info(s->gpu);
	if (i->compute_capability < 90) {
		err->code = CPTX_E_TARGET;
		snprintf(err->text, sizeof err->text, "%s has no tensor maps", i->name);
		return false;
	}
	s->newer = i->compute_capability >= 100 && i->compute_capability < 120;
	/* Bytes of padding, which nobody has written, are compared too. */
	s->emu = cptx_emu_open(s->newer ? "sm_100a" : "sm_90", &(cptx_emu_opt){ .no_undefined = true }, err);
	return s->emu != NULL;
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
		else if (!strcmp(argv[i], "--seed"))
			s->seed = strtoull(argv[i + 1], NULL, 0);
		else
			return false;
	}
	return argc % 2 == 1;
}

int main(int argc, char **argv)
{
	session s = { .device = "cuda:0", .cases = 500, .show = 10 };
	cptx_error err = { 0 };
	int status = 0;

	if (!read_options(&s, argc, argv)) {
		fprintf(stderr, "usage: tma_vs_gpu [--device NAME] [--cases N] [--seed N] [--show N] [--only WORD]\n");
		return 2;
	}
	if (open_devices(&s, &err)) {
		bool ok =
			kind(&s, TENSOR_LOAD, "loads") && kind(&s, TENSOR_STORE, "stores") && kind(&s, TENSOR_REDUCE, "reductions");
		printf("tma_vs_gpu: %u passed, %u failed, 0 skipped\n", s.run - s.differ, s.differ);
		status = !ok || s.differ;
	} else {
		printf("tma_vs_gpu: 0 passed, 0 failed, 1 skipped (%s)\n", err.text);
	}
	cptx_device_close(s.emu);
	cptx_device_close(s.gpu);
	return status;
}
