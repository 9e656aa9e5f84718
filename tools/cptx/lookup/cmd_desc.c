/* SPDX-License-Identifier: MIT */
/* cptx desc: the descriptors of wgmma and tcgen05, made of their fields and taken apart. */
#include "cli/cli.h"

#include <cptx/layout.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
	const cli_command *cmd;
	bool matrix; /* a matrix descriptor, of `smem`; else an instruction descriptor, `insn` */
	cptx_smem_desc smem;
	cptx_insn_desc insn;
} request;

static bool find_kind(request *q, const char *name)
{
	static const char *const matrix[] = { [CPTX_DESC_WGMMA] = "wgmma", [CPTX_DESC_TCGEN05] = "tcgen05" };

	for (size_t i = 0; i < sizeof matrix / sizeof matrix[0]; i++)
		if (!strcmp(name, matrix[i])) {
			q->matrix = true, q->smem.arch = (enum cptx_desc_arch)i;
			return true;
		}
	for (int i = 0; i < CPTX_TCGEN05_KINDS; i++)
		if (!strcmp(name, cptx_tcgen05_kind_name((enum cptx_tcgen05_kind)i))) {
			q->insn.kind = (enum cptx_tcgen05_kind)i;
			if (i >= CPTX_TCGEN05_MXF8F6F4) /* block-scaled: no bits say so */
				q->insn.d = CPTX_F32;
			return true;
		}
	return false;
}

static bool field_at(const request *q, size_t i, cptx_desc_field *f)
{
	return q->matrix ? cptx_smem_desc_field(q->smem.arch, i, f) : cptx_insn_desc_field(q->insn.kind, i, f);
}

static void print_fields(const request *q, const uint64_t *word)
{
	cptx_desc_field f;

	for (size_t i = 0; field_at(q, i, &f); i++) {
		char bits[16];
		snprintf(bits, sizeof bits, f.low == f.high ? "%u" : "%u-%u", f.low, f.high);
		printf("  %-7s %-15s", bits, f.name);
		if (word) {
			unsigned code = (unsigned)(*word >> f.low & (((uint64_t)1 << (f.high - f.low + 1)) - 1));
			printf(" %-6u", code);
			if (f.unit)
				printf(" %-8u", code * f.unit);
			else
				printf(" %-8s", "");
		}
		printf(" %s\n", f.about);
	}
}

static const char *major(bool mn) { return mn ? "MN-major" : "K-major"; }

static void print_meaning(const request *q)
{
	const cptx_insn_desc *d = &q->insn;

	if (q->matrix) {
		const cptx_swizzle_info *w = cptx_swizzle_get(q->smem.swizzle);
		printf("start 0x%x, lbo %u, sbo %u, swizzle %s", q->smem.start, q->smem.lbo, q->smem.sbo, w->name);
		if (w->repeat)
			printf(" (the pattern repeats every %u bytes)", w->repeat);
		putchar('\n');
		return;
	}
	printf("D %s %ux%u = %sA %s %s%s * %sB %s %s", cptx_type_name(d->d), d->m, d->n, d->a_negated ? "-" : "",
	       cptx_type_name(d->a), major(d->a_mn_major), d->sparse ? " sparse" : "", d->b_negated ? "-" : "",
	       cptx_type_name(d->b), major(d->b_mn_major));
	printf(", %u elements along k", cptx_insn_desc_k(d));
	if (d->scale != CPTX_TYPE_NONE)
		printf(", scales %s", cptx_type_name(d->scale));
	putchar('\n');
}

static bool set_member(request *q, char *text, cptx_error *err)
{
	char *value = strchr(text, '=');

	*value = '\0';
	return q->matrix ? cptx_smem_desc_set(&q->smem, text, value + 1, err)
	                 : cptx_insn_desc_set(&q->insn, text, value + 1, err);
}

/* Has a field stood before?  Those that did end at their name. */
static bool is_second(char **first, char **at)
{
	for (size_t n = strcspn(*at, "="); first < at; first++)
		if (strlen(*first) == n && !memcmp(*first, *at, n))
			return true;
	return false;
}

static bool encode(const request *q, uint64_t *word, cptx_error *err)
{
	uint32_t half = 0;
	bool ok = q->matrix ? cptx_smem_desc_encode(&q->smem, word, err) : cptx_insn_desc_encode(&q->insn, &half, err);

	if (!q->matrix)
		*word = half;
	return ok;
}

