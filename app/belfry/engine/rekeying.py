"""A bulk job that encrypts payloads anew under the newest key of their tenant (``REKEY``).

    keys k2, k1     a  by k1       b  plain       c  by k2           d  no payload
    REKEY           a  by k2       b  by k2       c  left alone      d  left alone
                    UPDATED        UPDATED        no outcome         no outcome

After it no row of a schedule that waited depends on `k1`.  The job changes the payload at rest and
nothing else: instant, version, place and the event that fires stay as they are.

A payload that lies elsewhere (`large_payloads.py`) is in no row, and no worker reads it back: it
keeps the key that it was stored with.  Such schedules are no business of the job; a look before it
counts them (`is_sealed_elsewhere`), for their consumers need that key still.

A job may name the key.  Workers follow policies beside their steps, so one may not have read yet
that another key is the newest.  It waits then: under an older key the work would be for nothing.
It waits as well where its keys cannot be read.

A schedule that was asked for behind the job is the job's business too, unlike that of other jobs:
its sender has said nothing about keys.  A schedule that is asked for once the job is at work has
the newest key from the beginning.
"""

from __future__ import annotations

from typing import Final

from belfry.engine.admission import lacks_key
from belfry.engine.at_rest import at_rest
from belfry.engine.payloads import decrypted
from belfry.engine.reply import Reply
from belfry.engine.step import Step
from belfry.schedules.bulk import REKEY, BulkSpec, read_bulk
from belfry.schedules.outcomes import Outcome
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.store.layout.pending import Encrypted, Pending, decode_headers
from belfry.store.layout.pending_bytes import with_encrypted
from belfry.store.readable import why_unreadable
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import Tenant
from belfry.tenants.payload_keys import Undecryptable, key_id_of
from belfry.wire.claim_check import ENCRYPTED

_SEALED: Final = ENCRYPTED.encode()


def rekey_problem(request: Request, tenant: Tenant) -> Rejection | None:
    """Why a job that encrypts payloads anew may not begin; None for all other jobs."""
    spec = read_bulk(request["bulk"])
    if isinstance(spec, Rejection) or spec.action != REKEY or tenant.payload_keys is not None:
        return None
    if tenant.lacks_key:
        return lacks_key(tenant)
    reason = (
        f"bulk is a REKEY, and the policy of tenant {tenant.name} names no payload_key_ref, so"
        " there is no key to encrypt with: set it first."
    )
    return Rejection("bad_bulk", reason)


def waits_for_key(spec: BulkSpec, tenant: Tenant) -> bool:
    """Whether this worker cannot do such a job yet: the key is not its newest."""
    keys = tenant.payload_keys
    other = keys is not None and spec.key is not None and spec.key != keys.newest
    return tenant.lacks_key or other


def is_under_another(row: Pending, key: str | None) -> bool:
    """Whether a payload is not encrypted by the key of this id; None: whether it is at all."""
    if not row.payload:
        return False
    if type(row.payload) is Encrypted:
        return key_id_of(row.payload) != key
    return key is not None


def is_sealed_elsewhere(row: Pending) -> bool:
    """Whether its payload lies elsewhere, encrypted by a key that the tenant had then."""
    if _SEALED not in row.headers:
        return False
    return any(name == ENCRYPTED for name, _ in decode_headers(row.headers))


def newest_of(tenant: Tenant) -> str | None:
    """The id of the tenant's newest key, None where it has none."""
    return None if tenant.payload_keys is None else tenant.payload_keys.newest


def rekey(
    found: tuple[bytes, Pending, bytes], tenant: Tenant, store: ScheduleStore, step: Step
) -> Reply:
    """Encrypt the payload of a schedule under the newest key; `found` as `matched` has it."""
    location, row, record = found
    if why := why_unreadable(record):
        return _refused(row, f"The schedule cannot be read by this worker: {why}.")
    try:
        payload = decrypted(row, tenant.name, tenant.payload_keys).payload
    except Undecryptable as error:
        return _refused(row, f"Its payload stays as it is: {error}.")
    kept = with_encrypted(record, at_rest(payload, row.name, tenant) or b"")
    step.effects.room -= len(kept)
    store.replace(row.name, location, kept)
    return Reply(
        Outcome.UPDATED, row.version, row.due_ms, reason="Its payload is under the newest key"
    )


def _refused(row: Pending, reason: str) -> Reply:
    return Reply(Outcome.REJECTED, row.version, code="unreadable_schedule", reason=reason)
