#!/bin/sh
# SPDX-License-Identifier: MIT
# cptx sanitize --record and cptx replay: test_record.sh CPTX PROGRAM DRIVEN RECORDED GRAPHED, a program of the runtime and three of the driver API.
# The last line is "record: N passed, N failed, N skipped".
set -u
cptx=$(realpath "$1") program=$(realpath "$2") driven=$(realpath "$3") recorded=$(realpath "$4") graphed=$(realpath "$5") name=record here=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck source=tests/cli/common.sh
. "$here/../cli/common.sh"
rec=$dir/app.rec

usage "give one file that cptx sanitize --record wrote" replay
usage "--launches 0: expected numbers from 1 on" replay --launches 0 "$rec"
usage "--launches 3..2: expected numbers from 1 on" replay --launches 3..2 "$rec"
usage "--type f8: expected f16, bf16, f32 or f64" replay --type f8 "$rec"
usage "--tolerance -1: expected a number from 0 on" replay --tolerance=-1 "$rec"
usage "--tolerance wants the --type" replay --tolerance 1e-3 "$rec"
usage "--on tpu: expected gpu or emulator" sanitize --record "$rec" --on tpu -- true
usage "--record-limit 0: expected a number of MiB" sanitize --record "$rec" --record-limit 0 -- true
usage "say what --record FILE keeps" sanitize --kernel x -- true
fails "there is no GPU" sanitize --record "$rec" --on gpu -- "$driven"
echo old >"$dir/old.rec" && ln -s old.rec "$dir/link.rec" && mkfifo "$dir/pipe"
fails "there is no GPU" sanitize --record "$dir/old.rec" --on gpu -- "$driven"
fails "nothing was recorded" sanitize --record "$dir/old.rec" -- "$program" shapes
for path in "$dir/link.rec" "$dir/pipe"; do
	fails "'$path' is no regular file" sanitize --record "$path" -- "$driven"
done
holds [ "$(cat "$dir/link.rec")" = old ] # what was there is there, until there is something new
holds [ -p "$dir/pipe" ]
status 127 sanitize --record "$dir/old.rec" -- "$dir/none"
holds [ "$(cat "$dir/old.rec")" = old ]
fails "'$dir/none/a.rec' cannot be written" sanitize --record "$dir/none/a.rec" -- "$driven"
fails "nothing was recorded: the program launched no kernel" sanitize --record "$rec" -- "$program" shapes
status 2 replay "$dir/none.rec"
complains "'$dir/none.rec' cannot be read: No such file"
status 2 replay /dev/zero
complains "it is no file"
status 2 replay "$program"
complains "the file is no recording of cptx"

# A program of the runtime: findings are those of the program, and memory is as it was.
status 0 sanitize --record "$rec" -- "$program" graphs
complains "4 of 4 launches are in $rec"
for to in json sarif; do
	fails "which is an input; name another file" replay --$to "$rec" "$rec"
done
status 0 sanitize --record "$dir/old.rec" -- "$program" graphs
complains "4 of 4 launches are in $dir/old.rec"
holds [ -z "$(find "$dir" -name 'old.rec.*')" ]
status 0 replay "$rec"
complains "recorded on the emulator, emulated sm_90a: $program graphs"
complains "launch 4, kernel add: as recorded"
complains "4 launches are as recorded, 0 differ"
status 1 sanitize --record "$rec" -- "$program" races
status 9 replay --error-exitcode 9 --json "$dir/found.json" --sarif "$dir/found.sarif" "$rec"
complains "race: it reads 4 bytes of shared memory"
complains "undefined: what is stored was never written" # which bytes were written is kept
complains "3 errors, 0 warnings"
holds grep -q '^{"code":"race","rank":"error","kernel":"race","instruction":"ld.shared.u32"' "$dir/found.json"
holds grep -q '"ruleId":"race","level":"error"' "$dir/found.sarif"
status 1 sanitize --record "$rec" -- "$program" ends
status 1 replay "$rec"
complains "launch 1, kernel add: as recorded, it did not come to its end: an illegal memory access"
status 0 sanitize --record "$rec" -- "$program" arrays
status 3 replay "$rec"
complains "it was not recorded: it reads textures or surfaces"
# Several devices, each with its variables.
status 0 sanitize --devices 2 --record "$rec" -- "$recorded" devices
complains "6 of 6 launches are in $rec"
status 0 replay "$rec"
complains "6 launches are as recorded"
complains "launch 4, kernel k: as recorded, 2 bytes were changed"

