/* SPDX-License-Identifier: MIT */
/* Operands: the ring of stages, and copies by TMA.  Copies by threads are in operand_copy.c. */
#include "base/options.h"
#include "base/map_use.h"
#include "kit/operand.h"

#include <cptx/cptx.h>

#include <stdio.h>

enum {
	MOST_STAGES = 64,
	MOST_BOXES = 4096,
	MOST_PIXELS = 1024,
	ANY_ADDRESS = 4096,
	TO_ALIGN = 128 /* of a copy in shared memory */
};

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, "operand: " __VA_ARGS__);                                            \
	while (0)

static uint32_t or_one(uint32_t v) { return v ? v : 1; }
static uint32_t across(const cptx_tile *t) { return t->elem.mn_major ? t->cols : t->rows; }

/* ---- tensor maps ---- */

enum cptx_tensor_type cptx_operand_tensor_type(enum cptx_type type, const cptx_tile *tile)
{
	if (!tile)
		return CPTX_TENSOR_TYPES;
	switch (type) {
	case CPTX_BF16: return CPTX_TENSOR_BF16;
	case CPTX_F16: return CPTX_TENSOR_F16;
	case CPTX_U16:
	case CPTX_S16:
	case CPTX_B16: return CPTX_TENSOR_U16;
	case CPTX_F32: return CPTX_TENSOR_F32;
	case CPTX_S32: return CPTX_TENSOR_S32;
	case CPTX_U32:
	case CPTX_B32: return CPTX_TENSOR_U32;
	case CPTX_TF32: return CPTX_TENSOR_TF32;
	case CPTX_F64: return CPTX_TENSOR_F64;
	case CPTX_S64: return CPTX_TENSOR_S64;
	case CPTX_U64:
	case CPTX_B64: return CPTX_TENSOR_U64;
	default: break;
	}
	switch (cptx_type_bits(type) == 8 ? tile->elem.bits : 0) {
	case 4: return tile->elem.padded ? CPTX_TENSOR_16U4_ALIGN16B : CPTX_TENSOR_16U4_ALIGN8B;
	case 6: return CPTX_TENSOR_16U6_ALIGN16B;
	case 8: return CPTX_TENSOR_U8;
	default: return CPTX_TENSOR_TYPES;
	}
}

/* The part of the tile that one cptx_operand_load copies. */
static cptx_tile part_of(const cptx_operand_opt *o)
{
	cptx_tile t = o->tile;

	t.rows /= or_one(o->parts);
	return t;
}

static bool check_tma(const cptx_operand_opt *o, cptx_error *err)
{
	const uint32_t parts = or_one(o->parts), dims = o->im2col;

	RULE(o->by == CPTX_OPERAND_TMA, "a tensor map of an operand that threads copy; it has none");
	if (!cptx_tile_check(&o->tile, err))
		return false;
	RULE(cptx_operand_tensor_type(o->type, &o->tile) != CPTX_TENSOR_TYPES,
	     "elements of type .%s in a tile of %u bits; no tensor map has them", cptx_type_name(o->type), o->tile.elem.bits);
	RULE(o->tile.rows % parts == 0, "%u rows in %u parts; take a multiple of it", o->tile.rows, parts);
	RULE(parts == 1 || !o->spans, "both .spans and .parts; a part's spans do not lie behind one another");
	RULE(!dims || (dims >= 3 && dims <= CPTX_TENSOR_RANK), ".im2col = %u; images have 3 to %d dimensions", dims,
	     CPTX_TENSOR_RANK);
	RULE(!dims || (!o->spans && !o->batched && parts == 1), ".im2col with .spans, .batched or .parts; it goes alone");
	RULE(o->batch_dims <= (o->batched ? 2 : 0), ".batch_dims = %u; it is 1 or 2, with .batched", o->batch_dims);
	RULE(!dims || across(&o->tile) <= MOST_PIXELS, "%u pixels; a load brings at most %d", across(&o->tile), MOST_PIXELS);
	return true;
}

static uint32_t batch_dims(const cptx_operand_opt *o) { return o->batched ? or_one(o->batch_dims) : 0; }

