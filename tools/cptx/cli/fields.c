/* SPDX-License-Identifier: MIT */
#include "cli/fields.h"
#include "reference/number.h"

const cli_field *cli_fields_of(const cli_field *table, size_t n, int option, size_t *count)
{
	size_t first = 0;

	while (first < n && table[first].option != option)
		first++;
	*count = 0;
	while (first + *count < n && table[first + *count].option == option)
		++*count;
	return &table[first];
}

bool cli_read_numbers(void *options, const cli_field *fields, size_t n, const char *value)
{
	uint64_t d[CLI_FIELDS];

	if (n > CLI_FIELDS || !number_dims(value, d, n, UINT32_MAX))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (d[i] < fields[i].least || d[i] > fields[i].most || d[i] % fields[i].step)
			return false;
		*(uint32_t *)cli_field_at(options, &fields[i]) = (uint32_t)d[i];
	}
	return true;
}
