/* SPDX-License-Identifier: MIT */
/* Words of memory: who wrote them last, who has read them since, and whether the next who comes knows of it. */
#include "emu/race/cell.h"
#include "emu/core/cluster.h"
#include "emu/core/finding.h"
#include "emu/core/grid.h"
#include "emu/race/wide.h"
#include "emu/core/explore.h"

#include <stdlib.h>

struct emu_shadow {
	uint32_t n;
	emu_word word[];
};

static bool both_strong(unsigned access, unsigned bits)
{
	return access & (ACCESS_STRONG | ACCESS_ATOMIC) && bits & CELL_STRONG;
}

static bool known(const touch *t, const cell *x, bool fenced)
{
	const emu_warp *w = t->w;

	if (x->bits & CELL_LATE)
		return x->epoch == t->late || race_late_known(w, t->lane, fenced, x->epoch);
	if (!fenced && x->agent == w->agent && x->lane == t->lane)
		return true;
	return race_knows(w, t->lane, fenced, x->agent, x->epoch, x->lane);
}

/* Whether t and x are writes of the same bytes by the same instruction of a warp. */
static bool is_same_write(const touch *t, const cell *x)
{
	const late_op *a = t->late ? race_late(t->w->cluster, t->late) : NULL,
				  *b = a && x->bits & CELL_LATE ? race_late(t->w->cluster, x->epoch) : NULL;

	return b && a->same && (a->same == b->id || a->same == b->same);
}

/* A read of the address that tcgen05.alloc has written in the CTA's own memory, behind a relaxed barrier of the cluster. */
static bool is_allocated(const touch *t, const cell *x)
{
	const emu_warp *w = t->w;

	return w->grid->image->ops[x->op]->opcode == CPTX_OP_TCGEN05_ALLOC && t->place->cta == w->cta &&
	       !(t->access & ACCESS_WRITE || x->bits & CELL_LATE || t->late) && race_is_over(w, x->agent, x->epoch, x->lane);
}

/* Says so if the write is not ordered before this access, or no proxy fence stands between. */
static bool after_write(const touch *t, const cell *x, uint32_t byte)
{
	if (both_strong(t->access, x->bits) || is_same_write(t, x))
		return true;
	bool seen = known(t, x, false);
	if (seen && (!(t->access & ACCESS_ASYNC) || x->bits & CELL_PROXY || known(t, x, true)))
		return true;
	if (!seen && is_allocated(t, x))
		return emu_lenient(
			t->w, t->op, (int)t->lane, CPTX_FIND_ALLOC_ORDER,
			"it reads the address that tcgen05.alloc has written, behind barrier.cluster.arrive.relaxed; that "
			"arrival must be a .release");
	race_found(t, x, true, byte, seen);
	return false;
}

static bool reader_known(const touch *t, const reader *r, unsigned *lane)
{
	const emu_warp *w = t->w;
	uint32_t lanes = r->agent == w->agent ? r->lanes & ~(UINT32_C(1) << t->lane) : r->lanes;

	if (r->bits & CELL_LATE) {
		*lane = (unsigned)__builtin_ctz(r->lanes);
		return r->epoch == t->late || race_late_known(w, t->lane, false, r->epoch);
	}
	if (r->epoch <= w->know.clock.seen[r->agent].all)
		return true;
	EACH_LANE(l, lanes)
		if (!race_knows(w, t->lane, false, r->agent, r->epoch, l)) {
			*lane = l;
			return false;
		}
	return true;
}

static bool reader_fenced(const touch *t, const reader *r, unsigned *lane)
{
	if (!(t->access & ACCESS_ANSWER) || r->bits & (CELL_LATE | CELL_PROXY))
		return true;
	EACH_LANE(l, r->lanes)
		if (!race_knows(t->w, t->lane, true, r->agent, r->epoch, l)) {
			*lane = l;
			return false;
		}
	return true;
}

