"""The memory that this process may use: the memory of the machine, or the limit of its control group (cgroup v1 or v2)."""

from __future__ import annotations

import os
from collections.abc import Iterator

_GROUPS = "/proc/self/cgroup"
_USUAL_BYTES = 8 << 30
"""Memory of a machine whose system, such as Windows, does not report it by `sysconf`."""
_UNIFIED, _OLD = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"


def memory_bytes() -> int:
    """Return the smallest limit that the system reports, in bytes."""
    return min([_machine_bytes(), *_limits()])


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return _USUAL_BYTES


def _limits() -> Iterator[int]:
    """Yield the limits of the control group and of all groups above it, as far as this process can read them."""
    for path in _limit_files():
        try:
            with open(path, encoding="ascii") as stream:
                text = stream.read(64).strip()
        except (OSError, ValueError):
            continue
        if text.isdecimal() and int(text) > 0:  # v2 writes `max` if there is no limit
            yield int(text)


def _limit_files() -> Iterator[str]:
    try:
        with open(_GROUPS, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read(64 << 10).splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            root, name = _UNIFIED, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = _OLD, "memory.limit_in_bytes"
        else:
            continue
        # In a container, the path may be the host's path: then the root is the group itself.
        group = path.strip("/")
        while True:
            yield os.path.join(root, group, name)
            if not group:
                break
            group = os.path.dirname(group)
