"""Fired events, sent again: the selected events of a tenant's output topic, and their copies.

    belfry.fired.demo/0   41 order/1   42 order/2         57 order/1, belfry-redriven: redrive@41

A copy has the key, value and headers of the event, its fire id among them, and lies in the same
partition, behind it.  Its header `belfry-redriven` has the name of the redrive and the offset of
the event.  So it is its own mark: under one name an event is sent again once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from confluent_kafka import Message

from belfry.client.errors import BelfryError
from belfry.client.redrive_source import Resent, offset_of
from belfry.tenants.policy import TenantPolicy
from belfry.wire.headers import FIRE_ID, REDRIVEN, TENANT
from belfry.wire.record import Headers

NAME: Final = "redrive"
_SCHEDULE_ID: Final = "belfry-schedule-id"


class RefireRange(NamedTuple):
    """Which events: from an instant on and before one (epoch ms, of when they fired).

    Of one schedule, or of those whose ids begin with a prefix; `name` is that of the redrive.  Of
    one tenant if `tenant` is given: for a topic that tenants share.
    """

    from_ms: int
    until_ms: int
    schedule_id: str | None = None
    prefix: str = ""
    name: str = NAME
    tenant: str | None = None


class SharedTopic(BelfryError):
    """Policies of several tenants name one topic, and an old event does not say whose it is."""

    def __init__(self, topic: str, others: list[str]) -> None:
        super().__init__(f"{topic} has the events of {', '.join(others[:5])} too")
        self.topic = topic


def refire_topic(tenant: str, policies: Mapping[str, TenantPolicy], prefix: str) -> str:
    """Where the events of a tenant come out; topics of belfry's own begin with `prefix`.

    Old events carry no tenant, so those of a topic that several policies name cannot be told apart,
    and it raises `SharedTopic`.  Those of the topic of `output` SHARED can: name their tenant.
    """
    if tenant in policies and policies[tenant].is_shared:
        return f"{prefix}fired"
    topics = {name: each.output_topic for name, each in policies.items()}
    topic = topics.get(tenant)
    if topic is None:
        return f"{prefix}fired.{tenant}"
    others = sorted(name for name, each in topics.items() if each == topic and name != tenant)
    if others:
        raise SharedTopic(topic, others)
    return topic


class FiredSource:
    """The events of a range in an output topic, for `Redrive`."""

    def __init__(self, topic: str, asked: RefireRange) -> None:
        self.topic = topic
        self.from_ms = asked.from_ms
        self._asked = asked

    def marked(self, headers: Headers) -> int | None:
        """The offset of the event that a copy of this redrive is one of."""
        name, _, offset = _copied(headers).rpartition("@")
        return offset_of(offset) if name == self._asked.name and self._is_ours(headers) else None

    def wanted(self, at_ms: int, headers: Headers) -> tuple[str, str | None] | None:
        """The schedule of an event of the range; None for copies, and for others' records."""
        asked, schedule_id = self._asked, _last(headers, _SCHEDULE_ID)
        if at_ms >= asked.until_ms or not _last(headers, FIRE_ID) or _copied(headers):
            return None
        named = asked.schedule_id in (None, schedule_id) and self._is_ours(headers)
        return (schedule_id, None) if named and schedule_id.startswith(asked.prefix) else None

    def again(self, message: Message, headers: Headers) -> list[Resent]:
        """The copy of an event."""
        partition = message.partition() or 0
        mark = f"{self._asked.name}@{message.offset()}".encode()
        copied = [*headers, (REDRIVEN, mark)]
        return [Resent(self.topic, message.key(), message.value(), copied, partition)]

    def _is_ours(self, headers: Headers) -> bool:
        """Whether it is of the tenant that is asked for; on a topic of one tenant all are."""
        return self._asked.tenant in (None, _last(headers, TENANT))


def _copied(headers: Headers) -> str:
    """Belfry's headers of a copy; empty for an event, whatever its user's own headers."""
    ids = [number for number, (name, _) in enumerate(headers) if name == FIRE_ID]
    return _last(headers[ids[-1] :], REDRIVEN) if ids else ""


def _last(headers: Headers, name: str) -> str:
    """The last header of a name as text: belfry's come behind the user's."""
    found = [value for header, value in headers if header == name]
    return (found[-1] or b"").decode(errors="replace") if found else ""
