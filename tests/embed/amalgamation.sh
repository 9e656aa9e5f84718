#!/bin/sh
# SPDX-License-Identifier: MIT
# amalgamation.sh SOURCE FOLDER CC [C++]: the two files of the amalgamation as C11 and as C++17, by these compilers and (not linked) by
# those of the other of gcc and clang; programs of each language, which must print the same (of C++17's objects, and the other C++ compiler: CPTX_WHOLE).
# The last line is "amalgamation: N passed, N failed, N skipped".
set -u
source=$1 folder=$2 cc=$3 cxx=${4:-}
suite=amalgamation
. "$source/tests/embed/common.sh"
sed '/^#include <cptx\/device/d; s|#include <cptx/cptx.h>|#include "cptx.h"|' "$source/examples/embed/embed.c" >"$dir/embed.c"
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
case $($cc --version) in
*clang*) other=gcc otherxx=g++ ;;
*) other=clang otherxx=clang++ ;;
esac
# clang makes objects of it where it is there, in half of the time; each of the others reads it
for program in $cc $other; do # the last word is the compiler, in front of it may be ccache
	case $program in *clang*) have "$program" && objects=$program ;; esac
done
objects=${objects:-$cc} reader=$other objectsxx=$cxx readerxx=$otherxx
if [ "$objects" = "$other" ]; then reader=$cc; fi
if [ -n "$cxx" ] && [ "$objects" = "$other" ] && have $otherxx; then objectsxx=$otherxx readerxx=$cxx; fi
for file in cptx.h cptx.c; do
	if grep -q '^ \* MIT License' "$folder/$file" && [ "$(grep -c 'SPDX-License-Identifier: MIT' "$folder/$file")" -eq 1 ]; then
		ok
	else
		bad "$file has no licence, or more than one SPDX line"
	fi
done
# gcc takes 14 s of its 16 to look at the indentation of so long a file
warnings='-Wall -Wextra -Werror -Wno-misleading-indentation' c="-std=c11 $warnings" cpp="-x c++ -std=c++17 $warnings" libs='-x none -lm -ldl -pthread'
# shellcheck disable=SC2086 # words
cxx_objects() { # they take as long to compile as all the rest
	try "cptx.c as C++17" $objectsxx $cpp -O0 -c "$folder/cptx.c" -o "$dir/cptx.cc.o"
	try "a program in C++17" $cxx $cpp -I"$folder" "$dir/builder.cc" -x none "$dir/cptx.cc.o" -o "$dir/builder" $libs
	run "$dir/builder"
	try "what one_file.c prints, in C++17" $cxx $cpp -I"$folder" "$source/tests/embed/one_file.c" -x none "$dir/cptx.cc.o" -o "$dir/one_cc" $libs
	if "$dir/one_c" >"$dir/c.txt" && "$dir/one_cc" >"$dir/cc.txt" && grep -q '^\.target sm_100a' "$dir/c.txt" && cmp "$dir/c.txt" "$dir/cc.txt"; then
		ok
	else
		bad "cptx.c prints something else in C++17, or nothing"
	fi
}
# shellcheck disable=SC2086 # words
{
	try "cptx.c as C11" $objects $c -O0 -c "$folder/cptx.c" -o "$dir/cptx.o"
	try "a program in C11" $cc $c -I"$folder" "$dir/embed.c" "$dir/cptx.o" -o "$dir/embed" $libs
	run "$dir/embed"
	try "what one_file.c prints, in C11" $cc $c -I"$folder" "$source/tests/embed/one_file.c" "$dir/cptx.o" -o "$dir/one_c" $libs
	if [ -n "$cxx" ]; then
		try "a program in C++17 with cptx.c in C11" $cxx $cpp -I"$folder" "$dir/builder.cc" -x none "$dir/cptx.o" -o "$dir/mixed" $libs
		run "$dir/mixed"
		if [ -n "${CPTX_WHOLE:-}" ]; then cxx_objects; else try "cptx.c as C++17 by $objectsxx" $objectsxx $cpp -fsyntax-only "$folder/cptx.c"; fi
		for stub in "$source"/src/*/*absent.c; do
			try "$stub as C++17" $cxx $cpp -fsyntax-only -I"$source/include" -I"$source/src" -I"$folder/../../include" "$stub"
		done
	else
		skip "there is no C++ compiler"
	fi
	if have "${reader##* }"; then try "cptx.c as C11 by $reader" $reader $c -fsyntax-only "$folder/cptx.c"; else skip "there is no $reader"; fi
	if [ -z "${CPTX_WHOLE:-}" ]; then :; elif have "${readerxx##* }"; then try "cptx.c as C++17 by $readerxx" $readerxx $cpp -fsyntax-only "$folder/cptx.c"; else skip "there is no $readerxx"; fi
}
finish