static bool after_read(const touch *t, const reader *r, unsigned bytes, uint32_t byte)
{
	unsigned lane = 0;

	if (!(r->bits & bytes) || both_strong(t->access, r->bits))
		return true;
	bool seen = reader_known(t, r, &lane), early = seen && !race_is_fetched(t, r, &lane);
	if (seen && !early && reader_fenced(t, r, &lane))
		return true;
	cell x = { .epoch = r->epoch, .op = r->op, .agent = r->agent, .lane = (uint8_t)lane, .bits = r->bits };
	if (early)
		race_found_early(t, &x, byte);
	else
		race_found(t, &x, false, byte, seen);
	return false;
}

/* ---- nodes: readers beside the latest, and who wrote other bytes than the last writer ---- */

static uint32_t new_node(emu_cluster *c)
{
	struct emu_races *r = c->races;
	uint32_t n = r->free_node;

	if (n) {
		r->free_node = r->node[n].next;
		return n;
	}
	if (r->nnode + 1 >= r->cap_node) {
		uint32_t cap = r->cap_node ? r->cap_node * 2 : 256;
		word_node *p = GROW_ARRAY(word_node, r->node, cap);
		if (!p) {
			race_no_memory(c);
			return 0;
		}
		r->node = p;
		r->cap_node = cap;
	}
	return ++r->nnode;
}

static void free_node(struct emu_races *r, uint32_t *link)
{
	uint32_t n = *link;

	*link = r->node[n].next;
	r->node[n].next = r->free_node;
	r->free_node = n;
}

void race_drop_nodes(emu_cluster *c, emu_word *x)
{
	while (x->more)
		free_node(c->races, &x->more);
	x->r.bits = 0;
	x->w.bits &= (uint8_t)~CELL_PARTED;
}

/* The link to the first node of a reader; those of writers, one for a byte at most, come before. */
static uint32_t *readers_of(struct emu_races *r, emu_word *x)
{
	uint32_t *link = &x->more;

	while (*link && r->node[*link].r.bits & CELL_PARTED)
		link = &r->node[*link].next;
	return link;
}

static void push_node(emu_cluster *c, emu_word *x, const reader *old)
{
	uint32_t n = new_node(c);

	if (n) {
		uint32_t *link = old->bits & CELL_PARTED ? &x->more : readers_of(c->races, x);
		c->races->node[n] = (word_node){ *old, *link };
		*link = n;
	}
}

/* Some bytes of a word are written: nobody else has touched them any more.  Its other bytes stay as they are. */
static void forget_bytes(emu_cluster *c, emu_word *x, unsigned bytes)
{
	struct emu_races *r = c->races;

	x->r.bits &= (uint8_t)~bytes;
	x->w.bits &= (uint8_t) ~(bytes | CELL_PARTED);
	for (uint32_t *link = &x->more; *link;) {
		reader *other = &r->node[*link].r;
		other->bits &= (uint8_t)~bytes;
		if (!(other->bits & CELL_BYTES)) {
			free_node(r, link);
			continue;
		}
		x->w.bits |= other->bits & CELL_PARTED;
		link = &r->node[*link].next;
	}
}

cell race_node_cell(const word_node *n)
{
	return (cell){ .epoch = n->r.epoch,
		           .op = n->r.op,
		           .agent = n->r.agent,
		           .lane = (uint8_t)__builtin_ctz(n->r.lanes),
		           .bits = (uint8_t)(n->r.bits & ~CELL_PARTED) };
}

bool race_each_writer(const emu_cluster *c, const emu_word *x, unsigned bytes, bool (*is)(const void *, const cell *),
                      const void *of)
{
	if (x->w.bits & bytes && !is(of, &x->w))
		return false;
	for (uint32_t n = race_first_writer(c, x); n; n = race_next_writer(c, n)) {
		cell k = race_node_cell(&c->races->node[n]);
		if (k.bits & bytes && !is(of, &k))
			return false;
	}
	return true;
}

