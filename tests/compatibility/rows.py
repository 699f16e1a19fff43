"""Golden rows of the changelog and the local store: format 1, byte for byte.

``golden/rows.1.json`` holds, for each kind of row, its bytes (hexadecimal) and what they say.  The
bytes never change: a row that is to be written otherwise needs another format.  A new kind of row
is added by ``python -m tests.compatibility.rows``, with ``app`` on the path.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from belfry.schedules.rule import Rule, decode_rule, encode_rule
from belfry.schedules.triggers.registry import KINDS
from belfry.store.identity import Identity, decode_identity, encode_identity
from belfry.store.layout import kept_fires, locations, manifests, pending_bytes, records, verdicts
from belfry.store.layout import pending as pending_records
from belfry.store.layout.aside import Waits, aside_key, decode_aside, encode_aside
from belfry.store.layout.groups import NOWHERE, RESTS, GroupRow, decode_group, encode_group
from belfry.store.layout.locations import Location
from belfry.store.layout.manifests import Manifest
from belfry.store.layout.pending import Pending
from belfry.store.layout.records import Awaited, Marker
from belfry.store.layout.usage import UsageRow, decode_usage_row, encode_usage_row
from belfry.store.layout.verdicts import VerdictRow

FILE: Final = Path(__file__).parent / "golden" / "rows.1.json"
NOON: Final = 1_798_000_000_000
HEADERS: Final = pending_records.encode_headers([(b"h", None), (b"i", b"v")])


def _pending(rule: Rule | None, **changed: Any) -> Pending:
    """A waiting schedule; the kind is the rule's."""
    kind = pending_records.KIND_CODES[rule.kind if rule else "AT"]
    row = Pending(
        NOON + 7, NOON, NOON - 60_000, 41, 3 << 48 | 41, 2, 5, kind, NOON, 10, b"demo",
        "order/é".encode(), b"", b"", b"k", HEADERS,
        encode_rule(rule) if rule else b"", b"payload",
    )  # fmt: skip
    return row._replace(**changed)


