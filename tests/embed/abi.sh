#!/bin/sh
# SPDX-License-Identifier: MIT
# abi.sh SOURCE BUILD VERSION CC: what is compiled against the headers goes on to work with this library: beside what is kept
# in abi-VERSION.xml (functions, structs, enums, as abidw of libabigail sees them) and abi-VERSION.txt (the structs of builder
# calls) nothing is gone, moved or renumbered.  The headers are looked at, so this takes no debug information of the library;
# that it exports what they declare is for tests/house/symbols.sh.  CPTX_BLESS=1 keeps what is there now.
# The last line is "abi: N passed, N failed, N skipped".
set -u
source=$1 build=$2 version=$3 cc=$4
suite=abi
. "$source/tests/embed/common.sh"
kept=$source/tests/embed/abi-$version

# ---- builder calls: name, values, and modifiers with the room that there is for them ----
awk '
/^struct cptx_[A-Za-z0-9_]+_ \{/ { name = substr($2, 1, length($2) - 1); vals = mods = room = "" }
/^\t\t\tcptx_val / { sub(/^\t\t\tcptx_val /, ""); gsub(/[,;]/, ""); vals = $0 }
/^\t\t\tuint16_t / { sub(/^\t\t\tuint16_t /, ""); gsub(/[,;]/, ""); mods = $0 }
/^\t\tuint16_t mod_/ { room = $2 }
/^};/ && name != "" { print name ": " vals " | " room " " mods; name = "" }' "$build/include/cptx/insn.h" >"$dir/calls.txt"
[ "$(wc -l <"$dir/calls.txt")" -gt 200 ] || bad "fewer than 200 builder calls are found in insn.h"

# ---- the rest: a library of empty functions, made of the declarations, and one for each enum, as some are kept in bytes ----
stub() { # without insn.h and insn_fast.h, whose structs are above
	for header in "$source"/include/cptx/*.h; do
		case $header in */cplusplus.h) ;; *) echo "#include <cptx/${header##*/}>" ;; esac
	done >"$dir/all.c"
	# shellcheck disable=SC2086 # words
	$cc -std=c11 -DCPTX_INSN_H -DCPTX_INSN_FAST_H -I"$source/include" -I"$build/include" -I"$source/third_party" -E -P "$dir/all.c" | tr '\n' ' ' |
		sed 's/ char z_;//g; s/__builtin_offsetof *([a-z0-9_]*, *z_)/0/g; s/__attribute__((visibility("default")))/\n@/g' |
		sed 's/__attribute__((format([^)]*))) *;/;/; s/^@\([^;]*\);/__attribute__((visibility("default"))) \1 { __builtin_trap(); }\n/' >"$dir/abi.c"
	# shellcheck disable=SC2094 # read to its end by sort before anything is written
	grep -oE 'enum cptx_[a-z0-9_]+ \{' "$dir/abi.c" | sort -u |
		sed 's/enum \(.*\) {/__attribute__((visibility("default"))) void enum_\1(enum \1 e) { (void)e; }/' >>"$dir/abi.c"
	# shellcheck disable=SC2086 # words
	$cc -std=gnu11 -w -g -O0 -fvisibility=hidden -shared -fPIC "$dir/abi.c" -o "$dir/abi.so" || return
	# what is always the same is left out, so that the kept file is smaller
	abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-architecture --no-parameter-names --type-id-style hash "$dir/abi.so" |
		sed "s/^ *//; s/ visibility='default'//; s/ binding='global'//; s/ access='public'//; s,path='[^']*/abi.c',path='abi.c'," >"$dir/abi.xml"
	grep -q "function-decl name='cptx_emit'" "$dir/abi.xml"
}
# Structs that may get more at their end (<cptx/cptx.h>, "Options" and "Results"), of which z_, the end of options, is no part.
growing() {
	sed -n '/^\tuint32_t size; /,/^}/{/^\tchar z_;$/,/^}/s/^} \(cptx_[a-z_]*\);$/\1/p}' "$source"/include/cptx/*.h
	grep -ohE '(const )?cptx_[a-z_0-9]+ \*(info|out|field|stats)[,)]' "$source"/include/cptx/*.h | grep -v const | sed 's/ .*//'
	grep -hE '^CPTX_API const cptx_[a-z_]+ \*' "$source"/include/cptx/*.h | grep -v 'size_t \*n' | sed 's/^CPTX_API const \(cptx_[a-z_]*\).*/\1/'
}
for type in $(growing | sort -u); do
	printf '[suppress_type]\n  type_kind = struct\n  name = %s\n  has_size_change = yes\n  has_data_member_inserted_at = end\n\n' "$type"
done >"$dir/growing.ini"
made=
if ! have abidw || ! have abidiff; then
	skip "abidw and abidiff are not installed (on Debian: abigail-tools)"
elif [ "$(uname -sm)" != "Linux x86_64" ]; then
	skip "what is kept was made for Linux on x86-64"
elif stub >"$dir/log" 2>&1; then
	made=yes
else
	bad "abidw gives no description"
fi

if [ "${CPTX_BLESS:-}" = 1 ]; then
	cp "$dir/calls.txt" "$kept.txt"
	[ -z "$made" ] || cp "$dir/abi.xml" "$kept.xml"
fi
advice="Mend it, or, before $version is released or after a new minor version in meson.build and cptx.h, CPTX_BLESS=1 keeps what is there now"
for file in "$kept.txt" "$kept.xml"; do
	[ -s "$file" ] || bad "there is no $file: CPTX_BLESS=1 writes it"
done

# New calls may come, and modifiers in what room is left.
awk 'NR == FNR { now[$1] = $0; next } !($1 in now) || index(now[$1] " ", $0 " ") != 1 { print "was " $0; print "now " now[$1] }' \
	"$dir/calls.txt" "$kept.txt" >"$dir/log"
if [ ! -s "$dir/log" ]; then ok; else bad "builder calls are others than in ${kept##*/}.txt.  $advice"; fi
if [ -n "$made" ]; then
	if abidiff --suppressions "$dir/growing.ini" --leaf-changes-only --no-added-syms "$kept.xml" "$dir/abi.xml" >"$dir/log" 2>&1; then
		ok
	else
		sed 's/^/    /' "$dir/log" | head -n 60
		: >"$dir/log"
		bad "the ABI is another than in ${kept##*/}.xml.  $advice"
	fi
fi
finish
