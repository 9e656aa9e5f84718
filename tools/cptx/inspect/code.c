/* SPDX-License-Identifier: MIT */
/* Machine code: the cubin by our own reader, instructions by nvdisasm or cuobjdump, where one is found. */
#include "inspect/inspect.h"

#include "compile/process.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef CPTX_HAVE_CUBIN
#include <cptx/cubin.h>

static void take_figures(inspect_kernel *k, const cptx_cubin_kernel *c)
{
	const uint32_t *block = c->block[0] ? c->block : c->max_block;

	k->registers = c->registers, k->frame = c->frame, k->stack = c->stack, k->static_smem = c->static_smem;
	k->barriers = c->barriers, k->param_bytes = c->param_bytes, k->constant0 = c->constant[0], k->code = c->code;
	k->threads = block[0] ? block[0] * (block[1] ? block[1] : 1) * (block[2] ? block[2] : 1) : 0;
	k->has_usage = true;
}

/*
 * What each instruction waits for: who releases the scoreboard last in front of it, or, where nobody does, in a loop, last
 * in the code.
 */
static void note_waits(inspect_kernel *k, const cptx_cubin_view *v, size_t i)
{
	uint32_t last[8]; /* 6: there is none, 7: none */
	cptx_cubin_control c;

	memset(last, 0xff, sizeof last);
	for (uint32_t j = 0; j < k->nsass; j++)
		last[k->sass[j].write_board] = last[k->sass[j].read_board] = j;
	for (uint32_t j = 0; j < k->nsass; j++) {
		cptx_cubin_view_control(v, i, j * 16, &c);
		for (unsigned b = 0; b < SASS_BOARDS; b++)
			k->sass[j].from[b] = c.waits >> b & 1 ? last[b] : UINT32_MAX;
		last[c.write_board] = last[c.read_board] = j;
	}
}

/* Rows for the instructions, 16 bytes each, with the lines they come from. */
static bool take_lines(inspect_kernel *k, const cptx_cubin_view *v, size_t i)
{
	size_t n, at = 0;
	const cptx_cubin_line *line = cptx_cubin_view_lines(v, i, &n);

	k->nsass = k->code / 16;
	if (!(k->sass = calloc(k->nsass + 1, sizeof *k->sass)))
		return false;
	for (size_t j = 0; j < k->nsass; j++) {
		uint32_t address = (uint32_t)j * 16;
		cptx_cubin_control c;
		while (at < n && line[at].address <= address)
			at++;
		cptx_cubin_view_control(v, i, address, &c);
		k->sass[j] = (sass_line){ .address = address,
			                      .ptx_line = at ? line[at - 1].line : 0,
			                      .stall = c.stall,
			                      .write_board = c.write_board,
			                      .read_board = c.read_board };
		k->sass[j].known = cptx_cubin_view_registers(v, i, address, k->sass[j].registers);
	}
	note_waits(k, v, i);
	return true;
}

static bool take_live(inspect_kernel *k, const cptx_cubin_view *v, size_t i)
{
	uint16_t *live = calloc(k->nsass + 1, sizeof *live);
	cptx_error err = { 0 };

	if (!live)
		return false;
	if (!(k->live = cptx_cubin_view_live(v, i, live, k->nsass, &err)))
		snprintf(k->live_unknown, sizeof k->live_unknown, "%.190s", err.text);
	for (size_t j = 0; j < k->nsass; j++)
		k->sass[j].live = live[j];
	free(live);
	return err.code != CPTX_E_MEMORY;
}

