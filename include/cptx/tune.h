/* SPDX-License-Identifier: MIT */
/*
 * The tuning database: what was measured, kept for all programs.
 *
 * A record is one measurement: which generator, problem, device, driver and compiler, which candidate (the options that the
 * problem leaves open), and its samples.  A candidate that is measured later joins the others; no record depends on which
 * candidates there were.  A look-up takes the exact problem, then the nearest ones in log(M, N, K); where there is none, the
 * caller's model chooses.
 *
 * Folder: records are lines of text in segment files, *.seg, which end in "\n" and begin with a checksum and their length.
 * Each writer appends to a segment of its own and has it on disk before cptx_tune_add returns, so there are no locks, and
 * neither a crash nor a full disk nor a second host on a network disk touches what others wrote: a line without its end or
 * with a wrong checksum is passed over.  The file "index" only saves reading; it may be removed at any time.
 * The user's folder is .path, else CPTX_TUNE_DIR, else cptx/tune in XDG_DATA_HOME, else .local/share/cptx/tune in HOME.
 * Under it, and never written to, lie the folders of .shipped, else of CPTX_TUNE_PATH (joined by colons), else the one that
 * is installed with the library.
 *
 * Environment: CPTX_TUNE, CPTX_TUNE_DIR, CPTX_TUNE_PATH, CPTX_TUNE_BUDGET; of cptx_tune_share those of MPI and Slurm.
 *
 * Threads: all calls on one database may be made by many threads.  Processes: any number may use a folder at once, on any
 * number of hosts.
 */
#ifndef CPTX_TUNE_H
#define CPTX_TUNE_H

#include <cptx/device.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	CPTX_TUNE_DIMS = 6,    /**< most sizes of a problem */
	CPTX_TUNE_TEXT = 512,  /**< bytes of a text of a record, with its NUL; longer ones are refused */
	CPTX_TUNE_SAMPLES = 64 /**< most samples of a record */
};

/** A database: the user's folder and those that are only read. */
typedef struct cptx_tune cptx_tune;

/** How to open a database.  All zero: as the environment says. */
typedef struct cptx_tune_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	const char *path;    /**< the user's folder, made at the first record; NULL: see "Folder" above */
	const char *shipped; /**< folders that are only read, joined by colons; "": none; NULL: see "Folder" above */
	bool read_only;      /**< nothing is written, not even the index */
	char z_;
} cptx_tune_opt;
/** Opens a database; opt may be NULL.  Folders that are not there are empty.  Errors: MEMORY; IO, a folder that is there
 * cannot be read. */
CPTX_API cptx_tune *cptx_tune_open(const cptx_tune_opt *opt, cptx_error *err);
/** Closes a database, and brings its index up to date if this handle wrote much.  NULL is allowed. */
CPTX_API void cptx_tune_close(cptx_tune *db);
/** The user's folder; "": the environment names none. */
CPTX_API const char *cptx_tune_path(const cptx_tune *db);

/** The key of a record: everything that says what was measured, without the measurement.  Texts have no control characters.
 */
typedef struct cptx_tune_key {
	uint32_t size;                 /**< CPTX_OPT fills it in */
	const char *generator;         /**< "gemm" */
	uint32_t version;              /**< of the generator: kernels of other versions are others */
	const char *problem;           /**< types, layouts, epilogue: "mma=wgmma a=bf16 b=bf16 out=f32" */
	uint64_t dims[CPTX_TUNE_DIMS]; /**< sizes: M, N, K, batch of a GEMM; behind the last: 0 */
	const char *device;            /**< the driver's name of it */
	uint32_t sms;                  /**< multiprocessors */
	uint32_t clock_mhz;            /**< their highest clock; 0: an emulator */
	uint32_t power_w;              /**< power limit as the device has it when it is new, in watts; 0: not known */
	uint32_t driver;               /**< CUDA version of the driver, 13000; 0: an emulator */
	const char *compiler;          /**< the compiler and its version, "ptxas 13.0.88"; "driver": that of the driver */
	char z_;
} cptx_tune_key;
/** Fills in what the device says: .device, .sms, .clock_mhz, .power_w, .driver, and .compiler for programs that are loaded
 * with `compiler`.  .device lives as long as the device, .compiler lies in `text`. */
CPTX_API bool cptx_tune_describe(cptx_device *dev, enum cptx_compiler compiler, cptx_tune_key *key,
                                 char text[CPTX_TUNE_TEXT], cptx_error *err);

