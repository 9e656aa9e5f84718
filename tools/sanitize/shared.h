/* SPDX-License-Identifier: MIT */
/* Memory that processes share: a file without a name, which others open by a descriptor that they are given, or by the
 * number of the process and of its descriptor. */
#ifndef CPTX_SANITIZE_SHARED_H
#define CPTX_SANITIZE_SHARED_H

#include "san.h"

typedef struct san_shared san_shared;
san_shared *san_shared_new(size_t size); /* zeros; NULL: memory or descriptors are short */
san_shared *san_shared_open(int fd);     /* the descriptor stays the caller's; NULL: it is no such memory */
void san_shared_free(san_shared *s);     /* NULL is allowed */
void *san_shared_bytes(const san_shared *s);
size_t san_shared_size(const san_shared *s);
int san_shared_fd(const san_shared *s); /* a new descriptor; -1: there is none left */

#endif
