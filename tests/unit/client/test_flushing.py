"""A producer that can write nothing says why, also where its client loses the error."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.client.acknowledged import flush
from belfry.client.kafka import Cluster

DENIED = KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED))


class Failing:
    """A producer whose flush fails as the client's does, amid a callback."""

    def __init__(self, cause: BaseException | None) -> None:
        self._cause = cause

    def flush(self, _timeout_s: float) -> int:
        raise SystemError("returned NULL without setting an exception") from self._cause


class Probed(Cluster):
    """A cluster of which a new producer fails for a reason, or for none."""

    def __init__(self, told: KafkaException | None) -> None:
        super().__init__("nowhere:1")
        self._told = told

    def producer(self) -> Any:
        return self

    def poll(self, _timeout_s: float) -> int:
        if self._told is not None:
            raise self._told
        return 0


def failure(cause: BaseException | None, told: KafkaException | None) -> KafkaError:
    with pytest.raises(KafkaException) as caught:
        flush(Probed(told), Failing(cause), 1.0)  # type: ignore[arg-type]  # as far as it is asked
    error: KafkaError = caught.value.args[0]
    return error


def test_an_error_that_was_raised_amid_a_callback_is_the_reason() -> None:
    assert failure(DENIED, None).code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_one_that_was_lost_is_what_a_new_producer_fails_for() -> None:
    assert failure(None, DENIED).code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_one_that_nobody_can_tell_is_told_as_final() -> None:
    assert failure(None, None).code() == KafkaError._FATAL
