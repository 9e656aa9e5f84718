/* SPDX-License-Identifier: MIT */
/*
 * How fast the emulator executes scalar code: thread-instructions per second of CPU time on one thread, with all its checks;
 * then whole kernels, with their peak memory (emu_whole.c).
 *
 *     bench_emu [-r] [TURNS]       (-r: only the former, without looking for races; TURNS of the loops, default 2000)
 */
#include "emu_whole.h"

#include <cptx/emu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 3, BLOCK = 256, GRID = 32 };

/* Loops of an accumulator %f1 and a number %r1; %r2 counts down, %rd1 walks through global memory. */
static const struct loop {
	const char *name, *body;
} loops[] = {
	{ "integer",
	  "mad.lo.s32 %r1, %r1, 1664525, 1013904223; shr.u32 %r3, %r1, 7; xor.b32 %r1, %r1, %r3; and.b32 %r4, %r1, 255;"
	  "add.s32 %r5, %r5, %r4; max.s32 %r6, %r6, %r4; setp.lt.u32 %p2, %r4, 100; selp.b32 %r7, %r5, %r6, %p2;"
	  "add.s32 %r1, %r1, %r7; lop3.b32 %r8, %r1, %r5, %r6, 0x96;" },
	{ "f32", "fma.rn.f32 %f1, %f1, %f2, %f3; mul.f32 %f4, %f1, %f2; add.f32 %f5, %f4, %f3; sub.f32 %f6, %f5, %f1;"
	         "max.f32 %f7, %f6, %f4; fma.rn.f32 %f8, %f7, %f2, %f8; min.f32 %f1, %f8, %f3; fma.rn.f32 %f3, %f1, %f2, %f5;" },
	{ "mixed with loads",
	  "ld.global.f32 %f4, [%rd1]; fma.rn.f32 %f1, %f4, %f2, %f1; mad.lo.s32 %r1, %r1, 1664525, 1013904223;"
	  "shr.u32 %r3, %r1, 24; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd0, %rd3; cvt.rn.f32.s32 %f5, %r3;"
	  "fma.rn.f32 %f1, %f5, %f2, %f1; ld.shared.f32 %f6, [%r9]; add.f32 %f1, %f1, %f6; mul.f32 %f3, %f1, %f2;"
	  "st.shared.f32 [%r9], %f3; add.s64 %rd5, %rd4, %rd3; xor.b32 %r1, %r1, %r3;" },
	{ "halves",
	  "cvt.rn.f16x2.f32 %r3, %f1, %f2; fma.rn.f16x2 %r4, %r3, %r3, %r3; add.f16x2 %r5, %r4, %r3; mul.f16x2 %r6, %r5, %r3;"
	  "max.f16x2 %r7, %r6, %r3; cvt.rn.bf16x2.f32 %r8, %f2, %f1; fma.rn.bf16x2 %r4, %r8, %r8, %r8; add.bf16x2 %r5, %r4, %r8;"
	  "xor.b32 %r1, %r7, %r5;" },
	{ "functions",
	  "ex2.approx.ftz.f32 %f4, %f1; rcp.approx.ftz.f32 %f5, %f4; lg2.approx.f32 %f6, %f5; sqrt.approx.f32 %f1, %f6;"
	  "rsqrt.approx.f32 %f7, %f5; div.rn.f32 %f1, %f7, %f2; tanh.approx.f32 %f8, %f1;" },
	{ "bits", "prmt.b32 %r3, %r1, %r5, 0x5410; shf.l.wrap.b32 %r4, %r3, %r1, 7; bfe.u32 %r5, %r4, 3, 9; popc.b32 %r6, %r1;"
	          "bfi.b32 %r7, %r5, %r6, 4, 5; clz.b32 %r8, %r4; mul.hi.u32 %r3, %r7, %r1; add.s32 %r1, %r3, %r8;" },
	{ "divergent",
	  "and.b32 %r3, %r2, 31; setp.lt.u32 %p2, %r10, %r3; @%p2 bra ELSE; mad.lo.s32 %r1, %r1, 1664525, 1013904223;"
	  "shr.u32 %r3, %r1, 7; xor.b32 %r1, %r1, %r3; add.s32 %r1, %r1, 77; bra.uni JOIN;\nELSE: add.s32 %r1, %r1, %r3;"
	  "mul.lo.s32 %r1, %r1, 5; xor.b32 %r1, %r1, %r2; add.s32 %r1, %r1, 3;\nJOIN: sub.s32 %r5, %r5, %r1;" },
};

