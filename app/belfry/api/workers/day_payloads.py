"""Payloads out of day files, for looks at a schedule; workers do not use it to fire.

    row with a reference ─► read of late? ─ yes ─► the payload
                                └ no ─► asked of the store, in a thread ─► checked ─► the payload
                                          └ late, gone, or other bytes ─► NotShown, with the reason

A look waits for `MOST_S` at most, less than workers wait for one another.  A later payload is kept
for the next look. At most `AT_ONCE` questions are under way, also those without a waiting caller,
so a silent store costs at most so many threads.

A reference names bytes by their digest. So a kept payload is never stale, even if the schedule has
changed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Final

from belfry.host import machine
from belfry.outputs.day_store import DayStore, NotKept
from belfry.store.layout.day_reference import Reference, decode_reference

MOST_S: Final = 1.5
AT_ONCE: Final = 4
# All payloads that are kept; a larger one is read anew at each look.
KEPT_BYTES: Final = 1_000_000
LIES: Final = "its payload lies in a day file"
RUNBOOK: Final = "see docs/runbooks/BelfryDayFilesNotRead.md"

_Future = asyncio.Future[bytes]


class NotShown(Exception):
    """A payload cannot be shown now; the message says why, and what to do."""


class DayPayloads:
    """Reads payloads out of day files; belongs to one event loop."""

    def __init__(self, store: DayStore | None) -> None:
        """`store` is None if this worker has none."""
        self._store = store
        self._free = asyncio.Semaphore(AT_ONCE)
        self._kept: OrderedDict[Reference, bytes] = OrderedDict()
        self._kept_bytes = 0

    async def of(self, stands: bytes) -> bytes:
        """The payload for which these bytes stand in a row; raises `NotShown`."""
        if self._store is None:
            raise NotShown(
                f"{LIES}, and this worker has no store of them: set BELFRY_DAY_STORE as the other"
                " workers have it"
            )
        try:
            reference = decode_reference(stands)
        except ValueError as error:
            raise NotShown(f"{LIES}, by {error}: run that one") from None
        if reference in self._kept:
            self._kept.move_to_end(reference)
            return self._kept[reference]
        try:
            async with asyncio.timeout(MOST_S):
                await self._free.acquire()
                return await self._asked(self._store, reference)
        except TimeoutError:
            why = f"whose store has not answered within {MOST_S:g} s: look again"
        except FileNotFoundError:
            why = f"which is gone: {RUNBOOK}"
        except NotKept:
            why = f"which holds something else in its place: {RUNBOOK}"
        except Exception as error:  # noqa: BLE001  # whatever a store of others raises
            # Its text may name what a tenant need not know.
            why = f"whose store does not give it now ({type(error).__name__}): look again"
        raise NotShown(f"{LIES}, {why}")

    def _asked(self, store: DayStore, reference: Reference) -> _Future:
        """Ask the store, in a thread of its own, which does not keep the process."""
        loop = asyncio.get_running_loop()
        future: _Future = loop.create_future()

        def ask() -> None:
            try:
                answer: bytes | Exception = store.payloads([reference])[0]
            except Exception as error:  # noqa: BLE001  # told where somebody waits for it
                answer = error
            # The loop ends with the process.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._answered, future, reference, answer)

        try:
            machine.Thread(target=ask, name="belfry-day-look", daemon=True).start()
        except RuntimeError:
            self._free.release()
            raise
        return future

    def _answered(self, future: _Future, reference: Reference, answer: bytes | Exception) -> None:
        self._free.release()
        if isinstance(answer, bytes):
            self._keep(reference, answer)
        if future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _keep(self, reference: Reference, payload: bytes) -> None:
        if reference in self._kept or len(payload) > KEPT_BYTES:
            return
        self._kept[reference] = payload
        self._kept_bytes += len(payload)
        while self._kept_bytes > KEPT_BYTES:
            _, gone = self._kept.popitem(last=False)
            self._kept_bytes -= len(gone)
