/* SPDX-License-Identifier: MIT */
/* Aligns the words of a spelling with those of a form, like an edit distance: which words are missing, too many, or
 * different. */
#include "parse/near.h"

enum { FAR = UINT16_MAX / 2 };
/*
 * Costs, in the units of arch/near.c.  A word of the instruction's name costs more than one that all its forms have; a wrong
 * word in the place of a value costs less if it looks like that value, or is a value elsewhere.
 */
enum {
	COST_MISSPELT = 6,
	COST_NEARLY = 25, /* the word looks like the value, and is a value elsewhere */
	COST_TYPE = 26,
	COST_BELONGS = 28,
	COST_OTHER = 30,
	COST_TURNED = 27, /* two types that stand in each other's place: one mistake */
	COST_STRANGE = 36,
	COST_OTHER_NAME = 48,
	COST_LACKING = 24,
	COST_LACKING_FIXED = 13,
	COST_LACKING_NAME = 40,
	COST_TOO_MANY = 32
};

/* How a cell of the table was reached: the word was skipped, the slot was skipped, they differ, they match, or two words do
 * with two slots the other way round. */
enum step { STEP_EXTRA, STEP_SKIP, STEP_OTHER, STEP_FITS, STEP_TURNED };
typedef struct cell {
	uint16_t cost, mod; /* mod: of STEP_TURNED the first slot */
	uint8_t step, words;
} cell;

typedef struct aligning {
	const arch_form *f;
	const near_text *t;
	unsigned nslot, nname /* nname: the first slots, which are the instruction's name */;
	near_slot slot[NEAR_SLOTS];
} aligning;

static size_t word_length(const near_text *t, unsigned w) { return t->word[w + 1] - t->word[w] - 1u; }

static void add_words(aligning *a, const char *s)
{
	while (*s && a->nslot < NEAR_SLOTS) {
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
		if (!g->behind && a->nslot < NEAR_SLOTS)
			a->slot[a->nslot++] = (near_slot){ NULL, 0, (uint8_t)i };
	}
	add_words(a, a->f->tail);
}

/* Counts the slots whose words are those of the call's name. */
static void count_name(aligning *a)
{
	const char *name = arch_ops[a->f->op].name;

	for (; a->nname < a->nslot && a->slot[a->nname].text; a->nname++) {
		const near_slot *s = &a->slot[a->nname];
		if (strncmp(name, s->text, s->len) || (name[s->len] && name[s->len] != '_'))
			return;
		name += s->len + (name[s->len] == '_');
	}
}

/* How many words from number w on are the text s; 0: they are not. */
static unsigned words_are(const near_text *t, unsigned w, const char *s, size_t n)
{
	size_t at = t->word[w];

	if (at + n > t->n || memcmp(t->text + at, s, n))
		return 0;
	for (unsigned i = w + 1; i <= t->nword; i++)
		if (t->word[i] == at + n + 1)
			return i - w;
	return 0;
}

static unsigned distance(const near_text *t, unsigned w, const char *s, size_t n)
{
	char mine[48], other[48];
	size_t len = word_length(t, w);

	if (len >= sizeof mine || n >= sizeof other)
		return (unsigned)MAX(len, n);
	memcpy(mine, t->text + t->word[w], len);
	memcpy(other, s, n);
	mine[len] = other[n] = 0;
	return text_distance(mine, other);
}

/* The letters of a word, a bit for each; some share one. */
static uint32_t letters(const char *s, size_t n)
{
	uint32_t set = 0;

	for (size_t i = 0; i < n; i++)
		set |= 1u << (s[i] & 31);
	return set;
}

/* Whether the distance is above `most` by the lengths, or by the letters that one word has and the other lacks: most are. */
static bool is_far(const near_text *t, unsigned w, const char *s, size_t n, unsigned most)
{
	const size_t len = word_length(t, w);

	if (MAX(len, n) - MIN(len, n) > most)
		return true;
	const uint32_t mine = letters(t->text + t->word[w], len), other = letters(s, n);
	return (unsigned)MAX(__builtin_popcount(mine & ~other), __builtin_popcount(other & ~mine)) > most;
}

