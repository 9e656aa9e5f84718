/* SPDX-License-Identifier: MIT */
/* What the tests of bulk and tensor copies share: a kernel under many schedules, and pieces of text. */
#ifndef CPTX_TEST_BULK_H
#define CPTX_TEST_BULK_H

#include "trial.h"

enum { SEEDS = 24 };

/* An mbarrier of one arrival at %r60 and 1024-byte aligned shared memory at %r61; %p15 is thread 0. */
#define BULK_DECLS ".shared .align 1024 .b8 data[32768];\n.shared .align 8 .b64 bar;\n"
#define BULK_SETUP                                                                                                          \
	"mov.u32 %r60, bar; mov.u32 %r61, data; setp.eq.u32 %p15, %r0, 0;"                                                      \
	"@%p15 mbarrier.init.shared::cta.b64 [%r60], 1; fence.mbarrier_init.release.cluster; bar.sync 0;\n"
#define BULK_EXPECT(bytes) "@%p15 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r60], " bytes ";\n"
#define BULK_WAIT(label, parity)                                                                                            \
	label ": mbarrier.try_wait.parity.shared::cta.b64 %p14, [%r60], " parity "; @!%p14 bra " label ";\n"
#define BULK_DONE "@%p15 cp.async.bulk.commit_group; @%p15 cp.async.bulk.wait_group 0;\n"
#define BULK_FENCE "fence.proxy.async; bar.sync 0;\n"

/* Runs it under SEEDS schedules, on a copy of the data each time; the last one is left in t->data.  Nothing may be found. */
void bulk_fine(trial *t);
/* The same; each must find the code and say the text. */
void bulk_found(const trial *t, enum cptx_finding_code code, const char *text);

#endif
