/* SPDX-License-Identifier: MIT */
/* All records at once: listing, export, import, and making one segment of many. */
#include "base/options.h"
#include "tune/tune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define HELD "-r.hold"
enum { DAY_S = 24 * 60 * 60 };

/* ---- listing ---- */

typedef struct listing {
	bool (*each)(void *user, const cptx_tune_record *record);
	void *user;
	tune_ids ids;
} listing;

static bool list_line(void *user, const tune_record *r, uint64_t offset, size_t length)
{
	listing *l = (listing *)user;

	(void)offset, (void)length;
	return !tune_ids_add(&l->ids, r->id) || (!l->ids.failed && l->each(l->user, &r->r));
}

bool cptx_tune_each(cptx_tune *db, bool (*each)(void *user, const cptx_tune_record *record), void *user, uint64_t *damaged,
                    cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	listing l = { .each = each, .user = user };
	tune_lines lines = { .line = list_line, .user = &l };
	int status = 1;

	err = err ? err : &own;
	if (damaged)
		*damaged = 0;
	if (!IS_GIVEN(each, "callback", NOWHERE, err) || !tune_lock(db, __func__, err))
		return false;
	for (size_t i = 0; i < db->nfolders && status == 1; i++)
		status = tune_folder_each(&db->folders[i], &lines, err);
	tune_unlock(db);
	free(l.ids.at);
	if (l.ids.failed)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	if (damaged)
		*damaged = lines.damaged;
	return err->code == CPTX_OK;
}

/* ---- a file of records ---- */

typedef struct writing {
	FILE *out;
	tune_ids ids;
	uint64_t n;
} writing;

/* The line of a record that is new. */
static bool write_line(void *user, const tune_record *r, uint64_t offset, size_t length)
{
	writing *w = (writing *)user;
	char line[TUNE_LINE];

	(void)offset, (void)length;
	if (!tune_ids_add(&w->ids, r->id))
		return true;
	const size_t n = tune_print(&r->r, r->id, line);
	w->n++;
	return !w->ids.failed && fwrite(line, 1, n, w->out) == n;
}

/* Ends a file; false, with errno, if it is not on disk. */
static bool finish(FILE *out)
{
	bool ok = !fflush(out) && !fsync(fileno(out));
	const int why = errno;

	ok = !fclose(out) && ok;
	errno = why;
	return ok;
}

uint64_t cptx_tune_export(cptx_tune *db, const char *file, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	writing w = { .n = 0 };
	tune_lines lines = { .line = write_line, .user = &w };
	int status = 1;

	err = err ? err : &own;
	if (!IS_GIVEN(file, "file", NOWHERE, err) || !tune_lock(db, __func__, err))
		return 0;
	w.out = fopen(file, "wx");
	for (size_t i = 0; w.out && i < db->nfolders && status == 1; i++)
		status = tune_folder_each(&db->folders[i], &lines, err);
	tune_unlock(db);
	free(w.ids.at);
	if (!w.out || status != 1 || !finish(w.out)) {
		if (w.out && status != 1)
			fclose(w.out);
		error_set(err, CPTX_E_IO, NOWHERE, "tune: %s cannot be written: %s", file, strerror(errno));
		if (w.out)
			unlink(file);
	}
	return err->code == CPTX_OK ? w.n : 0;
}

/* ---- one segment of many ---- */

/* A segment that is written beside the others, and takes its name when it is whole. */
typedef struct building {
	tune_folder *f;
	char name[TUNE_NAME], final[TUNE_NAME];
	writing w;
} building;

static bool begin(building *b, tune_folder *f, cptx_error *err)
{
	const int fd = tune_folder_create(f, b->name, ".tmp", err);

	b->f = f;
	if (fd < 0)
		return false;
	b->w.out = fdopen(fd, "w");
	memcpy(b->final, b->name, sizeof b->name);
	memcpy(b->final + strlen(b->final) - 4, ".seg", 4);
	if (b->w.out)
		return true;
	close(fd);
	unlinkat(f->dir, b->name, 0);
	return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
}

