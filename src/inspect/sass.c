/* SPDX-License-Identifier: MIT */
/*
 * Decodes one machine instruction of 128 bits.  Bits 0 to 11 are the operation with the form of its operands, 12 to 15 the
 * guard; sass.def has the rest for each operation.  NVIDIA documents none of it.
 */
#include "inspect/sass.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
	uint16_t op, first, last; /* first, last: architectures that the row is for */
	const char *name;
	enum sass_flow flow;
	const char *registers;
} row;

static const row rows[] = {
#define SASS(OP, FIRST, LAST, NAME, FLOW, REGISTERS) { OP, FIRST, LAST, NAME, SASS_##FLOW, REGISTERS },
#include "inspect/sass.def"
#undef SASS
};
enum { NROWS = sizeof rows / sizeof *rows, NO_REGISTER = 255, PT = 7 };

bool sass_knows(unsigned sm)
{
	static const uint8_t compared[] = { 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121 };

	return sm <= UINT8_MAX && memchr(compared, (int)sm, sizeof compared);
}

static unsigned bits(const unsigned char *p, unsigned from, unsigned n)
{
	unsigned v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (unsigned)(p[(from + i) / 8] >> (from + i) % 8 & 1) << i;
	return v;
}

static int64_t signed_bits(const unsigned char *p, unsigned from, unsigned n)
{
	uint64_t v = bits(p, from, n > 32 ? 32 : n);

	if (n > 32)
		v |= (uint64_t)bits(p, from + 32, n - 32) << 32;
	return (int64_t)(v << (64 - n)) >> (64 - n);
}

static const row *find(unsigned op, unsigned sm)
{
	size_t low = 0, high = NROWS;

	while (low < high) {
		size_t at = (low + high) / 2;
		if (rows[at].op < op)
			low = at + 1;
		else
			high = at;
	}
	while (low < NROWS && rows[low].op == op && (sm < rows[low].first || sm > rows[low].last))
		low++;
	return low < NROWS && rows[low].op == op ? &rows[low] : NULL;
}

/* ---- registers ---- */

/* The number of registers for a letter or digit of the table; -1: unknown. */
static int width_of(char c)
{
	static const char few[] = "012345678", many[] = "gwxy";
	const char *p = c ? strchr(few, c) : NULL, *q = c ? strchr(many, c) : NULL;

	return p ? (int)(p - few) : q ? 16 << (q - many) : -1;
}

/* The registers of a wgmma's accumulator: 64 rows by 8 columns for each of 1 + (bits 53 to 57) groups, in f32 if bit 75 is
 * set. */
static int sums_of(const unsigned char *p) { return (int)(bits(p, 53, 5) + 1) * (bits(p, 75, 1) ? 4 : 2); }

/* The registers of an integer wgmma's accumulator: N is 8 to 32 by 8, then up to 256 by 16, and each N has three encodings.
 */
static int integer_sums_of(const unsigned char *p)
{
	int shape = (int)bits(p, 53, 6) / 3;

	return shape < 4 ? 4 * (shape + 1) : 8 * (shape - 1);
}

/* Reads "2", "h", "72:12" or "73,74,75:1111124-" of the table, and returns the number of registers; *end: behind it. */
static int width(const unsigned char *p, const char *s, const char **end)
{
	size_t n = strcspn(s, " ");
	const char *colon = memchr(s, ':', n);
	unsigned value = 0, i = 0;

	*end = s + n;
	if (!colon)
		return *s == 'h' ? sums_of(p) : *s == 'i' ? integer_sums_of(p) : width_of(*s);
	for (const char *at = s; at < colon; at++, i++) {
		char *behind;
		value |= bits(p, (unsigned)strtoul(at, &behind, 10), 1) << i;
		at = behind;
	}
	return colon + 1 + value < *end ? width_of(colon[1 + value]) : -1;
}

static void add(sass_set *s, unsigned first, unsigned n)
{
	for (unsigned r = first; first != NO_REGISTER && r < first + n && r < NO_REGISTER; r++)
		s->w[r / 64] |= (uint64_t)1 << r % 64;
}

static bool read_registers(const unsigned char *p, const char *s, sass_insn *out)
{
	static const struct {
		char letter;
		bool written;
		uint8_t at;
	} fields[] = { { 'D', true, 16 },  { 'E', true, 64 },  { 'S', false, 16 }, { 'A', false, 24 },
		           { 'B', false, 32 }, { 'C', false, 64 }, { 'M', false, 40 }, { 'N', false, 52 } };

	while (*s) {
		size_t f = 0;
		while (f < sizeof fields / sizeof *fields - 1 && fields[f].letter != *s)
			f++;
		int n = width(p, s + 1, &s);
		if (n < 0)
			return false;
		add(fields[f].written ? &out->def : &out->use, bits(p, fields[f].at, 8), (unsigned)n);
		s += strspn(s, " ");
	}
	return true;
}

/* ---- the way ---- */

/* The distance to a branch's target in bytes.  It is encoded in units of 4 bytes from the next instruction; from sm_90 on
 * its lowest 8 bits lie elsewhere. */
static int64_t distance(const unsigned char *p, unsigned sm, enum sass_flow flow)
{
	if (flow == SASS_MARK)
		return 4 * signed_bits(p, 34, 30);
	int64_t far = signed_bits(p, 34, 48);
	return sm >= 90 ? 4 * (far * 256 + bits(p, 16, 8)) : 4 * far;
}

/* Whether a branch depends on more than its guard: a predicate of its own, a uniform register, or whether threads diverge.
 */
static bool asks(const unsigned char *p, unsigned op)
{
	enum { BRA_U = 0x547, WARPSYNC = 0x348, DIV = 2 };

	return op == BRA_U || op == WARPSYNC || bits(p, 87, 4) != PT || bits(p, 32, 2) >= DIV;
}

bool sass_decode(const unsigned char p[SASS_BYTES], unsigned sm, uint32_t address, sass_insn *out)
{
	const row *r = find(bits(p, 0, 12), sm);

	*out = (sass_insn){ .name = r ? r->name : NULL };
	if (!r || !read_registers(p, r->registers, out))
		return false;
	out->flow = r->flow;
	out->guarded = bits(p, 12, 4) != PT;
	out->barrier = bits(p, 16, 4);
	out->target = (int64_t)address + SASS_BYTES + distance(p, sm, r->flow);
	out->may_pass =
		out->guarded || (r->flow == SASS_BRANCH && asks(p, r->op)) || (r->flow == SASS_EXIT && bits(p, 87, 4) != PT);
	return true;
}
