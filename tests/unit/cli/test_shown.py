"""How results look: for people without surprises in the terminal, for programs as JSON."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest

from belfry.cli import deliveries
from belfry.cli.results import (
    bytes_json,
    bytes_text,
    event_json,
    event_text,
    verdict_json,
    verdict_text,
)
from belfry.cli.shown import Output, Printer, from_now
from belfry.client import FiredRecord, Verdict
from belfry.delivery.dead_letters import Letter
from belfry.delivery.work import Work
from belfry.schedules.outcomes import Outcome
from belfry.schedules.targets import HttpTarget
from belfry.tenants.deliveries import DeliveryState
from belfry.wire.fired import FiredEvent

NOW_MS = 1_796_115_600_000
RESULTS = [({"n": 1}, "one"), ({"n": 2}, "two")]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (Output.TEXT, "one\ntwo\n"),
        (Output.JSONL, '{"n":1}\n{"n":2}\n'),
        (Output.JSON, '[\n{"n":1},\n{"n":2}\n]\n'),
    ],
)
def test_several_results(output: Output, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    Printer(output).many(iter(RESULTS))
    assert capsys.readouterr().out == shown


def test_an_interrupted_array_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> Iterator[tuple[dict[str, int], str]]:
        yield RESULTS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Printer(Output.JSON).many(interrupted())
    assert orjson.loads(capsys.readouterr().out) == [{"n": 1}]


ENDLESS = """
from time import sleep
from belfry.cli.shown import Output, Printer

def results():
    yield {"n": 1}, "one"
    yield {"n": 2}, "two"
    sleep(60)