/* The word has a new last writer; who wrote its other bytes moves to the nodes. */
static void set_writer(emu_cluster *c, emu_word *x, cell now)
{
	const cell *w = &x->w;

	if (w->bits & CELL_BYTES && w->agent == now.agent && w->epoch == now.epoch && w->lane == now.lane &&
	    !((w->bits ^ now.bits) & ~(CELL_BYTES | CELL_PARTED))) {
		now.bits |= w->bits;
	} else if (w->bits & CELL_BYTES) {
		const reader before = {
			.epoch = w->epoch, .op = w->op, .lanes = UINT32_C(1) << w->lane, .agent = w->agent, .bits = w->bits | CELL_PARTED
		};
		push_node(c, x, &before);
		now.bits |= CELL_PARTED;
	} else {
		now.bits |= w->bits & CELL_PARTED;
	}
	x->w = now;
}

/* Whether who has waited for the late operation `now` has waited for `old` too, which is of the same groups and read no
 * more. */
static bool superseded(const emu_cluster *c, const reader *old, const reader *now)
{
	if (!(old->bits & now->bits & CELL_LATE) || old->bits & ~now->bits)
		return false;
	const late_op *a = race_late(c, old->epoch), *b = race_late(c, now->epoch);
	return a && b && a->agent && a->agent == b->agent && a->grouped && b->grouped && a->lane == b->lane &&
	       a->epoch <= b->epoch && a->arrival == b->arrival && a->arrived <= b->arrived;
}

/* Whether the reader `now` is of the same warp as `old` and has read all of its bytes again. */
static bool repeated(const reader *old, const reader *now)
{
	return old->agent == now->agent && !(old->bits & (CELL_LATE | (CELL_BYTES & ~now->bits)));
}

/* The latest reader moves to the nodes, in the place of one that now counts for nothing: `now` reads what that has not. */
static void push_reader(emu_cluster *c, emu_word *x, const reader *now)
{
	struct emu_races *r = c->races;

	for (uint32_t *link = &x->more; *link; link = &r->node[*link].next) {
		reader *old = &r->node[*link].r;
		if (!(old->bits & CELL_PARTED) && (repeated(old, now) || repeated(old, &x->r) || superseded(c, old, now))) {
			*old = x->r;
			return;
		}
	}
	push_node(c, x, &x->r);
}

static bool of_one_moment(const reader *a, const reader *b)
{
	return a->bits & CELL_BYTES && a->agent == b->agent && a->epoch == b->epoch && !((a->bits ^ b->bits) & ~CELL_BYTES);
}

/* Whether two readers of one moment can be one: each lane still reads all of the bytes when they are put together. */
static inline bool can_join(const reader *a, uint32_t lanes, uint8_t bits) { return a->bits == bits || a->lanes == lanes; }

/*
 * Other lanes of the warp have read other bytes at that moment: each kind of bytes has a reader.  The one that is found gets
 * to the front, so that a warp does not pass those of all others each time.
 */
static void note_other_bytes(emu_cluster *c, emu_word *x, const reader *now)
{
	struct emu_races *r = c->races;
	uint32_t *first = readers_of(r, x);

	for (uint32_t *link = first, n; (n = *link); link = &r->node[n].next) {
		reader *found = &r->node[n].r;
		if (!of_one_moment(found, now) || !can_join(found, now->lanes, now->bits))
			continue;
		found->lanes |= now->lanes;
		found->bits |= now->bits;
		*link = r->node[n].next;
		r->node[n].next = *first;
		*first = n;
		return;
	}
	push_node(c, x, &x->r);
	x->r = *now;
}

