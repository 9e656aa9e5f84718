/* SPDX-License-Identifier: MIT */
#include "bundle/bundle.h"
/* from src */
#include "bundle/loader/cptx_load.h"

#include <stdlib.h>
#include <string.h>

static void print_text(const char *text) { cli_put(stdout, text, strlen(text)); }

static void print_variant(const char *data, const cptx_load_variant *v)
{
	printf("  ");
	print_text(data + v->target);
	if (v->cubin_bytes)
		printf(", machine code %llu bytes", (unsigned long long)v->cubin_bytes);
	if (v->ptx_bytes)
		printf(", PTX %u.%u %llu bytes", v->ptx_version / 10, v->ptx_version % 10, (unsigned long long)v->ptx_bytes);
	const uint64_t *grid = (const uint64_t *)(const void *)(data + v->grid);
	printf(", %u threads, %u bytes of shared memory, %llu CTAs on 132 SMs", v->threads, v->smem,
	       (unsigned long long)grid[(v->nsms < 132 ? v->nsms : 132) - 1]);
	if (*(data + v->note)) {
		printf("; ");
		print_text(data + v->note);
	}
	putchar('\n');
}

static void print_entry(const cptx_load *b, uint32_t i, const char *data, const cptx_load_entry *e)
{
	enum cptx_load_kind kind;

	print_text(cptx_load_name(b, i));
	printf("(");
	for (uint32_t j = 0; j < e->nargs; j++) {
		const char *name = cptx_load_argument(b, i, j, &kind);
		printf("%s%s", j ? ", " : "", kind == CPTX_LOAD_F32 ? "f32 " : "");
		print_text(name);
	}
	printf(")  ");
	print_text(cptx_load_about(b, i));
	putchar('\n');
	for (uint32_t j = 0; j < e->nvariants; j++)
		print_variant(data, (const cptx_load_variant *)(const void *)(data + e->variants) + j);
}

int bundle_list(const cli_command *cmd, const char *path)
{
	char err[CPTX_LOAD_ERROR];
	size_t size;
	char *data = cli_read(cmd, path, &size);
	cptx_load *b = data ? cptx_load_memory(data, size, err) : NULL;

	if (!b) {
		if (data)
			cli_failed(cmd, "%s: %s", path, err);
		free(data);
		return EXIT_FAILED;
	}
	const cptx_load_head *h = (const cptx_load_head *)(const void *)data;
	printf("made by  ");
	print_text(data + h->made);
	printf("\n%u kernels, %llu bytes, of which %llu are machine code and PTX\n", h->nentries, (unsigned long long)h->bytes,
	       (unsigned long long)(h->bytes - h->images));
	for (uint32_t i = 0; i < h->nentries; i++)
		print_entry(b, i, data, (const cptx_load_entry *)(const void *)(data + h->entries) + i);
	cptx_load_close(b);
	free(data);
	return cli_flush(cmd, EXIT_OK);
}
