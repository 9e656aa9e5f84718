/* SPDX-License-Identifier: MIT */
/*
 * The lines of the PTX that instructions come from.  .nv_debug_line_sass has a DWARF 2 line number program (DWARF 2 manual,
 * 6.2) for each function, whose start a relocation names; .nv_debug_ptx_txt has the lines, each with a NUL at its end.
 */
#include "inspect/cubin.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
	const unsigned char *base, *p, *end;
	bool bad; /* a read went past the end */
} reader;

static uint64_t take(reader *r, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < n) {
		r->bad = true, r->p = r->end;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)r->p[i] << 8 * i;
	r->p += n;
	return v;
}

static uint64_t leb(reader *r, bool is_signed)
{
	uint64_t v = 0, byte;
	unsigned shift = 0;

	do {
		byte = take(r, 1);
		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return is_signed && shift < 64 && byte & 0x40 ? v | ~UINT64_C(0) << shift : v;
}

typedef struct head {
	uint64_t least, range, opcode_base;
	int64_t base;
	unsigned char lengths[256];
} head;

/* Reads the header of a program, and leaves r->p behind it. */
static bool read_head(reader *r, head *h)
{
	uint64_t version = take(r, 2), length = take(r, 4);
	const unsigned char *program = r->p + length;

	if (r->bad || length > (uint64_t)(r->end - r->p) || version < 2 || version > 4)
		return false;
	h->least = take(r, 1);
	if (version == 4)
		take(r, 1);
	take(r, 1);
	h->base = (int8_t)take(r, 1);
	h->range = take(r, 1);
	h->opcode_base = take(r, 1);
	for (uint64_t i = 1; i < h->opcode_base; i++)
		h->lengths[i] = (unsigned char)take(r, 1);
	r->p = program;
	return !r->bad && h->range && h->opcode_base >= 10;
}

static cubin_kernel *of_section(cptx_cubin_view *c, size_t section)
{
	for (size_t k = 0; k < c->nkernel; k++)
		if (c->kernel[k].section == section)
			return &c->kernel[k];
	return NULL;
}

/* Finds the kernel whose code a relocation at that place of the section names; up to sm_89 relocations have no addend: .rel,
 * not .rela. */
static cubin_kernel *relocated(cptx_cubin_view *c, uint64_t at)
{
	static const char *const names[] = { ".rela.nv_debug_line_sass", ".rel.nv_debug_line_sass" };
	GElf_Shdr h, sh;
	const unsigned char *p, *q;
	GElf_Sym sym;
	Elf_Scn *table = cubin_section(c, ".symtab", &sh, &q);
	Elf_Data *d = table ? elf_getdata(table, NULL) : NULL;

	for (unsigned i = 0; d && i < 2; i++) {
		uint64_t step = i ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
		if (!cubin_section(c, names[i], &h, &p) || !p)
			continue;
		for (uint64_t r = 0; r + step <= h.sh_size; r += step)
			if (cubin_u64(p + r) == at && gelf_getsym(d, (int)(cubin_u64(p + r + 8) >> 32), &sym))
				return of_section(c, sym.st_shndx);
	}
	return NULL;
}

static bool add(cptx_cubin_view *c, cubin_kernel *k, uint64_t address, uint64_t line)
{
	if (!k || address >= k->k.code || line - 1 >= UINT32_MAX)
		return true;
	if (k->nline && k->line[k->nline - 1].address == address)
		k->nline--;
	if (k->nline == k->cap_line) {
		size_t cap = k->cap_line ? 2 * k->cap_line : 64;
		cptx_cubin_line *grown = realloc(k->line, cap * sizeof *grown);
		if (!grown)
			return cubin_bad(c, "out of memory");
		k->line = grown, k->cap_line = cap;
	}
	k->line[k->nline++] = (cptx_cubin_line){ (uint32_t)address, (uint32_t)line };
	return true;
}

typedef struct state {
	uint64_t address, line; /* arithmetic wraps, because steps are signed */
	cubin_kernel *k;
} state;

static void extended(cptx_cubin_view *c, reader *r, state *s)
{
	uint64_t n = leb(r, false);
	const unsigned char *next = r->p + n;

	if (r->bad || !n || n > (uint64_t)(r->end - r->p)) {
		r->bad = true, r->p = r->end;
		return;
	}
	switch (take(r, 1)) {
	case 1: /* DW_LNE_end_sequence */ *s = (state){ .line = 1 }; break;
	case 2: /* DW_LNE_set_address */
		s->k = relocated(c, (uint64_t)(r->p - r->base));
		s->address = take(r, n - 1 < 8 ? n - 1 : 8);
		break;
	default: break;
	}
	r->p = next;
}

/* Executes a standard opcode; returns true when a row of the table is complete. */
static bool standard(reader *r, const head *h, unsigned op, state *s)
{
	switch (op) {
	case 1: return true;                                                       /* DW_LNS_copy */
	case 2: s->address += leb(r, false) * h->least; break;                     /* DW_LNS_advance_pc */
	case 3: s->line += leb(r, true); break;                                    /* DW_LNS_advance_line */
	case 8: s->address += (255 - h->opcode_base) / h->range * h->least; break; /* DW_LNS_const_add_pc */
	case 9: s->address += take(r, 2); break;                                   /* DW_LNS_fixed_advance_pc */
	default:
		for (unsigned i = 0; i < h->lengths[op]; i++)
			leb(r, false);
	}
	return false;
}

static bool run_program(cptx_cubin_view *c, reader *r, const head *h)
{
	state s = { .line = 1 };

	while (r->p < r->end) {
		unsigned op = (unsigned)take(r, 1);
		bool row = op >= h->opcode_base;
		if (!op)
			extended(c, r, &s);
		else if (!row)
			row = standard(r, h, op, &s);
		else
			s.address += (op - h->opcode_base) / h->range * h->least,
				s.line += (uint64_t)h->base + (op - h->opcode_base) % h->range;
		if (row && !add(c, s.k, s.address, s.line))
			return false;
	}
	return !r->bad || cubin_bad(c, "the table of lines ends inside of an instruction");
}

static bool read_programs(cptx_cubin_view *c, const unsigned char *p, uint64_t size)
{
	reader all = { p, p, p + size, false };
	head h = { 0 };

	while (all.p < all.end) {
		uint64_t n = take(&all, 4);
		if (all.bad || n > (uint64_t)(all.end - all.p))
			return cubin_bad(c, "the table of lines is longer than its section");
		reader one = { p, all.p, all.p + n, false };
		if (!read_head(&one, &h))
			return cubin_bad(c, "the table of lines has a head that cannot be read");
		if (!run_program(c, &one, &h))
			return false;
		all.p += n;
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const cptx_cubin_line *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

bool cubin_read_lines(cptx_cubin_view *c)
{
	GElf_Shdr h;
	const unsigned char *p = NULL;

	if (cubin_section(c, ".nv_debug_line_sass", &h, &p) && p && !read_programs(c, p, h.sh_size))
		return false;
	for (size_t i = 0; i < c->nkernel; i++)
		if (c->kernel[i].nline)
			qsort(c->kernel[i].line, c->kernel[i].nline, sizeof *c->kernel[i].line, by_address);
	p = NULL;
	if (!cubin_section(c, ".nv_debug_ptx_txt", &h, &p) || !p)
		return !c->err || !c->err->code;
	if (!(c->ptx = malloc(h.sh_size + 1)))
		return cubin_bad(c, "out of memory");
	for (uint64_t i = 0; i < h.sh_size; i++)
		c->ptx[i] = p[i] ? (char)p[i] : '\n';
	c->ptx[h.sh_size] = 0;
	c->nptx = h.sh_size;
	return true;
}
