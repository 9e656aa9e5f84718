/* SPDX-License-Identifier: MIT */
#include "relax.h"

#include "judge.h"
#include "parse/parse.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Forms that are left out of the table on purpose. */
static struct left_out {
	unsigned from, to; /* newest .version of the ptxas that it is about */
	bool refused;      /* by those, but not by the table */
	const char *instruction, *modifiers, *reason;
	unsigned used;
} left_out[] = {
#define LEFT_OUT(instruction, modifiers, reason) { 0, UINT_MAX, false, instruction, modifiers, reason, 0 },
#define SOME_TAKE(from, to, instruction, modifiers, reason) { from, to, false, instruction, modifiers, reason, 0 },
#define SOME_REFUSE(from, to, instruction, modifiers, reason) { from, to, true, instruction, modifiers, reason, 0 },
#include "left_out.def"
#undef LEFT_OUT
#undef SOME_TAKE
#undef SOME_REFUSE
};

static bool is_of_this_ptxas(const struct left_out *row) { return judge_newest() >= row->from && judge_newest() <= row->to; }

/* Rules that hold for all instructions. */
enum rule {
	RULE_PLAIN,
	RULE_ORDER,
	RULE_REGISTER,
	RULE_POLICY,
	RULE_EXTRA,
	RULE_SWAPPED,
	RULE_ALIGNED,
	RULE_FOREIGN,
	NRULES
};
static const char *const rule_text[NRULES] = {
	[RULE_PLAIN] = "types of registers, range of constants, widths of addresses: ptxas does not look at them",
	[RULE_ORDER] = "the order of modifiers is the manual's",
	[RULE_REGISTER] = "constants, vectors and registers of another width where the manual asks for a register or vector",
	[RULE_POLICY] = "a cache policy without .L2::cache_hint",
	[RULE_EXTRA] = "an operand behind the last of tcgen05.mma, which ptxas ignores",
	[RULE_SWAPPED] = "the metadata of mma.sp in the place of a fragment, which ptxas does not notice",
	[RULE_ALIGNED] = "wgmma and tcgen05 without .aligned, which the manual demands",
	[RULE_FOREIGN] = "a modifier of other instructions, which ptxas ignores",
};
static unsigned rule_used[NRULES];

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
	size_t n = 0;
	for (unsigned i = 0; i < o->n; i++) {
		n += (size_t)snprintf(opcode + n, OPCODE - n, "%s%s", i ? "." : "", o->w[i]);
		ck_assert_msg(n < OPCODE, "an opcode of more than %d characters: %s", OPCODE, opcode);
	}
}

