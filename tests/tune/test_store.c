/* SPDX-License-Identifier: MIT */
/* The tuning database: records and their text, look-ups, the index, folders over one another, pruning. */
#include "../../src/cache/hash.h"
#include "store.h"

#include <math.h>

static cptx_error err;

static void before(void)
{
	folder_make();
	err = (cptx_error){ 0 };
}

static void add(cptx_tune *db, uint64_t m, const char *candidate, double us)
{
	const cptx_tune_key k = a_key(m);

	put(db, &k, candidate, us, &err);
	OK(err);
}

static size_t find(cptx_tune *db, uint64_t m, double radius, cptx_tune_found *found, size_t room)
{
	const cptx_tune_key k = a_key(m);
	const size_t n = cptx_tune_find(db, &k, radius, found, room, &err);

	OK(err);
	return n;
}

/* ---- records ---- */

static bool same_record(void *user, const cptx_tune_record *r)
{
	const cptx_tune_record *want = user;
	const cptx_tune_key *a = r->key, *b = want->key;

	ck_assert_str_eq(a->generator, b->generator);
	ck_assert_str_eq(a->problem, b->problem);
	ck_assert_str_eq(a->device, b->device);
	ck_assert_str_eq(a->compiler, b->compiler);
	ck_assert_str_eq(r->candidate, want->candidate);
	ck_assert_str_eq(r->unit, want->unit);
	ck_assert_mem_eq(a->dims, b->dims, sizeof a->dims);
	ck_assert(a->version == b->version && a->sms == b->sms && a->clock_mhz == b->clock_mhz && a->power_w == b->power_w &&
	          a->driver == b->driver);
	ck_assert_uint_eq(r->nsamples, want->nsamples);
	for (uint32_t i = 0; i < r->nsamples; i++)
		ck_assert(fabs(r->samples[i] - want->samples[i]) < 1e-6);
	ck_assert(fabs(r->median - 11.25) < 1e-9 && fabs(r->spread - 11.0 / 11.25) < 1e-6);
	ck_assert_int_eq(r->date, want->date);
	return true;
}

START_TEST(a_record_comes_back_whole)
{
	const double samples[] = { 12.5, 3.000001, 11.25, 14.000001, 10 };
	cptx_tune_key key = a_key(UINT64_MAX);
	key.problem = "a=b c=d  e=\"f\" # = \\ \xc3\xa4";
	const cptx_tune_record r = {
		.key = &key, .candidate = "ctas=132", .unit = "us", .samples = samples, .nsamples = 5, .date = 1795802400123456
	};

	for (int i = 0; i < 2; i++) { /* out of memory, then out of the file */
		cptx_tune *db = open_place(&err);
		OK(err);
		if (i == 0)
			ck_assert(cptx_tune_add(db, &r, &err));
		ck_assert(cptx_tune_each(db, same_record, (void *)&r, NULL, &err));
		ck_assert_uint_eq(count_records(db, NULL), 1);
		ck_assert(cptx_tune_has(db, &key, "ctas=132", &err));
		ck_assert(!cptx_tune_has(db, &key, "ctas=13", &err));
		OK(err);
		cptx_tune_close(db);
	}
}
END_TEST

START_TEST(what_is_no_record_is_refused)
{
	static char long_text[CPTX_TUNE_TEXT + 1];
	const double good = 1, bad[] = { 0, 1e-7, -1, NAN, INFINITY, 1e13 };
	const char *const texts[] = { NULL, "", "a\tb", "a\n", "\x7f", long_text };
	cptx_tune *db = open_place(&err);

	memset(long_text, 'x', CPTX_TUNE_TEXT);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		for (int where = 0; where < 3; where++) {
			cptx_tune_key k = a_key(1);
			cptx_error e = { 0 };
			if (where == 0)
				k.problem = texts[i];
			if (where == 1)
				k.device = texts[i];
			ck_assert(!put(db, &k, where == 2 ? texts[i] : "x", 1, &e));
			ck_assert_int_eq(e.code, CPTX_E_ARG);
			ck_assert_ptr_nonnull(strstr(e.text, where == 0 ? ".problem" : where == 1 ? ".device" : ".candidate"));
		}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const cptx_tune_key k = a_key(1);
		cptx_error e = { 0 };
		ck_assert(!put(db, &k, "x", bad[i], &e));
		ck_assert_ptr_nonnull(strstr(e.text, "sample 0"));
	}
	for (uint32_t n = 0; n <= CPTX_TUNE_SAMPLES + 1; n += CPTX_TUNE_SAMPLES + 1) {
		const cptx_tune_key k = a_key(1);
		cptx_error e = { 0 };
		ck_assert(!cptx_tune_add(
			db, &(cptx_tune_record){ .key = &k, .candidate = "x", .unit = "us", .samples = &good, .nsamples = n }, &e));
		ck_assert_ptr_nonnull(strstr(e.text, "samples"));
	}
	ck_assert_uint_eq(count_records(db, NULL), 0);
	ck_assert_uint_eq(folder_files("", NULL), 0); /* not even a folder */
	cptx_tune_close(db);
}
END_TEST

