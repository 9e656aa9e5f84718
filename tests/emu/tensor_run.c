/* SPDX-License-Identifier: MIT */
/* Tensor copies as kernels, and running them. */
#include "tensor.h"

enum { THREADS = 128, KERNELS = 128 /* of different text */ };

/* ---- kernels ---- */

/* What differs from copy to copy is in parameters, so that a kernel serves many. */
typedef struct operands {
	uint32_t at, bytes;
	int32_t coord[5];
	uint16_t offset[4];
	uint32_t room;
} operands;

static const char head[] =
	".version 8.7\n.target %s\n.address_size 64\n%s.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param "
	".u64 done, .param .align 4 .b8 o[40])\n"
	"{\n.reg .b32 %%r<40>;\n.reg .b64 %%rd<20>;\n.reg .pred %%p<8>;\n.reg .b16 %%h<4>;\n"
	"%s.shared .align 8 .b64 bar;\n"
	"mov.u32 %%r0, %%tid.x; setp.eq.u32 %%p0, %%r0, 0;\n"
	"mov.b64 %%rd0, map; cvta.param.u64 %%rd0, %%rd0; ld.param.u64 %%rd1, [out]; ld.param.u64 %%rd2, [done];\n"
	"ld.param.u32 %%r30, [o]; ld.param.u32 %%r31, [o+4]; ld.param.u32 %%r20, [o+8]; ld.param.u32 %%r21, [o+12];\n"
	"ld.param.u32 %%r22, [o+16]; ld.param.u32 %%r23, [o+20]; ld.param.u32 %%r24, [o+24]; ld.param.u16 %%h0, [o+28];\n"
	"ld.param.u16 %%h1, [o+30]; ld.param.u16 %%h2, [o+32]; ld.param.u32 %%r29, [o+36];\n"
	"mov.u32 %%r1, data; mov.u32 %%r2, bar; shl.b32 %%r3, %%r0, 2; add.u32 %%r4, %%r1, %%r3; cvt.u64.u32 %%rd3, %%r3;\n"
	"add.u64 %%rd3, %%rd1, %%rd3; @%%p0 mbarrier.init.shared::cta.b64 [%%r2], 1; mov.u32 %%r5, %%r3;\n";
/* Each thread copies a word, all of it in turns: into shared memory, and out of it. */
static const char copy_in[] =
	"fill:\nld.global.u32 %r6, [%rd3]; st.shared.u32 [%r4], %r6; add.u32 %r4, %r4, 512; add.u64 %rd3, %rd3, 512;\n"
	"add.u32 %r5, %r5, 512; setp.lt.u32 %p1, %r5, %r29; @%p1 bra fill;\n"
	"fence.proxy.async; bar.sync 0; add.u32 %r1, %r1, %r30;\n";
static const char copy_out[] =
	"sub.u32 %r5, %r5, %r3; sub.u32 %r4, %r4, %r5; cvt.u64.u32 %rd4, %r5; sub.u64 %rd3, %rd3, %rd4;\n"
	"mov.u32 %r5, %r3;\n"
	"show:\nld.shared.u32 %r6, [%r4]; st.global.u32 [%rd3], %r6; add.u32 %r4, %r4, 512; add.u64 %rd3, %rd3, 512;\n"
	"add.u32 %r5, %r5, 512; setp.lt.u32 %p1, %r5, %r29; @%p1 bra show;\n";
static const char *const coords[] = {
	"", "{%r20}", "{%r20, %r21}", "{%r20, %r21, %r22}", "{%r20, %r21, %r22, %r23}", "{%r20, %r21, %r22, %r23, %r24}"
};
static const char expect[] = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], %r31;\n";
static const char wait[] = "wait: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra wait;\n";
/*
 * How many bytes come is not known: the mbarrier is told of TOLD, and when the copy must be done, 2^17 clocks later, of 16
 * bytes more at a time until the phase ends.  What it was not told of then is what the copy completed.
 */
