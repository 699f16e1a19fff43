"""The net of a window of a changelog: the last record of each key among those in a row.

A record replaces the former one of its key, so of each key the last record counts alone, as it does
after compaction.  A schedule that was accepted and has fired within one window is its marker: its
pending record, which is most of its bytes, goes nowhere.

    record   a pending   b pending   manifest 7   a marker   b no more   c marker   manifest 8
    net                                           a marker   b no more   c marker
    store                                         a's row    nothing, where b was not known before

Manifests are no rows of the store.  They lie under few keys, one behind the other, and each of them
counts: they are given apart, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from belfry.store.layout.keys import MANIFEST_PREFIX

Change = tuple[bytes, bytes | None]
# Keys of rows that are no schedule's begin with a zero byte, so they lie before this one.
SCHEDULES: Final = b"\1"


class NetChanges(NamedTuple):
    """The last record of each key, in the order of these, and all manifests as they lie at rest.

    Rows of schedules and others are given apart, since nearly all are the former.
    """

    schedules: list[Change]
    others: list[Change]
    manifests: list[bytes]


def net_of(changes: Sequence[Change]) -> NetChanges:
    """The last records of the keys of a changelog; None under a key stands for a tombstone."""
    schedules = [change for change in changes if change[0] >= SCHEDULES]
    others: list[Change] = []
    told: list[bytes | None] = []
    if len(schedules) < len(changes):
        rest = [change for change in changes if change[0] < SCHEDULES]
        others = [change for change in rest if change[0][:2] != MANIFEST_PREFIX]
        told = [row for key, row in rest if key[:2] == MANIFEST_PREFIX]
    manifests = [row for row in told if row is not None]
    return NetChanges(_last(schedules), _last(others), manifests)


def _last(changes: list[Change]) -> list[Change]:
    """The last of each key, in their order."""
    if len(dict(changes)) == len(changes):
        # No key comes twice, as where all that comes in waits for longer than a window.
        return changes
    last = {change[0]: at for at, change in enumerate(changes)}
    return [changes[at] for at in sorted(last.values())]


def after_last_manifest(changes: Sequence[Change]) -> int:
    """How many changes there are up to the last manifest; 0 if there is no manifest."""
    for at in range(len(changes), 0, -1):
        if changes[at - 1][0].startswith(MANIFEST_PREFIX):
            return at
    return 0
