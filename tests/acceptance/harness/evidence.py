"""What an audit of the outputs looks at, and what it finds.

A finding is (invariant, sentence); `INVARIANTS` lists them all.  Shares no code with belfry.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.sent import UPSERT, Sent

INVARIANTS: Final = {
    "lost": "A due instant that had to fire has no fired record.",
    "doubled": "A due instant has more than one fired record.",
    "early": "A record was appended before its due instant, by the broker's clock.",
    "ended": "A due instant fired that an accepted cancel or update had ended.",
    "invented": "A record fired that no accepted request asked for.",
    "content": "A fired record's key, value or headers are not what was asked for.",
    "topic": "A record came out on a topic that is not its tenant's.",
    "fire_id": "Two records have the same fire id, or a record has none.",
    "order": "Two records of a group that were pending together came out in the wrong order.",
    "trigger": "A TRIGGERED request has no extra record of its own, or several.",
    "unanswered": "A request has no verdict.",
    "answered_twice": "A request has several verdicts.",
    "in_time": "A cancel or an update that was sent in time did not count.",
    "impossible": "A verdict contradicts those before it.",
    "refused": "A valid request was rejected, or poison was not rejected exactly once.",
}


class Finding(NamedTuple):
    """A broken invariant, and the sentence that says where."""

    invariant: str
    sentence: str


@dataclass(slots=True)
class Evidence:
    """All that an audit looks at; `lifecycle` holds decoded events, with `appended_ms` and
    `committed_ms` by the broker's clock."""

    prefix: str
    sent: list[Sent]
    fired: list[Record]
    rejected: list[Record]
    lifecycle: list[dict[str, Any]]


@dataclass(slots=True)
class Report:
    """What an audit found; `lateness_ms` goes with `fired_at_ms`, fire by fire.

    `overrun` counts requests that were sent in time and taken in too late by a busy worker.
    """

    findings: list[Finding] = field(default_factory=list)
    overrun: int = 0
    requests: int = 0
    expected: int = 0
    extras: int = 0
    fired: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    fired_at_ms: list[int] = field(default_factory=list)
    lateness_ms: list[int] = field(default_factory=list)

    def of(self, *invariants: str) -> list[Finding]:
        """Findings about these invariants."""
        return [finding for finding in self.findings if finding.invariant in invariants]

    def summary(self) -> str:
        """Counts of broken invariants and the first sentences, for a failing test."""
        counts = Counter(finding.invariant for finding in self.findings)
        return "\n".join([str(dict(counts)), *(f.sentence for f in self.findings[:20])])


def shown(one: Sent) -> str:
    """A request in a sentence."""
    due = f" due {one.due_ms}" if one.action == UPSERT else ""
    return (
        f"{one.action} {one.request_id} of {one.tenant}/{one.schedule_id}"
        f" ({one.partition}@{one.offset}{due})"
    )


def token(payload: bytes | None) -> bytes:
    """What a payload begins with, up to the first blank: no two requests share it."""
    return (payload or b"").split(b" ", 1)[0]


def rfc3339(ms: int) -> bytes:
    """Epoch milliseconds as the fired record's header has them."""
    whole = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{ms % 1000:03d}Z".encode()
