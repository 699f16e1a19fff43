"""The end of a process whose work is done: a part that hangs delays the end only for so long.

    12:00:00.500  the worker has left the group: no partition, no store and no transaction is open
    12:00:00.510  history, policies, outputs … are asked to stop, each in a thread of its own
    12:00:00.700  all have: the process ends by itself
    12:00:20.510  one has not, such as a client that waits for a broker: it is named, and left

A tool that restarts workers one by one waits for each of them, and would kill a hanging one after a
while anyway.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NoReturn

import structlog

# Seconds in which all parts have to close.
CLOSE_S: Final = 20.0

log = structlog.get_logger(__name__)


def end_now(code: int) -> NoReturn:
    """End the process with this code, even if threads still run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def stopped_once(asked: asyncio.Event, stop: Callable[[], object]) -> None:
    """Stop something in a thread as soon as the end is asked for."""
    await asked.wait()
    await asyncio.to_thread(stop)


async def closed(
    stops: Mapping[str, Callable[[], object]], closing: Mapping[str, Awaitable[object]], code: int
) -> None:
    """Call all `stops`, each in a thread, and wait for them and for those that close already.

    Each waits for a read that is under way; together they take no longer than the slowest. If some
    are not done within `CLOSE_S`, the process ends here, with this exit code. Raises an error that
    one of them raises.
    """
    names = {asyncio.ensure_future(each): name for name, each in closing.items()}
    names |= {asyncio.ensure_future(asyncio.to_thread(each)): name for name, each in stops.items()}
    done, late = await asyncio.wait(names, timeout=CLOSE_S)
    if late:
        parts = sorted(names[each] for each in late)
        log.warning("ended while something still closes", parts=parts)
        end_now(code)
    for each in done:
        each.result()
