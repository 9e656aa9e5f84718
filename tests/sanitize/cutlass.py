#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Builds CUTLASS's examples with nvcc and PTX, runs each under `cptx sanitize`, and holds the outcomes against cutlass.txt.

    tests/sanitize/cutlass.py --cutlass DIR [--build DIR] [--cptx FILE] [--only NAME,NAME] [--arch sm_90a] [--bless] [--no-build] [--jobs N]

DIR is a checkout of github.com/NVIDIA/cutlass, which is no part of this project.  cutlass.txt has the target and the name of each
example's source, and arguments for small problems; the examples verify themselves, and what does not say that it
passed is not right.  programs.py says what else is.  The emulated device has 16 multiprocessors, because CUTLASS fills its tensors
with as many threads as a device holds.  The exit status is 1 if an outcome changed, or a run was cut.
"""
import glob, os, re, sys
import programs

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cutlass.txt")
PASSED = re.compile(r"[Pp]assed|\bPASS\b|\[ *OK *\]|[Ss]uccess|Status: 1\b")


def examples():
    """(name in the list, folder of the program, target, source)"""
    for name in programs.read_list(LIST)[0]:
        arch, stem = name.split()
        found = glob.glob(os.path.join(arguments.cutlass, "examples", "**", stem + ".cu"), recursive=True)
        if not found:
            sys.exit("%s.cu is not among the examples of %s" % (stem, arguments.cutlass))
        if (not arguments.only or stem in arguments.only.split(",")) and (not arguments.arch or arch == arguments.arch):
            yield name, os.path.join(arguments.build, arch, stem), arch, found[0]


def command(arch, source, out):
    include = [os.path.join(arguments.cutlass, d) for d in ("include", "tools/util/include", "examples/common")] + [os.path.dirname(source)]
    target = "compute_" + arch[3:]
    return [arguments.nvcc, "-w", "-std=c++17", "-O1", "-lineinfo", "--expt-relaxed-constexpr", *("-I" + d for d in include),
            "-gencode", "arch=%s,code=%s" % (target, target), "-o", os.path.join(out, "program"), source, "-lcuda",
            "-L", os.path.join(arguments.build, "stub"), "-Xcompiler", "-static-libstdc++"] + arguments.flags.split()


def try_example(example, row):
    _, out, arch, source = example
    wrong = trial.build([command(arch, source, out)], out)
    if wrong:
        return "unbuilt", wrong.splitlines()[0][:80], 0
    if arguments.build_only or not os.path.exists(os.path.join(out, "program")):
        return None
    return trial.run(out, row[1], arch, ["--sms", "16"])


parser = programs.options("CUTLASS's examples under cptx sanitize")
parser.add_argument("--cutlass", required=True, help="checkout of CUTLASS")
parser.add_argument("--build", default="build-cutlass", help="folder for programs")
parser.add_argument("--arch", help="only examples of this target")
parser.add_argument("--flags", default="", help="more options of nvcc")
arguments = parser.parse_args()
for path in ("cutlass", "build", "cptx", "library"):
    setattr(arguments, path, os.path.abspath(getattr(arguments, path)))
trial = programs.Trial(arguments, PASSED)
if not arguments.no_build:
    programs.driver_stub(os.path.join(arguments.build, "stub"), arguments.library)
sys.exit(trial.hold(LIST, list(examples()), try_example))
