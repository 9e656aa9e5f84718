# SPDX-License-Identifier: MIT
"""The module on the emulator: structs, results, errors, lifetimes; with NumPy where it is installed."""

import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock
from struct import calcsize, pack, unpack_from

import runner

import cptx
from cptx import _abi, _arrays

numpy = runner.optional("numpy")
NO_NUMPY = "NumPy is not installed (Debian: python3-numpy)"


class Abi(unittest.TestCase):
    """What C says about the structs and numbers of _abi.py: a program of assertions is made of these, compiled and run."""

    members = {"device_type": "device.device_type", "device_id": "device.device_id", "dtype_code": "dtype.code",
               "dtype_bits": "dtype.bits", "dtype_lanes": "dtype.lanes", "major": "version.major", "minor": "version.minor"}

    def claims(self):
        kinds = "NONE DL MANAGED VERSIONED OBJECT INT UINT FLOAT".split()
        yield from (f"CPTX_TENSOR_{name} == {getattr(_abi, name)}" for name in kinds)
        yield from (f"CPTX_WAIT_{name} == {getattr(_abi, 'WAIT_' + name)}" for name in ("LOOP", "UNIFORM", "DONE"))
        yield from (f"CPTX_TUNE_{name} == {getattr(_abi, 'TUNE_' + name)}" for name in ("AS_SET", "OFF", "NEVER", "ONCE", "ALWAYS"))
        yield from (f"kDL{name} == {getattr(_abi, name)}" for name in ("CPU", "CUDA"))
        for struct in filter(lambda s: hasattr(s, "of_c"), vars(_abi).values()):
            if not hasattr(struct, "more"):  # the first fields of the others are all that is declared
                yield f"sizeof({struct.of_c}) == {ctypes.sizeof(struct)}"
            for name, kind in struct._fields_:
                member, about = self.members.get(name, name) if struct.of_c[:2] == "DL" else name, getattr(struct, name)
                yield f"offsetof({struct.of_c}, {member}) == {about.offset}"
                if not hasattr(kind, "more"):
                    yield f"sizeof((({struct.of_c} *)0)->{member}) == {about.size}"

    def test_structs(self):
        claims = list(self.claims())
        self.assertGreater(len(claims), 120)
        source = "#include <cptx/dlpack.h>\n#include <cptx/attention_backward.h>\n#include <cptx/attention_decode.h>\n#include <cptx/gemm.h>\n#include <cptx/python.h>\n#include <cptx/rows.h>\n#include <dlpack/dlpack.h>\n"
        source += "".join(f'_Static_assert({claim}, "");\n' for claim in claims)
        source += "int main(void) { return 0; }\n"
        folders = os.environ["CPTX_INCLUDE"].split(":") + [os.path.join(runner.ROOT, "third_party")]
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "abi")
            said = subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c11", *(f"-I{f}" for f in folders), "-x", "c", "-", "-o", program],
                                  input=source, capture_output=True, text=True)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(subprocess.run([program]).returncode, 0)

    def test_sizes(self):
        """What declares the first fields alone says so to C, which would read behind it."""
        grow = [s for s in vars(_abi).values() if hasattr(s, "more") and hasattr(s, "size")]
        self.assertGreater(len(grow), 8)
        for struct in grow:
            self.assertEqual(struct().size, ctypes.sizeof(struct), struct.of_c)
            self.assertEqual(struct(size=8).size, 8)

    def test_version(self):
        self.assertRegex(cptx.version(), r"^\d+\.\d+\.\d+$")


class Floats:
    """An array with nothing but an array interface."""

    def __init__(self, values, read_only=False, typestr="<f4"):
        self.values = (ctypes.c_float * len(values))(*values)
        self.__array_interface__ = {"version": 3, "typestr": typestr, "shape": (len(values),), "strides": None,
                                    "data": (ctypes.addressof(self.values), read_only)}


