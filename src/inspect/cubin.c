/* SPDX-License-Identifier: MIT */
/*
 * Reading cubins.  A cubin is an ELF file: the code of kernel K is in .text.K, its shared memory in .nv.shared.K, its
 * constant banks in .nv.constantN.K, and two lists of attributes are for the loader, .nv.info (all functions) and
 * .nv.info.K. An attribute has a byte of format, a byte of kind and two bytes of value; for format 4 the value is the size
 * of the data that follow.
 */
#include "base/options.h"
#include "inspect/cubin.h"
#include "inspect/sass.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE_CUDA = 190, OTHER_ENTRY = 0x10 /* flag in st_other of a kernel's symbol */, MOST_KERNELS = 1 << 20 };
enum info_format { INFO_NONE = 1, INFO_BYTE = 2, INFO_HALF = 3, INFO_SIZED = 4 };
enum info_kind {
	INFO_MAX_THREADS = 0x05,
	INFO_REQNTID = 0x10,
	INFO_FRAME_SIZE = 0x11,
	INFO_MIN_STACK_SIZE = 0x12,
	INFO_PARAM_SIZE = 0x19,
	INFO_MAXREG_COUNT = 0x1b,
	INFO_REGCOUNT = 0x2f,
	INFO_BRANCH_TARGETS = 0x34,
	INFO_CTA_PER_CLUSTER = 0x3d,
	INFO_NUM_BARRIERS = 0x4c,
	INFO_REG_RECONFIG = 0x54
};
/* bytes of a CTA's shared memory that the system keeps, counted in .nv.shared from sm_90 on */
enum { RESERVED_SMEM = 1024 };

bool cubin_bad(cptx_cubin_view *c, const char *format, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	if (c->err && !c->err->code) {
		c->err->code = CPTX_E_PARSE;
		snprintf(c->err->file, sizeof c->err->file, "%s", c->name);
		snprintf(c->err->text, sizeof c->err->text, "%s: %s", c->name, what);
	}
	return false;
}

static const char *section_name(cptx_cubin_view *c, const GElf_Shdr *h)
{
	size_t names;
	const char *name = elf_getshdrstrndx(c->elf, &names) ? NULL : elf_strptr(c->elf, names, h->sh_name);

	return name ? name : "";
}

/* Reads the bytes of a section; false, with an error, if they are not all in the file. */
static bool section_bytes(cptx_cubin_view *c, Elf_Scn *s, const GElf_Shdr *h, const unsigned char **p)
{
	*p = NULL;
	if (h->sh_type == SHT_NOBITS || !h->sh_size)
		return true;
	if (h->sh_offset > c->size || h->sh_size > c->size - h->sh_offset)
		return cubin_bad(c, "section %zu ends behind the end of the file: the cubin is truncated", elf_ndxscn(s));
	*p = (const unsigned char *)c->bytes + h->sh_offset;
	return true;
}

Elf_Scn *cubin_section(cptx_cubin_view *c, const char *name, GElf_Shdr *h, const unsigned char **p)
{
	for (Elf_Scn *s = NULL; (s = elf_nextscn(c->elf, s));)
		if (gelf_getshdr(s, h) && !strcmp(section_name(c, h), name))
			return section_bytes(c, s, h, p) ? s : NULL;
	return NULL;
}

static cubin_kernel *by_symbol(cptx_cubin_view *c, uint32_t symbol)
{
	for (size_t i = 0; i < c->nkernel; i++)
		if (c->kernel[i].symbol == symbol)
			return &c->kernel[i];
	return NULL;
}

/* ---- attributes ---- */

static void three(uint32_t out[3], const unsigned char *p, uint32_t n)
{
	for (unsigned i = 0; i < 3 && 4 * i + 4 <= n; i++)
		out[i] = cubin_u32(p + 4 * i);
}

static void note_common(cptx_cubin_view *c, unsigned kind, const unsigned char *p, uint32_t n)
{
	cubin_kernel *k = n >= 8 ? by_symbol(c, cubin_u32(p)) : NULL;

	if (!k)
		return;
	switch (kind) {
	case INFO_REGCOUNT: k->k.registers = cubin_u32(p + 4); break;
	case INFO_FRAME_SIZE: k->k.frame = cubin_u32(p + 4); break;
	case INFO_MIN_STACK_SIZE: k->k.stack = cubin_u32(p + 4); break;
	default: break;
	}
}

