/* SPDX-License-Identifier: MIT */
/*
 * Devices and their contexts: those of --devices N, which one emulator stands for.  A context says little more than which
 * device it is of: memory and modules go with the device.  Work of different devices is done one after the other.
 */
#include "context.h"
#include "api.h"
#include "forms.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

/* ---- contexts ---- */

/* A CUcontext. */
typedef struct context {
	struct context *next; /* of those that were created */
	int device;
} context;
static context primary[SAN_DEVICES];
static context *created;
static _Thread_local context *current[16];
static _Thread_local unsigned depth;
static _Thread_local int
	chosen; /* by cudaSetDevice; where there is no context, its primary one is made current by the runtime */

/* Whether the handle is a context that exists. */
static bool lives(const context *c)
{
	for (const context *x = created; x; x = x->next)
		if (x == c)
			return true;
	return c >= primary && c < primary + san.ndevice;
}

static context *primary_of(int device)
{
	primary[device].device = device;
	return &primary[device];
}

bool san_is_device(int number) { return number >= 0 && number < san.ndevice; }

int san_current_device(void) { return depth && lives(current[depth - 1]) ? current[depth - 1]->device : chosen; }

static int push(context *c)
{
	if (!lives(c))
		return SAN_CONTEXT;
	if (depth == sizeof current / sizeof *current)
		return SAN_MEMORY;
	current[depth++] = c;
	return SAN_OK;
}

static int pop(context **out)
{
	if (!depth)
		return SAN_CONTEXT;
	depth--;
	if (out)
		*out = current[depth];
	return SAN_OK;
}

static int replace(context *c)
{
	if (c && !lives(c))
		return SAN_CONTEXT;
	if (depth)
		depth--;
	return c ? push(c) : SAN_OK;
}

static int context_new(context **out, int device)
{
	if (!san_is_device(device))
		return SAN_DEVICE;
	context *c = (context *)calloc(1, sizeof *c);
	if (!c)
		return SAN_MEMORY;
	*c = (context){ .next = created, .device = device };
	created = c;
	*out = c;
	return push(c);
}

static int context_free(context *c)
{
	context **p = &created;

	while (*p && *p != c)
		p = &(*p)->next;
	if (!*p)
		return lives(c) ? SAN_OK : SAN_CONTEXT; /* a primary one stays */
	if (depth && current[depth - 1] == c)
		depth--;
	*p = c->next;
	free(c);
	return SAN_OK;
}

static context *current_context(void)
{
	return depth && lives(current[depth - 1]) ? current[depth - 1] : san_used_runtime ? primary_of(chosen) : NULL;
}

static int retain(context **out, int device)
{
	if (!san_is_device(device))
		return SAN_DEVICE;
	*out = primary_of(device);
	return SAN_OK;
}

static int current_device(int *out)
{
	const context *c = current_context();

	if (c)
		*out = c->device;
	return c ? SAN_OK : SAN_CONTEXT;
}

/* The runtime makes the primary context of a device current. */
static int set_device(int number)
{
	if (!san_is_device(number))
		return SAN_DEVICE;
	chosen = number;
	return depth ? replace(primary_of(number)) : SAN_OK;
}

/* ---- peers ---- */

static uint64_t peers[SAN_DEVICES]; /* of each device: those whose memory it reaches */

uint64_t san_reached_by(int device)
{
	uint64_t by = UINT64_C(1) << device;

	for (int d = 0; d < san.ndevice; d++)
		by |= (peers[d] >> device & 1) << d;
	return by;
}

/* Memory of the device, and variables of its modules, are reached by those that reach it now. */
static void reach_again(int device)
{
	const uint64_t by = san_reached_by(device);
	cptx_error err = { .code = CPTX_OK };
	cptx_emu_variable_info v;

	for (const san_block *b = san.blocks; b; b = b->next)
		if (b->device == device && b->type == RT_DEVICE && !b->mapped && !b->pooled)
			cptx_emu_reach(san.dev, b->at, by, &err);
	for (const san_module *m = san.modules; m; m = m->next)
		for (size_t i = 0; m->program[device] && cptx_emu_variable(m->program[device], i, &v); i++)
			cptx_emu_reach(san.dev, v.at, by, &err);
}

static int enable(int of, unsigned flags)
{
	const int device = san.device;

	if (flags || !san_is_device(of) || of == device)
		return flags ? SAN_VALUE : SAN_DEVICE;
	if (peers[device] >> of & 1)
		return SAN_PEER_ENABLED;
	peers[device] |= UINT64_C(1) << of;
	reach_again(of);
	return SAN_OK;
}

