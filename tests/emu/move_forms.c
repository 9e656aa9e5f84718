/* SPDX-License-Identifier: MIT */
#include "move_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const form_move[] = {
	"ldmatrix.sync.aligned.m8n8.x1.shared.b16",       "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
	"ldmatrix.sync.aligned.m8n8.x4.shared.b16",       "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
	"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
	"stmatrix.sync.aligned.m8n8.x1.shared.b16",       "stmatrix.sync.aligned.m8n8.x2.shared.b16",
	"stmatrix.sync.aligned.m8n8.x4.shared.b16",       "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
	"stmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
	"movmatrix.sync.aligned.m8n8.trans.b16",
};
const size_t form_nmove = sizeof form_move / sizeof *form_move;

const char *const form_move_bytes[] = {
	"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8",
	"ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8",
	"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b6x16_p32",
	"ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.b4x16_p64",
	"ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32",
	"ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64",
	"ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32",
	"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8",
	"stmatrix.sync.aligned.m16n8.x2.trans.shared.b8",
	"stmatrix.sync.aligned.m16n8.x4.trans.shared.b8",
};
const size_t form_nmove_bytes = sizeof form_move_bytes / sizeof *form_move_bytes;

/* ---- moves ---- */

bool move_parse(move_form *f, const char *opcode)
{
	const char *shape = strstr(opcode, ".m"), *num = strstr(opcode, ".x");
	unsigned m, n;

	*f = (move_form){ .opcode = opcode, .store = opcode[0] == 's', .mov = opcode[0] == 'm' };
	if (!shape || sscanf(shape, ".m%un%u", &m, &n) != 2)
		return false;
	f->what = (cptx_frag){ .kind = f->store ? CPTX_FRAG_STMATRIX : CPTX_FRAG_LDMATRIX, .m = (uint16_t)m, .n = (uint16_t)n };
	f->what.bits = strstr(opcode, ".b16") ? 16 : 8;
	f->what.num = num ? (uint8_t)(num[2] - '0') : 1;
	f->what.trans = strstr(opcode, ".trans") && !f->mov;
	f->packed = strstr(opcode, "b6x16") ? 6 : strstr(opcode, "b4x16") ? 4 : 0;
	return true;
}

void move_fill(move_case *c, uint64_t *seed)
{
	for (unsigned i = 0; i < MOVE_WORDS; i++)
		c->shared[i] = (uint32_t)(form_random(seed) << 16 ^ form_random(seed)), c->out[i] = 0;
	for (unsigned i = 0; i < 32 * 4; i++)
		c->reg[i] = (uint32_t)(form_random(seed) << 16 ^ form_random(seed));
	for (unsigned i = 0; i < 32; i++)
		c->row[i] = (uint32_t)(i * 4 + form_random(seed) % 4);
}

static unsigned regs_of(const move_form *f)
{
	cptx_frag_map m;

	return cptx_frag_resolve(&f->what, &m, NULL) ? m.regs : 0;
}

static const char move_text[] =
	".version 8.7\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
	".shared .align 16 .b8 buf[2048];\n.reg .b32 %%r<8>, %%v<4>, %%s, %%t, %%b;\n.reg .u64 %%p, %%o, %%q;\n"
	"ld.param.u64 %%p, [p];\nmov.u32 %%t, %%ctaid.x;\nmul.wide.u32 %%o, %%t, %u;\nadd.u64 %%p, %%p, %%o;\n"
	"mov.u32 %%t, %%tid.x;\nmov.u32 %%b, buf;\nmul.wide.u32 %%o, %%t, 16;\nadd.u64 %%q, %%p, %%o;\nshl.b32 %%s, %%t, "
	"4;\nadd.u32 %%s, %%s, %%b;\n"
	"%sbar.warp.sync 0xffffffff;\n"
	"mul.wide.u32 %%o, %%t, 4;\nadd.u64 %%o, %%p, %%o;\nld.global.b32 %%s, [%%o+2048];\nshl.b32 %%s, %%s, 4;\nadd.u32 %%s, "
	"%%s, %%b;\n"
	"ld.global.v4.b32 {%%v0,%%v1,%%v2,%%v3}, [%%q+2176];\n%s"
	"bar.warp.sync 0xffffffff;\nshl.b32 %%s, %%t, 4;\nadd.u32 %%s, %%s, %%b;\n%sret;\n}\n";

