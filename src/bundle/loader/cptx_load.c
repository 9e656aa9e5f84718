/* SPDX-License-Identifier: MIT */
/* The loader of bundles: see cptx_load.h.  It needs the C library and, at run time, the CUDA driver. */
#include "cptx_load.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the driver ---- */

enum {
	ATTRIBUTE_SMS = 16,
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_MINOR = 76,
	FUNCTION_SMEM = 8,
	SMEM_USUAL = 48 * 1024,
	MOST_PARAMS = 64,
	MOST_MAPS = 16,
	MAP_BYTES = 128
};

typedef struct driver {
	void *lib;
	int (*cuInit)(unsigned flags);
	int (*cuDriverGetVersion)(int *version);
	int (*cuGetErrorName)(int result, const char **name);
	int (*cuDeviceGet)(int *device, int number);
	int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
	int (*cuDevicePrimaryCtxRetain)(void **context, int device);
	int (*cuCtxGetCurrent)(void **context);
	int (*cuCtxSetCurrent)(void *context);
	int (*cuCtxGetDevice)(int *device);
	int (*cuModuleLoadData)(void **module, const void *image);
	int (*cuModuleUnload)(void *module);
	int (*cuModuleGetFunction)(void **function, void *module, const char *name);
	int (*cuFuncSetAttribute)(void *function, int attribute, int value);
	int (*cuLaunchKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	                      unsigned smem, void *stream, void **params, void **extra);
	int (*cuTensorMapEncodeTiled)(void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
	                              const uint64_t *stride, const uint32_t *box, const uint32_t *step, int interleave,
	                              int swizzle, int l2, int fill);
} driver;

/* A module that is loaded, by the place of its image. */
typedef struct loaded {
	struct loaded *next;
	uint64_t image;
	void *context, *module;
} loaded;

struct cptx_load_kernel {
	cptx_load_kernel *next;
	const cptx_load *bundle;
	const cptx_load_entry *entry;
	const cptx_load_variant *variant;
	void *context, *function;
	uint32_t grid;
	uint64_t workspace;
	char why[CPTX_LOAD_ERROR];
};

struct cptx_load {
	const unsigned char *data;
	size_t size;
	void *mapped; /* NULL: the memory is the caller's */
	const cptx_load_head *head;
	driver drv;
	loaded *modules;
	cptx_load_kernel *kernels;
};

static int fail(char *err, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (err)
		vsnprintf(err, CPTX_LOAD_ERROR, format, ap);
	va_end(ap);
	return 0;
}

static int fail_cuda(const driver *d, int result, const char *what, char *err)
{
	const char *name = NULL;

	if (d->cuGetErrorName)
		d->cuGetErrorName(result, &name);
	return fail(err, "%s: %s (%d)", what, name ? name : "an error of the CUDA driver", result);
}

static int open_driver(driver *d, char *err)
{
	const char *path = getenv("CPTX_CUDA_LIBRARY");
	const struct {
		const char *name;
		void *to;
		int may_lack;
	} calls[] = {
		{ "cuInit", &d->cuInit, 0 },
		{ "cuDriverGetVersion", &d->cuDriverGetVersion, 0 },
		{ "cuGetErrorName", &d->cuGetErrorName, 0 },
		{ "cuDeviceGet", &d->cuDeviceGet, 0 },
		{ "cuDeviceGetAttribute", &d->cuDeviceGetAttribute, 0 },
		{ "cuDevicePrimaryCtxRetain", &d->cuDevicePrimaryCtxRetain, 0 },
		{ "cuCtxGetCurrent", &d->cuCtxGetCurrent, 0 },
		{ "cuCtxSetCurrent", &d->cuCtxSetCurrent, 0 },
		{ "cuCtxGetDevice", &d->cuCtxGetDevice, 0 },
		{ "cuModuleLoadData", &d->cuModuleLoadData, 0 },
		{ "cuModuleUnload", &d->cuModuleUnload, 0 },
		{ "cuModuleGetFunction", &d->cuModuleGetFunction, 0 },
		{ "cuFuncSetAttribute", &d->cuFuncSetAttribute, 0 },
		{ "cuLaunchKernel", &d->cuLaunchKernel, 0 },
		{ "cuTensorMapEncodeTiled", &d->cuTensorMapEncodeTiled, 1 },
	};

	if (d->lib)
		return 1;
	path = path && *path ? path : "libcuda.so.1";
	d->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!d->lib)
		return fail(err, "the CUDA driver cannot be opened: %s", dlerror());
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		void *p = dlsym(d->lib, calls[i].name);
		if (!p && !calls[i].may_lack) {
			d->lib = NULL;
			return fail(err, "the CUDA driver %s has no %s", path, calls[i].name);
		}
		memcpy(calls[i].to, &p, sizeof p);
	}
	int result = d->cuInit(0);
	if (!result)
		return 1;
	d->lib = NULL;
	return fail_cuda(d, result, "starting the CUDA driver", err);
}

