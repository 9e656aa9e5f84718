/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for dladdr */
#endif
#include "compile/compile.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* RTLD_NODELETE: opening it again costs nothing then, and threads that it may have started keep their code. */
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
			const char *message = dlerror();
			snprintf(why, size, "%s names a library that cannot be opened: %s", variable, message ? message : given);
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

bool library_loaded(const char *variable, const char *const *names)
{
	const char *given = getenv(variable), *const one[] = { given, NULL };
	void *lib = NULL;

	for (const char *const *n = given && *given ? one : names; *n && !lib; n++)
		lib = dlopen(*n, RTLD_LAZY | RTLD_NOLOAD);
	if (lib)
		dlclose(lib);
	return lib != NULL;
}

#ifdef _WIN32 /* where no cache keeps what a compiler made, compilers need not be told apart */
bool file_identity(const char *path, char *text, size_t size) { return (void)path, (void)text, (void)size, false; }
#else
bool file_identity(const char *path, char *text, size_t size)
{
	struct stat s;
	char *whole = realpath(path, NULL);

	if (!whole || stat(whole, &s)) {
		free(whole);
		return false;
	}
	/* nobody can set the time of a file's last status change */
	int n =
		snprintf(text, size, "%s %lld %llu %lld.%09ld %lld.%09ld", whole, (long long)s.st_size, (unsigned long long)s.st_ino,
	             (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec, (long long)s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
	free(whole);
	return n > 0 && (size_t)n < size;
}
#endif

bool library_where(void *symbol, char *path, size_t size)
{
	Dl_info where;
	return dladdr(symbol, &where) && where.dli_fname && (size_t)snprintf(path, size, "%s", where.dli_fname) < size;
}

const char *library_calls(library *l, const library_call *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		void *p = dlsym(l->lib, calls[i].name);
		if (!p)
			return calls[i].name;
		memcpy((char *)l + calls[i].at, &p, sizeof p);
	}
	return NULL;
}

void library_version(const library *l, char *text, size_t size)
{
	unsigned major = 0, minor = 0;

	l->version(&major, &minor);
	snprintf(text, size, "%s %u.%u", l->spelled, major, minor);
}

static bool own_path(const library *l, char *path, size_t size)
{
	void *p;

	memcpy(&p, &l->version, sizeof p);
	return library_where(p, path, size);
}

bool library_found(library_opener *open, char *text, size_t size)
{
	char name[64], path[4096];
	library l;

	if (!open(&l, text, size))
		return false;
	library_version(&l, name, sizeof name);
	snprintf(text, size, "%s, %s", name, own_path(&l, path, sizeof path) ? path : "?");
	dlclose(l.lib);
	return true;
}

bool library_path(library_opener *open, char *path, size_t size)
{
	library l;

	if (!open(&l, path, size))
		return false;
	bool ok = own_path(&l, path, size);
	dlclose(l.lib);
	return ok;
}

bool library_logs(const library *l, void *handle, char **log)
{
	size_t errors = 0, infos = 0, before = *log ? strlen(*log) : 0;

	if (handle) {
		l->error_size(handle, &errors);
		l->info_size(handle, &infos);
	}
	char *grown = GROW_ARRAY(char, *log, before + errors + infos + 2);
	if (!grown)
		return false;
	*log = grown;
	memset(grown + before, 0, errors + infos + 2);
	if (errors)
		l->error(handle, grown + before);
	if (infos)
		l->info(handle, grown + strlen(grown));
	return true;
}

outcome library_image(const library *l, void *handle, compile_job *job, void **image, size_t *size)
{
	if (!l->image_size(handle, size) && *size) {
		*image = malloc(*size);
		if (!*image)
			return LACKING;
		if (!l->image(handle, *image) && elf_is_whole(*image, *size))
			return DONE;
		free(*image);
		*image = NULL;
	}
	snprintf(job->why, sizeof job->why, "%s gave no whole cubin", job->by);
	return BROKEN;
}
