/* SPDX-License-Identifier: MIT */
#include "shape.h"

#include "ir/ir.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* The length of the name of a register class at s, "%rd", if digits or (plain) none follow; 0: there is none. */
static size_t class_at(const char *s, bool plain)
{
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		size_t n = strlen(ir_classes[c].prefix);
		if (strncmp(s, ir_classes[c].prefix, n) != 0)
			continue;
		size_t digits = strspn(s + n, "0123456789");
		char behind = s[n + digits];
		if ((digits > 0) != plain && !isalpha((unsigned char)behind) && behind != '_')
			return n;
	}
	return 0;
}

void shape_of_line(const char *line, char shape[LINE])
{
	char *out = shape;

	line += *line == '\t';
	bool store = !strncmp(line, "st.", 3);
	while (*line && *line != ';') {
		size_t n = class_at(line, false);
		if (store && !strncmp(line, "[in_param", 9)) {
			out += sprintf(out, "[to");
			line += 3;
		}
		if (!n) {
			*out++ = *line++;
			continue;
		}
		unsigned count = 0;
		const char *name = line;
		do {
			line += n + strspn(line + n, "0123456789");
			count++;
		} while (!strncmp(line, ", ", 2) && class_at(line + 2, false) == n && !strncmp(line + 2, name, n) && out > shape &&
		         out[-1] == '{' && (line += 2));
		out += sprintf(out, "%.*s", (int)n, name);
		if (count > 1)
			out += sprintf(out, "*%u", count);
	}
	*out = 0;
}

void shape_to_line(const char *shape, char line[SHAPED_LINE])
{
	unsigned next[CLASS_COUNT] = { 0 };
	char *out = line + sprintf(line, "\t");

	while (*shape) {
		size_t n = class_at(shape, true);
		if (!n) {
			*out++ = *shape++;
			continue;
		}
		unsigned c = 0;
		while (strlen(ir_classes[c].prefix) != n || strncmp(ir_classes[c].prefix, shape, n))
			c++;
		char *end = NULL;
		unsigned long count = shape[n] == '*' ? strtoul(shape + n + 1, &end, 10) : 1;
		for (unsigned long i = 0; i < count; i++)
			out += sprintf(out, "%s%.*s%u", i ? ", " : "", (int)n, shape, ++next[c]);
		shape = end ? end : shape + n;
	}
	strcpy(out, ";");
}

/* The version that all its targets have it from that did not come later: 0 for all that came with the targets, 1 for
 * several. */
static unsigned common_version(const uint8_t version[ARCH_TARGETS])
{
	unsigned common = 0;

	for (unsigned i = 0; i < arch_ntarget; i++)
		if (version[i] && version[i] != arch_targets[i].ptx)
			common = MAX(common, (unsigned)version[i]);
	for (unsigned i = 0; i < arch_ntarget; i++)
		if (version[i] && version[i] != MAX(common, (unsigned)arch_targets[i].ptx))
			return 1;
	return common;
}

static char *put_targets(char *out, const uint8_t version[ARCH_TARGETS], unsigned only)
{
	for (unsigned i = 0, last; i < arch_ntarget; i = last + 1) {
		last = i;
		if (!version[i] || (only && version[i] != only))
			continue;
		while (last + 1 < arch_ntarget && version[last + 1] && (!only || version[last + 1] == only))
			last++;
		out += sprintf(out, " %s", arch_targets[i].name);
		if (last > i)
			out += sprintf(out, "-%s", arch_targets[last].name);
	}
	return out;
}

void shape_heading(const uint8_t version[ARCH_TARGETS], char heading[HEADING])
{
	unsigned common = common_version(version);
	char *out = heading;

	*out = 0;
	if (common != 1) {
		out += common ? sprintf(out, "PTX %u.%u", common / 10, common % 10) : sprintf(out, "PTX");
		put_targets(out, version, 0);
		return;
	}
	for (unsigned v = 1; v <= ARCH_NEWEST; v++) {
		bool any = false;
		for (unsigned i = 0; i < arch_ntarget; i++)
			any |= version[i] == v;
		if (any)
			out = put_targets(out + sprintf(out, "%sPTX %u.%u", out > heading ? "; " : "", v / 10, v % 10), version, v);
	}
}
