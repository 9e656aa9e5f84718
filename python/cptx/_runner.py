# SPDX-License-Identifier: MIT
"""What the runners of the library have in common, which build, keep and launch programs: lifetimes, streams, one for a device."""

import threading

from ._abi import lib
from ._errors import checked, closing


class Runner:
    """A runner of a device, made by new(device, None) and ended by destroy."""

    def __init__(self, device, new, destroy):
        self.device, self._streams = device, {}
        self._handle = checked(new, device._handle, None)
        closing(self, destroy, self._handle, device)

    def _stream(self, handle):
        """An adopted stream, kept: frameworks have few."""
        if not handle:
            return None
        if handle not in self._streams:
            self._streams[handle] = checked(lib.cptx_stream_adopt, self.device._handle, handle)
        return self._streams[handle]


_made, _making = {}, threading.RLock()  # again by the same thread: a runner opens its device


def once(kind, key, make):
    """What all of a process share by a class and the number of a device; make makes it the first time."""
    if (kind, key) not in _made:
        with _making:
            if (kind, key) not in _made:
                _made[kind, key] = make()
    return _made[kind, key]


def shared(kind, key, open_device):
    """The runner of a class that all of a process share, by the number of a device; open_device opens it the first time."""
    return once(kind, key, lambda: kind(open_device()))
