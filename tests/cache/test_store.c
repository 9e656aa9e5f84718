/* SPDX-License-Identifier: MIT */
/* What the cache keeps, finds, refuses and throws away. */
#define _GNU_SOURCE
#include "store.h"

#include "cache/hash.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- keys ---- */

/* Values of RFC 7693's function from another implementation (Python's hashlib). */
START_TEST(hash_is_blake2b)
{
	static const struct {
		size_t n;
		const char *want;
	} cases[] = { { 0, "cae66941d9efbd404e4d88758ea67670" },
		          { 128, "a74787004ef589e31149183900d0294a" },
		          { 129, "aaf1b0371f6d4ee49ee4fb5ddd9c49ef" } };
	static unsigned char data[100000];
	uint8_t out[HASH_BYTES];
	char hex[40] = "";
	hash s;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i % 256);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hash_init(&s);
		hash_add(&s, data, cases[i].n);
		hash_end(&s, out);
		for (size_t j = 0; j < HASH_BYTES; j++)
			snprintf(hex + 2 * j, 3, "%02x", out[j]);
		ck_assert_str_eq(hex, cases[i].want);
	}
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (unsigned char)(i % 251);
	/* In pieces of all sizes it is the same. */
	for (size_t piece = 1; piece < 400; piece += 9) {
		hash_init(&s);
		for (size_t at = 0; at < sizeof data; at += piece)
			hash_add(&s, data + at, piece < sizeof data - at ? piece : sizeof data - at);
		hash_end(&s, out);
		for (size_t j = 0; j < HASH_BYTES; j++)
			snprintf(hex + 2 * j, 3, "%02x", out[j]);
		ck_assert_str_eq(hex, "7bafffc74b44b4a80f347888022ba2ae");
	}
}
END_TEST

START_TEST(keys_know_their_parts)
{
	cptx_cache_key a = cptx_cache_key_of((cptx_cache_part[]){ { "ab", 2 }, { "c", 1 } }, 2);
	cptx_cache_key b = cptx_cache_key_of((cptx_cache_part[]){ { "a", 1 }, { "bc", 2 } }, 2);
	cptx_cache_key c = cptx_cache_key_of((cptx_cache_part[]){ { "ab", 2 }, { "c", 1 } }, 2);

	ck_assert(memcmp(&a, &b, sizeof a) != 0);
	ck_assert(memcmp(&a, &c, sizeof a) == 0);
}
END_TEST

/* ---- entries ---- */

START_TEST(what_is_put_is_found)
{
	static const size_t sizes[] = { 0, 1, 127, 128, 129, 4096, 3000000 };
	cptx_cache *c = open_cache();

	ck_assert_str_eq(cptx_cache_path(c), place);
	for (unsigned i = 0; i < 7; i++) {
		ck_assert(!has(c, i, sizes[i]));
		ck_assert(put(c, i, sizes[i]));
		ck_assert(has(c, i, sizes[i]));
	}
	cptx_cache_close(c);
	c = open_cache(); /* as another process */
	for (unsigned i = 0; i < 7; i++)
		ck_assert(has(c, i, sizes[i]));
	cptx_cache_stats s = cptx_cache_count(c);
	ck_assert_uint_eq(s.entries, 7);
	ck_assert_uint_eq(s.hits, 7);
	ck_assert_uint_eq(s.misses, 0);
	ck_assert(put(c, 0, 50)); /* over what is there */
	ck_assert(has(c, 0, 50));
	ck_assert_uint_eq(cptx_cache_count(c).entries, 7);
	ck_assert_uint_eq(cptx_cache_clear(c), 7);
	ck_assert(!has(c, 3, sizes[3]));
	ck_assert_uint_eq(folder_files("tmp", NULL), 0);
	cptx_cache_close(c);
	ck_assert_uint_eq(warnings, 0);
}
END_TEST

static char *slurp(const char *path, size_t *n)
{
	static char text[1 << 16];
	FILE *f = fopen(path, "rb");

	ck_assert_ptr_nonnull(f);
	*n = fread(text, 1, sizeof text, f);
	fclose(f);
	return text;
}

