"""Ends a run that hangs, and prints where each of its threads is.

A seed takes a fraction of a second.  It takes for ever where a task waits outside of the stage, and
then the process has no work.  One that has work, and no time to do it, does not hang: so it is on a
busy machine, or on one that sleeps.
"""

from __future__ import annotations

import os
import sys
from faulthandler import dump_traceback
from threading import Thread
from time import process_time, sleep
from typing import Final

# Looks in a row that found no work done, a second apart; and seconds of work for one seed, more
# where so many requests lie there before it begins.
MOST_IDLE: Final = 120
MOST_WORK_S: Final = 300.0
A_REQUEST_S: Final = 0.02
# More than a look takes by itself.
WORK_S: Final = 0.005


class Watch:
    """Looks at the process once a second, from a thread of its own."""

    def __init__(self, backlog: int = 0) -> None:
        self._most_work_s = MOST_WORK_S + backlog * A_REQUEST_S
        self._began_s = process_time()
        Thread(target=self._look, daemon=True).start()

    def begins(self) -> None:
        """Another seed begins."""
        self._began_s = process_time()

    def _look(self) -> None:
        idle, before_s = 0, process_time()
        while True:
            sleep(1)
            now_s = process_time()
            idle = idle + 1 if now_s - before_s < WORK_S else 0
            before_s = now_s
            if idle >= MOST_IDLE or now_s - self._began_s > self._most_work_s:
                dump_traceback(sys.stderr)
                os._exit(1)
