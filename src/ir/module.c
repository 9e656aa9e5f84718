/* Modules and bodies: making, naming, freezing. */
#include "ir/ir.h"

#include <stdio.h>

cptx_module *cptx_module_new(const cptx_allocator *allocator)
{
	arena a;
	arena_init(&a, allocator);
	cptx_module *m = arena_zalloc(&a, sizeof *m);

	if (!m) {
		arena_free(&a);
		return NULL;
	}
	m->a = a;
	m->tag = (uint16_t)((uintptr_t)m / 64 * 2654435761u >> 13 | 1);
	return m;
}

void cptx_module_destroy(cptx_module *m)
{
	if (!m)
		return;
	arena a = m->a; /* the module itself lies in it */
	arena_free(&a);
}

const cptx_error *cptx_module_error(const cptx_module *m)
{
	static const cptx_error no_memory = { CPTX_E_MEMORY, 0, "", "out of memory" };
	if (!m)
		return &no_memory;
	return m->err.code == CPTX_OK ? NULL : &m->err;
}

bool ir_no_memory(cptx_module *m, cptx_site at) { return error_set(&m->err, CPTX_E_MEMORY, at, "out of memory"); }

bool ir_error(cptx_kernel *k, enum cptx_code code, cptx_site at, const char *format, ...)
{
	char text[CPTX_ERROR_TEXT];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	return error_set(&k->m->err, code, at, "%s %s: %s", k->is_func ? "function" : "kernel", k->name, text);
}

bool ir_open(cptx_kernel *k, cptx_site at)
{
	if (!k || k->m->err.code != CPTX_OK)
		return false;
	if (k->m->frozen)
		return ir_error(k, CPTX_E_STATE, at, "the module is frozen; build everything before it is printed or loaded");
	if (k->closed)
		return ir_error(k, CPTX_E_STATE, at, "the body is closed, since another one was begun; build one at a time");
	return true;
}

/* ---- bodies ---- */

static cptx_kernel *body_begin(cptx_module *m, cptx_site at, const char *what, const char *name)
{
	if (!m || m->err.code != CPTX_OK)
		return NULL;
	if (m->frozen) {
		error_set(&m->err, CPTX_E_STATE, at, "%s %s: the module is frozen; build everything before it is printed or loaded",
		          what, name ? name : "(null)");
		return NULL;
	}
	if (m->nkernel == UINT16_MAX) {
		error_set(&m->err, CPTX_E_LIMIT, at, "%s '%s': a module has at most %d kernels and functions", what,
		          name ? name : "(null)", UINT16_MAX);
		return NULL;
	}
	if (!ir_name_ok(m, at, what, name) || !ir_module_name_free(m, at, name, NULL))
		return NULL;
	if (m->last && !m->last->closed)
		ir_close(m->last);
	cptx_kernel *k = m->err.code == CPTX_OK ? arena_zalloc(&m->a, sizeof *k) : NULL;
	if (m->err.code != CPTX_OK || !k || !(k->name = arena_strdup(&m->a, name))) {
		ir_no_memory(m, at);
		return NULL;
	}
	k->m = m;
	k->at = at;
	k->number = (uint16_t)++m->nkernel;
	k->owner = (uint16_t)(m->tag ^ k->number * 0x9e37u); /* odd: distinct for each number */
	k->dyn_sym = -1;
	k->prev = m->last;
	if (m->last)
		m->last->next = k;
	else
		m->first = k;
	m->last = k;
	return k;
}

enum { MOST_BLOCK_Z = 64, MOST_CLUSTER = 16 }; /* CUDA programming guide, "Compute Capabilities" */

static bool check_bounds(cptx_kernel *k, cptx_site at)
{
	cptx_kernel_opt *o = &k->opt;

	for (uint32_t *dims = o->block, n = 0; n < 3; n++) {
		dims = n == 0 ? o->block : n == 1 ? o->max_block : o->cluster;
		if (!dims[0] && (dims[1] || dims[2]))
			return ir_error(k, CPTX_E_ARG, at, "launch bounds: y and z are given without x");
		for (int i = 1; i < 3 && dims[0]; i++)
			dims[i] = dims[i] ? dims[i] : 1;
		uint64_t xy = (uint64_t)dims[0] * dims[1];
		if (n < 2 && (xy > CPTX_THREADS_PER_CTA || xy * dims[2] > CPTX_THREADS_PER_CTA))
			return ir_error(k, CPTX_E_LIMIT, at, "launch bounds: %u x %u x %u threads; a CTA has at most %d", dims[0],
			                dims[1], dims[2], CPTX_THREADS_PER_CTA);
	}
	if (o->block[2] > MOST_BLOCK_Z || o->max_block[2] > MOST_BLOCK_Z)
		return ir_error(k, CPTX_E_LIMIT, at, "launch bounds: z of a block is at most %d", MOST_BLOCK_Z);
	uint64_t ctas = MIN((uint64_t)o->cluster[0] * o->cluster[1], UINT32_MAX) * o->cluster[2];
	if (ctas > MOST_CLUSTER || o->cluster[0] > MOST_CLUSTER || o->max_cluster_rank > MOST_CLUSTER)
		return ir_error(k, CPTX_E_LIMIT, at,
		                "launch bounds: a cluster has at most %d CTAs (8 on every target that has clusters)", MOST_CLUSTER);
	if (o->block[0] && o->max_block[0])
		return ir_error(k, CPTX_E_ARG, at, "launch bounds: give .block (exact) or .max_block (upper bound), not both");
	if (o->cluster[0] && o->max_cluster_rank)
		return ir_error(k, CPTX_E_ARG, at,
		                "launch bounds: give .cluster (exact) or .max_cluster_rank (upper bound), not both");
	if (o->min_ctas && !o->block[0] && !o->max_block[0])
		return ir_error(k, CPTX_E_ARG, at, "launch bounds: .min_ctas needs .block or .max_block");
	if (o->max_regs > CPTX_REGS_PER_THREAD)
		return ir_error(k, CPTX_E_LIMIT, at, "launch bounds: .max_regs = %u; a thread has at most %d registers", o->max_regs,
		                CPTX_REGS_PER_THREAD);
	return true;
}

