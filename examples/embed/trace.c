/* SPDX-License-Identifier: MIT */
/*
 * A translator of traces (trace.h) to PTX, as the back end of a tracing compiler has it: one call for each variable, by a
 * place of its own for each operation and type, so that nothing is matched again; threads stride over the elements; kernels
 * are found again by the hash of their module.  Random traces run on the device that CPTX_DEVICE names, and every element is
 * compared with that of the host, bit by bit.  Usage: trace [TRACES [SIZE]]
 */
#include "trace.h"

#include <cptx/device.h>
#include <cptx/fast.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 500, BLOCK = 128, KERNELS = 512 };
static const enum cptx_type cptx_of[TYPES] = { CPTX_U32, CPTX_S32, CPTX_F32, CPTX_F64, CPTX_PRED };
static const enum cptx_type bits_of[TYPES] = { CPTX_B32, CPTX_B32, CPTX_B32, CPTX_B64, CPTX_PRED };

/* ---- translating ---- */

typedef struct translator {
	cptx_kernel *k;
	const trace *t;
	cptx_val in[BUFFERS], out[BUFFERS], index;
	cptx_val value[MOST_VARS];
} translator;

static cptx_val literal(cptx_kernel *k, const var *v)
{
	cptx_val x = v->type == F32   ? cptx_f32_bits((uint32_t)v->bits)
	             : v->type == F64 ? cptx_f64_bits(v->bits)
	                              : cptx_imm(v->type == I32 ? (int32_t)v->bits : (int64_t)v->bits);

	return cptx_mov(k, x, .type = cptx_of[v->type]);
}

/* Numbers become integers cut towards 0, and floats rounded. */
static cptx_val cast(cptx_kernel *k, cptx_val a, trace_type to, trace_type from)
{
	bool from_real = from == F32 || from == F64, to_real = to == F32 || to == F64;

	if (!from_real && !to_real)
		return cptx_as(a, cptx_of[to]);
	if (from == F32 && to == F64)
		return cptx_cvt(k, a, .dtype = CPTX_F64, .atype = CPTX_F32);
	if (!from_real && to == F64)
		return cptx_cvt(k, a, .dtype = CPTX_F64, .atype = cptx_of[from], .rnd = CPTX_RN);
	return cptx_cvt(k, a, .dtype = cptx_of[to], .atype = cptx_of[from], .rnd = to_real ? CPTX_RN : CPTX_RZI);
}

static cptx_val address(translator *r, cptx_val buffer, cptx_val index, trace_type type)
{
	static cptx_again offset, sum;
	cptx_val at = CPTX_AGAIN(cptx_mul_wide, &offset, r->k, index, (int)type_size(type), .type = CPTX_U32);

	return CPTX_AGAIN(cptx_add, &sum, r->k, buffer, at);
}

/* Operations of floats, each rounded once: without .rnd ptxas would make one of two. */
static cptx_val real(cptx_kernel *k, cptx_again *at, trace_op o, cptx_val a, cptx_val b, cptx_val c)
{
	switch (o) {
	case ADD: return CPTX_AGAIN(cptx_add, at, k, a, b, .rnd = CPTX_RN);
	case SUB: return CPTX_AGAIN(cptx_sub, at, k, a, b, .rnd = CPTX_RN);
	case MUL: return CPTX_AGAIN(cptx_mul, at, k, a, b, .rnd = CPTX_RN);
	case DIV: return CPTX_AGAIN(cptx_div, at, k, a, b, .rnd = CPTX_RN);
	case FMA: return CPTX_AGAIN(cptx_fma, at, k, a, b, c, .rnd = CPTX_RN);
	default: return CPTX_AGAIN(cptx_sqrt, at, k, a, .rnd = CPTX_RN); /* SQRT */
	}
}

static cptx_val integer(cptx_kernel *k, cptx_again *at, trace_op o, cptx_val a, cptx_val b, cptx_val c)
{
	switch (o) {
	case ADD: return CPTX_AGAIN(cptx_add, at, k, a, b);
	case SUB: return CPTX_AGAIN(cptx_sub, at, k, a, b);
	case MUL: return CPTX_AGAIN(cptx_mul, at, k, a, b, .mode = CPTX_LO);
	default: return CPTX_AGAIN(cptx_mad, at, k, a, b, c, .mode = CPTX_LO); /* FMA */
	}
}

