/* SPDX-License-Identifier: MIT */
/* What options and arguments of the kit refuse, whatever the noun: numbers that are no values, wrong types and constants. */
#include "on_emu.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/reduce.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>
#include <cptx/softmax.h>
#include <cptx/timeline.h>
#include <cptx/vector.h>

#define TILE(r, c) ((cptx_tile){ .rows = (r), .cols = (c), .elem = { .bits = 16 }, .swizzle = CPTX_SWIZZLE_128B })

static cptx_module *m;
static cptx_kernel *k;
static cptx_val p, u, f, wide;

static void begin(void)
{
	m = cptx_module_new(NULL);
	k = cptx_kernel_begin(m, "k", .block = { 256 });
	p = cptx_param(k, CPTX_PTR, "p"), u = cptx_param(k, CPTX_U32, "u");
	f = cptx_param(k, CPTX_F32, "f"), wide = cptx_param(k, CPTX_U64, "wide");
}

static void end(const char *words)
{
	const cptx_error *e = cptx_module_error(m);

	if (!words) {
		SURE(!e, "%s", e->text);
	} else {
		SURE(e, "no error: %s", words);
		SURE(strstr(e->text, words), "%s\nlacks: %s", e->text, words);
		SURE(strstr(e->text, "test_values.c:"), "%s", e->text);
	}
	cptx_module_destroy(m);
}

/* The calls give an error with these words, NULL: none. */
#define GIVES(words, ...)                                                                                                   \
	do {                                                                                                                    \
		begin();                                                                                                            \
		__VA_ARGS__;                                                                                                        \
		end(words);                                                                                                         \
	} while (0)

/* What `.rows = 3` makes in C. */
static cptx_val bare(uint8_t number)
{
	cptx_val v;

	memset(&v, 0, sizeof v);
	v.kind = number;
	return v;
}

static void make_tma(cptx_operand *op) { cptx_operand_new(k, op, .type = CPTX_BF16, .tile = TILE(64, 64), .map = p); }

static void make_copied(cptx_operand *op)
{
	cptx_operand_new(k, op, .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = TILE(64, 64), .address = p,
	                 .pitch = cptx_imm(128), .threads = 256);
}

static void make_acc(cptx_acc *a, enum cptx_mma_by by)
{
	const uint32_t rows = by == CPTX_BY_TCGEN05 ? 128 : 32;
	cptx_tiled_mma mma;

	cptx_tiled_mma_new(k, &mma, .by = by, .a = CPTX_BF16, .b = CPTX_BF16, .m = rows, .n = 64, .a_tile = TILE(rows, 64),
	                   .b_tile = TILE(64, 64));
	if (by == CPTX_BY_TCGEN05) {
		cptx_acc_in_tmem(k, &mma, a, u);
	} else {
		cptx_acc_new(k, &mma, a);
		cptx_acc_clear(k, a);
	}
}

START_TEST(bare_numbers)
{
	cptx_tiles s;
	cptx_operand op;
	cptx_row row;
	cptx_reduce r;
	cptx_epilogue e;

	for (int n = 1; n < 200; n++) {
		char words[96];
		if (n == CPTX_VAL_BAD) /* an error where it is used */
			continue;
		snprintf(words, sizeof words, "cptx_tiles_new: .group is no value: a number is written cptx_imm(%d)", n);
		GIVES(words, cptx_tiles_new(k, &s, .tiles_m = u, .tiles_n = u, .group = bare((uint8_t)n)));
	}
	GIVES("cptx_operand_new: .rows is no value: a number is written cptx_imm(3)",
	      cptx_operand_new(k, &op, .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = TILE(64, 64), .address = p,
	                       .rows = bare(3), .pitch = cptx_imm(128), .threads = 256));
	GIVES("cptx_operand_load: .z is no value", make_tma(&op);
	      cptx_operand_load(k, &op, 0, 0, 0, .barrier = u, .z = bare(1)));
	GIVES("cptx_row_new: .count is no value",
	      cptx_row_new(k, &row, .type = CPTX_F32, .count = bare(3), .most = 9, .threads = 256));
	GIVES("cptx_reduce_new: .thread is no value", cptx_reduce_new(k, &r, .threads = 256, .thread = bare(3)));
	GIVES("cptx_epilogue_new: .rows is no value", cptx_epilogue_new(k, &e, .rows = bare(3)));
	GIVES("CPTX_VISIT_SCALE: .value is no value: a number is written cptx_immf(3)", cptx_epilogue_new(k, &e);
	      cptx_epilogue_add(k, &e, CPTX_VISIT_SCALE, .value = bare(3)));
}
END_TEST

