/* SPDX-License-Identifier: MIT */
/* Operands: every way to copy fills every tile with the same elements, and zeros outside of the matrix. */
#include "../test.h"
#include "../verify/assemble.h"
#include "cli/ptxas.h"

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/emu.h>
#include <cptx/operand.h>
#include <cptx/pipeline.h>

enum { STAGES = 3 };

/* What is copied: STAGES tiles beside one another along k for each CTA. */
typedef struct trial {
	const char *target;
	enum cptx_operand_by by;
	enum cptx_type type;
	cptx_tile tile;
	uint32_t threads, align;
	uint32_t rows, cols, pitch; /* of the matrix; bytes */
	bool advances;              /* by a source; else tile by tile */
	bool dense;                 /* no .pitch is given */
	bool inside;                /* neither .rows nor .cols is given */
	bool spans, batched, alone, piecewise;
	bool whole;  /* a row ends with 16 bytes */
	bool rebase; /* made for another matrix */
	bool clamp;  /* lines behind the last are the last; stages are told by their bytes */
	uint64_t seed;
} trial;

static cptx_error err;

#define RIGHT(what)                                                                                                         \
	do {                                                                                                                    \
		bool right_ = (what);                                                                                               \
		SURE(right_ &&err.code == CPTX_OK, "%s", err.text);                                                                 \
	} while (0)

static uint32_t up(uint32_t n, uint32_t each) { return (n + each - 1) / each; }
static uint32_t element(const trial *t) { return t->tile.elem.bits / 8; }

/* The bytes of all stages go to `out`, those of a CTA behind one another. */
static void dump(cptx_kernel *k, const cptx_operand *op, cptx_val out, uint32_t threads)
{
	const uint32_t bytes = cptx_tile_bytes(&op->opt.tile);
	cptx_val cta = cptx_mad(k, cptx_ctaid_y(k), cptx_nctaid_x(k), cptx_ctaid_x(k), .mode = CPTX_LO);

	for (uint32_t s = 0; s < op->opt.stages; s++) {
		cptx_val at = cptx_operand_at(k, op, cptx_var(k, CPTX_U32, s)),
				 i = cptx_var(k, CPTX_U32, cptx_shl(k, cptx_tid_x(k), 2));
		cptx_val to = cptx_mad_wide(k, cptx_mad(k, cta, op->opt.stages, s, .mode = CPTX_LO), bytes, out);
		CPTX_FOR(k, i, bytes, 4 * threads) {
			cptx_val v = cptx_ld(k, cptx_add(k, at, i), .space = CPTX_SHARED, .type = CPTX_B32);
			cptx_st(k, cptx_add(k, to, cptx_cvt(k, i, .dtype = CPTX_U64)), v, .space = CPTX_GLOBAL);
		}
	}
}

static cptx_operand_opt description(const trial *t)
{
	return (cptx_operand_opt){ .size = CPTX_OPT_SIZE(cptx_operand_opt),
		                       .by = t->by,
		                       .type = t->type,
		                       .tile = t->tile,
		                       .stages = STAGES,
		                       .spans = t->spans,
		                       .batched = t->batched,
		                       .alone = t->alone,
		                       .whole = t->whole,
		                       .threads = t->threads,
		                       .align = t->align,
		                       .clamp = t->clamp };
}

static void load_stages(cptx_kernel *k, const trial *t, const cptx_operand *op, cptx_val row, cptx_val col,
                        const cptx_pipe *pipe)
{
	cptx_operand_src src = { .row = { 0 } };
	cptx_pipe_at at = { .stages = 0 };
	const cptx_val z = t->batched ? cptx_imm(1) : CPTX_NONE_;

	if (pipe)
		at = cptx_pipe_producer(k, pipe);
	if (t->advances)
		src = cptx_operand_source(k, op, row, col);
	for (uint32_t s = 0; s < STAGES; s++) {
		cptx_val stage = s == 1 ? cptx_imm(1) : cptx_var(k, CPTX_U32, s), apart = CPTX_NONE_;
		if (t->clamp)
			stage = cptx_imm(0), apart = cptx_var(k, CPTX_U32, s * op->apart);
		cptx_val barrier = pipe ? cptx_pipe_full(&at) : CPTX_NONE_;
		if (pipe)
			cptx_pipe_expect(k, pipe, &at, op->bytes);
		if (t->piecewise)
			for (uint32_t i = op->copies; i--;)
				cptx_operand_load_from(k, op, stage, &src, .first = i, .copies = 1, .at = apart);
		else if (t->advances)
			cptx_operand_load_from(k, op, stage, &src, .barrier = barrier, .z = z, .at = apart);
		else
			cptx_operand_load(k, op, stage, row, cptx_add(k, col, s * t->tile.cols), .barrier = barrier, .z = z,
			                  .at = apart);
		if (t->advances)
			cptx_operand_advance(k, op, &src, 0, t->tile.cols);
		if (pipe)
			cptx_pipe_next(k, pipe, &at);
	}
}