static bool is_spelling(const words *o, char opcode[OPCODE])
{
	uint16_t mods[ARCH_GROUPS];

	unsigned count;

	words_join(o, opcode);
	const uint16_t *forms = arch_forms_of(opcode, strlen(opcode), &count);
	for (unsigned i = 0; i < count; i++)
		if (parse_opcode(forms[i], opcode, strlen(opcode), mods))
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

/* The nth way to move one modifier, or to take out a repeated one, that the table has. */
static bool put_in_order(const char *opcode, unsigned nth, char ordered[OPCODE])
{
	words o = words_split(opcode);
	char candidate[OPCODE];

	for (unsigned i = 1; i < o.n; i++) {
		words s = without(&o, i);
		bool again = false;
		for (unsigned k = 1; k < o.n; k++)
			again |= k != i && !strcmp(o.w[k], o.w[i]);
		for (unsigned k = again ? 0 : 1; k <= s.n; k++) { /* 0: without the word */
			words moved = s;
			if (k) {
				memmove(moved.w[k + 1], moved.w[k], (moved.n - k) * WORD);
				memcpy(moved.w[k], o.w[i], WORD);
				moved.n++;
			}
			if (!is_spelling(&moved, candidate) || !strcmp(candidate, opcode) || nth--)
				continue;
			memcpy(ordered, candidate, OPCODE);
			return true;
		}
	}
	return false;
}

/* Registers as plain bits, small constants if asked for, addresses of 64 bits, or 32 where they are such. */
static trial plain_operands(const trial *t, bool constants, bool narrow)
{
	trial s = *t;

	for (unsigned i = 0; i < s.ntok; i++) {
		cptx_val *v = &s.tok[i].v;
		bool reg = v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_VEC;
		if (reg)
			*v = cptx_as(*v, (enum cptx_type)arch_bits_of(v->type));
		if (s.tok[i].address && v->kind == CPTX_VAL_SYM)
			v->offset = 0;
		else if (s.tok[i].address && v->count == 1)
			*v = pool_reg(narrow && reg && arch_types[v->type].bits == 32 ? CPTX_U32 : CPTX_U64, 0);
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
	for (unsigned i = 0; i < 4; i++) {
		trial s = plain_operands(t, i & 1, i >> 1);
		if (taken(&s, target))
			return true;
	}
	return false;
}

/* With one operand replaced by a vector of some length. */
static bool taken_with_vector(const trial *t, const cptx_target *target)
{
	static const uint8_t types[] = { CPTX_B16, CPTX_B32, CPTX_B64 };

	for (unsigned i = 0; i < t->ntok * ARRAY_LEN(types); i++)
		for (unsigned n = 1, at = i / ARRAY_LEN(types), type = types[i % ARRAY_LEN(types)]; n <= 4 && !t->tok[at].address;
		     n *= 2) {
			trial s = plain_operands(t, false, false);
			s.tok[at].v = n > 1 ? pool_vec(type, at, n) : pool_reg(type, 5);
			s.tok[at].brace = true;
			if (taken(&s, target))
				return true;
		}
	return false;
}

/* With one operand, or all registers, replaced by a register of some width. */
static bool taken_with_register(const trial *t, const cptx_target *target)
{
	static const uint8_t types[] = { CPTX_B8, CPTX_B16, CPTX_B32, CPTX_B64, CPTX_B128, CPTX_PRED };

	for (unsigned n = 0; n < 2 * ARRAY_LEN(types); n++) {
		unsigned w = n / 2;
		trial all = plain_operands(t, false, n & 1);
		for (unsigned i = 0; i < t->ntok; i++) {
			trial one = plain_operands(t, false, n & 1), same = one;
			bool vector = t->tok[i].v.count > 1;
			one.tok[i].v = pool_reg(types[w], 5);
			one.tok[i].brace = false;
			same.tok[i].v = vector ? pool_vec(types[w], 0, t->tok[i].v.count) : one.tok[i].v;
			if (taken(&one, target) || (vector && taken(&same, target)))
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

static bool taken_without_last(const trial *t, const cptx_target *target)
{
	trial s = *t;

	if (!s.ntok || strncmp(s.opcode, "tcgen05.mma.", strlen("tcgen05.mma.")))
		return false;
	s.ntok--;
	return taken_plainly(&s, target);
}

static bool taken_swapped(const trial *t, const cptx_target *target)
{
	if (strncmp(t->opcode, "mma.sp", strlen("mma.sp")))
		return false;
	for (unsigned i = 0; i < t->ntok; i++)
		for (unsigned k = 0; k < i; k++) {
			trial s = *t;
			s.tok[i] = t->tok[k];
			s.tok[k] = t->tok[i];
			if (taken_plainly(&s, target))
				return true;
		}
	return false;
}

/* The instruction with the .aligned that it lacks. */
static bool with_aligned(const trial *t, trial *s)
{
	words o = words_split(t->opcode);
	unsigned sync = 0;

	for (unsigned i = 1; i < o.n; i++) {
		sync = strcmp(o.w[i], "sync") ? sync : i;
		if (!strcmp(o.w[i], "aligned"))
			return false;
	}
	if (!sync || o.n == MOST_WORDS || (strcmp(o.w[0], "wgmma") && strcmp(o.w[0], "tcgen05")))
		return false;
	memmove(o.w[sync + 2], o.w[sync + 1], (o.n - sync - 1) * WORD);
	strcpy(o.w[sync + 1], "aligned");
	o.n++;
	*s = *t;
	words_join(&o, s->opcode);
	return true;
}

/* Does any form of the instruction know the word? */
static bool knows(const char *mnemonic, const char *word)
{
	unsigned count;
	const uint16_t *forms = arch_forms_of(mnemonic, strlen(mnemonic), &count);

	for (unsigned n = 0; n < count; n++) {
		const arch_form *f = &arch_forms[forms[n]];
		for (unsigned i = 0; i <= f->ngroup; i++) {
			const arch_group *g = &arch_groups[f->group + i];
			words fixed = words_split(i < f->ngroup ? g->prefix : f->tail);
			for (unsigned k = 0; k < fixed.n; k++)
				if (!strcmp(fixed.w[k], word))
					return true;
			for (unsigned a = 0; i < f->ngroup && a < g->nalt; a++)
				if (!strcmp(arch_mods[arch_alts[g->alt + a].mod].name, word))
					return true;
		}
	}
	return false;
}

static bool taken_without_foreign(const trial *t, const cptx_target *target)
{
	words o = words_split(t->opcode);

	for (unsigned i = 1; i < o.n; i++) {
		trial s = *t;
		words less = without(&o, i);
		if (knows(o.w[0], o.w[i]))
			continue;
		words_join(&less, s.opcode);
		if (taken_plainly(&s, target) || taken_with_vector(&s, target) ||
		    (put_in_order(s.opcode, 0, s.opcode) && taken_plainly(&s, target)))
			return true;
	}
	return false;
}

/* One of "a|b.c|d*" at word `at`, or anywhere if `at` is none. */
static bool has_item(const words *o, const char *item, size_t n, unsigned at)
{
	for (const char *end = item + n; item < end; item += strcspn(item, "|") + 1) {
		size_t len = strcspn(item, "| ");
		for (unsigned first = at == MOST_WORDS ? 1 : at; first < (at == MOST_WORDS ? o->n : at + 1); first++) {
			size_t done = 0;
			unsigned w = first;
			for (; done < len && w < o->n; w++) {
				size_t part = strcspn(item + done, ".| ");
				bool rest = part && item[done + part - 1] == '*';
				if (rest ? strncmp(o->w[w], item + done, part - 1) : strncmp(o->w[w], item + done, part) || o->w[w][part])
					break;
				done += part + 1;
			}
			if (done > len || done == len)
				return true;
		}
	}
	return false;
}

static bool is_register(const trial *t, unsigned long nth)
{
	return t && nth && nth <= t->ntok && !t->tok[nth - 1].address && t->tok[nth - 1].v.kind == CPTX_VAL_REG;
}

/* t: NULL where only the modifiers are known. */
static bool words_fit(const words *o, const trial *t, const char *instruction, const char *modifiers)
{
	if (!has_item(o, instruction, strlen(instruction), 0))
		return false;
	for (const char *p = modifiers; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		bool holds = *p == '@'   ? t && t->ntok == strtoul(p + 1, NULL, 10)
		             : *p == '%' ? is_register(t, strtoul(p + 1, NULL, 10))
		             : *p == '!' ? !has_item(o, p + 1, n - 1, MOST_WORDS)
		                         : has_item(o, p, n, MOST_WORDS);
		if (!holds)
			return false;
		p += n;
	}
	return true;
}

static const char *by_rule(enum rule rule)
{
	rule_used[rule]++;
	return rule_text[rule];
}

const char *relax_reason(const trial *t, const cptx_target *target)
{
	trial ordered = *t;
	words o = words_split(t->opcode);

	if (taken_plainly(t, target))
		return by_rule(RULE_PLAIN);
	for (unsigned nth = 0; put_in_order(t->opcode, nth, ordered.opcode); nth++)
		if (taken_plainly(&ordered, target) || taken_with_vector(&ordered, target))
			return by_rule(RULE_ORDER);
	if (taken_with_register(t, target) || taken_with_vector(t, target))
		return by_rule(RULE_REGISTER);
	if (taken_without_policy(t, target))
		return by_rule(RULE_POLICY);
	if (taken_without_last(t, target))
		return by_rule(RULE_EXTRA);
	if (taken_swapped(t, target))
		return by_rule(RULE_SWAPPED);
	if (with_aligned(t, &ordered) && (taken_plainly(&ordered, target) || relax_reason(&ordered, target)))
		return by_rule(RULE_ALIGNED);
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		if (!left_out[i].refused && is_of_this_ptxas(&left_out[i]) &&
		    words_fit(&o, t, left_out[i].instruction, left_out[i].modifiers)) {
			left_out[i].used++;
			return left_out[i].reason;
		}
	return taken_without_foreign(t, target) ? by_rule(RULE_FOREIGN) : NULL;
}

const char *relax_by_some(const char *line, bool refused)
{
	char opcode[OPCODE];

	snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(line + (*line == '\t'), " ;"), line + (*line == '\t'));
	words o = words_split(opcode);
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
		if (left_out[i].from && left_out[i].refused == refused && is_of_this_ptxas(&left_out[i]) &&
		    words_fit(&o, NULL, left_out[i].instruction, left_out[i].modifiers)) {
			left_out[i].used++;
			return left_out[i].reason;
		}
	return NULL;
}

unsigned relax_report(void)
{
	unsigned unused = 0;

	for (unsigned i = 0; i < NRULES; i++)
		printf("%7u excused: %s\n", rule_used[i], rule_text[i]);
	for (size_t i = 0; i < ARRAY_LEN(left_out); i++) {
		if (!is_of_this_ptxas(&left_out[i]))
			continue;
		printf("%7u excused by left_out.def: %s with %s: %s\n", left_out[i].used, left_out[i].instruction,
		       left_out[i].modifiers, left_out[i].reason);
		unused += !left_out[i].used && !left_out[i].from; /* the others may be of use to table_accept only */
	}
	return unused;
}
