/* SPDX-License-Identifier: MIT */
/*
 * What families of kernels share of tuning: option sets as text, by the families' lists of options; candidates of a problem
 * out of the database; measuring them.
 */
#ifndef CPTX_KIT_TUNED_H
#define CPTX_KIT_TUNED_H

#include "kit/runner.h"

#include <cptx/tune.h>

/* ---- option sets as text ---- */

enum kit_field_kind { KIT_NUMBER, KIT_BOOL, KIT_TYPE, KIT_WORD, KIT_FLOAT, KIT_S64, KIT_NOT_TEXT };
/* A field of options.  A table of them is made of the family's options.def. */
typedef struct kit_field {
	const char *name;
	enum kit_field_kind kind;
	size_t offset;
	const char *(*word)(unsigned value); /* KIT_WORD: the name of an enumerant; "?" behind the last */
} kit_field;
/* KIT_FIELD("name", offset, kind, word); kind and word may come from one macro. */
#define KIT_FIELD(...) KIT_FIELD_(__VA_ARGS__)
#define KIT_FIELD_(name, offset, kind, word)                                                                                \
	{                                                                                                                       \
		name, kind, offset, word                                                                                            \
	}
/* The fields in which options differ from `base`, "bm=128 bn=256"; false: they do not fit. */
bool kit_fields_text(const kit_field *fields, size_t n, const void *options, const void *base, char *text, size_t size);
/* Sets the fields that a text has; the first word of it that is none, NULL: all are. */
const char *kit_fields_read(const kit_field *fields, size_t n, const char *text, void *options);

/* ---- a family ---- */

typedef struct kit_family {
	const char *generator;
	uint32_t version;        /* goes up where its kernels become other ones, whose times differ */
	const kit_field *fields; /* of a candidate */
	size_t nfields;
	size_t size; /* bytes of a candidate, a struct that begins with the options */
} kit_family;

/* Sets the fields of a candidate that the user's text names. */
bool kit_options_read(const kit_family *f, const char *text, void *candidate, cptx_error *err);

/* A problem of a family. */
typedef struct kit_problem {
	const kit_family *family;
	const void *asked; /* a candidate struct with what was asked for */
	const void *base;  /* what the text of the problem leaves out: sizes among the options; a candidate struct */
	const char
		*function; /* the kernel's name, which says what functions of the user's it has; NULL: nobody can find it again */
	uint64_t dims[CPTX_TUNE_DIMS];
} kit_problem;
/* Finds candidates that `fits` takes in the runner's database, after measuring where its policy says so; `measure` does it.
 * True: *to is the best one. */
typedef struct kit_search {
	kit_problem problem;
	bool (*fits)(void *user, const void *candidate);
	bool (*measure)(void *user, cptx_tune *db, const cptx_tune_use *use);
	void *user;
} kit_search;
bool kit_tuned_find(kit_runner *r, const kit_search *s, void *to);

/* Candidates that are measured: as cptx_tune_job, by their place in `candidates`. */
typedef struct kit_bench {
	kit_problem problem;
	const void *candidates; /* structs of the family's size */
	uint32_t n;
	bool (*build)(void *user, uint32_t i, cptx_module *m, cptx_error *err);
	uint32_t (*launch)(void *user, uint32_t i, const cptx_program *program, cptx_launch **launches, uint32_t room,
	                   cptx_error *err);
	bool (*before)(void *user, uint32_t i, cptx_error *err);
	void *user;
} kit_bench;
bool kit_tuned_measure(cptx_tune *db, cptx_device *dev, const kit_bench *b, const cptx_tune_use *use, cptx_tune_done *done,
                       cptx_error *err);
/* What a family's model offers for a problem, to be measured.  Candidates are told by their structs. */
typedef struct kit_offer {
	kit_problem problem;
	size_t choice, at; /* bytes of a choice of the model, and where in it the candidate stands */
	size_t (*choose)(void *user, void *choices, size_t room, cptx_error *err);
	/* Device memory for all of the candidates; `release` frees it, also where this failed. */
	bool (*operands)(void *user, const void *candidates, uint32_t n, cptx_error *err);
	void (*release)(void *user);
	bool (*build)(void *user, const void *candidate, cptx_module *m, cptx_error *err);
	uint32_t (*launch)(void *user, const void *candidate, const cptx_program *program, cptx_launch **launches, uint32_t room,
	                   cptx_error *err);
	void *user;
} kit_offer;
bool kit_tuned_measure_offer(cptx_tune *db, cptx_device *dev, const kit_offer *offer, const cptx_tune_use *use,
                             cptx_tune_done *done, cptx_error *err);
/* Options that say how to measure, of any version; and the usual number of candidates. */
bool kit_tuned_read_use(cptx_tune_use *to, const cptx_tune_use *given, cptx_error *err);
/* Device memory with random numbers of a type that are finite and not 0; 0 on error. */
uint64_t kit_tuned_operand(cptx_device *dev, enum cptx_type type, uint64_t bytes, cptx_error *err);
/* Whether a device is the emulator. */
bool kit_tuned_emulated(const cptx_device *dev);

#endif
