/* SPDX-License-Identifier: MIT */
/*
 * One step away from a spelling of the table: another, missing or additional modifier, another operand, one more or less.
 * As text for cptx_asm and to ptxas, the verdict must be the same; what we take and ptxas does not is always an error.
 */
#include "cases.h"
#include "judge.h"
#include "newer.h"
#include "../ask.h"
#include "relax.h"
#include "report.h"
#include "test.h"

/* Of each form, at least, and of all together; and how much of it when the table is tried as a whole. */
enum { PER_FORM = 3, TOGETHER = 3000, BASES = 40, WHOLE = 70 };

enum kind {
	ORDER,
	TYPE,
	VALUE,
	DROPPED,
	ADDED,
	OPERAND_DROPPED,
	OPERAND_ADDED,
	OPERANDS_SWAPPED,
	OPERAND_CHANGED,
	REGISTERS,
	NKINDS
};
static const char *const kind_names[NKINDS] = { "modifiers swapped", "another type",     "another modifier",
	                                            "a modifier less",   "a modifier more",  "an operand less",
	                                            "an operand more",   "operands swapped", "another operand",
	                                            "other declarations" };

typedef struct mutant {
	trial t;
	enum kind kind;
} mutant;

typedef struct asked {
	unsigned form, number, version;
	enum kind kind;
	bool ours;
	const cptx_target *target;
	char *line;
	trial *t; /* if we reject it */
} asked;

/* ---- mutations ---- */

/* A value of one of the modifiers of the instruction's forms, or any modifier at all. */
static const char *some_modifier(dice *d, unsigned form)
{
	const arch_op *op = &arch_ops[arch_forms[form].op];
	const arch_form *f = &arch_forms[op->form + roll(d, op->nform)];

	if (f->ngroup && roll(d, 4)) {
		const arch_group *g = &arch_groups[f->group + roll(d, f->ngroup)];
		if (g->nalt)
			return arch_mods[arch_alts[g->alt + roll(d, g->nalt)].mod].name;
	}
	return arch_mods[CPTX_PTR + 1 + roll(d, arch_nmod - CPTX_PTR - 1u)].name;
}

static bool change_word(dice *d, words *o, unsigned form, bool type)
{
	unsigned at[MOST_WORDS], n = 0;

	for (unsigned i = 1; i < o->n; i++)
		if ((cptx_type_find(o->w[i]) != CPTX_TYPE_NONE) == type)
			at[n++] = i;
	if (!n)
		return false;
	char *word = o->w[at[roll(d, n)]];
	const char *other = type ? arch_mods[CPTX_ON + 1 + roll(d, CPTX_PTR - CPTX_ON - 1u)].name : some_modifier(d, form);
	if (!strcmp(word, other))
		return false;
	snprintf(word, WORD, "%s", other);
	return true;
}

static bool change_opcode(dice *d, mutant *m)
{
	words o = words_split(m->t.opcode);
	unsigned i = o.n > 1 ? 1 + roll(d, o.n - 1) : 0;

	switch (m->kind) {
	case ORDER:
		if (o.n < 3 || i + 1 >= o.n || !strcmp(o.w[i], o.w[i + 1]))
			return false;
		char keep[WORD];
		memcpy(keep, o.w[i], WORD);
		memcpy(o.w[i], o.w[i + 1], WORD);
		memcpy(o.w[i + 1], keep, WORD);
		break;
	case TYPE:
	case VALUE:
		if (!change_word(d, &o, m->t.form, m->kind == TYPE))
			return false;
		break;
	case DROPPED:
		if (!i)
			return false;
		memmove(o.w[i], o.w[i + 1], (o.n - i - 1) * WORD);
		o.n--;
		break;
	default:
		if (o.n == MOST_WORDS)
			return false;
		i += o.n > 1 ? roll(d, 2) : 1;
		memmove(o.w[i + 1], o.w[i], (o.n - i) * WORD);
		snprintf(o.w[i], WORD, "%s", some_modifier(d, m->t.form));
		o.n++;
	}
	words_join(&o, m->t.opcode);
	return true;
}

