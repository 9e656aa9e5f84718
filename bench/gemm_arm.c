/* SPDX-License-Identifier: MIT */
/*
 * The sm_90a GEMM of one build, for bench/gemm_before.py, which loads the libraries of two builds and times them in turns.
 * It compiles against both: the calls that it makes are as old as the generator.
 *
 *   cc -O2 -shared -fPIC -Iinclude -IBUILD/include bench/gemm_arm.c BUILD/libcptx.a -lm -ldl -lpthread -o arm.so
 */
#include <cptx/gemm.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SETS = 8 };

/* What a choice of cptx_gemm_auto differs in, by which it goes from build to build. */
typedef struct arm_choice {
	uint32_t bm, bn, stages, group, cluster_m, cluster_n, per_sm, swap, stream_k, ctas;
} arm_choice;

typedef struct arm {
	cptx_program *program;
	cptx_launch *launch[SETS];
	uint64_t workspace;
	uint32_t sets, next;
} arm;

static cptx_device *dev;
static cptx_error err;

const char *arm_error(void);
bool arm_open(void);
uint32_t arm_choices(uint32_t half, uint64_t m, uint64_t n, uint64_t k, arm_choice *to, uint32_t most);
bool arm_load(uint32_t half, const arm_choice *c);
arm *arm_new(uint32_t half, const arm_choice *c, const uint64_t *mnk, uint32_t sets, const uint64_t *a, const uint64_t *b,
             uint64_t d);
double arm_burst(arm *x, int runs, long idle);
bool arm_once(arm *x);
void arm_free(arm *x);
uint64_t arm_alloc(uint64_t bytes);
void arm_release(uint64_t at);
bool arm_write(uint64_t at, const void *from, uint64_t bytes);
bool arm_read(void *to, uint64_t at, uint64_t bytes);
bool arm_copy(uint64_t to, uint64_t from, uint64_t bytes);

/* The text of the first error since the call before. */
const char *arm_error(void)
{
	static cptx_error last;

	last = err, err = (cptx_error){ .code = CPTX_OK };
	return last.code == CPTX_OK ? NULL : last.text;
}

bool arm_open(void)
{
	dev = cptx_device_open(getenv("CPTX_DEVICE") ? getenv("CPTX_DEVICE") : "cuda", &err);
	return dev && cptx_device_make_current(dev, &err);
}

static cptx_gemm_opt options_of(uint32_t half)
{
	const enum cptx_type type = half ? CPTX_F16 : CPTX_BF16;

	return (cptx_gemm_opt){ .mma = CPTX_GEMM_WGMMA, .a = type, .b = type, .out = type };
}

static cptx_gemm_opt taken(uint32_t half, const arm_choice *c)
{
	cptx_gemm_opt o = options_of(half);

	o.bm = c->bm, o.bn = c->bn, o.stages = c->stages, o.group = c->group, o.cluster_m = c->cluster_m;
	o.cluster_n = c->cluster_n, o.per_sm = c->per_sm, o.swap = c->swap, o.stream_k = c->stream_k;
	return o;
}

uint32_t arm_choices(uint32_t half, uint64_t m, uint64_t n, uint64_t k, arm_choice *to, uint32_t most)
{
	enum { MOST = 64 };
	static cptx_gemm_choice choice[MOST];
	const cptx_gemm_problem p = { .m = m, .n = n, .k = k };
	const cptx_gemm_opt o = options_of(half);
	const size_t count = cptx_gemm_auto(&o, &p, cptx_device_get_info(dev)->sms, choice, most < MOST ? most : MOST, &err);

	for (size_t i = 0; i < count; i++) {
		const cptx_gemm_opt *x = &choice[i].opt;
		to[i] = (arm_choice){ x->bm,        x->bn,     x->stages, x->group,    x->cluster_m,
			                  x->cluster_n, x->per_sm, x->swap,   x->stream_k, choice[i].ctas };
	}
	return (uint32_t)count;
}

