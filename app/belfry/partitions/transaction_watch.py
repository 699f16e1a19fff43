"""A watch on transactions that hold belfry's readers back, wherever they read (`watched_places`).

belfry's own transactions last for milliseconds. So a last stable offset that stays the same between
two looks shows the transaction of a stranger, or of an owner that died. The brokers are asked whose
it is. The answer goes to the log, into a metric, and to a partition that takes requests in: it does
not wait for a stranger (`intake_end`).

    12:00:00.0  a program begins a transaction in belfry.schedules/2, and hangs
    12:00:04.0  partition 2 is taken over here: `follow`, so there is a look twice a second
    12:00:04.1  look: last stable offset 70, end 75
    12:00:04.6  look: still 70; DescribeProducers names the program: a stranger
    12:00:04.7  all up to 70 has been taken in: the owner fires, and does not wait
    12:00:06.6  it has been open for long enough: the log names it, and says what to do

A transaction in its changelog does not disturb a running owner. But no worker can take its
partition over before that transaction has ended, so operators should know in good time.

The offsets are KIP-98's last stable offset and the high watermark; the requests of KIP-664 tell who
has a transaction open.
"""

from __future__ import annotations

from math import inf
from typing import Final

import structlog
from confluent_kafka import KafkaException

from belfry.host import machine
from belfry.host.background import Background
from belfry.host.clock import SystemClock
from belfry.kafka import open_transactions
from belfry.kafka.fetch_position import Where
from belfry.kafka.holders import OpenTransaction, Untold, tell, untold
from belfry.kafka.log_ends import LogEnds
from belfry.partitions.gauges import Gauges
from belfry.partitions.other_places import OtherPlaces
from belfry.partitions.watched_places import REQUEST_S, SCHEDULES, WatchedPlaces
from belfry.settings import SharedSettings
from belfry.telemetry.limited import LimitedLogger

# Seconds between two looks, usually, and while a partition is being taken over.
LOOK_S: Final = 10.0
HURRIED_S: Final = 0.5
# Looks are frequent for so long after the begin of a take-over, which may wait for the answer.
HURRY_FOR_S: Final = 35.0
# A look at many partitions takes its time; the pauses between looks are longer than that.
PAUSES: Final = 3.0
# A transaction is logged once it has been open for so long.
TOLD_AFTER_MS: Final = 2_000.0
# Seconds for all questions whose transaction it is, where no take-over waits for the answer.
NAMED_S: Final = 10.0

log = structlog.get_logger(__name__)