/** A measurement. */
typedef struct cptx_tune_record {
	uint32_t size;            /**< CPTX_OPT fills it in */
	const cptx_tune_key *key; /**< what was measured */
	const char *candidate;    /**< the options that were tried: "bm=128 bn=256 stages=4 ctas=132" */
	const char *unit;         /**< of the samples: "us", or "steps" of an emulator, which measures no time */
	const double *samples;    /**< the values, from 10^-6 to below 10^12 */
	uint32_t nsamples;        /**< 1 to CPTX_TUNE_SAMPLES */
	double median, spread; /**< of the samples; the spread is (largest - smallest) / median.  cptx_tune_add computes them */
	int64_t date;          /**< microseconds since 1970; 0: cptx_tune_add takes the time */
	char z_;
} cptx_tune_record;

/**
 * Adds a record to the user's folder.  True: it is on disk.  Errors: ARG, a text that is missing, too long or has control
 * characters; IO, the folder cannot be made or written, or the disk is full (then nothing of the record stays); STATE, the
 * database is read-only.
 */
CPTX_API bool cptx_tune_add(cptx_tune *db, const cptx_tune_record *record, cptx_error *err);

/** How a look-up fits. */
enum cptx_tune_match {
	CPTX_TUNE_EXACT, /**< the problem, device, driver and compiler */
	CPTX_TUNE_BUILD, /**< the problem and device, by another driver or compiler */
	CPTX_TUNE_NEAR   /**< other sizes */
};
/** A candidate that was found. */
typedef struct cptx_tune_found {
	enum cptx_tune_match match;     /**< how it fits */
	double distance;                /**< from the problem: the root of the sum of squares of log2 of the sizes' ratios */
	double median;                  /**< of its samples */
	uint64_t dims[CPTX_TUNE_DIMS];  /**< sizes that it was measured for */
	char candidate[CPTX_TUNE_TEXT]; /**< its options */
} cptx_tune_found;
/**
 * Finds candidates for a problem, best first: those measured for it, the fastest first, then the fastest one of each
 * neighbour within `radius`, the nearest first.  Returns how many of `room` were written.  Errors: ARG, MEMORY, IO.
 */
CPTX_API size_t cptx_tune_find(cptx_tune *db, const cptx_tune_key *key, double radius, cptx_tune_found *found, size_t room,
                               cptx_error *err);
/** The radius of look-ups that the library makes: together less than a factor of 1.42 in the sizes. */
#define CPTX_TUNE_RADIUS 0.5
/** Whether a candidate was measured for exactly this key, by the same driver and compiler. */
CPTX_API bool cptx_tune_has(cptx_tune *db, const cptx_tune_key *key, const char *candidate, cptx_error *err);

/** Calls `each` with every record, user's folder first, until it returns false.  The record lives until it returns.  A
 * record that stands in several files comes once.  `damaged` (may be NULL) gets the number of lines that are torn or
 * damaged. */
CPTX_API bool cptx_tune_each(cptx_tune *db, bool (*each)(void *user, const cptx_tune_record *record), void *user,
                             uint64_t *damaged, cptx_error *err);

/** Writes all records to a file, which is a segment: cptx_tune_import reads it, and so does a database whose folder it is
 * in.  Returns their number. */
CPTX_API uint64_t cptx_tune_export(cptx_tune *db, const char *file, cptx_error *err);
/** Adds the records of a file or of a folder that the user's folder does not have yet, all or none; returns their number. */
CPTX_API uint64_t cptx_tune_import(cptx_tune *db, const char *from, cptx_error *err);

/** What cptx_tune_prune keeps. */
typedef struct cptx_tune_prune_opt {
	uint32_t size;         /**< CPTX_OPT fills it in */
	uint32_t best;         /**< so many candidates of each problem, the fastest; 0: all */
	int64_t since;         /**< records of this moment (microseconds since 1970) and later; 0: all */
	const char *generator; /**< with .version: the generator whose other versions go */
	uint32_t version;      /**< its version that stays; 0: all stay */
	char z_;
} cptx_tune_prune_opt;
/** How much was kept. */
typedef struct cptx_tune_pruned {
	uint64_t kept, removed; /**< records */
	uint64_t files;         /**< segments whose records are in the new one, and which this call removed */
} cptx_tune_pruned;
/**
 * Makes one segment of all of the user's folder, with the records that `opt` keeps (NULL: all); of several measurements of
 * the same candidate the latest stays.  Writers may go on meanwhile, and others prune, on other hosts, too: writers begin
 * new segments.  Segments of other users, unless root prunes, stay as they are.
 */
CPTX_API bool cptx_tune_prune(cptx_tune *db, const cptx_tune_prune_opt *opt, cptx_tune_pruned *pruned, cptx_error *err);

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

