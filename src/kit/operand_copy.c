/* SPDX-License-Identifier: MIT */
/*
 * Operands that threads copy: each 16 bytes at once, from a row of global memory to their swizzled place.
 *
 * "Rows" here are those of the contiguous dimension (mn_major: columns of the tile).  They are cut into groups of up to
 * eight chunks of 16 bytes, a power of two, which as many neighbouring threads copy.  The threads cover row_step rows of a
 * group, or, where these are more than the tile has, all rows of several groups (group_step).  From turn to turn a thread
 * goes on by constant numbers of rows and groups, so its address in global memory needs one addition per row, and its place
 * in shared memory is a constant away, as long as the distance is a multiple of what the swizzle repeats after.  For each
 * distance that is not, there is another register `to`.  With .clamp the rows of a thread are where registers of the source
 * say (offsets), so that a copy needs no predicate of its own.
 */
#include "kit/operand.h"

#include <cptx/cptx.h>

enum { CHUNK = 16, MOST_GROUP = 8 };

/* A tile as its rows and groups. */
typedef struct geometry {
	uint32_t rows, groups;
	uint32_t group;                         /* chunks of a group */
	uint32_t in_span;                       /* chunks of these that lie behind one another */
	uint32_t row_bytes, span_bytes, repeat; /* from row to row, from span to span; what the swizzle repeats after */
} geometry;

static uint32_t along_of(const cptx_tile *t) { return t->elem.mn_major ? t->rows : t->cols; }
static uint32_t line_bytes(const cptx_tile *t) { return along_of(t) * t->elem.bits / 8; }

static geometry geometry_of(const cptx_tile *t)
{
	const cptx_swizzle_info *w = cptx_swizzle_get(t->swizzle);
	const uint32_t chunks = line_bytes(t) / CHUNK;
	geometry g = { .rows = t->elem.mn_major ? t->cols : t->rows, .repeat = t->swizzle ? w->repeat : CHUNK };

	g.group = MIN(chunks & (~chunks + 1), (uint32_t)MOST_GROUP);
	g.groups = chunks / g.group;
	g.in_span = t->pitch ? g.group : w->span / CHUNK;
	g.row_bytes = t->pitch ? t->pitch : w->span;
	g.span_bytes = t->pitch ? g.group * CHUNK : g.rows * w->span;
	return g;
}

/* Bytes from group to group in shared memory. */
static uint32_t group_bytes(const geometry *g) { return g->group / g->in_span * g->span_bytes; }

static uint32_t unit_of(const cptx_operand_opt *o)
{
	return o->align ? o->align : o->by == CPTX_OPERAND_CP_ASYNC ? CHUNK : MAX(o->tile.elem.bits / 8u, 1u);
}

/* ---- the description ---- */

static bool is_unit(const cptx_operand_opt *o)
{
	const uint32_t u = unit_of(o);

	return u && !(u & (u - 1)) && u <= CHUNK && (o->by == CPTX_OPERAND_LDST || u >= 4) && u * 8 >= o->tile.elem.bits;
}

static bool check_tile(cptx_kernel *k, cptx_site at, const cptx_operand_opt *o)
{
	const cptx_tile *t = &o->tile;

	if (t->elem.padded || t->elem.bits == 6)
		cptx_fail_(k, at, "operand: padded elements of %u bits; only TMA pads them", t->elem.bits);
	else if (t->elem.bits >= 8 && cptx_type_bits(o->type) != t->elem.bits)
		cptx_fail_(k, at, "operand: elements of type .%s in a tile of %u bits", cptx_type_name(o->type), t->elem.bits);
	else if (t->swizzle == CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B)
		cptx_fail_(k, at, "operand: swizzle %s; only TMA writes it", cptx_swizzle_get(t->swizzle)->name);
	else if (line_bytes(t) % CHUNK || t->pitch % CHUNK)
		cptx_fail_(k, at, "operand: rows of %u bytes, %u apart; both are multiples of %d, which a thread copies at once",
		           line_bytes(t), t->pitch ? t->pitch : line_bytes(t), CHUNK);
	else
		return true;
	return false;
}

