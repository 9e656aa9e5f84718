/* One item -> its line of PTX: spelling, operands, availability on the target. */
#include "emit/emit.h"

#include <stdio.h>

/* ---- what the target has ---- */

static cptx_site item_site(const emitter *e, const ir_item *it)
{
	return it->file ? (cptx_site){ e->m->file[it->file - 1], it->line } : NOWHERE;
}

/* "was removed in PTX 6.4 for sm_70 and later" of an availability that ends, else what a missing one is told as. */
static void put_missing(const emitter *e, unsigned avail, char text[80])
{
	const char *removed = strstr(arch_avail_text[avail], "removed "), *from = removed ? strstr(removed, ", ") : NULL;

	if (removed && arch_ends[avail][e->target])
		snprintf(text, 80, "was removed in %.*s%s%s%s", (int)strcspn(removed + 8, ","), removed + 8, from ? " for " : "",
		         from ? from + 2 : "", from ? " and later" : "");
	else
		snprintf(text, 80, "is not available on %s", e->out->target->name);
}

static bool lacks(emitter *e, cptx_site at, const char *what, const char *why, unsigned avail, const char *instead)
{
	char missing[80];
	buf targets;

	buf_init(&targets, &e->out->hook);
	arch_avail_targets(avail, &targets);
	buf_put(&targets, "", 1);
	put_missing(e, avail, missing);
	error_set(e->err, CPTX_E_TARGET, at, "%s %s: %s %s%s; targets that have it: %s%s%s",
	          e->k->is_func ? "function" : "kernel", e->k->name, what, missing, why,
	          targets.failed ? "(out of memory)" : targets.p, *instead ? ". Instead: " : "", instead);
	buf_free(&targets);
	return false;
}

/* Raises the .version as far as an availability of something in `it` needs, and notes where it ends. */
static bool need(emitter *e, unsigned avail, const ir_item *it)
{
	unsigned v = arch_avails[avail][e->target], end = arch_ends[avail][e->target];
	if (v > e->version)
		e->version = v;
	if (v && end && (!e->end || end < e->end)) {
		e->end = end;
		e->ends = it;
		e->ends_in = e->k;
		e->ends_avail = avail;
	}
	return v != 0;
}

/* The spelling of an item's instruction, without operands. */
static char *put_opcode(char *p, const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	const arch_group *g = &arch_groups[f->group];
	const uint16_t *mods = ir_mods(it);

	for (unsigned i = 0; i < f->ngroup; i++, g++) {
		memcpy(p, g->prefix, g->nprefix);
		p += g->nprefix;
		if (!mods[i] || g->behind)
			continue;
		const arch_mod *m = &arch_mods[mods[i]];
		*p++ = '.';
		memcpy(p, m->name, m->len);
		p += m->len;
	}
	memcpy(p, f->tail, f->ntail);
	return p + f->ntail;
}

static bool check_modifiers(emitter *e, const ir_item *it, const char *opcode)
{
	const arch_form *f = &arch_forms[it->form];
	const uint16_t *mods = ir_mods(it);
	char which[80];

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; g->has_avail && mods[i] && a < g->nalt; a++) {
			const arch_alt *alt = &arch_alts[g->alt + a];
			if (alt->mod != mods[i] || !alt->avail || need(e, alt->avail, it))
				continue;
			snprintf(which, sizeof which, " (.%s)", arch_mods[mods[i]].name);
			return lacks(e, item_site(e, it), opcode, which, alt->avail, arch_ops[f->op].instead);
		}
	}
	return true;
}

/* The spelling of an instruction that the target has; NULL, with an error, if it lacks it. */
static const spelling *spell(emitter *e, const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	const uint16_t *mods = ir_mods(it);
	unsigned hash = it->form;
	char opcode[OPCODE_MOST];

	for (unsigned i = 0; i < it->nmod; i++)
		hash = hash * 31 + mods[i];
	spelling *s = &e->known[(hash ^ hash >> 8) % SPELLINGS];
	if (s->form == it->form + 1 && !memcmp(s->mods, mods, it->nmod * sizeof *mods))
		return s;
	*put_opcode(opcode, it) = 0;
	if (!need(e, f->avail, it)) {
		lacks(e, item_site(e, it), opcode, "", f->avail, arch_ops[f->op].instead);
		return NULL;
	}
	if (!check_modifiers(e, it, opcode))
		return NULL;
	s->form = (uint16_t)(it->form + 1);
	memcpy(s->mods, mods, it->nmod * sizeof *mods);
	s->len = (uint8_t)strlen(opcode);
	memcpy(s->text, opcode, s->len);
	return s;
}