static void note_own(cubin_kernel *own, unsigned kind, const unsigned char *p, uint32_t n, uint32_t value)
{
	cptx_cubin_kernel *k = &own->k;

	switch (kind) {
	case INFO_MAX_THREADS: three(k->max_block, p, n); break;
	case INFO_REQNTID: three(k->block, p, n); break;
	case INFO_CTA_PER_CLUSTER: three(k->cluster, p, n); break;
	case INFO_PARAM_SIZE: k->param_bytes = value; break;
	case INFO_MAXREG_COUNT: k->max_registers = value; break;
	case INFO_NUM_BARRIERS: k->barriers = value & 0xff; break;
	case INFO_REG_RECONFIG: k->reallocates = true; break;
	case INFO_BRANCH_TARGETS: own->branches = p, own->nbranches = n; break;
	default: break;
	}
}

/* Reads a list of attributes; `own`: the kernel that it is about, NULL: all. */
static bool read_info(cptx_cubin_view *c, const unsigned char *p, uint64_t size, const char *section, cubin_kernel *own)
{
	for (uint64_t at = 0; at < size;) {
		if (size - at < 4)
			return cubin_bad(c, "%s ends inside of an attribute", section);
		unsigned format = p[at], kind = p[at + 1];
		uint32_t value = cubin_u16(p + at + 2), n = format == INFO_SIZED ? value : 0;
		at += 4;
		if (format < INFO_NONE || format > INFO_SIZED)
			return cubin_bad(c, "%s has an attribute of format %u; 1 to 4 exist", section, format);
		if (n > size - at)
			return cubin_bad(c, "attribute 0x%x ends behind the end of %s", kind, section);
		if (own)
			note_own(own, kind, p + at, n, value);
		else
			note_common(c, kind, p + at, n);
		at += n;
	}
	return true;
}

/* ---- sections of a kernel ---- */

static cubin_kernel *by_suffix(cptx_cubin_view *c, const char *name, const char *front)
{
	size_t n = strlen(front);

	for (size_t i = 0; !strncmp(name, front, n) && i < c->nkernel; i++)
		if (!strcmp(name + n, c->kernel[i].k.name))
			return &c->kernel[i];
	return NULL;
}

static uint32_t less(uint64_t n) { return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX; }

static void note_shared(const cptx_cubin_view *c, cubin_kernel *k, uint64_t size)
{
	k->k.reserved_smem = c->arch >= 90 && size >= RESERVED_SMEM ? RESERVED_SMEM : 0;
	k->k.static_smem = less(size - k->k.reserved_smem);
}

static bool read_section(cptx_cubin_view *c, Elf_Scn *s, const GElf_Shdr *h)
{
	const char *name = section_name(c, h);
	const unsigned char *p;
	cubin_kernel *k;

	if (!section_bytes(c, s, h, &p))
		return false;
	if ((k = by_suffix(c, name, ".text.")))
		k->k.code = less(h->sh_size), k->section = elf_ndxscn(s), k->code = p;
	else if ((k = by_suffix(c, name, ".nv.shared.")))
		note_shared(c, k, h->sh_size);
	else if ((k = by_suffix(c, name, ".nv.info.")))
		return read_info(c, p, p ? h->sh_size : 0, name, k);
	else if (!strcmp(name, ".nv.info"))
		return read_info(c, p, p ? h->sh_size : 0, name, NULL);
	else if (!strcmp(name, ".nv.global") || !strcmp(name, ".nv.global.init"))
		c->globals += h->sh_size;
	for (unsigned bank = 0; bank < 8; bank++) {
		char front[] = { ".nv.constant?." };
		front[sizeof ".nv.constant" - 1] = (char)('0' + bank);
		if ((k = by_suffix(c, name, front)))
			k->k.constant[bank] = less(h->sh_size);
	}
	return true;
}

/* ---- symbols ---- */

static bool add_kernel(cptx_cubin_view *c, const char *name, size_t symbol)
{
	cubin_kernel *grown = realloc(c->kernel, (c->nkernel + 1) * sizeof *grown);

	if (!grown)
		return cubin_bad(c, "out of memory");
	c->kernel = grown;
	grown[c->nkernel++] = (cubin_kernel){ .k = { .name = name }, .symbol = symbol };
	return true;
}

