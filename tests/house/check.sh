#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # $ and ` in single quotes are meant for awk, sed and grep
# Checks the source tree itself: tests/house/check.sh [root of the tree].
# Prints each offence as "file:line: what" and ends with "house: N passed, N failed, N skipped".
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
cd "${1:-$(dirname "$0")/../..}"
passed=0 failed=0 skipped=0

# check WHAT COMMAND...: the command prints one line per offence, and nothing if all is well.
check() {
	what=$1
	shift
	offences=$("$@") || :
	if [ -z "$offences" ]; then
		passed=$((passed + 1))
		echo "ok    $what"
	else
		failed=$((failed + 1))
		echo "FAIL  $what"
		printf '%s\n' "$offences" | sed 's/^/    /'
	fi
}

# files PATTERN...: the project's files with such names.  Without git, so that a tarball can be checked too.
files() {
	names=
	for pattern; do names="$names ${names:+-o }-name $pattern"; done
	for place in .ci bench bootstrap docs examples include meson.build meson_options.txt python src tests tools README.md; do
		[ -e $place ] || continue
		# shellcheck disable=SC2086 # words, and not the shell's own patterns
		(set -f && find $place -type f \( $names \))
	done | sort
}

# lines REGEX FILE-PATTERN...: where it matches, as file:line:text
lines() {
	regex=$1
	shift
	files "$@" | xargs grep -nE "$regex" /dev/null
}

# ---- design: who may include whom ----