bool emit_still_there(emitter *e, unsigned version)
{
	char opcode[OPCODE_MOST], missing[80];

	if (!e->end || version < e->end)
		return true;
	e->k = e->ends_in;
	*put_opcode(opcode, e->ends) = 0;
	put_missing(e, e->ends_avail, missing);
	return error_set(e->err, CPTX_E_TARGET, item_site(e, e->ends), "%s %s: %s %s; this module is printed for PTX %u.%u",
	                 e->k->is_func ? "function" : "kernel", e->k->name, opcode, missing, version / 10, version % 10);
}

/* Whether the instruction agrees with others of the module on naming samplers.  A handle in a register says nothing where a
 * sampler is all that is asked for (txq). */
static bool check_texmode(emitter *e, const ir_item *it, const arch_operand *o, const cptx_val *v)
{
	bool beside = o->flags & OPERAND_OPTIONAL;
	unsigned mode = !v->kind ? TEXMODE_UNIFIED : beside || v->kind == CPTX_VAL_SYM ? TEXMODE_INDEPENDENT : TEXMODE_NONE;

	if (mode && e->texmode && mode != e->texmode)
		return error_set(e->err, CPTX_E_ARG, item_site(e, it), "%s %s: %s %s; all of a module must do the same",
		                 e->k->is_func ? "function" : "kernel", e->k->name, arch_ops[arch_forms[it->form].op].name,
		                 mode == TEXMODE_UNIFIED ? "without a sampler, while the module names samplers"
		                                         : "with a sampler, while others of the module have none");
	if (mode)
		e->texmode = (unsigned char)mode;
	return true;
}

/* Special registers, operands with an availability of their own, samplers. */
static bool check_operands(emitter *e, const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	const cptx_val *v = ir_operands(it);

	for (unsigned i = 0; i < it->noperand; i++)
		if (v[i].kind == CPTX_VAL_SREG && !need(e, arch_sregs[v[i].id].avail, it))
			return lacks(e, item_site(e, it), arch_sregs[v[i].id].text, "", arch_sregs[v[i].id].avail, "");
	for (unsigned i = 0; f->looks && i < it->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		unsigned avail = o->avail;
		if (avail && v[i].kind && !need(e, avail, it))
			return lacks(e, item_site(e, it), f->text, "with all its operands", avail, arch_ops[f->op].instead);
		if (o->space == CPTX_SAMPLERREF && !check_texmode(e, it, o, &v[i]))
			return false;
	}
	return true;
}

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

static char *put_reg(const emitter *e, char *p, uint32_t id)
{
	memcpy(p, e->names[id].text, sizeof e->names[id].text); /* all of it: faster than its length */
	return p + e->names[id].len;
}

bool emit_name_registers(emitter *e)
{
	const cptx_kernel *k = e->k;

	if (k->nreg > e->names_cap) {
		reg_name *names = heap_realloc(&e->out->hook, e->names, k->nreg * sizeof *names);
		if (!names)
			return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
		e->names = names;
		e->names_cap = k->nreg;
	}
	for (size_t i = 0; i < k->nreg; i++) {
		char *p = put_str(e->names[i].text, ir_classes[k->reg[i].cls].prefix);
		e->names[i].len = (uint8_t)(text_u64(p, k->reg[i].number) - e->names[i].text);
	}
	return true;
}

static char *put_float(char *p, double number, bool wide)
{
	*p++ = '0';
	if (wide) {
		uint64_t bits;
		memcpy(&bits, &number, sizeof bits);
		*p++ = 'd';
		return put_hex(p, bits, 16);
	}
	float f = (float)number;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	*p++ = 'f';
	return put_hex(p, bits, 8);
}

static const char *symbol_name(const cptx_kernel *k, const cptx_val *v)
{
	return v->space == CPTX_PARAM ? k->param[v->id].name : ir_symbol(k, v->id)->name;
}

/* A constant, sink or parameter in a vector or list of type `type`. */
static char *put_element(const emitter *e, char *p, const cptx_val *v, unsigned type)
{
	bool wide = arch_types[type].bits == 64;

	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG: return put_reg(e, p, v->id);
	case CPTX_VAL_FLOAT: return put_float(p, v->f, wide);
	case CPTX_VAL_SYM: return put_str(p, symbol_name(e->k, v));
	case CPTX_VAL_SINK: *p++ = '_'; return p;
	default:
		if (arch_types[type].cls == 'F')
			return put_float(p, v->negated ? (double)(uint64_t)v->i : (double)v->i, wide);
		return put_i64(p, v->i);
	}
}

