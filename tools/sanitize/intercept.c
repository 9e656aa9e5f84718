/* SPDX-License-Identifier: MIT */
/*
 * libcptx_record.so: the recorder in front of a real driver.  It calls itself libcuda.so.1 and is loaded first, so that it
 * is what a program finds under that name; it exports the calls of hooks.def alone, and needs the real library, under the
 * name libcptx_real_cuda.so that the command gives it, where the loader finds all others.  Modules, kernels and the file are
 * kept by libcptx_sanitize (helper.h), which is opened beside it.
 *
 * A launch that is recorded waits for all work in front of it, and for its own end.
 */
#include "forms.h"
#include "intercept.h"
#include "recording.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- the driver's functions, and those here ---- */

#define AFTER(name, parameters, arguments, then)                                                                            \
	SAN_API int name parameters;                                                                                            \
	static int(*real_##name) parameters;
#define AROUND(name, parameters, error) AFTER(name, parameters, , )
#define LAUNCH(name, parameters, arguments, stream, shape, args, extra) AFTER(name, parameters, , )
#define TENSOR(name, parameters, arguments) AFTER(name, parameters, , )
#include "hooks.def"
#undef AFTER
#undef AROUND
#undef LAUNCH
#undef TENSOR

static const struct hook {
	const char *name;
	void *real; /* address of a pointer to the driver's function */
	void *mine;
} hooks[] = {
#define AFTER(name, parameters, arguments, then) { #name, (void *)&real_##name, (void *)(uintptr_t)&name },
#define AROUND(name, parameters, error) AFTER(name, , , )
#define LAUNCH(name, parameters, arguments, stream, shape, args, extra) AFTER(name, , , )
#define TENSOR(name, parameters, arguments) AFTER(name, , , )
#include "hooks.def"
#undef AFTER
#undef AROUND
#undef LAUNCH
#undef TENSOR
};
enum { HOOKS = sizeof hooks / sizeof *hooks };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *driver, *library; /* of the driver; of the helper */
static const san_helper *helper;
_Thread_local unsigned rec_inside;
static unsigned captures; /* that go on */

void *rec_symbol(const char *name) { return driver ? dlsym(driver, name) : NULL; }

static void begin(void)
{
	const char *path = getenv(REC_HELPER_ENV);
	const san_helper *(*get)(void) = NULL;

	driver = dlopen("libcptx_real_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; i < HOOKS; i++) {
		void *p = rec_symbol(hooks[i].name);
		memcpy(hooks[i].real, &p, sizeof p);
	}
	library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	void *p = library ? dlsym(library, "san_recorder") : NULL;
	memcpy(&get, &p, sizeof p);
	if (get)
		helper = get();
	else
		fprintf(stderr, "cptx record: nothing is recorded: %s\n", path ? dlerror() : REC_HELPER_ENV " is not set");
}

/* ---- the GPU's memory ---- */

/* What the driver made of a tensor map, and what the emulator would have. */
typedef struct map_pair {
	unsigned char real[CPTX_TENSOR_MAP_BYTES], emulated[CPTX_TENSOR_MAP_BYTES];
} map_pair;
static map_pair *maps;
static size_t nmaps;

enum { MAP_ALIGN = 64 };

static void change_maps(void *bytes, size_t n)
{
	for (size_t at = 0; nmaps && at + CPTX_TENSOR_MAP_BYTES <= n; at += MAP_ALIGN)
		for (size_t i = 0; i < nmaps; i++)
			if (!memcmp((char *)bytes + at, maps[i].real, sizeof maps[i].real))
				memcpy((char *)bytes + at, maps[i].emulated, sizeof maps[i].emulated);
}

static bool read_memory(void *to, uint64_t at, size_t size)
{
	static int (*copy)(void *, uint64_t, size_t);
	void *p = rec_symbol("cuMemcpyDtoH_v2");

	memcpy(&copy, &p, sizeof p);
	rec_inside++;
	bool ok = copy && !copy(to, at, size);
	rec_inside--;
	if (ok)
		change_maps(to, size);
	return ok;
}

/* Modules of the program, by what the driver calls them and the libraries they are of. */
typedef struct handle {
	void *of;
	san_module *module;
	char *name; /* of a kernel; NULL: a module or library */
} handle;
static handle *handles;
static size_t nhandle, cap_handle;

static uint64_t variable_at(const san_module *m, const cptx_emu_variable_info *v)
{
	static const char *const calls[] = { "cuModuleGetGlobal_v2", "cuLibraryGetGlobal" };
	uint64_t at = 0;

	rec_inside++;
	for (size_t i = 0; i < nhandle && !at; i++)
		for (size_t c = 0; c < 2 && !at && handles[i].module == m && !handles[i].name; c++) {
			int (*get)(uint64_t *, size_t *, void *, const char *);
			size_t size = 0;
			void *p = rec_symbol(calls[c]);
			memcpy(&get, &p, sizeof p);
			if (p && (get(&at, &size, handles[i].of, v->name) || size < v->bytes))
				at = 0;
		}
	rec_inside--;
	return at;
}

static san_memory_source source = { .read = read_memory, .variable = variable_at };

static unsigned describe(void)
{
	static char name[128];
	int device = 0, major = 0, minor = 0;
	int (*current)(int *), (*attribute)(int *, int, int), (*get_name)(char *, int, int), (*version)(int *);
	void *p[] = { rec_symbol("cuCtxGetDevice"), rec_symbol("cuDeviceGetAttribute"), rec_symbol("cuDeviceGetName"),
		          rec_symbol("cuDriverGetVersion") };

	memcpy(&current, &p[0], sizeof current);
	memcpy(&attribute, &p[1], sizeof attribute);
	memcpy(&get_name, &p[2], sizeof get_name);
	memcpy(&version, &p[3], sizeof version);
	if (!current || !attribute || !get_name || !version || current(&device) || attribute(&major, 75, device) ||
	    attribute(&minor, 76, device) || get_name(name, sizeof name, device))
		return 0;
	int v = 0;
	version(&v);
	source.device = name, source.driver = (unsigned)v;
	return (unsigned)(major * 10 + minor);
}

/* Enters the helper; false: nothing is recorded. */
bool rec_enter(void)
{
	static unsigned compute_capability;

	if (!helper || rec_inside)
		return false;
	if (!compute_capability)
		compute_capability = describe();
	return compute_capability && helper->enter(compute_capability, &source);
}

void rec_leave(void) { helper->leave(); }

/* An expression under the helper's lock. */
#define NOTE(expression)                                                                                                    \
	do {                                                                                                                    \
		if (rec_enter()) {                                                                                                  \
			expression;                                                                                                     \
			helper->leave();                                                                                                \
		}                                                                                                                   \
	} while (0)

static void gained(uint64_t at, void *host, size_t size, int type) { NOTE(helper->gained(at, host, size, type)); }

static void gained_host(void *p, size_t size)
{
	int (*get)(uint64_t *, void *, unsigned);
	void *f = rec_symbol("cuMemHostGetDevicePointer_v2");
	uint64_t at = 0;

	memcpy(&get, &f, sizeof f);
	if (f && !get(&at, p, 0))
		gained(at, p, size, RT_HOST);
}

static void lost(uint64_t at) { NOTE(helper->lost(at)); }
static void unmapped(uint64_t at, size_t size) { NOTE(helper->unmapped(at, size)); }

/* ---- modules and kernels ---- */

static handle *handle_of(const void *of)
{
	for (size_t i = nhandle; i--;)
		if (handles[i].of == of)
			return &handles[i];
	return NULL;
}

static void add(void *of, san_module *m, const char *name)
{
	handle *was = handle_of(of);

	if (nhandle == cap_handle && !was) {
		size_t cap = cap_handle ? cap_handle * 2 : 64;
		handle *grown = (handle *)realloc(handles, cap * sizeof *grown);
		if (!grown)
			return;
		handles = grown, cap_handle = cap;
	}
	if (was)
		free(was->name);
	*(was ? was : &handles[nhandle++]) = (handle){ of, m, name ? strdup(name) : NULL };
}

#define loaded(of, made) NOTE(add((of), (made), NULL))

static void unloaded(void *of)
{
	if (!rec_enter())
		return;
	handle *h = handle_of(of);
	san_module *m = h && !h->name ? h->module : NULL;
	for (size_t i = 0; m && i < nhandle;)
		if (handles[i].module == m) {
			free(handles[i].name);
			handles[i] = handles[--nhandle];
		} else {
			i++;
		}
	if (m)
		helper->gone(m);
	helper->leave();
}

static void same(void *of, void *as)
{
	if (!rec_enter())
		return;
	handle *h = handle_of(as);
	if (h && of != as) {
		char *name = h->name ? strdup(h->name) : NULL;
		add(of, h->module, name);
		free(name);
	}
	helper->leave();
}

static void named(void *f, void *m, const char *name)
{
	if (!rec_enter())
		return;
	handle *h = handle_of(m);
	add(f, h && !h->name ? h->module : NULL, name);
	helper->leave();
}

/* The name that the driver has for a function or a kernel that was not seen when it was made. */
static const char *driver_name(void *f)
{
	static const char *const calls[] = { "cuFuncGetName", "cuKernelGetName" };
	const char *name = NULL;

	for (size_t i = 0; i < 2 && !name; i++) {
		int (*get)(const char **, void *);
		void *p = rec_symbol(calls[i]);
		memcpy(&get, &p, sizeof p);
		if (p && get(&name, f))
			name = NULL;
	}
	return name;
}

/* A module that the runtime had the driver load by another way than the calls seen here: its variables are asked of it. */
static void learn_module(void *f, san_module *m)
{
	int (*function)(void **, void *), (*module)(void **, void *);
	void *p[] = { rec_symbol("cuKernelGetFunction"), rec_symbol("cuFuncGetModule") }, *of = NULL, *real = NULL;

	for (size_t i = 0; i < nhandle; i++)
		if (handles[i].module == m && !handles[i].name)
			return;
	memcpy(&function, &p[0], sizeof function);
	memcpy(&module, &p[1], sizeof module);
	if (module && (!module(&of, f) || (function && !function(&real, f) && !module(&of, real))))
		add(of, m, NULL);
}

/* ---- tensor maps ---- */

static void keep_map(const void *real, const unsigned char *made)
{
	for (size_t i = 0; i < nmaps; i++)
		if (!memcmp(maps[i].real, real, sizeof maps[i].real))
			return;
	map_pair *grown = (map_pair *)realloc(maps, (nmaps + 1) * sizeof *grown);
	if (!grown)
		return;
	maps = grown;
	memcpy(maps[nmaps].real, real, sizeof maps[nmaps].real);
	memcpy(maps[nmaps++].emulated, made, sizeof maps->emulated);
}

/* ---- launches ---- */

static int synchronize(void)
{
	int (*wait)(void);
	void *p = rec_symbol("cuCtxSynchronize");

	memcpy(&wait, &p, sizeof p);
	return wait ? wait() : NO_SUCH_CALL;
}

void rec_left(const char *name, const char *why) { NOTE(helper->next(name) ? helper->left(name, why) : (void)0); }

static void capture(int n) { __atomic_add_fetch(&captures, (unsigned)n, __ATOMIC_RELAXED); }
static void capture_ends(void)
{
	if (rec_captures())
		capture(-1);
}
bool rec_captures(void) { return __atomic_load_n(&captures, __ATOMIC_RELAXED) != 0; }

/* Launches in a stream that is captured become nodes of a graph. */
bool rec_is_captured(void *stream)
{
	int (*ask)(void *, int *), status = 0;
	void *p = rec_symbol("cuStreamIsCapturing");

	memcpy(&ask, &p, sizeof ask);
	rec_inside++;
	const bool captured = ask && !ask(stream, &status) && status;
	rec_inside--;
	return captured;
}

/* Memory that the program has by another way than the calls seen here: an argument may be its address. */
static void look_for_memory(void *bytes, size_t n)
{
	int (*range)(uint64_t *, size_t *, uint64_t);
	void *p = rec_symbol("cuMemGetAddressRange_v2");

	memcpy(&range, &p, sizeof p);
	for (size_t i = 0; p && i + 8 <= n; i += 8) {
		uint64_t at, first = 0;
		size_t size = 0;
		memcpy(&at, (char *)bytes + i, sizeof at);
		if (at >> 20 && !helper->knows(at) && !range(&first, &size, at))
			helper->gained(first, NULL, size, RT_DEVICE);
	}
}

static void change(void *bytes, size_t n)
{
	change_maps(bytes, n);
	look_for_memory(bytes, n);
}

bool rec_launches(void *f, void *stream, const san_shape *shape, void **args, void **extra)
{
	if (rec_inside || rec_is_captured(stream) || !rec_enter())
		return false;
	rec_inside++;
	const handle *h = handle_of(f);
	const char *name = h && h->name ? h->name : driver_name(f);
	if (!helper->next(name ? name : "(unknown)")) {
		rec_inside--;
		helper->leave();
		return false;
	}
	san_kernel *k = name ? helper->kernel(h ? h->module : NULL, name) : NULL;
	bool recorded = false;
	if (!k)
		helper->left(name ? name : "(unknown)", name ? "its PTX is not in the program, or is none that can be emulated"
		                                             : "the driver does not tell its name");
	else if (rec_captures())
		helper->left(name, REC_CAPTURES);
	else if (synchronize())
		helper->left(name, "work in front of it failed");
	else
		learn_module(f, k->module), recorded = helper->before(k, shape, args, extra, change);
	rec_inside--;
	if (!recorded)
		helper->leave();
	return recorded;
}

int rec_launched(bool recorded, int error)
{
	if (!recorded)
		return error;
	rec_inside++;
	int failed = error ? error : synchronize();
	helper->after(failed);
	rec_inside--;
	helper->leave();
	return error;
}

/* ---- entry points by name ---- */

/* Whether a hook is of the function, or of the one that it is for the default stream of a thread. */
static bool is_for(const char *hook, const char *function, bool per_thread)
{
	const size_t n = strlen(function);

	return !strncmp(hook, function, n) && !strcmp(hook + n, per_thread ? "_ptsz" : "");
}

static void replace(const char *name, void **out, int version, uint64_t flags)
{
	enum { PER_THREAD = 2 };

	for (size_t i = 0; i < HOOKS && *out; i++) {
		void *real;
		memcpy(&real, hooks[i].real, sizeof real);
		if (real == *out) {
			*out = hooks[i].mine;
			return;
		}
	}
	/* a driver may give another address than it exports */
	const char *function = san_form(name, (unsigned)version);
	for (int turn = flags & PER_THREAD ? 1 : 0; turn >= 0; turn--)
		for (size_t i = 0; i < HOOKS && *out; i++)
			if (is_for(hooks[i].name, function, turn)) {
				*out = hooks[i].mine;
				return;
			}
}

/* ---- the calls ---- */

static san_shape cooperative(san_shape s)
{
	s.cooperative = true;
	return s;
}

static san_shape shape_of(const dr_launch_config *c)
{
	san_shape s = { .smem = c->smem };

	if (helper)
		helper->config(&s, c);
	return s;
}

#define COOPERATIVE(...) cooperative((san_shape)__VA_ARGS__)
#define CONFIG(c) shape_of(c)
#define GRAPH(what) NOTE(what)

static void graph_gone(void *exec) { NOTE(rec_graph_gone(exec)); }
static void graph_destroyed(void *graph) { NOTE(rec_graph_destroyed(graph)); }

#define AFTER(name, parameters, arguments, then)                                                                            \
	int name parameters                                                                                                     \
	{                                                                                                                       \
		pthread_once(&once, begin);                                                                                         \
		if (!real_##name)                                                                                                   \
			return NO_SUCH_CALL;                                                                                            \
		int error = real_##name arguments;                                                                                  \
		if (!error && !rec_inside)                                                                                          \
			then;                                                                                                           \
		return error;                                                                                                       \
	}
#define AROUND(name, parameters, error)                                                                                     \
	int name parameters                                                                                                     \
	{                                                                                                                       \
		pthread_once(&once, begin);                                                                                         \
		__typeof__(real_##name) REAL = real_##name;                                                                         \
		return REAL ? (error) : NO_SUCH_CALL;                                                                               \
	}
#define LAUNCH(name, parameters, arguments, stream, shape, args, extra)                                                     \
	int name parameters                                                                                                     \
	{                                                                                                                       \
		pthread_once(&once, begin);                                                                                         \
		if (!real_##name)                                                                                                   \
			return NO_SUCH_CALL;                                                                                            \
		const san_shape its = shape;                                                                                        \
		const bool recorded = rec_launches(f, stream, &its, args, extra);                                                   \
		return rec_launched(recorded, real_##name arguments);                                                               \
	}
#define TENSOR(name, parameters, arguments)                                                                                 \
	static void emulate_##name parameters                                                                                   \
	{                                                                                                                       \
		unsigned char made[CPTX_TENSOR_MAP_BYTES];                                                                          \
		void *p = dlsym(library, #name), *real = map;                                                                       \
		__typeof__(real_##name) emulated;                                                                                   \
		memcpy(&emulated, &p, sizeof emulated);                                                                             \
		map = made;                                                                                                         \
		if (emulated && !emulated arguments)                                                                                \
			keep_map(real, made);                                                                                           \
	}                                                                                                                       \
	AFTER(name, parameters, arguments, NOTE(emulate_##name arguments))
#include "hooks.def"
