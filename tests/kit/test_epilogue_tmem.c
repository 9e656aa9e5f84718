/* SPDX-License-Identifier: MIT */
/* cptx/epilogue.h: results that come from tensor memory, 32 columns at once, and are stored by a ring of each warp. */
#include "on_emu.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/operand.h>
#include <cptx/tmem.h>

typedef struct trial {
	uint32_t n, cols; /* of the accumulator, of a tile */
	enum cptx_type out;
	bool transposed;
} trial;

static const trial trials[] = {
	{ 64, 64, CPTX_BF16, false }, { 96, 32, CPTX_F32, false }, { 48, 16, CPTX_F16, false },
	{ 64, 32, CPTX_S32, false },  { 64, 32, CPTX_BF16, true }, { 80, 16, CPTX_F32, true },
};
enum { TRIALS = sizeof trials / sizeof *trials, M = 128, ROWS = 104 /* of them that are inside */, MOST = 4 * M * 128 };

typedef struct built {
	cptx_kernel *k;
	cptx_epilogue e;
	cptx_epilogue_ring ring;
	cptx_acc acc;
	uint32_t seen; /* columns that came to registers */
} built;

static bool integers(const trial *t) { return t->out == CPTX_S32; }

static cptx_tile tile_of(const trial *t)
{
	const uint32_t bits = cptx_type_bits(t->out);

	if (!t->transposed)
		return cptx_epilogue_tile(t->out, 32, t->cols);
	return (cptx_tile){ .rows = 32, .cols = t->cols, .elem = { (uint8_t)bits, true, false }, .pitch = 32 * bits / 8 };
}

static cptx_tile operand(const trial *t, uint32_t rows)
{
	return (cptx_tile){
		.rows = rows, .cols = integers(t) ? 128 : 64, .elem = { .bits = integers(t) ? 8 : 16 }, .swizzle = CPTX_SWIZZLE_128B
	};
}

/* One more in each element, in the order of the columns. */
static void loaded(cptx_kernel *k, void *user, uint32_t first, const cptx_acc *part)
{
	built *b = user;

	ck_assert_uint_eq(first, b->seen);
	b->seen += part->n;
	CPTX_ACC_EACH(part, e)
	if (part->type == CPTX_S32)
		cptx_add(k, e.value, 1, .into = e.value);
	else
		cptx_add(k, e.value, 1.0f, .into = e.value);
}

/* Row + 2 * column, to tensor memory. */
static void fill(const built *b, const trial *t, cptx_val tid, cptx_val address)
{
	cptx_kernel *k = b->k;

	for (uint32_t col = 0; col < t->n; col += 16) {
		cptx_val v = cptx_regs(k, CPTX_B32, 16), to = cptx_mad(k, cptx_and(k, tid, 96), 65536, address, .mode = CPTX_LO);
		for (uint32_t i = 0; i < 16; i++) {
			cptx_val sum = cptx_add(k, tid, 2 * (col + i));
			if (integers(t))
				cptx_mov(k, cptx_as(sum, CPTX_B32), .into = cptx_elem(v, i));
			else
				cptx_cvt(k, sum, .rnd = CPTX_RN, .dtype = CPTX_F32, .into = cptx_as(cptx_elem(v, i), CPTX_F32));
		}
		cptx_tmem_store(k, cptx_offset(to, col), v, .shape = CPTX_SHAPE_32X32B, .num = 16);
	}
	cptx_tcgen05_wait(k, .op = CPTX_WAIT_ST);
}

static void begin(built *b, cptx_module *m, const trial *t)
{
	*b = (built){ .k = cptx_kernel_begin(m, "finish", .block = { M }) };
	cptx_kernel *k = b->k;
	cptx_tiled_mma mma;
	cptx_tmem tmem;
	cptx_val map = cptx_param_bytes(k, 128, 64, "map"), tid = cptx_tid_x(k);
	cptx_val warp = cptx_shfl_sync(k, cptx_shr(k, tid, 5), 0, 31, -1, .mode = CPTX_IDX);
	const enum cptx_type type = integers(t) ? CPTX_S8 : CPTX_BF16;

	cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_TCGEN05, .a = type, .b = type, .m = M, .n = t->n, .a_tile = operand(t, M),
	                   .b_tile = operand(t, t->n), .thread = tid, .warp = warp);
	CPTX_TMEM(k, &tmem, .columns = t->n, .warp = cptx_setp(k, warp, 0, .cmp = CPTX_EQ)) {
		fill(b, t, tid, tmem.address);
		cptx_acc_in_tmem(k, &mma, &b->acc, tmem.address);
		cptx_epilogue_ring_new(k, &b->ring, .type = t->out, .tile = tile_of(t), .units = 4, .unit = warp, .acc = &b->acc,
		                       .map = cptx_cvta(k, cptx_mov(k, map, .type = CPTX_U64), .space = CPTX_PARAM));
		cptx_epilogue_new(k, &b->e, .rows = cptx_imm(t->transposed ? t->n : ROWS),
		                  .cols = cptx_imm(t->transposed ? ROWS : t->n), .transposed = t->transposed,
		                  .integers = integers(t));
		if (!integers(t))
			cptx_epilogue_add(k, &b->e, CPTX_VISIT_SCALE, .value = cptx_immf(0.5));
		cptx_epilogue_run(k, &b->e, &b->acc, .at_store = true);
		cptx_epilogue_store_tma(k, &b->e, &b->ring, .loaded = loaded, .user = b);
		cptx_epilogue_ring_drain(k, &b->ring, &b->acc);
	}
}

