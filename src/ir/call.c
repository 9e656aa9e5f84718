/* SPDX-License-Identifier: MIT */
/* Device functions: results, calls, direct and through pointers. */
#include "ir/ir.h"

#include <stdio.h>

void cptx_func_return_(cptx_kernel *f, cptx_site at, cptx_val v)
{
	cptx_val none = { 0 };

	if (!ir_open(f, at))
		return;
	if (!f->is_func || !f->ret.kind) {
		ir_error(f, CPTX_E_STATE, at, "only a device function with a result type returns a value");
		return;
	}
	cptx_val store[] = { f->ret, v }; /* slots of st: a, b */
	if (v.kind != CPTX_VAL_REG) {     /* a constant, or a value that only mov reads */
		store[1] = ir_regs(f, at, f->ret_type, 1);
		ir_insn(f, at, CPTX_OP_MOV, store[1], none, &v, 1, "");
	}
	ir_insn(f, at, CPTX_OP_ST, none, none, store, ARRAY_LEN(store), "space type", CPTX_PARAM, f->sym[f->ret.id]->type);
	ir_insn(f, at, CPTX_OP_RET, none, none, NULL, 0, "");
}

static cptx_kernel *function_of(cptx_module *m, cptx_val func)
{
	if (func.kind != CPTX_VAL_FUNC || func.owner != m->tag || func.id - 1 >= m->nbody || !m->body[func.id - 1]->is_func)
		return NULL;
	return m->body[func.id - 1];
}

static bool append_param(cptx_kernel *k, cptx_site at, const char *name, unsigned type, cptx_val *address)
{
	return (ir_param_symbol(k, name, type, address) && ir_append(k, at, ITEM_VAR, address, 1, NULL, 0)) ||
	       ir_no_memory(k->m, at);
}

/*
 * Emits the sequence of the calling convention (PTX manual, "Abstracting the ABI"):
 *   { .param .b32 arg0; st.param.b32 [arg0], a; ... .param .b32 value; call (value), f, (arg0); ld.param.b32 result,
 * [value]; }
 */
static void call_sequence(cptx_kernel *k, cptx_site at, cptx_kernel *f, const cptx_val *args, size_t n, cptx_val result)
{
	cptx_val none = { 0 }, list[202], value, slots[3];
	char name[32];

	if (!ir_append(k, at, ITEM_SCOPE, NULL, 0, NULL, 0))
		return;
	for (size_t i = 0; i < n; i++) {
		unsigned type = f->sym[f->arg[i].sym]->type;
		snprintf(name, sizeof name, IR_PREFIX "_arg%zu", i);
		if (!append_param(k, at, name, type, &list[i]))
			return;
		cptx_val store[] = { list[i], args[i] };
		ir_insn(k, at, CPTX_OP_ST, none, none, store, ARRAY_LEN(store), "space type", CPTX_PARAM, type);
	}
	if (result.kind && !append_param(k, at, IR_PREFIX "_value", f->sym[f->ret.id]->type, &value))
		return;
	slots[0] = ir_func_value(f);
	slots[1] = n ? cptx_list_(k, at, list, n) : none;
	slots[2] = result.kind ? cptx_list_(k, at, &value, 1) : none;
	ir_insn(k, at, CPTX_OP_CALL_FUNC, none, none, slots, ARRAY_LEN(slots), "");
	if (result.kind)
		ir_insn(k, at, CPTX_OP_LD, result, none, &value, 1, "space type", CPTX_PARAM, f->sym[f->ret.id]->type);
	ir_append(k, at, ITEM_END, NULL, 0, NULL, 0);
}

/* Why a value of this type, or a parameter `have` (NULL: none), cannot stand for a parameter or result of the function; NULL
 * if it can. */
