/* SPDX-License-Identifier: MIT */
/*
 * Every public function with NULL, zero and meaningless arguments, one at a time and all at once.  The calls are made from
 * the headers (gen_calls.py); they run in child processes, so that a crash is a line with the name of the function.
 *
 * What must hold: no crash; a function that takes a cptx_error * gives zero (false, NULL) and sets it, or neither; one that
 * finds an earlier error there does nothing, gives zero, and leaves that error as it is; a builder call in a kernel that is
 * open gives a value, or the module has an error.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cptx/attention.h>
#include <cptx/attention_backward.h>
#include <cptx/attention_decode.h>
#include <cptx/bundle.h>
#include <cptx/cptx.h>
#include <cptx/gemm.h>
#include <cptx/rows.h>
#include <cptx/tune.h>
#include <cptx/cache.h>
#include <cptx/dlpack.h>
#include <cptx/emu.h>
#include <cptx/inspect.h>

#include "../hang.h"
#include "../sanitized.h"
#include "../whole.h"

enum kind { HOOK, ERROR, TEXT, DATA, PLAIN, STRUCT, OBJECT, BITS, VALUE, ENUM, NUMBER };
enum mode { NOTHING, ERROR_ONLY, HOLE, GARBAGE, SPOILT, EARLIER };
enum { SPOILS = 48, SPOILS_OF_STRUCTS = 120 /* three times the fields of the largest; CPTX_WHOLE=1 tries all */ };
struct field {
	const char *type;
	size_t offset, size;
};
struct call {
	const char *name;
	void (*fn)(void);
	int nargs;
	enum kind args[12];
};

/* ---- one call ---- */

static const char ptx_text[] =
	".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\tret;\n}\n";
static char folder[] = "/tmp/cptx_misuse_XXXXXX";
static struct { /* what objects are given */
	cptx_module *m;
	cptx_kernel *k;
	cptx_val reg;
	cptx_ptx *ptx;
	cptx_device *dev;
	cptx_program *program;
	cptx_launch *launch;
	cptx_tensor_launch *tensors;
	cptx_cache *cache;
	cptx_verdict *verdict;
	cptx_flow *flow;
	cptx_stream *stream;
	cptx_event *event;
	cptx_gemm_runner *runner;
	cptx_attention_runner *attention_runner;
	cptx_rows_runner *rows_runner;
	cptx_attention_decode_runner *decode_runner;
	cptx_attention_backward_runner *backward_runner;
	cptx_tune *tune;
	cptx_bundle *bundle;
} have;
static enum mode mode;
static int hole; /* the argument that is left out, or meaningless; SPOILT: which of the ways; EARLIER: -1 if it is none */
static cptx_error told;
static const cptx_error earlier = {
	.code = CPTX_E_LIMIT, .line = 7, .file = "earlier.c", .text = "earlier.c:7: an earlier error"
};
static bool told_given;
static _Alignas(128) char pool[16][1 << 16], was[16][1 << 16]; /* what arguments point to; that of EARLIER as it was */

static void prepare_once(void)
{
	cptx_module *m = cptx_parse(ptx_text, sizeof ptx_text - 1, NULL);

	have.ptx = cptx_emit(m, NULL, NULL, NULL);
	have.flow = cptx_flow_of(cptx_module_body_at(m, 0), NULL);
	have.dev = cptx_emu_open("sm_90a", NULL, NULL);
	have.program = cptx_device_load_text(have.dev, ptx_text, sizeof ptx_text - 1, NULL, NULL);
	have.launch =
		cptx_launch_new(have.program, NULL, CPTX_LAUNCH(.grid = { 1 }, .block = { 1 }, CPTX_ARGS((uint64_t)0)), NULL);
	have.tensors = cptx_tensor_launch_new(
		have.program, NULL, &(cptx_tensor_launch_opt){ .signature = "p: u8[n]", .grid = "1", .block = { 1 } }, NULL);
	have.cache = cptx_cache_open(NULL, NULL);
	have.verdict = cptx_verdict_read("", 0, NULL);
	have.stream = cptx_stream_new(have.dev, NULL);
	have.event = cptx_event_new(have.dev, NULL);
	have.runner = cptx_gemm_runner_new(have.dev, NULL, NULL);
	have.attention_runner = cptx_attention_runner_new(have.dev, NULL, NULL);
	have.rows_runner = cptx_rows_runner_new(have.dev, NULL, NULL);
	have.decode_runner = cptx_attention_decode_runner_new(have.dev, NULL, NULL);
	have.backward_runner = cptx_attention_backward_runner_new(have.dev, NULL, NULL);
	have.tune = cptx_tune_open(CPTX_OPT(cptx_tune_opt, .path = folder, .shipped = ""), NULL);
	have.bundle = cptx_bundle_new(NULL, NULL);
	if (!(have.ptx && have.flow && have.dev && have.program && have.launch && have.tensors && have.cache && have.verdict &&
	      have.runner && have.attention_runner && have.rows_runner && have.decode_runner && have.backward_runner &&
	      have.tune && have.bundle))
		_exit(1);
}