/* A further dimension: so many matrices, or batches of these, so many bytes apart; 0: those of all along dimension `of`. */
static bool add_batch(uint64_t batch, uint64_t apart, uint32_t of, cptx_tensor_map_opt *map, cptx_error *err)
{
	uint64_t stride[CPTX_TENSOR_RANK];
	const uint32_t last = map->rank;

	RULE(last < CPTX_TENSOR_RANK, "too many dimensions");
	cptx_tensor_map_strides(map, stride);
	map->dim[last] = batch ? batch : 1;
	map->stride[last] = apart ? apart : stride[of] * map->dim[of];
	map->box[last] = 1;
	map->rank++;
	return cptx_tensor_map_check(map, err);
}

/* The rules of a tensor map in words of the matrix. */
static bool check_matrix(const cptx_operand_opt *o, const cptx_operand_matrix *m, cptx_error *err)
{
	const cptx_tile *t = &o->tile;
	const uint64_t along = t->elem.mn_major ? m->rows : m->cols, unit = t->elem.padded ? 32 : 16;

	RULE(m->rows && m->cols && m->rows <= UINT64_C(1) << 32 && m->cols <= UINT64_C(1) << 32,
	     "rows is %llu and cols is %llu; both are 1 to 2^32", (unsigned long long)m->rows, (unsigned long long)m->cols);
	const uint64_t bytes = along * t->elem.bits / 8, next = (MAX(m->pitch, bytes) + unit - 1) / unit * unit;
	RULE(m->address % unit == 0, "address is 0x%llx; it must be a multiple of %llu", (unsigned long long)m->address,
	     (unsigned long long)unit);
	RULE(!m->pitch || m->pitch >= bytes, "pitch is %llu bytes; %llu %s have %llu", (unsigned long long)m->pitch,
	     (unsigned long long)along, t->elem.mn_major ? "rows" : "cols", (unsigned long long)bytes);
	RULE(!m->pitch || m->pitch % unit == 0, "pitch is %llu bytes; it must be a multiple of %llu: give .pitch = %llu",
	     (unsigned long long)m->pitch, (unsigned long long)unit, (unsigned long long)next);
	RULE(m->pitch || bytes % unit == 0,
	     "%s is %llu, of %llu bytes; the pitch must be a multiple of %llu: give .pitch = %llu, and lay the matrix out so",
	     t->elem.mn_major ? "rows" : "cols", (unsigned long long)along, (unsigned long long)bytes, (unsigned long long)unit,
	     (unsigned long long)next);
	return true;
}

static bool tensor_map_of(const cptx_operand_opt *opt, const cptx_operand_matrix *matrix, cptx_tensor_map_opt *map,
                          cptx_error *err)
{
	cptx_operand_opt given, *o = &given;
	cptx_operand_matrix of, *m = &of;

	if (!IS_GIVEN(opt, "description", NOWHERE, err) || !IS_GIVEN(matrix, "matrix", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_operand_opt, o, opt, NOWHERE, err) ||
	    !OPTIONS_READ(cptx_operand_matrix, m, matrix, NOWHERE, err) || !check_tma(o, err))
		return false;
	RULE(!o->im2col, "the operand is of images (.im2col): cptx_operand_image_map makes its map");
	const cptx_tile part = part_of(o);
	const enum cptx_tensor_type type = cptx_operand_tensor_type(o->type, &part);

	if (!check_matrix(o, m, err))
		return false;
	if (o->spans ? !cptx_tile_tensor_map_3d(&part, type, m->address, m->rows, m->cols, m->pitch, map, err)
	             : !cptx_tile_tensor_map(&part, type, m->address, m->rows, m->cols, m->pitch, map, err))
		return false;
	return (!o->batched || add_batch(m->batch, m->apart, 1, map, err)) &&
	       (batch_dims(o) < 2 || add_batch(m->batch2, m->apart2, map->rank - 1, map, err));
}

/* Gives a map, of zeros where it was not made, and then the error with the user's line. */
static bool give(bool ok, cptx_tensor_map_opt *map, uint32_t size, const cptx_tensor_map_opt *made, cptx_site at,
                 const cptx_error *why, cptx_error *err)
{
	const cptx_tensor_map_opt none = { .rank = 0 };

	OPTIONS_FILL(map, size, ok ? made : &none);
	return ok || error_set(err, why->code, at, "%s", why->text);
}

bool cptx_operand_tensor_map_(cptx_site at, uint32_t size, const cptx_operand_opt *op, const cptx_operand_matrix *matrix,
                              cptx_tensor_map_opt *map, cptx_error *err)
{
	cptx_error why = { .code = CPTX_OK };
	cptx_tensor_map_opt made = { .rank = 0 };

	return IS_GIVEN(map, "result", at, err) && give(tensor_map_of(op, matrix, &made, &why), map, size, &made, at, &why, err);
}

