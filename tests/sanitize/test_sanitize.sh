#!/bin/sh
# SPDX-License-Identifier: MIT
# cptx sanitize: test_sanitize.sh PATH-OF-CPTX PATH-OF-PROGRAM.  The last line is "sanitize: N passed, N failed, N skipped".
set -u
cptx=$(realpath "$1") program=$(realpath "$2") name=sanitize here=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck source=tests/cli/common.sh
. "$here/../cli/common.sh"

usage "give the program to run" sanitize
usage "--seed x: expected a number" sanitize --seed x -- true
usage "--schedule soon: expected random, eager, late, parted or held" sanitize --schedule soon -- true
usage "--error-exitcode 256: an exit status is 0 to 255" sanitize --error-exitcode 256 -- true
status 127 sanitize -- "$dir/none"
complains "'$dir/none' cannot be started"
holds [ "$(wc -l <"$err")" = 1 ] # and not that it has no errors
status 143 sanitize -- sh -c 'kill -TERM $$'
complains "0 errors, 0 warnings; the program's exit status is 143"
status 4 sanitize sh -c 'exit 4' # options behind the program are its own

status 0 sanitize -- "$program" work
complains "0 errors, 0 warnings"
status 0 sanitize --arch sm_120a -- "$program" graphs
# What was not checked is counted, and is no success.
status 125 sanitize --arch sm_75 --json "$dir/found.json" -- "$program" work
complains "the program holds no PTX that an emulated sm_75 runs"
complains "0 errors, 0 warnings; 1 module could not be loaded; "
complains "launches were not checked; "
holds grep -q '^{"code":"not-checked","rank":"note","what":"launch","kernel":"add","text":"no image' "$dir/found.json"
status 0 sanitize --json "$dir/found.json" -- "$program" work # a block of 2048 threads, and a kernel that is none
complains "0 errors, 0 warnings; 2 launches were refused, as CUDA does; the program's exit status is 0"
holds grep -q '"what":"refused","kernel":"add"' "$dir/found.json"
status 125 sanitize -- python3 -c 'import ctypes; ctypes.CDLL("libcuda.so.1").cuGetExportTable()' # as a runtime in a library does
complains "1 library has the runtime linked in, and was not checked; "
status 0 sanitize -- true
complains "the program's exit status is 0, and it launched no kernel"
status 0 sanitize --sms 8 -- "$program" shapes
says "8 multiprocessors"
status 0 sanitize -- "$program" shapes
says "132 multiprocessors"
for sms in 0 1025; do
	usage "--sms $sms: a device has 1 to 1024 multiprocessors" sanitize --sms $sms -- true
done
status 0 sanitize --threads 1 -- "$program" shapes
complains "0 errors, 0 warnings"
for threads in 0 257; do
	usage "--threads $threads: there are 1 to 256 threads" sanitize --threads $threads -- true
done
status 0 sanitize --schedules all -- "$program" work
complains "kernel add: all 2 orders are right"
status 0 sanitize --schedules all --order 2 -- "$program" work
complains "kernel add: order 2 is right"
status 125 sanitize --schedules all --order 5 -- "$program" work
complains "kernel add: --order 5: the last order is 2"
complains "has no order of that number"
fails "--order 9: the last order is 1" run -g 1 -b 64 -a "buf:u32[64]=iota" --schedules all --order 9 "$here/../../examples/turn.ptx"
status 0 sanitize --schedules all --orders 1 -- "$program" work
complains "kernel add: 1 order is right, and at least 1 more is known"
# Two warps store their numbers at the same place: a note, and no error.
status 0 sanitize --schedules all --json "$dir/order.json" --sarif "$dir/order.sarif" -- "$program" order
complains "all 2 orders are right; but order 2 leaves other memory than the first: 1 byte of memory differs"
complains "0 errors, 0 warnings; the result of 1 launch depends on the order; the program's exit status is 0"
at=$(sed -n 's/^stored at //p' "$out")
holds [ "$(grep -c . "$dir/order.json")" = 1 ]
holds grep -q "^{\"code\":\"order-dependent\",\"rank\":\"note\",\"kernel\":\"own\",\"order\":2,\"bytes\":1,\"address\":\"$at\",\"text\":\"all 2 orders" "$dir/order.json"
holds grep -q '^{"ruleId":"order-dependent","level":"note","message":{"text":"all 2 orders.*"name":"own"}' "$dir/order.sarif"
holds python3 -c 'import json, sys; json.load(open(sys.argv[1])); json.loads(open(sys.argv[2]).read())' "$dir/order.sarif" "$dir/order.json"
status 0 sanitize --json "$dir/order.json" -- "$program" order
silent "$dir/order.json"
printf '.version 8.0\n.target sm_90\n.address_size 64\n.visible .entry own(.param .u64 p) {\n.reg .b64 %%p<2>; .reg .b32 %%r<2>;\nld.param.u64 %%p1, [p]; mov.u32 %%r1, %%tid.x; shr.u32 %%r1, %%r1, 5;\nst.relaxed.gpu.global.u32 [%%p1], %%r1; ret; }\n' >"$dir/own.ptx"
status 0 run "$dir/own.ptx" -b 64 -a "buf:u32[4]=zero" --schedules all --finding-format json
holds grep -qE '^\{"code":"order-dependent","rank":"note","kernel":"own","order":2,"bytes":1,"address":"0x[0-9a-f]+","text":"all 2 orders are right; but order 2 leaves' "$err"
holds test "$(wc -l <"$err")" -eq 1
status 0 run "$dir/own.ptx" -b 64 -a "buf:u32[4]=zero" --finding-format json
silent "$err"
# What the command puts into the environment may be put there by hand.
for bad in THREADS=abc THREADS=-3 THREADS=257 SEED=1x SMS=1025 ORDER=-1 ORDERS=x LIMIT=1e9 DEVICES=0 DEVICES=17; do
	what="CPTX_SANITIZE_$bad"
	if env "CPTX_SANITIZE_$bad" "$program" order >"$out" 2>"$err"; then bad "$what is taken"; else ok; fi
	complains "no device: CPTX_SANITIZE_${bad%=*} is '${bad#*=}': expected a number from "
