"""What every kind of target promises; a new kind needs an address here, and no test."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.delivery.kinds import HTTP, SENDERS, Senders
from belfry.schedules.target_kinds import _ALL, is_allowed, kind_of, list_problem, place_of
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings
from belfry.tenants.policy import TenantPolicy, problems

# A good address of each kind, and one that begins like it and is none.
ADDRESSES: Final = {
    "http": ("https://hooks.example.com/x", "https://"),
    "kafka": ("kafka:payments.audit", "kafka:no topic"),
}
EVERY: Final = pytest.mark.parametrize("name", ADDRESSES)


def test_every_kind_is_tried_here() -> None:
    assert [*sorted(kind.name for kind in _ALL)] == sorted(ADDRESSES) == sorted({HTTP, *SENDERS})


@EVERY
def test_a_kind_knows_its_addresses_alone(name: str) -> None:
    good, bad = ADDRESSES[name]
    for url in (good, bad):
        assert kind_of(HttpTarget(url)).name == name
        assert [kind.name for kind in _ALL if kind.knows(url)] == [name]
    assert place_of(HttpTarget(good))
    assert place_of(HttpTarget(bad)) == ""
    assert list_problem([HttpTarget(good)]) is None
    assert repr(bad) in (list_problem([HttpTarget(bad)]) or "")


@EVERY
@pytest.mark.parametrize("attempts", [-1, 1_001])
def test_attempts_are_bounded(name: str, attempts: int) -> None:
    target = HttpTarget(ADDRESSES[name][0], max_attempts=attempts)
    assert f"is {attempts}; 0 to 1000 is allowed" in (list_problem([target]) or "")


@EVERY
def test_a_place_opens_itself_and_nothing_of_another_kind(name: str) -> None:
    target = HttpTarget(ADDRESSES[name][0])
    assert is_allowed(target, [place_of(target)])
    others = [place_of(HttpTarget(ADDRESSES[other][0])) for other in ADDRESSES if other != name]
    assert not is_allowed(target, others)
    policy = TenantPolicy("demo", http_targets=(target,), allowed_hosts=tuple(others))
    assert any(target.url in problem for problem in problems(policy))


@EVERY
def test_work_goes_to_the_sender_of_its_kind(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[str] = []

    class Noting:
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def hand_in(self, pieces: list[Any]) -> None:
            handed.extend(self.kind for _ in pieces)

    for kind in SENDERS:
        monkeypatch.setitem(SENDERS, kind, lambda _s, _f, _c, kind=kind: Noting(kind))
    http: Any = Noting(HTTP)
    senders = Senders(Settings(), lambda _finished: http, lambda *_: None)
    work: Any = type(
        "W", (), {"state": type("S", (), {"targets": [HttpTarget(ADDRESSES[name][0])]})}
    )
    senders.hand_in([(None, work)])  # type: ignore[list-item]
    assert handed == [name]
