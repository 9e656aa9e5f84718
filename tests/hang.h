/* SPDX-License-Identifier: MIT */
/*
 * The end of a process that hangs, by the processor time that it used and not by the clock: a busy machine ends none that
 * works.  One that waits for what never comes uses none; watch.py, under which every test runs, ends that.
 */
#ifndef CPTX_TESTS_HANG_H
#define CPTX_TESTS_HANG_H

#include <sys/time.h>

/* From now on; 0: no end.  The process ends by SIGPROF. */
static inline void hang_after(unsigned seconds)
{
	setitimer(ITIMER_PROF, &(struct itimerval){ .it_value = { .tv_sec = seconds } }, NULL);
}

#endif