static bool change_operands(dice *d, mutant *m)
{
	trial *t = &m->t;
	unsigned i = t->ntok ? roll(d, t->ntok) : 0;

	if (m->kind == OPERAND_ADDED) {
		if (t->ntok == MOST_TOKENS)
			return false;
		t->tok[t->ntok++] = (token){ .v = pool_value(roll(d, pool_nvalue())) };
		return true;
	}
	if (!t->ntok)
		return false;
	if (m->kind == OPERAND_DROPPED) {
		t->ntok--;
		memmove(&t->tok[i], &t->tok[i + 1], (t->ntok - i) * sizeof *t->tok);
	} else if (m->kind == OPERANDS_SWAPPED) {
		unsigned k = roll(d, t->ntok);
		token keep = t->tok[i];
		t->tok[i] = t->tok[k];
		t->tok[k] = keep;
		return i != k;
	} else {
		t->tok[i].v = pool_value(roll(d, pool_nvalue()));
	}
	return true;
}

/* A type that registers are declared of, three times of four one of that width. */
static uint8_t some_declared(dice *d, unsigned bits)
{
	unsigned n = 0, type;

	while (pool_declared(n))
		n++;
	bool any = !roll(d, 4);
	for (unsigned tries = 0; tries < 100; tries++) {
		type = pool_declared(roll(d, n));
		if (any || arch_types[type].bits == bits)
			return (uint8_t)type;
	}
	return 0;
}

/* Registers of one operand that text declares as something else, or one of them. */
static bool change_registers(dice *d, mutant *m)
{
	token *k = m->t.ntok ? &m->t.tok[roll(d, m->t.ntok)] : NULL;

	if (!k || k->v.kind != CPTX_VAL_REG || k->v.space || k->v.offset || k->v.negated)
		return false;
	unsigned bits = arch_types[k->v.type].bits;
	k->as = some_declared(d, bits);
	if (k->v.count > 1 && !roll(d, 3)) {
		k->odd = some_declared(d, arch_types[k->as].bits);
		k->at = (uint8_t)roll(d, k->v.count);
	}
	return k->as != 0;
}

static bool mutate(dice *d, const trial *base, mutant *m)
{
	*m = (mutant){ .t = *base, .kind = (enum kind)roll(d, NKINDS) };
	if (m->kind == REGISTERS)
		return change_registers(d, m);
	return m->kind < OPERAND_DROPPED ? change_opcode(d, m) : change_operands(d, m);
}

/* ---- the comparison ---- */

static const char *const tried_on[] = { "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121" };

/* One of these; of a form that none of them has, every other time the last target that has it. */
static const cptx_target *some_target(dice *d, unsigned form)
{
	const uint8_t *on = arch_avails[arch_forms[form].avail];
	const cptx_target *t = cptx_target_find(tried_on[roll(d, ARRAY_LEN(tried_on))]);

	for (unsigned i = 0; i < ARRAY_LEN(tried_on); i++)
		if (on[arch_target_index(cptx_target_find(tried_on[i]))])
			return t;
	bool last = roll(d, 2);
	for (unsigned i = arch_ntarget; last && i--;)
		if (on[i])
			return &arch_targets[i];
	return t;
}

static trial *keep(const trial *t)
{
	trial *copy = malloc(sizeof *copy);
	ck_assert_ptr_nonnull(copy);
	*copy = *t;
	return copy;
}

static void ignore(void *user, const cptx_error *e) { (void)user, (void)e; }

/* Whether `cptx check` takes the same text as ptxas gets. */
static bool check_takes(const cptx_target *t, unsigned version, const char *line)
{
	char *text = judge_text(t, version, line);
	cptx_parse_opt opt = { .name = "trial", .report = ignore };
	cptx_module *m = cptx_parse(text, strlen(text), &opt);
	bool taken = m && !cptx_module_error(m) && !cptx_check(m, NULL, ignore, NULL);

	cptx_module_destroy(m);
	free(text);
	return taken;
}

/* On a target that has it with registers of the pool; false if ptxas does not read the version that it needs. */
static bool ask_declared(judge *j, const mutant *m, const cptx_target *t, asked *a)
{
	trial plain = m->t;
	outcome o;
	char line[LINE];

	for (unsigned i = 0; i < plain.ntok; i++)
		plain.tok[i].as = plain.tok[i].odd = 0;
	trial_build(&plain, BY_TEXT, t, &o);
	if (!o.ok)
		t = trial_lowest(&plain, BY_TEXT, &o);
	if (!t || !judge_reads(MAX(o.version, t->ptx)))
		return false;
	trial_print(&m->t, line);
	bool ours = check_takes(t, MAX(o.version, t->ptx), line);
	char *copy = strdup(line);
	ck_assert_ptr_nonnull(copy);
	*a = (asked){ m->t.form, judge_ask(j, t, MAX(o.version, t->ptx), line),
		          o.version, m->kind,
		          ours,      t,
		          copy,      ours ? NULL : keep(&m->t) };
	return true;
}

