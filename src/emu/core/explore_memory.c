/* SPDX-License-Identifier: MIT */
#include "emu/core/explore_memory.h"

#include <stdlib.h>

static size_t bits(const emu_kept_alloc *a) { return 8 * ((size_t)a->size / 64 + 1); }

void emu_memory_forget(emu_kept_memory *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->a[i].bytes);
		free(k->a[i].defined);
	}
	free(k->a);
}

bool emu_memory_keep(const emu_machine *m, emu_kept_memory *k)
{
	*k = (emu_kept_memory){ .next_at = m->next_at, .launches = m->launches, .counters = m->counters };
	k->a = NEW_ARRAY(emu_kept_alloc, m->nalloc + 1);
	for (size_t i = 0; k->a && i < m->nalloc; i++) {
		const emu_alloc *a = m->alloc[i];
		emu_kept_alloc *x = &k->a[k->n];
		if (!a->p)
			continue;
		*x = (emu_kept_alloc){ .at = a->at, .size = a->size, .bytes = NEW_UNSET(unsigned char, a->size + 1) };
		k->n++;
		x->defined = a->defined ? NEW_UNSET(unsigned char, bits(x)) : NULL;
		if (!x->bytes || (a->defined && !x->defined))
			return false;
		memcpy(x->bytes, a->p, (size_t)a->size);
		if (a->defined)
			memcpy(x->defined, a->defined, bits(x));
	}
	return k->a != NULL;
}

bool emu_memory_restore(emu_machine *m, const emu_kept_memory *k)
{
	size_t n = 0;

	for (size_t i = 0; i < m->nalloc; i++) {
		emu_alloc *a = m->alloc[i];
		const emu_kept_alloc *x = n < k->n ? &k->a[n] : NULL;
		if (!a->p)
			continue;
		if (!x || a->at != x->at) {
			emu_alloc_close(m, a); /* a kernel's malloc */
			continue;
		}
		memcpy(a->p, x->bytes, (size_t)x->size);
		if (x->defined)
			memcpy(a->defined, x->defined, bits(x));
		n++;
	}
	emu_alloc_sweep(m);
	m->next_at = k->next_at;
	m->launches = k->launches;
	m->counters = k->counters;
	return n == k->n;
}

static bool is_defined(const unsigned char *defined, uint64_t i) { return !defined || defined[i / 8] >> i % 8 & 1; }

/* The bytes of one allocation; what was written in neither is the same. */
static void compare(const emu_alloc *a, const emu_kept_alloc *x, emu_memory_difference *d)
{
	if (!memcmp(a->p, x->bytes, (size_t)x->size) && (!x->defined || !memcmp(a->defined, x->defined, bits(x))))
		return;
	for (uint64_t i = 0; i < x->size; i++) {
		const bool now = is_defined(a->defined, i), then = is_defined(x->defined, i);
		if (now == then && (!now || a->p[i] == x->bytes[i]))
			continue;
		if (!d->bytes++)
			*d = (emu_memory_difference){ 1, a, i, x->bytes[i], a->p[i], then, now };
	}
}

void emu_memory_compare(const emu_machine *m, const emu_kept_memory *k, emu_memory_difference *d)
{
	size_t n = 0;

	*d = (emu_memory_difference){ 0 };
	for (size_t i = 0; i < m->nalloc && n < k->n; i++) {
		const emu_alloc *a = m->alloc[i];
		if (!a->p || a->at != k->a[n].at)
			continue;
		compare(a, &k->a[n++], d);
	}
}

static void put_byte(buf *b, bool defined, unsigned byte)
{
	if (defined)
		buf_printf(b, "0x%02x", byte);
	else
		buf_str(b, "nothing");
}

void emu_memory_put_difference(buf *b, const emu_memory_difference *d)
{
	const emu_alloc *a = d->in;

	buf_printf(b, "%llu byte%s of memory %s, the first at 0x%llx, %llu bytes behind the start of ",
	           (unsigned long long)d->bytes, d->bytes == 1 ? "" : "s", d->bytes == 1 ? "differs" : "differ",
	           (unsigned long long)(a->at + d->offset), (unsigned long long)d->offset);
	if (a->name)
		buf_printf(b, "variable %s: ", a->name);
	else
		buf_printf(b, "an allocation of %llu bytes: ", (unsigned long long)a->size);
	put_byte(b, d->is_defined, d->is);
	buf_str(b, " in place of ");
	put_byte(b, d->was_defined, d->was);
}
