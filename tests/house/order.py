#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two calls that emit code must not stand side by side where C leaves open which of them is made first.

    tests/house/order.py [ROOT]

Prints each offence as "file:line: what".  The arguments of a function, and the two sides of an operator, are evaluated in any
order: gcc begins with the last one, clang with the first, so that their builds would print other PTX.  Elements of a braced
initializer are evaluated from left to right by both, and builder calls (cptx_add(k, ...), macros that the build generates) put
their operands into one.  A call that emits inside of another one's argument is fine, as long as it is the only one.

What emits: a function whose parameters have a `cptx_kernel *` that is not const, or that gives one of a module; a builder
call; a macro with one of these in it; a function whose body has any of these, and so on; a call by a pointer whose first argument
is a kernel (k, g->k, g.k).
"""
import os
import re
import sys

FOLDERS = ["include", "src", "examples", "bench", "tools", "tests"]
TOKEN = re.compile(r"""
    (?P<blank>\s+|//[^\n]*|/\*.*?\*/|\\\n)
  | (?P<text>(?:L|u8?|U)?"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<mark>->|\+\+|--|<<=|>>=|<<|>>|&&|\|\||[-+*/%&|^!=<>]=|\.\.\.|\#\#|.)
""", re.S | re.X)
PAIRS = {"(": ")", "[": "]", "{": "}"}
HEADS = {"if", "for", "while", "switch"}  # what follows their parentheses is another statement
BLOCKS = re.compile(r"CPTX_(IF|ELSE|FOR|WHILE|DO|SCOPE|TMEM|TILES|ROLE|ROW_EACH|ACC_EACH)$")
MADE = "CPTX_INSN_AT_"  # of a header that the build makes: a builder call, for src/base/base.h's CALL
NO_CALLS = HEADS | {"return", "sizeof", "_Alignof", "_Static_assert", "static_assert", "defined", "__attribute__", "case", "do", "else"}


class Group(list):
    """What stands in a pair of brackets: tokens (line, kind, text) and groups."""

    def __init__(self, mark, line):
        super().__init__()
        self.mark, self.line = mark, line


def tokens(text, line):
    for m in TOKEN.finditer(text):
        if m.lastgroup != "blank":
            yield line, m.lastgroup, m.group()
        line += m.group().count("\n")


def grouped(flow):
    stack = [Group("", 1)]
    for token in flow:
        mark = token[2] if token[1] == "mark" else ""
        if mark in PAIRS and mark:
            stack.append(Group(mark, token[0]))
            stack[-2].append(stack[-1])
        elif mark and mark in PAIRS.values():
            if len(stack) > 1:  # brackets that do not match: text between #if and #else, say
                stack.pop()
        else:
            stack[-1].append(token)
    return stack[0]


def is_mark(item, *marks):
    return not isinstance(item, Group) and item[1] == "mark" and item[2] in marks


def is_group(item, mark):
    return isinstance(item, Group) and item.mark == mark


def name_of(item):
    return item[2] if not isinstance(item, Group) and item[1] == "name" else None


def split(items, *marks):
    parts = [[]]
    for item in items:
        if is_mark(item, *marks):
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


class Macro:
    def __init__(self, params, body):
        self.params, self.body = params, body

    def braced(self):
        """Whether what stands for its `...` gets into braces."""
        return "..." in self.params and self.in_braces(self.body, False)

    def in_braces(self, items, inside):
        for item in items:
            if isinstance(item, Group):
                if self.in_braces(item, inside or item.mark == "{"):
                    return True
            elif inside and item[2] == "__VA_ARGS__":
                return True
        return False


class File:
    def __init__(self, path, name):
        self.name = name
        self.macros, self.functions, self.declared = {}, {}, {}  # functions: name -> body; declared: name -> parameters
        self.emitting = set()  # by what they take and give
        text = open(path, encoding="utf-8", errors="replace").read()
        code, line = [], 1
        for part in re.split(r"(?m)^([ \t]*#(?:[^\n\\]|\\.|\\\n)*)$", text):
            if re.match(r"[ \t]*#", part):
                self.directive(part, line)
            else:
                code += tokens(part, line)
            line += part.count("\n")
        self.tree = grouped(code)
        self.find_functions()

    def directive(self, text, line):
        m = re.match(r"[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)(.*)", text, re.S)
        if m and m.group(1) not in self.macros:  # of two the first, which is that of C or of C++: they say the same
            self.macros[m.group(1)] = Macro([p.strip() for p in m.group(2).split(",")], grouped(tokens(m.group(3), line)))

    def find_functions(self):
        def walk(items):
            for i, item in enumerate(items):
                if is_group(item, "{") and i and not isinstance(items[i - 1], Group) and items[i - 1][1] == "text":
                    walk(item)  # extern "C"
                if not (is_group(item, "(") and i and name_of(items[i - 1])):
                    continue
                name = name_of(items[i - 1])
                if i + 1 < len(items) and is_group(items[i + 1], "{"):
                    self.functions[name] = items[i + 1]
                elif name in self.declared or i < 2:
                    continue
                self.declared[name] = item
                begins = takes(item, "cptx_module") and i > 2 and is_mark(items[i - 2], "*") and name_of(items[i - 3]) == "cptx_kernel"
                if begins or takes(item, "cptx_kernel"):
                    self.emitting.add(name)
        walk(self.tree)


def takes(params, kind):
    """Whether a parameter is a pointer to that, and not to a const one."""
    for p in split(params, ","):
        words = [name_of(x) or (x[2] if not isinstance(x, Group) else "()") for x in p]
        if kind in words and "const" not in words and words.count("*") == 1 and "()" not in words:
            return True
    return False


class Lint:
    def __init__(self, files):
        self.files = files
        self.public = {}
        self.macros = {}
        self.headers_of = {}  # a name -> the headers that declare it
        for f in files:
            for name in f.declared if f.name.endswith(".h") else []:
                self.headers_of.setdefault(name, []).append(f)
            for name, macro in f.macros.items():
                self.macros.setdefault(name, macro)
            for name, params in f.declared.items():
                if f.name.startswith("include/"):
                    self.public[name] = params
        self.emits = {f.name: f.emitting for f in files}
        self.common = set().union(*(self.emits[f.name] for f in files if f.name.endswith(".h"))) if files else set()
        self.emitting_macros = set()
        self.spread()
        self.offences = []

    def spread(self):
        """Functions and macros that call what emits, until there are no more."""
        candidates = {f.name: {name for name, body in f.functions.items() if name not in self.public and not self.alone(body)}
                      for f in self.files}
        changed = True
        while changed:
            changed = False
            for name, macro in self.macros.items():
                if name not in self.emitting_macros and self.any_emits(macro.body, None):
                    self.emitting_macros.add(name)
                    changed = True
            for f in self.files:
                for name, body in f.functions.items():
                    if name not in self.emits[f.name] and name in candidates[f.name] and self.any_emits(body, f):
                        self.emits[f.name].add(name)
                        changed = True
                    if name in self.emits[f.name] and name not in self.common and self.declared_elsewhere(name, f):
                        self.common.add(name)
                        changed = True

    def alone(self, items):
        """Whether it makes a module of its own: who calls it gets no code from it."""
        return any(self.alone(x) if isinstance(x, Group) else x[2] in ("cptx_module_new", "cptx_parse") for x in items)

    def declared_elsewhere(self, name, f):
        return f.name.endswith(".h") or any(h is not f for h in self.headers_of.get(name, []))

    def is_builder(self, name):
        return name.startswith("cptx_") and name not in self.public and name not in self.macros and not name.endswith("_")

    def call_emits(self, name, args, before, f):
        if name == MADE:
            return True
        if f and name in f.macros or name in self.macros:
            return name in self.emitting_macros
        if f and name in f.declared:
            return name in self.emits[f.name]
        if name in self.common:
            return True
        if name in self.public:
            return False
        if self.is_builder(name):
            return bool(args and split(args, ",")[0])
        # by a pointer: the first argument is a kernel
        first = split(args, ",")[0]
        by_pointer = is_mark(before, "->", ".") if before else False
        return by_pointer and bool(first) and name_of(first[-1]) == "k"

    def any_emits(self, items, f):
        for i, item in enumerate(items):
            if isinstance(item, Group):
                name = name_of(items[i - 1]) if i and item.mark == "(" else None
                if name and name not in NO_CALLS and self.call_emits(name, item, items[i - 2] if i > 1 else None, f):
                    return True
                if name != "sizeof" and self.any_emits(item, f):
                    return True
        return False

    def offend(self, f, line, what):
        self.offences.append((f.name, line, what))

    def look(self, items, f, in_initializer=False):
        """Statements or an expression: marks that C evaluates in order cut it into parts."""
        part = []
        for i, item in enumerate(items):
            if is_mark(item, ";", ",", "&&", "||", "?", ":"):
                self.side_by_side(part, f)
                part = []
                continue
            part.append((i, item))
            if is_group(item, "{"):
                self.look(item, f, True)
                self.side_by_side(part[:-1], f)
                part = []
            elif is_group(item, "("):
                name = name_of(items[i - 1]) if i else None
                if name in HEADS or name and BLOCKS.match(name):
                    self.call(name, item, f) if name not in HEADS else self.look(item, f)
                    self.side_by_side(part, f)
                    part = []
                elif name and name not in NO_CALLS:
                    self.call(name, item, f)
                else:
                    self.look(item, f)
            elif is_group(item, "["):
                self.look(item, f)
        self.side_by_side(part, f)

    def side_by_side(self, part, f):
        """part: (index, item) of an expression without `,`, `&&` and the like: what emits in it once is enough."""
        found, line = [], 0
        for at, (i, item) in enumerate(part):
            if not isinstance(item, Group) or item.mark == "{":
                continue
            name = name_of(part[at - 1][1]) if at and item.mark == "(" else None
            if name == "sizeof":
                continue
            emits = name and name not in NO_CALLS and self.call_emits(name, item, part[at - 2][1] if at > 1 else None, f)
            if emits or self.any_emits(item, f):
                found.append(name or "an expression in brackets")
                line = line or item.line
        if len(found) > 1:
            self.offend(f, line, "%s emit, on two sides of an operator" % " and ".join(found))

    def call(self, name, args, f):
        macro = f.macros.get(name) or self.macros.get(name)
        parts = split(args, ",")
        first = 0  # from which argument on they stand in braces
        if macro:
            hops = 0
            names = [p for p in macro.params if p != "..."]
            # cptx_global(...) is cptx_global_x_(__VA_ARGS__, .z_ = 0), which says which of them are in braces
            while not names and not macro.braced() and hops < 3:
                inner = next((self.macros[name_of(x)] for x in macro.body if name_of(x) in self.macros), None)
                if not inner:
                    break
                macro, hops = inner, hops + 1
                names = [p for p in macro.params if p != "..."]
            first = len(names) if macro.braced() else len(parts)
        elif not self.is_builder(name) or name in f.declared:
            first = len(parts)
        found = set()  # arguments that emit; those in braces are one
        for i, part in enumerate(parts):
            self.look(part, f)
            designated = len(part) > 2 and is_mark(part[0], ".") and name_of(part[1]) and is_mark(part[2], "=")
            if self.any_emits(part, f):
                found.add(i if i < first and not designated else "braces")
        if len(found) > 1:
            self.offend(f, args.line, "%s: %d of its arguments emit, and compilers differ in which comes first" % (name, len(found)))

    def run(self):
        for f in self.files:
            for body in f.functions.values():
                self.look(body, f)
            for name, macro in f.macros.items():
                self.look(macro.body, f)
        return sorted(set(self.offences))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    files = []
    for folder in FOLDERS:
        for path, _, names in sorted(os.walk(os.path.join(root, folder))):
            files += [File(os.path.join(path, n), os.path.relpath(os.path.join(path, n), root)) for n in sorted(names) if n.endswith((".c", ".h"))]
    offences = Lint(files).run()
    for name, line, what in offences:
        print("%s:%d: %s" % (name, line, what))
    return 1 if offences else 0


sys.exit(main())