#define TOLD 0x20000
static const char expect_many[] = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 0x20000;\n";
static const char wait_long[] =
	"@!%p0 bra over; mov.u32 %r8, 0; mov.u64 %rd12, %clock64;\n"
	"same: mov.u64 %rd14, %clock64; sub.u64 %rd15, %rd14, %rd12; setp.lt.u64 %p3, %rd15, 0x20000; @%p3 bra same;\n"
	"more: mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r2], 0; @%p2 bra told; setp.eq.u32 %p3, %r8, 0x20000;\n"
	"@%p3 bra told; mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 16; add.u32 %r8, %r8, 16; bra more;\n"
	"told: st.global.u32 [%rd2+4], %r8;\n"
	"over: bar.sync 0;\n";

static uint32_t ncoord(const tensor_case *c) { return strncmp(c->mode, "tile::", 6) ? c->map.rank : 5; }
static uint32_t noffset(const tensor_case *c)
{
	return !strncmp(c->mode, "im2col::w", 9) ? 2 : !strcmp(c->mode, "im2col") ? c->map.rank - 2 : 0;
}

void tensor_place(const tensor_case *c, char *text, size_t size)
{
	size_t at = 0;

	for (uint32_t i = 0; i < ncoord(c); i++)
		at += (size_t)snprintf(text + at, size - at, "%s%d", i ? ", " : "{", c->coord[i]);
	at += (size_t)snprintf(text + at, size - at, "}");
	for (uint32_t i = 0; i < noffset(c); i++)
		at += (size_t)snprintf(text + at, size - at, "%s%u", i ? ", " : ", {", c->offset[i]);
	snprintf(text + at, size - at, "%s", noffset(c) ? "}" : "");
}

static void add_load(const tensor_case *c, bool measured, char *s, size_t size)
{
	static const char *const offsets[] = { "", ", {%h0}", ", {%h0, %h1}", ", {%h0, %h1, %h2}" };
	size_t n = (size_t)snprintf(s, size, "%s", measured ? expect_many : expect);

	n += (size_t)snprintf(s + n, size - n,
	                      "@%%p0 cp.async.bulk.tensor.%ud.shared::cluster.global.%s.mbarrier::complete_tx::bytes [%%r1], "
	                      "[%%rd0, %s], [%%r2]%s;\n%s",
	                      c->map.rank, c->mode, coords[ncoord(c)], offsets[noffset(c)], measured ? wait_long : wait);
	snprintf(s + n, size - n, "%s", copy_out);
}

static void add_store(const tensor_case *c, char *s, size_t size)
{
	bool reduce = c->way == TENSOR_REDUCE;

	snprintf(s, size,
	         "@%%p0 cp.%sasync.bulk.tensor.%ud.global.shared::cta.%s%s%s.bulk_group [%%rd0, %s], [%%r1];\n"
	         "@%%p0 cp.async.bulk.commit_group; @%%p0 cp.async.bulk.wait_group 0;\n",
	         reduce ? "reduce." : "", c->map.rank, reduce ? c->op : "", reduce ? "." : "", c->mode, coords[ncoord(c)]);
}

static void write_kernel(const tensor_case *c, bool measured, char *s, size_t size)
{
	size_t n = (size_t)snprintf(s, size, head, c->target, c->room ? ".extern .shared .align 1024 .b8 data[];\n" : "",
	                            c->room ? "" : ".shared .align 1024 .b8 data[32768];\n");

	n += (size_t)snprintf(s + n, size - n, "%s", copy_in);
	if (c->way == TENSOR_LOAD)
		add_load(c, measured, s + n, size - n);
	else
		add_store(c, s + n, size - n);
	n += strlen(s + n);
	snprintf(s + n, size - n, "@%%p0 st.global.u32 [%%rd2], 1; ret;\n}\n");
}

/* ---- running ---- */

struct tensor_runner {
	cptx_device *dev;
	uint64_t out; /* what shared memory is filled with, and becomes; then what `finish` reads */
	struct {
		char *text;
		cptx_program *p;
	} kernel[KERNELS];
};

tensor_runner *tensor_runner_new(cptx_device *dev)
{
	tensor_runner *r = calloc(1, sizeof *r);

	if (r) {
		r->dev = dev;
		r->out = cptx_mem_alloc(dev, TENSOR_SMEM + 8, NULL);
	}
	return r;
}

