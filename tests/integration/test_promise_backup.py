"""What is backed up from four partitions goes on in eight: the same fires, none lost or doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from belfry.cli.entry import main
from tests.acceptance.harness.failover import owned
from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms, wait_for

pytestmark = pytest.mark.slow

DAY = 86_400_000
SOON = 24
TENANTS = tuple(f"t{number}" for number in range(8))


def command(site: Site, *arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELFRY_BOOTSTRAP_SERVERS", site.bootstrap)
        patch.setenv("BELFRY_CLUSTER__TOPIC_PREFIX", site.topic(""))
        return main(list(arguments))


def parts(file: Path) -> list[dict[str, Any]]:
    """What a backup holds between its first line and its last."""
    return [orjson.loads(line) for line in file.read_bytes().splitlines()[1:-1]]


def ask(site: Site) -> None:
    """Events due in some seconds, and schedules of other kinds that stay."""
    at_ms = now_ms() + 8_000
    for number in range(SOON):
        tenant = TENANTS[number % len(TENANTS)]
        asked = {"at": at_ms + number, "payload": b"%d" % number, "request_id": f"soon/{number}"}
        event = request(tenant, f"soon/{number}", **asked)
        site.producer.produce(site.topic("schedules"), event, key=tenant.encode())
    for tenant in TENANTS:
        rules: dict[str, dict[str, Any]] = {
            "cron": {"kind": "CRON", "cron": "30 2 * * *", "timezone": "Europe/Paris"},
            "every": {"kind": "EVERY", "interval_ms": DAY, "max_fires": 9, "group": "g"},
            "at": {"at": at_ms + DAY, "headers": [{"name": "h", "value": b"\xff"}]},
        }
        if tenant == TENANTS[0]:
            del rules["every"]["group"]
        for name, fields in rules.items():
            value = request(
                tenant, name, payload=b"\x00\xff", request_id=f"{tenant}/{name}", **fields
            )
            site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
    site.producer.flush()


def test_the_way_to_more_partitions(
    kafka: str, tmp_path: Path, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    file, again = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    with Site(kafka, unique("four"), tmp_path / "four") as four:
        worker = four.worker().start().wait_ready()
        assert command(four, "tenant", "set", TENANTS[0], "spread=4", "lifecycle=ALL") == 0
        ask(four)
        asked = SOON + 3 * len(TENANTS)
        wait_for("all verdicts", lambda: len(four.outcomes().keys() - {""}) == asked, 40)
        assert worker.stop() == 0
        assert command(four, "backup", str(file)) == 0
        before = parts(file)
        fired_before = four.fired(*TENANTS)
    assert f"{len(before) - 1} schedules, 1 policies" in capsys.readouterr().out
    with Site(kafka, unique("eight"), tmp_path / "eight", CLUSTER__PARTITIONS="8") as eight:
        worker = eight.worker().start().wait_ready()
        assert command(eight, "restore", str(file)) == 0
        assert owned(worker) == set(range(8))
        fired = [*fired_before, *wait_fired(eight, SOON - len(fired_before))]
        assert sorted(record.value or b"" for record in fired) == sorted(
            b"%d" % number for number in range(SOON)
        )
        due = {line["schedule_id"]: line["standing"]["next_at"] for line in before[1:]}
        for record in fired[len(fired_before) :]:
            name = f"soon/{(record.value or b'').decode()}"
            assert record.header("belfry-scheduled-at") == due[name].encode()
        # What exists is left as it is, and said to be so.
        assert command(eight, "tenant", "set", TENANTS[0], "priority=3") == 0
        assert command(eight, "restore", str(file)) == 4
        assert worker.stop() == 0
        assert command(eight, "backup", str(again)) == 0
    stays = [line for line in before if not line.get("schedule_id", "").startswith("soon/")]
    after = parts(again)
    assert after[0]["policy"] == {**before[0]["policy"], "priority": 3}
    assert sorted(after[1:], key=orjson.dumps) == sorted(stays[1:], key=orjson.dumps)


def test_a_restore_into_the_living_one_repeats_nothing(
    kafka: str, tmp_path: Path, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "living.jsonl"
    with Site(kafka, unique("living"), tmp_path) as site:
        worker = site.worker().start().wait_ready()
        at_ms = now_ms() + 7_000
        asked: dict[str, dict[str, Any]] = {
            "fires": {"at": at_ms},
            "lives": {"kind": "EVERY", "interval_ms": 1_000, "start_at": at_ms},
            **{name: {"at": at_ms + DAY} for name in ("moves", "goes", "stays")},
        }
        for name, fields in asked.items():
            site.ask("t", name, request_id=name, **fields)
        wait_for("verdicts", lambda: asked.keys() <= site.outcomes().keys(), 20)
        assert command(site, "backup", str(file)) == 0
        wait_for("fires", lambda: names(site).get("fires") and names(site)["lives"] > 1, 20)
        assert command(site, "schedule", "cancel", "t", "goes") == 0
        assert command(site, "schedule", "create", "t", "moves", "--in", "2d") == 0
        capsys.readouterr()
        assert command(site, "restore", str(file), "--output", "jsonl") == 4
        said = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {each["schedule_id"]: (each["result"], each["code"]) for each in said} == {
            "fires": ("left", "fired"),
            "lives": ("left", "same_definition"),
            "stays": ("left", "same_definition"),
            "goes": ("left", "cancelled"),
            "moves": ("conflict", "exists"),
        }
        assert command(site, "restore", str(file), "--cancelled") == 4
        told = capsys.readouterr().out
        assert "made      t/goes: version 1, due" in told
        assert "(in 23h59m" in told
        # What was cancelled after a restore is not said to be made while it is not.
        assert command(site, "schedule", "cancel", "t", "goes") == 0
        assert command(site, "restore", str(file), "--cancelled") == 4
        assert "made      t/goes" in capsys.readouterr().out
        beyond = names(site)["lives"] + 2
        wait_for("the living one to go on", lambda: names(site)["lives"] >= beyond, 20)
        numbers = [r.header("belfry-occurrence") for r in site.fired("t")]
        assert names(site)["fires"] == 1
        assert worker.stop() == 0
    lives = sorted(int(n or b"") for n in numbers)[1:]
    assert lives == list(range(len(lives)))


def names(site: Site) -> Counter[str]:
    """How often each schedule of tenant `t` has fired."""
    ids = [record.header("belfry-schedule-id") or b"" for record in site.fired("t")]
    return Counter(each.decode() for each in ids)


def wait_fired(site: Site, count: int) -> list[Any]:
    """What fired, once it is so many."""
    return wait_for(
        f"{count} fired", lambda: f if len(f := site.fired(*TENANTS)) >= count else [], 40
    )
