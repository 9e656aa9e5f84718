/* SPDX-License-Identifier: MIT */
/* Making traces at random, and computing them on the host. */
#include "trace.h"

#include <math.h>
#include <string.h>

size_t type_size(trace_type type) { return type == F64 ? 8 : 4; }

unsigned op_deps(trace_op o)
{
	switch (o) {
	case LITERAL:
	case INDEX: return 0;
	case FMA:
	case SELECT: return 3;
	case NEG:
	case ABS:
	case SQRT:
	case RCP:
	case FLOOR:
	case CEIL:
	case ROUND:
	case TRUNC:
	case NOT:
	case POPC:
	case CLZ:
	case CTZ:
	case BREV:
	case CAST:
	case BITCAST:
	case GATHER: return 1;
	default: return 2;
	}
}

uint32_t trace_add(trace *t, trace_op o, trace_type type, uint32_t a, uint32_t b, uint32_t c)
{
	t->v[t->n] = (var){ .op = (uint8_t)o, .type = (uint8_t)type, .dep = { a, b, c } };
	return t->n++;
}

uint32_t trace_literal(trace *t, trace_type type, uint64_t bits)
{
	uint32_t v = trace_add(t, LITERAL, type, 0, 0, 0);

	t->v[v].bits = bits;
	return v;
}

void trace_mark(const trace *t, bool live[MOST_VARS])
{
	for (uint32_t i = t->n; i-- > 0;) {
		live[i] |= t->v[i].op == SCATTER || t->v[i].op == SCATTER_ADD;
		for (unsigned d = 0; live[i] && d < op_deps((trace_op)t->v[i].op); d++)
			live[t->v[i].dep[d]] = true;
	}
}

/* ---- random traces ---- */

static uint32_t roll(uint64_t *state, uint32_t n)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % n);
}

/* One of the latest variables of a type. */
static uint32_t any(const trace *t, uint64_t *dice, unsigned type)
{
	uint32_t found = MOST_VARS, left = roll(dice, 4);

	for (uint32_t i = t->n; i-- > 0;)
		if (t->v[i].type == type && t->v[i].op != SCATTER) {
			found = i;
			if (!left--)
				break;
		}
	return found;
}

static bool has(trace_op o, trace_type type)
{
	bool real = type == F32 || type == F64;

	switch (o) {
	case SQRT:
	case RCP:
	case FLOOR:
	case CEIL:
	case ROUND:
	case TRUNC: return real;
	case NEG:
	case ABS: return real || type == I32;
	case NOT:
	case AND:
	case OR:
	case XOR: return !real;
	case REM:
	case MULHI:
	case SHL:
	case SHR:
	case BREV: return !real && type != BOOL;
	case POPC:
	case CLZ:
	case CTZ: return type == U32;
	case EQ:
	case NE:
	case LT:
	case LE:
	case GT:
	case GE: return type == BOOL;
	case BITCAST: return type == U32 || type == I32 || type == F32;
	case LITERAL:
	case INDEX:
	case SCATTER:
	case SCATTER_ADD: return false;
	default: return type != BOOL;
	}
}

static void add_random(trace *t, uint64_t *dice, uint32_t elements)
{
	trace_type made = (trace_type)roll(dice, TYPES), of = made;
	trace_op o = (trace_op)roll(dice, OPS);

	if (!has(o, made))
		return;
	if (o >= EQ && o <= GE)
		of = (trace_type)roll(dice, BOOL);
	if (o == POPC || o == CLZ || o == CTZ || o == BITCAST) /* bits of floats differ: those of a NaN are the machine's */
		of = (trace_type)roll(dice, F32);
	uint32_t a = any(t, dice, of), b = any(t, dice, of), c = any(t, dice, of);
	if (o == SELECT)
		a = any(t, dice, BOOL);
	if (o == SHL || o == SHR)
		b = trace_literal(t, U32, roll(dice, 40));
	if (o == REM || (o == DIV && (made == U32 || made == I32)))
		b = trace_literal(t, made, 1 + roll(dice, 1000));
	if (o == CAST)
		a = any(t, dice, (made + 1 + roll(dice, BUFFERS - 1)) % BUFFERS);
	if (o == GATHER) {
		const uint32_t at = any(t, dice, U32), last = trace_literal(t, U32, elements - 1);
		a = trace_add(t, MIN, U32, at, last, 0);
	}
	trace_add(t, o, made, a, b, c);
}

