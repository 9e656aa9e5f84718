#!/bin/sh
# What the command prints and how it ends: test_cli.sh PATH-OF-CPTX.  The last line is "cli: N passed, N failed, N skipped".
set -u
cptx=$1
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
out=$dir/out err=$dir/err
export TMPDIR="$dir/tmp"
mkdir "$TMPDIR"
unset CPTX_PTXAS
export CPTX_CUDA_LIBRARY=/nonexistent/libcuda.so.1 # no test here needs a GPU

ok() { passed=$((passed + 1)); }
bad() {
	failed=$((failed + 1))
	echo "FAIL: $*"
	sed 's/^/    out: /' "$out" | head -n 15
	sed 's/^/    err: /' "$err" | head -n 15
}
skip() { skipped=$((skipped + 1)); echo "SKIP cli: $*"; }

# status N ARGUMENT...: runs the command, which must end like that.
status() {
	want=$1
	shift
	what="cptx $*"
	"$cptx" "$@" >"$out" 2>"$err"
	got=$?
	if [ $got -eq "$want" ]; then ok; else bad "$what: status $got, not $want"; fi
}
# The text stands in the output, or the errors, of the last command.
says() { if grep -qF -e "$1" "$out"; then ok; else bad "$what: no '$1' in the output"; fi; }
complains() { if grep -qF -e "$1" "$err"; then ok; else bad "$what: no '$1' in the errors"; fi; }
silent() { if [ ! -s "$1" ]; then ok; else bad "$what: ${1##*/} is not empty"; fi; }
holds() { if "$@"; then ok; else bad "$what: not so: $*"; fi; }
# usage TEXT ARGUMENT...: wrong usage, told on stderr together with where to look.
usage() {
	text=$1
	shift
	status 2 "$@"
	complains "$text"
	complains "--help'."
	silent "$out"
}
# fails TEXT ARGUMENT...: right usage, but it cannot be done.
fails() {
	text=$1
	shift
	status 1 "$@"
	complains "$text"
}

# ---- the command itself ----
status 2
complains "usage: cptx COMMAND"
silent "$out"
for option in --help -h help; do
	status 0 $option
	for word in gemm insn arch completion "To begin:"; do says "$word"; done
	says "Exit status: 0 done, 1 failed or wrong result, 2 wrong usage"
	silent "$err"
done
for option in --version -V; do
	status 0 $option
	holds grep -qxE 'cptx [0-9]+\.[0-9]+\.[0-9]+' "$out"
done
usage "there is no command 'gem'" gem
usage "there is no command '--frob'" --frob
usage "there is no command ''" ""

# ---- --help of each, and the options it must name ----
help_names() {
	command=$1
	shift
	for option in --help -h; do
		status 0 "$command" $option
		says "usage: cptx $command "
		silent "$err"
	done
	for option; do says "--$option"; done
	# none is forgotten: the completion knows all
	"$cptx" completion bash | sed -n "/^	$command)/,/;;\$/p" | grep -oE -e ' --[a-z]+' | sort -u >"$dir/options"
	while read -r option; do [ "$option" = --help ] || says "$option"; done <"$dir/options"
}
help_names gemm arch tile warps stages in out group output run device lines
help_names insn arch
help_names arch
help_names completion

for command in gemm insn arch completion; do
	usage "there is no option '--frob'" $command --frob
	usage "there is no option '-z'" $command -z
done
usage "option '--tile' needs an argument" gemm --tile
usage "option '-o' needs an argument" gemm -o
usage "there is no option '-z'" gemm -lz
usage "there is no option '-z'" gemm -zl
usage "option '--lines=3' takes no argument" gemm --lines=3

# ---- gemm: values ----
for value in 0x0x0 128x256 128x256x64x2 axbxc 128x256x64a 2048x64x32 -1x64x32 "" 128X256X64 99999999999999999999x1x1; do
	usage "--tile $value: expected three numbers from 1 to 1024, as in 128x256x64" gemm --tile "$value"
done
for value in 2 0x2 2x33 2x2x2 2x x; do
	usage "--warps $value: expected two numbers from 1 to 32, as in 2x4" gemm --warps "$value"
done
for value in 0 a 3x3 1025 -3 ""; do
	usage "--stages $value: expected a number" gemm --stages "$value"
	usage "--group $value: expected a number" gemm --group "$value"
done
usage "--in float: expected bf16 or f16" gemm --in float
usage "--out float: expected f32, bf16 or f16" gemm --out float
usage "--run 4096" gemm --run 4096
usage "--run 0x1x8" gemm --run 0x1x8
usage "there is no target 'sm_90b'" gemm --arch sm_90b
usage "cptx arch" gemm --arch ""
usage "what is 'left'?" gemm left over

