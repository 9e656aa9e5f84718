/* SPDX-License-Identifier: MIT */
/*
 * Small programs whose recordings went wrong once; test_record.sh says what is to be seen of each.  They find the driver's
 * library by its name, so that they are recorded in front of any.  Arguments: which program; what it wants.
 */
#include "recording.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS                                                                                                               \
	FROM(cuInit, (unsigned flags))                                                                                          \
	FROM(cuDevicePrimaryCtxRetain, (void **ctx, int device))                                                                \
	FROM(cuCtxSetCurrent, (void *ctx))                                                                                      \
	FROM(cuMemAlloc_v2, (uint64_t * at, size_t size))                                                                       \
	FROM(cuModuleLoadData, (void **m, const void *image))                                                                   \
	FROM(cuModuleGetFunction, (void **f, void *m, const char *name))                                                        \
	FROM(cuLibraryLoadData, (void **m, const void *image, int *jit, void **jit_values, unsigned njit, int *options,         \
	                         void **values, unsigned n))                                                                    \
	FROM(cuLibraryGetKernel, (void **f, void *m, const char *name))                                                         \
	FROM(cuModuleUnload, (void *m))                                                                                         \
	FROM(cuMemCreate, (void **memory, size_t size, const void *kind, unsigned long long flags))                             \
	FROM(cuMemAddressReserve, (uint64_t * at, size_t size, size_t align, uint64_t wish, unsigned long long flags))          \
	FROM(cuMemMap, (uint64_t at, size_t size, size_t offset, void *memory, unsigned long long flags))                       \
	FROM(cuMemSetAccess, (uint64_t at, size_t size, const void *access, size_t n))                                          \
	FROM(cuMemUnmap, (uint64_t at, size_t size))                                                                            \
	FROM(cuLaunchKernel, (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,            \
	                      unsigned smem, void *s, void **args, void **extra))
#define FROM(name, parameters) static int(*name) parameters;
CALLS
#undef FROM

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define STORES(type, value)                                                                                                 \
	"(.param .u64 p) { .reg .b64 %p; ld.param.u64 %p, [p]; st.global." type " [%p], " value "; ret; }\n"

