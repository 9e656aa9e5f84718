/* SPDX-License-Identifier: MIT */
#include "wgmma_forms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const form_wgmma[] = {
	"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
	"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
	"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
	"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
	"wgmma.mma_async.sync.aligned.m64n24k16.f32.bf16.bf16",
	"wgmma.mma_async.sync.aligned.m64n96k16.f16.f16.f16",
	"wgmma.mma_async.sync.aligned.m64n40k8.f32.tf32.tf32",
	"wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32",
	"wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3",
	"wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2",
	"wgmma.mma_async.sync.aligned.m64n64k32.f32.e5m2.e4m3",
	"wgmma.mma_async.sync.aligned.m64n32k32.f16.e5m2.e5m2",
	"wgmma.mma_async.sync.aligned.m64n64k32.f16.e4m3.e4m3",
	"wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8",
	"wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.s8",
	"wgmma.mma_async.sync.aligned.m64n48k32.satfinite.s32.s8.u8",
	"wgmma.mma_async.sync.aligned.m64n128k32.satfinite.s32.u8.u8",
	"wgmma.mma_async.sync.aligned.m64n64k256.s32.b1.b1.and.popc",
	"wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16",
	"wgmma.mma_async.sp.sync.aligned.m64n128k32.f32.bf16.bf16",
	"wgmma.mma_async.sp.sync.aligned.m64n32k32.f16.f16.f16",
	"wgmma.mma_async.sp.sync.aligned.m64n64k16.f32.tf32.tf32",
	"wgmma.mma_async.sp.sync.aligned.m64n64k64.f32.e4m3.e5m2",
	"wgmma.mma_async.sp.sync.aligned.m64n64k64.s32.s8.s8",
};
const size_t form_nwgmma = sizeof form_wgmma / sizeof *form_wgmma;

/* ---- choosing ---- */

static bool resolve(wg_form *w, enum cptx_frag_kind kind, unsigned bits, cptx_frag_map *map)
{
	cptx_frag what = { .kind = kind, .m = WG_ROWS, .n = (uint16_t)w->f.n, .k = (uint16_t)w->f.k, .bits = (uint8_t)bits };

	what.sparse = w->f.sparse;
	what.select = (uint8_t)w->selector;
	return cptx_frag_resolve(&what, map, NULL);
}

/* A layout that holds `rows` x `k` elements from `start` on, without overlap; returns the first byte behind it. */
static uint32_t layout(cptx_smem_desc *d, uint32_t start, unsigned rows, unsigned k, unsigned bits, bool mn_major,
                       uint64_t *seed)
{
	unsigned span, bytes = k * bits / 8, across = mn_major ? rows * bits / 8 : bytes;

	*d = (cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .start = start };
	do {
		d->swizzle = (enum cptx_swizzle)(form_random(seed) % 4);
		span = cptx_swizzle_get(d->swizzle)->span;
	} while (d->swizzle && !mn_major && across > span);
	if (!d->swizzle && !mn_major) {
		d->sbo = 128, d->lbo = rows / 8 * 128;
		return start + bytes / 16 * d->lbo;
	}
	if (!d->swizzle) {
		d->sbo = 128, d->lbo = (across + 15) / 16 * 128;
		return start + k / 8 * d->lbo;
	}
	d->sbo = 8 * span;
	if (!mn_major)
		return start + (rows + 7) / 8 * d->sbo;
	unsigned spans = (across + span - 1) / span;
	d->lbo = 8 * span;
	d->sbo = spans * d->lbo;
	return start + (k + 7) / 8 * d->sbo;
}

