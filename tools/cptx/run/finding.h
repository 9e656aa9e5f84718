/* SPDX-License-Identifier: MIT */
/* Findings of the emulator as JSON and SARIF. */
#ifndef CPTX_TOOL_RUN_FINDING_H
#define CPTX_TOOL_RUN_FINDING_H

#include <cptx/emu.h>

#include <stdio.h>

/* One line. */
void finding_json(FILE *out, const cptx_emu_finding *f, uint64_t seed);
/* One line of JSON, and a result of SARIF: an order of a launch leaves other memory than the first one. */
#define FINDING_ORDER "order-dependent"
typedef struct finding_order {
	const char *kernel, *text;
	uint64_t order, bytes, at; /* how many bytes differ, and the address of the first */
} finding_order;
void finding_order_json(FILE *out, const finding_order *o);
void finding_order_sarif(FILE *out, const finding_order *o, bool first);
/* A log of SARIF: its begin, findings, its end. */
void finding_sarif_begin(FILE *out);
void finding_sarif(FILE *out, const cptx_emu_finding *f, bool first);
void finding_sarif_end(FILE *out);

#endif
