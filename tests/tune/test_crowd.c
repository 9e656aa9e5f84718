/* SPDX-License-Identifier: MIT */
/*
 * Many processes that write one folder and are killed at any moment, beside one that makes one file of all: no record is
 * lost that was reported written, and none is torn.  Disks that are full.  CPTX_WHOLE=1: 32 processes, 200 of them killed,
 * and two hosts on a disk that shows neither what the other did for a minute; else a small crowd.
 */
#include "store.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST_PROCESSES = 32, MOST_RECORDS = 4096 };

static unsigned processes = 6, records = 60, kills = 12;
static bool whole;

/* What children tell, in memory that outlives them: how many records each began and was told are written;
 * how often those that prune did so, and how many files they took in. */
static struct shared {
	volatile unsigned begun[MOST_PROCESSES], done[MOST_PROCESSES], failed;
	volatile unsigned turns;
	volatile uint64_t taken_in;
} * shared;

/*
 * Two hosts are two mounts of the folder by bindfs.  The kernel keeps for each mount which names there are and what file
 * each means, as the client of a network disk does: a host sees for a minute what the other has renamed or removed.  Sizes
 * are asked for each time, which network disks promise for a file that is opened.
 */
static char host[2][200];

static cptx_tune *open_on(unsigned me, cptx_error *err)
{
	return cptx_tune_open(&(cptx_tune_opt){ .path = host[me % 2][0] ? host[me % 2] : place, .shipped = "" }, err);
}

static bool mount_hosts(void)
{
	char command[1000];
	bool ok = !mkdir(place, 0700);

	for (int i = 0; i < 2 && ok; i++) {
		snprintf(host[i], sizeof host[i], "%s-host%d", place, i);
		snprintf(command, sizeof command,
		         "mkdir %s && bindfs -o attr_timeout=0,entry_timeout=60,negative_timeout=60 %s %s >/dev/null 2>&1", host[i],
		         place, host[i]);
		ok = !system(command);
	}
	return ok;
}

static void unmount_hosts(void)
{
	char command[1000];

	for (int i = 0; i < 2 && host[i][0]; i++) {
		snprintf(command, sizeof command, "umount %s 2>/dev/null; rmdir %s", host[i], host[i]);
		if (system(command))
			fprintf(stderr, "%s stays\n", host[i]);
		host[i][0] = 0;
	}
}

static void before(void)
{
	folder_make();
	whole = getenv("CPTX_WHOLE") != NULL;
	if (whole)
		processes = 32, records = 300, kills = 200;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
}

static void after(void)
{
	unmount_hosts();
	munmap(shared, sizeof *shared);
	folder_remove();
}

/* Writes its records, and goes on behind the last one that was begun: a killed one may have written it or not. */
static void child(unsigned me)
{
	cptx_error err = { 0 };
	cptx_tune *db = open_on(me, &err);

	while (shared->begun[me] < records) {
		const cptx_tune_key k = a_key(1 + me);
		char name[32];
		snprintf(name, sizeof name, "record=%u", shared->begun[me]);
		shared->begun[me]++;
		if (put(db, &k, name, 1 + me, &err))
			shared->done[me]++;
		else
			__atomic_fetch_add(&shared->failed, 1, __ATOMIC_SEQ_CST);
	}
	fputs(err.text, stderr);
	cptx_tune_close(db);
	_exit(err.code != CPTX_OK);
}

static pid_t start(unsigned me)
{
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0)
		child(me);
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* Which records are there, each once. */
static unsigned char seen[MOST_PROCESSES][MOST_RECORDS];

static bool see(void *user, const cptx_tune_record *r)
{
	unsigned i;

	(void)user;
	ck_assert_int_eq(sscanf(r->candidate, "record=%u", &i), 1);
	const uint64_t me = r->key->dims[0] - 1;
	ck_assert(me < processes && i < records && r->median == (double)(me + 1));
	seen[me][i]++;
	return true;
}

static void prune_now_and_then(unsigned me, volatile unsigned *stop)
{
	cptx_tune_pruned done;
	unsigned turns = 0;
	uint64_t files = 0;
	cptx_error err = { 0 };
	cptx_tune *db = open_on(me, &err);

	const pid_t parent = getppid();
	while (!*stop && err.code == CPTX_OK && getppid() == parent) {
		nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
		cptx_tune_prune(db, NULL, &done, &err);
		turns++, files += done.files;
	}
	fputs(err.text, stderr);
	printf("pruned %u times on host %u: %llu files became one each time\n", turns, me, (unsigned long long)files);
	fflush(stdout);
	cptx_tune_close(db);
	/* else nothing was tried */
	__atomic_fetch_add(&shared->turns, turns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&shared->taken_in, files, __ATOMIC_SEQ_CST);
	_exit(err.code != CPTX_OK);
}

