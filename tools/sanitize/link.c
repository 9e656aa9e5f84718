/* SPDX-License-Identifier: MIT */
/* The linker of the driver, for one piece of PTX: what it makes is that text. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

typedef struct linker {
	char *text; /* NUL-terminated */
	size_t size;
} linker;

enum { LINK_PTX = 1, LINK_FATBIN = 2 };

static int begin(linker **out, unsigned n, const int *options, void **values)
{
	san_empty_logs(n, options, values);
	*out = (linker *)calloc(1, sizeof **out);
	return *out ? SAN_OK : SAN_MEMORY;
}

static int add(linker *l, int type, const void *data, size_t size)
{
	if (!l || !data)
		return SAN_VALUE;
	if (l->text || (type != LINK_PTX && type != LINK_FATBIN)) {
		san_say("cuLinkAddData takes one piece of PTX here, and neither more nor machine code");
		return SAN_NOT_SUPPORTED;
	}
	if (type == LINK_FATBIN) {
		l->text = san_fatbin_ptx(data, san.info, &l->size);
		return l->text ? SAN_OK : SAN_NO_IMAGE;
	}
	l->text = (char *)malloc(size + 1);
	if (!l->text)
		return SAN_MEMORY;
	memcpy(l->text, data, size);
	l->text[size] = 0;
	l->size = size;
	return SAN_OK;
}

static int finish(const linker *l, void **image, size_t *size)
{
	if (!l || !l->text)
		return SAN_VALUE;
	*image = l->text;
	if (size)
		*size = l->size + 1;
	return SAN_OK;
}

static int end(linker *l)
{
	if (l)
		free(l->text);
	free(l);
	return l ? SAN_OK : SAN_VALUE;
}

#define OPTIONS unsigned n, int *options, void **values
DRIVER(cuLinkCreate_v2, (OPTIONS, linker **out), begin(out, n, options, values))
DRIVER(cuLinkAddData_v2, (linker * l, int type, const void *data, size_t size, const char *name, OPTIONS),
       ((void)name, (void)n, (void)options, (void)values, add(l, type, data, size)))
DRIVER(cuLinkComplete, (linker * l, void **image, size_t *size), finish(l, image, size))
DRIVER(cuLinkDestroy, (linker * l), end(l))
