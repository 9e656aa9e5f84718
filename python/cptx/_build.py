# SPDX-License-Identifier: MIT
"""Modules and kernels that Python builds: one call for each PTX instruction, from the library's table.

    m = cptx.Module()
    k = m.kernel("saxpy", block=256)
    x, y = k.param(cptx.PTR, "x"), k.param(cptx.PTR, "y")
    i = k.mad(k.ctaid_x(), 256, k.tid_x(), mode=cptx.LO)

Calls are those of <cptx/cptx.h> and <cptx/insn.h> without cptx_: modifiers, into, when and unless are keywords, and their values
the names of C without CPTX_, their PTX spellings ("rn"), or True.  help(k.add) shows the forms of an instruction.  An error
is raised at the line that made it, and stays with the module, as in C.
"""

import ctypes
import difflib
import functools
import itertools
import re
import typing

from . import _abi, _errors
from ._abi import lib

if typing.TYPE_CHECKING:
    from ._insns import Instructions

    class Value:
        """What type checkers and editors know of the class that src/python/value.c makes."""

        kind: int
        type: str
        count: int

        def __len__(self) -> int: ...
        def __getitem__(self, i: int | slice) -> "Value": ...
        def __invert__(self) -> "Value": ...
        def __neg__(self) -> "Value": ...
        def offset(self, bytes: int) -> "Value": ...
        def as_(self, type: "str | int") -> "Value": ...
        def select(self, selector: str) -> "Value": ...
else:
    Instructions = object
    Value = _errors.checked_object(_abi.python_value_class)  # operands and results; of C, see <cptx/python.h>


def _call_names():
    names = (lib.cptx_python_call_at(i) for i in itertools.count())
    return [name.decode() for name in itertools.takewhile(lambda name: name is not None, names)]


class _Calls(dict):
    """The numbers of calls by their names; a name may have a _ behind it, for the words of Python: and_."""

    def __missing__(self, name):
        if name.endswith("_") and name[:-1] in self:
            self[name] = self[name[:-1]]
            return self[name]
        near = difflib.get_close_matches(name, self, 1)
        raise AttributeError(f"there is no call k.{name}" + (f"; did you mean k.{near[0]}?" if near else ""))


class Modifier(int):
    """A type, or a value of a modifier: cptx.F32, cptx.RN."""

    def __new__(cls, number, name):
        self = super().__new__(cls, number)
        self.name = name
        return self

    def __repr__(self):
        return f"cptx.{self.name}"


@functools.lru_cache(None)
def modifiers():
    """All types and modifiers, by the names of their enumerators in C without CPTX_."""
    info, found = _abi.ModInfo(), {}
    for number in itertools.count(1):
        if not lib.cptx_mod_at_(number, ctypes.byref(info), ctypes.sizeof(info)):
            return found
        found[info.enumerator.decode()] = Modifier(number, info.enumerator.decode())


def number_of(modifier):
    """The number of a type or modifier; of None, 0."""
    if isinstance(modifier, str):
        found = lib.cptx_type_find(modifier.encode()) or lib.cptx_mod_find(modifier.encode())
        if not found:
            raise ValueError(f"{modifier!r} is no type or modifier of PTX")
        return found
    return int(modifier or 0)


def in_python(text):
    """A message of the library with the calls that it advises as they are written here."""
    text = re.sub(r"\bcptx_(\w+)\(k(?:, )?", r"k.\1(", text)
    text = re.sub(r"(?<=[(, ])\.(\w+) = (?=CPTX_|\w)", r"\1=", text)
    return re.sub(r"\bCPTX_(\w+)", lambda found: f"cptx.{found[1]}" if found[1] in modifiers() else found[0], text)


def _failed(info):
    info = _abi.ErrorInfo.from_buffer_copy(info)
    info.text = in_python(info.text.decode(errors="replace")).encode()[:_abi.ErrorInfo.text.size - 1]
    raise _errors.error(info)


_builder = _errors.checked_object(_abi.python_builder, ctypes.byref(_abi.BuilderOpt(value=Value, failed=_failed)))
CALLS = _Calls({name: number for number, name in enumerate(_call_names())})


def line(up=2):
    """The line of the user, who called the function of this package that asks."""
    return _abi.python_line(_builder, up)


class _Block:
    """An open block of a kernel, closed at the end of a with statement."""

    __slots__ = "_kernel", "_value"

    def __init__(self, kernel, value=None):
        self._kernel, self._value = kernel, value

    def __enter__(self):
        return self._value

    def __exit__(self, kind, *about):
        if kind is None:
            self._kernel._end()


