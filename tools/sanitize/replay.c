/* SPDX-License-Identifier: MIT */
/*
 * Replays a file of record.c: memory and modules get the addresses that they had, each launch runs on the emulator, and what
 * it leaves is compared with what was recorded.  Where they differ the launches behind it begin with what was recorded.
 * Nothing in the file is believed: it may come from anywhere.
 */
#include "element.h"
#include "recording.h"
#include "replay.h"
#include "select.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 65536 /* bytes of memory that are kept together */, MOST_TEXTS = 1024, MOST_BLOCKS = 1 << 20 };
enum { AS_RECORDED, DIFFERS, UNREADABLE, INCOMPLETE }; /* exit status */
#define MOST_LIVE (UINT64_C(64) << 30)                 /* bytes of all blocks */
#define MOST_TOUCHED (UINT64_C(8) << 30)               /* bytes of them that are not zero */

/* A block, and what its memory is to be. */
typedef struct block {
	uint64_t at, size;
	uint32_t type;
	bool unread;           /* what the launch left in it is not known */
	unsigned char **chunk; /* NULL: zeros */
} block;

/* What a launch left elsewhere than it was recorded. */
typedef struct difference {
	uint64_t bytes, first, of; /* first: its address; of: bytes of its block, */
	uint64_t in;               /* and how far in that it is */
	unsigned char got[8], expected[8];
} difference;

typedef struct player {
	FILE *f;
	uint64_t left, offset; /* bytes of the file that were not read; where the record begins */
	unsigned char *buf;
	size_t n, at;
	bool bad, ended, whole; /* ended: its last record came; whole: and it says that nothing is missing */
	block *block;
	size_t nblock, cap_block;
	uint64_t live, touched;
	san_module **module; /* by number, from 1 on */
	size_t nmodule;
	san_choice choice;
	const san_element *type;
	double tolerance;
	/* the launch that the records are about */
	bool in_launch, ran;
	int refused; /* an error: it did not begin */
	uint64_t number, written;
	char *kernel; /* its whole name, to be freed */
	size_t right, wrong, failed, passed_over, missing;
	unsigned char *piece;
} player;

/* ---- reading ---- */

/* Refuses the file; false. */
static bool bad(player *p, const char *format, ...)
{
	char why[512];
	va_list ap;

	if (p->bad)
		return false;
	va_start(ap, format);
	vsnprintf(why, sizeof why, format, ap);
	va_end(ap);
	san_say("the recording is refused, for its record at byte %llu: %s", (unsigned long long)p->offset, why);
	p->bad = true;
	return false;
}