/* The elements of a vector or list, with what stands around them. */
static char *put_elements(const emitter *e, char *p, const cptx_val *v, unsigned type, const char *around)
{
	const cptx_val *vec = &e->k->vec[v->id];

	*p++ = around[0];
	for (uint32_t i = 0; i < v->count; i++) {
		if (i)
			*p++ = ',', *p++ = ' ';
		p = put_element(e, p, &vec[i], type);
	}
	*p++ = around[1];
	return p;
}

/* A vector of registers only. */
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

static const char *function_name(const cptx_module *m, const cptx_val *v)
{
	const cptx_kernel *f = m->first;
	while (f->next && f->number != v->id)
		f = f->next;
	return f->name;
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
	case CPTX_VAL_LABEL: return text_u64(put_str(p, "$L"), v->id);
	case CPTX_VAL_TARGETS: return text_u64(put_str(p, "$T"), v->id);
	case CPTX_VAL_PROTO: return text_u64(put_str(p, "$P"), v->id);
	case CPTX_VAL_FUNC: return put_str(p, function_name(e->m, v));
	case CPTX_VAL_BAD:
	case CPTX_VAL_NONE: break;
	}
	return p;
}

/* Bytes of the names in a value. */
static size_t names_most(const emitter *e, const cptx_val *v)
{
	size_t n = 0;

	if (v->kind == CPTX_VAL_SYM)
		return strlen(symbol_name(e->k, v));
	if (v->kind == CPTX_VAL_FUNC)
		return strlen(function_name(e->m, v));
	for (unsigned i = 0; v->kind == CPTX_VAL_LIST && i < v->count; i++)
		n += e->k->vec[v->id + i].kind == CPTX_VAL_SYM ? strlen(symbol_name(e->k, &e->k->vec[v->id + i])) : 0;
	return n;
}

/* Most bytes that an item's line can take. */
static size_t item_most(const emitter *e, const ir_item *it)
{
	const cptx_val *v = ir_operands(it);
	size_t n = OPCODE_MOST + 64;

	for (unsigned i = 0; i < it->noperand; i++) {
		n += 64 + v[i].count * 24u;
		if (v[i].kind > CPTX_VAL_FLOAT)
			n += names_most(e, &v[i]);
	}
	return n;
}

/* ---- items ---- */

static char *put_guard(const emitter *e, char *p, const ir_item *it)
{
	*p++ = '\t';
	if (!it->guard)
		return p;
	*p++ = '@';
	if (it->guard_negated)
		*p++ = '!';
	p = put_reg(e, p, it->guard - 1);
	*p++ = ' ';
	return p;
}

/* Does another operand that is there stand inside the same brackets? */
static bool more_inside(const arch_operand *o, unsigned n, const cptx_val *v)
{
	for (unsigned i = 0; i < n && o[i].flags & OPERAND_INSIDE; i++)
		if (v[i].kind != CPTX_VAL_NONE)
			return true;
	return false;
}

/* What ends operand number i, which is an address or stands inside the brackets of one. */
static char *end_address(char *p, const ir_item *it, const arch_operand *o, unsigned i)
{
	const uint16_t *mods = ir_mods(it);

	if (!(o->flags & (OPERAND_INSIDE | OPERAND_MORE)) || !more_inside(o + 1, it->noperand - i - 1, ir_operands(it) + i + 1))
		*p++ = ']';
	if (o->behind != ARCH_NO && mods[o->behind]) {
		*p++ = '.';
		p = put_str(p, arch_mods[mods[o->behind]].name);
	}
	return p;
}

