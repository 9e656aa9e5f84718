/* SPDX-License-Identifier: MIT */
/*
 * Planted bugs: each file of bugs/ is a kernel with one, and its repaired twin.  Lines that end in "// bug" stand in the
 * former only, what is behind "// fix: " in the latter only.  The second line says how it is launched, on a buffer whose
 * address is the parameter, and what must be found, by every seed and schedule:
 *
 *     // grid 2, cluster 2, block 64, data 400, finds race          (data: bytes; they count up in words, or are "zero" or
 * "undefined"; about WORD: which of the things that such a finding is for)
 *
 * What GPUs take (CPTX_LENIENT_) is found by a pedantic device; by others it is a warning, and the buffer is that of the
 * twin.
 *
 * CPTX_BUGS=NAME runs one file and prints what is found; CPTX_SEEDS=N, how many seeds.
 */
#include <cptx/emu.h>

#include "../sanitized.h"
#include "../test.h"
#include "../whole.h"

#include <dirent.h>

enum { STEP_LIMIT = 100000, MOST_FILES = 512 };

typedef struct planted {
	char name[128], *text; /* the text of the bug or of the twin */
	uint32_t grid, cluster, block, data, smem;
	bool zero, undefined;
	char finds[64], about[64], target[16];
} planted;

static char *read_file(const char *name)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", BUGS, name);
	FILE *f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "%s cannot be read", path);
	char *s = calloc(1, 1 << 16);
	ck_assert_ptr_nonnull(s);
	size_t n = fread(s, 1, (1 << 16) - 1, f);
	fclose(f);
	ck_assert_msg(n < (1 << 16) - 1, "%s is too long", name);
	return s;
}

/* Lines keep their numbers. */
static void choose(char *text, bool fixed)
{
	static const char fix[] = "// fix: ", bug[] = "// bug";

	for (char *line = text, *end; *line; line = end + (*end != 0)) {
		end = line + strcspn(line, "\n");
		char *at = line + strspn(line, "\t ");
		if (fixed && !strncmp(at, fix, sizeof fix - 1))
			memset(at, ' ', sizeof fix - 1);
		else if (fixed && end - line > (int)sizeof bug && !strncmp(end - sizeof bug + 1, bug, sizeof bug - 1))
			memset(line, ' ', (size_t)(end - line));
	}
}

static uint32_t number(const char *line, const char *word, uint32_t otherwise)
{
	const char *s = strstr(line, word);

	return s ? (uint32_t)strtoul(s + strlen(word), NULL, 0) : otherwise;
}

static void read_head(planted *p)
{
	const char *line = strchr(p->text, '\n') + 1, *finds = strstr(line, "finds "), *target = strstr(line, ".target ");
	size_t n = strcspn(line, "\n");
	char head[256] = "";

	ck_assert_msg(finds && finds < line + n && target && n < sizeof head, "%s: the second line must say \"finds ...\"",
	              p->name);
	memcpy(head, line, n);
	p->grid = number(head, "grid ", 1);
	p->cluster = number(head, "cluster ", 0);
	p->block = number(head, "block ", 32);
	p->data = number(head, "data ", 128);
	p->smem = number(head, "smem ", 0);
	p->zero = strstr(head, ", zero") != NULL;
	p->undefined = strstr(head, ", undefined") != NULL;
	sscanf(finds, "finds %63s", p->finds);
	if (strstr(head, "about "))
		sscanf(strstr(head, "about "), "about %63[^,]", p->about);
	sscanf(target, ".target %15s", p->target);
}

static void fill(cptx_device *dev, const planted *p, uint64_t at, cptx_error *err)
{
	uint32_t *x = calloc(1, p->data + 4);

	ck_assert_ptr_nonnull(x);
	for (uint32_t i = 0; i < p->data / 4 && !p->zero; i++)
		x[i] = i;
	if (!p->undefined)
		cptx_mem_write(dev, at, x, p->data, err);
	free(x);
}

static bool is_lenient(const char *word)
{
	static const char *const all[] = {
#define CPTX_FINDING_(name, text, ends)
#define CPTX_LENIENT_(name, text, ends, section, sentence) text,
#include <cptx/findings.def>
#undef CPTX_FINDING_
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i], word))
			return true;
	return false;
}

/*
 * The word of the first error; "nothing" if there is none, "warning: ..." if there are warnings, "other: ..." for what is no
 * finding.  The buffer goes to `left`, if that is not NULL.
 */