static void spill(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

/* Every bit of an entry, every shorter file and a longer one: found, never served, and taken away. */
START_TEST(damage_is_found)
{
	cptx_cache *c = open_cache();
	char path[512];
	size_t n, tries = 0;

	ck_assert(put(c, 1, 100));
	ck_assert_uint_eq(folder_files("", path), 2); /* and the lock */
	if (strstr(path, "lock"))
		snprintf(path, sizeof path, "%s", place);
	DIR *d = opendir(place);
	for (struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".entry"))
			snprintf(path, sizeof path, "%s/%s", place, e->d_name);
	closedir(d);
	char *text = slurp(path, &n);
	ck_assert_uint_gt(n, 180);
	for (size_t bit = 0; bit < 8 * n; bit++, tries++) {
		text[bit / 8] ^= (char)(1 << bit % 8);
		spill(path, text, n);
		ck_assert_msg(!has(c, 1, 100), "bit %zu", bit);
		ck_assert_msg(access(path, F_OK) != 0, "bit %zu: still there", bit);
		text[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (size_t m = 0; m < n; m++, tries++) {
		spill(path, text, m);
		ck_assert_msg(!has(c, 1, 100), "cut to %zu", m);
	}
	memset(text + n, 0, 8);
	spill(path, text, n + 8);
	ck_assert(!has(c, 1, 100));
	ck_assert_uint_eq(cptx_cache_count(c).damaged, tries + 1);
	spill(path, text, n);
	ck_assert(has(c, 1, 100));
	/* The right file under another name. */
	char other[512];
	snprintf(other, sizeof other, "%s/%032d.entry", place, 7);
	spill(other, text, n);
	bool damaged[2] = { false, false };
	(void)damaged;
	cptx_cache_close(c);
}
END_TEST

typedef struct tally {
	unsigned all, damaged, stop;
} tally;

static bool count(void *user, const cptx_cache_item *item)
{
	tally *t = user;
	t->all++;
	t->damaged += item->damaged;
	ck_assert_str_eq(item->about, item->damaged ? "" : "kernel");
	return t->all != t->stop;
}

START_TEST(each_and_verify)
{
	cptx_cache *c = open_cache();
	tally t = { 0 };
	char path[512];

	for (unsigned i = 0; i < 5; i++)
		ck_assert(put(c, i, 1000));
	snprintf(path, sizeof path, "%s/%032d.entry", place, 7);
	spill(path, "no entry", 8);
	for (int turn = 0; turn < 3; turn++) { /* looking changes nothing */
		t = (tally){ 0 };
		ck_assert(cptx_cache_each(c, turn == 2, count, &t));
		ck_assert_uint_eq(t.all, 6);
		ck_assert_uint_eq(t.damaged, 1);
	}
	t = (tally){ .stop = 2 };
	ck_assert(cptx_cache_each(c, true, count, &t));
	ck_assert_uint_eq(t.all, 2);
	t = (tally){ 0 };
	ck_assert(cptx_cache_each(c, true, count, &t));
	ck_assert_uint_eq(t.all, 5);
	ck_assert_uint_eq(t.damaged, 0);
	cptx_cache_close(c);
}
END_TEST

/* ---- the bound ---- */

START_TEST(the_least_lately_used_goes)
{
	cptx_cache *c = open_with((cptx_cache_opt){ .max_bytes = 100000 });

	ck_assert(!put(c, 99, 60000)); /* more than half of all is not kept */
	char *log = calloc(1, 60001);  /* nor with its log */
	memset(log, 'x', 60000);
	cptx_cache_key key = key_of(98);
	ck_assert(!cptx_cache_put(c, &key, &(cptx_cache_entry){ .data = log, .size = 1, .log = log }));
	log[30000] = 0;
	for (unsigned i = 0; i < 20; i++) {
		key = key_of(100 + i);
		ck_assert(cptx_cache_put(c, &key, &(cptx_cache_entry){ .data = log, .size = 1, .log = log }));
		ck_assert_uint_le(cptx_cache_count(c).bytes, 100000);
	}
	free(log);
	cptx_cache_clear(c);
	for (unsigned i = 0; i < 9; i++) {
		ck_assert(put(c, i, 10000));
		usleep(20000);
	}
	ck_assert(has(c, 0, 10000)); /* used again: now 1 is the oldest */
	usleep(20000);
	ck_assert(put(c, 9, 10000));
	ck_assert_uint_le(cptx_cache_count(c).bytes, 100000);
	ck_assert(has(c, 0, 10000));
	ck_assert(has(c, 9, 10000));
	ck_assert(has(c, 8, 10000));
	ck_assert(!has(c, 1, 10000));
	for (unsigned i = 10; i < 60; i++) {
		ck_assert(put(c, i, 10000));
		ck_assert_uint_le(cptx_cache_count(c).bytes, 100000);
	}
	ck_assert(has(c, 59, 10000));
	cptx_cache_close(c);
}
END_TEST

/* A file that a killed writer left goes; that of a living one stays. */
START_TEST(abandoned_files_go)
{
	char dead[512], living[512];
	cptx_cache *c = open_cache();

	snprintf(dead, sizeof dead, "%s/tmp-1-1", place);
	snprintf(living, sizeof living, "%s/tmp-1-2", place);
	spill(dead, "half an ent", 11);
	spill(living, "half", 4);
	int fd = open(living, O_RDWR);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	ck_assert(put(c, 1, 100));
	ck_assert(access(dead, F_OK) != 0);
	ck_assert(access(living, F_OK) == 0);
	close(fd);
	cptx_cache_close(c);
	c = open_cache();
	ck_assert(put(c, 2, 100));
	ck_assert(access(living, F_OK) != 0);
	cptx_cache_close(c);
}
END_TEST

/* ---- where nothing can be written ---- */

START_TEST(only_read)
{
	char path[512];
	cptx_cache *c = open_cache();

	ck_assert(put(c, 1, 100));
	cptx_cache_close(c);
	c = open_with((cptx_cache_opt){ .read_only = true });
	ck_assert(has(c, 1, 100));
	ck_assert(!put(c, 2, 100));
	ck_assert(!cptx_cache_can_write(c));
	ck_assert_uint_eq(cptx_cache_clear(c), 0);
	/* Damage is not served, and stays for whoever may write. */
	snprintf(path, sizeof path, "%s/%032d.entry", place, 7);
	spill(path, "no entry", 8);
	tally t = { 0 };
	ck_assert(cptx_cache_each(c, true, count, &t));
	ck_assert_uint_eq(t.damaged, 1);
	ck_assert(access(path, F_OK) == 0);
	cptx_cache_close(c);
	snprintf(path, sizeof path, "%s/nothing", folder);
	c = open_with((cptx_cache_opt){ .read_only = true, .path = path });
	ck_assert(!has(c, 1, 100));
	ck_assert(access(path, F_OK) != 0);
	cptx_cache_close(c);
	ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* In a child, as what is done to it cannot be undone: 0 for success. */
static int in_child(int (*run)(void))
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(run());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* Nothing that Check would report from a child: each step is a number. */
static int store_twice_and_read(const char *word)
{
	cptx_cache *c = cptx_cache_open(&(cptx_cache_opt){ .path = place, .warn = hear }, &err);

	if (!c)
		return 1;
	if (put(c, 2, 40000) || put(c, 3, 40000))
		return 2;
	if (!has(c, 1, 100)) /* what was there is still served */
		return 3;
	if (warnings != 1 || !strstr(warned, word)) {
		fprintf(stderr, "%u warnings: %s\n", warnings, warned);
		return 4;
	}
	if (folder_files("tmp", NULL))
		return 5;
	cptx_cache_close(c);
	return 0;
}

static int file_too_large(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 20000, 20000 }))
		return 10;
	return store_twice_and_read("nothing more is stored");
}