static bool image_map_of(const cptx_operand_opt *opt, const cptx_operand_image *image, cptx_tensor_map_opt *map,
                         cptx_error *err)
{
	cptx_operand_opt given, *o = &given;
	cptx_operand_image of, *i = &of;
	cptx_tile_boxes b;

	if (!IS_GIVEN(opt, "description", NOWHERE, err) || !IS_GIVEN(image, "image", NOWHERE, err) ||
	    !OPTIONS_READ(cptx_operand_image, i, image, NOWHERE, err) || !OPTIONS_READ(cptx_operand_opt, o, opt, NOWHERE, err) ||
	    !check_tma(o, err) || !cptx_tile_get_boxes(&o->tile, &b, err))
		return false;
	RULE(o->im2col, "the operand is of a matrix: say .im2col, the dimensions of the image, or cptx_operand_tensor_map");
	const uint64_t dim[] = { i->c, i->w, i->h, i->d };
	const uint32_t rank = o->im2col;

	*map = (cptx_tensor_map_opt){ .mode = CPTX_TENSOR_IM2COL,
		                          .type = cptx_operand_tensor_type(o->type, &o->tile),
		                          .rank = rank,
		                          .address = i->address,
		                          .swizzle = o->tile.swizzle,
		                          .channels = b.box[0],
		                          .pixels = across(&o->tile) };
	for (uint32_t d = 0; d + 1 < rank; d++)
		map->dim[d] = dim[d];
	map->dim[rank - 1] = i->n;
	for (uint32_t d = 0; d + 2 < rank; d++) {
		map->lower[d] = i->lower[d], map->upper[d] = i->upper[d];
		map->element_stride[d + 1] = or_one(i->stride[d]);
	}
	return cptx_tensor_map_check(map, err);
}

bool cptx_operand_image_map_(cptx_site at, uint32_t size, const cptx_operand_opt *op, const cptx_operand_image *image,
                             cptx_tensor_map_opt *map, cptx_error *err)
{
	cptx_error why = { .code = CPTX_OK };
	cptx_tensor_map_opt made = { .rank = 0 };

	return IS_GIVEN(map, "result", at, err) && give(image_map_of(op, image, &made, &why), map, size, &made, at, &why, err);
}

/* ---- the ring ---- */

/* Bytes from part to part in a stage.  A part is K-major some rows of each span, MN-major some of the spans. */
static uint32_t part_bytes(const cptx_operand *op)
{
	return op->box.bytes * op->box.count[1] * (op->opt.tile.elem.mn_major ? op->box.count[0] : 1);
}

/* Boxes of a load, and the bytes of all loads of a tile. */
static bool begin_tma(cptx_kernel *k, cptx_site at, cptx_operand *op)
{
	const cptx_operand_opt *o = &op->opt;
	const cptx_tile part = check_tma(o, NULL) ? part_of(o) : o->tile;
	cptx_tensor_map_opt map;
	cptx_error err = { .code = CPTX_OK };

	/* the rules and bytes of a box are those of a map of any matrix that is as large as the tile */
	if (!check_tma(o, &err) || !cptx_tile_get_boxes(&part, &op->box, &err) ||
	    !cptx_tile_tensor_map(&part, cptx_operand_tensor_type(o->type, &part), ANY_ADDRESS, part.rows, part.cols, 0, &map,
	                          &err)) {
		cptx_fail_(k, at, "%s", err.text);
		return false;
	}
	op->bytes = cptx_tensor_map_box_bytes(&map) * op->box.count[0] * op->box.count[1] * or_one(o->parts);
	if (o->im2col)
		op->box = (cptx_tile_boxes){ { op->box.box[0], across(&part) },
			                         { op->box.count[0], 1 },
			                         op->box.bytes * op->box.count[1] };
	const uint32_t of_part = part_bytes(op);
	if (or_one(o->parts) > 1 && of_part % MAX(cptx_tile_align(&o->tile), (uint32_t)TO_ALIGN)) {
		cptx_fail_(k, at, "operand: %u parts of %u rows; each must begin at a multiple of %u bytes, and has %u", o->parts,
		           part.rows, MAX(cptx_tile_align(&o->tile), (uint32_t)TO_ALIGN), of_part);
		return false;
	}
	return true;
}

