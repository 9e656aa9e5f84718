/* SPDX-License-Identifier: MIT */
/* Inside src/tune: records as lines of text, folders of segments, and the index of a folder. */
#ifndef CPTX_TUNE_INSIDE_H
#define CPTX_TUNE_INSIDE_H

#include "base/base.h"

#include <cptx/tune.h>

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

/* ---- records: record.c ---- */

enum { TUNE_LINE = 8192 /* bytes of the longest line, with its "\n" */ };

/* A record that was read; its texts lie in `text`. */
typedef struct tune_record {
	cptx_tune_record r; /* .key is `key` */
	cptx_tune_key key;
	uint64_t id; /* of the measurement: a copy in another file has the same */
	double samples[CPTX_TUNE_SAMPLES];
	char text[TUNE_LINE];
} tune_record;

/* Checks a record, and fills in its median, spread and date. */
bool tune_complete(cptx_tune_record *r, cptx_error *err);
double tune_median(const double *samples, uint32_t n, double *spread);
bool tune_check_key(const cptx_tune_key *key, cptx_error *err);
/* Writes the line of a completed record; returns its bytes. */
size_t tune_print(const cptx_tune_record *r, uint64_t id, char line[TUNE_LINE]);
/* Reads a line of n bytes without its "\n"; false: it is torn or damaged. */
bool tune_parse(const char *line, size_t n, tune_record *to);

/* Hashes: of all but the sizes; of the exact problem; of driver and compiler; of a candidate. */
typedef struct tune_hashes {
	uint64_t group, problem, build;
} tune_hashes;
tune_hashes tune_hash_key(const cptx_tune_key *key);
uint64_t tune_hash_text(const char *text);

/* ---- items: what look-ups know of a record ---- */

typedef struct tune_item {
	uint64_t group, problem;
	uint64_t candidate, build;
	uint64_t offset; /* of its line in the segment */
	double median;
	int64_t date;                   /* microseconds since 1970 */
	float log_dims[CPTX_TUNE_DIMS]; /* log2 of the sizes */
	uint32_t segment, length;       /* number of the folder's segment; bytes of its line without "\n" */
} tune_item;
tune_item tune_item_of(const tune_record *r);
double tune_distance(const float a[CPTX_TUNE_DIMS], const float b[CPTX_TUNE_DIMS]);

/* ---- folders: folder.c ---- */

/* Reads a file's lines from a place on; `line` gets each that is sound.  `end` is behind the last whole line. */
typedef struct tune_lines {
	bool (*line)(void *user, const tune_record *r, uint64_t offset, size_t length);
	void *user;
	uint64_t damaged, end;
} tune_lines;
/* Whether a file that could not be read has been removed; network disks say so of one that is open, too. */
static inline bool tune_is_gone(int why) { return why == ENOENT || why == ESTALE; }
/* 1: done; 0: `line` ended it; -1: the file cannot be read, or memory is short (errno). */
int tune_read_lines(int fd, uint64_t from, tune_lines *to);

enum { TUNE_NAME = 96 /* bytes of a segment's name, with its NUL */ };
typedef struct tune_segment {
	char name[TUNE_NAME];
	uint64_t known;  /* bytes whose records are in the index or among the items */
	uint64_t pruned; /* 1: this process has retired it, or found it so, and read all of it since */
} tune_segment;

typedef struct tune_folder {
	char *path;
	bool writable;
	int dir; /* descriptor; -1: there is none yet */
	tune_segment *segments;
	size_t nsegments, csegments;
	/* the index that was there when the folder was read; -1: none */
	int index;
	uint64_t nproblems, nindexed;
	uint64_t problems_at, items_at; /* in the file */
	struct tune_block *blocks;      /* of the file's problems */
	tune_item *items;               /* those that the index lacks */
	size_t nitems, citems;
	uint64_t unindexed; /* bytes of text that the index lacks */
	int64_t read_ms;    /* when it was read, of the monotonic clock; 0: never */
	/* the segment of this process */
	char own_name[TUNE_NAME];
	int own; /* -1: none yet */
	long own_pid;
	uint32_t own_number;
	uint64_t own_bytes;
} tune_folder;

