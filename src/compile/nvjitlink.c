/* SPDX-License-Identifier: MIT */
/*
 * nvJitLink, the linker and compiler of CUDA as a library.  Its functions are declared here, so that no header is needed.
 *
 * Three of its habits are worked around.  Where there is a driver, it keeps compiled code in the driver's cache, and takes
 * an entry for the whole of a later link (-no-cache prevents that).  It reports definitions in two inputs only on stderr,
 * and takes the first; so each input is first made an object by itself, and the symbols are compared here.  And undefined
 * symbols are looked for in the linked image once more.
 */
#include "compile/compile.h"
#include "compile/text.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { RESULT_UNRECOGNIZED_OPTION = 1, RESULT_UNRECOGNIZED_ARCH = 16, RESULT_UNSUPPORTED_ARCH = 17 };
static const unsigned input_type[] = {
	[PIECE_PTX] = 2, [PIECE_CUBIN] = 1, [PIECE_FATBIN] = 4, [PIECE_OBJECT] = 5, [PIECE_LIBRARY] = 6,
};

static const library_call calls[] = {
	{ "nvJitLinkCreate", offsetof(library, linker.create) },
	{ "nvJitLinkDestroy", offsetof(library, destroy) },
	{ "nvJitLinkAddData", offsetof(library, linker.add) },
	{ "nvJitLinkComplete", offsetof(library, linker.complete) },
	{ "nvJitLinkGetLinkedCubinSize", offsetof(library, image_size) },
	{ "nvJitLinkGetLinkedCubin", offsetof(library, image) },
	{ "nvJitLinkGetErrorLogSize", offsetof(library, error_size) },
	{ "nvJitLinkGetErrorLog", offsetof(library, error) },
	{ "nvJitLinkGetInfoLogSize", offsetof(library, info_size) },
	{ "nvJitLinkGetInfoLog", offsetof(library, info) },
	{ "nvJitLinkVersion", offsetof(library, version) },
};

static const char *const names[] = { "libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so", NULL };

static bool api_open(library *l, char *why, size_t size)
{
	const char *lacking;

	l->spelled = compilers[CPTX_COMPILER_NVJITLINK].spelled;
	l->lib = library_open("CPTX_NVJITLINK", names, why, size);
	if (!l->lib)
		return false;
	if (!(lacking = library_calls(l, calls, ARRAY_LEN(calls))))
		return true;
	snprintf(why, size, "what was opened as nvJitLink is too old, or no nvJitLink: it has no %s", lacking);
	dlclose(l->lib);
	return false;
}

bool nvjitlink_loaded(void) { return library_loaded("CPTX_NVJITLINK", names); }
bool nvjitlink_about(char *text, size_t size) { return library_found(api_open, text, size); }
bool nvjitlink_where(char *path, size_t size) { return library_path(api_open, path, size); }

/* Makes a handle; older versions lack the option -no-cache, which stands last, so that it can be left out. */
static outcome handle_make(const library *l, compile_job *job, const option_list *list, bool object, void **handle)
{
	const char **options = NEW_ARRAY(const char *, list->n + 2);
	uint32_t n = 0;

	if (!options)
		return LACKING;
	for (; n < list->n; n++)
		options[n] = list->at[n];
	if (object && !job->opt->relocatable)
		options[n++] = "-r";
	options[n++] = "-no-cache";
	*handle = NULL;
	unsigned r = l->linker.create(handle, n, options);
	if (r == RESULT_UNRECOGNIZED_OPTION) {
		if (*handle)
			l->destroy(handle);
		*handle = NULL;
		r = l->linker.create(handle, n - 1, options);
	}
	free(options);
	if (!r)
		return DONE;
	outcome how = !library_logs(l, *handle, &job->log)                            ? LACKING
	              : r == RESULT_UNRECOGNIZED_ARCH || r == RESULT_UNSUPPORTED_ARCH ? TOO_OLD
	                                                                              : REFUSED;
	if (*handle)
		l->destroy(handle);
	return how;
}

/* Links inputs; a line that a message names is one of the last PTX among them. */
static outcome link_pieces(const library *l, compile_job *job, const option_list *list, const link_piece *pieces, size_t n,
                           bool object, void **image, size_t *size)
{
	void *handle;
	unsigned r = 0;
	outcome how = handle_make(l, job, list, object, &handle);

	if (how != DONE)
		return how;
	for (size_t i = 0; i < n && !r; i++) {
		job->text = pieces[i].kind == PIECE_PTX ? (const char *)pieces[i].data : NULL;
		job->ptx = pieces[i].ptx;
		r = l->linker.add(handle, input_type[pieces[i].kind], pieces[i].data, pieces[i].size + (pieces[i].kind == PIECE_PTX),
		                  pieces[i].name);
	}
	r = r ? r : l->linker.complete(handle);
	if (!library_logs(l, handle, &job->log))
		how = LACKING;
	else if (r)
		how = log_says_too_old(job->log) ? TOO_OLD : REFUSED;
	else
		how = library_image(l, handle, job, image, size);
	l->destroy(&handle);
	return how;
}

/* ---- symbols ---- */