/* The text of the only segment. */
static size_t read_segment(char path[512], char *text, size_t room)
{
	ck_assert_uint_eq(folder_files("", path), 1);
	FILE *f = fopen(path, "r");
	const size_t n = fread(text, 1, room, f);
	fclose(f);
	return n;
}

static void write_segment(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");
	fwrite(text, 1, n, f);
	fclose(f);
}

START_TEST(torn_and_changed_lines_are_passed_over)
{
	char path[512], text[4096], changed[4096];
	cptx_tune_found found[4];
	uint64_t damaged;
	cptx_tune *db = open_place(&err);

	add(db, 64, "first", 1);
	add(db, 64, "second", 2);
	cptx_tune_close(db);
	const size_t n = read_segment(path, text, sizeof text);
	char *const first = strchr(text, '\n') + 1, *const second = strchr(first, '\n') + 1;
	for (size_t cut = (size_t)(first - text); cut < n; cut++) {
		write_segment(path, text, cut);
		db = open_place(&err);
		ck_assert_uint_eq(count_records(db, &damaged), text + cut >= second);
		ck_assert_uint_eq(damaged, text + cut != first && text + cut != second);
		/* a writer that goes on after a crash has a segment of its own, so its record does not join a torn line */
		cptx_tune_close(db);
	}
	for (char *at = first; at < second - 1; at++) {
		memcpy(changed, text, n);
		changed[at - text] ^= 1;
		write_segment(path, changed, n);
		db = open_place(&err);
		ck_assert_uint_eq(find(db, 64, 0, found, 4), 1);
		ck_assert_str_eq(found[0].candidate, "second");
		cptx_tune_close(db);
	}
}
END_TEST

/* A line with a right checksum, of the record in `line` with `to` in place of `from`. */
static size_t forge(const char *line, const char *from, const char *to, char *out, size_t room)
{
	char body[8192];
	uint8_t sum[HASH_BYTES];
	hash h;
	size_t n = 0;
	const char *const old = strchr(line, '\t') + 1, *const at = strstr(old, from), *const end = strchr(old, '\n');

	ck_assert(at && at < end);
	const int length = snprintf(body, sizeof body, "%.*s%s%.*s", (int)(at - old), old, to,
	                            (int)(end - at - (long)strlen(from)), at + strlen(from));
	hash_init(&h);
	hash_add(&h, body, (size_t)length);
	hash_end(&h, sum);
	for (int i = 0; i < 8; i++)
		n += (size_t)snprintf(out + n, room - n, "%02x", sum[i]);
	n += (size_t)snprintf(out + n, room - n, " %d\t%s\n", length, body);
	ck_assert_uint_lt(n, room);
	return n;
}

