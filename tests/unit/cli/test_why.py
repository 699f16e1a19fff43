"""`belfry schedule why` and its neighbours: the sentence that answers, and the lines below it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from belfry.cli.entry import main
from belfry.cli.failures import CommandError, Exit
from belfry.cli.past import event_line
from belfry.cli.why import MOST_PAGES, SHOWN
from belfry.cli.why_words import answer
from belfry.schedules.instants import format_instant

NOW = 1_800_000_000_000
NAME = "demo/order/4711"
ASKED = {"source_topic": "belfry.schedules", "source_partition": 2, "source_offset": 41}


def at(after_ms: int) -> str:
    return format_instant(NOW + after_ms)


def standing(**fields: Any) -> dict[str, Any]:
    return {"state": "PENDING", "due_at": at(90_000), "occurrence": 0, **fields}


def event(outcome: str, **fields: Any) -> dict[str, Any]:
    empty = dict.fromkeys(
        ("version", "due_at", "code", "reason", "fire_id", "target", "attempt", "source_topic",
         "source_partition", "source_offset", "told_partition", "told_offset")
    )  # fmt: skip
    known = {"schedule_id": "order/4711", "outcome": outcome, "at": at(-5_000)}
    return {**empty, **known, "due_at": at(-7_000), "version": 1, **fields}


@pytest.mark.parametrize(
    ("found", "last", "said"),
    [
        (standing(), None, f"waits for its due instant, {at(90_000)} (in 1m30s)."),
        (
            standing(max_wait_ms=120_000, accepted_at=at(-10_000)),
            None,
            f"(in 1m30s). Each further request slides it, at the latest to {at(110_000)}.",
        ),
        (standing(occurrence=3), event("FIRED"), "Occurrences before: 3."),
        (
            standing(source_partition=2, source_offset=41),
            None,
            "(in 1m30s). Its request: partition 2, offset 41.",
        ),
        (
            standing(fires={"words": "3 fired, each within a second"}),
            None,
            "(in 1m30s). By its rule 3 fired, each within a second.",
        ),
        (standing(due_at=at(-2_000)), None, "fires with one of the next steps"),
        (
            standing(due_at=at(-9_000), waiting_reason="its topic is missing.", waiting_since="S"),
            None,
            f"waits, since S: its topic is missing. It is due {at(-9_000)} (9s ago).",
        ),
        (standing(unreadable="it is of a later release"), None, "waits: it is of a later release."),
        (standing(state="PAUSED"), event("PAUSED", reason="stock"), "is paused: stock. Without"),
        (
            standing(state="PAUSED"),
            event("PAUSED", **ASKED),
            "resume ends it. Asked for at belfry.schedules/2@41.",
        ),
        (standing(state="PAUSED"), event("ACCEPTED"), "is paused. Without"),
        (None, event("FIRED", fire_id="f1"), "fired 5s ago, 2s after it was due, with fire id f1."),
        (
            standing(state="FIRED", due_at=at(-7_000), ended_at=at(-5_000)),
            event("ACCEPTED"),
            "ended as FIRED 5s ago, 2s after it was due.",
        ),
        # Of the life before: what is remembered ended later.
        (
            standing(state="FIRED", due_at=at(-4_500), ended_at=at(-4_000)),
            event("CANCELLED", reason="paid"),
            "ended as FIRED 4s ago, 500ms after it was due.",
        ),
        (
            standing(state="FIRED", due_at=at(-7_000), ended_at=at(-5_000)),
            event("FIRED", fire_id="f1"),
            "fired 5s ago, 2s after it was due, with fire id f1.",
        ),
        (None, event("CANCELLED", reason="paid"), "was cancelled 5s ago: paid. It had been due"),
        (None, event("CANCELLED", **ASKED), "Asked for at belfry.schedules/2@41."),
        (None, event("MISSED"), f"did not fire at {at(-7_000)}: its misfire policy left it out."),
        (None, event("COMPLETED"), "completed 5s ago: its rule has no occurrence left."),
        (None, event("ACCEPTED"), "How it ended is not kept"),
        (
            None,
            event("REJECTED", code="bad_cron", reason="five fields"),
            "was never accepted: REJECTED, bad_cron: five fields.",
        ),
    ],
)
def test_the_first_sentence_is_the_answer(found: Any, last: Any, said: str) -> None:
    told = answer(NAME, found, last, NOW)
    assert told.startswith(f"{NAME} ")
    assert said in told


def test_of_what_nothing_is_known_the_command_says_where_to_look() -> None:
    with pytest.raises(CommandError, match="belfry schedule list demo") as caught:
        answer(NAME, None, None, NOW)
    assert caught.value.exit_code is Exit.NOT_FOUND


def test_a_line_names_the_request_that_asked_for_it() -> None:
    line = event_line(event("ACCEPTED", **ASKED))
    assert line.endswith("version 1, due " + at(-7_000) + ", asked at belfry.schedules/2@41")
    assert "(2s late)" in event_line(event("FIRED"))
    told = event("FIRED", told_partition=1, told_offset=99)
    assert event_line(told).endswith("told at 1@99")
    assert "told" not in event_line({**told, **ASKED})
    assert "(0ms late)" in event_line(event("FIRED", due_at=at(-5_000)))
    delivered = event("FAILED", attempt=3, target="https://a.example", code="timeout", reason="10s")
    assert event_line(delivered).endswith("attempt 3 to https://a.example, timeout: 10s")


@contextmanager
def worker(answers: dict[str, list[Any]], queries: list[str] | None = None) -> Iterator[str]:
    """A worker that gives these pages at each path, by cursor; 404 elsewhere.

    What it is asked for goes into `queries`.
    """
    seen = [] if queries is None else queries

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            seen.append(asked.query)
            some = "?outcome" if "outcome" in parse_qs(asked.query) else ""
            pages = answers.get(asked.path + some)
            cursor = int(parse_qs(asked.query).get("cursor", ["0"])[0])
            body = {"detail": "There is none."} if pages is None else pages[cursor]
            self.send_response(404 if pages is None else 200)
            self.end_headers()
            self.wfile.write(orjson.dumps(body))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def said(url: str, schedule_id: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Lines of the answer."""
    assert main(["why", "demo", schedule_id, "--http-url", url]) == 0
    return capsys.readouterr().out.splitlines()


