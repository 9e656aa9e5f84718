/* SPDX-License-Identifier: MIT */
/*
 * One tensor copy as a kernel on any device, and what it should do, byte by byte, from the rules alone: what test_tma.c and
 * device/tma_vs_gpu.c share.
 */
#ifndef CPTX_TEST_TENSOR_H
#define CPTX_TEST_TENSOR_H

#include <cptx/emu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSOR_SMEM = 32768, TENSOR_FILL = 0xa5 /* what shared memory holds before a load */ };

typedef struct tensor_case {
	cptx_tensor_map_opt map; /* address: of the buffer, an offset */
	size_t size;             /* of the buffer */
	enum tensor_way { TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE } way;
	const char *mode; /* "tile", "im2col", "tile::gather4" ... */
	const char *op;   /* TENSOR_REDUCE: "add" */
	int32_t coord[5];
	uint16_t offset[3];
	uint32_t at;   /* offset in shared memory, which is aligned to 1024 */
	uint32_t room; /* bytes of dynamic shared memory, a multiple of 16 from 512 on; 0: a variable of TENSOR_SMEM */
	const char *target;
} tensor_case;

/* A random one that breaks no rule. */
tensor_case tensor_random(uint64_t *state, enum tensor_way way, bool newer /* than sm_90 */);
/* A reduction of floats, of which tensor_reference knows nothing. */
tensor_case tensor_random_float(uint64_t *state, bool newer);
uint32_t tensor_below(uint64_t *state, uint32_t n);
/* In words, for who has to look at it. */
void tensor_print(const tensor_case *c, char *text, size_t size);

/* Bytes that it moves, out-of-bounds ones too. */
uint32_t tensor_bytes(const tensor_case *c);
uint32_t tensor_told(const tensor_case *c); /* what an mbarrier counts of them: padding does not */
/* Bytes of shared memory from c->at on that it reads or writes, up to the last. */
uint32_t tensor_extent(const tensor_case *c);
/* Coordinates, and offsets of im2col. */
void tensor_place(const tensor_case *c, char *text, size_t size);
/* Runs copies on a device, which must live longer. */
typedef struct tensor_runner tensor_runner;
tensor_runner *tensor_runner_new(cptx_device *dev);
void tensor_runner_free(tensor_runner *r);
/*
 * Runs it: the buffer and what shared memory holds (a load: becomes TENSOR_FILL first) are changed as the copy changes them.
 * The mbarrier of a load expects tensor_told(c).
 */
bool tensor_run(tensor_runner *r, const tensor_case *c, uint8_t *buffer, uint8_t *smem, cptx_error *err);
/* Runs the copy on a GPU, where the mbarrier counts what a load completes, in bytes. */
bool tensor_measure(tensor_runner *r, const tensor_case *c, uint8_t *buffer, uint8_t *smem, uint32_t *bytes,
                    cptx_error *err);
/* Changes the buffer and shared memory as the rules of the manual say. */
void tensor_reference(const tensor_case *c, uint8_t *buffer, uint8_t *smem);

#endif
