/* SPDX-License-Identifier: MIT */
/* Devices by name; streams, events and memory: the part that all kinds of devices share. */
#include "runtime/runtime.h"
#include <cptx/emu.h>

#include <stdlib.h>

bool no_memory(cptx_error *err, cptx_site at) { return error_set(err, CPTX_E_MEMORY, at, "out of memory"); }

/* ---- by name ---- */

enum { MAX_INDEX = 9999 };

/* Reads the end of a device name: "" or ":N". */
static bool read_index(const char *s, unsigned *n)
{
	*n = 0;
	if (!*s)
		return true;
	if (*s++ != ':' || !*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || *n > MAX_INDEX)
			return false;
		*n = *n * 10 + (unsigned)(*s - '0');
	}
	return true;
}

/* Whether a name is "emu" or "emu:TARGET", a device of the emulator. */
static bool is_emulator(const char *name) { return !strncmp(name, "emu", 3) && (!name[3] || name[3] == ':'); }

/* Whether a name is of a kind of device that exists; *index gets the text behind the kind. */
static bool known_kind(const char *name, const char **index, cptx_error *err)
{
	*index = "";
	if (!strncmp(name, "cuda", 4) && (!name[4] || name[4] == ':')) {
		*index = name + 4;
		return true;
	}
	return error_set(err, CPTX_E_ARG, NOWHERE,
	                 "\"%s\" is no device name; those are \"cuda\", \"cuda:N\" and \"emu:sm_90a\" or another target", name);
}

unsigned cptx_device_count(const char *kind, cptx_error *err)
{
	const char *rest;

	if (!may_go(err))
		return 0;
	if (kind && is_emulator(kind))
		return emulator_there(err);
	if (!known_kind(kind ? kind : "cuda", &rest, err))
		return 0;
	return cuda_count(err);
}

cptx_device *cptx_device_open(const char *name, cptx_error *err)
{
	const char *rest;
	unsigned n;

	name = name ? name : "cuda";
	if (may_go(err) && is_emulator(name))
		return cptx_emu_open(name[3] ? name + 4 : "sm_100a", NULL, err);
	if (!may_go(err) || !known_kind(name, &rest, err))
		return NULL;
	if (!read_index(rest, &n)) {
		error_set(err, CPTX_E_ARG, NOWHERE, "\"%s\" is no device name: a number from 0 on follows \"cuda:\"", name);
		return NULL;
	}
	return cuda_open(n, err);
}

cptx_device *cptx_device_adopt(void *context, cptx_error *err) { return may_go(err) ? cuda_adopt(context, err) : NULL; }

void device_hold(cptx_device *dev) { atomic_fetch_add(&dev->refs, 1u); }

void device_drop(cptx_device *dev)
{
	if (!atomic_fetch_sub(&dev->refs, 1u))
		dev->ops->close(dev);
}

void cptx_device_close(cptx_device *dev)
{
	if (dev)
		device_drop(dev);
}

const cptx_device_info *cptx_device_get_info(const cptx_device *dev) { return dev ? &dev->info : NULL; }

void *cptx_device_context(const cptx_device *dev) { return dev ? dev->ops->context(dev) : NULL; }

void *cptx_device_symbol(const cptx_device *dev, const char *name)
{
	return dev && name ? dev->ops->symbol(dev, name) : NULL;
}

/* Whether the call of that name on `object` (a device, stream, ...) may go on: false if an error is set already, or, with an
 * error, if the object is NULL. */
static bool given(const char *function, const void *object, const char *what, cptx_error *err)
{
	if (!may_go(err))
		return false;
	return object || error_null(function, what, NOWHERE, err);
}

bool cptx_device_make_current(cptx_device *dev, cptx_error *err)
{
	return given(__func__, dev, "device", err) && dev->ops->make_current(dev, err);
}

bool cptx_device_synchronize(cptx_device *dev, cptx_error *err)
{
	return given(__func__, dev, "device", err) && dev->ops->synchronize(dev, err);
}

/* ---- streams ---- */

static bool same_device(const cptx_device *dev, const cptx_stream *s, cptx_error *err)
{
	if (!s || s->dev == dev)
		return true;
	return error_set(err, CPTX_E_ARG, NOWHERE, "the stream belongs to another device");
}

