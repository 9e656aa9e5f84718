/* SPDX-License-Identifier: MIT */
/*
 * What ptxas says about single instructions.  Lines are collected by target and .version, put into kernels that declare the
 * pool of cases.h, and assembled in as few runs as possible; rejected lines are taken out and the rest is assembled again,
 * so that each line's verdict is its own.
 */
#ifndef TABLE_JUDGE_H
#define TABLE_JUDGE_H

#include <cptx/cptx.h>

typedef struct verdict {
	bool ok;
	char why[200]; /* ptxas's message for the line */
} verdict;

typedef struct judge judge;

/*
 * The version that is asked for what no version has: the table's newest, or the newest that ptxas reads if that is older.
 * What needs a newer one is not asked: judge_reads is false, and judge_left tells how often it was and the highest version.
 */
unsigned judge_newest(void);
bool judge_reads(unsigned version);
unsigned judge_left(unsigned *version);

judge *judge_new(void);
void judge_free(judge *j);
/* Does it use the tensor memory of a pair of CTAs?  A kernel uses that or its own CTA's, not both. */
bool judge_pair(const char *text);
/* The whole text of a question alone, to be freed. */
char *judge_text(const cptx_target *target, unsigned version, const char *line);
/* The answer is in the verdict of that number after judge_run.  The same question again has the same number. */
unsigned judge_ask(judge *j, const cptx_target *target, unsigned version, const char *line);
void judge_run(judge *j);
const verdict *judge_said(const judge *j, unsigned number);
unsigned judge_runs(const judge *j);

/* Whole files, assembled side by side: the exit status of each, -1 after a signal, and the messages. */
typedef struct judged_file {
	const char *text;
	const cptx_target *target;
	int status;
	char message[1500];
	int pid; /* of judge_files */
} judged_file;
void judge_files(judged_file *f, unsigned n);

#endif
