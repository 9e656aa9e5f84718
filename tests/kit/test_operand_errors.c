/* SPDX-License-Identifier: MIT */
/* cptx/operand.h: what is refused, with the words and the line that say why. */
#include "on_emu.h"

#include <cptx/operand.h>

#define TILE(r, c, bits_, mn, swizzle_, pitch_)                                                                             \
	{                                                                                                                       \
		.rows = (r), .cols = (c), .elem = { .bits = (bits_), .mn_major = (mn) }, .swizzle = CPTX_SWIZZLE_##swizzle_,        \
		.pitch = (pitch_)                                                                                                   \
	}

static cptx_error err;

static void wrong(cptx_operand_opt o, const char *words)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val p = cptx_param(k, CPTX_PTR, "p");
	cptx_operand op;

	o.size = CPTX_OPT_SIZE(cptx_operand_opt);
	if (o.by == CPTX_OPERAND_TMA && o.alone)
		o.map = p, o.alone = false;
	if (o.by != CPTX_OPERAND_TMA && o.align)
		o.address = p;
	cptx_operand_new_(k, CPTX_HERE, &op, &o);
	SURE(cptx_module_error(m) != NULL, "%s", words);
	SURE(strstr(cptx_module_error(m)->text, words) != NULL, "%s\nlacks: %s", cptx_module_error(m)->text, words);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "test_operand_errors.c:"));
	cptx_module_destroy(m);
}

START_TEST(errors)
{
	const cptx_tile t = TILE(64, 64, 16, false, 128B, 0);
	const cptx_val n = cptx_imm(64);

	wrong((cptx_operand_opt){ .tile = t, .type = CPTX_F32, .alone = true }, "elements of 16 bits");
	wrong((cptx_operand_opt){ .tile = t, .type = CPTX_BF16, .stages = 65 }, "65 stages; there are 1 to 64");
	wrong((cptx_operand_opt){ .tile = t, .type = CPTX_BF16, .threads = 64, .alone = true },
	      ".threads = 64 that copy, of an");
	wrong((cptx_operand_opt){ .tile = t, .type = CPTX_BF16, .apart = 4096 }, "a tile has 8192");
	wrong((cptx_operand_opt){ .tile = TILE(64, 65, 16, false, 128B, 0) }, "not made of spans");
	wrong((cptx_operand_opt){ .tile = t, .type = CPTX_BF16, .parts = 3, .alone = true }, "64 rows in 3 parts");
	wrong((cptx_operand_opt){ .tile = t, .type = CPTX_BF16, .parts = 16, .alone = true },
	      "multiple of 1024 bytes, and has 512");
	wrong((cptx_operand_opt){ .tile = t, .type = CPTX_BF16, .im2col = 2, .alone = true }, "images have 3 to 5 dimensions");
	wrong((cptx_operand_opt){ .by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16 }, "no matrix: say .address");
	wrong((cptx_operand_opt){ .by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16, .align = 2 }, ".align = 2");
	wrong((cptx_operand_opt){ .by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16, .align = 16 },
	      "neither .pitch nor .cols");
	wrong(
		(cptx_operand_opt){
			.by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16, .align = 8, .cols = n, .whole = true },
		".whole is for cp.async of 16 bytes; here .align is less");
	wrong(
		(cptx_operand_opt){
			.by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16, .align = 16, .cols = n, .clamp = true },
		".clamp without .rows");
	wrong(
		(cptx_operand_opt){ .by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16, .align = 16, .cols = n, .gather = n },
		".gather without .clamp");
	wrong((cptx_operand_opt){ .by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16, .align = 16, .cols = n },
	      ".threads = 0 that copy together");
	wrong(
		(cptx_operand_opt){
			.by = CPTX_OPERAND_CP_ASYNC, .tile = t, .type = CPTX_BF16, .align = 16, .cols = n, .threads = 4 },
		"a multiple of 8");
	wrong(
		(cptx_operand_opt){
			.by = CPTX_OPERAND_LDST, .tile = t, .type = CPTX_BF16, .align = 8, .pitch = cptx_imm(132), .threads = 64 },
		"multiple of the 8 bytes");
	wrong((cptx_operand_opt){ .by = CPTX_OPERAND_LDST,
	                          .tile = TILE(512, 64, 16, false, 128B, 0),
	                          .type = CPTX_BF16,
	                          .align = 8,
	                          .cols = n,
	                          .threads = 32 },
	      "copy 128 times 16 bytes");
	wrong((cptx_operand_opt){ .by = CPTX_OPERAND_LDST, .tile = t, .type = CPTX_F32, .align = 8 },
	      "type .f32 in a tile of 16 bits");
}
END_TEST

