#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # $ in single quotes is meant for sed
# cptx inspect and cptx diff, from the outside: test_inspect.sh CPTX CORPUS/README.md
# What needs ptxas, a disassembler or Chromium is skipped where there is none, and says so.
set -u
cptx=$1 corpus=$(dirname "$2")
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0

ok() { # ok WHAT COMMAND...
	what=$1
	shift
	if "$@" >"$dir/said" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $what"
		tail -n 20 "$dir/said"
	fi
}
skip() {
	skipped=$((skipped + 1))
	echo "SKIP $1"
}
has() { grep -qE -e "$1" "$2"; }
status() { # status N COMMAND...
	want=$1
	shift
	"$@" >"$dir/out" 2>&1
	got=$?
	[ "$got" -eq "$want" ] || { echo "status $got, not $want"; cat "$dir/out"; return 1; }
}

# ---- without ptxas: estimates, which say that they are ----
"$cptx" gemm --arch sm_90a --lines -o "$dir/gemm.ptx" >"$dir/said" 2>&1
CPTX_PTXAS=/nowhere "$cptx" inspect "$dir/gemm.ptx" >"$dir/estimate" 2>&1
ok "an estimate says so" has 'registers .*[0-9]+ \(estimate\)' "$dir/estimate"
ok "and why" has 'note: .*no ptxas' "$dir/estimate"
ok "the hottest loop is known by its C line" has 'hottest loop .*src/gemm/[a-z0-9]+/[a-z]+\.c:[0-9]+ .*[1-9][0-9]* of its [0-9]+ instructions are tensor' "$dir/estimate"
ok "the stages of its ring" has 'shared_0\+0, 4 stages of 1 arrival; expect in line [0-9]+; copy in line [0-9]+, [0-9]+; wait in line [0-9]+, [0-9]+$' "$dir/estimate"
ok "and who gives them back" has 'shared_0\+32, 4 stages of 2 arrivals; arrive in line [0-9]+, [0-9]+; wait in line' "$dir/estimate"
ok "no file" status 1 "$cptx" inspect "$dir/none.ptx"
ok "no operand" status 2 "$cptx" inspect
ok "no target" status 2 "$cptx" inspect --arch sm_1 "$dir/gemm.ptx"
printf '\177ELFnothing' >"$dir/bad.cubin"
ok "a bad cubin" status 1 "$cptx" inspect "$dir/bad.cubin"
ok "why" has 'takes 64 bytes, and there are 11: the cubin is truncated' "$dir/out"
printf 'add.u32 a, b;\n' >"$dir/bad.ptx"
ok "bad PTX" status 1 "$cptx" inspect "$dir/bad.ptx"

# ---- sources, and what is in them ----
CPTX_PTXAS=/nowhere
export CPTX_PTXAS
mkdir "$dir/other" "$dir/beside"
mkfifo "$dir/beside/pipe.cu"
{ printf '// caf\351 \303\251 '; head -c 3000 /dev/zero | tr '\0' x; printf 'END\nint secret;\n'; } >"$dir/beside/k.cu"
cp "$dir/beside/k.cu" "$dir/other/private.cu"
i=1
printf '.version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .b8 s[];\n.entry k() .maxntid 128 {\n' >"$dir/beside/k.ptx"
while [ $i -lt 4 ]; do
	printf '.loc %s 1 0\nbar.sync 0;\n' $i >>"$dir/beside/k.ptx"
	i=$((i + 1))
