/* SPDX-License-Identifier: MIT */
/*
 * hide ARCHIVE...: the symbols that the objects of a static library define become hidden, so that a shared library or a
 * plugin that it is linked into does not export them.  They still resolve among objects that are linked together.  Only ELF
 * of 64 bits, in the byte order of this machine, is changed; of other archives nothing is, nor of thin ones.
 *
 * hide --stamp FILE ARCHIVE: as a step of a build, which writes FILE at the end.  The archive keeps its times, so that what
 * is linked against it is not linked again.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static size_t number(const char *s, size_t n)
{
	char text[32] = "";

	memcpy(text, s, n < sizeof text ? n : sizeof text - 1);
	return (size_t)strtoull(text, NULL, 10);
}

/* An object at p, of n bytes.  False: it is not what it says. */
static int hide_object(unsigned char *p, size_t n)
{
	Elf64_Ehdr h;
	Elf64_Shdr s;

	if (n < sizeof h)
		return 1;
	memcpy(&h, p, sizeof h);
	const unsigned short one = 1;
	unsigned char order = *(const unsigned char *)&one ? ELFDATA2LSB : ELFDATA2MSB;
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != order)
		return 1;
	for (size_t i = 0; i < h.e_shnum; i++) {
		size_t at = h.e_shoff + i * sizeof s;
		if (at > n || n - at < sizeof s)
			return 0;
		memcpy(&s, p + at, sizeof s);
		if (s.sh_type != SHT_SYMTAB)
			continue;
		if (s.sh_offset > n || n - s.sh_offset < s.sh_size)
			return 0;
		for (size_t j = 0; j < s.sh_size / sizeof(Elf64_Sym); j++) {
			Elf64_Sym sym;
			unsigned char *to = p + s.sh_offset + j * sizeof sym;
			memcpy(&sym, to, sizeof sym);
			if (ELF64_ST_BIND(sym.st_info) == STB_LOCAL || sym.st_shndx == SHN_UNDEF ||
			    ELF64_ST_VISIBILITY(sym.st_other) != STV_DEFAULT)
				continue;
			sym.st_other = STV_HIDDEN;
			memcpy(to, &sym, sizeof sym);
		}
	}
	return 1;
}

static int hide(const char *path)
{
	enum { HEAD = 60, SIZE_AT = 48, SIZE_BYTES = 10 };
	FILE *f = fopen(path, "r+b");
	long end = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
	unsigned char *p = end > 0 ? malloc((size_t)end) : NULL;
	int ok = p && !fseek(f, 0, SEEK_SET) && fread(p, 1, (size_t)end, f) == (size_t)end;
	struct stat was = { 0 };

	if (ok && end >= 8 && !memcmp(p, "!<thin>\n", 8)) {
		fclose(f), free(p);
		return 1;
	}
	if (ok && (end < 8 || memcmp(p, "!<arch>\n", 8))) {
		fprintf(stderr, "hide: %s is no archive\n", path);
		ok = 0;
	}
	for (size_t at = 8; ok && at + HEAD <= (size_t)end;) {
		size_t n = number((const char *)p + at + SIZE_AT, SIZE_BYTES);
		at += HEAD;
		ok = n <= (size_t)end - at && hide_object(p + at, n);
		at += n + n % 2;
	}
	ok = ok && !fseek(f, 0, SEEK_SET) && !fstat(fileno(f), &was) && fwrite(p, 1, (size_t)end, f) == (size_t)end;
	if (f && fclose(f))
		ok = 0;
	const struct timespec times[2] = { was.st_atim, was.st_mtim };
	ok = ok && !utimensat(AT_FDCWD, path, times, 0);
	free(p);
	if (!ok)
		fprintf(stderr, "hide: %s cannot be read, is broken, or cannot be written\n", path);
	return ok;
}

/* As meson's install script: archives below the prefix, or anywhere if they begin with /. */
int main(int argc, char **argv)
{
	const char *prefix = getenv("MESON_INSTALL_DESTDIR_PREFIX"), *destdir = getenv("DESTDIR");
	int ok = 1;

	if (argc == 4 && !strcmp(argv[1], "--stamp")) {
		FILE *stamp = hide(argv[3]) ? fopen(argv[2], "w") : NULL;
		return !stamp || fclose(stamp);
	}
	for (int i = 1; i < argc; i++) {
		char path[4096];
		const char *front = *argv[i] == '/' ? destdir : prefix;
		int n = snprintf(path, sizeof path, "%s%s%s", front ? front : "", front && *argv[i] != '/' ? "/" : "", argv[i]);
		ok = n > 0 && n < (int)sizeof path && hide(path) && ok;
	}
	return !ok;
}
