/* cptx cache: what is in the cache of machine code, whether it is sound, and how to be rid of it. */
#include "compiling.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

static int path(cptx_cache *c)
{
	puts(cptx_cache_path(c));
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
	printf("%s  %9" PRIu64 "  %s  %s\n", when, item->bytes, item->name, item->damaged ? "damaged" : item->about);
	return true;
}

static int list(cptx_cache *c)
{
	cptx_cache_each(c, true, print_item, NULL);
	return EXIT_OK;
}

static int stats(cptx_cache *c)
{
	cptx_cache_stats s = cptx_cache_count(c);

	printf("folder   %s\n", *cptx_cache_path(c) ? cptx_cache_path(c) : "none");
	printf("state    %s\n", cptx_cache_can_write(c) ? "on" : cptx_cache_can_read(c) ? "only read" : "off");
	printf("entries  %" PRIu64 "\n", s.entries);
	printf("bytes    %" PRIu64 " of %" PRIu64 "\n", s.bytes, s.max_bytes);
	return EXIT_OK;
}

static int clear(cptx_cache *c)
{
	printf("%" PRIu64 " entries removed\n", cptx_cache_clear(c));
	return EXIT_OK;
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

static int verify(cptx_cache *c)
{
	tally t = { 0 };

	cptx_cache_each(c, true, count, &t);
	printf("%" PRIu64 " entries are sound, %" PRIu64 " damaged%s\n", t.sound, t.damaged,
	       t.damaged && cptx_cache_can_write(c) ? " and removed" : "");
	return t.damaged ? EXIT_FAILED : EXIT_OK;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(cptx_cache *c);
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
		cptx_cache *c = compiling_cache(cmd);
		if (!c)
			return EXIT_FAILED;
		status = verbs[i].run(c);
		cptx_cache_close(c);
		return cli_flush(cmd, status);
	}
	return cli_usage(cmd, "there is no '%s'; stats, list, path, verify or clear", verb);
}

const cli_command cmd_cache = {
	.name = "cache",
	.arguments = "[stats|list|path|verify|clear]",
	.about = "The cache of machine code: what is in it, whether it is sound, emptying it.",
	.details = "stats (the default), list (oldest first: when used, bytes, file, what it is), path,\n"
			   "verify (reads all; damaged entries are removed, and the status is 1), clear.\n"
			   "CPTX_CACHE_DIR, CPTX_CACHE_SIZE and CPTX_CACHE=0|ro say where, how much, and whether.\n",
	.operand_choices = "stats list path verify clear",
	.run = run,
};
