/* SPDX-License-Identifier: MIT */
/* The options of `cptx attention`: what the list of the generators (src/attention/options.def) says of them, read and
 * printed. */
#include "attention/request.h"
#include "cli/compiling.h"
#include "cli/fields.h"
#include "reference/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const cli_option attention_options[OPTIONS] = {
#define ATTENTION_OPTION(ID, name, letter, argument, shape, set, help, choices, expected)                                   \
	[OPTION_##ID] = { name, letter, argument, help, choices },
#include "attention/options.def"
	[OPTION_HEADS] = { "heads", 'H', "N", "heads of Q; default 8", "8 16 32 64" },
	[OPTION_KV_HEADS] = { "kv-heads", 'k', "N", "heads of K and V, which divide those of Q; default: as many", "1 8" },
	[OPTION_SCALE] = { "scale", 'x', "X", "what scores are multiplied by; default 1 / sqrt(dim)", NULL },
	[OPTION_ARCH] = { "arch", 'a', "NAME", "target; default: that of the GPU with --run, else sm_90a", "@arch" },
	[OPTION_OUTPUT] = { "output", 'o', "FILE", "write the PTX there; - is standard output (the default without --run)",
	                    "@file" },
	[OPTION_RUN] = { "run", 'r', "BxQxK",
	                 "run random batches x queries x keys, on a GPU or the emulator, and compare; a GPU is timed",
	                 "1x4096x4096" },
	[OPTION_DEVICE] = { "device", 'd', "NAME", "device for --run; default cuda:0", "cuda:0 emu:sm_90a" },
	[OPTION_LINES] = { "lines", 'l', NULL, "print .file and .loc", NULL },
	[OPTION_EXPLAIN] = { "explain", 'e', "BxQxK", "the best shapes for such a problem by a model, and why", "1x4096x4096" },
	[OPTION_COMPILER] = { "compiler", 'C', "NAME", "who compiles for --run; default: auto, the driver", COMPILING_CHOICES },
};