static bool check_source(cptx_kernel *k, cptx_site at, const cptx_operand_opt *o)
{
	const cptx_val extent = o->tile.elem.mn_major ? o->rows : o->cols;

	if (!is_unit(o))
		cptx_fail_(k, at, "operand: .align = %u for elements of %u bits; it is a power of two, from %s to 16", unit_of(o),
		           o->tile.elem.bits, o->by == CPTX_OPERAND_CP_ASYNC ? "4 (cp.async)" : "an element's bytes");
	else if (o->address.kind != CPTX_VAL_REG)
		cptx_fail_(k, at, "operand: no matrix: say .address, the .u64 global address of one");
	else if (is_none(o->pitch) && is_none(extent))
		cptx_fail_(k, at, "operand: neither .pitch nor .%s, of which a dense matrix's pitch is made",
		           o->tile.elem.mn_major ? "rows" : "cols");
	else if (is_constant(o->pitch) && (o->pitch.i < 0 || o->pitch.i % unit_of(o)))
		cptx_fail_(k, at, "operand: .pitch = %lld; it is a multiple of the %u bytes that are read at once",
		           (long long)o->pitch.i, unit_of(o));
	else if (o->clamp && is_none(o->tile.elem.mn_major ? o->cols : o->rows))
		cptx_fail_(k, at, "operand: .clamp without .%s, the number of those that there are",
		           o->tile.elem.mn_major ? "cols" : "rows");
	else if (!is_none(o->gather) && (!o->clamp || o->tile.elem.mn_major))
		cptx_fail_(k, at, "operand: .gather without .clamp, or of rows that are not contiguous; it is for rows with .clamp");
	else if (o->whole && (o->by != CPTX_OPERAND_CP_ASYNC || unit_of(o) != CHUNK))
		cptx_fail_(k, at, "operand: .whole is for cp.async of 16 bytes; here %s",
		           o->by == CPTX_OPERAND_CP_ASYNC ? ".align is less" : "threads load");
	else if (!o->threads || o->threads > CPTX_THREADS_PER_CTA || o->threads % MOST_GROUP)
		cptx_fail_(k, at, "operand: .threads = %u that copy together; 8 to %d, a multiple of 8", o->threads,
		           CPTX_THREADS_PER_CTA);
	else
		return KIT_THREADS("cptx_operand_new", o) && KIT_OPTION("cptx_operand_new", o, gather, KIT_U64 | KIT_NONE);
	return false;
}

/* How often a thread goes on along rows and groups. */
static cptx_operand turns_of(const cptx_operand_opt *o)
{
	const geometry g = geometry_of(&o->tile);
	const uint32_t at_once = o->threads / g.group;
	const bool several = g.groups > 1 && at_once > g.rows && at_once % g.rows == 0;
	cptx_operand op = { .row_step = several ? g.rows : at_once, .span_step = several ? at_once / g.rows : 1 };

	op.row_turns = (g.rows + op.row_step - 1) / op.row_step;
	op.span_turns = (g.groups + op.span_step - 1) / op.span_step;
	op.copies = op.row_turns * op.span_turns;
	return op;
}

bool operand_check_threads(cptx_kernel *k, cptx_site at, const cptx_operand_opt *o)
{
	if (!check_tile(k, at, o) || !check_source(k, at, o))
		return false;
	const uint32_t copies = turns_of(o).copies;
	if (copies > CPTX_OPERAND_COPIES)
		cptx_fail_(k, at, "operand: %u threads copy %u times 16 bytes each; at most %d: take more threads or a smaller tile",
		           o->threads, copies, CPTX_OPERAND_COPIES);
	return copies <= CPTX_OPERAND_COPIES;
}

/* ---- arithmetic ---- */

