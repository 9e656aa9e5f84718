/* SPDX-License-Identifier: MIT */
/*
 * cptx/mma.h: an accumulator as the A of a second product.  O = softmax of (Q * K^T) * V over two blocks of keys, in one
 * CTA, with base 2, the row max and row sum carried over, and O not divided by the row sum.
 */
#include "../whole.h"
#include "tiles.h"

#include <cptx/cptx.h>
#include <cptx/tmem.h>

#include <math.h>

typedef struct chain {
	const char *target;
	enum cptx_mma_by by;
	enum cptx_type type;
	uint32_t m, units, keys, depth; /* rows of a unit, units along M, keys of a block, columns of Q, K and V */
} chain;

static const chain chains[] = {
	{ "sm_80", CPTX_BY_MMA_SYNC, CPTX_F16, 16, 4, 64, 64 },     { "sm_80", CPTX_BY_MMA_SYNC, CPTX_BF16, 32, 2, 48, 64 },
	{ "sm_120a", CPTX_BY_MMA_SYNC, CPTX_BF16, 16, 8, 64, 64 },  { "sm_90a", CPTX_BY_WGMMA, CPTX_BF16, 64, 2, 128, 64 },
	{ "sm_90a", CPTX_BY_WGMMA, CPTX_F16, 128, 1, 48, 128 },     { "sm_100a", CPTX_BY_TCGEN05, CPTX_BF16, 128, 1, 128, 64 },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_F16, 128, 1, 64, 128 },  { "sm_90a", CPTX_BY_WGMMA, CPTX_E4M3, 64, 2, 128, 128 },
	{ "sm_100a", CPTX_BY_TCGEN05, CPTX_E4M3, 128, 1, 64, 128 },
};

enum { BLOCKS = 2, LOWEST = -1000, PART = 32, S_AT = 0, O_AT = 128, P_AT = 256, COLUMNS = 512 };

static uint32_t rows_of(const chain *c) { return c->m * c->units; }
static uint32_t threads_of(const chain *c) { return c->units * (c->by == CPTX_BY_MMA_SYNC ? 32 : 128); }

static cptx_tile tile(const chain *c, uint32_t rows, uint32_t cols, bool mn_major)
{
	return (cptx_tile){ rows, cols, .elem = { (uint8_t)cptx_type_bits(c->type), .mn_major = mn_major },
		                .swizzle = CPTX_SWIZZLE_128B };
}

static cptx_tile tile_q(const chain *c) { return tile(c, rows_of(c), c->depth, false); }
static cptx_tile tile_k(const chain *c) { return tile(c, c->keys, c->depth, false); }
/* Of 8 bits wgmma takes V with keys contiguous alone. */
static bool by_bytes(const chain *c) { return c->type == CPTX_E4M3 && c->by == CPTX_BY_WGMMA; }
static cptx_tile tile_v(const chain *c) { return tile(c, c->depth, c->keys, !by_bytes(c)); }
/* Where V has a key, as cptx_acc_as_a has its probability. */
static uint32_t place_of(const chain *c, uint32_t key)
{
	const uint32_t h = key / 8 % 2, t = key % 8 / 2, b = key % 2;

	return by_bytes(c) ? key / 16 * 16 + 4 * t + 2 * h + b : key;
}

/* ---- kernels ---- */

/* The kernel, its tiles in shared memory, and what is kept of each row. */
typedef struct state {
	cptx_kernel *k;
	cptx_val q, kk[BLOCKS], v[BLOCKS], o, rows_out;
	cptx_val top, sum; /* row vectors: row max and row sum until now */
	cptx_tiled_mma qk, pv;
} state;

