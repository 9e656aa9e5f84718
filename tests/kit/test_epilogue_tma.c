/* SPDX-License-Identifier: MIT */
/* cptx/epilogue.h in persistent kernels of wgmma: accumulators of D and of D^T, chains that run where results are stored,
 * rings with a narrower last tile, maps of each store, matrices of a batch, stores that are deferred, and rows of D that
 * begin anywhere. */
#include "on_emu.h"

#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/operand.h>

typedef struct trial {
	uint32_t m, n, units; /* of a unit; units lie along the accumulator's rows */
	enum cptx_type out;
	uint32_t cols, stages; /* of a tile of the ring */
	uint32_t rows, across; /* of D, as the accumulator has them */
	uint32_t batch;        /* matrices; 0: one, without a third dimension */
	bool transposed, mn_major;
	bool at_store, hoisted, deferred, maps; /* hoisted: .acc of the ring; maps: of each store */
	bool anywhere;                          /* rows of D begin anywhere: threads store them */
} trial;

static const trial trials[] = {
	{ 64, 64, 1, CPTX_BF16, 64, 2, 136, 120, .at_store = true },
	{ 64, 96, 2, CPTX_F16, 64, 2, 200, 104, .hoisted = true },
	{ 128, 72, 1, CPTX_BF16, 32, 2, 260, 152, 2, .at_store = true, .hoisted = true, .maps = true },
	{ 64, 40, 2, CPTX_F32, 32, 2, 130, 84, .at_store = true, .maps = true },
	{ 128, 48, 1, CPTX_F32, 16, 1, 200, 96, 3, .hoisted = true },
	{ 64, 64, 1, CPTX_BF16, 64, 2, 128, 67, .transposed = true, .mn_major = true, .at_store = true },
	{ 128, 88, 2, CPTX_F16, 64, 1, 264, 177, 2, .transposed = true, .mn_major = true, .at_store = true, .hoisted = true },
	{ 64, 56, 2, CPTX_F32, 32, 2, 132, 57, .transposed = true, .mn_major = true, .hoisted = true },
	{ 128, 24, 1, CPTX_F32, 16, 3, 196, 50, 2, .transposed = true, .mn_major = true, .at_store = true },
	{ 64, 32, 1, CPTX_BF16, 32, 2, 66, 64, .transposed = true, .at_store = true },
	{ 64, 48, 1, CPTX_F16, 32, 2, 72, 90, .mn_major = true, .at_store = true },
	{ 64, 64, 1, CPTX_BF16, 16, 2, 136, 120, .hoisted = true, .deferred = true, .at_store = true },
	{ 128, 56, 2, CPTX_F16, 32, 2, 520, 160, .hoisted = true, .deferred = true, .maps = true },
	{ 64, 40, 1, CPTX_BF16, 64, 2, 130, 88, 2, .hoisted = true, .deferred = true, .at_store = true },
	{ 128, 80, 1, CPTX_BF16, 32, 1, 264, 170, 2, .transposed = true, .mn_major = true, .hoisted = true, .deferred = true,
	  .at_store = true, .maps = true },
	{ 64, 64, 1, CPTX_BF16, 64, 2, 135, 131, .at_store = true, .anywhere = true },
	{ 128, 72, 2, CPTX_F16, 32, 1, 259, 151, 2, .at_store = true, .hoisted = true, .anywhere = true },
	{ 64, 40, 2, CPTX_F32, 32, 2, 130, 43, 3, .hoisted = true, .anywhere = true },
	{ 64, 24, 1, CPTX_BF16, 16, 3, 65, 25, .anywhere = true },
};
enum { TRIALS = sizeof trials / sizeof *trials, MOST = 3 * 600 * 200, THREADS = 128, BUFFERS = 5 };

static uint32_t up(uint32_t n, uint32_t each) { return (n + each - 1) / each; }
/* Rows and columns of D. */
static uint32_t d_rows(const trial *t) { return t->transposed ? t->across : t->rows; }
static uint32_t d_cols(const trial *t) { return t->transposed ? t->rows : t->across; }
static uint32_t batch(const trial *t) { return t->batch ? t->batch : 1; }

static const char *text_of(const trial *t)
{
	static char text[100];

	snprintf(text, sizeof text, "trial %u: %ux%u of %u units, .%s", (unsigned)(t - trials), t->m, t->n, t->units,
	         cptx_type_name(t->out));
	return text;
}

