/* SPDX-License-Identifier: MIT */
/*
 * Between clusters.  Nothing orders them but releases and acquires of gpu scope, which are executed one cluster after
 * another; each ends a segment of the cluster that releases.  Before such an order changes, and when a cluster ends, what it
 * has touched since is compared with what others have, and added to it: by one thread, in the order of clusters.  What the
 * thread that releases has not seen of the others of its cluster stays in the log, for a later segment.
 */
#include "emu/race/wide.h"
#include "emu/core/cluster.h"
#include "emu/core/finding.h"
#include "emu/core/grid.h"
#include "emu/core/machine.h"

#include <stdlib.h>

#define NOBODY UINT32_MAX /* a note that a later one has made needless */
enum {
	MOST_KNOWN = 1024,
	MOST_LOCATIONS = 1 << 16,
	MOST_READERS = 4,
	MOST_WRITERS = 8 /* of a page: a further one is not noted */
};

/* ---- clocks ---- */

static struct wide_entry *entry_of(const wide_clock *k, uint32_t cluster)
{
	uint32_t lo = 0, hi = k->n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (k->e[mid].cluster < cluster)
			lo = mid + 1;
		else
			hi = mid;
	}
	return k->e + lo;
}

static bool knows(const wide_clock *k, uint32_t cluster, uint32_t segment)
{
	const struct wide_entry *e = k->n ? entry_of(k, cluster) : NULL;

	return k->all || (e && e < k->e + k->n && e->cluster == cluster && e->segment >= segment);
}

/* False: memory is short. */
static bool learn(wide_clock *k, uint32_t cluster, uint32_t segment, bool *news)
{
	if (knows(k, cluster, segment))
		return true;
	*news = true;
	if (k->n == k->cap) {
		uint32_t cap = k->cap ? k->cap * 2 : 8;
		struct wide_entry *p = cap <= MOST_KNOWN ? GROW_ARRAY(struct wide_entry, k->e, cap) : NULL;
		if (!p) {
			k->all = cap > MOST_KNOWN;
			return k->all;
		}
		k->e = p;
		k->cap = cap;
	}
	struct wide_entry *e = entry_of(k, cluster);
	if (e < k->e + k->n && e->cluster == cluster) {
		e->segment = segment;
		return true;
	}
	memmove(e + 1, e, (size_t)(k->e + k->n - e) * sizeof *e);
	*e = (struct wide_entry){ cluster, segment };
	k->n++;
	return true;
}

/* Whether who knows of these events knows that segment. */
static bool knows_by(const global_pages *g, uint64_t events, uint32_t cluster, uint32_t segment)
{
	if (knows(&g->known, cluster, segment))
		return true;
	for (uint32_t i = 0; i < g->nevent; i++)
		if (events >> i & 1 && knows(&g->event[i].from, cluster, segment))
			return true;
	return false;
}

static bool knows_event(const emu_warp *w, unsigned lane, const wide_event *e)
{
	if (e->agent == w->agent && e->lanes >> lane & 1)
		return true;
	EACH_LANE(l, e->lanes)
		if (race_knows(w, lane, false, e->agent, e->epoch, l))
			return true;
	return false;
}

uint64_t race_wide_events(const emu_warp *w, unsigned lane)
{
	const global_pages *g = w->cluster->races->pages;
	uint64_t events = 0;

	for (uint32_t i = 0; i < g->nevent; i++)
		events |= (uint64_t)knows_event(w, lane, &g->event[i]) << i;
	return events;
}

/* Whether the clock tells something to who knows of these events. */
static bool brings_news(const global_pages *g, uint64_t events, const wide_clock *from)
{
	if (g->known.all)
		return false;
	for (uint32_t i = 0; i < from->n; i++)
		if (!knows_by(g, events, from->e[i].cluster, from->e[i].segment))
			return true;
	return from->all;
}

static void join(emu_cluster *c, wide_clock *to, const wide_clock *from)
{
	bool news, ok = true;

	to->all |= from->all;
	for (uint32_t i = 0; ok && !to->all && i < from->n; i++)
		ok = learn(to, from->e[i].cluster, from->e[i].segment, &news);
	if (!ok)
		race_no_memory(c);
}

