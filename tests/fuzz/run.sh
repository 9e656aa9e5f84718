#!/bin/sh
# SPDX-License-Identifier: MIT
# Both fuzzers, one after the other: run.sh [JOBS [KERNELS [MODULES [SEED]]]], by default on 16 processes with 40,000 kernels
# and 100,000 modules.  The last line has the totals; the exit status is 0 if nothing failed.  In the folder that pack.sh made.
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
jobs=${1:-16} kernels=${2:-40000} modules=${3:-100000} seed=${4:-1}
failed=0
CPTX_FUZZ_CORPUS=$here/corpus
export CPTX_FUZZ_CORPUS
begin=$(date +%s)
# The sanitizer says of each allocation that fails that it failed, which is no fault: kernels ask for too much on purpose.
for run in "fuzz_emu --kernels $kernels" "fuzz_modules --modules $modules"; do
	# shellcheck disable=SC2086 # words
	{ "$here"/$run --jobs "$jobs" --seed "$seed" 2>&1; echo "status $?"; } | grep -v 'WARNING: AddressSanitizer failed to allocate' >"$here/last.log"
	grep -v '^status ' "$here/last.log"
	grep -qx 'status 0' "$here/last.log" || failed=$((failed + 1))
done
echo "fuzz: $kernels kernels and $modules modules on $jobs processes in $(($(date +%s) - begin)) s: $failed of 2 runs failed"
[ "$failed" = 0 ]