static cptx_program *load(const cptx_gemm_opt *o)
{
	cptx_module *m = cptx_module_new(NULL);

	cptx_gemm_build(m, o, &err);
	cptx_program *p = err.code == CPTX_OK ? cptx_device_load(dev, m, NULL, &err) : NULL;
	cptx_module_destroy(m);
	return p;
}

/* Compiles the kernel; the driver keeps it for the next process. */
bool arm_load(uint32_t half, const arm_choice *c)
{
	const cptx_gemm_opt o = taken(half, c);
	cptx_program *p = load(&o);

	cptx_program_destroy(p);
	return p != NULL;
}

arm *arm_new(uint32_t half, const arm_choice *c, const uint64_t *mnk, uint32_t sets, const uint64_t *a, const uint64_t *b,
             uint64_t d)
{
	const cptx_gemm_opt o = taken(half, c);
	cptx_gemm_problem p = { .m = mnk[0], .n = mnk[1], .k = mnk[2], .d = d, .ctas = c->ctas };
	cptx_gemm_plan plan;
	arm *x = calloc(1, sizeof *x);

	if (!x || !cptx_gemm_check_problem(&o, &p, cptx_device_get_info(dev)->sms, &plan, &err))
		return free(x), NULL;
	if (plan.workspace) {
		x->workspace = p.workspace = cptx_mem_alloc(dev, plan.workspace, &err);
		cptx_mem_fill8(dev, p.workspace, 0, plan.workspace, &err);
	}
	x->program = load(&o), x->sets = sets;
	for (uint32_t i = 0; x->program && i < sets && i < SETS; i++) {
		p.a = a[i], p.b = b[i];
		x->launch[i] = cptx_gemm_launch(x->program, dev, &o, &p, &err);
	}
	if (err.code == CPTX_OK)
		return x;
	arm_free(x);
	return NULL;
}

/* Milliseconds of one of `runs` launches behind two that are not timed, after a rest of `idle` ns. */
double arm_burst(arm *x, int runs, long idle)
{
	cptx_event *start = cptx_event_new(dev, &err), *end = cptx_event_new(dev, &err);
	float ms = 0;

	if (idle)
		nanosleep(&(struct timespec){ .tv_nsec = idle }, NULL);
	for (int i = -2; i < runs; i++) {
		if (i == 0)
			cptx_event_record(start, NULL, &err);
		cptx_launch_run(x->launch[x->next++ % x->sets], NULL, &err);
	}
	cptx_event_record(end, NULL, &err);
	cptx_event_synchronize(end, &err);
	cptx_event_elapsed(start, end, &ms, &err);
	cptx_event_destroy(start), cptx_event_destroy(end);
	return err.code == CPTX_OK ? (double)ms / runs : 0;
}

/* One launch with the first set of operands. */
bool arm_once(arm *x) { return cptx_launch_run(x->launch[0], NULL, &err) && cptx_device_synchronize(dev, &err); }

void arm_free(arm *x)
{
	for (uint32_t i = 0; x && i < SETS; i++)
		cptx_launch_destroy(x->launch[i]);
	if (x) {
		cptx_program_destroy(x->program);
		cptx_mem_free(dev, x->workspace);
	}
	free(x);
}

uint64_t arm_alloc(uint64_t bytes) { return cptx_mem_alloc(dev, bytes, &err); }
void arm_release(uint64_t at) { cptx_mem_free(dev, at); }
bool arm_write(uint64_t at, const void *from, uint64_t bytes) { return cptx_mem_write(dev, at, from, bytes, &err); }
bool arm_read(void *to, uint64_t at, uint64_t bytes) { return cptx_mem_read(dev, to, at, bytes, &err); }
bool arm_copy(uint64_t to, uint64_t from, uint64_t bytes) { return cptx_mem_copy(dev, to, from, bytes, &err); }
