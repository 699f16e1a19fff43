"""The auditor of recurring schedules: each occurrence fired, or was stood for, or was given up.

It walks each rhythm's nominal instants by arithmetic of its own, and holds against them what came
out: fired records, and the MISSED events, which say how many occurrences were given up from which
instant on.

    nominal   0    1    2    3    4    5    6        every index is covered exactly once:
    fired     ●    ●              ●         ●          by a record of its own,
    MISSED              └─ 2 ─┘        └1┘             or by one MISSED event

What was given up has to have been late by then, and a record says in `belfry-missed` for how many
others it stands.  The records of an AT_LEAST_ONCE tenant leave beside their transaction, so a crash
may leave one behind whose occurrence is judged anew, and given up then: what counts for such a
tenant are the records whose FIRED event was committed.  Shares no code with belfry.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from tests.acceptance.harness.evidence import Finding
from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.rhythms import AWAITED, ENVELOPED, HOOKED, LOOSE, Asked, Rhythm

RHYTHM_INVARIANTS: Final = {
    "refused": "A valid request was not accepted.",
    "unanswered": "A request has no verdict, or several.",
    "off_beat": "A record's instant is none of its rule's.",
    "doubled": "An instant has more than one record, or a record and a MISSED event.",
    "uncovered": "An instant has no record, and nothing says that it was given up.",
    "hasty": "An instant was given up before it was late.",
    "missed": "A record stands for another number of occurrences than did not fire before it.",
    "numbers": "Occurrences are not numbered 0, 1, 2 ... in the order of their instants.",
    "early": "A record was appended before its nominal instant.",
    "ended": "Something fired that was due after an accepted cancel.",
    "paused": "Something fired while its schedule was paused.",
    "incomplete": "A schedule with an end did not come to it, or not once.",
    "trigger": "The extra records are not those of the TRIGGERED verdicts.",
    "overlap": "Something fired while the fire before was awaited.",
    "hook": "A fire has not exactly one end of its delivery.",
    "content": "A record's value or key is not what was asked for.",
    "told": "A record has no FIRED event, or a FIRED event no record.",
}
# Records of one transaction are appended one partition after the other.
APART_MS: Final = 400
_GIVEN_UP: Final = re.compile(
    r"(\d+) occurrences? did not fire, from (\S+) (?:on: the one of (\S+) fires)?"
)


@dataclass
class RhythmEvidence:
    """What an audit looks at; `lifecycle` holds decoded events with `appended_ms`."""

    rhythms: list[Rhythm]
    acks: dict[str, Asked]
    fired: list[Record] = field(default_factory=list)
    lifecycle: list[dict[str, Any]] = field(default_factory=list)
    hooked: bool = False


def audit_rhythms(evidence: RhythmEvidence) -> list[Finding]:
    """All findings, rhythm by rhythm."""
    fires: dict[str, list[Record]] = defaultdict(list)
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in evidence.fired:
        fires[(record.header("belfry-schedule-id") or b"").decode()].append(record)
    verdicts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in evidence.lifecycle:
        told[event["schedule_id"]].append(event)
        if event["request_id"]:
            verdicts[event["request_id"]].append(event)
    found: list[Finding] = []
    for one in evidence.rhythms:
        judge = _Judge(one, fires.pop(one.schedule_id, []), told[one.schedule_id], verdicts)
        judge.acks, judge.hooked = evidence.acks, evidence.hooked
        found += judge.run()
    strays = {name for name, records in fires.items() if records}
    found += [Finding("off_beat", f"off_beat: {name} was never asked for") for name in strays]
    return found


class _Judge:
    """Judges one rhythm."""

    def __init__(
        self,
        one: Rhythm,
        fires: list[Record],
        told: list[dict[str, Any]],
        verdicts: dict[str, list[dict[str, Any]]],
    ) -> None:
        self._one = one
        self._told = told
        self._extras = [r for r in fires if r.header("belfry-occurrence") == b"-1"]
        self._told_fires = {e["fire_id"] for e in told if e["outcome"] == "FIRED"}
        self._fires = self._regular(fires)
        self._verdicts = verdicts
        self._found: list[Finding] = []
        self._cancelled: dict[str, Any] | None = None
        # A change that came after the end is a schedule of its own, under the same name.
        self._begins_again = False
        self.acks: dict[str, Asked] = {}
        self.hooked = False

    def run(self) -> list[Finding]:
        """All findings about it."""
        accepted = self._verdict(self._one.request_id)
        if accepted is None:
            return self._found
        if accepted["outcome"] != "ACCEPTED":
            self._find("refused", f"{accepted['outcome']} {accepted['code']}: {accepted['reason']}")
            return self._found
        self._judge_later()
        if not self._begins_again:
            self._judge_records()
            self._judge_coverage()
            self._judge_waiting()
        return self._found

    def _find(self, invariant: str, sentence: str) -> None:
        assert invariant in RHYTHM_INVARIANTS
        one = self._one
        rule = (
            f"{one.kind} {one.interval_ms} {one.misfire} limit {one.limit_ms}"
            f" jitter {one.jitter_ms} {one.overlap or one.group} {one.table or ''}"
        )
        text = f"{invariant}: {one.tenant}/{one.schedule_id} ({rule}): {sentence}"
        self._found.append(Finding(invariant, text))

    def _regular(self, fires: list[Record]) -> list[Record]:
        """Records of the rule, by instant; more than was told only where the tenant allows it."""
        rule = [r for r in fires if r.header("belfry-occurrence") != b"-1"]
        if self._one.tenant == LOOSE:
            rule = list({_fire_id(r): r for r in rule if _fire_id(r) in self._told_fires}.values())
        return sorted(rule, key=_nominal_ms)

    def _verdict(self, request_id: str) -> dict[str, Any] | None:
        events = self._verdicts.get(request_id, [])
        if len(events) != 1:
            self._find("unanswered", f"{request_id} has {len(events)} verdicts")
            return None
        return events[0]

    # -- what else was asked ---------------------------------------------------------------------

    def _judge_later(self) -> None:
        paused: dict[str, Any] | None = None
        triggered = 0
        for asked in self._one.later:
            verdict = self._verdict(asked.request_id)
            outcome = verdict["outcome"] if verdict else ""
            if outcome == "CANCELLED":
                self._cancelled = verdict
            elif outcome == "TRIGGERED":
                triggered += 1
            elif outcome == "PAUSED":
                paused = verdict
            elif outcome == "RESUMED" and paused is not None and verdict is not None:
                self._judge_pause(paused["appended_ms"], verdict["appended_ms"])
            elif outcome == "ACCEPTED":
                self._begins_again = True
        extras = {r.header("belfry-fire-id") for r in self._extras}
        if len(extras) != triggered or (
            len(self._extras) != triggered and self._one.tenant != LOOSE
        ):
            self._find("trigger", f"{triggered} TRIGGERED, {len(self._extras)} extra records")

    def _judge_pause(self, from_ms: int, until_ms: int) -> None:
        for record in self._fires:
            if from_ms + APART_MS < record.timestamp_ms < until_ms - APART_MS:
                self._find("paused", f"{_where(record)} fired between {from_ms} and {until_ms}")

    # -- records ---------------------------------------------------------------------------------

    def _judge_records(self) -> None:
        records = {_fire_id(record) for record in self._fires}
        if records != self._told_fires:
            differ = sorted(records ^ self._told_fires)
            self._find(
                "told", f"{len(records)} records, {len(self._told_fires)} told: {differ[:3]}"
            )
        numbers = [int(record.header("belfry-occurrence") or b"-9") for record in self._fires]
        if numbers != list(range(len(numbers))):
            self._find("numbers", f"{numbers}")
        for record in self._fires:
            if record.timestamp_ms < _nominal_ms(record):
                self._find("early", f"{_where(record)}")
            if not self._is_as_asked(record):
                self._find("content", f"{_where(record)}: {record.key!r} {record.value!r:.40}")
            cancelled = self._cancelled
            if cancelled is not None and _nominal_ms(record) > cancelled["appended_ms"]:
                self._find("ended", f"{_where(record)}, CANCELLED at {cancelled['appended_ms']}")

    def _is_as_asked(self, record: Record) -> bool:
        key = (self._one.group or self._one.schedule_id).encode()
        # An update sets the other payload; an envelope holds either.
        framed = self._one.tenant == ENVELOPED
        return record.key == key and (framed or record.value in (b"0", b"1"))

    # -- coverage --------------------------------------------------------------------------------

    def _judge_coverage(self) -> None:
        fired = [_nominal_ms(record) for record in self._fires]
        given_up = self._given_up()
        last_ms = max([*fired, *(last for *_, last in given_up)], default=0)
        beats = self._beats(max(last_ms, self._one.end_ms or 0) + self._one.interval_ms)
        place = {nominal: index for index, nominal in enumerate(beats)}
        covered: Counter[int] = Counter()
        for nominal in fired:
            if nominal not in place:
                self._find("off_beat", f"{nominal} is none of {beats[:3]} ...")
                return
            covered[place[nominal]] += 1
        for event, number, first_ms, _ in given_up:
            if first_ms not in place:
                self._find("off_beat", f"{first_ms} was given up, {beats[:3]} ...: {event}")
                return
            indexes = _indexes(event, number, place[first_ms], place)
            if indexes[-1] >= len(beats):
                self._find("off_beat", f"more were given up than there are: {event}")
                return
            covered.update(indexes)
            self._judge_haste(event, beats[indexes[-1]])
        self._judge_counts(covered, beats)
        self._judge_missed([place[nominal] for nominal in fired], given_up, place)
        self._judge_end(covered, beats)

    def _given_up(self) -> list[tuple[dict[str, Any], int, int, int]]:
        """Each MISSED event, how many it tells of, the first one, and about the last one."""
        found = []
        for event in self._told:
            match = _GIVEN_UP.match(event["reason"] or "")
            if event["outcome"] == "MISSED" and match is not None:
                number, first_ms = int(match[1]), _epoch_ms(match[2])
                last_ms = first_ms + (number - 1) * self._one.interval_ms
                found.append((event, number, first_ms, last_ms))
        return found

    def _judge_haste(self, event: dict[str, Any], last_ms: int) -> None:
        if event["code"] == "overlap" or self._one.overlap == "QUEUE_ONE":
            return
        if event["appended_ms"] < last_ms + self._one.limit_ms:
            self._find("hasty", f"{last_ms} was given up at {event['appended_ms']}: {event}")

    def _judge_counts(self, covered: Counter[int], beats: list[int]) -> None:
        twice = [beats[index] for index, times in covered.items() if times > 1]
        if twice:
            self._find("doubled", f"{sorted(twice)[:5]}")
        holes = [beats[index] for index in range(max(covered, default=-1)) if not covered[index]]
        if holes:
            self._find("uncovered", f"{len(holes)}: {holes[:5]}")

    def _judge_missed(
        self,
        fired: list[int],
        given_up: list[tuple[dict[str, Any], int, int, int]],
        place: dict[int, int],
    ) -> None:
        """A record stands for what a MISSED event says that it fires for, and nothing else."""
        stood_for: Counter[int] = Counter()
        for event, number, _, _ in given_up:
            if (instead := place.get(_fires_ms(event))) is not None:
                stood_for[bisect_left(fired, instead)] += number
        for index, record in enumerate(self._fires):
            missed = int(record.header("belfry-missed") or b"0")
            if missed != stood_for[index]:
                sentence = (
                    f"{_where(record)} says {missed}, {stood_for[index]} were given up for it"
                )
                self._find("missed", sentence)

    def _judge_end(self, covered: Counter[int], beats: list[int]) -> None:
        one = self._one
        completed = [event for event in self._told if event["outcome"] == "COMPLETED"]
        if self._cancelled is not None:
            if completed:
                self._find("incomplete", "it was cancelled and COMPLETED")
            return
        if len(completed) != 1:
            self._find("incomplete", f"{len(completed)} times COMPLETED, {len(covered)} covered")
        elif one.max_fires is not None and one.end_ms is None:
            if len(self._fires) != one.max_fires:
                self._find("incomplete", f"{len(self._fires)} fires of {one.max_fires}")
        elif one.end_ms is not None:
            wanted = sum(1 for beat in beats if beat <= one.end_ms)
            # With a number, too, it may have ended by that.
            if len(covered) != wanted and len(self._fires) != one.max_fires:
                self._find("incomplete", f"{len(covered)} of {wanted} are covered")

    def _beats(self, until_ms: int) -> list[int]:
        """Nominal instants up to about then."""
        one, step = self._one, self._one.interval_ms
        if one.table is not None:
            return one.table.instants(one.appended_ms, until_ms)
        if one.kind == "CRON":
            first_ms = one.appended_ms // step * step + step
        elif one.start_ms is None:
            first_ms = one.appended_ms + step
        else:
            behind = max(0, -(-(one.appended_ms - one.start_ms) // step))
            first_ms = one.start_ms + behind * step
        return list(range(first_ms, until_ms + step, step))

    # -- what waits ------------------------------------------------------------------------------

    def _judge_waiting(self) -> None:
        if self._one.tenant == AWAITED:
            ordered = sorted(self._fires, key=lambda record: record.timestamp_ms)
            for record, following in pairwise(ordered):
                free_ms = self._released_ms(record)
                if following.timestamp_ms < free_ms - APART_MS:
                    self._find("overlap", f"{_where(following)} did not wait until {free_ms}")
        if self._one.tenant == HOOKED and self.hooked:
            ends = Counter(
                event["fire_id"] for event in self._told if event["outcome"] in _HOOK_ENDS
            )
            for record in self._fires + self._extras:
                fire_id = _fire_id(record)
                if ends[fire_id] != 1:
                    self._find("hook", f"{_where(record)} has {ends[fire_id]} ends")

    def _released_ms(self, record: Record) -> int:
        """Until when what follows this fire has to wait, as far as it is known.

        Its time-out counts from when it fired. A busy broker may append it seconds later.
        """
        fired_ms = record.timestamp_ms
        for event in self._told:
            if event["outcome"] == "FIRED" and event["fire_id"] == _fire_id(record):
                told_ms = round(event["at"].timestamp() * 1000)
                # A word that puts it before it was due, or behind its record, counts for nothing.
                if _nominal_ms(record) <= told_ms <= fired_ms:
                    fired_ms = told_ms
        until_ms = fired_ms + self._one.ack_timeout_ms
        asked = self.acks.get(_fire_id(record))
        if asked is not None and asked.request_id:
            events = self._verdicts.get(asked.request_id, [])
            until_ms = min([until_ms, *(event["appended_ms"] for event in events)])
        return until_ms


_HOOK_ENDS: Final = frozenset({"DELIVERED", "FAILED"})


def _fire_id(record: Record) -> str:
    return (record.header("belfry-fire-id") or b"").decode()


def _nominal_ms(record: Record) -> int:
    return _epoch_ms((record.header("belfry-scheduled-at") or b"").decode())


def _epoch_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _fires_ms(event: dict[str, Any]) -> int:
    """The occurrence that fires for those that were given up; -1 where none does."""
    match = _GIVEN_UP.match(event["reason"] or "")
    return _epoch_ms(match[3]) if match is not None and match[3] else -1


def _indexes(event: dict[str, Any], number: int, first: int, place: dict[int, int]) -> list[int]:
    """The places of those that were given up: a run, but for the one that fires for it.

    Of a group with jitter, that is the one that is due last, which need not be the run's last one.
    """
    run = range(first, first + number + 1)
    instead = place.get(_fires_ms(event), run[-1])
    return [each for each in run if each != (instead if instead in run else run[-1])]


def _where(record: Record) -> str:
    number = (record.header("belfry-occurrence") or b"").decode()
    return (
        f"{record.partition}@{record.offset} number {number} nominal {_nominal_ms(record)}"
        f" appended {record.timestamp_ms}"
    )
