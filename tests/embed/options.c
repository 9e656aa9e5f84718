/* SPDX-License-Identifier: MIT */
/*
 * A program whose headers are older or newer than the library: options.sh compiles it against headers where structs of
 * options and of results have a field more, .later (MORE), or lack their last one (LESS).  What lies behind a struct is
 * 0xff: nobody may read or write it.
 */
#include <cptx/attention_backward.h>
#include <cptx/attention_decode.h>
#include <cptx/cptx.h>
#include <cptx/cubin.h>
#include <cptx/device.h>
#include <cptx/dlpack.h>
#include <cptx/emu.h>
#include <cptx/gemm.h>
#include <cptx/inspect.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>
#include <cptx/reduce.h>
#include <cptx/roles.h>
#include <cptx/rows.h>
#include <cptx/scheduler.h>
#include <cptx/vector.h>

#include <stdio.h>
#include <string.h>

static int failed;

static void check(bool ok, const char *what, const cptx_error *err)
{
	if (!ok) {
		printf("FAIL: %s: %s\n", what, err->text);
		failed++;
	}
}

/* The options among bytes that are not theirs. */
#define AMONG(type, name, opt)                                                                                              \
	union {                                                                                                                 \
		type o;                                                                                                             \
		unsigned char bytes[sizeof(type) + 64];                                                                             \
	} name##_at;                                                                                                            \
	memset(&name##_at, 0xff, sizeof name##_at);                                                                             \
	memcpy(&name##_at, &(opt), offsetof(type, z_));                                                                         \
	const type *name = &name##_at.o

/* A result among bytes that are not its own: they stay as they are, and what the library does not know is 0. */
#define RESULT(type, call)                                                                                                  \
	do {                                                                                                                    \
		struct {                                                                                                            \
			type r;                                                                                                         \
			unsigned char behind[64];                                                                                       \
		} x;                                                                                                                \
		type *r = &x.r;                                                                                                     \
		memset(&x, 0xff, sizeof x);                                                                                         \
		check((call), #type, &err);                                                                                         \
		for (size_t i_ = 0; i_ < sizeof x.behind; i_++)                                                                     \
			check(x.behind[i_] == 0xff, #type " is written behind its end", &err);                                          \
		KNOWN(#type, r);                                                                                                    \
	} while (0)
#ifdef MORE
#define KNOWN(name, r) check((r)->later == 0, "what the library does not know of a " name, &err)
#else
#define KNOWN(name, r) (void)(r)
#endif

/* Structs that calls fill in. */
static void look(cptx_device *dev, cptx_module *m, const cptx_program *p)
{
	cptx_error err = { .code = CPTX_OK };
	const cptx_tile tile = { .rows = 64, .cols = 64, .elem = { .bits = 16 }, .swizzle = CPTX_SWIZZLE_128B };
	const cptx_operand_opt operand = { .type = CPTX_BF16, .tile = tile };
	const cptx_operand_matrix matrix = { .address = 4096, .rows = 64, .cols = 64 };
	const cptx_kernel *k = cptx_module_body(m, NULL);

	RESULT(cptx_kernel_info, cptx_module_kernel(m, "fill", r) && r->nparams == 1 && r->bounds.block[0] == 32);
	RESULT(cptx_op_info, cptx_op_at(CPTX_OP_MOV, r) && !strcmp(r->name, "mov"));
	RESULT(cptx_form_info, cptx_form_at(CPTX_OP_MOV, 0, r) && strstr(r->text, "mov"));
	RESULT(cptx_item_info, cptx_item_look(k, cptx_item_first(k), r));
	RESULT(cptx_resources, cptx_program_resources(p, "fill", 32, 0, r, &err) && r->max_threads);
	RESULT(cptx_emu_counters, cptx_emu_get_counters(dev, r) && r->launches == 1);
	RESULT(cptx_emu_profile, cptx_emu_get_profile(dev, 0, r) && r->executed);
	RESULT(cptx_occupancy, cptx_occupancy_of(cptx_target_find("sm_90a"), 32, 0, 128, r) && r->ctas == 16);
	RESULT(cptx_desc_field, cptx_smem_desc_field(CPTX_DESC_WGMMA, 0, r) && r->name);
	RESULT(cptx_desc_field, cptx_insn_desc_field(CPTX_TCGEN05_F16, 0, r) && r->name);
	RESULT(cptx_tensor_map_opt, cptx_operand_tensor_map(&operand, &matrix, r, &err) && r->rank == 2 &&
	                                r->size == CPTX_OPT_SIZE(cptx_tensor_map_opt) && cptx_tensor_map_check(r, &err));
	RESULT(cptx_tensor_map_opt, cptx_tile_tensor_map(&tile, CPTX_TENSOR_BF16, 4096, 64, 64, 0, r, &err) && r->dim[1] == 64);
	RESULT(cptx_cache_stats, (*r = cptx_cache_count(NULL), r->hits == 0));
}

/* The sums of rows, by nouns of the kit, in whose structs the options stand in front of other fields. */
static void sums(cptx_module *m)
{
	static const char *const names[] = { "x", "sums" };
	cptx_kernel *k = cptx_kernel_begin(m, "sums", .block = { 64 }, .min_ctas = 1);
	const cptx_param_row rows[] = { { names[0], "args", CPTX_PARAM_SCALAR, CPTX_PTR, 0, 8, 0 },
		                            { names[1], "args", CPTX_PARAM_SCALAR, CPTX_PTR, 8, 8, 0 } };
	const cptx_error none = { .code = CPTX_OK };
	cptx_params p = { .n = 0 };
	cptx_roles roles;
	cptx_tiles tiles;
	cptx_tiles_at at;
	cptx_row row;
	cptx_row_at each;
	cptx_reduce reduce;
	cptx_pipe pipe;

	cptx_params_declare(k, &p, rows, 2);
	cptx_roles_begin(k, &roles, .threads = 64);
	cptx_reduce_new(k, &reduce, .threads = 64);
	cptx_row_new(k, &row, .type = CPTX_F32, .n = 512, .threads = 64);
	cptx_pipe_new(k, &pipe, .stages = 2);
	cptx_tiles_new(k, &tiles, .schedule = CPTX_TILES_PERSISTENT, .tiles_m = cptx_imm(3), .tiles_n = cptx_imm(1));
	check(row.vectors == 2 && row.each == 4 && pipe.barriers.kind == CPTX_VAL_SYM && reduce.slot == 16 &&
	          tiles.all.kind == CPTX_VAL_INT && tiles.all.i == 3 && roles.threads == 64,
	      "fields behind options", &none);
	CPTX_TILES(k, &tiles, &at)
	{
		cptx_val sum = cptx_var(k, CPTX_F32, 0);
		cptx_row_load(k, &row, cptx_mad_wide(k, at.m, 512 * 4, cptx_params_get(k, &p, "x")), .nc = true);
		CPTX_ROW_EACH(k, &row, &each)
		cptx_add(k, sum, each.v, .into = sum);
		cptx_reduce_cta(k, &reduce, sum, CPTX_REDUCE_SUM);
		CPTX_IF(k, cptx_setp(k, roles.tid, 0, .cmp = CPTX_EQ))
			cptx_st(k, cptx_mad_wide(k, at.m, 4, cptx_params_get(k, &p, "sums")), sum, .space = CPTX_GLOBAL);
	}
}

static void run_kit(cptx_device *dev)
{
	static float x[3 * 512], got[3];
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);

	for (int i = 0; i < 3 * 512; i++)
		x[i] = (float)(i / 512 + 1);
	sums(m);
	check(!cptx_module_error(m), "the kernel of the kit", cptx_module_error(m));
	uint64_t from = cptx_mem_alloc(dev, sizeof x, &err), to = cptx_mem_alloc(dev, sizeof got, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	check(cptx_mem_write(dev, from, x, sizeof x, &err) &&
	          cptx_launch_once(p, "sums", CPTX_LAUNCH(.grid = { 2 }, CPTX_ARGS(from, to)), NULL, &err) &&
	          cptx_mem_read(dev, got, to, sizeof got, &err),
	      "running it", &err);
	check(got[0] == 512 && got[1] == 1024 && got[2] == 1536, "the sums of rows", &err);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
}

static void build(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "fill", .block = { 32 }, .min_ctas = 2);
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), i = cptx_tid_x(k);
	cptx_val at = cptx_mad_wide(k, i, 4, p);

	cptx_st(k, at, i, .space = CPTX_GLOBAL, .type = CPTX_U32);
}

static void run_kernel(cptx_device *dev)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);
	uint32_t v[32] = { 0 };
	uint64_t at = cptx_mem_alloc(dev, sizeof v, &err);
	bool right = true;

	build(m);
	cptx_load_opt load = { .size = CPTX_OPT_SIZE(cptx_load_opt), .target = "sm_90a" };
	AMONG(cptx_load_opt, l, load);
	cptx_program *p = cptx_device_load(dev, m, l, &err);
	check(p, "load", &err);
	check(cptx_launch_once(p, "fill", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(at)), NULL, &err), "launch", &err);
	check(cptx_device_synchronize(dev, &err) && cptx_mem_read(dev, v, at, sizeof v, &err), "read", &err);
	for (uint32_t i = 0; i < 32; i++)
		right &= v[i] == i;
	check(right, "the result of the kernel", &err);
	look(dev, m, p);
#ifdef MORE
	cptx_error refused = { .code = CPTX_OK };
	check(!cptx_launch_once(p, "fill", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(at), .later = 1), NULL, &refused) &&
	          refused.code == CPTX_E_ARG && strstr(refused.text, "cptx_launch_opt: the program's header has an option"),
	      "a launch with what the library does not know", &refused);
	cptx_module *bad = cptx_module_new(NULL);
	cptx_kernel_begin(bad, "k", .block = { 32 }, .later = 1);
	check(cptx_module_error(bad) && cptx_module_error(bad)->line, "a kernel with what the library does not know", &err);
	cptx_module_destroy(bad);