static cptx_val wide(cptx_kernel *k, cptx_site at, cptx_val v)
{
	return cptx_type_bits((enum cptx_type)v.type) == 64 ? v : CALL(cvt, .a = as_u32(v), .dtype = CPTX_U64);
}

/* base + v * pitch, of 64 bits */
static cptx_val plus_pitches(cptx_kernel *k, cptx_site at, cptx_val base, cptx_val v, cptx_val pitch)
{
	if (is_constant(v) && is_constant(pitch))
		return CALL(add, .a = base, .b = cptx_imm(v.i * pitch.i));
	if (is_constant(pitch))
		return CALL(mad_wide, .a = as_u32(v), .b = pitch, .c = base);
	if (cptx_type_bits((enum cptx_type)pitch.type) == 64)
		return CALL(mad, .a = pitch, .b = is_constant(v) ? v : wide(k, at, v), .c = base, .mode = CPTX_LO);
	return CALL(mad_wide, .a = as_u32(pitch), .b = is_constant(v) ? v : as_u32(v), .c = base);
}

/* Bytes of n elements, .u32. */
static cptx_val bytes_of(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val n)
{
	const uint32_t bits = op->opt.tile.elem.bits;

	if (is_constant(n))
		return cptx_imm(n.i * bits / 8);
	if (bits >= 8)
		return bits == 8 ? as_u32(n) : CALL(mul, .a = as_u32(n), .b = cptx_imm(bits / 8), .mode = CPTX_LO);
	return CALL(shr, .a = as_u32(n), .b = cptx_imm(bits == 4 ? 1 : 3));
}

/* a - b, .s32 */
static cptx_val minus(cptx_kernel *k, cptx_site at, cptx_val a, cptx_val b)
{
	return CALL(sub, .a = as_s32(a), .b = as_s32(b), .type = CPTX_S32);
}

/* ---- what all copies share ---- */

static cptx_val swizzled(cptx_kernel *k, cptx_site at, const cptx_tile *t, cptx_val offset)
{
	const cptx_swizzle_info *w = cptx_swizzle_get(t->swizzle);

	if (!t->swizzle)
		return offset;
	cptx_val bits = CALL(and, .a = CALL(shr, .a = offset, .b = cptx_imm(w->from - w->to)), .b = cptx_imm(w->mask << w->to));
	return CALL(xor, .a = offset, .b = bits);
}

/* Bytes in shared memory from a thread's first copy to that of a turn along rows and a turn along spans, before swizzling.
 */
static uint32_t distance(const cptx_operand *op, const geometry *g, uint32_t turn, uint32_t span)
{
	return turn * op->row_step * g->row_bytes + span * op->span_step * group_bytes(g);
}

/* Which register of op->to has addresses at that distance from the first copy; op->places: none has. */
static uint32_t place_of(const cptx_operand *op, const geometry *g, uint32_t far)
{
	uint32_t i = 0;

	while (i < op->places && op->residue[i] != far % g->repeat)
		i++;
	return i;
}

/* Makes a register op->to for each distance that a swizzle treats alike; first: where the thread's first chunk would be
 * without a swizzle. */
static bool begin_places(cptx_kernel *k, cptx_site at, cptx_operand *op, const geometry *g, cptx_val first)
{
	for (uint32_t n = 0; n < op->copies; n++) {
		const uint32_t far = distance(op, g, n / op->span_turns, n % op->span_turns), residue = far % g->repeat;
		const uint32_t i = place_of(op, g, far);
		if (i < op->places)
			continue;
		if (i == CPTX_OPERAND_PLACES) {
			cptx_fail_(k, at,
			           "operand: %u threads have more than %d different places in a swizzled tile of %ux%u; take a multiple "
			           "of 64 threads",
			           op->opt.threads, CPTX_OPERAND_PLACES, op->opt.tile.rows, op->opt.tile.cols);
			op->places = 0;
			return false;
		}
		cptx_val there = swizzled(k, at, &op->opt.tile, residue ? CALL(add, .a = first, .b = cptx_imm(residue)) : first);
		op->residue[i] = residue;
		op->to[i] = CALL(add, .a = op->smem, .b = there);
		op->places++;
	}
	return true;
}

