#!/bin/sh
# SPDX-License-Identifier: MIT
# What the scripts beside share: sourced, with $suite set.
: "${suite:?}"
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ok() { passed=$((passed + 1)); }
bad() {
	failed=$((failed + 1))
	echo "FAIL: $*"
	[ ! -f "$dir/log" ] || tail -n 20 "$dir/log" | sed 's/^/    /'
}
skip() { skipped=$((skipped + 1)); echo "SKIP $suite: $*"; }
have() { command -v "$1" >/dev/null 2>&1; }
# try WHAT COMMAND...: it must end well, and what it says goes to a log that is shown if not.
try() {
	what=$1
	shift
	if "$@" >"$dir/log" 2>&1; then
		ok
	else
		bad "$what: $*"
		return 1
	fi
}
# run PROGRAM: examples/embed, on the emulator
run() { try "$1 on the emulator" env CPTX_DEVICE=emu:sm_90a "$1" && if grep -q ': 0 of 1000 squares are wrong' "$dir/log"; then ok; else bad "$1 printed something else"; fi; }
finish() {
	echo "$suite: $passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}
