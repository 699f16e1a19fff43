"""How a transaction ends that cannot be rolled back either."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.engine.effects import Effects
from belfry.worker import transactions
from belfry.worker.outcome import Unknown
from belfry.worker.transactions import Outlets, PartitionProducer, Surroundings


def failure(code: int, *, fatal: bool = False, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, "no", fatal, False, abort))


def end_of(cause: int, monkeypatch: pytest.MonkeyPatch) -> BaseException:
    """How a step ends that fails by this, when the broker knows of no transaction to abort."""
    client = MagicMock()
    client.commit_transaction.side_effect = failure(cause, abort=True)
    client.abort_transaction.side_effect = failure(KafkaError.INVALID_TXN_STATE, fatal=True)
    monkeypatch.setattr(transactions, "Producer", lambda _properties: client)
    outlets = Outlets("c", "s", "r", "l", b"", "d", b"", lambda _topic: 1)
    around = Surroundings(outlets, MagicMock(), MagicMock())
    effects: Any = Effects(rows={b"\0": b"manifest"})
    with pytest.raises(Exception) as raised:  # noqa: PT011  # which one is what is asked for
        PartitionProducer({}, 0, around).commit(effects)
    return raised.value


def test_a_right_that_is_missing_is_remembered_where_nothing_could_be_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = end_of(KafkaError.TOPIC_AUTHORIZATION_FAILED, monkeypatch)
    assert isinstance(end, Unknown)
    assert end.barred


def test_another_failure_bars_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    end = end_of(KafkaError.INVALID_RECORD, monkeypatch)
    assert isinstance(end, Unknown)
    assert not end.barred
