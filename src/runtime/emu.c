/* SPDX-License-Identifier: MIT */
/* The emulator as a device: device_ops on a machine of src/emu.  All work is done when a call returns. */
#include "base/options.h"
#include "compile/link.h"
#include "emu/core/finding.h"
#include "emu/memory/memory.h"
#include "emu/memory/texture.h"
#include "parse/parse.h"
#include "runtime/emu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct emu_device {
	cptx_device dev;
	emu_machine *m;
	/* held for every use of the machine; recursive, because a print callback may read memory during a launch */
	pthread_mutex_t lock;
} emu_device;

static emu_machine *machine_of(const cptx_device *dev) { return ((const emu_device *)(const void *)dev)->m; }

static void emu_lock(cptx_device *dev) { pthread_mutex_lock(&((emu_device *)(void *)dev)->lock); }

static void emu_unlock(cptx_device *dev) { pthread_mutex_unlock(&((emu_device *)(void *)dev)->lock); }

static bool lock_new(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	if (pthread_mutexattr_init(&attr))
		return false;
	bool ok = !pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) && !pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return ok;
}

static void emu_close(cptx_device *dev)
{
	emu_machine_free(machine_of(dev));
	pthread_mutex_destroy(&((emu_device *)(void *)dev)->lock);
	free(dev);
}

/* ---- what has no counterpart here ---- */

static void *no_context(const cptx_device *dev)
{
	(void)dev;
	return NULL;
}

static void *no_symbol(const cptx_device *dev, const char *name)
{
	(void)dev, (void)name;
	return NULL;
}

static bool always(cptx_device *dev, cptx_error *err)
{
	(void)dev, (void)err;
	return true;
}

/* ---- streams and events ---- */

static bool stream_new(cptx_device *dev, void **handle, cptx_error *err)
{
	(void)dev, (void)err;
	*handle = NULL;
	return true;
}

static bool stream_adopt(cptx_device *dev, void *handle, cptx_error *err)
{
	(void)dev, (void)handle;
	return error_set(err, CPTX_E_ARG, NOWHERE,
	                 "the emulator has no streams of others to adopt; make one with cptx_stream_new");
}

static void drop(cptx_device *dev, void *handle) { (void)dev, (void)handle; }

static bool stream_done(cptx_device *dev, void *handle, cptx_error *err)
{
	(void)handle;
	return always(dev, err);
}

static bool stream_wait(cptx_device *dev, void *handle, void *event, cptx_error *err)
{
	(void)event;
	return stream_done(dev, handle, err);
}

static bool event_new(cptx_device *dev, void **handle, cptx_error *err)
{
	(void)dev;
	*handle = calloc(1, sizeof(struct timespec));
	return *handle || no_memory(err, NOWHERE);
}

static void event_destroy(cptx_device *dev, void *handle)
{
	(void)dev;
	free(handle);
}

static bool event_record(cptx_device *dev, void *handle, void *stream, cptx_error *err)
{
	(void)dev, (void)stream, (void)err;
	clock_gettime(CLOCK_MONOTONIC, (struct timespec *)handle);
	return true;
}

