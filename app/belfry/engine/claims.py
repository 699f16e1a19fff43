"""Claims: whether a request is from the tenant that it names, where that has to sign.

Checked wherever a request is first read and once more at its home, before anything is remembered
under its name: a forged request leaves nothing but its rejection.

A request whose schema is unknown cannot be read yet.  Asking for the schema is work, and later
requests of the same sender have to wait behind it.  So before it is read, two things are told of
it:

    account   who pays for the lookups: a tenant that is proven to ask, else `NOBODY` for all others
    lane      whose requests wait in a row: such a tenant, else one of 256 lanes of strangers

The lane of a stranger is told by the key that the record shows (to its first `/`), or by belfry's
stamp.  Nobody has proven either, so it counts for the order alone: requests that show the same name
never overtake one another.  Names can be made up, so they share a fixed number of lanes.

    record                                              account   lane
    stamped by a worker: shop, which has a policy       shop      shop
    key shop/a, and shop's signature is right           shop      shop
    key shop/a, without a signature                     nobody    one of 256, by "shop"; refused
                                                                  where everybody has to sign
    no key                                              nobody    one of 256, by ""

The signature is HMAC-SHA256 (RFC 2104) over tenant, key, value and headers; `wire/claims.py` has
its bytes.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from belfry.schedules.rejections import Rejection
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Tenant
from belfry.wire.claims import proves, shown
from belfry.wire.record import SourceRecord, stamp_of

# The sender cannot be known before the request is read.
NOBODY: Final = b""
# No tenant's name holds this.
STRANGER: Final = b"?"
STRANGERS_LANES: Final = 256
MOST_NAME_BYTES: Final = 100
CURE: Final = (
    "put HMAC-SHA256 with the tenant's secret into the header belfry-signature (docs/tenants.md),"
    " or write to the tenant's own topic."
)


def false_claim(record: SourceRecord, tenant: Tenant) -> Rejection | None:
    """Why a request is not believed, or None; asked only of tenants that have to sign."""
    _, _, key, value, headers = record
    given = shown(headers)
    if given is None:
        return Rejection("unsigned", f"Requests of tenant {tenant.name} have to be signed: {CURE}")
    if proves(tenant.accepted, tenant.name, key, value, headers or []):
        return None
    known = len(tenant.accepted)
    return Rejection(
        "bad_signature",
        f"Header belfry-signature is {given[:80]!r}; none of the {known} keys that the workers"
        f" know for tenant {tenant.name} gives that for this record. It is made last, over tenant,"
        f" key, value and headers: {CURE}",
    )


def asker(record: SourceRecord, tenants: Tenants) -> bytes | Rejection:
    """The tenant on whose account a schema is asked for, `NOBODY`, or why the record is refused.

    A tenant is believed to ask where belfry's stamp says so, or where the record's key begins with
    its name and its signature proves it.  One without a policy of its own is nobody: names can be
    made up.
    """
    _, _, key, value, headers = record
    stamp = stamp_of(headers)
    if stamp is not None:
        tenant = tenants.known(stamp.encode())
        if tenant is None:
            return NOBODY
        forged = false_claim(record, tenant) if tenant.signs else None
        return forged or tenant.effective.refused or _account(tenant, tenants)
    if shown(headers) is None:
        if tenants.signing.everybody:
            return Rejection("unsigned", f"Requests have to be signed here: {CURE}")
        return NOBODY
    tenant = tenants.known((key or b"").partition(b"/")[0])
    if tenant is None or not tenant.signs:
        return NOBODY
    if proves(tenant.accepted, tenant.name, key, value, headers or []):
        return tenant.effective.refused or _account(tenant, tenants)
    return NOBODY


def claimed(record: SourceRecord) -> bytes:
    """The tenant that a record shows without a proof; empty where it shows none.

    A text of more than 100 bytes does not count as a name: no tenant has such a name, and a key may
    have any length.
    """
    stamp = stamp_of(record[4])
    name = (record[2] or b"").partition(b"/")[0] if stamp is None else stamp.encode()
    return name if len(name) <= MOST_NAME_BYTES else b""


def stranger_of(record: SourceRecord) -> bytes:
    """The lane of a request whose asker is not proven."""
    return STRANGER + bytes([crc32(claimed(record)) % STRANGERS_LANES])


def lane_of(record: SourceRecord, tenants: Tenants) -> bytes | Rejection:
    """Whose later requests wait behind this one while it cannot be read, or why it is refused."""
    found = asker(record, tenants)
    return stranger_of(record) if found == NOBODY else found


def account_of(lane: bytes) -> bytes:
    """The account that pays for the lookups of a lane."""
    return NOBODY if lane.startswith(STRANGER) else lane


def _account(tenant: Tenant, tenants: Tenants) -> bytes:
    own = tenant.effective != tenants.defaults(tenant.name)
    return tenant.name_bytes if own else NOBODY
