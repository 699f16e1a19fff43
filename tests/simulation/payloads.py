"""What a consumer makes of a fired record: the payload, redeemed where it lies elsewhere.

    record     belfry.fired.ash   claim-check-sha256: 5f0c…   value empty
    as read    belfry.fired.ash   claim-check-sha256: 5f0c…   value: what was asked for

A claim that leads nowhere, or to bytes that no key opens, is read as `LOST`, which nobody asked
for.  All checks but that of the claims themselves (`treated`) go by records as they are read.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.broker import Entry
from tests.simulation.objects import Objects
from tests.simulation.payload_keys import opened

CLAIM: Final = "claim-check-sha256"
SIZE: Final = "claim-check-bytes"
ENCRYPTED: Final = "claim-check-encrypted"
LOST: Final = b"a payload that is lost"


class Payloads:
    """Reads the records that fire in one world."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def as_read(self, tenant: str, entry: Entry) -> Entry:
        """A record of a tenant's output topic, with the payload as its value."""
        said = {name: (value or b"").decode() for name, value in entry.headers or ()}
        if CLAIM not in said:
            return entry
        stored = self._objects.found(tenant, said[CLAIM])
        if stored is None or entry.value or said[SIZE] != str(len(stored)):
            return entry._replace(value=LOST)
        if ENCRYPTED in said:
            whole = said[ENCRYPTED] == f"{tenant}/{said['belfry-schedule-id']}"
            stored = opened(said[ENCRYPTED], stored) if whole else None
        return entry._replace(value=LOST if stored is None else stored)
