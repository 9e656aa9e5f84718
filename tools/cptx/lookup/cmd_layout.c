/* SPDX-License-Identifier: MIT */
/* cptx layout: a tile in shared memory with its banks, or a fragment with its lanes; as text or SVG. */
#include "cli/cli.h"
#include "reference/number.h"
#include "cli/draw.h"

#include <cptx/layout.h>

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_TILE,
	OPTION_TYPE,
	OPTION_MAJOR,
	OPTION_SWIZZLE,
	OPTION_PITCH,
	OPTION_READ,
	OPTION_AT,
	OPTION_FRAG,
	OPTION_SHAPE,
	OPTION_NUM,
	OPTION_TRANS,
	OPTION_SPARSE,
	OPTION_SVG
};
#define SWIZZLES "none 32B 64B 128B 128B_ATOM_32B 128B_ATOM_32B_FLIP_8B 128B_ATOM_64B"
static const cli_option options[] = {
	[OPTION_TILE] = { "tile", 't', "RxC", "a tile of R rows (m or n) and C columns (k) in shared memory", "128x64 64x64" },
	[OPTION_TYPE] = { "type", 'y', "TYPE", "type of the elements, or their bits; default: bf16, of accumulators f32",
	                  "bf16 f32 e4m3 4" },
	[OPTION_MAJOR] = { "major", 'm', "k|mn", "the contiguous dimension; default: k", "k mn" },
	[OPTION_SWIZZLE] = { "swizzle", 'w', "NAME", "default: none", SWIZZLES },
	[OPTION_PITCH] = { "pitch", 'p', "BYTES", "whole rows so far apart, not spans of the swizzle", NULL },
	[OPTION_READ] = { "read", 'r', "FRAG", "mark what its first ldmatrix reads; of mma-c and wgmma-d: stmatrix writes",
	                  "mma-a mma-b wgmma-a" },
	[OPTION_AT] = { "at", 'a', "RxC", "row and column of the tile where the fragment begins", NULL },
	[OPTION_FRAG] = { "frag", 'f', "FRAG", "a fragment: who holds each element", "mma-a mma-b mma-c wgmma-d ldmatrix" },
	[OPTION_SHAPE] = { "shape", 's', "MxNxK", "of the instruction; default: 16x8x16", "16x8x16 16x8x32 64x64x16" },
	[OPTION_NUM] = { "num", 'n', "N", ".x<N> of ldmatrix, stmatrix and tcgen05", "1 2 4" },
	[OPTION_TRANS] = { "trans", 0, NULL, "with .trans", NULL },
	[OPTION_SPARSE] = { "sparse", 0, NULL, "of a sparse instruction", NULL },
	[OPTION_SVG] = { "svg", 'o', "FILE", "draw it there; - is standard output", "@file" },
};

typedef struct request {
	const cli_command *cmd;
	cptx_tile tile;
	cptx_frag frag;
	const char *svg;
	uint32_t row, col;
	bool has_tile, has_frag, has_read;
	uint32_t seen; /* 1 << OPTION_ of all that were given */
	cptx_lines lines;
	cptx_banks banks;
	cptx_frag_map map;
} request;

static int bad_value(const request *q, int option, const char *value, const char *right)
{
	return cli_bad_value(q->cmd, (size_t)option, value, right);
}

/* "mma-a" is the kind "mma A". */
static bool find_kind(const char *text, enum cptx_frag_kind *kind)
{
	for (int i = 0; strcmp(cptx_frag_kind_name((enum cptx_frag_kind)i), "?") != 0; i++) {
		const char *a = cptx_frag_kind_name((enum cptx_frag_kind)i), *b = text;
		while (*a && (tolower((unsigned char)*a) == *b || (*a == ' ' && *b == '-')))
			a++, b++;
		if (!*a && !*b) {
			*kind = (enum cptx_frag_kind)i;
			return true;
		}
	}
	return false;
}

static int read_bits(request *q, const char *value)
{
	uint64_t bits;
	enum cptx_type type = cptx_type_find(value);

	if (number_dims(value, &bits, 1, 64))
		q->tile.elem.bits = (uint8_t)bits;
	else if (type != CPTX_TYPE_NONE)
		q->tile.elem.bits = (uint8_t)cptx_type_bits(type);
	else
		return bad_value(q, OPTION_TYPE, value, "expected a type, as bf16, or a number of bits, as 4");
	return EXIT_OK;
}