/* The tile of the ring; columns beyond those of a unit are left out. */
static cptx_tile tile_of(const trial *t, uint32_t cols)
{
	cptx_tile tile = cptx_epilogue_tile(t->out, 64, t->cols);

	tile.cols = cols, tile.elem.mn_major = t->mn_major;
	tile.pitch = t->mn_major ? 0 : t->cols * cptx_type_bits(t->out) / 8;
	if (t->mn_major)
		tile.swizzle = CPTX_SWIZZLE_128B;
	return tile;
}
static uint32_t cols_of(const trial *t) { return t->cols < t->n ? t->cols : t->n; }

/* ---- kernels ---- */

typedef struct built {
	cptx_kernel *k;
	const trial *t;
	cptx_val x, c, bias_col, bias_row, out, steps, map, last_map;
	cptx_val d;                 /* the matrix of the tile, whose rows begin anywhere */
	cptx_val unit, row, col, z; /* of the tile, in the accumulator's rows and columns */
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_epilogue_ring ring;
	cptx_epilogue_deferred deferred;
} built;

/* The sums of the tile, where they are inside. */
static void fill(const built *b)
{
	cptx_kernel *k = b->k;
	const trial *t = b->t;

	CPTX_ACC_EACH(&b->acc, e)
	{
		cptx_val r = cptx_acc_row(k, &b->acc, &e, b->row), c = cptx_acc_col(k, &b->acc, &e, b->col);
		cptx_val row_ok = cptx_setp(k, r, t->rows, .cmp = CPTX_LT), col_ok = cptx_setp(k, c, t->across, .cmp = CPTX_LT);
		cptx_val line = cptx_mad(k, b->z, t->rows, r, .mode = CPTX_LO);
		cptx_val at = cptx_mad_wide(k, cptx_mad(k, line, t->across, c, .mode = CPTX_LO), 4, b->x);
		cptx_mov(k, 0.0f, .into = e.value);
		cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32, .into = e.value,
		        .when = cptx_and(k, row_ok, col_ok, .type = CPTX_PRED));
	}
}

static cptx_val low_bits(cptx_kernel *k, cptx_val v, uint32_t mask)
{
	return cptx_cvt(k, cptx_and(k, cptx_as(v, CPTX_U32), mask), .dtype = CPTX_F32, .rnd = CPTX_RN);
}

/* v + row % 4 - column % 8, of D */
static cptx_val called(cptx_kernel *k, void *user, const cptx_visit *x, cptx_val v)
{
	(void)user;
	cptx_val with_row = cptx_add(k, v, low_bits(k, x->row, 3));
	return cptx_sub(k, with_row, low_bits(k, x->col, 7));
}

static cptx_epilogue chain(built *b)
{
	cptx_kernel *k = b->k;
	const trial *t = b->t;
	cptx_epilogue e;

	cptx_epilogue_new(k, &e, .rows = cptx_imm(d_rows(t)), .cols = cptx_imm(d_cols(t)), .vec = t->anywhere ? 1 : 0,
	                  .transposed = t->transposed);
	cptx_epilogue_add(k, &e, CPTX_VISIT_SCALE, .value = cptx_immf(0.5));
	cptx_epilogue_add(k, &e, CPTX_VISIT_MATRIX, .value = cptx_immf(2), .address = b->c, .type = CPTX_BF16,
	                  .pitch = cptx_imm(d_cols(t)), .z = b->z);
	cptx_epilogue_add(k, &e, CPTX_VISIT_BIAS_COL, .address = b->bias_col);
	cptx_epilogue_add(k, &e, CPTX_VISIT_BIAS_ROW, .address = b->bias_row);
	cptx_epilogue_add(k, &e, CPTX_VISIT_CALL, .fn = called);
	cptx_epilogue_run(k, &e, &b->acc, .row = t->transposed ? b->col : b->row, .col = t->transposed ? b->row : b->col,
	                  .at_store = t->at_store);
	return e;
}

