"""Records of the topic of deliveries to work: one attempt, with all that is needed to make it.

    record ─► work_of ─► Work ─► … posted … ─► Answer ─► what follows (`follow_ups.py`)

    value       the FiredEvent, as the receiver gets it
    headers     the user's, and `belfry-delivery`: targets, attempt, limits of retries
    key         the ordering key: deliveries of a group, or of a schedule, go in order

Anybody who may write to the topic can write nonsense there, so a record is believed only after it
was decoded, and one that is not a delivery gives the reason. All of it is pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Answer
from belfry.schedules.target_kinds import kind_of
from belfry.tenants.deliveries import (
    HEADER,
    KEY_HEADER,
    DeliveryState,
    UnknownDelivery,
    decode_state,
)
from belfry.wire.fired import FiredEvent
from belfry.wire.headers import BACKFILL, SOURCE
from belfry.wire.record import Headers

# Headers that begin so are made anew for each record, and never carried on; but these are, which
# the event in a delivery does not tell.
OURS: Final = "belfry-"
TOLD: Final = frozenset({BACKFILL, SOURCE})


class NotADelivery(ValueError):
    """A record that no delivery can be made of; the message says why."""


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt that is to be made; `value` is the event as it lies in the record.

    `given_key` is the key of the fired record, where its request gave one.
    `secrets` are those of its targets' headers, by reference, for the process that only posts.
    """

    key: bytes
    value: bytes
    event: FiredEvent
    # The user's headers, without belfry's own but those of `TOLD`.
    headers: Headers
    # Targets, attempt and limits, as the record's header says them.
    state: DeliveryState
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    given_key: bytes | None = None

    @property
    def ordering_key(self) -> tuple[bytes, int]:
        """The ordering key: a group, or a schedule, at one set of targets."""
        return self.key, self.state.number

    @property
    def fired_key(self) -> bytes:
        """The key of the fired record: given, else its group's name or its schedule's."""
        if self.given_key is not None:
            return self.given_key
        return (self.event.group or self.event.schedule_id).encode()

    @property
    def hosts(self) -> list[str]:
        """Places that this attempt may wait for: hosts with their ports, topics."""
        event = self.event
        order = self.state.order(event.schedule_id, event.occurrence)
        return [kind_of(target).share(target.url) for target in order]


class WorkId(NamedTuple):
    """Which record a piece of work came from, and in which term of ownership it was read."""

    term: int
    partition: int
    offset: int


# Takes each piece back once, with its answer; a sender calls it from its own thread.
Finished = Callable[[WorkId, Work, Answer], None]


def work_of(key: bytes | None, value: bytes | None, headers: Headers, decoder: Decoder) -> Work:
    """The work in a record; raises `NotADelivery` if it has none.

    Anybody who may write to the topic can write nonsense there, so a record is believed only after
    it was decoded.
    """
    # A user may send a header of this name; belfry's own comes behind it.
    states = [given for name, given in headers if name == HEADER and given is not None]
    if value is None or not states:
        raise NotADelivery(f"the record has no value, or no header {HEADER}")
    # Without the headers: one that frames the user's payload does not frame this record.
    record = decoder.record(value)
    if record is None:
        raise NotADelivery("the record's value is no FiredEvent")
    try:
        state = decode_state(states[-1])
    except UnknownDelivery as error:
        raise NotADelivery(str(error)) from None
    kept = [(name, given) for name, given in headers if name in TOLD or not name.startswith(OURS)]
    keys = [given for name, given in headers if name == KEY_HEADER]
    given_key = keys[-1] if keys else None
    return Work(key or b"", value, FiredEvent(**record), kept, state, given_key=given_key)
