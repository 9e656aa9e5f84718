# SPDX-License-Identifier: MIT
"""Each allocation of each command fails once, and each with all behind it.

    no_memory.py CPTX FAIL_MALLOC.SO

A command then ends as it does otherwise, with the same output, or with another status than 0 (cptx diff: 2) and a word about memory on
standard error; never by a signal, never with other output and status 0, and files are whole or not there.  CPTX_WHOLE=1 tries all
allocations, else those of a command that are many are tried in part.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

cptx, shim = map(os.path.abspath, sys.argv[1:3])
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
turn, saxpy = root + "/examples/turn.ptx", root + "/examples/python/saxpy.ptx"
MOST = 10**9 if os.environ.get("CPTX_WHOLE") else 8  # runs of a command for each way to fail
passed = failed = skipped = 0

# what varies from run to run
TIMES = re.compile(rb"\d+(\.\d+)? *(ns|us|ms|s|GB/s|TFLOP/s|GFLOP/s|MB)\b|20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?")

# arguments; {o}: a file that is written; {r}: one that cptx sanitize --record wrote
COMMANDS = [
    ["gemm", "--arch", "sm_90a", "-o", "-"],
    ["gemm", "--arch", "sm_80", "--tile", "64x64x32", "--warps", "2x2", "-o", "{o}"],
    ["gemm", "--arch", "sm_90a", "--explain", "128x1024x512"],
    ["attention", "--arch", "sm_90a", "--dim", "64", "-o", "-"],
    ["attention-decode", "--arch", "sm_80", "--dim", "64", "-o", "-"],
    ["attention-backward", "--arch", "sm_80", "--dim", "64", "-o", "-"],
    ["tune", "--list"],
    ["sanitize", "--seed", "1", "--", "true"],
    ["replay", "{r}"],
    ["retarget", turn, "--driver", "12.8", "-o", "{o}"],
    ["bundle", "--targets", "sm_80", "--machine-code", "none", "-o", "{o}", root + "/tests/bundle/one.txt"],
    ["rows", "softmax", "--arch", "sm_90a", "--in", "f32", "--for", "64x1000", "-o", "-"],
    ["gemm", "--device", "emu:sm_90a", "--mma", "sync", "--tile", "64x64x32", "--warps", "2x2", "--run", "64x64x32"],
    ["run", "-g", "1", "-b", "64", "-a", "buf:u32[64]=iota", turn],
    ["run", "-g", "1", "-b", "64", "-a", "buf:u32[64]=iota", "--counters", turn],
    ["run", "-g", "1", "-b", "64", "-a", "buf:u32[64]=iota", "--out", "0={o}", turn],
    ["run", "-g", "1", "-b", "64", "-a", "buf:u32[64]=iota", "--trace", "{o}", turn],
    ["run", "-g", "1", "-b", "64", "-a", "buf:u32[64]=iota", "--compare", "emu:sm_90a", turn],
    ["insn", "mbarrier.try_wait"],
    ["insn", "--coverage"],
    ["fmt", turn],
    ["fmt", "--keep", turn, "-o", "{o}"],
    ["check", "--arch", "sm_90a", turn],
    ["to-c", "--main", turn, "-o", "{o}"],
    ["layout", "--tile", "64x64", "--swizzle", "128B", "--read", "mma-a"],
    ["layout", "--tile", "64x64", "--swizzle", "128B", "--svg", "{o}"],
    ["layout", "--frag", "mma-b", "--shape", "16x8x32", "--type", "s8"],
    ["desc", "tcgen05", "0x4000404000010040"],
    ["inspect", turn],
    ["inspect", "--json", turn],
    ["inspect", "--html", "{o}", turn],
    ["inspect", root + "/tests/inspect/cubins/across.sm_80.cubin"],
    ["diff", root + "/tests/inspect/cubins/across.sm_80.cubin", root + "/tests/inspect/cubins/blur.sm_86.cubin"],
    ["diff", turn, turn],
    ["diff", turn, saxpy],
    ["tmem-width"],
    ["tmem-width", "--width", "4", "-o", "{o}"],
    ["compile", turn, "-o", "{o}"],
    ["compile", turn, "-o", "{o}", "--verbose"],
    ["cache", "list"],
    ["cache", "stats"],
    ["arch", "sm_120a"],
    ["arch"],
    ["completion", "bash"],
    ["--help"],
    ["--man"],
    ["--version"],
]


def bad(text):
    global failed
    failed += 1
    print("FAIL: " + text)


class Place:
    """A folder for what runs write, and whether ptxas is there."""

    def __init__(self, folder, ptxas):
        self.out, self.seen, self.recording = folder + "/out", folder + "/seen", folder + "/recording"
        self.env = dict(os.environ, TMPDIR=folder, CPTX_CACHE_DIR=folder + "/cache", CPTX_CACHE="0", CPTX_CUDA_LIBRARY="/nonexistent",
                        # libraries of others in the process of the command, which end it where memory ends
                        CPTX_NVJITLINK="/nonexistent", CPTX_NVPTXCOMPILER="/nonexistent")
        if not ptxas:
            self.env["CPTX_PTXAS"] = "/nonexistent"

    def run(self, arguments, at=0, on=False):
        env = dict(self.env, LD_PRELOAD=shim, CPTX_TEST_FAIL="%d%s:%s" % (at, "+" if on else "", self.seen))
        for name in (self.out, self.seen):
            if os.path.exists(name):
                os.remove(name)
        words = [a.replace("{o}", self.out).replace("{r}", self.recording) for a in arguments]
        p = subprocess.run([cptx] + words, env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=300)
        written = open(self.out, "rb").read() if os.path.exists(self.out) else None
        return p.returncode, TIMES.sub(b"#", p.stdout), written, p.stderr

    def record(self):
        """Makes the recording, of a launch by the command itself; what was wrong, or ""."""
        p = subprocess.run([cptx, "sanitize", "--record", self.recording, "--", cptx, "run", "--device", "cuda", "-g", "1", "-b", "64",
                            "-a", "buf:u32[64]=iota", turn], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        return "" if p.returncode == 0 else p.stderr.decode(errors="replace")

    def failed_one(self):
        return os.path.exists(self.seen)

    def count(self):
        """How many allocations the last run made, if none was to fail."""
        with open(self.seen, "rb") as file:
            return int.from_bytes(file.read(), sys.byteorder)


def is_json(text):
    """A timeline shows a run up to its error."""
    try:
        return json.loads(text) is not None
    except ValueError:
        return False


def wrong(arguments, usual, got):
    """What is wrong with a run in which memory was lacking; "" if nothing is."""
    status, out, written, err = got
    if status == usual[0] and out == usual[1] and written == usual[2]:
        return ""
    if status < 0 or status > 2:
        return "status %d" % status
    if status == 0 or status == 1 and arguments[0] == "diff":
        return "status %d, and other output than usually" % status
    if written is not None and written != usual[2] and not ("--trace" in arguments and is_json(written)):
        return "it leaves a file that is not whole"
    if b"memory" not in err:
        return "it says nothing of memory: %r" % err[:300]
    return ""


def try_command(place, arguments, what):
    global passed
    usual = place.run(arguments)
    if place.run(arguments)[:3] != usual[:3] or usual[0] not in (0, 1):
        bad("%s: it does not end alike twice, or with status %d: %r" % (what, usual[0], usual[3][:300]))
        return
    number = place.count()
    if not number:
        bad("%s: no allocation is counted" % what)
    step = max(1, number / MOST)
    ways = sorted({int(1 + i * step) for i in range(int(min(number, MOST)))} | set(range(max(1, number - 2), number + 1)))
    for on in (False, True):
        for at in ways:
            got = place.run(arguments, at, on)
            said = wrong(arguments, usual, got)
            if said:
                bad("%s: allocation %d of %d%s: %s" % (what, at, number, " and all behind it" if on else "", said))
            else:
                passed += 1


def main():
    global skipped
    help_text = subprocess.run([cptx, "--help"], capture_output=True, text=True).stdout
    known = re.findall(r"^  ([a-z][a-z-]*) ", help_text.split("To begin")[0], re.M)
    for name in known:
        if name not in [c[0] for c in COMMANDS]:
            bad("%s: no such run is here" % name)
    if not known:
        bad("cptx --help names no commands")
    with tempfile.TemporaryDirectory() as folder:
        for ptxas in (False, True):
            if ptxas and not (os.environ.get("CPTX_PTXAS") or shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas")) \
                    or ptxas and "nonexistent" in os.environ.get("CPTX_PTXAS", ""):
                skipped += 1
                print("SKIP no_memory: ptxas, for what asks it")
                continue
            place = Place(folder, ptxas)
            unrecorded = place.record() if not ptxas else ""
            if unrecorded:
                if "neither beside this command" not in unrecorded:
                    bad("nothing is recorded: " + unrecorded[:300])
                skipped += 1
                print("SKIP no_memory: cptx replay, for what it replays")
            for arguments in COMMANDS:
                if unrecorded and arguments[0] == "replay":
                    continue
                asks = arguments[0] in ("inspect", "diff", "compile")  # tmem-width asks for minutes
                if ptxas and not asks:
                    continue
                try_command(place, arguments, "cptx %s%s" % (" ".join(arguments), "" if ptxas or not asks else " (without ptxas)"))
    print("no_memory: %d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return 1 if failed else 0


sys.exit(main())