static void store(built *b, bool defer)
{
	cptx_kernel *k = b->k;
	const trial *t = b->t;
	const cptx_val none = CPTX_NONE_;
	const cptx_epilogue_dst to = { .z = t->batch && !t->anywhere ? cptx_as(b->z, CPTX_S32) : none,
		                           .map = t->maps ? b->map : none,
		                           .last_map = t->maps ? b->last_map : none };
	cptx_epilogue e = chain(b);

	if (t->anywhere)
		cptx_mad_wide(k, b->z, t->rows * t->across * cptx_type_bits(t->out) / 8, b->out, .into = b->d);
	if (defer)
		cptx_epilogue_defer_(k, CPTX_HERE, &e, &b->deferred, &to);
	else
		cptx_epilogue_store_tma_(k, CPTX_HERE, &e, &b->ring, &to);
}

/* A tile: its sums come while those of the tile before are stored. */
static void tile(built *b, cptx_val more)
{
	cptx_kernel *k = b->k;

	fill(b);
	if (!b->t->deferred) {
		store(b, false);
		return;
	}
	cptx_epilogue_deferred_store(k, &b->deferred, 0, 1);
	cptx_val step = cptx_var(k, CPTX_U32, 0);
	CPTX_FOR(k, step, b->steps, 1)
		cptx_epilogue_deferred_store(k, &b->deferred, 1, b->deferred.parts);
	cptx_epilogue_deferred_rest(k, &b->deferred, 1);
	CPTX_IF(k, more)
		store(b, true);
	CPTX_ELSE(k)
		store(b, false);
}

static void begin(built *b, cptx_module *m, const trial *t)
{
	const cptx_smem_elem elem = { .bits = 16 };
	cptx_kernel *k = cptx_kernel_begin(m, "finish", .block = { THREADS * t->units });
	*b = (built){ .k = k, .t = t };
	cptx_val map = cptx_param_bytes(k, 128, 64, "map"), last = cptx_param_bytes(k, 128, 64, "last");

	b->x = cptx_param(k, CPTX_PTR, "x"), b->c = cptx_param(k, CPTX_PTR, "c");
	b->bias_col = cptx_param(k, CPTX_PTR, "bias_col"), b->bias_row = cptx_param(k, CPTX_PTR, "bias_row");
	b->out = cptx_param(k, CPTX_PTR, "out"), b->steps = cptx_param(k, CPTX_U32, "steps");
	b->map = cptx_cvta(k, cptx_mov(k, map, .type = CPTX_U64), .space = CPTX_PARAM);
	b->last_map = cptx_cvta(k, cptx_mov(k, last, .type = CPTX_U64), .space = CPTX_PARAM);
	b->unit = cptx_shfl_sync(k, cptx_shr(k, cptx_tid_x(k), 7), 0, 31, -1, .mode = CPTX_IDX);
	cptx_tiled_mma_new(k, &b->mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = t->m, .n = t->n,
	                   .units_m = t->units, .unit = b->unit,
	                   .a_tile = { t->m * t->units, 64, .elem = elem, .swizzle = CPTX_SWIZZLE_128B },
	                   .b_tile = { t->n, 64, .elem = elem, .swizzle = CPTX_SWIZZLE_128B });
	cptx_acc_new(k, &b->mma, &b->acc);
}

static void make_ring(built *b)
{
	const trial *t = b->t;
	const cptx_val none = CPTX_NONE_;

	if (t->anywhere)
		b->d = cptx_reg(b->k, CPTX_U64);
	cptx_epilogue_ring_new(b->k, &b->ring, .type = t->out, .tile = tile_of(t, cols_of(t)),
	                       .last = tile_of(t, t->n % cols_of(t)), .map = t->maps || t->anywhere ? none : b->map,
	                       .last_map = t->maps || t->anywhere ? none : b->last_map, .address = b->d,
	                       .pitch = t->anywhere ? cptx_imm(t->across) : none, .stages = t->stages, .units = t->units,
	                       .unit = b->unit, .barrier = cptx_add(b->k, b->unit, 1), .acc = t->hoisted ? &b->acc : NULL);
	if (t->deferred)
		cptx_epilogue_deferred_new(b->k, &b->deferred, .ring = &b->ring, .batched = t->batch != 0, .maps = t->maps);
}

