"""Payloads that are encrypted at rest: where they fire, and where rows are compared.

    request ─► at_rest ─► row ─► … ─► decrypted ─► fired record
                                          └ Undecryptable: the schedule is paused, with the reason

A tenant has keys where its policy names some (`tenants/payload_keys.py`).  A row that was kept
before that is as it was, and one that was encrypted stays so, whatever the policy says later.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.at_rest import at_rest
from belfry.engine.large_payloads import CLAIM_BYTES, is_same_when_claimed
from belfry.schedules.request import KEEPING, Request
from belfry.schedules.request_digest import digest_of
from belfry.store.layout.day_reference import stands_for
from belfry.store.layout.pending import Away, Encrypted, Pending, decode_pending, encode_pending
from belfry.store.layout.pending_bytes import same_definition
from belfry.tenants.effective import Tenant
from belfry.tenants.payload_keys import PayloadKeys, Undecryptable

# Why a schedule was paused though nobody asked for it.
CODE: Final = "undecryptable_payload"
AWAY: Final = "its payload lies in a day file, and comes back a day before it is due"


def decrypted(row: Pending, tenant: str, keys: PayloadKeys | None) -> Pending:
    """The row with the payload that its request had; raises `Undecryptable`."""
    if type(row.payload) is Away:
        raise Undecryptable(AWAY)
    if type(row.payload) is not Encrypted:
        return row
    if keys is None:
        raise Undecryptable(
            f"its payload is encrypted, and the policy of tenant {tenant} leads to no key: set"
            " payload_key_ref to where it is"
        )
    return row._replace(payload=keys.decrypt(row.name, row.payload))


def why_undecryptable(row: Pending, tenant: Tenant) -> str:
    """Why the payload of a row cannot be read; empty where it can."""
    try:
        decrypted(row, tenant.name, tenant.payload_keys)
    except Undecryptable as error:
        return str(error)
    return ""


def is_same(before: bytes, old: Pending, record: bytes, tenant: Tenant) -> bool:
    """Whether two records hold the same definition, whichever keys there were when they were made.

    `old` is the row in `before`, which the tenant's keys of now need not have encrypted.
    """
    if same_definition(before, record):
        return True
    if type(old.payload) is Away:
        payload = decode_pending(record).payload or b""
        there = encode_pending(old._replace(payload=payload))
        return stands_for(old.payload, payload) and same_definition(there, record)
    claims = tenant.claims_over is not None or CLAIM_BYTES in old.headers
    if claims and is_same_when_claimed(old, record):
        return True
    if not old.payload or not (tenant.payload_keys or type(old.payload) is Encrypted):
        return False
    try:
        plain = decrypted(old, tenant.name, tenant.payload_keys).payload
    except Undecryptable:
        return False
    return same_definition(
        encode_pending(old._replace(payload=at_rest(plain, old.name, tenant))), record
    )


def digests(request: Request, tenant: Tenant | None) -> tuple[bytes, ...]:
    """The digest of a request as it is kept beside its verdict; then those that it may have had.

    Somebody who can guess a payload could try the guess on a digest, so it is made with the
    tenant's key. Empty where that key cannot be read: such a verdict does not tell another request
    from a repeat.
    """
    plain = digest_of(request)
    if tenant is None or request["action"] not in KEEPING:
        return (plain,)
    if tenant.payload_keys is not None:
        return (*tenant.payload_keys.digests(plain), plain)
    return (b"",) if tenant.lacks_key else (plain,)