static int disable(int of)
{
	const int device = san.device;

	if (!san_is_device(of) || of == device)
		return SAN_DEVICE;
	if (!(peers[device] >> of & 1))
		return SAN_PEER_NOT_ENABLED;
	peers[device] &= ~(UINT64_C(1) << of);
	reach_again(of);
	return SAN_OK;
}

static int can_access(int *can, int device, int peer)
{
	if (!can || !san_is_device(device) || !san_is_device(peer))
		return can ? SAN_DEVICE : SAN_VALUE;
	*can = device != peer;
	return SAN_OK;
}

/* All that CUdevice_P2PAttribute asks is there, and all links are alike: rank 0. */
static int peer_attribute(int *v, int which, int device, int peer)
{
	enum { RANK = 1, ACCESS, NATIVE_ATOMICS, ARRAYS };

	if (!v || which < RANK || which > ARRAYS)
		return SAN_VALUE;
	if (!san_is_device(device) || !san_is_device(peer) || device == peer)
		return SAN_DEVICE;
	*v = which != RANK;
	return SAN_OK;
}

static int device_of(const context *c) { return lives(c) ? c->device : -1; }

/* Copies between devices need no access: the driver copies. */
static int copy_peer(uint64_t dst, int to, uint64_t src, int from, size_t size, san_stream *s)
{
	if (!san_is_device(to) || !san_is_device(from))
		return SAN_DEVICE;
	return san_copy((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size, RT_DEFAULT, s);
}

/* ---- the driver's calls ---- */

static int text(char *to, int size, const char *from)
{
	if (size < 1)
		return SAN_VALUE;
	strncpy(to, from, (size_t)size - 1);
	to[size - 1] = 0;
	return SAN_OK;
}

static int uuid(char *to, int device)
{
	rt_device_prop p;

	san_properties(&p, device);
	memcpy(to, p.uuid, sizeof p.uuid);
	return SAN_OK;
}

/* domain:bus:device.0 */
static int bus_id(char *to, int size, int device)
{
	char name[32];

	snprintf(name, sizeof name, "0000:%02x:00.0", (unsigned)device + 1);
	return text(to, size, name);
}

static int by_bus_id(int *device, const char *name)
{
	unsigned domain = 0, bus = 0;

	if (!name || sscanf(name, "%x:%x", &domain, &bus) != 2 || !san_is_device((int)bus - 1))
		return SAN_VALUE;
	*device = (int)bus - 1;
	return SAN_OK;
}

/* An expression for a device that there is. */
#define OF(device, ...) (san_is_device(device) ? (__VA_ARGS__) : SAN_DEVICE)

DRIVER(cuInit, (unsigned flags), ((void)flags, SAN_OK))
DRIVER(cuDriverGetVersion, (int *version), (*version = CUDA_VERSION, SAN_OK))
DRIVER(cuDeviceGetCount, (int *n), (*n = san.ndevice, SAN_OK))
DRIVER(cuDeviceGet, (int *device, int number), OF(number, *device = number, SAN_OK))
DRIVER(cuDeviceGetName, (char *name, int size, int device), OF(device, text(name, size, san.info->name)))
DRIVER(cuDeviceGetUuid_v2, (char *to, int device), OF(device, uuid(to, device)))
DRIVER(cuDeviceGetAttribute, (int *v, int attribute, int device), OF(device, san_attribute(attribute, v)))
DRIVER(cuDeviceTotalMem_v2, (size_t * bytes, int device), OF(device, *bytes = (size_t)san.info->global_memory, SAN_OK))
DRIVER(cuDeviceComputeCapability, (int *major, int *minor, int device),
       OF(device, *major = san.info->compute_capability / 10, *minor = san.info->compute_capability % 10, SAN_OK))
DRIVER(cuDeviceCanAccessPeer, (int *can, int device, int peer), can_access(can, device, peer))
DRIVER(cuDeviceGetP2PAttribute, (int *v, int which, int device, int peer), peer_attribute(v, which, device, peer))
DRIVER(cuCtxEnablePeerAccess, (context * c, unsigned flags), lives(c) ? enable(c->device, flags) : SAN_CONTEXT)
DRIVER(cuCtxDisablePeerAccess, (context * c), lives(c) ? disable(c->device) : SAN_CONTEXT)
DRIVER(cuMemcpyPeer, (uint64_t dst, context *to, uint64_t src, context *from, size_t size),
       copy_peer(dst, device_of(to), src, device_of(from), size, NULL))
DRIVER(cuMemcpyPeerAsync, (uint64_t dst, context *to, uint64_t src, context *from, size_t size, san_stream *s),
       copy_peer(dst, device_of(to), src, device_of(from), size, san_stream_of(s)))
DRIVER(cuDevicePrimaryCtxRetain, (context * *ctx, int device), retain(ctx, device))
DRIVER(cuDevicePrimaryCtxRelease_v2, (int device), OF(device, SAN_OK))
DRIVER(cuDevicePrimaryCtxReset_v2, (int device), OF(device, SAN_OK))
DRIVER(cuDevicePrimaryCtxSetFlags_v2, (int device, unsigned flags), OF(device, (void)flags, SAN_OK))
DRIVER(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active), OF(device, *flags = 0, *active = 1, SAN_OK))
DRIVER(cuCtxCreate_v2, (context * *ctx, unsigned flags, int device), ((void)flags, context_new(ctx, device)))
DRIVER(cuCtxCreate_v3, (context * *ctx, const void *affinity, int n, unsigned flags, int device),
       ((void)affinity, (void)n, (void)flags, context_new(ctx, device)))
