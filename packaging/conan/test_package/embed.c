/* SPDX-License-Identifier: MIT */
/* The package can be linked with: a kernel is built and printed. */
#include <cptx/cptx.h>

#include <stdio.h>

int main(void)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_add(k, cptx_tid_x(k), 1);
	cptx_ptx *ptx = cptx_emit(m, "sm_80", NULL, &err);
	puts(ptx ? "cptx " CPTX_VERSION " prints" : err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return err.code != CPTX_OK;
}
