/* SPDX-License-Identifier: MIT */
/* The public calls of the row kernels: what is checked, and launches. */
#include "base/options.h"
#include "rows/rows.h"

#include <math.h>
#include <stdio.h>

/* ---- complete options ---- */

static bool is_real(enum cptx_type t) { return t == CPTX_F32 || t == CPTX_F16 || t == CPTX_BF16; }
static bool is_power(uint32_t n) { return n && !(n & (n - 1)); }

static bool check_types(cptx_rows_opt *o, cptx_error *err)
{
	const bool quantize = o->kernel == CPTX_ROWS_QUANTIZE;

	o->out = o->out ? o->out : quantize ? CPTX_E4M3 : o->in;
	o->weight = o->weight ? o->weight : o->in;
	o->index = o->index ? o->index : CPTX_S64;
	ROWS_RULE(is_real(o->in), ".in is .%s; rows are read as .f32, .f16 or .bf16", cptx_type_name(o->in));
	ROWS_RULE(quantize ? o->out == CPTX_E4M3 || o->out == CPTX_E2M1 : is_real(o->out), ".out is .%s; %s writes %s",
	          cptx_type_name(o->out), cptx_rows_kernel_name(o->kernel), quantize ? ".e4m3 or .e2m1" : ".f32, .f16 or .bf16");
	ROWS_RULE(is_real(o->weight), ".weight is .%s; weights are .f32, .f16 or .bf16", cptx_type_name(o->weight));
	ROWS_RULE(o->index == CPTX_S32 || o->index == CPTX_S64, ".index is .%s; labels and columns are .s32 or .s64",
	          cptx_type_name(o->index));
	return true;
}

/* The kernel's operands, with those that are asked for, and its options. */
static bool check_operands(const cptx_rows_opt *o, cptx_error *err)
{
	const rows_kernel *kernel = &rows_kernels[o->kernel];
	const uint32_t may = kernel->may_read | kernel->may_write;
	const bool asked[] = { o->eps != 0, o->smoothing != 0, o->ignore, o->z_loss != 0, o->tanh, o->heads > 1, o->k != 0 };
#define ROWS_OPTION(ID, field, about) #field,
	static const char *const names[] = {
#include <cptx/rows.def>
	};
	_Static_assert(ARRAY_LEN(asked) == ROWS_OPTIONS, "an option of rows.def is asked about here");

	for (unsigned i = 0; i < 32; i++)
		ROWS_RULE(!rows_has(o->with & ~may, i), "%s has no operand %s to ask for by .with", kernel->name,
		          cptx_rows_operand_name((enum cptx_rows_operand)i));
	for (unsigned i = 0; i < ROWS_OPTIONS; i++)
		ROWS_RULE(!asked[i] || kernel->takes >> i & 1, "%s has no option .%s", kernel->name, names[i]);
	ROWS_RULE((!o->body || o->body == kernel->body) && !o->reads && !o->writes && !o->local && !o->user,
	          "%s is built by the library; .body, .user, .reads, .writes and .local are of CPTX_ROWS_OWN", kernel->name);
	return true;
}

static bool check_own(const cptx_rows_opt *o, cptx_error *err)
{
	const uint32_t both = o->reads | o->writes;

	ROWS_RULE(o->body, "CPTX_ROWS_OWN is built by .body, which is NULL");
	ROWS_RULE(!o->with, ".with asks for operands of the library's kernels; those of CPTX_ROWS_OWN are .reads and .writes");
	ROWS_RULE(both < 1u << CPTX_ROWS_OPERANDS, ".reads and .writes are sets of the %d operands", CPTX_ROWS_OPERANDS);
	ROWS_RULE(!(o->reads & R_SUMS), "dw and db are sums over rows, which a kernel writes");
	ROWS_RULE(!(o->writes & (R_W | R_B)), "w and b are the same for all rows, and no row can write them: dw, db");
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		ROWS_RULE(!rows_has(o->reads & o->writes, i),
		          "%s is read and written; a result is another operand, which may lie at "
		          "the same address",
		          rows_operands[i].name);
	ROWS_RULE(o->reads, "a kernel that reads nothing");
	ROWS_RULE(o->writes, "a kernel that writes nothing");
	return true;
}

