/* SPDX-License-Identifier: MIT */
/* Descriptions of tensor maps: every rule, the bytes forth and back, and tiles. */
#include "../test.h"

#include <cptx/tensor_map.h>

/* A case overrides members of the macros below. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

/* A legal map of a bf16 matrix, changed by what a case says. */
#define MAP(...)                                                                                                            \
	((cptx_tensor_map_opt){ .type = CPTX_TENSOR_BF16,                                                                       \
	                        .rank = 2,                                                                                      \
	                        .address = 0x1000,                                                                              \
	                        .dim = { 4096, 512 },                                                                           \
	                        .box = { 64, 128 },                                                                             \
	                        .swizzle = CPTX_SWIZZLE_128B,                                                                   \
	                        __VA_ARGS__ })
#define IM2COL(...)                                                                                                         \
	((cptx_tensor_map_opt){ .mode = CPTX_TENSOR_IM2COL,                                                                     \
	                        .type = CPTX_TENSOR_F16,                                                                        \
	                        .rank = 4,                                                                                      \
	                        .dim = { 64, 32, 16, 8 },                                                                       \
	                        .channels = 64,                                                                                 \
	                        .pixels = 128,                                                                                  \
	                        .swizzle = CPTX_SWIZZLE_128B,                                                                   \
	                        .lower = { -1, -1 },                                                                            \
	                        .upper = { -1, -1 },                                                                            \
	                        __VA_ARGS__ })

static void legal(cptx_tensor_map_opt o, uint32_t bytes)
{
	cptx_error err = { 0 };
	SURE(cptx_tensor_map_check(&o, &err), "%s", err.text);
	ck_assert_uint_eq(cptx_tensor_map_box_bytes(&o), bytes);
}

static void illegal(cptx_tensor_map_opt o, const char *words)
{
	cptx_error err = { 0 };
	SURE(!cptx_tensor_map_check(&o, &err), "legal: %s", words);
	ck_assert_int_eq(err.code, CPTX_E_ARG);
	SURE(strstr(err.text, words) != NULL, "'%s' is not in: %s", words, err.text);
	ck_assert_uint_eq(cptx_tensor_map_box_bytes(&o), UINT32_MAX);
}

START_TEST(choices)
{
	legal(MAP(), 64 * 2 * 128);
	illegal(MAP(.mode = (enum cptx_tensor_mode)9), "no mode 9");
	illegal(MAP(.type = CPTX_TENSOR_TYPES), "no type 16");
	illegal(MAP(.rank = 0), "rank 0; it is 1 to 5");
	illegal(MAP(.rank = 6), "rank 6");
	illegal(MAP(.interleave = 8), "interleave 8; it is 0, 16 or 32");
	illegal(MAP(.interleave = 16), "rank 2; it is 3 to 5 with im2col or interleave");
	illegal(MAP(.l2 = 32), "L2 fetches of 32 bytes");
	illegal(MAP(.type = CPTX_TENSOR_U16, .nan_fill = true), "NaN as fill of type u16");
	illegal(MAP(.type = CPTX_TENSOR_16U4_ALIGN8B, .nan_fill = true), "NaN as fill of type 16U4_ALIGN8B");
	legal(MAP(.nan_fill = true, .l2 = 256), 16384);
	illegal(MAP(.swizzle = CPTX_SWIZZLE_96B), "the driver has none of 96B");
	illegal(MAP(.swizzle = (enum cptx_swizzle)50), "there is no such swizzle");
	ck_assert_str_eq(cptx_tensor_type_name(CPTX_TENSOR_16U6_ALIGN16B), "16U6_ALIGN16B");
	ck_assert_str_eq(cptx_tensor_type_name(CPTX_TENSOR_TYPES), "?");
	ck_assert_uint_eq(cptx_tensor_type_bits(CPTX_TENSOR_16U6_ALIGN16B), 6);
	ck_assert_uint_eq(cptx_tensor_type_bits(CPTX_TENSOR_TYPES), 0);
}
END_TEST

