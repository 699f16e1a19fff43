"""The coordinator of one transactional id: found, asked, and found again after a move.

    12:00:00.000  EndTxn to broker 2                       NOT_COORDINATOR: it has moved
    12:00:00.001  broker 2, which broker coordinates now?  broker 3
    12:00:00.002  EndTxn to broker 3                       NOT_COORDINATOR: it does not know yet
    12:00:00.013  any broker, which one coordinates?       broker 3
    12:00:00.014  EndTxn to broker 3                       COORDINATOR_LOAD_IN_PROGRESS, then done

A broker that refuses because it is not the coordinator any more knows the new one: it was told of
the move itself. So it is asked first, and at once. Another broker may not know of the move yet, and
would send the request back. Between two pauses each broker is asked once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from belfry.transactions import errors
from belfry.transactions.asking import Asker, Ended, Pauses
from belfry.transactions.brokers import Brokers, Lost
from belfry.transactions.errors import Line, Meaning

# In place of an answer: the request has left, and it is unknown whether it was carried out.
SENT: Final = object()


class Coordination:
    """Asks the coordinator of a transactional id; runs in the writers' event loop."""

    def __init__(self, brokers: Brokers, asker: Asker, name: str) -> None:
        """`name` is the transactional id."""
        self._brokers = brokers
        self._asker = asker
        self._name = name
        self._node: int | None = None
        # Brokers that have refused the request since its last pause, and the last one of them.
        self._refused: set[int] = set()
        self._informed: int | None = None

    def begin(self) -> None:
        """Begin another request: a broker that refused the one before may coordinate now."""
        self._refused.clear()

    async def ask(self, make: Callable[[], Any], deadline: float) -> tuple[Any, int]:
        """An answer and its error; `SENT` in its place if the request was sent and lost."""
        informed, self._informed = self._informed, None
        try:
            if self._node is None:
                found = await self._asker.coordinator_of(self._name, deadline, informed)
                if isinstance(found, tuple):
                    return None, found[1]
                if found in self._refused:
                    return None, errors.NOT_COORDINATOR
                self._node = found
        except Lost:
            return None, errors.LOST
        try:
            answer = await self._asker.send(self._node, make(), deadline)
        except Lost as lost:
            return SENT if lost.sent else None, errors.LOST
        return answer, getattr(answer, "error_code", errors.NONE)

    async def look_again(self, line: Line, pauses: Pauses, during: str) -> None:
        """Wait before the next try, and look the coordinator up; raises Ended if time is up."""
        if line.meaning is Meaning.MOVED:
            node, self._node = self._node, None
            if line.name not in errors.ANSWERED:
                await self._brokers.refresh()
            elif node is not None:
                self._refused.add(node)
                self._informed = node
                return
        self._refused.clear()
        if not await pauses.wait(line.meaning):
            raise Ended(for_certain(line), during=f"{during}: not in time")


def for_certain(line: Line) -> Line:
    """The error for a deadline that has passed: if it can be mended, the result is unknown."""
    if line.meaning in (Meaning.BUSY, Meaning.MOVED):
        return line._replace(meaning=Meaning.UNKNOWN)
    return line
