/* SPDX-License-Identifier: MIT */
/* <sys/mman.h> where the host is Windows, as far as the emulator's memory needs it: pages of zeros. */
#ifndef CPTX_WINDOWS_SYS_MMAN_H
#define CPTX_WINDOWS_SYS_MMAN_H

#include <stddef.h>

enum { PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32, MAP_NORESERVE = 64 };
#define MAP_FAILED ((void *)-1)

/* An address is a wish, as for Linux without MAP_FIXED; protection and flags are those of the emulator. */
void *windows_mmap(void *want, size_t size, int protection, int flags, int fd, long long offset);
int windows_munmap(void *p, size_t size);

#define mmap windows_mmap
#define munmap windows_munmap

#endif
