# SPDX-License-Identifier: MIT
"""Kernels built from Python: the same bytes as from C, errors on the Python line, blocks, values, lifetimes; cptx.gemm."""

import array
import ast
import ctypes
import gc
import inspect
import keyword
import os
import re
import subprocess
import sys
import tempfile
import unittest

import runner

import cptx
from cptx import _abi, _build

numpy, ml_dtypes = runner.optional("numpy"), runner.optional("ml_dtypes")
BUILD = os.environ["CPTX_BUILD"]


def line():
    return inspect.currentframe().f_back.f_lineno


def example_in_python(body):
    """C of an example as Python: cptx_add(k, a, .type = CPTX_U32) is k.add(a, type=cptx.U32)."""
    found = []
    for text in body.splitlines():
        text = text.strip().rstrip(";")
        if not text or text.startswith("(void)"):
            continue
        text = re.sub(r"^cptx_val ", "", text)
        text = text.replace("CPTX_TYPE_NONE, 0, NULL", "None").replace("cptx_targets(k, 1, &l)", "cptx_targets(k, l)")
        text = text.replace("cptx_func_val(function)", "function.value")
        text = re.sub(r"cptx_imm\((-?\d+)\)", r"\1", text)
        text = re.sub(r"cptx_args\(k, ?", "cptx_list(k, ", text)
        text = re.sub(r"\.(\w+) = ", lambda f: f[1] + ("_" if keyword.iskeyword(f[1]) else "") + "=", text)
        text = re.sub(r"cptx_(\w+)\(k(?:, )?", lambda f: f"k.{f[1]}{'_' if keyword.iskeyword(f[1]) else ''}(", text)
        found.append(re.sub(r"CPTX_(\w+)", r"cptx.\1", text))
    return "\n".join(found)


class Twins(unittest.TestCase):
    def test_every_instruction(self):
        with open(os.path.join(BUILD, "insn_examples.inc")) as f:
            bodies = re.findall(r"static void example_(\w+)\(.*?\)\n\{\n(.*?)\n\}", f.read(), re.S)
        printed = subprocess.run([os.environ["CPTX_TWINS"]], capture_output=True, text=True, check=True).stdout
        twins = re.findall(r"^// (\w+) (sm_\w+)\n(.*?)(?=^// \w+ sm_|\Z)", printed, re.S | re.M)
        self.assertGreater(len(bodies), 250)
        self.assertEqual([name for name, _ in bodies], [name for name, *_ in twins])
        for (name, body), (_, target, wanted) in zip(bodies, twins):
            with self.subTest(name):
                m = cptx.Module()
                function = m.func("function")
                k = m.kernel("k")
                exec(example_in_python(body), {"k": k, "cptx": cptx, "function": function})
                self.assertEqual(m.ptx(target), wanted)

    def test_stubs(self):
        """The stubs have what runs: each call with its operands and keywords, each type and modifier."""
        with open(os.path.join(BUILD, "python", "_insns.pyi")) as f:
            tree = ast.parse(f.read())
        calls = {f.name: f.args for f in next(c for c in tree.body if isinstance(c, ast.ClassDef)).body}
        names = {a.target.id for a in tree.body if isinstance(a, ast.AnnAssign) and a.simple} - {"Operand", "Type"}
        self.assertEqual(names, set(_build.modifiers()))
        safe = lambda name: name + "_" * keyword.iskeyword(name)
        self.assertEqual(set(calls), {safe(name) for name in _build.CALLS if name[0] != "_" and not name.endswith("__")})
        k = cptx.Module().kernel("k")
        for name, args in calls.items():
            usage = getattr(k, name).__doc__.splitlines()[0]
            wanted = re.match(r"\w+\(([^)]*)\)", usage)[1].replace("=None", "").replace("*, ", "").replace("*", "")
            had = [a.arg for a in args.args[1:]] + ([args.vararg.arg] if args.vararg else []) + [a.arg for a in args.kwonlyargs]
            self.assertEqual([a.rstrip("_") for a in had], [w.rstrip("_") for w in re.split(", ", wanted) if w], usage)

    def test_fields(self):
        """Each operand and modifier goes where C has it: cptx_field_at tells another way than the callables go."""
        info, k = _abi.FieldInfo(), cptx.Module().kernel("k")
        ops = [name for name in _build._call_names() if name in _build.CALLS]
        first = ops.index("add") - next(i for i in range(400) if self.op_name(i) == "add")
        for op in range(258):
            usage, i, positional = getattr(k, ops[first + op]).__doc__, 0, []
            while _abi.lib.cptx_field_at_(op, i, ctypes.byref(info), ctypes.sizeof(info)):
                positional += [info.name.decode()] * info.is_positional
                self.assertIn(info.name.decode(), re.split(r"[(), =]+", usage.split(":")[0]))
                i += 1
            self.assertTrue(usage.startswith(f"{ops[first + op]}({', '.join(positional + ['*'])}"), usage)

    @staticmethod
    def op_name(i):
        info = (ctypes.c_char_p * 8)()
        lib = _abi.lib
        lib.cptx_op_at_.argtypes = [ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t]
        return info[0].decode() if lib.cptx_op_at_(i, info, 32) else None


