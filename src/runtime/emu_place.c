/* SPDX-License-Identifier: MIT */
/* Memory of the emulator at addresses that the caller chooses, and what lies where: for those who keep a launch and run it
 * again. */
#include "base/options.h"
#include "emu/memory/memory.h"
#include "runtime/emu.h"

#include <cptx/emu.h>

/* The emulator that a call may use; NULL, and an error: there is none, or an earlier error. */
static emu_machine *asked(const char *function, const cptx_device *dev, cptx_error *err)
{
	emu_machine *m = dev && may_go(err) ? emulator_of(dev) : NULL;

	if (!dev)
		error_null(function, "device", NOWHERE, err);
	else if (!m)
		error_set(err, CPTX_E_ARG, NOWHERE, "%s: %s is no emulator, which alone lets the caller choose addresses", function,
		          dev->info.name);
	return m;
}

bool cptx_emu_alloc_at(cptx_device *dev, uint64_t at, size_t size, bool written, cptx_error *err)
{
	emu_machine *m = asked(__func__, dev, err);

	if (!m)
		return false;
	emulator_lock(dev);
	const char *bar = emu_alloc_bars(m, at, size);
	bool ok = !bar && emu_alloc_at(m, at, size, NULL, written);
	emulator_unlock(dev);
	if (bar)
		return error_set(err, CPTX_E_ARG, NOWHERE, "%zu bytes cannot be allocated at 0x%llx: %s", size,
		                 (unsigned long long)at, bar);
	return ok || error_set(err, CPTX_E_MEMORY, NOWHERE, "no %zu bytes of memory for the emulator: the host has not got them",
	                       size);
}

bool cptx_emu_back(cptx_device *dev, uint64_t at, void *host, cptx_error *err)
{
	emu_machine *m = asked(__func__, dev, err);

	if (!m)
		return false;
	emulator_lock(dev);
	emu_alloc *a = emu_alloc_find(m, at);
	const bool fits = a && host && a->at == at && !a->name && !a->of && !a->aliases && !a->nmember && !a->is_host &&
	                  !a->is_unified && !a->is_heap && !m->running;
	if (fits)
		emu_alloc_back(m, a, (unsigned char *)host);
	emulator_unlock(dev);
	return fits || error_set(err, CPTX_E_ARG, NOWHERE, "0x%llx is no allocation whose bytes can be replaced",
	                         (unsigned long long)at);
}

bool cptx_emu_place(cptx_device *dev, const char *variable, uint64_t at, cptx_error *err)
{
	emu_machine *m = asked(__func__, dev, err);

	if (!m)
		return false;
	if (!variable || !*variable || !at)
		return error_set(err, CPTX_E_ARG, NOWHERE, "cptx_emu_place wants the name of a variable, and an address");
	emulator_lock(dev);
	bool ok = emu_wish_add(m, variable, at);
	emulator_unlock(dev);
	return ok || no_memory(err, NOWHERE);
}

bool cptx_emu_written(const cptx_device *dev, uint64_t at, size_t size, size_t *run)
{
	const emu_machine *m = dev ? emulator_of(dev) : NULL;
	bool written = false;

	if (run)
		*run = 0;
	if (!m || !run)
		return false;
	emulator_lock(dev);
	const emu_alloc *a = emu_alloc_find(m, at);
	if (a) {
		const uint64_t first = at - a->at, end = MIN(a->size - first, (uint64_t)size) + first;
		uint64_t i = first;
		written = !a->defined || a->defined[i / 8] >> i % 8 & 1;
		const uint8_t whole = written ? 0xff : 0;
		while (i < end && a->defined && (a->defined[i / 8] >> i % 8 & 1) == written)
			i += i % 8 == 0 && end - i >= 8 && a->defined[i / 8] == whole ? 8 : 1;
		*run = (size_t)((a->defined ? i : end) - first);
	}
	emulator_unlock(dev);
	return written;
}

