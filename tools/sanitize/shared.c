/* SPDX-License-Identifier: MIT */
/* Memory that processes share, and the handles by which they tell one another of it. */
#include "shared.h"
#include "api.h"
#include "context.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct san_shared {
	int fd;
	void *bytes;
	size_t size;
};

/* Takes the descriptor over. */
static san_shared *mapped(int fd, size_t size)
{
	san_shared *s = (san_shared *)calloc(1, sizeof *s);
	void *p = s ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (p == MAP_FAILED) {
		close(fd);
		free(s);
		return NULL;
	}
	*s = (san_shared){ .fd = fd, .bytes = p, .size = size };
	return s;
}

san_shared *san_shared_new(size_t size)
{
	int fd = memfd_create("cptx-sanitize", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		fd = -1;
	}
	return fd < 0 ? NULL : mapped(fd, size);
}

san_shared *san_shared_open(int fd)
{
	char path[64], name[64] = "";
	struct stat st;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, name, sizeof name - 1);
	/* a descriptor of anything else is no memory of cuMemCreate: its length may change behind our back */
	if (own < 0 || n < 0 || strncmp(name, "/memfd:cptx-sanitize", 20) || fstat(own, &st) || st.st_size < 1) {
		if (own >= 0)
			close(own);
		return NULL;
	}
	return mapped(own, (size_t)st.st_size);
}

void san_shared_free(san_shared *s)
{
	if (!s)
		return;
	munmap(s->bytes, s->size);
	close(s->fd);
	free(s);
}

void *san_shared_bytes(const san_shared *s) { return s->bytes; }
size_t san_shared_size(const san_shared *s) { return s->size; }
int san_shared_fd(const san_shared *s) { return fcntl(s->fd, F_DUPFD_CLOEXEC, 3); }

/* ---- handles of memory ---- */

/* CUipcMemHandle and CUipcEventHandle, and what is in them here. */
typedef struct ipc_handle {
	char bytes[64];
} ipc_handle;
typedef struct ticket {
	char mark[8];
	int process, fd;
	uint64_t size;
} ticket;
static const char memory_mark[8] = "cptxipcm", event_mark[8] = "cptxipce";

/* The memory of a block becomes memory that others can open, with what is in it. */
static int share(san_block *b)
{
	cptx_error err = { .code = CPTX_OK };

	if (b->shared)
		return SAN_OK;
	b->shared = san_shared_new(b->size);
	if (!b->shared)
		return SAN_MEMORY;
	if (cptx_emu_back(san.dev, b->at, san_shared_bytes(b->shared), &err))
		return SAN_OK;
	san_shared_free(b->shared);
	b->shared = NULL;
	return san_failed("a handle for other processes", &err);
}

static int memory_handle(ipc_handle *out, uint64_t at)
{
	san_block *b = san_block_at(at);

	if (!out || !b || b->type != RT_DEVICE || b->mapped || b->of_graph || b->opened)
		return SAN_VALUE;
	int e = share(b);
	if (e)
		return e;
	ticket t = { .process = (int)getpid(), .fd = b->shared->fd, .size = b->size };
	memcpy(t.mark, memory_mark, sizeof t.mark);
	memset(out, 0, sizeof *out);
	memcpy(out, &t, sizeof t);
	return SAN_OK;
}

static int open_memory(uint64_t *at, const ipc_handle *handle)
{
	cptx_error err = { .code = CPTX_OK };
	char path[64];
	ticket t;

	memcpy(&t, handle, sizeof t);
	if (!at || memcmp(t.mark, memory_mark, sizeof t.mark))
		return SAN_VALUE;
	if (t.process == (int)getpid()) /* the pointer itself is there */
		return SAN_CONTEXT;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", t.process, t.fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	san_shared *s = fd < 0 ? NULL : san_shared_open(fd);
	if (fd >= 0)
		close(fd);
	if (!s || s->size < t.size) {
		san_say("the memory of process %d cannot be opened: it was freed, or the process has ended", t.process);
		san_shared_free(s);
		return SAN_VALUE;
	}
	*at = cptx_emu_map(san.dev, s->bytes, (size_t)t.size, &err);
	int e = *at ? san_block_add(*at, NULL, (size_t)t.size, RT_DEVICE) : san_failed("memory of another process", &err);
	if (e) {
		cptx_mem_free(san.dev, *at);
		san_shared_free(s);
		return e;
	}
	san_block *b = san_block_at(*at);
	b->shared = s, b->opened = true;
	return SAN_OK;
}

static int close_memory(uint64_t at)
{
	san_block *b = san_block_at(at);

	if (!b || !b->opened || b->at != at)
		return SAN_VALUE;
	b->opened = false;
	return san_free(at, false);
}

/* ---- handles of events: work is done when it was asked for, so an event of another process is reached ---- */

static int event_handle(ipc_handle *out, const san_event *e)
{
	ticket t = { .process = (int)getpid() };

	if (!out || !e)
		return SAN_VALUE;
	memcpy(t.mark, event_mark, sizeof t.mark);
	memset(out, 0, sizeof *out);
	memcpy(out, &t, sizeof t);
	return SAN_OK;
}

static int open_event(san_event **out, const ipc_handle *handle)
{
	if (!out || memcmp(handle, event_mark, sizeof event_mark))
		return SAN_VALUE;
	*out = (san_event *)calloc(1, sizeof **out);
	if (!*out)
		return SAN_MEMORY;
	(*out)->recorded = true;
	clock_gettime(CLOCK_MONOTONIC, &(*out)->at);
	return SAN_OK;
}

BOTH(cudaIpcGetMemHandle, cuIpcGetMemHandle, (ipc_handle * out, uint64_t at), memory_handle(out, at))
BOTH(cudaIpcOpenMemHandle, cuIpcOpenMemHandle_v2, (uint64_t * at, ipc_handle handle, unsigned flags),
     ((void)flags, open_memory(at, &handle)))
BOTH(cudaIpcCloseMemHandle, cuIpcCloseMemHandle, (uint64_t at), close_memory(at))
BOTH(cudaIpcGetEventHandle, cuIpcGetEventHandle, (ipc_handle * out, san_event *e), event_handle(out, e))
BOTH(cudaIpcOpenEventHandle, cuIpcOpenEventHandle, (san_event * *out, ipc_handle handle), open_event(out, &handle))
