/* SPDX-License-Identifier: MIT */
/*
 * A server that multiplies its clients' rows by a matrix of weights, y = x * W^T in bf16, by a kernel of a bundle.  It needs
 * libcuda and cptx_load.c, and nothing else of cptx.  Two threads take requests from a Unix socket, each with a stream
 * and buffers of its own; the kernel is loaded once and launched by both.
 *
 *   build/cptx bundle examples/hosts/kernels.txt -o build/kernels.bundle
 *   build/examples/hosts/server build/kernels.bundle                  # serves itself: two clients, 20 requests each
 *   build/examples/hosts/server build/kernels.bundle /tmp/y.socket    # serves whoever connects, until it is ended
 *   build/cptx sanitize -- build/examples/hosts/server build/kernels.bundle    # without a GPU, on the emulator
 *
 * A request is a uint32_t n, the number of rows, and n rows of K bf16; the answer is a uint32_t, 0, and n rows of N f32, or
 * 1 where it failed.
 */
#include <cptx_load.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* "project" in kernels.txt is a product of these sizes; a request of fewer rows leaves the others as they are. */
enum { ROWS = 64, N = 96, K = 128, THREADS = 2, TIMES = 20 };

static struct {
	int (*cuInit)(unsigned flags);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuStreamCreate)(void **stream, unsigned flags);
	int (*cuStreamSynchronize)(void *stream);
	int (*cuStreamDestroy_v2)(void *stream);
	int (*cuMemAlloc_v2)(uint64_t *p, size_t size);
	int (*cuMemFree_v2)(uint64_t p);
	int (*cuMemsetD8_v2)(uint64_t p, unsigned char value, size_t size);
	int (*cuMemcpyHtoD_v2)(uint64_t to, const void *from, size_t size);
	int (*cuMemcpyDtoH_v2)(void *to, uint64_t from, size_t size);
} cu;

struct server {
	void *context;
	cptx_load_kernel *kernel;
	uint64_t weights;
	int listener;
	bool endless;
	atomic_int clients; /* still to come, unless endless */
	atomic_int served;
};

static bool open_cuda(void)
{
	const char *path = getenv("CPTX_CUDA_LIBRARY"); /* which cptx_load.c reads, too */
	void *lib = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
	const struct {
		const char *name;
		void *to;
	} calls[] = { { "cuInit", &cu.cuInit },
		          { "cuDevicePrimaryCtxRetain", &cu.cuDevicePrimaryCtxRetain },
		          { "cuCtxSetCurrent", &cu.cuCtxSetCurrent },
		          { "cuStreamCreate", &cu.cuStreamCreate },
		          { "cuStreamSynchronize", &cu.cuStreamSynchronize },
		          { "cuStreamDestroy_v2", &cu.cuStreamDestroy_v2 },
		          { "cuMemAlloc_v2", &cu.cuMemAlloc_v2 },
		          { "cuMemFree_v2", &cu.cuMemFree_v2 },
		          { "cuMemsetD8_v2", &cu.cuMemsetD8_v2 },
		          { "cuMemcpyHtoD_v2", &cu.cuMemcpyHtoD_v2 },
		          { "cuMemcpyDtoH_v2", &cu.cuMemcpyDtoH_v2 } };

	for (size_t i = 0; lib && i < sizeof calls / sizeof *calls; i++) {
		void *p = dlsym(lib, calls[i].name);
		if (!p)
			break;
		memcpy(calls[i].to, &p, sizeof p);
	}
	if (cu.cuMemcpyDtoH_v2)
		return true;
	const char *why = dlerror();
	fprintf(stderr, "server: %s\n", why ? why : "the CUDA driver lacks a call");
	return false;
}

/* ---- whole messages ---- */

static bool get(int from, void *to, size_t n)
{
	for (char *p = (char *)to; n;) {
		ssize_t had = read(from, p, n);
		if (had <= 0 && !(had < 0 && errno == EINTR))
			return false;
		if (had > 0)
			p += had, n -= (size_t)had;
	}
	return true;
}

static bool put(int to, const void *from, size_t n)
{
	for (const char *p = (const char *)from; n;) {
		ssize_t had = send(to, p, n, MSG_NOSIGNAL);
		if (had <= 0 && !(had < 0 && errno == EINTR))
			return false;
		if (had > 0)
			p += had, n -= (size_t)had;
	}
	return true;
}

/* ---- a thread of the server ---- */

