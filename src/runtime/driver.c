/* SPDX-License-Identifier: MIT */
/* libcuda, opened at run time. */
#include "runtime/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static bool open_library(driver *d, cptx_error *err)
{
	const char *path = getenv("CPTX_CUDA_LIBRARY");
	bool chosen = path && *path;

#ifdef _WIN32
	d->path = chosen ? path : "nvcuda.dll";
#else
	d->path = chosen ? path : "libcuda.so.1";
#endif
	/* RTLD_NODELETE: the driver keeps threads and exit handlers, so its code must stay when the handle is closed. */
	d->lib = dlopen(d->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (d->lib)
		return true;
	const char *why = dlerror();
	return error_set(err, CPTX_E_NO_DRIVER, NOWHERE, "cannot open the CUDA driver library: %s; %s", why ? why : d->path,
	                 chosen ? "CPTX_CUDA_LIBRARY names it: give the path of a libcuda.so.1, or unset the variable"
	                        : "install the NVIDIA driver, or set CPTX_CUDA_LIBRARY to the path of its libcuda.so.1");
}

void *driver_symbol(const driver *d, const char *name) { return dlsym(d->lib, name); }

static bool find_calls(driver *d, cptx_error *err)
{
	void *p;
	const char *lacking = NULL;

/* A void * becomes a function pointer by its bytes: POSIX promises it, ISO C has no cast for it. */
#define MAY(name, args) p = dlsym(d->lib, #name), memcpy(&d->name, &p, sizeof p);
#define NEED(name, args)                                                                                                    \
	MAY(name, args)                                                                                                         \
	if (!p && !lacking)                                                                                                     \
		lacking = #name;
	DRIVER_CALLS(NEED, MAY)
#undef NEED
#undef MAY
	if (!lacking)
		return true;
	if (!d->cuInit)
		return error_set(err, CPTX_E_NO_DRIVER, NOWHERE, "%s is no CUDA driver library: it has no cuInit", d->path);
	return error_set(err, CPTX_E_NO_DRIVER, NOWHERE,
	                 "the CUDA driver %s is too old: it has no %s; a driver of CUDA 11.0 or later is needed", d->path,
	                 lacking);
}

static bool start(driver *d, cptx_error *err)
{
	cu_result r = d->cuInit(0);

	switch (r) {
	case CU_OK: return true;
	case CU_NO_DEVICE:
		return error_set(
			err, CPTX_E_NO_DEVICE, NOWHERE,
			"the CUDA driver finds no GPU (CUDA_ERROR_NO_DEVICE); if there is one, look at CUDA_VISIBLE_DEVICES");
	case CU_STUB:
		return error_set(err, CPTX_E_NO_DRIVER, NOWHERE,
		                 "%s is the stub library for linking, not a driver; find the libcuda.so.1 of an installed driver",
		                 d->path);
	default: return driver_fail(d, r, err, NOWHERE, "starting the CUDA driver %s", d->path);
	}
}

bool driver_open(driver *d, cptx_error *err)
{
	*d = (driver){ 0 };
	if (!open_library(d, err))
		return false;
	if (find_calls(d, err) && start(d, err))
		return true;
	driver_close(d);
	return false;
}

void driver_close(driver *d)
{
	if (d->lib)
		dlclose(d->lib);
	*d = (driver){ 0 };
}

void driver_describe(const driver *d, cu_result r, char *text, size_t size)
{
	const char *name = NULL, *meaning = NULL;

	if (d->cuGetErrorName(r, &name) != CU_OK || !name)
		name = "an error that the driver cannot name";
	if (d->cuGetErrorString(r, &meaning) != CU_OK)
		meaning = NULL;
	bool captured = r == CU_CAPTURE_UNSUPPORTED || r == CU_CAPTURE_IMPLICIT;
	snprintf(text, size, "%s (%u)%s%s%s", name, r, meaning ? ": " : "", meaning ? meaning : "",
	         captured ? "; a stream is being captured into a graph, where only its work may be: load and allocate outside"
	                  : "");
}

static bool fault_of_a_kernel(cu_result r)
{
	return r == CU_ILLEGAL_ADDRESS || r == CU_LAUNCH_TIMEOUT || r == CU_ASSERT ||
	       (r >= CU_HARDWARE_STACK && r <= CU_LAUNCH_FAILED);
}

bool driver_fail(const driver *d, cu_result r, cptx_error *err, cptx_site at, const char *format, ...)
{
	char doing[512], what[256];
	va_list ap;

	if (!err || err->code != CPTX_OK)
		return false;
	va_start(ap, format);
	text_message(doing, sizeof doing, format, ap);
	va_end(ap);
	driver_describe(d, r, what, sizeof what);
	return error_set(err, CPTX_E_DRIVER, at, "%s: %s%s", doing, what,
	                 fault_of_a_kernel(r) ? "; a kernel that ran before caused it, and its context is lost" : "");
}