/*
 * The cost of a word in the place of s: a letter or two may be wrong, but not half of the word.  A word that some form of
 * the instruction has is not misspelt, and neither is a type.
 */
static unsigned word_cost(const near_text *t, unsigned w, const char *s, size_t n)
{
	const size_t len = word_length(t, w);
	const unsigned slips = t->field[w][0] || len < 3 ? 0 : len > 5 ? 2 : 1, most = MAX(slips, (unsigned)len / 2);

	if (t->is_type[w] || is_far(t, w, s, n, most))
		return COST_STRANGE;
	const unsigned d = distance(t, w, s, n);
	return slips && d <= slips ? COST_MISSPELT : d <= len / 2 ? COST_OTHER : COST_STRANGE;
}

static bool belongs(const near_text *t, unsigned w, const char *field)
{
	for (unsigned i = 0; i < NEAR_FIELDS && t->field[w][i]; i++)
		if (!strcmp(t->field[w][i], field))
			return true;
	return false;
}

static unsigned group_cost(const aligning *a, unsigned group, unsigned w)
{
	const arch_group *g = &arch_groups[a->f->group + group];
	unsigned cost = COST_STRANGE;

	for (unsigned i = 0; i < g->nalt; i++) {
		const arch_mod *m = &arch_mods[arch_alts[g->alt + i].mod];
		cost = MIN(cost, word_cost(a->t, w, m->name, m->len));
	}
	if (cost > COST_MISSPELT && g->nalt > 1 && belongs(a->t, w, arch_ops[a->f->op].field[g->field]))
		cost = cost == COST_OTHER ? COST_NEARLY : COST_BELONGS;
	if (cost > COST_TYPE && a->t->is_type[w] && g->is_type)
		cost = COST_TYPE;
	/* a value that may be left out was not asked for */
	return g->kind == GROUP_OPTIONAL && cost == COST_STRANGE ? COST_TOO_MANY + 1 : cost;
}

static unsigned other_cost(const aligning *a, unsigned s, unsigned w)
{
	const near_slot *slot = &a->slot[s];

	if (slot->group != ARCH_NO)
		return group_cost(a, slot->group, w);
	unsigned cost = word_cost(a->t, w, slot->text, slot->len);
	if (cost > COST_MISSPELT && s < a->nname)
		return COST_OTHER_NAME;
	bool type = arch_type_of(slot->text, slot->len) != CPTX_TYPE_NONE;
	return cost > COST_OTHER && type == a->t->is_type[w] && !a->t->field[w][0] ? COST_OTHER : cost;
}

static unsigned lacking_cost(const aligning *a, unsigned s)
{
	const arch_group *g = a->slot[s].group == ARCH_NO ? NULL : &arch_groups[a->f->group + a->slot[s].group];

	if (g)
		return g->kind == GROUP_OPTIONAL ? 0 : COST_LACKING;
	return s < a->nname ? COST_LACKING_NAME : COST_LACKING_FIXED;
}

static void reach(cell *c, unsigned cost, enum step step, unsigned mod, unsigned words)
{
	if (cost < c->cost)
		*c = (cell){ (uint16_t)cost, (uint16_t)mod, (uint8_t)step, (uint8_t)words };
}

/* The value of a slot's group of types that word number w is; 0: none. */
static unsigned type_at(const aligning *a, unsigned s, unsigned w)
{
	const arch_group *g = a->slot[s].group == ARCH_NO ? NULL : &arch_groups[a->f->group + a->slot[s].group];

	for (unsigned i = 0; g && g->is_type && i < g->nalt; i++) {
		const arch_mod *m = &arch_mods[arch_alts[g->alt + i].mod];
		if (words_are(a->t, w, m->name, m->len) == 1)
			return arch_alts[g->alt + i].mod;
	}
	return 0;
}

