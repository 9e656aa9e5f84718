/* SPDX-License-Identifier: MIT */
#include "row_run.h"
#include "reference/number.h"
#include "examples.h"
#include "show.h"

#include <cptx/emu.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETS = 3 /* sets of buffers, used in turn so that the L2 cache does not hold the input */, MOST_INPUTS = 2 };
static const float eps = 1e-5f;

typedef struct rows_test {
	cptx_device *dev;
	const row_case *c;
	uint64_t count, bytes; /* elements and bytes of one matrix */
	float *in[MOST_INPUTS], *w, *out;
	uint64_t dev_in[SETS][MOST_INPUTS], dev_out[SETS], dev_w;
} rows_test;

const char *row_name(enum row_kernel kernel)
{
	static const char *const names[] = { "rms_norm", "softmax", "swiglu", "layer_norm" };
	return names[kernel];
}

static void build(cptx_module *m, const row_case *c)
{
	switch (c->kernel) {
	case ROW_RMS_NORM: rms_norm(m, c->n, c->threads); break;
	case ROW_SOFTMAX: softmax(m, c->n, c->threads); break;
	case ROW_SWIGLU: swiglu(m, c->threads, c->unroll); break;
	case ROW_LAYER_NORM: layer_norm(m, c->n, c->threads); break;
	}
}

static bool is_bf16(const rows_test *t) { return t->c->kernel == ROW_LAYER_NORM; }

static float as_bf16(float f) { return (float)number_value(CPTX_BF16, number_bits(CPTX_BF16, (double)f)); }

/* Copies n floats to the device, as bf16 if the kernel's elements are bf16. */
static void upload(const rows_test *t, uint64_t to, const float *from, uint64_t n, cptx_error *err)
{
	uint16_t *half = is_bf16(t) ? malloc(n * 2) : NULL;

	for (uint64_t i = 0; half && i < n; i++)
		half[i] = (uint16_t)number_bits(CPTX_BF16, (double)from[i]);
	if (half)
		cptx_mem_write(t->dev, to, half, n * 2, err);
	else if (is_bf16(t))
		err->code = CPTX_E_MEMORY, snprintf(err->text, sizeof err->text, "out of host memory");
	else
		cptx_mem_write(t->dev, to, from, n * 4, err);
	free(half);
}

/* Reads the result as floats; bf16 is widened in place, from the last element on. */
static bool download(const rows_test *t, cptx_error *err)
{
	bool ok = cptx_mem_read(t->dev, t->out, t->dev_out[0], t->bytes, err);

	for (uint64_t i = t->count; ok && is_bf16(t) && i--;) {
		uint16_t half;
		memcpy(&half, (const char *)t->out + i * 2, 2);
		t->out[i] = (float)number_value(CPTX_BF16, half);
	}
	return ok;
}

static float random_normal(uint64_t *s)
{
	double u[2];
	for (int i = 0; i < 2; i++) {
		*s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
		u[i] = ((double)(*s >> 11) + 1) / 9007199254740993.0;
	}
	return (float)(sqrt(-2 * log(u[0])) * cos(6.283185307179586 * u[1]));
}

