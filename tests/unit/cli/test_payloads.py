"""`belfry payloads sweep`: what needs neither a broker nor a store elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from belfry.cli import payload_claims, payload_sweep, payloads
from belfry.cli.entry import main
from belfry.cli.payload_list import PayloadList, PayloadSum
from belfry.cli.payload_sweep import PayloadSweep, SweepTerms
from belfry.outputs.stored_payloads import StoreAway, SweptStore
from belfry.wire.claim_check import CLAIM, claims_in, digest_of, object_name

DAY_MS = 86_400_000
DIGEST = digest_of(b"a")
OTHER = digest_of(b"b")


# -- which topics claim ----------------------------------------------------------------------------


def test_dead_letters_of_tenants_claim_payloads_as_refusals_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They may be kept for longer than the same record is in the topic of refusals."""
    monkeypatch.setattr(
        payload_claims, "kafka_policies", lambda _session: SimpleNamespace(all=dict)
    )
    names = SimpleNamespace(follow=lambda _policies: None, outputs=lambda _there: set())
    here: Any = SimpleNamespace(_session=None, _names=names, _topic="belfry.{}".format)
    there = ["belfry.dead-letters.shop", "belfry.rejected", "belfry.schedules.shop", "mail", "dead"]
    found = payload_claims.ClaimReader._others(here, {name: [0] for name in there})
    assert sorted(found) == there[:3]


# -- the list --------------------------------------------------------------------------------------


def test_a_claim_keeps_the_objects_of_all_tenants_that_have_it() -> None:
    objects = PayloadList()
    objects.add("shop", DIGEST, 10, aside=False)
    objects.add("mail", DIGEST, 10, aside=False)
    objects.add("shop", OTHER, 7, aside=False)
    objects.claim([DIGEST, DIGEST, digest_of(b"nobody's")])
    assert objects.tally(aside=False, claimed=True) == PayloadSum(2, 20)
    assert list(objects.each(aside=False, claimed=False)) == [("shop", OTHER)]


def test_what_is_aside_since_today_is_not_removed_and_may_be_put_back() -> None:
    objects = PayloadList()
    objects.add("shop", DIGEST, 10, aside=True, old=False)
    objects.add("shop", OTHER, 7, aside=True)
    assert list(objects.each(aside=True, claimed=False)) == [("shop", OTHER)]
    objects.claim([DIGEST])
    assert list(objects.each(aside=True, claimed=True)) == [("shop", DIGEST)]
    objects.forget("shop", OTHER)
    assert objects.tally(aside=True, claimed=False) == PayloadSum(0, 0)


def test_many_objects_are_gone_through_while_they_move() -> None:
    objects = PayloadList()
    for number in range(2_500):
        objects.add("shop", digest_of(b"%d" % number), 1, aside=False)
    seen = 0
    for tenant, digest in objects.each(aside=False, claimed=False):
        objects.moved(tenant, digest, aside=True)
        seen += 1
    assert seen == 2_500
    assert objects.tally(aside=False, claimed=False).objects == 0


# -- what claims -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        CLAIM.encode() + b" " + DIGEST.encode(),
        f'{{"headers":[{{"name":"{CLAIM}","value_text":"{DIGEST}"}}]}}'.encode(),
        b"\x00\x12" + CLAIM.encode() + b"\x80\x01" + DIGEST.encode() + b"0a",
        # A length in front that looks like digits.
        CLAIM.encode() + b"000a" + DIGEST.encode(),
    ],
)
def test_a_claim_is_found_in_whatever_form(data: bytes) -> None:
    assert DIGEST in claims_in(data)


def test_digits_without_the_header_claim_nothing() -> None:
    assert claims_in(DIGEST.encode()) == set()
    assert claims_in(CLAIM.encode() + b" " + DIGEST[:-1].encode()) == set()


# -- a sweep of a folder ---------------------------------------------------------------------------


class Claims:
    """Topics that claim what a test says.

    `later` is told when the changelog is followed, `fired` when the other topics are read again.
    """

    def __init__(self, claimed: Callable[[set[str]], object], *digests: str) -> None:
        self._claimed = claimed
        self._digests = set(digests)
        self.later = set[str]()
        self.fired = set[str]()

    def waiting(self) -> None:
        self._claimed(self._digests)

    def elsewhere(self) -> int:
        return 3

    def follow(self) -> None:
        self._claimed(self.later)

    def since(self) -> None:
        self._claimed(self.fired)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for payload in (b"a", b"b", b"young"):
        path = tmp_path / "shop" / object_name(digest_of(payload))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(payload)
        if payload != b"young":
            os.utime(path, (1e9, 1e9))
    (tmp_path / "not ours").mkdir()
    (tmp_path / "not ours" / DIGEST).write_bytes(b"x")
    (tmp_path / "shop" / "notes.txt").write_bytes(b"x")
    return tmp_path