START_TEST(memory)
{
	illegal(MAP(.address = 8), "address 0x8; it is a multiple of 16");
	illegal(MAP(.dim = { 4096, 0 }), "dimension 1 of 0 elements; it has 1 to 2^32");
	illegal(MAP(.dim = { ((uint64_t)1 << 32) + 1, 1 }), "dimension 0 of 4294967297 elements");
	legal(MAP(.dim = { (uint64_t)1 << 32, 1 }), 16384);
	illegal(MAP(.dim = { 4092, 512 }), "stride 8184 of dimension 1 (packed); it is a multiple of 16 bytes (nearest: 8192)");
	legal(MAP(.dim = { 4092, 512 }, .stride = { 0, 8192 }), 16384);
	illegal(MAP(.stride = { 0, 8200 }), "stride 8200 of dimension 1; it is a multiple of 16 bytes (nearest: 8208)");
	illegal(MAP(.type = CPTX_TENSOR_F32, .rank = 4, .dim = { 1u << 31, 1u << 31, 4, 4 }), "it is below 2^40");
	illegal(MAP(.stride = { 0, (uint64_t)1 << 40 }), "it is below 2^40");
	illegal(MAP(.rank = 3, .dim = { 4096, (uint64_t)1 << 32, 2 }, .box = { 64, 1, 1 }),
	        "stride 35184372088832 of dimension 2");
	illegal(MAP(.type = CPTX_TENSOR_16U4_ALIGN16B, .address = 16, .dim = { 256, 8 }, .box = { 128, 8 }),
	        "multiple of 32 with padded types");
	illegal(MAP(.type = CPTX_TENSOR_16U4_ALIGN16B, .dim = { 192, 8 }, .box = { 128, 8 }),
	        "of 16U4_ALIGN16B it is a multiple of 128 (nearest: 256)");
	illegal(MAP(.type = CPTX_TENSOR_16U4_ALIGN8B, .dim = { 255, 8 }, .box = { 64, 8 }),
	        "it is a multiple of 2 (nearest: 256)");
	uint64_t stride[CPTX_TENSOR_RANK];
	cptx_tensor_map_strides(&MAP(.rank = 4, .dim = { 64, 3, 5, 7 }), stride);
	ck_assert(stride[0] == 0 && stride[1] == 128 && stride[2] == 384 && stride[3] == 1920 && stride[4] == 0);
	cptx_tensor_map_strides(&MAP(.rank = 3, .dim = { 64, 3, 5 }, .stride = { 0, 256 }), stride);
	ck_assert(stride[1] == 256 && stride[2] == 768);
}
END_TEST

START_TEST(boxes)
{
	illegal(MAP(.box = { 0, 128 }), "box of 0 elements along dimension 0; it is 1 to 256");
	illegal(MAP(.box = { 64, 257 }), "box of 257 elements along dimension 1");
	illegal(MAP(.box = { 128, 16 }),
	        "box of 256 bytes along dimension 0 with swizzle 128B; it is at most 128 bytes (64 elements)");
	illegal(MAP(.box = { 64, 16 }, .swizzle = CPTX_SWIZZLE_32B), "at most 32 bytes (16 elements)");
	illegal(MAP(.box = { 60, 16 }),
	        "box of 60 elements of bf16 along dimension 0 is 120 bytes; it is a multiple of 16 (nearest: 64 elements)");
	legal(MAP(.box = { 256, 256 }, .swizzle = CPTX_SWIZZLE_NONE), 256 * 256 * 2);
	/* more bytes than 32 bits count */
	legal(MAP(.type = CPTX_TENSOR_U8, .rank = 4, .dim = { 256, 256, 256, 256 }, .box = { 256, 256, 256, 256 },
	          .swizzle = CPTX_SWIZZLE_NONE),
	      UINT32_MAX);
	illegal(MAP(.element_stride = { 1, 9 }), "element stride 9 of dimension 1; it is 1 to 8");
	legal(MAP(.element_stride = { 8, 3 }), 128 * 43);
	legal(MAP(.rank = 3, .dim = { 8, 64, 64 }, .box = { 8, 16, 4 }, .interleave = 16, .swizzle = CPTX_SWIZZLE_NONE), 512);
	illegal(MAP(.rank = 3, .dim = { 16, 64, 64 }, .box = { 16, 16, 4 }, .interleave = 32),
	        "swizzle 128B with interleave 32; it must be 32B");
	legal(MAP(.rank = 3, .dim = { 16, 64, 64 }, .box = { 16, 16, 4 }, .interleave = 32, .swizzle = CPTX_SWIZZLE_32B), 2048);
	legal(MAP(.type = CPTX_TENSOR_16U4_ALIGN16B, .dim = { 256, 8 }, .box = { 128, 8 }), 512);
	legal(MAP(.type = CPTX_TENSOR_16U6_ALIGN16B, .dim = { 256, 8 }, .stride = { 0, 192 }, .box = { 128, 8 }), 768);
	legal(MAP(.type = CPTX_TENSOR_16U4_ALIGN8B, .dim = { 256, 8 }, .box = { 256, 8 }), 1024);
	illegal(MAP(.type = CPTX_TENSOR_16U4_ALIGN16B, .dim = { 256, 8 }, .box = { 64, 8 }), "it is always 128");
	illegal(
		MAP(.type = CPTX_TENSOR_16U4_ALIGN16B, .dim = { 256, 8 }, .box = { 128, 8 }, .swizzle = CPTX_SWIZZLE_128B_ATOM_64B),
		"it is none, 128B or 128B_ATOM_32B");
	legal(
		MAP(.type = CPTX_TENSOR_16U6_ALIGN16B, .dim = { 256, 8 }, .box = { 128, 8 }, .swizzle = CPTX_SWIZZLE_128B_ATOM_64B),
		768);
	illegal(MAP(.type = CPTX_TENSOR_16U6_ALIGN16B, .rank = 3, .dim = { 256, 8, 8 }, .box = { 128, 8, 1 }, .interleave = 16),
	        "interleave 16 with 16U6_ALIGN16B");
}
END_TEST

