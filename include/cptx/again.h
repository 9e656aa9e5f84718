/* SPDX-License-Identifier: MIT */
/*
 * cptx: for compilers that run for long: what a call that is made again and again remembers (<cptx/fast.h> has such calls),
 * and modules and texts that keep their memory.  <cptx/module.h> includes this header.
 */
#ifndef CPTX_AGAIN_H
#define CPTX_AGAIN_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What a place in a program remembers of the first call that it made: the form that was chosen, and the kinds and types of
 * its operands.  It begins zeroed and is filled once; it holds nothing of any module, so that all modules, targets and
 * threads may share it, at the same time too.  It has no destructor.
 */
typedef struct cptx_again { /* the fields are for the library alone */
	uint32_t state_, line_;
	const char *file_;
	uint64_t mods_[6], reserved_opt_[120];
} cptx_again;
CPTX_API cptx_val cptx_insn_again_(cptx_kernel *k, cptx_site at, cptx_again *again, enum cptx_op op, const cptx_val *vals,
                                   const uint16_t *mods);
#ifdef __GNUC__
/*
 * Repeats a call of 1 to 4 operands with the modifiers and the place in the source that `again` holds.  Operands are
 * given as the two words of their values, which stay in registers, where a struct would go through memory.
 */
CPTX_API cptx_val cptx_again_1_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2);
CPTX_API cptx_val cptx_again_2_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2, uint64_t b, uint64_t b2);
CPTX_API cptx_val cptx_again_3_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2, uint64_t b, uint64_t b2,
                                uint64_t c, uint64_t c2);
CPTX_API cptx_val cptx_again_4_(cptx_kernel *k, cptx_again *again, uint64_t a, uint64_t a2, uint64_t b, uint64_t b2,
                                uint64_t c, uint64_t c2, uint64_t d, uint64_t d2);
enum { CPTX_AGAIN_DIRECT_ = 3 /* state_ where these calls can be made */ };
#define CPTX_INLINE_ static inline __attribute__((__always_inline__))
/* Word 0 or 1 of a value. */
CPTX_INLINE_ uint64_t cptx_word_(const cptx_val *v, unsigned i)
{
	uint64_t word;

	__builtin_memcpy(&word, (const char *)v + 8 * i, sizeof word);
	return word;
}
#define CPTX_WORDS_(v) cptx_word_(&(v), 0), cptx_word_(&(v), 1)
/* Four modifiers as one word; a constant where they are. */
#define CPTX_FOUR_(a, b, c, d) ((uint64_t)(a) | (uint64_t)(b) << 16 | (uint64_t)(c) << 32 | (uint64_t)(d) << 48)
/* Whether such calls can be made at this place. */
CPTX_INLINE_ bool cptx_is_again_(const cptx_again *again, cptx_site at)
{
	return again && __atomic_load_n(&again->state_, __ATOMIC_ACQUIRE) == CPTX_AGAIN_DIRECT_ && again->file_ == at.file &&
	       again->line_ == at.line;
}
#else
#define CPTX_INLINE_ static inline
#endif
/* ---- Modules and texts that keep their memory ---- */

/**
 * Empties a module, frozen or with an error, for the next kernels; all that was made in it is gone.  It keeps its memory, so
 * that a module that is filled with no more than before allocates nothing, and what it knows of calls.  False: the module is
 * NULL, or memory is short.
 */
CPTX_API bool cptx_module_clear(cptx_module *m);
/** An empty text, for cptx_emit_again; NULL if memory is short.  `allocator` may be NULL. */
CPTX_API cptx_ptx *cptx_ptx_new(const cptx_allocator *allocator);
/**
 * cptx_emit in place of an earlier text, whose memory it uses again: once that is large enough, nothing is allocated.  The
 * earlier text is gone, and on error (false) there is none.
 */
CPTX_API bool cptx_emit_again(cptx_ptx *ptx, cptx_module *m, const char *target, const cptx_emit_opt *opt, cptx_error *err);

/** A hash of a module, for accidents: nobody is kept from making two modules that have the same. */
typedef struct cptx_hash {
	uint64_t word[2]; /**< both are as good as random */
} cptx_hash;
/** How to hash. */
typedef struct cptx_hash_opt {
	uint32_t size;      /**< CPTX_OPT fills it in */
	bool any_registers; /**< whatever the names and numbers of registers are: they are told apart by their types and by the
	                         order in which the instructions of a body name them, and those that no instruction names do not
	                         count.  What directives say as text about a register does */
	cptx_ptx *scratch;  /**< memory to be used again, from cptx_ptx_new or an earlier text, which is gone then; NULL: none */
	char z_;
} cptx_hash_opt;
/**
 * The hash of the text that cptx_emit would print for the target, without memory for the text: a key for caches of compiled
 * kernels.  Equal texts have equal hashes, whether the modules were built or parsed, in every process; different texts have
 * different ones, but for an accident.  Other versions of the library may hash in another way.  The text has the names of
 * kernels and variables, comments, the target and the lowest .version.  The module is frozen first, and what cptx_emit
 * refuses is refused: false then, with *err set (err may be NULL) and *hash 0.  `opt` may be NULL.
 */
CPTX_API bool cptx_module_hash(cptx_module *m, const char *target, const cptx_hash_opt *opt, cptx_hash *hash,
                               cptx_error *err);

#ifdef __cplusplus
}
#endif

#endif
