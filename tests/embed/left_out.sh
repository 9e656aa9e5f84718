#!/bin/sh
# SPDX-License-Identifier: MIT
# left_out.sh SOURCE BUILD CC: links the objects of a whole build without each part that can be left out, and its stub in place:
# nothing is missing, the same names are exported, and calls of the part say so.  Prints what each part takes of the stripped
# library: the table of docs/embed.md.  The last line is "left_out: N passed, N failed, N skipped".
set -u
source=$1 build=$2 cc=$3
suite=left_out
. "$source/tests/embed/common.sh"
objects=
for folder in "$build"/libcptx.so.*.p "$build"/libcptx.a.p; do
	[ -d "$folder" ] && objects="$folder $build/libcptx_cold.a.p" && break
done
[ -n "$objects" ] || { skip "there is no build"; finish; }
include="-I$source/include -I$source/src -I$source/third_party -I$build/include -I$build"

# link NAME PATTERN STUB...: a library without the objects that match the pattern (of grep -E)
link() {
	name=$1 pattern=$2
	shift 2
	stubs=
	for stub; do
		# shellcheck disable=SC2086 # words
		try "$stub" $cc -std=c11 -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Werror $include -c "$source/$stub" -o "$dir/$(echo "$stub" | tr / _).o"
		stubs="$stubs $dir/$(echo "$stub" | tr / _).o"
	done
	# shellcheck disable=SC2086 # words
	find $objects -name '*.o' | grep -vE "$pattern" >"$dir/objects"
	# shellcheck disable=SC2086 # words
	try "the library without $name" $cc -shared -s -Wl,-z,defs -Wl,--version-script="$build/cptx.map" @"$dir/objects" $stubs \
		-o "$dir/$name.so" -lm -ldl -pthread
	nm -D --defined-only "$dir/$name.so" | awk '{ print $NF }' >"$dir/$name.names"
	# shellcheck disable=SC2086 # words
	try "a program without $name" $cc -std=c11 $include "$source/tests/embed/test_absent.c" "$dir/$name.so" -Wl,-rpath,"$dir" -o "$dir/$name"
	lacking=$name
	[ "$name" = whole ] && lacking=nothing
	try "what it says without $name" "$dir/$name" "$lacking"
	if cmp -s "$dir/whole.names" "$dir/$name.names"; then ok; else bad "without $name it exports other names: $(diff "$dir/whole.names" "$dir/$name.names" | head -n 5)"; fi
	size=$(wc -c <"$dir/$name.so")
	[ "$name" = whole ] && whole=$size
	echo "| $name | $((size / 1024)) KiB | $(((whole - size) / 1024)) KiB |"
}
parser='/src_parse_'
emulator='/src_emu_|/src_runtime_emu[_.]'
kernels='/src_gemm_([^s]|sm)|/src_bundle_gemm' # all but sizes.c
to_c='/src_to_c_'
link whole '^$'
link to_c "$to_c" src/to_c/absent.c
link kernels "$kernels" src/gemm/absent.c src/bundle/absent.c
link emulator "$emulator" src/runtime/emu_absent.c
link parser "$parser|$emulator|$kernels" src/parse/absent.c src/runtime/emu_absent.c src/gemm/absent.c src/bundle/absent.c
link all "$parser|$emulator|$kernels|$to_c" src/parse/absent.c src/runtime/emu_absent.c src/gemm/absent.c src/bundle/absent.c src/to_c/absent.c
finish