static bool check_values(cptx_kernel *k, cptx_site at, const cptx_operand_opt *o)
{
	static const char where[] = "cptx_operand_new";
	const uint32_t size = KIT_U32 | KIT_WHOLE | KIT_NONE;

	return KIT_OPTION(where, o, smem, size | KIT_VARIABLE) && KIT_OPTION(where, o, map, KIT_U64 | KIT_NONE) &&
	       KIT_OPTION(where, o, address, KIT_U64 | KIT_NONE) && KIT_OPTION(where, o, rows, size) &&
	       KIT_OPTION(where, o, cols, size) && KIT_OPTION(where, o, pitch, size | KIT_U64) &&
	       KIT_OPTION(where, o, thread, KIT_U32 | KIT_NONE);
}

static bool check_ring(cptx_kernel *k, cptx_site at, const cptx_operand_opt *o)
{
	cptx_error err = { .code = CPTX_OK };

	if ((unsigned)o->by > CPTX_OPERAND_LDST)
		cptx_fail_(k, at, "operand: .by = %d; it is CPTX_OPERAND_TMA, _CP_ASYNC or _LDST", (int)o->by);
	else if (o->by == CPTX_OPERAND_TMA && o->threads)
		cptx_fail_(k, at, "operand: .threads = %u that copy, of an operand that TMA copies; one thread starts it",
		           o->threads);
	else if (o->stages > MOST_STAGES)
		cptx_fail_(k, at, "operand: %u stages; there are 1 to %d", o->stages, MOST_STAGES);
	else if (!cptx_tile_check(&o->tile, &err))
		cptx_fail_(k, at, "operand: %s", err.text);
	else if (is_constant(o->smem) && o->smem.i % cptx_tile_align(&o->tile))
		cptx_fail_(k, at, "operand: .smem = %lld; a tile begins at a multiple of %u", (long long)o->smem.i,
		           cptx_tile_align(&o->tile));
	else if (o->apart && (o->apart < cptx_tile_bytes(&o->tile) || o->apart % cptx_tile_align(&o->tile)))
		cptx_fail_(k, at, "operand: stages %u bytes apart; a tile has %u, and begins at a multiple of %u", o->apart,
		           cptx_tile_bytes(&o->tile), cptx_tile_align(&o->tile));
	else
		return check_values(k, at, o);
	return false;
}

/* The address of stage 0 in a register. */
static cptx_val ring(cptx_kernel *k, cptx_site at, const cptx_operand *op)
{
	const cptx_operand_opt *o = &op->opt;
	char name[32];

	if (o->smem.kind == CPTX_VAL_REG && o->smem.offset) {
		cptx_val base = o->smem;
		base.offset = 0;
		return CALL(add, .a = base, .b = cptx_imm(o->smem.offset));
	}
	if (!is_none(o->smem))
		return o->smem.kind == CPTX_VAL_REG ? o->smem : CALL(mov, .a = o->smem, .type = CPTX_U32);
	snprintf(name, sizeof name, "operand_%u", cptx_kernel_dyn_smem(k));
	cptx_val there = cptx_shared_dyn_(k, at, op->apart * o->stages, cptx_tile_align(&o->tile), o->name ? o->name : name);
	return CALL(mov, .a = there, .type = CPTX_U32);
}

void cptx_operand_new_(cptx_kernel *k, cptx_site at, cptx_operand *op, const cptx_operand_opt *opt)
{
	if (!IS_GIVEN_TO(k, at, op, "operand"))
		return;
	*op = (cptx_operand){ .bytes = 0 };
	cptx_operand_opt o;
	if (!IS_GIVEN_TO(k, at, opt, "description") || !OPTIONS_READ_IN(cptx_operand_opt, &o, opt, at, k) ||
	    !check_ring(k, at, &o))
		return;
	opt = &o;
	const uint32_t size = cptx_tile_bytes(&opt->tile), align = cptx_tile_align(&opt->tile);

	op->opt = *opt;
	op->opt.stages = or_one(opt->stages), op->opt.parts = or_one(opt->parts);
	op->apart = op->opt.apart = opt->apart ? opt->apart : (size + align - 1) / align * align;
	op->bytes = size;
	if (opt->by == CPTX_OPERAND_TMA ? !begin_tma(k, at, op) : !operand_check_threads(k, at, &op->opt))
		return;
	op->smem = ring(k, at, op);
	if (opt->by != CPTX_OPERAND_TMA)
		operand_begin_threads(k, at, op);
	op->made = kit_made(k, KIT_cptx_operand);
}

