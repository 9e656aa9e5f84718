#!/bin/sh
# SPDX-License-Identifier: MIT
# doxygen.sh SOURCE DOXYFILE: every public function, type, enumerant and field has a word about it, and doxygen has no other
# complaint of the headers.  The last line is "doxygen: N passed, N failed, N skipped".
set -u
source=$1 doxyfile=$2
passed=0 failed=0 skipped=0
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT

# Enumerants, which doxygen looks at from version 1.9.5 on only.
awk '
/^(typedef )?enum[ a-z_0-9]* \{/ { inside = 1 }
inside && /^(\t|.*\{ )[A-Z]/ && !/\/\*/ { print FILENAME ":" FNR ": no comment: " $0 }
/\}/ { inside = 0 }' "$source"/include/cptx/*.h >"$dir/log"
if [ ! -s "$dir/log" ]; then
	passed=1
else
	failed=1
	cat "$dir/log"
fi
# The reference's first page names each header.
for header in "$source"/include/cptx/*.h "$source"/include/cptx/*.hpp; do
	name=${header##*/}
	[ "$name" = cplusplus.h ] || grep -Eq "(@ref |\`)$name" "$source/docs/doxygen/main.md" || echo "docs/doxygen/main.md does not name $name"
done >"$dir/log"
if [ ! -s "$dir/log" ]; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	cat "$dir/log"
fi
if command -v doxygen >/dev/null 2>&1; then
	if { cat "$doxyfile"; echo "OUTPUT_DIRECTORY = $dir"; } | doxygen - >"$dir/log" 2>&1 && [ -s "$dir/html/index.html" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		sed "s|$source/||" "$dir/log" | head -n 40
	fi
else
	skipped=1
	echo "SKIP doxygen: it is not installed"
fi
echo "doxygen: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