/* From row to row. */
static void apart(cptx_tensor_map_opt o, uint32_t pitch)
{
	ck_assert(cptx_tensor_map_check(&o, NULL));
	ck_assert_uint_eq(cptx_tensor_map_box_pitch(&o), pitch);
}

START_TEST(pitches)
{
	apart(MAP(.swizzle = CPTX_SWIZZLE_NONE), 128);
	apart(MAP(.box = { 8, 4 }, .swizzle = CPTX_SWIZZLE_NONE), 16);
	apart(MAP(.box = { 8, 4 }), 128);
	apart(MAP(.box = { 24, 4 }, .swizzle = CPTX_SWIZZLE_64B), 64);
	apart(MAP(.box = { 16, 4 }, .swizzle = CPTX_SWIZZLE_32B), 32);
	apart(IM2COL(.channels = 8), 128);
	apart(MAP(.rank = 3, .dim = { 8, 64, 64 }, .box = { 8, 16, 4 }, .interleave = 16), 16);
	ck_assert_uint_eq(cptx_tensor_map_box_pitch(&MAP(.rank = 0)), UINT32_MAX);
	legal(MAP(.box = { 8, 4 }), 64);
}
END_TEST

START_TEST(im2col)
{
	legal(IM2COL(), 64 * 2 * 128);
	illegal(IM2COL(.rank = 2), "rank 2; it is 3 to 5");
	illegal(IM2COL(.pixels = 1025), "1025 pixels; they are 1 to 1024");
	illegal(IM2COL(.channels = 60), "channels of 60 elements of f16");
	illegal(IM2COL(.channels = 264, .swizzle = CPTX_SWIZZLE_NONE),
	        "channels of 264 elements along dimension 0; it is 1 to 256");
	illegal(IM2COL(.lower = { -129 }), "lower corner -129 along W; of rank 4 it is -128 to 127");
	illegal(IM2COL(.upper = { 0, 128 }), "upper corner 128 along H");
	illegal(IM2COL(.lower = { 20 }, .upper = { -12 }), "corners 20 and -12 along W leave nothing of 32 pixels");
	legal(IM2COL(.mode = CPTX_TENSOR_IM2COL_W, .lower = { -1000 }), 64 * 2 * 128);
	legal(IM2COL(.mode = CPTX_TENSOR_IM2COL_W_128, .pixels = 0), 64 * 2 * 128);
	illegal(IM2COL(.mode = CPTX_TENSOR_IM2COL_W, .swizzle = CPTX_SWIZZLE_32B, .channels = 16),
	        "it is 64B, 128B or 128B_ATOM_32B");
	illegal(IM2COL(.mode = CPTX_TENSOR_IM2COL_W, .interleave = 16), "interleave 16 with im2col along W");
}
END_TEST

/* ---- bytes ---- */

