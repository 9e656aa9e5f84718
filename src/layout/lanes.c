/* SPDX-License-Identifier: MIT */
/*
 * Code for addresses of lanes.  A lane's offset is a sum over the bits of its number, so bits whose values are in one
 * proportion become ((lane & mask) >> shift) * factor: an `and` and a `mad`.  The host tries each form of code first: a form
 * is used only if it gives every lane its address.
 */
#include "layout/layout.h"

#include <cptx/cptx.h>

enum { MOST_BITS = 10 /* a CTA has up to 1024 threads */ };

typedef struct group {
	uint32_t mask, shift, factor;
	uint32_t sum; /* sum of the values of the group's bits */
} group;

/* Puts bits whose values are in proportion into groups, in the order of their first bits; returns the number of groups.  A
 * product adds, so values that are to be exclusive-ored must not have bits in common within a group. */
static uint32_t make_groups(uint32_t bits, const uint32_t *value, bool add, group *g)
{
	uint32_t n = 0;

	for (uint32_t b = 0; b < bits; b++) {
		uint32_t v = value[b], shift = 0, i = 0;
		if (!v)
			continue;
		while (v % (1u << (b - shift)) != 0)
			shift++;
		v >>= b - shift;
		while (i < n && !(g[i].shift == shift && g[i].factor == v && (add || !(g[i].sum & value[b]))))
			i++;
		if (i == n)
			g[n++] = (group){ .shift = shift, .factor = v };
		g[i].mask |= 1u << b, g[i].sum |= value[b];
	}
	return n;
}

/* Emits (lane & mask) >> shift, without operations that change nothing for a lane below 2^bits. */
static cptx_val field(cptx_kernel *k, cptx_site at, const group *g, cptx_val lane, uint32_t bits)
{
	uint32_t all = (1u << bits) - 1;

	if (g->mask != (all & ~((1u << g->shift) - 1)))
		lane = CALL(and, .a = lane, .b = cptx_imm(g->mask));
	return g->shift ? CALL(shr, .a = lane, .b = cptx_imm(g->shift)) : lane;
}

cptx_val cptx_lane_bits_(cptx_kernel *k, cptx_site at, cptx_val lane, uint32_t bits, const uint32_t *value, bool add,
                         cptx_val base)
{
	group g[MOST_BITS];
	uint32_t used = 0;

	if (bits > MOST_BITS)
		return cptx_fail_(k, at, "%u bits of a lane number; there are at most %d", bits, MOST_BITS);
	if (bits && !IS_GIVEN_TO(k, at, value, "list of values"))
		return (cptx_val){ 0 };
	uint32_t n = make_groups(bits, value, add, g);
	bool based = base.kind != CPTX_VAL_NONE;
	cptx_val sum = base;
	for (uint32_t i = 0; i < n; i++) {
		cptx_val f = field(k, at, &g[i], lane, bits), factor = cptx_imm(g[i].factor);
		bool apart = add || !(used & g[i].sum), one = g[i].factor == 1;
		if (!based && !used)
			sum = one ? f : CALL(mul, .a = f, .b = factor, .mode = CPTX_LO);
		else if (apart)
			sum = one ? CALL(add, .a = f, .b = sum) : CALL(mad, .a = f, .b = factor, .c = sum, .mode = CPTX_LO);
		else
			sum = CALL(xor, .a = sum, .b = one ? f : CALL(mul, .a = f, .b = factor, .mode = CPTX_LO));
		used |= g[i].sum;
	}
	return used || based ? sum : CALL(mov, .a = cptx_imm(0), .type = CPTX_U32);
}

cptx_val cptx_frag_lane_(cptx_kernel *k, cptx_site at, const cptx_frag_map *map, cptx_val lane, bool column)
{
	uint32_t value[MOST_BITS], bits = 0;

	if (!layout_is_map(map))
		return cptx_fail_(k, at, "a fragment that cptx_frag_resolve did not make");
	while (bits < MOST_BITS && 1u << bits < map->lanes) {
		value[bits] = column ? map->lane[bits].col : map->lane[bits].row;
		bits++;
	}
	return cptx_lane_bits_(k, at, lane, bits, value, true, (cptx_val){ 0 });
}

/* ---- lines ---- */

