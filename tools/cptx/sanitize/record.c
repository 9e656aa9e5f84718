/* SPDX-License-Identifier: MIT */
#include "sanitize/record.h"

#include <stdlib.h>
#include <string.h>

enum { RANK, CODE, KERNEL, INSTRUCTION, FILE_NAME, LINE, BLOCK, THREAD, TEXT, FIELDS };

/* Undoes \t, \n and \\ in place. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1])
			*to++ = *++s == 't' ? '\t' : *s == 'n' ? '\n' : *s;
		else
			*to++ = *s;
	}
	*to = 0;
}

/* The fields of a line, at most n; how many there are. */
static size_t split(char *line, char **field, size_t most)
{
	size_t n = 0;

	line[strcspn(line, "\n")] = 0;
	for (char *p = line; p && n < most; n++) {
		field[n] = p;
		p = strchr(p, '\t');
		if (p)
			*p++ = 0;
	}
	for (size_t i = 0; i < n; i++)
		unescape(field[i]);
	return n;
}

/* "1,2,3"; false if it is empty. */
static bool numbers(const char *s, uint32_t out[3])
{
	for (int i = 0; i < 3 && *s; i++) {
		char *end;
		out[i] = (uint32_t)strtoul(s, &end, 10);
		s = *end ? end + 1 : end;
	}
	return *s == 0;
}

static enum cptx_finding_code code_of(const char *word)
{
	for (int code = CPTX_FIND_NONE + 1; code < CPTX_FIND_COUNT; code++)
		if (!strcmp(cptx_finding_name((enum cptx_finding_code)code), word))
			return (enum cptx_finding_code)code;
	return CPTX_FIND_NONE;
}

bool record_is_checked(const char *line) { return !strcmp(line, "checked\n"); }

bool record_read_unchecked(char *line, record_unchecked *u)
{
	enum { MARK, WORD, TELLS, ONE, SEVERAL, OF, WHY, N };
	char *field[FIELDS];

	if (strncmp(line, "not-checked\t", 12) || split(line, field, N) != N)
		return false;
	*u = (record_unchecked){ .word = field[WORD],
		                     .one = field[ONE],
		                     .several = field[SEVERAL],
		                     .tells = atoi(field[TELLS]),
		                     .kernel = field[OF],
		                     .why = field[WHY] };
	return true;
}

bool record_read_order(char *line, finding_order *o)
{
	enum { MARK, OF, ORDER, BYTES, AT, WORDS, N };
	char *field[FIELDS];

	if (strncmp(line, FINDING_ORDER "\t", sizeof FINDING_ORDER) || split(line, field, N) != N)
		return false;
	*o = (finding_order){ .kernel = field[OF],
		                  .text = field[WORDS],
		                  .order = strtoull(field[ORDER], NULL, 10),
		                  .bytes = strtoull(field[BYTES], NULL, 10),
		                  .at = strtoull(field[AT], NULL, 10) };
	return true;
}

bool record_read(char *line, cptx_emu_finding *f)
{
	char *field[FIELDS];

	if (split(line, field, FIELDS) != FIELDS)
		return false;
	memset(f, 0, sizeof *f);
	f->code = code_of(field[CODE]);
	f->rank = !strcmp(field[RANK], "warning") ? CPTX_FIND_WARNING : CPTX_FIND_ERROR;
	f->kernel = field[KERNEL];
	f->instruction = field[INSTRUCTION];
	f->at.file = *field[FILE_NAME] ? field[FILE_NAME] : NULL;
	f->at.line = (unsigned)strtoul(field[LINE], NULL, 10);
	numbers(field[BLOCK], f->block);
	f->has_thread = *field[THREAD] && numbers(field[THREAD], f->thread);
	f->text = field[TEXT];
	f->count = 1;
	return f->code != CPTX_FIND_NONE;
}