static bool check_numbers(cptx_rows_opt *o, cptx_error *err)
{
	enum { MOST_K = 64, MOST_STAGES = 8 };

	ROWS_RULE(o->n >= 1 && o->n <= CPTX_ROWS_MOST, "rows of %u elements; they have 1 to %d", o->n, CPTX_ROWS_MOST);
	ROWS_RULE(!o->align || is_power(o->align), "rows at multiples of %u elements; .align is a power of two", o->align);
	ROWS_RULE(o->eps >= 0 && isfinite(o->eps), ".eps is %g; it is added under a root, 0 or more", (double)o->eps);
	ROWS_RULE(o->smoothing >= 0 && o->smoothing <= 1, ".smoothing is %g; it is a part, 0 to 1", (double)o->smoothing);
	ROWS_RULE(isfinite(o->z_loss), ".z_loss is %g", (double)o->z_loss);
	ROWS_RULE(o->k <= MOST_K && o->k <= o->n, "the %u largest of %u elements; .k is 1 to %d, and at most n", o->k, o->n,
	          MOST_K);
	ROWS_RULE(o->kernel != CPTX_ROWS_ROTARY_PAIRS || o->n % 2 == 0, "rows of %u elements; pairs need an even number", o->n);
	ROWS_RULE((unsigned)o->place < CPTX_ROWS_PLACES, ".place is %u; <cptx/rows.def> lists the places", (unsigned)o->place);
	ROWS_RULE(o->threads <= CPTX_THREADS_PER_CTA && o->threads % CPTX_WARP == 0,
	          "CTAs of %u threads; .threads is a multiple of 32 up to 1024", o->threads);
	ROWS_RULE(o->per_row <= CPTX_THREADS_PER_CTA, "rows of %u threads; a CTA has up to %d", o->per_row,
	          CPTX_THREADS_PER_CTA);
	ROWS_RULE(o->split <= ROWS_MOST_SPLIT, "rows of %u CTAs; .split is at most %d", o->split, ROWS_MOST_SPLIT);
	ROWS_RULE(o->stages <= MOST_STAGES, "%u rows in shared memory; .stages is 1 to %d", o->stages, MOST_STAGES);
	if (rows_kernels[o->kernel].takes & O_EPS)
		o->eps = o->eps > 0 ? o->eps : 1e-5f;
	o->heads = o->heads ? o->heads : 1;
	o->k = o->k || !(rows_kernels[o->kernel].takes & O_K) ? o->k : 1;
	o->name = o->name ? o->name : "rows";
	ROWS_RULE(!o->chunks || !o->place || o->place == CPTX_ROWS_SHARED, ".chunks = %u; only rows in shared memory have any",
	          o->chunks);
	const bool is_tiled = (!o->place || o->place == CPTX_ROWS_MEMORY) && (!o->threads || o->threads == ROWS_TILE_THREADS) &&
	                      (!o->per_row || o->per_row == ROWS_TILE_THREADS) && o->split <= 1;
	ROWS_RULE(o->kernel != CPTX_ROWS_TRANSPOSE || is_tiled,
	          "transpose works on tiles, by CTAs of %d threads: .place = CPTX_ROWS_MEMORY, .split = 1", ROWS_TILE_THREADS);
	ROWS_RULE(o->kernel != CPTX_ROWS_TRANSPOSE || o->in == o->out,
	          "transpose writes .%s and reads .%s; both are the same type", cptx_type_name(o->out), cptx_type_name(o->in));
	return cptx_name_check("kernel", o->name, err);
}

bool rows_complete(cptx_rows_opt *o, const cptx_target *target, cptx_error *err)
{
	ROWS_RULE((unsigned)o->kernel < CPTX_ROWS_KERNELS, ".kernel is %u; <cptx/rows.def> lists the kernels",
	          (unsigned)o->kernel);
	if (!check_types(o, err) || (o->kernel == CPTX_ROWS_OWN ? !check_own(o, err) : !check_operands(o, err)) ||
	    !check_numbers(o, err))
		return false;
	if (target && target->number < 80)
		return error_set(err, CPTX_E_TARGET, NOWHERE, "rows: %s is not served; sm_80 and later are", target->name);
	if (target && o->prefetch && target->number < 90)
		return error_set(err, CPTX_E_TARGET, NOWHERE, "rows: %s has no bulk prefetch; .prefetch is of sm_90 and later",
		                 target->name);
	if (target && o->out == CPTX_E4M3 && target->number < 89)
		return error_set(err, CPTX_E_TARGET, NOWHERE, "rows: %s cannot convert to .e4m3; sm_89 and later can", target->name);
	if (o->kernel != CPTX_ROWS_OWN)
		o->body = rows_kernels[o->kernel].body;
	return true;
}

