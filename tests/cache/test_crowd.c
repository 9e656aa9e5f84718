/* SPDX-License-Identifier: MIT */
/*
 * Many processes that compile the same kernels into one cache, smaller than all of them together, and are killed at any
 * moment. CPTX_CACHE_CROWD=1: 64 processes, 1000 loads of 50 kernels each (minutes); else a small crowd.
 */
#include "folder.h"

#include <cptx/compile.h>

#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST_KERNELS = 50, MOST_PROCESSES = 64 };

static unsigned kernels = 8, processes = 6, loads = 400;
static unsigned most_kills = 25; /* so that it ends soon on a busy machine too */
static char text[MOST_KERNELS][8192];
static size_t wanted[MOST_KERNELS];
static void *want[MOST_KERNELS];

/* What children tell: plain counts in shared memory. */
static struct shared {
	volatile unsigned done[MOST_PROCESSES], wrong, hits;
} * shared;

static void before(void)
{
	folder_make();
	if (getenv("CPTX_CACHE_CROWD"))
		kernels = 50, processes = 64, loads = 1000, most_kills = UINT32_MAX;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
}

static void after(void)
{
	munmap(shared, sizeof *shared);
	folder_remove();
}

static cptx_cubin *load(cptx_cache *cache, unsigned k, cptx_error *err)
{
	return cptx_compile(text[k], strlen(text[k]), &(cptx_compile_opt){ .cache = cache }, err);
}

static void write_kernels(void)
{
	for (unsigned k = 0; k < kernels; k++) {
		int n = snprintf(
			text[k], sizeof text[k],
			".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k%u(.param .u64 p)\n{\n\t.reg .b32 %%r<4>;\n"
			"\t.reg .b64 %%rd<4>;\n\tld.param.u64 %%rd1, [p];\n\tld.global.u32 %%r1, [%%rd1];\n",
			k);
		for (unsigned i = 0; i < 10 + k; i++)
			n += snprintf(text[k] + n, sizeof text[k] - (size_t)n, "\tmad.lo.u32 %%r1, %%r1, %%r1, %u;\n", k * 1000 + i);
		snprintf(text[k] + n, sizeof text[k] - (size_t)n, "\tst.global.u32 [%%rd1], %%r1;\n\tret;\n}\n");
	}
}

/* Goes on where a killed one stopped. */
static void child(unsigned me, uint64_t bound)
{
	cptx_cache *cache = cptx_cache_open(&(cptx_cache_opt){ .path = place, .max_bytes = bound }, NULL);
	unsigned seed = me * 7919 + (unsigned)getpid();

	while (shared->done[me] < loads) {
		cptx_error err = { 0 };
		unsigned k = (unsigned)rand_r(&seed) % kernels;
		cptx_cubin *c = load(cache, k, &err);
		if (!c || cptx_cubin_size(c) != wanted[k] || memcmp(cptx_cubin_data(c), want[k], wanted[k]))
			__atomic_fetch_add(&shared->wrong, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&shared->hits, cptx_cubin_cached(c), __ATOMIC_SEQ_CST);
		cptx_cubin_destroy(c);
		shared->done[me]++;
	}
	_exit(0);
}

static pid_t start(unsigned me, uint64_t bound)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		child(me, bound);
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void no_lock_left(void)
{
	char path[160];

	snprintf(path, sizeof path, "%s/lock", place);
	int fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

static bool sound(void *user, const cptx_cache_item *item)
{
	++*(unsigned *)user;
	ck_assert_msg(!item->damaged, "%s is damaged", item->name);
	return true;
}

static unsigned crowd(uint64_t bound)
{
	pid_t pid[MOST_PROCESSES];
	unsigned seed = 1, left = processes, kills = 0;

	memset((void *)shared, 0, sizeof *shared);
	for (unsigned i = 0; i < processes; i++)
		pid[i] = start(i, bound);
	while (left) {
		int status;
		pid_t ended = waitpid(-1, &status, WNOHANG);
		if (ended <= 0) {
			struct timespec nap = { .tv_nsec = 1000 * (long)(4000 + rand_r(&seed) % 60000) };
			nanosleep(&nap, NULL);
			pid_t victim = pid[(unsigned)rand_r(&seed) % processes];
			if (victim && kills < most_kills)
				kill(victim, SIGKILL);
			continue;
		}
		for (unsigned i = 0; i < processes; i++) {
			if (pid[i] != ended)
				continue;
			bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
			ck_assert_msg(killed || status == 0, "status %x", status);
			kills += killed;
			pid[i] = killed ? start(i, bound) : 0;
			left -= !killed;
		}
	}
	return kills;
}

START_TEST(killed_at_any_moment)
{
	cptx_error err = { 0 };
	char about[512];
	unsigned found = 0;
	uint64_t all = 0;

	if (!cptx_compiler_find(CPTX_COMPILER_AUTO, about, sizeof about))
		SKIP("%s", about);
	write_kernels();
	for (unsigned k = 0; k < kernels; k++) {
		cptx_cubin *c = load(NULL, k, &err);
		OK(err);
		wanted[k] = cptx_cubin_size(c);
		all += wanted[k];
		want[k] = malloc(wanted[k]);
		memcpy(want[k], cptx_cubin_data(c), wanted[k]);
		cptx_cubin_destroy(c);
	}
	unsigned usual = loads;
	loads = _i ? usual / 10 : usual; /* compiling takes its time */
	unsigned kills = 0;
	while (!kills)                   /* all may have ended before the first one was killed */
		kills = crowd(_i ? all : 0); /* with its overhead, all does not fit: something always has to go */
	ck_assert_uint_eq(shared->wrong, 0);
	ck_assert_uint_gt(shared->hits, processes * loads / 4);
	no_lock_left();
	cptx_cache *c = cptx_cache_open(&(cptx_cache_opt){ .path = place }, &err);
	ck_assert(cptx_cache_each(c, true, sound, &found));
	ck_assert_uint_gt(found, 0);
	printf("%u processes, %u loads each of %u kernels, %u killed; %u of %u loads out of the cache; %u entries, %u abandoned "
	       "files\n",
	       processes, loads, kernels, kills, shared->hits, processes * loads, found, folder_files("tmp", NULL));
	/* The next store takes away what killed writers left. */
	cptx_cache_key key = { { 1 } };
	ck_assert(cptx_cache_put(c, &key, &(cptx_cache_entry){ .data = about, .size = 1 }));
	ck_assert_uint_eq(folder_files("tmp", NULL), 0);
	cptx_cache_close(c);
	for (unsigned k = 0; k < kernels; k++)
		free(want[k]);
	loads = usual;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("crowd");
	TCase *c = tcase_create("crowd");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 3600);
	tcase_add_checked_fixture(c, before, after);
	tcase_add_loop_test(c, killed_at_any_moment, 0, 2);
	suite_add_tcase(s, c);
	return test_main("crowd", s);
}
