/* SPDX-License-Identifier: MIT */
/*
 * Every spelling that the rows of insn.def enumerate is assembled for its lowest target and version, with operands of all
 * kinds that the rows allow; one version lower, and on targets that lack it, it is not.
 */
#include "cases.h"
#include "../reparse.h"
#include "judge.h"
#include "newer.h"
#include "relax.h"
#include "../ask.h"
#include "report.h"
#include "test.h"

/*
 * Modules for a target have every example when whole, else one of SOME, others for the next target.
 * Of a form: spellings to make (ptxas is asked of one of ASKED, when whole of all), to ask for on all targets and in other
 * orders (each for one form of ASKED), to vary the operands of, to put into modules; instructions of a module; and how often
 * all of it when whole.
 */
enum {
	SPELLINGS = 6,
	EVERYWHERE = 1,
	ORDERS = 1,
	VARIANTS = 12,
	OF_FORM = 4,
	PER_MODULE = 200,
	WHOLE = 160,
	ASKED = 8,
	SOME = 6
};

static unsigned most(unsigned sample) { return spell_whole() ? sample * WHOLE : sample; }

static const uint8_t versions[] = { 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81,
	                                82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 95 };

/* A question to ptxas and what is expected. */
typedef struct expected {
	unsigned form, number;
	bool accept;
	const char *what;
	const cptx_target *target;
	unsigned version;
	char *line;
} expected;

typedef struct inquiry {
	judge *j; /* one for all tests: a question that two of them have is asked once */
	unsigned runs;
	expected *list;
	unsigned n, cap;
} inquiry;

static judge *common;

static inquiry begin(void)
{
	if (!common)
		common = judge_new();
	return (inquiry){ .j = common, .runs = judge_runs(common) };
}

static void expect(inquiry *q, unsigned form, const cptx_target *target, unsigned version, const char *line, bool accept,
                   const char *what)
{
	if (!judge_reads(version))
		return;
	if (q->n == q->cap) {
		q->cap = q->cap ? 2 * q->cap : 4096;
		q->list = realloc(q->list, q->cap * sizeof *q->list);
		ck_assert_ptr_nonnull(q->list);
	}
	char *copy = strdup(line);
	ck_assert_ptr_nonnull(copy);
	q->list[q->n++] = (expected){ form, judge_ask(q->j, target, version, line), accept, what, target, version, copy };
}

static unsigned answer(inquiry *q)
{
	report bad = { 0 };
	unsigned some = 0;

	judge_run(q->j);
	for (unsigned i = 0; i < q->n; i++) {
		const expected *e = &q->list[i];
		const verdict *v = judge_said(q->j, e->number);
		if (v->ok != e->accept && relax_by_some(e->line, !v->ok)) {
			some++;
		} else if (v->ok != e->accept) {
			char why[512];
			snprintf(why, sizeof why, ".target %s, .version %u.%u: ptxas %s%s", e->target->name, e->version / 10,
			         e->version % 10, v->ok ? "accepts it" : "says: ", v->why);
			report_add(&bad, e->form, e->what, e->line, why);
		}
		free(e->line);
	}
	free(q->list);
	printf("%u questions to ptxas in %u runs, %u wrong answers\n", q->n, judge_runs(q->j) - q->runs, bad.n);
	if (some)
		printf("%u answers that other ptxas would not give\n", some);
	return bad.n;
}

/* Version in front of v, 0 if there is none that the target knows. */
static unsigned version_before(unsigned v, const cptx_target *t)
{
	for (unsigned i = 1; i < ARRAY_LEN(versions); i++)
		if (versions[i] == v)
			return versions[i - 1] >= t->ptx ? versions[i - 1] : 0;
	return 0;
}

static bool same_opcode(const char *line, const char *opcode)
{
	size_t n = strlen(opcode);
	return line[0] == '\t' && !strncmp(line + 1, opcode, n) && (line[n + 1] == ' ' || line[n + 1] == ';');
}