static bool is_made(cptx_kernel *k, cptx_site at, const cptx_operand *op) { return KIT_IS_MADE(cptx_operand, k, at, op); }

static cptx_val stage_of(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage, cptx_val from)
{
	if (is_constant(stage))
		return cptx_offset(from, stage.i * op->apart);
	return CALL(mad, .a = as_u32(stage), .b = cptx_imm(op->apart), .c = from, .mode = CPTX_LO);
}

static bool is_stage(cptx_kernel *k, cptx_site at, const cptx_operand *op, const char *where, cptx_val stage)
{
	if (!kit_value(k, at, where, "the stage", stage, KIT_U32 | KIT_SIGNED))
		return false;
	bool ok = !is_constant(stage) || (stage.i >= 0 && stage.i < op->opt.stages);

	if (!ok)
		cptx_fail_(k, at, "stage %lld of an operand; it has stages 0 to %u", (long long)stage.i, op->opt.stages - 1);
	return ok;
}

cptx_val cptx_operand_at_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage)
{
	if (!is_made(k, at, op) || !is_stage(k, at, op, "cptx_operand_at", stage))
		return (cptx_val){ 0 };
	return stage_of(k, at, op, stage, op->smem);
}

void cptx_operand_rebase_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val address)
{
	if (!is_made(k, at, op))
		return;
	if (op->opt.by == CPTX_OPERAND_TMA)
		cptx_fail_(k, at, "another matrix for an operand of TMA; a load takes another tensor map by .map, or .z");
	else if (kit_value(k, at, "cptx_operand_rebase", "the address", address, KIT_U64))
		operand_rebase_threads(k, at, op, address);
}

/* ---- sources ---- */

/* Rules of a tile's place: where threads copy it begins inside of the matrix, at a multiple of what is read at once; by TMA
 * it may lie anywhere. */
static bool is_place(cptx_kernel *k, cptx_site at, const cptx_operand *op, const char *where, cptx_val row, cptx_val col)
{
	const cptx_operand_opt *o = &op->opt;
	const uint32_t takes = KIT_U32 | (o->by == CPTX_OPERAND_TMA ? KIT_SIGNED : KIT_WHOLE);
	const bool mn_major = o->tile.elem.mn_major;
	const cptx_val along = mn_major ? row : col;
	const uint32_t bytes = o->by == CPTX_OPERAND_TMA ? 16 : o->align;

	if (!kit_value(k, at, where, "the row", row, takes) || !kit_value(k, at, where, "the column", col, takes))
		return false;
	if (is_constant(along) && !o->im2col && along.i * o->tile.elem.bits % (8 * bytes)) {
		cptx_fail_(k, at, "%s: the %s is %lld; it stands for a multiple of %u bytes, %u elements", where,
		           mn_major ? "row" : "column", (long long)along.i, bytes, 8 * bytes / o->tile.elem.bits);
		return false;
	}
	return true;
}

cptx_operand_src cptx_operand_source_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val row, cptx_val col)
{
	cptx_operand_src src = { .row = { 0 } };

	if (!is_made(k, at, op) || !is_place(k, at, op, "cptx_operand_source", row, col))
		return src;
	if (op->opt.by != CPTX_OPERAND_TMA)
		return operand_source_of_threads(k, at, op, row, col);
	src.made = kit_made(k, KIT_cptx_operand_src);
	src.row = CALL(mov, .a = as_s32(row), .type = CPTX_S32);
	src.col = CALL(mov, .a = as_s32(col), .type = CPTX_S32);
	return src;
}

static void move_to(cptx_kernel *k, cptx_site at, cptx_val from, cptx_val into)
{
	if (!is_none(into))
		CALL(mov, .a = from, .into = into);
}

static bool is_source(cptx_kernel *k, cptx_site at, const cptx_operand *op, const cptx_operand_src *src)
{
	bool tma = op->opt.by == CPTX_OPERAND_TMA;
	if (!KIT_IS_MADE(cptx_operand_src, k, at, src))
		return false;
	bool ok = tma ? !is_none(src->row) && !is_none(src->col) : src->of.kind == op->smem.kind && src->of.i == op->smem.i;

	if (!ok)
		cptx_fail_(k, at, "a source of another operand; each one that %s has its own: cptx_operand_source",
		           tma ? "TMA loads" : "threads copy");
	return ok;
}

