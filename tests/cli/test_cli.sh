#!/bin/sh
# SPDX-License-Identifier: MIT
# What the command prints and how it ends: test_cli.sh PATH-OF-CPTX.  The last line is "cli: N passed, N failed, N skipped".
set -u
cptx=$1 name=cli
# shellcheck source=tests/cli/common.sh
. "$(dirname "$0")/common.sh"

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
usage "there is no command 'ins'; did you mean insn?" help ins
usage "there is no command 'frobnicate'" help frobnicate
usage "help takes one command" help insn arch

# ---- --help of each, and the options it must name ----
help_names() {
	command=$1
	shift
	for option in --help -h; do
		status 0 "$command" $option
		says "usage: cptx $command "
		silent "$err"
	done
	cp "$out" "$dir/help"
	status 0 help "$command"
	silent "$err"
	holds cmp "$out" "$dir/help"
	for option; do says "--$option"; done
	# none is forgotten: the completion knows all
	"$cptx" completion bash | sed -n "/^	$command)/,/;;\$/p" | grep -oE -e ' --[a-z-]+' | sort -u >"$dir/options"
	while read -r option; do [ "$option" = --help ] || says "$option"; done <"$dir/options"
}
help_names gemm arch mma kind tile warps stages cluster stream-k swap per-sm batch grouped layout scale a-tmem in out group output run device lines timeline explain
help_names run device entry grid block cluster smem arg out seed schedule schedules order threads step-limit pedantic compare counters finding-format
help_names insn arch
help_names arch
help_names layout tile type major swizzle pitch read at frag shape num trans sparse svg
help_names desc
help_names tmem-width columns arch width output
help_names completion

for command in gemm run insn layout desc tmem-width arch completion; do
	usage "there is no option '--frob'" $command --frob
	usage "there is no option '-z'" $command -z
done
usage "option '--tile' needs an argument" gemm --tile
usage "option '-o' needs an argument" gemm -o
usage "there is no option '-z'" gemm -lz
usage "there is no option '-z'" gemm -zl
usage "option '--lines=3' takes no argument" gemm --lines=3

# ---- insn ----
status 0 insn
says "ldmatrix"
holds test "$(wc -l <"$out")" -gt 50
status 0 insn ldmatrix
says "ldmatrix.sync.aligned.m8n8.num=x1|x2|x4{.trans}{.space=shared|shared::cta<PTX 7.8>}.b16 d:b32*num~, [a]"
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
status 0 insn ld.global.u32 # a whole spelling: the page, and which of its forms that is
says "ld - d = what is at a"
holds test "$(grep -c "is spelled so" "$out")" = 1
fails "no instruction of the table matches 'ld.global.u33'" insn ld.global.u33
for word in '' . add. .adds; do fails "no instruction of the table matches '$word'" insn "$word"; done
status 0 insn --coverage
says "9.7.9 Data Movement and Conversion Instructions"
says " 0 missing; "
usage "--coverage stands alone" insn --coverage add
status 0 insn -a sm_75 'cvt'
if grep -qF 'sm_89' "$out"; then bad "$what: forms that sm_75 lacks"; else ok; fi
status 0 insn --arch sm_75
if grep -q '^cp_async ' "$out"; then bad "$what: sm_75 has no cp.async"; else ok; fi
fails "no instruction of the table matches 'frobnicate'; \`cptx insn\` lists them" insn frobnicate
fails "'cp_async' is not on sm_75; without --arch its page tells where it is" insn --arch sm_75 cp_async
fails "'mbarier'; did you mean mbarrier? \`cptx insn\` lists them" insn mbarier
fails "'add.'; did you mean add? \`cptx insn\` lists them" insn add.
fails "'CPTX_DIM_2E'; did you mean CPTX_DIM_2D? \`cptx insn\` lists them" insn CPTX_DIM_2E
status 0 insn CPTX_DIM_2D # who has it
says "cp_async_bulk_tensor_load          .dim = CPTX_DIM_2D  (.2d)  two dimensions"
says "tex                                .geom = CPTX_DIM_2D  (.2d)  two dimensions"
for asked in '.dim = CPTX_DIM_2D' .dim=CPTX_DIM_2D .dim=2d .dim .2d; do
	status 0 insn "$asked"
	says "cp_async_bulk_tensor_load          .dim = CPTX_DIM_2D  (.2d)  two dimensions"
