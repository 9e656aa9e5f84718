/* SPDX-License-Identifier: MIT */
/* A kernel as text, run on the emulator on one buffer: what the tests of the emulator share. */
#ifndef CPTX_TEST_TRIAL_H
#define CPTX_TEST_TRIAL_H

#include <cptx/emu.h>

#include "../test.h"

typedef struct trial {
	/* Given: */
	const char *target;                               /* "sm_90a" */
	const char *version;                              /* "9.0"; NULL: that */
	const char *decls;                                /* module-level declarations, in front of the kernel; may be NULL */
	const char *body;                                 /* statements of kernel k; or text, */
	const char *text;                                 /* a whole module with one kernel */
	uint32_t grid[3], block[3], cluster[3], dyn_smem; /* missing: 1 CTA of 32 threads */
	cptx_emu_opt opt;
	void *data; /* the buffer whose address is in %rd0, and the parameter p; written and read back */
	size_t size;
	/* What came of it: */
	bool ok;
	cptx_error err;
	cptx_emu_counters counters;
	enum cptx_finding_code found[8]; /* codes of the first findings; NONE behind the last */
	char message[4096];              /* their texts, a line each */
} trial;

/*
 * Runs it.  A body finds registers %r0..63 (b32), %rd0..63 (b64), %f0..63 (f32), %fd0..15 (f64), %h0..31 (b16), %q0..7
 * (b128) and %p0..15, %rd0 holding the buffer's address and %r0 %tid.x; it need not end in ret.
 */
void trial_run(trial *t);
bool trial_found(const trial *t, enum cptx_finding_code code);

/* For tests that need nothing else: runs a body on the buffer, and fails the test if anything is found. */
#define RUN_OK(target_, block_, data_, size_, body_)                                                                        \
	do {                                                                                                                    \
		trial t_ = { .target = (target_), .block = { (block_) }, .data = (data_), .size = (size_), .body = (body_) };       \
		trial_run(&t_);                                                                                                     \
		ck_assert_msg(t_.ok, "%s\n%s", t_.err.text, t_.message);                                                            \
	} while (0)

Suite *trial_tests(const char *name, const TTest *const *tests, size_t n);
#define TRIAL_MAIN(name, ...)                                                                                               \
	int main(void)                                                                                                          \
	{                                                                                                                       \
		const TTest *const tests[] = { __VA_ARGS__ };                                                                       \
		return test_main(name,                                                                                              \
		                 trial_tests(name, tests, sizeof tests / sizeof *tests)); /* which counts what this file skips */   \
	}

#endif
