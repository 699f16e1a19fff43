"""What is said of a recovery that was not committed, or of which that is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from belfry.kafka import librdkafka
from belfry.recovery import changelog_writer
from belfry.recovery.changelog_writer import ChangelogWriter
from belfry.recovery.partition_evidence import CannotRecover
from belfry.recovery.recovery_plan import LOG, NOTHING, RecoveryPlan
from belfry.recovery.recovery_write import RecoveryWriter
from belfry.settings import Settings
from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest
from belfry.store.ordered_map import MemoryMap
from belfry.store.row_judge import Judge
from belfry.store.schedules import ScheduleStore
from belfry.store.signatures import FILLER, SIGNATURE, RowKeys, is_signed
from belfry.wire.worker_keys import Purpose

HERE = Identity("cluster-a", "log-1", "in-1", 1)
MANIFEST = Manifest(60, 1, 50, 0, 7, 0, bytes(16))
PLAN = RecoveryPlan(3, LOG, None, MANIFEST, 50, HERE, rewrites=False, earlier_input=False, lines=[])
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


@pytest.mark.parametrize(
    ("transaction_ms", "wait_s"), [(60_000, 54.0), (900_000, changelog_writer.COMMIT_S)]
)
def test_a_commit_is_waited_for_less_than_the_broker_does(
    monkeypatch: pytest.MonkeyPatch, transaction_ms: int, wait_s: float
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(librdkafka, "Producer", Producer)
    monkeypatch.setattr(
        Producer, "commit_transaction", lambda _, within_s: waited.append(within_s), raising=False
    )
    ChangelogWriter(Settings(), 3, transaction_ms).commit()
    assert waited == [wait_s]


def written(monkeypatch: pytest.MonkeyPatch, fails: str, error: KafkaError) -> str:
    """What is said of a recovery whose producer fails so."""
    monkeypatch.setattr(Producer, "fails", fails)
    monkeypatch.setattr(Producer, "error", error)
    monkeypatch.setattr(librdkafka, "Producer", Producer)
    with pytest.raises(CannotRecover) as said:
        RecoveryWriter(Settings(), 3).write(FOUND, PLAN)
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


class Kept(Producer):
    """A producer that keeps what is produced, and tells where it lies; a stranger may write too."""

    stranger_at = -1

    def __init__(self, _properties: dict[str, Any]) -> None:
        self.records: list[tuple[bytes, bytes | None, Any]] = []
        self.called: list[str] = []
        self._told: list[Any] = []
        self._end = LOG_END - 1

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.called.append(name)

    def produce(
        self,
        _topic: str,
        value: bytes | None,
        key: bytes,
        *,
        partition: int,
        headers: Any,
        on_delivery: Any,
    ) -> None:
        assert partition == 3
        if key != FILLER:
            self.records.append((key, value, headers))
        at, self._end = self._end, self._end + 1 + (len(self.records) == self.stranger_at)
        self._told.append(partial(on_delivery, None, SimpleNamespace(offset=lambda: at)))

    def flush(self, _seconds: float) -> None:
        told, self._told = self._told, []
        for each in told:
            each()


def recovering(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> tuple[RecoveryWriter, Callable[[], Manifest]]:
    """A recovery that writes tombstones of all that the log holds, identity and manifest."""
    monkeypatch.setattr(librdkafka, "Producer", Kept)
    rows = MemoryMap()
    rows.write({keys.named_key(name): b"\x01\x06row" for name in (b"t/a", b"t/b")})
    found: Any = SimpleNamespace(logged=MANIFEST, store=ScheduleStore(rows), here=HERE)
    writer = RecoveryWriter(settings, 3)
    plan = replace(PLAN, base=NOTHING, rewrites=True)
    return writer, lambda: writer.write(found, plan)


def recovered(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> list[tuple[bytes, bytes | None, Any]]:
    """What a recovery writes."""
    writer, write = recovering(monkeypatch, settings)
    write()
    kept: Any = writer._log.producers[0]
    return list(kept.records)


LOG_END = 120
SECRET = "a secret that all workers share"


@pytest.mark.parametrize("changelog", ["signed", "required"])
def test_all_that_a_recovery_writes_is_signed_where_workers_sign(
    monkeypatch: pytest.MonkeyPatch, changelog: Any
) -> None:
    settings = Settings(changelog=changelog, http_worker_secret=SECRET)
    written = recovered(monkeypatch, settings)
    by = RowKeys(settings.worker_keys(Purpose.CHANGELOG)[0], HERE.changelog, 3)
    judge = Judge([by], required=True)
    told = {
        key: judge.row(LOG_END + at, key, value, partial(dict(headers).get, SIGNATURE))
        for at, (key, value, headers) in enumerate(written)
    }
    assert all(known for known, _ in told.values())
    assert [key for key, row, _ in written if row is None] == [b"t/a", b"t/b"]
    assert told[keys.IDENTITY_KEY][1] == encode_identity(HERE)
    assert list(told)[-1].startswith(keys.MANIFEST_PREFIX)
    elsewhere = Judge([by], required=True)
    for at, (key, value, headers) in enumerate(written):
        proof = partial(dict(headers).get, SIGNATURE)
        assert elsewhere.row(LOG_END + at + 1, key, value, proof)[0] is False


@pytest.mark.parametrize("stranger_at", [0, 1, 4])
def test_a_recovery_is_rolled_back_where_a_stranger_writes_in_between(
    monkeypatch: pytest.MonkeyPatch, stranger_at: int
) -> None:
    monkeypatch.setattr(Kept, "stranger_at", stranger_at)
    settings = Settings(changelog="required", http_worker_secret=SECRET)
    writer, write = recovering(monkeypatch, settings)
    with pytest.raises(CannotRecover, match=r"nothing was committed: .* was signed for .*"):
        write()
    kept: Any = writer._log.producers[0]
    assert "abort_transaction" in kept.called
    assert "commit_transaction" not in kept.called


def test_nothing_is_signed_where_workers_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    written = recovered(monkeypatch, Settings(http_worker_secret=SECRET))
    assert not any(headers for _, _, headers in written)
    assert not any(value is not None and is_signed(value) for _, value, _ in written)


def test_a_commit_whose_records_were_not_told_of_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Untold(Kept):
        def __getattr__(self, name: str) -> Any:
            if name == "commit_transaction":
                raise SystemError("amid callbacks")
            return super().__getattr__(name)

    writer, write = recovering(monkeypatch, Settings())
    monkeypatch.setattr(writer._log, "_producer", Untold({}))
    with pytest.raises(CannotRecover, match="not known whether the recovery was committed"):
        write()


def test_who_cannot_fence_by_all_ids_gives_up_those_that_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []

    class Second(Kept):
        def __init__(self, properties: dict[str, Any]) -> None:
            super().__init__(properties)
            made.append(self)

        def init_transactions(self, _seconds: float) -> None:
            if self is made[1]:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    given_up: list[Any] = []
    monkeypatch.setattr(librdkafka, "Producer", Second)
    monkeypatch.setattr(changelog_writer, "give_up", given_up.append)
    with pytest.raises(CannotRecover, match="cannot be fenced"):
        RecoveryWriter(Settings(), 3)
    assert given_up == made
