/* SPDX-License-Identifier: MIT */
/* Modules and bodies: making, naming and freezing them. */
#include "base/atomic.h"
#include "base/map_use.h"
#include "base/options.h"
#include "ir/ir.h"

#include <stdio.h>

/* The bytes of a module from its field `from` on that are zero at first: all but the texts of the error. */
#define ZERO_FROM(from) (offsetof(cptx_module, err) + sizeof(enum cptx_code) - (from))

/* Begins a zeroed module, whose arena is there; false when memory is short. */
static bool begin(cptx_module *m)
{
	m->target_more = "";
	m->tag = (uint16_t)(((uintptr_t)m / 64 + m->fills) * 2654435761u >> 13 | 1);
	return ir_top_append(m, TOP_HEAD) != NULL;
}

cptx_module *cptx_module_new(const cptx_allocator *allocator)
{
	arena a;
	arena_init(&a, allocator);
	cptx_module *m = ARENA_SIZED(&a, cptx_module, sizeof *m);

	if (m) {
		memset(m, 0, ZERO_FROM(0));
		m->a = a;
		arch_memo_begin(&m->memo, &m->a.hook);
		if (begin(m))
			return m;
		a = m->a;
	}
	arena_free(&a);
	return NULL;
}

static void free_source(cptx_module *m)
{
	if (m->source)
		heap_realloc(&m->a.hook, (void *)(uintptr_t)m->source, 0);
}

bool cptx_module_clear(cptx_module *m)
{
	if (!m)
		return false;
	free_source(m);
	ir_index_clear(m);
	arena_rewind(&m->a, (char *)(m + 1));
	m->fills++;
	memset((char *)m + offsetof(cptx_module, tag), 0, ZERO_FROM(offsetof(cptx_module, tag)));
	return begin(m) || ir_no_memory(m, NOWHERE);
}

void cptx_module_destroy(cptx_module *m)
{
	if (!m)
		return;
	free_source(m);
	ir_index_free(m);
	arch_memo_end(&m->memo);
	ir_direct_free(m);
	ir_shapes_free(m);
	arena a = m->a; /* copied, because the module itself lies in the arena */
	arena_free(&a);
}

const cptx_error *cptx_module_error(const cptx_module *m)
{
	static const cptx_error is_null = { .code = CPTX_E_ARG,
		                                .text = "the module is NULL; what makes a module gives that when memory is short" };
	if (!m)
		return &is_null;
	return m->err.code == CPTX_OK ? NULL : &m->err;
}

bool ir_no_memory(cptx_module *m, cptx_site at) { return error_set(&m->err, CPTX_E_MEMORY, at, "out of memory"); }

bool ir_error(cptx_kernel *k, enum cptx_code code, cptx_site at, const char *format, ...)
{
	char text[CPTX_ERROR_TEXT];
	va_list ap;
	va_start(ap, format);
	text_message(text, sizeof text, format, ap);
	va_end(ap);
	return error_set(&k->m->err, code, at, "%s %s: %s", k->is_func ? "function" : "kernel", k->name, text);
}

cptx_val cptx_fail_(cptx_kernel *k, cptx_site at, const char *format, ...)
{
	char text[CPTX_ERROR_TEXT] = "cptx_fail: the format is NULL";
	va_list ap;

	va_start(ap, format);
	if (format)
		text_message(text, sizeof text, format, ap);
	va_end(ap);
	if (k && k->m->err.code == CPTX_OK)
		ir_error(k, CPTX_E_ARG, at, "%s", text);
	return (cptx_val){ 0 };
}

bool ir_open(cptx_kernel *k, cptx_site at)
{
	if (!k || k->m->err.code != CPTX_OK)
		return false;
	if (k->m->frozen)
		return ir_error(k, CPTX_E_STATE, at, "the module is frozen; build everything before it is printed or loaded");
	if (k->removed)
		return ir_error(k, CPTX_E_STATE, at, "it was removed");
	if (k->closed)
		return ir_error(k, CPTX_E_STATE, at, "the body is %s; %scptx_edit_before and its like open it again",
		                k->src_len ? "that of the text" : "closed, since another one was begun",
		                k->src_len ? "" : "build one at a time; ");
	return true;
}

/* ---- the order of a module's text ---- */

