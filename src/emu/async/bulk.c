/* SPDX-License-Identifier: MIT */
/* Bulk copies as asynchronous work: parts of them, groups of threads. */
#include "emu/async/bulk.h"
#include "emu/core/explore.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/exec/atomic.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"
#include "emu/num/num.h"

#include <cptx/tensor_map.h>

#include <stdlib.h>

enum { MOST_CHUNKS = 4, MOST_BYTES = 16 /* of a segment that is swizzled or converted */ };

/* ---- making ---- */

void bulk_free(bulk_copy *b)
{
	free(b->span);
	free(b->dest);
	free(b->stage);
	free(b);
}

static void drop(emu_async *a)
{
	bulk_copy *b = (bulk_copy *)(void *)a;

	free(b->span);
	free(b->dest);
	free(b->stage);
}

static bool no_room(const emu_async *a)
{
	emu_find(a->w, a->op, (int)a->lane, CPTX_FIND_MEMORY, "no memory for a bulk copy");
	return false;
}

bulk_copy *bulk_new(emu_warp *w, const emu_op *op, unsigned lane)
{
	emu_async a = { .drop = drop, .w = w, .lane = lane, .op = op };
	bulk_copy *b = NEW(bulk_copy);

	if (b)
		b->a = a;
	else
		no_room(&a);
	return b;
}

static bool is_outside(const bulk_copy *b, const bulk_span *s) { return s->alloc || (!s->fill && b->from.p); }

/* What n bytes in shared memory are to an mbarrier: padding is not counted. */
static uint32_t counted(const bulk_copy *b, uint32_t n) { return b->spread ? n / b->spread * b->gather : n; }

bool bulk_add(bulk_copy *b, const emu_place *outside, uint32_t n)
{
	if (!array_room(&b->span, b->nspan, &b->cap_span, sizeof *b->span, 64))
		return no_room(&b->a);
	bulk_span *s = &b->span[b->nspan++];
	*s = (bulk_span){ .s = b->bytes, .n = n, .fill = !outside };
	if (outside) {
		s->alloc = outside->alloc;
		s->offset = outside->offset;
	}
	b->bytes += n;
	b->moved += counted(b, n);
	return true;
}

void bulk_skip(bulk_copy *b, uint32_t n) { b->bytes += n; }

static bool add_dest(bulk_copy *b, emu_cta *cta, uint32_t at, emu_cta *mbar_cta, uint32_t mbar)
{
	b->dest[b->ndest++] = (bulk_dest){ .cta = cta, .mbar_cta = mbar_cta, .at = at, .mbar = mbar, .left = b->moved };
	return true;
}

bool bulk_send(bulk_copy *b, const emu_place *dst, const emu_arg *mbar, const emu_arg *ctas, bool pair)
{
	emu_warp *w = b->a.w;
	emu_cluster *c = w->cluster;
	emu_cta *mbar_cta;
	const emu_mbarrier *m =
		mbarrier_for_async(w, b->a.op, b->a.lane, mbar->space, emu_address(w, mbar, b->a.lane), &mbar_cta);
	uint32_t mask = ctas ? (uint32_t)emu_get(w, ctas, b->a.lane) & 0xffff : 0;

	if (!m)
		return false;
	if (dst->cta != mbar_cta && !(pair && (dst->cta->rank ^ mbar_cta->rank) == 1)) {
		emu_find(w, b->a.op, (int)b->a.lane, CPTX_FIND_OPERAND,
		         "the mbarrier is in CTA %u of the cluster, the destination in CTA %u; both must be in the same%s",
		         mbar_cta->rank, dst->cta->rank, pair ? ", or in those of a pair" : "");
		return false;
	}
	if (mask >> c->ncta) {
		emu_find(w, b->a.op, (int)b->a.lane, CPTX_FIND_OPERAND, "CTA mask 0x%x of a cluster of %u CTAs", mask, c->ncta);
		return false;
	}
	b->dest = NEW_ARRAY(bulk_dest, ctas ? c->ncta : 1);
	if (!b->dest)
		return no_room(&b->a);
	if (!ctas)
		return add_dest(b, dst->cta, (uint32_t)dst->offset, mbar_cta, m->offset);
	EACH_LANE(r, mask) {
		uint32_t to = pair ? (r & ~1u) | (mbar_cta->rank & 1) : r;
		add_dest(b, &c->cta[r], (uint32_t)dst->offset, &c->cta[MIN(to, c->ncta - 1)], m->offset);
	}
	return true;
}