static void build(cptx_module *m, const trial *t)
{
	const bool tma = t->by == CPTX_OPERAND_TMA;
	cptx_kernel *k = cptx_kernel_begin(m, "copy", .block = { t->threads });
	cptx_val map = tma ? cptx_param_bytes(k, 128, 64, "map") : cptx_param(k, CPTX_PTR, "matrix");
	cptx_val rows = cptx_param(k, CPTX_U32, "rows"), cols = cptx_param(k, CPTX_U32, "cols");
	cptx_val pitch = cptx_param(k, CPTX_U64, "pitch"), out = cptx_param(k, CPTX_PTR, "out");
	cptx_operand_opt o = description(t);
	cptx_operand op;
	cptx_pipe pipe;

	if (tma)
		o.map = cptx_cvta(k, cptx_mov(k, map, .type = CPTX_U64), .space = CPTX_PARAM), o.threads = 0;
	else
		o.address = map, o.pitch = t->dense ? CPTX_NONE_ : pitch;
	if (!tma && !t->inside)
		o.rows = rows, o.cols = cols;
	if (!tma && t->dense && t->inside)
		o.pitch = cptx_imm(t->pitch);
	if (t->rebase)
		o.address = cptx_add(k, map, 4096);
	cptx_operand_make(k, &op, &o);
	if (t->rebase)
		cptx_operand_rebase(k, &op, map);
	cptx_val row = cptx_mul(k, cptx_ctaid_y(k), t->tile.rows, .mode = CPTX_LO);
	cptx_val col = cptx_mul(k, cptx_ctaid_x(k), STAGES * t->tile.cols, .mode = CPTX_LO);
	cptx_val first = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ);
	if (!tma) {
		load_stages(k, t, &op, row, col, NULL);
		if (t->by == CPTX_OPERAND_CP_ASYNC)
			cptx_cp_async_wait_all(k);
		cptx_bar_sync(k, 0);
		dump(k, &op, out, t->threads);
		return;
	}
	cptx_pipe_new(k, &pipe, .stages = STAGES);
	cptx_pipe_init(k, &pipe, first);
	CPTX_IF(k, first)
		load_stages(k, t, &op, row, col, &pipe);
	cptx_pipe_at at = cptx_pipe_consumer(k, &pipe);
	for (uint32_t s = 0; s < STAGES; s++) {
		cptx_pipe_wait_full(k, &pipe, &at);
		cptx_pipe_next(k, &pipe, &at);
	}
	dump(k, &op, out, t->threads);
}

static uint8_t value(uint64_t i) { return (uint8_t)((i * 2654435761u >> 13) | 1); }

static const char *text_of(const trial *t)
{
	static char text[300];

	snprintf(text, sizeof text,
	         "%s by %d: tile %ux%u of %u bits%s swizzle %d pitch %u, %u threads, align %u, matrix %ux%u/%u", t->target,
	         (int)t->by, t->tile.rows, t->tile.cols, t->tile.elem.bits, t->tile.elem.mn_major ? " mn" : "",
	         (int)t->tile.swizzle, t->tile.pitch, t->threads, t->align, t->rows, t->cols, t->pitch);
	return text;
}

