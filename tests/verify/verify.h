/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the builder share: a module with one kernel and some values, calls that must be refused, and text that
 * must be printed.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include <cptx/cptx.h>

#include "../test.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Made anew by fresh(). */
typedef struct scene {
	cptx_module *m;
	cptx_kernel *other, *k;          /* `other` is closed; `k` is named "k" and open */
	cptx_val a, b, f, d, p, ptr, w;  /* of k: u32, u32, f32, f64, predicate, global pointer, 4 x b32 */
	cptx_val foreign, foreign_label; /* of `other` */
	cptx_val func;                   /* .u32 twice(.u32 x) */
} scene;
extern scene s;

void fresh(void); /* the scene */
void blank(void); /* s.m alone, empty */
void drop(void);  /* frees it */

/*
 * `call`, in the scene as it stands, must fail with this code, at this line, with `part` in the text, and append nothing;
 * then every later call must be harmless and the error stay.
 */
#define REFUSED(code, part, call)                                                                                           \
	do {                                                                                                                    \
		size_t size_ = cptx_module_size(s.m);                                                                               \
		(void)(call);                                                                                                       \
		refused((cptx_site){ __FILE__, CPTX_LINE_ }, size_, (code), (part));                                                \
	} while (0)
/* The call is refused in a fresh scene. */
#define REFUSES(code, part, call)                                                                                           \
	do {                                                                                                                    \
		fresh();                                                                                                            \
		REFUSED(code, part, call);                                                                                          \
	} while (0)
void refused(cptx_site at, size_t size_before, enum cptx_code code, const char *part);

/* The error is of that code and has that part in its text. */
void says(const cptx_error *err, enum cptx_code code, const char *part);

/* Prints s.m for the target, with ptxas agreeing where there is one (else counted as skipped); the caller frees the text. */
char *printed(const char *target, const cptx_emit_opt *opt);
/* The same, and each of the parts, up to a NULL, stands in the text, in this order. */
void shows(const char *target, ...);
/* The body of the only kernel, between its registers and its end, is exactly that. */
void body_is(const char *target, const char *want);
/* Printing fails. */
void cannot_print(const char *target, enum cptx_code code, const char *part);

/* `prints`: some tests call printed(); then whether ptxas was there to judge is a test of its own. */
int verify_run(const char *name, const TTest *const *tests, size_t n, bool prints);

#endif
