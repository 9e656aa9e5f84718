/* SPDX-License-Identifier: MIT */
#include "fuzz_run.h"

#include <cptx/emu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 60000 };

const fuzz_family fuzz_families[] = {
	{ "wgmma", "wgmma.mma_async", "" },
	{ "wgmma sparse", "wgmma.mma_async.sp", "" },
	{ "tcgen05.alloc", "tcgen05.alloc", "" },
	{ "tcgen05.dealloc", "tcgen05.dealloc", "" },
	{ "tcgen05.ld", "tcgen05.ld", "" },
	{ "tcgen05.st", "tcgen05.st", "" },
	{ "tcgen05.cp", "tcgen05.cp", "" },
	{ "tcgen05.shift", "tcgen05.shift", "" },
	{ "tcgen05.commit", "tcgen05.commit", "" },
	{ "tcgen05.mma", "tcgen05.mma", "" },
	{ "tcgen05.mma.ws", "tcgen05.mma.ws", "" },
	{ "tcgen05.mma scaled", "tcgen05.mma", "block_scale" },
	{ "tcgen05.mma pair", "tcgen05.mma", "cta_group::2" },
	{ "tensor load", "cp.async.bulk.tensor", "complete_tx" },
	{ "tensor store", "cp.async.bulk.tensor", "bulk_group" },
	{ "tensor reduce", "cp.reduce.async.bulk.tensor", "" },
	{ "tensor multicast", "cp.async.bulk.tensor", "multicast" },
	{ "im2col", "cp.async.bulk.tensor", "im2col" },
	{ "gather4", "cp.async.bulk.tensor", "gather4" },
	{ "scatter4", "cp.async.bulk.tensor", "scatter4" },
	{ "tensormap.replace", "tensormap.replace", "" },
	{ "bulk copy", "cp.async.bulk.", "complete_tx" },
	{ "bulk reduce", "cp.reduce.async.bulk.", "" },
	{ "cp.async", "cp.async.c", "" },
	{ "mbarrier", "mbarrier.arrive", "" },
	{ "st.async", "st.async", "" },
	{ "red.async", "red.async", "" },
	{ "try_cancel", "clusterlaunchcontrol", "" },
	{ "printf", "call", "vprintf" },
	{ "assert", "call", "__assertfail" },
	{ "malloc", "call", "malloc" },
	{ "free", "call", "free" },
	{ "indirect call", "call", "PROTO" },
	{ "brx", "brx", "" },
	{ "setmaxnreg", "setmaxnreg", "" },
	{ "griddepcontrol", "griddepcontrol", "" },
	{ "barrier.cluster", "barrier.cluster", "" },
	{ "local", ".local.", "" },
	{ "alloca", "alloca", "" },
	{ "atom", "atom", "" },
	{ "red", "\tred", "" },
	{ "mma", "mma.", "sync.aligned.m" },
	{ "wmma", "wmma.", "" },
	{ "ldmatrix", "ldmatrix", "" },
	{ "stmatrix", "stmatrix", "" },
	{ "shfl", "shfl", "" },
	{ "handed memory", "ld.global.u64", "handed" },
};
const unsigned fuzz_nfamily = ARRAY_LEN(fuzz_families);
_Static_assert(ARRAY_LEN(fuzz_families) <= 60, "a bit for each, and the counts of a farm");

/* ---- what a run was ---- */

static void add(uint64_t *hash, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		*hash = *hash * 31 + p[i];
}

static void add_text(void *user, const char *text) { add(user, text, strlen(text)); }

/* The text of line n, from 1 on; its length in *size. */
static const char *line_of(const char *text, unsigned n, size_t *size)
{
	while (n > 1 && (text = strchr(text, '\n')))
		text++, n--;
	*size = text ? strcspn(text, "\n") : 0;
	return text;
}

static bool has(const char *line, size_t size, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= size; i++)
		if (!memcmp(line + i, word, n))
			return true;
	return false;
}

/* The families of the instruction on a line. */
static uint64_t families_at(const char *text, int number)
{
	size_t size;
	const char *line = line_of(text, (unsigned)number, &size);
	uint64_t bits = 0;

	for (unsigned j = 0; line && j < fuzz_nfamily; j++)
		if (has(line, size, fuzz_families[j].word) && has(line, size, fuzz_families[j].other))
			bits |= UINT64_C(1) << j;
	return bits;
}

