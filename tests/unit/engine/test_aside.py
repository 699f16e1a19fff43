"""What waits for a schema waits by itself: in its order, and with one outcome whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from unittest.mock import MagicMock

import pytest

from belfry.engine import aside, aside_room
from belfry.engine.aside import Need
from belfry.engine.aside_room import AsideRoom
from belfry.engine.claims import STRANGER, stranger_of
from belfry.engine.partition import PartitionEngine
from belfry.engine.reports import SourcePartition
from belfry.schedules.identity import Homes
from belfry.schedules.rejections import Rejection
from belfry.store.fold import fold
from belfry.store.layout.aside import (
    ASIDE_END,
    ASIDE_PREFIX,
    Waits,
    aside_key,
    decode_aside,
    encode_aside,
)
from belfry.store.net import net_of
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore
from belfry.tenants.effective import EffectivePolicy, Level, Signing
from belfry.tenants.policy import TenantPolicy
from belfry.wire import catalogue, framing
from belfry.wire.claims import signature
from belfry.wire.readings import reading_of
from belfry.wire.record import size_of
from tests.unit.engine.driver import HOUR, T0, Driver, Step, request

SEVEN = 7
OURS = catalogue.schema("ScheduleRequest")
UNAVAILABLE = Rejection("schema_unavailable", "Nobody knows.")
LATE_MS = T0 + 5_000


def two_tenants() -> Driver:
    """Tenants `slow` and `demo`, who sign."""
    driver = Driver(level=Level.ALL)
    driver.tenants.signing = Signing(everybody=True)
    for name in ("slow", "demo"):
        policy = TenantPolicy(name, lifecycle="ALL", signing_secret_ref="env:X")
        driver.tenants.follow(EffectivePolicy(policy, secrets=(name.encode(),)))
    return driver


def send(driver: Driver, tenant: str, schema: int | None = None, **fields: object) -> int:
    """A signed request, in a registry's frame where there is a schema."""
    value = request(tenant=tenant, **{"at": T0 + HOUR, **fields})
    if schema is not None:
        value = framing.prefix(schema) + value[10:]
    key = tenant.encode()
    proof = signature(key, tenant, key, value, None)
    return driver.send(value, key, [("belfry-signature", proof)])


def take(
    driver: Driver,
    refused: Mapping[Need, Rejection] | None = None,
    now_ms: int = T0,
    commit: bool = True,
) -> Step:
    """A step that takes in what was set aside, then the source."""
    refused = refused or {}
    driver.engine.take_aside(now_ms, refused)
    batch = driver.batch()
    effects = driver.engine.accept(batch, now_ms, refused)
    if not effects.empty:
        driver.end(now_ms, commit=commit)
    return Step(effects, len(batch.records))


def told(step: Step) -> list[tuple[str, str, int | None]]:
    return [(e.tenant, str(e.outcome), e.source_offset) for e in step.effects.lifecycle]


def lying(driver: Driver) -> int:
    return len(list(ScheduleStore(driver.rows).between(ASIDE_PREFIX, ASIDE_END)))


def learn(driver: Driver) -> None:
    driver.engine._parts.batches._reader.settle(SEVEN, reading_of(OURS))


def test_others_are_taken_in_and_the_askers_own_wait_behind_it() -> None:
    driver = two_tenants()
    send(driver, "slow", SEVEN, request_id="first")
    send(driver, "demo", request_id="other")
    send(driver, "slow", action="CANCEL", at=None, request_id="second")
    assert told(take(driver)) == [("demo", "ACCEPTED", 1)]
    assert lying(driver) == 2
    send(driver, "slow", request_id="third")
    send(driver, "demo", schedule_id="b", request_id="another")
    assert told(take(driver)) == [("demo", "ACCEPTED", 4)]
    learn(driver)
    send(driver, "slow", schedule_id="fourth", request_id="fourth")
    assert told(take(driver, now_ms=LATE_MS)) == [
        ("slow", "ACCEPTED", 0),
        ("slow", "CANCELLED", 2),
        ("slow", "ACCEPTED", 3),
        ("slow", "ACCEPTED", 5),
    ]
    assert lying(driver) == 0
    assert not driver.engine.aside.any