/* ---- places ---- */

/* Bytes of global memory, or of the source, that stand for n in shared memory. */
static uint32_t outside_bytes(const bulk_copy *b, uint32_t n) { return b->spread ? n / b->spread * b->gather : n; }

static emu_place outside(const bulk_copy *b, const bulk_span *s, uint32_t i)
{
	emu_place p = b->from;
	uint64_t at = s->offset + outside_bytes(b, i);

	if (s->alloc) {
		p = (emu_place){ .space = SPACE_GLOBAL, .alloc = s->alloc, .offset = at };
		return emu_part_of(b->a.w->cluster, &p, 0);
	}
	p.p += at - p.offset;
	p.offset = at;
	return p;
}

/* Where byte s of the copy is in the shared memory of a CTA. */
static emu_place inside(const bulk_copy *b, emu_cta *cta, uint32_t at, uint32_t s)
{
	uint32_t offset = cptx_swizzle_address((enum cptx_swizzle)b->swizzle, SHARED_FIRST + at + s) - SHARED_FIRST;

	return (emu_place){ .p = cta->shared + offset, .space = SPACE_CLUSTER, .cta = cta, .offset = offset };
}

/* How many of the next bytes stay together. */
static uint32_t together(const bulk_copy *b, uint32_t at, uint32_t left)
{
	uint32_t unit = b->swizzle == CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B ? 8 : MOST_BYTES;

	if (!b->swizzle && !b->spread && !b->to_tf32)
		return left;
	return MIN(left, unit - (at & (unit - 1)));
}

/* ---- bytes ---- */

/* To nearest even; 13 bits fall away.  Subnormal numbers stay, a NaN becomes this one (measured on an H200). */
static void to_tf32(unsigned char *p, uint32_t n)
{
	for (uint32_t i = 0; i + 4 <= n; i += 4) {
		uint32_t v;
		memcpy(&v, p + i, 4);
		if ((v & 0x7fffffff) > 0x7f800000)
			v = 0x7fffe000;
		else
			v = (v + 0xfff + (v >> 13 & 1)) & ~UINT32_C(0x1fff);
		memcpy(p + i, &v, 4);
	}
}

static bool is_nan64(uint64_t v) { return (v & INT64_MAX) > UINT64_C(0x7ff0000000000000); }

static void combine(const bulk_copy *b, const emu_place *to, const unsigned char *from, uint32_t n)
{
	uint32_t each = arch_types[b->type].bits / 8;

	emu_touch_reduction(b->a.w->cluster, b->a.op);
	for (uint32_t i = 0; i + each <= n; i += each) {
		uint64_t old = emu_bytes(to->p + i, each), v = emu_bytes(from + i, each), d;
		if (b->type == CPTX_F64 && (is_nan64(old) || is_nan64(v))) /* it stays a signaling one (measured on an H200) */
			d = is_nan64(old) ? old : v;
		else
			d = emu_atomic(b->op, b->type, old, v, b->ftz);
		memcpy(to->p + i, &d, each);
	}
}

/* The bytes of [i, i + n) of a copy of `bytes` that are not to be skipped. */
static void clip(const bulk_copy *b, uint32_t *i, uint32_t *n)
{
	uint32_t end = MIN(*i + *n, b->bytes - b->skip[1]);

	*i = MAX(*i, b->skip[0]);
	*n = end > *i ? end - *i : 0;
}

static void load_segment(const bulk_copy *b, const bulk_span *s, uint32_t i, const emu_place *to, uint32_t n)
{
	emu_place from = s->fill ? *to : outside(b, s, i), rest = *to, part, at;

	if (b->spread) { /* nothing is said of the padding */
		rest.offset += b->gather;
		emu_set_defined(&rest, n - b->gather, false);
		n = b->gather;
	}
	if (s->fill) {
		for (uint32_t j = 0; j < n; j++)
			to->p[j] = b->fill[(i + j) % sizeof b->fill];
		emu_set_defined(to, n, true);
	}
	for (uint32_t j = 0, m; !s->fill && j < n; j += m) {
		part = emu_part_of(b->a.w->cluster, &from, j);
		at = emu_part_of(b->a.w->cluster, to, j);
		m = emu_page_left(&part, n - j);
		if (b->op)
			combine(b, &at, part.p, m);
		else
			emu_copy_bytes(&at, &part, m);
	}
	if (b->to_tf32 && !s->fill)
		to_tf32(to->p, n);
}