static ir_top *top_before(cptx_module *m, enum ir_top_kind kind, ir_top *next)
{
	ir_top *t = ARENA_NEW(&m->a, ir_top);

	if (!t)
		return NULL;
	t->kind = kind;
	t->next = next;
	t->prev = next ? next->prev : m->top_last;
	m->first_body = kind == TOP_BODY && !m->first_body ? t : m->first_body; /* bodies are appended */
	if ((kind == TOP_PROTO || kind == TOP_BODY) && (!m->first_proto || m->first_proto == next))
		m->first_proto = t;
	if (kind == TOP_TEXT && m->text_last)
		m->text_last = m->text_last->next_text = t;
	else if (kind == TOP_TEXT)
		m->text_first = m->text_last = t;
	if (kind == TOP_TEXT)
		ir_text_changed(m);
	if (t->prev)
		t->prev->next = t;
	else
		m->top_first = t;
	if (next)
		next->prev = t;
	else
		m->top_last = t;
	return t;
}

void ir_unlink_top(cptx_module *m, ir_top *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		m->top_first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		m->top_last = t->prev;
	while (m->first_body && (m->first_body == t || m->first_body->kind != TOP_BODY))
		m->first_body = m->first_body->next;
	while (m->first_proto &&
	       (m->first_proto == t || (m->first_proto->kind != TOP_BODY && m->first_proto->kind != TOP_PROTO)))
		m->first_proto = m->first_proto->next;
}

ir_top *ir_top_append(cptx_module *m, enum ir_top_kind kind) { return top_before(m, kind, NULL); }

ir_top *ir_top_add(cptx_module *m, enum ir_top_kind kind)
{
	return top_before(m, kind, kind == TOP_BODY ? NULL : kind == TOP_VAR ? m->first_proto : m->first_body);
}

ir_top *ir_top_add_late(cptx_module *m, enum ir_top_kind kind) { return top_before(m, kind, m->first_body); }

/* ---- bodies ---- */

enum { MOST_BODIES = 0x7fff0000 };

cptx_kernel *ir_body_new(cptx_module *m, cptx_site at, const char *name)
{
	cptx_kernel *k = ARENA_NEW(&m->a, cptx_kernel);

	if (!k || !arena_push(&m->a, &m->body, m->nbody, &m->cap_body, sizeof *m->body) ||
	    !arena_reserve(&m->a, &m->placed, m->nplaced, &m->cap_placed, sizeof *m->placed, m->nbody + 1) ||
	    m->nbody == MOST_BODIES)
		return NULL;
	m->body[m->nbody++] = k;
	k->m = m;
	k->at = at;
	k->name = name;
	k->number = (uint32_t)m->nbody;
	k->owner = (uint16_t)(m->tag ^ k->number * 0x9e37u); /* odd: distinct for the first 65535 */
	k->owner = k->owner ? k->owner : 1;
	return k;
}

bool ir_body_link(cptx_kernel *k)
{
	cptx_module *m = k->m;

	k->has_body = true;
	k->prev = m->last;
	if (m->last)
		m->last->next = k;
	else
		m->first = k;
	m->last = k;
	return ir_place(m, k);
}

bool ir_body_open(cptx_kernel *k, cptx_site at)
{
	if (k->m->last && !k->m->last->closed)
		ir_close(k->m->last);
	ir_top *t = k->m->err.code == CPTX_OK ? ir_top_append(k->m, TOP_BODY) : NULL;
	if (!t)
		return ir_no_memory(k->m, at);
	ir_top_body(t, k);
	return ir_body_link(k) || ir_no_memory(k->m, at);
}

cptx_kernel *ir_body_named(cptx_module *m, cptx_site at, const char *what, const char *name)
{
	if (!m || m->err.code != CPTX_OK)
		return NULL;
	if (m->frozen) {
		error_set(&m->err, CPTX_E_STATE, at, "%s %s: the module is frozen; build everything before it is printed or loaded",
		          what, name ? name : "(null)");
		return NULL;
	}
	if (!ir_name_ok(m, at, what, name) || !ir_module_name_free(m, at, name, NULL))
		return NULL;
	const char *copy = arena_strdup(&m->a, name);
	cptx_kernel *k = copy ? ir_body_new(m, at, copy) : NULL;
	if (k && ir_index_global(m, NAMED_BODY, k->number - 1))
		return k;
	ir_no_memory(m, at);
	return NULL;
}

static cptx_kernel *body_begin(cptx_module *m, cptx_site at, const char *what, const char *name)
{
	cptx_kernel *k = ir_body_named(m, at, what, name);
	return k && ir_body_open(k, at) ? k : NULL;
}

enum { MOST_BLOCK_Z = 64, MOST_CLUSTER = 16 }; /* CUDA programming guide, "Compute Capabilities" */

