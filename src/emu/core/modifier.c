/* SPDX-License-Identifier: MIT */
/* Modifiers of an instruction: read by name, and none passed over in silence: each is in exec.def. */
#include "emu/core/decode.h"

static bool has_word(const char *form, const char *word)
{
	size_t n = strlen(word), end = strcspn(form, " ");

	for (const char *s = form; (s = strchr(s, '.')) && s < form + end; s++)
		if (!strncmp(s + 1, word, n) &&
		    (s[1 + n] == '.' || s[1 + n] == ' ' || s[1 + n] == '}' || s[1 + n] == '{' || !s[1 + n]))
			return true;
	return false;
}

unsigned emu_modifier(const emu_op *op, const char *field)
{
	const arch_form *f = &arch_forms[op->form];
	const uint16_t *mods = ir_mods(op->item);

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		if (g->kind != GROUP_REPEAT && !strcmp(arch_ops[f->op].field[g->field], field))
			return mods[i];
	}
	return has_word(f->text, field) ? CPTX_ON : 0;
}

/* ---- what exec.def says ---- */

typedef struct known {
	const char *reads, *idle;
} known;

static known known_of(unsigned opcode)
{
	switch (opcode) {
#define LEFT_OUT(op, why)
#define NO_EFFECT(field, why)
#define EXEC(op, decoder, reads, idle)                                                                                      \
	case CPTX_OP_##op:                                                                                                      \
		return (known){ reads, idle };
#include "emu/exec/exec.def"
#undef EXEC
#undef LEFT_OUT
#undef NO_EFFECT
	default: return (known){ "", "" };
	}
}

static bool listed(const char *list, const char *field)
{
	for (size_t n = strlen(field), len; *list; list += len + (list[len] == ' ')) {
		len = strcspn(list, " ");
		if (len == n && !memcmp(list, field, n))
			return true;
	}
	return false;
}

const char *emu_no_effect(const char *field)
{
	static const struct {
		const char *field, *why;
	} rows[] = {
#define LEFT_OUT(op, why)
#define EXEC(op, decoder, reads, idle)
#define NO_EFFECT(field, why) { #field, why },
#include "emu/exec/exec.def"
#undef EXEC
#undef LEFT_OUT
#undef NO_EFFECT
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i].field, field))
			return rows[i].why;
	return NULL;
}

void emu_modifiers(emu_op *op)
{
	const char *reads = known_of(op->opcode).reads;

#define X(name)                                                                                                             \
	if (listed(reads, #name))                                                                                               \
		op->m.name = (uint16_t)emu_modifier(op, #name);
	EMU_MODS(X)
#undef X
}

/* The group names the space of an address or the length of a vector: decode.c reads it. */
static bool is_of_operand(const arch_form *f, unsigned group)
{
	bool is = arch_groups[f->group + group].is_space;

	for (unsigned i = 0; i < f->noperand && !is; i++)
		is = arch_operands[f->operand + i].cgroup == group;
	return is;
}

const char *emu_unread(const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	const arch_op *o = &arch_ops[f->op];
	known k = known_of(f->op);

	for (unsigned i = 0; i < o->nfield; i++) {
		bool is_there = f->fields >> i & 1;
		for (unsigned g = 0; is_there && g < f->ngroup; g++)
			if (arch_groups[f->group + g].kind != GROUP_REPEAT && arch_groups[f->group + g].field == i)
				is_there = ir_mods(it)[g] && !is_of_operand(f, g);
		if (is_there && !listed(k.reads, o->field[i]) && !(listed(k.idle, o->field[i]) && emu_no_effect(o->field[i])))
			return o->field[i];
	}
	return NULL;
}

const emu_arg *emu_named(const emu_op *op, const char *slot)
{
	static const emu_arg none = { 0 };
	const arch_op *o = &arch_ops[op->opcode];

	for (unsigned i = 0; i < o->nslot && i + 1u < op->narg; i++)
		if (!strcmp(o->slot[i], slot))
			return &op->arg[i + 1];
	return &none;
}
