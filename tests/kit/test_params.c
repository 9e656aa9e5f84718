/* SPDX-License-Identifier: MIT */
/* Parameters: tables that kernels declare and launches fill. */
#include "../test.h"
#include "../verify/assemble.h"
#include "cli/ptxas.h"

#include <cptx/cptx.h>
#include <cptx/emu.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>

static cptx_error err;

#define RIGHT(what)                                                                                                         \
	do {                                                                                                                    \
		bool right_ = (what);                                                                                               \
		SURE(right_ &&err.code == CPTX_OK, "%s", err.text);                                                                 \
	} while (0)

enum { N = 64 };

/* y[i] = by * x[i] + add[i] + shift, x by a tensor map */
struct scale_args {
	float by;
	cptx_tensor_map_opt x;
	uint64_t y;
	uint32_t n;
};
struct more_args {
	double shift;
	float add[4];
	uint8_t on;
};
static const cptx_param_row rows[] = {
	CPTX_PARAM_ROW(struct scale_args, CPTX_PTR, y),
	CPTX_PARAM_MAP(struct scale_args, x),
	CPTX_PARAM_ROW(struct scale_args, CPTX_U32, n),
	CPTX_PARAM_ROW(struct scale_args, CPTX_F32, by),
};
static const cptx_param_row more[] = {
	CPTX_PARAM_ROW(struct more_args, CPTX_U8, on),
	CPTX_PARAM_BYTES(struct more_args, add, 16),
	CPTX_PARAM_AS(struct more_args, CPTX_F64, shift, "shift"),
};
enum { ROWS = CPTX_PARAM_COUNT(rows), MORE = CPTX_PARAM_COUNT(more) };

static void build(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "scale", .block = { N });
	cptx_params p = { 0 };
	cptx_pipe pipe;

	cptx_params_declare(k, &p, rows, ROWS);
	cptx_params_declare(k, &p, more, MORE);
	cptx_val tid = cptx_tid_x(k), first = cptx_setp(k, tid, 0, .cmp = CPTX_EQ);
	cptx_val smem = cptx_var(k, CPTX_U32, cptx_shared_named(k, CPTX_F32, N, 128, "x_tile"));
	cptx_params_prefetch(k, &p, first);
	cptx_pipe_new(k, &pipe, .stages = 1);
	cptx_pipe_init(k, &pipe, first);
	CPTX_IF(k, first) {
		cptx_pipe_at at = cptx_pipe_producer(k, &pipe);
		cptx_pipe_expect(k, &pipe, &at, 4 * N);
		cptx_cp_async_bulk_tensor_load(k, smem, cptx_params_get(k, &p, "x"), cptx_vec(k, cptx_imm(0)), cptx_pipe_full(&at),
		                               .dim = CPTX_DIM_1D, .dst = CPTX_SHARED_CLUSTER);
	}
	cptx_pipe_at at = cptx_pipe_consumer(k, &pipe);
	cptx_pipe_wait_full(k, &pipe, &at);
	cptx_val x = cptx_ld(k, cptx_mad(k, tid, 4, smem, .mode = CPTX_LO), .space = CPTX_SHARED, .type = CPTX_F32);
	cptx_val sum = cptx_mul(k, x, cptx_params_get(k, &p, "by"));
	cptx_val shift = cptx_cvt(k, cptx_params_get(k, &p, "shift"), .dtype = CPTX_F32, .rnd = CPTX_RN);
	cptx_val third = cptx_ld(k, cptx_offset(cptx_params_get(k, &p, "add"), 8), .space = CPTX_PARAM, .type = CPTX_F32);
	cptx_val on = cptx_setp(k, cptx_params_get(k, &p, "on"), 0, .cmp = CPTX_NE);
	cptx_add(k, sum, cptx_add(k, shift, third), .into = sum, .when = on);
	cptx_st(k, cptx_add(k, cptx_params_get(k, &p, "y"), cptx_mul_wide(k, tid, 4)), sum, .space = CPTX_GLOBAL,
	        .when = cptx_setp(k, tid, cptx_params_get(k, &p, "n"), .cmp = CPTX_LT));
}

typedef struct bench {
	cptx_module *m;
	cptx_device *dev;
	cptx_program *program;
	struct scale_args args;
	struct more_args more;
} bench;

static bench open_bench(const char *target)
{
	bench b = { .m = cptx_module_new(NULL) };
	float x[N];

	err = (cptx_error){ .code = CPTX_OK };
	build(b.m);
	SURE(!cptx_module_error(b.m), "%s", cptx_module_error(b.m) ? cptx_module_error(b.m)->text : "");
	b.dev = cptx_emu_open(target, NULL, &err);
	b.program = cptx_device_load(b.dev, b.m, NULL, &err);
	uint64_t from = cptx_mem_alloc(b.dev, sizeof x, &err);
	for (uint32_t i = 0; i < N; i++)
		x[i] = (float)i - 7;
	RIGHT(b.program && cptx_mem_write(b.dev, from, x, sizeof x, &err));
	b.args = (struct scale_args){ .by = 2.5f, .y = cptx_mem_alloc(b.dev, sizeof x, &err), .n = N - 3 };
	b.args.x = (cptx_tensor_map_opt){ .type = CPTX_TENSOR_F32, .rank = 1, .address = from, .dim = { N }, .box = { N } };
	b.more = (struct more_args){ .shift = -0.5, .add = { 1, 2, 4, 8 }, .on = 1 };
	return b;
}

static void close_bench(bench *b)
{
	cptx_program_destroy(b->program);
	cptx_mem_free(b->dev, b->args.y);
	cptx_mem_free(b->dev, b->args.x.address);
	cptx_device_close(b->dev);
	cptx_module_destroy(b->m);
}

