/* SPDX-License-Identifier: MIT */
/* A kernel around one tcgen05.mma: operands come as images of tensor memory and shared memory. */
#include "tcgen05_mma.h"

#include <math.h>

enum {
	IMAGE = 512 * 128,
	A_BYTES = 32768,
	B_BYTES = 65536,
	SMEM = A_BYTES + B_BYTES,
	A_AT = 256,
	SA_AT = 288,
	SB_AT = 320,
	META_AT = 352
};

/* Of one CTA: both are copied there, and tensor memory is copied back. */
typedef struct image {
	uint32_t tmem[512][128];
	unsigned char smem[SMEM];
} image;

typedef struct operands {
	unsigned k, ka, rows, abits;
	uint32_t a[256 * 96], b[256 * 128], d[256 * 256], sa[256 * 6], sb[256 * 6];
	uint16_t at[256 * 64];
	image in[2], out[2];
} operands;

static unsigned shift_of(const mma_case *c) { return c->zero >> 56 & 0x3f; }
/* Columns of B in the shared memory of a CTA. */
static unsigned columns_of_b(const mma_case *c) { return c->n / c->ctas + (shift_of(c) ? 32 : 0); }

static cptx_insn_desc described(const mma_case *c)
{
	return (cptx_insn_desc){ .kind = c->kind,
		                     .m = c->m,
		                     .n = c->n,
		                     .a = c->a,
		                     .b = c->b,
		                     .d = c->d,
		                     .scale = c->scale,
		                     .a_mn_major = c->a_mn,
		                     .b_mn_major = c->b_mn,
		                     .a_negated = c->negate,
		                     .sparse = c->sparse,
		                     .selector = c->selector,
		                     .k96 = c->k96,
		                     .a_scale_id = c->a_id,
		                     .b_scale_id = c->b_id,
		                     .reuse_shift = !shift_of(c)        ? 0
		                                    : shift_of(c) <= 8  ? 8
		                                    : shift_of(c) <= 16 ? 16
		                                                        : 32,
		                     .ctas = c->ctas,
		                     .ws = c->ws };
}

static uint32_t idesc_of(const mma_case *c)
{
	cptx_insn_desc d = described(c);
	cptx_error err = { 0 };
	uint32_t word;

	ck_assert_msg(cptx_insn_desc_encode(&d, &word, &err), "%s", err.text);
	return word;
}

static cptx_smem_elem elem_of(const mma_case *c, bool is_b)
{
	enum cptx_type type = is_b ? c->b : c->a;
	unsigned bits = type == CPTX_E2M1 ? 4 : type == CPTX_E2M3 || type == CPTX_E3M2 ? 6 : (unsigned)cptx_type_bits(type);
	bool packed = c->kind == CPTX_TCGEN05_MXF4 || c->kind == CPTX_TCGEN05_MXF4NVF4;

	return (cptx_smem_elem){ .bits = (uint8_t)bits, .mn_major = is_b ? c->b_mn : c->a_mn, .padded = bits < 8 && !packed };
}

static cptx_smem_desc desc_of(const mma_case *c, bool is_b, unsigned rows, unsigned k)
{
	cptx_smem_elem e = elem_of(c, is_b);
	cptx_smem_desc d = { .arch = CPTX_DESC_TCGEN05, .swizzle = c->swizzle };
	unsigned per = e.padded ? 16 : 128u / e.bits, span = cptx_swizzle_get(c->swizzle)->span;

	if (e.mn_major && e.bits == 32)
		d.swizzle = CPTX_SWIZZLE_128B_ATOM_32B, d.sbo = 512, d.lbo = 512 * (k / 4);
	else if (e.mn_major && d.swizzle)
		d.sbo = 8 * span, d.lbo = 8 * span * (k / 8);
	else if (e.mn_major)
		d.sbo = 128, d.lbo = 128 * (rows / per);
	else if (d.swizzle)
		d.sbo = 8 * span;
	else
		d.lbo = 128, d.sbo = 128 * (k / per);
	return d;
}