static void note_read(const touch *t, emu_word *x, uint8_t bits)
{
	emu_warp *w = t->w;
	reader *r = &x->r;
	reader now = { .epoch = w->know.epoch,
		           .op = t->op->index,
		           .lanes = UINT32_C(1) << t->lane,
		           .agent = (uint16_t)w->agent,
		           .bits = bits };
	unsigned lane;

	if (t->late) {
		now.epoch = t->late;
		now.agent = AGENT_LATE;
	}
	if (of_one_moment(r, &now)) {
		if (!can_join(r, now.lanes, bits)) {
			note_other_bytes(w->cluster, x, &now);
			return;
		}
		r->lanes |= now.lanes;
		r->bits |= bits;
		return;
	}
	if (r->bits & CELL_BYTES & ~bits || (r->bits & CELL_BYTES && (r->agent != now.agent || r->bits & CELL_LATE) &&
	                                     !superseded(w->cluster, r, &now) && !reader_known(t, r, &lane)))
		push_reader(w->cluster, x, &now);
	*r = now;
}

/* ---- words ---- */

/* The common case, without a call: everybody knows of what was before. */
static inline bool plain(const emu_warp *w, uint32_t agent, uint32_t epoch, unsigned bits)
{
	return !(bits & CELL_LATE) && epoch <= w->know.clock.seen[agent].all;
}

static bool nodes_plain(const emu_warp *w, const emu_word *x)
{
	const word_node *node = w->cluster->races->node;

	for (uint32_t n = race_first_writer(w->cluster, x); n; n = race_next_writer(w->cluster, n))
		if (!plain(w, node[n].r.agent, node[n].r.epoch, node[n].r.bits))
			return false;
	return true;
}

/* These lanes read it all. */
static inline bool quick_read(emu_warp *w, const emu_op *op, emu_word *x, uint32_t lanes, uint8_t bits)
{
	reader *r = &x->r;
	unsigned written = x->w.bits & ((bits & CELL_BYTES) | CELL_PARTED);

	if (bits & (CELL_LATE | CELL_PROXY) || (written && !plain(w, x->w.agent, x->w.epoch, x->w.bits)) ||
	    (written & CELL_PARTED && !nodes_plain(w, x)))
		return false;
	if (r->bits == bits && r->agent == w->agent && r->epoch == w->know.epoch) {
		r->lanes |= lanes;
		return true;
	}
	if (r->bits & CELL_BYTES &&
	    (r->bits & (CELL_LATE | (CELL_BYTES & ~bits)) ||
	     (r->agent == w->agent ? r->epoch == w->know.epoch : !plain(w, r->agent, r->epoch, r->bits))))
		return false;
	*r = (reader){ .epoch = w->know.epoch, .op = op->index, .lanes = lanes, .agent = (uint16_t)w->agent, .bits = bits };
	return true;
}

static inline bool quick_write(emu_warp *w, const emu_op *op, emu_word *x, unsigned lane, uint8_t bits)
{
	const reader *r = &x->r;

	if (x->more || (bits & CELL_BYTES) != CELL_BYTES || bits & (CELL_LATE | CELL_PROXY))
		return false;
	if (x->w.bits & CELL_BYTES && !plain(w, x->w.agent, x->w.epoch, x->w.bits) &&
	    (x->w.agent != w->agent || x->w.lane != lane || x->w.bits & CELL_LATE))
		return false;
	if (r->bits & CELL_BYTES && !plain(w, r->agent, r->epoch, r->bits) &&
	    (r->agent != w->agent || r->lanes != UINT32_C(1) << lane || r->bits & CELL_LATE))
		return false;
	x->r.bits = 0;
	x->w =
		(cell){ .epoch = w->know.epoch, .op = op->index, .agent = (uint16_t)w->agent, .lane = (uint8_t)lane, .bits = bits };
	return true;
}

static bool after_node_write(const touch *t, const word_node *n, unsigned bytes, uint32_t byte)
{
	cell x = race_node_cell(n);

	return !(n->r.bits & CELL_PARTED && n->r.bits & bytes) || after_write(t, &x, byte);
}

static bool after_node_read(const touch *t, const word_node *n, unsigned bytes, uint32_t byte)
{
	return n->r.bits & CELL_PARTED || after_read(t, &n->r, bytes, byte);
}

