"""Scenarios: small files that say how large a world is and what strikes it.

about = "…"            one sentence
machines = 3           workers
seconds = 15           how long requests come and faults strike
requests = 60
early_ms = 0           by how much an event may be early: what the weather's latencies differ
rhythms = 0.0          share of requests that recur
bulk = 0.0             share of requests that begin a bulk job
keys = 0.0             share of requests that slide what waits, or are throttled
rules = 0.0            share of requests that recur by rules of all sorts
zones = ["UTC"]        those rules go by timetables in these zones
begins = ["…Z"]        the world begins at one of these instants, such as before a changed clock
features = 0.0         share of requests of later features, of which each seed has some
only = ["calendars"]   which of them; none: each seed draws
changes = 0            how often a policy changes amid the run (`policy_changes`)
policies = 0.0         by this chance a tenant has each rule of `tenant_policies`
schema_ids = 0.0       share of requests that name a schema of the registry
standbys = 0           for each partition; the group is led by the shipped assignor then
preempted = false      threads lose their turn between lines of what they share
sizes = false          each seed has 2 to 12 workers and 1 to 64 partitions
own_epochs = false     protocol v1 of transactions, or v2 (true); not given: each seed draws
copies = 0.05          several brokers hold copies, which are slow by this chance; not given: one
spread = 0.0           by this chance a tenant lives in several shards
inputs = 0.0           by this chance a tenant has an input topic of its own
webhooks = false       most tenants have targets, and workers deliver
topics = false         topics are among these targets
senders = 0            so many processes only deliver; in some seeds workers do not, then
backlog = 0            so many requests lie in the log before any worker starts
alike = false          plain schedules have no priorities, and those of the backlog groups
slots = 0              a changelog keeps so many manifests; 0: as many as shipped
grows_after_ms = 0     the first growth (`growing`) is so much later
in_time_ms = 0         a cancel this long before its due instant counts; 0: not looked at
hurried = false        a step has no time left from its first fire and its first request on
room = 0.0             steps of a worker have room for so many full ones together; 0: as shipped
named = false          is played only where it is named: sharp for a planted bug, or slow
[settings]             of the worker, over those of `worker.settings_of`
[weather]              chances and durations (`machine.Weather`)
swarm = false          each seed leaves out about half of what is said here
[faults]               how many of each kind (`faults.KINDS`), at instants that the seed draws
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.simulation.broker import T0

# Shares of requests that a swarm leaves out.
SHARES: Final = ("rhythms", "bulk", "keys")
# Sizes of worlds: few are large, for those take long.
MACHINES: Final = (2, 2, 3, 3, 4, 6, 12)
HOMES: Final = (1, 1, 2, 3, 4, 7, 16, 64)
FOLDER: Final = Path(__file__).parent / "scenarios"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file of `scenarios/`."""

    name: str
    about: str
    machines: int = 2
    partitions: int = 2
    seconds: int = 12
    requests: int = 50
    settings: dict[str, Any] = field(default_factory=dict)
    weather: dict[str, float] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    early_ms: int = 0
    in_time_ms: int = 0
    grows_after_ms: int = 0
    rhythms: float = 0.0
    bulk: float = 0.0
    keys: float = 0.0
    rules: float = 0.0
    zones: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    features: float = 0.0
    only: tuple[str, ...] = ()
    changes: int = 0
    policies: float = 0.0
    schema_ids: float = 0.0
    swarm: bool = False
    standbys: int = 0
    preempted: bool = False
    sizes: bool = False
    own_epochs: bool | None = None
    copies: float | None = None
    spread: float = 0.0
    inputs: float = 0.0
    webhooks: bool = False
    topics: bool = False
    senders: int = 0
    backlog: int = 0
    alike: bool = False
    slots: int = 0
    hurried: bool = False
    room: float = 0.0
    named: bool = False

    @property
    def calls(self) -> bool:
        """Whether somebody writes over HTTP."""
        return bool(self.faults.get("call"))

    @property
    def grows(self) -> bool:
        """Whether partitions are added amid the run."""
        return bool(self.faults.get("add_partition") or self.faults.get("grow"))

    @property
    def moves(self) -> bool:
        """Whether key groups move."""
        return bool(self.faults.get("move_group") or self.faults.get("ask_move"))

    def began_ms(self, random: Random) -> int:
        """When a world begins, in epoch ms: at one of `begins`, where there are some."""
        if not self.begins:
            return T0
        return round(datetime.fromisoformat(random.choice(self.begins)).timestamp() * 1000)

    def drawn(self, random: Random) -> Scenario:
        """The scenario of one seed: where it is a swarm, about half of it is left out."""
        sized = self
        if self.sizes:
            machines, partitions = random.choice(MACHINES), random.choice(HOMES)
            sized = replace(self, machines=machines, partitions=partitions)
        if not self.swarm:
            return sized
        faults = {name: count for name, count in self.faults.items() if random.random() < 0.5}
        weather = {name: chance for name, chance in self.weather.items() if random.random() < 0.5}
        shares = {name: getattr(self, name) * (random.random() < 0.5) for name in SHARES}
        return replace(sized, faults=faults, weather=weather, **shares)


def read(path: Path) -> Scenario:
    """The scenario in a file."""
    return Scenario(name=path.stem, **tomllib.loads(path.read_text(encoding="utf-8")))


def scenarios() -> list[Scenario]:
    """All scenarios, by name."""
    return [read(path) for path in sorted(FOLDER.glob("*.toml"))]