void tune_folder_init(tune_folder *f, char *path, bool writable);
void tune_folder_free(tune_folder *f);
/* Reads what is new: now and then, now, or all of it again without the index. */
enum tune_reading { TUNE_FRESH, TUNE_AGAIN, TUNE_ANEW };
bool tune_folder_read(tune_folder *f, enum tune_reading how, cptx_error *err);
/* Reads all records of its segments; 1: done, 0: `each` ended it, -1: an error. */
int tune_folder_each(tune_folder *f, tune_lines *each, cptx_error *err);
/* Appends a line of a record and has it on disk. */
bool tune_folder_add(tune_folder *f, const char *line, size_t n, const tune_record *record, cptx_error *err);
/* Reads the record of an item; false: its file is gone or its line is damaged. */
bool tune_folder_record(const tune_folder *f, const tune_item *item, tune_record *to);
/* Begins a file of this process in the folder, which has no name that readers look at yet; its name is in `name`. */
int tune_folder_create(tune_folder *f, char name[TUNE_NAME], const char *ending, cptx_error *err);
/* Has a file's content and then its new name on disk. */
bool tune_folder_name(tune_folder *f, int fd, const char *from, const char *to, cptx_error *err);
bool tune_write_all(int fd, const char *p, size_t n);

/* How segments are opened: neither a FIFO nor a link to elsewhere is one, and must not block. */
#define TUNE_READ_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)
/* Whether a segment is retired: its records are being put into another one, and what is written to it now may be lost. */
static inline bool tune_is_retired(const struct stat *s) { return !(s->st_mode & S_IWUSR); }
/* Whether a file of that name is a segment. */
bool tune_is_segment(const char *name);

/* ---- the index: index.c ---- */

/* Opens the folder's index and sets how much of each segment it covers; without one that fits nothing is covered. */
void tune_index_open(tune_folder *f);
void tune_index_close(tune_folder *f);
/* Writes an index of all that the folder has; false, which is no error: it could not be. */
bool tune_index_write(tune_folder *f);

/* A block of problems: where it begins in their order, and its checksum. */
typedef struct tune_block {
	uint64_t group, sum;
	float first;
	uint32_t unused;
} tune_block;
/* A problem of the index and where its items stand. */
typedef struct tune_problem {
	uint64_t group, problem, first;
	uint64_t sum; /* checksum of the items */
	uint32_t count, unused;
	float log_dims[CPTX_TUNE_DIMS];
} tune_problem;
/* Calls `each` for the problems of a group whose first size is within the radius; false: they cannot be read. */
bool tune_index_near(const tune_folder *f, uint64_t group, const float log_dims[CPTX_TUNE_DIMS], double radius,
                     void (*each)(void *user, const tune_problem *p), void *user);
/* The items of a problem, from malloc; NULL: they cannot be read, or memory is short. */
tune_item *tune_index_items(const tune_folder *f, const tune_problem *p);

/* ---- the database: tune.c ---- */

struct cptx_tune {
	pthread_mutex_t lock;
	tune_folder *folders; /* the user's, then those that are only read */
	size_t nfolders;
	char *path; /* the user's folder; "": none */
};
bool tune_lock(cptx_tune *db, const char *function, cptx_error *err);
void tune_unlock(cptx_tune *db);
/* The user's folder for writing; NULL with an error: there is none, or it is read-only. */
tune_folder *tune_own_folder(cptx_tune *db, const char *function, cptx_error *err);
/* Number of a new measurement. */
uint64_t tune_new_id(void);

/* Ids that were met already. */
typedef struct tune_ids {
	uint64_t *at;
	size_t n, cap;
	bool failed;
} tune_ids;
/* True: it is new. */
bool tune_ids_add(tune_ids *ids, uint64_t id);

#endif