/* ---- opening ---- */

/* Whether n elements of `size` bytes lie at a place in front of the images. */
static int there(const cptx_load *b, uint64_t at, uint64_t n, uint64_t size)
{
	return at % 8 == 0 && at <= b->head->images && n <= (b->head->images - at) / size;
}

static int is_text(const cptx_load *b, uint64_t at)
{
	return at < b->head->images && memchr(b->data + at, 0, (size_t)(b->head->images - at));
}

static const char *text(const cptx_load *b, uint64_t at) { return (const char *)b->data + at; }
/* A place behind the end, which the checks then refuse, counts as the start. */
static const void *place(const cptx_load *b, uint64_t at) { return b->data + (at <= b->size ? at : 0); }

static int check_variant(const cptx_load *b, const cptx_load_variant *v, uint32_t nargs)
{
	const cptx_load_param *p = (const cptx_load_param *)place(b, v->params);
	const cptx_load_map *m = (const cptx_load_map *)place(b, v->maps);

	if (!is_text(b, v->symbol) || !is_text(b, v->target) || !is_text(b, v->note) || !v->nsms ||
	    !there(b, v->grid, v->nsms, 8) || !there(b, v->workspace, v->nsms, 8) ||
	    !there(b, v->params, v->nparams, sizeof *p) || !there(b, v->maps, v->nmaps, sizeof *m) || v->nparams > MOST_PARAMS ||
	    v->nmaps > MOST_MAPS || v->cubin > b->size || v->cubin_bytes > b->size - v->cubin || v->ptx > b->size ||
	    v->ptx_bytes > b->size - v->ptx || (v->ptx_bytes && b->data[v->ptx + v->ptx_bytes - 1]))
		return 0;
	for (uint32_t i = 0; i < v->nparams; i++)
		if ((p[i].kind == CPTX_LOAD_PARAM_ARG && p[i].index >= nargs) ||
		    (p[i].kind == CPTX_LOAD_PARAM_MAP && p[i].index >= v->nmaps) || p[i].kind > CPTX_LOAD_PARAM_MAP)
			return 0;
	for (uint32_t i = 0; i < v->nmaps; i++)
		if (m[i].arg >= nargs || m[i].rank < 1 || m[i].rank > CPTX_LOAD_RANK)
			return 0;
	return 1;
}

static int check_entry(const cptx_load *b, const cptx_load_entry *e)
{
	const cptx_load_name_kind *a = (const cptx_load_name_kind *)place(b, e->args);
	const cptx_load_variant *v = (const cptx_load_variant *)place(b, e->variants);

	if (!is_text(b, e->name) || !is_text(b, e->about) || !there(b, e->args, e->nargs, sizeof *a) ||
	    !there(b, e->variants, e->nvariants, sizeof *v))
		return 0;
	for (uint32_t i = 0; i < e->nargs; i++)
		if (!is_text(b, a[i].name))
			return 0;
	for (uint32_t i = 0; i < e->nvariants; i++)
		if (!check_variant(b, &v[i], e->nargs))
			return 0;
	return 1;
}

/* Everything that is read later is looked at here once, so that a damaged file is an error and not a crash. */
static int check(cptx_load *b, const char *name, char *err)
{
	const cptx_load_head *h = (const cptx_load_head *)b->data;

	b->head = h;
	if (b->size < sizeof *h || memcmp(h->magic, CPTX_LOAD_MAGIC, sizeof h->magic) || h->order != CPTX_LOAD_ORDER)
		return fail(err, "%s is no bundle of cptx that this loader knows", name);
	if (h->bytes != b->size || h->images > b->size || h->images < sizeof *h || h->images % 8 ||
	    cptx_load_sum_of(h) != h->sum)
		return fail(err, "%s is damaged: its size or checksum is wrong", name);
	int ok = is_text(b, h->made) && there(b, h->entries, h->nentries, sizeof(cptx_load_entry));
	for (uint32_t i = 0; ok && i < h->nentries; i++)
		ok = check_entry(b, (const cptx_load_entry *)place(b, h->entries) + i);
	return ok || fail(err, "%s is damaged: it names places that it does not have", name);
}

