/* SPDX-License-Identifier: MIT */
/* The printed text: the result of cptx_emit, and the origin of its lines. */
#include "emit/emit.h"

void cptx_ptx_destroy(cptx_ptx *ptx)
{
	if (!ptx)
		return;
	emit_done(ptx);
	buf_free(&ptx->text);
	buf_free(&ptx->own);
	buf_free(&ptx->map);
	buf_free(&ptx->files);
	cptx_allocator hook = ptx->hook;
	heap_realloc(&hook, ptx, 0);
}

const char *cptx_ptx_text(const cptx_ptx *ptx) { return ptx ? ptx->text.p : NULL; }
size_t cptx_ptx_size(const cptx_ptx *ptx) { return ptx ? ptx->text.n : 0; }
unsigned cptx_ptx_version(const cptx_ptx *ptx) { return ptx ? ptx->version : 0; }
const cptx_target *cptx_ptx_target(const cptx_ptx *ptx) { return ptx ? ptx->target : NULL; }

cptx_site cptx_ptx_origin(const cptx_ptx *ptx, uint32_t line)
{
	cptx_site at = { NULL, 0 };
	line_entry found = { 0 }, entry;

	/* the last entry that is not behind the line; they are sorted */
	for (size_t low = 0, high = ptx ? ptx->map.n / sizeof entry : 0; low < high;) {
		const size_t middle = low + (high - low) / 2;
		memcpy(&entry, ptx->map.p + middle * sizeof entry, sizeof entry);
		if (entry.ptx_line > line) {
			high = middle;
		} else {
			found = entry;
			low = middle + 1;
		}
	}
	if (!found.file)
		return at;
	at.file = ptx->files.p;
	for (unsigned i = 1; i < found.file; i++)
		at.file += strlen(at.file) + 1;
	at.line = found.line + (found.step ? line - found.ptx_line : 0);
	return at;
}