START_TEST(killed_at_any_moment)
{
	static const char *const beside[] = { "", ", beside pruning", ", beside pruning by two",
		                                  ", beside pruning by each of two hosts" };
	static const unsigned pruners[] = { 0, 1, 2, 2 };
	const bool two_hosts = _i == 3;
	pid_t pid[MOST_PROCESSES], pruner[2] = { 0 };
	unsigned seed = 5 + (unsigned)_i, left = processes, killed = 0, written = 0, twice = 0;
	cptx_error err = { 0 };
	uint64_t damaged;
	int status;

	if (_i > 1 && !whole)
		SKIP("CPTX_WHOLE");
	if (two_hosts && !mount_hosts()) {
		unmount_hosts();
		SKIP("bindfs, and the right to mount");
	}
	volatile unsigned *stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < processes; i++)
		pid[i] = start(i);
	fflush(NULL);
	for (unsigned i = 0; i < pruners[_i]; i++)
		if (!(pruner[i] = fork()))
			prune_now_and_then(i, stop);
	while (left) {
		const pid_t ended = waitpid(-1, &status, WNOHANG);
		if (ended <= 0) {
			nanosleep(&(struct timespec){ .tv_nsec = 1000 * (long)(500 + rand_r(&seed) % 8000) }, NULL);
			const pid_t victim = pid[(unsigned)rand_r(&seed) % processes];
			if (victim && killed < kills)
				kill(victim, SIGKILL);
			continue;
		}
		for (unsigned i = 0; i < processes; i++) {
			if (pid[i] != ended)
				continue;
			const bool was = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
			ck_assert_msg(was || status == 0, "status %x", status);
			killed += was;
			pid[i] = was ? start(i) : 0;
			left -= !was;
		}
	}
	*stop = 1;
	for (unsigned i = 0; i < pruners[_i]; i++) {
		ck_assert_int_eq(waitpid(pruner[i], &status, 0), pruner[i]);
		ck_assert_msg(status == 0, "the one that prunes ends with %x", status);
	}
	if (pruners[_i])
		ck_assert_msg(shared->turns > 0 && shared->taken_in > 1, "pruned %u times, %llu files", shared->turns,
		              (unsigned long long)shared->taken_in);
	unmount_hosts();
	munmap((void *)stop, 4096);
	memset(seen, 0, sizeof seen);
	cptx_tune *db = open_place(&err);
	ck_assert(cptx_tune_each(db, see, NULL, &damaged, &err));
	ck_assert_uint_eq(shared->failed, 0);
	ck_assert_uint_le(damaged, killed); /* at most the line that a killed one was at */
	for (unsigned me = 0; me < processes; me++) {
		unsigned found = 0;
		for (unsigned i = 0; i < records; i++)
			found += seen[me][i] != 0, twice += seen[me][i] > 1;
		/* a killed one wrote the record that it was at, or did not; all that were reported written are there */
		ck_assert_msg(found >= shared->done[me] && found <= shared->begun[me], "process %u: %u of %u, %u begun", me, found,
		              shared->done[me], shared->begun[me]);
		written += found;
	}
	ck_assert_uint_eq(twice, 0);
	printf("%u processes, %u killed%s: %u records, %llu torn lines passed over\n", processes, killed, beside[_i], written,
	       (unsigned long long)damaged);
	cptx_tune_close(db);
}
END_TEST

static unsigned marked_again, modes_set;

/* In the place of the C library's: counts the segments that are made writable. */
int fchmod(int fd, mode_t mode)
{
	char link[64], name[300];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	const ssize_t n = readlink(link, name, sizeof name);
	modes_set++;
	marked_again += mode & S_IWUSR && n > 4 && !memcmp(name + n - 4, ".seg", 4);
	return (int)syscall(SYS_fchmod, fd, mode);
}

/* One that prunes may mark a segment as soon as there is one, so its writer sets the mode before: here the umask has all
 * files begin without the right to write. */
START_TEST(a_mark_is_not_taken_back)
{
	cptx_error err = { 0 };
	cptx_tune *db = open_place(&err);
	const cptx_tune_key k = a_key(64);

	modes_set = marked_again = 0;
	put(db, &k, "x", 3, &err);
	ck_assert_uint_eq(modes_set, 0);
	cptx_tune_close(db);
	db = open_place(&err);
	const mode_t was = umask(0222);
	put(db, &k, "y", 3, &err);
	umask(was);
	ck_assert(modes_set == 1 && marked_again == 0);
	OK(err);
	ck_assert(count_records(db, NULL) == 2);
	cptx_tune_close(db);
}
END_TEST

/* ---- a disk that is full ---- */

