"""How brokers are asked, and asked again: deadlines, pauses, throttling, and the worst error.

A broker that answers with a throttle time gets no request for that time. A request without an
answer at the deadline counts as lost.

Pauses grow from 1 ms to 20 ms while a broker is busy. A transaction is under way for milliseconds,
so the first pauses are short; the usual reason for them are markers of the transaction before
(CONCURRENT_TRANSACTIONS).

While a leader or a coordinator is looked for, pauses grow from 10 ms to 50 ms, and to 200 ms after
two seconds without success. An orderly stop of a broker moves both within a second or so, and a
pause that lasts longer than the move makes events late. After the death of a broker the move takes
longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from belfry.kafka.outcome import Fenced, Unknown
from belfry.transactions import errors
from belfry.transactions.batches import ProducedBatch
from belfry.transactions.brokers import Brokers, Lost
from belfry.transactions.errors import Line, Meaning

# A topic that has been missing for this long is gone.
GONE_S: Final = 1.0
# Pauses in seconds: the first one, and the longest to a busy broker.
_SOON_S: Final = 0.001
_LATER_S: Final = 0.02
# While looking: the first one, the longest of the first `_MOVES_S`, and the longest after that.
_LOOK_S: Final = 0.01
_LOOK_LATER_S: Final = 0.05
_LATEST_S: Final = 0.2
_MOVES_S: Final = 2.0


class Ended(Exception):
    """A transaction cannot go on; `topics` refused a record, with the reason of each.

    `meaning` says what to do, `during` names the request, and `blocked` says whether a right is
    missing.
    """

    def __init__(self, line: Line, topics: dict[str, str] | None = None, during: str = "") -> None:
        super().__init__(f"{during}: {line.name}: {line.why}")
        self.meaning = line.meaning
        self.topics = topics or {}
        self.blocked = line.name == errors.TABLE[errors.BLOCKED].name

    def as_outcome(self, *, blocked: bool = False, first: str = "") -> Fenced | Unknown:
        """The outcome for a step's owner if no roll-back is certain; `first` begins the reason."""
        if self.meaning is Meaning.FENCED:
            return Fenced(f"{first}{self}")
        return Unknown(f"{first}{self}", blocked=blocked)


class Pauses:
    """Growing pauses up to a deadline: short ones while a broker is busy, longer ones to look anew.

    An object is for one request and its repeats.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._busy_s, self._moved_s = _SOON_S, _LOOK_S
        self._looking_since: float | None = None

    @property
    def lasts(self) -> bool:
        """Whether the deadline has not passed."""
        return now() < self._deadline

    async def wait(self, meaning: Meaning) -> bool:
        """Wait; returns False at once if the deadline has passed."""
        if not self.lasts:
            return False
        if meaning is Meaning.BUSY:
            pause_s, self._busy_s = self._busy_s, min(self._busy_s * 2, _LATER_S)
        else:
            pause_s, self._moved_s = self._moved_s, min(self._moved_s * 2, self._longest_look_s())
        await asyncio.sleep(min(pause_s, max(self._deadline - now(), 0.0)))
        return True

    def _longest_look_s(self) -> float:
        """The longest pause while looking: short for as long as an orderly move takes."""
        if self._looking_since is None:
            self._looking_since = now()
        return _LOOK_LATER_S if now() - self._looking_since < _MOVES_S else _LATEST_S


class Asker:
    """Sends requests within deadlines, and keeps the throttle times that brokers ask for."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._rests: dict[int, float] = {}

    async def coordinator_of(
        self, name: str, deadline: float, informed: int | None = None
    ) -> int | tuple[None, int]:
        """A coordinator, or no broker and the error's code, within the deadline; raises Lost.

        `informed` is the broker to ask, or None for any.
        """
        look = self._brokers.coordinator_of(name, informed)
        found: int | tuple[None, int] = await _within(look, deadline)
        return found

    async def send(self, node: int, request: Any, deadline: float) -> Any:
        """An answer within the deadline; waits first until the broker's throttle time is over.

        Raises Lost, with `sent` if the broker may have carried the request out.
        """
        rest_s = self._rests.pop(node, 0.0) - now()
        if rest_s > 0:
            await asyncio.sleep(min(rest_s, max(deadline - now(), 0.0)))
        answer = await _within(self._brokers.send(node, request), deadline)
        if answer.throttle_time_ms > 0:
            self._rests[node] = now() + answer.throttle_time_ms / 1000
        return answer


async def _within(answer: Awaitable[Any], deadline: float) -> Any:
    """An answer, or Lost at the deadline.

    The answer is awaited directly: `asyncio.wait_for` would make a task of it and wait for that.
    """
    try:
        async with asyncio.timeout_at(max(deadline, now() + _SOON_S)):
            return await answer
    except TimeoutError:
        raise Lost("no answer in time") from None


_WORST_FIRST: Final = (
    Meaning.FENCED, Meaning.UNKNOWN, Meaning.REFUSED, Meaning.ABORT, Meaning.MOVED, Meaning.BUSY,
)  # fmt: skip


def judge(codes: Iterable[int], line_of: Callable[[int], Line]) -> Line:
    """The worst of these errors, which decides for all; `line_of` gives the meaning of each."""
    lines = {code: line_of(code) for code in set(codes)}
    for meaning in _WORST_FIRST:
        for line in lines.values():
            if line.meaning is meaning:
                return line
    return errors.TABLE[errors.NONE]


def tell_gone(codes: dict[Any, int], began: float) -> None:
    """Raise Ended for topics that have not been there for a while."""
    if now() - began >= GONE_S and errors.UNKNOWN_TOPIC in codes.values():
        gone = errors.TABLE[errors.UNKNOWN_TOPIC]._replace(meaning=Meaning.REFUSED)
        raise Ended(gone, named(codes, lambda code: code == errors.UNKNOWN_TOPIC), "produce")


def named(codes: dict[Any, int], counts: Callable[[int], bool]) -> dict[str, str]:
    """Topics with a sentence about the error of one of their partitions."""
    return {
        where[0]: errors.sentence(code) for where, code in codes.items() if code and counts(code)
    }


def refusals(codes: dict[Any, int], divisible: Iterable[ProducedBatch] = ()) -> dict[str, str]:
    """Topics that refused a record, with the reason; without topics that need smaller batches."""
    spared = {batch.where for batch in divisible}
    kept = {where: code for where, code in codes.items() if where not in spared}
    return named(kept, lambda code: errors.of_partition(code).meaning is Meaning.REFUSED)


def now() -> float:
    """The clock of the running loop, in seconds; deadlines are instants of it."""
    return asyncio.get_running_loop().time()
