/* SPDX-License-Identifier: MIT */
/*
 * A compiler for the array language of array.h: each statement becomes a kernel while the program runs, on the device that
 * CPTX_DEVICE names.  Threads work on four neighbours at a time.  A statement of a shape that was seen before, whatever its
 * variables, is not compiled again.  Each result is compared with that of the host.  Usage: jit [PROGRAM [N]]
 */
#include "array.h"

#include <cptx/device.h>
#include <cptx/fast.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 64, LANES = 4, BLOCK = 128 };

typedef struct kernel {
	char shape[SHAPE];
	cptx_program *program;
} kernel;
typedef struct machine {
	script all;
	cptx_device *dev;
	cptx_module *module; /* emptied and filled again for each kernel */
	cptx_error err;
	kernel kernel[KERNELS];
	int nkernel, compiled, statements;
} machine;

/* ---- building kernels ---- */

typedef struct builder {
	cptx_kernel *k;
	const machine *m;
	const statement *s;
	cptx_val pointer[VARS], n, i; /* i: the first element of the thread */
	cptx_val value[VARS];         /* of each variable: what was loaded, for one lane or for all */
	cptx_val sum;
} builder;

static cptx_val of_lane(const builder *b, int var, int lane)
{
	return b->m->all.var[b->s->var[var]].single ? b->value[var] : cptx_elem(b->value[var], (uint32_t)lane);
}

static cptx_val build_node(builder *b, int at, int lane)
{
	const node *e = &b->s->node[at];
	cptx_kernel *k = b->k;

	if (e->kind == NUMBER)
		return CPTX_FAST(cptx_mov, k, e->number, .type = CPTX_F32);
	if (e->kind == INDEX)
		return CPTX_FAST(cptx_cvt, k, cptx_add(k, b->i, lane), .dtype = CPTX_F32, .atype = CPTX_U32, .rnd = CPTX_RN);
	if (e->kind == VAR)
		return of_lane(b, e->a, lane);
	cptx_val x = build_node(b, e->a, lane), y = e->kind == SQRT ? x : build_node(b, e->b, lane);
	switch (e->kind) {
	case ADD: return CPTX_FAST(cptx_add, k, x, y);
	case SUB: return CPTX_FAST(cptx_sub, k, x, y);
	case MUL: return CPTX_FAST(cptx_mul, k, x, y);
	case DIV: return CPTX_FAST(cptx_div, k, x, y, .rnd = CPTX_RN);
	case MIN_OF: return CPTX_FAST(cptx_min, k, x, y);
	case MAX_OF: return CPTX_FAST(cptx_max, k, x, y);
	default: return CPTX_FAST(cptx_sqrt, k, x, .rnd = CPTX_RN);
	}
}

static cptx_val address(builder *b, int var)
{
	return cptx_add(b->k, b->pointer[var], cptx_mul_wide(b->k, b->i, (int)sizeof(float)));
}

