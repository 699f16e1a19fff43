"""The auditor of the metering topic: is what it says of each tenant and period what there was?

It shares no code with belfry.  It starts from what was sent, from the outcomes that tell when, and
from what came out, and counts anew:

    accepted   UPSERTs whose outcome is ACCEPTED or UPDATED, at the instant of the outcome
    fired      records that came out, at the instant that the outcome FIRED or TRIGGERED tells
    held       bytes of each accepted schedule, from its outcome to its fire, update or cancel

Each has to be there exactly, for each period, so the tenants' `lifecycle` has to be ALL.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from tests.acceptance.harness.evidence import Finding, shown, token
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.sent import UPSERT, Sent

COUNTS: Final = ("accepted", "fired", "delivered", "held_byte_ms")
# Before the texts of a pending record; docs/metering.md says so.
HEAD_BYTES: Final = 88
HEADER_BYTES: Final = 6

# Tenant, begin of a period.
Period = tuple[str, int]
Counted = dict[Period, Counter[str]]


class UsageAudit:
    """One audit; `lifecycle` are decoded events, all of them."""

    def __init__(
        self,
        sent: list[Sent],
        lifecycle: list[dict[str, Any]],
        fired: list[Record],
        length_ms: int,
    ) -> None:
        self.findings: list[Finding] = []
        self.counted: Counted = defaultdict(Counter)
        self._sent = sent
        self._fired = fired
        self._length_ms = length_ms
        self._verdicts = {each["request_id"]: each for each in lifecycle if each["request_id"]}
        told = [each for each in lifecycle if each["outcome"] in ("FIRED", "TRIGGERED")]
        self._fired_at = {each["fire_id"].encode(): instant_of(each) for each in told}

    def run(self, metering: Iterable[Record]) -> list[Finding]:
        """Compare what was metered with what there was."""
        ends = self._count_fires()
        self._count_requests(ends)
        told = metered(metering)
        for period in sorted(self.counted.keys() | told.keys()):
            there, said = self.counted[period], told[period]
            for name in COUNTS:
                if there[name] != said[name]:
                    where = f"{name} of {period[0]} from {period[1]}"
                    self._find(f"{where}: {said[name]} metered, {there[name]} counted")
        return self.findings

    def _find(self, sentence: str) -> None:
        self.findings.append(Finding("usage", sentence))

    def _count_fires(self) -> dict[bytes, int]:
        """Count what fired; when the event of each token did."""
        ends: dict[bytes, int] = {}
        for record in self._fired:
            at_ms = self._fired_at.get(record.header("belfry-fire-id") or b"")
            if at_ms is None:
                self._find(f"{record.topic}/{record.partition}@{record.offset}: no outcome")
                continue
            tenant = record.topic.partition(".fired.")[2]
            self.counted[tenant, self._begin(at_ms)]["fired"] += 1
            if record.header("belfry-occurrence") != b"-1":
                ends[token(record.value)] = at_ms
        return ends

    def _count_requests(self, ends: dict[bytes, int]) -> None:
        schedules: dict[tuple[str, str], list[Sent]] = defaultdict(list)
        for one in self._sent:
            schedules[one.tenant, one.schedule_id].append(one)
        for requests in schedules.values():
            requests.sort(key=lambda one: (one.partition, one.offset))
            ended_ms: int | None = None
            for one in reversed(requests):
                verdict = self._verdicts.get(one.request_id)
                if verdict is None or verdict["outcome"] not in CHANGES:
                    continue
                at_ms = instant_of(verdict)
                if one.action == UPSERT:
                    self.counted[one.tenant, self._begin(at_ms)]["accepted"] += 1
                    self._hold(one, at_ms, ends.get(token(one.payload), ended_ms))
                ended_ms = at_ms

    def _hold(self, one: Sent, from_ms: int, until_ms: int | None) -> None:
        """Count what a schedule held from its outcome on, divided among the periods."""
        if until_ms is None:
            self._find(f"{shown(one)} neither fired nor ended")
            return
        size = size_of(one)
        while from_ms < until_ms:
            begin = self._begin(from_ms)
            end = min(begin + self._length_ms, until_ms)
            self.counted[one.tenant, begin]["held_byte_ms"] += size * (end - from_ms)
            from_ms = end

    def _begin(self, at_ms: int) -> int:
        return at_ms - at_ms % self._length_ms


CHANGES: Final = frozenset({"ACCEPTED", "UPDATED", "CANCELLED"})


def size_of(one: Sent) -> int:
    """What the pending record of a request takes."""
    texts = [one.tenant.encode(), one.schedule_id.encode(), one.group.encode(), one.payload or b""]
    headers = [len(name) + len(value or b"") + HEADER_BYTES for name, value in one.headers]
    # By the header protocol a request gives a key; the others of the load give none.
    key = one.key if one.schedule_id.startswith("h-") else b""
    return HEAD_BYTES + sum(map(len, texts)) + sum(headers) + len(key)


def instant_of(event: dict[str, Any]) -> int:
    """When an outcome was: fastavro gives an instant as a datetime."""
    at: datetime = event["at"]
    return round(at.timestamp() * 1000)


def metered(records: Iterable[Record]) -> Counted:
    """Sums of the metering topic."""
    found: Counted = defaultdict(Counter)
    for record in records:
        said = json.loads(record.value or b"")
        assert record.key == said["tenant"].encode()
        begin = round(datetime.fromisoformat(said["from"]).timestamp() * 1000)
        for name in COUNTS:
            found[said["tenant"], begin][name] += said[name]
    return found
