"""The ack locks of a tenant: fires that are to be acknowledged, and rows that wait for each.

For HTTP, which answers "what is my group waiting for?" from committed rows, page by page.  The
engine has the same locks in memory (`engine/ack_locks.py`).
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from belfry.store.layout import keys
from belfry.store.layout.records import Awaited, decode_awaited
from belfry.store.ordered_map import OrderedMap


class HeldLock(NamedTuple):
    """A fire that is to be acknowledged, by its id."""

    fire_id: bytes
    awaited: Awaited


def locks(
    rows: OrderedMap, tenant: bytes, after: bytes | None, *, limit: int
) -> tuple[list[HeldLock], bytes | None]:
    """At most `limit` of a tenant's locks behind the key `after`, and where to go on."""
    first = keys.NAMED_PREFIX + keys.awaited_key(tenant, b"")
    begin = first if after is None else max(first, after + b"\0")
    found = list(islice(rows.scan(begin, first[:-1] + b"0"), limit))
    told = [HeldLock(key[len(first) :], decode_awaited(record)) for key, record in found]
    return told, found[-1][0] if len(found) == limit else None