/* Whether a kernel has freed the global memory meanwhile. */
static bool is_gone(const bulk_copy *b, const bulk_span *s)
{
	if (!s->alloc || s->alloc->p)
		return false;
	emu_find(b->a.w, b->a.op, (int)b->a.lane, CPTX_FIND_USE_AFTER_FREE,
	         "%u bytes at address 0x%llx were freed while it was under way; it must be waited for first",
	         outside_bytes(b, s->n), (unsigned long long)(s->alloc->at + s->offset));
	return true;
}

static void load_span(const bulk_copy *b, const bulk_span *s, const bulk_dest *d)
{
	uint32_t i = s->s, left = s->n;

	if (is_gone(b, s))
		return;
	clip(b, &i, &left);
	while (left) {
		emu_place to = inside(b, d->cta, d->at, i);
		uint32_t n = together(b, d->at + i, left);
		load_segment(b, s, i - s->s, &to, n);
		i += n;
		left -= n;
	}
}

/* What leaves to global memory must have been written. */
static void need_bytes(const bulk_copy *b, const emu_place *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += MOST_BYTES) {
		emu_place q = *p;
		q.offset += i;
		if (!emu_all_undefined(&q, MIN(n - i, (uint32_t)MOST_BYTES)))
			continue;
		emu_find(b->a.w, b->a.op, (int)b->a.lane, CPTX_FIND_UNDEFINED,
		         "what is copied from shared memory, offset %llu, was never written", (unsigned long long)q.offset);
		return;
	}
}

static void read_span(const bulk_copy *b, const bulk_span *s)
{
	for (uint32_t i = 0, n; i < s->n; i += n) {
		emu_place from = inside(b, b->from.cta, (uint32_t)b->from.offset, s->s + i);
		n = together(b, (uint32_t)b->from.offset + s->s + i, s->n - i);
		if (!b->a.w->grid->machine->opt.no_undefined)
			need_bytes(b, &from, b->spread ? b->gather : n);
		memcpy(b->stage + s->s + i, from.p, n);
	}
}

static void write_bytes(const bulk_copy *b, const emu_place *to, uint32_t at, const unsigned char *from, uint32_t n)
{
	emu_cluster *c = b->a.w->cluster;

	for (uint32_t done = 0, m; done < n; done += m) {
		emu_place p = emu_part_of(c, to, at + done);
		m = emu_page_left(&p, n - done);
		emu_writable(c, &p, m);
		memcpy(p.p, from + done, m);
		race_async_wrote(b->a.w, b->late_write, &p, m);
		emu_set_defined(&p, m, true);
	}
}

static void write_span(const bulk_copy *b, const bulk_span *s)
{
	uint32_t step = b->spread ? b->spread : s->n;

	if (is_gone(b, s))
		return;
	for (uint32_t i = 0; i < s->n; i += step) {
		emu_place to = outside(b, s, i);
		const unsigned char *from = b->stage + s->s + i;
		uint32_t n = outside_bytes(b, step);
		if (b->op) {
			combine(b, &to, from, n);
			continue;
		}
		for (uint32_t j = 0; b->mask && j < n; j++)
			if (b->mask >> (s->s + j) % 16 & 1)
				write_bytes(b, &to, j, from + j, 1);
		if (!b->mask)
			write_bytes(b, &to, 0, from, n);
	}
}

/* ---- parts ---- */

/* A bit of the set, any. */
static unsigned pick(emu_cluster *c, uint64_t set)
{
	for (uint32_t n = emu_random(c, (uint32_t)__builtin_popcountll(set)); n; n--)
		set &= set - 1;
	return (unsigned)__builtin_ctzll(set);
}

static uint32_t chunk_start(const bulk_copy *b, unsigned chunk)
{
	return (uint32_t)((uint64_t)b->nspan * chunk / b->nchunk);
}

