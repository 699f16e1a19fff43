"""Origins that can be believed: a worker signs a request that it sends on.

A request that comes in at the wrong partition is sent on with headers that say where and when it
was first received. Every producer that may write to the topic can write such headers too, and so
make a request count from another instant, or make its verdict name another place. So workers that
share a secret add one more header, `belfry-origin-signature`: HMAC-SHA256 over key, value and all
other headers, in the form of `claims.py`. An origin without this header is ignored: the request was
first received where it lies.
"""

from __future__ import annotations

import hmac
from typing import Final

from belfry.wire.claims import field
from belfry.wire.record import ORIGIN_PREFIX, Headers, Origin, SourceRecord, origin_of
from belfry.wire.worker_keys import Keys

ORIGIN_SIGNATURE: Final = ORIGIN_PREFIX + "signature"


def vouched(keys: Keys, key: bytes | None, value: bytes | None, headers: Headers) -> Headers:
    """Headers of a request that is sent on, with the worker's signature as the last one.

    Without keys they stay unchanged: workers without a secret believe the headers.
    """
    if not keys:
        return headers
    return [*headers, (ORIGIN_SIGNATURE, _signature(keys[0], key, value, headers))]


def believed_origin(keys: Keys, record: SourceRecord, topic: str, partition: int) -> Origin:
    """First source position of a record that was read from `topic` and `partition`.

    If workers have keys, only a signed origin counts, else the headers do.
    """
    offset, timestamp_ms, key, value, headers = record
    if keys and headers:
        *signed, (name, shown) = headers
        if name != ORIGIN_SIGNATURE or not any(
            hmac.compare_digest(shown or b"", _signature(each, key, value, signed)) for each in keys
        ):
            return Origin(topic, partition, offset, timestamp_ms, rerouted=False)
    return origin_of(record, topic, partition)


def _signature(secret: bytes, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    parts = [field(key), field(value)]
    for name, given in headers:
        parts += (field(name.encode()), field(given))
    return hmac.digest(secret, b"".join(parts), "sha256").hex().encode()
