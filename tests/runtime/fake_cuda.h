/* SPDX-License-Identifier: MIT */
/* What the tests set in and read from the fake driver; `fake_cuda` is its one exported variable. */
#ifndef CPTX_TEST_FAKE_CUDA_H
#define CPTX_TEST_FAKE_CUDA_H

#include "runtime/driver.h"

enum { FAKE_PARAMS = 8, FAKE_OPTIONS = 16 };

typedef struct fake_state {
	/* set by a test */
	int version, devices, major, minor;
	char fail_call[64]; /* this call answers fail_code */
	cu_result fail_code;
	const char *jit_error, *jit_info;
	cu_result refuse_ptx; /* what loading PTX text gives; 0: it is taken */
	unsigned nparams;     /* of every kernel, for cuFuncGetParamInfo */
	size_t param_size[FAKE_PARAMS];
	int regs, local, static_smem, max_threads, ctas;
	const char *kernel; /* the only one that exists; NULL: any */

	/* read by a test */
	cu_context current;
	unsigned loads[2];                          /* of text, of ELF images */
	unsigned links, pieces, piece[FAKE_PARAMS]; /* cubins linked, and from what: the last types of input */
	unsigned retained, pushes, pops, sets, modules, allocations, streams, events;
	unsigned launches, cluster_launches;
	unsigned grid[3], block[3], smem;
	cu_stream stream;
	uint64_t params[FAKE_PARAMS]; /* first bytes of the arguments, of as many as nparams says */
	cu_launch_attr attr;
	unsigned nattrs, noptions, options[FAKE_OPTIONS];
	uintptr_t values[FAKE_OPTIONS];
	unsigned set_attr;
	int set_value, set_count;
	char tensor_call[32]; /* which encoded */
	unsigned tensor_type, tensor_rank, tensor_box[5], tensor_step[5],
		tensor_choices[5]; /* interleave swizzle l2 fill mode */
	uint64_t tensor_address, tensor_dim[5], tensor_stride[4];
	int tensor_corners[6];
} fake_state;

#endif