static void prepare(void)
{
	have.m = cptx_module_new(NULL);
	have.k = cptx_kernel_begin(have.m, "k");
	have.reg = cptx_tid_x(have.k);
	told = mode == EARLIER ? earlier : (cptx_error){ 0 };
	told_given = false;
	memset(pool, 0, sizeof pool);
	memset(was, 0, mode == EARLIER ? sizeof was : 0);
}

static const void *object(const char *type)
{
	const struct {
		const char *type;
		const void *p;
	} all[] = {
		{ "cptx_module", have.m },
		{ "cptx_kernel", have.k },
		{ "cptx_ptx", have.ptx },
		{ "cptx_device", have.dev },
		{ "cptx_program", have.program },
		{ "cptx_launch", have.launch },
		{ "cptx_tensor_launch", have.tensors },
		{ "cptx_cache", have.cache },
		{ "cptx_verdict", have.verdict },
		{ "cptx_flow", have.flow },
		{ "cptx_stream", have.stream },
		{ "cptx_event", have.event },
		{ "cptx_gemm_runner", have.runner },
		{ "cptx_attention_runner", have.attention_runner },
		{ "cptx_rows_runner", have.rows_runner },
		{ "cptx_attention_decode_runner", have.decode_runner },
		{ "cptx_attention_backward_runner", have.backward_runner },
		{ "cptx_tune", have.tune },
		{ "cptx_bundle", have.bundle },
		{ "cptx_rows_row", NULL }, /* there is one in callbacks only */
		{ "cptx_item", cptx_item_first(have.k) },
		{ "cptx_target", cptx_target_find("sm_90a") },
		{ "cptx_cubin", NULL }, /* they need a compiler */
		{ "cptx_cubin_view", NULL },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i].type, type))
			return all[i].p;
	printf("test_misuse.c has no %s to give\n", type);
	exit(1);
}

#define FIELDS_ONLY
#include "calls.inc"
#undef FIELDS_ONLY
enum { FIELDS = sizeof fields / sizeof *fields };

/* What a struct has that passes the first checks. */
static void usual(const char *type, void *to)
{
	const cptx_gemm_opt gemm = cptx_gemm_default(CPTX_GEMM_WGMMA, NULL);
	const cptx_frag frag = { .kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16 };
	const cptx_tile tile = { .rows = 64, .cols = 64, .elem.bits = 16 };
	const cptx_gemm_problem problem = { .m = 64, .n = 64, .k = 64 };
	const cptx_attention_opt attention = { .size = CPTX_OPT_SIZE(cptx_attention_opt), .in = CPTX_BF16, .dim = 64 };
	const cptx_attention_decode_opt decode = { .size = CPTX_OPT_SIZE(cptx_attention_decode_opt),
		                                       .in = CPTX_BF16,
		                                       .dim = 64 };
	const cptx_attention_backward_opt backward = { .size = CPTX_OPT_SIZE(cptx_attention_backward_opt),
		                                           .in = CPTX_BF16,
		                                           .dim = 64 };
	const cptx_rows_opt rows = {
		.size = CPTX_OPT_SIZE(cptx_rows_opt), .kernel = CPTX_ROWS_SOFTMAX, .in = CPTX_BF16, .n = 4096
	};

	if (!strcmp(type, "cptx_gemm_opt"))
		memcpy(to, &gemm, sizeof gemm);
	else if (!strcmp(type, "cptx_frag"))
		memcpy(to, &frag, sizeof frag);
	else if (!strcmp(type, "cptx_tile"))
		memcpy(to, &tile, sizeof tile);
	else if (!strcmp(type, "cptx_gemm_problem"))
		memcpy(to, &problem, sizeof problem);
	else if (!strcmp(type, "cptx_attention_opt"))
		memcpy(to, &attention, sizeof attention);
	else if (!strcmp(type, "cptx_attention_decode_opt"))
		memcpy(to, &decode, sizeof decode);
	else if (!strcmp(type, "cptx_attention_backward_opt"))
		memcpy(to, &backward, sizeof backward);
	else if (!strcmp(type, "cptx_rows_opt"))
		memcpy(to, &rows, sizeof rows);
}

/* A value all right but for one byte of it. */
static cptx_val spoilt_val(int way)
{
	cptx_val v = have.reg;

	((unsigned char *)&v)[way % 16] = way % 32 < 16 ? 0xff : 0x40;
	return v;
}

