"""The store's README tells the truth to the byte: its example and its tables come from the code."""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Final

import pytest

from belfry.schedules.identity import fire_id, generation_at, partition_of
from belfry.schedules.instants import parse_instant
from belfry.schedules.request_digest import digest_of_plain
from belfry.store.layout import (
    buckets,
    ends,
    kept_fires,
    keys,
    locations,
    manifests,
    records,
    verdicts,
)
from belfry.store.layout import pending as pending_records
from belfry.store.layout.locations import Location
from belfry.store.layout.manifests import Manifest, StoredState
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import Marker
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.store.signatures import PLACE, RowKeys, bound
from belfry.wire.worker_keys import Purpose, keys_of

README: Final = Path(records.__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
EXAMPLE: Final = re.compile(r"<!-- example: ([a-z ]+) -->\n\n```text\n(.*?)\n```", re.DOTALL)
LAYOUT: Final = re.compile(r"<!-- layout: (\w+) -->\n\n.*?\n\|-[-|]*\n((?:\|.*\n)+)")
HEX: Final = re.compile(r"^[0-9a-f]{2}(?: [0-9a-f]{2})*")
TYPES: Final = {"u8": "B", "u16": "H", "u32": "I", "i32": "i", "u64": "Q", "i64": "q"}

AT: Final = parse_instant("2026-12-01T09:00:00Z")
ACCEPTED: Final = parse_instant("2026-11-30T12:00:00Z")
NAME: Final = b"demo/order/4711"
LIFE: Final = generation_at(partition_of(b"demo", 4), 42)
PLAIN: Final = (b"demo", b"order/4711", AT, None, None, None, b"not paid", b"r-1")


def shown(block: str) -> bytes:
    """Bytes of an example: the pairs of hexadecimal digits that each line begins with."""
    found = [HEX.match(line) for line in block.splitlines()]
    return b"".join(bytes.fromhex(match[0]) for match in found if match)


def pending() -> bytes:
    """The schedule of the example."""
    return pending_records.encode_pending(
        Pending(
            due_ms=AT,
            nominal_ms=AT,
            accepted_ms=ACCEPTED,
            seq=42,
            life=LIFE,
            version=1,
            occurrence=0,
            kind=pending_records.KIND_CODES["AT"],
            when=AT,
            jitter_ms=0,
            tenant=b"demo",
            schedule_id=b"order/4711",
            group=b"",
            event_type=b"unpaid",
            key=None,
            headers=pending_records.encode_headers([(b"lang", b"en")]),
            extra=b"",
            payload=b"not paid",
        )
    )


def manifest() -> Manifest:
    """The transaction that fires it."""
    digest = blake2b(fire_id(NAME, LIFE, 1, AT), digest_size=16).digest()
    return Manifest(1234, 3, 43, AT + 7, pending=0, fired=1, digest=digest)


def state() -> bytes:
    """What the local store says of itself after that transaction."""
    rows = MemoryMap()
    ScheduleStore(rows).commit(StoredState(5151, AT + 12, manifest()))
    return rows.get(keys.META_STATE) or b""


def signing() -> RowKeys:
    """What signs in partition 3."""
    (key,) = keys_of([b"a secret of the workers"], Purpose.CHANGELOG)
    return RowKeys(key, "Wm9uZXMtb2YtYmVsZnJ5AA", 3)


ZONES: Final = records.encode_zones("2026a")

MADE: Final = {
    "signed by place": PLACE + signing().token(130) + ZONES,
    "signed by content": bound(signing(), 120, b"\0z", ZONES) + ZONES,
    "signed tombstone": bound(signing(), 120, NAME, None),
    "pending": pending(),
    "timeline key": keys.timeline_key(AT, 42),
    "backlog key": keys.queue_key(b"b", b"demo", AT, 42),
    "named key": keys.NAMED_PREFIX + keys.schedule_key("demo", "order/4711"),
    "place": locations.encode_location(Location(locations.IN_TIMELINE, AT, 42)),
    "marker": records.encode_marker(Marker(records.ENDED_FIRED, AT + 7, AT, LIFE, 1, 1)),
    "manifest key": keys.manifest_key(1234),
    "manifest": manifests.encode_manifest(manifest()),
    "state": state(),
    "verdict key": keys.request_key("demo", "r-1"),
    "answered": verdicts.encode_accepted(PLAIN, ACCEPTED, LIFE, digest_of_plain(PLAIN)),
}


def test_every_example_is_checked() -> None:
    assert sorted(MADE) == sorted(name for name, _ in EXAMPLE.findall(README))


@pytest.mark.parametrize("name", MADE)
def test_the_example_is_what_the_code_makes(name: str) -> None:
    assert shown(dict(EXAMPLE.findall(README))[name]).hex(" ") == MADE[name].hex(" ")


def test_the_example_lies_where_it_says() -> None:
    rows = MemoryMap()
    store = ScheduleStore(rows)
    store.keep(NAME, pending(), Location(locations.IN_TIMELINE, AT, 42))
    store.commit(StoredState(1, AT, manifest()))
    assert rows.get(MADE["timeline key"]) == MADE["pending"]
    assert rows.get(MADE["named key"]) == MADE["place"]


@pytest.mark.parametrize(
    "name",
    [
        "_BOTH",
        "_FIRE",
        "_MARKER",
        "_VERDICT",
        "_ANSWERED",
        "_MANIFEST",
        "_LOCATION",
        "_BUCKET",
        "_ENDS",
    ],
)
def test_the_table_of_fields_is_the_layout(name: str) -> None:
    table = dict(LAYOUT.findall(README))[name]
    modules = (pending_records, kept_fires, buckets, ends, records, locations, manifests, verdicts)
    (layout,) = [getattr(module, name) for module in modules if hasattr(module, name)]
    assert isinstance(layout, Struct)
    end, letters = 0, ">"
    for line in table.splitlines():
        offset, size, kind = (cell.strip() for cell in line.split("|")[1:4])
        letter = TYPES.get(kind) or f"{int(size)}s"
        assert (int(offset), int(size)) == (end, Struct(f">{letter}").size), line
        end, letters = end + int(size), letters + letter
    assert (letters, end) == (layout.format, layout.size)
