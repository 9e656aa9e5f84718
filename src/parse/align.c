/* The words of a spelling beside those that a form has: which it lacks, which are too many, which are others. */
#include "parse/near.h"

enum { MOST_SLOTS = 64, FAR = UINT16_MAX / 2 };
enum { COST_MISSPELT = 6, COST_OTHER = 30, COST_LACKING = 24, COST_TOO_MANY = 32, COST_NO_TYPE = 12 };

/* How a cell of the table was reached: the word was passed over, the slot was, neither fits the other, or both fit. */
enum step { STEP_EXTRA, STEP_SKIP, STEP_OTHER, STEP_FITS };
typedef struct cell {
	uint16_t cost, mod;
	uint8_t step, words;
} cell;

typedef struct aligning {
	const arch_form *f;
	const char *text;
	size_t end;
	uint16_t word[MOST_WORDS + 1]; /* where each begins, behind its dot; the last: behind all */
	unsigned nword, nslot;
	near_slot slot[MOST_SLOTS];
} aligning;

static size_t word_length(const aligning *a, unsigned w) { return a->word[w + 1] - a->word[w] - 1u; }

static void add_words(aligning *a, const char *s)
{
	while (*s && a->nslot < MOST_SLOTS) {
		s += *s == '.';
		size_t n = strcspn(s, ".");
		a->slot[a->nslot++] = (near_slot){ s, (uint8_t)n, ARCH_NO };
		s += n;
	}
}

static void add_slots(aligning *a)
{
	for (unsigned i = 0; i < a->f->ngroup; i++) {
		const arch_group *g = &arch_groups[a->f->group + i];
		add_words(a, g->prefix);
		if (!g->behind && a->nslot < MOST_SLOTS)
			a->slot[a->nslot++] = (near_slot){ NULL, 0, (uint8_t)i };
	}
	add_words(a, a->f->tail);
}

static void split(aligning *a, const char *text, size_t n)
{
	a->text = text;
	a->end = n;
	a->word[a->nword++] = 0;
	for (size_t i = 0; i < n && a->nword < MOST_WORDS; i++)
		if (text[i] == '.')
			a->word[a->nword++] = (uint16_t)(i + 1);
	a->word[a->nword] = (uint16_t)(n + 1);
}

/* The words from number w on that are the text; 0: they are not. */
static unsigned words_are(const aligning *a, unsigned w, const char *s, size_t n)
{
	size_t at = a->word[w];

	if (at + n > a->end || memcmp(a->text + at, s, n))
		return 0;
	for (unsigned i = w + 1; i <= a->nword; i++)
		if (a->word[i] == at + n + 1)
			return i - w;
	return 0;
}

static unsigned distance(const aligning *a, unsigned w, const char *s, size_t n)
{
	char mine[48], other[48];
	size_t len = word_length(a, w);

	if (len >= sizeof mine || n >= sizeof other)
		return (unsigned)MAX(len, n);
	memcpy(mine, a->text + a->word[w], len);
	memcpy(other, s, n);
	mine[len] = other[n] = 0;
	return text_distance(mine, other);
}

/* A letter or two of it are wrong, but not half of it. */
static bool is_misspelt(const aligning *a, unsigned w, const char *s, size_t n)
{
	size_t len = word_length(a, w);
	bool type = arch_type_of(a->text + a->word[w], len) != CPTX_TYPE_NONE;

	return !type && len > 2 && distance(a, w, s, n) <= (len > 5 ? 2u : 1u);
}

/* Is the word a value of another group of the form? */
static bool is_value(const aligning *a, unsigned but, unsigned w)
{
	for (unsigned i = 0; i < a->f->ngroup; i++) {
		const arch_group *g = &arch_groups[a->f->group + i];
		for (unsigned k = 0; i != but && g->kind != GROUP_REPEAT && k < g->nalt; k++)
			if (words_are(a, w, arch_mods[arch_alts[g->alt + k].mod].name, arch_mods[arch_alts[g->alt + k].mod].len))
				return true;
	}
	return false;
}

static unsigned other_cost(const aligning *a, const near_slot *s, unsigned w)
{
	const arch_group *g = s->group == ARCH_NO ? NULL : &arch_groups[a->f->group + s->group];
	bool type = arch_type_of(a->text + a->word[w], word_length(a, w)) != CPTX_TYPE_NONE;

	if (!g && is_misspelt(a, w, s->text, s->len))
		return COST_MISSPELT;
	if (!g && is_value(a, ARCH_NO, w))
		return COST_OTHER + COST_NO_TYPE;
	if (!g)
		return COST_OTHER + (type != (arch_type_of(s->text, s->len) != CPTX_TYPE_NONE) ? COST_NO_TYPE : 0);
	for (unsigned i = 0; i < g->nalt; i++) {
		const arch_mod *m = &arch_mods[arch_alts[g->alt + i].mod];
		if (is_misspelt(a, w, m->name, m->len))
			return COST_MISSPELT;
	}
	if (g->kind == GROUP_OPTIONAL || (g->nalt == 1 && !g->is_type))
		return COST_TOO_MANY; /* nobody asked for it */
	return COST_OTHER + (type != g->is_type || is_value(a, s->group, w) ? COST_NO_TYPE : 0);
}