static bool prepare(rows_test *t, cptx_error *err)
{
	unsigned inputs = t->c->kernel == ROW_SWIGLU ? 2 : 1;
	uint64_t seed = 88172645463325252u + t->c->n;
	float table[8192];

	for (int i = 0; i < 8192; i++)
		table[i] = is_bf16(t) ? as_bf16(random_normal(&seed) + 3) : random_normal(&seed);
	t->out = malloc(t->count * 4);
	t->w = malloc(t->c->n * 4u);
	for (unsigned i = 0; i < inputs; i++) {
		t->in[i] = malloc(t->count * 4);
		for (uint64_t j = 0; t->in[i] && j < t->count; j++) {
			seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
			t->in[i][j] = table[seed >> 40 & 8191];
		}
	}
	if (!t->out || !t->w || !t->in[0] || !t->in[inputs - 1]) {
		err->code = CPTX_E_MEMORY;
		snprintf(err->text, sizeof err->text, "out of host memory");
		return false;
	}
	for (uint32_t i = 0; i < t->c->n; i++)
		t->w[i] = table[i & 8191];
	t->dev_w = cptx_mem_alloc(t->dev, t->c->n * 4u, err);
	upload(t, t->dev_w, t->w, t->c->n, err);
	for (int s = 0; s < SETS; s++) {
		t->dev_out[s] = cptx_mem_alloc(t->dev, t->bytes, err);
		cptx_mem_fill8(t->dev, t->dev_out[s], 0xff, t->bytes, err);
		for (unsigned i = 0; i < inputs; i++) {
			t->dev_in[s][i] = cptx_mem_alloc(t->dev, t->bytes, err);
			upload(t, t->dev_in[s][i], t->in[i], t->count, err);
		}
	}
	return err->code == CPTX_OK;
}

static void release(rows_test *t)
{
	for (int s = 0; s < SETS; s++) {
		cptx_mem_free(t->dev, t->dev_out[s]);
		for (int i = 0; i < MOST_INPUTS; i++)
			cptx_mem_free(t->dev, t->dev_in[s][i]);
	}
	cptx_mem_free(t->dev, t->dev_w);
	for (int i = 0; i < MOST_INPUTS; i++)
		free(t->in[i]);
	free(t->w);
	free(t->out);
}

static cptx_launch *launch_for(const rows_test *t, const cptx_program *p, int set, cptx_error *err)
{
	const row_case *c = t->c;
	uint32_t vectors = (uint32_t)(t->count / 4), per_cta = c->threads * c->unroll;

	switch (c->kernel) {
	case ROW_RMS_NORM:
		return cptx_launch_new(
			p, NULL, &(cptx_launch_opt){ .grid = { c->rows }, CPTX_ARGS(t->dev_in[set][0], t->dev_w, t->dev_out[set], eps) },
			err);
	case ROW_LAYER_NORM: /* the first row of x serves as the bias */
		return cptx_launch_new(
			p, NULL,
			&(cptx_launch_opt){ .grid = { c->rows },
		                        CPTX_ARGS(t->dev_in[set][0], t->dev_w, t->dev_in[set][0], t->dev_out[set], eps) },
			err);
	case ROW_SOFTMAX:
		return cptx_launch_new(
			p, NULL, &(cptx_launch_opt){ .grid = { c->rows }, CPTX_ARGS(t->dev_in[set][0], t->dev_out[set]) }, err);
	default:
		return cptx_launch_new(
			p, NULL,
			&(cptx_launch_opt){ .grid = { (vectors + per_cta - 1) / per_cta },
		                        .block = { c->threads },
		                        CPTX_ARGS(t->dev_in[set][0], t->dev_in[set][1], t->dev_out[set], vectors) },
			err);
	}
}

/* Computes a row's result in f64. */
static void reference(const rows_test *t, const float *x, const float *b, double *y)
{
	uint32_t n = t->c->n;
	double sum = 0, top = -INFINITY, mean = 0, m2 = 0;

	for (uint32_t i = 0; i < n; i++)
		mean += (double)x[i] / n;
	for (uint32_t i = 0; i < n; i++) {
		m2 += ((double)x[i] - mean) * ((double)x[i] - mean);
		sum += (double)x[i] * (double)x[i];
		top = fmax(top, (double)x[i]);
	}
	double scale = 1 / sqrt(sum / n + (double)eps), total = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (t->c->kernel == ROW_RMS_NORM)
			y[i] = (double)x[i] * scale * (double)t->w[i];
		else if (t->c->kernel == ROW_LAYER_NORM)
			y[i] = ((double)x[i] - mean) / sqrt(m2 / n + (double)eps) * (double)t->w[i] + (double)t->in[0][i];
		else if (t->c->kernel == ROW_SOFTMAX)
			total += y[i] = exp((double)x[i] - top);
		else
			y[i] = (double)x[i] / (1 + exp(-(double)x[i])) * (double)b[i];
	}
	for (uint32_t i = 0; i < n && t->c->kernel == ROW_SOFTMAX; i++)
		y[i] /= total;
}

