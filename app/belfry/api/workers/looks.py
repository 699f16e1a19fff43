"""Single schedules, looked up together: what is asked for in one turn of the loop is one read.

A read of the store may wait for the disk.  One that reads many rows lets the engine's threads go
on meanwhile, one of a single row does not; and the more callers there are, the more of them share
a wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from belfry.api.workers.holdings import NotHeld
from belfry.api.workers.reading import Reads
from belfry.store.lookup import ScheduleStanding, standings_of

Asked = list[tuple[bytes, asyncio.Future[ScheduleStanding | None]]]
Found = ScheduleStanding | Exception | None


class Looks:
    """Gathers what is asked for; belongs to one event loop."""

    def __init__(self, reads: Reads, now_ms: Callable[[], float]) -> None:
        self._reads = reads
        self._now_ms = now_ms
        self._asked: dict[int, Asked] = {}

    async def standing(self, partition: int, name: bytes) -> ScheduleStanding | None:
        """The schedule of a changelog key, or None; raises `NotHeld` and `Moving`."""
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._look)
        future: asyncio.Future[ScheduleStanding | None] = loop.create_future()
        self._asked.setdefault(partition, []).append((name, future))
        return await future

    def _look(self) -> None:
        gathered, self._asked = self._asked, {}
        for partition, asked in gathered.items():
            names = [name for name, _ in asked]
            try:
                found: Sequence[Found] = self._found(partition, names)
            except NotHeld as error:
                found = [error] * len(asked)
            except Exception:  # noqa: BLE001  # of one of them: the others are none the worse
                found = [self._alone(partition, name) for name in names]
            for (_, future), standing in zip(asked, found, strict=True):
                _tell(future, standing)

    def _alone(self, partition: int, name: bytes) -> Found:
        try:
            return self._found(partition, [name])[0]
        except Exception as error:  # noqa: BLE001  # who asked is told
            return error

    def _found(self, partition: int, names: list[bytes]) -> list[ScheduleStanding | None]:
        now_ms = int(self._now_ms())
        return self._reads.read(partition, lambda rows: standings_of(rows, names, now_ms))


def _tell(future: asyncio.Future[ScheduleStanding | None], found: Found) -> None:
    """Who asked may have gone."""
    if future.done():
        return
    if isinstance(found, Exception):
        future.set_exception(found)
    else:
        future.set_result(found)
