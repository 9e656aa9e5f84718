/* SPDX-License-Identifier: MIT */
/*
 * The file "index" of a folder: which bytes of which segments it was made of, a table of blocks, problems in order in these
 * blocks, and the items of each problem by their time.  It is read with pread and not mapped: another host may replace the
 * file, and a page of a file that is gone on a network disk is a signal.  A look-up reads some blocks.  Header, segments and
 * the table of blocks have a checksum, each block has one in the table, and the items of a problem have one in its block;
 * what it says of a record is believed only after the record's line was read (tune_folder_record).
 */
#include "tune/tune.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "index";
static const char magic[8] = { 'c', 'p', 't', 'x', 't', 'u', 'n', '1' };
enum { ORDER = 0x01020304, BLOCK = 64 /* problems */ };
_Static_assert(sizeof(tune_problem) % 8 == 0 && sizeof(tune_item) % 8 == 0 && sizeof(tune_segment) % 8 == 0 &&
                   sizeof(tune_block) % 8 == 0,
               "checksums are of whole words");

typedef struct header {
	char magic[8];
	uint32_t order, nsegments; /* order: of bytes in a number */
	uint64_t nproblems, nitems, bytes, sum;
} header;

static bool read_at(int fd, void *to, size_t n, uint64_t from)
{
	return pread(fd, to, n, (off_t)from) == (ssize_t)n; /* a short read is an index that does not fit */
}