# A program of this library, too, gets the stand-in, whatever library the variable names.
status 0 sanitize --record "$rec" -- "$cptx" run --device cuda -g 1 -b 64 -a 'buf:u32[64]=iota' "$here/../../examples/turn.ptx"
complains "1 of 1 launches"

# Which launches: of those that are passed over, memory is taken as it was recorded.
status 0 sanitize --record "$rec" -- "$driven"
complains "5 of 5 launches"
status 0 replay --launches 2.. --kernel follow "$rec"
complains "2 launches are as recorded, 0 differ, 0 did not come to their end, 3 were passed over"
status 0 replay --schedules all "$rec"
complains "launch 5, kernel tile: as recorded"
status 0 sanitize --record "$rec" --launches 2..3 --kernel follow -- "$driven"
complains "2 of 5 launches"
status 0 replay "$rec"
complains "launch 3, kernel follow: as recorded"
status 0 sanitize --record "$rec" --record-limit 1 -- "$driven"
holds [ "$(wc -c <"$rec")" -lt 100000 ] # the 70,000 bytes of zeros cost nothing

status 2 replay --kernel nosuch "$rec"
complains "none of the 5 recorded launches is one that --kernel and --launches choose"
status 2 replay --launches 7..9 "$rec"
before=$(cksum <"$rec")
status 1 sanitize --record "$rec" --kernel nosuch -- "$driven"
complains "of the program's 5 launches none is one that --kernel and --launches choose"
holds [ "$(cksum <"$rec")" = "$before" ] # the earlier recording stays

# Programs whose recordings went wrong once.
status 0 sanitize --record "$rec" -- "$recorded" empty # launches before there is memory
complains "2 of 2 launches"
status 0 replay "$rec"
complains "2 launches are as recorded"
status 0 sanitize --record "$rec" -- "$recorded" forked
complains "2 of 2 launches are in $rec, "
complains "records in $rec."
complains "1 of 1 launches are in $rec."
status 0 replay "$rec"
complains "2 launches are as recorded"
status 0 replay "$rec".*
complains "1 launches are as recorded"
rm -f "$rec".*
status 0 sanitize -- "$recorded" beside
mkdir "$dir/elsewhere"
# shellcheck disable=SC2016 # the inner shell expands them
holds sh -c 'cd "$1" && "$2" sanitize --record here.rec -- "$3" moved elsewhere 2>/dev/null' sh "$dir" "$(realpath "$cptx")" "$recorded"
status 0 replay "$dir/here.rec"
status 0 sanitize --record "$rec" -- "$recorded" long
status 0 replay "$rec"
complains "launch 1, kernel kkkkk"
status 0 sanitize --record "$rec" -- "$recorded" unloaded
status 0 replay "$rec"
complains "4 launches are as recorded"
# What a tolerance takes for a number is no infinity.
status 0 sanitize --record "$rec" -- "$recorded" infinite
sed 's/0x7f800000/0x3f800000/' "$rec" >"$dir/finite.rec"
status 1 replay --type f32 --tolerance 1e-3 "$dir/finite.rec"
complains "1 bytes differ"
status 0 replay --type f32 --tolerance 1e-3 "$rec"

# Files that are not whole, or not what a program leaves.
head -c -32 "$rec" >"$dir/cut.rec" # END has 32 bytes
status 3 replay "$dir/cut.rec"
complains "the recording has no end"
cp "$dir/cut.rec" "$dir/kind.rec"
head -c 16 /dev/zero >>"$dir/kind.rec"
status 2 replay "$dir/kind.rec"
complains "its kind is 0, which this version does not know"
holds "$recorded" fills "$dir/cut.rec"
status 2 replay "$dir/cut.rec"
complains "its FILL records set 1024 GiB, and 256 are replayed"
holds "$recorded" turnover "$dir/turn.rec"
status 2 replay "$dir/turn.rec"
complains "the recording has no launch"
rm "$dir/turn.rec"

