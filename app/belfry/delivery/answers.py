"""The result of a post, and the next step of the delivery.

    2xx                       DELIVERED
    408, 425, 429, 5xx        again, not before Retry-After
    no answer at all          again
    any other answer          FAILED: the same post would get the same answer

A wait is doubled after each attempt, up to a longest one, and a share of up to a quarter is added,
which follows from the fire's id. So deliveries that failed together do not come back together. With
a first wait of 1 s, three attempts, and a target that recovers:

    12:00:00.0  fired; attempt 1: 503              the next is due in 1 s, and up to 250 ms
    12:00:01.2  attempt 2: 429, Retry-After: 60    not before 12:01:01.2
    12:01:01.3  attempt 3: 204                     DELIVERED

A delivery ends as FAILED after its last attempt, or where the next one would come later than its
longest age. Status codes are those of RFC 9110, 425 of RFC 8470, and 429 of RFC 6585. All of it is
pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import Enum
from http import HTTPStatus
from typing import Final, NamedTuple

from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent

# Statuses below 500 by which a server asks for another try.
AGAIN: Final = frozenset({408, 425, 429})
# Longest wait that a server may ask for: a day.
LONGEST_RETRY_AFTER_MS: Final = 86_400_000
# Code of an attempt during which the posting process has ended: it does not judge the host.
INTERRUPTED: Final = "interrupted"
# Code of a delivery that was postponed because somebody has broken its host.
HOST_BROKEN: Final = "host_broken"


class End(Enum):
    """The meaning of an answer; POSTPONED: it does not count as an attempt.

    FINAL is an answer that another attempt would not change.
    """

    DELIVERED = "delivered"
    AGAIN = "again"
    FINAL = "final"
    POSTPONED = "postponed"


class Sent(NamedTuple):
    """One post that was made, or record that was written, between two instants in epoch ms.

    A status of 0 means no answer, or an answer without a status.
    """

    target: str
    began_ms: float
    ended_ms: float
    end: End
    status: int
    code: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one post; `code` is stable, `reason` is for people.

    `not_before_ms` is the instant that the other side asked for; `heard` says that it answered at
    all, and `status` is the status of its answer. `sent` counts the posts of the whole attempt.
    """

    end: End
    target: str
    # Empty for a delivery; else such as ``http_status``, ``timeout``, ``dns`` or ``tls``.
    code: str = ""
    reason: str = ""
    not_before_ms: int = 0
    heard: bool = True
    status: int = field(default=0, compare=False)
    sent: tuple[Sent, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """It arrived."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """It is given up."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Again:
    """Another attempt follows, not before an instant (epoch ms)."""

    at_ms: int
    state: DeliveryState


Step = Delivered | Failed | Again


def answered(status: int, retry_after: str | None, target: str, now_ms: int) -> Answer:
    """The answer for a response; `retry_after` is the header's value, `now_ms` the clock's."""
    if 200 <= status < 300:
        return Answer(End.DELIVERED, target, status=status)
    reason = f"{status} {_phrase(status)}".strip()
    if status in AGAIN or status >= 500:
        again_ms = now_ms + retry_after_ms(retry_after, now_ms)
        return Answer(End.AGAIN, target, "http_status", reason, again_ms, status=status)
    if 300 <= status < 400:
        reason += ": belfry follows no redirects; give the address that it leads to"
        return Answer(End.FINAL, target, "redirect", reason, status=status)
    return Answer(End.FINAL, target, "http_status", reason, status=status)


def retry_after_ms(given: str | None, now_ms: int) -> int:
    """How long a Retry-After header asks to wait: seconds or a date; 0 for none and nonsense."""
    text = (given or "").strip()[:60]
    if text.isascii() and text.isdigit():
        return min(int(text) * 1000, LONGEST_RETRY_AFTER_MS)
    try:
        then_ms = int(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0
    return min(max(0, then_ms - now_ms), LONGEST_RETRY_AFTER_MS)


def best(answers: list[Answer]) -> Answer:
    """The joint answer of several targets that were tried one after the other.

    One that took the event counts; else one at which another attempt makes sense.
    """
    order = (End.DELIVERED, End.AGAIN, End.POSTPONED, End.FINAL)
    return min(answers, key=lambda answer: order.index(answer.end))


def step_after(state: DeliveryState, event: FiredEvent, answer: Answer, now_ms: int) -> Step:
    """The next step after an answer, for a delivery in this state at `now_ms` (epoch ms)."""
    if answer.end is End.DELIVERED:
        return Delivered(answer)
    if answer.end is End.FINAL:
        return Failed(answer)
    following = state if answer.end is End.POSTPONED else state.next_attempt()
    if following.attempt > state.attempts:
        return Failed(_told(answer, f"after {state.attempt} of {state.attempts} attempts"))
    wait_ms = state.wait_ms(event.fire_id)
    at_ms = max(now_ms + wait_ms, answer.not_before_ms)
    if answer.end is End.POSTPONED:
        at_ms = max(now_ms, answer.not_before_ms) + wait_ms % 1_000
    if at_ms - event.fired_at > state.age_ms:
        latest = f"more than {state.age_ms} ms after it fired"
        when = f"at attempt {state.attempt}, since the next one would be {latest}"
        return Failed(_told(answer, when))
    return Again(at_ms, following)


def _told(answer: Answer, when: str) -> Answer:
    """The answer as a final one, whose reason says when the delivery was given up."""
    reason = f"{answer.reason}; given up {when}"
    return Answer(End.FINAL, answer.target, answer.code, reason)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
