/* SPDX-License-Identifier: MIT */
#include "helper.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static const san_memory_source *source;

static bool enter(unsigned compute_capability, const san_memory_source *from)
{
	source = from;
	if (!san.dev) {
		const cptx_target *t = cptx_target_for_device(compute_capability);
		if (t)
			setenv("CPTX_SANITIZE_ARCH", t->name, 1);
		san.command = "cptx record";
		san_record_from(source);
	}
	if (!san_enter() && san_records())
		return true;
	san_leave();
	return false;
}

/* ---- images ---- */

/* What nvcc's host code registers, and libraries may be loaded from. */
typedef struct wrapper {
	unsigned magic, version;
	const void *image;
	const void *const *objects; /* version 2 */
} wrapper;
enum { WRAPPER = 0x466243b1 };

/* A fat binary that the program may free: kept, unless it is in a file that is mapped. */
static const void *lasting(const void *image)
{
	Dl_info info;
	uint64_t size;

	if (dladdr(image, &info))
		return image;
	memcpy(&size, (const char *)image + 8, sizeof size);
	void *copy = size < UINT64_C(1) << 32 ? malloc((size_t)size + 16) : NULL;
	return copy ? memcpy(copy, image, (size_t)size + 16) : NULL;
}

static san_module *image_of(const void *image)
{
	wrapper w;
	san_module *m;

	memcpy(&w.magic, image, strnlen((const char *)image, 4) == 4 ? 4 : 0);
	if (strnlen((const char *)image, 4) == 4 && w.magic == WRAPPER) {
		memcpy(&w, image, sizeof w);
		return san_register(w.image, w.version == 2 ? w.objects : NULL);
	}
	if (san_is_fatbin(image)) {
		image = lasting(image);
		return image ? san_register(image, NULL) : NULL;
	}
	if (!(m = san_register(NULL, NULL)))
		return NULL;
	if (!strncmp((const char *)image, "\177ELF", 4) || !*(const char *)image)
		m->failed = SAN_NO_IMAGE; /* machine code */
	else
		m->failed = san_module_add(m, "", (const char *)image, strlen((const char *)image), false);
	return m;
}

static san_module *file_of(const char *path)
{
	char *p;
	size_t n;
	san_module *m = san_read_file(path, &p, &n) ? NULL : image_of(p);

	free(p); /* a fat binary was copied */
	return m;
}

/* The fat binaries of a loaded file, by the wrappers that nvcc puts in a section of their own. */
static int wrappers_of(struct dl_phdr_info *info, size_t size, void *user)
{
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	char *p = NULL;
	size_t n;

	(void)size, (void)user;
	if (strstr(path, "linux-vdso") || san_read_file(path, &p, &n))
		return 0;
	const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)(const void *)p;
	const bool whole = n > sizeof *e && !memcmp(p, "\177ELF", 4) && e->e_shoff < n &&
	                   e->e_shnum * sizeof(ElfW(Shdr)) <= n - e->e_shoff && e->e_shstrndx < e->e_shnum;
	const ElfW(Shdr) *s = whole ? (const ElfW(Shdr) *)(const void *)(p + e->e_shoff) : NULL;
	for (unsigned i = 0; whole && i < e->e_shnum; i++) {
		const uint64_t name = s[e->e_shstrndx].sh_offset + s[i].sh_name;
		if (name >= n || strncmp(p + name, ".nvFatBinSegment", n - name))
			continue;
		for (size_t at = 0; at + sizeof(wrapper) <= s[i].sh_size; at += sizeof(wrapper)) {
			const void *w = (const void *)(info->dlpi_addr + s[i].sh_addr + at);
			if (*(const unsigned *)w == WRAPPER)
				image_of(w);
		}
	}
	free(p);
	return 0;
}

static san_kernel *kernel_of(san_module *of, const char *name)
{
	static bool searched; /* what the program holds itself */
	san_kernel *k = NULL;

	if (of)
		return of->failed || san_kernel_named(of, name, &k) ? NULL : k;
	for (int turn = 0; turn < 2; turn++) {
		for (san_module *m = san.modules, *after; m; m = after) {
			after = m->next;
			if (!m->failed && (m->image || m->text) && !san_kernel_named(m, name, &k))
				return k;
		}
		if (searched)
			break;
		searched = true;
		dl_iterate_phdr(wrappers_of, NULL);
	}
	return NULL;
}