EVERY: Final = Rule("EVERY", when=30_000, start_at=NOON, end_at=NOON * 2, max_fires=9)
CRON: Final = Rule("CRON", when="0 9 * * MON#2", timezone="Europe/Paris")
SERIAL: Final = Rule("AT", serial=True, ack_timeout_ms=5_000)
AFTER: Final = Rule("AFTER_ACK", awaited="order/é", ack_delay_ms=5_000, latest_at=NOON)
PLAIN: Final = _pending(None, version=1, occurrence=0, key=None, headers=b"", payload=None)
PENDING: Final[dict[str, tuple[Pending, int]]] = {
    "plain": (PLAIN, 0),
    "one-shot": (_pending(None, group=b"g", event_type=b"t"), 0),
    "late one-shot": (_pending(Rule("AT", misfire="SKIP", max_lateness_ms=0)), 0),
    "paused": (_pending(None), pending_bytes.PAUSED),
    "every": (_pending(EVERY), 0),
    "cron": (_pending(CRON), 0),
    "cron, paused": (_pending(CRON), pending_bytes.PAUSED),
    "serial": (_pending(SERIAL, group=b"g"), 0),
    "skips while awaited": (_pending(Rule("CRON", when="@daily", overlap="SKIP")), 0),
    "queues one while awaited": (
        _pending(Rule("EVERY", when=1, misfire="FIRE_ALL", overlap="QUEUE_ONE")), 0,
    ),
    "queues all while awaited": (
        _pending(Rule("EVERY", when=1, misfire="FIRE_ALL", overlap="QUEUE_ALL")), 0,
    ),
    "cancels other": (_pending(Rule("CRON", when="@daily", overlap="CANCEL_OTHER")), 0),
    "terminates other": (_pending(Rule("CRON", when="@daily", overlap="TERMINATE_OTHER")), 0),
    "debounced": (_pending(Rule("AFTER", max_wait_ms=900_000), when=300_000), 0),
    "after an acknowledgement": (_pending(AFTER, when=0), pending_bytes.DEPENDS),
    "after a group, paused": (
        _pending(Rule("AFTER_GROUP", awaited="g"), when=0),
        pending_bytes.DEPENDS | pending_bytes.PAUSED,
    ),
    "acknowledged": (_pending(AFTER, when=0), 0),
    "goes first": (_pending(Rule("AT", priority=9)), 0),
    "goes last, with targets": (
        _pending(Rule("CRON", when="@daily", priority=-9, targets=b"[]")), 0,
    ),
    "leaves out the night": (
        _pending(Rule("EVERY", 900_000, "Asia/Tokyo", except_cron="* 0-5 * * *")), 0,
    ),
}  # fmt: skip
MARKERS: Final = {
    name: Marker(how, NOON + 9, NOON + 7, 3 << 48 | 41, 2, 6)
    for name, how in {"fired": 0, "cancelled": 1, "completed": 2, "missed": 3}.items()
}
AWAITED: Final = {
    name: Awaited(closes, NOON + 9, NOON + 5_009, NOON + 7, 2, "order/é".encode(), group)
    for name, closes, group in (
        ("by its group", records.LOCKS_GROUP, b"g"),
        ("by its schedule", records.LOCKS_OWN, b""),
        ("by both", records.LOCKS_GROUP | records.LOCKS_OWN, b"g"),
    )
}
AWAITED["one of three"] = AWAITED["by its group"]._replace(at_once=3)
ANSWERED: Final = VerdictRow(
    "CONFLICT", NOON, None, 3, "wrong_version", bytes(range(16)), "CANCEL", "order/é", 3 << 48 | 41
)
# The offset of a request that waits lies in its key.
OFFSET: Final = 2**40 + 7
ASIDE: Final = {
    "with headers": Waits(
        b"demo",
        (
            OFFSET,
            NOON,
            b"demo",
            b"\0\0\0\0\x07x",
            [("belfry-é", b"v"), ("twice", None), ("twice", b"")],
        ),
        appended=True,
    ),
    "of nobody known": Waits(b"", (OFFSET, NOON, None, b"\0", None), appended=False),
}
WORLD: Final = Identity(
    "rZ0YbBcgSTCZ2jWTRiBH1w", "o5Sl9DnyQLq5I6cVeLtGYA", "5WnB8mzVQSW9-kJ1VQe0_g", 2
)
PLACES: Final = {
    "in the timeline": (locations.IN_TIMELINE, b""),
    "in the backlog": (locations.IN_BACKLOG, b""),
    "paused": (locations.IN_PAUSED, b""),
    "catching up": (locations.IN_CATCH_UP, b""),
    "in the backlog, first": (locations.IN_BACKLOG, b"\x01"),
    "behind a gate": (locations.BEHIND_LOCK, b"gg"),
}


def _with_fires(fires: int, late_ms: int, missed: int) -> bytes:
    """A schedule that has fired so often, the last time so late and for so many others."""
    record = pending_records.encode_pending(_pending(EVERY, occurrence=0))
    for number in range(1, fires + 1):
        last = number == fires
        late, stood = (late_ms, missed) if last else (7, 0)
        if late > kept_fires.IN_TIME_MS or stood:
            record = pending_bytes.tallied(record, late, stood)
        nominal_ms = NOON + number * 30_000
        fire = kept_fires.packed_fire(nominal_ms - 30_000, 2, late, stood)
        record = pending_bytes.next_record(record, nominal_ms, nominal_ms, number, fire)
    return record


def rows() -> dict[str, bytes]:
    """Every kind of row, as this version writes it."""
    return {
        **{
            f"pending: {name}": pending_records.encode_pending(row, flags)
            for name, (row, flags) in PENDING.items()
        },
        "pending: with its last fires": _with_fires(2, 8, 0),
        "pending: with a tally": _with_fires(2, 70_000, 4),
        "pending: with a tally and ten fires": _with_fires(12, 1_001, 0),
        "pending: with a tally alone": pending_bytes.tallied(
            pending_records.encode_pending(_pending(EVERY)), 0, 3
        ),
        **{f"marker: {name}": records.encode_marker(row) for name, row in MARKERS.items()},
        **{f"awaited: {name}": records.encode_awaited(row) for name, row in AWAITED.items()},
        **{
            f"place: {name}": locations.encode_location(Location(where, NOON, 41, lock))
            for name, (where, lock) in PLACES.items()
        },
        **{f"aside: {name}": encode_aside(row) for name, row in ASIDE.items()},
        "group": encode_group(GroupRow(RESTS, 2, NOWHERE, 900, 0, (b"big",))),
        "usage": encode_usage_row(UsageRow(NOON, NOON + 3_600_000, NOON + 7, 3, 2, 500, 3_500)),
        "identity": encode_identity(WORLD),
        "zones": records.encode_zones("2026b"),
        "verdict": verdicts.encode_verdict(VerdictRow("CONFLICT", NOON, None, 3, "wrong_version")),
        "verdict with a digest": verdicts.encode_verdict(ANSWERED),
        "manifest": manifests.encode_manifest(Manifest(7, 2, 43, NOON, 5, 1, bytes(range(16)))),
        "manifest: with a read lease": manifests.encode_manifest(
            Manifest(7, 2, 43, NOON, 5, 1, bytes(range(16)), read_lease=True)
        ),
        "manifest: with groups": manifests.encode_manifest(
            Manifest(7, 2, 43, NOON, 5, 1, bytes(range(16)), grouped=True)
        ),
        "manifest: that sent on": manifests.encode_manifest(
            Manifest(7, 2, 43, NOON, 5, 1, bytes(range(16)), sent_on=True)
        ),
    }