# ---- gemm: shapes ----
fails "input type .f32; it must be bf16 or f16" gemm --in f32
fails "output type .s8; it must be f32, bf16 or f16" gemm --out s8
fails "17 stages; 2 to 16 are possible" gemm --stages 17
fails "tile K = 48; the swizzle is made for 32, 64 and 128" gemm --tile 128x128x48
fails "bytes of shared memory; a CTA of sm_86 has at most 101376" gemm --arch sm_86 --tile 128x256x64 --stages 4
fails "not available on sm_75; targets from sm_80 on have them" gemm --arch sm_75
fails "tile M = 100 is not divisible into 2 warps" gemm --tile 100x128x32 --warps 2x2
fails "registers per thread are needed" gemm --tile 256x256x32 --warps 2x2
fails "CTA has 1 to 32" gemm --warps 8x8
fails "K = 100 is not a multiple of 8" gemm --run 64x64x100
complains "(pad K to 104)"

# ---- gemm: where the text goes ----
status 0 gemm --arch sm_80
says ".target sm_80"
silent "$err"
cp "$out" "$dir/plain"
status 0 gemm -a sm_80 -o -
holds cmp -s "$out" "$dir/plain"
status 0 gemm -a sm_80 -o "$dir/file.ptx"
holds cmp -s "$dir/file.ptx" "$dir/plain"
says "tile 128x256x64, 2x4 warps, 3 stages"
says "$dir/file.ptx, $(wc -c <"$dir/plain") bytes"
status 0 gemm --arch=sm_80 --lines
says ".loc 1 "
status 0 gemm -asm_90a -t64x64x32 -w2x2 -s3 -if16 -uf16 -g8
says "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
says ".target sm_90a"

cannot="cannot write '"
fails "$cannot$dir/no/such/file': No such file or directory" gemm -o "$dir/no/such/file"
fails "$cannot$dir': Is a directory" gemm -o "$dir"
fails "cannot write" gemm -o ""
if [ "$(id -u)" -eq 0 ]; then
	skip "a user other than root, whom a directory can refuse"
else
	mkdir "$dir/locked" && chmod a-w "$dir/locked"
	fails "$cannot$dir/locked/file': Permission denied" gemm -o "$dir/locked/file"
fi
if [ -c /dev/full ]; then
	fails "$cannot/dev/full': No space left on device" gemm -o /dev/full
	holds test -c /dev/full
	ln -s /dev/full "$dir/link"
	fails "$cannot$dir/link'" gemm -o "$dir/link"
	holds test -c /dev/full
	for arguments in gemm "gemm -o -" "gemm --help" arch "arch sm_90" insn "insn ldmatrix" "completion bash" \
		--help --version; do
		what="cptx $arguments >/dev/full"
		# shellcheck disable=SC2086 # words
		"$cptx" $arguments >/dev/full 2>"$err"
		got=$?
		if [ $got -eq 1 ]; then ok; else bad "$what: status $got, not 1"; fi
		complains "cannot write to standard output: No space left on device"
	done
	# to a file, while what is told beside it cannot be
	"$cptx" gemm -o "$dir/kept.ptx" >/dev/full 2>"$err"
	if [ $? -eq 1 ]; then ok; else bad "gemm -o FILE >/dev/full"; fi
else
	skip "/dev/full"
fi

# ---- gemm --run without a GPU ----
cat >"$dir/rejects" <<'S'
#!/bin/sh
echo "ptxas kernel, line 7; error : too pretty" >&2
exit 3
S
cat >"$dir/crashes" <<'S'
#!/bin/sh
echo "about to die"
kill -SEGV $$
S
cat >"$dir/accepts" <<'S'
#!/bin/sh
for file; do case $file in *cptx-*) grep -q '^.target' "$file" || exit 9;; esac; done
case "$*" in *-arch=sm_101*) exit 8;; esac
echo "ptxas info : Used 77 registers"
S
chmod +x "$dir/rejects" "$dir/crashes" "$dir/accepts"
printf 'not a program' >"$dir/data"
chmod +x "$dir/data"
# with_ptxas PATH CHECK...: an assignment in front of a function call may outlive the call
with_ptxas() {
	export CPTX_PTXAS="$1"
	shift
	"$@"
	unset CPTX_PTXAS
}
not_done="NOT DONE running, checking and timing the kernel: that needs a GPU"

