/* SPDX-License-Identifier: MIT */
/* Kernels of the kit's tests: run on an emulated device, judged by ptxas, and errors looked for. */
#ifndef KIT_ON_EMU_H
#define KIT_ON_EMU_H

#include "../ask.h"
#include "../test.h"
#include "../verify/assemble.h"

#include <cptx/device.h>
#include <cptx/emu.h>

/* A buffer of the device, with what the host has of it. */
typedef struct emu_buffer {
	void *host;
	size_t bytes;
	uint64_t at;
} emu_buffer;

enum { EMU_BUFFERS = 4 };

typedef struct emu_run {
	const char *target;
	uint64_t seed;
	enum cptx_emu_schedule schedule;
	uint32_t grid, launches; /* launches 0: 1 */
	bool pedantic;           /* warnings are errors */
	emu_buffer buffer[EMU_BUFFERS];
	uint64_t offset[EMU_BUFFERS]; /* bytes that an argument points behind its buffer's start */
} emu_run;

/* Launches the only kernel with four addresses and n, writing the buffers before and reading them behind. */
static inline void emu_launch(cptx_module *m, emu_run *r, uint32_t n)
{
	cptx_error err = { 0 };
	cptx_emu_opt opt = { .seed = r->seed, .schedule = r->schedule, .threads = 1, .pedantic = r->pedantic };
	cptx_device *dev = cptx_emu_open(r->target, &opt, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	uint64_t at[EMU_BUFFERS];

	for (int i = 0; i < EMU_BUFFERS; i++) {
		emu_buffer *b = &r->buffer[i];
		b->at = cptx_mem_alloc(dev, b->bytes + 256, &err);
		at[i] = b->at + r->offset[i];
		if (b->bytes)
			cptx_mem_write(dev, b->at, b->host, b->bytes, &err);
	}
	for (uint32_t i = 0; i < (r->launches ? r->launches : 1); i++)
		cptx_launch_once(p, NULL, &(cptx_launch_opt){ .grid = { r->grid }, CPTX_ARGS(at[0], at[1], at[2], at[3], n) }, NULL,
		                 &err);
	for (int i = 0; i < EMU_BUFFERS; i++)
		if (r->buffer[i].bytes)
			cptx_mem_read(dev, r->buffer[i].host, r->buffer[i].at, r->buffer[i].bytes, &err);
	SURE(!err.code, "%s: %s", r->target, err.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}

/* ptxas, which is there, accepts what is emitted; gives what it says of registers and spills, to be freed. */
static inline char *emu_assembles(cptx_module *m, const char *target)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);
	assembly job = { .target = target, .ptx = ptx ? cptx_ptx_text(ptx) : "" };

	SURE(ptx != NULL, "%s", err.text);
	assemble(&job, 1);
	SURE(job.status == 0, "%s: %s\n%s", target, job.said, job.ptx);
	cptx_ptx_destroy(ptx);
	return job.said;
}

/* The module has this error, of a line of this file; destroys it. */
static inline void emu_fails(cptx_module *m, const char *file, const char *says)
{
	const cptx_error *e = cptx_module_error(m);

	ck_assert_msg(e && strstr(e->text, says), "%s\nnot: %s", e ? e->text : "no error", says);
	ck_assert_msg(strstr(e->text, file) != NULL, "%s", e->text);
	cptx_module_destroy(m);
}

/* A kernel of so many threads (0: any number) in a module of its own, for calls that fail:
 * cptx_kernel *k = emu_begin(&m, 0); ... EMU_FAILS(m, "what is said"); */
static inline cptx_kernel *emu_begin(cptx_module **m, uint32_t threads)
{
	*m = cptx_module_new(NULL);
	return cptx_kernel_begin(*m, "k", .block = { threads });
}
#define EMU_FAILS(m, says) emu_fails((m), strrchr("/" __FILE__, '/') + 1, (says))

#endif
