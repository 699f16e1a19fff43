"""Features of brokers: Kafka's ApiVersions (v3, KIP-511 and KIP-584), which tells ranges of
requests and features.

librdkafka sends this request too, but does not show the answer; aiokafka reads versions without
features. A broker does not name its release. But the highest level of `metadata.version` that it
supports grows with its release.

    supported   metadata.version 30     the newest that this broker knows: it is a 4.3
    finalized   metadata.version 25     the cluster has switched this on: features of 4.0
                transaction.version 2   each transaction has an epoch of its own (KIP-890)

Features come as tagged fields behind the answer (KIP-482), in bytes that aiokafka leaves alone;
`_levels` reads them.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from belfry.host.errors import named
from belfry.kafka.security import group_client_security
from belfry.kafka.topic_rules import TopicProblem

ADD_PARTITIONS_TO_TXN: Final = 24
# The first version of that request by which a broker verifies partitions of a transaction.
VERIFIES: Final = 4
METADATA: Final = "metadata.version"
TRANSACTION: Final = "transaction.version"
# The highest level of `metadata.version` that each release brought.
RELEASES: Final = (
    (1, "3.0"), (2, "3.1"), (3, "3.2"), (7, "3.3"), (8, "3.4"), (11, "3.5"), (14, "3.6"),
    (19, "3.7"), (20, "3.8"), (21, "3.9"), (25, "4.0"), (27, "4.1"), (29, "4.2"), (30, "4.3"),
)  # fmt: skip
# A release with a fault that can hide the transactions of an owner.
ENDS_WITHOUT_MARKERS: Final = "4.3"
# Seconds for all brokers together.
ANSWER_S: Final = 10.0
# Seconds for one broker, so that a broker that is away leaves time to close the connections.
ONE_ANSWER_S: Final = 5.0
_TAGS: Final = ("tags", TaggedFields)
_SUPPORTED, _FINALIZED = 0, 2
# A broker that is away, and answers that are cut off or not of this protocol.
_UNTOLD: Final = (
    KafkaError, OSError, ValueError, NotImplementedError, IndexError, struct.error,
)  # fmt: skip


class Features(NamedTuple):
    """Features of one broker: levels that it supports, those in effect, versions of requests."""

    supported: Mapping[str, int]
    finalized: Mapping[str, int]
    requests: Mapping[int, int]

    @property
    def release(self) -> str:
        """The release of the broker, as far as it is known; else empty.

        It is the release of the highest known level that the broker supports, or ``later than`` the
        last known one.
        """
        level = self.supported.get(METADATA, 0)
        known = [name for least, name in RELEASES if least <= level]
        newer = level > RELEASES[-1][0]
        return f"later than {known[-1]}" if newer else known[-1] if known else ""


class _Answer(Response):  # type: ignore[misc]
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        (
            "api_versions",
            CompactArray(("api_key", Int16), ("min_version", Int16), ("max_version", Int16), _TAGS),
        ),
        ("throttle_time_ms", Int32),
        _TAGS,
    )


class _Question(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = 18
    API_VERSION = 3
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("client_software_name", CompactString("utf-8")),
        ("client_software_version", CompactString("utf-8")),
        _TAGS,
    )

    def parse_response_header(self, read_buffer: Any) -> Any:
        """The old header: the client does not know yet which versions the broker understands."""
        return ResponseHeader_v0.decode(read_buffer)


class _ApiVersions(Request[_Question]):  # type: ignore[misc]
    API_KEY = 18
    ALLOW_UNKNOWN_API_VERSION = True

    def build(self, request_struct_class: type[_Question]) -> _Question:
        """The request."""
        return request_struct_class("belfry", "1", {})


def ask_brokers(properties: Mapping[str, Any]) -> dict[str, Features | str]:
    """Features of each broker, by its number, or why they are unknown.

    It runs an event loop of its own and blocks, so it must not be called on one. Raises
    ConnectionError if no broker answers.
    """
    try:
        return asyncio.run(asyncio.wait_for(_ask(dict(properties)), ANSWER_S))
    except (*_UNTOLD, TimeoutError) as error:
        raise ConnectionError(named(error)) from error


async def _ask(properties: dict[str, Any]) -> dict[str, Features | str]:
    """The answers of all brokers of the cluster, asked at once over one client."""
    client = AIOKafkaClient(
        bootstrap_servers=str(properties["bootstrap.servers"]).split(","),
        client_id="belfry-features",
        **group_client_security(properties),
    )
    await client.bootstrap()
    try:
        numbers = [broker.nodeId for broker in client.cluster.brokers()]
        found = await asyncio.gather(*(ask_features(client, number) for number in numbers))
        return {str(number): each for number, each in zip(numbers, found, strict=True)}
    finally:
        await client.close()


async def ask_features(client: Any, number: int) -> Features | str:
    """Features of one broker, or why they are unknown: it is away, or its answer is unreadable."""
    try:
        answer = await asyncio.wait_for(client.send(number, _ApiVersions()), ONE_ANSWER_S)
        return features_in(answer.api_versions, answer.tags)
    except TimeoutError:
        return f"no answer within {ONE_ANSWER_S:.0f} s"
    except _UNTOLD as error:
        return named(error)


def features_in(versions: Any, tags: Mapping[int, bytes]) -> Features:
    """The features in an answer; they are tagged fields, which come as bytes."""
    return Features(
        _levels(tags.get(_SUPPORTED, b""), highest_first=False),
        _levels(tags.get(_FINALIZED, b""), highest_first=True),
        {each[0]: each[2] for each in versions},
    )


def _levels(encoded: bytes, *, highest_first: bool) -> dict[str, int]:
    """Highest levels by name, in a compact array of name, two levels and tags."""
    found: dict[str, int] = {}
    if not encoded:
        return found
    count, at = _varint(encoded, 0)
    for _ in range(count - 1):
        size, at = _varint(encoded, at)
        name, at = encoded[at : at + size - 1].decode(), at + size - 1
        levels = [int.from_bytes(encoded[at + i : at + i + 2], "big") for i in (0, 2)]
        found[name] = levels[0] if highest_first else levels[1]
        tags, at = _varint(encoded, at + 4)
        for _ in range(tags):
            _, at = _varint(encoded, at)
            size, at = _varint(encoded, at)
            at += size
    return found


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of variable length at a place, and the place behind it.

    Seven bits a byte, the lowest first; the highest bit says that another byte follows (KIP-482).
    """
    value = shift = 0
    while True:
        byte = encoded[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def feature_problems(broker: str, features: Features, *, hands_on: bool) -> list[TopicProblem]:
    """Features that promises rest on and a broker lacks.

    `hands_on`: it gives its partitions away when it stops (`controlled.shutdown.enable`) and holds
    some that have no other replica. `broker` is its name in the problems, such as ``broker 1``.
    None of the problems refuses a start: an old cluster keeps working, and its operator is told the
    risk.
    """
    found = []
    if features.requests.get(ADD_PARTITIONS_TO_TXN, 0) < VERIFIES:
        found.append(
            TopicProblem(
                broker,
                f"it does not verify transactions (release {features.release or 'unknown'})",
                "run Kafka 3.6 or later",
                fatal=True,
                why="a transaction may hang open for ever, and hides all that follows it (KIP-890)",
                refuses=False,
            )
        )
    if features.release == ENDS_WITHOUT_MARKERS and hands_on:
        found.append(
            TopicProblem(
                broker,
                f"release {features.release} may end transactions without their markers where a"
                " partition has a single replica",
                "give topics more replicas, set controlled.shutdown.enable=false on a lone broker,"
                " or run 4.2.2",
                fatal=False,
                why="committed records of an owner may be hidden (KAFKA-20734)",
                refuses=False,
            )
        )
    return found