static bool end(building *b, bool ok, cptx_error *err)
{
	ok = ok && !b->w.ids.failed && !fflush(b->w.out);
	if (!ok)
		error_set(err, b->w.ids.failed ? CPTX_E_MEMORY : CPTX_E_IO, NOWHERE, "tune: the records in %s cannot be written: %s",
		          b->f->path, b->w.ids.failed ? "out of memory" : strerror(errno));
	ok = ok && b->w.n && tune_folder_name(b->f, fileno(b->w.out), b->name, b->final, err);
	if (!ok)
		unlinkat(b->f->dir, b->name, 0);
	fclose(b->w.out);
	free(b->w.ids.at);
	return err->code == CPTX_OK;
}

static bool see_id(void *user, const tune_record *r, uint64_t offset, size_t length)
{
	tune_ids *ids = (tune_ids *)user;

	(void)offset, (void)length;
	tune_ids_add(ids, r->id);
	return !ids->failed;
}

/* The lines of a file, or of all segments of a folder; false with an error. */
static bool read_source(const char *from, tune_lines *lines, cptx_error *err)
{
	struct stat s;
	tune_folder f;
	char *path;

	if (stat(from, &s))
		return error_set(err, CPTX_E_IO, NOWHERE, "tune: %s cannot be read: %s", from, strerror(errno));
	if (S_ISDIR(s.st_mode)) {
		if (!(path = strdup(from)))
			return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		tune_folder_init(&f, path, false);
		const int status = tune_folder_each(&f, lines, err);
		tune_folder_free(&f);
		return status == 1;
	}
	const int fd = open(from, O_RDONLY | O_CLOEXEC);
	const int status = fd >= 0 ? tune_read_lines(fd, 0, lines) : -1;
	if (status < 0)
		error_set(err, CPTX_E_IO, NOWHERE, "tune: %s cannot be read: %s", from, strerror(errno));
	if (fd >= 0)
		close(fd);
	return status == 1;
}

static bool import(tune_folder *f, const char *from, uint64_t *n, cptx_error *err)
{
	building b = { .f = NULL };
	tune_lines known = { .line = see_id, .user = &b.w.ids }, lines = { .line = write_line, .user = &b.w };

	if (!begin(&b, f, err))
		return false;
	bool ok = tune_folder_each(f, &known, err) == 1 && read_source(from, &lines, err);
	if (ok && lines.damaged)
		ok = error_set(err, CPTX_E_PARSE, NOWHERE,
		               "tune: %s has %llu lines that are no records, or torn; nothing of it is taken", from,
		               (unsigned long long)lines.damaged);
	*n = b.w.n;
	return end(&b, ok, err);
}

uint64_t cptx_tune_import(cptx_tune *db, const char *from, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	uint64_t n = 0;

	err = err ? err : &own;
	if (!IS_GIVEN(from, "file", NOWHERE, err) || !tune_lock(db, __func__, err))
		return 0;
	tune_folder *f = tune_own_folder(db, __func__, err);
	if (f && import(f, from, &n, err) && tune_folder_read(f, TUNE_AGAIN, err))
		tune_index_write(f);
	tune_unlock(db);
	return err->code == CPTX_OK ? n : 0;
}

/* ---- pruning ---- */

/* A record that may stay, and its line. */
typedef struct kept {
	tune_item item;
	uint64_t id;
	char *line;
	size_t n;
} kept;

typedef struct pruning {
	const cptx_tune_prune_opt *opt;
	kept *at;
	size_t n, cap;
	uint64_t seen;
	tune_ids ids;
	bool no_memory;
} pruning;

static bool stays(const cptx_tune_prune_opt *o, const cptx_tune_record *r)
{
	return r->date >= o->since &&
	       !(o->generator && o->version && !strcmp(o->generator, r->key->generator) && r->key->version != o->version);
}