/* Computes the value of each bit of the lane number, relative to lane 0; returns whether the offset of every lane is the
 * sum, or the exclusive or, of its bits' values. */
static bool values_of(const cptx_lines *l, uint32_t bits, uint32_t *value, bool add)
{
	uint32_t first = lines_place(l, 0, 0);
	bool ok = true;

	for (uint32_t b = 0; b < bits; b++) {
		uint32_t at = lines_place(l, 0, 1u << b);
		value[b] = add ? at - first : at ^ first;
		ok &= !add || at >= first;
	}
	for (uint32_t lane = 0; ok && lane < 1u << bits; lane++) {
		uint32_t sum = first;
		for (uint32_t b = 0; b < bits; b++)
			if (lane >> b & 1)
				sum = add ? sum + value[b] : sum ^ value[b];
		ok = sum == lines_place(l, 0, lane);
	}
	return ok;
}

static bool is_made(cptx_kernel *k, cptx_site at, const cptx_lines *l)
{
	if (!layout_is_lines(l))
		cptx_fail_(k, at, "lines that cptx_tile_lines did not make");
	return layout_is_lines(l);
}

bool cptx_lane_lines_begin_(cptx_kernel *k, cptx_site at, cptx_lane_lines *a, const cptx_lines *l, cptx_val lane,
                            cptx_val start)
{
	uint32_t value[MOST_BITS] = { 0 }, bits = 0, all = 0;
	bool add;

	if (!IS_GIVEN_TO(k, at, a, "result"))
		return false;
	*a = (cptx_lane_lines){ .lines = l };
	if (!is_made(k, at, l))
		return false;
	uint32_t first = lines_place(l, 0, 0);
	while (1u << bits < l->map.lanes)
		bits++;
	add = values_of(l, bits, value, true);
	if (!add && !values_of(l, bits, value, false)) {
		cptx_fail_(k, at,
		           "lines of a tile with pitch %u and swizzle %s have no short form; take a pitch that is a power of two",
		           l->tile.pitch, cptx_swizzle_get(l->tile.swizzle)->name);
		return false;
	}
	for (uint32_t b = 0; b < bits; b++)
		all |= value[b];
	if (start.kind != CPTX_VAL_REG)
		start = CALL(mov, .a = start, .type = CPTX_U32);
	cptx_val address = cptx_lane_bits_(k, at, lane, bits, value, add, start);
	if (!add && (all & first)) { /* otherwise lane 0's offset is a constant behind the address */
		uint32_t flip = l->tile.swizzle ? first % cptx_swizzle_get(l->tile.swizzle)->repeat
		                                : first; /* the start of the tile may have address bits above the pattern */
		address = CALL(xor, .a = address, .b = cptx_imm(flip));
		first -= flip;
	}
	address = cptx_offset(address, first);
	a->count = 1, a->address[0] = address;
	return address.kind == CPTX_VAL_REG;
}

static bool is_begun(cptx_kernel *k, cptx_site at, const cptx_lane_lines *a)
{
	bool ok = a && a->count && a->count <= ARRAY_LEN(a->flip) && layout_is_lines(a->lines);

	if (!ok) /* if cptx_lane_lines_begin failed, the module has its error already */
		cptx_fail_(k, at, "lines that cptx_lane_lines_begin did not begin");
	return ok;
}

/* Whether address(here) = (address(first) ^ flip) + *add for all lanes; computes *add. */
static bool follows(const cptx_lines *first, const cptx_lines *here, uint32_t i, uint32_t flip, int32_t *add)
{
	uint32_t constant = lines_place(here, i, 0) - (lines_place(first, 0, 0) ^ flip);
	bool ok = true;

	for (uint32_t lane = 1; ok && lane < first->map.lanes; lane++)
		ok = (lines_place(first, 0, lane) ^ flip) + constant == lines_place(here, i, lane);
	*add = (int32_t)constant;
	return ok;
}

