/* SPDX-License-Identifier: MIT */
/* Launches with tensors: checks arguments against the signature, turns them into addresses and numbers, and runs. */
#include "base/options.h"
#include "tensor/tensor.h"

#include <cptx/emu.h>

#include <math.h>
#include <stdlib.h>

/* ---- preparing ---- */

static cptx_arg placeholder(const entry *a)
{
	if (a->is_tensor)
		return cptx_arg_u64_(0);
	switch (a->type) {
	case CPTX_F32: return cptx_arg_f32_(0);
	case CPTX_F64: return cptx_arg_f64_(0);
	default: break;
	}
	switch (cptx_type_bits(a->type)) {
	case 8: return cptx_arg_u8_(0);
	case 16: return cptx_arg_u16_(0);
	case 32: return cptx_arg_u32_(0);
	default: return cptx_arg_u64_(0);
	}
}

/* Checks the signature against the kernel's parameters, by preparing a launch with values of its types. */
static bool prepare(cptx_tensor_launch *l, const cptx_program *p, const char *name, const cptx_tensor_launch_opt *opt,
                    cptx_site at, cptx_error *err)
{
	cptx_arg args[MAX_ARGS];
	cptx_launch_opt o = { .size = CPTX_OPT_SIZE(cptx_launch_opt),
		                  .dyn_smem = opt->dyn_smem,
		                  .overlap = opt->overlap,
		                  .nargs = l->s.nargs,
		                  .args = args };
	kernel k;

	if (!program_find(p, name, &k, at, err))
		return false;
	memcpy(o.block, opt->block, sizeof o.block);
	memcpy(o.cluster, opt->cluster, sizeof o.cluster);
	for (int i = 0; i < 3; i++) /* any valid grid */
		o.grid[i] = MAX(opt->cluster[0] ? opt->cluster[i] : k.info.bounds.cluster[i], 1u);
	for (size_t i = 0; i < l->s.nargs; i++) {
		args[i] = placeholder(&l->s.arg[i]);
		l->ngiven += !l->s.arg[i].value.n;
	}
	l->launch = cptx_launch_new_(at, p, name, &o, err);
	return l->launch != NULL;
}

cptx_tensor_launch *cptx_tensor_launch_new_(cptx_site at, const cptx_program *p, const char *name,
                                            const cptx_tensor_launch_opt *opt, cptx_error *err)
{
	if (!may_go(err))
		return NULL;
	if (!p || !opt || !opt->signature) {
		error_set(err, CPTX_E_ARG, at, "the %s NULL", !p ? "program is" : !opt ? "options are" : "signature is");
		return NULL;
	}
	cptx_tensor_launch_opt o;
	if (!OPTIONS_READ(cptx_tensor_launch_opt, &o, opt, at, err))
		return NULL;
	opt = &o;
	cptx_tensor_launch *l = NEW(cptx_tensor_launch);
	if (!l) {
		no_memory(err, at);
		return NULL;
	}
	l->dev = p->dev;
	pthread_mutex_init(&l->lock, NULL);
	if (signature_read(&l->s, opt->signature, opt->grid, at, err) && prepare(l, p, name, opt, at, err))
		return l;
	cptx_tensor_launch_destroy(l);
	return NULL;
}