static bool emit_insn(emitter *e, const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	const arch_operand *o = &arch_operands[f->operand];
	const cptx_val *v = ir_operands(it);
	const uint16_t *mods = ir_mods(it);
	buf *b = &e->out->text;
	const spelling *opcode = spell(e, it);

	if (!opcode || !check_operands(e, it))
		return false;
	if (!buf_reserve(b, item_most(e, it)))
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	char *p = b->p + b->n, *start = put_guard(e, p, it);
	if (f->op == CPTX_OP_RET && e->k->ret.kind) { /* a function's result leaves through parameter space */
		start = put_str(start, "st.param.");
		start = put_str(start, ir_classes[e->k->reg[e->k->ret.id].cls].type);
		start = put_str(start, " [" IR_PREFIX "_result], ");
		start = put_str(put_reg(e, start, e->k->ret.id), ";\n");
		start = put_guard(e, start, it);
		e->line++;
	}
	memcpy(start, opcode->text, opcode->len);
	p = start + opcode->len;
	for (unsigned i = 0, n = 0; i < it->noperand; i++, o++) {
		if (v[i].kind == CPTX_VAL_NONE)
			continue;
		if (n++) {
			if (o->flags & OPERAND_PIPE)
				*p++ = '|';
			else
				*p++ = ',', *p++ = ' ';
		} else {
			*p++ = ' ';
		}
		if (o->kind == OPERAND_ADDR && !(o->flags & OPERAND_INSIDE))
			*p++ = '[';
		p = put_operand(e, p, o, mods, &v[i]);
		if (o->kind == OPERAND_ADDR || o->flags & OPERAND_INSIDE)
			p = end_address(p, it, o, i);
	}
	*p++ = ';';
	*p++ = '\n';
	b->n = (size_t)(p - b->p);
	e->line++;
	return true;
}
const char *emit_reg_text(const emitter *e, uint32_t id, char text[16])
{
	*put_reg(e, text, id) = 0;
	return text;
}

static void emit_call(emitter *e, const ir_item *it)
{
	const cptx_val *v = ir_operands(it);
	const cptx_kernel *f = e->m->first;
	unsigned n = it->noperand - 2u;
	char r[16];

	while (f->number != v[0].id)
		f = f->next;
	emit_line(e, "\t{\n");
	for (unsigned i = 0; i < n; i++) {
		const char *type = ir_classes[e->k->reg[v[i + 2].id].cls].type;
		emit_line(e, "\t.param .%s " IR_PREFIX "_arg%u;\n\tst.param.%s [" IR_PREFIX "_arg%u], %s;\n", type, i, type, i,
		          emit_reg_text(e, v[i + 2].id, r));
	}
	if (v[1].kind)
		emit_line(e, "\t.param .%s " IR_PREFIX "_value;\n\tcall (" IR_PREFIX "_value), %s",
		          ir_classes[e->k->reg[v[1].id].cls].type, f->name);
	else
		emit_line(e, "\tcall %s", f->name);
	for (unsigned i = 0; i < n; i++)
		emit_line(e, "%s" IR_PREFIX "_arg%u", i ? ", " : ", (", i);
	emit_line(e, n ? ");\n" : ";\n");
	if (v[1].kind)
		emit_line(e, "\tld.param.%s %s, [" IR_PREFIX "_value];\n", ir_classes[e->k->reg[v[1].id].cls].type,
		          emit_reg_text(e, v[1].id, r));
	emit_line(e, "\t}\n");
}

static void map_line(emitter *e, const ir_item *it)
{
	if (it->file != e->file || it->line != e->user_line) {
		e->file = it->file;
		e->user_line = it->line;
		line_entry entry = { e->line, it->line, it->file };
		buf_put(&e->out->map, (const char *)&entry, sizeof entry);
	}
	if (e->opt->lines && it->file && it->kind != ITEM_COMMENT && (it->file != e->loc_file || it->line != e->loc_line)) {
		e->loc_file = it->file;
		e->loc_line = it->line;
		emit_line(e, "\t.loc %u %u 0\n", it->file, (unsigned)it->line);
	}
}

bool emit_item(emitter *e, const ir_item *it)
{
	const cptx_val *v = ir_operands(it);

	if (it->kind == ITEM_LABEL) {
		if (e->k->label[v[0].id].used)
			emit_line(e, "$L%u:\n", (unsigned)v[0].id);
		return true;
	}
	map_line(e, it);
	switch ((enum ir_item_kind)it->kind) {
	case ITEM_INSN: return emit_insn(e, it);
	case ITEM_PRAGMA:
	case ITEM_COMMENT:
		buf_str(&e->out->text, it->kind == ITEM_PRAGMA ? "\t.pragma \"" : "\t// ");
		buf_str(&e->out->text, e->k->text[v[0].i]);
		buf_str(&e->out->text, it->kind == ITEM_PRAGMA ? "\";\n" : "\n");
		e->line++;
		break;
	case ITEM_DECLARE: /* $T and $P are what operands of these kinds print */
		emit_line(e, "$%c%u: ", e->k->text[v[0].i][1] == 'b' ? 'T' : 'P', (unsigned)v[0].i);
		buf_str(&e->out->text, e->k->text[v[0].i]);
		emit_line(e, ";\n");
		break;
	case ITEM_CALL: emit_call(e, it); break;
	case ITEM_LABEL: break;
	}
	return true;
}
