"""`belfry verify` pass after pass: once, or for ever with metrics that an alert watches.

    belfry verify --every 60s --state verified.db --metrics 0.0.0.0:9465

    12:00:00  the first pass ends     an error up to here ends the command: it never worked
    12:01:00  the second one          no broker answers: told, counted as failed, tried again
    12:02:00  the third one           goes on from the state file, as of the end of the first pass

A pass that fails has not been: the file is closed without it, and the next pass begins with a
reader and a file that are opened anew. Without a state file it begins at the topics' beginnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from belfry.cli.changelog import judges
from belfry.cli.failures import CommandError, tell
from belfry.cli.policies import kafka_policies
from belfry.cli.verified_topics import VerifiedTopics, quick_cluster, world_of
from belfry.cli.verify_cluster import ClusterVerifier, PassTerms
from belfry.cli.verify_elsewhere import fired_elsewhere
from belfry.cli.verify_holes import LogHoles
from belfry.cli.verify_state import StateFile
from belfry.cli.verify_topics import NothingComes, TopicReader
from belfry.client.decoding import Decoder
from belfry.client.errors import BelfryError
from belfry.registry.subjects import look_in, open_registry
from belfry.store.layout.records import UnknownFormat
from belfry.verification.findings import Breach, Breached, CheckCounts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from belfry.cli.session import Session
    from belfry.telemetry.verify_metrics import VerifyMetrics

UNREAD: Final = (
    "Whether a mirror carried transactions from another cluster cannot be seen, so all are taken"
    " for this cluster's own, and events that came out there are told as lost:"
)
# Takes the findings of a pass, and the counts of all passes since topics were opened.
Show = Callable[[list[Breached], CheckCounts], None]


class VerifyRun(NamedTuple):
    """The terms of verification: the file to go on from, further topics, and terms of a pass."""

    state: Path | None
    also: list[str]
    terms: PassTerms


class OpenedVerifier(NamedTuple):
    """A verifier whose reader and file are open, and the names of its topics."""

    session: Session
    verifier: ClusterVerifier
    topics: VerifiedTopics

    def look(self, terms: PassTerms) -> list[Breached]:
        """One pass; its findings. Raises `CommandError` for records of a later release.

        Policies are read before, for they say where events go, which may come twice and which may
        wait.
        """
        self.topics.follow(kafka_policies(self.session).all())
        elsewhere = self.verifier.elsewhere = fired_elsewhere(self.session)
        if elsewhere.unread:
            self.session.printer.note(f"{UNREAD} {elsewhere.unread}")
        try:
            return self.verifier.run(terms)
        except UnknownFormat as error:
            raise CommandError(str(error)) from None


def verify_once(session: Session, run: VerifyRun, show: Show) -> bool:
    """One pass over all; whether it found anything."""
    with _opened(session, run) as opened:
        found = opened.look(run.terms)
        show(found, opened.verifier.counts)
    return bool(found)


def verify_for_ever(
    session: Session, run: VerifyRun, show: Show, pause_s: float, metrics: VerifyMetrics
) -> NoReturn:
    """Pass after pass, with a pause of so many seconds; it ends by a signal, or by an error.

    Before the first complete pass every error ends it. Later on, a failure of brokers is told, and
    tried again.
    """
    passes = 0
    while True:
        try:
            with _opened(session, run) as opened:
                metrics.follow(lambda verifier=opened.verifier: verifier.behind)  # type: ignore[misc]
                while True:
                    found = opened.look(run.terms)
                    for each in found:
                        metrics.found(each.breach)
                    metrics.complete(time())
                    passes += 1
                    show(found, opened.verifier.counts)
                    sleep(pause_s)
        except (BelfryError, NothingComes) as error:
            if not passes:
                raise
            metrics.failed()
            tell(error)
            sleep(pause_s)


@contextmanager
def _opened(session: Session, run: VerifyRun) -> Iterator[OpenedVerifier]:
    """Open reader and file, and close them at the end; unsaved changes are lost."""
    settings = session.settings
    decoder = Decoder("LifecycleEvent", look_in(open_registry(settings)), only=True)
    with (
        closing(TopicReader(quick_cluster(session))) as reader,
        closing(StateFile(run.state, world_of(session))) as file,
        closing(LogHoles(session)) as holes,
    ):
        topics = VerifiedTopics(settings.topic, run.also)
        verifier = ClusterVerifier(reader, file, topics, decoder, judges(session))
        verifier.is_void = holes.is_void
        yield OpenedVerifier(session, verifier, topics)


def shown_metrics(place: tuple[str, int] | None) -> VerifyMetrics:
    """Metrics of this process, served at `/metrics` of this host and port; None: nowhere.

    Raises `CommandError` where the port cannot be had.
    """
    from prometheus_client import CollectorRegistry

    from belfry.telemetry.verify_metrics import VerifyMetrics

    registry = CollectorRegistry()
    metrics = VerifyMetrics(registry, [each.value for each in Breach], time())
    if place is not None:
        serve(registry, *place)
    return metrics


def serve(registry: CollectorRegistry, host: str, port: int) -> None:
    """Show metrics at `/metrics` there; raises `CommandError` where the port cannot be had."""
    from prometheus_client import start_http_server

    try:
        start_http_server(port, host, registry)
    except OSError as error:
        raise CommandError(
            f"--metrics {host}:{port} cannot be served: {error.strerror or error}. Name an address"
            " of this machine and a port that nobody uses."
        ) from None
