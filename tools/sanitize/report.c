/* SPDX-License-Identifier: MIT */
/*
 * Reports of findings: on standard error, in lines that begin with "cptx sanitize: ", and, for the command that started the
 * program, as records on the file descriptor that CPTX_SANITIZE_FD names.  A record is a line of fields between tabs; a tab,
 * newline or backslash in a field stands as \t, \n, \\.
 */
#include "san.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const san_error_info *san_error_of(int error)
{
	static const san_error_info all[] = {
#define ERROR(name, number, runtime, driver, text) { number, runtime, driver, text },
#include "error.def"
#undef ERROR
	};
	const size_t n = sizeof all / sizeof *all;

	for (size_t i = 0; i < n; i++)
		if (all[i].number == error)
			return &all[i];
	return &all[n - 1];
}

void san_say(const char *format, ...)
{
	char text[10240];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s\n", san.command ? san.command : "cptx sanitize", text);
}

void san_print(void *user, const char *text)
{
	(void)user;
	fputs(text, stdout);
}

/* ---- records ---- */

static void put_field(FILE *out, const char *text, char end)
{
	for (; *text; text++)
		if (*text == '\t' || *text == '\n' || *text == '\\')
			fprintf(out, "\\%c", *text == '\t' ? 't' : *text == '\n' ? 'n' : '\\');
		else
			fputc(*text, out);
	fputc(end, out);
}

static void put_number(FILE *out, const uint32_t *v, size_t n, bool there)
{
	for (size_t i = 0; there && i < n; i++)
		fprintf(out, "%s%u", i ? "," : "", (unsigned)v[i]);
	fputc('\t', out);
}

/* The file for records; NULL if nobody asked for them.  Its descriptor is taken before the program can use the number. */
static FILE *records;

/* Before the other constructors, which may have something to tell. */
__attribute__((constructor(101))) static void take_records(void)
{
	const char *fd = getenv("CPTX_SANITIZE_FD");
	int copy = fd && *fd ? fcntl((int)strtol(fd, NULL, 10), F_DUPFD_CLOEXEC, 3) : -1;
	struct stat st;

	/* a program that the first one started may have the number for a file of its own: the command's has no name */
	if (copy >= 0 && (fstat(copy, &st) || st.st_nlink || !S_ISREG(st.st_mode))) {
		close(copy);
		copy = -1;
	}
	records = copy < 0 ? NULL : fdopen(copy, "a");
	if (copy >= 0 && !records) { /* findings would be lost: no call does anything */
		san.failed = SAN_MEMORY;
		san_say("memory is short for the list of findings");
		close(copy);
	}
}

static void record(const cptx_emu_finding *f, const char *file, unsigned line, const char *words)
{
	FILE *out = records;
	char number[24];

	if (!out)
		return;
	snprintf(number, sizeof number, "%u", line);
	put_field(out, f->rank == CPTX_FIND_ERROR ? "error" : "warning", '\t');
	put_field(out, cptx_finding_name(f->code), '\t');
	put_field(out, f->kernel, '\t');
	put_field(out, f->instruction, '\t');
	put_field(out, file, '\t');
	put_field(out, number, '\t');
	put_number(out, f->block, 3, true);
	put_number(out, f->thread, 3, f->has_thread);
	put_field(out, words, '\n');
	fflush(out);
}

void san_unchecked(enum san_unchecked kind, const char *name, const char *why)
{
	static const struct {
		const char *word, *tells, *one, *several;
	} kinds[] = {
#define UNCHECKED(name, word, tells, one, several) { word, #tells, one, several },
#include "unchecked.def"
#undef UNCHECKED
	};
	FILE *out = san.command ? NULL : records; /* a replay has its own words for each launch */

	if (!out)
		return;
	put_field(out, "not-checked", '\t');
	put_field(out, kinds[kind].word, '\t');
	put_field(out, kinds[kind].tells, '\t');
	put_field(out, kinds[kind].one, '\t');
	put_field(out, kinds[kind].several, '\t');
	put_field(out, name, '\t');
	put_field(out, why, '\n');
	fflush(out);
}

void san_checked(void)
{
	if (records && !san.command && fputs("checked\n", records) >= 0)
		fflush(records);
}