static const char head[] =
	".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
	".reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<16>; .reg .pred %p<4>; .shared .align 4 .b8 s[1024];\n"
	"ld.param.u64 %rd0, [p]; ld.param.u32 %r2, [n]; mov.u32 %r10, %tid.x; mov.u32 %r1, %r10; mov.u32 %r5, 0;"
	"mov.u32 %r6, 0; mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f3f000000; mov.f32 %f3, 0f3e800000; mov.f32 %f8, %f1;"
	"mul.wide.u32 %rd2, %r10, 4; mov.u32 %r11, %ctaid.x; mul.lo.u32 %r12, %r11, 1024; cvt.u64.u32 %rd1, %r12;"
	"add.u64 %rd1, %rd0, %rd1; add.u64 %rd1, %rd1, %rd2; mov.u32 %r9, s; shl.b32 %r12, %r10, 2;"
	"add.u32 %r9, %r9, %r12; st.shared.f32 [%r9], %f1;\nLOOP:\n";
static const char tail[] = "\nadd.s32 %r2, %r2, -1; setp.ne.s32 %p1, %r2, 0; @%p1 bra LOOP;\n"
						   "cvt.rn.f32.s32 %f9, %r1; add.f32 %f9, %f9, %f1; st.global.f32 [%rd1], %f9; ret;\n}\n";

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int run(cptx_device *dev, const struct loop *l, uint32_t turns, cptx_error *err)
{
	char text[4096];
	size_t size = (size_t)GRID * BLOCK * 4;
	cptx_emu_counters before, after;
	double best = 0;

	snprintf(text, sizeof text, "%s%s%s", head, l->body, tail);
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), NULL, err);
	uint64_t at = p ? cptx_mem_alloc(dev, size, err) : 0;
	void *zero = calloc(1, size);
	if (at && zero)
		cptx_mem_write(dev, at, zero, size, err);
	for (int i = 0; i < ROUNDS && at && zero && !err->code; i++) {
		cptx_emu_get_counters(dev, &before);
		double t = cpu_seconds();
		cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { GRID }, .block = { BLOCK }, CPTX_ARGS(at, turns) }, NULL,
		                 err);
		t = cpu_seconds() - t;
		cptx_emu_get_counters(dev, &after);
		double rate = (double)(after.thread_instructions - before.thread_instructions) / t;
		best = rate > best ? rate : best;
	}
	if (!err->code)
		printf("%-18s %7.1f million thread-instructions/s\n", l->name, best * 1e-6);
	if (at)
		cptx_mem_free(dev, at);
	cptx_program_destroy(p);
	free(zero);
	return err->code ? 1 : 0;
}

int main(int argc, char **argv)
{
	bool no_races = argc > 1 && !strcmp(argv[1], "-r");
	int at = 1 + no_races;
	uint32_t turns = argc > at ? (uint32_t)atoi(argv[at]) : 2000;
	cptx_emu_opt opt = { .threads = 1, .no_races = no_races };
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90a", &opt, &err);

	for (size_t i = 0; dev && i < sizeof loops / sizeof *loops && !err.code; i++)
		run(dev, &loops[i], turns, &err);
	cptx_device_close(dev);
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	return err.code || (!no_races && !emu_whole());
}