done
status 0 insn tile::gather4
says "(.tile::gather4)"
fails "'.multicats'; did you mean .multicast?" insn .multicats
fails "'.dim = CPTX_RN'" insn '.dim = CPTX_RN'
status 0 insn cptx_bar_sync # the call's name, as C has it
says "    .cta = 1  (.cta)"
says "    cptx_bar_sync(k, a);"
status 0 insn ld.global.v4.f32 # the example is of the spelling
says "    ld.global.v4.f32 {d0, d1, d2, d3}, [a];"
says "    cptx_val a = cptx_reg(k, CPTX_U64);"
says "    cptx_val d = cptx_ld(k, a, .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_F32);"
says "    .vec = CPTX_V8  (.v8)"
says "    .space = CPTX_SHARED_CLUSTER  (.shared::cluster)"
status 0 insn --arch sm_80 ld.global.v4.f32 # what sm_80 lacks is not there
says "    .vec = CPTX_V4  (.v4)"
status 0 insn --arch sm_80 ld.global.v8.f32
says "ld.global.v8.f32 is not on sm_80; without --arch its form tells where it is"
status 0 insn --arch sm_80 ld.global.v4.f32
for lacking in CPTX_V8 CPTX_SHARED_CLUSTER CPTX_PROXY; do
	if grep -q "$lacking" "$out"; then bad "$what: $lacking is not on sm_80"; else ok; fi
done
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
usage "there is no target 'sm_1'" arch sm_1
usage "there is no target 'sm_999'; \`cptx arch\` lists them" arch sm_999
usage "there is no target 'sm_9'; did you mean sm_90? \`cptx arch\` lists them" arch sm_9

# ---- did you mean ----
usage "there is no command 'rn'; did you mean run?" rn
usage "there is no command 'insm'; did you mean insn?" insm
usage "there is no option '--swizle'; did you mean --swizzle?" layout --swizle 128B
usage "there is no option '--tyle=3'; did you mean --tile?" gemm --tyle=3
usage "--mma snc: expected tcgen05, wgmma, sync or gemv; did you mean sync?" gemm --mma snc
usage "--schedule eagr: expected random, eager, late, parted or held; did you mean eager?" run --schedule eagr x
usage "--compiler ptxs: expected one of" run --compiler ptxs x
complains "did you mean ptxas?"
usage "did you mean 128B?" layout --tile 64x64 --swizzle 126B
status 2 arch sm_90 sm_90b
complains "there is no target 'sm_90b'; did you mean sm_90? \`cptx arch\` lists them"

# ---- run --print ----
cat >"$dir/print.ptx" <<'P'
.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 from, .param .u64 to)
{
	.reg .b64 a, b;
	.reg .f32 x;
	ld.param.u64 a, [from];
	ld.param.u64 b, [to];
	ld.global.f32 x, [a+8];
	mul.f32 x, x, 0f3DCCCCCD;
	st.global.f32 [b], x;
	ret;
}
P
status 0 run "$dir/print.ptx" -b 1 -a buf:f32[4]=iota -a buf:f32[40] --print to:f32[2] -p 0 -p 1:b32[2] -p 0:s16[3]+2
cat >"$dir/printed" <<'P'
argument 1 (to), f32[2]:
  0: 0.2   0
argument 0, f32[4]:
  0: 0 1 2 3
argument 1, b32[2]:
  0: 0x3e4ccccd 0x00000000
argument 0, s16[3] from 2 on:
  2:     0 16256     0
P
holds cmp -s "$out" "$dir/printed"
usage "--print 2: argument 2 is no buffer" run "$dir/print.ptx" -a buf:f32[4] -a buf:f32[4] -p 2
usage "--print x: the kernel has no parameter 'x'" run "$dir/print.ptx" -a buf:f32[4] -p x
usage "--print 0:f32[5]: the buffer has 4 elements of .f32" run "$dir/print.ptx" -a buf:f32[4] -p 0:f32[5]
usage "--print 0:u8[8]+9: the buffer has 16 elements of .u8" run "$dir/print.ptx" -a buf:f32[4] -p 0:u8[8]+9
usage "'f33' is no type of elements" run "$dir/print.ptx" -a buf:f32[4] -p 0:f33[1]
for bad_spec in '' : 0: 0:f32 '0:f32[0]' '0:f32[1]-1' '0:f32[1]+' '0x:f32[1]' '0:f32[99999999999999999999]'; do
	usage "expected an argument's number or name" run "$dir/print.ptx" -a buf:f32[4] -p "$bad_spec"
