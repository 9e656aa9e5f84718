/* SPDX-License-Identifier: MIT */
/* From the IR of a kernel to an image: registers get places, operands and modifiers are laid open, each instruction its
 * function. */
#include "emu/core/decode.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/undefined.h"

#include <stdio.h>
#include <stdlib.h>

enum { HEADER = 2 /* words in front of a register: where it is defined, and one that keeps 64-bit values aligned */ };
enum { FILL_BUCKETS = 1024 };

struct emu_decoder {
	emu_image *image;
	emu_function *f;
	const cptx_kernel *k;
	const ir_item *var; /* the declaration that is being read */
	cptx_site at;
	cptx_error *err;
	arena *a;
	uint32_t *reg;        /* places, by id */
	uint32_t *sym;        /* offsets of its own variables in their space, by id */
	uint32_t *label;      /* places in the code, by id */
	const ir_item **list; /* of a label that names branch targets */
	uint32_t next;        /* free word of a frame */
	emu_fill *fill;
	size_t nfill, cap_fill;
	uint32_t *chain, bucket[FILL_BUCKETS]; /* fills of the same hash: number + 1 */
	size_t cap_chain;
	uint32_t *regs, *widths; /* of the instruction: definitions, then uses */
	size_t nregs, cap_regs, cap_widths;
	bool ok;
};

static bool fail(emu_decoder *d)
{
	d->ok = false;
	return error_set(d->err, CPTX_E_MEMORY, d->at, "out of memory");
}

void *emu_decoder_alloc(emu_decoder *d, size_t size)
{
	void *p = arena_zalloc(d->a, size);

	if (!p)
		fail(d);
	return p;
}

static cptx_site site_of(const emu_decoder *d, const ir_item *it)
{
	if (it && it->file)
		return (cptx_site){ d->k->m->file[it->file - 1], it->line };
	return d->at;
}

bool emu_refuse(emu_decoder *d, const emu_op *op, const char *format, ...)
{
	char text[512], opcode[ARCH_OPCODE], shown[NAME_SHOWN + 1];
	va_list ap;

	va_start(ap, format);
	text_message(text, sizeof text, format, ap);
	va_end(ap);
	*arch_put_opcode(opcode, op->form, ir_mods(op->item)) = 0;
	error_set(d->err, CPTX_E_TARGET, site_of(d, op->item), "kernel %s: %s: %s", name_shown(d->k->name, shown), opcode, text);
	d->ok = false;
	return false;
}

/* ---- registers ---- */

static unsigned class_bits(unsigned type)
{
	unsigned bits = arch_types[type].bits;

	return bits == 1 ? 1 : bits <= 16 ? 16 : bits;
}

static uint32_t place(emu_decoder *d, unsigned bits)
{
	uint32_t at = d->next + HEADER;

	d->next = at + (bits == 1 ? 2 : bits <= 32 ? WARP : bits / 32 * WARP);
	return at;
}

/* A register that holds the same each time a frame is made. */
static uint32_t filled(emu_decoder *d, unsigned kind, unsigned bits, uint64_t value)
{
	uint32_t hash = (uint32_t)((value ^ value >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> 40) + kind * 7 + bits;
	uint32_t *bucket = &d->bucket[hash % FILL_BUCKETS];

	for (uint32_t i = *bucket; i; i = d->chain[i - 1])
		if (d->fill[i - 1].value == value && d->fill[i - 1].kind == kind && d->fill[i - 1].bits == bits)
			return d->fill[i - 1].slot;
	if (!arena_push(d->a, &d->fill, d->nfill, &d->cap_fill, sizeof *d->fill) ||
	    !arena_push(d->a, &d->chain, d->nfill, &d->cap_chain, sizeof *d->chain)) {
		fail(d);
		return HEADER;
	}
	d->chain[d->nfill] = *bucket;
	d->fill[d->nfill] = (emu_fill){ .slot = place(d, bits), .kind = (uint8_t)kind, .bits = (uint8_t)bits, .value = value };
	*bucket = (uint32_t)++d->nfill;
	return d->fill[d->nfill - 1].slot;
}

static uint64_t constant_bits(const cptx_val *v)
{
	uint64_t u;

	if (v->kind == CPTX_VAL_INT)
		return (uint64_t)v->i;
	if (v->type != CPTX_F64 && v->type != CPTX_B64)
		return text_f32_bits(v->f);
	memcpy(&u, &v->f, sizeof u);
	return u;
}

static uint64_t low_bits(uint64_t v, unsigned bits) { return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1); }