/* The pitch as given, or that of a dense matrix. */
static cptx_val pitch_of(cptx_kernel *k, cptx_site at, const cptx_operand *op)
{
	const cptx_val given = op->opt.pitch;

	if (is_none(given))
		return bytes_of(k, at, op, op->opt.tile.elem.mn_major ? op->opt.rows : op->opt.cols);
	if (is_constant(given) && given.i > UINT32_MAX)
		return CALL(mov, .a = given, .type = CPTX_U64);
	return given;
}

/* The threads' numbers in rows, groups and chunks. */
static void begin_thread(cptx_kernel *k, cptx_site at, cptx_operand *op, const geometry *g, cptx_val *first)
{
	const cptx_val tid = as_u32(op->opt.thread);
	const bool several = op->span_step > 1;
	cptx_val chunk = CALL(and, .a = tid, .b = cptx_imm(g->group - 1));
	cptx_val line = g->group > 1 ? CALL(div, .a = tid, .b = cptx_imm(g->group)) : tid, of = line, group = { 0 };
	cptx_val byte = CALL(mul, .a = chunk, .b = cptx_imm(CHUNK), .mode = CPTX_LO), in = byte;

	if (several) {
		of = CALL(rem, .a = line, .b = cptx_imm(g->rows));
		group = CALL(div, .a = line, .b = cptx_imm(g->rows));
		byte = CALL(mad, .a = group, .b = cptx_imm(g->group * CHUNK), .c = byte, .mode = CPTX_LO);
	}
	if (g->in_span < g->group) { /* neighbouring chunks lie in several spans */
		cptx_val span = CALL(div, .a = chunk, .b = cptx_imm(g->in_span));
		in = CALL(and, .a = in, .b = cptx_imm(g->in_span * CHUNK - 1));
		in = CALL(mad, .a = span, .b = cptx_imm(g->span_bytes), .c = in, .mode = CPTX_LO);
	}
	if (several)
		in = CALL(mad, .a = group, .b = cptx_imm(group_bytes(g)), .c = in, .mode = CPTX_LO);
	*first = CALL(mad, .a = of, .b = cptx_imm(g->row_bytes), .c = in, .mode = CPTX_LO);
	op->row = as_s32(of), op->byte = as_s32(byte);
	const uint32_t some = several ? g->groups % op->span_step : g->rows % op->row_step;
	if (some)
		op->last = CALL(setp, .a = several ? group : of, .b = cptx_imm(some), .cmp = CPTX_LT);
}

/* The address of the thread's first chunk of a matrix; with .clamp that of the matrix, for rows are found for each source.
 */
static cptx_val from_of(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val address)
{
	if (op->opt.clamp)
		return CALL(mov, .a = address);
	return CALL(add, .a = plus_pitches(k, at, address, as_u32(op->row), op->opt.pitch), .b = wide(k, at, op->byte));
}

static cptx_val step_of(cptx_kernel *k, cptx_site at, const cptx_operand *op)
{
	const cptx_val zero = CALL(mov, .a = cptx_imm(0), .type = CPTX_U64);

	return plus_pitches(k, at, zero, cptx_imm(op->row_step), op->opt.pitch);
}

