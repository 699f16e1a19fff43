"""Redrives: what a range held was sent again once, as it was, and nothing else was (I31).

belfry.fired.t/0     41 event                57 its copy, marked with name and offset
belfry.rejected/0    42 refusal              58 its mark
belfry.schedules                             the request, with the place of its refusal
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.simulation.broker import Entry, Log
from tests.simulation.redriving import AskedAgain
from tests.simulation.sent import Sent
from tests.simulation.trail import FIRED, headers_of

if TYPE_CHECKING:
    from tests.simulation.world import World

REJECTED: Final = "belfry.rejected"
COPY: Final = "belfry-redriven"
AGAIN: Final = "belfry-origin-redriven"
CODE: Final = "belfry-error-code"
MARK: Final = "belfry-error-redriven"


def sent_again(world: World, entry: Entry, known: dict[tuple[str, int, int], Sent]) -> Sent | None:
    """The request that a redrive has sent again, where the entry is one, as it is sent now."""
    marked = headers_of(entry).get(AGAIN)
    if marked is None:
        return None
    partition, _, offset = marked.decode().removeprefix(f"{REJECTED}/").partition("@")
    refusals = world.broker.log(REJECTED, int(partition)).history
    (refusal,) = [each for each in refusals if each.offset == int(offset)]
    said = headers_of(refusal)
    place = int(said["belfry-error-partition"]), int(said["belfry-error-offset"])
    first = known.get((said["belfry-error-topic"].decode(), *place))
    if first is None or (entry.key, entry.value) != (refusal.key, refusal.value):
        return None
    # Whoever sent it to a wrong partition, the redrive sends it home.
    return replace(first, stray=False, schema_id=first.schema_id)


def check_redriven(world: World) -> list[str]:
    """All that is wrong with what was sent again."""
    problems: list[str] = []
    asked = world.redriving.asked
    for topic, logs in sorted(world.broker.topics.items()):
        if topic.startswith(FIRED):
            mine = [each for each in asked if each.topic == topic]
            problems += [f"I31 {what}" for log in logs for what in _copies(log, mine)]
    refused = [each for each in asked if each.topic is None]
    problems += [f"I31 {what}" for what in _refusals(world, refused)]
    return problems


def _committed(log: Log) -> list[Entry]:
    return [entry for entry in log.history if entry.committed]


def _copies(log: Log, asked: Iterable[AskedAgain]) -> Iterator[str]:
    """What is wrong with the copies in one partition of an output topic."""
    entries = _committed(log)
    copies: dict[str, list[Entry]] = {}
    for entry in entries:
        mark = headers_of(entry).get(COPY)
        if mark is not None:
            copies.setdefault(mark.decode(), []).append(entry)
    for each in asked:
        for entry in entries:
            if COPY in headers_of(entry) or not each.from_ms <= entry.timestamp_ms < each.until_ms:
                continue
            found = copies.pop(f"{each.name}@{entry.offset}", [])
            if len(found) != 1:
                yield f"{log.topic}@{entry.offset} was sent again {len(found)} times"
            for copy in found:
                headers = [header for header in copy.headers or () if header[0] != COPY]
                same = (copy.key, copy.value, headers) == (entry.key, entry.value, entry.headers)
                if not same or copy.offset <= entry.offset:
                    yield f"{log.topic}@{copy.offset} is no copy of {entry.offset}"
    for left in copies:
        yield f"{log.topic}: {left} was sent again, and nobody asked for it"


def _refusals(world: World, asked: list[AskedAgain]) -> Iterator[str]:
    """What is wrong with refused requests that were sent again."""
    again = Counter(
        headers_of(entry)[AGAIN].decode()
        for entry in world.committed("belfry.schedules")
        # What is sent on to another partition keeps the header.
        if AGAIN in headers_of(entry) and "belfry-origin-offset" not in headers_of(entry)
    )
    for log in world.broker.topics[REJECTED]:
        entries = _committed(log)
        marks = Counter(headers_of(entry).get(MARK) for entry in entries)
        for entry in entries:
            if MARK in headers_of(entry):
                continue
            wanted = any(each.from_ms <= entry.timestamp_ms < each.until_ms for each in asked)
            place = f"{REJECTED}/{log.partition}@{entry.offset}"
            times = again.pop(place, 0), marks.pop(b"%d" % entry.offset, 0)
            if times != (wanted, wanted):
                yield f"{place} was sent again {times[0]} times, and marked {times[1]} times"
    for place in again:
        yield f"{place} was sent again, and is no refusal"
