/* SPDX-License-Identifier: MIT */
#include "base/base.h"
#include "base/printable.h"

#include <stdio.h>

static const struct {
	const char *name, *meaning;
} codes[] = {
#define ERROR(name, meaning) { #name, meaning },
#include "base/errors.def"
#undef ERROR
};

const char *cptx_code_name(enum cptx_code code) { return (size_t)code < ARRAY_LEN(codes) ? codes[code].name : "?"; }

const char *cptx_code_meaning(enum cptx_code code) { return (size_t)code < ARRAY_LEN(codes) ? codes[code].meaning : "?"; }

void error_clean(cptx_error *err)
{
	char from[CPTX_ERROR_TEXT];
	size_t n = strlen(err->text);

	if (printable_span(err->text, n) == n)
		return;
	memcpy(from, err->text, n);
	printable(err->text, sizeof err->text, from, n);
}

bool error_vset(cptx_error *err, enum cptx_code code, cptx_site at, const char *format, va_list ap)
{
	int n = 0;

	if (!err || err->code != CPTX_OK)
		return false;
	*err = (cptx_error){ .code = code };
	if (at.file) {
		err->line = at.line;
		snprintf(err->file, sizeof err->file, "%s", at.file);
		n = snprintf(err->text, sizeof err->text, "%s:%u: ", err->file, (unsigned)at.line);
	}
	text_message(err->text + n, sizeof err->text - (size_t)n, format, ap);
	error_clean(err);
	return false;
}

bool error_set(cptx_error *err, enum cptx_code code, cptx_site at, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	error_vset(err, code, at, format, ap);
	va_end(ap);
	return false;
}

/* The length of a function's name as users write it: the function behind a macro has a _ at its end. */
static int length_of(const char *function)
{
	size_t n = strlen(function);

	return (int)(n && function[n - 1] == '_' ? n - 1 : n);
}

bool error_null(const char *function, const char *what, cptx_site at, cptx_error *err)
{
	return error_set(err, CPTX_E_ARG, at, "%.*s: the %s is NULL", length_of(function), function, what);
}

bool error_null_in(const char *function, const char *what, cptx_site at, cptx_kernel *k)
{
	cptx_fail_(k, at, "%.*s: the %s is NULL", length_of(function), function, what);
	return false;
}

bool error_absent(cptx_error *err, cptx_site at, const char *what, const char *option)
{
	return error_set(err, CPTX_E_ABSENT, at, "this build of cptx has no %s; configure it without -D%s=disabled", what,
	                 option);
}

const char *cptx_version(void) { return CPTX_VERSION; }
unsigned cptx_version_number(void) { return CPTX_VERSION_NUMBER; }
