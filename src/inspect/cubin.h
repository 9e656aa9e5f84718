/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the cubin reader share. */
#ifndef CPTX_INSPECT_CUBIN_H
#define CPTX_INSPECT_CUBIN_H

#include <cptx/cubin.h>

#include <gelf.h>

typedef struct cubin_kernel {
	cptx_cubin_kernel k;
	size_t section, symbol; /* sections of its code and of its name */
	const unsigned char *code;
	const unsigned char *branches; /* the list of targets of indirect branches, with its size in bytes */
	size_t nbranches;
	cptx_cubin_line *line;
	size_t nline, cap_line;
} cubin_kernel;

struct cptx_cubin_view {
	char *bytes; /* the copied image, which libelf reads */
	size_t size;
	Elf *elf;
	const char *name; /* name for messages */
	cptx_error *err;
	const cptx_target *target;
	unsigned arch; /* number of the architecture, such as 90 */
	cubin_kernel *kernel;
	size_t nkernel;
	uint64_t globals;
	char *ptx;
	size_t nptx;
};

/* Sets the error; returns false. */
bool cubin_bad(cptx_cubin_view *c, const char *format, ...) CPTX_PRINTF_(2, 3);
/* Finds the first section with that name, NULL if there is none; *p gets its bytes, NULL for a section without. */
Elf_Scn *cubin_section(cptx_cubin_view *c, const char *name, GElf_Shdr *h, const unsigned char **p);
/* ---- cubin_line.c ---- */
bool cubin_read_lines(cptx_cubin_view *c);

static inline uint32_t cubin_u16(const unsigned char *p) { return p[0] | (uint32_t)p[1] << 8; }
static inline uint32_t cubin_u32(const unsigned char *p) { return cubin_u16(p) | cubin_u16(p + 2) << 16; }
static inline uint64_t cubin_u64(const unsigned char *p) { return cubin_u32(p) | (uint64_t)cubin_u32(p + 4) << 32; }

#endif
