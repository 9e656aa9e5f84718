/* SPDX-License-Identifier: MIT */
/* The words for schedules of the emulator, of the command and of CUDA's stand-in (tools/sanitize). */
#ifndef RUN_SCHEDULE_H
#define RUN_SCHEDULE_H

#include <cptx/emu.h>

#include <string.h>

/* Of option --schedule: what --help says, what completion offers, and what an error says of another word. */
#define SCHEDULE_HELP                                                                                                       \
	"asynchronous work is done random, eager or late; or lanes are parted, or a warp is held (default random)"
#define SCHEDULE_WORDS "random eager late parted held"
#define SCHEDULE_EXPECTED "expected random, eager, late, parted or held"

/* The schedule of a word; CPTX_EMU_ALL, which is no word of --schedule: there is none. */
static inline enum cptx_emu_schedule schedule_of(const char *word)
{
	static const struct {
		const char *word;
		enum cptx_emu_schedule is;
	} all[] = { { "random", CPTX_EMU_RANDOM },
		        { "eager", CPTX_EMU_EAGER },
		        { "late", CPTX_EMU_LATE },
		        { "parted", CPTX_EMU_PARTED },
		        { "held", CPTX_EMU_HELD } };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(word, all[i].word))
			return all[i].is;
	return CPTX_EMU_ALL;
}

#endif
