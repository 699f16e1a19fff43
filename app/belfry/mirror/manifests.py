"""Manifests of a take-over: the last transaction of the one side, and the first of the other.

    source   … manifest 71, a worker's  │ 72: the fence           its identity names the target
    target   … manifest 71, 72, carried │ 4169: the activation    its identity names itself

The fence changes nothing but whose the partition is. The activation is numbered as a recovery is
(`store/recovery.py`), since its position is one of another topic.
"""

from __future__ import annotations

from belfry.store.layout.manifests import Manifest
from belfry.store.recovery import manifest_after


def fence_manifest(last: Manifest | None, position: int) -> Manifest:
    """The last manifest of a side that gives a partition up; `position` where it had none."""
    if last is None:
        return manifest_after(None, None, position, 0)
    return manifest_after(last, None, last.position, last.pending)


def activation_manifest(last: Manifest, position: int) -> Manifest:
    """The first manifest of a side that takes over, from this offset of its own requests on."""
    return manifest_after(last, last, position, last.pending)
