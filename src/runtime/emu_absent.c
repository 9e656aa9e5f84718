/* SPDX-License-Identifier: MIT */
/* Replaces emu.c and src/emu where the emulator is left out (-Demulator=disabled). */
#include "runtime/runtime.h"

#include <cptx/emu.h>

bool emulator_there(cptx_error *err) { return error_absent(err, NOWHERE, "emulator", "emulator"); }

cptx_device *cptx_emu_open(const char *target, const cptx_emu_opt *opt, cptx_error *err)
{
	(void)target, (void)opt;
	emulator_there(err);
	return NULL;
}

bool cptx_emu_reseed(cptx_device *dev, uint64_t seed, enum cptx_emu_schedule schedule)
{
	(void)dev, (void)seed, (void)schedule;
	return false;
}

uint64_t cptx_emu_texture(cptx_device *dev, const cptx_emu_texture_opt *opt, cptx_error *err)
{
	(void)dev, (void)opt;
	emulator_there(err);
	return 0;
}

bool cptx_emu_texture_free(cptx_device *dev, uint64_t handle)
{
	(void)dev, (void)handle;
	return false;
}

bool cptx_emu_alloc_at(cptx_device *dev, uint64_t at, size_t size, bool written, cptx_error *err)
{
	(void)dev, (void)at, (void)size, (void)written;
	return emulator_there(err);
}

bool cptx_emu_place(cptx_device *dev, const char *variable, uint64_t at, cptx_error *err)
{
	(void)dev, (void)variable, (void)at;
	return emulator_there(err);
}

bool cptx_emu_back(cptx_device *dev, uint64_t at, void *host, cptx_error *err)
{
	(void)dev, (void)at, (void)host;
	return emulator_there(err);
}

bool cptx_emu_written(const cptx_device *dev, uint64_t at, size_t size, size_t *run)
{
	(void)dev, (void)at, (void)size;
	*run = 0;
	return false;
}

bool cptx_emu_act_as(cptx_device *dev, unsigned number, cptx_error *err)
{
	(void)dev, (void)number;
	return emulator_there(err);
}

bool cptx_emu_reach(cptx_device *dev, uint64_t at, uint64_t devices, cptx_error *err)
{
	(void)dev, (void)at, (void)devices;
	return emulator_there(err);
}

bool cptx_emu_alias(cptx_device *dev, uint64_t at, uint64_t of, size_t size, cptx_error *err)
{
	(void)dev, (void)at, (void)of, (void)size;
	return emulator_there(err);
}

bool cptx_emu_multicast(cptx_device *dev, uint64_t at, const uint64_t *members, size_t n, cptx_error *err)
{
	(void)dev, (void)at, (void)members, (void)n;
	return emulator_there(err);
}

bool cptx_emu_variable_(const cptx_program *program, size_t i, cptx_emu_variable_info *out, size_t size)
{
	(void)program, (void)i, (void)out, (void)size;
	return false;
}

const char *cptx_finding_name(enum cptx_finding_code code)
{
	static const char *const names[CPTX_FIND_COUNT] = {
		"none",
#define CPTX_FINDING_(id, text, ends) text,
#include <cptx/findings.def>
#undef CPTX_FINDING_
	};

	return (unsigned)code < CPTX_FIND_COUNT ? names[code] : NULL;
}

const cptx_emu_finding *cptx_emu_finding_at(const cptx_device *dev, size_t i)
{
	(void)dev, (void)i;
	return NULL;
}

bool cptx_emu_continue(cptx_device *dev)
{
	(void)dev;
	return false;
}

void cptx_emu_clear(cptx_device *dev) { (void)dev; }

bool cptx_emu_orders_(const cptx_device *dev, cptx_emu_order_info *out, size_t size)
{
	(void)dev, (void)out, (void)size;
	return false;
}

bool cptx_emu_get_counters_(const cptx_device *dev, cptx_emu_counters *out, size_t size)
{
	(void)dev, (void)out, (void)size;
	return false;
}

bool cptx_emu_get_profile_(const cptx_device *dev, size_t i, cptx_emu_profile *out, size_t size)
{
	(void)dev, (void)i, (void)out, (void)size;
	return false;
}
