/* One call, one instruction: matches it against the table and appends it; and what is declared beside instructions. */
#include "ir/ir.h"

#include <stdio.h>

void ir_form_error(cptx_kernel *k, cptx_site at, const char *head, buf *forms)
{
	enum { AROUND = 128 }; /* "kernel name: ", how many more */
	size_t used = strlen(head) + strlen(k->name) + (at.file ? strlen(at.file) : 0) + AROUND, left = 0;

	buf_put(forms, "", 1);
	if (forms->failed) {
		ir_no_memory(k->m, at);
		return;
	}
	while (forms->n > 1 && forms->n + used > CPTX_ERROR_TEXT) {
		char *last = strrchr(forms->p, '\n');
		forms->n = last ? (size_t)(last - forms->p) + 1 : 1;
		forms->p[forms->n - 1] = 0;
		left++;
	}
	if (left)
		ir_error(k, CPTX_E_FORM, at, "%s%s\n    and %zu more forms; `cptx insn` lists them", head, forms->p, left);
	else
		ir_error(k, CPTX_E_FORM, at, "%s%s", head, forms->p);
}

/* All forms of the instruction and why each does not fit, as the module's error. */
static void report_no_form(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	char head[128];
	buf why;

	snprintf(head, sizeof head, "no form of %s fits these operands and modifiers:", arch_ops[op].name);
	buf_init(&why, &k->m->a.hook);
	arch_why(op, vals, mods, k->vec, &why);
	ir_form_error(k, at, head, &why);
	buf_free(&why);
}

static cptx_val append_insn(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	const arch_op *o = &arch_ops[op];
	cptx_val none = { 0 }, guard;
	arch_match m;

	for (unsigned i = 0; i < 3u + o->nslot; i++)
		if (!ir_is_ours(k, &vals[i])) {
			ir_error(k, CPTX_E_ARG, at, "%s: operand %s belongs to another kernel or function of the module", o->name,
			         i == 0   ? "into"
			         : i == 1 ? "when"
			         : i == 2 ? "unless"
			                  : o->slot[i - 3]);
			return none;
		}
	if (!ir_guard_ok(k, at, &guard, vals[1], vals[2]))
		return none;
	if (!arch_match_op(&k->m->memo, op, vals, mods, k->vec, &m)) {
		report_no_form(k, at, op, vals, mods);
		return none;
	}
	cptx_val result = vals[0];
	if (m.dest_type && !result.kind) {
		result = ir_regs(k, at, m.dest_type, m.dest_count);
		if (!result.kind)
			return none;
		m.operand[0] = result;
	}
	return ir_append_match(k, at, &m, guard) ? result : none;
}

cptx_val cptx_insn_(cptx_kernel *k, cptx_site at, enum cptx_op op, const cptx_val *vals, const uint16_t *mods)
{
	if (!ir_open(k, at))
		return (cptx_val){ 0 };
	if ((unsigned)op >= arch_nop) {
		ir_error(k, CPTX_E_ARG, at, "instruction number %u is not in this library's table", (unsigned)op);
		return (cptx_val){ 0 };
	}
	return append_insn(k, at, op, vals, mods);
}

cptx_val ir_insn(cptx_kernel *k, cptx_site at, enum cptx_op op, cptx_val into, cptx_val when, const cptx_val *slots,
                 size_t nslot, const char *fields, ...)
{
	cptx_val vals[3 + ARCH_SLOTS] = { into, when };
	uint16_t mods[ARCH_FIELDS] = { 0 };
	va_list ap;

	if (k->m->err.code != CPTX_OK) /* a step of the same call failed before */
		return (cptx_val){ 0 };
	if (nslot)
		memcpy(vals + 3, slots, nslot * sizeof *slots);
	va_start(ap, fields);
	for (const char *p = fields; *p;) { /* "space type": the op's fields in the order of the values that follow */
		size_t n = strcspn(p, " ");
		uint16_t v = (uint16_t)va_arg(ap, int);
		for (unsigned i = 0; i < arch_ops[op].nfield; i++)
			if (strlen(arch_ops[op].field[i]) == n && !memcmp(arch_ops[op].field[i], p, n))
				mods[i] = v;
		p += n + (p[n] == ' ');
	}
	va_end(ap);
	return append_insn(k, at, op, vals, mods);
}