def said(row: bytes) -> dict[str, Any]:
    """What this version reads in a row, as JSON can hold it."""
    # Its format is its own, and so is its reader.
    if row[1] == records.IDENTITY:
        return shown(decode_identity(row)._asdict())
    letter = records.check_format(row)
    if letter == records.PENDING:
        pending = pending_records.decode_pending(row)
        given = asdict(decode_rule(pending.extra)) if pending.extra else {}
        rule = {name: value for name, value in given.items() if value is not None}
        if "when" in rule:
            # Told under the name of the kind's own field, as requests have it.
            rule[KINDS[rule["kind"]].field.name] = rule.pop("when")
        headers = pending_records.decode_headers(pending.headers)
        more = {"headers": headers, "extra": rule, "paused": pending_bytes.paused(row)}
        if row[pending_records.FLAGS_AT] & pending_bytes.KEPT_FIRES:
            more["last_fires"] = [each._asdict() for each in pending_bytes.last_fires(row)]
        if row[pending_records.FLAGS_AT] & pending_bytes.TALLY:
            more["tally"] = pending_bytes.tally_of(row)._asdict()
        return shown({**pending._asdict(), **more})
    if letter == records.LOCATION:
        where, due_ms, seq, lock = locations.decode_location(row)
        return shown({"where": where, "due_ms": due_ms, "seq": seq, "gate": lock})
    if letter == records.ZONES:
        return shown({"version": row[2:]})
    if letter == records.VERDICT:
        told = verdicts.decode_verdict(row)._asdict()
        asked = [told.pop(name) for name in ("digest", "action", "schedule_id", "generation")]
        assert asked == [b"", "", "", None], "an old verdict holds nothing of what was asked"
        return shown(told)
    if letter == records.ASIDE:
        lane, record, appended = decode_aside(aside_key(OFFSET), row)
        return shown({"lane": lane, "record": record, "appended": appended})
    readers: dict[int, Any] = {
        records.MARKER: records.decode_marker,
        records.ANSWERED: verdicts.decode_verdict,
        records.MANIFEST: manifests.decode_manifest,
        records.GROUPED: manifests.decode_manifest,
        records.AWAITED: records.decode_awaited,
        records.USAGE: decode_usage_row,
        records.GROUP: decode_group,
    }
    return shown(_as_golden(readers[letter](row)._asdict()))


def _as_golden(fields: dict[str, Any]) -> dict[str, Any]:
    """A row under the names that the golden file has, without fields that came later."""
    # The names of the golden file stay, as its bytes do.
    if "locks" in fields:
        fields["closes"] = fields.pop("locks")
    # Not there in what was written before there were leases.
    for later in ("read_lease", "grouped", "sent_on"):
        if not fields.get(later, True):
            del fields[later]
    if fields.get("at_once") == 1:
        # As in what was written before there were others.
        del fields["at_once"]
    return fields


def shown(row: dict[str, Any]) -> dict[str, Any]:
    """A decoded row as JSON holds it: bytes as Latin-1 text."""
    return {name: _shown(value) for name, value in row.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value


def main() -> int:
    """Add the rows that are new; those that are there stay as they are."""
    kept = json.loads(FILE.read_bytes()) if FILE.exists() else {}
    for name, row in rows().items():
        kept.setdefault(name, {"hex": row.hex(), "says": said(row)})
    FILE.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
