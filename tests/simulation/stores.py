"""Stores against the changelog: a store is the fold of it up to the offset that it names (I12),
and a rebuild from nothing gives the same (I13)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from belfry.recovery.local_state import ASIDE
from belfry.store.ordered_map import MemoryMap
from belfry.store.replay import Replay
from belfry.store.row_judge import Judge
from belfry.store.schedules import ScheduleStore
from belfry.store.signatures import FILLER, SIGNATURE, RowKeys
from belfry.wire.worker_keys import Purpose, keys_of
from tests.simulation.broker import Broker, Log
from tests.simulation.disk import Disk

if TYPE_CHECKING:
    from tests.simulation.world import World

_OFFSET: Final = Struct(">q")
# How many wait in a bucket, and between which instants they are due.
_BUCKET: Final = Struct(">4xQqq")
NEVER: Final = 2**32 - 1
CHANGELOG: Final = "belfry.changelog"
PENDING: Final = 1
LOCATION: Final = 5
# Markers and verdicts, which are kept for a time.
KEPT: Final = (2, 3, 8)
# In a row of names, behind its head.
_NAMES_AT: Final = 12
# Of a pending record: sizes of tenant and id, and where the texts begin.
_FLAGS_AT: Final = 3
_DUE_AT: Final = 4
_SIZES_AT: Final = 68
_TEXTS_AT: Final = 88


def bare(value: bytes) -> bytes:
    """A row of the changelog without the proof that it may begin with."""
    size = {b"\2": 9, b"\3": 17}.get(value[:1], 0)
    return value[size:]


def fold(log: Log, upto: int) -> dict[bytes, bytes]:
    """Last value of each key below an offset, tombstones and manifests left out."""
    found: dict[bytes, bytes] = {}
    for entry in log.history:
        if entry.offset >= upto:
            break
        if (
            not entry.committed
            or entry.txn is None
            or entry.key is None
            or entry.key == FILLER
            or entry.key.startswith(b"\0m")
        ):
            continue
        if entry.value is None:
            found.pop(entry.key, None)
        else:
            found[entry.key] = bare(entry.value)
    return found


def view(rows: MemoryMap) -> dict[bytes, bytes]:
    """What a store holds under each changelog key; a waiting record, wherever it lies."""
    waiting: dict[bytes, bytes] = {}
    named: dict[bytes, bytes] = {}
    lines: Counter[bytes] = Counter()
    for key, value in rows.scan(b"", b"\xff"):
        if key[:1] in (b"b", b"c"):
            # A level of another priority than 0 has a byte of its own behind the tenant.
            lines[key[:-17] if key[-17] == 0 else key[:-16]] += 1
        if key[:1] == b"k":
            named[key[1:]] = value
        elif key[:1] not in (b"m", b"n") and value[1:2] == bytes([PENDING]):
            name = _name(value)
            assert name not in waiting, f"{name!r} waits twice"
            waiting[name] = value
    found = {
        name: waiting.get(name, b"nowhere") if value[1:2] == bytes([LOCATION]) else value
        for name, value in named.items()
    }
    lost = waiting.keys() - {n for n, v in named.items() if v[1:2] == bytes([LOCATION])}
    assert not lost, f"{sorted(lost)} wait, and no name leads to them"
    told = {key[5:]: int.from_bytes(size) for key, size in rows.scan(b"mline", b"mlinf")}
    told |= {key[6:]: int.from_bytes(size) for key, size in rows.scan(b"mlevel", b"mlevem")}
    assert told == lines, f"lines hold {dict(lines)}, and the store says {told}"
    _check_buckets(rows, waiting)
    _check_ends(rows, named)
    return found


def _check_ends(rows: MemoryMap, named: dict[bytes, bytes]) -> None:
    """A store that says so leads to each marker and verdict: else some would never be forgotten."""
    if rows.get(b"mends") != (rows.get(b"mstate") or b"")[:8]:
        return
    led = {name for _, row in rows.scan(b"e", b"f") for name in row[_NAMES_AT:].split(b"\xff")}
    left = sorted(name for name, row in named.items() if row[1] in KEPT and name not in led)
    assert not left, f"nothing leads to the ends {left[:5]}"


def _check_buckets(rows: MemoryMap, waiting: dict[bytes, bytes]) -> None:
    """Each bucket says how many wait in it, and bounds them; so does the count of each tenant."""
    buckets: Counter[tuple[bytes, int]] = Counter()
    tenants: Counter[bytes] = Counter()
    dues: dict[tuple[bytes, int], list[int]] = {}
    for name, record in waiting.items():
        tenant, due_ms = name.partition(b"/")[0], _OFFSET.unpack_from(record, _DUE_AT)[0]
        minute = NEVER if record[_FLAGS_AT] & 1 else due_ms // 60_000
        buckets[tenant, minute] += 1
        tenants[tenant] += 1
        dues.setdefault((tenant, minute), []).append(due_ms)
    told: dict[tuple[bytes, int], int] = {}
    for key, row in rows.scan(b"n", b"o"):
        bucket = key[1:-5], int.from_bytes(key[-4:])
        told[bucket], first_ms, last_ms = _BUCKET.unpack(row)
        if bucket in dues:
            assert first_ms <= min(dues[bucket]), f"bucket {bucket} begins after a schedule in it"
            assert last_ms >= max(dues[bucket]), f"bucket {bucket} ends before a schedule in it"
    assert told == buckets, f"buckets hold {dict(buckets)}, and the store says {told}"
    sums = {key[7:]: int.from_bytes(size) for key, size in rows.scan(b"mtenant", b"mtenanu")}
    assert sums == tenants, f"of tenants wait {dict(tenants)}, and the store says {sums}"


def _name(record: bytes) -> bytes:
    tenant, schedule = record[_SIZES_AT], record[_SIZES_AT + 1]
    text = record[_TEXTS_AT : _TEXTS_AT + tenant + schedule]
    return text[:tenant] + b"/" + text[tenant:]


def problem_of(rows: MemoryMap, log: Log) -> str:
    """What is wrong with a store; empty for nothing, or for one that does not say what it is."""
    state = rows.get(b"mstate")
    if state is None:
        return ""
    offset = _OFFSET.unpack_from(state)[0]
    try:
        held = view(rows)
    except AssertionError as error:
        return str(error)
    want = fold(log, offset)
    if held == want:
        return ""
    differ = sorted(name for name in held.keys() | want.keys() if held.get(name) != want.get(name))
    return f"at offset {offset} it differs from the changelog in {differ[:5]}"


def check_disk(disk: Disk, broker: Broker, where: str) -> list[str]:
    """Problems of all stores on a disk."""
    problems: list[str] = []
    for path, kept in disk.kept.items():
        # What was set aside is not used: it need not agree with anything.
        if not kept.damaged and f".{ASIDE}-" not in path:
            number, logs = int(path.rpartition("-")[2]), broker.topics[CHANGELOG]
            if number >= len(logs):
                problems.append(f"I12 {where}, {path}: this partition keeps no state")
                continue
            log = logs[number]
            why = problem_of(kept.flushed, log)
            problems += [f"I12 {where}, {path}: {why}"] if why else []
    return problems


def check_believed(world: World) -> list[str]:
    """What a reader from nothing takes for a worker's and is not, or the other way round (I13).

    Where signatures are required; asked while there are as many fillers as in this world.
    """
    settings = world.scenario.settings
    if settings.get("changelog") != "required":
        return []
    secret = str(settings["http_worker_secret"]).encode()
    (key,) = keys_of([secret], Purpose.CHANGELOG)
    topic_id = f"id-of-{CHANGELOG}-{world.broker.made[CHANGELOG]}"
    problems: list[str] = []
    for log in world.broker.topics[CHANGELOG]:
        judge = Judge([RowKeys(key, topic_id, log.partition)], required=True)
        for entry in (each for each in log.history if each.committed):
            proof = partial(dict(entry.headers or ()).get, SIGNATURE)
            believed, _ = judge.row(entry.offset, entry.key or b"", entry.value, proof)
            if believed != (entry.txn is not None and entry.key != FILLER):
                problems.append(f"I13 partition {log.partition}: believed {believed}: {entry}")
    return problems


def check_stores(world: World) -> list[str]:
    """Problems of all stores on all disks, and of a rebuild of each partition."""
    problems: list[str] = []
    for number, disk in enumerate(world.disks):
        problems += check_disk(disk, world.broker, f"m{number} at the end")
    for log in world.broker.topics[CHANGELOG]:
        rows = MemoryMap()
        replay = Replay(ScheduleStore(rows))
        # Workers write in transactions, and strangers of this world do not.
        entries = [
            entry
            for entry in log.entries
            if entry.committed and entry.txn is not None and entry.key != FILLER
        ]
        changes = [
            (entry.key or b"", None if entry.value is None else bare(entry.value))
            for entry in entries
        ]
        offsets = [entry.offset for entry in entries]
        try:
            replay.apply(changes, offsets, world.broker.now_ms())
            replay.finish(world.broker.now_ms())
        except Exception as error:  # noqa: BLE001  # whatever it is, there is no state
            problems.append(f"I13 partition {log.partition}: {type(error).__name__}: {error}")
            continue
        why = problem_of(rows, log)
        problems += [f"I13 partition {log.partition}: {why}"] if why else []
    return problems