static char *move_ptx(const move_form *f, const char *target)
{
	char in[1024], out[1024], call[256], list[64] = "";
	size_t n = sizeof move_text + 3000;
	char *s = malloc(n);
	unsigned regs = regs_of(f);

	in[0] = out[0] = 0;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(in + strlen(in), sizeof in - strlen(in),
		         "ld.global.v4.b32 {%%r0,%%r1,%%r2,%%r3}, [%%q+%u];\nst.shared.v4.b32 [%%s+%u], {%%r0,%%r1,%%r2,%%r3};\n",
		         i * 512, i * 512);
		snprintf(out + strlen(out), sizeof out - strlen(out),
		         "ld.shared.v4.b32 {%%r0,%%r1,%%r2,%%r3}, [%%s+%u];\nst.global.v4.b32 [%%q+%u], {%%r0,%%r1,%%r2,%%r3};\n",
		         i * 512, 2688 + i * 512);
		if (i < regs)
			snprintf(list + strlen(list), sizeof list - strlen(list), "%s%%v%u", i ? "," : "", i);
	}
	if (f->mov)
		snprintf(call, sizeof call, "%s %%v0, %%v0;\n", f->opcode);
	else if (f->store)
		snprintf(call, sizeof call, "%s [%%s], {%s};\n", f->opcode, list);
	else
		snprintf(call, sizeof call, "%s {%s}, [%%s];\n", f->opcode, list);
	if (!f->store)
		snprintf(out, sizeof out, "st.global.v4.b32 [%%q+2688], {%%v0,%%v1,%%v2,%%v3};\n");
	if (s)
		snprintf(s, n, move_text, target, (unsigned)sizeof(move_case), in, call, out);
	return s;
}

bool move_run(const move_form *f, cptx_device *dev, const char *target, move_case *c, size_t n, cptx_error *err)
{
	return form_launch(dev, move_ptx(f, target), c, n * sizeof *c, n, 32, err);
}

/* An element of a row in shared memory. */
static uint32_t stored(const move_form *f, const unsigned char *row, unsigned i)
{
	uint64_t v;

	if (!f->packed)
		return f->what.bits == 16 ? row[2 * i] | (uint32_t)row[2 * i + 1] << 8 : row[i];
	memcpy(&v, row + i / 8 * f->packed, 8); /* eight of them are whole bytes */
	return (uint32_t)(v >> i % 8 * f->packed) & ((1u << f->packed) - 1);
}

void move_expected(const move_form *f, const move_case *c, uint32_t out[MOVE_WORDS])
{
	cptx_frag_map m, back;
	unsigned char row[24] = { 0 };

	memset(out, 0, MOVE_WORDS * sizeof *out);
	memcpy(out, f->store ? c->shared : c->reg, f->store ? sizeof c->shared : sizeof c->reg);
	cptx_frag what = f->what;
	what.trans = true;
	if (!cptx_frag_resolve(&f->what, &m, NULL) || (f->mov && !cptx_frag_resolve(&what, &back, NULL)))
		return;
	for (unsigned l = 0; l < 32; l++)
		for (unsigned r = 0; r < m.regs; r++) {
			uint32_t v = 0;
			for (unsigned s = 0; s < m.slots; s++) {
				cptx_cell at;
				cptx_place from;
				cptx_frag_cell(f->mov ? &back : &m, (cptx_place){ (uint16_t)l, (uint16_t)r, (uint16_t)s }, &at);
				unsigned shift = s * m.bits;
				if (f->mov && cptx_frag_place(&m, at, &from)) {
					v |= (c->reg[from.lane * 4 + from.reg] >> from.slot * 16u & 0xffff) << shift;
				} else if (f->store) {
					unsigned char *to = (unsigned char *)out + c->row[at.row] * 16;
					memcpy(to + at.col * m.bits / 8u, &(uint16_t){ (uint16_t)(c->reg[l * 4 + r] >> shift) }, m.bits / 8u);
				} else if (!f->mov) {
					memcpy(row, (const unsigned char *)c->shared + c->row[at.row] * 16, 16);
					v |= stored(f, row, at.col) << shift;
				}
			}
			if (!f->store)
				out[l * 4 + r] = v;
		}
}