static const char *differs(const cptx_kernel *f, const ir_arg *a, unsigned type, const ir_sym *have)
{
	const ir_sym *want = a->sym == IR_NONE ? NULL : f->sym[a->sym];
	arch_type w = arch_types[want ? want->type : f->reg[a->reg].type], h = arch_types[type];
	bool open = want && want->ndim && !want->size;

	if (open ? !have || !have->ndim : (want ? want->size * 8 : w.bits) != (have ? have->size * 8 : h.bits))
		return "another size";
	if (!want != !have ? (want ? want : have)->ndim != 0 : want && (want->ndim != have->ndim || w.bits != h.bits))
		return "another type";
	if (w.cls != h.cls && w.cls != 'B' && h.cls != 'B' && (w.cls == 'F' || h.cls == 'F' || w.cls == 'P' || h.cls == 'P'))
		return "another type";
	return want && have && want->align != have->align ? "another alignment" : NULL;
}

static const char *constant_differs(const cptx_kernel *f, const ir_arg *a, bool is_float)
{
	char cls = arch_types[a->sym == IR_NONE ? f->reg[a->reg].type : f->sym[a->sym]->type].cls;
	return strchr(is_float ? "USP" : "FP", cls) ? "another type" : NULL;
}

static bool passes(const cptx_kernel *k, const cptx_kernel *f, const ir_arg *a, const char *what, size_t i, cptx_val *v,
                   char why[160])
{
	const ir_sym *have = v->kind == CPTX_VAL_SYM ? ir_symbol(k, v->id) : NULL;
	const char *other = NULL;

	if (v->kind == CPTX_VAL_FLOAT) {
		unsigned type = a->sym == IR_NONE ? f->reg[a->reg].type : f->sym[a->sym]->type;
		v->type = arch_types[type].bits == 64 ? CPTX_F64 : CPTX_F32;
	}
	if (have && have->is_param) {
		snprintf(why, 160, "%s %zu is '%.64s' of the head; a call passes what the body declares", what, i, have->name);
		return false;
	}
	if (have || v->kind == CPTX_VAL_REG)
		other = differs(f, a, have ? have->type : v->type, have);
	else if (v->kind == CPTX_VAL_FLOAT || v->kind == CPTX_VAL_INT) /* constants take any width */
		other = constant_differs(f, a, v->kind == CPTX_VAL_FLOAT);
	unsigned declared = a->sym == IR_NONE ? f->reg[a->reg].type : f->sym[a->sym]->type;
	if (other && v->kind == CPTX_VAL_REG)
		snprintf(why, 160, "%s %zu is a .%s register, the function has .%s there", what, i, arch_mods[v->type].name,
		         arch_mods[declared].name);
	else if (other)
		snprintf(why, 160, "%s %zu has %s than the function declares, .%s", what, i, other, arch_mods[declared].name);
	return !other;
}

static bool list_passes(const cptx_kernel *k, const cptx_kernel *f, const cptx_val *list, const ir_arg *a, const char *what,
                        char why[160])
{
	for (size_t i = 0; list && i < list->count; i++) {
		cptx_val *v = &k->vec[list->id + i];
		if (*what == 'r' && v->kind != CPTX_VAL_REG && v->kind != CPTX_VAL_SYM && v->kind != CPTX_VAL_SINK) {
			snprintf(why, 160, "a result goes to a register or parameter, not to a constant");
			return false;
		}
		if (*what == 'a' && v->kind == CPTX_VAL_SINK) {
			snprintf(why, 160, "argument %zu is the sink _, which only a result can be", i);
			return false;
		}
		if (v->kind == CPTX_VAL_SREG) { /* ptxas: illegal state space */
			snprintf(why, 160, "argument %zu is a special register, which calls do not pass; move it to a register", i);
			return false;
		}
		if (!passes(k, f, &a[i], what, i, v, why))
			return false;
	}
	return true;
}

bool ir_param_fits(cptx_kernel *k, const arch_match *m, char why[160])
{
	bool store = arch_forms[m->form].op == CPTX_OP_ST;
	const cptx_val *v = &m->operand[store ? 0 : 1];
	const ir_sym *s = v->kind == CPTX_VAL_SYM && v->space == CPTX_PARAM ? ir_symbol(k, v->id) : NULL;

	if (!s || s->is_param != (store ? PARAM_IN : PARAM_OUT))
		return true;
	snprintf(why, 160, "'%.100s' is a %s", s->name,
	         store ? "parameter, which is only read" : "result, which is only written");
	return false;
}

