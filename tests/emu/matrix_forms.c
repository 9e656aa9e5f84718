/* SPDX-License-Identifier: MIT */
#include "matrix_forms.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const form_mma[] = {
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
	"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
	"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
	"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
	"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
	"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
	"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
	"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
	"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
	"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32",
	"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32",
	"mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16",
	"mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16",
	"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32",
	"mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16",
	"mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32",
	"mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32",
	"mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
	"mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.u8.s32",
	"mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32",
	"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
	"mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32",
	"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s4.s4.s32",
	"mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32",
	"mma.sync.aligned.m16n8k64.row.col.satfinite.s32.s4.s4.s32",
	"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
	"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc",
	"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc",
	"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc",
	"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
	"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
	"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
	"mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64",
	"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64",
	"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
	"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rz",
	"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64.rm",
	"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.satfinite.s32.s8.s8.s32",
	"mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.u4.u4.s32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32",
	"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e5m2.e4m3.f32",
};
const size_t form_nmma = sizeof form_mma / sizeof *form_mma;

/* ---- spellings ---- */

static bool word(const char **s, char out[32])
{
	size_t n = strcspn(*s, ".");

	if (!**s || n >= 32)
		return false;
	memcpy(out, *s, n);
	out[n] = 0;
	*s += n + ((*s)[n] == '.');
	return true;
}

bool form_is_float(enum cptx_type t)
{
	return t != CPTX_S32 && t != CPTX_S8 && t != CPTX_U8 && t != CPTX_S4 && t != CPTX_U4 && t != CPTX_PRED;
}

static bool resolve(const form *f, enum cptx_frag_kind kind, unsigned bits, cptx_frag_map *map)
{
	cptx_frag what = { .kind = kind, .m = (uint16_t)f->m, .n = (uint16_t)f->n, .k = (uint16_t)f->k, .bits = (uint8_t)bits };

	what.sparse = f->sparse;
	what.vec = (uint8_t)f->vec;
	return cptx_frag_resolve(&what, map, NULL);
}

static unsigned words_of(const cptx_frag_map *m) { return m->regs * (m->reg_bits / 32u); }

static bool resolve_all(form *f)
{
	if (!resolve(f, CPTX_FRAG_MMA_A, f->abits, &f->fa) || !resolve(f, CPTX_FRAG_MMA_B, f->abits, &f->fb) ||
	    !resolve(f, CPTX_FRAG_MMA_C, cptx_type_bits(f->c), &f->fc) ||
	    !resolve(f, CPTX_FRAG_MMA_C, cptx_type_bits(f->d), &f->fd))
		return false;
	if (f->sparse && !resolve(f, CPTX_FRAG_MMA_META, f->abits, &f->fm))
		return false;
	return !f->vec ||
	       (resolve(f, CPTX_FRAG_MMA_SCALE_A, f->abits, &f->fsa) && resolve(f, CPTX_FRAG_MMA_SCALE_B, f->abits, &f->fsb));
}

bool form_parse_types(form *f, const char *opcode)
{
	enum cptx_type type[5];
	unsigned ntype = 0;
	bool in_bytes = false;
	char w[32];

	*f = (form){ .opcode = opcode };
	for (const char *s = opcode; word(&s, w);) {
		enum cptx_type t = !strcmp(w, "b1") ? CPTX_PRED : cptx_type_find(w); /* single bits */
		if (sscanf(w, "m%un%uk%u", &f->m, &f->n, &f->k) == 3)
			continue;
		if (t && ntype < 5)
			type[ntype++] = t;
		else if (!strncmp(w, "sp", 2))
			f->sparse = true, f->ordered = w[2] != 0;
		else if (!strcmp(w, "satfinite"))
			f->saturate = true;
		else if (!strcmp(w, "xor"))
			f->xor_popc = true;
		else if (!strcmp(w, "and"))
			f->and_popc = true;
		else if (!strcmp(w, "kind::f8f6f4") || !strcmp(w, "kind::mxf8f6f4"))
			in_bytes = true;
		else if (!strncmp(w, "scale_vec::", 11))
			f->vec = (unsigned)(w[11] - '0');
	}
	if (ntype == 2) /* wmma of f16: D and C */
		type[3] = type[1], type[1] = type[2] = CPTX_F16, ntype = 4;
	if (ntype < 3 || !f->m)
		return false;
	f->d = type[0], f->a = type[1], f->b = type[2], f->c = ntype > 3 ? type[3] : type[0];
	if (ntype == 5)
		f->scale = type[4];
	f->tf32_pairs = f->sparse && f->a == CPTX_TF32;
	f->abits = f->a == CPTX_E2M1 && !in_bytes ? 4 : cptx_type_bits(f->a);
	f->ka = f->sparse ? f->k / 2 : f->k;
	return true;
}

