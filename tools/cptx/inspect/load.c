/* SPDX-License-Identifier: MIT */
#include "inspect/inspect.h"

#include "compile/piece.h"

#include <cptx/compile.h>

#include <stdlib.h>
#include <string.h>

cptx_site inspect_source(const inspected *in, uint32_t ptx_line)
{
	cptx_site at = in->verdict ? cptx_verdict_origin(in->verdict, ptx_line) : (cptx_site){ NULL, 0 };

	return at.file && strcmp(at.file, in->path) != 0 ? at : (cptx_site){ NULL, 0 };
}

/* ---- asking ptxas ---- */

/* Compiles to a program or, where functions or variables of other files are missing, to an object. */
static cptx_cubin *compile(const inspected *in, const inspect_opt *o, cptx_error *err)
{
	static const char *const flags[] = { "-lineinfo" };
	const cptx_site nowhere = { NULL, 0 };
	cptx_compile_opt opt = {
		.compiler = CPTX_COMPILER_PTXAS, .target = o->arch, .name = in->path, .verbose = true, .nflags = 1, .flags = flags
	};
	cptx_cubin *c = cptx_compile_(nowhere, in->ptx, in->size, &opt, err);

	if (c || !strstr(err->text, "Unresolved extern"))
		return c;
	*err = (cptx_error){ 0 };
	opt.relocatable = true;
	return cptx_compile_(nowhere, in->ptx, in->size, &opt, err);
}

static bool ask(inspected *in, const inspect_opt *o)
{
	cptx_error err = { 0 };
	cptx_cubin *c = compile(in, o, &err);
	const char *log = "";

	if (!c && (err.code == CPTX_E_COMPILE || err.code == CPTX_E_MEMORY)) {
		cli_failed(in->cmd, "%s", err.text);
		return false;
	}
	if (!c) {
		snprintf(in->note, sizeof in->note, "%.400s: figures are estimates from the PTX", err.text);
	} else {
		log = cptx_cubin_log(c);
		in->ncode = cptx_cubin_size(c);
		if (!(in->code = malloc(in->ncode + 1))) {
			cptx_cubin_destroy(c);
			return cli_no_memory(in->cmd);
		}
		memcpy(in->code, cptx_cubin_data(c), in->ncode);
	}
	in->verdict =
		cptx_verdict_read(log, strlen(log), &(cptx_verdict_opt){ .ptx = in->ptx, .ptx_size = in->size, .name = in->path });
	cptx_cubin_destroy(c);
	return in->verdict || cli_no_memory(in->cmd);
}

/* ---- kernels ---- */

static bool add_kernel(inspected *in, const char *name)
{
	inspect_kernel *grown = realloc(in->kernel, (in->nkernel + 1) * sizeof *grown);

	if (!grown)
		return cli_no_memory(in->cmd);
	in->kernel = grown;
	grown[in->nkernel++] = (inspect_kernel){ .name = strdup(name) };
	return grown[in->nkernel - 1].name || cli_no_memory(in->cmd);
}

/* Where nobody read the cubin, ptxas -v has most of it. */
static void from_verdict(inspected *in, inspect_kernel *k)
{
	const cptx_usage *u = cptx_verdict_usage_of(in->verdict, k->name);

	if (!u)
		return;
	k->spill_stores = u->spill_stores, k->spill_loads = u->spill_loads, k->has_spills = true;
	if (k->has_usage)
		return;
	k->registers = u->registers, k->frame = u->frame, k->stack = u->stack, k->static_smem = u->static_smem;
	k->barriers = u->barriers, k->constant0 = u->constant[0], k->has_usage = u->is_kernel;
}

static uint32_t volume(const uint32_t d[3]) { return d[0] ? d[0] * (d[1] ? d[1] : 1) * (d[2] ? d[2] : 1) : 0; }

static bool from_module(inspected *in, inspect_kernel *k)
{
	cptx_kernel_info info;
	cptx_error err = { 0 };

	if (!in->m || !(k->body = cptx_module_body(in->m, k->name)))
		return true;
	if (!(k->flow = cptx_flow_of(k->body, &err)) && err.code == CPTX_E_MEMORY)
		return cli_no_memory(in->cmd);
	if (!k->flow && !*in->note)
		snprintf(in->note, sizeof in->note, "%.500s", err.text);
	if (!cptx_module_kernel(in->m, k->name, &info))
		return true;
	if (!k->threads)
		k->threads = volume(info.bounds.block) ? volume(info.bounds.block) : volume(info.bounds.max_block);
	if (!k->has_usage)
		k->registers = cptx_flow_registers(k->flow), k->static_smem = info.static_smem;
	return true;
}

static bool list_kernels(inspected *in)
{
	cptx_kernel *k;

	if (in->nkernel)
		return true; /* the cubin had them */
	for (size_t i = 0; (k = cptx_module_body_at(in->m, i)); i++)
		if (!cptx_body_is_func(k) && !add_kernel(in, cptx_body_name(k)))
			return false;
	return true;
}

