/* SPDX-License-Identifier: MIT */
/* Printing items: each becomes a line of PTX. */
#include "emit/emit.h"

#include <stdio.h>

/* ---- operands ---- */

static char *put_str(char *p, const char *s)
{
	size_t n = strlen(s);
	memcpy(p, s, n);
	return p + n;
}

static char *put_i64(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return text_u64(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static char *put_hex(char *p, uint64_t v, int digits)
{
	for (int i = digits - 1; i >= 0; i--)
		*p++ = "0123456789ABCDEF"[v >> (4 * i) & 15];
	return p;
}

static inline char *put_reg(const emitter *e, char *p, uint32_t id)
{
	const reg_name *name = &e->out->names[id];

	memcpy(p, name, sizeof *name); /* copying all of it is faster than copying its length */
	return name->len != NAME_LONGER ? p + name->len : ir_reg_name(e->k, p, id);
}

static char *put_float(char *p, double d, bool wide)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof bits);
	*p++ = '0';
	*p++ = wide ? 'd' : 'f';
	return wide ? put_hex(p, bits, 16) : put_hex(p, text_f32_bits(d), 8);
}

static const char *symbol_name(const cptx_kernel *k, const cptx_val *v) { return ir_symbol(k, v->id)->name; }

/* Writes a constant, sink or parameter that is an element of a vector or list of type `type`. */
static char *put_element(const emitter *e, char *p, const cptx_val *v, unsigned type)
{
	bool wide = type ? arch_types[type].bits == 64 : v->type != CPTX_F32; /* a list has no type of its own */

	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG: return put_reg(e, p, v->id);
	case CPTX_VAL_FLOAT: return put_float(p, v->f, wide || (!type && v->type == CPTX_F64));
	case CPTX_VAL_SYM: return put_str(p, symbol_name(e->k, v));
	case CPTX_VAL_SINK: *p++ = '_'; return p;
	default:
		if (arch_types[type].cls == 'F')
			return put_float(p, v->negated ? (double)(uint64_t)v->i : (double)v->i, wide);
		return put_i64(p, v->i);
	}
}

/* Writes the elements of a vector or list between the two characters of `around`. */
static char *put_elements(const emitter *e, char *p, const cptx_val *v, unsigned type, const char *around)
{
	*p++ = around[0];
	for (uint32_t i = 0; i < v->count; i++) {
		if (i)
			*p++ = ',', *p++ = ' ';
		p = put_element(e, p, &e->k->vec[v->id + i], type);
	}
	*p++ = around[1];
	return p;
}

/* Writes a vector of registers only. */
static char *put_vector(const emitter *e, char *p, const cptx_val *v)
{
	*p++ = '{';
	for (uint32_t i = 0; i < v->count; i++) {
		if (i)
			*p++ = ',', *p++ = ' ';
		p = put_reg(e, p, v->kind == CPTX_VAL_VEC ? e->k->vec[v->id + i].id : v->id + i);
	}
	*p++ = '}';
	return p;
}

static char *put_selector(char *p, const cptx_val *v)
{
	*p++ = '.';
	*p++ = v->space & SELECTED_H ? 'h' : 'b';
	for (unsigned i = 0; i < (v->space & SELECTED_DIGITS); i++)
		*p++ = (char)('0' + ((uint32_t)v->offset >> 3 * i & 7));
	return p;
}

static char *put_offset(char *p, int64_t offset)
{
	if (offset) {
		*p++ = '+';
		p = put_i64(p, offset);
	}
	return p;
}

/* The type of an operand's elements. */
static unsigned operand_type(const arch_operand *o, const uint16_t *mods)
{
	return o->type ? o->type : o->tgroup != ARCH_NO ? mods[o->tgroup] : 0;
}

