"""The state of a delivery: its targets, the number of its attempts, and when it is given up.

The state travels beside the fired event, as the header `belfry-delivery`: JSON with its format
first. It has all that a dispatcher needs, so a dispatcher keeps no state and reads no policies.

    fire ─► one delivery for each target of strategy ALL, each with an end of its own
            one for all targets of FIRST_AVAILABLE, one for all of ROUND_ROBIN

A retry carries the same state with the next attempt number.

    attempt   1          2          3          4           …      at most 10, or a day
    waits        1-1.25 s   2-2.5 s    4-5 s      8-10 s   …      at most an hour and a quarter

The wait is doubled each time, and up to a quarter is added so that deliveries that failed together
are not tried together. That share is a hash of fire and attempt, so a dispatcher that does its step
again computes the same instant. A retry is a schedule of belfry's own tenant `RETRIES`: it is kept
and fired like every other schedule, and is as safe against loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any, Final
from zlib import crc32

import orjson

from belfry.schedules.header_secrets import references_of
from belfry.schedules.target_kinds import problems_of
from belfry.schedules.targets import (
    MAX_TARGETS,
    STRATEGIES,
    HttpTarget,
    Strategy,
    encode_targets,
    is_typed,
    targets_from,
)
from belfry.tenants.policy import TenantPolicy

FORMAT: Final = 1
HEADER: Final = "belfry-delivery"
# The key of the fired record, if its request gave one; the delivery itself has another key.
KEY_HEADER: Final = "belfry-record-key"
# Retries are schedules of this tenant, and fire into the topic of deliveries.
RETRIES: Final = "belfry-deliveries"
RETRY_SHARDS: Final = 64

MAX_ATTEMPTS: Final = 10
INITIAL_MS: Final = 1_000
LONGEST_MS: Final = 3_600_000
MAX_AGE_MS: Final = 86_400_000
_DOUBLINGS: Final = 40
# A policy may have any number; a record cannot hold an instant that is further away than this.
_LONGEST_WAIT_MS: Final = 366 * 86_400_000
_INT: Final = 2**31 - 1
_LONG: Final = 2**63 - 1
# The least and the most of each number of a state: as wide as policies and schemas are.
_BOUNDS: Final = {
    "number": (0, _INT),
    "attempt": (1, _INT),
    "attempts": (1, _INT),
    "initial_ms": (0, _LONG),
    "max_ms": (0, _LONG),
    "age_ms": (0, _LONG),
}


class UnknownDelivery(ValueError):
    """A state that this release cannot read."""


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """One delivery: `number` tells those of a fire apart, `tell` asks for a DELIVERED record.

    With `acks` its arrival acknowledges the fire, for which something waits. `refs` are the secrets
    that its targets name and that the tenant's policy allowed when the event fired.

    `attempt` counts from 1, and `attempts` is the most attempts there may be. `initial_ms` and
    `max_ms` bound the wait between two attempts; `age_ms` is the longest time from the fire to the
    last one. `hosts` is the policy's `allowed_hosts` when the event fired; an empty one allows
    every host.
    """

    targets: tuple[HttpTarget, ...]
    strategy: Strategy = "ALL"
    number: int = 0
    attempt: int = 1
    attempts: int = MAX_ATTEMPTS
    initial_ms: int = INITIAL_MS
    max_ms: int = LONGEST_MS
    age_ms: int = MAX_AGE_MS
    hosts: tuple[str, ...] = ()
    tell: bool = False
    acks: bool = False
    refs: tuple[str, ...] = ()

    def next_attempt(self) -> DeliveryState:
        """The state of the next attempt."""
        return replace(self, attempt=self.attempt + 1)

    def order(self, schedule_id: str, occurrence: int) -> tuple[HttpTarget, ...]:
        """The targets of this attempt, in the order in which they are tried.

        ROUND_ROBIN begins each occurrence with the next target, and each retry with the one after
        that; schedules begin at different targets, spread evenly.
        """
        if self.strategy != "ROUND_ROBIN":
            return self.targets
        turn = crc32(schedule_id.encode()) + occurrence
        return (self.targets[(turn + self.attempt - 1) % len(self.targets)],)

    def wait_ms(self, fire_id: str) -> int:
        """The wait after this attempt has failed: doubled each time, plus up to a quarter."""
        doublings = min(self.attempt - 1, _DOUBLINGS)
        most_ms = min(max(self.max_ms, self.initial_ms), _LONGEST_WAIT_MS)
        wait_ms = min(self.initial_ms << doublings, most_ms)
        return wait_ms + self._share(fire_id, wait_ms // 4)

    def _share(self, fire_id: str, most: int) -> int:
        """From 0 to `most`, spread evenly over fires and attempts; equal on all machines."""
        key = f"{fire_id}/{self.number}/{self.attempt}".encode()
        return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") % (most + 1)


def first_states(
    targets: Sequence[HttpTarget], policy: TenantPolicy, *, tell: bool, acks: bool = False
) -> tuple[bytes, ...]:
    """The states of a fire's deliveries, encoded; empty if there are no targets.

    Numbers go by the order alone, FIRST_AVAILABLE, ROUND_ROBIN, so the same targets give the same
    numbers in each attempt to fire.
    """
    together = [
        tuple(target for target in targets if target.strategy == strategy)
        for strategy in ("FIRST_AVAILABLE", "ROUND_ROBIN")
    ]
    alone = [(target,) for target in targets if target.strategy == "ALL"]
    return tuple(
        encode_state(replace(_first(number, each, policy), tell=tell, acks=acks))
        for number, each in enumerate(each for each in (*alone, *together) if each)
    )


def _first(number: int, targets: tuple[HttpTarget, ...], policy: TenantPolicy) -> DeliveryState:
    of_policy = policy.retry_max_attempts or MAX_ATTEMPTS
    return DeliveryState(
        targets,
        targets[0].strategy,
        number,
        attempts=max(target.max_attempts or of_policy for target in targets),
        initial_ms=_given(policy.retry_initial_ms, INITIAL_MS),
        max_ms=_given(policy.retry_max_ms, LONGEST_MS),
        age_ms=_given(policy.retry_max_age_ms, MAX_AGE_MS),
        hosts=policy.allowed_hosts,
        refs=_refs(targets, policy),
    )


def _refs(targets: Sequence[HttpTarget], policy: TenantPolicy) -> tuple[str, ...]:
    """The secrets that these targets name, as far as the policy allows it."""
    named = dict.fromkeys(ref for target in targets for ref in references_of(target.headers))
    return tuple(ref for ref in named if ref in policy.secret_refs)


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def encode_state(state: DeliveryState) -> bytes:
    """The header's value; flags that came with later releases are left out if they are not set."""
    record: dict[str, Any] = {"v": FORMAT, **asdict(state)}
    if not state.acks:
        del record["acks"]
    if not state.refs:
        del record["refs"]
    record["targets"] = orjson.Fragment(encode_targets(state.targets))
    return orjson.dumps(record)


