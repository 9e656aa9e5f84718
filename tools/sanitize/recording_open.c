/* SPDX-License-Identifier: MIT */
#include "replay.h"

#include "recording.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_FILLED (UINT64_C(256) << 30) /* bytes: minutes of work */

static uint64_t number_at(const unsigned char *p)
{
	uint64_t v = 0;

	for (unsigned i = 8; i--;)
		v = v << 8 | p[i];
	return v;
}

/* Bytes that the FILL records say, up to where the file is wrong. */
static uint64_t filled_by(FILE *f, uint64_t left)
{
	unsigned char b[REC_RECORD_HEAD + 16]; /* the head of a record, and a FILL's address and bytes */
	uint64_t sum = 0;

	left -= left < REC_HEAD ? left : REC_HEAD;
	bool ok = !fseeko(f, REC_HEAD, SEEK_SET);
	while (ok && left >= sizeof b && fread(b, 1, sizeof b, f) == sizeof b) {
		const uint64_t size = number_at(b + 8), padded = REC_RECORD_HEAD + (size + 7) / 8 * 8;
		const uint64_t filled = b[0] == REC_FILL && size >= 16 ? number_at(b + REC_RECORD_HEAD + 8) : 0;
		if (size > left || padded > left)
			break;
		sum = filled > UINT64_MAX - sum ? UINT64_MAX : sum + filled;
		left -= padded;
		ok = !fseeko(f, (off_t)padded - (off_t)sizeof b, SEEK_CUR);
	}
	rewind(f);
	return sum;
}

FILE *san_recording_open(const char *path, uint64_t *size)
{
	FILE *f = fopen(path, "rb");
	struct stat st;

	if (!f || fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
		san_say("'%s' cannot be read: %s", path, f ? "it is no file" : strerror(errno));
	} else {
		*size = (uint64_t)st.st_size;
		const uint64_t filled = filled_by(f, *size);
		if (filled <= MOST_FILLED)
			return f;
		san_say("the recording is refused: its FILL records set %llu GiB, and %llu are replayed",
		        (unsigned long long)(filled >> 30), (unsigned long long)(MOST_FILLED >> 30));
	}
	if (f)
		fclose(f);
	return NULL;
}
