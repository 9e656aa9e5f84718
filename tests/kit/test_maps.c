/* SPDX-License-Identifier: MIT */
/* Tensor maps of another box, swizzle or type than the tiles that a kernel copies by them are refused when it is launched.
 */
#include "on_emu.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>

enum { THREADS = 128, SIDE = 512 };

struct map_args {
	uint32_t n;
	cptx_tensor_map_opt a, last;
};
static const cptx_param_row rows[] = {
	CPTX_PARAM_ROW(struct map_args, CPTX_U32, n),
	CPTX_PARAM_MAP(struct map_args, a),
	CPTX_PARAM_MAP(struct map_args, last),
};
static const cptx_tile wide = { 128, 64, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B };
static const cptx_tile low = { 64, 32, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_64B };

/* A kernel, and a device that has it. */
typedef struct bench {
	cptx_module *m;
	cptx_kernel *k;
	cptx_params p;
	cptx_device *dev;
	cptx_program *program;
	struct map_args args;
	cptx_error err;
} bench;

static void begin(bench *b, uint32_t units)
{
	*b = (bench){ .m = cptx_module_new(NULL) };
	b->k = cptx_kernel_begin(b->m, "copy", .block = { THREADS * units });
	cptx_params_declare(b->k, &b->p, rows, CPTX_PARAM_COUNT(rows));
}

static void load(bench *b)
{
	const cptx_error *built = cptx_module_error(b->m);

	SURE(!built, "%s", built ? built->text : "");
	b->dev = cptx_emu_open("sm_90a", NULL, &b->err);
	b->program = cptx_device_load(b->dev, b->m, NULL, &b->err);
	SURE(b->program != NULL, "%s", b->err.text);
}

static void end(bench *b)
{
	cptx_program_destroy(b->program);
	cptx_device_close(b->dev);
	cptx_module_destroy(b->m);
}

/* A launch is prepared, or refused with all these words. */
static void tried(bench *b, const char *const *words)
{
	const cptx_params_part part = { rows, CPTX_PARAM_COUNT(rows), &b->args };

	b->err = (cptx_error){ .code = CPTX_OK };
	cptx_launch *l = cptx_params_launch(b->program, b->dev, NULL, &part, 1, CPTX_LAUNCH(.grid = { 1 }), &b->err);
	SURE(words ? !l : l != NULL, "%s", words ? words[0] : b->err.text);
	for (; words && *words; words++)
		SURE(strstr(b->err.text, *words) != NULL, "%s\nlacks: %s", b->err.text, *words);
	cptx_launch_destroy(l);
}
#define REFUSED(b, ...) tried(b, (const char *const[]){ "test_maps.c:", __VA_ARGS__, NULL })

static cptx_operand_opt operand(enum cptx_type type, cptx_tile tile)
{
	return (cptx_operand_opt){ .size = CPTX_OPT_SIZE(cptx_operand_opt), .type = type, .tile = tile };
}

static cptx_tensor_map_opt map_of(const cptx_operand_opt *o)
{
	const cptx_operand_matrix m = { .address = 4096, .rows = SIDE, .cols = SIDE, .batch = 3, .batch2 = 2 };
	const cptx_operand_image image = { .address = 4096, .c = 64, .w = 20, .h = 20, .n = 2 };
	cptx_tensor_map_opt map;
	cptx_error err = { .code = CPTX_OK };

	SURE(o->im2col ? cptx_operand_image_map(o, &image, &map, &err) : cptx_operand_tensor_map(o, &m, &map, &err), "%s",
	     err.text);
	return map;
}

/* Loads a tile by the map at `from`. */
static void load_tile(bench *b, const cptx_operand_opt *o, cptx_val from, cptx_val col_end)
{
	cptx_kernel *k = b->k;
	cptx_operand op;
	cptx_pipe pipe;

	cptx_operand_make(k, &op, o);
	cptx_pipe_new(k, &pipe, .stages = 1);
	cptx_pipe_at at = cptx_pipe_producer(k, &pipe);
	const cptx_val zero = cptx_imm(0), none = CPTX_NONE_, image = o->im2col ? zero : none;
	cptx_operand_load(k, &op, 0, 0, 0, .barrier = cptx_pipe_full(&at), .map = from, .col_end = col_end,
	                  .part = o->parts ? zero : none, .z = o->batched ? zero : none, .z2 = o->batch_dims == 2 ? zero : none,
	                  .w = image, .h = image, .n = image);
}