/* ---- every spelling, with the plainest operands, on the lowest target ---- */

/* A combination that a rule of constraint.def forbids; ptxas must do so too. */
static void refused(inquiry *q, const spelling *s, const trial *t, report *bad, const char *why)
{
	const uint8_t *on = arch_avails[arch_forms[s->form].avail];
	char line[LINE];

	trial_print(t, line);
	if (!arch_forms[s->form].constraint) {
		report_add(bad, s->form, "the builder refuses a spelling of the row", line, why);
		return;
	}
	for (unsigned i = 0; i < arch_ntarget; i++)
		if (on[i] && (i + 1 == arch_ntarget || arch_targets[i].suffix == 'a') && judge_reads(arch_targets[i].ptx))
			expect(q, s->form, &arch_targets[i], judge_newest(), line, false,
			       "a rule of constraint.def forbids what ptxas takes");
}

/* cptx_asm reads the instruction as the call makes it. */
static bool same_as_text(const trial *t, const cptx_target *target, outcome *by_call)
{
	outcome o;

	trial_build(t, BY_TEXT, target, &o);
	memcpy(by_call->why, o.why, sizeof o.why);
	return o.ok && !strcmp(o.line, by_call->line);
}

/* Tries the spelling with all optional operands, if the builder takes it. */
static void try_full(inquiry *q, const spelling *s)
{
	outcome o;
	trial t = trial_full(s);
	const cptx_target *low = trial_lowest(&t, BY_CALL, &o);

	if (low)
		expect(q, s->form, low, o.version, o.line, true, "not assembled with all operands");
}

static unsigned try_form(inquiry *q, unsigned form, report *bad)
{
	unsigned n, built = 0;
	spelling *list = spell_all(form, most(SPELLINGS), &n);

	for (unsigned i = 0; i < n; i++) {
		outcome o;
		trial t = trial_of(&list[i]);
		const cptx_target *low = trial_lowest(&t, BY_CALL, &o);
		if (!o.built) {
			refused(q, &list[i], &t, bad, o.why);
			continue;
		}
		built++;
		if (!low)
			report_add(bad, form, "on no target", t.opcode, o.why);
		else if (!same_opcode(o.line, t.opcode))
			report_add(bad, form, "printed as another spelling", o.line, t.opcode);
		else if (i % ASKED == 0 || spell_whole())
			expect(q, form, low, o.version, o.line, true, "not assembled");
		if (low && (i % (3 * ASKED) == 0 || (spell_whole() && i % 3 == 0)))
			try_full(q, &list[i]);
		if (low && i % 4 == 0 && !same_as_text(&t, low, &o))
			report_add(bad, form, "cptx_asm does not take it, or prints it otherwise", o.line, o.why);
	}
	free(list);
	return built;
}

START_TEST(every_spelling_is_assembled)
{
	report bad = { 0 };
	inquiry q = begin();
	unsigned spellings = 0;

	if (!test_ptxas()) {
		skip("ptxas not found");
		return;
	}
	for (unsigned form = 0; form < arch_nform; form++)
		spellings += spell_wanted(form) ? try_form(&q, form, &bad) : 0;
	printf("%u forms, %u spellings\n", arch_nform, spellings);
	bad.n += answer(&q);
	ck_assert_uint_eq(bad.n, 0);
}
END_TEST

/* ---- modifiers in another order ---- */