Printer(Output("%s")).many(results())
"""


@pytest.mark.parametrize("output", [Output.JSON, Output.JSONL, Output.TEXT])
def test_what_a_signal_ends_is_whole_and_ended_by_the_signal(output: Output) -> None:
    command = [sys.executable, "-c", ENDLESS % output]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        shown = b""
        while not shown.endswith((b'{"n":2}', b'{"n":2}\n', b"two\n")):
            shown += process.stdout.read1()  # type: ignore[attr-defined]  # a buffered reader
        process.send_signal(signal.SIGTERM)
        rest, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (-signal.SIGTERM, b"")
    if output is Output.JSON:
        assert orjson.loads(shown + rest) == [{"n": 1}, {"n": 2}]
    else:
        assert rest == b""


def test_a_command_that_minds_the_signal_itself_goes_on_doing_so() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with Printer(Output.JSON).several():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_the_signal_does_as_before_behind_the_array() -> None:
    with Printer(Output.JSON).several():
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_results_that_come_by_calls_are_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    def cut_short() -> None:
        with Printer(Output.JSON).several() as tell:
            for each in RESULTS:
                tell(*each)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_short()
    assert orjson.loads(capsys.readouterr().out) == [{"n": 1}, {"n": 2}]
    with Printer(Output.JSONL).several() as tell:
        tell(*RESULTS[0])
        # A line is there when it comes.
        assert capsys.readouterr().out == '{"n":1}\n'


def test_an_array_is_whole_where_a_record_cannot_be_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken() -> None:
        with Printer(Output.JSON).several() as tell:
            tell(*RESULTS[0])
            tell({"n": object()}, "")

    with pytest.raises(TypeError):
        broken()
    assert orjson.loads(capsys.readouterr().out) == [{"n": 1}]


def test_no_results_are_an_empty_array(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(Output.JSON).many([])
    assert capsys.readouterr().out == "[]\n"


HOSTILE = "a\x1b[2J\x9b2J\u202eb\u2028c\U000e0001\x7f"


@pytest.mark.parametrize("output", Output)
def test_nothing_that_is_printed_commands_a_terminal(
    output: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = Printer(output)
    printer.one({"said": HOSTILE}, f"grün\n{HOSTILE}")
    printer.many([({"said": HOSTILE}, HOSTILE)])
    printer.note(HOSTILE)
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert all(line.isprintable() for line in text.split("\n"))
    if output is Output.TEXT:
        assert shown.out.startswith("grün\na\\u001b[2J\\u009b2J\\u202eb")
    if output is Output.JSONL:
        assert [orjson.loads(line) for line in shown.out.splitlines()] == [{"said": HOSTILE}] * 2


def test_json_that_is_printed_for_people_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    """An export is lines of JSON in every form, to be read again."""
    Printer(Output.TEXT).one({}, orjson.dumps({"id": HOSTILE}).decode())
    assert orjson.loads(capsys.readouterr().out) == {"id": HOSTILE}


def test_a_delivery_stays_a_line() -> None:
    event = FiredEvent("demo", "a\n\x1b[2J", "f" * 32, 1, 0, NOW_MS, NOW_MS, NOW_MS)
    state = DeliveryState((HttpTarget("https://a.example/\x1b"),))
    letter = Letter(Work(b"", b"", event, [], state), NOW_MS, "http_500", "said\n\x1b]0;x\x07")
    assert deliveries._text(letter).isprintable()


def test_bytes_cannot_move_the_cursor() -> None:
    assert bytes_text(b"a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"
    assert bytes_text("grün".encode()) == "grün"
    assert bytes_text(b"\xff\x00") == "base64:/wA="
    assert bytes_text(None) == "null"


def test_bytes_are_named_by_what_they_are() -> None:
    assert bytes_json("payload", None) == {"payload_text": None}
    assert bytes_json("payload", b"\xff") == {"payload_base64": "/w=="}
    assert bytes_json("payload", b"{") == {"payload_text": "{"}
    assert bytes_json("payload", b"12") == {"payload_text": "12"}
    assert bytes_json("payload", b'{"a":1}') == {
        "payload_text": '{"a":1}',
        "payload_json": {"a": 1},
    }


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "now"), (999, "now"), (61_500, "in 1m1s"), (-3_600_000, "1h ago")]
)
def test_how_far_an_instant_is_away(ms: int, text: str) -> None:
    assert from_now(NOW_MS + ms, NOW_MS) == text


def test_a_verdict_in_a_line_and_in_json() -> None:
    verdict = Verdict(
        "demo", "a\x1bb", Outcome.ACCEPTED, "r", version=1, at_ms=NOW_MS, due_ms=NOW_MS + 5_000
    )
    line = "ACCEPTED demo/a\\x1bb, version 1, due 2026-12-01T09:00:05.000Z (in 5s)"
    assert verdict_text(verdict, NOW_MS) == line
    found = verdict_json(verdict)
    assert found["outcome"] == "ACCEPTED"
    assert found["due_at"] == "2026-12-01T09:00:05.000Z"
    assert orjson.loads(orjson.dumps(found)) == found


def test_a_request_that_was_not_waited_for_is_sent() -> None:
    sent = Verdict(
        "demo", "a", None, "r", source_topic="b.schedules", source_partition=3, source_offset=7
    )
    assert verdict_text(sent, NOW_MS) == "SENT demo/a, b.schedules 3@7, request id r"
    assert verdict_json(sent)["outcome"] is None


def test_a_fired_event_in_a_line_and_in_json() -> None:
    headers: list[tuple[str, bytes | None]] = [
        ("belfry-schedule-id", b"of the user"),
        ("null", None),
        ("belfry-fire-id", b"f" * 32),
        ("belfry-schedule-id", b"hello"),
        ("belfry-scheduled-at", b"2026-12-01T09:00:00.000Z"),
        ("belfry-occurrence", b"-1"),
    ]
    event = FiredRecord("t", 1, 2, NOW_MS, b"k", b"hi\n", headers)
    assert event_text(event) == "2026-12-01T09:00:00.000Z  hello #-1  hi\\n"
    found = event_json(event)
    assert found["occurrence"] == -1
    assert found["source"] is None
    traced = replace(event, headers=[*headers, ("belfry-source", b"b.schedules/3/17")])
    place = {"topic": "b.schedules", "partition": 3, "offset": 17}
    assert event_json(traced)["source"] == place
    assert found["fire_id"] == "f" * 32
    assert found["headers"][1] == {"name": "null", "value_text": None}
    assert found["payload_text"] == "hi\n"
    assert orjson.loads(orjson.dumps(found)) == found


def test_a_record_that_is_not_of_belfry_is_shown_too() -> None:
    event = FiredRecord("t", 0, 0, None, None, None, [("belfry-occurrence", b"x")])
    assert event_text(event) == "-  -  null"
    assert event_json(event)["occurrence"] is None


def test_long_work_tells_every_few_seconds_how_far_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    instants = iter([0.0, 1.0, 4.9, 5.0, 6.0, 9.9, 11.0])
    found = Printer(Output.TEXT).counted("abcdef", "letters", lambda: next(instants))
    assert "".join(found) == "abcdef"
    told = capsys.readouterr()
    assert (told.out, told.err.splitlines()) == ("", ["3 letters …", "6 letters …"])


def test_programs_are_not_told_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    instants = iter([0.0, 9.0])
    assert list(Printer(Output.JSON).counted([1], "ones", lambda: next(instants))) == [1]
    assert capsys.readouterr().err == ""


def test_a_list_has_a_heading_for_people_and_says_where_it_is_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Printer(Output.TEXT).listed([({"a": 1}, "one"), ({"a": 2}, "two")], "heading", "nothing")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("one\ntwo\n", "heading\n")
    Printer(Output.TEXT).listed([], "heading", "nothing")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "nothing\n")
    Printer(Output.JSONL).listed([({"a": 1}, "one")], "heading", "nothing")
    told = capsys.readouterr()
    assert (told.out, told.err) == ('{"a":1}\n', "")