done
what="CPTX_SANITIZE_THREADS=2"
holds env CPTX_SANITIZE_THREADS=2 "$program" order >/dev/null
usage "--record --: expected the name of a file" sanitize --record -- true
holds [ ! -e ./-- ]
usage "--schedules some: expected all" sanitize --schedules some -- true
for of in order orders; do
	usage "--$of: of the orders that --schedules all tries, beside that" sanitize --$of 1 -- true
done
usage "--schedule late: --schedules all tries every order; give one of the two" sanitize --schedule late --schedules all -- true
for as in sanitize run; do
	usage "--schedule late: --schedules all" $as --schedules all --schedule late -- true
done
status 0 sanitize -- "$program" memory
complains "cudaExternalMemoryGetMappedBuffer is not there: it returns cudaErrorNotSupported (801)"

status 9 sanitize --error-exitcode 9 --json "$dir/found.json" --sarif "$dir/found.sarif" -- "$program" races
complains "race: it reads 4 bytes of shared memory"
holds grep -q '^{"code":"race","rank":"error","kernel":"race","instruction":"ld.shared.u32"' "$dir/found.json"
holds grep -q '"ruleId":"race","level":"error"' "$dir/found.sarif"
holds python3 -c "import json; r = json.load(open('$dir/found.sarif'))['runs'][0]; assert {f['ruleId'] for f in r['results']} == {'race', 'undefined'}"

# No output is an input, or another output; and what cannot be written is told before the program runs.
cp "$program" "$dir/copy"
for to in json sarif record; do
	fails "which is an input; name another file" sanitize --$to "$dir/copy" -- "$dir/copy" work
	holds cmp -s "$program" "$dir/copy"
	[ $to = record ] && continue
	fails "--record and --$to would both go to '$dir/both'" sanitize --record "$dir/both" --$to "$dir/both" -- touch "$dir/ran"
	fails "cannot write '$dir/no/f'" sanitize --$to "$dir/no/f" -- touch "$dir/ran"
done
fails "--json and --sarif would both go to '$dir/./both'" sanitize --json "$dir/./both" --sarif "$dir/both" -- touch "$dir/ran"
holds [ ! -e "$dir/ran" ]

# Who ends the command ends the program, gets the summary, and finds no folder.
for signal in 2:INT 15:TERM; do
	what="SIG${signal#*:}"
	python3 - "$cptx" "${signal%:*}" "$dir/pid" "$dir/found.json" >"$out" 2>"$err" <<'P' || bad "$what"
import os, signal, subprocess, sys, time
cptx, number, pid, json = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
for n in (signal.SIGINT, signal.SIGTERM):
    signal.signal(n, signal.SIG_DFL)
if os.path.exists(pid):
    os.remove(pid)
c = subprocess.Popen([cptx, "sanitize", "--json", json, "--", "sh", "-c", "echo $$ >" + pid + "; exec sleep 60"])
while not os.path.exists(pid) or not open(pid).read().endswith("\n"):
    time.sleep(0.02)