void tensor_runner_free(tensor_runner *r)
{
	for (size_t i = 0; i < KERNELS; i++) {
		cptx_program_destroy(r->kernel[i].p);
		free(r->kernel[i].text);
	}
	cptx_mem_free(r->dev, r->out);
	free(r);
}

static cptx_program *program_of(tensor_runner *r, const tensor_case *c, bool measured, cptx_error *err)
{
	char text[8192];
	size_t i = 0;

	write_kernel(c, measured, text, sizeof text);
	while (i < KERNELS && r->kernel[i].text && strcmp(r->kernel[i].text, text))
		i++;
	if (i < KERNELS && !r->kernel[i].text) {
		r->kernel[i].text = strdup(text);
		r->kernel[i].p = cptx_device_load_text(r->dev, text, strlen(text), NULL, err);
	}
	return i < KERNELS ? r->kernel[i].p : NULL;
}

static bool finish(const tensor_case *c, const tensor_runner *r, uint64_t at, uint8_t *buffer, uint8_t *smem,
                   uint32_t *bytes, cptx_error *err)
{
	uint32_t done[2]; /* whether the kernel came to its end; bytes that the mbarrier had to be told of */

	if (!cptx_mem_read(r->dev, buffer, at, c->size, err) || !cptx_mem_read(r->dev, smem, r->out, TENSOR_SMEM, err) ||
	    !cptx_mem_read(r->dev, done, r->out + TENSOR_SMEM, sizeof done, err))
		return false;
	if (bytes)
		*bytes = c->way == TENSOR_LOAD ? TOLD - done[1] : 0;
	if (done[0])
		return true;
	err->code = CPTX_E_STATE;
	snprintf(err->text, sizeof err->text, "the kernel did not come to its end");
	return false;
}

static bool run(tensor_runner *r, const tensor_case *c, uint8_t *buffer, uint8_t *smem, uint32_t *bytes, cptx_error *err)
{
	cptx_program *p = program_of(r, c, bytes != NULL, err);
	uint64_t at = p ? cptx_mem_alloc(r->dev, c->size, err) : 0;
	operands o = { .at = c->at, .bytes = tensor_told(c), .room = c->room ? c->room : TENSOR_SMEM };
	cptx_tensor_map_opt opt = c->map;
	cptx_tensor_map map;

	memcpy(o.coord, c->coord, sizeof o.coord);
	memcpy(o.offset, c->offset, sizeof c->offset);
	if (c->way == TENSOR_LOAD)
		memset(smem, TENSOR_FILL, TENSOR_SMEM);
	opt.address += at;
	bool ok = at && cptx_mem_write(r->dev, at, buffer, c->size, err) &&
	          cptx_mem_write(r->dev, r->out, smem, TENSOR_SMEM, err) &&
	          cptx_mem_fill8(r->dev, r->out + TENSOR_SMEM, 0, 8, err) && cptx_tensor_map_make(r->dev, &opt, &map, err) &&
	          cptx_launch_once(p, "k",
	                           &(cptx_launch_opt){ .grid = { 1 },
	                                               .block = { THREADS },
	                                               .dyn_smem = c->room,
	                                               CPTX_ARGS(CPTX_ARG_BYTES(&map, sizeof map), r->out, r->out + TENSOR_SMEM,
	                                                         CPTX_ARG_BYTES(&o, sizeof o)) },
	                           NULL, err) &&
	          cptx_stream_synchronize(r->dev, NULL, err) && finish(c, r, at, buffer, smem, bytes, err);
	cptx_mem_free(r->dev, at);
	return ok;
}

bool tensor_run(tensor_runner *r, const tensor_case *c, uint8_t *buffer, uint8_t *smem, cptx_error *err)
{
	return run(r, c, buffer, smem, NULL, err);
}

bool tensor_measure(tensor_runner *r, const tensor_case *c, uint8_t *buffer, uint8_t *smem, uint32_t *bytes, cptx_error *err)
{
	return run(r, c, buffer, smem, bytes, err);
}
