#!/bin/sh
# SPDX-License-Identifier: MIT
# All of the instruction table, and all small texts, judged by ptxas, on every core of this machine:
#
#     tests/table/whole.sh [-b FOLDER] [-o FOLDER] [-t SECONDS] [-n SHARDS]
#
# -b: the build folder (default: build), or one that holds table_mutate, table_accept and parse_verdicts side by side;
# -o: where the log of each process goes (default: a new folder in /tmp);  -t: what has not ended by then is ended and named;
# -n: processes that share the table (default: 64).  CPTX_PTXAS names another ptxas.
set -eu
build=build seconds=86400 shards=64 logs=
while getopts b:o:t:n: option; do
	case $option in
	b) build=$OPTARG ;;
	o) logs=$OPTARG ;;
	t) seconds=$OPTARG ;;
	n) shards=$OPTARG ;;
	*) exit 2 ;;
	esac
done
logs=${logs:-$(mktemp -d /tmp/cptx_whole_XXXXXX)}
mkdir -p "$logs"
begin=$(date +%s)
end=$((begin + seconds))

program() { # its path
	for p in "$build/$1" "$build/tests/table/$1" "$build/tests/parse/$1"; do
		if [ -x "$p" ]; then
			echo "$p"
			return
		fi
	done
	echo "whole.sh: no $1 in $build" >&2
	exit 2
}
mutate=$(program table_mutate) accept=$(program table_accept) verdicts=$(program parse_verdicts)

# NAME SHARD PROGRAM, one process a line
list() {
	echo "verdicts 0/1 $verdicts"
	for name in mutate accept; do
		program=$mutate
		[ $name = mutate ] || program=$accept
		i=0
		while [ $i -lt "$shards" ]; do
			echo "$name $i/$shards $program"
			i=$((i + 1))
		done
	done
}

export CPTX_WHOLE=1 CPTX_TABLE_WHOLE=1 CPTX_TABLE_ALL=1 logs end
# shellcheck disable=SC2016 # the variables are those of the inner shell
list | xargs -P "$(nproc)" -L 1 sh -c '
	left=$((end - $(date +%s)))
	[ $left -gt 0 ] || exit 0
	log=$logs/$0-${1%/*}
	CPTX_TABLE_SHARD=$1 timeout $left "$2" >"$log" 2>&1 || echo "status $?" >>"$log"
' || true

failed=0 cut=0
for name in verdicts mutate accept; do
	n=1
	[ $name = verdicts ] || n=$shards
	i=0 ended=0 bad=0
	while [ $i -lt "$n" ]; do
		log=$logs/$name-$i
		if ! [ -f "$log" ] || ! grep -q '^[a-z ]*: [0-9]* passed' "$log"; then
			echo "$name $i/$n did not come to its end: $(tail -n 1 "$log" 2>/dev/null || echo 'not begun')"
			cut=$((cut + 1))
		else
			ended=$((ended + 1))
			if ! grep -q '^[a-z ]*: [0-9]* passed, 0 failed' "$log"; then
				bad=$((bad + 1))
				echo "== $name $i/$n"
				grep -v ' excused' "$log"
			fi
		fi
		i=$((i + 1))
	done
	echo "$name: $ended of $n processes ended, $bad of them with failures"
	failed=$((failed + bad))
done

# The figures of all processes, added up; the lines have the same words in each.  A row of left_out.def that excuses nothing
# can be told only where the whole table was tried, with all its versions.
all=1
[ $cut -eq 0 ] && [ -z "${CPTX_TABLE_ONLY:-}" ] || all=0
cat "$logs"/*-* | awk -v all=$all -v total="$logs/total" '
	/ mutations compared: / { m += $1; same += $4; both += substr($7, 2); strict += $11; tight += $18; lax += $21 }
	/ questions to ptxas in / { q += $1; runs += $6; wrong += $8 }
	/ forms, .* spellings$/ { spellings += $3 }
	/ questions about PTX .* need ptxas / { newer += $3 }
	/ excused/ { n = $1; sub(/^ *[0-9]+ /, ""); excused[$0] += n }
	END {
		for (row in excused)
			printf "%8d %s\n", excused[row], row | "sort -rn"
		close("sort -rn")
		printf "mutate: %d mutations, %d same verdict (%d accepted by both), %d stricter on purpose, %d too strict, %d too lax\n", m, same,
			both, strict, tight, lax
		printf "accept: %d spellings, %d questions in %d runs of ptxas, %d wrong answers\n", spellings, q, runs, wrong
		for (row in excused)
			if (!excused[row] && row ~ /left_out.def/)
				unused++
		if (newer)
			printf "not asked, because this ptxas is too old: %d questions\n", newer
		if (all && !newer)
			printf "rows of left_out.def that excuse nothing: %d\n", unused
		printf "%d mutations and %d questions, %d wrong answers\n", m, q, tight + lax + wrong >total
		exit all && !newer && unused
	}' || failed=$((failed + 1))
echo "$(($(date +%s) - begin)) s on $(nproc) cores; logs in $logs"
echo "whole: $failed failed, $cut not ended: $(cat "$logs/total")"
[ $((failed + cut)) -eq 0 ]
