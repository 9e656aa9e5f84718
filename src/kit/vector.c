/* SPDX-License-Identifier: MIT */
/* Rows of global memory: which vectors a thread has, accesses whole and in part, and conversions. */
#include <cptx/cptx.h>
#include <cptx/vector.h>

#include "base/options.h"
#include "kit/made.h"
#include "kit/value.h"

enum { MOST_REGISTERS = 4096, MOST_EACH = 32 };

/* Bits of an element; 0: rows are of no such type. */
static uint32_t bits_of(enum cptx_type t)
{
	return t == CPTX_F32 ? 32 : t == CPTX_BF16 || t == CPTX_F16 ? 16 : t == CPTX_E4M3 ? 8 : 0;
}

static uint32_t size_of(enum cptx_type t) { return bits_of(t) / 8; }

/* ---- making one ---- */

static bool check(cptx_kernel *k, cptx_site at, const cptx_row_opt *o)
{
	if (!bits_of(o->type))
		cptx_fail_(k, at, "a row of .%s; rows are of .f32, .bf16, .f16 or .e4m3", cptx_type_name(o->type));
	else if (!o->n == is_none(o->count))
		cptx_fail_(k, at, "a row has either .n elements, a number, or .count, a value, with .most");
	else if (!o->n && !o->most)
		cptx_fail_(k, at, "a row of .count elements, a register, for which there is no room: say .most");
	else if (o->n && (o->most || o->whole))
		cptx_fail_(k, at, "a row of .n elements with .%s, which is for one of .count", o->most ? "most" : "whole");
	else if (!o->threads || o->threads > CPTX_THREADS_PER_CTA)
		cptx_fail_(k, at, "a row of %u threads; it is held by 1 to %d", o->threads, CPTX_THREADS_PER_CTA);
	else if (o->bytes && o->bytes != 16 && o->bytes != 32)
		cptx_fail_(k, at, "vectors of %u bytes; they have 16 or 32", o->bytes);
	else if (o->align & (o->align - 1))
		cptx_fail_(k, at, "rows at multiples of %u elements; .align is a power of two", o->align);
	else if ((unsigned)o->place > CPTX_ROW_SHARED)
		cptx_fail_(k, at, "a row is kept in CPTX_ROW_REGISTERS or in CPTX_ROW_SHARED");
	else
		return KIT_OPTION("cptx_row_new", o, count, KIT_U32 | KIT_NONE) &&
		       KIT_OPTION("cptx_row_new", o, thread, KIT_U32 | KIT_NONE) && KIT_THREADS("cptx_row_new", o);
	return false;
}

static uint32_t lowest_bit(uint32_t n) { return n & (~n + 1); }

static void make_room(cptx_kernel *k, cptx_site at, cptx_row *r)
{
	const uint32_t threads = r->opt.threads;

	r->v = cptx_regs_(k, at, CPTX_F32, r->opt.place == CPTX_ROW_SHARED ? r->each : r->vectors * r->each);
	if (r->opt.place == CPTX_ROW_REGISTERS)
		return;
	cptx_val all = cptx_shared_(k, at, CPTX_F32, r->vectors * r->each * threads, 16, NULL);
	/* four floats of all threads stand together, so that no two of a quarter warp meet in a bank */
	r->shared = CALL(mad, .a = r->thread, .b = cptx_imm(16), .c = CALL(mov, .a = all, .type = CPTX_U32), .mode = CPTX_LO);
}

