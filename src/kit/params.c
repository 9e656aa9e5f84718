/* SPDX-License-Identifier: MIT */
/* Tables of parameters: declared in the kernel, filled at a launch. */
#include <cptx/cptx.h>
#include <cptx/params.h>

#include "base/map_use.h"
#include "base/options.h"
#include "kit/made.h"
#include "kit/params.h"
#include "kit/value.h"
#include "runtime/runtime.h"

#include <stdio.h>

enum { SAID = 1024 /* bytes of a list of names */ };

static uint32_t bytes_of(const cptx_param_row *r)
{
	return r->kind == CPTX_PARAM_SCALAR ? cptx_type_bits(r->type) / 8
	       : r->kind == CPTX_PARAM_TENSOR
	           ? (r->size < FIRST_cptx_tensor_map_opt ? (uint32_t)sizeof(cptx_tensor_map_opt) : r->size)
	           : r->size;
}

static const char *or_unknown(const char *name) { return name ? name : "?"; }

/* Whether the member holds what the row says. */
static bool check(const cptx_param_row *r, cptx_site at, cptx_error *err)
{
	if (!r->name || (unsigned)r->kind > CPTX_PARAM_OBJECT)
		return error_set(err, CPTX_E_ARG, at, "a row of parameters without a name or of no kind; CPTX_PARAM_ROW makes them");
	if (r->kind == CPTX_PARAM_SCALAR && (bytes_of(r) < 1 || bytes_of(r) > 8))
		return error_set(err, CPTX_E_ARG, at, "parameter %s has type .%s; numbers have 8 to 64 bits", r->name,
		                 cptx_type_name(r->type));
	if (r->size == bytes_of(r))
		return true;
	if (r->kind == CPTX_PARAM_TENSOR)
		return error_set(err, CPTX_E_ARG, at,
		                 "parameter %s is a tensor map; member %s of %s has %u bytes and is no "
		                 "cptx_tensor_map_opt, which has %u",
		                 r->name, r->name, or_unknown(r->of), r->size, bytes_of(r));
	return error_set(err, CPTX_E_ARG, at, "parameter %s is .%s, of %u bytes; member %s of %s has %u", r->name,
	                 r->type == CPTX_PTR ? "ptr" : cptx_type_name(r->type), bytes_of(r), r->name, or_unknown(r->of),
	                 r->size);
}

/* ---- the kernel ---- */

static bool is_table(cptx_kernel *k, cptx_site at, const cptx_params *p)
{
	if (!IS_GIVEN_TO(k, at, p, "table of parameters"))
		return false;
	if (!p->made.mark && !p->made.kernel && !p->n) /* nothing is declared yet */
		return true;
	return KIT_IS_MADE(cptx_params, k, at, p);
}

static uint32_t find(const cptx_params *p, const char *name)
{
	uint32_t i = 0;

	while (i < p->n && (!p->row[i].name || strcmp(p->row[i].name, name) != 0))
		i++;
	return i;
}

static cptx_val declare(cptx_kernel *k, cptx_site at, const cptx_param_row *r)
{
	switch (r->kind) {
	case CPTX_PARAM_SCALAR: return cptx_param_(k, at, r->type, r->name);
	case CPTX_PARAM_OBJECT: return cptx_param_bytes_(k, at, r->size, r->align, r->name);
	default: break;
	}
	cptx_val at_map = cptx_param_bytes_(k, at, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, r->name);
	const cptx_val address = CALL(cvta, .a = CALL(mov, .a = at_map, .type = CPTX_U64), .space = CPTX_PARAM);
	ir_map_param_note(k, at, address);
	return address;
}

