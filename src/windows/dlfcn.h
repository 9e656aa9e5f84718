/* SPDX-License-Identifier: MIT */
/* <dlfcn.h> where the host is Windows: libraries as its loader has them.  Their handles are counted, as dlopen's are. */
#ifndef CPTX_WINDOWS_DLFCN_H
#define CPTX_WINDOWS_DLFCN_H

/* Windows has no such choices: names are bound at once and seen by nobody else. */
enum { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_LOCAL = 0, RTLD_NOLOAD = 4, RTLD_NODELETE = 8 };

typedef struct Dl_info {
	const char *dli_fname;
	char path[260];
} Dl_info;

/* A path of NULL is the program itself. */
void *windows_dlopen(const char *path, int flags);
void *windows_dlsym(void *lib, const char *name);
int windows_dlclose(void *lib);
int windows_dladdr(const void *symbol, Dl_info *where);

/* Names of the library's own, so that a program that links it statically keeps those that it has. */
#define dlopen windows_dlopen
#define dlsym windows_dlsym
#define dlclose windows_dlclose
/* Windows keeps a number and no text; what fails here is that. */
#define dlerror() ((char *)"Windows finds no such library, or none of those that it needs")
#define dladdr windows_dladdr

#endif
