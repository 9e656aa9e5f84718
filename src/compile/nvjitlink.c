/* nvJitLink, the linker and compiler of CUDA as a library.  Its calls are declared here, so that no header is needed. */
#include "compile/compile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *handle; /* nvJitLinkHandle */
enum { RESULT_UNRECOGNIZED_ARCH = 16, RESULT_UNSUPPORTED_ARCH = 17 };
static const unsigned input_type[] = {
	[PIECE_PTX] = 2, [PIECE_CUBIN] = 1, [PIECE_FATBIN] = 4, [PIECE_OBJECT] = 5, [PIECE_LIBRARY] = 6,
};

/* clang-format off */
#define CALLS(CALL)                                                                                                         \
	CALL(Create, (handle *h, uint32_t n, const char *const *options))                                                       \
	CALL(Destroy, (handle *h))                                                                                              \
	CALL(AddData, (handle h, unsigned type, const void *data, size_t size, const char *name))                               \
	CALL(Complete, (handle h))                                                                                              \
	CALL(GetLinkedCubinSize, (handle h, size_t *size))                                                                      \
	CALL(GetLinkedCubin, (handle h, void *cubin))                                                                           \
	CALL(GetErrorLogSize, (handle h, size_t *size))                                                                         \
	CALL(GetErrorLog, (handle h, char *log))                                                                                \
	CALL(GetInfoLogSize, (handle h, size_t *size))                                                                          \
	CALL(GetInfoLog, (handle h, char *log))                                                                                 \
	CALL(Version, (unsigned *major, unsigned *minor))
/* clang-format on */

#define MEMBER(name, args) unsigned(*name) args;
typedef struct api {
	void *lib;
	CALLS(MEMBER)
} api;
#undef MEMBER

static bool api_open(api *a, char *why, size_t size)
{
	static const char *const names[] = { "libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so", NULL };
	const char *lacking = NULL;
	void *p;

	a->lib = library_open("CPTX_NVJITLINK", names, why, size);
	if (!a->lib)
		return false;
#define FIND(name, args)                                                                                                    \
	p = dlsym(a->lib, "nvJitLink" #name), memcpy(&a->name, &p, sizeof p);                                                   \
	if (!p)                                                                                                                 \
		lacking = "nvJitLink" #name;
	CALLS(FIND)
#undef FIND
	if (!lacking)
		return true;
	snprintf(why, size, "what was opened as nvJitLink is too old, or no nvJitLink: it has no %s", lacking);
	dlclose(a->lib);
	return false;
}

static void describe(const api *a, char *text, size_t size)
{
	unsigned major = 0, minor = 0;

	a->Version(&major, &minor);
	snprintf(text, size, "nvJitLink %u.%u", major, minor);
}

bool nvjitlink_about(char *text, size_t size)
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

bool nvjitlink_where(char *path, size_t size)
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

static outcome link_all(const api *a, handle h, compile_job *job)
{
	const link_piece alone = { .kind = PIECE_PTX, .data = job->text, .size = job->size, .name = job->name };
	const link_piece *pieces = job->npieces ? job->pieces : &alone;
	size_t n = job->npieces ? job->npieces : 1;
	unsigned r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		job->text = pieces[i].kind == PIECE_PTX ? pieces[i].data : NULL;
		job->ptx = job->npieces ? pieces[i].ptx : job->ptx;
		r = a->AddData(h, input_type[pieces[i].kind], pieces[i].data, pieces[i].size + (pieces[i].kind == PIECE_PTX),
		               pieces[i].name);
	}
	r = r ? r : a->Complete(h);
	job->log = library_logs(h, a->GetErrorLogSize, a->GetErrorLog, a->GetInfoLogSize, a->GetInfoLog);
	if (!job->log)
		return LACKING;
	if (r)
		return log_says_too_old(job->log) ? TOO_OLD : REFUSED;
	if (a->GetLinkedCubinSize(h, &job->ncubin) || !job->ncubin) {
		snprintf(job->why, sizeof job->why, "%s gave no cubin", job->by);
		return BROKEN;
	}
	job->cubin = malloc(job->ncubin);
	if (!job->cubin)
		return LACKING;
	if (!a->GetLinkedCubin(h, job->cubin) && elf_is_whole(job->cubin, job->ncubin))
		return DONE;
	snprintf(job->why, sizeof job->why, "%s gave no whole cubin", job->by);
	return BROKEN;
}

static outcome with_options(const api *a, compile_job *job)
{
	option_list list;
	handle h = NULL;

	if (!options_make(&list, job, true))
		return LACKING;
	unsigned r = a->Create(&h, (uint32_t)list.n, (const char *const *)list.at);
	outcome how;
	if (!r) {
		how = link_all(a, h, job);
	} else {
		job->log = h ? library_logs(h, a->GetErrorLogSize, a->GetErrorLog, a->GetInfoLogSize, a->GetInfoLog) : calloc(1, 1);
		how = !job->log ? LACKING : r == RESULT_UNRECOGNIZED_ARCH || r == RESULT_UNSUPPORTED_ARCH ? TOO_OLD : REFUSED;
	}
	if (h)
		a->Destroy(&h);
	options_free(&list);
	return how;
}

outcome nvjitlink_run_job(compile_job *job)
{
	api a;

	if (!api_open(&a, job->why, sizeof job->why))
		return ABSENT;
	describe(&a, job->by, sizeof job->by);
	outcome how = with_options(&a, job);
	dlclose(a.lib);
	return how;
}
