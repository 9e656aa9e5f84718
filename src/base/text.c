/* SPDX-License-Identifier: MIT */
#include "base/base.h"

#include <stdio.h>

void buf_init(buf *b, const cptx_allocator *hook) { *b = (buf){ .hook = hook ? hook : &heap_default }; }

void buf_free(buf *b)
{
	if (b->p && !b->foreign)
		heap_realloc(b->hook, b->p, 0);
	b->p = NULL;
	b->n = b->cap = 0;
	b->foreign = false;
}

bool buf_grow(buf *b, size_t more)
{
	size_t want = MAX(b->cap * 2, b->n + more + 256);
	char *p = b->failed ? NULL : HEAP_ARRAY(b->hook, char, b->foreign ? NULL : b->p, want);
	if (!p) {
		b->failed = true;
		return false;
	}
	if (b->foreign && b->n)
		memcpy(p, b->p, b->n);
	b->foreign = false;
	b->p = p;
	b->cap = want;
	return true;
}

void buf_printf(buf *b, const char *format, ...)
{
	va_list ap, again;
	va_start(ap, format);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, format, ap);
	va_end(ap);
	if (n > 0 && buf_reserve(b, (size_t)n + 1)) {
		vsnprintf(b->p + b->n, (size_t)n + 1, format, again);
		b->n += (size_t)n;
	}
	va_end(again);
}

const char *name_shown(const char *name, char out[NAME_SHOWN + 1])
{
	enum { DOTS = 3, TAIL = 25, HEAD = NAME_SHOWN - DOTS - TAIL };
	size_t n = strlen(name);

	if (n <= NAME_SHOWN)
		return name;
	memcpy(out, name, HEAD);
	memcpy(out + HEAD, "...", DOTS);
	memcpy(out + HEAD + DOTS, name + n - TAIL, TAIL + 1);
	return out;
}

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464"
							"748495051525354555657585960"
							"616263646566676869707172737475767778798081828384858687888990919293949596979899";

char *text_u64(char *p, uint64_t v)
{
	char tmp[20];
	int n = sizeof tmp;

	if (v < 10) { /* most numbers are register numbers below 10 */
		*p = (char)('0' + v);
		return p + 1;
	}
	if (v < 100) {
		memcpy(p, pairs + v * 2, 2);
		return p + 2;
	}
	if (v < 1000) {
		*p = (char)('0' + v / 100);
		memcpy(p + 1, pairs + v % 100 * 2, 2);
		return p + 3;
	}
	while (v >= 10) {
		n -= 2;
		memcpy(tmp + n, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v)
		tmp[--n] = (char)('0' + v);
	memcpy(p, tmp + n, sizeof tmp - (size_t)n);
	return p + sizeof tmp - n;
}

/* Words over WORD_MOST characters are shortened: PTX names have no limit, and no part of a file's name is as long. */
enum { WORD_MOST = 256, WORD_FRONT = 160, WORD_BACK = 64 };

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

/* Leaves out the middle of long words in n bytes; returns the new length. */
static size_t shorten(char *text, size_t n)
{
	char *out = text;

	for (const char *p = text, *end = text + n, *word = p; p <= end; p++) {
		if (p < end && is_word(*p))
			continue;
		size_t len = (size_t)(p - word);
		if (len > WORD_MOST) {
			memmove(out, word, WORD_FRONT);
			memcpy(out + WORD_FRONT, "...", 3);
			out += WORD_FRONT + 3;
			word = p - WORD_BACK;
			len = WORD_BACK;
		}
		memmove(out, word, len + (p < end));
		out += len + (p < end);
		word = p + 1;
	}
	return (size_t)(out - text);
}

void text_message(char *to, size_t size, const char *format, va_list ap)
{
	va_list again;

	va_copy(again, ap);
	int n = vsnprintf(to, size, format, ap);
	/* without memory the end of the text is lost */
	char *all = n >= 0 && (size_t)n >= size ? NEW_UNSET(char, (size_t)n + 1) : NULL;
	if (all) {
		vsnprintf(all, (size_t)n + 1, format, again);
		size_t shorter = MIN(shorten(all, (size_t)n), size - 1);
		memcpy(to, all, shorter);
		to[shorter] = 0;
		free(all);
	} else if (n > WORD_MOST) {
		to[shorten(to, MIN((size_t)n, size - 1))] = 0;
	}
	va_end(again);
}

bool text_end(const char *text, size_t *size, const char *name, cptx_site at, cptx_error *err)
{
	size_t line = 1;

	while (*size > 1 && !text[*size - 1]) /* a text of NULs alone stays as it is */
		--*size;
	const char *nul = *size ? text_find(text, 0, *size) : NULL;
	if (!nul)
		return true;
	for (const char *p = text; p < nul; p++)
		line += *p == '\n';
	return error_set(err, CPTX_E_ARG, at, "%s:%zu: a NUL byte; PTX text has none in front of its end", name ? name : "ptx",
	                 line);
}

double text_f32_as_f64(uint32_t bits)
{
	float f;
	double d;

	if ((bits & 0x7f800000) != 0x7f800000 || !(bits & 0x7fffff)) {
		memcpy(&f, &bits, sizeof f);
		return (double)f;
	}
	uint64_t wide = (uint64_t)(bits >> 31) << 63 | (uint64_t)0x7ff << 52 | (uint64_t)(bits & 0x7fffff) << 29;
	memcpy(&d, &wide, sizeof d);
	return d;
}

uint32_t text_f32_bits(double d)
{
	uint64_t wide;
	uint32_t bits;

	memcpy(&wide, &d, sizeof wide);
	if ((wide >> 52 & 0x7ff) == 0x7ff && wide << 12)
		return (uint32_t)(wide >> 63) << 31 | 0x7f800000 |
		       (wide >> 29 & 0x7fffff ? (uint32_t)(wide >> 29 & 0x7fffff) : 0x400000);
	float f = (float)d;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}
