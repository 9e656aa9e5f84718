/* SPDX-License-Identifier: MIT */
/* What the tests of the GEMM kernels share: devices, trials that must come out right, options at random. */
#ifndef GEMM_TESTS_H
#define GEMM_TESTS_H

#include "../test.h"
#include "gemm_trial.h"
#include "reference/number.h"

#include <cptx/emu.h>

/* CPTX_SEEDS, or another number. */
unsigned gemm_seeds(unsigned otherwise);

/* CPTX_GEMM_TRIALS, or another number. */
unsigned gemm_trials(unsigned otherwise);

/* A GPU that has the kernel, else an emulated device of a target. */
cptx_device *gemm_device(const cptx_gemm_opt *o, const char *target, const cptx_emu_opt *opt);
/* An emulated one must have found nothing; at: for the message. */
void gemm_device_done(cptx_device *dev, const char *at);
/* gives_the_... of all tests: the trial on a device, of the second target where the seed is odd and that has the kernel. */
void gemm_right(const gemm_trial *t, const char *const targets[2], unsigned seed);
/* Runs a trial and checks its result, in every build: gemm_right leaves some trials out. */
void gemm_right_always(const gemm_trial *t, const char *const targets[2], unsigned seed);
/* CPTX_GEMM_TRIALS or 12 trials: all that the checks let through gives the right result; what they refuse has a message. */
void gemm_right_at_random(gemm_trial (*draw)(uint64_t seed), const char *const targets[2]);
/* test_main, and closes the GPU. */
int gemm_tests_main(const char *name, Suite *s);

#endif
