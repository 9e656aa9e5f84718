/* SPDX-License-Identifier: MIT */
/*
 * Operators of an inference engine in the manner of ggml: nodes of a graph with shapes, byte strides, an operator and its
 * two sources; a backend says which nodes it takes, and computes the graph in order.  Here rms_norm and mul_mat, as ggml has
 * them: ne[0] is the length of a row, and mul_mat(a, b) of a (k x m) and b (k x n) is m x n, the product of rows.
 *
 *   CPTX_DEVICE=emu:sm_90a build/examples/hosts/tensor_op
 *
 * The names are this example's own; nothing of ggml is needed.
 */
#include <cptx/gemm.h>
#include <cptx/rows.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum op { OP_NONE, OP_RMS_NORM, OP_MUL_MAT };

struct tensor {
	enum cptx_type type;
	int64_t ne[2]; /* elements of a row, rows */
	size_t nb[2];  /* bytes from an element, and from a row, to the next */
	enum op op;
	float eps; /* of rms_norm */
	const struct tensor *src[2];
	uint64_t data; /* on the device */
};

struct backend {
	cptx_device *dev;
	cptx_rows_runner *rows;
	cptx_gemm_runner *gemm;
};

static size_t size_of(enum cptx_type type) { return cptx_type_bits(type) / 8; }

static struct tensor tensor_new(struct backend *b, enum cptx_type type, int64_t ne0, int64_t ne1, cptx_error *err)
{
	struct tensor t = { .type = type, .ne = { ne0, ne1 } };

	t.nb[0] = size_of(type);
	t.nb[1] = t.nb[0] * (size_t)ne0;
	t.data = cptx_mem_alloc(b->dev, t.nb[1] * (size_t)ne1, err);
	return t;
}

/* ---- the backend ---- */

static bool is_dense(const struct tensor *t) { return t->nb[1] == (size_t)t->ne[0] * t->nb[0]; }

/* Whether the kernels here compute a node; the others are left to the CPU. */
static bool supports(const struct tensor *t)
{
	const struct tensor *a = t->src[0], *b = t->src[1];

	switch (t->op) {
	case OP_RMS_NORM: return is_dense(a) && is_dense(t) && a->ne[0] == t->ne[0] && a->ne[1] == t->ne[1];
	case OP_MUL_MAT:
		return a->type == CPTX_BF16 && b->type == CPTX_BF16 && t->type == CPTX_F32 && is_dense(a) && is_dense(b) &&
		       is_dense(t) && a->ne[0] == b->ne[0] && t->ne[0] == a->ne[1] && t->ne[1] == b->ne[1] && a->ne[0] % 8 == 0;
	case OP_NONE: break;
	}
	return false;
}

static bool rms_norm(struct backend *b, const struct tensor *t, cptx_error *err)
{
	cptx_rows_opt opt = {
		.kernel = CPTX_ROWS_RMS_NORM, .in = t->src[0]->type, .out = t->type, .n = (uint32_t)t->ne[0], .eps = t->eps
	};
	cptx_rows_problem p = { .rows = (uint32_t)t->ne[1] };

	p.at[CPTX_ROWS_X].address = t->src[0]->data;
	p.at[CPTX_ROWS_Y].address = t->data;
	return cptx_rows_run(b->rows, &opt, &p, NULL, err);
}

/* Rows of the result are rows of b: D = B * A^T, and both are stored by rows of K. */
static bool mul_mat(struct backend *b, const struct tensor *t, cptx_error *err)
{
	const cptx_target *target = cptx_target_find(cptx_device_get_info(b->dev)->target);
	cptx_gemm_opt opt = { .mma = cptx_gemm_mma_of(target), .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 };
	cptx_gemm_problem p = { .m = (uint64_t)t->ne[1], .n = (uint64_t)t->ne[0], .k = (uint64_t)t->src[0]->ne[0] };

	p.a = t->src[1]->data;
	p.b = t->src[0]->data;
	p.d = t->data;
	return cptx_gemm_run(b->gemm, &opt, &p, NULL, err);
}