static bool read_symbols(cptx_cubin_view *c)
{
	GElf_Shdr h;
	const unsigned char *p;
	Elf_Scn *s = cubin_section(c, ".symtab", &h, &p);
	Elf_Data *d = s ? elf_getdata(s, NULL) : NULL;
	GElf_Sym sym;

	if (!d || h.sh_entsize != sizeof(Elf64_Sym))
		return cubin_bad(c, "there is no table of symbols");
	for (size_t i = 0; i < h.sh_size / h.sh_entsize && i < MOST_KERNELS && gelf_getsym(d, (int)i, &sym); i++) {
		const char *name = elf_strptr(c->elf, h.sh_link, sym.st_name);
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || !(sym.st_other & OTHER_ENTRY) || sym.st_shndx == SHN_UNDEF)
			continue;
		if (!name || !*name)
			return cubin_bad(c, "symbol %zu has no name", i);
		if (!add_kernel(c, name, i))
			return false;
	}
	return true;
}

/* Finds the target.  e_flags has the number of the architecture; only the note of the tool tells sm_90a from sm_90. */
static void read_target(cptx_cubin_view *c, const GElf_Ehdr *e)
{
	char name[16];
	GElf_Shdr h;
	const unsigned char *p = NULL;

	c->arch = e->e_ident[EI_ABIVERSION] >= 8 ? e->e_flags >> 8 & 0xff : e->e_flags & 0xff;
	snprintf(name, sizeof name, "sm_%u", c->arch);
	c->target = cptx_target_find(name);
	size_t n = strlen(name);
	if (!cubin_section(c, ".note.nv.tkinfo", &h, &p) || !p)
		return;
	for (size_t i = 0; i + n < h.sh_size; i++)
		if (!memcmp(p + i, name, n) && (p[i + n] == 'a' || p[i + n] == 'f')) {
			name[n] = (char)p[i + n], name[n + 1] = 0;
			c->target = cptx_target_find(name);
			return;
		}
}

/* Whether the section and segment tables, and the bytes of the segments, are in the file. */
static bool is_whole(cptx_cubin_view *c, const GElf_Ehdr *e)
{
	size_t sections, segments = e->e_phnum; /* numbers from the header: libelf leaves out entries that are not in the file */
	GElf_Phdr p;

	if (elf_getshdrnum(c->elf, &sections))
		return cubin_bad(c, "the head of the ELF file cannot be read: %s", elf_errmsg(-1));
	if (!e->e_shoff)
		return cubin_bad(c, "there is no table of sections");
	if (!sections || e->e_shoff > c->size || sections > (c->size - e->e_shoff) / sizeof(Elf64_Shdr))
		return cubin_bad(c, "the table of sections ends behind the end of the file: the cubin is truncated");
	if (segments && (e->e_phoff > c->size || segments > (c->size - e->e_phoff) / sizeof(Elf64_Phdr)))
		return cubin_bad(c, "the table of segments ends behind the end of the file: the cubin is truncated");
	for (size_t i = 0; i < segments; i++)
		if (!gelf_getphdr(c->elf, (int)i, &p) || p.p_offset > c->size || p.p_filesz > c->size - p.p_offset)
			return cubin_bad(c, "segment %zu ends behind the end of the file: the cubin is truncated", i);
	return true;
}

static bool read_all(cptx_cubin_view *c)
{
	GElf_Ehdr e;
	GElf_Shdr h;

	if (c->size < 4 || memcmp(c->bytes, ELFMAG, SELFMAG))
		return cubin_bad(c, "this is no cubin: it does not begin as an ELF file");
	if (c->size < sizeof(Elf64_Ehdr))
		return cubin_bad(c, "the head of the ELF file takes %zu bytes, and there are %zu: the cubin is truncated",
		                 sizeof(Elf64_Ehdr), c->size);
	if (elf_version(EV_CURRENT) == EV_NONE || !(c->elf = elf_memory(c->bytes, c->size)) || !gelf_getehdr(c->elf, &e))
		return cubin_bad(c, "the head of the ELF file cannot be read: %s", elf_errmsg(-1));
	if (e.e_machine != MACHINE_CUDA || gelf_getclass(c->elf) != ELFCLASS64)
		return cubin_bad(c, "this is no cubin: an ELF file for machine %u; cubins are 64-bit, machine %d", e.e_machine,
		                 MACHINE_CUDA);
	if (!is_whole(c, &e))
		return false;
	read_target(c, &e);
	if (!read_symbols(c))
		return false;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(c->elf, s));)
		if (!gelf_getshdr(s, &h) || !read_section(c, s, &h))
			return cubin_bad(c, "section %zu cannot be read: %s", elf_ndxscn(s), elf_errmsg(-1));
	for (size_t i = 0; i < c->nkernel; i++)
		if (!c->kernel[i].section)
			return cubin_bad(c, "kernel %s has no code", c->kernel[i].k.name);
	return cubin_read_lines(c);
}