cptx_val cptx_lane_lines_at_(cptx_kernel *k, cptx_site at, cptx_lane_lines *a, uint32_t i, uint32_t rows, uint32_t cols)
{
	cptx_lines here;
	int32_t add = 0;

	if (!is_begun(k, at, a))
		return (cptx_val){ 0 };
	const cptx_lines *l = a->lines;
	uint32_t right = l->transposed ? l->map.cols : l->map.rows, below = l->transposed ? l->map.rows : l->map.cols;
	if (i >= l->count || l->row + rows + right > l->tile.rows || l->col + cols + below > l->tile.cols)
		return cptx_fail_(k, at, "lines %u, %u rows and %u columns further on: outside of the tile of %ux%u, or of %u lines",
		                  i, rows, cols, l->tile.rows, l->tile.cols, l->count);
	here = *l;
	here.row += rows, here.col += cols;
	for (uint32_t j = 0; j < a->count; j++)
		if (follows(l, &here, i, a->flip[j], &add))
			return cptx_offset(a->address[j], add);
	/* the constant offset of the register has bits that the register itself has not: those are flipped in the constant */
	uint32_t flip = lines_place(&here, i, 0) ^ lines_place(l, 0, 0), behind = (uint32_t)a->address[0].offset;
	if (l->tile.swizzle)
		flip %= cptx_swizzle_get(l->tile.swizzle)->repeat;
	if (a->count == ARRAY_LEN(a->flip) || !follows(l, &here, i, flip, &add))
		return cptx_fail_(k, at, "no short form for lines %u, %u rows and %u columns further on; begin anew there", i, rows,
		                  cols);
	cptx_val base = a->address[0];
	base.offset = 0;
	base = CALL(xor, .a = base, .b = cptx_imm(flip & ~behind));
	a->flip[a->count] = flip;
	a->address[a->count] = cptx_offset(base, behind & ~flip);
	return cptx_offset(a->address[a->count++], add);
}

cptx_lane_lines cptx_lane_lines_moved_(cptx_kernel *k, cptx_site at, const cptx_lane_lines *l, cptx_val by)
{
	cptx_lane_lines moved = { .count = 0 };

	if (!is_begun(k, at, l))
		return moved;
	moved = *l;
	for (uint32_t j = 0; j < l->count; j++) {
		cptx_val from = l->address[j];
		int32_t behind = from.offset;
		from.offset = 0;
		moved.address[j] = cptx_offset(CALL(add, .a = from, .b = by), behind);
	}
	return moved;
}

void cptx_lines_move_(cptx_kernel *k, cptx_site at, const cptx_lines *l, uint32_t i, cptx_val address, cptx_val frag,
                      bool store)
{
	if (!is_made(k, at, l))
		return;
	uint16_t num = l->num == 4 ? CPTX_X4 : l->num == 2 ? CPTX_X2 : CPTX_X1;
	cptx_val regs = cptx_slice(frag, i * l->num, l->num);

	if (store)
		CALL(stmatrix, .a = address, .b = regs, .num = num, .trans = l->trans, .space = CPTX_SHARED);
	else
		CALL(ldmatrix, .a = address, .into = regs, .num = num, .trans = l->trans, .space = CPTX_SHARED);
}

/* ---- descriptors ---- */

cptx_val cptx_tile_word_(cptx_kernel *k, cptx_site at, const cptx_tile *tile, enum cptx_desc_arch arch, cptx_val start)
{
	cptx_smem_desc d;
	uint64_t word = 0;
	cptx_error err = { .code = CPTX_OK };

	if (!cptx_tile_desc(tile, arch, 0, 0, 0, &d, &err) || !cptx_smem_desc_encode(&d, &word, &err))
		return cptx_fail_(k, at, "%s", err.text);
	if (start.kind != CPTX_VAL_REG)
		start = CALL(mov, .a = start, .type = CPTX_U32);
	/* an address in the window of another CTA has bits above the 18 that a descriptor takes */
	cptx_val units = CALL(bfe, .a = start, .b = cptx_imm(4), .c = cptx_imm(14), .type = CPTX_U32);
	return cptx_as(CALL(or, .a = CALL(cvt, .a = units, .dtype = CPTX_U64), .b = cptx_imm((int64_t)word), .type = CPTX_B64),
	               CPTX_U64);
}

uint32_t cptx_tile_word_step(const cptx_tile *tile, uint32_t row, uint32_t col)
{
	cptx_smem_desc d;

	return cptx_tile_desc(tile, CPTX_DESC_TCGEN05, 0, row, col, &d, NULL) ? cptx_tile_word_bytes(d.start) : UINT32_MAX;
}