bool ir_call_fits(cptx_kernel *k, const arch_match *m, char why[160])
{
	const cptx_val *to = NULL, *list[2] = { NULL, NULL }; /* results, arguments */
	cptx_kernel *f = NULL;

	for (unsigned i = 0; i < m->noperand; i++) {
		if (m->operand[i].kind == CPTX_VAL_FUNC || m->operand[i].kind == CPTX_VAL_PROTO)
			to = &m->operand[i];
		else if (m->operand[i].kind == CPTX_VAL_LIST)
			list[i > 0] = &m->operand[i];
	}
	if (to && to->kind == CPTX_VAL_FUNC) {
		if (to->owner == k->m->tag && to->id - 1 < k->m->nbody)
			f = k->m->body[to->id - 1];
		if (!f || !f->is_func) {
			snprintf(why, 160, "that is no device function of this module");
			return false;
		}
		k->calls = f->called = true;
	} else if (to && k->label[to->id].proto) {
		f = k->m->body[k->label[to->id].proto - 1];
	}
	size_t nresult = list[0] ? list[0]->count : 0, narg = list[1] ? list[1]->count : 0;
	if (!f) /* a call through a list of targets, each with its own signature */
		return true;
	if (f->narg != narg || f->nresult != nresult) {
		snprintf(why, 160, "the function has %zu parameters and %zu results, the call %zu and %zu", f->narg, f->nresult,
		         narg, nresult);
		return false;
	}
	return list_passes(k, f, list[0], f->result, "result", why) && list_passes(k, f, list[1], f->arg, "argument", why);
}

/* Whether a register of type `have` fits a parameter of type `want`.  Parameters in text are mostly untyped bits, which take
 * any register of their width. */
static bool fits_parameter(const cptx_kernel *k, unsigned have, unsigned want)
{
	if (k->m->parsed && arch_types[want].cls == 'B')
		return arch_types[have].bits == arch_types[want].bits;
	return ir_class_of(have) == ir_class_of(want);
}

cptx_val cptx_call_(cptx_kernel *k, cptx_site at, cptx_val func, const cptx_val *args, size_t n)
{
	cptx_val none = { 0 }, result = none;

	if (!ir_open(k, at))
		return none;
	cptx_kernel *f = function_of(k->m, func);
	if (!f) {
		ir_error(k, CPTX_E_ARG, at, "cptx_call: that is no device function of this module");
		return none;
	}
	if (n && !args) {
		ir_error(k, CPTX_E_ARG, at, "function %s: args is NULL", f->name);
		return none;
	}
	if (f->odd_call) {
		ir_error(k, CPTX_E_ARG, at, "function %s passes more than single values in .param; write the call with cptx_asm",
		         f->name);
		return none;
	}
	if (n != f->nparam) {
		ir_error(k, CPTX_E_ARG, at, "function %s takes %zu arguments, %zu were given", f->name, f->nparam, n);
		return none;
	}
	if (f->nparam != f->narg || (f->nresult && !f->ret.kind)) {
		ir_error(k, CPTX_E_ARG, at, "function %s was declared in full: cptx_call_func calls it", f->name);
		return none;
	}
	for (size_t i = 0; i < n; i++) {
		if (!ir_owned(k, at, &args[i], "an argument"))
			return none;
		if (args[i].kind != CPTX_VAL_REG || args[i].count != 1 || args[i].offset ||
		    !fits_parameter(k, args[i].type, f->param_val[i].type)) {
			ir_error(k, CPTX_E_ARG, at, "function %s: argument %zu (%s) must be a .%s register", f->name, i,
			         f->param[i].name, cptx_type_name((enum cptx_type)f->param_val[i].type));
			return none;
		}
	}
	if (f->ret.kind)
		result = ir_regs(k, at, f->ret_type, 1);
	if (n > 200) {
		ir_error(k, CPTX_E_LIMIT, at, "function %s: a call has at most 200 arguments", f->name);
		return none;
	}
	k->calls = f->called = true;
	call_sequence(k, at, f, args, n, result);
	return k->m->err.code == CPTX_OK ? result : none;
}

/* ---- what indirect calls and branches name ---- */

