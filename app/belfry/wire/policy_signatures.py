"""Signatures of policies: they prove that a worker or an operator wrote a record at its offset.

A record of `belfry.tenants` carries `belfry-policy-signature`: HMAC-SHA256 over the name of the
topic, partition and offset, tenant and value, in the form of `claims.py`.  Tombstones carry it too.
The offset is signed, so a copy of an older record is not believed: with only the right to write to
the topic nobody can bring back a replaced policy, not even if compaction has removed the record
that replaced it.

    offset 40   shop: allowed_hosts a.example        signed for 40
    offset 55   shop: allowed_hosts b.example        signed for 55
    offset 60   a copy of the record at 40           shows a signature for 40: not believed

The writer signs for the next offset, and then checks the offset of the record. If another writer
was faster, the record lies elsewhere: it is ignored, and written again
(`client/policy_writing.py`).
"""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple

from belfry.wire.claims import field
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Keys

POLICY_SIGNATURE: Final = "belfry-policy-signature"


class RecordLocation(NamedTuple):
    """The place of a record."""

    topic: str
    partition: int
    offset: int


def policy_signature(
    key: bytes, location: RecordLocation, tenant: bytes, value: bytes | None
) -> Headers:
    """The header of a policy that will lie at a location."""
    return [(POLICY_SIGNATURE, _signature(key, location, tenant, value))]


def is_signed_policy(
    keys: Keys, location: RecordLocation, record: tuple[bytes, bytes | None, Headers | None]
) -> bool:
    """Whether a record (tenant, value, headers) was signed for its location by one of `keys`."""
    tenant, value, headers = record
    shown = [given or b"" for name, given in headers or () if name == POLICY_SIGNATURE]
    return len(shown) == 1 and any(
        hmac.compare_digest(shown[0], _signature(key, location, tenant, value)) for key in keys
    )


def _signature(key: bytes, location: RecordLocation, tenant: bytes, value: bytes | None) -> bytes:
    place = f"{location.partition}/{location.offset}".encode()
    parts = (location.topic.encode(), place, tenant, value)
    return hmac.digest(key, b"".join(map(field, parts)), "sha256").hex().encode()
