"""What was taken in: each request with the transaction that took it in, in the order of its home.

Checks of single features read this, and the fired records of each definition; `checker` makes it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.broker import Entry, Log
from tests.simulation.sent import SOURCE, Sent
from tests.simulation.trail import Step, headers_of

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition

# Begin of the changelog key of a request that waits, for its schema or for its key group; the key
# ends with its offset.
WAITS: Final = (b"\0w", b"\0gw")
OFFSET_BYTES: Final = 8
# How records of moves begin.
MOVE: Final = b"\x02bm"
CHANGED: Final = ("ACCEPTED", "UPDATED")


@dataclass(frozen=True, slots=True)
class Taken:
    """A request, the step that took it in, its outcome, and its place among all of the world."""

    sent: Sent
    step: Step
    outcome: str
    place: int


@dataclass(slots=True)
class Seen:
    """All that the checks of features look at."""

    partitions: list[list[Step]]
    definitions: Mapping[str, Definition]
    taken: list[Taken] = field(default_factory=list)

    def note(self, sent: Sent, step: Step, outcome: str) -> None:
        """A request was taken in, behind all of its partition that were so far."""
        self.taken.append(Taken(sent, step, outcome, len(self.taken)))

    def of_actions(self, *actions: str) -> dict[tuple[int, int], list[Taken]]:
        """Requests of these actions, by the partition and the number of their step."""
        found: defaultdict[tuple[int, int], list[Taken]] = defaultdict(list)
        for each in self.taken:
            if each.sent.action in actions:
                found[each.step.partition, each.step.index].append(each)
        return found


def taken_in(steps: list[Step], entries: list[Entry]) -> Iterator[tuple[Step, Entry]]:
    """Each request with the transaction that took it in.

    That is the first that passes its offset, or a later one where that has set the request aside: a
    row of the changelog under its offset, which is there until the request is taken in, or sent on.
    """
    by_offset = {entry.offset: entry for entry in entries}
    waiting = deque(entries)
    for step in steps:
        put, ended = set[int](), list[int]()
        for row in step.rows:
            if (row.key or b"").startswith(WAITS):
                offset = int.from_bytes((row.key or b"")[-OFFSET_BYTES:])
                if row.value is None:
                    ended.append(offset)
                else:
                    put.add(offset)
        for offset in sorted(ended):
            yield step, by_offset[offset]
        while waiting and step.manifest is not None and step.manifest.position > waiting[0].offset:
            entry = waiting.popleft()
            if entry.offset not in put:
                yield step, entry


def origin(entry: Entry, partition: int) -> tuple[str, int, int]:
    """Where a request was first received."""
    headers: dict[str, Any] = headers_of(entry)
    if entry.txn is not None and "belfry-origin-offset" in headers:
        place = int(headers["belfry-origin-partition"]), int(headers["belfry-origin-offset"])
        return headers["belfry-origin-topic"].decode(), *place
    return SOURCE, partition, entry.offset


def passes_on(sent: Sent, partition: int, entry: Entry, *, moves: bool) -> bool:
    """Whether a partition only sends a request on, to the one where its schedule lives.

    Where key groups move it may live elsewhere than at its home (`grown`).
    """
    if sent.home >= 0 and not moves:
        return partition != sent.home
    return sent.stray and entry.txn is None


def last_places(logs: Sequence[Log]) -> dict[tuple[str, int, int], tuple[int, int]]:
    """Where each request that was sent on lies last, by where it was first received."""
    found: dict[tuple[str, int, int], tuple[int, tuple[int, int]]] = {}
    for log in logs:
        for entry in log.history:
            if entry.committed and not is_move(entry):
                came = origin(entry, log.partition)
                last = (entry.order, (log.partition, entry.offset))
                found[came] = max(found.get(came, last), last)
    return {came: place for came, (_, place) in found.items()}


def is_move(entry: Entry) -> bool:
    """Whether a record is one by which partitions move a key group."""
    return (entry.value or b"").startswith(MOVE)