/* One of the enums of a struct is out of range. */
/* All of an array.  The largest number, half of it and one more, and one that is no enumerator. */
static void spoil_field(char *to, size_t size, size_t way)
{
	const bool boolean = size == 1;

	memset(to, boolean ? 1 : way == 0 ? 0xff : way == 1 ? 0 : 0x1f, size);
	if (way == 1 && !boolean)
		to[size - 1] = (char)0x80;
}

static void spoil_struct(const char *type, char *to)
{
	size_t n = 0, at = 0;

	usual(type, to);
	for (size_t i = 0; i < FIELDS; i++)
		n += !strcmp(fields[i].type, type);
	for (size_t i = 0; i < FIELDS; i++)
		if (!strcmp(fields[i].type, type) && at++ == (size_t)hole % n)
			spoil_field(to + fields[i].offset, fields[i].size, (size_t)hole / n % 3);
}

/* The operands and the modifiers of a builder call. */
static void spoil_call(void *val, size_t val_size, uint16_t *mod, size_t mod_size)
{
	if (mode != SPOILT)
		return;
	cptx_val v = spoilt_val(hole);
	for (size_t i = 0; i < val_size / sizeof v; i++)
		memcpy((char *)val + i * sizeof v, hole < 32 || i == (size_t)hole % 8 ? &v : &have.reg, sizeof v);
	mod[(size_t)hole % (mod_size / sizeof *mod)] = hole % 3 ? 0xffff : 300;
}

static void give(int i, enum kind kind, const char *type, void *to, size_t size)
{
	const void *p = kind == TEXT ? "x" : kind == ERROR ? (void *)&told : kind == OBJECT ? object(type) : pool[i];
	bool is_bits = kind == BITS || kind == ENUM;

	memset(to, 0, size);
	if (mode == NOTHING || (mode == ERROR_ONLY && kind != ERROR) || ((mode == HOLE || mode == EARLIER) && i == hole))
		return;
	if (mode == GARBAGE && i == hole) {
		memset(is_bits ? to : pool[i], 1, is_bits ? size : sizeof pool[i]); /* 1: of a bool too */
		if (strstr(type, "_opt") || !strcmp(type, "cptx_gemm_problem"))     /* a .size that is believed */
			memset(pool[i], 0, sizeof(uint32_t));
		if (is_bits)
			return;
	}
	told_given |= kind == ERROR;
	if (mode == SPOILT && kind == BITS && !strcmp(type, "cptx_val")) {
		cptx_val v = spoilt_val(hole);
		memcpy(to, &v, size);
		return;
	}
	if (mode == SPOILT && kind == ENUM) {
		memset(to, hole % 2 ? 0x1f : 0xff, size);
		return;
	}
	if (mode == SPOILT && (kind == PLAIN || kind == STRUCT))
		spoil_struct(type, pool[i]);
	if (mode == EARLIER && (kind == PLAIN || kind == STRUCT)) {
		usual(type, pool[i]);
		memcpy(was[i], pool[i], sizeof was[i]);
	}
	if (kind == NUMBER)
		*(char *)to = 1;
	else if (kind == BITS && !strcmp(type, "cptx_val"))
		memcpy(to, &have.reg, size);
	else if (kind != HOOK && kind != BITS && kind != ENUM && kind != VALUE)
		memcpy(to, &p, sizeof p);
}

static void fail(const char *what)
{
	puts(what);
	fflush(stdout);
	_exit(1);
}

static void leaves_an_earlier_error(void)
{
	if (memcmp(&told, &earlier, sizeof told) != 0)
		fail("an earlier error is overwritten");
	if (memcmp(pool, was, sizeof pool) != 0)
		fail("writes a result, though there is an earlier error");
}

static void answered_number(uint64_t zero)
{
	if (!told_given)
		return;
	if (mode == EARLIER && zero)
		fail("does its work, though there is an earlier error");
	if (!zero != (told.code != CPTX_OK) || (told.code && (!told.text[0] || strstr(told.text, "(null)")))) {
		printf("gives %llu, and the error %s: %s\n", (unsigned long long)zero, cptx_code_name(told.code), told.text);
		fflush(stdout);
		_exit(1);
	}
}
/* Of a workspace, which has 0 bytes where none is needed, too. */
static void answered_bytes(uint64_t n)
{
	if (n || told.code)
		answered_number(n);
}
static void answered_pointer(const void *p) { answered_number(p != NULL); }

/* Of a builder call: no value, and no error in the module? */
static void answered_val(cptx_val v)
{
	bool in_kernel = mode == SPOILT || mode == GARBAGE || (mode == HOLE && hole);

	if (in_kernel && (v.kind == CPTX_VAL_NONE || v.kind == CPTX_VAL_BAD) && !cptx_module_error(have.m)) {
		printf("gives no value, and no error\n");
		_exit(1);
	}
}
#define answered_struct(x) ((void)(x))

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wformat-security" /* formats are arguments, too */
#endif
#include "calls.inc"