static void reach(cell *c, unsigned cost, enum step step, unsigned mod, unsigned words)
{
	if (cost < c->cost)
		*c = (cell){ (uint16_t)cost, (uint16_t)mod, (uint8_t)step, (uint8_t)words };
}

/* All that can follow when slots 0 to s - 1 and words 0 to w - 1 have been dealt with. */
static void go_on(const aligning *a, cell row[][MOST_WORDS + 1], unsigned s, unsigned w)
{
	unsigned cost = row[s][w].cost;

	if (w < a->nword)
		reach(&row[s][w + 1], cost + COST_TOO_MANY, STEP_EXTRA, 0, 1);
	if (s == a->nslot)
		return;
	const near_slot *slot = &a->slot[s];
	const arch_group *g = slot->group == ARCH_NO ? NULL : &arch_groups[a->f->group + slot->group];
	if (w < a->nword && !g && words_are(a, w, slot->text, slot->len))
		reach(&row[s + 1][w + 1], cost, STEP_FITS, 0, 1);
	const arch_group *of = g && g->kind == GROUP_REPEAT ? &arch_groups[a->f->group + g->same] : g;
	for (unsigned i = 0; w < a->nword && of && i < of->nalt; i++) {
		unsigned mod = arch_alts[of->alt + i].mod, n = words_are(a, w, arch_mods[mod].name, arch_mods[mod].len);
		if (n)
			reach(&row[s + 1][w + n], cost, STEP_FITS, mod, n);
	}
	if (w < a->nword && w) /* the first word is that of the form */
		reach(&row[s + 1][w + 1], cost + other_cost(a, slot, w), STEP_OTHER, 0, 1);
	reach(&row[s + 1][w], cost + (g && g->kind == GROUP_OPTIONAL ? 0u : (unsigned)COST_LACKING), STEP_SKIP, 0, 0);
}

static void add(near_words *out, enum near_word kind, unsigned slot, unsigned word, const aligning *a)
{
	if (out->nfault == NEAR_FAULTS)
		return;
	near_fault *f = &out->fault[out->nfault++];
	f->kind = (uint8_t)kind;
	f->slot = (uint8_t)slot;
	f->at = (uint16_t)(word < a->nword ? a->word[word] : a->end + 1);
	f->len = (uint16_t)(word < a->nword ? word_length(a, word) : 0);
}

/* Back along the cheapest way; faults in the order of the text. */
static void walk(const aligning *a, cell row[][MOST_WORDS + 1], unsigned s, unsigned w, near_words *out)
{
	if (!s && !w)
		return;
	cell c = row[s][w];
	unsigned from = c.step == STEP_EXTRA ? s : s - 1;
	walk(a, row, from, w - c.words, out);
	unsigned group = from < s ? a->slot[from].group : ARCH_NO;
	const arch_group *g = group == ARCH_NO ? NULL : &arch_groups[a->f->group + group];
	if (c.step == STEP_EXTRA)
		add(out, WORD_EXTRA, 0, w - 1, a);
	else if (c.step == STEP_OTHER)
		add(out, WORD_OTHER, from, w - 1, a);
	else if (c.step == STEP_SKIP && !(g && g->kind == GROUP_OPTIONAL))
		add(out, WORD_MISSING, from, w, a);
	else if (c.step == STEP_FITS && g)
		out->mods[group] = c.mod;
}

void near_align(unsigned form, const char *text, size_t n, near_words *out)
{
	cell row[MOST_SLOTS + 1][MOST_WORDS + 1];
	aligning a = { .f = &arch_forms[form] };

	memset(out, 0, sizeof *out);
	split(&a, text, MIN(n, (size_t)NEAR_TEXT));
	add_slots(&a);
	for (unsigned s = 0; s <= a.nslot; s++)
		for (unsigned w = 0; w <= a.nword; w++)
			row[s][w].cost = FAR;
	row[0][0].cost = 0;
	for (unsigned s = 0; s <= a.nslot; s++)
		for (unsigned w = 0; w <= a.nword; w++)
			go_on(&a, row, s, w);
	out->form = (uint16_t)form;
	out->cost = row[a.nslot][a.nword].cost;
	out->nslot = (uint8_t)a.nslot;
	memcpy(out->slot, a.slot, a.nslot * sizeof *a.slot);
	walk(&a, row, a.nslot, a.nword, out);
}
