"""A rejected record: as it was received, with headers that say why, and cut where it is too large.

    belfry-error-code, -reason                  why, for programs and for people
    belfry-error-topic, -partition, -offset     where it was first received
    belfry-error-at                             when, which tells places of two clusters apart
    belfry-error-tenant                         whose it is, as far as it says so
    belfry-error-cut                            how large it was, where it is not whole

Its sender may take these headers off and send the rest again (`belfry redrive`), so key, value
and the sender's own headers stay byte for byte.  One that is too large is cut by thirds, for its
beginning says most about it:

    3 000 bytes may be kept     key ≤ 1 000     value ≤ 1 000     headers ≤ 1 000, the first ones
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.engine.reply import MOST_REASON, MOST_SHOWN
from belfry.schedules.instants import format_instant
from belfry.schedules.rejections import Rejection
from belfry.wire.record import Headers, Origin, SourceRecord, size_of
from belfry.wire.unread import UNREAD

MAX_REJECTED_BYTES: Final = 900_000
# A refused record of so many bytes is always kept whole.
LEAST_REJECTED_BYTES: Final = 10_000


class RejectedRecord(NamedTuple):
    """A refused record, as received, with the headers that say why (`belfry-error-…`)."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def as_rejected(
    record: SourceRecord, rejection: Rejection, origin: Origin, tenant: str, most_bytes: int
) -> RejectedRecord:
    """The kept part of a refused record: at most so many bytes, and the headers that say why.

    `origin` is where it was first received, `tenant` the one that it names; empty if it names none.
    """
    _, _, key, value, carried = record
    # By that one its reader had it refused: the reason stands in the headers that are added.
    headers, added = list(carried or ()), _why(rejection, origin, tenant)
    if headers and headers[-1][0] == UNREAD:
        headers.pop()
    size = size_of(record)
    if size > most_bytes:
        added.append(("belfry-error-cut", b"cut from %d bytes" % size))
        third = most_bytes // 3
        key = None if key is None else key[:third]
        value = None if value is None else value[:third]
        headers = _first_headers(headers, third)
    return RejectedRecord(key, value, [*headers, *added])


def _why(rejection: Rejection, origin: Origin, tenant: str) -> Headers:
    """The headers that say why a record is refused, and where it was received."""
    added: Headers = [
        ("belfry-error-code", rejection.code.encode()),
        (
            "belfry-error-reason",
            rejection.reason[:MOST_REASON].encode(errors="backslashreplace"),
        ),
        ("belfry-error-topic", origin.topic[:249].encode()),
        ("belfry-error-partition", b"%d" % origin.partition),
        ("belfry-error-offset", b"%d" % origin.offset),
        ("belfry-error-at", format_instant(origin.timestamp_ms).encode()),
    ]
    if tenant:
        # So that a tenant finds its own without each record being read anew.
        whose = tenant[:MOST_SHOWN].encode(errors="backslashreplace")
        added.append(("belfry-error-tenant", whose))
    return added


def _first_headers(headers: Headers, room: int) -> Headers:
    """The headers that fit into so many bytes, from the first one on."""
    kept: Headers = []
    for name, given in headers:
        room -= len(name) * 4 + len(given or b"")
        if room < 0:
            break
        kept.append((name, given))
    return kept
