"""Golden bytes of every released schema: what was written once has to stay readable.

``golden/<version>/`` holds, for each record, the schema of that release (``<full name>.avsc``) and
for a minimal and a rich record the body (``<name>.<case>.bin``) and what it says
(``<name>.<case>.json``; bytes as Latin-1 text).  A released folder is never changed.

At a release: ``python -m tests.compatibility.golden 0.2.0``, with ``app`` on the path.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from fastavro import parse_schema, schemaless_writer

from belfry.schedules.fields import EMPTY
from belfry.wire import catalogue

FOLDER = Path(__file__).parent / "golden"
NOON = 1_798_000_000_000

_TARGET = {
    "url": "https://hooks.example.com/belfry?a=1&b=é",
    "timeout_ms": 2_500,
    "max_attempts": 7,
    "secret_ref": "hooks/main",
    "headers": [{"name": "x-team", "value": "blue"}, {"name": "x-team", "value": "green"}],
    "strategy": "FIRST_AVAILABLE",
}
_SECOND = {
    "url": "http://second.example.com/",
    "timeout_ms": 10_000,
    "max_attempts": 0,
    "secret_ref": None,
    "headers": [],
    "strategy": "ALL",
}
MINIMAL: dict[str, dict[str, Any]] = {
    "ScheduleRequest": {"tenant": "demo", "schedule_id": "a"},
    "FiredEvent": {
        "tenant": "demo",
        "schedule_id": "a",
        "fire_id": "f",
        "scheduled_at": NOON,
        "due_at": NOON,
        "fired_at": NOON,
    },
    "LifecycleEvent": {"tenant": "demo", "schedule_id": "a", "at": NOON},
    "TenantPolicy": {"tenant": "demo"},
    "AuditEvent": {"at": NOON, "action": "schedule.create"},
}
RICH: dict[str, dict[str, Any]] = {
    "ScheduleRequest": {
        # A field that a later release adds; those of released ones have values below.
        **EMPTY,
        "tenant": "payments.eu",
        "schedule_id": "order/4711/é",
        "action": "CREATE",
        "kind": "CRON",
        "at": NOON,
        "delay_ms": 0,
        "interval_ms": 30_000,
        "cron": "0 9 * * MON",
        "timezone": "Europe/Paris",
        "start_at": NOON - 1,
        "end_at": NOON + 10**12,
        "max_fires": 2**40,
        "jitter_ms": 250,
        "misfire": "FIRE_ALL",
        "max_lateness_ms": 60_000,
        "event_type": "reminder",
        "group": "customer-7",
        "key": b"\x00\x01\xfe\xff",
        "payload": b"\x00\x00\x00\x00\x07 not ours",
        "headers": [
            {"name": "traceparent", "value": b"00-ab-cd-01"},
            {"name": "twice", "value": b""},
            {"name": "twice", "value": None},
        ],
        "expected_version": 12,
        "request_id": "r-1",
        "reason": "as the customer wished",
        "fire_id": "0f" * 16,
        "http_targets": [_TARGET, _SECOND],
        "overlap": "QUEUE_ONE",
        "serial": True,
        "ack_timeout_ms": 5_000,
        "standing": {"next_at": NOON + 1, "occurrence": 7, "version": 3, "paused": True},
    },
    "FiredEvent": {
        "tenant": "payments.eu",
        "schedule_id": "order/4711/é",
        "fire_id": "0f" * 16,
        "version": 3,
        "occurrence": -1,
        "scheduled_at": NOON,
        "due_at": NOON + 250,
        "fired_at": NOON + 262,
        "event_type": "reminder",
        "group": "customer-7",
        "missed": 4,
        "payload": b"\x00\x00\x00\x00\x07 not ours",
    },
    "LifecycleEvent": {
        "tenant": "payments.eu",
        "schedule_id": "order/4711/é",
        "outcome": "FAILED",
        "request_id": "r-1",
        "fire_id": "0f" * 16,
        "version": 3,
        "at": NOON,
        "due_at": NOON + 250,
        "code": "http_status",
        "reason": "503 Service Unavailable",
        "target": "https://hooks.example.com/belfry",
        "attempt": 7,
        "source_topic": "belfry.schedules",
        "source_partition": 3,
        "source_offset": 2**40,
    },
    "TenantPolicy": {
        "tenant": "payments.eu",
        "output_topic": "payments.reminders",
        "delivery": "ENVELOPE",
        "cloudevents": True,
        "guarantee": "AT_LEAST_ONCE",
        "spread": 8,
        "lifecycle": "ALL",
        "misfire": "SKIP",
        "look_back_ms": 3_600_000,
        "max_pending": 10**9,
        "max_requests_per_second": 0.5,
        "max_fires_per_second": 1_000.0,
        "priority": -3,
        "history_ms": 86_400_000,
        "paused": True,
        "http_targets": [_TARGET, _SECOND],
        "retry_max_attempts": 9,
        "retry_initial_ms": 100,
        "retry_max_ms": 60_000,
        "retry_max_age_ms": 3_600_000,
        "allowed_hosts": ["hooks.example.com", "second.example.com"],
        "former_spreads": [1, 4],
        "removed": True,
        "signing_secret_ref": "env:PAYMENTS_SECRET",
        "secret_refs": ["env:BELFRY_SECRET_PAYMENTS_API", "file:payments/api-key"],
        "output": "SHARED",
        "remember_ms": 3_600_000,
        "payload_key_ref": "file:payments/payload-keys",
        "source_header": True,
        "claim_check_over_bytes": 200_000,
    },
    "AuditEvent": {
        "at": NOON,
        "action": "policy.set",
        "result": "DONE",
        "via": "topic",
        "caller": "payments-deploy",
        "role": "operate",
        "source_address": "2001:db8::1",
        "tenant": "payments.eu",
        "object": "order/4711/é",
        "status": 200,
        "outcome": "UPDATED",
        "code": "none",
        "request_id": "r-1",
        "trace_id": "0f" * 16,
        "worker": "worker-1",
        "count": 2**40,
        "objects": [
            {"id": "a", "outcome": "ACCEPTED", "code": None},
            {"id": "é", "outcome": None, "code": "bad_cron"},
        ],
        "changes": [{"field": "paused", "before": "false", "after": None}],
        "source_topic": "belfry.tenants",
        "source_partition": 3,
        "source_offset": 2**40,
        "reason": "é: a larger customer",
    },
}
CASES = {"minimal": MINIMAL, "rich": RICH}


class Golden(NamedTuple):
    """One released record: the schema it was written with, its bytes, and what they say."""

    version: str
    name: str
    case: str
    schema: dict[str, Any]
    body: bytes
    expected: dict[str, Any]


def released() -> Iterator[Golden]:
    """All golden records of all releases."""
    for body in sorted(FOLDER.glob("*/*.bin")):
        name, case = body.stem.split(".")
        yield Golden(
            body.parent.name,
            name,
            case,
            json.loads((body.parent / f"{catalogue.full_name(name)}.avsc").read_bytes()),
            body.read_bytes(),
            json.loads(body.with_suffix(".json").read_bytes()),
        )


def written(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    """Body of a record, written with any schema, instants as epoch milliseconds."""
    body = BytesIO()
    schemaless_writer(body, parse_schema(catalogue.without_logical_types(schema)), record)
    return body.getvalue()


def shown(value: Any) -> Any:
    """A decoded record as JSON can hold it: bytes as Latin-1 text."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shown(each) for each in value]
    return value


def write_release(folder: Path) -> None:
    """Write today's golden records; refuses a folder that exists."""
    folder.mkdir(parents=True)
    for name in catalogue.names():
        text = catalogue.text(name)
        (folder / f"{catalogue.full_name(name)}.avsc").write_text(text, "utf-8")
        for case, records in CASES.items():
            body = written(catalogue.schema(name), records[name])
            said = shown(catalogue.own_reader(name).read(body))
            (folder / f"{name}.{case}.bin").write_bytes(body)
            (folder / f"{name}.{case}.json").write_text(
                json.dumps(said, indent=2, ensure_ascii=False) + "\n", "utf-8"
            )


def main(arguments: list[str]) -> int:
    """Write the golden folder of a release."""
    if len(arguments) != 1:
        print("Give the version that is released, such as 0.2.0.", file=sys.stderr)  # noqa: T201
        return 2
    try:
        write_release(FOLDER / arguments[0])
    except FileExistsError as error:
        print(f"{error.filename} exists: released bytes never change.", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
