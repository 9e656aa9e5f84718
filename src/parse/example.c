/* SPDX-License-Identifier: MIT */
/* Makes an example of a spelling: the instruction with named operands, as PTX and as the calls that build it. */
#include "parse/parse.h"

typedef struct example {
	const arch_form *f;
	uint16_t mods[ARCH_GROUPS];
	buf ptx, setup, call;
} example;

static const char *operand_name(const example *e, unsigned i)
{
	const arch_operand *o = &arch_operands[e->f->operand + i];
	return o->slot ? arch_ops[e->f->op].slot[o->slot - 1] : "d";
}

static bool is_there(const example *e, const arch_operand *o)
{
	return o->given != ARCH_NO ? e->mods[o->given] != 0 : !(o->flags & OPERAND_OPTIONAL);
}

static unsigned type_of(const example *e, const arch_operand *o)
{
	unsigned t = o->type ? o->type : o->tgroup != ARCH_NO ? e->mods[o->tgroup] : CPTX_B32;

	if (!(o->flags & OPERAND_DOUBLE))
		return t;
	return t == CPTX_U16 ? CPTX_U32 : t == CPTX_S16 ? CPTX_S32 : t == CPTX_U32 ? CPTX_U64 : CPTX_S64;
}

static void put_register(example *e, const arch_operand *o, const char *name, bool made)
{
	unsigned n = arch_operand_count(o, e->mods), type = type_of(e, o);
	bool vector = n > 1 || o->brace;

	buf_str(&e->ptx, vector ? "{" : "");
	for (unsigned i = 0; i < n; i++)
		buf_printf(&e->ptx, vector ? "%s%s%u" : "%s%s", i ? ", " : "", name, i);
	buf_str(&e->ptx, vector ? "}" : "");
	if (!made && n > 1)
		buf_printf(&e->setup, "cptx_val %s = cptx_regs(k, CPTX_%s, %u);\n", name, arch_mods[type].id, n);
	else if (!made)
		buf_printf(&e->setup, "cptx_val %s = cptx_reg(k, CPTX_%s);\n", name, arch_mods[type].id);
}

static int32_t number_of(const arch_operand *o) { return o->lo == INT32_MIN ? 0 : o->lo; }

static void put_operand(example *e, unsigned i, bool made)
{
	const arch_operand *o = &arch_operands[e->f->operand + i];
	const char *name = operand_name(e, i);
	bool narrow = o->address == ADDRESS_TMEM || o->address == ADDRESS_ENDPOINT;

	switch ((enum arch_operand_kind)o->kind) {
	case OPERAND_REG: put_register(e, o, name, made); return;
	case OPERAND_ADDR:
		buf_printf(&e->ptx, "%s%s", o->flags & OPERAND_INSIDE ? "" : "[", name);
		buf_printf(&e->setup, "cptx_val %s = cptx_reg(k, CPTX_%s);\n", name, narrow ? "U32" : "U64");
		return;
	case OPERAND_IMM: buf_printf(&e->ptx, o->lo == -1 && o->hi == -1 ? "0x%x" : "%d", number_of(o)); return;
	case OPERAND_NOWHERE: buf_str(&e->ptx, "_"); return;
	case OPERAND_LABEL: buf_printf(&e->setup, "cptx_val %s = cptx_label(k);\ncptx_place(k, %s);\n", name, name); break;
	case OPERAND_TARGETS:
		buf_printf(&e->setup, "cptx_val l = cptx_label(k);\ncptx_place(k, l);\ncptx_val %s = cptx_targets(k, 1, &l);\n",
		           name);
		break;
	case OPERAND_PROTO: buf_printf(&e->setup, "cptx_val %s = cptx_prototype(k, CPTX_TYPE_NONE, 0, NULL);\n", name); break;
	case OPERAND_FUNC: buf_printf(&e->setup, "cptx_val %s = cptx_func_val(function);\n", name); break;
	case OPERAND_LIST:
		buf_printf(&e->setup, "cptx_val %s_ = cptx_reg(k, CPTX_B32), %s = cptx_list(k, 1, &%s_);\n", name, name, name);
		buf_printf(&e->ptx, "(%s)", name);
		return;
	}
	buf_str(&e->ptx, name);
}

static bool more_inside(const example *e, unsigned from)
{
	const arch_operand *o = &arch_operands[e->f->operand];

	for (unsigned i = from; i < e->f->noperand && o[i].flags & OPERAND_INSIDE; i++)
		if (is_there(e, &o[i]))
			return true;
	return false;
}

