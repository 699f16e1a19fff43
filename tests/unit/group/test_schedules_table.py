"""Faust's table of schedules shows what a worker holds, and changes nothing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from faust.types import TP

from belfry.balance.assignment_map import MemberMetadata
from belfry.group import schedules_store, schedules_table
from belfry.group.group import Group
from belfry.group.membership import MembershipApp, membership_app
from belfry.group.schedules_store import HeldPartitions, ReadOnlyTable
from belfry.placement.partition_count import PartitionCount
from belfry.settings import Settings
from tests.unit.engine.driver import T0, Driver

CHANGELOG = Settings().topic("changelog")


class Worker:
    """Stands for a worker of one partition that holds what a driver's engine has kept."""

    def __init__(self, driver: Driver) -> None:
        self.held, self.warm = [2], [3]
        self.view = HeldPartitions(
            lambda: self.held,
            lambda: self.warm,
            lambda tenant, _: 2 if tenant != "elsewhere" else 1,
            lambda _, look: look(driver.rows),
            lambda: T0,
        )


def worker() -> Worker:
    driver = Driver()
    for number in range(3):
        driver.ask(tenant="acme", schedule_id=f"order/{number}", at=T0 + 10 + number)
    driver.ask(tenant="other", schedule_id="x", request_id="r", at=T0 + 100)
    driver.step(T0)
    assert driver.run(T0 + 10) == ["order/0"]
    return Worker(driver)


def table_of(held: Worker) -> tuple[MembershipApp, Any]:
    app = membership_app(Settings(), Group(MemberMetadata("one")), PartitionCount(4))
    app.schedules.connect(held.view)
    return app, app.tables["belfry.schedules"]


def test_it_has_what_waits_and_nothing_that_is_over() -> None:
    _, table = table_of(worker())
    assert set(table) == {("acme", "order/1"), ("acme", "order/2"), ("other", "x")}
    assert list(table.view.of_tenant("acme")) == [("acme", "order/1"), ("acme", "order/2")]
    assert len(table) == 3
    assert table["acme", "order/1"].pending.due_ms == T0 + 11
    assert ("acme", "order/0") not in table
    with pytest.raises(KeyError):
        table["elsewhere", "order/1"]


def test_a_look_takes_some_names_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules_store, "CHUNK", 1)
    _, table = table_of(worker())
    assert len(set(table)) == 3


def test_it_knows_its_changelog_and_how_far_its_rows_go() -> None:
    app, table = table_of(worker())
    assert app.tables.changelog_topics == {CHANGELOG}
    assert table.persisted_offset(TP(CHANGELOG, 2)) > 0
    assert table.persisted_offset(TP(CHANGELOG, 1)) is None
    needs = [asyncio.run(table.need_active_standby_for(TP(CHANGELOG, p))) for p in (1, 2, 3)]
    assert needs == [True, False, False]


def test_nothing_is_changed_by_it() -> None:
    _, table = table_of(worker())
    with pytest.raises(ReadOnlyTable, match="by a request"):
        table["acme", "order/1"] = table["acme", "order/2"]
    with pytest.raises(ReadOnlyTable):
        del table["acme", "order/1"]
    with pytest.raises(ReadOnlyTable):
        table.clear()
    assert len(table) == 3


def test_it_is_told_of_take_overs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules_table, "LOOK_S", 0.02)
    held, told = worker(), []

    async def play() -> None:
        app, table = table_of(held)

        @table.on_recover  # type: ignore[untyped-decorator]
        async def recovered() -> None:
            told.append((list(held.held), list(held.warm), app.tables.standbys_ready))

        await app.tables.start()
        await asyncio.sleep(0.2)
        held.held, held.warm = [2, 3], []
        await asyncio.sleep(0.2)
        await app.tables.stop()

    asyncio.run(play())
    assert told == [([2], [3], True), ([2, 3], [], False)]


def test_the_group_shares_no_changelog() -> None:
    async def play() -> None:
        app, _ = table_of(worker())
        await app.tables.start()
        assert CHANGELOG not in await app.topics._update_indices()  # type: ignore[attr-defined]
        await app.tables.stop()

    asyncio.run(play())


def test_the_faust_command_lists_the_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faust", "-A", "belfry.group.faust_app", "tables"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
        check=True,
    )
    assert "belfry.schedules" in done.stdout