bool form_parse(form *f, const char *opcode) { return form_parse_types(f, opcode) && resolve_all(f); }

/* ---- the kernel ---- */

enum { LANE = FORM_IN + FORM_OUT };

void form_put(form_text *t, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	t->n += (size_t)vsnprintf(t->p + t->n, t->cap - t->n, format, ap);
	va_end(ap);
	if (t->n >= t->cap)
		abort();
}

static void put_vector(form_text *t, const char *name, unsigned n)
{
	form_put(t, "{");
	for (unsigned i = 0; i < n; i++)
		form_put(t, "%s%%%s%u", i ? ", " : "", name, i);
	form_put(t, "}");
}

static void put_loads(form_text *t, const char *name, const cptx_frag_map *m, unsigned *word)
{
	for (unsigned i = 0; i < m->regs; i++) {
		form_put(t, "ld.global.b%u %%%s%u, [%%in+%u];\n", m->reg_bits, name, i, *word * 4);
		*word += m->reg_bits / 32u;
	}
}

const char *form_reg_type(enum cptx_type t)
{
	return t == CPTX_F64 ? "f64" : t == CPTX_F32 ? "f32" : t == CPTX_S32 ? "s32" : "b32";
}

static void put_call(form_text *t, const form *f)
{
	form_put(t, "%s ", f->opcode);
	put_vector(t, "d", f->fd.regs);
	form_put(t, ", ");
	put_vector(t, "a", f->fa.regs);
	form_put(t, ", ");
	put_vector(t, "b", f->fb.regs);
	form_put(t, ", ");
	put_vector(t, "c", f->fc.regs);
	if (f->sparse)
		form_put(t, ", %%meta, 0");
	if (f->vec)
		form_put(t, ", %%sa, {0, 0}, %%sb, {0, 0}");
	form_put(t, ";\n");
}

char *form_ptx(const form *f, const char *target)
{
	form_text t = { malloc(16384), 0, 16384 };
	unsigned word = 0, at = FORM_IN * 4;
	const char *ab = f->a == CPTX_F64 ? "f64" : "b32";

	if (!t.p)
		return NULL;
	form_put(&t, ".version 8.7\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n", target);
	form_put(&t, ".reg .%s %%a<16>, %%b<16>;\n.reg .%s %%c<16>;\n.reg .%s %%d<16>;\n", ab, form_reg_type(f->c),
	         form_reg_type(f->d));
	form_put(&t, ".reg .b32 %%meta, %%sa, %%sb, %%t, %%s;\n.reg .u64 %%in, %%o;\n");
	form_put(&t, "ld.param.u64 %%in, [p];\nmov.u32 %%t, %%ctaid.x;\nmov.u32 %%s, %%tid.x;\nmad.lo.u32 %%t, %%t, 32, %%s;\n");
	form_put(&t, "mul.wide.u32 %%o, %%t, %u;\nadd.u64 %%in, %%in, %%o;\n", LANE * 4);
	put_loads(&t, "a", &f->fa, &word);
	put_loads(&t, "b", &f->fb, &word);
	put_loads(&t, "c", &f->fc, &word);
	if (f->sparse)
		form_put(&t, "ld.global.b32 %%meta, [%%in+%u];\n", word++ * 4);
	if (f->vec) {
		form_put(&t, "ld.global.b32 %%sa, [%%in+%u];\n", word++ * 4);
		form_put(&t, "ld.global.b32 %%sb, [%%in+%u];\n", word++ * 4);
	}
	put_call(&t, f);
	for (unsigned i = 0; i < f->fd.regs; i++, at += f->fd.reg_bits / 8u)
		form_put(&t, "st.global.b%u [%%in+%u], %%d%u;\n", f->fd.reg_bits, at, i);
	form_put(&t, "ret;\n}\n");
	return t.p;
}