START_TEST(launches)
{
	static const char *const targets[] = { "sm_90a", "sm_100a", "sm_120a" };

	for (uint32_t t = 0; t < 6; t++) {
		bench b = open_bench(targets[t % 3]);
		float y[N];
		b.more.on = t < 3;
		const cptx_params_part parts[] = { { rows, ROWS, &b.args }, { more, MORE, &b.more } };
		RIGHT(cptx_mem_fill8(b.dev, b.args.y, 0, sizeof y, &err));
		cptx_launch *l = cptx_params_launch(b.program, b.dev, "scale", parts, 2, &(cptx_launch_opt){ .grid = { 1 } }, &err);
		RIGHT(l != NULL);
		b.args.n = 0; /* the launch has taken it */
		RIGHT(cptx_launch_run(l, NULL, &err) && cptx_mem_read(b.dev, y, b.args.y, sizeof y, &err));
		for (uint32_t i = 0; i < N; i++) {
			float right = i < N - 3 ? ((float)i - 7) * 2.5f + (t < 3 ? 3.5f : 0) : 0;
			SURE(y[i] == right, "y[%u] is %g, not %g", i, (double)y[i], (double)right);
		}
		cptx_launch_destroy(l);
		close_bench(&b);
	}
}
END_TEST

static void refused(bench *b, const cptx_params_part *parts, size_t n, const cptx_launch_opt *o, const char *words)
{
	err = (cptx_error){ .code = CPTX_OK };
	ck_assert_ptr_null(cptx_params_launch(b->program, b->dev, "scale", parts, n, o, &err));
	SURE(strstr(err.text, words) != NULL, "%s\nlacks: %s", err.text, words);
	ck_assert_ptr_nonnull(strstr(err.text, "test_params.c:"));
}

START_TEST(refusals)
{
	bench b = open_bench("sm_90a");
	const cptx_launch_opt o = { .grid = { 1 } };
	struct wide {
		uint64_t y, n;
		float by, x;
	} wide = { .y = 0 };
	const cptx_param_row wrong_size[] = { rows[0], rows[1], CPTX_PARAM_ROW(struct wide, CPTX_U32, n), rows[3] };
	const cptx_param_row wrong_map[] = { CPTX_PARAM_MAP(struct wide, x) };
	const cptx_params_part parts[] = { { rows, ROWS, &b.args }, { more, MORE, &b.more } };
	const cptx_params_part turned[] = { parts[1], parts[0] };
	const cptx_params_part sizes[] = { { wrong_size, 4, &b.args } }, maps[] = { { wrong_map, 1, &wide } };
	const cptx_params_part no_struct[] = { { rows, ROWS, NULL } };

	refused(&b, sizes, 1, &o, "parameter n is .u32, of 4 bytes; member n of struct wide has 8");
	refused(&b, maps, 1, &o, "member x of struct wide has 4 bytes and is no cptx_tensor_map_opt");
	refused(&b, turned, 2, &o, "is y, not on of struct more_args: give the parts in the order of cptx_params_declare");
	refused(&b, parts, 1, &o, "it takes 7 arguments");
	refused(&b, no_struct, 1, &o, "the struct is NULL");
	refused(&b, parts, 2, &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(1u) }, ".args (1) beside the parts");
	b.args.x.box[0] = 3;
	refused(&b, parts, 2, &o, "parameter x of struct scale_args: ");
	err = (cptx_error){ .code = CPTX_OK };
	close_bench(&b);
}
END_TEST

static void wrong(const cptx_param_row *table, uint32_t n, uint32_t times, const char *name, const char *words)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_params p = { 0 };

	for (uint32_t i = 0; i < times; i++)
		cptx_params_declare(k, &p, table, n);
	if (name)
		cptx_params_get(k, &p, name);
	SURE(cptx_module_error(m) && strstr(cptx_module_error(m)->text, words), "%s\nlacks: %s",
	     cptx_module_error(m) ? cptx_module_error(m)->text : "no error", words);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "test_params.c:"));
	cptx_module_destroy(m);
}

START_TEST(errors)
{
	const cptx_param_row short_row[] = { CPTX_PARAM_ROW(struct scale_args, CPTX_U64, n) };
	const cptx_param_row no_type[] = { CPTX_PARAM_ROW(struct scale_args, CPTX_PRED, n) };

	wrong(rows, ROWS, 1, "m", "no parameter 'm'; there are y, x, n, by");
	wrong(rows, 0, 1, "m", "no parameter 'm'; there is none");
	wrong(rows, ROWS, 2, NULL, "parameter y of struct scale_args: struct scale_args has one of that name already");
	wrong(short_row, 1, 1, NULL, "parameter n is .u64, of 8 bytes; member n of struct scale_args has 4");
	wrong(no_type, 1, 1, NULL, "parameter n has type .pred; numbers have 8 to 64 bits");
}
END_TEST

START_TEST(ptxas_accepts)
{
	static const char *const targets[] = { "sm_90a", "sm_100a", "sm_120a" };
	char path[4096];

	if (!ptxas_find(path, sizeof path)) {
		skip("ptxas, to judge the kernel");
		return;
	}
	for (uint32_t i = 0; i < 3; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_error e = { .code = CPTX_OK };
		build(m);
		cptx_ptx *ptx = cptx_emit(m, targets[i], NULL, &e);
		SURE(ptx != NULL, "%s", e.text);
		assembly job = { .target = targets[i], .ptx = cptx_ptx_text(ptx) };
		assemble(&job, 1);
		SURE(!job.status, "%s: %s", targets[i], job.said);
		assemble_free(&job, 1);
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "params");

	tcase_add_test(c, launches);
	tcase_add_test(c, refusals);
	tcase_add_test(c, errors);
	tcase_add_test(c, ptxas_accepts);
	return test_main("kit params", s);
}
