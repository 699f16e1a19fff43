"""The client: requests to belfry through Kafka, and the verdicts on them.

    with Client("localhost:9092") as belfry:
        verdict = belfry.schedule("demo", "hello", in_="5m", payload="hello, belfry")
        belfry.cancel("demo", "hello")

A request is an Avro `ScheduleRequest` on ``belfry.schedules`` with key = tenant, so that requests
of one tenant keep their order. Each gets a request id, and so exactly one verdict, which is waited
for unless told not to. To write again with the same request id is safe for an hour: it is answered
DUPLICATE. One client may be used by many threads.

    caller's thread                               Kafka                            worker
    check ─ expecting ─ write ──────────────────► belfry.schedules ──────────────► takes it in
    block … verdict ◄── belfry-answers ◄───────── belfry.lifecycle ◄────────────── commits

Nothing is connected before the first call that needs it. Reading calls (`get`, `list`, `locks`,
`jobs`, `calendars`) ask a worker over HTTP, in the thread of the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Unpack
from uuid import uuid4

from belfry.client.answers import Answers
from belfry.client.asking import Asking, rejected
from belfry.client.bulk import BulkCount, BulkJob, BulkOptions, BulkStart, spec_of
from belfry.client.calendars import TenantCalendar
from belfry.client.cancelled import Cancelled, cancelled_since
from belfry.client.closing import Closing
from belfry.client.decoding import Decoder
from belfry.client.exchange import Exchange
from belfry.client.kafka import Cluster
from belfry.client.listing import Http
from belfry.client.options import OF_REQUESTS, Change, Instant
from belfry.client.portable import sendable
from belfry.client.redrive import Redrive
from belfry.client.redrive_source import RedriveCount, RedriveOptions, RedriveSource
from belfry.client.refired import FiredSource, RefireRange
from belfry.client.refusals import RedriveRange, RefusedSource
from belfry.client.requests import instant_ms
from belfry.client.scheduled import AckLock, Filters, Scheduled
from belfry.client.tail import Events, Start
from belfry.client.verdict import Verdict
from belfry.client.writing import How, RequestWriter
from belfry.schedules.bulk import BULK, BULK_STOP
from belfry.schedules.request import tenant_problem

if TYPE_CHECKING:
    from belfry.client.schemas import RegisteredSchemas
    from belfry.wire.quick_writing import Ready

# Ids that a preview shows.
SHOWN: Final = 10


class Client(Asking, Closing):
    """Schedules, cancels, triggers, pauses and resumes; gets, lists; tails fired events.

    `http` is the address of any worker: it answers questions that Kafka cannot, such as on a
    schedule, a list, jobs and calendars. `properties` are librdkafka's, for every Kafka client that
    this makes. With a registry's URL requests carry Confluent's prefix, without one Avro's
    single-object encoding; belfry takes both. `how` is about the writing of requests
    (`belfry.client.writing.How`).

    Every call may raise the errors that `belfry.client.errors` draws.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        schema_registry_url: str | None = None,
        properties: Mapping[str, Any] | None = None,
        registry_properties: Mapping[str, str] | None = None,
        topic_prefix: str = "belfry.",
        http: str | Http = "http://127.0.0.1:8700",
        **how: Unpack[How],
    ) -> None:
        self.cluster = Cluster(bootstrap_servers, properties)
        self._http = Http(http) if isinstance(http, str) else http
        self._prefix = topic_prefix
        self._group = topic_prefix + "client"
        self._schemas = _registered(schema_registry_url, registry_properties)
        self._look = self._schemas.writer if self._schemas else None
        writer = RequestWriter(self.cluster, topic_prefix + "schedules", self._schemas, **how)
        decoder = Decoder("LifecycleEvent", self._look, only=True)
        self._answers = Answers(self.cluster, topic_prefix + "lifecycle", self._group, decoder)
        self._exchange = Exchange(writer, self._answers)

    def close(self) -> None:
        """Give threads and connections back. Written requests are already acknowledged."""
        self._answers.close()
        if self._schemas is not None:
            self._schemas.close()

    def events(
        self, tenant: str, *, from_beginning: bool = False, group: str | None = None,
        shared: bool = False,
    ) -> Events:  # fmt: skip
        """Events of a tenant as they fire, from now on.

        With `from_beginning` all that the topic holds come first. A `group` goes on where it left
        off, and shares the partitions with others of its name. `shared`: the tenant's policy shares
        an output. Close the returned reader. Raises `Rejected` for an impossible name.
        """
        found = tenant_problem(tenant)
        if found is not None:
            raise rejected(Verdict(tenant, "", None), found)
        return Events(
            self.cluster,
            self._prefix + ("fired" if shared else f"fired.{tenant}"),
            Start(from_beginning, group, tenant if shared else None),
            self._group,
            Decoder("FiredEvent", self._look, only=False),
        )

    def bulk_preview(self, tenant: str, action: str, **options: Unpack[BulkOptions]) -> BulkCount:
        """How many schedules `bulk` would match now; nothing changes."""
        spec = spec_of(action, options)
        asked = {name: value for name, value in asdict(spec).items() if value is not None}
        found = BulkCount(0, [])
        for page in self._http.bulk_pages(tenant, asked):
            found = found.with_page(page, SHOWN)
        return found

    def bulk(self, tenant: str, action: str, **options: Unpack[BulkStart]) -> Verdict:
        """Begin a job: CANCEL, PAUSE, RESUME, MOVE, TRIGGER, BACKFILL or REKEY all matches.

        ACCEPTED says that it has begun; the verdict's `schedule_id` is its id.  Without a filter it
        is about all schedules of the tenant that wait.
        """
        job = options.get("job") or uuid4().hex
        given: dict[str, Any] = {"bulk": spec_of(action, options).text()}
        given |= {name: value for name, value in options.items() if name in OF_REQUESTS}
        return self._ask(tenant, job, BULK, given)

    def stop_job(self, tenant: str, job: str, **options: Unpack[Change]) -> Verdict:
        """Stop a job: CANCELLED; UNCHANGED if it had ended. Its changes so far stay."""
        return self._ask(tenant, job, BULK_STOP, options)

    def job(self, tenant: str, job: str) -> BulkJob | None:
        """A job and its progress; None if there is none, or if it ended more than a week ago."""
        found = self._http.jobs(tenant, job)
        return None if found is None else BulkJob.from_json(found)

    def jobs(self, tenant: str) -> list[BulkJob]:
        """The jobs of a tenant, the newest first."""
        return [BulkJob.from_json(each) for each in self._http.jobs(tenant)["jobs"]]

    def calendar(self, tenant: str, calendar: str) -> TenantCalendar | None:
        """A calendar with its days; None if there is no such calendar."""
        found = self._http.calendars(tenant, calendar)
        return None if found is None else TenantCalendar.from_json(found)

    def calendars(self, tenant: str) -> list[TenantCalendar]:
        """The calendars of a tenant, by name."""
        found = self._http.calendars(tenant)["calendars"]
        return [TenantCalendar.from_json(each) for each in found]

    def _ask(
        self, tenant: str, schedule_id: str, action: str, options: Mapping[str, Any]
    ) -> Verdict:
        return self._exchange.ask(tenant, schedule_id, action, options)

    def create_all(
        self, all_fields: Iterable[dict[str, Any] | Ready], *, timeout_s: float = 60.0
    ) -> Iterator[Verdict]:
        """Create many schedules, thousands at a time; their verdicts, in their order.

        `all_fields` are whole requests, such as `portable.request_fields` makes, or ready ones of
        `usual_lines`.  A refusal is a verdict like any other here.  Each is judged by the state of
        its partition when it arrives, so the whole may be repeated: it leaves schedules that live,
        or have fired since.
        """
        return self._exchange.ask_all(map(sendable, all_fields), timeout_s)

    def cancelled_since(self, since_ms: int) -> Cancelled:
        """Schedules that were cancelled since an instant, as far as the lifecycle topic tells."""
        decoder = Decoder("LifecycleEvent", self._look, only=True)
        topic = self._prefix + "lifecycle"
        return cancelled_since(self.cluster, topic, self._group, decoder, since_ms)

    def redrive_preview(
        self, tenant: str, from_: Instant, until: Instant, *, code: str | None = None
    ) -> RedriveCount:
        """Count what `redrive` would send again now; it sends nothing."""
        asked = RedriveRange(tenant, instant_ms(from_), instant_ms(until), code)
        return self._redrive(RefusedSource(self._prefix, asked)).count()

    def redrive(
        self,
        tenant: str,
        from_: Instant,
        until: Instant,
        *,
        code: str | None = None,
        reason: str | None = None,
        **how: Unpack[RedriveOptions],
    ) -> RedriveCount:
        """Send requests again that were refused in a range: of a tenant, or ``*`` for all.

        Each is sent once, however often this is asked for; `reason` stands in its mark.  It takes
        the rights to read and write `belfry.rejected` and to write requests.
        """
        asked = RedriveRange(tenant, instant_ms(from_), instant_ms(until), code)
        return self._redrive(RefusedSource(self._prefix, asked, reason)).send(**how)

    def refire_preview(self, topic: str, asked: RefireRange) -> RedriveCount:
        """Count what `refire` would send again now; it sends nothing."""
        return self._redrive(FiredSource(topic, asked)).count()

    def refire(self, topic: str, asked: RefireRange, **how: Unpack[RedriveOptions]) -> RedriveCount:
        """Send events of an output topic again, with their fire ids and the header that marks them.

        Under one name each is sent once, however often this is asked for.
        """
        return self._redrive(FiredSource(topic, asked)).send(**how)

    def _redrive(self, source: RedriveSource) -> Redrive:
        return Redrive(self.cluster, (f"{self._prefix}redrive", self._group), source)

    def _get(self, tenant: str, schedule_id: str, last: int) -> Scheduled | None:
        return self._http.get(tenant, schedule_id, last)

    def _list(self, tenant: str, filters: Filters) -> Iterator[Scheduled]:
        return self._http.list(tenant, filters)

    def _locks(self, tenant: str) -> Iterator[AckLock]:
        return self._http.locks(tenant)


def _registered(url: str | None, properties: Mapping[str, str] | None) -> RegisteredSchemas | None:
    """The registry's schemas, or None where no registry was given."""
    if not url:
        return None
    # The registry's client takes longer to import than all else; few commands need it.
    from belfry.client.schemas import RegisteredSchemas

    return RegisteredSchemas(url, properties)