void operand_begin_threads(cptx_kernel *k, cptx_site at, cptx_operand *op)
{
	const geometry g = geometry_of(&op->opt.tile);
	const cptx_operand turns = turns_of(&op->opt);
	cptx_val first;

	op->row_step = turns.row_step, op->span_step = turns.span_step;
	op->row_turns = turns.row_turns, op->span_turns = turns.span_turns, op->copies = turns.copies;
	op->opt.align = unit_of(&op->opt);
	if (is_none(op->opt.thread))
		op->opt.thread = cptx_tid_x(k);
	begin_thread(k, at, op, &g, &first);
	if (!begin_places(k, at, op, &g, first))
		return;
	op->dense = is_none(op->opt.pitch);
	op->opt.pitch = pitch_of(k, at, op);
	op->from = from_of(k, at, op, op->opt.address);
	op->step = is_constant(op->opt.pitch)            ? cptx_imm(op->opt.pitch.i * op->row_step)
	           : op->row_turns > 1 && !op->opt.clamp ? step_of(k, at, op)
	                                                 : (cptx_val){ 0 };
}

void operand_rebase_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val address)
{
	const cptx_val extent = op->opt.tile.elem.mn_major ? op->opt.rows : op->opt.cols;

	if (op->dense && op->opt.pitch.kind == CPTX_VAL_REG) {
		cptx_val pitch = bytes_of(k, at, op, extent);
		CALL(mov, .a = pitch, .into = op->opt.pitch);
	}
	cptx_val from = from_of(k, at, op, address);
	CALL(mov, .a = from, .into = op->from);
	if (op->step.kind == CPTX_VAL_REG) {
		cptx_val step = step_of(k, at, op);
		CALL(mov, .a = step, .into = op->step);
	}
}

/* ---- sources ---- */

/* Row r of the matrix in place of row r of a tile, both .u32. */
static cptx_val gathered(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val row)
{
	const cptx_val from = CALL(mad_wide, .a = row, .b = cptx_imm(4), .c = op->opt.gather);

	return CALL(ld, .a = from, .space = CPTX_GLOBAL, .type = CPTX_U32);
}

/* With .clamp: bytes from row `other` of the matrix (with .gather from row 0) to the thread's chunk of each of its rows, or
 * of the last of all. */
static cptx_val clamped_offsets(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val lines, cptx_val other,
                                cptx_val pitch)
{
	const cptx_val last = CALL(add, .a = minus(k, at, lines, other), .b = cptx_imm(-1));
	const bool gathers = !is_none(op->opt.gather);
	const cptx_val low = is_constant(pitch) || cptx_type_bits((enum cptx_type)pitch.type) == 32
	                         ? as_u32(pitch)
	                         : CALL(cvt, .a = pitch, .dtype = CPTX_U32);
	const cptx_val offsets = cptx_regs_(k, at, CPTX_U32, op->row_turns);

	for (uint32_t turn = 0; turn < op->row_turns; turn++) {
		cptx_val row = turn ? CALL(add, .a = op->row, .b = cptx_imm(turn * op->row_step)) : op->row;
		row = CALL(min, .a = row, .b = last);
		if (gathers)
			row = gathered(k, at, op, as_u32(CALL(add, .a = row, .b = as_s32(other))));
		CALL(mad, .a = as_u32(row), .b = low, .c = as_u32(op->byte), .mode = CPTX_LO, .into = cptx_elem(offsets, turn));
	}
	return offsets;
}

cptx_operand_src operand_source_of_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val row, cptx_val col)
{
	const cptx_operand_opt *o = &op->opt;
	const bool mn_major = o->tile.elem.mn_major;
	const cptx_val along = mn_major ? row : col, other = mn_major ? col : row;
	const cptx_val all = mn_major ? o->rows : o->cols, lines = mn_major ? o->cols : o->rows;
	/* with .clamp a source is sought for a tile, and its pitch made anew for it, so that no register keeps it meanwhile */
	const cptx_val pitch = o->clamp && op->dense ? bytes_of(k, at, op, all) : o->pitch;
	cptx_operand_src src = { .made = kit_made(k, KIT_cptx_operand_src),
		                     .from = is_none(o->gather) ? plus_pitches(k, at, op->from, other, pitch) : op->from,
		                     .of = op->smem };
	cptx_val bytes = bytes_of(k, at, op, along);

	if (!is_constant(bytes))
		bytes = wide(k, at, bytes);
	src.from = CALL(add, .a = src.from, .b = bytes);
	if (o->clamp)
		src.offsets = clamped_offsets(k, at, op, lines, other, pitch);
	else if (!is_none(lines))
		src.rows = minus(k, at, minus(k, at, lines, other), op->row);
	if (!is_none(all)) {
		cptx_val left = minus(k, at, all, along);
		src.bytes = minus(k, at, bytes_of(k, at, op, left), op->byte);
	}
	return src;
}