static double element(const trial *t, const void *out, uint32_t row, uint32_t col)
{
	const size_t i = t->transposed ? (size_t)col * ROWS + row : (size_t)row * t->n + col;
	uint32_t word = t->out == CPTX_BF16 ? (uint32_t)((const uint16_t *)out)[i] << 16 : 0;
	float v;

	if (integers(t))
		return ((const int32_t *)out)[i];
	if (t->out == CPTX_F16) { /* positive, normal */
		const uint32_t h = ((const uint16_t *)out)[i];
		word = ((h & 0x7fff) << 13) + (112u << 23);
	} else if (t->out == CPTX_F32) {
		memcpy(&word, (const float *)out + i, 4);
	}
	memcpy(&v, &word, 4);
	return v;
}

START_TEST(results_are_right)
{
	const trial *t = &trials[_i];
	static char out[MOST];
	built b;
	cptx_error err = { 0 };
	cptx_tensor_map map;
	cptx_tensor_map_opt opt;
	cptx_module *m = cptx_module_new(NULL);
	const cptx_operand_opt op = { .size = CPTX_OPT_SIZE(cptx_operand_opt), .type = t->out, .tile = tile_of(t) };

	begin(&b, m, t);
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	ck_assert_uint_eq(b.seen, t->n);
	cptx_device *dev = cptx_emu_open("sm_100a", &(cptx_emu_opt){ .seed = (uint64_t)_i + 1 }, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	const uint64_t at = cptx_mem_alloc(dev, sizeof out, &err);
	const cptx_operand_matrix d = { .address = at, .rows = ROWS, .cols = t->n };
	SURE(cptx_operand_tensor_map(&op, &d, &opt, &err) && cptx_tensor_map_make(dev, &opt, &map, &err), "%s", err.text);
	cptx_launch_once(p, NULL, CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(CPTX_ARG_BYTES(&map, sizeof map))), NULL, &err);
	cptx_mem_read(dev, out, at, sizeof out, &err);
	SURE(!err.code, "%s", err.text);
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t col = 0; col < t->n; col++) {
			const double want = (row + 2 * col + 1) * (integers(t) ? 1 : 0.5), is = element(t, out, row, col);
			SURE(is == want, "trial %d: row %u, column %u: %g, not %g", _i, row, col, is, want);
		}
	cptx_program_destroy(p);
	cptx_device_close(dev);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(ptxas_takes_them)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the epilogues");
		return;
	}
	for (int i = 0; i < TRIALS; i++) {
		cptx_module *m = cptx_module_new(NULL);
		built b;
		begin(&b, m, &trials[i]);
		free(emu_assembles(m, "sm_100a"));
		cptx_module_destroy(m);
	}
}
END_TEST

START_TEST(misuse_is_refused)
{
	cptx_module *m = cptx_module_new(NULL);
	built b;

	begin(&b, m, &trials[3]);
	cptx_epilogue_new(b.k, &b.e, .integers = true);
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_RELU);
	emu_fails(m, "test_epilogue_tmem.c", "CPTX_VISIT_RELU: of an epilogue of .integers; visitors are of .f32");
	begin(&b, m = cptx_module_new(NULL), &trials[1]);
	cptx_epilogue_new(b.k, &b.e);
	cptx_epilogue_add(b.k, &b.e, CPTX_VISIT_ADD_ACC, .acc = &b.acc);
	cptx_epilogue_run(b.k, &b.e, &b.acc, .at_store = true);
	emu_fails(m, "test_epilogue_tmem.c", "CPTX_VISIT_ADD_ACC: of an accumulator in tensor memory");
	begin(&b, m = cptx_module_new(NULL), &trials[1]);
	cptx_epilogue_run(b.k, &b.e, &b.acc);
	emu_fails(m, "test_epilogue_tmem.c", "an accumulator in tensor memory; cptx_acc_load brings a part of it to registers");
	begin(&b, m = cptx_module_new(NULL), &trials[1]);
	cptx_epilogue_ring_new(b.k, &b.ring, .type = CPTX_F32, .tile = cptx_epilogue_tile(CPTX_F32, 128, 32), .acc = &b.acc);
	emu_fails(m, "test_epilogue_tmem.c", "epilogue: a tile of 128 x 32 for parts of 96 columns; it has 32 rows");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "epilogue_tmem");

	tcase_add_loop_test(t, results_are_right, 0, TRIALS);
	tcase_add_test(t, ptxas_takes_them);
	tcase_add_test(t, misuse_is_refused);
	return test_main("kit epilogue_tmem", s);
}
