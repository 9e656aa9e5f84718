/* SPDX-License-Identifier: MIT */
/* The report as JSON: what --html shows, too. */
#include "inspect/inspect.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of the UTF-8 character at s, of n bytes at most; 0: it is none. */
static size_t utf8(const unsigned char *s, size_t n)
{
	size_t len = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;

	if (len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if (s[i] >> 6 != 2)
			return 0;
	/* too long a form, a half of a pair, behind the last */
	bool wrong = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) || (*s == 0xf0 && s[1] < 0x90) ||
	             (*s == 0xf4 && s[1] >= 0x90);
	return wrong ? 0 : len;
}

/* Also safe inside of a script element: no '<'.  Bytes that are no UTF-8 are taken for Latin-1. */
static void put_bytes(FILE *f, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', f);
	for (size_t i = 0, len; i < n; i += len ? len : 1) {
		len = utf8(s + i, n - i);
		if (s[i] == '"' || s[i] == '\\')
			fprintf(f, "\\%c", s[i]);
		else if (!len || s[i] < ' ' || s[i] == '<')
			fprintf(f, "\\u%04x", (unsigned)s[i]);
		else
			fwrite(s + i, 1, len, f);
	}
	fputc('"', f);
}

static void put_string(FILE *f, const char *s) { put_bytes(f, s ? s : "", s ? strlen(s) : 0); }

static void put_lines(FILE *f, const char *text, size_t size)
{
	fputc('[', f);
	for (size_t at = 0; text && at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t n = end ? (size_t)(end - text) - at : size - at;
		fputs(at ? ",\n" : "", f);
		put_bytes(f, text + at, n);
		at += n + 1;
	}
	fputc(']', f);
}

static void put_usage(FILE *f, const inspect_kernel *k)
{
	fprintf(f,
	        ",\"measured\":%s,\"registers\":%u,\"frame\":%u,\"stack\":%u,\"static_smem\":%u,\"dynamic_smem\":%u,\"dynamic_"
	        "smem_given\":%s,\"barriers\":%u",
	        k->has_usage ? "true" : "false", k->registers, k->frame, k->stack, k->static_smem, k->dynamic_smem,
	        k->smem_given ? "true" : "false", k->barriers);
	fprintf(f, ",\"code\":%u,\"constant0\":%u,\"param_bytes\":%u,\"threads\":%u", k->code, k->constant0, k->param_bytes,
	        k->threads);
	if (k->has_spills)
		fprintf(f, ",\"spill_stores\":%u,\"spill_loads\":%u", k->spill_stores, k->spill_loads);
	if (k->has_occupancy)
		fprintf(
			f,
			",\"occupancy\":{\"ctas\":%u,\"warps\":%u,\"most_warps\":%u,\"limit\":\"%s\",\"by_registers\":%u,\"by_smem\":%u,"
			"\"by_threads\":%u,\"by_ctas\":%u}",
			k->occupancy.ctas, k->occupancy.warps, k->occupancy.most_warps, cptx_limit_name(k->occupancy.limit),
			k->occupancy.by_registers, k->occupancy.by_smem, k->occupancy.by_threads, k->occupancy.by_ctas);
}

static void put_flow(FILE *f, const inspect_kernel *k)
{
	size_t n, nloop;
	const cptx_point *p = cptx_flow_points(k->flow, &n);
	const cptx_loop *l = cptx_flow_loops(k->flow, &nloop);
	uint32_t count[CPTX_UNITS];
	double weight[CPTX_UNITS];

	cptx_flow_mix(k->flow, count, weight);
	fputs(",\"mix\":{", f);
	for (unsigned u = 0; u < CPTX_UNITS; u++)
		fprintf(f, "%s\"%s\":%u", u ? "," : "", cptx_unit_name(u), count[u]);
	uint32_t known, accesses, conflicts = cptx_flow_conflicts(k->flow, &known, &accesses);
	fprintf(f, "},\"conflicts\":%u,\"conflicts_known\":%u,\"shared_accesses\":%u", conflicts, known, accesses);
	fprintf(f, ",\"estimate\":%u,\"peak\":%u,\"points\":[", cptx_flow_registers(k->flow), cptx_flow_peak(k->flow, NULL));
	for (size_t i = 0; i < n; i++) /* line, registers, predicates, depth, unit, bank conflicts */
		fprintf(f, "%s[%u,%u,%u,%u,%u,%u]", i ? "," : "", p[i].line, p[i].live, p[i].predicates, p[i].depth, p[i].unit,
		        p[i].conflicts);
	fputs("],\"loops\":[", f);
	for (size_t i = 0; i < nloop; i++)
		fprintf(f, "%s{\"first\":%u,\"last\":%u,\"depth\":%u,\"weight\":%.0f,\"hottest\":%s}", i ? "," : "",
		        p[l[i].first].line, p[l[i].last].line, l[i].depth, l[i].weight,
		        i == cptx_flow_hottest(k->flow) ? "true" : "false");
	fputc(']', f);
}

