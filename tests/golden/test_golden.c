/* SPDX-License-Identifier: MIT */
/*
 * The PTX that is kept in tests/golden/NAME.ptx, byte by byte: the same from every compiler.  CPTX_BLESS=1 writes the files.
 */
#include "kernels.h"
#include "../reparse.h"

#include <cptx/attention_backward.h>
#include <cptx/attention_decode.h>
#include <cptx/rows.h>

#include "../../examples/examples.h"
#include "../test.h"

static void gemm(cptx_module *m, enum cptx_gemm_mma mma, const char *target, enum cptx_type in, enum cptx_type out)
{
	cptx_gemm_opt o = cptx_gemm_default(mma, cptx_target_find(target));

	o.a = o.b = in, o.out = out;
	cptx_gemm_build(m, &o, NULL);
}

static void gemm_sync_sm_80(cptx_module *m) { gemm(m, CPTX_GEMM_SYNC, "sm_80", CPTX_F16, CPTX_F16); }
static void gemm_sync_sm_90a(cptx_module *m) { gemm(m, CPTX_GEMM_SYNC, "sm_90a", CPTX_BF16, CPTX_F32); }
static void gemm_sync_sm_120a(cptx_module *m) { gemm(m, CPTX_GEMM_SYNC, "sm_120a", CPTX_BF16, CPTX_BF16); }
static void gemm_wgmma(cptx_module *m) { gemm(m, CPTX_GEMM_WGMMA, "sm_90a", CPTX_BF16, CPTX_BF16); }
static void gemm_tcgen05(cptx_module *m) { gemm(m, CPTX_GEMM_TCGEN05, "sm_100a", CPTX_BF16, CPTX_BF16); }
static void gemm_gemv(cptx_module *m)
{
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_GEMV, NULL);

	o.b = CPTX_U4, o.scale = CPTX_BF16, o.scale_k = 128, o.zeros = true;
	cptx_gemm_build(m, &o, NULL);
}
/* Rows that are gathered, and gated columns that are quantized. */
static void gemm_gathered(cptx_module *m)
{
	const cptx_gemm_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt),
		                      .mma = CPTX_GEMM_WGMMA,
		                      .a = CPTX_BF16,
		                      .b = CPTX_BF16,
		                      .out = CPTX_E4M3,
		                      .bm = 64,
		                      .bn = 256,
		                      .stages = 3,
		                      .experts = CPTX_GEMM_EXPERTS_CONTIGUOUS,
		                      .gather = true,
		                      .swiglu = true,
		                      .scale_out = CPTX_F32 };

	cptx_gemm_build(m, &o, NULL);
}

/* Bytes, of which rows are added to D. */
static void gemm_int8_sm_80(cptx_module *m)
{
	const cptx_gemm_opt o = { .size = CPTX_OPT_SIZE(cptx_gemm_opt),
		                      .a = CPTX_S8,
		                      .b = CPTX_U8,
		                      .out = CPTX_F32,
		                      .bm = 64,
		                      .bn = 64,
		                      .bk = 64,
		                      .stages = 3,
		                      .warps_m = 2,
		                      .warps_n = 2,
		                      .experts = CPTX_GEMM_EXPERTS_MASKED,
		                      .scatter = true };

	cptx_gemm_build(m, &o, NULL);
}

static void gemm_unaligned(cptx_module *m)
{
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_WGMMA, NULL);

	o.out = CPTX_BF16, o.unaligned = CPTX_GEMM_A | CPTX_GEMM_D, o.bn = 64;
	cptx_gemm_build(m, &o, NULL);
}
static void attention_wgmma(cptx_module *m)
{
	cptx_attention_build(m,
	                     &(cptx_attention_opt){ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	                                            .mma = CPTX_ATTENTION_WGMMA,
	                                            .in = CPTX_BF16,
	                                            .dim = 128,
	                                            .causal = true,
	                                            .lse = true },
	                     NULL);
}
static void attention_decode(cptx_module *m)
{
	cptx_attention_decode_build(m,
	                            &(cptx_attention_decode_opt){ .size = CPTX_OPT_SIZE(cptx_attention_decode_opt),
	                                                          .in = CPTX_BF16,
	                                                          .dim = 128,
	                                                          .causal = true,
	                                                          .paged = true,
	                                                          .lse = true },
	                            NULL);
}
static void attention_backward(cptx_module *m, enum cptx_attention_mma mma, bool deterministic)
{
	cptx_attention_backward_build(m,
	                              &(cptx_attention_backward_opt){ .size = CPTX_OPT_SIZE(cptx_attention_backward_opt),
	                                                              .mma = mma,
	                                                              .in = CPTX_BF16,
	                                                              .dim = 64,
	                                                              .causal = true,
	                                                              .deterministic = deterministic },
	                              NULL);
}
static void attention_backward_sync(cptx_module *m) { attention_backward(m, CPTX_ATTENTION_SYNC, true); }
static void attention_backward_wgmma(cptx_module *m) { attention_backward(m, CPTX_ATTENTION_WGMMA, false); }
static void rows(cptx_module *m, enum cptx_rows_kernel kernel, enum cptx_rows_place place, uint32_t n, uint32_t split,
                 uint32_t with)
{
	cptx_rows_opt o = { .size = CPTX_OPT_SIZE(cptx_rows_opt),
		                .kernel = kernel,
		                .in = CPTX_BF16,
		                .n = n,
		                .with = with,
		                .place = place,
		                .threads = 128,
		                .per_row = 128,
		                .split = split };

	o.stages = place == CPTX_ROWS_SHARED ? 2 : 0, o.rows_each = place == CPTX_ROWS_SHARED ? 8 : 0;
	cptx_rows_build(m, &o, NULL);
}