bool wg_parse(wg_form *w, const char *opcode, uint64_t *seed)
{
	bool words;

	*w = (wg_form){ 0 };
	if (!form_parse_types(&w->f, opcode))
		return false;
	form *f = &w->f;
	words = f->abits == 16;
	w->a_in_regs = form_random(seed) & 1;
	w->keep = form_random(seed) % 4 != 0;
	w->selector = f->sparse && f->abits >= 16 ? (unsigned)form_random(seed) % 2 : 0;
	if (words)
		w->trans_a = !w->a_in_regs && form_random(seed) & 1, w->trans_b = form_random(seed) & 1;
	if (form_is_float(f->a))
		w->minus_a = form_random(seed) % 4 == 0, w->minus_b = form_random(seed) % 4 == 0;
	uint32_t end = layout(&w->da, 0, WG_ROWS, f->ka, f->abits, w->trans_a, seed);
	end = layout(&w->db, (end + 1023) / 1024 * 1024, f->n, f->k, f->abits, w->trans_b, seed);
	return end <= WG_SHARED && resolve(w, CPTX_FRAG_WGMMA_A, f->abits, &f->fa) &&
	       resolve(w, CPTX_FRAG_WGMMA_D, cptx_type_bits(f->d), &f->fd) &&
	       (!f->sparse || resolve(w, CPTX_FRAG_WGMMA_META, f->abits, &f->fm));
}

void wg_describe(const wg_form *w, char *out, size_t size)
{
	snprintf(out, size, "%s, A %s%s%s, B %s%s%s%s", w->f.opcode,
	         w->a_in_regs ? "in registers" : cptx_swizzle_get(w->da.swizzle)->name, w->trans_a ? " by m" : "",
	         w->minus_a ? " negated" : "", cptx_swizzle_get(w->db.swizzle)->name, w->trans_b ? " by n" : "",
	         w->minus_b ? " negated" : "", w->keep ? "" : ", D not read");
}

/* ---- the kernel ---- */

/*
 * Of a case there are in memory: WG_SHARED bytes for shared memory, then for each of 128 threads 4 words of A, 4 of
 * metadata, 128 of D. D is written back in place.
 */
enum { REGS = 4 + 4 + 128, CASE = WG_SHARED + 128 * REGS * 4 };

void wg_put_call(form_text *t, const wg_form *w)
{
	const form *f = &w->f;

	form_put(t, "%s {", f->opcode);
	for (unsigned i = 0; i < f->fd.regs; i++)
		form_put(t, "%s%%d%u", i ? "," : "", i);
	form_put(t, w->a_in_regs ? "}, {%%a0,%%a1,%%a2,%%a3}, %%db" : "}, %%da, %%db");
	if (f->sparse)
		form_put(t, ", %%meta, %u", w->selector);
	form_put(t, ", %%keep");
	if (form_is_float(f->a))
		form_put(t, ", %d, %d", w->minus_a ? -1 : 1, w->minus_b ? -1 : 1);
	if (f->abits == 16)
		form_put(t, w->a_in_regs ? ", %d" : ", %d, %d", w->a_in_regs ? w->trans_b : w->trans_a, w->trans_b);
	form_put(t, ";\n");
}

