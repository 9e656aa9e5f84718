/* SPDX-License-Identifier: MIT */
/* What the tests of tensors share: kernels on the emulator, and tensors of arrays. */
#ifndef CPTX_TEST_TENSOR_HARNESS_H
#define CPTX_TEST_TENSOR_HARNESS_H

#include "../runtime/harness.h"

#include <cptx/dlpack.h>
#include <cptx/emu.h>
#include <dlpack/dlpack.h>

static const char saxpy_text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
								 ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)\n"
								 "{\n"
								 "	.reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %rd<6>;\n"
								 "	ld.param.u64 %rd1, [x];\n	ld.param.u64 %rd2, [y];\n"
								 "	ld.param.f32 %f1, [a];\n	ld.param.u32 %r1, [n];\n"
								 "	mov.u32 %r2, %ctaid.x;\n	mov.u32 %r3, %ntid.x;\n	mov.u32 %r4, %tid.x;\n"
								 "	mad.lo.u32 %r2, %r2, %r3, %r4;\n	setp.ge.u32 %p, %r2, %r1;\n	@%p ret;\n"
								 "	mul.wide.u32 %rd3, %r2, 4;\n	add.u64 %rd4, %rd1, %rd3;\n	add.u64 %rd5, %rd2, %rd3;\n"
								 "	ld.global.f32 %f2, [%rd4];\n	ld.global.f32 %f3, [%rd5];\n"
								 "	fma.rn.f32 %f3, %f1, %f2, %f3;\n	st.global.f32 [%rd5], %f3;\n	ret;\n}\n";
/* Nothing but parameters: for what is about arguments only. */
static const char idle_text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
								".visible .entry idle(.param .u64 x, .param .u64 y) { ret; }\n";

static cptx_device *dev;
static cptx_error err;

static inline cptx_program *load(const char *text)
{
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), NULL, &err);
	OK(err);
	return p;
}

static inline cptx_tensor_launch *prepare(const cptx_program *p, const char *signature, const char *grid)
{
	return cptx_tensor_launch_new(p, NULL,
	                              &(cptx_tensor_launch_opt){ .signature = signature, .grid = grid, .block = { 64 } }, &err);
}

/* A tensor of floats on the CPU. */
static inline DLTensor floats(float *p, int rank, int64_t *shape)
{
	return (DLTensor){ .data = p, .device = { kDLCPU, 0 }, .ndim = rank, .dtype = { kDLFloat, 32, 1 }, .shape = shape };
}

static inline cptx_tensor_arg tensor(const DLTensor *t)
{
	return (cptx_tensor_arg){ .kind = CPTX_TENSOR_DL, .u.tensor = t };
}

static inline cptx_tensor_arg number(double f) { return (cptx_tensor_arg){ .kind = CPTX_TENSOR_FLOAT, .u.f = f }; }

static inline cptx_tensor_arg integer(int64_t i) { return (cptx_tensor_arg){ .kind = CPTX_TENSOR_INT, .u.i = i }; }

#endif