struct worker {
	struct server *s;
	void *stream;
	uint64_t x, y, workspace;
	uint16_t in[ROWS][K];
	float out[ROWS][N];
};

static bool compute(struct worker *w, uint32_t rows)
{
	const cptx_load_arg args[] = {
		{ .pointer = w->x }, { .pointer = w->s->weights }, { .pointer = w->y }, { .pointer = w->workspace }
	};
	char why[CPTX_LOAD_ERROR] = "the driver has failed";

	if (!cu.cuMemcpyHtoD_v2(w->x, w->in, rows * sizeof w->in[0]) &&
	    cptx_load_launch(w->s->kernel, args, w->workspace ? 4 : 3, w->stream, why) && !cu.cuStreamSynchronize(w->stream) &&
	    !cu.cuMemcpyDtoH_v2(w->out, w->y, rows * sizeof w->out[0]))
		return true;
	fprintf(stderr, "server: %s\n", why);
	return false;
}

/* Answers all requests of a client. */
static void answer(struct worker *w, int client)
{
	uint32_t rows;

	while (get(client, &rows, sizeof rows)) {
		if (rows < 1 || rows > ROWS || !get(client, w->in, rows * sizeof w->in[0]))
			return;
		const uint32_t failed = !compute(w, rows);
		if (!put(client, &failed, sizeof failed) || failed || !put(client, w->out, rows * sizeof w->out[0]))
			return;
		atomic_fetch_add(&w->s->served, 1);
	}
}

/* Zeroed memory of the device. */
static bool zeroed(uint64_t *p, size_t size) { return !cu.cuMemAlloc_v2(p, size) && !cu.cuMemsetD8_v2(*p, 0, size); }

static void *serve(void *user)
{
	struct server *s = (struct server *)user;
	struct worker *w = (struct worker *)calloc(1, sizeof *w);
	const uint64_t workspace = cptx_load_workspace(s->kernel);
	bool ready = w && !cu.cuCtxSetCurrent(s->context) && !cu.cuStreamCreate(&w->stream, 0) && zeroed(&w->x, sizeof w->in) &&
	             zeroed(&w->y, sizeof w->out) && (!workspace || zeroed(&w->workspace, workspace));

	if (!ready)
		fprintf(stderr, "server: no memory for a thread\n");
	while (ready && (s->endless || atomic_fetch_sub(&s->clients, 1) > 0)) {
		w->s = s;
		int client = accept(s->listener, NULL, NULL);
		if (client < 0)
			break;
		answer(w, client);
		close(client);
	}
	if (w && w->stream)
		cu.cuStreamDestroy_v2(w->stream);
	for (int i = 0; w && i < 3; i++) {
		const uint64_t memory[] = { w->x, w->y, w->workspace };
		if (memory[i])
			cu.cuMemFree_v2(memory[i]);
	}
	free(w);
	return NULL;
}

static int listen_at(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	if (s < 0 || strlen(path) >= sizeof at.sun_path)
		return -1;
	strcpy(at.sun_path, path);
	struct stat there;
	if (!lstat(path, &there) && S_ISSOCK(there.st_mode)) /* of a server that has ended; bind refuses any other file */
		unlink(path);
	return bind(s, (const struct sockaddr *)&at, sizeof at) || listen(s, 16) ? -1 : s;
}

/* ---- numbers whose sums are exact ---- */

static int number(uint32_t i) { return (int)(i * 2654435761u >> 20) % 5 - 2; }

static uint16_t to_bf16(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof bits);
	return (uint16_t)(bits >> 16);
}

static int weight(uint32_t n, uint32_t k) { return number(n * K + k + 7); }

static bool load_weights(struct server *s)
{
	static uint16_t w[N][K];

	for (uint32_t n = 0; n < N; n++)
		for (uint32_t k = 0; k < K; k++)
			w[n][k] = to_bf16((float)weight(n, k));
	return !cu.cuMemAlloc_v2(&s->weights, sizeof w) && !cu.cuMemcpyHtoD_v2(s->weights, w, sizeof w);
}

/* ---- a client ---- */

struct client {
	const char *path;
	int right;
	uint16_t x[ROWS][K];
	float y[ROWS][N];
};

static bool is_right(const struct client *c, uint32_t rows, uint32_t seed)
{
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t n = 0; n < N; n++) {
			int sum = 0;
			for (uint32_t k = 0; k < K; k++)
				sum += number(seed + i * K + k) * weight(n, k);
			if (c->y[i][n] != (float)sum)
				return false;
		}
	return true;
}

