"""Sending from a process of its own, which has neither Kafka's credentials nor belfry's settings.

    dispatcher ── numbered work, pickled ──► `sender_process.py`: resolves, dials, posts
               ── breaks of hosts ──►
               ◄── JSON: number, answer ────

The child talks to strangers, so its output is never unpickled: it may only name work that was
handed in, and give its result. No thread waits for it to read (`sender_input.py`).

If it ends by itself, another one is started, and the work under way comes back. It comes back as
postponed, since nobody knows whether it was posted, and an event with a single attempt must not be
given up for a crash that it has not caused. Work that was under way at `SUSPECT` crashes without an
answer between them may be their cause: from then on each crash counts as an attempt.
"""

from __future__ import annotations

import pickle
import subprocess
from threading import Lock
from typing import Any, Final

import orjson
import structlog

from belfry.api.workers.host_breaks import HostBreaks
from belfry.delivery.answers import INTERRUPTED, Answer, End, Sent
from belfry.delivery.confined import command, environment, identity
from belfry.delivery.references import References
from belfry.delivery.sender_input import SenderInput
from belfry.delivery.sender_process import read_frame
from belfry.delivery.work import Finished, Work, WorkId
from belfry.host.background import Background
from belfry.host.clock import SystemClock
from belfry.schedules.targets import MAX_TARGETS
from belfry.settings import DeliverySettings, plain

# Seconds for the child to end, and the pause before another one is started.
STOP_S: Final = 5.0
PAUSE_S: Final = 1.0
# Limits of a child's output: characters of a reason, bytes of an answer.
MOST_REASON: Final = 2_000
MOST_ANSWER_BYTES: Final = 64 * 1024
# Crashes in a row from which on work that was under way at each of them is charged an attempt.
SUSPECT: Final = 3
MOST_SUSPECTS: Final = 20_000

log = structlog.get_logger(__name__)


