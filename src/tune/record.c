/* SPDX-License-Identifier: MIT */
/*
 * A record as a line of text: a checksum of 16 digits, the bytes behind it, and name=value with tabs between them.  Numbers
 * are written and read here, because those of printf and strtod depend on the locale.
 */
#include "base/options.h"
#include "cache/hash.h"
#include "tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum kind { TEXT, U32, DIMS, SAMPLES, REAL, DATE, ID };
enum { FRACTION = 1000000 /* of numbers: six digits */, MICRO = 1000000 /* of a second */, SUM = 16 /* digits */ };

typedef struct field {
	const char *name;
	enum kind kind;
	bool of_key;
	size_t offset; /* in cptx_tune_key or cptx_tune_record */
} field;
#define KEY(name) true, offsetof(cptx_tune_key, name)
#define OF(name) false, offsetof(cptx_tune_record, name)
static const field fields[] = {
	{ "id", ID, false, 0 },
	{ "generator", TEXT, KEY(generator) },
	{ "version", U32, KEY(version) },
	{ "problem", TEXT, KEY(problem) },
	{ "dims", DIMS, KEY(dims) },
	{ "device", TEXT, KEY(device) },
	{ "sms", U32, KEY(sms) },
	{ "mhz", U32, KEY(clock_mhz) },
	{ "watt", U32, KEY(power_w) },
	{ "driver", U32, KEY(driver) },
	{ "compiler", TEXT, KEY(compiler) },
	{ "candidate", TEXT, OF(candidate) },
	{ "unit", TEXT, OF(unit) },
	{ "median", REAL, OF(median) },
	{ "spread", REAL, OF(spread) },
	{ "samples", SAMPLES, false, 0 },
	{ "date", DATE, OF(date) },
};

static const void *at(const cptx_tune_record *r, const field *f)
{
	return (f->of_key ? (const char *)r->key : (const char *)r) + f->offset;
}

static void *to(tune_record *r, const field *f) { return (f->of_key ? (char *)&r->key : (char *)&r->r) + f->offset; }

/* ---- checks ---- */

static bool is_text(const char *name, const char *text, cptx_error *err)
{
	size_t n = text ? strlen(text) : 0;

	if (!n || n >= CPTX_TUNE_TEXT)
		return error_set(err, CPTX_E_ARG, NOWHERE, "tune: .%s has %zu bytes; a record's texts have 1 to %d", name, n,
		                 CPTX_TUNE_TEXT - 1);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 127)
			return error_set(err, CPTX_E_ARG, NOWHERE,
			                 "tune: .%s has a control character (%d) at byte %zu; a record is one line of text", name,
			                 text[i], i);
	return true;
}

static bool check_texts(const cptx_tune_record *r, bool of_key, cptx_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (fields[i].kind == TEXT && fields[i].of_key == of_key &&
		    !is_text(fields[i].name, *(const char *const *)at(r, &fields[i]), err))
			return false;
	return true;
}

