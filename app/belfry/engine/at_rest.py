"""A payload as it is kept: as its request has it, or encrypted by a key of its tenant.

The bytes are the same however often they are made (`tenants/payload_keys.py`), so a step that is
done again, a repeat and a playback make the same row, and name the same object elsewhere.
"""

from __future__ import annotations

from belfry.store.layout.pending import Encrypted
from belfry.tenants.effective import Tenant


def at_rest(payload: bytes | None, name: bytes, tenant: Tenant) -> bytes | None:
    """A payload of the schedule `name` as its row holds it; an empty one stays empty."""
    if not payload or tenant.payload_keys is None:
        return payload
    return Encrypted(tenant.payload_keys.encrypt(name, payload))