/* ---- variables ---- */

unsigned emu_space_of(unsigned mod)
{
	switch (mod) {
	case CPTX_GLOBAL: return SPACE_GLOBAL;
	case CPTX_CONST: return SPACE_CONST;
	case CPTX_SHARED:
	case CPTX_SHARED_CTA: return SPACE_SHARED;
	case CPTX_SHARED_CLUSTER: return SPACE_CLUSTER;
	case CPTX_LOCAL: return SPACE_LOCAL;
	case CPTX_PARAM:
	case CPTX_PARAM_ENTRY:
	case CPTX_PARAM_FUNC: return SPACE_PARAM;
	default: return SPACE_GENERIC;
	}
}

/* Between variables of shared memory: while they are few, what lies there keeps its place in 1024 bytes, as swizzles want.
 */
enum { WIDE_GAP = 1024, NARROW_GAP = EMU_GRAIN, WIDE_GAPS = 16 };
enum { LOCAL_GAP = 64, LOCAL_GAPS = 4096 }; /* the same for local memory */

static uint32_t shared_place(emu_decoder *d, const ir_sym *s)
{
	emu_image *im = d->image;

	if (s->linkage == LINK_EXTERN && !s->size) { /* dynamic: behind all that is static */
		im->dyn_align = MAX(im->dyn_align, s->align);
		return 0;
	}
	return emu_variable_add(&im->shared, d->a, s, im->shared.n < WIDE_GAPS ? WIDE_GAP : NARROW_GAP, &d->ok);
}

static bool has_room(emu_decoder *d, const ir_sym *s)
{
	unsigned space = s->is_param ? SPACE_PARAM : emu_space_of(s->space);
	uint32_t used = space == SPACE_LOCAL ? d->f->local.bytes : space == SPACE_SHARED ? d->image->shared.bytes : 0;

	d->ok &=
		emu_variable_fits(d->k->name, space, space == SPACE_PARAM ? d->f->param_bytes : used, s, site_of(d, d->var), d->err);
	return d->ok;
}

/* The value that names a variable in its space; *kind says what is added when a frame is made. */
static uint64_t symbol_address(emu_decoder *d, uint32_t id, unsigned *kind, unsigned *space)
{
	if (id >= MODULE_SYM)
		id = MODULE_SYM +
		     emu_program_definition(d->image->program, id - MODULE_SYM, d->k->name, d->at, d->ok ? d->err : NULL, &d->ok);
	const ir_sym *s = ir_symbol(d->k, id);

	*space = s->is_param ? SPACE_PARAM : emu_space_of(s->space);
	bool dynamic = s->linkage == LINK_EXTERN && !s->size;
	*kind = *space == SPACE_SHARED  ? (dynamic ? FILL_DYNAMIC : FILL_SHARED)
	        : *space == SPACE_LOCAL ? FILL_LOCAL
	                                : FILL_CONST;
	if (id < MODULE_SYM)
		return *space == SPACE_GLOBAL || *space == SPACE_CONST ? d->image->program->own_at[d->k->number - 1][id]
		                                                       : d->sym[id];
	if (*space != SPACE_SHARED)
		return d->image->program->sym_at[id - MODULE_SYM];
	emu_placed *placed = &d->image->program->placed[id - MODULE_SYM];
	if (placed->image != d->image && has_room(d, s))
		*placed = (emu_placed){ d->image, shared_place(d, s) };
	return placed->image == d->image ? placed->at : IR_NONE;
}

