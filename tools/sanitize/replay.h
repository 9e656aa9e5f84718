/* SPDX-License-Identifier: MIT */
#ifndef CPTX_SANITIZE_REPLAY_H
#define CPTX_SANITIZE_REPLAY_H

#include "san.h"

/* Replays a recording, and says what came of each launch.  0: all as recorded, 1: not all, 2: it cannot be replayed, or
 * nothing was chosen of it, 3: as recorded, but launches or the end are missing in it. */
SAN_API int san_replay(const char *path);

/* Opens a file, whose bytes *size becomes.  NULL, said: it is none, or its FILL records, of which a few bytes are much work,
 * say too much (recording_open.c). */
FILE *san_recording_open(const char *path, uint64_t *size);

#endif
