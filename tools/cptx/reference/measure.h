/* SPDX-License-Identifier: MIT */
/* The time of a launch on a GPU. */
#ifndef CPTX_TOOL_REFERENCE_MEASURE_H
#define CPTX_TOOL_REFERENCE_MEASURE_H

#include <cptx/device.h>

/* Milliseconds of a launch: the median over bursts (at most 64) of about 3 ms each; a pause before each keeps the device out
 * of its power limit.  Without bursts *median stays as it is. */
bool measure_launch(cptx_device *dev, cptx_launch *launch, unsigned bursts, double *median, cptx_error *err);
/* Those of n launches one after another, again and again. */
bool measure_launches(cptx_device *dev, cptx_launch *const *launches, unsigned n, unsigned bursts, double *median,
                      cptx_error *err);

#endif
