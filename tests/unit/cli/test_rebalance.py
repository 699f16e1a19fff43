"""`belfry rebalance plan`: what it measures of two looks, and what it prints of that."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from belfry.cli import rebalance_loads
from belfry.cli.entry import main
from belfry.cli.rebalance_loads import MeasuredTenants, measured
from belfry.cli.rebalance_shown import Plan, lines, planned_of, shown
from belfry.cli.remote import WorkerRefusal
from belfry.client.errors import MissingTopic
from belfry.placement.loads import LoadVector, Measure, TenantLoad
from belfry.settings.cluster import ClusterSettings
from belfry.tenants.policy import TenantPolicy
from belfry.wire.metering import Usage

PAGE = Path(__file__).parents[3] / "docs" / "rebalance.md"
HOUR_MS = 3_600_000
# Of four partitions: shop and cars live in 0, music in 1, books and toys in 2, food in 3.
EXAMPLE = [
    TenantLoad("shop", LoadVector(58_000, 150)),
    TenantLoad("cars", LoadVector(52_500, 134)),
    TenantLoad("music", LoadVector(9_600, 24)),
    TenantLoad("books", LoadVector(6_000, 15)),
    TenantLoad("toys", LoadVector(4_100, 9)),
    TenantLoad("food", LoadVector(9_800, 25)),
]


def made_of(*tenants: TenantLoad, metered: bool = False, by: Measure = Measure.ALL) -> Plan:
    return planned_of(MeasuredTenants(list(tenants), 4, [], metered), 4, 0.1, by)


def test_the_page_shows_what_is_printed() -> None:
    printed = "\n".join(lines(made_of(*EXAMPLE)))
    assert f"$ belfry rebalance plan\n{printed}\n```" in PAGE.read_text("utf-8"), printed


def test_programs_get_all_of_it() -> None:
    told = shown(made_of(*EXAMPLE))
    assert orjson.loads(orjson.dumps(told)) == told
    assert told["groups"] == 4096
    first = told["partitions"][0]
    assert first["partition"] == 0
    assert first["held_bytes"] is None
    assert sum(each["share"] for each in told["partitions"]) == pytest.approx(1, abs=1e-5)
    assert sum(each["pending"] for each in told["partitions"]) == 140_000
    heaviest = max(told["moves"], key=lambda each: each["share"])
    assert heaviest["tenants"] == ["cars"]
    assert (heaviest["group"], heaviest["from"], heaviest["pending"]) == (1912, 0, 52_500)


def test_spread_tenants_stay_and_are_named() -> None:
    made = made_of(TenantLoad("bulky", LoadVector(100), (1, 8)), TenantLoad("shop", LoadVector(1)))
    assert sum(each.pending for each in made.now.values()) == pytest.approx(101)
    assert shown(made)["spread"] == ["bulky"]
    assert lines(made)[-1] == "spread, so where they are they stay: bulky"


def test_bytes_count_where_they_are_known() -> None:
    tenants = TenantLoad("shop", LoadVector(1, 0, 500)), TenantLoad("toys", LoadVector(1, 0, 1500))
    told = shown(made_of(*tenants, metered=True, by=Measure.BYTES))["partitions"]
    assert sorted(each["share"] for each in told) == [0, 0, 0.25, 0.75]
    assert sum(each["held_bytes"] for each in told) == 2000


class Session:
    """Four partitions, and a policy of one tenant."""

    settings: Any = SimpleNamespace(
        topic=lambda name: f"belfry.{name}", cluster=ClusterSettings(partitions=4)
    )

    def admin(self) -> tuple[Any, Any]:
        partitions = SimpleNamespace(partitions=range(4))
        found = SimpleNamespace(topics={"belfry.changelog": partitions})
        return self.cluster(), SimpleNamespace(list_topics=lambda **_: found)

    def cluster(self) -> Any:
        return type("", (), {"partitions": staticmethod(lambda _client, _topic: [0, 1, 2, 3])})


class Remote:
    """A worker whose tenants are on two pages, and have fired more at each look."""

    # As many as the topics say; a worker of a release before tells none.
    homes: int | None = 4
    # Partitions without an owner, at each look at key groups.
    missing: tuple[list[int], ...] = ([], [])

    def __init__(self, *looks: dict[str, tuple[int, int]]) -> None:
        self._looks, self._pages = list(looks), list[dict[str, Any]]()
        self._missing = list(self.missing)

    def get(
        self, path: str, *, limit: int | None = None, cursor: str | None = None
    ) -> dict[str, Any]:
        if path == "/v1/key-groups":
            return self.groups()
        assert (path, limit) == ("/v1/tenants", 1000)
        if cursor is None:
            found = self._looks.pop(0)
            self._pages = [
                {
                    "figures": [{"tenant": name, "pending": waits, "fired": fired}],
                    "silent": ["w2"],
                    "cursor": name,
                }
                for name, (waits, fired) in found.items()
            ]
            self._pages[-1]["cursor"] = None
        return self._pages.pop(0)

    def groups(self) -> dict[str, Any]:
        """Group 1912 has moved to partition 1, and 2461 goes to partition 2."""
        gone = {"group": 1912, "lies": 1, "goes": None}, {"group": 2461, "lies": 1, "goes": 2}
        missing = self._missing.pop(0)
        return {"key_groups": list(gone), "homes": self.homes, "missing": missing, "silent": []}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Ten seconds between two looks, and nothing metered."""
    now = [100.0]

    def sleep(pause: float) -> None:
        now[0] += pause

    def nothing(*_: object) -> list[Usage]:
        raise MissingTopic("belfry.metering")

    policies = {"bulky": TenantPolicy("bulky", spread=4, former_spreads=(1,))}
    monkeypatch.setattr(rebalance_loads, "monotonic", lambda: now[0])
    monkeypatch.setattr(rebalance_loads, "sleep", sleep)
    store = type("", (), {"all": lambda _self: policies})
    monkeypatch.setattr(rebalance_loads, "kafka_policies", lambda _session: store())
    monkeypatch.setattr("belfry.client.usage.read_usage", nothing)
    return monkeypatch


