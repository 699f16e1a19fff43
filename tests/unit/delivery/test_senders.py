"""Work goes to the sender of its kind, and a list of hosts that names anything is closed."""

from __future__ import annotations

from typing import Any

from belfry.delivery.kinds import HTTP, SENDERS, Senders
from belfry.schedules.target_kinds import _ALL, is_allowed
from belfry.schedules.targets import HttpTarget
from belfry.settings import Settings


class FakeSender:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def start(self) -> None:
        self.asked.append("start")

    def drop(self) -> None:
        self.asked.append("drop")

    def stop(self) -> None:
        self.asked.append("stop")


def test_every_kind_of_address_has_one_that_sends() -> None:
    assert {kind.name for kind in _ALL} == {HTTP, *SENDERS}


def test_senders_begin_and_end_together() -> None:
    http: Any = FakeSender()
    senders = Senders(Settings(), lambda _finished: http, lambda *_: None)
    senders.start()
    senders.drop()
    senders.stop()
    assert http.asked == ["start", "drop", "stop"]


def test_an_entry_of_another_kind_closes_a_list_to_hosts() -> None:
    assert not is_allowed(HttpTarget("https://a.example.com/"), ["kafka:payments.audit"])