static bench loads(const cptx_operand_opt *o, bool cut)
{
	bench b;

	begin(&b, 1);
	const cptx_val n = cptx_params_get(b.k, &b.p, "n"), none = CPTX_NONE_;
	load_tile(&b, o, cptx_params_get(b.k, &b.p, "a"), cut ? n : none);
	load(&b);
	b.args.a = map_of(o), b.args.last = b.args.a;
	if (cut)
		SURE(cptx_tensor_map_cut_load(&b.args.a, &b.err), "%s", b.err.text);
	return b;
}

/* All that a map can differ in is found, and the map of the operand itself passes. */
START_TEST(loads_are_compared)
{
	const cptx_tile across = { 64, 64, .elem = { .bits = 16, .mn_major = true }, .swizzle = CPTX_SWIZZLE_128B };
	cptx_operand_opt o[7];

	for (uint32_t i = 0; i < 7; i++)
		o[i] = operand(CPTX_BF16, i == 3 ? across : wide);
	o[1].batched = true, o[2].spans = true, o[4].parts = 2, o[5].batched = true, o[5].batch_dims = 2, o[6].im2col = 4;
	for (uint32_t i = 0; i < 7; i++) {
		bench b = loads(&o[i], i == 3);
		const cptx_tensor_map_opt right = b.args.a;
		uint32_t *const box = b.args.a.box, last = right.rank - 1;

		tried(&b, NULL);
		b.args.a.type = CPTX_TENSOR_F16;
		REFUSED(&b, "parameter a of struct map_args: its tensor map has boxes of ",
		        " of f16, swizzle 128B; kernel copy loads", " of bf16, swizzle 128B: make it");
		b.args.a.type = CPTX_TENSOR_U16;
		tried(&b, NULL); /* bits of anything */
		b.args.a = right, b.args.a.swizzle = CPTX_SWIZZLE_NONE;
		REFUSED(&b, "parameter a", "swizzle none; kernel copy loads", ", swizzle 128B: make it");
		for (uint32_t d = 0; d < right.rank && !o[i].im2col; d++) {
			b.args.a = right, box[d] = d < 2 ? box[d] / 2 : box[d] == 1 ? 2 : 1;
			REFUSED(&b, "parameter a", "its tensor map has boxes of ", "cptx_operand_tensor_map");
			b.args.a = right;
		}
		if (!o[i].im2col && !o[i].batched && i != 3) { /* every other row of a box of twice as many are the same rows */
			b.args.a = right, box[1] = 2 * right.box[1], b.args.a.element_stride[1] = 2;
			if (box[1] <= 256)
				tried(&b, NULL);
		}
		b.args.a = right, b.args.a.pixels -= 1;
		if (o[i].im2col)
			REFUSED(&b, "64 channels x 127 pixels", "64 channels x 128 pixels", "cptx_operand_image_map");
		b.args.a = right, b.args.a.dim[last] = 1, b.args.a.rank = last;
		if (last > 1 && !o[i].im2col)
			REFUSED(&b, "parameter a");
		end(&b);
	}
}
END_TEST

START_TEST(both_boxes_are_named)
{
	const cptx_operand_opt o = operand(CPTX_BF16, wide);
	bench b = loads(&o, false);
	const cptx_operand_opt other = operand(CPTX_BF16, low);

	b.args.a = map_of(&other);
	REFUSED(&b,
	        "parameter a of struct map_args: its tensor map has boxes of 32 x 64 of bf16, swizzle 64B; kernel copy loads "
	        "boxes of 64 x 128 of bf16, swizzle 128B: make it of the same tile: cptx_operand_tensor_map");
	end(&b);
}
END_TEST

/* Types that round or flush are those of the same numbers; others are not. */
START_TEST(elements)
{
	static const struct {
		enum cptx_type type;
		uint32_t bits;
		enum cptx_tensor_type map;
		bool fits;
	} trial[] = { { CPTX_F32, 32, CPTX_TENSOR_TF32, true },  { CPTX_F32, 32, CPTX_TENSOR_F32_FTZ, true },
		          { CPTX_B32, 32, CPTX_TENSOR_F32, true },   { CPTX_B16, 16, CPTX_TENSOR_BF16, true },
		          { CPTX_F16, 16, CPTX_TENSOR_BF16, false }, { CPTX_F32, 32, CPTX_TENSOR_F64, false },
		          { CPTX_E4M3, 8, CPTX_TENSOR_U16, false },  { CPTX_E2M1X2, 4, CPTX_TENSOR_16U4_ALIGN8B, true } };

	for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
		const cptx_tile tile = { 64, 512 / trial[i].bits, .elem.bits = (uint8_t)trial[i].bits };
		const cptx_operand_opt o = operand(trial[i].type, tile);
		bench b = loads(&o, false);
		b.args.a.type = trial[i].map;
		if (trial[i].fits)
			tried(&b, NULL);
		else
			REFUSED(&b, "parameter a", "make it of the same tile");
		end(&b);
	}
}
END_TEST