void cptx_tensor_launch_destroy(cptx_tensor_launch *l)
{
	if (!l)
		return;
	cptx_launch_destroy(l->launch);
	arena_free(&l->s.mem);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

bool cptx_tensor_launch_arg_(const cptx_tensor_launch *l, size_t i, cptx_tensor_arg_info *info, size_t size)
{
	for (const entry *a = l && info ? l->s.arg : NULL; a && a < l->s.arg + l->s.nargs; a++)
		if (!a->value.n && !i--) {
			const cptx_tensor_arg_info x = { a->name, a->type, a->is_tensor, a->is_const, a->is_optional };
			RESULT_FILL(info, size, &x);
			return true;
		}
	return false;
}

/* ---- one run ---- */

typedef struct run {
	cptx_tensor_launch *l;
	cptx_error *err;
	void *stream;
	tensor_binding names[MAX_NAMES];
	uint64_t value[MAX_ARGS];                 /* the values that the kernel gets */
	uint64_t first[MAX_ARGS], span[MAX_ARGS]; /* for the emulator: the host memory that tensors reach */
	uint64_t mapped[MAX_ARGS];                /* mappings made for this run, to be freed */
	size_t nmapped;
} run;

static bool refuse(const run *r, const entry *a, const char *format, ...) CPTX_PRINTF_(3, 4);
static bool refuse(const run *r, const entry *a, const char *format, ...)
{
	cptx_error why = { .code = CPTX_OK };
	va_list ap;

	va_start(ap, format);
	error_vset(&why, CPTX_E_ARG, NOWHERE, format, ap);
	va_end(ap);
	return error_set(r->err, CPTX_E_ARG, r->l->launch->at, "kernel %s: argument \"%s\" %s", r->l->launch->k.info.name,
	                 a->name, why.text);
}

static const char *kind_text(uint32_t kind)
{
	switch (kind) {
	case CPTX_TENSOR_NONE: return "nothing";
	case CPTX_TENSOR_INT:
	case CPTX_TENSOR_UINT: return "an integer";
	case CPTX_TENSOR_FLOAT: return "a floating point number";
	case CPTX_TENSOR_DL:
	case CPTX_TENSOR_MANAGED:
	case CPTX_TENSOR_VERSIONED:
	case CPTX_TENSOR_OBJECT: return "a tensor";
	default: return "of no kind of argument";
	}
}

/* The DLTensor of an argument; NULL with an error. */
static const DLTensor *see(run *r, const entry *a, const cptx_tensor_arg *given, DLTensor *place, bool *read_only)
{
	const DLTensor *t = NULL;

	*read_only = false;
	switch (given->kind) {
	case CPTX_TENSOR_DL: t = (const DLTensor *)given->u.tensor; break;
	case CPTX_TENSOR_MANAGED: t = given->u.managed ? &given->u.managed->dl_tensor : NULL; break;
	case CPTX_TENSOR_VERSIONED:
		if (given->u.versioned && given->u.versioned->version.major != DLPACK_MAJOR_VERSION) {
			refuse(r, a, "is of version %u of DLPack; cptx knows %d", given->u.versioned->version.major,
			       DLPACK_MAJOR_VERSION);
			return NULL;
		}
		t = given->u.versioned ? &given->u.versioned->dl_tensor : NULL;
		*read_only = t && (given->u.versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY);
		break;
	case CPTX_TENSOR_OBJECT:
		if (!given->u.object || !given->api || !given->api->dltensor_from_py_object_no_sync) {
			refuse(r, a, "has no object, or no exchange API that gives a DLTensor");
			return NULL;
		}
		if (given->api->dltensor_from_py_object_no_sync(given->u.object, place)) {
			refuse(r, a, "is a Python object that its framework does not give as a DLTensor");
			return NULL;
		}
		return place;
	default:
		refuse(r, a, "is %s, but must be a tensor of .%s", kind_text(given->kind), cptx_type_name(a->type));
		return NULL;
	}
	if (!t)
		refuse(r, a, "is NULL");
	return t;
}

static bool framework_stream(run *r, const DLTensor *t, const cptx_tensor_arg *given)
{
	void *s = NULL;

	if (r->stream != CPTX_TENSOR_STREAM || given->kind != CPTX_TENSOR_OBJECT || !given->api->current_work_stream)
		return true;
	if (t->device.device_type == kDLCPU)
		return true;
	if (given->api->current_work_stream(t->device.device_type, t->device.device_id, &s))
		return error_set(r->err, CPTX_E_STATE, r->l->launch->at, "kernel %s: the framework does not tell its current stream",
		                 r->l->launch->k.info.name);
	r->stream = s;
	return true;
}

static bool take_tensor(run *r, size_t i, const cptx_tensor_arg *given)
{
	const entry *a = &r->l->s.arg[i];
	DLTensor place;
	bool read_only;

	r->value[i] = r->span[i] = 0;
	if (given->kind == CPTX_TENSOR_NONE && a->is_optional)
		return true;
	const DLTensor *t = see(r, a, given, &place, &read_only);
	if (!t || !tensor_fits(r->l, i, t, read_only, r->names, r->err) || !framework_stream(r, t, given))
		return false;
	r->value[i] = (uint64_t)(uintptr_t)t->data + t->byte_offset;
	if (r->l->dev->ops->map)
		r->span[i] = tensor_span(t, &r->first[i]);
	return true;
}

static bool integer_fits(const run *r, const entry *a, int64_t v)
{
	return type_holds(a->type, v) || refuse(r, a, "is %lld, but must be a .%s", (long long)v, cptx_type_name(a->type));
}

#define F32_END 0x1.ffffffp127 /* from this number on an f32 rounds to infinity */

static bool take_number(run *r, size_t i, const cptx_tensor_arg *given)
{
	const entry *a = &r->l->s.arg[i];
	bool is_float = a->type == CPTX_F32 || a->type == CPTX_F64, is_int = given->kind == CPTX_TENSOR_INT;
	int64_t v = given->u.i;

	if (!is_int && given->kind != CPTX_TENSOR_UINT && (!is_float || given->kind != CPTX_TENSOR_FLOAT))
		return refuse(r, a, "is %s, but must be a number of .%s", kind_text(given->kind), cptx_type_name(a->type));
	if (is_float) {
		double d = is_int ? (double)v : given->kind == CPTX_TENSOR_UINT ? (double)given->u.u : given->u.f;
		if (a->type == CPTX_F32 && isfinite(d) && fabs(d) >= F32_END)
			return refuse(r, a, "is %g, which .f32 does not hold", d);
		float f = (float)d;
		a->type == CPTX_F64 ? memcpy(&r->value[i], &d, 8) : memcpy(&r->value[i], &f, 4);
		return true;
	}
	bool all_64_bits = !is_int && v < 0; /* the number is 2^63 or more */
	if (all_64_bits && a->type != CPTX_U64 && a->type != CPTX_B64)
		return refuse(r, a, "is %llu, but must be a .%s", (unsigned long long)given->u.u, cptx_type_name(a->type));
	if (!all_64_bits && !integer_fits(r, a, v))
		return false;
	r->value[i] = (uint64_t)v;
	const tensor_binding *b = &r->names[a->symbol];
	return tensor_bind(r->names, CPTX_OPT_(extent, .kind = EXTENT_NAME, .name = (uint8_t)a->symbol), v, i) ||
	       refuse(r, a, "is %lld, but %s is %lld by argument \"%s\"", (long long)v, a->name, (long long)b->v,
	              r->l->s.arg[b->by].name);
}

static bool compute(const run *r, const product *p, int64_t *v)
{
	for (const extent *e = p->factor; e < p->factor + p->n; e++)
		if (e->kind == EXTENT_NAME && !r->names[e->name].known)
			return error_set(r->err, CPTX_E_ARG, r->l->launch->at,
			                 "kernel %s: %s is not known: the optional argument that "
			                 "has it is missing",
			                 r->l->launch->k.info.name, r->l->s.name[e->name]);
	return product_value(p, r->names, v) ||
	       error_set(r->err, CPTX_E_ARG, r->l->launch->at, "kernel %s: a product of dimensions is beyond 64 bits",
	                 r->l->launch->k.info.name);
}

static bool take_all(run *r, const cptx_tensor_arg *given)
{
	const signature *s = &r->l->s;

	for (size_t i = 0; i < s->nargs; i++) {
		if (s->arg[i].value.n)
			continue;
		if (s->arg[i].is_tensor ? !take_tensor(r, i, given) : !take_number(r, i, given))
			return false;
		given++;
	}
	for (size_t i = 0; i < s->nargs; i++) {
		int64_t v;
		if (!s->arg[i].value.n)
			continue;
		if (!compute(r, &s->arg[i].value, &v) || !integer_fits(r, &s->arg[i], v))
			return false;
		r->value[i] = (uint64_t)v;
	}
	return true;
}

/* Computes the grid; *nothing: it has no CTAs. */
static bool find_grid(const run *r, const uint32_t *given, uint32_t grid[3], bool *nothing)
{
	const product *p = r->l->s.grid;
	const char *name = r->l->launch->k.info.name;

	*nothing = false;
	for (int i = 0; i < 3; i++) {
		int64_t v = given ? MAX((int64_t)given[i], i ? 1 : 0) : 1;
		if (!given && !p[0].n)
			return error_set(r->err, CPTX_E_ARG, r->l->launch->at,
			                 "kernel %s: it was prepared without a grid, and this run gives none", name);
		if (!given && p[i].n && !compute(r, &p[i], &v))
			return false;
		if (v < 0 || v > UINT32_MAX)
			return error_set(r->err, CPTX_E_LIMIT, r->l->launch->at, "kernel %s: dimension %d of the grid is %lld", name, i,
			                 (long long)v);
		grid[i] = (uint32_t)v;
		*nothing |= !v;
	}
	return true;
}

/* ---- memory of the host on the emulator ---- */

/*
 * Maps the tensors of a run.  Tensors that overlap become one mapping, so that the same byte has the same address in all.
 * Each iteration takes the lowest range that is not mapped yet, and all that overlap it.
 */
static bool map_tensors(run *r)
{
	size_t n = r->l->s.nargs;
	bool done[MAX_ARGS] = { false };

	for (;;) {
		size_t lowest = n;
		for (size_t i = 0; i < n; i++)
			if (r->span[i] && !done[i] && (lowest == n || r->first[i] < r->first[lowest]))
				lowest = i;
		if (lowest == n)
			return true;
		uint64_t first = r->first[lowest], end = first + r->span[lowest];
		for (size_t i = 0, again = 0; i < n; i = again ? 0 : i + 1) {
			again = r->span[i] && r->first[i] < end && r->first[i] + r->span[i] > end;
			end = again ? r->first[i] + r->span[i] : end;
		}
		uint64_t at = cptx_emu_map(r->l->dev, (void *)(uintptr_t)first, (size_t)(end - first), r->err);
		if (!at)
			return false;
		r->mapped[r->nmapped++] = at;
		for (size_t i = 0; i < n; i++)
			if (r->span[i] && !done[i] && r->first[i] >= first && r->first[i] < end) {
				r->value[i] += at - first;
				done[i] = true;
			}
	}
}

static bool launch_mapped(run *r)
{
	cptx_device *dev = r->l->dev;

	dev->ops->lock(dev);
	bool ok = map_tensors(r);
	for (size_t i = 0; ok && i < r->l->s.nargs; i++)
		memcpy(r->l->launch->params[i], &r->value[i], r->l->launch->sizes[i]);
	ok = ok && cptx_launch_run(r->l->launch, NULL, r->err);
	for (size_t i = 0; i < r->nmapped; i++)
		cptx_mem_free(dev, r->mapped[i]);
	dev->ops->unlock(dev);
	return ok;
}

static bool launch(run *r)
{
	cptx_launch *l = r->l->launch;

	if (r->l->dev->ops->map)
		return launch_mapped(r);
	for (size_t i = 0; i < l->nargs; i++)
		memcpy(l->params[i], &r->value[i], l->sizes[i]);
	return l->run(l, r->stream == CPTX_TENSOR_STREAM ? NULL : r->stream, r->err);
}

bool cptx_tensor_launch_run(cptx_tensor_launch *l, const cptx_tensor_arg *args, size_t n, const uint32_t *given_grid,
                            void *stream, cptx_error *err)
{
	run r; /* not zeroed as a whole: the names are set below, the arrays as far as they are used */
	uint32_t grid[3];
	bool nothing;

	if (!may_go(err))
		return false;
	if (!l || (n && !args))
		return error_set(err, CPTX_E_ARG, NOWHERE, "the %s NULL", !l ? "launch is" : "arguments are");
	if (n != l->ngiven)
		return error_set(err, CPTX_E_ARG, l->launch->at, "kernel %s: its signature takes %zu argument%s, but %zu %s given",
		                 l->launch->k.info.name, l->ngiven, l->ngiven == 1 ? "" : "s", n, n == 1 ? "was" : "were");
	r.l = l, r.err = err, r.stream = stream, r.nmapped = 0;
	memset(r.span, 0, l->s.nargs * sizeof *r.span);
	memset(r.names, 0, l->s.nnames * sizeof *r.names);
	if (!take_all(&r, args) || !find_grid(&r, given_grid, grid, &nothing))
		return false;
	if (nothing)
		return true;
	pthread_mutex_lock(&l->lock);
	bool ok = cptx_launch_grid_(l->launch->at, l->launch, grid[0], grid[1], grid[2], err) && launch(&r);
	pthread_mutex_unlock(&l->lock);
	return ok;
}