done
# what is there is printed though the run fails
status 1 run "$dir/print.ptx" -b 1 -a buf:f32[1]=iota -a buf:f32[1]=iota -p 1
says "argument 1, f32[1]:"
complains "out-of-bounds"

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
usage "there is no target 'sm_1'" fmt --arch sm_1 "$dir/good.ptx"
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
cp "$dir/good.ptx" "$dir/kept.ptx"
fails "the C would go to '$dir/./good.ptx', which is an input; name another file" to-c -o "$dir/./good.ptx" "$dir/good.ptx"
fails "the timeline would go to '$dir/good.ptx', which is an input" run -b 1 --trace "$dir/good.ptx" "$dir/good.ptx"
fails "the page would go to '$dir/good.ptx', which is an input" inspect --html "$dir/good.ptx" "$dir/good.ptx"
holds cmp "$dir/kept.ptx" "$dir/good.ptx"
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
[ ! -c /dev/zero ] || fails "'/dev/zero': it does not end within 256 MiB" check /dev/zero
usage "there is no target 'sm_1'" check --arch sm_1 "$dir/good.ptx"
{ cat "$dir/good.ptx"; echo '.entry j() {'; yes 'bra;' | head -n 1500; echo '}'; } >"$dir/wrong.ptx"
fails "wrong.ptx: stopped after 1000 errors, and read no further" check "$dir/wrong.ptx"
holds test "$(grep -c ' error: ' "$err")" -eq 1000
fails "wrong.ptx: stopped after 1000 errors" fmt "$dir/wrong.ptx"
fails ": error: " check --errors 2000 "$dir/wrong.ptx"
holds test "$(grep -c ' error: ' "$err")" -eq 1500
if grep -qF stopped "$err"; then bad "$what: it did not stop"; else ok; fi
# Errors of reading and of the target count together, and are printed by their places
{ printf '.version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n'
  printf 'bra;\nbra;\nret; }\n'; } >"$dir/both.ptx"
grep -v '^bra;' "$dir/both.ptx" >"$dir/lacks.ptx"
for n in 1 2 3; do
	fails "both.ptx:5:1: error: " check -e $n "$dir/both.ptx"
	holds test "$(grep -c ' error: ' "$err")" -eq $n
	holds test "$(grep -c 'stopped after' "$err")" -eq 1
done
fails "both.ptx:8:" check -e 4 "$dir/both.ptx"
holds test "$(grep -c ' error: ' "$err")" -eq 4
fails "lacks.ptx: stopped after 1 errors" check -e 1 "$dir/lacks.ptx"
holds test "$(grep -c ' error: ' "$err")" -eq 1
fails "lacks.ptx:6:1: error: " check -e 2 "$dir/lacks.ptx"
if grep -qF stopped "$err"; then bad "$what: nothing was left out"; else ok; fi
fails "lacks.ptx: stopped after 1 errors" check -e 1 -a sm_80 -a sm_86 "$dir/lacks.ptx"
holds test "$(grep -c ' error: ' "$err")" -eq 1
usage "--errors 0: a number from 1 on" check --errors 0 "$dir/good.ptx"

# ---- what is no PTX, and streams that are not there ----
{ echo '// in front'; cat "$dir/good.ptx"; } | tr '\n' '\r' >"$dir/cr.ptx"
fails "cr.ptx:1:1: error: the text is one comment, for its lines end in CR alone" check "$dir/cr.ptx"
sed 's/./&\x00/g; s/$/\x00/' "$dir/good.ptx" >"$dir/wide.ptx"
fails "wide.ptx:1:1: error: the text is UTF-16; PTX is ASCII" check "$dir/wide.ptx"
printf '\0' >"$dir/nul.ptx"
for command in check fmt to-c inspect; do fails "nul.ptx:1:1: error: PTX text begins with .version, such as .version 8.0; found a NUL byte" $command "$dir/nul.ptx"; done
for command in compile run; do fails "nul.ptx:1: a NUL byte" $command "$dir/nul.ptx"; done
mkfifo "$dir/fifo.ptx"
for command in check fmt to-c; do
	cat "$dir/good.ptx" >"$dir/fifo.ptx" &
	status 0 $command "$dir/fifo.ptx"
done
what="cptx fmt >&-"
"$cptx" fmt "$dir/good.ptx" >&- 2>"$err"
holds test $? -eq 1
complains "cannot write to standard output"
what="cptx check - <&-"
"$cptx" check - <&- 2>"$err"
holds test $? -eq 1
complains "cannot read"
what="cptx run --trace >&-"
"$cptx" run -b 1 --trace "$dir/t.json" --counters "$dir/good.ptx" >&- 2>"$err"
holds test $? -eq 1
if grep -q '^instructions' "$dir/t.json"; then bad "$what: the output is in the timeline"; else ok; fi
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
	what="cptx diff >/dev/full"
	"$cptx" diff "$dir/good.ptx" "$dir/good.ptx" >/dev/full 2>"$err"
	holds test $? -eq 2
else
	skip "there is no /dev/full"
fi

