"""The rule of a schedule, as a value: when it recurs, and the treatment of late occurrences.

    Rule("CRON", "0 9 * * MON", timezone="Europe/Paris", max_fires=10)    recurs, ten times
    Rule("EVERY", 900_000, except_cron="* 0-5 * * *")                     but not at night
    Rule("AT", misfire="SKIP", max_lateness_ms=30_000)                    once, or not at all
    Rule("AT")                                                            says nothing: no bytes

It holds the fields of a request about time and lateness, without the event.  `encoding` has its
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# The meaning of a code of the record; 0 is free, so that a zeroed byte is seen as damage.
POLICIES: Final = ("", "FIRE_ONCE", "FIRE_ALL", "SKIP")
OVERLAPS: Final = (
    *("", "ALLOW", "SKIP", "QUEUE_ONE"),
    *("QUEUE_ALL", "CANCEL_OTHER", "TERMINATE_OTHER"),
)
# The treatment of an instant on a day off of the calendar; a rule that says nothing skips.
ON_HOLIDAY: Final = ("", "SKIP", "NEXT_BUSINESS_DAY", "PREVIOUS_BUSINESS_DAY")
DEFAULT_LATENESS_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Rule:
    """When a schedule recurs, within which bounds, and the treatment of late occurrences.

    `when` is the value of the field of a recurring kind: the interval of EVERY in milliseconds, the
    expression of CRON.  The instant of a one-shot schedule is no part of its rule.  Instants are
    epoch milliseconds, bounds inclusive; None stands for "not given".

    `misfire` and `overlap` are symbols of `POLICIES` and `OVERLAPS`.  `max_fires` counts fires, and
    not occurrences that were given up.  `serial` is True or None.  `targets` are the bytes of
    `targets.encode_targets`.
    """

    kind: str
    when: int | str | None = None
    timezone: str | None = None
    start_at: int | None = None
    end_at: int | None = None
    max_fires: int | None = None
    misfire: str | None = None
    max_lateness_ms: int | None = None
    overlap: str | None = None
    serial: bool | None = None
    ack_timeout_ms: int | None = None
    # The cron expression of the minutes that are left out.
    except_cron: str | None = None
    # Name of the calendar, the treatment of instants on its days off, and these days at rest.
    calendar: str | None = None
    on_holiday: str | None = None
    packed_days: bytes | None = None
    # The seed of the numbers of H in an expression; see `cron_spelling.seed_of`.
    seed: int | None = None
    # How long after the first of the requests that slide it a delay ends at the latest.
    max_wait_ms: int | None = None
    # How many fires of the group may be awaited at once; serial is one.
    concurrency: int | None = None
    # Whose acknowledgement is waited for, how long after it the schedule is due, and when at the
    # latest.
    awaited: str | None = None
    ack_delay_ms: int | None = None
    latest_at: int | None = None
    # Which of the tenant's events that are held back leave first; None for 0.
    priority: int | None = None
    targets: bytes | None = None

    @property
    def recurs(self) -> bool:
        """Whether more than one occurrence may follow."""
        return self.when is not None

    @property
    def at_once(self) -> int:
        """How many fires may be awaited before the group waits; 0 where it never does."""
        return 1 if self.serial else self.concurrency or 0

    @property
    def lateness_limit_ms(self) -> int | None:
        """How late an occurrence still is in time; None: however late."""
        if self.max_lateness_ms is not None:
            return self.max_lateness_ms
        return DEFAULT_LATENESS_MS if self.recurs else None
