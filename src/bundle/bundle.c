/* SPDX-License-Identifier: MIT */
/* Making bundles: texts and tables are put behind one another as they come, each once; images stand behind all of them. */
#include "base/options.h"
#include "bundle/loader/cptx_load.h"

#include <cptx/bundle.h>

#include <stdio.h>

enum { SMS = 256, MOST_PARAMS = 64, MOST_MAPS = 16 };

/* A piece that is there already. */
typedef struct piece {
	uint64_t at, size, sum;
} piece;

typedef struct store {
	buf bytes;
	piece *pieces;
	size_t n, cap;
} store;

typedef struct entry {
	struct entry *next;
	cptx_load_entry e; /* .args and .name are places in the store */
	char *name;
	cptx_load_variant *variants;
} entry;

struct cptx_bundle {
	store meta, images; /* places in meta count from the start of the file, those in images from their own start */
	entry *first, **last;
	uint32_t nentries;
	uint64_t made;
	uint64_t *data;
};

/* ---- pieces ---- */

static uint64_t sum_of(const void *p, size_t n)
{
	uint64_t sum = n + 1;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ ((const unsigned char *)p)[i]) * UINT64_C(0x100000001b3);
	return sum;
}

/* The place of bytes in a store, aligned to 8; they are added if they are not there yet. */
static uint64_t put(store *s, const void *p, size_t n)
{
	static const char zeros[8] = { 0 };
	const uint64_t sum = sum_of(p, n);

	if (s->bytes.failed)
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->pieces[i].sum == sum && s->pieces[i].size == n && !memcmp(s->bytes.p + s->pieces[i].at, p, n))
			return s->pieces[i].at;
	if (s->n == s->cap) {
		const size_t cap = s->cap ? 2 * s->cap : 64;
		piece *more = GROW_ARRAY(piece, s->pieces, cap);
		if (!more) {
			s->bytes.failed = true;
			return 0;
		}
		s->pieces = more, s->cap = cap;
	}
	const uint64_t at = s->bytes.n;
	buf_put(&s->bytes, (const char *)p, n);
	buf_put(&s->bytes, zeros, (8 - n % 8) % 8);
	if (s->bytes.failed)
		return 0;
	s->pieces[s->n++] = (piece){ at, n, sum };
	return at;
}

static uint64_t put_meta(cptx_bundle *b, const void *p, size_t n) { return put(&b->meta, p, n) + sizeof(cptx_load_head); }
static uint64_t put_text(cptx_bundle *b, const char *text)
{
	return put_meta(b, text ? text : "", strlen(text ? text : "") + 1);
}

