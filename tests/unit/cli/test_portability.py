"""`belfry schedule import`: what needs no broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import pytest

from belfry.cli import import_outcomes, portability
from belfry.cli.entry import main
from belfry.cli.import_outcomes import became
from belfry.cli.portability import create_all
from belfry.cli.shown import Output, Printer
from belfry.client.cancelled import Cancelled, note
from belfry.client.errors import BelfryError
from belfry.client.portable import names_of
from belfry.client.verdict import Verdict
from belfry.schedules.outcomes import Outcome
from belfry.wire.quick_writing import Ready


@pytest.mark.parametrize("options", [[], ["--timeout", "5s"]])
def test_a_file_without_schedules_is_none(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "none.jsonl"
    file.write_text("\n\n")
    assert main(["schedule", "import", str(file), *options]) == 0
    assert capsys.readouterr().err == "0 schedules: none\n"


@pytest.mark.parametrize("line", ["{", "[]", '{"tenant": "demo"}'])
def test_a_line_that_is_no_schedule_is_named(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(f"\n{line}\n")
    assert main(["schedule", "import", str(file)]) == 2
    assert "Line 2 is no schedule" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "import", "nowhere.jsonl"]) == 2
    assert "nowhere.jsonl cannot be read" in capsys.readouterr().err


NOW = 1_800_000_000_000
SAID: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {"outcome": Outcome.ACCEPTED, "version": 3, "due_ms": NOW + 60_000},
        "made",
        "version 3, due 2027-01-15T08:01:00.000Z (in 1m)",
        "made",
    ),
    (
        {"outcome": Outcome.CONFLICT, "code": "same_definition", "due_ms": NOW - 5_000},
        "left",
        "it lives, as it is told here, due 2027-01-15T07:59:55.000Z (5s ago)",
        "left, for they live",
    ),
    (
        {"outcome": Outcome.TOO_LATE, "code": "fired", "reason": "It has fired since, at …"},
        "left",
        "It has fired since, at …",
        "left, for they have fired or ended since",
    ),
    (
        {"outcome": Outcome.CONFLICT, "code": "exists"},
        "conflict",
        "another definition lives under this name; it stays",
        "conflict",
    ),
    (
        {"outcome": Outcome.REJECTED, "code": "bad_cron", "reason": "No."},
        "refused",
        "REJECTED (bad_cron) No.",
        "refused",
    ),
    # Nothing that is no ACCEPTED is ever counted as made.
    (
        {"outcome": Outcome.DUPLICATE, "code": "ACCEPTED", "reason": "before"},
        "refused",
        "DUPLICATE (ACCEPTED) before",
        "refused",
    ),
]


@pytest.mark.parametrize(("said", "result", "what", "counted"), SAID)
def test_what_became_of_each_is_said(
    said: dict[str, Any], result: str, what: str, counted: str
) -> None:
    assert became(Verdict("t", "a", **said), NOW) == (result, what, counted)


def test_what_was_cancelled_since_is_left_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    class Restoring:
        def __init__(self, output: Output) -> None:
            self.printer = Printer(output)

        @contextmanager
        def client(self) -> Iterator[Restoring]:
            yield self

        def cancelled_since(self, since_ms: int) -> dict[tuple[str, str], int]:
            assert since_ms == NOW - 10
            return {("t", "gone"): NOW}

        def create_all(self, requests: Any, *, timeout_s: float) -> Iterator[Verdict]:
            for each in requests:
                asked.append(names_of(each)[1])
                yield Verdict("t", asked[-1], Outcome.ACCEPTED, version=1, due_ms=NOW)

    def run(since_ms: int | None, output: Output = Output.TEXT) -> int:
        asked.clear()
        session: Any = Restoring(output)
        wanted: list[dict[str, Any] | Ready] = [
            {"tenant": "t", "schedule_id": "gone"},
            Ready("t", "gone", b"", b""),
            Ready("t", "here", b"", b""),
        ]
        return create_all(session, wanted, 1.0, since_ms)

    assert run(NOW - 10) == 0
    assert asked == ["here"]
    told = capsys.readouterr()
    assert "left      t/gone: It was cancelled since, at 2027-01-15T08:00:00.000Z" in told.out
    assert told.err == "3 schedules: 2 left, for they were cancelled since, 1 made\n"
    assert run(None) == 0
    assert asked == ["gone", "gone", "here"]
    capsys.readouterr()
    assert run(NOW - 10, Output.JSON) == 0
    shown = orjson.loads(capsys.readouterr().out)
    assert [each["result"] for each in shown] == ["left", "left", "made"]


class Answering:
    """A session whose client accepts each schedule, up to an error."""

    def __init__(self, output: Output, names: list[str]) -> None:
        self.printer = Printer(output)
        self._names = names

    @contextmanager
    def client(self) -> Iterator[Answering]:
        yield self

    def create_all(self, requests: Any, *, timeout_s: float) -> Iterator[Verdict]:
        assert not list(requests)
        for name in self._names:
            if name == "fails":
                raise BelfryError("the cluster is away")
            yield Verdict("t", name, Outcome.ACCEPTED, version=1, due_ms=NOW)


def told_of(output: Output, *names: str) -> None:
    session: Any = Answering(output, list(names))
    create_all(session, [], 1.0)


def test_what_became_of_each_is_told_once_and_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [f"s{number}" for number in range(3_000)]
    told_of(Output.TEXT, *names)
    found = capsys.readouterr().out.splitlines()
    assert [each.partition(":")[0] for each in found] == [f"made      t/{name}" for name in names]
    told_of(Output.JSONL, *names)
    records = [orjson.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert [(each["result"], each["schedule_id"]) for each in records] == [
        ("made", name) for name in names
    ]


@pytest.mark.parametrize("output", [Output.TEXT, Output.JSONL])
def test_what_was_held_is_told_before_an_error(
    output: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BelfryError, match="away"):
        told_of(output, "a", "b", "fails", "c")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_outcomes_are_not_held_for_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_outcomes, "PRINTED_S", -1.0)
    session: Any = Answering(Output.TEXT, ["a", "b"])
    printed: list[str] = []
    verdicts = session.create_all

    def spied(requests: Any, *, timeout_s: float) -> Iterator[Verdict]:
        for each in verdicts(requests, timeout_s=timeout_s):
            printed.append(capsys.readouterr().out)
            yield each

    session.create_all = spied
    create_all(session, [], 1.0)
    assert printed[1].startswith("made      t/a:")


@pytest.mark.parametrize("line", [b"usual", b"unusual"])
def test_an_import_reads_usual_lines_and_others(line: bytes) -> None:
    told = {
        "tenant": "t", "schedule_id": "a", "kind": "AT", "at": "2030-01-01T00:00:00.000Z",
        "standing": {
            "next_at": "2030-01-01T00:00:00.000Z", "occurrence": 0, "version": 1, "paused": False
        },
    }  # fmt: skip
    if line == b"unusual":
        told["schedule_id"] = "é"
    (found,) = portability._requests(BytesIO(orjson.dumps(told) + b"\n"))
    assert isinstance(found, Ready) == (line == b"usual")
    assert names_of(found) == ("t", told["schedule_id"])


@pytest.mark.parametrize("shown", [Outcome.ACCEPTED, Outcome.PAUSED, Outcome.TRIGGERED])
def test_a_cancel_is_over_when_the_schedule_is_seen_waiting_again(shown: Outcome) -> None:
    found: Cancelled = {}

    def told(schedule_id: str, outcome: Outcome, at_ms: int) -> None:
        note(found, {"tenant": "t", "schedule_id": schedule_id, "outcome": outcome, "at": at_ms})

    told("a", Outcome.CANCELLED, NOW)
    told("a", Outcome.FIRED, NOW + 1)
    told("b", Outcome.CANCELLED, NOW + 2)
    assert found == {("t", "a"): NOW, ("t", "b"): NOW + 2}
    told("a", shown, NOW + 3)
    assert found == {("t", "b"): NOW + 2}
