# SPDX-License-Identifier: MIT
# What doxygen reads in place of insn.h: each builder call with its operands, what it does, and its forms.
NR == 1 { print "/** @file"; next }
NR == 2 { next } # the head begins here; line 1 has the licence
NR < 10 { print; next }
/^\/\*\*$/ { about = ""; forms = ""; next }
/^ \* [a-zA-Z0-9_]+: / { about = substr($0, index($0, ": ") + 2); next }
/^ \*   / { forms = forms substr($0, 3) "\n"; next }
/^#define cptx_[a-zA-Z0-9_]*_x_\(/ {
	call = $0
	sub(/_x_\(kernel_/, "(k", call)
	sub(/\).*/, ")", call)
	gsub(/_, /, ", ", call)
	printf "/** %s\n@verbatim\n%s@endverbatim */\n%s\n", about, forms, call
	next
}
/^#define cptx_.*cptx_sreg_\(/ {
	name = $NF
	sub(/\)$/, "", name)
	print "/** Reads a special register, " name ", into a new register. */"
	print "#define " $2
}
