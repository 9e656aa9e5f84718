# SPDX-License-Identifier: MIT
"""Compiles torch_stable.cc, loads it into PyTorch and compares its operator: python3 torch_stable.py [DEVICE]

CPTX_LIBRARY names libcptx.so, CPTX_INCLUDE the folders of its headers, with a colon between them.  DEVICE is cuda, or cpu, where
the emulator computes.  Exits with 1 if a result differs from PyTorch's.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def lacks():
    """What is missing here for it, or ""."""
    if torch.torch_version.TorchVersion(torch.__version__) < (2, 10):
        return "its stable ABI is that of PyTorch 2.10"
    return "" if shutil.which(compiler()[0]) else "there is no C++ compiler for examples/hosts/torch_stable.cc"


def compiler():
    return shlex.split(os.environ.get("CXX") or "c++")


def build(folder, library):
    """Compiles torch_stable.cc against libcptx and the headers that come with PyTorch; the path of the shared object."""
    out = os.path.join(folder, "cptx_torch.so")
    torch_folder = os.path.dirname(torch.__file__)
    include = (os.environ.get("CPTX_INCLUDE") or f"{ROOT}/include:{ROOT}/build/include").split(":")
    include += [os.path.join(ROOT, "third_party"), os.path.join(torch_folder, "include")]
    cuda = ["-DUSE_CUDA", "-ltorch_cuda"] if torch.version.cuda else []
    subprocess.run([*compiler(), "-std=c++17", "-O1", "-fPIC", "-shared", os.path.join(HERE, "torch_stable.cc"), "-o", out,
                    *(f"-I{i}" for i in include), library, f"-L{torch_folder}/lib", "-ltorch_cpu", *cuda,
                    f"-Wl,-rpath,{os.path.dirname(os.path.abspath(library))}"], check=True)
    return out


def load(library):
    """Makes torch.ops.cptx_stable.silu_mul."""
    with tempfile.TemporaryDirectory() as folder:
        torch.ops.load_library(build(folder, library))

    @torch.library.register_fake("cptx_stable::silu_mul")  # what torch.compile must know of the result
    def _(x, y):
        return torch.empty_like(x)


def main(device="cpu"):
    load(os.environ["CPTX_LIBRARY"])
    x, y = torch.linspace(-8, 8, 4000, device=device).view(4, 1000), torch.rand(4, 1000, device=device)
    silu_mul = torch.ops.cptx_stable.silu_mul

    @torch.compile(backend="aot_eager", fullgraph=True)
    def f(x, y):
        return silu_mul(torch.sin(x), y) + 1

    silu = torch.nn.functional.silu
    close = (torch.allclose(silu_mul(x, y), silu(x) * y, rtol=1e-5, atol=1e-6) and
             torch.allclose(f(x, y), silu(torch.sin(x)) * y + 1, rtol=1e-5))
    print(f"torch.ops.cptx_stable.silu_mul on {device}, and in torch.compile: {'agrees with PyTorch' if close else 'DIFFERS'}")
    return 0 if close else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
