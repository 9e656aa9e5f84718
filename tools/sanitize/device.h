/* SPDX-License-Identifier: MIT */
#ifndef CPTX_SANITIZE_DEVICE_H
#define CPTX_SANITIZE_DEVICE_H

#include "san.h"

void san_properties(rt_device_prop *p, int number);

#endif
