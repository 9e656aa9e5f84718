/* SPDX-License-Identifier: MIT */
/*
 * The file that `cptx sanitize --record` writes (record.c) and `cptx replay` reads (replay.c).
 *
 * A head of 16 bytes: "cptxrec\n", the version (4 bytes), 0 (4 bytes).  Then records: kind (4), 0 (4), bytes of what follows
 * (8), and that, with zeros behind it up to a multiple of 8.  Numbers are little-endian; a text is its length (4) and its
 * bytes.  In their order:
 *
 * DEVICE   target, name, command of the program: texts; 1 if it was a GPU, else the emulator (4); the driver's version (4)
 * MODULE   number (4), texts (4), variables (4); of each text its name and itself, of each variable name (text), address (8)
 *          and bytes (8).  It stays until UNLOADED
 * BLOCK    address, bytes (8 each), RT_DEVICE and so on, or BLOCK_VARIABLE (4), 1 if all of it counts as written (4): memory
 *          that is zero; a variable's is that of its module
 * FREED    address of a block (8)
 * BYTES    address (8), bytes: what the memory has from now on
 * FILL     address, bytes, 8 bytes of pattern: the same, again and again
 * WRITTEN  addresses and bytes (8 each), any number: these bytes count as written from now on
 * LAUNCH   number, from 1 on (8), module (4), parameters (4), grid, block, cluster (4 each, thrice), dynamic shared memory
 * (4), 1 cooperative + 2 overlapping (4), kernel (text); of each parameter its bytes as a text.  The BYTES and FILL behind
 *          it are what the launch left
 * DONE     the launch's error (4)
 * LEFT     a launch that could not be recorded: its number (8), kernel and why (texts)
 * END      launches of the program (8), enum rec_end (4)
 * UNLOADED number of a module (4), whose variables are gone
 * UNREAD   behind LAUNCH: address of a block (8) of which it is not known what the launch left; FREED follows
 */
#ifndef CPTX_SANITIZE_RECORDING_H
#define CPTX_SANITIZE_RECORDING_H

#include <stdint.h>

#define REC_MAGIC "cptxrec\n"
enum { REC_VERSION = 1, REC_HEAD = 16, REC_RECORD_HEAD = 16, REC_PAGE = 4096 /* bytes that are stored or not */ };
enum rec_kind {
	REC_DEVICE = 1,
	REC_MODULE,
	REC_BLOCK,
	REC_FREED,
	REC_BYTES,
	REC_FILL,
	REC_WRITTEN,
	REC_LAUNCH,
	REC_DONE,
	REC_LEFT,
	REC_END,
	REC_UNLOADED,
	REC_UNREAD
};
enum rec_end { REC_ALL, REC_LIMIT /* --record-limit was reached */, REC_SHORT /* memory or the disk was short */ };
enum { REC_COOPERATIVE = 1, REC_OVERLAP = 2 };
enum { BLOCK_VARIABLE = 16 /* beside RT_HOST, RT_DEVICE and RT_MANAGED */ };

/* Names of environment variables by which the command tells the program's process what to do. */
#define REC_FILE_ENV "CPTX_RECORD"
#define REC_KERNEL_ENV "CPTX_RECORD_KERNEL"
#define REC_LAUNCHES_ENV "CPTX_RECORD_LAUNCHES"
#define REC_LIMIT_ENV "CPTX_RECORD_LIMIT"
#define REC_HELPER_ENV "CPTX_RECORD_HELPER" /* the stand-in's library, for the recorder in front of a driver */
#define REC_REPLAY_ENV "CPTX_REPLAY"

#endif