START_TEST(wrong_types)
{
	cptx_operand op;
	cptx_operand_src src;
	cptx_tiles s;
	cptx_row row;
	cptx_pipe pipe;
	cptx_pipe_at at;
	cptx_epilogue e;
	cptx_acc a;

	GIVES("cptx_operand_load: the row is .f32; it is .u32, .s32 or a constant", make_tma(&op);
	      cptx_operand_load(k, &op, 0, f, 0, .barrier = u));
	GIVES("cptx_operand_load: the stage is .u64; it is", make_tma(&op); cptx_operand_load(k, &op, wide, 0, 0, .barrier = u));
	GIVES("cptx_operand_at: the stage is 1.5; it is", make_tma(&op); cptx_operand_at(k, &op, 1.5f));
	GIVES("cptx_operand_new: .map is .u32; it is .u64",
	      cptx_operand_new(k, &op, .type = CPTX_BF16, .tile = TILE(64, 64), .map = u));
	GIVES("cptx_operand_source: the column is .f32", make_copied(&op); src = cptx_operand_source(k, &op, 0, f); (void)src);
	GIVES("cptx_operand_rebase: the address is .u32; it is .u64", make_copied(&op); cptx_operand_rebase(k, &op, u));
	GIVES("cptx_tiles_new: .tiles_m is .f32; it is .u32, .s32 or a constant from 1 on",
	      cptx_tiles_new(k, &s, .tiles_m = f, .tiles_n = u));
	GIVES("cptx_row_new: .count is .f32; it is .u32 or .s32",
	      cptx_row_new(k, &row, .type = CPTX_F32, .count = f, .most = 9, .threads = 256));
	GIVES("cptx_row_load: the address is .u32; it is .u64", cptx_row_new(k, &row, .type = CPTX_F32, .n = 64, .threads = 256);
	      cptx_row_load(k, &row, u));
	GIVES("cptx_pipe_expect: the number of bytes is .u64", cptx_pipe_new(k, &pipe, .stages = 2);
	      at = cptx_pipe_producer(k, &pipe); cptx_pipe_expect(k, &pipe, &at, wide));
	GIVES("cptx_pipe_init: the predicate is .u32; it is a predicate", cptx_pipe_new(k, &pipe, .stages = 2);
	      cptx_pipe_init(k, &pipe, u));
	GIVES("cptx_epilogue_run: .row is .f32", make_acc(&a, CPTX_BY_MMA_SYNC); cptx_epilogue_new(k, &e);
	      cptx_epilogue_run(k, &e, &a, .row = f));
	GIVES("CPTX_VISIT_SCALE: .value is .u32; it is .f32 or a constant", cptx_epilogue_new(k, &e);
	      cptx_epilogue_add(k, &e, CPTX_VISIT_SCALE, .value = u));
	GIVES("cptx_acc_row_vector: the value is .u32", make_acc(&a, CPTX_BY_MMA_SYNC); cptx_acc_row_vector(k, &a, u));
}
END_TEST