enum shape { OWN, DIMS, FLAG, TYPE, MMA };
static const struct {
	enum shape shape;
	const char *expected;
} values[ATTENTION_OPTIONS] = {
#define ATTENTION_OPTION(ID, name, letter, argument, shape, set, help, choices, expected)                                   \
	[OPTION_##ID] = { shape, expected },
#include "attention/options.def"
};

/* The fields that the options set, those of one behind one another. */
enum { OPTION_INSIDE = -1 };
static const cli_field fields[] = {
#define ATTENTION_FIELD(ID, field, type, set, least, most, step, about)                                                     \
	{ OPTION_##ID, offsetof(cptx_attention_opt, field), least, most, step, 0 },
#include "attention/options.def"
};

static const char *const mma_words[CPTX_ATTENTION_MMAS] = {
	[CPTX_ATTENTION_SYNC] = "sync", [CPTX_ATTENTION_WGMMA] = "wgmma", [CPTX_ATTENTION_TCGEN05] = "tcgen05"
};

static const cli_field *fields_of(int option, size_t *n)
{
	return cli_fields_of(fields, sizeof fields / sizeof *fields, option, n);
}

/* ---- reading ---- */

static bool read_number(const char *value, float *to)
{
	char *end;

	*to = strtof(value, &end);
	return *value && !*end && *to > 0 && isfinite(*to);
}

/* An option that asks for something of the kernel and has a value for the run. */
static bool read_own(attention_request *q, int option, const char *value)
{
	cptx_attention_problem *p = &q->trial.p;
	char *end;

	if (option == OPTION_SOFTCAP)
		return (q->o.softcap = read_number(value, &p->softcap));
	unsigned long long left = strtoull(value, &end, 10), right = 0;
	if (end != value && *end == 'x')
		right = strtoull(end + 1, &end, 10);
	p->window_left = (uint32_t)left, p->window_right = (uint32_t)right;
	return (q->o.window = *value >= '0' && *value <= '9' && !*end && left <= UINT32_MAX && right <= UINT32_MAX);
}

static bool read_mma(attention_request *q, const char *value)
{
	for (unsigned i = 0; i < CPTX_ATTENTION_MMAS; i++)
		if (!strcmp(value, mma_words[i])) {
			q->o.mma = (enum cptx_attention_mma)i;
			return true;
		}
	return false;
}

static bool read_listed(attention_request *q, int option, const char *value)
{
	size_t n;
	const cli_field *f = fields_of(option, &n);

	switch (values[option].shape) {
	case DIMS: return cli_read_numbers(&q->o, f, n, value);
	case FLAG: return *(bool *)cli_field_at(&q->o, f) = true;
	case TYPE: return (*(enum cptx_type *)cli_field_at(&q->o, f) = cptx_type_find(value)) != CPTX_TYPE_NONE;
	case MMA: return read_mma(q, value);
	default: return read_own(q, option, value);
	}
}

static int read_sizes(attention_request *q, int option, const char *value)
{
	uint64_t d[3];

	if (!number_dims(value, d, 3, UINT32_MAX))
		return cli_bad_value(q->cmd, (size_t)option, value, "expected three numbers from 1 on, as in 1x4096x4096");
	q->trial.p.batch = (uint32_t)d[0], q->trial.p.queries = (uint32_t)d[1], q->trial.p.keys = (uint32_t)d[2];
	return EXIT_OK;
}

static int read_heads(attention_request *q, int option, const char *value)
{
	uint64_t n;

	if (!number_dims(value, &n, 1, UINT16_MAX))
		return cli_bad_value(q->cmd, (size_t)option, value, "expected a number of heads, 1 to 65535");
	*(option == OPTION_HEADS ? &q->trial.p.heads : &q->trial.p.kv_heads) = (uint32_t)n;
	return EXIT_OK;
}

int attention_option_read(attention_request *q, int option, const char *value)
{
	q->seen |= 1u << option;
	if (option < ATTENTION_OPTIONS) {
		if (read_listed(q, option, value))
			return EXIT_OK;
		return cli_bad_value(q->cmd, (size_t)option, value, values[option].expected);
	}
	switch (option) {
	case OPTION_HEADS:
	case OPTION_KV_HEADS: return read_heads(q, option, value);
	case OPTION_SCALE:
		if (read_number(value, &q->trial.p.scale))
			return EXIT_OK;
		return cli_bad_value(q->cmd, (size_t)option, value, "expected a number above 0, as in 0.125");
	case OPTION_ARCH: q->arch = value; break;
	case OPTION_OUTPUT: q->output = value; break;
	case OPTION_DEVICE: q->device = value; break;
	case OPTION_COMPILER: return compiling_named(q->cmd, value, &q->trial.load.compiler);
	case OPTION_RUN:
	case OPTION_EXPLAIN: return read_sizes(q, option, value);
	default: break; /* takes none, and was seen */
	}
	return EXIT_OK;
}

/* ---- printing ---- */

/* The value of an option; "": none is needed. */
static void print_value(const attention_request *q, int option, char *to, size_t size)
{
	const cptx_attention_problem *p = &q->trial.p;
	size_t n, used = 0;
	const cli_field *f = fields_of(option, &n);
	const cptx_attention_opt *o = &q->o;

	*to = 0;
	switch (values[option].shape) {
	case DIMS:
		for (size_t i = 0; i < n && *(const uint32_t *)cli_field_at(o, &f[i]); i++)
			used +=
				(size_t)snprintf(to + used, size - used, "%s%u", i ? "x" : "", *(const uint32_t *)cli_field_at(o, &f[i]));
		break;
	case TYPE:
		if (*(const enum cptx_type *)cli_field_at(o, f))
			snprintf(to, size, "%s", cptx_type_name(*(const enum cptx_type *)cli_field_at(o, f)));
		break;
	case MMA: snprintf(to, size, "%s", mma_words[o->mma]); break;
	default:
		if (option == OPTION_SOFTCAP && o->softcap)
			snprintf(to, size, "%.9g", (double)p->softcap);
		if (option == OPTION_WINDOW && o->window)
			snprintf(to, size, "%ux%u", p->window_left, p->window_right);
	}
}

void attention_options_text(const attention_request *q, char *text, size_t size)
{
	size_t used = 0, n;
	char value[40];

	*text = 0;
	for (int i = 0; i < ATTENTION_OPTIONS && used < size; i++) {
		print_value(q, i, value, sizeof value);
		const bool flag = values[i].shape == FLAG && *(const bool *)cli_field_at(&q->o, fields_of(i, &n));
		if (flag || *value)
			used += (size_t)snprintf(text + used, size - used, "%s--%s%s%s", used ? " " : "", attention_options[i].name,
			                         *value ? " " : "", value);
	}
}