/* Compares with a tolerance: sums of n squares or exponentials err by a few ulp; ex2.approx and rsqrt.approx by two more.  A
 * result in bf16 is rounded once more, by half of its last of 8 bits; terms that cancel err in f32. */
static void compare(const rows_test *t, row_report *r)
{
	double *y = malloc(t->c->n * sizeof *y);

	r->elements = t->count;
	for (uint32_t row = 0; y && row < t->c->rows; row++) {
		uint64_t at = (uint64_t)row * t->c->n;
		reference(t, t->in[0] + at, t->in[1] ? t->in[1] + at : NULL, y);
		for (uint32_t i = 0; i < t->c->n; i++) {
			double allowed = is_bf16(t) ? (0x1p-8 + 1e-6) * fabs(y[i]) + 1e-4 : 4e-6 * fabs(y[i]) + 1e-12,
				   error = fabs((double)t->out[at + i] - y[i]);
			if (!(error <= allowed))
				r->wrong++;
			else if (error / allowed > r->worst)
				r->worst = error / allowed;
		}
	}
	if (!y)
		r->wrong = r->elements;
	free(y);
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/*
 * Times RUNS launches, which use the sets of buffers in turn: as one CUDA graph where the driver has graphs, so that the
 * host's launches do not count; else one by one.
 */
enum { RUNS = 60 };

typedef struct replay {
	cptx_stream *stream;
	void *graph, *exec; /* CUgraph, CUgraphExec; NULL: there is none */
	int (*launch)(void *exec, void *stream);
	cptx_launch **launches;
} replay;

static void run_all(cptx_launch *launch[SETS], cptx_stream *stream, cptx_error *err)
{
	for (int j = 0; j < RUNS; j++)
		cptx_launch_run(launch[j % SETS], stream, err);
}

static replay capture(cptx_device *dev, cptx_launch *launch[SETS], cptx_error *err)
{
	replay r = { .stream = cptx_stream_new(dev, err), .launches = launch };
	int (*begin)(void *stream, int mode), (*end)(void *stream, void **graph),
		(*make)(void **exec, void *graph, unsigned long long flags);
	void *stream = cptx_stream_handle(r.stream);

	*(void **)&begin = cptx_device_symbol(dev, "cuStreamBeginCapture_v2");
	*(void **)&end = cptx_device_symbol(dev, "cuStreamEndCapture");
	*(void **)&make = cptx_device_symbol(dev, "cuGraphInstantiateWithFlags");
	*(void **)&r.launch = cptx_device_symbol(dev, "cuGraphLaunch");
	if (!stream || !begin || !end || !make || !r.launch || !cptx_device_make_current(dev, err) ||
	    begin(stream, 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */))
		return r;
	run_all(launch, r.stream, err);
	if (end(stream, &r.graph) || make(&r.exec, r.graph, 0))
		r.exec = NULL;
	return r;
}

static void forget(cptx_device *dev, replay *r)
{
	int (*destroy_exec)(void *exec), (*destroy)(void *graph);

	*(void **)&destroy_exec = cptx_device_symbol(dev, "cuGraphExecDestroy");
	*(void **)&destroy = cptx_device_symbol(dev, "cuGraphDestroy");
	if (r->exec && destroy_exec)
		destroy_exec(r->exec);
	if (r->graph && destroy)
		destroy(r->graph);
	cptx_stream_destroy(r->stream);
}

static void play(replay *r, cptx_error *err)
{
	if (!r->exec)
		run_all(r->launches, r->stream, err);
	else if (r->launch(r->exec, cptx_stream_handle(r->stream)))
		err->code = CPTX_E_DRIVER, snprintf(err->text, sizeof err->text, "cuGraphLaunch failed");
}

static bool measure(const rows_test *t, cptx_launch *launch[SETS], row_report *r, cptx_error *err)
{
	float times[64];
	unsigned n = t->c->bursts > 64 ? 64 : t->c->bursts;
	replay graph = capture(t->dev, launch, err);
	cptx_event *start = cptx_event_new(t->dev, err), *end = cptx_event_new(t->dev, err);

	for (unsigned i = 0; i < n && err->code == CPTX_OK; i++) {
		play(&graph, err);
		cptx_event_record(start, graph.stream, err);
		play(&graph, err);
		cptx_event_record(end, graph.stream, err);
		cptx_event_synchronize(end, err);
		cptx_event_elapsed(start, end, &times[i], err);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	if (n && err->code == CPTX_OK) {
		qsort(times, n, sizeof *times, by_value);
		r->ms = (double)times[n / 2] / RUNS;
		r->gbps = (double)t->bytes * (t->c->kernel == ROW_SWIGLU ? 3 : 2) / r->ms * 1e-6;
	}
	cptx_event_destroy(start);
	cptx_event_destroy(end);
	forget(t->dev, &graph);
	return err->code == CPTX_OK;
}

static bool run(rows_test *t, row_report *r, cptx_error *err)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_launch *launch[SETS] = { NULL };

	build(m, t->c);
	cptx_program *p = cptx_device_load(t->dev, m, NULL, err);
	bool ok = p != NULL;
	for (int s = 0; ok && s < SETS; s++)
		ok = (launch[s] = launch_for(t, p, s, err)) != NULL;
	ok = ok && cptx_launch_resources(launch[0], &r->resources, err) && cptx_launch_run(launch[0], NULL, err) &&
	     download(t, err);
	if (ok)
		compare(t, r);
	if (ok && t->c->bursts && !r->wrong)
		ok = measure(t, launch, r, err);
	for (int s = 0; s < SETS; s++)
		cptx_launch_destroy(launch[s]);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	return ok;
}

bool row_check(cptx_device *dev, const row_case *c, row_report *r, cptx_error *err)
{
	rows_test t = { .dev = dev, .c = c, .count = (uint64_t)c->rows * c->n };

	*r = (row_report){ 0 };
	*err = (cptx_error){ 0 };
	t.bytes = t.count * (is_bf16(&t) ? 2 : 4);
	bool ok = prepare(&t, err) && run(&t, r, err);
	release(&t);
	return ok;
}

int row_main(const row_case *gpu_case)
{
	enum { EMULATED_ROWS = 3 };
	cptx_error err = { 0 };
	row_report r;
	row_case c = *gpu_case;
	cptx_emu_counters counters;
	cptx_device *dev = cptx_device_open(getenv("CPTX_DEVICE"), &err);

	if (!dev && err.code != CPTX_E_NO_DRIVER && err.code != CPTX_E_NO_DEVICE)
		return fprintf(stderr, "%s\n", err.text), 1;
	if (!dev) {
		fprintf(stderr, "%s\nNo GPU: here is the PTX; CPTX_DEVICE=emu:sm_90a runs it.\n", err.text);
		cptx_module *m = cptx_module_new(NULL);
		build(m, &c);
		return show(m, "sm_90a");
	}
	if (cptx_emu_get_counters(dev, &counters)) /* true on an emulator only */
		c.rows = EMULATED_ROWS, c.bursts = 0;
	bool ok = row_check(dev, &c, &r, &err);
	if (!ok)
		fprintf(stderr, "%s\n", err.text);
	else if (r.wrong)
		fprintf(stderr, "%s: %llu of %llu elements are wrong\n", row_name(c.kernel), (unsigned long long)r.wrong,
		        (unsigned long long)r.elements);
	else
		printf("%s %u x %u: all elements right", row_name(c.kernel), c.rows, c.n);
	if (ok && !r.wrong)
		r.ms > 0 ? printf(", %.2f us, %.0f GB/s\n", r.ms * 1e3, r.gbps) : printf("\n");
	cptx_device_close(dev);
	return !ok || r.wrong;
}
