#include "relax.h"

#include "parse/parse.h"

#include <stdio.h>

/* Forms that are left out of the table on purpose: instructions whose text contains all the parts. */
static const struct {
	const char *part[3], *reason;
} left_out[] = {
#include "left_out.def"
};

words words_split(const char *opcode)
{
	words o = { .n = 0 };
	while (*opcode && o.n < MOST_WORDS) {
		size_t n = strcspn(opcode, ".");
		snprintf(o.w[o.n++], WORD, "%.*s", (int)n, opcode);
		opcode += n + (opcode[n] == '.');
	}
	return o;
}

void words_join(const words *o, char opcode[OPCODE])
{
	char *p = opcode;
	for (unsigned i = 0; i < o->n; i++)
		p += sprintf(p, "%s%s", i ? "." : "", o->w[i]);
}

static bool is_spelling(const words *o, char opcode[OPCODE])
{
	uint16_t mods[ARCH_GROUPS];

	words_join(o, opcode);
	for (unsigned form = 0; form < arch_nform; form++)
		if (parse_opcode(form, opcode, strlen(opcode), mods))
			return true;
	return false;
}

static words without(const words *o, unsigned i)
{
	words s = *o;
	memmove(s.w[i], s.w[i + 1], (s.n - i - 1) * WORD);
	s.n--;
	return s;
}

/* The opcode with one modifier moved, or a repeated one taken out, as the table has it. */
static bool put_in_order(const char *opcode, char ordered[OPCODE])
{
	words o = words_split(opcode);

	for (unsigned i = 1; i < o.n; i++) {
		words s = without(&o, i);
		for (unsigned k = 1; k < o.n; k++)
			if (k != i && !strcmp(o.w[k], o.w[i]) && is_spelling(&s, ordered))
				return true;
		for (unsigned k = 1; k <= s.n; k++) {
			words moved = s;
			memmove(moved.w[k + 1], moved.w[k], (moved.n - k) * WORD);
			memcpy(moved.w[k], o.w[i], WORD);
			moved.n++;
			if (is_spelling(&moved, ordered))
				return true;
		}
	}
	return false;
}

static unsigned bits_of_width(unsigned type)
{
	switch (arch_types[type].bits) {
	case 16: return CPTX_B16;
	case 32: return CPTX_B32;
	case 64: return CPTX_B64;
	default: return type;
	}
}

/* Registers as plain bits, small constants if asked for, whole addresses. */
static trial plain_operands(const trial *t, bool constants)
{
	trial s = *t;

	for (unsigned i = 0; i < s.ntok; i++) {
		cptx_val *v = &s.tok[i].v;
		bool reg = v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_VEC;
		if (reg)
			*v = cptx_as(*v, (enum cptx_type)bits_of_width(v->type));
		if (s.tok[i].address && v->count == 1)
			*v = pool_reg(CPTX_U64, 0);
		else if (v->kind == CPTX_VAL_SYM || (v->kind == CPTX_VAL_REG && v->offset) || (constants && v->kind == CPTX_VAL_INT))
			*v = cptx_imm(1);
	}
	return s;
}

static bool taken(const trial *t, const cptx_target *target)
{
	outcome o;
	trial_build(t, BY_TEXT, target, &o);
	return o.ok;
}

static bool taken_plainly(const trial *t, const cptx_target *target)
{
	trial a = plain_operands(t, true), b = plain_operands(t, false);
	return taken(&a, target) || taken(&b, target);
}

/* With one operand, or all registers, replaced by a register of some width. */
static bool taken_with_register(const trial *t, const cptx_target *target)
{
	static const uint8_t types[] = { CPTX_B16, CPTX_B32, CPTX_B64, CPTX_B128, CPTX_PRED };

	for (unsigned w = 0; w < ARRAY_LEN(types); w++) {
		trial all = plain_operands(t, false);
		for (unsigned i = 0; i < t->ntok; i++) {
			trial one = plain_operands(t, false);
			bool vector = t->tok[i].v.count > 1;
			one.tok[i].v = pool_reg(types[w], 5);
			if (taken(&one, target))
				return true;
			if (!t->tok[i].address && (t->tok[i].v.kind == CPTX_VAL_REG || t->tok[i].v.kind == CPTX_VAL_VEC))
				all.tok[i].v = vector ? pool_vec(types[w], i, t->tok[i].v.count) : pool_reg(types[w], i);
		}
		if (taken(&all, target))
			return true;
	}
	return false;
}

/* ptxas takes a cache policy, even without .L2::cache_hint, behind these. */
static bool taken_without_policy(const trial *t, const cptx_target *target)
{
	static const char *const with_policy[] = { "ld.", "st.", "atom.", "red.", "cp." };
	trial s = *t;

	for (unsigned i = 0; i < ARRAY_LEN(with_policy); i++)
		if (s.ntok && !strncmp(s.opcode, with_policy[i], strlen(with_policy[i]))) {
			s.ntok--;
			return taken_plainly(&s, target);
		}
	return false;
}

const char *relax_reason(const trial *t, const cptx_target *target)
{
	trial ordered = *t;
	char line[LINE];

	if (taken_plainly(t, target))
		return "types of registers, range of constants, widths of addresses: ptxas does not look at them";
	if (put_in_order(t->opcode, ordered.opcode) && taken_plainly(&ordered, target))
		return "the order of modifiers is the manual's";
	if (taken_with_register(t, target))
		return "constants, vectors and registers of another width where the manual asks for a register";
	if (taken_without_policy(t, target))
		return "a cache policy, which the table lacks";
	trial_print(t, line);
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++) {
		bool all = true;
		for (unsigned p = 0; p < ARRAY_LEN(left_out[i].part); p++)
			all &= !left_out[i].part[p] || strstr(line, left_out[i].part[p]);
		if (all)
			return left_out[i].reason;
	}
	return NULL;
}