/* One CTA goes over all tiles. */
static cptx_module *build(const trial *t)
{
	const uint32_t down = up(t->rows, t->m * t->units), across = up(t->across, t->n), all = down * across * batch(t);
	cptx_module *m = cptx_module_new(NULL);
	built b;

	begin(&b, m, t);
	cptx_kernel *k = b.k;
	make_ring(&b);
	cptx_val at = cptx_var(k, CPTX_U32, 0);
	CPTX_FOR(k, at, cptx_imm(all), 1) {
		cptx_val line = cptx_div(k, at, across);
		b.z = cptx_div(k, line, down);
		b.row = cptx_mul(k, cptx_rem(k, line, down), t->m * t->units, .mode = CPTX_LO);
		b.col = cptx_mul(k, cptx_rem(k, at, across), t->n, .mode = CPTX_LO);
		tile(&b, cptx_setp(k, at, all - 1, .cmp = CPTX_LT));
	}
	cptx_epilogue_ring_drain(k, &b.ring, &b.acc);
	return m;
}

/* ---- runs ---- */

static float x[MOST], bias[2][600];
static uint16_t c_of[MOST];
static uint8_t out[MOST * 4];

static int drawn(uint32_t i, uint32_t most) { return (int)((i * 2654435761u >> 12) % (2 * most + 1)) - (int)most; }

static uint16_t narrowed(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, 4);
	return (uint16_t)(bits >> 16);
}

static void draw(void)
{
	for (uint32_t i = 0; i < MOST; i++)
		x[i] = (float)drawn(i + 1, 9), c_of[i] = narrowed((float)drawn(i + 555, 4));
	for (uint32_t i = 0; i < 600; i++)
		bias[0][i] = (float)drawn(i + 11, 5), bias[1][i] = (float)drawn(i + 999, 5);
	memset(out, 0xff, sizeof out);
}

/* The result in that row and column of the accumulator. */
static float right(const trial *t, uint32_t z, uint32_t row, uint32_t col)
{
	const uint32_t r = t->transposed ? col : row, c = t->transposed ? row : col;
	const float v = x[(z * t->rows + row) * t->across + col] * 0.5f;
	const float of_c = (float)number_value(CPTX_BF16, c_of[(z * d_rows(t) + r) * d_cols(t) + c]);

	return v + 2 * of_c + bias[0][c] + bias[1][r] + (float)(r % 4) - (float)(c % 8);
}

/* The stored element of D in that row and column; the accumulator's rows are contiguous, with mn_major its columns. */
static float stored(const trial *t, uint32_t z, uint32_t row, uint32_t col)
{
	const uint32_t line = t->mn_major ? col : row, within = t->mn_major ? row : col;
	const uint32_t lines = t->mn_major ? t->across : t->rows, length = t->mn_major ? t->rows : t->across;
	const uint32_t i = (z * lines + line) * length + within;
	uint16_t half;
	float v;

	if (t->out == CPTX_F32) {
		memcpy(&v, out + 4 * (size_t)i, 4);
		return v;
	}
	memcpy(&half, out + 2 * (size_t)i, 2);
	return (float)number_value(t->out, half);
}

static void make_map(cptx_device *dev, const trial *t, uint32_t cols, uint64_t to, cptx_tensor_map *map)
{
	const cptx_operand_opt o = { .type = t->out, .tile = tile_of(t, cols), .batched = t->batch != 0 };
	const cptx_operand_matrix d = { .address = to, .rows = t->rows, .cols = t->across, .batch = batch(t) };
	cptx_tensor_map_opt of;
	cptx_error err = { 0 };
	bool ok = cptx_operand_tensor_map(&o, &d, &of, &err) && cptx_tensor_map_make(dev, &of, map, &err);

	SURE(ok, "%s\n%s", text_of(t), err.text);
}

static void run(const trial *t, cptx_module *m, uint64_t seed)
{
	const size_t elements = (size_t)batch(t) * t->rows * t->across;
	const emu_buffer buffer[BUFFERS] = { { x, elements * 4, 0 },
		                                 { c_of, elements * 2, 0 },
		                                 { bias[0], sizeof bias[0], 0 },
		                                 { bias[1], sizeof bias[1], 0 },
		                                 { out, sizeof out, 0 } };
	cptx_tensor_map map[2] = { 0 };
	uint64_t at[BUFFERS];
	cptx_error err = { 0 };

	SURE(!cptx_module_error(m), "%s\n%s", text_of(t), cptx_module_error(m) ? cptx_module_error(m)->text : "");
	cptx_device *dev =
		cptx_emu_open("sm_90a", &(cptx_emu_opt){ .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3) }, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	for (int i = 0; i < BUFFERS; i++) {
		at[i] = cptx_mem_alloc(dev, buffer[i].bytes, &err);
		cptx_mem_write(dev, at[i], buffer[i].host, buffer[i].bytes, &err);
	}
	if (!t->anywhere)
		make_map(dev, t, cols_of(t), at[4], &map[0]);
	if (t->n % cols_of(t) && !t->anywhere)
		make_map(dev, t, t->n % cols_of(t), at[4], &map[1]);
	cptx_launch_once(
		p, NULL,
		CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(CPTX_ARG_BYTES(&map[0], sizeof map[0]), CPTX_ARG_BYTES(&map[1], sizeof map[1]),
	                                         at[0], at[1], at[2], at[3], at[4], (uint32_t)(seed - 1) * 3)),
		NULL, &err);
	cptx_mem_read(dev, out, at[4], sizeof out, &err);
	SURE(!err.code, "%s\n%s", text_of(t), err.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}