# ---- run: on the emulator ----
cat >"$dir/scale.ptx" <<'S'
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 a, .param .u32 n)
.reqntid 64
{
	.reg .pred %p;
	.reg .b32 %r<4>;
	.reg .f32 %f<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [x];
	ld.param.f32 %f1, [a];
	ld.param.u32 %r3, [n];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %tid.x;
	mad.lo.u32 %r1, %r1, 64, %r2;
	setp.ge.u32 %p, %r1, %r3;
	@%p ret;
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd2, %rd1, %rd2;
	ld.global.f32 %f2, [%rd2];
	mul.f32 %f2, %f2, %f1;
	st.global.f32 [%rd2], %f2;
	ret;
}
S
# Each thread stores and reads what another one stored, with no barrier between.
cat >"$dir/race.ptx" <<'S'
.version 8.0
.target sm_80
.address_size 64
.visible .entry race(.param .u64 x)
.reqntid 64
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	.shared .b32 kept;
	ld.param.u64 %rd1, [x];
	mov.u32 %r1, %tid.x;
	st.shared.u32 [kept], %r1;
	ld.shared.u32 %r2, [kept];
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd2, %rd1, %rd2;
	st.global.u32 [%rd2], %r2;
	ret;
}
S
scale() { # N: how many elements of 100 it may scale; then more options
	n=$1
	shift
	echo run "$dir/scale.ptx" -g 2 -a "buf:f32[100]=iota" -a f32:2 -a "u32:$n" "$@"
}
# shellcheck disable=SC2046 # the words of scale
{
	status 0 $(scale 100 --out "0=$dir/y.bin")
	silent "$out"
	silent "$err"
	holds test "$(od -An -v -tf4 "$dir/y.bin" | awk '{ for (i = 1; i <= NF; i++) bad += $i != 2 * n++ } END { print n, bad + 0 }')" = "100 0"
	status 0 $(scale 100 --compare emu:sm_120a)
	says "argument 0: 100 elements equal"
	status 0 $(scale 100 --schedules 5 --counters --schedule late --threads 2)
	says "global        400 bytes read, 400 written"
	status 0 $(scale 100 --trace "$dir/trace.json" --no-progress)
	silent "$err"
	holds test "$(grep -c '"name":"run"' "$dir/trace.json")" -ge 4
	holds test "$(grep -c '"name":"process_name","args":{"name":"block 1,0,0"}' "$dir/trace.json")" -eq 1
	usage "--trace: of one run on the emulator" $(scale 100 --trace "$dir/trace.json" --schedules 2)
	fails "cannot write '$dir/no/trace.json'" $(scale 100 --trace "$dir/no/trace.json")
	fails "scale.ptx:21: kernel scale, ld.global.f32, block (1, 0, 0), thread (36, 0, 0): out-of-bounds: 4 bytes" $(scale 101 -o "0=$dir/some.bin")
	complains "cptx run: $dir/some.bin has what the kernel left of argument 0, in spite of what was found"
	holds test "$(od -An -v -tf4 "$dir/some.bin" | awk '{ for (i = 1; i <= NF; i++) { bad += $i != 2 * n && $i != n; n++ } } END { print n, bad + 0 }')" = "100 0"
	fails "an emulated sm_75 cannot run code for sm_80" $(scale 100 -d emu:sm_75 -o "0=$dir/no.bin")
	holds test ! -e "$dir/no.bin"
	long=$(printf 'many_%.0s' $(seq 180))
	sed "s/entry scale/entry $long/" "$dir/scale.ptx" >"$dir/long.ptx"
	fails "kernel many_many_many_" run "$dir/long.ptx" -g 2 -a "buf:f32[100]=iota" -a f32:2 -a u32:101
	complains "cptx run: the kernel is $long"
	holds test "$(grep -c "$long" "$err")" -eq 1
	holds test "$(grep 'out-of-bounds' "$err" | wc -c)" -lt 400
	fails '{"code":"out-of-bounds","rank":"error","kernel":"scale","instruction":"ld.global.f32","file":' $(scale 101 --finding-format json)
	complains '"line":21,"block":[1,0,0],"thread":[36,0,0],"count":1,"seed":0,"text":"kernel scale, '
	holds test "$(wc -l <"$err")" -eq 1
	fails "out-of-bounds" $(scale 101 --compare emu:sm_120a)
	fails "an emulated sm_75 cannot run code for sm_80" $(scale 100 -d emu:sm_75)
	usage 'there is no target "sm_91" to emulate' $(scale 100 -d emu:sm_91)
	fails "/nonexistent/libcuda.so.1" $(scale 100 -d cuda:0)
	usage "--out 1:y.bin: expected the number of an argument, =, and a file, as in 0=y.bin" $(scale 100 -o 1:y.bin)
	usage "argument 1 is no buffer" $(scale 100 -o 1=y.bin)
	usage "argument 3 is no buffer" $(scale 100 -o 3=y.bin)
}
cat >"$dir/pair.ptx" <<'S'
.version 8.0
.target sm_80
.address_size 64
.visible .entry pair(.param .align 4 .b8 two[8], .param .u64 out)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd1;
	ld.param.u32 %r0, [two];
	ld.param.u32 %r1, [two+4];
	ld.param.u64 %rd1, [out];
	sub.u32 %r2, %r1, %r0;
	st.global.u32 [%rd1], %r2;
	ret;
}
S
status 0 run "$dir/pair.ptx" -b 1 -a "mem:u32[4]" -a "bytes:u32[2]=iota" -a "buf:u32[1]" -o "2=$dir/one.bin"
holds test "$(od -An -tu4 "$dir/one.bin" | tr -d ' ')" = 1
# A warning: the launch succeeds, and says it once.
cat >"$dir/exit.ptx" <<'S'
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x)
.reqntid 32
{
	.reg .pred %p;
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	.shared .align 16 .b8 s[128];
	ld.param.u64 %rd1, [x];
	mov.u32 %r1, %tid.x;
	setp.eq.u32 %p, %r1, 0;
	@!%p bra out;
	st.shared.v4.u32 [s], {%r1, %r1, %r1, %r1};
	fence.proxy.async;
	cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 16;
	cp.async.bulk.commit_group;
	cp.async.bulk.global.shared::cta.bulk_group [%rd1+16], [s], 16;
	cp.async.bulk.commit_group;
out:
	ret;
}
S
status 0 run "$dir/exit.ptx" -a "buf:u32[8]=iota" --schedules all --no-progress
complains "its only order is right"
usage "--order: of the orders that --schedules all tries, beside that" run "$dir/exit.ptx" -a "buf:u32[8]=iota" --order 1
status 0 run "$dir/exit.ptx" -a "buf:u32[8]=iota" --schedules 5 -o "0=$dir/exit.bin" --no-progress
complains "warning: stores-at-exit: the thread ends, but has not waited for its bulk group 2"
complains "PTX manual, cp.async.bulk.wait_group: "
complains "cptx run: GPUs take what is a warning; --pedantic makes it an error"
holds test "$(wc -l <"$err")" -eq 2
holds test "$(od -An -v -tu4 "$dir/exit.bin" | tr -s ' \n' ' ')" = " 0 0 0 0 0 0 0 0 "
status 0 run "$dir/exit.ptx" -a "buf:u32[8]=iota" --finding-format json
complains '{"code":"stores-at-exit","rank":"warning","kernel":"k","instruction":"ret"'
fails "stores-at-exit: the thread ends" run "$dir/exit.ptx" -a "buf:u32[8]=iota" --pedantic
holds test "$(grep -c warning "$err")" -eq 0
fails "argument 0 is an object of 12 bytes" run "$dir/pair.ptx" -b 1 -a "bytes:u32[3]" -a "buf:u32[1]"
fails "race.ptx:12: kernel race, st.shared.u32, block (0, 0, 0), thread (" run "$dir/race.ptx" -a "buf:u32[64]=zero" --schedules 20 --seed 7
complains ": race: it writes 4 bytes of shared memory"
complains "cptx run: seed 7 fails; --seed 7 repeats it"
printf '.version 8.0\n.target sm_80\n.entry k() {\nL: bra L;\n}\n' >"$dir/forever.ptx"
fails "cptx run: kernel k: no block is given, and the kernel has no .reqntid to take it from" run "$dir/forever.ptx"
fails "step-limit" run "$dir/forever.ptx" --block 1 --step-limit 1000
fails "step-limit" run "$dir/forever.ptx" --block 1 --step-limit 1000 --device emu --trace "$dir/forever.json"
usage "--threads 0: expected a number from 1 on" run "$dir/forever.ptx" --threads 0
# what check refuses does not run; in the second file two kinds of instruction watch the others
for target in sm_80 sm_90a; do
	{
		printf '.version 8.8\n.target %s\n.entry k() {\n.reg .b32 %%r<3>; .reg .b64 %%d; .reg .f32 %%f<4>; .reg .pred %%p;\n' $target
		printf 'mov.u32 %%r1, 0; mov.u64 %%d, 0; setp.eq.u32 %%p, %%r1, 0;\n'
		[ $target = sm_80 ] || printf 'wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 '
		[ $target = sm_80 ] || printf '{%%f0, %%f1, %%f2, %%f3}, %%d, %%d, %%p, 1, 1, 0, 0;'
		printf '\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%%r2}, [%%r1];\nret;\n}\n'
	} >"$dir/tcgen05.ptx"
	fails "tcgen05.ptx:7:1: error: tcgen05.ld.sync.aligned.32x32b.x1.b32 is not available on $target" check "$dir/tcgen05.ptx"
	fails "tcgen05.ptx:7:1: error: tcgen05.ld.sync.aligned.32x32b.x1.b32 is not available on $target" run "$dir/tcgen05.ptx" -b 128 --step-limit 1000
