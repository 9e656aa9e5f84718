/* SPDX-License-Identifier: MIT */
/*
 * Calls at a place in the program that has a cptx_again.  The first call fills it.  Those that follow are compared with what
 * it holds; usual ones are made directly (direct.h).
 */
#include "base/atomic.h"
#include "ir/direct.h"

enum {
	DIRECT_KINDS = 7,
	DIRECT_TRIES = 32 /* how often another call is looked at for its kinds of operands */
};

/*
 * What a cptx_again holds: filled once, by the first thread that has something to put there, and only read from then on. But
 * calls that differ in the types of their registers alone are added to `kinds`: a thread that took `adding` publishes
 * `nkinds`.
 */
enum { PLACE_EMPTY, PLACE_TAKEN, PLACE_READY, PLACE_DIRECT };
typedef struct called_here {
	uint32_t state, line; /* these four are those of cptx_again, which the callers' code reads */
	const char *file;
	uint64_t mods[ARCH_FIELDS / 4];
	direct_kinds kinds[DIRECT_KINDS]; /* from here on for PLACE_DIRECT */
	direct_item item;
	uint64_t call; /* a hash of all that a module keeps of it (ir_here) */
	uint32_t nkinds, adding, tries;
	arch_remembered r;
} called_here;
_Static_assert(sizeof(called_here) <= sizeof(cptx_again), "cptx_again has room for it");
_Static_assert(offsetof(called_here, line) == offsetof(cptx_again, line_) &&
                   offsetof(called_here, file) == offsetof(cptx_again, file_) &&
                   offsetof(called_here, mods) == offsetof(cptx_again, mods_) &&
                   sizeof(((cptx_again *)0)->mods_) == ARCH_FIELDS / 4 * sizeof(uint64_t),
               "the callers' code reads these");

/* ---- what the module knows of a place ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* Of the call and of the file: places that agree in both share what a module knows of them. */
static uint64_t hash_of(const called_here *h)
{
	uint64_t hash = mix(h->r.op, (uintptr_t)h->file), item[(sizeof h->item + 7) / 8] = { 0 };

	memcpy(item, &h->item, sizeof h->item);
	for (unsigned i = 0; i < ARRAY_LEN(item); i++)
		hash = mix(hash, item[i]);
	for (unsigned i = 0; i < ARRAY_LEN(h->r.key); i++)
		hash = mix(hash, h->r.key[i]);
	return hash > IR_HERE_UNUSED ? hash : IR_HERE_UNUSED + 1;
}

/* What the module knows of a place; NULL: nothing yet.  The hash of a place that is not filled, 0, is that of no entry. */
CPTX_INLINE_ const ir_here *known_here(const cptx_module *m, const called_here *h)
{
	if (!m->here)
		return NULL;
	const ir_here *here = &m->here[h->call & m->here_mask];
	for (unsigned i = 0; i < IR_HERE_NEAR && here->call != h->call; i++)
		here++;
	return here->call == h->call && here->fills == m->fills ? here : NULL;
}

/* The entry for a place: its own, or one that is empty; else, and if none may be empty, one of an earlier fill; NULL: all
 * are of other places. */
static ir_here *room_for_here(cptx_module *m, uint64_t call, bool empty)
{
	ir_here *first = &m->here[call & m->here_mask], *found = NULL;

	for (ir_here *here = first; here <= first + IR_HERE_NEAR; here++) {
		if (here->call == call)
			return here;
		if (!found && (here->call == IR_HERE_UNUSED || (!empty && here->fills != m->fills)))
			found = here;
	}
	return found;
}

/* Makes the table, or one of twice the size; false when memory is short, or the table is large. */
static bool grow_here(cptx_module *m)
{
	enum { FEWEST = 32, MOST = 4096 };
	ir_here *old = m->here;
	uint32_t had = old ? m->here_mask + 1 : 0, want = old ? 2 * had : FEWEST;
	ir_here *here = want <= MOST ? HEAP_ARRAY(&m->a.hook, ir_here, NULL, want + IR_HERE_NEAR) : NULL;

	if (!here)
		return false;
	for (uint32_t i = 0; i < want + IR_HERE_NEAR; i++)
		here[i] = (ir_here){ .call = IR_HERE_UNUSED };
	m->here = here;
	m->here_mask = want - 1;
	for (uint32_t i = 0; old && i < had + IR_HERE_NEAR; i++) {
		ir_here *to = old[i].call != IR_HERE_UNUSED ? room_for_here(m, old[i].call, true) : NULL;
		if (to)
			*to = old[i];
	}
	if (old)
		heap_realloc(&m->a.hook, old, 0);
	return true;
}