static void place_symbol(emu_decoder *d, uint32_t id)
{
	const ir_sym *s = d->k->sym[id];

	if (!has_room(d, s))
		return;
	switch (s->is_param ? SPACE_PARAM : emu_space_of(s->space)) {
	case SPACE_SHARED: d->sym[id] = shared_place(d, s); return;
	case SPACE_LOCAL:
		d->sym[id] = emu_variable_add(&d->f->local, d->a, s, d->f->local.n < LOCAL_GAPS ? LOCAL_GAP : NARROW_GAP, &d->ok);
		return;
	case SPACE_PARAM:
		d->sym[id] = emu_aligned(d->f->param_bytes, s->align);
		d->f->param_bytes = d->sym[id] + (uint32_t)s->size;
		return;
	default: return;
	}
}

/* Formal parameters of a function, and what it returns: first in the frame's parameters. */
static const emu_passed *formals(emu_decoder *d, const ir_arg *arg, size_t n)
{
	emu_passed *out = DECODER_ARRAY(d, emu_passed, n + 1);

	for (size_t i = 0; out && i < n; i++) {
		if (arg[i].sym == IR_NONE) {
			out[i] = (emu_passed){ .slot = d->reg[arg[i].reg],
				                   .size = (uint32_t)arch_types[d->k->reg[arg[i].reg].type].bits / 8 };
			continue;
		}
		place_symbol(d, arg[i].sym);
		out[i] = (emu_passed){ .offset = d->sym[arg[i].sym], .size = (uint32_t)d->k->sym[arg[i].sym]->size };
	}
	return out;
}

/* ---- operands ---- */

static void note(emu_decoder *d, uint32_t slot, unsigned bits)
{
	if (!slot)
		return;
	if (!arena_push(d->a, &d->regs, d->nregs, &d->cap_regs, sizeof *d->regs) ||
	    !arena_push(d->a, &d->widths, d->nregs, &d->cap_widths, sizeof *d->widths)) {
		fail(d);
		return;
	}
	d->regs[d->nregs] = slot;
	d->widths[d->nregs++] = bits;
}

/* "%tid", 1: "%tid.y". */
static unsigned element_of_sreg(unsigned sreg, unsigned i)
{
	const char *whole = arch_sregs[sreg].text;
	size_t n = strlen(whole);

	for (unsigned s = 0; s < arch_nsreg; s++) {
		const char *one = arch_sregs[s].text;
		if (!strncmp(one, whole, n) && one[n] == '.' && one[n + 1] == "xyzw"[i])
			return s;
	}
	return sreg;
}

/* The register that stands for a value of one element. */
static uint32_t value_slot(emu_decoder *d, const cptx_val *v, unsigned *bits)
{
	unsigned kind, space;
	uint64_t at;

	switch (v->kind) {
	case CPTX_VAL_REG: *bits = class_bits(d->k->reg[v->id].type); return d->reg[v->id];
	case CPTX_VAL_SREG: *bits = class_bits(arch_sregs[v->id].type); return filled(d, FILL_SREG, *bits, v->id);
	case CPTX_VAL_INT:
	case CPTX_VAL_FLOAT:
		*bits = v->type ? class_bits(v->type) : 32;
		return filled(d, FILL_CONST, *bits, low_bits(constant_bits(v), *bits));
	case CPTX_VAL_SYM:
		*bits = 64;
		at = symbol_address(d, v->id, &kind, &space);
		return filled(d, kind, 64, at + (uint64_t)(int64_t)v->offset);
	case CPTX_VAL_FUNC: *bits = 64; return filled(d, FILL_CONST, 64, emu_function_at(d->k->m->body[v->id - 1]));
	default: return NO_SLOT;
	}
}

/* A constant has no type of its own: that of the elements. */
static cptx_val typed(cptx_val v, unsigned type)
{
	if (v.kind == CPTX_VAL_INT)
		v.type = (uint8_t)type;
	else if (v.kind == CPTX_VAL_FLOAT)
		v.type = arch_types[type].bits == 64 ? CPTX_F64 : CPTX_F32;
	return v;
}

