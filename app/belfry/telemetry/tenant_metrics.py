"""Metrics of single tenants: the foremost few by name, all others as one.

Which are the foremost is chosen at each look, in turn by how long they wait, how much they have
pending, how much they fired, how much was refused, how late they were and how much of theirs was
delivered.  So a tenant comes and goes, and still no counter may fall:

    look          1        2        3
    chosen        a b      a c      a b
    b             +5       -        +2      begins anew, as after a restart
    (other)       +9       +7       +4      whatever was counted while others were chosen

Each counter is fed with what each owner of a partition has counted since the look before, so their
sum is exact, whatever moves.  No tenant can have the name of the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from itertools import chain, zip_longest
from operator import add, attrgetter, sub
from threading import Lock
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from belfry.engine.tenant_figures import TenantFigures, merged
from belfry.telemetry.families import BY_NAME
from belfry.tenants.waits import Wait

MOST_TENANTS: Final = 20
OTHER: Final = "(other)"
# Fires, seconds of lateness, refusals, accepted requests, deliveries.
Counts = tuple[float, float, float, float, float]
# A partition, and the epoch of its owner: another owner counts from 0.
Owner = tuple[int, int]
_NONE: Final = (0.0, 0.0, 0.0, 0.0, 0.0)
# The deliveries of a dispatcher count as those of one more owner.
DISPATCHER: Final = (-1, 0)
MOST_DELIVERED: Final = 100_000


class TenantLook(NamedTuple):
    """All tenants of a worker at one instant (epoch ms); the name of events without a tenant is "".

    `owners` has what each owner of a partition has counted since it began; `figures` adds it up.
    """

    figures: Mapping[str, TenantFigures] = {}
    now_ms: float = 0.0
    owners: Mapping[Owner, Mapping[str, TenantFigures]] = {}

    @classmethod
    def of(cls, owners: Mapping[Owner, Mapping[str, TenantFigures]], now_ms: float) -> TenantLook:
        """The counts of these owners."""
        found: dict[str, list[TenantFigures]] = {}
        for counted in owners.values():
            for name, figures in counted.items():
                found.setdefault(name, []).append(figures)
        return cls({name: merged(some) for name, some in found.items()}, now_ms, owners)

    def waits(self) -> list[tuple[str, Wait]]:
        """Those whose events wait, and why."""
        found = self.figures.items()
        return [(name, each.wait) for name, each in found if each.wait is not None]

    def seconds(self, wait: Wait) -> float:
        """For how long the oldest due event has been waiting; 0 where none is due."""
        due_ms = wait.oldest_due_ms
        return 0.0 if due_ms is None else max(0.0, (self.now_ms - due_ms) / 1000)

    def by_cause(self) -> tuple[Counter[str], Counter[str]]:
        """Tenants by what they wait for, and whole seconds that the longest has been waiting."""
        numbers: Counter[str] = Counter()
        longest: Counter[str] = Counter()
        for _, wait in self.waits():
            cause = wait.why.cause
            numbers[cause] += 1
            longest[cause] = max(longest[cause], int(self.seconds(wait)))
        return numbers, longest


class TenantMetrics(Collector):
    """Shows the tenants of the last `look`; from any thread."""

    def __init__(self, most: int) -> None:
        """At most so many tenants are told apart."""
        self._most = most
        self._seen: dict[tuple[Owner, str], Counts] = {}
        self._shown: dict[str, Counts] = {}
        self._counting = Lock()
        self._delivered: Counter[str] = Counter()
        self.look = TenantLook()

    def delivered(self, tenants: Mapping[str, int]) -> None:
        """Count deliveries by tenant; names beyond a bound are not told apart."""
        with self._counting:
            for name, number in tenants.items():
                known = name in self._delivered or len(self._delivered) < MOST_DELIVERED
                self._delivered[name if known else ""] += number

    def describe(self) -> Iterable[Metric]:
        """The families without values, by which a registry finds clashing names."""
        return self._families()

    def collect(self) -> Iterable[Metric]:
        """The families as of the last look."""
        pending, *counters, waiting = found = self._families()
        look = self._looked()
        chosen = foremost(look, self._most)
        with self._counting:
            self._count(look, chosen)
            shown = self._shown
        rest = sum(each.pending for name, each in look.figures.items() if name not in chosen)
        for name in chosen:
            pending.add_metric([name], look.figures[name].pending)
        pending.add_metric([OTHER], rest)
        for name, counts in shown.items():
            for family, count in zip(counters, counts, strict=True):
                family.add_metric([name], count)
        for name, wait in look.waits():
            if name in chosen:
                waiting.add_metric([name, wait.why.cause], look.seconds(wait))
        return found

    def _looked(self) -> TenantLook:
        """The last look, with what a dispatcher of this process has delivered."""
        with self._counting:
            delivered = {name: TenantFigures(delivered=n) for name, n in self._delivered.items()}
        if not delivered:
            return self.look
        return TenantLook.of({**self.look.owners, DISPATCHER: delivered}, self.look.now_ms)

    def _count(self, look: TenantLook, chosen: Iterable[str]) -> None:
        """Add the rise since the look before to those that are shown now."""
        shown = {name: self._shown.get(name, _NONE) for name in (*chosen, OTHER)}
        seen: dict[tuple[Owner, str], Counts] = {}
        for owner, counted in look.owners.items():
            for name, each in counted.items():
                place = owner, name
                now, before = _counts(each), self._seen.get(place, _NONE)
                seen[place] = now
                if now == before:
                    # Of very many tenants only some have done anything since the look before.
                    continue
                label = name if name in shown and name != OTHER else OTHER
                shown[label] = _sum(shown[label], _since(before, now))
        self._seen, self._shown = seen, shown

    def _families(self) -> tuple[Any, ...]:
        """Those of tenants: pending schedules, the counters, the waiting tenants."""
        counters = ("fired", "lateness_seconds", "rejected", "accepted", "delivered")
        return (
            _gauge("belfry_tenant_pending_schedules"),
            *(_counter(f"belfry_tenant_{each}_total") for each in counters),
            _gauge("belfry_tenant_waiting_seconds"),
        )


def registered(metrics: TenantMetrics) -> tuple[CollectorRegistry, TenantMetrics]:
    """The same with a registry that holds nothing else."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry, metrics


