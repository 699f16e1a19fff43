"""Records that topics keep for a while: refused requests, given-up and open deliveries.

A port: the worker reads Kafka behind it (`process/kept_topics.py`), in stretches from the end of a
topic, so that no look reads a whole one.  All methods block; they are called from threads of few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from belfry.client.redrive_source import RedriveCount
from belfry.client.refired import RefireRange
from belfry.client.refusals import RedriveRange
from belfry.client.usage import UsageSpan
from belfry.tenants.policy import TenantPolicy
from belfry.wire.metering import Usage

T = TypeVar("T")
# Of the metering topic, by all tenants: a second or two.
MOST_USAGE_RECORDS: Final = 200_000
# The offset of each partition before which a look goes on.
Before = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class RejectedRequest:
    """A request that was refused, with as much of it as may be shown.

    `at_ms` is when it was refused; `source` are topic, partition and offset of where it was first
    received; `request` are its fields, where it can be read.
    """

    at_ms: int
    tenant: str | None
    code: str
    reason: str
    source: tuple[str, int | None, int | None]
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    size_bytes: int
    request: Mapping[str, Any] | None
    sample: bytes | None


@dataclass(frozen=True, slots=True)
class KeptDelivery:
    """A delivery: given up where it has a place in the topic of those, else without an end."""

    tenant: str
    schedule_id: str
    fire_id: str
    # When its record was written, and when its event fired; epoch ms.
    at_ms: int
    fired_ms: int
    state: str
    code: str
    reason: str
    # The last attempt, of so many at most.
    attempt: int
    attempts: int
    targets: tuple[str, ...]
    # Partition and offset of the given-up delivery, by which it can be replayed.
    place: tuple[int, int] | None = None


class UnreadableValue(Exception):
    """Bytes are no Avro that can be decoded here; the message says why, as a sentence."""


@dataclass(frozen=True, slots=True)
class ReadableValue:
    """The content of bytes: the full name of the Avro schema that wrote them, and the value."""

    schema: str
    value: Any


@dataclass(frozen=True, slots=True)
class KeptPage(Generic[T]):
    """The finds of one look, newest first; `rest` is the place of older ones, or None."""

    found: list[T]
    examined: int
    rest: Before | None


@dataclass(frozen=True, slots=True)
class RedriveWork:
    """The terms of a redrive: refused requests of a range, or fired events; and how.

    `per_second` is 0 to count alone. `tenant` is the tenant of the events.
    """

    asked: RedriveRange | RefireRange
    tenant: str
    per_second: int = 0
    reason: str | None = None


class KeptTopics(Protocol):
    """The worker's reads of topics for HTTP.

    All raise ConnectionError where Kafka does not answer; `request` and `avro` raise
    `RegistryUnreachableError` where the schema registry does not.
    """

    def rejected(self, tenant: str | None, before: Before | None) -> KeptPage[RejectedRequest]:
        """Refused requests of a tenant; None: of all, also those without a known tenant."""

    def dead_letters(self, tenant: str, before: Before | None) -> KeptPage[KeptDelivery]:
        """A tenant's deliveries that were given up."""

    def open_deliveries(self, tenant: str) -> KeptPage[KeptDelivery]:
        """A tenant's deliveries without an end, among the latest ones."""

    def request(
        self, tenant: str, topic: str | None, place: tuple[int, int]
    ) -> Mapping[str, Any] | None:
        """The fields of a tenant's request at a place of the request topic, masked and cut.

        None if there is none, or if `topic` is another one. A field that is cut has `…_size_bytes`
        and `…_sha256` of the whole beside it.
        """

    def avro(self, value: bytes) -> ReadableValue:
        """The content of bytes by the Avro schema that they name; raises `UnreadableValue`."""

    def usage(self, asked: UsageSpan) -> list[Usage]:
        """The usage of a tenant, by period; at most `MOST_USAGE_RECORDS` are looked at.

        Raises `MissingTopic` if usage is not metered, and `TooMuchUsage`.
        """

    def redrive(
        self, work: RedriveWork, policies: Mapping[str, TenantPolicy]
    ) -> tuple[RedriveCount, int]:
        """Counts of the records to send again and of the sent ones; by policies of all tenants.

        Raises `SharedTopic`, `TooMuchToRedrive`, `AnotherRedrive` and `Unavailable`.
        """

    def replay(self, tenant: str, place: tuple[int, int]) -> bool:
        """Deliver the given-up event at this place again; whether there is one."""
