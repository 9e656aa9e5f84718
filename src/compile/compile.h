/* SPDX-License-Identifier: MIT */
/* Inside of the compile service: a job, and the compilers that can do it. */
#ifndef CPTX_COMPILE_INSIDE_H
#define CPTX_COMPILE_INSIDE_H

#include "compile/elf.h"
#include "compile/link.h"
#include "compile/text.h"

typedef enum outcome {
	DONE,
	ABSENT,  /* not there: `why` */
	TOO_OLD, /* does not know the PTX version or the target: `why` and log */
	REFUSED, /* the program, or an option: log */
	BROKEN,  /* could not be run, crashed, took too long, no memory: `why` */
	LACKING  /* no memory */
} outcome;

typedef struct compile_job {
	cptx_site at;
	const char *text; /* NUL-terminated; NULL: */
	size_t size;
	const cptx_ptx *ptx;
	const link_piece *pieces;
	size_t npieces;
	char target[32]; /* as compilers spell it in options */
	const char *name;
	const cptx_compile_opt *opt;

	/* out; each compiler begins with all of it empty */
	void *cubin;
	size_t ncubin;
	char *log;
	char by[512], why[768];
	bool cached; /* out of the cache */
} compile_job;

typedef struct compiler_kind {
	const char *name;    /* of cptx_compiler_name */
	const char *spelled; /* as NVIDIA writes it */
	outcome (*run)(compile_job *job);
	bool (*find)(char *text, size_t size);
	bool (*where)(char *path, size_t size); /* of the file that would do it; what is wrong is not told */
	const char *variable;                   /* that names it */
	bool (*loaded)(void);                   /* where opening it takes its time: whether that is done */
} compiler_kind;
/* Fills in the job from the options, runs it, and makes an error of what went wrong. */
cptx_cubin *job_compile(compile_job *job, const cptx_compile_opt *opt, cptx_error *err);
extern const compiler_kind compilers[]; /* by enum cptx_compiler */

outcome ptxas_run_job(compile_job *job);
bool ptxas_about(char *text, size_t size);
bool ptxas_where(char *path, size_t size);
/* Adds what tells a script, which starts who knows what, from itself at another time: what it says of its version. */
bool ptxas_identity(const char *path, unsigned limit_ms, char *text, size_t size);
outcome nvjitlink_run_job(compile_job *job);
bool nvjitlink_about(char *text, size_t size);
bool nvjitlink_where(char *path, size_t size);
bool nvjitlink_loaded(void);
outcome nvptx_run_job(compile_job *job);
bool nvptx_about(char *text, size_t size);
bool nvptx_where(char *path, size_t size);

/* The options of a job, one string each, as ptxas and nvPTXCompiler spell them, or nvJitLink. */
enum { MOST_OPTIONS = 10 };
typedef struct option_list {
	size_t n;
	char **at; /* NULL-terminated; freed with the list, strings and all */
} option_list;
bool options_make(option_list *list, const compile_job *job, bool nvjitlink);
void options_free(option_list *list);

/* Whether a log complains of a PTX version or a target that the compiler does not know. */
bool log_says_too_old(const char *log);

/*
 * A library of CUDA, opened to stay: $VARIABLE (this one or none), then each of the names by the dynamic loader and in the
 * lib folders of $CUDA_HOME, $CUDA_PATH and /usr/local/cuda.  NULL: `why` says what was looked for.  Give it back by
 * dlclose.
 */
void *library_open(const char *variable, const char *const *names, char *why, size_t size);
/* Whether the process has one of them already, so that opening it costs nothing, wherever it was found. */
bool library_loaded(const char *variable, const char *const *names);
/* What tells a file from another version of it, without reading it; false where it cannot be told. */
bool file_identity(const char *path, char *text, size_t size);
/* The path of the library that has the symbol, as it was found. */
bool library_where(void *symbol, char *path, size_t size);

/* What the compilers that are libraries have in common; `which` is of the library alone. */
typedef struct library {
	void *lib;
	const char *spelled;
	unsigned (*version)(unsigned *major, unsigned *minor), (*destroy)(void **handle);
	unsigned (*error_size)(void *handle, size_t *size), (*error)(void *handle, char *log);
	unsigned (*info_size)(void *handle, size_t *size), (*info)(void *handle, char *log);
	unsigned (*image_size)(void *handle, size_t *size), (*image)(void *handle, void *image);
	union {
		struct {
			unsigned (*create)(void **handle, uint32_t n, const char *const *options);
			unsigned (*add)(void *handle, unsigned type, const void *data, size_t size, const char *name);
			unsigned (*complete)(void *handle);
		} linker;
		struct {
			unsigned (*create)(void **handle, size_t size, const char *text);
			unsigned (*compile)(void *handle, int n, const char *const *options);
		} compiler;
	};
} library;
typedef struct library_call {
	const char *name;
	size_t at; /* of the pointer to it, in library */
} library_call;
typedef bool library_opener(library *l, char *why, size_t size);

/* Finds the calls in l->lib; the name of one that it lacks, or NULL. */
const char *library_calls(library *l, const library_call *calls, size_t n);
/* "nvJitLink 13.0" */
void library_version(const library *l, char *text, size_t size);
/* What compiler_kind.find and .where say of a library. */
bool library_found(library_opener *open, char *text, size_t size);
bool library_path(library_opener *open, char *path, size_t size);
/* Adds what a handle says in its two logs, errors first; false without memory. */
bool library_logs(const library *l, void *handle, char **log);
/* The image of a handle that is done, malloced. */
outcome library_image(const library *l, void *handle, compile_job *job, void **image, size_t *size);

#endif