void cptx_row_new_(cptx_kernel *k, cptx_site at, cptx_row *r, const cptx_row_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, r, "row"))
		return;
	*r = (cptx_row){ .each = 0 };
	cptx_row_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_row_opt, &o, opt, at, k) || !check(k, at, &o))
		return;
	opt = &o;
	const uint32_t each = (opt->bytes ? opt->bytes : 16) / size_of(opt->type);
	const uint64_t most = (opt->n ? opt->n : opt->most) + (uint64_t)(opt->any ? each - 1 : 0);
	const uint64_t vectors = (most + (uint64_t)each * opt->threads - 1) / ((uint64_t)each * opt->threads);

	if (vectors * each > MOST_REGISTERS) {
		cptx_fail_(k, at, "%llu elements of a row for each of %u threads; there may be %d",
		           (unsigned long long)(vectors * each), opt->threads, MOST_REGISTERS);
		return;
	}
	r->opt = *opt;
	r->opt.bytes = opt->bytes ? opt->bytes : 16;
	r->opt.align = MIN(opt->align ? opt->align : opt->n && !opt->any ? lowest_bit(opt->n) : each, each);
	r->made = kit_made(k, KIT_cptx_row);
	r->each = each;
	r->vectors = (uint32_t)vectors;
	r->thread = is_none(opt->thread) ? cptx_sreg_(k, at, CPTX_SREG_TID_X) : opt->thread;
	make_room(k, at, r);
}

static bool is_made(cptx_kernel *k, cptx_site at, const cptx_row *r) { return KIT_IS_MADE(cptx_row, k, at, r); }

void cptx_row_like_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_row *other)
{
	if (!IS_GIVEN_TO(k, at, other, "row") || !is_made(k, at, r))
		return;
	*other = *r;
	make_room(k, at, other);
}

void cptx_row_begin_(cptx_kernel *k, cptx_site at, cptx_row *r, cptx_val address)
{
	if (!is_made(k, at, r) || !kit_value(k, at, "cptx_row_begin", "the address", address, KIT_U64))
		return;
	if (!r->opt.any) {
		cptx_fail_(k, at, "cptx_row_begin is of rows that begin anywhere: say .any of cptx_row_new");
		return;
	}
	const uint32_t size = size_of(r->opt.type);
	cptx_val low = CALL(cvt, .a = address, .dtype = CPTX_U32), off = CALL(and, .a = low, .b = cptx_imm(r->opt.bytes - 1));

	r->shift = size == 1 ? off : CALL(shr, .a = off, .b = cptx_imm(size == 4 ? 2 : 1));
	cptx_val column = CALL(mul, .a = r->thread, .b = cptx_imm(r->each), .mode = CPTX_LO);
	r->first = cptx_as(CALL(sub, .a = column, .b = r->shift), CPTX_S32);
}

/* ---- which vectors lie in the row ---- */

/* What of a vector lies in the row: always all of it; or all or nothing, as `whole` says; else a part where `part` holds. */
typedef struct extent {
	bool always, ends;
	cptx_val whole, part; /* predicates */
	cptx_val first;       /* .s32 column of its first element */
} extent;

static cptx_val column_of(cptx_kernel *k, cptx_site at, const cptx_row *r, uint32_t more)
{
	cptx_val first = r->first;

	if (is_none(first))
		first = cptx_as(CALL(mul, .a = r->thread, .b = cptx_imm(r->each), .mode = CPTX_LO), CPTX_S32);
	return more ? CALL(add, .a = first, .b = cptx_imm(more)) : first;
}

static cptx_val count_of(const cptx_row *r) { return r->opt.n ? cptx_imm(r->opt.n) : cptx_as(r->opt.count, CPTX_S32); }

