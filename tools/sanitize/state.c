/* SPDX-License-Identifier: MIT */
/* The emulated device of the process, and its lock. */
#include "context.h"

#include "run/schedule.h"

#include <stdlib.h>
#include <string.h>

struct san san;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void lock_make(void)
{
	pthread_mutexattr_t attr;

	if (pthread_mutexattr_init(&attr))
		return;
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&san.lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* A child of fork() begins between two calls of the other threads, which it does not have, and with a lock of its own. */
static void fork_begins(void) { pthread_mutex_lock(&san.lock); }
static void fork_ends(void) { pthread_mutex_unlock(&san.lock); }

static void lock_new(void)
{
	lock_make();
	pthread_atfork(fork_begins, fork_ends, lock_make);
}

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

/* The number of a variable, the least where it is unset; what is no such number is told in the error. */
static uint64_t number(const char *name, uint64_t least, uint64_t most, cptx_error *err)
{
	const char *value = variable(name, "");
	const size_t digits = strspn(value, "0123456789");
	const uint64_t n = *value ? strtoull(value, NULL, 10) : least;

	if (!value[digits] && digits < 20 && n >= least && n <= most)
		return n;
	err->code = CPTX_E_ARG;
	snprintf(err->text, sizeof err->text, "%s is '%.40s': expected a number from %llu to %llu", name, value,
	         (unsigned long long)least, (unsigned long long)most);
	return least;
}

static uint64_t only; /* order */
uint64_t san_order(void) { return only; }

static void open_device(void)
{
	const char *order = variable("CPTX_SANITIZE_SCHEDULE", "random");
	const enum cptx_emu_schedule how = schedule_of(order);
	cptx_error err = { .code = CPTX_OK };

	only = number("CPTX_SANITIZE_ORDER", 0, UINT64_MAX, &err);
	const cptx_emu_opt opt = {
		.size = CPTX_OPT_SIZE(cptx_emu_opt),
		.seed = number("CPTX_SANITIZE_SEED", 0, UINT64_MAX, &err),
		.schedule = how == CPTX_EMU_ALL && strcmp(order, "all") ? CPTX_EMU_RANDOM : how,
		.step_limit = number("CPTX_SANITIZE_LIMIT", 0, UINT64_MAX, &err),
		.sms = (uint32_t)number("CPTX_SANITIZE_SMS", 0, 1024, &err),
		.threads = (uint32_t)number("CPTX_SANITIZE_THREADS", 0, 256, &err),
		.pedantic = *variable("CPTX_SANITIZE_PEDANTIC", "0") == '1',
		.print = san_print,
		.orders = number("CPTX_SANITIZE_ORDERS", 0, UINT64_MAX, &err),
		.order = only,
		.no_traffic = true, /* nobody asks for it */
	};

	san.ndevice = (int)number("CPTX_SANITIZE_DEVICES", 1, SAN_DEVICES, &err);
	san.dev = err.code ? NULL : cptx_emu_open(variable("CPTX_SANITIZE_ARCH", "sm_90a"), &opt, &err);
	if (san.dev) {
		san.info = cptx_device_get_info(san.dev);
	} else {
		san.failed = SAN_NO_DEVICE, san_say("no device: %s", err.text);
		san_unchecked(SAN_UNCHECKED_PROGRAM, "", err.text);
	}
}

int san_enter(void)
{
	pthread_once(&once, lock_new);
	pthread_mutex_lock(&san.lock);
	if (!san.dev && !san.failed)
		open_device();
	san.device = san_current_device();
	if (san.dev && san.ndevice > 1)
		cptx_emu_act_as(san.dev, (unsigned)san.device, NULL);
	return san.failed;
}

void san_leave(void) { pthread_mutex_unlock(&san.lock); }

/* The finding that ended a launch, as an error of CUDA. */
static int ended_by(void)
{
	const cptx_emu_finding *f, *last = NULL;

	for (size_t i = 0; (f = cptx_emu_finding_at(san.dev, i)); i++)
		if (f->rank == CPTX_FIND_ERROR)
			last = f;
	switch (last ? last->code : CPTX_FIND_NONE) {
	case CPTX_FIND_ASSERT: return SAN_ASSERT;
	case CPTX_FIND_BOUNDS:
	case CPTX_FIND_USE_AFTER_FREE: return SAN_ADDRESS;
	case CPTX_FIND_MISALIGNED: return SAN_MISALIGNED;
	case CPTX_FIND_DEADLOCK:
	case CPTX_FIND_STEP_LIMIT: return SAN_TIMEOUT;
	default: return SAN_LAUNCH;
	}
}

size_t san_findings(void)
{
	size_t n = 0;

	while (cptx_emu_finding_at(san.dev, n))
		n++;
	return n;
}

bool san_ended(size_t from)
{
	static const bool ends[CPTX_FIND_COUNT] = {
		false,
#define CPTX_FINDING_(name, text, ends) ends,
#include <cptx/findings.def>
#undef CPTX_FINDING_
	};
	const cptx_emu_finding *f;

	for (size_t i = from; (f = cptx_emu_finding_at(san.dev, i)); i++)
		if (f->rank == CPTX_FIND_ERROR && ends[f->code])
			return true;
	return false;
}

int san_failed(const char *call, const cptx_error *err)
{
	switch (err->code) {
	case CPTX_OK: return SAN_OK;
	case CPTX_E_FINDING: return ended_by(); /* which san_report says */
	case CPTX_E_MEMORY: san_say("%s: %s", call, err->text); return SAN_MEMORY;
	case CPTX_E_LIMIT: san_say("%s: %s", call, err->text); return SAN_CONFIGURATION;
	case CPTX_E_TARGET: san_say("%s: %s", call, err->text); return SAN_NO_IMAGE;
	case CPTX_E_ARG: san_say("%s: %s", call, err->text); return SAN_VALUE;
	default: san_say("%s: %s", call, err->text); return SAN_UNKNOWN;
	}
}