/** When something is measured. */
enum cptx_tune_policy {
	CPTX_TUNE_AS_SET, /**< as CPTX_TUNE says: "off", "never", "once" or "always"; unset: never */
	CPTX_TUNE_OFF,    /**< the database is not even looked into */
	CPTX_TUNE_NEVER,  /**< what is there is used */
	CPTX_TUNE_ONCE,   /**< a problem that was not measured on this device, driver and compiler is measured */
	CPTX_TUNE_ALWAYS  /**< each problem is measured the first time that a runner meets it */
};
/** The policy that `given` stands for; never CPTX_TUNE_AS_SET but on an error: ARG, CPTX_TUNE has no meaning. */
CPTX_API enum cptx_tune_policy cptx_tune_policy_of(enum cptx_tune_policy given, cptx_error *err);

/** How to measure.  All zero: the usual. */
typedef struct cptx_tune_use {
	uint32_t size;                /**< CPTX_OPT fills it in */
	cptx_tune *db;                /**< the database, which stays the caller's and must stay open; NULL: the usual one */
	enum cptx_tune_policy policy; /**< when a runner measures */
	uint32_t candidates;          /**< most candidates of a problem, those that the model likes best; 0: 8 */
	double budget_s;              /**< most seconds for a problem; 0: CPTX_TUNE_BUDGET, unset: 10.  One candidate at least */
	uint32_t workers;             /**< threads that build and compile while others are measured; 0: processors, up to 4 */
	enum cptx_compiler compiler;  /**< compiler of the candidates; AUTO: as cptx_device_load */
	cptx_cache *cache;            /**< cache of machine code; NULL: none */
	uint32_t part, parts;         /**< measures only candidates whose running number is `part` modulo `parts`; 0, 0: all */
	uint64_t offset;              /**< running number of the first candidate */
	/** Called before each candidate and at the end: how many are done, and the best median so far (0: none yet). */
	void (*progress)(void *user, uint32_t done, uint32_t of, double best);
	void *user; /**< first argument of progress */
	char z_;
} cptx_tune_use;
/** What came of it. */
typedef struct cptx_tune_done {
	uint32_t candidates; /**< candidates that there are */
	uint32_t measured;   /**< of these now */
	uint32_t known;      /**< of these earlier, and not again */
	uint32_t failed;     /**< of these that could not be built, loaded or run; `why` tells of the first */
	uint32_t left;       /**< of these not, for lack of time, or as those of another part */
	char why[256];       /**< of the first that failed */
} cptx_tune_done;

/** A kernel of one's own to be tuned: its candidates, and how one is built and launched. */
typedef struct cptx_tune_job {
	uint32_t size;                               /**< CPTX_OPT fills it in */
	const cptx_tune_key *key;                    /**< what the records say; cptx_tune_describe fills in half of it */
	uint32_t candidates;                         /**< how many there are */
	const char *(*name)(void *user, uint32_t i); /**< the text of candidate i, which stays */
	/** Adds candidate i's kernel to a module; called in any thread, of many candidates at once. */
	bool (*build)(void *user, uint32_t i, cptx_module *m, cptx_error *err);
	/** Prepares launches of candidate i that are measured in turns, at most `room`, and returns their number; 0: an error.
	 */
	uint32_t (*launch)(void *user, uint32_t i, const cptx_program *program, cptx_launch **launches, uint32_t room,
	                   cptx_error *err);
	/** Called before each burst of launches of candidate i; NULL: nothing is done then. */
	bool (*before)(void *user, uint32_t i, cptx_error *err);
	void *user; /**< first argument of these */
	char z_;
} cptx_tune_job;
/**
 * Measures candidates that the database lacks (policy ALWAYS: all), as work of the default stream, and adds a record for
 * each as soon as it is measured.  On a GPU a sample is the time of a launch in a burst of some milliseconds; on the
 * emulator it is the number of instructions that warps executed ("steps").  A candidate that fails is counted and passed
 * over.  False: nothing could be measured or recorded.
 */
CPTX_API bool cptx_tune_measure(cptx_tune *db, cptx_device *dev, const cptx_tune_job *job, const cptx_tune_use *use,
                                cptx_tune_done *done, cptx_error *err);

/**
 * The part of a common work that is this process's: part of parts, from the variables that starters of many processes set:
 * CPTX_SHARE=i/n, else OpenMPI's OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and PMI_SIZE, SLURM_PROCID and SLURM_NTASKS, and
 * of a Slurm array SLURM_ARRAY_TASK_ID, _MIN, _COUNT (and _STEP).  An array of tasks with several processes each divides
 * twice. 0 of 1 where none is set.  Errors: ARG, a variable that is no number, or a part that is none.
 */
CPTX_API bool cptx_tune_share(uint32_t *part, uint32_t *parts, cptx_error *err);

#ifdef __cplusplus
}
#endif
#endif
