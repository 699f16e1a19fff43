"""The readers of requests of a worker: one thread and one fetcher for all owned partitions.

    fetcher ── an answer of one partition ──► its reader
       ▲                                        │ one batch a turn, where it has room
       └ follows who is entered,                ▼
         but for those that have something      hand_over ──► the owner of that partition

No partition holds up another one:

    what happens to partition 3                          the effect on partitions 4 to 9
    its owner takes nothing in                           nothing: an answer of 3 stays with the
                                                         fetcher, and no more is asked for
    its log was cut off, or may not be read              nothing: its reader fails, its owner begins
                                                         anew
    its batches unpack to gigabytes                      turns: it opens a slice, then the others
                                                         have theirs
    its broker does not answer                           nothing, if other brokers lead them
    it has thousands of requests                         turns: batches of all have room in common
                                                         and small ones need not wait for it

An error that belongs to no single partition ends the reading of all.  Their owners begin anew, and
the first of them starts a new thread with new connections.  The thread ends when no reader is
entered any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import structlog

from belfry.host import machine
from belfry.host.background import END, Background
from belfry.kafka import fetcher
from belfry.kafka.fetch_position import Where
from belfry.partitions.reader_turns import ReaderTurns
from belfry.partitions.source import SourceReader

# Longest single wait for records or for room.
WAIT_S: Final = 0.2
# Each batch costs a transaction, so a trickle is read in sips: a request that comes alone is handed
# over at once, and those that follow within this time go together. Sips of all partitions begin at
# the same instants, so that one request fetches them all.
SIP_S: Final = 0.02
# Seconds for the thread of the last reader to end.
END_S: Final = 5.0

_NOBODY: Final[dict[Where, SourceReader]] = {}

log = structlog.get_logger(__name__)


class RequestReaders:
    """Gives the readers of a worker's partitions their turns.

    `enter`, `leave` and `wake` may be called from any thread.
    """

    def __init__(self, properties: dict[str, Any]) -> None:
        """`properties` are librdkafka's."""
        self._properties = properties
        self._lock = machine.Lock()
        # Replaced as a whole: so the readers' thread sees whether a reader came or went.
        self._entered: dict[Where, SourceReader] = {}
        self._reading: _ReadersThread | None = None

    def enter(self, reader: SourceReader) -> None:
        """Read for it, until `leave` or its failure."""
        with self._lock:
            entered = {**self._entered, reader.where: reader}
            reading = self._reading
            if reading is None:
                reading = _ReadersThread(self._properties, self)
                reading.thread.start()
            # Not before the thread is there: where the system gives no thread, the reader has not
            # entered.
            self._entered, self._reading = entered, reading
        reading.wake()

    def leave(self, reader: SourceReader) -> None:
        """Stop reading for it; the last reader ends the thread, and waits for its end."""
        with self._lock:
            self._drop(reader)
            ended = None
            if not self._entered:
                ended, self._reading = self._reading, None
                if ended is not None:
                    # Set before another reader can enter: this thread gives no turn to readers of
                    # the next one.
                    ended.thread.stopping.set()
        if ended is not None:
            ended.end()

    def wake(self) -> None:
        """A reader has room again."""
        reading = self._reading
        if reading is not None:
            reading.wake()

    @property
    def crowded(self) -> bool:
        """Whether some reader waits for room that all of them share."""
        reading = self._reading
        return reading is not None and reading.turns.crowded

    def _drop(self, reader: SourceReader) -> None:
        if self._entered.get(reader.where) is reader:
            self._entered = {w: each for w, each in self._entered.items() if each is not reader}

    # -- the readers' thread ---------------------------------------------------------------------

    def entered(self, thread: _ReadersThread) -> dict[Where, SourceReader]:
        """The readers of a thread; the dictionary is never changed.

        A thread that has ended, and was replaced by another one, has none.
        """
        return self._entered if self._reading is thread else _NOBODY

    def failed(self, reader: SourceReader, error: Exception) -> bool:
        """Stop reading for it: its owner looks at the error, and begins anew.

        Returns whether no reader is left, and the thread is to end.
        """
        with self._lock:
            self._drop(reader)
            reader.failure = error
            if not self._entered:
                self._reading = None
            return not self._entered

    def all_failed(self, thread: _ReadersThread, error: Exception) -> None:
        """A thread ends by an error that belongs to no single partition."""
        with self._lock:
            if self._reading is not thread:
                return
            for reader in self._entered.values():
                reader.failure = error
            self._entered, self._reading = {}, None


class _ReadersThread:
    """The reading of one thread, from the first reader that enters to the last that leaves."""

    def __init__(self, properties: dict[str, Any], readers: RequestReaders) -> None:
        self._readers = readers
        self._fetcher = fetcher.Fetcher(properties, sip_s=SIP_S)
        self._followed: dict[Where, SourceReader] = {}
        self.turns = ReaderTurns()
        self._over = False
        self.thread = Background("requests", self._turn, log, "requests not read")
        self.thread.last = self._fetcher.close

    def wake(self) -> None:
        """Look at the readers now; from any thread."""
        self._fetcher.wake()

    def end(self) -> None:
        """End the thread, and wait for its end."""
        self.thread.stopping.set()
        self._fetcher.wake()
        self.thread.stop(END_S)

    def _turn(self) -> object:
        """A batch of each reader that has one and room for it, and one answer of the fetcher."""
        try:
            self._follow()
            busy = self.turns.give(lambda reader: self._call_reader(reader, reader.turn))
            ready = self.turns.any_of(busy)
            answer = self._fetcher.take(0.0 if ready else WAIT_S, busy, self.turns.behind)
            reader = None if answer is None else self._followed.get(answer.where)
            if answer is not None and reader is not None:
                self._call_reader(reader, lambda: reader.add(answer))
        except Exception as error:
            log.warning("requests not read", reason=str(error), exc_info=True)
            self._readers.all_failed(self, error)
            return END
        return END if self._over else None

    def _follow(self) -> None:
        """Fetch for the readers that are entered; for a new one from the begin of its term."""
        entered = self._readers.entered(self)
        if entered is self._followed:
            return
        stay = {w: each for w, each in entered.items() if self._followed.get(w) is each}
        for readers in (stay, entered):
            self._fetcher.follow({where: each.fetched for where, each in readers.items()})
        self._followed = entered
        self.turns.follow(entered)

    def _call_reader(self, reader: SourceReader, act: Callable[[], None]) -> None:
        """Call a method of one reader; its error ends the reading of that one alone."""
        try:
            act()
        except Exception as error:  # noqa: BLE001  # told to the owner, who starts over
            self._over = self._readers.failed(reader, error) or self._over
