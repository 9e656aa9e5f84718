#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # ` in single quotes is meant as it is
# Do the checks see what they should?  Runs check.sh on a small clean tree and on one with an offence of every kind.
# Ends with "house self-test: N passed, N failed, N skipped".
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
passed=0 failed=0

put() { # FILE TEXT
	mkdir -p "$tree/$(dirname "$1")"
	printf '%s\n' "$2" >"$tree/$1"
}

expect() { # WHAT REGEX: a line of the report
	if printf '%s\n' "$report" | grep -qE "$2"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL  $1: no line matches $2"
	fi
}

put docs/environment.md '| `CPTX_KNOWN` | a variable |'
put include/cptx/cptx.h '#include <cptx/isa.h>'
put src/base/base.h '#include <cptx/cptx.h>'
put src/base/a.c '#include "base/base.h"
/* exit(1) in a comment, also
   abort() in a long one */
static const char *s = "\"printf(1)"; static_assert(1, ""); void f(void) { cptx_exit(k); s = getenv("CPTX_KNOWN"); }'
put src/emit/b.c '#include "arch/arch.h"
#include <stdio.h> /* a loader of cubins: what is right */'
put tools/cptx/run/args.h ''
put tools/cptx/x.c '#include "emit/emit.h"
#include "run/args.h"
int main(void) { printf("free to print"); }'
python3 "$here/spdx.py" --add "$tree"
report=$("$here/check.sh" "$tree") || :
expect "a clean tree" '^house: [0-9]+ passed, 0 failed'

