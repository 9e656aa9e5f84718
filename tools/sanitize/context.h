/* SPDX-License-Identifier: MIT */
/* Devices and their contexts, and which memory of another device each reaches. */
#ifndef CPTX_SANITIZE_CONTEXT_H
#define CPTX_SANITIZE_CONTEXT_H

#include "san.h"

/* The device of the thread's current context; device 0 where it has none. */
int san_current_device(void);
/* The devices that reach memory of the device: itself, and those that enabled it as a peer.  A bit for each. */
uint64_t san_reached_by(int device);
bool san_is_device(int number);

#endif