done
usage '"tpu:0" is no device name' run "$dir/forever.ptx" --device tpu:0
usage "--step-limit 0: expected a number from 1 on" run "$dir/forever.ptx" --step-limit 0
usage "--compare: of one run on each device, so without --schedules" run "$dir/forever.ptx" --compare emu:sm_90 --schedules 2
{ cat "$dir/forever.ptx"; echo '.entry j() { ret; }'; } >"$dir/several.ptx"
fails "several.ptx' has several kernels, \"k\" and \"j\" among them; choose one by --entry" run "$dir/several.ptx" -b 1
{ cat "$dir/several.ptx"; printf '\0\0'; } >"$dir/behind.ptx"
status 0 run "$dir/behind.ptx" -e j -b 1
{ cat "$dir/several.ptx"; printf '\0\n'; } >"$dir/within.ptx"
fails "within.ptx:7: a NUL byte" run "$dir/within.ptx" -e j -b 1
fails "cptx run: '/dev/null' is empty" run /dev/null
fails "$dir/nothing.ptx" run "$dir/nothing.ptx"
fails "$dir/bad.ptx" run "$dir/bad.ptx"
usage "give one PTX file" run
usage "give one PTX file" run "$dir/scale.ptx" "$dir/race.ptx"
usage "--grid 0: expected one to three numbers from 1 on, as in 4,2,1" run --grid 0 "$dir/scale.ptx"
usage "--block 1,2,3,4: expected" run --block 1,2,3,4 "$dir/scale.ptx"
usage "--schedule soon: expected random, eager, late, parted or held" run --schedule soon "$dir/scale.ptx"
usage "--seed -1: expected a number" run --seed -1 "$dir/scale.ptx"
usage "--finding-format xml: expected text or json" run --finding-format xml "$dir/scale.ptx"
for value in u32 u33:1 u32:x u8:256 'buf:f32[4]=seven' 'buf:f32=zero' 'buf:f32[0]=zero' ""; do
	usage "--arg $value: " run --arg "$value" "$dir/scale.ptx"
