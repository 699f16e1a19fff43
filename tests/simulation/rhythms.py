"""What recurs keeps its rhythm: each instant is an interval after the one before, none is missing.

Instants in a minute that is left out are no part of a row, and the others keep their places.  A row
begins with the first instant of its grid from when its request came in, however late that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from tests.simulation.broker import Entry
from tests.simulation.sent import Sent
from tests.simulation.trail import headers_of


def drift(sent: Sent, fired: Sequence[Entry], early_ms: int) -> Iterator[str]:
    """What is wrong with the fires of a schedule of kind EVERY."""
    start_ms, interval_ms = sent.fields["start_at"], sent.fields["interval_ms"]
    if len(fired) != sent.fields["max_fires"]:
        yield f"fired {len(fired)} times, not {sent.fields['max_fires']}"
    told = [
        (int(headers["belfry-occurrence"]), _ms(headers["belfry-scheduled-at"]), entry)
        for entry in fired
        for headers in [headers_of(entry)]
    ]
    told.sort(key=lambda each: each[:2])
    passed = max(0, -((start_ms - sent.appended_ms) // interval_ms))
    wanted = sent.instants(start_ms + passed * interval_ms)
    if told and told[0][1] != wanted[0]:
        yield f"begins {told[0][1] - wanted[0]} ms behind its first instant"
    for number, (occurrence, nominal_ms, entry) in enumerate(told):
        if occurrence != number:
            yield f"has occurrence {occurrence} where {number} should be"
        if nominal_ms not in wanted[number : number + 1]:
            place_ms = nominal_ms - told[0][1]
            yield f"drifts: occurrence {occurrence} is {place_ms} ms after the first"
        if nominal_ms < start_ms:
            yield f"begins {start_ms - nominal_ms} ms before its start"
        if nominal_ms - entry.timestamp_ms > early_ms:
            yield f"fired occurrence {occurrence} {nominal_ms - entry.timestamp_ms} ms early"


def _ms(text: bytes) -> int:
    return round(datetime.fromisoformat(text.decode()).timestamp() * 1000)