def test_of_a_long_history_the_newest_page_is_asked_for_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fires = [event("FIRED", fire_id=f"f{number}") for number in range(SHOWN)]
    refused = event("NOT_FOUND", code="not_found", reason="it is over", at=at(-4_000))
    history = "/v1/tenants/demo/schedules/a/history"
    # The page behind the cursor is not there: who asks for it fails.
    with worker({history: [{"events": [refused, *fires[:0:-1]], "cursor": "1"}]}) as url:
        lines = said(url, "a", capsys)
        assert main(["schedule", "why", "demo", "a", "--http-url", url]) == 0
        assert capsys.readouterr().out.splitlines()[1:] == lines[1:]
        assert main(["why", "demo", "b", "--http-url", url]) == Exit.NOT_FOUND
    assert "with fire id f19" in lines[0]
    assert lines[1] == "  … and events before: belfry schedule history demo a"
    assert "NOT_FOUND" in lines[-1]
    assert len(lines) == 2 + SHOWN


def test_a_reason_that_is_a_sentence_ends_with_one_dot(capsys: pytest.CaptureFixture[str]) -> None:
    found = event("NOT_FOUND", code="not_found", reason="No schedule has this id.", at=at(-4_000))
    history = "/v1/tenants/demo/schedules/a/history"
    with worker({history: [{"events": [found], "cursor": None}]}) as url:
        lines = said(url, "a", capsys)
    assert "No schedule has this id. Asked for" in lines[0] or lines[0].endswith("has this id.")
    assert ".." not in "".join(lines)
    assert "id., " not in lines[-1]


@pytest.mark.parametrize(
    ("behind", "told"), [(0, "was cancelled"), (1, "was cancelled"), (MOST_PAGES, "never")]
)
def test_what_became_of_a_schedule_is_looked_for_behind_refusals_on_some_pages(
    capsys: pytest.CaptureFixture[str], behind: int, told: str
) -> None:
    newest = {"events": [event("NOT_FOUND", code="not_found", reason="it is over")], "cursor": "9"}
    pages: list[Any] = [{"events": [], "cursor": str(number + 1)} for number in range(behind)]
    pages.append({"events": [event("CANCELLED")], "cursor": None})
    path = "/v1/tenants/demo/schedules/a/history"
    # Of the outcomes that tell something, the first page is another one than that of all events.
    with worker({path: [newest], f"{path}?outcome": pages}) as url:
        lines = said(url, "a", capsys)
    assert told in lines[0]
    assert len(lines) == 3


