/* SPDX-License-Identifier: MIT */
/* Reads opcodes whose modifiers stand in another order than the manual's. */
#include "parse/parse.h"

/*
 * The kinds of modifiers.  ptxas takes the modifiers behind an instruction's name in any order, but those of one kind in
 * their own: the types, the state spaces of destination and source, the layouts of A and B ...
 */
enum kind { KIND_ANY, KIND_TYPE, KIND_SPACE, KIND_LAYOUT, KIND_FORMAT, KIND_LOGIC, KIND_EVICT, KINDS };
enum { MOST_WORDS = 32 };

typedef struct word {
	const char *s;
	size_t n;
} word;

/* The words of an opcode, and which of them a form has taken so far. */
typedef struct bag {
	const arch_form *f;
	const word *word;
	unsigned n, ntaken;
	uint32_t taken;
	uint8_t next[KINDS]; /* the first word that can be the form's next word of each kind */
	const char *name;    /* the rest of the instruction's name; NULL: the following words may stand in any order */
	uint16_t *mods;
} bag;

static bool is(const word *w, const char *text) { return strlen(text) == w->n && !memcmp(w->s, text, w->n); }

static enum kind kind_of(const word *w)
{
	static const struct {
		const char *word;
		enum kind kind;
	} kinds[] = {
		{ "b1", KIND_TYPE },           { "b2", KIND_TYPE },
		{ "row", KIND_LAYOUT },        { "col", KIND_LAYOUT },
		{ "b8x16", KIND_FORMAT },      { "b6x16_p32", KIND_FORMAT },
		{ "b4x16_p64", KIND_FORMAT },  { "and", KIND_LOGIC },
		{ "xor", KIND_LOGIC },         { "popc", KIND_LOGIC },
		{ "global", KIND_SPACE },      { "shared", KIND_SPACE },
		{ "shared::cta", KIND_SPACE }, { "shared::cluster", KIND_SPACE },
	};

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++)
		if (is(w, kinds[i].word))
			return kinds[i].kind;
	if (w->n > 10 && !memcmp(w->s, "L2::evict_", 10))
		return KIND_EVICT;
	return arch_type_of(w->s, w->n) != CPTX_TYPE_NONE ? KIND_TYPE : KIND_ANY;
}

/* Whether ptxas takes a word as part of the name, behind the word in front of the dot, though the calls' names lack it. */
static bool goes_on(const word *last, const word *w)
{
	static const char *const pairs[] = {
		"mul.lo",           "mul.hi",           "mul24.lo",       "mul24.hi",       "mad.lo",   "mad.hi",
		"mad24.lo",         "mad24.hi",         "madc.lo",        "madc.hi",        "clmad.lo", "clmad.hi",
		"dp2a.lo",          "dp2a.hi",          "mul.wide",       "mad.wide",       "shf.l",    "shf.r",
		"tex.level",        "tex.grad",         "tex.base",       "txq.level",      "cvta.to",  "suld.b",
		"sust.b",           "sured.b",          "setmaxnreg.inc", "setmaxnreg.dec", "bar.cta",  "barrier.cta",
		"tcgen05.wait::ld", "tcgen05.wait::st", "div.full",
	};

	for (unsigned i = 0; i < ARRAY_LEN(pairs); i++) {
		size_t n = strcspn(pairs[i], ".");
		if (n == last->n && !memcmp(pairs[i], last->s, n) && is(w, pairs[i] + n + 1))
			return true;
	}
	return is(w, "async") && last->n > 4 && !memcmp(last->s, "try_", 4);
}

/* Whether a word of the form is part of the name, given that all words in front of it are. */
static bool in_name(bag *b, const word *w)
{
	/* parts of the calls' names that are modifiers to ptxas */
	static const char *const modifiers[] = {
		"sync", "sp", "cc", "release", "noComplete", "cas", "popc", "mbarrier_init", "is_canceled", "get_first_ctaid"
	};

	for (unsigned i = 0; i < ARRAY_LEN(modifiers); i++)
		if (is(w, modifiers[i]))
			return false;
	if (b->ntaken && goes_on(&b->word[b->ntaken - 1], w))
		return true;
	if (b->ntaken && (strncmp(b->name, w->s, w->n) || (b->name[w->n] && b->name[w->n] != '_')))
		return false;
	b->name += MIN(w->n, strlen(b->name)); /* the first word is the mnemonic, which matches already */
	b->name += *b->name == '_';
	return true;
}

/* Takes one word of the form out of the bag; false if it is not there. */
static bool take(bag *b, word w)
{
	enum kind kind = kind_of(&w);
	unsigned i = kind == KIND_ANY ? 0 : b->next[kind], end = b->n;

	if (b->name && in_name(b, &w))
		i = b->ntaken, end = MIN(i + 1, b->n);
	else
		b->name = NULL;
	while (i < end && (b->taken >> i & 1 || b->word[i].n != w.n || memcmp(b->word[i].s, w.s, w.n)))
		i++;
	if (i >= end)
		return false;
	b->taken |= 1u << i;
	b->ntaken++;
	b->next[kind] = (uint8_t)(i + 1);
	return true;
}

/* Takes the words of ".a.b", or of "a.b" at the beginning of a form. */
static bool take_all(bag *b, const char *s)
{
	while (*s) {
		s += *s == '.';
		word w = { s, strcspn(s, ".") };
		if (!take(b, w))
			return false;
		s += w.n;
	}
	return true;
}

/* Takes group i and all behind it; b is the rest of the bag. */
static bool take_groups(bag b, unsigned i)
{
	if (i == b.f->ngroup)
		return take_all(&b, b.f->tail) && b.ntaken == b.n;
	const arch_group *g = &arch_groups[b.f->group + i];
	if (!take_all(&b, g->prefix))
		return false;
	unsigned nalt = g->behind ? 0 : g->kind == GROUP_REPEAT ? 1 : g->nalt;
	for (unsigned a = 0; a < nalt; a++) {
		unsigned mod = g->kind == GROUP_REPEAT ? b.mods[g->same] : arch_alts[g->alt + a].mod;
		bag rest = b;
		b.mods[i] = (uint16_t)mod;
		if (take(&rest, (word){ arch_mods[mod].name, arch_mods[mod].len }) && take_groups(rest, i + 1))
			return true;
	}
	b.mods[i] = 0;
	return (g->behind || g->kind == GROUP_OPTIONAL) && take_groups(b, i + 1);
}

bool parse_opcode_any(unsigned form, const char *text, size_t n, uint16_t mods[ARCH_GROUPS])
{
	const arch_form *f = &arch_forms[form];
	word words[MOST_WORDS];
	bag b = { .f = f, .word = words, .name = arch_ops[f->op].name, .mods = mods };

	for (const char *s = text, *end = text + n; b.n < MOST_WORDS;) {
		const char *dot = (const char *)memchr(s, '.', (size_t)(end - s));
		words[b.n++] = (word){ s, (size_t)((dot ? dot : end) - s) };
		if (!dot)
			return take_groups(b, 0);
		s = dot + 1;
	}
	return false;
}
