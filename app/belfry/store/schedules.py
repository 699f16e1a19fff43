"""The schedules of one partition: an ordered map, with an overlay of what is not committed yet.

Reads see the overlay first.  `commit` writes overlay and state in one batch, after Kafka has
committed the same as changelog records; `discard` forgets it.  `replay` folds changelog records
into the map: the store is the fold of its changelog up to the stored offset, at any crash point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple

from belfry.store import keys
from belfry.store.keys import MINUTE_MS, line_key, pack_timeline
from belfry.store.ordered_map import OrderedMap, Range
from belfry.store.records import (
    ANSWERED,
    FORMAT,
    IN_BACKLOG,
    IN_CATCH_UP,
    IN_GATED,
    IN_PAUSED,
    IN_TIMELINE,
    MARKER,
    PENDING,
    PLACE,
    Manifest,
    check_format,
    decode_awaited,
    decode_manifest,
    decode_place,
    encode_manifest,
    encode_place,
    gate_in,
    pack_place,
    paused,
    place_in_timeline,
)

_STATE: Final = Struct(">qq")
_SIZE: Final = Struct(">Q")
_DUE_SEQ: Final = Struct(">4xq16xQ")
_MISSING: Final = b"?"
# How records begin that need no closer look in a replay.
_WAITS: Final = bytes((FORMAT, PENDING))
_ANSWERED: Final = bytes((FORMAT, ANSWERED))
# Settings are JSON, and the identity has a format of its own, so that later releases read it.
_OF_OTHER_FORMATS: Final = frozenset((keys.SETTINGS_KEY, keys.IDENTITY_KEY))
_ENDED: Final = bytes((FORMAT, MARKER))
_IN_TIMELINE: Final = bytes((FORMAT, PLACE, IN_TIMELINE))
_LINES: Final = {IN_BACKLOG: keys.BACKLOG_PREFIX, IN_CATCH_UP: keys.CATCH_UP_PREFIX}
_IN_LINES: Final = frozenset(_LINES.values())
# Another scan costs as much as so many rows of one.
FEW: Final = 5

# RocksDB sorts its range tombstones anew after each one: worth it only for many rows.
RANGE_FROM: Final = 256


class StoredState(NamedTuple):
    """What the local store is the fold of: changelog offset (next to read), when, and manifest."""

    changelog_offset: int
    written_ms: int
    manifest: Manifest


class ScheduleStore:
    """Schedules of a partition by name, by time and by tenant's backlog."""

    def __init__(self, rows: OrderedMap) -> None:
        self.rows = rows
        self.writes: dict[bytes, bytes | None] = {}
        self.cleared: list[Range] = []
        self.added = 0
        self._grown: dict[bytes, int] = {}
        self._fetched: dict[bytes, bytes | None] = {}

    # -- reading ---------------------------------------------------------------------------------

    def prefetch(self, names: Sequence[bytes]) -> Mapping[bytes, bytes | None]:
        """Committed rows under local keys (`k…`) in one go, also for the `named` that follow."""
        self._fetched = dict(zip(names, self.rows.get_many(names), strict=True))
        return self._fetched

    def named(self, name: bytes) -> bytes | None:
        """Place, marker or verdict under a changelog key."""
        key = b"k" + name
        if key in self.writes:
            return self.writes[key]
        if key in self._fetched:
            return self._fetched[key]
        return self.rows.get(key)

    def pending_at(self, name: bytes, place: bytes) -> bytes:
        """The pending record of the schedule whose place this is."""
        key = _key_of(name, place)
        found = self.writes.get(key, _MISSING)
        record = self.rows.get(key) if found is _MISSING else found
        if record is None:
            raise AssertionError(f"the place of {name!r} is empty: the store has a hole")
        return record

    def timeline(self, start: bytes, until_ms: int) -> Iterator[tuple[bytes, bytes]]:
        """Committed rows of the timeline from a key on, due up to `until_ms`, in order."""
        return self.rows.scan(start, keys.timeline_key(until_ms + 1, 0))

    def line(self, line: int, tenant: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Committed rows of a tenant's backlog, or of another line, in due order."""
        prefix = keys.line_prefix(_LINES[line], tenant)
        return self.rows.scan(prefix, prefix[:-1] + b"\1")

    def line_until(
        self, line: int, tenant: bytes, start: bytes, until_ms: int
    ) -> Iterator[tuple[bytes, bytes]]:
        """The same from a key on (empty: the first), due up to `until_ms`."""
        first = start or keys.line_prefix(_LINES[line], tenant)
        return self.rows.scan(first, keys.line_key(_LINES[line], tenant, until_ms + 1, 0))

    def first_due_ms(self, start: bytes) -> int | None:
        """Due instant of the first committed row of the timeline from a key on."""
        for key, _ in self.rows.scan(start, keys.TIMELINE_END):
            return keys.timeline_place(key)[0]
        return None

    def first_of_line_ms(self, line: int, tenant: bytes, from_ms: int) -> int | None:
        """Due instant of the first committed row of a line that is due at `from_ms` or later."""
        prefix = keys.line_prefix(_LINES[line], tenant)
        start = keys.line_key(_LINES[line], tenant, from_ms, 0)
        for key, _ in self.rows.scan(start, prefix[:-1] + b"\1"):
            return keys.line_due(key)
        return None

    def line_sizes(self, line: int) -> dict[bytes, int]:
        """Number of committed events in the backlog, or another line, of each tenant that has some.

        They are kept with the rows, which may be millions.
        """
        prefix = keys.META_LINE + _LINES[line]
        rows = self.rows.scan(prefix, prefix[:-1] + bytes([prefix[-1] + 1]))
        return {key[len(prefix) :]: _SIZE.unpack(size)[0] for key, size in rows}

    def gated(self, tenant: bytes, gate: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Committed rows that a tenant's gate holds back, in due order."""
        prefix = keys.gated_prefix(tenant, gate)
        return self.rows.scan(prefix, keys.behind_gate(tenant, gate))

    def first_gated(self, start: bytes) -> bytes | None:
        """The first key from this one on of what gates hold back."""
        for key, _ in self.rows.scan(start, keys.GATED_END):
            return key
        return None

    def gates(self) -> set[tuple[bytes, bytes]]:
        """Tenants and gates that hold committed rows back; of each gate a few rows are read."""
        found: set[tuple[bytes, bytes]] = set()
        start: bytes | None = keys.GATED_PREFIX
        while start is not None:
            start = self._see_gates(start, found)
        return found

    def _see_gates(self, start: bytes, found: set[tuple[bytes, bytes]]) -> bytes | None:
        """See gates from a key on, up to one that holds many rows; where to go on behind it."""
        more = 0
        for key, _ in self.rows.scan(start, keys.GATED_END):
            gate = keys.gate_of(key)
            more = more + 1 if gate in found else 0
            if more == FEW:
                return keys.behind_gate(*gate)
            found.add(gate)
        return None

    def awaited(self) -> Iterator[tuple[bytes, bytes]]:
        """Committed fires that are to be acknowledged: changelog key and record."""
        for key, record in self.rows.scan(b"k" + keys.AWAITED_PREFIX, b"k" + keys.AWAITED_END):
            yield key[1:], record

    def untils(self) -> Iterator[tuple[int, bytes]]:
        """When committed waits for acknowledgements end, the first first; and changelog keys."""
        for key, _ in self.rows.scan(keys.UNTIL_PREFIX, keys.UNTIL_END):
            yield keys.until_of(key)

    def state(self) -> StoredState | None:
        """What the store holds, or None for an empty one."""
        stored = self.rows.get(keys.META_STATE)
        if stored is None:
            return None
        offset, written_ms = _STATE.unpack_from(stored)
        return StoredState(offset, written_ms, decode_manifest(stored[_STATE.size :]))

    # -- changing the overlay --------------------------------------------------------------------

    def put(
        self, name: bytes, record: bytes, place: tuple[int, int, int], gate: bytes = b""
    ) -> None:
        """Keep a pending record at a place (where, due instant, sequence; behind which gate)."""
        where, due_ms, seq = place
        if where == IN_TIMELINE:
            self.put_timeline(b"k" + name, record, due_ms, seq)
            return
        row = encode_place(where, due_ms, seq, gate)
        key = _key_of(name, row)
        self.writes[key] = record
        self.writes[b"k" + name] = row
        self.added += 1
        if where in _LINES:
            self._grow(keys.line_of(key), 1)

    def put_timeline(self, name: bytes, record: bytes, due_ms: int, seq: int) -> None:
        """Keep a pending record in the timeline; `name` is the local key, `k…`."""
        writes = self.writes
        writes[pack_timeline(b"t", due_ms // MINUTE_MS, 0, due_ms, seq)] = record
        writes[name] = pack_place(FORMAT, PLACE, IN_TIMELINE, 0, due_ms, seq)
        self.added += 1

    def put_backlog(self, name: bytes, tenant: bytes, record: bytes, spot: tuple[int, int]) -> None:
        """Keep a pending record in its tenant's backlog; `name` is the local key, `k…`."""
        writes = self.writes
        writes[line_key(keys.BACKLOG_PREFIX, tenant, *spot)] = record
        writes[name] = pack_place(FORMAT, PLACE, IN_BACKLOG, 0, *spot)
        self.added += 1
        self._grow(b"b" + tenant, 1)

    def remove(self, name: bytes, place: bytes) -> None:
        """Drop the pending record at a place; the name's row is the caller's to set."""
        key = _key_of(name, place)
        self.writes[key] = None
        self.added -= 1
        if key[:1] in _IN_LINES:
            self._grow(keys.line_of(key), -1)

    def clear(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Drop committed rows of one line that follow one another: many of them as one range.

        What has been put in their place in this step stays.
        """
        if rows and rows[0][0][:1] in _IN_LINES:
            self._grow(keys.line_of(rows[0][0]), -len(rows))
        if len(rows) >= RANGE_FROM:
            self.cleared.append((rows[0][0], rows[-1][0] + b"\0"))
        else:
            for key, _ in rows:
                # By its jitter the next occurrence may be due when the one that fired was.
                self.writes.setdefault(key, None)

    def set_named(self, name: bytes, row: bytes | None) -> None:
        """Set marker or verdict under a changelog key, or (None) forget it."""
        self.writes[b"k" + name] = row

    def put_awaited(self, key: bytes, record: bytes) -> None:
        """Keep a fire that is to be acknowledged, under its changelog key."""
        self.writes[b"k" + key] = record
        self.writes[keys.until_key(decode_awaited(record).until_ms, key)] = b""

    def drop_awaited(self, key: bytes, record: bytes) -> None:
        """Forget a fire that was to be acknowledged."""
        self.writes[b"k" + key] = None
        self.writes[keys.until_key(decode_awaited(record).until_ms, key)] = None

    def _grow(self, line: bytes, by: int) -> None:
        self._grown[line] = self._grown.get(line, 0) + by

    # -- after Kafka's commit --------------------------------------------------------------------

    def commit(self, state: StoredState) -> None:
        """Write the overlay and the state it leads to, in one batch."""
        head = _STATE.pack(state.changelog_offset, state.written_ms)
        self.writes[keys.META_STATE] = head + encode_manifest(state.manifest)
        self.write()

    def write(self) -> None:
        """Write the overlay in one batch, with the sizes of the lines that it changes."""
        grown = [(keys.META_LINE + line, by) for line, by in self._grown.items() if by]
        before = self.rows.get_many([key for key, _ in grown])
        for (key, by), size in zip(grown, before, strict=True):
            now = by if size is None else _SIZE.unpack(size)[0] + by
            self.writes[key] = _SIZE.pack(now) if now else None
        self.rows.write(self.writes, self.cleared)
        self.discard()

    def discard(self) -> None:
        """Forget the overlay."""
        self.writes = {}
        self.cleared = []
        self.added = 0
        self._grown = {}
        self._fetched = {}

    # -- recovery --------------------------------------------------------------------------------

    def replay(self, changes: Sequence[tuple[bytes, bytes | None]]) -> list[Manifest]:
        """Fold changelog records into the overlay; returns the manifests among them."""
        manifests: list[Manifest] = []
        names = [b"k" + key for key, _ in changes]
        found = self.prefetch([name for name in names if name[1:2] != b"\0"])
        writes = self.writes
        for name, (key, value) in zip(names, changes, strict=True):
            if key[:1] == b"\0":
                self._replay_other(key, value, manifests)
                continue
            before = writes.get(name, _MISSING)
            if before is _MISSING:
                before = found[name]
            if before is None and value is not None and value[:2] == _WAITS and not paused(value):
                self.put_timeline(name, value, *_DUE_SEQ.unpack_from(value))
            elif before is not None and before[:3] == _IN_TIMELINE and _is_over(value):
                due_ms, seq = place_in_timeline(before)
                writes[pack_timeline(b"t", due_ms // MINUTE_MS, 0, due_ms, seq)] = None
                writes[name] = value
                self.added -= 1
            else:
                self._replay_schedule(key, value)
        return manifests

    def _replay_other(self, key: bytes, value: bytes | None, manifests: list[Manifest]) -> None:
        if key.startswith(keys.REQUEST_PREFIX):
            # Most rows here are these.  They are looked into when an id comes again, which is too
            # late to notice that they are of a later release.
            if value is not None and value[:2] != _ANSWERED:
                check_format(value)
            self.writes[b"k" + key] = value
        elif key.startswith(keys.MANIFEST_PREFIX):
            if value is not None:
                manifests.append(decode_manifest(value))
        elif key.startswith(keys.AWAITED_PREFIX):
            self._replay_awaited(key, value)
        else:
            if value is not None and key not in _OF_OTHER_FORMATS:
                check_format(value)
            self.set_named(key, value)

    def _replay_awaited(self, key: bytes, value: bytes | None) -> None:
        before = self.named(key)
        if before is not None:
            self.drop_awaited(key, before)
        if value is not None:
            check_format(value)
            self.put_awaited(key, value)

    def _replay_schedule(self, name: bytes, value: bytes | None) -> None:
        before = self.named(name)
        if before is not None and check_format(before) == PLACE:
            self.remove(name, before)
        row = None if value is None else check_format(value)
        if value is not None and row == PENDING:
            where = IN_PAUSED if paused(value) else IN_TIMELINE
            self.put(name, value, (where, *due_and_seq(value)))
        elif row is None or row == MARKER:
            self.set_named(name, value)
        else:
            raise AssertionError(f"row {row} under the schedule's key {name!r}")


def _is_over(value: bytes | None) -> bool:
    return value is None or value[:2] == _ENDED


def due_and_seq(record: bytes) -> tuple[int, int]:
    """Due instant (epoch ms) and acceptance sequence of a pending record."""
    due_ms, seq = _DUE_SEQ.unpack_from(record)
    return due_ms, seq


def _tenant(name: bytes) -> bytes:
    return name[: name.index(b"/")]


def record_key(name: bytes, place: bytes) -> bytes:
    """The local key of the pending record of a name whose row is this place."""
    return _key_of(name, place)


def _key_of(name: bytes, place: bytes) -> bytes:
    where, due_ms, seq = decode_place(place)
    if where == IN_TIMELINE:
        return keys.timeline_key(due_ms, seq)
    if where == IN_PAUSED:
        return keys.paused_key(name)
    if where == IN_GATED:
        return keys.gated_key(_tenant(name), gate_in(place), due_ms, seq)
    return keys.line_key(_LINES[where], _tenant(name), due_ms, seq)
