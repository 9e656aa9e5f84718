/* SPDX-License-Identifier: MIT */
/* How much of the manual the table has: the sections of manual.def and the instructions that name them. */
#include "gen.h"

#include <string.h>

/* Is the section among those that the instruction's chapter ("Chapter: one, two") names? */
static bool names_section(const char *named, const char *chapter, const char *section)
{
	size_t n = strlen(chapter), len = strlen(section);

	if (strncmp(named, chapter, n) || named[n] != ':')
		return false;
	for (const char *p = named + n + 2; *p; p += strspn(p, ", ")) {
		size_t word = strcspn(p, ",");
		if (word == len && !strncmp(p, section, len))
			return true;
		p += word;
	}
	return false;
}

void check_chapters(void)
{
	for (int i = 0; i < nops; i++) {
		bool found = false;
		for (int k = 0; k < nsections && !found; k++)
			found = names_section(ops[i].row->text, sections[k].chapter, sections[k].name);
		reading(row_file(ops[i].row), ops[i].row->line, NULL);
		if (!found)
			die(NULL, "OP(%s): '%s' is no section of manual.def", ops[i].row->name, ops[i].row->text);
	}
}

/* Is the word a fixed modifier of the row, or one of the values of a choice? */
static bool has_word(const char *text, const char *word, size_t n)
{
	const char *end = text + strcspn(text, " <");

	while (*end == '<') /* a blank in an availability ends nothing */
		end += strcspn(end, ">"), end += strcspn(end, " <");
	for (const char *p = strpbrk(text, ".|="); p && p < end; p = strpbrk(p + 1, ".|="))
		if (!strncmp(p + 1, word, n) && strchr(".|{}<= ", p[1 + n]))
			return true;
	return false;
}

/* Words that a form must have, a|b one of these, !a must not be there. */
static bool is_part(const struct form *f, const char *words)
{
	for (const char *p = words; *p; p += strspn(p, " ")) {
		bool not = *p == '!', any = false;
		for (p += not ; *p && *p != ' '; p += *p == '|') {
			size_t n = strcspn(p, "| ");
			any |= has_word(f->row->text, p, n);
			p += n;
		}
		if (any == not )
			return false;
	}
	return true;
}

/* Forms of an instruction that belong to a section. */
static int forms_in(const struct op *op, const struct section_row *s)
{
	const char *colon = strchr(s->of, ':');
	char chapter[128] = "";
	int n = 0;

	if (!*s->of)
		return names_section(op->row->text, s->chapter, s->name) ? op->nform : 0;
	snprintf(chapter, sizeof chapter, "%.*s", (int)(colon - s->of), s->of);
	for (int i = 0; i < op->nform; i++)
		n += names_section(op->row->text, chapter, colon + 2) && is_part(&forms[op->form + i], s->words);
	return n;
}

void write_coverage(FILE *out)
{
	fputs("static const coverage sections[] = {\n", out);
	for (int k = 0; k < nsections; k++) {
		int nop = 0, nform = 0;
		for (int i = 0; i < nops; i++) {
			int n = forms_in(&ops[i], &sections[k]);
			nop += n > 0;
			nform += n;
		}
		fprintf(out, "{ \"%s\", \"%s\", \"%s\", \"%s\", %d, %d },\n", sections[k].title, sections[k].name,
		        sections[k].reason, sections[k].of, nop, nform);
	}
	fputs("};\n", out);
}
