/*
 * How far the estimate of registers (cptx_flow_registers) is from what ptxas takes: bench_registers FILE.ptx...
 * Kernels that call functions are left out, for ptxas decides what it makes of the calls.
 */
#include <cptx/compile.h>
#include <cptx/inspect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };
static double off[MOST];
static size_t n, calls, refused, cubins, near_cubins;

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;

	*size = 0;
	if (f && !fseek(f, 0, SEEK_END) && (text = malloc((size_t)ftell(f) + 1))) {
		*size = (size_t)ftell(f);
		rewind(f);
		*size = fread(text, 1, *size, f);
	}
	if (f)
		fclose(f);
	return text;
}

/* True: every kernel of the file is within 15 %. */
static bool compare(cptx_module *m, const cptx_verdict *v)
{
	cptx_kernel *k;
	bool all = true;

	for (size_t i = 0; (k = cptx_module_body_at(m, i)) && n < MOST; i++) {
		const cptx_usage *u = cptx_verdict_usage_of(v, cptx_body_name(k));
		if (cptx_body_is_func(k) || !u || !u->is_kernel)
			continue;
		if (cptx_item_find(k, NULL, "call")) {
			calls++, all = false;
			continue;
		}
		cptx_flow *f = cptx_flow_of(k, NULL);
		off[n] = (double)cptx_flow_registers(f) / u->registers - 1;
		all &= off[n] <= 0.15 && off[n] >= -0.15;
		n++;
		cptx_flow_destroy(f);
	}
	return all;
}

static void measure(const char *path)
{
	cptx_error err = { 0 };
	size_t size, before = n;
	char *text = read_file(path, &size);
	cptx_module *m = cptx_parse(text, size, NULL);
	const char *flag = text && strstr(text, " -c\n") ? "-c" : "-v";
	cptx_compile_opt o = { .compiler = CPTX_COMPILER_PTXAS, .verbose = true, .nflags = 1, .flags = &flag };
	cptx_cubin *c = m && !cptx_module_error(m) ? cptx_compile(text, size, &o, &err) : NULL;

	if (c) {
		cptx_verdict *v = cptx_verdict_read(cptx_cubin_log(c), strlen(cptx_cubin_log(c)), NULL);
		bool near = compare(m, v);
		cubins += n > before, near_cubins += n > before && near;
		cptx_verdict_destroy(v);
	}
	refused += !c;
	cptx_cubin_destroy(c);
	cptx_module_destroy(m);
	free(text);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const double bounds[] = { 0.05, 0.10, 0.15, 0.25, 0.50 };

	for (int i = 1; i < argc; i++)
		measure(argv[i]);
	qsort(off, n, sizeof *off, by_value);
	printf("%zu kernels of %zu files; left out: %zu with calls, %zu files refused\n", n, cubins, calls, refused);
	for (size_t b = 0; n && b < sizeof bounds / sizeof *bounds; b++) {
		size_t in = 0;
		for (size_t i = 0; i < n; i++)
			in += off[i] <= bounds[b] && off[i] >= -bounds[b];
		printf("within %2.0f %%: %5.1f %% (%zu kernels)\n", 100 * bounds[b], 100.0 * (double)in / (double)n, in);
	}
	if (n)
		printf("5th percentile %+.0f %%, median %+.0f %%, 95th %+.0f %%; files all of whose kernels are within 15 %%: %zu\n",
		       100 * off[n / 20], 100 * off[n / 2], 100 * off[n - 1 - n / 20], near_cubins);
	return 0;
}
