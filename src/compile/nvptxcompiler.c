/* SPDX-License-Identifier: MIT */
/*
 * nvPTXCompiler.  CUDA ships it as a static library only, so it can be used only if the host program is linked with it and
 * exports its functions, or if somebody made a shared library of it.  Both are looked for.
 */
#include "compile/compile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { RESULT_TOO_OLD = 7 };

static const library_call calls[] = {
	{ "nvPTXCompilerGetVersion", offsetof(library, version) },
	{ "nvPTXCompilerCreate", offsetof(library, compiler.create) },
	{ "nvPTXCompilerDestroy", offsetof(library, destroy) },
	{ "nvPTXCompilerCompile", offsetof(library, compiler.compile) },
	{ "nvPTXCompilerGetCompiledProgramSize", offsetof(library, image_size) },
	{ "nvPTXCompilerGetCompiledProgram", offsetof(library, image) },
	{ "nvPTXCompilerGetErrorLogSize", offsetof(library, error_size) },
	{ "nvPTXCompilerGetErrorLog", offsetof(library, error) },
	{ "nvPTXCompilerGetInfoLogSize", offsetof(library, info_size) },
	{ "nvPTXCompilerGetInfoLog", offsetof(library, info) },
};

static bool api_open(library *l, char *why, size_t size)
{
	static const char *const names[] = { "libnvptxcompiler.so", NULL };
	const char *given = getenv("CPTX_NVPTXCOMPILER"), *lacking;

	l->spelled = compilers[CPTX_COMPILER_NVPTXCOMPILER].spelled;
	l->lib = given && *given ? NULL : dlopen(NULL, RTLD_NOW);
	if (l->lib && !library_calls(l, calls, ARRAY_LEN(calls)))
		return true;
	if (l->lib)
		dlclose(l->lib);
	l->lib = library_open("CPTX_NVPTXCOMPILER", names, why, size);
	if (!l->lib)
		return false;
	if (!(lacking = library_calls(l, calls, ARRAY_LEN(calls))))
		return true;
	snprintf(why, size, "what was opened as nvPTXCompiler lacks calls of it: it has no %s", lacking);
	dlclose(l->lib);
	return false;
}

bool nvptx_about(char *text, size_t size) { return library_found(api_open, text, size); }
bool nvptx_where(char *path, size_t size) { return library_path(api_open, path, size); }

outcome nvptx_run_job(compile_job *job)
{
	option_list list;
	void *handle = NULL;
	library l;

	if (!api_open(&l, job->why, sizeof job->why))
		return ABSENT;
	library_version(&l, job->by, sizeof job->by);
	outcome how = LACKING;
	if (options_make(&list, job, false)) {
		if (!l.compiler.create(&handle, job->size, job->text) && handle) {
			unsigned r = l.compiler.compile(handle, (int)list.n, (const char *const *)list.at);
			if (!library_logs(&l, handle, &job->log))
				how = LACKING;
			else if (r)
				how = r == RESULT_TOO_OLD || log_says_too_old(job->log) ? TOO_OLD : REFUSED;
			else
				how = library_image(&l, handle, job, &job->cubin, &job->ncubin);
		}
		if (handle)
			l.destroy(&handle);
		options_free(&list);
	}
	dlclose(l.lib);
	return how;
}
