#!/bin/sh
# tests/house/symbols.sh LIBRARY: it exports names that begin with cptx_ and nothing else, and holds no variable data.
set -eu
offences=$(
	nm -D --defined-only "$1" | awk '$NF !~ /^cptx_/ { print "exports " $NF }'
	# what the compiler (libgcc: which processor is this) and the linker put in by themselves is not ours
	objdump -t "$1" | sed 's/ \.hidden / /' | awk 'NF > 3 && $(NF - 2) ~ /^\.(data|bss|tdata|tbss)$/ &&
		$NF !~ /^(\.data|\.bss|__cpu_model|__cpu_features2|completed\.[0-9]+|__dso_handle|__TMC_END__|__bss_start|_edata|_end)$/ {
			print "has the variable " $NF " in " $(NF - 2)
		}'
)
[ -z "$offences" ] && exit 0
printf '%s\n' "$offences" | sed "s/^/FAIL the library /"
exit 1
