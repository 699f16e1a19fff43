"""What fired, against what had to: how often, when, where, and in which order (I1 to I4)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime

from tests.simulation.broker import Entry
from tests.simulation.bulk import Definition
from tests.simulation.rhythms import drift
from tests.simulation.sent import Sent
from tests.simulation.trail import FIRED, Step, headers_of

# A request that is throttled, what it met, and whether it was dropped.
Throttled = tuple[Sent, Definition, bool]


class FiresSeen:
    """Gives fired records to their definitions, and compares."""

    def __init__(self, definitions: Mapping[str, Definition], early_ms: int) -> None:
        self.problems: list[str] = []
        self._definitions = definitions
        self._early_ms = early_ms

    def _wrong(self, invariant: str, what: str) -> None:
        self.problems.append(f"{invariant} {what}")

    def compare(self, partitions: list[list[Step]], throttled: list[Throttled]) -> None:
        """Hold what fired against what had to."""
        identities: Counter[bytes] = Counter()
        extras: Counter[str] = Counter()
        for steps in partitions:
            for step in steps:
                for topic, entry in step.fired:
                    identities[headers_of(entry)["belfry-fire-id"]] += 1
                    self._fired(step, topic, entry, extras)
        for identity, times in identities.items():
            if times != 1:
                self._wrong("I1", f"fire id {identity!r} stands on {times} records")
        self._windows(throttled)
        for name, definition in self._definitions.items():
            self._fires(name, definition, extras[name])

    def _fired(self, step: Step, topic: str, entry: Entry, extras: Counter[str]) -> None:
        """Give a fired record to its definition, or count it as what somebody triggered."""
        headers, name = headers_of(entry), (entry.value or b"").decode()
        definition = self._definitions.get(name)
        if definition is None:
            self._wrong("I4", f"{name} fired and was never accepted")
            return
        self._content(definition.sent, topic, entry)
        if "belfry-backfill" in headers:
            definition.past.append((step, entry))
        elif headers["belfry-occurrence"] == b"-1":
            extras[name] += 1
        else:
            definition.fired_in.append((step, entry))
            if not definition.sent.recurs and not definition.sent.of_feature:
                self._instant(definition, entry)

    def _fires(self, name: str, definition: Definition, extras: int) -> None:
        if definition.sent.recurs:
            fired = [entry for _, entry in definition.fired_in]
            for what in drift(definition.sent, fired, self._early_ms):
                self._wrong("I16", f"{name} {what}")
            return
        if definition.sent.of_feature:
            return
        times = len(definition.fired_in)
        if definition.must_fire is False:
            if times:
                self._wrong("I2", f"{name} was cancelled or replaced, and fired {times} times")
        elif times != 1:
            self._wrong("I1", f"{name} fired {times} times")
        if extras != definition.extras:
            self._wrong("I1", f"{name}: {definition.extras} triggers, {extras} extra records")

    def _content(self, sent: Sent, topic: str, entry: Entry) -> None:
        keys = (sent.fields.get("group") or sent.schedule_id, sent.tenant)
        if topic != FIRED + sent.tenant or (entry.key or b"").decode() not in keys:
            self._wrong("I4", f"{sent.name} came out on {topic} with key {entry.key!r}")

    def _instant(self, definition: Definition, entry: Entry) -> None:
        sent, due_ms = definition.sent, definition.due_ms
        early_ms = due_ms - entry.timestamp_ms
        if early_ms > self._early_ms:
            self._wrong("I3", f"{sent.name} fired {early_ms} ms early")
        told = datetime.fromisoformat(headers_of(entry)["belfry-scheduled-at"].decode())
        if round(told.timestamp() * 1000) != due_ms:
            self._wrong("I4", f"{sent.name} is due {due_ms} and says {told}")

    def _windows(self, throttled: list[Throttled]) -> None:
        """What was throttled met what waited, or fired just before; what was not did not."""
        for sent, met, dropped in throttled:
            if not met.fired_in:
                continue
            fired_ms, window_ms = met.fired_in[0][1].timestamp_ms, sent.fields["throttle_ms"]
            if dropped and sent.appended_ms >= fired_ms + window_ms:
                self._wrong("I25", f"{sent.name} was throttled, long after {met.sent.name} fired")
            if not dropped and sent.appended_ms < met.due_ms + window_ms:
                self._wrong("I25", f"{sent.name} was taken in soon after {met.sent.name} fired")

    # -- order -----------------------------------------------------------------------------------

    def orders(self) -> None:
        """Of a group, what was pending together leaves in due order, ties as accepted."""
        groups: defaultdict[tuple[str, str], list[Definition]] = defaultdict(list)
        for definition in self._definitions.values():
            group = definition.sent.fields.get("group")
            if group and len(definition.fired_in) == 1:
                groups[definition.sent.tenant, group].append(definition)
        for name, several in groups.items():
            several.sort(key=lambda each: each.fired_in[0][1].order)
            for at, first in enumerate(several):
                for second in several[at + 1 :]:
                    if _rank(second) < _rank(first) and _together(second, first):
                        self._wrong(
                            "order", f"{name}: {second.sent.name} came after {first.sent.name}"
                        )


def _rank(definition: Definition) -> tuple[int, int]:
    return definition.due_ms, definition.seq


def _together(late: Definition, first: Definition) -> bool:
    """Whether `late` was waiting already when `first` left."""
    return late.accepted_in.order < first.fired_in[0][0].order
