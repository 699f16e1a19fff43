"""The reference model of a partition: what an engine may and must do, in a dictionary.

It knows nothing of buckets, backlogs, chunks or changelogs.  `fire` and `decide` take what the
engine did and object where the contract does not allow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from belfry.schedules.jitter import jitter_ms

DAY: Final = 24 * 3_600_000
HOUR: Final = 3_600_000

Name = tuple[str, str]


class Waiting(NamedTuple):
    """An accepted schedule; `order` is its place among those of one due instant.

    `first_ms` is when the first of the requests arrived that slide its instant.
    """

    due_ms: int
    order: int
    version: int
    definition: tuple[Any, ...]
    paused: bool = False
    first_ms: int = 0


class Over(NamedTuple):
    """A schedule that fired."""

    ended_ms: int
    version: int


@dataclass
class Model:
    """Schedules by name, and what ended lately."""

    waiting: dict[Name, Waiting] = field(default_factory=dict)
    over: dict[Name, Over] = field(default_factory=dict)
    answered: dict[Name, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    fire_ids: set[bytes] = field(default_factory=set)
    held: set[str] = field(default_factory=set)

    def copy(self) -> Model:
        """A model of its own."""
        return Model(
            dict(self.waiting),
            dict(self.over),
            dict(self.answered),
            set(self.fire_ids),
            set(self.held),
        )

    def due(self, now_ms: int) -> Iterator[tuple[Name, Waiting]]:
        """What is due by `now_ms`."""
        return (
            item for item in self.waiting.items() if item[1].due_ms <= now_ms and not item[1].paused
        )

    def fire(self, name: Name, fire_id: bytes, now_ms: int) -> None:
        """The engine fired this schedule's due instant at `now_ms`."""
        assert name in self.waiting, f"{name} fired, but it does not wait"
        assert name[0] not in self.held, f"{name} fired, but its tenant is held"
        fired = self.waiting.pop(name)
        assert not fired.paused, f"{name} fired, but it is paused"
        assert fired.due_ms <= now_ms, f"{name} fired {fired.due_ms - now_ms} ms early"
        assert fire_id not in self.fire_ids, f"{name}: fire id {fire_id!r} came twice"
        self.fire_ids.add(fire_id)
        for (tenant, other), left in self.waiting.items():
            overtaken = tenant == name[0] and not left.paused and left[:2] < fired[:2]
            assert not overtaken, f"{name} overtook {other}"
        self.over[name] = Over(now_ms, fired.version)

    def decide(self, asked: dict[str, Any], record: tuple[int, int], now_ms: int) -> str:
        """Outcome of a request that was read from a record (offset, timestamp)."""
        again = (asked["tenant"], asked["request_id"] or "")
        arrived_ms = record[1] if record[1] <= now_ms + 60_000 else now_ms
        if asked["request_id"] and again in self.answered:
            answered_ms, first = self.answered[again]
            if arrived_ms - answered_ms < HOUR:
                return "DUPLICATE" if meant(asked) == meant(first) else "CONFLICT"
        name = (asked["tenant"], asked["schedule_id"])
        outcome = self._outcome(name, asked, (record[0], arrived_ms))
        if asked["request_id"] and outcome != "REJECTED":
            # All that this model sees refused may be taken in a moment later.
            self.answered[again] = (arrived_ms, asked)
        return outcome

    def _outcome(self, name: Name, asked: dict[str, Any], record: tuple[int, int]) -> str:
        waits, over = self.waiting.get(name), self.over.get(name)
        if over is not None and record[1] - over.ended_ms >= DAY:
            over = None
        stands = waits or over
        action, version = asked["action"], stands.version if stands else 0
        if action not in ("UPSERT", "CREATE") and stands is None:
            return "NOT_FOUND"
        if asked["expected_version"] not in (None, version):
            return "CONFLICT"
        if action in ("UPSERT", "CREATE"):
            window_ms = asked["throttle_ms"]
            if window_ms and (waits or (over and record[1] - over.ended_ms < window_ms)):
                return "UNCHANGED"
            if waits is not None and action == "CREATE":
                return "CONFLICT"
            return self._keep(name, asked, record, waits)
        return "TOO_LATE" if waits is None else self._change(name, action, waits)

    def _change(self, name: Name, action: str, waits: Waiting) -> str:
        if action in ("PAUSE", "RESUME"):
            self.waiting[name] = waits._replace(paused=action == "PAUSE")
            return "UNCHANGED" if waits.paused is (action == "PAUSE") else f"{action}D"
        if action == "TRIGGER":
            return "REJECTED" if name[0] in self.held else "TRIGGERED"
        assert action == "CANCEL"
        del self.waiting[name]
        return "CANCELLED"

    def _keep(
        self, name: Name, asked: dict[str, Any], record: tuple[int, int], before: Waiting | None
    ) -> str:
        offset, timestamp_ms = record
        jitter = asked["jitter_ms"] or 0
        definition = (jitter, *(asked[each] for each in DEFINITION))
        longest_ms, first_ms = asked["max_wait_ms"], timestamp_ms
        if before is not None and before.definition == definition and longest_ms is None:
            return "UNCHANGED"
        nominal_ms = asked["at"] if asked["kind"] == "AT" else timestamp_ms + asked["delay_ms"]
        if longest_ms is not None:
            if before is not None and before.definition[-1] is not None:
                first_ms = before.first_ms
            nominal_ms = min(nominal_ms, first_ms + longest_ms)
        schedule = "/".join(name).encode()
        due_ms = nominal_ms + (jitter_ms(schedule, nominal_ms, jitter) if jitter else 0)
        version = 1 if before is None else before.version + 1
        if longest_ms is not None and before is not None:
            if (before.due_ms, before.definition) == (due_ms, definition):
                return "UNCHANGED"
        elif before is not None and before.definition[:4] == definition[:4]:
            # The same trigger: a delay that runs goes on, whatever else changes.
            due_ms = before.due_ms
        # A paused schedule that is due by the same rule stays paused, whatever else changes.
        stays = before is not None and before.paused and before.definition[:4] == definition[:4]
        self.waiting[name] = Waiting(due_ms, offset, version, definition, stays, first_ms)
        self.over.pop(name, None)
        return "ACCEPTED" if before is None else "UPDATED"


def meant(asked: dict[str, Any]) -> dict[str, Any]:
    """What a request asks for: of an action that keeps no event, only what it acts on."""
    if asked["action"] in ("UPSERT", "CREATE"):
        return asked
    return {name: asked[name] for name in ("action", "schedule_id", "expected_version")}


DEFINITION: Final = ("kind", "at", "delay_ms", "group", "payload", "key", "max_wait_ms")
