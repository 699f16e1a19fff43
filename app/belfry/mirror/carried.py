"""The form of a record that is carried to the other cluster: rows, and requests.

Offsets are those of a cluster, so references to one are translated:

    row of a schedule       its sequence, by which events of one instant leave in order, becomes one
                            that no offset of the other cluster meets (`store/recovery.py`)
    identity                stays: it names the source, so that no worker fires on a copy
    the fence of a          left out: it names this cluster, which may not fire before its own
      take-over             transaction says from which request on
    request                 gets headers: where and when it was first received, and its offset here

The last header finds the place in the other topic at which requests are read on (`translated`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from belfry.store.identity import decode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import decode_manifest
from belfry.store.net import Change
from belfry.store.recovery import of_earlier_input
from belfry.wire.moves import is_move
from belfry.wire.origins import ORIGIN_SIGNATURE, believed_origin, vouched
from belfry.wire.record import (
    ORIGIN_PREFIX,
    Headers,
    SourceRecord,
    carried_on,
    origin_headers,
)
from belfry.wire.worker_keys import Keys

# On a request that was carried: its offset in the source's partition.
CARRIED_FROM: Final = ORIGIN_PREFIX + "mirrored"


class CarriedRows(NamedTuple):
    """Rows as they are written, and the highest generation that an identity among them tells.

    They go up to `judged`, an offset of the source's requests, where a manifest ends them.
    """

    rows: list[Change]
    generation: int
    judged: int | None


def carried_rows(rows: Iterable[Change], cluster: str) -> CarriedRows:
    """Rows of a changelog on their way to another `cluster`."""
    found: list[Change] = []
    generation = 0
    for key, row in rows:
        if key == keys.IDENTITY_KEY and row is not None:
            identity = decode_identity(row)
            if identity.cluster == cluster:
                continue
            generation = max(generation, identity.generation)
            found.append((key, row))
        else:
            found.append((key, None if row is None else of_earlier_input(row)))
    return CarriedRows(found, generation, _judged(found))


def _judged(rows: list[Change]) -> int | None:
    """Up to which request rows go that end with a manifest."""
    key, row = rows[-1] if rows else (b"", None)
    ends = key.startswith(keys.MANIFEST_PREFIX)
    return decode_manifest(row).position if ends and row is not None else None


def carried_headers(record: SourceRecord, place: tuple[str, int], origin_keys: Keys) -> Headers:
    """Headers of a request on its way to another cluster; `place` is its topic and partition.

    A request that was sent on within the source keeps the origin that a worker has written. An
    origin from a stranger is left out, as a worker would not believe it.
    """
    offset, _, key, value, headers = record
    origin = believed_origin(origin_keys, record, *place)
    if origin.rerouted:
        kept = [each for each in headers or () if each[0] not in (ORIGIN_SIGNATURE, CARRIED_FROM)]
    elif origin_keys and is_move(record):
        # No worker wrote it, so no signature of here may make it one's.
        return [*carried_on(headers), (CARRIED_FROM, b"%d" % offset)]
    else:
        kept = carried_on(headers) + origin_headers(origin)
    return vouched(origin_keys, key, value, [*kept, (CARRIED_FROM, b"%d" % offset)])


def carried_from(headers: Headers | None) -> int | None:
    """The offset in the source of a request that was carried; None for one that was not."""
    for name, value in headers or ():
        # Python reads no number of thousands of digits, which anybody may write.
        if name == CARRIED_FROM and value is not None and value.isdigit() and len(value) < 20:
            return int(value)
    return None


def translated(position: int, low: int, end: int, look: Callable[[int], int | None]) -> int:
    """Where requests are read on in the target, which begins at `low` and ends at `end`.

    `position` is the source's offset to read next. `look` gives, for an offset of the target, the
    source's offset of the first carried request that lies there or behind; None if there is none.
    It is asked some twenty times, since the carried records of one source keep their order. So no
    record of another source may lie at `low` or behind:

        target   0: 100    1: 101    2: marker    3: 102    4: 103        position 102  ─►  2
    """
    while low < end:
        middle = (low + end) // 2
        found = look(middle)
        if found is None or found >= position:
            end = middle
        else:
            low = middle + 1
    return low
