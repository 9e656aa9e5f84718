/* SPDX-License-Identifier: MIT */
#ifndef CPTX_SANITIZE_REPLAY_H
#define CPTX_SANITIZE_REPLAY_H

#include "san.h"

/* Replays a recording, and says what came of each launch.  0: all as recorded, 1: not all, 2: it cannot be replayed. */
SAN_API int san_replay(const char *path);

#endif
