/* SPDX-License-Identifier: MIT */
/* Builder calls: each call matches one instruction against the table and appends it.  Also the calls that declare parameters
 * and add comments. */
#include "ir/ir.h"

#include <cptx/cptx.h>

#include <stdio.h>

void ir_form_error(cptx_kernel *k, cptx_site at, buf *why)
{
	enum { AROUND = 128 }; /* room for "kernel name: " around an error's text */
	size_t used = strlen(k->name) + (at.file ? strlen(at.file) : 0) + AROUND, left = 0;

	buf_put(why, "", 1);
	if (why->failed) {
		ir_no_memory(k->m, at);
		return;
	}
	while (why->n > 1 && why->n + used > CPTX_ERROR_TEXT) {
		char *last = strrchr(why->p, '\n');
		why->n = last ? (size_t)(last - why->p) + 1 : CPTX_ERROR_TEXT - used;
		why->p[why->n - 1] = 0;
		left += last != NULL;
	}
	if (left)
		ir_error(k, CPTX_E_FORM, at, "%s\n    and %zu more lines; `cptx insn` lists all forms", why->p, left);
	else
		ir_error(k, CPTX_E_FORM, at, "%s", why->p);
}

void ir_report_no_form(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	buf why;

	buf_init(&why, &k->m->a.hook);
	arch_why(op, vals, mods, k->vec, &why);
	ir_form_error(k, at, &why);
	buf_free(&why);
}

