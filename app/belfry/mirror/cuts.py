"""Which transactions of a source may be carried by now, so that all partitions fit together.

Partitions write to one another: misrouted requests, and key groups that move. Each lane carries one
partition, and a take-over without the source may come at any moment. So two rules hold at all times
for the records in the target:

    effects first   a transaction that sent a request on is carried when the topic of requests is,
                    up to where it ended behind that transaction: no sent request is missing
    causes first    a transaction that took in a request of another partition is carried when the
                    one that sent it is: no request is judged that will be sent once more

    source   partition 0   7: rows of group 9 leave ─►  input of 1   ─►   partition 1   4: they come
    target                 the input of 1, then 0's transaction 7, then 1's transaction 4

A record in an input ahead of the transaction that sent it is left out at a take-over, for its
sender sends it again (`premature.py`). A header of a record names its sender (`SentBy`), and the
manifest of a transaction says whether it sent records. Those of earlier releases have neither, and
do not wait.

Transactions cannot wait for one another in a circle, unless one is a stretch of several, whose
manifests compaction has removed, or a record names a transaction of an earlier changelog. Then no
order keeps the second rule, and after a minute the first one stops waiting (`waits.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from belfry.mirror.waits import Waits
from belfry.store.layout.groups import HOME_PREFIX, LIES_PREFIX, NOWHERE, decode_group
from belfry.store.layout.manifests import Manifest
from belfry.store.net import Change
from belfry.wire.record import SentBy

# A transaction that a record names, and that its partition, level since, does not have for so long
# is none of this changelog: it was lost with an earlier one, or never was.
NEVER_MS: Final = 60_000


@dataclass(slots=True)
class Cut:
    """A transaction that is held back: `rows` of those held belong to it, its manifest the last.

    It ends before `offset` of the changelog, and was read at `at_ms` (epoch ms). `names` is the
    highest partition that its rows of key groups name. `ends` are where the topic of requests ended
    behind it, by partition; None until somebody has asked.
    """

    rows: int
    offset: int
    number: int
    position: int
    sent_on: bool
    names: int
    at_ms: int
    ends: Mapping[int, int] | None = None

    @classmethod
    def of(
        cls, rows: list[Change], offset: int, manifest: Manifest, at_ms: int, after: int = 0
    ) -> Cut:
        """The cut behind these rows of a transaction, which follow those of `after` (0: none is
        known). Of what lies between nobody knows any more whether it sent something on.
        """
        number = manifest.txn_seq
        sent_on = manifest.sent_on or 0 < after < number - 1
        named = highest_named(rows)
        return cls(len(rows), offset, number, manifest.position, sent_on, named, at_ms)


class Need(NamedTuple):
    """A request at an offset that was sent on by a transaction; it was read at `at_ms`."""

    offset: int
    by: SentBy
    at_ms: int


class Together:
    """The facts that the lanes of a mirror share; for one thread.

    Of each partition: the number of the last transaction that was carried, the source's offset up
    to which requests were, and by when it was level; and what it waits for. `count` is how many
    partitions are followed, and the source had no more at `looked_ms`.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        # All records of a fenced source are carried: then no lane waits for another.
        self.open = False
        self.numbers: dict[int, int] = {}
        self.inputs: dict[int, int] = {}
        self.level_ms: dict[int, int] = {}
        self.looked_ms = 0
        self.waits = Waits(self.has)
        self._unanswered: list[Cut] = []

    @property
    def asks(self) -> bool:
        """Whether somebody waits to learn where the topic of requests ends."""
        return bool(self._unanswered)

    def ask(self, cut: Cut) -> None:
        """Let a cut learn where the topic of requests ends behind it."""
        self._unanswered.append(cut)

    def tell(self, ends: Mapping[int, int]) -> None:
        """The topic of requests ends here, committed or not; asked behind all that ask."""
        for each in self._unanswered:
            each.ends = ends
        self._unanswered.clear()

    def carried(self, partition: int, number: int, input_to: int, level_ms: int) -> None:
        """How far a partition was carried by now."""
        self.numbers[partition] = number
        self.inputs[partition] = input_to
        self.level_ms[partition] = level_ms

    def has(self, by: SentBy) -> bool:
        """Whether a transaction was carried."""
        return self.numbers.get(by.partition, 0) >= by.number


class Gate:
    """Says which transactions of one partition may be carried."""

    def __init__(self, together: Together, partition: int) -> None:
        self._together = together
        self._partition = partition
        self._cuts: deque[Cut] = deque()
        self._needs: deque[Need] = deque()

    @property
    def held(self) -> int:
        """How many transactions wait."""
        return len(self._cuts)

    @property
    def first(self) -> Cut | None:
        """The first one that waits."""
        return self._cuts[0] if self._cuts else None

    def request(self, need: Need) -> None:
        """A request was read that another partition sent on; in the order of offsets."""
        if need.by.partition != self._partition:
            self._needs.append(need)

    def sealed(self, cut: Cut) -> None:
        """A further transaction was read."""
        self._cuts.append(cut)
        if cut.sent_on:
            self._together.ask(cut)

    def free(self, noted: int) -> list[Cut]:
        """The next transactions that may be carried; requests were read up to `noted`."""
        found: list[Cut] = []
        while self._cuts and self._is_free(self._cuts[0], noted, first=not found):
            found.append(self._cuts.popleft())
        return found

    def _is_free(self, cut: Cut, noted: int, *, first: bool) -> bool:
        if self._together.open:
            return True
        waited = self._together.waits.over(self._partition)
        if cut.position > noted or cut.names >= self._together.count:
            return False
        while self._needs and self._needs[0].offset < cut.position:
            need = self._needs[0]
            if not self._is_met(need):
                self._together.waits.begin(self._partition, cut.number, need.by, waited)
                # Behind those that go with it, and that others may wait for, it may look like one.
                if not (first and self._together.waits.in_circle(self._partition)):
                    return False
            self._needs.popleft()
        if not cut.sent_on:
            return True
        if cut.ends is not None and len(cut.ends) < self._together.count:
            # It was asked before partitions were added, and it may have sent something there.
            cut.ends = None
            self._together.ask(cut)
        inputs = self._together.inputs
        return cut.ends is not None and all(
            inputs.get(partition, 0) >= end for partition, end in cut.ends.items()
        )

    def pass_missing(self, end: int, asked_ms: int) -> None:
        """All requests were read up to their end, asked at `asked_ms`: what was taken in behind
        that by transactions which were read before is gone.
        """
        for cut in self._cuts:
            if cut.at_ms >= asked_ms:
                break
            if cut.position > end:
                cut.position = 0

    def _is_met(self, need: Need) -> bool:
        together, by = self._together, need.by
        if together.has(by):
            return True
        followed = by.partition < together.count
        known_ms = together.level_ms.get(by.partition, 0) if followed else together.looked_ms
        return known_ms > need.at_ms + NEVER_MS


def highest_named(rows: Iterable[Change]) -> int:
    """The highest partition that rows of key groups name; -1 for none."""
    named = -1
    for key, row in rows:
        if row is not None and key.startswith((HOME_PREFIX, LIES_PREFIX)):
            group = decode_group(row)
            named = max(named, group.at, *(() if group.to == NOWHERE else (group.to,)))
    return named
