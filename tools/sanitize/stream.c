/* SPDX-License-Identifier: MIT */
/* Streams and events of the runtime: work is done at once, so they are in order by themselves. */
#include "api.h"
#include "graph.h"

#include <stdlib.h>

san_stream *san_stream_of(san_stream *handle) { return (uintptr_t)handle <= 2 ? NULL : handle; }

static int stream_new(san_stream **out, unsigned flags, int priority)
{
	san_stream *s = out ? (san_stream *)calloc(1, sizeof *s) : NULL;

	if (!s)
		return out ? SAN_MEMORY : SAN_VALUE;
	s->device = san.device;
	s->flags = flags, s->priority = priority, s->id = ++san.nstreams;
	s->next = san.streams;
	san.streams = s;
	*out = s;
	return SAN_OK;
}

/* A stream that captures the graph, or NULL: the capture has ended. */
static san_stream *capturing(const san_graph *g)
{
	san_stream *s = san.streams;

	while (s && (!g || s->capture != g))
		s = s->next;
	return s;
}

/* No stream captures the graph any more. */
static void leave(const san_graph *g)
{
	for (san_stream *member; (member = capturing(g));)
		member->capture = NULL, member->joined = false;
}

static int stream_free(san_stream *s)
{
	san_stream **p = &san.streams;

	while (*p && *p != s)
		p = &(*p)->next;
	if (!*p)
		return SAN_HANDLE;
	*p = s->next;
	if (!s->joined && s->capture) {
		leave(s->capture);
		san_graph_free(s->capture);
	}
	free(s);
	return SAN_OK;
}

/* What waits for a stream is no work to be captured. */
static int settled(san_stream *s) { return san_captures(san_stream_of(s)) ? SAN_CAPTURE : SAN_OK; }

CALL(cudaStreamCreate, (san_stream * *out), stream_new(out, 0, 0))
BOTH(cudaStreamCreateWithFlags, cuStreamCreate, (san_stream * *out, unsigned flags), stream_new(out, flags, 0))
BOTH(cudaStreamCreateWithPriority, cuStreamCreateWithPriority, (san_stream * *out, unsigned flags, int priority),
     stream_new(out, flags, priority))
BOTH(cudaStreamDestroy, cuStreamDestroy_v2, (san_stream * s), stream_free(s))
BOTH(cudaStreamSynchronize, cuStreamSynchronize, (san_stream * s), settled(s))
BOTH(cudaStreamQuery, cuStreamQuery, (san_stream * s), settled(s))
BOTH(cudaStreamGetFlags, cuStreamGetFlags, (san_stream * s, unsigned *flags),
     (*flags = san_stream_of(s) ? s->flags : 0, SAN_OK))
BOTH(cudaStreamGetPriority, cuStreamGetPriority, (san_stream * s, int *priority),
     (*priority = san_stream_of(s) ? s->priority : 0, SAN_OK))
BOTH(cudaStreamGetId, cuStreamGetId, (san_stream * s, unsigned long long *id), (*id = san_stream_of(s) ? s->id : 0, SAN_OK))
BOTH(cudaStreamGetDevice, cuStreamGetDevice, (san_stream * s, int *device),
     (*device = san_stream_of(s) ? s->device : san.device, SAN_OK))
CALL(cudaStreamSetAttribute, (san_stream * s, int id, const void *value), ((void)s, (void)id, (void)value, SAN_OK))
CALL(cudaStreamAttachMemAsync, (san_stream * s, void *p, size_t size, unsigned flags),
     ((void)s, (void)p, (void)size, (void)flags, SAN_OK))
BOTH(cudaLaunchHostFunc, cuLaunchHostFunc, (san_stream * s, void (*fn)(void *user), void *user),
     san_host_call(fn, user, san_stream_of(s)))

/* The older kind of callback gets the stream and its status, too. */
static int callback(san_stream *s, void (*fn)(san_stream *s, int status, void *user), void *user)
{
	if (settled(s))
		return SAN_CAPTURE;
	fn(s, SAN_OK, user);
	return SAN_OK;
}
BOTH(cudaStreamAddCallback, cuStreamAddCallback,
     (san_stream * s, void (*fn)(san_stream *s, int status, void *user), void *user, unsigned flags),
     ((void)flags, callback(s, fn, user)))

/* Whether a stream is captured in the mode that forbids what a graph cannot hold to the whole process. */
bool san_forbidden(void)
{
	const san_stream *s = san.streams;

	while (s && (!s->capture || s->joined || s->mode))
		s = s->next;
	return s != NULL;
}

/* ---- events ---- */

static int event_new(san_event **out)
{
	*out = (san_event *)calloc(1, sizeof **out);
	return *out ? SAN_OK : SAN_MEMORY;
}

