/* SPDX-License-Identifier: MIT */
/* What `cptx inspect` and `cptx diff` know of a file: PTX, what ptxas and the cubin say of it, machine code. */
#ifndef CPTX_TOOL_INSPECT_INSPECT_H
#define CPTX_TOOL_INSPECT_INSPECT_H

#include "cli/cli.h"

#include <cptx/inspect.h>

enum { SASS_BOARDS = 6 };
/* One instruction of the machine code. */
typedef struct sass_line {
	uint32_t address, ptx_line; /* 0: not known */
	enum cptx_unit unit;
	bool known;                      /* which registers it uses: */
	uint64_t registers[4];           /* R0 to R254, a bit for each */
	uint16_t live;                   /* registers, by cptx_cubin_view_live; 0: not known */
	uint8_t stall;                   /* cycles until the next one may be issued */
	uint8_t write_board, read_board; /* scoreboards that it releases, as in cptx_cubin_control */
	uint32_t from[SASS_BOARDS];      /* for each: the row that releases what this one waits for; UINT32_MAX: it does not */
	const char *text;                /* in inspected.disassembly */
	const char *label;               /* that stands in front of it, ".L_x_3"; NULL: none, or the tool tells none */
} sass_line;

typedef struct inspect_kernel {
	char *name;
	bool has_usage, has_spills; /* the figures below; spills are known from ptxas only */
	uint32_t registers, frame, stack, static_smem, barriers, param_bytes, constant0, code, spill_stores, spill_loads;
	uint32_t threads, dynamic_smem; /* of a CTA: by its bounds or as asked; 0 threads: not known */
	bool smem_given;                /* else no dynamic shared memory is assumed */
	cptx_flow *flow;                /* NULL: no PTX */
	cptx_kernel *body;
	bool has_occupancy;
	cptx_occupancy occupancy;
	sass_line *sass;
	size_t nsass;
	uint32_t live; /* the most registers alive in the machine code; 0: not known, for this reason */
	char live_unknown[200];
} inspect_kernel;

typedef struct inspected {
	const cli_command *cmd;
	const char *path;
	char *ptx;
	size_t size;
	const char **line; /* where each of its lines begins; of `cptx diff` */
	size_t nline;
	cptx_module *m; /* NULL: there is no PTX */
	const cptx_target *target;
	cptx_verdict *verdict; /* NULL: ptxas was not asked */
	char *output;
	char note[512]; /* why something is missing; "" */
	inspect_kernel *kernel;
	size_t nkernel;
	inspect_kernel **by_name; /* sorted */
	char *disassembly;
	unsigned char *code; /* the cubin */
	size_t ncode;
	bool read_sources; /* any that the PTX names; else only those beside it */
} inspected;

typedef struct inspect_opt {
	const char *arch;
	uint32_t threads; /* of a launch; 0: as the kernel says */
	uint32_t dynamic_smem;
	bool smem_given, read_sources;
} inspect_opt;

/* Reads a file, asks ptxas, nvdisasm or cuobjdump where they are.  False, after a message, if there is nothing to look at.
 */
bool inspect_load(inspected *in, const cli_command *cmd, const char *path, const inspect_opt *o);
void inspect_free(inspected *in);
/* The kernel of that name of n bytes, or NULL. */
inspect_kernel *inspect_named(const inspected *in, const char *name, size_t n);

/* ---- inspect/code.c: machine code; false, after a message, if there is no memory for it or the cubin is broken ---- */
bool code_read(inspected *in);                  /* the figures and kernels of in->code */
bool code_disassemble(inspected *in);           /* fills the machine code of all kernels; a note where there is no tool */
enum cptx_unit code_unit(const char *mnemonic); /* "HMMA.16816.F32" */
/* ---- inspect/text.c, inspect/json.c ---- */
void inspect_text(const inspected *in);
void inspect_json(const inspected *in, FILE *f);
void inspect_html(const inspected *in, FILE *f);

/* The source line behind a line of the PTX; file NULL: none but the PTX itself. */
cptx_site inspect_source(const inspected *in, uint32_t ptx_line);

#endif
