"""The users: requests of all sorts, and a list of what was sent.

A request without an id has a schedule of its own and must be accepted; all others ask for their
verdict by their request id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.simulation.broker import Broker, Entry, Headers, Log
from tests.simulation.feature_load import FeatureLoad
from tests.simulation.murmur import partition_of
from tests.simulation.payloads import Payloads
from tests.simulation.placing import Placing
from tests.simulation.registry import IDS
from tests.simulation.rules import RuleLoad
from tests.simulation.sent import (
    IN_HEADERS,
    REQUEST_HEAD,
    Sent,
    as_avro,
    as_headers,
    as_put_back,
    may_be_put_back,
)

TENANTS: Final = ("ash", "birch", "cedar", "dogwood")
# The share of lost requests that their users send again, and after how long.
SENT_AGAIN: Final = 0.7
AGAIN_MS: Final = 150.0
PRIORITIES: Final = (None, 9, -9, 1, 0, -1, None)


@dataclass(slots=True)
class Load:
    """Draws requests and sends them."""

    broker: Broker
    random: Random
    partitions: int
    # Reads what fires.
    payloads: Payloads = field(kw_only=True)
    rhythms: float = 0.0
    schema_ids: float = 0.0
    bulk: float = 0.0
    keys: float = 0.0
    sent: list[Sent] = field(default_factory=list)
    last_due_ms: int = 0
    # How many requests elections have lost.
    lost: int = 0
    # Where tenants have shards or topics of their own, or partitions were added.
    placing: Placing | None = None
    # Homes of tenants change, so nobody uses groups, or knows a foreign partition.
    wanders: bool = False
    # Plain schedules have no priorities; those of the pile have groups, too.
    alike: bool = False
    # Requests of later features, where a seed has some, and which share of all they are.
    features: FeatureLoad | None = None
    share: float = 0.0
    # Recurring schedules of all sorts, where there are some, and which share they are.
    rules: RuleLoad | None = None
    ruled: float = 0.0

    def expect(self, at_ms: int) -> None:
        """Something may be due until then."""
        self.last_due_ms = max(self.last_due_ms, at_ms)

    def send_one(self) -> None:
        """Draw a request and append it."""
        if self.features is not None and self.random.random() < self.share:
            self.features.send_one()
            return
        if self.rules is not None and self.random.random() < self.ruled:
            self.rules.send_one()
            return
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

    def pile(self, count: int) -> None:
        """So many requests at once, of schedules that nobody else touches.

        None is in a group, unless they are to be alike.
        """
        before, self.wanders = self.wanders, self.wanders or not self.alike
        for _ in range(count):
            self._plain()
        self.wanders = before

    def _plain(self) -> None:
        """A request without an id, for a schedule that nobody else touches."""
        number = len(self.sent)
        tenant = self.random.choice(TENANTS)
        fields = {"at": self._due(-1_000), "group": self._group()}
        if fields["group"] is None and not self.alike:
            # By the number, for a draw would make others of all that follows.
            fields["priority"] = PRIORITIES[number % len(PRIORITIES)]
        self.send(Sent(f"p{number}", tenant, f"plain-{number}", "UPSERT", fields, None))

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
        self.send(Sent(f"e{number}", tenant, f"every-{number}", "UPSERT", fields, None))

    def _prefixes(self) -> tuple[str, ...]:
        """What a job is about; the checks of rhythms and of some features know of no jobs."""
        if self.features is not None:
            return "a", "plain-", "lim-", "lim-"
        return ("a", "plain-") if self.rhythms else ("", "", "a", "plain-")

    def _bulk(self) -> None:
        """A job on all schedules of a tenant that a filter matches; some take several seconds."""
        number = len(self.sent)
        said: dict[str, Any] = {
            "action": self.random.choice(("CANCEL", "MOVE", "MOVE", "TRIGGER", "TRIGGER")),
            "prefix": self.random.choice(self._prefixes()),
            "group": self.random.choice((None, None, "g1")),
            "per_second": self.random.choice((5, 20, 100)),
        }
        if said["action"] == "MOVE":
            said["move_ms"] = self.random.choice((-2_000, 500, 3_000))
        fields = {"bulk": json.dumps(said)}
        tenant = self.random.choice(TENANTS)
        self.send(Sent(f"j{number}", tenant, f"job-{number}", "BULK", fields, f"id-{number}"))
        self.expect(self.broker.now_ms() + 20_000)

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
        sent.stray = self.random.random() < 0.06 and self.partitions > 1 and not self.wanders
        self.send(sent)

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
            self.send(Sent(f"t{number}", tenant, schedule_id, "UPSERT", fields, f"id-{number}"))
            return
        delay_ms = self.random.choice((800, 1_500, 1_500))
        longest_ms = delay_ms + self.random.choice((0, 700, 2_500))
        fields = {"kind": "AFTER", "delay_ms": delay_ms, "max_wait_ms": longest_ms}
        tenant, schedule_id = self.random.choice(TENANTS[:2]), self.random.choice("abc")
        self.send(Sent(f"k{number}", tenant, schedule_id, "UPSERT", fields, f"id-{number}"))

    def _again(self, first: Sent) -> None:
        """A producer that sends the same record once more."""
        fresh = self.broker.now_ms() - first.appended_ms < 60_000
        if fresh and first.request_id is not None and not (first.stray or first.once or first.lost):
            again = Sent(
                first.name, first.tenant, first.schedule_id, first.action, dict(first.fields),
                first.request_id, schema_id=first.schema_id, topic=first.topic, home=first.home,
                table=first.table,
            )  # fmt: skip
            self.append(again, first.partition, first.value, first.headers)

    def _poison(self) -> None:
        partition = self.random.randrange(self.partitions)
        value = self.random.choice((b"", b"\xc3\x01", b"{}", REQUEST_HEAD + b"\xff" * 9))
        sent = Sent(f"x{len(self.sent)}", "", "", "", {}, None, poison=True)
        self.append(sent, partition, value, [("who", sent.name.encode())])

    def _due(self, early: int) -> int:
        due_ms = self.broker.now_ms() + self.random.randint(early, 9_000)
        # Ties are common, and so are instants on the edge of a minute.
        return due_ms // 1_000 * 1_000 if self.random.random() < 0.3 else due_ms

    def _group(self) -> str | None:
        group = self.random.choice((None, None, "g1", "g2"))
        return None if self.wanders else group

    def send(self, sent: Sent) -> None:
        """Send a request to the home of its tenant, or next to it; in headers where it can be."""
        if self.schema_ids and self.random.random() < self.schema_ids:
            sent.schema_id = 1 + self.random.randrange(IDS)
            # The checker would not know which of two owners could not read it.
            sent.stray = False
        home = partition_of(sent.tenant.encode(), self.partitions)
        partition = (home + sent.stray) % self.partitions
        if self.placing is not None:
            partition = self.placing.place(sent, partition)
        plain_headers = sent.fields.keys() <= IN_HEADERS
        if plain_headers and not sent.schema_id and self.random.random() < 0.3:
            self.append(sent, partition, sent.name.encode(), as_headers(sent))
        elif may_be_put_back(sent):
            self.append(sent, partition, sent.name.encode(), as_put_back(sent))
        else:
            self.append(sent, partition, as_avro(sent), None)

    def append(self, sent: Sent, partition: int, value: bytes, headers: Headers | None) -> None:
        """Append a request to a partition as it is, and note where it lies."""
        sent.value, sent.headers = value, headers
        log = self.broker.log(sent.topic, partition)
        entry = self.broker.append(log, (sent.tenant.encode(), value, headers))
        sent.partition, sent.offset, sent.appended_ms = partition, entry.offset, entry.timestamp_ms
        if not sent.lost:
            self.sent.append(sent)
        sent.lost = False
        if sent.action in ("UPSERT", "CREATE"):
            self.expect(sent.due_ms)

    def lose(self, log: Log, lost: list[Entry]) -> None:
        """Requests are gone that were not acknowledged: most users send them again, in order."""
        lie = {each.place: each for each in self.sent if not each.lost}
        for entry in lost:
            sent = lie.get((log.topic, log.partition, entry.offset))
            if sent is None:
                continue
            sent.lost, partition = True, sent.partition
            self.lost += 1
            sent.partition = sent.offset = -1
            if self.random.random() < SENT_AGAIN:
                self.broker.stage.later(
                    AGAIN_MS,
                    lambda sent=sent, partition=partition: self.append(  # type: ignore[misc]
                        sent, partition, sent.value, sent.headers
                    ),
                )