done
printf 'ret; }\n.file 1 "%s"\n.file 2 "%s"\n.file 3 "%s"\n' "$dir/beside/k.cu" "$dir/beside/pipe.cu" "$dir/other/private.cu" >>"$dir/beside/k.ptx"
cat >"$dir/sources.py" <<'E'
import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
lines = {s["name"].split("/")[-1]: s["lines"] for s in d["sources"]}
assert lines["k.cu"][0].startswith("// caf\u00e9 \u00e9 xxx") and lines["k.cu"][0].endswith("xEND"), lines["k.cu"]
assert lines["pipe.cu"] == [] and bool(lines["private.cu"]) == (sys.argv[2] == "all"), lines
assert len(d["origin"]) == len(d["ptx"]) and not d["kernels"][0]["dynamic_smem_given"]
E
for which in beside all; do
	option=''
	[ $which = beside ] || option=--sources
	# shellcheck disable=SC2086 # no option is none
	ok "sources: $which" "$cptx" inspect --json $option "$dir/beside/k.ptx"
	cp "$dir/said" "$dir/json"
	if command -v python3 >/dev/null; then
		ok "are JSON: $which" python3 "$dir/sources.py" "$dir/json" $which
	else
		skip "are JSON: python3"
	fi
done
ok "what is assumed" status 0 "$cptx" inspect "$dir/beside/k.ptx"
ok "is said" has 'assumed +no dynamic shared memory, though some is declared' "$dir/out"
ok "--smem" status 0 "$cptx" inspect --smem 100000 "$dir/beside/k.ptx"
ok "counts" has 'occupancy +2 CTAs of 128 threads' "$dir/out"
cp "$dir/out" "$dir/report"
ok "and nothing is assumed" status 1 grep assumed "$dir/report"
printf 'P\355U\272rest' >"$dir/k.fatbin"
ok "a fat binary" status 1 "$cptx" inspect "$dir/k.fatbin"
ok "is named" has 'neither PTX nor a cubin, but a fat binary' "$dir/out"

# ---- diff, of the PTX alone ----
sed 's/%rd\([0-9]\)/%q\1/g; s/%rd</%q</; s/\$L\([0-9]\)/$there_\1/g' "$dir/gemm.ptx" >"$dir/renamed.ptx"
sed 's/%tid.x/%tid.y/' "$dir/gemm.ptx" >"$dir/other.ptx"
ok "the same" status 0 "$cptx" diff "$dir/gemm.ptx" "$dir/gemm.ptx"
ok "other names are the same" status 0 "$cptx" diff "$dir/gemm.ptx" "$dir/renamed.ptx"
ok "another special register is not" status 1 "$cptx" diff "$dir/gemm.ptx" "$dir/other.ptx"
ok "which is shown" has '^\+ mov.u32 %r[0-9]+, %tid.y;' "$dir/out"
printf '.version 8.0\n.target sm_90\n.address_size 64\n.const .u32 t[2] = { 1, 2 };\n.entry k() { ret; }\n' >"$dir/table.ptx"
sed 's/{ 1, 2 }/{ 7, 2 }/' "$dir/table.ptx" >"$dir/table7.ptx"
sed 's/sm_90/sm_90a/' "$dir/table.ptx" >"$dir/table90a.ptx"
ok "another table is not" status 1 "$cptx" diff "$dir/table.ptx" "$dir/table7.ptx"
ok "another target is not" status 1 "$cptx" diff "$dir/table.ptx" "$dir/table90a.ptx"
{ printf '.version 8.0\n.target sm_90\n.address_size 64\n.entry k() {\n.reg .b32 %%r<3>;\n'; i=0
	while [ $i -lt 9000 ]; do echo "add.u32 %r1, %r2, $i;"; i=$((i + 1)); done; echo 'ret; }'; } >"$dir/long.ptx"
sed 's/, 4500;/, 4499;/' "$dir/long.ptx" >"$dir/long1.ptx"
ok "one line of many" sh -c '"$1" diff -b "$2" "$3" | grep -q "^PTX: 1 lines only in the first, 1 only in the second, 0"' sh \
	"$cptx" "$dir/long.ptx" "$dir/long1.ptx"
awk '/^add/ && ++n % 100 == 1 { sub(", [0-9]+;", ", 70000;") } { print }' "$dir/long.ptx" >"$dir/long90.ptx"
ok "many lines of many" sh -c '"$1" diff -b "$2" "$3" | grep -q "^PTX: 90 lines only in the first, 90 only in the second, 0"' sh \
	"$cptx" "$dir/long.ptx" "$dir/long90.ptx"