static bool decode(request *q, uint64_t word, cptx_error *err)
{
	return q->matrix ? cptx_smem_desc_decode(q->smem.arch, word, &q->smem, err)
	                 : cptx_insn_desc_decode(q->insn.kind, q->insn.ctas, q->insn.ws, (uint32_t)word, &q->insn, err);
}

static int explain(request *q, const char *text)
{
	cptx_error err = { 0 };
	char *end;
	uint64_t word = strtoull(text, &end, 16);

	if (*end || end == text || text[0] == '-' || strlen(text) > 18 || (!q->matrix && word > UINT32_MAX))
		return cli_usage(q->cmd, "'%s' is no word of %d bits in hexadecimal", text, q->matrix ? 64 : 32);
	bool ok = decode(q, word, &err);
	printf("0x%0*llx\n", q->matrix ? 16 : 8, (unsigned long long)word);
	print_fields(q, &word);
	if (!ok) {
		cli_flush(q->cmd, EXIT_OK);
		return cli_failed(q->cmd, "%s", err.text);
	}
	print_meaning(q);
	return cli_flush(q->cmd, EXIT_OK);
}

static int make(const request *q)
{
	cptx_error err = { 0 };
	uint64_t word;

	if (!encode(q, &word, &err))
		return cli_refused(q->cmd, &err);
	printf("0x%0*llx\n", q->matrix ? 16 : 8, (unsigned long long)word);
	print_fields(q, &word);
	print_meaning(q);
	return cli_flush(q->cmd, EXIT_OK);
}

/* The first of the fields, which end at their names, that a word says itself; NULL: none. */
static const char *in_word(const request *q, const char *word, char **first, char **end)
{
	for (; first < end; first++)
		if (*first != word && (q->matrix || (strcmp(*first, "ctas") && strcmp(*first, "ws"))))
			return *first;
	return NULL;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd };
	const char *value, *word = NULL;
	cptx_error err = { 0 };
	int status = EXIT_OK;

	if (cli_next(cmd, argc, argv, &value, &status) == -2)
		return status;
	if (optind == argc)
		return cli_usage(cmd, "which kind of descriptor?");
	if (!find_kind(&q, argv[optind]))
		return cli_usage(cmd, "there is no kind '%s'; kinds are %s", argv[optind], cmd->operand_choices);
	for (int i = optind + 1; i < argc; i++) {
		if (!strchr(argv[i], '=')) {
			if (word)
				return cli_usage(cmd, "two words, '%s' and '%s'", word, argv[i]);
			word = argv[i];
		} else if (is_second(argv + optind + 1, argv + i)) {
			return cli_usage(cmd, "%.*s= is given twice", (int)strcspn(argv[i], "="), argv[i]);
		} else if (!set_member(&q, argv[i], &err)) {
			return cli_usage(cmd, "%s", err.text);
		}
	}
	const char *field = word ? in_word(&q, word, argv + optind + 1, argv + argc) : NULL;
	if (field)
		return cli_usage(cmd, "%s= beside a word, which says it itself", field);
	if (word)
		return explain(&q, word);
	if (optind + 1 < argc)
		return make(&q);
	print_fields(&q, NULL);
	return cli_flush(cmd, EXIT_OK);
}

const cli_command cmd_desc = {
	.name = "desc",
	.arguments = "KIND [WORD | NAME=VALUE...]",
	.about = "Takes descriptors of wgmma and tcgen05 apart, and makes them.",
	.details = "KIND is wgmma or tcgen05 (matrices in shared memory, 64 bits), or that of an instruction descriptor of\n"
			   "tcgen05.mma (32 bits): tf32 f16 f8f6f4 i8 mxf8f6f4 mxf4 mxf4nvf4.  Without more, its fields are listed.\n"
			   "A WORD in hexadecimal is explained bit by bit, and checked; for instruction descriptors ctas=2 and ws=yes\n"
			   "say which instruction has it.  Broken rules end with status 1.\n\n"
			   "  cptx desc tcgen05 0x4000404000010040\n"
			   "  cptx desc wgmma start=0x400 sbo=1024 swizzle=128B\n"
			   "  cptx desc f16 a=bf16 b=bf16 d=f32 m=256 n=256 ctas=2\n",
	.operand_choices = "wgmma tcgen05 tf32 f16 f8f6f4 i8 mxf8f6f4 mxf4 mxf4nvf4",
	.run = run,
};
