/* SPDX-License-Identifier: MIT */
/* What libcptx_sanitize writes for the command: a finding a line (tools/sanitize/report.c). */
#ifndef CPTX_TOOL_SANITIZE_RECORD_H
#define CPTX_TOOL_SANITIZE_RECORD_H

#include <cptx/emu.h>

/* Reads a line in place: strings of the finding point into it.  False: it is none. */
bool record_read(char *line, cptx_emu_finding *f);

#endif
