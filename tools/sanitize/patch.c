/* SPDX-License-Identifier: MIT */
/*
 * Programs that have the CUDA runtime linked in statically, as nvcc does it unless it is told otherwise, call no function of
 * a shared library.  Their calls are led here before their code begins: each function of the runtime's API, found by its
 * name in the program's own symbol table, gets a jump over its first bytes, as tools like Valgrind redirect malloc.  A
 * program that was stripped of its symbols cannot be redirected, and is told how to be linked.
 */
#include "recording.h"
#include "san.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names that are exported here ---- */

static void *self(void)
{
	static void *handle;
	Dl_info info;

	if (!handle && dladdr((void *)(uintptr_t)&san_error_of, &info))
		handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	return handle;
}

void *san_symbol(const char *name)
{
	char base[160];
	size_t n = strlen(name);

	/* Variants for the default stream of a thread: all streams are in order here. */
	if (n > 5 && (!strcmp(name + n - 5, "_ptsz") || !strcmp(name + n - 5, "_ptds")))
		n -= 5;
	if (n >= sizeof base || !self())
		return NULL;
	memcpy(base, name, n);
	base[n] = 0;
	void *p = dlsym(self(), base);
	Dl_info mine, its;
	/* dlsym looks in libraries that this one needs, too */
	return p && dladdr((void *)(uintptr_t)&san_error_of, &mine) && dladdr(p, &its) && mine.dli_fbase == its.dli_fbase ? p
	                                                                                                                  : NULL;
}

/* ---- jumps ---- */

#if defined(__x86_64__)
enum { JUMP = 14 };
static void write_jump(unsigned char *at, const void *to)
{
	static const unsigned char code[] = { 0xff, 0x25, 0, 0, 0, 0 }; /* jmp *(%rip) */

	memcpy(at, code, sizeof code);
	memcpy(at + sizeof code, &to, sizeof to);
}
#elif defined(__aarch64__)
enum { JUMP = 16 };
static void write_jump(unsigned char *at, const void *to)
{
	static const uint32_t code[] = { 0x58000050, 0xd61f0200 }; /* ldr x16, 8; br x16 */

	memcpy(at, code, sizeof code);
	memcpy(at + sizeof code, &to, sizeof to);
	__builtin___clear_cache((char *)at, (char *)at + JUMP);
}
#else
enum { JUMP = 0 };
static void write_jump(unsigned char *at, const void *to) { (void)at, (void)to; }
#endif

/* ---- the program's symbols ---- */

typedef struct image {
	unsigned char *bytes;
	size_t size;
	uintptr_t base; /* where the program is loaded, less the address it was linked for */
	const Elf64_Sym *symbols;
	size_t nsymbol;
	const char *names;
	size_t names_size;
} image;

static bool inside(const image *m, uint64_t at, uint64_t size) { return at <= m->size && size <= m->size - at; }

/* The symbol table of the file, SHT_SYMTAB or SHT_DYNSYM; false if it has none. */
static bool find_symbols(image *m, unsigned type)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)(const void *)m->bytes;

	if (m->size < sizeof *e || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_ident[EI_CLASS] != ELFCLASS64 ||
	    !inside(m, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr)))
		return false;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(const void *)(m->bytes + e->e_shoff);
	for (unsigned i = 0; i < e->e_shnum; i++) {
		if (s[i].sh_type != type || s[i].sh_link >= e->e_shnum)
			continue;
		const Elf64_Shdr *names = &s[s[i].sh_link];
		if (!inside(m, s[i].sh_offset, s[i].sh_size) || !inside(m, names->sh_offset, names->sh_size) || !names->sh_size)
			return false;
		m->symbols = (const Elf64_Sym *)(const void *)(m->bytes + s[i].sh_offset);
		m->nsymbol = (size_t)s[i].sh_size / sizeof *m->symbols;
		m->names = (const char *)m->bytes + names->sh_offset;
		m->names_size = (size_t)names->sh_size;
		return m->names[m->names_size - 1] == 0;
	}
	return false;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *user)
{
	(void)size;
	*(uintptr_t *)user = info->dlpi_addr;
	return 1;
}

static bool open_program(image *m)
{
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	memset(m, 0, sizeof *m);
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_size > 0) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		m->bytes = p == MAP_FAILED ? NULL : (unsigned char *)p;
		m->size = (size_t)st.st_size;
	}
	close(fd);
	dl_iterate_phdr(first_object, &m->base);
	return m->bytes != NULL;
}

/* Whether a name can be one of the runtime's API. */
static bool of_runtime(const char *name)
{
	name += 2 * !strncmp(name, "__", 2);
	return !strncmp(name, "cuda", 4) && name[4] >= 'A' && name[4] <= 'Z';
}

static bool writable(unsigned char *at, size_t size, bool on)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at / page * page;
	uintptr_t to = ((uintptr_t)at + size + page - 1) / page * page;

	return !mprotect((void *)from, to - from, PROT_READ | PROT_EXEC | (on ? PROT_WRITE : 0));
}

static bool redirect(const image *m, const Elf64_Sym *s, const char *name)
{
	void *to = san_symbol(name);
	unsigned char *at = (unsigned char *)(m->base + s->st_value);

	if (!to || to == (void *)at)
		return false;
	/* Compilers begin functions at multiples of 16 bytes, so what is left of the last 16 is nobody's. */
	size_t room = s->st_value % 16 ? (size_t)s->st_size : ((size_t)s->st_size + 15) / 16 * 16;
	if (!JUMP || room < (size_t)JUMP || !writable(at, JUMP, true)) {
		san_say("the call %s of the program cannot be redirected: link it with nvcc --cudart shared", name);
		san_unchecked(SAN_UNCHECKED_PROGRAM, name, "the call cannot be redirected");
		return false;
	}
	write_jump(at, to);
	writable(at, JUMP, false);
	return true;
}

/* Whether the program asks a shared library for the runtime, or has no kernels of nvcc: then nothing is to be done. */
static bool asks_for_runtime(image *m)
{
	if (!memmem(m->bytes, m->size, ".nv_fatbin", 10))
		return true;
	for (size_t i = 0; find_symbols(m, SHT_DYNSYM) && i < m->nsymbol; i++)
		if (m->symbols[i].st_shndx == SHN_UNDEF && m->symbols[i].st_name < m->names_size &&
		    !strcmp(m->names + m->symbols[i].st_name, "__cudaRegisterFatBinary"))
			return true;
	return false;
}

__attribute__((constructor)) static void redirect_static_runtime(void)
{
	image m;

	/* a process that replays, or records what a GPU does, has no runtime that is to be redirected */
	if (getenv(REC_REPLAY_ENV) || getenv(REC_HELPER_ENV) || !open_program(&m))
		return;
	if (find_symbols(&m, SHT_SYMTAB)) {
		for (size_t i = 0; i < m.nsymbol; i++) {
			const Elf64_Sym *s = &m.symbols[i];
			if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF && s->st_name < m.names_size &&
			    of_runtime(m.names + s->st_name))
				redirect(&m, s, m.names + s->st_name);
		}
	} else if (!asks_for_runtime(&m)) {
		san_say("the program was stripped of its symbols: keep them, or link it with nvcc --cudart shared");
		san_unchecked(SAN_UNCHECKED_PROGRAM, "", "it was stripped of its symbols");
		san.failed = SAN_NO_DEVICE; /* which the runtime in it is told */
	}
	munmap(m.bytes, m.size);
}
