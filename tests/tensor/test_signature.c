/* SPDX-License-Identifier: MIT */
/* Signatures and grids: what is taken, and the message for each that is not. */
#include "harness.h"

static cptx_program *idle;

static void before(void)
{
	memset(&err, 0, sizeof err);
	dev = cptx_device_open("emu:sm_90a", &err);
	idle = load(idle_text);
}

static void after(void)
{
	cptx_program_destroy(idle);
	cptx_device_close(dev);
}

START_TEST(taken)
{
	static const char *const all[] = {
		"x: f32[n], y: f32[n]",
		" x:f32[ n ,128 ]const align 16,y : bf16[_]strides[ld] optional ",
		"x: b8[], y: pred[1, 2, 3, 4, 5, 6, 7, 8]",
		"x: u64, y: b64",
		"x: e4m3[n], y: u64 = n * 2 * n / 3",
		"x: f16[n] optional const align 2 strides[_], y: s64 = 12",
		"x: e2m1x2[n], y: ue8m0[n]",
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cptx_tensor_launch *l = prepare(idle, all[i], "1");
		OK(err);
		ck_assert_ptr_nonnull(l);
		cptx_tensor_launch_destroy(l);
	}
}
END_TEST

START_TEST(refused)
{
	static const struct {
		const char *signature, *grid, *part;
	} all[] = {
		{ "x f32[n]", "1", "column 3: ':' is missing behind the name" },
		{ "x: f32[n", "1", "column 9: ']' is missing behind dimensions" },
		{ "x: float[n], y: f32[n]", "1", "column 4: \"float\" is no type" },
		{ "x: f32[n], x: f32[n]", "1", "a second argument \"x\"" },
		{ "x: f32[n] row, y: u64", "1", "column 11: \"row, y: u64\" cannot stand here" },
		{ "x: f32[n],", "1", "the name of an argument must stand here" },
		{ "x: f32[-1], y: u64", "1", "a number, a name or _ must stand in dimensions" },
		{ "x: f32[1,2,3,4,5,6,7,8,9], y: u64", "1", "more than 8 dimensions" },
		{ "x: f32[n] strides[1, 2], y: u64", "1", "\"x\" has 1 dimensions and 2 strides" },
		{ "x: f32[n] align 3, y: u64", "1", "a power of two up to 2^20" },
		{ "x: f32[n] align, y: u64", "1", "a number must stand here" },
		{ "x: f16x2[n], y: u64", "1", "DLPack has no tensors of .f16x2" },
		{ "x: f16, y: u64", "1", "a number is u8 to s64, b8 to b64, f32 or f64, not .f16" },
		{ "x: f32[n], y: f32 = n", "1", "what is computed is an integer" },
		{ "x: f32[n], y: u64 = m", "1", "nothing says what m is" },
		{ "x: f32[n], y: u64 = _", "1", "_ has no value" },
		{ "x: f32[n], y: u64 = n / 0", "1", "must be above 0" },
		{ "x: f32[n], y: u64 = n*n*n*n*n", "1", "more than 4 factors" },
		{ "x: f32[99999999999999999999], y: u64", "1", "beyond 2^62" },
		{ "x: f32[n], y: f32[n]", "n, n, n, n", "at most three dimensions" },
		{ "x: f32[n], y: s8 = 2 * 64", "1", "column 26: 128 is no .s8" },
		{ "x: f32[n], y: u64 = 4611686018427387903 * 4", "1", "the product is beyond 64 bits" },
		{ "x: f32[n], y: f32[n]", "1, 8589934592 / 2", "4294967296 is no .u32" },
		{ "x: f32[n], y: f32[n]", "m / 2", "grid \"m / 2\": nothing says what m is" },
		{ "x: f32[n], y: f32[n]", "n x", "grid \"n x\", column 3: \"x\" cannot stand here" },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		ck_assert_ptr_null(prepare(idle, all[i].signature, all[i].grid));
		FAILS(err, CPTX_E_PARSE, all[i].part);
	}
}
END_TEST