class Matrix:
    """A matrix with nothing but an array interface, by rows; element: a letter of struct, "e" or "f"."""

    def __init__(self, rows, element):
        flat = [v for row in rows for v in row]
        self.code, self.bytes = f"{len(flat)}{element}", ctypes.create_string_buffer(pack(f"{len(flat)}{element}", *flat))
        self.__array_interface__ = {"version": 3, "typestr": f"<f{calcsize(element)}", "shape": (len(rows), len(rows[0])), "strides": None,
                                    "data": (ctypes.addressof(self.bytes), False)}

    def values(self):
        return list(unpack_from(self.code, self.bytes))


class Framework:
    """An array of a framework like PyTorch: DLTensors by an exchange API, lazy views, gradients; none of which DLPack tells."""

    given, requires_grad = 0, False

    def __init__(self, values, conj=False, neg=False, requires_grad=False):
        self.floats, self.conj, self.neg, self.requires_grad = Floats(values), conj, neg, requires_grad

    def is_conj(self):
        return self.conj

    def is_neg(self):
        return self.neg

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(_abi.DLTensor))
    def give(x, out):
        Framework.given += 1
        x.shape = (ctypes.c_int64 * 1)(len(x.floats.values))
        out[0] = _abi.DLTensor(ctypes.addressof(x.floats.values), 1, 0, 1, 2, 32, 1, x.shape, None, 0)
        return 0

    # struct DLPackExchangeAPI: version 1.1, no older one, three functions, give, current_work_stream
    api = (ctypes.c_uint64 * 8)(1 | 1 << 32, 0, 0, 0, 0, ctypes.cast(give, ctypes.c_void_p).value, 0)
    __dlpack_c_exchange_api__ = _abi.capsule_new(ctypes.addressof(api), b"dlpack_exchange_api", None)


class Counted(Framework):
    """A tensor of a PyTorch that is not there."""

    is_cuda, inference = False, False

    def is_inference(self):
        return self.inference


