/* SPDX-License-Identifier: MIT */
/* Stamps of %globaltimer, and their picture. */
#include "base/options.h"
#include <cptx/cptx.h>
#include <cptx/timeline.h>

#include "kit/made.h"
#include "kit/value.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- the kernel ---- */

void cptx_timeline_begin_(cptx_kernel *k, cptx_site at, cptx_timeline *t, const cptx_timeline_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, t, "timeline"))
		return;
	*t = (cptx_timeline){ .at = { 0 } };
	cptx_timeline_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_timeline_opt, &o, opt, at, k) ||
	    !KIT_OPTION("cptx_timeline_begin", &o, buffer, KIT_U64 | KIT_NONE))
		return;
	opt = &o;
	const bool off = o.buffer.kind == CPTX_VAL_NONE;
	if (!off && (!opt->warps || !opt->events || (uint64_t)opt->warps * opt->events > INT32_MAX / CPTX_TIMELINE_EVENT)) {
		cptx_fail_(k, at,
		           "a timeline of %u warps with %u stamps each; both are from 1 on, and a CTA's take less than 2^31 bytes",
		           opt->warps, opt->events);
		return;
	}
	t->made = kit_made(k, KIT_cptx_timeline);
	if (off)
		return;
	uint32_t bytes = opt->events * CPTX_TIMELINE_EVENT;
	cptx_val yz = CALL(mad, .a = cptx_ctaid_z(k), .b = cptx_nctaid_y(k), .c = cptx_ctaid_y(k), .mode = CPTX_LO);
	cptx_val cta = CALL(mad, .a = yz, .b = cptx_nctaid_x(k), .c = cptx_ctaid_x(k), .mode = CPTX_LO);
	cptx_val warp = CALL(shr, .a = cptx_tid_x(k), .b = cptx_imm(5));
	cptx_val of_cta = CALL(mad_wide, .a = cta, .b = cptx_imm(opt->warps * bytes), .c = opt->buffer);
	cptx_val one_of_them = CALL(setp, .a = warp, .b = cptx_imm(opt->warps), .cmp = CPTX_LT);

	t->at = CALL(mad_wide, .a = warp, .b = cptx_imm(bytes), .c = of_cta);
	/* no room for a warp behind those that were declared */
	t->end =
		CALL(add, .a = t->at, .b = CALL(selp, .a = cptx_imm(bytes), .b = cptx_imm(0), .c = one_of_them, .type = CPTX_U64));
}

void cptx_timeline_stamp_(cptx_kernel *k, cptx_site at, const cptx_timeline *t, int phase, cptx_val when)
{
	cptx_val pair[2];

	if (!KIT_IS_MADE(cptx_timeline, k, at, t) || t->at.kind == CPTX_VAL_NONE ||
	    !kit_value(k, at, "cptx_timeline_stamp_when", "the predicate", when, KIT_PRED | KIT_NONE))
		return;
	if (phase < CPTX_TIMELINE_END) {
		cptx_fail_(k, at, "phase %d of a timeline; they are from 0 on, and CPTX_TIMELINE_END", phase);
		return;
	}
	cptx_val room = CALL(setp, .a = t->at, .b = t->end, .cmp = CPTX_LT);
	if (when.kind != CPTX_VAL_NONE)
		room = CALL(and, .a = room, .b = when);
	pair[0] = cptx_globaltimer(k);
	pair[1] = CALL(mov, .a = cptx_imm((int64_t)phase + 1), .type = CPTX_U64);
	CALL(st, .a = t->at, .b = cptx_pack(k, 2, pair), .space = CPTX_GLOBAL, .type = CPTX_U64, .vec = CPTX_V2, .when = room);
	CALL(add, .a = t->at, .b = cptx_imm(CPTX_TIMELINE_EVENT), .into = t->at, .when = room);
}

/* ---- the picture ---- */

typedef struct event {
	uint64_t time, phase; /* phase + 1; 0: the end; both 0: no stamp */
} event;

typedef struct out {
	char *to;
	size_t size, n;
	bool more;
} out;

