# SPDX-License-Identifier: MIT
"""Errors of the library as exceptions of Python, and lifetimes of its objects."""

import ctypes
import weakref

from . import _abi
from ._abi import lib


class Error(RuntimeError):
    """What cptx refuses, in its words; `code` is the name of the kind, "DRIVER".

    What the caller gave wrong is an ArgumentError, and so a ValueError too.  What is not of the kind that it has to be (a list
    for a tensor, a float for an integer) is a TypeError, what cannot be a number of 64 bits an OverflowError.
    """

    def __init__(self, info):
        super().__init__(info.text.decode(errors="replace"))
        self.code = lib.cptx_code_name(info.code).decode()


class ArgumentError(Error, ValueError):
    """An illegal argument, call, signature, grid or text of PTX: code ARG, FORM, PARSE, TARGET or LIMIT."""


Error.__module__ = ArgumentError.__module__ = "cptx"


def error(info):
    kind = Error(info)
    return ArgumentError(info) if kind.code in ("ARG", "FORM", "PARSE", "TARGET", "LIMIT") else kind


def checked(f, *args):
    """The result of a call whose last argument is an error, which is raised."""
    info = _abi.ErrorInfo()
    result = f(*args, ctypes.byref(info))
    if info.code:
        raise error(info)
    return result


def checked_object(f, *args):
    """The same for a call that gives an object of Python, or NULL."""
    info = _abi.ErrorInfo()
    try:
        return f(*args, ctypes.byref(info))
    except ValueError:  # of ctypes, which got a NULL
        if info.code:
            raise error(info) from None
        raise


def closing(owner, close, handle, *needed):
    """Calls close(handle) when the owner goes, and what is needed lives until then; not at the end of the process."""
    weakref.finalize(owner, lambda handle, *needed: close(handle), handle, *needed).atexit = False