cptx_val cptx_var_(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val init)
{
	if (!ir_open(k, at))
		return (cptx_val){ 0 };
	cptx_val r = cptx_regs_(k, at, type, 1);
	if (!r.kind)
		return r;
	cptx_val bits = r;
	if (type != CPTX_PRED && arch_types[r.type].cls == 'X')
		bits = cptx_as(r, arch_types[r.type].bits == 64 ? CPTX_B64 : CPTX_B32);
	ir_insn(k, at, CPTX_OP_MOV, bits, (cptx_val){ 0 }, &init, 1, "");
	return r;
}

/* ---- parameters ---- */

enum { MOST_PARAM_BYTES = 32764 }; /* from PTX 8.1 on; PTX manual, "Kernel Function Parameters" */

static bool add_param(cptx_kernel *k, cptx_site at, cptx_param_info p, cptx_val v)
{
	cptx_module *m = k->m;

	if (!ir_name_ok(m, at, "parameter", p.name))
		return false;
	if (!ir_local_name_free(k, at, p.name))
		return false;
	if (k->block)
		return ir_error(k, CPTX_E_STATE, at,
		                "parameter '%s': declare it outside of CPTX_IF and loops; it is loaded where it is declared",
		                p.name);
	if (k->called)
		return ir_error(k, CPTX_E_STATE, at, "parameter '%s': the function was called already, with fewer", p.name);
	uint32_t end = (k->param_bytes + p.align - 1) / p.align * p.align + p.size;
	if (!k->is_func && end > MOST_PARAM_BYTES)
		return ir_error(k, CPTX_E_LIMIT, at,
		                "parameter '%s' would end at byte %u; a kernel has at most %d bytes of parameters", p.name, end,
		                MOST_PARAM_BYTES);
	p.name = arena_strdup(&m->a, p.name);
	if (!p.name || !arena_push(&m->a, &k->param, k->nparam, &k->cap_param, sizeof *k->param) ||
	    !arena_push(&m->a, &k->param_val, k->nparam, &k->cap_param_val, sizeof *k->param_val))
		return ir_no_memory(m, at);
	k->param_bytes = end;
	k->param_val[k->nparam] = v;
	k->param[k->nparam++] = p;
	return true;
}

static cptx_val param_symbol(cptx_kernel *k, size_t index, unsigned type)
{
	cptx_val v = cptx_val_int_(0);
	v.kind = CPTX_VAL_SYM;
	v.type = (uint8_t)type;
	v.space = CPTX_PARAM;
	v.owner = k->owner;
	v.id = (uint32_t)index;
	return v;
}

cptx_val cptx_param_(cptx_kernel *k, cptx_site at, enum cptx_type type, const char *name)
{
	cptx_val none = { 0 };

	if (!ir_open(k, at))
		return none;
	unsigned bits = cptx_type_bits(type), held = type == CPTX_PTR ? CPTX_U64 : type;
	if (bits < 8 || bits > 64) {
		ir_error(k, CPTX_E_ARG, at, "parameter '%s': a scalar parameter has 8 to 64 bits; cptx_param_bytes passes more",
		         name ? name : "");
		return none;
	}
	if (bits == 8)
		held = type == CPTX_S8 ? CPTX_S16 : CPTX_U16;
	cptx_val r = ir_regs(k, at, held, 1);
	if (!r.kind || !add_param(k, at, (cptx_param_info){ name, type, bits / 8, bits / 8 }, r))
		return none;
	if (k->is_func)
		return r;
	cptx_val from = param_symbol(k, k->nparam - 1, held);
	bool packed = arch_types[held].cls == 'X' || (arch_types[held].cls == 'F' && bits == 16);
	unsigned as = !packed ? held : bits == 16 ? CPTX_B16 : bits == 32 ? CPTX_B32 : CPTX_B64;
	if (bits == 8)
		as = type;
	ir_insn(k, at, CPTX_OP_LD, r, none, &from, 1, "space type", CPTX_PARAM, as);
	if (type == CPTX_PTR)
		ir_insn(k, at, CPTX_OP_CVTA, r, none, &r, 1, "to space type", CPTX_ON, CPTX_GLOBAL, CPTX_U64);
	return k->m->err.code == CPTX_OK ? r : none;
}