cptx_cubin_view *cptx_cubin_view_of(const void *bytes, size_t size, const char *name, cptx_error *err)
{
	if (!may_go(err))
		return NULL;
	cptx_cubin_view *c = calloc(1, sizeof *c);
	bool given = bytes || !size;
	if (!c || !given || !(c->bytes = malloc(size + 1))) {
		if (err) {
			err->code = given ? CPTX_E_MEMORY : CPTX_E_ARG;
			snprintf(err->text, sizeof err->text, given ? "out of memory" : "cptx_cubin_view_of: the cubin is NULL");
		}
		cptx_cubin_view_destroy(c);
		return NULL;
	}
	if (size)
		memcpy(c->bytes, bytes, size);
	c->bytes[size] = 0;
	c->size = size, c->err = err, c->name = name ? name : "cubin";
	bool ok = read_all(c);
	c->err = NULL, c->name = NULL; /* these belong to the caller */
	if (ok)
		return c;
	cptx_cubin_view_destroy(c);
	return NULL;
}

void cptx_cubin_view_destroy(cptx_cubin_view *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nkernel; i++)
		free(c->kernel[i].line);
	elf_end(c->elf);
	free(c->kernel);
	free(c->ptx);
	free(c->bytes);
	free(c);
}

const cptx_target *cptx_cubin_view_target(const cptx_cubin_view *c) { return c ? c->target : NULL; }
uint64_t cptx_cubin_view_globals(const cptx_cubin_view *c) { return c ? c->globals : 0; }

bool cptx_cubin_view_kernel_(const cptx_cubin_view *c, size_t i, cptx_cubin_kernel *out, size_t size)
{
	if (!c || i >= c->nkernel || !out)
		return false;
	RESULT_FILL(out, size, &c->kernel[i].k);
	return true;
}

const cptx_cubin_line *cptx_cubin_view_lines(const cptx_cubin_view *c, size_t i, size_t *n)
{
	size_t lines = c && i < c->nkernel ? c->kernel[i].nline : 0;

	if (n)
		*n = lines;
	return lines ? c->kernel[i].line : NULL;
}

bool cptx_cubin_view_control_(const cptx_cubin_view *c, size_t i, uint32_t address, cptx_cubin_control *out, size_t size)
{
	enum { AT = 105 - 96 /* offset of the last 32-bit word */ };

	if (!out)
		return false;
	cptx_cubin_control x = { 0 };
	RESULT_FILL(out, size, &x);
	if (!c || i >= c->nkernel || !c->kernel[i].code || address % 16 || address >= c->kernel[i].k.code / 16 * 16)
		return false;
	uint32_t bits = cubin_u32(c->kernel[i].code + address + 12) >> AT;
	x = (cptx_cubin_control){
		.stall = bits & 15, .write_board = bits >> 5 & 7, .read_board = bits >> 8 & 7, .waits = bits >> 11 & 63
	};
	RESULT_FILL(out, size, &x);
	return true;
}

bool cptx_cubin_view_registers(const cptx_cubin_view *c, size_t i, uint32_t address, uint64_t registers[4])
{
	sass_insn is;

	if (!registers)
		return false;
	memset(registers, 0, SASS_WORDS * sizeof *registers);
	if (!c || i >= c->nkernel || !c->kernel[i].code || address % 16 || address >= c->kernel[i].k.code / 16 * 16 ||
	    !sass_knows(c->arch) || !sass_decode(c->kernel[i].code + address, c->arch, address, &is))
		return false;
	for (unsigned w = 0; w < SASS_WORDS; w++)
		registers[w] = is.use.w[w] | is.def.w[w];
	return true;
}

const char *cptx_cubin_view_ptx(const cptx_cubin_view *c, size_t *size)
{
	if (size)
		*size = c ? c->nptx : 0;
	return c ? c->ptx : NULL;
}
