/* SPDX-License-Identifier: MIT */
/*
 * Registers alive in the cubins beside this file: as kept in cubins/expected.txt, and, where there is nvdisasm, as
 * nvdisasm -plr counts them, instruction by instruction.  CPTX_BLESS=1 writes the kept figures anew, those of nvdisasm.
 *
 * Of functions that are called nvdisasm assumes that they change what a C function may, and need what it needs: it is not
 * asked about kernels with calls.  ptxas 13.0 made the cubins of tests/corpus, `cptx gemm` and across.ptx.
 */
#include "../ask.h"
#include "../test.h"

#include <cptx/cubin.h>

#include <dirent.h>

enum { MOST = 1 << 14, OUTPUT_SIZE = 1 << 23, PATH = 4096 };
static const char *folder;
static char *message;

typedef struct kernel {
	char file[256], name[64];
	uint32_t peak, n;
	uint16_t live[MOST];
} kernel;

static unsigned char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	long n = 0;

	must(f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET), path);
	unsigned char *bytes = malloc((size_t)n + 1);
	must(bytes && fread(bytes, 1, (size_t)n, f) == (size_t)n, path);
	bytes[n] = 0, *size = (size_t)n;
	fclose(f);
	return bytes;
}

static void path_of(char path[PATH], const char *file) { snprintf(path, PATH, "%s/%s", folder, file); }

/* Counts of nvdisasm for a kernel, from "   / *0010* / ...  // | 12 |"; 0: none. */
static uint32_t counts_of(const char *text, const kernel *k, uint16_t live[MOST])
{
	char head[128];
	uint32_t n = 0;

	snprintf(head, sizeof head, "\n.text.%s:", k->name);
	const char *at = strstr(text, head);
	for (at = at ? strchr(at + 1, '\n') : NULL; at && n < k->n; at = strchr(at + 1, '\n')) {
		const char *p = at + 1 + strspn(at + 1, " \t"), *bar = strstr(p, "// |"), *end = strchr(p, '\n');
		if (!strncmp(p, "/*", 2) && bar && end && bar < end && strtoul(p + 2, NULL, 16) == n * 16)
			live[n++] = (uint16_t)strtoul(bar + 4, NULL, 10);
	}
	return n;
}

/* False: there is no nvdisasm. */
static bool disassemble(const char *path)
{
	char tool[PATH];

	if (!tool_find("nvdisasm", "CPTX_NVDISASM", tool, sizeof tool))
		return false;
	ck_assert_int_eq(tool_run((char *[]){ tool, "-c", "-lrm", "count", (char *)path, NULL }, message, OUTPUT_SIZE), 0);
	return true;
}

/* Whether it, or a function behind it, calls one. */
static bool calls(const kernel *k)
{
	char head[128];

	snprintf(head, sizeof head, "\n.text.%s:", k->name);
	const char *at = strstr(message, head), *end = at ? strstr(at + 1, "\n//-----") : NULL,
			   *call = at ? strstr(at, " CALL.") : NULL;
	return call && (!end || call < end);
}

/* Behind the end, where nothing gets to, are a branch to itself, which nvdisasm counts as the stack pointer, and what it
 * leaves out. */
static void same_as_nvdisasm(const kernel *k)
{
	static uint16_t live[MOST];

	uint32_t n = counts_of(message, k, live);
	ck_assert_msg(n, "%s, %s: nvdisasm does not know it", k->file, k->name);
	for (uint32_t i = 0; i < k->n; i++)
		ck_assert_msg((i < n && live[i] == k->live[i]) || !k->live[i], "%s, %s at 0x%x: %u alive, nvdisasm %u", k->file,
		              k->name, i * 16, k->live[i], live[i]);
}

static uint32_t sum_of(const kernel *k)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < k->n; i++)
		sum += k->live[i] * (i % 97 + 1);
	return sum;
}

static int is_cubin(const struct dirent *e) { return strstr(e->d_name, ".cubin") != NULL; }

typedef void (*kernel_fn)(const kernel *k, bool asked, void *user);

