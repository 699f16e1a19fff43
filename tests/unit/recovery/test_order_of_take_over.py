"""A take-over step by step: its order, what it shows, what it lends, and how it ends on errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from belfry.kafka.log_bounds import LostRange, OutOfRange
from belfry.kafka.outcome import Unknown
from belfry.recovery.reading import ReplayProgress
from belfry.recovery.stamp import Stamp
from belfry.recovery.takeover import TakeOver
from belfry.store.layout import keys
from belfry.store.layout.manifests import decode_manifest, encode_manifest
from belfry.store.layout.pending import decode_pending
from belfry.store.net import Change
from belfry.store.ordered_map import Damaged, MemoryMap
from belfry.store.replay import HoleInChangelog, Replay
from belfry.store.schedules import ScheduleStore
from tests.unit.engine.driver import HOUR, T0, Driver
from tests.unit.recovery.test_copies_of_rolled_back_rows import with_copies

NOW: Final = T0 + 900
STAMP: Final = Stamp("cluster", "log", 3)


def changes(*, lease: bool = False) -> tuple[list[Change], int]:
    """A changelog of two transactions, and where the second one begins."""
    driver = Driver()
    driver.ask(schedule_id="a", at=T0 + HOUR)
    driver.step(T0)
    before = len(driver.changelog)
    driver.ask(schedule_id="b", at=T0 + HOUR)
    driver.step(T0)
    key, row = driver.changelog[-1]
    assert row is not None
    last = decode_manifest(row)._replace(read_lease=lease)
    return [*driver.changelog[:-1], (key, encode_manifest(last))], before


class Rows(MemoryMap):
    """A store that knows whether it was closed."""

    closed = False

    def close(self) -> None:
        """Close it."""
        self.closed = True


class Around:
    """All that a take-over touches; `journal` has what it did, in order."""

    def __init__(self, found: list[Change], fenced_at: int) -> None:
        """The former owner commits what lies from `fenced_at` on before the fence."""
        self.journal: list[str] = []
        self.found, self.upto = found, fenced_at
        self.reading = ReplayProgress()
        self.shown: list[tuple[int, int, int]] = []
        self.shown_amid_fence = ""
        self.position, self.newest_ms = 0, None
        self.hides, self.holds_records = True, lambda: True
        self.sieve = SimpleNamespace(manifest_at=77, may_be_copies=lambda _offsets: False)
        self.fails: dict[str, Exception] = {}
        self.rows, self.fresh = Rows(), Rows()
        self.clock = SimpleNamespace(wall_ms=lambda: float(NOW))
        self.stamp, self.restored_ms = STAMP, 0

    def run(self, warm: Any = None) -> Any:
        """Take over."""
        me: Any = self
        failpoints: Any = SimpleNamespace(reach=self._reached)
        moved = lambda event: self.journal.append(event.name)  # noqa: E731
        take = TakeOver(me, me, self.reading, failpoints, moved, lambda _log: self.fenced())
        return take.run(me, me, warm)

    # -- local state -------------------------------------------------------------------------------

    def open_newest(self, changelog: object) -> Rows:
        """The store as it was left."""
        assert changelog is self
        return self.rows

    def accept(self, rows: Any, replaced: Any) -> Any:
        """Another store, where this one may not be used."""
        assert rows is self.rows
        assert replaced is self.holds_records
        self.journal.append("accept")
        rows.close()
        return self.fresh

    def found_wrong(self) -> None:
        """No checkpoint is used again."""
        self.journal.append("found wrong")

    def anew(self, rows: Any, why: str) -> Rows:
        """An empty store."""
        rows.close()
        self.journal.append(f"anew: {why}")
        return self.fresh

    # -- evidence ----------------------------------------------------------------------------------

    def check(self, replay: Replay, hides: Any = None) -> None:
        """Note how far was read, and whether an open transaction may hide the rest."""
        told = "not asked" if hides is None else hides()
        self.journal.append(f"check {replay.offset}, hides {told}")
        if error := self.fails.pop("check", None):
            raise error

    def identity(self, _replay: Any) -> tuple[str, bytes]:
        """The identity, and its row."""
        return "identity", b"row"

    # -- the producer and the changelog ------------------------------------------------------------

    def open(self) -> None:
        """Fence."""
        self.journal.append("fence")
        self.upto = len(self.found)
        self.shown_amid_fence = self.reading.sentence()
        if error := self.fails.pop("open", None):
            raise error

    def ends(self) -> tuple[int, int]:
        """Where it begins, and where it ends for a reader of what is committed."""
        return 0, self.upto

    def fenced(self) -> int:
        """Its end, once nobody else writes."""
        self.journal.append("asked for the end")
        return self.upto

    def seek(self, offset: int, manifest_at: int = -1, known: Any = None) -> None:
        """Read on from here."""
        # Whoever has just asked for the ends need not ask for them again.
        assert known == self.ends()
        self.journal.append(f"seek {offset}, {manifest_at}")
        self.position = offset

    def read_until(self, end: int, _most: int) -> Iterator[list[tuple[int, Change]]]:
        """What lies up to there."""
        if error := self.fails.pop("fence" if "fence" in self.journal else "begin", None):
            raise error
        found = [(at, self.found[at]) for at in range(self.position, end)]
        self.position = max(end, self.position)
        if found:
            yield found

    def changes(self, found: Any) -> Any:
        """Their changes and offsets."""
        return [change for _, change in found], [at for at, _ in found]

    def _reached(self, step: str) -> None:
        self.journal.append(step)
        if step == "R3":
            self.shown.append((self.reading.position, self.reading.end, self.reading.records))


def names(recovered: Any) -> list[bytes]:
    return sorted(decode_pending(row).name for row in recovered.store.all_pending())


ORDER: Final = [
    "seek 0, -1", "R3", "check {before}, hides True", "CAUGHT_UP", "fence", "FENCED", "R2",
    "asked for the end", "R3", "check {all}, hides not asked",
]  # fmt: skip


def test_what_was_committed_before_the_fence_is_read_behind_it() -> None:
    found, before = changes()
    around = Around(found, before)
    recovered = around.run()
    told = {"before": before, "all": len(found)}
    assert around.journal == [each.format(**told) for each in ORDER]
    assert names(recovered) == [b"demo/a", b"demo/b"]
    assert recovered.manifest is not None
    assert recovered.manifest.pending == 2
    assert (recovered.end, recovered.identity, recovered.new_identity) == (
        *(len(found), "identity", b"row"),
    )
    assert recovered.rows is around.rows
    assert not around.rows.closed
    assert (recovered.settings, recovered.unclosed_rows, recovered.lent_ms) == (None, (), None)


def test_how_far_it_has_come_is_shown() -> None:
    found, before = changes()
    around = Around(found, before)
    around.run()
    assert around.shown == [(before, before, before), (len(found), len(found), len(found))]
    assert around.reading.begin == 0


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_fence_waits_for_is_shown_until_it_is_over(*, fails: bool) -> None:
    around = Around(*changes())
    if fails:
        around.fails["open"] = Unknown("not in time")
    with pytest.raises(Unknown) if fails else nullcontext():
        around.run()
    assert "Kafka has ended the former owner's last transaction" in around.shown_amid_fence
    assert "of the changelog read" in around.reading.sentence()


def test_a_store_is_read_on_from_where_it_ends() -> None:
    """Behind its last manifest, by whose place signed rows are believed."""
    found, before = changes()
    first = Around(found[:before], before)
    first.run()
    again = Around(found, before)
    again.rows = first.rows
    assert names(again.run()) == [b"demo/a", b"demo/b"]
    assert again.journal[0] == f"seek {before}, {before - 1}"
    assert again.shown == [(len(found), len(found), len(found) - before)]


def test_copies_of_what_was_rolled_back_are_left_and_somebody_is_told() -> None:
    driver, copies = with_copies()
    around = Around([*driver.changelog, *copies], len(driver.changelog))
    behind = [*range(len(driver.changelog), len(around.found))]
    around.sieve.may_be_copies = lambda offsets: [*offsets] == behind
    with capture_logs() as told:
        recovered = around.run()
    assert sorted(recovered.unclosed_rows) == sorted(key for key, _ in copies)
    assert recovered.end == len(around.found)
    assert told == [
        {
            "event": "rows without a manifest are left: copies of what was rolled back",
            "log_level": "error",
            "first_offset": behind[0],
            "rows": len(copies),
            "to_do": "find out who else may write to the changelog, and take the right away",
        }
    ]


def test_what_is_written_says_when() -> None:
    """By that a later start knows whether the state is too old."""
    found, before = changes()
    recovered = Around(found, before).run()
    state = recovered.store.state()
    assert state is not None
    assert state.written_ms == NOW


def test_the_settings_of_the_cluster_are_told() -> None:
    found, before = changes()
    around = Around([(keys.SETTINGS_KEY, b"settings"), *found], before + 1)
    assert around.run().settings == b"settings"


@pytest.mark.parametrize(
    ("lease", "newest_ms", "restored_ms", "lent_ms"),
    [
        (False, T0 + 5, T0, None),
        (True, T0 + 5, T0 + 700, T0 + 5),
        (True, None, T0 + 700, NOW),
        (True, None, NOW + 50, NOW + 50),
    ],
    ids=["none was lent", "as the log says", "written down here", "fetched later"],
)
def test_a_lease_was_lent_when_its_manifest_was_appended_or_later(
    lease: bool, newest_ms: Any, restored_ms: int, lent_ms: int | None
) -> None:
    found, _ = changes(lease=lease)
    first = Around(found, len(found))
    first.run()
    again = Around(found, len(found))
    again.rows, again.newest_ms, again.restored_ms = first.rows, newest_ms, restored_ms
    again.clock.wall_ms = lambda: float(NOW + 10)
    assert again.run().lent_ms == lent_ms


def test_a_partition_that_never_had_an_owner_lends_nothing() -> None:
    recovered = Around([], 0).run()
    assert (recovered.manifest, recovered.lent_ms, recovered.end) == (None, None, 0)


# -- a standby's work ------------------------------------------------------------------------------


def warm(around: Around, upto: int, stamp: Stamp = STAMP) -> tuple[Rows, Replay]:
    """A standby that has read so much, and holds it."""
    around.rows.write({keys.META_STAMP: stamp.encode()})
    replay = Replay(ScheduleStore(around.rows))
    replay.hold(around.found[:upto], range(upto))
    around.position = upto
    return around.rows, replay


def test_what_a_standby_has_read_is_not_read_again() -> None:
    found, before = changes()
    around = Around(found, before)
    recovered = around.run(warm(around, before))
    assert not [each for each in around.journal if each.startswith(("seek", "accept"))]
    assert around.journal[0] == f"check {before}, hides True", "what it held is folded before that"
    assert around.reading.begin == before
    assert around.shown == [(len(found), len(found), len(found) - before)]
    assert names(recovered) == [b"demo/a", b"demo/b"]


def test_a_standby_that_is_ahead_of_the_log_asks_whether_its_place_is_there() -> None:
    found, _ = changes()
    around = Around(found, len(found) - 1)
    around.run(warm(around, len(found)))
    assert around.journal[0] == f"seek {len(found)}, 77"


def test_a_standby_of_a_changelog_that_was_made_anew_is_looked_at_like_any_state() -> None:
    found, before = changes()
    around = Around(found, before)
    recovered = around.run(warm(around, before, Stamp("cluster", "older", 3)))
    assert around.journal[:2] == ["accept", "seek 0, -1"]
    assert recovered.rows is around.fresh
    assert names(recovered) == [b"demo/a", b"demo/b"]


# -- errors ----------------------------------------------------------------------------------------

WRONG: Final = [Damaged("a block"), HoleInChangelog("a number"), LostRange("trimmed")]


@pytest.mark.parametrize("when", ["begin", "fence"])
@pytest.mark.parametrize("error", WRONG, ids=lambda each: type(each).__name__)
def test_a_store_that_is_found_wrong_is_built_anew_and_nobody_is_fenced_twice(
    when: str, error: Exception
) -> None:
    found, before = changes()
    around = Around(found, before)
    around.fails[when] = error
    recovered = around.run()
    assert f"anew: {error}" in around.journal
    assert around.journal.index("found wrong") < around.journal.index(f"anew: {error}")
    assert around.journal.count("fence") == 1
    assert around.journal[-1] == f"check {len(found)}, hides not asked"
    assert recovered.rows is around.fresh
    assert (around.rows.closed, around.fresh.closed) == (True, False)
    assert names(recovered) == [b"demo/a", b"demo/b"]
    assert recovered.end == len(found)


@pytest.mark.parametrize(("when", "fences"), [("begin", 0), ("fence", 1), ("check", 0)])
def test_any_other_error_closes_the_store_and_keeps_it(when: str, fences: int) -> None:
    found, before = changes()
    around = Around(found, before)
    around.fails[when] = error = OutOfRange("the log has changed")
    with pytest.raises(OutOfRange) as raised:
        around.run()
    assert raised.value is error
    assert around.rows.closed
    assert "found wrong" not in around.journal
    assert around.journal.count("fence") == fences
