"""The effect of a rule, told before it is asked for: in words, in instants, with warnings.

`preview` takes a request as it would be sent, so that a command line without a broker and an API
show the same.  A request that the engine would refuse is refused here, except a rule that is never
due: that is worth seeing.

    {"kind": "CRON", "cron": "30 2 * * *", "timezone": "Europe/Paris"}

    words         At 02:30, Europe/Paris
    occurrences   0  2026-03-28T02:30:00.000+01:00
                  1  2026-03-29T03:00:00.000+02:00        the clock has gone forward
                  2  2026-03-30T02:30:00.000+02:00
    warnings      clock_gap  2026-03-29 02:30 on the wall does not exist; it fires once, at …

The instants come from the trigger that the engine would fire by, so a preview and the fires agree.
They are nominal: a jitter is told in the words, and not added.  A preview knows nothing of state: a
version, a quota or a debounce that is under way is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from belfry.schedules.checks import trigger_problem
from belfry.schedules.instants import format_duration, format_instant
from belfry.schedules.jitter import distance_within
from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request
from belfry.schedules.rule import rule_of
from belfry.schedules.triggers import Trigger, trigger_by
from belfry.schedules.triggers.acknowledged import FAR_MS
from belfry.schedules.triggers.heeding import Heeding
from belfry.schedules.triggers.kind import TriggerKind, Warned
from belfry.schedules.triggers.left_out import left_out_words
from belfry.schedules.triggers.registry import KINDS, ONE_SHOT
from belfry.schedules.triggers.trigger import DEFAULT_ZONE
from belfry.schedules.triggers.zones import END_S, UnknownZone, zone

__all__ = ["MOST", "Occurrence", "Preview", "Warned", "local_time", "preview", "words_of"]

MOST: Final = 10_000
# The calendar repeats itself after 400 years, and each day that is passed over costs work.
LONGEST_SPAN_MS: Final = 146_097 * 86_400_000
_ON_HOLIDAY: Final = {
    "SKIP": "not on days off",
    "NEXT_BUSINESS_DAY": "moved to the next business day from days off",
    "PREVIOUS_BUSINESS_DAY": "moved to the previous business day from days off",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Occurrence(NamedTuple):
    """One instant of a rule: its number, epoch milliseconds, and the wall clock's time then.

    `local` is RFC 3339 with the zone's offset at that instant, so both of two equal times on the
    wall can be told apart.
    """

    number: int
    scheduled_ms: int
    local: str


class Preview(NamedTuple):
    """A rule in words, its next instants, and warnings about them.

    `timezone` is the zone of the local times.  `occurrences` may be empty (`never_fires`) or
    shorter than was asked for: the rule ends, or a warning `cut_short` says that more may follow.
    """

    words: str
    timezone: str
    occurrences: list[Occurrence]
    warnings: list[Warned]


def preview(
    request: Request,
    now_ms: int,
    count: int,
    shown_in: str | None = None,
    days: bytes | None = None,
    *,
    goes_on: Callable[[], bool] = lambda: True,
) -> Preview | Rejection:
    """The next `count` instants (1 to `MOST`) of a request's rule, as if it were accepted now.

    `days` are those of the calendar that it names, at rest.  Local times are those of the
    expression's zone, or else of `shown_in`, or else of UTC.

    The work is bounded: instants of an expression end 400 years after the first, and `goes_on` is
    asked after each.  Where that leaves some out, there is a warning `cut_short`.  HTTP gives a
    deadline as `goes_on`, for its thread answers others as well; clocks are read there, not here.
    """
    problem = trigger_problem(request, now_ms)
    if problem is not None and problem.code != "never_fires":
        return problem
    if request["calendar"] is not None and days is None:
        return _unknown_calendar(request)
    kind = KINDS[request["kind"]]
    name = kind.zone_name(request) or shown_in or DEFAULT_ZONE
    try:
        place = zone(name)
    except UnknownZone as unknown:
        return Rejection("bad_timezone", f"timezone {unknown}")
    trigger = trigger_by(rule_of(request, days))
    limit = min(count, request["max_fires"] or count, MOST)
    found, is_cut = _first(islice(_instants(request, trigger, now_ms), limit), kind, goes_on)
    occurrences = [
        Occurrence(number, due_ms, local_time(due_ms, place.offset(due_ms // 1000)))
        for number, due_ms in enumerate(found)
    ]
    warnings = list(_warnings(request, trigger, occurrences, now_ms))
    if is_cut:
        text = f"Only {len(found)} of {limit} instants are shown: the others are too far to find."
        warnings.append(Warned("cut_short", text))
    return Preview(words_of(request), name, occurrences, warnings)


def words_of(request: Request) -> str:
    """The rule of a checked request, in English, with its bounds.

    Such as ``Every 15m; left out: …, Europe/Paris, up to 2026-12-31T23:00:00.000Z``.
    """
    return _rule_words(request) + _calendar_words(request) + "".join(_bounds(request))


def _rule_words(request: Request) -> str:
    kind, text = KINDS[request["kind"]], request["except_cron"]
    rule = kind.words(request)
    if text is None:
        return rule
    place = f", {kind.zone_name(request) or DEFAULT_ZONE}"
    # An interval has no zone, but the minutes that are left out of it have one.
    return rule + left_out_words(text) + ("" if rule.endswith(place) else place)


def _unknown_calendar(request: Request) -> Rejection:
    tenant = request["tenant"] or "(none given)"
    return Rejection(
        "unknown_calendar",
        f"calendar {request['calendar']!r} is none that tenant {tenant}"
        " has: name the tenant, and a calendar that it has (`belfry calendar list`).",
    )


def _calendar_words(request: Request) -> str:
    """The treatment of instants on days off, in words that follow those of a rule."""
    name, way = request["calendar"], request["on_holiday"] or "SKIP"
    return "" if name is None else f"; {_ON_HOLIDAY[way]} of calendar {name}"


def _first(
    instants: Iterator[int], kind: TriggerKind, goes_on: Callable[[], bool]
) -> tuple[list[int], bool]:
    """Instants as far as the work for them goes, and whether there may be more."""
    found: list[int] = []
    for due_ms in instants:
        if found and kind.zoned and due_ms - found[0] > LONGEST_SPAN_MS:
            return found, True
        found.append(due_ms)
        if not goes_on():
            return found, True
    return found, False


def local_time(ms: int, offset_s: int) -> str:
    """An instant as RFC 3339 with this offset from UTC, which is in seconds.

    Offsets of the 19th century have seconds; they are cut, for RFC 3339 has minutes only.
    """
    wall = _EPOCH + ms * _MILLISECOND + timedelta(seconds=offset_s)
    sign, size = ("-", -offset_s) if offset_s < 0 else ("+", offset_s)
    text = wall.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}{sign}{size // 3600:02}:{size // 60 % 60:02}"


def _instants(request: Request, trigger: Trigger, now_ms: int) -> Iterator[int]:
    """Instants up to the last that a calendar can show."""
    once = ONE_SHOT.get(request["kind"])
    if once is not None:
        at_ms = once.first_ms(request, now_ms)
        yield from () if at_ms == FAR_MS else (at_ms,)
        return
    due_ms = trigger.first_ms(now_ms)
    while due_ms is not None and due_ms < END_S * 1000:
        yield due_ms
        due_ms = trigger.after_ms(due_ms)


def _bounds(request: Request) -> Iterator[str]:
    start_at, end_at, max_fires = request["start_at"], request["end_at"], request["max_fires"]
    if start_at is not None:
        yield f", from {format_instant(start_at)}"
    if end_at is not None:
        yield f", up to {format_instant(end_at)}"
    if max_fires is not None:
        yield f", {max_fires} times" if max_fires > 1 else ", once"
    if request["jitter_ms"]:
        yield f", up to {format_duration(request['jitter_ms'])} later each time"
    if request["max_wait_ms"] is not None:
        longest = format_duration(request["max_wait_ms"])
        yield f"; each further request slides it, at the latest to {longest} after the first one"


def _warnings(
    request: Request, trigger: Trigger, shown: list[Occurrence], now_ms: int
) -> Iterator[Warned]:
    if not shown and not KINDS[request["kind"]].depends:
        yield Warned("never_fires", f"It is never due: {_why_never(trigger, now_ms)}.")
    yield from KINDS[request["kind"]].warnings(request, trigger, now_ms)
    yield from _crowded(request, trigger, shown)


def _crowded(request: Request, trigger: Trigger, shown: list[Occurrence]) -> Iterator[Warned]:
    """A jitter that is longer than the distance of two occurrences, of which one holds the next."""
    jitter_ms, limit_ms = request["jitter_ms"], rule_of(request).lateness_limit_ms
    if not shown or not jitter_ms or limit_ms is None:
        return
    instants = [each.scheduled_ms for each in shown]
    if request["max_fires"] != len(instants):
        instants += filter(None, [trigger.after_ms(instants[-1])])
    distance = distance_within(jitter_ms, instants)
    if distance is not None:
        text = f"Two occurrences are {format_duration(distance)} apart, less than the jitter: one"
        text += " that is due before its predecessor fires behind it, late if that takes over"
        yield Warned("jitter_overtakes", f"{text} {format_duration(limit_ms)}.")


def _why_never(trigger: Trigger, now_ms: int) -> str:
    if isinstance(trigger, Heeding):
        return "its calendar and what is left out leave nothing of it, or its end is over"
    if trigger.whole is not trigger and trigger.whole.first_ms(now_ms) is not None:
        return "except_cron leaves out every instant that it would have"
    return "no instant lies between now and its end"
