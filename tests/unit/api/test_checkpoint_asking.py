"""A worker asks another one for its checkpoint over a connection, within a time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from belfry.api.auth.access import Gate
from belfry.api.routes.app import create_app
from belfry.api.server.server import HttpServer
from belfry.api.workers.checkpoint_asking import CheckpointAsker, token_of
from belfry.api.workers.checkpoint_door import CheckpointDoor
from belfry.api.workers.parts import ApiDependencies, Open
from belfry.recovery.checkpoint_peers import PATH, PIECE_BYTES, PeerBusy, PeerCheckpoints
from belfry.settings import Settings
from belfry.store.checkpoint import CheckpointFile, decode_index
from belfry.store.fetch_budget import FetchBudget
from belfry.telemetry.metrics import Metrics
from tests.unit.api.conftest import FakeWorker
from tests.unit.recovery.checkpoints import FAR, PEERS, Net, Worker, commit, store

SECRET = "the secret of all workers"
CLOCK: Any = SimpleNamespace(wall_ms=lambda: time.time() * 1000, monotonic_ms=time.monotonic)


def asker(secret: str = SECRET) -> CheckpointAsker:
    return CheckpointAsker(Settings(http_worker_secret=secret), CLOCK)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """One that keeps a checkpoint of more than two pieces."""
    found = Worker(tmp_path / "one", None, net=Net())
    rows = store(found.home / "partition-3")
    commit(rows, FAR, *(b"%06d" % each * 100 for each in range(16_000)))
    found.turn(rows)
    yield found
    rows.close()


@pytest.fixture
def door(worker: Worker) -> CheckpointDoor:
    settings = Settings(http_worker_secret=SECRET)
    return CheckpointDoor(worker.served, token_of(settings, CLOCK), 1e12, mine="")


@pytest.fixture
def url(door: CheckpointDoor) -> Iterator[str]:
    parts = ApiDependencies(Gate(), (), CLOCK.wall_ms)
    given: Any = (None, None, None, None, None, None, door)
    parts.open(Open(*given))
    server = HttpServer(
        create_app(FakeWorker(), Metrics(CollectorRegistry()), (), parts), "127.0.0.1", 0
    )
    server.start()
    door.mine = server.url
    yield server.url
    server.stop()


def largest(index: bytes) -> CheckpointFile:
    return max(decode_index(index, PEERS).files, key=lambda each: each.size)


def test_an_index_and_a_file_come_as_they_are(url: str, worker: Worker, tmp_path: Path) -> None:
    clock: Any = SimpleNamespace(monotonic_ms=lambda: 0.0)
    peers = PeerCheckpoints(lambda _partition: [url], asker(), PEERS, clock)
    index = peers.indexes(3, FetchBudget(10 * FAR, 0.0))[url]
    assert index == worker.served.index(3)
    file = largest(index)
    assert file.size > 2 * PIECE_BYTES
    peers.get_file((url, 3), file, tmp_path / "copy", FetchBudget(10 * FAR, 0.0))
    (original,) = worker.home.glob(f"checkpoint-3.*/{file.name}")
    assert (tmp_path / "copy").read_bytes() == original.read_bytes()


def test_what_is_not_there_is_told_apart(url: str) -> None:
    with pytest.raises(FileNotFoundError):
        asker()(url, f"{PATH}/2", 5.0)
    with pytest.raises(FileNotFoundError):
        asker()(url, f"{PATH}/3/{'ab' * 32}?from=0", 5.0)


def test_one_that_serves_enough_says_so(url: str, worker: Worker, door: CheckpointDoor) -> None:
    index = worker.served.index(3)
    assert index is not None
    for _ in range(4):
        door.enter()
    with pytest.raises(PeerBusy):
        asker()(url, f"{PATH}/3/{largest(index).sha256}?from=0", 5.0)


def test_a_foreign_secret_opens_nothing(url: str) -> None:
    with pytest.raises(ConnectionError, match="it answers 401"):
        asker("the secret of another cluster")(url, f"{PATH}/3", 5.0)


def test_a_question_that_is_passed_on_opens_nothing(url: str) -> None:
    """A stranger in the group is asked, and asks a worker with the same words."""
    host, port = url.removeprefix("http://").split(":")

    def passes_on(listener: socket.socket) -> None:
        taken, _ = listener.accept()
        with taken, socket.create_connection((host, int(port)), 5) as other:
            own = f":{listener.getsockname()[1]}".encode()
            other.sendall(taken.recv(65_536).replace(own, f":{port}".encode()))
            taken.sendall(other.recv(65_536))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=passes_on, args=(listener,), daemon=True).start()
        with pytest.raises(ConnectionError, match="it answers 401"):
            asker()(f"http://127.0.0.1:{listener.getsockname()[1]}", f"{PATH}/3", 5.0)


def ends(taken: socket.socket) -> None:
    taken.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n")
    taken.sendall(b"ab")


def test_an_answer_that_ends_its_connection_is_an_answer(
    peer: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later releases of Python close the connection with the last bytes of such an answer."""
    read1 = HTTPResponse.read1

    def closes(answer: HTTPResponse, size: int = -1) -> bytes:
        found = read1(answer, size)
        if answer.length == 0:
            answer.close()
        return found

    monkeypatch.setattr(HTTPResponse, "read1", closes)
    assert asker()(peer(ends), f"{PATH}/3", 5.0) == b"ab"


def test_nobody_there_is_a_lost_connection() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match="refused"):
            asker()(f"http://127.0.0.1:{taken.getsockname()[1]}", f"{PATH}/3", 5.0)


@pytest.fixture
def peer() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Serves one connection by a function."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(20)

    def serve(answers: Callable[[socket.socket], None]) -> str:
        def run() -> None:
            try:
                taken, _ = listener.accept()
                with taken:
                    taken.recv(65_536)
                    answers(taken)
            except OSError:
                return

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    listener.close()


def drips(taken: socket.socket) -> None:
    taken.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(100):
        taken.sendall(b"x")
        time.sleep(0.05)


def hangs(taken: socket.socket) -> None:
    taken.recv(1)


@pytest.mark.parametrize("answers", [drips, hangs])
def test_one_that_drips_or_hangs_has_its_time_and_no_more(
    peer: Callable[[Any], str], answers: Callable[[socket.socket], None]
) -> None:
    began_s = time.monotonic()
    with pytest.raises(TimeoutError):
        asker()(peer(answers), f"{PATH}/3", 0.4)
    assert time.monotonic() - began_s < 2


def endless(taken: socket.socket) -> None:
    taken.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(1_000):
        taken.sendall(b"x" * 65_536)


def nonsense(taken: socket.socket) -> None:
    taken.sendall(b"220 mail.example ESMTP\r\n\r\n")


@pytest.mark.parametrize("answers", [endless, nonsense])
def test_what_is_no_answer_of_a_worker_is_a_lost_connection(
    peer: Callable[[Any], str], answers: Callable[[socket.socket], None]
) -> None:
    with pytest.raises(ConnectionError):
        asker()(peer(answers), f"{PATH}/3", 10.0)


def test_no_redirect_is_followed(peer: Callable[[Any], str], url: str) -> None:
    def elsewhere(taken: socket.socket) -> None:
        taken.sendall(
            f"HTTP/1.1 307 Temporary Redirect\r\nlocation: {url}{PATH}/3\r\n"
            "content-length: 0\r\n\r\n".encode()
        )

    with pytest.raises(ConnectionError, match="it answers 307"):
        asker()(peer(elsewhere), f"{PATH}/3", 5.0)
