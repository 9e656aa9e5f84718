/* SPDX-License-Identifier: MIT */
/* The arguments of `cptx run`: what --arg says, as values and buffers of a launch. */
#ifndef CPTX_TOOL_RUN_ARGS_H
#define CPTX_TOOL_RUN_ARGS_H

#include <cptx/device.h>

enum { MOST_ARGS = 256 };

typedef struct run_arg {
	const char *spec; /* as given */
	bool is_buffer;
	enum cptx_type type;
	uint64_t bits;       /* of a value */
	uint64_t count;      /* elements of a buffer */
	size_t size;         /* bytes */
	unsigned char *data; /* of a buffer, before the run; to be freed */
	bool is_hidden;      /* a buffer that the kernel is not given: tensor maps are over it */
	bool is_bytes;       /* no buffer: the kernel is given its bytes */
	const char *output;  /* --out, or NULL */
	bool is_map;
	uint64_t over;           /* a tensor map: the number of the buffer */
	cptx_tensor_map_opt map; /* address 0 */
} run_arg;

/* Reads "u32:7", "f32:1.5", "buf:f32[4096]=zero" (also mem: and bytes:), "tmap:0,type=bf16,...".  False, with the reason in
 * why. */
bool run_arg_read(run_arg *a, const char *spec, char *why, size_t size);
bool run_map_read(run_arg *a, const char *text, char *why, size_t size); /* behind "tmap:" */
void run_arg_free(run_arg *a);
/* The value as a launch takes it; a buffer's: its address.  Not for tensor maps and hidden buffers. */
cptx_arg run_arg_value(const run_arg *a, uint64_t address);

#endif