/* Each element of each stage of CTA (x, y). */
static void compare(const trial *t, const uint8_t *out, uint32_t x, uint32_t y, uint64_t matrix)
{
	const bool mn = t->tile.elem.mn_major;

	for (uint32_t s = 0; s < STAGES; s++, out += cptx_tile_bytes(&t->tile))
		for (uint32_t r = 0; r < t->tile.rows; r++)
			for (uint32_t c = 0; c < t->tile.cols; c++) {
				uint32_t row = y * t->tile.rows + r, col = (x * STAGES + s) * t->tile.cols + c;
				if (t->clamp && mn && col >= t->cols)
					col = t->cols - 1;
				if (t->clamp && !mn && row >= t->rows)
					row = t->rows - 1;
				const uint64_t from = (uint64_t)(mn ? col : row) * t->pitch + (uint64_t)(mn ? row : col) * element(t);
				const uint8_t *at = out + cptx_tile_at(&t->tile, r, c).byte;
				for (uint32_t b = 0; b < element(t); b++) {
					uint8_t right = row < t->rows && col < t->cols ? value(matrix + from + b) : 0;
					SURE(at[b] == right, "%s\nCTA %u, %u stage %u: element %u, %u byte %u is 0x%02x, not 0x%02x", text_of(t),
					     x, y, s, r, c, b, at[b], right);
				}
			}
}