static void same(cptx_tensor_map_opt o)
{
	uint8_t b[CPTX_TENSOR_MAP_BYTES], again[CPTX_TENSOR_MAP_BYTES];
	cptx_tensor_map_opt back;
	cptx_error err = { 0 };

	SURE(cptx_tensor_map_check(&o, &err) && cptx_tensor_map_pack(&o, b, &err), "%s", err.text);
	SURE(cptx_tensor_map_unpack(b, &back, &err) && cptx_tensor_map_check(&back, &err), "%s", err.text);
	ck_assert(back.mode == o.mode && back.type == o.type && back.rank == o.rank && back.address == o.address);
	ck_assert(back.interleave == o.interleave && back.swizzle == o.swizzle && back.l2 == o.l2 &&
	          back.nan_fill == o.nan_fill);
	ck_assert(back.channels == o.channels && back.pixels == o.pixels && !memcmp(back.lower, o.lower, sizeof o.lower));
	ck_assert(!memcmp(back.upper, o.upper, sizeof o.upper) && !memcmp(back.dim, o.dim, sizeof o.dim));
	ck_assert(!memcmp(back.box, o.box, sizeof o.box));
	uint64_t full[CPTX_TENSOR_RANK];
	cptx_tensor_map_strides(&o, full);
	ck_assert(!memcmp(back.stride, full, sizeof full));
	for (uint32_t i = 0; i < CPTX_TENSOR_RANK; i++)
		ck_assert_uint_eq(back.element_stride[i], o.element_stride[i] ? o.element_stride[i] : 1);
	ck_assert(cptx_tensor_map_pack(&back, again, NULL));
	ck_assert(!memcmp(b, again, sizeof b));
}

START_TEST(bytes)
{
	same(MAP());
	same(MAP(.l2 = 64, .element_stride = { 1, 2 }, .stride = { 0, (((uint64_t)1 << 40) - 16) }));
	same(MAP(.l2 = 128, .nan_fill = true, .address = 0xfedcba9876543210));
	same(MAP(.l2 = 256, .rank = 5, .dim = { 64, 2, 3, 4, (uint64_t)1 << 32 }, .box = { 64, 1, 2, 3, 256 }));
	same(MAP(.rank = 1, .dim = { 77 }, .box = { 8 }));
	same(MAP(.rank = 3, .dim = { 16, 64, 64 }, .box = { 16, 16, 4 }, .interleave = 32, .swizzle = CPTX_SWIZZLE_32B));
	same(IM2COL());
	same(IM2COL(.rank = 5, .dim = { 64, 32, 16, 8, 4 }, .lower = { -16, 15, 0 }, .upper = { 0, 15, -3 }));
	same(IM2COL(.mode = CPTX_TENSOR_IM2COL_W_128, .lower = { -32768 }, .upper = { 32767 }, .pixels = 0));
}
END_TEST

START_TEST(other_bytes)
{
	uint8_t b[CPTX_TENSOR_MAP_BYTES] = { 0 };
	cptx_tensor_map_opt o;
	cptx_error err = { 0 };

	ck_assert(!cptx_tensor_map_unpack(b, &o, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "none of cptx"));
	/* any change of one byte is seen, or gives another description, of those bytes */
	for (size_t i = 0; i < sizeof b; i++)
		for (unsigned v = 1; v < 256; v++) {
			uint8_t again[CPTX_TENSOR_MAP_BYTES];
			SURE(cptx_tensor_map_pack(&MAP(.stride = { 0, 8192 }), b, NULL), "not so");
			b[i] ^= (uint8_t)v;
			err = (cptx_error){ 0 };
			if (!cptx_tensor_map_unpack(b, &o, &err)) {
				ck_assert_int_eq(err.code, CPTX_E_ARG);
				continue;
			}
			SURE(i >= 8 && i < 100, "not so");
			/* zeros are filled in, and strides for another rank */
			bool filled = i == 10 || !o.stride[1] || (i >= 79 && i < 84 && !o.element_stride[i - 79]);
			if (cptx_tensor_map_check(&o, NULL)) {
				SURE(cptx_tensor_map_pack(&o, again, NULL), "not so");
				SURE(filled || !memcmp(b, again, sizeof b), "byte %zu ^ %u", i, v);
			}
		}
	err = (cptx_error){ 0 };
	ck_assert(!cptx_tensor_map_pack(&MAP(.box = { 65536, 1 }), b, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "no room"));
	ck_assert(!cptx_tensor_map_pack(&IM2COL(.lower = { 32768 }), b, NULL));
	ck_assert(!cptx_tensor_map_pack(&MAP(.rank = 6), b, NULL));
}
END_TEST