/* ---- fragments ---- */

/* Walks all places of a fragment; `cols` of the array of elements. */
static void pack(const cptx_frag_map *m, const uint64_t *element, unsigned shift, uint32_t *in, unsigned stride)
{
	for (unsigned l = 0; l < 32; l++)
		for (unsigned r = 0; r < m->regs; r++)
			for (unsigned s = 0; s < m->slots; s++) {
				cptx_cell at;
				if (!cptx_frag_cell(m, (cptx_place){ (uint16_t)l, (uint16_t)r, (uint16_t)s }, &at))
					continue;
				uint64_t v = element[at.row * m->cols + at.col] << shift;
				uint32_t *to = in + l * stride + r * (m->reg_bits / 32u);
				if (m->reg_bits == 64)
					memcpy(to, &v, 8);
				else
					*to |= (uint32_t)v << (m->first + s) * m->bits;
			}
}

/* The 2-bit (tf32: 4-bit) codes of stored elements. */
static void pack_meta(const form *f, const form_case *c, uint32_t *in, unsigned stride)
{
	static const unsigned tf32[] = { 4, 0xe };
	uint64_t *code = calloc(f->fm.rows * (size_t)f->fm.cols, sizeof *code);
	unsigned per = f->ka / f->fm.cols;

	for (unsigned i = 0; code && i < f->fm.rows * (unsigned)f->fm.cols; i++) {
		unsigned at = c->at[i / f->fm.cols * f->ka + i % f->fm.cols * per];
		code[i] = f->tf32_pairs ? tf32[at % 2] : at / per % 4;
	}
	if (code)
		pack(&f->fm, code, 0, in, stride);
	free(code);
}

static void pack_case(const form *f, const form_case *c, uint32_t *in)
{
	unsigned stride = LANE, fp4 = f->abits == 8;
	uint64_t scales[64];

	pack(&f->fa, c->a, fp4 && f->a == CPTX_E2M1 ? 2 : 0, in, stride);
	in += words_of(&f->fa);
	pack(&f->fb, c->b, fp4 && f->b == CPTX_E2M1 ? 2 : 0, in, stride);
	in += words_of(&f->fb);
	pack(&f->fc, c->c, 0, in, stride);
	in += words_of(&f->fc);
	if (f->sparse)
		pack_meta(f, c, in++, stride);
	if (f->vec) {
		for (unsigned i = 0; i < 16 * f->vec; i++)
			scales[i] = c->sa[i];
		pack(&f->fsa, scales, 0, in++, stride);
		for (unsigned i = 0; i < 8 * f->vec; i++)
			scales[i] = c->sb[i];
		pack(&f->fsb, scales, 0, in, stride);
	}
}

static void unpack_case(const form *f, const uint32_t *out, form_case *c)
{
	const cptx_frag_map *m = &f->fd;
	uint64_t mask = UINT64_MAX >> (64 - m->bits);

	for (unsigned l = 0; l < 32; l++)
		for (unsigned r = 0; r < m->regs; r++)
			for (unsigned s = 0; s < m->slots; s++) {
				const uint32_t *from = out + l * LANE + FORM_IN + r * (m->reg_bits / 32u);
				uint64_t v = from[0];
				cptx_cell at;
				if (m->reg_bits == 64)
					v |= (uint64_t)from[1] << 32;
				if (cptx_frag_cell(m, (cptx_place){ (uint16_t)l, (uint16_t)r, (uint16_t)s }, &at))
					c->d[at.row * m->cols + at.col] = v >> s * m->bits & mask;
			}
}

