/* SPDX-License-Identifier: MIT */
#include "move_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const form_wmma[] = {
	"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32",
	"wmma.mma.sync.aligned.col.row.m16n16k16.f32.f32",
	"wmma.mma.sync.aligned.row.row.m8n32k16.f32.f32",
	"wmma.mma.sync.aligned.col.col.m32n8k16.f32.f32",
	"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16",
	"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32",
	"wmma.mma.sync.aligned.col.col.m16n16k16.f16.f16",
	"wmma.mma.sync.aligned.row.row.m32n8k16.f16.f16",
	"wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32",
	"wmma.mma.sync.aligned.col.row.m8n32k16.f32.bf16.bf16.f32",
	"wmma.mma.sync.aligned.row.row.m32n8k16.f32.bf16.bf16.f32",
	"wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32",
	"wmma.mma.sync.aligned.col.row.m16n16k8.f32.tf32.tf32.f32",
	"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32",
	"wmma.mma.sync.aligned.col.row.m8n32k16.s32.u8.u8.s32.satfinite",
	"wmma.mma.sync.aligned.row.row.m32n8k16.s32.s8.s8.s32.satfinite",
	"wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32",
	"wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32",
	"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
	"wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
	"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64",
	"wmma.mma.sync.aligned.col.row.m8n8k4.f64.f64.f64.f64.rz",
};
const size_t form_nwmma = sizeof form_wmma / sizeof *form_wmma;

/* A case in memory: A, B, C, D, so many bytes each. */
enum { PART = 1024, CASE = 4 * PART };

static bool resolve(wm_form *w, enum cptx_frag_kind kind, unsigned bits, cptx_frag_map *map)
{
	const form *f = &w->f;
	cptx_frag what = { .kind = kind, .m = (uint16_t)f->m, .n = (uint16_t)f->n, .k = (uint16_t)f->k, .bits = (uint8_t)bits };

	what.repeated = f->a == CPTX_F16 && kind != CPTX_FRAG_WMMA_C;
	return cptx_frag_resolve(&what, map, NULL);
}

bool wm_parse(wm_form *w, const char *opcode, uint64_t *seed)
{
	const char *layouts = strstr(opcode, "aligned.");

	*w = (wm_form){ 0 };
	if (!layouts || !form_parse_types(&w->f, opcode))
		return false;
	w->a_col = layouts[8] == 'c';
	w->b_col = layouts[12] == 'c';
	w->c_col = ++*seed & 1;
	w->d_col = *seed >> 1 & 1;
	form *f = &w->f;
	return resolve(w, CPTX_FRAG_WMMA_A, f->abits, &f->fa) && resolve(w, CPTX_FRAG_WMMA_B, f->abits, &f->fb) &&
	       resolve(w, CPTX_FRAG_WMMA_C, cptx_type_bits(f->c), &f->fc) &&
	       resolve(w, CPTX_FRAG_WMMA_C, cptx_type_bits(f->d), &f->fd);
}

static void registers(char *out, const char *name, unsigned n)
{
	size_t at = 1;

	strcpy(out, "{");
	for (unsigned i = 0; i < n; i++)
		at += (size_t)sprintf(out + at, "%s%%%s%u", i ? "," : "", name, i);
	strcpy(out + at, "}");
}

static const char *type_of(enum cptx_type t) { return t == CPTX_PRED ? "b1" : cptx_type_name(t); }

static char *wm_ptx(const wm_form *w, const char *target)
{
	const form *f = &w->f;
	char a[80], b[80], c[80], d[80], shape[32], *s = malloc(8192);

	registers(a, "a", f->fa.regs), registers(b, "b", f->fb.regs), registers(c, "c", f->fc.regs),
		registers(d, "d", f->fd.regs);
	snprintf(shape, sizeof shape, "m%un%uk%u", f->m, f->n, f->k);
	const char *ab = f->a == CPTX_F64 ? "f64" : "b32";
	if (!s)
		return NULL;
	int n = snprintf(s, 8192,
	                 ".version 8.7\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
	                 ".reg .%s %%a<8>, %%b<8>;\n.reg .%s %%c<8>;\n.reg .%s %%d<8>;\n.reg .u64 %%p, %%o;\n.reg .b32 %%t;\n"
	                 "ld.param.u64 %%p, [p];\nmov.u32 %%t, %%ctaid.x;\nmul.wide.u32 %%o, %%t, %u;\nadd.u64 %%p, %%p, %%o;\n",
	                 target, ab, form_reg_type(f->c), form_reg_type(f->d), CASE);
	n += snprintf(s + n, 8192 - (size_t)n, "wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%p], %u;\n",
	              w->a_col ? "col" : "row", shape, type_of(f->a), a, w->a_col ? f->m : f->k);
	n += snprintf(s + n, 8192 - (size_t)n, "wmma.load.b.sync.aligned.%s.%s.global.%s %s, [%%p+%u], %u;\n",
	              w->b_col ? "col" : "row", shape, type_of(f->b), b, PART, w->b_col ? f->k : f->n);
	n += snprintf(s + n, 8192 - (size_t)n, "wmma.load.c.sync.aligned.%s.%s.global.%s %s, [%%p+%u], %u;\n",
	              w->c_col ? "col" : "row", shape, type_of(f->c), c, 2 * PART, w->c_col ? f->m : f->n);
	n += snprintf(s + n, 8192 - (size_t)n, "%s %s, %s, %s, %s;\n", f->opcode, d, a, b, c);
	snprintf(s + n, 8192 - (size_t)n, "wmma.store.d.sync.aligned.%s.%s.global.%s [%%p+%u], %s, %u;\nret;\n}\n",
	         w->d_col ? "col" : "row", shape, type_of(f->d), 3 * PART, d, w->d_col ? f->m : f->n);
	return s;
}

/* Elements between an array by rows and memory. */
static void copy(uint64_t *element, unsigned rows, unsigned cols, unsigned bits, bool by_col, unsigned char *at, bool write)
{
	for (unsigned r = 0; r < rows; r++)
		for (unsigned c = 0; c < cols; c++) {
			size_t bit = (by_col ? c * rows + r : r * cols + c) * (size_t)bits;
			uint64_t *e = &element[r * cols + c];
			unsigned char *p = at + bit / 8;
			if (!write)
				*e = 0, memcpy(e, p, bits / 8);
			else if (bits >= 8)
				memcpy(p, e, bits / 8);
			else
				*p = (unsigned char)(*p | *e << bit % 8);
		}
}

bool wm_run(const wm_form *w, cptx_device *dev, const char *target, form_case *c, size_t n, cptx_error *err)
{
	const form *f = &w->f;
	unsigned char *data = calloc(n, CASE);

	for (size_t i = 0; data && i < n; i++) {
		unsigned char *to = data + i * CASE;
		copy(c[i].a, f->m, f->k, f->abits, w->a_col, to, true);
		copy(c[i].b, f->k, f->n, f->abits, w->b_col, to + PART, true);
		copy(c[i].c, f->m, f->n, cptx_type_bits(f->c), w->c_col, to + 2 * PART, true);
	}
	bool ok = form_launch(dev, wm_ptx(w, target), data, n * CASE, n, 32, err);
	for (size_t i = 0; ok && i < n; i++)
		copy(c[i].d, f->m, f->n, cptx_type_bits(f->d), w->d_col, data + i * CASE + 3 * PART, false);
	free(data);
	return ok;
}
