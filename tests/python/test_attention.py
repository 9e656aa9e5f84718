# SPDX-License-Identifier: MIT
"""The attention kernels by device addresses, on the emulator; with PyTorch on a GPU: gpu_attention.py."""

import ctypes
import math
import struct
import sys
import unittest
from unittest import mock

import runner

import cptx
from cptx import _attention
from cptx._abi import lib
from cptx._errors import checked

HEADS, QUERIES, KEYS, DIM = 2, 3, 5, 8


def values(count, seed):
    """Numbers that f16 has."""
    return [round(math.sin(seed + i * 1.7) * 64) / 64 for i in range(count)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


class Attention(unittest.TestCase):
    def setUp(self):
        self.device = cptx.Device("emu:sm_90a")
        self.kept = []

    def memory(self, count, type="f16", given=None):
        """The address of memory of the emulator."""
        t = self.device.empty((count,), type)
        self.kept.append(t)
        if given is not None:
            packed = struct.pack({"f16": "%de", "f32": "%df", "s32": "%di"}[type] % count, *given)
            checked(lib.cptx_mem_write, self.device._handle, t._ptr, packed, len(packed))
        return t._ptr

    def read(self, address, count, letter="e"):
        size = struct.calcsize(letter)
        got = ctypes.create_string_buffer(count * size)
        checked(lib.cptx_mem_read, self.device._handle, got, address, count * size)
        return struct.unpack(f"{count}{letter}", got.raw)

    def problem(self):
        """Rows of Q, K, V and dO by head, where they lie, and the sizes."""
        host = {name: values(HEADS * n * DIM, i) for i, (name, n) in enumerate((("q", QUERIES), ("k", KEYS), ("v", KEYS), ("d_o", QUERIES)))}
        at = {name: (self.memory(len(x), given=x), 0, 0, 0) for name, x in host.items()}
        sizes = {"batch": 1, "heads": HEADS, "queries": QUERIES, "keys": KEYS, "scale": 0.5}

        def rows(name, head):
            every = [host[name][i:i + DIM] for i in range(0, len(host[name]), DIM)]
            return every[head * len(every) // HEADS:(head + 1) * len(every) // HEADS]
        return rows, at, sizes

    def test_forward_and_backward(self):
        """Causal: O, LSE and the gradients, beside a loop over all scores."""
        rows, at, sizes = self.problem()
        settings = {"in": "f16", "dim": DIM, "causal": True}
        forward, backward = _attention.Forward(self.device), _attention.Backward(self.device)
        at.update(o=(self.memory(HEADS * QUERIES * DIM), 0, 0, 0), lse=self.memory(HEADS * QUERIES, "f32"))
        d_o = at.pop("d_o")
        forward.run(at, sizes, {**settings, "lse": True})
        at.update({f"d{x}": (self.memory(HEADS * n * DIM), 0, 0, 0) for x, n in (("q", QUERIES), ("k", KEYS), ("v", KEYS))}, d_o=d_o)
        backward.run({**at, "workspace": self.memory(backward.workspace(sizes, settings) // 2)}, sizes, settings)
        o, lse = self.read(at["o"][0], HEADS * QUERIES * DIM), self.read(at["lse"], HEADS * QUERIES, "f")
        got = {x: self.read(at[x][0], HEADS * (QUERIES if x == "dq" else KEYS) * DIM) for x in ("dq", "dk", "dv")}
        for h in range(HEADS):
            q, k, v, d_o = (rows(name, h) for name in ("q", "k", "v", "d_o"))
            dq, dk, dv = ([[0.0] * DIM for _ in range(n)] for n in (QUERIES, KEYS, KEYS))
            for i in range(QUERIES):
                count = i + 1 + KEYS - QUERIES
                scores = [math.exp(0.5 * dot(q[i], k[j])) for j in range(count)]
                p = [s / sum(scores) for s in scores]
                want = [sum(p[j] * v[j][c] for j in range(count)) for c in range(DIM)]
                self.assertAlmostEqual(lse[h * QUERIES + i], math.log(sum(scores)), delta=1e-4)
                for c in range(DIM):
                    self.assertAlmostEqual(o[(h * QUERIES + i) * DIM + c], want[c], delta=2e-3)
                for j in range(count):
                    ds = 0.5 * p[j] * (dot(d_o[i], v[j]) - dot(d_o[i], want))
                    for c in range(DIM):
                        dq[i][c] += ds * k[j][c]
                        dk[j][c] += ds * q[i][c]
                        dv[j][c] += p[j] * d_o[i][c]
            for name, want in (("dq", dq), ("dk", dk), ("dv", dv)):
                n = len(want) * DIM
                for a, b in zip(got[name][h * n:(h + 1) * n], (x for row in want for x in row)):
                    self.assertAlmostEqual(a, b, delta=5e-3, msg=name)

    def test_decode(self):
        """One query, and fewer keys than the cache has room for."""
        rows, at, sizes = self.problem()
        sizes["queries"] = 1
        q = values(HEADS * DIM, 9)
        settings = {"in": "f16", "dim": DIM}
        at.update(q=(self.memory(HEADS * DIM, given=q), 0, 0, 0), o=(self.memory(HEADS * DIM), 0, 0, 0), lengths=self.memory(1, "s32", [4]))
        del at["d_o"]
        decode = _attention.Decode(self.device)
        at["workspace"] = self.memory(max(1, decode.workspace(sizes, settings, at)))
        decode.run(at, sizes, settings)
        o = self.read(at["o"][0], HEADS * DIM)
        for h in range(HEADS):
            k, v = rows("k", h), rows("v", h)
            scores = [math.exp(0.5 * dot(q[h * DIM:(h + 1) * DIM], k[j])) for j in range(4)]
            for c in range(DIM):
                self.assertAlmostEqual(o[h * DIM + c], sum(s * v[j][c] for j, s in enumerate(scores)) / sum(scores), delta=2e-3)

    def test_refusals(self):
        rows, at, sizes = self.problem()
        with self.assertRaisesRegex(cptx.ArgumentError, r"\.dim = 100"):
            _attention.Forward(self.device).run(at, sizes, {"in": "f16", "dim": 100})
        with self.assertRaisesRegex(cptx.ArgumentError, r"\.dim = 136"):
            _attention.Backward(self.device).workspace(sizes, {"in": "f16", "dim": 136})


torch = runner.optional("torch")


@unittest.skipUnless(torch, "PyTorch is not installed")
class Shapes(unittest.TestCase):
    """What the operators say of shapes and types without a GPU."""

    @classmethod
    def setUpClass(cls):
        runner.operators_on_cpu("cptx.attention")

    def test_refusals(self):
        from cptx.attention import attention, decode
        q, k = torch.zeros(1, 4, 9, 64, dtype=torch.bfloat16), torch.zeros(1, 3, 9, 64, dtype=torch.bfloat16)
        for words, call in (("4 heads of Q, and 3 of K and V", lambda: attention(q, k, k)),
                            ("4 heads of Q, and 0 of K and V", lambda: attention(q, k[:, :0], k[:, :0])),
                            ("4 heads of Q, and 3 of K and V", lambda: decode(q, k, k)),
                            ("scale is 0.0, but must be above 0", lambda: attention(q, q, q, scale=0.0)),
                            ("scale is -1, but", lambda: decode(q, q, q, scale=-1))):
            with self.subTest(words=words), self.assertRaisesRegex(ValueError, words):
                call()

    def test_refusals_of_gradients(self):
        q, lse = torch.zeros(1, 4, 9, 64, dtype=torch.bfloat16), torch.zeros(1, 4, 9)
        for words, d_o, o, given in (("d_o is of torch.float32", q.float(), q, lse), ("d_o is .* the shape", q[:, :, :8], q, lse),
                                     ("o is .* must be as O is", q, q[..., :32], lse), ("lse is .* torch.bfloat16", q, q, lse.bfloat16()),
                                     ("lse is .* the shape", q, q, lse[:, :3])):
            with self.subTest(words=words), self.assertRaisesRegex(ValueError, f"^{words}"):
                torch.ops.cptx.attention_backward(d_o, q, q, q, o, given, None, None, 0, 0, False, False, -1, -1, 0.0, 0.0, False)

    def test_windows(self):
        """One that is too wide for the problem's 32 bits does not end."""
        from cptx import attention as module
        q = torch.zeros(1, 4, 9, 64, dtype=torch.bfloat16)
        with mock.patch.object(module, "_runner") as runners, mock.patch.object(module, "_start") as start:
            runners.return_value.workspace.return_value = 0
            for call, sizes in ((lambda: module.attention(q, q, q, window=(2**32, 5)), (_attention.MANY, 5)),
                                (lambda: module.attention(q, q, q, window=(5, 2**40)), (5, _attention.MANY)),
                                (lambda: module.attention(q, q, q, window=(None, 0)), (_attention.MANY, 0)),
                                (lambda: module.decode(q, q, q, window=2**32 + 1), (_attention.MANY, None))):
                call()
                given = start.call_args[0][2]
                self.assertEqual((given["window_left"], given.get("window_right")), sizes)

    def test_fake(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        from cptx.attention import attention, attention_varlen, decode
        with FakeTensorMode():
            q = torch.empty(2, 7, 6, 64, dtype=torch.bfloat16, device="cuda").transpose(1, 2).requires_grad_()
            k, v = (torch.empty(2, 3, 9, n, dtype=torch.bfloat16, device="cuda") for n in (64, 32))
            o, lse = attention(q, k, v, causal=True, lse=True)
            self.assertEqual((o.shape, o.stride(), lse.shape, lse.dtype), ((2, 6, 7, 32), (1344, 32, 192, 1), (2, 6, 7), torch.float32))
            self.assertFalse(lse.requires_grad)
            grads = torch.ops.cptx.attention_backward(o, q, k, k, o, lse, None, None, 0, 0, True, False, -1, -1, 0.0, 0.0, False)
            for x, dx in zip((q, k, k), grads):
                self.assertEqual((dx.shape, dx.stride()), (x.shape, x.stride()))
            packed, cu = torch.empty(20, 3, 64, dtype=torch.float16, device="cuda"), torch.empty(3, dtype=torch.int32, device="cuda")
            o, lse = attention_varlen(packed, packed, packed, cu, cu, 10, 10, lse=True)
            self.assertEqual((o.shape, lse.shape), ((20, 3, 64), (3, 20)))
            self.assertEqual(decode(q.detach(), k, v).shape, (2, 6, 7, 32))
            eight = torch.empty(1, 2, 16, 32, dtype=torch.float8_e4m3fn, device="cuda")
            self.assertEqual(attention(eight, eight, eight).dtype, torch.bfloat16)


if __name__ == "__main__":
    sys.exit(runner.main("attention", (Attention, Shapes)))
