/* SPDX-License-Identifier: MIT */
/*
 * A folder of segments.  A process appends to a segment of its own, so nothing is locked.  What makes one of all segments
 * (manage.c) first retires each, by taking away the owner's right to write it, and reads it afterwards: a writer looks
 * behind each record whether its segment is there and not retired, and where that is not so, writes the record into a new
 * one.  So a record whose writer saw a segment that was not retired is in what is read later, and a record that is in both
 * is one by its id.  A segment that was retired stays so until it is removed; so any number of processes may make one of all
 * at once.
 */
#include "tune/tune.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ENDING ".seg"
enum { CHUNK = 1 << 20, FRESH_MS = 1000, TRIES = 8 };
static const char head[] = "# cptx tuning records: a checksum, the bytes behind it, and name=value between tabs\n";

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void tune_folder_init(tune_folder *f, char *path, bool writable)
{
	*f = (tune_folder){ .path = path, .writable = writable, .dir = -1, .index = -1, .own = -1 };
}

static void forget(tune_folder *f)
{
	tune_index_close(f);
	f->nsegments = f->nitems = 0, f->unindexed = 0, f->read_ms = 0;
}

void tune_folder_free(tune_folder *f)
{
	forget(f);
	if (f->own >= 0)
		close(f->own);
	if (f->dir >= 0)
		close(f->dir);
	free(f->segments);
	free(f->items);
	free(f->path);
}

bool tune_is_segment(const char *name)
{
	const size_t n = strlen(name), ending = strlen(ENDING);

	return n > ending && n < TUNE_NAME && name[0] != '.' && !strcmp(name + n - ending, ENDING);
}

/* ---- reading ---- */

/* Lines that are whole among n bytes; returns the bytes of them, or SIZE_MAX if `line` ended it. */
static size_t take_lines(const char *p, size_t n, uint64_t offset, tune_record *r, tune_lines *to)
{
	size_t used = 0;

	for (const char *end; (end = text_find(p + used, '\n', n - used)); used = (size_t)(end - p) + 1) {
		const size_t length = (size_t)(end - p) - used;
		if (!length || p[used] == '#')
			continue;
		if (!tune_parse(p + used, length, r))
			to->damaged++;
		else if (!to->line(to->user, r, offset + used, length))
			return SIZE_MAX;
	}
	return used;
}