bool tune_check_key(const cptx_tune_key *key, cptx_error *err)
{
	const cptx_tune_record r = { .key = key };

	return check_texts(&r, true, err);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double tune_median(const double *samples, uint32_t n, double *spread)
{
	double sorted[CPTX_TUNE_SAMPLES];

	memcpy(sorted, samples, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_value);
	*spread = (sorted[n - 1] - sorted[0]) / sorted[n / 2];
	return sorted[n / 2];
}

bool tune_complete(cptx_tune_record *r, cptx_error *err)
{
	struct timespec t;

	if (!tune_check_key(r->key, err) || !check_texts(r, false, err))
		return false;
	if (!r->samples || !r->nsamples || r->nsamples > CPTX_TUNE_SAMPLES)
		return error_set(err, CPTX_E_ARG, NOWHERE, "tune: %u samples; a record has 1 to %d", r->samples ? r->nsamples : 0,
		                 CPTX_TUNE_SAMPLES);
	for (uint32_t i = 0; i < r->nsamples; i++)
		if (!(r->samples[i] >= 1.0 / FRACTION && r->samples[i] < 1e12))
			return error_set(err, CPTX_E_ARG, NOWHERE, "tune: sample %u is %g; it is 10^-6 or more and below 10^12", i,
			                 r->samples[i]);
	r->median = tune_median(r->samples, r->nsamples, &r->spread);
	if (!r->date && !clock_gettime(CLOCK_REALTIME, &t))
		r->date = (int64_t)t.tv_sec * MICRO + t.tv_nsec / 1000;
	if (r->date <= 0 || r->date / MICRO > INT64_C(253402300799))
		return error_set(err, CPTX_E_ARG, NOWHERE, "tune: .date = %lld; it is microseconds since 1970, up to the year 9999",
		                 (long long)r->date);
	return true;
}

/* ---- printing ---- */

typedef struct line {
	char *p, *end;
} line;

static void put(line *l, const char *format, ...) CPTX_PRINTF_(2, 3);
static void put(line *l, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	const int n = vsnprintf(l->p, (size_t)(l->end - l->p), format, ap);
	va_end(ap);
	l->p += n > 0 && n < l->end - l->p ? n : 0;
}

static void put_real(line *l, double v)
{
	const uint64_t all = (uint64_t)(v * FRACTION + 0.5);
	char fraction[8];
	int n = snprintf(fraction, sizeof fraction, "%06u", (unsigned)(all % FRACTION));

	while (n && fraction[n - 1] == '0')
		n--;
	put(l, "%llu%s%.*s", (unsigned long long)(all / FRACTION), n ? "." : "", n, fraction);
}

static void put_field(line *l, const field *f, const cptx_tune_record *r, uint64_t id)
{
	const void *p = at(r, f);
	time_t date;
	struct tm tm;
	uint32_t n = 0;

	switch (f->kind) {
	case ID: put(l, "%016llx", (unsigned long long)id); break;
	case TEXT: put(l, "%s", *(const char *const *)p); break;
	case U32: put(l, "%u", *(const uint32_t *)p); break;
	case REAL: put_real(l, *(const double *)p); break;
	case DIMS:
		for (uint32_t i = 0; i < CPTX_TUNE_DIMS; i++)
			n = r->key->dims[i] ? i + 1 : n;
		for (uint32_t i = 0; i < n; i++)
			put(l, "%s%llu", i ? "x" : "", (unsigned long long)r->key->dims[i]);
		break;
	case SAMPLES:
		for (uint32_t i = 0; i < r->nsamples; i++) {
			put(l, "%s", i ? "," : "");
			put_real(l, r->samples[i]);
		}
		break;
	case DATE:
		date = (time_t)(r->date / MICRO);
		if (gmtime_r(&date, &tm))
			put(l, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
			    tm.tm_min, tm.tm_sec, (int)(r->date % MICRO));
		break;
	}
}

static void sum_of(const char *p, size_t n, char digits[SUM + 1])
{
	uint8_t out[HASH_BYTES];
	hash s;

	hash_init(&s);
	hash_add(&s, p, n);
	hash_end(&s, out);
	for (int i = 0; i < SUM / 2; i++)
		snprintf(digits + 2 * i, 3, "%02x", out[i]);
}

size_t tune_print(const cptx_tune_record *r, uint64_t id, char out[TUNE_LINE])
{
	char body[TUNE_LINE], sum[SUM + 1];
	line l = { body, body + sizeof body - 2 * SUM };

	for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
		put(&l, "%s%s=", i ? "\t" : "", fields[i].name);
		put_field(&l, &fields[i], r, id);
	}
	const size_t n = (size_t)(l.p - body);
	sum_of(body, n, sum);
	return (size_t)snprintf(out, TUNE_LINE, "%s %zu\t%.*s\n", sum, n, (int)n, body);
}

/* ---- reading ---- */

static const char *read_u64(const char *p, uint64_t *v)
{
	for (*v = 0; *p >= '0' && *p <= '9'; p++)
		*v = *v * 10 + (uint64_t)(*p - '0');
	return p;
}

static const char *read_real(const char *p, double *v)
{
	uint64_t whole, part = 0, unit = FRACTION;

	p = read_u64(p, &whole);
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9'; p++)
			if (unit > 1)
				unit /= 10, part += (uint64_t)(*p - '0') * unit;
	*v = (double)whole + (double)part / FRACTION;
	return p;
}

static bool read_date(const char *p, int64_t *v)
{
	struct tm tm = { .tm_sec = 0 };
	int micro;

	if (sscanf(p, "%d-%d-%dT%d:%d:%d.%6dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
	           &micro) != 7)
		return false;
	tm.tm_year -= 1900, tm.tm_mon -= 1;
	*v = (int64_t)timegm(&tm) * MICRO + micro;
	return true;
}