static int read_option(request *q, int option, const char *value)
{
	uint64_t d[3];
	int end = 0;

	q->seen |= 1u << option;
	switch (option) {
	case OPTION_TILE:
		if (!number_dims(value, d, 2, 65536))
			return bad_value(q, option, value, "expected two numbers from 1 to 65536, as in 64x64");
		q->tile.rows = (uint32_t)d[0], q->tile.cols = (uint32_t)d[1], q->has_tile = true;
		break;
	case OPTION_AT:
		if (strspn(value, "0123456789x") != strlen(value) || sscanf(value, "%5ux%5u%n", &q->row, &q->col, &end) != 2 ||
		    value[end])
			return bad_value(q, option, value, "expected two numbers, as in 0x16");
		break;
	case OPTION_TYPE: return read_bits(q, value);
	case OPTION_MAJOR:
		if (strcmp(value, "k") != 0 && strcmp(value, "mn") != 0)
			return bad_value(q, option, value, "expected k or mn");
		q->tile.elem.mn_major = !strcmp(value, "mn");
		break;
	case OPTION_SWIZZLE:
		q->tile.swizzle = cptx_swizzle_find(value);
		if (q->tile.swizzle == CPTX_SWIZZLE_COUNT)
			return bad_value(q, option, value, "expected one of " SWIZZLES);
		break;
	case OPTION_PITCH:
	case OPTION_NUM:
		if (!number_dims(value, d, 1, option == OPTION_NUM ? 128 : 65536))
			return bad_value(q, option, value,
			                 option == OPTION_NUM ? "expected a number from 1 to 128" : "expected a number from 1 to 65536");
		if (option == OPTION_NUM)
			q->frag.num = (uint8_t)d[0];
		else
			q->tile.pitch = (uint32_t)d[0];
		break;
	case OPTION_READ:
	case OPTION_FRAG:
		if (!find_kind(value, &q->frag.kind))
			return bad_value(q, option, value,
			                 "there is no such fragment; mma-a, mma-b, mma-c, wgmma-d and ldmatrix are some");
		q->has_read |= option == OPTION_READ, q->has_frag |= option == OPTION_FRAG;
		break;
	case OPTION_SHAPE:
		if (!number_dims(value, d, 3, 1024))
			return bad_value(q, option, value, "expected three numbers from 1 to 1024, as in 16x8x16");
		q->frag.m = (uint16_t)d[0], q->frag.n = (uint16_t)d[1], q->frag.k = (uint16_t)d[2];
		break;
	case OPTION_TRANS: q->frag.trans = true; break;
	case OPTION_SPARSE: q->frag.sparse = true; break;
	case OPTION_SVG: q->svg = value; break;
	}
	return EXIT_OK;
}

/* ---- tiles: a cell is a chunk of 16 bytes ---- */

static uint32_t per_chunk(const cptx_tile *t) { return 128u / t->elem.bits; }

static uint32_t chunk_at(const cptx_tile *t, uint32_t row, uint32_t chunk)
{
	uint32_t i = chunk * per_chunk(t);
	return t->elem.mn_major ? cptx_tile_at(t, i, row).byte : cptx_tile_at(t, row, i).byte;
}

static void tile_cell(const void *user, uint32_t row, uint32_t col, draw_cell *out)
{
	const request *q = user;
	uint32_t at = chunk_at(&q->tile, row, col);
	uint8_t bank = at / 4 % 32;

	snprintf(out->text, sizeof out->text, "%u", bank);
	out->colour = (int8_t)(bank / 4);
	for (uint32_t lane = 0; q->has_read && lane < 8u * q->lines.num; lane++)
		if (cptx_lines_offset(&q->lines, 0, lane) == at) {
			snprintf(out->text, sizeof out->text, "%u l%u", bank, lane);
			out->framed = true, out->bad = q->banks.conflicts > 0;
		}
}

/* Whether the fragment is a result, which goes to shared memory by stmatrix, the mirror of ldmatrix. */
static bool writes(const request *q)
{
	return q->frag.kind == CPTX_FRAG_MMA_C || q->frag.kind == CPTX_FRAG_WGMMA_D || q->frag.kind == CPTX_FRAG_STMATRIX;
}

/* What stands above the drawing. */
typedef struct heading {
	char text[2 * CPTX_ERROR_TEXT + 1000];
	size_t n;
} heading;

static void put(heading *h, const char *format, ...) CPTX_PRINTF_(2, 3);
static void put(heading *h, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(h->text + h->n, sizeof h->text - h->n, format, ap);
	va_end(ap);
	h->n += n > 0 && (size_t)n < sizeof h->text - h->n ? (size_t)n : 0;
}

