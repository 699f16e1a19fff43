"""Posting in a process of its own, which has neither Kafka's credentials nor belfry's settings.

    dispatcher ── numbered work, pickled ──► `poster.py`: resolves, dials, posts
               ◄── JSON: number, answer ────

The child talks to strangers, so nothing that it says is unpickled: it may only name work that was
handed in, and say what came of it.  Where it ends by itself, what was under way comes back to be
tried again, and another one is started.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any, Final

import orjson
import structlog

from belfry.delivery.answers import Answer, End
from belfry.delivery.poster import read_frame, write_frame
from belfry.delivery.posting import Finished, Ticket
from belfry.delivery.work import Work
from belfry.settings import Settings

STOP_S: Final = 5.0
PAUSE_S: Final = 1.0
OURS: Final = "BELFRY_"
MOST_REASON: Final = 2_000
MOST_ANSWER_BYTES: Final = 64 * 1024

log = structlog.get_logger(__name__)


class PostingApart:
    """Posts what it is handed, as `Posting` does; `finished` is called from a thread of its own."""

    def __init__(self, settings: Settings, finished: Finished) -> None:
        self._orders = orjson.dumps(
            {
                "networks": settings.webhook_private_networks,
                "secrets": settings.webhook_secrets,
                "per_host": settings.webhook_per_host,
            }
        )
        self._finished = finished
        self._lock = Lock()
        self._under_way: dict[int, tuple[Ticket, Work]] = {}
        self._number = 0
        self._stopping = Event()
        self._child: Any = None
        self._thread = Thread(target=self._run, name="belfry-poster", daemon=True)

    def start(self) -> None:
        """Begin to wait for work."""
        self._open()
        self._thread.start()

    def hand_in(self, pieces: list[tuple[Ticket, Work]]) -> None:
        """Work to be done; returns when the other process has it."""
        with self._lock:
            numbered = []
            for piece in pieces:
                self._number += 1
                self._under_way[self._number] = piece
                numbered.append((self._number, piece[1]))
            self._tell(numbered)

    def drop(self) -> None:
        """Give up what is under way: it is somebody else's now."""
        with self._lock:
            self._under_way.clear()
            self._tell(None)

    def stop(self) -> None:
        """Give up what is under way, and end."""
        self._stopping.set()
        if self._child is None:
            return
        with self._lock:
            self._close(self._child)
        try:
            self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._thread.join(STOP_S)

    # -- with the lock ---------------------------------------------------------------------------

    def _open(self) -> None:
        spared = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "belfry.delivery.poster"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=spared,
        )
        write_frame(self._child.stdin, self._orders)

    def _reopen(self) -> None:
        """Start another one; where that fails, the old one is replaced once more."""
        try:
            self._open()
        except OSError as error:
            log.error("the process that posts does not start", problem=str(error))  # noqa: TRY400

    def _tell(self, pieces: list[tuple[int, Work]] | None) -> None:
        # Where it has ended, who reads its answers notices, and gives the work back.
        with suppress(OSError, ValueError):
            write_frame(self._child.stdin, pickle.dumps(pieces))

    @staticmethod
    def _close(child: Any) -> None:
        with suppress(OSError):
            child.stdin.close()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            child = self._child
            if not child.stdout.closed:
                with child.stdout:
                    self._listen(child)
            if not self._stopping.is_set():
                self._replace(child)

    def _listen(self, child: Any) -> None:
        """Take answers until there are none any more."""
        try:
            while (frame := read_frame(child.stdout, MOST_ANSWER_BYTES)) is not None:
                self._answered(frame)
        except (ValueError, TypeError, KeyError) as error:
            log.warning("the process that posts talks nonsense", problem=str(error)[:300])
            child.kill()

    def _answered(self, frame: bytes) -> None:
        """What the child says; ValueError and TypeError for what it may not say."""
        number, end, target, code, reason, not_before_ms, heard = orjson.loads(frame)
        said = (str(target), str(code), str(reason)[:MOST_REASON])
        answer = Answer(End(end), *said, int(not_before_ms), heard=bool(heard))
        with self._lock:
            piece = self._under_way.pop(number, None)
        if piece is not None:
            self._finished(*piece, answer)

    def _replace(self, child: Any) -> None:
        """Start another process; what was under way in the one that ended is to be tried again."""
        child.kill()
        log.warning("the process that posts has ended: starting another", code=child.wait())
        self._stopping.wait(PAUSE_S)
        with self._lock:
            lost, self._under_way = list(self._under_way.values()), {}
            self._close(child)
            if not self._stopping.is_set():
                self._reopen()
        for ticket, work in lost:
            target = work.state.targets[0].url
            reason = "the process that posts ended amid the attempt"
            self._finished(ticket, work, Answer(End.AGAIN, target, "internal", reason, heard=False))