static void decode_vector(emu_decoder *d, const cptx_val *v, unsigned type, emu_arg *a)
{
	unsigned n = v->kind == CPTX_VAL_SREG ? arch_sregs[v->id].count : v->count;
	uint32_t *slots = DECODER_ARRAY(d, uint32_t, n + 1u);
	unsigned bits = 32;

	*a = (emu_arg){ .kind = ARG_VEC, .count = (uint16_t)n, .slots = slots };
	for (unsigned i = 0; slots && i < n; i++) {
		cptx_val one = v->kind == CPTX_VAL_VEC ? typed(d->k->vec[v->id + i], type) : *v;
		if (v->kind == CPTX_VAL_REG)
			one.id += i;
		else if (v->kind == CPTX_VAL_SREG)
			one.id = element_of_sreg(v->id, i);
		slots[i] = value_slot(d, &one, &bits);
		if (slots[i])
			a->bits = (uint8_t)bits;
	}
	a->slot = slots && n ? slots[0] : NO_SLOT;
}

static void decode_list(emu_decoder *d, const cptx_val *v, emu_arg *a)
{
	emu_passed *p = DECODER_ARRAY(d, emu_passed, v->count + 1u);
	unsigned bits = 0, kind, space;

	*a = (emu_arg){ .kind = ARG_LIST, .count = v->count, .passed = p };
	for (unsigned i = 0; p && i < v->count; i++) {
		const cptx_val *one = &d->k->vec[v->id + i];
		if (one->kind == CPTX_VAL_SYM) {
			uint64_t at = symbol_address(d, one->id, &kind, &space);
			p[i] = (emu_passed){ .offset = (uint32_t)(at + (uint64_t)(int64_t)one->offset),
				                 .size = (uint32_t)ir_symbol(d->k, one->id)->size };
		} else {
			p[i].slot = value_slot(d, one, &bits);
			p[i].size = bits / 8;
		}
	}
}

static void decode_address(emu_decoder *d, const cptx_val *v, const arch_operand *o, const uint16_t *mods, emu_arg *a)
{
	unsigned bits = 64, kind, space;

	*a = (emu_arg){ .kind = ARG_ADDR, .count = 1 };
	a->space = (uint8_t)emu_space_of(o->sgroup != ARCH_NO ? mods[o->sgroup] : o->space);
	if (v->kind == CPTX_VAL_INT) {
		a->offset = v->i;
		a->bits = 64;
		return;
	}
	if (v->kind == CPTX_VAL_SYM) {
		uint64_t at = symbol_address(d, v->id, &kind, &space);
		if (a->space != SPACE_CLUSTER && a->space != space)
			a->space = (uint8_t)space;
		a->offset = v->offset;
		if (kind == FILL_CONST) {
			a->offset += (int64_t)at;
			a->bits = 64;
			return;
		}
		a->slot = filled(d, kind, bits, at);
	} else {
		a->slot = value_slot(d, v, &bits);
		a->offset = v->kind == CPTX_VAL_REG ? v->offset : 0;
	}
	a->base = 1;
	a->bits = (uint8_t)bits;
}

static void decode_targets(emu_decoder *d, const cptx_val *v, emu_arg *a)
{
	const ir_item *it = d->list[v->id];
	cptx_val list = it ? ir_operand(d->k, it, 1) : (cptx_val){ 0 };
	uint32_t *to = DECODER_ARRAY(d, uint32_t, list.count + 1u);

	*a = (emu_arg){ .kind = ARG_TARGETS, .count = list.count, .slots = to };
	for (unsigned i = 0; to && i < list.count; i++)
		to[i] = d->label[d->k->vec[list.id + i].id];
}

