#!/bin/sh
# SPDX-License-Identifier: MIT
# options.sh SOURCE BUILD CC: options.c, compiled against headers that are as the library's, newer (each struct of options has a
# field more) and older (some lack their last field), works with this library.  src/base/options.def has the sizes of version 0.1.
# The last line is "options: N passed, N failed, N skipped".
set -u
source=$1 build=$2 cc=$3
suite=options
. "$source/tests/embed/common.sh"

# against NAME FLAG SED-COMMAND...: the program with the headers that sed makes of ours
against() {
	name=$1 flag=$2
	shift 2
	mkdir -p "$dir/$name"
	cp -r "$source/include/cptx" "$dir/$name/"
	for command; do sed -i "$command" "$dir/$name"/cptx/*.h; done
	# shellcheck disable=SC2086 # words
	try "compiling against $name headers" $cc -std=c11 -Wall -Wextra -Werror $flag -I"$dir/$name" -I"$build/include" \
		"$source/tests/embed/options.c" -L"$build" -lcptx -Wl,-rpath,"$build" -o "$dir/$name/options" &&
		try "running with $name headers" "$dir/$name/options"
}

# changed NAME N: so many lines of the headers differ
changed() {
	n=$(diff -r "$source/include/cptx" "$dir/$1/cptx" | grep -c '^[<>]')
	if [ "$n" -ge "$2" ]; then ok; else bad "the $1 headers differ in $n lines"; fi
}

against same "-DSAME"
against newer "-DMORE" 's/^\tchar z_;$/\tuint32_t later;\n\tchar z_;/'
changed newer 25
against older "-DLESS" '/^\tuint32_t max_cluster_rank;/d' '/^\tcptx_cache \*cache;/d' '/^\tfloat alpha, beta; /d' \
	'/^\tconst char \*name; .*of the kernel; NULL/d'
changed older 5

# each struct of options is in the list, with the size that this version has
for type in $(sed -n 's/^} \(cptx_[a-z_]*_opt\);$/\1/p' "$source"/include/cptx/*.h) cptx_gemm_problem; do
	if grep -q "^OPTIONS($type, [0-9]*)$" "$source/src/base/options.def"; then ok; else bad "src/base/options.def has no $type"; fi
	if grep -rqE "OPTIONS_(READ|READ_IN)\($type," "$source/src"; then ok; else bad "nobody reads the size of a $type"; fi
done
finish
