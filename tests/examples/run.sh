#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh FOLDER NAME...: each example in the build folder runs on emulated devices, finds its own result right, and the emulator
# finds nothing wrong with it.  The last line is "examples: N passed, N failed, N skipped".
set -u
folder=$1
shift
passed=0 failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CPTX_CUDA_LIBRARY=/nonexistent/libcuda.so.1

# expect STATUS DEVICE NAME REGEX: how the example ends there ("": no device named), and a line of what it says
expect() {
	if [ -n "$2" ]; then export CPTX_DEVICE="$2"; else unset CPTX_DEVICE; fi
	# shellcheck disable=SC2086 # the name with its options
	"$folder"/$3 >"$dir/said" 2>&1
	got=$?
	if [ $got -eq "$1" ] && grep -qE -e "$4" "$dir/said"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL: CPTX_DEVICE=$2 $3: status $got, not $1, or no line matches $4"
		grep -v '^	' "$dir/said" | tail -n 5 | sed 's/^/    /'
	fi
}

for name; do
	case $name in
	hgemm_*)
		right="^$name 256 x 256 x 128 bf16: all elements right, 0 bank conflicts$"
		old=emu:sm_80 new=0
		case $name in *tma*) new=1 ;; esac
		expect $new $old "$name" "$right|is not available on sm_80; it needs sm_90$"
		for device in emu:sm_90a emu:sm_120a; do expect 0 $device "$name" "$right"; done
		expect 1 emu:sm_91 "$name" 'there is no target "sm_91" to emulate'
		expect 0 "" "$name" '/nonexistent/libcuda.so.1'
		continue
		;;
	blackwell/*)
		rung=${name##*_}
		right="^tcgen05 $rung 256 x 256 x 256 on .*: all 65536 elements right"
		for device in emu:sm_100a emu:sm_103a ""; do expect 0 "$device" "$name" "$right"; done
		expect 1 emu:sm_90a "$name" 'sm_90a has no tcgen05 and no tensor memory; .* used by wgmma'
		expect 1 emu:sm_120a "$name" 'sm_120a has no tcgen05 and no tensor memory; .* used by mma.sync'
		expect 0 "" "$name --ptx --target sm_103a --out f32" '^\.target sm_103a$'
		expect 1 "" "$name --target sm_120a" "^$rung: sm_120a has no tcgen05"
		expect 1 "" "$name 64 64 100" '^K 100; it is a multiple of 8'
		expect 2 "" "$name --tile 128" '^usage: '
		continue
		;;
	kit/*) # each runs on the emulated target that it is for where no device is named
		target=sm_90a lacks=sm_100a why='is not available on sm_100a; targets that have it: sm_90a'
		case $name in
		*_sm80) target=sm_80 lacks=sm_75 why='sm_80' ;;
		*_sm100a) target=sm_100a lacks=sm_90a why='is not available on sm_90a' ;;
		*_fp8) lacks=sm_80 why='a CTA of sm_80 has at most' ;;
		esac
		for device in emu:$target ""; do expect 0 "$device" "$name" ': 0 of [1-9][0-9]* elements are wrong$'; done
		expect 1 emu:$lacks "$name" "$why"
		expect 1 emu:sm_91 "$name" 'there is no target "sm_91" to emulate'
		continue
		;;
	hosts/*)
		right='^rms_norm and mul_mat of 12 tokens: [0-9.e-]+ from the CPU at most$'
		for device in emu:sm_80 emu:sm_90a; do expect 0 $device "$name" "$right"; done
		expect 1 "" "$name" '/nonexistent/libcuda.so.1'
		continue
		;;
	several_devices)
		expect 0 "" "$name emu:sm_80 emu:sm_90a emu:sm_120a emu:sm_80" '^4 devices, 0 failed; 0 of 3072 elements are wrong$'
		expect 1 "" "$name emu:sm_80 emu:sm_91" 'there is no target "sm_91" to emulate'
		expect 0 "" "$name" '^not run: .*/nonexistent/libcuda.so.1'
		continue
		;;
	host/*) # with a GPU: the suite gpu
		export CUDA_VISIBLE_DEVICES=
		expect 0 "" "$name" '^not run: '
		unset CUDA_VISIBLE_DEVICES
		continue
		;;
	saxpy) right='^y\[999\] = 1999; 0 of 1000 elements are wrong$' ;;
	jit)
		right='^7 statements, 6 kernels compiled, 0 wrong$'
		expect 1 emu:sm_80 "$name y=2*" 'jit: .*not a name'
		expect 1 emu:sm_80 "$name s=sum(s);" 'jit: s: sums and scatters do not read their own target'
		;;
	trace) right='^20 traces of 60 variables, 10 kernels compiled, 0 elements wrong: all right$' ;;
	stamp) right='^warp 1 waited [0-9]+ ns \(numbers\[1\] = 62\)$' ;;
	*) right="^$name [0-9]+ x 8192: all elements right$" ;;
	esac
	for device in emu:sm_80 emu:sm_90a emu:sm_100a emu:sm_120a; do expect 0 $device "$name" "$right"; done
	expect 1 emu:sm_91 "$name" 'there is no target "sm_91" to emulate'
	expect 0 "" "$name" '/nonexistent/libcuda.so.1'
done
echo "examples: $passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
