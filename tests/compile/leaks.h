/* SPDX-License-Identifier: MIT */
/* nvJitLink loses memory of its own where a link fails; the leak sanitizer is told not to report that. */
#ifndef CPTX_TEST_LEAKS_H
#define CPTX_TEST_LEAKS_H

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libnvJitLink.so\n"; }
const char *__lsan_default_options(void);
const char *__lsan_default_options(void) { return "print_suppressions=0"; }

#endif