/* Calls fn for each kernel of all cubins. */
static void each_kernel(bool ask, kernel_fn fn, void *user)
{
	static kernel k;
	struct dirent **list;
	cptx_cubin_kernel of;
	cptx_error err = { .code = CPTX_OK };
	size_t size;
	int n = scandir(folder, &list, is_cubin, alphasort);

	must(n > 0, folder);
	for (int i = 0; i < n; i++) {
		char path[PATH];
		path_of(path, list[i]->d_name);
		unsigned char *bytes = read_file(path, &size);
		cptx_cubin_view *c = cptx_cubin_view_of(bytes, size, list[i]->d_name, FRESH(&err));
		ck_assert_msg(c, "%s", err.text);
		bool asked = ask && disassemble(path);
		for (size_t j = 0; cptx_cubin_view_kernel(c, j, &of); j++) {
			snprintf(k.file, sizeof k.file, "%s", list[i]->d_name);
			snprintf(k.name, sizeof k.name, "%s", of.name);
			k.n = of.code / 16;
			ck_assert_uint_le(k.n, MOST);
			k.peak = cptx_cubin_view_live(c, j, k.live, k.n, FRESH(&err));
			ck_assert_msg(k.peak, "%s: %s", k.file, err.text);
			fn(&k, asked, user);
		}
		cptx_cubin_view_destroy(c);
		free(bytes), free(list[i]);
	}
	free(list);
}

static void note(const kernel *k, bool asked, void *user)
{
	ck_assert_msg(asked, "nvdisasm");
	if (!calls(k))
		same_as_nvdisasm(k);
	fprintf(user, "%s %s %u %u\n", k->file, k->name, k->peak, sum_of(k));
}

static void compare(const kernel *k, bool asked, void *user)
{
	char line[512], path[PATH];
	size_t size;

	path_of(path, "expected.txt");
	char *expected = (char *)read_file(path, &size);
	snprintf(line, sizeof line, "%s %s %u %u\n", k->file, k->name, k->peak, sum_of(k));
	ck_assert_msg(strstr(expected, line), "not in expected.txt: %s", line);
	free(expected);
	if (asked && !calls(k))
		same_as_nvdisasm(k);
	*(unsigned *)user += asked;
}

START_TEST(alive)
{
	unsigned asked = 0;
	char path[PATH];

	if (getenv("CPTX_BLESS")) {
		path_of(path, "expected.txt");
		FILE *f = fopen(path, "w");
		must(f != NULL, path);
		each_kernel(true, note, f);
		fclose(f);
		return;
	}
	each_kernel(true, compare, &asked);
	if (!asked)
		skip("nvdisasm: compared with what is kept alone");
}
END_TEST

/* across.ptx keeps 22 numbers in registers while it divides, which the slow way of a division does in a function. */
static void across(const kernel *k, bool asked, void *user)
{
	(void)asked;
	if (strncmp(k->file, "across.", 7))
		return;
	uint32_t last = 0;
	for (uint32_t i = 0; i < k->n; i++)
		last = k->live[i] ? i : last;
	ck_assert_uint_ge(k->live[last], 22); /* of the function: its return */
	*(bool *)user = true;
}

START_TEST(behind_a_call)
{
	bool seen = false;

	each_kernel(false, across, &seen);
	ck_assert(seen);
}
END_TEST

/* Bytes of the code changed: alive, or an error with a text; operations that are not in the table are no numbers. */
START_TEST(hostile)
{
	static uint16_t live[MOST];
	char path[PATH];
	size_t size;
	cptx_error err = { .code = CPTX_OK };
	uint32_t random = 1, unknown = 0;

	path_of(path, "switches.sm_90a.cubin");
	unsigned char *bytes = read_file(path, &size);
	for (unsigned turn = 0; turn < 500; turn++) {
		unsigned char *bad = malloc(size);
		memcpy(bad, bytes, size);
		for (unsigned i = 0; i <= turn % 4; i++) {
			random = random * 1664525u + 1013904223u;
			bad[(random >> 8) % size] ^= (unsigned char)(1u << (random >> 5) % 8);
		}
		cptx_cubin_view *c = cptx_cubin_view_of(bad, size, "bad", FRESH(&err));
		for (size_t i = 0; c && i < 2; i++) {
			uint32_t n = cptx_cubin_view_live(c, i, live, MOST, FRESH(&err));
			SURE(n <= 255 && !n == (err.code != CPTX_OK) && !n == (*err.text != 0), "turn %u: %u, %s", turn, n, err.text);
			unknown += !n;
		}
		cptx_cubin_view_destroy(c);
		free(bad);
	}
	ck_assert_uint_gt(unknown, 20);
	ck_assert(!cptx_cubin_view_live(NULL, 0, NULL, 0, NULL));
	free(bytes);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("live");
	TCase *t = tcase_create("live");
	char *end = NULL;

	must(argc == 2 && (end = strrchr(argv[1], '/')), "usage: inspect_live CUBINS/expected.txt");
	*end = 0, folder = argv[1];
	must((message = malloc(OUTPUT_SIZE)) != NULL, "malloc");
	tcase_set_timeout(t, 600);
	tcase_add_test(t, alive);
	tcase_add_test(t, behind_a_call);
	tcase_add_test(t, hostile);
	suite_add_tcase(s, t);
	int status = test_main("inspect_live", s);
	free(message);
	return status;
}
