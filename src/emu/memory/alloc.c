/* SPDX-License-Identifier: MIT */
/*
 * Global memory: which of its addresses are whose.  New ones come behind the latest, as far as the address space goes, and
 * then from its beginning again, where nothing is: so an address that was freed stays free as long as can be, and who still
 * uses it is found.
 */
#include "emu/memory/alloc.h"
#include "emu/core/machine.h"
#include "emu/memory/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALLOC_ALIGN = 512, MOST_FREED = 4096 /* that are remembered */ };
enum { PAGES = 1 << 20 /* bytes from which on the system gives zeros, so that untouched ones cost nothing */ };
enum { PAGE = 65536 /* bytes; a multiple of the host's pages */ };
#define GLOBAL_END WINDOW_SHARED

bool emu_memory_init(emu_machine *m)
{
	m->next_at = GLOBAL_FIRST + EMU_ALLOC_GAP;
	return true;
}

/* ---- bytes of the host ---- */

static void *zeros_new(size_t size)
{
	if (size < PAGES)
		return NEW_ARRAY(unsigned char, size);
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void zeros_free(void *p, size_t size)
{
	if (p && size >= PAGES)
		munmap(p, size);
	else
		free(p);
}

static size_t bytes_of(const emu_alloc *a) { return (size_t)a->size + 16; }
/* A bit for each byte; what a view settles comes in words of 64 bytes. */
static size_t bits_of(const emu_alloc *a) { return 8 * ((size_t)a->size / 64 + 1); }

static size_t pages_of(uint64_t size) { return (size_t)(size + PAGE - 1) / PAGE * PAGE; }

static void free_bytes(emu_alloc *a)
{
	if (a->of) {
		a->of->aliases--;
		a->of = NULL;
		a->p = NULL, a->defined = NULL;
		return;
	}
	if (a->is_unified && a->p)
		munmap(a->p, pages_of(a->size));
	else if (!a->is_host)
		zeros_free(a->p, bytes_of(a));
	zeros_free(a->defined, bits_of(a));
	a->p = NULL;
	a->defined = NULL;
}

static void free_one(emu_alloc *a)
{
	free_bytes(a);
	free(a->member);
	free(a->name);
	free(a);
}

void emu_memory_free(emu_machine *m)
{
	for (size_t i = 0; i < m->nalloc; i++) /* first those that have bytes of others */
		if (m->alloc[i]->of)
			free_bytes(m->alloc[i]);
	for (size_t i = 0; i < m->nalloc; i++)
		free_one(m->alloc[i]);
	free(m->alloc);
	free(m->freed);
}

/* ---- who has an address ---- */

/* Number of the first allocation behind the address. */
static size_t behind(const emu_machine *m, uint64_t at)
{
	size_t lo = 0, hi = m->nalloc;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (m->alloc[mid]->at <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

emu_alloc *emu_alloc_near(const emu_machine *m, uint64_t at, const emu_alloc **next)
{
	size_t i = behind(m, at), n = i;

	while (n < m->nalloc && !m->alloc[n]->p)
		n++;
	while (i && !m->alloc[i - 1]->p)
		i--;
	*next = n < m->nalloc ? m->alloc[n] : NULL;
	return i ? m->alloc[i - 1] : NULL;
}

emu_alloc *emu_alloc_find(const emu_machine *m, uint64_t at)
{
	size_t i = behind(m, at);
	emu_alloc *a = i ? m->alloc[i - 1] : NULL;

	return a && at - a->at < a->size ? a : NULL;
}

/* Those that are remembered, the latest first. */
static emu_freed *freed_before(const emu_machine *m, uint64_t n)
{
	return n < MIN(m->nfreed, (uint64_t)MOST_FREED) ? &m->freed[(m->nfreed - 1 - n) % MOST_FREED] : NULL;
}

const emu_freed *emu_freed_at(const emu_machine *m, uint64_t at)
{
	const emu_freed *f;

	for (uint64_t n = 0; (f = freed_before(m, n)); n++)
		if (at - f->at < f->size)
			return f;
	return NULL;
}

/* It is forgotten if memory is short: what is found is then out of bounds. */
static void remember(emu_machine *m, const emu_alloc *a)
{
	if (!m->freed)
		m->freed = NEW_ARRAY(emu_freed, MOST_FREED);
	if (m->freed)
		m->freed[m->nfreed++ % MOST_FREED] = (emu_freed){ a->at, a->size };
}

/* The addresses are used again. */
static void forget(const emu_machine *m, const emu_alloc *a)
{
	emu_freed *f;

	for (uint64_t n = 0; (f = freed_before(m, n)); n++)
		if (f->at < a->at + a->size && a->at < f->at + f->size)
			f->size = 0;
}

/* ---- room ---- */

/* Whether the bytes fit in front of an allocation, or the end, from *at on; *at becomes where. */
static bool fits(uint64_t *at, uint64_t size, uint64_t align, uint64_t shift, uint64_t end)
{
	*at = (*at + align - 1) / align * align + shift;
	return *at < end && size + EMU_ALLOC_GAP <= end - *at;
}

static uint64_t end_of(const emu_alloc *a) { return a->at + a->size + EMU_ALLOC_GAP; }

/* The place of the next allocation: a->at, and its number.  False: there is no such gap. */
static bool find_room(emu_machine *m, emu_alloc *a, uint64_t align, uint64_t shift, size_t *number)
{
	size_t first = behind(m, m->next_at), i = first;
	uint64_t at = first ? MAX(m->next_at, end_of(m->alloc[first - 1])) : m->next_at;
	bool again = false;

	if (a->size > GLOBAL_END - GLOBAL_FIRST)
		return false;
	for (;;) {
		if (fits(&at, a->size, align, shift, i < m->nalloc ? m->alloc[i]->at : GLOBAL_END)) {
			m->again |= again;
			m->next_at = at + a->size + EMU_ALLOC_GAP;
			a->at = at;
			*number = i;
			return true;
		}
		if (again && i >= first)
			return false;
		if (i < m->nalloc) {
			at = end_of(m->alloc[i++]);
		} else {
			again = true;
			at = GLOBAL_FIRST + EMU_ALLOC_GAP;
			i = 0;
		}
	}
}

bool emu_alloc_fits(const emu_machine *m, uint64_t size)
{
	emu_machine copy = *m;
	emu_alloc a = { .size = size };
	size_t number;

	return find_room(&copy, &a, ALLOC_ALIGN, 0, &number);
}

static void put(emu_machine *m, emu_alloc *a, size_t number)
{
	memmove(&m->alloc[number + 1], &m->alloc[number], (m->nalloc - number) * sizeof *m->alloc);
	a->reach = !m->reach || a->is_host || a->is_unified ? UINT64_MAX : m->reach;
	m->alloc[number] = a;
	m->nalloc++;
}

static bool insert(emu_machine *m, emu_alloc *a, uint64_t align, uint64_t shift)
{
	size_t number;

	if (!array_room(&m->alloc, m->nalloc, &m->cap_alloc, sizeof *m->alloc, 16))
		return false;
	bool found = find_room(m, a, align, shift, &number);
	if (!found && !m->running && m->nclosed) { /* what is closed may stand in the way */
		emu_alloc_sweep(m);
		found = find_room(m, a, align, shift, &number);
	}
	if (!found)
		return false;
	put(m, a, number);
	if (m->again)
		forget(m, a);
	return true;
}

/* Memory without an address; NULL: memory is short. */
static emu_alloc *bytes_new(uint64_t size, const char *name, bool defined)
{
	emu_alloc *a = size <= GLOBAL_END - GLOBAL_FIRST ? NEW(emu_alloc) : NULL;

	if (!a)
		return NULL;
	a->size = size;
	a->p = (unsigned char *)zeros_new(bytes_of(a));
	if (!defined)
		a->defined = (uint8_t *)zeros_new(bits_of(a));
	a->name = name ? strdup(name) : NULL;
	if (a->p && (defined || a->defined) && (!name || a->name))
		return a;
	free_one(a);
	return NULL;
}

uint64_t emu_alloc_new(emu_machine *m, uint64_t size, uint64_t align, const char *name, bool defined)
{
	emu_alloc *a = bytes_new(size, name, defined);

	if (!a)
		return 0;
	if (!insert(m, a, MAX(align, (uint64_t)ALLOC_ALIGN), 0)) {
		free_one(a);
		return 0;
	}
	m->bytes += size;
	return a->at;
}

/* ---- an address that is chosen ---- */

const char *emu_alloc_bars(emu_machine *m, uint64_t at, uint64_t size)
{
	if (!m->running) /* what is closed bars nothing */
		emu_alloc_sweep(m);
	size_t i = behind(m, at);

	if (!at || !size || size > GLOBAL_END - GLOBAL_FIRST || at > INT64_MAX - size)
		return "it is no address of so many bytes";
	if (at < FUNC_END && WINDOW_SHARED < at + size)
		return "the emulator has shared memory, local memory and functions there";
	if ((i && m->alloc[i - 1]->at + m->alloc[i - 1]->size > at) || (i < m->nalloc && m->alloc[i]->at < at + size))
		return "something is allocated there";
	return NULL;
}

/* Takes the allocation over, also where it fails; it may be NULL. */
static bool put_at(emu_machine *m, emu_alloc *a, uint64_t at)
{
	if (!a)
		return false;
	a->at = at;
	if (!array_room(&m->alloc, m->nalloc, &m->cap_alloc, sizeof *m->alloc, 16)) {
		free_one(a);
		return false;
	}
	put(m, a, behind(m, at));
	forget(m, a);
	return true;
}

uint64_t emu_alloc_at(emu_machine *m, uint64_t at, uint64_t size, const char *name, bool defined)
{
	emu_alloc *a = emu_alloc_bars(m, at, size) ? NULL : bytes_new(size, name, defined);

	if (!put_at(m, a, at))
		return 0;
	m->bytes += size;
	return at;
}

uint64_t emu_alloc_alias(emu_machine *m, uint64_t at, emu_alloc *of, uint64_t offset, uint64_t size)
{
	emu_alloc *a = emu_alloc_bars(m, at, size) ? NULL : NEW(emu_alloc);

	if (!a)
		return 0;
	*a =
		(emu_alloc){ .size = size, .p = of->p + offset, .defined = of->defined ? of->defined + offset / 8 : NULL, .of = of };
	of->aliases++;
	return put_at(m, a, at) ? at : 0;
}

/* ---- memory of the host ---- */

void emu_alloc_back(emu_machine *m, emu_alloc *a, unsigned char *host)
{
	memcpy(host, a->p, (size_t)a->size);
	free_bytes(a);
	a->p = host;
	a->is_host = true;
	m->bytes -= a->size;
}

uint64_t emu_alloc_map(emu_machine *m, void *host, uint64_t size)
{
	uint64_t shift = (uintptr_t)host % ALLOC_ALIGN; /* as well aligned as it is on the host, and no better */
	emu_alloc *a = NEW(emu_alloc);

	if (!a)
		return 0;
	*a = (emu_alloc){ .size = size, .p = (unsigned char *)host, .is_host = true };
	if (!insert(m, a, ALLOC_ALIGN, shift)) {
		free_one(a);
		return 0;
	}
	return a->at;
}

/* Pages at an address where the host has none.  Kernels older than Linux 4.17 take the address as a wish. */
static void *pages_at(uint64_t at, uint64_t size)
{
	void *want = (void *)(uintptr_t)at;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
#ifdef MAP_FIXED_NOREPLACE
	flags |= MAP_FIXED_NOREPLACE;
#endif
	void *p = at > UINTPTR_MAX - size ? MAP_FAILED : mmap(want, pages_of(size), PROT_READ | PROT_WRITE, flags, -1, 0);

	if (p != MAP_FAILED && p != want) {
		munmap(p, pages_of(size));
		p = MAP_FAILED;
	}
	return p == MAP_FAILED ? NULL : p;
}

uint64_t emu_alloc_unified(emu_machine *m, uint64_t size, const char *name)
{
	emu_alloc *a = size <= GLOBAL_END - GLOBAL_FIRST ? NEW(emu_alloc) : NULL;

	if (!a)
		return 0;
	*a = (emu_alloc){ .size = size, .name = name ? strdup(name) : NULL, .is_unified = true };
	if ((name && !a->name) || !insert(m, a, PAGE, 0)) {
		free_one(a);
		return 0;
	}
	a->p = (unsigned char *)pages_at(a->at, size);
	m->bytes += size;
	if (a->p)
		return a->at;
	emu_alloc_close(m, a);
	return 0;
}

/* ---- and its end ---- */

bool emu_alloc_free(emu_machine *m, uint64_t at)
{
	size_t i = behind(m, at);
	emu_alloc *a = i ? m->alloc[i - 1] : NULL;

	if (!a || a->at != at || !a->p)
		return false;
	emu_alloc_close(m, a);
	/* Taking one away moves all behind it: many go at once. */
	if (!m->running && m->nclosed > m->nalloc / 2)
		emu_alloc_sweep(m);
	return true;
}

void emu_alloc_close(emu_machine *m, emu_alloc *a)
{
	remember(m, a);
	m->bytes -= a->is_host || a->of ? 0 : a->size;
	m->heap -= a->is_heap ? a->size : 0;
	free_bytes(a);
	a->size = 0;
	m->nclosed++;
}

void emu_alloc_sweep(emu_machine *m)
{
	size_t n = 0;

	if (!m->nclosed)
		return;
	for (size_t i = 0; i < m->nalloc; i++)
		if (m->alloc[i]->p)
			m->alloc[n++] = m->alloc[i];
		else
			free_one(m->alloc[i]);
	m->nalloc = n;
	m->nclosed = 0;
}

enum cptx_finding_code emu_free_wrong(const emu_machine *m, uint64_t at, bool heap, char why[EMU_WHY])
{
	const emu_alloc *a = emu_alloc_find(m, at);
	const emu_freed *f = a ? NULL : emu_freed_at(m, at);
	unsigned long long addr = at;

	if (a && a->at == at && !a->name && a->is_heap == heap && !a->aliases)
		return CPTX_FIND_NONE;
	if (a && a->name)
		snprintf(why, EMU_WHY, "0x%llx is in variable %.64s, which is freed with its program", addr, a->name);
	else if (a && a->aliases)
		snprintf(why, EMU_WHY, "0x%llx has its bytes at another address, too, which must be freed first", addr);
	else if (a && a->at != at)
		snprintf(why, EMU_WHY, "0x%llx is %llu bytes behind the start of an allocation; its start must be given", addr,
		         (unsigned long long)(at - a->at));
	else if (a)
		snprintf(why, EMU_WHY, "0x%llx was allocated by %s", addr,
		         heap ? "the host program, which frees it by cptx_mem_free" : "malloc in a kernel, which frees it by free");
	else if (f && f->at == at)
		snprintf(why, EMU_WHY, "0x%llx, an allocation of %llu bytes, was freed already", addr, (unsigned long long)f->size);
	else
		snprintf(why, EMU_WHY, "0x%llx was never allocated%s", addr, f ? "; it is within what was freed already" : "");
	return f && f->at == at ? CPTX_FIND_DOUBLE_FREE : CPTX_FIND_BAD_FREE;
}