/* Words w and w + 1 as the types of slot s and of the next that has types, the other way round. */
static void turn(const aligning *a, cell row[][NEAR_WORDS + 1], unsigned s, unsigned w)
{
	unsigned to = s + 1;

	if (!w || w + 1 >= a->t->nword || !type_at(a, s, w + 1) || type_at(a, s, w + 1) == type_at(a, s, w))
		return;
	while (to < a->nslot && !lacking_cost(a, to) && !type_at(a, to, w))
		to++;
	if (to < a->nslot && type_at(a, to, w))
		reach(&row[to + 1][w + 2], row[s][w].cost + COST_TURNED, STEP_TURNED, s, 2);
}

/* Reaches all cells that can follow when slots 0 to s - 1 and words 0 to w - 1 are aligned. */
static void go_on(const aligning *a, cell row[][NEAR_WORDS + 1], unsigned s, unsigned w)
{
	unsigned cost = row[s][w].cost;
	bool more = w < a->t->nword;

	if (more)
		reach(&row[s][w + 1], cost + COST_TOO_MANY, STEP_EXTRA, 0, 1);
	if (s == a->nslot)
		return;
	const near_slot *slot = &a->slot[s];
	const arch_group *g = slot->group == ARCH_NO ? NULL : &arch_groups[a->f->group + slot->group];
	if (more && !g && words_are(a->t, w, slot->text, slot->len))
		reach(&row[s + 1][w + 1], cost, STEP_FITS, 0, 1);
	const arch_group *of = g && g->kind == GROUP_REPEAT ? &arch_groups[a->f->group + g->same] : g;
	for (unsigned i = 0; more && of && i < of->nalt; i++) {
		unsigned mod = arch_alts[of->alt + i].mod, n = words_are(a->t, w, arch_mods[mod].name, arch_mods[mod].len);
		if (n)
			reach(&row[s + 1][w + n], cost, STEP_FITS, mod, n);
	}
	turn(a, row, s, w);
	if (more && w) /* the first word is the form's by the choice of the form */
		reach(&row[s + 1][w + 1], cost + other_cost(a, s, w), STEP_OTHER, 0, 1);
	reach(&row[s + 1][w], cost + lacking_cost(a, s), STEP_SKIP, 0, 0);
}

static void add(near_words *out, enum near_word kind, unsigned slot, unsigned word, const near_text *t)
{
	if (out->nfault == NEAR_FAULTS)
		return;
	near_fault *f = &out->fault[out->nfault++];
	f->kind = (uint8_t)kind;
	f->slot = (uint8_t)slot;
	f->at = (uint16_t)(word < t->nword ? t->word[word] : t->n + 1);
	f->len = (uint16_t)(word < t->nword ? word_length(t, word) : 0);
}

static void add_turned(const aligning *a, unsigned first, unsigned second, unsigned w, near_words *out)
{
	arch_set_value(a->f, out->mods, a->slot[first].group, type_at(a, first, w + 1));
	arch_set_value(a->f, out->mods, a->slot[second].group, type_at(a, second, w));
	if (out->nfault == NEAR_FAULTS)
		return;
	add(out, WORD_TURNED, first, w, a->t);
	out->fault[out->nfault - 1].len = (uint16_t)(word_length(a->t, w) + 1 + word_length(a->t, w + 1));
}

