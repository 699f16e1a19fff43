"""The auditor: was what came out what had to come out?  It shares no code with belfry.

It starts from the list of what was sent (`sent.py`) and from records that it has read itself
(`reading.py`), and recomputes from the verdicts, schedule by schedule, which due instants have to
have fired.  Verdicts are belfry's own claims, so those that the contract leaves no choice about are
judged first: a cancel or an update that was in the log `MARGIN_MS` before the due instant counts,
if its verdict was given by then, or if nobody served its partition until then.  A worker that gets
no time to read fires what it knows: what it took in too late is counted, and is no finding.

    sent ──► verdict of each ──► dues that had to fire, dues that had ended
                                        │                    │
    fired ──────────────────────────────┴── compare ─────────┘──► findings

What a finding may be about is listed in `evidence.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Any, Final

from tests.acceptance.harness.evidence import (
    INVARIANTS,
    Evidence,
    Finding,
    Report,
    rfc3339,
    shown,
    token,
)
from tests.acceptance.harness.order import out_of_order
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.sent import CANCEL, POISON, TRIGGER, UPSERT, Sent

MARGIN_MS: Final = 2_000
Place = tuple[str, int, int]


def audit(evidence: Evidence) -> Report:
    """Judge everything."""
    return _Audit(evidence).run()


class _Audit:
    """One audit: each step adds its findings."""

    def __init__(self, evidence: Evidence) -> None:
        self._seen = evidence
        self._report = Report()
        self._verdicts: dict[str, dict[str, Any]] = {}
        self._must: dict[str, Sent] = {}
        self._ended: dict[str, str] = {}
        self._extra: dict[str, Sent] = {}
        self._by_token = {token(s.payload): s for s in evidence.sent if s.action == UPSERT}
        self._served_ms: dict[int, list[int]] = defaultdict(list)

    def run(self) -> Report:
        """All steps, in the order in which they build on each other."""
        self._look_at_service()
        self._judge_verdicts()
        self._judge_rejections()
        self._fold_all()
        self._judge_fires()
        for sentence in out_of_order(self._seen.fired, self._by_token, self._verdicts):
            self._find("order", sentence)
        report = self._report
        report.requests = len(self._seen.sent)
        report.expected = len(self._must)
        report.extras = len(self._extra)
        report.fired = len(self._seen.fired)
        report.verdicts = Counter(str(e["outcome"]) for e in self._verdicts.values())
        return report

    def _find(self, invariant: str, sentence: str) -> None:
        assert invariant in INVARIANTS
        self._report.findings.append(Finding(invariant, f"{invariant}: {sentence}"))

    def _look_at_service(self) -> None:
        """When each source partition fired: then it had an owner."""
        for record in self._seen.fired:
            one = self._by_token.get(token(record.value))
            if one is not None and not one.stray:
                self._served_ms[one.partition].append(record.timestamp_ms)
        for instants in self._served_ms.values():
            instants.sort()

    # -- verdicts --------------------------------------------------------------------------------

    def _judge_verdicts(self) -> None:
        by_request: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in self._seen.lifecycle:
            if event["request_id"]:
                by_request[event["request_id"]].append(event)
        for one in self._seen.sent:
            if one.action == POISON:
                continue
            events = by_request.pop(one.request_id, [])
            if not events:
                self._find("unanswered", shown(one))
                continue
            if len(events) > 1:
                told = [event["outcome"] for event in events]
                self._find("answered_twice", f"{shown(one)} got {told}")
            self._verdicts[one.request_id] = events[0]
        for request_id in by_request:
            self._find("answered_twice", f"nobody sent request {request_id}")

    def _judge_rejections(self) -> None:
        kept = Counter(_origin(record) for record in self._seen.rejected)
        topic = f"{self._seen.prefix}schedules"
        for one in self._seen.sent:
            times = kept.pop((topic, one.partition, one.offset), 0)
            if times != (one.action == POISON):
                self._find("refused", f"{shown(one)} is in the rejected topic {times} times")
        for place, times in kept.items():
            self._find("refused", f"{place} is in the rejected topic {times} times; unknown")

    # -- what had to fire ------------------------------------------------------------------------

    def _fold_all(self) -> None:
        schedules: dict[tuple[str, str], list[Sent]] = defaultdict(list)
        for one in self._seen.sent:
            if one.action != POISON:
                schedules[one.tenant, one.schedule_id].append(one)
        for requests in schedules.values():
            requests.sort(key=lambda one: (one.partition, one.offset))
            assert len({one.partition for one in requests}) == 1, "one schedule, one route"
            self._fold(requests)

    def _fold(self, requests: list[Sent]) -> None:
        pending: Sent | None = None
        for one in requests:
            verdict = self._verdicts.get(one.request_id)
            outcome = str(verdict["outcome"]) if verdict else ""
            if pending is not None and verdict is not None and _in_time(one, pending):
                self._judge_in_time(one, pending, verdict)
            pending = self._step(one, pending, outcome, verdict)
        if pending is not None:
            self._must[pending.request_id] = pending

    def _judge_in_time(self, one: Sent, pending: Sent, verdict: dict[str, Any]) -> None:
        wanted = {CANCEL: "CANCELLED", UPSERT: "UPDATED", TRIGGER: "TRIGGERED"}[one.action]
        if verdict["outcome"] == wanted:
            return
        if verdict["appended_ms"] >= pending.due_ms and self._served(one, verdict["appended_ms"]):
            self._report.overrun += 1
            return
        early_ms = pending.due_ms - one.appended_ms
        self._find(
            "in_time",
            f"{shown(one)} came {early_ms} ms before {shown(pending)}: {verdict['outcome']}",
        )

    def _served(self, one: Sent, until_ms: int) -> bool:
        """Whether its partition fired while it lay in the log and had no verdict."""
        instants = self._served_ms[one.partition]
        return bisect_left(instants, one.appended_ms) < bisect_left(instants, until_ms)

    def _step(
        self, one: Sent, pending: Sent | None, outcome: str, verdict: dict[str, Any] | None
    ) -> Sent | None:
        """What is pending after a request with this outcome."""
        allowed = _ALLOWED[one.action, pending is not None]
        if outcome and outcome not in allowed:
            self._find("impossible", f"{shown(one)} got {outcome}; possible are {sorted(allowed)}")
        if outcome == "TRIGGERED" and verdict is not None and pending is not None:
            self._extra[str(verdict["fire_id"])] = pending
        if outcome == "CANCELLED" and pending is not None:
            self._ended[pending.request_id] = one.request_id
            return None
        if outcome == "UPDATED" and pending is not None:
            self._ended[pending.request_id] = one.request_id
            return one
        if outcome == "ACCEPTED" and pending is not None:
            # The schedule had left: it fired, or this request would have been an update of it.
            self._must[pending.request_id] = pending
        return one if outcome in ("ACCEPTED", "UPDATED") else pending

    # -- what fired ------------------------------------------------------------------------------

    def _judge_fires(self) -> None:
        times: Counter[str] = Counter()
        extra_times: Counter[str] = Counter()
        fire_ids: Counter[bytes | None] = Counter()
        for record in self._seen.fired:
            fire_id = record.header("belfry-fire-id")
            fire_ids[fire_id] += 1
            one = self._by_token.get(token(record.value))
            if one is None:
                self._find("invented", f"{_where(record)} holds {record.value!r:.80}")
            elif record.header("belfry-occurrence") == b"-1":
                extra_times[(fire_id or b"").decode()] += 1
                self._judge_extra(record, one)
            else:
                times[one.request_id] += 1
                self._judge_fire(record, one)
        self._judge_counts(times, extra_times, fire_ids)

    def _judge_counts(
        self, times: Counter[str], extra_times: Counter[str], fire_ids: Counter[bytes | None]
    ) -> None:
        for request_id, one in self._must.items():
            if times[request_id] == 0:
                self._find("lost", shown(one))
        for request_id, count in times.items():
            if count > 1:
                self._find("doubled", f"{request_id} fired {count} times")
        for fire_id, one in self._extra.items():
            if extra_times[fire_id] != 1:
                self._find("trigger", f"{shown(one)}: {extra_times[fire_id]} extra fires {fire_id}")
        for unasked in extra_times.keys() - self._extra.keys():
            self._find("trigger", f"an extra fire {unasked} that no TRIGGERED verdict names")
        for name, count in fire_ids.items():
            if not name or count > 1:
                self._find("fire_id", f"{name!r} stands on {count} records")

    def _judge_fire(self, record: Record, one: Sent) -> None:
        self._judge_content(record, one)
        if one.request_id in self._ended:
            by = self._ended[one.request_id]
            self._find("ended", f"{shown(one)} was ended by {by} and fired at {_where(record)}")
        elif one.request_id not in self._must:
            self._find("invented", f"{shown(one)} was not accepted and fired at {_where(record)}")
        if record.timestamp_ms < one.due_ms:
            early_ms = one.due_ms - record.timestamp_ms
            self._find("early", f"{shown(one)} fired {early_ms} ms early at {_where(record)}")
        if record.header("belfry-scheduled-at") != rfc3339(one.due_ms):
            self._find("content", f"{shown(one)}: {record.header('belfry-scheduled-at')!r}")
        since_ms = max(one.due_ms, one.appended_ms)
        self._report.fired_at_ms.append(record.timestamp_ms)
        self._report.lateness_ms.append(record.timestamp_ms - since_ms)

    def _judge_extra(self, record: Record, one: Sent) -> None:
        self._judge_content(record, one)

    def _judge_content(self, record: Record, one: Sent) -> None:
        if record.topic != f"{self._seen.prefix}fired.{one.tenant}":
            self._find("topic", f"{shown(one)} came out on {record.topic}")
        theirs = record.headers[: len(one.headers)]
        if (record.key, record.value, theirs) != (one.key, one.payload, one.headers):
            self._find("content", f"{shown(one)}: {record.key!r} {record.value!r:.80} {theirs}")
        if record.header("belfry-schedule-id") != one.schedule_id.encode():
            self._find("content", f"{shown(one)}: {record.header('belfry-schedule-id')!r}")


_ALLOWED: Final[dict[tuple[str, bool], frozenset[str]]] = {
    (UPSERT, False): frozenset({"ACCEPTED"}),
    (UPSERT, True): frozenset({"ACCEPTED", "UPDATED"}),
    (CANCEL, False): frozenset({"NOT_FOUND", "TOO_LATE"}),
    (CANCEL, True): frozenset({"CANCELLED", "TOO_LATE"}),
    (TRIGGER, False): frozenset({"NOT_FOUND", "TOO_LATE"}),
    (TRIGGER, True): frozenset({"TRIGGERED", "TOO_LATE"}),
}


def _in_time(one: Sent, pending: Sent) -> bool:
    """Whether a request was in the log well before what it is about was due."""
    return one.appended_ms + MARGIN_MS <= pending.due_ms


def _where(record: Record) -> str:
    return f"{record.topic}/{record.partition}@{record.offset}"


def _origin(record: Record) -> Place:
    def text(name: str) -> str:
        return (record.header(f"belfry-error-{name}") or b"").decode()

    return text("topic"), int(text("partition") or -1), int(text("offset") or -1)


def drained(report: Report) -> bool:
    """Whether nothing is missing any more (which is not to say that all is well)."""
    return not report.of("lost", "unanswered", "trigger", "refused")
