/* SPDX-License-Identifier: MIT */
/* Timelines: spans of warps and of asynchronous work, the same whatever the threads; the file that cptx run makes; progress.
 */
#include "trial.h"

#include "run/trace.h"

#include <ctype.h>
#include <unistd.h>

enum { MOST = 4096 };

/* Thread 0 loads 1024 bytes by TMA; all wait for them, then for each other. */
static const char body[] =
	".shared .align 16 .b8 s[1024]; .shared .align 8 .b64 mb; setp.eq.u32 %p0, %r0, 0; @!%p0 bra READY;"
	"mbarrier.init.shared.b64 [mb], 1; fence.mbarrier_init.release.cluster;"
	"READY: bar.sync 0; @!%p0 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [mb], 1024; mov.u32 %r1, mb; mov.u32 %r2, s;"
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd0], 1024, [%r1];"
	"WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [mb], 0; @!%p1 bra WAIT; bar.sync 0;";

typedef struct timeline {
	cptx_emu_span span[MOST];
	char instruction[MOST][64];
	size_t n;
	uint64_t progress, of;
} timeline;

static void keep(void *user, const cptx_emu_span *s)
{
	timeline *t = user;

	ck_assert_uint_lt(t->n, MOST);
	t->span[t->n] = *s;
	snprintf(t->instruction[t->n], sizeof t->instruction[0], "%s", s->instruction);
	t->span[t->n].instruction = t->instruction[t->n];
	t->span[t->n].at.file = s->at.file ? "k.ptx" : NULL;
	t->span[t->n].kernel = "k";
	t->n++;
}

static void note(void *user, uint64_t ctas, uint64_t of)
{
	timeline *t = user;

	ck_assert_uint_ge(ctas, t->progress);
	t->progress = ctas;
	t->of = of;
}

static void make(timeline *t, uint32_t threads, uint64_t seed, uint32_t grid, cptx_emu_counters *counters)
{
	static uint32_t x[256];
	trial k = { .target = "sm_90a", .body = body, .grid = { grid }, .block = { 128 }, .data = x, .size = sizeof x };

	memset(t, 0, sizeof *t);
	k.opt = (cptx_emu_opt){ .seed = seed, .threads = threads, .trace = keep, .progress = note, .user = t };
	trial_run(&k);
	ck_assert_msg(k.ok, "%s%s", k.err.text, k.message);
	*counters = k.counters;
}

/* The warp's spans follow one another without a gap; how many of them wait at the instruction. */
static unsigned waits(const timeline *t, uint64_t block, uint32_t warp, const char *at)
{
	uint64_t end = 0;
	unsigned n = 0, spans = 0;

	for (size_t i = 0; i < t->n; i++) {
		const cptx_emu_span *s = &t->span[i];
		if (s->number != block || s->warp != warp || s->kind == CPTX_EMU_SPAN_ASYNC)
			continue;
		ck_assert_msg(!spans++ || s->begin == end, "block %u, warp %u: from %u on, but %u is the end before",
		              (unsigned)block, warp, (unsigned)s->begin, (unsigned)end);
		ck_assert_uint_gt(s->end, s->begin);
		ck_assert_int_eq(s->kind == CPTX_EMU_SPAN_RUN, !*s->instruction);
		end = s->end;
		n += s->kind == CPTX_EMU_SPAN_WAIT && !strcmp(s->instruction, at);
	}
	ck_assert_uint_ge(spans, 1);
	return n;
}

START_TEST(spans_of_a_kernel)
{
	static timeline t;
	cptx_emu_counters n;
	unsigned barrier = 0, poll = 0;

	make(&t, 1, 3, 2, &n);
	for (uint64_t block = 0; block < 2; block++) {
		unsigned copies = 0;
		for (uint32_t w = 0; w < 4; w++) {
			barrier += waits(&t, block, w, "bar.sync");
			poll += waits(&t, block, w, "mbarrier.try_wait.parity.shared.b64");
		}
		for (size_t i = 0; i < t.n; i++)
			if (t.span[i].kind == CPTX_EMU_SPAN_ASYNC && t.span[i].number == block) {
				copies++;
				ck_assert(t.span[i].bytes == 1024 && t.span[i].warp == 0 && t.span[i].at.line > 0);
				ck_assert(strstr(t.span[i].instruction, "cp.async.bulk.shared::cluster.global") == t.span[i].instruction);
			}
		ck_assert_uint_eq(copies, 1);
	}
	ck_assert_uint_ge(barrier, 8); /* of 4 warps, 3 or more wait, at each of 2 barriers, in 2 blocks */
	ck_assert_uint_ge(poll, 2);
	ck_assert(t.progress == 2 && t.of == 2);
}
END_TEST