# base <- {arch, cache} <- ir <- {emit, parse, layout, check, compile, python} <- devices <- {emu, to_c} <- runtime <- {tensor, tune, inspect} <- {kit, windows} <- {gemm, attention, rows} <- bundle <- tools.  A file may
# include its own folder, with all that is in it, and those of a lower rank.  A public header belongs to the folder that implements
# it; devices are those that the emulator and the runtime share.  Headers of the command are named by their path in tools/cptx.
arrows() {
	files '*.c' '*.h' '*.def' | grep -E '^(src|include/cptx|tools)/' | xargs awk '
	BEGIN {
		n = split("base 0 arch 1 cache 1 ir 2 emit 3 parse 3 layout 3 check 3 compile 3 python 3 devices 4 emu 5 to_c 5 runtime 6 tensor 7 tune 7 inspect 7 windows 8 kit 8 gemm 9 attention 9 rows 9 bundle 10 tools 11", w, " ")
		for (i = 1; i < n; i += 2)
			rank[w[i]] = w[i + 1]
		n = split("cubin.h inspect cptx.h base module.h base fast.h base insn_fast.h base cache.h cache compile.h compile isa.h base insn.h base edit.h base again.h base optimize.h ir declare.h base table.h base layout.h layout tensor_map.h layout " \
			"python.h python dlpack.h tensor tune.h tune retarget.h runtime bundle.h bundle device.h devices emu.h devices findings.def devices gemm.h gemm attention.h attention attention_decode.h attention attention_backward.h attention rows.h rows rows.def rows pipeline.h kit timeline.h kit tmem.h kit epilogue.h kit mma.h kit operand.h kit params.h kit reduce.h kit roles.h kit scheduler.h kit softmax.h kit vector.h kit inspect.h inspect", w, " ")
		for (i = 1; i < n; i += 2)
			home["cptx/" w[i]] = w[i + 1]
		home["cptx/cplusplus.h"] = "base"
		for (i = 1; i < ARGC; i++)
			given[ARGV[i]] = 1
	}
	FNR == 1 {
		split(FILENAME, part, "/")
		from = part[1] == "src" ? part[2] : part[1] == "tools" ? "tools" : home[part[2] "/" part[3]]
		if (!(from in rank))
			print FILENAME ":1: the place of this file in the order of folders is not known"
	}
	/^[ \t]*#[ \t]*include[ \t]*["<]/ {
		file = $0
		sub(/^[^"<]*["<]/, "", file)
		sub(/[">].*/, "", file)
		if (file ~ /^cptx\//)
			to = (file in home) ? home[file] : file
		else if (from == "tools" && ("tools/cptx/" file) in given)
			next
		else if (file == "bundle/loader/cptx_load.h") # includes nothing of ours, since programs take it without cptx
			next
		else if (split(file, part, "/") >= 2 && $0 ~ /"/)
			to = part[1]
		else
			next
		if (to != from && !(to in rank && rank[to] < rank[from]))
			print FILENAME ":" FNR ": " from " may not include " file
	}'
}

# Kernel generators build with the public calls only (errors come from base); examples know nothing else at all but one
# another, and the references of tools/cptx/reference, which are bound by the same rule.
public_only() {
	files '*.[ch]' | grep -E '^(src/gemm|src/attention|src/rows|src/kit|examples|tools/cptx/reference)/' |
		xargs grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null | while IFS=: read -r file line text; do
		name=${text#*\"} name=${name%%\"*}
		case $file:$name in
		*:*..*) ;;
		src/rows/*:rows/*.h | src/gemm/*:gemm/*.h | src/gemm/*:gemm/*.def | src/attention/*:attention/*.h | src/attention/*:attention/*.def | src/kit/*:kit/*.h | src/kit/made.*:kit/nouns.def | src/kit/params.c:runtime/runtime.h | src/*/run.c:kit/runner.h | src/*/tuned.[ch]:kit/runner.h | src/*/tuned.c:kit/tuned.h | src/*/params.c:kit/params.h | src/rows/*:rows/*.def | src/*:base/*.h) continue ;;
		src/*) ;;
		*:reference/*.h) [ ! -e "tools/cptx/$name" ] || continue ;;
		*:*/* | tools/*) ;;
		*) if [ -e "${file%/*}/$name" ] || [ -e "examples/$name" ]; then continue; fi ;;
		esac
		echo "$file:$line:$text   (include <cptx/...>)"
	done
}

# What a clone has at its top, and what git does not ignore.
root() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1 && [ -e .git ]; then
		git ls-files -co --exclude-standard | while read -r name; do
			[ ! -e "$name" ] || echo "${name%%/*}"
		done | sort -u
	else
		find . -mindepth 1 -maxdepth 1 | sed 's/^..//'
	fi | while read -r name; do
		case $name in
		.ci | .clang-format | .editorconfig | .git | .gitattributes | .gitignore | CHANGELOG.md | CMakeLists.txt | CONTRIBUTING.md | LICENSE | README.md) ;;
		bench | bootstrap | cmake | docs | examples | include | meson.build | meson_options.txt | packaging | pyproject.toml | python | run | src) ;;
		tests | third_party | tools | build*) ;;
		*) echo "$name:1: does not belong at the top of the tree (or it joins the list in tests/house/check.sh)" ;;
		esac
	done
}

no_cuda_headers() {
	lines '^[[:space:]]*#[[:space:]]*include[[:space:]]*<(cuda|nv|cublas)[^>]*>' '*.[ch]' '*.def' | grep -v '^\(tests\|bench\|examples/host\)/'
}

# ---- manners ----

# The library never exits, aborts or prints.  Strings and comments do not count.
library_calls() {
	files '*.c' '*.h' | grep '^src/' | xargs awk '
	{
		if (FNR == 1)
			inside = 0
		code = " " $0 " "
		gsub(/\\"/, "", code)
		gsub(/"[^"]*"/, "\"\"", code)
		if (inside) {
			if (!match(code, /\*\//))
				next
			code = " " substr(code, RSTART + 2)
			inside = 0
		}
		gsub(/\/\*([^*]|\*[^\/])*\*\//, " ", code)
		sub(/\/\/.*/, "", code)
		if (match(code, /\/\*/)) {
			code = substr(code, 1, RSTART - 1)
			inside = 1
		}
	}
	code ~ /[^A-Za-z0-9_](exit|_Exit|_exit|quick_exit|abort|assert|printf|vprintf|puts|putchar|perror)[ \t]*\(/ ||
	code ~ /[^A-Za-z0-9_](stdout|stderr)[^A-Za-z0-9_]/ { print FILENAME ":" FNR ":" $0 }'
}

long_files() {
	files '*.c' '*.h' '*.sh' 'meson.build' bootstrap run run-all '*.awk' | xargs awk '
	FNR == 1 && name != "" && n > 700 { print name ":700: " n " lines" }
	{ name = FILENAME; n = FNR }
	END { if (n > 700) print name ":700: " n " lines" }'
}

unfinished() { lines '(^|[^A-Za-z0-9_])(TO''DO|FIX''ME|XX''X)([^A-Za-z0-9_]|$)' '*'; }

own_machine() { lines '(^|[^A-Za-z0-9_.])/(home|root|work|Users|mnt)/[A-Za-z0-9_]' '*' | grep -v '^tests/house/'; }

untidy() {
	blank='[ 	]$'
	return_character=$(printf '\r')
	lines "$blank|$return_character" '*.c' '*.h' '*.def' '*.sh' '*.build' '*.awk' bootstrap run run-all |
		sed 's/^\([^:]*:[0-9]*\):.*/\1: blank at the end of the line/'
	files '*.c' '*.h' '*.def' '*.sh' '*.build' '*.md' '*.awk' bootstrap run run-all | xargs tail -qc 1 | tr -d '\n' | grep -q . || return 0
	for f in $(files '*.c' '*.h' '*.def' '*.sh' '*.build' '*.md' '*.awk' bootstrap run run-all); do
		[ -z "$(tail -c 1 "$f")" ] || echo "$f:$(wc -l <"$f"): no newline at the end"
	done
}

# One document has them all: what the code reads is described there, and what is described there is read.
variables() {
	document=docs/environment.md read_names=$(mktemp)
	[ -f $document ] || { echo "$document:1: missing"; return; }
	described=$(sed -n 's/^| `\([A-Z][A-Z_0-9]*\)[`=].*/\1/p' $document)
	# names that are asked for, and those of ours that are handed on as text, but for what headers define
	files '*.c' '*.h' '*.py' '*.sh' bootstrap run run-all | grep -v '^tests/house/' |
		xargs grep -noE '(getenv|set_or)\("[A-Z_0-9]+"|environ(\.get\(|\[)"[A-Z_0-9]+"|\$\{?CPTX_[A-Z_0-9]+|"CPTX_[A-Z_0-9]*[A-Z0-9]"' /dev/null |
		sed 's/^\([^:]*:[0-9]*\):[^A-Z]*\([A-Z_0-9]*\).*/\1 \2/' | sort -u |
		while read -r place name; do
			printf '%s\n' "$described" | grep -qx "$name" || grep -qsE "define $name\\>" include/cptx/*.h || echo "$place: $name is not described in $document"
		done
	files '*.c' '*.h' '*.py' '*.sh' bootstrap run run-all meson.build | xargs grep -ohE '[A-Z][A-Z_0-9]+' | sort -u >"$read_names"
	for name in $described; do
		grep -qx "$name" "$read_names" || echo "$document:$(grep -n "^| \`$name" $document | cut -d: -f1): nothing reads $name"
	done
	rm -f "$read_names"
}

# Words that were given up for the field's terms, and comments without a subject: retired.txt says which, where, and what to
# write.
words() {
	tab=$(printf '\t')
	kernels='^(src/(kit|gemm|attention|rows)/|examples/([a-z_0-9]*\.|kit/|blackwell/)|include/cptx/(attention[a-z_]*|epilogue|gemm|mma|operand|params|pipeline|reduce|roles|rows|scheduler|softmax|tmem|timeline|vector)\.|docs/(attention|kernel_kit|rows|tile_shape|blackwell)\.md)'
	grep -vE '^(#|$)' "$here/retired.txt" | while IFS=$tab read -r where regex instead; do
		[ "$where" != KERNELS ] || where=$kernels
		files '*.c' '*.h' '*.def' '*.md' | grep -E "$where" | xargs -r grep -nE "$regex" /dev/null | cut -d: -f1,2 |
			sed "s|\$|: $instead|"
	done
}

# Two calls that emit code side by side in an argument list: compilers differ in which comes first.
emitted_in_order() { python3 "$here/order.py" .; }

# An SPDX line in each file of ours.
licences() { python3 "$here/spdx.py" .; }

scripts() { # every shell script, by its first line
	files '*' | xargs grep -lE '^#!/bin/(ba)?sh' | xargs -r shellcheck -f gcc
}

check "includes point down only" arrows
check "kernels and examples use the public headers only" public_only
check "the top of the tree has what belongs there" root
check "no header of CUDA is needed" no_cuda_headers
check "the library never exits, aborts or prints" library_calls
check "no source file is over 700 lines" long_files
check "nothing is left unfinished" unfinished
check "no path of somebody's machine" own_machine
check "lines and files end as they should" untidy
check "environment variables are described" variables
if command -v python3 >/dev/null 2>&1; then
	check "what emits code has an order" emitted_in_order
check "words that were given up" words
	check "every source says its licence" licences
else
	skipped=$((skipped + 2))
	echo "skip  what emits code has an order, and every source says its licence: there is no python3"
fi
if command -v shellcheck >/dev/null 2>&1; then
	check "shell scripts" scripts
else
	skipped=$((skipped + 1))
	echo "skip  shell scripts: shellcheck is not installed"
fi
echo "house: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
