"""Signals at named steps: fourteen steps of a transaction and a take-over, by three signals.

S0-S5, S7-S9 and R1-R4 are failpoints inside the worker; S6, an EndTxn that is sent and not
answered, is seen by the hop.  The victim signals itself, so its end tells that it struck:

    kill   exit code -9, and nobody else has killed it
    stop   the process is stopped; it sleeps through its session, loses everything, and wakes up
    term   exit code 0, and nobody else has asked it to stop
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from tests.acceptance.harness.site import wait_for
from tests.chaos.scene import Fault, Scene, asleep, sleep_through_a_session

STEPS: Final = (
    "S0", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "R1", "R2", "R3", "R4",
)  # fmt: skip
SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}
EXIT_CODES: Final = {"kill": -signal.SIGKILL, "term": 0}
# A worker owns half of the partitions: it takes two over, and makes some steps a second.
MOST_TIMES: Final = {"S": 60, "R": 2}
STRIKE_S: Final = 120.0


def step_faults() -> Iterator[tuple[str, Fault]]:
    """All steps by all signals."""
    for step in STEPS:
        for name in SIGNALS:
            yield f"{step} {name}", partial(_at_step, step=step, name=name)


def _at_step(scene: Scene, step: str, name: str) -> str:
    """Signal the victim at a step; afterwards it is down, or awake again."""
    scene.rest()
    count = scene.chance.randint(1, MOST_TIMES[step[0]])
    (_unanswered if step == "S6" else _by_itself)(scene, f"{step}:{name}:{count}")
    if name == "stop":
        sleep_through_a_session(scene)
        return f"stopped at the {count}. {step}, woken after the other had taken over"
    assert scene.victim.wait_end(STRIKE_S) == EXIT_CODES[name], scene.victim.tail()
    scene.wait_steady_has_all()
    return f"exit code {EXIT_CODES[name]} at the {count}. {step}"


def _by_itself(scene: Scene, failpoint: str) -> None:
    scene.victim.start(failpoint)
    if ":stop:" in failpoint:
        _wait_struck(scene, failpoint, lambda: asleep(scene.victim))


def _unanswered(scene: Scene, failpoint: str) -> None:
    """The answer to one EndTxn stays in the hop while the signal is sent, and comes after it."""
    _, name, count = failpoint.split(":")
    scene.victim.start()
    scene.wait_calm()
    hop = scene.hop
    hop.hold_end_txn(int(count))
    try:
        _wait_struck(scene, failpoint, hop.struck.is_set)
        scene.victim.signal(SIGNALS[name])
    finally:
        hop.release()


def _wait_struck(scene: Scene, failpoint: str, struck: Callable[[], bool]) -> None:
    def seen() -> bool:
        assert scene.runs(scene.victim), f"ended before {failpoint}: {scene.victim.tail()}"
        return struck()

    wait_for(f"the victim to reach {failpoint}", seen, STRIKE_S)