/* Makes known what the module did not know of a place yet; NULL where items from there have no shape, or memory is short. */
__attribute__((__noinline__)) static const ir_here *learn_here(cptx_module *m, const called_here *h)
{
	if (atomic_state(&h->state) < PLACE_READY || (!m->here && !grow_here(m)))
		return NULL;
	ir_here *here = room_for_here(m, h->call, false);
	if (!here)
		here = grow_here(m) ? room_for_here(m, h->call, false) : NULL;
	if (!here)
		here = &m->here[h->call & m->here_mask];
	const ir_shape *shape = here->call == h->call ? here->shape : ir_shape_of(m, &h->r);
	if (!shape)
		return NULL;
	*here = (ir_here){ .call = h->call,
		               .head = h->item.head | (uint64_t)ir_file_number(m, h->file) << HEAD_FILE,
		               .shape = shape,
		               .fills = m->fills };
	return here;
}

/* ---- filling ---- */

/* Adds the kinds of operands of a call that makes the same item as the place's first one. */
static void note_kinds(called_here *h, const cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals,
                       const uint16_t *mods)
{
	direct_item d;
	direct_kinds kinds;

	if (!atomic_take(&h->adding, 0, 1))
		return;
	const arch_remembered *r =
		h->nkinds < DIRECT_KINDS && h->tries++ < DIRECT_TRIES && h->r.op == op + 1 && at.line == h->line
			? arch_recalled(&k->m->memo, op, vals, mods)
			: NULL;
	if (r && r->plan.direct && ir_make_direct(&d, &kinds, k->m, r, vals)) {
		bool same = !memcmp(&d, &h->item, sizeof d);
		for (unsigned i = 0; i < r->nfield; i += 4)
			same &= h->mods[i / 4] == arch_four_mods(mods + i, r->nfield - i);
		if (same) {
			h->kinds[h->nkinds] = kinds;
			atomic_publish(&h->nkinds, h->nkinds + 1);
		}
	}
	atomic_publish(&h->adding, 0);
}

static void note_here(called_here *h, const cptx_kernel *k, cptx_site at, unsigned op, const cptx_val *vals,
                      const uint16_t *mods)
{
	const arch_remembered *r = arch_recalled(&k->m->memo, op, vals, mods);

	if (!r || !r->plan.direct || !atomic_take(&h->state, PLACE_EMPTY, PLACE_TAKEN))
		return;
	h->r = *r;
	h->line = at.line;
	h->file = at.file;
	for (unsigned i = 0; i < r->nfield; i += 4)
		h->mods[i / 4] = arch_four_mods(mods + i, r->nfield - i);
	bool direct = ir_make_direct(&h->item, &h->kinds[0], k->m, r, vals);
	if (!direct)
		memset(&h->kinds[0], 0xff, sizeof h->kinds[0]); /* no operand is of these */
	h->call = hash_of(h);
	h->nkinds = direct;
	atomic_publish(&h->state, direct ? PLACE_DIRECT : PLACE_READY);
}

cptx_val cptx_insn_again_(cptx_kernel *k, cptx_site at, cptx_again *again, enum cptx_op op, const cptx_val *vals,
                          const uint16_t *mods)
{
	called_here *h = (called_here *)(void *)again;
	cptx_val result;

	if (!h || !vals || !mods)
		return cptx_insn_(k, at, op, vals, mods);
	uint32_t state = atomic_state(&h->state);
	if (state >= PLACE_READY && k && ir_open_quietly(k) && arch_is_again(&h->r, op, vals, mods)) {
		const ir_here *here = known_here(k->m, h);
		here = here ? here : learn_here(k->m, h);
		if (k->m->err.code == CPTX_OK && ir_append_again(k, at, &h->r, here ? here->shape : NULL, vals, &result))
			return result;
	}
	result = cptx_insn_(k, at, op, vals, mods);
	if (!k || k->m->err.code != CPTX_OK)
		return result;
	if (state == PLACE_EMPTY)
		note_here(h, k, at, op, vals, mods);
	else if (state == PLACE_DIRECT && atomic_state(&h->nkinds) < DIRECT_KINDS)
		note_kinds(h, k, at, op, vals, mods);
	return result;
}

/* ---- direct calls ---- */

/* Makes the call in the ordinary way, as all that is out of the ordinary. */
static cptx_val call_slowly(cptx_kernel *k, cptx_again *again, const direct_value v[DIRECT_OPERANDS])
{
	const called_here *h = (const called_here *)(void *)again;
	cptx_site nowhere = { NULL, 0 };

	if (!h || atomic_state(&h->state) != PLACE_DIRECT) {
		if (k)
			ir_error(k, CPTX_E_ARG, nowhere, "a call by a cptx_again that holds none");
		return direct_val(direct_nothing);
	}
	const cptx_val vals[3 + DIRECT_OPERANDS] = {
		{ 0 }, { 0 }, { 0 }, direct_val(v[0]), direct_val(v[1]), direct_val(v[2]), direct_val(v[3])
	};
	uint16_t mods[ARCH_FIELDS];

	memcpy(mods, h->mods, sizeof mods);
	return cptx_insn_again_(k, (cptx_site){ h->file, h->line }, again, (enum cptx_op)(h->r.op - 1), vals, mods);
}

/* What a direct call found out. */
enum {
	CALL_MADE,
	CALL_NEW /* the module does not know the place yet, or there is no room */,
	CALL_OTHER /* other operands */
};

