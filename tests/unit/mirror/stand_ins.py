"""A cluster in memory as a mirror meets it: logs, a consumer of them, and a side."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from belfry.kafka import librdkafka
from belfry.mirror.beginnings import Ends
from belfry.mirror.marks import KINDS, MirrorMark
from belfry.store.identity import Identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.records import Marker, encode_marker
from belfry.store.row_judge import Judge

DAY_MS: Final = 86_400_000
CHANGELOG_TOPIC: Final = "belfry.changelog"
REQUESTS_TOPIC: Final = "belfry.schedules"
ROW: Final = encode_marker(Marker(0, 1_003, 1_000, 7, 1, 1))


class FakeMessage:
    """A record, or an error in place of one."""

    def __init__(
        self, topic: str | None, offset: int, key: bytes = b"k", value: bytes | None = ROW, *,
        code: int | None = None, headers: list[tuple[str, bytes]] | None = None, at_ms: int = 1_000,
    ) -> None:  # fmt: skip
        self._told = topic, offset, key, value, headers, at_ms
        self._error = None if code is None else KafkaError(code)

    def topic(self) -> str | None:
        return self._told[0]

    def offset(self) -> int:
        return self._told[1]

    def key(self) -> bytes:
        return self._told[2]

    def value(self) -> bytes | None:
        return self._told[3]

    def headers(self) -> list[tuple[str, bytes]] | None:
        return self._told[4]

    def timestamp(self) -> tuple[int, int]:
        return 1, self._told[5]

    def error(self) -> KafkaError | None:
        return self._error


class FakeLogs:
    """Topics of one partition, and what else their next reader is told.

    While it is `cut_off` nothing comes, and whoever asks for ends gets no answer.
    """

    def __init__(self) -> None:
        self.logs: dict[str, list[FakeMessage]] = {f"belfry.{each}": [] for each in KINDS}
        self.errors: list[FakeMessage] = []
        self.cut_off = False

    def add(
        self, topic: str, key: bytes = b"k", value: bytes | None = ROW,
        headers: list[tuple[str, bytes]] | None = None, at_ms: int = 1_000,
    ) -> None:  # fmt: skip
        log = self.logs[topic]
        log.append(FakeMessage(topic, len(log), key, value, headers=headers, at_ms=at_ms))

    def seal(self, number: int = 1, position: int = 0) -> None:
        """End a transaction of the changelog."""
        manifest = Manifest(number, 1, position, 900, 1, 0, bytes(16))
        self.add(CHANGELOG_TOPIC, keys.manifest_key(number), encode_manifest(manifest))

    def readable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let consumers read these."""
        monkeypatch.setattr(librdkafka, "Consumer", lambda _: FakeConsumer(self))
        monkeypatch.setattr(librdkafka, "Message", FakeMessage)


class FakeConsumer:
    """Reads what it is assigned, and tells each end once."""

    def __init__(self, cluster: FakeLogs) -> None:
        self._cluster = cluster
        self._at: dict[str, int] = {}
        self._ended: set[str] = set()

    def assign(self, places: list[TopicPartition]) -> None:
        self._at = {each.topic: each.offset for each in places}
        self._ended = set()

    def poll(self, _wait_s: float) -> FakeMessage | None:
        if self._cluster.errors:
            return self._cluster.errors.pop(0)
        if self._cluster.cut_off:
            return None
        for topic, at in self._at.items():
            log = self._cluster.logs[topic]
            if at < len(log):
                self._at[topic] += 1
                self._ended.discard(topic)
                return log[at]
            if topic not in self._ended:
                self._ended.add(topic)
                return FakeMessage(topic, at, code=KafkaError._PARTITION_EOF)
        return None

    def consume(self, at_most: int, _wait_s: float) -> list[FakeMessage]:
        found: list[FakeMessage] = []
        while len(found) < at_most and (message := self.poll(0)) is not None:
            found.append(message)
        return found

    def get_watermark_offsets(self, place: TopicPartition, *_: Any, **__: Any) -> tuple[int, int]:
        if self._cluster.cut_off:
            # What passes is asked again for seconds.
            raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        return 0, len(self._cluster.logs[place.topic])

    def close(self) -> None:
        pass


def fake_side(name: str, cluster: FakeLogs, mark: MirrorMark | None = None, **more: Any) -> Any:
    """A side of one partition whose mark is this one."""
    settings = SimpleNamespace(
        kafka_properties=dict, topic=lambda kind: f"belfry.{kind}", worker_keys=lambda _: (),
        bootstrap_servers=f"kafka-{name}:9092",
    )  # fmt: skip

    def bounds(kind: str, _: int) -> Any:
        end = len(cluster.logs[f"belfry.{kind}"])
        return SimpleNamespace(ends=lambda: (0, end), log_end=lambda: end)

    def ends(_: int) -> Ends:
        end = len(cluster.logs[CHANGELOG_TOPIC])
        return Ends(end == 0, end)

    told: dict[str, Callable[..., Any]] = {
        "judge": lambda _: Judge(), "mark": lambda _: mark, "bounds": bounds, "ends": ends,
        "last_manifest": lambda _: None, "kinds_of": lambda _: frozenset(KINDS),
    }  # fmt: skip
    here = Identity(f"cluster-{name}", f"log-{name}", f"in-{name}")
    given = {**told, "homes": 1, "kinds": frozenset(KINDS), "tombstones_ms": DAY_MS}
    given |= {"grown_from": 0, **more}
    return SimpleNamespace(name=name, settings=settings, here=here, **given)
