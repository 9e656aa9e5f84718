/* SPDX-License-Identifier: MIT */
/*
 * Usual lines: instructions whose operands are all registers and small numbers are copied from finished pieces, by a plan
 * for each form, modifiers and kinds of operands.  Copying a line has no branch on what the operands are, which would be
 * mispredicted again and again, and all its copies have fixed lengths.  All else is printed by insn.c.
 */
#include "base/atomic.h"
#include "emit/emit.h"

/* Texts of small numbers, in the layout of register names. */
enum { NUMBERS_LOG = 10, NUMBERS = 1 << NUMBERS_LOG };
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

enum { LINE_ROOM = 4 + PIECES_FRONT + sizeof(reg_name) + PIECES * (sizeof(reg_name) + PIECE_BEHIND) };

/* Form, kind and lengths of an item in one word, without its flags. */
static inline uint32_t line_shape(const ir_item *it)
{
	const ir_item flags = { .flags = 7 };
	uint32_t shape, mask;

	memcpy(&shape, (const char *)it + offsetof(ir_item, form), sizeof shape);
	memcpy(&mask, (const char *)&flags + offsetof(ir_item, form), sizeof mask);
	return shape & ~mask;
}
_Static_assert(offsetof(ir_item, owner) == offsetof(ir_item, form) + sizeof(uint32_t), "line_shape reads what is in front");

/* A number that is the same for items of one plan, and mostly another for others. */
static inline uint32_t line_tag(const ir_item *it)
{
	uint64_t mods = arch_four_mods(ir_mods(it), MIN(it->nmod, 4u)) + it->form;
	return (uint32_t)(mods * 0x9e3779b97f4a7c15u >> 32) | 1;
}

/* ---- plans ---- */

/* Sets what stands behind an operand, in front of `next` (NULL: at the end). */
static void plan_behind(line_piece *p, const arch_operand *o, const arch_operand *next)
{
	char *to = p->behind;

	if (o->kind == OPERAND_ADDR)
		*to++ = ']';
	if (next)
		*to++ = ',', *to++ = ' ';
	else
		*to++ = ';', *to++ = '\n';
	if (next && next->kind == OPERAND_ADDR)
		*to++ = '[';
	p->len = (uint8_t)(to - p->behind);
}

/* Whether an operand's text is put together at each use, by emit_operand. */
static bool is_other(unsigned kind)
{
	return kind == CPTX_VAL_REG || kind == CPTX_VAL_INT || kind == CPTX_VAL_FLOAT || kind == CPTX_VAL_SYM ||
	       kind == CPTX_VAL_LABEL;
}

/* Whether an operand that is there is printed in another way than between commas, or in brackets of its own. */
static bool is_odd_there(const arch_operand *o, bool is_first, const uint16_t *mods)
{
	return o->flags & (OPERAND_INSIDE | OPERAND_MORE) || (o->flags & OPERAND_PIPE && !is_first) || o->brace ||
	       (o->behind != ARCH_NO && mods[o->behind]);
}

/* Plans operand i as a number that has a ready text. */
static void plan_number(line_plan *p, unsigned i)
{
	p->piece[i] = (line_piece){ .mask = (NUMBERS - 1) << NAME_SHIFT, .table = TABLE_NUMBERS };
	p->zero[i / 2] |= (uint64_t)(WORD_ZERO << WORD_NUMBER) << i % 2 * 32;
	p->beyond[i / 2] |= (uint64_t)(UINT32_MAX << (WORD_NUMBER + NUMBERS_LOG)) << i % 2 * 32;
}