bool ir_grid_of_clusters(const cptx_kernel *k)
{
	for (size_t i = 0; i < k->nextra; i++)
		if (!strcmp(k->extra[i], ".blocksareclusters"))
			return true;
	return false;
}

bool ir_check_bounds(cptx_kernel *k, cptx_site at)
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
	cptx_kernel draft = { .m = m, .name = name ? name : "(null)" }; /* a failed call must leave the previous body open */

	if (m && m->err.code == CPTX_OK && !m->frozen &&
	    (!OPTIONS_READ(cptx_kernel_opt, &draft.opt, opt, at, &m->err) || !ir_check_bounds(&draft, at)))
		return NULL;
	cptx_kernel *k = body_begin(m, at, "kernel", name);
	if (k) {
		k->opt = draft.opt;
		k->linkage = LINK_VISIBLE;
	}
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
	ir_top *t = ir_top_add(m, TOP_PROTO); /* in front of all bodies: anything may call it */
	if (!t) {
		ir_no_memory(m, at);
		return NULL;
	}
	ir_top_body(t, f);
	if (ret == CPTX_TYPE_NONE)
		return f;
	f->ret_type = (uint8_t)(ret == CPTX_PTR ? CPTX_U64 : bits > 8 ? ret : ret == CPTX_S8 ? CPTX_S16 : CPTX_U16);
	if (!arena_push(&m->a, &f->result, f->nresult, &f->cap_result, sizeof *f->result) ||
	    !ir_param_symbol(f, IR_PREFIX "_result", f->ret_type, &f->ret)) {
		ir_no_memory(m, at);
		return NULL;
	}
	f->result[f->nresult++] = (ir_arg){ f->ret.id, 0 };
	return f;
}

cptx_val ir_func_value(const cptx_kernel *f)
{
	cptx_val v = cptx_val_int_(0);
	v.kind = CPTX_VAL_FUNC;
	v.id = f->number;
	v.owner = f->m->tag;
	return v;
}

cptx_val cptx_func_val(const cptx_kernel *f) { return f && f->is_func ? ir_func_value(f) : (cptx_val){ 0 }; }

/* Whether control can run off behind the last item. */
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
		ir_error(k, CPTX_E_STATE, k->block->at, "%s is never closed (left by break, goto or return?)",
		         ir_block_name(k->block));
		return;
	}
	for (size_t i = 0; i < k->nlabel && !k->touched; i++) /* ir_check_declared finds more if the body was edited */
		if (k->label[i].used && !k->label[i].placed) {
			ir_error(k, CPTX_E_STATE, k->label[i].at, "a branch goes to a label that is never placed; cptx_place puts it");
			return;
		}
	k->cursor = NULL;
	if (!k->src_len)
		ir_merge_labels(k);
	if (!k->src_len && falls_through(k))
		ir_insn(k, k->at, CPTX_OP_RET, (cptx_val){ 0 }, (cptx_val){ 0 }, NULL, 0, "");
	k->closed = true;
}

bool ir_trim(cptx_kernel *k)
{
	arena *a = &k->m->a;

#define TRIM(array, n, cap) arena_trim(a, &k->array, k->n, &k->cap, sizeof *k->array)
	return TRIM(reg, nreg, cap_reg) && TRIM(decl, ndecl, cap_decl) && TRIM(vec, nvec, cap_vec) &&
	       TRIM(label, nlabel, cap_label) && TRIM(arg, narg, cap_arg) && TRIM(result, nresult, cap_result) &&
	       TRIM(param, nparam, cap_param) && TRIM(param_val, nparam, cap_param_val) && TRIM(sym, nsym, cap_sym) &&
	       TRIM(text, ntext, cap_text) && TRIM(map_param, nmap_param, cap_map_param) &&
	       TRIM(map_use, nmap_use, cap_map_use) && TRIM(extra, nextra, cap_extra);
#undef TRIM
}

static bool note_callees(cptx_module *m, cptx_kernel *k)
{
	for (const ir_item *it = k->calls ? k->first : NULL; it; it = it->next)
		for (unsigned i = 0; i < it->noperand; i++) {
			cptx_val v = ir_operand(k, it, i);
			if (v.kind != CPTX_VAL_FUNC)
				continue;
			if (!arena_push(&m->a, &k->callee, k->ncallee, &k->cap_callee, sizeof *k->callee))
				return ir_no_memory(m, k->at);
			k->callee[k->ncallee++] = v.id;
		}
	return true;
}

