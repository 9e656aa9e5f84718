#!/bin/sh
# SPDX-License-Identifier: MIT
# Four processes divide what `cptx tune` measures on the emulator; three are killed at random, and all are started again, until
# nothing is left: the records are those of one process.  The tasks of a Slurm array divide it, too, each of two processes.
# ranks.sh PATH-OF-CPTX.  CPTX_WHOLE=1: started by mpirun, more sizes.
set -u
cptx=$(realpath "$1")
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CPTX_CACHE_DIR="$dir/cache" CPTX_TUNE_PATH=/nonexistent CPTX_CUDA_LIBRARY=/nonexistent/libcuda.so.1
unset CPTX_TUNE CPTX_TUNE_DIR CPTX_SHARE PMI_RANK SLURM_PROCID SLURM_ARRAY_TASK_ID OMPI_COMM_WORLD_RANK
sizes='64x64x64 64x128x64' candidates=6 kills=3
if [ "${CPTX_WHOLE:-}" ]; then sizes="$sizes 128x128x128 192x128x64 256x64x128 64x256x192 128x192x64" candidates=24; fi

check() {
	what=$1
	shift
	if "$@"; then passed=$((passed + 1)); else
		failed=$((failed + 1))
		echo "FAIL: $what"
	fi
}
# What was measured, without when: sorted lines.
records() { "$cptx" tune --list --folder "$1" | sed 's/^[0-9-]* [0-9:]*  //' | sort; }
# shellcheck disable=SC2086 # words
measure() { exec "$cptx" tune gemm $sizes --device emu:sm_90a --candidates $candidates --workers 1 --folder "$1"; }

begun=$(date +%s%N)
(measure "$dir/one") >"$dir/out" 2>&1
check "one process measures all" [ $? -eq 0 ]
most=$((($(date +%s%N) - begun) / 1000000 / 24 + 9)) # ms in front of a kill: nine of them fall into what four ranks have to do
records "$dir/one" >"$dir/want"
count=$(wc -l <"$dir/want")
check "there are records" [ "$count" -ge 10 ]

by_mpi=
if [ "${CPTX_WHOLE:-}" ]; then
	if command -v mpirun >/dev/null; then by_mpi=1; else
		skipped=$((skipped + 1))
		echo "SKIP ranks: mpirun"
	fi
fi
# Starts four ranks; their process ids are in $dir/pids.
start() {
	: >"$dir/pids"
	if [ "$by_mpi" ]; then
		# shellcheck disable=SC2016,SC2086 # of the shell that a rank is
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 4 sh -c 'echo $$ >>"$0/pids"; exec "$@"' \
			"$dir" "$cptx" tune gemm $sizes --device emu:sm_90a --candidates $candidates --workers 1 --folder "$dir/four" \
			>"$dir/out" 2>&1 &
		return
	fi
	for rank in 0 1 2 3; do
		(export OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=4 && measure "$dir/four") >"$dir/out.$rank" 2>&1 &
		echo $! >>"$dir/pids"
	done
}
killed=0 rounds=0
while [ $killed -lt 9 ] && [ "$((rounds += 1))" -le 6 ]; do # what was killed is started again
	start
	while [ "$(wc -l <"$dir/pids")" -lt 4 ]; do sleep 0.02; done
	for victim in $(shuf -n $kills "$dir/pids"); do
		sleep "$(shuf -i "1-$most" -n 1 | awk '{ printf "%.3f", $1 / 1000 }')"
		if kill -KILL "$victim" 2>/dev/null; then killed=$((killed + 1)); fi
	done
	wait
done
records "$dir/four" >"$dir/part"
check "what killed processes left is among the records of one" [ -z "$(comm -13 "$dir/want" "$dir/part")" ]
start
wait
records "$dir/four" >"$dir/got"
check "the records of four are those of one, none lost or doubled" cmp "$dir/want" "$dir/got"
[ -s "$dir/got" ] || cat "$dir"/out*
start
wait
records "$dir/four" >"$dir/got"
check "nothing is measured again" cmp "$dir/want" "$dir/got"

# The tasks 5, 7 and 9 of an array, as Slurm says who they are, one of which starts after the others have ended.
for id in 5 7 9; do
	for process in 0 1; do
		(export SLURM_ARRAY_TASK_ID=$id SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=5 SLURM_ARRAY_TASK_STEP=2 \
			SLURM_PROCID=$process SLURM_NTASKS=2 && measure "$dir/array") >"$dir/out.$id.$process" 2>&1 &
	done
	[ $id -eq 5 ] || wait
	records "$dir/array" >"$dir/part.$id"
done
check "two of an array's three tasks leave records to the third" [ "$(wc -l <"$dir/part.7")" -lt "$count" ]
check "the records of a Slurm array are those of one process" cmp "$dir/want" "$dir/part.9"

echo "$count records, $killed processes killed, $(wc -l <"$dir/part") records when the last four were started"
echo "tune_ranks: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
