/* SPDX-License-Identifier: MIT */
/* What a program of C11 and one of C++17 print alike, each with cptx.c in its language: built, checked, printed, read, as C.
 */
#include "cptx.h"

#include <stdio.h>
#include <string.h>

#include "builder.inc"

static void report(void *user, const cptx_error *err)
{
	(void)user;
	printf("%s\n", err->text);
}

static int print(cptx_ptx *ptx, const cptx_error *err)
{
	puts(ptx ? cptx_ptx_text(ptx) : err->text);
	cptx_ptx_destroy(ptx);
	return !ptx;
}

static int row(void)
{
	cptx_error err = { CPTX_OK, 0, 0, "", "" };
	cptx_module *m = cptx_module_new(NULL);

	build_row(m);
	printf("%zu errors for sm_80\n", cptx_check(m, "sm_80", report, NULL));
	printf("%zu errors for sm_10\n", cptx_check(m, "sm_10", report, NULL));
	cptx_ptx *ptx = cptx_emit(m, "sm_80", NULL, &err);
	cptx_module *read = cptx_parse(ptx ? cptx_ptx_text(ptx) : "", ptx ? cptx_ptx_size(ptx) : 0, NULL);
	int wrong = print(cptx_emit(read, NULL, NULL, &err), &err) + print(cptx_to_c(read, NULL, &err), &err);
	wrong += print(ptx, &err);
	cptx_module_destroy(read);
	cptx_module_destroy(m);
	return wrong;
}

static int gemm(const char *target)
{
	cptx_error err = { CPTX_OK, 0, 0, "", "" };
	cptx_gemm_opt opt = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find(target));
	cptx_module *m = cptx_module_new(NULL);

	cptx_gemm_build(m, &opt, &err);
	int wrong = print(err.code ? NULL : cptx_emit(m, target, NULL, &err), &err);
	cptx_module_destroy(m);
	return wrong;
}

/* A kernel that the nouns of the kit build. */
static int nouns(void (*build)(cptx_module *m))
{
	cptx_error err = { CPTX_OK, 0, 0, "", "" };
	cptx_module *m = cptx_module_new(NULL);

	build(m);
	int wrong = print(cptx_emit(m, "sm_80", NULL, &err), &err);
	cptx_module_destroy(m);
	return wrong;
}

int main(void)
{
	int wrong = row() + nouns(build_kit) + nouns(build_softmax);

	return wrong + gemm("sm_80") + gemm("sm_90a") + gemm("sm_100a") + gemm("sm_120a");
}
