"""Occurrences that wait for the fire before them: as many as were asked for, each its own (I27)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.acks import nominal_ms
from tests.simulation.bulk import Definition
from tests.simulation.sent import Sent
from tests.simulation.taking import Seen
from tests.simulation.trail import headers_of


def check_overlaps(seen: Seen) -> list[str]:
    """All that is wrong with the rows of schedules that have an `overlap`."""
    return [
        f"I27 {name} {what}"
        for name, definition in seen.definitions.items()
        if "overlap" in definition.sent.fields
        for what in _wrong(definition)
    ]


def _wrong(definition: Definition) -> Iterator[str]:
    sent, most = definition.sent, definition.sent.fields["max_fires"]
    fired = sorted(
        (int(headers_of(entry)["belfry-occurrence"]), nominal_ms(entry), entry.timestamp_ms)
        for _, entry in definition.fired_in
    )
    if [number for number, _, _ in fired] != list(range(most)):
        yield f"fired the occurrences {[number for number, _, _ in fired]} of {most}"
    instants = [at_ms for _, at_ms, _ in fired]
    early = [at_ms for _, at_ms, fired_ms in fired if fired_ms < at_ms]
    if early:
        yield f"fired before {early}"
    if instants != sorted(set(instants)):
        yield f"fired its occurrences for {instants}"
    if not fired:
        return
    rhythm = _rhythm(sent, instants[0], instants[-1])
    if sent.fields["overlap"] == "QUEUE_ALL":
        # None is given up: what is due while another one is awaited comes later.
        if instants != rhythm:
            yield f"queued all, and fired for {instants}, not {rhythm}"
    elif set(instants) - set(rhythm):
        yield f"fired off its rhythm, for {instants}"


def _rhythm(sent: Sent, first_ms: int, last_ms: int) -> list[int]:
    """All instants of its rule between two, both inclusive."""
    if sent.table is not None:
        return sent.table.instants(first_ms - 1, last_ms)
    return sent.between(first_ms, last_ms + 1)
