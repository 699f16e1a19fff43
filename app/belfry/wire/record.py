"""A record of the source topic, as the pure rooms see it.

It is a plain tuple, which the reader builds once per record: a class of its own would cost more
than the checks of a record. Fields: offset, timestamp (epoch ms), key, value, headers.

A request keeps its origin on every way that it takes. It counts from its first arrival, and its
verdict names the place of that arrival:

    belfry.schedules/5, offset 17, 12:00:00.000     `shop` lives in partition 3
      ─► belfry.schedules/3, offset 900, 12:00:00.040, with the headers
           belfry-origin-topic: belfry.schedules     belfry-origin-partition: 5
           belfry-origin-offset: 17                  belfry-origin-timestamp: 1796126400000

Any producer can write such headers, so `origins.py` says which of them are believed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

Headers = list[tuple[str, bytes | None]]
SourceRecord = tuple[int, int, bytes | None, bytes | None, Headers | None]

MAX_TOPIC: Final = 249
ORIGIN_TOPIC: Final = "belfry-origin-topic"
ORIGIN_PARTITION: Final = "belfry-origin-partition"
ORIGIN_OFFSET: Final = "belfry-origin-offset"
ORIGIN_TIMESTAMP: Final = "belfry-origin-timestamp"
ORIGIN_TENANT: Final = "belfry-origin-tenant"
SIGNATURE: Final = "belfry-signature"
ASKED: Final = "belfry-origin-asked"
RETRIES: Final = "belfry-origin-retries"
# The partition that sent a record on, and the number of the transaction that did so.
SENT_BY: Final = "belfry-origin-by"
# On a refused request that is sent again: the place of its refusal.
REDRIVEN_FROM: Final = "belfry-origin-redriven"
# Belfry adds names that begin so on the way to an owning partition; later releases may add more.
ORIGIN_PREFIX: Final = "belfry-origin-"
ORIGIN: Final = frozenset(
    {ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP, ORIGIN_TENANT, ASKED, RETRIES}
)
# No broker gave a later instant: this is in the year 5138.
LATEST_MS: Final = 10**14


class Origin(NamedTuple):
    """Where a request was first received, and when.

    `timestamp_ms` is its first append time, or that of the record at hand if this is earlier: the
    clocks of two brokers differ, and no request is received after it was sent on. `rerouted`:
    headers gave all of this, not the place of the record itself.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    rerouted: bool


def asked_of(record: SourceRecord) -> int:
    """The number of former homes of its schedule that a re-routed request has been to."""
    return _small_number(record, ASKED)


def retries_of(record: SourceRecord) -> int:
    """How often a misrouted request began its way anew."""
    return _small_number(record, RETRIES)


def _small_number(record: SourceRecord, header: str) -> int:
    for name, value in record[4] or ():
        if name == header and value is not None and value.isdigit() and len(value) < 5:
            return int(value)
    return 0


class SentBy(NamedTuple):
    """The transaction that sent a record on: its partition, and its number there."""

    partition: int
    number: int


def sent_by_headers(partition: int, number: int) -> Headers:
    """The header that names it; none for the number 0, of a sender without a changelog."""
    return [(SENT_BY, b"%d.%d" % (partition, number))] if number else []


def sent_by_of(headers: Headers | None) -> SentBy | None:
    """The transaction in a record's headers; None without a valid header."""
    for name, value in headers or ():
        if name == SENT_BY and value is not None and len(value) < 32:
            partition, _, number = value.partition(b".")
            if partition.isdigit() and number.isdigit():
                return SentBy(int(partition), int(number))
    return None


def stamp_of(headers: Headers | None) -> str | None:
    """The tenant whose own topic a request came in on; None if it came in on the shared one."""
    for name, value in headers or ():
        if name == ORIGIN_TENANT:
            return (value or b"").decode(errors="replace")
    return None


def has_hopped(headers: Headers | None) -> bool:
    """Whether a partition that does not own a request has sent it on before.

    The presence of the headers decides, whatever instants they hold: the brokers' clocks may
    differ. The hand-over from a tenant's own topic is not a hop: it leads to the tenant's home, and
    for a spread tenant the owning partition of a schedule is found there.
    """
    names = {name for name, _ in headers or ()} & ORIGIN
    return bool(names) and (ORIGIN_TENANT not in names or ASKED in names)


def without_origin(headers: Headers | None) -> Headers:
    """Headers without those that belfry adds on the way to an owning partition."""
    return [each for each in headers or () if not each[0].startswith(ORIGIN_PREFIX)]


def carried_on(headers: Headers | None) -> Headers:
    """Headers that a request keeps when it is sent on: its own, and those of a redrive."""
    return without_origin(headers) + [each for each in headers or () if each[0] == REDRIVEN_FROM]


def is_redriven(record: SourceRecord) -> bool:
    """Whether a request was refused before, and is sent again."""
    return any(name == REDRIVEN_FROM for name, _ in record[4] or ())


def origin_headers(origin: Origin, asked: int | None = None) -> Headers:
    """Headers that a re-routed request carries to its home partition.

    A producer may have given any instant, if the topic does not use the broker's: an instant that
    no reader would believe is replaced.
    """
    timestamp_ms = min(max(origin.timestamp_ms, 1), LATEST_MS - 1)
    headers: Headers = [
        (ORIGIN_TOPIC, origin.topic.encode()),
        (ORIGIN_PARTITION, b"%d" % origin.partition),
        (ORIGIN_OFFSET, b"%d" % origin.offset),
        (ORIGIN_TIMESTAMP, b"%d" % timestamp_ms),
    ]
    if asked is not None:
        headers.append((ASKED, b"%d" % asked))
    return headers


def handed_over(record: SourceRecord, origin: Origin, tenant: str) -> Headers:
    """Headers of a request on its way from its tenant's own topic to the tenant's home.

    The record's own headers about its origin are dropped: only belfry may set them.
    """
    carried = [each for each in carried_on(record[4]) if each[0] != SIGNATURE]
    return [*carried, *origin_headers(origin), (ORIGIN_TENANT, tenant.encode())]


def origin_of(record: SourceRecord, topic: str, partition: int) -> Origin:
    """First source position of a record that was read from `topic` and `partition`."""
    offset, timestamp_ms, _, _, headers = record
    here = Origin(topic, partition, offset, timestamp_ms, rerouted=False)
    if not headers:
        return here
    found = {name: value or b"" for name, value in headers if name in ORIGIN}
    if not found:
        return here
    try:
        origin = Origin(
            found[ORIGIN_TOPIC].decode(),
            int(found[ORIGIN_PARTITION]),
            int(found[ORIGIN_OFFSET]),
            int(found[ORIGIN_TIMESTAMP]),
            rerouted=True,
        )
    except (KeyError, ValueError):
        # Belfry did not write these: a producer has copied only some of the headers.
        return here
    plausible = 0 <= origin.partition < 2**31 and 0 <= origin.offset < 2**63
    plausible = plausible and 0 < len(origin.topic) <= MAX_TOPIC
    if not plausible or not 0 < origin.timestamp_ms < LATEST_MS:
        return here
    return origin._replace(timestamp_ms=min(origin.timestamp_ms, timestamp_ms))


def size_of(record: SourceRecord) -> int:
    """Bytes of a record's key, value and headers.

    A character of a header's name counts four bytes, the most that UTF-8 takes: names are text
    here, and encoding each only to measure it would cost more than it is worth.
    """
    _, _, key, value, headers = record
    carried = sum(len(name) * 4 + len(given or b"") for name, given in headers or ())
    return len(key or b"") + len(value or b"") + carried