/* ---- all of them ---- */

enum { CALLS = sizeof calls / sizeof *calls };
static volatile int *reached; /* call, mode and hole that a child is at */

/* NOTHING, ERROR_ONLY, HOLE and GARBAGE of each, all ways to spoil, EARLIER with all arguments and without each. */
static int spoilt_from(const struct call *c) { return 2 + 2 * c->nargs; }
static int earlier_from(const struct call *c)
{
	bool structs = false;

	for (int i = 0; i < c->nargs; i++)
		structs |= c->args[i] == PLAIN || c->args[i] == STRUCT;
	return spoilt_from(c) + (structs && whole() ? SPOILS_OF_STRUCTS : SAMPLE_OF(SPOILS, SPOILS / 3));
}
static int turns(const struct call *c) { return earlier_from(c) + 1 + c->nargs; }

/* Builder calls have a kernel and a site alone: the rest is in a struct. */
static bool can_spoil(const struct call *c)
{
	bool any = c->nargs == 2 && c->args[0] == OBJECT && c->args[1] == VALUE;

	for (int i = 0; i < c->nargs; i++)
		any |= c->args[i] == BITS || c->args[i] == ENUM || c->args[i] == PLAIN || c->args[i] == STRUCT;
	return any;
}

static bool takes_error(const struct call *c)
{
	bool any = false;

	for (int i = 0; i < c->nargs; i++)
		any |= c->args[i] == ERROR;
	return any;
}

/* Sets mode and hole; false: the function has no such turn. */
static bool begin_turn(const struct call *c, int turn)
{
	if (turn >= earlier_from(c)) {
		mode = EARLIER, hole = turn - earlier_from(c) - 1;
		return takes_error(c) && (hole < 0 || c->args[hole] != ERROR);
	}
	if (turn >= spoilt_from(c)) {
		mode = SPOILT, hole = turn - spoilt_from(c);
		return can_spoil(c);
	}
	mode = turn < 2 ? (enum mode)turn : turn % 2 ? GARBAGE : HOLE, hole = turn / 2 - 1;
	return turn < 2 || turn % 2 == 0 || c->args[hole] == BITS || c->args[hole] == ENUM || c->args[hole] == PLAIN;
}

static void child(int call, int turn)
{
	reached[0] = -1;
	prepare_once();
	for (; call < CALLS; call++, turn = 0)
		for (; turn < turns(&calls[call]); turn++) {
			reached[0] = call, reached[1] = turn;
			if (!begin_turn(&calls[call], turn))
				continue;
			prepare();
			hang_after(20);
			calls[call].fn();
			if (mode == EARLIER)
				leaves_an_earlier_error();
			const cptx_error *e = cptx_module_error(have.m);
			if (e && strstr(e->text, "(null)")) {
				printf("the module's error: %s\n", e->text);
				fflush(stdout);
				_exit(1);
			}
			cptx_module_destroy(have.m);
		}
	_exit(0);
}

/* What a turn that failed was. */
static void print_turn(const struct call *c, int turn)
{
	static const char *const what[] = { "zero", "meaningless" };

	begin_turn(c, turn);
	switch (mode) {
	case NOTHING: printf("nothing but zeros"); break;
	case ERROR_ONLY: printf("zeros and an error"); break;
	case SPOILT: printf("way %d to spoil values, enums and modifiers, out of range", hole); break;
	case EARLIER: printf(hole < 0 ? "an earlier error" : "an earlier error, argument %d is zero", hole + 1); break;
	default: printf("argument %d is %s", hole + 1, what[mode == GARBAGE]); break;
	}
}

int main(void)
{
	int call = 0, turn = 0, last = -2, failed = 0, status; /* last: function that failed */
	char command[64];

	reached = mmap(NULL, 2 * sizeof *reached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (reached == MAP_FAILED || !mkdtemp(folder) || setenv("CPTX_CACHE_DIR", folder, 1) ||
	    setenv("CPTX_CUDA_LIBRARY", "none", 1))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (call < CALLS) {
		pid_t pid = fork();
		if (!pid)
			child(call, turn);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		if (!status)
			break;
		if (reached[0] != last)
			last = reached[0], failed++;
		call = reached[0], turn = reached[1];
		if (call < 0) {
			puts("FAIL the objects to give cannot be made");
			break;
		}
		printf("FAIL %s: ", calls[call].name);
		print_turn(&calls[call], turn);
		printf(": %s %d\n", WIFSIGNALED(status) ? "signal" : "exit status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		if (++turn >= turns(&calls[call]))
			call++, turn = 0;
	}
	snprintf(command, sizeof command, "rm -rf %s", folder);
	if (system(command))
		printf("%s is left\n", folder);
	printf("misuse: %d passed, %d failed, 0 skipped\n", CALLS - failed, failed);
	return failed != 0;
}