name=%$(head -c 150 /dev/zero | tr '\0' n)
two_bodies() { # two_bodies REGISTER REGISTER REGISTER REGISTER PRAGMA
	printf '.version 8.0\n.target sm_90\n.address_size 64\n.global .u32 g;\n.entry j() { .reg .u32 %s, %s;\nmov.u32 %s, 1;\nmov.u32 %s, 2;\n' "$1" "$2" "$1" "$2"
	printf 'st.global.u32 [g], %s;\nret; }\n.entry k() { .reg .u32 %s, %s;\n%s\nmov.u32 %s, 1;\n{ .reg .u32 %s; mov.u32 %s, 2;\n' "$1" "$3" "$4" "$5" "$3" "$4" "$4"
	printf 'st.global.v2.u32 [g], { %s, %s }; }\nret; }\n' "$3" "$4"
}
two_bodies "${name}1" "${name}2" "%a" "%b" "" >"$dir/two.ptx"
two_bodies "%x" "%y" "%y" "%x" "" >"$dir/two_renamed.ptx"
sed "s/u32 ${name}2, 2/u32 ${name}1, 2/" "$dir/two.ptx" >"$dir/two_long.ptx"
two_bodies "%x" "%y" "%y" "%x" '.pragma "nounroll";' >"$dir/two_pragma.ptx"
sed 's/{ %y, %x }/{ %x, %y }/' "$dir/two_renamed.ptx" >"$dir/two_turned.ptx"
ok "each body has names of its own" status 0 "$cptx" diff "$dir/two.ptx" "$dir/two_renamed.ptx"
ok "long names are not cut" status 1 "$cptx" diff "$dir/two.ptx" "$dir/two_long.ptx"
ok "a pragma is seen" status 1 "$cptx" diff "$dir/two.ptx" "$dir/two_pragma.ptx"
ok "as it was written" has '^\+ \.pragma "nounroll";' "$dir/out"
ok "elements of a vector" status 1 "$cptx" diff "$dir/two.ptx" "$dir/two_turned.ptx"
ok "trouble" status 2 "$cptx" diff "$dir/gemm.ptx" "$dir/none.ptx"
cat >"$dir/names.ptx" <<'EOF'
.version 8.0
.target sm_80
.address_size 64
.func (.reg .b32 r) f(.reg .b32 x, .reg .b32 y) { .reg .b32 t; sub.s32 t, x, y; mov.b32 r, t; ret; }
.visible .entry k(.param .u64 p, .param .u32 n) {
.reg .b64 a, b; .reg .b32 u, v, w; .reg .pred q;
ld.param.u64 a, [p];
ld.param.u32 u, [n];
setp.lt.u32 q, v, u;
@q bra one;
here: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);
mov.u64 b, f;
call (w), b, (u, v), here;
all: .branchtargets one, two;
brx.idx w, all;
one: st.global.u32 [a], w;
two: ret;
}
EOF
# swap A B NEW: exchanges two words of the text
swap() { sed "s/\\b$1\\b/#/g; s/\\b$2\\b/$1/g; s/#/$2/g"; }
swap u v <"$dir/names.ptx" | swap a b | swap one two | swap x y | sed 's/here/there/; s/\ball\b/each/; s/\bq\b/other/g; s/\bt\b/sum/g' >"$dir/swapped.ptx"
ok "names of all kinds" status 0 "$cptx" diff "$dir/names.ptx" "$dir/swapped.ptx"
different() { # different WHAT SED
	sed "$2" "$dir/swapped.ptx" >"$dir/changed.ptx"
	ok "$1" status 1 "$cptx" diff "$dir/names.ptx" "$dir/changed.ptx"
}
different "the parameters of a function in another order" 's/f(.reg .b32 y, .reg .b32 x)/f(.reg .b32 x, .reg .b32 y)/'
different "another register in one place" 's/setp.lt.u32 other, u, v/setp.lt.u32 other, u, u/'
different "one register for two" 's/mov.u64 a, f/mov.u64 b, f/; s/call (w), a/call (w), b/'
different "another target of a branch" 's/bra two/bra one/'
different "another list of targets" 's/branchtargets two, one/branchtargets one, two/'
different "another prototype" 's/callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _)/callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .f32 _)/'
# debug information: labels that no instruction names, and what stands in sections
awk '/^one:/ { print "$L__tmp0:" } { print } /^ld.param.u64/ { print ".loc 1 4 2, function_name $L__info_string0, inlined_at 1 3 9" }' \
	"$dir/names.ptx" >"$dir/debug.ptx"