static cptx_val translate(translator *r, const var *v)
{
	static cptx_again places[OPS][TYPES];
	trace_type type = (trace_type)v->type, of = op_deps((trace_op)v->op) ? (trace_type)r->t->v[v->dep[0]].type : U32;
	cptx_again *at = &places[v->op][of];
	cptx_kernel *k = r->k;
	cptx_val a = r->value[v->dep[0]], b = r->value[v->dep[1]], c = r->value[v->dep[2]];

	switch ((trace_op)v->op) {
	case LITERAL: return literal(k, v);
	case INDEX: return r->index;
	case ADD:
	case SUB:
	case MUL:
	case DIV:
	case FMA:
	case SQRT:
		return of == F32 || of == F64 ? real(k, at, (trace_op)v->op, a, b, c) : integer(k, at, (trace_op)v->op, a, b, c);
	case MIN: return CPTX_AGAIN(cptx_min, at, k, a, b);
	case MAX: return CPTX_AGAIN(cptx_max, at, k, a, b);
	case NEG: return CPTX_AGAIN(cptx_neg, at, k, a);
	case ABS: return CPTX_AGAIN(cptx_abs, at, k, a);
	case NOT: return cptx_as(CPTX_AGAIN(cptx_not, at, k, a, .type = bits_of[of]), cptx_of[type]);
	case AND: return cptx_as(CPTX_AGAIN(cptx_and, at, k, a, b, .type = bits_of[of]), cptx_of[type]);
	case XOR: return cptx_as(CPTX_AGAIN(cptx_xor, at, k, a, b, .type = bits_of[of]), cptx_of[type]);
	case SHL: return cptx_as(CPTX_AGAIN(cptx_shl, at, k, a, b, .type = CPTX_B32), cptx_of[type]);
	case SHR: return CPTX_AGAIN(cptx_shr, at, k, a, b, .type = cptx_of[type]);
	case EQ: return CPTX_AGAIN(cptx_setp, at, k, a, b, .cmp = CPTX_EQ, .type = cptx_of[of]);
	case LT: return CPTX_AGAIN(cptx_setp, at, k, a, b, .cmp = CPTX_LT, .type = cptx_of[of]);
	case LE: return CPTX_AGAIN(cptx_setp, at, k, a, b, .cmp = CPTX_LE, .type = cptx_of[of]);
	case SELECT: return CPTX_AGAIN(cptx_selp, &places[SELECT][type], k, b, c, a, .type = cptx_of[type]);
	case CAST: return cast(k, a, type, of);
	case GATHER:
		return CPTX_AGAIN(cptx_ld, &places[GATHER][type], k, address(r, r->in[type], a, type), .space = CPTX_GLOBAL,
		                  .type = cptx_of[type]);
	case SCATTER:
		CPTX_AGAIN(cptx_st, &places[SCATTER][type], k, address(r, r->out[type], a, type), b, .space = CPTX_GLOBAL,
		           .type = cptx_of[type]);
		break;
	case OPS: break;
	}
	return cptx_imm(0);
}

static void build(cptx_module *m, const trace *t)
{
	cptx_kernel *k = cptx_kernel_begin(m, "trace", .block = { BLOCK });
	translator r = { .k = k, .t = t };
	bool live[MOST_VARS] = { false };
	char name[8];

	for (int i = 0; i < 2 * BUFFERS; i++) {
		snprintf(name, sizeof name, "p%d", i);
		*(i < BUFFERS ? &r.in[i] : &r.out[i - BUFFERS]) = cptx_param(k, CPTX_PTR, name);
	}
	cptx_val n = cptx_param(k, CPTX_U32, "n"), step = cptx_mul(k, cptx_nctaid_x(k), BLOCK, .mode = CPTX_LO);
	r.index = cptx_mad(k, cptx_ctaid_x(k), BLOCK, cptx_tid_x(k), .mode = CPTX_LO);
	trace_mark(t, live);
	CPTX_FOR(k, r.index, n, step) {
		for (uint32_t i = 0; i < t->n; i++)
			if (live[i])
				r.value[i] = translate(&r, &t->v[i]);
	}
}

/* ---- running ---- */

typedef struct machine {
	cptx_device *dev;
	cptx_module *module;
	cptx_ptx *scratch;
	cptx_error err;
	cptx_hash hash[KERNELS];
	cptx_program *program[KERNELS];
	int compiled;
	uint64_t in[BUFFERS], out[BUFFERS];
} machine;

static void die(const machine *m)
{
	fprintf(stderr, "trace: %s\n", m->err.text);
	exit(1);
}

/* The program of the module, compiled if no kernel with its hash was. */
static cptx_program *compiled(machine *m)
{
	const cptx_hash_opt *o = CPTX_OPT(cptx_hash_opt, .any_registers = true, .scratch = m->scratch);
	cptx_hash h;
	int i = 0;

	if (!cptx_module_hash(m->module, cptx_device_get_info(m->dev)->target, o, &h, &m->err))
		die(m);
	while (i < m->compiled && memcmp(&m->hash[i], &h, sizeof h))
		i++;
	if (i == m->compiled && i < KERNELS) {
		m->hash[m->compiled] = h;
		m->program[m->compiled++] = cptx_device_load(m->dev, m->module, NULL, &m->err);
	}
	if (i == KERNELS) {
		fprintf(stderr, "trace: at most %d kernels are kept; ask for fewer traces\n", KERNELS);
		exit(1);
	}
	if (!m->program[i])
		die(m);
	return m->program[i];
}

