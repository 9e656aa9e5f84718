/* SPDX-License-Identifier: MIT */
/*
 * An XLA FFI handler that launches any kernel of cptx as work of XLA's stream.
 *
 * The custom call has an attribute "launch", the number that cptx_xla_add gave a cptx_tensor_launch, and one more for each
 * number of its signature, by its name.  Tensors of the signature that are const get the call's operands in their order, the
 * others its results.  Operands beyond (those that are aliased to results) are not looked at.
 *
 * ffi.py beside this file compiles it, registers it with JAX and makes such calls.
 */
#include <cptx/dlpack.h>
#include <dlpack/dlpack.h>
#include <xla/ffi/api/c_api.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT XLA_FFI_Error *cptx_xla_cpu(XLA_FFI_CallFrame *frame);
EXPORT XLA_FFI_Error *cptx_xla_cuda(XLA_FFI_CallFrame *frame);
EXPORT int64_t cptx_xla_add(cptx_tensor_launch *launch);

/*
 * The launches that calls may name.  Compiled programs outlive the process in JAX's cache, addresses don't: a number has,
 * above its index, when the process began to count.
 */
enum { MAX_LAUNCHES = 4096 };
static cptx_tensor_launch *_Atomic launches[MAX_LAUNCHES];
static atomic_int_fast64_t began;
static atomic_size_t count;

/* For a launch that lives as long as the process; -1 if there are too many. */
int64_t cptx_xla_add(cptx_tensor_launch *launch)
{
	struct timespec now;
	int_fast64_t zero = 0;

	timespec_get(&now, TIME_UTC);
	atomic_compare_exchange_strong(&began, &zero, ((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000) << 12 & INT64_MAX);
	size_t i = atomic_fetch_add(&count, 1);
	if (i >= MAX_LAUNCHES)
		return -1;
	launches[i] = launch;
	return began | (int64_t)i;
}

static cptx_tensor_launch *find(int64_t number)
{
	return began && (number & ~(int64_t)(MAX_LAUNCHES - 1)) == began ? launches[number % MAX_LAUNCHES] : NULL;
}

static const struct {
	XLA_FFI_DataType xla;
	DLDataType dl;
} types[] = {
	{ XLA_FFI_DataType_PRED, { kDLBool, 8, 1 } },          { XLA_FFI_DataType_S8, { kDLInt, 8, 1 } },
	{ XLA_FFI_DataType_S16, { kDLInt, 16, 1 } },           { XLA_FFI_DataType_S32, { kDLInt, 32, 1 } },
	{ XLA_FFI_DataType_S64, { kDLInt, 64, 1 } },           { XLA_FFI_DataType_U8, { kDLUInt, 8, 1 } },
	{ XLA_FFI_DataType_U16, { kDLUInt, 16, 1 } },          { XLA_FFI_DataType_U32, { kDLUInt, 32, 1 } },
	{ XLA_FFI_DataType_U64, { kDLUInt, 64, 1 } },          { XLA_FFI_DataType_F16, { kDLFloat, 16, 1 } },
	{ XLA_FFI_DataType_BF16, { kDLBfloat, 16, 1 } },       { XLA_FFI_DataType_F32, { kDLFloat, 32, 1 } },
	{ XLA_FFI_DataType_F64, { kDLFloat, 64, 1 } },         { XLA_FFI_DataType_C64, { kDLComplex, 64, 1 } },
	{ XLA_FFI_DataType_C128, { kDLComplex, 128, 1 } },     { XLA_FFI_DataType_F8E4M3FN, { kDLFloat8_e4m3fn, 8, 1 } },
	{ XLA_FFI_DataType_F8E5M2, { kDLFloat8_e5m2, 8, 1 } }, { XLA_FFI_DataType_F8E8M0FNU, { kDLFloat8_e8m0fnu, 8, 1 } },
};

/* One call. */
typedef struct call {
	XLA_FFI_CallFrame *frame;
	DLDevice device;
	int64_t operand, result; /* the next of each */
	size_t n;
	cptx_tensor_arg args[CPTX_TENSOR_MAX_ARGS];
	DLTensor tensors[CPTX_TENSOR_MAX_ARGS];
	XLA_FFI_Error *error;
} call;

static bool fail(call *c, const char *text)
{
	XLA_FFI_Error_Create_Args args = { XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, text,
		                               XLA_FFI_Error_Code_INVALID_ARGUMENT };

	c->error = c->frame->api->XLA_FFI_Error_Create(&args);
	return false;
}

/* The scalar attribute of that name; NULL if there is none. */
static const XLA_FFI_Scalar *attribute(const call *c, const char *name)
{
	const XLA_FFI_Attrs *a = &c->frame->attrs;

	for (int64_t i = 0; i < a->size; i++)
		if (a->types[i] == XLA_FFI_AttrType_SCALAR && a->names[i]->len == strlen(name) &&
		    !memcmp(a->names[i]->ptr, name, a->names[i]->len))
			return a->attrs[i];
	return NULL;
}

static bool take_number(call *c, const cptx_tensor_arg_info *info, cptx_tensor_arg *arg)
{
	const XLA_FFI_Scalar *s = attribute(c, info->name);
	char text[200];

	if (s && s->dtype == XLA_FFI_DataType_F32)
		*arg = (cptx_tensor_arg){ .kind = CPTX_TENSOR_FLOAT, .u.f = (double)*(float *)s->value };
	else if (s && s->dtype == XLA_FFI_DataType_F64)
		*arg = (cptx_tensor_arg){ .kind = CPTX_TENSOR_FLOAT, .u.f = *(double *)s->value };
	else if (s && s->dtype == XLA_FFI_DataType_S32)
		*arg = (cptx_tensor_arg){ .kind = CPTX_TENSOR_INT, .u.i = *(int32_t *)s->value };
	else if (s && s->dtype == XLA_FFI_DataType_S64)
		*arg = (cptx_tensor_arg){ .kind = CPTX_TENSOR_INT, .u.i = *(int64_t *)s->value };
	else {
		snprintf(text, sizeof text, "the call must have an attribute \"%s\" of type s32, s64, f32 or f64", info->name);
		return fail(c, text);
	}
	return true;
}

static bool take_buffer(call *c, const cptx_tensor_arg_info *info, cptx_tensor_arg *arg)
{
	const XLA_FFI_CallFrame *f = c->frame;
	DLTensor *t = &c->tensors[c->n];
	const XLA_FFI_Buffer *b = NULL;
	char text[200];

	if (info->is_const && c->operand < f->args.size)
		b = f->args.args[c->operand++];
	else if (!info->is_const && c->result < f->rets.size)
		b = f->rets.rets[c->result++];
	if (!b) {
		snprintf(text, sizeof text, "the call has no %s for argument \"%s\"", info->is_const ? "operand" : "result",
		         info->name);
		return fail(c, text);
	}
	*t = (DLTensor){ .data = b->data, .device = c->device, .ndim = (int32_t)b->rank, .shape = b->dims };
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].xla == b->dtype)
			t->dtype = types[i].dl;
	*arg = (cptx_tensor_arg){ .kind = CPTX_TENSOR_DL, .u.tensor = t };
	return true;
}

