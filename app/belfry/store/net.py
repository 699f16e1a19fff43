"""The net of a window of a changelog: what is left to be done of records that follow one another.

A record replaces what its key held, so of each key the last record counts alone, as it does after
compaction.  A schedule that was accepted and has fired within one window is its marker: its pending
record, which is most of its bytes, goes nowhere.

    record   a pending   b pending   manifest 7   a marker   b no more   c marker   manifest 8
    net                                           a marker   b no more   c marker
    store                                         a's row    nothing, where b was not known before

Manifests are no rows of the store.  They lie under few keys, one behind the other, and each of them
counts: they are given apart, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from belfry.store.layout.keys import MANIFEST_PREFIX

Change = tuple[bytes, bytes | None]


class NetChanges(NamedTuple):
    """The last record of each key, in the order of these, and all manifests as they lie at rest."""

    rows: list[Change]
    manifests: list[bytes]


def net_of(changes: Sequence[Change]) -> NetChanges:
    """What is left of records of a changelog; None under a key stands for a tombstone."""
    last = {change[0]: at for at, change in enumerate(changes)}
    told = [change for change in changes if change[0][:2] == MANIFEST_PREFIX]
    manifests = [row for _, row in told if row is not None]
    if len(last) == len(changes):
        # No key comes twice, as where all that comes in waits for longer than a window.
        return NetChanges([each for each in changes if each[0][:2] != MANIFEST_PREFIX], manifests)
    for key, _ in told:
        last.pop(key, None)
    return NetChanges([changes[at] for at in sorted(last.values())], manifests)


def after_last_manifest(changes: Sequence[Change]) -> int:
    """How many changes there are up to the last manifest; 0 where there is none."""
    for at in range(len(changes), 0, -1):
        if changes[at - 1][0].startswith(MANIFEST_PREFIX):
            return at
    return 0