static void describe_tile(const request *q, heading *h)
{
	const cptx_tile *t = &q->tile;
	cptx_tile_boxes b;
	cptx_smem_desc d;
	cptx_error err = { 0 }, none = { 0 };

	put(h, "tile %ux%u of %u bits, %s-major, swizzle %s: %u bytes, aligned to %u\n", t->rows, t->cols, t->elem.bits,
	    t->elem.mn_major ? "MN" : "K", cptx_swizzle_get(t->swizzle)->name, cptx_tile_bytes(t), cptx_tile_align(t));
	if (cptx_tile_get_boxes(t, &b, &err))
		put(h, "tensor map: %u boxes of %ux%u elements, %u bytes each; expect_tx %u\n", b.count[0] * b.count[1], b.box[0],
		    b.box[1], b.bytes, cptx_tile_bytes(t));
	else
		put(h, "no tensor map: %s\n", err.text);
	if (cptx_tile_desc(t, CPTX_DESC_TCGEN05, 0, 0, 0, &d, &none))
		put(h, "matrix descriptor: lbo %u, sbo %u\n", d.lbo, d.sbo);
	else
		put(h, "no matrix descriptor: %s\n", none.text);
	if (q->has_read) {
		put(h, "%s .x%u%s of %s: %u turns for %u phases, ", writes(q) ? "stmatrix" : "ldmatrix", q->lines.num,
		    q->lines.trans ? ".trans" : "", cptx_frag_kind_name(q->frag.kind), q->banks.turns, q->banks.phases);
		if (q->banks.conflicts)
			put(h, "%u-way bank conflicts\n", q->banks.worst);
		else
			put(h, "no bank conflict\n");
	}
	put(h, "banks of the 16-byte chunks, at their places in the matrix%s:\n",
	    !q->has_read ? ""
	    : writes(q)  ? "; l: lanes that write"
	                 : "; l: lanes that read");
}

/* ---- fragments: a cell is an element ---- */

static void frag_cell(const void *user, uint32_t row, uint32_t col, draw_cell *out)
{
	const request *q = user;
	cptx_place p;

	if (!cptx_frag_place(&q->map, (cptx_cell){ (uint16_t)row, (uint16_t)col }, &p))
		return;
	if (q->map.slots > 1)
		snprintf(out->text, sizeof out->text, "%u:%u.%u", p.lane, p.reg, p.slot);
	else
		snprintf(out->text, sizeof out->text, "%u:%u", p.lane, p.reg);
	out->colour = (int8_t)(p.lane % 8);
}

static void describe_frag(const request *q, heading *h)
{
	put(h, "%s m%un%uk%u: %ux%u elements of %u bits, %u lanes with %u registers of %u\n", cptx_frag_kind_name(q->frag.kind),
	    q->frag.m, q->frag.n, q->frag.k, q->map.rows, q->map.cols, q->map.bits, q->map.lanes, q->map.regs, q->map.slots);
	if (q->map.copies || q->map.reg_copies)
		put(h, "copies: bits 0x%x of the lane and 0x%x of the register do not matter\n", q->map.copies, q->map.reg_copies);
	put(h, "lane:register%s\n", q->map.slots > 1 ? ".element" : "");
}

/* ---- */

static int show(const request *q)
{
	const cptx_tile *t = &q->tile;
	draw_table table = { q->map.rows, q->map.cols, NULL, "columns", frag_cell, q, 1 };
	heading h = { .n = 0 };
	cli_output out;

	if (q->has_tile) {
		table.rows = t->elem.mn_major ? t->cols : t->rows;
		table.cols = (t->elem.mn_major ? t->rows : t->cols) / per_chunk(t);
		table.row_name = t->elem.mn_major ? "k" : "m or n", table.col_name = t->elem.mn_major ? "m or n" : "k";
		table.cell = tile_cell, table.col_step = per_chunk(t);
	}
	(q->has_tile ? describe_tile : describe_frag)(q, &h);
	if (!cli_create(q->cmd, &out, q->svg ? q->svg : "-"))
		return EXIT_FAILED;
	if (q->svg)
		draw_svg(out.f, &table, h.text);
	else
		fputs(h.text, out.f), draw_text(out.f, &table);
	return cli_finish(q->cmd, &out) ? EXIT_OK : EXIT_FAILED;
}

static int prepare_tile(request *q)
{
	cptx_error err = { 0 };
	uint32_t along = q->tile.elem.mn_major ? q->tile.rows : q->tile.cols;

	if (!cptx_tile_check(&q->tile, &err))
		return cli_refused(q->cmd, &err);
	if (along % per_chunk(&q->tile))
		return cli_usage(q->cmd, "rows of %u elements are no multiple of 16 bytes; they cannot be drawn", along);
	if (!q->has_read)
		return EXIT_OK;
	if (!cptx_tile_lines(&q->tile, &q->frag, q->row, q->col, &q->lines, &err))
		return cli_refused(q->cmd, &err);
	q->banks = cptx_lines_banks(&q->lines, 0);
	return EXIT_OK;
}

