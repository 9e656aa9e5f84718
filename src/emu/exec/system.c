/* SPDX-License-Identifier: MIT */
/* Functions that kernels call and the system defines: printf, assertions, memory. */
#include "emu/exec/system.h"
#include "emu/core/finding.h"
#include "emu/core/machine.h"
#include "emu/core/undefined.h"
#include "emu/exec/exec.h"
#include "emu/memory/memory.h"

#include <stdio.h>

/* ---- what is passed ---- */

uint64_t emu_builtin_argument(const emu_warp *w, const emu_op *op, unsigned i, unsigned lane)
{
	const emu_arg *list = emu_named(op, "a");
	const emu_frame *f = w->g->frame;
	uint64_t v = 0;

	if (i >= list->count)
		return 0;
	const emu_passed *p = &list->passed[i];
	if (p->slot)
		return p->size == 8 ? emu_r64(w, p->slot)[lane] : emu_r32(w, p->slot)[lane];
	memcpy(&v, emu_param_of(f, lane) + p->offset, MIN(p->size, 8u));
	return v;
}

void emu_builtin_result(const emu_warp *w, const emu_op *op, unsigned lane, uint64_t v)
{
	const emu_arg *list = emu_named(op, "r");
	const emu_frame *f = w->g->frame;

	if (!list->count)
		return;
	const emu_passed *p = &list->passed[0];
	if (!p->slot) {
		emu_place at = { .space = SPACE_PARAM, .offset = p->offset, .defined = emu_param_defined(f, lane) };
		memcpy(emu_param_of(f, lane) + p->offset, &v, MIN(p->size, 8u));
		emu_set_defined(&at, p->size, true);
		return;
	}
	emu_put(w, p->slot, p->size == 8 ? 64 : 32, lane, v);
	emu_define(w, p->slot, UINT32_C(1) << lane, ALL_LANES);
}

enum { LONGEST = 65536 /* text of a device that is read */ };

/* The text at a generic address; false with a finding. */
static bool read_text(emu_warp *w, const emu_op *op, unsigned lane, uint64_t at, buf *to)
{
	for (unsigned i = 0; i < LONGEST; i++) {
		char c;
		if (!emu_read(w, op, lane, SPACE_GENERIC, at + i, &c, 1, 0))
			return false;
		if (!c)
			break;
		buf_put(to, &c, 1);
	}
	return true;
}

/* ---- vprintf ---- */

enum { CALL_TEXT = 65536 /* bytes that a call prints, and most that a width or precision is */, PER_STEP = 1024 };

/* One conversion of a format. */
typedef struct conversion {
	char spec[16]; /* as C's printf takes it: with the length of uint64_t, and * for width and precision */
	char is;       /* d u c s p f ...; 0: none that there is */
	bool star, star2;
	int width, precision; /* negative: none */
	unsigned bytes;       /* of its argument */
	unsigned bits;        /* of an integer, that count */
	const char *end;
} conversion;

static unsigned bytes_of(char is, unsigned longs)
{
	return strchr("sp", is) || strchr("fFeEgGaA", is) ? 8 : longs && strchr("diouxX", is) ? 8 : 4;
}

static int limited(int64_t n) { return (int)MAX(MIN(n, (int64_t)CALL_TEXT), -(int64_t)CALL_TEXT); }

/* Digits, or the * that stands for an argument. */
static int number(const char **s, bool *star)
{
	int64_t n = 0;

	*star = **s == '*';
	*s += *star;
	for (; !*star && **s >= '0' && **s <= '9'; ++*s)
		n = limited(n * 10 + (**s - '0'));
	return (int)n;
}

static conversion parse(const char *s)
{
	conversion c = { .spec = "%", .precision = -1 };
	unsigned longs = 0, halves = 0;
	size_t n = 1;

	for (s++; *s && strchr("-+ #0", *s); s++)
		if (!strchr(c.spec, *s))
			c.spec[n++] = *s;
	c.width = number(&s, &c.star);
	if (*s == '.') {
		s++;
		c.precision = number(&s, &c.star2);
	}
	for (; *s && strchr("hlLjzt", *s); s++)
		*s == 'h' ? halves++ : longs++;
	c.end = *s ? s + 1 : s;
	if (!*s || !strchr("diouxXcspfFeEgGaA", *s))
		return c;
	c.is = *s;
	c.bytes = bytes_of(c.is, longs);
	c.bits = halves ? MAX(32u >> MIN(halves, 2u), 8u) : c.bytes * 8;
	snprintf(c.spec + n, sizeof c.spec - n, "*.*%s%c", strchr("diouxX", c.is) ? "ll" : "", c.is);
	return c;
}