cat >>"$dir/debug.ptx" <<'EOF'
.file 1 "k.cu"
.section .debug_str
{
$L__info_string0:
.b8 95,90,49,103,102,0
}
EOF
ok "debug information is no difference" status 0 "$cptx" diff "$dir/names.ptx" "$dir/debug.ptx"
echo '.global .u32 behind;' >>"$dir/debug.ptx"
ok "what stands behind it is" status 1 "$cptx" diff "$dir/names.ptx" "$dir/debug.ptx"

# ---- diff, of machine code: a cubin with other registers, and a disassembler that knows what it says ----
names=$(dirname "$0")/names at=1664
cat >"$dir/disassembler" <<'EOF'
#!/bin/sh
cat "$(dirname "$0")/$(cksum <"$1" | tr ' ' _).sass"
EOF
chmod +x "$dir/disassembler"
# code NAME SED OFFSET:OCTAL...: a cubin whose code has other bytes, and its text
code() {
	cp "$names/loop.sm_80.cubin" "$dir/$1.cubin" && chmod u+w "$dir/$1.cubin"
	text=$2 to=$dir/$1.cubin
	shift 2
	for byte; do
		# shellcheck disable=SC2059 # the byte is the format
		printf "\\${byte#*:}" | dd of="$to" bs=1 seek=$((at + ${byte%:*})) conv=notrunc 2>/dev/null
	done
	sed "$text" "$names/loop.sass" >"$dir/$(cksum <"$to" | tr ' ' _).sass"
}
# R4 and R5 become R8 and R9, R7 R6, P0 P1, B0 B1, the labels others, and UR4 UR8
renamed='s/R4\([^.]\)/R8\1/g; s/UR8/UR4/g; s/UR4/UR8/g; s/R5/R9/; s/R7/R6/; s/P0/P1/; s/B0/B1/; s/L_x_\([0-2]\)/L_x_1\1/'
bytes='66:010 114:010 115:006 116:010 131:010 132:011 98:006 180:010'
if CPTX_NVDISASM=$dir/disassembler "$cptx" inspect "$names/loop.sm_80.cubin" 2>&1 | grep -q 'built without libelf'; then
	skip "names in machine code: libelf"
