"""Strangers share what there is for them by the names that they show."""

from __future__ import annotations

import time

from belfry.engine.claims import lane_of
from belfry.registry.answers import Missing, RegistryUnreachable
from belfry.store.layout.aside import Waits
from belfry.wire.record import SourceRecord
from tests.unit.partitions.test_resolver import OURS, Registry, Site, asking, resolving, soon


def test_one_stranger_uses_up_no_lookup_of_another() -> None:
    """A name asks for more than the budget, and another one has a schema that is new here."""
    registry = Registry(Missing("not there"))
    with resolving(registry, per_minute=5) as site:
        for number in range(40):
            site.settled(asking(1_000 + number, key=b"loud"))
            site.resolver.taken()
        registry.answers = dict.fromkeys(range(20), OURS)
        for number in range(20):
            own = asking(number, key=b"quiet")
            site.settled(own)
            assert not site.code(own)
            site.resolver.taken()


def test_what_shows_the_same_name_waits_no_longer_than_it_may() -> None:
    """A lane in doubt asks a second later: that is for its own sake, and counts."""
    registry = Registry(RegistryUnreachable("no answer"), takes_s=0.6)
    with resolving(registry, wait_s=0.5) as site:
        came: dict[int, float] = {}
        refused: dict[int, float] = {}
        began, sent = time.monotonic(), list[SourceRecord]()
        while len(refused) < 20:
            if len(sent) < 20 and time.monotonic() - began > 0.1 * len(sent):
                sent.append(asking(900 + len(sent)))
                came[900 + len(came)] = time.monotonic()
                site.ready(sent[-1])
                site.resolver.taken()
            site.waiting(*sent)
            for _, reference in site.resolver.deferred.refused:
                assert isinstance(reference, int)
                refused.setdefault(reference, time.monotonic())
            time.sleep(0.01)
        waited = [refused[each] - came[each] for each in came]
        assert 0.4 < max(waited) < 0.5 + 0.2


def test_what_a_former_owner_set_aside_waits_at_the_same_time() -> None:
    """Not one after the other: a lane of a hundred ids would wait a hundred times."""
    registry = Registry(RegistryUnreachable("no answer"), takes_s=0.1)
    with resolving(registry, wait_s=0.4) as site:
        rows = [asking(900 + number) for number in range(20)]
        lanes = [(lane_of(row, site.tenants), row) for row in rows]
        waits = [Waits(lane, row, True) for lane, row in lanes if isinstance(lane, bytes)]
        site.resolver.take_over(waits)
        began = time.monotonic()

        def all_refused() -> bool:
            left = [each for each in waits if not _refused(site, each)]
            site.resolver.look_after(left[:1])
            return not left

        soon(all_refused)
        assert time.monotonic() - began < 1.0


def _refused(site: Site, waits: Waits) -> bool:
    return (waits.lane, site.reader.unknown_schema(waits.record)) in site.resolver.deferred.refused