static bool read_field(tune_record *r, const field *f, char *value)
{
	const char *p = value;
	uint64_t v;

	switch (f->kind) {
	case ID: return sscanf(value, "%16llx", (unsigned long long *)&r->id) == 1;
	case TEXT: *(const char **)to(r, f) = value; return true;
	case U32: return *read_u64(value, &v) == 0 && v <= UINT32_MAX && (*(uint32_t *)to(r, f) = (uint32_t)v, true);
	case REAL: return *read_real(value, (double *)to(r, f)) == 0;
	case DATE: return read_date(value, (int64_t *)to(r, f));
	case DIMS:
		for (uint32_t i = 0; *p && i < CPTX_TUNE_DIMS; i++) {
			p = read_u64(p, &r->key.dims[i]);
			p += *p == 'x';
		}
		return *p == 0;
	case SAMPLES:
		while (*p && r->r.nsamples < CPTX_TUNE_SAMPLES) {
			p = read_real(p, &r->samples[r->r.nsamples++]);
			if (*p && *p++ != ',')
				return false;
		}
		r->r.samples = r->samples;
		return *p == 0;
	}
	return false;
}

/* Fields are in order; names that a later version adds are passed over. */
static bool read_fields(tune_record *r, char *p)
{
	size_t next = 0;

	for (char *end; p; p = end) {
		end = strchr(p, '\t');
		if (end)
			*end++ = 0;
		char *value = strchr(p, '=');
		if (!value)
			return false;
		*value++ = 0;
		if (next < ARRAY_LEN(fields) && !strcmp(p, fields[next].name) && !read_field(r, &fields[next++], value))
			return false;
	}
	return next == ARRAY_LEN(fields);
}

bool tune_parse(const char *p, size_t n, tune_record *r)
{
	char sum[SUM + 1];
	uint64_t length;

	if (n >= TUNE_LINE || n < SUM + 3 || p[SUM] != ' ')
		return false;
	memcpy(r->text, p, n);
	r->text[n] = 0;
	const char *body = read_u64(r->text + SUM + 1, &length);
	if (*body++ != '\t' || length != n - (size_t)(body - r->text) || memchr(body, 0, length))
		return false;
	sum_of(body, length, sum);
	if (memcmp(sum, p, SUM))
		return false;
	r->r = (cptx_tune_record){ .size = (uint32_t)offsetof(cptx_tune_record, z_) };
	r->key = (cptx_tune_key){ .size = (uint32_t)offsetof(cptx_tune_key, z_) };
	r->r.key = &r->key;
	/* whoever reads a record relies on what a writer must keep to: lengths of texts, no control characters, a time */
	return read_fields(r, r->text + (body - r->text)) && check_texts(&r->r, true, NULL) && check_texts(&r->r, false, NULL) &&
	       r->r.nsamples && r->r.median > 0;
}

/* ---- hashes ---- */

static void add_text(hash *s, const char *text) { hash_add(s, text, strlen(text) + 1); }
static void add_u64(hash *s, uint64_t v) { hash_add(s, &v, sizeof v); }

static uint64_t end_of(hash *s)
{
	uint8_t out[HASH_BYTES];
	uint64_t v;

	hash_end(s, out);
	memcpy(&v, out, sizeof v);
	return v;
}

uint64_t tune_hash_text(const char *text)
{
	hash s;

	hash_init(&s);
	add_text(&s, text);
	return end_of(&s);
}

tune_hashes tune_hash_key(const cptx_tune_key *k)
{
	tune_hashes h;
	hash s, dims;

	hash_init(&s);
	add_text(&s, k->generator), add_u64(&s, k->version), add_text(&s, k->problem), add_text(&s, k->device);
	add_u64(&s, k->sms), add_u64(&s, k->clock_mhz), add_u64(&s, k->power_w);
	dims = s;
	h.group = end_of(&s);
	for (int i = 0; i < CPTX_TUNE_DIMS; i++)
		add_u64(&dims, k->dims[i]);
	h.problem = end_of(&dims);
	hash_init(&s);
	add_text(&s, k->compiler), add_u64(&s, k->driver);
	h.build = end_of(&s);
	return h;
}

tune_item tune_item_of(const tune_record *r)
{
	const tune_hashes h = tune_hash_key(r->r.key);
	tune_item item = { .group = h.group, .problem = h.problem };

	item.candidate = tune_hash_text(r->r.candidate), item.build = h.build;
	item.median = r->r.median, item.date = r->r.date;
	for (int i = 0; i < CPTX_TUNE_DIMS; i++)
		item.log_dims[i] = (float)log2((double)MAX(r->r.key->dims[i], 1u));
	return item;
}

double tune_distance(const float a[CPTX_TUNE_DIMS], const float b[CPTX_TUNE_DIMS])
{
	double sum = 0;

	for (int i = 0; i < CPTX_TUNE_DIMS; i++)
		sum += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
	return sqrt(sum);
}