cptx_val cptx_param_bytes_(cptx_kernel *k, cptx_site at, uint32_t size, uint32_t align, const char *name)
{
	cptx_val none = { 0 };

	if (!ir_open(k, at))
		return none;
	if (k->is_func || !size || size > 4096 || !align || (align & (align - 1)) || align > 128) {
		ir_error(k, CPTX_E_ARG, at,
		         "parameter '%s': byte parameters belong to kernels, with 1 to 4096 bytes and a power of two up to 128 as "
		         "alignment; %u and %u were given",
		         name ? name : "", size, align);
		return none;
	}
	if (!add_param(k, at, (cptx_param_info){ name, CPTX_B8, size, align }, none))
		return none;
	return param_symbol(k, k->nparam - 1, CPTX_B8);
}

cptx_val cptx_sreg_val(enum cptx_sreg sreg)
{
	cptx_val v = { 0 };
	if ((unsigned)sreg >= arch_nsreg) {
		v.kind = CPTX_VAL_BAD;
		return v;
	}
	v.kind = CPTX_VAL_SREG;
	v.type = arch_sregs[sreg].type;
	v.count = 1;
	v.id = sreg;
	return v;
}

cptx_val cptx_sreg_(cptx_kernel *k, cptx_site at, enum cptx_sreg sreg)
{
	cptx_val v = cptx_sreg_val(sreg);
	return ir_open(k, at) ? ir_insn(k, at, CPTX_OP_MOV, (cptx_val){ 0 }, (cptx_val){ 0 }, &v, 1, "") : (cptx_val){ 0 };
}

/* ---- device functions ---- */

void cptx_func_return_(cptx_kernel *f, cptx_site at, cptx_val v)
{
	cptx_val none = { 0 };

	if (!ir_open(f, at))
		return;
	if (!f->is_func || !f->ret.kind) {
		ir_error(f, CPTX_E_STATE, at, "only a device function with a result type returns a value");
		return;
	}
	ir_insn(f, at, CPTX_OP_MOV, f->ret, none, &v, 1, "");
	ir_insn(f, at, CPTX_OP_RET, none, none, NULL, 0, "");
}

static cptx_kernel *function_of(cptx_module *m, cptx_val func)
{
	cptx_kernel *f = m->first;
	while (f && func.kind == CPTX_VAL_FUNC && (f->number != func.id || !f->is_func || func.owner != m->tag))
		f = f->next;
	return func.kind == CPTX_VAL_FUNC ? f : NULL;
}

/* Does one value of a call's list have the width of `type`?  Constants take any; what stands in parameter space is ptxas' to
 * see. */
static bool passes(cptx_kernel *k, cptx_site at, const char *what, size_t i, const cptx_val *v, unsigned type)
{
	unsigned bits = cptx_type_bits((enum cptx_type)type);

	if (v->kind != CPTX_VAL_REG || cptx_type_bits((enum cptx_type)v->type) == bits)
		return true;
	return ir_error(k, CPTX_E_ARG, at, "call: %s %zu is a .%s register, the function has .%s there", what, i,
	                cptx_type_name((enum cptx_type)v->type), cptx_type_name((enum cptx_type)type));
}