bool code_read(inspected *in)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_cubin_kernel c;
	cptx_cubin_view *v = cptx_cubin_view_of(in->code, in->ncode, in->path, &err);
	size_t n;

	if (!v) {
		cli_failed(in->cmd, "%s", err.text);
		return false;
	}
	in->target = cptx_cubin_view_target(v);
	const char *ptx = cptx_cubin_view_ptx(v, &n);
	bool ok = in->ptx || !ptx || (in->ptx = strdup(ptx));
	in->size = in->ptx ? strlen(in->ptx) : 0;
	for (size_t i = 0; ok && cptx_cubin_view_kernel(v, i, &c); i++) {
		inspect_kernel *grown = realloc(in->kernel, (in->nkernel + 1) * sizeof *grown);
		if (!(ok = grown != NULL))
			break;
		in->kernel = grown;
		inspect_kernel *k = &grown[in->nkernel++];
		*k = (inspect_kernel){ 0 };
		take_figures(k, &c);
		ok = (k->name = strdup(c.name)) && take_lines(k, v, i) && take_live(k, v, i);
	}
	cptx_cubin_view_destroy(v);
	return ok || cli_no_memory(in->cmd);
}
#else
bool code_read(inspected *in)
{
	if (!in->verdict)
		cli_failed(in->cmd, "%s: this cptx was built without libelf, so it cannot read cubins", in->path);
	snprintf(in->note, sizeof in->note,
	         "built without libelf: figures are those of ptxas -v, and machine code is not joined");
	return in->verdict != NULL;
}
#endif

/* ---- instructions ---- */

/* By the first letters of the mnemonic; the first that fits. */
static const struct kind {
	const char *front;
	enum cptx_unit unit;
} kinds[] = {
	{ "LDSM", CPTX_UNIT_SHARED },        { "STSM", CPTX_UNIT_SHARED },    { "LDS", CPTX_UNIT_SHARED },
	{ "STS", CPTX_UNIT_SHARED },         { "ATOMS", CPTX_UNIT_SHARED },   { "LDTM", CPTX_UNIT_SHARED },
	{ "STTM", CPTX_UNIT_SHARED },        { "LDL", CPTX_UNIT_LOCAL },      { "STL", CPTX_UNIT_LOCAL },
	{ "LDGSTS", CPTX_UNIT_COPY },        { "LDGDEPBAR", CPTX_UNIT_SYNC }, { "LDG", CPTX_UNIT_GLOBAL },
	{ "STG", CPTX_UNIT_GLOBAL },         { "LDC", CPTX_UNIT_CONSTANT },   { "ULDC", CPTX_UNIT_CONSTANT },
	{ "LD", CPTX_UNIT_GLOBAL },          { "ST", CPTX_UNIT_GLOBAL },      { "ATOM", CPTX_UNIT_GLOBAL },
	{ "RED", CPTX_UNIT_GLOBAL },         { "TEX", CPTX_UNIT_GLOBAL },     { "TLD", CPTX_UNIT_GLOBAL },
	{ "SULD", CPTX_UNIT_GLOBAL },        { "SUST", CPTX_UNIT_GLOBAL },    { "UTMA", CPTX_UNIT_COPY },
	{ "UBLK", CPTX_UNIT_COPY },          { "UTCCP", CPTX_UNIT_COPY },     { "MUFU", CPTX_UNIT_SPECIAL },
	{ "DADD", CPTX_UNIT_DOUBLE },        { "DMUL", CPTX_UNIT_DOUBLE },    { "DFMA", CPTX_UNIT_DOUBLE },
	{ "DSETP", CPTX_UNIT_DOUBLE },       { "FADD", CPTX_UNIT_FLOAT },     { "FMUL", CPTX_UNIT_FLOAT },
	{ "FFMA", CPTX_UNIT_FLOAT },         { "FMNMX", CPTX_UNIT_FLOAT },    { "HADD", CPTX_UNIT_FLOAT },
	{ "HMUL", CPTX_UNIT_FLOAT },         { "HFMA", CPTX_UNIT_FLOAT },     { "BAR", CPTX_UNIT_SYNC },
	{ "SYNCS", CPTX_UNIT_SYNC },         { "UCGABAR", CPTX_UNIT_SYNC },   { "MEMBAR", CPTX_UNIT_SYNC },
	{ "FENCE", CPTX_UNIT_SYNC },         { "DEPBAR", CPTX_UNIT_SYNC },    { "WARPGROUP", CPTX_UNIT_SYNC },
	{ "WARPSYNC", CPTX_UNIT_SYNC },      { "ERRBAR", CPTX_UNIT_SYNC },    { "CCTL", CPTX_UNIT_SYNC },
	{ "UTCBAR", CPTX_UNIT_SYNC },        { "BRA", CPTX_UNIT_CONTROL },    { "BRX", CPTX_UNIT_CONTROL },
	{ "EXIT", CPTX_UNIT_CONTROL },       { "RET", CPTX_UNIT_CONTROL },    { "CALL", CPTX_UNIT_CONTROL },
	{ "BSSY", CPTX_UNIT_CONTROL },       { "BSYNC", CPTX_UNIT_CONTROL },  { "NOP", CPTX_UNIT_CONTROL },
	{ "USETMAXREG", CPTX_UNIT_CONTROL },
};