static void run(const trial *t)
{
	const uint32_t x = up(t->cols, STAGES * t->tile.cols), y = up(t->rows, t->tile.rows),
				   lines = t->tile.elem.mn_major ? t->cols : t->rows;
	const uint64_t of_matrix = (uint64_t)lines * t->pitch, bytes = of_matrix * (t->batched ? 2 : 1),
				   offset = t->by == CPTX_OPERAND_TMA ? 0 : t->align;
	const size_t of_cta = (size_t)STAGES * cptx_tile_bytes(&t->tile);
	cptx_module *m = cptx_module_new(NULL);
	uint8_t *host = malloc(bytes), *back = malloc(of_cta * x * y);
	cptx_tensor_map map;

	err = (cptx_error){ .code = CPTX_OK };
	build(m, t);
	SURE(!cptx_module_error(m), "%s\n%s", text_of(t), cptx_module_error(m) ? cptx_module_error(m)->text : "");
	cptx_device *dev = cptx_emu_open(t->target,
	                                 &(cptx_emu_opt){ .no_undefined = t->tile.pitch != 0 /* the padding is dumped too */,
	                                                  .seed = t->seed,
	                                                  .schedule = (enum cptx_emu_schedule)(t->seed % 3) },
	                                 &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	uint64_t from = cptx_mem_alloc(dev, bytes + offset, &err), to = cptx_mem_alloc(dev, of_cta * x * y, &err);
	for (uint64_t i = 0; i < bytes; i++)
		host[i] = value(i);
	RIGHT(cptx_mem_write(dev, from + offset, host, bytes, &err) && p);
	cptx_arg matrix = CPTX_ARG(from + offset);
	if (t->by == CPTX_OPERAND_TMA) {
		const cptx_operand_opt o = description(t);
		cptx_tensor_map_opt of;
		const cptx_operand_matrix of_all = {
			.address = from, .rows = t->rows, .cols = t->cols, .pitch = t->pitch, .batch = 2, .apart = of_matrix
		};
		RIGHT(cptx_operand_tensor_map(&o, &of_all, &of, &err));
		RIGHT(cptx_tensor_map_make(dev, &of, &map, &err));
		matrix = CPTX_ARG_BYTES(&map, sizeof map);
	}
	bool ok = cptx_launch_once(p, "copy",
	                           CPTX_LAUNCH(.grid = { x, y }, CPTX_ARGS(matrix, t->rows, t->cols, (uint64_t)t->pitch, to)),
	                           NULL, &err) &&
	          cptx_mem_read(dev, back, to, of_cta * x * y, &err);
	SURE(ok, "%s\n%s", text_of(t), err.text);
	for (uint32_t j = 0; j < y; j++)
		for (uint32_t i = 0; i < x; i++)
			compare(t, back + of_cta * (j * x + i), i, j, t->batched ? of_matrix : 0);
	cptx_program_destroy(p);
	cptx_mem_free(dev, from);
	cptx_mem_free(dev, to);
	cptx_device_close(dev);
	cptx_module_destroy(m);
	free(host);
	free(back);
}

/* ---- by threads ---- */

#define TILE(r, c, bits_, mn, swizzle_, pitch_)                                                                             \
	{                                                                                                                       \
		.rows = (r), .cols = (c), .elem = { .bits = (bits_), .mn_major = (mn) }, .swizzle = CPTX_SWIZZLE_##swizzle_,        \
		.pitch = (pitch_)                                                                                                   \
	}
static const struct {
	enum cptx_type type;
	cptx_tile tile;
	uint32_t threads;
} shapes[] = {
	{ CPTX_BF16, TILE(64, 64, 16, false, 128B, 0), 128 },  /* whole turns */
	{ CPTX_BF16, TILE(64, 128, 16, false, 128B, 0), 64 },  /* two spans, 16 turns of eight rows */
	{ CPTX_BF16, TILE(32, 64, 16, false, 128B, 0), 32 },   /* four rows at once: two places */
	{ CPTX_BF16, TILE(20, 64, 16, false, 128B, 0), 128 },  /* an incomplete turn */
	{ CPTX_BF16, TILE(8, 256, 16, false, 128B, 0), 192 },  /* threads cover three of four spans */
	{ CPTX_F16, TILE(48, 96, 16, false, 64B, 0), 96 },     /* twelve chunks, groups of four */
	{ CPTX_F32, TILE(40, 8, 32, false, 32B, 0), 64 },      /* groups of two */
	{ CPTX_U8, TILE(24, 64, 8, false, NONE, 0), 64 },      /* spans of a chunk */
	{ CPTX_F32, TILE(12, 12, 32, false, NONE, 64), 32 },   /* rows with padding, three chunks */
	{ CPTX_BF16, TILE(16, 64, 16, false, 128B, 144), 64 }, /* the same swizzled */
	{ CPTX_BF16, TILE(128, 32, 16, true, 128B, 0), 128 },  /* rows are contiguous */
	{ CPTX_F64, TILE(16, 20, 64, false, 32B, 0), 40 },     /* five rows at once */
	{ CPTX_BF16, TILE(16, 64, 16, false, 128B_ATOM_32B, 0), 64 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* align 0: of an element */
static trial threads_of(uint32_t shape, enum cptx_operand_by by, uint32_t align, uint32_t more_rows, uint32_t more_cols)
{
	trial t = { .target = "sm_80", .by = by, .type = shapes[shape].type, .tile = shapes[shape].tile };
	const uint32_t size = t.tile.elem.bits / 8;

	t.threads = shapes[shape].threads;
	t.align = align ? align : size;
	t.rows = 2 * t.tile.rows + more_rows, t.cols = STAGES * t.tile.cols + more_cols;
	t.pitch = up((t.tile.elem.mn_major ? t.rows : t.cols) * size, t.align) * t.align + t.align;
	return t;
}

static unsigned whole_trials; /* trials whose rows end with 16 bytes */

static void all_shapes(enum cptx_operand_by by, uint32_t align, const char *target, bool clamps)
{
	for (uint32_t i = 0; i < SHAPES; i++)
		for (uint32_t way = 0; way < (clamps ? 6 : 4); way++) {
			const uint32_t each = by == CPTX_OPERAND_LDST && align
			                          ? (align * 8 > shapes[i].tile.elem.bits ? align * 8 / shapes[i].tile.elem.bits : 1)
			                          : 1;
			const uint32_t more = way == 2 && align == 16 ? 128 / shapes[i].tile.elem.bits : each; /* 16 bytes */
			trial t = threads_of(i, by, align, way != 3 ? 5 * more : 0, way != 3 ? 3 * more : 0);
			if (shapes[i].tile.elem.bits > 8 * t.align)
				continue;
			if (way > 3 && t.tile.elem.mn_major) /* each tile begins inside */
				t.cols = 2 * STAGES * t.tile.cols - 3;
			t.target = target, t.seed = i * 4 + way, t.clamp = way > 3;
			if (t.clamp && (way & 1) && t.tile.elem.mn_major) /* its columns, along which a source goes on, are clamped */
				continue;
			t.advances = way & 1, t.piecewise = way == 1 || way == 5;
			if (way == 2 && t.align <= 16 && (t.tile.elem.mn_major ? t.rows : t.cols) * t.tile.elem.bits / 8 % t.align == 0)
				t.dense = true, t.pitch -= t.align;
			if (way == 3)
				t.rows = 2 * t.tile.rows, t.cols = STAGES * t.tile.cols, t.inside = true, t.dense = i & 1;
			t.whole = by == CPTX_OPERAND_CP_ASYNC && align == 16 && way != 3 &&
			          (t.tile.elem.mn_major ? t.rows : t.cols) * t.tile.elem.bits % 128 == 0;
			t.rebase = way > 1;
			whole_trials += t.whole;
			run(&t);
		}
}

START_TEST(by_cp_async)
{
	all_shapes(CPTX_OPERAND_CP_ASYNC, 16, "sm_80", true);
	all_shapes(CPTX_OPERAND_CP_ASYNC, 16, "sm_90a", false);
	all_shapes(CPTX_OPERAND_CP_ASYNC, 8, "sm_80", false);
	all_shapes(CPTX_OPERAND_CP_ASYNC, 4, "sm_120a", false);
	ck_assert_uint_gt(whole_trials, 0);
}
END_TEST

START_TEST(by_plain_loads)
{
	all_shapes(CPTX_OPERAND_LDST, 0, "sm_80", false);
	all_shapes(CPTX_OPERAND_LDST, 4, "sm_90a", false);
	all_shapes(CPTX_OPERAND_LDST, 8, "sm_80", true);
	all_shapes(CPTX_OPERAND_LDST, 16, "sm_100a", false);
}
END_TEST

/* ---- by TMA ---- */

static const struct {
	enum cptx_type type;
	cptx_tile tile;
} boxes[] = {
	{ CPTX_BF16, TILE(64, 64, 16, false, 128B, 0) },
	{ CPTX_BF16, TILE(64, 128, 16, false, 128B, 0) }, /* two boxes */
	{ CPTX_BF16, TILE(512, 32, 16, false, 32B, 0) },  /* two of each of two spans */
	{ CPTX_F32, TILE(40, 16, 32, false, 64B, 0) },
	{ CPTX_U8, TILE(24, 64, 8, false, NONE, 0) },
	{ CPTX_BF16, TILE(128, 32, 16, true, 128B, 0) },
	{ CPTX_BF16, TILE(16, 32, 16, false, 128B, 128) }, /* rows shorter than the span */
};

START_TEST(by_tma)
{
	static const char *const targets[] = { "sm_90a", "sm_100a", "sm_120a" };

	for (uint32_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
		for (uint32_t way = 0; way < 5; way++) {
			trial t = { .target = targets[way % 3], .type = boxes[i].type, .tile = boxes[i].tile, .threads = 64 };
			const bool whole = way >= 3 && !t.tile.pitch && t.tile.rows <= 256;
			t.rows = 2 * t.tile.rows + 5, t.cols = STAGES * t.tile.cols + 3;
			if (whole) /* made of spans */
				t.rows = 2 * t.tile.rows, t.cols = STAGES * t.tile.cols;
			t.pitch = up((t.tile.elem.mn_major ? t.rows : t.cols) * t.tile.elem.bits / 8, 16) * 16 + 32;
			t.seed = i * 5 + way, t.advances = way & 1, t.alone = way == 2, t.spans = whole, t.batched = way & 2;
			run(&t);
		}
}
END_TEST

/* ---- clusters and images ---- */

typedef struct bench {
	cptx_module *m;
	cptx_device *dev;
	cptx_program *program;
	cptx_tensor_map map;
	uint64_t from, to;
	uint8_t *host, *back;
	size_t bytes, size;
} bench;

/* `bytes` of global memory with values, and a map of them; room for `size` bytes that come back. */
static bench open_bench(const char *target, uint64_t seed, cptx_module *m, size_t bytes, size_t size)
{
	bench b = { .m = m, .host = malloc(bytes), .back = malloc(size), .bytes = bytes, .size = size };

	err = (cptx_error){ .code = CPTX_OK };
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	b.dev = cptx_emu_open(target, &(cptx_emu_opt){ .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3) }, &err);
	b.program = cptx_device_load(b.dev, m, NULL, &err);
	b.from = cptx_mem_alloc(b.dev, bytes, &err), b.to = cptx_mem_alloc(b.dev, size, &err);
	for (size_t i = 0; i < bytes; i++)
		b.host[i] = value(i);
	RIGHT(b.program && cptx_mem_write(b.dev, b.from, b.host, bytes, &err));
	return b;
}

static void run_bench(bench *b, uint32_t grid, const cptx_tensor_map_opt *of)
{
	RIGHT(cptx_tensor_map_make(b->dev, of, &b->map, &err));
	RIGHT(cptx_launch_once(b->program, NULL, CPTX_LAUNCH(.grid = { grid }, CPTX_ARGS(CPTX_ARG_BYTES(&b->map, 128), b->to)),
	                       NULL, &err));
	RIGHT(cptx_mem_read(b->dev, b->back, b->to, b->size, &err));
}

static void close_bench(bench *b)
{
	cptx_program_destroy(b->program);
	cptx_mem_free(b->dev, b->from);
	cptx_mem_free(b->dev, b->to);
	cptx_device_close(b->dev);
	cptx_module_destroy(b->m);
	free(b->host);
	free(b->back);
}

static cptx_val map_param(cptx_kernel *k)
{
	return cptx_cvta(k, cptx_mov(k, cptx_param_bytes(k, 128, 64, "map"), .type = CPTX_U64), .space = CPTX_PARAM);
}

/* Two CTAs: each loads half of the rows and multicasts it (pair: each loads all of its own, and the first one waits). */
static void build_cluster(cptx_module *m, const cptx_operand_opt *opt, bool pair)
{
	cptx_kernel *k = cptx_kernel_begin(m, "cluster", .block = { 64 }, .cluster = { 2 });
	cptx_operand_opt o = *opt;
	cptx_operand op;
	cptx_pipe p;

	o.map = map_param(k);
	cptx_val out = cptx_param(k, CPTX_PTR, "out"), rank = cptx_cluster_ctaid_x(k);
	cptx_val first = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ);
	cptx_operand_make(k, &op, &o);
	cptx_pipe_new(k, &p, .stages = 1, .multicast = 2);
	cptx_pipe_init(k, &p, first);
	CPTX_IF(k, first) {
		cptx_pipe_at at = pair ? cptx_pipe_producer_of(k, &p, cptx_imm(0)) : cptx_pipe_producer(k, &p);
		if (pair) {
			CPTX_IF(k, cptx_setp(k, rank, 0, .cmp = CPTX_EQ))
				cptx_pipe_expect(k, &p, &at, 2 * op.bytes);
			cptx_operand_load(k, &op, 0, 8, 0, .barrier = cptx_pipe_full_of(k, &at), .ctas = 2);
		} else {
			cptx_pipe_expect(k, &p, &at, op.bytes);
			cptx_operand_load(k, &op, 0, 8, 0, .barrier = cptx_pipe_full(&at), .part = rank, .mask = cptx_imm(3));
		}
	}
	cptx_pipe_at at = cptx_pipe_consumer_of(k, &p, rank);
	if (pair)
		CPTX_IF(k, cptx_setp(k, rank, 0, .cmp = CPTX_EQ))
			cptx_pipe_wait_full(k, &p, &at);
	else
		cptx_pipe_wait_full(k, &p, &at);
	cptx_barrier_cluster_arrive(k);
	cptx_barrier_cluster_wait(k);
	dump(k, &op, out, 64);
	cptx_barrier_cluster_arrive(k);
	cptx_barrier_cluster_wait(k);
}

START_TEST(clusters)
{
	static const cptx_tile tiles[] = { TILE(32, 128, 16, false, 128B, 0), TILE(128, 16, 16, true, 128B, 0),
		                               TILE(64, 32, 16, false, NONE, 0) };
	enum { ROWS = 140, COLS = 128 };

	for (uint32_t i = 0; i < 6; i++) {
		const cptx_tile t = tiles[i % 3];
		const bool pair = i >= 3, mn = t.elem.mn_major;
		const cptx_operand_opt o = { .type = CPTX_BF16, .tile = t, .parts = pair ? 1 : 2 };
		const cptx_operand_matrix all = { .rows = mn ? 144 : ROWS, .cols = COLS };
		const uint32_t of_cta = cptx_tile_bytes(&t);
		cptx_module *m = cptx_module_new(NULL);
		cptx_tensor_map_opt of;
		build_cluster(m, &o, pair);
		bench b = open_bench(pair ? "sm_100a" : "sm_90a", i, m, (size_t)all.rows * COLS * 2, 2 * of_cta);
		cptx_operand_matrix here = all;
		here.address = b.from;
		RIGHT(cptx_operand_tensor_map(&o, &here, &of, &err));
		run_bench(&b, 2, &of);
		for (uint32_t e = 0; e < 2 * t.rows * t.cols; e++) {
			uint32_t cta = e / (t.rows * t.cols), r = e / t.cols % t.rows, c = e % t.cols;
			uint64_t from = 2 * (mn ? (uint64_t)c * all.rows + r + 8 : (uint64_t)(r + 8) * COLS + c);
			uint8_t right = r + 8 < all.rows ? value(from) : 0, got = b.back[cta * of_cta + cptx_tile_at(&t, r, c).byte];
			SURE(got == right, "tile %u, CTA %u: element %u, %u is 0x%02x, not 0x%02x", i, cta, r, c, got, right);
		}
		close_bench(&b);
	}
}
END_TEST

/* A convolution's A: pixels from (w, h, n) on, for each of 3 x 3 taps. */
enum { W = 9, H = 7, N = 2, C = 64, PIXELS = 40, TAPS = 9, STRIDE = 2, OUT_W = 5, OUT_H = 4 };

static void build_im2col(cptx_module *m, const cptx_operand_opt *opt)
{
	cptx_kernel *k = cptx_kernel_begin(m, "im2col", .block = { 64 });
	cptx_operand_opt o = *opt;
	cptx_operand op;
	cptx_pipe p;

	o.map = map_param(k);
	cptx_val out = cptx_param(k, CPTX_PTR, "out"), first = cptx_setp(k, cptx_tid_x(k), 0, .cmp = CPTX_EQ);
	cptx_operand_make(k, &op, &o);
	cptx_pipe_new(k, &p, .stages = TAPS);
	cptx_pipe_init(k, &p, first);
	CPTX_IF(k, first) { /* from the third output pixel of the first row on */
		cptx_pipe_at at = cptx_pipe_producer(k, &p);
		for (uint32_t tap = 0; tap < TAPS; tap++) {
			cptx_val s = cptx_var(k, CPTX_U32, tap % 3);
			cptx_pipe_expect(k, &p, &at, op.bytes);
			cptx_operand_load_im2col(k, &op, tap, 0, .barrier = cptx_pipe_full(&at), .w = cptx_imm(2 * STRIDE - 1),
			                         .h = cptx_imm(-1), .n = cptx_imm(0), .offset = { s, cptx_imm(tap / 3) });
			cptx_pipe_next(k, &p, &at);
		}
	}
	cptx_pipe_at at = cptx_pipe_consumer(k, &p);
	for (uint32_t s = 0; s < TAPS; s++) {
		cptx_pipe_wait_full(k, &p, &at);
		cptx_pipe_next(k, &p, &at);
	}
	dump(k, &op, out, 64);
}

START_TEST(images)
{
	const cptx_tile tiles[] = { TILE(PIXELS, C, 16, false, 128B, 0), TILE(C, PIXELS, 16, true, 128B, 0) };

	for (uint32_t i = 0; i < 6; i++) {
		const cptx_operand_opt o = { .type = CPTX_BF16, .tile = tiles[i % 2], .stages = TAPS, .im2col = 4 };
		cptx_operand_image image = {
			.c = C, .w = W, .h = H, .n = N, .lower = { -1, -1 }, .upper = { -1, -1 }, .stride = { 2, 2 }
		};
		const uint32_t of_tap = cptx_tile_bytes(&o.tile);
		cptx_module *m = cptx_module_new(NULL);
		cptx_tensor_map_opt of;
		build_im2col(m, &o);
		bench b = open_bench("sm_90a", i, m, (size_t)W * H * N * C * 2, TAPS * of_tap);
		image.address = b.from;
		RIGHT(cptx_operand_image_map(&o, &image, &of, &err));
		run_bench(&b, 1, &of);
		for (uint32_t tap = 0; tap < TAPS; tap++)
			for (uint32_t p = 0; p < PIXELS; p++)
				for (uint32_t c = 0; c < C; c++) {
					int pixel = (int)p + 2, n = pixel / (OUT_W * OUT_H), h = pixel / OUT_W % OUT_H, w = pixel % OUT_W;
					int y = h * STRIDE - 1 + (int)tap / 3, x = w * STRIDE - 1 + (int)tap % 3;
					bool in = n < N && y >= 0 && y < H && x >= 0 && x < W;
					uint8_t right = in ? value(2 * ((((uint64_t)n * H + (uint64_t)y) * W + (uint64_t)x) * C + c)) : 0;
					uint8_t got = b.back[tap * of_tap + cptx_tile_at(&o.tile, i % 2 ? c : p, i % 2 ? p : c).byte];
					SURE(got == right, "trial %u: tap %u, pixel %u, channel %u is 0x%02x, not 0x%02x", i, tap, p, c, got,
					     right);
				}
		close_bench(&b);
	}
}
END_TEST

/* ---- ptxas ---- */

/* A tensor map may come with each load, but must come. */
START_TEST(map_of_a_load)
{
	for (int has = 0; has < 2; has++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_kernel *k = cptx_kernel_begin(m, "k");
		cptx_val p = cptx_param(k, CPTX_PTR, "p"), none = { 0 };
		cptx_operand op;
		cptx_operand_new(k, &op, .type = CPTX_BF16, .tile = TILE(64, 64, 16, false, 128B, 0));
		cptx_val zero = cptx_mov(k, 0, .type = CPTX_S32), barrier = cptx_mov(k, 0, .type = CPTX_U32);
		cptx_operand_load(k, &op, 0, zero, zero, .barrier = barrier, .map = has ? p : none);
		SURE((cptx_module_error(m) == NULL) == has, "%s", has ? cptx_module_error(m)->text : "no error");
		SURE(has || strstr(cptx_module_error(m)->text, "no tensor map: say .map"), "%s", cptx_module_error(m)->text);
		cptx_module_destroy(m);
	}
}
END_TEST

static void judge(cptx_module *m, const char *target)
{
	cptx_error e = { .code = CPTX_OK };
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &e);

	SURE(ptx != NULL, "%s", e.text);
	assembly job = { .target = target, .ptx = cptx_ptx_text(ptx) };
	unsigned kernels = 0;
	assemble(&job, 1);
	SURE(!job.status, "%s: %s", target, job.said);
	ck_assert_uint_eq(assembly_spills(job.said, &kernels), 0);
	ck_assert_uint_eq(kernels, 1);
	assemble_free(&job, 1);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}

START_TEST(ptxas_accepts)
{
	static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };
	char path[4096];

	if (!ptxas_find(path, sizeof path)) {
		skip("ptxas, to judge the copies");
		return;
	}
	for (uint32_t i = 0; i < 4; i++) {
		trial t = threads_of(i, i & 1 ? CPTX_OPERAND_LDST : CPTX_OPERAND_CP_ASYNC, i & 1 ? 0 : 16, 3, 5);
		cptx_module *m = cptx_module_new(NULL);
		t.advances = i & 2;
		build(m, &t);
		judge(m, targets[i]);
	}
	for (uint32_t i = 1; i < 4; i++) {
		trial t = { .type = CPTX_BF16, .tile = boxes[i].tile, .threads = 64, .alone = i == 3, .advances = i & 1 };
		cptx_module *m = cptx_module_new(NULL);
		t.type = boxes[i].type;
		build(m, &t);
		judge(m, targets[i]);
	}
	const cptx_operand_opt two = { .type = CPTX_BF16, .tile = boxes[1].tile, .parts = 2 };
	const cptx_operand_opt image = { .type = CPTX_BF16, .tile = boxes[0].tile, .stages = TAPS, .im2col = 4 };
	cptx_operand_opt one = two;
	one.parts = 1;
	cptx_module *m[3] = { cptx_module_new(NULL), cptx_module_new(NULL), cptx_module_new(NULL) };
	build_cluster(m[0], &two, false);
	build_cluster(m[1], &one, true);
	build_im2col(m[2], &image);
	judge(m[0], "sm_90a");
	judge(m[1], "sm_100a");
	judge(m[2], "sm_90a");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "operand");

	tcase_add_test(c, by_cp_async);
	tcase_add_test(c, by_plain_loads);
	tcase_add_test(c, by_tma);
	tcase_add_test(c, clusters);
	tcase_add_test(c, images);
	tcase_add_test(c, map_of_a_load);
	tcase_add_test(c, ptxas_accepts);
	return test_main("kit operand", s);
}