static extent extent_of(cptx_kernel *k, cptx_site at, const cptx_row *r, uint32_t i)
{
	const uint32_t per_turn = r->opt.threads * r->each, n = r->opt.n;
	const bool inside = n && (uint64_t)(i + 1) * per_turn <= n;
	extent e = { .always = inside && (is_none(r->shift) || i) };

	if (e.always)
		return e;
	if (is_none(r->shift) && n && n % r->each == 0) {
		/* none of the turn's vectors may be there where the row is shorter than all turns */
		const uint32_t before = i * r->opt.threads, left = n / r->each > before ? n / r->each - before : 0;
		e.whole = CALL(setp, .a = r->thread, .b = cptx_imm(left), .cmp = CPTX_LT);
		return e;
	}
	cptx_val count = count_of(r);
	e.first = column_of(k, at, r, i * per_turn);
	if (is_none(r->shift) && r->opt.whole && !n) {
		e.whole = CALL(setp, .a = e.first, .b = count, .cmp = CPTX_LT);
		return e;
	}
	e.ends = true;
	cptx_val end = CALL(add, .a = e.first, .b = cptx_imm(r->each));
	cptx_val whole = CALL(setp, .a = end, .b = count, .cmp = CPTX_LE),
			 some = CALL(setp, .a = e.first, .b = count, .cmp = CPTX_LT);
	if (!is_none(r->shift)) {
		whole = CALL(and, .a = whole, .b = CALL(setp, .a = e.first, .b = cptx_imm(0), .cmp = CPTX_GE));
		some = CALL(and, .a = some, .b = CALL(setp, .a = end, .b = cptx_imm(0), .cmp = CPTX_GT));
	}
	e.whole = whole;
	e.part = CALL(xor, .a = whole, .b = some); /* whole implies some */
	return e;
}

/* Element j of a vector that is there in part: inside of the row. */
static cptx_val element_is_in(cptx_kernel *k, cptx_site at, const cptx_row *r, const extent *e, uint32_t j)
{
	cptx_val column = cptx_as(j ? CALL(add, .a = e->first, .b = cptx_imm(j)) : e->first, CPTX_U32);
	cptx_val count = r->opt.n ? cptx_imm(r->opt.n) : cptx_as(r->opt.count, CPTX_U32);

	return CALL(setp, .a = column, .b = count, .cmp = CPTX_LT);
}

/* ---- an access ---- */

typedef struct row_access {
	const cptx_row *r;
	cptx_row_access how;
	enum cptx_type type;
	uint32_t size, words; /* bytes of an element; registers of a vector as it is in memory */
	uint32_t bytes;       /* of one instruction, less than 4: one for each element */
	cptx_val at;          /* of the thread's first vector */
} row_access;

static enum cptx_mod space_of(const row_access *a) { return a->how.shared ? CPTX_SHARED : CPTX_GLOBAL; }

/* n times so many bytes, as wide as addresses are. */
static cptx_val bytes_of(cptx_kernel *k, cptx_site at, const row_access *a, cptx_val n, uint32_t bytes)
{
	if (a->how.shared)
		return CALL(mul, .a = n, .b = cptx_imm(bytes), .mode = CPTX_LO);
	return CALL(mul_wide, .a = n, .b = cptx_imm(bytes));
}

static bool begin_access(cptx_kernel *k, cptx_site at, row_access *a, const cptx_row *r, const char *where, cptx_val address,
                         const cptx_row_access *opt)
{
	cptx_row_access given, *how = &given;

	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_row_access, how, opt, at, k) ||
	    !is_made(k, at, r) || !kit_value(k, at, where, "the address", address, given.shared ? KIT_U32 : KIT_U64))
		return false;
	if (given.shared && (given.cop || given.nc)) {
		cptx_fail_(k, at, ".cop and .nc are of global memory, and the row is in shared memory");
		return false;
	}
	*a = (row_access){ .r = r, .how = given, .type = how->type ? how->type : r->opt.type };
	a->size = size_of(a->type);
	if (!a->size || how->align & (how->align - 1)) {
		cptx_fail_(k, at,
		           "a row of .%s at multiples of %u elements; rows are of .f32, .bf16, .f16 or .e4m3, and .align is a "
		           "power of two",
		           cptx_type_name(a->type), how->align);
		return false;
	}
	if (r->opt.any && is_none(r->shift)) {
		cptx_fail_(k, at, "a row that begins anywhere is accessed before cptx_row_begin said where");
		return false;
	}
	const uint32_t align = how->align ? MIN(how->align, r->each) : r->opt.align;
	a->words = MAX(r->each * a->size / 4, 1u);
	a->bytes = MIN(MIN(align * a->size, r->opt.bytes), r->each * a->size);
	if (!is_none(r->shift))
		address = CALL(sub, .a = address, .b = bytes_of(k, at, a, r->shift, a->size));
	/* no mad: ptxas computes the product once for all accesses */
	a->at = CALL(add, .a = address, .b = bytes_of(k, at, a, r->thread, r->each * a->size));
	return true;
}

