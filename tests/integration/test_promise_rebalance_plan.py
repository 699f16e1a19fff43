"""`belfry rebalance`, as docs/rebalance.md has it: what it says of a running belfry, and does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belfry.client.kafka import Cluster
from belfry.client.refused_rows import refused_rows, send_again
from belfry.engine.effects import Rerouted
from belfry.engine.giving import move_record
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes, partition_of
from belfry.wire.moves import END, MOVE, ROWS, MoveRecord
from belfry.wire.origins import believed_origin
from tests.acceptance.harness.commands import belfry
from tests.acceptance.harness.reading import read_all
from tests.acceptance.harness.site import Site, now_ms, wait_for
from tests.acceptance.harness.worker import Worker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

READY_S = 60.0
# Of four partitions, shop and cars live in 0, music lives in 1.
WAITING = {"shop": 8, "cars": 6, "music": 1}


def rebalance(
    worker: Worker, *options: str, what: str = "plan"
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **worker.settings}
    env["BELFRY_HTTP_URL"] = f"http://127.0.0.1:{worker.http_port}"
    command = [*belfry(), "rebalance", what, *options]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_the_plan_tells_what_lies_where_and_changes_nothing(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("even"), tmp_path) as site:
        worker = site.worker().start().wait_ready(READY_S)
        for tenant, waiting in WAITING.items():
            for number in range(waiting):
                site.ask(tenant, f"s{number}", at=now_ms() + 3_600_000)

        def told() -> dict[str, Any] | None:
            ran = rebalance(worker, "--over", "0", "--output", "json")
            assert ran.returncode == 0, ran.stderr
            found: dict[str, Any] = json.loads(ran.stdout)
            waits = sum(each["pending"] for each in found["partitions"])
            return found if waits == sum(WAITING.values()) else None

        found = wait_for("all that waits", told, 30.0)
        assert found is not None
        assert [each["pending"] for each in found["partitions"]] == [14, 1, 0, 0]
        (cars, *others) = found["moves"]
        assert (cars["tenants"], cars["from"], cars["pending"]) == (["cars"], 0, 6)
        assert all(each["from"] != each["to"] for each in (cars, *others))
        assert partition_of(b"cars", 4) == 0
        people = rebalance(worker, "--over", "1", "--partitions", "8")
        assert people.returncode == 0, people.stderr
        assert "Counting fires for 1 s" in people.stderr
        assert "cars" in people.stdout
        assert told() == found


def test_groups_are_moved_and_come_home(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    given = {"KEY_GROUP_MOVES": "true", "HTTP_WORKER_SECRET": "what workers here share"}
    with Site(kafka, unique("moved"), tmp_path, **given) as site:
        worker = site.worker().start().wait_ready(READY_S)
        for tenant, waiting in WAITING.items():
            for number in range(waiting):
                site.ask(tenant, f"s{number}", at=now_ms() + 3_600_000)

        def ran(what: str, *options: str) -> Any:
            done = rebalance(worker, *options, "--output", "json", what=what)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        def carried() -> list[int]:
            return [each["pending"] for each in ran("plan", "--over", "0")["partitions"]]

        wait_for("all that waits", lambda: carried() == [14, 1, 0, 0], 30.0)
        dry = ran("apply", "--over", "0", "--dry-run")
        assert dry["moves"][0]["from"] == 0
        assert carried() == [14, 1, 0, 0]
        done = ran("apply", "--over", "0", "--at-once", "2", "--yes")
        assert done["moved"] == len(done["moves"]) == len(dry["moves"])
        stands = ran("status")
        assert stands["allowed"]
        assert {each["state"] for each in stands["key_groups"]} == {"rests"}
        assert sorted(carried(), reverse=True)[:2] == [8, 6]
        # Whoever asks for a schedule of cars is told by the partition where its group lies.
        status, body = worker.get("/v1/tenants/cars/schedules/s3")
        assert (status, json.loads(body)["schedule_id"]) == (200, "s3")
        moved = ran("move", "cars", "--to", "3", "--yes")
        assert moved["moved"] == 1
        site.ask("cars", "s9", at=now_ms() + 1_000)
        site.wait_fired("cars", 1)
        again = ran("move", "cars", "shop", "--to", "0", "--yes")
        assert again["moved"] == 1
        assert carried()[0] == 14
        off = rebalance(worker, "1912", what="call-off")
        assert off.returncode == 1
        assert "rests in partition 0" in off.stderr
        none = rebalance(worker, "1912", "--yes", what="resend")
        assert none.returncode == 1
        assert "not on its way" in none.stderr


def test_where_workers_allow_no_moves_none_begins(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("unmoved"), tmp_path) as site:
        worker = site.worker().start().wait_ready(READY_S)
        refused = rebalance(worker, "cars", "--to", "3", "--yes", what="move")
        assert refused.returncode == 4
        assert "BELFRY_KEY_GROUP_MOVES=true" in refused.stderr
        names = site.worker(KEY_GROUP_MOVES="true").start()
        assert names.wait_end() != 0
        assert "BELFRY_HTTP_WORKER_SECRET is not set" in names.said()


def test_refused_rows_are_found_and_written_once_more_as_they_were_signed(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    with Site(kafka, unique("resent"), tmp_path) as site:
        topic, cluster = site.topic, Cluster(kafka)
        site.create_topics([topic("rejected"), topic("schedules")], {})
        place = SourcePartition(topic("schedules"), 0, Homes(4), (b"what workers share",))

        def refused(said: MoveRecord, code: str = "bad_move") -> Rerouted:
            sent = move_record(place, said.target, said, now_ms())
            added = [("belfry-error-code", code.encode()), ("belfry-error-topic", b"x")]
            site.producer.produce(
                topic("rejected"), sent.value, sent.key, 1, headers=[*sent.headers, *added]
            )
            return sent

        wanted = [MoveRecord(END, 8, 2, 40, 2), MoveRecord(ROWS, 8, 2, 40, 1, b"\0")]
        kept = [refused(each) for each in (*wanted, *wanted)]
        for other in (
            MoveRecord(ROWS, 8, 2, 39, 1, b"\0"),
            MoveRecord(ROWS, 12, 2, 40, 1, b"\0"),
            MoveRecord(MOVE, 8, 2, 40),
        ):
            refused(other)
        site.producer.flush()
        found = refused_rows(cluster, topic("rejected"), 8, 40)
        assert [(each.number, each.kind, each.target) for each in found] == [
            (1, ROWS, 2),
            (2, END, 2),
        ]
        send_again(cluster, topic("schedules"), found)
        sent = read_all(kafka, topic("schedules"))
        assert [each.partition for each in sent] == [2, 2]
        assert [each.value for each in sent] == [each.value for each in reversed(kept[:2])]
        assert {each.key for each in sent} == {b"key group 8"}
        for each in sent:
            record = (each.offset, each.timestamp_ms, each.key, each.value, each.headers)
            assert believed_origin(place.origin_keys, record, topic("schedules"), 2).rerouted
        assert refused_rows(cluster, topic("rejected"), 8, 41) == []
