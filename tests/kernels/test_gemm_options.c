/* SPDX-License-Identifier: MIT */
/* The list of the GEMM options: each kernel takes those that the list gives it, and says of all others whose they are. */
#include "../test.h"

#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 5 };

enum {
#define GEMM_SET(set, kernels, bits) GEMM_##set = (bits),
#include "gemm/options.def"
};

typedef enum type { NUMBER, BOOL, TYPE, MMA, KIND, EXPERTS, POINTER } type;
static const struct field {
	const char *name;
	type type;
	size_t offset, size;
	unsigned of;
	uint32_t none, least, most;
} fields[] = {
#define GEMM_FIELD(ID, field, type, set, none, least, most, why, about)                                                     \
	{ #field, type, offsetof(cptx_gemm_opt, field), sizeof((cptx_gemm_opt){ 0 }.field), GEMM_##set, none, least, most },
#include "gemm/options.def"
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* A kernel of each generator, in the order of the list's bits. */
static const cptx_gemm_opt kernels[KERNELS] = {
	{ .a = CPTX_BF16,
	  .b = CPTX_BF16,
	  .out = CPTX_F32,
	  .bm = 64,
	  .bn = 64,
	  .bk = 32,
	  .stages = 3,
	  .warps_m = 2,
	  .warps_n = 2 },
	{ .a = CPTX_E4M3,
	  .b = CPTX_E4M3,
	  .out = CPTX_F32,
	  .scale = CPTX_UE8M0,
	  .bm = 64,
	  .bn = 64,
	  .stages = 2,
	  .warps_m = 2,
	  .warps_n = 2 },
	{ .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .bm = 64, .bn = 64, .stages = 3 },
	{ .mma = CPTX_GEMM_TCGEN05,
	  .kind = CPTX_TCGEN05_F16,
	  .a = CPTX_BF16,
	  .b = CPTX_BF16,
	  .out = CPTX_F32,
	  .bm = 128,
	  .bn = 64,
	  .stages = 3 },
	{ .mma = CPTX_GEMM_GEMV, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .bm = 8, .bn = 16, .bk = 128, .warps_m = 8 },
};

static cptx_val same(cptx_kernel *k, void *user, cptx_val value, cptx_val row, cptx_val col)
{
	(void)k, (void)user, (void)row, (void)col;
	return value;
}

/* The field asks for something. */
static void ask(cptx_gemm_opt *o, const struct field *f)
{
	void *at = (char *)o + f->offset;
	const cptx_gemm_epilogue_fn some = same;

	switch (f->type) {
	case NUMBER: *(uint32_t *)at = f->none + 1 > f->least ? f->none + 1 : f->least; break;
	case BOOL: *(bool *)at = true; break;
	case TYPE: *(enum cptx_type *)at = CPTX_UE8M0; break;
	case KIND: *(enum cptx_tcgen05_kind *)at = CPTX_TCGEN05_MXF8F6F4; break;
	case EXPERTS: *(enum cptx_gemm_experts *)at = CPTX_GEMM_EXPERTS_MASKED; break;
	case POINTER: memcpy(at, &some, f->size); break;
	default: break;
	}
}

START_TEST(every_kernel_is_right)
{
	cptx_error err = { .code = CPTX_OK };

	for (unsigned k = 0; k < KERNELS; k++)
		ck_assert_msg(cptx_gemm_check(&kernels[k], NULL, NULL, &err), "kernel %u: %s", k, err.text);
}
END_TEST

/* What the list gives to some kernels only is refused by the others as an option of those, and by those not. */
START_TEST(options_are_of_the_kernels_of_the_list)
{
	char text[64];
	unsigned refused = 0, taken = 0;

	for (unsigned i = 0; i < FIELDS * KERNELS; i++) {
		const struct field *f = &fields[i / KERNELS];
		cptx_gemm_opt o = kernels[i % KERNELS];
		cptx_error err = { .code = CPTX_OK };
		if (f->of == GEMM_ALL || !strcmp(f->name, "scale")) /* scale itself says which kernel of mma.sync it is */
			continue;
		o.size = CPTX_OPT_SIZE(cptx_gemm_opt);
		ask(&o, f);
		snprintf(text, sizeof text, ".%s is an option of ", f->name);
		bool ok = cptx_gemm_check(&o, NULL, NULL, &err), of = f->of >> (i % KERNELS) & 1;
		ck_assert_msg(of == !strstr(err.text, text), "%s of kernel %u: %s", f->name, i % KERNELS, ok ? "taken" : err.text);
		ck_assert(of || !ok);
		refused += !of, taken += of;
	}
	ck_assert_uint_ge(refused, 15);
	ck_assert_uint_ge(taken, 15);
}
END_TEST

/* No kernel takes a number beyond the list's range. */
START_TEST(numbers_beyond_the_range_are_refused)
{
	for (unsigned i = 0; i < FIELDS * KERNELS; i++) {
		const struct field *f = &fields[i / KERNELS];
		cptx_gemm_opt o = kernels[i % KERNELS];
		cptx_error err = { .code = CPTX_OK };
		if (f->type != NUMBER || !(f->of >> (i % KERNELS) & 1))
			continue;
		*(uint32_t *)((char *)&o + f->offset) = f->most + 1;
		ck_assert_msg(!cptx_gemm_check(&o, NULL, NULL, FRESH(&err)), "kernel %u takes %s = %u", i % KERNELS, f->name,
		              f->most + 1);
		ck_assert_msg(err.text[0], "%s", f->name);
	}
}
END_TEST

/* The rows are the struct's fields in order: between two there is no more than aligns the second, and .user and .name, which
 * say nothing of a kernel. */
START_TEST(every_field_is_in_the_list)
{
	size_t end = sizeof((cptx_gemm_opt){ 0 }.size);

	for (unsigned i = 0; i < FIELDS; i++) {
		if (end == offsetof(cptx_gemm_opt, user)) /* it and the name ask for nothing */
			end = offsetof(cptx_gemm_opt, name) + sizeof((cptx_gemm_opt){ 0 }.name);
		ck_assert_msg(fields[i].offset >= end, "%s is not in the order of the struct, or there twice", fields[i].name);
		ck_assert_msg(fields[i].offset - end < fields[i].size, "what is in front of %s is not in src/gemm/options.def",
		              fields[i].name);
		end = fields[i].offset + fields[i].size;
		if (end == offsetof(cptx_gemm_opt, user))
			end = offsetof(cptx_gemm_opt, name) + sizeof((cptx_gemm_opt){ 0 }.name);
	}
	ck_assert_msg(end == offsetof(cptx_gemm_opt, z_), "what is in front of z_ is not in src/gemm/options.def");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm options");
	TCase *t = tcase_create("list");

	tcase_add_test(t, every_kernel_is_right);
	tcase_add_test(t, options_are_of_the_kernels_of_the_list);
	tcase_add_test(t, numbers_beyond_the_range_are_refused);
	tcase_add_test(t, every_field_is_in_the_list);
	suite_add_tcase(s, t);
	return test_main("gemm_options", s);
}