/* What no writer of cptx writes, in a folder from elsewhere. */
START_TEST(forged_records_are_damaged)
{
	static char text[4096], line[8192],
		candidate[CPTX_TUNE_TEXT + 16] = "candidate=", device[CPTX_TUNE_TEXT + 16] = "device=";
	static const struct {
		const char *from, *to;
		int sound;
	} cases[] = { { "candidate=x", "candidate=y", 1 },   { "candidate=x", candidate, 0 },
		          { "device=A device", device, 0 },      { "unit=us", "unit=\033[2Jus", 0 },
		          { "generator=gemm", "generator=", 0 }, { "samples=3", "samples=", 0 },
		          { "median=3", "median=0", 0 } };
	char path[512];
	uint64_t damaged;
	cptx_tune *db = open_place(&err);

	memset(candidate + strlen(candidate), 'c', CPTX_TUNE_TEXT);
	memset(device + strlen(device), 'd', CPTX_TUNE_TEXT);
	add(db, 64, "x", 3);
	cptx_tune_close(db);
	const size_t n = read_segment(path, text, sizeof text - 1);
	text[n] = 0;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cptx_tune_found found[1];
		write_segment(path, line, forge(strchr(text, '\n') + 1, cases[i].from, cases[i].to, line, sizeof line));
		db = open_place(&err);
		ck_assert_msg(count_records(db, &damaged) == (uint64_t)cases[i].sound && damaged == (uint64_t)!cases[i].sound,
		              "case %zu", i);
		ck_assert_uint_eq(find(db, 64, 0, found, 1), (size_t)cases[i].sound);
		cptx_tune_close(db);
	}
}
END_TEST

static const char *appended;

static bool append_once(void *user, const cptx_tune_record *r)
{
	const char *path = user;

	if (!strcmp(r->candidate, "x")) {
		FILE *f = fopen(path, "a");
		fputs(appended, f);
		fclose(f);
		ck_assert(strlen(appended) > 1000);
	} else {
		ck_assert_uint_eq(strlen(r->candidate), CPTX_TUNE_TEXT - 1);
		appended = NULL;
	}
	return true;
}

START_TEST(a_record_that_is_appended_meanwhile)
{
	static char text[4096], line[8192], candidate[CPTX_TUNE_TEXT], problem[CPTX_TUNE_TEXT];
	char path[512], both[2 * CPTX_TUNE_TEXT];
	uint64_t damaged;
	cptx_tune *db = open_place(&err);

	add(db, 64, "x", 3);
	cptx_tune_close(db);
	text[read_segment(path, text, sizeof text - 1)] = 0;
	memset(candidate, 'c', sizeof candidate - 1);
	memset(problem, 'p', sizeof problem - 1);
	forge(strchr(text, '\n') + 1, "problem=mma=wgmma a=bf16 b=bf16 out=f32", "problem=PROBLEM", line, sizeof line);
	snprintf(both, sizeof both, "problem=%s", problem);
	memcpy(text, line, strlen(line) + 1);
	forge(text, "problem=PROBLEM", both, line, sizeof line);
	memcpy(text, line, strlen(line) + 1);
	snprintf(both, sizeof both, "candidate=%s", candidate);
	forge(text, "candidate=x", both, line, sizeof line);
	/* another measurement has another id */
	memcpy(text, line, strlen(line) + 1);
	forge(text, "id=", "id=1", line, sizeof line);
	appended = line;
	db = open_place(&err);
	ck_assert(cptx_tune_each(db, append_once, path, &damaged, &err));
	ck_assert_ptr_null(appended); /* it came, as all of the file does */
	ck_assert_uint_eq(damaged, 0);
	cptx_tune_close(db);
}
END_TEST

/* ---- look-ups ---- */