c.send_signal(number)
status = c.wait(20)
try:
    os.kill(int(open(pid).read()), 0)
    sys.exit("the program is running")
except ProcessLookupError:
    pass
sys.exit(0 if status == 128 + number else "status %d" % status)
P
	complains "0 errors, 0 warnings; the program's exit status is $((128 + ${signal%:*}))"
	holds [ -z "$(ls "$TMPDIR")" ]
done
status 1 sanitize -- "$program" ends
complains "out-of-bounds: 4 bytes at address"
status 1 sanitize -- "$program" frees
complains "was freed already"
status 0 sanitize --json "$dir/found.json" -- "$program" warns # three of line 7: one is told, one is named, all are there
complains "unrolled.cu:7: warning: kernel k, cp.async.bulk.global.shared::cta.bulk_group"
complains "unrolled.cu:7: warning: repeated-store, once more ("
complains "unrolled.cu:8: warning: kernel k"
complains "0 errors, 4 warnings"
holds [ "$(grep -c 'unrolled.cu:7: warning' "$err")" = 2 ]
holds [ "$(grep -c '"rank":"warning".*"line":7' "$dir/found.json")" = 3 ]
holds [ -z "$(ls "$TMPDIR")" ] # no folder is left

# Programs of nvcc, with the runtime linked in and shared.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ] && "$nvcc" --version | grep -q 'release 13\.'; then
	"$nvcc" -lineinfo -o "$dir/linked" "$here/hosted.cu" >"$out" 2>"$err" || bad "nvcc"
	"$nvcc" -lineinfo --cudart shared --compress-mode=none -o "$dir/shared" "$here/hosted.cu" >"$out" 2>"$err" || bad "nvcc --cudart shared"
	for p in linked shared; do
		status 3 sanitize -- "$dir/$p"
		says "hello from a kernel of 256"
		says "cudaSuccess, 13, 256 threads"
		status 1 sanitize -- "$dir/$p" race
		complains "hosted.cu:23: error: kernel _Z4turnPf, ld.shared.f32"
		complains "hosted.cu:22, program.ptx:" # the other side
		says "cudaSuccess, "
		status 1 sanitize -- "$dir/$p" bounds
		complains "hosted.cu:13: error: kernel _Z5countPfi"
		says "cudaErrorIllegalAddress"
	done
	# Objects that call one another, and cooperative groups that wait for the whole grid.
	"$nvcc" -lineinfo -rdc=true -gencode arch=compute_90,code=compute_90 -c -odir "$dir" "$here/linked.cu" "$here/linked_other.cu" \
		>"$out" 2>"$err" || bad "nvcc -rdc=true -c"
	for runtime in static shared; do
		"$nvcc" -rdc=true --cudart $runtime -gencode arch=compute_90,code=compute_90 -o "$dir/objects" "$dir/linked.o" \
			"$dir/linked_other.o" >"$out" 2>"$err" || bad "nvcc -rdc=true --cudart $runtime"
		status 3 sanitize -- "$dir/objects"
		says "linked: 5"
		says "cudaSuccess, 256 right"
		complains "0 errors, 0 warnings"
	done
	"$nvcc" -rdc=true -gencode arch=compute_90,code=compute_90 -o "$dir/launches" "$here/launches.cu" >"$out" 2>"$err" ||
		bad "nvcc of kernels that launch kernels"
	status 3 sanitize -- "$dir/launches"
	says "parent 0 1"
	says "child 5 1.5"
	says "17 5 16 cudaSuccess" # (0 * 2 + 5) * 2 + 7; two to the fourth
	complains "0 errors, 0 warnings"
	if [ "${CPTX_WHOLE:-}" = 1 ]; then # the compiler takes long
		"$nvcc" -std=c++17 -O2 -w --compress-mode=none -gencode arch=compute_90,code=compute_90 -o "$dir/headers" "$here/headers.cu" \
			>"$out" 2>"$err" || bad "nvcc of headers.cu"
		status 0 sanitize -- "$dir/headers"
		says "8 right, 0 wrong"
		complains "0 errors, 0 warnings"
		# weakened.txt has lines of the PTX of this version
		"$nvcc" --version | grep -q 'release 13\.0' &&
			holds python3 "$here/weaken.py" --cptx "$cptx" --nvcc "$nvcc" --build "$dir/weakened" --only "headers pipelines"
	fi
	strip "$dir/linked"
	status 125 sanitize -- "$dir/linked"
	complains "the program was not checked; "
	complains "stripped of its symbols: keep them, or link it with nvcc --cudart shared"
else
	skip "nvcc of CUDA 13 is not here, so no program of it was run"
fi
summary
