/* SPDX-License-Identifier: MIT */
/*
 * Bandwidth of the library's row kernels beside the driver's copy of as many bytes, in one run.  With arguments: MB of each
 * matrix (256), then kernels by name; each with all its vectors.  CPTX_SHAPES=1 tries many shapes; CPTX_SHAPE='threads=512
 * split=2 ...' one that is given.  CPTX_LENGTHS='4096 65536', CPTX_TYPES='bf16 f32', CPTX_K=8: of those alone.  Every
 * element is compared first.
 */
#include "reference/rows_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 3, RUNS = 24, BURSTS = 7 };

static int by_value(const void *a, const void *b)
{
	const float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* GB/s of copies from one buffer to another, bytes read and written. */
static double copy(cptx_device *dev, size_t bytes, cptx_error *err)
{
	uint64_t from[SETS], to[SETS];
	float ms[BURSTS] = { 0 };
	cptx_event *start = cptx_event_new(dev, err), *end = cptx_event_new(dev, err);

	for (int i = 0; i < SETS; i++)
		from[i] = cptx_mem_alloc(dev, bytes, err), to[i] = cptx_mem_alloc(dev, bytes, err);
	for (int b = 0; b < BURSTS && !err->code; b++) {
		cptx_event_record(start, NULL, err);
		for (int i = 0; i < RUNS; i++)
			cptx_mem_copy_async(dev, to[i % SETS], from[i % SETS], bytes, NULL, err);
		cptx_event_record(end, NULL, err);
		cptx_event_synchronize(end, err);
		cptx_event_elapsed(start, end, &ms[b], err);
	}
	for (int i = 0; i < SETS; i++)
		cptx_mem_free(dev, from[i]), cptx_mem_free(dev, to[i]);
	cptx_event_destroy(start), cptx_event_destroy(end);
	qsort(ms, BURSTS, sizeof *ms, by_value);
	return 2e-6 * (double)bytes * RUNS / (double)ms[BURSTS / 2];
}

static uint32_t vectors_of(enum cptx_rows_kernel kernel)
{
	uint32_t with = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		cptx_rows_opt o = { .kernel = kernel, .in = CPTX_F32, .n = 1, .with = 1u << i };
		cptx_error err = { .code = CPTX_OK };
		const bool vector = i == CPTX_ROWS_W || i == CPTX_ROWS_B || i == CPTX_ROWS_DW || i == CPTX_ROWS_DB;
		if (vector && cptx_rows_check(&o, NULL, 1, 0, NULL, &err))
			with |= 1u << i;
	}
	return with;
}

static int bench(cptx_device *dev, const cptx_rows_opt *shape, enum cptx_rows_kernel kernel, enum cptx_type type, uint32_t n,
                 size_t bytes, double by_copy)
{
	const uint32_t rows = (uint32_t)(bytes / n / (cptx_type_bits(type) / 8));
	cptx_rows_opt o = { .kernel = kernel, .in = type, .n = n, .with = vectors_of(kernel) };
	o.place = shape->place, o.threads = shape->threads, o.per_row = shape->per_row, o.split = shape->split,
	o.stages = shape->stages, o.rows_each = shape->rows_each, o.min_ctas = shape->min_ctas, o.chunks = shape->chunks;
	if (kernel == CPTX_ROWS_TOP_K)
		o.k = getenv("CPTX_K") ? (uint32_t)strtoul(getenv("CPTX_K"), NULL, 10) : 8;
	rows_case c = { .rows = rows, .seed = n, .bursts = BURSTS, .drawn = (1u << 19) / n < 8 ? 8 : (1u << 19) / n };
	rows_report r;
	cptx_error err = { .code = CPTX_OK };

	if (!rows_check(dev, &o, &c, &r, &err)) {
		printf("%-22s %-4s %7u x %6u  %s\n", cptx_rows_kernel_name(kernel), cptx_type_name(type), rows, n, err.text);
		return 1;
	}
	const double gbps = r.ms > 0 ? (double)r.plan.bytes / r.ms * 1e-6 : 0;
	printf("%-22s %-4s %7u x %6u  %s %9.2f us %6.0f GB/s  %.3f of copy  (%s, %u threads, %u a row, split %u, stages %u, "
	       "chunks %u, each %u, %u "
	       "registers, %u local, %u CTAs per SM, grid %u)\n",
	       cptx_rows_kernel_name(kernel), cptx_type_name(type), rows, n, r.wrong ? "WRONG" : "right", r.ms * 1e3, gbps,
	       gbps / by_copy, cptx_rows_place_name(r.plan.place), r.plan.threads, r.plan.per_row, r.plan.split, r.plan.stages,
	       r.plan.chunks, r.plan.rows_each, r.resources.regs, r.resources.local_bytes, r.resources.ctas_per_sm, r.plan.grid);
	fflush(stdout);
	return r.wrong != 0;
}