START_TEST(exact_then_other_builds_then_neighbours)
{
	cptx_tune_found found[8];
	cptx_tune_key other = a_key(1024);
	cptx_tune *db = open_place(&err);

	add(db, 1024, "slow", 30);
	add(db, 1024, "fast", 10);
	add(db, 1024, "middle", 20);
	add(db, 1024, "fast", 25); /* measured again: the later one counts */
	add(db, 1200, "near", 1);
	add(db, 1200, "near, slower", 2);
	add(db, 1100, "nearer", 5);
	add(db, 4096, "far", 0.1);
	other.driver = 12080;
	put(db, &other, "by an older driver", 3, &err);
	put(db, &other, "slow", 4, &err);
	other = a_key(1024), other.version = 2;
	put(db, &other, "of another version", 1, &err);
	other = a_key(1024), other.power_w = 350;
	put(db, &other, "of a weaker device", 1, &err);
	OK(err);
	for (int i = 0; i < 3; i++) {
		const char *const want[] = { "middle", "fast", "slow", "by an older driver", "nearer", "near" };
		ck_assert_uint_eq(find(db, 1024, CPTX_TUNE_RADIUS, found, 8), 6);
		for (int j = 0; j < 6; j++) {
			ck_assert_str_eq(found[j].candidate, want[j]);
			ck_assert_int_eq(found[j].match, j < 3 ? CPTX_TUNE_EXACT : j < 4 ? CPTX_TUNE_BUILD : CPTX_TUNE_NEAR);
		}
		ck_assert(fabs(found[5].distance - log2(1200.0 / 1024)) < 1e-5);
		ck_assert_uint_eq(found[5].dims[0], 1200);
		ck_assert_uint_eq(find(db, 1024, 0, found, 2), 2);
		ck_assert_uint_eq(find(db, 9000, CPTX_TUNE_RADIUS, found, 8), 0);
		cptx_tune_close(db); /* again out of the text, then out of an index */
		db = open_place(&err);
		if (i == 1) {
			ck_assert(cptx_tune_prune(db, NULL, NULL, &err));
			ck_assert_uint_eq(folder_files("index", NULL), 1);
		}
		OK(err);
	}
	cptx_tune_close(db);
}
END_TEST

/* Random records in an index, in text, and in both; the answer is that of a list that is searched from end to end. */
enum { MANY = 300, PROBLEMS = 60 };
static struct {
	uint64_t dims[3];
	unsigned candidate;
	double us;
} all[MANY];

static double distance(const uint64_t *a, const uint64_t *b)
{
	double sum = 0;

	for (int i = 0; i < 3; i++)
		sum += log2((double)a[i] / (double)b[i]) * log2((double)a[i] / (double)b[i]);
	return sqrt(sum);
}

static void compare(cptx_tune *db, const uint64_t *dims, size_t n)
{
	cptx_tune_found found[32];
	cptx_tune_key k = a_key(1);
	double best = INFINITY, nearest = INFINITY;

	memcpy(k.dims, dims, 3 * sizeof *dims);
	const size_t got = cptx_tune_find(db, &k, 2, found, 32, &err);
	OK(err);
	for (size_t i = 0; i < n; i++) {
		bool later = false;
		for (size_t j = i + 1; j < n; j++)
			later |= all[j].candidate == all[i].candidate && !memcmp(all[i].dims, all[j].dims, sizeof all[i].dims);
		const double d = distance(all[i].dims, dims);
		if (!later && d == 0 && all[i].us < best)
			best = all[i].us;
		if (d > 0 && d < nearest)
			nearest = d;
	}
	if (isfinite(best)) {
		ck_assert_uint_gt(got, 0);
		ck_assert_int_eq(found[0].match, CPTX_TUNE_EXACT);
		ck_assert_msg(fabs(found[0].median - best) < 1e-6, "%g, not %g", found[0].median, best);
	} else if (nearest <= 2) {
		ck_assert_uint_gt(got, 0);
		ck_assert(fabs(found[0].distance - nearest) < 1e-4);
	} else {
		ck_assert_uint_eq(got, 0);
	}
	for (size_t i = 1; i < got; i++)
		ck_assert(found[i].match > found[i - 1].match || found[i].distance >= found[i - 1].distance);
}

START_TEST(look_ups_find_what_a_search_finds)
{
	unsigned seed = 17;
	uint64_t problems[PROBLEMS][3];
	cptx_tune *db = open_place(&err);

	for (int i = 0; i < PROBLEMS; i++)
		for (int j = 0; j < 3; j++)
			problems[i][j] = 1 + (uint64_t)exp2(rand_r(&seed) % 1000 * 0.008);
	for (size_t i = 0; i < MANY; i++) {
		char name[16];
		cptx_tune_key k = a_key(1);
		double us = 1 + rand_r(&seed) % 100000 * 0.01;
		memcpy(all[i].dims, problems[rand_r(&seed) % PROBLEMS], sizeof all[i].dims);
		memcpy(k.dims, all[i].dims, sizeof all[i].dims);
		all[i].candidate = (unsigned)rand_r(&seed) % 12, all[i].us = us;
		snprintf(name, sizeof name, "bm=%u", all[i].candidate);
		ck_assert(cptx_tune_add(
			db,
			&(cptx_tune_record){
				.key = &k, .candidate = name, .unit = "us", .samples = &us, .nsamples = 1, .date = 1000 + (int64_t)i },
			&err));
		if (i == MANY / 3) /* an index of a part */
			ck_assert(cptx_tune_prune(db, NULL, NULL, &err));
		if (i % 75 != 74)
			continue;
		cptx_tune *fresh = open_place(&err);
		for (int j = 0; j < PROBLEMS; j++) {
			const uint64_t dims[3] = { problems[j][0] + (uint64_t)(j & 1), problems[j][1], problems[j][2] };
			compare(db, dims, i + 1);
			compare(fresh, dims, i + 1);
		}
		cptx_tune_close(fresh);
	}
	cptx_tune_close(db);
}
END_TEST