START_TEST(tiles)
{
	cptx_tile t = { .rows = 128, .cols = 128, .elem.bits = 16, .swizzle = CPTX_SWIZZLE_128B };
	cptx_tensor_map_opt o;
	cptx_tile_boxes b;
	cptx_error err = { 0 };

	SURE(cptx_tile_tensor_map(&t, CPTX_TENSOR_BF16, 4096, 1000, 768, 0, &o, &err), "%s", err.text);
	ck_assert(o.rank == 2 && o.dim[0] == 768 && o.dim[1] == 1000 && o.box[0] == 64 && o.box[1] == 128);
	ck_assert(cptx_tile_get_boxes(&t, &b, &err));
	ck_assert_uint_eq(cptx_tensor_map_box_bytes(&o), b.bytes);
	ck_assert_uint_eq(b.bytes * b.count[0] * b.count[1], cptx_tile_bytes(&t));
	t.elem.mn_major = true;
	SURE(cptx_tile_tensor_map(&t, CPTX_TENSOR_F16, 4096, 1000, 768, 2048, &o, &err), "%s", err.text);
	ck_assert(o.dim[0] == 1000 && o.dim[1] == 768 && o.stride[1] == 2048);
	ck_assert(!cptx_tile_tensor_map(&t, CPTX_TENSOR_F32, 4096, 1000, 768, 0, &o, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "type f32 for a tile with elements of 16 bits"));
	err = (cptx_error){ 0 };
	ck_assert(!cptx_tile_tensor_map(&t, CPTX_TENSOR_F16, 4096, 1001, 768, 0, &o, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "stride 2002"));
	t.pitch = 512, err = (cptx_error){ 0 };
	ck_assert(!cptx_tile_tensor_map(&t, CPTX_TENSOR_F16, 4096, 1000, 768, 0, &o, &err));
	ck_assert_ptr_nonnull(strstr(err.text, "pitch 512"));
}
END_TEST

/* A window as high as the box, in front of the matrix; rows bring it to its place. */
START_TEST(cut)
{
	cptx_tensor_map_opt o = MAP(.address = 1 << 24);
	cptx_error err = { 0 };

	SURE(cptx_tensor_map_cut(&o, &err), "%s", err.text);
	ck_assert_uint_eq(o.rank, 3);
	ck_assert_uint_eq(o.dim[0], 4096);
	ck_assert_uint_eq(o.dim[1], 128);
	ck_assert_uint_eq(o.dim[2], 512 + 128);
	ck_assert_uint_eq(o.stride[1], 8192);
	ck_assert_uint_eq(o.stride[2], 8192);
	ck_assert_uint_eq(o.box[2], 1);
	ck_assert_uint_eq(o.address, (1 << 24) - 128 * 8192);
	/* the first row of a box that keeps 5 of its rows from row 7 on */
	ck_assert_uint_eq(o.address + (128 - 5) * o.stride[1] + (7 + 5) * o.stride[2], (1 << 24) + 7 * 8192);
	ck_assert(!cptx_tensor_map_cut(&o, &err));
	SURE(strstr(err.text, "a map of 3 dimensions to be cut along the second"), "%s", err.text);
	ck_assert(!cptx_tensor_map_cut(NULL, FRESH(&err)));
}
END_TEST

/* Of loads the address stays: a device may read there for rows that are outside, and in front of the matrix is no memory. */
START_TEST(cut_load)
{
	cptx_tensor_map_opt o = MAP(.address = 1 << 24);
	cptx_error err = { 0 };

	SURE(cptx_tensor_map_cut_load(&o, &err), "%s", err.text);
	ck_assert_uint_eq(o.rank, 3);
	ck_assert_uint_eq(o.dim[1], 128);
	ck_assert_uint_eq(o.dim[2], 512);
	ck_assert_uint_eq(o.stride[1], 8192);
	ck_assert_uint_eq(o.stride[2], 8192);
	ck_assert_uint_eq(o.box[2], 1);
	ck_assert_uint_eq(o.address, 1 << 24);
	ck_assert(!cptx_tensor_map_cut_load(&o, FRESH(&err)));
	SURE(strstr(err.text, "a map of 3 dimensions to be cut along the second"), "%s", err.text);
	ck_assert(!cptx_tensor_map_cut_load(NULL, FRESH(&err)));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tensor_map");
	TCase *t = tcase_create("tensor_map");

	tcase_add_test(t, choices);
	tcase_add_test(t, memory);
	tcase_add_test(t, boxes);
	tcase_add_test(t, pitches);
	tcase_add_test(t, im2col);
	tcase_add_test(t, bytes);
	tcase_add_test(t, other_bytes);
	tcase_add_test(t, tiles);
	tcase_add_test(t, cut);
	tcase_add_test(t, cut_load);
	suite_add_tcase(s, t);
	return test_main("layout_tensor_map", s);
}