START_TEST(wrong_constants)
{
	cptx_operand op;
	cptx_tiles s;
	cptx_softmax soft;
	cptx_epilogue e;
	cptx_acc a;

	GIVES("cptx_operand_new: .cols is -7; it is .u32, .s32 or a constant from 0 on",
	      cptx_operand_new(k, &op, .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = TILE(64, 64), .address = p,
	                       .cols = cptx_imm(-7), .threads = 256));
	GIVES("the column is 3; it stands for a multiple of 16 bytes, 8 elements", make_tma(&op);
	      cptx_operand_load(k, &op, 0, 0, 3, .barrier = u));
	GIVES("the row is -1", make_copied(&op); cptx_operand_load(k, &op, 0, -1, 0));
	GIVES(NULL, make_tma(&op); cptx_operand_load(k, &op, 0, -1, -8, .barrier = u));
	GIVES(".clusters is 0; it is .u32, .s32 or a constant from 1 on",
	      cptx_tiles_new(k, &s, .schedule = CPTX_TILES_PERSISTENT, .tiles_m = u, .tiles_n = u, .number = u,
	                     .clusters = cptx_imm(0)));
	GIVES("of 8589934592 tiles or more; there are less than 2^32",
	      cptx_tiles_new(k, &s, .tiles_m = cptx_imm(1LL << 31), .tiles_n = cptx_imm(4)));
	GIVES(".group is -5; it is", cptx_tiles_new(k, &s, .tiles_m = u, .tiles_n = u, .group = cptx_imm(-5)));
	GIVES("cptx_softmax_new: the scale is -1; it is above 0", cptx_softmax_new(k, &soft, 2, -1.0f));
	GIVES("the scale is 0; it is above 0", cptx_softmax_new(k, &soft, 2, 0.0f));
	GIVES("it is above 0", cptx_softmax_new(k, &soft, 2, NAN));
	GIVES(NULL, cptx_softmax_new(k, &soft, 2, 0.5f));
	GIVES("cptx_softmax_step_to: the maxima are .f32 registers, one for each of the thread's",
	      make_acc(&a, CPTX_BY_MMA_SYNC);
	      cptx_softmax_new(k, &soft, a.rows, 0.5f); cptx_softmax_step_to(k, &soft, &a, cptx_regs(k, CPTX_F32, a.rows + 1)));
	GIVES("cptx_softmax_step_to: the maxima are .f32 registers", make_acc(&a, CPTX_BY_MMA_SYNC);
	      cptx_softmax_new(k, &soft, a.rows, 0.5f); cptx_softmax_step_to(k, &soft, &a, cptx_regs(k, CPTX_U32, a.rows)));
	GIVES(NULL, make_acc(&a, CPTX_BY_MMA_SYNC); cptx_softmax_new(k, &soft, a.rows, 0.5f);
	      cptx_softmax_step_to(k, &soft, &a, cptx_softmax_max(k, &soft, &a)));
	GIVES(".cols = 135; with .vec = 2 it is a multiple of that: say .vec = 1",
	      cptx_epilogue_new(k, &e, .rows = u, .cols = cptx_imm(135)));
	GIVES(".pitch = 135; with .vec = 2 it is a multiple of that: say .vec = 1", cptx_epilogue_new(k, &e);
	      cptx_epilogue_add(k, &e, CPTX_VISIT_MATRIX, .address = p, .pitch = cptx_imm(135)));
	GIVES("say .vec = 1 in cptx_epilogue_new", make_acc(&a, CPTX_BY_MMA_SYNC); cptx_epilogue_new(k, &e);
	      cptx_epilogue_run(k, &e, &a); cptx_epilogue_store(k, &e, .address = p, .type = CPTX_BF16, .pitch = cptx_imm(135)));
	GIVES("CPTX_VISIT_AMAX: of .bf16; what it adds to is .f32", cptx_epilogue_new(k, &e);
	      cptx_epilogue_add(k, &e, CPTX_VISIT_AMAX, .address = p, .type = CPTX_BF16));
}
END_TEST

