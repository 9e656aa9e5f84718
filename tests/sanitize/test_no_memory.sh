#!/bin/sh
# SPDX-License-Identifier: MIT
# Allocations fail, one at a time, in programs that libcptx_sanitize serves: test_no_memory.sh PROGRAM GRAPHS FAIL_MALLOC.SO.
# Calls give errors then, and no signal ends the program.  CPTX_WHOLE=1: really each, else each eleventh.
set -u
program=$(realpath "$1") of_graphs=$(realpath "$2") shim=$(realpath "$3") passed=0 failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
step=${CPTX_WHOLE:+1}
for what in work graphs arrays parts handles warns clones updates slices; do
	case $what in clones | updates | slices) program=$of_graphs ;; esac
	at=1
	while :; do
		rm -f "$dir/seen"
		LD_PRELOAD=$shim CPTX_TEST_FAIL=$at:$dir/seen "$program" $what >"$dir/out" 2>&1
		got=$?
		[ -e "$dir/seen" ] || break # there are fewer
		if [ $got -le 1 ]; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "FAIL: $what, allocation $at: status $got"
			tail -n 3 "$dir/out"
		fi
		at=$((at + ${step:-11}))
	done
	if [ $at = 1 ]; then
		failed=$((failed + 1))
		echo "FAIL: $what: no allocation failed"
	fi
done
echo "sanitize no_memory: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