def test_it_counts_from_its_own_arrival() -> None:
    driver = two_tenants()
    send(driver, "slow", SEVEN, at=None, kind="AFTER", delay_ms=1_000, request_id="x")
    take(driver)
    learn(driver)
    (event,) = take(driver, now_ms=LATE_MS).effects.lifecycle
    assert (event.at, event.due_at) == (LATE_MS, T0 + 1_000)


def test_a_step_that_is_rolled_back_changes_nothing() -> None:
    driver = two_tenants()
    send(driver, "slow", SEVEN, request_id="x")
    take(driver, commit=False)
    assert not driver.engine.aside.any
    assert driver.engine.position == 0
    take(driver)
    learn(driver)
    send(driver, "slow", schedule_id="b", request_id="y")
    took = [("slow", "ACCEPTED", 0), ("slow", "ACCEPTED", 1)]
    assert told(take(driver, commit=False)) == took
    assert len(driver.engine.aside.heads()) == 1
    assert told(take(driver)) == took
    assert lying(driver) == 0


def test_room_is_given_back_by_what_is_taken_in_and_by_a_step_that_is_rolled_back() -> None:
    """Else a tenant would be refused, in time, while nothing of its waits."""
    driver = two_tenants()
    room = driver.engine.aside._room
    send(driver, "slow", SEVEN, request_id="x")
    send(driver, "slow", SEVEN, schedule_id="b", request_id="y")
    size = sum(size_of(each) for each in driver.source)
    take(driver, commit=False)
    assert (room._records[b"slow"], room._bytes[b"slow"]) == (0, 0)
    take(driver)
    assert (room._records[b"slow"], room._bytes[b"slow"]) == (2, size)
    learn(driver)
    take(driver, commit=False)
    assert (room._records[b"slow"], room._bytes[b"slow"]) == (2, size)
    take(driver)
    assert (room._records[b"slow"], room._bytes[b"slow"]) == (0, 0)


@pytest.mark.parametrize("from_changelog", [False, True], ids=["its disk", "the changelog"])
def test_a_new_owner_goes_on_with_it(from_changelog: bool) -> None:
    driver = two_tenants()
    send(driver, "slow", SEVEN, request_id="x")
    take(driver)
    rows = driver.rows
    if from_changelog:
        rows = MemoryMap()
        store = ScheduleStore(rows)
        manifests = fold(store, net_of(driver.changelog))
        store.commit(ScheduleStore(driver.rows).state()._replace(manifest=manifests[-1]))  # type: ignore[union-attr]
    driver.start(rows)
    send(driver, "slow", schedule_id="b", request_id="y")
    assert told(take(driver)) == []
    learn(driver)
    assert told(take(driver)) == [("slow", "ACCEPTED", 0), ("slow", "ACCEPTED", 1)]


def test_what_is_refused_holds_nobody_up() -> None:
    """In its turn, with what waits behind it; later ones at once, for they change nothing."""
    driver = two_tenants()
    send(driver, "slow", SEVEN)
    send(driver, "slow", request_id="behind")
    take(driver)
    send(driver, "slow", 8)
    assert take(driver, {(b"slow", 8): UNAVAILABLE}).codes == ["schema_unavailable"]
    step = take(driver, {(b"slow", SEVEN): UNAVAILABLE})
    assert (step.codes, told(step)) == (["schema_unavailable"], [("slow", "ACCEPTED", 1)])


def test_what_one_lane_is_refused_another_one_waits_for() -> None:
    """Its own lookup may be answered."""
    driver = two_tenants()
    send(driver, "slow", SEVEN)
    send(driver, "demo", SEVEN, request_id="waits")
    assert take(driver, {(b"slow", SEVEN): UNAVAILABLE}).codes == ["schema_unavailable"]
    learn(driver)
    assert told(take(driver)) == [("demo", "ACCEPTED", 1)]


def test_a_forged_one_is_refused_at_once() -> None:
    driver = two_tenants()
    driver.send(framing.prefix(SEVEN) + b"x", b"slow", None)
    assert take(driver).codes == ["unsigned"]
    assert lying(driver) == 0


