"""Policies are read at start, also where their topic was made a moment ago."""

from __future__ import annotations

from threading import Event
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from belfry.policies.follower import Policies


class Young:
    """Stands for policies whose topic has no leader that knows it, for so many questions."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self._thread = SimpleNamespace(stopping=Event())

    def catch_up(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ConnectionError("Not leader for partition")


def patiently(young: Any, seconds: float) -> None:
    Policies._catch_up_patiently(young, monotonic() + seconds)


def test_a_topic_that_is_young_is_asked_again() -> None:
    young = Young(2)
    patiently(young, 10)
    assert young.refusals == 0


def test_patience_ends() -> None:
    with pytest.raises(ConnectionError):
        patiently(Young(1_000), 0.1)
