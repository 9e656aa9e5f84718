/* SPDX-License-Identifier: MIT */
/* The library that libcptx_record.so needs under this name: when a program runs, the driver's own takes its place. */
extern int cptx_real_cuda;
int cptx_real_cuda;