/* EXIT_USAGE, after a message, if an option was given that says nothing about what is drawn. */
static int unused_option(const request *q)
{
	const uint32_t tile = 1u << OPTION_MAJOR | 1u << OPTION_SWIZZLE | 1u << OPTION_PITCH | 1u << OPTION_READ,
				   frag = 1u << OPTION_SHAPE | 1u << OPTION_NUM | 1u << OPTION_TRANS | 1u << OPTION_SPARSE,
				   read = 1u << OPTION_AT;
	uint32_t unused = q->has_frag ? tile | read : q->has_read ? 0 : frag | read;

	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		if ((q->seen & unused) >> i & 1)
			return cli_usage(q->cmd, "--%s says nothing about a %s; it goes with %s", options[i].name,
			                 q->has_frag ? "fragment" : "tile",
			                 tile >> i & 1   ? "--tile"
			                 : read >> i & 1 ? "--read"
			                                 : "--frag or --read");
	return EXIT_OK;
}

/* Refuses --num and --trans where the fragment does not have them. */
static int unused_modifier(const request *q)
{
	const cptx_frag *f = &q->frag;
	bool moves = f->kind == CPTX_FRAG_LDMATRIX || f->kind == CPTX_FRAG_STMATRIX;
	bool old = f->m == 8 && f->n == 8 && f->k == 4 && (f->kind == CPTX_FRAG_MMA_A || f->kind == CPTX_FRAG_MMA_B);

	if (q->seen >> OPTION_NUM & 1 && !moves && f->kind != CPTX_FRAG_TCGEN05)
		return cli_usage(q->cmd, "--num says nothing about this fragment; it goes with ldmatrix, stmatrix and tcgen05");
	if (q->seen >> OPTION_TRANS & 1 && !moves && !old)
		return cli_usage(q->cmd, "--trans says nothing about this fragment; it goes with ldmatrix, stmatrix and mma 8x8x4");
	return EXIT_OK;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	request q = { .cmd = cmd, .tile.elem.bits = 16, .frag = { .m = 16, .n = 8, .k = 16 } };
	const char *value;
	cptx_error err = { 0 };
	int status = EXIT_OK, option;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0)
		if ((status = read_option(&q, option, value)) != EXIT_OK)
			return status;
	if (option == -2)
		return status;
	if (optind < argc)
		return cli_usage(cmd, "what is '%s'?", argv[optind]);
	if (q.has_tile == q.has_frag)
		return cli_usage(cmd, "a tile (--tile 64x64) or a fragment (--frag mma-a) is needed, one of both");
	if ((status = unused_option(&q)) || (status = unused_modifier(&q)))
		return status;
	bool sums = q.frag.kind == CPTX_FRAG_MMA_C || q.frag.kind == CPTX_FRAG_WMMA_C || q.frag.kind == CPTX_FRAG_WGMMA_D ||
	            q.frag.kind == CPTX_FRAG_TMEM_D;
	q.frag.bits = q.has_frag && sums && !(q.seen >> OPTION_TYPE & 1) ? 32 : q.tile.elem.bits;
	if (q.has_tile)
		status = prepare_tile(&q);
	else if (!cptx_frag_resolve(&q.frag, &q.map, &err))
		status = q.seen >> OPTION_SHAPE & 1 ? cli_refused(cmd, &err)
		                                    : cli_usage(cmd, "%s (--shape is 16x8x16 unless it is given)", err.text);
	return status ? status : show(&q);
}

const cli_command cmd_layout = {
	.name = "layout",
	.arguments = "--tile RxC | --frag FRAG [OPTION]...",
	.about = "Draws tiles of shared memory with their banks, and fragments with their lanes.",
	.options = options,
	.noption = sizeof options / sizeof options[0],
	.details = "  cptx layout --tile 64x64 --swizzle 128B --read mma-a        no bank conflict\n"
			   "  cptx layout --tile 64x64 --pitch 128 --read mma-a           8-way\n"
			   "  cptx layout --tile 64x64 --swizzle 64B --major mn --svg tile.svg\n"
			   "  cptx layout --frag mma-b --shape 16x8x32 --type s8\n"
			   "  cptx layout --frag tcgen05 --shape 16x256x1 --num 2         16 lanes of 256 bits\n",
	.run = run,
};