static void decode_operand(emu_decoder *d, const cptx_val *v, const arch_operand *o, const uint16_t *mods, emu_arg *a)
{
	unsigned bits = 32, type = o->type ? o->type : o->tgroup != ARCH_NO ? mods[o->tgroup] : 0;

	if (o->kind == OPERAND_ADDR) {
		decode_address(d, v, o, mods, a);
		return;
	}
	switch (v->kind) {
	case CPTX_VAL_NONE:
	case CPTX_VAL_PROTO: *a = (emu_arg){ .kind = ARG_NONE }; return;
	case CPTX_VAL_SINK: *a = (emu_arg){ .kind = ARG_SINK, .bits = 32 }; return;
	case CPTX_VAL_LABEL: *a = (emu_arg){ .kind = ARG_LABEL, .slot = d->label[v->id] }; return;
	case CPTX_VAL_TARGETS: decode_targets(d, v, a); return;
	case CPTX_VAL_LIST: decode_list(d, v, a); return;
	case CPTX_VAL_VEC: decode_vector(d, v, type, a); return;
	case CPTX_VAL_FUNC:
		if (o->kind == OPERAND_FUNC) {
			*a = (emu_arg){ .kind = ARG_FUNC, .slot = v->id };
			return;
		}
		break;
	case CPTX_VAL_REG:
	case CPTX_VAL_SREG:
		if (v->kind == CPTX_VAL_REG ? v->count > 1 : arch_sregs[v->id].count > 1) {
			decode_vector(d, v, type, a);
			return;
		}
		break;
	default: break;
	}
	*a = (emu_arg){ .kind = ARG_REG, .negated = v->kind == CPTX_VAL_REG && v->negated, .count = 1 };
	a->slot = value_slot(d, v, &bits);
	a->bits = (uint8_t)bits;
	a->select = v->kind == CPTX_VAL_REG ? v->space : 0;
	a->offset = v->kind == CPTX_VAL_INT ? v->i : a->select ? v->offset : 0;
}

static void note_operand(emu_decoder *d, const emu_arg *a)
{
	if (a->kind == ARG_VEC)
		for (unsigned i = 0; i < a->count; i++)
			note(d, a->slots[i], a->bits);
	else if (a->kind == ARG_REG || (a->kind == ARG_ADDR && a->base))
		note(d, a->slot, a->bits);
}

/* ---- instructions ---- */

static void decode_registers(emu_decoder *d, emu_op *op, const arch_form *form)
{
	size_t first = d->nregs;

	for (int pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < form->noperand; i++) {
			const arch_operand *o = &arch_operands[form->operand + i];
			bool def = o->flags & OPERAND_DEST && o->kind != OPERAND_ADDR;
			if (pass ? !def || o->flags & OPERAND_READ : def)
				note_operand(d, &op->arg[o->slot]);
		}
		if (!pass)
			op->ndef = (uint16_t)(d->nregs - first);
	}
	op->nuse = (uint16_t)(d->nregs - first - op->ndef);
	size_t n = d->nregs - first;
	uint32_t *regs = DECODER_ARRAY(d, uint32_t, n * 2 + 1);
	if (regs && n) {
		memcpy(regs, d->regs + first, n * sizeof *regs);
		memcpy(regs + n, d->widths + first, n * sizeof *regs);
	}
	op->regs = regs;
	d->nregs = first;
}

static bool decode_insn(emu_decoder *d, const ir_item *it, emu_op *op)
{
	const arch_form *form = &arch_forms[it->form];
	cptx_val v[ARCH_OPERANDS];
	unsigned most = 0;

	ir_operands(d->k, it, v);

	op->item = it;
	op->f = d->f;
	op->form = it->form;
	op->opcode = form->op;
	op->guard = it->guard ? d->reg[it->guard - 1] : NO_SLOT;
	op->negated = (it->flags & ITEM_NEGATED) != 0;
	for (unsigned i = 0; i < form->noperand; i++)
		most = MAX(most, arch_operands[form->operand + i].slot);
	op->narg = (uint8_t)MAX(most + 1, arch_ops[form->op].nslot + 1u);
	op->arg = DECODER_ARRAY(d, emu_arg, op->narg);
	if (!op->arg)
		return false;
	for (unsigned i = 0; i < form->noperand; i++) {
		const arch_operand *o = &arch_operands[form->operand + i];
		decode_operand(d, &v[i], o, ir_mods(it), &op->arg[o->slot]);
	}
	emu_modifiers(op);
	decode_registers(d, op, form);
	emu_decode_fn decode = emu_decode_of(op->opcode);
	if (!decode)
		return emu_refuse(d, op, "the emulator does not execute it: %s", emu_left_out(op->opcode));
	if (emu_is_newer(it))
		return emu_refuse(d, op, "the emulator does not execute it: it is newer than PTX %d.%d", EMU_WRITTEN_FOR / 10,
		                  EMU_WRITTEN_FOR % 10);
	const char *unread = emu_unread(it);
	if (unread)
		return emu_refuse(d, op, "the emulator does not know what its modifier \"%s\" does", unread);
	if (!d->ok || !decode(d, op))
		return false;
	emu_flow(op);
	return true;
}