static void rows_softmax(cptx_module *m) { rows(m, CPTX_ROWS_SOFTMAX, CPTX_ROWS_REGISTERS, 2048, 1, 0); }
static void rows_rms_norm(cptx_module *m)
{
	rows(m, CPTX_ROWS_RMS_NORM, CPTX_ROWS_SHARED, 8192, 4, CPTX_ROWS_BIT(CPTX_ROWS_W));
}
static void rows_top_k(cptx_module *m)
{
	cptx_rows_build(m,
	                &(cptx_rows_opt){ .size = CPTX_OPT_SIZE(cptx_rows_opt),
	                                  .kernel = CPTX_ROWS_TOP_K,
	                                  .in = CPTX_BF16,
	                                  .n = 8192,
	                                  .place = CPTX_ROWS_REGISTERS,
	                                  .threads = 256,
	                                  .per_row = 256,
	                                  .split = 2,
	                                  .k = 8 },
	                NULL);
}
static void rows_softmax_chunks(cptx_module *m)
{
	cptx_rows_build(m,
	                &(cptx_rows_opt){ .size = CPTX_OPT_SIZE(cptx_rows_opt),
	                                  .kernel = CPTX_ROWS_SOFTMAX,
	                                  .in = CPTX_BF16,
	                                  .n = 4096,
	                                  .place = CPTX_ROWS_SHARED,
	                                  .threads = 64,
	                                  .per_row = 64,
	                                  .split = 1,
	                                  .stages = 1,
	                                  .rows_each = 1,
	                                  .chunks = 3 },
	                NULL);
}
static void rows_rms_norm_backward(cptx_module *m)
{
	rows(m, CPTX_ROWS_RMS_NORM_BACKWARD, CPTX_ROWS_SHARED, 2048, 1,
	     CPTX_ROWS_BIT(CPTX_ROWS_W) | CPTX_ROWS_BIT(CPTX_ROWS_DW) | CPTX_ROWS_BIT(CPTX_ROWS_RSTD));
}
static void attention_sync(cptx_module *m, bool tma)
{
	cptx_attention_build(m,
	                     &(cptx_attention_opt){ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	                                            .mma = CPTX_ATTENTION_SYNC,
	                                            .in = CPTX_F16,
	                                            .dim = 64,
	                                            .causal = true,
	                                            .lse = !tma,
	                                            .bq = 64,
	                                            .bk = 32,
	                                            .warps = 4,
	                                            .tma = tma,
	                                            .sinks = tma,
	                                            .varlen = tma,
	                                            .page = tma ? 16 : 0 },
	                     NULL);
}
static void attention_sync_sm_80(cptx_module *m) { attention_sync(m, false); }
static void attention_pages_sm_120(cptx_module *m) { attention_sync(m, true); }
static void attention_tcgen05(cptx_module *m)
{
	cptx_attention_build(m,
	                     &(cptx_attention_opt){ .size = CPTX_OPT_SIZE(cptx_attention_opt),
	                                            .mma = CPTX_ATTENTION_TCGEN05,
	                                            .in = CPTX_BF16,
	                                            .dim = 64,
	                                            .causal = true,
	                                            .bk = 32 },
	                     NULL);
}
static void rms_norm_8192(cptx_module *m) { rms_norm(m, 8192, 512); }
static void rms_norm_1000(cptx_module *m) { rms_norm(m, 1000, 128); }
static void softmax_8192(cptx_module *m) { softmax(m, 8192, 512); }
static void swiglu_256(cptx_module *m) { swiglu(m, 256, 4); }

typedef struct sample {
	const char *name, *target;
	void (*build)(cptx_module *m);
	bool lines;
} sample;