uint32_t rows_align_of(const cptx_rows_opt *o)
{
	const uint32_t each = 16 / rows_bytes(o->in), dense = o->n & (~o->n + 1);

	return MIN(o->align ? o->align : dense, each);
}

enum cptx_type rows_type_of(const cptx_rows_opt *o, enum cptx_rows_operand operand)
{
	switch (rows_operands[operand].type) {
	case ROWS_IN: return o->in;
	case ROWS_OUT: return o->out;
	case ROWS_WEIGHT: return o->weight;
	case ROWS_INDEX: return o->index;
	default: return CPTX_F32;
	}
}

/* Matrices of a set whose rows bulk copies can bring; vectors whose parts they can. */
static uint32_t copies_of(const cptx_rows_opt *o, const rows_shape *s, uint32_t set, enum rows_kind kind)
{
	uint32_t can = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		const uint32_t size = rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i));
		const bool whole =
			s->each * size % 16 == 0 || (kind == ROWS_VECTOR && o->n * size % 16 == 0 && s->part * size % 16 == 0);
		if (rows_has(set & ~(uint32_t)(R_COS | R_SIN), i) && rows_operands[i].kind == kind && whole)
			can |= 1u << i;
	}
	return can;
}

uint32_t rows_count(uint32_t set, enum rows_kind kind)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		n += rows_has(set, i) && rows_operands[i].kind == kind;
	return n;
}

/* What a CTA's threads hold of a row at once. */
static void set_turns(const cptx_rows_opt *o, rows_shape *s)
{
	enum { TURN = 2 /* vectors of a thread */, KEPT = 32 /* elements of a thread that registers keep beside a ring */ };
	const uint32_t vectors = (s->part + s->each - 1) / s->each, own = (vectors + o->per_row - 1) / o->per_row;
	const uint32_t kept = own * s->each * rows_count(s->reads, ROWS_MATRIX);

	s->flows = s->ring && o->chunks;
	s->keeps = o->place == CPTX_ROWS_REGISTERS || (s->ring && !s->sums && !s->flows && (own <= TURN || kept <= KEPT));
	s->turn = s->keeps ? s->part : MIN(TURN * o->per_row, vectors) * s->each;
	s->turns = s->resident ? (s->part + s->turn - 1) / s->turn : 1;
	s->held = s->flows && s->turns > o->chunks ? s->turns - o->chunks : 0;
}

rows_shape rows_shape_of(const cptx_rows_opt *o)
{
	const rows_kernel *kernel = &rows_kernels[o->kernel];
	const bool own = o->kernel == CPTX_ROWS_OWN;
	rows_shape s = { .reads = own ? o->reads : kernel->reads | (o->with & kernel->may_read),
		             .writes = own ? o->writes : kernel->writes | (o->with & kernel->may_write),
		             .local = own ? o->local : kernel->local,
		             .each = 16 / rows_bytes(o->in),
		             .resident = o->place != CPTX_ROWS_MEMORY,
		             .ring = o->place == CPTX_ROWS_SHARED };

	s.sums = s.writes & R_SUMS;
	s.partible = !own && !s.local && !s.sums && !rows_count(s.writes, ROWS_MATRIX);
	s.sum_pitch = (o->n + s.each - 1) / s.each * s.each;
	if (!o->per_row)
		return s;
	s.parts = o->split > 1 && s.partible;
	s.cluster = o->split > 1 && !s.local && !s.parts;
	s.rows = o->threads / o->per_row;
	s.part = o->split > 1 ? (o->n + o->split * s.each - 1) / (o->split * s.each) * s.each : o->n;
	s.even = s.part * o->split == o->n;
	set_turns(o, &s);
	if (!s.ring)
		return s;
	s.copied = copies_of(o, &s, s.reads, ROWS_MATRIX);
	s.shared_vectors = copies_of(o, &s, s.reads, ROWS_VECTOR);
	if (rows_smem(o, &s) > ROWS_SMEM || (o->rows_each == 1 && !s.sums)) /* then L2 has them */
		s.shared_vectors = 0;
	return s;
}