/* ---- functions ---- */

static bool scan(emu_decoder *d)
{
	size_t n = 0;

	for (const ir_item *it = d->k->first; it; it = it->next) {
		if (it->kind == ITEM_INSN)
			n++;
		else if (it->kind == ITEM_LABEL)
			d->label[ir_operand(d->k, it, 0).id] = (uint32_t)n;
		else if (it->kind == ITEM_TARGETS)
			d->list[ir_operand(d->k, it, 0).id] = it;
		else if (it->kind == ITEM_VAR)
			place_symbol(d, ir_operand(d->k, (d->var = it), 0).id);
	}
	d->f->local_bytes = emu_aligned(d->f->local.bytes + d->f->local.gaps, EMU_GRAIN);
	d->ok &= emu_variables_end(&d->f->local, d->a, d->f->local_bytes);
	d->f->ncode = n;
	d->f->code = DECODER_ARRAY(d, emu_op, n + 1);
	return d->ok;
}

static bool prepare(emu_decoder *d)
{
	const cptx_kernel *k = d->k;

	d->reg = DECODER_ARRAY(d, uint32_t, k->nreg + 1);
	d->sym = DECODER_ARRAY(d, uint32_t, k->nsym + 1);
	d->label = DECODER_ARRAY(d, uint32_t, k->nlabel + 1);
	d->list = DECODER_ARRAY(d, const ir_item *, k->nlabel + 1);
	if (!d->ok)
		return false;
	for (size_t i = 0; i < k->nreg; i++)
		d->reg[i] = place(d, class_bits(k->reg[i].type));
	d->f->arg = formals(d, k->arg, k->narg);
	d->f->narg = k->narg;
	d->f->result = formals(d, k->result, k->nresult);
	d->f->nresult = k->nresult;
	if (!k->is_func)
		d->f->formals = d->f->param_bytes;
	return d->ok && scan(d);
}

/* Past the last instruction, and behind it: what falls off the end of a body returns. */
static enum emu_step fall_off(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)mask;
	return emu_find(w, op, EMU_ALL, CPTX_FIND_CALL,
	                "control runs past the end of the function; it must end with ret or exit");
}

static bool decode_body(emu_decoder *d)
{
	size_t n = 0;

	for (const ir_item *it = d->k->first; it; it = it->next)
		if (it->kind == ITEM_INSN && !decode_insn(d, it, &d->f->code[n++]))
			return false;
	emu_op *end = &d->f->code[n];
	end->fn = fall_off;
	end->f = d->f;
	end->item = n ? d->f->code[n - 1].item : NULL;
	end->form = n ? end[-1].form : 0;
	end->opcode = n ? end[-1].opcode : 0;
	return d->ok;
}

bool emu_decode_function(emu_image *im, emu_function *f, cptx_site at, cptx_error *err)
{
	emu_decoder *d = NEW(emu_decoder);

	if (!d)
		return error_set(err, CPTX_E_MEMORY, at, "out of memory");
	*d = (emu_decoder){ .image = im, .f = f, .k = f->k, .at = at, .err = err, .a = &im->program->a, .ok = true };
	bool ok = prepare(d) && decode_body(d);
	f->words = d->next;
	f->fill = d->fill;
	f->nfill = d->nfill;
	f->decoded = true;
	free(d);
	return ok;
}

const emu_function *emu_decoder_function(emu_decoder *d, uint32_t number)
{
	return emu_image_reach(d->image, d->k->m->body[number - 1]); /* reached before */
}