def unsigned(driver: Driver, key: bytes | None, schema: int | None = None, **fields: object) -> int:
    """A request that nobody has signed."""
    value = request(**{"at": T0 + HOUR, **fields})
    return driver.send(value if schema is None else framing.prefix(schema) + value[10:], key)


def test_strangers_wait_behind_those_who_show_the_same_name() -> None:
    """Nobody has proven it, and so the order holds, and nobody else waits."""
    driver = Driver(level=Level.ALL)
    unsigned(driver, b"demo", SEVEN, request_id="first")
    unsigned(driver, b"other", tenant="other", request_id="other")
    unsigned(driver, None, tenant="third", request_id="third")
    unsigned(driver, b"demo/1", action="CANCEL", at=None, request_id="second")
    assert told(take(driver)) == [("other", "ACCEPTED", 1), ("third", "ACCEPTED", 2)]
    learn(driver)
    assert told(take(driver)) == [("demo", "ACCEPTED", 0), ("demo", "CANCELLED", 3)]


def test_who_shows_the_name_of_one_that_signs_does_not_hold_it_up() -> None:
    driver = two_tenants()
    driver.tenants.signing = Signing()
    unsigned(driver, b"demo", SEVEN)
    send(driver, "demo", request_id="own")
    assert told(take(driver)) == [("demo", "ACCEPTED", 1)]
    assert lying(driver) == 1


def test_strangers_share_lanes_that_do_not_grow_in_number() -> None:
    lanes = {stranger_of((0, 0, b"made-up-%d" % number, b"", None)) for number in range(9_000)}
    assert len(lanes) == 256
    long_name = stranger_of((0, 0, b"x" * 10_000, b"", None))
    assert long_name == stranger_of((0, 0, None, b"", None))


@pytest.mark.parametrize(
    ("lanes", "each", "next_one"), [(1, 2_500, 1_875), (4, 1_428, 1_071), (255, 38, 29)]
)
def test_strangers_leave_some_room_for_the_next(lanes: int, each: int, next_one: int) -> None:
    """In requests, and in bytes alike; the docstring of `aside` has the same figures."""
    for size, records in ((1, each), (1_600, each)):
        room = AsideRoom()
        names = [STRANGER + bytes([number]) for number in range(lanes + 1)]
        held = Counter[bytes]()
        while fits := [name for name in names[:-1] if room.problem(name, size) is None]:
            for name in fits:
                if room.problem(name, size) is None:
                    room.add(name, size)
                    held[name] += 1
        assert all(records <= count <= records + 1 for count in held.values())
        found = 0
        while room.problem(names[-1], size) is None:
            room.add(names[-1], size)
            found += 1
        assert found == pytest.approx(next_one, abs=1)


def test_one_stranger_does_not_take_the_room_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside_room, "MOST_RECORDS", 8)
    driver = Driver()
    for _ in range(3):
        unsigned(driver, b"loud", SEVEN)
    unsigned(driver, b"quiet", SEVEN)
    assert take(driver).codes == ["schema_unavailable"]
    assert [len(name) for name in driver.engine.aside._lanes] == [2, 2]
    assert lying(driver) == 3


def test_strangers_take_no_room_of_a_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside_room, "MOST_RECORDS", 8)
    driver = two_tenants()
    driver.tenants.signing = Signing()
    for number in range(40):
        unsigned(driver, b"%d" % number, SEVEN)
    assert take(driver).codes == ["schema_unavailable"] * 35
    for _ in range(8):
        send(driver, "slow", SEVEN)
    assert take(driver).codes == []


def test_lanes_take_turns_when_they_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of thousands does not come before all of another's."""
    monkeypatch.setattr(aside, "AT_A_TIME", 2)
    driver = two_tenants()
    for number in range(5):
        send(driver, "slow", SEVEN, schedule_id=f"{number}", request_id=f"{number}")
    send(driver, "demo", SEVEN, request_id="d")
    take(driver)
    learn(driver)
    took = [offset for _, _, offset in told(take(driver))]
    assert took == [0, 1, 5, 2, 3, 4]


