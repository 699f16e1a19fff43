"""Tenants go by their policy while it changes: paused, so many fires, so many that wait (I37).

    policy      paused ───────────────────┐ goes on ──────────────────►
    known       ·    ├── by all owners    ·    ├── by all owners
    fires       may  │ none               │ may

An owner follows a policy when it has read it, and a step goes by one policy from begin to end.  So
in the first `SLACK_MS` behind a change either policy may be in force, and what is asked is what
both of them ask.  Who lives at least once may have records beside transactions, and more than one
of a fire (`beside`).  Limits are those of a partition, and a new owner begins to count anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.acks import nominal_ms
from tests.simulation.beside import LATEST_MS, beside_of
from tests.simulation.stores import PENDING, bare
from tests.simulation.taking import Seen
from tests.simulation.trail import FIRED, Step, headers_of

if TYPE_CHECKING:
    from tests.simulation.world import World

# How soon everybody goes by a new policy, steps that are under way included.
SLACK_MS: Final = 2_000
# What is saved up of a rate at most, beside the first one.
BURST_MS: Final = 100
LOOSE: Final = "AT_LEAST_ONCE"
PAUSED, FIRES, WAITING = "paused", "max_fires_per_second", "max_pending"
# By the code of who is refused.
LIMITS: Final = {"too_many_pending": WAITING, "too_many_requests": "max_requests_per_second"}


class Governed:
    """What the policies said, and when."""

    def __init__(self, world: World) -> None:
        self._said: defaultdict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for at_ms, policy in world.policies.written:
            self._said[policy["tenant"]].append((at_ms, policy))

    def of(self, tenant: str, name: str, from_ms: int, until_ms: int) -> list[Any]:
        """What may have been in force in a range; None stands for no limit."""
        found: list[Any] = []
        at_first = None
        for at_ms, policy in self._said.get(tenant, ()):
            if at_ms > until_ms:
                break
            if at_ms <= from_ms - SLACK_MS:
                found.clear()
            elif not found:
                found.append(at_first)
            at_first = policy.get(name)
            found.append(at_first)
        return found or [None]

    def may_refuse(self, tenant: str, code: str, at_ms: int) -> bool:
        """Whether such a limit was in force at an instant."""
        return any(each is not None for each in self.of(tenant, LIMITS[code], at_ms, at_ms))


def check_governed(world: World, partitions: list[list[Step]], seen: Seen) -> list[str]:
    """All that is wrong with how tenants went by policies that changed."""
    if not world.scenario.changes:
        return []
    governed = Governed(world)
    found: list[str] = []
    for steps in partitions:
        found += _fires(governed, steps)
        found += _waiting(governed, steps, seen)
    found += _beside(world, governed)
    return [f"I37 {what}" for what in found]


def _fires(governed: Governed, steps: list[Step]) -> Iterator[str]:
    """Nothing fires of who is paused, and no more than a rate allows."""
    fired: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for step in steps:
        epoch = -1 if step.manifest is None else step.manifest.epoch
        # Late occurrences of one schedule (FIRE_ALL) leave together, and use up the rate behind.
        seen: set[bytes | None] = set()
        for topic, entry in step.fired:
            headers = headers_of(entry)
            if headers["belfry-occurrence"] == b"-1":
                # Somebody asked for that one.
                continue
            tenant, at_ms = topic.removeprefix(FIRED), entry.timestamp_ms
            if entry.value not in seen:
                fired[tenant, epoch].append(at_ms)
            seen.add(entry.value)
            if all(governed.of(tenant, PAUSED, at_ms, at_ms)):
                yield f"{entry.value!r} of {tenant} fired at {at_ms}, and {tenant} is paused"
    for (tenant, _), instants in fired.items():
        yield from _beyond_rate(governed, tenant, sorted(instants))


def _beyond_rate(governed: Governed, tenant: str, instants: list[int]) -> Iterator[str]:
    for first, from_ms in enumerate(instants):
        for last in range(first + 1, len(instants)):
            until_ms = instants[last]
            rates = governed.of(tenant, FIRES, from_ms, until_ms)
            if None in rates:
                break
            span_ms = until_ms - from_ms + SLACK_MS + BURST_MS
            most = 1 + max(rates) * span_ms / 1_000
            if last - first + 1 > most:
                yield f"{last - first + 1} of {tenant} fired from {from_ms} to {until_ms}: {rates}"
                return


def _waiting(governed: Governed, steps: list[Step], seen: Seen) -> Iterator[str]:
    """A new schedule comes in where there is room, and is refused where there is none."""
    taken = defaultdict(list)
    for each in seen.taken:
        taken[each.step.partition, each.step.index].append(each)
    waits: set[bytes] = set()
    for step in steps:
        before, ended = set(waits), set[bytes]()
        for entry in step.rows:
            key, record = entry.key or b"", bare(entry.value or b"")
            if key[:1] != b"\0" and record[1:2] == bytes([PENDING]):
                waits.add(key)
            elif key in waits:
                waits.discard(key)
                ended.add(key)
        for each in taken[step.partition, step.index]:
            sent, at_ms = each.sent, step.rows[0].timestamp_ms
            limits = governed.of(sent.tenant, WAITING, at_ms, at_ms)
            if each.outcome != "ACCEPTED" or None in limits or sent.stray:
                continue
            mine = [key for key in before - ended if key.startswith(sent.tenant.encode() + b"/")]
            if (
                len(mine) >= max(limits)
                and f"{sent.tenant}/{sent.schedule_id}".encode() not in mine
            ):
                yield f"{sent.name} was accepted beside {len(mine)} others; allowed: {limits}"


def _beside(world: World, governed: Governed) -> Iterator[str]:
    """What left beside transactions is allowed to; repeats are what they repeat; none is early."""
    for fire_id, records in beside_of(world).items():
        if len({(topic, entry.key, entry.value) for topic, _, entry in records}) != 1:
            yield f"{fire_id!r} stands on records that differ"
        for topic, _, entry in records:
            tenant, at_ms = topic.removeprefix(FIRED), entry.timestamp_ms
            if LOOSE not in governed.of(tenant, "guarantee", at_ms - round(LATEST_MS), at_ms):
                yield f"{entry.value!r} of {tenant} left beside transactions"
            early_ms = nominal_ms(entry) - at_ms
            if early_ms > world.scenario.early_ms:
                yield f"{entry.value!r} of {tenant} left {early_ms} ms early"