int tune_read_lines(int fd, uint64_t from, tune_lines *to)
{
	struct stat s;
	size_t have = 0, used = 0;
	int status = 1;

	to->end = from;
	if (fstat(fd, &s))
		return -1;
	if (!S_ISREG(s.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	if ((uint64_t)s.st_size <= from)
		return 1;
	/* the longest line has room, since a writer may append one meanwhile */
	const size_t room = MAX((size_t)TUNE_LINE, (size_t)MIN((uint64_t)CHUNK, (uint64_t)s.st_size - from + 1));
	char *buffer = NEW_UNSET(char, room);
	tune_record *r = NEW_UNSET(tune_record, 1);
	errno = ENOMEM;
	for (ssize_t got = 1; buffer && r && got && status == 1;) {
		got = pread(fd, buffer + have, room - have, (off_t)(to->end + have));
		if (got < 0 && errno != EINTR)
			status = -1;
		have += got > 0 ? (size_t)got : 0;
		used = take_lines(buffer, have, to->end, r, to);
		if (used == SIZE_MAX) {
			status = 0;
			break;
		}
		if (!used && have == room) /* no line is so long */
			to->damaged++, used = have;
		memmove(buffer, buffer + used, have - used);
		to->end += used, have -= used;
	}
	to->damaged += status == 1 && have;
	status = buffer && r ? status : -1;
	free(buffer);
	free(r);
	return status;
}

typedef struct reading {
	tune_folder *f;
	uint32_t segment;
} reading;

static bool keep_item(tune_folder *f, const tune_record *r, uint32_t segment, uint64_t offset, size_t length)
{
	if (f->nitems == f->citems) {
		const size_t cap = f->citems ? 2 * f->citems : 64;
		tune_item *more = GROW_ARRAY(tune_item, f->items, cap);
		if (!more)
			return false;
		f->items = more, f->citems = cap;
	}
	tune_item *item = &f->items[f->nitems++];
	*item = tune_item_of(r);
	item->segment = segment, item->offset = offset, item->length = (uint32_t)length;
	return true;
}

static bool keep_line(void *user, const tune_record *r, uint64_t offset, size_t length)
{
	const reading *x = (const reading *)user;

	return keep_item(x->f, r, x->segment, offset, length);
}

static bool no_memory(cptx_error *err) { return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory"); }

static bool add_segment(tune_folder *f, const char *name)
{
	if (f->nsegments == f->csegments) {
		const size_t cap = f->csegments ? 2 * f->csegments : 16;
		tune_segment *more = GROW_ARRAY(tune_segment, f->segments, cap);
		if (!more)
			return false;
		f->segments = more, f->csegments = cap;
	}
	tune_segment *s = &f->segments[f->nsegments++];
	memset(s, 0, sizeof *s);
	memcpy(s->name, name, strlen(name));
	return true;
}

static uint32_t segment_of(const tune_folder *f, const char *name)
{
	uint32_t i = 0;

	while (i < f->nsegments && strcmp(f->segments[i].name, name) != 0)
		i++;
	return i;
}

static bool unreadable(const tune_folder *f, const char *name, int why, cptx_error *err)
{
	return error_set(err, CPTX_E_IO, NOWHERE, "tune: %s/%s cannot be read: %s", f->path, name, strerror(why));
}

static bool read_segment(tune_folder *f, uint32_t i, cptx_error *err)
{
	reading x = { f, i };
	tune_lines lines = { .line = keep_line, .user = &x };
	struct stat s;

	if (fstatat(f->dir, f->segments[i].name, &s, AT_SYMLINK_NOFOLLOW))
		return tune_is_gone(errno) || unreadable(f, f->segments[i].name, errno, err);
	if ((uint64_t)s.st_size == f->segments[i].known)
		return true;
	const int fd = openat(f->dir, f->segments[i].name, TUNE_READ_FLAGS);
	if (fd < 0) /* it may be gone, as another process made one of all */
		return tune_is_gone(errno) || unreadable(f, f->segments[i].name, errno, err);
	const int status = tune_read_lines(fd, f->segments[i].known, &lines);
	const int why = errno;
	close(fd);
	if (status == 0 || (status < 0 && why == ENOMEM))
		return no_memory(err);
	if (status < 0)
		return tune_is_gone(why) || unreadable(f, f->segments[i].name, why, err);
	f->unindexed += lines.end - f->segments[i].known;
	f->segments[i].known = lines.end;
	return true;
}

/* All names of segments that are there join the list; false where one of the list is gone.  *why: errno, if it failed. */
static bool list_segments(tune_folder *f, int *why)
{
	size_t known = f->nsegments, found = 0;
	const int fd = openat(f->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with a place of its own, unlike dup */
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d) { /* a folder that was removed is empty */
		*why = errno == ENOENT ? 0 : errno;
		if (fd >= 0)
			close(fd);
		return known == 0;
	}
	while (!*why) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e) {
			*why = errno;
			break;
		}
		if (!tune_is_segment(e->d_name))
			continue;
		const uint32_t i = segment_of(f, e->d_name);
		found += i < known;
		if (i == f->nsegments && !add_segment(f, e->d_name))
			*why = ENOMEM;
	}
	closedir(d);
	return found == known;
}

static bool open_folder(tune_folder *f, cptx_error *err)
{
	if (f->dir >= 0)
		return true;
	f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->dir >= 0 || errno == ENOENT || errno == ENOTDIR ||
	       error_set(err, CPTX_E_IO, NOWHERE, "tune: the folder %s cannot be read: %s", f->path, strerror(errno));
}

/* Lists all segments, with what the index covers of them. */
static bool list_again(tune_folder *f, bool with_index, int *why)
{
	forget(f);
	if (with_index)
		tune_index_open(f);
	return list_segments(f, why);
}

bool tune_folder_read(tune_folder *f, enum tune_reading how, cptx_error *err)
{
	int why = 0;

	if (how == TUNE_FRESH && f->read_ms && now_ms() - f->read_ms < FRESH_MS)
		return true;
	if (!open_folder(f, err))
		return false;
	if (f->dir < 0) /* it is empty */
		return true;
	/* where a file that the index or the items name is gone, all is read anew; again, without an index that is older */
	const bool whole = how != TUNE_ANEW && f->read_ms ? list_segments(f, &why) : list_again(f, how != TUNE_ANEW, &why);
	if (!whole && !why && !list_again(f, true, &why) && !why)
		list_again(f, false, &why);
	if (why)
		return why == ENOMEM ? no_memory(err) : unreadable(f, ".", why, err);
	for (uint32_t i = 0; i < f->nsegments; i++)
		if (!read_segment(f, i, err))
			return false;
	f->read_ms = now_ms();
	return true;
}

int tune_folder_each(tune_folder *f, tune_lines *each, cptx_error *err)
{
	int status = 1;

	if (!tune_folder_read(f, TUNE_AGAIN, err))
		return -1;
	for (uint32_t i = 0; i < f->nsegments && status == 1; i++) {
		const int fd = openat(f->dir, f->segments[i].name, TUNE_READ_FLAGS);
		status = fd >= 0 ? tune_read_lines(fd, 0, each) : -1;
		if (status < 0 && tune_is_gone(errno))
			status = 1;
		else if (status < 0)
			unreadable(f, f->segments[i].name, errno, err);
		if (fd >= 0)
			close(fd);
	}
	return status;
}

bool tune_folder_record(const tune_folder *f, const tune_item *item, tune_record *to)
{
	char line[TUNE_LINE];
	ssize_t n = -1;
	const int fd = item->segment < f->nsegments && item->length < TUNE_LINE
	                   ? openat(f->dir, f->segments[item->segment].name, TUNE_READ_FLAGS)
	                   : -1;

	if (fd >= 0) {
		n = pread(fd, line, item->length, (off_t)item->offset);
		close(fd);
	}
	return n == (ssize_t)item->length && tune_parse(line, item->length, to) &&
	       tune_hash_text(to->r.candidate) == item->candidate && tune_hash_key(to->r.key).problem == item->problem;
}

/* ---- writing ---- */

/* Makes a folder and those that it lies in. */
static bool make_folders(const char *path)
{
	char *p = strdup(path);

	if (!p)
		return false;
	for (char *slash = strchr(p + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(p, 0777); /* where that fails, so does the last one */
		*slash = '/';
	}
	const bool ok = !mkdir(p, 0777) || errno == EEXIST;
	const int why = errno;
	free(p);
	errno = why;
	return ok;
}

static bool io_error(const tune_folder *f, const char *what, cptx_error *err)
{
	return error_set(err, CPTX_E_IO, NOWHERE, "tune: %s in %s: %s", what, f->path, strerror(errno));
}

/* Letters, digits and - of the host's name. */
static void host_name(char name[33])
{
	char all[256] = "";
	size_t n = 0;

	gethostname(all, sizeof all - 1);
	for (size_t i = 0; all[i] && n < 32; i++)
		if ((all[i] >= 'a' && all[i] <= 'z') || (all[i] >= '0' && all[i] <= '9') || all[i] == '-' ||
		    (all[i] >= 'A' && all[i] <= 'Z'))
			name[n++] = all[i];
	name[n] = 0;
}

int tune_folder_create(tune_folder *f, char name[TUNE_NAME], const char *ending, cptx_error *err)
{
	char host[33];
	struct timespec t;

	if (f->dir < 0 && (!make_folders(f->path) || (f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)) {
		error_set(err, CPTX_E_IO, NOWHERE, "tune: the folder %s cannot be made: %s", f->path, strerror(errno));
		return -1;
	}
	host_name(host);
	for (int i = 0; i < TRIES; i++) {
		clock_gettime(CLOCK_REALTIME, &t);
		snprintf(name, TUNE_NAME, "%s-%ld-%llx%s", host, (long)getpid(),
		         (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec + f->own_number++, ending);
		const int fd = openat(f->dir, name, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			break;
	}
	io_error(f, "no file can be made", err);
	return -1;
}

bool tune_write_all(int fd, const char *p, size_t n)
{
	while (n) {
		const ssize_t w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			errno = w ? errno : ENOSPC;
			return false;
		}
		p += w, n -= (size_t)w;
	}
	return true;
}

bool tune_folder_name(tune_folder *f, int fd, const char *from, const char *to, cptx_error *err)
{
	if (!fsync(fd) && !renameat(f->dir, from, f->dir, to) && !fsync(f->dir))
		return true;
	io_error(f, "a file cannot be finished", err);
	unlinkat(f->dir, from, 0);
	return false;
}

static void leave_own(tune_folder *f)
{
	if (f->own >= 0)
		close(f->own);
	f->own = -1;
}

/* Whether the owner may write a new file, whatever the umask; it is no segment yet, so this takes back no mark of others. */
static bool make_writable(int fd)
{
	struct stat s;

	return !fstat(fd, &s) &&
	       (!tune_is_retired(&s) || (!fchmod(fd, (s.st_mode & 07777) | S_IWUSR) && !fstat(fd, &s) && !tune_is_retired(&s)));
}

/* Begins a segment of this process: it gets the name of one when it is whole, and its mode is never changed from then on. */
static bool begin_own(tune_folder *f, cptx_error *err)
{
	char made[TUNE_NAME];
	const int fd = tune_folder_create(f, made, ".tmp", err);

	if (fd < 0)
		return false;
	memcpy(f->own_name, made, sizeof made);
	memcpy(f->own_name + strlen(made) - strlen(ENDING), ENDING, strlen(ENDING));
	bool ok = make_writable(fd);
	if (!ok)
		error_set(err, CPTX_E_IO, NOWHERE,
		          "tune: %s gives new files a mode that their owner may not write; mount it with one that allows that",
		          f->path);
	else if (!(ok = tune_write_all(fd, head, sizeof head - 1) && !renameat(f->dir, made, f->dir, f->own_name) &&
	                !fsync(f->dir)))
		io_error(f, "no record can be written", err);
	if (!ok) {
		unlinkat(f->dir, made, 0);
		unlinkat(f->dir, f->own_name, 0);
		close(fd);
		return false;
	}
	f->own = fd, f->own_pid = (long)getpid(), f->own_bytes = sizeof head - 1;
	return true;
}

/*
 * Whether the segment of this process is there under its name and is not retired.  It is opened, since a network disk asks
 * what is true of a file only then; that it asks for the name, too, is not promised.
 */
static bool is_current(const tune_folder *f)
{
	struct stat mine, now;
	const int fd = openat(f->dir, f->own_name, TUNE_READ_FLAGS);
	const bool same = fd >= 0 && !fstat(fd, &now) && !fstat(f->own, &mine) && !tune_is_retired(&mine) &&
	                  !tune_is_retired(&now) && now.st_ino == mine.st_ino && now.st_dev == mine.st_dev;

	if (fd >= 0)
		close(fd);
	return same;
}

/* Appends to the segment of this process; of a record that could not be written nothing stays.  True, too, where another
 * host has retired or removed it, which is_current finds. */
static bool append(tune_folder *f, const char *line, size_t n, cptx_error *err)
{
	if (tune_write_all(f->own, line, n) && !fsync(f->own))
		return true;
	const int why = errno;
	if (why == ESTALE || !is_current(f))
		return true;
	errno = why;
	io_error(f, "no record can be written", err);
	if (f->own_bytes < sizeof head) /* nobody needs a file without a record */
		unlinkat(f->dir, f->own_name, 0);
	if (f->own_bytes < sizeof head || ftruncate(f->own, (off_t)f->own_bytes))
		leave_own(f);
	return false;
}

bool tune_folder_add(tune_folder *f, const char *line, size_t n, const tune_record *record, cptx_error *err)
{
	for (int i = 0; i < TRIES; i++) {
		struct stat now;
		/* the segment of the parent of a fork; one that is taken away, whose bytes are free once it is closed */
		if (f->own >= 0 && (f->own_pid != (long)getpid() || fstat(f->own, &now) || !now.st_nlink || tune_is_retired(&now)))
			leave_own(f);
		if (f->own < 0 && !begin_own(f, err))
			return false;
		if (!append(f, line, n, err))
			return false;
		f->own_bytes += n;
		if (!is_current(f)) {
			leave_own(f);
			continue;
		}
		uint32_t segment = segment_of(f, f->own_name);
		if (segment == f->nsegments && !add_segment(f, f->own_name))
			return true; /* it is on disk, and will be read */
		tune_segment *s = &f->segments[segment];
		const uint64_t offset = f->own_bytes - n;
		if (s->known == 0)
			s->known = sizeof head - 1;
		if (s->known == offset && keep_item(f, record, segment, offset, n - 1))
			s->known += n, f->unindexed += n;
		return true;
	}
	return error_set(err, CPTX_E_IO, NOWHERE, "tune: files in %s are taken away as fast as they are written", f->path);
}
