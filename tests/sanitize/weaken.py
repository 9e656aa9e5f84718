#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Takes fences, waits, barriers, scopes and counts out of programs that nobody here wrote, or weakens them, one at a time (weakenings.py says
how), asks whether `cptx sanitize` finds it, and holds the outcomes against weakened.txt.

    tests/sanitize/weaken.py --samples DIR --cutlass DIR [--build DIR] [--no-build] [--cptx FILE] [--jobs N] [--only NAME,NAME]
                             [--each N] [--seed N] [--again] [--changes WORDS] [--bless]

DIR are checkouts of github.com/NVIDIA/cuda-samples and cutlass, which are no part of this project.  The programs, with arguments, stand in
weakened.txt: `samples/NAME` and `cutlass/TARGET/NAME` are built as samples.py and cutlass.py build them, and take the arguments of samples.txt and
cutlass.txt where weakened.txt has none; `headers` is headers.cu of this folder.  Each as it is must end with 0, say nothing of a
failure, and nothing, not even a warning, may be found in it, in any of --seeds runs, of three schedules in turn.
Then --each of its changes are drawn by --seed (0: all), of those that are executed: a mark at the place tells.  With a change, a program is
run --seeds times, until something is found.  The outcome is one of

    found     there is a finding
    noticed   nothing is found, but the program ends otherwise, or prints something else: the emulator has missed it
    survived  neither: the change is equivalent, and weakened.txt says why; or nobody has judged it, and there is nothing
    missed    neither, though the program is wrong: somebody has written this into weakened.txt, and why
    cut       a run did not end in time, which says nothing

