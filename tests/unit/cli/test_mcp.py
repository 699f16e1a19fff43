"""`belfry mcp`: six tools, each one call of the worker's HTTP port, and its answer as it came."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final, NamedTuple

import orjson
import pytest
from mcp.client import Client
from mcp.types import CallToolResult

from belfry.api.json.events import EventAnswer
from belfry.cli.entry import main
from belfry.cli.mcp import server_of
from belfry.cli.mcp_tools import TOOLS
from belfry.cli.remote import Remote
from belfry.cli.session import Session
from tests.unit.cli.test_why import event

SCHEDULES: Final = "/v1/tenants/demo/schedules"
WHOLE: Final = {
    "tenant": "demo",
    "schedule_id": "a",
    "state": "PENDING",
    "version": 1,
    "generation": 7,
    "occurrence": 0,
    "due_at": "2040-01-01T09:00:00.000Z",
    "headers": [],
}
VERDICT: Final = {
    **dict.fromkeys(("request_id", "version", "at", "due_at", "code", "reason")),
    **dict.fromkeys(("source_topic", "source_partition", "source_offset")),
    "tenant": "demo",
    "schedule_id": "a",
    "outcome": "ACCEPTED",
}
PREVIEW: Final = {"words": "Every day", "timezone": "UTC", "occurrences": [], "warnings": []}
PAGE: Final = {"schedules": [WHOLE], "examined": 1, "cursor": None}
PLACE: Final = {"tenant": "demo", "told_partition": 0, "told_offset": 7}
FIRED: Final = {**dict.fromkeys(EventAnswer.model_fields), **event("FIRED"), **PLACE}
HISTORY: Final = {"events": [FIRED], "cursor": None}
ABOUT: Final = {"tenant": "demo", "schedule_id": "a"}


class Asked(NamedTuple):
    """A request as the worker got it."""

    line: str
    body: Any
    key: str | None
    condition: str | None


class StandIn:
    """A worker that gives the same answer to all that is asked, and notes it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answer: Callable[[str], tuple[int, Any]] = lambda _: (200, {})
        self.asked: list[Asked] = []


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("BELFRY_HTTP_TOKEN", "the-key")
    with served() as standing_in:
        yield standing_in


