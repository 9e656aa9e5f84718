/* SPDX-License-Identifier: MIT */
/* The example of every instruction, built by C: "// name target", and its PTX.  test_build.py builds the same and compares.
 */
#include <cptx/cptx.h>

#include <stdio.h>

typedef struct example {
	const char *name, *opcode, *declarations, *ptx;
	unsigned form;
	void (*build)(cptx_kernel *k, cptx_kernel *function);
} example;

#include "insn_examples.inc"

int main(void)
{
	for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_kernel *function = cptx_func_begin(m, "function", CPTX_TYPE_NONE);
		const cptx_target *t = NULL;
		cptx_ptx *ptx = NULL;
		examples[i].build(cptx_kernel_begin(m, "k"), function);
		for (size_t j = 0; !ptx && (t = cptx_target_at(j)) != NULL; j++)
			ptx = cptx_emit(m, t->name, NULL, NULL);
		if (!ptx) {
			fprintf(stderr, "%s: no target has it\n", examples[i].name);
			return 1;
		}
		printf("// %s %s\n%s", examples[i].name, t->name, cptx_ptx_text(ptx));
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
	return 0;
}