def names(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


class Run:
    """A sweep that has listed and read, with a margin of a day."""

    claims: Any

    def __init__(self, folder: Path, *claimed: str, days_on: float = 0) -> None:
        now_ms = time.time() * 1000 + days_on * DAY_MS
        store = SweptStore(LocalFileSystem(), str(folder))
        terms = SweepTerms(now_ms, now_ms - DAY_MS, 10_000, 0.0)
        self.sweep = PayloadSweep(store, terms, lambda _text: None)
        self.sweep.list()
        self.claims = Claims(self.sweep.objects.claim, *claimed)
        self.sweep.read(self.claims)

    def act(self) -> payload_sweep.SweepResult:
        self.sweep.act(self.claims)
        return self.sweep.found


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_sweep, "LOOK_S", 0.0)


def test_what_is_old_and_claimed_by_nothing_is_put_aside(folder: Path) -> None:
    before = names(folder)
    run = Run(folder, DIGEST)
    found = run.sweep.found
    assert (found.young, found.listed, found.records) == (1, 2, 3)
    assert (found.claimed, found.unclaimed) == (PayloadSum(1, 1), PayloadSum(1, 1))
    assert names(folder) == before, "a count changes nothing"
    assert run.act().put_aside == 1
    path = f"shop/{object_name(OTHER)}"
    assert names(folder) == before - {path} | {f".swept/{path}"}


def test_what_is_aside_is_removed_a_day_later_or_put_back(folder: Path) -> None:
    before = names(folder)
    assert Run(folder).act().put_aside == 2
    found = Run(folder, DIGEST).act()
    assert (found.put_back, found.removed) == (1, 0)
    found = Run(folder, days_on=0.5).act()
    assert found.removed == 0
    found = Run(folder, DIGEST, digest_of(b"young"), days_on=2).act()
    assert (found.put_aside, found.removed) == (0, 1)
    assert names(folder) == before - {f"shop/{object_name(OTHER)}"}


def test_what_is_claimed_a_moment_later_comes_back(folder: Path) -> None:
    before = names(folder)
    run = Run(folder)
    run.claims.later = {OTHER}
    found = run.act()
    assert (found.put_aside, found.put_back) == (2, 1)
    path = f"shop/{object_name(DIGEST)}"
    assert names(folder) == before - {path} | {f".swept/{path}"}


def test_what_is_claimed_comes_back_while_others_are_put_aside(folder: Path) -> None:
    """A long sweep does not leave it aside until its end."""
    run = Run(folder)
    run.claims.later = {DIGEST, OTHER}
    seen: list[int] = []
    follow = run.claims.follow

    def followed() -> None:
        seen.append(len([each for each in names(folder) if each.startswith(".swept")]))
        follow()

    run.claims.follow = followed
    assert run.act().put_back == 2
    # After each of the two, and at the end.
    assert seen == [1, 1, 0]


def test_what_only_an_event_claims_by_the_end_comes_back(folder: Path) -> None:
    """It was asked for, triggered and cancelled in one step, so no row has ever claimed it."""
    before = names(folder)
    run = Run(folder)
    run.claims.fired = {OTHER}
    assert run.act().put_back == 1
    path = f"shop/{object_name(DIGEST)}"
    assert names(folder) == before - {path} | {f".swept/{path}"}


def test_a_sweep_that_ended_amid_its_work_is_gone_on_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is there, and the object is not removed: one of the two goes."""
    before = names(folder)

    def ends(*_: object) -> None:
        raise ConnectionError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "rm_file", ends)
        with pytest.raises(StoreAway, match="gone"):
            Run(folder, DIGEST).act()
    assert names(folder) == before | {f".swept/shop/{object_name(OTHER)}"}
    # It has turned out to be claimed.
    found = Run(folder, DIGEST, OTHER).act()
    assert (found.put_back, found.put_aside) == (0, 0)
    assert names(folder) == before


# -- the command -----------------------------------------------------------------------------------


def test_a_margin_below_a_day_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["payloads", "sweep", "--older-than", "1h"]) == 2
    assert "has to be 24h or more" in capsys.readouterr().err


def test_without_a_store_the_settings_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belfry.cli.verified_topics.world_of", lambda _session: "a belfry")
    assert main(["payloads", "sweep"]) == 2
    assert "BELFRY_PAYLOAD_STORE" in capsys.readouterr().err


def test_what_is_shown_names_each_number(folder: Path) -> None:
    run = Run(folder, DIGEST)
    told = payloads.shown(run.sweep.found, apply=False)
    assert told["unclaimed"] == {"objects": 1, "bytes": 1}
    assert (told["applied"], told["young"], told["put_aside"]) == (False, 1, 0)