/* Adds records until none can be written; what was written before is there, and there is room again later. */
static void fill_up(void (*make_room)(void))
{
	cptx_error err = { 0 };
	cptx_tune *db = open_place(&err);
	const cptx_tune_key k = a_key(1);
	unsigned n = 0;
	char name[32];

	do {
		snprintf(name, sizeof name, "record=%u", n);
		n += put(db, &k, name, 1, &err);
	} while (err.code == CPTX_OK && n < 100000);
	ck_assert_int_eq(err.code, CPTX_E_IO);
	ck_assert_ptr_nonnull(strstr(err.text, place));
	ck_assert_uint_gt(n, 10);
	err = (cptx_error){ 0 };
	for (int i = 0; i < 2; i++) {
		cptx_tune *other = open_place(&err);
		uint64_t damaged;
		ck_assert_uint_eq(count_records(other, &damaged), n);
		ck_assert_uint_eq(damaged, 0);
		cptx_tune_close(other);
		cptx_tune_prune(db, NULL, NULL, &err); /* which has no room for another file, and leaves all as it is */
		err = (cptx_error){ 0 };
		make_room();
	}
	put(db, &k, "later", 1, &err);
	OK(err);
	ck_assert_uint_eq(count_records(db, NULL), n + 1);
	cptx_tune_close(db);
}

static void raise_limit(void)
{
	struct rlimit l;

	getrlimit(RLIMIT_FSIZE, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_FSIZE, &l);
}

START_TEST(a_file_that_may_not_grow)
{
	struct rlimit was, l;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	l = was, l.rlim_cur = 8000;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
	fill_up(raise_limit);
	setrlimit(RLIMIT_FSIZE, &was);
}
END_TEST

static char ballast[200];
static void remove_ballast(void) { unlink(ballast); }

START_TEST(a_disk_that_is_full)
{
	char text[4096] = "";

	if (!whole)
		SKIP("CPTX_WHOLE");
	if (mkdir(place, 0700) || mount("none", place, "tmpfs", 0, "size=64k"))
		SKIP("a tmpfs (%s)", strerror(errno));
	snprintf(ballast, sizeof ballast, "%s/ballast", place);
	FILE *f = fopen(ballast, "w");
	for (int i = 0; i < 8; i++)
		fwrite(text, 1, sizeof text, f);
	fclose(f);
	fill_up(remove_ballast);
	umount(place);
}
END_TEST

/* ---- the time of a look-up ---- */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Milliseconds from opening to the answer, in a process that has done nothing before; the least of several. */
static double time_look_up(uint64_t m, size_t *found)
{
	double *ms = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), least = 1e9;
	int status;

	for (int i = 0; i < 5; i++) {
		fflush(NULL);
		const pid_t pid = fork();
		if (!pid) {
			static cptx_tune_found f[16];
			cptx_error err = { 0 };
			const cptx_tune_key k = a_key(m);
			const double begin = now_ms();
			cptx_tune *db = open_place(&err);
			const size_t n = cptx_tune_find(db, &k, CPTX_TUNE_RADIUS, f, 16, &err);
			ms[0] = now_ms() - begin, ms[1] = (double)n;
			_exit(err.code != CPTX_OK);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
		least = ms[0] < least ? ms[0] : least;
		*found = (size_t)ms[1];
	}
	munmap(ms, 4096);
	return least;
}

START_TEST(a_look_up_is_fast)
{
	const unsigned candidates = 20, problems = whole ? 5000 : 50;
	cptx_error err = { 0 };
	size_t n;

	snprintf(place, sizeof place, "/dev/shm/cptx-test-%ld", (long)getpid()); /* where writing is fast */
	cptx_tune *db = open_place(&err);
	for (unsigned i = 0; i < candidates * problems; i++) {
		char name[32];
		const cptx_tune_key k = a_key(64 + i / candidates);
		snprintf(name, sizeof name, "bm=%u", i % candidates);
		if (!put(db, &k, name, 1 + i % candidates, &err))
			break;
	}
	cptx_tune_close(db);
	const bool written = err.code == CPTX_OK;
	const double exact = written ? time_look_up(64 + problems / 2, &n) : 0;
	char command[160];
	double near = 0;
	if (written) {
		ck_assert_uint_eq(n, 16);
		near = time_look_up(64 + 2 * problems, &n);
	}
	snprintf(command, sizeof command, "rm -rf %s", place);
	ck_assert_int_eq(system(command), 0);
	if (!written)
		SKIP("a folder in /dev/shm");
	printf("%u records: a look-up in a fresh process takes %.3f ms, of none that is near %.3f ms\n", candidates * problems,
	       exact, near);
	const double most = whole ? 1 : 20; /* a sample runs under sanitizers and beside other tests, too */
	ck_assert_msg(exact < most, "%g ms", exact);
	ck_assert_msg(near < most, "%g ms", near);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tune_crowd");
	TCase *c = test_case(s, "tune_crowd");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_checked_fixture(c, before, after);
	tcase_add_loop_test(c, killed_at_any_moment, 0, 4);
	tcase_add_test(c, a_mark_is_not_taken_back);
	tcase_add_test(c, a_file_that_may_not_grow);
	tcase_add_test(c, a_disk_that_is_full);
	tcase_add_test(c, a_look_up_is_fast);
	return test_main("tune_crowd", s);
}
