/* SPDX-License-Identifier: MIT */
/* Tensors of attention on the host and a device, and the comparison of elements: what the references of the forward, the
 * decoding and the backward kernels share. */
#ifndef CPTX_TOOL_REFERENCE_ATTENTION_TENSOR_H
#define CPTX_TOOL_REFERENCE_ATTENTION_TENSOR_H

#include "reference/attention_check.h"

enum { ATTENTION_POISON = 0xff, ATTENTION_GUARD = 64 /* bytes behind each tensor */ };

typedef struct attention_tensor {
	enum cptx_type type;
	uint32_t batch, heads, rows, dim;
	cptx_attention_stride s; /* in full */
	uint64_t bytes, at;      /* at: on the device */
	unsigned char *host;     /* poisoned where nothing was filled in */
} attention_tensor;

/* Memory of a tensor on both sides; strides of 0: dense.  False, with err: none was left. */
bool attention_tensor_make(cptx_device *dev, attention_tensor *x, enum cptx_type type, const cptx_attention_stride *given,
                           uint32_t batch, uint32_t heads, uint32_t rows, uint32_t dim, cptx_error *err);
void attention_tensor_free(cptx_device *dev, attention_tensor *x);
/* A row on the host. */
unsigned char *attention_tensor_row(const attention_tensor *x, uint32_t batch, uint32_t head, uint32_t row);
/* About normal, a deviation of 1; what lies between rows stays NaN.  Of 8 or 16 bits. */
void attention_tensor_fill(const attention_tensor *x, uint64_t seed);
/* An element of the tensor's type. */
double attention_tensor_value(const attention_tensor *x, const unsigned char *from);
/* The rows of packed sequence `batch`: the first is the longest, others are drawn, also 0. */
uint32_t attention_length(uint64_t seed, uint32_t most, uint32_t batch, bool of_q);
/* Rows of packed sequences that belong to none: in front of the first, or behind the last. */
uint32_t attention_rows_beside(uint64_t seed, bool behind, bool of_q);
/* Adds the rows of one more sequence.  False: there are more in all than a kernel takes, 2^29, and more need not be added.
 */
bool attention_add_rows(uint32_t *sum, uint32_t more);
/* Bytes that are not poison any more. */
uint64_t attention_strays(const void *from, uint64_t bytes);

/* Counts an element, and keeps the first that is wrong.  col UINT32_MAX: of LSE. */
void attention_judge(attention_report *rep, uint32_t batch, uint32_t head, uint32_t query, uint32_t col, double value,
                     double reference, double allowed);

#endif
