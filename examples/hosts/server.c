/* SPDX-License-Identifier: MIT */
/*
 * A server that computes y = a * x + y for its clients: it builds and loads one program, and two threads take requests from
 * a Unix socket, each with a launch, a stream and buffers of its own, since a prepared launch is used by one thread at a
 * time.
 *
 *   CPTX_DEVICE=emu:sm_90a build/examples/hosts/server            # serves itself: two clients, 20 requests each
 *   build/examples/hosts/server /tmp/saxpy.socket                 # serves whoever connects, until it is ended
 *
 * A request is struct request, then n f32 of x and n of y; the answer is a uint32_t, 0, and n f32, or 1 where it failed.
 */
#include "examples.h"

#include <cptx/device.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { THREADS = 2, MOST = 4096, TIMES = 20 };

struct request {
	uint32_t n; /* 1 to MOST */
	float a;
};

struct server {
	cptx_device *dev;
	cptx_program *program;
	int listener;
	atomic_int served;
	bool endless;
	atomic_int clients; /* still to come, unless endless */
};

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
	cptx_stream *stream;
	cptx_launch *launch;
	uint64_t x, y;
	float buffer[2][MOST];
};

static bool compute(struct worker *w, const struct request *r, cptx_error *err)
{
	cptx_device *dev = w->s->dev;
	const size_t size = r->n * sizeof(float);

	return cptx_mem_write(dev, w->x, w->buffer[0], size, err) && cptx_mem_write(dev, w->y, w->buffer[1], size, err) &&
	       cptx_launch_set(w->launch, 2, r->a, err) && cptx_launch_set(w->launch, 3, r->n, err) &&
	       cptx_launch_run(w->launch, w->stream, err) && cptx_stream_synchronize(dev, w->stream, err) &&
	       cptx_mem_read(dev, w->buffer[1], w->y, size, err);
}

/* Answers all requests of a client. */
static void answer(struct worker *w, int client)
{
	struct request r;

	while (get(client, &r, sizeof r)) {
		cptx_error err = { .code = CPTX_OK };
		if (r.n < 1 || r.n > MOST || !get(client, w->buffer[0], r.n * sizeof(float)) ||
		    !get(client, w->buffer[1], r.n * sizeof(float)))
			return;
		uint32_t failed = !compute(w, &r, &err);
		if (failed)
			fprintf(stderr, "%s\n", err.text);
		if (!put(client, &failed, sizeof failed) || failed || !put(client, w->buffer[1], r.n * sizeof(float)))
			return;
		atomic_fetch_add(&w->s->served, 1);
	}
}

static void *serve(void *user)
{
	struct server *s = (struct server *)user;
	struct worker *w = (struct worker *)calloc(1, sizeof *w);
	cptx_error err = { .code = CPTX_OK };

	if (!w)
		return NULL;
	w->s = s;
	w->stream = cptx_stream_new(s->dev, &err);
	w->x = cptx_mem_alloc(s->dev, sizeof w->buffer[0], &err);
	w->y = cptx_mem_alloc(s->dev, sizeof w->buffer[1], &err);
	w->launch =
		cptx_launch_new(s->program, "saxpy", CPTX_LAUNCH(.grid = { MOST / 256 }, CPTX_ARGS(w->x, w->y, 0.0f, 0u)), &err);
	while (w->launch && (s->endless || atomic_fetch_sub(&s->clients, 1) > 0)) {
		int client = accept(s->listener, NULL, NULL);
		if (client < 0)
			break;
		answer(w, client);
		close(client);
	}
	if (err.code != CPTX_OK)
		fprintf(stderr, "%s\n", err.text);
	cptx_launch_destroy(w->launch);
	cptx_mem_free(s->dev, w->x);
	cptx_mem_free(s->dev, w->y);
	cptx_stream_destroy(w->stream);
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
	unlink(path);
	return bind(s, (const struct sockaddr *)&at, sizeof at) || listen(s, 16) ? -1 : s;
}

/* ---- a client ---- */

/* Sends requests and compares the answers; returns how many were right, as a pointer. */
static void *ask(void *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	uintptr_t right = 0;
	static const float a = 2;
	float x[1000], y[1000], got[1000];

	strcpy(at.sun_path, (const char *)path);
	if (connect(s, (const struct sockaddr *)&at, sizeof at))
		return NULL;
	for (uint32_t i = 0; i < TIMES; i++) {
		struct request r = { 50 * i + 1, a };
		uint32_t failed = 1, wrong = 0;
		for (uint32_t j = 0; j < r.n; j++)
			x[j] = (float)(i + j), y[j] = (float)i;
		if (!put(s, &r, sizeof r) || !put(s, x, r.n * sizeof *x) || !put(s, y, r.n * sizeof *y) ||
		    !get(s, &failed, sizeof failed) || failed || !get(s, got, r.n * sizeof *got))
			break;
		for (uint32_t j = 0; j < r.n; j++)
			wrong += got[j] != a * x[j] + y[j];
		right += !wrong;
	}
	close(s);
	return (void *)right;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/cptx-server-XXXXXX";
	const char *name = getenv("CPTX_DEVICE");
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);
	struct server s = { .listener = -1, .endless = argc > 1, .clients = THREADS };
	pthread_t thread[THREADS], client[THREADS];
	uintptr_t right = 0;

	saxpy(m);
	s.dev = cptx_device_open(name ? name : "cuda", &err);
	s.program = s.dev ? cptx_device_load(s.dev, m, NULL, &err) : NULL;
	cptx_module_destroy(m);
	if (argc < 2)
		close(mkstemp(path));
	if (s.program && (s.listener = listen_at(argc > 1 ? argv[1] : path)) < 0)
		perror(argc > 1 ? argv[1] : path);
	for (int i = 0; s.listener >= 0 && i < THREADS; i++)
		pthread_create(&thread[i], NULL, serve, &s);
	for (int i = 0; s.listener >= 0 && argc < 2 && i < THREADS; i++)
		pthread_create(&client[i], NULL, ask, path);
	for (int i = 0; s.listener >= 0 && i < THREADS; i++) {
		void *count = NULL;
		if (argc < 2)
			pthread_join(client[i], &count);
		right += (uintptr_t)count;
		pthread_join(thread[i], NULL);
	}
	if (argc < 2)
		unlink(path);
	if (err.code != CPTX_OK)
		fprintf(stderr, "%s\n", err.text);
	else
		printf("%d requests served, %u of %d answers right\n", atomic_load(&s.served), (unsigned)right, THREADS * TIMES);
	if (s.listener >= 0)
		close(s.listener);
	cptx_program_destroy(s.program);
	cptx_device_close(s.dev);
	return err.code != CPTX_OK || right != THREADS * TIMES;
}
