/* SPDX-License-Identifier: MIT */
/*
 * Peak memory of the process beside twice what the kernel's buffers need plus 64 MB, and CPU seconds on one thread.  The
 * GEMM of sm_100a also compares all of D with a reference, which counts for it.
 */
#include "emu_whole.h"

#include "ladder.h"

#include <cptx/emu.h>
#include <cptx/gemm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIDE = 512, MB = 1 << 20, STREAM = 256 * MB, BLOCK = 256, MANY = 1 << 18 };

static const uint64_t gemm_bytes = 3 * SIDE * SIDE * 2;

typedef struct place {
	cptx_device *dev;
	cptx_program *program;
	uint64_t a, b, d;
	cptx_error err;
} place;

/* Filled with numbers: bf16 of 2^-7 to 2, or f32 of as much, with all signs. */
static uint64_t buffer(place *p, uint64_t bytes)
{
	uint64_t at = p->err.code ? 0 : cptx_mem_alloc(p->dev, bytes, &p->err);
	uint16_t *some = malloc(MB);
	uint32_t x = 1;

	for (unsigned i = 0; some && i < MB / sizeof *some; i++) {
		x = x * 1664525 + 1013904223;
		some[i] = (uint16_t)(0x3c00 | (x >> 16 & 0x83ff));
	}
	for (uint64_t i = 0; at && some && i < bytes; i += MB)
		cptx_mem_write(p->dev, at + i, some, bytes - i < MB ? bytes - i : MB, &p->err);
	free(some);
	return at;
}

static bool open_place(place *p, const char *target)
{
	p->dev = cptx_emu_open(target, &(cptx_emu_opt){ .threads = 1 }, &p->err);
	return p->dev != NULL;
}

static bool load(place *p, cptx_module *m)
{
	p->program = p->err.code ? NULL : cptx_device_load(p->dev, m, NULL, &p->err);
	cptx_module_destroy(m);
	p->a = buffer(p, SIDE * SIDE * 2);
	p->b = buffer(p, SIDE * SIDE * 2);
	p->d = buffer(p, SIDE * SIDE * 2);
	return p->program && !p->err.code;
}

static bool run(place *p, const cptx_gemm_opt *o, cptx_gemm_problem q)
{
	q.a = p->a, q.b = p->b, q.d = p->d;
	cptx_launch *l = cptx_gemm_launch(p->program, p->dev, o, &q, &p->err);
	bool ok = l && cptx_launch_run(l, NULL, &p->err);
	cptx_launch_destroy(l);
	return ok;
}

static bool gemm_sm80(place *p)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find("sm_80"));
	cptx_gemm_problem q = { .m = SIDE, .n = SIDE, .k = SIDE };

	o.out = CPTX_BF16;
	return open_place(p, "sm_80") && cptx_gemm_build(m, &o, &p->err) && load(p, m) && run(p, &o, q);
}

static bool gemm_sm90(place *p)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_gemm_problem q = { .m = SIDE, .n = SIDE, .k = SIDE };
	cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_BF16 };
	cptx_gemm_choice best;

	if (!open_place(p, "sm_90a") || !cptx_gemm_auto(&o, &q, 132, &best, 1, &p->err))
		return false;
	best.opt.stream_k = false;
	return cptx_gemm_build(m, &best.opt, &p->err) && load(p, m) && run(p, &best.opt, q);
}

static bool gemm_sm100(place *p)
{
	const gemm_problem q = { .m = SIDE, .n = SIDE, .k = SIDE, .seed = 1 };
	gemm_report r;
	ladder_opt o = rung_v7.tile;

	o.in = o.out = CPTX_BF16;
	return open_place(p, "sm_100a") && ladder_run(p->dev, &rung_v7, &o, &q, &r, &p->err) && !r.wrong;
}