static void put_bits(unsigned char *p, cptx_smem_place at, unsigned bits, uint32_t v)
{
	for (unsigned i = 0; i < bits; i++) {
		unsigned bit = at.bit + i;
		p[at.byte + bit / 8] = (unsigned char)((p[at.byte + bit / 8] & ~(1u << bit % 8)) | (v >> i & 1) << bit % 8);
	}
}

static uint32_t pattern(enum cptx_type type, uint64_t *seed)
{
	static const double ue4m3[] = { 0.5, 1, 1.5, 2 };

	if (type == CPTX_UE8M0)
		return 126 + (uint32_t)(form_random(seed) % 3);
	if (type == CPTX_UE4M3)
		return (uint32_t)form_bits(type, ue4m3[form_random(seed) % 4]);
	return (uint32_t)form_pattern(type, FILL_SMALL, seed);
}

static void fill(operands *o, const mma_case *c, uint64_t *seed)
{
	for (unsigned i = 0; i < c->m * o->ka; i++)
		o->a[i] = pattern(c->a, seed);
	for (unsigned i = 0; i < c->ctas * columns_of_b(c) * o->k; i++)
		o->b[i] = pattern(c->b, seed);
	for (unsigned i = 0; i < (unsigned)c->m * c->n; i++)
		o->d[i] = pattern(c->d, seed);
	for (unsigned i = 0; i < 256u * c->vec; i++) {
		o->sa[i] = pattern(c->scale, seed);
		o->sb[i] = pattern(c->scale, seed);
	}
}

/* Puts an element into tensor memory wherever the layout has it. */
static void put_all(operands *o, const cptx_frag *what, unsigned column, const uint32_t *v, unsigned shift)
{
	cptx_frag_map m;
	cptx_error err = { 0 };

	ck_assert_msg(cptx_frag_resolve(what, &m, &err), "%s", err.text);
	for (unsigned l = 0; l < m.lanes; l++)
		for (unsigned r = 0; r < m.regs; r++)
			for (unsigned s = 0; s < m.slots; s++) {
				cptx_cell cell;
				if (!cptx_frag_cell(&m, (cptx_place){ (uint16_t)l, (uint16_t)r, (uint16_t)s }, &cell))
					continue;
				o->in[l / 128].tmem[column + r][l % 128] |= v[cell.row * m.cols + cell.col] << shift
				                                                                            << (m.first + s) * m.bits;
			}
}

/* Factors of each CTA, in the words of the manual: bytes, four rows of 32 to a column, copies in all quarters of the lanes.
 */
static void put_scales(operands *o, const mma_case *c, bool is_b)
{
	unsigned rows = is_b ? c->n : o->rows, id = is_b ? c->b_id : c->a_id;
	bool halves = is_b && c->ctas == 2 && c->m == 128;

	for (unsigned cta = 0; cta < c->ctas; cta++)
		for (unsigned row = 0; row < rows; row++)
			for (unsigned v = 0; v < c->vec; v++) {
				unsigned half = halves ? row / (rows / 2) : 0, r = halves ? row % (rows / 2) : row;
				unsigned column = (is_b ? SB_AT : SA_AT) + r / 32 + (id + v) / 4 * 4 * ((rows + 127) / 128);
				uint32_t factor = is_b ? o->sb[row * c->vec + v] : o->sa[(cta * rows + row) * c->vec + v];
				for (unsigned copy = 0; copy < (halves ? 2 : 4); copy++)
					o->in[cta].tmem[column][64 * half + 32 * copy + r % 32] |= factor << (id + v) % 4 * 8;
			}
}

static void put_smem(operands *o, const mma_case *c, bool is_b)
{
	unsigned rows = is_b ? columns_of_b(c) : o->rows, k = is_b ? o->k : o->ka;
	cptx_smem_desc d = desc_of(c, is_b, rows, k);
	cptx_smem_elem e = elem_of(c, is_b);

	for (unsigned i = 0; i < c->ctas; i++)
		for (unsigned r = 0; r < rows; r++)
			for (unsigned j = 0; j < k; j++) {
				cptx_smem_place at = cptx_smem_desc_at(&d, e, r, j);
				ck_assert_uint_lt(at.byte + 4, is_b ? B_BYTES : A_BYTES);
				put_bits(o->in[i].smem + (is_b ? A_BYTES : 0), at, e.bits, (is_b ? o->b : o->a)[(i * rows + r) * k + j]);
			}
}

