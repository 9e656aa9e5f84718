#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "compile/compile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* NODELETE: opening it again costs nothing then, and threads that it may keep stay whole. */
static void *open_one(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

static void *open_below(const char *home, const char *name)
{
	static const char *const subs[] = { "lib64", "lib" };
	char path[4096];
	void *lib = NULL;

	for (size_t i = 0; home && *home && i < ARRAY_LEN(subs) && !lib; i++)
		if ((size_t)snprintf(path, sizeof path, "%s/%s/%s", home, subs[i], name) < sizeof path)
			lib = open_one(path);
	return lib;
}

void *library_open(const char *variable, const char *const *names, char *why, size_t size)
{
	const char *given = getenv(variable), *homes[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda" };
	void *lib;

	if (given && *given) {
		if (!(lib = open_one(given))) {
			const char *said = dlerror();
			snprintf(why, size, "%s names a library that cannot be opened: %s", variable, said ? said : given);
		}
		return lib;
	}
	for (const char *const *n = names; *n; n++)
		if ((lib = open_one(*n)))
			return lib;
	for (size_t i = 0; i < ARRAY_LEN(homes); i++)
		for (const char *const *n = names; *n; n++)
			if ((lib = open_below(homes[i], *n)))
				return lib;
	snprintf(why, size, "there is no %s for the dynamic loader, in CUDA_HOME, CUDA_PATH or /usr/local/cuda; %s can name one",
	         names[0], variable);
	return NULL;
}

void library_about(char *text, size_t size, const char *name, void *symbol)
{
	Dl_info where;
	snprintf(text, size, "%s, %s", name, dladdr(symbol, &where) && where.dli_fname ? where.dli_fname : "?");
}

bool file_identity(const char *path, char *text, size_t size)
{
	struct stat s;
	char *whole = realpath(path, NULL);

	if (!whole || stat(whole, &s)) {
		free(whole);
		return false;
	}
	int n = snprintf(text, size, "%s %lld %lld.%09ld", whole, (long long)s.st_size, (long long)s.st_mtim.tv_sec,
	                 s.st_mtim.tv_nsec);
	free(whole);
	return n > 0 && (size_t)n < size;
}

bool library_where(void *symbol, char *path, size_t size)
{
	Dl_info where;
	return dladdr(symbol, &where) && where.dli_fname && (size_t)snprintf(path, size, "%s", where.dli_fname) < size;
}

char *library_logs(void *handle, unsigned (*error_size)(void *, size_t *), unsigned (*error)(void *, char *),
                   unsigned (*info_size)(void *, size_t *), unsigned (*info)(void *, char *))
{
	size_t errors = 0, infos = 0;

	error_size(handle, &errors);
	info_size(handle, &infos);
	char *log = calloc(1, errors + infos + 2);
	if (!log)
		return NULL;
	if (errors)
		error(handle, log);
	if (infos)
		info(handle, log + strlen(log));
	return log;
}