CPTX_PRINTF_(2, 3)
static void put(out *o, const char *format, ...)
{
	va_list ap;
	size_t room = o->n < o->size ? o->size - o->n : 0;

	va_start(ap, format);
	int n = vsnprintf(room ? o->to + o->n : NULL, room, format, ap);
	va_end(ap);
	o->n += n > 0 ? (size_t)n : 0;
}

static void put_name(out *o, const char *name)
{
	put(o, "\"");
	for (; *name; name++)
		if (*name == '"' || *name == '\\' || (unsigned char)*name < ' ')
			put(o, "\\u%04x", (unsigned)(unsigned char)*name);
		else
			put(o, "%c", *name);
	put(o, "\"");
}

static const char *next(out *o)
{
	const char *s = o->more ? ",\n" : "\n";

	o->more = true;
	return s;
}

static uint64_t slots(const cptx_timeline_layout *l) { return l ? (uint64_t)l->ctas * l->warps : 0; }

uint64_t cptx_timeline_bytes(const cptx_timeline_layout *l)
{
	uint64_t each = l ? (uint64_t)l->events * CPTX_TIMELINE_EVENT : 0;

	return !each || slots(l) <= UINT64_MAX / each ? slots(l) * each : UINT64_MAX;
}

static event event_at(const cptx_timeline_layout *l, const void *data, uint64_t slot, uint32_t i)
{
	event e;

	memcpy(&e, (const char *)data + (slot * l->events + i) * CPTX_TIMELINE_EVENT, sizeof e);
	return e;
}

static bool is_stamp(event e) { return e.time || e.phase; }

static uint64_t first_time(const cptx_timeline_layout *l, const void *data)
{
	uint64_t first = UINT64_MAX;

	for (uint64_t s = 0; s < slots(l); s++) {
		event e = event_at(l, data, s, 0);
		if (is_stamp(e) && e.time < first)
			first = e.time;
	}
	return first;
}

/* A track has its name in front of its first span. */
static void name_track(out *o, const cptx_timeline_layout *l, uint64_t cta, uint32_t warp)
{
	put(o, "%s{\"ph\":\"M\",\"pid\":%llu,\"tid\":%u,\"name\":\"process_name\",\"args\":{\"name\":\"CTA %llu\"}}", next(o),
	    (unsigned long long)cta, warp, (unsigned long long)cta);
	put(o, "%s{\"ph\":\"M\",\"pid\":%llu,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":", next(o),
	    (unsigned long long)cta, warp);
	if (l->roles)
		put_name(o, l->roles[warp]);
	else
		put(o, "\"warp %u\"", warp);
	put(o, "}}");
}

static void put_track(out *o, const cptx_timeline_layout *l, const void *data, uint64_t slot, uint64_t first)
{
	uint64_t cta = slot / l->warps;
	uint32_t warp = (uint32_t)(slot % l->warps);

	for (uint32_t i = 0; i < l->events; i++) {
		event e = event_at(l, data, slot, i);
		event then = i + 1 < l->events ? event_at(l, data, slot, i + 1) : (event){ 0, 0 };
		if (!is_stamp(e))
			return;
		if (!i)
			name_track(o, l, cta, warp);
		if (!e.phase)
			continue;
		uint64_t end = is_stamp(then) && then.time > e.time ? then.time : e.time;
		put(o, "%s{\"ph\":\"X\",\"pid\":%llu,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"name\":", next(o),
		    (unsigned long long)cta, warp, (double)(e.time - first) * 1e-3, (double)(end - e.time) * 1e-3);
		if (e.phase <= l->phase_count)
			put_name(o, l->phases[e.phase - 1]);
		else
			put(o, "\"phase %llu\"", (unsigned long long)e.phase - 1);
		put(o, "}");
	}
}

size_t cptx_timeline_json(const cptx_timeline_layout *l, const void *data, char *to, size_t size)
{
	out o = { .to = to, .size = to ? size : 0 };
	if (!data)
		l = NULL; /* there is no stamp */
	uint64_t first = first_time(l, data);

	put(&o, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	for (uint64_t s = 0; s < slots(l); s++)
		put_track(&o, l, data, s, first);
	put(&o, "\n]}\n");
	return o.n;
}
