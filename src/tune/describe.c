/* SPDX-License-Identifier: MIT */
/* What a device says of itself for the key of a record. */
#include "base/base.h"

#include <cptx/emu.h>
#include <cptx/tune.h>

#include <dlfcn.h>
#include <stdio.h>

/* The power limit that the device has when it is new, in watts, by the driver's library for monitoring; 0: there is none. */
static uint32_t power_of(cptx_device *dev)
{
	int (*bus_id)(char *text, int size, int device) = NULL;
	int (*current)(int *device) = NULL;
	int (*init)(void) = NULL, (*end)(void) = NULL;
	int (*find)(const char *bus, void **handle) = NULL;
	int (*limit)(void *handle, unsigned *milliwatts) = NULL;
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *handle;
	const struct {
		const char *name;
		void *to;
		void *from;
	} calls[] = {
		{ "cuDeviceGetPCIBusId", &bus_id, cptx_device_symbol(dev, "cuDeviceGetPCIBusId") },
		{ "cuCtxGetDevice", &current, cptx_device_symbol(dev, "cuCtxGetDevice") },
		{ "nvmlInit_v2", &init, lib ? dlsym(lib, "nvmlInit_v2") : NULL },
		{ "nvmlShutdown", &end, lib ? dlsym(lib, "nvmlShutdown") : NULL },
		{ "nvmlDeviceGetHandleByPciBusId_v2", &find, lib ? dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2") : NULL },
		{ "nvmlDeviceGetPowerManagementDefaultLimit", &limit,
		  lib ? dlsym(lib, "nvmlDeviceGetPowerManagementDefaultLimit") : NULL },
	};
	char bus[64] = "";
	unsigned mw = 0;
	int device;
	bool all = true;

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		all &= calls[i].from != NULL;
		memcpy(calls[i].to, &calls[i].from, sizeof calls[i].from);
	}
	if (all && cptx_device_make_current(dev, NULL) && !current(&device) && !bus_id(bus, sizeof bus, device) && !init()) {
		if (find(bus, &handle) || limit(handle, &mw))
			mw = 0;
		end();
	}
	if (lib)
		dlclose(lib);
	return (mw + 500) / 1000;
}

/* The compiler with its version, without the place that follows in brackets. */
static bool compiler_of(enum cptx_compiler compiler, char text[CPTX_TUNE_TEXT], cptx_error *err)
{
	if (!cptx_compiler_find(compiler, text, CPTX_TUNE_TEXT))
		return error_set(err, CPTX_E_NO_COMPILER, NOWHERE, "tune: %s", text);
	char *place = strstr(text, " (");
	if (place)
		*place = 0;
	return true;
}

bool cptx_tune_describe(cptx_device *dev, enum cptx_compiler compiler, cptx_tune_key *key, char text[CPTX_TUNE_TEXT],
                        cptx_error *err)
{
	const cptx_device_info *i = cptx_device_get_info(dev);
	cptx_emu_counters counters;
	cptx_error own = { .code = CPTX_OK };

	err = err ? err : &own;
	if (err->code != CPTX_OK || !IS_GIVEN(dev, "device", NOWHERE, err) || !IS_GIVEN(key, "key", NOWHERE, err) ||
	    !IS_GIVEN(text, "text", NOWHERE, err))
		return false;
	const bool emulated = cptx_emu_get_counters(dev, &counters);
	key->device = i->name, key->sms = i->sms;
	key->clock_mhz = emulated ? 0 : i->clock_khz / 1000, key->driver = emulated ? 0 : i->driver;
	key->power_w = emulated ? 0 : power_of(dev);
	key->compiler = text;
	if (emulated || compiler == CPTX_COMPILER_AUTO || compiler == CPTX_COMPILER_DRIVER) {
		snprintf(text, CPTX_TUNE_TEXT, "%s", emulated ? "emulator" : "driver");
		return true;
	}
	return compiler_of(compiler, text, err);
}
