/* SPDX-License-Identifier: MIT */
/* Plans: the finished pieces that usual lines are copied from (line.c), for each form, modifiers and kinds of operands. */
#include "emit/plan.h"

#include "base/atomic.h"

/* What stands between the text of an operand and the next text that is not always the same.  It is written from its end on.
 */
enum { FIXED_MOST = 64 };
typedef struct fixed_text {
	char s[FIXED_MOST + PIECE_BEHIND]; /* what is behind the text may be copied */
	unsigned from;
} fixed_text;

/* Puts text in front of what there is; what does not fit is left out, which makes the text too long for any plan. */
static inline void put_in_front(fixed_text *t, const char *s, size_t n)
{
	n = MIN(n, (size_t)t->from);
	t->from -= (unsigned)n;
	memcpy(t->s + t->from, s, n);
}
#define PUT_IN_FRONT(t, literal) put_in_front((t), "" literal, sizeof(literal) - 1)
static inline unsigned fixed_length(const fixed_text *t) { return FIXED_MOST - t->from; }

/* Whether operands of a kind can be printed by a plan. */
static bool is_plannable(unsigned kind) { return kind != CPTX_VAL_NONE && kind != CPTX_VAL_BAD; }

/* Whether an operand that is there is printed in another way than between commas, or in brackets of its own. */
static bool is_odd_there(const arch_operand *o, const uint16_t *mods)
{
	return o->flags & (OPERAND_INSIDE | OPERAND_MORE) || (o->behind != ARCH_NO && mods[o->behind]);
}

/* Demands these bits of the word of operand i. */
static void plan_kind(line_plan *p, unsigned i, uint32_t word, uint32_t bits)
{
	uint64_t *kind = i < PIECES ? &p->kind[i / 2] : &p->wide_kind, *mask = i < PIECES ? &p->kind_mask[i / 2] : &p->wide_mask;

	*kind |= (uint64_t)(word & bits) << i % 2 * 32;
	*mask |= (uint64_t)bits << i % 2 * 32;
}
_Static_assert(MOST_PIECES == PIECES + 2, "wide_kind has the operands behind the usual ones");

/* Plans the text of operand i, which the table describes by `o`. */
static void plan_text(line_plan *p, unsigned i, const arch_operand *o, uint32_t word)
{
	int64_t v = ir_word_is(word, CPTX_VAL_INT) ? ir_word_int(word) : -1;
	line_piece *piece = &p->piece[i];

	piece->brace = o->brace;
	if (ir_word_is(word, CPTX_VAL_REG) && !o->brace) {
		piece->table = TABLE_REGS;
		piece->mask = ~(((uint32_t)1 << NAME_SHIFT) - 1);
	} else if (v >= 0 && v < NUMBERS && !o->brace) {
		piece->table = TABLE_NUMBERS;
		piece->mask = (NUMBERS - 1) << NAME_SHIFT;
		plan_kind(p, i, word, UINT32_MAX << (WORD_NUMBER + NUMBERS_LOG));
	} else {
		p->others |= (uint8_t)(1 << i);
	}
}

/*
 * Plans the operands, the last one first; `behind` becomes what stands in front of the first.  A special register is part of
 * the text, for it was checked with the item, but where a shape has any.  False where an operand is printed in a way that
 * lines are not planned for.
 */
static bool plan_operands(line_plan *p, const ir_item *it, fixed_text *behind)
{
	const arch_operand *o = &arch_operands[arch_forms[it->form].operand];
	const uint32_t *words = ir_words(it);
	unsigned first = 0;

	while (first < it->noperand && !words[first])
		first++;
	PUT_IN_FRONT(behind, ";\n");
	for (unsigned i = it->noperand; i-- > 0;) {
		bool whole = ir_word_is_whole(words[i]), address = o[i].kind == OPERAND_ADDR;
		unsigned kind = ir_word_kind(words[i]);
		plan_kind(p, i, words[i], (1u << (whole ? 2 * WORD_KIND : WORD_KIND)) - 1); /* a whole value's kind is above */
		if (!words[i])
			continue;
		if (!is_plannable(kind) || is_odd_there(o + i, ir_mods(it)))
			return false;
		if (address)
			PUT_IN_FRONT(behind, "]");
		const char *special = kind == CPTX_VAL_SREG && !whole && !it->shaped ? arch_sregs[words[i] >> WORD_NUMBER].text : "";
		if (*special)
			plan_kind(p, i, words[i], UINT32_MAX);
		if (*special && i != first && fixed_length(behind) + strlen(special) + 2 <= PIECE_BEHIND) {
			put_in_front(behind, special, strlen(special));
		} else {
			plan_text(p, i, o + i, words[i]);
			p->piece[i].len = (uint8_t)fixed_length(behind);
			if (fixed_length(behind) > PIECE_BEHIND)
				return false;
			memcpy(p->piece[i].behind, behind->s + behind->from, PIECE_BEHIND);
			behind->from = FIXED_MOST;
		}
		if (address)
			PUT_IN_FRONT(behind, "[");
		if (i != first)
			put_in_front(behind, o[i].flags & OPERAND_PIPE ? "|" : ", ", o[i].flags & OPERAND_PIPE ? 1 : 2);
	}
	return true;
}

/* Whether items with this spelling can have a plan, if their operands can. */
static bool may_be_planned(const ir_item *it, const spelling *s)
{
	return !s->asks && it->noperand <= MOST_PIECES && it->nmod <= PIECES_MODS && s->len < PIECES_FRONT;
}