static bool run(call *c, void *stream)
{
	const XLA_FFI_Scalar *number = attribute(c, "launch");
	cptx_tensor_launch *launch = NULL;
	cptx_tensor_arg_info info;
	cptx_error err = { 0 };

	if (number && number->dtype == XLA_FFI_DataType_S64)
		launch = find(*(int64_t *)number->value);
	if (!launch)
		return fail(
			c, "the call must have an attribute \"launch\" of type s64, a number that cptx_xla_add gave in this process");
	for (; cptx_tensor_launch_arg(launch, c->n, &info); c->n++)
		if (info.is_tensor ? !take_buffer(c, &info, &c->args[c->n]) : !take_number(c, &info, &c->args[c->n]))
			return false;
	if (c->result < c->frame->rets.size)
		return fail(c, "the call has more results than the signature has tensors that are not const");
	return cptx_tensor_launch_run(launch, c->args, c->n, NULL, stream, &err) || fail(c, err.text);
}

/* XLA asks first what it has before it; true: that was all. */
static bool tell_about_us(XLA_FFI_CallFrame *frame)
{
	XLA_FFI_Metadata_Extension *e = (XLA_FFI_Metadata_Extension *)frame->extension_start;

	if (!e || e->extension_base.type != XLA_FFI_Extension_Metadata)
		return false;
	e->metadata->api_version.major_version = XLA_FFI_API_MAJOR;
	e->metadata->api_version.minor_version = XLA_FFI_API_MINOR;
	e->metadata->traits = XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE; /* always the same launch: it may be recorded */
	return true;
}

XLA_FFI_Error *cptx_xla_cpu(XLA_FFI_CallFrame *frame)
{
	call c = { .frame = frame, .device = { kDLCPU, 0 } };

	if (!tell_about_us(frame))
		run(&c, NULL);
	return c.error;
}

XLA_FFI_Error *cptx_xla_cuda(XLA_FFI_CallFrame *frame)
{
	call c = { .frame = frame, .device = { kDLCUDA, 0 } };

	if (tell_about_us(frame))
		return NULL;
	XLA_FFI_Stream_Get_Args stream = { .struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE, .ctx = frame->ctx };
	XLA_FFI_DeviceOrdinal_Get_Args device = { .struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE, .ctx = frame->ctx };
	c.error = frame->api->XLA_FFI_Stream_Get(&stream);
	if (!c.error)
		c.error = frame->api->XLA_FFI_DeviceOrdinal_Get(&device);
	c.device.device_id = device.device_ordinal;
	if (!c.error)
		run(&c, stream.stream);
	return c.error;
}