# Another program text than the one that ran: what it leaves differs, and is told.
sed 's/add\.u32 %r3, %r3, %r3/add.u32 %r3, %r3, %r1/' "$rec" >"$dir/other.rec"
status 0 sanitize --record "$rec" -- "$driven"
sed 's/add\.u32 %r3, %r3, %r3/add.u32 %r3, %r3, %r1/' "$rec" >"$dir/other.rec"
status 1 replay "$dir/other.rec"
complains "launch 2, kernel follow: "
complains "bytes differ from the recording"
status 0 replay --type f32 --tolerance 1e-40 "$dir/other.rec" # small integers are tiny numbers
head -c 20000 "$rec" >"$dir/cut.rec"
status 2 replay "$dir/cut.rec"
complains "the recording is refused"

# In front of a driver: another instance of the stand-in is one.
cp "$(dirname "$cptx")/tools/sanitize/libcptx_sanitize.so" "$dir/libdriver.so"
LD_LIBRARY_PATH=$(dirname "$cptx") CPTX_CUDA_LIBRARY=$dir/libdriver.so
export LD_LIBRARY_PATH CPTX_CUDA_LIBRARY
rm -f "$rec"
status 0 sanitize --record "$rec" -- "$driven"
complains "cptx record: 5 of 5 launches are in $rec"
status 0 replay "$rec"
complains "recorded on emulated sm_90a: $driven"
complains "5 launches are as recorded, 0 differ, 0 did not come to their end, 0 were passed over, 0 were not recorded"
rm -f "$rec"
status 0 sanitize --record "$rec" -- "$recorded" mapped
complains "2 of 2 launches are in $rec"
status 0 replay "$rec"
complains "2 launches are as recorded"
rm -f "$rec"
status 0 sanitize --record "$rec" -- "$recorded" unloaded
status 0 replay "$rec"
complains "4 launches are as recorded"
# What graphs launch, as without the recorder.
status 0 sanitize -- "$graphed"
complains "0 errors, 0 warnings"
rm -f "$rec"
status 0 sanitize --record "$rec" -- "$graphed"
complains "15 of 18 launches are in $rec"
complains "((a graph)) is not recorded: another stream is captured, which waiting would end"
complains "((a graph)) is not recorded: a node of it is disabled, and which one of the graph that it was updated with is not known"
status 3 replay "$rec"
complains "15 launches are as recorded, 0 differ, 0 did not come to their end, 0 were passed over, 3 were not recorded"
complains "kernel (a graph): it was not recorded: it has nodes other than kernels, copies, sets and host functions"
# Of a driver without one of the calls that it takes they are left out, and the call is named.
sed 's/cuGraphKernelNodeCopyAttributes/cuGraphKernelNodeCopyAttributez/g' "$dir/libdriver.so" >"$dir/libolder.so"
rm -f "$rec"
CPTX_CUDA_LIBRARY=$dir/libolder.so
status 0 sanitize --record "$rec" -- "$graphed"
complains "((a graph)) is not recorded: the driver has no cuGraphKernelNodeCopyAttributes"
complains "0 of 13 launches are in $rec"
CPTX_CUDA_LIBRARY=$dir/libdriver.so
# Memory that cannot be read is left out, and nothing else.
rm -f "$rec"
status 0 sanitize --record "$rec" -- "$recorded" hidden
complains "launch 2 (k) is not recorded: the 4096 bytes at 0x"
complains "cannot be read; what follows is recorded without them"
complains "2 of 3 launches are in $rec"
status 3 replay "$rec"
complains "2 launches are as recorded, 0 differ, 0 did not come to their end, 0 were passed over, 1 were not recorded"
rm -f "$rec"
status 1 sanitize --record "$rec" -- "$recorded" fault
complains "2 of 3 launches are in $rec"
status 1 replay "$rec"
complains "launch 2, kernel k: as recorded, it did not come to its end"
complains "launch 3, kernel k: it was not recorded: "
holds [ -z "$(ls "$TMPDIR")" ] # no folder is left
summary