static void forget(wide_clock *k)
{
	k->n = 0;
	k->all = false;
}

/* ---- comparing ---- */

/* The first byte of the page that both touch so that they conflict; -1: none. */
static int overlap(const note *a, const note *b)
{
	bool writes = a->flags & b->flags & NOTE_WRITE;

	if ((a->flags ^ b->flags) & NOTE_BYTES) {
		const note *x = a->flags & NOTE_BYTES ? a : b, *y = x == a ? b : a;
		for (int i = 0; i < PAGE_WORDS; i++)
			if (y->bits[i / 32] >> i % 32 & 1 && x->bits[i / 8] >> i % 8 * 4 & 15)
				return i * 4 + __builtin_ctz(x->bits[i / 8] >> i % 8 * 4 & 15);
		return -1;
	}
	int n = a->flags & NOTE_BYTES ? PAGE / 32 : PAGE_WORDS / 32, each = a->flags & NOTE_BYTES ? 1 : 4;
	for (int i = 0; i < n; i++)
		EACH_LANE(l, a->bits[i] & b->bits[i]) {
			int at = i * 32 + (int)l;
			if (!writes || !a->values[at] || a->values[at] != b->values[at])
				return at * each;
		}
	return -1;
}

/* Two accesses that do not conflict whatever they touch: reads, what is strong, a write of what was there and a read. */
static bool agree(const note *a, const note *b)
{
	return !((a->flags | b->flags) & NOTE_WRITE) || a->flags & b->flags & NOTE_STRONG ||
	       ((a->flags | b->flags) & NOTE_SILENT && !(a->flags & b->flags & NOTE_WRITE));
}

static void found(emu_cluster *c, const note *now, const note *before, uint32_t byte)
{
	const emu_grid *g = c->grid;
	uint32_t per = c->cta[0].nwarp, id[3];
	emu_warp *w = &c->cta[now->agent / per].warp[now->agent % per];
	const emu_op *op = g->image->ops[now->op];
	uint64_t at = now->page * PAGE + byte;
	emu_place p = { .space = SPACE_GLOBAL, .alloc = emu_alloc_find(g->machine, at) };
	buf b;

	if (emu_found_before(w, op, CPTX_FIND_RACE) || !p.alloc)
		return;
	buf_init(&b, NULL);
	buf_printf(&b, "it %s ", now->flags & NOTE_WRITE ? "writes" : "reads");
	race_put_place(&b, g, &p, at - p.alloc->at);
	buf_printf(&b, ", which is %s by ", before->flags & NOTE_WRITE ? "written" : "read");
	emu_put_op(&b, g, g->image->ops[before->op]);
	emu_block_id(g, before->cluster, before->agent / per, id);
	buf_printf(&b,
	           " of warp %u of block (%u, %u, %u); nothing orders these blocks: that takes a release and an acquire of "
	           "gpu scope, by this thread or before a barrier",
	           before->agent % per, id[0], id[1], id[2]);
	buf_put(&b, "", 1);
	emu_find(w, op, now->lane < WARP ? now->lane : EMU_ALL, CPTX_FIND_RACE, "%s", b.failed ? "a race" : b.p);
	buf_free(&b);
}

/* Takes those bits away; true if none is left. */
static bool without(note *x, const note *y)
{
	uint32_t left = 0;
	int n = x->flags & NOTE_BYTES ? PAGE / 32 : PAGE_WORDS / 32;

	if ((x->flags ^ y->flags) & NOTE_BYTES)
		return false;
	for (int i = 0; i < n; i++)
		left |= x->bits[i] &= ~y->bits[i];
	return !left;
}

static bool fits(const note *x, const note *n)
{
	return x->page == n->page && (x->flags & (NOTE_WRITE | NOTE_BYTES)) == (n->flags & (NOTE_WRITE | NOTE_BYTES));
}