/* The families that were executed.  An assertion that fails ends the launch before the call of it is counted. */
static uint64_t reached(const cptx_device *dev, const char *text)
{
	const cptx_emu_finding *found;
	cptx_emu_profile f;
	uint64_t bits = 0;

	for (size_t i = 0; cptx_emu_get_profile(dev, i, &f); i++)
		if (f.executed)
			bits |= families_at(text, f.at.line);
	for (size_t i = 0; (found = cptx_emu_finding_at(dev, i)); i++)
		if (found->code == CPTX_FIND_ASSERT)
			bits |= families_at(text, found->at.line);
	return bits;
}

/* ---- what the host does ---- */

typedef struct host {
	cptx_device *dev;
	uint64_t at[FUZZ_HANDED]; /* 0: none, or freed */
	uint64_t size[FUZZ_HANDED];
	void *mapped[FUZZ_HANDED]; /* memory of the host */
	uint64_t hash;
} host;

static void release(host *h, unsigned i)
{
	cptx_mem_free(h->dev, h->at[i]);
	h->at[i] = 0;
	free(h->mapped[i]);
	h->mapped[i] = NULL;
}

static void acquire(host *h, fuzz_kernel *k, unsigned i)
{
	static const uint64_t large[] = { UINT64_C(1) << 34, UINT64_C(1) << 44, UINT64_MAX, UINT64_MAX - 4095, 0 };
	dice *d = &k->d;
	cptx_error err = { 0 };

	release(h, i);
	h->size[i] = fuzz_wrong(k) ? large[roll(d, ARRAY_LEN(large))] : 16 + roll(d, 1u << (4 + roll(d, 14)));
	if (roll(d, 3) || h->size[i] > 1 << 20) {
		h->at[i] = cptx_mem_alloc(h->dev, h->size[i], &err);
		return;
	}
	/* The address that kernels see has the alignment of this one, up to 512 bytes. */
	if (posix_memalign(&h->mapped[i], 512, h->size[i]))
		h->mapped[i] = NULL;
	else
		memset(h->mapped[i], 0, h->size[i]);
	h->at[i] = h->mapped[i] ? cptx_emu_map(h->dev, h->mapped[i], h->size[i], &err) : 0;
}

/* A call of the host on memory that is there, beside it, or nowhere. */
static void touch(host *h, fuzz_kernel *k)
{
	dice *d = &k->d;
	unsigned char bytes[512];
	unsigned i = roll(d, FUZZ_HANDED), j = roll(d, FUZZ_HANDED), n = roll(d, 3) ? 16 : roll(d, sizeof bytes + 1);
	uint64_t at = h->at[i], to = h->at[j];
	cptx_error err = { 0 };
	bool ok = false;

	if (fuzz_wrong(k))
		at += fuzz_any(d);
	if (fuzz_wrong(k))
		to = fuzz_wide(d);
	memset(bytes, 0, sizeof bytes);
	switch (roll(d, 8)) {
	case 0: ok = cptx_mem_read(h->dev, bytes, at, n, &err); break;
	case 1: ok = cptx_mem_write(h->dev, at, bytes, n, &err); break;
	case 2: ok = cptx_mem_copy(h->dev, to, at, n, &err); break;
	case 3: ok = cptx_mem_fill8(h->dev, at, (uint8_t)n, n, &err); break;
	case 4: ok = cptx_mem_fill32(h->dev, at, n, n / 4, &err); break;
	case 5: ok = cptx_emu_host(h->dev, at, fuzz_wrong(k) ? (size_t)fuzz_wide(d) : n, &err) != NULL; break;
	case 6:
		if (k->hostile)
			release(h, i);
		break;
	default: acquire(h, k, i); break;
	}
	add(&h->hash, bytes, sizeof bytes);
	h->hash = h->hash * 2 + ok;
}

/* Addresses of memory that lives, and in the second half of addresses of memory that may be gone. */
static void hand(host *h, fuzz_kernel *k, cptx_program *p)
{
	cptx_error err = { 0 };
	uint64_t at = cptx_program_global(p, "handed", NULL, &err), all[FUZZ_HANDED];

	for (unsigned i = 0; i < FUZZ_HANDED; i++)
		if (!h->at[i] || !roll(&k->d, 3))
			acquire(h, k, i);
	memcpy(all, h->at, sizeof all);
	for (unsigned i = FUZZ_HANDED / 2; k->hostile && i < FUZZ_HANDED; i++) {
		if (!roll(&k->d, 2))
			release(h, i);
		if (!roll(&k->d, 4))
			all[i] = fuzz_any(&k->d);
	}
	cptx_mem_write(h->dev, at, all, sizeof all, &err);
}

