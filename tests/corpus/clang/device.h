/* SPDX-License-Identifier: MIT */
// What the CUDA headers would declare, for clang without them: the attributes, the special registers, a few operations.
#ifndef CORPUS_DEVICE_H
#define CORPUS_DEVICE_H

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __noinline __attribute__((noinline))

#define tid_x __nvvm_read_ptx_sreg_tid_x()
#define tid_y __nvvm_read_ptx_sreg_tid_y()
#define ntid_x __nvvm_read_ptx_sreg_ntid_x()
#define ctaid_x __nvvm_read_ptx_sreg_ctaid_x()
#define ctaid_y __nvvm_read_ptx_sreg_ctaid_y()
#define nctaid_x __nvvm_read_ptx_sreg_nctaid_x()

#endif
