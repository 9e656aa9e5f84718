/* SPDX-License-Identifier: MIT */
#include "run/args.h"

#include "reference/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(char *why, size_t size, const char *text)
{
	snprintf(why, size, "%s", text);
	return false;
}

/* A type's name at the start of the text, up to `end`; NONE if it is none that arguments have. */
static enum cptx_type read_type(const char *text, size_t n)
{
	char name[16];

	if (!n || n >= sizeof name)
		return CPTX_TYPE_NONE;
	memcpy(name, text, n);
	name[n] = 0;
	enum cptx_type t = cptx_type_find(name);
	return t != CPTX_TYPE_NONE && number_has(t) ? t : CPTX_TYPE_NONE;
}

static bool read_value(run_arg *a, const char *text, char *why, size_t size)
{
	char *end;
	unsigned bits = cptx_type_bits(a->type);

	errno = 0;
	if (number_is_float(a->type)) {
		a->bits = number_bits(a->type, strtod(text, &end));
	} else {
		long long s = strtoll(text, &end, 0);
		if (errno == ERANGE && *text != '-') {
			errno = 0;
			a->bits = strtoull(text, &end, 0);
		} else {
			a->bits = (uint64_t)s;
		}
		if (bits < 64 && (s >= INT64_C(1) << bits || s < -(INT64_C(1) << (bits - 1))))
			return wrong(why, size, "the number does not fit its type");
		if (bits < 64)
			a->bits &= (UINT64_C(1) << bits) - 1;
	}
	if (end == text || *end || errno)
		return wrong(why, size, "expected TYPE:NUMBER, as in u32:7 or f32:1.5");
	return true;
}

static bool read_file(run_arg *a, const char *path, char *why, size_t size)
{
	FILE *f = fopen(path, "rb");

	if (!f) {
		snprintf(why, size, "cannot read '%s': %s", path, strerror(errno));
		return false;
	}
	size_t n = fread(a->data, 1, a->size, f);
	bool more = n == a->size && fgetc(f) != EOF, failed = ferror(f) != 0;
	fclose(f);
	if (n == a->size && !more && !failed)
		return true;
	snprintf(why, size, "'%s' has %s than the %zu bytes of the buffer", path, more ? "more" : "less", a->size);
	return false;
}

static void put(run_arg *a, uint64_t i, uint64_t bits)
{
	unsigned each = cptx_type_bits(a->type) / 8;

	memcpy(a->data + i * each, &bits, each);
}

static bool fill(run_arg *a, const char *how, char *why, size_t size)
{
	uint64_t state;
	char *end;

	if (!strcmp(how, "zero"))
		return true;
	if (*how == '@')
		return read_file(a, how + 1, why, size);
	if (!strcmp(how, "iota")) {
		for (uint64_t i = 0; i < a->count; i++)
			put(a, i, number_is_float(a->type) ? number_bits(a->type, (double)i) : i);
		return true;
	}
	if (strncmp(how, "rand:", 5) || how[5] < '0' || how[5] > '9')
		return wrong(why, size, "a buffer is filled by =zero, =iota, =rand:SEED or =@FILE");
	state = strtoull(how + 5, &end, 10) * UINT64_C(0x9e3779b97f4a7c15) + 88172645463325252u;
	if (*end)
		return wrong(why, size, "the seed of =rand:SEED is a number");
	for (uint64_t i = 0; i < a->count; i++) {
		uint64_t r = number_random(&state);
		put(a, i, number_is_float(a->type) ? number_bits(a->type, (double)(int64_t)r / 9223372036854775808.0) : r >> 7);
	}
	return true;
}

static bool read_buffer(run_arg *a, const char *text, char *why, size_t size)
{
	const char *open = strchr(text, '[');
	char *end;

	a->is_buffer = !a->is_bytes;
	a->type = open ? read_type(text, (size_t)(open - text)) : CPTX_TYPE_NONE;
	if (a->type == CPTX_TYPE_NONE)
		return wrong(why, size, "expected buf:TYPE[COUNT]=zero|iota|rand:SEED|@FILE, as in buf:f32[4096]=rand:1");
	errno = 0;
	a->count = strtoull(open + 1, &end, 10);
	if (errno || open[1] < '0' || open[1] > '9' || *end != ']' || !a->count || a->count > UINT64_C(1) << 40)
		return wrong(why, size, "the length in brackets is a number from 1 to 2^40");
	if (end[1] && end[1] != '=')
		return wrong(why, size, "behind the length stands =zero, =iota, =rand:SEED or =@FILE, or nothing");
	a->size = (size_t)(a->count * (cptx_type_bits(a->type) / 8));
	a->data = calloc(1, a->size);
	if (!a->data)
		return wrong(why, size, "out of memory");
	return fill(a, end[1] ? end + 2 : "zero", why, size);
}

bool run_arg_read(run_arg *a, const char *spec, char *why, size_t size)
{
	const char *colon = strchr(spec, ':');

	*a = (run_arg){ .spec = spec };
	if (!strncmp(spec, "buf:", 4))
		return read_buffer(a, spec + 4, why, size);
	if (!strncmp(spec, "mem:", 4)) {
		a->is_hidden = true;
		return read_buffer(a, spec + 4, why, size);
	}
	if (!strncmp(spec, "bytes:", 6)) {
		a->is_bytes = true;
		return read_buffer(a, spec + 6, why, size);
	}
	if (!strncmp(spec, "tmap:", 5))
		return run_map_read(a, spec + 5, why, size);
	a->type = colon ? read_type(spec, (size_t)(colon - spec)) : CPTX_TYPE_NONE;
	if (a->type == CPTX_TYPE_NONE)
		return wrong(why, size,
		             "expected TYPE:NUMBER, as in u32:7, buf:TYPE[COUNT]=..., as in buf:f32[4096]=zero, or tmap:K,...");
	return read_value(a, colon + 1, why, size);
}

void run_arg_free(run_arg *a)
{
	free(a->data);
	a->data = NULL;
}

cptx_arg run_arg_value(const run_arg *a, uint64_t address)
{
	cptx_arg v = { .kind = CPTX_ARG_INT, .size = 8 };

	if (a->is_bytes)
		return CPTX_ARG_BYTES(a->data, a->size);
	v.u.u64 = a->is_buffer ? address : a->bits;
	if (a->is_buffer)
		return v;
	v.size = cptx_type_bits(a->type) / 8;
	if (a->type == CPTX_F32 || a->type == CPTX_F64)
		v.kind = CPTX_ARG_FLOAT;
	return v;
}
