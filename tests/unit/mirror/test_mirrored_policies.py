"""Policies become those of the source as long as the target follows, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.mirror.policies import carry_policies


class FakePolicies:
    """Policies by the names of tenants."""

    def __init__(self, **policies: str) -> None:
        self.held = {name: (name, policy) for name, policy in policies.items()}

    def all(self) -> dict[str, tuple[str, str]]:
        return self.held

    def put(self, *policies: tuple[str, str], **_: Any) -> None:
        self.held = self.held | {each[0]: each for each in policies}

    def remove(self, name: str, **_: Any) -> None:
        self.held = {each: policy for each, policy in self.held.items() if each != name}


def refuse() -> None:
    raise PermissionError("it is active")


def test_policies_become_those_of_the_source() -> None:
    source: Any = FakePolicies(shop="new", same="1")
    target: Any = FakePolicies(shop="old", same="1", gone="1")
    assert carry_policies(source, target) == 2
    assert target.held == source.held
    assert carry_policies(source, target, refuse) == 0


def test_nothing_is_changed_where_the_target_is_not_to_be_changed() -> None:
    source: Any = FakePolicies(shop="new")
    target: Any = FakePolicies(shop="old", own="1")
    before = target.held
    with pytest.raises(PermissionError):
        carry_policies(source, target, refuse)
    assert target.held == before