static bool gather(void *user, const tune_record *r, uint64_t offset, size_t length)
{
	pruning *p = (pruning *)user;
	char line[TUNE_LINE];

	(void)offset, (void)length;
	if (!tune_ids_add(&p->ids, r->id))
		return true;
	p->seen++;
	if (!stays(p->opt, &r->r))
		return true;
	if (p->n == p->cap) {
		const size_t cap = p->cap ? 2 * p->cap : 256;
		kept *more = GROW_ARRAY(kept, p->at, cap);
		if (!more)
			return !(p->no_memory = true);
		p->at = more, p->cap = cap;
	}
	kept *k = &p->at[p->n];
	k->n = tune_print(&r->r, r->id, line);
	k->item = tune_item_of(r), k->id = r->id;
	if (p->ids.failed || !(k->line = NEW_UNSET(char, k->n)))
		return !(p->no_memory = true);
	memcpy(k->line, line, k->n);
	p->n++;
	return true;
}

#define LESS(x, y) ((x) < (y) ? -1 : (x) > (y))

static int by_candidate(const void *a, const void *b)
{
	const tune_item *x = &((const kept *)a)->item, *y = &((const kept *)b)->item;
	const int orders[] = { LESS(x->problem, y->problem), LESS(x->build, y->build), LESS(x->candidate, y->candidate),
		                   LESS(y->date, x->date) };

	for (size_t i = 0; i < ARRAY_LEN(orders); i++)
		if (orders[i])
			return orders[i];
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const tune_item *x = &((const kept *)a)->item, *y = &((const kept *)b)->item;
	const int orders[] = { LESS(x->problem, y->problem), LESS(x->build, y->build), LESS(x->median, y->median) };

	for (size_t i = 0; i < ARRAY_LEN(orders); i++)
		if (orders[i])
			return orders[i];
	return 0;
}

/* Writes what stays: of each problem and build the latest measurement of each candidate, and of these the best. */
static bool write_kept(pruning *p, writing *w)
{
	size_t latest = 0;

	if (p->n)
		qsort(p->at, p->n, sizeof *p->at, by_candidate);
	for (size_t i = 0; i < p->n; i++) {
		const tune_item *x = &p->at[i].item, *y = latest ? &p->at[latest - 1].item : NULL;
		if (y && x->problem == y->problem && x->build == y->build && x->candidate == y->candidate) {
			free(p->at[i].line);
			continue;
		}
		p->at[latest++] = p->at[i];
	}
	p->n = latest;
	if (p->n)
		qsort(p->at, p->n, sizeof *p->at, by_time);
	for (size_t i = 0, rank = 0; i < p->n; i++) {
		const tune_item *x = &p->at[i].item, *y = i ? &p->at[i - 1].item : NULL;
		rank = y && x->problem == y->problem && x->build == y->build ? rank + 1 : 0;
		if (p->opt->best && rank >= p->opt->best)
			continue;
		if (fwrite(p->at[i].line, 1, p->at[i].n, w->out) != p->at[i].n)
			return false;
		w->n++;
	}
	return true;
}

static bool ends_with(const char *name, const char *ending)
{
	const size_t n = strlen(name), e = strlen(ending);

	return n > e && !strcmp(name + n - e, ending);
}

/* Whether a file has a name that tune_folder_create gives: HOST-PROCESS-TIME and an ending, which is .tmp until it is whole.
 */
static bool is_unfinished(const char *name)
{
	const char *process = strchr(name, '-'), *last = strrchr(name, '-');

	return process && process != last && ends_with(name, ".tmp") && last[1] != '.' &&
	       strspn(last + 1, "0123456789abcdef") == strlen(last + 1) - strlen(".tmp");
}

/* Removes a file that was begun a day ago: its process was killed, or else finds it gone and says so. */
static void remove_abandoned(const tune_folder *f, const char *name)
{
	struct stat s;

	if (!fstatat(f->dir, name, &s, AT_SYMLINK_NOFOLLOW) && S_ISREG(s.st_mode) && s.st_mtime < time(NULL) - DAY_S)
		unlinkat(f->dir, name, 0);
}

/*
 * What killed processes left: files that were not finished, and NAME-r.hold, which was a second name of a segment while an
 * earlier version of cptx pruned it.  As nobody can say whether that one's records are elsewhere, it becomes a segment.
 */