/* We may be stricter with declarations, but never with plain bits. */
static bool declares_bits(const asked *a)
{
	for (unsigned i = 0; i < a->t->ntok; i++)
		if (a->t->tok[i].as && (arch_types[a->t->tok[i].as].cls != 'B' || a->t->tok[i].odd ||
		                        arch_types[a->t->tok[i].as].bits != arch_types[a->t->tok[i].v.type].bits))
			return false;
	return a->kind == REGISTERS;
}

/* False: ptxas does not read the version that we say it needs. */
static bool ask(judge *j, const mutant *m, const cptx_target *t, asked *a)
{
	outcome o;
	char line[LINE];

	if (m->kind == REGISTERS)
		return ask_declared(j, m, t, a);
	trial_build(&m->t, BY_TEXT, t, &o);
	if (o.ok)
		memcpy(line, o.line, LINE);
	else
		trial_print(&m->t, line);
	unsigned version = o.ok ? o.version : judge_newest();
	if (!judge_reads(MAX(version, t->ptx)))
		return false;
	char *copy = strdup(line);
	ck_assert_ptr_nonnull(copy);
	*a = (asked){ m->t.form, judge_ask(j, t, version, line), version, m->kind, o.ok, t, copy, o.ok ? NULL : keep(&m->t) };
	return true;
}

static unsigned compare(judge *j, asked *list, unsigned n)
{
	report bad = { 0 }, missing = { 0 };
	unsigned agreed = 0, accepted = 0, excused = 0;

	judge_run(j);
	for (unsigned i = 0; i < n; i++) {
		const asked *a = &list[i];
		const verdict *v = judge_said(j, a->number);
		char why[512];
		snprintf(why, sizeof why, ".target %s, .version %u.%u: %s%s", a->target->name, a->version / 10, a->version % 10,
		         kind_names[a->kind], v->ok ? "; ptxas accepts it" : "; ptxas says: ");
		if (!v->ok)
			snprintf(why + strlen(why), sizeof why - strlen(why), "%s", v->why);
		agreed += v->ok == a->ours;
		accepted += v->ok && a->ours;
		if (a->ours && !v->ok && relax_by_some(a->line, true))
			excused++;
		else if (a->ours && !v->ok)
			report_add(&bad, a->form, "we accept what ptxas rejects", a->line, why);
		else if (v->ok && !a->ours && !declares_bits(a) && relax_reason(a->t, a->target))
			excused++;
		else if (v->ok && !a->ours)
			report_add(&missing, a->form, "ptxas accepts what we reject", a->line, why);
		free(a->line);
		free(a->t);
	}
	unsigned unused = relax_report();
	if (spell_whole() && !spell_part() && judge_newest() == ARCH_NEWEST && unused) {
		printf("%u rows of left_out.def excuse nothing\n", unused);
		bad.n += unused;
	}
	printf(
		"%u mutations compared: %u same verdict (%u accepted by both), %u where we are stricter on purpose, %u too strict, "
		"%u too lax\n",
		n, agreed, accepted, excused, missing.n, bad.n);
	return bad.n + missing.n;
}

START_TEST(mutations_get_the_same_verdict)
{
	unsigned n = 0, each = MAX((unsigned)PER_FORM, TOGETHER / arch_nform + 1u) * (spell_whole() ? WHOLE : 1);
	size_t room = (size_t)arch_nform * each;

	if (!test_ptxas()) {
		skip("ptxas not found");
		return;
	}
	judge *j = judge_new();
	asked *list = malloc(room * sizeof *list);
	ck_assert_ptr_nonnull(list);
	for (unsigned form = 0; form < arch_nform; form++) {
		unsigned nspelling;
		if (!spell_wanted(form))
			continue;
		spelling *s = spell_all(form, BASES, &nspelling);
		dice d = { spell_seed(form) + 2 };
		for (unsigned i = 0; i < each; i++) {
			trial base = trial_of(&s[roll(&d, nspelling)]);
			mutant m;
			if (mutate(&d, &base, &m))
				n += ask(j, &m, some_target(&d, form), &list[n]);
		}
		free(s);
	}
	unsigned wrong = compare(j, list, n);
	judge_free(j);
	free(list);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

int main(void)
{
	pool_init();
	Suite *s = suite_create("table");
	TCase *t = tcase_create("mutate");
	tcase_set_timeout(t, 0);
	tcase_add_test(t, mutations_get_the_same_verdict);
	tcase_add_test(t, newer_versions_are_judged);
	suite_add_tcase(s, t);
	return test_main("table mutate", s);
}