static void begin(state *x, const chain *c)
{
	const cptx_tile q = tile_q(c), kt = tile_k(c), v = tile_v(c);
	const uint32_t threads = threads_of(c), each = cptx_tile_bytes(&kt) + cptx_tile_bytes(&v);
	cptx_kernel *k = x->k;
	char name[16];

	cptx_val from_q = cptx_param(k, CPTX_PTR, "q"), from_kv = cptx_param(k, CPTX_PTR, "kv");
	x->o = cptx_param(k, CPTX_PTR, "o"), x->rows_out = cptx_param(k, CPTX_PTR, "rows");
	cptx_param(k, CPTX_U32, "n");
	x->q = filled(k, &q, from_q, threads, "q_tile");
	for (uint32_t j = 0; j < BLOCKS; j++) {
		snprintf(name, sizeof name, "k_%u", j);
		x->kk[j] = filled(k, &kt, cptx_add(k, from_kv, j * each), threads, name);
		snprintf(name, sizeof name, "v_%u", j);
		x->v[j] = filled(k, &v, cptx_add(k, from_kv, j * each + cptx_tile_bytes(&kt)), threads, name);
	}
	if (c->by != CPTX_BY_MMA_SYNC)
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, 0);
	cptx_val unit = cptx_shr(k, cptx_tid_x(k), c->by == CPTX_BY_MMA_SYNC ? 5 : 7);
	unit = cptx_shfl_sync(k, unit, 0, 31, -1, .mode = CPTX_IDX);
	cptx_tiled_mma_new(k, &x->qk, .by = c->by, .a = c->type, .b = c->type, .m = c->m, .n = c->keys, .units_m = c->units,
	                   .unit = unit, .a_tile = q, .b_tile = kt);
	cptx_tiled_mma_new(k, &x->pv, .by = c->by, .a = c->type, .b = c->type, .m = c->m, .n = c->depth, .units_m = c->units,
	                   .unit = unit, .a_from = c->by == CPTX_BY_TCGEN05 ? CPTX_A_TMEM : CPTX_A_REGS, .b_tile = v);
}

/* The row max with these parts of S; gives 2^(the old one - the new one). */
static cptx_val new_top(state *x, const cptx_acc *s, uint32_t parts)
{
	cptx_kernel *k = x->k;
	cptx_val was = cptx_acc_row_vector(k, &s[0], 0.0f), alpha = cptx_acc_row_vector(k, &s[0], 0.0f);

	for (uint32_t i = 0; i < s->rows; i++)
		cptx_mov(k, cptx_elem(x->top, i), .into = cptx_elem(was, i));
	for (uint32_t i = 0; i < parts; i++)
		cptx_acc_row_reduce(k, &s[i], CPTX_REDUCE_MAX, x->top);
	cptx_acc_row_combine(k, &s[0], CPTX_REDUCE_MAX, x->top);
	for (uint32_t i = 0; i < s->rows; i++) {
		cptx_val less = cptx_sub(k, cptx_elem(was, i), cptx_elem(x->top, i));
		cptx_ex2(k, less, .into = cptx_elem(alpha, i));
	}
	return alpha;
}

/* P = 2^(S - row max), and the row sum with it. */
static void exponentials(state *x, const cptx_acc *s, uint32_t parts, cptx_val alpha)
{
	cptx_kernel *k = x->k;
	cptx_val here = cptx_acc_row_vector(k, &s[0], 0.0f);

	for (uint32_t i = 0; i < parts; i++) {
		CPTX_ACC_EACH(&s[i], e)
		{
			cptx_sub(k, e.value, cptx_elem(x->top, e.at_row), .into = e.value);
			cptx_ex2(k, e.value, .into = e.value);
		}
		cptx_acc_row_reduce(k, &s[i], CPTX_REDUCE_SUM, here);
	}
	cptx_acc_row_combine(k, &s[0], CPTX_REDUCE_SUM, here);
	for (uint32_t i = 0; i < s->rows; i++) {
		cptx_val sum = cptx_elem(x->sum, i);
		cptx_fma(k, sum, cptx_elem(alpha, i), cptx_elem(here, i), .into = sum, .rnd = CPTX_RN);
	}
}

static void begin_rows(state *x, const cptx_acc *s)
{
	x->top = cptx_acc_row_vector(x->k, s, (float)LOWEST);
	x->sum = cptx_acc_row_vector(x->k, s, 0.0f);
}

/* Row max and row sum, by the threads that have the first column. */
static void store_rows(state *x, const cptx_acc *s)
{
	cptx_kernel *k = x->k;
	cptx_val first = s->col.kind == CPTX_VAL_REG ? cptx_setp(k, s->col, 0, .cmp = CPTX_EQ) : (cptx_val){ .kind = 0 };

	CPTX_ACC_EACH(s, e)
	{
		if (e.col)
			continue;
		cptx_val row = cptx_acc_row(k, s, &e, (cptx_val){ .kind = 0 });
		cptx_val to = cptx_mad_wide(k, row, 8, x->rows_out);
		cptx_st(k, to, cptx_elem(x->top, e.at_row), .space = CPTX_GLOBAL, .when = first);
		cptx_st(k, cptx_offset(to, 4), cptx_elem(x->sum, e.at_row), .space = CPTX_GLOBAL, .when = first);
	}
}

