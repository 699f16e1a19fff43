"""What is exported from one belfry goes on in another: the same next fires."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from belfry.cli.entry import main
from belfry.client.portable import request_fields
from belfry.schedules.rule import RECURRING, rule_of
from belfry.schedules.triggers import trigger_by
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

DAY = 86_400_000
FIRES = 1_000


def asked(now: int) -> dict[str, dict[str, Any]]:
    """A schedule of each kind, by its id."""
    return {
        "at": {"at": now + DAY, "headers": [{"name": "h", "value": None}], "key": b"\xff"},
        "after": {"kind": "AFTER", "delay_ms": DAY, "misfire": "SKIP", "max_lateness_ms": 5},
        "soon": {"kind": "AFTER", "delay_ms": DAY},
        "every": {"kind": "EVERY", "interval_ms": DAY + 1, "max_fires": 700, "group": "g"},
        "cron": {"kind": "CRON", "cron": "30 2 * * *", "timezone": "Europe/Paris",
                 "jitter_ms": 60_000},
        "begun": {"kind": "EVERY", "interval_ms": DAY, "start_at": now + 2_000,
                  "end_at": now + 400 * DAY},
        "paused": {"kind": "CRON", "cron": "@hourly"},
    }  # fmt: skip


def exported(site: Site, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    """The schedules of a site, as `belfry schedule export` shows them; no worker is asked."""
    assert command(site, "export") == 0
    lines = map(orjson.loads, capsys.readouterr().out.splitlines())
    return {line["schedule_id"]: line for line in lines}


def command(site: Site, *arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELFRY_BOOTSTRAP_SERVERS", site.bootstrap)
        patch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.topic(""))
        return main(["schedule", *arguments])


def next_fires(line: dict[str, Any]) -> list[tuple[int, int]]:
    """Number and nominal instant of what comes, as far as a thousand fires."""
    fields: Any = request_fields(line)
    found, at_ms = [], fields["standing"]["next_at"]
    first = fields["standing"]["occurrence"]
    last = min(first + FIRES, fields["max_fires"] or first + FIRES)
    trigger = trigger_by(rule_of(fields))
    for number in range(first, last):
        if at_ms is None:
            break
        found.append((number, at_ms))
        at_ms = trigger.after_ms(at_ms) if fields["kind"] in RECURRING else None
    return found


def test_an_import_goes_on_where_the_export_stood(
    kafka: str, tmp_path: Path, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "schedules.jsonl"
    with Site(kafka, unique("from"), tmp_path / "from") as site:
        worker = site.worker().start().wait_ready()
        for name, fields in asked(now_ms()).items():
            site.send(request("t", name, payload=name.encode(), **fields), key=b"t")
        site.ask("t", "paused", action="PAUSE", request_id="pause")
        site.wait_fired("t", 1)
        assert site.outcome("pause")["outcome"] == "PAUSED"
        assert worker.stop() == 0
        before = exported(site, capsys)
    assert before.keys() == asked(0).keys()
    assert before["begun"]["standing"]["occurrence"] == 1
    assert before["paused"]["standing"]["paused"] is True
    file.write_bytes(b"\n".join(map(orjson.dumps, before.values())))
    with Site(kafka, unique("to"), tmp_path / "to") as site:
        worker = site.worker().start().wait_ready()
        assert command(site, "import", str(file)) == 0
        capsys.readouterr()
        again = command(site, "import", str(file), "--output", "jsonl")
        outcomes = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
        lives = {(each["result"], each["outcome"], each["code"]) for each in outcomes}
        assert lives == {("left", "CONFLICT", "same_definition")}
        assert again == 0
        assert worker.stop() == 0
        after = exported(site, capsys)
    assert after == before
    for name, line in before.items():
        fires = next_fires(line)
        assert fires == next_fires(after[name])
        assert len(fires) == {"every": 700, "begun": 399, "cron": FIRES, "paused": FIRES}.get(
            name, 1
        )
