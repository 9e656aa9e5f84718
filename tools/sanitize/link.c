/* SPDX-License-Identifier: MIT */
/* The linker of the driver.  Its image is a head and the texts of all pieces, each with a NUL behind it, which are joined
 * when the image is loaded. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

typedef struct linker {
	char *image; /* NULL: no piece has come */
	size_t size;
} linker;

static const char mark[8] = "cptxlink"; /* no NUL: this is no PTX text, fat binary or ELF file */

/* Of a text, nothing behind its NUL is read. */
bool san_is_linked(const void *image) { return !strncmp((const char *)image, mark, sizeof mark); }

const char *san_linked_text(const void *image, size_t *at, size_t *size)
{
	const char *bytes = (const char *)image;
	uint64_t all;

	memcpy(&all, bytes + sizeof mark, sizeof all);
	*at = *at ? *at : SAN_LINKED_HEAD;
	if (*at >= all)
		return NULL;
	const char *text = bytes + *at;
	*size = strlen(text);
	*at += *size + 1;
	return text;
}

enum { LINK_PTX = 1, LINK_FATBIN = 2 };

static int begin(linker **out, unsigned n, const int *options, void **values)
{
	san_empty_logs(n, options, values);
	*out = (linker *)calloc(1, sizeof **out);
	return *out ? SAN_OK : SAN_MEMORY;
}

/* Puts a text behind the others. */
static int append(linker *l, const char *text, size_t size)
{
	size_t used = l->image ? l->size : SAN_LINKED_HEAD;
	char *grown = (char *)realloc(l->image, used + size + 1);

	if (!grown)
		return SAN_MEMORY;
	memcpy(grown, mark, sizeof mark);
	memcpy(grown + used, text, size);
	grown[used + size] = 0;
	l->image = grown;
	l->size = used + size + 1;
	uint64_t all = l->size;
	memcpy(grown + sizeof mark, &all, sizeof all);
	return SAN_OK;
}

static int add(linker *l, int type, const void *data, size_t size)
{
	if (!l || !data)
		return SAN_VALUE;
	if (type == LINK_PTX)
		return append(l, (const char *)data, strnlen((const char *)data, size));
	if (type == LINK_FATBIN) {
		char *text = san_fatbin_ptx(data, san.info, &size);
		int e = text ? append(l, text, size) : SAN_NO_IMAGE;
		free(text);
		return e;
	}
	san_say("cuLinkAddData takes PTX and fat binaries that hold PTX here, no machine code, objects or libraries");
	return SAN_NOT_SUPPORTED;
}

static int add_file(linker *l, int type, const char *path)
{
	char *bytes;
	size_t n;
	int e = san_read_file(path, &bytes, &n);

	if (!e)
		e = add(l, type, bytes, n);
	free(bytes);
	return e;
}

static int finish(const linker *l, void **image, size_t *size)
{
	if (!l || !l->image)
		return SAN_VALUE;
	*image = l->image;
	if (size)
		*size = l->size;
	return SAN_OK;
}

static int end(linker *l)
{
	if (l)
		free(l->image);
	free(l);
	return l ? SAN_OK : SAN_VALUE;
}

#define OPTIONS unsigned n, int *options, void **values
DRIVER(cuLinkCreate_v2, (OPTIONS, linker **out), begin(out, n, options, values))
DRIVER(cuLinkAddData_v2, (linker * l, int type, const void *data, size_t size, const char *name, OPTIONS),
       ((void)name, (void)n, (void)options, (void)values, add(l, type, data, size)))
DRIVER(cuLinkAddFile_v2, (linker * l, int type, const char *path, OPTIONS),
       ((void)n, (void)options, (void)values, add_file(l, type, path)))
DRIVER(cuLinkComplete, (linker * l, void **image, size_t *size), finish(l, image, size))
DRIVER(cuLinkDestroy, (linker * l), end(l))
