/* SPDX-License-Identifier: MIT */
/* The report as one page: the template with its style, its script and the JSON in it. */
#include "inspect/inspect.h"

#include <string.h>

#include "inspect_page.inc" /* inspect.html, inspect.css, inspect.js behind one another, each with its NUL */

void inspect_html(const inspected *in, FILE *f)
{
	const char *style = page + strlen(page) + 1, *script = style + strlen(style) + 1;

	for (const char *p = page; *p;) {
		size_t n = strcspn(p, "%");
		fwrite(p, 1, n, f);
		p += n;
		if (!strncmp(p, "%STYLE%", 7))
			fputs(style, f), p += 7;
		else if (!strncmp(p, "%SCRIPT%", 8))
			fputs(script, f), p += 8;
		else if (!strncmp(p, "%DATA%", 6))
			inspect_json(in, f), p += 6;
		else if (*p)
			fputc(*p++, f);
	}
}