/* An event in a stream that is captured joins streams of one graph; the order of the nodes has it already. */
static int record(san_event *e, const san_stream *s)
{
	if (!e)
		return SAN_HANDLE;
	if (!san_captures(s)) {
		clock_gettime(CLOCK_MONOTONIC, &e->at);
		e->recorded = true;
	}
	e->capture = s ? s->capture : NULL;
	return SAN_OK;
}

/* A stream that waits for an event of a captured one is captured, too. */
static int wait(san_stream *s, const san_event *e)
{
	if (!e)
		return SAN_HANDLE;
	if (s && !s->capture && capturing(e->capture))
		s->capture = e->capture, s->joined = true;
	return SAN_OK;
}

static int elapsed(float *ms, const san_event *a, const san_event *b)
{
	if (!ms || !a || !b || !a->recorded || !b->recorded)
		return SAN_HANDLE;
	*ms = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3 + (double)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6);
	return SAN_OK;
}

CALL(cudaEventCreate, (san_event * *out), event_new(out))
BOTH(cudaEventCreateWithFlags, cuEventCreate, (san_event * *out, unsigned flags), ((void)flags, event_new(out)))
BOTH(cudaEventDestroy, cuEventDestroy_v2, (san_event * e), (free(e), SAN_OK))
BOTH(cudaEventRecord, cuEventRecord, (san_event * e, san_stream *s), record(e, san_stream_of(s)))
BOTH(cudaEventRecordWithFlags, cuEventRecordWithFlags, (san_event * e, san_stream *s, unsigned flags),
     ((void)flags, record(e, san_stream_of(s))))
BOTH(cudaEventQuery, cuEventQuery, (san_event * e), e ? SAN_OK : SAN_HANDLE)
BOTH(cudaEventSynchronize, cuEventSynchronize, (san_event * e), e ? SAN_OK : SAN_HANDLE)
BOTH(cudaEventElapsedTime, cuEventElapsedTime, (float *ms, san_event *a, san_event *b), elapsed(ms, a, b))
DRIVER(cuEventElapsedTime_v2, (float *ms, san_event *a, san_event *b), elapsed(ms, a, b))
BOTH(cudaStreamWaitEvent, cuStreamWaitEvent, (san_stream * s, san_event *e, unsigned flags),
     ((void)flags, wait(san_stream_of(s), e)))

/* ---- capture ---- */

static int capture_begin(san_stream *s, int mode)
{
	if (!s)
		return SAN_CAPTURE; /* the legacy stream */
	if (s->capture)
		return SAN_NO_CAPTURE;
	s->mode = mode;
	s->capture = san_graph_new();
	return s->capture ? SAN_OK : SAN_MEMORY;
}

static int capture_end(san_stream *s, san_graph **out)
{
	if (!s || !s->capture || s->joined)
		return SAN_NO_CAPTURE;
	*out = s->capture;
	leave(*out);
	return SAN_OK;
}

BOTH(cudaStreamBeginCapture, cuStreamBeginCapture_v2, (san_stream * s, int mode), capture_begin(san_stream_of(s), mode))
BOTH(cudaStreamEndCapture, cuStreamEndCapture, (san_stream * s, san_graph **out), capture_end(san_stream_of(s), out))
BOTH(cudaStreamIsCapturing, cuStreamIsCapturing, (san_stream * s, int *status),
     (*status = san_captures(san_stream_of(s)), SAN_OK))

/* What a stream captures depends on what it captured last. */
static int capture_info(san_stream *s, int *status, unsigned long long *id, san_graph **g, san_node *const **on,
                        const void **edges, size_t *n)
{
	const bool goes_on = san_captures(s);

	if (!status)
		return SAN_VALUE;
	*status = goes_on;
	if (!goes_on)
		return SAN_OK;
	s->newest = san_graph_newest(s->capture);
	if (id)
		*id = (uintptr_t)s->capture;
	if (g)
		*g = s->capture;
	if (on)
		*on = &s->newest;
	if (edges)
		*edges = NULL; /* full dependencies */
	if (n)
		*n = s->newest != NULL;
	return SAN_OK;
}
BOTH(cudaStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3,
     (san_stream * s, int *status, unsigned long long *id, san_graph **g, san_node *const **on, const void **edges,
      size_t *n),
     capture_info(san_stream_of(s), status, id, g, on, edges, n))
/* Until CUDA 12.2, and until 11.2 */
DRIVER(cuStreamGetCaptureInfo_v2,
       (san_stream * s, int *status, unsigned long long *id, san_graph **g, san_node *const **on, size_t *n),
       capture_info(san_stream_of(s), status, id, g, on, NULL, n))
DRIVER(cuStreamGetCaptureInfo, (san_stream * s, int *status, unsigned long long *id),
       capture_info(san_stream_of(s), status, id, NULL, NULL, NULL, NULL))
CALL(cudaThreadExchangeStreamCaptureMode, (int *mode), ((void)mode, SAN_OK))
