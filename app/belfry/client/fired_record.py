"""A fired event as a program of its tenant gets it: the record, and the content of its headers.

An event is the user's own record with headers of belfry's behind the user's. So a program may
ignore belfry and take key and value, or ask this class which schedule and which occurrence it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from belfry.client.requests import EVENT_TYPE
from belfry.schedules.instants import parse_instant
from belfry.wire.claim_check import CLAIM, ENCRYPTED, SIZE
from belfry.wire.headers import EVENT_TYPE as SCHEDULE_TYPE
from belfry.wire.headers import GROUP, SOURCE, TENANT, VERSION
from belfry.wire.record import Headers

_DIGEST: Final = re.compile("[0-9a-f]{64}")
_NUMBER: Final = re.compile("-?[0-9]{1,19}")
_SOURCE: Final = re.compile("([^/]+)/([0-9]{1,9})/([0-9]{1,18})")


class RequestSource(NamedTuple):
    """Where the request of an event lies: in the topic of requests."""

    topic: str
    partition: int
    offset: int


class Claim(NamedTuple):
    """Where the payload of an event lies, if not in the event: `ClaimCheck` redeems it.

    `digest` is its SHA-256, by which it is stored, and `size_bytes` its stored length. A payload
    that a worker has encrypted names its schedule, as ``tenant/id``.
    """

    digest: str
    size_bytes: int
    encrypted_for: str | None


@dataclass(frozen=True, slots=True)
class FiredRecord:
    """One fired event as it lies in Kafka; instants in epoch milliseconds.

    `headers` are all headers, those of belfry's own among them.  For a tenant whose delivery is
    ENVELOPE, `event` holds the fields of `FiredEvent`, and `payload` the payload within.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    event: dict[str, Any] | None = None

    @property
    def payload(self) -> bytes | None:
        """The payload that the user scheduled."""
        return self.value if self.event is None else self.event["payload"]

    @property
    def tenant(self) -> str | None:
        """The tenant of the event: by the envelope, else by the name of the topic.

        On a topic that several tenants have, belfry's header says it: a payload of somebody's may
        look like an envelope, and name anybody.
        """
        named = self.topic.partition("fired.")[2]
        if not named and (told := self.header(TENANT)) is not None:
            return told
        return named or None if self.event is None else str(self.event["tenant"])

    @property
    def own_key(self) -> bytes | None:
        """The key that the event has on a topic of its tenant's own.

        On the topic that tenants share, `key` has the tenant and a slash before it.
        """
        # A tenant's own topic ends with its name, which may end so too.
        own = not self.topic.endswith("fired") or "fired." in self.topic
        shared = not own and self.tenant is not None
        return (
            self.key.removeprefix(f"{self.tenant}/".encode()) if shared and self.key else self.key
        )

    @property
    def event_type(self) -> str | None:
        """Its type: the envelope's, the CloudEvent's, the header ``event-type``, the schedule's.

        The first of these that is there.
        """
        if self.event is not None:
            found: str | None = self.event["event_type"]
            return found
        return self.header("ce_type") or self.header(EVENT_TYPE) or self.header(SCHEDULE_TYPE)

    @property
    def group(self) -> str | None:
        """The group of its schedule; None for none."""
        return self.header(GROUP)

    @property
    def version(self) -> int | None:
        """Which version of its schedule fired, from 1 on."""
        return self._number(VERSION)

    @property
    def fire_id(self) -> str | None:
        """Id of the fire, the same for every attempt: deduplicate by it."""
        return self.header("belfry-fire-id")

    @property
    def schedule_id(self) -> str | None:
        """Id of the schedule."""
        return self.header("belfry-schedule-id")

    @property
    def scheduled_at_ms(self) -> int | None:
        """Nominal instant of the occurrence, epoch ms; None where no header says one."""
        text = self.header("belfry-scheduled-at")
        try:
            return None if text is None else parse_instant(text)
        except ValueError:
            return None

    @property
    def occurrence(self) -> int | None:
        """0, 1, 2 … within one life of the schedule; -1 for a TRIGGER or a backfill."""
        return self._number("belfry-occurrence")

    @property
    def missed(self) -> int:
        """How many further occurrences it stands for, which did not fire in time."""
        return self._number("belfry-missed") or 0

    @property
    def source(self) -> RequestSource | None:
        """Where its request lies; None without `source_header` in the policy, or if unknown."""
        found = _SOURCE.fullmatch(self.header(SOURCE) or "")
        return None if found is None else RequestSource(found[1], int(found[2]), int(found[3]))

    @property
    def claim(self) -> Claim | None:
        """Where its payload lies, if not in the event; None as well for a malformed claim."""
        digest, size_bytes = self.header(CLAIM), self._number(SIZE)
        if size_bytes is None or size_bytes < 0 or not _DIGEST.fullmatch(digest or ""):
            return None
        return Claim(digest or "", size_bytes, self.header(ENCRYPTED))

    @property
    def backfill(self) -> str | None:
        """The id of the job, if a backfill has fired it."""
        return self.header("belfry-backfill")

    @property
    def redriven(self) -> str | None:
        """For an event that was sent again: the name of the redrive, ``@`` and its first offset."""
        return self.header("belfry-redriven")

    def _number(self, name: str) -> int | None:
        """A header that is a whole number; None if it is missing."""
        text = self.header(name)
        return int(text) if text is not None and _NUMBER.fullmatch(text) else None

    def header(self, name: str) -> str | None:
        """The last header of this name as text: belfry puts its own after the user's."""
        found = [value for header, value in self.headers if header == name and value is not None]
        return found[-1].decode(errors="replace") if found else None