class SeparateSender:
    """Posts what it is handed, as `HttpSender` does; `finished` is called from its own thread.

        12:00:00  child 1 posts a, b and c, and ends amid them       each has one crash
        12:00:01  child 2 is started; a, b and c come back as POSTPONED, no attempt is counted
        12:00:02  … and are posted again; child 2 ends               each has two
        12:00:05  child 3: b and c are answered, and are forgotten; it ends amid a: a has three
        12:00:06  a comes back as AGAIN: it counts as an attempt, so a is given up in the end

    Memory holds the names of `MOST_SUSPECTS` deliveries at most.
    """

    def __init__(
        self,
        settings: DeliverySettings,
        references: References,
        breaks: HostBreaks,
        finished: Finished,
    ) -> None:
        """`references` are read here: the other process has no variables, and maybe no files.

        It is told of `breaks` of hosts whenever they change, and has no way to Kafka to look.
        """
        self._references = references
        self._breaks = breaks
        self._clock = SystemClock()
        self._orders = orjson.dumps(
            {
                "networks": settings.webhook_private_networks,
                "secrets": plain(settings.webhook_secrets),
                "per_host": settings.webhook_per_host,
            }
        )
        self._identity = identity(settings.webhook_user)
        self._finished = finished
        self._lock = Lock()
        self._under_way: dict[int, tuple[WorkId, Work]] = {}
        self._number = 0
        self._crashes: dict[tuple[str, int], int] = {}
        self._child: Any = None
        self._sender_input: Any = None
        self._thread = Background("sender-process", self._turn, log, "the sender stumbled")
        self._stopping = self._thread.stopping
        breaks.listen(self._broken)

    def start(self) -> None:
        """Begin to wait for work."""
        with self._lock:
            self._open()
        self._thread.start()

    def hand_in(self, pieces: list[tuple[WorkId, Work]]) -> None:
        """Work to be done; returns at once, whether or not the other process reads.

        The secrets that it names are read here and go along.
        """
        works = [self._references.handed_over(work) for _, work in pieces]
        with self._lock:
            numbered = []
            for piece, work in zip(pieces, works, strict=True):
                self._number += 1
                self._under_way[self._number] = piece
                numbered.append((self._number, work))
            self._sender_input.put(pickle.dumps(numbered))

    def drop(self) -> None:
        """Give up the work under way: it belongs to another process now."""
        with self._lock:
            self._under_way.clear()
            self._sender_input.replace(pickle.dumps(None))
            self._tell_breaks()

    def stop(self) -> None:
        """Give up the work under way, and end."""
        self._stopping.set()
        if self._child is None:
            return
        with self._lock:
            self._sender_input.close()
        try:
            self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._thread.join(STOP_S)

    def _broken(self) -> None:
        """Hosts were broken or closed; returns at once."""
        with self._lock:
            if self._sender_input is not None:
                self._tell_breaks()

    # -- with the lock ---------------------------------------------------------------------------

    def _open(self) -> None:
        """Start a child, with its orders as the first frame."""
        self._child = subprocess.Popen(  # noqa: S603  # this Python, and a module of belfry
            command("belfry.delivery.sender_process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            **self._identity,
        )
        self._sender_input = SenderInput(self._child, self._orders)
        self._tell_breaks()

    def _tell_breaks(self) -> None:
        """Tell the child of all breaks and closes: it takes those that are new to it."""
        entries = self._breaks.entries(int(self._clock.wall_ms()))
        self._sender_input.put(pickle.dumps({"breaks": entries}))

    def _reopen(self) -> None:
        """Start another one; where that fails, the old one is replaced once more."""
        try:
            self._open()
        except OSError as error:
            log.error("the process that posts does not start", problem=str(error))  # noqa: TRY400

    # -- the thread ------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Listen to one child until it ends, and start another."""
        child = self._child
        if not child.stdout.closed:
            with child.stdout:
                self._listen(child)
            self._suspect()
        if not self._stopping.is_set():
            self._replace(child)

    def _listen(self, child: Any) -> None:
        """Take answers until the child's output ends."""
        try:
            while (frame := read_frame(child.stdout, MOST_ANSWER_BYTES)) is not None:
                self._answered(frame)
        except (ValueError, TypeError, KeyError) as error:
            log.warning("the process that posts talks nonsense", problem=str(error)[:300])
            child.kill()

    def _answered(self, frame: bytes) -> None:
        """The answer in a line of the child; ValueError and TypeError for a bad one."""
        number, end, target, code, reason, not_before_ms, heard, sent = orjson.loads(frame)
        said = (str(target), str(code), str(reason)[:MOST_REASON])
        posts = tuple(_sent(*each) for each in sent[:MAX_TARGETS])
        answer = Answer(End(end), *said, int(not_before_ms), heard=bool(heard), sent=posts)
        with self._lock:
            piece = self._under_way.pop(number, None)
            if piece is not None:
                self._crashes.pop(_name_of(piece[1]), None)
        if piece is not None:
            self._finished(*piece, answer)

    def _replace(self, child: Any) -> None:
        """Start another process; work under way in the ended one comes back."""
        child.kill()
        log.warning("the process that posts has ended: starting another", code=child.wait())
        self._stopping.wait(PAUSE_S)
        with self._lock:
            lost, self._under_way = list(self._under_way.values()), {}
            self._sender_input.close()
            if not self._stopping.is_set():
                self._reopen()
        for work_id, work in lost:
            self._finished(work_id, work, self._interrupted(work))

    def _suspect(self) -> None:
        """Remember the work under way when the child ended: one piece may be the cause."""
        with self._lock:
            for _, work in self._under_way.values():
                name = _name_of(work)
                self._crashes[name] = self._crashes.pop(name, 0) + 1
            while len(self._crashes) > MOST_SUSPECTS:
                del self._crashes[next(iter(self._crashes))]

    def _interrupted(self, work: Work) -> Answer:
        """The answer after a crash for work under way: an attempt only if it may be the cause."""
        crashes = self._crashes.get(_name_of(work), 0)
        end = End.AGAIN if crashes >= SUSPECT else End.POSTPONED
        reason = f"the process that posts ended amid the attempt ({crashes} times in a row)"
        return Answer(end, work.state.targets[0].url, INTERRUPTED, reason, heard=False)


def _sent(target: Any, began_ms: Any, ended_ms: Any, end: Any, status: Any, code: Any) -> Sent:
    """A post, as the child tells of it."""
    return Sent(str(target), float(began_ms), float(ended_ms), End(end), int(status), str(code))


def _name_of(work: Work) -> tuple[str, int]:
    """The delivery's id, the same for every attempt."""
    return work.event.fire_id, work.state.number