class Building(unittest.TestCase):
    def setUp(self):
        self.m = cptx.Module()
        self.k = self.m.kernel("k", block=64)

    def refuses(self, kind, text, call, *args, **keywords):
        with self.assertRaises(kind) as caught:
            call(*args, **keywords)
        self.assertIn(text, str(caught.exception))
        return caught.exception

    def test_errors_are_on_the_line(self):
        k, x, i = self.k, self.k.reg("u64"), self.k.reg("u32")
        e = self.refuses(cptx.ArgumentError, "write k.cvt(b, dtype=cptx.U64)", lambda: k.add(x, i)); at = line()
        self.assertTrue(str(e).startswith(f"{__file__}:{at}: kernel k: add.u64: b is .u32"), e)
        self.assertEqual(e.code, "FORM")
        self.refuses(cptx.ArgumentError, f":{at}: kernel k", k.add, x, x)  # the first error stays
        self.refuses(cptx.ArgumentError, f":{at}: kernel k", self.m.ptx, "sm_80")

    def test_errors_of_blocks(self):
        e = self.refuses(cptx.ArgumentError, "must be a predicate", lambda: self.k.if_(3)); at = line()
        self.assertTrue(str(e).startswith(f"{__file__}:{at}: "), e)
        m = cptx.Module()
        k = m.kernel("open")
        block = k.if_(k.setp(k.reg("u32"), 0, cmp="eq")); at = line()
        block.__enter__()
        self.refuses(cptx.Error, f"{__file__}:{at}", m.ptx, "sm_80")

    def test_a_long_function_knows_its_lines(self):
        text = "def build(k, a):\n" + "    k.add(a, 1)\n" * 3000 + "    k.add(a, 1.5)\n"
        names = {}
        exec(compile(text, "long.py", "exec"), names)
        self.refuses(cptx.ArgumentError, "long.py:3002: kernel k", names["build"], self.k, self.k.reg("u32"))

    def test_wrong_arguments(self):
        k, r = self.k, self.k.reg("u32")
        self.refuses(TypeError, "operand b is not given: add(a, b, *", k.add, r)
        self.refuses(TypeError, "3 operands were given to add(a, b, *", k.add, r, r, r)
        self.refuses(TypeError, "add() has no keyword 'typ'; add(a, b, *", k.add, r, r, typ="u32")
        self.refuses(TypeError, "'x' is no operand", k.add, r, "x")
        self.refuses(TypeError, "is no operand", k.add, r, object())
        self.refuses(OverflowError, "more than 64 bits", k.add, r, -1 << 70)
        self.refuses(ValueError, "'u23' is no type or modifier", k.reg, "u23")
        self.refuses(ValueError, "is no type or modifier", k.reg, 1 << 20)
        self.refuses(TypeError, "an argument is not given: shared(type, n, align, name)", k.shared, "f32")
        self.refuses(TypeError, "asm() has no keyword 'when'", k.asm, "add.u32 {}, {}, 1;", r, r, when=r)
        self.refuses(TypeError, "'holes' is given by position: asm(text, holes)", k.asm, "mov.u32 {}, 1;", r, holes=r)
        self.refuses(TypeError, "tid_x() takes no arguments", k.tid_x, 1)
        self.refuses(AttributeError, "did you mean k.sad?", lambda: k.ad)
        self.refuses(AttributeError, "no attribute 'F33'", lambda: cptx.F33)
        self.refuses(TypeError, "vector of vectors", k.add, r, ((r,), r))
        other = cptx.Module().kernel("other").reg("u32")
        self.assertIsNone(k.ret())  # none of that touched the module
        self.refuses(cptx.ArgumentError, "another kernel", k.add, r, other)

    def test_values(self):
        k = self.k
        r, p = k.regs("f32", 4), k.setp(k.reg("u32"), 0, cmp="eq")
        self.assertEqual((r.type, r.count, len(r), r[1:3].count, len(list(r))), ("f32", 4, 4, 2, 4))
        self.assertEqual((r[-1].count, r[0].as_("b32").type, (~p).type), (1, "b32", "pred"))
        self.refuses(IndexError, "element 4", lambda: r[4])
        self.refuses(IndexError, "element -1", lambda: r[-5])
        self.refuses(ValueError, "no step", lambda: r[::2])
        self.refuses(ValueError, "at least one", lambda: r[2:2])
        self.refuses(ValueError, "no type of that size", r[0].as_, "f64")
        self.refuses(ValueError, "complement", lambda: ~r)
        self.refuses(ValueError, "2 GiB", k.shared("f32", 1).offset, 1 << 40)
        self.refuses(ValueError, "selector", k.reg("u32").select, "q1")
        k.add(r[0], r[1], when=p)
        k.add(r[0], r[1], unless=p)
        text = self.m.ptx("sm_80")
        self.assertRegex(text, r"@%p1 add\.f32[^\n]*\n\s*@!%p1 add\.f32")

    def test_blocks(self):
        with self.k.scope_():
            self.k.asm("add.u32 {}, {}, 1;", self.k.reg("u32"), self.k.tid_x())
        self.assertRegex(self.m.ptx("sm_80"), r"\{\n\s*mov\.u32 %r2, %tid\.x;\n\s*add\.u32 %r1, %r2, 1;\n\s*\}")
        m = cptx.Module()

        def whole(n):
            t = sum(i if i % 2 == 0 else 100 for i in range(n))
            while t < 1000:
                t += t
            return (t - 1) // 8 * 8

        k = m.kernel("k", block=1)
        out, n = k.param(cptx.PTR, "out"), k.param("u32", "n")
        total = k.var("u32", 0)
        with k.for_(0, n) as i:
            with k.if_(k.setp(k.and_(i, 1), 0, cmp="eq")):
                k.add(total, i, into=total)
            with k.else_():
                k.add(total, 100, into=total)
        with k.while_(lambda: k.setp(total, 1000, cmp="lt")):
            k.add(total, total, into=total)
        with k.do_():
            k.sub(total, 1, into=total)
            k.continue_when(k.setp(k.and_(total, 7), 0, cmp="ne"))
        k.st(out, total, space="global")
        run = cptx.Device("emu:sm_80").load(m).kernel("k", "out: u32[1], n: u32", grid="1", block=1)
        y = array.array("I", [0])
        for n in (3, 4, 9):
            run(y, n)
            self.assertEqual(y[0], whole(n))

    def test_functions_and_variables(self):
        m = cptx.Module()
        table = m.global_("f32", 4, "table", space=cptx.CONST, init=array.array("f", [1, 2, 3, 4]))
        f = m.func("twice", "f32")
        f.func_return(f.mul(f.param("f32", "x"), 2.0))
        k = m.kernel("k")
        out = k.param(cptx.PTR, "out")
        k.st(out, k.call(f, k.ld(table.offset(8), space="const", type="f32")), space="global")
        self.assertRaisesRegex(ValueError, "init has 3 bytes", m.global_, "f32", 1, "t", init=b"abc")
        y = array.array("f", [0])
        cptx.Device("emu:sm_80").load(m).kernel("k", "out: f32[1]", grid="1", block=1)(y)
        self.assertEqual(y[0], 6)

    def test_lines_in_ptx(self):
        self.k.add(self.k.reg("u32"), 1); at = line()
        self.assertRegex(self.m.ptx("sm_80", lines=True), rf'\.file \d+ "{re.escape(__file__)}"[^@]*\.loc \d+ {at} 0\n\s*add')

    def test_lifetimes(self):
        add = cptx.Module().kernel("k").add
        gc.collect()
        r = add(1, 2, type="u32")  # the module lives as long as its calls
        self.assertEqual(r.type, "u32")
        before = len(gc.get_objects())
        for _ in range(50):
            k = cptx.Module().kernel("k")
            k.add(k.reg("u32"), 1)
        del k
        self.assertLess(len(gc.get_objects()), before + 40)

    def test_buffers(self):
        saxpy = runner.saxpy(cptx.Device("emu:sm_90a"))
        y = array.array("f", [1, 1])
        saxpy(array.array("f", [1, 2]), memoryview(y), 3.0)
        self.assertEqual(list(y), [4, 7])
        with self.assertRaisesRegex(TypeError, "read-only"):
            saxpy(y, bytes(8), 1.0)