static cptx_val place_of(const row_access *a, uint32_t i, uint32_t byte)
{
	return cptx_offset(a->at, (int64_t)i * a->r->opt.threads * a->r->each * a->size + byte);
}

/* Whether the predicate of a whole vector holds: NONE, always. */
static void access_words(cptx_kernel *k, cptx_site at, const row_access *a, uint32_t i, cptx_val raw, cptx_val when,
                         bool load)
{
	const uint32_t n = a->bytes / 4;

	for (uint32_t w = 0; w < a->words; w += n) {
		cptx_val p = place_of(a, i, w * 4), v = cptx_slice(raw, w, n);
		if (load)
			CALL(ld, .a = p, .space = space_of(a), .cop = a->how.cop, .nc = a->how.nc, .into = v, .when = when);
		else
			CALL(st, .a = p, .b = v, .space = space_of(a), .cop = a->how.cop, .when = when);
	}
}

static enum cptx_type unit_of(const row_access *a) { return a->size == 4 ? CPTX_B32 : a->size == 2 ? CPTX_U16 : CPTX_U8; }

/* Element j of vector i by an instruction of its own; in a word with others, at bit `low`. */
static void load_element(cptx_kernel *k, cptx_site at, const row_access *a, uint32_t i, uint32_t j, cptx_val word,
                         uint32_t fill, cptx_val when)
{
	const uint32_t low = j * a->size * 8 % 32;
	cptx_val p = place_of(a, i, j * a->size);

	if (a->size == 4) {
		CALL(ld, .a = p, .space = space_of(a), .cop = a->how.cop, .nc = a->how.nc, .into = word, .when = when);
		return;
	}
	cptx_val v = cptx_regs_(k, at, CPTX_U32, 1);
	word = cptx_as(word, CPTX_U32);
	if (!is_none(when))
		CALL(mov, .a = cptx_imm(fill), .into = v);
	CALL(ld, .a = p, .space = space_of(a), .cop = a->how.cop, .nc = a->how.nc, .type = unit_of(a), .into = v, .when = when);
	if (low)
		CALL(mad, .a = v, .b = cptx_imm(1u << low), .c = word, .mode = CPTX_LO, .into = word);
	else
		CALL(mov, .a = v, .into = word);
}

static void store_element(cptx_kernel *k, cptx_site at, const row_access *a, uint32_t i, uint32_t j, cptx_val word,
                          cptx_val when)
{
	const uint32_t low = j * a->size * 8 % 32;
	cptx_val p = place_of(a, i, j * a->size), v = word;

	if (a->size == 4) {
		CALL(st, .a = p, .b = word, .space = space_of(a), .cop = a->how.cop, .when = when);
		return;
	}
	v = cptx_as(v, CPTX_U32);
	if (low)
		v = CALL(shr, .a = v, .b = cptx_imm(low));
	CALL(st, .a = p, .b = v, .space = space_of(a), .cop = a->how.cop, .type = unit_of(a), .when = when);
}

/* Accesses the elements of a vector one by one; known: each is in the row. */
static void access_elements(cptx_kernel *k, cptx_site at, const row_access *a, uint32_t i, cptx_val raw, const extent *e,
                            bool load, uint32_t fill)
{
	for (uint32_t j = 0; j < a->r->each; j++) {
		cptx_val word = cptx_elem(raw, j * a->size / 4), when = { 0 };
		if (e->ends)
			when = element_is_in(k, at, a->r, e, j);
		else if (!e->always)
			when = e->whole;
		if (load)
			load_element(k, at, a, i, j, word, fill, when);
		else
			store_element(k, at, a, i, j, word, when);
	}
}

