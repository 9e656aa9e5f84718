/* SPDX-License-Identifier: MIT */
/* The inside of the compile service: a job, and the compilers that can do it. */
#ifndef CPTX_COMPILE_INSIDE_H
#define CPTX_COMPILE_INSIDE_H

#include "compile/elf.h"
#include "compile/link.h"
#include "compile/text.h"

typedef enum outcome {
	DONE,
	ABSENT,  /* the compiler is not there; `why` says what is missing */
	TOO_OLD, /* the compiler does not know the PTX version or the target; see `why` and the log */
	REFUSED, /* the compiler refuses the program or an option; see the log */
	BROKEN,  /* the compiler could not be run, crashed, or took too long, or memory was short; see `why` */
	LACKING  /* memory is short */
} outcome;

typedef struct compile_job {
	cptx_site at;
	const char *text; /* PTX, NUL-terminated; NULL: the job links */
	size_t size;
	const cptx_ptx *ptx;
	const link_piece *pieces;
	size_t npieces;
	char target[32]; /* as compilers spell it in options */
	const char *name;
	const cptx_compile_opt *opt;

	/* results; each compiler begins with all of them empty */
	void *cubin;
	size_t ncubin;
	char *log;
	char by[512], why[768];
	bool cached; /* the result was read from the cache */
} compile_job;

typedef struct compiler_kind {
	const char *name;    /* name in cptx_compiler_name */
	const char *spelled; /* name as NVIDIA writes it */
	outcome (*run)(compile_job *job);
	bool (*find)(char *text, size_t size);
	/* finds the path of the file that would compile; does not say why there is none */
	bool (*where)(char *path, size_t size);
	const char *variable; /* the environment variable that names the file */
	bool (*loaded)(void); /* for a library that takes long to open: whether the process has opened it */
} compiler_kind;
/* Fills in the job from the options, runs it, and sets the error if it failed. */
cptx_cubin *job_compile(compile_job *job, const cptx_compile_opt *opt, cptx_error *err);
extern const compiler_kind compilers[]; /* Indexed by enum cptx_compiler. */

outcome ptxas_run_job(compile_job *job);
bool ptxas_about(char *text, size_t size);
bool ptxas_where(char *path, size_t size);
/* Appends the version that a script prints, because the file of a script does not tell which compiler it starts. */
bool ptxas_identity(const char *path, unsigned limit_ms, char *text, size_t size);
outcome nvjitlink_run_job(compile_job *job);
bool nvjitlink_about(char *text, size_t size);
bool nvjitlink_where(char *path, size_t size);
bool nvjitlink_loaded(void);
outcome nvptx_run_job(compile_job *job);
bool nvptx_about(char *text, size_t size);
bool nvptx_where(char *path, size_t size);

/* The options of a job, one string each, as ptxas and nvPTXCompiler, or nvJitLink, spell them. */
enum { MOST_OPTIONS = 10 };
typedef struct option_list {
	size_t n;
	char **at; /* NULL-terminated; freed with the list, with all strings */
} option_list;
bool options_make(option_list *list, const compile_job *job, bool nvjitlink);
void options_free(option_list *list);

/* Whether a log complains about a PTX version or a target that the compiler does not know. */
bool log_says_too_old(const char *log);

/*
 * Opens a library of CUDA: $VARIABLE (only that, if it is set), else the first of the names that the dynamic loader, or the
 * lib folders of $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, have.  NULL: `why` says where it was looked for.  Close it by
 * dlclose.
 */
void *library_open(const char *variable, const char *const *names, char *why, size_t size);
/* Whether the process has one of them open already, wherever it was found, so that opening it costs nothing. */
bool library_loaded(const char *variable, const char *const *names);
/* Appends what tells a file from another version of it, without reading it; false if that is not known. */
bool file_identity(const char *path, char *text, size_t size);
/* The path of the library that has the symbol, as the loader found it. */
bool library_where(void *symbol, char *path, size_t size);

/* The common part of the compilers that are libraries; `which` is a code of the library's own. */
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
	size_t at; /* offset in struct library of the pointer to the function */
} library_call;
typedef bool library_opener(library *l, char *why, size_t size);

/* Finds the functions in l->lib; returns the name of one that it lacks, or NULL. */
const char *library_calls(library *l, const library_call *calls, size_t n);
/* Writes "nvJitLink 13.0". */
void library_version(const library *l, char *text, size_t size);
/* Implements compiler_kind.find and .where for a library. */
bool library_found(library_opener *open, char *text, size_t size);
bool library_path(library_opener *open, char *path, size_t size);
/* Appends the two logs of a handle, errors first; false if memory is short. */
bool library_logs(const library *l, void *handle, char **log);
/* Reads the image of a handle whose work is done, into memory from malloc. */
outcome library_image(const library *l, void *handle, compile_job *job, void **image, size_t *size);

#endif
