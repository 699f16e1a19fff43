"""What was sent: one request, where it lies in the log, and the bytes that it was sent as.

The payload is the name of the request, so that a fired record tells which definition it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Any, Final

import fastavro

from tests.acceptance.harness.rhythms import Table
from tests.simulation.broker import Headers

SOURCE: Final = "belfry.schedules"
SCHEMAS: Final = Path(__file__).parents[2] / "schemas"
# What the header protocol is used for here; all other fields go as Avro.
IN_HEADERS: Final = frozenset({"at", "group", "bulk", "priority"})
# What a record that is put back may say besides how often it has failed.
PUT_BACK: Final = frozenset({"kind", "delay_ms", "max_wait_ms", "group"})


def schema(name: str) -> Any:
    """A parsed schema of the public catalogue."""
    return fastavro.schema.load_schema(str(SCHEMAS / f"io.belfry.{name}.avsc"))


def head(name: str) -> bytes:
    """What a record of this schema begins with where no registry is."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema(name))
    return b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


REQUEST: Final = schema("ScheduleRequest")
REQUEST_HEAD: Final = head("ScheduleRequest")


@dataclass(slots=True)
class Sent:
    """One request, and where and when the broker appended it."""

    name: str
    tenant: str
    schedule_id: str
    action: str
    fields: dict[str, Any]
    request_id: str | None
    partition: int = -1
    offset: int = -1
    topic: str = SOURCE
    # The only partition that may take it in, where others pass it on; -1: the next to the first.
    home: int = -1
    appended_ms: int = 0
    stray: bool = False
    poison: bool = False
    value: bytes = b""
    headers: Headers | None = None
    # Of the registry, where the request names its schema so.
    schema_id: int = 0
    # Whose instants it asks for, where that is a rule by the clock on the wall.
    table: Table | None = None
    # Nobody sends it again: who judges it wants one verdict.
    once: bool = False
    # It was not acknowledged, an election has lost it, and it lies nowhere.
    lost: bool = False

    @property
    def place(self) -> tuple[str, int, int]:
        """Where it lies: topic, partition and offset."""
        return self.topic, self.partition, self.offset

    @property
    def recurs(self) -> bool:
        """Whether it asks for a row of instants that nothing but itself decides about."""
        return self.fields.get("kind") == "EVERY" and not self.of_feature

    @property
    def of_feature(self) -> bool:
        """Whether a check of its own says when it fires (`features`)."""
        features = {"calendar", "overlap", "after_ack", "after_group", "max_lateness_ms"}
        return bool(features & self.fields.keys())

    @property
    def due_ms(self) -> int:
        """When it is due: its only instant, or the last of a row that begins in time."""
        if self.of_feature:
            return self.appended_ms
        if self.recurs:
            return self.instants(self.fields["start_at"])[-1]
        at: int | None = self.fields.get("at")
        return self.appended_ms + int(self.fields["delay_ms"]) if at is None else at

    def grid(self, first_ms: int) -> Iterator[int]:
        """The row from an instant of its grid on for ever, without the minute it leaves out."""
        left_out, interval_ms = self.fields.get("except_cron"), self.fields["interval_ms"]
        minute = None if left_out is None else int(left_out.split()[0])
        return (at_ms for at_ms in count(first_ms, interval_ms) if at_ms // 60_000 % 60 != minute)

    def instants(self, first_ms: int) -> list[int]:
        """As many of the row as it fires."""
        return list(islice(self.grid(first_ms), self.fields["max_fires"]))

    def between(self, from_ms: int, until_ms: int) -> list[int]:
        """The instants of its grid from its start on that lie in a range, its end exclusive."""
        all_of_them = takewhile(lambda at_ms: at_ms < until_ms, self.grid(self.fields["start_at"]))
        return [at_ms for at_ms in all_of_them if at_ms >= from_ms]


def as_avro(sent: Sent) -> bytes:
    """The request as its writer's Avro, with the schema's number where it names one."""
    record = {
        "tenant": sent.tenant,
        "schedule_id": sent.schedule_id,
        "action": sent.action,
        "payload": sent.name.encode(),
        "request_id": sent.request_id,
        **sent.fields,
    }
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, REQUEST, record)
    head = b"\0" + sent.schema_id.to_bytes(4) if sent.schema_id else REQUEST_HEAD
    return head + buffer.getvalue()


def as_headers(sent: Sent) -> Headers:
    """The header protocol's form of a request."""
    headers: Headers = [
        ("belfry-tenant", sent.tenant.encode()),
        ("belfry-id", sent.schedule_id.encode()),
        ("belfry-action", sent.action.encode()),
    ]
    if sent.action == "BULK":
        headers.append(("belfry-bulk", str(sent.fields["bulk"]).encode()))
    if sent.request_id is not None:
        headers.append(("belfry-request-id", sent.request_id.encode()))
    if sent.fields.get("at") is not None:
        headers.append(("belfry-at", b"%d" % sent.fields["at"]))
    if sent.fields.get("priority") is not None:
        headers.append(("belfry-priority", b"%d" % sent.fields["priority"]))
    if sent.fields.get("group"):
        headers.append(("belfry-group", str(sent.fields["group"]).encode()))
    return headers


def may_be_put_back(sent: Sent) -> bool:
    """Whether a request may be a record that its consumer puts back: of two such delays in three.

    By the delay, for a draw would make others of all that follows.
    """
    fields = sent.fields
    if not fields.keys() <= PUT_BACK or sent.schema_id or not fields.get("delay_ms"):
        return False
    return fields.get("max_wait_ms") is None and bool(fields["delay_ms"] % 3)


def as_put_back(sent: Sent) -> Headers:
    """The same delay as the wait of a record that has failed: once for each time it is even."""
    first_ms, failed = sent.fields["delay_ms"], 1
    while first_ms % 2 == 0:
        first_ms, failed = first_ms // 2, failed + 1
    rule = f"first={first_ms}ms factor=2 most=1d attempts={failed + 1}"
    # The count of the try before; the first one has none.
    counted: Headers = [("retry-attempt", b"%d" % (failed - 1))] if failed > 1 else []
    return [*as_headers(sent), ("belfry-retry", rule.encode()), *counted]
