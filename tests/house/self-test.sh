#!/bin/sh
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
#include <stdio.h>'
put tools/x.c '#include "emit/emit.h"
int main(void) { printf("free to print"); }'
report=$("$here/check.sh" "$tree") || :
expect "a clean tree" '^house: [0-9]+ passed, 0 failed'

put src/emu/over.c '#include <cptx/emu.h>
#include "runtime/runtime.h"'
put src/base/up.c '
#include "ir/ir.h"'
put src/emit/side.c '#include "parse/parse.h"'
put src/ir/device.c '#include <cptx/device.h>'
put include/cptx/layout.h '#include <cptx/gemm.h>'
put src/strange/x.c ''
put src/kernels/k.c '#include "base/base.h"
#include "ir/ir.h"'
put examples/e.c '#include "base/base.h"'
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
report=$("$here/check.sh" "$tree") || :
expect "an arrow that points up" '^    src/base/up.c:2: base may not include ir/ir.h$'
expect "an emulator that knows the runtime" '^    src/emu/over.c:2: emu may not include runtime/runtime.h$'
expect "an arrow sideways" '^    src/emit/side.c:1: emit may not include parse/parse.h$'
expect "a public header of a higher folder" '^    src/ir/device.c:1: ir may not include cptx/device.h$'
expect "public headers among themselves" '^    include/cptx/layout.h:1: layout may not include cptx/gemm.h$'
expect "an unknown folder" '^    src/strange/x.c:1: '
expect "a kernel that goes behind the builder" '^    src/kernels/k.c:2:'
expect "an example that does" '^    examples/e.c:1:'
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
expect "the count" '^house: 0 passed, 9 failed|^house: 1 passed, 9 failed'
for place in src/kernels/k.c:1 src/emu/over.c:1; do
	if printf '%s\n' "$report" | grep -q "$place:"; then
		failed=$((failed + 1))
		echo "FAIL  $place is allowed"
	fi
done
echo "house self-test: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