static cptx_frag frag_of(const operands *o, const mma_case *c, enum cptx_frag_kind kind)
{
	return (cptx_frag){ .kind = kind,
		                .m = c->m,
		                .n = c->n,
		                .k = (uint16_t)o->k,
		                .bits = (uint8_t)o->abits,
		                .sparse = c->sparse,
		                .ctas = c->ctas,
		                .ws = c->ws };
}

/* An index of a row: beside D's row, which may have copies or half of the lanes; of elements of 16 bits or more, those of
 * eight rows and the eight behind them share eight lanes, and the other lanes have the second half of the row. */
static void put_index(operands *o, const mma_case *c, unsigned row, unsigned j, uint32_t code)
{
	unsigned cta = row / o->rows, r = row % o->rows, lane = r, bit = 2 * j, copies = c->ws ? 128 / c->m : 1;

	if (!c->ws && o->rows == 64)
		lane = r / 16 * 32 + r % 16;
	if (o->abits >= 16) {
		unsigned in_half = o->k / 4, width = o->abits == 32 ? 4 : 2;
		bit = j % in_half * width + lane / 8 % 2 * 16 + 32 * c->selector;
		lane = lane / 16 * 16 + lane % 8 + j / in_half * 8;
	}
	for (unsigned i = 0; i < copies; i++)
		o->in[cta].tmem[META_AT + bit / 32][lane + i * o->rows] |= code << bit % 32;
}

/* Two of four elements of each row are there, or one of two, or two pairs of four. */
static void put_meta(operands *o, const mma_case *c, uint64_t *seed)
{
	unsigned pair = o->abits == 4 ? 2 : 1, n = o->ka / pair;
	uint32_t last = 0;

	for (unsigned row = 0; row < c->m; row++)
		for (unsigned j = 0; j < n; j++) {
			uint16_t *at = &o->at[row * o->ka + j * pair];
			uint32_t code =
				j & 1 ? last + 1 + (uint32_t)(form_random(seed) % (3 - last)) : (uint32_t)(form_random(seed) % 3);
			if (o->abits == 32) {
				code = form_random(seed) & 1 ? 14 : 4;
				*at = (uint16_t)(2 * j + (code == 14));
			} else {
				for (unsigned i = 0; i < pair; i++)
					at[i] = (uint16_t)((j / 2 * 4 + code) * pair + i);
			}
			put_index(o, c, row, j, last = code);
		}
}

static void lay_out(operands *o, const mma_case *c, uint64_t *seed)
{
	cptx_frag what = frag_of(o, c, CPTX_FRAG_TMEM_D);

	put_all(o, &what, 0, o->d, 0);
	put_smem(o, c, true);
	if (c->a_tmem) {
		what.kind = CPTX_FRAG_TMEM_A;
		memset(&o->in[0].tmem[A_AT], 0, 32 * sizeof o->in[0].tmem[0]);
		put_all(o, &what, A_AT, o->a, o->abits == 8 && c->a == CPTX_E2M1 ? 2 : 0);
	} else {
		put_smem(o, c, false);
	}
	for (unsigned side = 0; c->vec && side < 2; side++)
		put_scales(o, c, side);
	if (c->sparse)
		put_meta(o, c, seed);
}

static uint64_t desc_word(const mma_case *c, bool is_b, unsigned rows, unsigned k)
{
	cptx_smem_desc d = desc_of(c, is_b, rows, k);
	cptx_error err = { 0 };
	uint64_t word;

	ck_assert_msg(cptx_smem_desc_encode(&d, &word, &err), "%s", err.text);
	return word;
}