with_ptxas /nonexistent/ptxas status 0 gemm --run 256x256x64
says "device   none: "
says "/nonexistent/libcuda.so.1"
says "ptxas    none found"
says "NOT DONE assembling, running, checking and timing the kernel"
with_ptxas "$dir/accepts" status 0 gemm --run 256x256x64
says "ptxas    accepted"
says "Used 77 registers"
says "$not_done"
with_ptxas "$dir/accepts" status 0 gemm --arch sm_101a --run 256x256x64
says "ptxas    accepted"
with_ptxas "$dir/accepts" status 0 gemm --run 256x256x64 -o -
says ".version"
complains "$not_done"
if grep -q "NOT DONE" "$out"; then bad "$what: the PTX is not clean"; else ok; fi
with_ptxas "$dir/accepts" status 0 gemm --run 256x256x64 -o "$dir/run.ptx"
says "$dir/run.ptx"
says "$not_done"
with_ptxas "$dir/rejects" fails "$dir/rejects rejects the kernel:" gemm --run 256x256x64
complains "line 7; error : too pretty"
with_ptxas "$dir/crashes" fails "$dir/crashes rejects the kernel:" gemm --run 256x256x64
complains "about to die"
with_ptxas "$dir/data" fails "$dir/data could not be run" gemm --run 256x256x64
TMPDIR=$dir/no
with_ptxas "$dir/accepts" fails "could not be run" gemm --run 256x256x64
TMPDIR=$dir/tmp
if PATH=$PATH:/usr/local/cuda/bin command -v ptxas >/dev/null; then
	status 0 gemm --run 256x256x64 --in f16 --out bf16
	says "ptxas    accepted"
	says " 0 bytes spill stores"
	says "$not_done"
else
	skip "ptxas"
fi
what="files left behind"
holds test -z "$(ls "$TMPDIR")"

# ---- insn ----
status 0 insn
says "ldmatrix"
holds test "$(wc -l <"$out")" -gt 50
status 0 insn ldmatrix
says "ldmatrix.sync.aligned.m8n8.num=x1|x2|x4{.trans}{.space=shared|shared::cta<PTX 7.8>}.b16 d:b32*num, [a]"
says "PTX 6.5 on sm_75 and later"
says "cptx_ldmatrix(k, a, .num =, .trans =, .space =)"
for word in NAME CALL MANUAL FORMS OPERANDS MODIFIERS EXAMPLE "two matrices" "address in the space of .space, generic without"; do says "$word"; done
says "ldmatrix.sync.aligned.m8n8.x1.b16 {d0}, [a];"
says "cptx_ldmatrix(k, a, .num = CPTX_X1);"
status 0 insn cp.async # a mnemonic of its own
says "cptx_cp_async(k"
if grep -q 'cptx_cp_async_commit_group' "$out"; then bad "$what: others too"; else ok; fi
status 0 insn 'cp.async*'
says "cptx_cp_async_commit_group(k"
status 0 insn 'mma*'
says "cptx_mma(k"
if grep -q 'cptx_ldmatrix' "$out"; then bad "$what: not that one"; else ok; fi
status 0 insn '*matrix'
says "cptx_stmatrix(k"
status 0 insn add # a name of its own: no others that hold it
if grep -q 'cptx_[a-z_]*[a-z]add(\|cptx_red(' "$out"; then bad "$what: others too"; else ok; fi
status 0 insn --coverage
says "9.7.9 Data Movement and Conversion Instructions"
says " 0 missing; "
usage "--coverage stands alone" insn --coverage add
status 0 insn -a sm_75 'cvt'
if grep -qF 'sm_89' "$out"; then bad "$what: forms that sm_75 lacks"; else ok; fi
status 0 insn --arch sm_75
if grep -q '^cp_async ' "$out"; then bad "$what: sm_75 has no cp.async"; else ok; fi
fails "no instruction of the table matches 'frobnicate'; \`cptx insn\` lists them" insn frobnicate
fails "no instruction of the table matches 'cp_async' on sm_75" insn --arch sm_75 cp_async
usage "one NAME at most" insn a b
usage "there is no target 'sm_1'" insn --arch sm_1
usage "needs an argument" insn --arch

# ---- arch ----
status 0 arch
for target in sm_75 sm_80 sm_90a sm_100f sm_121a; do says "$target "; done
status 0 arch sm_120a
says "sm_120a: Blackwell, GeForce 50"
says "compute capability            12.0"
says "lowest PTX version            8.7"
says "101376 bytes"
says "this architecture only"
status 0 arch sm_80 sm_100f
says "this architecture and later ones"
says "this family"
says "(no clusters)"
fails "there is no target 'sm_1'" arch sm_1
fails "there is no target 'sm_90b'" arch sm_90 sm_90b