/* Plans the operands; false where one is of a kind that lines are not planned for. */
static bool plan_operands(line_plan *p, const ir_item *it)
{
	const arch_operand *o = &arch_operands[arch_forms[it->form].operand];
	const arch_operand *next = NULL; /* the operand that is printed behind this one */
	const uint32_t *words = ir_words(it);
	unsigned first = 0;

	while (first < it->noperand && !words[first])
		first++;
	for (unsigned i = PIECES; i-- > 0;) {
		bool there = i < it->noperand;
		bool whole = there && ir_word_is_whole(words[i]);
		unsigned kind = there ? ir_word_kind(words[i]) : CPTX_VAL_NONE;
		uint32_t bits = there ? (1u << (whole ? 2 * WORD_KIND : WORD_KIND)) - 1 : 0; /* a whole value's kind is above */
		p->kind[i / 2] |= (uint64_t)(there ? words[i] & bits : 0) << i % 2 * 32;
		p->kind_mask[i / 2] |= (uint64_t)bits << i % 2 * 32;
		p->piece[i] = (line_piece){ .table = TABLE_EMPTY };
		if (!there || !words[i])
			continue;
		if (!is_other(kind) || is_odd_there(o + i, i == first, ir_mods(it)))
			return false;
		if (whole || kind == CPTX_VAL_LABEL)
			p->others |= (uint8_t)(1 << i);
		else if (kind == CPTX_VAL_REG)
			p->piece[i] = (line_piece){ .mask = ~(((uint32_t)1 << NAME_SHIFT) - 1), .table = TABLE_REGS };
		else
			plan_number(p, i);
		plan_behind(&p->piece[i], o + i, next);
		next = o + i;
	}
	p->front_len = (uint8_t)(next && next->kind == OPERAND_ADDR);
	return next != NULL;
}

/* Whether items with this spelling can have a plan, if their operands can. */
static bool may_be_planned(const ir_item *it, const spelling *s)
{
	return !s->asks && it->noperand && it->noperand <= PIECES && it->nmod <= PIECES_MODS && s->len < PIECES_FRONT;
}

/* Makes the plan of an item that was just printed with this spelling; false where it has none. */
static bool make_plan(line_plan *p, const ir_item *it, const char *opcode, const spelling *s)
{
	*p = (line_plan){ .tag = line_tag(it), .shape = line_shape(it) };
	if (!plan_operands(p, it))
		return false;
	p->nmods = (uint8_t)((it->nmod + 3) / 4);
	for (unsigned i = 0; i < it->nmod; i += 4) {
		p->mod[i / 4] = arch_four_mods(ir_mods(it) + i, it->nmod - i);
		p->mod_mask[i / 4] = it->nmod - i < 4 ? (UINT64_C(1) << 16 * (it->nmod - i)) - 1 : UINT64_MAX;
	}
	memcpy(p->front, opcode, s->len);
	p->front[s->len] = '['; /* which is printed if front_len counts it */
	p->front_len += (uint8_t)s->len;
	return true;
}