static void merge(note *x, const note *n)
{
	int words = n->flags & NOTE_BYTES ? PAGE / 32 : PAGE_WORDS / 32;

	for (int i = 0; i < words; i++) {
		if (x->values)
			EACH_LANE(l, n->bits[i]) {
				int at = i * 32 + (int)l;
				x->values[at] = x->bits[i] >> l & 1 && x->values[at] != n->values[at] ? 0 : n->values[at];
			}
		x->bits[i] |= n->bits[i];
	}
}

static bool fold_note(emu_cluster *c, const note *n)
{
	notes *s = &c->grid->wide->pages;
	const global_pages *g = c->races->pages;
	uint32_t home = 0, empty = 0, count = 0;

	for (uint32_t i = race_notes_of(s, n->page); i; i = s->n[i - 1].next) {
		note *x = &s->n[i - 1];
		if (x->page != n->page)
			continue;
		if (x->cluster == NOBODY) {
			empty = fits(x, n) ? i : empty;
			continue;
		}
		bool own = x->cluster == n->cluster;
		int at = own || agree(x, n) ? -1 : overlap(x, n);
		bool ordered = own || knows_by(g, n->events, x->cluster, x->segment);
		if (at >= 0 && !ordered)
			found(c, n, x, (uint32_t)at);
		/* Who is ordered behind both will be ordered behind the later one. */
		if (ordered && (n->flags & NOTE_WRITE || !(x->flags & NOTE_WRITE)) && !(n->flags & (NOTE_SILENT | NOTE_STRONG)) &&
		    (!own || x->segment != n->segment) && without(x, n)) {
			x->cluster = NOBODY;
			empty = fits(x, n) ? i : empty;
			continue;
		}
		if (own && x->op == n->op && x->flags == n->flags && x->segment == n->segment)
			home = i;
		/* strong accesses, which agree with one another, take no room from others */
		count += !((x->flags ^ n->flags) & (NOTE_WRITE | NOTE_STRONG));
	}
	if (home) {
		merge(&s->n[home - 1], n);
	} else if (empty) {
		note *x = &s->n[empty - 1];
		uint32_t next = x->next, *bits = x->bits;
		uint8_t *values = x->values;
		*x = *n;
		x->next = next;
		x->bits = bits;
		x->values = values;
		merge(x, n);
	} else if (count < (n->flags & NOTE_WRITE ? MOST_WRITERS : MOST_READERS)) {
		note *x = race_note_new(s, n);
		if (!x)
			return false;
		merge(x, n);
	}
	return true;
}

/* ---- folding the log ---- */

/* Lanes that release. */
typedef struct releaser {
	emu_warp *w;
	uint32_t lanes;
} releaser;

/* What the releaser does not know of is not released: who wrote the word has synchronized with none of its lanes. */
static bool releases(const void *by, const cell *x)
{
	const releaser *r = (const releaser *)by;

	if (x->bits & CELL_LATE || (x->agent == r->w->agent && r->lanes >> x->lane & 1))
		return true;
	EACH_LANE(l, r->lanes)
		if (race_knows(r->w, l, false, x->agent, x->epoch, x->lane))
			return true;
	return false;
}

/* Takes away from the weak write n what is not released, and notes it in kept_back, for a segment to come.  False: memory is
 * short. */
static bool keep_back(const releaser *r, note *n, notes *kept_back)
{
	const emu_word *word =
		n->flags & NOTE_WRITE && !(n->flags & NOTE_STRONG) ? race_page_there(r->w->cluster, n->page) : NULL;
	int bits = n->flags & NOTE_BYTES ? PAGE : PAGE_WORDS, each = PAGE / bits;
	note *rest = NULL;

	for (int i = 0; word && i < bits / 32; i++)
		EACH_LANE(l, n->bits[i]) {
			int at = i * 32 + (int)l;
			unsigned bytes = each == 4 ? CELL_BYTES : 1u << at % 4;
			if (race_each_writer(r->w->cluster, &word[at * each / 4], bytes, releases, r))
				continue;
			if (!rest && !(rest = race_note_new(kept_back, n)))
				return false;
			rest->bits[i] |= UINT32_C(1) << l;
			rest->values[at] = n->values[at];
		}
	if (rest)
		without(n, rest);
	return true;
}