uint32_t rows_elements(const cptx_rows_opt *o, const rows_shape *s)
{
	const uint32_t vectors = (s->turn + s->each - 1) / s->each;

	return (vectors + o->per_row - 1) / o->per_row * s->each;
}

/* Of shapes whose shared memory holds chunks of rows. */
static bool check_chunks(const cptx_rows_opt *o, const rows_shape *s, cptx_error *err)
{
	enum { MOST_CHUNKS = 16, MOST_KEPT = 64 /* registers of a thread */ };
	const uint32_t kept = s->held * rows_elements(o, s) * rows_count(s->copied, ROWS_MATRIX);

	ROWS_RULE(o->stages == 1, ".stages = %u beside .chunks = %u; with these it is 1", o->stages, o->chunks);
	ROWS_RULE(
		o->chunks >= 2 && o->chunks <= MOST_CHUNKS && s->held <= ROWS_MOST_HELD && kept <= MOST_KEPT,
		"%u chunks of rows in shared memory; .chunks is 2 to %d, and a row has %u of %u elements here, of which registers "
		"keep up to %d, and %d elements",
		o->chunks, MOST_CHUNKS, s->turns, s->turn, ROWS_MOST_HELD, MOST_KEPT);
	ROWS_RULE(!s->held || o->kernel != CPTX_ROWS_OWN,
	          "%u chunks of a row that has %u; a body of one's own may change what it read, so that registers keep none",
	          o->chunks, s->turns);
	ROWS_RULE(s->rows == 1, ".chunks are of rows that all threads of a CTA hold; .per_row = %u of %u", o->per_row,
	          o->threads);
	ROWS_RULE(!s->sums && rows_count(s->writes, ROWS_MATRIX),
	          ".chunks are of kernels that write rows, and no sums of columns: .chunks = 0");
	ROWS_RULE(s->even, "%u CTAs for a row of %u elements; .chunks need as many whole vectors in each", o->split, o->n);
	return true;
}

/* Of shapes with rows in shared memory. */
static bool check_ring(const cptx_rows_opt *o, const rows_shape *s, const cptx_target *target, cptx_error *err)
{
	const uint32_t matrices = rows_count(s->reads, ROWS_MATRIX), copied = rows_count(s->copied, ROWS_MATRIX);
	const uint32_t room = target ? target->smem_per_cta : UINT32_MAX;

	if (target && target->number < 90)
		return error_set(err, CPTX_E_TARGET, NOWHERE,
		                 "rows: %s has no bulk copies, which bring rows into shared memory; sm_90 and later have",
		                 target->name);
	ROWS_RULE(o->n % s->each == 0 && rows_align_of(o) == s->each,
	          "rows of %u elements at multiples of %u; bulk copies bring whole vectors of %u elements", o->n,
	          rows_align_of(o), s->each);
	ROWS_RULE(copied == matrices && copied, "the kernel's %u matrices are not all of rows that bulk copies can bring",
	          matrices);
	if (s->flows && !check_chunks(o, s, err))
		return false;
	ROWS_RULE(s->rows <= CPTX_WARP, "%u rows at once in a CTA; lanes of a warp copy them, 32 at most", s->rows);
	const uint32_t fixed = ROWS_STATIC + rows_top_k_static(o, s);
	ROWS_RULE(rows_smem(o, s) + fixed <= room, "%llu bytes of rows in shared memory; a CTA has room for %u",
	          (unsigned long long)rows_smem(o, s), room - fixed);
	return true;
}

