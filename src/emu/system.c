/* Functions that kernels call and the system defines: printf, assertions, memory. */
#include "emu/exec.h"
#include "emu/undefined.h"

#include <stdio.h>

/* ---- what is passed ---- */

static uint64_t argument(const emu_warp *w, const emu_op *op, unsigned i, unsigned lane)
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

static void give_back(const emu_warp *w, const emu_op *op, unsigned lane, uint64_t v)
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

/* One conversion of a format. */
typedef struct conversion {
	char spec[40]; /* as C's printf takes it, with the length of uint64_t, and * for given width and precision */
	char is;       /* d u c s p f ...; 0: none that there is */
	bool star, star2;
	unsigned bytes; /* of its argument */
	unsigned bits;  /* of an integer, that count */
	const char *end;
} conversion;

static unsigned bytes_of(char is, unsigned longs)
{
	return strchr("sp", is) || strchr("fFeEgGaA", is) ? 8 : longs && strchr("diouxX", is) ? 8 : 4;
}

static conversion parse(const char *s)
{
	conversion c = { .spec = "%" };
	size_t n = 1;
	unsigned longs = 0, halves = 0;

	for (s++; *s && strchr("-+ #0123456789.*", *s); s++) {
		if (*s == '*' && strchr(c.spec, '.'))
			c.star2 = true;
		else if (*s == '*')
			c.star = true;
		if (n < 20)
			c.spec[n++] = *s;
	}
	for (; *s && strchr("hlLjzt", *s); s++)
		*s == 'h' ? halves++ : longs++;
	c.end = *s ? s + 1 : s;
	if (!*s || !strchr("diouxXcspfFeEgGaA", *s))
		return c;
	c.is = *s;
	c.bytes = bytes_of(c.is, longs);
	c.bits = halves ? MAX(32u >> halves, 8u) : c.bytes * 8;
	if (strchr("diouxX", c.is))
		n += (size_t)snprintf(c.spec + n, 3, "ll");
	c.spec[n++] = c.is;
	c.spec[n] = 0;
	return c;
}

/* The arguments, packed as a C compiler packs them in memory. */
typedef struct arguments {
	emu_warp *w;
	const emu_op *op;
	unsigned lane, taken;
	uint64_t at;
	bool ok;
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

static int limited(int64_t n) { return n > 4096 ? 4096 : n < -4096 ? -4096 : (int)n; }

#define PRINT(value)                                                                                                        \
	(c->star && c->star2 ? buf_printf(out, c->spec, width, precision, value)                                                \
	 : c->star           ? buf_printf(out, c->spec, width, value)                                                           \
	 : c->star2          ? buf_printf(out, c->spec, precision, value)                                                       \
	                     : buf_printf(out, c->spec, value))

static void put_conversion(arguments *a, const conversion *c, buf *out)
{
	int width = c->star ? limited((int32_t)next_argument(a, 4)) : 0,
		precision = c->star2 ? limited((int32_t)next_argument(a, 4)) : 0;
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

/* The number of arguments taken; -1: a finding. */
static int print(arguments *a, const char *format, buf *out)
{
	while (*format && a->ok) {
		size_t n = strcspn(format, "%");
		buf_put(out, format, n);
		format += n;
		if (!*format)
			break;
		if (format[1] == '%') {
			buf_put(out, "%", 1);
			format += 2;
			continue;
		}
		conversion c = parse(format);
		if (!c.is) { /* printed as it stands */
			buf_put(out, format, (size_t)(c.end - format));
			format = c.end;
			continue;
		}
		put_conversion(a, &c, out);
		format = c.end;
	}
	return a->ok ? (int)a->taken : -1;
}

static enum emu_step vprintf_lanes(emu_warp *w, const emu_op *op, uint32_t mask)
{
	EACH_LANE(l, mask) {
		arguments a = { .w = w, .op = op, .lane = l, .at = argument(w, op, 1, l), .ok = true };
		buf format;
		buf_init(&format, NULL);
		bool ok = read_text(w, op, l, argument(w, op, 0, l), &format);
		buf_put(&format, "", 1);
		int n = ok && !format.failed ? print(&a, format.p, &w->cluster->printed) : -1;
		buf_free(&format);
		if (n < 0)
			return STEP_FAULT;
		give_back(w, op, l, (uint64_t)n);
	}
	return STEP_NEXT;
}

bool emu_print_out(emu_cluster *c)
{
	const cptx_emu_opt *opt = &c->grid->machine->opt;
	buf *b = &c->printed;

	if (!b->n && !b->failed)
		return true;
	buf_put(b, "", 1);
	bool ok = !b->failed;
	if (ok && opt->print)
		opt->print(opt->user, b->p);
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
	bool ok = read_text(w, op, lane, argument(w, op, 1, lane), &b);
	buf_printf(&b, ":%u: ", (unsigned)argument(w, op, 2, lane));
	ok = ok && read_text(w, op, lane, argument(w, op, 3, lane), &b);
	buf_str(&b, ": assertion failed: ");
	ok = ok && read_text(w, op, lane, argument(w, op, 0, lane), &b);
	buf_put(&b, "", 1);
	if (ok)
		emu_find(w, op, (int)lane, CPTX_FIND_ASSERT, "%s", b.failed ? "" : b.p);
	buf_free(&b);
	return STEP_FAULT;
}

/* ---- malloc, free ---- */

enum { HEAP = 8 << 20 /* bytes, CUDA's default */, HEAP_ALIGN = 16 };

static enum emu_step malloc_lanes(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_machine *m = w->grid->machine;

	if (emu_wants_turn(w))
		return STEP_TURN;
	EACH_LANE(l, mask) {
		uint64_t size = argument(w, op, 0, l), at = 0;
		if (size && size <= HEAP - m->heap)
			at = emu_alloc_new(m, size, HEAP_ALIGN, NULL, false);
		if (at) {
			m->heap += size;
			emu_alloc_find(m, at)->is_heap = true;
		}
		give_back(w, op, l, at);
	}
	return STEP_NEXT;
}

static enum emu_step free_lanes(emu_warp *w, const emu_op *op, uint32_t mask)
{
	emu_machine *m = w->grid->machine;

	if (emu_wants_turn(w))
		return STEP_TURN;
	EACH_LANE(l, mask) {
		uint64_t at = argument(w, op, 0, l);
		emu_alloc *a = emu_alloc_find(m, at);
		if (!at)
			continue;
		if (!a || a->at != at || !a->is_heap)
			return emu_find(w, op, (int)l, CPTX_FIND_CALL,
			                "free of 0x%llx, which malloc has not given, or which was freed already",
			                (unsigned long long)at);
		m->heap -= a->size;
		emu_alloc_close(m, a);
	}
	return STEP_NEXT;
}

emu_fn emu_builtin(const char *name)
{
	static const struct {
		const char *name;
		emu_fn fn;
	} all[] = {
		{ "vprintf", vprintf_lanes }, { "__assertfail", assert_fails }, { "malloc", malloc_lanes }, { "free", free_lanes }
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(name, all[i].name))
			return all[i].fn;
	return NULL;
}