def foremost(look: TenantLook, most: int) -> list[str]:
    """The tenants that are told apart: in turn the first by each figure."""
    named = [(name, each) for name, each in look.figures.items() if name]
    waits = sorted(look.waits(), key=lambda each: (-look.seconds(each[1]), each[1].since_ms))
    orders = [[name for name, _ in waits]]
    for figure in ("pending", "fired", "rejected", "late_ms", "delivered"):
        of = attrgetter(figure)
        # The largest first.  No more of each are needed, for all of them differ.
        some = nsmallest(most, ((-count, name) for name, each in named if (count := of(each)) > 0))
        orders.append([name for _, name in some])
    in_turn = chain.from_iterable(zip_longest(*orders))
    return list(dict.fromkeys(name for name in in_turn if name))[:most]


def _counts(each: TenantFigures) -> Counts:
    return each.fired, each.late_ms / 1000, each.rejected, each.accepted, each.delivered


def _since(before: Counts, now: Counts) -> Counts:
    fired, late_s, rejected, accepted, delivered = map(sub, now, before)
    return fired, late_s, rejected, accepted, delivered


def _sum(one: Counts, other: Counts) -> Counts:
    fired, late_s, rejected, accepted, delivered = map(add, one, other)
    return fired, late_s, rejected, accepted, delivered


def _gauge(name: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, BY_NAME[name].meaning, labels=BY_NAME[name].labels)


def _counter(name: str) -> CounterMetricFamily:
    return CounterMetricFamily(name, BY_NAME[name].meaning, labels=BY_NAME[name].labels)