bool rows_check_shape(const cptx_rows_opt *o, const cptx_target *target, cptx_error *err)
{
	enum { MOST_ELEMENTS = 128, MOST_CLUSTER = 16, MOST_LISTS = 40 * 1024 };

	ROWS_RULE(o->place && o->threads && o->per_row && o->split &&
	              (o->place != CPTX_ROWS_SHARED || (o->stages && o->rows_each)),
	          "the shape is not chosen: .place, .threads, .per_row, .split, .stages and .rows_each, which cptx_rows_auto "
	          "fills in");
	ROWS_RULE(o->per_row == o->threads || (is_power(o->per_row) && o->per_row <= CPTX_WARP),
	          "rows of %u threads in CTAs of %u; .per_row is 1, 2, 4, 8, 16 or 32, or all threads", o->per_row, o->threads);
	const rows_shape s = rows_shape_of(o);
	const int most = s.local ? ROWS_MOST_SPLIT : s.parts ? ROWS_MOST_PARTS : MOST_CLUSTER;
	ROWS_RULE(is_power(o->split) && o->split <= (uint32_t)most, "rows of %u CTAs; .split is a power of two up to %d",
	          o->split, most);
	ROWS_RULE(s.rows == 1 || o->split == 1,
	          "rows of %u threads and of %u CTAs; only all threads of a CTA share a row with others", o->per_row, o->split);
	ROWS_RULE(s.rows == 1 || s.resident, "rows of %u of %u threads stay in registers; those in memory have the whole CTA",
	          o->per_row, o->threads);
	ROWS_RULE((uint64_t)(o->split - 1) * s.part < o->n, "%u CTAs for a row of %u elements: the last one would have none",
	          o->split, o->n);
	const uint32_t elements = rows_elements(o, &s) * (s.sums ? s.turns : 1);
	ROWS_RULE(elements <= MOST_ELEMENTS, "%u elements of a row in each thread; registers have room for %d", elements,
	          MOST_ELEMENTS);
	ROWS_RULE(rows_top_k_static(o, &s) <= MOST_LISTS,
	          "%u rows at once in a CTA, each with a list of %u bytes; there is room for %d: .threads = .per_row", s.rows,
	          rows_top_k_static(o, &s) / s.rows, MOST_LISTS);
	if (s.ring && !check_ring(o, &s, target, err))
		return false;
	if (s.cluster && target && !target->cluster)
		return error_set(err, CPTX_E_TARGET, NOWHERE,
		                 "rows: %s has no clusters, by which %u CTAs would share a row; .split = 1", target->name, o->split);
	ROWS_RULE(!s.cluster || !target || o->split <= target->cluster || target->family != 12,
	          "a cluster of %u CTAs; %s has at most %u", o->split, target->name, target->cluster);
	ROWS_RULE(o->out != CPTX_E2M1 ||
	              (o->n % 8 == 0 && rows_align_of(o) == s.each && o->place == CPTX_ROWS_REGISTERS && o->split == 1),
	          "rows of %u elements at multiples of %u, in .e2m1; these are in registers of one CTA, and whole vectors of 8",
	          o->n, rows_align_of(o));
	ROWS_RULE(o->min_ctas <= 32, "%u CTAs on a multiprocessor; it holds 32", o->min_ctas);
	return true;
}

/* ---- parameters ---- */

/* The parameter that is the address of an operand. */
static cptx_param_row address_row(unsigned operand)
{
	const size_t offset = offsetof(rows_args, at) + operand * sizeof(uint64_t);

	return (cptx_param_row){
		rows_operands[operand].name, "rows_args", CPTX_PARAM_SCALAR, CPTX_PTR, (uint32_t)offset, sizeof(uint64_t), 0
	};
}

size_t rows_table(const rows_shape *s, cptx_param_row table[ROWS_PARAMS])
{
	const uint32_t all = s->reads | (s->writes & ~(uint32_t)R_SUMS);
	size_t n = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(all, i))
			table[n++] = address_row(i);
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(all, i) && rows_operands[i].kind == ROWS_MATRIX)
			table[n++] = (cptx_param_row){ rows_operands[i].stride_name,
				                           "rows_args",
				                           CPTX_PARAM_SCALAR,
				                           CPTX_U32,
				                           (uint32_t)(offsetof(rows_args, stride) + i * sizeof(uint32_t)),
				                           sizeof(uint32_t),
				                           0 };
	table[n++] = (cptx_param_row)CPTX_PARAM_ROW(rows_args, CPTX_U32, row_count);
	if (s->sums || s->parts)
		table[n++] = (cptx_param_row)CPTX_PARAM_ROW(rows_args, CPTX_PTR, workspace);
	return n;
}

size_t rows_sum_table(const rows_shape *s, cptx_param_row table[ROWS_PARAMS])
{
	size_t n = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(s->writes & R_SUMS, i))
			table[n++] = address_row(i);
	table[n++] = (cptx_param_row)CPTX_PARAM_ROW(rows_args, CPTX_PTR, workspace);
	table[n++] = (cptx_param_row)CPTX_PARAM_ROW(rows_args, CPTX_U32, sums);
	return n;
}

/* ---- plans ---- */

