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

/* What a program has a handle of; it stands first in what the handle names. */
enum san_handle { SAN_GRAPH, SAN_EXEC, SAN_NODE };

typedef struct san_node {
	enum san_handle handle; /* SAN_NODE */
	struct san_node *next;
	san_graph *graph;
	uint64_t id, original; /* of no other node, ever; that of the node it was made of in a copy of its graph, else 0 */
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
	san_graph *child;        /* CHILD, whose it is */
	struct san_node **after; /* nodes of the graph that it depends on */
	size_t nafter;
	size_t number;         /* of a graph: nodes stand in the order of their numbers */
	struct san_node *copy; /* while its graph is copied */
	bool moves;            /* while nodes change places */
	bool left_out;         /* of a graph that was instantiated: it is disabled */
} san_node;

struct san_graph {
	enum san_handle handle; /* SAN_GRAPH; SAN_EXEC: it was instantiated */
	san_node *first, **last;
	size_t count, numbers;
	bool owned; /* by the node whose child it is */
};

san_graph *san_graph_new(void);
bool san_handle_lives(const void *p, enum san_handle kind); /* false: it is NULL, destroyed or of another kind */
#define OF_GRAPH(g, call) (san_handle_lives(g, SAN_GRAPH) ? (call) : SAN_VALUE)
#define OF_NODE(n, call) (san_handle_lives(n, SAN_NODE) ? (call) : SAN_VALUE)
#define GIVEN(p, call) ((p) ? (call) : SAN_VALUE)
void san_graph_free(san_graph *g);
int san_graph_launch(san_graph *g, san_kernel *k, const san_shape *shape, void **args, san_node **out);
int san_graph_copy(san_graph *g, const san_rows *rows, san_node **out);
int san_graph_set(san_graph *g, const rt_set_node *set, san_node **out);
int san_graph_host(san_graph *g, void (*fn)(void *user), void *user, san_node **out);
/* Adds a copy of the child; NULL: a node that does nothing. */
int san_graph_child(san_graph *g, const san_graph *child, san_node **out);
int san_node_launch(san_node *n, san_kernel *k, const san_shape *shape, void **args); /* gives it other arguments */
/* The node depends on the other one, too, and stands behind it; SAN_VALUE: that one depends on it, or is of another graph,
 * or the node depends on it already. */
int san_node_depends(san_node *n, san_node *on);
bool san_node_is_after(const san_node *n, const san_node *on);
int san_node_depends_no_more(san_node *n, const san_node *on); /* SAN_VALUE: it does not */
/* Of a copy: the copy of that node, which may be `within` its child graphs; NULL: none. */
san_node *san_graph_made_of(const san_graph *g, const san_node *node, bool within);
san_node *san_graph_newest(const san_graph *g); /* the last one; NULL: none */
void san_graph_drop(san_node *n);               /* removes the node from its graph */
int san_graph_clone(const san_graph *from, enum san_handle as, san_graph **out);
void san_graph_swap(san_graph *a, san_graph *b); /* each gets the nodes of the other */
/* Memory that launches of the graph use (graph_memory.c), and a node that gives it back. */
int san_graph_alloc(san_graph *g, void **at, size_t size, san_node **out);
int san_graph_free_memory(san_graph *g, const void *at, san_node **out);
int san_graph_run(const san_graph *g, san_stream *s);
/* graph_calls.c: a call that adds a node, whose parameters begin with those of NODE; the node depends on those it names.
 * `given` is what else the call cannot do without. */
#define NODE san_node **out, san_graph *g, san_node *const *after, size_t n
#define ADD(given, call) san_graph_add(out, after, n, (given) && san_graph_takes(out, g, after, n) ? (call) : SAN_VALUE)
bool san_graph_takes(san_node **out, const san_graph *g, san_node *const *after, size_t n);
int san_graph_add(san_node **out, san_node *const *after, size_t n, int e);

#endif
