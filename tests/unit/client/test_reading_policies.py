"""Policies are read to the end of their topic, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition

from belfry.client import tenants
from belfry.client.errors import Unavailable
from belfry.client.tenants import TenantPolicies
from belfry.tenants.policy import TenantPolicy
from belfry.wire import framing
from belfry.wire.policies import encode_policy


class Told:
    """A policy."""

    def error(self) -> None:
        return None

    def key(self) -> bytes:
        return b"demo"

    def value(self) -> bytes:
        return framing.single_object("TenantPolicy") + encode_policy(DEMO)

    def headers(self) -> None:
        return None


class Broker:
    """A topic of one partition with one policy: readers of committed records may come to `stable`,
    and it ends at `end`."""

    def __init__(self, stable: int, end: int) -> None:
        self._stable, self._end = stable, end
        self._at = 0

    def consumer(self, _group: str, *, uncommitted: bool = False) -> Any:
        return Broker(self._end, self._end) if uncommitted else self

    def partitions(self, _client: object, _topic: str) -> list[int]:
        return [0]

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, self._stable

    def assign(self, _places: object) -> None:
        return None

    def poll(self, _timeout_s: float) -> Told | None:
        before, self._at = self._at, self._stable
        return Told() if before == 0 else None

    def consume(self, *_: object) -> list[Told]:
        return []

    def position(self, _places: object) -> list[TopicPartition]:
        return [TopicPartition("belfry.tenants", 0, self._at)]

    def close(self) -> None:
        return None


DEMO = TenantPolicy("demo", paused=True)


@pytest.fixture(autouse=True)
def plain_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of a test are none of the client's."""
    monkeypatch.setattr(tenants, "headers_of", lambda given: [None] * len(given))


def read(broker: Any) -> dict[str, TenantPolicy]:
    return TenantPolicies(broker, "belfry.").all()


def test_all_that_is_there_is_read() -> None:
    assert read(Broker(3, 3)) == {"demo": DEMO}


def test_what_an_open_transaction_hides_is_no_less_a_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tenants, "READ_S", 0.2)
    with pytest.raises(Unavailable, match=r"not read to its end.*belfry doctor"):
        read(Broker(1, 5))


def test_what_a_policy_was_is_known_while_the_topic_has_it() -> None:
    told = TenantPolicies(Broker(1, 1), "belfry.")  # type: ignore[arg-type]
    assert told.history("demo") == [DEMO]
    told = TenantPolicies(Broker(1, 1), "belfry.")  # type: ignore[arg-type]
    assert told.history("other") == []
