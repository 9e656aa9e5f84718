/*
 * nvPTXCompiler.  CUDA ships it as a static library only, so there is nothing that could be opened at run time unless the
 * host program is linked with it and exports its calls, or somebody made a shared library of it.  Both are looked for.
 */
#include "compile/compile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *handle; /* nvPTXCompilerHandle */
enum { RESULT_TOO_OLD = 7 };

/* clang-format off */
#define CALLS(CALL)                                                                                                         \
	CALL(GetVersion, (unsigned *major, unsigned *minor))                                                                    \
	CALL(Create, (handle *h, size_t size, const char *text))                                                                \
	CALL(Destroy, (handle *h))                                                                                              \
	CALL(Compile, (handle h, int n, const char *const *options))                                                            \
	CALL(GetCompiledProgramSize, (handle h, size_t *size))                                                                  \
	CALL(GetCompiledProgram, (handle h, void *cubin))                                                                       \
	CALL(GetErrorLogSize, (handle h, size_t *size))                                                                         \
	CALL(GetErrorLog, (handle h, char *log))                                                                                \
	CALL(GetInfoLogSize, (handle h, size_t *size))                                                                          \
	CALL(GetInfoLog, (handle h, char *log))
/* clang-format on */

#define MEMBER(name, args) unsigned(*name) args;
typedef struct api {
	void *lib;
	CALLS(MEMBER)
} api;
#undef MEMBER

static bool find_calls(api *a)
{
	bool all = true;
	void *p;

#define FIND(name, args) p = dlsym(a->lib, "nvPTXCompiler" #name), memcpy(&a->name, &p, sizeof p), all &= p != NULL;
	CALLS(FIND)
#undef FIND
	return all;
}

static bool api_open(api *a, char *why, size_t size)
{
	static const char *const names[] = { "libnvptxcompiler.so", NULL };
	const char *given = getenv("CPTX_NVPTXCOMPILER");

	a->lib = given && *given ? NULL : dlopen(NULL, RTLD_NOW);
	if (a->lib && find_calls(a))
		return true;
	if (a->lib)
		dlclose(a->lib);
	a->lib = library_open("CPTX_NVPTXCOMPILER", names, why, size);
	if (!a->lib || find_calls(a))
		return a->lib != NULL;
	snprintf(why, size, "what was opened as nvPTXCompiler lacks calls of it");
	dlclose(a->lib);
	return false;
}

static void describe(const api *a, char *text, size_t size)
{
	unsigned major = 0, minor = 0;

	a->GetVersion(&major, &minor);
	snprintf(text, size, "nvPTXCompiler %u.%u", major, minor);
}

bool nvptx_about(char *text, size_t size)
{
	char name[64];
	void *p;
	api a;

	if (!api_open(&a, text, size))
		return false;
	describe(&a, name, sizeof name);
	memcpy(&p, &a.Create, sizeof p);
	library_about(text, size, name, p);
	dlclose(a.lib);
	return true;
}

bool nvptx_where(char *path, size_t size)
{
	void *p;
	api a;

	if (!api_open(&a, path, size))
		return false;
	memcpy(&p, &a.Create, sizeof p);
	bool ok = library_where(p, path, size);
	dlclose(a.lib);
	return ok;
}

static outcome compiled(const api *a, handle h, unsigned r, compile_job *job)
{
	job->log = library_logs(h, a->GetErrorLogSize, a->GetErrorLog, a->GetInfoLogSize, a->GetInfoLog);
	if (!job->log)
		return LACKING;
	if (r)
		return r == RESULT_TOO_OLD || log_says_too_old(job->log) ? TOO_OLD : REFUSED;
	if (!a->GetCompiledProgramSize(h, &job->ncubin) && job->ncubin) {
		job->cubin = malloc(job->ncubin);
		if (!job->cubin)
			return LACKING;
		if (!a->GetCompiledProgram(h, job->cubin) && elf_is_whole(job->cubin, job->ncubin))
			return DONE;
	}
	snprintf(job->why, sizeof job->why, "%s gave no whole cubin", job->by);
	return BROKEN;
}

outcome nvptx_run_job(compile_job *job)
{
	option_list list;
	handle h = NULL;
	api a;

	if (!api_open(&a, job->why, sizeof job->why))
		return ABSENT;
	describe(&a, job->by, sizeof job->by);
	outcome how = LACKING;
	if (options_make(&list, job, false)) {
		if (!a.Create(&h, job->size, job->text) && h)
			how = compiled(&a, h, a.Compile(h, (int)list.n, (const char *const *)list.at), job);
		if (h)
			a.Destroy(&h);
		options_free(&list);
	}
	dlclose(a.lib);
	return how;
}
