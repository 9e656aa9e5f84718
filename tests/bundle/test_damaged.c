/* SPDX-License-Identifier: MIT */
/* The loader with damaged bundles: a change of any byte in front of the images is an error, and even where the checksum is
 * made right again nothing outside of the bundle is read. */
#include "cptx_load.h"

#include "../runtime/harness.h"

#include <cptx/bundle.h>

static uint64_t *good;
static size_t size;

static void before(void)
{
	cptx_error err = { 0 };
	cptx_bundle *b = cptx_bundle_new(NULL, &err);
	const cptx_gemm_opt opt = { .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .beta = true };
	static const char *const targets[] = { "sm_80", "sm_90" };

	for (int i = 0; i < 2; i++)
		ck_assert_msg(cptx_bundle_add_gemm(b,
		                                   CPTX_OPT(cptx_bundle_gemm, .name = "g", .target = targets[i], .opt = &opt,
		                                            .m = 64, .n = 64, .k = 64),
		                                   &err),
		              "%s", err.text);
	const void *data = cptx_bundle_finish(b, &size, &err);
	OK(err);
	good = malloc(size);
	memcpy(good, data, size);
	cptx_bundle_destroy(b);
}

static void after(void) { free(good); }

/* Reads all that the loader tells without a device. */
static bool read_all(const uint64_t *data, size_t n)
{
	char err[CPTX_LOAD_ERROR] = "";
	cptx_load *b = cptx_load_memory(data, n, err);

	ck_assert_int_eq(b == NULL, *err != 0);
	for (uint32_t i = 0; i < cptx_load_count(b); i++) {
		ck_assert_uint_lt(strlen(cptx_load_name(b, i)) + strlen(cptx_load_about(b, i)), n);
		for (uint32_t j = 0; cptx_load_argument(b, i, j, NULL); j++)
			ck_assert_uint_lt(strlen(cptx_load_argument(b, i, j, NULL)), n);
	}
	cptx_load_close(b);
	return b != NULL;
}

START_TEST(every_byte)
{
	uint64_t *changed = malloc(size);
	const cptx_load_head *h = (const cptx_load_head *)good;
	cptx_load_head *head = (cptx_load_head *)changed;
	const size_t images = (size_t)h->images;

	ck_assert(read_all(good, size));
	for (size_t i = 0; i < images; i++) {
		memcpy(changed, good, size);
		((char *)changed)[i] ^= (char)(1 << i % 8);
		ck_assert_msg(!read_all(changed, size), "byte %zu", i);
		memcpy(changed, good, size);
		((char *)changed)[i] ^= (char)(i % 2 ? 0x81 : 0x03);
		if (head->images != h->images)
			continue;
		head->sum = cptx_load_sum_of(head);
		read_all(changed, size);
	}
	for (size_t n = 0; n < size; n += size / 200)
		ck_assert(!read_all(good, n));
	ck_assert(!read_all(NULL, size));
	free(changed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("bundle_damaged");
	TCase *c = test_case(s, "bundle_damaged");

	tcase_add_checked_fixture(c, before, after);
	tcase_add_test(c, every_byte);
	return test_main("bundle_damaged", s);
}