static char *put_operand(const emitter *e, char *p, const arch_operand *o, const uint16_t *mods, const cptx_val *v)
{
	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG:
		if (v->count > 1 || o->brace)
			return put_vector(e, p, v);
		if (v->negated)
			*p++ = v->type == CPTX_PRED ? '!' : '-';
		p = put_reg(e, p, v->id);
		if (v->space == PLUS_ZERO)
			return put_str(p, "+0");
		return v->space ? put_selector(p, v) : put_offset(p, v->offset);
	case CPTX_VAL_VEC:
		if (!v->space && (v->count > 1 || o->brace))
			return put_vector(e, p, v);
		if (v->count > 1 || o->brace)
			return put_elements(e, p, v, operand_type(o, mods), "{}");
		return put_element(e, p, &e->k->vec[v->id], operand_type(o, mods));
	case CPTX_VAL_LIST: return put_elements(e, p, v, 0, "()");
	case CPTX_VAL_INT:
	case CPTX_VAL_FLOAT:
		if (o->brace)
			*p++ = '{';
		p = v->kind == CPTX_VAL_INT ? put_i64(p, v->i) : put_float(p, v->f, v->type == CPTX_F64);
		if (o->brace)
			*p++ = '}';
		return p;
	case CPTX_VAL_SINK: *p++ = '_'; return p;
	case CPTX_VAL_SYM: return put_offset(put_str(p, symbol_name(e->k, v)), v->offset);
	case CPTX_VAL_SREG: return put_str(p, arch_sregs[v->id].text);
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO: return p + ir_label_name(e->k, p, v->id);
	case CPTX_VAL_FUNC: return put_str(p, e->m->body[v->id - 1]->name);
	case CPTX_VAL_BAD:
	case CPTX_VAL_NONE: break;
	}
	return p;
}

/* ---- room ---- */

static size_t label_room(const emitter *e, uint32_t id)
{
	const char *name = e->k->label[id].name, *made = e->k->made;

	return e->own_most + (name ? strlen(name) : made ? strlen(made) : 0);
}

/* The bytes of an operand's names, and of the elements of a vector or list, beyond what each operand has room for. */
static size_t value_room(const emitter *e, const cptx_val *v)
{
	size_t room = v->count > 1 ? v->count * e->own_most : 0;

	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_SYM: return strlen(symbol_name(e->k, v));
	case CPTX_VAL_FUNC: return strlen(e->m->body[v->id - 1]->name);
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO: return label_room(e, v->id);
	case CPTX_VAL_LIST:
		for (uint32_t i = 0; i < v->count; i++)
			if (e->k->vec[v->id + i].kind == CPTX_VAL_SYM)
				room += strlen(symbol_name(e->k, &e->k->vec[v->id + i]));
		return room;
	default: return room;
	}
}

size_t emit_operand_room(const emitter *e, const ir_item *it, unsigned i)
{
	const uint32_t word = ir_words(it)[i];

	if (ir_word_is(word, CPTX_VAL_REG) || ir_word_is(word, CPTX_VAL_INT))
		return OPERAND_ROOM + e->own_most;
	const cptx_val v = ir_operand(e->k, it, i);
	return OPERAND_ROOM + e->own_most + value_room(e, &v);
}

/* Returns the end of the text, with room for the line of an instruction; NULL when memory is short. */
static char *open_line(emitter *e, const ir_item *it)
{
	size_t room = OPCODE_MOST + 2 * (OPERAND_ROOM + e->own_most); /* of the guard and of the end */
	buf *b = &e->out->text;

	for (unsigned i = 0; i < it->noperand; i++)
		room += emit_operand_room(e, it, i);
	return buf_reserve(b, room) ? b->p + b->n : NULL;
}

/* ---- lines ---- */

char *emit_operand(const emitter *e, char *p, const ir_item *it, unsigned i)
{
	cptx_val v = ir_operand(e->k, it, i);

	return put_operand(e, p, &arch_operands[arch_forms[it->form].operand + i], ir_mods(it), &v);
}

/* emit_operand for an operand that is not in braces. */
static inline char *put_bare(const emitter *e, char *p, const ir_item *it, const uint32_t *words, unsigned i)
{
	uint32_t word = words[i];

	if (ir_word_is(word, CPTX_VAL_REG)) /* the most frequent case */
		return put_reg(e, p, ir_word_reg(word));
	if (ir_word_is(word, CPTX_VAL_INT))
		return put_i64(p, ir_word_int(word));
	if (ir_word_is_whole(word)) {
		const cptx_val *v = ir_whole(words, i);
		if (v->kind == CPTX_VAL_REG && v->count == 1 && !v->space && !v->negated) /* the register is an address */
			return put_offset(put_reg(e, p, v->id), v->offset);
		if (v->kind == CPTX_VAL_SYM)
			return put_offset(put_str(p, symbol_name(e->k, v)), v->offset);
	}
	return emit_operand(e, p, it, i);
}

static char *put_guard(const emitter *e, char *p, const ir_item *it)
{
	*p++ = '\t';
	if (!it->guard)
		return p;
	*p++ = '@';
	if (it->flags & ITEM_NEGATED)
		*p++ = '!';
	p = put_reg(e, p, it->guard - 1);
	*p++ = ' ';
	return p;
}