START_TEST(a_wrong_index_costs_time_and_no_record)
{
	char path[512];
	cptx_tune_found found[2];
	cptx_tune *db = open_place(&err);

	add(db, 64, "one", 1);
	add(db, 128, "two", 2);
	ck_assert(cptx_tune_prune(db, NULL, NULL, &err));
	cptx_tune_close(db);
	snprintf(path, sizeof path, "%s/index", place);
	FILE *f = fopen(path, "r");
	char was[4096];
	const size_t n = fread(was, 1, sizeof was, f);
	fclose(f);
	for (size_t i = 0; i <= n; i++) {
		char now[4096];
		memcpy(now, was, n);
		if (i < n)
			now[i] ^= 0x55;
		write_segment(path, now, i < n ? n : n / 2);
		db = open_place(&err);
		OK(err);
		ck_assert_uint_eq(find(db, 64, 0, found, 2), 1);
		ck_assert_str_eq(found[0].candidate, "one");
		cptx_tune_close(db);
	}
}
END_TEST

/* ---- folders ---- */

START_TEST(the_user_s_folder_lies_over_the_others)
{
	char shipped[128], both[300];
	cptx_tune_found found[4];
	cptx_tune_key k = a_key(64);

	snprintf(shipped, sizeof shipped, "%s/shipped", folder);
	snprintf(both, sizeof both, "%s/none:%s", folder, shipped);
	cptx_tune *db = cptx_tune_open(&(cptx_tune_opt){ .path = shipped, .shipped = "" }, &err);
	add(db, 64, "shipped", 1);
	add(db, 100, "shipped", 1);
	cptx_tune_close(db);
	db = cptx_tune_open(&(cptx_tune_opt){ .path = place, .shipped = both }, &err);
	ck_assert_uint_eq(find(db, 64, 0, found, 4), 1);
	add(db, 64, "own", 7);
	ck_assert_uint_eq(find(db, 64, 0, found, 4), 2);
	ck_assert_str_eq(found[0].candidate, "own"); /* measured here */
	ck_assert_uint_eq(count_records(db, NULL), 3);
	ck_assert(cptx_tune_prune(db, &(cptx_tune_prune_opt){ .since = INT64_MAX }, NULL, &err));
	ck_assert_uint_eq(count_records(db, NULL), 2); /* what is shipped stays */
	cptx_tune_close(db);
	db = cptx_tune_open(&(cptx_tune_opt){ .path = shipped, .shipped = "", .read_only = true }, &err);
	OK(err);
	ck_assert(!put(db, &k, "x", 1, &err));
	ck_assert_int_eq(err.code, CPTX_E_STATE);
	cptx_tune_close(db);
	err = (cptx_error){ 0 };
	ck_assert_ptr_null(cptx_tune_open(&(cptx_tune_opt){ .size = 7777777 }, &err));
	ck_assert_int_eq(err.code, CPTX_E_ARG);
}
END_TEST

START_TEST(no_folder_can_be_made)
{
	const cptx_tune_key k = a_key(64);
	char under[200];

	FILE *f = fopen(place, "w"); /* a file has its name */
	fclose(f);
	cptx_tune *db = open_place(&err);
	OK(err);
	ck_assert(!put(db, &k, "x", 1, &err));
	ck_assert_int_eq(err.code, CPTX_E_IO);
	ck_assert_ptr_nonnull(strstr(err.text, place));
	cptx_tune_close(db);
	err = (cptx_error){ 0 };
	snprintf(under, sizeof under, "%s/a/b/c", folder); /* and here none of them is there */
	db = cptx_tune_open(&(cptx_tune_opt){ .path = under, .shipped = "" }, &err);
	ck_assert(put(db, &k, "x", 1, &err));
	cptx_tune_close(db);
}
END_TEST

