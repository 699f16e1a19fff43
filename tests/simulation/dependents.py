"""What follows acknowledgements: due by the right one, once, and given up for a reason (I28).

    requests    y after x      ACK of x, arrived at t           ACK of x, once more
    y           waits          due at t + delay, or latest_at   (counts no more)

Who waits for a group fires when all that came before it in the group have fired, and are awaited no
more; or by its `latest_at`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.simulation.acks import AcksSeen, at_once_of, nominal_ms
from tests.simulation.bulk import Definition
from tests.simulation.taking import CHANGED, Seen, Taken
from tests.simulation.trail import Step, headers_of

GIVEN_UP: Final = "never_acknowledged"
# Nothing has to be left of whom somebody waits for, for so long.
GRACE_MS: Final = 60_000


def check_dependents(seen: Seen, acks: AcksSeen) -> list[str]:
    """All that is wrong with what waits for acknowledgements."""
    checks = _Dependents(seen, acks)
    return [
        f"I28 {taken.sent.name} {what}"
        for taken in seen.taken
        if {"after_ack", "after_group"} & taken.sent.fields.keys()
        for what in checks.problems(taken)
    ]


class _Dependents:
    def __init__(self, seen: Seen, acks: AcksSeen) -> None:
        self._seen, self._acks = seen, acks
        self._by_schedule: dict[tuple[str, str], list[Taken]] = {}
        for taken in seen.taken:
            if taken.outcome in CHANGED and taken.sent.name in seen.definitions:
                key = (taken.sent.tenant, taken.sent.schedule_id)
                self._by_schedule.setdefault(key, []).append(taken)

    def problems(self, taken: Taken) -> Iterator[str]:
        """What is wrong with one that waits."""
        if taken.outcome == "REJECTED":
            yield from self._refused(taken)
            return
        definition = self._seen.definitions.get(taken.sent.name)
        if definition is None or taken.outcome not in CHANGED:
            return
        if definition.given_up_in is not None:
            yield from self._given_up(taken, definition)
        if len(definition.fired_in) != (definition.given_up_in is None):
            yield f"fired {len(definition.fired_in)} times"
            return
        for step, entry in definition.fired_in:
            due_ms = nominal_ms(entry)
            if due_ms > entry.timestamp_ms:
                yield f"fired {due_ms - entry.timestamp_ms} ms early"
            if "after_ack" in taken.sent.fields:
                yield from self._after_ack(taken, due_ms)
            elif due_ms != taken.sent.fields["latest_at"]:
                yield from self._after_group(taken, step)

    # -- one schedule ------------------------------------------------------------------------------

    def _whom(self, taken: Taken) -> tuple[str, str]:
        return taken.sent.tenant, taken.sent.fields["after_ack"]

    def _counted(self, taken: Taken) -> Taken | None:
        """The acknowledgement that counts for it: the first that was taken in behind it."""
        later = (a for a in self._acks.acked.get(self._whom(taken), ()) if a.place > taken.place)
        return next(later, None)

    def _after_ack(self, taken: Taken, due_ms: int) -> Iterator[str]:
        ack, latest_at = self._counted(taken), taken.sent.fields["latest_at"]
        if ack is None:
            if due_ms != latest_at:
                yield f"is due at {due_ms}, and nobody acknowledged"
            return
        by_ack_ms = ack.sent.appended_ms + (taken.sent.fields["ack_delay_ms"] or 0)
        wanted_ms = by_ack_ms if latest_at is None else min(by_ack_ms, latest_at)
        # The acknowledgement may have been taken in when the bound was over.
        bounded = due_ms == latest_at and _committed_ms(ack.step) >= latest_at
        if due_ms != wanted_ms and not bounded:
            yield f"is due at {due_ms}, and not at {wanted_ms}, as {ack.sent.name} says"

    def _of_whom(self, taken: Taken) -> Iterator[tuple[Taken, Definition]]:
        for each in self._by_schedule.get(self._whom(taken), ()):
            if each.place < taken.place:
                yield each, self._seen.definitions[each.sent.name]

    def _refused(self, taken: Taken) -> Iterator[str]:
        """Who is refused waits for one that is over, and says no instant besides."""
        if taken.sent.fields.get("latest_at") is not None or "after_group" in taken.sent.fields:
            yield "was refused, and nobody has to be there"
        for each, definition in self._of_whom(taken):
            if not self._is_over(definition, taken.step):
                yield f"was refused, and {each.sent.name} was there"

    def _given_up(self, taken: Taken, definition: Definition) -> Iterator[str]:
        step = definition.given_up_in
        assert step is not None
        if taken.sent.fields["latest_at"] is not None:
            yield "was given up, and has an instant by which it fires"
        if (ack := self._counted(taken)) is not None and ack.step.index <= step.index:
            yield f"was given up, and {ack.sent.name} acknowledged"
        for each, other in self._of_whom(taken):
            if not self._is_over(other, step):
                yield f"was given up, and {each.sent.name} was there"
            ended = [_committed_ms(end) for end in self._ends(other)]
            if ended and _committed_ms(step) - max(ended) < GRACE_MS:
                yield f"was given up too soon after {each.sent.name}"

    def _ends(self, definition: Definition) -> list[Step]:
        ids = [headers_of(e)["belfry-fire-id"].decode() for _, e in definition.fired_in]
        return [self._acks.over[each] for each in ids if each in self._acks.over]

    def _is_over(self, definition: Definition, step: Step) -> bool:
        """Whether all fires of a definition are out by a step, and none of them is awaited then."""
        fired = [at.index for at, _ in definition.fired_in]
        ends = [end.index for end in self._ends(definition)]
        is_awaited = bool(at_once_of(definition.sent)) or "overlap" in definition.sent.fields
        if definition.must_fire is False and not fired:
            return True
        last = definition.sent.fields.get("max_fires", 1)
        out = len(fired) == last and max(fired) <= step.index
        return out and (not is_awaited or (len(ends) == last and max(ends) <= step.index))

    # -- groups ------------------------------------------------------------------------------------

    def _after_group(self, taken: Taken, fired_in: Step) -> Iterator[str]:
        """All that came before it in the group were over before it fired."""
        group = taken.sent.fields["after_group"]
        for each in self._seen.taken[: taken.place]:
            sent = each.sent
            if sent.tenant != taken.sent.tenant or sent.fields.get("group") != group:
                continue
            definition = self._seen.definitions.get(sent.name)
            if definition is None or each.outcome not in CHANGED:
                continue
            if not self._is_over(definition, fired_in):
                yield f"fired before {sent.name} of group {group} was over"


def _committed_ms(step: Step) -> int:
    """When the last row of a step was appended."""
    return step.rows[-1].timestamp_ms