/* Address, PTX line, unit, text, registers alive, cycles until the next may be issued, addresses of what it waits for. */
static void put_sass(FILE *f, const inspect_kernel *k, size_t i)
{
	const sass_line *s = &k->sass[i];

	fprintf(f, "[%u,%u,%u,", s->address, s->ptx_line, s->unit);
	put_string(f, s->text ? s->text : "");
	fprintf(f, ",%u,%u,[", s->live, s->stall);
	for (unsigned b = 0, n = 0; b < SASS_BOARDS; b++)
		if (s->from[b] != UINT32_MAX)
			fprintf(f, "%s%u", n++ ? "," : "", k->sass[s->from[b]].address);
	fputs("]]", f);
}

static void put_stages(FILE *f, const inspect_kernel *k)
{
	size_t n;
	const cptx_point *p = cptx_flow_points(k->flow, &n);
	const cptx_shared_var *v = cptx_flow_shared(k->flow, &n);

	fputs(",\"shared\":[", f);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "%s{\"size\":%llu,\"align\":%u,\"line\":%u,\"name\":", i ? "," : "", (unsigned long long)v[i].size,
		        v[i].align, v[i].line);
		put_string(f, v[i].name);
		fputc('}', f);
	}
	const cptx_barrier_set *b = cptx_flow_barriers(k->flow, &n);
	fputs("],\"barriers_at\":[", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s{\"shared\":%u,\"offset\":%u,\"n\":%u,\"arrivals\":%u}", i ? "," : "", b[i].variable, b[i].offset,
		        b[i].n, b[i].arrivals);
	const cptx_stage_use *u = cptx_flow_stages(k->flow, &n);
	fputs("],\"stages\":[", f);
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "%s{\"line\":%u,\"role\":\"%s\",\"set\":%d,\"count\":%u", i ? "," : "", p[u[i].point].line,
		        cptx_stage_role_name(u[i].role), (int)u[i].set, u[i].count);
		fprintf(f, ",\"buffer\":%d,\"offset\":%u,\"stride\":%u}", (int)u[i].buffer, u[i].offset, u[i].stride);
	}
	fputc(']', f);
}

static void put_kernel(FILE *f, const inspect_kernel *k)
{
	fputs("{\"name\":", f);
	put_string(f, k->name);
	put_usage(f, k);
	if (k->flow) {
		put_flow(f, k);
		put_stages(f, k);
	}
	fprintf(f, ",\"alive\":%u,\"alive_unknown\":", k->live);
	put_string(f, k->live_unknown);
	fputs(",\"sass\":[", f);
	for (size_t i = 0, n = 0; i < k->nsass; i++) {
		if (!k->sass[i].text && !k->sass[i].ptx_line && !k->sass[i].live)
			continue;
		fputs(n++ ? ",\n" : "", f);
		put_sass(f, k, i);
	}
	fputs("]}", f);
}

static void put_remarks(FILE *f, const inspected *in)
{
	static const char *const severities[] = { "note", "concern", "warning", "error" };
	const cptx_remark *r;

	fputs(",\n\"remarks\":[", f);
	for (size_t i = 0; (r = cptx_verdict_remark(in->verdict, i)); i++) {
		fprintf(f,
		        "%s{\"severity\":\"%s\",\"topic\":\"%s\",\"code\":\"%s\",\"ptx_line\":%u,\"found\":%s,\"line\":%u,\"file\":",
		        i ? ",\n" : "", severities[r->severity], r->topic, r->code, r->ptx_line, r->found ? "true" : "false",
		        r->at.line);
		put_string(f, r->at.file);
		fputs(",\"function\":", f);
		put_string(f, r->function);
		fputs(",\"text\":", f);
		put_string(f, r->text);
		fputs(",\"advice\":", f);
		put_string(f, r->advice);
		fputc('}', f);
	}
	fputc(']', f);
}

