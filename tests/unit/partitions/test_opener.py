"""What a take-over tells others of the moment in which it happened."""

from __future__ import annotations

from dataclasses import fields
from unittest.mock import MagicMock

import pytest

from belfry.partitions import opener as module
from belfry.partitions.opener import PartitionOpener
from belfry.store.identity import Identity
from belfry.store.layout import keys
from belfry.store.ordered_map import MemoryMap
from belfry.store.schedules import ScheduleStore


def test_a_statement_is_about_the_input_and_where_its_log_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts, recovered = MagicMock(), MagicMock()
    parts.requests().bounds.return_value = 5, 900
    parts.engine().manifest.owner_epoch = 7
    recovered.identity = Identity("cluster", "the changelog", "the input", 0)
    recovered.store = ScheduleStore(MemoryMap())
    recovered.store.note(keys.STATEMENT_KEY, b"kept")
    monkeypatch.setattr(module, "PartitionParts", MagicMock(return_value=parts))
    monkeypatch.setattr(PartitionOpener, "_recover", MagicMock(return_value=recovered))
    monkeypatch.setattr(PartitionOpener, "_sign", MagicMock(return_value=None))
    agreement = MagicMock()
    agreement.statement.return_value = b"mine"
    others = {each.name: MagicMock() for each in fields(PartitionOpener)}
    owned = PartitionOpener(**others | {"agreement": agreement}).take_over(MagicMock(partition=3))
    agreement.statement.assert_called_once_with(b"kept", ("the input", 900))
    assert owned.new_statement == b"mine"