/* ---- memory ---- */

static void visit(uint64_t first, uint64_t size, uint64_t at, uint64_t *end, uint64_t *next)
{
	if (at - first < size)
		*end = first + size > *end ? first + size : *end;
	else if (first > at && first < *next)
		*next = first;
}

/* The end of the block, or variable of a module that was used, which has the address; 0: none has.  *next becomes the start
 * of the first one behind it, if it is lower. */
static uint64_t known_until(uint64_t at, uint64_t *next)
{
	cptx_emu_variable_info v;
	uint64_t end = 0;

	for (const san_module *m = san.modules; m; m = m->next)
		for (size_t i = 0; m->program[san.device] && cptx_emu_variable(m->program[san.device], i, &v); i++) {
			uint64_t first = source->variable(m, &v);
			if (first)
				visit(first, v.bytes, at, &end, next);
		}
	for (const san_block *b = san.blocks; b; b = b->next)
		visit(b->at, b->size, at, &end, next);
	return end;
}

static bool knows(uint64_t at)
{
	uint64_t next = UINT64_MAX;

	return known_until(at, &next) || san_block_at(at);
}

static void keep(uint64_t at, void *host, uint64_t size, int type)
{
	if (size && san_block_add(at, host, (size_t)size, type))
		san_say("memory is short: the block at 0x%llx is not recorded", (unsigned long long)at);
}

/* What of it is known already stays the block that it is: blocks of a recording do not overlap. */
static void gained(uint64_t at, void *host, size_t size, int type)
{
	const uint64_t end = at + size;

	while (at && at < end) {
		uint64_t next = end, until = known_until(at, &next);
		if (!until) {
			keep(at, host, next - at, type);
			until = next;
		}
		host = host ? (char *)host + (until - at) : NULL;
		at = until;
	}
}

/* Addresses that nothing is mapped to any more; a block may reach beyond them. */
static void unmapped(uint64_t at, size_t size)
{
	const uint64_t end = at + size;

	for (san_block *b = san.blocks, *next; b; b = next) {
		const uint64_t first = b->at, last = first + b->size;
		const int type = b->type;
		next = b->next;
		if (first >= end || last <= at)
			continue;
		san_block_drop(first);
		keep(first, NULL, first < at ? at - first : 0, type);
		keep(end, NULL, last > end ? last - end : 0, type);
	}
}

/* ---- launches ---- */

static bool before(san_kernel *k, const san_shape *shape, void **args, void **extra, void (*change)(void *bytes, size_t n))
{
	void **values = NULL;
	int e = san_kernel_ready(k);

	if (!e)
		e = san_unpack(k, args, extra, &values);
	/* what the driver made of tensor maps is nothing that the emulator reads */
	for (size_t i = 0; !e && i < k->info.nparams; i++) {
		void *copy = malloc(k->info.params[i].size + 1u);
		if (!copy)
			e = SAN_MEMORY;
		else
			change(memcpy(copy, values[i], k->info.params[i].size), k->info.params[i].size);
		values[i] = copy;
	}
	bool recorded = !e && san_record_before(k, shape, values);
	if (e)
		san_record_left(k->name, "its arguments cannot be read");
	for (size_t i = 0; values && !e && i < k->info.nparams; i++)
		free(values[i]);
	free(values);
	return recorded;
}

static void config(san_shape *shape, const dr_launch_config *c) { *shape = san_shape_of(c); }

const san_helper *san_recorder(void)
{
	static const san_helper helper = { .enter = enter,
		                               .leave = san_leave,
		                               .image = image_of,
		                               .file = file_of,
		                               .gone = san_module_unload,
		                               .kernel = kernel_of,
		                               .gained = gained,
		                               .lost = san_block_drop,
		                               .unmapped = unmapped,
		                               .knows = knows,
		                               .next = san_record_next,
		                               .before = before,
		                               .after = san_record_after,
		                               .left = san_record_left,
		                               .config = config };

	return &helper;
}
