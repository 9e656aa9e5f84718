/* SPDX-License-Identifier: MIT */
/*
 * Typical mistakes, made from the table: an instruction that is right with one modifier missing, of another value, or an
 * operand of another type, so that no form fits.  The message must name the form that was meant first of all.
 */
#include "arch/near.h"
#include "cases.h"
#include "judge.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

enum { MISTAKES = 200, SEEDS = 20, RIGHT = 190, LEAST = 184, OFFERED = 193 };
enum mistake { LEFT_OUT, OTHER_VALUE, OTHER_TYPE, NKINDS };
static const char *const kinds[NKINDS] = { "a modifier less", "another value", "another type of operand" };

/* What the user meant: one of the form's spellings with plain operands. */
static bool pick(dice *d, trial *t, spelling *s)
{
	unsigned form = roll(d, arch_nform), n;
	arch_match m;
	spelling *all = spell_all(form, 20, &n);

	*s = all[roll(d, n)];
	free(all);
	*t = trial_of(s);
	return arch_match_call(form, t->vals, t->mods, NULL, false, &m);
}

static bool any_fits(const trial *t)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	arch_match m;

	for (unsigned i = op->form; i < (unsigned)op->form + op->nform; i++)
		if (arch_match_call(i, t->vals, t->mods, NULL, false, &m))
			return true;
	return false;
}

/* A register, or as many, of another type. */
static bool change_type(dice *d, const cptx_val *from, cptx_val *to)
{
	static const uint8_t types[] = { CPTX_PRED, CPTX_B16, CPTX_U16, CPTX_F16, CPTX_B32, CPTX_U32,   CPTX_S32,
		                             CPTX_F32,  CPTX_B64, CPTX_U64, CPTX_S64, CPTX_F64, CPTX_F16X2, CPTX_BF16 };
	unsigned type = types[roll(d, ARRAY_LEN(types))];

	if (from->kind != CPTX_VAL_REG || from->space || from->offset || type == from->type || from->count > 24)
		return false;
	*to = from->count > 1 ? pool_vec(type, 1, from->count) : pool_reg(type, 1);
	return to->kind == CPTX_VAL_REG;
}

/* ---- calls ---- */

/* What follows from the operands few write. */
static void leave_out(dice *d, trial *t)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	arch_match m, was;

	if (!roll(d, 2) || !arch_match_call(t->form, t->vals, t->mods, NULL, false, &was))
		return;
	for (unsigned i = 0; i < op->nfield; i++) {
		uint16_t mod = t->mods[i];
		t->mods[i] = 0;
		if (!mod || !arch_match_call(t->form, t->vals, t->mods, NULL, false, &m) ||
		    memcmp(m.mod, was.mod, m.ngroup * sizeof *m.mod))
			t->mods[i] = mod;
	}
}

/* A value that a form of the instruction has there, or a type for a type. */
static unsigned other_value(dice *d, const trial *t, unsigned field)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	const arch_form *f = &arch_forms[op->form + roll(d, op->nform)];

	if (t->mods[field] < arch_ntype && roll(d, 2))
		return CPTX_ON + 1 + roll(d, CPTX_PTR - CPTX_ON - 1u);
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		if (g->kind != GROUP_REPEAT && g->field == field && g->nalt)
			return arch_alts[g->alt + roll(d, g->nalt)].mod;
	}
	return roll(d, 4) ? 0 : arch_ntype + roll(d, arch_nmod - arch_ntype);
}

static bool spoil_call(dice *d, trial *t, enum mistake kind)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	unsigned field = op->nfield ? roll(d, op->nfield) : 0, slot = roll(d, op->nslot + 1u);
	cptx_val *v = &t->vals[slot ? 2 + slot : 0], other;

	leave_out(d, t);
	if (kind == OTHER_TYPE) {
		if (!change_type(d, v, &other))
			return false;
		*v = other;
	} else {
		unsigned was = op->nfield ? t->mods[field] : 0, mod = was && kind == OTHER_VALUE ? other_value(d, t, field) : 0;
		if (!was || mod == was || (kind == OTHER_VALUE && !mod))
			return false;
		t->mods[field] = (uint16_t)mod;
	}
	return !any_fits(t);
}