static int as_nobody(void)
{
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		return 10;
	return store_twice_and_read("is only read");
}

static int no_folder(void)
{
	if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
		return 10;
	char below[160];
	snprintf(below, sizeof below, "%s/below", place);
	cptx_cache_close(cptx_cache_open(&(cptx_cache_opt){ .path = below, .warn = hear }, &err));
	if (warnings != 1 || !strstr(warned, "Permission denied"))
		return 2;
	warnings = 0;
	strcpy(place, "/proc/no/such/place");
	cptx_cache *c = cptx_cache_open(&(cptx_cache_opt){ .path = place, .warn = hear }, &err);
	bool wrong = !c || put(c, 1, 100) || put(c, 2, 100) || has(c, 1, 100) || warnings != 1 || cptx_cache_clear(c);
	cptx_cache_close(c);
	return wrong;
}

enum { CANNOT = 77 };

static int disk_full(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mkdir(place, 0700) ||
	    mount("tmpfs", place, "tmpfs", 0, "size=32k,mode=700"))
		return CANNOT;
	cptx_cache *c = cptx_cache_open(&(cptx_cache_opt){ .path = place, .warn = hear }, &err);
	if (!put(c, 1, 100) || warnings)
		return 9;
	cptx_cache_close(c);
	return store_twice_and_read("No space left on device");
}

START_TEST(a_bound_on_files)
{
	cptx_cache *c = open_cache();
	ck_assert(put(c, 1, 100));
	cptx_cache_close(c);
	ck_assert_int_eq(in_child(file_too_large), 0);
}
END_TEST

START_TEST(a_folder_that_may_not_be_written)
{
	cptx_cache *c = open_cache();
	ck_assert(put(c, 1, 100));
	cptx_cache_close(c);
	chmod(folder, 0755);
	chmod(place, 0555);
	char command[256];
	snprintf(command, sizeof command, "chmod 0444 %s/*", place);
	ck_assert_int_eq(system(command), 0);
	ck_assert_int_eq(in_child(as_nobody), 0);
	ck_assert_int_eq(in_child(no_folder), 0);
}
END_TEST

START_TEST(a_full_disk)
{
	int status = in_child(disk_full);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
		SKIP("no small disk can be mounted here (it needs root); a_bound_on_files stands for it");
	ck_assert_int_eq(status, 0);
}
END_TEST

