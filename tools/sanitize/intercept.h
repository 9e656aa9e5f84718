/* SPDX-License-Identifier: MIT */
/* The two halves of libcptx_record.so: launches (intercept.c), and those that graphs make (intercept_graph.c). */
#ifndef CPTX_SANITIZE_INTERCEPT_H
#define CPTX_SANITIZE_INTERCEPT_H

#include "helper.h"

enum { NO_SUCH_CALL = 500 };

/* A function of the driver, whatever its type; NULL: the driver has none of that name. */
void *rec_symbol(const char *name);
/* More than 0 while this thread calls the driver for the recorder, which is no work of the program. */
extern _Thread_local unsigned rec_inside;

/* In front of a launch in a stream; true: rec_launched() must come behind it.  The helper's lock is held in between. */
bool rec_launches(void *f, void *stream, const san_shape *shape, void **args, void **extra);
int rec_launched(bool recorded, int error); /* returns the error */
/* The helper's lock; false: nothing is recorded, or this is a call of the recorder. */
bool rec_enter(void);
void rec_leave(void);
bool rec_captures(void);                                                   /* a stream is captured now */
#define REC_CAPTURES "another stream is captured, which waiting would end" /* why a launch is left out then */
bool rec_is_captured(void *stream);
void rec_left(const char *name, const char *why);

/* An executable graph was made of a graph, is given the work of another one, or goes. */
void rec_graph_made(void *exec, void *graph);
void rec_graph_updated(void *exec, void *graph);
void rec_graph_gone(void *exec);
void rec_graph_destroyed(void *graph); /* not an executable one */
/* A node of it was given other parameters, as the call would do for a node of a graph. */
void rec_graph_alike(void *exec, void *node, const char *call, const void *parameters);
void rec_graph_enabled(void *exec, void *node, bool on);
void rec_graph_unseen(void *exec, const char *why); /* its launches are left out from now on */
int rec_graph_launch(void *exec, void *stream, int (*launch)(void *exec, void *stream));

#endif
