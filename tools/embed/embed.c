/* SPDX-License-Identifier: MIT */
/* Files as an array of bytes for C: embed NAME OUTPUT FILE...; a 0 behind each file. */
#include <stdio.h>

int main(int argc, char **argv)
{
	FILE *out = argc > 3 ? fopen(argv[2], "w") : NULL, *in = NULL;
	unsigned long n = 0;

	if (!out)
		return fprintf(stderr, "usage: embed NAME OUTPUT FILE...\n"), 2;
	fprintf(out, "static const char %s[] = {", argv[1]);
	for (int i = 3; i < argc; i++) {
		if (!(in = fopen(argv[i], "rb")))
			return perror(argv[i]), 1;
		for (int c; (c = fgetc(in)) != EOF;)
			fprintf(out, "%s%d,", n++ % 32 ? "" : "\n\t", c < 128 ? c : c - 256);
		fclose(in);
		fputs("0,", out);
	}
	fputs("\n};\n", out);
	return fclose(out) != 0;
}