static outcome refuse(compile_job *job, const char *format, const char *symbol, const char *a, const char *b)
{
	size_t n = strlen(job->log), most = strlen(format) + strlen(symbol) + strlen(a) + strlen(b) + 1;
	char *log = GROW_ARRAY(char, job->log, n + most);

	if (!log)
		return LACKING;
	job->log = log;
	snprintf(log + n, most, format, symbol, a, b);
	return REFUSED;
}

typedef struct definition {
	const char *name;
	size_t object;
} definition;

static int by_name(const void *a, const void *b)
{
	const definition *x = (const definition *)a, *y = (const definition *)b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->object > y->object) - (x->object < y->object);
}

/* Collects all symbols that objects define for others; *n gets their number, the caller frees them.  NULL if memory is
 * short. */
static definition *definitions(const link_piece *objects, size_t nobjects, size_t *n)
{
	size_t most = 1;
	elf_symbols s;
	elf_symbol one;

	for (size_t i = 0; i < nobjects; i++)
		most += elf_symbols_of(objects[i].data, objects[i].size, &s) ? s.n : 0;
	definition *d = NEW_UNSET(definition, most);
	*n = 0;
	for (size_t i = 0; d && i < nobjects; i++) {
		size_t have = elf_symbols_of(objects[i].data, objects[i].size, &s) ? s.n : 0;
		for (size_t j = 0; j < have; j++)
			if (elf_symbol_at(&s, j, &one) && one.defined && !one.weak)
				d[(*n)++] = (definition){ one.name, i };
	}
	return d;
}

static outcome defined_once(compile_job *job, const link_piece *objects, size_t nobjects)
{
	size_t n;
	definition *d = definitions(objects, nobjects, &n);
	outcome how = d ? DONE : LACKING;

	if (d)
		qsort(d, n, sizeof *d, by_name);
	for (size_t i = 1; how == DONE && i < n; i++)
		if (!strcmp(d[i - 1].name, d[i].name))
			how = refuse(job, "error   : Multiple definition of '%s' in '%s', first defined in '%s'\n", d[i].name,
			             objects[d[i].object].name, objects[d[i - 1].object].name);
	free(d);
	return how;
}

/* Whether the driver defines a symbol when it loads a program. */
static bool drivers_own(const char *name)
{
	static const char *const calls_of_system[] = { "vprintf", "malloc", "free", "__assertfail", "__profile" };

	for (size_t i = 0; i < ARRAY_LEN(calls_of_system); i++)
		if (!strcmp(name, calls_of_system[i]))
			return true;
	return !strncmp(name, "cnp", 3) || !strncmp(name, "__cuda_syscall", 14) || !strncmp(name, ".nv.", 4);
}

static outcome all_defined(compile_job *job)
{
	elf_symbols s;
	elf_symbol one;
	size_t n = elf_symbols_of(job->cubin, job->ncubin, &s) ? s.n : 0;

	for (size_t i = 0; i < n; i++)
		if (elf_symbol_at(&s, i, &one) && !one.defined && !one.weak && !drivers_own(one.name))
			return refuse(job, "error   : Undefined reference to '%s'%s%s\n", one.name, "", "");
	return DONE;
}

/* ---- jobs ---- */

/* Makes each input an object, then links all of them. */
static outcome link_several(const library *l, compile_job *job, const option_list *list)
{
	link_piece *objects = NEW_ARRAY(link_piece, job->npieces);
	outcome how = objects ? DONE : LACKING;
	size_t n = 0;

	while (how == DONE && n < job->npieces) {
		void *image = NULL;
		link_piece *o = &objects[n];
		*o = (link_piece){ .kind = PIECE_CUBIN, .name = job->pieces[n].name };
		how = link_pieces(l, job, list, &job->pieces[n++], 1, true, &image, &o->size);
		o->data = o->copy = (char *)image;
	}
	if (how == DONE)
		how = defined_once(job, objects, n);
	if (how == DONE)
		how = link_pieces(l, job, list, objects, n, job->opt->relocatable, &job->cubin, &job->ncubin);
	pieces_free(objects, n);
	return how;
}

outcome nvjitlink_run_job(compile_job *job)
{
	const link_piece alone = { .kind = PIECE_PTX, .data = job->text, .size = job->size, .name = job->name, .ptx = job->ptx };
	option_list list;
	library l;

	if (!api_open(&l, job->why, sizeof job->why))
		return ABSENT;
	library_version(&l, job->by, sizeof job->by);
	if (!job->npieces && !job->opt->relocatable && !text_links_as_it_compiles(job->text)) {
		snprintf(
			job->why, sizeof job->why,
			"%s would ignore setmaxnreg and align dynamic shared memory to 16 bytes only, since it compiles for linking; "
			"ptxas, nvPTXCompiler and the driver do not",
			job->by);
		dlclose(l.lib);
		return ABSENT;
	}
	outcome how = LACKING;
	if (options_make(&list, job, true)) {
		how = job->npieces > 1 ? link_several(&l, job, &list)
		                       : link_pieces(&l, job, &list, job->npieces ? job->pieces : &alone, 1, job->opt->relocatable,
		                                     &job->cubin, &job->ncubin);
		if (how == DONE && !job->opt->relocatable)
			how = all_defined(job);
		options_free(&list);
	}
	dlclose(l.lib);
	return how;
}