static cptx_load *begin(const void *data, size_t size, void *mapped, const char *name, char *err)
{
	cptx_load *b = (cptx_load *)calloc(1, sizeof *b);

	if (!b) {
		if (mapped)
			munmap(mapped, size);
		fail(err, "out of memory");
		return NULL;
	}
	b->data = (const unsigned char *)data, b->size = size, b->mapped = mapped;
	if (check(b, name, err))
		return b;
	cptx_load_close(b);
	return NULL;
}

cptx_load *cptx_load_memory(const void *data, size_t size, char *err)
{
	if (data && (uintptr_t)data % 8 == 0)
		return begin(data, size, NULL, "the bundle", err);
	fail(err, "the bundle is NULL, or not aligned to 8 bytes");
	return NULL;
}

cptx_load *cptx_load_file(const char *path, char *err)
{
	const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat s;
	void *data = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &s) && s.st_size >= (off_t)sizeof(cptx_load_head))
		data = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (data != MAP_FAILED)
		return begin(data, (size_t)s.st_size, data, path, err);
	fail(err, fd >= 0 ? "%s is no bundle of cptx" : "%s cannot be opened", path ? path : "NULL");
	return NULL;
}

void cptx_load_close(cptx_load *b)
{
	if (!b)
		return;
	for (cptx_load_kernel *k = b->kernels, *next; k; k = next) {
		next = k->next;
		free(k);
	}
	for (loaded *m = b->modules, *next; m; m = next) {
		void *was = NULL;
		next = m->next;
		if (!b->drv.cuCtxGetCurrent(&was) && !b->drv.cuCtxSetCurrent(m->context)) {
			b->drv.cuModuleUnload(m->module);
			b->drv.cuCtxSetCurrent(was);
		}
		free(m);
	}
	if (b->mapped)
		munmap(b->mapped, b->size);
	free(b);
}

/* ---- what is in it ---- */

static const cptx_load_entry *entry(const cptx_load *b, uint32_t i)
{
	return b && i < b->head->nentries ? (const cptx_load_entry *)place(b, b->head->entries) + i : NULL;
}

uint32_t cptx_load_count(const cptx_load *b) { return b ? b->head->nentries : 0; }

const char *cptx_load_name(const cptx_load *b, uint32_t i) { return entry(b, i) ? text(b, entry(b, i)->name) : NULL; }

const char *cptx_load_about(const cptx_load *b, uint32_t i) { return entry(b, i) ? text(b, entry(b, i)->about) : NULL; }

const char *cptx_load_argument(const cptx_load *b, uint32_t i, uint32_t j, enum cptx_load_kind *kind)
{
	const cptx_load_entry *e = entry(b, i);

	if (!e || j >= e->nargs)
		return NULL;
	const cptx_load_name_kind *a = (const cptx_load_name_kind *)place(b, e->args) + j;
	if (kind)
		*kind = (enum cptx_load_kind)a->kind;
	return text(b, a->name);
}

/* ---- choosing ---- */

typedef struct machine {
	void *context;
	int cc, driver, sms;
} machine;

static int ask_machine(cptx_load *b, machine *m, char *err)
{
	driver *d = &b->drv;
	int device, major = 0, minor = 0, result;

	if (!open_driver(d, err))
		return 0;
	if ((result = d->cuCtxGetCurrent(&m->context)))
		return fail_cuda(d, result, "asking for the context", err);
	if (!m->context &&
	    ((result = d->cuDeviceGet(&device, 0)) || (result = d->cuDevicePrimaryCtxRetain(&m->context, device)) ||
	     (result = d->cuCtxSetCurrent(m->context))))
		return fail_cuda(d, result, "opening device 0", err);
	if ((result = d->cuCtxGetDevice(&device)) || (result = d->cuDriverGetVersion(&m->driver)) ||
	    (result = d->cuDeviceGetAttribute(&major, ATTRIBUTE_MAJOR, device)) ||
	    (result = d->cuDeviceGetAttribute(&minor, ATTRIBUTE_MINOR, device)) ||
	    (result = d->cuDeviceGetAttribute(&m->sms, ATTRIBUTE_SMS, device)))
		return fail_cuda(d, result, "asking for the device", err);
	m->cc = major * 10 + minor;
	return 1;
}