void trace_random(trace *t, uint64_t seed, uint32_t size, uint32_t elements)
{
	uint64_t dice = seed;

	t->n = 0;
	uint32_t index = trace_add(t, INDEX, U32, 0, 0, 0);
	for (unsigned type = U32; type < BUFFERS; type++)
		trace_add(t, GATHER, (trace_type)type, index, 0, 0);
	trace_add(t, LT, BOOL, trace_literal(t, U32, elements / 2), index, 0);
	while (t->n < size)
		add_random(t, &dice, elements);
	uint32_t some = trace_add(t, AND, U32, index, trace_literal(t, U32, 31), 0);
	bool adds = roll(&dice, 2);
	for (unsigned type = U32; type < BUFFERS; type++) {
		bool add = adds && (type == U32 || type == I32);
		trace_add(t, add ? SCATTER_ADD : SCATTER, (trace_type)type, add ? some : index, any(t, &dice, type), 0);
	}
}

/* ---- computing ---- */

static float f32_of(uint64_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}
static double f64_of(uint64_t bits)
{
	double f;

	memcpy(&f, &bits, sizeof f);
	return f;
}
static uint64_t of_f32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}
static uint64_t of_f64(double f)
{
	uint64_t bits;

	memcpy(&bits, &f, sizeof bits);
	return bits;
}

static uint32_t reversed(uint32_t a)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (a >> i & 1) << (31 - i);
	return r;
}

static uint64_t integer(trace_op o, uint32_t a, uint32_t b, uint32_t c, bool sign)
{
	bool less = sign ? (int32_t)a < (int32_t)b : a < b;

	uint64_t product = sign ? (uint64_t)((int64_t)(int32_t)a * (int32_t)b) : (uint64_t)a * b;

	switch (o) {
	case ADD: return (uint32_t)(a + b);
	case SUB: return (uint32_t)(a - b);
	case MUL: return (uint32_t)(a * b);
	case MULHI: return product >> 32 & UINT32_MAX;
	case DIV: return sign ? (uint32_t)((int32_t)a / (int32_t)b) : a / b;
	case REM: return sign ? (uint32_t)((int32_t)a % (int32_t)b) : a % b;
	case FMA: return (uint32_t)(a * b + c);
	case MIN: return less ? a : b;
	case MAX: return less ? b : a;
	case NEG: return (uint32_t)(0 - a);
	case ABS: return (int32_t)a < 0 ? (uint32_t)(0 - a) : a;
	case NOT: return (uint32_t)~a;
	case AND: return a & b;
	case OR: return a | b;
	case XOR: return a ^ b;
	case POPC: return (uint32_t)__builtin_popcount(a);
	case CLZ: return a ? (uint32_t)__builtin_clz(a) : 32;
	case CTZ: return a ? (uint32_t)__builtin_ctz(a) : 32;
	case BREV: return reversed(a);
	case SHL: return b > 31 ? 0 : (uint32_t)(a << b);
	case SHR: return b > 31 ? (sign && (int32_t)a < 0 ? UINT32_MAX : 0) : sign ? (uint32_t)((int32_t)a >> b) : a >> b;
	case EQ: return a == b;
	case NE: return a != b;
	case LT: return less;
	case LE: return less || a == b;
	case GT: return !less && a != b;
	default: return !less; /* GE */
	}
}