class TransactionWatch:
    """A thread that looks at the partitions that this worker reads.

    `follow`, `forget` and `stranger` come from partitions' threads and return at once.
    """

    def __init__(
        self,
        settings: SharedSettings,
        places: WatchedPlaces,
        clock: SystemClock,
        metrics: Gauges,
        log_ends: LogEnds,
    ) -> None:
        """`places` finds the partitions to look at, `log_ends` their ends."""
        self._settings = settings
        self._places = places
        self._clock = clock
        self._metrics = metrics
        self._log = LimitedLogger(log, first=1)
        self._ends = log_ends
        self._lock = machine.Lock()
        self._followed: dict[int, float] = {}
        self._stable: dict[Where, int] = {}
        # The same for tenants' topics and deliveries, which are looked at less often.
        self._others = OtherPlaces(places, self._behind, log_ends.told_held_back, self._log)
        self._others_at = -inf
        self._since_ms: dict[Where, float] = {}
        self._strangers: dict[Where, OpenTransaction] = {}
        # Looks are numbered: a look that began before a take-over does not count for it.
        self._number = 0
        self._followed_at: dict[int, int] = {}
        self._begun = machine.monotonic()
        self._hurry = machine.Event()
        self._thread = Background("transactions", self._turn, log, "transactions not looked at")

    def start(self) -> None:
        """Begin to look."""
        self._begun = machine.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._thread.stopping.set()
        self._hurry.set()
        self._thread.stop()

    def follow(self, partition: int) -> None:
        """This partition is being taken over: look often for a while."""
        with self._lock:
            self._followed[partition] = machine.monotonic()
            # An earlier answer, or one of a look that has begun already, does not count for the
            # take-over.
            self._followed_at[partition] = self._number
            self._strangers.pop((self._settings.topic(SCHEDULES), partition), None)
        self._hurry.set()

    def forget(self, partition: int) -> None:
        """This partition was given up."""
        with self._lock:
            self._followed.pop(partition, None)
            self._followed_at.pop(partition, None)

    def stranger(self, partition: int) -> OpenTransaction | None:
        """The stranger's transaction that holds readers of a partition back, by the last look."""
        with self._lock:
            return self._strangers.get((self._settings.topic(SCHEDULES), partition))

    # -- the thread ------------------------------------------------------------------------------

    def _turn(self) -> None:
        """One turn of the thread: look, then pause until the next look, or until `follow`."""
        began = machine.monotonic()
        try:
            self._look()
        except (KafkaException, ConnectionError) as error:
            # The cluster is away.
            self._log.warning("away", "transactions not looked at", cause=str(error))
            self._failed()
        except Exception:
            self._failed()
            raise
        pause_s = HURRIED_S if self._hurried() else LOOK_S
        self._hurry.wait(max(pause_s, PAUSES * (machine.monotonic() - began)))
        self._hurry.clear()

    def _hurried(self) -> bool:
        """Whether the watch, or a take-over, began a short while ago."""
        now = machine.monotonic()
        with self._lock:
            latest = max(self._followed.values(), default=self._begun)
        return now - max(latest, self._begun) < HURRY_FOR_S

    def _failed(self) -> None:
        """Forget the strangers: their transactions may have ended since."""
        with self._lock:
            self._strangers = {}
        self._places.forget()

    def _look(self) -> None:
        """Look once, ask whose transactions are open, log them, and keep those of strangers."""
        with self._lock:
            self._number += 1
            number = self._number
        stuck = self._stuck()
        strangers: dict[Where, OpenTransaction] = {}
        ages_s: dict[tuple[str, int], float] = {}
        now_ms, until = self._clock.wall_ms(), machine.monotonic() + NAMED_S
        for place in stuck:
            found, why = self._found(place, until)
            first = found[0] if found else None
            app_id = self._settings.cluster.app_id
            if first is not None and first.is_of(app_id) and not first.overdue(now_ms):
                continue
            if first is None and not why:
                # It has ended since the look.
                continue
            if first is not None and not first.is_of(app_id):
                strangers[place] = first
            since_ms = self._since_ms[place] if first is None else first.since_ms
            ages_s[self._places.name(place[0]), place[1]] = max(0.0, now_ms - since_ms) / 1000
            if now_ms - since_ms >= TOLD_AFTER_MS:
                self._tell(place, found, why, now_ms)
        with self._lock:
            self._strangers = {
                place: each
                for place, each in strangers.items()
                if self._followed_at.get(place[1], 0) < number
            }
        self._metrics.open_transactions(ages_s)

    def _found(self, place: Where, until: float) -> tuple[list[OpenTransaction], str]:
        """Transactions that are open in a partition; or none, and why no broker names them."""
        if place not in self._stable and machine.monotonic() >= until:
            return [], "not asked: to name others took too long"
        try:
            return open_transactions.look_up(self._settings.kafka_properties(), [place]), ""
        except Untold as error:
            return [], str(error)

    def _tell(self, place: Where, found: list[OpenTransaction], why: str, now_ms: float) -> None:
        """Log who holds readers back, and what to do."""
        (topic, partition), settings = place, self._settings
        told = tell(found, place, settings, now_ms) if found else untold(why, place, settings)
        self._log.warning(
            f"{topic}/{partition}",
            f"a transaction stays open in {topic}/{partition}: {self._places.means(topic)}",
            last_stable_offset=self._stable.get(place, self._others.stable.get(place)),
            held_by=told.who, to_do=told.to_do,
        )  # fmt: skip

    def _stuck(self) -> list[Where]:
        """Partitions whose last stable offset is before the log's end, as at the last look."""
        with self._lock:
            followed = sorted(self._followed)
        stable = self._behind(self._places.of(followed), REQUEST_S)
        if machine.monotonic() - self._others_at >= LOOK_S:
            self._others_at = machine.monotonic()
            self._others.look(followed)
        stuck = [place for place, at in stable.items() if self._stable.get(place) == at]
        stuck += self._others.stuck
        now_ms = self._clock.wall_ms()
        self._since_ms = {place: self._since_ms.get(place, now_ms) for place in stuck}
        self._stable = stable
        return stuck

    def _behind(self, places: list[Where], wait_s: float) -> dict[Where, int]:
        """The last stable offsets of those partitions that have a later end."""
        # In this order: a record that is appended in between does not look like a hidden one.
        ends = self._ends.all_ends(places, wait_s)
        readable = self._ends.all_readable(places, wait_s)
        return {place: readable[place] for place in places if readable[place] < ends[place]}