def test_the_lane_of_nobody_of_earlier_releases_is_split() -> None:
    driver = two_tenants()
    record = (3, T0, b"shown", framing.prefix(SEVEN), None)
    store = MagicMock()
    store.between.return_value = [(aside_key(3), encode_aside(Waits(b"", record, appended=True)))]
    parts = driver.engine._parts
    found = aside.Aside(store, parts.batches._reader, driver.tenants, parts.undo)
    (waits,) = found.heads()
    assert waits.lane == stranger_of(record)
    assert waits.lane.startswith(STRANGER)


def test_a_partition_that_only_forwards_sends_what_it_cannot_read_on_in_order() -> None:
    """It has no state to set anything aside in, and makes nobody wait."""
    home = Driver(level=Level.ALL)
    driver = Driver(level=Level.ALL)
    place = SourcePartition("belfry.schedules", 3, Homes(1))
    store = ScheduleStore(MemoryMap())
    reader = driver.engine._parts.batches._reader
    driver.engine = PartitionEngine(place, store, reader, driver.tenants)
    driver.engine.begin_at(0)
    unsigned(driver, b"demo", SEVEN, request_id="first")
    unsigned(driver, b"other", tenant="other", request_id="other")
    unsigned(driver, b"demo", action="CANCEL", at=None, request_id="second")
    unsigned(driver, b"demo", 8)
    step = take(driver, {(stranger_of((0, 0, b"demo", b"", None)), 8): UNAVAILABLE})
    assert (step.codes, lying(driver)) == (["schema_unavailable"], 0)
    for each in step.effects.rerouted:
        assert [name for name, _ in each.headers if name.startswith("belfry-origin")] == [
            f"belfry-origin-{part}" for part in ("topic", "partition", "offset", "timestamp")
        ]
        home.send(each.value, each.key, each.headers)
    assert told(take(home)) == [("other", "ACCEPTED", 1)]
    learn(home)
    assert told(take(home)) == [("demo", "ACCEPTED", 0), ("demo", "CANCELLED", 2)]


def test_a_lane_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside_room, "MOST_RECORDS", 2)
    driver = two_tenants()
    for number in range(4):
        send(driver, "slow", SEVEN if number == 0 else None, schedule_id=f"{number}")
    send(driver, "demo", request_id="other")
    step = take(driver)
    assert step.codes == ["schema_unavailable"] * 2
    assert told(step)[-1] == ("demo", "ACCEPTED", 4)
    assert lying(driver) == 2


def test_an_input_that_was_made_anew_replaces_nothing_that_waits() -> None:
    """Its offsets begin again, and the row of a request is named by its offset."""
    driver = two_tenants()
    send(driver, "slow", SEVEN, schedule_id="old")
    take(driver)
    (waits,) = driver.engine.aside.heads()
    split = driver.engine.aside.split([waits.record], {}, appended=False)
    assert not split.waits
    decided = split.decided[waits.record[0]]
    assert isinstance(decided, Rejection)
    assert decided.code == "schema_unavailable"
    assert driver.engine.aside.heads() == [waits]


def test_a_step_that_ends_amid_its_batch_sets_aside_what_it_has_passed() -> None:
    driver = two_tenants()
    driver.engine._step_bytes = -(10**9)
    send(driver, "demo", request_id="a", schedule_id="a")
    send(driver, "slow", SEVEN, request_id="b")
    send(driver, "demo", request_id="c", schedule_id="c")
    found = []
    while driver.engine.position < 3:
        found += told(take(driver))
    assert found == [("demo", "ACCEPTED", 0), ("demo", "ACCEPTED", 2)]
    assert lying(driver) == 1


@pytest.mark.parametrize("headers", [None, [("a", b"1"), ("a", None), ("ü", b"")]])
@pytest.mark.parametrize(("key", "value"), [(None, b"v"), (b"", b"\0\0"), (b"k", None)])
def test_a_row_is_the_record(
    headers: list[tuple[str, bytes | None]] | None, key: bytes | None, value: bytes | None
) -> None:
    for lane, appended in ((b"", True), (b"slow", False)):
        waits = Waits(lane, (2**40, T0, key, value, headers), appended)
        assert decode_aside(aside_key(2**40), encode_aside(waits)) == waits
