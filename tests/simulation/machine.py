"""One simulated machine: a process, its clock, its way to the broker, and what strikes it.

`Weather` says how long things take and what becomes of messages; it draws from the seed.  `Strike`
is a fault at a named step: S0-S9 of a transaction, R1-R4 of a take-over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.broker import Broker
from tests.simulation.day_objects import DayObjects
from tests.simulation.disk import Disk
from tests.simulation.objects import Objects
from tests.simulation.stage import Host, here

if TYPE_CHECKING:
    from tests.simulation.calling import Calling
    from tests.simulation.webhooks import Hooks


@dataclass(slots=True)
class Weather:
    """Chances (0 to 1) and durations of one scenario; `calm` ends all faults."""

    random: Random
    slow: float = 0.01
    slow_ms: float = 200.0
    late_end: float = 0.0
    # An EndTxn of the direct writer alone; `late_end` strikes all of its requests.
    late_end_alone: float = 0.0
    # How late it arrives at most.
    latest_ms: float = 20_000.0
    lost_end: float = 0.0
    lost_reply: float = 0.0
    lost_batch: float = 0.0
    no_answer: float = 0.0
    eager: float = 0.2
    partial: float = 0.01
    moved: float = 0.005
    # Records of producers without transactions (`polled`).
    lost_record: float = 0.0
    unheard_record: float = 0.0
    late_record: float = 0.0

    def latency_ms(self) -> float:
        """How long a message travels."""
        if self.random.random() < self.slow:
            return self.random.random() * self.slow_ms
        return 0.5 + self.random.random() * 2.5

    def strikes(self, chance: float) -> bool:
        """Whether something of this chance happens now."""
        return chance > 0 and self.random.random() < chance

    def end_fate(self) -> str:
        """What becomes of an EndTxn, or a direct writer's request: ok, late, lost or unheard."""
        for chance, fate in (
            (self.late_end, "late"),
            (self.lost_end, "lost"),
            (self.lost_reply, "unheard"),
        ):
            if self.strikes(chance):
                return fate
        return "ok"

    def record_fate(self) -> str:
        """What becomes of a record that travels by itself: ok, lost, unheard or late."""
        for chance, fate in (
            (self.lost_record, "lost"),
            (self.unheard_record, "unheard"),
            (self.late_record, "late"),
        ):
            if self.strikes(chance):
                return fate
        return "ok"

    def calm(self) -> None:
        """No more faults."""
        self.slow = self.late_end = self.lost_end = self.lost_reply = 0.0
        self.lost_batch = self.no_answer = self.partial = self.moved = 0.0
        self.late_end_alone = 0.0
        self.lost_record = self.unheard_record = self.late_record = 0.0


@dataclass(slots=True)
class Strike:
    """What happens when a step is reached for the `after`-th time."""

    step: str
    after: int
    what: Callable[[Machine], None]


@dataclass(eq=False, slots=True)
class Machine(Host):
    """A host with everything that a worker touches; `skew_ms` is its clock minus the broker's."""

    broker: Broker = field(kw_only=True)
    weather: Weather = field(kw_only=True)
    disk: Disk = field(kw_only=True)
    # Where its large payloads go.
    objects: Objects | None = field(default=None, kw_only=True)
    # And payloads of what is due far ahead.
    days: DayObjects | None = field(default=None, kw_only=True)
    # What its webhooks are posted to.
    hooks: Hooks | None = field(default=None, kw_only=True)
    # Who calls it over HTTP.
    calling: Calling | None = field(default=None, kw_only=True)
    skew_ms: float = 0.0
    # How long the machine was suspended: for so long its monotonic clock stood still.
    slept_ms: float = 0.0
    cut: bool = False
    strikes: list[Strike] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)

    def names(self, _step: str) -> bool:
        """No failpoint needs a thread of its own: a task may be stopped anywhere."""
        return False

    def reach(self, step: str) -> None:
        """A failpoint: others may go first, and a fault may strike."""
        stage = here()
        stage.check()
        for strike in self.strikes:
            if strike.step == step:
                strike.after -= 1
                if strike.after == 0:
                    self.strikes.remove(strike)
                    self.struck.append(step)
                    strike.what(self)
                break
        if self.weather.random.random() < 0.1:
            stage.turn()

    def wall_ms(self) -> float:
        """Epoch milliseconds, as this machine believes."""
        return self.broker.began_ms + here().now_ms + self.skew_ms

    def monotonic_ms(self) -> float:
        """Milliseconds since some instant; never steps."""
        return 1_000_000.0 + here().now_ms - self.slept_ms

    def both_ms(self) -> tuple[float, float]:
        """Both clocks of one moment."""
        return self.wall_ms(), self.monotonic_ms()

    def travel(self, timeout_ms: float) -> bool:
        """One way to the broker; False, after the time-out, where the network is cut."""
        stage = here()
        stage.check()
        if self.cut:
            stage.sleep(timeout_ms)
            return False
        stage.sleep(self.weather.latency_ms())
        return not self.cut


def machine() -> Machine:
    """The machine that the current task runs on."""
    host = here().current.host
    assert isinstance(host, Machine), f"{host.name} is no machine"
    return host