static int runs_on(const cptx_load_variant *v, int cc)
{
	const int of = (int)v->cc;

	return v->suffix == 'a' ? of == cc : v->suffix == 'f' ? of / 10 == cc / 10 && of <= cc : of <= cc;
}

/* Machine code runs on its own architecture and on later ones of the same major version, `a` code on its own alone. */
static int code_runs_on(const cptx_load_variant *v, int cc)
{
	return v->cubin_bytes && runs_on(v, cc) && (int)v->cc / 10 == cc / 10;
}

static int rank(const cptx_load_variant *v) { return (int)v->cc * 4 + (v->suffix == 'a' ? 2 : v->suffix == 'f' ? 1 : 0); }

/* Loads an image once for each context. */
static void *load(cptx_load *b, uint64_t image, const machine *on, int *result)
{
	loaded *m = b->modules;

	while (m && !(m->image == image && m->context == on->context))
		m = m->next;
	if (m)
		return m->module;
	m = (loaded *)calloc(1, sizeof *m);
	*result = m ? b->drv.cuModuleLoadData(&m->module, b->data + image) : 2;
	if (*result) {
		free(m);
		return NULL;
	}
	m->image = image, m->context = on->context, m->next = b->modules, b->modules = m;
	return m->module;
}

static void note(cptx_load_kernel *k, const char *target, const char *what)
{
	const size_t n = strlen(k->why);

	snprintf(k->why + n, sizeof k->why - n, "%s%s: %s", n ? "; " : "", target, what);
}

/* Tries a variant: machine code first, PTX second. */
static int try_variant(cptx_load *b, cptx_load_kernel *k, const cptx_load_variant *v, const machine *on)
{
	const char *target = text(b, v->target);
	char what[96];
	int result = 0;
	void *module = NULL;

	if (code_runs_on(v, on->cc) && (module = load(b, v->cubin, on, &result)))
		note(k, target, "machine code");
	else if (v->cubin_bytes) {
		snprintf(what, sizeof what,
		         result ? "the driver refuses its machine code (%d)" : "its machine code is of another device", result);
		note(k, target, what);
	}
	const unsigned most = cptx_load_ptx_version(on->driver);
	if (!module && v->ptx_bytes && v->ptx_version > most) {
		snprintf(what, sizeof what, "its PTX is of version %u.%u, and the driver takes %u.%u", v->ptx_version / 10,
		         v->ptx_version % 10, most / 10, most % 10);
		note(k, target, what);
	} else if (!module && v->ptx_bytes) {
		module = load(b, v->ptx, on, &result);
		snprintf(what, sizeof what, module ? "PTX" : "the driver refuses its PTX (%d)", result);
		note(k, target, what);
	}
	if (!module || (result = b->drv.cuModuleGetFunction(&k->function, module, text(b, v->symbol))))
		return 0;
	if (v->smem > SMEM_USUAL && (result = b->drv.cuFuncSetAttribute(k->function, FUNCTION_SMEM, (int)v->smem))) {
		note(k, target, "its shared memory does not fit");
		return 0;
	}
	const uint32_t sms = (uint32_t)on->sms < v->nsms ? (uint32_t)on->sms : v->nsms;
	k->variant = v;
	k->grid = (uint32_t)((const uint64_t *)place(b, v->grid))[sms ? sms - 1 : 0];
	k->workspace = ((const uint64_t *)place(b, v->workspace))[sms ? sms - 1 : 0];
	return 1;
}

/* The variants that run on the device, best first. */
static int choose(cptx_load *b, cptx_load_kernel *k, const machine *on)
{
	const cptx_load_variant *all = (const cptx_load_variant *)place(b, k->entry->variants), *next;

	for (int below = 1 << 30;; below = rank(next)) {
		next = NULL;
		for (uint32_t i = 0; i < k->entry->nvariants; i++)
			if (runs_on(&all[i], on->cc) && rank(&all[i]) < below && (!next || rank(&all[i]) > rank(next)))
				next = &all[i];
		if (!next || try_variant(b, k, next, on))
			return next != NULL;
	}
}