/* Some bytes have come to a destination. */
static bool arrived(emu_cluster *c, const bulk_copy *b, bulk_dest *d, uint32_t bytes)
{
	d->left -= bytes;
	c->counters.async_bytes += bytes;
	mbarrier_by by = mbarrier_by_async(&b->a, d->left ? 0 : d->late);
	emu_mbarrier *m = mbarrier_of(d->mbar_cta, d->mbar, by);
	if (!m)
		return false;
	if (!d->left)
		race_async_done(c, b->late_read, &m->clock);
	return mbarrier_complete_tx(d->mbar_cta, d->mbar, bytes, by);
}

static bool run_load(emu_cluster *c, emu_async *a)
{
	bulk_copy *b = (bulk_copy *)(void *)a;
	unsigned part = pick(c, b->todo), chunk = part % b->nchunk;
	bulk_dest *d = &b->dest[part / b->nchunk];
	uint32_t bytes = 0;

	b->todo &= ~(UINT64_C(1) << part);
	for (uint32_t i = chunk_start(b, chunk); i < chunk_start(b, chunk + 1); i++) {
		load_span(b, &b->span[i], d);
		bytes += counted(b, b->span[i].n);
	}
	return !arrived(c, b, d, bytes) || !b->todo;
}

static void list_store(bulk_copy *b, unsigned which)
{
	bulk_list *l = &b->a.w->bulk.list[b->a.lane][which];

	b->link[which] = (bulk_link){ .previous = l->last };
	*(l->last ? &l->last->link[which].next : &l->first) = b;
	l->last = b;
}

static void unlist_store(bulk_copy *b, unsigned which)
{
	bulk_list *l = &b->a.w->bulk.list[b->a.lane][which];
	bulk_link *k = &b->link[which];

	*(k->previous ? &k->previous->link[which].next : &l->first) = k->next;
	*(k->next ? &k->next->link[which].previous : &l->last) = k->previous;
}

static bool run_store(emu_cluster *c, emu_async *a)
{
	bulk_copy *b = (bulk_copy *)(void *)a;
	uint64_t reads = (UINT64_C(1) << b->nchunk) - 1, is_read = reads & ~b->todo;
	unsigned part = pick(c, b->todo & (reads | is_read << b->nchunk)), chunk = part % b->nchunk;

	b->todo &= ~(UINT64_C(1) << part);
	for (uint32_t i = chunk_start(b, chunk); i < chunk_start(b, chunk + 1); i++)
		if (part < b->nchunk) {
			read_span(b, &b->span[i]);
		} else {
			write_span(b, &b->span[i]);
			c->counters.async_bytes += b->span[i].n;
		}
	bool is_now_read = !b->read && !(b->todo & reads);
	if (is_now_read)
		unlist_store(b, BULK_UNREAD);
	if (!b->todo)
		unlist_store(b, BULK_UNDONE);
	if (!b->todo || is_now_read)
		emu_wake(c);
	b->read = !(b->todo & reads);
	return !b->todo;
}

/* ---- starting ---- */

/*
 * Notes n bytes of shared memory, from byte i of the copy on.  A swizzle changes places inside of each 128 aligned bytes, so
 * whole ones are noted at once, as if there were none; of others each chunk is looked for where the swizzle puts it.
 */
static bool touch_run(const bulk_copy *b, uint32_t late, emu_cta *cta, uint32_t at, uint32_t i, uint32_t n, unsigned access)
{
	emu_warp *w = b->a.w;

	clip(b, &i, &n);
	bool whole = !b->swizzle || !((at + i) % 128 || n % 128);
	for (uint32_t end = i + n; i < end; i += n) {
		emu_place p = { .p = cta->shared + at + i, .space = SPACE_CLUSTER, .cta = cta, .offset = at + i };
		n = whole ? end - i : together(b, at + i, end - i);
		if (!whole)
			p = inside(b, cta, at, i);
		if (p.offset + n > cta->shared_bytes || !emu_variable_holds(&w->grid->image->shared, p.offset, n)) {
			char near[EMU_NEAR];
			emu_find(w, b->a.op, (int)b->a.lane, CPTX_FIND_BOUNDS, "%u bytes at shared address 0x%llx%s: %s", n,
			         (unsigned long long)p.offset + SHARED_FIRST, whole ? "" : ", where the swizzle puts them",
			         emu_near_shared(cta, p.offset + SHARED_FIRST, n, near));
			return false;
		}
		race_async_touch(w, late, &p, n, access | ACCESS_ASYNC);
	}
	return true;
}