/* One map may serve several tiles in turn, and a map that the kernel finds out itself is nobody's. */
START_TEST(several_tiles)
{
	const cptx_operand_opt o[] = { operand(CPTX_BF16, wide), operand(CPTX_BF16, low) };
	const cptx_operand_opt third = operand(CPTX_BF16, (cptx_tile){ 8, 8, .elem.bits = 16 });
	bench b;

	begin(&b, 1);
	const cptx_val a = cptx_params_get(b.k, &b.p, "a"), last = cptx_params_get(b.k, &b.p, "last"), none = CPTX_NONE_;
	cptx_val either = cptx_selp(b.k, a, last, cptx_setp(b.k, cptx_params_get(b.k, &b.p, "n"), 0, .cmp = CPTX_EQ));
	load_tile(&b, &o[0], a, none);
	load_tile(&b, &o[1], a, none);
	load_tile(&b, &o[0], either, none);
	load(&b);
	b.args.last = map_of(&third);
	for (int i = 0; i < 2; i++) {
		b.args.a = map_of(&o[i]);
		tried(&b, NULL);
	}
	b.args.a = map_of(&third);
	REFUSED(&b, "parameter a of struct map_args: its tensor map has boxes of 8 x 8 of bf16");
	end(&b);
}
END_TEST

/* Stores of an epilogue: by the ring's map, and the narrower last tile by one of its own. */
START_TEST(stores_are_compared)
{
	const cptx_smem_elem elem = { .bits = 16 };
	cptx_tiled_mma mma;
	cptx_acc acc;
	cptx_epilogue e;
	cptx_epilogue_ring ring;
	cptx_tile tile = cptx_epilogue_tile(CPTX_BF16, 64, 64), last;
	bench b;

	begin(&b, 1);
	cptx_kernel *k = b.k;
	tile.pitch = 128, last = tile, last.cols = 32;
	cptx_tiled_mma_new(k, &mma, .by = CPTX_BY_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .m = 64, .n = 96,
	                   .a_tile = { 64, 64, .elem = elem, .swizzle = CPTX_SWIZZLE_128B },
	                   .b_tile = { 96, 64, .elem = elem, .swizzle = CPTX_SWIZZLE_128B });
	cptx_acc_new(k, &mma, &acc);
	cptx_acc_clear(k, &acc);
	cptx_epilogue_new(k, &e, .rows = cptx_imm(SIDE), .cols = cptx_imm(SIDE));
	cptx_epilogue_run(k, &e, &acc, .at_store = true);
	cptx_epilogue_ring_new(k, &ring, .type = CPTX_BF16, .tile = tile, .last = last, .map = cptx_params_get(k, &b.p, "a"),
	                       .last_map = cptx_params_get(k, &b.p, "last"), .barrier = cptx_imm(1));
	cptx_epilogue_store_tma(k, &e, &ring);
	cptx_epilogue_ring_drain(k, &ring, &acc);
	load(&b);
	const cptx_operand_opt of = operand(CPTX_BF16, tile), of_last = operand(CPTX_BF16, last);
	b.args.a = map_of(&of), b.args.last = map_of(&of_last);
	tried(&b, NULL);
	b.args.last = b.args.a;
	REFUSED(&b, "parameter last of struct map_args: its tensor map has boxes of 64 x 64 of bf16, swizzle 128B; kernel copy "
	            "stores boxes of 32 x 64 of bf16, swizzle 128B: make it of the same tile: cptx_operand_tensor_map with "
	            ".type and .tile of the ring");
	b.args.last = map_of(&of_last), b.args.a.type = CPTX_TENSOR_F16;
	REFUSED(&b, "parameter a of struct map_args: its tensor map has boxes of 64 x 64 of f16");
	end(&b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "maps");

	tcase_add_test(c, loads_are_compared);
	tcase_add_test(c, both_boxes_are_named);
	tcase_add_test(c, elements);
	tcase_add_test(c, several_tiles);
	tcase_add_test(c, stores_are_compared);
	return test_main("kit maps", s);
}
