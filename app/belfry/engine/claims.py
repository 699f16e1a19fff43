"""Claims: whether a request is from whom it says it is, where its tenant has to sign.

Checked wherever a request is first read and once more at its home, before anything is remembered
under its name: a forged request leaves nothing but its rejection.

A request whose schema is unknown cannot be read yet, and asking for the schema is work that others
wait for.  `asker` says on whose account that work is, or refuses what will be refused anyway.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.rejections import Rejection
from belfry.tenants.directory import Tenants
from belfry.tenants.effective import Tenant
from belfry.wire.claims import proves, shown
from belfry.wire.record import SourceRecord, stamp_of

# Who cannot be known before the request is read.
NOBODY: Final = b""
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
        return forged or tenant.terms.refused or _account(tenant, tenants)
    if shown(headers) is None:
        if tenants.signing.everybody:
            return Rejection("unsigned", f"Requests have to be signed here: {CURE}")
        return NOBODY
    tenant = tenants.known((key or b"").partition(b"/")[0])
    if tenant is None or not tenant.signs:
        return NOBODY
    if proves(tenant.accepted, tenant.name, key, value, headers or []):
        return tenant.terms.refused or _account(tenant, tenants)
    return NOBODY


def lane_of(record: SourceRecord, tenants: Tenants) -> bytes | Rejection | None:
    """Who a request waits with where it is set aside; None where it has to be waited for.

    It can be told whose later requests have to wait behind it where its asker is known.  Where
    everybody signs, the others can be told from them: who gives its name as key is not nobody.
    """
    found = asker(record, tenants)
    return None if found == NOBODY and not tenants.signing.everybody else found


def _account(tenant: Tenant, tenants: Tenants) -> bytes:
    own = tenant.terms != tenants.defaults(tenant.name)
    return tenant.name_bytes if own else NOBODY
