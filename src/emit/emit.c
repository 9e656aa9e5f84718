/* IR -> PTX text for one target, with the lowest .version that serves, and the map from its lines to the user's. */
#include "emit/emit.h"
#include "ir/ir.h"

#include <stdio.h>

typedef struct line_entry {
	uint32_t ptx_line, line;
	uint16_t file;
} line_entry;

struct cptx_ptx {
	cptx_allocator hook;
	const cptx_target *target;
	unsigned version;
	buf text, map, files; /* map: line_entry; files: the names, each with its NUL */
};

/* A register's name, ready to be copied: most of the text is register names. */
typedef struct reg_name {
	char text[15];
	uint8_t len;
} reg_name;

/* A spelling that the target is known to have: form, modifiers and text. */
enum { SPELLINGS = 64, OPCODE_MOST = 256 };
typedef struct spelling {
	uint16_t form /* + 1; 0: empty */, mods[ARCH_GROUPS];
	uint8_t len;
	char text[OPCODE_MOST - 1];
} spelling;

typedef struct emitter {
	const cptx_module *m;
	const cptx_kernel *k;
	cptx_ptx *out;
	cptx_error *err;
	const cptx_emit_opt *opt;
	unsigned target, version;
	uint32_t line; /* that is written next, from 1 */
	uint16_t file, loc_file;
	uint32_t user_line, loc_line; /* of the last item, of the last .loc */
	reg_name *names;    /* of the body's registers */
	size_t names_cap;
	spelling known[SPELLINGS];
} emitter;

/* ---- what the target has ---- */

static cptx_site item_site(const emitter *e, const ir_item *it)
{
	return it->file ? (cptx_site){ e->m->file[it->file - 1], it->line } : NOWHERE;
}

static bool lacks(emitter *e, cptx_site at, const char *what, const char *why, unsigned avail, const char *instead)
{
	buf targets;

	buf_init(&targets, &e->out->hook);
	arch_avail_targets(avail, &targets);
	buf_put(&targets, "", 1);
	error_set(e->err, CPTX_E_TARGET, at, "%s %s: %s is not available on %s%s; targets that have it: %s%s%s", e->k->is_func ? "function" : "kernel",
	          e->k->name, what, e->out->target->name, why, targets.failed ? "(out of memory)" : targets.p, *instead ? ". Instead: " : "", instead);
	buf_free(&targets);
	return false;
}