@unittest.skipUnless(numpy, "NumPy is not installed (Debian: python3-numpy)")
class Gemm(unittest.TestCase):
    def check(self, device, kind, out, order):
        made = numpy.random.default_rng(5)
        a, b = (made.integers(-3, 4, s) for s in ((48, 32), (32, 40)))
        x, y = a.astype(kind), b.astype(kind)
        x = numpy.asfortranarray(x) if order[0] == "F" else x
        y = numpy.asfortranarray(y) if order[1] == "F" else y
        c, bias = made.integers(-3, 4, (48, 40)).astype(out), numpy.arange(40, dtype="f4")
        d = cptx.gemm(x, y, c, device=device, dtype={"float32": "f32", "float16": "f16"}.get(numpy.dtype(out).name, "bf16"),
                      alpha=2, beta=0.5, bias=bias)
        numpy.testing.assert_array_equal(d, (2 * (a @ b) + 0.5 * c.astype("f4") + bias).astype(out))

    def test_f16(self):
        device = cptx.Device("emu:sm_80")
        self.check(device, "f2", "f4", "CC")
        self.check(device, "f2", "f2", "FF")

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed (pip)")
    def test_bf16(self):
        device = cptx.Device("emu:sm_90a")
        self.check(device, ml_dtypes.bfloat16, "f4", "CF")
        self.check(device, ml_dtypes.bfloat16, ml_dtypes.bfloat16, "FC")

    def test_batch_and_out(self):
        device = cptx.Device("emu:sm_80")
        a, b = numpy.ones((2, 32, 16), "f2"), numpy.arange(2 * 16 * 8).reshape(2, 16, 8).astype("f2") % 8
        out = numpy.zeros((2, 32, 8), "f4")
        self.assertIs(cptx.gemm(a, b, device=device, out=out), out)
        numpy.testing.assert_array_equal(out, a.astype("f4") @ b.astype("f4"))

    def test_tuned(self):
        """What is measured once is in the database, which a second process finds."""
        text = "import cptx, numpy; a = numpy.ones((32, 32), 'f2'); print(cptx.gemm(a, a, device=cptx.Device('emu:sm_80'), tune='{}', budget=1)[0, 0])"
        with tempfile.TemporaryDirectory() as folder:
            for tune in ("once", "never"):
                said = subprocess.run([sys.executable, "-c", text.format(tune)], capture_output=True, text=True,
                                      env={**os.environ, "CPTX_TUNE_DIR": folder, "CPTX_CACHE_DIR": folder + "/cache", "PYTHONPATH": runner.ROOT + "/python"})
                self.assertEqual((said.stdout, said.stderr), ("32.0\n", ""))
                files = sorted(n for n in os.listdir(folder) if n != "cache")
                self.assertGreater(len(files), 0)
        self.assertRaisesRegex(ValueError, '"once"', lambda: cptx.gemm(numpy.ones((8, 8), "f2"), numpy.ones((8, 8), "f2"),
                                                                       device=cptx.Device("emu:sm_80"), tune="twice"))

    def test_wrong(self):
        device, a = cptx.Device("emu:sm_80"), numpy.ones((16, 32), "f2")
        for text, call in {"columns of a are the rows of b": lambda: cptx.gemm(a, a, device=device),
                           "must be dense": lambda: cptx.gemm(a[:, ::2], a, device=device),
                           "no c": lambda: cptx.gemm(a, a.T, beta=1, device=device),
                           "give device=": lambda: cptx.gemm(a, a.T),
                           "A is .f64 and B .f16": lambda: cptx.gemm(a.astype("f8"), a.T, device=device),
                           "read-only": lambda: cptx.gemm(a, a.T, out=numpy.broadcast_to(a[:1, :16], (16, 16)), device=device)}.items():
            with self.assertRaisesRegex(ValueError, text):
                call()


if __name__ == "__main__":
    sys.exit(runner.main("build", [Twins, Building, Gemm]))