/* Appends the call of n operands if they are of kinds number first to end - 1 of a place that the module knows; there may be
 * no such kinds. */
CPTX_INLINE_ unsigned append_known(cptx_kernel *k, const called_here *h, const ir_here *here, unsigned first, unsigned end,
                                   unsigned n, direct_value a, direct_value b, direct_value c, direct_value d,
                                   cptx_val *made)
{
	ir_item *it = (ir_item *)(void *)k->m->a.at;

	for (unsigned i = first; i < end; i++) {
		if (direct_words(&h->item, &h->kinds[i], n, it, k, a, b, c, d))
			continue;
		*made = direct_end(k, &h->item, it, here->head, h->line, here->shape, a, b, c, d);
		return CALL_MADE;
	}
	return CALL_OTHER;
}

/* The direct call of n operands of the first call's kinds.  A place that is not filled is known to no module; where one
 * holds a call that is not direct, no operand is of the first kinds, and there are no others. */
CPTX_INLINE_ unsigned call_directly(cptx_kernel *k, const cptx_again *again, unsigned n, direct_value a, direct_value b,
                                    direct_value c, direct_value d, cptx_val *made)
{
	const called_here *h = (const called_here *)(const void *)again;
	const ir_here *here = k && h && direct_fits(k) ? known_here(k->m, h) : NULL;

	return here ? append_known(k, h, here, 0, 1, n, a, b, c, d, made) : (unsigned)CALL_NEW;
}

/* The direct call of n operands of other kinds, or the call in the ordinary way. */
CPTX_INLINE_ cptx_val call_other(cptx_kernel *k, cptx_again *again, unsigned n, direct_value a, direct_value b,
                                 direct_value c, direct_value d)
{
	const called_here *h = (const called_here *)(void *)again;
	const direct_value all[DIRECT_OPERANDS] = { a, b, c, d };
	const ir_here *here = known_here(k->m, h);
	cptx_val made;

	if (here && append_known(k, h, here, 1, atomic_state(&h->nkinds), n, a, b, c, d, &made) == CALL_MADE)
		return made;
	return call_slowly(k, again, all);
}

/* The direct call of n operands at a place that the module does not know yet, or the call in the ordinary way. */
CPTX_INLINE_ cptx_val call_new(cptx_kernel *k, cptx_again *again, unsigned n, direct_value a, direct_value b, direct_value c,
                               direct_value d)
{
	const called_here *h = (const called_here *)(void *)again;
	const direct_value all[DIRECT_OPERANDS] = { a, b, c, d };
	const ir_here *here = k && h && direct_fits(k) ? learn_here(k->m, h) : NULL;

	cptx_val made;
	if (here && direct_fits(k) && append_known(k, h, here, 0, atomic_state(&h->nkinds), n, a, b, c, d, &made) == CALL_MADE)
		return made;
	return call_slowly(k, again, all);
}

#define PAIR(a) uint64_t a, uint64_t a##2
#define VALUE(a) ((direct_value){ a, a##2 })
#define NOTHING direct_nothing
/*
 * Defines the call whose parameters are given in parentheses, as pairs of words and as what makes these up to four values.
 * It has nothing but call_directly and calls in its own place, so that it need not keep anything over a call.
 */
#define DIRECT_CALL(n, parameters, words, ...)                                                                              \
	__attribute__((__noinline__)) static cptx_val call_other_##n parameters                                                 \
	{                                                                                                                       \
		return call_other(k, again, n, __VA_ARGS__);                                                                        \
	}                                                                                                                       \
	__attribute__((__noinline__)) static cptx_val call_new_##n parameters { return call_new(k, again, n, __VA_ARGS__); }    \
	cptx_val cptx_again_##n##_ parameters                                                                                   \
	{                                                                                                                       \
		cptx_val made;                                                                                                      \
		unsigned found = call_directly(k, again, n, __VA_ARGS__, &made);                                                    \
		return found == CALL_MADE ? made : found == CALL_NEW ? call_new_##n words : call_other_##n words;                   \
	}
DIRECT_CALL(1, (cptx_kernel * k, cptx_again *again, PAIR(a)), (k, again, a, a2), VALUE(a), NOTHING, NOTHING, NOTHING)
DIRECT_CALL(2, (cptx_kernel * k, cptx_again *again, PAIR(a), PAIR(b)), (k, again, a, a2, b, b2), VALUE(a), VALUE(b), NOTHING,
            NOTHING)
DIRECT_CALL(3, (cptx_kernel * k, cptx_again *again, PAIR(a), PAIR(b), PAIR(c)), (k, again, a, a2, b, b2, c, c2), VALUE(a),
            VALUE(b), VALUE(c), NOTHING)
DIRECT_CALL(4, (cptx_kernel * k, cptx_again *again, PAIR(a), PAIR(b), PAIR(c), PAIR(d)),
            (k, again, a, a2, b, b2, c, c2, d, d2), VALUE(a), VALUE(b), VALUE(c), VALUE(d))