else
	export CPTX_NVDISASM="$dir/disassembler"
	code same ''
	# shellcheck disable=SC2086 # bytes are words
	code renamed "$renamed" $bytes
	ok "machine code is the same" status 0 "$cptx" diff "$dir/same.cubin" "$dir/same.cubin"
	ok "all of it is compared" has 'machine code: the same, 17 lines' "$dir/out"
	ok "under other names too" status 0 "$cptx" diff "$dir/same.cubin" "$dir/renamed.cubin"
	ok "line by line" has 'machine code: the same, 17 lines' "$dir/out"
	# shellcheck disable=SC2086
	code apart "$renamed; s/R8, R9, PT/R8, R11, PT/" $bytes 132:013
	ok "the second half of a pair is another register" status 1 "$cptx" diff "$dir/same.cubin" "$dir/apart.cubin"
	ok "which is shown" has '^\+ ISETP.GE.U32.AND P1, PT, R8, R11, PT' "$dir/out"
	# shellcheck disable=SC2086
	code once "$renamed; s/BRA \`(.L_x_11)/BRA \`(.L_x_10)/" $bytes
	ok "a branch elsewhere" status 1 "$cptx" diff "$dir/same.cubin" "$dir/once.cubin"
	# shellcheck disable=SC2086
	code two "$renamed; s/IADD3 R8, R6/IADD3 R8, R8/" $bytes 115:010
	ok "one register for two" status 1 "$cptx" diff "$dir/same.cubin" "$dir/two.cubin"
	# shellcheck disable=SC2086
	code uniform "$renamed; s/STG.E desc.UR8/STG.E desc[UR12/" $bytes
	ok "another uniform register" status 1 "$cptx" diff "$dir/same.cubin" "$dir/uniform.cubin"
	# shellcheck disable=SC2086
	code guard "$renamed; s/@!P1/@!P2/" $bytes
	ok "another predicate" status 1 "$cptx" diff "$dir/same.cubin" "$dir/guard.cubin"
	LC_ALL=C sed 's/\.k\x00/.\x1b\x00/g; s/\x00k\x00/\x00\x1b\x00/g' "$dir/same.cubin" >"$dir/escape.cubin"
	for other in same escape; do
		"$cptx" diff "$dir/escape.cubin" "$dir/$other.cubin" >"$dir/escaped" 2>&1
		ok "an escape in a kernel's name is shown" has '^\\x1b: resources' "$dir/escaped"
		ok "and none gets to the terminal" status 1 grep -q "$(printf '\033')" "$dir/escaped"
	done
	export CPTX_NVDISASM=/nonexistent CPTX_CUOBJDUMP=/nonexistent
	ok "without a disassembler, the same bytes" status 0 "$cptx" diff "$dir/same.cubin" "$dir/same.cubin"
	ok "are said to be so" has '^machine code: the same bytes$' "$dir/out"
	ok "other bytes are not the same" status 2 "$cptx" diff "$dir/same.cubin" "$dir/renamed.cubin"
	ok "for nobody has looked" has 'other bytes, and what they do was not compared' "$dir/out"
	unset CPTX_NVDISASM CPTX_CUOBJDUMP
fi
unset CPTX_PTXAS

# ---- with ptxas ----
ptxas=${CPTX_PTXAS:-$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)}
if [ -x "$ptxas" ]; then
	"$cptx" inspect "$dir/gemm.ptx" >"$dir/report" 2>&1
	"$ptxas" -v -arch=sm_90a "$dir/gemm.ptx" -o "$dir/gemm.cubin" 2>"$dir/log"
	registers=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$dir/log")
	ok "registers of ptxas" has "registers +$registers, no spills" "$dir/report"
	ok "nothing to remark" has 'ptxas has no remark' "$dir/report"
	ok "occupancy" has 'occupancy .*1 CTA of 384 threads on a multiprocessor of sm_90a: 12 of 64 warps' "$dir/report"
	"$cptx" inspect --arch sm_80 --threads 256 "$corpus/ptx/clang_saxpy.sm_75.O3.ptx" >"$dir/saxpy" 2>&1
	ok "--threads" has '8 CTAs of 256 threads.*: 64 of 64 warps' "$dir/saxpy"
	"$cptx" inspect --json "$dir/gemm.ptx" >"$dir/json" 2>&1
	ok "JSON" has '"name":"gemm","measured":true,"registers":'"$registers" "$dir/json"
	if command -v python3 >/dev/null; then
		ok "JSON is JSON" python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert len(d["origin"]) == len(d["ptx"]) and d["kernels"][0]["points"]' "$dir/json"
	else
		skip "JSON is JSON: python3"
	fi
	if "$cptx" inspect "$dir/gemm.cubin" 2>&1 | grep -q 'built without libelf'; then
		skip "cubins: libelf"
	else
		"$cptx" inspect "$dir/gemm.cubin" >"$dir/cubin" 2>&1
		ok "a cubin" has "registers +$registers, spills: only ptxas" "$dir/cubin"
		CPTX_NVDISASM=/nowhere CPTX_CUOBJDUMP=/nowhere PATH=/usr/bin:/bin "$cptx" inspect --json "$dir/gemm.ptx" >"$dir/bare.json"
		ok "registers alive and stalls are known without a disassembler" has '^\[[0-9]+,[0-9]+,[0-9]+,"",[1-9][0-9]*,[1-9][0-9]*,\[[0-9]+' "$dir/bare.json"
		ok "the most alive, of those taken" has "most alive +[1-9][0-9]+ registers of the $registers at .*sm90/[a-z]+\.c:[0-9]+ .*, 0x[0-9a-f]{4} of the machine code" "$dir/report"
		ok "and no estimate" status 1 grep 'estimate' "$dir/report"
		ok "a function elsewhere" status 0 "$cptx" inspect "$corpus/ptx/print_assert.sm_75.O3.ptx"
		ok "leaves it unknown" has 'in the machine code +registers alive in .* are not known: a function that is not in this section is called at 0x' "$dir/out"
		ok "and the PTX estimated" has 'most alive +[0-9]+ registers of the PTX at .*; estimate of what ptxas needs' "$dir/out"
		ok "source lines are joined with machine code" has '"sass":\[\[0,[1-9]' "$dir/json"
	fi
	sed 's/setmaxnreg.dec.*/&/; s/^\.reqntid.*//; s/^\.minnctapersm.*//' "$dir/gemm.ptx" >"$dir/open.ptx"
	"$cptx" inspect "$dir/open.ptx" >"$dir/remark" 2>&1
	ok "a remark on its C line" has "sm90/gemm.c:[0-9]+ .*concern: .*'setmaxnreg' ignored" "$dir/remark"
	ok "and what to do" has 'give the kernel .maxnreg, or .maxntid' "$dir/remark"
