#!/bin/sh
# SPDX-License-Identifier: MIT
# options.sh SOURCE BUILD CC: options.c, compiled against headers that are as the library's, newer (each struct of options, and
# of results, has a field more) and older (some lack their last field), works with this library.  src/base/options.def has the
# sizes of version 0.1.
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
results=$(grep -ohE '(const )?cptx_[a-z_0-9]+ \*(info|out|field|stats|plan|choices)[,)]' "$source"/include/cptx/*.h | grep -v const | sed 's/ .*//' | sort -u)
more='/^\tuint32_t size; /,/^\tchar z_;$/s/^\tchar z_;$/\tuint32_t later;\n\tchar z_;/'
for type in $results; do more="$more; s/^} $type;\$/\tuint64_t later;\n&/"; done
against newer "-DMORE" "$more"
changed newer 50
against older "-DLESS" '/^\tuint32_t max_cluster_rank;/d' '/^\tcptx_cache \*cache;/d' '/^\tconst void \*args;  /d' \
	'/^\tuint32_t nparams; /d' '/^\tuint32_t ctas_per_sm; /d' '/^\tuint64_t async_bytes; /d' \
	'/^\tuint32_t cta_smem; /d'
changed older 8

# Each struct of options, which ends in z_, is in the list, with the size that this version has, and begins with it.  Not yet
# those of visitors.  Structs of layout.h are values, which stay as they are.
read_sizes=$(grep -rohE 'OPTIONS_(READ|READ_IN)\(cptx_[a-z_]*,' "$source/src" | sort -u)
types=$(sed -n '/^\tchar z_;$/,/^}/s/^} \(cptx_[a-z_]*\);$/\1/p' "$source"/include/cptx/*.h)
for type in $types; do
	case $type in cptx_frag | cptx_smem_desc | cptx_tile | cptx_lines | cptx_insn_desc) continue ;; esac
	if grep -q "^OPTIONS($type, [0-9]*)$" "$source/src/base/options.def"; then ok; else bad "src/base/options.def has no $type"; fi
	if printf '%s' "$read_sizes" | grep -qF "($type,"; then ok; else bad "nobody reads the size of a $type"; fi
done
finish
