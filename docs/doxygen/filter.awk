# SPDX-License-Identifier: MIT
# What doxygen reads in place of a public header.  In the headers the comment at the top is about the file, and a comment behind
# several members, or in front of them, is about all of them.
!about && /^\/\* (SPDX-License-Identifier|clang-format off)/ { print ""; next }
!about && $0 == "/*" { about = 1; print "/** @file"; next }
!about && /^\/\* Generated/ { about = 1; sub(/^\/\*/, "/** @file\n *"); print; next } # isa.h
# uint32_t bm, bn; /**< ... */: a line for each, so that line numbers stay; what the comment goes on with follows
/^\t+[a-z][^(]*, [^(]*; *\/\*\*</ {
	comment = substr($0, index($0, "/**<"))
	open = comment !~ /\*\//
	list = substr($0, 1, index($0, ";") - 1)
	match(list, /^\t+([a-z_0-9]+ )+\**/)
	type = substr(list, 1, RLENGTH)
	sub(/ \**$/, " ", type)
	n = split(substr(list, length(type) + 1), name, ", ")
	rest = comment
	while (open && (getline more) > 0) {
		sub(more ~ /^[\t ]*\*+\// ? "^[\t ]*" : "^[\t ]*\\**", " ", more) # the end of a comment stays one
		rest = rest more
		open = more !~ /\*\//
		lost++
	}
	for (i = 1; i <= n; i++)
		printf "%s%s; %s%s", type, name[i], rest, i < n ? " " : "\n"
	for (; lost > 0; lost--)
		print ""
	next
}
# /** ... */ and below it: uint32_t bm, bn;
/^\t+\/\*\* / { above = "" }
/^\t+( |\/\*)\*+ / {
	text = $0
	sub(/^\t+[ \/]\*+ /, "", text)
	above = above " " text
}
/^\t+[a-z][^(]*, [^(]*;$/ && above ~ /\*\/$/ {
	list = substr($0, 1, length($0) - 1)
	match(list, /^\t+([a-z_0-9]+ )+\**/)
	type = substr(list, 1, RLENGTH)
	n = split(substr(list, RLENGTH + 1), name, ", ")
	printf "%s%s;", type, name[1]
	for (i = 2; i <= n; i++)
		printf " %s%s; /**<%s", type, name[i], above
	print ""
	next
}
!/^\t+( |\/\*)\*+ / { above = "" }
{ print }