static void take_in_what_was_left(const tune_folder *f)
{
	char name[TUNE_NAME];
	const int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	for (const struct dirent *e; d && (e = readdir(d));) {
		if (is_unfinished(e->d_name))
			remove_abandoned(f, e->d_name);
		if (!ends_with(e->d_name, HELD) || strlen(e->d_name) >= sizeof name)
			continue;
		snprintf(name, sizeof name, "%.*s-h.seg", (int)(strlen(e->d_name) - strlen(HELD)), e->d_name);
		renameat(f->dir, e->d_name, f->dir, name); /* where another process did so, it is there */
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

/*
 * Retires a segment, if it is not, and reads it into `lines`.  A writer on any host that looks later sees that it is
 * retired, since what a network disk says of a file that was just opened is never old.  A file of another user, or on a disk
 * that keeps no modes, cannot be retired: it is left alone.  False with errno: it cannot be read.
 */
static bool read_retired(tune_folder *f, tune_segment *s, tune_lines *lines)
{
	struct stat now;
	const int marking = openat(f->dir, s->name, TUNE_READ_FLAGS);

	s->pruned = 0;
	if (marking < 0)
		return tune_is_gone(errno);
	if (!fstat(marking, &now) && S_ISREG(now.st_mode) && !tune_is_retired(&now))
		(void)!fchmod(marking, now.st_mode & 07777 & ~(mode_t)(S_IWUSR | S_IWGRP | S_IWOTH));
	close(marking);
	/* opened again, so that a network disk shows what was written on another host in front of that */
	const int fd = openat(f->dir, s->name, TUNE_READ_FLAGS);
	if (fd < 0)
		return tune_is_gone(errno);
	const bool known = !fstat(fd, &now), retired = known && (!S_ISREG(now.st_mode) || tune_is_retired(&now));
	const bool ok = known && (!retired || tune_read_lines(fd, 0, lines) == 1);
	const int why = errno;
	close(fd);
	s->pruned = ok && retired;
	errno = why;
	return ok || tune_is_gone(why);
}

/* Removes the segments whose records are in the new one. */
static uint64_t remove_retired(const tune_folder *f)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < f->nsegments; i++)
		n += f->segments[i].pruned && !unlinkat(f->dir, f->segments[i].name, 0);
	return n;
}

/* Retires all segments, writes one of what they hold, and removes them. */
static bool compact(tune_folder *f, pruning *p, cptx_tune_pruned *done, cptx_error *err)
{
	building b = { .f = NULL };
	tune_lines lines = { .line = gather, .user = p };

	for (uint32_t i = 0; i < f->nsegments; i++) {
		tune_segment *s = &f->segments[i];
		if (!read_retired(f, s, &lines) || p->no_memory)
			return error_set(err, p->no_memory ? CPTX_E_MEMORY : CPTX_E_IO, NOWHERE, "tune: %s/%s cannot be read: %s",
			                 f->path, s->name, p->no_memory ? "out of memory" : strerror(errno));
	}
	if (!begin(&b, f, err))
		return false;
	const bool written = write_kept(p, &b.w);
	done->kept = b.w.n, done->removed = p->seen - b.w.n;
	if (!end(&b, written, err))
		return false;
	done->files = remove_retired(f);
	return true;
}

bool cptx_tune_prune(cptx_tune *db, const cptx_tune_prune_opt *opt, cptx_tune_pruned *pruned, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_tune_prune_opt o;
	cptx_tune_pruned done = { .kept = 0 };
	pruning p = { .opt = &o };

	err = err ? err : &own;
	if (err->code != CPTX_OK || !OPTIONS_READ(cptx_tune_prune_opt, &o, opt, NOWHERE, err) || !tune_lock(db, __func__, err))
		return false;
	tune_folder *f = tune_own_folder(db, __func__, err);
	if (f && tune_folder_read(f, TUNE_AGAIN, err) && f->dir >= 0) {
		take_in_what_was_left(f);
		if (tune_folder_read(f, TUNE_AGAIN, err) && compact(f, &p, &done, err) && tune_folder_read(f, TUNE_ANEW, err))
			tune_index_write(f);
	}
	tune_unlock(db);
	for (size_t i = 0; i < p.n; i++)
		free(p.at[i].line);
	free(p.at);
	free(p.ids.at);
	if (pruned)
		*pruned = done;
	return err->code == CPTX_OK;
}
