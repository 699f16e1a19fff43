"""Local stores against the changelog: each has to be the fold of a prefix, to the byte.

The store's page says how: a schedule that waits has a place by its name and its record in the
timeline or the backlog; everything else that has a name lies under it as it is in the changelog.
Shares no code with belfry; a store is opened as a copy, so that its owner never notices.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from typing import Any, Final

from rocksdict import AccessType, Options, Rdict

from tests.acceptance.harness.changelog import MANIFEST_KEY, OWN_KEY, PENDING
from tests.acceptance.harness.reading import Record

Rows = dict[bytes, bytes]
STATE: Final = b"mstate"
NAMED: Final = b"k"
# Where a schedule waits, by the code in its place: timeline, backlog, paused, catching up.
TIMELINE, BACKLOG, PAUSED, CATCHING_UP, LOCKED = WAITING = (b"t", b"b", b"p", b"c", b"h")
MINUTE_MS: Final = 60_000
_PLACE: Final = Struct(">BBBBqQ")
_TIMELINE: Final = Struct(">cIBqQ")
_TAIL: Final = Struct(">qQ")


def stored(folder: Path) -> Rows:
    """All rows of a store, from a copy of its files."""
    with TemporaryDirectory(prefix="belfry-copy-") as home:
        copy = Path(home, "store")
        shutil.copytree(folder, copy)
        rows = Rdict(str(copy), Options(raw_mode=True), access_type=AccessType.read_only())
        try:
            found: Iterable[Any] = rows.items()
            return dict(found)
        finally:
            rows.close()


def folded(records: Iterable[Record], end: int) -> Rows:
    """What a partition's changelog says up to an offset: the last value of each key."""
    rows: Rows = {}
    for record in records:
        key = record.key or b""
        if record.offset >= end or key.startswith(MANIFEST_KEY):
            continue
        if record.value is None:
            rows.pop(key, None)
        else:
            rows[key] = record.value
    return rows


def differences(store: Rows, records: Iterable[Record]) -> list[str]:
    """Where a store is not the fold of the changelog up to its own offset, in sentences."""
    if STATE not in store:
        # A rebuild was cut short: whoever opens it begins anew.
        return []
    wanted = folded(records, int.from_bytes(store[STATE][:8], "big"))
    named = {key[1:]: value for key, value in store.items() if key[:1] == NAMED}
    found = [f"{key!r} is not in the store" for key in wanted.keys() - named.keys()]
    found += [f"{key!r} is in the store alone" for key in named.keys() - wanted.keys()]
    waiting = 0
    for key in wanted.keys() & named.keys():
        value = wanted[key]
        if key.startswith(OWN_KEY) or value[1] != PENDING:
            if named[key] != value:
                found.append(f"{key!r} is another record")
            continue
        waiting += 1
        if store.get(_where(key, named[key])) != value:
            found.append(f"{key!r} is not where its place says")
    rows = sum(1 for key in store if key[:1] in WAITING)
    if rows != waiting:
        found.append(f"{rows} rows wait in the store, {waiting} in the changelog")
    return found


def _where(name: bytes, place: bytes) -> bytes:
    _, _, where, _, due_ms, seq = _PLACE.unpack_from(place)
    letter = WAITING[where]
    if letter == TIMELINE:
        return _TIMELINE.pack(TIMELINE, due_ms // MINUTE_MS, 0, due_ms, seq)
    if letter == PAUSED:
        return PAUSED + name
    tenant = name.partition(b"/")[0]
    lock = _lock(place[_PLACE.size :]) if letter == LOCKED else b""
    return letter + tenant + b"\0" + lock + _TAIL.pack(due_ms, seq)


def _lock(said: bytes) -> bytes:
    """A lock's letter and name as a place says them, with the name's size between, as in a key."""
    return said[:1] + bytes((len(said) - 1,)) + said[1:]
