"""Failpoints: named steps at which a test may end, stop or hurt this very process.

``BELFRY_FAILPOINT=S5:kill`` ends the process with SIGKILL the first time that step S5 is reached;
``S5:stop`` stops it (SIGSTOP), ``S5:term`` asks it to stop, ``S5:kill:12`` waits for the twelfth
time; ``S5:hang`` holds the step for a second, so that queued requests get to the broker, and then
ends the process.  ``R1:late:6`` holds the step for six seconds each time, and goes on.

Steps: S0-S5 and S7-S9 of a step, P1 behind the store of its large payloads, D1 behind that of a day
file, D2 before the commit of rows of one, R1-R4 of a take-over, C1 and C2 of sending a
checkpoint to its store, C3 of giving another worker a piece of one;
S6, an EndTxn that is sent and not answered, lies inside librdkafka and can only be seen from the
wire.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Final

SIGNALS: Final = {
    "kill": signal.SIGKILL,
    "stop": signal.SIGSTOP,
    "term": signal.SIGTERM,
    "hang": signal.SIGKILL,
}
LATE: Final = "late"
HANG_S: Final = 1.0


class Failpoints:
    """Reaches failpoints; `spec` is ``STEP:SIGNAL[:COUNT]`` or empty."""

    def __init__(self, spec: str = "") -> None:
        step, _, rest = spec.partition(":")
        name, _, count = rest.partition(":")
        if spec and name not in {*SIGNALS, LATE}:
            raise ValueError(
                f"failpoint {spec!r}: {name!r} is none of {', '.join(SIGNALS)}, {LATE}"
            )
        self._step = step
        self._signal = SIGNALS.get(name)
        self._late_s = float(count or 1) if name == LATE else 0.0
        self._hold_s = HANG_S if name == "hang" else 0.0
        self._left = int(count or 1)

    def names(self, step: str) -> bool:
        """Whether the specification names this step, which may then take its time."""
        return step == self._step

    def reach(self, step: str) -> None:
        """Do the action of the specification, if it names this step and this time."""
        if not self.names(step):
            return
        if self._signal is None:
            time.sleep(self._late_s)
            return
        self._left -= 1
        if self._left == 0:
            time.sleep(self._hold_s)
            os.kill(os.getpid(), self._signal)
