#!/bin/sh
# SPDX-License-Identifier: MIT
# named.sh SOURCE BUILD CC: a modifier that is given without the name of its field does not compile, without any option for warnings.
# The last line is "named: N passed, N failed, N skipped".
set -u
source=$1 build=$2 cc=$3
suite=named
. "$source/tests/embed/common.sh"
# compile LINE OPTIONS: the line in a function that builds; its messages go to the log.
compile() {
	printf '#include <cptx/cptx.h>\nvoid f(cptx_kernel *k, cptx_val a, cptx_val p);\nvoid f(cptx_kernel *k, cptx_val a, cptx_val p)\n{\n\t(void)a, (void)p;\n\t%s\n}\n' "$1" >"$dir/line.c"
	# shellcheck disable=SC2086 # words
	$cc -std=c11 $2 -fsyntax-only -I"$source/include" -I"$build/include" "$dir/line.c" >"$dir/log" 2>&1
}
good() { if compile "$1" '-Wall -Wextra -pedantic -Werror'; then ok; else bad "a warning at $1"; fi; }
wrong() { if compile "$1" -w; then bad "no error at $1"; elif grep -q "$2" "$dir/log"; then ok; else bad "another error at $1"; fi; }
good 'cptx_setp(k, a, a, .cmp = CPTX_LT, .into = p);'
good 'cptx_cvt(k, a, .dtype = CPTX_U32, .rnd = CPTX_RZI);'
good 'cptx_bar_sync(k, 0);'
wrong 'cptx_setp(k, a, a, CPTX_LT);' name_the_field_
wrong 'cptx_cvt(k, a, CPTX_U32, .rnd = CPTX_RZI);' name_the_field_
wrong 'cptx_add(k, a, a, a);' name_the_field_
wrong 'cptx_add(k, a, a, 0);' name_the_field_
wrong 'CPTX_FAST(cptx_add, k, a, a, CPTX_RN);' error
wrong 'cptx_setp(k, a, a, .cmp = CPTX_LT, p);' 'error'
finish
