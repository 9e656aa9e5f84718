#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Builds NVIDIA's cuda-samples with nvcc and PTX, runs each under `cptx sanitize`, and holds the outcomes against samples.txt.

    tests/sanitize/samples.py --samples DIR [--build DIR] [--cptx FILE] [--only NAME,NAME] [--bless] [--no-build] [--jobs N]

DIR is a checkout of github.com/NVIDIA/cuda-samples, which is no part of this project.  Its programs are built as they are;
arguments that make a problem smaller stand in samples.txt.  A run is right if the program ends with 0, says nothing of a
failure, and nothing is found.  --bless writes the outcomes to samples.txt.  The exit status is 1 if an outcome or the
code of a finding changed, or a run was cut: give it less to do, or more time.
"""
import argparse, concurrent.futures, os, re, shutil, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "samples.txt")
# What a program may say that ends with 0 and was wrong all the same.
FAILURE = re.compile(r"\bFAIL(ED|URE)?\b|\bfailed\b|[Ii]ncorrect|\b[Mm]ismatch|\bInvalid result", re.M)
# Of these no program is built: graphics, and libraries of machine code, which the emulator does not run.
OUTSIDE = re.compile(r"find_package\((OpenGL|GLUT|Vulkan|MPI|EGL)|CUDA::(cublas|cufft|curand|cusparse|cusolver|npp|nvjpeg)|D3D1[12]|nvsci",
                     re.I)
KINDS = ("0_Introduction", "1_Utilities", "2_Concepts_and_Techniques", "3_CUDA_Features", "5_Domain_Specific", "6_Performance")


def read_list():
    """name -> (outcome, arguments, remark)"""
    rows, head = {}, []
    if os.path.exists(LIST):
        for line in open(LIST):
            if line.startswith("#") or not line.strip():
                head.append(line)
                continue
            cells = [c.strip() for c in line.split("|")]
            rows[cells[0]] = (cells[1], cells[2], cells[3] if len(cells) > 3 else "")
    return rows, head


def write_list(rows, head):
    with open(LIST, "w") as f:
        f.writelines(line for line in head if not line.startswith("# Of "))
        count = {}
        for outcome, _, _ in rows.values():
            count[outcome.split(":")[0]] = count.get(outcome.split(":")[0], 0) + 1
        f.write("# Of %d programs: %s\n" % (len(rows), ", ".join("%d %s" % (n, o) for o, n in sorted(count.items(), key=lambda c: -c[1]))))
        for name in sorted(rows):
            f.write(("%-28s | %-12s | %-40s | %s" % ((name,) + rows[name])).rstrip() + "\n")


def samples(root):
    for kind in KINDS:
        for name in sorted(os.listdir(os.path.join(root, "Samples", kind))):
            folder = os.path.join(root, "Samples", kind, name)
            cmake = os.path.join(folder, "CMakeLists.txt")
            if os.path.exists(cmake) and not OUTSIDE.search(open(cmake).read()):
                yield name, folder, open(cmake).read()


def driver_stub():
    """The folder of a libcuda.so to link with, which has the names of the driver and nothing behind them."""
    folder = os.path.join(arguments.build, "stub")
    if not os.path.exists(os.path.join(folder, "libcuda.so")):
        os.makedirs(folder, exist_ok=True)
        names = re.findall(r" T (cu[A-Z]\w*)", subprocess.run(["nm", "-D", arguments.library], capture_output=True, text=True).stdout)
        with open(os.path.join(folder, "stub.c"), "w") as f:
            f.writelines("void %s(void);\nvoid %s(void) {}\n" % (n, n) for n in sorted(set(names)))
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", os.path.join(folder, "libcuda.so"),
                        os.path.join(folder, "stub.c")], check=True)
    return folder


def commands(nvcc, root, folder, cmake, out, arch):
    """What builds a program: its own images of kernels first, then the program."""
    flags = ["-w", "-std=c++17", "-O1", "-lineinfo", "--extended-lambda", "-I", os.path.join(root, "Common"), "-I", folder,
             "-I", os.path.join(folder, "inc"), "-gencode", "arch=compute_%s,code=compute_%s" % (arch, arch)]
    images = set(re.findall(r"[{/]CMAKE_CURRENT_SOURCE_DIR}/([\w/]+\.cu)\"?\)", cmake)) if re.search(r"-fatbin|-ptx", cmake) else set()
    for image in sorted(images):
        stem = os.path.splitext(os.path.basename(image))[0]
        made = re.search(re.escape(stem) + r"64\.(fatbin|ptx)", cmake)
        if made:
            yield [nvcc] + flags + ["-" + made.group(1), "-o", os.path.join(out, stem + "64." + made.group(1)), os.path.join(folder, image)]
    sources = re.search(r"add_executable\(\s*[\w${}]+\s+([^)]*)\)", cmake).group(1).split()
    sources = [s.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "") for s in sources]
    sources = [os.path.join(folder, s) for s in sources if re.search(r"\.(cu|cpp|cc|c)$", s)]
    libraries = ["-l" + l for l, mark in (("cuda", "cuda_driver"), ("nvrtc", "CUDA::nvrtc")) if mark in cmake]
    if "cuda_driver" in cmake:
        libraries += ["-L", driver_stub()]
    relocatable = ["-rdc=true"] if re.search(r"cdp|cudadevrt", folder + cmake) else []
    openmp = ["-Xcompiler", "-fopenmp"] if "OpenMP" in cmake else []
    yield [nvcc] + flags + relocatable + openmp + ["-o", os.path.join(out, "program")] + sources + libraries + ["-ldl", "-lrt", "-lpthread"]


def build(name, folder, cmake, out):
    """None, or the compiler's words."""
    os.makedirs(out, exist_ok=True)
    data = os.path.join(folder, "data")
    if os.path.exists(data) and not os.path.exists(os.path.join(out, "data")):
        os.symlink(data, os.path.join(out, "data"))
    for source in os.listdir(folder):  # files that a program opens beside itself
        if source.endswith((".cu", ".cuh", ".h", ".hpp", ".ppm", ".bmp", ".yuv")) and not os.path.exists(os.path.join(out, source)):
            os.symlink(os.path.join(folder, source), os.path.join(out, source))
    include = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(shutil.which(arguments.nvcc) or ""))), "include")
    for header in ("cooperative_groups.h", "cooperative_groups", "nv", "cuda"):  # that NVRTC is to find
        places = [p for p in (os.path.join(include, header), os.path.join(include, "cccl", header)) if os.path.exists(p)]
        if "cooperative_groups" in cmake and places and not os.path.lexists(os.path.join(out, header)):
            os.symlink(places[0], os.path.join(out, header))
    if arguments.no_build or (os.path.exists(os.path.join(out, "program")) and not arguments.rebuild):
        return None
    for command in commands(arguments.nvcc, arguments.samples, folder, cmake, out, arguments.arch):
        done = subprocess.run(arguments.prefix.split() + command, cwd=out, capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip() or "nvcc ended with %d" % done.returncode
    return None


def run(out, args):
    """(outcome, remark, seconds)"""
    command = arguments.prefix.split() + [arguments.cptx, "sanitize", "--arch", "sm_%sa" % arguments.arch, "--step-limit",
                                          str(arguments.steps), "--", "./program"] + args.split()
    begin = time.time()
    try:
        done = subprocess.run(command, cwd=out, capture_output=True, timeout=arguments.seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as cut:
        open(os.path.join(out, "log"), "wb").write((cut.stdout or b"") + (cut.stderr or b""))
        return "cut", "after %d s" % arguments.seconds, time.time() - begin
    said, told = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    open(os.path.join(out, "log"), "w").write(said + told)
    seconds = time.time() - begin
    found = re.search(r"cptx sanitize: (.*?: (?:error|warning): .*)", told)
    if found and not told.rstrip().endswith("0 errors, 0 warnings; the program's exit status is 0"):
        if "step-limit" in found.group(1):
            return "cut", "after %d steps of a launch" % arguments.steps, seconds
        code = re.search(r"\): (\w[\w-]*): ", found.group(1))
        return "finding", code.group(1) if code else "refused", seconds
    missing = re.search(r"(\w+) is not there", told)
    refused = re.search(r"^cptx sanitize: (?!.* is not there|\d+ errors?, )(.*)", told, re.M)
    if refused and not done.returncode:  # a launch or a call that the program did not ask the result of
        return "fails", "says: " + refused.group(1)[:60].replace("|", "/"), seconds
    if done.returncode == 2:
        return "waived", missing.group(0) if missing else "the program waives itself", seconds
    if done.returncode or FAILURE.search(said):
        return "fails", missing.group(1) + " is not there" if missing else "exit status %d" % done.returncode, seconds
    return "right", "", seconds


def try_sample(name, folder, cmake, was):
    """(outcome, remark, seconds); None if it was to be built only, and was"""
    out = os.path.join(arguments.build, name)
    wrong = build(name, folder, cmake, out)
    if wrong:
        open(os.path.join(out, "log"), "w").write(wrong)
        return "unbuilt", wrong.splitlines()[0][:80], 0
    if arguments.build_only or not os.path.exists(os.path.join(out, "program")):
        return None
    return run(out, was[1])


def main():
    rows, head = read_list()
    changed = 0
    todo = [s for s in samples(arguments.samples) if not arguments.only or s[0] in arguments.only.split(",")]
    if any("cuda_driver" in cmake for _, _, cmake in todo):
        driver_stub()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tried = {pool.submit(try_sample, name, folder, cmake, rows.get(name, ("", "", ""))): name for name, folder, cmake in todo}
        for done in concurrent.futures.as_completed(tried):
            name, result = tried[done], done.result()
            if not result:
                continue
            outcome, remark, seconds = result
            was = rows.get(name, ("", "", ""))
            # the code of a finding stands in front of a reason that somebody wrote, which stays; a run that was cut says nothing
            code = was[2].split(",")[0]
            same = outcome == was[0] and outcome != "cut" and (outcome != "finding" or remark == code)
            changed += not same
            print("%-28s %-8s %5.1f s  %s%s" % (name, outcome, seconds, remark, "" if same else "  (was: %s)" % (": ".join(filter(None, (was[0], code))) if was[0] == "finding" else was[0] or "new")), flush=True)
            if same and was[2]:
                remark = was[2]
            rows[name] = (outcome, was[1], remark)
    if arguments.bless:
        write_list(rows, head)
    return 1 if changed and not arguments.bless else 0


parser = argparse.ArgumentParser(description="cuda-samples under cptx sanitize")
parser.add_argument("--samples", required=True, help="checkout of cuda-samples")
parser.add_argument("--build", default="build-samples", help="folder for programs")
parser.add_argument("--cptx", default="build/cptx")
parser.add_argument("--library", default="build/tools/sanitize/libcptx_sanitize.so", help="what programs of the driver API are linked with")
parser.add_argument("--nvcc", default="nvcc")
parser.add_argument("--arch", default="90")
parser.add_argument("--only", help="names, with commas")
parser.add_argument("--prefix", default="", help="command in front of each nvcc and each run")
parser.add_argument("--seconds", type=int, default=120, help="limit of a run")
parser.add_argument("--steps", type=int, default=10**9, help="limit of instructions of warps in a launch")
parser.add_argument("--jobs", type=int, default=1, help="programs that are built and run beside one another")
parser.add_argument("--bless", action="store_true")
parser.add_argument("--no-build", action="store_true")
parser.add_argument("--build-only", action="store_true")
parser.add_argument("--rebuild", action="store_true")
arguments = parser.parse_args()
for path in ("samples", "build", "cptx", "library"):
    setattr(arguments, path, os.path.abspath(getattr(arguments, path)))
sys.exit(main())
