"""Policies and schedules as `belfry apply` reaches them.

`belfry.declared` compares the declared objects with those that exist, and decides what to change.
It knows no Kafka and no HTTP. `SessionWays` is how it looks and writes:

    what        read                                     written
    policies    the topic of policies, all at once;      the topic of policies;
                over HTTP one by one                     over HTTP with --http-url
    schedules   HTTP, eight at once                      Kafka, and verdicts awaited;
                                                         over HTTP with --http-url

Schedules are read over HTTP even without --http-url, at its default address, for only a worker
knows which schedules exist.

A refused write does not end the run: the caller gets the reason as a sentence, and goes on with the
next object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.failures import CommandError, Exit
from belfry.cli.policies import policies_of
from belfry.cli.remote import Remote, calendar_path, schedule_path, tenant_path
from belfry.client.errors import BelfryError, refusal
from belfry.client.policy_fields import removal_problem
from belfry.schedules.outcomes import Outcome

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.declared.calendar_entries import DeclaredCalendar
    from belfry.declared.declaration import Declaration
    from belfry.declared.difference import Found
    from belfry.declared.set_record import Name
    from belfry.declared.ways import ScheduleWrite
    from belfry.tenants.policy import TenantPolicy

Look = Callable[[str, str], Mapping[str, Any] | None]
# Looks at schedules under way together.
TOGETHER: Final = 8
TIMEOUT_S: Final = 60.0
_GONE: Final = (Outcome.NOT_FOUND, Outcome.TOO_LATE)


class SessionWays:
    """The ways of one command's session.

    It is used by one thread, which asks up to `TOGETHER` threads of its own for looks at schedules.
    With `share_topic` a policy may name the output topic of another tenant's.
    """

    def __init__(self, session: Session, *, share_topic: bool = False) -> None:
        self._session, self._share_topic = session, share_topic
        self._policies = policies_of(session)
        self._remote = Remote(session)

    def found(self, declared: Declaration) -> Found:
        """The declared objects that exist, and those that the set has made before.

        A set remembers the objects that it has made in a schedule of its own, the *record*, so that
        a name that has gone from the files can be told from one that somebody else made. Raises
        `CommandError` if the worker does not answer.
        """
        from belfry.declared.applying import record_id, record_in
        from belfry.declared.difference import Found

        record = record_in(self.look(declared.kept_in, record_id(declared)))
        policies = self._standing(declared.policies.keys() | record.made_policies)
        unknown = [
            name
            for name, each in declared.policies.items()
            if name not in policies and each.policy.spread != 1
        ]
        known = frozenset(name for name in unknown if self._policies.is_known(name))
        schedules = self._looked(declared.schedules.keys() | record.made, self.look)
        calendars = self._looked(declared.calendars.keys() | record.made_calendars, self._calendar)
        return Found(policies, schedules, known, record, calendars)

    def _standing(self, tenants: Iterable[str]) -> dict[str, TenantPolicy]:
        """Policies that are there, by tenant: these tenants' over HTTP, and all of them over
        Kafka.
        """
        if not self._session.asks_http:
            # One reading of the topic tells all of them.
            return self._policies.all()
        found = {name: self._policies.get(name) for name in sorted(tenants)}
        return {name: policy for name, policy in found.items() if policy is not None}

    def _looked(self, names: Iterable[Name], look: Look) -> dict[Name, Mapping[str, Any] | None]:
        """Objects as HTTP shows them, or None, by name; several are asked for at once."""
        ordered = sorted(names)
        with ThreadPoolExecutor(TOGETHER) as pool:
            return dict(zip(ordered, pool.map(lambda name: look(*name), ordered), strict=True))

    def look(self, tenant: str, schedule_id: str) -> Mapping[str, Any] | None:
        """A schedule as HTTP shows it, or None if there is no such schedule."""
        return self._shown(schedule_path(tenant, schedule_id))

    def _calendar(self, tenant: str, calendar: str) -> Mapping[str, Any] | None:
        return self._shown(calendar_path(tenant, calendar))

    def _shown(self, path: str) -> Mapping[str, Any] | None:
        try:
            found: dict[str, Any] = self._remote.get(path)
        except CommandError as error:
            if error.exit_code == Exit.NOT_FOUND:
                return None
            raise
        return found

    def put(self, policies: Sequence[TenantPolicy]) -> list[str | None]:
        """Write policies, all at once unless something is wrong with one.

        Returns for each policy, in order, why it was not written, or None. The first try writes all
        of them together. Where that fails they are tried one by one, so that the reason is told of
        the one that it is about. A policy that is written twice is as if it were written once.
        """
        if not policies:
            return []
        if _problem(lambda: self._policies.put(*policies, share_topic=self._share_topic)) is None:
            return [None] * len(policies)
        return [
            _problem(lambda one=each: self._policies.put(one, share_topic=self._share_topic))
            for each in policies
        ]

    def remove(self, policy: TenantPolicy) -> str | None:
        """Forget a policy, unless it says where schedules live.

        Returns why it was not removed, or None. A policy with a spread says in which partitions a
        tenant's schedules live; without it they could not be found again.
        """
        return removal_problem(policy) or _problem(lambda: self._policies.remove(policy.tenant))

    def set_calendar(self, calendar: DeclaredCalendar) -> str | None:
        """Set the days of a calendar."""
        tenant, name, body = calendar.tenant, calendar.name, calendar.body
        if self._session.asks_http:
            path = calendar_path(tenant, name)
            return _problem(lambda: self._remote.ask("PUT", path, body))
        with self._session.client() as client:
            return _problem(lambda: client.set_calendar(tenant, name, **body))

    def remove_calendar(self, calendar: DeclaredCalendar) -> str | None:
        """Forget a calendar; schedules that have it keep the days that it had."""
        tenant, name = calendar.tenant, calendar.name
        if self._session.asks_http:
            return _problem(lambda: self._remote.ask("DELETE", calendar_path(tenant, name)))
        with self._session.client() as client:
            return _problem(lambda: client.remove_calendar(tenant, name))

    def write(self, writes: Sequence[ScheduleWrite]) -> Iterator[str | None]:
        """Ask for schedules, in their order; why each was refused, or None.

        Over Kafka each verdict has `TIMEOUT_S` seconds to come. A cancel counts as done where the
        schedule has gone by itself. Where the way to Kafka fails amid the writes, the one that
        failed gets the reason, and those behind it "not tried": they may be applied again.
        """
        if self._session.asks_http:
            yield from (_problem(lambda one=each: self._ask(one)) for each in writes)
            return
        told = 0
        try:
            with self._session.client() as client:
                asked = (each.request for each in writes)
                for verdict in client.create_all(asked, timeout_s=TIMEOUT_S):
                    error = refusal(verdict)
                    gone = verdict.outcome in _GONE and writes[told].action == "CANCEL"
                    told += 1
                    yield None if gone or error is None else str(error)
        except BelfryError as error:
            yield str(error)
            yield from ("not tried" for _ in writes[told + 1 :])

    def _ask(self, write: ScheduleWrite) -> None:
        """One write over HTTP; an etag makes it fail where somebody has changed the schedule
        since.
        """
        tenant, schedule_id = write.name
        path = schedule_path(tenant, schedule_id)
        body = _body(write)
        match = {} if write.etag is None else {"if-match": f'"{write.etag}"'}
        if write.action == "CREATE":
            body["schedule_id"] = schedule_id
            self._remote.ask("POST", f"{tenant_path(tenant)}/schedules", body)
        elif write.action == "UPSERT":
            self._remote.ask("PUT", path, body, match)
        elif self.look(tenant, schedule_id) is not None:
            self._remote.ask("DELETE", path, None, match)


def _body(write: ScheduleWrite) -> dict[str, Any]:
    """A request as HTTP takes it: targets in full, all else as the file has it."""
    body = dict(write.json)
    if body.get("http_targets"):
        body["http_targets"] = write.request["http_targets"]
    return body


def _problem(ask: Any) -> str | None:
    """Why something was refused, in words, or None.

    Only errors that are expected become words; anything else is a bug, and is raised.
    """
    try:
        ask()
    except CommandError as error:
        return error.format_message()
    except BelfryError as error:
        return str(error)
    return None
