/* SPDX-License-Identifier: MIT */
/*
 * Keeps launches in a file: the module, the arguments, and all memory as it was in front of the launch and behind it.  Of
 * memory, pages are stored that are not as the file has them already, which their hashes tell.  Memory is read through
 * san_memory_source, so that what runs the launch may be the emulator of this library or a GPU (intercept.c).
 */
#include "record.h"
#include "recording.h"
#include "select.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_MESSAGES = 16 /* launches that are left out are told */ };
enum { MOST_WAIT = 10 /* seconds, at the program's end, for a launch of another thread */ };
enum { PIECE = 1 << 20 /* bytes that are read at once; a multiple of REC_PAGE */ };
#define DEFAULT_LIMIT (UINT64_C(256) << 20)

/* Memory as the file has it. */
typedef struct known {
	uint64_t at, size;
	uint32_t type;
	unsigned module;  /* that has the variable; 0: a block */
	uint64_t *page;   /* hash of each page; 0: zeros */
	bool unread;      /* it could not be read when it was last to be stored */
	uint64_t settled; /* all bytes in front of this offset count as written */
} known;

static struct {
	FILE *out; /* without a buffer: a child of fork() must have nothing to write */
	pid_t pid; /* whose the file is */
	bool tried, full, broken;
	char path[4096];
	san_choice choice;
	uint64_t limit, size, good;    /* bytes in the file; up to the last launch that is whole */
	uint64_t launches, kept, left; /* that the program made; in the file; told to be left out */
	unsigned modules, messages;
	known *block;
	size_t nblock;
	unsigned char *buf; /* of the record that is being made */
	size_t n, cap;
	unsigned char *piece;
	const san_memory_source *source;
} rec;

/* ---- the emulator's memory ---- */

static bool read_emulated(void *to, uint64_t at, size_t size)
{
	cptx_error err = { .code = CPTX_OK };

	return cptx_mem_read(san.dev, to, at, size, &err);
}

static uint64_t variable_here(const san_module *m, const cptx_emu_variable_info *v)
{
	(void)m;
	return v->at;
}

static const san_memory_source emulated = { .read = read_emulated, .variable = variable_here };

/* ---- records ---- */

static void put(const void *bytes, size_t size)
{
	if (size > SIZE_MAX / 2 - rec.n || rec.broken) {
		rec.broken = true;
		return;
	}
	if (rec.n + size > rec.cap) {
		size_t cap = rec.cap ? rec.cap : 4096;
		while (cap < rec.n + size)
			cap *= 2;
		unsigned char *grown = (unsigned char *)realloc(rec.buf, cap);
		if (!grown) {
			rec.broken = true;
			return;
		}
		rec.buf = grown, rec.cap = cap;
	}
	memcpy(rec.buf + rec.n, bytes, size);
	rec.n += size;
}

static void put_number(uint64_t v, unsigned bytes)
{
	unsigned char b[8];

	for (unsigned i = 0; i < bytes; i++)
		b[i] = (unsigned char)(v >> 8 * i);
	put(b, bytes);
}

static void put32(uint64_t v) { put_number(v, 4); }
static void put64(uint64_t v) { put_number(v, 8); }

static void put_text(const char *s, size_t size)
{
	put32(size);
	put(s, size);
}

static void write_out(const void *bytes, size_t size)
{
	if (!rec.broken && fwrite(bytes, 1, size, rec.out) != size)
		rec.broken = true;
	rec.size += size;
}

/* Writes what was put as a record. */
static void emit(enum rec_kind kind)
{
	static const unsigned char zeros[8];
	unsigned char head[REC_RECORD_HEAD] = { (unsigned char)kind };

	for (unsigned i = 0; i < 8; i++)
		head[8 + i] = (unsigned char)((uint64_t)rec.n >> 8 * i);
	write_out(head, sizeof head);
	write_out(rec.buf, rec.n);
	write_out(zeros, (8 - rec.n % 8) % 8);
	rec.n = 0;
	rec.full |= rec.size > rec.limit;
}

/* ---- the file ---- */

