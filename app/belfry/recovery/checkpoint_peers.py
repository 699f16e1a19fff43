"""Checkpoints of other workers: looked for at all that may have one, and fetched in pieces.

    GET /internal/checkpoints/3                       the index of the newest; 404: there is none
    GET /internal/checkpoints/3/<SHA-256>?from=0      up to 4 MiB of one of its files, from there on

An index of a worker is signed, whatever the changelog's rows are: an address comes from a process
that joined the group, and a signature from a worker alone.  Fetched files are compared with the
digests of the index, like those from an object store.

A worker that is busy is asked again.  One that is slow, or dies, costs no more time than reading
the changelog would (`store/fetch_budget.py`), and then the next source is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Final

import structlog

from belfry.host import machine
from belfry.host.clock import SystemClock
from belfry.host.errors import named
from belfry.store.checkpoint import BadCheckpoint, CheckpointFile, IndexKeys
from belfry.store.fetch_budget import FetchBudget

# The address of the routes; `api/routes/checkpoints.py` answers.
PATH: Final = "/internal/checkpoints"
PIECE_BYTES: Final = 4 * 1024 * 1024
# A file is written in parts of so many bytes.  Writes of 4 MiB took four times as much of the
# processor's time where it was measured: 1.0 instead of 0.2 ms for each MB.
WRITE_BYTES: Final = 256 * 1024
# Workers that are asked for one partition, and seconds that they have for their indexes: all of
# them, and those that are left once one has answered.
MOST_PEERS: Final = 4
ASK_S: Final = 2.0
LATECOMERS_S: Final = 0.3
# Seconds for a piece, and until a busy worker is asked again.
PIECE_S: Final = 10.0
BUSY_S: Final = 0.2

log = structlog.get_logger(__name__)

# A worker's answer: of its address, a path with its query, and so many seconds. It raises
# FileNotFoundError for a file that is not there, `PeerBusy`, and ConnectionError or TimeoutError.
Ask = Callable[[str, str, float], bytes]


class PeerBusy(Exception):
    """The other worker sends to others just now: it is to be asked again."""


class PeerCheckpoints:
    """The checkpoints that other workers keep; any thread may ask."""

    def __init__(
        self, holders: Callable[[int], list[str]], ask: Ask, keys: IndexKeys, clock: SystemClock
    ) -> None:
        """`holders` gives the addresses of those that may have one of a partition, the likeliest
        first. `keys` judge their indexes, and are to require a signature.
        """
        self.keys = keys
        self._holders = holders
        self._ask = ask
        self._clock = clock
        self._lock = machine.Lock()

    def indexes(self, partition: int, budget: FetchBudget) -> dict[str, bytes]:
        """Indexes by the addresses of the workers that have them; all are asked at once.

        Once one has answered, the others have a moment more: one may be gone without a word.
        """
        urls = self._holders(partition)[:MOST_PEERS]
        answers: machine.SimpleQueue[tuple[str, bytes | None]] = machine.SimpleQueue()

        def ask(url: str) -> None:
            answers.put((url, self._index(url, partition)))

        for url in urls:
            machine.Thread(target=ask, args=(url,), name="belfry-peer-answer", daemon=True).start()
        found: dict[str, bytes] = {}
        now_ms = self._clock.monotonic_ms
        until_ms = now_ms() + 1000 * min(ASK_S, budget.left_s(now_ms()))
        with suppress(Empty):
            for _ in urls:
                url, index = answers.get(timeout=max(0.0, (until_ms - now_ms()) / 1000))
                if index is not None:
                    found[url] = index
                    until_ms = min(until_ms, now_ms() + 1000 * LATECOMERS_S)
        return found

    def _index(self, url: str, partition: int) -> bytes | None:
        """The index that one worker has; None for none, and where it does not answer."""
        try:
            return self._ask(url, f"{PATH}/{partition}", ASK_S)
        except FileNotFoundError:
            return None
        except Exception as error:  # noqa: BLE001  # whatever a connection raises
            log.info(
                "a worker tells no checkpoint", partition=partition, worker=url,
                reason=named(error),
            )  # fmt: skip
            return None

    def get_file(
        self, worker: tuple[str, int], file: CheckpointFile, local: Path, budget: FetchBudget
    ) -> None:
        """Copy a file of a worker's checkpoint here; `worker` is its address, and the partition.

        Raises the errors of `Ask` and the budget, and BadCheckpoint for a piece of another size.
        """
        at = 0
        with local.open("wb") as out:
            while at < file.size:
                piece = self._piece(worker, file, at, budget)
                for start in range(0, len(piece), WRITE_BYTES):
                    out.write(memoryview(piece)[start : start + WRITE_BYTES])
                at += len(piece)
                # Another file may be on its way for the same partition.
                with self._lock:
                    budget.done(len(piece))

    def _piece(
        self, worker: tuple[str, int], file: CheckpointFile, at: int, budget: FetchBudget
    ) -> bytes:
        (url, partition), wanted = worker, min(PIECE_BYTES, file.size - at)
        while True:
            left_s = budget.left_s(self._clock.monotonic_ms())
            path = f"{PATH}/{partition}/{file.sha256}?from={at}"
            try:
                piece = self._ask(url, path, min(PIECE_S, left_s))
            except PeerBusy:
                machine.sleep(BUSY_S)
                continue
            if len(piece) != wanted:
                raise BadCheckpoint(f"{file.name} has {len(piece)} bytes at {at}, not {wanted}")
            return piece