/* Appends a call that is not known from an earlier one. */
static cptx_val match_insn(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	const arch_op *o = &arch_ops[op];
	cptx_val none = { 0 }, guard;
	arch_match m;

	for (unsigned i = 0; i < 3u + o->nslot; i++)
		if (vals[i].kind && !ir_is_ours(k, &vals[i])) {
			ir_error(k, CPTX_E_ARG, at, "%s: operand %s %s", o->name,
			         i == 0   ? "into"
			         : i == 1 ? "when"
			         : i == 2 ? "unless"
			                  : o->slot[i - 3],
			         ir_stranger(&vals[i]));
			return none;
		}
	guard = none;
	if ((vals[1].kind | vals[2].kind) && !ir_guard_ok(k, at, &guard, vals[1], vals[2]))
		return none;
	if (!arch_match_op(&k->m->memo, op, vals, mods, k->vec, &m)) {
		ir_report_no_form(k, at, op, vals, mods);
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

cptx_val ir_append_insn(cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals, const uint16_t *mods)
{
	cptx_val made;

	return ir_insn_again(k, at, op, vals, mods, &made) ? made : match_insn(k, at, op, vals, mods);
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
			if (*arch_ops[op].field[i] == *p && !strncmp(arch_ops[op].field[i], p, n) && !arch_ops[op].field[i][n])
				mods[i] = v;
		p += n + (p[n] == ' ');
	}
	va_end(ap);
	return ir_append_insn(k, at, op, vals, mods);
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
	CALL(mov, .a = init, .into = bits);
	return r;
}

/* ---- parameters ---- */

enum { MOST_PARAM_BYTES = 32764 }; /* from PTX 8.1 on; PTX manual, "Kernel Function Parameters" */

/* The type by which a parameter is declared and loaded: ptxas knows no packed types in parameter space. */
static unsigned type_in_memory(unsigned type)
{
	arch_type t = arch_types[type];
	bool packed = t.cls == 'X' || (t.cls == 'F' && t.bits == 16);

	return !packed ? type : t.bits == 16 ? CPTX_B16 : t.bits == 32 ? CPTX_B32 : CPTX_B64;
}

/* Declares the parameter in the earlier declaration of the kernel too, where the text has one without a body. */
static bool declare_too(cptx_kernel *k, const ir_sym *s)
{
	for (size_t i = 0; i < k->m->nbody; i++) {
		cptx_kernel *d = k->m->body[i];
		if (d->def != k)
			continue;
		uint32_t id = ir_add_symbol(k->m, d, s);
		if (id == IR_NONE || !arena_push(&k->m->a, &d->arg, d->narg, &d->cap_arg, sizeof *d->arg))
			return false;
		d->arg[d->narg++] = (ir_arg){ id, 0 };
		d->edited = true;
	}
	return true;
}

/* Adds a parameter and sets *address to its address.  `p.type` CPTX_B8 with more than a byte stands for an array of bytes.
 */
static bool add_param(cptx_kernel *k, cptx_site at, cptx_param_info p, cptx_val v, cptx_val *address)
{
	cptx_module *m = k->m;
	bool bytes = p.type == CPTX_B8 && (p.size > 1 || p.align > 1);
	ir_sym s = { .size = p.size, .align = p.align, .space = CPTX_PARAM, .ndim = bytes, .align_given = bytes };

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
	if (k->is_func && k->src_len)
		return ir_error(k, CPTX_E_STATE, at, "parameter '%s': only kernels of parsed text get more parameters", p.name);
	uint32_t end = (k->param_bytes + p.align - 1) / p.align * p.align + p.size;
	if (!k->is_func && end > MOST_PARAM_BYTES)
		return ir_error(k, CPTX_E_LIMIT, at,
		                "parameter '%s' would end at byte %u; a kernel has at most %d bytes of parameters", p.name, end,
		                MOST_PARAM_BYTES);
	s.dim = bytes ? ARENA_COPY(&m->a, uint32_t, &p.size, 1) : NULL;
	s.elem = (uint8_t)(p.type == CPTX_PTR ? CPTX_U64 : p.type);
	s.type = (uint8_t)(k->is_func ? ir_classes[ir_class_of(v.type)].type : type_in_memory(s.elem));
	if (k->is_func)
		s.align = (uint32_t)(s.size = arch_types[s.type].bits / 8);
	s.name = p.name = arena_strdup(&m->a, p.name);
	uint32_t id = s.name && (s.dim || !bytes) ? ir_add_symbol(m, k, &s) : IR_NONE;
	if (id == IR_NONE || !arena_push(&m->a, &k->param, k->nparam, &k->cap_param, sizeof *k->param) ||
	    !arena_push(&m->a, &k->arg, k->narg, &k->cap_arg, sizeof *k->arg) ||
	    (k->is_func && !arena_push(&m->a, &k->param_val, k->nparam, &k->cap_param_val, sizeof *k->param_val)) ||
	    (m->parsed && !declare_too(k, &s)))
		return ir_no_memory(m, at);
	k->param_bytes = end;
	k->arg[k->narg++] = (ir_arg){ id, 0 };
	if (k->is_func)
		k->param_val[k->nparam] = v;
	k->param[k->nparam++] = p;
	k->edited = true;
	*address = ir_symbol_value(m, k, id);
	return true;
}

cptx_val cptx_param_(cptx_kernel *k, cptx_site at, enum cptx_type type, const char *name)
{
	cptx_val none = { 0 }, from;

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
	if (!r.kind || !add_param(k, at, (cptx_param_info){ name, type, bits / 8, bits / 8 }, r, &from))
		return none;
	unsigned as = k->is_func ? k->sym[from.id]->type : bits == 8 ? type : type_in_memory(held);
	CALL(ld, .a = from, .space = CPTX_PARAM, .type = (uint16_t)as, .into = r);
	if (type == CPTX_PTR && !k->is_func)
		CALL(cvta, .a = r, .to = CPTX_ON, .space = CPTX_GLOBAL, .type = CPTX_U64, .into = r);
	return k->m->err.code == CPTX_OK ? r : none;
}

cptx_val cptx_param_bytes_(cptx_kernel *k, cptx_site at, uint32_t size, uint32_t align, const char *name)
{
	cptx_val none = { 0 }, address;

	if (!ir_open(k, at))
		return none;
	if (k->is_func || !size || size > 4096 || !align || (align & (align - 1)) || align > 128) {
		ir_error(k, CPTX_E_ARG, at,
		         "parameter '%s': byte parameters belong to kernels, with 1 to 4096 bytes and a power of two up to 128 as "
		         "alignment; %u and %u were given",
		         name ? name : "", size, align);
		return none;
	}
	return add_param(k, at, (cptx_param_info){ name, CPTX_B8, size, align }, none, &address) ? address : none;
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
	v.count = arch_sregs[sreg].count;
	v.id = sreg;
	return v;
}

cptx_val cptx_sreg_(cptx_kernel *k, cptx_site at, enum cptx_sreg sreg) { return CALL(mov, .a = cptx_sreg_val(sreg)); }

/* ---- text items ---- */

uint32_t ir_add_text(cptx_kernel *k, const char *text)
{
	if (!arena_push(&k->m->a, &k->text, k->ntext, &k->cap_text, sizeof *k->text))
		return IR_NONE;
	k->text[k->ntext] = text;
	return (uint32_t)k->ntext++;
}

static void add_text(cptx_kernel *k, cptx_site at, enum ir_item_kind kind, const char *text)
{
	cptx_module *m = k->m;
	char *copy = arena_strdup(&m->a, text);

	for (char *p = copy; p && *p; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~' || (kind == ITEM_PRAGMA && *p == '"'))
			*p = ' '; /* the comment must stay one line of ASCII */
	uint32_t id = copy ? ir_add_text(k, copy) : IR_NONE;
	cptx_val v = cptx_val_int_((int64_t)id);
	if (id == IR_NONE || !ir_append(k, at, kind, &v, 1, NULL, 0))
		ir_no_memory(m, at);
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