/* y += 2 x, 16 bytes a thread in each turn of a loop whose step is the grid. */
static const char stream_text[] =
	".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)\n{\n"
	".reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<16>; .reg .pred %p<2>;\n"
	"ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r0, [n]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\n"
	"mov.u32 %r4, %nctaid.x; mov.u32 %r5, %ntid.x; mul.lo.u32 %r4, %r4, %r5; mad.lo.u32 %r3, %r1, %r5, %r2;\n"
	"LOOP: setp.ge.u32 %p0, %r3, %r0; @%p0 ret;\n"
	"mul.wide.u32 %rd2, %r3, 16; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;\n"
	"ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd3]; ld.global.v4.f32 {%f4, %f5, %f6, %f7}, [%rd4];\n"
	"fma.rn.f32 %f4, %f0, 0f40000000, %f4; fma.rn.f32 %f5, %f1, 0f40000000, %f5; fma.rn.f32 %f6, %f2, 0f40000000, %f6;\n"
	"fma.rn.f32 %f7, %f3, 0f40000000, %f7; st.global.v4.f32 [%rd4], {%f4, %f5, %f6, %f7};\n"
	"add.u32 %r3, %r3, %r4; bra LOOP;\n}\n";

static bool stream(place *p, uint32_t grid, uint64_t bytes)
{
	uint32_t n = (uint32_t)(bytes / 16);

	if (!open_place(p, "sm_90"))
		return false;
	p->program = cptx_device_load_text(p->dev, stream_text, strlen(stream_text), NULL, &p->err);
	p->a = buffer(p, bytes);
	p->b = buffer(p, bytes);
	cptx_launch_opt l = { .grid = { grid }, .block = { BLOCK }, CPTX_ARGS(p->a, p->b, n) };
	return p->program && p->b && cptx_launch_once(p->program, "k", &l, NULL, &p->err);
}

static bool stream_by_tiles(place *p) { return stream(p, STREAM / 16 / BLOCK, STREAM); }
static bool stream_persistent(place *p) { return stream(p, 132, STREAM); }
static bool many(place *p) { return stream(p, MANY, MB); }

static const struct whole {
	const char *name;
	bool (*run)(place *p);
	uint64_t bytes; /* of its buffers */
} wholes[] = {
	{ "GEMM 512^3 bf16, sm_80", gemm_sm80, gemm_bytes },
	{ "GEMM 512^3 bf16, sm_90a", gemm_sm90, gemm_bytes },
	{ "GEMM 512^3 bf16, sm_100a", gemm_sm100, gemm_bytes },
	{ "y += 2 x, 256 MB each, a CTA a tile", stream_by_tiles, 2 * (uint64_t)STREAM },
	{ "the same, 132 CTAs", stream_persistent, 2 * (uint64_t)STREAM },
	{ "the same, 1 MB each, 262144 CTAs", many, 2 * MB },
};

static int child(const struct whole *x)
{
	place p = { 0 };
	bool ok = x->run(&p);

	if (!ok)
		fprintf(stderr, "%s: %s\n", x->name, p.err.code ? p.err.text : "D is wrong");
	cptx_program_destroy(p.program);
	cptx_device_close(p.dev);
	return ok ? 0 : 1;
}

static bool one(const struct whole *x)
{
	struct rusage u;
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(child(x));
	if (pid < 0 || wait4(pid, &status, 0, &u) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		return false;
	double seconds = (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6 + (double)u.ru_stime.tv_sec +
	                 (double)u.ru_stime.tv_usec * 1e-6;
	double mb = (double)u.ru_maxrss / 1024, needs = (double)x->bytes / MB, bound = 2 * needs + 64;
	printf("%-38s %6.2f s of CPU, %7.1f MB at most (buffers %6.1f, bound %7.1f)%s\n", x->name, seconds, mb, needs, bound,
	       mb > bound ? ", TOO MUCH" : "");
	return mb <= bound;
}

bool emu_whole(void)
{
	bool ok = true;

	for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
		ok &= one(&wholes[i]);
	return ok;
}