static void access_vector(cptx_kernel *k, cptx_site at, const row_access *a, uint32_t i, cptx_val raw, const extent *e,
                          bool load, uint32_t fill)
{
	if (a->bytes < 4) {
		access_elements(k, at, a, i, raw, e, load, fill);
		return;
	}
	access_words(k, at, a, i, raw, e->always ? (cptx_val){ 0 } : e->whole, load);
	if (!e->ends)
		return;
	cptx_if_begin_(k, at, e->part);
	access_elements(k, at, a, i, raw, e, load, fill);
	cptx_block_end_(k, at);
}

/* ---- conversions ---- */

/* The bits of a fill as the type has it; false: it has no such number. */
static bool fill_bits(enum cptx_type type, float fill, uint32_t *bits)
{
	uint32_t f;

	memcpy(&f, &fill, 4);
	*bits = f;
	if (type == CPTX_F32)
		return true;
	if (type == CPTX_BF16) {
		*bits = f >> 16;
		return !(f & 0xffff);
	}
	*bits = f >> 16 & 0x8000; /* 0 and -0 */
	if (type == CPTX_E4M3)
		*bits >>= 8;
	if (!(f << 1))
		return true;
	const int exponent = (int)(f >> 23 & 255) - 127;
	if (type != CPTX_F16 || f & 0x1fff || (exponent != 128 && (exponent < -14 || exponent > 15)))
		return false;
	*bits |= (exponent == 128 ? 31u << 10 : (uint32_t)(exponent + 15) << 10) | (f >> 13 & 0x3ff);
	return true;
}

static void widen_halves(cptx_kernel *k, cptx_site at, cptx_val pair, cptx_val low, cptx_val high)
{
	cptx_val h[2] = { cptx_regs_(k, at, CPTX_F16, 1), cptx_regs_(k, at, CPTX_F16, 1) };
	cptx_val bits[2] = { cptx_as(h[0], CPTX_B16), cptx_as(h[1], CPTX_B16) };

	CALL(mov, .a = cptx_as(pair, CPTX_B32), .type = CPTX_B32, .into = cptx_pack_(k, at, bits, 2));
	CALL(cvt, .a = h[0], .dtype = CPTX_F32, .into = low);
	CALL(cvt, .a = h[1], .dtype = CPTX_F32, .into = high);
}

/* A vector as it is in memory to f32. */
static void widen(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val raw, cptx_val to)
{
	for (uint32_t w = 0; type != CPTX_F32 && w < raw.count; w++) {
		cptx_val word = cptx_elem(raw, w);
		if (type == CPTX_BF16) {
			CALL(shl, .a = word, .b = cptx_imm(16), .into = cptx_as(cptx_elem(to, 2 * w), CPTX_B32));
			CALL(and, .a = word, .b = cptx_imm(0xffff0000u), .into = cptx_as(cptx_elem(to, 2 * w + 1), CPTX_B32));
		} else if (type == CPTX_F16) {
			widen_halves(k, at, word, cptx_elem(to, 2 * w), cptx_elem(to, 2 * w + 1));
		} else {
			cptx_val part[2] = { cptx_regs_(k, at, CPTX_B16, 1), cptx_regs_(k, at, CPTX_B16, 1) };
			CALL(mov, .a = word, .type = CPTX_B32, .into = cptx_pack_(k, at, part, 2));
			for (uint32_t i = 0; i < 2; i++) {
				cptx_val pair = CALL(cvt, .a = cptx_as(part[i], CPTX_E4M3X2), .rnd = CPTX_RN, .dtype = CPTX_F16X2);
				widen_halves(k, at, pair, cptx_elem(to, 4 * w + 2 * i), cptx_elem(to, 4 * w + 2 * i + 1));
			}
		}
	}
}

