/* SPDX-License-Identifier: MIT */
/* Findings of the emulator as JSON and SARIF. */
#ifndef CPTX_TOOL_RUN_FINDING_H
#define CPTX_TOOL_RUN_FINDING_H

#include <cptx/emu.h>

#include <stdio.h>

/* One line. */
void finding_json(FILE *out, const cptx_emu_finding *f, uint64_t seed);
/* A log of SARIF: its begin, findings, its end. */
void finding_sarif_begin(FILE *out);
void finding_sarif(FILE *out, const cptx_emu_finding *f, bool first);
void finding_sarif_end(FILE *out);

#endif