void cptx_operand_seek_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_operand_src *src, cptx_val row,
                        cptx_val col)
{
	if (!is_made(k, at, op) || !is_source(k, at, op, src) || !is_place(k, at, op, "cptx_operand_seek", row, col))
		return;
	if (op->opt.by == CPTX_OPERAND_TMA) {
		move_to(k, at, as_s32(row), src->row);
		move_to(k, at, as_s32(col), src->col);
		return;
	}
	cptx_operand_src there = operand_source_of_threads(k, at, op, row, col);
	move_to(k, at, there.from, src->from);
	move_to(k, at, there.rows, src->rows);
	move_to(k, at, there.bytes, src->bytes);
	for (uint32_t i = 0; i < there.offsets.count && !is_none(there.offsets); i++)
		move_to(k, at, cptx_elem(there.offsets, i), cptx_elem(src->offsets, i));
}

void cptx_operand_advance_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_operand_src *src, uint32_t rows,
                           uint32_t cols)
{
	if (!is_made(k, at, op) || !is_source(k, at, op, src))
		return;
	if (op->opt.by != CPTX_OPERAND_TMA) {
		operand_advance_threads(k, at, op, src, rows, cols);
		return;
	}
	if (rows)
		CALL(add, .a = src->row, .b = cptx_imm(rows), .into = src->row);
	if (cols)
		CALL(add, .a = src->col, .b = cptx_imm(cols), .into = src->col);
}

/* ---- loads by TMA ---- */

static cptx_val plus(cptx_kernel *k, cptx_site at, cptx_val v, uint32_t n)
{
	if (is_constant(v))
		return cptx_imm(v.i + n);
	return n ? CALL(add, .a = v, .b = cptx_imm(n)) : v;
}

/* v + part * each */
static cptx_val plus_parts(cptx_kernel *k, cptx_site at, cptx_val v, cptx_val part, uint32_t each)
{
	if (is_none(part))
		return v;
	if (is_constant(part))
		return plus(k, at, v, (uint32_t)part.i * each);
	return CALL(mad, .a = v.type == CPTX_S32 ? as_s32(part) : as_u32(part), .b = cptx_imm(each), .c = v, .mode = CPTX_LO);
}

/* The offsets of an im2col copy: 16 bits each. */
static cptx_val offsets(cptx_kernel *k, cptx_site at, const cptx_operand *op, const cptx_operand_load_opt *o)
{
	cptx_val v[3];
	const uint32_t n = op->opt.im2col - 2;

	for (uint32_t i = 0; i < n; i++) {
		v[i] = is_none(o->offset[i]) ? cptx_imm(0) : o->offset[i];
		if (v[i].kind == CPTX_VAL_REG && cptx_type_bits((enum cptx_type)v[i].type) == 32)
			v[i] = CALL(cvt, .a = as_u32(v[i]), .dtype = CPTX_U16);
	}
	return n == 1 ? v[0] : cptx_pack_(k, at, v, n);
}

/* The coordinates of a box, `along` and `other` of which are given. */
static cptx_val coordinates(cptx_kernel *k, cptx_site at, const cptx_operand *op, const cptx_operand_load_opt *o,
                            cptx_val along, cptx_val other)
{
	const uint32_t dims = op->opt.im2col;
	cptx_val c[CPTX_TENSOR_RANK] = { along, other };
	uint32_t n = 2;

	if (dims) {
		const cptx_val place[] = { o->w, o->h, o->d };
		for (n = 1; n + 1 < dims; n++)
			c[n] = as_s32(place[n - 1]);
		c[n++] = as_s32(o->n);
	} else if (op->opt.spans) {
		c[0] = cptx_imm(0);
		c[n++] =
			is_constant(along) ? cptx_imm(along.i / op->box.box[0]) : as_s32(kit_quotient(k, at, along, op->box.box[0]));
	}
	if (!is_none(o->col_end))
		kit_cut_load(k, at, op->box.box[1], o->col_end, &c[1], &c[n++]);
	if (op->opt.batched)
		c[n++] = as_s32(o->z);
	if (batch_dims(&op->opt) == 2)
		c[n++] = as_s32(o->z2);
	return cptx_pack_(k, at, c, n);
}