/* What belongs to another of its kind. */
START_TEST(of_another)
{
	const char *const place = "a place in another pipeline, of 2 stages; this one has ";
	cptx_pipe two, four;
	cptx_pipe_at at, other;
	cptx_operand op, next;
	cptx_operand_src src;
	cptx_tiled_mma mma;
	cptx_acc a, units;
	cptx_val rows;

#define PIPES                                                                                                               \
	cptx_pipe_new(k, &two, .stages = 2), cptx_pipe_new(k, &four, .stages = 4), at = cptx_pipe_producer(k, &two),            \
																			   other = cptx_pipe_producer(k, &four)
	GIVES(place, PIPES; cptx_pipe_next(k, &four, &at));
	GIVES(place, PIPES; cptx_pipe_wait_empty(k, &four, &at));
	GIVES(place, PIPES; cptx_pipe_release(k, &four, &at, ((cptx_val){ 0 })));
	GIVES(place, PIPES; cptx_pipe_drain(k, &four, &at));
	GIVES(place, PIPES; cptx_pipe_ahead(k, &four, &at));
	GIVES("a place in another pipeline, of 4 stages", PIPES; cptx_pipe_go(k, &at, &other));
	GIVES(NULL, PIPES; other = cptx_pipe_ahead(k, &two, &at); cptx_pipe_go(k, &at, &other));
	GIVES("a producer's place waits for data, which consumers do: cptx_pipe_consumer", PIPES;
	      cptx_pipe_wait_full(k, &two, &at));
	GIVES("a consumer's place waits for an empty stage, which producers do: cptx_pipe_producer", PIPES;
	      at = cptx_pipe_consumer(k, &two); cptx_pipe_wait_empty(k, &two, &at));
	GIVES("the CTA of rank 16; a cluster has ranks 0 to 15", cptx_pipe_new(k, &two, .stages = 2, .multicast = 2);
	      at = cptx_pipe_consumer_of(k, &two, cptx_imm(16)));
	GIVES("a source of another operand; each one that threads copy has its own: cptx_operand_source", make_copied(&op);
	      make_copied(&next); src = cptx_operand_source(k, &op, 0, 0);
	      cptx_operand_load_from(k, &next, 0, &src, .first = 0));
	GIVES("a source of another operand; each one that TMA loads has its own", make_copied(&op); make_tma(&next);
	      src = cptx_operand_source(k, &op, 0, 0); cptx_operand_advance(k, &next, &src, 0, 64));
	GIVES("was made for another: 32 x 64 of .f32, one of 1 x 1 units; cptx_acc_new of this one makes 32 x 64, one of 4 x 1",
	      make_acc(&a, CPTX_BY_MMA_SYNC);
	      cptx_tiled_mma_new(k, &mma, .a = CPTX_BF16, .b = CPTX_BF16, .m = 32, .n = 64, .units_m = 4, .unit = u,
	                         .a_tile = TILE(128, 64), .b_tile = TILE(64, 64));
	      cptx_acc_new(k, &mma, &units); cptx_mma_tile(k, &mma, &units, u, u); cptx_mma_tile(k, &mma, &a, u, u));
	GIVES("with 4 x 4 units of 32 threads; the kernel's .block has 256",
	      cptx_tiled_mma_new(k, &mma, .a = CPTX_BF16, .b = CPTX_BF16, .m = 32, .n = 64, .units_m = 4, .units_n = 4,
	                         .unit = u, .a_tile = TILE(128, 64), .b_tile = TILE(256, 64)));
	GIVES("a row vector of .u32; one of this accumulator is of .f32: cptx_acc_row_vector", make_acc(&a, CPTX_BY_MMA_SYNC);
	      rows = cptx_regs(k, CPTX_U32, a.rows); cptx_acc_row_reduce(k, &a, CPTX_REDUCE_MAX, rows));
}
END_TEST

