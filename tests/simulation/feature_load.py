"""Requests of later features, swarm-style: each seed turns each of them on or off by its own draws.

    limits         groups that wait for acknowledgements: serial, or N at once
    overlaps       recurring schedules that wait for the acknowledgement of their own last fire
    after_acks     schedules that are due when another one is acknowledged
    after_groups   schedules that are due when all of a group are
    calendars      schedules that heed a calendar, and calendars that change
    backfills      ranges of the past that are fired, of schedules that recur; jobs are stopped
    pauses         schedules that are paused and resumed, one by one and by jobs

Somebody reads what fires and acknowledges most of it.  What nobody acknowledges times out.  Each
feature has names of schedules of its own, and a check of its own (`acks`, `dependents`, `days`,
`past`, `paused`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.broker import Entry
from tests.simulation.calendar_load import CalendarLoad
from tests.simulation.job_load import JobLoad
from tests.simulation.sent import Sent
from tests.simulation.timetable_load import by_seconds

if TYPE_CHECKING:
    from tests.simulation.load import Load

NAMES: Final = (
    "limits",
    "overlaps",
    "after_acks",
    "after_groups",
    "calendars",
    "backfills",
    "pauses",
)
OVERLAPS: Final = ("SKIP", "QUEUE_ONE", "QUEUE_ALL", "CANCEL_OTHER", "TERMINATE_OTHER")
# What waits for an acknowledgement has acknowledgements only where something asks for them.
ASKS: Final = ("limits", "overlaps")
TICK_MS: Final = 100.0
# So many of the last schedules may be waited for.
LAST: Final = 6


def drawn(random: Random) -> list[str]:
    """The features of one seed: each is on in six of ten; where none is, one of them."""
    found = [name for name in NAMES if random.random() < 0.6] or [random.choice(NAMES)]
    if {"after_acks", "after_groups"} & set(found) and not set(ASKS) & set(found):
        found.append("limits")
    return found


class FeatureLoad:
    """Draws requests of some features, and acknowledges what fires."""

    def __init__(
        self, load: Load, tenants: tuple[str, ...], random: Random, only: Sequence[str]
    ) -> None:
        self.on = list(only) or drawn(random)
        self._load, self._tenants, self._random = load, tenants, random
        self._calendars = CalendarLoad(load, tenants, random)
        self._jobs = JobLoad(load, random)
        self._asking: dict[str, Sent] = {}
        self._seen: dict[str, int] = {}
        self._last_ms = 0
        self._makers: dict[str, Callable[[str, int], Sent | None]] = {
            "limits": self._limited,
            "overlaps": self._overlapping,
            "after_acks": self._after_ack,
            "after_groups": self._after_group,
            "calendars": self._calendars.one,
            "backfills": self._jobs.past,
            "pauses": self._jobs.pause,
        }

    def send_one(self) -> None:
        """Draw a request of a feature and send it."""
        made = self._makers[self._random.choice(self.on)]
        # More than half are of one tenant: what is awaited and heeded has to meet.
        tenant = self._random.choice((*self._tenants, *[self._tenants[0]] * 4))
        sent = made(tenant, len(self._load.sent))
        if sent is not None:
            self._load.send(sent)

    def end(self) -> None:
        """No more requests come: calendars let everything go that still waits for a free day."""
        self._last_ms = self._load.broker.now_ms()
        if "calendars" in self.on:
            self._calendars.end()
        self._jobs.end()

    def clear(self) -> None:
        """Cancel what may be due on another day."""
        if "calendars" in self.on:
            self._calendars.clear()

    # -- what waits for acknowledgements -----------------------------------------------------------

    def _limited(self, tenant: str, number: int) -> Sent:
        at_once = self._random.choice((1, 2, 3))
        group = f"w{at_once}"
        at_ms = self._load.broker.now_ms() + self._random.randint(-500, 6_000)
        if self._random.random() < 0.3:
            at_ms = at_ms // 1_000 * 1_000
        fields: dict[str, Any] = {"at": at_ms, "group": group}
        if self._random.random() < 0.8:
            if self._random.random() < 0.15:
                at_once = self._random.choice((1, 2, 3))
            serial = at_once == 1 and self._random.random() < 0.5
            fields |= {"serial": True} if serial else {"concurrency": at_once}
            fields["ack_timeout_ms"] = self._random.choice((1_200, 2_500))
        asked = f"id-{number}" if self._random.random() < 0.5 else None
        return self._asks(Sent(f"l{number}", tenant, f"lim-{number}", "UPSERT", fields, asked))

    def _overlapping(self, tenant: str, number: int) -> Sent:
        fields: dict[str, Any] = {
            "kind": "EVERY",
            "start_at": self._load.broker.now_ms() + self._random.randint(100, 2_000),
            "interval_ms": self._random.choice((300, 700, 1_300)),
        }
        table = None
        if self._random.random() < 0.4:
            table = by_seconds(self._random, fields["start_at"])
            fields = table.fields
        fields |= {
            "max_fires": self._random.randint(2, 4),
            "overlap": self._random.choice(OVERLAPS),
            "ack_timeout_ms": self._random.choice((800, 2_000)),
        }
        sent = Sent(f"o{number}", tenant, f"over-{number}", "UPSERT", fields, None)
        sent.table = table
        return self._asks(sent)

    def _asks(self, sent: Sent) -> Sent:
        if "ack_timeout_ms" in sent.fields:
            self._asking[sent.name] = sent
        self._load.expect(self._load.broker.now_ms() + 8_000)
        return sent

    def _bounds(self, bounded: float) -> dict[str, Any]:
        """A delay, and an instant by which it fires all the same, in so many of cases."""
        delay_ms = self._random.choice((None, 0, 400, 1_500))
        latest_at = self._load.broker.now_ms() + self._random.randint(500, 8_000)
        self._load.expect(latest_at + 2_000)
        return {
            "ack_delay_ms": delay_ms,
            "latest_at": latest_at if self._random.random() < bounded else None,
        }

    def _after_ack(self, tenant: str, number: int) -> Sent | None:
        known = [sent for sent in self._asking.values() if sent.tenant == tenant][-LAST:]
        if not known:
            return None
        whom = self._random.choice(known).schedule_id
        fields = {"kind": "AFTER_ACK", "after_ack": whom, **self._bounds(0.8)}
        return Sent(f"d{number}", tenant, f"dep-{number}", "UPSERT", fields, f"id-{number}")

    def _after_group(self, tenant: str, number: int) -> Sent:
        group = self._random.choice(("w1", "w2", "w3"))
        fields = {"kind": "AFTER_GROUP", "after_group": group, **self._bounds(0.5)}
        return Sent(f"d{number}", tenant, f"dep-{number}", "UPSERT", fields, f"id-{number}")

    # -- who acknowledges --------------------------------------------------------------------------

    def read(self) -> None:
        """Read what has fired since, acknowledge most of it some time later; then once more."""
        broker = self._load.broker
        for tenant in self._tenants:
            for log in broker.topics.get(f"belfry.fired.{tenant}", ()):
                place = f"{log.topic}/{log.partition}"
                for entry in log.history[self._seen.get(place, 0) :]:
                    if entry.offset >= log.stable_end:
                        break
                    self._seen[place] = self._seen.get(place, 0) + 1
                    if entry.committed:
                        self._fired(self._load.payloads.as_read(tenant, entry))
        broker.stage.later(TICK_MS, self.read)

    def _fired(self, entry: Entry) -> None:
        sent = self._asking.get((entry.value or b"").decode())
        headers = dict(entry.headers or ())
        copied = "belfry-redriven" in headers
        if sent is None or copied or headers["belfry-occurrence"] == b"-1":
            return
        fire_id = (headers["belfry-fire-id"] or b"").decode()
        self._load.expect(self._load.broker.now_ms() + sent.fields["ack_timeout_ms"] + 1_000)
        # What comes when all faults have ended is acknowledged at once, mostly: a seed has to end.
        draw = self._random.random() / (2 if self._last_ms else 1)
        if draw < 0.75:
            times = 2 if draw < 0.1 else 1
            for _ in range(times):
                after_ms = self._random.random() * (300 if self._last_ms else 1_600)
                self._load.broker.stage.later(after_ms, lambda: self._ack(sent, fire_id))

    def _ack(self, sent: Sent, fire_id: str) -> None:
        number = len(self._load.sent)
        fields = {"fire_id": fire_id}
        name = f"k{number}"
        ack = Sent(name, sent.tenant, sent.schedule_id, "ACK", fields, f"id-{number}")
        self._load.send(ack)