void emit_begin_shapes(emitter *e)
{
	cptx_ptx *out = e->out;
	uint32_t n = e->m->nshape + 1;

	if (out->cap_shaped < n) {
		uint32_t cap = MAX(n, 2 * out->cap_shaped);
		line_plan *shaped = HEAP_ARRAY(&out->hook, line_plan, out->shaped, cap);
		if (!shaped)
			return;
		out->shaped = shaped;
		out->cap_shaped = cap;
	}
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

/* Keeps a plan for items like this one, if they can have one. */
static void note_plan(emitter *e, const ir_item *it, const spelling *s)
{
	cptx_ptx *out = e->out;
	line_plan p;

	if (!make_plan(&p, it, out->spelled.p + s->text, s))
		return;
	if (it->shaped) {
		p.ready = PLAN_READY;
		p.version = out->once ? 0 : (uint8_t)emit_lasting_version(e, it);
		if (e->shapes)
			out->shaped[it->shape->number] = p;
		return;
	}
	uint16_t *place = &e->plan_at[p.tag % LINES];
	if (*place && !e->plan_at[(p.tag ^ 1) % LINES])
		place = &e->plan_at[(p.tag ^ 1) % LINES];
	if (!*place && e->nplan + 1 >= out->cap_plan) {
		unsigned cap = out->cap_plan ? 2 * out->cap_plan : 16;
		line_plan *plan = HEAP_ARRAY(&out->hook, line_plan, out->plan, cap);
		if (!plan)
			return;
		plan[0] = (line_plan){ .shape = UINT32_MAX }; /* of no item: its place stands for "none" */
		out->plan = plan;
		out->cap_plan = cap;
	}
	*place = *place ? *place : (uint16_t)++e->nplan;
	out->plan[*place] = p;
}

/* ---- lines ---- */

/* What printing lines keeps in registers. */
typedef struct line_printer {
	const char *table[LINE_TABLES];
	char *p;                     /* the place in the text */
	line_entry *map;             /* the place in the map */
	uint32_t left;               /* lines that there is room for */
	uint32_t line;               /* number of the next line */
	uint32_t run_line, run_file; /* where the last line came from */
} line_printer;

/* Whether the item is one of the plan: has its form, modifiers and kinds of operands. */
static inline bool is_planned(const line_plan *p, const ir_item *it, const char *words)
{
	uint64_t kind[PIECES / 2], mod, other;
	const char *mods = words + it->noperand * sizeof(uint32_t);

	memcpy(kind, words, sizeof kind);
	memcpy(&mod, mods, sizeof mod);
	other = (kind[0] ^ p->kind[0]) & p->kind_mask[0];
	other |= (kind[1] ^ p->kind[1]) & p->kind_mask[1];
	other |= (mod ^ p->mod[0]) & p->mod_mask[0];
	other |= line_shape(it) ^ p->shape;
	if (other)
		return false;
	for (unsigned i = 1; i < p->nmods; i++) {
		memcpy(&mod, mods + i * sizeof mod, sizeof mod);
		other |= (mod ^ p->mod[i]) & p->mod_mask[i];
	}
	return !other;
}

static inline char *put_name(char *p, const char *name)
{
	memcpy(p, name, sizeof(reg_name));
	return p + ((const reg_name *)(const void *)name)->len;
}

static inline char *put_line_guard(char *p, const line_printer *to, const ir_item *it)
{
	memcpy(p, "@!", 2);
	p += 1 + (it->flags & ITEM_NEGATED);
	p = put_name(p, to->table[TABLE_REGS] + ((size_t)(it->guard - 1) << NAME_SHIFT));
	*p++ = ' ';
	return p;
}
_Static_assert(ITEM_NEGATED == 1, "put_line_guard adds it to a place");

/* Whether operands are numbers too large for the table. */
static inline bool is_beyond(const line_plan *plan, const char *words)
{
	uint64_t two[PIECES / 2];

	memcpy(two, words, sizeof two);
	return (((two[0] ^ plan->zero[0]) & plan->beyond[0]) | ((two[1] ^ plan->zero[1]) & plan->beyond[1])) != 0;
}

/* Copies operand i and what stands behind it. */
static inline char *put_piece(char *p, const line_printer *to, const line_piece *piece, uint32_t word)
{
	p = put_name(p, to->table[piece->table] + ((word >> (WORD_NUMBER - NAME_SHIFT)) & piece->mask));
	memcpy(p, piece->behind, sizeof piece->behind);
	return p + piece->len;
}
_Static_assert((int)WORD_NUMBER >= (int)NAME_SHIFT, "put_piece shifts to the right");

/* put_piece for an operand whose text is put together; NULL where it is one of several registers. */
static char *put_other(char *p, const emitter *e, const ir_item *it, unsigned i, const line_piece *piece)
{
	const uint32_t *words = ir_words(it);

	if (ir_word_is_whole(words[i]) && ir_whole(words, i)->count > 1)
		return NULL;
	p = emit_operand(e, p, it, i);
	memcpy(p, piece->behind, sizeof piece->behind);
	return p + piece->len;
}

/* put_line for the operands of a plan that has such. */
__attribute__((__noinline__)) static char *put_with_others(char *p, const emitter *e, const line_printer *to,
                                                           const line_plan *plan, const ir_item *it)
{
	const uint32_t *words = ir_words(it);

	for (unsigned i = 0; i < PIECES && p; i++)
		p = plan->others >> i & 1 ? put_other(p, e, it, i, &plan->piece[i]) : put_piece(p, to, &plan->piece[i], words[i]);
	return p;
}

/* Copies a line of the plan to to->p; returns its end, or NULL where a number is too large for its table. */
static inline char *put_line(const emitter *e, const line_printer *to, const line_plan *plan, const ir_item *it,
                             const char *words)
{
	uint32_t word[PIECES];
	char *p = to->p;

	if (is_beyond(plan, words))
		return NULL;
	memcpy(word, words, sizeof word);
	*p++ = '\t';
	if (it->guard)
		p = put_line_guard(p, to, it);
	memcpy(p, plan->front, PIECES_FRONT);
	p += plan->front_len;
	if (plan->others)
		return put_with_others(p, e, to, plan, it);
	p = put_piece(p, to, &plan->piece[0], word[0]);
	p = put_piece(p, to, &plan->piece[1], word[1]);
	p = put_piece(p, to, &plan->piece[2], word[2]);
	return put_piece(p, to, &plan->piece[3], word[3]);
}
_Static_assert(PIECES == 4, "put_line names them one by one");

/* Notes where the line comes from: an entry for each line that comes from elsewhere than the one before, without a branch
 * on that. */
static inline void note_origin(line_printer *to, const ir_item *it)
{
	uint32_t other = (to->run_line ^ it->line) | (to->run_file ^ it->file);

	uint64_t lines = (uint64_t)it->line << 32 | to->line;
	uint32_t file = it->file; /* with the step 0 */

	memcpy((char *)to->map + offsetof(line_entry, ptx_line), &lines, sizeof lines); /* in two stores */
	memcpy((char *)to->map + offsetof(line_entry, file), &file, sizeof file);
	to->run_line = it->line;
	to->run_file = file;
	to->map += other != 0;
}

_Static_assert(offsetof(line_entry, line) == 4 && offsetof(line_entry, step) == offsetof(line_entry, file) + 2,
               "note_origin puts them into words");

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
	enum { AT_ONCE = 32 };
	buf *text = &e->out->text, *map = &e->out->map;

	if (e->hash)
		emit_hash_text(e);
	if (!buf_reserve(text, AT_ONCE * (LINE_ROOM + PIECES * e->operand_most)) ||
	    (built && !buf_reserve(map, (AT_ONCE + 1) * sizeof(line_entry))))
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
	uint32_t tag = line_tag(it);
	const line_plan *plan = &plans[e->plan_at[tag % LINES]];

	if (is_planned(plan, it, words))
		return plan;
	plan = &plans[e->plan_at[(tag ^ 1) % LINES]];
	return is_planned(plan, it, words) ? plan : NULL;
}

