"""Local state is only a copy: damaged, old or mixed up, every event still fires once."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.harness.requests import request
from tests.acceptance.harness.site import Site, now_ms

pytestmark = pytest.mark.slow

EVENTS = 600
TENANTS = ("a", "b", "c", "d", "e")


def flip_each_table(data: Path, chance: random.Random) -> None:
    """One bit of each table, somewhere in its rows."""
    for table in data.glob("partition-*/*.sst"):
        content = bytearray(table.read_bytes())
        content[chance.randrange(len(content) // 2)] ^= 1 << chance.randrange(8)
        table.write_bytes(content)


def cut_or_drop_each_table(data: Path, chance: random.Random) -> None:
    """Each table ends early, and one is not there."""
    tables = sorted(data.glob("partition-*/*.sst"))
    for table in tables:
        content = table.read_bytes()
        table.write_bytes(content[: chance.randrange(len(content))])
    chance.choice(tables).unlink()


def mix_up_partitions(data: Path, _: random.Random) -> None:
    """The state of one partition in the place of another."""
    (data / "partition-0").rename(data / "partition-x")
    (data / "partition-1").rename(data / "partition-0")
    (data / "partition-x").rename(data / "partition-1")


HURTS = (flip_each_table, cut_or_drop_each_table, mix_up_partitions)


@pytest.mark.timeout(240)
def test_every_event_fires_once_whatever_happens_to_the_state(
    kafka: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    chance = random.Random(9)
    with Site(kafka, unique("hurt"), tmp_path) as site:
        site.fired_topics(TENANTS)
        worker = site.worker().start().wait_ready()
        old = tmp_path / "old"
        sent: set[bytes] = set()
        for turn, hurt in enumerate((*HURTS, None)):
            # Due from now until well after the next start, so that some are fired before the
            # damage, some are overdue by it, and some still wait.
            first_ms = now_ms() + 300
            for number in range(EVENTS):
                tenant, name = chance.choice(TENANTS), f"{turn}-{number}"
                value = request(
                    tenant, name, at=first_ms + chance.randrange(9_000), payload=name.encode(),
                    headers=[{"name": "filler", "value": chance.randbytes(200)}],
                )  # fmt: skip
                site.producer.produce(site.topic("schedules"), value, key=tenant.encode())
                sent.add(name.encode())
            site.producer.flush()
            time.sleep(1.0)
            assert worker.stop() == 0
            if turn == 0:
                shutil.copytree(worker.data_dir, old)
            if hurt is not None:
                hurt(worker.data_dir, chance)
            else:
                shutil.rmtree(worker.data_dir)
                shutil.copytree(old, worker.data_dir)
            worker.start().wait_ready()
        deadline_ms = now_ms() + 30_000
        while len(fired := site.fired(*TENANTS)) < len(sent) and now_ms() < deadline_ms:
            time.sleep(0.2)
        assert len(fired) == len(sent)
        assert {record.value for record in fired} == sent