/* A call in a lane; its arguments are packed as a C compiler packs them in memory. */
typedef struct arguments {
	emu_warp *w;
	const emu_op *op;
	unsigned lane, taken;
	uint64_t at;
	size_t read; /* bytes of text */
	buf out;
	bool ok, full; /* no finding; as much has been printed as may be */
} arguments;

static uint64_t next_argument(arguments *a, unsigned bytes)
{
	uint64_t v = 0;

	a->at = (a->at + bytes - 1) / bytes * bytes;
	a->ok = a->ok && emu_read(a->w, a->op, a->lane, SPACE_GENERIC, a->at, &v, bytes, 0);
	a->at += bytes;
	a->taken++;
	return v;
}

#define PRINT(value) buf_printf(&a->out, c->spec, width, precision, value)

static void put_conversion(arguments *a, const conversion *c)
{
	int width = c->star ? limited((int32_t)next_argument(a, 4)) : c->width,
		precision = c->star2 ? limited((int32_t)next_argument(a, 4)) : c->precision;
	uint64_t v = next_argument(a, c->bytes);
	double f;
	buf text;

	if (!a->ok)
		return;
	switch (c->is) {
	case 'd':
	case 'i': PRINT((long long)(v << (64 - c->bits)) >> (64 - c->bits)); break;
	case 'c': PRINT((int)(unsigned char)v); break;
	case 'p': PRINT((void *)(uintptr_t)v); break;
	case 's':
		buf_init(&text, NULL);
		if (v)
			a->ok = read_text(a->w, a->op, a->lane, v, &text);
		else
			buf_str(&text, "(null)");
		a->read += text.n;
		buf_put(&text, "", 1);
		if (a->ok && !text.failed)
			PRINT(text.p);
		buf_free(&text);
		break;
	case 'o':
	case 'u':
	case 'x':
	case 'X': PRINT((unsigned long long)(v << (64 - c->bits) >> (64 - c->bits))); break;
	default:
		memcpy(&f, &v, sizeof f);
		PRINT(f);
		break;
	}
}

/* Cuts off what is more than a call prints. */
static void cut(arguments *a)
{
	if (a->out.n <= CALL_TEXT)
		return;
	a->full = true;
	a->out.n = CALL_TEXT;
	buf_printf(&a->out, "\n(printf: of this call only %d bytes are printed)\n", CALL_TEXT);
}

/* Formats, and counts the arguments. */
static void print(arguments *a, const char *format)
{
	while (*format && a->ok) {
		size_t n = strcspn(format, "%");
		conversion c = { .end = format + n };
		if (!n && format[1] == '%') {
			n = 1;
			c.end = format + 2;
		} else if (!n) {
			c = parse(format);
			n = (size_t)(c.end - format); /* printed as it stands, if there is none such */
		}
		if (a->full)
			a->taken += c.is ? 1u + c.star + c.star2 : 0;
		else if (c.is)
			put_conversion(a, &c);
		else
			buf_put(&a->out, format, n);
		if (!a->full)
			cut(a);
		format = c.end;
	}
}

static uint64_t limit_of(const emu_grid *g)
{
	return g->machine->opt.print_limit ? g->machine->opt.print_limit : UINT64_C(1) << 20;
}

/* All that a launch prints beyond the limit is lost; emu_print_out says so. */
static void keep(emu_cluster *c, const buf *text)
{
	uint64_t limit = limit_of(c->grid), left = limit - MIN(c->grid->printed + c->printed.n, limit);

	buf_put(&c->printed, text->p, (size_t)MIN(text->n, left));
	c->print_lost |= text->n > left;
	c->printed.failed |= text->failed;
}

static enum emu_step vprintf_lanes(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_cluster *c = w->cluster;

	EACH_LANE(l, mask) {
		arguments a = { .w = w, .op = op, .lane = l, .at = emu_builtin_argument(w, op, 1, l), .ok = true };
		buf format;
		buf_init(&a.out, NULL);
		buf_init(&format, NULL);
		a.full = c->print_lost || c->grid->print_lost;
		a.ok = read_text(w, op, l, emu_builtin_argument(w, op, 0, l), &format);
		buf_put(&format, "", 1);
		if (a.ok && !format.failed)
			print(&a, format.p);
		uint64_t more = (format.n + a.read + a.out.n) / PER_STEP; /* long texts count as several instructions */
		c->step += more;
		c->spent += more;
		keep(c, &a.out);
		a.ok = a.ok && !format.failed;
		buf_free(&a.out);
		buf_free(&format);
		if (!a.ok)
			return STEP_FAULT;
		emu_builtin_result(w, op, l, a.taken);
	}
	return STEP_NEXT;
}