static void chain_in_registers(state *x, const chain *c)
{
	cptx_kernel *k = x->k;
	cptx_acc s, o;

	cptx_acc_new(k, &x->qk, &s);
	cptx_acc_new(k, &x->pv, &o);
	cptx_acc_clear(k, &o);
	begin_rows(x, &s);
	for (uint32_t j = 0; j < BLOCKS; j++) {
		cptx_mma_tile(k, &x->qk, &s, x->q, x->kk[j], .fresh = true);
		cptx_mma_wait(k, &x->qk, 0);
		cptx_val alpha = new_top(x, &s, 1);
		exponentials(x, &s, 1, alpha);
		cptx_acc_scale_rows(k, &o, alpha);
		cptx_val p = cptx_acc_as_a(k, &s, &x->pv);
		cptx_mma_tile(k, &x->pv, &o, p, x->v[j]);
		cptx_mma_wait(k, &x->pv, 0);
	}
	store_rows(x, &s);
	cptx_acc_store(k, &o, &(cptx_acc_matrix){ .address = x->o, .type = CPTX_F32, .pitch = cptx_imm(c->depth) });
}

/* One product of a thread; all threads wait for it. */
static void multiply(state *x, const cptx_tiled_mma *mma, const cptx_acc *acc, cptx_val a, cptx_val b, bool fresh,
                     cptx_val bar, uint32_t parity)
{
	cptx_kernel *k = x->k;

	CPTX_IF(k, cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ)) {
		cptx_mma_tile(k, mma, acc, a, b, .fresh = fresh);
		cptx_mma_commit(k, mma, bar);
	}
	cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_mbarrier_try_wait_parity(k, bar, parity, .space = CPTX_SHARED));
}

static void rescale(state *x, const cptx_acc *o, cptx_val alpha)
{
	for (uint32_t i = 0; i < o->n; i += PART) {
		cptx_acc part;
		cptx_acc_load(x->k, o, i, PART, &part);
		cptx_acc_scale_rows(x->k, &part, alpha);
		cptx_acc_save(x->k, o, i, &part);
	}
}

static void chain_in_tmem(state *x, const chain *c)
{
	cptx_kernel *k = x->k;
	cptx_tmem t;
	cptx_acc s, o, part[4];
	const uint32_t parts = c->keys / PART;
	cptx_val bar = cptx_mov(k, cptx_shared(k, CPTX_B64, 2), .type = CPTX_U32); /* for each of the two products */

	CPTX_IF(k, cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ)) {
		cptx_mbarrier_init(k, bar, 1, .space = CPTX_SHARED);
		cptx_mbarrier_init(k, cptx_offset(bar, 8), 1, .space = CPTX_SHARED);
	}
	CPTX_TMEM(k, &t, .columns = COLUMNS, .warp = cptx_setp(k, cptx_tid_x(k), 32, .cmp = CPTX_LT)) {
		const cptx_val p = cptx_offset(t.address, P_AT);
		cptx_acc_in_tmem(k, &x->qk, &s, cptx_offset(t.address, S_AT));
		cptx_acc_in_tmem(k, &x->pv, &o, cptx_offset(t.address, O_AT));
		for (uint32_t j = 0; j < BLOCKS; j++) {
			multiply(x, &x->qk, &s, x->q, x->kk[j], true, bar, j);
			for (uint32_t i = 0; i < parts; i++)
				cptx_acc_load(k, &s, i * PART, PART, &part[i]);
			if (!j)
				begin_rows(x, &part[0]);
			cptx_val alpha = new_top(x, part, parts);
			exponentials(x, part, parts, alpha);
			for (uint32_t i = 0; i < parts; i++)
				cptx_acc_put_a(k, &part[i], c->type, p, i * PART);
			if (j)
				rescale(x, &o, alpha);
			cptx_bar_sync(k, 0);
			multiply(x, &x->pv, &o, p, x->v[j], !j, cptx_offset(bar, 8), j);
		}
		store_rows(x, &part[0]);
		for (uint32_t i = 0; i < c->depth; i += PART) {
			cptx_acc_load(k, &o, i, PART, &part[0]);
			cptx_acc_store(k, &part[0],
			               &(cptx_acc_matrix){ .address = x->o, .type = CPTX_F32, .pitch = cptx_imm(c->depth) });
		}
	}
}

static cptx_module *build(const chain *c)
{
	cptx_module *m = cptx_module_new(NULL);
	state x = { .k = cptx_kernel_begin(m, "chain", .block = { threads_of(c) }) };

	begin(&x, c);
	if (c->by == CPTX_BY_TCGEN05)
		chain_in_tmem(&x, c);
	else
		chain_in_registers(&x, c);
	return m;
}

/* ---- tests ---- */

static matrix q, kk[BLOCKS], v[BLOCKS];
static uint8_t kv[MOST * 4];
static float o[MOST], rows[512][2];