static void message_of_call(const trial *t, char *message, size_t size)
{
	pool p = pool_make(true);

	cptx_insn_(p.k, (cptx_site){ "k.c", 7 }, (enum cptx_op)arch_forms[t->form].op, t->vals, t->mods);
	const cptx_error *e = cptx_module_error(p.m);
	snprintf(message, size, "%s", e ? e->text : "");
	cptx_module_destroy(p.m);
}

/* ---- text ---- */

/* The first words, which are the instruction's name and no modifiers. */
static unsigned words_of_name(unsigned form, char **word, unsigned n)
{
	const char *name = arch_ops[arch_forms[form].op].name;
	unsigned i = 0;

	for (size_t len; i < n; i++) {
		len = strlen(word[i]);
		if (strncmp(name, word[i], len) || (name[len] && name[len] != '_'))
			break;
		name += len + (name[len] == '_');
	}
	return MAX(i, 1u);
}

/* Registers are declared as what they hold, as people do it. */
static void declare(trial *t)
{
	for (unsigned i = 0; i < t->ntok; i++) {
		cptx_val *v = &t->tok[i].v;
		for (unsigned n = 0; pool_declared(n); n++)
			if (v->kind == CPTX_VAL_REG && !v->space && !v->offset && !v->negated && pool_declared(n) == v->type)
				t->tok[i].as = v->type;
	}
}

static bool spoil_text(dice *d, trial *t, enum mistake kind)
{
	char *word[32], text[OPCODE] = "";
	unsigned n = 0;

	for (char *w = strtok(t->opcode, "."); w && n < ARRAY_LEN(word); w = strtok(NULL, "."))
		word[n++] = w;
	unsigned name = words_of_name(t->form, word, n), at = n > name ? name + roll(d, n - name) : 0,
			 token_at = t->ntok ? roll(d, t->ntok) : 0;
	const char *other = NULL;
	cptx_val v;
	if (kind == OTHER_TYPE && (!t->ntok || !change_type(d, &t->tok[token_at].v, &v)))
		return false;
	if (kind == OTHER_TYPE)
		t->tok[token_at].v = v;
	if (kind == OTHER_VALUE && at && cptx_type_find(word[at]) != CPTX_TYPE_NONE) {
		other = arch_mods[CPTX_ON + 1 + roll(d, CPTX_PTR - CPTX_ON - 1u)].name;
	} else if (kind == OTHER_VALUE) {
		const arch_op *op = &arch_ops[arch_forms[t->form].op];
		const arch_form *f = &arch_forms[op->form + roll(d, op->nform)];
		const arch_group *g = f->ngroup ? &arch_groups[f->group + roll(d, f->ngroup)] : NULL;
		other = g && g->nalt ? arch_mods[arch_alts[g->alt + roll(d, g->nalt)].mod].name : NULL;
	}
	if (kind != OTHER_TYPE && (!at || (kind == OTHER_VALUE && (!other || !strcmp(other, word[at])))))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (kind == OTHER_TYPE || i != at || other)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "." : "",
			         kind == OTHER_VALUE && i == at ? other : word[i]);
	memcpy(t->opcode, text, sizeof text);
	return true;
}

static void note_first(void *user, const cptx_error *e)
{
	char *message = user;
	if (!*message)
		snprintf(message, CPTX_ERROR_TEXT, "%s", e->text);
}

/* "" where the text is right. */
static void message_of_text(trial *t, char *message)
{
	char line[LINE], *text;

	declare(t);
	trial_print(t, line);
	text = judge_text(cptx_target_find("sm_100a"), ARCH_NEWEST, line);
	*message = 0;
	cptx_parse_opt opt = { .name = "k.ptx", .report = note_first, .user = message };
	cptx_module_destroy(cptx_parse(text, strlen(text), &opt));
	free(text);
}

/* ---- */

static void form_text(unsigned form, char *text, size_t size)
{
	buf b;

	buf_init(&b, NULL);
	arch_put_form(form, &b);
	buf_put(&b, "", 1);
	snprintf(text, size, "%s", b.p);
	buf_free(&b);
}

/* The line below the first one is the form. */
static bool names_first(const char *message, unsigned form)
{
	char text[4096];
	const char *line = strstr(message, "\n    ");

	form_text(form, text, sizeof text);
	size_t n = strlen(text);
	return line && !strncmp(line + 5, text, n) && (line[5 + n] == '\n' || !line[5 + n]);
}

