#!/bin/sh
# SPDX-License-Identifier: MIT
# Both fuzzers, one after the other: run.sh [JOBS [SECONDS [KERNELS [MODULES [SEED]]]]], by default on all processors, without a
# bound in time (0), with 40,000 kernels and 100,000 modules.  With SECONDS it ends by then, each fuzzer having had half of what
# was left, and says how much was done.  Failures are named with their seeds; the last lines have the totals; the exit status is 0
# if nothing failed and all was done.  In the folder that pack.sh made.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
jobs=${1:-$(nproc)} seconds=${2:-0} kernels=${3:-40000} modules=${4:-100000} seed=${5:-1}
failed=0 log=${TMPDIR:-/tmp}/fuzz.$$.log
CPTX_FUZZ_CORPUS=$here/corpus
export CPTX_FUZZ_CORPUS
trap 'rm -f "$log"' EXIT
begin=$(date +%s)
# The sanitizer says of each allocation that fails that it failed, which is no fault: kernels ask for too much on purpose.
run() { # PARTS-OF-THE-TIME PROGRAM NOUN NUMBER
	limit="" bound=""
	if [ "$seconds" -gt 0 ]; then
		left=$(((seconds - $(date +%s) + begin - 15) / $1))
		[ "$left" -gt 0 ] || left=1
		limit="--seconds $left" bound="timeout -k 10 $((left + 2))" # of CPU time of a process, and of the clock
	fi
	# shellcheck disable=SC2086 # words
	{ $bound "$here/$2" --$3 "$4" --jobs "$jobs" --seed "$seed" $limit 2>&1; echo "status $?"; } |
		grep -v 'WARNING: AddressSanitizer failed to allocate' >"$log"
	grep -v '^status 0$' "$log"
	grep -qx 'status 0' "$log" || failed=$((failed + 1))
	seeds="$seeds$(sed -n "s/^$2: seed \([0-9]*\): .*/ $2:\1/p" "$log" | tr -d '\n')"
	done="$done$(sed -n "s/^\([0-9]*\) $3 from seed .*/ \1 $3/p" "$log")"
}
seeds="" done=""
run 2 fuzz_emu kernels "$kernels"
run 1 fuzz_modules modules "$modules"
echo "fuzz: seeds that failed:${seeds:- none}"
echo "fuzz:${done:- nothing} of $kernels kernels and $modules modules on $jobs processes in $(($(date +%s) - begin)) s: $failed of 2 runs failed"
[ "$failed" = 0 ]
