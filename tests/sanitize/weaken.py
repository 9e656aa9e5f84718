#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Takes fences, waits and barriers out of programs that nobody here wrote, or weakens them, one at a time, and asks whether
`cptx sanitize` finds it.

    tests/sanitize/weaken.py [--cptx FILE] [--jobs N] [--most N] [--seed N] [--time N] [--list FILE] PROGRAM[:ARGUMENT]...

PROGRAM was built by nvcc with PTX and --compress-mode=none, so that its PTX stands in the file as text and can be changed
there without another length.  The program as it is must end with 0, and nothing may be found.  Then each place is tried:
first with a trap there, which tells whether it is executed at all; then without the instruction, or weakened.  A change is
found if there is a finding, wrong if the program itself notices it, and it survives otherwise: then it is equivalent, or
missed; four seeds are tried before that is said.  --most takes a sample of the changes, drawn by --seed.  --list writes a line for each.  The exit status is 1 if the
programs as they are have findings, or nothing was tried.
"""
import argparse, collections, concurrent.futures, os, random, re, subprocess, sys, tempfile, time

# What is taken out: an instruction from its name to the semicolon, with the guard in front.
DELETED = re.compile(rb"(?:@!?%p\d+ +)?\b(bar(?:rier)?\.(?:cta\.)?sync|bar\.warp\.sync|membar\.\w+|fence\.[\w.:]+|"
                     rb"cp\.async\.(?:wait_group|wait_all|bulk\.wait_group[\w.]*)|mbarrier\.arrive[\w.:]*|barrier\.cluster\.\w+[\w.]*|"
                     rb"wgmma\.(?:fence|wait_group)[\w.]*|griddepcontrol\.wait)\b[^;{}]*;")
# What is weakened: words of the same length.
SEEDS = 4
WEAKENED = [(re.compile(rb"\b(?:ld|st|atom|red|mbarrier)\.[\w.:]*?\.(acquire|release|acq_rel)\b"), b"relaxed"),
            (re.compile(rb"\b(?:fence|atom|red|ld|st)\.[\w.:]*?\.(gpu|sys)\b"), b"cta")]


def texts(binary):
    """(begin, end) of each text of PTX"""
    for m in re.finditer(rb"\.version [0-9]", binary):
        end = binary.find(b"\0", m.start())
        yield m.start(), end if end >= 0 else len(binary)


def changes(binary):
    """(what, place, trap, changed): what, and the bytes that stand at the place instead"""
    for begin, end in texts(binary):
        text = binary[begin:end]
        code = re.sub(rb"//[^\n]*", lambda m: b" " * len(m.group()), text)
        for m in DELETED.finditer(code):
            blank = re.sub(rb"[^\n]", b" ", m.group())
            if len(blank) >= 5 and blank[:5] == b"     ":
                yield "without " + m.group(1).decode(), begin + m.start(), b"trap;" + blank[5:], blank
        for pattern, to in WEAKENED:
            for m in pattern.finditer(code):
                line = code.rfind(b"\n", 0, m.start()) + 1, code.find(b"\n", m.start())
                whole = code[line[0]:line[1]]
                if b";" not in whole or len(whole.strip()) < 5:
                    continue
                trap = re.sub(rb"[^\n]", b" ", whole)
                trap = b"trap;" + trap[5:]
                changed = code[line[0]:m.start(1)] + to + code[m.end(1):line[1]]
                yield "%s for %s in %s" % (to.decode(), m.group(1).decode(), m.group().decode()), begin + line[0], trap, changed


def run(program, words, seed=0):
    """(findings, exit status, what was said); findings None: it was cut"""
    command = [arguments.cptx, "sanitize", "--error-exitcode", "99", "--step-limit", "30000000", "--seed", str(seed)]
    command += arguments.options.split() + ["--", program] + words
    try:
        done = subprocess.run(command, capture_output=True, timeout=arguments.seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, 0, ""
    told = done.stderr.decode(errors="replace")
    codes = re.findall(r"(?:error|warning): kernel .*?: ([\w-]+): ", told)
    refused = re.search(r"^cptx sanitize: (?!\d+ errors?, )(?!.*(?:error|warning): kernel)(.*)", told, re.M)
    return codes, done.returncode, refused.group(1) if refused else ""


def with_change(binary, place, bytes_, words, seed=0):
    fd, name = tempfile.mkstemp(prefix="weaken-")
    with os.fdopen(fd, "wb") as f:
        f.write(binary[:place] + bytes_ + binary[place + len(bytes_):])
    os.chmod(name, 0o700)
    try:
        while True:  # a process that another thread starts has the file open for a moment
            result = run(name, words, seed)
            if "Text file busy" not in result[2]:
                return result
            time.sleep(0.05)
    finally:
        os.unlink(name)


def try_change(case):
    program, words, binary, (what, place, trap, changed) = case
    codes, _, _ = with_change(binary, place, trap, words)
    if codes is not None and "trap" not in codes:
        return case, "not executed", ""
    for seed in range(SEEDS):  # the next one where nothing was found
        codes, status, refused = with_change(binary, place, changed, words, seed)
        if codes or codes is None or refused or status:
            break
    if codes is None:
        return case, "found", "no end within %d s" % arguments.seconds
    if refused:
        return case, "refused", refused[:80]
    if codes:
        return case, "found", ", ".join(sorted(set(codes)))
    return case, ("wrong" if status else "survived"), ""


def main():
    cases, failed, until = [], 0, time.time() + arguments.time
    for argument in arguments.programs:
        program, _, word = argument.partition(":")
        program, words = os.path.abspath(program), word.replace("_--", " --").split()
        codes, status, refused = run(program, words)
        if codes or status or refused or codes is None:
            print("%s as it is: %s" % (argument, codes or refused or "exit status %d" % status), flush=True)
            failed += 1
            continue
        binary = open(program, "rb").read()
        cases += [(program, words, binary, c) for c in changes(binary)]
    random.Random(arguments.seed).shuffle(cases)
    count, lines, tried = collections.Counter(), [], 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = set()
        todo = iter(cases)
        while True:
            while len(waiting) < 2 * arguments.jobs and time.time() < until and (not arguments.most or tried + len(waiting) < arguments.most):
                case = next(todo, None)
                if case is None:
                    break
                waiting.add(pool.submit(try_change, case))
            if not waiting:
                break
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for d in done:
                case, outcome, how = d.result()
                count[outcome] += 1
                tried += outcome in ("found", "wrong", "survived")
                line = case[2].count(b"\n", max(b for b, _ in texts(case[2]) if b <= case[3][1]), case[3][1]) + 1
                if outcome != "not executed":
                    lines.append("%-10s %-24s line %6d  %-60s %s" % (outcome, "/".join(case[0].split("/")[-2:]) + " " + " ".join(case[1]), line, case[3][0], how))
    for line in sorted(lines):
        if arguments.list is None or not line.startswith("found"):
            print(line)
    if arguments.list:
        open(arguments.list, "w").write("\n".join(sorted(lines)) + "\n")
    print("%d tried: %d found, %d noticed by the program alone, %d survived; beside them %d not executed, %d refused; %d programs have findings as they are"
          % (tried, count["found"], count["wrong"], count["survived"], count["not executed"], count["refused"], failed))
    return 1 if failed or not tried else 0


parser = argparse.ArgumentParser(description="fences, waits and barriers taken out of programs")
parser.add_argument("programs", nargs="+", metavar="PROGRAM[:ARGUMENT]")
parser.add_argument("--cptx", default="build/cptx")
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("--most", type=int, default=0, help="changes of what is executed; 0: all")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--seconds", type=int, default=30, help="limit of a run")
parser.add_argument("--time", type=int, default=10**6, help="seconds after which no other change is begun")
parser.add_argument("--options", default="", help="more options of cptx sanitize")
parser.add_argument("--list", help="file for all outcomes")
arguments = parser.parse_args()
arguments.cptx = os.path.abspath(arguments.cptx)
sys.exit(main())