void operand_advance_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_operand_src *src, uint32_t rows,
                             uint32_t cols)
{
	const bool mn_major = op->opt.tile.elem.mn_major;
	const uint32_t along = mn_major ? rows : cols, other = mn_major ? cols : rows;
	const cptx_val bytes = bytes_of(k, at, op, cptx_imm(along));

	if (other && op->opt.clamp) {
		cptx_fail_(k, at, "%u %s further in an operand with .clamp: its next tile is sought (cptx_operand_seek)", other,
		           mn_major ? "columns" : "rows");
		return;
	}
	if (other) {
		cptx_val there = plus_pitches(k, at, src->from, cptx_imm(other), op->opt.pitch);
		CALL(mov, .a = there, .into = src->from);
		if (!is_none(src->rows))
			CALL(sub, .a = src->rows, .b = cptx_imm(other), .into = src->rows);
	}
	if (along) {
		CALL(add, .a = src->from, .b = bytes, .into = src->from);
		if (!is_none(src->bytes))
			CALL(sub, .a = src->bytes, .b = bytes, .into = src->bytes);
	}
}

/* ---- copies ---- */

/* One load, and what its copies share once one of them needs it. */
typedef struct copying {
	const cptx_operand *op;
	const cptx_operand_src *src;
	const cptx_operand_load_opt *o;
	geometry g;
	cptx_val stage;                     /* what is added to `to`: a constant, or NONE: `to` has it */
	cptx_val to[CPTX_OPERAND_PLACES];   /* with the stage */
	cptx_val row_ok, from;              /* of this turn: predicate, or NONE; address */
	cptx_val left[CPTX_OPERAND_COPIES]; /* bytes of a span turn, clamped to 0 ... 16; whole: are there some? */
} copying;

/* min(max(v - off, 0), most) */
static cptx_val clamped(cptx_kernel *k, cptx_site at, cptx_val v, uint32_t off, uint32_t most)
{
	if (off)
		v = CALL(sub, .a = v, .b = cptx_imm(off));
	return CALL(min, .a = CALL(max, .a = v, .b = cptx_imm(0)), .b = cptx_imm(most));
}

/* Bytes of a copy of a span turn with opt.whole: 16 or 0; NONE: all copies are inside of the matrix. */
static cptx_val whole_size_of(cptx_kernel *k, cptx_site at, copying *c, uint32_t span)
{
	cptx_val ok = c->row_ok;

	if (!is_none(c->src->bytes)) {
		if (is_none(c->left[span]))
			c->left[span] =
				CALL(setp, .a = c->src->bytes, .b = cptx_imm(span * c->op->span_step * c->g.group * CHUNK), .cmp = CPTX_GT);
		ok = is_none(ok) ? c->left[span] : CALL(and, .a = ok, .b = c->left[span], .type = CPTX_PRED);
	}
	return is_none(ok) ? ok : CALL(selp, .a = cptx_imm(CHUNK), .b = cptx_imm(0), .c = ok, .type = CPTX_S32);
}

/* Bytes of a copy of a span turn that lie inside of the matrix; NONE: all 16 of each do. */
static cptx_val size_of(cptx_kernel *k, cptx_site at, copying *c, uint32_t span)
{
	if (c->op->opt.whole)
		return whole_size_of(k, at, c, span);
	if (!is_none(c->src->bytes) && is_none(c->left[span]))
		c->left[span] = clamped(k, at, c->src->bytes, span * c->op->span_step * c->g.group * CHUNK, CHUNK);
	if (is_none(c->row_ok))
		return c->left[span];
	return CALL(selp, .a = is_none(c->src->bytes) ? cptx_imm(CHUNK) : c->left[span], .b = cptx_imm(0), .c = c->row_ok,
	            .type = CPTX_S32);
}