/* Every element, and that nothing behind them was touched.  Seed 1: no part is stored behind further stages, 2: some, 3:
 * all. */
static void check(const trial *t, uint64_t seed)
{
	cptx_module *m = build(t);
	const size_t end = (size_t)batch(t) * t->rows * t->across * cptx_type_bits(t->out) / 8;

	draw();
	run(t, m, seed);
	for (uint32_t z = 0; z < batch(t); z++)
		for (uint32_t r = 0; r < t->rows; r++)
			for (uint32_t c = 0; c < t->across; c++) {
				const float got = stored(t, z, r, c), want = right(t, z, r, c);
				SURE(got == want, "%s\nmatrix %u, row %u, column %u is %g, not %g", text_of(t), z, r, c, (double)got,
				     (double)want);
			}
	for (size_t i = end; i < sizeof out; i++)
		SURE(out[i] == 0xff, "%s\nbyte %zu behind the results is written", text_of(t), i - end);
	cptx_module_destroy(m);
}

START_TEST(results_are_right)
{
	for (uint64_t seed = 1; seed < 4; seed++)
		check(&trials[_i], seed);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the epilogues");
		return;
	}
	cptx_module *m = build(&trials[_i]);
	char *said = emu_assembles(m, "sm_90a");
	SURE(strstr(said, " 0 bytes spill stores, 0 bytes spill loads"), "%s\n%s", text_of(&trials[_i]), said);
	free(said);
	cptx_module_destroy(m);
}
END_TEST

/* ---- what is refused ---- */

static void refused(cptx_module *m, int line, const char *what)
{
	char text[200];

	snprintf(text, sizeof text, "test_epilogue_tma.c:%d: kernel finish: %s", line, what);
	emu_fails(m, "test_epilogue_tma.c", text);
}