def test_fires_that_the_schedule_alone_tells_stand_among_its_events(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fires = [
        {"fire_id": f"f{n}", "due_at": at(-n * 1_000 - 30), "fired_at": at(-n * 1_000)}
        for n in (9, 6, 3)
    ]
    found = standing(schedule_id="a", last_fires=fires)
    events = [event("FIRED", at=at(-3_000), due_at=at(-3_030)), event("ACCEPTED", at=at(-10_000))]
    path = "/v1/tenants/demo/schedules/a"
    with worker({path: [found], f"{path}/history": [{"events": events, "cursor": None}]}) as url:
        lines = said(url, "a", capsys)
    assert [line.split()[1] for line in lines[1:]] == ["ACCEPTED", "FIRED", "FIRED", "FIRED"]
    assert [line.split()[0] for line in lines[1:]] == [
        at(-n) for n in (10_000, 9_000, 6_000, 3_000)
    ]
    assert all("(30ms late)" in line for line in lines[2:])


def test_what_has_no_room_beside_the_last_fires_is_told_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fires = [{"fire_id": "f", "due_at": at(-n), "fired_at": at(-n)} for n in range(10)]
    found = standing(schedule_id="a", last_fires=fires)
    path = "/v1/tenants/demo/schedules/a"
    events = [event("UPDATED") for _ in range(SHOWN - 9)]
    with worker({path: [found], f"{path}/history": [{"events": events, "cursor": None}]}) as url:
        lines = said(url, "a", capsys)
    assert lines[1] == "  … and events before: belfry schedule history demo a"
    assert len(lines) == 2 + SHOWN


def test_a_history_is_told_newest_first_and_of_some_outcomes_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = "/v1/tenants/demo/schedules/a/history"
    asked: list[str] = []
    pages = [{"events": [event("CANCELLED")], "cursor": None}]
    line = ["schedule", "history", "demo", "a", "--http-url"]
    with worker({path: pages, f"{path}?outcome": pages}, asked) as url:
        assert main([*line, url]) == 0
        some = ["--newest", "--outcome", "CANCELLED", "--outcome", "FIRED", "--limit", "5"]
        assert main([*line, url, *some]) == 0
    assert "CANCELLED" in capsys.readouterr().out
    assert asked == ["limit=1000", "order=newest&outcome=CANCELLED&outcome=FIRED&limit=5"]


@pytest.mark.parametrize("schedule_id", ["a", "b"])
def test_the_answer_waits_for_no_library_of_kafka(schedule_id: str) -> None:
    """Each would be a tenth of a second of the start of a process, also where nothing is known."""
    history = "/v1/tenants/demo/schedules/a/history"
    code = (
        "import sys\nfrom belfry.cli.entry import main\nmain(sys.argv[1:])\n"
        "print(*sorted({'belfry.client', 'confluent_kafka', 'fastapi'} & sys.modules.keys()))"
    )
    with worker({history: [{"events": [event("CANCELLED")], "cursor": None}]}) as url:
        line = [sys.executable, "-c", code, "why", "demo", schedule_id, "--http-url", url]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert ("was cancelled" in done.stdout) == (schedule_id == "a")
    assert done.stdout.splitlines()[-1] == ""


def test_a_minute_in_two_partitions_counts_once(capsys: pytest.CaptureFixture[str]) -> None:
    minute, later = at(0), at(60_000)
    pages = [
        {"counts": [{"minute": minute, "pending": 3}], "cursor": "1"},
        {"counts": [{"minute": minute, "pending": 5}, {"minute": later, "pending": 2}],
         "cursor": None},
    ]  # fmt: skip
    with worker({"/v1/tenants/demo/counts": pages}) as url:
        assert main(["tenant", "counts", "demo", "--http-url", url, "-o", "json"]) == 0
    told = orjson.loads(capsys.readouterr().out)
    assert told == [{"minute": minute, "pending": 8}, {"minute": later, "pending": 2}]


@pytest.mark.parametrize(
    ("since", "note"),
    [
        (at(1), f"Fires are counted since {at(1)}"),
        ("9999-12-31T23:00:00.000Z", "Not all workers count fires yet: no hour has shares."),
    ],
)
def test_statistics_say_since_when_fires_are_counted(
    capsys: pytest.CaptureFixture[str], since: str, note: str
) -> None:
    counted = dict.fromkeys(
        ("requests", "accepted", "fires", "missed", "completed", "delivered", "failed", "retries"),
        1_234,
    )
    hour = {**counted, "share_within_1s": None, "hour": at(0)}
    page = {**counted, "share_within_1s": 0.9996, "fires_since": since, "hours": [hour]}
    with worker({"/v1/tenants/demo/statistics": [page]}) as url:
        assert main(["tenant", "statistics", "demo", "--http-url", url]) == 0
    printed = capsys.readouterr()
    assert note in printed.err
    heading, first, total = printed.out.splitlines()
    assert heading.split()[:3] == ["hour", "requests", "accepted"]
    assert first.startswith(at(0)[:16])
    assert "99.96%" in total
