/* SPDX-License-Identifier: MIT */
/*
 * One row of an instruction that has many is taken out of the table, a modifier added to one, the targets of one made newer,
 * as anybody might by mistake: the test of expected.txt, built with that table, must see it.  Rows are drawn by
 * CPTX_TABLE_SEED.
 */
#include "test.h"

#include <stdbool.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOST = 3, MOST_ROWS = 2000, COMMAND = 8192 };

typedef struct row {
	char file[256], op[64];
	size_t from, to; /* of the file's text */
} row;

static row rows[MOST_ROWS];
static unsigned nrow;
static char dir[] = "/tmp/cptx_lost_XXXXXX";
static const char *cc, *source, *build, *flags;

static char *read_file(const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "rb");

	ck_assert_msg(f && !fstat(fileno(f), &st), "%s", path);
	char *text = calloc(1, (size_t)st.st_size + 1);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(fread(text, 1, (size_t)st.st_size, f), (size_t)st.st_size);
	fclose(f);
	return text;
}

/* Behind the parenthesis that closes the one at p; those in strings do not count. */
static const char *close_of(const char *p)
{
	int depth = 0;

	for (bool quoted = false; *p; p++) {
		if (*p == '"' && p[-1] != '\\')
			quoted = !quoted;
		depth += !quoted && *p == '(' ? 1 : !quoted && *p == ')' ? -1 : 0;
		if (!depth)
			return p + 1;
	}
	return p;
}

/* The rows of a file. */
static void list_rows(const char *file)
{
	char path[512];
	snprintf(path, sizeof path, "%s/src/arch/insn/%s", source, file);
	char *text = read_file(path);

	for (const char *p = text; (p = strstr(p, "\nINSN(")) && nrow < MOST_ROWS;) {
		row *r = &rows[nrow++];
		snprintf(r->file, sizeof r->file, "%s", file);
		snprintf(r->op, sizeof r->op, "%.*s", (int)strcspn(p + 6, ","), p + 6);
		r->from = (size_t)(p + 1 - text);
		p = close_of(p + 5);
		r->to = (size_t)(p - text);
	}
	free(text);
}

static unsigned rows_of(const row *r)
{
	unsigned n = 0;
	for (unsigned i = 0; i < nrow; i++)
		n += !strcmp(rows[i].op, r->op) && !strcmp(rows[i].file, r->file);
	return n;
}