static void put_mma(form_text *t, const operands *o, const mma_case *c)
{
	char group = c->ctas == 2 ? '2' : '1';

	form_put(t, "mov.u64 %%rd4, %llu; cvt.u64.u32 %%rd5, %%r6; shr.u64 %%rd5, %%rd5, 4; or.b64 %%rd4, %%rd4, %%rd5;\n",
	         (unsigned long long)desc_word(c, false, o->rows, o->ka));
	form_put(t, "mov.u64 %%rd6, %llu; add.u64 %%rd5, %%rd5, %u; or.b64 %%rd6, %%rd6, %%rd5;\n",
	         (unsigned long long)desc_word(c, true, columns_of_b(c), o->k), A_BYTES / 16);
	form_put(t,
	         "mov.u32 %%r7, %u; setp.%s.u32 %%p3, %%r1, %%r1; mov.b32 %%r8, 0; mov.b32 %%r9, 15; mov.b16 %%h0, 3; mov.u64 "
	         "%%rd7, %llu;\n",
	         idesc_of(c), c->discard ? "ne" : "eq", (unsigned long long)c->zero);
	form_put(t, "tcgen05.mma%s%s.cta_group::%c.kind::%s%s [%%r1], ", c->ws ? ".ws" : "", c->sparse ? ".sp" : "", group,
	         cptx_tcgen05_kind_name(c->kind), c->spelling ? c->spelling : "");
	form_put(t, c->a_tmem ? "[%%r1+%u], %%rd6" : "%%rd4, %%rd6", A_AT);
	if (c->sparse)
		form_put(t, ", [%%r1+%u]", META_AT);
	form_put(t, ", %%r7");
	if (c->off)
		form_put(t, c->ctas == 2 ? ", {%%r9,%%r8,%%r8,%%r8,%%r8,%%r8,%%r8,%%r9}" : ", {%%r9,%%r8,%%r8,%%r8}");
	if (c->vec)
		form_put(t, ", [%%r1+%u], [%%r1+%u]", SA_AT, SB_AT);
	form_put(t, ", %%p3%s%s;\n", c->halve ? ", 1" : "", c->zero ? ", %rd7" : "");
	form_put(t, "tcgen05.commit.cta_group::%c.mbarrier::arrive::one.shared::cluster%s.b64 [mb]%s;\n", group,
	         c->ctas == 2 ? ".multicast::cluster" : "", c->ctas == 2 ? ", %h0" : "");
}

static char *kernel(const operands *o, const mma_case *c)
{
	form_text t = { .cap = 1 << 14 };
	char group = c->ctas == 2 ? '2' : '1';

	t.p = malloc(t.cap);
	ck_assert_ptr_nonnull(t.p);
	form_put(&t,
	         ".shared .align 8 .b64 mb; .shared .b32 slot; mov.u32 %%r6, dyn; mov.u32 %%r10, %%cluster_ctarank;\n"
	         "mul.wide.u32 %%rd1, %%r10, %u; add.u64 %%rd1, %%rd0, %%rd1; setp.eq.u32 %%p0, %%r0, 0; setp.lt.u32 %%p1, "
	         "%%r0, 32;\n"
	         "@!%%p1 bra ALLOCATED; tcgen05.alloc.cta_group::%c.sync.aligned.shared::cta.b32 [slot], 512;\n"
	         "@%%p0 mbarrier.init.shared.b64 [mb], 1; fence.mbarrier_init.release.cluster;\n"
	         "ALLOCATED: bar.sync 0; ld.shared.u32 %%r1, [slot]; and.b32 %%r2, %%r0, 0x60; shl.b32 %%r2, %%r2, 16; add.u32 "
	         "%%r2, %%r2, %%r1;\n"
	         "mul.wide.u32 %%rd2, %%r0, 4; add.u64 %%rd2, %%rd1, %%rd2; mov.u64 %%rd3, %%rd2; mov.u32 %%r5, 0;\n",
	         (unsigned)sizeof(image), group);
	form_put(
		&t,
		"FILL: ld.global.u32 %%r3, [%%rd2]; add.u32 %%r4, %%r2, %%r5; tcgen05.st.sync.aligned.32x32b.x1.b32 [%%r4], "
		"{%%r3};\n"
		"add.u64 %%rd2, %%rd2, 512; add.u32 %%r5, %%r5, 1; setp.lt.u32 %%p2, %%r5, 512; @%%p2 bra FILL;\n"
		"tcgen05.wait::st.sync.aligned; shl.b32 %%r3, %%r0, 2; add.u32 %%r3, %%r3, %%r6; mov.u32 %%r5, 0;\n"
		"COPY: ld.global.u32 %%r4, [%%rd2]; st.shared.u32 [%%r3], %%r4; add.u64 %%rd2, %%rd2, 512; add.u32 %%r3, %%r3, "
		"512;\n"
		"add.u32 %%r5, %%r5, 1; setp.lt.u32 %%p2, %%r5, %u; @%%p2 bra COPY;\n"
		"fence.proxy.async; tcgen05.fence::before_thread_sync;\n"
		"barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; tcgen05.fence::after_thread_sync;\n"
		"add.u32 %%r3, %%r0, %%r10; setp.eq.u32 %%p2, %%r3, 0; @!%%p2 bra WAIT;\n",
		SMEM / 512);
	put_mma(&t, o, c);
	form_put(&t,
	         "WAIT: mbarrier.try_wait.parity.shared.b64 %%p2, [mb], 0; @!%%p2 bra WAIT; tcgen05.fence::after_thread_sync; "
	         "mov.u32 %%r5, 0;\n"
	         "BACK: add.u32 %%r4, %%r2, %%r5; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%%r3}, [%%r4]; "
	         "tcgen05.wait::ld.sync.aligned;\n"
	         "st.global.u32 [%%rd3], %%r3; add.u64 %%rd3, %%rd3, 512; add.u32 %%r5, %%r5, 1; setp.lt.u32 %%p2, %%r5, 256; "
	         "@%%p2 bra BACK;\n"
	         "bar.sync 0; @!%%p1 bra FREED; tcgen05.dealloc.cta_group::%c.sync.aligned.b32 %%r1, 512;\nFREED:\n"
	         "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n",
	         group);
	return t.p;
}

