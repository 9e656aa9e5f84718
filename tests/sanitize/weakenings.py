# SPDX-License-Identifier: MIT
"""
What weaken.py changes in the PTX of a program, one instruction at a time, so that a program that needs it becomes wrong:

- without: a fence, a barrier, an arrival, a wait or what closes a group is gone; of a wait for an mbarrier the loop stays, and ends at once;
- relaxed: an acquire or a release is none any more; acq_rel in place of sc;
- cta: the scope is smaller, also where it is not written because it is the default;
- fewer: one group of copies more may be pending, an mbarrier takes one arrival less (or one more, if it was to take one), 16 bytes
  less are announced, a barrier of some threads has a warp less.

The PTX stands as text in a file whose length may not change: what becomes longer takes the place of comments and of .loc at the end of
the text; lines stay where they are.
"""
import bisect, re

INSTRUCTION = re.compile(rb"(?<![\w.$%])(?P<guard>@!?[\w%$]+\s+)?(?P<name>(?:bar|barrier|membar|fence|cp|mbarrier|wgmma|griddepcontrol|tcgen05|ld|st|atom|red)\."
                         rb"[\w.:]+)(?P<operands>[^;{}]*(?:\{[^;{}]*\}[^;{}]*)*);")
GONE = re.compile(r"bar(rier)?\.(cta\.)?(sync|arrive)$|bar\.warp\.sync$|membar\.|fence\.|cp\.async\.(wait_|commit_group|bulk\.(wait|commit)_group|mbarrier\.arrive)|"
                  r"mbarrier\.(arrive|expect_tx|complete_tx)|barrier\.cluster\.|wgmma\.(fence|commit_group|wait_group)|griddepcontrol\.wait|"
                  r"tcgen05\.(fence|wait|commit)")
WAIT = re.compile(r"mbarrier\.(test|try)_wait\.")
MEMORY = re.compile(r"(ld|st|atom|red|mbarrier|barrier\.cluster)\.")
SCOPED = re.compile(r"(fence\.(sc|acq_rel|acquire|release|proxy\.tensormap)|ld|st|atom|red|mbarrier)\.")


def without(name, operands):
    if GONE.match(name):
        return "without " + name, ""
    if WAIT.match(name):
        return "without the wait of " + name, "setp.eq.u32 %s, 0, 0;" % operands.split(",")[0].strip()
    return None


def relaxed(name, operands):
    for pattern, to in ((r"(?<=\.)(acquire|release|acq_rel)(?=\.|$)", "relaxed") if MEMORY.match(name) else (r"^fence\.sc(?=\.)", "fence.acq_rel"),
                        # release and acquire are also what is meant where nothing is written
                        (r"^(mbarrier\.(arrive(\.expect_tx)?|(test|try)_wait(\.parity)?))(?=\.(shared|b64))", r"\1.relaxed.cta"),
                        (r"^(barrier\.cluster\.arrive)(?=\.aligned|$)", r"\1.relaxed")):
        weaker = re.sub(pattern, to, name)
        if weaker != name:
            return "%s for %s" % (weaker, name), "%s%s;" % (weaker, operands)
    return None


def cta(name, operands):
    weaker = re.sub(r"^membar\.(gl|sys)$", "membar.cta", name)
    if SCOPED.match(name):
        weaker = re.sub(r"\.(gpu|sys|cluster)(?=\.|$)", ".cta", name)
    if re.match(r"(atom|red)\.(?!async)", name) and not re.search(r"\.(cta|cluster|gpu|sys|shared)\b", name):
        weaker = re.sub(r"^(atom|red)(\.(?:relaxed|acquire|release|acq_rel))?", lambda m: m.group(1) + (m.group(2) or ".relaxed") + ".cta", name)
    return None if weaker == name else ("%s for %s" % (weaker, name), "%s%s;" % (weaker, operands))


def fewer(name, operands, guard):
    """The last operand changed; one that is a register by an instruction of its own."""
    front, _, last = operands.rpartition(",")
    last = last.strip()
    if re.search(r"(cp\.async\.|cp\.async\.bulk\.|wgmma\.)wait_group", name) and last.isdigit():
        return "%d groups may be pending after %s" % (int(last) + 1, name), "%s%s %d;" % (guard, name, int(last) + 1)
    by = 1 if name.startswith("mbarrier.init") else 16 if ".expect_tx" in name else 32 if re.match(r"bar(rier)?\.(cta\.)?sync$", name) and front else 0
    if not by or not front:
        return None
    if re.fullmatch(r"\d+", last):
        count = int(last) - by if int(last) > by else int(last) + by
        return "%d for %s of %s" % (count, last, name), "%s%s%s, %d;" % (guard, name, front, count)
    if re.fullmatch(r"[%\w$]+", last):
        return "%d fewer of %s" % (by, name), "{ .reg .b32 %%fewer; sub.s32 %%fewer, %s, %d; %s%s%s, %%fewer; }" % (last, by, guard, name, front)
    return None