enum cptx_unit code_unit(const char *mnemonic)
{
	size_t n = strcspn(mnemonic, ". ;");

	for (size_t i = 0; i + 3 <= n; i++) /* HMMA, IMMA, HGMMA, UTCQMMA, ... */
		if (!strncmp(mnemonic + i, "MMA", 3))
			return CPTX_UNIT_TENSOR;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strncmp(mnemonic, kinds[i].front, strlen(kinds[i].front)))
			return kinds[i].unit;
	return CPTX_UNIT_INTEGER;
}

/* "    / *0010* /   @!P0 LDC R1, c[0x0][0x28] ;", of nvdisasm and cuobjdump; the line is cut at the semicolon. */
static void take_instruction(inspect_kernel *k, char *line, const char **label)
{
	char *p = line + strspn(line, " \t"), *end;

	if (strncmp(p, "/*", 2) || !isxdigit((unsigned char)p[2]))
		return;
	unsigned long address = strtoul(p + 2, &end, 16);
	if (strncmp(end, "*/", 2) || address % 16 || address / 16 >= k->nsass)
		return;
	p = end + 2 + strspn(end + 2, " \t");
	if (!(end = strchr(p, ';')))
		return;
	sass_line *s = &k->sass[address / 16];
	while (end > p && end[-1] == ' ')
		end--;
	*end = 0;
	s->text = p;
	s->label = *label;
	*label = NULL;
	if (*p == '@')
		p += strcspn(p, " "), p += strspn(p, " ");
	s->unit = code_unit(p);
}

static void take_all(inspected *in)
{
	inspect_kernel *k = NULL;
	const char *label = NULL;

	for (char *line = in->disassembly, *end; line; line = end) {
		if ((end = strchr(line, '\n')))
			*end++ = 0;
		const char *function = strstr(line, "Function : ");
		size_t n = strcspn(line, ":");
		if (!strncmp(line, ".text.", 6) && line[n] == ':')
			k = inspect_named(in, line + 6, n - 6);
		else if (function)
			k = inspect_named(in, function + 11, strcspn(function + 11, " \r"));
		else if (k && !strncmp(line, ".L_", 3) && line[n] == ':')
			line[n] = 0, label = label ? label : line;
		else if (k)
			take_instruction(k, line, &label);
	}
}

bool code_disassemble(inspected *in)
{
	static const char *const tools[][3] = { { "nvdisasm", "CPTX_NVDISASM", "-c" },
		                                    { "cuobjdump", "CPTX_CUOBJDUMP", "-sass" } };
	char path[4096], file[40];
	int fd = -1;

	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
		if (!process_find(tools[i][0], tools[i][1], path, sizeof path) || (fd = process_file(in->code, in->ncode)) < 0)
			continue;
		errno = 0;
		snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
		char *argv[] = { path, file, (char *)tools[i][2], NULL };
		process p = { .argv = argv, .keep = &fd, .nkeep = 1, .limit_ms = 60000 };
		bool began = process_run(&p), lost = p.lost || (!began && errno == ENOMEM);
		close(fd);
		if (began && !p.status && !lost) {
			in->disassembly = p.output;
			take_all(in);
			return true;
		}
		if (lost) {
			free(p.output);
			return cli_no_memory(in->cmd);
		}
		snprintf(in->note, sizeof in->note, "%s could not read the machine code: %.200s", tools[i][0],
		         p.output ? p.output : strerror(errno));
		free(p.output);
	}
	if (!*in->note)
		snprintf(in->note, sizeof in->note,
		         "no nvdisasm or cuobjdump (CPTX_NVDISASM, CPTX_CUOBJDUMP, PATH): machine code is not shown");
	return true;
}