/* The module's shared variables count for the kernels that use them.  Their padding depends on their order, which is
 * ptxas's. */
static uint32_t used_smem(const cptx_module *m, const cptx_kernel *k, uint32_t number, uint32_t *user)
{
	uint64_t sum = 0;

	for (const ir_item *it = k->first; it; it = it->next)
		for (unsigned i = 0; i < it->noperand; i++) {
			cptx_val v = ir_operand(k, it, i);
			if (v.kind != CPTX_VAL_SYM || v.id < MODULE_SYM || user[v.id - MODULE_SYM] == number)
				continue;
			const ir_sym *s = m->sym[v.id - MODULE_SYM];
			user[v.id - MODULE_SYM] = number;
			sum += s->space == CPTX_SHARED && s->linkage != LINK_EXTERN ? s->size : 0;
		}
	return (uint32_t)MIN(sum, (uint64_t)UINT32_MAX);
}

/*
 * Static shared memory in bytes of a kernel and all functions that it reaches.  `stack` has room for all functions; `user`
 * has, for each variable of the module, the last kernel seen to use it, or is NULL if no variable is shared.
 */
static uint32_t reached_smem(cptx_module *m, cptx_kernel *kernel, cptx_kernel **stack, uint32_t *user)
{
	uint64_t sum = 0;
	size_t n = 0;

	stack[n++] = kernel;
	kernel->stamp = kernel->number;
	while (n) {
		const cptx_kernel *k = stack[--n];
		sum += k->static_smem;
		sum += user ? used_smem(m, k, kernel->number, user) : 0;
		for (size_t i = 0; i < k->ncallee; i++) {
			cptx_kernel *f = m->body[k->callee[i] - 1];
			f = f->def ? f->def : f;
			if (f->stamp == kernel->number)
				continue;
			f->stamp = kernel->number;
			stack[n++] = f;
		}
	}
	return (uint32_t)MIN(sum, (uint64_t)UINT32_MAX);
}

static bool count_smem(cptx_module *m)
{
	cptx_kernel **stack = NULL;
	uint32_t *user = NULL;

	for (cptx_kernel *k = m->first; k; k = k->next)
		if (!note_callees(m, k))
			return false;
	for (size_t i = 0; m->first && i < m->nsym && !user; i++)
		if (m->sym[i]->space == CPTX_SHARED && m->sym[i]->size) {
			user = ARENA_ARRAY(&m->a, uint32_t, m->nsym);
			if (!user)
				return ir_no_memory(m, m->first->at);
			memset(user, 0, m->nsym * sizeof *user);
		}
	for (cptx_kernel *k = m->first; k; k = k->next) {
		k->reached_smem = k->static_smem;
		if (k->is_func || (!k->ncallee && !user))
			continue;
		if (!stack && !(stack = ARENA_ARRAY(&m->a, cptx_kernel *, m->nbody)))
			return ir_no_memory(m, k->at);
		k->reached_smem = reached_smem(m, k, stack, user);
	}
	return true;
}

bool cptx_module_freeze(cptx_module *m)
{
	if (!m || m->err.code != CPTX_OK)
		return false;
	if (m->frozen)
		return true;
	ir_mark_renamed(m);
	ir_sort_gone(m);
	for (cptx_kernel *k = m->first; k; k = k->next) {
		ir_count_shared(k);
		ir_close(k);
	}
	if (m->err.code != CPTX_OK || (m->touched && !ir_check_declared(m)))
		return false;
	if (!count_smem(m))
		return false;
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

cptx_kernel_info ir_kernel_info(const cptx_kernel *k)
{
	return (cptx_kernel_info){ .name = k->name,
		                       .nparams = k->nparam,
		                       .params = k->param,
		                       .dyn_smem = k->dyn_smem,
		                       .static_smem = k->reached_smem,
		                       .grid_of_clusters = ir_grid_of_clusters(k),
		                       .bounds = k->opt };
}

bool cptx_module_kernel_(const cptx_module *m, const char *name, cptx_kernel_info *info, size_t size)
{
	if (!m || m->err.code != CPTX_OK || !info)
		return false;
	const cptx_kernel *found = cptx_module_body(m, name);
	if (!found || found->is_func)
		return false;
	const cptx_kernel_info x = ir_kernel_info(found);
	RESULT_FILL(info, size, &x);
	return true;
}

const cptx_target *cptx_module_target(const cptx_module *m) { return m ? m->target : NULL; }
unsigned cptx_module_version(const cptx_module *m) { return m ? m->version : 0; }