START_TEST(the_same_for_a_seed)
{
	static timeline a, b;
	cptx_emu_counters x, y;

	make(&a, 1, 5, 40, &x);
	make(&b, 4, 5, 40, &y);
	ck_assert(!memcmp(&x, &y, sizeof x) && a.n == b.n);
	for (size_t i = 0; i < a.n; i++) {
		const cptx_emu_span *p = &a.span[i], *q = &b.span[i];
		ck_assert(p->kind == q->kind && p->number == q->number && p->warp == q->warp && p->at.line == q->at.line);
		ck_assert(p->begin == q->begin && p->end == q->end && p->bytes == q->bytes && p->flops == q->flops);
		ck_assert_str_eq(a.instruction[i], b.instruction[i]);
	}
	ck_assert(b.progress == 40 && b.of == 40);
}
END_TEST

START_TEST(a_deadlock_has_an_end)
{
	static timeline t;
	static uint32_t x[64];
	trial k = { .target = "sm_80", .body = "setp.eq.u32 %p0, %r0, 0; @%p0 bra A; barrier.sync 1, 64; A: bar.sync 0;" };

	k.data = x, k.size = sizeof x;
	k.opt = (cptx_emu_opt){ .trace = keep, .user = &t };
	trial_run(&k);
	ck_assert(!k.ok && k.found[0]);
	ck_assert_uint_ge(t.n, 1);
	for (size_t i = 0; i < t.n; i++)
		ck_assert(t.span[i].end > t.span[i].begin && t.span[i].number == 0);
}
END_TEST

/* ---- the file ---- */

static const char *value(const char *p);

static const char *blanks(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static const char *string(const char *p)
{
	ck_assert_int_eq(*p, '"');
	for (p++; *p && *p != '"'; p++)
		p += *p == '\\';
	ck_assert_int_eq(*p, '"');
	return p + 1;
}

static const char *members(const char *p, char end)
{
	if (*(p = blanks(p + 1)) == end)
		return p + 1;
	for (;; p++) {
		if (end == '}') {
			p = blanks(string(blanks(p)));
			ck_assert_int_eq(*p, ':');
			p++;
		}
		p = blanks(value(blanks(p)));
		if (*p == end)
			return p + 1;
		ck_assert_int_eq(*p, ',');
	}
}

static const char *value(const char *p)
{
	if (*p == '{' || *p == '[')
		return members(p, *p == '{' ? '}' : ']');
	if (*p == '"')
		return string(p);
	ck_assert_msg(isdigit((unsigned char)*p), "no value: %.20s", p);
	return p + strspn(p, "0123456789");
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, what)); p++)
		n++;
	return n;
}

START_TEST(a_file_of_it)
{
	static timeline t;
	static char text[1 << 20];
	cptx_emu_counters n;
	char path[] = "/tmp/cptx_trace_XXXXXX";
	static const cli_command cmd = { .name = "trace" };
	run_trace out;

	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	make(&t, 1, 3, 2, &n);
	t.span[0].instruction = "quote\"back\\slash\n";
	ck_assert(run_trace_open(&out, &cmd, path));
	for (size_t i = 0; i < t.n; i++)
		run_trace_put(&out, &t.span[i]);
	ck_assert(run_trace_close(&out, &cmd));
	close(fd);
	FILE *f = fopen(path, "r"); /* another one than fd is of: the file appears whole */
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	remove(path);
	ck_assert_str_eq(blanks(value(text)), "");
	ck_assert_uint_eq(count(text, "\"name\":\"process_name\""), 2);
	ck_assert_uint_eq(count(text, "\"name\":\"thread_name\""), 8);
	ck_assert_uint_eq(count(text, "\"ph\":\"b\""), 2);
	ck_assert_uint_eq(count(text, "\"ph\":\"e\""), 2);
	ck_assert_uint_eq(count(text, "\"bytes\":1024"), 2);
	ck_assert_uint_eq(count(text, "\"name\":\"cp.async.bulk\""), 4);
	ck_assert_uint_ge(count(text, "\"name\":\"wait: bar.sync\""), 4);
	ck_assert_uint_eq(count(text, "\"ph\":\"X\""), (unsigned)t.n - 2);
}
END_TEST

TRIAL_MAIN("emu_trace", spans_of_a_kernel, the_same_for_a_seed, a_deadlock_has_an_end, a_file_of_it)
