# SPDX-License-Identifier: MIT
"""The row kernels of <cptx/rows.h> by device addresses: what cptx.rows is made of, for any framework."""

import ctypes
import functools
import itertools

from . import _abi, _runner
from ._abi import lib
from ._errors import checked

OPERANDS = {lib.cptx_rows_operand_name(i).decode(): i
            for i in itertools.takewhile(lambda i: lib.cptx_rows_operand_name(i) != b"?", itertools.count())}
MATRICES = {"x", "x2", "cos", "sin", "dy", "y", "y2", "dx", "dx2"}  # with a row, or half of one, for each row
SUMS = {"dw", "db"}  # over all rows, which are written without rows, too
# The field of the options that has an operand's type; others are f32.
TYPED = {**dict.fromkeys(("x", "x2", "y2", "dx", "dx2"), "in"), **dict.fromkeys(("y", "dy"), "out"),
         **dict.fromkeys(("w", "b", "cos", "sin", "dw", "db"), "weight"), **dict.fromkeys(("target", "at"), "index")}
WORKSPACES = 4096  # sizes that a runner keeps; numbers of rows can be without end


def kernel(name):
    """The enumerant of a kernel by its name, "rms-norm"."""
    found = lib.cptx_rows_kernel_find(name.encode())
    if lib.cptx_rows_kernel_name(found) == b"?":
        raise ValueError(f"there is no row kernel \"{name}\"")
    return found


@functools.lru_cache(None)
def options(name, n, types, operands, settings=()):
    """The options of a kernel over rows of n elements, as a cptx_rows_opt.

    types: pairs such as ("in", "bf16"), ("out", "f32"); operands: names of those that it may have, in `with`; settings: pairs
    of other fields, ("eps", 1e-6).
    """
    opt = _abi.RowsOpt(size=_abi.RowsOpt.z_.offset, kernel=kernel(name), n=n)
    for field, kind in types:
        setattr(opt, field, lib.cptx_type_find(kind.encode()))
    setattr(opt, "with", sum(1 << OPERANDS[operand] for operand in operands))
    for field, value in settings:
        setattr(opt, field, value)
    return opt


@functools.lru_cache(None)
def _operands(name):
    """The operands that a kernel always has, and those that it may have beside them."""
    opt = _abi.RowsOpt(size=_abi.RowsOpt.z_.offset, kernel=kernel(name), n=8, **{"in": lib.cptx_type_find(b"f32")})
    plan, found = _abi.RowsPlan(), set()
    checked(lib.cptx_rows_check_, ctypes.byref(opt), None, 1, 0, ctypes.byref(plan), ctypes.sizeof(plan))
    for operand, i in OPERANDS.items():
        setattr(opt, "with", 1 << i)
        if lib.cptx_rows_check_(ctypes.byref(opt), None, 1, 0, None, 0, ctypes.byref(_abi.ErrorInfo())):
            found.add(operand)
    return frozenset(operand for operand, i in OPERANDS.items() if (plan.reads | plan.writes) >> i & 1), frozenset(found)


def optional(name, given):
    """Those of the given operands that a kernel may have, beside those that it always has."""
    always, may = _operands(name)
    for operand in given:
        if operand not in always | may:
            raise ValueError(f"{name} has no operand {operand}: it has {', '.join(sorted(always))}"
                             f"{' and may have ' if may else ''}{', '.join(sorted(may))}")
    return tuple(operand for operand in given if operand in may)


def check_block(block, columns):
    """Refuses elements that share a scale, None: all of a row, of which rows do not consist."""
    if block is not None and (block < 1 or columns % block):
        raise ValueError(f"block is {block}, but must divide the {columns} columns of x")


class Runner(_runner.Runner):
    """A cptx_rows_runner of a device."""

    def __init__(self, device):
        super().__init__(device, lib.cptx_rows_runner_new, lib.cptx_rows_runner_destroy)
        self._workspaces = {}

    def workspace(self, opt, rows):
        """Bytes that sums of columns need for so many rows, or rows in parts; 0: none.  opt is one of `options`, which stay."""
        key = id(opt), rows
        size = self._workspaces.get(key)
        if size is None:  # which takes a millisecond where rows may be in parts
            size = checked(lib.cptx_rows_workspace, self._handle, ctypes.byref(opt), rows)
            if len(self._workspaces) >= WORKSPACES:
                self._workspaces.clear()
            self._workspaces[key] = size
        return size

    def run(self, opt, rows, operands, workspace=0, stream=0):
        """Starts a kernel.  operands: (address, stride in elements) by name, stride 0 for dense rows, vectors and scalars."""
        problem = _abi.RowsProblem(size=_abi.RowsProblem.z_.offset, rows=rows, workspace=workspace)
        for name, (address, stride) in operands.items():
            at = problem.at[OPERANDS[name]]
            at.address, at.stride = address, stride
        checked(lib.cptx_rows_run, self._handle, ctypes.byref(opt), ctypes.byref(problem), self._stream(stream))


def runner(key, open_device):
    """The runner that all of a process share, by the number of a device; open_device opens it the first time."""
    return _runner.shared(Runner, key, open_device)
