/* SPDX-License-Identifier: MIT */
/* Launches: CUDA hands over addresses of the arguments; what each is, the kernel's parameters say. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cptx_arg argument(const cptx_param_info *p, const void *value)
{
	cptx_arg a = CPTX_ARG_BYTES(value, p->size);

	switch (p->type) {
	case CPTX_PTR:
	case CPTX_U8:
	case CPTX_U16:
	case CPTX_U32:
	case CPTX_U64:
	case CPTX_S8:
	case CPTX_S16:
	case CPTX_S32:
	case CPTX_S64: a.kind = CPTX_ARG_INT; break;
	case CPTX_F32:
	case CPTX_F64: a.kind = CPTX_ARG_FLOAT; break;
	default: return a;
	}
	a.u.u64 = 0;
	memcpy(&a.u, value, p->size);
	return a;
}

/* A launch that the device refuses, as CUDA would name it. */
static int refused(const san_kernel *k, const san_shape *shape, const cptx_error *err)
{
	if (err->code == CPTX_E_LIMIT && shape->cooperative)
		return san_say("%s", err->text), SAN_COOPERATIVE;
	return err->code == CPTX_E_ARG ? (san_say("%s", err->text), SAN_CONFIGURATION) : san_failed(k->name, err);
}

static int run(san_kernel *k, const san_shape *shape, const cptx_arg *args)
{
	cptx_error err = { .code = CPTX_OK };
	const cptx_site nowhere = { 0 }; /* no line of this library belongs into a message */
	cptx_launch_opt opt = { .size = CPTX_OPT_SIZE(cptx_launch_opt),
		                    .dyn_smem = shape->smem,
		                    .overlap = shape->overlap && san.info->clusters,
		                    .cooperative = shape->cooperative,
		                    .nargs = k->info.nparams,
		                    .args = args };

	memcpy(opt.grid, shape->grid, sizeof opt.grid);
	memcpy(opt.block, shape->block, sizeof opt.block);
	memcpy(opt.cluster, shape->cluster, sizeof opt.cluster);
	size_t findings = san_findings();
	cptx_launch *l = cptx_launch_new_(nowhere, k->module->program[san.device], k->name, &opt, &err);
	if (!l)
		return refused(k, shape, &err);
	bool ok = cptx_launch_run(l, NULL, &err);
	cptx_launch_destroy(l);
	san_report();
	cptx_emu_order_info orders = { .orders = 0 };
	const bool asked = cptx_emu_orders(san.dev, &orders);
	const bool none = asked && san_order() > orders.orders && !orders.found && !orders.why;
	char only[64];
	snprintf(only, sizeof only, "--order %llu: the last order is %llu", (unsigned long long)san_order(),
	         (unsigned long long)orders.orders);
	if (asked)
		san_say("kernel %s: %s", orders.kernel, none ? only : orders.text);
	if (asked && orders.difference)
		san_differs(&orders);
	if (none)
		san_unchecked(SAN_UNCHECKED_ORDER, k->name, only);
	else if (ok || err.code == CPTX_E_FINDING)
		san_checked();
	if (ok || err.code != CPTX_E_FINDING)
		return ok ? SAN_OK : san_failed(k->name, &err);
	/* Findings that do not end a launch leave its results: the program goes on as on a GPU. */
	if (san_ended(findings))
		san.failed = san_failed(k->name, &err);
	return SAN_OK; /* the launch itself has begun: as with CUDA, later calls say what became of it */
}

static int launch(san_kernel *k, const san_shape *shape, void **values, san_stream *s)
{
	int e = san_kernel_ready(k);

	if (e)
		return e;
	if (s && s->device != san.device) {
		san_say("kernel %s: the stream is one of device %d, and device %d is current", k->name, s->device, san.device);
		return SAN_HANDLE;
	}
	if (k->info.nparams && !values) {
		san_say("kernel %s has %zu parameters, and no arguments are given", k->name, k->info.nparams);
		return SAN_VALUE;
	}
	if (san_captures(s))
		return san_keep_launch(s, k, shape, values);
	cptx_arg *args = (cptx_arg *)calloc(k->info.nparams + 1, sizeof *args);
	if (!args)
		return SAN_MEMORY;
	for (size_t i = 0; i < k->info.nparams; i++)
		args[i] = argument(&k->info.params[i], values[i]);
	const bool recorded = san_record_next(k->name) && san_record_before(k, shape, values);
	e = run(k, shape, args);
	if (recorded)
		san_record_after(e ? e : san.failed);
	free(args);
	fflush(stdout);
	return e;
}

int san_not_launched(const char *kernel, int error)
{
	/* what CUDA refuses, too: the emulator lacks nothing */
	const bool refused = !kernel || error == SAN_CONFIGURATION || error == SAN_COOPERATIVE || error == SAN_VALUE ||
	                     error == SAN_HANDLE || error == SAN_CAPTURE;

	san_unchecked(refused ? SAN_UNCHECKED_REFUSED : SAN_UNCHECKED_LAUNCH, kernel ? kernel : "", san_error_of(error)->text);
	return error;
}

int san_launch(san_kernel *k, const san_shape *shape, void **values, san_stream *s)
{
	int e = launch(k, shape, values, s);

	return e ? san_not_launched(k->name, e) : e;
}
