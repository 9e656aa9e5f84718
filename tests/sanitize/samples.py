#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Builds NVIDIA's cuda-samples with nvcc and PTX, runs each under `cptx sanitize`, and holds the outcomes against samples.txt.

    tests/sanitize/samples.py --samples DIR [--build DIR] [--cptx FILE] [--only NAME,NAME] [--bless] [--no-build] [--jobs N]

DIR is a checkout of github.com/NVIDIA/cuda-samples, which is no part of this project.  Its programs are built as they are;
arguments that make a problem smaller stand in samples.txt.  programs.py says what is right.  --bless writes the outcomes to
samples.txt.  The exit status is 1 if an outcome or the code of a finding changed, or a run was cut: give it less to do, or more time.
"""
import os, re, shutil, sys
import programs

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples.txt")
# Of these no program is built: graphics, and libraries of machine code, which the emulator does not run.
OUTSIDE = re.compile(r"find_package\((OpenGL|GLUT|Vulkan|MPI|EGL)|CUDA::(cublas|cufft|curand|cusparse|cusolver|npp|nvjpeg)|D3D1[12]|nvsci",
                     re.I)
KINDS = ("0_Introduction", "1_Utilities", "2_Concepts_and_Techniques", "3_CUDA_Features", "5_Domain_Specific", "6_Performance")


def samples(root):
    """(name, folder of the program, folder of the source, its CMakeLists.txt)"""
    for kind in KINDS:
        for name in sorted(os.listdir(os.path.join(root, "Samples", kind))):
            folder = os.path.join(root, "Samples", kind, name)
            cmake = os.path.join(folder, "CMakeLists.txt")
            if os.path.exists(cmake) and not OUTSIDE.search(open(cmake).read()):
                yield name, os.path.join(arguments.build, name), folder, open(cmake).read()


def commands(nvcc, root, folder, cmake, out, arch):
    """What builds a program: its own images of kernels first, then the program."""
    flags = ["-w", "-std=c++17", "-O1", "-lineinfo", "--extended-lambda", "-I", os.path.join(root, "Common"), "-I", folder,
             "-I", os.path.join(folder, "inc"), "-gencode", "arch=compute_%s,code=compute_%s" % (arch, arch)] + arguments.flags.split()
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
        libraries += ["-L", os.path.join(arguments.build, "stub")]
    relocatable = ["-rdc=true"] if re.search(r"cdp|cudadevrt", folder + cmake) else []
    openmp = ["-Xcompiler", "-fopenmp"] if "OpenMP" in cmake else []
    yield [nvcc] + flags + relocatable + openmp + ["-o", os.path.join(out, "program")] + sources + libraries + ["-ldl", "-lrt", "-lpthread"]


def files_beside(folder, cmake, out):
    """Links to the files that a program opens beside itself."""
    os.makedirs(out, exist_ok=True)
    names = [n for n in os.listdir(folder) if n.endswith((".cu", ".cuh", ".h", ".hpp", ".ppm", ".bmp", ".yuv")) or n == "data"]
    for name in names:
        if not os.path.exists(os.path.join(out, name)):
            os.symlink(os.path.join(folder, name), os.path.join(out, name))
    include = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(shutil.which(arguments.nvcc) or ""))), "include")
    for header in ("cooperative_groups.h", "cooperative_groups", "nv", "cuda"):  # that NVRTC is to find
        places = [p for p in (os.path.join(include, header), os.path.join(include, "cccl", header)) if os.path.exists(p)]
        if "cooperative_groups" in cmake and places and not os.path.lexists(os.path.join(out, header)):
            os.symlink(places[0], os.path.join(out, header))


def try_sample(sample, row):
    name, out, folder, cmake = sample
    files_beside(folder, cmake, out)
    wrong = trial.build(commands(arguments.nvcc, arguments.samples, folder, cmake, out, arguments.arch), out)
    if wrong:
        return "unbuilt", wrong.splitlines()[0][:80], 0
    if arguments.build_only or not os.path.exists(os.path.join(out, "program")):
        return None
    return trial.run(out, row[1], "sm_%sa" % arguments.arch)


def main():
    todo = [s for s in samples(arguments.samples) if not arguments.only or s[0] in arguments.only.split(",")]
    if any("cuda_driver" in s[3] for s in todo) and not arguments.no_build:
        programs.driver_stub(os.path.join(arguments.build, "stub"), arguments.library)
    return trial.hold(LIST, todo, try_sample)


parser = programs.options("cuda-samples under cptx sanitize")
parser.add_argument("--samples", required=True, help="checkout of cuda-samples")
parser.add_argument("--build", default="build-samples", help="folder for programs")
parser.add_argument("--arch", default="90")
parser.add_argument("--flags", default="", help="more options of nvcc")
arguments = parser.parse_args()
for path in ("samples", "build", "cptx", "library"):
    setattr(arguments, path, os.path.abspath(getattr(arguments, path)))
trial = programs.Trial(arguments)
sys.exit(main())