static cptx_val place(cptx_kernel *k, cptx_site at, copying *c, uint32_t far)
{
	const uint32_t i = place_of(c->op, &c->g, far);

	if (i == c->op->places)
		return cptx_fail_(k, at, "an operand that cptx_operand_new did not make");
	if (is_none(c->to[i]) && !is_none(c->o->at))
		c->to[i] = CALL(add, .a = c->op->to[i], .b = as_u32(c->o->at));
	else if (is_none(c->to[i]))
		c->to[i] = is_constant(c->stage)
		               ? cptx_offset(c->op->to[i], c->stage.i * c->op->apart)
		               : CALL(mad, .a = as_u32(c->stage), .b = cptx_imm(c->op->apart), .c = c->op->to[i], .mode = CPTX_LO);
	return cptx_offset(c->to[i], (int64_t)far - c->op->residue[i]);
}

/* The predicate of a copy: the user's .when, and of a last copy that the thread has one; NONE: it is always made. */
static cptx_val guard_of(cptx_kernel *k, cptx_site at, const copying *c, bool is_last)
{
	const cptx_val last = is_last ? c->op->last : (cptx_val){ 0 };

	if (is_none(last) || is_none(c->o->when))
		return is_none(last) ? c->o->when : last;
	return CALL(and, .a = c->o->when, .b = last, .type = CPTX_PRED);
}

static void copy_async(cptx_kernel *k, cptx_site at, const copying *c, cptx_val to, cptx_val from, cptx_val size,
                       cptx_val when)
{
	const uint32_t unit = c->op->opt.align;
	const cptx_val policy = c->o->policy;

	for (uint32_t u = 0; u < CHUNK; u += unit) {
		cptx_val part = is_none(size) || unit == CHUNK ? size : clamped(k, at, size, u, unit);
		CALL(cp_async, .s = cptx_offset(to, u), .a = cptx_offset(from, u), .size = cptx_imm(unit), .src_size = as_u32(part),
		     .cop = unit == CHUNK ? CPTX_CG : CPTX_CA, .l2 = CPTX_L2_128B, .policy = policy,
		     .l2hint = is_none(policy) ? 0 : CPTX_L2_CACHE_HINT, .when = when);
	}
}

/* n units of `unit` bytes from `from` on in registers of 32 bits, zeros where `size` ends. */
static void load_units(cptx_kernel *k, cptx_site at, cptx_val from, uint32_t unit, cptx_val size, cptx_val word[CHUNK])
{
	static const uint16_t type[] = { 0, CPTX_U8, CPTX_U16, 0, CPTX_B32 };
	const uint32_t words = MAX(unit / 4, 1u), each = MIN(unit, 4u);

	for (uint32_t u = 0; u < CHUNK / unit; u++) {
		cptx_val inside = { 0 }, v = cptx_regs_(k, at, CPTX_B32, words);
		for (uint32_t w = 0; w < words; w++)
			word[u * words + w] = cptx_elem(v, w);
		if (!is_none(size)) {
			inside = CALL(setp, .a = size, .b = cptx_imm(u * unit), .cmp = CPTX_GT);
			for (uint32_t w = 0; w < words; w++)
				CALL(mov, .a = cptx_imm(0), .into = cptx_elem(v, w));
		}
		CALL(ld, .a = cptx_offset(from, u * unit), .space = CPTX_GLOBAL, .type = type[each],
		     .vec = words == 4   ? CPTX_V4
		            : words == 2 ? CPTX_V2
		                         : 0,
		     .into = words > 1 ? v : word[u], .when = inside);
	}
}