static bool need(emitter *e, unsigned avail)
{
	unsigned v = arch_avails[avail][e->target];
	if (v > e->version)
		e->version = v;
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
		if (!mods[i])
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
			if (alt->mod != mods[i] || !alt->avail || need(e, alt->avail))
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
	if (!need(e, f->avail)) {
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

static bool check_sregs(emitter *e, const ir_item *it)
{
	const cptx_val *v = ir_operands(it);

	for (unsigned i = 0; i < it->noperand; i++)
		if (v[i].kind == CPTX_VAL_SREG && !need(e, arch_sregs[v[i].id].avail))
			return lacks(e, item_site(e, it), arch_sregs[v[i].id].text, "", arch_sregs[v[i].id].avail, "");
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

static bool name_registers(emitter *e)
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

static char *put_float(char *p, const cptx_val *v)
{
	*p++ = '0';
	if (v->type == CPTX_F64) {
		uint64_t bits;
		memcpy(&bits, &v->f, sizeof bits);
		*p++ = 'd';
		return put_hex(p, bits, 16);
	}
	float f = (float)v->f;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	*p++ = 'f';
	return put_hex(p, bits, 8);
}

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

static const char *symbol_name(const cptx_kernel *k, const cptx_val *v)
{
	return v->space == CPTX_PARAM ? k->param[v->id].name : ir_symbol(k, v->id)->name;
}

static char *put_offset(char *p, int64_t offset)
{
	if (offset) {
		*p++ = '+';
		p = put_i64(p, offset);
	}
	return p;
}

static char *put_operand(const emitter *e, char *p, const cptx_val *v, bool brace)
{
	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG:
		if (v->negated)
			*p++ = '!';
		if (v->count > 1 || brace)
			return put_vector(e, p, v);
		return put_offset(put_reg(e, p, v->id), v->offset);
	case CPTX_VAL_VEC: return v->count > 1 || brace ? put_vector(e, p, v) : put_reg(e, p, e->k->vec[v->id].id);
	case CPTX_VAL_INT: return put_i64(p, v->i);
	case CPTX_VAL_FLOAT: return put_float(p, v);
	case CPTX_VAL_SYM: return put_offset(put_str(p, symbol_name(e->k, v)), v->offset);
	case CPTX_VAL_SREG: return put_str(p, arch_sregs[v->id].text);
	case CPTX_VAL_LABEL: return text_u64(put_str(p, "$L"), v->id);
	case CPTX_VAL_FUNC:
	case CPTX_VAL_NONE: break;
	}
	return p;
}

/* Most bytes that an item's line can take. */
static size_t item_most(const cptx_kernel *k, const ir_item *it)
{
	const cptx_val *v = ir_operands(it);
	size_t n = OPCODE_MOST + 64;

	for (unsigned i = 0; i < it->noperand; i++) {
		n += 64 + v[i].count * 20u;
		if (v[i].kind == CPTX_VAL_SYM)
			n += strlen(symbol_name(k, &v[i]));
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

static bool emit_insn(emitter *e, const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	const arch_operand *o = &arch_operands[f->operand];
	const cptx_val *v = ir_operands(it);
	buf *b = &e->out->text;
	const spelling *opcode = spell(e, it);

	if (!opcode || !check_sregs(e, it))
		return false;
	if (!buf_reserve(b, item_most(e->k, it)))
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	char *p = b->p + b->n, *start = put_guard(e, p, it);
	if (f->op == CPTX_OP_RET && e->k->ret.kind) { /* a function's result leaves through parameter space */
		start = put_str(start, "st.param.");
		start = put_str(start, ir_classes[e->k->reg[e->k->ret.id].cls].type);
		start = put_str(start, " [func_result], ");
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
		if (o->kind == OPERAND_ADDR)
			*p++ = '[';
		p = put_operand(e, p, &v[i], o->brace);
		if (o->kind == OPERAND_ADDR)
			*p++ = ']';
	}
	*p++ = ';';
	*p++ = '\n';
	b->n = (size_t)(p - b->p);
	e->line++;
	return true;
}

static void put_line(emitter *e, const char *format, ...) CPTX_PRINTF_(2, 3);
static void put_line(emitter *e, const char *format, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	buf_str(&e->out->text, text);
	for (const char *p = text; *p; p++)
		e->line += *p == '\n';
}

static const char *reg_text(const emitter *e, uint32_t id, char text[16])
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
	put_line(e, "\t{\n");
	for (unsigned i = 0; i < n; i++) {
		const char *type = ir_classes[e->k->reg[v[i + 2].id].cls].type;
		put_line(e, "\t.param .%s call_arg%u;\n\tst.param.%s [call_arg%u], %s;\n", type, i, type, i, reg_text(e, v[i + 2].id, r));
	}
	if (v[1].kind)
		put_line(e, "\t.param .%s call_result;\n\tcall (call_result), %s", ir_classes[e->k->reg[v[1].id].cls].type, f->name);
	else
		put_line(e, "\tcall %s", f->name);
	for (unsigned i = 0; i < n; i++)
		put_line(e, "%scall_arg%u", i ? ", " : ", (", i);
	put_line(e, n ? ");\n" : ";\n");
	if (v[1].kind)
		put_line(e, "\tld.param.%s %s, [call_result];\n", ir_classes[e->k->reg[v[1].id].cls].type, reg_text(e, v[1].id, r));
	put_line(e, "\t}\n");
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
		put_line(e, "\t.loc %u %u 0\n", it->file, (unsigned)it->line);
	}
}

static bool emit_item(emitter *e, const ir_item *it)
{
	const cptx_val *v = ir_operands(it);

	if (it->kind == ITEM_LABEL) {
		if (e->k->label[v[0].id].used)
			put_line(e, "$L%u:\n", (unsigned)v[0].id);
		return true;
	}
	map_line(e, it);
	switch ((enum ir_item_kind)it->kind) {
	case ITEM_INSN:
		return emit_insn(e, it);
	case ITEM_PRAGMA:
	case ITEM_COMMENT:
		buf_str(&e->out->text, it->kind == ITEM_PRAGMA ? "\t.pragma \"" : "\t// ");
		buf_str(&e->out->text, e->k->text[v[0].i]);
		buf_str(&e->out->text, it->kind == ITEM_PRAGMA ? "\";\n" : "\n");
		e->line++;
		break;
	case ITEM_CALL: emit_call(e, it); break;
	case ITEM_LABEL: break;
	}
	return true;
}

/* ---- bodies ---- */

static void emit_params(emitter *e)
{
	const cptx_kernel *k = e->k;

	for (size_t i = 0; i < k->nparam; i++) {
		const cptx_param_info *p = &k->param[i];
		put_line(e, "%s\n\t.param ", i ? "," : "(");
		if (k->is_func)
			put_line(e, ".%s ", ir_classes[k->reg[k->param_val[i].id].cls].type);
		else if (p->type == CPTX_B8 && (p->size > 1 || p->align > 1))
			put_line(e, ".align %u .b8 ", p->align);
		else
			put_line(e, ".%s ", arch_types[p->type].cls == 'X' || (arch_types[p->type].cls == 'F' && p->size == 2)
			         ? (p->size == 2 ? "b16" : p->size == 4 ? "b32" : "b64") : arch_mods[p->type].name);
		buf_str(&e->out->text, p->name);
		if (!k->is_func && p->type == CPTX_B8 && (p->size > 1 || p->align > 1))
			put_line(e, "[%u]", p->size);
	}
	put_line(e, k->nparam ? "\n)\n" : k->is_func ? "\n" : "()\n");
}

static bool emit_bounds(emitter *e)
{
	const cptx_kernel_opt *o = &e->k->opt;
	const cptx_target *t = e->out->target;

	if (o->block[0])
		put_line(e, ".reqntid %u, %u, %u\n", o->block[0], o->block[1], o->block[2]);
	if (o->max_block[0])
		put_line(e, ".maxntid %u, %u, %u\n", o->max_block[0], o->max_block[1], o->max_block[2]);
	if (o->min_ctas)
		put_line(e, ".minnctapersm %u\n", o->min_ctas);
	if (o->max_regs)
		put_line(e, ".maxnreg %u\n", o->max_regs);
	const uint32_t *block = o->block[0] ? o->block : o->max_block;
	uint32_t threads = block[0] * block[1] * block[2];
	if (o->min_ctas > t->ctas_per_sm || o->min_ctas * threads > t->threads_per_sm) /* ptxas would ignore it */
		return error_set(e->err, CPTX_E_LIMIT, e->k->at,
		                 "kernel %s: launch bounds: %u CTAs of %u threads; a multiprocessor of %s holds at most %u threads and %u CTAs", e->k->name,
		                 o->min_ctas, threads, t->name, t->threads_per_sm, t->ctas_per_sm);
	if (e->k->param_bytes > 4352)
		e->version = MAX(e->version, 81u);
	if (!o->cluster[0] && !o->max_cluster_rank)
		return true;
	if (!t->cluster)
		return error_set(e->err, CPTX_E_TARGET, e->k->at, "kernel %s: cluster dimensions are not available on %s; clusters need sm_90 or later",
		                 e->k->name, t->name);
	e->version = MAX(e->version, 78u);
	if (o->cluster[0])
		put_line(e, ".reqnctapercluster %u, %u, %u\n", o->cluster[0], o->cluster[1], o->cluster[2]);
	else
		put_line(e, ".maxclusterrank %u\n", o->max_cluster_rank);
	return true;
}

static bool check_smem(emitter *e)
{
	const cptx_kernel *k = e->k;
	const cptx_target *t = e->out->target;

	if (k->static_smem > t->static_smem)
		return error_set(e->err, CPTX_E_LIMIT, k->at, "kernel %s: %u bytes of static shared memory; %s allows %u. Use cptx_shared_dyn for more",
		                 k->name, k->static_smem, t->name, t->static_smem);
	if (k->static_smem + k->dyn_smem > t->smem_per_cta)
		return error_set(e->err, CPTX_E_LIMIT, k->at, "kernel %s: %u bytes of shared memory (%u static, %u dynamic); a CTA of %s has at most %u",
		                 k->name, k->static_smem + k->dyn_smem, k->static_smem, k->dyn_smem, t->name, t->smem_per_cta);
	return true;
}

static void emit_declarations(emitter *e)
{
	const cptx_kernel *k = e->k;

	if (k->class_count[CLASS_B128])
		e->version = MAX(e->version, 83u);
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		if (k->class_count[c])
			put_line(e, "\t.reg .%s %s<%u>;\n", ir_classes[c].type, ir_classes[c].prefix, k->class_count[c] + 1);
	for (size_t i = 0; i < k->nsym; i++) {
		const ir_sym *s = k->sym[i];
		if ((int)i == k->dyn_sym)
			continue;
		put_line(e, "\t.shared .align %u .b8 ", s->align);
		buf_str(&e->out->text, s->name);
		put_line(e, "[%u];\n", s->size);
	}
	for (size_t i = 0; k->is_func && i < k->nparam; i++) {
		char r[16];
		put_line(e, "\tld.param.%s %s, [", ir_classes[k->reg[k->param_val[i].id].cls].type, reg_text(e, k->param_val[i].id, r));
		buf_str(&e->out->text, k->param[i].name);
		put_line(e, "];\n");
	}
}

static void emit_signature(emitter *e)
{
	const cptx_kernel *k = e->k;

	put_line(e, k->is_func ? "\n.func " : "\n.visible .entry ");
	if (k->ret.kind)
		put_line(e, "(.param .%s func_result) ", ir_classes[k->reg[k->ret.id].cls].type);
	buf_str(&e->out->text, k->name);
	emit_params(e);
}

static bool emit_body(emitter *e, const cptx_kernel *k)
{
	e->k = k;
	e->file = 0;
	e->user_line = 0;
	e->loc_file = 0;
	if (!check_smem(e) || !name_registers(e))
		return false;
	emit_signature(e);
	if (!emit_bounds(e))
		return false;
	put_line(e, "{\n");
	emit_declarations(e);
	for (const ir_item *it = k->first; it; it = it->next)
		if (!emit_item(e, it))
			return false;
	put_line(e, "}\n");
	line_entry end = { e->line, 0, 0 };
	buf_put(&e->out->map, (const char *)&end, sizeof end);
	return true;
}

/* ---- the module ---- */

static void emit_variable(emitter *e, const ir_sym *s)
{
	static const char digits[] = "0123456789";
	const unsigned char *bytes = s->init;

	put_line(e, "%s.%s .align %u .b8 ", s->exported ? ".visible " : "", arch_mods[s->space].name, s->align);
	buf_str(&e->out->text, s->name);
	put_line(e, "[%u]", s->size);
	for (uint32_t i = 0; bytes && i < s->size; i++) {
		char b[8], *p = b;
		*p++ = i ? ',' : '=';
		*p++ = i ? ' ' : '{';
		if (bytes[i] >= 100)
			*p++ = digits[bytes[i] / 100];
		if (bytes[i] >= 10)
			*p++ = digits[bytes[i] / 10 % 10];
		*p++ = digits[bytes[i] % 10];
		buf_put(&e->out->text, b, (size_t)(p - b));
	}
	put_line(e, bytes ? "};\n" : ";\n");
}

static void emit_head(emitter *e, size_t *version_at)
{
	uint32_t dyn_align = 0;

	put_line(e, "// cptx %s\n.version ", CPTX_VERSION);
	*version_at = e->out->text.n;
	put_line(e, "0.0\n.target %s\n.address_size 64\n", e->out->target->name);
	for (size_t i = 0; e->opt->lines && i < e->m->nfile; i++) {
		put_line(e, ".file %zu \"", i + 1);
		for (const char *p = e->m->file[i]; *p; p++)
			buf_put(&e->out->text, *p == '"' || *p == '\\' || *p == '\n' ? "/" : p, 1);
		put_line(e, "\"\n");
	}
	for (size_t i = 0; i < e->m->nsym; i++)
		emit_variable(e, e->m->sym[i]);
	for (const cptx_kernel *k = e->m->first; k; k = k->next)
		if (k->dyn_sym >= 0)
			dyn_align = MAX(dyn_align, k->sym[k->dyn_sym]->align);
	if (dyn_align)
		put_line(e, ".extern .shared .align %u .b8 dynamic_smem[];\n", dyn_align);
}

static bool emit_module(emitter *e)
{
	size_t version_at = 0;

	emit_head(e, &version_at);
	for (const cptx_kernel *f = e->m->first; f; f = f->next) { /* so that functions may call later ones */
		if (!f->is_func)
			continue;
		e->k = f;
		emit_signature(e);
		put_line(e, ";\n");
	}
	for (const cptx_kernel *k = e->m->first; k; k = k->next)
		if (!emit_body(e, k))
			return false;
	for (size_t i = 0; i < e->m->nfile; i++)
		buf_put(&e->out->files, e->m->file[i], strlen(e->m->file[i]) + 1);
	buf_put(&e->out->text, "", 1);
	if (e->out->text.failed || e->out->map.failed || e->out->files.failed)
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	e->out->text.n--;
	e->out->version = MAX(e->version, e->opt->min_version);
	if (e->out->version > 99)
		return error_set(e->err, CPTX_E_ARG, NOWHERE, "min_version = %u: versions are given times ten, at most 99", e->opt->min_version);
	e->out->text.p[version_at] = (char)('0' + e->out->version / 10);
	e->out->text.p[version_at + 2] = (char)('0' + e->out->version % 10);
	return true;
}

cptx_ptx *cptx_emit(cptx_module *m, const char *target, const cptx_emit_opt *opt, cptx_error *err)
{
	static const cptx_emit_opt defaults;
	const cptx_target *t = cptx_target_find(target);
	cptx_error ignored;

	if (!err)
		err = &ignored;
	*err = (cptx_error){ 0 };
	if (!m || !cptx_module_freeze(m)) {
		*err = *cptx_module_error(m);
		return NULL;
	}
	if (!t) {
		emit_unknown_target(target, err);
		return NULL;
	}
	const cptx_allocator *hook = &m->a.hook;
	cptx_ptx *out = heap_realloc(hook, NULL, sizeof *out);
	if (!out) {
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
		return NULL;
	}
	*out = (cptx_ptx){ .hook = *hook, .target = t };
	buf_init(&out->text, &out->hook);
	buf_init(&out->map, &out->hook);
	buf_init(&out->files, &out->hook);
	emitter e = { .m = m, .out = out, .err = err, .opt = opt ? opt : &defaults, .target = arch_target_index(t), .version = t->ptx, .line = 1 };
	buf_reserve(&out->text, cptx_module_size(m) * 64 + 4096); /* about what it takes; it grows if need be */
	buf_reserve(&out->map, cptx_module_size(m) * sizeof(line_entry) + 256);
	bool ok = emit_module(&e);
	if (e.names)
		heap_realloc(&out->hook, e.names, 0);
	if (!ok) {
		if (err->code == CPTX_OK)
			error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
		cptx_ptx_destroy(out);
		return NULL;
	}
	return out;
}

void emit_unknown_target(const char *target, cptx_error *err)
{
	const char *near = NULL;
	unsigned best = 4;

	for (size_t i = 0; target && cptx_target_at(i); i++) {
		unsigned d = text_distance(target, cptx_target_at(i)->name);
		if (d < best)
			best = d, near = cptx_target_at(i)->name;
	}
	error_set(err, CPTX_E_TARGET, NOWHERE, "there is no target '%.64s'%s%s%s; `cptx arch` lists them", target ? target : "(null)",
	          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* ---- the result ---- */

void cptx_ptx_destroy(cptx_ptx *ptx)
{
	if (!ptx)
		return;
	buf_free(&ptx->text);
	buf_free(&ptx->map);
	buf_free(&ptx->files);
	cptx_allocator hook = ptx->hook;
	heap_realloc(&hook, ptx, 0);
}

const char *cptx_ptx_text(const cptx_ptx *ptx) { return ptx ? ptx->text.p : NULL; }
size_t cptx_ptx_size(const cptx_ptx *ptx) { return ptx ? ptx->text.n : 0; }
unsigned cptx_ptx_version(const cptx_ptx *ptx) { return ptx ? ptx->version : 0; }
const cptx_target *cptx_ptx_target(const cptx_ptx *ptx) { return ptx ? ptx->target : NULL; }

cptx_site cptx_ptx_origin(const cptx_ptx *ptx, uint32_t line)
{
	cptx_site at = { NULL, 0 };
	line_entry found = { 0, 0, 0 }, entry;

	for (size_t i = 0; ptx && i + sizeof entry <= ptx->map.n; i += sizeof entry) {
		memcpy(&entry, ptx->map.p + i, sizeof entry);
		if (entry.ptx_line > line)
			break;
		found = entry;
	}
	if (!found.file)
		return at;
	at.file = ptx->files.p;
	for (unsigned i = 1; i < found.file; i++)
		at.file += strlen(at.file) + 1;
	at.line = found.line;
	return at;
}