static void fold(emu_cluster *c, const releaser *r)
{
	global_pages *g = c->races ? c->races->pages : NULL;
	notes kept_back = { 0 };
	bool ok = true;

	c->fold = false;
	if (!g || !c->grid->wide)
		return;
	arena_init(&kept_back.a, NULL);
	for (uint32_t i = 0; ok && i < g->log.count; i++) {
		note n = g->log.n[i];
		n.cluster = (uint32_t)c->number;
		n.segment = g->segment;
		ok = (!r || keep_back(r, &n, &kept_back)) && fold_note(c, &n);
	}
	if (kept_back.count) {
		race_notes_free(&g->log);
		g->log = kept_back;
	} else {
		race_notes_clear(&g->log);
		race_notes_free(&kept_back);
	}
	memset(g->recent, 0, sizeof g->recent);
	if (!ok)
		race_no_memory(c);
}

void race_fold(emu_cluster *c) { fold(c, NULL); }

/* ---- what orders clusters ---- */

static wide_location *find(emu_wide *x, uint64_t at)
{
	uint32_t i = (uint32_t)(at * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	if (!x->cap_loc)
		return NULL;
	for (i &= x->cap_loc - 1; x->loc[i].at && x->loc[i].at != at;)
		i = (i + 1) & (x->cap_loc - 1);
	return &x->loc[i];
}

static bool grow(emu_wide *x)
{
	wide_location *old = x->loc;
	uint32_t n = x->cap_loc;

	x->loc = NEW_ARRAY(wide_location, n ? n * 2 : 16);
	if (!x->loc) {
		x->loc = old;
		return false;
	}
	x->cap_loc = n ? n * 2 : 16;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].at)
			*find(x, old[i].at) = old[i];
	free(old);
	return true;
}

static wide_clock *clock_at(emu_cluster *c, uint64_t at, bool make)
{
	emu_wide *x = c->grid->wide;
	wide_location *l = find(x, at);

	if (l && l->at)
		return &l->clock;
	if (!make || x->nloc >= MOST_LOCATIONS)
		return make || x->other_locs.n || x->other_locs.all ? &x->other_locs : NULL;
	if (x->nloc * 2 >= x->cap_loc) {
		if (!grow(x)) {
			race_no_memory(c);
			return NULL;
		}
		l = find(x, at);
	}
	x->nloc++;
	l->at = at;
	return &l->clock;
}

/* All lanes know of all events. */
static void settle_events(emu_cluster *c)
{
	global_pages *g = c->races->pages;

	race_fold(c);
	for (uint32_t i = 0; i < g->nevent; i++) {
		join(c, &g->known, &g->event[i].from);
		forget(&g->event[i].from);
	}
	g->nevent = 0;
	for (uint32_t i = 0; i < g->log.count; i++)
		g->log.n[i].events = 0;
}

/* The cluster's own segment ends: what these lanes know and have done leaves it. */
static void leave(emu_warp *w, uint32_t lanes)
{
	global_pages *g = w->cluster->races->pages;
	emu_clock *to = &g->left[g->segment % MOST_LEFT];

	clock_free(to);
	clock_join(w->cluster, to, &g->left[(g->segment - 1) % MOST_LEFT]);
	clock_release_by(w, lanes, to);
}

/* What the lanes learn of their own cluster by others, which have acquired it and release what they know. */
static void come_back(emu_warp *w, uint32_t lanes, const wide_clock *from)
{
	global_pages *g = w->cluster->races->pages;
	const uint32_t number = (uint32_t)w->cluster->number, last = g->segment - 1;
	const struct wide_entry *e = from->n ? entry_of(from, number) : NULL;
	uint32_t segment = e && e < from->e + from->n && e->cluster == number ? e->segment : 0;

	segment = from->all ? last : segment;
	if (segment && last >= MOST_LEFT)
		segment = MAX(segment, last - MOST_LEFT + 1);
	if (segment)
		clock_acquire_by(w, lanes, &g->left[segment % MOST_LEFT]);
}