/* Builds the statement for `lanes` elements from b->i on. */
static void build_elements(builder *b, int lanes)
{
	cptx_kernel *k = b->k;

	for (int v = 0; v < b->s->nvar; v++) {
		bool single = b->m->all.var[b->s->var[v]].single;
		if (!v && b->s->form != EACH)
			continue; /* only written */
		cptx_val p = single ? b->pointer[v] : address(b, v);
		b->value[v] = lanes == LANES && !single ? cptx_ld(k, p, .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_F32)
		                                        : cptx_ld(k, p, .space = CPTX_GLOBAL, .type = CPTX_F32);
	}
	cptx_val turn = b->s->repeat > 1 ? cptx_var(k, CPTX_U32, 0) : cptx_imm(0);
	cptx_val result = b->s->form == EACH ? cptx_regs(k, CPTX_F32, (uint32_t)lanes) : cptx_imm(0);
	CPTX_DO(k)
	{
		for (int lane = 0; lane < lanes; lane++) {
			cptx_val x = build_node(b, b->s->value, lane);
			if (b->s->form == EACH) {
				cptx_mov(k, x, .into = cptx_elem(result, (uint32_t)lane));
			} else if (b->s->form == SUM) {
				cptx_add(k, b->sum, x, .into = b->sum);
			} else {
				cptx_val at =
					cptx_cvt(k, build_node(b, b->s->at, lane), .dtype = CPTX_S32, .atype = CPTX_F32, .rnd = CPTX_RMI);
				cptx_val in = cptx_setp(k, cptx_as(at, CPTX_U32), b->n, .cmp = CPTX_LT);
				cptx_val p = cptx_add(k, cptx_as(b->pointer[0], CPTX_S64), cptx_mul_wide(k, at, (int)sizeof(float)));
				cptx_red(k, p, x, .space = CPTX_GLOBAL, .op = CPTX_ADD, .type = CPTX_F32, .when = in);
			}
		}
		if (b->s->repeat > 1) {
			for (int lane = 0; lane < lanes; lane++)
				cptx_mov(k, cptx_elem(result, (uint32_t)lane), .into = of_lane(b, 0, lane));
			cptx_add(k, turn, 1, .into = turn);
			cptx_continue_when(k, cptx_setp(k, turn, b->s->repeat, .cmp = CPTX_LT));
		}
	}
	if (b->s->form == EACH && lanes == LANES)
		cptx_st(k, address(b, 0), result, .space = CPTX_GLOBAL, .vec = CPTX_V4);
	else if (b->s->form == EACH)
		cptx_st(k, address(b, 0), result, .space = CPTX_GLOBAL);
}

static void build(const machine *m, const statement *s)
{
	cptx_kernel *k = cptx_kernel_begin(m->module, "statement", .block = { BLOCK });
	builder b = { .k = k, .m = m, .s = s };
	char name[NAME];

	for (int v = 0; v < s->nvar; v++) {
		snprintf(name, sizeof name, "v%d", v);
		b.pointer[v] = cptx_param(k, CPTX_PTR, name);
	}
	b.n = cptx_param(k, CPTX_U32, "n");
	b.i = cptx_mul(k, cptx_mad(k, cptx_ctaid_x(k), BLOCK, cptx_tid_x(k), .mode = CPTX_LO), LANES, .mode = CPTX_LO);
	b.sum = cptx_var(k, CPTX_F32, 0.0f);
	CPTX_IF(k, cptx_setp(k, cptx_add(k, b.i, LANES), b.n, .cmp = CPTX_LE)) {
		build_elements(&b, LANES);
	}
	CPTX_ELSE(k) {
		CPTX_FOR(k, b.i, b.n, 1) {
			build_elements(&b, 1);
		}
	}
	if (s->form != SUM)
		return;
	for (int lane = 16; lane; lane /= 2)
		cptx_add(k, b.sum, cptx_shfl_sync(k, b.sum, lane, 31, -1, .mode = CPTX_BFLY), .into = b.sum);
	cptx_val first = cptx_setp(k, cptx_and(k, cptx_tid_x(k), 31, .type = CPTX_B32), 0, .cmp = CPTX_EQ, .type = CPTX_B32);
	cptx_red(k, b.pointer[0], b.sum, .space = CPTX_GLOBAL, .op = CPTX_ADD, .type = CPTX_F32, .when = first);
}

/* ---- running ---- */

static cptx_program *compiled(machine *m, const statement *s)
{
	for (int i = 0; i < m->nkernel; i++)
		if (!strcmp(m->kernel[i].shape, s->shape))
			return m->kernel[i].program;
	kernel *to = &m->kernel[m->nkernel < KERNELS - 1 ? m->nkernel++ : m->nkernel];
	cptx_program_destroy(to->program); /* the last place is used again and again */
	cptx_module_clear(m->module);
	build(m, s);
	memcpy(to->shape, s->shape, SHAPE);
	to->program = cptx_device_load(m->dev, m->module, NULL, &m->err);
	m->compiled++;
	if (!to->program)
		die("kernel", m->err.text);
	return to->program;
}

