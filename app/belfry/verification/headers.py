"""Headers of records in outputs and refusals, as far as they can be believed.

    belfry-fire-id, belfry-occurrence, belfry-schedule-id     which fire a record is
    belfry-error-topic, -partition, -offset, -at              where a refused request was received
    belfry-error-redriven                                     which refusal was sent again

Anybody who may write to a topic may write any header, so a header that is not belfry's is None and
never an error: one record must not keep the others from being verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from belfry.verification.findings import Spot
from belfry.verification.memory import FiredEntry

ID_HEADER: Final = "belfry-fire-id"
SCHEDULE_HEADER: Final = "belfry-schedule-id"
INSTANT_HEADER: Final = "belfry-scheduled-at"
NUMBER_HEADER: Final = "belfry-occurrence"
# Headers that a redrive adds to an event: its name and the event's offset.
COPY_HEADER: Final = "belfry-redriven"
# How belfry's own headers of a record of the rejected topic begin.
_ERROR: Final = "belfry-error-"
_SENT_AGAIN: Final = b"redriven"
_OF_A_MOVE: Final = b"bad_move"
# All numbers of so many digits fit into 64 bits.
_MOST_DIGITS: Final = 18


def fired_entry(
    headers: Mapping[str, bytes | None], spot: Spot, timestamp_ms: int, nominal_ms: int
) -> FiredEntry | None:
    """The fire that an output record is, None for a record of somebody else's.

    `headers` are its last ones of each name, `nominal_ms` is its instant, already read.
    """
    identity = identity_of(headers.get(ID_HEADER))
    number = _number(headers.get(NUMBER_HEADER))
    if identity is None or number is None:
        return None
    schedule_id = headers.get(SCHEDULE_HEADER) or b""
    return FiredEntry(identity, schedule_id, nominal_ms, number, spot, timestamp_ms)


def origin_of(headers: Mapping[str, bytes | None], *, follows: bool) -> str | None:
    """Where the request was received that a record of the rejected topic is about; None: unsaid.

    As ``topic/partition@offset``, by the headers `belfry-error-topic`, `-partition` and `-offset`,
    and with the instant, where `-at` tells it, on a side that `follows` another cluster: it has
    refusals of both, and so different requests of one place. Elsewhere the place alone is proof.

    Workers write records of moves, which were received nowhere: all of them say the offset 0.
    """
    if headers.get(_ERROR + "code") == _OF_A_MOVE:
        return None
    said = [headers.get(_ERROR + each) for each in ("topic", "partition", "offset")]
    if None in said:
        return None
    topic, partition, offset = ((each or b"").decode(errors="replace") for each in said)
    place, at = f"{topic}/{partition}@{offset}", headers.get(_ERROR + "at")
    return place if at is None or not follows else f"{place} of {at.decode(errors='replace')}"


def marked_by(headers: Mapping[str, bytes | None], spot: Spot) -> str | None:
    """The place of the refusal that a record of the rejected topic marks as sent again, or None.

    A refused request may have any header; the last code is belfry's.
    """
    offset = _number(headers.get(_ERROR + "redriven"))
    if headers.get(_ERROR + "code") != _SENT_AGAIN or offset is None or offset < 0:
        return None
    return str(spot._replace(offset=offset))


def identity_of(digits: bytes | str | None) -> bytes | None:
    """The 16 bytes of a fire id in hexadecimal digits, None for anything else."""
    text = digits.decode("ascii", "replace") if isinstance(digits, bytes) else digits or ""
    try:
        found = bytes.fromhex(text)
    except ValueError:
        return None
    return found if len(found) == 16 else None


def _number(digits: bytes | None) -> int | None:
    """The number in a header, None for anything else, also for one that fits into no offset.

    Anybody may write such a header: of more digits Python makes no number, and SQLite keeps none.
    """
    found = digits or b""
    if len(found) > _MOST_DIGITS or not found.removeprefix(b"-").isdigit():
        return None
    return int(found)