static cptx_val narrow_pair(cptx_kernel *k, cptx_site at, enum cptx_type pair, cptx_val from, uint32_t i)
{
	return CALL(cvt, .a = cptx_elem(from, i + 1), .rnd = CPTX_RN, .dtype = pair, .b = cptx_elem(from, i));
}

static void narrow(cptx_kernel *k, cptx_site at, enum cptx_type type, cptx_val from, cptx_val raw)
{
	for (uint32_t w = 0; type != CPTX_F32 && w < raw.count; w++) {
		cptx_val word = cptx_elem(raw, w);
		if (type != CPTX_E4M3) {
			cptx_val pair = narrow_pair(k, at, type == CPTX_BF16 ? CPTX_BF16X2 : CPTX_F16X2, from, 2 * w);
			CALL(mov, .a = cptx_as(pair, CPTX_B32), .into = word);
			continue;
		}
		cptx_val part[2];
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t e = 4 * w + 2 * i;
			cptx_val pair = CALL(cvt, .a = cptx_elem(from, e + 1), .rnd = CPTX_RN, .satfinite = true, .dtype = CPTX_E4M3X2,
			                     .b = cptx_elem(from, e));
			part[i] = cptx_as(pair, CPTX_B16);
		}
		CALL(mov, .a = cptx_pack_(k, at, part, 2), .type = CPTX_B32, .into = word);
	}
}

/* ---- loads and stores of rows ---- */

/* Vector i: the thread's f32, those of the only vector where the row is in shared memory. */
static cptx_val floats_of(const cptx_row *r, uint32_t i)
{
	return cptx_slice(r->v, r->opt.place == CPTX_ROW_SHARED ? 0 : i * r->each, r->each);
}

static void move_shared(cptx_kernel *k, cptx_site at, const cptx_row *r, uint32_t i, bool load)
{
	for (uint32_t e = 0; e < r->each; e += 4) {
		cptx_val p = cptx_offset(r->shared, (int64_t)(i * r->each + e) * 4 * r->opt.threads), v = cptx_slice(r->v, e, 4);
		if (load)
			CALL(ld, .a = p, .space = CPTX_SHARED, .into = v);
		else
			CALL(st, .a = p, .b = v, .space = CPTX_SHARED);
	}
}

/* Registers for vector i as it is in memory: of f32 those of the row, else new ones. */
static cptx_val raw_of(cptx_kernel *k, cptx_site at, const row_access *a, uint32_t i)
{
	return a->type == CPTX_F32 ? floats_of(a->r, i) : cptx_regs_(k, at, CPTX_B32, a->words);
}

static void set_fill(cptx_kernel *k, cptx_site at, const row_access *a, cptx_val raw, uint32_t fill)
{
	const uint32_t word = a->size == 4 ? fill : a->size == 2 ? fill * 0x10001u : fill * 0x1010101u;

	for (uint32_t w = 0; w < a->words; w++)
		CALL(mov, .a = a->size == 4 ? cptx_f32_bits(word) : cptx_imm(word), .into = cptx_elem(raw, w));
}

static void load_vector(cptx_kernel *k, cptx_site at, const row_access *a, uint32_t i, cptx_val raw, uint32_t fill)
{
	extent e = extent_of(k, at, a->r, i);

	if (!e.always && (!a->how.unset || a->type != CPTX_F32))
		set_fill(k, at, a, raw, fill);
	access_vector(k, at, a, i, raw, &e, true, fill);
}