static bool event_elapsed(cptx_device *dev, void *start, void *end, float *ms, cptx_error *err)
{
	const struct timespec *a = (const struct timespec *)start, *b = (const struct timespec *)end;

	(void)dev;
	if (!a->tv_sec || !b->tv_sec)
		return error_set(err, CPTX_E_STATE, NOWHERE, "an event has not been recorded");
	*ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 + (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
	return true;
}

/* ---- memory ---- */

/* Sets the error that memory is short: addresses of the emulated device, or memory of the host. */
static void no_room(const cptx_device *dev, size_t size, cptx_error *err)
{
	const emu_machine *m = machine_of(dev);

	if (emu_alloc_fits(m, size))
		error_set(err, CPTX_E_MEMORY, NOWHERE, "no %zu bytes of memory for the emulator: the host has not got them", size);
	else
		error_set(
			err, CPTX_E_MEMORY, NOWHERE,
			"no %zu bytes of memory for the emulator: its address space has %llu bytes, and no gap of that size between "
			"the %zu allocations of %llu bytes in all",
			size, (unsigned long long)dev->info.global_memory, m->nalloc, (unsigned long long)m->bytes);
}

static uint64_t emu_alloc_memory(cptx_device *dev, size_t size, cptx_error *err)
{
	emu_lock(dev);
	uint64_t at = emu_alloc_new(machine_of(dev), size, 0, NULL, false);
	if (!at)
		no_room(dev, size, err);
	emu_unlock(dev);
	return at;
}

static void emu_free_memory(cptx_device *dev, uint64_t at)
{
	char why[EMU_WHY];

	emu_lock(dev);
	enum cptx_finding_code wrong = emu_free_wrong(machine_of(dev), at, false, why);
	if (wrong)
		emu_find_host(machine_of(dev), wrong, why);
	else
		emu_alloc_free(machine_of(dev), at);
	emu_unlock(dev);
}

static unsigned char *bytes_at(cptx_device *dev, uint64_t at, size_t n, bool write, cptx_error *err)
{
	emu_alloc *a = emu_alloc_find(machine_of(dev), at);

	if (a && n <= a->size - (at - a->at)) {
		emu_place p = { .space = SPACE_GLOBAL, .alloc = a, .offset = at - a->at };
		for (size_t i = 0; write && i < n; i += UINT32_C(1) << 30, p.offset += UINT32_C(1) << 30)
			emu_set_defined(&p, (uint32_t)MIN(n - i, (size_t)1 << 30), true);
		return a->p + (at - a->at);
	}
	const emu_freed *f = a ? NULL : emu_freed_at(machine_of(dev), at);
	error_set(err, CPTX_E_ARG, NOWHERE,
	          a   ? "%zu bytes at device address 0x%llx reach beyond their allocation of %llu bytes"
	          : f ? "%zu bytes at device address 0x%llx: the allocation of %llu bytes there was freed"
	              : "%zu bytes at device address 0x%llx: nothing is allocated there",
	          n, (unsigned long long)at,
	          (unsigned long long)(a   ? a->size
	                               : f ? f->size
	                                   : 0));
	return NULL;
}

static uint64_t emu_map(cptx_device *dev, void *host, size_t size, cptx_error *err)
{
	uint64_t at = 0;

	if (size > UINTPTR_MAX - (uintptr_t)host) {
		error_set(err, CPTX_E_ARG, NOWHERE, "%zu bytes from %p on: the host has not so many addresses", size, host);
		return 0;
	}
	emu_lock(dev);
	at = emu_alloc_map(machine_of(dev), host, size);
	if (!at)
		no_room(dev, size, err);
	emu_unlock(dev);
	return at;
}

static uint64_t emu_unified(cptx_device *dev, size_t size, cptx_error *err)
{
	emu_lock(dev);
	uint64_t at = emu_alloc_unified(machine_of(dev), size, NULL);
	if (!at)
		no_room(dev, size, err);
	emu_unlock(dev);
	return at;
}

static void *emu_host(cptx_device *dev, uint64_t at, size_t size, cptx_error *err)
{
	emu_lock(dev);
	void *p = bytes_at(dev, at, size, true, err);
	emu_unlock(dev);
	return p;
}

static bool transfer_bytes(cptx_device *dev, const transfer *t, cptx_error *err)
{
	size_t n = t->kind == TRANSFER_FILL32 ? t->n * 4 : t->n;
	unsigned char *dst = t->kind == TRANSFER_READ ? NULL : bytes_at(dev, t->dst, n, true, err);
	const unsigned char *src =
		t->kind == TRANSFER_READ || t->kind == TRANSFER_COPY ? bytes_at(dev, t->src, n, false, err) : NULL;

	if ((t->kind != TRANSFER_READ && !dst) || ((t->kind == TRANSFER_READ || t->kind == TRANSFER_COPY) && !src))
		return false;
	switch (t->kind) {
	case TRANSFER_WRITE: memcpy(dst, t->host_src, n); break;
	case TRANSFER_READ: memcpy(t->host_dst, src, n); break;
	case TRANSFER_COPY: memmove(dst, src, n); break;
	case TRANSFER_FILL8: memset(dst, (int)t->value, n); break;
	case TRANSFER_FILL32:
		for (size_t i = 0; i < t->n; i++)
			memcpy(dst + i * 4, &t->value, 4);
		break;
	}
	return true;
}

static bool emu_transfer(cptx_device *dev, const transfer *t, cptx_error *err)
{
	emu_lock(dev);
	bool ok = transfer_bytes(dev, t, err);
	emu_unlock(dev);
	return ok;
}

/* ---- programs ---- */

/* A cptx_report_fn that keeps the first error. */
static void take_first(void *user, const cptx_error *e)
{
	cptx_error *err = (cptx_error *)user;

	if (err && err->code == CPTX_OK)
		*err = *e;
}

/* Parses a text.  A text that ptxas refuses for its own .target and .version is refused here too. */
static cptx_module *read_texts(cptx_program *p, const parse_input *in, size_t n, const load_request *q, cptx_error *err)
{
	const cptx_parse_opt defaults = { .size = sizeof defaults };
	cptx_module *m = parse_inputs(in, n, &defaults);
	cptx_site at = q->at;
	const cptx_target *t;

	if (!m || cptx_module_error(m)) {
		if (m && err && err->code == CPTX_OK)
			*err = *cptx_module_error(m);
		else
			no_memory(err, at);
		cptx_module_destroy(m);
		return NULL;
	}
	t = cptx_module_target(m);
	p->target = t ? t->name : NULL;
	p->version = cptx_module_version(m);
	if (t && !target_runs_on(t, p->dev->info.compute_capability)) {
		error_set(err, CPTX_E_TARGET, at, "an emulated %s cannot run code for %s", p->dev->info.target, t->name);
		cptx_module_destroy(m);
		return NULL;
	}
	if (!q->module && cptx_check(m, NULL, take_first, err)) { /* a built module was checked when it was printed */
		cptx_module_destroy(m);
		return NULL;
	}
	return m;
}

static cptx_module *read_text(cptx_program *p, const char *text, size_t size, const load_request *q, cptx_error *err)
{
	return read_texts(p, CPTX_OPT_(parse_input, .text = text, .size = size, .name = q->opt.name), 1, q, err);
}

/* Joins PTX texts and modules, as a linker joins what is compiled of them. */
static cptx_module *link_texts(cptx_program *p, const load_request *q, cptx_error *err)
{
	link_piece *pieces = pieces_make(q->pieces, q->npieces, p->dev->info.target, q->opt.emit, q->at, err);
	parse_input *in = pieces ? NEW_ARRAY(parse_input, q->npieces) : NULL;
	bool ok = in != NULL;

	if (pieces && !in)
		no_memory(err, q->at);
	for (size_t i = 0; i < q->npieces && ok; i++) {
		in[i] = (parse_input){ (const char *)pieces[i].data, pieces[i].size, pieces[i].name };
		if (pieces[i].kind != PIECE_PTX)
			ok = error_set(err, CPTX_E_ARG, q->at,
			               "%s is machine code, or in a container; the emulator links PTX text and modules", pieces[i].name);
	}
	cptx_module *m = ok ? read_texts(p, in, q->npieces, q, err) : NULL;
	free(in);
	pieces_free(pieces, q->npieces);
	return m;
}

static bool emu_load(cptx_program *p, const load_request *q, cptx_error *err)
{
	const char *target = q->opt.target ? q->opt.target : p->dev->info.target;
	cptx_ptx *ptx = NULL;
	cptx_module *m;

	if (q->npieces) {
		m = link_texts(p, q, err);
	} else if (q->module) {
		ptx = cptx_emit(q->module, target, q->opt.emit, err);
		m = ptx ? read_text(p, cptx_ptx_text(ptx), cptx_ptx_size(ptx), q, err) : NULL;
	} else if (q->size >= 4 && !memcmp(q->image, "\177ELF", 4)) {
		error_set(err, CPTX_E_ARG, q->at, "the emulator runs PTX text; this is machine code");
		m = NULL;
	} else {
		size_t size = q->size;
		m = text_end((const char *)q->image, &size, q->opt.name, q->at, err)
		        ? read_text(p, (const char *)q->image, size, q, err)
		        : NULL;
	}
	if (!m) {
		cptx_ptx_destroy(ptx);
		emu_lock(p->dev);
		emu_wishes_drop(machine_of(p->dev)); /* they were for this program */
		emu_unlock(p->dev);
		return false;
	}
	emu_lock(p->dev);
	emu_program *e = emu_program_new(machine_of(p->dev), m, ptx, q->at, err);
	emu_unlock(p->dev);
	if (!e)
		return false;
	p->handle = e;
	for (const cptx_kernel *k = m->first; k; k = k->next) {
		const cptx_kernel *seen = k->is_func ? NULL : emu_program_kernel(e, k->name, q->at, NULL);
		if (k->is_func || (seen && seen != k)) /* another text exports that name */
			continue;
		if (!program_add_kernel(p, q->module ? cptx_module_body(q->module, k->name) : k))
			return no_memory(err, q->at);
	}
	return true;
}

static void emu_unload(cptx_program *p)
{
	emu_lock(p->dev);
	emu_program_free((emu_program *)p->handle);
	emu_unlock(p->dev);
}

static uint64_t emu_global(const cptx_program *p, const char *name, size_t *size, cptx_error *err)
{
	uint64_t bytes = 0, at = emu_program_variable((emu_program *)p->handle, name, &bytes);

	if (!at)
		error_set(err, CPTX_E_ARG, NOWHERE, "the program has no visible variable \"%s\"; a module's needs .export_ = true",
		          name);
	if (size)
		*size = (size_t)bytes;
	return at;
}

static bool emu_kernel(const cptx_program *p, kernel *k, cptx_site at, cptx_error *err)
{
	emu_lock(p->dev);
	emu_program *e = (emu_program *)p->handle;
	const cptx_kernel *found = emu_program_kernel(e, k->info.name, at, err);
	emu_image *im = found ? emu_program_image(e, found, at, err) : NULL;
	emu_unlock(p->dev);
	if (!im)
		return false;
	k->fn = im;
	k->max_threads = 1024;
	k->static_smem = im->shared.bytes;
	return true;
}

static bool emu_resources(const cptx_program *p, const kernel *k, uint32_t threads, uint32_t dyn_smem, cptx_resources *out,
                          cptx_error *err)
{
	const emu_image *im = (const emu_image *)k->fn;
	const cptx_device_info *i = &p->dev->info;
	uint64_t smem = (uint64_t)im->shared.bytes + dyn_smem + SHARED_FIRST;
	uint32_t by_smem = (uint32_t)(i->smem_per_sm / smem);

	(void)err;
	*out = (cptx_resources){ .static_smem = im->shared.bytes, .max_threads = 1024, .binary_version = i->compute_capability };
	out->local_bytes = im->entry->local.bytes;
	out->ctas_per_sm = threads ? MIN(by_smem, i->threads_per_sm / threads) : 0;
	return true;
}

/* ---- launches ---- */

/* Computes the places of the parameters in parameter memory, into l->extra. */
static bool emu_prepare(cptx_launch *l, cptx_site at, cptx_error *err)
{
	(void)l, (void)at, (void)err;
	return true;
}

static bool emu_launch(cptx_launch *l, void *stream, cptx_error *err)
{
	emu_image *im = (emu_image *)l->k.fn;
	const emu_function *f = im->entry;
	unsigned char *params = NEW_ARRAY(unsigned char, f->formals + 16u);

	(void)stream;
	if (!params)
		return no_memory(err, l->at);
	for (size_t i = 0; i < l->nargs && i < f->narg; i++)
		memcpy(params + f->arg[i].offset, l->params[i], MIN(l->sizes[i], f->arg[i].size));
	emu_lock(l->program->dev);
	bool ok = emu_run(im, &l->shape, params, f->formals, l->at, err);
	emu_unlock(l->program->dev);
	free(params);
	return ok;
}

/* ---- the device ---- */

static const device_ops ops = {
	.close = emu_close,
	.context = no_context,
	.symbol = no_symbol,
	.make_current = always,
	.synchronize = always,
	.stream_new = stream_new,
	.stream_adopt = stream_adopt,
	.stream_destroy = drop,
	.stream_synchronize = stream_done,
	.stream_wait = stream_wait,
	.event_new = event_new,
	.event_destroy = event_destroy,
	.event_record = event_record,
	.event_synchronize = stream_done,
	.event_elapsed = event_elapsed,
	.alloc = emu_alloc_memory,
	.free = emu_free_memory,
	.transfer = emu_transfer,
	.map = emu_map,
	.unified = emu_unified,
	.host = emu_host,
	.lock = emu_lock,
	.unlock = emu_unlock,
	.load = emu_load,
	.unload = emu_unload,
	.global = emu_global,
	.find = emu_kernel,
	.resources = emu_resources,
	.launch_prepare = emu_prepare,
	.launch_run = emu_launch,
};

static cptx_device_info info_of(const cptx_target *t)
{
	cptx_device_info i = {
		.compute_capability = t->compute_capability,
		.ptx = ARCH_NEWEST,
		.target = t->name,
		.smem_per_sm = t->smem_per_sm,
		.smem_per_cta = t->smem_per_cta,
		.smem_default = 48 * 1024,
		.regs_per_sm = 65536,
		.threads_per_sm = t->threads_per_sm,
		.clusters = t->cluster != 0,
		.global_memory = UINT64_C(1) << 40,
	};

	snprintf(i.name, sizeof i.name, "emulated %s", t->name);
	return i;
}

bool emulator_there(cptx_error *err)
{
	(void)err;
	return true;
}

cptx_device *cptx_emu_open(const char *target, const cptx_emu_opt *opt, cptx_error *err)
{
	const cptx_target *t = target ? cptx_target_find(target) : NULL;
	cptx_emu_opt o;

	if (!OPTIONS_READ(cptx_emu_opt, &o, opt, NOWHERE, err))
		return NULL;
	if (!t) {
		error_set(err, CPTX_E_ARG, NOWHERE, "there is no target \"%s\" to emulate; say \"emu:sm_90a\", for example",
		          target ? target : "");
		return NULL;
	}
	emu_device *d = NEW(emu_device);
	emu_machine *m = d ? emu_machine_new(t, &o) : NULL;
	if (!m || !lock_new(&d->lock)) {
		if (m)
			emu_machine_free(m);
		free(d);
		no_memory(err, NOWHERE);
		return NULL;
	}
	d->dev.ops = &ops;
	d->dev.info = info_of(t);
	d->m = m;
	d->dev.info.sms = m->sms;
	return &d->dev;
}

static emu_machine *emulator(const cptx_device *dev) { return dev && dev->ops == &ops ? machine_of(dev) : NULL; }

emu_machine *emulator_of(const cptx_device *dev) { return emulator(dev); }
void emulator_lock(const cptx_device *dev) { emu_lock((cptx_device *)dev); }
void emulator_unlock(const cptx_device *dev) { emu_unlock((cptx_device *)dev); }

bool cptx_emu_reseed(cptx_device *dev, uint64_t seed, enum cptx_emu_schedule schedule)
{
	emu_machine *m = emulator(dev);

	if (!m)
		return false;
	emu_lock(dev);
	m->opt.seed = seed;
	m->opt.schedule = schedule;
	emu_unlock(dev);
	return true;
}

uint64_t cptx_emu_texture(cptx_device *dev, const cptx_emu_texture_opt *opt, cptx_error *err)
{
	emu_machine *m = emulator(dev);
	cptx_emu_texture_opt o;

	if (!m)
		error_set(err, CPTX_E_ARG, NOWHERE, "%s is no emulator: a texture there is one of CUDA",
		          dev ? dev->info.name : "NULL");
	if (!m || !OPTIONS_READ(cptx_emu_texture_opt, &o, opt, NOWHERE, err))
		return 0;
	emu_lock(dev);
	uint64_t handle = emu_texture_new(m, &o, err);
	emu_unlock(dev);
	return handle;
}

bool cptx_emu_texture_free(cptx_device *dev, uint64_t handle)
{
	emu_machine *m = emulator(dev);

	if (!m)
		return false;
	emu_lock(dev);
	bool freed = emu_texture_free(m, handle);
	emu_unlock(dev);
	return freed;
}

const cptx_emu_finding *cptx_emu_finding_at(const cptx_device *dev, size_t i)
{
	emu_machine *m = emulator(dev);

	if (!m)
		return NULL;
	emu_lock((cptx_device *)dev);
	const cptx_emu_finding *f = emu_finding_now(m, i);
	emu_unlock((cptx_device *)dev);
	return f;
}

bool cptx_emu_continue(cptx_device *dev)
{
	emu_machine *m = emulator(dev);

	if (!m)
		return false;
	emu_lock(dev);
	m->broken = false;
	emu_unlock(dev);
	return true;
}

void cptx_emu_clear(cptx_device *dev)
{
	emu_machine *m = emulator(dev);

	if (!m)
		return;
	emu_lock(dev);
	m->nfinding = m->nwarning = 0;
	arena_free(&m->text);
	arena_init(&m->text, NULL);
	memset(&m->counters, 0, sizeof m->counters);
	m->nprofile = 0;
	m->profile_since++;
	emu_unlock(dev);
}

bool cptx_emu_get_profile_(const cptx_device *dev, size_t i, cptx_emu_profile *out, size_t size)
{
	const emu_machine *m = emulator(dev);

	if (!m || !out)
		return false;
	emu_lock((cptx_device *)dev);
	bool there = i < m->nprofile;
	if (there)
		RESULT_FILL(out, size, &m->profile[i]);
	emu_unlock((cptx_device *)dev);
	return there;
}

bool cptx_emu_orders_(const cptx_device *dev, cptx_emu_order_info *out, size_t size)
{
	const emu_machine *m = emulator(dev);

	if (!m || !out)
		return false;
	emu_lock((cptx_device *)dev);
	const emu_explored *x = &m->explored;
	const cptx_emu_order_info info = { x->kernel, x->orders, x->all,     x->left,       x->found,        x->switches, x->how,
		                               x->text,   x->why,    x->differs, x->difference, x->differ_bytes, x->differ_at };
	bool there = x->kernel != NULL;
	if (there)
		RESULT_FILL(out, size, &info);
	emu_unlock((cptx_device *)dev);
	return there;
}

bool cptx_emu_get_counters_(const cptx_device *dev, cptx_emu_counters *out, size_t size)
{
	const emu_machine *m = emulator(dev);

	if (!m || !out)
		return false;
	emu_lock((cptx_device *)dev);
	RESULT_FILL(out, size, &m->counters);
	emu_unlock((cptx_device *)dev);
	return true;
}