class Kernel(Instructions):
    """The body of a kernel or a device function while it is built; made by Module.kernel and Module.func."""

    def __init__(self, module, handle):
        self.module, self._handle = module, handle
        self._get = _errors.checked_object(_abi.python_calls, _builder, module._handle, handle, module)

    if not typing.TYPE_CHECKING:  # which has the names that there are from Instructions

        def __getattr__(self, name):
            f = self.__dict__[name] = self._get(CALLS[name])
            return f

    def __dir__(self):
        return sorted({*super().__dir__(), *(name for name in CALLS if name[0] != "_")})

    # Blocks: what stands in the with statement runs once, while the kernel is built.

    def if_(self, predicate):
        """A block for the threads where a predicate holds."""
        self._if(predicate)
        return _Block(self)

    def else_(self):
        """The block after an if_ for the other threads."""
        self._else()
        return _Block(self)

    def for_(self, i, end, step=1):
        """A loop: while i < end, in the type of i; i += step behind the body.

        i is a register that was set before, or a number, of which a new .u32 register is made; `with k.for_(...) as i:` has it.
        """
        if not isinstance(i, Value):
            i = self._var("u32", i)
        self._for(i, end, step)
        return _Block(self, i)

    def while_(self, condition):
        """A loop with its test at the head: condition() builds it and returns the predicate."""
        self._while()
        self._while_test(condition())
        return _Block(self)

    def do_(self):
        """A loop that its body leaves, by continue_when and the like; runs on behind the block."""
        self._do()
        return _Block(self)

    def scope_(self):
        """A scope { } of the PTX."""
        self._scope()
        return _Block(self)

    def mbarrier_wait(self, test, shape=_abi.WAIT_LOOP):
        """Waits for an mbarrier: a loop around test(), which builds a call that tests it and returns its predicate."""
        self._wait()
        self._wait_end(shape, test())

    def call(self, func, *args):
        """Calls a device function, a Kernel of Module.func or a value of it."""
        return self._call(func.value if isinstance(func, Kernel) else func, *args)

    @property
    def value(self):
        """A device function as an operand."""
        return self._func_val()

    @property
    def dyn_smem(self):
        """Bytes of dynamic shared memory that were laid out so far."""
        return lib.cptx_kernel_dyn_smem(self._handle)


def _set_dims(field, n):
    for i, x in enumerate(n if isinstance(n, (tuple, list)) else (n,)):
        if i == 3 or not 0 <= x < 2**32:
            raise ValueError(f"{n}: at most three dimensions, each from 0 to 2^32 - 1")
        field[i] = x


class Module:
    """Kernels, device functions and variables that are printed or loaded together; one body is built at a time."""

    def __init__(self):
        self._handle = lib.cptx_module_new(None)
        if not self._handle:
            raise MemoryError

    def __del__(self, destroy=lib.cptx_module_destroy):
        destroy(self._handle)

    def _known(self, x):
        """What a call gave, unless the module has an error."""
        info = lib.cptx_module_error(self._handle)
        if info:
            _failed(info.contents)
        return x

    def kernel(self, name, block=(), max_block=(), min_ctas=0, max_regs=0, cluster=(), max_cluster_rank=0) -> Kernel:
        """Opens a kernel; the arguments are the fields of cptx_kernel_opt."""
        opt = _abi.KernelOpt(min_ctas=min_ctas, max_regs=max_regs, max_cluster_rank=max_cluster_rank)
        _set_dims(opt.block, block)
        _set_dims(opt.max_block, max_block)
        _set_dims(opt.cluster, cluster)
        return Kernel(self, self._known(lib.cptx_kernel_begin_(self._handle, line(), name.encode(), ctypes.byref(opt))))

    def func(self, name, ret=None) -> Kernel:
        """Opens a device function with a result of that type, or none."""
        return Kernel(self, self._known(lib.cptx_func_begin_(self._handle, line(), name.encode(), number_of(ret))))

    def global_(self, type, n, name, space=None, init=None, align=0, export=False):
        """A variable of the module with n elements; init: their bytes."""
        size = max(8, lib.cptx_type_bits(number_of(type))) // 8 * n
        if init is not None and len(bytes(init)) != size:
            raise ValueError(f"init has {len(bytes(init))} bytes, but the variable {size}")
        init = None if init is None else ctypes.create_string_buffer(bytes(init), size)
        opt = _abi.GlobalOpt(space=number_of(space), init=ctypes.cast(init, ctypes.c_void_p), align=align, export_=export)
        v = lib.cptx_global_(self._handle, line(), number_of(type), n, name.encode(), ctypes.byref(opt))
        return self._known(_abi.python_value(_builder, v))

    @property
    def size(self):
        """The number of instructions in all bodies."""
        return lib.cptx_module_size(self._handle)

    def ptx(self, target, lines=False, min_version=0):
        """PTX text for a target, "sm_90a"; lines: with .loc, so that debuggers and profilers show the lines of Python."""
        opt, info = _abi.EmitOpt(lines=lines, min_version=min_version), _abi.ErrorInfo()
        text = lib.cptx_emit(self._handle, target.encode(), ctypes.byref(opt), ctypes.byref(info))
        if not text:
            _failed(info)
        try:
            return ctypes.string_at(lib.cptx_ptx_text(text), lib.cptx_ptx_size(text)).decode()
        finally:
            lib.cptx_ptx_destroy(text)