/* The exit status of a shell command; what it says goes to the file `said` in dir. */
static int run(const char *format, ...)
{
	char command[COMMAND];
	va_list ap;
	int n = snprintf(command, sizeof command, "cd '%s' && { ", dir);

	va_start(ap, format);
	n += vsnprintf(command + n, sizeof command - (size_t)n, format, ap);
	va_end(ap);
	ck_assert_int_lt(n + 16, COMMAND);
	strcat(command, "; } >said 2>&1");
	int status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *message(void)
{
	static char text[1024];
	char path[64];
	snprintf(path, sizeof path, "%s/said", dir);
	FILE *f = fopen(path, "rb");
	text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
	if (f)
		fclose(f);
	return text;
}

/* The table of the sources with the files of dir in their place, in a program that compares it with expected.txt. */
static void link_table(void)
{
	ck_assert_msg(!run("%s %s -D_DEFAULT_SOURCE -I. -I'%s/src' -o gen '%s'/tools/gen_insn/*.c && ./gen table insn_table.inc",
	                   cc, flags, source, source),
	              "%s", message());
	ck_assert_msg(!run("%s %s -std=c11 -D_DEFAULT_SOURCE -I. -I'%s/src' -I'%s/include' -I'%s/include' -o expected "
	                   "'%s/src/arch/table.c' *.o '%s/tests/table/libcptx_table.a' $(pkg-config --static --libs check) -lm "
	                   "-ldl -lpthread",
	                   cc, flags, source, source, build, source, build),
	              "%s", message());
}

enum mistake { ROW_LOST, MODIFIER_ADDED, TARGETS_RAISED, NMISTAKES };
static const char *const mistake_names[NMISTAKES] = { "without", "with a modifier more in", "for newer targets only in" };

/* Where the row is to be changed, and instead of how many characters comes what; NULL: the mistake cannot be made there. */
static const char *change_of(enum mistake mistake, const char *text, const row *r, size_t *instead, const char **what)
{
	const char *end = text + r->to, *at = text + r->from;

	*instead = mistake == ROW_LOST ? r->to - r->from : 0;
	*what = "";
	if (mistake == ROW_LOST)
		return at;
	if (mistake == MODIFIER_ADDED) { /* one that no row has beside others: behind the mnemonic */
		*what = "{.to}";
		at = strchr(strchr(at, '"'), '.');
		return at && at < end && at < strchr(strchr(text + r->from, '"'), ' ') ? at : NULL;
	}
	*what = "sm_121";
	at = strstr(at, "\", \"PTX ");
	at = at ? strstr(at, ", sm_") : NULL;
	if (!at || at > end)
		return NULL;
	at += 2;
	*instead = strcspn(at, ",;\"");
	return at;
}

static bool write_with(enum mistake mistake, const row *r)
{
	char path[512];
	size_t instead;
	const char *what;

	snprintf(path, sizeof path, "%s/src/arch/insn/%s", source, r->file);
	char *text = read_file(path);
	const char *at = change_of(mistake, text, r, &instead, &what);
	if (at) {
		snprintf(path, sizeof path, "%s/arch/insn/%s", dir, r->file);
		FILE *f = fopen(path, "wb");
		ck_assert_ptr_nonnull(f);
		fwrite(text, 1, (size_t)(at - text), f);
		fputs(what, f);
		fputs(at + instead, f);
		ck_assert_int_eq(fclose(f), 0);
	}
	free(text);
	return at != NULL;
}

/* The lines alone: the rest takes its time. */
static int compare(void) { return run("CK_RUN_CASE=lines ./expected"); }

static void prepare(void)
{
	char path[512];
	snprintf(path, sizeof path, "%s/src/arch/insn", source);
	DIR *d = opendir(path);

	ck_assert_ptr_nonnull(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strstr(e->d_name, ".def"))
			list_rows(e->d_name);
	closedir(d);
	ck_assert_uint_gt(nrow, 500);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(run("mkdir -p arch/insn"), 0);
	ck_assert_msg(
		!run("for f in expected cases judge relax shape spell trial; do [ $f = expected ] && p=test_ || p=; "
	         "%s %s -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -DTABLE_DIR='\"%s/tests/table\"' -I'%s/src' "
	         "-I'%s/include' -I'%s/include' -I'%s/tests' -I'%s/tools/cptx' -c '%s/tests/table/'$p$f.c || exit 1; done; "
	         "%s %s -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -I'%s/src' -I'%s/include' -I'%s/include' "
	         "-I'%s/tools/cptx' -c '%s/tools/cptx/cli/ptxas.c'",
	         cc, flags, source, source, source, build, source, source, source, cc, flags, source, source, build, source,
	         source),
		"%s", message());
}

START_TEST(a_lost_row_is_seen)
{
	const char *seed = getenv("CPTX_TABLE_SEED");

	cc = getenv("CPTX_CC"), source = getenv("CPTX_SOURCE"), build = getenv("CPTX_BUILD"), flags = getenv("CPTX_FLAGS");
	if (!cc || !source || !build || !flags) {
		skip("CPTX_CC, CPTX_SOURCE, CPTX_BUILD and CPTX_FLAGS are not set; meson sets them");
		return;
	}
	if (!seed) {
		skip("CPTX_TABLE_SEED is not set: a minute; table_expected asks of each form and value whether its loss would be "
		     "seen");
		return;
	}
	uint64_t state = strtoull(seed, NULL, 10);
	prepare();
	link_table();
	ck_assert_msg(!compare(), "with all rows: %s", message());
	for (unsigned lost = 0; lost < LOST;) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		const row *r = &rows[(state >> 33) % nrow];
		enum mistake mistake = (enum mistake)(lost % NMISTAKES);
		if (rows_of(r) < 2 || !write_with(mistake, r))
			continue;
		lost++;
		link_table();
		printf("src/arch/insn/%s %s row %u, of %s\n", r->file, mistake_names[mistake], (unsigned)(r - rows), r->op);
		ck_assert_msg(compare() == 1, "src/arch/insn/%s %s row %u of %s: %s", r->file, mistake_names[mistake],
		              (unsigned)(r - rows), r->op, message());
		ck_assert_int_eq(run("rm 'arch/insn/%s'", r->file), 0);
	}
	ck_assert_int_eq(run("rm -r '%s'", dir), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("table");
	TCase *t = tcase_create("lost rows");
	tcase_set_timeout(t, 0);
	tcase_add_test(t, a_lost_row_is_seen);
	suite_add_tcase(s, t);
	return test_main("table lost rows", s);
}