START_TEST(prune_keeps_what_it_is_told)
{
	cptx_tune_pruned done;
	cptx_tune_found found[8];
	cptx_tune_key old = a_key(64);
	cptx_tune *db = open_place(&err), *writer = open_place(&err);
	char path[512];

	for (int i = 0; i < 5; i++) {
		char name[8];
		snprintf(name, sizeof name, "c%d", i);
		add(writer, 64, name, 5 - i);
		add(writer, 4096, name, 1 + i);
	}
	add(writer, 64, "c4", 9); /* again */
	old.version = 7;
	put(writer, &old, "x", 1, &err);
	ck_assert(cptx_tune_prune(db, &(cptx_tune_prune_opt){ .best = 2, .generator = "gemm", .version = 1 }, &done, &err));
	ck_assert_uint_eq(done.kept, 4);
	ck_assert_uint_eq(done.removed, 8);
	ck_assert_uint_eq(done.files, 1);
	ck_assert_uint_eq(find(db, 64, 0, found, 8), 2);
	ck_assert_str_eq(found[0].candidate, "c3");
	ck_assert_str_eq(found[1].candidate, "c2");
	add(writer, 64, "later", 1); /* its segment is gone: it begins another */
	ck_assert_uint_eq(count_records(db, NULL), 5);
	ck_assert_uint_eq(find(writer, 64, 0, found, 8), 3);
	snprintf(path, sizeof path, "%s/exported", folder);
	ck_assert_uint_eq(cptx_tune_export(db, path, &err), 5);
	ck_assert_uint_eq(cptx_tune_export(db, path, &err), 0); /* nothing is overwritten */
	ck_assert_int_eq(err.code, CPTX_E_IO);
	err = (cptx_error){ 0 };
	cptx_tune_close(writer);
	cptx_tune_close(db);
	snprintf(place, sizeof place, "%s/second", folder);
	db = open_place(&err);
	ck_assert_uint_eq(cptx_tune_import(db, path, &err), 5);
	ck_assert_uint_eq(cptx_tune_import(db, path, &err), 0); /* they are there */
	OK(err);
	ck_assert_uint_eq(find(db, 64, 0, found, 8), 3);
	FILE *f = fopen(path, "a");
	fputs("this is no record\n", f);
	fclose(f);
	ck_assert_uint_eq(cptx_tune_import(db, path, &err), 0);
	ck_assert_int_eq(err.code, CPTX_E_PARSE);
	cptx_tune_close(db);
}
END_TEST

static unsigned segments(void)
{
	DIR *d = opendir(place);
	unsigned n = 0;

	ck_assert_ptr_nonnull(d);
	for (struct dirent *e; (e = readdir(d));)
		n += strstr(e->d_name, ".seg") != NULL;
	closedir(d);
	return n;
}

/* Makes a file with a record under a name of the folder, as another process would; it was changed some hours ago. */
static void leave_file(const char *name, uint64_t m, int hours)
{
	char command[1200], other[300];

	snprintf(other, sizeof other, "%s/other", folder);
	cptx_tune *db = cptx_tune_open(&(cptx_tune_opt){ .path = other, .shipped = "" }, &err);
	add(db, m, "x", 3);
	cptx_tune_close(db);
	OK(err);
	snprintf(command, sizeof command, "mv %s/*.seg '%s/%s' && touch -d '%d hours ago' '%s/%s'", other, place, name, hours,
	         place, name);
	ck_assert_int_eq(system(command), 0);
}

/* What processes that were killed while they pruned left: nothing of it stays, no record is lost, and nothing else is
 * touched. */