static uint64_t row_bytes(const cptx_rows_opt *o, uint32_t set)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++)
		if (rows_has(set, i) && rows_operands[i].kind != ROWS_VECTOR)
			bytes += (rows_operands[i].kind == ROWS_MATRIX ? rows_packed(o, i) ? o->n / 2 : o->n : rows_scalars(o, i)) *
			         (uint64_t)rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i));
	return bytes;
}

/* A cluster lies in a GPC, which has 16 multiprocessors or a few more, and one of them often fewer: of an H100's 132 an
 * eleventh is left over by clusters of 4 and more.  CTAs that take many rows each must all be there at once, so that fewer
 * than there could be is little lost, and more is a second round of all rows. */
uint32_t rows_units_at_once(const cptx_rows_opt *o, const rows_shape *s, uint32_t sms, uint32_t ctas)
{
	enum { GPC = 16, PAIR = 2, LEFT_OVER = 11 };
	const uint32_t room = s->cluster && o->split > PAIR && sms >= GPC ? sms - sms / LEFT_OVER : sms;

	return MAX(room / o->split * MAX(ctas, 1u), s->cluster ? 1u : MAX(sms * MAX(ctas, 1u) / o->split, 1u));
}

static uint32_t combine_ctas(const cptx_rows_opt *o, uint32_t rows)
{
	const uint32_t each = o->kernel == CPTX_ROWS_TOP_K ? 1 : ROWS_COMBINE_THREADS / o->split;

	return (rows + each - 1) / each;
}

static cptx_rows_plan plan_of(const cptx_rows_choice *c, uint32_t rows, uint32_t sms)
{
	const cptx_rows_opt *o = &c->opt;
	const rows_shape s = rows_shape_of(o);
	cptx_rows_plan p = { .place = o->place,
		                 .threads = o->threads,
		                 .per_row = o->per_row,
		                 .split = o->split,
		                 .min_ctas = o->min_ctas,
		                 .elements = rows_elements(o, &s),
		                 .reads = s.reads,
		                 .writes = s.writes,
		                 .launches = rows_launches(&s),
		                 .stages = s.ring ? o->stages : 0,
		                 .rows_each = s.ring && !s.sums ? o->rows_each : 0,
		                 .smem = (uint32_t)rows_smem(o, &s),
		                 .chunks = s.flows ? o->chunks : 0 };
	uint32_t units = (rows + s.rows - 1) / s.rows;

	if (s.ring && !s.sums) {
		units = (units + o->rows_each - 1) / o->rows_each;
	} else if (s.sums) { /* as few as need no more rounds */
		const uint32_t most = rows_units_at_once(o, &s, sms, c->ctas_per_sm), rounds = MAX((units + most - 1) / most, 1u);
		/* of as many as there may be, so that it does not fall with the number of rows */
		const uint64_t groups = rows_sums_of(&s, MAX(MIN(units, most), 1u) * o->split, o->split);
		p.workspace = groups * s.sum_pitch * 4 * rows_sum_operands(&s);
		units = MAX((units + rounds - 1) / rounds, 1u);
	}
	if (s.parts)
		p.workspace = (uint64_t)rows * o->split * rows_part_bytes(o);
	if (o->kernel == CPTX_ROWS_TRANSPOSE)
		units = (rows + ROWS_TILE - 1) / ROWS_TILE * ((o->n + ROWS_TILE - 1) / ROWS_TILE);
	p.grid = units * o->split;
	p.bytes = rows * row_bytes(o, s.reads | s.writes);
	return p;
}

bool cptx_rows_check_(const cptx_rows_opt *opt, const cptx_target *target, uint32_t rows, uint32_t sms, cptx_rows_plan *plan,
                      size_t size, cptx_error *err)
{
	cptx_rows_choice c;

	if (!rows_auto(opt, target, rows, sms, &c, 1, err))
		return false;
	const cptx_rows_plan here = plan_of(&c, rows, sms ? sms : 132);
	if (plan)
		RESULT_FILL(plan, size, &here);
	return true;
}

uint32_t cptx_rows_bandwidth(const cptx_device_info *info)
{
	if (!info)
		return 0;
	const double peak = 2.0 * info->memory_clock_khz * info->memory_bus_bits / 8 * 1e-6; /* two transfers a clock */

	return (uint32_t)(0.89 * peak);
}

/* ---- kernels and launches ---- */

