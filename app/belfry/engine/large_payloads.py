"""Large payloads: stored elsewhere before the step is committed, and claimed by headers of the row.

    request, 2 MB ─┬─► effects.objects   (tenant, digest) ─► payload     stored, then committed
                   └─► row               headers of the claim, an empty payload
                                         └─► fired record, the same      its consumer redeems it

The policy of the tenant says from which size on (`claim_check_over_bytes`).  From the row on, such
a schedule is like one whose client sent a claim (`wire/claim_check.py`): nothing here is read
again, and no byte at rest is new.  A change of the policy changes no pending schedule.

Where the tenant has a key for its payloads, the object has the bytes that would lie in the row:
encrypted, for this schedule.  The worker that redeems the claim decrypts it, and a newer key makes
another object.

The object is named by its content, so a step that is done again, a repeat, a playback name the same
one.  An earlier step that was rolled back leaves an object that nobody claims.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.at_rest import at_rest
from belfry.engine.step import Step
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.store.layout.pending import (
    Encrypted,
    Pending,
    decode_headers,
    decode_pending,
    encode_headers,
    encode_pending,
)
from belfry.tenants.effective import Tenant
from belfry.wire.claim_check import CLAIM, with_claims

CLAIM_BYTES: Final = CLAIM.encode()
# The part of a step's room that an object takes besides three times its size.  A step stores no
# more than a store takes in some tenths of a second, whatever a tenant sends: some tens, or some
# megabytes.
OBJECT_BYTES: Final = 500_000


def is_large(payload: bytes | None, tenant: Tenant) -> bool:
    """Whether a payload of the tenant is stored elsewhere."""
    return tenant.claims_over is not None and len(payload or b"") > tenant.claims_over


def claimed(row: Pending) -> Pending:
    """The row with a claim to its payload in place of the payload, which may be encrypted."""
    payload = row.payload or b""
    given = [(name.encode(), value) for name, value in decode_headers(row.headers)]
    headers = with_claims(given, payload, row.name if type(payload) is Encrypted else b"")
    return row._replace(headers=encode_headers(headers), payload=b"")


def note_object(request: Request, row: Pending, tenant: Tenant, step: Step) -> None:
    """Have the payload of a request stored as it is kept at rest, before its row is committed."""
    if is_large(request["payload"], tenant):
        digest = dict(decode_headers(row.headers))[CLAIM] or b""
        stored = at_rest(request["payload"], row.name, tenant) or b""
        step.effects.objects[tenant.name, digest.decode()] = stored
        step.effects.room -= OBJECT_BYTES + 3 * len(stored)


def is_same_when_claimed(old: Pending, record: bytes) -> bool:
    """Whether a row and a record differ only in that one claims the payload of the other."""
    new = decode_pending(record)
    if bool(old.payload) == bool(new.payload):
        return False
    full, empty = (old, new) if old.payload else (new, old)
    if CLAIM_BYTES not in empty.headers:
        return False
    return _definition(claimed(full)) == _definition(empty)


def _definition(row: Pending) -> bytes:
    """The bytes of a row that its request decides."""
    return encode_pending(row._replace(due_ms=0, nominal_ms=0, accepted_ms=0, seq=0, life=0,
                                       version=1, occurrence=0))  # fmt: skip


def not_stored(request: Request, tenant: Tenant, problem: str) -> Rejection | None:
    """Why a large payload is not taken while the store is away, or None."""
    if not problem or not is_large(request["payload"], tenant):
        return None
    size = len(request["payload"] or b"")
    return Rejection(
        "payload_not_stored",
        f"Payloads of tenant {tenant.name!r} of more than {tenant.claims_over} bytes are stored"
        f" elsewhere, and this one of {size} bytes cannot be: {problem}. Try again.",
    )