static const sample samples[] = {
	{ "gemm_sync_sm_80", "sm_80", gemm_sync_sm_80, false },
	{ "gemm_sync_sm_90a", "sm_90a", gemm_sync_sm_90a, false },
	{ "gemm_sync_sm_120a", "sm_120a", gemm_sync_sm_120a, false },
	{ "gemm_wgmma", "sm_90a", gemm_wgmma, false },
	{ "gemm_tcgen05", "sm_100a", gemm_tcgen05, false },
	{ "gemm_gemv", "sm_80", gemm_gemv, false },
	{ "gemm_unaligned", "sm_90a", gemm_unaligned, false },
	{ "gemm_gathered", "sm_90a", gemm_gathered, false },
	{ "gemm_int8_sm_80", "sm_80", gemm_int8_sm_80, false },
	{ "attention_wgmma", "sm_90a", attention_wgmma, false },
	{ "attention_decode", "sm_80", attention_decode, false },
	{ "attention_backward_sync", "sm_80", attention_backward_sync, false },
	{ "attention_backward_wgmma", "sm_90a", attention_backward_wgmma, false },
	{ "rows_softmax", "sm_80", rows_softmax, false },
	{ "rows_rms_norm", "sm_90a", rows_rms_norm, false },
	{ "rows_top_k", "sm_90a", rows_top_k, false },
	{ "rows_softmax_chunks", "sm_90a", rows_softmax_chunks, false },
	{ "rows_rms_norm_backward", "sm_100a", rows_rms_norm_backward, false },
	{ "attention_sync_sm_80", "sm_80", attention_sync_sm_80, false },
	{ "attention_pages_sm_120", "sm_120", attention_pages_sm_120, false },
	{ "attention_tcgen05", "sm_100a", attention_tcgen05, false },
	{ "rms_norm", "sm_80", rms_norm_8192, false },
	{ "rms_norm_ragged", "sm_90", rms_norm_1000, false },
	{ "softmax", "sm_90a", softmax_8192, false },
	{ "swiglu", "sm_120", swiglu_256, false },
	{ "flow", "sm_80", build_flow, true },
};

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return NULL;
	size_t room = 1 << 20;
	char *text = malloc(room);
	size_t n = text ? fread(text, 1, room - 1, f) : 0;
	fclose(f);
	if (text)
		text[n] = 0;
	return text;
}

static size_t line_length(const char *s) { return strcspn(s, "\n"); }
static const char *next_line(const char *s) { return s + line_length(s) + (s[line_length(s)] == '\n'); }

/* The first place where they part: two lines before it, then some of each. */
static void print_difference(const char *path, const char *want, const char *got)
{
	enum { LINES = 8 };
	const char *before[2] = { NULL, NULL };
	unsigned line = 1;

	for (; *want && line_length(want) == line_length(got) && !strncmp(want, got, line_length(want)); line++) {
		before[0] = before[1];
		before[1] = want;
		want = next_line(want);
		got = next_line(got);
	}
	printf("--- %s\n+++ what is printed now\n@@ line %u @@\n", path, line);
	for (int i = 0; i < 2; i++)
		if (before[i])
			printf(" %.*s\n", (int)line_length(before[i]), before[i]);
	for (int i = 0; i < LINES && *want; i++, want = next_line(want))
		printf("-%.*s\n", (int)line_length(want), want);
	for (int i = 0; i < LINES && *got; i++, got = next_line(got))
		printf("+%.*s\n", (int)line_length(got), got);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "wb");
	ck_assert_msg(f != NULL, "cannot write %s", path);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
	printf("wrote %s\n", path);
}

START_TEST(as_kept)
{
	const sample *w = &samples[_i];
	const char *bless = getenv("CPTX_BLESS");
	char path[4096];
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { .code = CPTX_OK };

	snprintf(path, sizeof path, "%s/%s.ptx", GOLDEN_DIR, w->name);
	w->build(m);
	cptx_ptx *ptx = cptx_emit(m, w->target, &(cptx_emit_opt){ .lines = w->lines }, &err);
	ck_assert_msg(ptx != NULL, "%s: %s", w->name, err.text);
	ck_assert(test_reparses(cptx_ptx_text(ptx)));
	if (bless && *bless == '1')
		write_file(path, cptx_ptx_text(ptx));
	char *want = read_all(path);
	ck_assert_msg(want != NULL, "%s is missing; CPTX_BLESS=1 writes it", path);
	bool same = !strcmp(want, cptx_ptx_text(ptx));
	if (!same)
		print_difference(path, want, cptx_ptx_text(ptx));
	free(want);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	ck_assert_msg(same, "%s differs; CPTX_BLESS=1 keeps the new text", w->name);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("golden");
	TCase *c = tcase_create("golden");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_add_loop_test(c, as_kept, 0, sizeof samples / sizeof samples[0]);
	suite_add_tcase(s, c);
	return test_main("golden", s);
}
