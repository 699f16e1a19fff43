"""The last answers of other workers, and the questions that are under way.

A question is a worker's address, what it is asked, and in whose name, since an answer holds what
that caller may see.  The same question is asked once at a time: a second caller meanwhile waits for
the same answer. Belongs to one event loop.

The memory is bounded in sum. If room is needed, the oldest answer of the caller with the most
memory goes: so a caller that asks for page after page does not push out others' answers.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final

# Seconds that a page waits.
AT_ONCE_S: Final = 0.25
# Answers that are remembered, of at most so many bytes each and in sum, and for how long.
MOST: Final = 200
MOST_BYTES: Final = 500_000
MOST_BYTES_IN_SUM: Final = 10_000_000
REMEMBERED_MS: Final = 300_000
# The question, and the caller's name.
Question = tuple[Hashable, Hashable]


class LastAnswers:
    """Answers by question; a question goes on even if no caller waits for it any more."""

    def __init__(self) -> None:
        # None where there was no answer: that is known as well.
        self._answers: OrderedDict[Question, tuple[int, bytes | None]] = OrderedDict()
        self._under_way: dict[Question, asyncio.Task[bytes | None]] = {}

    async def soon(
        self,
        question: Question,
        ask: Callable[[], Coroutine[Any, Any, bytes | None]],
        now_ms: Callable[[], float],
    ) -> tuple[bytes | None, int | None]:
        """The answer, or after `AT_ONCE_S` seconds the last one with its instant (epoch ms).

        A question that is asked for the first time waits until `ask` ends.

        The instant is None for an answer to this question; both are None if there is no answer.
        """
        task = self._under_way.get(question)
        if task is None:
            task = asyncio.create_task(self._asked(question, ask, now_ms))
            self._under_way[question] = task
            task.add_done_callback(lambda _: self._under_way.pop(question, None))
        # Of a worker that is asked for the first time nothing is known that could be shown.
        known = question in self._answers
        done, _ = await asyncio.wait({task}, timeout=AT_ONCE_S if known else None)
        answer = task.result() if done else None
        if answer is not None:
            return answer, None
        at_ms, last = self._answers.get(question, (0, None))
        if last is None or now_ms() - at_ms > REMEMBERED_MS:
            return None, None
        return last, at_ms

    async def _asked(
        self,
        question: Question,
        ask: Callable[[], Coroutine[Any, Any, bytes | None]],
        now_ms: Callable[[], float],
    ) -> bytes | None:
        answer = await ask()
        kept = answer if answer is not None and len(answer) <= MOST_BYTES else None
        if kept is not None or question not in self._answers:
            self._answers[question] = int(now_ms()), kept
            self._answers.move_to_end(question)
            self._forget()
        return answer

    def _forget(self) -> None:
        """Make room; there are few answers, so they are counted anew."""
        sizes = {each: _size(each, kept) for each, (_, kept) in self._answers.items()}
        shares: Counter[Hashable] = Counter()
        for (_, whose), size in sizes.items():
            shares[whose] += size
        while len(self._answers) > MOST or shares.total() > MOST_BYTES_IN_SUM:
            ((most, _),) = shares.most_common(1)
            oldest = next(each for each in self._answers if each[1] == most)
            del self._answers[oldest]
            shares[most] -= sizes[oldest]


def _size(question: Question, kept: bytes | None) -> int:
    """About how many bytes are remembered: a question may be long as well."""
    return len(str(question)) + len(kept or b"")