/* As an element of P: a power of two, of which f16 has those down to 2^-24, and e4m3 those down to 2^-9. */
static double rounded(const chain *c, double p)
{
	const double least = c->type == CPTX_F16 ? 0x1p-24 : c->type == CPTX_E4M3 ? 0x1p-9 : 0;

	return p < least ? 0 : p;
}

static int score(const chain *c, uint32_t row, uint32_t key)
{
	const matrix *k = &kk[key / c->keys];
	int sum = 0;

	for (uint32_t i = 0; i < c->depth; i++)
		sum += whole_number(&q, row, i) * whole_number(k, key % c->keys, i);
	return sum;
}

static void compare_row(const chain *c, uint32_t row, uint64_t seed)
{
	double p[256], top = LOWEST, first = LOWEST, sum = 0;

	for (uint32_t j = 0; j < BLOCKS * c->keys; j++) {
		p[j] = score(c, row, j);
		top = fmax(top, p[j]);
		first = j < c->keys ? top : first;
	}
	SURE((double)rows[row][0] == top, "%s: the max of row %u is %g, not %g", c->target, row, (double)rows[row][0], top);
	for (uint32_t j = 0; j < BLOCKS * c->keys; j++) {
		const double then = j < c->keys ? first : top; /* the max when it was rounded */
		sum += exp2(p[j] - top);
		p[j] = rounded(c, exp2(p[j] - then)) * exp2(then - top);
	}
	SURE(fabs((double)rows[row][1] - sum) <= 1e-5 * sum, "%s, seed %llu: the sum of row %u is %g, not %g", c->target,
	     (unsigned long long)seed, row, (double)rows[row][1], sum);
	for (uint32_t i = 0; i < c->depth; i++) {
		double right = 0, size = 0, got = (double)o[row * c->depth + i];
		for (uint32_t j = 0; j < BLOCKS * c->keys; j++) {
			double term = p[j] * whole_number(&v[j / c->keys], i, place_of(c, j % c->keys));
			right += term, size += fabs(term);
		}
		/* wgmma cuts sums of 8 bits off 13 bits behind the point, in each of eight steps */
		SURE(fabs(got - right) <= (c->type == CPTX_E4M3 ? 0x1p-10 : 1e-5) * size + 1e-9,
		     "%s, seed %llu: row %u, column %u is %g, not %g", c->target, (unsigned long long)seed, row, i, got, right);
	}
}

static void check(const chain *c, uint64_t seed)
{
	emu_run r = {
		.target = c->target, .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .grid = 1, .pedantic = true
	};
	cptx_module *m = build(c);
	size_t bytes = 0;

	draw(&q, tile_q(c), c->type, 1, (unsigned)seed);
	for (uint32_t j = 0; j < BLOCKS; j++) {
		draw(&kk[j], tile_k(c), c->type, 1, (unsigned)seed + 3 + j);
		draw(&v[j], tile_v(c), c->type, 4, (unsigned)seed + 9 + j);
		memcpy(kv + bytes, kk[j].image, cptx_tile_bytes(&kk[j].tile));
		bytes += cptx_tile_bytes(&kk[j].tile);
		memcpy(kv + bytes, v[j].image, cptx_tile_bytes(&v[j].tile));
		bytes += cptx_tile_bytes(&v[j].tile);
	}
	r.buffer[0] = (emu_buffer){ q.image, cptx_tile_bytes(&q.tile), 0 };
	r.buffer[1] = (emu_buffer){ kv, bytes, 0 };
	r.buffer[2] = (emu_buffer){ o, rows_of(c) * c->depth * 4, 0 };
	r.buffer[3] = (emu_buffer){ rows, rows_of(c) * sizeof *rows, 0 };
	memset(o, 0xff, sizeof o), memset(rows, 0xff, sizeof rows);
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m)->text);
	emu_launch(m, &r, 0);
	for (uint32_t i = 0; i < rows_of(c); i++)
		compare_row(c, i, seed);
	cptx_module_destroy(m);
}

START_TEST(chains_are_right)
{
	const uint64_t seeds = whole() ? 100 : 3;

	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
		for (uint64_t seed = 0; seed < seeds; seed++)
			if (is_my_part(i * seeds + seed))
				check(&chains[i], seed);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the chains");
		return;
	}
	for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
		cptx_module *m = build(&chains[i]);
		unsigned kernels = 0;
		char *said = emu_assembles(m, chains[i].target);
		SURE(assembly_spills(said, &kernels) == 0 && kernels == 1, "%s: %s", chains[i].target, said);
		SURE(!strstr(said, "serialized"), "%s: %s", chains[i].target, said);
		free(said);
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "mma_chain");

	tcase_add_test(t, chains_are_right);
	tcase_add_test(t, ptxas_takes_them);
	return test_main("kit mma_chain", s);
}