/* Walks back along the cheapest alignment, and lists the faults in the order of the text. */
static void trace_back(const aligning *a, cell row[][NEAR_WORDS + 1], unsigned s, unsigned w, near_words *out)
{
	if (!s && !w)
		return;
	cell c = row[s][w];
	unsigned from = c.step == STEP_EXTRA ? s : c.step == STEP_TURNED ? c.mod : s - 1;
	trace_back(a, row, from, w - c.words, out);
	unsigned group = from < s ? a->slot[from].group : ARCH_NO;
	const arch_group *g = group == ARCH_NO ? NULL : &arch_groups[a->f->group + group];
	if (c.step == STEP_EXTRA)
		add(out, WORD_EXTRA, 0, w - 1, a->t);
	else if (c.step == STEP_OTHER)
		add(out, WORD_OTHER, from, w - 1, a->t);
	else if (c.step == STEP_TURNED)
		add_turned(a, from, s - 1, w - 2, out);
	else if (c.step == STEP_SKIP && !(g && g->kind == GROUP_OPTIONAL))
		add(out, WORD_MISSING, from, w, a->t);
	else if (c.step == STEP_FITS && g && g->kind == GROUP_REPEAT && !out->mods[g->same]) /* one of the two is missing */
		out->mods[g->same] = out->mods[group] = c.mod;
	else if (c.step == STEP_FITS && g && g->kind == GROUP_REPEAT && c.mod != out->mods[g->same])
		out->cost = (uint16_t)(out->cost + COST_OTHER), add(out, WORD_OTHER, from, w - c.words, a->t);
	else if (c.step == STEP_FITS && g)
		out->mods[group] = c.mod;
}

static void note_field(near_text *t, unsigned w, const char *field)
{
	unsigned n = 0;

	while (n < NEAR_FIELDS && t->field[w][n] && strcmp(t->field[w][n], field))
		n++;
	if (n < NEAR_FIELDS)
		t->field[w][n] = field;
}

static void note_fields(near_text *t, const arch_form *f)
{
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; g->kind != GROUP_REPEAT && a < g->nalt; a++)
			for (unsigned w = 1; w < t->nword; w++) {
				const arch_mod *m = &arch_mods[arch_alts[g->alt + a].mod];
				if (words_are(t, w, m->name, m->len))
					note_field(t, w, arch_ops[f->op].field[g->field]);
			}
	}
}

void near_read(const char *text, size_t n, near_text *t)
{
	unsigned count;
	const uint16_t *forms = arch_forms_of(text, n, &count);

	memset(t, 0, sizeof *t);
	t->text = text;
	t->n = MIN(n, (size_t)NEAR_TEXT);
	t->nword = 1;
	for (size_t i = 0; i < t->n && t->nword < NEAR_WORDS; i++)
		if (text[i] == '.')
			t->word[t->nword++] = (uint16_t)(i + 1);
	t->word[t->nword] = (uint16_t)(t->n + 1);
	for (unsigned w = 0; w < t->nword; w++)
		t->is_type[w] = arch_type_of(text + t->word[w], word_length(t, w)) != CPTX_TYPE_NONE;
	for (unsigned i = 0; i < count; i++)
		note_fields(t, &arch_forms[forms[i]]);
}

void near_align(unsigned form, const near_text *t, near_words *out)
{
	cell row[NEAR_SLOTS + 1][NEAR_WORDS + 1];
	aligning a = { .f = &arch_forms[form], .t = t };

	memset(out, 0, sizeof *out);
	out->form = (uint16_t)form;
	add_slots(&a);
	count_name(&a);
	out->nslot = (uint8_t)a.nslot;
	memcpy(out->slot, a.slot, a.nslot * sizeof *a.slot);
	if (parse_opcode(form, t->text, t->n, out->mods) || parse_opcode_any(form, t->text, t->n, out->mods))
		return;
	memset(out->mods, 0, sizeof out->mods);
	for (unsigned s = 0; s <= a.nslot; s++)
		for (unsigned w = 0; w <= t->nword; w++)
			row[s][w].cost = FAR;
	row[0][0].cost = 0;
	for (unsigned s = 0; s <= a.nslot; s++)
		for (unsigned w = 0; w <= t->nword; w++)
			go_on(&a, row, s, w);
	out->cost = row[a.nslot][t->nword].cost;
	trace_back(&a, row, a.nslot, t->nword, out);
}