/* Every two neighbours swapped; two types are another instruction. */
static void try_other_orders(inquiry *q, const spelling *s, report *bad)
{
	trial t = trial_of(s);
	outcome by_call, by_text;
	char line[LINE];
	const cptx_target *low = trial_lowest(&t, BY_CALL, &by_call);
	words o = words_split(t.opcode);
	arch_match m;

	if (!low || !arch_match_form(s->form, t.vals, s->mod, NULL, false, &m))
		return; /* a rule forbids it, or leaves it to another form */
	for (unsigned i = 1; i + 1 < o.n; i++) {
		words other = o;
		memcpy(other.w[i], o.w[i + 1], WORD);
		memcpy(other.w[i + 1], o.w[i], WORD);
		if (!strcmp(o.w[i], o.w[i + 1]) || (cptx_type_find(o.w[i]) && cptx_type_find(o.w[i + 1])))
			continue;
		words_join(&other, t.opcode);
		trial_build(&t, BY_TEXT, low, &by_text);
		trial_print(&t, line);
		if (by_text.ok && strcmp(by_text.line, by_call.line) && !same_opcode(by_text.line, t.opcode))
			report_add(bad, s->form, "another order is read as another instruction", line, by_text.line);
		expect(q, s->form, low, by_call.version, line, by_text.ok,
		       by_text.ok ? "another order is not assembled" : "another order is assembled that we refuse");
	}
}

START_TEST(other_orders_get_the_same_verdict)
{
	report bad = { 0 };
	inquiry q = begin();

	if (!test_ptxas()) {
		skip("ptxas not found");
		return;
	}
	for (unsigned form = 0; form < arch_nform; form++) {
		unsigned n;
		if (!spell_wanted(form) || (form % ASKED && !spell_whole()))
			continue;
		spelling *list = spell_all(form, most(ORDERS), &n);
		dice d = { spell_seed(form) };
		for (unsigned i = 0; i < most(ORDERS) && i < n; i++)
			try_other_orders(&q, &list[n <= most(ORDERS) ? i : roll(&d, n)], &bad);
		free(list);
	}
	printf("%u spellings in another order\n", q.n);
	bad.n += answer(&q);
	ck_assert_uint_eq(bad.n, 0);
}
END_TEST

/* ---- availability ---- */

static void ask_everywhere(inquiry *q, const spelling *s, const uint8_t version[ARCH_TARGETS], const char *line)
{
	unsigned form = s->form;

	for (unsigned i = 0; i < arch_ntarget; i++) {
		const cptx_target *t = &arch_targets[i];
		if (!judge_reads(t->ptx))
			continue;
		if (!version[i]) {
			expect(q, form, t, judge_newest(), line, false, "we say that the target lacks it");
			continue;
		}
		if (!judge_reads(version[i]))
			continue;
		unsigned before = version_before(version[i], t);
		expect(q, form, t, version[i], line, true, "we say that the target has it from this version on");
		unsigned end = trial_end(s, i);
		if (end)
			expect(q, form, t, end, line, false, "we say that it was removed in this version");
		if (before)
			expect(q, form, t, before, line, false, "we say that it needs a later version");
	}
}

START_TEST(availability_is_exact)
{
	inquiry q = begin();

	if (!test_ptxas()) {
		skip("ptxas not found");
		return;
	}
	for (unsigned form = 0; form < arch_nform; form++) {
		unsigned n;
		if (!spell_wanted(form) || (form % ASKED != 1 && !spell_whole()))
			continue;
		spelling *list = spell_all(form, most(EVERYWHERE), &n);
		dice d = { spell_seed(form) };
		unsigned skip_some = n / most(EVERYWHERE) + 1; /* a sample with every value may be long */
		for (unsigned i = roll(&d, skip_some); i < n; i += skip_some) {
			uint8_t version[ARCH_TARGETS] = { 0 };
			outcome o;
			trial t = trial_of(&list[i]);
			if (trial_versions(&t, BY_CALL, version, &o))
				ask_everywhere(&q, &list[i], version, o.line);
		}
		free(list);
	}
	ck_assert_uint_eq(answer(&q), 0);
}
END_TEST

/* ---- special registers ---- */

