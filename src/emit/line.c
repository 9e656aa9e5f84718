/* SPDX-License-Identifier: MIT */
/*
 * Usual lines: instructions whose operands are all registers and small numbers are copied from finished pieces, by a plan
 * for each form, modifiers and kinds of operands.  Copying a line has no branch on what the operands are, which would be
 * mispredicted again and again, and all its copies have fixed lengths.  All else is printed by insn.c.
 */
#include "emit/plan.h"

/* Texts of small numbers, in the layout of register names. */
#define ONE(a)                                                                                                              \
	{                                                                                                                       \
#a, sizeof #a - 1                                                                                                   \
	}
#define TEN(a) ONE(a##0), ONE(a##1), ONE(a##2), ONE(a##3), ONE(a##4), ONE(a##5), ONE(a##6), ONE(a##7), ONE(a##8), ONE(a##9)
#define HUNDRED(a)                                                                                                          \
	TEN(a##0), TEN(a##1), TEN(a##2), TEN(a##3), TEN(a##4), TEN(a##5), TEN(a##6), TEN(a##7), TEN(a##8), TEN(a##9)
static const reg_name numbers[NUMBERS] = { ONE(0),     ONE(1),     ONE(2),     ONE(3),     ONE(4),     ONE(5),
	                                       ONE(6),     ONE(7),     ONE(8),     ONE(9),     TEN(1),     TEN(2),
	                                       TEN(3),     TEN(4),     TEN(5),     TEN(6),     TEN(7),     TEN(8),
	                                       TEN(9),     HUNDRED(1), HUNDRED(2), HUNDRED(3), HUNDRED(4), HUNDRED(5),
	                                       HUNDRED(6), HUNDRED(7), HUNDRED(8), HUNDRED(9), TEN(100),   TEN(101),
	                                       ONE(1020),  ONE(1021),  ONE(1022),  ONE(1023) };
_Static_assert(sizeof(reg_name) == 1 << NAME_SHIFT, "places in tables are computed by shifts");
static const reg_name empty_name = { "", 0 };

/* Bytes that are written for a line, but for the texts of operands that are put together. */
enum { LINE_ROOM = 4 + PIECES_FRONT + sizeof(reg_name) + MOST_PIECES * (sizeof(reg_name) + PIECE_BEHIND) };

/* What printing lines keeps in registers. */
typedef struct line_printer {
	const char *table[LINE_TABLES];
	char *p;                     /* the place in the text */
	line_entry *map;             /* the place in the map */
	uint32_t left;               /* lines that there is room for */
	uint32_t line;               /* number of the next line */
	uint32_t run_line, run_file; /* where the last line came from */
} line_printer;

/* Not 0 where the first operands are of other kinds than the plan has. */
static inline uint64_t other_kinds(const line_plan *p, const char *words)
{
	uint64_t kind[PIECES / 2];

	memcpy(kind, words, sizeof kind);
	return ((kind[0] ^ p->kind[0]) & p->kind_mask[0]) | ((kind[1] ^ p->kind[1]) & p->kind_mask[1]);
}

/* Whether operands are of the kinds that the plan has, and `other` is 0. */
static inline bool is_of_kinds(const line_plan *p, const char *words, uint64_t other)
{
	uint64_t wide;

	other |= other_kinds(p, words);
	if (other | (p->npiece <= PIECES))
		return !other;
	memcpy(&wide, words + sizeof p->kind, sizeof wide);
	return !((wide ^ p->wide_kind) & p->wide_mask);
}

/* Whether the item is one of the plan: has its form, modifiers and kinds of operands. */
static inline bool is_planned(const line_plan *p, const ir_item *it, const char *words)
{
	const char *mods = words + it->noperand * sizeof(uint32_t);
	uint64_t mod, other;

	memcpy(&mod, mods, sizeof mod);
	other = ((mod ^ p->first_mods) & p->first_mask) | (line_shape(it) ^ p->shape);
	if (!is_of_kinds(p, words, other))
		return false;
	for (unsigned i = 1; i < p->nmods; i++) {
		memcpy(&mod, mods + i * sizeof mod, sizeof mod);
		other |= (mod ^ p->mod[i - 1]) & p->mod_mask[i - 1];
	}
	return !other;
}

static inline char *put_name(char *p, const char *name)
{
	memcpy(p, name, sizeof(reg_name));
	return p + ((const reg_name *)(const void *)name)->len;
}

/* put_name for a register, whose name may be a long one. */
static inline char *put_register(char *p, const emitter *e, const line_printer *to, uint32_t id)
{
	const reg_name *name = (const reg_name *)(const void *)to->table[TABLE_REGS] + id;

	return name->len == NAME_LONGER ? ir_reg_name(e->k, p, id) : put_name(p, (const char *)name);
}

static inline char *put_line_guard(char *p, const emitter *e, const line_printer *to, const ir_item *it)
{
	memcpy(p, "@!", 2);
	p += 1 + (it->flags & ITEM_NEGATED);
	p = put_register(p, e, to, it->guard - 1);
	*p++ = ' ';
	return p;
}
_Static_assert(ITEM_NEGATED == 1, "put_line_guard adds it to a place");

/* Copies operand i and what stands behind it. */
static inline char *put_piece(char *p, const char *const *table, const line_piece *piece, uint32_t word)
{
	p = put_name(p, table[piece->table] + ((word >> (WORD_NUMBER - NAME_SHIFT)) & piece->mask));
	memcpy(p, piece->behind, sizeof piece->behind);
	return p + piece->len;
}
_Static_assert((int)WORD_NUMBER >= (int)NAME_SHIFT, "put_piece shifts to the right");

static inline char *put_int(char *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return text_u64(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* Bytes that are kept for a line. */
static inline size_t room_of_line(const emitter *e) { return LINE_ROOM + (MOST_PIECES + 1) * e->own_most; }

/* Whether text of more bytes than are kept for a line may be written at p: all lines to come keep theirs. */
static inline bool has_room(const emitter *e, const line_printer *to, const char *p, size_t more)
{
	const buf *text = &e->out->text;

	return (size_t)(text->p + text->cap - p) >= more + to->left * room_of_line(e);
}

/* Writes a name and an offset; NULL where there is no room. */
static char *put_named(char *p, const emitter *e, const line_printer *to, const char *name, int64_t offset)
{
	size_t n = strlen(name);

	if (!has_room(e, to, p, n + 2 * e->own_most))
		return NULL;
	memcpy(p, name, n);
	p += n;
	*p = '+';
	return offset ? put_int(p + 1, offset) : p;
}

/* Writes operand i, whose text is put together; NULL where there is no room for all of it. */
static char *put_other(char *p, emitter *e, const line_printer *to, const ir_item *it, unsigned i, bool brace)
{
	const uint32_t *words = ir_words(it);
	const cptx_val *v = ir_word_is_whole(words[i]) ? ir_whole(words, i) : NULL;

	if (ir_word_is(words[i], CPTX_VAL_INT) && !brace)
		return put_int(p, ir_word_int(words[i]));
	if (v && v->kind == CPTX_VAL_REG && v->count == 1 && !v->space && !v->negated && !brace) { /* an address */
		p = put_register(p, e, to, v->id);
		*p = '+';
		return v->offset ? put_int(p + 1, v->offset) : p;
	}
	if (v && v->kind == CPTX_VAL_FLOAT)
		return emit_operand(e, p, it, i);
	if (v && v->kind == CPTX_VAL_SYM)
		return put_named(p, e, to, ir_symbol(e->k, v->id)->name, v->offset);
	if (ir_word_is(words[i], CPTX_VAL_LABEL) && e->k->label[words[i] >> WORD_NUMBER].name)
		return put_named(p, e, to, e->k->label[words[i] >> WORD_NUMBER].name, 0);
	if (ir_word_is(words[i], CPTX_VAL_SREG)) /* not all targets have it; what is wrong is said where lines have no plan */
		return emit_has_special(e, it, words[i] >> WORD_NUMBER) ? emit_operand(e, p, it, i) : NULL;
	if (!has_room(e, to, p, emit_operand_room(e, it, i) + e->own_most))
		return NULL;
	return emit_operand(e, p, it, i);
}

/* put_line for the operands of a plan that has others than registers and small numbers, or more of them. */
__attribute__((__noinline__)) static char *put_with_others(char *p, emitter *e, const line_printer *to,
                                                           const line_plan *plan, const ir_item *it)
{
	const uint32_t *words = ir_words(it);

	for (unsigned i = 0; i < it->noperand; i++) {
		const line_piece *piece = &plan->piece[i];
		if (plan->others >> i & 1)
			p = put_other(p, e, to, it, i, piece->brace);
		else if (piece->table == TABLE_REGS)
			p = put_register(p, e, to, ir_word_reg(words[i]));
		else
			p = put_name(p, to->table[piece->table] + ((words[i] >> (WORD_NUMBER - NAME_SHIFT)) & piece->mask));
		if (!p)
			return NULL;
		memcpy(p, piece->behind, sizeof piece->behind);
		p += piece->len;
	}
	return p;
}

/* Copies what a plan whose operands are registers and small numbers has behind a guard to p; returns its end. */
static inline char *put_pieces(char *p, const char *const *table, const line_plan *plan, const char *words)
{
	uint32_t word[PIECES];

	memcpy(word, words, sizeof word);
	memcpy(p, plan->front, PIECES_FRONT);
	p += plan->front_len;
	p = put_piece(p, table, &plan->piece[0], word[0]);
	p = put_piece(p, table, &plan->piece[1], word[1]);
	p = put_piece(p, table, &plan->piece[2], word[2]);
	return put_piece(p, table, &plan->piece[3], word[3]);
}
_Static_assert(PIECES == 4, "put_pieces names them one by one");

/* Copies a line of the plan to to->p; returns its end, or NULL where there is no room for it. */
static inline char *put_line(emitter *e, const line_printer *to, const line_plan *plan, const ir_item *it, const char *words)
{
	char *p = to->p;

	*p++ = '\t';
	if (it->guard)
		p = put_line_guard(p, e, to, it);
	if (plan->simple && !e->long_names)
		return put_pieces(p, to->table, plan, words);
	memcpy(p, plan->front, PIECES_FRONT);
	return put_with_others(p + plan->front_len, e, to, plan, it);
}

/* Notes where a line comes from, at `map`: an entry for each line that comes from elsewhere than the one before, without a
 * branch on that.  Returns the place for the next entry. */
static inline line_entry *put_origin(line_entry *map, uint32_t number, uint32_t run_line, uint32_t run_file, uint32_t line,
                                     uint32_t file)
{
	uint64_t lines = (uint64_t)line << 32 | number;

	memcpy((char *)map + offsetof(line_entry, ptx_line), &lines, sizeof lines); /* in two stores */
	memcpy((char *)map + offsetof(line_entry, file), &file, sizeof file);       /* with the step 0 */
	return map + (((run_line ^ line) | (run_file ^ file)) != 0);
}

static inline void note_origin(line_printer *to, const ir_item *it)
{
	to->map = put_origin(to->map, to->line, to->run_line, to->run_file, it->line, it->file);
	to->run_line = it->line;
	to->run_file = it->file;
}

_Static_assert(offsetof(line_entry, line) == 4 && offsetof(line_entry, step) == offsetof(line_entry, file) + 2,
               "put_origin puts them into words");

/* Leaves what was written to the emitter. */
static inline void end_lines(emitter *e, const line_printer *to, bool built)
{
	buf *text = &e->out->text, *map = &e->out->map;

	text->n = (size_t)(to->p - text->p);
	e->line = to->line;
	if (!built)
		return;
	map->n = (size_t)((char *)to->map - map->p);
	if (map->n)
		memcpy(&e->run, map->p + map->n - sizeof e->run, sizeof e->run);
}

/* Makes room for some more lines; false when memory is short. */
static bool begin_lines(emitter *e, line_printer *to, bool built)
{
	enum { AT_ONCE = 16 };
	buf *text = &e->out->text, *map = &e->out->map;

	if (e->hash)
		emit_hash_text(e);
	if (!buf_reserve(text, AT_ONCE * room_of_line(e)) || (built && !buf_reserve(map, (AT_ONCE + 1) * sizeof(line_entry))))
		return false;
	*to = (line_printer){ .table = { (const char *)&empty_name, (const char *)e->out->names, (const char *)numbers },
		                  .p = text->p + text->n,
		                  .map = map->p ? (line_entry *)(void *)(map->p + map->n)
		                                : NULL, /* only lines that were built are noted */
		                  .left = AT_ONCE,
		                  .line = e->line,
		                  .run_line = e->run.line,
		                  .run_file = e->run.step ? UINT32_MAX : e->run.file };
	return true;
}

/* The plan of an item without a shape, whose words these are; NULL: it has none yet. */
static inline const line_plan *hashed_plan(const emitter *e, const line_plan *plans, const ir_item *it, const char *words)
{
	if (!e->nplan)
		return NULL;
	const uint16_t *place = &e->out->plan_at[line_tag(it, words) >> (32 - e->lines_log)];
	for (unsigned i = 0; i < LINES_NEAR && place[i]; i++)
		if (is_planned(&plans[place[i]], it, words))
			return &plans[place[i]];
	return NULL;
}

/* Asks for the memory of the next item's plan while this one is printed: there are more plans than the nearest cache holds.
 */
static inline void fetch_plan(const emitter *e, const ir_item *next)
{
	if (!next || next->kind != ITEM_INSN || next->apart || !e->nplan)
		return;
	const uint16_t *place = &e->out->plan_at[line_tag(next, (const char *)(next + 1)) >> (32 - e->lines_log)];
	__builtin_prefetch(&e->out->plan[*place]);
	__builtin_prefetch(&e->out->plan[*place].piece);
}

/* The plan of an item that has a shape.  One of an earlier print is taken over. */
static inline const line_plan *shaped_plan(emitter *e, const ir_item *it, const char *words)
{
	if (!e->shapes)
		return NULL;
	line_plan *plan = &e->out->shaped[it->shape->number];
	if (plan->ready != PLAN_READY) {
		if (plan->ready != PLAN_EARLIER)
			return NULL;
		plan->ready = PLAN_READY;
		e->version = MAX(e->version, plan->version);
	}
	return is_of_kinds(plan, words, 0) ? plan : NULL;
}

/* Names the registers of a line of the plan as a hash wants it. */
static inline void name_for_hash(emitter *e, const line_plan *plan, const ir_item *it)
{
	if (!plan->simple) {
		emit_hash_item(e, it);
		return;
	}
	if (it->guard)
		emit_hash_use(e, it->guard - 1);
	for (unsigned i = 0; i < PIECES; i++)
		if (plan->piece[i].table == TABLE_REGS)
			emit_hash_use(e, ir_word_reg(ir_words(it)[i]));
}

/* Writes a label or comment at to->p; returns its end, or NULL where it is another item or there is no room. */
__attribute__((__noinline__)) static char *put_simple(const emitter *e, const line_printer *to, const ir_item *it)
{
	const uint32_t *words = ir_words(it);
	char *p = to->p;

	if (it->kind == ITEM_LABEL && ir_word_is(*words, CPTX_VAL_LABEL)) {
		uint32_t id = *words >> WORD_NUMBER;
		const char *name = e->k->label[id].name;
		if (!e->k->label[id].used && !name)
			return p;
		if (name)
			p = put_named(p, e, to, name, 0);
		else
			p += ir_label_name(e->k, p, id);
		if (!p)
			return NULL;
		memcpy(p, ":\n", 2);
		return p + 2;
	}
	if (it->kind != ITEM_COMMENT)
		return NULL;
	const char *text = e->k->text[ir_operand(e->k, it, 0).i];
	size_t n = strlen(text);
	if (!has_room(e, to, p, n + 8))
		return NULL;
	memcpy(p, "\t// ", 4);
	p += n ? 4 : 3;
	memcpy(p, text, n);
	p[n] = '\n';
	return p + n + 1;
}

/* Writes the line of an instruction that has a plan; its end, or NULL. */
CPTX_INLINE_ char *put_planned(emitter *e, const line_printer *to, const ir_item *it, bool built, bool names)
{
	const char *words = (const char *)(it->apart ? ir_words(it) : (const uint32_t *)(it + 1));
	const line_plan *plan = built && it->shaped ? shaped_plan(e, it, words) : hashed_plan(e, e->out->plan, it, words);

	if (!plan)
		return NULL;
	if (names)
		name_for_hash(e, plan, it);
	return put_line(e, to, plan, it, words);
}

/*
 * Prints the items of a module that was built as long as they have a shape whose plan is copied as it stands, and no guard.
 * What it counts is in variables that no call is told of, so that they stay in registers.
 */
__attribute__((__noinline__)) static const ir_item *put_shaped(const emitter *e, line_printer *to, const ir_item *it)
{
	const ir_item only_shaped = { .shaped = 1 };
	const line_plan *plans = e->out->shaped;
	const char *const table[] = { to->table[0], to->table[1], to->table[2] };
	line_entry *map = to->map;
	char *p = to->p;
	uint32_t flags, usual, left = to->left, number = to->line, line = to->run_line, file = to->run_file;

	memcpy(&usual, (const char *)&only_shaped + offsetof(ir_item, line) + sizeof usual, sizeof usual);
	for (; it && left; it = it->next, number++, left--) {
		memcpy(&flags, (const char *)it + offsetof(ir_item, line) + sizeof flags, sizeof flags);
		if (flags != usual)
			break;
		const line_plan *plan = &plans[it->shape->number];
		const char *words = (const char *)(it + 1);
		if (plan->ready != PLAN_READY || !plan->simple || other_kinds(plan, words))
			break;
		*p = '\t';
		p = put_pieces(p + 1, table, plan, words);
		map = put_origin(map, number, line, file, it->line, it->file);
		line = it->line;
		file = it->file;
	}
	to->p = p;
	to->map = map;
	to->left = left;
	to->line = number;
	to->run_line = line;
	to->run_file = file;
	return it;
}
_Static_assert(LINE_TABLES == 3, "put_shaped names the tables one by one");

/* Prints items as long as they have a plan, or are labels and comments; returns the first one that is neither.  built: each
 * has the tag of its call; names: their registers are to be named. */
CPTX_INLINE_ const ir_item *put_lines(emitter *e, const ir_item *it, bool built, bool names)
{
	bool shaped = built && !names && e->shapes && !e->long_names;
	line_printer to = { .left = 0 };

	if (!begin_lines(e, &to, built))
		return it;
	for (; it; it = it->next) {
		char *end;
		if (shaped && !(it = put_shaped(e, &to, it)))
			break;
		if (!to.left) {
			end_lines(e, &to, built);
			if (!begin_lines(e, &to, built))
				return it;
		}
		if (it->kind == ITEM_INSN) {
			if (!built)
				fetch_plan(e, it->next);
			end = put_planned(e, &to, it, built, names);
		} else {
			end = put_simple(e, &to, it);
			if (end == to.p)
				continue;
		}
		if (!end)
			break;
		to.p = end;
		if (built) {
			if (it->kind != ITEM_LABEL) /* which has no origin of its own */
				note_origin(&to, it);
		} else if (it->kind != ITEM_LABEL) {
			e->line = to.line;
			emit_map_line(e, it);
		}
		to.line++;
		to.left--;
	}
	end_lines(e, &to, built);
	return it;
}

const ir_item *emit_lines(emitter *e, const ir_item *it, bool *failed)
{
	bool names = e->hash && e->hash->any_registers;

	while (it && it->kind == ITEM_INSN) {
		bool shaped = it->shaped && e->shapes && !e->locs;
		if (shaped && !emit_plan_shape(e, it)) {
			*failed = true;
			return it;
		}
		if (!e->locs && (e->nplan || shaped)) {
			const ir_item *next = names          ? put_lines(e, it, true, true)
			                      : e->m->parsed ? put_lines(e, it, false, false)
			                                     : put_lines(e, it, true, false);
			if (next != it) {
				it = next;
				continue;
			}
		}
		const spelling *s = emit_spelling(e, it);
		if (names)
			emit_hash_item(e, it);
		*failed = !s || !emit_spelled(e, it, s);
		if (*failed)
			return it;
		if (!e->locs && !it->shaped)
			emit_note_plan(e, it, s);
		it = it->next;
	}
	return it;
}
