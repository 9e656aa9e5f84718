#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/house/symbols.sh LIBRARY: it exports what the public headers declare and nothing else, under the version of its
# soname, holds no variable data, and has no name of libc's or libm's to itself: a program that links it statically would call that.
set -eu
cd "$(dirname "$0")/../.."
case $1 in
*cubin*) headers=include/cptx/cubin.h ;; # a library of its own
*) headers=$(find include/cptx -name '*.h' ! -name cubin.h) ;;
esac
# shellcheck disable=SC2086 # words
declared=$(sed 's|/\*.*\*/||; /^#define CPTX_API/d' $headers | tr '\n' ' ' | grep -oE 'CPTX_API [^;(]*[^A-Za-z0-9_]cptx_[a-z0-9_]+\(' |
	sed 's/($//; s/.*[^a-z0-9_]//' | LC_ALL=C sort)
exported=$(nm -D --defined-only "$1" | awk '$(NF - 1) != "A" { print $NF }' | LC_ALL=C sort)
list=$(mktemp)
trap 'rm -f "$list"' EXIT
printf '%s\n' "$exported" | sed 's/@.*//' | LC_ALL=C sort >"$list"
offences=$(
	printf '%s\n' "$declared" | LC_ALL=C comm -13 - "$list" | sed 's/$/, which no public header declares/; s/^/exports /'
	printf '%s\n' "$declared" | LC_ALL=C comm -23 - "$list" | sed 's/^/does not export /'
	printf '%s\n' "$exported" | awk -v version="$(objdump -p "$1" | sed -n 's/^ *SONAME *libcptx[a-z_]*\.so\.//p')" \
		'$1 !~ "@@CPTX_" version "$" { print "exports " $1 ", whose version is not CPTX_" version }'
	find "$(dirname "$1")" -path '*/libcptx*.p/*.o' -exec nm -g --defined-only {} + | awk 'NF == 3 { print $3 }' | LC_ALL=C sort -u >"$list"
	[ -s "$list" ] || echo "has no objects beside it, whose names are compared with those of the C library"
	ldd "$1" | awk '$3 ~ /^\// && $3 !~ /libcptx/ { print $3 }' | xargs nm -D --defined-only | awk 'NF == 3 { sub("@.*", "", $3); print $3 }' |
		LC_ALL=C sort -u | LC_ALL=C comm -12 - "$list" | sed 's/^/has a function /; s/$/, as the C library has/'
	# what the compiler (libgcc: which processor is this) and the linker put in by themselves is not ours
	objdump -t "$1" | sed 's/ \.hidden / /' | awk 'NF > 3 && $(NF - 2) ~ /^\.(data|bss|tdata|tbss)$/ &&
		$NF !~ /^(\.data|\.bss|__cpu_model|__cpu_features2|completed\.[0-9]+|__dso_handle|__TMC_END__|__bss_start|_edata|_end)$/ {
			print "has the variable " $NF " in " $(NF - 2)
		}'
)
[ -n "$declared" ] && [ -z "$offences" ] && exit 0
printf '%s\n' "${offences:-finds no declarations}" | sed "s/^/FAIL the library /"
exit 1
