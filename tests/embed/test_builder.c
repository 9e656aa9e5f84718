/* SPDX-License-Identifier: MIT */
/* The public headers in C++17: the same kernel built by both languages, and a launch from C++ on the emulator. */
#include "../test.h"

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>
#include <cptx/reduce.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>
#include <cptx/vector.h>

#include "builder.inc"

void build_row_cpp(cptx_module *m);
void build_kit_cpp(cptx_module *m);
void build_softmax_cpp(cptx_module *m);
int launch_cpp(cptx_error *err); /* how many results are wrong; -1 on error */

static char *printed(void (*build)(cptx_module *m))
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);

	build(m);
	cptx_ptx *ptx = cptx_emit(m, "sm_80", NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	char *text = strdup(cptx_ptx_text(ptx));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return text;
}

START_TEST(same_ptx)
{
	char *c = printed(build_row), *cpp = printed(build_row_cpp);

	ck_assert_str_eq(c, cpp);
	ck_assert_ptr_nonnull(strstr(c, "fma.rn.ftz.f32"));
	free(c);
	free(cpp);
	c = printed(build_kit), cpp = printed(build_kit_cpp);
	ck_assert_str_eq(c, cpp);
	ck_assert_ptr_nonnull(strstr(c, "cp.async.commit_group"));
	free(c);
	free(cpp);
	c = printed(build_softmax), cpp = printed(build_softmax_cpp);
	ck_assert_str_eq(c, cpp);
	ck_assert_ptr_nonnull(strstr(c, "shfl.sync"));
	free(c);
	free(cpp);
}
END_TEST

START_TEST(launch)
{
	cptx_error err = { 0 };

	if (!cptx_device_count("emu", NULL)) {
		skip("this build leaves out the emulator");
		return;
	}
	ck_assert_int_eq(launch_cpp(&err), 0);
	ck_assert_str_eq(err.text, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("builder");
	TCase *c = tcase_create("builder");
	suite_add_tcase(s, c);
	tcase_add_test(c, same_ptx);
	tcase_add_test(c, launch);
	return test_main("builder", s);
}