/* Tells the launch which tensor map the copy needs. */
static void note_map(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val map, bool cut)
{
	const cptx_operand_opt *o = &op->opt;
	ir_map_use m = { .mode = o->im2col ? CPTX_TENSOR_IM2COL : CPTX_TENSOR_TILED,
		             .type = cptx_operand_tensor_type(o->type, &o->tile),
		             .rank = o->im2col ? o->im2col : 2u + o->spans + cut + batch_dims(o),
		             .swizzle = o->tile.swizzle };

	if (o->im2col) {
		m.channels = op->box.box[0], m.pixels = op->box.box[1];
	} else {
		for (uint32_t i = 0; i < m.rank; i++)
			m.box[i] = i < 2 ? op->box.box[i] : i == 2 && o->spans ? op->box.count[0] : 1;
	}
	ir_map_use_note(k, at, map, &m);
}

static void copy_box(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val to, cptx_val coord,
                     const cptx_operand_load_opt *o)
{
	static const uint16_t dim[] = { CPTX_DIM_1D, CPTX_DIM_1D, CPTX_DIM_2D, CPTX_DIM_3D, CPTX_DIM_4D, CPTX_DIM_5D };
	const uint32_t dims = op->opt.im2col ? op->opt.im2col : 2u + op->opt.spans + batch_dims(&op->opt) + !is_none(o->col_end);
	const bool multicast = !is_none(o->mask);
	const cptx_val map = is_none(o->map) ? op->opt.map : o->map;

	note_map(k, at, op, map, !is_none(o->col_end));
	CALL(cp_async_bulk_tensor_load, .s = to, .map = map, .coord = coord, .mbar = o->barrier, .mask = o->mask,
	     .policy = o->policy, .offsets = op->opt.im2col ? offsets(k, at, op, o) : (cptx_val){ 0 }, .dim = dim[dims],
	     .mode = op->opt.im2col ? CPTX_IM2COL : 0, .dst = op->opt.alone ? CPTX_SHARED_CTA : CPTX_SHARED_CLUSTER,
	     .multicast = multicast ? CPTX_MULTICAST_CLUSTER : 0, .cta_group = o->ctas == 2 ? CPTX_CTA_GROUP_2 : 0,
	     .l2hint = is_none(o->policy) ? 0 : CPTX_L2_CACHE_HINT, .when = o->when);
}

static void load_boxes(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage, const cptx_operand_src *src,
                       const cptx_operand_load_opt *o)
{
	const cptx_tile *t = &op->opt.tile;
	const cptx_tile_boxes *b = &op->box;
	const bool mn_major = t->elem.mn_major;
	const uint32_t rows = t->rows / op->opt.parts;
	const uint32_t span = b->bytes * b->count[1] * (mn_major ? 1 : op->opt.parts); /* of the whole tile */
	const cptx_val row = plus_parts(k, at, src->row, o->part, rows);
	/* of an image there is one coordinate, the channel */
	const cptx_val along = mn_major && !op->opt.im2col ? row : src->col, other = mn_major ? src->col : row;

	const cptx_val to = stage_of(k, at, op, stage, plus_parts(k, at, op->smem, o->part, part_bytes(op)));
	const uint32_t across_spans = op->opt.spans ? 1 : b->count[0];
	const bool together = !is_none(o->when) && across_spans * b->count[1] > 1; /* one branch for all copies */
	cptx_operand_load_opt copy = *o;
	if (together) {
		cptx_if_begin_(k, at, o->when);
		copy.when = (cptx_val){ 0 };
	}
	for (uint32_t i = 0; i < across_spans; i++)
		for (uint32_t j = 0; j < b->count[1]; j++) {
			cptx_val x = plus(k, at, along, i * b->box[0]), y = plus(k, at, other, j * b->box[1]);
			copy_box(k, at, op, cptx_offset(to, (int64_t)i * span + j * b->bytes), coordinates(k, at, op, o, x, y), &copy);
		}
	if (together)
		cptx_block_end_(k, at);
}

static bool check_load_values(cptx_kernel *k, cptx_site at, const cptx_operand_load_opt *o)
{
	static const char where[] = "cptx_operand_load";
	const uint32_t number = KIT_U32 | KIT_WHOLE | KIT_NONE, place = KIT_U32 | KIT_SIGNED | KIT_NONE;
	bool ok = KIT_OPTION(where, o, barrier, number | KIT_VARIABLE) && KIT_OPTION(where, o, z, place) &&
	          KIT_OPTION(where, o, z2, place) && KIT_OPTION(where, o, col_end, KIT_U32 | KIT_NONE) &&
	          KIT_OPTION(where, o, part, number) && KIT_OPTION(where, o, mask, KIT_U16 | KIT_WHOLE | KIT_NONE) &&
	          KIT_OPTION(where, o, map, KIT_U64 | KIT_NONE) && KIT_OPTION(where, o, when, KIT_PRED | KIT_NONE) &&
	          KIT_OPTION(where, o, policy, KIT_U64 | KIT_NONE) && KIT_OPTION(where, o, w, place) &&
	          KIT_OPTION(where, o, h, place) && KIT_OPTION(where, o, d, place) && KIT_OPTION(where, o, n, place) &&
	          KIT_OPTION(where, o, at, number);

	for (size_t i = 0; ok && i < ARRAY_LEN(o->offset); i++)
		ok = kit_value(k, at, where, ".offset", o->offset[i], number | KIT_U16);
	return ok;
}

