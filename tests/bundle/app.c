/* SPDX-License-Identifier: MIT */
/*
 * A program that knows bundles by their loader alone, and links no cptx: runs every GEMM of a bundle, of bf16 and dense rows
 * of K (layout tt), from two threads, and compares all results.
 *
 *   app BUNDLE [NAME]     with NAME that one alone
 *   app --time BUNDLE NAME      from opening to the end of the first launch
 *   app --contexts BUNDLE NAME  launches from threads without a context and, on the emulator, with another one
 */
#include "cptx_load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
	int (*cuInit)(unsigned flags);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuCtxSynchronize)(void);
	int (*cuMemAlloc_v2)(uint64_t *p, size_t size);
	int (*cuMemFree_v2)(uint64_t p);
	int (*cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t size);
	int (*cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t size);
} cu;

static void *context;

static void die(const char *what)
{
	fprintf(stderr, "app: %s\n", what);
	exit(1);
}

static void open_cuda(void)
{
	const char *path = getenv("CPTX_CUDA_LIBRARY");
	void *lib = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
	const struct {
		const char *name;
		void *to;
	} calls[] = { { "cuInit", &cu.cuInit },
		          { "cuDevicePrimaryCtxRetain", &cu.cuDevicePrimaryCtxRetain },
		          { "cuCtxSetCurrent", &cu.cuCtxSetCurrent },
		          { "cuCtxSynchronize", &cu.cuCtxSynchronize },
		          { "cuMemAlloc_v2", &cu.cuMemAlloc_v2 },
		          { "cuMemFree_v2", &cu.cuMemFree_v2 },
		          { "cuMemcpyHtoD_v2", &cu.cuMemcpyHtoD_v2 },
		          { "cuMemcpyDtoH_v2", &cu.cuMemcpyDtoH_v2 } };

	if (!lib)
		die(dlerror());
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		void *p = dlsym(lib, calls[i].name);
		if (!p)
			die(calls[i].name);
		memcpy(calls[i].to, &p, sizeof p);
	}
	if (cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context))
		die("no device");
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* ---- a GEMM of whole numbers from -2 to 2, whose sums are exact ---- */

static float number(uint64_t i, unsigned seed) { return (float)((int)((i * 2654435761u + seed) >> 7 & 1023) % 5 - 2); }

static uint16_t bf16(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof bits);
	return (uint16_t)(bits >> 16);
}