static bool no_memory(cptx_error *err) { return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory"); }

cptx_bundle *cptx_bundle_new(const char *made, cptx_error *err)
{
	cptx_bundle *b = may_go(err) ? NEW(cptx_bundle) : NULL;

	if (!b) {
		no_memory(err);
		return NULL;
	}
	buf_init(&b->meta.bytes, &heap_default);
	buf_init(&b->images.bytes, &heap_default);
	b->last = &b->first;
	b->made = put_text(b, made ? made : "cptx " CPTX_VERSION);
	return b;
}

void cptx_bundle_destroy(cptx_bundle *b)
{
	if (!b)
		return;
	for (entry *e = b->first, *next; e; e = next) {
		next = e->next;
		free(e->name);
		free(e->variants);
		free(e);
	}
	buf_free(&b->meta.bytes);
	buf_free(&b->images.bytes);
	free(b->meta.pieces);
	free(b->images.pieces);
	free(b->data);
	free(b);
}

/* ---- variants ---- */

#define RULE(ok, code, ...)                                                                                                 \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, (code), NOWHERE, "bundle: " __VA_ARGS__);                                                 \
	while (0)

static bool check(const cptx_bundle_kernel *k, cptx_error *err)
{
	uint32_t maps = 0;

	RULE(k->name && *k->name, CPTX_E_ARG, "an entry needs a .name");
	RULE(k->target && cptx_target_find(k->target), CPTX_E_ARG, "%s: there is no target \"%s\"", k->name,
	     k->target ? k->target : "NULL");
	RULE(k->module && k->kernel && k->grid && (k->args || !k->nargs) && (k->params || !k->nparams), CPTX_E_ARG,
	     "%s: .module, .kernel, .grid, .args or .params is NULL", k->name);
	RULE(!k->no_ptx || k->machine_code, CPTX_E_ARG, "%s: .no_ptx without .machine_code leaves nothing", k->name);
	RULE(k->threads && k->threads <= 1024, CPTX_E_ARG, "%s: %u threads; a CTA has 1 to 1024", k->name, k->threads);
	for (uint32_t i = 0; i < k->nparams; i++) {
		const cptx_bundle_param *p = &k->params[i];
		RULE(p->kind == CPTX_BUNDLE_VALUE || p->arg < k->nargs, CPTX_E_ARG, "%s: parameter %u is argument %u of %u", k->name,
		     i, p->arg, k->nargs);
		RULE(p->kind != CPTX_BUNDLE_MAP || (p->map && p->map->mode == CPTX_TENSOR_TILED), CPTX_E_ARG,
		     "%s: parameter %u has no tiled tensor map", k->name, i);
		maps += p->kind == CPTX_BUNDLE_MAP;
	}
	RULE(k->nparams <= MOST_PARAMS && maps <= MOST_MAPS, CPTX_E_LIMIT, "%s: %u parameters with %u maps; at most %d and %d",
	     k->name, k->nparams, maps, MOST_PARAMS, MOST_MAPS);
	return true;
}

/* The driver's numbers of a map, which has strides in full. */
static cptx_load_map map_of(const cptx_bundle_param *p)
{
	const cptx_tensor_map_opt *o = p->map;
	uint64_t stride[CPTX_TENSOR_RANK] = { 0 };
	cptx_load_map m = { .arg = p->arg,
		                .type = (uint32_t)o->type,
		                .rank = o->rank,
		                .interleave = o->interleave / 16,
		                .swizzle = (uint32_t)o->swizzle,
		                .l2 = o->l2 == 256 ? 3 : o->l2 / 64,
		                .fill = o->nan_fill };

	cptx_tensor_map_strides(o, stride);
	for (uint32_t i = 0; i < CPTX_TENSOR_RANK; i++) {
		m.dim[i] = o->dim[i], m.box[i] = o->box[i];
		m.step[i] = o->element_stride[i] ? o->element_stride[i] : 1;
		m.stride[i] = i + 1 < CPTX_TENSOR_RANK ? stride[i + 1] : 0;
	}
	return m;
}

static void put_params(cptx_bundle *b, const cptx_bundle_kernel *k, cptx_load_variant *v)
{
	cptx_load_param params[MOST_PARAMS];
	cptx_load_map maps[MOST_MAPS];

	memset(params, 0, sizeof params);
	for (uint32_t i = 0; i < k->nparams; i++) {
		const cptx_bundle_param *p = &k->params[i];
		params[i].kind = p->kind == CPTX_BUNDLE_VALUE ? CPTX_LOAD_PARAM_VALUE
		                 : p->kind == CPTX_BUNDLE_ARG ? CPTX_LOAD_PARAM_ARG
		                                              : CPTX_LOAD_PARAM_MAP;
		params[i].index = p->kind == CPTX_BUNDLE_MAP ? v->nmaps : p->arg;
		params[i].value = p->kind == CPTX_BUNDLE_VALUE ? p->value : 0;
		if (p->kind == CPTX_BUNDLE_MAP)
			maps[v->nmaps++] = map_of(p);
	}
	v->nparams = k->nparams;
	v->params = put_meta(b, params, k->nparams * sizeof *params);
	v->maps = put_meta(b, maps, v->nmaps * sizeof *maps);
}

static void put_grid(cptx_bundle *b, const cptx_bundle_kernel *k, cptx_load_variant *v)
{
	uint64_t grid[SMS], workspace[SMS];

	for (uint32_t i = 0; i < SMS; i++) {
		workspace[i] = 0;
		grid[i] = k->grid(k->user, i + 1, &workspace[i]);
	}
	v->nsms = SMS;
	v->grid = put_meta(b, grid, sizeof grid), v->workspace = put_meta(b, workspace, sizeof workspace);
}

static bool put_images(cptx_bundle *b, const cptx_bundle_kernel *k, cptx_load_variant *v, cptx_error *err)
{
	cptx_ptx *ptx = cptx_emit(k->module, k->target, NULL, err);
	bool ok = ptx != NULL;

	if (ok && k->machine_code) {
		cptx_cubin *c = cptx_compile_ptx_(
			NOWHERE, ptx, CPTX_OPT(cptx_compile_opt, .compiler = k->compiler, .name = k->name, .cache = k->cache), err);
		ok = c != NULL;
		if (ok)
			v->cubin_bytes = cptx_cubin_size(c), v->cubin = put(&b->images, cptx_cubin_data(c), cptx_cubin_size(c));
		cptx_cubin_destroy(c);
	}
	if (ok && !k->no_ptx) {
		v->ptx_bytes = cptx_ptx_size(ptx) + 1, v->ptx = put(&b->images, cptx_ptx_text(ptx), cptx_ptx_size(ptx) + 1);
		v->ptx_version = cptx_ptx_version(ptx);
	}
	cptx_ptx_destroy(ptx);
	return ok;
}

static entry *find(const cptx_bundle *b, const char *name)
{
	entry *e = b->first;

	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

static uint64_t put_args(cptx_bundle *b, const cptx_bundle_kernel *k)
{
	uint64_t at = 0;
	cptx_load_name_kind *args = NEW_ARRAY(cptx_load_name_kind, k->nargs + 1u);

	if (!args) {
		b->meta.bytes.failed = true;
		return 0;
	}
	for (uint32_t i = 0; i < k->nargs; i++) {
		args[i].name = put_text(b, k->args[i].name);
		args[i].kind = k->args[i].kind == CPTX_BUNDLE_F32 ? CPTX_LOAD_F32 : CPTX_LOAD_POINTER;
	}
	at = put_meta(b, args, k->nargs * sizeof *args);
	free(args);
	return at;
}

/* The entry of that name, with room for one more variant. */
static entry *entry_for(cptx_bundle *b, const cptx_bundle_kernel *k, cptx_error *err)
{
	const uint64_t args = put_args(b, k);
	entry *e = find(b, k->name);
	cptx_load_variant *more;

	if (e && (e->e.nargs != k->nargs || e->e.args != args)) {
		error_set(err, CPTX_E_STATE, NOWHERE, "bundle: %s for %s has other arguments than for targets before", k->name,
		          k->target);
		return NULL;
	}
	const uint64_t target = put_text(b, k->target);
	for (uint32_t i = 0; e && i < e->e.nvariants; i++)
		if (e->variants[i].target == target) {
			error_set(err, CPTX_E_STATE, NOWHERE, "bundle: %s has a variant for %s already", k->name, k->target);
			return NULL;
		}
	if (!e) {
		e = NEW(entry);
		if (!e || !(e->name = strdup(k->name))) {
			free(e);
			no_memory(err);
			return NULL;
		}
		e->e.name = put_text(b, k->name), e->e.about = put_text(b, k->about);
		e->e.args = args, e->e.nargs = k->nargs;
		*b->last = e, b->last = &e->next;
		b->nentries++;
	}
	more = GROW_ARRAY(cptx_load_variant, e->variants, e->e.nvariants + 1);
	if (!more) {
		no_memory(err);
		return NULL;
	}
	e->variants = more;
	return e;
}

bool cptx_bundle_add(cptx_bundle *b, const cptx_bundle_kernel *kernel, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_bundle_kernel k;
	cptx_load_variant v;

	err = err ? err : &own;
	if (err->code != CPTX_OK || !IS_GIVEN(b, "bundle", NOWHERE, err) || !IS_GIVEN(kernel, "kernel", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_bundle_kernel, &k, kernel, NOWHERE, err) || !check(&k, err))
		return false;
	memset(&v, 0, sizeof v);
	if (!put_images(b, &k, &v, err))
		return false;
	entry *e = entry_for(b, &k, err);
	if (!e)
		return false;
	const cptx_target *t = cptx_target_find(k.target);
	v.symbol = put_text(b, k.kernel), v.target = put_text(b, k.target), v.note = put_text(b, k.note);
	v.cc = t->compute_capability, v.suffix = (uint32_t)t->suffix, v.threads = k.threads, v.smem = k.smem;
	put_params(b, &k, &v);
	put_grid(b, &k, &v);
	if (b->meta.bytes.failed || b->images.bytes.failed)
		return no_memory(err);
	e->variants[e->e.nvariants++] = v;
	return true;
}

/* ---- the bytes ---- */

static uint64_t append(buf *b, const void *p, size_t n)
{
	const uint64_t at = b->n + sizeof(cptx_load_head);

	buf_put(b, (const char *)p, n);
	return at;
}

/* Writes entries and variants behind the pieces; returns the place of the entries. */
static uint64_t put_entries(const cptx_bundle *b, buf *meta, uint64_t images)
{
	buf entries;

	buf_init(&entries, &heap_default);
	for (const entry *e = b->first; e; e = e->next) {
		cptx_load_entry out = e->e;
		out.variants = meta->n + sizeof(cptx_load_head);
		for (uint32_t i = 0; i < e->e.nvariants; i++) {
			cptx_load_variant v = e->variants[i];
			v.cubin = v.cubin_bytes ? v.cubin + images : 0, v.ptx = v.ptx_bytes ? v.ptx + images : 0;
			append(meta, &v, sizeof v);
		}
		buf_put(&entries, (const char *)&out, sizeof out);
	}
	const uint64_t at = append(meta, entries.p, entries.n);
	meta->failed |= entries.failed;
	buf_free(&entries);
	return at;
}

const void *cptx_bundle_finish(cptx_bundle *b, size_t *size, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_load_head h;
	uint64_t tables = 0;
	buf meta;

	err = err ? err : &own;
	if (size)
		*size = 0;
	if (err->code != CPTX_OK || !IS_GIVEN(b, "bundle", NOWHERE, err) || !IS_GIVEN(size, "place for the size", NOWHERE, err))
		return NULL;
	for (const entry *e = b->first; e; e = e->next)
		tables += sizeof e->e + e->e.nvariants * sizeof *e->variants;
	memset(&h, 0, sizeof h);
	memcpy(h.magic, CPTX_LOAD_MAGIC, sizeof h.magic);
	h.order = CPTX_LOAD_ORDER, h.nentries = b->nentries, h.made = b->made;
	h.images = sizeof h + b->meta.bytes.n + tables;
	h.bytes = h.images + b->images.bytes.n;
	buf_init(&meta, &heap_default);
	buf_put(&meta, b->meta.bytes.p, b->meta.bytes.n);
	h.entries = put_entries(b, &meta, h.images);
	free(b->data);
	b->data = NEW_ARRAY(uint64_t, h.bytes / 8 + 1);
	if (!b->data || meta.failed || b->meta.bytes.failed || b->images.bytes.failed) {
		buf_free(&meta);
		no_memory(err);
		return NULL;
	}
	memcpy((char *)b->data + sizeof h, meta.p, meta.n);
	if (b->images.bytes.n)
		memcpy((char *)b->data + h.images, b->images.bytes.p, b->images.bytes.n);
	memcpy(b->data, &h, sizeof h);
	h.sum = cptx_load_sum_of((const cptx_load_head *)(const void *)b->data);
	memcpy(b->data, &h, sizeof h);
	buf_free(&meta);
	*size = (size_t)h.bytes;
	return b->data;
}