static bool check_load(cptx_kernel *k, cptx_site at, const cptx_operand *op, const cptx_operand_load_opt *o)
{
	const cptx_operand_opt *p = &op->opt;

	if (p->map.kind != CPTX_VAL_REG && o->map.kind != CPTX_VAL_REG)
		cptx_fail_(k, at, "operand: no tensor map: say .map, the .u64 generic address of one, here or in cptx_operand_new");
	else if (is_none(o->barrier))
		cptx_fail_(k, at, "a load by TMA without an mbarrier: say .barrier, cptx_pipe_full(&at)");
	else if (p->batched && is_none(o->z))
		cptx_fail_(k, at, "a load of a batched operand: say .z, the number of the matrix");
	else if (batch_dims(p) == 2 && is_none(o->z2))
		cptx_fail_(k, at, "a load of an operand with two dimensions of matrices: say .z2, the number along the second");
	else if (!is_none(o->col_end) && (!p->tile.elem.mn_major || p->batched || p->spans || p->im2col))
		cptx_fail_(k, at,
		           "a load with .col_end; it is of an operand with mn_major tiles, whose map cptx_tensor_map_cut_load made, "
		           "without "
		           ".batched, .spans and .im2col");
	else if (p->parts > 1 && is_none(o->part))
		cptx_fail_(k, at, "a load of an operand in %u parts: say .part, 0 to %u", p->parts, p->parts - 1);
	else if (p->parts <= 1 && !is_none(o->part))
		cptx_fail_(k, at, "part of an operand that has no parts: say .parts in cptx_operand_new");
	else if (o->ctas > 2)
		cptx_fail_(k, at, "a load of %u CTAs; it is of 1, or of a pair", o->ctas);
	else if (p->alone && (!is_none(o->mask) || o->ctas == 2))
		cptx_fail_(k, at, "a load to other CTAs (.mask, .ctas) of an operand that stays .alone in its CTA");
	else if (p->im2col &&
	         (is_none(o->w) || is_none(o->n) || (p->im2col > 3 && is_none(o->h)) || (p->im2col > 4 && is_none(o->d))))
		cptx_fail_(k, at, "a load of an im2col operand of %u dimensions: say .w%s%s and .n", p->im2col,
		           p->im2col > 3 ? ", .h" : "", p->im2col > 4 ? ", .d" : "");
	else
		return true;
	return false;
}

void cptx_operand_load_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage, const cptx_operand_src *src,
                        const cptx_operand_load_opt *opt)
{
	cptx_operand_load_opt given, *o = &given;

	if (!is_made(k, at, op) || !is_stage(k, at, op, "cptx_operand_load", stage) || !IS_GIVEN_TO(k, at, opt, "description") ||
	    !OPTIONS_READ_IN(cptx_operand_load_opt, o, opt, at, k) || !is_source(k, at, op, src) || !check_load_values(k, at, o))
		return;
	if (op->opt.by != CPTX_OPERAND_TMA)
		operand_copy_by_threads(k, at, op, stage, src, o);
	else if (check_load(k, at, op, o))
		load_boxes(k, at, op, stage, src, o);
}

void cptx_operand_load_at_(cptx_kernel *k, cptx_site at, const cptx_operand *op, cptx_val stage, cptx_val row, cptx_val col,
                           const cptx_operand_load_opt *o)
{
	if (!is_made(k, at, op) || !is_place(k, at, op, "cptx_operand_load", row, col))
		return;
	cptx_operand_src src = { .made = kit_made(k, KIT_cptx_operand_src), .row = as_s32(row), .col = as_s32(col) };
	if (op->opt.by != CPTX_OPERAND_TMA)
		src = operand_source_of_threads(k, at, op, row, col);
	cptx_operand_load_(k, at, op, stage, &src, o);
}
