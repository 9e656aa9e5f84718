# SPDX-License-Identifier: MIT
"""
What samples.py and cutlass.py share: programs of others are built by nvcc with PTX, each is run under `cptx sanitize`, and the
outcomes are held against a list.

A line of a list is: name | outcome | arguments | on a GPU | remark.  A program is right if it ends with 0, says nothing of a
failure (and says that its own verification passed, where it has one), and no error is found; warnings are of what the manual forbids
and GPUs take, and stand in the remark.  With --gpu programs run on the
GPU of this machine instead, and what they print is kept; a later run says of each whether the emulator printed the same.
"""
import argparse, concurrent.futures, os, re, subprocess, time

# What a program may say that ends with 0 and was wrong all the same.
FAILURE = re.compile(r"\bFAIL(ED|URE)?\b|\b[Ff]ailed\b|[Ii]ncorrect|\b[Mm]ismatch|\bInvalid result", re.M)
# Lines that differ from one run on a GPU to the next: times and what follows from them, names and sizes of devices, process ids.
VARIES = re.compile(r"tim(e|ing)|second|msec|[0-9.]+ *(ms|us|s|sec|[GMk]B|[GTM]i?B?/s)\b|bandwidth|throughput|flop|performance|speedup|device|"
                    r"\bSM\b|multiproc|occupancy|hopper|emulat|clock|CTAs|0x[0-9a-f]+|\bPID\b|iteration|NVIDIA|M(pixels|texlookups)|global memory|[0-9]/s\b|GPU", re.I)
NOISE = re.compile(r"/\S+/|\s+")


def options(what):
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--cptx", default="build/cptx")
    parser.add_argument("--library", default="build/tools/sanitize/libcptx_sanitize.so", help="what programs of the driver API are linked with")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--only", help="names, with commas")
    parser.add_argument("--prefix", default="", help="command in front of each nvcc and each run")
    parser.add_argument("--seconds", type=int, default=120, help="limit of a run")
    parser.add_argument("--steps", type=int, default=10**9, help="limit of instructions of warps in a launch")
    parser.add_argument("--jobs", type=int, default=1, help="programs that are built and run beside one another")
    parser.add_argument("--until", type=int, default=10**6, help="seconds after which nothing is begun any more")
    parser.add_argument("--bless", action="store_true", help="write the outcomes to the list")
    parser.add_argument("--gpu", action="store_true", help="run on the GPU of this machine, without cptx")
    parser.add_argument("--compare", action="store_true", help="run nothing: hold what --gpu has kept against what was printed here")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--rebuild", action="store_true")
    return parser


def read_list(path):
    """name -> (outcome, arguments, on a GPU, remark)"""
    rows, head = {}, []
    for line in open(path) if os.path.exists(path) else []:
        if line.startswith("#") or not line.strip():
            head.append(line)
            continue
        cells = [c.strip() for c in line.split("|")] + [""] * 4
        rows[cells[0]] = tuple(cells[1:5])
    return rows, head


def write_list(path, rows, head):
    count, same = {}, sum(row[2] == "same" for row in rows.values())
    for row in rows.values():
        count[row[0]] = count.get(row[0], 0) + 1
    with open(path, "w") as f:
        f.writelines(line for line in head if not line.startswith("# Of "))
        f.write("# Of %d programs: %s; %d printed on a GPU what they printed here\n"
                % (len(rows), ", ".join("%d %s" % (n, o) for o, n in sorted(count.items(), key=lambda c: -c[1])), same))
        for name in sorted(rows):
            f.write(("%-28s | %-8s | %-40s | %-7s | %s" % ((name,) + rows[name])).rstrip(" |") + "\n")


def driver_stub(folder, library):
    """The folder of a libcuda.so to link with, which has the names of the driver and nothing behind them."""
    if not os.path.exists(os.path.join(folder, "libcuda.so")):
        os.makedirs(folder, exist_ok=True)
        names = re.findall(r" T (cu[A-Z]\w*)", subprocess.run(["nm", "-D", library], capture_output=True, text=True).stdout)
        with open(os.path.join(folder, "stub.c"), "w") as f:
            f.writelines("void %s(void);\nvoid %s(void) {}\n" % (n, n) for n in sorted(set(names)))
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", os.path.join(folder, "libcuda.so"),
                        os.path.join(folder, "stub.c")], check=True)
    return folder


def printed(text):
    lines = [NOISE.sub(" ", line).strip() for line in text.splitlines() if not line.startswith("cptx sanitize:")]
    return [line for line in lines if line and not VARIES.search(line)]


