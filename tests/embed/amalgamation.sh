#!/bin/sh
# amalgamation.sh SOURCE FOLDER CC [C++]: the two files of the amalgamation, compiled and linked into a program of each language.
# The last line is "amalgamation: N passed, N failed, N skipped".
set -u
source=$1 folder=$2 cc=$3 cxx=${4:-}
suite=amalgamation
. "$source/tests/embed/common.sh"
sed 's|#include <cptx/device.h>|#include "cptx.h"|' "$source/examples/embed/embed.c" >"$dir/embed.c"
sed '/^#include <cptx/d; 1i #include "cptx.h"' "$source/tests/embed/builder.cc" | sed "s|builder.inc|$source/tests/embed/builder.inc|" >"$dir/builder.cc"
cat >>"$dir/builder.cc" <<'END'
#include <cstdio>
int main()
{
	cptx_error err = {};
	int wrong = launch_cpp(&err);
	std::printf("%s: %d of 1000 squares are wrong\n", err.text, wrong);
	return wrong;
}
END
# shellcheck disable=SC2086 # words
{
	try "cptx.c as C11" $cc -std=c11 -Wall -Wextra -Werror -O0 -c "$folder/cptx.c" -o "$dir/cptx.o"
	try "a program in C11" $cc -std=c11 -Wall -Wextra -Werror -I"$folder" "$dir/embed.c" "$dir/cptx.o" -o "$dir/embed" -lm -ldl -pthread
	run "$dir/embed"
	if [ -n "$cxx" ]; then
		try "a program in C++17" $cxx -std=c++17 -Wall -Wextra -Werror -I"$folder" "$dir/builder.cc" "$dir/cptx.o" -o "$dir/builder" -lm -ldl -pthread
		run "$dir/builder"
	else
		skip "there is no C++ compiler"
	fi
}
finish