/* Too many open files is a thing of a moment. */
static int no_more_files(void)
{
	cptx_cache *c = open_cache();
	struct rlimit usual, few = { 0 };
	int fd = dup(0);

	close(fd);
	getrlimit(RLIMIT_NOFILE, &usual);
	few = (struct rlimit){ (rlim_t)fd, usual.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	bool stored = put(c, 1, 10);
	setrlimit(RLIMIT_NOFILE, &usual);
	bool wrong = stored || !put(c, 1, 10) || !has(c, 1, 10) || warnings;
	cptx_cache_close(c);
	return wrong;
}

START_TEST(a_bound_on_open_files) { ck_assert_int_eq(in_child(no_more_files), 0); }
END_TEST

/* ---- the environment ---- */

START_TEST(where_it_is)
{
	char want[256];

	setenv("HOME", folder, 1);
	cptx_cache *c = cptx_cache_open(NULL, &err);
	snprintf(want, sizeof want, "%s/.cache/cptx", folder);
	ck_assert_str_eq(cptx_cache_path(c), want);
	ck_assert(cptx_cache_can_write(c));
	cptx_cache_close(c);
	snprintf(want, sizeof want, "%s/xdg", folder);
	setenv("XDG_CACHE_HOME", want, 1);
	strcat(want, "/cptx");
	c = cptx_cache_open(NULL, &err);
	ck_assert_str_eq(cptx_cache_path(c), want);
	ck_assert(put(c, 1, 10));
	cptx_cache_close(c);
	setenv("CPTX_CACHE_DIR", place, 1);
	setenv("CPTX_CACHE_SIZE", "3M", 1);
	c = cptx_cache_open(NULL, &err);
	ck_assert_str_eq(cptx_cache_path(c), place);
	ck_assert_uint_eq(cptx_cache_count(c).max_bytes, 3 << 20);
	ck_assert(put(c, 1, 10));
	cptx_cache_close(c);
	setenv("CPTX_CACHE", "ro", 1);
	c = cptx_cache_open(NULL, &err);
	ck_assert(has(c, 1, 10));
	ck_assert(!put(c, 2, 10));
	cptx_cache_close(c);
	setenv("CPTX_CACHE", "0", 1);
	c = cptx_cache_open(NULL, &err);
	ck_assert(!has(c, 1, 10));
	ck_assert(!cptx_cache_can_read(c));
	cptx_cache_close(c);
	setenv("CPTX_CACHE", "maybe", 1);
	ck_assert_ptr_null(cptx_cache_open(NULL, &err));
	FAILS(err, CPTX_E_ARG, "it may be 0 (off)");
	unsetenv("CPTX_CACHE");
	static const char *const bad[] = { "0", "-1", "5X", "5KB", "99999999999999999999", "99999999T", " 5" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		setenv("CPTX_CACHE_SIZE", bad[i], 1);
		ck_assert_ptr_null(cptx_cache_open(NULL, &err));
		FAILS(err, CPTX_E_ARG, "a number of bytes");
	}
	unsetenv("CPTX_CACHE_SIZE");
	unsetenv("CPTX_CACHE_DIR");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	c = open_with((cptx_cache_opt){ .path = NULL });
	cptx_cache_close(c);
	c = cptx_cache_open(&(cptx_cache_opt){ .warn = hear }, &err);
	OK(err);
	ck_assert(!put(c, 1, 10));
	ck_assert_uint_eq(warnings, 1);
	cptx_cache_close(c);
}
END_TEST

START_TEST(nobody_at_all)
{
	cptx_cache_key key = key_of(1);
	cptx_cache_entry e;

	ck_assert(!cptx_cache_get(NULL, &key, &e));
	ck_assert(!cptx_cache_put(NULL, &key, &e));
	ck_assert(!cptx_cache_each(NULL, false, count, NULL));
	ck_assert_uint_eq(cptx_cache_clear(NULL), 0);
	ck_assert_uint_eq(cptx_cache_count(NULL).entries, 0);
	ck_assert_str_eq(cptx_cache_path(NULL), "");
	cptx_cache_close(NULL);
	err.code = CPTX_E_ARG;
	ck_assert_ptr_null(cptx_cache_open(NULL, &err));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { hash_is_blake2b,      keys_know_their_parts,
		                           what_is_put_is_found, damage_is_found,
		                           each_and_verify,      the_least_lately_used_goes,
		                           abandoned_files_go,   only_read,
		                           a_bound_on_files,     a_folder_that_may_not_be_written,
		                           a_full_disk,          a_bound_on_open_files,
		                           where_it_is,          nobody_at_all };
	return harness_run("store", tests, sizeof tests / sizeof *tests, before, after);
}
