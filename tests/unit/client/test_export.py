"""What waits is read to the end of the changelog, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from belfry.client import export
from belfry.client.export import HiddenChangelog, waiting_records


class End:
    """A message that says that nothing follows, for now."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._PARTITION_EOF)


class Broker:
    """A changelog of one partition: `stable` is how far it can be read, look by look."""

    def __init__(self, end: int, *stable: int) -> None:
        self.end, self._stable = end, list(stable)

    def consumer(self, _group: str, **_: Any) -> Broker:
        return self

    def partitions(self, _consumer: object, _topic: str) -> list[int]:
        return [0]

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, self.end

    def assign(self, _places: object) -> None:
        return None

    def consume(self, *_: object) -> list[End]:
        return [End(self._stable.pop(0))] if self._stable else []

    def close(self) -> None:
        return None


def read(broker: Any) -> list[bytes]:
    return list(waiting_records(broker, "belfry.changelog", "g"))


def test_what_an_open_transaction_hides_is_waited_for() -> None:
    assert read(Broker(30, 11, 11, 30)) == []


def test_what_stays_hidden_is_not_left_out_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PATIENCE_S", 0.0)
    with pytest.raises(HiddenChangelog, match=r"beyond offset 11, and ends at 30.*belfry doctor"):
        read(Broker(30, 11, 11, 11))
