"""What waits is read to the end of the changelog, or not at all."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError

from belfry.client import export
from belfry.client.export import DamagedChangelog, HiddenChangelog, waiting_records
from belfry.store.layout.keys import MANIFEST_PREFIX
from belfry.store.layout.manifests import Manifest, encode_manifest
from belfry.store.layout.pending_bytes import HEAD_OF_PENDING
from belfry.store.layout.records import HEAD_OF_MARKER
from belfry.store.row_judge import Judge
from belfry.store.signatures import PLACE, RowKeys


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
    monkeypatch.setattr(export, "TIMEOUT_S", 0.0)
    with pytest.raises(HiddenChangelog, match=r"beyond offset 11, and ends at 30.*belfry doctor"):
        read(Broker(30, 11, 11, 11))


class Record(NamedTuple):
    """A record of the changelog."""

    at: int
    name: bytes
    row: bytes | None
    proof: bytes | None = None

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return self.name

    def value(self) -> bytes | None:
        return self.row

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return "belfry.changelog"

    def partition(self) -> int:
        return 0


class Written(Broker):
    """A changelog that holds these records."""

    def __init__(self, *records: Record) -> None:
        super().__init__(len(records), len(records))
        self._records: list[Any] = list(records)

    def consume(self, *_: object) -> list[Any]:
        found, self._records = self._records, []
        return found


BY = RowKeys(b"k" * 32, "topic", 0)
ROWS = {name: HEAD_OF_PENDING + name for name in (b"t/a", b"t/b")}
LAST = encode_manifest(Manifest(1, 1, 0, 0, 1, 0, bytes(16)))


def signed(at: int, name: bytes, row: bytes | None) -> Record:
    """A record as an owner writes it, signed by place."""
    proof = PLACE + BY.token(at)
    return Record(at, name, None, proof) if row is None else Record(at, name, proof + row)


def waiting(*records: Record) -> list[bytes]:
    broker: Any = Written(*records)
    judge = Judge([BY], required=True)
    return list(waiting_records(broker, "belfry.changelog", "g", judges=lambda _: judge))


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of a test are none of the client's."""
    monkeypatch.setattr(export, "proof_of", lambda record: record.proof)


@pytest.mark.usefixtures("proofs")
def test_signed_rows_are_exported_without_their_proofs_and_strangers_left_out() -> None:
    found = waiting(
        signed(0, b"t/a", ROWS[b"t/a"]),
        signed(1, b"t/b", ROWS[b"t/b"]),
        Record(2, b"t/c", HEAD_OF_PENDING + b"a stranger's"),
        Record(3, b"t/a", None),
        Record(4, b"t/a", signed(0, b"t/a", ROWS[b"t/a"]).row),
        signed(5, b"t/b", None),
        signed(6, MANIFEST_PREFIX + b"1", LAST),
    )
    assert found == [ROWS[b"t/a"]]


@pytest.mark.usefixtures("proofs")
def test_a_row_that_only_a_stranger_left_is_missed() -> None:
    with pytest.raises(DamagedChangelog, match="holds 0 waiting schedules"):
        waiting(Record(0, b"t/a", ROWS[b"t/a"]), signed(1, MANIFEST_PREFIX + b"1", LAST))


def test_without_the_secret_nothing_is_exported() -> None:
    broker: Any = Written(signed(0, b"t/a", ROWS[b"t/a"]))
    with pytest.raises(DamagedChangelog, match="BELFRY_HTTP_WORKER_SECRET"):
        read(broker)


def test_a_schedule_that_is_over_is_not_exported() -> None:
    fold, pending, marker = export.Fold(Judge()), HEAD_OF_PENDING + b"row", HEAD_OF_MARKER + b"x"
    for value in (pending, marker):
        fold.take(Logged(b"t/a", value))  # type: ignore[arg-type]
        assert fold.waiting == ({b"t/a": value} if value is pending else {})


class Logged(NamedTuple):
    """A record of the changelog, as far as it is asked for."""

    name: bytes
    row: bytes

    def key(self) -> bytes:
        return self.name

    def value(self) -> bytes:
        return self.row

    def offset(self) -> int:
        return 1
