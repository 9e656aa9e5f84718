/* SPDX-License-Identifier: MIT */
/*
 * Calls by a cptx_again: of every form of the table they print what the ordinary calls print, whether the place is empty,
 * filled by the same call, or filled by another one; and where an ordinary call is refused, they are refused in the same
 * words.  Of what they make, equal texts and no others have equal hashes.
 */
#include "../test.h"
#include "cases.h"
#include "report.h"

#include <cptx/fast.h>
#include <stdio.h>

enum { SPELLINGS = 4, WHOLE = 120, TIMES = 3, WRONG = 6 };

/* How the calls of a module are made. */
typedef struct maker {
	cptx_again *again;  /* NULL: ordinary ones */
	const trial *first; /* a call in front, which fills an empty place; NULL: none */
	unsigned times;
} maker;

static unsigned ndirect; /* calls that were made directly */

/* The call that the macros of insn.h make of an instruction. */
static void make_again(cptx_kernel *k, cptx_site at, cptx_again *again, const trial *t)
{
	enum cptx_op op = (enum cptx_op)arch_forms[t->form].op;
	const cptx_val *v = t->vals + 3;
	bool same = cptx_is_again_(again, at) && !(t->vals[0].kind | t->vals[1].kind | t->vals[2].kind);
	unsigned n = arch_ops[op].nslot;

	for (unsigned i = 0; i < arch_ops[op].nfield; i += 4)
		same = same && arch_four_mods(t->mods + i, arch_ops[op].nfield - i) == again->mods_[i / 4];
	ndirect += same && n && n <= 4;
	switch (same ? n : 0) {
	case 1: cptx_again_1_(k, again, CPTX_WORDS_(v[0])); break;
	case 2: cptx_again_2_(k, again, CPTX_WORDS_(v[0]), CPTX_WORDS_(v[1])); break;
	case 3: cptx_again_3_(k, again, CPTX_WORDS_(v[0]), CPTX_WORDS_(v[1]), CPTX_WORDS_(v[2])); break;
	case 4: cptx_again_4_(k, again, CPTX_WORDS_(v[0]), CPTX_WORDS_(v[1]), CPTX_WORDS_(v[2]), CPTX_WORDS_(v[3])); break;
	default: cptx_insn_again_(k, at, again, op, t->vals, t->mods);
	}
}

static void make(cptx_kernel *k, const maker *by, const trial *t)
{
	cptx_site at = { "again.c", 7 };

	if (by->again)
		make_again(k, at, by->again, t);
	else
		cptx_insn_(k, at, (enum cptx_op)arch_forms[t->form].op, t->vals, t->mods);
}

/* Removes the lines .file and .loc of a text. */
static void remove_places(char *text)
{
	char *to = text;

	for (char *line = text, *next; *line; line = next) {
		next = strchr(line, '\n') + 1;
		if (!strncmp(line, ".file ", 6) || !strncmp(line, "\t.loc ", 6))
			continue;
		memmove(to, line, (size_t)(next - line));
		to += next - line;
	}
	*to = 0;
}

/* ---- hashes ---- */

typedef struct hashed {
	char *text;
	cptx_hash hash;
} hashed;
static hashed *all_hashed;
static size_t nhashed, nrefused;
enum { HASHED = 24 /* of so many texts, the hash of one is compared */ };

/* Notes the hash of a module that prints this text; that of the text must be the same. */
static void note_hash(cptx_module *m, const cptx_target *target, const char *text)
{
	cptx_hash hash, again = { { 0, 0 } };
	cptx_error err = { .code = CPTX_OK };
	cptx_module *read = cptx_parse(text, strlen(text), NULL);
	bool refused = cptx_module_error(read) != NULL; /* text may do less with a kernel's parameters */

	ck_assert_msg(cptx_module_hash(m, target->name, NULL, &hash, &err), "%s", err.text);
	ck_assert_msg(refused || cptx_module_hash(read, NULL, NULL, &again, &err), "%.300s", err.text);
	SURE(refused || !memcmp(&hash, &again, sizeof hash), "the hash of the text is another one:\n%.900s",
	     strrchr(text, ':') + 1);
	nrefused += refused;
	cptx_module_destroy(read);
	if (nhashed % 1024 == 0)
		all_hashed = realloc(all_hashed, (nhashed + 1024) * sizeof *all_hashed);
	ck_assert_ptr_nonnull(all_hashed);
	all_hashed[nhashed++] = (hashed){ strdup(text), hash };
}

static int by_hash(const void *a, const void *b)
{
	return memcmp(&((const hashed *)a)->hash, &((const hashed *)b)->hash, sizeof(cptx_hash));
}