/* Operations of floats; single: in f32, where one step is rounded once. */
static uint64_t real(trace_op o, uint64_t x, uint64_t y, uint64_t z, bool single)
{
	double a = single ? (double)f32_of(x) : f64_of(x), b = single ? (double)f32_of(y) : f64_of(y);
	double c = single ? (double)f32_of(z) : f64_of(z), r = 0;

	switch (o) {
	case ADD: return single ? of_f32((float)a + (float)b) : of_f64(a + b);
	case SUB: return single ? of_f32((float)a - (float)b) : of_f64(a - b);
	case MUL: return single ? of_f32((float)a * (float)b) : of_f64(a * b);
	case DIV: return single ? of_f32((float)a / (float)b) : of_f64(a / b);
	case FMA: return single ? of_f32(fmaf((float)a, (float)b, (float)c)) : of_f64(fma(a, b, c));
	case SQRT: return single ? of_f32(sqrtf((float)a)) : of_f64(sqrt(a));
	case RCP: return single ? of_f32(1.0f / (float)a) : of_f64(1.0 / a);
	case FLOOR: r = floor(a); break;
	case CEIL: r = ceil(a); break;
	case ROUND: r = rint(a); break;
	case TRUNC: r = trunc(a); break;
	case EQ: return a == b;
	case NE: return a < b || a > b; /* false of a NaN, like the others */
	case LT: return a < b;
	case LE: return a <= b;
	case GT: return a > b;
	case GE: return a >= b;
	case MIN: r = a == b ? (signbit(a) ? a : b) : fmin(a, b); break; /* -0 is below 0 */
	case MAX: r = a == b ? (signbit(a) ? b : a) : fmax(a, b); break;
	case NEG: r = -a; break;
	default: r = fabs(a); break; /* ABS */
	}
	return single ? of_f32((float)r) : of_f64(r);
}

static uint64_t cast(trace_type to, trace_type from, uint64_t bits)
{
	double x = from == U32   ? (double)(uint32_t)bits
	           : from == I32 ? (double)(int32_t)bits
	           : from == F32 ? (double)f32_of(bits)
	                         : f64_of(bits);

	if (to == F32)
		return of_f32((float)x);
	if (to == F64)
		return of_f64(x);
	if (from == U32 || from == I32)
		return bits;
	double least = to == I32 ? INT32_MIN : 0, most = to == I32 ? INT32_MAX : UINT32_MAX;
	if (isnan(x))
		return from == F64 ? 0x80000000u : 0;
	x = trunc(x < least ? least : x > most ? most : x);
	return to == I32 ? (uint32_t)(int32_t)x : (uint32_t)x;
}

static uint64_t load(const void *from, trace_type type, uint64_t i)
{
	uint64_t bits = 0;

	memcpy(&bits, (const char *)from + i * type_size(type), type_size(type));
	return bits;
}

static uint64_t compute(const trace *t, const buffers *b, const var *v, const uint64_t *value, uint32_t index)
{
	uint64_t x[DEPS];
	trace_type of = op_deps((trace_op)v->op) ? (trace_type)t->v[v->dep[0]].type : U32;

	for (unsigned i = 0; i < DEPS; i++)
		x[i] = value[v->dep[i]];
	switch ((trace_op)v->op) {
	case LITERAL: return v->bits;
	case INDEX: return index;
	case SELECT: return x[0] ? x[1] : x[2];
	case CAST: return cast((trace_type)v->type, of, x[0]);
	case GATHER: return load(b->in[v->type], (trace_type)v->type, x[0]);
	case SCATTER:
		memcpy((char *)b->out[v->type] + x[0] * type_size((trace_type)v->type), &x[1], type_size((trace_type)v->type));
		return 0;
	case SCATTER_ADD: {
		uint64_t sum = load(b->out[v->type], (trace_type)v->type, x[0]) + x[1];
		memcpy((char *)b->out[v->type] + x[0] * type_size((trace_type)v->type), &sum, type_size((trace_type)v->type));
		return 0;
	}
	case BITCAST: return x[0];
	case NOT:
		if (of == BOOL)
			return !x[0];
		break;
	default: break;
	}
	if (of == F32 || of == F64)
		return real((trace_op)v->op, x[0], x[1], x[2], of == F32);
	return integer((trace_op)v->op, (uint32_t)x[0], (uint32_t)x[1], (uint32_t)x[2], of == I32);
}

void trace_run(const trace *t, const buffers *b)
{
	uint64_t value[MOST_VARS];
	bool live[MOST_VARS] = { false };

	trace_mark(t, live);
	for (uint32_t index = 0; index < b->n; index++)
		for (uint32_t i = 0; i < t->n; i++)
			if (live[i])
				value[i] = compute(t, b, &t->v[i], value, index);
}