/* Options and calls that another kind reads. */
START_TEST(of_another_kind)
{
	cptx_pipe pipe;
	cptx_tiles s;
	cptx_tiles_at t;
	cptx_timeline line;

	GIVES("a pipeline with .threads; that is for CPTX_PIPE_CP_ASYNC_GROUPS: say .by",
	      cptx_pipe_new(k, &pipe, .stages = 2, .threads = 64));
	GIVES("a pipeline with .named", cptx_pipe_new(k, &pipe, .stages = 2, .by = CPTX_PIPE_CP_ASYNC, .named = 1));
	GIVES("a pipeline with .ahead", cptx_pipe_new(k, &pipe, .stages = 2, .ahead = 1));
	GIVES("a pipeline with .sleeps; that is for CPTX_PIPE_CP_ASYNC", cptx_pipe_new(k, &pipe, .stages = 2, .sleeps = true));
	GIVES("cptx_tiles_first is of CPTX_TILES_PERSISTENT and STREAM_K; a loop over other tiles is CPTX_TILES",
	      cptx_tiles_new(k, &s, .tiles_m = u, .tiles_n = u);
	      cptx_tiles_first(k, &s, &t));
	GIVES("cptx_timeline_stamp_when: the predicate is .u32",
	      cptx_timeline_begin(k, &line, .buffer = p, .warps = 8, .events = 4);
	      cptx_timeline_stamp_when(k, &line, 0, u));
	GIVES("cptx_timeline_begin: .buffer is .u32; it is .u64",
	      cptx_timeline_begin(k, &line, .buffer = u, .warps = 8, .events = 4));
}
END_TEST

/* What only a launch shows: the emulator tells it, with the line of the call of the kit. */
static void launch_case(int i, cptx_kernel *x)
{
	const cptx_val tid = cptx_tid_x(x), first = cptx_setp(x, tid, 0, .cmp = CPTX_EQ);
	cptx_tiled_mma mma;
	cptx_pipe pipe;
	cptx_acc a;

	if (i == 0) { /* no cptx_pipe_init */
		cptx_pipe_new(x, &pipe, .stages = 2);
		cptx_pipe_at at = cptx_pipe_consumer(x, &pipe);
		cptx_pipe_wait_full(x, &pipe, &at);
	} else if (i == 1) { /* a rank that is not there */
		cptx_pipe_new(x, &pipe, .stages = 2, .multicast = 2);
		cptx_pipe_init(x, &pipe, first);
		cptx_pipe_at at = cptx_pipe_consumer_of(x, &pipe, cptx_imm(7));
		cptx_pipe_release(x, &pipe, &at, first);
	} else if (i == 2) { /* nobody produces */
		cptx_pipe_new(x, &pipe, .stages = 2);
		cptx_pipe_init(x, &pipe, first);
		cptx_pipe_at at = cptx_pipe_consumer(x, &pipe);
		cptx_pipe_wait_full(x, &pipe, &at);
	} else { /* a thread's number in place of its unit's */
		cptx_val s = cptx_mov(x, cptx_shared_dyn(x, 16384, 1024, "tiles"), .type = CPTX_U32);
		cptx_tiled_mma_new(x, &mma, .a = CPTX_BF16, .b = CPTX_BF16, .m = 32, .n = 64, .units_m = 2, .unit = tid,
		                   .a_tile = TILE(64, 64), .b_tile = TILE(64, 64));
		cptx_acc_new(x, &mma, &a);
		cptx_mma_tile(x, &mma, &a, s, cptx_offset(s, 8192), .fresh = true);
	}
}

START_TEST(launches)
{
	static const char *const says[] = { "there is no mbarrier; mbarrier.init must come first",
		                                "(CTA 7 of the cluster), but the cluster has 2 CTAs",
		                                "deadlock: no thread of the cluster can go on",
		                                "behind the start of dynamic shared" };
	const uint32_t ctas = _i == 1 ? 2 : 1;
	cptx_error e = { .code = CPTX_OK };
	cptx_module *x = cptx_module_new(NULL);
	cptx_device *dev = cptx_device_open("emu:sm_90a", &e);

	launch_case(_i, cptx_kernel_begin(x, "k", .block = { 128 }, .cluster = { ctas, 1, 1 }));
	cptx_program *program = cptx_device_load(dev, x, NULL, &e);
	SURE(!e.code, "%s", e.text);
	cptx_launch_once(program, "k", CPTX_LAUNCH(.grid = { ctas }), NULL, &e);
	cptx_device_synchronize(dev, &e);
	SURE(strstr(e.text, says[_i]) && strstr(e.text, "test_values.c:"), "%s\nlacks: %s", e.text, says[_i]);
	cptx_program_destroy(program);
	cptx_device_close(dev);
	cptx_module_destroy(x);
}
END_TEST