bool ir_call_fits(cptx_kernel *k, cptx_site at, const arch_match *m)
{
	const cptx_val *to = NULL, *list[2] = { NULL, NULL }; /* results, arguments */

	for (unsigned i = 0; i < m->noperand; i++) {
		if (m->operand[i].kind == CPTX_VAL_FUNC || m->operand[i].kind == CPTX_VAL_PROTO)
			to = &m->operand[i];
		else if (m->operand[i].kind == CPTX_VAL_LIST)
			list[i > 0] = &m->operand[i];
	}
	cptx_kernel *f = to->kind == CPTX_VAL_FUNC ? function_of(k->m, *to) : NULL;
	if (to->kind == CPTX_VAL_FUNC && !f)
		return ir_error(k, CPTX_E_ARG, at, "call: that is no device function of this module");
	unsigned result = f ? (f->ret.kind ? f->ret.type : 0u) : to->type;
	size_t nparam = f ? f->nparam : to->count, nresult = list[0] ? list[0]->count : 0, narg = list[1] ? list[1]->count : 0;
	if (nparam != narg || nresult != (result != 0))
		return ir_error(k, CPTX_E_ARG, at, "call: the function has %zu parameters and %d results, the call %zu and %zu",
		                nparam, result != 0, narg, nresult);
	for (size_t i = 0; i < nresult; i++) {
		const cptx_val *v = &k->vec[list[0]->id + i];
		if (v->kind == CPTX_VAL_INT || v->kind == CPTX_VAL_FLOAT)
			return ir_error(k, CPTX_E_ARG, at, "call: a result goes to a register, not to a constant");
		if (!passes(k, at, "result", i, v, result))
			return false;
	}
	for (size_t i = 0; i < narg; i++)
		if (k->vec[list[1]->id + i].kind == CPTX_VAL_SINK)
			return ir_error(k, CPTX_E_ARG, at, "call: argument %zu is the sink _, which only a result can be", i);
		else if (!passes(k, at, "argument", i, &k->vec[list[1]->id + i],
		                 f ? f->param[i].type : k->vec[(uint32_t)to->offset + i].type))
			return false;
	if (f)
		k->calls = f->called = true;
	return true;
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
	if (n != f->nparam) {
		ir_error(k, CPTX_E_ARG, at, "function %s takes %zu arguments, %zu were given", f->name, f->nparam, n);
		return none;
	}
	for (size_t i = 0; i < n; i++) {
		if (!ir_owned(k, at, &args[i], "an argument"))
			return none;
		if (args[i].kind != CPTX_VAL_REG || args[i].count != 1 || args[i].offset ||
		    ir_class_of(args[i].type) != ir_class_of(f->param_val[i].type)) {
			ir_error(k, CPTX_E_ARG, at, "function %s: argument %zu (%s) must be a .%s register", f->name, i,
			         f->param[i].name, cptx_type_name((enum cptx_type)f->param_val[i].type));
			return none;
		}
	}
	if (f->ret.kind)
		result = ir_regs(k, at, f->ret.type, 1);
	if (n > 200) {
		ir_error(k, CPTX_E_LIMIT, at, "function %s: a call has at most 200 arguments", f->name);
		return none;
	}
	ir_item *it = ir_append(k, at, ITEM_CALL, (unsigned)n + 2, 0);
	if (!it)
		return none;
	k->calls = f->called = true;
	ir_operands(it)[0] = func;
	ir_operands(it)[1] = result;
	if (n)
		memcpy(ir_operands(it) + 2, args, n * sizeof *args);
	k->ninsn++;
	return result;
}

/* ---- text items ---- */

static bool add_text(cptx_kernel *k, cptx_site at, enum ir_item_kind kind, const char *text)
{
	cptx_module *m = k->m;
	char *copy = arena_strdup(&m->a, text);

	if (!copy || !arena_push(&m->a, &k->text, k->ntext, &k->cap_text, sizeof *k->text))
		return ir_no_memory(m, at);
	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~' || (kind == ITEM_PRAGMA && *p == '"'))
			*p = ' '; /* one line of ASCII, whatever it held */
	k->text[k->ntext] = copy;
	ir_item *it = ir_append(k, at, kind, 1, 0);
	if (it)
		ir_operands(it)[0] = cptx_val_int_((int64_t)k->ntext++);
	return it != NULL;
}