START_TEST(misuse_is_refused)
{
	static const trial plain = { 64, 40, 1, CPTX_BF16, 32, 2, 64, 40, .hoisted = true };
	static const trial anywhere = { 64, 40, 1, CPTX_BF16, 32, 2, 64, 40, .hoisted = true, .anywhere = true };
	static const trial wide = { 64, 40, 1, CPTX_F32, 32, 2, 64, 40, .hoisted = true };
	cptx_module *m = cptx_module_new(NULL);
	cptx_epilogue e;
	built b;
	int line;

	begin(&b, m, &plain);
	cptx_epilogue_new(b.k, &e, .transposed = true), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &e, CPTX_VISIT_ROW_SUM, .address = b.x);
	refused(m, line, "CPTX_VISIT_ROW_SUM: of accumulators of D^T");
	begin(&b, m = cptx_module_new(NULL), &plain);
	cptx_epilogue_new(b.k, &e), line = __LINE__ + 1;
	cptx_epilogue_add(b.k, &e, CPTX_VISIT_MATRIX, .address = b.c, .pitch = cptx_imm(40), .z = cptx_imm(1));
	refused(m, line, "CPTX_VISIT_MATRIX: give .rows in cptx_epilogue_new");
	begin(&b, m = cptx_module_new(NULL), &plain), line = __LINE__ + 1;
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_BF16, .tile = tile_of(&plain, 32), .last = tile_of(&plain, 32));
	refused(m, line, "epilogue: .last of 64 x 32; it is as .tile, of 64 x 32, with fewer columns");
	begin(&b, m = cptx_module_new(NULL), &plain);
	make_ring(&b);
	b.ring.opt.last.cols = 0, line = __LINE__ + 1;
	cptx_epilogue_deferred_new(b.k, &b.deferred, .ring = &b.ring);
	refused(m, line, "results of 64 x 40 in subtiles of 64 x 32");
	begin(&b, m = cptx_module_new(NULL), &plain);
	make_ring(&b), b.ring.opt.map = b.ring.opt.last_map = CPTX_NONE_;
	cptx_epilogue_new(b.k, &e);
	cptx_epilogue_run(b.k, &e, &b.acc), line = __LINE__ + 1;
	cptx_epilogue_store_tma(b.k, &e, &b.ring);
	refused(m, line, "epilogue: no tensor map for the results: say .map");
	begin(&b, m = cptx_module_new(NULL), &plain), line = __LINE__ + 1;
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_BF16, .tile = tile_of(&plain, 32), .address = b.out);
	refused(m, line, "epilogue: .address of the ring without .pitch");
	begin(&b, m = cptx_module_new(NULL), &plain), line = __LINE__ + 1;
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_BF16, .tile = tile_of(&plain, 32), .map = b.map,
	                       .pitch = cptx_imm(40));
	refused(m, line, "epilogue: .pitch of the ring without .address");
	begin(&b, m = cptx_module_new(NULL), &plain), line = __LINE__ + 1;
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_BF16, .tile = tile_of(&plain, 32), .map = b.map, .address = b.out,
	                       .pitch = cptx_imm(40));
	refused(m, line, "epilogue: .address of the ring with .map");
	begin(&b, m = cptx_module_new(NULL), &plain), line = __LINE__ + 1;
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_BF16, .tile = tile_of(&plain, 32), .last_map = b.map, .address = b.out,
	                       .pitch = cptx_imm(40));
	refused(m, line, "epilogue: .address of the ring with .last_map");
	begin(&b, m = cptx_module_new(NULL), &anywhere);
	make_ring(&b);
	cptx_epilogue_new(b.k, &e);
	cptx_epilogue_run(b.k, &e, &b.acc), line = __LINE__ + 1;
	cptx_epilogue_store_tma(b.k, &e, &b.ring, .map = b.map);
	refused(m, line, "epilogue: .map of a store from a ring with .address");
	begin(&b, m = cptx_module_new(NULL), &anywhere);
	make_ring(&b);
	cptx_epilogue_new(b.k, &e, .transposed = true);
	cptx_epilogue_run(b.k, &e, &b.acc), line = __LINE__ + 1;
	cptx_epilogue_store_tma(b.k, &e, &b.ring);
	refused(m, line, "epilogue: .address with .transposed");
	begin(&b, m = cptx_module_new(NULL), &anywhere);
	make_ring(&b);
	cptx_epilogue_new(b.k, &e);
	cptx_epilogue_run(b.k, &e, &b.acc), line = __LINE__ + 1;
	cptx_epilogue_store_tma(b.k, &e, &b.ring, .z = cptx_imm(1));
	refused(m, line, "epilogue: .address with .z or .row_end");
	begin(&b, m = cptx_module_new(NULL), &anywhere);
	make_ring(&b);
	cptx_epilogue_deferred_new(b.k, &b.deferred, .ring = &b.ring);
	cptx_epilogue_new(b.k, &e);
	cptx_epilogue_run(b.k, &e, &b.acc), line = __LINE__ + 1;
	cptx_epilogue_defer(b.k, &e, &b.deferred);
	refused(m, line, "a deferred store with .address");
	begin(&b, m = cptx_module_new(NULL), &wide);
	make_ring(&b), line = __LINE__ + 1;
	cptx_epilogue_deferred_new(b.k, &b.deferred, .ring = &b.ring);
	refused(m, line, "a deferred store without .ring, one of 16-bit results");
	begin(&b, m = cptx_module_new(NULL), &plain), line = __LINE__ + 1;
	cptx_epilogue_deferred_store(b.k, &b.deferred, 0, 1);
	refused(m, line, "a deferred store that cptx_epilogue_deferred_new did not make");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "epilogue_tma");

	tcase_add_loop_test(t, results_are_right, 0, TRIALS);
	tcase_add_loop_test(t, ptxas_takes_them, 0, TRIALS);
	tcase_add_test(t, misuse_is_refused);
	return test_main("kit epilogue_tma", s);
}