static void print_lost(emu_grid *g)
{
	char text[160];

	snprintf(text, sizeof text, "\n(printf: this launch prints more than %llu bytes; the rest is lost)\n",
	         (unsigned long long)limit_of(g));
	if (!g->print_lost && g->machine->opt.print)
		g->machine->opt.print(g->machine->opt.user, text);
	g->print_lost = true;
}

bool emu_print_out(emu_cluster *c)
{
	emu_grid *g = c->grid;
	const cptx_emu_opt *opt = &g->machine->opt;
	buf *b = &c->printed;
	uint64_t left = limit_of(g) - g->printed;

	if (!b->n && !b->failed && !c->print_lost)
		return true;
	c->print_lost |= b->n > left;
	b->n = (size_t)MIN(b->n, left);
	g->printed += b->n;
	buf_put(b, "", 1);
	bool ok = !b->failed;
	if (ok && opt->print && b->n > 1)
		opt->print(opt->user, b->p);
	if (ok && c->print_lost)
		print_lost(g);
	buf_free(b);
	buf_init(b, NULL);
	return ok;
}

/* ---- __assertfail ---- */

static enum emu_step assert_fails(emu_warp *w, const emu_op *op, uint32_t mask)
{
	unsigned lane = (unsigned)__builtin_ctz(mask);
	buf b;

	buf_init(&b, NULL);
	bool ok = read_text(w, op, lane, emu_builtin_argument(w, op, 1, lane), &b);
	buf_printf(&b, ":%u: ", (unsigned)emu_builtin_argument(w, op, 2, lane));
	ok = ok && read_text(w, op, lane, emu_builtin_argument(w, op, 3, lane), &b);
	buf_str(&b, ": assertion failed: ");
	ok = ok && read_text(w, op, lane, emu_builtin_argument(w, op, 0, lane), &b);
	buf_put(&b, "", 1);
	for (char *p = b.failed ? NULL : b.p;
	     p && (p = strchr(p, '\n'));) /* a line of its own would look like another finding */
		*p = ' ';
	if (ok)
		emu_find(w, op, (int)lane, CPTX_FIND_ASSERT, "%s", b.failed ? "" : b.p);
	buf_free(&b);
	return STEP_FAULT;
}

/* ---- malloc, free ---- */

enum { HEAP = 8 << 20 /* bytes, CUDA's default */, HEAP_ALIGN = 16 };

uint64_t emu_heap_new(emu_machine *m, uint64_t size)
{
	uint64_t at = size && size <= HEAP - m->heap ? emu_alloc_new(m, size, HEAP_ALIGN, NULL, false) : 0;

	if (at) {
		m->heap += size;
		emu_alloc_find(m, at)->is_heap = true;
	}
	return at;
}

static enum emu_step malloc_lanes(emu_warp *w, const emu_op *op, uint32_t mask)
{
	if (emu_wants_turn(w))
		return STEP_TURN;
	EACH_LANE(l, mask)
		emu_builtin_result(w, op, l, emu_heap_new(w->grid->machine, emu_builtin_argument(w, op, 0, l)));
	return STEP_NEXT;
}

enum emu_step emu_free_heap(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_machine *m = w->grid->machine;

	if (emu_wants_turn(w))
		return STEP_TURN;
	EACH_LANE(l, mask) {
		uint64_t at = emu_builtin_argument(w, op, 0, l);
		char why[EMU_WHY];
		enum cptx_finding_code wrong = at ? emu_free_wrong(m, at, true, why) : CPTX_FIND_NONE;
		if (wrong)
			return emu_find(w, op, (int)l, wrong, "free: %s", why);
		if (at)
			emu_alloc_close(m, emu_alloc_find(m, at));
	}
	EACH_LANE(l, mask)
		emu_builtin_result(w, op, l, 0); /* cudaFree has one, free has not */
	return STEP_NEXT;
}

emu_fn emu_builtin(const char *name)
{
	static const struct {
		const char *name;
		emu_fn fn;
	} all[] = {
		{ "vprintf", vprintf_lanes }, { "__assertfail", assert_fails }, { "malloc", malloc_lanes }, { "free", emu_free_heap }
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(name, all[i].name))
			return all[i].fn;
	return emu_device_runtime(name);
}