enum { MOST_FILES = 16, MOST_SOURCE = 1 << 20 /* bytes of each */ };

static bool folder_of(const char *file, struct stat *st)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(file, '/');
	int n = slash ? (int)(slash - file) : 0;

	return snprintf(folder, sizeof folder, "%.*s", slash ? (n ? n : 1) : 1, slash ? file : ".") < PATH_MAX &&
	       !stat(folder, st);
}

/*
 * The text of a source file.  Anybody may have written its name into the PTX: only what lies beside the PTX is read without
 * being asked for, and no pipe or device.
 */
static const char *source_text(const inspected *in, const char *file, char text[MOST_SOURCE], size_t *size)
{
	const char *base = strrchr(file, '/');
	struct stat here, there, st;

	*size = 0;
	base = base ? base + 1 : file;
	if (!in->read_sources && (*base == '.' || !folder_of(in->path, &here) || !folder_of(file, &there) ||
	                          here.st_ino != there.st_ino || here.st_dev != there.st_dev))
		return NULL;
	int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (in->read_sources ? 0 : O_NOFOLLOW));
	bool ok = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode);
	for (ssize_t n = 1; ok && n > 0 && *size<MOST_SOURCE; *size += n> 0 ? (size_t)n : 0)
		n = read(fd, text + *size, MOST_SOURCE - *size);
	if (fd >= 0)
		close(fd);
	return ok ? text : NULL;
}

/* The source files that lines of the PTX come from, with their text where it can be read, and the line of each line. */
static void put_sources(FILE *f, const inspected *in)
{
	static char room[MOST_SOURCE]; /* no memory is asked for while the report is written */
	const char *file[MOST_FILES];
	size_t nfile = 0, size;
	uint32_t line = 1;

	fputs(",\n\"origin\":[", f);
	for (size_t at = 0; in->ptx && at < in->size; line++) {
		cptx_site place = inspect_source(in, line);
		size_t i = 0;
		while (place.file && i < nfile && strcmp(file[i], place.file) != 0)
			i++;
		if (place.file && i == nfile && nfile < MOST_FILES)
			file[nfile++] = place.file;
		fprintf(f, place.file && i < nfile ? "%s[%zu,%u]" : "%s0", line > 1 ? "," : "", i, place.line);
		const char *end = memchr(in->ptx + at, '\n', in->size - at);
		at = end ? (size_t)(end - in->ptx) + 1 : in->size;
	}
	fputs("],\n\"sources\":[", f);
	for (size_t i = 0; i < nfile; i++) {
		const char *text = source_text(in, file[i], room, &size);
		fputs(i ? ",{\"name\":" : "{\"name\":", f);
		put_string(f, file[i]);
		fputs(",\"lines\":", f);
		put_lines(f, text, size);
		fputc('}', f);
	}
	fputc(']', f);
}

void inspect_json(const inspected *in, FILE *f)
{
	fputs("{\"file\":", f);
	put_string(f, in->path);
	fprintf(f, ",\"target\":\"%s\",\"note\":", in->target ? in->target->name : "");
	put_string(f, in->note);
	fputs(",\"units\":[", f);
	for (unsigned u = 0; u < CPTX_UNITS; u++)
		fprintf(f, "%s\"%s\"", u ? "," : "", cptx_unit_name(u));
	fputs("],\n\"kernels\":[", f);
	for (size_t i = 0; i < in->nkernel; i++) {
		fputs(i ? ",\n" : "", f);
		put_kernel(f, &in->kernel[i]);
	}
	fputc(']', f);
	put_remarks(f, in);
	put_sources(f, in);
	fputs(",\n\"ptx\":", f);
	put_lines(f, in->ptx, in->size);
	fputs("}\n", f);
}