class Trial:
    """Programs that are built and run with the same options.  passed: what a program must say, or None."""

    def __init__(self, arguments, passed=None):
        self.a, self.passed = arguments, passed

    def build(self, commands, out):
        """None, or the compiler's words."""
        os.makedirs(out, exist_ok=True)
        if self.a.no_build or (os.path.exists(os.path.join(out, "program")) and not self.a.rebuild):
            return None
        for command in commands:
            done = subprocess.run(self.a.prefix.split() + command, cwd=out, capture_output=True, text=True)
            if done.returncode:
                open(os.path.join(out, "log"), "w").write(done.stderr)
                return done.stderr.strip() or "nvcc ended with %d" % done.returncode
        return None

    def on_gpu(self, out, args):
        begin = time.time()
        try:
            done = subprocess.run(["./program"] + args.split(), cwd=out, capture_output=True, timeout=self.a.seconds, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "cut", "after %d s" % self.a.seconds, time.time() - begin
        said = done.stdout.decode(errors="replace")
        open(os.path.join(out, "gpu.log"), "w").write(said + "exit status %d\n" % done.returncode)
        bad = done.returncode or FAILURE.search(said)
        return "fails" if bad else "right", "exit status %d" % done.returncode if bad else "", time.time() - begin

    def run(self, out, args, arch, more=()):
        """(outcome, remark, seconds)"""
        if self.a.gpu:
            return self.on_gpu(out, args)
        command = self.a.prefix.split() + [self.a.cptx, "sanitize", "--arch", arch, "--step-limit", str(self.a.steps), *more, "--",
                                           "./program"] + args.split()
        begin = time.time()
        try:
            done = subprocess.run(command, cwd=out, capture_output=True, timeout=self.a.seconds, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as cut:
            open(os.path.join(out, "log"), "wb").write((cut.stdout or b"") + (cut.stderr or b""))
            return "cut", "after %d s" % self.a.seconds, time.time() - begin
        said, told = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        open(os.path.join(out, "log"), "w").write(said + told)
        return self.outcome(done.returncode, said, told) + (time.time() - begin,)

    def outcome(self, status, said, told):
        found = re.search(r"cptx sanitize: (.*?: error: .*)", told)
        warned = sorted(set(re.findall(r"cptx sanitize: .*?: warning: .*?: warning: ([\w-]+): ", told)))
        if found:
            if "step-limit" in found.group(1):
                return "cut", "after %d steps of a launch" % self.a.steps
            code = re.search(r"\): (\w[\w-]*): ", found.group(1))
            return "finding", code.group(1) if code else "refused"
        missing = re.search(r"(\w+) is not there", told)
        refused = re.search(r"^cptx sanitize: (?!.* is not there|\d+ errors?, |.*: warning: kernel)(.*)", told, re.M)
        if refused and not status:  # a launch or a call that the program did not ask the result of
            return "fails", "says: " + refused.group(1)[:60].replace("|", "/")
        if status == 2:
            return "waived", missing.group(0) if missing else "the program waives itself"
        if status or FAILURE.search(said):
            return "fails", missing.group(1) + " is not there" if missing else "exit status %d" % status
        if self.passed and not self.passed.search(said):
            return "fails", "it does not say that its verification passed"
        return "right", "warns: " + ", ".join(warned) if warned else ""

    def beside_gpu(self, out):
        """What the list says of the GPU: whether both printed the same, as far as that does not vary; "" where it did not run on one."""
        if not os.path.exists(os.path.join(out, "gpu.log")) or not os.path.exists(os.path.join(out, "log")):
            return ""
        here = printed(open(os.path.join(out, "log")).read())
        gpu = printed(open(os.path.join(out, "gpu.log")).read())
        if not gpu or gpu[-1] != "exit status 0":
            return "fails"
        return "same" if here == gpu[:-1] else "differs"

    def hold(self, path, todo, try_one):
        """Tries each of todo, whose first is its name, by try_one(it, row) -> (outcome, remark, seconds), or None for what was built only;
        0, or 1 if an outcome or the code of a finding changed, or a run was cut."""
        rows, head = read_list(path)
        changed, begin = 0, time.time()
        if self.a.compare:
            for name, out in (it[:2] for it in todo):
                row = rows.get(name)
                if row and self.beside_gpu(out):
                    rows[name] = (row[0], row[1], self.beside_gpu(out), row[3])
                    print("%-28s %s" % (name, rows[name][2]))
            todo = []

        def timely(it):
            return try_one(it, rows.get(it[0], ("", "", "", ""))) if time.time() - begin < self.a.until else None

        with concurrent.futures.ThreadPoolExecutor(self.a.jobs) as pool:
            tried = {pool.submit(timely, it): it for it in todo}
            for done in concurrent.futures.as_completed(tried):
                name, out, result = tried[done][0], tried[done][1], done.result()
                if not result:
                    continue
                outcome, remark, seconds = result
                was = rows.get(name, ("", "", "", ""))
                # the code of a finding stands in front of a reason that somebody wrote, which stays; a run that was cut says nothing
                code = was[3].split(",")[0]
                same = self.a.gpu or (outcome == was[0] and outcome != "cut" and (outcome != "finding" or remark == code))
                changed += not same
                print("%-28s %-8s %6.1f s  %s%s" % (name, outcome, seconds, remark, "" if same else "  (was: %s)" %
                      (": ".join(filter(None, (was[0], code))) if was[0] == "finding" else was[0] or "new")), flush=True)
                if not self.a.gpu:
                    rows[name] = (outcome, was[1], self.beside_gpu(out) or was[2], was[3] if same and was[3] else remark)
        if self.a.bless:
            write_list(path, rows, head)
        return 1 if changed and not self.a.bless else 0
