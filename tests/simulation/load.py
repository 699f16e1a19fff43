"""The users: requests of all sorts, and a list of what was sent.

A request without an id has a schedule of its own and must be accepted; all others ask for their
verdict by their request id.  The payload is the name of the request, so that a fired record tells
which definition it comes from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, Final

import fastavro

from tests.simulation.broker import Broker, Headers
from tests.simulation.murmur import partition_of
from tests.simulation.registry import IDS

SCHEMAS: Final = Path(__file__).parents[2] / "schemas"
TENANTS: Final = ("ash", "birch", "cedar", "dogwood")
SOURCE: Final = "belfry.schedules"


def schema(name: str) -> Any:
    """A parsed schema of the public catalogue."""
    return fastavro.schema.load_schema(str(SCHEMAS / f"io.belfry.{name}.avsc"))


def _head(name: str) -> bytes:
    canonical = fastavro.schema.to_parsing_canonical_form(schema(name))
    return b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


REQUEST: Final = schema("ScheduleRequest")
REQUEST_HEAD: Final = _head("ScheduleRequest")


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
    appended_ms: int = 0
    stray: bool = False
    poison: bool = False
    value: bytes = b""
    headers: Headers | None = None
    # Of the registry, where the request names its schema so.
    schema_id: int = 0

    @property
    def recurs(self) -> bool:
        """Whether it asks for a row of instants."""
        return self.fields.get("kind") == "EVERY"

    @property
    def due_ms(self) -> int:
        """When it is due: its only instant, or the last of a row that begins in time."""
        if self.recurs:
            return self.instants(self.fields["start_at"])[-1]
        at: int | None = self.fields.get("at")
        return self.appended_ms + int(self.fields["delay_ms"]) if at is None else at

    def instants(self, first_ms: int) -> list[int]:
        """The row from an instant of its grid on, without the minute that it leaves out."""
        left_out, interval_ms = self.fields.get("except_cron"), self.fields["interval_ms"]
        minute = None if left_out is None else int(left_out.split()[0])
        grid = (at_ms for at_ms in count(first_ms, interval_ms) if at_ms // 60_000 % 60 != minute)
        return list(islice(grid, self.fields["max_fires"]))


@dataclass(slots=True)
class Load:
    """Draws requests and sends them."""

    broker: Broker
    random: Random
    partitions: int
    rhythms: float = 0.0
    schema_ids: float = 0.0
    bulk: float = 0.0
    keys: float = 0.0
    sent: list[Sent] = field(default_factory=list)
    last_due_ms: int = 0

    def send_one(self) -> None:
        """Draw a request and append it."""
        if self.rhythms and self.random.random() < self.rhythms:
            self._rhythm()
            return
        if self.bulk and self.random.random() < self.bulk:
            self._bulk()
            return
        if self.keys and self.random.random() < self.keys:
            self._key()
            return
        draw = self.random.random()
        if draw < 0.03:
            self._poison()
        elif draw < 0.06 and self.sent:
            self._again(self.random.choice(self.sent))
        elif draw < 0.35:
            self._plain()
        else:
            self._request()

    def _plain(self) -> None:
        """A request without an id, for a schedule that nobody else touches."""
        number = len(self.sent)
        tenant = self.random.choice(TENANTS)
        fields = {"at": self._due(-1_000), "group": self._group()}
        self._send(Sent(f"p{number}", tenant, f"plain-{number}", "UPSERT", fields, None))

    def _rhythm(self) -> None:
        """Several instants, each an interval after the one before; all of them fire.

        Some leave out the minute in which they begin, so they come when it is over.
        """
        number = len(self.sent)
        start_ms = self.broker.now_ms() + self.random.randint(100, 4_000)
        left_out = f"{start_ms // 60_000 % 60} * * * *" if self.random.random() < 0.25 else None
        fields = {
            "kind": "EVERY",
            "start_at": start_ms,
            "except_cron": left_out,
            "interval_ms": self.random.choice((70, 700, 1_000, 2_300)),
            "max_fires": self.random.randint(2, 6),
            "misfire": "FIRE_ALL",
        }
        tenant = self.random.choice(TENANTS)
        self._send(Sent(f"e{number}", tenant, f"every-{number}", "UPSERT", fields, None))

    def _bulk(self) -> None:
        """A job on all schedules of a tenant that a filter matches; some take several seconds."""
        number = len(self.sent)
        said: dict[str, Any] = {
            "action": self.random.choice(("CANCEL", "MOVE", "MOVE", "TRIGGER", "TRIGGER")),
            "prefix": self.random.choice(("", "", "a", "plain-")),
            "group": self.random.choice((None, None, "g1")),
            "per_second": self.random.choice((5, 20, 100)),
        }
        if said["action"] == "MOVE":
            said["move_ms"] = self.random.choice((-2_000, 500, 3_000))
        fields = {"bulk": json.dumps(said)}
        tenant = self.random.choice(TENANTS)
        self._send(Sent(f"j{number}", tenant, f"job-{number}", "BULK", fields, f"id-{number}"))
        self.last_due_ms = max(self.last_due_ms, self.broker.now_ms() + 20_000)

    def _request(self) -> None:
        number = len(self.sent)
        tenant = self.random.choice(TENANTS)
        action = self.random.choice(
            ("UPSERT", "UPSERT", "UPSERT", "UPSERT", "CREATE", "CANCEL", "CANCEL", "TRIGGER")
        )
        fields: dict[str, Any] = {}
        if action in ("UPSERT", "CREATE"):
            fields = self._delay() if self.random.random() < 0.2 else {"at": self._due(-3_000)}
            fields["group"] = self._group()
        if self.random.random() < 0.05:
            fields["expected_version"] = self.random.randint(0, 2)
        schedule_id = self.random.choice("abcde")
        sent = Sent(f"r{number}", tenant, schedule_id, action, fields, f"id-{number}")
        sent.stray = self.random.random() < 0.06
        self._send(sent)

    def _delay(self) -> dict[str, Any]:
        """A delay; more than half of them slide what waits.  All follows from one draw."""
        delay_ms = self.random.randint(0, 9_000)
        longest_ms = delay_ms + delay_ms * 7_919 % 3_000 if delay_ms % 5 < 3 else None
        return {"kind": "AFTER", "delay_ms": delay_ms, "max_wait_ms": longest_ms}

    def _key(self) -> None:
        """One of many requests for few schedules, which slides what waits, or may be dropped."""
        number = len(self.sent)
        if self.random.random() < 0.4:
            window_ms = self.random.choice((500, 2_000, 2_000))
            at_ms = self.broker.now_ms() + self.random.randint(0, 1_200)
            fields: dict[str, Any] = {"at": at_ms, "throttle_ms": window_ms}
            tenant, schedule_id = self.random.choice(TENANTS[:2]), self.random.choice("tu")
            self._send(Sent(f"t{number}", tenant, schedule_id, "UPSERT", fields, f"id-{number}"))
            return
        delay_ms = self.random.choice((800, 1_500, 1_500))
        longest_ms = delay_ms + self.random.choice((0, 700, 2_500))
        fields = {"kind": "AFTER", "delay_ms": delay_ms, "max_wait_ms": longest_ms}
        tenant, schedule_id = self.random.choice(TENANTS[:2]), self.random.choice("abc")
        self._send(Sent(f"k{number}", tenant, schedule_id, "UPSERT", fields, f"id-{number}"))

    def _again(self, first: Sent) -> None:
        """A producer that sends the same record once more."""
        fresh = self.broker.now_ms() - first.appended_ms < 60_000
        if fresh and first.request_id is not None and not first.stray:
            again = Sent(
                first.name, first.tenant, first.schedule_id, first.action, dict(first.fields),
                first.request_id, schema_id=first.schema_id,
            )  # fmt: skip
            self._append(again, first.partition, first.value, first.headers)

    def _poison(self) -> None:
        partition = self.random.randrange(self.partitions)
        value = self.random.choice((b"", b"\xc3\x01", b"{}", REQUEST_HEAD + b"\xff" * 9))
        sent = Sent(f"x{len(self.sent)}", "", "", "", {}, None, poison=True)
        self._append(sent, partition, value, [("who", sent.name.encode())])

    def _due(self, early: int) -> int:
        due_ms = self.broker.now_ms() + self.random.randint(early, 9_000)
        # Ties are common, and so are instants on the edge of a minute.
        return due_ms // 1_000 * 1_000 if self.random.random() < 0.3 else due_ms

    def _group(self) -> str | None:
        return self.random.choice((None, None, "g1", "g2"))

    def _send(self, sent: Sent) -> None:
        if self.schema_ids and self.random.random() < self.schema_ids:
            sent.schema_id = 1 + self.random.randrange(IDS)
            # The checker would not know which of two owners could not read it.
            sent.stray = False
        home = partition_of(sent.tenant.encode(), self.partitions)
        partition = (home + sent.stray) % self.partitions
        plain_headers = not {"kind", "expected_version", "throttle_ms"} & sent.fields.keys()
        if plain_headers and not sent.schema_id and self.random.random() < 0.3:
            self._append(sent, partition, sent.name.encode(), _headers(sent))
            return
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
        self._append(sent, partition, head + buffer.getvalue(), None)

    def _append(self, sent: Sent, partition: int, value: bytes, headers: Headers | None) -> None:
        sent.value, sent.headers = value, headers
        log = self.broker.log(SOURCE, partition)
        entry = self.broker.append(log, (sent.tenant.encode(), value, headers))
        sent.partition, sent.offset, sent.appended_ms = partition, entry.offset, entry.timestamp_ms
        self.sent.append(sent)
        if sent.action in ("UPSERT", "CREATE"):
            self.last_due_ms = max(self.last_due_ms, sent.due_ms)


def _headers(sent: Sent) -> Headers:
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
    if sent.fields.get("group"):
        headers.append(("belfry-group", str(sent.fields["group"]).encode()))
    return headers