def look(
    world: pytest.MonkeyPatch, over_s: float, *looks: dict[str, tuple[int, int]]
) -> MeasuredTenants:
    remote = Remote(*looks)
    world.setattr(rebalance_loads, "Remote", lambda _session: remote)
    return measured(Session(), over_s)  # type: ignore[arg-type]


def test_fires_a_second_come_from_two_looks(world: pytest.MonkeyPatch) -> None:
    before = {"bulky": (5, 100), "shop": (7, 50)}
    # The owner of shop began anew. Toys was not seen before, so nobody knows since when it counts.
    after = {"bulky": (6, 130), "shop": (8, 3), "toys": (1, 20)}
    found = look(world, 10.0, before, after)
    assert found.tenants == [
        TenantLoad("bulky", LoadVector(6, 3.0), (1, 4)),
        TenantLoad("shop", LoadVector(8, 0.0)),
        TenantLoad("toys", LoadVector(1, 0.0)),
    ]
    assert (found.partitions, found.silent, found.metered) == (4, ["w2"], False)


def test_partitions_of_which_nobody_tells_are_known(world: pytest.MonkeyPatch) -> None:
    """Their tenants are in no look, and groups of theirs that lie elsewhere seem to be at home."""
    world.setattr(Remote, "missing", ([1, 0], [3]))
    found = look(world, 0, {"shop": (7, 50)})
    assert found.missing == (0, 1, 3)
    assert shown(planned_of(found, 4, 0.1, Measure.ALL))["missing"] == [0, 1, 3]


@pytest.mark.parametrize(
    ("silent", "missing", "says"),
    [([], (0, 1), "Nobody tells of partitions 0, 1: "), (["w2"], (), "w2 does not answer: ")],
)
def test_a_plan_by_half_of_the_loads_is_shown_and_not_carried_out(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    silent: list[str],
    missing: tuple[int, ...],
    says: str,
) -> None:
    half = MeasuredTenants(EXAMPLE, 4, silent, False, missing=missing)
    monkeypatch.setattr(rebalance_loads, "measured", lambda _session, _over_s: half)
    monkeypatch.setattr("belfry.cli.rebalance.Remote", None)
    assert main(["rebalance", "plan", "--over", "0"]) == 0
    assert says in capsys.readouterr().err
    assert main(["rebalance", "apply", "--over", "0", "--dry-run"]) == 0
    assert says in capsys.readouterr().err
    assert main(["rebalance", "apply", "--over", "0", "--yes"]) == 1
    told = capsys.readouterr().err
    assert says in told
    assert "Not all is known: " in told
    assert "Nothing was asked for." in told