bool cptx_emu_variable_(const cptx_program *program, size_t i, cptx_emu_variable_info *out, size_t size)
{
	cptx_emu_variable_info found = { .name = NULL };

	if (!program || !out || !emulator_of(program->dev))
		return false;
	emulator_lock(program->dev);
	found.at = emu_program_variable_at((const emu_program *)program->handle, i, &found.name, &found.bytes);
	emulator_unlock(program->dev);
	if (found.at)
		RESULT_FILL(out, size, &found);
	return found.at != 0;
}

/* ---- several devices in one address space ---- */

bool cptx_emu_act_as(cptx_device *dev, unsigned number, cptx_error *err)
{
	emu_machine *m = asked(__func__, dev, err);

	if (!m)
		return false;
	if (number >= CPTX_EMU_DEVICES)
		return error_set(err, CPTX_E_ARG, NOWHERE, "device %u: there are numbers 0 to %d", number, CPTX_EMU_DEVICES - 1);
	emulator_lock(dev);
	m->number = number;
	m->reach = UINT64_C(1) << number;
	emulator_unlock(dev);
	return true;
}

bool cptx_emu_reach(cptx_device *dev, uint64_t at, uint64_t devices, cptx_error *err)
{
	emu_machine *m = asked(__func__, dev, err);

	if (!m)
		return false;
	emulator_lock(dev);
	emu_alloc *a = emu_alloc_find(m, at);
	if (a)
		a->reach = devices;
	emulator_unlock(dev);
	return a || error_set(err, CPTX_E_ARG, NOWHERE, "nothing is allocated at 0x%llx", (unsigned long long)at);
}

bool cptx_emu_alias(cptx_device *dev, uint64_t at, uint64_t of, size_t size, cptx_error *err)
{
	enum { UNIT = 64 /* bytes: no access is aligned to more, and a view of memory settles so many at once */ };
	emu_machine *m = asked(__func__, dev, err);

	if (!m)
		return false;
	emulator_lock(dev);
	emu_alloc *a = emu_alloc_find(m, of);
	const char *bar = emu_alloc_bars(m, at, size);
	const bool fits = a && !a->name && !a->of && !a->is_heap && (of - a->at) % UNIT == 0 && (at - of) % UNIT == 0 &&
	                  size <= a->size - (of - a->at);
	const bool ok = !bar && fits && emu_alloc_alias(m, at, a, of - a->at, size);
	emulator_unlock(dev);
	if (bar)
		return error_set(err, CPTX_E_ARG, NOWHERE, "%zu bytes cannot be at 0x%llx: %s", size, (unsigned long long)at, bar);
	if (!fits)
		return error_set(err, CPTX_E_ARG, NOWHERE,
		                 "%zu bytes at 0x%llx are not in one allocation, %d bytes aligned in it and to 0x%llx", size,
		                 (unsigned long long)of, UNIT, (unsigned long long)at);
	return ok || no_memory(err, NOWHERE);
}

bool cptx_emu_multicast(cptx_device *dev, uint64_t at, const uint64_t *members, size_t n, cptx_error *err)
{
	emu_machine *m = asked(__func__, dev, err);

	if (!m)
		return false;
	if (!members || !n || n > CPTX_EMU_DEVICES)
		return error_set(err, CPTX_E_ARG, NOWHERE, "a multicast object has 1 to %d members", CPTX_EMU_DEVICES);
	emulator_lock(dev);
	emu_alloc *a = emu_alloc_find(m, at);
	bool fits = a && a->at == at && !a->name;
	for (size_t i = 0; fits && i < n; i++) {
		const emu_alloc *x = emu_alloc_find(m, members[i]);
		fits = x && !x->nmember && x != a && a->size <= x->size - (members[i] - x->at);
	}
	uint64_t *copy = fits ? NEW_ARRAY(uint64_t, n) : NULL;
	if (copy) {
		memcpy(copy, members, n * sizeof *copy);
		free(a->member);
		a->member = copy, a->nmember = (uint32_t)n;
	}
	emulator_unlock(dev);
	if (!fits)
		return error_set(err, CPTX_E_ARG, NOWHERE, "0x%llx is no allocation, or a member has not as many bytes",
		                 (unsigned long long)at);
	return copy || no_memory(err, NOWHERE);
}