static cptx_stream *stream_make(cptx_device *dev, bool adopt, void *handle, cptx_error *err)
{
	cptx_stream *s = given(__func__, dev, "device", err) ? NEW_UNSET(cptx_stream, 1) : NULL;

	if (!s) {
		no_memory(err, NOWHERE);
		return NULL;
	}
	*s = (cptx_stream){ .dev = dev, .handle = handle, .adopted = adopt };
	if (adopt ? dev->ops->stream_adopt(dev, handle, err) : dev->ops->stream_new(dev, &s->handle, err)) {
		device_hold(dev);
		return s;
	}
	free(s);
	return NULL;
}

cptx_stream *cptx_stream_new(cptx_device *dev, cptx_error *err) { return stream_make(dev, false, NULL, err); }

cptx_stream *cptx_stream_adopt(cptx_device *dev, void *stream, cptx_error *err)
{
	return stream_make(dev, true, stream, err);
}

void cptx_stream_destroy(cptx_stream *s)
{
	if (!s)
		return;
	if (!s->adopted)
		s->dev->ops->stream_destroy(s->dev, s->handle);
	device_drop(s->dev);
	free(s);
}

void *cptx_stream_handle(const cptx_stream *s) { return s ? s->handle : NULL; }

bool cptx_stream_synchronize(cptx_device *dev, cptx_stream *s, cptx_error *err)
{
	return given(__func__, dev, "device", err) && same_device(dev, s, err) &&
	       dev->ops->stream_synchronize(dev, cptx_stream_handle(s), err);
}

bool cptx_stream_wait(cptx_stream *s, cptx_event *e, cptx_error *err)
{
	return given(__func__, e, "event", err) && same_device(e->dev, s, err) &&
	       e->dev->ops->stream_wait(e->dev, cptx_stream_handle(s), e->handle, err);
}

/* ---- events ---- */

cptx_event *cptx_event_new(cptx_device *dev, cptx_error *err)
{
	cptx_event *e = given(__func__, dev, "device", err) ? NEW_UNSET(cptx_event, 1) : NULL;

	if (!e) {
		no_memory(err, NOWHERE);
		return NULL;
	}
	*e = (cptx_event){ .dev = dev };
	if (dev->ops->event_new(dev, &e->handle, err)) {
		device_hold(dev);
		return e;
	}
	free(e);
	return NULL;
}

void cptx_event_destroy(cptx_event *e)
{
	if (!e)
		return;
	e->dev->ops->event_destroy(e->dev, e->handle);
	device_drop(e->dev);
	free(e);
}

bool cptx_event_record(cptx_event *e, cptx_stream *s, cptx_error *err)
{
	return given(__func__, e, "event", err) && same_device(e->dev, s, err) &&
	       e->dev->ops->event_record(e->dev, e->handle, cptx_stream_handle(s), err);
}

bool cptx_event_synchronize(cptx_event *e, cptx_error *err)
{
	return given(__func__, e, "event", err) && e->dev->ops->event_synchronize(e->dev, e->handle, err);
}

bool cptx_event_elapsed(cptx_event *start, cptx_event *end, float *ms, cptx_error *err)
{
	return given(__func__, start, "start event", err) && given(__func__, end, "end event", err) &&
	       given(__func__, ms, "result", err) &&
	       start->dev->ops->event_elapsed(start->dev, start->handle, end->handle, ms, err);
}

/* ---- memory ---- */

uint64_t cptx_mem_alloc(cptx_device *dev, size_t size, cptx_error *err)
{
	if (!given(__func__, dev, "device", err))
		return 0;
	if (!size) {
		error_set(err, CPTX_E_ARG, NOWHERE, "an allocation of 0 bytes of device memory");
		return 0;
	}
	return dev->ops->alloc(dev, size, err);
}

void cptx_mem_free(cptx_device *dev, uint64_t ptr)
{
	if (dev && ptr)
		dev->ops->free(dev, ptr);
}

uint64_t cptx_emu_map(cptx_device *dev, void *host, size_t size, cptx_error *err)
{
	if (!given(__func__, dev, "device", err) || !given(__func__, host, "memory to map", err))
		return 0;
	if (!dev->ops->map) {
		error_set(err, CPTX_E_ARG, NOWHERE, "%s is no emulator: it cannot use memory of the host as its own",
		          dev->info.name);
		return 0;
	}
	if (!size) {
		error_set(err, CPTX_E_ARG, NOWHERE, "a mapping of 0 bytes");
		return 0;
	}
	return dev->ops->map(dev, host, size, err);
}

