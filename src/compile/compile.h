/* Inside of the compile service: a job, and the compilers that can do it. */
#ifndef CPTX_COMPILE_INSIDE_H
#define CPTX_COMPILE_INSIDE_H

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
	bool slow;                              /* finding it means opening it, which takes its time */
} compiler_kind;
/* Fills in the job from the options, runs it, and makes an error of what went wrong. */
cptx_cubin *job_compile(compile_job *job, const cptx_compile_opt *opt, cptx_error *err);
extern const compiler_kind compilers[]; /* by enum cptx_compiler */

outcome ptxas_run_job(compile_job *job);
bool ptxas_about(char *text, size_t size);
bool ptxas_where(char *path, size_t size);
outcome nvjitlink_run_job(compile_job *job);
bool nvjitlink_about(char *text, size_t size);
bool nvjitlink_where(char *path, size_t size);
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
/* Whether these bytes are a whole ELF image, not one that was cut short. */
bool elf_is_whole(const void *data, size_t size);
/* Whether a whole one can be linked to others. */
bool elf_is_object(const void *data);

/*
 * A library of CUDA, opened to stay: $VARIABLE (this one or none), then each of the names by the dynamic loader and in the
 * lib folders of $CUDA_HOME, $CUDA_PATH and /usr/local/cuda.  NULL: `why` says what was looked for.  Give it back by
 * dlclose.
 */
void *library_open(const char *variable, const char *const *names, char *why, size_t size);
/* What tells a file from another version of it, without reading it; false where it cannot be told. */
bool file_identity(const char *path, char *text, size_t size);
/* The path of the library that has the symbol, as it was found. */
bool library_where(void *symbol, char *path, size_t size);
/* "name, path of the library that has the symbol". */
void library_about(char *text, size_t size, const char *name, void *symbol);
/* What a library says in its two logs, errors first; malloced, NULL without memory. */
char *library_logs(void *handle, unsigned (*error_size)(void *, size_t *), unsigned (*error)(void *, char *),
                   unsigned (*info_size)(void *, size_t *), unsigned (*info)(void *, char *));

#endif