START_TEST(no_map)
{
	const cptx_operand_opt o = { .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = TILE(64, 64, 16, false, 128B, 0) };
	const cptx_operand_opt image = { .type = CPTX_BF16, .tile = o.tile, .im2col = 4 };
	const cptx_operand_matrix m = { .address = 4096, .rows = 64, .cols = 64 };
	cptx_tensor_map_opt map;

	err = (cptx_error){ .code = CPTX_OK };
	ck_assert(!cptx_operand_tensor_map(&o, &m, &map, &err));
	SURE(strstr(err.text, "threads copy; it has none"), "%s", err.text);
	err = (cptx_error){ .code = CPTX_OK };
	ck_assert(!cptx_operand_tensor_map(&image, &m, &map, &err));
	SURE(strstr(err.text, "cptx_operand_image_map makes its map"), "%s", err.text);
	err = (cptx_error){ .code = CPTX_OK };
}
END_TEST

START_TEST(clamped_advance)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 64 });
	cptx_val n = cptx_param(k, CPTX_U32, "n");
	cptx_operand op;

	cptx_operand_new(k, &op, .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = TILE(64, 64, 16, false, 128B, 0),
	                 .address = cptx_param(k, CPTX_PTR, "p"), .rows = n, .cols = n, .threads = 64, .clamp = true);
	cptx_operand_src src = cptx_operand_source(k, &op, 0, 0);
	cptx_operand_advance(k, &op, &src, 0, 64);
	ck_assert(!cptx_module_error(m));
	cptx_operand_advance(k, &op, &src, 64, 0);
	ck_assert_ptr_nonnull(cptx_module_error(m));
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "its next tile is sought (cptx_operand_seek)"));
	cptx_module_destroy(m);
}
END_TEST

/* The matrix of a tensor map, in its own words, and the line of the call. */
static void wrong_matrix(cptx_operand_matrix m, const char *words)
{
	const cptx_operand_opt o = { .type = CPTX_BF16, .tile = TILE(64, 64, 16, false, 128B, 0) };
	cptx_tensor_map_opt map;

	err = (cptx_error){ .code = CPTX_OK };
	ck_assert(!cptx_operand_tensor_map(&o, &m, &map, &err));
	SURE(strstr(err.text, words) && strstr(err.text, "test_operand_errors.c:"), "%s\nlacks: %s", err.text, words);
	err = (cptx_error){ .code = CPTX_OK };
}

START_TEST(wrong_matrices)
{
	wrong_matrix((cptx_operand_matrix){ .address = 4096, .rows = 64, .cols = 100, .pitch = 202 },
	             "pitch is 202 bytes; it must be a multiple of 16: give .pitch = 208");
	wrong_matrix((cptx_operand_matrix){ .address = 4096, .rows = 64, .cols = 100 },
	             "cols is 100, of 200 bytes; the pitch must be a multiple of 16: give .pitch = 208");
	wrong_matrix((cptx_operand_matrix){ .address = 4096, .rows = 64, .cols = 100, .pitch = 192 },
	             "pitch is 192 bytes; 100 cols have 200");
	wrong_matrix((cptx_operand_matrix){ .address = 4096, .cols = 64 }, "rows is 0 and cols is 64; both are 1 to 2^32");
	wrong_matrix((cptx_operand_matrix){ .address = 4100, .rows = 64, .cols = 64 },
	             "address is 0x1004; it must be a multiple of 16");
}
END_TEST

static void wrong_load(uint32_t parts, bool batched, uint32_t stage, cptx_operand_load_opt o, const char *words)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), zero = cptx_imm(0);
	cptx_operand op;

	cptx_operand_new(k, &op, .type = CPTX_BF16, .tile = TILE(64, 64, 16, false, 128B, 0), .stages = 2, .map = p,
	                 .batched = batched, .parts = parts);
	cptx_operand_load_at_(k, CPTX_HERE, &op, cptx_imm(stage), zero, zero, &o);
	SURE(cptx_module_error(m) && strstr(cptx_module_error(m)->text, words), "%s\nlacks: %s",
	     cptx_module_error(m) ? cptx_module_error(m)->text : "no error", words);
	cptx_module_destroy(m);
}

START_TEST(wrong_loads)
{
	const cptx_val b = cptx_imm(0);

	wrong_load(1, false, 0, (cptx_operand_load_opt){ .ctas = 0 }, "without an mbarrier: say .barrier");
	wrong_load(1, false, 2, (cptx_operand_load_opt){ .barrier = b }, "stage 2 of an operand; it has stages 0 to 1");
	wrong_load(1, true, 0, (cptx_operand_load_opt){ .barrier = b }, "say .z, the number of the matrix");
	wrong_load(2, false, 0, (cptx_operand_load_opt){ .barrier = b }, "an operand in 2 parts: say .part, 0 to 1");
	wrong_load(1, false, 0, (cptx_operand_load_opt){ .barrier = b, .part = b }, "that has no parts");
	wrong_load(1, false, 0, (cptx_operand_load_opt){ .barrier = b, .ctas = 3 }, "a load of 3 CTAs");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "operand_errors");

	tcase_add_test(c, errors);
	tcase_add_test(c, no_map);
	tcase_add_test(c, clamped_advance);
	tcase_add_test(c, wrong_matrices);
	tcase_add_test(c, wrong_loads);
	return test_main("kit operand_errors", s);
}
