/* SPDX-License-Identifier: MIT */
/* What the library needs of POSIX and mingw-w64 lacks, by the calls of Windows. */
#include <dlfcn.h>
#include <sys/mman.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <string.h>

void *windows_dlopen(const char *path, int flags)
{
	HMODULE lib = NULL;

	if (!path || flags & RTLD_NOLOAD)
		GetModuleHandleExA(0, path, &lib);
	else
		lib = LoadLibraryA(path);
	return (void *)lib;
}

void *windows_dlsym(void *lib, const char *name)
{
	FARPROC p = GetProcAddress((HMODULE)lib, name);
	void *as;

	memcpy(&as, &p, sizeof as);
	return as;
}

int windows_dlclose(void *lib) { return !FreeLibrary((HMODULE)lib); }

int windows_dladdr(const void *symbol, Dl_info *where)
{
	HMODULE lib;
	DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;

	if (!GetModuleHandleExA(flags, (const char *)symbol, &lib) ||
	    GetModuleFileNameA(lib, where->path, sizeof where->path) >= sizeof where->path)
		return 0;
	where->dli_fname = where->path;
	return 1;
}

void *windows_mmap(void *want, size_t size, int protection, int flags, int fd, long long offset)
{
	(void)protection, (void)flags, (void)fd, (void)offset;
	void *p = VirtualAlloc(want, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	return p ? p : MAP_FAILED;
}

int windows_munmap(void *p, size_t size)
{
	(void)size;
	return !VirtualFree(p, 0, MEM_RELEASE);
}
