"""Facts on one request from the inside of the application, for the audit log.

Each request has a note from its first moment to its answer; the code that knows something of it
(its caller, its verdict, which fields of a policy change) puts it down.  `audited.py` reads it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from belfry.audit.changes import changes_of
from belfry.tenants.policy import TenantPolicy
from belfry.wire.audit import Object, PolicyChange


class RequestNotes:
    """The facts on one request; belongs to one event loop.

    `forwarded` says that another worker, which is believed, has noted it; `changes_nothing`, that
    it only looks, whatever its method says.
    """

    __slots__ = (
        *("caller", "changes", "changes_nothing", "code", "coded", "forwarded", "many", "objects"),
        *("reason", "request", "role"),
    )

    def __init__(self) -> None:
        self.caller = ""
        self.role: str | None = None
        self.forwarded = False
        self.many = False
        self.changes_nothing = False
        self.objects: list[Object] = []
        self.request: str | None = None
        self.reason: str | None = None
        self.changes: tuple[PolicyChange, ...] = ()
        self.code: str | None = None
        self.coded = 0

    def comes_from(self, caller: str, role: str) -> None:
        """The caller is known, whether or not it may do what it asks for."""
        self.caller, self.role = caller, role

    def problem(self, status: int, code: str) -> None:
        """An answer that is a problem was made; it counts if it is the one that is sent."""
        self.coded, self.code = int(status), code

    def because(self, reason: str | None) -> None:
        """Why it is asked for, in the caller's words."""
        self.reason = reason

    def asked(self, schedule_id: str, request_id: str | None) -> None:
        """A request about a schedule is on its way to Kafka."""
        if not self.many:
            self.request = request_id
            self.objects = [Object(schedule_id)]

    def became(self, schedule_id: str, outcome: str | None, code: str | None) -> None:
        """The verdict on a request for a schedule; no outcome if the caller did not wait."""
        found = Object(schedule_id, outcome, code)
        if self.many:
            self.objects.append(found)
        else:
            self.objects = [found]

    def policy(self, before: TenantPolicy | None, after: TenantPolicy | None) -> None:
        """Which fields of a policy the request sets to another value."""
        self.changes = changes_of(before, after)


# Set by `Audited` for the task of a request; tasks that it starts see the same note.
NOTE: Final = ContextVar[RequestNotes | None]("belfry_note", default=None)


def note() -> RequestNotes:
    """The note of the request that is being answered; one that nobody reads outside of any."""
    return NOTE.get() or RequestNotes()
