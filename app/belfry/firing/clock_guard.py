"""The clock guard: which instant counts as *now*, and whether to fire at all.

The wall clock is compared with the monotonic clock (a step) and with the broker's append time (a
skew).  A probe is a record whose send instant, append instant and acknowledgement are known:

    local   ──sent────────────────────acknowledged──►
    broker  ─────────appended───────────────────────►

    sent − appended ≤ skew ≤ acknowledged − appended

The lower bound is less than the true skew (local ahead of broker) by the time that the record
travels, and for a single slow record it may be much less.  The upper bound is never less.  So the
guard takes the larger of two values: the largest lower bound, or the least upper bound minus the
time that every fired record is under way.  Firing when ``local − max(0, skew) ≥ due`` then appends
no record before its due instant by the broker's clock.  Where the clocks agree and the broker
answers quickly, the correction is 0.  Beyond `tolerance_ms` firing pauses until a fresh probe shows
a right clock.

    sent 100, appended 80, acknowledged 105      20 ≤ skew ≤ 25; taken: max(20, 25 - 2) = 23
    wall clock 12:00:00.500                      now is 12:00:00.477
    then the wall clock steps by +40             skew 63 until the next probe, tolerance 1 000
    or it gains a millisecond, little by little  skew 24: gains too small for a step count too
    then it steps by +5 000                      firing pauses

The bounds are those of Cristian, *Probabilistic clock synchronization* (1989); bounds of several
probes are joined by intersection.
"""

from __future__ import annotations

from math import floor
from typing import Final, NamedTuple

PROBE_AGE_MS: Final = 30_000
# Bounds are kept for one to two such spans: over a longer time, clocks drift out of them.
SPAN_MS: Final = 60_000
# Two clocks are read within a millisecond of each other, and brokers give whole milliseconds.
NOISE_MS: Final = 2
# A fired record takes longer than this, from the look at the clock to its append.
ON_THE_WAY_MS: Final = 2
# Bounds further apart than this are worth another probe, up to so many probes.
VAGUE_MS: Final = 20
SEVERAL: Final = 5


class SkewBounds(NamedTuple):
    """The skew in ms lies between these bounds, by so many probes."""

    least: float
    most: float
    probes: int = 1

    def moved(self, step_ms: float) -> SkewBounds:
        """These bounds after the local clock was set."""
        return SkewBounds(self.least + step_ms, self.most + step_ms, self.probes)

    def narrowed(self, by: SkewBounds | None) -> SkewBounds:
        """The intersection of both bounds."""
        if by is None:
            return self
        least, most = max(self.least, by.least), min(self.most, by.most)
        return SkewBounds(least, most, self.probes + by.probes)

    def denies(self, other: SkewBounds) -> bool:
        """Whether both cannot be true: then a clock was set, or went too fast."""
        return self.least - other.most > NOISE_MS or other.least - self.most > NOISE_MS


