"""Retries that a worker refused: the content of such a record, and the end that its delivery gets.

A retry is a request, so it can be refused: its dispatcher signs with a secret that the workers do
not have, or the request is beyond some bound.  No attempt would follow then, and the delivery would
stay open for ever. So dispatchers read refused requests, and give such deliveries up:

    attempt 1: 503 ─► request for attempt 2 ─► refused ─► belfry.rejected ─► FAILED, retry_refused
                                                                             and a dead letter

If workers share a secret, only a retry signed with it is believed: anybody who may write requests
can have one refused that looks like a retry, and must not end deliveries by that.

The module is pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from belfry.client.decoding import Decoder
from belfry.delivery.answers import Answer, End, Failed
from belfry.delivery.follow_ups import Places, Produced, follow_up
from belfry.delivery.work import NotADelivery, Work, work_of
from belfry.tenants.deliveries import RETRIES
from belfry.wire.claims import proves
from belfry.wire.record import Headers
from belfry.wire.worker_keys import Keys

CODE: Final = "retry_refused"
# Headers that a worker adds to a request that it refuses.
_ADDED: Final = "belfry-error-"


class NotSettled(ValueError):
    """A refused retry whose delivery gets no end from here; the message says why."""


class RefusedRetry(NamedTuple):
    """The attempt that was asked for, and why it was refused: a code and a sentence."""

    work: Work
    code: str
    reason: str


class RetryReader:
    """Finds refused retries among refused records; `keys` are those that dispatchers sign with."""

    def __init__(self, requests: Decoder, events: Decoder, keys: Keys) -> None:
        """Decoders of ``ScheduleRequest`` and of ``FiredEvent``."""
        self._requests, self._events = requests, events
        self._keys = keys

    def read(self, key: bytes | None, value: bytes | None, headers: Headers) -> RefusedRetry | None:
        """The retry in a refused record; None if the record is not a retry.

        Raises `NotSettled` for one that shows no signature of a worker's, or that is not whole.
        """
        why = {name: given or b"" for name, given in headers if name.startswith(_ADDED)}
        if why.get(f"{_ADDED}tenant") != RETRIES.encode():
            return None
        own = [(name, given) for name, given in headers if not name.startswith(_ADDED)]
        if self._keys and not proves(self._keys, RETRIES, key, value, own):
            raise NotSettled("it is not signed with the secret that this process has")
        asked = self._requests.record(value or b"")
        if asked is None:
            raise NotSettled("it is no request that can be read, or was too large to be kept whole")
        carried = [(each["name"], each["value"]) for each in asked["headers"] or ()]
        try:
            work = work_of(asked["key"], asked["payload"], carried, self._events)
        except NotADelivery as error:
            raise NotSettled(str(error)) from None
        said = (why.get(f"{_ADDED}{name}", b"") for name in ("code", "reason"))
        return RefusedRetry(work, *(text.decode(errors="replace") for text in said))


def end_of(retry: RefusedRetry, places: Places, now_ms: int) -> list[Produced]:
    """The end of a delivery whose retry was refused; `now_ms` is epoch ms."""
    attempt = retry.work.state.attempt
    reason = f"a worker refused the request for attempt {attempt} ({retry.code}: {retry.reason})"
    return follow_up(retry.work, Failed(Answer(End.FINAL, "", CODE, reason)), places, now_ms)
