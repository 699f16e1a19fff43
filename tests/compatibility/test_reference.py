"""The page about schemas says what the schemas say."""

from __future__ import annotations

import re

from belfry.registry.subjects import CARRIED
from belfry.wire import catalogue
from belfry.wire.framing import prefix
from tests.compatibility import reference

PAGE = reference.PAGE.read_text("utf-8")


def test_the_page_is_fresh() -> None:
    anew = "run python -m tests.compatibility.reference, with app on the path"
    assert reference.fresh(PAGE) == PAGE, anew


def test_the_worked_example_is_a_record() -> None:
    block = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    lines = [re.match(r"(?:[0-9a-f]{2} ?)+(?= |$)", line) for line in block[1].splitlines()]
    shown = b"".join(bytes.fromhex(line[0]) for line in lines if line is not None)
    record = {"tenant": "demo", "schedule_id": "a", "at": 1_798_000_000_000}
    assert shown == prefix(7) + catalogue.encode("ScheduleRequest", record)
    assert f"these {len(shown)} bytes" in PAGE


def test_every_topic_has_its_subject() -> None:
    for topic, name in CARRIED.items():
        line = next(each for each in PAGE.splitlines() if each.startswith(f"| `belfry.{topic}`"))
        assert f"`belfry.{topic}-value`" in line
        assert f"[`{name}`]" in line