bool form_launch(cptx_device *dev, char *ptx, void *data, size_t size, size_t blocks, uint32_t threads, cptx_error *err)
{
	cptx_program *p = ptx && data ? cptx_device_load_text(dev, ptx, strlen(ptx), NULL, err) : NULL;
	uint64_t at = p ? cptx_mem_alloc(dev, size, err) : 0;
	cptx_launch_opt opt = { .grid = { (uint32_t)blocks }, .block = { threads }, CPTX_ARGS(at) };
	bool ok = at && cptx_mem_write(dev, at, data, size, err) && cptx_launch_once(p, "k", &opt, NULL, err) &&
	          cptx_mem_read(dev, data, at, size, err);

	if (at)
		cptx_mem_free(dev, at);
	cptx_program_destroy(p);
	free(ptx);
	return ok;
}

bool form_run(const form *f, cptx_device *dev, const char *target, form_case *c, size_t n, cptx_error *err)
{
	enum { CASE = 32 * LANE };
	uint32_t *data = calloc(n * CASE, sizeof *data);

	for (size_t i = 0; data && i < n; i++)
		pack_case(f, &c[i], data + i * CASE);
	bool ok = form_launch(dev, form_ptx(f, target), data, n * CASE * sizeof *data, n, 32, err);
	for (size_t i = 0; ok && i < n; i++)
		unpack_case(f, data + i * CASE, &c[i]);
	free(data);
	return ok;
}

/* ---- values ---- */

/* Widths of exponent and mantissa, bias; the magnitude above which there are no finite numbers. */
static const struct format {
	enum cptx_type type;
	int exp, man, bias, drop;
	uint64_t last;
} formats[] = {
	{ CPTX_F16, 5, 10, 15, 0, 0x7bff },     { CPTX_BF16, 8, 7, 127, 0, 0x7f7f },
	{ CPTX_TF32, 8, 10, 127, 13, 0x3fbff }, { CPTX_F32, 8, 23, 127, 0, 0x7f7fffff },
	{ CPTX_E4M3, 4, 3, 7, 0, 0x7e },        { CPTX_E5M2, 5, 2, 15, 0, 0x7b },
	{ CPTX_E2M1, 2, 1, 1, 0, 7 },           { CPTX_E2M3, 2, 3, 1, 0, 31 },
	{ CPTX_E3M2, 3, 2, 3, 0, 31 },          { CPTX_UE4M3, 4, 3, 7, 0, 0x7e },
	{ CPTX_UE8M0, 8, 0, 127, 0, 254 },
};

static const struct format *format_of(enum cptx_type type)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (formats[i].type == type)
			return &formats[i];
	return NULL;
}

double form_value(enum cptx_type type, uint64_t bits)
{
	const struct format *f = format_of(type);
	double d;

	if (type == CPTX_F64) {
		memcpy(&d, &bits, sizeof d);
		return d;
	}
	if (type == CPTX_UE8M0)
		return bits == 255 ? NAN : ldexp(1, (int)bits - 127);
	if (!f) {
		unsigned width = cptx_type_bits(type);
		bool is_signed = type == CPTX_S32 || type == CPTX_S8 || type == CPTX_S4;
		return is_signed && bits >> (width - 1) & 1 ? (double)(int64_t)(bits | ~UINT64_C(0) << width) : (double)bits;
	}
	bits >>= f->drop;
	uint64_t mag = bits & ((UINT64_C(1) << (f->exp + f->man)) - 1), man = mag & ((UINT64_C(1) << f->man) - 1);
	int e = (int)(mag >> f->man);
	if (mag > f->last)
		d = mag == f->last + 1 && type != CPTX_E4M3 && type != CPTX_UE4M3 ? INFINITY : NAN;
	else
		d = ldexp((double)(e ? man | UINT64_C(1) << f->man : man), (e ? e : 1) - f->bias - f->man);
	return bits >> (f->exp + f->man) & 1 && type != CPTX_UE4M3 ? -d : d;
}

