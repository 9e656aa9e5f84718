/* SPDX-License-Identifier: MIT */
/*
 * Writes libFuzzer's dictionary: the words of the instruction table, and the directives that the given texts use.
 *
 *     dict OUTPUT TEXT...
 */
#include "tokens.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 4096, LONGEST = 48 };
static char words[MOST][LONGEST];
static size_t nword;

static void word(const char *prefix, const char *s, size_t n)
{
	char w[LONGEST];

	if (!n || (size_t)snprintf(w, sizeof w, "%s%.*s", prefix, (int)n, s) >= sizeof w)
		return;
	for (size_t i = 0; i < nword; i++)
		if (!strcmp(words[i], w))
			return;
	if (nword < MOST)
		strcpy(words[nword++], w);
}

static void directives(FILE *f)
{
	char line[4096];

	while (fgets(line, sizeof line, f)) {
		for (const char *p = line; (p = strchr(p, '.')); p++) {
			size_t n = 1;
			while (isalnum((unsigned char)p[n]) || p[n] == '_')
				n++;
			if (isalpha((unsigned char)p[1]))
				word("", p, n);
		}
	}
}

int main(int argc, char **argv)
{
	FILE *out = argc > 1 ? fopen(argv[1], "w") : NULL;

	if (!out)
		return perror(argc > 1 ? argv[1] : "dict"), 1;
	for (size_t i = 0; i < NFORMS; i++)
		word("", forms[i], opcode_length(forms[i]));
	for (size_t i = 0; i < NMODIFIERS; i++)
		word(".", modifiers[i], strlen(modifiers[i]));
	for (size_t i = 0; i < NSPECIALS; i++)
		word("", specials[i], strlen(specials[i]));
	for (int i = 2; i < argc; i++) {
		FILE *in = fopen(argv[i], "r");
		if (!in)
			return perror(argv[i]), 1;
		directives(in);
		fclose(in);
	}
	for (size_t i = 0; i < nword; i++)
		fprintf(out, "\"%s\"\n", words[i]);
	return ferror(out) | fclose(out);
}