/* Whether a later operand that is there stands inside the same brackets. */
static bool more_inside(const arch_operand *o, unsigned n, const uint32_t *words)
{
	for (unsigned i = 0; i < n && o[i].flags & OPERAND_INSIDE; i++)
		if (words[i])
			return true;
	return false;
}

/* Writes the end of operand number i, which is an address or stands inside the brackets of one. */
static char *end_address(char *p, const ir_item *it, const arch_operand *o, unsigned i)
{
	const uint16_t *mods = ir_mods(it);

	if (!(o->flags & (OPERAND_INSIDE | OPERAND_MORE)) || !more_inside(o + 1, it->noperand - i - 1, ir_words(it) + i + 1))
		*p++ = ']';
	if (o->behind != ARCH_NO && mods[o->behind]) {
		*p++ = '.';
		p = put_str(p, arch_mods[mods[o->behind]].name);
	}
	return p;
}

/* Writes operands whose places in the line the table tells, behind a blank. */
static char *put_odd_operands(const emitter *e, char *p, const ir_item *it)
{
	const arch_operand *o = &arch_operands[arch_forms[it->form].operand];
	const uint32_t *words = ir_words(it);
	bool first = true;

	for (unsigned i = 0; i < it->noperand; i++, o++) {
		if (!words[i]) /* the operand is left out */
			continue;
		bool inside = o->flags & OPERAND_INSIDE, address = o->kind == OPERAND_ADDR;
		if (!first && o->flags & OPERAND_PIPE)
			*p++ = '|';
		else if (!first)
			*p++ = ',', *p++ = ' ';
		first = false;
		if (address && !inside)
			*p++ = '[';
		p = emit_operand(e, p, it, i);
		if (address || inside)
			p = end_address(p, it, o, i);
	}
	return first ? p - 1 : p;
}

/* Writes operands one behind another, behind a blank; `address` has those in brackets. */
static char *put_operands(const emitter *e, char *p, const ir_item *it, unsigned address)
{
	const uint32_t *words = ir_words(it);
	size_t behind = 1; /* bytes of the separator in front of p: a blank, or ", " */

	for (unsigned i = 0, n = it->noperand; i < n; i++, address >>= 1) {
		if (!words[i]) /* the operand is left out */
			continue;
		*p = '[';
		p += address & 1;
		p = put_bare(e, p, it, words, i);
		*p = ']';
		p += address & 1;
		memcpy(p, ", ", 2);
		p += 2;
		behind = 2;
	}
	return p - behind;
}

bool emit_spelled(emitter *e, const ir_item *it, const spelling *opcode)
{
	buf *b = &e->out->text;

	emit_map_line(e, it);
	if (!emit_check_operands(e, opcode, it))
		return false;
	char *p = open_line(e, it);
	if (!p)
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	p = put_guard(e, p, it);
	const char *text = e->out->spelled.p + opcode->text;
	memcpy(p, text, OPCODE_USUAL);
	if (opcode->len > OPCODE_USUAL)
		memcpy(p + OPCODE_USUAL, text + OPCODE_USUAL, opcode->len - (size_t)OPCODE_USUAL);
	p += opcode->len;
	p = opcode->odd ? put_odd_operands(e, p, it) : put_operands(e, p, it, opcode->address);
	memcpy(p, ";\n", 2);
	b->n = (size_t)(p + 2 - b->p);
	e->line++;
	return true;
}

bool emit_insn(emitter *e, const ir_item *it)
{
	const spelling *s = emit_spelling(e, it);
	return s && emit_spelled(e, it, s);
}

static void put_loc(emitter *e, const ir_item *it)
{
	if (!it->file || it->kind == ITEM_COMMENT || (it->file == e->loc_file && it->line == e->loc_line))
		return;
	e->loc_file = it->file;
	e->loc_line = it->line;
	buf_printf(&e->out->text, "\t.loc %u %u 0\n", it->file, (unsigned)it->line);
	e->line++;
}

static void begin_run(emitter *e, line_entry entry)
{
	buf_put(&e->out->map, (const char *)&entry, sizeof entry);
	e->run = entry;
}

void emit_no_origin(emitter *e) { begin_run(e, (line_entry){ .ptx_line = e->line }); }