static void put_command(void)
{
	char text[4096];
	FILE *f = fopen("/proc/self/cmdline", "rb");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;

	if (f)
		fclose(f);
	while (n && !text[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	put_text(text, n);
}

/* The file of the first process that launches something has the name that was asked for; those of others their number, too.
 */
static FILE *create(const char *path)
{
	snprintf(rec.path, sizeof rec.path, "%s", path);
	int fd = open(rec.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST) {
		snprintf(rec.path, sizeof rec.path, "%s.%ld", path, (long)getpid());
		fd = open(rec.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (fd >= 0)
			san_say("this process, which is not the first, records in %s", rec.path);
	}
	if (fd < 0)
		san_say("'%s' cannot be written: %s", rec.path, strerror(errno));
	return fd < 0 ? NULL : fdopen(fd, "wb");
}

static void begin(void)
{
	const char *path = getenv(REC_FILE_ENV), *limit = getenv(REC_LIMIT_ENV);
	unsigned char head[REC_HEAD] = REC_MAGIC;

	rec.tried = true;
	rec.pid = getpid();
	if (!path || !*path || (getenv(REC_HELPER_ENV) && !rec.source)) /* the recorder is another instance of this library */
		return;
	if (!rec.source)
		rec.source = &emulated;
	rec.choice.kernel = getenv(REC_KERNEL_ENV);
	san_choose_launches(getenv(REC_LAUNCHES_ENV), &rec.choice);
	rec.limit = limit ? strtoull(limit, NULL, 10) : 0;
	rec.limit = rec.limit ? rec.limit : DEFAULT_LIMIT;
	rec.piece = (unsigned char *)malloc(PIECE);
	rec.out = rec.piece ? create(path) : NULL;
	if (!rec.out)
		return;
	setvbuf(rec.out, NULL, _IONBF, 0);
	head[8] = REC_VERSION;
	write_out(head, sizeof head);
	put_text(san.info->target, strlen(san.info->target));
	const char *name = rec.source->device ? rec.source->device : san.info->name;
	put_text(name, strlen(name));
	put_command();
	put32(rec.source->device != NULL);
	put32(rec.source->driver);
	emit(REC_DEVICE);
	rec.good = rec.size;
}

/* The program launched nothing that was asked for: there is no file then. */
static void remove_empty(void)
{
	unlink(rec.path);
	if (rec.launches)
		san_say("nothing is recorded: of the program's %llu launches none is one that --kernel and --launches choose",
		        (unsigned long long)rec.launches);
}

/* Writes the end behind the last launch that is whole, also when memory or the disk was short. */
static void end(enum rec_end why)
{
	FILE *out = rec.out;
	const bool was_short = rec.broken;

	if (!out)
		return;
	rec.broken = rec.size != rec.good && (ftruncate(fileno(out), (off_t)rec.good) || fseeko(out, 0, SEEK_END));
	rec.size = rec.good, rec.n = 0;
	put64(rec.launches);
	put32(was_short ? REC_SHORT : why);
	emit(REC_END);
	rec.broken |= fclose(out) != 0;
	rec.out = NULL;
	if (rec.broken || was_short)
		san_say("memory or the disk is short: %s ends behind launch %llu%s", rec.path, (unsigned long long)rec.kept,
		        rec.broken ? ", and its end could not be written" : "");
	else if (why == REC_ALL && !rec.kept && !rec.left)
		remove_empty();
	else
		san_say("%llu of %llu launches are in %s, %llu bytes", (unsigned long long)rec.kept,
		        (unsigned long long)rec.launches, rec.path, (unsigned long long)rec.size);
}

/* A thread that is in a launch has the lock: it is given some time to come to the launch's end. */
__attribute__((destructor)) static void finish(void)
{
	struct timespec until;

	if (!rec.out || rec.pid != getpid())
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += MOST_WAIT;
	if (pthread_mutex_timedlock(&san.lock, &until)) {
		san_say("the program ends within a launch: %s has no end", rec.path);
		return;
	}
	end(REC_ALL);
	san_leave();
}

/* The file is as large as it may be: what was recorded whole stays. */
static void reach_limit(const char *kernel)
{
	san_say("--record-limit is %llu bytes, and launch %llu (%s) does not fit into what is left; record fewer launches with "
	        "--kernel or --launches, or more bytes",
	        (unsigned long long)rec.limit, (unsigned long long)rec.launches, kernel);
	rec.launches--;
	end(REC_LIMIT);
}

static void leave_out(const san_kernel *k, const char *why)
{
	if (rec.messages++ < MOST_MESSAGES)
		san_say("launch %llu (%s) is not recorded: %s", (unsigned long long)rec.launches, k->name, why);
	put64(rec.launches);
	put_text(k->name, strlen(k->name));
	put_text(why, strlen(why));
	emit(REC_LEFT);
	rec.left++;
	rec.good = rec.size;
}

/* ---- modules ---- */

static void forget(known *k)
{
	put64(k->at);
	emit(REC_FREED);
	free(k->page);
}

/* A block that was found by its address is part of what the variable now is. */
static void make_way(uint64_t at, uint64_t size)
{
	for (size_t i = 0; i < rec.nblock; i++)
		if (rec.block[i].type != BLOCK_VARIABLE && rec.block[i].at < at + size && at < rec.block[i].at + rec.block[i].size) {
			forget(&rec.block[i]);
			memmove(&rec.block[i], &rec.block[i + 1], (--rec.nblock - i) * sizeof *rec.block);
			i--;
		}
	for (san_block *b; (b = san_block_at(at)) != NULL;)
		san_block_drop(b->at);
}

static void put_module(san_module *m)
{
	const cptx_program *program = m->program[san.device];
	san_module *part[1024];
	size_t n = 0, nvar = 0, unknown = 0;
	cptx_emu_variable_info v;

	for (san_module *p = m->part ? m->part : m; p && n < sizeof part / sizeof *part; p = p->next_part)
		part[n++] = p;
	for (uint64_t at; cptx_emu_variable(program, nvar, &v); nvar++)
		if (rec.source->device && (at = rec.source->variable(m, &v)))
			make_way(at, v.bytes);
	m->recorded[san.device] = ++rec.modules;
	put32(rec.modules);
	put32(n);
	put32(nvar);
	while (n--) {
		put_text(part[n]->name, strlen(part[n]->name));
		put_text(part[n]->text, part[n]->size);
	}
	for (size_t i = 0; i < nvar && cptx_emu_variable(program, i, &v); i++) {
		const uint64_t at = rec.source->variable(m, &v);
		put_text(v.name, strlen(v.name));
		put64(at);
		put64(v.bytes);
		unknown += !at;
	}
	if (unknown)
		san_say(
			"the driver does not tell where %zu of the %zu variables of module %u are: they begin in a replay as the PTX "
			"says",
			unknown, nvar, rec.modules);
	emit(REC_MODULE);
}

/* ---- memory ---- */

static int by_address(const void *a, const void *b)
{
	const known *x = (const known *)a, *y = (const known *)b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static bool add(known **all, size_t *n, size_t *cap, known one)
{
	if (*n == *cap) {
		size_t room = *cap * 2;
		known *grown = (known *)realloc(*all, room * sizeof **all);
		if (!grown)
			return false;
		*all = grown, *cap = room;
	}
	(*all)[(*n)++] = one;
	return true;
}

/* All memory that the program has now, by address.  NULL: memory is short. */
static known *memory_now(size_t *n)
{
	size_t cap = 64;
	known *all = (known *)malloc(cap * sizeof *all); /* there is an array of no memory, too */
	bool ok = all != NULL;
	cptx_emu_variable_info v;

	*n = 0;
	for (const san_block *b = san.blocks; b && ok; b = b->next)
		if (!b->freed)
			ok = add(&all, n, &cap, (known){ .at = b->at, .size = b->size, .type = (uint32_t)b->type });
	for (const san_module *m = san.modules; m && ok; m = m->next)
		for (int d = 0; d < SAN_DEVICES && ok; d++)
			for (size_t i = 0; ok && m->recorded[d] && cptx_emu_variable(m->program[d], i, &v); i++) {
				uint64_t at = rec.source->variable(m, &v);
				if (at)
					ok = add(&all, n, &cap,
					         (known){ .at = at, .size = v.bytes, .type = BLOCK_VARIABLE, .module = m->recorded[d] });
			}
	if (ok) {
		qsort(all, *n, sizeof *all, by_address);
		return all;
	}
	free(all);
	return NULL;
}

static bool meet(known *k)
{
	k->page = (uint64_t *)calloc((size_t)(k->size / REC_PAGE + 1), sizeof *k->page);
	put64(k->at);
	put64(k->size);
	put32(k->type);
	put32(rec.source->device || k->type == BLOCK_VARIABLE);
	emit(REC_BLOCK);
	return k->page != NULL;
}

/* Tells the file which memory is new and which is gone. */
static bool update_blocks(void)
{
	size_t n, i = 0, j = 0;
	known *now = memory_now(&n);
	bool ok = now != NULL;

	while (ok && i < rec.nblock) { /* first what is gone: its addresses may be used again */
		known *was = &rec.block[i++];
		while (j < n && now[j].at < was->at)
			j++;
		if (j < n && now[j].at == was->at && now[j].size == was->size && now[j].type == was->type)
			now[j].page = was->page, now[j].settled = was->settled;
		else
			forget(was);
	}
	for (j = 0; ok && j < n; j++)
		if (!now[j].page)
			ok = meet(&now[j]);
	free(rec.block);
	rec.block = now, rec.nblock = ok ? n : 0;
	return ok;
}

/* Of a page; 0: it is zero.  `pattern` is what it repeats, if *uniform. */
static uint64_t hash(const unsigned char *p, size_t n, uint64_t *pattern, bool *uniform)
{
	uint64_t h = UINT64_C(0x9e3779b97f4a7c15), any = 0, w;

	*uniform = n == REC_PAGE;
	memcpy(pattern, p, n < 8 ? n : 8);
	for (size_t i = 0; i < n; i += 8) {
		w = 0;
		memcpy(&w, p + i, n - i < 8 ? n - i : 8);
		any |= w;
		*uniform &= w == *pattern;
		h = (h ^ w) * UINT64_C(0xd6e8feb86659fd93);
		h ^= h >> 32;
	}
	return !any ? 0 : h ? h : 1;
}

/* Pages that follow one another and are stored in one way. */
typedef struct run {
	uint64_t at, size, pattern;
	const unsigned char *bytes; /* NULL: the pattern */
} run;

static void flush(run *r)
{
	if (!r->size)
		return;
	put64(r->at);
	if (r->bytes) {
		put(r->bytes, (size_t)r->size);
		emit(REC_BYTES);
	} else {
		put64(r->size);
		put64(r->pattern);
		emit(REC_FILL);
	}
	r->size = 0;
}

static void keep_page(run *r, uint64_t at, const unsigned char *p, size_t size, bool uniform, uint64_t pattern)
{
	bool joins = r->size && r->at + r->size == at && uniform == !r->bytes && (!uniform || r->pattern == pattern);

	if (!joins) {
		flush(r);
		*r = (run){ .at = at, .pattern = pattern, .bytes = uniform ? NULL : p };
	}
	r->size += size;
}

/* Stores what differs from the file; false: not all of the block can be read. */
static bool store(known *k)
{
	for (uint64_t from = 0; from < k->size && !rec.full; from += PIECE) {
		size_t n = (size_t)(k->size - from < PIECE ? k->size - from : PIECE);
		run r = { .size = 0 };
		if (!rec.source->read(rec.piece, k->at + from, n))
			return false;
		for (size_t i = 0; i < n; i += REC_PAGE) {
			size_t size = n - i < REC_PAGE ? n - i : REC_PAGE;
			uint64_t pattern = 0, *was = &k->page[(from + i) / REC_PAGE];
			bool uniform;
			uint64_t h = hash(rec.piece + i, size, &pattern, &uniform);
			if (h == *was)
				continue;
			*was = h;
			keep_page(&r, k->at + from + i, rec.piece + i, size, uniform, pattern);
		}
		flush(&r);
	}
	return true;
}

/* Which bytes count as written that did not: only an emulator knows. */
static void store_written(known *k)
{
	uint64_t at = k->settled;

	if (rec.source->device || k->type == BLOCK_VARIABLE)
		return;
	while (at < k->size) {
		size_t n;
		bool written = cptx_emu_written(san.dev, k->at + at, (size_t)(k->size - at), &n);
		if (!n)
			break;
		if (written) {
			put64(k->at + at);
			put64(n);
			k->settled = at == k->settled ? at + n : k->settled;
		}
		at += n;
	}
	if (rec.n)
		emit(REC_WRITTEN);
}

/* Stores all memory; the blocks that cannot be read are marked.  Their number. */
static size_t store_all(bool before)
{
	size_t unread = 0;

	for (size_t i = 0; i < rec.nblock && !rec.full && !rec.broken; i++) {
		known *k = &rec.block[i];
		k->unread = !store(k);
		unread += k->unread;
		if (before && !k->unread)
			store_written(k);
		if (!before && k->unread)
			put64(k->at), emit(REC_UNREAD);
	}
	return unread;
}

/* Forgets the blocks that cannot be read, with which no later launch could be recorded; says the first of them in `why`. */
static void drop_unread(char *why, size_t room)
{
	size_t kept = 0;

	for (size_t i = rec.nblock; i--;)
		if (rec.block[i].unread)
			snprintf(why, room, "the %llu bytes at 0x%llx cannot be read; what follows is recorded without them",
			         (unsigned long long)rec.block[i].size, (unsigned long long)rec.block[i].at);
	for (size_t i = 0; i < rec.nblock; i++)
		if (!rec.block[i].unread) {
			rec.block[kept++] = rec.block[i];
		} else {
			if (!rec.block[i].module)
				san_block_drop(rec.block[i].at);
			forget(&rec.block[i]);
		}
	rec.nblock = kept;
}

/* ---- launches ---- */

static void put_launch(const san_kernel *k, const san_shape *s, void **values)
{
	put64(rec.launches);
	put32(k->module->recorded[san.device]);
	put32(k->info.nparams);
	for (int i = 0; i < 3; i++)
		put32(s->grid[i]);
	for (int i = 0; i < 3; i++)
		put32(s->block[i]);
	for (int i = 0; i < 3; i++)
		put32(s->cluster[i]);
	put32(s->smem);
	put32((s->cooperative ? REC_COOPERATIVE : 0) | (s->overlap ? REC_OVERLAP : 0));
	put_text(k->name, strlen(k->name));
	for (size_t i = 0; i < k->info.nparams; i++)
		put_text((const char *)values[i], k->info.params[i].size);
	emit(REC_LAUNCH);
}

void san_record_from(const san_memory_source *source) { rec.source = source; }

/* A child of fork() records in a file of its own: what its parent's has is not in it. */
static void start_anew(void)
{
	const san_memory_source *source = rec.source;

	fclose(rec.out);
	for (size_t i = 0; i < rec.nblock; i++)
		free(rec.block[i].page);
	free(rec.block);
	free(rec.buf);
	free(rec.piece);
	for (san_module *m = san.modules; m; m = m->next)
		memset(m->recorded, 0, sizeof m->recorded);
	memset(&rec, 0, sizeof rec);
	rec.source = source;
}

bool san_records(void)
{
	if (rec.out && rec.pid != getpid())
		start_anew();
	if (!rec.tried)
		begin();
	return rec.out != NULL;
}

bool san_record_next(const char *kernel)
{
	if (!san_records())
		return false;
	rec.launches++;
	return san_chosen(&rec.choice, rec.launches, kernel);
}

bool san_record_before(san_kernel *k, const san_shape *shape, void **values)
{
	const char *not = san_record_bars(k);
	if (not )
		return leave_out(k, not ), false;
	if (!k->module->recorded[san.device])
		put_module(k->module);
	char why[128];
	const bool known_all = update_blocks();
	const size_t unread = known_all ? store_all(true) : 0;
	if (unread)
		drop_unread(why, sizeof why);
	else if (known_all)
		put_launch(k, shape, values);
	if (rec.full)
		reach_limit(k->name);
	else if (!known_all || rec.broken)
		rec.broken = true, end(REC_ALL);
	else if (unread)
		leave_out(k, why);
	return rec.out && !unread;
}

void san_record_after(int error)
{
	char why[128];

	if (!rec.out)
		return;
	const size_t unread = store_all(false);
	put32((unsigned)error);
	emit(REC_DONE);
	if (rec.full) {
		reach_limit("behind it");
	} else if (rec.broken) {
		end(REC_ALL);
	} else {
		rec.good = rec.size;
		rec.kept++;
	}
	if (unread && rec.out) {
		drop_unread(why, sizeof why);
		san_say("behind launch %llu %s", (unsigned long long)rec.launches, why);
	}
}

void san_record_unloaded(const san_module *m)
{
	if (!rec.out || rec.pid != getpid())
		return;
	for (int d = 0; d < SAN_DEVICES; d++) {
		size_t kept = 0;
		if (!m->recorded[d])
			continue;
		for (size_t i = 0; i < rec.nblock; i++)
			if (rec.block[i].module == m->recorded[d])
				forget(&rec.block[i]);
			else
				rec.block[kept++] = rec.block[i];
		rec.nblock = kept;
		put32(m->recorded[d]);
		emit(REC_UNLOADED);
	}
}

void san_record_left(const char *kernel, const char *why)
{
	san_kernel k = { .name = (char *)(uintptr_t)kernel };

	leave_out(&k, why);
}