class Emulator(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = cptx.Device("emu:sm_90a")
        cls.saxpy = runner.saxpy(cls.device)

    def refuses(self, kind, part, call, *args, **options):
        with self.assertRaises(kind) as caught:
            call(*args, **options)
        self.assertIn(part, str(caught.exception))
        return caught.exception

    def test_array_interface(self):
        x, y = Floats(range(300), read_only=True), Floats([1] * 300)
        self.saxpy(x, y, 2)
        self.assertEqual(list(y.values), [2 * i + 1 for i in range(300)])
        self.saxpy(x, y, 2.0, grid=(2,))
        self.assertEqual(list(y.values), [4 * i + 1 for i in range(300)])

    def test_exported_tensors(self):
        x, y = (self.device.empty((100,), "f32") for _ in range(2))
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        for t, value in ((x, 3.0), (y, 1.0)):
            capsule = t.__dlpack__(max_version=(1, 0))
            self.assertTrue(_abi.capsule_is(capsule, b"dltensor_versioned"))
            at = _abi.capsule_pointer(capsule, b"dltensor_versioned")
            data = _abi.ManagedTensorVersioned.from_address(at).dl_tensor.data
            (ctypes.c_float * 100).from_address(data)[:] = [value] * 100
        self.saxpy(x, y, 2.0)
        capsule = y.__dlpack__()
        self.assertTrue(_abi.capsule_is(capsule, b"dltensor"))
        data = _abi.DLTensor.from_address(_abi.capsule_pointer(capsule, b"dltensor")).data
        self.assertEqual(list((ctypes.c_float * 100).from_address(data)), [7.0] * 100)
        self.assertEqual(len(cptx._exported), 1)  # one capsule is left
        del capsule
        gc.collect()
        self.assertEqual(cptx._exported, {})
        self.refuses(BufferError, "without a copy", y.__dlpack__, copy=True)
        self.refuses(BufferError, "without a copy", y.__dlpack__, dl_device=(2, 0))
        self.refuses(cptx.Error, "DLPack has no tensors of .f16x2", self.device.empty((4,), "f16x2").__dlpack__)

    def test_errors(self):
        x, y = Floats([1] * 4), Floats([1] * 4)
        e = self.refuses(cptx.Error, "argument \"y\" is f32[3] on the CPU, but must be f32[n = 4]", self.saxpy, x, _strided(3), 1.0)
        self.assertEqual(e.code, "ARG")
        self.refuses(cptx.Error, "read-only", self.saxpy, x, Floats([1] * 4, read_only=True), 1.0)
        self.refuses(TypeError, "takes 3 arguments (x, y, a), but 2 were given", self.saxpy, x, y)
        self.refuses(TypeError, "unexpected keyword argument 'stram'", self.saxpy, x, y, 1.0, stram=0)
        self.refuses(TypeError, "argument \"y\": a list is no tensor", self.saxpy, x, [1], 1.0)
        self.refuses(TypeError, "argument \"a\": ", self.saxpy, x, y, None)
        self.refuses(TypeError, "argument \"a\": ", self.saxpy, x, y, "two")
        self.refuses(TypeError, "have no counterpart in DLPack", self.saxpy, x, Floats([1], typestr=">f4"), 1.0)
        self.refuses(ValueError, "at most three dimensions", self.saxpy, x, y, 1.0, grid=(1, 1, 1, 1))
        self.refuses(ValueError, "from 0 to", self.saxpy, x, y, 1.0, grid=2**32)
        before = list(y.values)
        self.saxpy(x, y, 1.0, grid=(4, 0))  # no CTAs
        self.assertEqual(list(y.values), before)
        self.saxpy(x, y, 1.0)
        self.assertEqual(list(y.values), [2.0] * 4)  # and what was refused did nothing

    def test_views_and_gradients(self):
        x, y, Framework.given = Framework([2] * 4), Framework([1] * 4), 0
        self.saxpy(x, y, 3.0)
        self.saxpy(Framework([1] * 4, requires_grad=True), y, 1.0)  # it is only read
        self.assertEqual((list(y.floats.values), Framework.given), ([8.0] * 4, 4))
        bits = self.device.load_file(runner.SAXPY).kernel(  # only bits can be complex
            None, "x: b32[n] const, y: f32[n], a: f32, n: u32 = n", grid="n / 256", block=256)
        for options in {}, {"grid": 1}:
            self.refuses(ValueError, "argument \"x\": it is a conjugate", bits, Framework([1], conj=True), y, 1.0, **options)
            self.refuses(ValueError, "argument \"y\": it is a negative", self.saxpy, x, Framework([1], neg=True), 1.0, **options)
            self.refuses(ValueError, "give x.detach()", self.saxpy, x, Framework([1], requires_grad=True), 1.0, **options)
        self.assertEqual(Framework.given, 4)

    def test_written(self):
        """PyTorch's version counter goes up by one for each launch that may write a tensor, as far as it is done."""
        written = []
        torch = types.ModuleType("torch")
        torch.Tensor, torch.autograd = Counted, types.SimpleNamespace(graph=types.SimpleNamespace(increment_version=written.append))
        x, y = Counted([2] * 4), Counted([1] * 4)
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            self.saxpy(x, y, 3.0)
            self.saxpy(x, y, 3.0, grid=1)
            self.saxpy(x, Floats([1] * 4), 3.0)
            z = Counted([1] * 4)
            z.inference = True
            self.saxpy(x, z, 3.0)
            self.assertEqual(written, [y, y])
            self.refuses(cptx.Error, "but must be", self.saxpy, x, Counted([1] * 3), 3.0)
            self.refuses(TypeError, "argument \"a\": ", self.saxpy, x, y, None)
        self.assertEqual(written, [y, y])

    def test_written_at_once(self):
        """Several arrays are told of in one call."""
        _arrays.apis.clear()
        told, twice = [], self.device.load_file(runner.SAXPY).kernel(
            None, "x: f32[n], y: f32[n], a: f32, n: u32 = n", grid="n / 256", block=256)
        x, y = Counted([2] * 4), Counted([1] * 4)
        with unittest.mock.patch.dict(_arrays.counts, {Counted: True}), unittest.mock.patch.object(_arrays, "teller", lambda: told.append):
            twice(x, y, 1.0)
            self.assertEqual(told, [x, y])
            twice(x, y, 1.0)
            self.assertEqual(told, [x, y, (x, y)])
        _arrays.apis.clear()

    def test_one_call_of_c(self):
        """From the second launch on: the module itself is not asked; but for what needs a closer look it is."""
        x, y = Framework([2] * 4), Framework([1] * 4)
        self.saxpy(x, y, 1.0)
        with unittest.mock.patch.object(_arrays, "tensor", wraps=_arrays.tensor) as tensor:
            self.saxpy(x, y, 1.0)
            self.saxpy(x, y, 3)
            self.assertEqual(tensor.call_count, 0)
            self.saxpy(x, y, 1.0, grid=1)
            self.assertEqual(tensor.call_count, 2)
        self.assertEqual(list(y.floats.values), [13.0] * 4)

    def test_optional(self):
        some = self.device.load_file(runner.SAXPY).kernel(None, "x: f32[_] const optional, y: f32[_] optional, a: f32, n: u32", grid="1", block=64)
        some(None, None, 1.0, 0)
        x, y = Framework([2] * 4), Framework([1] * 4)
        some(x, y, 1.0, 4)
        self.assertEqual(list(y.floats.values), [3.0] * 4)

    def test_types(self):
        """What is of the wrong kind is a TypeError that says what it is; a grid is text or numbers."""
        program, x, y = self.device.load_file(runner.SAXPY), Floats([1] * 4), Floats([1] * 4)
        of = "x: u64, y: u64, a: f32, n: u32"
        self.refuses(TypeError, "name is a int, but must be a str", cptx.Device, 3)
        self.refuses(TypeError, "bytes-like", self.device.load, 3)
        self.refuses(TypeError, "target is a int", self.device.load, "", target=90)
        self.refuses(TypeError, "dtype is a int", self.device.empty, (4,), 8)
        self.refuses(TypeError, "signature is None", program.kernel, None, None)
        self.refuses(TypeError, "name is a int", program.kernel, 5, of)
        self.refuses(TypeError, "float", program.kernel, None, of, grid=1.5)
        self.refuses(TypeError, "a str is no number", self.saxpy, x, y, "2")
        self.refuses(TypeError, "str", self.saxpy, x, y, 2.0, stream="x")
        for grid in ("2", 2, (2, 1), [2]):
            self.assertEqual(len(program.kernel(None, of, grid=grid, block=64).args), 4)

    def test_references(self):
        """Calls, refused ones too, leave none behind; a callable that is kept outlives its kernel."""
        x, y, conj, big = Framework([2] * 4), Framework([1] * 4), Framework([1] * 4, neg=True), 12345678901
        plain = self.device.load_file(runner.SAXPY).kernel(None, "x: u64, y: u64, a: f32, n: u32", grid="1", block=64)
        counted = x, y, conj, big, Framework, None, plain.__call__

        def calls():
            self.saxpy(x, y, 1.0)
            self.refuses(ValueError, "it is a negative", self.saxpy, conj, y, 1.0)
            self.refuses(cptx.Error, "but must be f32[n = 4]", self.saxpy, x, Framework([1] * 3), 1.0)
            self.refuses(cptx.Error, "argument \"n\" is 12345678901", plain, big, 0, 1.0, big)

        calls()
        before = [sys.getrefcount(o) for o in counted]
        for _ in range(100):
            calls()
        gc.collect()  # exceptions and their frames
        grown = [sys.getrefcount(o) - n for o, n in zip(counted, before)]
        self.assertLess(max(grown), 20, grown)
        call = runner.saxpy(cptx.Device("emu:sm_90a")).__call__
        gc.collect()
        call(x, y, 0.0)

    def test_many_classes(self):
        """Of more classes than C has room for, the last ones are still taken."""
        self.addCleanup(_arrays.apis.clear)
        for _ in range(40):
            x, y = type("Another", (Framework,), {})([2] * 4), Framework([1] * 4)
            self.saxpy(x, y, 1.0)
            self.saxpy(x, y, 1.0)
            self.assertEqual(list(y.floats.values), [5.0] * 4)

    def test_kinds_of_errors(self):
        x, y = Floats([1] * 4), Floats([1] * 4)
        self.refuses(ValueError, "the types differ", self.device.load_file(runner.SAXPY).kernel(
            None, "x: f64[_], y: f32[n], a: f32, n: u32 = n", grid="1", block=64), x, y, 1.0)
        self.refuses(cptx.ArgumentError, "3.5e+38, which .f32 does not hold", self.saxpy, x, y, 3.5e38)
        self.refuses(TypeError, "argument \"x\": it is None, and not optional", self.saxpy, None, y, 1.0)
        self.refuses(ValueError, "dyn_smem is 4294967296", runner.saxpy, self.device, dyn_smem=1 << 32)
        self.refuses(ValueError, "max_regs is -1", self.device.load, "", max_regs=-1)
        self.refuses(ValueError, "negative dimension", self.device.empty, (-2, -2), "f32")
        self.refuses(ValueError, "beyond all memory", self.device.empty, (1 << 40, 1 << 40), "f32")
        self.refuses(ValueError, "\"float\" is no type", self.device.empty, (2,), "float")
        self.assertNotIsInstance(self.refuses(RuntimeError, "", cptx.Device, "cuda:4095"), ValueError)

    def test_integers(self):
        program = self.device.load_file(runner.SAXPY)
        plain = program.kernel(None, "x: u64, y: u64, a: f32, n: u32", grid="1", block=64)
        self.refuses(TypeError, "a float is no integer", plain, 0, 0, 1.0, 2.0)
        self.refuses(OverflowError, "more than 64 bits", plain, 1 << 64, 0, 1.0, 0)
        self.refuses(cptx.Error, "argument \"n\" is -1, but must be a .u32", plain, 0, 0, 1.0, -1)
        self.refuses(cptx.Error, "argument \"n\" is 4294967296, but must be a .u32", plain, 0, 0, 1.0, 1 << 32)
        plain((1 << 64) - 1, 0, 1.0, 0)  # any address: with n = 0 nothing is read

    def test_preparing(self):
        program = self.device.load_file(runner.SAXPY)
        self.assertEqual(program.kernels, ["saxpy"])
        self.refuses(cptx.Error, "column 4: \"float\" is no type", program.kernel, "saxpy", "x: float[n]")
        self.refuses(cptx.Error, "it takes 4 arguments", program.kernel, "saxpy", "x: f32[n]", grid="1", block=1)
        self.refuses(cptx.Error, "no kernel \"nobody\"", program.kernel, "nobody", "x: f32[n]", block=1)
        self.refuses(cptx.Error, "k.ptx:1", self.device.load, "nonsense", name="k.ptx")
        self.refuses(cptx.Error, "is no device name", cptx.Device, "tpu:0")
        self.refuses(FileNotFoundError, "nowhere.ptx", self.device.load_file, "nowhere.ptx")
        without = program.kernel("saxpy", runner.SIGNATURE, block=64)
        self.refuses(cptx.Error, "this run gives none", without, Floats([1]), Floats([1]), 1.0)
        without(Floats([1]), Floats([1]), 1.0, grid=1)

    def test_findings(self):
        wrong = cptx.Device("emu:sm_90a").load_file(runner.SAXPY).kernel(  # a device of its own: it is of no more use then
            "saxpy", "x: f32[n] const, y: f32[_], a: f32, n: u32 = n", grid="n / 256", block=256)
        e = self.refuses(cptx.Error, "out-of-bounds", wrong, Floats([1] * 100), Floats([1] * 99), 1.0)
        self.assertEqual(e.code, "FINDING")

    def test_lifetimes(self):
        kernel = cptx.Device("emu:sm_90a").load_file(runner.SAXPY).kernel(
            "saxpy", runner.SIGNATURE, grid="n / 256", block=256)
        gc.collect()
        x, y = Floats([2] * 10), Floats([1] * 10)
        kernel(x, y, 3.0)  # program and device live on
        self.assertEqual(list(y.values), [7.0] * 10)

    def test_threads(self):
        wrong = []

        def work(a):
            for _ in range(20):
                x, y = Floats(range(64)), Floats([1] * 64)
                self.saxpy(x, y, a)
                if list(y.values) != [a * i + 1 for i in range(64)]:
                    wrong.append(a)

        threads = [threading.Thread(target=work, args=(float(a),)) for a in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_gemm(self):
        """Also where no framework is installed: all of it beside new arrays."""
        a, b = [[(i + j) % 5 - 2 for j in range(16)] for i in range(16)], [[(i * j) % 7 - 3 for j in range(8)] for i in range(16)]
        out, bias = Matrix([[0] * 8] * 16, "f"), Floats(range(8))
        cptx.gemm(Matrix(a, "e"), Matrix(b, "e"), out=out, alpha=2, bias=bias, device=cptx.Device("emu:sm_80"))
        self.assertEqual(out.values(), [2 * sum(x * b[k][j] for k, x in enumerate(row)) + j for row in a for j in range(8)])

    def test_exchange_api(self):
        self.assertEqual(_arrays.exchange_api(int), 0)
        self.assertRaises(KeyError, lambda: _arrays.apis[int])
        self.assertNotIn(int, _arrays.apis)


def _strided(n):
    x = Floats([1] * n)
    x.__array_interface__["strides"] = (4,)
    return x


@unittest.skipUnless(numpy, NO_NUMPY)
class NumPy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = cptx.Device("emu:sm_90a")
        cls.saxpy = runner.saxpy(cls.device)

    def test_results(self):
        x, y = numpy.arange(1000, dtype="f4"), numpy.ones(1000, "f4")
        self.saxpy(x, y, numpy.float32(2))
        numpy.testing.assert_array_equal(y, 2 * x + 1)
        x.flags.writeable = False
        self.saxpy(x, y[:1000], 2)
        numpy.testing.assert_array_equal(y, 4 * x + 1)
        with self.assertRaisesRegex(cptx.Error, "read-only"):
            self.saxpy(y, x, 1.0)

    def test_strides_and_empty(self):
        y = numpy.ones((8, 3), "f4")
        with self.assertRaisesRegex(cptx.Error, r"is f32\[8\] with strides \[3\]"):
            self.saxpy(y[:, 0], numpy.ones(8, "f4"), 1.0)
        self.saxpy(numpy.empty(0, "f4"), numpy.empty(0, "f4"), 1.0)

    def test_example(self):
        said = subprocess.run([sys.executable, os.path.join(runner.ROOT, "examples", "python", "numpy_saxpy.py")],
                              capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stderr), (0, ""), said.stdout)
        self.assertIn("every one is right", said.stdout)
        self.assertIn("refused: kernel saxpy: argument \"y\" is f32[999] on the CPU, but must be f32[n = 1000]", said.stdout)
        self.assertIn("out-of-bounds", said.stdout)

    def test_out(self):
        if not hasattr(numpy, "from_dlpack"):
            self.skipTest("numpy.from_dlpack is not there (NumPy before 1.23)")
        t = self.device.empty((20,), "f32")
        y = numpy.from_dlpack(t)
        if not y.flags.writeable:
            self.skipTest("this NumPy takes DLPack's tensors read-only (before 2.1)")
        y[:] = 1
        self.saxpy(numpy.arange(20, dtype="f4"), t, 2.0)
        del t
        gc.collect()
        numpy.testing.assert_array_equal(y, 2 * numpy.arange(20) + 1)
        del y
        gc.collect()
        self.assertEqual(cptx._exported, {})


if __name__ == "__main__":
    sys.exit(runner.main("python", [Abi, Emulator, NumPy]))