cptx_load_kernel *cptx_load_get(cptx_load *b, const char *name, char *err)
{
	machine on = { NULL, 0, 0, 0 };
	uint32_t i = 0;

	if (!b || !name || !ask_machine(b, &on, err)) {
		if (!b || !name)
			fail(err, "the bundle or the name is NULL");
		return NULL;
	}
	while (i < b->head->nentries && strcmp(text(b, entry(b, i)->name), name))
		i++;
	if (i == b->head->nentries) {
		fail(err, "the bundle has no kernel '%.200s'", name);
		return NULL;
	}
	for (cptx_load_kernel *k = b->kernels; k; k = k->next)
		if (k->entry == entry(b, i) && k->context == on.context)
			return k;
	cptx_load_kernel *k = (cptx_load_kernel *)calloc(1, sizeof *k);
	if (!k) {
		fail(err, "out of memory");
		return NULL;
	}
	k->bundle = b, k->entry = entry(b, i), k->context = on.context;
	if (!choose(b, k, &on)) {
		fail(err, "kernel '%.100s' has no build for compute capability %d.%d and a driver of CUDA %d.%d%s%.300s", name,
		     on.cc / 10, on.cc % 10, on.driver / 1000, on.driver % 1000 / 10, *k->why ? ": " : "", k->why);
		free(k);
		return NULL;
	}
	k->next = b->kernels, b->kernels = k;
	return k;
}

const char *cptx_load_why(const cptx_load_kernel *k) { return k ? k->why : ""; }

uint64_t cptx_load_workspace(const cptx_load_kernel *k) { return k ? k->workspace : 0; }

/* ---- launching ---- */

/* A map, which the driver wants aligned to 64 bytes. */
typedef union map_bytes {
	unsigned char bytes[MAP_BYTES];
	uint64_t words[MAP_BYTES / 8];
#if defined(__GNUC__)
	__attribute__((aligned(64))) char aligned;
#endif
} map_bytes;

static int encode(const driver *d, const cptx_load_map *m, uint64_t address, map_bytes *to, char *err)
{
	if (!d->cuTensorMapEncodeTiled)
		return fail(err, "the CUDA driver has no tensor maps; one of CUDA 12.0 or later has");
	const int result =
		d->cuTensorMapEncodeTiled(to, (int)m->type, m->rank, (void *)(uintptr_t)address, m->dim, m->stride, m->box, m->step,
	                              (int)m->interleave, (int)m->swizzle, (int)m->l2, (int)m->fill);
	return !result || fail_cuda(d, result, "encoding a tensor map; addresses are multiples of 16", err);
}

/* A kernel runs in the context that it was loaded in, which a thread without one gets. */
static int enter(const cptx_load_kernel *k, char *err)
{
	const driver *d = &k->bundle->drv;
	void *now = NULL;
	int result = d->cuCtxGetCurrent(&now);

	if (!result && !now)
		result = d->cuCtxSetCurrent(now = k->context);
	if (result)
		return fail_cuda(d, result, "entering the kernel's context", err);
	return now == k->context ||
	       fail(err, "%s was loaded in another context; ask cptx_load_get in this one", text(k->bundle, k->entry->name));
}

int cptx_load_launch(cptx_load_kernel *k, const cptx_load_arg *args, uint32_t n, void *stream, char *err)
{
	map_bytes maps[MOST_MAPS];
	uint64_t values[MOST_PARAMS];
	void *params[MOST_PARAMS];

	if (!k || (n && !args))
		return fail(err, "the kernel is NULL, or its arguments");
	const cptx_load *b = k->bundle;
	const cptx_load_variant *v = k->variant;
	const cptx_load_param *p = (const cptx_load_param *)place(b, v->params);
	const cptx_load_map *m = (const cptx_load_map *)place(b, v->maps);
	if (n != k->entry->nargs)
		return fail(err, "%s takes %u arguments, and %u were given", text(b, k->entry->name), k->entry->nargs, n);
	if (!enter(k, err))
		return 0;
	for (uint32_t i = 0; i < v->nmaps; i++)
		if (!encode(&b->drv, &m[i], args[m[i].arg].pointer, &maps[i], err))
			return 0;
	for (uint32_t i = 0; i < v->nparams; i++) {
		if (p[i].kind == CPTX_LOAD_PARAM_MAP) {
			params[i] = &maps[p[i].index];
			continue;
		}
		values[i] = p[i].value;
		if (p[i].kind == CPTX_LOAD_PARAM_ARG)
			memcpy(&values[i], &args[p[i].index], sizeof values[i] < sizeof *args ? sizeof values[i] : sizeof *args);
		params[i] = &values[i];
	}
	const int result = b->drv.cuLaunchKernel(k->function, k->grid, 1, 1, v->threads, 1, 1, v->smem, stream, params, NULL);
	return !result || fail_cuda(&b->drv, result, "launching", err);
}
