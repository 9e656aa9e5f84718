/* SPDX-License-Identifier: MIT */
/* What <cptx/rows.def> lists, as tables: names and what cannot fail. */
#include "rows/rows.h"

const rows_operand rows_operands[CPTX_ROWS_OPERANDS] = {
#define ROWS_OPERAND(ID, name, kind, type, about) { name, name "_stride", about, ROWS_##kind, ROWS_##type },
#include <cptx/rows.def>
};

const rows_kernel rows_kernels[CPTX_ROWS_KERNELS] = {
	{ "own", "what .body says", NULL, false, 0, 0, 0, 0, 0 },
#define ROWS_KERNEL(ID, name, body, local, reads, writes, may_read, may_write, takes, about)                                \
	{ name, about, body, local, reads, writes, may_read, may_write, takes },
#include <cptx/rows.def>
};

const char *cptx_rows_kernel_name(enum cptx_rows_kernel kernel)
{
	return (unsigned)kernel < CPTX_ROWS_KERNELS ? rows_kernels[kernel].name : "?";
}

const char *cptx_rows_kernel_about(enum cptx_rows_kernel kernel)
{
	return (unsigned)kernel < CPTX_ROWS_KERNELS ? rows_kernels[kernel].about : "?";
}

const char *cptx_rows_place_name(enum cptx_rows_place place)
{
	static const char *const names[] = {
#define ROWS_PLACE(ID, name, about) name,
#include <cptx/rows.def>
	};

	return (unsigned)place < ARRAY_LEN(names) ? names[place] : "?";
}

enum cptx_rows_kernel cptx_rows_kernel_find(const char *name)
{
	unsigned i = 0;

	while (i < CPTX_ROWS_KERNELS && (!name || strcmp(rows_kernels[i].name, name) != 0))
		i++;
	return (enum cptx_rows_kernel)i;
}

const char *cptx_rows_operand_name(enum cptx_rows_operand operand)
{
	return (unsigned)operand < CPTX_ROWS_OPERANDS ? rows_operands[operand].name : "?";
}

enum cptx_rows_operand cptx_rows_operand_find(const char *name)
{
	unsigned i = 0;

	while (i < CPTX_ROWS_OPERANDS && (!name || strcmp(rows_operands[i].name, name) != 0))
		i++;
	return (enum cptx_rows_operand)i;
}
