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


_runners, _making = {}, threading.Lock()


def shared(kind, key, open_device):
    """The runner of a class that all of a process share, by the number of a device; open_device opens it the first time."""
    with _making:
        if (kind, key) not in _runners:
            _runners[kind, key] = kind(open_device())
        return _runners[kind, key]
