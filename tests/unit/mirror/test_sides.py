"""What a side tells of itself from the end of its changelog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belfry.mirror.sides import Side
from belfry.store.identity import Identity, encode_identity
from belfry.store.layout import keys
from belfry.store.row_judge import Judge
from tests.unit.mirror.stand_ins import CHANGELOG_TOPIC, FakeLogs

A, B = Identity("cluster-a", "log-a", "in-a"), Identity("cluster-b", "log-b", "in-b", 3)


class KeptSide(Side):
    """A side whose changelog is in memory."""

    logs: FakeLogs

    def judge(self, _partition: int) -> Judge:
        return Judge()

    def backwards(self, kind: str, _partition: int) -> Iterator[Any]:
        return reversed(self.logs.logs[f"belfry.{kind}"])


@pytest.mark.parametrize(
    ("identity", "later", "told"),
    [(B, False, "cluster-b"), (B, True, None), (A, False, None), (None, False, None)],
    ids=["fenced", "since then its own", "its own", "none"],
)
def test_a_side_knows_whether_its_last_transaction_gave_it_away(
    identity: Identity | None, later: bool, told: str | None
) -> None:
    nothing: Any = None
    side = KeptSide("a", nothing, A, 1, frozenset(), nothing, 0)
    side.logs = FakeLogs()
    side.logs.add(CHANGELOG_TOPIC, keys.IDENTITY_KEY, encode_identity(B))
    side.logs.seal(7)
    if identity is not None:
        side.logs.add(CHANGELOG_TOPIC, keys.IDENTITY_KEY, encode_identity(identity))
    side.logs.seal(8)
    if later:
        side.logs.seal(9)
    last = side.last_manifest(0)
    assert last is not None
    assert last.txn_seq == (9 if later else 8)
    assert side.given_to(0) == told
