/* SPDX-License-Identifier: MIT */
/* The convolution of examples/kit: every shape in several orders, with nothing found, and what ptxas says of it. */
#include "../whole.h"
#include "conv_sm90a.h"
#include "on_emu.h"

enum { ORDERS = 3, ORDERS_WHOLE = 100 };

START_TEST(shapes_are_right)
{
	cptx_error err = { 0 };
	const uint64_t orders = whole() ? ORDERS_WHOLE : ORDERS;
	const cptx_emu_opt opt = { .pedantic = true };
	cptx_device *dev = cptx_emu_open("sm_90a", &opt, &err);

	SURE(dev != NULL, "%s", err.text);
	for (uint64_t i = 0; i < orders * CONV_SHAPES; i++) {
		const conv *c = &conv_shapes[i % CONV_SHAPES];
		const uint64_t seed = i / CONV_SHAPES;
		uint64_t wrong;
		if (!is_my_part(i))
			continue;
		ck_assert(cptx_emu_reseed(dev, seed, (enum cptx_emu_schedule)(seed % 3)));
		SURE(conv_check(dev, c, &wrong, &err), "seed %llu: %s", (unsigned long long)seed, err.text);
		ck_assert_uint_eq(wrong, 0);
		ck_assert_ptr_null(cptx_emu_finding_at(dev, 0));
	}
	cptx_device_close(dev);
}
END_TEST

/* A GPU that has no wgmma is told of. */
START_TEST(another_target_is_refused)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_100a", NULL, &err);
	uint64_t wrong;

	ck_assert(!conv_check(dev, &conv_shapes[0], &wrong, &err));
	SURE(strstr(err.text, "conv_sm90a.c:") && strstr(err.text, "targets that have it: sm_90a"), "%s", err.text);
	cptx_device_close(dev);
}
END_TEST

START_TEST(ptxas_spills_nothing)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge the convolution");
		return;
	}
	for (uint32_t i = 0; i < CONV_SHAPES; i++) {
		cptx_module *m = cptx_module_new(NULL);
		unsigned kernels = 0;
		conv_build(m, &conv_shapes[i]);
		char *said = emu_assembles(m, "sm_90a");
		SURE(assembly_spills(said, &kernels) == 0 && kernels == 1, "%s", said);
		SURE(!strstr(said, "serialized"), "%s", said); /* products of wgmma that wait for one another */
		free(said);
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "conv_sm90a");

	tcase_add_test(t, shapes_are_right);
	tcase_add_test(t, another_target_is_refused);
	tcase_add_test(t, ptxas_spills_nothing);
	return test_main("kit conv_sm90a", s);
}