/* The first line offers what was left out or changed: the value of the field, or the word. */
static bool offers(const char *message, const trial *meant, const trial *t, bool by_text)
{
	const arch_op *op = &arch_ops[arch_forms[t->form].op];
	char line[CPTX_ERROR_TEXT], word[OPCODE];

	snprintf(line, sizeof line, "%.*s", (int)strcspn(message, "\n"), message);
	const char *write = strstr(line, "write ");
	for (unsigned i = 0; write && !by_text && i < op->nfield; i++) {
		snprintf(word, sizeof word, "CPTX_%s", arch_mods[meant->mods[i]].id);
		const char *found = meant->mods[i] != t->mods[i] ? strstr(write, word) : NULL;
		if (found && strchr(" ,)", found[strlen(word)]))
			return true;
	}
	size_t same = 0;
	while (by_text && meant->opcode[same] && meant->opcode[same] == t->opcode[same])
		same++;
	while (same && meant->opcode[same - 1] != '.')
		same--;
	snprintf(word, sizeof word, ".%.*s", (int)strcspn(meant->opcode + same, "."), meant->opcode + same);
	for (const char *p = write; by_text && same && p && (p = strstr(p, word)); p++)
		if (!p[strlen(word)] || strchr(" .,;)", p[strlen(word)]))
			return true;
	return false;
}

/* How many of the messages name the form that was meant first; *offered: those, and where the first line offers its value.
 */
static unsigned right_of(uint64_t seed, bool by_text, unsigned *offered)
{
	char message[CPTX_ERROR_TEXT], line[LINE];
	unsigned n = 0, right = 0, tried = 0;
	dice d = { seed };

	*offered = 0;
	for (; n < MISTAKES; tried++) {
		trial t, meant;
		spelling s;
		enum mistake kind = (enum mistake)roll(&d, NKINDS);
		ck_assert_uint_lt(tried, 100 * MISTAKES);
		if (!pick(&d, &t, &s))
			continue;
		meant = t;
		if (by_text ? !spoil_text(&d, &t, kind) : !spoil_call(&d, &t, kind))
			continue;
		if (by_text)
			message_of_text(&t, message);
		else
			message_of_call(&t, message, sizeof message);
		if (by_text && !*message)
			continue;
		n++;
		bool first = names_first(message, t.form);
		right += first;
		*offered += first || offers(message, &meant, &t, by_text);
		if (first)
			continue;
		trial_print(&meant, line);
		printf("seed %u, %s: %s was meant\n    %s\n    but the message is %s\n\n", (unsigned)seed, kinds[kind], line + 1,
		       arch_forms[t.form].text, message);
	}
	printf("seed %u, %s: of %u mistakes %u are answered with the form that was meant as the nearest, %u with what was "
	       "meant in the first line\n",
	       (unsigned)seed, by_text ? "text" : "calls", n, right, *offered);
	return right;
}

/*
 * What is left out or changed may have been the one thing that told two forms apart: of an instruction without its .op, add
 * and min are as near, and no ranking is right about both.  So one seed has a few more of these than another: RIGHT is
 * what all seeds must reach on average, LEAST what each must.  Such a value is offered in the first line even so.
 */
static void compare(bool by_text)
{
	unsigned least = MISTAKES, right = 0, offered = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		unsigned with_offers, n = right_of(seed, by_text, &with_offers);
		least = MIN(least, n);
		right += n;
		offered += with_offers;
	}
	ck_assert_uint_ge(right, RIGHT * SEEDS);
	ck_assert_uint_ge(least, LEAST);
	ck_assert_uint_ge(offered, OFFERED * SEEDS);
}

START_TEST(calls_are_told_what_was_meant) { compare(false); }
END_TEST

START_TEST(text_is_told_what_was_meant) { compare(true); }
END_TEST

int main(void)
{
	pool_init();
	Suite *s = suite_create("table");
	TCase *t = tcase_create("near");
	tcase_set_timeout(t, 0);
	tcase_add_test(t, calls_are_told_what_was_meant);
	tcase_add_test(t, text_is_told_what_was_meant);
	suite_add_tcase(s, t);
	return test_main("table near", s);
}