/* Whether texts with the same hash are the same; those of the same text were compared above. */
static void compare_hashes(void)
{
	qsort(all_hashed, nhashed, sizeof *all_hashed, by_hash);
	for (size_t i = 1; i < nhashed; i++)
		SURE(by_hash(&all_hashed[i - 1], &all_hashed[i]) || !strcmp(all_hashed[i - 1].text, all_hashed[i].text),
		     "these have the same hash:\n%s\n%s", all_hashed[i - 1].text, all_hashed[i].text);
	for (size_t i = 0; i < nhashed; i++)
		free(all_hashed[i].text);
	printf("%zu texts hashed, %zu of them not read again\n", nhashed, nrefused);
	free(all_hashed);
}

/* Prints a module; if `twice`, also with .loc lines, when each instruction is printed by itself, which must be the same. */
static char *printed(cptx_module *m, const cptx_target *target, bool twice)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(m, target->name, NULL, &err);
	char *text = strdup(ptx ? cptx_ptx_text(ptx) : err.text);

	ck_assert_ptr_nonnull(text);
	cptx_ptx_destroy(ptx);
	if (!ptx || !twice)
		return text;
	ptx = cptx_emit(m, target->name, CPTX_OPT(cptx_emit_opt, .lines = true), &err);
	ck_assert_msg(ptx, "%s", err.text);
	char *alone = strdup(cptx_ptx_text(ptx));
	ck_assert_ptr_nonnull(alone);
	remove_places(alone);
	ck_assert_str_eq(alone, text);
	free(alone);
	cptx_ptx_destroy(ptx);
	static unsigned turn;
	if (spell_whole() || ++turn % HASHED == 0)
		note_hash(m, target, text);
	return text;
}

static bool has_b128(const trial *t)
{
	for (unsigned i = 0; t && i < t->ntok; i++)
		if (t->tok[i].v.type == CPTX_B128)
			return true;
	return false;
}

/* The text of a module that repeats a call, or the error; to be freed. */
static char *made(const maker *by, const trial *t, const cptx_target *target)
{
	pool p = pool_make(has_b128(t) || has_b128(by->first));

	if (by->first)
		make(p.k, by, by->first);
	for (unsigned i = 0; i < by->times; i++)
		make(p.k, by, t);
	char *text = printed(p.m, target, by->again != NULL);
	cptx_module_destroy(p.m);
	return text;
}

/* Whether the texts by both paths are the same; `first` as in the maker. */
static bool same(cptx_again *again, const trial *first, const trial *t, const cptx_target *target, report *bad,
                 const char *what)
{
	char line[LINE];
	char *expected = made(&(maker){ NULL, first, TIMES }, t, target);
	char *got = made(&(maker){ again, first, TIMES }, t, target);
	bool ok = !strcmp(expected, got);

	if (!ok) {
		size_t at = 0;
		while (expected[at] == got[at])
			at++;
		trial_print(t, line);
		report_add(bad, t->form, what, line, got + (at > 80 ? at - 80 : 0));
	}
	free(expected);
	free(got);
	return ok;
}

static const cptx_target *newest(void)
{
	const cptx_target *t = NULL;

	for (size_t i = 0; cptx_target_at(i); i++)
		t = cptx_target_at(i);
	return t;
}

static unsigned ntried, nfilled;

/* Operands of other kinds at a place that knows the plain ones. */
static void try_others(const spelling *s, const trial *base, const cptx_target *target, report *bad)
{
	dice d = { spell_seed(s->form) };

	for (unsigned i = 0; i < arch_forms[s->form].noperand; i++)
		for (unsigned n = 0; n < (spell_whole() ? pool_nvalue() : WRONG); n++) {
			cptx_again again = { 0 };
			trial other = trial_with(s, base, i, pool_value(spell_whole() ? n : roll(&d, pool_nvalue())));
			ntried++;
			if (other.structured)
				same(&again, base, &other, target, bad, "another operand");
		}
}

static void try_spelling(const spelling *s, bool others, report *bad)
{
	static const cptx_again empty;
	outcome o;

	for (unsigned full = 0; full < 2; full++) {
		cptx_again again = { 0 };
		trial t = full ? trial_full(s) : trial_of(s);
		const cptx_target *target = trial_lowest(&t, BY_CALL, &o);
		if (!target)
			target = newest(); /* it is refused, by both */
		ntried++;
		same(&again, NULL, &t, target, bad, "an empty place");
		nfilled += memcmp(&again, &empty, sizeof again) != 0;
		same(&again, NULL, &t, target, bad, "a place that another module filled");
		if (others && !full)
			try_others(s, &t, target, bad);
	}
}

