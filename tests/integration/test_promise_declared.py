"""Applying a set: what docs/apply.md says, on a real broker and a real worker, by both ways.

The samples of the page are written to files, and its commands are typed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from belfry.cli.entry import main
from tests.acceptance.harness.http import Http, place, schedules
from tests.acceptance.harness.site import Site, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PAGE: Final = Path(__file__).parents[2] / "docs" / "apply.md"
SAMPLES: Final = re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
TYPED: Final = re.findall(r"^\$ belfry (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
# The exit codes of the page's commands, in its order.
CODES: Final = [4, 0, 0, 4, 0, 2]

Run = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture(scope="module")
def site(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    name = f"declared-{time.monotonic_ns():x}"
    with Site(kafka, name, tmp_path_factory.mktemp("declared")) as site:
        site.worker().start()
        site.workers[0].wait_ready()
        yield site


@pytest.fixture(params=["kafka", "http"])
def run(
    request: pytest.FixtureRequest,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Types a command in a folder with the page's samples, of which each way has a tenant."""
    url = f"http://127.0.0.1:{site.workers[0].http_port}"
    for name, value in {
        "BOOTSTRAP_SERVERS": site.bootstrap,
        "CLUSTER__TOPIC_PREFIX": site.prefix,
        "CLUSTER__APP_ID": site.name,
        "HTTP_URL": url,
    }.items():
        monkeypatch.setenv(f"BELFRY_{name}", value)
    monkeypatch.chdir(tmp_path)
    for name, sample in SAMPLES:
        text = f"# {name}\n{sample}".replace("shop", tenant_of(request.param))
        Path(name).write_text(text, "utf-8")
    way = ["--http-url", url] if request.param == "http" else []

    def typed(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        capsys.readouterr()
        code = main([*arguments, "--output", "jsonl", *way])
        out, error = capsys.readouterr()
        return code, [orjson.loads(line) for line in out.splitlines()], error

    return typed


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return tenant_of(request.node.callspec.params["run"])


def tenant_of(way: str) -> str:
    return f"shop-by-{way}"


def results(told: list[dict[str, Any]]) -> dict[str, str]:
    return {each["schedule_id"] or "policy": each["result"] for each in told}


def test_the_page_does_what_it_says(run: Run, tenant: str, site: Site) -> None:
    told = [run(*command.split()) for command in TYPED]
    assert [code for code, _, _ in told] == CODES
    first, applied, second, pruning, pruned, wrong = told
    names = {"policy", "report/daily", "heartbeat", "sale/begins"}
    assert {each["schedule_id"] or "policy" for each in first[1]} == names
    assert results(applied[1]) == dict.fromkeys(names, "created")
    assert second[1] == []
    assert {each["schedule_id"]: each["alteration"] for each in pruning[1]} == {
        "heartbeat": "update",
        "report/daily": "remove",
        "sale/begins": "remove",
        None: "remove",
    }
    assert results(pruned[1])["heartbeat"] == "updated"
    assert "wrong.yaml:7: " in wrong[2]
    assert "Did you mean delivery?" in wrong[2]
    assert "Did you mean SKIP?" in wrong[2]
    http = Http(site.workers[0])
    status, listed, _ = http("GET", schedules(tenant))
    assert status == 200
    waiting = {each["schedule_id"] for each in listed["schedules"] if each["state"] == "PENDING"}
    assert waiting == {"heartbeat", f"belfry/sets/{tenant}"}
    # Its policy is gone.
    assert http("GET", f"/v1/tenants/{tenant}")[0] == 404


SET: Final = """
set: {name}
kept_in: {name}
tenants:
  {name}:
    policy: {{max_pending: 6, history_ms: 3600000}}
    schedules:
      soon: {{in: 1ms, payload: x}}
      often: {{every: 1h, payload: y, http_targets: ["https://example.com/hook?token=1"]}}
      mine: {{every: 1h}}
      days: {{rrule: "FREQ=WEEKLY;BYDAY=MO", start_at: 2060-01-05T09:00:00Z}}
"""


def test_what_is_over_stays_so_and_what_was_done_by_hand_is_set_back(
    run: Run, tenant: str, site: Site
) -> None:
    http, name = Http(site.workers[0]), f"{tenant}-drift"
    Path("set.yaml").write_text(SET.format(name=name), "utf-8")
    assert run("apply", "set.yaml")[0] == 0

    def ended() -> bool:
        return http("GET", place(name, "soon"))[1].get("state") not in ("PENDING", "PAUSED")

    wait_for("the end of what is due soon", ended)
    assert run("diff", "set.yaml")[0] == 0
    code, told, _ = run("apply", "set.yaml")
    assert (code, set(results(told).values())) == (0, {"unchanged", "over"})
    assert results(told)["soon"] == "over"
    assert http("DELETE", place(name, "often"))[0] == 200
    assert http("PUT", place(name, "mine"), {"interval_ms": 5_000})[0] == 200
    code, told, _ = run("diff", "set.yaml")
    assert (code, {each["schedule_id"]: each["alteration"] for each in told}) == (
        *(4, {"often": "create", "mine": "update"}),
    )
    assert "token=1" not in str(told)
    assert run("apply", "set.yaml")[0] == 0
    assert run("diff", "set.yaml")[0] == 0


def test_a_failure_is_told_alone_and_what_was_there_before_is_never_pruned(
    run: Run, tenant: str, site: Site
) -> None:
    http, name = Http(site.workers[0]), f"{tenant}-full"
    assert http("POST", schedules(name), {"schedule_id": "mine", "interval_ms": 60_000})[0] == 201
    # Six may wait: the one that is there, the record, two of these and two of the others.
    more = "".join(f"      more/{n}: {{at: 2060-01-01T00:00:00Z}}\n" for n in range(4))
    Path("set.yaml").write_text(SET.format(name=name).replace("in: 1ms", "in: 1h") + more, "utf-8")
    code, told, _ = run("apply", "set.yaml")
    found = results(told)
    assert (code, found["mine"]) == (1, "updated")
    assert sorted(found.values()).count("failed") == 3
    assert all(each["problem"] for each in told if each["result"] == "failed")
    Path("none.yaml").write_text(f"set: {name}\nkept_in: {name}\n", "utf-8")
    # Nobody can be asked here.
    assert run("apply", "--prune", "none.yaml")[0] == 2
    code, told, _ = run("apply", "--prune", "--yes", "none.yaml")
    created = {each for each, result in found.items() if result == "created"}
    assert (code, set(results(told))) == (0, created)
    assert http("GET", place(name, "mine"))[1]["state"] == "PENDING"
    assert run("diff", "--prune", "none.yaml")[0] == 0


DAYS: Final = """
set: {name}
kept_in: {name}
tenants:
  {name}:
    calendars:
      own: {{ics: own.ics, years: [2059, 2060], weekend: [SUN]}}
    schedules:
      daily: {{cron: "0 9 * * *", start_at: 2060-12-24T00:00:00Z, calendar: own, payload: x}}
"""
ICS: Final = "\r\n".join(
    (
        *("BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:test", "BEGIN:VEVENT"),
        *("DTSTART;VALUE=DATE:20591224", "RRULE:FREQ=YEARLY", "END:VEVENT", "END:VCALENDAR", ""),
    )
)


def test_days_of_a_file_are_heeded_and_pruned(run: Run, tenant: str, site: Site) -> None:
    http, name = Http(site.workers[0]), f"{tenant}-days"
    Path("own.ics").write_text(ICS, "utf-8")
    Path("set.yaml").write_text(DAYS.format(name=name), "utf-8")
    assert run("apply", "set.yaml")[0] == 0
    # The 24th is off by the file.
    assert http("GET", place(name, "daily"))[1]["due_at"] == "2060-12-25T09:00:00.000Z"
    calendar = http("GET", f"/v1/tenants/{name}/calendars/own")[1]
    assert (calendar["days"], calendar["source"]) == (
        ["2059-12-24", "2060-12-24"],
        "own.ics, 2059-2060",
    )
    assert run("diff", "set.yaml")[0] == 0
    Path("none.yaml").write_text(f"set: {name}\nkept_in: {name}\n", "utf-8")
    code, told, _ = run("apply", "--prune", "--yes", "none.yaml")
    assert (code, [each["object"] for each in told]) == (0, ["schedule", "calendar"])
    assert http("GET", f"/v1/tenants/{name}/calendars/own")[0] == 404
    assert run("diff", "--prune", "none.yaml")[0] == 0