START_TEST(against_the_kernel)
{
	static const char *const grid = "1";

	ck_assert_ptr_null(prepare(idle, "x: f32[n]", grid));
	FAILS(err, CPTX_E_ARG, "kernel idle: it takes 2 arguments (.u64 x, .u64 y), but 1 was given");
	ck_assert_ptr_null(prepare(idle, "x: f32[n], y: u32", grid));
	FAILS(err, CPTX_E_ARG, "argument 1 is an integer of 4 bytes, but parameter \"y\" is .u64");
	ck_assert_ptr_null(prepare(idle, "x: f32[n], y: f64", grid));
	FAILS(err, CPTX_E_ARG, "argument 1 is a double, but parameter \"y\" is .u64");
	ck_assert_ptr_null(cptx_tensor_launch_new(
		idle, "other", &(cptx_tensor_launch_opt){ .signature = "x: u64, y: u64", .block = { 64 } }, &err));
	FAILS(err, CPTX_E_ARG, "no kernel \"other\"");
	ck_assert_ptr_null(cptx_tensor_launch_new(idle, NULL, &(cptx_tensor_launch_opt){ .block = { 64 } }, &err));
	FAILS(err, CPTX_E_ARG, "the signature is NULL");
	ck_assert_ptr_null(cptx_tensor_launch_new(idle, NULL, &(cptx_tensor_launch_opt){ .signature = "x: u64, y: u64" }, &err));
	FAILS(err, CPTX_E_ARG, "no block is given");
}
END_TEST

START_TEST(many)
{
	char text[4096] = "x: f32[n]";
	char *at = text + strlen(text);

	for (int i = 0; i < CPTX_TENSOR_MAX_ARGS; i++)
		at += sprintf(at, ", a%d: u64", i);
	ck_assert_ptr_null(prepare(idle, text, NULL));
	FAILS(err, CPTX_E_PARSE, "");
	at = text + sprintf(text, "x: f32[n]");
	for (int i = 0; i < 5; i++) {
		at += sprintf(at, ", t%d: f32[", i);
		for (int d = 0; d < 7; d++)
			at += sprintf(at, "%sd%d_%d", d ? ", " : "", i, d);
		at += sprintf(at, "]");
	}
	ck_assert_ptr_null(prepare(idle, text, NULL));
	FAILS(err, CPTX_E_PARSE, "more than 32 names of dimensions");
}
END_TEST

START_TEST(entries)
{
	cptx_tensor_launch *l = prepare(idle, "x: f32[n] const optional, y: u64 = n", "1");
	cptx_tensor_arg_info info;

	OK(err);
	ck_assert(cptx_tensor_launch_arg(l, 0, &info));
	ck_assert_str_eq(info.name, "x");
	ck_assert(info.type == CPTX_F32 && info.is_tensor && info.is_const && info.is_optional);
	ck_assert(!cptx_tensor_launch_arg(l, 1, &info));
	cptx_tensor_launch_destroy(l);
	l = prepare(idle, "x: u64, y: s8[2]", "1");
	FAILS(err, CPTX_OK, "");
	ck_assert(cptx_tensor_launch_arg(l, 0, &info));
	ck_assert(info.type == CPTX_U64 && !info.is_tensor);
	ck_assert(cptx_tensor_launch_arg(l, 1, &info));
	ck_assert(info.type == CPTX_S8 && info.is_tensor && !info.is_const && !info.is_optional);
	cptx_tensor_launch_destroy(l);
}
END_TEST

/* Text at random: an error or a launch, and nothing else. */
START_TEST(at_random)
{
	static const char alphabet[] = "xyn:[],=*/_ 019f32u64constridesalignoptional\n\xff";
	uint32_t seed = 1;
	int good = 0;

	for (int turn = 0; turn < 20000; turn++) {
		char text[64] = "x: f32[n, 4] strides[ld, 1] const, y: u64 = n * 2 / 3";
		for (int change = 0; change < 1 + turn % 3; change++) {
			seed = seed * 1664525 + 1013904223;
			text[(seed >> 8) % (sizeof text - 1)] = alphabet[(seed >> 16) % (sizeof alphabet)];
		}
		cptx_tensor_launch *l = prepare(idle, text, "n / 64");
		ck_assert_msg((l != NULL) == (err.code == CPTX_OK), "%s: %s", text, err.text);
		ck_assert_msg(l || err.code == CPTX_E_PARSE || err.code == CPTX_E_ARG, "%s: %s", text, err.text);
		good += l != NULL;
		cptx_tensor_launch_destroy(l);
		memset(&err, 0, sizeof err);
	}
	ck_assert_int_gt(good, 100);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { taken, refused, against_the_kernel, many, entries, at_random };
	return harness_run("signature", tests, sizeof tests / sizeof *tests, before, after);
}