void cptx_params_declare_(cptx_kernel *k, cptx_site at, cptx_params *p, const cptx_param_row *rows, size_t n)
{
	if (!is_table(k, at, p) || (n && !IS_GIVEN_TO(k, at, rows, "list of rows")))
		return;
	p->made = kit_made(k, KIT_cptx_params);
	for (size_t i = 0; i < n; i++) {
		cptx_error err = { .code = CPTX_OK };
		if (!check(&rows[i], NOWHERE, &err)) {
			cptx_fail_(k, at, "%s", err.text);
			return;
		}
		if (find(p, rows[i].name) < p->n) {
			cptx_fail_(k, at, "parameter %s of %s: %s has one of that name already", rows[i].name, or_unknown(rows[i].of),
			           or_unknown(p->row[find(p, rows[i].name)].of));
			return;
		}
		if (p->n == CPTX_PARAMS_MOST) {
			cptx_fail_(k, at, "parameter %s is one too many; tables declare at most %d", rows[i].name, CPTX_PARAMS_MOST);
			return;
		}
		p->row[p->n] = rows[i];
		p->val[p->n++] = declare(k, at, &rows[i]);
	}
}

cptx_val cptx_params_get_(cptx_kernel *k, cptx_site at, const cptx_params *p, const char *name)
{
	char names[SAID] = "";
	size_t len = 0;

	if (!is_table(k, at, p) || !IS_GIVEN_TO(k, at, name, "name"))
		return (cptx_val){ 0 };
	const uint32_t i = find(p, name);
	if (i < p->n)
		return p->val[i];
	for (uint32_t j = 0; j < p->n && len < sizeof names; j++)
		len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", j ? ", " : "", or_unknown(p->row[j].name));
	return cptx_fail_(k, at, "no parameter '%s'; there %s %s", name, p->n ? "are" : "is", p->n ? names : "none");
}

void cptx_params_prefetch_(cptx_kernel *k, cptx_site at, const cptx_params *p, cptx_val when)
{
	if (!is_table(k, at, p) || !kit_value(k, at, "cptx_params_prefetch", "the predicate", when, KIT_PRED | KIT_NONE))
		return;
	for (uint32_t i = 0; i < p->n; i++)
		if (p->row[i].kind == CPTX_PARAM_TENSOR)
			CALL(prefetch, .a = p->val[i], .tensormap = CPTX_TENSORMAP, .when = when);
}

/* ---- maps ---- */

/* Types whose elements a copy leaves alike.  Integers stand for bits of anything as wide, and float types with rounding or
 * flushing for the same numbers; bf16 and f16 are different ones. */
static bool same_elements(enum cptx_tensor_type a, enum cptx_tensor_type b)
{
	const uint32_t bits = cptx_tensor_type_bits(a);
	const bool floats = a == CPTX_TENSOR_F16 || a == CPTX_TENSOR_BF16;
	const bool other_floats = b == CPTX_TENSOR_F16 || b == CPTX_TENSOR_BF16;

	return a == b || (bits >= 8 && bits == cptx_tensor_type_bits(b) && !(floats && other_floats));
}

/* Elements that a box brings along a dimension. */
static uint32_t boxed(const cptx_tensor_map_opt *o, uint32_t i)
{
	const uint32_t every = i && o->element_stride[i] ? o->element_stride[i] : 1;

	return (o->box[i] + every - 1) / every;
}

/* The map that a copy needs. */
static cptx_tensor_map_opt needed_by(const ir_map_use *use)
{
	cptx_tensor_map_opt o = { .mode = (enum cptx_tensor_mode)use->mode,
		                      .type = (enum cptx_tensor_type)use->type,
		                      .rank = use->rank,
		                      .swizzle = (enum cptx_swizzle)use->swizzle,
		                      .channels = use->channels,
		                      .pixels = use->pixels };

	memcpy(o.box, use->box, sizeof o.box);
	return o;
}

