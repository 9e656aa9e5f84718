/* SPDX-License-Identifier: MIT */
/* The options of `cptx gemm`: what the list of the generators (src/gemm/options.def) says of them, read and printed. */
#include "reference/number.h"
#include "cli/compiling.h"
#include "cli/fields.h"
#include "gemm/request.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GEMM_SET(set, kernels, bits) static const char kernels_##set[] = kernels;
#include "gemm/options.def"

const cli_option gemm_options[OPTIONS] = {
#define GEMM_OPTION(ID, name, letter, argument, shape, set, help, choices, expected)                                        \
	[OPTION_##ID] = { name, letter, argument, help, choices },
#include "gemm/options.def"
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "MxNxK",
	                 "run random operands of the types, on a GPU or the emulator; compare every element; a GPU is timed",
	                 "4096x4096x4096" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0" },
	[OPTION_LINES] = { "lines", 'l', NULL, "print .file and .loc", NULL },
	[OPTION_EXPLAIN] = { "explain", 'e', "MxNxK", "the best shapes for such a problem by a model, and why",
	                     "4096x4096x4096" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles for --run; default: auto, the driver", COMPILING_CHOICES },
};

const char *const gemm_scopes[OPTIONS] = {
#define GEMM_OPTION(ID, name, letter, argument, shape, set, help, choices, expected) [OPTION_##ID] = kernels_##set,
#include "gemm/options.def"
	[OPTION_ARCH] = "",  [OPTION_OUTPUT] = "",  [OPTION_RUN] = "",      [OPTION_DEVICE] = "",
	[OPTION_LINES] = "", [OPTION_EXPLAIN] = "", [OPTION_COMPILER] = "",
};

enum shape { OWN, DIMS, FLAG, TYPE, TYPES, LAYOUT, MMA, KIND };
static const struct {
	enum shape shape;
	unsigned of;
	const char *expected;
} values[GEMM_OPTIONS] = {
#define GEMM_OPTION(ID, name, letter, argument, shape, set, help, choices, expected)                                        \
	[OPTION_##ID] = { shape, GEMM_##set, expected },
#include "gemm/options.def"
};

/* The fields that the options set, those of one behind one another. */
enum { OPTION_INSIDE = -1 };
static const cli_field fields[] = {
#define GEMM_FIELD(ID, field, type, set, none, least, most, why, about)                                                     \
	{ OPTION_##ID, offsetof(cptx_gemm_opt, field), least, most, 1, none },
#include "gemm/options.def"
};

static const char *const mma_words[] = {
	[CPTX_GEMM_SYNC] = "sync", [CPTX_GEMM_WGMMA] = "wgmma", [CPTX_GEMM_TCGEN05] = "tcgen05", [CPTX_GEMM_GEMV] = "gemv"
};

unsigned gemm_option_of(int option) { return option < GEMM_OPTIONS ? values[option].of : GEMM_ALL; }

static const cli_field *fields_of(int option, size_t *n)
{
	return cli_fields_of(fields, sizeof fields / sizeof *fields, option, n);
}

/* ---- reading ---- */

static int bad_value(const gemm_request *q, int option, const char *value, const char *expected)
{
	return cli_bad_value(q->cmd, (size_t)option, value, expected);
}

/* Whether a word is one of those that the option's completion lists. */
static bool is_choice(int option, const char *word)
{
	size_t n = strlen(word);

	for (const char *c = gemm_options[option].choices; *c; c += strspn(c, " ")) {
		size_t length = strcspn(c, " ");
		if (length == n && !strncmp(c, word, n))
			return true;
		c += length;
	}
	return false;
}

/* "e4m3", or where there are two fields "e4m3,e2m1" for A and B. */
static bool read_types(gemm_request *q, int option, const cli_field *f, size_t n, const char *value)
{
	char word[16] = "";
	size_t length = strcspn(value, n > 1 ? "," : "");
	const char *second = value[length] ? value + length + 1 : NULL;

	if (length < sizeof word)
		memcpy(word, value, length);
	for (size_t i = 0; i < n; i++) {
		const char *type = i && second ? second : word;
		/* of A and B the kernel names what it takes */
		if (cptx_type_find(type) == CPTX_TYPE_NONE || (option == OPTION_SCALE && !is_choice(option, type)))
			return false;
		*(enum cptx_type *)cli_field_at(&q->o, &f[i]) = cptx_type_find(type);
	}
	return true;
}

/* The number of a word in a list; n: it is not there. */
static unsigned word_at(const char *const *words, unsigned n, const char *value)
{
	unsigned i = 0;

	while (i < n && strcmp(words[i], value))
		i++;
	return i;
}

static bool read_kind(gemm_request *q, const char *value)
{
	for (q->kind = 0; q->kind < CPTX_TCGEN05_KINDS; q->kind++)
		if (!strcmp(value, cptx_tcgen05_kind_name(q->kind)))
			return true;
	return false;
}

static bool read_layout(gemm_request *q, const cli_field *f, size_t n, const char *value)
{
	if (strlen(value) != n || strspn(value, "tn") != n)
		return false;
	for (size_t i = 0; i < n; i++)
		*(bool *)cli_field_at(&q->o, &f[i]) = value[i] == 'n';
	return true;
}

/* "masked,8": which experts, and how many. */
static bool read_experts(gemm_request *q, const char *value)
{
	const size_t length = strcspn(value, ",");
	uint64_t experts;

	for (unsigned i = 1; i < CPTX_GEMM_EXPERTS_KINDS; i++) {
		const char *name = cptx_gemm_experts_name((enum cptx_gemm_experts)i);
		if (strlen(name) != length || strncmp(name, value, length) || !value[length])
			continue;
		q->o.experts = (enum cptx_gemm_experts)i;
		if (!number_dims(value + length + 1, &experts, 1, UINT16_MAX))
			return false;
		q->problem.batch = (uint32_t)experts;
		return true;
	}
	return false;
}

/* An option that asks for something of the kernel and has a value for the run. */
static bool read_own(gemm_request *q, int option, const char *value)
{
	uint64_t matrices;
	char *end;

	if (option == OPTION_TIMELINE) {
		q->timeline = value;
		return true;
	}
	if (option == OPTION_EXPERTS)
		return read_experts(q, value);
	if (option == OPTION_UNALIGNED) {
		for (const char *c = value; *c; c++) {
			const int matrix = tolower((unsigned char)*c);
			q->o.unaligned |= matrix == 'a' ? CPTX_GEMM_A : matrix == 'b' ? CPTX_GEMM_B : CPTX_GEMM_D;
		}
		return *value && value[strspn(value, "abdABD")] == 0;
	}
	if (option == OPTION_BATCH) {
		if (!number_dims(value, &matrices, 1, UINT16_MAX))
			return false;
		q->o.batched = true, q->problem.batch = (uint32_t)matrices;
		return true;
	}
	float v = strtof(value, &end);
	if (!*value || *end || isspace((unsigned char)*value) || !isfinite(v))
		return false;
	if (option == OPTION_ALPHA)
		q->o.alpha = true, q->problem.alpha = v;
	else
		q->o.beta = true, q->problem.beta = v;
	return true;
}

static bool read_listed(gemm_request *q, int option, const char *value)
{
	size_t n;
	const cli_field *f = fields_of(option, &n);

	switch (values[option].shape) {
	case DIMS: return cli_read_numbers(&q->o, f, n, value);
	case FLAG: return *(bool *)cli_field_at(&q->o, f) = true;
	case TYPE:
	case TYPES: return read_types(q, option, f, n, value);
	case LAYOUT: return read_layout(q, f, n, value);
	case MMA: return (q->o.mma = word_at(mma_words, CPTX_GEMM_MMAS, value)) < CPTX_GEMM_MMAS;
	case KIND: return read_kind(q, value);
	default: return read_own(q, option, value);
	}
}

int gemm_option_read(gemm_request *q, int option, const char *value)
{
	uint64_t d[3];

	q->seen |= UINT64_C(1) << option;
	if (option < GEMM_OPTIONS) {
		if (read_listed(q, option, value))
			return EXIT_OK;
		return bad_value(q, option, value, values[option].expected);
	}
	switch (option) {
	case OPTION_ARCH: q->arch = value; break;
	case OPTION_OUTPUT: q->output = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_COMPILER: return compiling_named(q->cmd, value, &q->problem.load.compiler);
	case OPTION_RUN:
	case OPTION_EXPLAIN:
		if (!number_dims(value, d, 3, UINT32_MAX))
			return bad_value(q, option, value, "expected three numbers from 1 on, as in 4096x4096x4096");
		q->problem.m = d[0], q->problem.n = d[1], q->problem.k = d[2];
		break;
	default: break; /* takes none, and was seen */
	}
	return EXIT_OK;
}

/* ---- printing ---- */

static void print_dims(const cptx_gemm_opt *o, const cli_field *f, size_t n, char *to, size_t size)
{
	bool asks = false;
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t v = *(const uint32_t *)cli_field_at(o, &f[i]);
		asks |= v > f[i].none;
		used += (size_t)snprintf(to + used, size - used, "%s%u", i ? "x" : "", v ? v : 1);
	}
	if (!asks)
		*to = 0;
}

/* The value of an option; "": none is needed. */
static void print_value(const gemm_request *q, const cptx_gemm_opt *o, int option, char *to, size_t size)
{
	size_t n;
	const cli_field *f = fields_of(option, &n);
	const enum cptx_type *type = cli_field_at(o, f);

	*to = 0;
	switch (values[option].shape) {
	case DIMS: print_dims(o, f, n, to, size); break;
	case TYPES:
		snprintf(to, size, "%s%s%s", cptx_type_name(o->a), o->b == o->a ? "" : ",",
		         o->b == o->a ? "" : cptx_type_name(o->b));
		break;
	case TYPE: snprintf(to, size, "%s", *type ? cptx_type_name(*type) : ""); break;
	case LAYOUT: snprintf(to, size, "%c%c", o->a_m_major ? 'n' : 't', o->b_n_major ? 'n' : 't'); break;
	case MMA: snprintf(to, size, "%s", mma_words[o->mma]); break;
	case KIND: snprintf(to, size, "%s", o->kind ? cptx_tcgen05_kind_name(o->kind) : ""); break;
	default:
		if (option == OPTION_UNALIGNED)
			snprintf(to, size, "%s%s%s", o->unaligned & CPTX_GEMM_A ? "a" : "", o->unaligned & CPTX_GEMM_B ? "b" : "",
			         o->unaligned & CPTX_GEMM_D ? "d" : "");
		if (option == OPTION_BATCH && o->batched)
			snprintf(to, size, "%u", q->problem.batch ? q->problem.batch : 1);
		if (option == OPTION_EXPERTS && o->experts)
			snprintf(to, size, "%s,%u", cptx_gemm_experts_name(o->experts), q->problem.batch ? q->problem.batch : 1);
		if ((option == OPTION_ALPHA && o->alpha) || (option == OPTION_BETA && o->beta))
			snprintf(to, size, "%.9g", (double)(option == OPTION_ALPHA ? q->problem.alpha : q->problem.beta));
	}
	if (values[option].shape == LAYOUT && !strcmp(to, "tt"))
		*to = 0;
}

void gemm_options_text(const gemm_request *q, char *text, size_t size)
{
	cptx_gemm_opt o = q->o;
	cptx_gemm_plan plan = { 0 };
	char value[64];
	size_t used = 0, n;

	cptx_gemm_check(&o, NULL, &plan, NULL);
	o.bk = plan.bk;
	*text = 0;
	for (int i = 0; i < GEMM_OPTIONS && used < size; i++) {
		if (values[i].shape == FLAG) {
			if (*(const bool *)cli_field_at(&o, fields_of(i, &n)))
				used += (size_t)snprintf(text + used, size - used, "%s--%s", used ? " " : "", gemm_options[i].name);
			continue;
		}
		print_value(q, &o, i, value, sizeof value);
		if (*value)
			used += (size_t)snprintf(text + used, size - used, "%s--%s %s", used ? " " : "", gemm_options[i].name, value);
	}
}