/* A declaration in the body, whose label is a value of that kind. */
static cptx_val declare(cptx_kernel *k, cptx_site at, enum cptx_val_kind kind, buf *text)
{
	cptx_val v = cptx_val_int_(0);

	buf_put(text, "", 1);
	bool ok = text->failed ? ir_no_memory(k->m, at) : add_text(k, at, ITEM_DECLARE, text->p);
	buf_free(text);
	if (!ok)
		return (cptx_val){ 0 };
	v.kind = (uint8_t)kind;
	v.owner = k->owner;
	v.id = (uint32_t)k->ntext - 1;
	v.offset = 0;
	return v;
}

cptx_val cptx_targets_(cptx_kernel *k, cptx_site at, const cptx_val *labels, size_t n)
{
	buf text;

	if (!ir_open(k, at))
		return (cptx_val){ 0 };
	if (!n || !labels) {
		ir_error(k, CPTX_E_ARG, at, "cptx_targets takes at least one label");
		return (cptx_val){ 0 };
	}
	for (size_t i = 0; i < n; i++) {
		if (!ir_owned(k, at, &labels[i], "a label"))
			return (cptx_val){ 0 };
		if (labels[i].kind != CPTX_VAL_LABEL) {
			ir_error(k, CPTX_E_ARG, at, "cptx_targets: value %zu is not a label", i);
			return (cptx_val){ 0 };
		}
		k->label[labels[i].id].used = 1;
		k->label[labels[i].id].at = at;
	}
	buf_init(&text, &k->m->a.hook);
	buf_str(&text, ".branchtargets ");
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s$L%u", i ? ", " : "", (unsigned)labels[i].id);
	return declare(k, at, CPTX_VAL_TARGETS, &text);
}

/* The type of a parameter in a prototype: plain bits of its width. */
static const char *prototype_type(unsigned type) { return ir_classes[ir_class_of(type)].type; }

cptx_val cptx_prototype_(cptx_kernel *k, cptx_site at, enum cptx_type ret, const enum cptx_type *params, size_t n)
{
	buf text;

	if (!ir_open(k, at))
		return (cptx_val){ 0 };
	if (n > 200) {
		ir_error(k, CPTX_E_LIMIT, at, "cptx_prototype: a call has at most 200 arguments");
		return (cptx_val){ 0 };
	}
	for (size_t i = 0; i <= n; i++) {
		unsigned bits = i == n ? cptx_type_bits(ret) : params ? cptx_type_bits(params[i]) : 0;
		if ((i < n || ret) && (bits < 16 || bits > 64)) {
			ir_error(k, CPTX_E_ARG, at, "cptx_prototype: results and parameters have 16 to 64 bits");
			return (cptx_val){ 0 };
		}
	}
	buf_init(&text, &k->m->a.hook);
	buf_str(&text, ".callprototype ");
	if (ret)
		buf_printf(&text, "(.param .%s _) ", prototype_type(ret));
	buf_str(&text, "_ (");
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s.param .%s _", i ? ", " : "", prototype_type(params[i]));
	buf_str(&text, ")");
	cptx_val v = declare(k, at, CPTX_VAL_PROTO, &text);
	v.type = (uint8_t)ret;
	v.count = (uint16_t)n;
	v.offset = (int32_t)k->nvec; /* the types of the parameters */
	for (size_t i = 0; i < n; i++) {
		if (!arena_push(&k->m->a, &k->vec, k->nvec, &k->cap_vec, sizeof *k->vec)) {
			ir_no_memory(k->m, at);
			return (cptx_val){ 0 };
		}
		k->vec[k->nvec++] = (cptx_val){ .type = (uint8_t)params[i] };
	}
	return v;
}

void cptx_pragma_(cptx_kernel *k, cptx_site at, const char *text)
{
	if (ir_open(k, at))
		add_text(k, at, ITEM_PRAGMA, text ? text : "");
}

void cptx_comment_(cptx_kernel *k, cptx_site at, const char *format, ...)
{
	char text[512];
	va_list ap;

	if (!ir_open(k, at))
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format ? format : " ", ap);
	va_end(ap);
	add_text(k, at, ITEM_COMMENT, text);
}
