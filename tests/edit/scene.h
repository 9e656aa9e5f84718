/* SPDX-License-Identifier: MIT */
/* What the tests of editing share: a text, and what becomes of it. */
#ifndef SCENE_H
#define SCENE_H

#include "corpus.h"

extern const char text[]; /* functions `helper` and `main` */
extern cptx_module *m;    /* what open_text read, and its `main` and `helper` */
extern cptx_kernel *k, *f;

void open_text(const char *ptx);
void drop(void);
cptx_item *find(const char *spelling);            /* in main; there must be one */
cptx_val value(const char *name);                 /* the same for names */
void changes(const char *want);                   /* exactly these lines of the kept text, "-old" and "+new", in order */
void says(enum cptx_code code, const char *part); /* the error; it sticks */

#endif
