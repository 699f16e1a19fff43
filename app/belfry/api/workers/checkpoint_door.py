"""The access of other workers to this one's checkpoints, and its rate.

A piece of a file is read by a thread, and waits for its turn before that: a worker sends so many
bytes a second, to so many at a time, however many ask.  So serving takes a bounded part of the disk
and of the port's event loop, and partitions fire meanwhile.

A question is signed for this worker's address.  A stranger that joins the group can have questions
sent to its own address; such a question is refused by every other worker.

    4 are served     W2 W2 W3 W3      W4: 503 `busy`, and asks again
    200 MB/s         a piece of 4 MiB has its turn 21 ms after the one before
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from itertools import count
from time import monotonic
from typing import Final

from starlette.requests import Request

from belfry.api.auth.principal import unauthorized
from belfry.api.problems import Problem
from belfry.api.workers.internal_token import FORWARDED, InternalToken, Target
from belfry.recovery.checkpoint_serving import ServedCheckpoints

# Pieces that are read or sent at a time.
MOST_AT_ONCE: Final = 4
# No answer of the port takes longer, so a piece that has not ended by then was forgotten.
LONGEST_S: Final = 60.0
RETRY_SOON: Final = {"retry-after": "1"}


class CheckpointDoor:
    """Lets workers in, a few at a time; belongs to the port's event loop."""

    def __init__(
        self,
        served: ServedCheckpoints,
        token: InternalToken,
        bytes_per_s: float,
        clock: Callable[[], float] = monotonic,
        *,
        mine: str,
    ) -> None:
        """`token` has to have keys: every worker needs a signature. `clock` gives seconds.

        `mine` is the address that this worker tells the group.
        """
        self.served = served
        self.mine = mine
        self._token = token
        self._bytes_per_s = bytes_per_s
        self._clock = clock
        # Until when each piece that is under way counts.
        self._under_way: dict[int, float] = {}
        self._numbers = count()
        # From when on the next piece may be read.
        self._free_s = 0.0

    def admit(self, request: Request) -> None:
        """Let a worker pass; raises `Problem` for anybody else, whatever keys it has."""
        given = request.headers.get(FORWARDED)
        if given is None or not self._token.signs:
            raise unauthorized("Checkpoints are for workers among themselves.")
        self._token.read(given, Target.without_body(request).at(self.mine))

    def enter(self) -> int:
        """Begin to serve a piece; raises `Problem` where enough are served.

        Give the result to `leave`, which ends it.
        """
        now_s = self._clock()
        for each in [each for each, until_s in self._under_way.items() if until_s < now_s]:
            del self._under_way[each]
        if len(self._under_way) >= MOST_AT_ONCE:
            detail = f"{MOST_AT_ONCE} pieces of checkpoints are sent already: try again."
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, "busy", RETRY_SOON)
        number = next(self._numbers)
        self._under_way[number] = now_s + LONGEST_S
        return number

    def leave(self, number: int) -> None:
        """The piece has been sent, or its caller has gone."""
        self._under_way.pop(number, None)

    def wait_s(self, size: int) -> float:
        """Seconds until so many bytes may be read, which count from now on."""
        now_s = self._clock()
        begins_s = max(now_s, self._free_s)
        self._free_s = begins_s + size / self._bytes_per_s
        return begins_s - now_s

    def unused(self, size: int) -> None:
        """So many of these bytes were not there: the next piece may be read sooner."""
        self._free_s -= size / self._bytes_per_s