static float from_bf16(uint16_t v)
{
	const uint32_t bits = (uint32_t)v << 16;
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

/* Device memory with n numbers; in `host` (may be NULL) the same. */
static uint64_t upload(uint64_t n, unsigned seed, int is_bf16, float *host)
{
	const size_t each = is_bf16 ? 2 : 4;
	char *bytes = malloc(n * each);
	uint64_t at;

	if (!bytes || cu.cuMemAlloc_v2(&at, n * each))
		die("out of memory");
	for (uint64_t i = 0; i < n; i++) {
		const float v = number(i, seed);
		const uint16_t half = bf16(v);
		memcpy(bytes + i * each, is_bf16 ? (const void *)&half : &v, each);
		if (host)
			host[i] = v;
	}
	if (cu.cuMemcpyHtoD_v2(at, bytes, n * each))
		die("cannot write device memory");
	free(bytes);
	return at;
}

typedef struct gemm {
	unsigned long long m, n, k;
	unsigned batch;
	int out_bf16, has_bias, has_c;
	float alpha, beta;
} gemm;

static float *numbers(uint64_t n)
{
	float *p = calloc(n, sizeof *p);

	if (!p)
		die("out of memory");
	return p;
}

/* Elements that are wrong; of a large problem one of many is looked at. */
static unsigned long long compare(const gemm *g, const void *d, const float *a, const float *b, const float *c,
                                  const float *bias)
{
	const uint64_t step = 1 + (uint64_t)(2.0 * (double)(g->m * g->n * g->k) * g->batch / 1e9);
	unsigned long long wrong = 0;

	for (uint64_t z = 0; z < g->batch; z++)
		for (uint64_t i = 0; i < g->m; i++)
			for (uint64_t j = 0; j < g->n; j++) {
				const uint64_t at = (z * g->m + i) * g->n + j;
				double sum = 0;
				if (at % step)
					continue;
				for (uint64_t k = 0; k < g->k; k++)
					sum += (double)(a[(z * g->m + i) * g->k + k] * b[(z * g->n + j) * g->k + k]);
				sum = sum * g->alpha + (g->has_c ? (double)(g->beta * c[at]) : 0) + (g->has_bias ? (double)bias[j] : 0);
				const double got = (double)(g->out_bf16 ? from_bf16(((const uint16_t *)d)[at]) : ((const float *)d)[at]);
				const double error = got > sum ? got - sum : sum - got, size = sum < 0 ? -sum : sum;
				wrong += !(error <= (g->out_bf16 ? size / 128 : 1e-3));
			}
	return wrong;
}

/* Runs kernel i of a bundle; true: all elements are right. */
static int run(cptx_load *bundle, uint32_t i, cptx_load_kernel *kernel)
{
	char err[CPTX_LOAD_ERROR], in[16], in_b[16], out[16];
	gemm g = { .alpha = 1 };
	enum cptx_load_kind kind;

	if (sscanf(cptx_load_about(bundle, i), "gemm %llux%llux%llux%u, %15s * %15s -> %15[a-z0-9]", &g.m, &g.n, &g.k, &g.batch,
	           in, in_b, out) != 7 ||
	    strcmp(in, "bf16") || strcmp(in_b, "bf16"))
		die("an entry that this program does not know");
	g.out_bf16 = !strcmp(out, "bf16");
	const uint64_t na = g.m * g.k * g.batch, nb = g.n * g.k * g.batch, nd = g.m * g.n * g.batch;
	float *a = numbers(na), *b = numbers(nb), *c = numbers(nd), *bias = numbers(g.n);
	cptx_load_arg args[10];
	uint64_t d = 0, all[10];
	uint32_t n = 0, nall = 0;
	for (const char *name; (name = cptx_load_argument(bundle, i, n, &kind)); n++) {
		if (kind == CPTX_LOAD_F32) {
			args[n].f32 = 2;
			*(strcmp(name, "alpha") ? &g.beta : &g.alpha) = 2;
			continue;
		}
		args[n].pointer = !strcmp(name, "a")      ? upload(na, 1, 1, a)
		                  : !strcmp(name, "b")    ? upload(nb, 2, 1, b)
		                  : !strcmp(name, "c")    ? upload(nd, 3, g.out_bf16, c)
		                  : !strcmp(name, "bias") ? upload(g.n, 4, 0, bias)
		                                          : upload(nd, 5, g.out_bf16, NULL);
		g.has_c |= !strcmp(name, "c"), g.has_bias |= !strcmp(name, "bias");
		d = strcmp(name, "d") ? d : args[n].pointer;
		all[nall++] = args[n].pointer;
	}
	void *got = calloc(nd, 4);
	int ok = cptx_load_launch(kernel, args, n, NULL, err);
	if (!ok)
		fprintf(stderr, "app: %s: %s\n", cptx_load_name(bundle, i), err);
	ok = ok && !cu.cuCtxSynchronize() && got && !cu.cuMemcpyDtoH_v2(got, d, nd * (g.out_bf16 ? 2 : 4));
	const unsigned long long wrong = ok ? compare(&g, got, a, b, c, bias) : 1;
	if (ok && wrong)
		fprintf(stderr, "app: %s: %llu of %llu elements are wrong\n", cptx_load_name(bundle, i), wrong,
		        (unsigned long long)nd);
	for (uint32_t j = 0; j < nall; j++)
		cu.cuMemFree_v2(all[j]);
	free(a), free(b), free(c), free(bias), free(got);
	return !wrong;
}

/* ---- threads ---- */

typedef struct share {
	cptx_load *bundle;
	cptx_load_kernel **kernels;
	const char *name;
	uint32_t first, right, ran;
} share;

static void *serve(void *p)
{
	share *s = p;

	if (cu.cuCtxSetCurrent(context))
		die("no context");
	for (uint32_t i = s->first; i < cptx_load_count(s->bundle); i += 2) {
		if (s->name && strcmp(s->name, cptx_load_name(s->bundle, i)))
			continue;
		s->ran++;
		s->right += (uint32_t)run(s->bundle, i, s->kernels[i]);
	}
	return NULL;
}

static int run_all(const char *path, const char *name)
{
	char err[CPTX_LOAD_ERROR];
	cptx_load *b = cptx_load_file(path, err);
	share s[2];
	pthread_t thread[2];

	if (!b)
		die(err);
	cptx_load_kernel **kernels = calloc(cptx_load_count(b) + 1, sizeof(cptx_load_kernel *));
	for (uint32_t i = 0; kernels && i < cptx_load_count(b); i++) {
		if (name && strcmp(name, cptx_load_name(b, i)))
			continue;
		const char *this_one = cptx_load_name(b, i);
		if (!(kernels[i] = cptx_load_get(b, this_one, err)))
			die(err);
		if (!i || name)
			printf("%s: %s\n", this_one, cptx_load_why(kernels[i]));
	}
	for (uint32_t i = 0; i < 2; i++) {
		s[i] = (share){ b, kernels, name, i, 0, 0 };
		if (pthread_create(&thread[i], NULL, serve, &s[i]))
			die("no thread");
	}
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("%u of %u kernels right\n", s[0].right + s[1].right, s[0].ran + s[1].ran);
	const int ok = s[0].right + s[1].right == s[0].ran + s[1].ran && s[0].ran + s[1].ran;
	cptx_load_close(b);
	free(kernels);
	return !ok;
}

/* A process that has a context and operands: what the bundle adds until its first kernel has run. */
static int run_once(const char *path, const char *name)
{
	char err[CPTX_LOAD_ERROR];
	enum { BYTES = 64 << 20 };
	uint64_t at[10];
	cptx_load_arg args[10];

	for (int i = 0; i < 10; i++) {
		if (i < 4 && cu.cuMemAlloc_v2(&at[i], BYTES))
			die("out of memory");
		args[i].pointer = at[i & 3];
	}
	cu.cuCtxSynchronize();
	const double begin = now_ms();
	cptx_load *b = cptx_load_file(path, err);
	cptx_load_kernel *k = b ? cptx_load_get(b, name, err) : NULL;
	const double found = now_ms();
	uint32_t i = 0, n = 0;
	while (b && i < cptx_load_count(b) && strcmp(cptx_load_name(b, i), name))
		i++;
	while (b && cptx_load_argument(b, i, n, NULL))
		n++;
	if (!k || !cptx_load_launch(k, args, n, NULL, err))
		die(err);
	const double launched = now_ms();
	const int bad = cu.cuCtxSynchronize();
	const double done = now_ms();
	printf("%s: opened and loaded %.3f ms, launched %.3f ms, done %.3f ms: %s\n", name, found - begin, launched - begin,
	       done - begin, cptx_load_why(k));
	cptx_load_close(b);
	return bad;
}

/* A launch from a thread without a context, or (`other`) with another than that of the kernel. */
typedef struct visit {
	cptx_load_kernel *kernel;
	const cptx_load_arg *args;
	uint32_t n;
	void *other;
	int launched;
	char err[CPTX_LOAD_ERROR];
} visit;

static void *visit_thread(void *p)
{
	visit *v = p;

	if (v->other && cu.cuCtxSetCurrent(v->other))
		die("no other context");
	v->launched = cptx_load_launch(v->kernel, v->args, v->n, NULL, v->err);
	return NULL;
}

static int run_contexts(const char *path, const char *name)
{
	char err[CPTX_LOAD_ERROR];
	enum { BYTES = 1 << 20 };
	uint64_t at;
	cptx_load_arg args[10];
	cptx_load *b = cptx_load_file(path, err);
	visit v[2] = { { .n = 0 }, { .other = args } };
	pthread_t thread;

	if (!b || !(v[0].kernel = cptx_load_get(b, name, err)))
		die(err);
	char *zeros = calloc(1, BYTES);
	if (!zeros || cu.cuMemAlloc_v2(&at, BYTES) || cu.cuMemcpyHtoD_v2(at, zeros, BYTES))
		die("out of memory");
	free(zeros);
	for (uint64_t i = 0; i < 10; i++)
		args[i].pointer = at + i * (BYTES / 16);
	uint32_t i = 0;
	while (strcmp(cptx_load_name(b, i), name))
		i++;
	while (cptx_load_argument(b, i, v[0].n, NULL))
		v[0].n++;
	v[1].kernel = v[0].kernel, v[1].n = v[0].n;
	for (int j = 0; j < 2; j++) {
		v[j].args = args;
		if (pthread_create(&thread, NULL, visit_thread, &v[j]))
			die("no thread");
		pthread_join(thread, NULL);
		printf("%s: %s\n", j ? "another" : "none", v[j].launched ? "launched" : v[j].err);
	}
	const int bad = cu.cuCtxSynchronize();
	cu.cuMemFree_v2(at);
	cptx_load_close(b);
	return bad || !v[0].launched || v[1].launched;
}

int main(int argc, char **argv)
{
	open_cuda();
	if (argc == 4 && !strcmp(argv[1], "--time"))
		return run_once(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "--contexts"))
		return run_contexts(argv[2], argv[3]);
	if (argc < 2 || argc > 3)
		die("app BUNDLE [NAME], or app --time or --contexts BUNDLE NAME");
	return run_all(argv[1], argc > 2 ? argv[2] : NULL);
}