The exit status is 1 if a program as it is has findings, an outcome is another than in weakened.txt, noticed or cut, or a change survived without a
reason there; and if nothing was tried.  --bless writes what was seen to weakened.txt; reasons stay.  --changes takes those whose line has the words.
"""
import argparse, collections, concurrent.futures, json, os, random, re, subprocess, sys, tempfile, time
import programs, weakenings

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "weakened.txt")
NVCC = ["-std=c++17", "-O1", "-w", "-lineinfo", "-gencode", "arch=compute_90,code=compute_90"]
SCHEDULES = ["random", "parted", "held"]  # run 0, 1 and 2 have seed 0, runs 3, 4 and 5 have seed 1, and so on
MARKS = 90  # the emulator keeps 100 findings
TEXT = "--compress-mode=none"  # the PTX stands in the file as text


class Program:
    def __init__(self, name, words, row):
        self.name, self.folder = name, os.path.join(arguments.build, *name.split()[0].split("/"))
        self.words = (words or row[1]).split()
        parts = name.split()[0].split("/")
        self.options = ["--arch", parts[1], "--sms", "16"] if parts[0] == "cutlass" else ["--arch", "sm_90a"]
        self.seconds = arguments.seconds

    def run(self, program, seed=0, share=1, more=()):
        """(codes of findings, exit status, what it printed, what was refused); codes None: it was cut"""
        command = [arguments.cptx, "sanitize", "--error-exitcode", "99", "--step-limit", str(arguments.steps // share), "--seed", str(seed // len(SCHEDULES)), "--schedule", SCHEDULES[seed % len(SCHEDULES)],
                   "--threads", "1", *self.options, *more, "--", program, *self.words]
        try:
            done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=self.seconds, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None, 0, collections.Counter(), ""
        told, said = done.stderr.decode(errors="replace"), done.stdout.decode(errors="replace")
        codes = sorted(set(re.findall(r"(?:error|warning): kernel .*?: (?:warning: )?([\w-]+): ", told)))
        refused = re.search(r"^cptx sanitize: (?!\d+ errors?, )(?!.*(?:error|warning): kernel)(.*)", told, re.M)
        return codes, 1 if programs.FAILURE.search(said) else done.returncode, collections.Counter(programs.printed(said)), refused.group(1) if refused and not codes else ""

    def as_it_is(self):
        """None, or what is wrong with it: half of the steps and a tenth of the time of a changed one must do."""
        begin = time.time()
        with open(os.path.join(self.folder, "program"), "rb") as f:
            self.binary = f.read()
        for seed in range(arguments.seeds):
            codes, status, said, refused = self.with_change(self.binary, seed, 2)
            if codes is None or codes or refused or status:
                return "seed %d: " % seed + ("it did not end" if codes is None else ", ".join(codes) or refused or "exit status %d" % status)
            if not seed:
                self.seconds = max(arguments.seconds, 10 * (time.time() - begin))
            self.said = self.said & said if seed else said  # not times; which block prints first is nowhere said
        return None

    def with_change(self, file, seed=0, share=1, more=()):
        with tempfile.TemporaryDirectory(prefix="weaken-") as folder:
            name = os.path.join(folder, "program")  # which it may print
            with open(name, "wb") as f:
                f.write(file)
            os.chmod(name, 0o700)
            while True:
                result = self.run(name, seed, share, more)
                if "Text file busy" not in result[3]:  # a process that another thread starts has the file open for a moment
                    return result
                time.sleep(0.05)

    def outcome(self, change):
        noticed = None
        for seed in range(arguments.seeds):
            codes, status, said, refused = self.with_change(change.file(), seed)
            if codes is None:
                return "cut", "seed %d, after %d s" % (seed, self.seconds)
            if codes:
                return "found", ", ".join(codes) + (", with %s %d" % (SCHEDULES[seed % len(SCHEDULES)], seed // len(SCHEDULES)) if seed else "")
            if refused:
                return "cut", "refused: " + refused[:80]
            if not noticed and (status or self.said - said):
                noticed = "noticed", "seed %d, " % seed + ("exit status %d" % status if status else "other lines are printed")
        return noticed or ("survived", "")


def read_list():
    """Words at the head, programs -> arguments, and key of a change -> (outcome, how, source)"""
    head, todo, changes = [], {}, {}
    for line in open(LIST):
        cells = [c.strip() for c in line.split("|")] + [""] * 3
        if line.startswith("#") or not line.strip():
            if not todo:
                head.append(line)
        elif cells[0] == "program":
            todo[cells[1]] = cells[2]
        else:
            changes[tuple(cells[1:4])] = cells[0], cells[5], cells[4]
    return head, todo, changes


def write_list(head, todo, changes):
    count = collections.Counter(c[0] for c in changes.values())
    with open(LIST, "w") as f:
        f.writelines(line for line in head if not line.startswith(("# Of ", "# outcome")))
        f.write("# Of %d changes, up to %d of each program drawn by seed %d, on %s: %s\n" %
                (len(changes), arguments.each, arguments.seed, time.strftime("%Y-%m-%d"), ", ".join("%d %s" % (n, o) for o, n in count.most_common())))
        f.writelines(("program  | %-42s | %s" % (name, words)).rstrip(" |") + "\n" for name, words in todo.items())
        f.write("#\n# outcome | program | line of its PTX | change | source | what was found, or why nothing can be\n")
        for key in sorted(changes, key=lambda k: (list(todo).index(k[0]), tuple(int(n) for n in ("1:" + k[1]).split(":")[-2:]), k[2])):
            outcome, how, source = changes[key]
            f.write(("%-8s | %s | %s | %s | %s | %s" % ((outcome,) + key + (source, how))).rstrip(" |") + "\n")


def build(names):
    of = collections.defaultdict(list)
    for name in sorted(set(n.split()[0] for n in names)):
        of[name.split("/")[0]].append(name.split("/")[-1])
    mine = ["--nvcc", arguments.nvcc, "--library", arguments.library, "--build-only", "--flags=" + TEXT]
    if of["headers"]:
        out = os.path.join(arguments.build, "headers")
        os.makedirs(out, exist_ok=True)
        if not os.path.exists(os.path.join(out, "program")):
            subprocess.run([arguments.nvcc, *NVCC, TEXT, "-o", os.path.join(out, "program"), os.path.join(HERE, "headers.cu")], check=True)
    for kind in ("samples", "cutlass"):
        if of[kind]:
            subprocess.run([sys.executable, os.path.join(HERE, kind + ".py"), "--" + kind, getattr(arguments, kind) or ".", "--build",
                            os.path.join(arguments.build, kind), "--only", ",".join(of[kind]), *mine], check=True)


def drawn(program, known):
    """--each changes of a program that are executed, or those of the list"""
    changes = [c for c in weakenings.of_program(program) if arguments.changes in "|".join(c.key)]
    if arguments.again:
        return [c for c in changes if c.key in known]
    found, todo, many = set(), changes, MARKS
    while todo:
        file = weakenings.marked(program, todo[:many])
        if not file and many == 1:
            raise ValueError("%s has no room for a mark" % program.name)
        if not file:
            many //= 2
            continue
        todo = todo[many:]
        with tempfile.TemporaryDirectory(prefix="weaken-") as folder:
            marks = os.path.join(folder, "marks")
            program.with_change(file, 0, 1, ["--json", marks])
            found |= set((f["kernel"], f["line"]) for f in map(json.loads, open(marks)) if f["code"] == "undefined")
    changes = weakenings.executed(changes, found)
    random.Random("%d %s" % (arguments.seed, program.name)).shuffle(changes)
    return changes[:arguments.each or None]


def main():
    head, todo, known = read_list()
    names = [n for n in todo if not arguments.only or n in arguments.only.split(",") or n.split()[0].split("/")[-1] in arguments.only.split(",")]
    if not arguments.no_build:
        build(names)
    rows = {"samples": programs.read_list(os.path.join(HERE, "samples.txt"))[0], "cutlass": programs.read_list(os.path.join(HERE, "cutlass.txt"))[0]}
    bad, late, seen, count, until = 0, 0, {}, collections.Counter(), time.time() + arguments.until

    def begin(name):
        kind, _, rest = name.split()[0].partition("/")
        program = Program(name, todo[name] or " ".join(name.split()[1:]), rows.get(kind, {}).get(rest.replace("/", " "), ("", "")))
        wrong = program.as_it_is()
        return program, wrong, [] if wrong else drawn(program, known)

    def timely(program, change):
        return program.outcome(change) if time.time() < until else None

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, concurrent.futures.ThreadPoolExecutor(arguments.jobs // 2 or 1) as drawers:
        draws, trials = {drawers.submit(begin, name) for name in names}, {}
        waiting = set(draws)
        while waiting:
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for d in done & draws:
                program, wrong, changes = d.result()
                print("%-42s %s" % (program.name, "as it is: " + wrong if wrong else "%d changes" % len(changes)), flush=True)
                bad += wrong is not None
                begun = {pool.submit(timely, program, c): c for c in changes}
                trials.update(begun)
                waiting |= set(begun)
            for d in done - draws:
                if not d.result():
                    late += 1
                    continue
                change, (outcome, how) = trials[d], d.result()
                was = known.get(change.key, ("", "", ""))
                if outcome == "survived" and was[0] in ("survived", "missed"):
                    outcome, how = was[:2]
                count[outcome] += 1
                same = outcome == was[0]
                bad += not same or outcome not in ("found", "survived", "missed") or not how
                seen[change.key] = outcome, how, change.source
                print(" | ".join((outcome,) + change.key + (change.source, how)) + ("" if same else "  (was: %s)" % (was[0] or "new")), flush=True)
    print("%d tried: %s; %d not begun in time" % (len(seen), ", ".join("%d %s" % (n, o) for o, n in count.most_common()), late))
    if arguments.bless:
        kept = {k: v for k, v in known.items() if late or k[0] not in names or arguments.changes not in "|".join(k)}
        write_list(head, todo, {**kept, **seen})
    return 1 if ((bad or late) and not arguments.bless) or not seen else 0


parser = argparse.ArgumentParser(description="fences, waits, barriers, scopes and counts taken out of programs")
parser.add_argument("--samples", help="checkout of cuda-samples")
parser.add_argument("--cutlass", help="checkout of CUTLASS")
parser.add_argument("--build", default="build-weakened", help="folder for programs")
parser.add_argument("--no-build", action="store_true")
parser.add_argument("--nvcc", default="nvcc")
parser.add_argument("--cptx", default="build/cptx")
parser.add_argument("--library", default="build/tools/sanitize/libcptx_sanitize.so", help="what programs of the driver API are linked with")
parser.add_argument("--only", help="names of programs, with commas")
parser.add_argument("--again", action="store_true", help="draw nothing: try what is in the list")
parser.add_argument("--changes", default="", help="only changes whose PROGRAM|LINE|WHAT has these words")
parser.add_argument("--each", type=int, default=40, help="changes of each program; 0: all")
parser.add_argument("--seed", type=int, default=1, help="of the draw")
parser.add_argument("--seeds", type=int, default=6, help="runs of a change in which nothing is found, of schedules and seeds in turn")
parser.add_argument("--seconds", type=int, default=60, help="least limit of a run")
parser.add_argument("--steps", type=int, default=30 * 10**6, help="limit of a launch")
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("--until", type=int, default=10**6, help="seconds after which nothing is begun any more")
parser.add_argument("--bless", action="store_true", help="write the outcomes to the list")
arguments = parser.parse_args()
for path in ("samples", "cutlass", "build", "cptx", "library"):
    if getattr(arguments, path):
        setattr(arguments, path, os.path.abspath(getattr(arguments, path)))
if __name__ == "__main__":
    sys.exit(main())