/* The shared memory of all spans, neighbours together. */
static bool touch_shared(const bulk_copy *b, uint32_t late, emu_cta *cta, uint32_t at, unsigned access)
{
	for (uint32_t i = 0, j; i < b->nspan; i = j) {
		uint32_t end = b->span[i].s + b->span[i].n;
		for (j = i + 1; j < b->nspan && b->span[j].s == end; j++)
			end += b->span[j].n;
		if (!touch_run(b, late, cta, at, b->span[i].s, end - b->span[i].s, access))
			return false;
	}
	return true;
}

/* Notes what is outside: neighbours together. */
static void touch_outside(const bulk_copy *b, uint32_t late, unsigned access)
{
	for (uint32_t i = 0, j; i < b->nspan; i = j) {
		const bulk_span *s = &b->span[i];
		uint32_t n = outside_bytes(b, s->n);
		for (j = i + 1;
		     j < b->nspan && !b->span[j].fill && b->span[j].alloc == s->alloc && b->span[j].offset == s->offset + n; j++)
			n += outside_bytes(b, b->span[j].n);
		if (!is_outside(b, s))
			continue;
		emu_place p = outside(b, s, 0);
		race_async_touch(b->a.w, late, &p, n, access | ACCESS_ASYNC);
	}
}

static void touch_map(const bulk_copy *b)
{
	if (b->map.p)
		race_async_touch(b->a.w, b->late_read, &b->map, CPTX_TENSOR_MAP_BYTES,
		                 ACCESS_READ | ACCESS_ASYNC | ACCESS_TENSORMAP);
}

static bool touch_load(bulk_copy *b)
{
	unsigned access = b->op ? ACCESS_READ | ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG : ACCESS_WRITE;

	b->late_read = race_async_begin(b->a.w, b->a.op, b->a.lane);
	touch_map(b);
	touch_outside(b, b->late_read, ACCESS_READ);
	for (uint32_t i = 0; i < b->ndest; i++) {
		bulk_dest *d = &b->dest[i];
		d->late = race_async_begin(b->a.w, b->a.op, b->a.lane);
		if (!touch_shared(b, d->late, d->cta, d->at, access))
			return false;
	}
	return true;
}

/* A sum over which bytes a copy reads and where it writes them: equal for copies of an instruction that do the same. */
static uint64_t sum_of(const bulk_copy *b)
{
	uint64_t sum = b->from.offset * UINT64_C(0x9e3779b97f4a7c15) + b->bytes + ((uint64_t)b->swizzle << 32 | b->mask);

	for (uint32_t i = 0; i < b->nspan; i++) {
		const bulk_span *s = &b->span[i];
		const uint64_t word[] = { is_outside(b, s) ? outside(b, s, 0).alloc->at : 0, s->offset,
			                      (uint64_t)s->s << 32 | s->n };
		for (size_t j = 0; j < ARRAY_LEN(word); j++)
			sum = (sum ^ word[j]) * UINT64_C(0x100000001b3) + (sum >> 29);
	}
	return sum;
}

/* A lane that stores the bytes that the first lane of its instruction stores there.  What is reduced counts each time. */
static void find_repeated_store(const bulk_copy *b)
{
	emu_warp *w = b->a.w;
	bulk_first *first = &w->bulk.first, now = { b->a.op, w->cluster->step, sum_of(b), b->late_write };

	if (b->op || first->op != now.op || first->step != now.step)
		*first = now;
	else if (first->sum == now.sum &&
	         emu_lenient(
				 w, b->a.op, (int)b->a.lane, CPTX_FIND_SAME_STORE,
				 "the copy has the source and the destination of another that the same instruction starts in this warp"))
		race_async_same(w->cluster, b->late_write, (uint32_t)first->late);
}

static bool touch_store(bulk_copy *b)
{
	unsigned access = b->op ? ACCESS_READ | ACCESS_WRITE | ACCESS_ATOMIC | ACCESS_STRONG : ACCESS_WRITE;
	emu_warp *w = b->a.w;

	b->late_read = race_async_begin(w, b->a.op, b->a.lane);
	b->late_write = race_async_begin(w, b->a.op, b->a.lane);
	race_async_grouped(w->cluster, b->late_read, &w->bulk.read, b->group);
	race_async_grouped(w->cluster, b->late_write, &w->bulk.done, b->group);
	find_repeated_store(b);
	touch_map(b);
	touch_outside(b, b->late_write, access);
	return touch_shared(b, b->late_read, b->from.cta, (uint32_t)b->from.offset, ACCESS_READ);
}