/* Makes the plan of an item with this spelling; false where it has none. */
static bool make_plan(line_plan *p, const ir_item *it, const char *opcode, const spelling *s)
{
	fixed_text behind; /* the opcode */
	size_t len = s->len;

	*p = (line_plan){ .shape = line_shape(it), .npiece = (uint8_t)MAX(it->noperand, (unsigned)PIECES) };
	behind.from = FIXED_MOST;
	memset(behind.s + FIXED_MOST, 0, PIECE_BEHIND);
	if (!plan_operands(p, it, &behind))
		return false;
	p->simple = !p->others && p->npiece <= PIECES;
	p->nmods = (uint8_t)((it->nmod + 3) / 4);
	for (unsigned i = 0; i < it->nmod; i += 4) {
		uint64_t *mods = i ? &p->mod[i / 4 - 1] : &p->first_mods, *mask = i ? &p->mod_mask[i / 4 - 1] : &p->first_mask;
		*mods = arch_four_mods(ir_mods(it) + i, it->nmod - i);
		*mask = it->nmod - i < 4 ? (UINT64_C(1) << 16 * (it->nmod - i)) - 1 : UINT64_MAX;
	}
	const unsigned n = fixed_length(&behind);
	const char *rest = behind.s + behind.from;
	len -= n && *rest == ';'; /* no blank stands in front of the end */
	if (len + n > PIECES_FRONT)
		return false;
	memcpy(p->front, opcode, len);
	memcpy(p->front + len, rest, n);
	p->front_len = (uint8_t)(len + n);
	return true;
}

void emit_begin_shapes(emitter *e)
{
	cptx_ptx *out = e->out;
	uint32_t n = e->m->nshape + 1;

	if (!arena_reserve(&out->work, &out->shaped, out->nshaped, &out->cap_shaped, sizeof *out->shaped, n))
		return;
	void **printer = &((cptx_module *)(uintptr_t)e->m)->printer;
	bool same = out->shaped_module == e->m && out->shaped_target == e->target && atomic_pointer(printer) == out;
	for (uint32_t i = 0; i < n; i++)
		out->shaped[i].ready =
			same && i < out->nshaped && out->shaped[i].ready && out->shaped[i].version ? PLAN_EARLIER : PLAN_NONE;
	out->shaped_module = e->m;
	atomic_set_pointer(printer, out);
	out->shaped_target = e->target;
	out->nshaped = n;
	e->shapes = true;
}

/* Makes an empty table of plans, in the size that the module needs; false when memory is short. */
static bool begin_plans(emitter *e)
{
	cptx_ptx *out = e->out;
	unsigned log = e->m->parsed ? LINES_LOG : LINES_BUILT_LOG;
	size_t size = ((size_t)1 << log) + LINES_NEAR;

	if (!arena_reserve(&out->work, &out->plan_at, 0, &out->cap_plan_at, sizeof *out->plan_at, size))
		return false;
	memset(out->plan_at, 0, size * sizeof *out->plan_at);
	e->lines_log = log;
	return true;
}

/* The place for a plan, which may be that of another one; NULL: there is none.  The plan of that number has memory. */
static uint16_t *room_for_plan(emitter *e, uint32_t tag)
{
	cptx_ptx *out = e->out;

	if (!e->nplan && !begin_plans(e))
		return NULL;
	uint16_t *place = &out->plan_at[tag >> (32 - e->lines_log)], *first = place;
	while (*place && place < first + LINES_NEAR - 1)
		place++;
	if (*place)
		return first;
	size_t used = out->cap_plan ? e->nplan + 1 : 0; /* numbers begin at 1 */
	return arena_reserve(&out->work, &out->plan, used, &out->cap_plan, sizeof *out->plan, e->nplan + 2) ? place : NULL;
}

/* Whether an item with this tag was asked for before, or one like it.  In a module that was built most items without a shape
 * are the first of their kind, and the others have one. */
static bool is_seen_again(emitter *e, uint32_t tag)
{
	uint64_t bit = UINT64_C(1) << (tag >> 26);
	bool seen = e->seen & bit;

	e->seen |= bit;
	return seen || e->m->parsed;
}

void emit_note_plan(emitter *e, const ir_item *it, const spelling *s)
{
	cptx_ptx *out = e->out;
	uint32_t tag = line_tag(it, (const char *)ir_words(it));
	line_plan p;

	if (!may_be_planned(it, s) || !is_seen_again(e, tag) || !make_plan(&p, it, out->spelled.p + s->text, s))
		return;
	p.tag = tag;
	uint16_t *place = room_for_plan(e, p.tag);
	if (!place)
		return;
	*place = *place ? *place : (uint16_t)++e->nplan;
	out->plan[*place] = p;
}

bool emit_plan_shape(emitter *e, const ir_item *it)
{
	line_plan *p = &e->out->shaped[it->shape->number];
	char opcode[OPCODE_MOST + 1];
	spelling s;

	if (p->ready != PLAN_NONE)
		return true;
	if (!emit_spell_once(e, it, &s, opcode))
		return false;
	bool made = may_be_planned(it, &s) && make_plan(p, it, opcode, &s);
	p->ready = made ? PLAN_READY : PLAN_NEVER;
	p->version = e->out->once || !made ? 0 : (uint8_t)emit_lasting_version(e, it);
	return true;
}