static uint64_t get(player *p, unsigned bytes)
{
	uint64_t v = 0;

	if (bytes > p->n - p->at) {
		bad(p, "it ends within a number");
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p->buf[p->at++] << 8 * i;
	return v;
}

static uint32_t get32(player *p) { return (uint32_t)get(p, 4); }
static uint64_t get64(player *p) { return get(p, 8); }

/* Bytes that have their length in front. */
static const unsigned char *get_bytes(player *p, size_t *n)
{
	*n = get32(p);
	if (*n > p->n - p->at)
		*n = 0, bad(p, "it ends within a text");
	p->at += *n;
	return p->buf + p->at - *n;
}

/* What a terminal would not print as it is becomes a '?'. */
static void print_text(char *to, const unsigned char *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (char)(from[i] >= ' ' && from[i] < 127 ? from[i] : '?');
	to[n] = 0;
}

static void get_text(player *p, char *to, size_t room)
{
	size_t n;
	const unsigned char *from = get_bytes(p, &n);

	n = n < room ? n : room - 1;
	print_text(to, from, n);
}

/* The name of the launch's kernel, of any length. */
static void get_kernel(player *p)
{
	size_t n;
	const unsigned char *from = get_bytes(p, &n);

	free(p->kernel);
	p->kernel = (char *)malloc(n + 1);
	if (p->kernel)
		print_text(p->kernel, from, n);
	else
		bad(p, "memory is short");
}

/* The next record into p->buf; false: there is none, or an error was said. */
static bool next(player *p, uint32_t *kind)
{
	unsigned char head[REC_RECORD_HEAD];
	uint64_t size = 0, padded;

	if (!p->left)
		return false;
	if (p->left < sizeof head || fread(head, 1, sizeof head, p->f) != sizeof head)
		return bad(p, "the file ends within it");
	p->left -= sizeof head;
	for (unsigned i = 0; i < 8; i++)
		size |= (uint64_t)head[8 + i] << 8 * i;
	padded = size > p->left ? UINT64_MAX : (size + 7) / 8 * 8;
	if (padded > p->left)
		return bad(p, "it says that it has %llu bytes, and the file has %llu", (unsigned long long)size,
		           (unsigned long long)p->left);
	free(p->buf);
	p->buf = (unsigned char *)malloc((size_t)padded + 1);
	p->n = (size_t)size, p->at = 0;
	if (!p->buf)
		return bad(p, "memory is short for its %llu bytes", (unsigned long long)size);
	if (fread(p->buf, 1, (size_t)padded, p->f) != padded)
		return bad(p, "the file cannot be read: %s", strerror(errno));
	p->left -= padded;
	*kind = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
	return true;
}

/* ---- memory ---- */

/* Number of the first block behind the address. */
static size_t behind(const player *p, uint64_t at)
{
	size_t lo = 0, hi = p->nblock;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (p->block[mid].at <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The block that has all of the bytes; NULL, and an error: none has. */
static block *block_of(player *p, uint64_t at, uint64_t size)
{
	size_t i = behind(p, at);
	block *b = i ? &p->block[i - 1] : NULL;

	if (b && at - b->at < b->size && size <= b->size - (at - b->at))
		return b;
	bad(p, "%llu bytes at 0x%llx are in no block", (unsigned long long)size, (unsigned long long)at);
	return NULL;
}

static size_t chunks_of(const block *b) { return (size_t)((b->size + CHUNK - 1) / CHUNK); }

static void drop(player *p, block *b)
{
	for (size_t i = 0; b->chunk && i < chunks_of(b); i++) {
		p->touched -= b->chunk[i] ? CHUNK : 0;
		free(b->chunk[i]);
	}
	free(b->chunk);
}

/* The kept bytes from an offset on, up to the end of their chunk; NULL, and an error: there is no memory for them. */
static unsigned char *kept(player *p, block *b, uint64_t offset, size_t *room)
{
	unsigned char **c = &b->chunk[offset / CHUNK];

	*room = CHUNK - (size_t)(offset % CHUNK);
	if (!*c) {
		*c = p->touched + CHUNK <= MOST_TOUCHED ? (unsigned char *)calloc(1, CHUNK) : NULL;
		p->touched += *c ? CHUNK : 0;
	}
	if (!*c)
		bad(p, "memory is short, or more than %llu GiB of it are in use", (unsigned long long)(MOST_TOUCHED >> 30));
	return *c ? *c + offset % CHUNK : NULL;
}

/* Puts kept bytes into the emulator's memory: those that count as written there, or else those that do not. */
static bool deliver(player *p, block *b, uint64_t offset, uint64_t size, bool written)
{
	static const unsigned char zeros[CHUNK];
	cptx_error err = { .code = CPTX_OK };

	while (size) {
		size_t run, room = CHUNK - (size_t)(offset % CHUNK);
		bool is = cptx_emu_written(san.dev, b->at + offset, (size_t)(size < room ? size : room), &run);
		const unsigned char *c = b->chunk[offset / CHUNK];
		if (!run)
			return bad(p, "0x%llx is not in memory", (unsigned long long)(b->at + offset));
		if (is == written && !cptx_mem_write(san.dev, b->at + offset, c ? c + offset % CHUNK : zeros, run, &err))
			return bad(p, "%s", err.text);
		offset += run, size -= run;
	}
	return true;
}

static bool read_block(player *p)
{
	const uint64_t at = get64(p), bytes = get64(p);
	block b = { .at = at, .size = bytes };
	size_t have = 0, i = behind(p, at);
	cptx_error err = { .code = CPTX_OK };

	b.type = get32(p);
	bool written = get32(p) != 0;
	if (p->bad)
		return false;
	if (!b.size || b.size > MOST_LIVE - p->live || p->nblock == MOST_BLOCKS)
		return bad(p, "a block of %llu bytes is more than is replayed: %llu GiB in all, in %d blocks",
		           (unsigned long long)b.size, (unsigned long long)(MOST_LIVE >> 30), MOST_BLOCKS);
	if ((i && p->block[i - 1].at + p->block[i - 1].size > b.at) || (i < p->nblock && p->block[i].at - b.at < b.size))
		return bad(p, "its block lies in another one");
	if (b.type == BLOCK_VARIABLE) {
		cptx_emu_written(san.dev, b.at, (size_t)b.size, &have);
		if (have != b.size)
			return bad(p, "no variable of %llu bytes is at 0x%llx", (unsigned long long)b.size, (unsigned long long)b.at);
	} else if (!cptx_emu_alloc_at(san.dev, b.at, (size_t)b.size, written, &err)) {
		return bad(p, "%s", err.text);
	}
	if (p->nblock == p->cap_block) {
		size_t cap = p->cap_block ? p->cap_block * 2 : 64;
		block *grown = (block *)realloc(p->block, cap * sizeof *grown);
		if (!grown)
			return bad(p, "memory is short");
		p->block = grown, p->cap_block = cap;
	}
	b.chunk = (unsigned char **)calloc(chunks_of(&b), sizeof *b.chunk);
	if (!b.chunk)
		return bad(p, "memory is short");
	memmove(&p->block[i + 1], &p->block[i], (p->nblock - i) * sizeof b);
	p->block[i] = b;
	p->nblock++;
	p->live += b.size;
	return b.type != BLOCK_VARIABLE || deliver(p, &p->block[i], 0, b.size, true);
}

static bool read_freed(player *p)
{
	uint64_t at = get64(p);
	block *b = p->bad ? NULL : block_of(p, at, 1);

	if (!b || b->at != at)
		return bad(p, "no block begins at 0x%llx", (unsigned long long)at);
	if (b->type != BLOCK_VARIABLE)
		cptx_mem_free(san.dev, at);
	p->live -= b->size;
	drop(p, b);
	p->nblock--;
	memmove(b, b + 1, (p->nblock - (size_t)(b - p->block)) * sizeof *b);
	return true;
}

/* Memory as it is from now on; in a launch that ran: as it should be now. */
static bool read_content(player *p, bool fill)
{
	uint64_t at = get64(p), size = fill ? get64(p) : p->n - p->at, pattern = fill ? get64(p) : 0;
	block *b = p->bad || !size ? NULL : block_of(p, at, size);

	if (!b)
		return bad(p, "it has no bytes");
	for (uint64_t i = 0; i < size;) {
		size_t room, n;
		unsigned char *to = kept(p, b, at - b->at + i, &room);
		if (!to)
			return false;
		n = (size_t)(size - i < room ? size - i : room);
		for (size_t j = 0; j < n; j++) {
			unsigned char v = fill ? (unsigned char)(pattern >> 8 * ((i + j) % 8)) : p->buf[p->at + i + j];
			p->written += p->in_launch && to[j] != v;
			to[j] = v;
		}
		i += n;
	}
	return (p->in_launch && p->ran) || deliver(p, b, at - b->at, size, true);
}

static bool read_written(player *p)
{
	while (p->at < p->n && !p->bad) {
		uint64_t at = get64(p), size = get64(p);
		block *b = p->bad || !size ? NULL : block_of(p, at, size);
		if (!b)
			return bad(p, "it has no bytes");
		if (!deliver(p, b, at - b->at, size, false))
			return false;
	}
	return !p->bad;
}

/* ---- modules ---- */

static bool is_file_name(const char *s) { return *s && !s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.")]; }

static bool read_texts(player *p, san_module *m, uint32_t n)
{
	for (uint32_t i = 0; i < n && !p->bad; i++) {
		char name[sizeof m->name];
		size_t size;
		get_text(p, name, sizeof name);
		const char *text = (const char *)get_bytes(p, &size);
		if (p->bad || !is_file_name(name) || !size || memchr(text, 0, size))
			return bad(p, "a text of a module has a NUL, or no name");
		int e = san_module_add(m, name, text, size, n > 1);
		if (e)
			return bad(p, "text %s: %s", name, san_error_of(e)->text);
	}
	return !p->bad;
}

static bool read_module(player *p)
{
	uint32_t number = get32(p), n = get32(p), nvar = get32(p);
	cptx_error err = { .code = CPTX_OK };
	san_module *m = NULL;

	if (p->bad || number != p->nmodule + 1 || !n || n > MOST_TEXTS)
		return bad(p, "it is no module that comes now");
	san_module **grown = (san_module **)realloc(p->module, (p->nmodule + 1) * sizeof *grown);
	if (grown)
		p->module = grown;
	if (!grown || !(m = san_register(NULL, NULL)))
		return bad(p, "memory is short");
	p->module[p->nmodule++] = m;
	if (!read_texts(p, m, n))
		return false;
	for (uint32_t i = 0; i < nvar && !p->bad; i++) {
		size_t size;
		const char *name = (const char *)get_bytes(p, &size);
		uint64_t at = get64(p);
		get64(p);
		char *copy = p->bad ? NULL : strndup(name, size);
		if (!p->bad && !copy)
			bad(p, "memory is short");
		else if (copy && *copy && at && !cptx_emu_place(san.dev, copy, at, &err))
			bad(p, "%s", err.text);
		free(copy);
	}
	int e = p->bad ? SAN_OK : san_module_ready(m);
	return e ? bad(p, "the module is not loaded: %s", san_error_of(e)->text) : !p->bad;
}

static bool read_unloaded(player *p)
{
	const uint32_t number = get32(p);

	if (p->bad || !number || number > p->nmodule || !p->module[number - 1])
		return bad(p, "it is no module that is loaded");
	san_module_unload(p->module[number - 1]);
	p->module[number - 1] = NULL;
	return true;
}

/* ---- launches ---- */

static bool run(player *p, san_module *m, const san_shape *shape, uint32_t n)
{
	san_kernel *k = NULL;
	void **values = (void **)calloc((size_t)n + 1, sizeof *values);
	int e = values ? san_kernel_named(m, p->kernel, &k) : SAN_MEMORY;

	if (!e && k->info.nparams != n)
		bad(p, "kernel %s has %zu parameters, and %u are given", p->kernel, k->info.nparams, (unsigned)n);
	for (uint32_t i = 0; i < n && !e && !p->bad; i++) {
		size_t size;
		values[i] = (void *)(uintptr_t)get_bytes(p, &size);
		if (!p->bad && size != k->info.params[i].size)
			bad(p, "parameter %u of kernel %s has %u bytes, and %zu are given", (unsigned)i, p->kernel,
			    (unsigned)k->info.params[i].size, size);
	}
	if (!e && !p->bad)
		e = san_launch(k, shape, values, NULL);
	free(values);
	p->refused = e;
	return !p->bad;
}

static bool read_launch(player *p)
{
	san_shape shape = { .smem = 0 };

	p->number = get64(p);
	uint32_t module = get32(p), n = get32(p), flags;
	for (int i = 0; i < 9; i++)
		(i < 3 ? shape.grid : i < 6 ? shape.block : shape.cluster)[i % 3] = get32(p);
	shape.smem = get32(p), flags = get32(p);
	shape.cooperative = flags & REC_COOPERATIVE, shape.overlap = flags & REC_OVERLAP;
	get_kernel(p);
	if (p->bad || p->in_launch || !module || module > p->nmodule || !p->module[module - 1] || n > p->n)
		return bad(p, "it is no launch that can be now");
	p->in_launch = true, p->written = 0, p->refused = SAN_OK;
	p->ran = san_chosen(&p->choice, p->number, p->kernel);
	if (p->ran)
		return run(p, p->module[module - 1], &shape, n);
	p->passed_over++;
	return true;
}

static void note(player *p, difference *d, const block *b, uint64_t offset, const unsigned char *got,
                 const unsigned char *expected, size_t n)
{
	if (!d->bytes) {
		d->first = b->at + offset, d->of = b->size, d->in = offset;
		memcpy(d->got, got, n);
		memcpy(d->expected, expected, n);
	}
	for (size_t i = 0; i < n; i++)
		d->bytes += got[i] != expected[i];
	(void)p;
}

/* Compares one chunk of a block with the emulator's memory, and makes the two one. */
static bool compare_chunk(player *p, block *b, size_t number, difference *d)
{
	static const unsigned char zeros[CHUNK];
	const unsigned char *expected = b->chunk[number] ? b->chunk[number] : zeros;
	uint64_t from = (uint64_t)number * CHUNK;
	size_t size = (size_t)(b->size - from < CHUNK ? b->size - from : CHUNK), step = p->type ? p->type->bytes : 1;
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_mem_read(san.dev, p->piece, b->at + from, size, &err))
		return bad(p, "%s", err.text);
	if (!memcmp(p->piece, expected, size))
		return true;
	for (size_t i = 0; i < size; i += step) {
		size_t n = size - i < step ? size - i : step;
		if (memcmp(p->piece + i, expected + i, n) &&
		    (!p->type || n < step || !san_near(p->type, p->tolerance, p->piece + i, expected + i)))
			note(p, d, b, from + i, p->piece + i, expected + i, n);
	}
	return deliver(p, b, from, size, true);
}

/* The bytes of a value as one number, the most significant first. */
static const char *shown(const unsigned char *v, unsigned n, char text[20])
{
	char *to = text + sprintf(text, "0x");

	while (n--)
		to += sprintf(to, "%02x", v[n]);
	return text;
}

static bool read_unread(player *p)
{
	uint64_t at = get64(p);
	block *b = p->bad || !p->in_launch ? NULL : block_of(p, at, 1);

	if (!b)
		return bad(p, "no launch has ended that could have left it");
	b->unread = true;
	return true;
}

static bool read_done(player *p)
{
	uint32_t error = get32(p);
	difference d = { .bytes = 0 };
	char got[20], expected[20];
	bool stopped = san.failed != SAN_OK;

	if (p->bad || !p->in_launch)
		return bad(p, "no launch ends here");
	p->in_launch = false;
	if (!p->ran)
		return true;
	san.failed = SAN_OK;
	cptx_emu_continue(san.dev);
	for (size_t i = 0; i < p->nblock; i++)
		for (size_t c = 0; !p->block[i].unread && c < chunks_of(&p->block[i]); c++)
			if (!compare_chunk(p, &p->block[i], c, &d))
				return false;
	if (p->refused && error == (uint32_t)p->refused) {
		p->right++;
		san_say("launch %llu, kernel %s: as recorded, it was refused: %s", (unsigned long long)p->number, p->kernel,
		        san_error_of(p->refused)->text);
	} else if (stopped && error) {
		p->right++;
		san_say("launch %llu, kernel %s: as recorded, it did not come to its end: %s", (unsigned long long)p->number,
		        p->kernel, san_error_of((int)error)->text);
	} else if (stopped || error || p->refused) {
		char refusal[256];
		snprintf(refusal, sizeof refusal, "it was refused here (%s)", san_error_of(p->refused)->text);
		p->failed++;
		san_say("launch %llu, kernel %s: %s%s%s", (unsigned long long)p->number, p->kernel,
		        p->refused ? refusal
		        : stopped  ? "it did not come to its end here"
		                   : "it came to its end here",
		        error ? ", and failed when it was recorded: " : "", error ? san_error_of((int)error)->text : "");
	} else if (d.bytes) {
		p->wrong++;
		san_say("launch %llu, kernel %s: %llu bytes differ from the recording, in which it wrote %llu; the first are %s in "
		        "place of %s at 0x%llx, %llu bytes behind the start of a block of %llu",
		        (unsigned long long)p->number, p->kernel, (unsigned long long)d.bytes, (unsigned long long)p->written,
		        shown(d.got, p->type ? p->type->bytes : 1, got), shown(d.expected, p->type ? p->type->bytes : 1, expected),
		        (unsigned long long)d.first, (unsigned long long)d.in, (unsigned long long)d.of);
	} else {
		p->right++;
		san_say("launch %llu, kernel %s: as recorded, %llu bytes were changed", (unsigned long long)p->number, p->kernel,
		        (unsigned long long)p->written);
	}
	return true;
}

/* ---- the file ---- */

static bool read_left(player *p)
{
	char why[256];
	uint64_t number = get64(p);

	get_kernel(p);
	get_text(p, why, sizeof why);
	p->missing++;
	if (!p->bad)
		san_say("launch %llu, kernel %s: it was not recorded: %s", (unsigned long long)number, p->kernel, why);
	return !p->bad;
}

static bool read_end(player *p)
{
	uint64_t launches = get64(p);
	uint32_t why = get32(p);

	p->ended = true;
	if (p->left || p->in_launch)
		return bad(p, "there is more behind its end");
	p->whole = why == REC_ALL;
	if (!p->whole)
		san_say("the recording ends behind launch %llu, where %s", (unsigned long long)launches,
		        why == REC_LIMIT ? "its size was limited" : "memory or the disk was short");
	return !p->bad;
}

static bool record(player *p, uint32_t kind)
{
	if (p->in_launch && kind != REC_BYTES && kind != REC_FILL && kind != REC_UNREAD && kind != REC_DONE)
		return bad(p, "it stands within a launch");
	switch (kind) {
	case REC_MODULE: return read_module(p);
	case REC_BLOCK: return read_block(p);
	case REC_FREED: return read_freed(p);
	case REC_BYTES: return read_content(p, false);
	case REC_FILL: return read_content(p, true);
	case REC_WRITTEN: return read_written(p);
	case REC_LAUNCH: return read_launch(p);
	case REC_DONE: return read_done(p);
	case REC_LEFT: return read_left(p);
	case REC_END: return read_end(p);
	case REC_UNLOADED: return read_unloaded(p);
	case REC_UNREAD: return read_unread(p);
	default: return bad(p, "its kind is %u, which this version does not know", (unsigned)kind);
	}
}

/* The head, and what the recording is of: which gives the emulated target where none was asked for. */
static bool begin(player *p)
{
	unsigned char head[REC_HEAD];
	char target[32], device[128], command[512];
	uint32_t kind;

	if (p->left < sizeof head || fread(head, 1, sizeof head, p->f) != sizeof head || memcmp(head, REC_MAGIC, 8))
		return bad(p, "the file is no recording of cptx");
	p->left -= sizeof head;
	uint32_t version = head[8] | (uint32_t)head[9] << 8 | (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
	if (version != REC_VERSION)
		return bad(p, "its version is %u, and this library reads version %d", (unsigned)version, REC_VERSION);
	p->offset = REC_HEAD;
	if (!next(p, &kind) || kind != REC_DEVICE)
		return bad(p, "it does not begin with its device");
	get_text(p, target, sizeof target);
	get_text(p, device, sizeof device);
	get_text(p, command, sizeof command);
	bool gpu = get32(p) != 0;
	if (p->bad)
		return false;
	const char *arch = getenv("CPTX_SANITIZE_ARCH");
	if ((!arch || !*arch) && cptx_target_find(target) && setenv("CPTX_SANITIZE_ARCH", target, 1))
		return bad(p, "memory is short");
	san_say("recorded on %s%s: %s", gpu ? "" : "the emulator, ", device, command);
	return true;
}

static bool settings(player *p)
{
	const char *type = getenv("CPTX_REPLAY_TYPE"), *tolerance = getenv("CPTX_REPLAY_TOLERANCE");

	p->choice.kernel = getenv(REC_KERNEL_ENV);
	san_choose_launches(getenv(REC_LAUNCHES_ENV), &p->choice);
	p->tolerance = tolerance ? strtod(tolerance, NULL) : 0;
	p->type = type ? san_element_named(type) : NULL;
	p->piece = (unsigned char *)malloc(CHUNK);
	return p->piece || bad(p, "memory is short");
}

static bool play(player *p)
{
	const uint64_t size = p->left;
	uint32_t kind;

	if (!begin(p) || san_enter())
		return false;
	san_leave();
	do {
		p->offset = size - p->left;
	} while (next(p, &kind) && record(p, kind));
	if (!p->bad && p->in_launch)
		return bad(p, "it ends within a launch");
	if (!p->bad && !p->ended)
		san_say("the recording has no end: the program was stopped when it was made");
	return !p->bad;
}

/* That nothing is wrong with no launch at all is nothing to rely on. */
static bool nothing_ran(const player *p)
{
	if (p->right || p->wrong || p->failed || (p->missing && !p->passed_over))
		return false;
	if (p->passed_over)
		san_say("none of the %zu recorded launches is one that --kernel and --launches choose", p->passed_over);
	else
		san_say("the recording has no launch");
	return true;
}

int san_replay(const char *path)
{
	player p = { .left = 0 };

	san.command = "cptx replay";
	p.f = san_recording_open(path, &p.left);
	bool ok = p.f && settings(&p) && play(&p);
	if (p.f)
		fclose(p.f);
	for (size_t i = 0; i < p.nblock; i++)
		drop(&p, &p.block[i]);
	free(p.block);
	free(p.module); /* they are in san.modules */
	free(p.buf);
	free(p.piece);
	free(p.kernel);
	if (ok)
		san_say(
			"%zu launches are as recorded, %zu differ, %zu did not come to their end, %zu were passed over, %zu were not "
			"recorded",
			p.right, p.wrong, p.failed, p.passed_over, p.missing);
	return !ok || nothing_ran(&p)  ? UNREADABLE
	       : p.wrong || p.failed   ? DIFFERS
	       : p.missing || !p.whole ? INCOMPLETE
	                               : AS_RECORDED;
}
