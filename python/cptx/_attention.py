# SPDX-License-Identifier: MIT
"""The attention kernels of <cptx/attention.h> and those beside it by device addresses: what cptx.attention is made of, for any
framework.

A tensor is (address, batch stride, head stride, row stride), in elements, a vector an address.  settings: other fields of the
options, sizes: other fields of the problem.
"""

import ctypes
import functools

from . import _abi, _runner
from ._abi import lib
from ._errors import checked

MANY = 2**32 - 1  # a window that does not end


@functools.lru_cache(None)
def _options(struct, settings):
    opt = struct()
    for name, value in settings:
        setattr(opt, name, lib.cptx_type_find(value.encode()) if name in ("in", "out") else value)
    return opt


def options(struct, **settings):
    """Options of a kernel, types by their names: options(_abi.AttentionOpt, dim=64, **{"in": "bf16"})."""
    return _options(struct, tuple(sorted(settings.items())))


def _problem(struct, operands, sizes):
    problem = struct(**sizes)
    for name, x in operands.items():
        if isinstance(x, tuple):
            setattr(problem, name, x[0])
            setattr(problem, f"{name.replace('d_o', 'do')}_stride", _abi.AttentionStride(*x[1:]))
        else:
            setattr(problem, name, x)
    return problem


class _Runner(_runner.Runner):
    def _run(self, function, opt, problem, stream):
        checked(function, self._handle, ctypes.byref(opt), ctypes.byref(problem), self._stream(stream))

    @functools.cached_property
    def mma(self):
        """The best instruction of the device, as CPTX_ATTENTION_WGMMA."""
        return lib.cptx_attention_mma_of(lib.cptx_target_find(self.device.target.encode()))


class Forward(_Runner):
    """A cptx_attention_runner of a device."""

    def __init__(self, device):
        super().__init__(device, lib.cptx_attention_runner_new, lib.cptx_attention_runner_destroy)

    def run(self, operands, sizes, settings, stream=0):
        """Starts O = softmax(scale * Q * K^T) * V; operands: q, k, v, o, and as the settings say lse, sinks, cu_queries, cu_keys."""
        opt = options(_abi.AttentionOpt, mma=self.mma, **settings)
        self._run(lib.cptx_attention_run, opt, _problem(_abi.AttentionProblem, operands, sizes), stream)


class Backward(_Runner):
    """A cptx_attention_backward_runner of a device."""

    def __init__(self, device):
        super().__init__(device, lib.cptx_attention_backward_runner_new, lib.cptx_attention_backward_runner_destroy)

    def _options(self, settings):
        return options(_abi.AttentionBackwardOpt, mma=self.mma if self.mma == _abi.ATTENTION_WGMMA else _abi.ATTENTION_SYNC, **settings)

    def workspace(self, sizes, settings):
        """Bytes that a run needs."""
        plan = _abi.AttentionBackwardPlan()
        checked(lib.cptx_attention_backward_check_problem_, ctypes.byref(self._options(settings)),
                ctypes.byref(_problem(_abi.AttentionBackwardProblem, {}, sizes)), ctypes.byref(plan), ctypes.sizeof(plan))
        return plan.workspace

    def run(self, operands, sizes, settings, stream=0):
        """Starts the gradients; operands: q, k, v, o, d_o, lse, dq, dk, dv, workspace, and as the settings say cu_queries, cu_keys."""
        self._run(lib.cptx_attention_backward_run, self._options(settings), _problem(_abi.AttentionBackwardProblem, operands, sizes), stream)


class Decode(_Runner):
    """A cptx_attention_decode_runner of a device."""

    def __init__(self, device):
        super().__init__(device, lib.cptx_attention_decode_runner_new, lib.cptx_attention_decode_runner_destroy)

    def workspace(self, sizes, settings, operands=()):
        """Bytes that a run needs; 0: none."""
        opt = options(_abi.AttentionDecodeOpt, **settings)
        problem = _problem(_abi.AttentionDecodeProblem, dict(operands), sizes)
        return checked(lib.cptx_attention_decode_workspace, self._handle, ctypes.byref(opt), ctypes.byref(problem))

    def run(self, operands, sizes, settings, stream=0):
        """Starts it; operands: q, k, v, o, and as the settings say lse, lengths, pages, workspace."""
        opt = options(_abi.AttentionDecodeOpt, **settings)
        self._run(lib.cptx_attention_decode_run, opt, _problem(_abi.AttentionDecodeProblem, operands, sizes), stream)


def runner(kind, key, open_device):
    """The runner of a class that all of a process share, by the number of a device; open_device opens it the first time."""
    return _runner.shared(kind, key, open_device)
