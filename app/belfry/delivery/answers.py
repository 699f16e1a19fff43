"""What a post came to, and what follows from it for the delivery.

2xx                       DELIVERED
408, 425, 429, 5xx        again, not before Retry-After
no answer at all          again
any other answer          FAILED: the same post would get the same answer
"""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import Enum
from http import HTTPStatus
from typing import Final, NamedTuple

from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent

AGAIN: Final = frozenset({408, 425, 429})
LONGEST_RETRY_AFTER_MS: Final = 86_400_000


class End(Enum):
    """What an answer means; POSTPONED: it counts as no attempt."""

    DELIVERED = "delivered"
    AGAIN = "again"
    FINAL = "final"
    POSTPONED = "postponed"


class Sent(NamedTuple):
    """One post that was made, or record that was written, between two instants in epoch ms.

    A status of 0 means no answer, or one that has none.
    """

    target: str
    began_ms: float
    ended_ms: float
    end: End
    status: int
    code: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one post; `code` is stable, `reason` is for people.

    `not_before_ms` is what the other side asked for; `heard` says that it answered at all, and
    `status` with which one.  `sent` are the posts of the attempt that this is the answer of.
    """

    end: End
    target: str
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
    """What a response means."""
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
    """What several targets, tried one after the other, came to together."""
    order = (End.DELIVERED, End.AGAIN, End.POSTPONED, End.FINAL)
    return min(answers, key=lambda answer: order.index(answer.end))


def step_after(state: DeliveryState, event: FiredEvent, answer: Answer, now_ms: int) -> Step:
    """What follows from an answer."""
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
        when = f"{state.age_ms} ms after it fired, at attempt {state.attempt}"
        return Failed(_told(answer, when))
    return Again(at_ms, following)


def _told(answer: Answer, when: str) -> Answer:
    reason = f"{answer.reason}; given up {when}"
    return Answer(End.FINAL, answer.target, answer.code, reason)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