/* ---- running ---- */

static cptx_program *load(fuzz_kernel *k, cptx_device *dev, char **text)
{
	for (;;) {
		cptx_error err = { 0 };
		*text = fuzz_text(k);
		cptx_resources r;
		cptx_program *p = cptx_device_load_text(dev, *text, strlen(*text), &(cptx_load_opt){ .name = "fuzz" }, &err);
		/* What the emulator does not execute is found when the kernel is looked for. */
		bool runs = p && cptx_program_resources(p, "k0", 1, 0, &r, &err);
		const char *where = runs ? NULL : strstr(err.text, "fuzz:");
		if (runs || !k->npiece || !where || !fuzz_drop(k, (unsigned)atoi(where + 5)))
			return p;
		cptx_program_destroy(p);
		free(*text);
	}
}

static bool launch(fuzz_kernel *k, const cptx_program *p, unsigned times, bool show)
{
	uint64_t param[8] = { 0 };
	cptx_error err = { 0 };
	cptx_launch_opt o = { .dyn_smem = k->dyn_smem, CPTX_ARGS(CPTX_ARG_BYTES(param, 64)) };
	bool ok;

	memcpy(o.grid, k->grid, sizeof o.grid);
	memcpy(o.block, k->block, sizeof o.block);
	o.cluster[0] = k->cluster;
	o.overlap = k->cc >= 90 && roll(&k->d, 2), o.cooperative = !roll(&k->d, 4);
	unsigned along = roll(&k->d, 3);
	if (fuzz_wrong(k))
		o.block[along] = roll(&k->d, 2000);
	if (fuzz_wrong(k))
		o.grid[along] = roll(&k->d, 3);
	cptx_launch *l = cptx_launch_new(p, NULL, &o, &err);
	ok = l != NULL;
	for (unsigned i = 0; ok && i < times; i++)
		ok = cptx_launch_run(l, NULL, &err);
	if (!ok && show)
		printf("%s\n", err.text);
	cptx_launch_destroy(l);
	return ok;
}

static void look_at(const cptx_device *dev, fuzz_outcome *out)
{
	cptx_emu_counters count = { 0 };
	const cptx_emu_finding *f;

	for (size_t i = 0; (f = cptx_emu_finding_at(dev, i)); i++) {
		add(&out->hash, f->text, strlen(f->text));
		add(&out->hash, &f->count, sizeof f->count);
		out->found = true;
	}
	cptx_emu_get_counters(dev, &count);
	add(&out->hash, &count, sizeof count);
	out->launched = count.launches != 0;
	out->instructions = count.warp_instructions;
}

fuzz_outcome fuzz_run(fuzz_kernel *k, uint32_t threads, bool show)
{
	fuzz_outcome out = { .hash = 1 };
	cptx_emu_opt opt = { .seed = k->d.state, .step_limit = STEPS, .threads = threads, .print = add_text, .user = &out.hash };
	opt.schedule = (enum cptx_emu_schedule)roll(&k->d, 3);
	opt.sms = roll(&k->d, 4);
	host h = { .dev = cptx_emu_open(k->target, &opt, NULL), .hash = 1 };
	dice after_load = k->d;
	char *text = NULL;

	if (!h.dev)
		return out;
	cptx_program *p = load(k, h.dev, &text);
	k->d = after_load;
	for (unsigned n = roll(&k->d, 12); n; n--)
		touch(&h, k);
	if (p) {
		out.loaded = true;
		hand(&h, k, p);
		out.ended = launch(k, p, 1 + roll(&k->d, 2), show);
		look_at(h.dev, &out);
		out.reached = reached(h.dev, text);
		uint64_t at = cptx_program_global(p, "in_global", NULL, NULL);
		unsigned char *all = malloc(FUZZ_GLOBAL);
		if (all && cptx_mem_read(h.dev, all, at, FUZZ_GLOBAL, NULL))
			add(&out.hash, all, FUZZ_GLOBAL);
		free(all);
	}
	for (unsigned n = roll(&k->d, 6); n; n--)
		touch(&h, k);
	add(&out.hash, &h.hash, sizeof h.hash);
	cptx_program_destroy(p);
	for (unsigned i = 0; i < FUZZ_HANDED; i++)
		if (roll(&k->d, 2) || h.mapped[i])
			release(&h, i);
	cptx_device_close(h.dev);
	free(text);
	return out;
}
