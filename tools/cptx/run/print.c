/* SPDX-License-Identifier: MIT */
#include "run/print.h"

#include "reference/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 40, LINE = 100 /* characters */ };

static bool wrong(char *why, size_t size)
{
	snprintf(why, size,
	         "expected an argument's number or name and maybe :TYPE[COUNT] and +FIRST, as in 0, 0:f32[8] or out:u32[4]+16");
	return false;
}

/* "f32[8]", "u32[4]+16" */
static bool read_elements(run_print *p, const char *text, char *why, size_t size)
{
	const char *open = strchr(text, '[');
	char type[16], *end;

	if (!open || open == text || open - text >= (ptrdiff_t)sizeof type)
		return wrong(why, size);
	memcpy(type, text, (size_t)(open - text));
	type[open - text] = 0;
	p->type = cptx_type_find(type);
	if (p->type == CPTX_TYPE_NONE || !number_has(p->type)) {
		snprintf(why, size, "'%s' is no type of elements; u8 to u64, s8 to s64, b8 to b64, f16, bf16, f32 and f64 are",
		         type);
		return false;
	}
	errno = 0;
	p->count = strtoull(open + 1, &end, 10);
	if (errno || open[1] < '0' || open[1] > '9' || *end != ']' || !p->count)
		return wrong(why, size);
	if (!end[1])
		return true;
	const char *from = end + 2;
	p->from = strtoull(from, &end, 10);
	return (from[-1] == '+' && *from >= '0' && *from <= '9' && !*end && !errno) || wrong(why, size);
}

bool run_print_read(run_print *p, const char *spec, char *why, size_t size)
{
	size_t n = strcspn(spec, ":");
	char *end;

	*p = (run_print){ .spec = spec };
	if (!n || n >= sizeof p->name)
		return wrong(why, size);
	memcpy(p->name, spec, n);
	if (*spec >= '0' && *spec <= '9') {
		errno = 0;
		p->arg = strtoull(spec, &end, 10);
		if (errno || end != spec + n)
			return wrong(why, size);
		p->name[0] = 0;
	}
	return !spec[n] || read_elements(p, spec + n + 1, why, size);
}

/* ---- which buffer ---- */

/* The number of the argument for parameter number n: buffers that the kernel is not given are none. */
static size_t nth_argument(const run_arg *args, size_t narg, size_t n)
{
	for (size_t i = 0; i < narg; i++)
		if (!args[i].is_hidden && !n--)
			return i;
	return narg;
}

static bool find_name(run_print *p, const run_arg *args, size_t narg, const char *text, size_t size, const char *entry)
{
	cptx_module *m = cptx_parse(text, size, &(cptx_parse_opt){ .name = "" });
	cptx_kernel_info info;
	bool found = false;

	bool known = m && cptx_module_freeze(m) && cptx_module_kernel(m, entry, &info);
	for (size_t i = 0; known && i < info.nparams && !found; i++)
		if (!strcmp(info.params[i].name, p->name)) {
			p->arg = nth_argument(args, narg, i);
			found = true;
		}
	cptx_module_destroy(m);
	return found;
}

int run_print_check(const cli_command *cmd, run_print *p, const run_arg *args, size_t narg, const char *text, size_t size,
                    const char *entry)
{
	if (p->name[0] && !find_name(p, args, narg, text, size, entry))
		return cli_usage(cmd, "--print %s: the kernel has no parameter '%s'; the arguments have the numbers 0, 1 ...",
		                 p->spec, p->name);
	if (p->arg >= narg || !args[p->arg].is_buffer)
		return cli_usage(cmd, "--print %s: argument %" PRIu64 " is no buffer", p->spec, p->arg);
	const run_arg *a = &args[p->arg];
	if (p->type == CPTX_TYPE_NONE) {
		p->type = a->type;
		p->count = a->count;
	}
	uint64_t have = a->size / (cptx_type_bits(p->type) / 8);
	if (p->from > have || p->count > have - p->from)
		return cli_usage(cmd, "--print %s: the buffer has %" PRIu64 " elements of .%s", p->spec, have,
		                 cptx_type_name(p->type));
	return EXIT_OK;
}

/* ---- how ---- */

/* The shortest decimal that is the same number in the type. */
static void put_float(char word[WORD], enum cptx_type type, uint64_t bits)
{
	double v = number_value(type, bits);

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(word, WORD, "%.*g", digits, v);
		if (v != v || number_bits(type, strtod(word, NULL)) == bits)
			return;
	}
}

static void put_element(char word[WORD], enum cptx_type type, const unsigned char *at)
{
	unsigned bytes = cptx_type_bits(type) / 8;
	uint64_t bits = 0;

	memcpy(&bits, at, bytes);
	if (number_is_float(type))
		put_float(word, type, bits);
	else if (cptx_type_name(type)[0] == 'b')
		snprintf(word, WORD, "0x%0*" PRIx64, (int)(2 * bytes), bits);
	else if (cptx_type_name(type)[0] == 's')
		snprintf(word, WORD, "%" PRId64,
		         bytes == 8 ? (int64_t)bits : (int64_t)(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes));
	else
		snprintf(word, WORD, "%" PRIu64, bits);
}

void run_print_show(const run_print *p, const unsigned char *data)
{
	unsigned each = cptx_type_bits(p->type) / 8, per_line = 16;
	int width = 1, left = snprintf(NULL, 0, "%" PRIu64, p->from + p->count - 1);
	char word[WORD];

	printf("argument %" PRIu64 "%s%s%s, %s[%" PRIu64 "]", p->arg, p->name[0] ? " (" : "", p->name, p->name[0] ? ")" : "",
	       cptx_type_name(p->type), p->count);
	if (p->from)
		printf(" from %" PRIu64 " on", p->from);
	puts(":");
	for (uint64_t i = 0; i < p->count; i++) {
		put_element(word, p->type, data + (p->from + i) * each);
		width = (int)strlen(word) > width ? (int)strlen(word) : width;
	}
	while (per_line > 1 && per_line * (unsigned)(width + 1) > LINE)
		per_line /= 2;
	for (uint64_t i = 0; i < p->count; i++) {
		put_element(word, p->type, data + (p->from + i) * each);
		if (i % per_line == 0)
			printf("%s%*" PRIu64 ":", i ? "\n" : "", left + 2, p->from + i);
		printf(" %*s", width, word);
	}
	putchar('\n');
}
