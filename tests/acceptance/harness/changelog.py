"""The changelog as its page specifies it, read without belfry's help: steps and their manifests.

Each transaction of an owner is a *step*: rows, and last the manifest.  Who wrote it and how it
ended is taken from the broker's segments, what it says from a `read_committed` reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from tests.acceptance.harness.reading import Record, read_all
from tests.acceptance.harness.segments import Transaction, Writers, batches, partitions_of

PENDING: Final = 1
MARKER: Final = 2
MANIFEST: Final = 4
FIRED: Final = 0
MANIFEST_KEY: Final = b"\0m"
OWN_KEY: Final = b"\0"
_MANIFEST: Final = Struct(">BBHQIqqQI16s")
_MARKER: Final = Struct(">BBBBqqQII")


class Manifest(NamedTuple):
    """What a step says of itself."""

    txn_seq: int
    owner_epoch: int
    position: int
    watermark_ms: int
    pending: int
    fired: int
    digest: bytes


class Left(NamedTuple):
    """A schedule that fired, by the marker that it left: `tenant/id`, and when it was due."""

    name: bytes
    due_ms: int


@dataclass(slots=True)
class Step:
    """One transaction of a changelog partition; `manifests` of a committed one is one, at its end.

    `left` are markers of fires in their order; `waiting` names that got a pending row.
    """

    wrote: Transaction
    manifests: list[Manifest] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    waiting: set[bytes] = field(default_factory=set)
    behind_manifest: int = 0

    @property
    def committed(self) -> bool:
        """Whether it ended well."""
        return self.wrote.marker == "commit"


def read_steps(bootstrap: str, log_dir: Path, topic: str) -> dict[int, list[Step]]:
    """All steps of each partition, in the order in which they began."""
    found: dict[int, list[Step]] = {}
    records = defaultdict(list)
    for record in read_all(bootstrap, topic):
        records[record.partition].append(record)
    for partition in partitions_of(log_dir, topic):
        writers = Writers(batches(log_dir, topic, partition))
        found[partition] = steps_of(writers, records[partition])
    return found


def steps_of(writers: Writers, records: Iterable[Record]) -> list[Step]:
    """The steps of one partition, filled with what its records say."""
    steps = {one: Step(one) for one in sorted(writers.transactions, key=lambda one: one.first)}
    for record in records:
        wrote = writers.of(record.offset)
        if wrote is not None:
            _take(steps[wrote], record)
    return list(steps.values())


def _take(step: Step, record: Record) -> None:
    key, value = record.key or b"", record.value
    if key.startswith(MANIFEST_KEY) and value is not None:
        step.manifests.append(Manifest(*_MANIFEST.unpack(value)[3:]))
        step.behind_manifest = 0
        return
    step.behind_manifest += 1
    if value is None or key.startswith(OWN_KEY):
        return
    if value[1] == PENDING:
        step.waiting.add(key)
    elif value[1] == MARKER and value[2] == FIRED:
        step.left.append(Left(key, _MARKER.unpack(value)[5]))