static bool fits(const cptx_tensor_map_opt *needed, const cptx_tensor_map_opt *given)
{
	bool same = needed->mode == given->mode && needed->rank == given->rank && needed->swizzle == given->swizzle &&
	            !given->interleave && same_elements(needed->type, given->type);

	if (needed->mode != CPTX_TENSOR_TILED)
		return same && needed->channels == given->channels && needed->pixels == given->pixels;
	for (uint32_t i = 0; same && i < needed->rank && i < CPTX_TENSOR_RANK; i++)
		same = needed->box[i] == boxed(given, i);
	return same;
}

/* "64 x 128 of bf16, swizzle 128B" */
static void describe(const cptx_tensor_map_opt *o, buf *b)
{
	const char *swizzle = (unsigned)o->swizzle < CPTX_SWIZZLE_COUNT ? cptx_swizzle_get(o->swizzle)->name : "?";

	if (o->mode != CPTX_TENSOR_TILED)
		buf_printf(b, "%u channels x %u pixels, of %u dimensions,", o->channels, o->pixels, o->rank);
	for (uint32_t i = 0; o->mode == CPTX_TENSOR_TILED && i < MIN(o->rank, (uint32_t)CPTX_TENSOR_RANK); i++)
		buf_printf(b, "%s%u", i ? " x " : "", boxed(o, i));
	buf_printf(b, " of %s, swizzle %s", cptx_tensor_type_name(o->type), swizzle);
	if (o->interleave)
		buf_printf(b, ", interleave %u", o->interleave);
}

/* Whether the map of parameter i is one that the kernel's copies by it, as far as they are known, can use. */
static bool check_map(const kernel *k, size_t i, const cptx_param_row *r, const cptx_tensor_map_opt *given, cptx_site at,
                      cptx_error *err)
{
	const ir_map_use *use = NULL;
	buf b;

	for (size_t j = 0; j < k->nmap_use; j++) {
		if (k->map_use[j].param != i)
			continue;
		const cptx_tensor_map_opt needed = needed_by(&k->map_use[j]);
		if (fits(&needed, given))
			return true;
		use = use ? use : &k->map_use[j];
	}
	if (!use)
		return true;
	buf_init(&b, NULL);
	describe(given, &b);
	buf_printf(&b, "; kernel %s %s boxes of ", k->info.name, use->stores ? "stores" : "loads");
	const cptx_tensor_map_opt needed = needed_by(use);
	describe(&needed, &b);
	error_set(
		err, CPTX_E_ARG, at,
		"parameter %s of %s: its tensor map has boxes of %.*s: make it of the same tile: %s with .type and .tile of the %s",
		r->name, or_unknown(r->of), b.failed ? 0 : (int)b.n, b.n ? b.p : "",
		needed.mode == CPTX_TENSOR_TILED ? "cptx_operand_tensor_map" : "cptx_operand_image_map",
		use->stores ? "ring" : "operand");
	buf_free(&b);
	return false;
}

/* ---- launches ---- */

/* What a launch collects. */
typedef struct filling {
	const kernel *k;
	cptx_arg arg[CPTX_PARAMS_MOST];
	cptx_tensor_map map[CPTX_PARAMS_MOST];
	const cptx_param_row *row[CPTX_PARAMS_MOST];
	size_t n;
} filling;

/* Whether the kernel's next parameter has the row's name.  Rows in another order than they were declared would be found by
 * size alone, which many have in common. */
static bool is_named(const filling *f, const cptx_param_row *r, cptx_site at, cptx_error *err)
{
	const cptx_kernel_info *k = &f->k->info;

	if (!k->params || f->n >= k->nparams || !strcmp(k->params[f->n].name, r->name))
		return true;
	return error_set(err, CPTX_E_ARG, at,
	                 "parameter %zu of kernel %s is %s, not %s of %s: give the parts in the order of cptx_params_declare",
	                 f->n, k->name, k->params[f->n].name, r->name, or_unknown(r->of));
}