static void copy_by_registers(cptx_kernel *k, cptx_site at, const copying *c, cptx_val to, cptx_val from, cptx_val size)
{
	const uint32_t unit = c->op->opt.align;
	cptx_val word[CHUNK];

	load_units(k, at, from, unit, size, word);
	for (uint32_t n = CHUNK / unit, bits = 8 * unit; bits < 32; bits *= 2, n /= 2) /* two become one */
		for (uint32_t i = 0; i < n / 2; i++)
			word[i] = CALL(mad, .a = as_u32(word[2 * i + 1]), .b = cptx_imm(INT64_C(1) << bits), .c = as_u32(word[2 * i]),
			               .mode = CPTX_LO);
	for (uint32_t i = 0; i < 4; i++)
		word[i] = cptx_as(word[i], CPTX_B32);
	CALL(st, .a = to, .b = cptx_pack_(k, at, word, 4), .space = CPTX_SHARED, .type = CPTX_B32, .vec = CPTX_V4);
}

static void copy_one(cptx_kernel *k, cptx_site at, copying *c, uint32_t turn, uint32_t span)
{
	const cptx_operand *op = c->op;
	const bool is_last = op->span_step > 1 ? span + 1 == op->span_turns : turn + 1 == op->row_turns;
	const cptx_val to = place(k, at, c, distance(op, &c->g, turn, span)), size = size_of(k, at, c, span);
	const cptx_val from = cptx_offset(c->from, (int64_t)span * op->span_step * c->g.group * CHUNK);
	const cptx_val when = guard_of(k, at, c, is_last);

	if (op->opt.by == CPTX_OPERAND_CP_ASYNC) {
		copy_async(k, at, c, to, from, size, when);
		return;
	}
	if (!is_none(when))
		cptx_if_begin_(k, at, when);
	copy_by_registers(k, at, c, to, from, size);
	if (!is_none(when))
		cptx_block_end_(k, at);
}

/* The address and the predicate of a turn. */
static void begin_turn(cptx_kernel *k, cptx_site at, copying *c, uint32_t turn, bool is_first)
{
	const cptx_val step = c->op->step, offsets = c->src->offsets;

	if (!is_none(offsets))
		c->from = CALL(add, .a = c->src->from, .b = CALL(cvt, .a = cptx_elem(offsets, turn), .dtype = CPTX_U64));
	else if (is_constant(step) && step.i * turn <= INT32_MAX)
		c->from = cptx_offset(c->src->from, step.i * turn);
	else if (is_constant(step))
		c->from = CALL(add, .a = c->src->from, .b = cptx_imm(step.i * turn));
	else if (turn && is_first)
		c->from = CALL(mad, .a = step, .b = cptx_imm(turn), .c = c->src->from, .mode = CPTX_LO);
	else if (turn)
		c->from = CALL(add, .a = c->from, .b = step);
	else
		c->from = c->src->from;
	if (!is_none(c->src->rows))
		c->row_ok = CALL(setp, .a = c->src->rows, .b = cptx_imm(turn * c->op->row_step), .cmp = CPTX_GT);
}

void operand_copy_by_threads(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage,
                             const cptx_operand_src *src, const cptx_operand_load_opt *o)
{
	copying c = { .op = op, .src = src, .o = o, .g = geometry_of(&op->opt.tile), .stage = stage };
	const uint32_t first = o->first, end = o->copies ? first + o->copies : op->copies;
	uint32_t turn = UINT32_MAX;

	if (first > end || end > op->copies || op->copies > CPTX_OPERAND_COPIES) {
		cptx_fail_(k, at, "copies %u to %u of an operand; a thread has %u of them", first, end, op->copies);
		return;
	}
	for (uint32_t n = first; n < end; n++) {
		if (n / op->span_turns != turn)
			begin_turn(k, at, &c, n / op->span_turns, turn == UINT32_MAX);
		turn = n / op->span_turns;
		copy_one(k, at, &c, turn, n % op->span_turns);
	}
}