static int by_name(const void *a, const void *b)
{
	const inspect_kernel *x = *(inspect_kernel *const *)a, *y = *(inspect_kernel *const *)b;
	int order = strcmp(x->name, y->name);

	return order ? order : x < y ? -1 : x > y;
}

static bool sort_kernels(inspected *in)
{
	if (!(in->by_name = malloc((in->nkernel + 1) * sizeof(inspect_kernel *))))
		return cli_no_memory(in->cmd);
	for (size_t i = 0; i < in->nkernel; i++)
		in->by_name[i] = &in->kernel[i];
	qsort(in->by_name, in->nkernel, sizeof *in->by_name, by_name);
	return true;
}

inspect_kernel *inspect_named(const inspected *in, const char *name, size_t n)
{
	size_t from = 0, to = in->nkernel;

	while (from < to) { /* the first that is not in front of the name */
		size_t mid = from + (to - from) / 2;
		int order = strncmp(in->by_name[mid]->name, name, n);
		if (order < 0)
			from = mid + 1;
		else
			to = mid;
	}
	bool found = from < in->nkernel && !strncmp(in->by_name[from]->name, name, n) && !in->by_name[from]->name[n];
	return found ? in->by_name[from] : NULL;
}

static bool complete(inspected *in, const inspect_opt *o)
{
	for (size_t i = 0; i < in->nkernel; i++) {
		inspect_kernel *k = &in->kernel[i];
		k->threads = o->threads ? o->threads : k->threads;
		k->dynamic_smem = o->dynamic_smem, k->smem_given = o->smem_given;
		from_verdict(in, k);
		if (!from_module(in, k))
			return false;
		k->has_occupancy =
			in->target && k->threads &&
			cptx_occupancy_of(in->target, k->registers, k->static_smem + k->dynamic_smem, k->threads, &k->occupancy);
	}
	return true;
}

static bool take_code(inspected *in)
{
	in->code = (unsigned char *)in->ptx, in->ncode = in->size;
	in->ptx = NULL, in->size = 0;
	return code_read(in);
}

static bool read_module(inspected *in)
{
	if (!in->ptx)
		return true;
	in->m = cptx_parse(in->ptx, in->size, &(cptx_parse_opt){ .name = in->path });
	if (!in->m || cptx_module_error(in->m) || !cptx_module_freeze(in->m)) {
		cli_failed(in->cmd, "%s", in->m ? cptx_module_error(in->m)->text : "out of memory");
		return false;
	}
	return true;
}

bool inspect_load(inspected *in, const cli_command *cmd, const char *path, const inspect_opt *o)
{
	*in = (inspected){ .cmd = cmd, .path = strcmp(path, "-") ? path : "<stdin>", .read_sources = o->read_sources };
	if (!(in->ptx = cli_read(cmd, path, &in->size)))
		return false;
	char *text = realloc(in->ptx, in->size + 1);
	if (!text)
		return cli_no_memory(cmd);
	in->ptx = text, text[in->size] = 0;
	piece_form form = piece_kind(in->ptx, in->size);
	bool is_code = form == PIECE_CUBIN;
	if (form != PIECE_PTX && !is_code) {
		cli_failed(cmd, "%s is neither PTX nor a cubin, but %s; `cuobjdump -xelf all` takes cubins out of it", in->path,
		           form == PIECE_FATBIN    ? "a fat binary"
		           : form == PIECE_LIBRARY ? "a library"
		                                   : "an object for a host");
		return false;
	}
	if (is_code && o->arch) {
		cli_failed(cmd, "%s is a cubin, machine code of its target already; --arch says for which PTX is assembled",
		           in->path);
		return false;
	}
	if (is_code ? !take_code(in) || !read_module(in) : !read_module(in) || !ask(in, o))
		return false;
	if (is_code && in->ptx &&
	    !(in->verdict =
	          cptx_verdict_read("", 0, &(cptx_verdict_opt){ .ptx = in->ptx, .ptx_size = in->size, .name = in->path })))
		return cli_no_memory(cmd);
	if (!is_code && in->code && !code_read(in))
		return false;
	if (!in->target)
		in->target = o->arch ? cptx_target_find(o->arch) : in->m ? cptx_module_target(in->m) : NULL;
	return list_kernels(in) && sort_kernels(in) && complete(in, o) && (!in->code || code_disassemble(in));
}

void inspect_free(inspected *in)
{
	for (size_t i = 0; i < in->nkernel; i++) {
		cptx_flow_destroy(in->kernel[i].flow);
		free(in->kernel[i].sass);
		free(in->kernel[i].name);
	}
	cptx_verdict_destroy(in->verdict);
	cptx_module_destroy(in->m);
	free(in->line), free(in->by_name), free(in->kernel), free(in->disassembly), free(in->code), free(in->ptx);
}