void cptx_row_load_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_val address, const cptx_row_access *how)
{
	cptx_val raw[MOST_REGISTERS / 4] = { { 0 } };
	uint32_t fill;
	row_access a;

	if (!begin_access(k, at, &a, r, "cptx_row_load", address, how))
		return;
	if (a.how.unset && a.type != CPTX_F32) {
		cptx_fail_(k, at, "a load of .%s with .unset, which is for .f32: others get .fill", cptx_type_name(a.type));
		return;
	}
	if (!fill_bits(a.type, a.how.fill, &fill)) {
		cptx_fail_(k, at, "a fill of %g, which .%s does not have exactly; 0 is in all types, infinities in all but .e4m3",
		           (double)a.how.fill, cptx_type_name(a.type));
		return;
	}
	/* loads first, so that all are under way together; of a row in shared memory vector by vector, for its registers */
	const bool shared = r->opt.place == CPTX_ROW_SHARED;
	for (uint32_t i = 0; i < r->vectors; i++) {
		raw[i] = raw_of(k, at, &a, i);
		load_vector(k, at, &a, i, raw[i], fill);
		if (shared) {
			widen(k, at, a.type, raw[i], r->v);
			move_shared(k, at, r, i, false);
		}
	}
	for (uint32_t i = 0; !shared && i < r->vectors; i++)
		widen(k, at, a.type, raw[i], floats_of(r, i));
}

void cptx_row_store_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_val address, const cptx_row_access *how)
{
	row_access a;

	if (!begin_access(k, at, &a, r, "cptx_row_store", address, how))
		return;
	if (a.how.nc || a.how.unset || a.how.fill != 0) {
		cptx_fail_(k, at, "a store of a row with .%s, which is for loads", a.how.nc ? "nc" : a.how.unset ? "unset" : "fill");
		return;
	}
	for (uint32_t i = 0; i < r->vectors; i++) {
		extent e = extent_of(k, at, r, i);
		if (r->opt.place == CPTX_ROW_SHARED)
			move_shared(k, at, r, i, true);
		cptx_val raw = raw_of(k, at, &a, i);
		narrow(k, at, a.type, floats_of(r, i), raw);
		access_vector(k, at, &a, i, raw, &e, false, 0);
	}
}

/* ---- elements ---- */

bool cptx_row_each_(cptx_kernel *k, cptx_site at, const cptx_row *r, cptx_row_at *it, bool next)
{
	if (!IS_GIVEN_TO(k, at, it, "place in the row") || !is_made(k, at, r))
		return false;
	if (next && !KIT_IS_MADE(cptx_row_at, k, at, it))
		return false;
	const bool shared = r->opt.place == CPTX_ROW_SHARED;
	it->made = kit_made(k, KIT_cptx_row_at);
	it->i = next ? it->i + 1 : 0;
	if (shared && it->i && it->i % r->each == 0)
		move_shared(k, at, r, it->i / r->each - 1, false);
	if (it->i >= r->vectors * r->each)
		return false;
	if (shared && it->i % r->each == 0)
		move_shared(k, at, r, it->i / r->each, true);
	it->v = cptx_elem(r->v, shared ? it->i % r->each : it->i);
	it->column = it->i / r->each * r->opt.threads * r->each + it->i % r->each;
	return true;
}

cptx_val cptx_row_column_(cptx_kernel *k, cptx_site at, const cptx_row *r, const cptx_row_at *it)
{
	if (!is_made(k, at, r) || !KIT_IS_MADE(cptx_row_at, k, at, it))
		return (cptx_val){ 0 };
	return column_of(k, at, r, it->column);
}

cptx_val cptx_row_inside_(cptx_kernel *k, cptx_site at, const cptx_row *r, const cptx_row_at *it)
{
	if (!is_made(k, at, r) || !KIT_IS_MADE(cptx_row_at, k, at, it))
		return (cptx_val){ 0 };
	const uint32_t n = r->opt.n;
	if (n && is_none(r->shift) && (uint64_t)(it->i / r->each + 1) * r->opt.threads * r->each <= n)
		return (cptx_val){ 0 };
	cptx_val column = cptx_as(column_of(k, at, r, it->column), CPTX_U32);
	return CALL(setp, .a = column, .b = n ? cptx_imm(n) : cptx_as(r->opt.count, CPTX_U32), .cmp = CPTX_LT);
}