# ---- fmt and check ----
printf '.version 8.0\n.target sm_80\n.entry k() { // why\n.reg .b32 r; mov.b32 r,1+1; ret; }\n' >"$dir/good.ptx"
printf '.version 8.0\n.target sm_80\n.entry k() {\n  bra L; bra M;\n}\n' >"$dir/bad.ptx"
printf '.version 8.0\n.target sm_90\n.entry k() { barrier.cluster.arrive; ret; }\n' >"$dir/sm_90.ptx"
status 0 fmt "$dir/good.ptx"
says "	mov.b32 r, 2;"
says "	// why"
silent "$err"
cp "$out" "$dir/once.ptx"
status 0 fmt "$dir/once.ptx"
holds cmp -s "$out" "$dir/once.ptx"
status 0 fmt -o "$dir/written.ptx" "$dir/good.ptx"
silent "$out"
holds cmp -s "$dir/written.ptx" "$dir/once.ptx"
status 0 fmt --keep "$dir/good.ptx"
holds cmp -s "$out" "$dir/good.ptx"
what="cptx fmt -, from a pipe"
"$cptx" fmt - <"$dir/good.ptx" >"$out" 2>"$err"
holds cmp -s "$out" "$dir/once.ptx"
status 0 fmt --arch sm_90a "$dir/good.ptx"
says ".target sm_90a"
fails "$dir/bad.ptx:4:7: error: 'L' is neither declared nor a label of 'k'" fmt -o "$dir/none.ptx" "$dir/bad.ptx"
complains "$dir/bad.ptx:4:14: error: 'M' is neither"
holds test ! -e "$dir/none.ptx"
fails "not available on sm_80" fmt --arch sm_80 "$dir/sm_90.ptx"
fails "there is no target 'sm_1'" fmt --arch sm_1 "$dir/good.ptx"
fails "$dir/nothing.ptx" fmt "$dir/nothing.ptx"
usage "give one file" fmt
usage "give one file" fmt "$dir/good.ptx" "$dir/bad.ptx"
status 0 to-c "$dir/good.ptx"
says "	cptx_mov(k, 2, .type = CPTX_B32);"
silent "$err"
status 0 to-c --main -o "$dir/good.c" "$dir/good.ptx"
silent "$out"
holds grep -q '^int main' "$dir/good.c"
fails "$dir/bad.ptx:4:7: error: 'L'" to-c -o "$dir/none.c" "$dir/bad.ptx"
holds test ! -e "$dir/none.c"
fails "$dir/nothing.ptx" to-c "$dir/nothing.ptx"
usage "give one file" to-c
status 0 check "$dir/good.ptx" "$dir/once.ptx" "$dir/sm_90.ptx"
silent "$out"
silent "$err"
fails "bad.ptx:4:7: error:" check "$dir/good.ptx" "$dir/bad.ptx" "$dir/sm_90.ptx"
status 0 check --arch sm_90 --arch sm_100 "$dir/sm_90.ptx"
fails "code for sm_90 does not run on sm_80" check --arch sm_90 -a sm_80 "$dir/sm_90.ptx"
fails "$dir/nothing.ptx" check "$dir/nothing.ptx" "$dir/good.ptx"
fails "$dir" check "$dir"
usage "there is no target 'sm_1'" check --arch sm_1 "$dir/good.ptx"
usage "give a file" check
what="cptx check -, from a pipe"
"$cptx" check - <"$dir/bad.ptx" >"$out" 2>"$err"
complains "<stdin>:4:7: error: 'L'"
if [ -c /dev/full ]; then
	fails "No space left" fmt -o /dev/full "$dir/good.ptx"
	what="cptx fmt >/dev/full"
	"$cptx" fmt "$dir/good.ptx" >/dev/full 2>"$err"
	if [ $? -eq 1 ]; then ok; else bad "$what: no status 1"; fi
	complains "No space left"
else
	skip "there is no /dev/full"
fi

# ---- completion ----
usage "name the shell: bash" completion
usage "name the shell: bash" completion zsh
usage "name the shell: bash" completion bash bash
status 0 completion bash
cp "$out" "$dir/completion.bash"
# completes EXPECTED-WORD WORD...: with the cursor on the last word
completes() {
	expected=$1
	shift
	what="completion of: $*"
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cptx; printf "%s\n" "${COMPREPLY[@]}"' - \
		"$dir/completion.bash" "$@" >"$out" 2>"$err"
	if grep -qxF -e "$expected" "$out"; then ok; else bad "$what: no '$expected'"; fi
	silent "$err"
}
if command -v bash >/dev/null 2>&1; then
	what="bash -n"
	holds bash -n "$dir/completion.bash"
	completes gemm cptx ""
	completes completion cptx com
	completes --version cptx --v
	completes --stages cptx gemm --st
	completes --help cptx gemm --
	completes sm_90a cptx gemm --arch sm_9
	completes sm_120a cptx gemm -a sm_12
	completes f16 cptx gemm --in ""
	completes 128x256x64 cptx gemm --tile 128
	completes "$dir/completion.bash" cptx gemm -o "$dir/comp"
	completes ldmatrix cptx insn ldm
	completes sm_75 cptx insn --arch sm_7
	completes sm_103a cptx arch sm_103
	completes bash cptx completion b
	completes cuda:0 cptx gemm --device ""
	completes "" cptx gemm --group z
	completes "" cptx nonsense x
else
	skip "bash, to complete with"
fi

echo "cli: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