#endif
	cptx_program_destroy(p);
	cptx_module_destroy(m);
}

/* What the calls on shapes fill in, and a list of choices that is sorted. */
static void look_at_shapes(cptx_device *dev, cptx_gemm_runner *runner, const cptx_gemm_opt *opt, const cptx_gemm_problem *p)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_gemm_choice choice[2];

	RESULT(cptx_gemm_plan, cptx_gemm_check(opt, NULL, r, &err) && r->threads == 256);
	RESULT(cptx_gemm_plan, cptx_gemm_check_problem(opt, p, 4, r, &err) && r->grid == 1);
	RESULT(cptx_gemm_choice, cptx_gemm_auto(opt, p, 4, r, 1, &err) == 1 && r->us > 0 && r->opt.bm);
	RESULT(cptx_gemm_runner_stats, (*r = cptx_gemm_runner_count(runner), r->misses == 1 && r->programs == 1));
	check(cptx_gemm_auto(opt, p, 4, choice, 2, &err) == 2 && choice[0].us <= choice[1].us, "two choices", &err);
	KNOWN("choice's options", &choice[1].opt);
	check(cptx_gemm_tune(dev, p, choice, 2, &err) && choice[0].measured_us <= choice[1].measured_us && choice[0].opt.bm &&
	          choice[1].opt.bm,
	      "cptx_gemm_tune", &err);
}