void emit_note_line(emitter *e, const ir_item *it)
{
	const line_entry *run = &e->run;
	buf *map = &e->out->map;
	uint32_t behind = e->line - run->ptx_line;
	bool same = it->file == run->file && it->line == run->line + (run->step ? behind : 0);

	if (!same && it->file && it->file == run->file && behind == 1 && it->line == run->line + 1 && !run->step &&
	    map->n >= sizeof *run) {
		e->run.step = 1;
		memcpy(map->p + map->n - sizeof *run, run, sizeof *run);
	} else if (!same) {
		begin_run(e, (line_entry){ e->line, it->line, it->file, 0 });
	}
	if (e->locs)
		put_loc(e, it);
}

static inline void put_text_line(emitter *e, const char *before, const char *text, const char *after)
{
	buf *b = &e->out->text;

	buf_str(b, before);
	buf_str(b, text);
	buf_str(b, after);
	e->line++;
}

/* Writes a label's name; the builder's labels have a number only. */
static void put_label(emitter *e, const cptx_val *v, const char *after)
{
	buf *b = &e->out->text;

	if (buf_reserve(b, label_room(e, v->id)))
		b->n += ir_label_name(e->k, b->p + b->n, v->id);
	buf_str(b, after);
	e->line++;
}

static void emit_targets(emitter *e, const ir_item *it)
{
	cptx_val v[2] = { ir_operand(e->k, it, 0), ir_operand(e->k, it, 1) };
	const cptx_val *list = &e->k->vec[v[1].id];
	buf *b = &e->out->text;

	put_label(e, &v[0], list->kind == CPTX_VAL_FUNC ? ": .calltargets " : ": .branchtargets ");
	for (unsigned i = 0; i < v[1].count; i++, list++) {
		if (i)
			buf_str(b, ", ");
		if (list->kind == CPTX_VAL_FUNC)
			buf_str(b, e->m->body[list->id - 1]->name);
		else
			put_label(e, list, ""), e->line--;
	}
	buf_str(b, ";\n");
}

static void emit_proto(emitter *e, const ir_item *it)
{
	const cptx_kernel *k = e->k, *f = k->m->body[ir_operand(k, it, 1).id - 1];
	cptx_val label = ir_operand(k, it, 0);

	put_label(e, &label, ": ");
	emit_signature(e, f);
	emit_bounds(e, f);
	e->k = k;
	buf_str(&e->out->text, ";\n");
}

/* Whether the target has what a directive that calls gave as text needs. */
static bool text_needs(emitter *e, const ir_item *it)
{
	char pragma[64];

	if (it->kind == ITEM_TEXT)
		return emit_text_needs(e, e->k->text[ir_operand(e->k, it, 0).i]);
	if (it->kind != ITEM_PRAGMA)
		return true;
	snprintf(pragma, sizeof pragma, ".pragma \"%s", e->k->text[ir_operand(e->k, it, 0).i]);
	return emit_text_needs(e, pragma);
}

bool emit_item(emitter *e, const ir_item *it)
{
	if (it->kind == ITEM_INSN)
		return emit_insn(e, it);
	cptx_val v = it->noperand ? ir_operand(e->k, it, 0) : (cptx_val){ 0 };
	if (it->kind == ITEM_LABEL) {
		if (e->k->label[v.id].used || e->k->label[v.id].name)
			put_label(e, &v, ":\n");
		return true;
	}
	emit_map_line(e, it);
	if (!e->m->parsed && !text_needs(e, it))
		return false;
	switch ((enum ir_item_kind)it->kind) {
	case ITEM_SCOPE: put_text_line(e, "\t{", "", "\n"); break;
	case ITEM_END: put_text_line(e, "\t}", "", "\n"); break;
	case ITEM_REGS:
		if (!e->hash || !e->hash->any_registers)
			emit_registers(e, v.id, (uint32_t)v.offset);
		break;
	case ITEM_VAR:
		buf_str(&e->out->text, "\t");
		emit_variable(e, ir_symbol(e->k, v.id));
		put_text_line(e, ";", "", "\n");
		break;
	case ITEM_PRAGMA: put_text_line(e, "\t.pragma \"", e->k->text[v.i], "\";\n"); break;
	case ITEM_COMMENT: put_text_line(e, *e->k->text[v.i] ? "\t// " : "\t//", e->k->text[v.i], "\n"); break;
	case ITEM_TEXT: put_text_line(e, "\t", e->k->text[v.i], "\n"); break;
	case ITEM_TARGETS: emit_targets(e, it); break;
	case ITEM_PROTO: emit_proto(e, it); break;
	case ITEM_INSN:
	case ITEM_LABEL: break;
	}
	return true;
}
