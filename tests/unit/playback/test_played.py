"""A partition as it is played: how it is born, what its settings say, and what is like it."""

from __future__ import annotations

from collections.abc import Sequence

from belfry.playback.logged import LoggedStep
from belfry.playback.played import PlayedPartition
from belfry.playback.treatment import PolicyAt, Treatment
from belfry.store.layout import keys
from belfry.store.layout.manifests import Manifest
from belfry.store.layout.records import encode_text
from belfry.store.ordered_map import MemoryMap
from belfry.wire.requests import RequestReader
from tests.unit.engine.driver import T0, Driver


def born(
    position: int = 0, statement: bytes | None = None, policies: Sequence[PolicyAt] = ()
) -> PlayedPartition:
    """A partition whose first owner found its first request at an offset."""
    treatment = Treatment(policies, "belfry.")
    partition = PlayedPartition(Driver().place, MemoryMap, RequestReader(), treatment)
    rows = {} if statement is None else {keys.STATEMENT_KEY: statement}
    manifest = Manifest(1, 0, position, T0, 0, 0, bytes(16))
    partition.take_over(LoggedStep(0, len(rows), T0, {**rows}, {}, manifest, True))
    return partition


def test_a_partition_is_born_where_its_requests_begin() -> None:
    """What lay before has been deleted."""
    engine = born(500).engine
    assert engine is not None
    assert engine.position == 500


def test_an_owners_statement_says_how_tenants_are_treated() -> None:
    assert born().treatment.tenants.of("shop").effective.refused is None
    closed = born(statement=encode_text('{"unknown_tenants":"closed"}'))
    assert closed.treatment.tenants.of("shop").effective.refused is not None


def test_a_copy_stands_where_the_partition_does_until_one_of_them_goes_on() -> None:
    partition = born()
    twin = partition.twin()
    assert partition.is_like(twin)
    twin._rows.write({b"row": b"of one of them"})
    assert not partition.is_like(twin)
    partition._rows.write({b"row": b"of one of them"})
    assert partition.is_like(twin)