uint64_t form_bits(enum cptx_type type, double v)
{
	const struct format *f = format_of(type);
	uint64_t bits = 0;

	if (type == CPTX_F64) {
		memcpy(&bits, &v, sizeof bits);
		return bits;
	}
	if (!f)
		return (uint64_t)(int64_t)v & (UINT64_MAX >> (64 - cptx_type_bits(type)));
	if (v != 0) {
		int e;
		double m = frexp(fabs(v), &e);
		int field = e - 1 + f->bias;
		if (field < 1)
			bits = (uint64_t)ldexp(m, e + f->bias - 1 + f->man);
		else
			bits = (uint64_t)ldexp(m, f->man + 1) - (UINT64_C(1) << f->man) + ((uint64_t)field << f->man);
	}
	if (signbit(v) && type != CPTX_UE8M0)
		bits |= UINT64_C(1) << (f->exp + f->man);
	return bits << f->drop;
}

uint64_t form_random(uint64_t *seed)
{
	*seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = *seed;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A pattern of the type.  What is no float has small or any values. */
uint64_t form_pattern(enum cptx_type type, enum form_fill fill, uint64_t *seed)
{
	const struct format *f = format_of(type);
	if (fill == FILL_ZEROS && form_is_float(type) && type != CPTX_UE8M0 && type != CPTX_UE4M3 && form_random(seed) % 2)
		return form_bits(type, form_random(seed) % 2 ? 0.0 : -0.0);
	uint64_t r = form_random(seed), mask = UINT64_MAX >> (64 - cptx_type_bits(type));

	if (type == CPTX_UE8M0 || type == CPTX_UE4M3)
		return type == CPTX_UE4M3 ? (fill == FILL_ANY ? r & 0x7f : 0x30 + r % 16)
		       : fill == FILL_ANY ? r & 0xff
		                          : 124 + r % 8;
	if (fill == FILL_SMALL && (f || type == CPTX_F64))
		return form_bits(type, (double)(int)(r % 5) - 2);
	if (fill == FILL_SMALL)
		return (type == CPTX_S32 ? (uint64_t)((int64_t)(r % 2001) - 1000) : r) & mask;
	if (type == CPTX_F64) {
		double d = ldexp((double)(int64_t)r,
		                 -63 + (fill == FILL_NORMAL || fill == FILL_CANCEL ? 0 : (int)(form_random(seed) % 200) - 100));
		return fill == FILL_ANY ? r : form_bits(type, d);
	}
	if (!f)
		return r & mask;
	if (fill == FILL_ANY)
		return r & mask;
	uint64_t sign = r >> 63 << (f->exp + f->man), man = r & ((UINT64_C(1) << f->man) - 1);
	int span = fill == FILL_NORMAL || fill == FILL_CANCEL ? 4 : (1 << f->exp) - 1, e = f->bias - 3 + (int)(r >> 40 & 3);
	if (fill != FILL_NORMAL && fill != FILL_CANCEL)
		e = (int)((r >> 40) % (unsigned)span);
	if (fill == FILL_TINY && type == CPTX_F32)
		return r & 1 ? sign : sign | man;
	if (fill == FILL_TINY)
		e = f->exp == 8 ? f->bias - 74 + (int)((r >> 40) % 13) : (int)(r >> 40 & 3);
	if (e < 0 || f->exp <= 3)
		e = (int)((r >> 40) % (1u << f->exp));
	uint64_t mag = (uint64_t)e << f->man | man;
	if (mag > f->last)
		mag = f->last;
	return (sign | mag) << f->drop | (type == CPTX_TF32 ? r >> 50 & 0x1fff : 0);
}

/* Two of four (tf32: one of two; 4 bits: two pairs of four), ascending. */
static void choose_places(const form *f, form_case *c, uint64_t *seed)
{
	static const uint8_t two[6][2] = { { 0, 1 }, { 0, 2 }, { 0, 3 }, { 1, 2 }, { 1, 3 }, { 2, 3 } };
	unsigned size = f->abits == 4 ? 2 : 1;

	for (unsigned row = 0; row < f->m; row++)
		for (unsigned j = 0; j < f->ka;) {
			uint16_t *at = &c->at[row * f->ka + j];
			if (f->tf32_pairs) {
				at[0] = (uint16_t)(2 * j + form_random(seed) % 2);
				j++;
				continue;
			}
			const uint8_t *t = two[form_random(seed) % 6];
			for (unsigned i = 0; i < 2 * size; i++)
				at[i] = (uint16_t)(2 * j + t[i / size] * size + i % size);
			j += 2 * size;
		}
}

void form_fill(const form *f, form_case *c, enum form_fill fill, uint64_t *seed)
{
	for (unsigned i = 0; i < f->m * f->ka; i++)
		c->a[i] = form_pattern(f->a, fill, seed);
	for (unsigned i = 0; i < f->k * f->n; i++)
		c->b[i] = form_pattern(f->b, fill, seed);
	for (unsigned i = 0; i < f->m * f->n; i++)
		c->c[i] = form_pattern(f->c, fill, seed), c->d[i] = 0;
	for (unsigned i = 0; i < 16 * f->vec; i++)
		c->sa[i] = (uint8_t)form_pattern(f->scale, fill, seed);
	for (unsigned i = 0; i < 8 * f->vec; i++)
		c->sb[i] = (uint8_t)form_pattern(f->scale, fill, seed);
	if (f->sparse)
		choose_places(f, c, seed);
	for (unsigned i = 0; fill == FILL_CANCEL && f->c == CPTX_F32 && i < f->m * f->n; i++) {
		double magnitude, sum = form_expected(f, c, i / f->n, i % f->n, &magnitude) - form_value(f->c, c->c[i]);
		c->c[i] = form_bits(f->c, (float)-sum);
	}
}

const char *form_fill_name(enum form_fill fill)
{
	static const char *const names[FILL_COUNT] = { "small", "normal", "wide", "zeros", "cancelling", "any", "tiny" };

	return names[fill];
}

double form_bound(const form *f, unsigned bits, double want, double magnitude)
{
	double least = f->d == CPTX_F16 ? 0x1p-24 : 0x1p-149 * (f->ka + 1);

	if (!form_is_float(f->d))
		return 0;
	if (f->d == CPTX_F64)
		return magnitude * (f->ka + 1) * 0x1p-52;
	return magnitude * (f->ka + 1) * ldexp(1, -(int)bits) +
	       fabs(want) * (f->d == CPTX_F16 ? 0x1p-9
	                     : bits < 22      ? 0x1p-13
	                                      : 0x1p-22) +
	       least;
}

double form_expected(const form *f, const form_case *c, unsigned row, unsigned col, double *magnitude)
{
	double sum = form_value(f->c, c->c[row * f->n + col]);

	*magnitude = fabs(sum);
	for (unsigned j = 0; j < f->ka; j++) {
		unsigned k = f->sparse ? c->at[row * f->ka + j] : j;
		uint64_t x = c->a[row * f->ka + j], y = c->b[k * f->n + col];
		double p = f->xor_popc ? (double)(x ^ y) : f->and_popc ? (double)(x & y) : form_value(f->a, x) * form_value(f->b, y);
		if (f->vec)
			p *= form_value(f->scale, c->sa[row * f->vec + k * f->vec / f->k]) *
			     form_value(f->scale, c->sb[k * f->vec / f->k * f->n + col]);
		sum += p;
		*magnitude += fabs(p);
	}
	if (!form_is_float(f->d) && f->saturate)
		sum = fmin(fmax(sum, INT32_MIN), INT32_MAX);
	return sum;
}
