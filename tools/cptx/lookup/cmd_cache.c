/* SPDX-License-Identifier: MIT */
/* cptx cache: what is in the cache of machine code, whether it is sound, and how to be rid of it. */
#include "cli/compiling.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct request {
	const cli_command *cmd;
	cptx_cache *cache;
} request;

static bool is_off(void) { return getenv("CPTX_CACHE") && !strcmp(getenv("CPTX_CACHE"), "0"); }

/* Where there is no cache to list: the environment wants it so, or something is wrong. */
static int nothing(const request *r)
{
	const char *path = cptx_cache_path(r->cache);

	if (is_off())
		return cli_failed(r->cmd, "the cache is off: CPTX_CACHE is 0");
	return cli_failed(r->cmd, *path ? "there is no cache in '%s' that can be read" : "there is no folder for a cache%s",
	                  path);
}

static int path(const request *r)
{
	if (!*cptx_cache_path(r->cache))
		return nothing(r);
	puts(cptx_cache_path(r->cache));
	return EXIT_OK;
}

static bool print_item(void *user, const cptx_cache_item *item)
{
	time_t used = (time_t)item->used;
	struct tm tm;
	char when[32] = "?";

	(void)user;
	if (localtime_r(&used, &tm))
		strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s  %9" PRIu64 "  %s  ", when, item->bytes, item->name);
	for (const char *p = item->damaged ? "damaged" : item->about; *p; p++) /* names of files may have anything in them */
		putchar((unsigned char)*p < ' ' || *p == 127 ? '?' : *p);
	putchar('\n');
	return true;
}

static int list(const request *r) { return cptx_cache_each(r->cache, false, print_item, NULL) ? EXIT_OK : nothing(r); }

static int stats(const request *r)
{
	cptx_cache *c = r->cache;
	cptx_cache_stats s = cptx_cache_count(c);

	printf("folder   %s\n", *cptx_cache_path(c) ? cptx_cache_path(c) : "none");
	printf("state    %s\n", cptx_cache_can_write(c) ? "on" : cptx_cache_can_read(c) ? "only read" : "off");
	printf("entries  %" PRIu64 "\n", s.entries);
	printf("bytes    %" PRIu64 " of %" PRIu64 "\n", s.bytes, s.max_bytes);
	return is_off() || cptx_cache_can_read(c) ? EXIT_OK : nothing(r);
}

static int clear(const request *r)
{
	if (!cptx_cache_can_read(r->cache))
		return nothing(r);
	if (!cptx_cache_can_write(r->cache))
		return cli_failed(r->cmd, "nothing is removed: the cache in '%s' is only read", cptx_cache_path(r->cache));
	uint64_t before = cptx_cache_count(r->cache).entries, gone = cptx_cache_clear(r->cache);
	printf("%" PRIu64 " entries removed\n", gone);
	uint64_t left = gone < before ? cptx_cache_count(r->cache).entries : 0;
	return left ? cli_failed(r->cmd, "%" PRIu64 " entries cannot be removed", left) : EXIT_OK;
}

typedef struct tally {
	uint64_t sound, damaged;
} tally;

static bool count(void *user, const cptx_cache_item *item)
{
	tally *t = user;

	t->sound += !item->damaged;
	t->damaged += item->damaged;
	if (item->damaged)
		printf("damaged: %s\n", item->name);
	return true;
}

static int verify(const request *r)
{
	tally t = { 0 };

	if (!cptx_cache_each(r->cache, true, count, &t))
		return nothing(r);
	printf("%" PRIu64 " entries are sound, %" PRIu64 " damaged%s\n", t.sound, t.damaged,
	       t.damaged && cptx_cache_can_write(r->cache) ? " and removed" : "");
	return t.damaged ? EXIT_FAILED : EXIT_OK;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(const request *r);
	} verbs[] = { { "stats", stats }, { "list", list }, { "path", path }, { "verify", verify }, { "clear", clear } };
	const char *value;
	int status = EXIT_OK;

	if (cli_next(cmd, argc, argv, &value, &status) == -2)
		return status;
	if (argc - optind > 1)
		return cli_usage(cmd, "one thing at a time: %s", argv[optind + 1]);
	const char *verb = optind < argc ? argv[optind] : "stats";
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		if (strcmp(verbs[i].name, verb))
			continue;
		request r = { cmd, compiling_cache(cmd) };
		if (!r.cache)
			return EXIT_FAILED;
		status = verbs[i].run(&r);
		cptx_cache_close(r.cache);
		return cli_flush(cmd, status);
	}
	return cli_usage(cmd, "there is no '%s'; stats, list, path, verify or clear", verb);
}

const cli_command cmd_cache = {
	.name = "cache",
	.arguments = "[stats|list|path|verify|clear]",
	.about = "The cache of machine code: what is in it, whether it is sound, emptying it.",
	.details = "stats (the default), list (oldest first: when used, bytes, file, what it is), path,\n"
			   "verify (damaged entries are removed, and the status is 1), clear.\n"
			   "CPTX_CACHE_DIR, CPTX_CACHE_SIZE and CPTX_CACHE=0|ro say where, how much, and whether.\n",
	.operand_choices = "stats list path verify clear",
	.run = run,
};