@contextmanager
def served() -> Iterator[StandIn]:
    class Port(BaseHTTPRequestHandler):
        def answered(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            body = orjson.loads(self.rfile.read(length)) if length else None
            key, condition = self.headers["authorization"], self.headers["if-match"]
            standing_in.asked.append(Asked(f"{self.command} {self.path}", body, key, condition))
            status, answer = standing_in.answer(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(orjson.dumps(answer))

        do_GET = do_POST = do_PUT = do_DELETE = answered  # noqa: N815  (names of the library)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Port)
    standing_in = StandIn(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield standing_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def called(url: str, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    """What an agent gets; the client checks structured answers against the tool's schema."""
    async with Client(server_of(Remote(Session({"http_url": url})))) as client:
        return await client.call_tool(tool, arguments)


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


async def test_there_are_six_tools_that_say_what_they_change(worker: StandIn) -> None:
    async with Client(server_of(Remote(Session({"http_url": worker.url})))) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    hints = {name: tool.annotations for name, tool in tools.items()}
    assert {name: (h and (h.read_only_hint, h.destructive_hint)) for name, h in hints.items()} == {
        "schedule_event": (False, True),
        "cancel_schedule": (False, True),
        "get_schedule": (True, False),
        "list_schedules": (True, False),
        "preview_rule": (True, False),
        "why_schedule": (True, False),
    }
    assert all(tool.output_schema for tool in tools.values())
    assert not worker.asked


CALLS: Final[dict[str, tuple[str, dict[str, Any], Any, str, Any]]] = {
    "create": (
        "schedule_event",
        {**ABOUT, "delay_ms": 5, "payload_json": {"n": 1}, "group": None},
        VERDICT,
        f"POST {SCHEDULES}",
        {"schedule_id": "a", "delay_ms": 5, "payload_json": {"n": 1}},
    ),
    "replace": (
        "schedule_event",
        {"tenant": "demo", "schedule_id": "order/1", "cron": "@daily", "replace": True},
        VERDICT,
        f"PUT {SCHEDULES}/order%2F1",
        {"cron": "@daily"},
    ),
    "cancel": (
        "cancel_schedule",
        {**ABOUT, "reason": "paid & done"},
        VERDICT,
        f"DELETE {SCHEDULES}/a?reason=paid+%26+done",
        None,
    ),
    "get": ("get_schedule", ABOUT, WHOLE, f"GET {SCHEDULES}/a?next=10", None),
    "list": (
        "list_schedules",
        {"tenant": "demo", "prefix": "order/", "state": "PAUSED"},
        PAGE,
        f"GET {SCHEDULES}?limit=20&prefix=order%2F&state=PAUSED",
        None,
    ),
    "preview": (
        "preview_rule",
        {"cron": "@daily", "count": 3},
        PREVIEW,
        "POST /v1/preview",
        {"cron": "@daily", "count": 3},
    ),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_is_one_request_with_the_key_of_the_settings(
    worker: StandIn, call: str
) -> None:
    tool, arguments, answer, line, body = CALLS[call]
    worker.answer = lambda _: (200, answer)
    result = await called(worker.url, tool, arguments)
    assert worker.asked == [Asked(line, body, "Bearer the-key", None)]
    assert not result.is_error
    assert result.structured_content == answer == orjson.loads(text(result))


@pytest.mark.parametrize("version", [3, "17.3"])
async def test_a_cancel_may_name_the_version_that_it_means(
    worker: StandIn, version: int | str
) -> None:
    worker.answer = lambda _: (200, VERDICT)
    await called(worker.url, "cancel_schedule", {**ABOUT, "expected_version": version})
    assert worker.asked[0].condition == f'"{version}"'


async def test_why_tells_the_answer_of_the_command_line(worker: StandIn) -> None:
    worker.answer = lambda path: (200, HISTORY) if "history" in path else (404, {"detail": "no"})
    result = await called(worker.url, "why_schedule", ABOUT)
    found = result.structured_content
    assert found["answer"].startswith("demo/a fired ")
    assert (found["schedule"], found["more"]) == (None, False)
    assert found["events"] == HISTORY["events"]


REFUSED: Final = "viewer has the role read; this takes schedule."


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("schedule_event", {**ABOUT, "delay_ms": 5}),
        ("cancel_schedule", ABOUT),
        ("get_schedule", ABOUT),
        ("list_schedules", {"tenant": "demo"}),
        ("preview_rule", {"cron": "@daily"}),
        ("why_schedule", ABOUT),
    ],
)
async def test_a_refusal_of_the_worker_is_an_error_of_the_tool(
    worker: StandIn, tool: str, arguments: dict[str, Any]
) -> None:
    worker.answer = lambda _: (403, {"detail": REFUSED, "code": "forbidden"})
    result = await called(worker.url, tool, arguments)
    assert result.is_error
    assert text(result) == f"{REFUSED} (forbidden, HTTP 403)"


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("schedule_events", {}, "unknown tool 'schedule_events'; did you mean schedule_event?"),
        ("why_schedule", {**ABOUT, "next": 3}, "unknown argument of why_schedule 'next'"),
        ("get_schedule", {**ABOUT, "nxt": 3}, "'nxt'; did you mean next?"),
        ("schedule_event", {**ABOUT, "cron": "@daily", "max_fire": 3}, "did you mean max_fires?"),
        ("cancel_schedule", {"tenant": "demo"}, "schedule_id is missing: give a text"),
        ("cancel_schedule", {"tenant": "demo", "schedule_id": ""}, "schedule_id is ''"),
        ("list_schedules", {"tenant": 7}, "tenant is 7: give a text"),
        ("cancel_schedule", {**ABOUT, "expected_version": "new\r\nx: y"}, "give a version"),
        ("schedule_event", {**ABOUT, "delay_ms": 5, "replace": "no"}, "replace is 'no'"),
    ],
)
async def test_wrong_arguments_are_told_and_nothing_is_asked(
    worker: StandIn, tool: str, arguments: dict[str, Any], told: str
) -> None:
    result = await called(worker.url, tool, arguments)
    assert result.is_error
    assert told in text(result)
    assert not worker.asked


async def test_a_worker_that_is_away_is_an_error_that_says_what_to_do() -> None:
    result = await called("http://127.0.0.1:1", "get_schedule", ABOUT)
    assert result.is_error
    assert "No worker answers at http://127.0.0.1:1" in text(result)


@pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
def test_the_examples_of_a_description_are_right(tool: Any) -> None:
    examples = [line for line in tool.description.splitlines() if line.startswith("{")]
    assert examples
    for line in examples:
        tool.arguments.model_validate_json(line)
        assert json.loads(line).keys() <= tool.arguments.model_fields.keys()


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] in ("mcp", "mcp_types")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp"]) == 1
    shown = capsys.readouterr()
    assert "pip install 'belfry-scheduler[mcp]'" in shown.err
    assert shown.out == ""