uint64_t cptx_emu_unified(cptx_device *dev, size_t size, cptx_error *err)
{
	if (!given(__func__, dev, "device", err))
		return 0;
	if (dev->ops->unified && size)
		return dev->ops->unified(dev, size, err);
	if (dev->ops->unified)
		error_set(err, CPTX_E_ARG, NOWHERE, "an allocation of 0 bytes");
	else
		error_set(err, CPTX_E_ARG, NOWHERE, "%s is no emulator: it has no memory at an address of the host program",
		          dev->info.name);
	return 0;
}

void *cptx_emu_host(cptx_device *dev, uint64_t ptr, size_t size, cptx_error *err)
{
	if (!given(__func__, dev, "device", err))
		return NULL;
	if (dev->ops->host)
		return dev->ops->host(dev, ptr, size, err);
	error_set(err, CPTX_E_ARG, NOWHERE, "%s is no emulator: the host cannot reach its memory", dev->info.name);
	return NULL;
}

static bool move(const char *function, cptx_device *dev, transfer t, cptx_stream *s, cptx_error *err)
{
	if (!given(function, dev, "device", err) || !same_device(dev, s, err))
		return false;
	if (!t.n)
		return true;
	if ((t.kind == TRANSFER_WRITE && !given(function, t.host_src, "memory of the host to read from", err)) ||
	    (t.kind == TRANSFER_READ && !given(function, t.host_dst, "memory of the host to write to", err)))
		return false;
	if (t.kind == TRANSFER_FILL32 && t.dst % 4)
		return error_set(err, CPTX_E_ARG, NOWHERE, "filling 32-bit words at address 0x%llx, which is no multiple of 4",
		                 (unsigned long long)t.dst);
	if (t.kind == TRANSFER_FILL32 && t.n > SIZE_MAX / 4)
		return error_set(err, CPTX_E_ARG, NOWHERE, "filling %zu words of 32 bits, which no allocation has", t.n);
	t.stream = cptx_stream_handle(s);
	return dev->ops->transfer(dev, &t, err);
}

bool cptx_mem_write(cptx_device *dev, uint64_t dst, const void *src, size_t size, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_WRITE, .dst = dst, .host_src = src, .n = size, .wait = true },
	            NULL, err);
}

bool cptx_mem_write_async(cptx_device *dev, uint64_t dst, const void *src, size_t size, cptx_stream *s, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_WRITE, .dst = dst, .host_src = src, .n = size }, s, err);
}

bool cptx_mem_read(cptx_device *dev, void *dst, uint64_t src, size_t size, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_READ, .host_dst = dst, .src = src, .n = size, .wait = true },
	            NULL, err);
}

bool cptx_mem_read_async(cptx_device *dev, void *dst, uint64_t src, size_t size, cptx_stream *s, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_READ, .host_dst = dst, .src = src, .n = size }, s, err);
}

bool cptx_mem_copy(cptx_device *dev, uint64_t dst, uint64_t src, size_t size, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_COPY, .dst = dst, .src = src, .n = size, .wait = true }, NULL,
	            err);
}

bool cptx_mem_copy_async(cptx_device *dev, uint64_t dst, uint64_t src, size_t size, cptx_stream *s, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_COPY, .dst = dst, .src = src, .n = size }, s, err);
}

bool cptx_mem_fill8(cptx_device *dev, uint64_t dst, uint8_t value, size_t size, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_FILL8, .dst = dst, .value = value, .n = size, .wait = true },
	            NULL, err);
}

bool cptx_mem_fill8_async(cptx_device *dev, uint64_t dst, uint8_t value, size_t size, cptx_stream *s, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_FILL8, .dst = dst, .value = value, .n = size }, s, err);
}

bool cptx_mem_fill32(cptx_device *dev, uint64_t dst, uint32_t value, size_t count, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_FILL32, .dst = dst, .value = value, .n = count, .wait = true },
	            NULL, err);
}

bool cptx_mem_fill32_async(cptx_device *dev, uint64_t dst, uint32_t value, size_t count, cptx_stream *s, cptx_error *err)
{
	return move(__func__, dev, (transfer){ .kind = TRANSFER_FILL32, .dst = dst, .value = value, .n = count }, s, err);
}