static void run(const planted *p, const cptx_emu_opt *opt, char *found, size_t size, bool say, unsigned char *left)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(p->target, opt, &err);
	cptx_program *k = dev ? cptx_device_load_text(dev, p->text, strlen(p->text), NULL, &err) : NULL;
	uint64_t at = k ? cptx_mem_alloc(dev, p->data, &err) : 0;
	cptx_launch_opt launch = {
		.grid = { p->grid }, .block = { p->block }, .cluster = { p->cluster }, .dyn_smem = p->smem, CPTX_ARGS(at)
	};
	const cptx_emu_finding *f;

	if (at)
		fill(dev, p, at, &err);
	bool ok = k && at && cptx_launch_once(k, "k", &launch, NULL, &err);
	bool none = true; /* no error so far */
	snprintf(found, size, ok ? "nothing" : "other: %.500s", err.text);
	for (size_t i = 0; dev && (f = cptx_emu_finding_at(dev, i)); i++) {
		if (say)
			printf("%s: seed %llu: %s\n", p->name, (unsigned long long)opt->seed, f->text);
		if (f->rank == CPTX_FIND_WARNING && ok && !strcmp(found, "nothing"))
			snprintf(found, size, "warning: %s", cptx_finding_name(f->code));
		if (f->rank == CPTX_FIND_ERROR && none)
			snprintf(found, size, "%s", cptx_finding_name(f->code)), none = false;
	}
	if (left && at)
		ck_assert(cptx_mem_read(dev, left, at, p->data, &err));
	cptx_program_destroy(k);
	cptx_device_close(dev);
}

static unsigned seeds(void)
{
	const char *s = getenv("CPTX_SEEDS");

	return s ? (unsigned)atoi(s) : whole() ? 100 : SAMPLE_OF(30, 10);
}

static void differs(const planted *p, const char *how, unsigned seed, const char *expected, const char *found,
                    unsigned *failed)
{
	printf("%s%s: seed %u, schedule %u: expected %s, found %s\n", p->name, how, seed, seed % 3, expected, found);
	++*failed;
}

/* Each seed gives a warning, and leaves what the twin leaves. */
static void only_warned(planted *p, planted *twin, unsigned *failed)
{
	unsigned char *left = malloc(p->data), *right = malloc(p->data);
	unsigned n = (seeds() + 9) / 10;
	char expected[128], found[600];

	ck_assert(left && right);
	snprintf(expected, sizeof expected, "warning: %s", p->finds);
	for (unsigned seed = 0; seed < n; seed++) {
		cptx_emu_opt opt = { .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .step_limit = STEP_LIMIT };
		if (!is_my_part(seed))
			continue;
		run(p, &opt, found, sizeof found, getenv("CPTX_BUGS") && !seed, left);
		if (strcmp(found, expected))
			differs(p, "", seed, expected, found, failed);
		run(twin, &opt, found, sizeof found, false, right);
		if (memcmp(left, right, p->data))
			differs(p, "", seed, "the buffer of the twin", "another", failed);
	}
	free(left);
	free(right);
}

static void all_seeds(planted *p, bool fixed, unsigned *failed)
{
	const char *expected = fixed ? "nothing" : p->finds, *only = getenv("CPTX_BUGS");
	unsigned n = only && !fixed ? 1 : seeds();
	bool pedantic = is_lenient(p->finds);

	for (unsigned seed = 0; seed < n; seed++) {
		cptx_emu_opt opt = { .seed = seed,
			                 .schedule = (enum cptx_emu_schedule)(seed % 3),
			                 .threads = 1 + seed % 2,
			                 .step_limit = STEP_LIMIT,
			                 .pedantic = pedantic };
		char found[600];
		if (!is_my_part(seed))
			continue;
		run(p, &opt, found, sizeof found, only != NULL, NULL);
		if (strcmp(found, expected)) {
			differs(p, fixed ? " (repaired)" : "", seed, expected, found, failed);
			return;
		}
	}
}