static bool fill(filling *f, cptx_device *dev, const cptx_param_row *r, const void *args, cptx_site at, cptx_error *err)
{
	const char *member = (const char *)args + r->offset;
	cptx_error why = { .code = CPTX_OK };
	cptx_tensor_map_opt opt;

	if (f->n == CPTX_PARAMS_MOST)
		return error_set(err, CPTX_E_ARG, at, "parameter %s is one too many; tables declare at most %d", or_unknown(r->name),
		                 CPTX_PARAMS_MOST);
	if (!check(r, at, err) || !is_named(f, r, at, err))
		return false;
	cptx_arg *arg = &f->arg[f->n];
	if (r->kind == CPTX_PARAM_TENSOR) {
		if (!OPTIONS_READ(cptx_tensor_map_opt, &opt, member, NOWHERE, &why) ||
		    !cptx_tensor_map_make(dev, &opt, &f->map[f->n], &why))
			return error_set(err, why.code, at, "parameter %s of %s: %s", r->name, or_unknown(r->of), why.text);
		if (!check_map(f->k, f->n, r, &opt, at, err))
			return false;
		*arg = CPTX_ARG_BYTES(&f->map[f->n], sizeof f->map[f->n]);
	} else if (r->kind == CPTX_PARAM_OBJECT) {
		*arg = CPTX_ARG_BYTES(member, r->size);
	} else {
		*arg = (cptx_arg){ .kind = r->type == CPTX_F32 || r->type == CPTX_F64 ? CPTX_ARG_FLOAT : CPTX_ARG_INT,
			               .size = r->size };
		memcpy(&arg->u, member, r->size);
	}
	f->row[f->n++] = r;
	return true;
}

cptx_launch *cptx_params_launch_(cptx_site at, const cptx_program *program, cptx_device *dev, const char *name,
                                 const cptx_params_part *parts, size_t nparts, const cptx_launch_opt *opt, cptx_error *err)
{
	kernel k;
	filling f = { .k = &k };

	if (!IS_GIVEN(program, "program", at, err) || !IS_GIVEN(dev, "device", at, err) ||
	    !IS_GIVEN(opt, "description of the launch", at, err) || (nparts && !IS_GIVEN(parts, "list of parts", at, err)))
		return NULL;
	if (opt->nargs) {
		error_set(err, CPTX_E_ARG, at, ".args (%zu) beside the parts, which alone fill the parameters", opt->nargs);
		return NULL;
	}
	if (!program_find(program, name, &k, at, err))
		return NULL;
	for (size_t i = 0; i < nparts; i++) {
		if (parts[i].n && (!IS_GIVEN(parts[i].rows, "list of rows", at, err) || !IS_GIVEN(parts[i].args, "struct", at, err)))
			return NULL;
		for (size_t j = 0; j < parts[i].n; j++)
			if (!fill(&f, dev, &parts[i].rows[j], parts[i].args, at, err))
				return NULL;
	}
	cptx_launch_opt all = *opt;
	all.nargs = f.n, all.args = f.arg;
	return cptx_launch_new_(at, program, name, &all, err);
}

/* ---- parameters that options add ---- */

kit_params kit_params_of(const kit_param *all, size_t n)
{
	kit_params list = { .n = 0 };

	for (size_t i = 0; i < n; i++) {
		if (all[i].there && list.n == CPTX_PARAMS_MOST && !list.left_out)
			list.left_out = all[i].row.name;
		else if (all[i].there && list.n < CPTX_PARAMS_MOST)
			list.row[list.n] = all[i].row, list.val[list.n++] = all[i].val;
	}
	return list;
}

void kit_params_declare(cptx_kernel *k, cptx_params *p, const kit_params *list)
{
	if (list->left_out)
		cptx_fail(k, "parameter %s is one too many; a kernel has at most %d", list->left_out, CPTX_PARAMS_MOST);
	cptx_params_declare(k, p, list->row, list->n);
	for (uint32_t i = 0; i < p->n; i++)
		*list->val[i] = p->val[i];
}
