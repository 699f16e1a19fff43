"""A cold worker takes its state from another one, and from the next source where that fails."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from belfry.host import machine
from belfry.host.rocks import RocksMap
from belfry.recovery import checkpoint_peers
from belfry.recovery.checkpoint_peers import PeerBusy
from belfry.recovery.checkpoint_store import CheckpointFolder
from belfry.store.checkpoint import IndexKeys, decode_index, encode_index
from tests.unit.recovery.checkpoints import FAR, INTERVAL_S, PEERS, Net, Worker, commit, row, store

ROWS = [b"%d" % each for each in range(2_000)]


@pytest.fixture
def net() -> Net:
    return Net()


@pytest.fixture
def warm(tmp_path: Path, net: Net) -> Iterator[Worker]:
    """A worker without a store that keeps a checkpoint at `FAR`, of `old`."""
    worker = Worker(tmp_path / "warm", None, net=net)
    rows = store(worker.home / "partition-3")
    commit(rows, FAR, b"old", *ROWS)
    worker.turn(rows)
    assert worker.counted("kept") == 1
    yield worker
    rows.close()


def cold_one(tmp_path: Path, net: Net, stored: Path | None = None, **given: Any) -> Worker:
    return Worker(tmp_path / "cold", stored, net=net, **given)


def came(worker: Worker) -> str:
    """Where the state of a take-over came from; what it holds is what it says."""
    rows = worker.opened()
    found = row(rows, b"old") is not None
    rows.close()
    assert {each.name for each in worker.home.iterdir()} <= {"partition-3"}
    (source,) = [each for each in ("peer", "checkpoint", "changelog") if worker.restored(each)]
    assert found is (source != "changelog")
    return source


def of_files(net: Net) -> list[tuple[str, str]]:
    """Who was asked for which piece."""
    return [(url, path) for url, path in net.asked if "?" in path]


def test_a_cold_worker_takes_what_another_one_keeps(tmp_path: Path, net: Net, warm: Worker) -> None:
    cold = cold_one(tmp_path, net)
    assert came(cold) == "peer"
    index = warm.served.index(3)
    assert index is not None
    size = decode_index(index, PEERS).size
    assert cold.bytes("fetched", source="peer") == warm.bytes("served") == size
    assert cold.local.restored_ms == cold.now_ms


def test_tables_that_it_has_are_not_fetched(tmp_path: Path, net: Net, warm: Worker) -> None:
    cold = cold_one(tmp_path, net)
    (folder,) = warm.home.glob("checkpoint-*")
    shutil.copytree(folder, cold.home / "partition-3")
    # The same tables, and a state that goes less far.
    rows = RocksMap(cold.home / "partition-3")
    commit(rows, 10, b"own")
    rows.close()
    rows = cold.opened()
    assert (row(rows, b"old"), row(rows, b"own")) == (b"\x01\x02old", None)
    rows.close()
    index = warm.served.index(3)
    assert index is not None
    tables = {each.sha256 for each in decode_index(index, PEERS).files if ".sst" in each.name}
    assert tables
    assert not {path.split("/")[-1][:64] for _, path in of_files(net)} & tables
    assert 0 < cold.bytes("fetched", source="peer") < 100_000


def flipped(_url: str, path: str, body: bytes) -> bytes:
    return body[:-1] + bytes((body[-1] ^ 1,)) if "?" in path and body else body


def row_flipped(_url: str, path: str, body: bytes) -> bytes:
    """A bit of a row, which opening the store does not look at."""
    at = len(body) // 4
    is_table = "?" in path and len(body) > 10_000
    return body[:at] + bytes((body[at] ^ 1,)) + body[at + 1 :] if is_table else body


def cut(_url: str, path: str, body: bytes) -> bytes:
    return body[:-1] if "?" in path else body


def longer(_url: str, path: str, body: bytes) -> bytes:
    return body + b"\0" if "?" in path else body


def index_flipped(_url: str, path: str, body: bytes) -> bytes:
    return body.replace(b'"pending":7', b'"pending":8') if "?" not in path else body


def missing(_url: str, path: str, body: bytes) -> bytes:
    if "?" in path:
        raise FileNotFoundError(path)
    return body


def forged(by: IndexKeys, **fields: Any) -> Any:
    """An index that says something else, proven by these keys."""

    def hurt(_url: str, path: str, body: bytes) -> bytes:
        if "?" in path:
            return body
        return encode_index(decode_index(body, PEERS)._replace(**fields), by)

    return hurt


HURTS = {
    "a bit": flipped,
    "a bit of a row": row_flipped,
    "cut short": cut,
    "longer": longer,
    "gone": missing,
    "an index with a bit": index_flipped,
    "an index without a signature": forged(IndexKeys()),
    "an index of a stranger": forged(IndexKeys((b"s" * 32,), signs=True)),
    "another partition": forged(PEERS, partition=2),
    "another cluster": forged(PEERS, cluster="cluster-b"),
    "an older incarnation of the changelog": forged(PEERS, changelog="log-0"),
    "another format": forged(PEERS, store_format=1),
    "more than there is": forged(PEERS, offset=3 * FAR),
    "long ago": forged(PEERS, written_ms=1),
}


@pytest.mark.parametrize("hurt", HURTS.values(), ids=HURTS)
def test_what_is_not_what_a_worker_signed_is_left_for_the_store_and_then_for_the_log(
    tmp_path: Path, net: Net, warm: Worker, hurt: Any
) -> None:
    maker = Worker(tmp_path / "maker", tmp_path / "stored")
    rows = store(maker.home / "partition-3")
    commit(rows, FAR, b"old", *ROWS)
    maker.turn(rows)
    rows.close()
    net.hurt = hurt
    assert came(cold_one(tmp_path, net, maker.stored)) == "checkpoint"
    shutil.rmtree(tmp_path / "cold")
    assert came(cold_one(tmp_path, net)) == "changelog"


def test_one_that_dies_amid_it_leaves_the_rest_to_another(
    tmp_path: Path, net: Net, warm: Worker
) -> None:
    second = Worker(tmp_path / "second", None, net=net)
    shutil.copytree(warm.home / "partition-3", second.home / "partition-3")
    rows = RocksMap(second.home / "partition-3")
    # It has as much, and a little more; so it is asked first.
    commit(rows, FAR + 1)
    second.turn(rows)

    def dies(url: str, path: str, body: bytes) -> bytes:
        if len([each for each, _ in of_files(net) if each == second.url]) > 2:
            net.workers.pop(second.url, None)
        if url not in net.workers:
            raise ConnectionResetError(url)
        return body

    net.hurt = dies
    cold = cold_one(tmp_path, net)
    assert came(cold) == "peer"
    asked = [url for url, _ in of_files(net)]
    assert (asked[0], asked[-1]) == (second.url, warm.url)
    assert cold.counted("refused") == 1
    rows.close()


def test_one_that_dies_without_another_leaves_the_log(
    tmp_path: Path, net: Net, warm: Worker
) -> None:
    def dies(_url: str, path: str, body: bytes) -> bytes:
        if "?" in path:
            raise ConnectionResetError("killed")
        return body

    net.hurt = dies
    assert came(cold_one(tmp_path, net)) == "changelog"


def test_one_that_is_slow_takes_no_longer_than_the_log(
    tmp_path: Path, net: Net, warm: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = cold_one(tmp_path, net)
    began_ms = cold.now_ms

    def slow(url: str, path: str, seconds: float) -> bytes:
        cold.now_ms += int(1_000 * min(seconds, 4.0))
        if seconds < 4.0 and "?" in path:
            raise TimeoutError
        return net.ask(url, path, seconds)

    monkeypatch.setattr(cold.given.peers, "_ask", slow)
    assert came(cold) == "changelog"
    # A million offsets are read in ten seconds, and at this speed it would have taken longer.
    assert cold.now_ms - began_ms <= 10_000


def test_one_that_is_busy_is_asked_again(
    tmp_path: Path, net: Net, warm: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = list[float]()
    monkeypatch.setattr(machine, "sleep", slept.append)
    cold = cold_one(tmp_path, net)

    def busy(_url: str, path: str, body: bytes) -> bytes:
        if "?" in path and len(slept) < 3:
            raise PeerBusy("busy")
        return body

    net.hurt = busy
    assert came(cold) == "peer"
    assert slept == [0.2] * 3


def test_one_that_stays_busy_is_given_up(
    tmp_path: Path, net: Net, warm: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = cold_one(tmp_path, net)

    def passes(seconds: float) -> None:
        cold.now_ms += int(seconds * 1_000)

    def busy(_url: str, path: str, body: bytes) -> bytes:
        if "?" in path:
            raise PeerBusy("busy")
        return body

    monkeypatch.setattr(machine, "sleep", passes)
    net.hurt = busy
    assert came(cold) == "changelog"


@pytest.mark.parametrize("silent", ["http://warm", "http://gone"])
def test_those_that_never_answer_hold_nobody_up(
    tmp_path: Path, net: Net, warm: Worker, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    """Neither alone nor beside one that answers."""
    monkeypatch.setattr(checkpoint_peers, "ASK_S", 0.05 if silent == warm.url else 30.0)
    cold, released = cold_one(tmp_path, net), threading.Event()
    net.workers["http://gone"] = warm
    ask = net.ask

    def answers(url: str, path: str, seconds: float) -> bytes:
        if url in (silent, "http://gone"):
            released.wait(30)
        return ask(url, path, seconds)

    monkeypatch.setattr(cold.given.peers, "_ask", answers)
    began_s = time.monotonic()
    assert came(cold) == ("changelog" if silent == warm.url else "peer")
    assert time.monotonic() - began_s < 5
    released.set()


def test_nobody_is_asked_where_the_log_is_read_at_once(
    tmp_path: Path, net: Net, warm: Worker
) -> None:
    cold_one(tmp_path, net).opened(end=50_000).close()
    assert net.asked == []


def test_the_store_is_not_asked_where_a_worker_has_one(
    tmp_path: Path, net: Net, warm: Worker
) -> None:
    stored = tmp_path / "stored"
    stored.write_bytes(b"whoever looks here fails")
    assert came(cold_one(tmp_path, net, stored)) == "peer"


def test_what_was_found_wrong_is_not_fetched_again(tmp_path: Path, net: Net, warm: Worker) -> None:
    cold = cold_one(tmp_path, net)
    cold.now_ms += INTERVAL_S * 1000
    cold.local.found_wrong()
    assert came(cold) == "changelog"


@pytest.mark.parametrize("source", ["peer", "checkpoint"])
def test_a_standby_that_is_to_stop_fetches_nothing_more(
    tmp_path: Path, net: Net, warm: Worker, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that ends, or takes the partition over, waits for it."""
    stored = tmp_path / "stored"
    other = Worker(tmp_path / "other", stored)
    rows = store(other.home / "partition-3")
    commit(rows, FAR, b"old", *ROWS)
    other.turn(rows)
    rows.close()
    if source == "checkpoint":
        net.workers.pop(warm.url)
    asked, indexes = list[str](), CheckpointFolder.indexes

    def of_store(folder: CheckpointFolder) -> dict[str, bytes]:
        asked.append("the store")
        return indexes(folder)

    monkeypatch.setattr(CheckpointFolder, "indexes", of_store)
    cold, looks = cold_one(tmp_path, net, stored), list[int]()

    def stops() -> bool:
        """After the first piece, or file."""
        looks.append(1)
        return len(looks) > 2

    opened = cold.stood_by(stops)
    assert row(opened, b"old") is None
    opened.close()
    assert {each.name for each in cold.home.iterdir()} == {"partition-3"}
    assert bool(asked) is (source == "checkpoint"), "the next source is not begun with"
    assert cold.restored("changelog") == 1
    # Nothing is wrong with the checkpoint.
    assert cold.counted("refused") == 0
    assert (len(of_files(net)) > 0) is (source == "peer")
