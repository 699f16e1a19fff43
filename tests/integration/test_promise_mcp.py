"""An agent schedules through `belfry mcp` what its key lets it, started as docs/mcp.md says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from tests.acceptance.harness.site import Site
from tests.architecture.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

PAGE: Final = (ROOT / "docs" / "mcp.md").read_text("utf-8")
CONFIGURED: Final = json.loads(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0])
NEW_KEYS: Final = re.findall(r"^\$ belfry (api-key .*)$", PAGE, re.MULTILINE)
REFUSED: Final = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
BELFRY: Final = (sys.executable, "-m", "belfry.cli")
AT: Final = "2060-01-01T09:00:00.000Z"
ABOUT: Final = {"tenant": "demo", "schedule_id": "order/4711"}


@pytest.fixture(scope="module")
def keys() -> dict[str, Any]:
    """The keys that the page makes, by name; entries of the list under `entries`."""
    found: dict[str, Any] = {"entries": []}
    for command in NEW_KEYS:
        words = [*BELFRY, *command.split(), "-o", "json"]
        made = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        found[made["entry"]["name"]] = made["key"]
        found["entries"].append(made["entry"])
    return found


@pytest.fixture(scope="module")
def site(
    kafka: str, keys: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name = f"mcp-{time.monotonic_ns():x}"
    listed = json.dumps(keys["entries"])
    with Site(kafka, name, tmp_path_factory.mktemp("mcp"), HTTP_API_KEYS=listed) as site:
        site.worker().start().wait_ready()
        yield site


@asynccontextmanager
async def agent(site: Site, key: str, log: Path) -> AsyncIterator[Client]:
    """A client that starts the server as the page configures it, with this key."""
    given = CONFIGURED["mcpServers"]["belfry"]
    assert given["command"] == "belfry"
    where = f"http://127.0.0.1:{site.workers[0].http_port}"
    values = {"BELFRY_HTTP_URL": where, "BELFRY_HTTP_TOKEN": key}
    assert given["env"].keys() == values.keys()
    started = StdioServerParameters(
        command=BELFRY[0],
        args=[*BELFRY[1:], *given["args"]],
        env={**values, "PYTHONPATH": str(ROOT / "app")},
    )
    with log.open("w+") as errors:
        async with Client(stdio_client(started, errlog=errors)) as client:
            yield client
        errors.seek(0)
        assert errors.read() == ""


async def done(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured answer of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


def told(result: CallToolResult) -> str:
    """What a refused call says."""
    assert result.is_error
    (content,) = result.content
    assert content.type == "text"
    return content.text


async def test_an_agent_schedules_looks_and_cancels(
    site: Site, keys: dict[str, Any], tmp_path: Path
) -> None:
    async with agent(site, keys["assistant"], tmp_path / "log") as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
        words = (await done(client, "preview_rule", cron="0 9 * * MON", count=2))["words"]
        assert words.startswith("At 09:00")
        asked = {**ABOUT, "at": AT, "payload_json": {"state": "unpaid"}}
        outcomes = [(await done(client, "schedule_event", **asked))["outcome"] for _ in range(2)]
        assert outcomes == ["ACCEPTED", "UNCHANGED"]
        found = await done(client, "get_schedule", **ABOUT)
        assert (found["due_at"], found["payload_json"]) == (AT, {"state": "unpaid"})
        await done(client, "schedule_event", **ABOUT, cron="@daily", replace=True)
        found = await done(client, "get_schedule", **ABOUT)
        assert len(found["next_occurrences"]) == 10
        listed = await done(client, "list_schedules", tenant="demo", prefix="order/")
        assert [each["schedule_id"] for each in listed["schedules"]] == ["order/4711"]
        why = await done(client, "why_schedule", **ABOUT)
        assert "waits for its due instant" in why["answer"]
        ended = await done(client, "cancel_schedule", **ABOUT, reason="paid")
        assert ended["outcome"] == "CANCELLED"
        again = await client.call_tool("cancel_schedule", ABOUT)
        assert told(again).endswith("(not_found, HTTP 404)")
        elsewhere = await client.call_tool("get_schedule", {**ABOUT, "tenant": "shop"})
        assert told(elsewhere).endswith("(forbidden, HTTP 403)")


async def test_a_key_that_only_reads_is_refused_with_the_sentence_of_the_page(
    site: Site, keys: dict[str, Any], tmp_path: Path
) -> None:
    async with agent(site, keys["onlooker"], tmp_path / "log") as client:
        refused = await client.call_tool("schedule_event", {**ABOUT, "delay_ms": 5_000})
        assert told(refused) == REFUSED[0]
        assert (await done(client, "list_schedules", tenant="demo"))["schedules"] == []