/* In every order: the bug is found in one, and the repaired twin is right in all, of which there are not many. */
static void all_orders(planted *p, bool fixed, unsigned *failed)
{
	const char *expected = fixed ? "nothing" : p->finds;
	cptx_emu_opt opt = {
		.schedule = CPTX_EMU_ALL, .orders = 40, .step_limit = STEP_LIMIT, .pedantic = is_lenient(p->finds)
	};
	char found[600];

	run(p, &opt, found, sizeof found, getenv("CPTX_BUGS") != NULL, NULL);
	if (!strcmp(expected, "step-limit") && !strcmp(found, "deadlock"))
		return; /* of loops that change nothing it is known at once */
	if (strcmp(found, expected))
		differs(p, fixed ? " (repaired), all orders" : ", all orders", 0, expected, found, failed);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* ---- what is there ---- */

/* Findings that are about several things, of which each has its kernels: they say "about ...". */
static const struct {
	enum cptx_finding_code code;
	const char *about;
} parts[] = {
	{ CPTX_FIND_BOUNDS, "dynamic-shared-memory" },
	{ CPTX_FIND_BOUNDS, "shared-variables" },
	{ CPTX_FIND_BOUNDS, "local-variables" },
	{ CPTX_FIND_BOUNDS, "global-variables" },
	{ CPTX_FIND_BOUNDS, "constant-variables" },
	{ CPTX_FIND_UNDEFINED, "registers" },
	{ CPTX_FIND_UNDEFINED, "shared-memory" },
	{ CPTX_FIND_UNDEFINED, "tensor-memory" },
	{ CPTX_FIND_UNDEFINED, "local-memory" },
	{ CPTX_FIND_UNDEFINED, "parameters" },
	{ CPTX_FIND_UNDEFINED, "bits" },
	{ CPTX_FIND_RACE, "barriers" },
	{ CPTX_FIND_RACE, "lanes-of-a-warp" },
	{ CPTX_FIND_RACE, "release-and-acquire" },
	{ CPTX_FIND_RACE, "scopes" },
	{ CPTX_FIND_PROXY, "fence.proxy.async" },
	{ CPTX_FIND_PROXY, "fence.proxy.tensormap" },
	{ CPTX_FIND_PROXY, "fence.mbarrier_init" },
	{ CPTX_FIND_ASYNC_WAIT, "accumulators-of-wgmma" },
	{ CPTX_FIND_ASYNC_WAIT, "tcgen05" },
	{ CPTX_FIND_MBARRIER, "mbarrier.init" },
	{ CPTX_FIND_TENSOR_MAP, "placement-of-a-map" },
	{ CPTX_FIND_TMEM_ALLOC, "relinquish_alloc_permit" },
};
enum { PARTS = sizeof parts / sizeof *parts, ENOUGH = 2 };

typedef struct tally {
	unsigned code[CPTX_FIND_COUNT], part[PARTS];
} tally;

static void count(tally *t, const planted *p)
{
	unsigned code = 1, part = 0;

	while (code < CPTX_FIND_COUNT && strcmp(cptx_finding_name((enum cptx_finding_code)code), p->finds))
		code++;
	ck_assert_msg(code < CPTX_FIND_COUNT, "%s: there is no finding \"%s\"", p->name, p->finds);
	t->code[code]++;
	while (*p->about && part < PARTS && (parts[part].code != code || strcmp(parts[part].about, p->about)))
		part++;
	ck_assert_msg(!*p->about || part < PARTS, "%s: %s is not about \"%s\"", p->name, p->finds, p->about);
	if (*p->about)
		t->part[part]++;
}

/* Of each kind of the table of findings, and of each part, there are two kernels; no kernel can make the host's memory run
 * short. */
static void enough(const tally *t)
{
	for (unsigned i = 1; i < CPTX_FIND_COUNT; i++)
		ck_assert_msg(t->code[i] >= ENOUGH || i == CPTX_FIND_MEMORY, "%u kernels have %s; there must be %d", t->code[i],
		              cptx_finding_name((enum cptx_finding_code)i), ENOUGH);
	for (unsigned i = 0; i < PARTS; i++)
		ck_assert_msg(t->part[i] >= ENOUGH, "%u kernels have %s about %s; there must be %d", t->part[i],
		              cptx_finding_name(parts[i].code), parts[i].about, ENOUGH);
}

START_TEST(found_in_all_and_nothing_in_twins)
{
	DIR *d = opendir(BUGS);
	char *name[MOST_FILES];
	const char *only = getenv("CPTX_BUGS");
	unsigned n = 0, failed = 0;
	tally there = { 0 };

	ck_assert_msg(d != NULL, "%s cannot be read", BUGS);
	for (struct dirent *e; (e = readdir(d)) && n < MOST_FILES;)
		if (strstr(e->d_name, ".ptx") && (!only || strstr(e->d_name, only)))
			ck_assert_ptr_nonnull(name[n++] = strdup(e->d_name));
	closedir(d);
	qsort(name, n, sizeof *name, by_name);
	for (unsigned i = 0; i < n; i++) {
		planted p[2];
		for (int fixed = 0; fixed < 2; fixed++) {
			p[fixed] = (planted){ .text = read_file(name[i]) };
			snprintf(p[fixed].name, sizeof p[fixed].name, "%s", name[i]);
			choose(p[fixed].text, fixed);
			read_head(&p[fixed]);
			all_seeds(&p[fixed], fixed, &failed);
			if (i % SAMPLE_OF(1u, 4u) == 0)
				all_orders(&p[fixed], fixed, &failed);
		}
		count(&there, &p[0]);
		if (is_lenient(p[0].finds))
			only_warned(&p[0], &p[1], &failed);
		free(p[0].text);
		free(p[1].text);
	}
	for (unsigned i = 0; i < n; i++)
		free(name[i]);
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_eq(failed, 0);
	if (!only)
		enough(&there);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("emu_bugs");
	TCase *c = tcase_create("bugs");

	tcase_add_test(c, found_in_all_and_nothing_in_twins);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return test_main("emu_bugs", s);
}