static bool graph_compute(struct backend *b, struct tensor *const *nodes, size_t n, cptx_error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!supports(nodes[i])) {
			fprintf(stderr, "node %zu is not for this backend\n", i);
			return false;
		}
		if (!(nodes[i]->op == OP_RMS_NORM ? rms_norm : mul_mat)(b, nodes[i], err))
			return false;
	}
	return cptx_device_synchronize(b->dev, err);
}

/* ---- a graph of two nodes, and the same by the CPU ---- */

static uint16_t to_bf16(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t h)
{
	uint32_t u = (uint32_t)h << 16;
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

enum { K = 256, TOKENS = 12, OUT = 64 };

/* The largest distance from what the CPU computes. */
static float compare(const uint16_t *x, const uint16_t *w, const float *y)
{
	static uint16_t normed[TOKENS][K];
	float worst = 0;

	for (int t = 0; t < TOKENS; t++) {
		float sum = 0;
		for (int i = 0; i < K; i++)
			sum += from_bf16(x[t * K + i]) * from_bf16(x[t * K + i]);
		for (int i = 0; i < K; i++)
			normed[t][i] = to_bf16(from_bf16(x[t * K + i]) / sqrtf(sum / K + 1e-6f));
		for (int o = 0; o < OUT; o++) {
			float dot = 0;
			for (int i = 0; i < K; i++)
				dot += from_bf16(normed[t][i]) * from_bf16(w[o * K + i]);
			worst = fmaxf(worst, fabsf(dot - y[t * OUT + o]));
		}
	}
	return worst;
}

int main(void)
{
	static uint16_t x[TOKENS * K], w[OUT * K];
	static float y[TOKENS * OUT];
	const char *name = getenv("CPTX_DEVICE");
	cptx_error err = { .code = CPTX_OK };
	struct backend b = { .dev = cptx_device_open(name ? name : "cuda", &err) };
	float worst = INFINITY;

	b.rows = b.dev ? cptx_rows_runner_new(b.dev, NULL, &err) : NULL;
	b.gemm = b.dev ? cptx_gemm_runner_new(b.dev, NULL, &err) : NULL;
	if (b.rows && b.gemm) {
		for (int i = 0; i < TOKENS * K; i++)
			x[i] = to_bf16(sinf((float)i * 0.37f));
		for (int i = 0; i < OUT * K; i++)
			w[i] = to_bf16(cosf((float)i * 0.11f) / 16);
		struct tensor in = tensor_new(&b, CPTX_BF16, K, TOKENS, &err), weights = tensor_new(&b, CPTX_BF16, K, OUT, &err);
		struct tensor normed = tensor_new(&b, CPTX_BF16, K, TOKENS, &err), out = tensor_new(&b, CPTX_F32, OUT, TOKENS, &err);
		normed.op = OP_RMS_NORM, normed.src[0] = &in, normed.eps = 1e-6f;
		out.op = OP_MUL_MAT, out.src[0] = &weights, out.src[1] = &normed;
		struct tensor *graph[] = { &normed, &out };
		if (cptx_mem_write(b.dev, in.data, x, sizeof x, &err) && cptx_mem_write(b.dev, weights.data, w, sizeof w, &err) &&
		    graph_compute(&b, graph, 2, &err) && cptx_mem_read(b.dev, y, out.data, sizeof y, &err))
			worst = compare(x, w, y);
		cptx_mem_free(b.dev, in.data);
		cptx_mem_free(b.dev, weights.data);
		cptx_mem_free(b.dev, normed.data);
		cptx_mem_free(b.dev, out.data);
	}
	if (err.code != CPTX_OK)
		fprintf(stderr, "%s\n", err.text);
	else
		printf("rms_norm and mul_mat of %d tokens: %g from the CPU at most\n", TOKENS, (double)worst);
	cptx_rows_runner_destroy(b.rows);
	cptx_gemm_runner_destroy(b.gemm);
	cptx_device_close(b.dev);
	return err.code != CPTX_OK || !(worst < 0.05f);
}
