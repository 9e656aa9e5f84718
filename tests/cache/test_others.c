/* SPDX-License-Identifier: MIT */
/* What others may put into a cache's folder, and whose folder is used. */
#define _GNU_SOURCE
#include "store.h"

#include <sys/socket.h>
#include <sys/un.h>

static void entry_path(unsigned n, char path[512])
{
	cptx_cache_key key = key_of(n);
	size_t at = (size_t)snprintf(path, 512, "%s/", place);

	for (size_t i = 0; i < sizeof key.bytes; i++)
		at += (size_t)snprintf(path + at, 512 - at, "%02x", key.bytes[i]);
	snprintf(path + at, 512 - at, ".entry");
}

enum { AS_PIPE, AS_FOLDER, AS_LINK, AS_SOCKET, AS_FULL_FOLDER, WAYS_TO_STAND };

static void stand_there(int way, const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char inside[600];
	int s;

	switch (way) {
	case AS_PIPE: ck_assert_int_eq(mkfifo(path, 0600), 0); break;
	case AS_FOLDER: ck_assert_int_eq(mkdir(path, 0700), 0); break;
	case AS_LINK: ck_assert_int_eq(symlink("/dev/zero", path), 0); break;
	case AS_SOCKET:
		s = socket(AF_UNIX, SOCK_STREAM, 0);
		SURE(strlen(path) < sizeof to.sun_path, "%s", path);
		memcpy(to.sun_path, path, strlen(path));
		ck_assert_int_eq(bind(s, (struct sockaddr *)&to, sizeof to), 0);
		close(s);
		break;
	default:
		ck_assert_int_eq(mkdir(path, 0700), 0);
		snprintf(inside, sizeof inside, "%s/kept", path);
		ck_assert_int_eq(mkdir(inside, 0700), 0);
	}
}

/* In the place of an entry: not waited for, counted as damaged, and taken away by storing, verifying and clearing. */
static void stands_there(int way)
{
	char path[512], lock[128];
	struct stat s;

	for (int how = 0; how < 4; how++) { /* getting, storing, verifying, clearing */
		cptx_cache *c = open_cache();
		entry_path(7, path);
		stand_there(way, path);
		if (how == 0)
			ck_assert(!has(c, 7, 100));
		if (how < 2)
			ck_assert_int_eq(put(c, 7, 100), way != AS_FULL_FOLDER);
		if (how < 2)
			ck_assert_int_eq(has(c, 7, 100), way != AS_FULL_FOLDER);
		ck_assert(put(c, 8, 100) && has(c, 8, 100)); /* others are stored as before */
		if (how == 2)
			ck_assert(cptx_cache_each(c, true, item_is_listed, NULL));
		if (how == 3)
			ck_assert_uint_ge(cptx_cache_clear(c), way == AS_FULL_FOLDER ? 1 : 2);
		if (how >= 2)
			ck_assert_int_eq(lstat(path, &s) == 0, way == AS_FULL_FOLDER);
		cptx_cache_close(c);
		snprintf(lock, sizeof lock, "rm -rf %s", place);
		ck_assert_int_eq(system(lock), 0);
	}
	/* the lock of the sweep */
	ck_assert_int_eq(mkdir(place, 0700), 0);
	snprintf(lock, sizeof lock, "%s/lock", place);
	if (way != AS_FULL_FOLDER)
		stand_there(way, lock);
	cptx_cache *c = open_with((cptx_cache_opt){ .max_bytes = 8000 });
	for (unsigned n = 0; n < 30; n++)
		put(c, n, 1000);
	ck_assert_uint_le(cptx_cache_count(c).bytes, 8000);
	cptx_cache_close(c);
	snprintf(lock, sizeof lock, "rm -rf %s", place);
	ck_assert_int_eq(system(lock), 0);
}

START_TEST(what_is_no_file)
{
	for (int way = 0; way < WAYS_TO_STAND; way++)
		stands_there(way);
}
END_TEST

/* Machine code is run, so nobody else may put it there. */
START_TEST(whose_folder_it_is)
{
	static const struct {
		mode_t mode;
		bool used;
		const char *message;
	} cases[] = { { 0700, true, NULL },
		          { 0755, true, NULL },
		          { 0770, true, "all of group" },
		          { 0777, false, "all users may write" },
		          { 01777, false, "all users may write" },
		          { 0702, false, "all users may write" } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		mkdir(place, 0700);
		ck_assert_int_eq(chmod(place, cases[i].mode), 0);
		warnings = 0;
		cptx_cache *c = open_cache();
		SURE(cptx_cache_can_read(c) == cases[i].used && cptx_cache_can_write(c) == cases[i].used, "%o",
		     (unsigned)cases[i].mode);
		SURE(put(c, 1, 10) == cases[i].used, "%o", (unsigned)cases[i].mode);
		ck_assert_int_eq(warnings, cases[i].message != NULL);
		if (cases[i].message)
			SURE(strstr(warned, cases[i].message) && strstr(warned, place), "%s", warned);
		cptx_cache_close(c);
	}
	if (geteuid()) /* only root can give a folder away */
		return;
	ck_assert_int_eq(chmod(place, 0755), 0);
	ck_assert_int_eq(chown(place, 12345, 12345), 0);
	warnings = 0;
	cptx_cache *c = open_cache();
	ck_assert(!cptx_cache_can_read(c) && warnings == 1);
	SURE(strstr(warned, "belongs to another user (12345)"), "%s", warned);
	cptx_cache_close(c);
	ck_assert_int_eq(chown(place, 0, 0), 0);
	c = open_cache();
	ck_assert(put(c, 5, 10));
	char path[512];
	entry_path(5, path);
	ck_assert_int_eq(chown(path, 12345, 12345), 0);
	ck_assert(!has(c, 5, 10)); /* it was put there while others might */
	cptx_cache_close(c);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { what_is_no_file, whose_folder_it_is };
	return harness_run("others", tests, sizeof tests / sizeof *tests, before, after);
}
