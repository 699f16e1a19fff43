"""Records of belfry.rejected, by their headers: a request that was refused, or a mark.

    headers    what the request had …  │  belfry-error-code, -reason, -topic, …      by belfry

The *mark* of a refusal says that its request was sent again (`redrive.py`).  It has the key of the
refusal, no value, the code ``redriven``, and one header more, with the offset of the refusal in the
same partition.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from confluent_kafka import Message

from belfry.client.redrive_source import Resent, offset_of
from belfry.wire.record import REDRIVEN_FROM, Headers, without_origin
from belfry.wire.unread import CUT, NO_TEXT

REDRIVEN: Final = "redriven"
# All tenants, and refusals of which no tenant is known.
EVERYBODY: Final = "*"
# Why a refused request cannot be sent again.
IS_CUT: Final = "cut"
IS_ELSEWHERE: Final = "elsewhere"
_ERROR: Final = "belfry-error-"
_MARKED: Final = f"{_ERROR}redriven"
_MOST_REASON: Final = 2_000


class RedriveRange(NamedTuple):
    """Which refusals: of a tenant or `EVERYBODY`, from an instant on and before one, by code.

    Instants are epoch milliseconds, of when belfry refused.
    """

    tenant: str
    from_ms: int
    until_ms: int
    code: str | None = None


class RefusedRequest(NamedTuple):
    """The headers of a record of belfry.rejected: those of the request, and those of belfry."""

    own: Headers
    said: dict[str, bytes | None]

    def text(self, name: str) -> str:
        """The text of one of belfry's headers, such as `code`."""
        return (self.said.get(_ERROR + name) or b"").decode(errors="replace")

    @property
    def marked(self) -> int | None:
        """The offset of the refusal that this is the mark of; None where it is a refusal."""
        return offset_of(self.text(REDRIVEN)) if self.text("code") == REDRIVEN else None

    def wanted(self, asked: RedriveRange) -> bool:
        """Whether tenant and code fit."""
        whose = asked.tenant in (EVERYBODY, self.text("tenant"))
        return whose and asked.code in (None, self.text("code"))

    def hindrance(self, schedules: str) -> str | None:
        """Why it cannot be sent again as it was, or None; `schedules` is the topic of requests."""
        names = {name for name, _ in self.own} | self.said.keys()
        if CUT in names or NO_TEXT in self.own:
            return IS_CUT
        topic = self.text("topic")
        known = topic == schedules or topic.startswith(f"{schedules}.")
        return None if known else IS_ELSEWHERE

    def again(self, place: str) -> Headers:
        """The headers of the request that is sent again; `place` is where its refusal lies."""
        return [*without_origin(self.own), (REDRIVEN_FROM, place.encode())]

    def mark(self, place: str, offset: int, reason: str | None) -> Headers:
        """The headers of the mark of this refusal."""
        why = f"{place} ({self.text('code')}) was sent again" + (f": {reason}" if reason else "")
        said = {
            **self.said,
            f"{_ERROR}code": REDRIVEN.encode(),
            f"{_ERROR}reason": why[:_MOST_REASON].encode(errors="backslashreplace"),
            _MARKED: b"%d" % offset,
        }
        return list(said.items())


class RefusedSource:
    """The refusals of a range, for `Redrive`."""

    def __init__(self, prefix: str, asked: RedriveRange, reason: str | None = None) -> None:
        """Topics begin with `prefix`; `reason` stands in the marks."""
        self.topic = f"{prefix}rejected"
        self.from_ms = asked.from_ms
        self._schedules = f"{prefix}schedules"
        self._asked = asked
        self._reason = reason

    def marked(self, headers: Headers) -> int | None:
        """The offset of the refusal that a record is the mark of."""
        refused = refused_request(headers)
        return None if refused is None else refused.marked

    def wanted(self, at_ms: int, headers: Headers) -> tuple[str, str | None] | None:
        """Code and hindrance of a refusal of the range."""
        refused = refused_request(headers)
        if refused is None or at_ms >= self._asked.until_ms or not refused.wanted(self._asked):
            return None
        return refused.text("code"), refused.hindrance(self._schedules)

    def again(self, message: Message, headers: Headers) -> list[Resent]:
        """The request as it was received, and the mark of its refusal."""
        refused = refused_request(headers)
        assert refused is not None, "it was looked at before"
        partition, offset = message.partition() or 0, message.offset() or 0
        place, key = f"{self.topic}/{partition}@{offset}", message.key()
        mark = refused.mark(place, offset, self._reason)
        return [
            Resent(refused.text("topic"), key, message.value(), refused.again(place)),
            Resent(self.topic, key, None, mark, partition),
        ]


def refused_request(headers: Headers) -> RefusedRequest | None:
    """A record of belfry.rejected by its headers; None if belfry did not write it.

    The request may have had headers of the same names: belfry's come last.
    """
    codes = [number for number, (name, _) in enumerate(headers) if name == f"{_ERROR}code"]
    if not codes:
        return None
    return RefusedRequest(headers[: codes[-1]], dict(headers[codes[-1] :]))
