"""Claims: whether a request is from whom it says it is, where its tenant has to sign.

Checked wherever a request is first read and once more at its home, before anything is remembered
under its name: a forged request leaves nothing but its rejection.
"""

from __future__ import annotations

from typing import Final

from belfry.schedules.rejections import Rejection
from belfry.schedules.tenant import Tenant
from belfry.wire.claims import proves, shown
from belfry.wire.record import SourceRecord

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
        f"Header belfry-signature is {given[:80]!r}; none of the {known} secrets that the workers"
        f" know for tenant {tenant.name} gives that for this record. It is made last, over tenant,"
        f" key, value and headers: {CURE}",
    )
