/* SPDX-License-Identifier: MIT */
/* Counts what is asked of malloc, calloc and realloc, and makes one request fail: the linker puts these in front (--wrap).
 */
#ifndef CPTX_TEST_COUNT_H
#define CPTX_TEST_COUNT_H

unsigned long count_requests(void);  /* since count_fail_at */
void count_fail_at(unsigned long n); /* and all after it; 0: none.  Counts from 1 anew */

#endif