/* mov of each: the table has their availability in rows of their own. */
START_TEST(special_registers_are_where_we_say)
{
	inquiry q = begin();
	unsigned form = 0;

	if (!test_ptxas() || !spell_wanted(arch_ops[CPTX_OP_MOV].form)) {
		skip(test_ptxas() ? "not asked for" : "ptxas not found");
		return;
	}
	while (arch_forms[form].op != CPTX_OP_MOV)
		form++;
	unsigned n;
	spelling *list = spell_all(form, 1, &n);
	for (unsigned i = 0; i < arch_nsreg; i++) {
		unsigned type = arch_sregs[i].type, count = arch_sregs[i].count;
		trial t = { .form = form };
		uint8_t version[ARCH_TARGETS] = { 0 };
		outcome o;
		snprintf(t.opcode, sizeof t.opcode, "mov.%s%s", count > 1 ? "v4." : "", cptx_type_name((enum cptx_type)type));
		t.tok[t.ntok++] = (token){ .v = count > 1 ? pool_vec(type, 1, count) : pool_reg(type, 1) };
		t.tok[t.ntok++] = (token){ .v = cptx_sreg_val((enum cptx_sreg)i) };
		ck_assert_msg(trial_versions(&t, BY_TEXT, version, &o), "%s: %s", arch_sregs[i].text, o.why);
		ask_everywhere(&q, &list[0], version, o.line);
	}
	free(list);
	ck_assert_uint_eq(answer(&q), 0);
}
END_TEST

/* ---- operands ---- */

static unsigned vary(inquiry *q, const spelling *s, const trial *base, unsigned operand, cptx_val v)
{
	trial t = trial_with(s, base, operand, v);
	outcome o;
	const cptx_target *low = trial_lowest(&t, BY_CALL, &o);

	if (low)
		expect(q, s->form, low, o.version, o.line, true, "the builder takes operands that ptxas does not");
	return low != NULL;
}

static unsigned vary_form(inquiry *q, unsigned form)
{
	unsigned n, taken = 0;
	spelling *list = spell_all(form, most(SPELLINGS), &n);
	dice d = { spell_seed(form) };

	if (!arch_forms[form].noperand)
		n = 0;
	for (unsigned i = 0; i < most(VARIANTS) && n; i++) {
		const spelling *s = &list[n <= most(VARIANTS) ? i % n : roll(&d, n)];
		unsigned operand = roll(&d, arch_forms[form].noperand);
		trial base = trial_of(s);
		taken += vary(q, s, &base, operand, pool_value(roll(&d, pool_nvalue() + 1)));
	}
	free(list);
	return taken;
}

START_TEST(operands_that_we_take_are_assembled)
{
	inquiry q = begin();
	unsigned taken = 0;

	if (!test_ptxas()) {
		skip("ptxas not found");
		return;
	}
	for (unsigned form = 0; form < arch_nform; form++)
		taken += spell_wanted(form) ? vary_form(&q, form) : 0;
	printf("%u variations of operands that the builder takes\n", taken);
	ck_assert_uint_eq(answer(&q), 0);
}
END_TEST

/* ---- whole modules ---- */

typedef struct example {
	trial t;
	uint8_t version[ARCH_TARGETS];
} example;

/* A few spellings of each form; not of those that end a thread's path, behind which all would be dead (ptxas 13.0 crashes
 * over a wgmma that no path reaches). */
static const example *examples(unsigned *count)
{
	static example *all;
	static unsigned number;

	if (all) {
		*count = number;
		return all;
	}
	all = calloc(arch_nform * OF_FORM, sizeof *all);
	ck_assert_ptr_nonnull(all);
	for (unsigned form = 0; form < arch_nform; form++) {
		unsigned n, op = arch_forms[form].op;
		bool ends = op == CPTX_OP_BRA || op == CPTX_OP_BRX_IDX || op == CPTX_OP_RET || op == CPTX_OP_EXIT ||
		            op == CPTX_OP_TRAP || !spell_wanted(form);
		spelling *list = spell_all(form, OF_FORM, &n);
		for (unsigned i = 0; i < n && i < OF_FORM && !ends; i++) {
			example e = { .t = trial_of(&list[i]) };
			outcome o;
			if (!trial_versions(&e.t, BY_CALL, e.version, &o))
				continue;
			if (op == CPTX_OP_ST && strstr(o.line, "[in_param")) /* no kernel writes its parameters */
				continue;
			for (unsigned t = 0; t < arch_ntarget; t++) /* gone in the versions that the others need */
				e.version[t] = trial_end(&list[i], t) || !judge_reads(e.version[t]) ? 0 : e.version[t];
			all[number++] = e;
		}
		free(list);
	}
	*count = number;
	return all;
}

