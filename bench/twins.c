/* SPDX-License-Identifier: MIT */
#include "twins.h"

#include <stdio.h>
#include <stdlib.h>

enum { TILE = 128, THREADS = 256, STAGES = 3 };

static const struct {
	const char *name;
	unsigned rung;
	uint32_t bk; /* of those that load by TMA */
} twin[TWINS] = { { "bcf_dbf_rw", 0, 0 }, { "k_stages", 1, 0 }, { "tma_r_64", 2, 64 }, { "tma_r_32", 2, 32 } };

const char *twin_name(unsigned i) { return twin[i].name; }
unsigned twin_rung(unsigned i) { return twin[i].rung; }

static cptx_program *load(cptx_device *dev, const char *path, const cptx_load_opt *opt, cptx_error *err)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	long size = 0;
	cptx_program *p = NULL;

	if (f && !fseek(f, 0, SEEK_END) && (size = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET) &&
	    (text = malloc((size_t)size + 1)) && fread(text, 1, (size_t)size, f) == (size_t)size) {
		text[size] = 0;
		p = cptx_device_load_text(dev, text, (size_t)size + 1, opt, err);
	} else {
		err->code = CPTX_E_ARG;
		snprintf(err->text, sizeof err->text, "%s cannot be read", path);
	}
	if (f)
		fclose(f);
	free(text);
	return p;
}

/* Boxes as the kernels' authors have them: A of TILE rows of bk, B of bk rows of half a tile. */
static bool maps(cptx_device *dev, uint32_t bk, uint32_t n, uint64_t a, uint64_t b, cptx_tensor_map map[2], cptx_error *err)
{
	cptx_tensor_map_opt o = { .type = CPTX_TENSOR_BF16, .rank = 2, .dim = { n, n }, .l2 = 128 };

	o.address = a, o.box[0] = bk, o.box[1] = TILE;
	o.swizzle = bk == 64 ? CPTX_SWIZZLE_128B : CPTX_SWIZZLE_64B;
	if (!cptx_tensor_map_make(dev, &o, &map[0], err))
		return false;
	o.address = b, o.box[0] = TILE / 2, o.box[1] = bk, o.swizzle = CPTX_SWIZZLE_128B;
	return cptx_tensor_map_make(dev, &o, &map[1], err);
}

static cptx_launch *launch(const twins *t, cptx_device *dev, unsigned i, uint32_t n, uint64_t a, uint64_t b, uint64_t c,
                           cptx_error *err)
{
	cptx_launch_opt l = { .grid = { n / TILE, n / TILE }, .block = { THREADS } };
	cptx_tensor_map map[2];
	cptx_arg plain[] = { CPTX_ARG(a), CPTX_ARG(b), CPTX_ARG(c), CPTX_ARG(n), CPTX_ARG(n), CPTX_ARG(n) };

	if (!twin[i].bk) {
		l.args = plain, l.nargs = 6;
		return cptx_launch_new(t->program, twin[i].name, &l, err);
	}
	if (!maps(dev, twin[i].bk, n, a, b, map, err))
		return NULL;
	plain[0] = CPTX_ARG_BYTES(&map[0], sizeof map[0]), plain[1] = CPTX_ARG_BYTES(&map[1], sizeof map[1]);
	l.args = plain, l.nargs = 6;
	l.dyn_smem = STAGES * 2 * TILE * twin[i].bk * 2 + STAGES * 8;
	return cptx_launch_new(t->program, twin[i].name, &l, err);
}

bool twins_prepare(twins *t, cptx_device *dev, const char *path, const cptx_load_opt *opt, uint32_t n, uint64_t a,
                   uint64_t b, uint64_t c, cptx_error *err)
{
	*t = (twins){ .program = load(dev, path, opt, err) };
	for (unsigned i = 0; t->program && i < TWINS; i++)
		if (!(t->launch[i] = launch(t, dev, i, n, a, b, c, err)))
			return false;
	return t->program != NULL;
}

void twins_destroy(twins *t)
{
	for (unsigned i = 0; i < TWINS; i++)
		cptx_launch_destroy(t->launch[i]);
	cptx_program_destroy(t->program);
}