def texts(binary):
    """(begin, end) of each text of PTX, from the comment at its head on"""
    for m in re.finditer(rb"\.version [0-9]", binary):
        end = binary.find(b"\0", m.start())
        yield binary.rfind(b"\0", 0, m.start()) + 1, end if end >= 0 else len(binary)


def of_text(text):
    """(what, offset, length, guard, weakened): what, and what stands there instead"""
    code = re.sub(rb"//[^\n]*", lambda m: b" " * len(m.group()), text)
    for m in INSTRUCTION.finditer(code):
        guard, name, operands = ((m.group(g) or b"").decode() for g in ("guard", "name", "operands"))
        lines = "\n" * m.group().count(b"\n")
        for change in (without(name, operands), relaxed(name, operands), cta(name, operands)):
            if change:
                yield change[0], m.start(), len(m.group()), guard, (guard + change[1] if change[1] else lines)
        change = fewer(name, operands, guard)
        if change:
            yield change[0], m.start(), len(m.group()), guard, change[1]


def made_room(text, length, spare):
    """The text with as many spaces as it takes to be so long; what `spare` matches goes, from the end on, where it is longer.  None: it stays so."""
    if len(text) > length:
        for m in sorted(re.finditer(spare, text, re.M), key=lambda m: -m.start()):
            text = text[:m.start()] + text[m.end():]
            if len(text) <= length:
                break
    return text.ljust(length) if len(text) <= length else None


class Text:
    """A text of PTX of a program, and where it comes from."""

    def __init__(self, binary, number, begin, end):
        self.number, self.begin, self.end, self.text = number, begin, end, binary[begin:end]
        self.files = {f: p.decode().split("/")[-1] for f, p in re.findall(rb'^\s*\.file\s+(\d+)\s+"([^"]*)"', self.text, re.M)}
        self.locs = [(m.start(), m.group(1), m.group(2).decode()) for m in re.finditer(rb"^\s*\.loc\s+(\d+)\s+(\d+)", self.text, re.M)]
        self.kernels = set(k.decode() for k in re.findall(rb"\.entry\s+([\w$]+)", self.text))

    def source(self, offset):
        i = bisect.bisect(self.locs, (offset,)) - 1
        return "%s:%s" % (self.files.get(self.locs[i][1], "?"), self.locs[i][2]) if i >= 0 else ""


class Change:
    """One change of a program: which, and where."""

    def __init__(self, program, text, found):
        self.program, self.text = program, text
        self.what, self.offset, self.length, self.guard, self.put = found
        self.line = text.text.count(b"\n", 0, self.offset) + 1
        self.source = text.source(self.offset)
        self.key = (program.name, str(self.line) if text.number == 1 else "%d:%d" % (text.number, self.line), self.what)

    def file(self):
        """The program with the change; None if there is no room for it."""
        t = self.text
        text = t.text[:self.offset] + self.put.encode() + t.text[self.offset + self.length:]
        text = made_room(text, len(t.text), rb"^[ \t]*(//|\.loc\s)[^\n]*")
        return text and self.program.binary[:t.begin] + text + self.program.binary[t.end:]


def marked(program, changes):
    """The program with a branch on an undefined predicate at the place of each change, which is found, at its line, where it is executed."""
    file = bytearray(program.binary)
    for t in set(c.text for c in changes):
        text = t.text
        for offset, guard in sorted(set((c.offset, c.guard) for c in changes if c.text == t), reverse=True):
            mark = "{.reg .pred q;.reg .b32 z;%ssetp.eq.u32 q,z,1;@q bra L;L:}" % guard if guard else "{.reg .pred q;@q bra L;L:}"
            text = text[:offset] + mark.encode() + text[offset:]
        text = re.sub(rb"^[ \t]*\.loc\s[^\n]*", b"", text, flags=re.M)  # what is found is to have the line of the text
        text = made_room(text, t.end - t.begin, rb"^[ \t]*//[^\n]*")
        if not text:
            return None
        file[t.begin:t.end] = text
    return bytes(file)


def executed(changes, found):
    """Those of the changes at whose marks, (name of a kernel, line), something was found."""
    return [c for c in changes if any(kernel in c.text.kernels and line == c.line for kernel, line in found)]


def of_program(program):
    for number, (begin, end) in enumerate(texts(program.binary), 1):
        text = Text(program.binary, number, begin, end)
        for found in of_text(text.text):
            change = Change(program, text, found)
            if len(change.put) <= change.length or change.file():
                yield change