typedef struct modules {
	judged_file *f;
	cptx_ptx **ptx;
	unsigned n;
} modules;

static void add_module(modules *all, const pool *p, const cptx_target *target)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(p->m, target->name, NULL, &err);

	ck_assert_msg(ptx != NULL, "%s: %s", target->name, err.text);
	ck_assert(test_reparses(cptx_ptx_text(ptx)));
	all->f = realloc(all->f, (all->n + 1) * sizeof *all->f);
	all->ptx = realloc(all->ptx, (all->n + 1) * sizeof *all->ptx);
	ck_assert(all->f && all->ptx);
	all->ptx[all->n] = ptx;
	all->f[all->n++] = (judged_file){ .text = cptx_ptx_text(ptx), .target = target };
}

/* All examples of the target in kernels; those that use tensor memory of pairs of CTAs stand in kernels of their own. */
static unsigned add_modules(modules *all, unsigned target, bool pair)
{
	unsigned n, instructions = 0;
	const example *e = examples(&n);

	for (unsigned i = 0, in = 0; i < n; instructions += in, in = 0) {
		pool p = pool_make(true);
		for (; i < n && in < PER_MODULE; i++) {
			bool its_turn = (i + target) % SOME == 0 || spell_whole();
			if (!its_turn || !e[i].version[target] || judge_pair(e[i].t.opcode) != pair)
				continue;
			cptx_insn_(p.k, (cptx_site){ 0 }, (enum cptx_op)arch_forms[e[i].t.form].op, e[i].t.vals, e[i].t.mods);
			in++;
		}
		if (in)
			add_module(all, &p, cptx_target_at(target));
		cptx_module_destroy(p.m);
	}
	return instructions;
}

START_TEST(modules_are_assembled)
{
	modules all = { 0 };
	unsigned wrong = 0, least = spell_part() ? 0 : spell_whole() ? 300 : 300 / SOME, instructions = 0;

	if (!test_ptxas()) {
		skip("ptxas not found");
		return;
	}
	for (unsigned i = 0; i < arch_ntarget; i++) {
		unsigned n = add_modules(&all, i, false);
		ck_assert_uint_ge(n, judge_reads(arch_targets[i].ptx) ? least : 0);
		instructions += n + add_modules(&all, i, true);
	}
	judge_files(all.f, all.n);
	for (unsigned i = 0; i < all.n; i++) {
		if (all.f[i].status)
			printf("%s: ptxas ends with %d: %s\n", all.f[i].target->name, all.f[i].status, all.f[i].message);
		wrong += all.f[i].status != 0;
		cptx_ptx_destroy(all.ptx[i]);
	}
	printf("%u instructions in %u modules for %u targets\n", instructions, all.n, arch_ntarget);
	free(all.f);
	free(all.ptx);
	ck_assert_uint_eq(wrong, 0);
}
END_TEST

int main(void)
{
	pool_init();
	Suite *s = suite_create("table");
	TCase *t = tcase_create("accept");
	tcase_set_timeout(t, 0);
	tcase_add_test(t, every_spelling_is_assembled);
	tcase_add_test(t, other_orders_get_the_same_verdict);
	tcase_add_test(t, availability_is_exact);
	tcase_add_test(t, special_registers_are_where_we_say);
	tcase_add_test(t, operands_that_we_take_are_assembled);
	tcase_add_test(t, modules_are_assembled);
	tcase_add_test(t, newer_versions_are_judged);
	suite_add_tcase(s, t);
	int status = test_main("table accept", s);
	if (spell_whole())
		relax_report();
	if (common)
		judge_free(common);
	return status;
}