/* Sends requests, compares the answers, and counts those that are right. */
static void *ask(void *user)
{
	struct client *c = (struct client *)user;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	const struct timeval patience = { .tv_sec = 60 }; /* a server without memory accepts nobody */

	strcpy(at.sun_path, c->path);
	if (s < 0 || setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ||
	    connect(s, (const struct sockaddr *)&at, sizeof at)) {
		fprintf(stderr, "server: no connection to %s\n", c->path);
		if (s >= 0)
			close(s);
		return NULL;
	}
	for (uint32_t t = 0; t < TIMES; t++) {
		uint32_t rows = 1 + t * 37 % ROWS, failed = 1;
		for (uint32_t i = 0; i < rows; i++)
			for (uint32_t k = 0; k < K; k++)
				c->x[i][k] = to_bf16((float)number(t + i * K + k));
		if (!put(s, &rows, sizeof rows) || !put(s, c->x, rows * sizeof c->x[0]) || !get(s, &failed, sizeof failed) ||
		    failed || !get(s, c->y, rows * sizeof c->y[0]))
			break;
		c->right += is_right(c, rows, t);
	}
	close(s);
	return NULL;
}

/* Runs both threads, and as many clients unless others come; returns the number of answers that are right. */
static int run(struct server *s, const char *path)
{
	static struct client clients[THREADS];
	pthread_t thread[THREADS], client[THREADS];
	int right = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, serve, s))
			exit(1);
	for (int i = 0; !s->endless && i < THREADS; i++) {
		clients[i].path = path;
		if (pthread_create(&client[i], NULL, ask, &clients[i]))
			exit(1);
	}
	for (int i = 0; i < THREADS; i++) {
		if (!s->endless)
			pthread_join(client[i], NULL);
		right += clients[i].right;
		pthread_join(thread[i], NULL);
	}
	return right;
}

/* "project" of a bundle, if it is the product that this server was written for. */
static cptx_load_kernel *get_kernel(cptx_load *bundle, char *why)
{
	char sizes[64];
	uint32_t i = 0;

	snprintf(sizes, sizeof sizes, "gemm %dx%dx%dx1, bf16 * bf16 -> f32, layout tt", ROWS, N, K);
	while (i < cptx_load_count(bundle) && strcmp(cptx_load_name(bundle, i), "project"))
		i++;
	if (i < cptx_load_count(bundle) && strncmp(cptx_load_about(bundle, i), sizes, strlen(sizes))) {
		snprintf(why, CPTX_LOAD_ERROR, "project is %s, and not %s", cptx_load_about(bundle, i), sizes);
		return NULL;
	}
	return cptx_load_get(bundle, "project", why);
}

#define FOLDER "/tmp/cptx-server-XXXXXX"

int main(int argc, char **argv)
{
	char own[sizeof FOLDER + 8] = FOLDER, why[CPTX_LOAD_ERROR];
	struct server s = { .endless = argc > 2, .clients = THREADS };
	const char *path = argc > 2 ? argv[2] : own;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: server BUNDLE [SOCKET]\n");
		return 2;
	}
	if (!open_cuda())
		return 1;
	if (cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&s.context, 0) || cu.cuCtxSetCurrent(s.context) || !load_weights(&s)) {
		fprintf(stderr, "server: there is no GPU, or it has no memory\n");
		return 1;
	}
	cptx_load *bundle = cptx_load_file(argv[1], why);
	s.kernel = bundle ? get_kernel(bundle, why) : NULL;
	if (!s.kernel) {
		fprintf(stderr, "server: %s\n", why);
		cptx_load_close(bundle);
		return 1;
	}
	printf("project: %s\n", cptx_load_why(s.kernel));
	if (!s.endless) { /* a folder of its own, so that the name is nobody else's */
		if (!mkdtemp(own)) {
			perror(own);
			return 1;
		}
		strcat(own, "/socket");
	}
	if ((s.listener = listen_at(path)) < 0) {
		perror(path);
		return 1;
	}
	int right = run(&s, path);
	printf("%d requests served, %d of %d answers right\n", atomic_load(&s.served), right, THREADS * TIMES);
	close(s.listener);
	unlink(path);
	if (!s.endless) {
		own[sizeof FOLDER - 1] = 0;
		rmdir(own);
	}
	cu.cuMemFree_v2(s.weights);
	cptx_load_close(bundle);
	return right != THREADS * TIMES;
}