void san_differs(const cptx_emu_order_info *orders)
{
	if (!records)
		return;
	fputs("order-dependent\t", records);
	put_field(records, orders->kernel, '\t');
	fprintf(records, "%llu\t%llu\t%llu\t", (unsigned long long)orders->differs, (unsigned long long)orders->differ_bytes,
	        (unsigned long long)orders->differ_at);
	put_field(records, orders->text, '\n');
	fflush(records);
}

/* Copies a finding's words; behind the place of the PTX that they name stands the line of the source, if it is known. */
static void with_sources(char *to, size_t room, const char *words)
{
	size_t n = 0;

	while (*words && n + 1 < room) {
		const char *file;
		unsigned line;
		size_t name = !strncmp(words, "program.", 8) ? strcspn(words, ": )") : 0;
		char *end = NULL;
		unsigned long at = name && words[name] == ':' ? strtoul(words + name + 1, &end, 10) : 0;
		if (at && san_source(words, name, (unsigned)at, &file, &line)) {
			int put = snprintf(to + n, room - n, "%s:%u, %.*s", file, line, (int)(end - words), words);
			n = put < 0 || (size_t)put >= room - n ? room - 1 : n + (size_t)put;
			words = end;
		} else {
			to[n++] = *words++;
		}
	}
	to[n] = 0;
}

/*
 * How often a warning of that code was told of a line of the source, before this one.  Loops that are unrolled, and
 * templates, make many places in PTX of a line.  Lines behind the last that has room count as new.
 */
static unsigned times_told(enum cptx_finding_code code, const char *file, unsigned line)
{
	static struct {
		char file[200];
		unsigned line, times;
		enum cptx_finding_code code;
	} told[64];
	static size_t n;

	for (size_t i = 0; i < n; i++)
		if (told[i].code == code && told[i].line == line && !strncmp(told[i].file, file, sizeof told[i].file - 1))
			return told[i].times++;
	if (n < sizeof told / sizeof *told) {
		snprintf(told[n].file, sizeof told[n].file, "%s", file);
		told[n].line = line, told[n].times = 1, told[n].code = code;
		n++;
	}
	return 0;
}

static void say_finding(const cptx_emu_finding *f)
{
	const char *rank = f->rank == CPTX_FIND_ERROR ? "error" : "warning", *file = f->at.file ? f->at.file : "";
	unsigned line = (unsigned)f->at.line;
	char words[8192];
	const bool known = *file && san_source(file, strlen(file), line, &file, &line);
	const unsigned before = known && f->rank != CPTX_FIND_ERROR ? times_told(f->code, file, line) : 0;

	with_sources(words, sizeof words, f->text);
	if (before > 1)
		; /* the record is enough */
	else if (before)
		san_say("%s:%u: %s: %s, once more (%s:%u); what else is of this line is counted, and in --json and --sarif", file,
		        line, rank, cptx_finding_name(f->code), f->at.file, (unsigned)f->at.line);
	else if (known)
		san_say("%s:%u: %s: %s (%s:%u)", file, line, rank, words, f->at.file, (unsigned)f->at.line);
	else if (*file)
		san_say("%s:%u: %s: %s", file, line, rank, words);
	else
		san_say("%s: %s", rank, words);
	record(f, file, line, words);
}

void san_report(void)
{
	static size_t said;
	const cptx_emu_finding *f;

	for (; san.dev && (f = cptx_emu_finding_at(san.dev, said)); said++)
		say_finding(f);
}

int san_missing(const char *name)
{
	static const char *told[256];
	static size_t n;
	bool known = false;

	san_enter();
	for (size_t i = 0; i < n; i++)
		known |= !strcmp(told[i], name);
	if (!known) {
		san_say("%s is not there: it returns cudaErrorNotSupported (801)", name);
		if (strcmp(name, "cuGetExportTable"))
			san_unchecked(SAN_UNCHECKED_CALL, name, "it is not there");
		else /* what the runtime of a library asks for first */
			san_unchecked(SAN_UNCHECKED_LIBRARY, name, "build the library with nvcc --cudart shared");
		if (n < sizeof told / sizeof *told)
			told[n++] = name;
	}
	if (!strncmp(name, "cuLaunch", 8))
		san_not_launched(name, SAN_NOT_SUPPORTED);
	san_leave();
	return SAN_NOT_SUPPORTED;
}