def decode_state(encoded: bytes) -> DeliveryState:
    """The state in a header's value; `UnknownDelivery` if this release cannot act on the value.

    A returned state needs no further check: one bad record must not stop the others.
    """
    try:
        record = orjson.loads(encoded)
        if record.pop("v") != FORMAT:
            raise UnknownDelivery("another format")
        targets = targets_from(record.pop("targets"))
        hosts, refs = _texts(record.pop("hosts")), _texts(record.pop("refs", []))
        state = DeliveryState(targets, hosts=hosts, refs=refs, **record)
        _check(state)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnknownDelivery(f"{HEADER} is no delivery's: {encoded[:60]!r} ({error})") from None
    return state


def _texts(given: Any) -> tuple[str, ...]:
    if type(given) is not list or not set(map(type, given)) <= {str}:
        raise UnknownDelivery("hosts or refs are no list of texts")
    return tuple(given)


def _check(state: DeliveryState) -> None:
    """Raise `UnknownDelivery` for a field of another type, or out of its bounds."""
    for name, (least, most) in _BOUNDS.items():
        value = getattr(state, name)
        if type(value) is not int or not least <= value <= most:
            raise UnknownDelivery(f"{name} is no number from {least} to {most}")
    if (type(state.tell), type(state.acks)) != (bool, bool):
        raise UnknownDelivery("tell or acks is neither true nor false")
    if not 1 <= len(state.targets) <= MAX_TARGETS:
        raise UnknownDelivery(f"{len(state.targets)} targets instead of 1 to {MAX_TARGETS}")
    if not {state.strategy, *(each.strategy for each in state.targets)} <= set(STRATEGIES):
        raise UnknownDelivery("an unknown strategy")
    for target in state.targets:
        if not is_typed(target):
            raise UnknownDelivery("a target with a field of another type")
        for problem in problems_of(target):
            raise UnknownDelivery(problem)


def retry_policy(topic: str) -> TenantPolicy:
    """The policy of the tenant of retries: its events go to the topic of deliveries.

    It is spread over 64 shards, because the retries of all tenants are its schedules. Retries that
    are over are forgotten: clients never ask for them by id.
    """
    return TenantPolicy(RETRIES, output_topic=topic, spread=RETRY_SHARDS, remember_ms=0)