done

# ---- tmem-width ----
status 0 tmem-width --width 64 --arch sm_103a
says "tcgen05.ld.sync.aligned.32x32b.x64.b32"
says ".target sm_103a"
status 0 tmem-width --width 1 --columns 128 -o "$dir/width.ptx"
holds test "$(grep -c '^	tcgen05.ld.sync.aligned.32x32b.x1.b32' "$dir/width.ptx")" = 128
usage "--width 3: a power of two from 1 to 128" tmem-width --width 3
usage "--width 256: a power of two from 1 to 128" tmem-width --width 256
usage "--columns 96: 128, 256 or 512" tmem-width --columns 96
usage "there is no target 'sm_9'" tmem-width --arch sm_9
usage "tensor memory is not available on sm_90a; sm_100a and sm_103a have it. Instead: accumulators of wgmma" tmem-width --arch sm_90a
usage "not available on sm_120a; sm_100a and sm_103a have it. Instead: accumulators of mma.sync, which are registers" tmem-width --arch sm_120a -w 8
usage "sm_120a has no tcgen05; sm_100a and sm_103a have. Instead: mma.sync" gemm -M tcgen05 -a sm_120a
usage "--output needs --width" tmem-width -o "$dir/width.ptx"
usage "what is 'left'?" tmem-width left
usage "is not available on sm_90a" tmem-width --width 8 --arch sm_90a
export CPTX_PTXAS=/nonexistent
fails "there is no ptxas: CPTX_PTXAS names /nonexistent" tmem-width
unset CPTX_PTXAS
if "$cptx" tmem-width --columns 128 --arch sm_103a >"$out" 2>"$err"; then
	what="cptx tmem-width"
	says "all widths right on the emulated sm_100a"
	holds grep -qE '^  x1    no +(128|\?) ' "$out"
	holds grep -qE '^  x128  yes +(1|\?) ' "$out"
	holds grep -qE '^(  take x[0-9]+; with -g-tmem-access-check x[0-9]+|no nvdisasm .*)$' "$out"
elif grep -q "there is no ptxas" "$err"; then
	skip "ptxas, to ask about widths"
else
	what="cptx tmem-width"
	bad "it failed"
fi