static bool is_zero_column(const mma_case *c, unsigned col)
{
	unsigned n = c->n * c->m / 128u, part = col / n;
	unsigned skip = (c->zero >> 40 & 255) + 1, use = (c->zero >> 48 & 255) + 1,
			 i = (col % n + (c->zero >> 8 * part & 255)) % (skip + use);

	return c->zero >> 39 & 1 && (c->zero >> (32 + part) & 1 ? i < skip : i >= use);
}

static double expected(const operands *o, const mma_case *c, unsigned row, unsigned col, double *magnitude)
{
	double sum = c->discard ? 0 : form_value(c->d, o->d[row * c->n + col]) / (c->halve ? 2 : 1);

	*magnitude = fabs(sum);
	for (unsigned j = 0; j < o->ka; j++) {
		unsigned k = c->sparse ? o->at[row * o->ka + j] : j, v = c->vec ? k * c->vec / o->k : 0;
		double p = form_value(c->a, o->a[row * o->ka + j]) * form_value(c->b, o->b[(col + shift_of(c)) * o->k + k]);
		if (c->vec)
			p *= form_value(c->scale, o->sa[row * c->vec + v]) * form_value(c->scale, o->sb[col * c->vec + v]);
		if (is_zero_column(c, col))
			p = 0;
		*magnitude += fabs(p);
		sum += c->negate ? -p : p;
	}
	return sum;
}

static void compare(const operands *o, const mma_case *c, const image *out)
{
	cptx_frag what = frag_of(o, c, CPTX_FRAG_TMEM_D);
	cptx_frag_map m;

	ck_assert(cptx_frag_resolve(&what, &m, NULL));
	for (unsigned row = 0; row < c->m; row++)
		for (unsigned col = 0; col < c->n; col++) {
			double magnitude, want = expected(o, c, row, col, &magnitude);
			cptx_place p;
			ck_assert(cptx_frag_place(&m, (cptx_cell){ (uint16_t)row, (uint16_t)col }, &p));
			double got = form_value(c->d, out[p.lane / 128].tmem[p.reg][p.lane % 128]);
			unsigned lane = p.lane % 128;
			if (c->off && ((p.lane < 128 && lane < 4) || (p.lane >= 128 && lane >= 96 && lane < 100)))
				want = form_value(c->d, o->d[row * c->n + col]);
			double most = c->d == CPTX_F16 ? magnitude * 0x1p-10 : c->vec ? magnitude * 0x1p-20 : 0;
			ck_assert_msg(fabs(got - want) <= most,
			              "kind %s%s%s m%un%u, %u CTAs, %s: row %u, column %u: %.17g, expected %.17g",
			              cptx_tcgen05_kind_name(c->kind), c->ws ? " ws" : "", c->sparse ? " sparse" : "", c->m, c->n,
			              c->ctas, cptx_type_name(c->a), row, col, got, want);
		}
}