static bool read_whole(cptx_rows_opt *o, const cptx_rows_opt *given, const cptx_target *target, cptx_error *err)
{
	return IS_GIVEN(given, "options struct", NOWHERE, err) && OPTIONS_READ(cptx_rows_opt, o, given, NOWHERE, err) &&
	       rows_complete(o, target, err) && rows_check_shape(o, target, err);
}

char *rows_sum_name(const cptx_rows_opt *o)
{
	const size_t size = strlen(o->name) + sizeof "_sum";
	char *name = NEW_UNSET(char, size);

	if (name)
		snprintf(name, size, "%s_sum", o->name);
	return name;
}

cptx_kernel *cptx_rows_build(cptx_module *m, const cptx_rows_opt *opt, cptx_error *err)
{
	cptx_rows_opt o;

	if (!read_whole(&o, opt, NULL, err))
		return NULL;
	const rows_shape s = rows_shape_of(&o);
	char *name = rows_launches(&s) > 1 ? rows_sum_name(&o) : NULL;
	if (rows_launches(&s) > 1 && !name) {
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory");
		return NULL;
	}
	cptx_kernel *k = rows_build(m, &o);
	if (s.sums)
		rows_build_sum(m, &o, name);
	else if (s.parts)
		rows_build_combine(m, &o, name);
	free(name);
	const cptx_error *e = cptx_module_error(m);
	if (e && err)
		*err = *e;
	return e ? NULL : k;
}

uint32_t rows_align_at(const cptx_rows_matrix *m, uint32_t size, uint32_t n, uint32_t most)
{
	const uint64_t stride = (m->stride ? m->stride : n) * size;
	uint32_t align = most;

	while (align > 1 && (m->address % ((uint64_t)align * size) || stride % ((uint64_t)align * size)))
		align /= 2;
	return align;
}

static bool check_matrix(const cptx_rows_opt *o, const cptx_rows_matrix *m, unsigned operand, uint32_t rows, cptx_error *err)
{
	const char *name = rows_operands[operand].name;
	const uint32_t size = rows_bytes(rows_type_of(o, (enum cptx_rows_operand)operand)), n = rows_columns(o, operand, rows);
	/* without .align, transposition does not ask for any */
	const uint32_t align =
		o->kernel == CPTX_ROWS_TRANSPOSE && !o->align ? 1 : rows_align_of(o) / (rows_packed(o, operand) ? 2 : 1);
	const uint64_t stride = m->stride ? m->stride : n;

	ROWS_RULE(m->address, "the problem has no address of %s", name);
	ROWS_RULE(m->address % size == 0, "%s at 0x%llx is no multiple of its elements' %u bytes", name,
	          (unsigned long long)m->address, size);
	if (rows_operands[operand].kind != ROWS_MATRIX) {
		ROWS_RULE(m->address % 16 == 0, "%s at 0x%llx is no multiple of 16 bytes", name, (unsigned long long)m->address);
		ROWS_RULE(!m->stride, "%s has a stride of %llu; only matrices have strides", name, (unsigned long long)m->stride);
		return true;
	}
	ROWS_RULE(stride * size <= UINT32_MAX, "%s has a stride of %llu elements; it is at most 2^32 - 1 bytes", name,
	          (unsigned long long)stride);
	ROWS_RULE(
		rows_align_at(m, size, n, align) >= align,
		"rows of %s, at 0x%llx with a stride of %llu elements, do not begin at multiples of %u elements: say .align = %u",
		name, (unsigned long long)m->address, (unsigned long long)stride, align, rows_align_at(m, size, n, align));
	return true;
}

/* A result at the place of an input of another type, or one that is read again later. */
static bool check_in_place(const cptx_rows_opt *o, const rows_shape *s, const cptx_rows_problem *p, cptx_error *err)
{
	for (unsigned w = 0; w < CPTX_ROWS_OPERANDS; w++)
		for (unsigned r = 0; r < CPTX_ROWS_OPERANDS; r++) {
			if (!rows_has(s->writes, w) || !rows_has(s->reads, r) || p->at[w].address != p->at[r].address || !p->rows)
				continue;
			ROWS_RULE(o->kernel != CPTX_ROWS_TRANSPOSE, "y in place of x, which transpose reads in another order");
			ROWS_RULE(rows_type_of(o, (enum cptx_rows_operand)w) == rows_type_of(o, (enum cptx_rows_operand)r) &&
			              p->at[w].stride == p->at[r].stride && rows_operands[w].kind == rows_operands[r].kind,
			          "%s in place of %s, which has another type or stride", rows_operands[w].name, rows_operands[r].name);
			ROWS_RULE(s->resident || s->local,
			          "%s in place of %s, of which rows in memory are read again: .place = "
			          "CPTX_ROWS_REGISTERS, or an address of its own",
			          rows_operands[w].name, rows_operands[r].name);
		}
	return true;
}