bool bulk_start(bulk_copy *b)
{
	emu_warp *w = b->a.w;
	uint32_t parts = b->store ? 2 : b->ndest;

	b->nchunk = MIN(b->nspan, 1 + emu_random(w->cluster, MOST_CHUNKS));
	if (b->store) {
		b->group = w->bulk.committed[b->a.lane] + 1;
		w->bulk.last[b->a.lane] = b->group;
		w->bulk.store[b->a.lane] = b->a.op;
		b->stage = NEW_UNSET(unsigned char, b->bytes + 1u);
	}
	if ((b->store && !b->stage && !no_room(&b->a)) || !(b->store ? touch_store(b) : touch_load(b)) || !parts || !b->nspan) {
		bool ok = !w->cluster->failed;
		bulk_free(b);
		return ok;
	}
	emu_spend(w->cluster, (uint64_t)b->moved * parts + b->nspan * sizeof *b->span);
	b->todo = parts * b->nchunk == 64 ? ~UINT64_C(0) : (UINT64_C(1) << parts * b->nchunk) - 1;
	b->a.run = b->store ? run_store : run_load;
	b->a.turn = b->store && b->op;
	for (unsigned i = 0; i < BULK_LISTS && b->store; i++)
		list_store(b, i);
	return emu_async_start(w->cluster, &b->a);
}

/* ---- groups ---- */

static bool under_way(const emu_warp *w, unsigned lane, uint32_t group, bool read)
{
	const bulk_copy *oldest = w->bulk.list[lane][read ? BULK_UNREAD : BULK_UNDONE].first;

	return oldest && oldest->group <= group;
}

static enum emu_step commit(emu_warp *w, const emu_op *op, uint32_t mask)
{
	(void)op;
	EACH_LANE(l, mask)
		w->bulk.committed[l]++;
	return STEP_NEXT;
}

bool decode_bulk_commit(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->fn = commit;
	return true;
}

/* imm[0]: groups that may be under way; imm[1]: .read */
static enum emu_step wait_group(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_bulk *k = &w->bulk;

	EACH_LANE(l, mask)
		if (k->committed[l] > op->imm[0] && under_way(w, l, k->committed[l] - (uint32_t)op->imm[0], op->imm[1]))
			return emu_group_block(w, op, "its bulk groups", 0, 0);
	EACH_LANE(l, mask) {
		uint32_t group = k->committed[l] > op->imm[0] ? k->committed[l] - (uint32_t)op->imm[0] : 0;
		k->waited[l] = MAX(k->waited[l], group);
		race_async_waited(w, UINT32_C(1) << l, &k->read, group);
		if (!op->imm[1])
			race_async_waited(w, UINT32_C(1) << l, &k->done, group);
	}
	return STEP_NEXT;
}

bool decode_bulk_wait(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->imm[0] = op->arg[1].offset;
	op->imm[1] = emu_modifier(op, "read") != 0;
	op->flags = OP_SPLITS;
	op->fn = wait_group;
	return true;
}

void emu_bulk_exit(emu_warp *w, const emu_op *op, uint32_t mask)
{
	EACH_LANE(l, mask)
		if (w->bulk.last[l] > w->bulk.waited[l]) {
			buf store;
			buf_init(&store, NULL);
			emu_put_op(&store, w->grid, w->bulk.store[l]);
			buf_put(&store, "", 1);
			emu_lenient(w, op, (int)l, CPTX_FIND_EXIT,
			            "the thread ends, but has not waited for its bulk group %u, in which %s reads shared memory; "
			            "cp.async.bulk.wait_group.read 0 (of a ring cptx_epilogue_ring_drain) must come before%s",
			            w->bulk.last[l], store.failed ? "a store" : store.p,
			            w->bulk.last[l] > w->bulk.committed[l] ? ", and cp.async.bulk.commit_group before that" : "");
			buf_free(&store);
			return;
		}
}

void emu_bulk_free(emu_warp *w)
{
	clock_free(&w->bulk.read);
	clock_free(&w->bulk.done);
}