static void put_ptx(example *e)
{
	char text[ARCH_OPCODE];
	unsigned n = 0;

	buf_put(&e->ptx, text, (size_t)(arch_put_opcode(text, (unsigned)(e->f - arch_forms), e->mods) - text));
	for (unsigned i = 0; i < e->f->noperand; i++) {
		const arch_operand *o = &arch_operands[e->f->operand + i];
		bool address = o->kind == OPERAND_ADDR || o->flags & OPERAND_INSIDE;
		if (!is_there(e, o))
			continue;
		buf_str(&e->ptx, !n++ ? " " : o->flags & OPERAND_PIPE ? "|" : ", ");
		put_operand(e, i, !o->slot && !(o->flags & OPERAND_READ));
		if (address && !more_inside(e, i + 1))
			buf_str(&e->ptx, "]");
		if (address && o->behind != ARCH_NO && e->mods[o->behind])
			buf_printf(&e->ptx, ".%s", arch_mods[e->mods[o->behind]].name);
	}
	buf_str(&e->ptx, ";");
}

/* The operand in slot number `slot`, from 0, or NULL. */
static const arch_operand *in_slot(const example *e, unsigned slot)
{
	for (unsigned i = 0; i < e->f->noperand; i++)
		if (arch_operands[e->f->operand + i].slot == slot + 1)
			return &arch_operands[e->f->operand + i];
	return NULL;
}

static void put_slot(example *e, unsigned slot, bool named)
{
	const arch_operand *o = in_slot(e, slot);
	const char *name = arch_ops[e->f->op].slot[slot];

	if (!o || !is_there(e, o))
		return;
	buf_str(&e->call, ", ");
	if (named)
		buf_printf(&e->call, ".%s = ", name);
	if (o->kind == OPERAND_IMM)
		buf_printf(&e->call, named ? "cptx_imm(%d)" : "%d", number_of(o));
	else
		buf_str(&e->call, name);
}

static void put_call(example *e)
{
	const arch_op *op = &arch_ops[e->f->op];
	const arch_operand *first = &arch_operands[e->f->operand];
	bool dest = e->f->noperand && !first->slot && first->kind != OPERAND_NOWHERE, read = dest && first->flags & OPERAND_READ;
	uint32_t positional = 0;

	buf_printf(&e->call, "%scptx_%s(k", dest && !read ? "cptx_val d = " : "", op->name);
	for (unsigned i = 0; i < op->npos; i++) {
		positional |= 1u << op->pos[i];
		put_slot(e, op->pos[i], false);
	}
	for (unsigned i = 0; i < op->nslot; i++)
		if (!(positional >> i & 1))
			put_slot(e, i, true);
	if (read)
		buf_str(&e->call, ", .into = d");
	for (unsigned i = 0; i < e->f->ngroup; i++) {
		const arch_group *g = &arch_groups[e->f->group + i];
		if (g->kind != GROUP_REPEAT && e->mods[i])
			buf_printf(&e->call, ", .%s = CPTX_%s", op->field[g->field], arch_mods[e->mods[i]].id);
	}
	buf_str(&e->call, ");");
}

size_t cptx_spelling_example(const char *spelling, size_t nth, char *text, size_t size)
{
	example e = { .f = NULL };
	size_t op, form, n = spelling ? strlen(spelling) : 0;

	if (text && size)
		*text = 0;
	if (!cptx_form_spelled(spelling, nth, &op, &form))
		return 0;
	e.f = &arch_forms[arch_ops[op].form + form];
	parse_opcode((unsigned)(e.f - arch_forms), spelling, n, e.mods);
	buf_init(&e.ptx, NULL);
	buf_init(&e.setup, NULL);
	buf_init(&e.call, NULL);
	put_ptx(&e);
	put_call(&e);
	buf_put(&e.ptx, "\n", 1);
	buf_put(&e.ptx, e.setup.p ? e.setup.p : "", e.setup.n);
	buf_put(&e.ptx, e.call.p ? e.call.p : "", e.call.n);
	bool failed = e.ptx.failed || e.setup.failed || e.call.failed;
	n = failed ? 0 : e.ptx.n;
	if (text && size && n) {
		memcpy(text, e.ptx.p, MIN(n, size - 1));
		text[MIN(n, size - 1)] = 0;
	}
	buf_free(&e.ptx);
	buf_free(&e.setup);
	buf_free(&e.call);
	return n;
}