void mma_check(const mma_case *c, uint64_t seed)
{
	operands *o = calloc(1, sizeof *o);
	cptx_insn_desc d = { .kind = c->kind, .sparse = c->sparse, .k96 = c->k96 };
	uint64_t random = seed * 77 + 1;

	ck_assert_ptr_nonnull(o);
	o->k = cptx_insn_desc_k(&d);
	o->ka = c->sparse ? o->k / 2 : o->k;
	o->rows = c->m / c->ctas;
	o->abits = c->k96 ? 4 : 256 / o->ka;
	fill(o, c, &random);
	lay_out(o, c, &random);
	char *body = kernel(o, c);
	memcpy(o->out, o->in, sizeof o->out);
	trial t = { .target = c->k96 ? "sm_103a" : "sm_100a",
		        .decls = ".extern .shared .align 1024 .b8 dyn[];",
		        .body = body,
		        .block = { 128 },
		        .grid = { c->ctas },
		        .cluster = { c->ctas },
		        .dyn_smem = SMEM,
		        .data = o->out,
		        .size = c->ctas * sizeof(image),
		        .opt.seed = seed };
	trial_run(&t);
	ck_assert_msg(t.ok && !t.found[0], "kind %s m%un%u, %u CTAs: %s\n%s\n%s", cptx_tcgen05_kind_name(c->kind), c->m, c->n,
	              c->ctas, t.err.text, t.message, body);
	compare(o, c, o->out);
	free(body);
	free(o);
}

/* ---- random cases ---- */

static enum cptx_type any_type(const enum cptx_type *of, unsigned n, uint64_t *seed) { return of[form_random(seed) % n]; }

static void choose_types(mma_case *c, uint64_t *seed)
{
	static const enum cptx_type halves[] = { CPTX_F16, CPTX_BF16 }, bytes[] = { CPTX_S8, CPTX_U8 },
								small[] = { CPTX_E4M3, CPTX_E5M2, CPTX_E2M3, CPTX_E3M2, CPTX_E2M1 };
	bool narrow = form_random(seed) % 4 == 0;

	c->d = CPTX_F32;
	switch (c->kind) {
	case CPTX_TCGEN05_F16:
		c->a = c->b = narrow ? CPTX_F16 : any_type(halves, 2, seed);
		c->d = narrow ? CPTX_F16 : CPTX_F32;
		break;
	case CPTX_TCGEN05_TF32: c->a = c->b = CPTX_TF32; break;
	case CPTX_TCGEN05_I8:
		c->a = any_type(bytes, 2, seed), c->b = any_type(bytes, 2, seed);
		c->d = CPTX_S32;
		break;
	case CPTX_TCGEN05_F8F6F4:
	case CPTX_TCGEN05_MXF8F6F4:
		c->a = any_type(small, 5, seed), c->b = any_type(small, 5, seed);
		c->d = narrow && c->kind == CPTX_TCGEN05_F8F6F4 ? CPTX_F16 : CPTX_F32;
		break;
	default: c->a = c->b = CPTX_E2M1; break;
	}
}