static void run_on_device(machine *m, const statement *s)
{
	cptx_program *p = compiled(m, s);
	const array *target = &m->all.var[s->var[0]];
	cptx_arg args[VARS + 1];
	float zero = 0;

	for (int v = 0; v < s->nvar; v++)
		args[v] = CPTX_ARG(m->all.var[s->var[v]].on_device);
	args[s->nvar] = CPTX_ARG(m->all.n);
	cptx_launch_opt o = { .grid = { (m->all.n + BLOCK * LANES - 1) / (BLOCK * LANES) },
		                  .nargs = (size_t)s->nvar + 1,
		                  .args = args };
	if ((s->form == SUM && !cptx_mem_write(m->dev, target->on_device, &zero, sizeof zero, &m->err)) ||
	    !cptx_launch_once(p, NULL, &o, NULL, &m->err))
		die("launch", m->err.text);
}

/* Gives a variable that is new memory on the device. */
static void place(machine *m, array *a)
{
	size_t size = m->all.n * sizeof(float);

	if (!a->on_device && (!(a->on_device = cptx_mem_alloc(m->dev, size, &m->err)) ||
	                      !cptx_mem_write(m->dev, a->on_device, a->host, size, &m->err)))
		die(a->name, m->err.text);
}

/* The largest difference between the host's and the device's elements of the target, relative above 1; prints the first. */
static float compare(machine *m, const statement *s)
{
	const array *a = &m->all.var[s->var[0]];
	uint32_t n = a->single ? 1 : m->all.n;
	float *got = malloc(n * sizeof *got), worst = 0;

	if (!got || !cptx_mem_read(m->dev, got, a->on_device, n * sizeof *got, &m->err))
		die(a->name, got ? m->err.text : "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		float off = fabsf(got[i] - a->host[i]) / fmaxf(1, fabsf(a->host[i]));
		worst = off <= worst ? worst : off; /* a NaN counts */
	}
	printf("%s[0] = %g, %s[%u] = %g: %s\n", a->name, (double)got[0], a->name, n - 1, (double)got[n - 1],
	       worst <= 1e-4f ? "right" : "WRONG");
	free(got);
	return worst;
}

int main(int argc, char **argv)
{
	static machine m;
	statement s;
	int wrong = 0;

	m.all.rest = argc > 1 ? argv[1]
	                      : "y = 2 * x + 1; z = 2 * y + 1; s = sum(x * y); y = y / s + min(i, 3);"
	                        "repeat 8 z = sqrt(z * z / 4 + x); h[1000 * x - 5] += z; t = sum(h - y);";
	m.all.n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1001;
	if (!m.all.n || m.all.n > 1u << 24) /* i is exact in f32 */
		die("N", "it is 1 to 16777216");
	m.module = cptx_module_new(NULL);
	m.dev = cptx_device_open(getenv("CPTX_DEVICE"), &m.err);
	if (!m.dev) {
		fprintf(stderr, "not run: %s\n", m.err.text);
		cptx_module_destroy(m.module);
		return m.err.code != CPTX_E_NO_DRIVER && m.err.code != CPTX_E_NO_DEVICE;
	}
	for (; read_statement(&m.all, &s); m.statements++) {
		for (int v = 0; v < s.nvar; v++)
			place(&m, &m.all.var[s.var[v]]);
		run_on_device(&m, &s);
		interpret(&m.all, &s);
		wrong += !(compare(&m, &s) <= 1e-4f);
	}
	printf("%d statements, %d kernels compiled, %d wrong\n", m.statements, m.compiled, wrong);
	for (int i = 0; i < KERNELS; i++)
		cptx_program_destroy(m.kernel[i].program);
	for (int i = 0; i < m.all.nvar; i++) {
		cptx_mem_free(m.dev, m.all.var[i].on_device);
		free(m.all.var[i].host);
	}
	cptx_device_close(m.dev);
	cptx_module_destroy(m.module);
	return wrong != 0;
}