START_TEST(prune_clears_what_killed_ones_left)
{
	static const char *const goes[] = { "host-7-1a-r.hold", "host-7-1c.tmp" };
	static const char *const stays[] = { "host-7-1d.tmp", "mine.tmp", "mine.hold" };
	cptx_tune *db = open_place(&err);
	cptx_tune_pruned done;

	add(db, 64, "x", 3);
	leave_file("host-7-1a-r.hold", 65, 0); /* the last name of a segment */
	leave_file("host-7-1b-r.seg", 66, 0);
	leave_file("host-7-1c.tmp", 67, 30); /* not finished, and its sources are there */
	leave_file("host-7-1d.tmp", 68, 1);  /* of a process that may be at it */
	leave_file("mine.tmp", 69, 30);
	leave_file("mine.hold", 70, 30);
	ck_assert(cptx_tune_prune(db, NULL, &done, &err));
	OK(err);
	ck_assert(done.kept == 3 && done.files == 3 && count_records(db, NULL) == 3 && segments() == 1);
	const int dir = open(place, O_RDONLY);
	for (size_t i = 0; i < 3; i++)
		ck_assert(!faccessat(dir, stays[i], F_OK, 0) && (i == 2 || faccessat(dir, goes[i], F_OK, 0)));
	close(dir);
	cptx_tune_close(db);
}
END_TEST

/* A writer whose segment is retired at any moment, by a process that is then killed, begins another one. */
START_TEST(a_retired_segment_is_left_by_its_writer)
{
	char command[600];
	cptx_tune *db = open_place(&err);

	snprintf(command, sizeof command, "chmod a-w %s/*.seg", place);
	for (unsigned i = 1; i < 4; i++) {
		add(db, 64 + i, "x", 3);
		ck_assert(segments() == i && system(command) == 0);
	}
	ck_assert(cptx_tune_prune(db, NULL, NULL, &err));
	OK(err);
	ck_assert(count_records(db, NULL) == 3 && segments() == 1);
	cptx_tune_close(db);
}
END_TEST

/* A segment that cannot be read is an error that names it; nothing is taken for empty, and nothing is removed. */
START_TEST(what_cannot_be_read_is_not_lost)
{
	static const char *const names[] = { "other.seg", "other-r.seg", "other-r.seg" };
	char file[200], path[200];
	cptx_tune *db = open_place(&err);

	add(db, 64, "x", 3);
	snprintf(file, sizeof file, "%s/exported", folder);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", place, names[i]);
		ck_assert_int_eq(i < 2 ? symlink("elsewhere", path) : mkfifo(path, 0600), 0);
		ck_assert(!cptx_tune_prune(db, NULL, NULL, &err));
		FAILS(err, CPTX_E_IO, names[i]);
		ck_assert_uint_eq(cptx_tune_export(db, file, &err), 0);
		FAILS(err, CPTX_E_IO, names[i]);
		ck_assert_int_ne(access(file, F_OK), 0);
		ck_assert_uint_eq(segments(), 2);
		ck_assert_int_eq(unlink(path), 0);
	}
	ck_assert_uint_eq(cptx_tune_export(db, file, &err), 1);
	ck_assert(cptx_tune_prune(db, NULL, NULL, &err));
	OK(err);
	ck_assert_uint_eq(count_records(db, NULL), 1);
	cptx_tune_close(db);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tune_store");
	TCase *c = test_case(s, "tune_store");

	tcase_add_checked_fixture(c, before, folder_remove);
	tcase_add_test(c, a_record_comes_back_whole);
	tcase_add_test(c, what_is_no_record_is_refused);
	tcase_add_test(c, torn_and_changed_lines_are_passed_over);
	tcase_add_test(c, forged_records_are_damaged);
	tcase_add_test(c, a_record_that_is_appended_meanwhile);
	tcase_add_test(c, exact_then_other_builds_then_neighbours);
	tcase_add_test(c, look_ups_find_what_a_search_finds);
	tcase_add_test(c, a_wrong_index_costs_time_and_no_record);
	tcase_add_test(c, the_user_s_folder_lies_over_the_others);
	tcase_add_test(c, no_folder_can_be_made);
	tcase_add_test(c, prune_keeps_what_it_is_told);
	tcase_add_test(c, prune_clears_what_killed_ones_left);
	tcase_add_test(c, a_retired_segment_is_left_by_its_writer);
	tcase_add_test(c, what_cannot_be_read_is_not_lost);
	return test_main("tune_store", s);
}
