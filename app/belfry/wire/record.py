"""A record of the source topic, as the pure rooms see it.

A plain tuple, built once per record by the reader: a class of its own would cost more than the
checks that it goes through.  Fields: offset, timestamp (epoch ms), key, value, headers.
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
ORIGIN: Final = frozenset(
    {ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP, ORIGIN_TENANT, ASKED}
)


class Origin(NamedTuple):
    """Where a request was first received: `timestamp_ms` is its first append time."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    rerouted: bool


def asked_of(record: SourceRecord) -> int:
    """How many former homes of its schedule a re-routed request has been to."""
    for name, value in record[4] or ():
        if name == ASKED and value is not None and value.isdigit() and len(value) < 4:
            return int(value)
    return 0


def stamp_of(headers: Headers | None) -> str | None:
    """The tenant whose own topic a request came in on, None where it came in on the shared one."""
    for name, value in headers or ():
        if name == ORIGIN_TENANT:
            return (value or b"").decode(errors="replace")
    return None


def has_hopped(headers: Headers | None) -> bool:
    """Whether a partition that is no home of it has sent a request on before.

    The hand-over from a tenant's own topic is no hop: it leads to where the tenant lives, and the
    home of a schedule of a spread tenant is found there.
    """
    names = {name for name, _ in headers or ()}
    return ORIGIN_TENANT not in names or ASKED in names


def origin_headers(origin: Origin, asked: int | None = None) -> Headers:
    """Headers that a re-routed request carries to its home partition."""
    headers: Headers = [
        (ORIGIN_TOPIC, origin.topic.encode()),
        (ORIGIN_PARTITION, b"%d" % origin.partition),
        (ORIGIN_OFFSET, b"%d" % origin.offset),
        (ORIGIN_TIMESTAMP, b"%d" % origin.timestamp_ms),
    ]
    if asked is not None:
        headers.append((ASKED, b"%d" % asked))
    return headers


def handed_over(record: SourceRecord, origin: Origin, tenant: str) -> Headers:
    """Headers of a request on its way from its tenant's own topic to where the tenant lives.

    What the record itself says of its origin goes: nobody but belfry stamps.
    """
    carried = [
        (name, given) for name, given in record[4] or () if name not in ORIGIN and name != SIGNATURE
    ]
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
        # Not of our making: somebody copied half of the headers.
        return here
    plausible = 0 <= origin.partition < 2**31 and 0 <= origin.offset < 2**63
    plausible = plausible and len(origin.topic) <= MAX_TOPIC
    return origin if plausible and 0 < origin.timestamp_ms <= timestamp_ms else here


def size_of(record: SourceRecord) -> int:
    """Bytes of a record's key, value and headers."""
    _, _, key, value, headers = record
    carried = sum(len(name) * 4 + len(given or b"") for name, given in headers or ())
    return len(key or b"") + len(value or b"") + carried
