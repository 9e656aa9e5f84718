/* SPDX-License-Identifier: MIT */
/* Prints docs/gemm_options.md from the list of the GEMM options. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { KERNELS = 5 };

enum {
#define GEMM_SET(set, kernels, bits) GEMM_##set = (bits),
#include "gemm/options.def"
};

#define GEMM_WHY(why, text) static const char why[] = text;
#include "gemm/options.def"

typedef enum type { NUMBER, BOOL, TYPE, MMA, KIND, EXPERTS, POINTER } type;
static const char *const type_names[] = {
	"number", "bool", "type", "`cptx_gemm_mma`", "`cptx_tcgen05_kind`", "`cptx_gemm_experts`", "pointer"
};

static const struct field {
	const char *option, *name, *why, *about;
	type type;
	unsigned of, least, most;
} fields[] = {
#define GEMM_FIELD(ID, field, type, set, none, least, most, why, about)                                                     \
	{ #ID, #field, why, about, type, GEMM_##set, least, most },
#include "gemm/options.def"
};

static const struct option {
	const char *id, *name, *argument, *scope, *help;
	char letter;
} options[] = {
#define GEMM_OPTION(ID, name, letter, argument, shape, set, help, choices, expected)                                        \
	{ #ID, name, argument, #set, help, letter },
#include "gemm/options.def"
};

static const struct set {
	const char *name, *kernels;
} sets[] = {
#define GEMM_SET(set, kernels, bits) { #set, kernels },
#include "gemm/options.def"
};

static const char *spelling(const char *id)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (!strcmp(options[i].id, id))
			return options[i].name;
	return NULL;
}

static void print_field(const struct field *f)
{
	const char *name = spelling(f->option);

	printf("| `%s` | %s", f->name, type_names[f->type]);
	if (f->type == NUMBER)
		printf(", %u to %u", f->least, f->most);
	for (unsigned k = 0; k < KERNELS; k++)
		fputs(f->of >> k & 1 ? " | yes" : " | ", stdout);
	printf(" | %s%s%s | %s%s%s%s |\n", name ? "`--" : "", name ? name : "", name ? "`" : "", f->about,
	       *f->why ? " (else: " : "", f->why, *f->why ? ")" : "");
}

int main(void)
{
	printf("# Options of the GEMM generators\n\n"
	       "Generated from `src/gemm/options.def`. `<cptx/gemm.h>` says which values each kernel takes of an option; what a "
	       "kernel\n"
	       "does not have stays 0.\n\n"
	       "## Fields of `cptx_gemm_opt`\n\n"
	       "| field | type | mma.sync | mma.sync with scale factors | wgmma | tcgen05 | gemv | of the command | what it "
	       "says |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		print_field(&fields[i]);
	printf("\n## Options of `cptx gemm`\n\nBeside these it has options of its own: `cptx gemm --help`.\n\n"
	       "| option | | what it says |\n|---|---|---|\n");
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		const struct option *o = &options[i];
		printf("| `--%s`, `-%c` | %s%s%s | ", o->name, o->letter, o->argument ? "`" : "", o->argument ? o->argument : "",
		       o->argument ? "`" : "");
		for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
			if (!strcmp(sets[s].name, o->scope))
				fputs(sets[s].kernels, stdout);
		printf("%s |\n", o->help);
	}
	return 0;
}
