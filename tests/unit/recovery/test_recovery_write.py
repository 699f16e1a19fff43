"""What is said of a recovery that was not committed, or of which that is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.recovery import recovery_write
from belfry.recovery.recovery_plan import LOG, Plan
from belfry.recovery.recovery_write import Writer
from belfry.recovery.rewind import CannotRecover
from belfry.settings import Settings
from belfry.store.identity import Identity
from belfry.store.layout.records import Manifest

HERE = Identity("cluster-a", "log-1", "in-1", 1)
MANIFEST = Manifest(60, 1, 50, 0, 7, 0, bytes(16))
PLAN = Plan(3, LOG, None, MANIFEST, 50, HERE, rewrites=False, earlier_input=False, lines=[])
FOUND: Any = SimpleNamespace(logged=MANIFEST)


class Producer:
    """A producer of which one call fails."""

    fails = ""
    error = KafkaError(KafkaError._TIMED_OUT)

    def __init__(self, _properties: dict[str, Any]) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> None:
            if name == self.fails:
                raise KafkaException(self.error)

        return call


def written(monkeypatch: pytest.MonkeyPatch, fails: str, error: KafkaError) -> str:
    """What is said of a recovery whose producer fails so."""
    monkeypatch.setattr(Producer, "fails", fails)
    monkeypatch.setattr(Producer, "error", error)
    monkeypatch.setattr(recovery_write, "Producer", Producer)
    with pytest.raises(CannotRecover) as said:
        Writer(Settings(), 3).write(FOUND, PLAN)
    return str(said.value)


@pytest.mark.parametrize(
    "error",
    [
        KafkaError(KafkaError._TIMED_OUT, "too late", False, True),
        KafkaError(KafkaError._FENCED, "fenced", True, False),
    ],
    ids=["no answer", "fenced"],
)
def test_a_commit_without_an_answer_is_not_known(
    monkeypatch: pytest.MonkeyPatch, error: KafkaError
) -> None:
    said = written(monkeypatch, "commit_transaction", error)
    assert said.startswith(f"it is not known whether the recovery was committed ({error.str()})")
    assert "`belfry recover`" in said
    assert "nothing was committed" not in said


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        ("begin_transaction", KafkaError(KafkaError._FENCED, "fenced", True, False)),
        ("produce", KafkaError(KafkaError._MSG_TIMED_OUT, "late")),
        ("commit_transaction", KafkaError(KafkaError._MSG_TIMED_OUT, "late", False, False, True)),
    ],
    ids=["begin", "produce", "has to be aborted"],
)
def test_what_is_known_not_to_be_committed_is_said(
    monkeypatch: pytest.MonkeyPatch, fails: str, error: KafkaError
) -> None:
    assert written(monkeypatch, fails, error).startswith("nothing was committed (")