char *wg_ptx(const wg_form *w, const char *target)
{
	const form *f = &w->f;
	form_text t = { malloc(65536), 0, 65536 };
	uint64_t da, db;

	if (!t.p || !cptx_smem_desc_encode(&w->da, &da, NULL) || !cptx_smem_desc_encode(&w->db, &db, NULL)) {
		free(t.p);
		return NULL;
	}
	form_put(&t, ".version 8.7\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 in)\n.maxntid 128\n{\n", target);
	form_put(&t, ".shared .align 1024 .b8 buf[%u];\n", WG_SHARED - 1024);
	form_put(&t, ".reg .%s %%d<128>;\n.reg .b32 %%a<4>, %%meta, %%t, %%s, %%x, %%n;\n", form_reg_type(f->d));
	form_put(&t, ".reg .u64 %%in, %%o, %%g, %%da, %%db;\n.reg .b32 %%y<4>;\n.reg .pred %%keep, %%p;\n");
	form_put(&t, "ld.param.u64 %%in, [in];\nmov.u32 %%t, %%ctaid.x;\nmul.wide.u32 %%o, %%t, %u;\nadd.u64 %%in, %%in, %%o;\n",
	         CASE);
	form_put(&t,
	         "mov.u32 %%t, %%tid.x;\nmul.wide.u32 %%o, %%t, 16;\nadd.u64 %%g, %%in, %%o;\nmov.u32 %%s, buf;\nshl.b32 %%x, "
	         "%%t, 4;\n"
	         "add.u32 %%x, %%s, %%x;\nmov.u32 %%n, %u;\nL:\nld.global.v4.b32 {%%y0,%%y1,%%y2,%%y3}, [%%g];\n"
	         "st.shared.v4.b32 [%%x], {%%y0,%%y1,%%y2,%%y3};\nadd.u64 %%g, %%g, 2048;\nadd.u32 %%x, %%x, 2048;\nsub.u32 "
	         "%%n, %%n, 1;\n"
	         "setp.ne.u32 %%p, %%n, 0;\n@%%p bra L;\n",
	         (WG_SHARED - 2048) / 2048);
	form_put(&t, "fence.proxy.async;\nbar.sync 0;\nmul.wide.u32 %%o, %%t, %u;\nadd.u64 %%in, %%in, %%o;\n", REGS * 4);
	form_put(&t, "and.b32 %%s, %%s, 0x3ffff;\nshr.u32 %%s, %%s, 4;\ncvt.u64.u32 %%o, %%s;\n");
	form_put(&t, "add.u64 %%da, %%o, 0x%llx;\nadd.u64 %%db, %%o, 0x%llx;\n", (unsigned long long)da, (unsigned long long)db);
	for (unsigned i = 0; i < 4; i++)
		form_put(&t, "ld.global.b32 %%a%u, [%%in+%u];\n", i, WG_SHARED + i * 4);
	form_put(&t, "ld.global.b32 %%meta, [%%in+%u];\n", WG_SHARED + 16);
	for (unsigned i = 0; i < f->fd.regs; i++)
		form_put(&t, "ld.global.b32 %%d%u, [%%in+%u];\n", i, WG_SHARED + 32 + i * 4);
	form_put(&t, "setp.%s.u32 %%keep, %%t, 1000;\nwgmma.fence.sync.aligned;\n", w->keep ? "lt" : "gt");
	wg_put_call(&t, w);
	form_put(&t, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
	for (unsigned i = 0; i < f->fd.regs; i++)
		form_put(&t, "st.global.b32 [%%in+%u], %%d%u;\n", WG_SHARED + 32 + i * 4, i);
	form_put(&t, "ret;\n}\n");
	return t.p;
}

/* ---- operands ---- */

static void pack_shared(const cptx_smem_desc *d, unsigned bits, bool mn_major, const uint64_t *element, unsigned rows,
                        unsigned k, bool by_k, unsigned char *out)
{
	cptx_smem_elem e = { .bits = (uint8_t)bits, .mn_major = mn_major };

	for (unsigned r = 0; r < rows; r++)
		for (unsigned i = 0; i < k; i++) {
			cptx_smem_place p = cptx_smem_desc_at(d, e, r, i);
			uint64_t v = element[by_k ? i * rows + r : r * k + i];
			if (bits >= 8)
				memcpy(out + p.byte, &v, bits / 8);
			else
				out[p.byte] = (unsigned char)((out[p.byte] & ~(1u << p.bit)) | (unsigned)v << p.bit);
		}
}

static void each_place(const cptx_frag_map *m, uint32_t *regs, uint64_t *element, bool write)
{
	uint32_t mask = m->bits >= 32 ? UINT32_MAX : (1u << m->bits) - 1;

	for (unsigned l = 0; l < 128; l++)
		for (unsigned r = 0; r < m->regs; r++)
			for (unsigned s = 0; s < m->slots; s++) {
				uint32_t *word = &regs[l * REGS + r];
				cptx_cell at;
				if (!cptx_frag_cell(m, (cptx_place){ (uint16_t)l, (uint16_t)r, (uint16_t)s }, &at))
					continue;
				uint64_t *e = &element[at.row * m->cols + at.col];
				if (write)
					*word |= (uint32_t)*e << s * m->bits;
				else
					*e = *word >> s * m->bits & mask;
			}
}

static void pack_meta(const wg_form *w, const wg_case *c, uint32_t *regs)
{
	const form *f = &w->f;
	uint64_t code[WG_ROWS * 64];

	for (unsigned i = 0; i < WG_ROWS * f->ka; i++)
		code[i] = f->abits == 32 ? (c->at[i] % 2 ? 0xe : 4) : c->at[i] % 4;
	each_place(&f->fm, regs, code, true);
}

static void pack_case(const wg_form *w, wg_case *c, unsigned char *out)
{
	const form *f = &w->f;
	uint32_t *regs = (uint32_t *)(void *)(out + WG_SHARED);

	memset(out, 0, CASE);
	pack_shared(&w->da, f->abits, w->trans_a, c->a, WG_ROWS, f->ka, false, out);
	pack_shared(&w->db, f->abits, w->trans_b, c->b, f->n, f->k, true, out);
	each_place(&f->fa, regs, c->a, true);
	if (f->sparse)
		pack_meta(w, c, regs + 4);
	each_place(&f->fd, regs + 8, c->c, true);
}

bool wg_run(const wg_form *w, cptx_device *dev, const char *target, wg_case *c, size_t n, cptx_error *err)
{
	unsigned char *data = malloc(n * CASE);

	for (size_t i = 0; data && i < n; i++)
		pack_case(w, &c[i], data + i * CASE);
	bool ok = form_launch(dev, wg_ptx(w, target), data, n * CASE, n, 128, err);
	for (size_t i = 0; ok && i < n; i++)
		each_place(&w->f.fd, (uint32_t *)(void *)(data + i * CASE + WG_SHARED) + 8, c[i].d, false);
	free(data);
	return ok;
}

void wg_fill(const wg_form *w, wg_case *c, enum form_fill fill, uint64_t *seed)
{
	static const uint8_t two[6][2] = { { 0, 1 }, { 0, 2 }, { 0, 3 }, { 1, 2 }, { 1, 3 }, { 2, 3 } };
	const form *f = &w->f;

	for (unsigned i = 0; i < WG_ROWS * f->ka; i++)
		c->a[i] = form_pattern(f->a, fill, seed);
	for (unsigned i = 0; i < f->k * f->n; i++)
		c->b[i] = form_pattern(f->b, fill, seed);
	for (unsigned i = 0; i < WG_ROWS * f->n; i++)
		c->c[i] = form_pattern(f->d, fill, seed), c->d[i] = 0;
	for (unsigned i = 0; f->sparse && i < WG_ROWS * f->ka; i++) {
		unsigned j = i % f->ka;
		if (f->abits == 32)
			c->at[i] = (uint16_t)(2 * j + form_random(seed) % 2);
		else if (j % 2 == 0) {
			const uint8_t *t = two[form_random(seed) % 6];
			c->at[i] = (uint16_t)(2 * j + t[0]), c->at[i + 1] = (uint16_t)(2 * j + t[1]);
		}
	}
}

double wg_expected(const wg_form *w, const wg_case *c, unsigned row, unsigned col, double *magnitude)
{
	const form *f = &w->f;
	double sum = w->keep ? form_value(f->d, c->c[row * f->n + col]) : 0, sign = w->minus_a != w->minus_b ? -1 : 1;

	*magnitude = fabs(sum);
	for (unsigned j = 0; j < f->ka; j++) {
		unsigned k = f->sparse ? c->at[row * f->ka + j] : j;
		double p = form_value(f->a, c->a[row * f->ka + j]) * form_value(f->b, c->b[k * f->n + col]);
		sum += sign * p;
		*magnitude += fabs(p);
	}
	if (!form_is_float(f->d) && f->saturate)
		sum = fmin(fmax(sum, INT32_MIN), INT32_MAX);
	return sum;
}