cptx_kernel *cptx_kernel_begin_(cptx_module *m, cptx_site at, const char *name, const cptx_kernel_opt *opt)
{
	cptx_kernel draft = { .m = m, .name = name ? name : "(null)" }; /* a failed call leaves the body before open */

	if (opt)
		draft.opt = *opt;
	if (m && m->err.code == CPTX_OK && !m->frozen && !check_bounds(&draft, at))
		return NULL;
	cptx_kernel *k = body_begin(m, at, "kernel", name);
	if (k)
		k->opt = draft.opt;
	return k;
}

cptx_kernel *cptx_func_begin_(cptx_module *m, cptx_site at, const char *name, enum cptx_type ret)
{
	unsigned bits = cptx_type_bits(ret);

	if (m && ret != CPTX_TYPE_NONE && (bits < 8 || bits > 64)) {
		error_set(&m->err, CPTX_E_ARG, at, "function %s: a result has 8 to 64 bits; CPTX_TYPE_NONE is for none",
		          name ? name : "(null)");
		return NULL;
	}
	cptx_kernel *f = body_begin(m, at, "function", name);
	if (!f)
		return NULL;
	f->is_func = true;
	if (ret != CPTX_TYPE_NONE)
		f->ret = ir_regs(f, at, ret == CPTX_PTR ? CPTX_U64 : bits > 8 ? ret : ret == CPTX_S8 ? CPTX_S16 : CPTX_U16, 1);
	return m->err.code == CPTX_OK ? f : NULL;
}

cptx_val cptx_func_val(const cptx_kernel *f)
{
	cptx_val v = { 0 };
	if (f && f->is_func) {
		v = cptx_val_int_(0);
		v.kind = CPTX_VAL_FUNC;
		v.id = f->number;
		v.owner = f->m->tag;
	}
	return v;
}

/* Does control run off behind the last item? */
static bool falls_through(const cptx_kernel *k)
{
	const ir_item *it = k->last;
	while (it && it->kind == ITEM_COMMENT)
		it = it->prev;
	if (!it || it->kind != ITEM_INSN || it->guard)
		return true;
	unsigned op = arch_forms[it->form].op;
	return op != CPTX_OP_RET && op != CPTX_OP_EXIT && op != CPTX_OP_BRA && op != CPTX_OP_TRAP;
}

void ir_close(cptx_kernel *k)
{
	if (k->closed || k->m->err.code != CPTX_OK)
		return;
	if (k->block) {
		static const char *const names[] = { "CPTX_IF", "CPTX_ELSE", "CPTX_FOR", "CPTX_WHILE" };
		ir_error(k, CPTX_E_STATE, k->block->at, "%s is never closed (left by break, goto or return?)",
		         names[k->block->kind]);
		return;
	}
	for (size_t i = 0; i < k->nlabel; i++)
		if (k->label[i].used && !k->label[i].placed) {
			ir_error(k, CPTX_E_STATE, k->label[i].at, "a branch goes to a label that is never placed; cptx_place puts it");
			return;
		}
	if (falls_through(k))
		ir_insn(k, k->at, CPTX_OP_RET, (cptx_val){ 0 }, (cptx_val){ 0 }, NULL, 0, "");
	k->closed = true;
}

/* Static shared memory of a kernel and all functions that it reaches.  A body calls itself or earlier ones only. */
static uint32_t reached_smem(cptx_module *m, const cptx_kernel *kernel)
{
	uint32_t sum = 0;

	for (cptx_kernel *k = m->first; k; k = k->next)
		k->reached = k == kernel;
	for (cptx_kernel *k = m->last; k; k = k->prev) {
		if (!k->reached)
			continue;
		sum += k->static_smem;
		for (const ir_item *it = k->first; it && k->calls; it = it->next)
			for (unsigned i = 0; i < it->noperand; i++)
				for (cptx_kernel *f = m->first; ir_operands(it)[i].kind == CPTX_VAL_FUNC && f; f = f->next)
					f->reached |= f->number == ir_operands(it)[i].id;
	}
	return sum;
}

bool cptx_module_freeze(cptx_module *m)
{
	if (!m || m->err.code != CPTX_OK)
		return false;
	if (m->frozen)
		return true;
	if (m->last)
		ir_close(m->last);
	if (m->err.code != CPTX_OK)
		return false;
	for (cptx_kernel *k = m->first; k; k = k->next)
		k->reached_smem = k->calls ? reached_smem(m, k) : k->static_smem;
	m->frozen = true;
	return true;
}

size_t cptx_module_size(const cptx_module *m)
{
	size_t n = 0;
	for (const cptx_kernel *k = m ? m->first : NULL; k; k = k->next)
		n += k->ninsn;
	return n;
}

bool cptx_module_kernel(const cptx_module *m, const char *name, cptx_kernel_info *info)
{
	const cptx_kernel *found = NULL;

	if (!m || m->err.code != CPTX_OK || !info)
		return false;
	for (const cptx_kernel *k = m->first; k; k = k->next) {
		if (k->is_func || (name && strcmp(name, k->name)))
			continue;
		if (found)
			return false; /* no name, several kernels */
		found = k;
	}
	if (!found)
		return false;
	*info = (cptx_kernel_info){ found->name, found->nparam, found->param, found->dyn_smem, found->reached_smem, found->opt };
	return true;
}