static void read_word(const touch *t, emu_word *x, uint8_t bits, uint32_t byte, bool *ok)
{
	if (quick_read(t->w, t->op, x, UINT32_C(1) << t->lane, bits))
		return;
	if (x->w.bits & bits & CELL_BYTES && *ok)
		*ok = after_write(t, &x->w, byte);
	for (uint32_t n = race_first_writer(t->w->cluster, x); n && *ok; n = race_next_writer(t->w->cluster, n))
		*ok = after_node_write(t, &t->w->cluster->races->node[n], bits & CELL_BYTES, byte);
	note_read(t, x, bits);
}

static void write_word(const touch *t, emu_word *x, uint8_t bits, uint32_t byte, bool *ok)
{
	emu_warp *w = t->w;
	unsigned bytes = bits & CELL_BYTES;
	cell now = {
		.epoch = w->know.epoch, .op = t->op->index, .agent = (uint16_t)w->agent, .lane = (uint8_t)t->lane, .bits = bits
	};

	if (quick_write(w, t->op, x, t->lane, bits))
		return;
	if (x->w.bits & bytes && *ok)
		*ok = after_write(t, &x->w, byte);
	if (x->r.bits & CELL_BYTES && *ok)
		*ok = after_read(t, &x->r, bytes, byte);
	for (uint32_t n = x->more; n && *ok; n = w->cluster->races->node[n].next)
		*ok = after_node_write(t, &w->cluster->races->node[n], bytes, byte) &&
		      after_node_read(t, &w->cluster->races->node[n], bytes, byte);
	if (t->late) {
		now.epoch = t->late;
		now.agent = AGENT_LATE;
	}
	if (bytes == CELL_BYTES) {
		race_drop_nodes(w->cluster, x);
		x->w = now;
	} else {
		forget_bytes(w->cluster, x, bytes);
		set_writer(w->cluster, x, now);
	}
}

void race_touch_words(const touch *t, emu_word *word, uint64_t at, uint32_t done, uint32_t n)
{
	uint8_t flags = (uint8_t)((t->access & (ACCESS_STRONG | ACCESS_ATOMIC) ? CELL_STRONG : 0) | (t->late ? CELL_LATE : 0) |
	                          (t->access & ACCESS_ASYNC ? CELL_PROXY : 0));
	bool ok = true;

	for (uint64_t end = at + n; at < end;) {
		unsigned first = at & 3, count = (unsigned)MIN(end - at, UINT64_C(4) - first);
		uint8_t bits = (uint8_t)(flags | ((1u << count) - 1) << first);
		if (t->access & ACCESS_WRITE)
			write_word(t, &word[at / 4], bits, done, &ok);
		else
			read_word(t, &word[at / 4], bits, done, &ok);
		at += count;
		done += count;
	}
}

static emu_word *words_of(emu_cluster *c, emu_cta *cta)
{
	if (!cta->shadow) {
		uint32_t n = cta->shared_bytes / 4 + 2;
		cta->shadow = NEW_SIZED(struct emu_shadow, sizeof *cta->shadow + n * sizeof(emu_word));
		if (!cta->shadow) {
			race_no_memory(c);
			return NULL;
		}
		cta->shadow->n = n;
	}
	return cta->shadow->word;
}

void race_touch(const touch *t)
{
	const emu_place *p = t->place;
	emu_cluster *c = t->w->cluster;
	emu_word *x;

	if (p->space == SPACE_SHARED || p->space == SPACE_CLUSTER) {
		if (!(t->access & ACCESS_SILENT) && (x = words_of(c, p->cta)))
			race_touch_words(t, x, p->offset, 0, t->size);
	} else if (p->space == SPACE_GLOBAL && !p->alloc->is_const) {
		if (!(t->access & ACCESS_SILENT))
			race_touch_global(t);
		if (c->grid->wide && !(t->late && t->access & ACCESS_WRITE && !(t->access & ACCESS_ATOMIC)))
			race_log(t);
	}
}