static void run_on_device(machine *m, const trace *t, const buffers *b)
{
	cptx_arg args[2 * BUFFERS + 1];

	cptx_module_clear(m->module);
	build(m->module, t);
	for (int i = 0; i < BUFFERS; i++)
		args[i] = CPTX_ARG(m->in[i]), args[BUFFERS + i] = CPTX_ARG(m->out[i]);
	args[2 * BUFFERS] = CPTX_ARG(b->n);
	cptx_launch_opt o = { .grid = { 2 }, .nargs = 2 * BUFFERS + 1, .args = args };
	if (!cptx_launch_once(compiled(m), "trace", &o, NULL, &m->err))
		die(m);
}

static bool is_same(trace_type type, const void *a, const void *b)
{
	float f[2];
	double d[2];

	if (!memcmp(a, b, type_size(type)))
		return true;
	memcpy(&f[0], a, sizeof *f), memcpy(&f[1], b, sizeof *f);
	if (type == F32)
		return isnan(f[0]) && isnan(f[1]);
	memcpy(&d[0], a, type_size(type)), memcpy(&d[1], b, type_size(type));
	return type == F64 && isnan(d[0]) && isnan(d[1]);
}

/* How many elements of the device are others than those of the host; the first is told. */
static unsigned compare(machine *m, const trace *t, const buffers *b, int number)
{
	static uint64_t got[ELEMENTS];
	unsigned wrong = 0;

	run_on_device(m, t, b);
	trace_run(t, b);
	for (int type = 0; type < BUFFERS; type++) {
		size_t size = type_size((trace_type)type);
		if (!cptx_mem_read(m->dev, got, m->out[type], b->n * size, &m->err))
			die(m);
		for (uint32_t i = 0; i < b->n; i++)
			if (!is_same((trace_type)type, (char *)got + i * size, (char *)b->out[type] + i * size) && !wrong++)
				printf("trace %d, type %d, element %u is WRONG\n", number, type, i);
	}
	return wrong;
}

/* Fills what is read with small numbers of both signs. */
static void fill(machine *m, buffers *b)
{
	static uint64_t memory[2][BUFFERS][ELEMENTS];

	b->n = ELEMENTS;
	for (int type = 0; type < BUFFERS; type++) {
		b->in[type] = memory[0][type], b->out[type] = memory[1][type];
		for (uint32_t i = 0; i < b->n; i++) {
			int x = (int)(i * 7919 % 1000) - (type == U32 ? 0 : 500);
			float f = (float)x / 16;
			double d = (double)x / 32;
			memcpy((char *)b->in[type] + i * type_size((trace_type)type),
			       type == F32   ? (void *)&f
			       : type == F64 ? (void *)&d
			                     : (void *)&x,
			       type_size((trace_type)type));
		}
		size_t size = b->n * type_size((trace_type)type);
		if (!(m->in[type] = cptx_mem_alloc(m->dev, size, &m->err)) ||
		    !(m->out[type] = cptx_mem_alloc(m->dev, size, &m->err)) ||
		    !cptx_mem_write(m->dev, m->in[type], b->in[type], size, &m->err))
			die(m);
	}
}

int main(int argc, char **argv)
{
	static machine m;
	static trace t;
	buffers b;
	int traces = argc > 1 ? atoi(argv[1]) : 20;
	uint32_t size = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 60;
	unsigned wrong = 0;

	m.dev = cptx_device_open(getenv("CPTX_DEVICE"), &m.err);
	if (!m.dev) {
		fprintf(stderr, "not run: %s\n", m.err.text);
		return m.err.code != CPTX_E_NO_DRIVER && m.err.code != CPTX_E_NO_DEVICE;
	}
	m.module = cptx_module_new(NULL), m.scratch = cptx_ptx_new(NULL);
	fill(&m, &b);
	size = size < 12 ? 12 : size > MOST_VARS - 12 ? MOST_VARS - 12 : size;
	for (int i = 0; i < traces; i++) { /* each comes twice: its kernel is compiled once */
		trace_random(&t, (uint64_t)(i / 2) * 77 + 1, size, b.n);
		wrong += compare(&m, &t, &b, i);
	}
	printf("%d traces of %u variables, %d kernels compiled, %u elements wrong: %s\n", traces, size, m.compiled, wrong,
	       wrong ? "WRONG" : "all right");
	for (int i = 0; i < m.compiled; i++)
		cptx_program_destroy(m.program[i]);
	for (int i = 0; i < BUFFERS; i++)
		cptx_mem_free(m.dev, m.in[i]), cptx_mem_free(m.dev, m.out[i]);
	cptx_ptx_destroy(m.scratch);
	cptx_module_destroy(m.module);
	cptx_device_close(m.dev);
	return wrong != 0;
}