static bool begin(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *p, *ctx = NULL;

#define FROM(name, parameters)                                                                                              \
	if (!library || !(p = dlsym(library, #name)))                                                                           \
		return false;                                                                                                       \
	memcpy(&name, &p, sizeof name);
	CALLS
#undef FROM
	return !cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx);
}

static int launch(void *f, uint64_t *p)
{
	void *args[] = { p };

	return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
}

/* A module of one kernel. */
static int load(const char *text, const char *name, void **m, void **f)
{
	return cuModuleLoadData(m, text) || cuModuleGetFunction(f, *m, name);
}

/* Launches before the program has any memory. */
static int empty(void)
{
	void *m, *f;

	return load(HEAD ".visible .entry k() { ret; }\n", "k", &m, &f) || launch(f, NULL) || launch(f, NULL);
}

static int infinite(void)
{
	void *m, *f;
	uint64_t p;

	return load(HEAD ".visible .entry k" STORES("b32", "0x7f800000"), "k", &m, &f) || cuMemAlloc_v2(&p, 256) ||
	       launch(f, &p);
}

/* A child that only ends, and one that launches a kernel. */
static int forked(void)
{
	void *m, *f;
	uint64_t p;
	int status = 1,
		e = load(HEAD ".visible .entry k" STORES("u32", "7"), "k", &m, &f) || cuMemAlloc_v2(&p, 256) || launch(f, &p);

	for (int child = 0; child < 2 && !e; child++) {
		if (!fork())
			exit(child ? launch(f, &p) : 0);
		e = wait(&status) < 0 || status;
	}
	return e || launch(f, &p);
}

/* A thread that launches all the time, beside which others fork: a child has a lock of its own, not one that nobody gives
 * back. */
static void *beside_f;
static uint64_t beside_p;
static volatile bool beside_ends;

static void *launches(void *user)
{
	while (!beside_ends)
		launch(beside_f, &beside_p);
	return user;
}

static int beside(void)
{
	enum { CHILDREN = 10, SECONDS = 60 };
	void *m;
	pthread_t t;
	int status = 1, e = load(HEAD ".visible .entry k(.param .u64 p) { .reg .b32 %r; .reg .pred %q; mov.u32 %r, 0;\n"
	                              "L: add.u32 %r, %r, 1; setp.lt.u32 %q, %r, 200000; @%q bra L; ret; }\n",
	                         "k", &m, &beside_f) ||
	                    cuMemAlloc_v2(&beside_p, 256) || pthread_create(&t, NULL, launches, NULL);

	if (e)
		return e;
	for (int child = 0; child < CHILDREN && !e; child++) {
		if (!fork()) {
			alarm(SECONDS);
			exit(launch(beside_f, &beside_p));
		}
		e = wait(&status) < 0 || status;
	}
	beside_ends = true;
	return pthread_join(t, NULL) || e;
}

static int moved(const char *folder) { return chdir(folder) || infinite(); }

static int long_name(void)
{
	enum { N = 700 };
	static char name[N + 1], text[4 * N];
	void *m, *f;
	uint64_t p;

	memset(name, 'k', N);
	snprintf(text, sizeof text, "%s%s%s", HEAD ".visible .entry ", name, STORES("u32", "7"));
	return load(text, name, &m, &f) || cuMemAlloc_v2(&p, 256) || launch(f, &p);
}

/* Two modules, of which the second one gets the addresses of the first one. */
static int unloaded(void)
{
	static const char *const text[] = {
		HEAD ".visible .global .align 8 .u64 v[8];\n.visible .entry k(.param .u64 p) { st.global.u32 [v+8], 7; ret; }\n",
		HEAD
		".visible .global .align 4 .u32 w[16] = {5};\n.visible .entry k(.param .u64 p) { st.global.u32 [w+8], 8; ret; }\n"
	};
	void *m, *f;
	uint64_t p;
	int e = cuMemAlloc_v2(&p, 256);

	for (int i = 0; i < 4 && !e; i++)
		e = load(text[i % 2], "k", &m, &f) || launch(f, &p) || cuModuleUnload(m);
	return e;
}

/* Access to what is mapped is given in parts that overlap, and parts of that are unmapped. */
static int mapped(void)
{
	enum { S = 2 << 20 };
	const struct {
		int type, handles, place, id;
		void *none;
		unsigned char flags[8];
	} kind = { 1, 0, 1, 0, NULL, { 0 } };
	const int access[3] = { 1, 0, 3 };
	void *m, *f, *memory[3];
	uint64_t va, first;
	int e = load(HEAD ".visible .entry k" STORES("u32", "7"), "k", &m, &f) || cuMemAddressReserve(&va, 3 * S, 0, 0, 0);

	for (unsigned i = 0; i < 3 && !e; i++)
		e = cuMemCreate(&memory[i], S, &kind, 0) || cuMemMap(va + i * S, S, 0, memory[i], 0);
	first = va;
	return e || cuMemSetAccess(va + S, S, access, 1) || cuMemSetAccess(va, 3 * S, access, 1) || launch(f, &first) ||
	       cuMemUnmap(va + S, 2 * S) || launch(f, &first);
}

/* Two devices, each of which has its own variables of one library, but for a managed one. */
static int devices(void)
{
	static const char *const text[] = {
		HEAD ".visible .global .align 4 .u32 own = 5;\n.visible .entry k(.param .u64 p) { .reg .b64 %p; .reg .b32 %r; "
			 "ld.param.u64 %p, [p]; atom.global.add.u32 %r, [own], 1; st.global.u32 [%p], %r; ret; }\n",
		HEAD ".visible .global .attribute(.managed) .align 4 .u32 all = 5;\n.visible .entry k(.param .u64 p) "
			 "{ .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; atom.global.sys.add.u32 %r, [all], 1; ret; }\n"
	};
	void *ctx[2], *m, *f[2];
	uint64_t p[2];
	int e = 0;

	for (int d = 0; d < 2 && !e; d++)
		e = cuDevicePrimaryCtxRetain(&ctx[d], d) || cuCtxSetCurrent(ctx[d]) || cuMemAlloc_v2(&p[d], 256) ||
		    cuLibraryLoadData(&m, text[d], NULL, NULL, 0, NULL, NULL, 0) || cuLibraryGetKernel(&f[d], m, "k");
	for (int turn = 0; turn < 6 && !e; turn++)
		e = cuCtxSetCurrent(ctx[turn % 2]) || launch(f[turn / 4], &p[turn % 2]);
	return e;
}

/* In front of a driver: memory is freed by a way that the recorder does not see, and cannot be read behind it. */
static int hidden(void)
{
	int (*release)(uint64_t);
	void *real = dlopen("libcptx_real_cuda.so", RTLD_NOW | RTLD_NOLOAD), *unseen = real ? dlsym(real, "cuMemFree_v2") : NULL;
	void *m, *f;
	uint64_t p, q;

	memcpy(&release, &unseen, sizeof unseen);
	return !release || load(HEAD ".visible .entry k" STORES("u32", "7"), "k", &m, &f) || cuMemAlloc_v2(&p, 256) ||
	       cuMemAlloc_v2(&q, 4096) || launch(f, &p) || release(q) || launch(f, &p) || launch(f, &p);
}

/* Behind a fault no memory can be read. */
static int fault(void)
{
	void *m, *f;
	uint64_t p, nowhere = 64;

	return load(HEAD ".visible .entry k" STORES("u32", "7"), "k", &m, &f) || cuMemAlloc_v2(&p, 256) || launch(f, &p) ||
	       launch(f, &nowhere) || !launch(f, &p);
}

/* ---- a recording that no program makes ---- */

static void number(FILE *f, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		fputc((int)(v >> 8 * i & 255), f);
}

static void head(FILE *f, enum rec_kind kind, uint64_t bytes)
{
	number(f, kind, 8);
	number(f, bytes, 8);
}

/* Blocks, of which one is there at a time, and of each of their 64 KiB a byte is not zero: more than 8 GiB in all. */
static int turnover(const char *path)
{
	enum { AT = 0x10000000, SIZE = 128 << 20, BLOCKS = 66 };
	FILE *f = fopen(path, "wb");

	if (!f)
		return 1;
	fputs(REC_MAGIC, f);
	number(f, REC_VERSION, 8);
	head(f, REC_DEVICE, 20);
	number(f, 0, 8), number(f, 0, 8), number(f, 0, 8);
	for (int i = 0; i < BLOCKS; i++) {
		head(f, REC_BLOCK, 24);
		number(f, AT, 8), number(f, SIZE, 8), number(f, 2, 4), number(f, 1, 4);
		for (uint64_t at = AT; at < (uint64_t)AT + SIZE; at += 65536) {
			head(f, REC_FILL, 24);
			number(f, at, 8), number(f, 1, 8), number(f, 1, 8);
		}
		head(f, REC_FREED, 8);
		number(f, AT, 8);
	}
	head(f, REC_END, 12);
	number(f, 0, 8), number(f, REC_ALL, 8);
	return fclose(f) != 0;
}

/* FILL records of 1 TiB in all, to be put behind other records. */
static int fills(const char *path)
{
	FILE *f = fopen(path, "ab");

	for (int i = 0; f && i < 1024; i++) {
		head(f, REC_FILL, 24);
		number(f, 0, 8), number(f, UINT64_C(1) << 30, 8), number(f, 1, 8);
	}
	return !f || fclose(f);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *path = argc > 2 ? argv[2] : "";

	if (!strcmp(what, "turnover"))
		return turnover(path);
	if (!strcmp(what, "fills"))
		return fills(path);
	if (!begin())
		return fprintf(stderr, "libcuda.so.1 cannot be opened, or lacks a call\n"), 1;
	int e = !strcmp(what, "empty")      ? empty()
	        : !strcmp(what, "infinite") ? infinite()
	        : !strcmp(what, "forked")   ? forked()
	        : !strcmp(what, "beside")   ? beside()
	        : !strcmp(what, "moved")    ? moved(path)
	        : !strcmp(what, "long")     ? long_name()
	        : !strcmp(what, "unloaded") ? unloaded()
	        : !strcmp(what, "mapped")   ? mapped()
	        : !strcmp(what, "devices")  ? devices()
	        : !strcmp(what, "hidden")   ? hidden()
	        : !strcmp(what, "fault")    ? fault()
	                                    : -1;
	return e ? fprintf(stderr, "%s: error %d\n", what, e), 1 : 0;
}