/* Makes the label that names a list of targets or a prototype of the given kind. */
cptx_val ir_own_label(cptx_kernel *k, enum cptx_val_kind kind)
{
	cptx_val v = cptx_label(k);

	if (v.kind)
		k->label[v.id].placed = 1;
	v.kind = v.kind ? (uint8_t)kind : CPTX_VAL_NONE;
	return v;
}

cptx_val cptx_targets_(cptx_kernel *k, cptx_site at, const cptx_val *labels, size_t n)
{
	cptx_val none = { 0 }, list = { .kind = CPTX_VAL_LIST };

	if (!ir_open(k, at))
		return none;
	if (!n || !labels || n > UINT16_MAX) {
		ir_error(k, CPTX_E_ARG, at, "cptx_targets takes 1 to 65535 labels");
		return none;
	}
	list.owner = k->owner;
	list.count = (uint16_t)n;
	list.id = (uint32_t)k->nvec;
	for (size_t i = 0; i < n; i++) {
		if (!ir_owned(k, at, &labels[i], "a label"))
			return none;
		if ((labels[i].kind != CPTX_VAL_LABEL && labels[i].kind != CPTX_VAL_FUNC) || labels[i].kind != labels[0].kind) {
			ir_error(k, CPTX_E_ARG, at, "cptx_targets: value %zu is not a label (or function, as all of them)", i);
			return none;
		}
		if (!arena_push(&k->m->a, &k->vec, k->nvec, &k->cap_vec, sizeof *k->vec)) {
			ir_no_memory(k->m, at);
			return none;
		}
		k->vec[k->nvec++] = labels[i];
		if (labels[i].kind == CPTX_VAL_FUNC) {
			k->calls = true;
			continue;
		}
		k->label[labels[i].id].used = 1;
		k->label[labels[i].id].at = at;
	}
	cptx_val v[2] = { ir_own_label(k, labels[0].kind == CPTX_VAL_FUNC ? CPTX_VAL_PROTO : CPTX_VAL_TARGETS), list };
	return v[0].kind && ir_append(k, at, ITEM_TARGETS, v, 2, NULL, 0) ? v[0] : none;
}

static bool add_signature(cptx_kernel *f, unsigned type, ir_arg **list, size_t *n, size_t *cap)
{
	cptx_val v;

	if (!ir_param_symbol(f, "_", type, &v) || !arena_push(&f->m->a, list, *n, cap, sizeof **list))
		return ir_no_memory(f->m, f->at);
	(*list)[(*n)++] = (ir_arg){ v.id, 0 };
	return true;
}

cptx_val cptx_prototype_(cptx_kernel *k, cptx_site at, enum cptx_type ret, const enum cptx_type *params, size_t n)
{
	cptx_val none = { 0 };

	if (!ir_open(k, at))
		return none;
	if (n > 200) {
		ir_error(k, CPTX_E_LIMIT, at, "cptx_prototype: a call has at most 200 arguments");
		return none;
	}
	for (size_t i = 0; i <= n; i++) {
		unsigned bits = i == n ? cptx_type_bits(ret) : params ? cptx_type_bits(params[i]) : 0;
		if ((i < n || ret) && (bits < 16 || bits > 64)) {
			ir_error(k, CPTX_E_ARG, at, "cptx_prototype: results and parameters have 16 to 64 bits");
			return none;
		}
	}
	cptx_kernel *f = ir_body_new(k->m, at, "_");
	if (!f) {
		ir_no_memory(k->m, at);
		return none;
	}
	f->is_func = f->is_proto = f->closed = true;
	if (ret && !add_signature(f, ret == CPTX_PTR ? CPTX_U64 : ret, &f->result, &f->nresult, &f->cap_result))
		return none;
	for (size_t i = 0; i < n; i++)
		if (!add_signature(f, params[i] == CPTX_PTR ? CPTX_U64 : params[i], &f->arg, &f->narg, &f->cap_arg))
			return none;
	cptx_val v[2] = { ir_own_label(k, CPTX_VAL_PROTO), ir_func_value(f) };
	if (!v[0].kind || !ir_append(k, at, ITEM_PROTO, v, 2, NULL, 0))
		return none;
	k->label[v[0].id].proto = f->number;
	return v[0];
}