/* A checksum of whole words, against accidents; a look-up goes over hundreds of kilobytes in a part of a millisecond. */
static uint64_t sum_more(uint64_t sum, const void *p, size_t n)
{
	const char *at = (const char *)p;
	uint64_t word;

	for (size_t i = 0; i + sizeof word <= n; i += sizeof word) {
		memcpy(&word, at + i, sizeof word);
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	return sum;
}

static uint64_t sum_of(const void *p, size_t n) { return sum_more(n + 1, p, n); }

static uint64_t blocks_of(uint64_t problems) { return (problems + BLOCK - 1) / BLOCK; }

static uint64_t sum_of_head(header h, const tune_segment *segments, const tune_block *blocks)
{
	h.sum = 0;
	return sum_more(sum_more(sum_of(&h, sizeof h), segments, h.nsegments * sizeof *segments), blocks,
	                blocks_of(h.nproblems) * sizeof *blocks);
}

static bool covers(const tune_folder *f, const tune_segment *s)
{
	struct stat now;

	return !fstatat(f->dir, s->name, &now, AT_SYMLINK_NOFOLLOW) && (uint64_t)now.st_size >= s->known;
}

static bool read_head(tune_folder *f, int fd)
{
	struct stat s;
	header h;

	if (fstat(fd, &s) || !S_ISREG(s.st_mode) || !read_at(fd, &h, sizeof h, 0) || memcmp(h.magic, magic, sizeof magic) ||
	    h.order != ORDER || h.bytes != (uint64_t)s.st_size || h.nsegments > h.bytes / sizeof(tune_segment) ||
	    h.nproblems > h.bytes / sizeof(tune_problem) || h.nitems > h.bytes / sizeof(tune_item))
		return false;
	const uint64_t nblocks = blocks_of(h.nproblems), blocks_at = sizeof h + h.nsegments * sizeof(tune_segment);
	tune_segment *segments = NEW_ARRAY(tune_segment, h.nsegments + 1u);
	tune_block *blocks = NEW_ARRAY(tune_block, nblocks + 1);
	bool ok = segments && blocks && read_at(fd, segments, h.nsegments * sizeof *segments, sizeof h) &&
	          read_at(fd, blocks, nblocks * sizeof *blocks, blocks_at) && sum_of_head(h, segments, blocks) == h.sum;
	for (uint32_t i = 0; ok && i < h.nsegments; i++)
		ok = memchr(segments[i].name, 0, TUNE_NAME) && tune_is_segment(segments[i].name) && !strchr(segments[i].name, '/') &&
		     covers(f, &segments[i]);
	if (!ok) {
		free(segments);
		free(blocks);
		return false;
	}
	free(f->segments);
	f->segments = segments, f->nsegments = h.nsegments, f->csegments = h.nsegments + 1u;
	f->blocks = blocks, f->nproblems = h.nproblems, f->nindexed = h.nitems;
	f->problems_at = blocks_at + nblocks * sizeof *blocks;
	f->items_at = f->problems_at + h.nproblems * sizeof(tune_problem);
	return true;
}

void tune_index_open(tune_folder *f)
{
	const int fd = openat(f->dir, file_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

	tune_index_close(f);
	if (fd >= 0 && read_head(f, fd))
		f->index = fd;
	else if (fd >= 0)
		close(fd);
}

void tune_index_close(tune_folder *f)
{
	if (f->index >= 0)
		close(f->index);
	free(f->blocks);
	f->index = -1, f->blocks = NULL, f->nproblems = f->nindexed = 0;
}

/* ---- finding ---- */

/* The last block that begins in front of a place, or the first one. */
static uint64_t block_of(const tune_folder *f, uint64_t group, float first)
{
	uint64_t low = 0, high = blocks_of(f->nproblems);

	while (low + 1 < high) {
		const uint64_t middle = low + (high - low) / 2;
		const tune_block *b = &f->blocks[middle];
		if (b->group != group ? b->group < group : b->first < first)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool tune_index_near(const tune_folder *f, uint64_t group, const float log_dims[CPTX_TUNE_DIMS], double radius,
                     void (*each)(void *user, const tune_problem *p), void *user)
{
	tune_problem block[BLOCK];
	const float least = (float)(log_dims[0] - radius - 1e-4), most = (float)(log_dims[0] + radius + 1e-4);

	for (uint64_t b = block_of(f, group, least); f->index >= 0 && b < blocks_of(f->nproblems); b++) {
		const size_t n = (size_t)MIN((uint64_t)BLOCK, f->nproblems - b * BLOCK);
		if (!read_at(f->index, block, n * sizeof *block, f->problems_at + b * sizeof block) ||
		    sum_of(block, n * sizeof *block) != f->blocks[b].sum)
			return false;
		for (size_t i = 0; i < n; i++) {
			if (block[i].group > group || (block[i].group == group && block[i].log_dims[0] > most))
				return true;
			if (block[i].group == group && block[i].log_dims[0] >= least)
				each(user, &block[i]);
		}
	}
	return true;
}

tune_item *tune_index_items(const tune_folder *f, const tune_problem *p)
{
	tune_item *items =
		p->first <= f->nindexed && p->count <= f->nindexed - p->first ? NEW_UNSET(tune_item, p->count + 1u) : NULL;

	if (items && read_at(f->index, items, p->count * sizeof *items, f->items_at + p->first * sizeof *items) &&
	    sum_of(items, p->count * sizeof *items) == p->sum)
		return items;
	free(items);
	return NULL;
}

/* ---- writing ---- */

#define LESS(x, y) ((x) < (y) ? -1 : (x) > (y))

static int by_place(const void *a, const void *b)
{
	const tune_item *x = (const tune_item *)a, *y = (const tune_item *)b;
	const int orders[] = { LESS(x->group, y->group), LESS(x->log_dims[0], y->log_dims[0]), LESS(x->problem, y->problem),
		                   LESS(x->build, y->build), LESS(x->candidate, y->candidate),     LESS(y->date, x->date) };

	for (size_t i = 0; i < ARRAY_LEN(orders); i++)
		if (orders[i])
			return orders[i];
	return 0;
}

static int by_median(const void *a, const void *b)
{
	return LESS(((const tune_item *)a)->median, ((const tune_item *)b)->median);
}

/* Of several measurements of a candidate the latest stays. */
static size_t only_latest(tune_item *all, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!kept || all[i].problem != all[kept - 1].problem || all[i].build != all[kept - 1].build ||
		    all[i].candidate != all[kept - 1].candidate)
			all[kept++] = all[i];
	return kept;
}

/* The problems of sorted items, whose items are then sorted by their time. */
static size_t problems_of(tune_item *all, size_t n, tune_problem *to)
{
	size_t count = 0;

	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && all[end].problem == all[i].problem; end++)
			;
		tune_problem *p = &to[count++];
		*p = (tune_problem){ .group = all[i].group, .problem = all[i].problem, .first = i, .count = (uint32_t)(end - i) };
		memcpy(p->log_dims, all[i].log_dims, sizeof p->log_dims);
		qsort(all + i, end - i, sizeof *all, by_median);
		p->sum = sum_of(all + i, (end - i) * sizeof *all);
	}
	return count;
}

static bool write_parts(int fd, const tune_folder *f, header h, const tune_block *blocks, const tune_problem *problems,
                        const tune_item *items)
{
	return tune_write_all(fd, (const char *)&h, sizeof h) &&
	       tune_write_all(fd, (const char *)f->segments, h.nsegments * sizeof *f->segments) &&
	       tune_write_all(fd, (const char *)blocks, blocks_of(h.nproblems) * sizeof *blocks) &&
	       tune_write_all(fd, (const char *)problems, h.nproblems * sizeof *problems) &&
	       tune_write_all(fd, (const char *)items, h.nitems * sizeof *items);
}

static bool write_file(tune_folder *f, const tune_problem *problems, size_t nproblems, const tune_item *items, size_t nitems)
{
	char name[TUNE_NAME];
	cptx_error err = { .code = CPTX_OK };
	header h = { .order = ORDER, .nsegments = (uint32_t)f->nsegments, .nproblems = nproblems, .nitems = nitems };
	const uint64_t nblocks = blocks_of(nproblems);
	tune_block *blocks = NEW_ARRAY(tune_block, nblocks + 1);
	const int fd = blocks ? tune_folder_create(f, name, ".tmp", &err) : -1;

	for (uint64_t b = 0; fd >= 0 && b < nblocks; b++) {
		const tune_problem *first = &problems[b * BLOCK];
		blocks[b].group = first->group, blocks[b].first = first->log_dims[0];
		blocks[b].sum = sum_of(first, MIN((size_t)BLOCK, nproblems - b * BLOCK) * sizeof *first);
	}
	memcpy(h.magic, magic, sizeof magic);
	h.bytes = sizeof h + f->nsegments * sizeof *f->segments + nblocks * sizeof *blocks + nproblems * sizeof *problems +
	          nitems * sizeof *items;
	h.sum = fd >= 0 ? sum_of_head(h, f->segments, blocks) : 0;
	const bool ok = fd >= 0 && write_parts(fd, f, h, blocks, problems, items);
	const bool named = ok && tune_folder_name(f, fd, name, file_name, &err);
	if (fd >= 0 && !ok)
		unlinkat(f->dir, name, 0);
	if (fd >= 0)
		close(fd);
	free(blocks);
	return named;
}

/* All items of the index, in its order. */
static bool read_items(const tune_folder *f, tune_item *to)
{
	return !f->nindexed || read_at(f->index, to, f->nindexed * sizeof *to, f->items_at);
}

bool tune_index_write(tune_folder *f)
{
	const size_t n = (size_t)f->nindexed + f->nitems;
	tune_item *all = NEW_UNSET(tune_item, n + 1);
	tune_problem *problems = NEW_UNSET(tune_problem, n + 1);
	bool ok = all && problems && f->dir >= 0 && read_items(f, all);

	if (ok) {
		if (f->nitems)
			memcpy(all + f->nindexed, f->items, f->nitems * sizeof *all);
		qsort(all, n, sizeof *all, by_place);
		const size_t kept = only_latest(all, n);
		const size_t count = problems_of(all, kept, problems);
		ok = write_file(f, problems, count, all, kept);
	}
	free(all);
	free(problems);
	return ok;
}