# ---- layout and desc ----
status 0 layout --tile 16x64 --swizzle 128B --read mma-a
says "tile 16x64 of 16 bits, K-major, swizzle 128B: 2048 bytes, aligned to 1024"
says "tensor map: 1 boxes of 64x16 elements, 2048 bytes each; expect_tx 2048"
says "4 turns for 4 phases, no bank conflict"
says "    1:   [4 l1]  [0 l17]       12        8       20       16       28       24"
status 0 layout --tile 16x64 --pitch 128 --read mma-a
says "32 turns for 4 phases, 8-way bank conflicts"
status 0 layout --tile 64x64 --swizzle 128B --major mn --read mma-b --at 16x16
says "ldmatrix .x2.trans of mma B: 2 turns for 2 phases, no bank conflict"
status 0 layout --frag mma-c --type f32
says "mma C m16n8k16: 16x8 elements of 32 bits, 32 lanes with 4 registers of 1"
says "   15: 28:2 28:3 29:2 29:3 30:2 30:3 31:2 31:3"
# ---- what stands in a file does not drive the terminal ----
escape=$(printf '\033')
for text in ".pragma \"a${escape}[31mb\";" ".frob${escape}[31m" ".file 1 \"a${escape}[31m.cu\" .entry k() { .loc 1 2 3 frob; }" \
	".entry k() .pragma \"a${escape}[31m\"; { ret; }" ".entry k() { .pragma \"a${escape}[31m\"; .frob${escape}; }" \
	"// in${escape}front
.entry k() { /* a${escape}[31mb
c${escape} */ ret; // d${escape}e
}"; do
	printf '.version 8.0\n.target sm_80\n.address_size 64\n%s\n' "$text" >"$dir/control.ptx"
	cp "$dir/control.ptx" "$dir/control$escape.ptx"
	commands='check run to-c inspect compile'
	case $text in *//*) commands="$commands fmt" ;; esac # a string stays what it is
	for command in $commands "diff $dir/control.ptx"; do
		for file in "$dir/control.ptx" "$dir/control$escape.ptx"; do
			what="cptx $command of $text"
			# shellcheck disable=SC2086 # words
			"$cptx" $command "$file" >"$out" 2>"$err"
			cat "$err" >>"$out"
			if LC_ALL=C grep -q "$escape" "$out"; then bad "$what"; else ok; fi
		done
	done
done
status 0 layout --frag wgmma-d --shape 64x96x16
says "64x96 elements of 32 bits, 128 lanes with 48 registers of 1"
status 0 layout --frag wgmma-d --shape 64x96x16 --type f16
says "64x96 elements of 16 bits, 128 lanes with 24 registers of 2"
status 0 layout --frag tmem-d --shape 128x64x16
says "elements of 32 bits"
status 0 layout --tile 8x64 --svg "$dir/tile.svg"
silent "$out"
holds grep -q '^</svg>$' "$dir/tile.svg"
holds test "$(grep -c '<rect x=' "$dir/tile.svg")" -eq 64
usage "a tile (--tile 64x64) or a fragment (--frag mma-a) is needed, one of both" layout
usage "--frag mma-d: there is no such fragment" layout --frag mma-d
usage "--type x: expected a type" layout --type x
usage "--at 3: expected two numbers, as in 0x16" layout --at 3
usage "--at -16x0: expected two numbers" layout --tile 16x64 --read mma-a --at=-16x0
usage "--pitch 0: expected a number from 1 to 65536" layout --tile 16x64 --pitch 0
usage "--num says nothing about this fragment; it goes with ldmatrix, stmatrix and tcgen05" layout --frag mma-a --num 2
usage "--trans says nothing about this fragment" layout --tile 16x64 --read mma-a --trans
status 0 layout --frag mma-a --shape 8x8x4 --trans
usage "--sparse says nothing about a tile; it goes with --frag or --read" layout --tile 16x64 --sparse
usage "--at says nothing about a tile; it goes with --read" layout --tile 16x64 --at 0x0
usage "--swizzle says nothing about a fragment; it goes with --tile" layout --frag mma-a --swizzle 128B
usage "--swizzle 256B: expected one of none 32B 64B 128B" layout --swizzle 256B
usage "it is always m64 (--shape is 16x8x16 unless it is given)" layout --frag wgmma-d
status 0 layout --tile 64x64 --read wgmma-d --shape 64x64x16
says "stmatrix .x4 of wgmma D"
usage "--major m" layout --major m
usage "no m16n8k12 with elements of 8 bits; k is a power of two from 16 to 32" layout --frag mma-a --shape 16x8x12 --type u8
usage "swizzle 128B" layout --tile 8x8 --swizzle 128B
usage "exceed the tile of 16x64" layout --tile 16x64 --read mma-a --at 8x0
fails "cannot write" layout --tile 8x64 --svg "$0/x.svg" # below a file, which root cannot either
status 0 desc tcgen05 0x4000404000010040
says "start 0x400, lbo 16, sbo 1024, swizzle 128B (the pattern repeats every 1024 bytes)"
says "  46-48   version         1               always 1"
status 0 desc wgmma start=0x400 sbo=1024 swizzle=128B
says "0x4000004000000040"
status 0 desc f16 a=bf16 b=bf16 d=f32 m=256 n=256 ctas=2
says "0x10400490"
says "D f32 256x256 = A bf16 K-major * B bf16 K-major, 16 elements along k"
status 0 desc mxf4 a=e2m1 b=e2m1 m=128 n=64 scale=ue8m0
says "D f32 128x64 = A e2m1 K-major * B e2m1 K-major"
status 0 desc mxf8f6f4 a=e4m3 b=e5m2 d=f32 m=128 n=64 scale=ue8m0
usage "there is no kind 'f15'; kinds are wgmma tcgen05 tf32" desc f15
usage "swizzle=9: there is no such swizzle; there are none 32B" desc wgmma swizzle=9
usage "D of kind mxf4 is f32" desc mxf4 a=e2m1 b=e2m1 d=f16 m=128 n=64 scale=ue8m0
usage "start= beside a word, which says it itself" desc wgmma 0x1 start=0x400
usage "m= beside a word" desc f16 m=64 0x8400410
status 0 desc f16 0x8400410 ctas=2 ws=no
status 0 desc i8
says "  3       saturate        D is saturated"
fails "kind f16: bit 6 is 1; it must be 0" desc f16 0x8400450
says "  17-22   n               32     256      N"
usage "M = 96; with cta_group::1 it is 64 or 128" desc f16 a=f16 b=f16 d=f32 m=96 n=8
usage "which kind of descriptor?" desc
usage "there is no kind 'mma'" desc mma
usage "there is no field 'scale'" desc f16 scale=ue8m0
usage "start=x: a number from 0 to" desc wgmma start=x
usage "'0x123456789' is no word of 32 bits in hexadecimal" desc f16 0x123456789
usage "two words" desc f16 1 2
usage "start= is given twice" desc wgmma start=1024 sbo=1024 start=2048

