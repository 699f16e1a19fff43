"""What `belfry verify` prints: findings with their place, and what was not checked."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.cli import verify
from belfry.cli.entry import main
from belfry.cli.failures import CommandError, Exit, WrongUse
from belfry.cli.verify import line, shown, summary
from belfry.verification.findings import Breach, Breached, CheckCounts, Spot

FOUND = Breached(
    Breach.LOST,
    Spot("belfry.changelog", 2, 5151),
    "demo/order\x1b[2J fired, due at 7, and is in no output",
    "an event with the id 5f1c",
)


def test_a_finding_says_where_what_is_there_and_what_was_expected() -> None:
    assert line(FOUND) == (
        "LOST               belfry.changelog/2@5151  demo/order\\x1b[2J fired, due at 7, and is in"
        " no output; expected: an event with the id 5f1c"
    )


def test_programs_get_the_same_in_fields() -> None:
    told = shown([FOUND], CheckCounts(transactions=3, checked=1, compacted=2))
    [finding] = told["findings"]
    assert (finding["kind"], finding["topic"], finding["partition"], finding["offset"]) == (
        "lost", "belfry.changelog", 2, 5151,
    )  # fmt: skip
    assert told["counts"]["transactions"] == 3
    assert told["not_checked"] == {"transactions that compaction has thinned out": 2}


def test_the_sum_says_what_was_not_checked() -> None:
    counts = CheckCounts(transactions=12_000, checked=11_990, compacted=10, fires=5)
    assert summary([], counts)[0].startswith("11,990 of 12,000 transactions checked, 5 fires")
    assert summary([], counts)[0].endswith(": nothing is wrong in what was checked.")
    assert summary([], CheckCounts(checked=1))[0].endswith(": nothing is wrong.")
    assert summary([FOUND], counts)[0].endswith("1 findings.")
    assert summary([], counts)[1:] == [
        "Not checked: 10 transactions that compaction has thinned out."
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("no broker answers"), 1),
        (WrongUse("options that do not go together"), 2),
        (CommandError("no changelog", Exit.NOT_FOUND), 3),
    ],
)
def test_an_error_is_no_finding(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> int:
        raise error

    monkeypatch.setattr(verify, "_verify", fails)
    assert main(["verify"]) == code
    assert capsys.readouterr().err == f"belfry: {error}\n"


def test_no_broker_is_an_error_and_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--bootstrap-servers", "127.0.0.1:1"]) == 1
    assert "No Kafka broker answers" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--every", "--grace"])
def test_a_time_to_wait_that_is_none_says_what_plain_numbers_are(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", option, "soon"]) == 2
    said = capsys.readouterr().err
    assert "or plain seconds, such as 60." in said
    assert "milliseconds" not in said


@pytest.mark.parametrize("place", ["9465", "host:", ":9465", "host:0", "host:70000", "host:x"])
def test_a_place_for_metrics_that_is_none_says_what_is_one(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--every", "60s", "--metrics", place]) == 2
    assert f"'{place}' is no HOST:PORT, such as 0.0.0.0:9465." in capsys.readouterr().err


def test_metrics_go_with_passes_that_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--metrics", "127.0.0.1:9465"]) == 2
    assert "--metrics goes with --every" in capsys.readouterr().err