/* The plan of an item that has a shape.  One of an earlier print is taken over. */
static inline const line_plan *shaped_plan(emitter *e, const ir_item *it, const char *words)
{
	uint64_t kind[PIECES / 2];

	if (!e->shapes)
		return NULL;
	line_plan *plan = &e->out->shaped[it->shape->number];
	if (plan->ready != PLAN_READY) {
		if (plan->ready == PLAN_NONE)
			return NULL;
		plan->ready = PLAN_READY;
		e->version = MAX(e->version, plan->version);
	}
	if (it->shape->fixed)
		return plan;
	memcpy(kind, words, sizeof kind);
	return ((kind[0] ^ plan->kind[0]) & plan->kind_mask[0]) | ((kind[1] ^ plan->kind[1]) & plan->kind_mask[1]) ? NULL : plan;
}

/* Names the registers of a line of the plan as a hash wants it. */
static inline void name_for_hash(emitter *e, const line_plan *plan, const ir_item *it)
{
	if (plan->others) {
		emit_hash_item(e, it);
		return;
	}
	if (it->guard)
		emit_hash_use(e, it->guard - 1);
	for (unsigned i = 0; i < PIECES; i++)
		if (plan->piece[i].table == TABLE_REGS)
			emit_hash_use(e, ir_word_reg(ir_words(it)[i]));
}

/* Prints items as long as they have a plan; returns the first one that has none.  built: each has the tag of its call;
 * names: their registers are to be named. */
CPTX_INLINE_ const ir_item *put_lines(emitter *e, const ir_item *it, bool built, bool names)
{
	line_printer to = { .left = 0 };
	const line_plan *plans = e->out->plan;

	if (!begin_lines(e, &to, built))
		return it;
	for (; it; it = it->next) {
		const char *words = (const char *)(it->apart ? ir_words(it) : (const uint32_t *)(it + 1));
		const line_plan *plan = built && it->shaped ? shaped_plan(e, it, words) : hashed_plan(e, plans, it, words);
		if (!plan)
			break;
		if (names)
			name_for_hash(e, plan, it);
		char *end = put_line(e, &to, plan, it, words);
		if (!end)
			break;
		to.p = end;
		if (built) {
			note_origin(&to, it);
		} else {
			e->line = to.line;
			emit_map_line(e, it);
		}
		to.line++;
		if (!--to.left) {
			end_lines(e, &to, built);
			if (!begin_lines(e, &to, built))
				return it->next;
		}
	}
	end_lines(e, &to, built);
	return it;
}

const ir_item *emit_lines(emitter *e, const ir_item *it, bool *failed)
{
	bool names = e->hash && e->hash->any_registers;

	while (it && it->kind == ITEM_INSN) {
		if (!e->locs && !e->long_names && (e->nplan || (it->shaped && e->shapes))) {
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
		if (!e->locs && !e->long_names && may_be_planned(it, s))
			note_plan(e, it, s);
		it = it->next;
	}
	return it;
}
