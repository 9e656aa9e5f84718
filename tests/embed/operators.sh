#!/bin/sh
# SPDX-License-Identifier: MIT
# operators.sh SOURCE BUILD C++ LIBRARY: <cptx/cptx.hpp> by a compiler of C++, pedantically, and its example; with CPTX_WHOLE in C++20, too.
# The last line is "operators: N passed, N failed, N skipped".
set -u
source=$1 build=$2 cxx=$3 library=$4
suite=operators
. "$source/tests/embed/common.sh"
flags="-Wall -Wextra -Wpedantic -Wshadow -Werror -I$source/include -I$build/include"
for name in tests/embed/operators examples/embed/cplusplus; do
	# shellcheck disable=SC2086 # words
	try "$name" $cxx -std=c++17 $flags "$source/$name.cc" -o "$dir/${name##*/}" "$library" -Wl,-rpath,"${library%/*}"
done
if [ "${CPTX_WHOLE:-}" ]; then
	# shellcheck disable=SC2086 # words
	try "in C++20" $cxx -std=c++20 $flags -fsyntax-only "$source/tests/embed/operators.cc"
fi
try "the operators" "$dir/operators"
try "the example" env CPTX_DEVICE=emu:sm_90a "$dir/cplusplus"
if grep -q ': 0 of 1000 are wrong' "$dir/log"; then ok; else bad "the example printed something else"; fi
finish