put src/emu/over.c '#include <cptx/emu.h>
#include "runtime/runtime.h"'
put src/emu/race/over.c '#include "emu/core/warp.h"
#include "ir/ir.h"
#include "gemm/tma/tma.h"'
put src/base/up.c '
#include "ir/ir.h"'
put tools/cptx/up.c '#include "run/none.h"'
put src/emit/side.c '#include "parse/parse.h"'
put src/ir/device.c '#include <cptx/device.h>'
put include/cptx/layout.h '#include <cptx/gemm.h>'
put src/strange/x.c ''
put src/gemm/sm90/k.c '#include "base/base.h"
#include "ir/ir.h"
#include "gemm/tma/tma.h"'
put src/kit/k.c '#include "base/base.h"
#include "ir/ir.h"
#include "gemm/tma/tma.h"'
put examples/e.c '#include "base/base.h"'
put examples/own.h ''
put examples/sub/f.c '#include "own.h"
#include "reference/number.h"
#include "cli/cli.h"
#include "../tools/cptx/reference/number.h"
#include "reference/none.h"'
put tools/cptx/reference/number.h ''
put tools/cptx/cli/cli.h ''
put tools/cptx/reference/number.c '#include "reference/number.h"
#include "cli/cli.h"
#include "base/base.h"'
put bf16 'stray'
put src/runtime/c.c '#include <cuda.h>'
put src/base/exit.c 'void f(void) { /* x */ exit(1); }'
put src/base/print.c '/* a
*/ void f(void) { fprintf(stderr, "x"); }'
put src/base/long.c "$(yes 'int x;' | head -n 701)"
put src/base/todo.c "/* TO""DO: later */"
put docs/path.md 'see /home/''me/notes'
put src/base/blank.c 'int x; '
printf 'int x;' >"$tree/src/base/end.c"
put src/base/env.c 'void f(void) { getenv("CPTX_UNKNOWN"); getenv("OTHER"); g("CPTX_HANDED_ON"); }'
put src/base/a.c ''
put include/cptx/pipe.h '#define CPTX_FOR(k, i, n) CPTX_BLOCK(k, begin_(k, (i), (n)))
#define cptx_global(...) cptx_global_x_(__VA_ARGS__, .z_ = 0)
#define cptx_global_x_(m, v, ...) cptx_global_(m, v, &(opt){ __VA_ARGS__ })
#ifdef __cplusplus
extern "C" {
#endif
CPTX_API cptx_val cptx_pipe_at(cptx_kernel *k, int i);
CPTX_API int cptx_look(const cptx_kernel *k);
void begin_(cptx_kernel *k, int i, int n);'
put src/gemm/order.c 'static int plain(int x) { return x; }
static int hidden(gen *g)
{
	return plain(1) + cptx_neg(g->k, 2);
}
static void two(gen *g)
{
	f(1, hidden(g), plain(2), hidden(g)); /* line 8 */
	f(plain(1), /* hidden(g) */ "hidden(g), hidden(g)", hidden(g),
	  plain(3));
	f(
		hidden(g), g->user_code(g->k, 1)); /* 11 */
	CPTX_FOR(k, cptx_pipe_at(k, 1), cptx_pipe_at(k, 2)) /* 13 */
		cptx_add(k, hidden(g), cptx_pipe_at(k, 1), .when = hidden(g));
	pair p = { hidden(g), hidden(g) };
	f((pair){ hidden(g), hidden(g) }, hidden(g)); /* 16 */
	a[hidden(g)] = hidden(g); /* 17 */
	if (hidden(g)) hidden(g);
	x = hidden(g) ? hidden(g) : hidden(g), y = hidden(g) && hidden(g);
	f(cptx_look(k), cptx_look(k));
	cptx_global(g, hidden(g), .a = 1, .b = hidden(g)); /* 21 */
	cptx_global(hidden(g), hidden(g)); /* 22 */
	f(hidden(hidden(g)));
	cptx_global(g, 1, .a = hidden(g), .b = hidden(g));
	f(CALL(add, .a = x), CALL(neg, .a = y)); /* 25 */
	CALL(add, .a = CALL(neg, .a = x), .b = CALL(neg, .a = y));
}'
put src/base/call.h '#define CALL(name, ...) CPTX_INSN_AT_(cptx_##name, k, at, __VA_ARGS__)'
put src/kit/words.c '/* The loader fills the ring, loaders_of it too. */
/* What is left. */
 * Both end here.
x.said = 1; /* it said so, and what is right */'
report=$("$here/check.sh" "$tree") || :
expect "an arrow that points up" '^    src/base/up.c:2: base may not include ir/ir.h$'
expect "an emulator that knows the runtime" '^    src/emu/over.c:2: emu may not include runtime/runtime.h$'
expect "an emulator that knows generators, two folders deep" '^    src/emu/race/over.c:3: emu may not include gemm/tma/tma.h$'
expect "a header that the command does not have" '^    tools/cptx/up.c:1: tools may not include run/none.h$'
expect "an arrow sideways" '^    src/emit/side.c:1: emit may not include parse/parse.h$'
expect "a public header of a higher folder" '^    src/ir/device.c:1: ir may not include cptx/device.h$'
expect "public headers among themselves" '^    include/cptx/layout.h:1: layout may not include cptx/gemm.h$'
expect "an unknown folder" '^    src/strange/x.c:1: '
expect "a kernel that goes behind the builder" '^    src/gemm/sm90/k.c:2:'
expect "a part of kernels that does" '^    src/kit/k.c:2:'
expect "a part of kernels that knows a generator" '^    src/kit/k.c:3: kit may not include'
expect "an example that does" '^    examples/e.c:1:'
for place in examples/sub/f.c:3 examples/sub/f.c:4 examples/sub/f.c:5 tools/cptx/reference/number.c:2 tools/cptx/reference/number.c:3; do
	expect "one that does without a slash, or with dots" "^    $place:"
done
expect "a file without a licence" '^    src/base/up.c:1: no SPDX'
expect "a word of kernels that was given up" '^    src/kit/words.c:1: a loader is a producer'
for line in 2 3; do
	expect "a comment without a subject" "^    src/kit/words.c:$line: a comment begins with"
done
expect "a field by a word that was given up" '^    src/kit/words.c:4: name what it is'
expect "a stray file" '^    bf16:1: '
expect "a CUDA header" '^    src/runtime/c.c:1:'
expect "exit" '^    src/base/exit.c:1:'
expect "stderr" '^    src/base/print.c:2:'
expect "a long file" '^    src/base/long.c:700: 701 lines$'
expect "unfinished work" '^    src/base/todo.c:1:'
expect "a path of a machine" '^    docs/path.md:1:'
expect "a blank at the end" '^    src/base/blank.c:1:'
expect "no newline at the end" '^    src/base/end.c:0:'
expect "a variable that is not described" '^    src/base/env.c:1: CPTX_UNKNOWN '
expect "a variable that is not ours" '^    src/base/env.c:1: OTHER '
expect "a variable that another function asks for" '^    src/base/env.c:1: CPTX_HANDED_ON '
expect "a described variable that nothing reads" '^    docs/environment.md:1: nothing reads CPTX_KNOWN$'
for line in 8 11 13 16 17 21 22 25; do
	expect "two calls that emit, in no order" "^    src/gemm/order.c:$line: "
done
expect "the count" '^house: [01] passed, 13 failed'
for place in src/gemm/sm90/k.c:1 src/gemm/sm90/k.c:3 src/kit/k.c:1 examples/sub/f.c:1 examples/sub/f.c:2 tools/cptx/reference/number.c:1 src/emu/over.c:1 \
	src/emu/race/over.c:1 src/emu/race/over.c:2 src/gemm/order.c:4 src/gemm/order.c:9 src/gemm/order.c:1[024589] src/gemm/order.c:2[0346-9]; do
	if printf '%s\n' "$report" | grep -v 'no SPDX' | grep -q "$place:"; then
		failed=$((failed + 1))
		echo "FAIL  $place is allowed"
	fi
done
echo "house self-test: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
