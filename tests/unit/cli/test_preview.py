"""What `belfry schedule preview` shows; the instants themselves are the triggers' affair."""

from __future__ import annotations

import orjson
import pytest

from belfry.cli.entry import main
from belfry.schedules.instants import parse_instant

PARIS = ["--cron", "0 9 * * MON", "--tz", "Europe/Paris"]


def preview(*arguments: str) -> int:
    return main(["schedule", "preview", *arguments])


def test_text_has_words_and_instants(capsys: pytest.CaptureFixture[str]) -> None:
    assert preview(*PARIS, "--max-fires", "2") == 0
    words, *lines = capsys.readouterr().out.splitlines()
    assert words == "At 09:00, only on Monday, Europe/Paris, 2 times"
    assert [line[:3] for line in lines] == ["#0 ", "#1 "]


def test_what_is_left_out_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--every", "1h", "--except-cron", "* 0-5,7-23 * * *", "--tz", "Asia/Tokyo"]
    assert preview(*arguments, "-n", "3", "-o", "jsonl") == 0
    found = [orjson.loads(line)["local"] for line in capsys.readouterr().out.splitlines()]
    assert [local[11:13] for local in found] == ["06", "06", "06"]


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert preview(*PARIS, "--count", "2", "-o", "json") == 0
    found = orjson.loads(capsys.readouterr().out)
    assert found["timezone"] == "Europe/Paris"
    assert [each["occurrence"] for each in found["occurrences"]] == [0, 1]
    assert all(each["local"][11:16] == "09:00" for each in found["occurrences"])
    first = found["occurrences"][0]
    assert parse_instant(first["local"]) == parse_instant(first["scheduled_at"])


def test_json_lines_are_the_instants(capsys: pytest.CaptureFixture[str]) -> None:
    assert preview("--every", "1h", "-n", "3", "-o", "jsonl") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_past_instant_fires_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert preview("--at", "2020-01-01T00:00:00Z", "--tz", "UTC") == 0
    shown = capsys.readouterr()
    line = shown.out.splitlines()[1]
    assert line.startswith("#0    2020-01-01T00:00:00.000+00:00   2020-01-01T00:00:00.000Z ")
    assert "fires at once" in line
    assert shown.err.startswith("in_the_past: ")


def test_instants_end_with_the_calendar(capsys: pytest.CaptureFixture[str]) -> None:
    assert preview("--every", "36500d", "-n", "999", "-o", "jsonl") == 0
    assert 70 < len(capsys.readouterr().out.splitlines()) < 80


def test_a_rule_that_is_never_due_is_shown_with_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert preview("--every", "1h", "--end-at", "2020-01-01T00:00:00Z", "-o", "json") == 0
    found = orjson.loads(capsys.readouterr().out)
    assert found["occurrences"] == []
    assert [each["code"] for each in found["warnings"]] == ["never_fires"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cron", "0 25 * * *"], "cannot be read at character 3: '25' is no hour: 0-23."),
        (["--cron", "@daily", "--tz", "europe/paris"], "Did you mean Europe/Paris?"),
        (["--in", "5m", "--max-fires", "2"], "--max-fires belongs to --every, --cron and --rrule"),
        (["--every", "1000000d"], "interval_ms"),
        (["--in", "5m", "--except-cron", "* 0 * * *"], "--except-cron belongs to --every, --cron"),
        (["--every", "5m", "--except-cron", "H 0 * * *"], "give five fields"),
    ],
)
def test_what_cannot_be_previewed(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert preview(*arguments) == 2
    assert words in capsys.readouterr().err