/* The best shapes by the model, for rows in registers and in shared memory. */
static int bench_shapes(cptx_device *dev, enum cptx_rows_kernel kernel, enum cptx_type type, uint32_t n, size_t bytes,
                        double by_copy)
{
	static const enum cptx_rows_place places[] = { CPTX_ROWS_REGISTERS, CPTX_ROWS_SHARED };
	const cptx_device_info *info = cptx_device_get_info(dev);
	const uint32_t rows = (uint32_t)(bytes / n / (cptx_type_bits(type) / 8));
	int failed = 0;

	for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
		cptx_rows_opt o = { .kernel = kernel, .in = type, .n = n, .with = vectors_of(kernel), .place = places[p] };
		o.bandwidth = cptx_rows_bandwidth(info);
		cptx_rows_choice best[8];
		cptx_error err = { .code = CPTX_OK };
		const size_t most = places[p] == CPTX_ROWS_REGISTERS ? 2 : 6;
		const size_t found = cptx_rows_auto(&o, cptx_target_find(info->target), rows, info->sms, best, most, &err);
		for (size_t i = 0; i < found; i++) {
			printf("predicted %7.2f us: ", best[i].us);
			failed |= bench(dev, &best[i].opt, kernel, type, n, bytes, by_copy);
		}
	}
	return failed;
}

/* Whether a list of words, NULL: any, has the word. */
static bool listed(const char *list, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return !list;
}

/* One kernel and type, all lengths. */
static int bench_lengths(cptx_device *dev, const cptx_rows_opt *shape, const char *name, enum cptx_type type, size_t bytes,
                         double by_copy)
{
	static const uint32_t all[] = {
		256, 1024, 4096, 8192, 16384, 32768, 50304, 65536, 98304, 128256, 131072, 200064, 262144
	};
	const char *lengths = getenv("CPTX_LENGTHS");
	const enum cptx_rows_kernel kernel = cptx_rows_kernel_find(name);
	const bool shapes = getenv("CPTX_SHAPES");
	int failed = 0;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		char text[16];
		snprintf(text, sizeof text, "%u", all[i]);
		if (!listed(lengths ? lengths : "1024 4096 8192 16384 32768 65536 131072 262144", text))
			continue;
		failed |= shapes ? bench_shapes(dev, kernel, type, all[i], bytes, by_copy)
		                 : bench(dev, shape, kernel, type, all[i], bytes, by_copy);
	}
	return failed;
}

int main(int argc, char **argv)
{
	static const enum cptx_type types[] = { CPTX_BF16, CPTX_F32 };
	static char *const usual[] = { "rms-norm", "softmax", "cross-entropy", "rms-norm-backward" };
	const size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 256) << 20;
	char *const *names = argc > 2 ? argv + 2 : usual;
	const int kernels = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof *usual);
	cptx_error err = { .code = CPTX_OK };
	cptx_rows_opt shape = { .place = CPTX_ROWS_AUTO };
	cptx_device *dev = cptx_device_open(getenv("CPTX_DEVICE"), &err);
	int failed = 0;

	const double by_copy = dev ? copy(dev, bytes, &err) : 0;
	if (!err.code && getenv("CPTX_SHAPE"))
		cptx_rows_options_read(getenv("CPTX_SHAPE"), &shape, &err);
	if (err.code)
		return fprintf(stderr, "%s\n", err.text), 1;
	printf("copy of %zu MB: %.0f GB/s\n", bytes >> 20, by_copy);
	for (int n = 0; n < kernels; n++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++)
			if (listed(getenv("CPTX_TYPES"), cptx_type_name(types[t])))
				failed |= bench_lengths(dev, &shape, names[n], types[t], bytes, by_copy);
	cptx_device_close(dev);
	return failed;
}