/* A list of choices in which each one's options stand where the caller's header has them. */
#define CHOICES(type, call)                                                                                                 \
	do {                                                                                                                    \
		type c[2];                                                                                                          \
		memset(c, 0xff, sizeof c);                                                                                          \
		check((call) == 2 && c[0].us > 0 && c[0].us <= c[1].us && c[1].opt.size == CPTX_OPT_SIZE_OF(c[1].opt), #type,       \
		      &err);                                                                                                        \
		KNOWN(#type, &c[0]);                                                                                                \
		KNOWN(#type, &c[1]);                                                                                                \
		KNOWN("the options of " #type, &c[1].opt);                                                                          \
	} while (0)
#define CPTX_OPT_SIZE_OF(opt) (uint32_t)((const char *)&(opt).z_ - (const char *)&(opt))

static void look_at_attention(void)
{
	const cptx_attention_opt o = {
		.size = CPTX_OPT_SIZE(cptx_attention_opt), .mma = CPTX_ATTENTION_WGMMA, .in = CPTX_BF16, .dim = 128
	};
	const cptx_attention_problem p = {
		.size = CPTX_OPT_SIZE(cptx_attention_problem), .batch = 1, .heads = 2, .kv_heads = 2, .queries = 512, .keys = 512
	};
	const cptx_attention_decode_opt d = { .size = CPTX_OPT_SIZE(cptx_attention_decode_opt), .in = CPTX_BF16, .dim = 128 };
	const cptx_attention_decode_problem q = { .size = CPTX_OPT_SIZE(cptx_attention_decode_problem),
		                                      .batch = 1,
		                                      .heads = 2,
		                                      .kv_heads = 2,
		                                      .queries = 1,
		                                      .keys = 4096,
		                                      .total_keys = 4096 };
	const cptx_attention_backward_opt b = {
		.size = CPTX_OPT_SIZE(cptx_attention_backward_opt), .mma = CPTX_ATTENTION_SYNC, .in = CPTX_BF16, .dim = 64
	};
	const cptx_attention_backward_problem g = {
		.size = CPTX_OPT_SIZE(cptx_attention_backward_problem), .batch = 1, .heads = 2, .queries = 64, .keys = 64
	};
	cptx_error err = { .code = CPTX_OK };

	RESULT(cptx_attention_plan, cptx_attention_check(&o, NULL, r, &err) && r->threads);
	RESULT(cptx_attention_plan, cptx_attention_check_problem(&o, &p, 4, r, &err) && r->flop > 0);
	RESULT(cptx_attention_choice, cptx_attention_auto(&o, &p, 4, r, 1, &err) == 1 && r->us > 0 && r->opt.bq);
	CHOICES(cptx_attention_choice, cptx_attention_auto(&o, &p, 4, c, 2, &err));
	RESULT(cptx_attention_decode_plan, cptx_attention_decode_check(&d, NULL, r, &err) && r->threads);
	RESULT(cptx_attention_decode_plan, cptx_attention_decode_check_problem(&d, &q, NULL, 4, r, &err) && r->bytes);
	RESULT(cptx_attention_decode_choice, cptx_attention_decode_auto(&d, &q, NULL, 4, r, 1, &err) == 1 && r->opt.rows);
	CHOICES(cptx_attention_decode_choice, cptx_attention_decode_auto(&d, &q, NULL, 4, c, 2, &err));
	RESULT(cptx_attention_backward_plan, cptx_attention_backward_check(&b, NULL, r, &err) && r->threads);
	RESULT(cptx_attention_backward_plan, cptx_attention_backward_check_problem(&b, &g, r, &err) && r->flop > 0);
}

static void look_at_rows(void)
{
	const cptx_rows_opt o = { .size = CPTX_OPT_SIZE(cptx_rows_opt), .kernel = CPTX_ROWS_SOFTMAX, .n = 4096, .in = CPTX_F32 };
	cptx_error err = { .code = CPTX_OK };

	RESULT(cptx_rows_plan, cptx_rows_check(&o, NULL, 64, 4, r, &err) && r->threads && r->bytes);
	RESULT(cptx_rows_choice, cptx_rows_auto(&o, NULL, 64, 4, r, 1, &err) == 1 && r->us > 0 && r->opt.threads);
	CHOICES(cptx_rows_choice, cptx_rows_auto(&o, NULL, 64, 4, c, 2, &err));
}

/* One problem, and a list, whose next one stands where the caller's struct ends. */
static void run_gemm(cptx_device *dev)
{
	enum { SIDE = 64, ELEMENTS = SIDE * SIDE };
	static uint16_t ones[ELEMENTS];
	static float d[2][ELEMENTS];
	cptx_error err = { .code = CPTX_OK };
	cptx_gemm_opt opt = cptx_gemm_default(CPTX_GEMM_WGMMA, NULL);
	cptx_gemm_problem p[2] = { { .size = CPTX_OPT_SIZE(cptx_gemm_problem), .m = SIDE, .n = SIDE, .k = SIDE } };
	bool right = true;

	check(opt.size == CPTX_OPT_SIZE(cptx_gemm_opt) && opt.bm == 128 && opt.bn == 256, "cptx_gemm_default", &err);
	opt.bm = 64, opt.bn = 64, opt.stages = 2, opt.grouped = true;
	for (int i = 0; i < ELEMENTS; i++)
		ones[i] = 0x3f80;
	p[0].a = p[0].b = cptx_mem_alloc(dev, sizeof ones, &err);
	cptx_mem_write(dev, p[0].a, ones, sizeof ones, &err);
	p[0].d = cptx_mem_alloc(dev, sizeof d[0], &err);
	p[1] = p[0];
	p[1].d = cptx_mem_alloc(dev, sizeof d[0], &err);
	uint64_t table = cptx_mem_alloc(dev, 2 * CPTX_GEMM_GROUP_BYTES + 128, &err);
	table = (table + 127) / 128 * 128;
	cptx_module *m = cptx_module_new(NULL);
	AMONG(cptx_gemm_opt, o, opt);
	check(cptx_gemm_build(m, o, &err), "build", &err);
	cptx_program *program = cptx_device_load(dev, m, NULL, &err);
	cptx_launch *l = cptx_gemm_launch_grouped(program, dev, o, p, 2, table, &err);
	check(l && cptx_launch_run(l, NULL, &err) && cptx_device_synchronize(dev, &err), "a list of problems", &err);
	for (int i = 0; i < 2; i++) {
		cptx_mem_read(dev, d[i], p[i].d, sizeof d[i], &err);
		for (int j = 0; j < ELEMENTS; j++)
			right &= d[i][j] == SIDE;
	}
	check(right, "the result of the list", &err);
	cptx_launch_destroy(l);
	opt.grouped = false;
	cptx_gemm_runner *r = cptx_gemm_runner_new(dev, NULL, &err);
	check(cptx_gemm_run(r, &opt, &p[1], NULL, &err), "cptx_gemm_run", &err);
	look_at_shapes(dev, r, &opt, &p[1]);
#ifdef MORE
	opt.later = 1;
	check(!cptx_gemm_check(&opt, NULL, NULL, &err) && strstr(err.text, "does not know"), "what the library does not know",
	      &err);
	opt.size = 0; /* as version 0.1 */
	err = (cptx_error){ .code = CPTX_OK };
	check(cptx_gemm_check(&opt, NULL, NULL, &err), "options as of version 0.1", &err);
#endif
	opt.size = 3;
	err = (cptx_error){ .code = CPTX_OK };
	check(!cptx_gemm_check(&opt, NULL, NULL, &err) && strstr(err.text, ".size = 3"), "a size that cannot be", &err);
	cptx_gemm_runner_destroy(r);
	cptx_program_destroy(program);
	cptx_module_destroy(m);
}

int main(void)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_device_open("emu:sm_90a", &err);

	check(dev, "open", &err);
	if (!dev)
		return 1;
	run_kernel(dev);
	run_kit(dev);
	run_gemm(dev);
	look_at_attention();
	look_at_rows();
	cptx_device_close(dev);
	return failed != 0;
}