DRIVER(cuCtxCreate_v4, (context * *ctx, const void *parameters, unsigned flags, int device),
       ((void)parameters, (void)flags, context_new(ctx, device)))
DRIVER(cuCtxDestroy_v2, (context * c), context_free(c))
DRIVER(cuCtxGetCurrent, (context * *ctx), (*ctx = current_context(), SAN_OK))
DRIVER(cuCtxSetCurrent, (context * c), replace(c))
DRIVER(cuCtxPushCurrent_v2, (context * c), push(c))
DRIVER(cuCtxPopCurrent_v2, (context * *ctx), pop(ctx))
DRIVER(cuCtxGetDevice, (int *device), current_device(device))
DRIVER(cuCtxGetDevice_v2, (int *device, context *c), lives(c) ? (*device = c->device, SAN_OK) : SAN_CONTEXT)
#define CONTEXT_OF(s) primary_of(san_stream_of(s) ? (s)->device : san.device)
DRIVER(cuStreamGetCtx, (san_stream * s, context **ctx), (*ctx = CONTEXT_OF(s), SAN_OK))
DRIVER(cuStreamGetCtx_v2, (san_stream * s, context **ctx, void **green), (*ctx = CONTEXT_OF(s), *green = NULL, SAN_OK))
DRIVER(cuCtxSynchronize, (void), SAN_OK)
DRIVER(cuCtxSynchronize_v2, (context * c), lives(c) ? SAN_OK : SAN_CONTEXT)
DRIVER(cuCtxGetApiVersion, (context * c, unsigned *version), ((void)c, *version = CUDA_VERSION / 10, SAN_OK))
DRIVER(cuCtxSetCacheConfig, (int config), ((void)config, SAN_OK))
DRIVER(cuCtxSetLimit, (int limit, size_t value), ((void)limit, (void)value, SAN_OK))
DRIVER(cuCtxGetLimit, (size_t * value, int limit), ((void)limit, *value = 1024, SAN_OK))

/* ---- the runtime's ---- */

CALL(cudaGetDeviceCount, (int *n), (*n = san.ndevice, SAN_OK))
CALL(cudaSetDevice, (int number), set_device(number))
CALL(cudaInitDevice, (int number, unsigned device_flags, unsigned flags),
     ((void)device_flags, (void)flags, san_is_device(number) ? SAN_OK : SAN_DEVICE))
CALL(cudaGetDevice, (int *number), (*number = san.device, SAN_OK))
CALL(cudaChooseDevice, (int *number, const rt_device_prop *p), ((void)p, *number = 0, SAN_OK))
CALL(cudaGetDeviceProperties, (rt_device_prop * p, int number), OF(number, san_properties(p, number), SAN_OK))
CALL(cudaDeviceGetAttribute, (int *v, int attribute, int number), OF(number, san_attribute(attribute, v)))
BOTH(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *name, int size, int number), OF(number, bus_id(name, size, number)))
BOTH(cudaDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, (int *number, const char *name), by_bus_id(number, name))
CALL(cudaDeviceCanAccessPeer, (int *can, int number, int peer), can_access(can, number, peer))
CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), enable(peer, flags))
CALL(cudaDeviceDisablePeerAccess, (int peer), disable(peer))
CALL(cudaDeviceGetP2PAttribute, (int *v, int which, int number, int peer), peer_attribute(v, which, number, peer))
CALL(cudaMemcpyPeer, (void *dst, int to, const void *src, int from, size_t size),
     copy_peer((uintptr_t)dst, to, (uintptr_t)src, from, size, NULL))
CALL(cudaMemcpyPeerAsync, (void *dst, int to, const void *src, int from, size_t size, san_stream *s),
     copy_peer((uintptr_t)dst, to, (uintptr_t)src, from, size, san_stream_of(s)))