START_TEST(both_paths_make_the_same)
{
	report bad = { 0 };

	for (unsigned form = 0; form < arch_nform; form++) {
		unsigned n = 0;
		if (!spell_wanted(form))
			continue;
		spelling *s = spell_all(form, spell_whole() ? SPELLINGS * WHOLE : SPELLINGS, &n);
		for (unsigned i = 0; i < n && i < (spell_whole() ? SPELLINGS * WHOLE : SPELLINGS); i++)
			try_spelling(&s[i], i == 0 || spell_whole(), &bad);
		free(s);
	}
	printf("%u calls by both paths, %u of them kept at their place, %u made directly, %u not the same\n", ntried, nfilled,
	       ndirect, bad.n);
	ck_assert_uint_eq(bad.n, 0);
	ck_assert_uint_gt(nfilled, ntried / 8); /* else nothing was tried */
	ck_assert_uint_gt(ndirect, ntried / 4);
	if (!spell_part()) /* else they may be few */
		ck_assert_uint_gt(nhashed, 500 + 20 * nrefused);
	compare_hashes();
}
END_TEST

/* ---- direct calls where there are none ---- */

/* A module that knows a place in the program, and whose table of places has room for more; emptied: it was filled before. */
static cptx_module *kept_module(bool emptied)
{
	static cptx_again other;
	cptx_module *m = cptx_module_new(NULL);

	for (unsigned times = 0; times <= emptied; times++) {
		if (times)
			ck_assert(cptx_module_clear(m));
		cptx_kernel *k = cptx_kernel_begin(m, "k");
		cptx_val a = cptx_mov(k, 1, .type = CPTX_U32);
		for (unsigned i = 0; i < 50; i++) /* the module knows the place, and has room for more */
			a = CPTX_AGAIN(cptx_add, &other, k, a, a);
	}
	ck_assert(!cptx_module_error(m) || !cptx_module_error(m)->code);
	ck_assert_uint_eq(other.state_, CPTX_AGAIN_DIRECT_);
	return m;
}

/* A direct call of n operands by a place of which cptx_is_again_ is false is refused, and makes nothing. */
static void refuse(cptx_again *again, cptx_module *m, unsigned n)
{
	cptx_kernel *k = cptx_kernel_begin(m, "refused");
	const cptx_val v = cptx_add(k, cptx_mov(k, 1, .type = CPTX_U32), 2);
	const cptx_again before = *again;
	cptx_val made = { 0 };

	switch (n) {
	case 1: made = cptx_again_1_(k, again, CPTX_WORDS_(v)); break;
	case 2: made = cptx_again_2_(k, again, CPTX_WORDS_(v), CPTX_WORDS_(v)); break;
	case 3: made = cptx_again_3_(k, again, CPTX_WORDS_(v), CPTX_WORDS_(v), CPTX_WORDS_(v)); break;
	default: made = cptx_again_4_(k, again, CPTX_WORDS_(v), CPTX_WORDS_(v), CPTX_WORDS_(v), CPTX_WORDS_(v));
	}
	const cptx_error *err = cptx_module_error(m);
	ck_assert_msg(err && err->code == CPTX_E_ARG, "%u operands", n);
	ck_assert_ptr_nonnull(strstr(err->text, "a call by a cptx_again that holds none"));
	ck_assert_int_eq(made.kind, CPTX_VAL_NONE);
	ck_assert(!memcmp(again, &before, sizeof before));
	cptx_module_destroy(m);
}

START_TEST(a_place_that_holds_no_direct_call_is_refused)
{
	for (unsigned n = 1; n <= 4; n++)
		for (unsigned emptied = 0; emptied < 2; emptied++) {
			cptx_again empty = { 0 }, slow = { 0 };
			refuse(&empty, kept_module(emptied), n);
			cptx_module *m = kept_module(emptied);
			cptx_kernel *k = cptx_kernel_begin(m, "slow");
			cptx_val x = cptx_mov(k, 1, .type = CPTX_U32);
			for (unsigned i = 0; i < 2; i++) /* what writes a given register is remembered, and not made directly */
				CPTX_AGAIN(cptx_add, &slow, k, x, x, .into = x);
			ck_assert(slow.state_ && slow.state_ != CPTX_AGAIN_DIRECT_);
			refuse(&slow, m, n);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("again");

	pool_init();
	tcase_add_test(test_case(s, "again"), both_paths_make_the_same);
	tcase_add_test(test_case(s, "none"), a_place_that_holds_no_direct_call_is_refused);
	return test_main("table_again", s);
}