static void acquire(emu_warp *w, uint32_t lanes, const wide_clock *from)
{
	global_pages *g = w->cluster->races->pages;
	uint64_t known = ~UINT64_C(0);

	come_back(w, lanes, from);

	EACH_LANE(l, g->nevent ? lanes : 0)
		known &= race_wide_events(w, l);
	if (!brings_news(g, known, from))
		return;
	if (g->nevent == MOST_EVENTS)
		settle_events(w->cluster);
	wide_event *e = &g->event[g->nevent++];
	e->agent = w->agent;
	e->epoch = w->know.epoch;
	e->lanes = lanes;
	join(w->cluster, &e->from, from);
}

static void release(const releaser *r, wide_clock *to)
{
	emu_cluster *c = r->w->cluster;
	global_pages *g = c->races->pages;
	uint64_t events = 0;
	bool news;

	fold(c, r);
	EACH_LANE(l, g->nevent ? r->lanes : 0)
		events |= race_wide_events(r->w, l);
	join(c, to, &g->known);
	for (uint32_t i = 0; i < g->nevent; i++)
		if (events >> i & 1)
			join(c, to, &g->event[i].from);
	if (!to->all && !learn(to, (uint32_t)c->number, g->segment, &news))
		race_no_memory(c);
	leave(r->w, r->lanes);
	g->segment++;
}

void race_wide_order(emu_warp *w, unsigned lane, uint64_t at, unsigned access)
{
	emu_cluster *c = w->cluster;
	global_pages *g = c->races->pages;
	wide_clock *k = clock_at(c, at, false);

	if (k && access & ACCESS_READ) {
		if (access & ACCESS_ACQUIRE)
			acquire(w, UINT32_C(1) << lane, k);
		else
			join(c, &g->pending, k);
	}
	if (!(access & ACCESS_WRITE))
		return;
	if (k && !(access & ACCESS_ATOMIC) && k != &c->grid->wide->other_locs)
		forget(k);
	bool fenced = g->at_fence.n || g->at_fence.all;
	if (!(access & ACCESS_RELEASE) && !fenced)
		return;
	k = clock_at(c, at, true);
	if (k && access & ACCESS_RELEASE)
		release(CPTX_OPT_(releaser, w, UINT32_C(1) << lane), k);
	else if (k)
		join(c, k, &g->at_fence);
}

void race_wide_fence(emu_warp *w, uint32_t lanes, unsigned order)
{
	global_pages *g = w->cluster->races->pages;

	if (order & ACCESS_ACQUIRE)
		acquire(w, lanes, &g->pending);
	if (order & ACCESS_RELEASE)
		release(CPTX_OPT_(releaser, w, lanes), &g->at_fence);
}

/* ---- making and freeing ---- */

bool race_grid_init(emu_grid *g)
{
	if (g->machine->opt.no_races || g->nclusters < 2)
		return true;
	g->wide = NEW(struct emu_wide);
	if (g->wide)
		arena_init(&g->wide->pages.a, NULL);
	return g->wide != NULL;
}

void race_grid_free(emu_grid *g)
{
	emu_wide *x = g->wide;

	if (!x)
		return;
	race_notes_free(&x->pages);
	for (uint32_t i = 0; i < x->cap_loc; i++)
		free(x->loc[i].clock.e);
	free(x->loc);
	free(x->other_locs.e);
	free(x);
	g->wide = NULL;
}

bool race_pages_init(emu_cluster *c)
{
	global_pages *g = c->races->pages = NEW(struct global_pages);

	if (!g)
		return false;
	arena_init(&g->log.a, NULL);
	g->segment = 1;
	return true;
}

void race_pages_free(emu_cluster *c)
{
	global_pages *g = c->races->pages;

	if (!g)
		return;
	for (unsigned i = 0; i < SLOTS; i++)
		free(g->page[i]);
	race_notes_free(&g->log);
	for (uint32_t i = 0; i < MOST_EVENTS; i++)
		free(g->event[i].from.e);
	for (uint32_t i = 0; i < MOST_LEFT; i++)
		clock_free(&g->left[i]);
	free(g->known.e);
	free(g->at_fence.e);
	free(g->pending.e);
	free(g);
}