def test_one_look_counts_no_fires(world: pytest.MonkeyPatch) -> None:
    found = look(world, 0, {"shop": (7, 50), "belfry-deliveries": (3, 2)})
    retries, shop = sorted(found.tenants)
    assert shop == TenantLoad("shop", LoadVector(7, 0.0))
    assert retries.spreads == (64,)


@pytest.mark.parametrize(("told", "homes"), [(2, 2), (4, 4), (None, 4)])
def test_groups_are_counted_by_the_homes_that_workers_tell(
    world: pytest.MonkeyPatch, told: int | None, homes: int
) -> None:
    """The topic that tells it may be hidden from who asks."""
    world.setattr(Remote, "homes", told)
    found = look(world, 0, {"shop": (7, 50)})
    assert (found.homes, found.partitions) == (homes, 4)
    assert found.lies == {1912: 1, 2461: 2}


def test_bytes_are_the_mean_of_the_hours_that_were_metered(world: pytest.MonkeyPatch) -> None:
    hours = [
        Usage(
            tenant="shop",
            from_ms=number * HOUR_MS,
            until_ms=(number + 1) * HOUR_MS,
            held_byte_ms=held * HOUR_MS,
        )
        for number, held in enumerate((100, 300))
    ]
    world.setattr("belfry.client.usage.read_usage", lambda *_: hours)
    found = look(world, 0, {"shop": (7, 50)})
    assert found.tenants == [TenantLoad("shop", LoadVector(7, 0.0, 200.0))]
    assert found.metered


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--partitions", "0", "is not allowed: 1 to 1024"),
        ("--partitions", "1025", "is not allowed: 1 to 1024"),
        ("--within", "0", "is not allowed: 0.01 to 10"),
        ("--by", "load", "'all', 'pending', 'fires', 'bytes'"),
        ("--over", "soon", "soon"),
    ],
)
def test_what_cannot_be_is_told(
    option: str, value: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rebalance", "plan", option, value]) == 2
    assert says in capsys.readouterr().err


def test_it_plans_from_where_groups_lie_by_now(world: pytest.MonkeyPatch) -> None:
    found = look(world, 0, {"shop": (7, 50)})
    assert found.lies == {1912: 1, 2461: 2}
    made = planned_of(MeasuredTenants(EXAMPLE, 4, [], False, found.lies), 4, 0.1, Measure.ALL)
    assert [round(now, 3) for now, _ in made.carried] == [0.417, 0.375, 0.138, 0.07]
    assert made.moves == []
    assert made.now[1] == LoadVector(52_500, 134)


def test_what_lies_in_a_partition_that_is_to_be_empty_leaves_it_though_it_carries_nothing() -> None:
    made = planned_of(MeasuredTenants(EXAMPLE[:1], 4, [], False, {8: 3}), 3, 10.0, Measure.ALL)
    assert [(each.group, each.source, each.weight) for each in made.moves] == [(8, 3, 0.0)]
    assert shown(made)["moves"][0]["tenants"] == []
    assert lines(made)


@pytest.mark.parametrize(("status", "told"), [(404, True), (403, True), (500, False)])
def test_a_worker_that_cannot_tell_has_moved_none(
    world: pytest.MonkeyPatch, status: int, told: bool
) -> None:
    def refuse(_self: Remote) -> dict[str, Any]:
        raise WorkerRefusal("no", status, "no")

    world.setattr(Remote, "groups", refuse)
    if told:
        assert look(world, 0, {"shop": (7, 50)}).lies == {}
    else:
        with pytest.raises(WorkerRefusal):
            look(world, 0, {"shop": (7, 50)})
