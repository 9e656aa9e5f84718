/* SPDX-License-Identifier: MIT */
/*
 * PTX for the driver and the device that are there.  A driver refuses text whose .version is later than its own, even where
 * nothing in the text needs it, and a device runs code of some targets only.  This finds a target and the lowest .version
 * that the text really needs, or the line that stands in the way.
 *
 * The ladder of targets: the text's own if it runs on the device; else of the device sm_NNa, sm_NNf, sm_NN, and the same of
 * older devices, the newest first.  A rung is passed over where the driver does not know the target, or the text has
 * something that the target lacks.
 */
#ifndef CPTX_RETARGET_H
#define CPTX_RETARGET_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the text is for.  All zero: the lowest .version of the text's own target. */
typedef struct cptx_retarget_opt {
	uint32_t size;               /**< CPTX_OPT fills it in */
	const char *name;            /**< name of the text in messages; NULL: "ptx" */
	uint32_t driver;             /**< CUDA version of the driver, 12080; 0: any */
	uint16_t compute_capability; /**< of the device, major * 10 + minor: 90; 0: a device that the text's target is of */
	const char *target;          /**< the target to print, and no other; NULL: the first rung of the ladder that serves */
	char z_;
} cptx_retarget_opt;

/** The highest PTX ISA version, times ten, that a driver of that CUDA version (12080) takes; 65 for versions before 11. */
CPTX_API unsigned cptx_driver_ptx(uint32_t version);

/**
 * Reads PTX text of `size` bytes and prints it for a driver and a device: only .version and .target change.  opt may be
 * NULL. why: NULL, or `why_size` bytes that get a line for each rung of the ladder that was looked at: why it was passed
 * over, and at the end which one was taken.  NULL: no rung serves; err has the reason of the first one, with file and line.
 * Errors: PARSE and others, the text is wrong; TARGET, an instruction needs a later driver or another device; ARG.
 */
CPTX_API cptx_ptx *cptx_retarget(const char *text, size_t size, const cptx_retarget_opt *opt, char *why, size_t why_size,
                                 cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
