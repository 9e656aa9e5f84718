/* SPDX-License-Identifier: MIT */
/* Graphs of work, built by capture or by hand. */
#ifndef CPTX_SANITIZE_GRAPH_H
#define CPTX_SANITIZE_GRAPH_H

#include "san.h"

enum san_work {
	SAN_WORK_NONE,
	SAN_WORK_LAUNCH,
	SAN_WORK_COPY,
	SAN_WORK_SET,
	SAN_WORK_HOST,
	SAN_WORK_CHILD,
	SAN_WORK_ALLOC,
	SAN_WORK_FREE
};

typedef struct san_node {
	struct san_node *next;
	san_graph *graph;
	const struct san_node *original; /* in a graph that was instantiated: the node it was made of */
	enum san_work work;
	/* LAUNCH */
	san_kernel *kernel;
	san_shape shape;
	void **values;   /* addresses of the arguments' values, which stand behind them */
	san_rows rows;   /* COPY */
	rt_set_node set; /* SET */
	void *memory;    /* ALLOC and FREE */
	/* HOST */
	void (*fn)(void *user);
	void *user;
	/* CHILD */
	san_graph *child;
	struct san_node **after; /* nodes of the graph that it depends on */
	size_t nafter;
	size_t number;         /* of a graph: nodes stand in the order of their numbers */
	struct san_node *copy; /* while its graph is copied */
	bool moves;            /* while nodes change places */
	bool left_out;         /* of a graph that was instantiated: it is disabled */
} san_node;

struct san_graph {
	san_node *first, **last;
	size_t count, numbers;
	san_graph *next; /* of all that live */
};

san_graph *san_graph_new(void);
bool san_graph_lives(const san_graph *g); /* false: a handle that is NULL, or of one that was destroyed */
#define OF_GRAPH(g, call) (san_graph_lives(g) ? (call) : SAN_VALUE)
void san_graph_free(san_graph *g);
int san_graph_launch(san_graph *g, san_kernel *k, const san_shape *shape, void **args, san_node **out);
int san_graph_copy(san_graph *g, const san_rows *rows, san_node **out);
int san_graph_set(san_graph *g, const rt_set_node *set, san_node **out);
int san_graph_host(san_graph *g, void (*fn)(void *user), void *user, san_node **out);
/* Adds a copy of the child; NULL: a node that does nothing. */
int san_graph_child(san_graph *g, const san_graph *child, san_node **out);
int san_node_launch(san_node *n, san_kernel *k, const san_shape *shape, void **args); /* gives it other arguments */
/* The node depends on the other one, too, and stands behind it; SAN_VALUE: that one depends on it. */
int san_node_depends(san_node *n, san_node *on);
void san_node_depends_no_more(san_node *n, const san_node *on);
san_node *san_graph_made_of(const san_graph *g, const san_node *node); /* of a copy: the copy of that node; NULL: none */
san_node *san_graph_newest(const san_graph *g);                        /* the last one; NULL: none */
void san_graph_drop(san_node *n);                                      /* removes the node from its graph */
int san_graph_clone(const san_graph *from, san_graph **out);           /* child graphs are laid out in it */
/* Memory that launches of the graph use (graph_memory.c), and a node that gives it back. */
int san_graph_alloc(san_graph *g, void **at, size_t size, san_node **out);
int san_graph_free_memory(san_graph *g, const void *at, san_node **out);
int san_graph_run(const san_graph *g, san_stream *s);
/* graph_calls.c: a call that adds a node, whose parameters begin with those of NODE; the node depends on those it names. */
#define NODE san_node **out, san_graph *g, san_node *const *after, size_t n
#define ADD(call) san_graph_add(out, g, after, n, OF_GRAPH(g, call))
int san_graph_add(san_node **out, san_graph *g, san_node *const *after, size_t n, int e);

#endif