else
	skip "what ptxas says: ptxas"
fi

if [ -x "$ptxas" ]; then
	ok "an object of several" status 0 "$cptx" inspect "$corpus/ptx/rdc_user.sm_80.O3.ptx"
	ok "which takes a stack" has 'stack frame' "$dir/out"
	printf '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %%r<3>;\n.shared .b8 s[60000];\nmov.u32 %%r1, s;\nret;\n}\n' >"$dir/big.ptx"
	ok "what ptxas refuses" status 1 "$cptx" inspect "$dir/big.ptx"
	ok "with its words" has 'big.ptx.*too much shared data|uses too much shared data' "$dir/out"
fi

# ---- the page ----
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || :)
"$cptx" inspect --html "$dir/page.html" "$dir/gemm.ptx" >"$dir/said" 2>&1
ok "a page without network" status 1 grep -E "(src|href)=|url\\(|@import|https?:" "$dir/page.html"
if [ -n "$chromium" ]; then
	for theme in light dark; do
		python3 -IS "$(dirname "$0")/../watch.py" --cpu 300 --idle 120 "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$dir/chromium" --dump-dom "file://$dir/page.html#$theme" \
			>"$dir/dom" 2>/dev/null
		ok "the page runs ($theme)" has 'data-ready="[0-9]+ ms"' "$dir/dom"
		ok "its theme is $theme" has "data-theme=\"$theme\"" "$dir/dom"
		ok "the hottest loop is marked ($theme)" has 'class="row hot' "$dir/dom"
		ok "with its C line ($theme)" has 'id="hottest".*>[a-z]+\.c:[0-9]+, PTX line' "$dir/dom"
		ok "the stages of the ring ($theme)" has 'id="stages".*class="ring".*4 stages, 1 arrival each; expects as many bytes as the kernel counts in <a>produce.c:' "$dir/dom"
		ok "and where they lie ($theme)" has 'id="smem".*49152 to 65535: copy 1 of stage 1' "$dir/dom"
		ok "stalls ($theme)" has 'id="stallsmost">blue: cycles .*\([1-9][0-9]* in all\)' "$dir/dom"
		grep -o 'data-ready="[^"]*"' "$dir/dom"
	done
else
	skip "the page in a browser: chromium"
fi
echo "inspect: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
