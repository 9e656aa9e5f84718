/* SPDX-License-Identifier: MIT */
#include "verify.h"
#include "../reparse.h"

#include "assemble.h"
#include "../ask.h"

#include <stdarg.h>

scene s;
static unsigned asked, unasked; /* texts that ptxas judged; that it could not, for want of one */

void drop(void)
{
	cptx_module_destroy(s.m);
	s = (scene){ 0 };
}

void blank(void)
{
	drop();
	s.m = cptx_module_new(NULL);
}

void fresh(void)
{
	blank();
	cptx_kernel *f = cptx_func_begin(s.m, "twice", CPTX_U32);
	cptx_func_return(f, cptx_shl(f, cptx_param(f, CPTX_U32, "x"), 1));
	s.func = cptx_func_val(f);
	s.other = cptx_kernel_begin(s.m, "other");
	s.foreign = cptx_tid_x(s.other);
	s.foreign_label = cptx_label(s.other);
	cptx_place(s.other, s.foreign_label);
	s.k = cptx_kernel_begin(s.m, "k");
	s.ptr = cptx_param(s.k, CPTX_PTR, "ptr");
	s.a = cptx_tid_x(s.k);
	s.b = cptx_ntid_x(s.k);
	s.f = cptx_var(s.k, CPTX_F32, 1.0f);
	s.d = cptx_var(s.k, CPTX_F64, 1.0);
	s.p = cptx_setp(s.k, s.a, s.b, .cmp = CPTX_LT);
	s.w = cptx_regs(s.k, CPTX_B32, 4);
	const cptx_error *e = cptx_module_error(s.m);
	ck_assert_msg(!e, "%s", e ? e->text : "");
}

void says(const cptx_error *err, enum cptx_code code, const char *part)
{
	ck_assert_msg(err && err->code != CPTX_OK, "no error, where this was to come: %s", part);
	ck_assert_msg(err->code == code, "%s, not %s: %s", cptx_code_name(err->code), cptx_code_name(code), err->text);
	ck_assert_msg(strstr(err->text, part) != NULL, "no \"%s\" in: %s", part, err->text);
}

void refused(cptx_site at, size_t size_before, enum cptx_code code, const char *part)
{
	const cptx_error *e = cptx_module_error(s.m);
	char prefix[512], text[CPTX_ERROR_TEXT];
	cptx_error err = { .code = CPTX_OK };

	says(e, code, part);
	snprintf(prefix, sizeof prefix, "%s:%u: ", at.file, (unsigned)at.line);
	ck_assert_msg(!strncmp(e->text, prefix, strlen(prefix)), "not \"%s\": %s", prefix, e->text);
	ck_assert_str_eq(e->file, at.file);
	ck_assert_uint_eq(e->line, at.line);
	ck_assert_uint_eq(cptx_module_size(s.m), size_before);

	memcpy(text, e->text, sizeof text);
	ck_assert_int_eq(cptx_add(s.k, 1, s.a).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_param(s.k, CPTX_U32, "later").kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_shared(s.k, CPTX_U32, 1).kind, CPTX_VAL_NONE);
	ck_assert_int_eq(cptx_global(s.m, CPTX_U32, 1, "later").kind, CPTX_VAL_NONE);
	CPTX_IF(s.k, s.p)
		cptx_break_when(s.k, s.p);
	cptx_comment(s.k, "later");
	ck_assert_ptr_null(cptx_kernel_begin(s.m, "later"));
	ck_assert(!cptx_module_freeze(s.m));
	ck_assert_ptr_null(cptx_emit(s.m, "sm_90", NULL, &err));
	ck_assert_str_eq(err.text, text);
	ck_assert_str_eq(cptx_module_error(s.m)->text, text);
	ck_assert_uint_eq(cptx_module_size(s.m), size_before);
}

char *printed(const char *target, const cptx_emit_opt *opt)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(s.m, target, opt, &err);

	ck_assert_msg(ptx != NULL, "%s", err.text);
	ck_assert_uint_eq(cptx_ptx_size(ptx), strlen(cptx_ptx_text(ptx)));
	char *text = strdup(cptx_ptx_text(ptx));
	ck_assert_msg(test_reparses(text), "%s", text);
	cptx_ptx_destroy(ptx);
	if (!test_ptxas()) {
		unasked++;
		return text;
	}
	asked++;
	assembly job = { .target = target, .ptx = text };
	assemble(&job, 1);
	ck_assert_msg(!job.status, "%s\n%s", job.said, text);
	ck_assert_msg(!strstr(job.said, "warning"), "%s\n%s", job.said, text);
	assemble_free(&job, 1);
	return text;
}

void shows(const char *target, ...)
{
	char *text = printed(target, NULL), *at = text;
	const char *part;
	va_list ap;

	va_start(ap, target);
	while ((part = va_arg(ap, const char *))) {
		char *found = strstr(at, part);
		ck_assert_msg(found != NULL, "no \"%s\" %sin:\n%s", part, strstr(text, part) ? "at its place " : "", text);
		at = found + strlen(part);
	}
	va_end(ap);
	free(text);
}

void body_is(const char *target, const char *want)
{
	char *text = printed(target, NULL), *body = strstr(text, "{\n");

	ck_assert_msg(body != NULL, "%s", text);
	body += 2;
	while (!strncmp(body, "\t.reg ", 6))
		body = strchr(body, '\n') + 1;
	ck_assert_msg(!strncmp(body, want, strlen(want)) && !strcmp(body + strlen(want), "}\n"), "\n%s-- and not\n%s}\n", body,
	              want);
	free(text);
}

void cannot_print(const char *target, enum cptx_code code, const char *part)
{
	cptx_error err = { .code = CPTX_OK };

	ck_assert_ptr_null(cptx_emit(s.m, target, NULL, FRESH(&err)));
	says(&err, code, part);
	ck_assert_ptr_null(cptx_emit(s.m, target, NULL, NULL));
}

START_TEST(ptxas_agreed)
{
	if (unasked)
		skip("ptxas, to judge %u printed modules", unasked);
	else
		ck_assert_uint_gt(asked, 0);
}
END_TEST

int verify_run(const char *name, const TTest *const *tests, size_t n, bool prints)
{
	Suite *suite = suite_create(name);
	TCase *c = tcase_create(name);

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 0);
	tcase_add_checked_fixture(c, NULL, drop);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(c, tests[i]);
	if (prints)
		tcase_add_test(c, ptxas_agreed); /* the last, so that it counts all */
	suite_add_tcase(suite, c);
	return test_main(name, suite);
}