# ---- run: tensor maps ----
cat >"$dir/box.ptx" <<'EOT'
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 src, .param .align 64 .b8 map[128], .param .u64 dst)
{
	.reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .pred %p<4>;
	.shared .align 1024 .b8 data[8192];
	.shared .align 8 .b64 bar;
	mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, data; mov.u32 %r2, bar;
	mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0;
	@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;
	@%p0 fence.mbarrier_init.release.cluster;
	bar.sync 0;
	@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 8192;
	mov.u32 %r3, 32; mov.u32 %r4, 16;
	@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd0, {%r3, %r4}], [%r2];
wait:
	mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
	@!%p1 bra wait;
	ld.param.u64 %rd1, [dst];
	shl.b32 %r5, %r0, 2; add.u32 %r6, %r1, %r5; cvt.u64.u32 %rd2, %r5; add.u64 %rd1, %rd1, %rd2;
	mov.u32 %r8, 0;
copy:
	ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd1], %r7; add.u32 %r6, %r6, 512; add.u64 %rd1, %rd1, 512;
	add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 16; @%p2 bra copy;
	ret;
}
EOT
map=type=bf16,dims=256x512,box=64x64,swizzle=128
status 0 run "$dir/box.ptx" -b 128 -a "buf:u16[131072]=iota" -a "tmap:0,$map" -a "buf:u16[4096]" -o "2=$dir/box.bin" --counters
says "asynchronous  8192 bytes copied"
what="the second row of the box, swizzled"
holds test "$(od -A n -j 144 -t u2 -N 4 "$dir/box.bin" | tr -s ' ')" = " 4384 4385"
usage "argument 3 is no buffer" run "$dir/box.ptx" -a "buf:u16[64]" -a "tmap:3,$map"
usage "expected 1 numbers with x between them" run -a "tmap:0,type=bf16,dims=256,box=64x64" "$dir/box.ptx"
usage "type=b1: there is no such type" run -a "tmap:0,type=b1,dims=256,box=64" "$dir/box.ptx"
usage "swizzle=7: expected none, 32, 64, 128" run -a "tmap:0,swizzle=7" "$dir/box.ptx"
usage "there is no size=" run -a "tmap:0,size=7" "$dir/box.ptx"
usage "dims= must stand before box=" run -a "tmap:0,box=7" "$dir/box.ptx"
usage "CHANNELSxPIXELS:LOWER:UPPER" run -a "tmap:0,type=bf16,dims=64x8x8x2,im2col=64x32:-1:1" "$dir/box.ptx"
usage "it is at most 64 bytes (32 elements)" run -a "tmap:0,$map,swizzle=64" "$dir/box.ptx"
usage "K being the number of a buffer argument" run -a "tmap:,$map" "$dir/box.ptx"

summary