void race_access(emu_warp *w, const emu_op *op, unsigned lane, const emu_place *p, uint32_t size, unsigned access)
{
	touch t = { .w = w, .op = op, .lane = lane, .access = access, .place = p, .size = size };

	if (w->grid->explorer)
		emu_touch_memory(w, op, p, size, access);
	if (!w->cluster->races)
		return;
	if (access & (ACCESS_STRONG | ACCESS_ATOMIC)) {
		race_order(w, lane, p, access);
		if (w->grid->wide && p->space == SPACE_GLOBAL && !(access & ACCESS_NARROW))
			race_wide_order(w, lane, p->alloc->at + p->offset, access);
	}
	race_touch(&t);
}

/* ---- rows ---- */

/* The words of a piece of memory; NULL: there are none, or not one behind the other. */
static emu_word *row_words(emu_cluster *c, const emu_place *p, uint32_t size)
{
	if (p->space != SPACE_GLOBAL) {
		emu_word *x = p->space == SPACE_CONST ? NULL : words_of(c, p->cta);
		return x ? x + p->offset / 4 : NULL;
	}
	uint64_t at = p->alloc->at + p->offset;
	if (p->alloc->is_const || at % PAGE + size > PAGE)
		return NULL;
	emu_word *x = race_page_words(c, at / PAGE);
	return x ? x + at % PAGE / 4 : NULL;
}

static void row_word(const touch *t, emu_word *x, uint32_t byte)
{
	bool ok = true;

	if (t->access & ACCESS_WRITE)
		write_word(t, x, CELL_BYTES, byte, &ok);
	else
		read_word(t, x, CELL_BYTES, byte, &ok);
}

/* Each lane by itself; the place is that of lane `from`. */
static void one_by_one(touch *t, emu_place *p, uint32_t stride, unsigned from, uint32_t lanes)
{
	emu_place first = *p;

	EACH_LANE(l, lanes) {
		p->offset = first.offset + (l - from) * stride;
		p->p = first.p + (l - from) * stride;
		t->lane = l;
		race_touch(t);
	}
	*p = first;
}

/* All lanes read the same words, of which everybody knows. */
static bool quick_broadcast(emu_warp *w, const emu_op *op, emu_word *x, uint32_t words, uint32_t lanes)
{
	for (uint32_t i = 0; i < words; i++)
		if (!quick_read(w, op, x + i, lanes, CELL_BYTES))
			return false;
	return true;
}

void race_row(emu_warp *w, const emu_op *op, const emu_place *place, uint32_t each, uint32_t stride, uint32_t lanes,
              uint32_t silent, unsigned access)
{
	unsigned from = (unsigned)__builtin_ctz(lanes);
	uint32_t heard = lanes & ~silent;
	emu_cluster *c = w->cluster;
	emu_place p = *place;
	touch t = { .w = w, .op = op, .access = access, .place = &p, .size = each };

	if (!c->races || p.space == SPACE_CONST)
		return;
	emu_word *x = each % 4 ? NULL : row_words(c, place, stride ? (uint32_t)__builtin_popcount(lanes) * each : each);
	if (!x) {
		one_by_one(&t, &p, stride, from, heard);
		t.access |= ACCESS_SILENT;
		one_by_one(&t, &p, stride, from, lanes & silent);
		return;
	}
	if (!stride && !(access & ACCESS_WRITE) && quick_broadcast(w, op, x, each / 4, lanes))
		heard = 0;
	EACH_LANE(l, heard)
		for (uint32_t i = 0; i < each / 4; i++) {
			emu_word *y = x + (l - from) * stride / 4 + i;
			if (access & ACCESS_WRITE ? quick_write(w, op, y, l, CELL_BYTES)
			                          : quick_read(w, op, y, UINT32_C(1) << l, CELL_BYTES))
				continue;
			t.lane = l;
			p.offset = place->offset + (l - from) * stride;
			row_word(&t, y, i * 4);
		}
	if (c->grid->wide && p.space == SPACE_GLOBAL)
		race_log_row(w, op, place, each, stride, lanes, silent, access);
}
