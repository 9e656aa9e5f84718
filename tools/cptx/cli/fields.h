/* SPDX-License-Identifier: MIT */
/* Options of the command that set fields of a generator's options, by a table made of the generator's list. */
#ifndef CPTX_TOOL_CLI_FIELDS_H
#define CPTX_TOOL_CLI_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_FIELDS = 3 /* most of an option */ };

/* A field; those of one option stand behind one another in the table. */
typedef struct cli_field {
	int option;
	size_t offset;                    /* in the generator's options */
	uint32_t least, most, step, none; /* of numbers; up to `none` the option need not be printed */
} cli_field;

/* The first of an option's fields in a table of n, and how many there are. */
const cli_field *cli_fields_of(const cli_field *table, size_t n, int option, size_t *count);
static inline void *cli_field_at(const void *options, const cli_field *f) { return (char *)(uintptr_t)options + f->offset; }
/* Reads as many numbers as there are fields, "128x64", each in its range; false if the value is not that. */
bool cli_read_numbers(void *options, const cli_field *fields, size_t n, const char *value);

#endif