START_TEST(tensor_memory)
{
	const char *const words = "an accumulator in tensor memory; cptx_acc_load brings a part of it";
	cptx_softmax soft;
	cptx_acc a;

	GIVES(words, make_acc(&a, CPTX_BY_TCGEN05); cptx_softmax_new(k, &soft, 1, 1.0f); cptx_softmax_step(k, &soft, &a));
	GIVES(words, make_acc(&a, CPTX_BY_TCGEN05); cptx_softmax_mask(k, &a, .causal = true));
}
END_TEST

/* .threads against the 256 of the kernel. */
START_TEST(threads)
{
	cptx_row row;
	cptx_reduce r;
	cptx_operand op;
	cptx_roles roles;

	GIVES("cptx_row_new: .threads = 128; the kernel's .block has 256",
	      cptx_row_new(k, &row, .type = CPTX_F32, .n = 512, .threads = 128));
	GIVES(NULL, cptx_row_new(k, &row, .type = CPTX_F32, .n = 512, .threads = 128, .thread = u));
	GIVES("cptx_reduce_new: .threads = 128; the kernel's .block has 256: where some of its threads take part, say which",
	      cptx_reduce_new(k, &r, .threads = 128));
	GIVES(NULL, cptx_reduce_new(k, &r, .threads = 128, .thread = u, .barrier = 1));
	GIVES("cptx_reduce_new: .threads = 512; the kernel's .block has 256",
	      cptx_reduce_new(k, &r, .threads = 512, .thread = u, .barrier = 1));
	GIVES("cptx_operand_new: .threads = 64; the kernel's .block has 256",
	      cptx_operand_new(k, &op, .by = CPTX_OPERAND_CP_ASYNC, .type = CPTX_BF16, .tile = TILE(64, 64), .address = p,
	                       .pitch = cptx_imm(128), .threads = 64));
	GIVES("cptx_roles_begin: .threads = 384; the kernel's .block has 256", cptx_roles_begin(k, &roles, .threads = 384));
	GIVES("would ignore setmaxnreg.  Give cptx_kernel_begin both .block and .min_ctas",
	      cptx_roles_begin(k, &roles, .threads = 256);
	      CPTX_ROLE(k, &roles, .warps = 4, .regs = 40) cptx_tid_x(k));
	GIVES(NULL, cptx_row_new(k, &row, .type = CPTX_F32, .n = 512, .threads = 256);
	      ck_assert_uint_eq(cptx_kernel_block(k, 0), 256); ck_assert_uint_eq(cptx_kernel_block(k, 2), 1);
	      ck_assert_uint_eq(cptx_kernel_block(k, 3), 0); ck_assert(!cptx_kernel_fixes_regs(k)));
}
END_TEST

/* The scale is loaded as what it is. */
START_TEST(scale_of_bf16)
{
	cptx_epilogue e;
	cptx_acc a;
	cptx_error err = { .code = CPTX_OK };

	begin();
	make_acc(&a, CPTX_BY_MMA_SYNC);
	cptx_epilogue_new(k, &e);
	cptx_epilogue_add(k, &e, CPTX_VISIT_SCALE, .address = p, .type = CPTX_BF16);
	cptx_epilogue_run(k, &e, &a);
	cptx_ptx *ptx = cptx_emit(m, "sm_80", NULL, &err);
	SURE(ptx, "%s", err.text);
	SURE(strstr(cptx_ptx_text(ptx), "ld.global.b16"), "%s", cptx_ptx_text(ptx));
	SURE(!strstr(cptx_ptx_text(ptx), "ld.global.f32"), "%s", cptx_ptx_text(ptx));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "values");

	tcase_add_test(c, bare_numbers);
	tcase_add_test(c, wrong_types);
	tcase_add_test(c, wrong_constants);
	tcase_add_test(c, of_another);
	tcase_add_test(c, of_another_kind);
	tcase_add_loop_test(c, launches, 0, 4);
	tcase_add_test(c, tensor_memory);
	tcase_add_test(c, threads);
	tcase_add_test(c, scale_of_bf16);
	return test_main("kit values", s);
}
