"""`belfry verify` pass after pass: what metrics say of passes, findings, and of one that fails."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from belfry.cli import verify_service
from belfry.cli.failures import CommandError
from belfry.cli.verify_cluster import PassTerms
from belfry.cli.verify_service import VerifyRun, shown_metrics, verify_for_ever
from belfry.cli.verify_topics import NothingComes
from belfry.client.errors import Unavailable
from belfry.telemetry.process_families import OF_VERIFICATION
from belfry.telemetry.verify_metrics import VerifyMetrics
from belfry.verification.findings import Breach, Breached, CheckCounts, Spot

FOUND = Breached(Breach.OVERDUE, Spot("belfry.changelog", 0, 7), "a schedule", "an event")
SILENT = Unavailable("no broker answers")
RUN = VerifyRun(None, [], PassTerms(1.0, 60_000, 1))


class Ended(Exception):
    """Somebody ends the process."""


class Service:
    """Passes that end as they are told to: with findings, or with an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *passes: Any) -> None:
        self.passes = list(passes)
        self.opened = 0
        self.shown: list[list[Breached]] = []
        self.pauses: list[float] = []
        self.registry = CollectorRegistry()
        self.metrics = VerifyMetrics(self.registry, [each.value for each in Breach], 5.0)
        self.behind, self.counts = 12, CheckCounts()
        self.verifier = self
        monkeypatch.setattr(verify_service, "_opened", self._open)
        monkeypatch.setattr(verify_service, "sleep", self.pauses.append)
        monkeypatch.setattr(verify_service, "time", lambda: 77.0)

    @contextmanager
    def _open(self, *_: Any) -> Iterator[Any]:
        self.opened += 1
        yield self

    def look(self, terms: PassTerms) -> list[Breached]:
        assert terms is RUN.terms
        result = self.passes.pop(0) if self.passes else Ended()
        if isinstance(result, Exception):
            raise result
        return list(result)

    def run(self, until: type[Exception] = Ended) -> None:
        with pytest.raises(until):
            verify_for_ever(
                None,  # type: ignore[arg-type]  # what opens asks it, and is replaced
                RUN,
                lambda found, _: self.shown.append(found),
                60.0,
                self.metrics,
            )

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


def test_metrics_tell_of_findings_passes_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(monkeypatch, [FOUND, FOUND], [])
    assert service.value("belfry_verify_findings_total", kind="overdue") == 0
    assert service.value("belfry_verify_last_complete_timestamp_seconds") == 5.0
    service.run()
    assert service.value("belfry_verify_findings_total", kind="overdue") == 2
    assert service.value("belfry_verify_findings_total", kind="lost") == 0
    assert service.value("belfry_verify_passes_total", outcome="complete") == 2
    assert service.value("belfry_verify_passes_total", outcome="failed") == 0
    assert service.value("belfry_verify_last_complete_timestamp_seconds") == 77.0
    assert service.value("belfry_verify_behind_records") == 12
    assert service.shown == [[FOUND, FOUND], []]
    assert service.pauses == [60.0, 60.0]


@pytest.mark.parametrize("error", [SILENT, NothingComes("nothing came")])
def test_a_pass_that_fails_is_told_and_made_again_with_all_opened_anew(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(monkeypatch, [], error, error, [FOUND])
    service.run()
    assert service.value("belfry_verify_passes_total", outcome="failed") == 2
    assert service.value("belfry_verify_passes_total", outcome="complete") == 2
    assert service.opened == 3
    assert capsys.readouterr().err == f"belfry: {error}\n" * 2
    assert service.shown == [[], [FOUND]]


def test_an_error_before_the_first_complete_pass_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(monkeypatch, SILENT, [])
    service.run(until=Unavailable)


def test_what_no_broker_mends_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(monkeypatch, [], CommandError("records of a later release"))
    service.run(until=CommandError)


def test_what_is_shown_is_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Service(monkeypatch).registry
    shown = {each.name + "_total" * (each.type == "counter") for each in registry.collect()}
    assert shown == {family.name for family in OF_VERIFICATION}


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"--metrics 127.0.0.1:{port} cannot be served"):
            shown_metrics(("127.0.0.1", port))
