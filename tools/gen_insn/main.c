/* SPDX-License-Identifier: MIT */
/*
 * Host program of the build: reads the tables of src/arch (by including them) and writes what is generated from them.
 *
 *   gen_insn isa|insn|insn_fast|table|docs|pages|examples|stubs OUTPUT
 *
 * isa: enums of the public API; insn: one builder call per instruction; insn_fast: one
 * by a cptx_again; table: the compiled rows; docs: the reference;
 * pages: the pages of `cptx insn`; examples: their examples, for the tests;
 * stubs: what Python's type checkers know of the calls.
 * A bad row stops the build with file:line:column.
 */
#include "gen.h"

#include <string.h>

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*write)(FILE *);
	} outputs[] = { { "isa", write_isa },           { "insn", write_insn },  { "insn_fast", write_insn_fast },
		            { "table", write_table },       { "docs", write_docs },  { "pages", write_pages },
		            { "examples", write_examples }, { "stubs", write_stubs } };

	read_tables();
	check_chapters();
	for (int i = 0; argc == 3 && i < (int)(sizeof outputs / sizeof *outputs); i++) {
		if (strcmp(outputs[i].name, argv[1]))
			continue;
		FILE *out = fopen(argv[2], "w");
		if (!out) {
			perror(argv[2]);
			return 1;
		}
		outputs[i].write(out);
		if (ferror(out) | fclose(out)) {
			fprintf(stderr, "%s: write failed\n", argv[2]);
			return 1;
		}
		return 0;
	}
	fputs("usage: gen_insn isa|insn|insn_fast|table|docs|pages|examples|stubs OUTPUT\n", stderr);
	return 2;
}