class ClockGuard:
    """Watches one worker's clock; instants in epoch ms, monotonic readings in ms."""

    def __init__(self, tolerance_ms: int) -> None:
        self._tolerance_ms = tolerance_ms
        # The bounds of the present span, and of the one before.
        self._young: SkewBounds | None = None
        self._old: SkewBounds | None = None
        self._span_ms = 0.0
        self._proven_ms = 0.0
        # Wall clock minus monotonic clock: at the last look, and where bounds were measured.
        self._offset_ms: float | None = None
        self._trusted_offset_ms: float | None = None
        # How much the wall clock has gained since the last probe was acknowledged.
        self._gained_ms = 0.0
        self._probed_at_ms: float | None = None
        self.paused_because = "the clock has not been compared with the broker's yet"

    @property
    def skew_ms(self) -> float:
        """How far the local clock may be ahead of the broker's: the proven skew and later gains."""
        return self._proven_ms + max(0, self._gained_ms)

    @property
    def may_fire(self) -> bool:
        """Whether the clock is trusted."""
        return not self.paused_because

    def now_ms(self, wall_ms: float) -> int:
        """The instant up to which events may fire when the wall clock reads `wall_ms`."""
        return floor(wall_ms - self.skew_ms)

    def observe(self, wall_ms: float, monotonic_ms: float) -> None:
        """Look at both clocks: a step of the wall clock pauses firing until the next probe.

        Steps count from the last probe, so several small steps count like a large one.  A step that
        is too small for a pause delays firing by its size, until the next probe.  Readings have
        fractions of milliseconds, so that small gains of a clock count at once.
        """
        self._offset_ms = wall_ms - monotonic_ms
        if self._trusted_offset_ms is None:
            self._trusted_offset_ms = self._offset_ms
        self._gained_ms = self._offset_ms - self._trusted_offset_ms
        if abs(self._gained_ms) > self._tolerance_ms and self.may_fire:
            self._distrust(f"the clock stepped by {round(self._gained_ms)} ms")

    def wants_probe(self, monotonic_ms: float) -> bool:
        """Whether the clock should be compared with the broker's now."""
        if self.paused_because or self._stepped or self._probed_at_ms is None:
            return True
        return monotonic_ms - self._probed_at_ms >= PROBE_AGE_MS or self._vague

    def probed(
        self,
        sent_ms: float,
        appended_ms: int,
        acknowledged_ms: float,
        acknowledged_at_ms: float,
    ) -> None:
        """A record sent at `sent_ms` was appended at `appended_ms` by the broker's clock.

        `acknowledged_at_ms` is the monotonic reading beside `acknowledged_ms`.  So the probe is a
        proof for the clock as it was then: earlier bounds are moved by its gain up to then, and
        gains that were seen since still count.  Before the first look at both clocks a probe proves
        nothing: a step of the clock since it was sent would not be seen.
        """
        if self._offset_ms is None or self._trusted_offset_ms is None:
            return
        offset_ms = acknowledged_ms - acknowledged_at_ms
        step_ms = offset_ms - self._trusted_offset_ms
        self._trusted_offset_ms, self._probed_at_ms = offset_ms, acknowledged_at_ms
        self._gained_ms = self._offset_ms - offset_ms
        found = SkewBounds(sent_ms - appended_ms, acknowledged_ms - appended_ms)
        today = found.moved(self._gained_ms)
        for wrong_ms, side in ((today.least, "ahead of"), (-today.most, "behind")):
            if wrong_ms > self._tolerance_ms:
                self._forget()
                self.paused_because = (
                    f"the clock is {round(wrong_ms)} ms {side} the broker's;"
                    f" {self._tolerance_ms} ms are allowed: synchronise both with NTP"
                )
                return
        self._learn(found, step_ms)
        self.paused_because = ""

    @property
    def _stepped(self) -> bool:
        """Whether the clock has gained or lost more than two readings may differ."""
        return abs(self._gained_ms) > NOISE_MS

    @property
    def _vague(self) -> bool:
        young = self._young
        return young is not None and young.probes < SEVERAL and young.most - young.least > VAGUE_MS

    def _learn(self, found: SkewBounds, step_ms: float) -> None:
        """Join a probe with earlier bounds, after moving these by the step of the clock since."""
        young, old = self._young, self._old
        young, old = young and young.moved(step_ms), old and old.moved(step_ms)
        assert self._probed_at_ms is not None
        if self._probed_at_ms - self._span_ms >= SPAN_MS:
            young, old, self._span_ms = None, young, self._probed_at_ms
        if any(each is not None and found.denies(each) for each in (young, old)):
            young = old = None
        self._young, self._old = found.narrowed(young), old
        both = self._young.narrowed(old)
        self._proven_ms = max(0, both.least, both.most - ON_THE_WAY_MS)

    def _forget(self) -> None:
        self._young = self._old = None
        self._proven_ms = 0.0

    def _distrust(self, why: str) -> None:
        self._forget()
        self._probed_at_ms = None
        self.paused_because = why