/* Factors of blocks of 16 or 32 elements, and where their bytes begin. */
static void choose_scales(mma_case *c, uint64_t *seed)
{
	bool nvf4 = c->kind == CPTX_TCGEN05_MXF4NVF4, of_16 = nvf4 && form_random(seed) % 2;

	if (c->kind != CPTX_TCGEN05_MXF8F6F4 && c->kind != CPTX_TCGEN05_MXF4 && !nvf4)
		return;
	c->scale = of_16 && form_random(seed) % 2 ? CPTX_UE4M3 : CPTX_UE8M0;
	c->k96 = c->kind != CPTX_TCGEN05_MXF8F6F4 && !c->sparse && form_random(seed) % 2;
	c->vec = (uint8_t)(c->kind == CPTX_TCGEN05_MXF8F6F4 ? 1 : (of_16 ? 4 : 2) * (c->k96 ? 3 : 2) / 2);
	unsigned step = c->vec == 6 ? 2 : c->vec == 3 ? 1 : c->vec;
	c->a_id = (uint8_t)(form_random(seed) % (4 / step) * step);
	c->b_id = (uint8_t)(form_random(seed) % (4 / step) * step);
	c->spelling = !nvf4 ? ".block_scale" : of_16 ? ".block_scale.block16" : ".block_scale.block32";
}

static uint64_t choose_zeros(const mma_case *c, uint64_t *seed)
{
	unsigned skip = 1 + (unsigned)(form_random(seed) % 7), use = 1 + (unsigned)(form_random(seed) % 7);
	uint64_t word = form_random(seed) % 4 ? UINT64_C(1) << 39 | (uint64_t)(skip - 1) << 40 | (uint64_t)(use - 1) << 48 : 0;

	for (unsigned part = 0; part < 4; part++) {
		bool ones = form_random(seed) % 2;
		word |= (uint64_t)ones << (32 + part) | form_random(seed) % (ones ? skip : use) << 8 * part;
	}
	return word | form_random(seed) % (c->m == 32 ? 17 : 33) << 56;
}

/* Whether the spans of the swizzle are whole, of an MN-major operand, or hold a row. */
static bool fits(const mma_case *c, bool is_b)
{
	cptx_smem_elem e = elem_of(c, is_b);
	unsigned rows = is_b ? columns_of_b(c) : c->m / c->ctas, per = e.padded ? 16 : 128u / e.bits;
	unsigned span = e.bits == 32 && e.mn_major ? 128 : cptx_swizzle_get(c->swizzle)->span;
	cptx_insn_desc d = described(c);

	return e.mn_major ? rows / per * 16 % span == 0
	                  : !c->swizzle || cptx_insn_desc_k(&d) / (c->sparse && !is_b ? 2 : 1) / per * 16 <= span;
}

mma_case mma_random(uint64_t seed)
{
	static const uint16_t rows[] = { 32, 64, 128, 256 };
	uint32_t word;

	for (uint64_t random = seed * 1000003 + 5;;) {
		mma_case c = { .kind = (enum cptx_tcgen05_kind)(form_random(&random) % CPTX_TCGEN05_KINDS) };
		cptx_error err = { 0 };
		choose_types(&c, &random);
		c.ws = form_random(&random) % 3 == 0, c.sparse = form_random(&random) % 2, c.ctas = 1 + form_random(&random) % 2;
		c.m = rows[form_random(&random) % 4];
		c.n = (uint16_t)(c.ws ? UINT64_C(64) << form_random(&random) % 3 : 8 + form_random(&random) % 32 * 8);
		c.swizzle = (enum cptx_swizzle)(form_random(&random) % 4);
		choose_scales(&c, &random);
		c.a_tmem = form_random(&random) % 3 == 0;
		c.a_mn = !c.a_tmem && form_random(&random) % 4 == 0, c.b_mn = form_random(&random) % 4 == 0;
		c.selector = c.sparse && (c.kind == CPTX_TCGEN05_F16 || c.kind == CPTX_TCGEN05_TF32) && form_random(&random) % 2;
		c.negate = c.kind != CPTX_TCGEN05_I8 && form_random(&random) % 4 == 0, c.discard = form_random(&random) % 8 == 0;
		c.off = !c.ws && !c.vec && form_random(&random) % 4 == 0;
		c.zero = c.ws && form_random(&random) % 2 ? choose_zeros(&c, &random) : 0;
		cptx_insn_desc d = described(&c);
		if (cptx_insn_desc_encode(&d, &word, &err) && fits(&c, false) && fits(&c, true))
			return c;
	}
}