static bool fill_args(const cptx_rows_opt *o, const rows_shape *s, const cptx_rows_problem *p, const cptx_rows_plan *plan,
                      rows_args *a, cptx_error *err)
{
	*a = (rows_args){ .workspace = p->workspace, .row_count = p->rows };
	a->sums = p->rows ? rows_sums_of(s, plan->grid, o->split) : 0;
	for (unsigned i = 0; i < CPTX_ROWS_OPERANDS; i++) {
		if (!rows_has(s->reads | s->writes, i)) {
			ROWS_RULE(!p->at[i].address, "the problem has an operand %s, and the kernel none: .with", rows_operands[i].name);
			continue;
		}
		if (!p->rows && rows_operands[i].kind != ROWS_VECTOR) /* it has no rows, and may have no address */
			continue;
		if (!check_matrix(o, &p->at[i], i, p->rows, err))
			return false;
		a->at[i] = p->at[i].address;
		a->stride[i] = (uint32_t)((p->at[i].stride ? p->at[i].stride : rows_columns(o, i, p->rows)) *
		                          rows_bytes(rows_type_of(o, (enum cptx_rows_operand)i)));
	}
	ROWS_RULE(!plan->workspace || p->workspace, "the problem has no workspace; %s need %llu bytes",
	          s->sums ? "sums of columns" : "parts of rows", (unsigned long long)plan->workspace);
	ROWS_RULE(p->workspace % 16 == 0, "the workspace at 0x%llx is no multiple of 16 bytes",
	          (unsigned long long)p->workspace);
	return check_in_place(o, s, p, err);
}

cptx_launch *cptx_rows_launch(const cptx_program *program, cptx_device *dev, const cptx_rows_opt *opt,
                              const cptx_rows_problem *problem, uint32_t number, cptx_error *err)
{
	cptx_rows_choice c;
	cptx_rows_problem p;
	cptx_param_row table[ROWS_PARAMS];
	rows_args args;

	if (!IS_GIVEN(program, "program", NOWHERE, err) || !IS_GIVEN(dev, "device", NOWHERE, err) ||
	    !IS_GIVEN(problem, "problem", NOWHERE, err) || !OPTIONS_READ(cptx_rows_problem, &p, problem, NOWHERE, err))
		return NULL;
	const cptx_device_info *info = cptx_device_get_info(dev);
	if (!rows_auto(opt, cptx_target_find(info->target ? info->target : ""), p.rows, info->sms, &c, 1, err))
		return NULL;
	const rows_shape s = rows_shape_of(&c.opt);
	const cptx_rows_plan plan = plan_of(&c, p.rows, info->sms);
	if (number >= plan.launches || (!p.rows && (!number || !s.sums))) {
		error_set(err, CPTX_E_ARG, NOWHERE, "rows: launch %u of %u%s", number, plan.launches,
		          p.rows   ? "; they count from 0"
		          : s.sums ? ": of no rows there is only that of the sums, 1"
		                   : ": of no rows there is none");
		return NULL;
	}
	if (!fill_args(&c.opt, &s, &p, &plan, &args, err))
		return NULL;
	const cptx_params_part part = { .rows = table,
		                            .n = number && s.sums ? rows_sum_table(&s, table) : rows_table(&s, table),
		                            .args = &args };
	if (!number)
		return cptx_params_launch(program, dev, c.opt.name, &part, 1, CPTX_LAUNCH(.grid = { plan.grid }), err);
	char *name = rows_sum_name(&c.opt);
	const uint32_t x = s.sums ? (c.opt.n + ROWS_SUM_COLUMNS - 1) / ROWS_SUM_COLUMNS : combine_ctas(&c.opt, p.rows);
	const uint32_t y = s.sums ? rows_sum_operands(&s) : 1;
	cptx_launch *l = cptx_params_launch(program, dev, name, &part, 1, CPTX_LAUNCH(.grid = { x, y }), err);
	free(name);
	return l;
}
