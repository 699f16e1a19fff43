"""Who waits for an acknowledgement: how many of a group are awaited, and what ends a wait (I27).

    steps       7              8                9               10
    fires       s1             ·                ·               s2, of the same serial group
    requests    ·              ·                ACK of s1       ·
    awaited     s1             s1               ─               s2

A fire leaves only where its group has room, and its own schedule has none awaited.  An
acknowledgement counts once, and only while its fire is awaited; a time-out is told once, and not
before it is over.  Firing comes before intake in a step, so room is made for the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tests.simulation.broker import Entry
from tests.simulation.bulk import Definition
from tests.simulation.sent import Sent
from tests.simulation.taking import Seen, Taken
from tests.simulation.trail import Step, headers_of

TIME_OUT, TERMINATED = "ack_timeout", "terminated"
ACK: Final = "ACK"


@dataclass(slots=True)
class AwaitedFire:
    """A fire that is to be acknowledged: of whom, how many of its group at once, until when."""

    sent: Sent
    step: Step
    at_once: int
    until_ms: int


def at_once_of(sent: Sent) -> int:
    """How many fires of its group may be awaited with one of these; 0 where it is not awaited."""
    return 1 if sent.fields.get("serial") else int(sent.fields.get("concurrency") or 0)


def nominal_ms(entry: Entry) -> int:
    """The instant that a fired record is for."""
    told = headers_of(entry)["belfry-scheduled-at"].decode()
    return round(datetime.fromisoformat(told).timestamp() * 1000)


class AcksSeen:
    """What was awaited in a world: `over` has the step that ended each wait, by the fire's id.

    `acked` has the acknowledgements that counted, of each schedule (tenant and id), as they were
    taken in.
    """

    def __init__(self, seen: Seen) -> None:
        self.problems: list[str] = []
        self.over: dict[str, Step] = {}
        self.acked: dict[tuple[str, str], list[Taken]] = {}
        self._definitions = seen.definitions
        self._requests = seen.of_actions(ACK)
        self._awaited: dict[str, AwaitedFire] = {}
        for steps in seen.partitions:
            for step in steps:
                self._step(step)
        for fire_id, fire in self._awaited.items():
            self.problems.append(f"I27 {fire.sent.name}: fire {fire_id} is awaited for ever")

    def _step(self, step: Step) -> None:
        ended = {e["fire_id"]: e for e in step.told if e["code"] in (TIME_OUT, TERMINATED)}
        for _, entry in step.fired:
            headers = headers_of(entry)
            definition = self._definitions.get((entry.value or b"").decode())
            if definition is not None and headers["belfry-occurrence"] != b"-1":
                self._fired(definition, entry, step, ended)
        for fire_id, event in ended.items():
            self._end(fire_id, event, step)
        for taken in self._requests.get((step.partition, step.index), ()):
            self._acknowledged(taken)

    def _fired(
        self, definition: Definition, entry: Entry, step: Step, ended: dict[str, dict[str, Any]]
    ) -> None:
        sent = definition.sent
        own = [i for i, f in self._awaited.items() if f.sent is sent and sent.fields.get("overlap")]
        for fire_id in own:
            if ended.get(fire_id, {}).get("code") == TERMINATED:
                self._end(fire_id, ended.pop(fire_id), step)
            else:
                self._wrong(sent, f"fired while its fire {fire_id} was awaited")
        group = sent.fields.get("group")
        awaited = [
            fire.at_once
            for fire in self._awaited.values()
            if fire.at_once and fire.sent.tenant == sent.tenant
            if fire.sent.fields.get("group") == group
        ]
        if awaited and len(awaited) >= min(awaited):
            self._wrong(sent, f"fired while {len(awaited)} of group {group} were awaited")
        at_once = at_once_of(sent)
        if at_once or sent.fields.get("overlap"):
            until_ms = nominal_ms(entry) + sent.fields["ack_timeout_ms"]
            fire_id = headers_of(entry)["belfry-fire-id"].decode()
            self._awaited[fire_id] = AwaitedFire(sent, step, at_once, until_ms)

    def _end(self, fire_id: str, event: dict[str, Any], step: Step) -> None:
        """A wait was told to be over."""
        fire = self._awaited.pop(fire_id, None)
        if fire is None:
            what = f"I27 {event['schedule_id']}: {event['code']} of a fire that nobody awaits"
            self.problems.append(what)
            return
        self.over[fire_id] = step
        early_ms = fire.until_ms - round(event["at"].timestamp() * 1000)
        if event["code"] == TIME_OUT and early_ms > 0:
            self._wrong(fire.sent, f"timed out {early_ms} ms early")
        if event["code"] == TERMINATED and fire.sent.fields["overlap"] != "TERMINATE_OTHER":
            self._wrong(fire.sent, "was terminated, which it does not ask for")

    def _acknowledged(self, taken: Taken) -> None:
        sent, fire_id = taken.sent, taken.sent.fields["fire_id"]
        if taken.outcome == "DUPLICATE":
            return
        is_awaited = fire_id in self._awaited
        if is_awaited is not (taken.outcome == "UPDATED"):
            self._wrong(sent, f"(ACK) ended in {taken.outcome}; awaited: {is_awaited}")
        if is_awaited:
            del self._awaited[fire_id]
            self.over[fire_id] = taken.step
            self.acked.setdefault((sent.tenant, sent.schedule_id), []).append(taken)

    def _wrong(self, sent: Sent, what: str) -> None:
        self.problems.append(f"I27 {sent.name} {what}")
