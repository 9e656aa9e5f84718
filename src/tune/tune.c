/* SPDX-License-Identifier: MIT */
/* The database: the user's folder over those that are only read, records, look-ups. */
#include "base/options.h"
#include "compile/compile.h"
#include "tune/tune.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum {
	INDEX_BYTES = 32 << 10, /* of records without an index at which one is made, when the writer closes */
	NEIGHBOURS = 16         /* most of a look-up */
};
/* The folder of records that are installed with the library: where it is put, and as seen from the library's folder. */
#ifndef CPTX_TUNE_SHIPPED
#define CPTX_TUNE_SHIPPED ""
#endif
#ifndef CPTX_TUNE_BESIDE
#define CPTX_TUNE_BESIDE ""
#endif

/* ---- opening ---- */

static char *joined(const char *a, size_t n, const char *b)
{
	char *p = NEW_UNSET(char, n + strlen(b) + 1);

	if (p) {
		memcpy(p, a, n);
		memcpy(p + n, b, strlen(b) + 1);
	}
	return p;
}

static bool is_set(const char *s) { return s && *s; }

/* The user's folder, from malloc, "" where nothing names one; NULL: memory is short. */
static char *usual_path(void)
{
	const char *dir = getenv("CPTX_TUNE_DIR"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

	if (is_set(dir))
		return joined(dir, strlen(dir), "");
	if (xdg && *xdg == '/') /* the XDG standard says to ignore a relative path */
		return joined(xdg, strlen(xdg), "/cptx/tune");
	return is_set(home) ? joined(home, strlen(home), "/.local/share/cptx/tune") : joined("", 0, "");
}

/* The folder of records that are installed with the library, from malloc, "" where there is none; NULL: memory is short.
 * Where the installed tree was moved, as vcpkg and conan do, the library still knows it by its own place. */
static char *shipped_path(void)
{
	char so[4096];
	const bool beside = CPTX_TUNE_BESIDE[0] && library_where((void *)(uintptr_t)&cptx_tune_open, so, sizeof so);
	const char *name = beside ? strrchr(so, '/') : NULL;
	char *path = name ? joined(so, (size_t)(name + 1 - so), CPTX_TUNE_BESIDE) : NULL;

	if (path && !access(path, F_OK))
		return path;
	free(path);
	return joined(CPTX_TUNE_SHIPPED, strlen(CPTX_TUNE_SHIPPED), "");
}

static bool add_folder(cptx_tune *db, char *path, bool writable)
{
	tune_folder *more = path ? GROW_ARRAY(tune_folder, db->folders, db->nfolders + 1) : NULL;

	if (!more) {
		free(path);
		return false;
	}
	db->folders = more;
	tune_folder_init(&db->folders[db->nfolders++], path, writable);
	return true;
}

static bool add_shipped(cptx_tune *db)
{
	char *path = shipped_path();

	if (!path || *path)
		return add_folder(db, path, false);
	free(path);
	return true;
}

static bool open_folders(cptx_tune *db, const cptx_tune_opt *o)
{
	const char *shipped = o->shipped ? o->shipped : getenv("CPTX_TUNE_PATH");

	db->path = o->path ? joined(o->path, strlen(o->path), "") : usual_path();
	if (!db->path || (*db->path && !add_folder(db, joined(db->path, strlen(db->path), ""), !o->read_only)))
		return false;
	if (!o->shipped && !is_set(shipped))
		return add_shipped(db);
	for (size_t n; *shipped; shipped += n + (shipped[n] == ':')) {
		n = strcspn(shipped, ":");
		if (n && !add_folder(db, joined(shipped, n, ""), false))
			return false;
	}
	return true;
}

cptx_tune *cptx_tune_open(const cptx_tune_opt *opt, cptx_error *err)
{
	cptx_tune_opt o;
	cptx_error own = { .code = CPTX_OK };
	cptx_tune *db;

	err = err ? err : &own;
	if (err->code != CPTX_OK || !OPTIONS_READ(cptx_tune_opt, &o, opt, NOWHERE, err))
		return NULL;
	db = NEW(cptx_tune);
	if (!db || pthread_mutex_init(&db->lock, NULL)) {
		free(db);
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	bool ok = open_folders(db, &o) || error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
	for (size_t i = 0; ok && i < db->nfolders; i++)
		ok = tune_folder_read(&db->folders[i], TUNE_AGAIN, err);
	if (ok)
		return db;
	cptx_tune_close(db);
	return NULL;
}

void cptx_tune_close(cptx_tune *db)
{
	if (!db)
		return;
	for (size_t i = 0; i < db->nfolders; i++) {
		tune_folder *f = &db->folders[i];
		if (f->writable && f->unindexed > INDEX_BYTES && tune_folder_read(f, TUNE_AGAIN, NULL))
			tune_index_write(f);
		tune_folder_free(f);
	}
	free(db->folders);
	free(db->path);
	pthread_mutex_destroy(&db->lock);
	free(db);
}

const char *cptx_tune_path(const cptx_tune *db) { return db ? db->path : ""; }

/* ---- what calls share ---- */

bool tune_lock(cptx_tune *db, const char *function, cptx_error *err)
{
	if (err->code != CPTX_OK || (!db && !error_null(function, "database", NOWHERE, err)))
		return false;
	pthread_mutex_lock(&db->lock);
	return true;
}

void tune_unlock(cptx_tune *db) { pthread_mutex_unlock(&db->lock); }

tune_folder *tune_own_folder(cptx_tune *db, const char *function, cptx_error *err)
{
	if (!*db->path)
		error_set(err, CPTX_E_IO, NOWHERE,
		          "%s: there is no folder to write to; set CPTX_TUNE_DIR, or XDG_DATA_HOME or HOME, or .path", function);
	else if (!db->folders[0].writable)
		error_set(err, CPTX_E_STATE, NOWHERE, "%s: the database in %s was opened with .read_only", function, db->path);
	return err->code == CPTX_OK ? &db->folders[0] : NULL;
}

/* Of the moment, the process, a place in memory that no other thread has, and what the system draws. */
uint64_t tune_new_id(void)
{
	struct {
		struct timespec t;
		uint64_t process, random, place;
		char host[64];
	} all;
	char text[2 * sizeof all + 1];

	memset(&all, 0, sizeof all);
	clock_gettime(CLOCK_REALTIME, &all.t);
	gethostname(all.host, sizeof all.host - 1);
	all.process = (uint64_t)getpid();
	if (getentropy(&all.random, sizeof all.random))
		all.random = 0; /* an old system: the rest must do */
	all.place = (uint64_t)(uintptr_t)&all;
	for (size_t i = 0; i < sizeof all; i++) {
		const unsigned char byte = ((const unsigned char *)&all)[i];
		text[2 * i] = (char)('a' + byte / 16), text[2 * i + 1] = (char)('a' + byte % 16);
	}
	text[2 * sizeof all] = 0;
	return tune_hash_text(text);
}

bool tune_ids_add(tune_ids *ids, uint64_t id)
{
	if (2 * ids->n >= ids->cap) {
		const size_t cap = ids->cap ? 2 * ids->cap : 1024;
		uint64_t *more = NEW_ARRAY(uint64_t, cap);
		if (!more) {
			ids->failed = true;
			return true;
		}
		for (size_t i = 0; i < ids->cap; i++)
			if (ids->at[i]) {
				size_t to = ids->at[i] & (cap - 1);
				while (more[to])
					to = (to + 1) & (cap - 1);
				more[to] = ids->at[i];
			}
		free(ids->at);
		ids->at = more, ids->cap = cap;
	}
	id = id ? id : 1;
	size_t to = id & (ids->cap - 1);
	while (ids->at[to] && ids->at[to] != id)
		to = (to + 1) & (ids->cap - 1);
	if (ids->at[to])
		return false;
	ids->at[to] = id;
	ids->n++;
	return true;
}

/* ---- adding ---- */

static bool read_key(cptx_tune_key *k, const cptx_tune_key *given, cptx_error *err)
{
	return IS_GIVEN(given, "key", NOWHERE, err) && OPTIONS_READ(cptx_tune_key, k, given, NOWHERE, err) &&
	       tune_check_key(k, err);
}

/* The record and its key with the fields that this library knows. */
static bool read_record(cptx_tune_record *r, cptx_tune_key *k, const cptx_tune_record *given, cptx_error *err)
{
	if (!IS_GIVEN(given, "record", NOWHERE, err) || !OPTIONS_READ(cptx_tune_record, r, given, NOWHERE, err) ||
	    !read_key(k, r->key, err))
		return false;
	r->key = k;
	return tune_complete(r, err);
}

bool cptx_tune_add(cptx_tune *db, const cptx_tune_record *record, cptx_error *err)
{
	char line[TUNE_LINE];
	cptx_error own = { .code = CPTX_OK };
	cptx_tune_record r;
	cptx_tune_key k;

	err = err ? err : &own;
	if (err->code != CPTX_OK || !read_record(&r, &k, record, err) || !tune_lock(db, __func__, err))
		return false;
	const size_t n = tune_print(&r, tune_new_id(), line);
	tune_record *parsed = NEW_UNSET(tune_record, 1);
	tune_folder *f = tune_own_folder(db, __func__, err);
	bool ok = f && (parsed || error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory"));
	ok = ok && (tune_parse(line, n - 1, parsed) ||
	            error_set(err, CPTX_E_ARG, NOWHERE, "tune: the record has numbers that no record has"));
	ok = ok && tune_folder_add(f, line, n, parsed, err);
	free(parsed);
	tune_unlock(db);
	return ok;
}

/* ---- look-ups ---- */

typedef struct hit {
	enum cptx_tune_match match;
	double distance;
	size_t folder;
	tune_item item;
} hit;

typedef struct looking {
	cptx_tune *db;
	size_t folder;
	tune_hashes key;
	float log_dims[CPTX_TUNE_DIMS];
	double radius;
	/* the exact problem in the index, and its nearest neighbours there, the nearest first */
	tune_problem exact, near[NEIGHBOURS];
	double distance[NEIGHBOURS];
	size_t nnear;
	hit *hits;
	size_t n, cap;
	bool no_memory;
} looking;

static void see_problem(void *user, const tune_problem *p)
{
	looking *k = (looking *)user;
	const double d = tune_distance(k->log_dims, p->log_dims);
	size_t i;

	if (p->problem == k->key.problem) {
		k->exact = *p;
		return;
	}
	if (d > k->radius || (k->nnear == NEIGHBOURS && d >= k->distance[NEIGHBOURS - 1]))
		return;
	for (i = k->nnear < NEIGHBOURS ? k->nnear++ : NEIGHBOURS - 1; i && k->distance[i - 1] > d; i--)
		k->distance[i] = k->distance[i - 1], k->near[i] = k->near[i - 1];
	k->distance[i] = d, k->near[i] = *p;
}

/* Takes an item that is of the problem or near it. */
static void see_item(looking *k, const tune_item *item)
{
	const bool exact = item->problem == k->key.problem;
	const double d = exact ? 0 : tune_distance(k->log_dims, item->log_dims);

	if (item->group != k->key.group || d > k->radius)
		return;
	if (k->n == k->cap) {
		const size_t cap = k->cap ? 2 * k->cap : 64;
		hit *more = GROW_ARRAY(hit, k->hits, cap);
		if (!more) {
			k->no_memory = true;
			return;
		}
		k->hits = more, k->cap = cap;
	}
	k->hits[k->n++] = (hit){ .match = !exact                        ? CPTX_TUNE_NEAR
		                              : item->build == k->key.build ? CPTX_TUNE_EXACT
		                                                            : CPTX_TUNE_BUILD,
		                     .distance = d,
		                     .folder = k->folder,
		                     .item = *item };
}

static bool see_items(looking *k, const tune_folder *f, const tune_problem *p)
{
	tune_item *items = p->count ? tune_index_items(f, p) : NULL;

	for (uint32_t i = 0; items && i < p->count; i++)
		see_item(k, &items[i]);
	free(items);
	return items || !p->count;
}

/* All items of a folder that are of the problem or near it; false: the index cannot be read. */
static bool see_folder(looking *k, size_t folder)
{
	const tune_folder *f = &k->db->folders[folder];

	k->folder = folder, k->nnear = 0, k->exact.count = 0;
	if (!tune_index_near(f, k->key.group, k->log_dims, k->radius, see_problem, k) || !see_items(k, f, &k->exact))
		return false;
	for (size_t i = 0; i < k->nnear; i++)
		if (!see_items(k, f, &k->near[i]))
			return false;
	for (size_t i = 0; i < f->nitems; i++)
		see_item(k, &f->items[i]);
	return true;
}

#define LESS(x, y) ((x) < (y) ? -1 : (x) > (y))

/* Measurements of the same candidate behind one another, the one that counts first. */
static int by_candidate(const void *a, const void *b)
{
	const hit *x = (const hit *)a, *y = (const hit *)b;
	const int orders[] = { LESS(x->item.problem, y->item.problem), LESS(x->item.candidate, y->item.candidate),
		                   LESS(x->match, y->match), LESS(x->folder, y->folder), LESS(y->item.date, x->item.date) };

	for (size_t i = 0; i < ARRAY_LEN(orders); i++)
		if (orders[i])
			return orders[i];
	return 0;
}

static int by_worth(const void *a, const void *b)
{
	const hit *x = (const hit *)a, *y = (const hit *)b;
	const int orders[] = { LESS(x->match, y->match), LESS(x->distance, y->distance), LESS(x->folder, y->folder),
		                   LESS(x->item.median, y->item.median) };

	for (size_t i = 0; i < ARRAY_LEN(orders); i++)
		if (orders[i])
			return orders[i];
	return 0;
}

/* One measurement of each candidate, best first; of a neighbour the fastest candidate alone. */
static void order(looking *k)
{
	size_t kept = 0;

	if (k->n)
		qsort(k->hits, k->n, sizeof *k->hits, by_candidate);
	for (size_t i = 0; i < k->n; i++)
		if (!kept || k->hits[i].item.problem != k->hits[kept - 1].item.problem ||
		    k->hits[i].item.candidate != k->hits[kept - 1].item.candidate)
			k->hits[kept++] = k->hits[i];
	if (kept)
		qsort(k->hits, kept, sizeof *k->hits, by_worth);
	k->n = 0;
	for (size_t i = 0; i < kept; i++)
		if (k->hits[i].match != CPTX_TUNE_NEAR || !k->n || k->hits[i].item.problem != k->hits[k->n - 1].item.problem)
			k->hits[k->n++] = k->hits[i];
}

/* Looks into all folders; false with an error. */
static bool look(looking *k, const cptx_tune_key *key, double radius, enum tune_reading how, cptx_error *err)
{
	cptx_tune *db = k->db;
	tune_record r;

	k->key = tune_hash_key(key), k->radius = radius, k->n = 0;
	r.r.key = key, r.r.candidate = "", r.r.median = 0, r.r.date = 0;
	memcpy(k->log_dims, tune_item_of(&r).log_dims, sizeof k->log_dims);
	for (size_t i = 0; i < db->nfolders; i++) {
		if (!tune_folder_read(&db->folders[i], how, err))
			return false;
		/* where the index cannot be read, the text has all of it */
		if (!see_folder(k, i) && (!tune_folder_read(&db->folders[i], TUNE_ANEW, err) || !see_folder(k, i)))
			return false;
	}
	order(k);
	return !k->no_memory || error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
}

/* Writes what was found; false: a record is gone from where it was, so all is to be read anew. */
static bool write_found(const looking *k, cptx_tune_found *found, size_t room, size_t *n)
{
	tune_record *r = NEW_UNSET(tune_record, 1);
	bool whole = true;

	*n = 0;
	for (size_t i = 0; r && i < k->n && *n < room; i++) {
		const hit *h = &k->hits[i];
		if (!tune_folder_record(&k->db->folders[h->folder], &h->item, r)) {
			whole = false;
			continue;
		}
		cptx_tune_found *to = &found[(*n)++];
		*to = (cptx_tune_found){ .match = h->match, .distance = h->distance, .median = r->r.median };
		memcpy(to->dims, r->key.dims, sizeof to->dims);
		memcpy(to->candidate, r->r.candidate, strlen(r->r.candidate));
	}
	free(r);
	return whole;
}

size_t cptx_tune_find(cptx_tune *db, const cptx_tune_key *key, double radius, cptx_tune_found *found, size_t room,
                      cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_tune_key k;
	looking l = { .db = db };
	size_t n = 0;

	err = err ? err : &own;
	if (err->code != CPTX_OK || !IS_GIVEN(found, "place for what is found", NOWHERE, err) || !read_key(&k, key, err) ||
	    !tune_lock(db, __func__, err))
		return 0;
	/* again where another process made one file of all, and without an index that is wrong */
	for (int how = TUNE_FRESH; how <= TUNE_ANEW; how++)
		if (!look(&l, &k, radius > 0 ? radius : 0, (enum tune_reading)how, err) || write_found(&l, found, room, &n))
			break;
	free(l.hits);
	tune_unlock(db);
	return err->code == CPTX_OK ? n : 0;
}

bool cptx_tune_has(cptx_tune *db, const cptx_tune_key *key, const char *candidate, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	cptx_tune_key k;
	looking l = { .db = db };
	bool has = false;

	err = err ? err : &own;
	if (err->code != CPTX_OK || !IS_GIVEN(candidate, "candidate", NOWHERE, err) || !read_key(&k, key, err) ||
	    !tune_lock(db, __func__, err))
		return false;
	if (look(&l, &k, 0, TUNE_FRESH, err)) {
		const uint64_t hash = tune_hash_text(candidate);
		for (size_t i = 0; i < l.n; i++)
			has |= l.hits[i].match == CPTX_TUNE_EXACT && l.hits[i].item.candidate == hash;
	}
	free(l.hits);
	tune_unlock(db);
	return has;
}
