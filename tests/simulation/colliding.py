"""Tenants whose names collide: in Kafka's metrics a dot and an underscore are the same.

    m0   elm.x asks for the first time ─► accepted, its topic is to be made ─┐  at one instant
    m1   elm_x asks for the first time ─► accepted, its topic is to be made ─┴► Kafka makes one

Whose topic is there has the name: what it asked for fires.  What the other one asked for is refused
(`tenant_collides`), or was accepted just before and waits for a topic: none of it fires (I54).
Once all is quiet both ask once more, and nobody may take the one for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.broker import Entry
from tests.simulation.hanging import FIRED
from tests.simulation.sent import Sent
from tests.simulation.stores import CHANGELOG, PENDING, fold

if TYPE_CHECKING:
    from tests.simulation.bulk import Definition
    from tests.simulation.world import World

PAIRS: Final = (("elm.x", "elm_x"), ("fir_y", "fir.y"), ("oak.z.a", "oak_z.a"))
REFUSAL: Final = b"tenant_collides"
# When such tenants ask again, in milliseconds.
AGAIN_MS: Final = (0.0, 30.0, 400.0, 3_000.0)
# So long after the faults all workers know whose topics are there.
KNOWN_MS: Final = 15_000.0


@dataclass(slots=True)
class Colliding:
    """The pairs of one world that have begun to ask."""

    world: World
    random: Random
    begun: int = 0
    struck: list[str] = field(default_factory=list)
    # What was asked for once all was quiet.
    last: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Both of the next pair ask for the first time, at one instant, and again."""
        if self.begun == len(PAIRS):
            return
        pair = PAIRS[self.begun]
        self.begun += 1
        self.struck.append("names collide")
        for tenant in self.random.sample(pair, 2):
            self._ask(tenant)
        for _ in range(self.random.randint(0, 4)):
            tenant = self.random.choice(pair)
            after_ms = self.random.choice(AGAIN_MS)
            self.world.stage.later(after_ms, lambda tenant=tenant: self._ask(tenant))  # type: ignore[misc]

    def ask_last(self) -> None:
        """All ask once more, when everybody knows whose topics are there."""
        self.world.stage.sleep(KNOWN_MS)
        for pair in PAIRS[: self.begun]:
            for tenant in pair:
                self._ask(tenant)
                self.last.add(self.world.load.sent[-1].name)

    def _ask(self, tenant: str) -> None:
        load, number = self.world.load, len(self.world.load.sent)
        at_ms = self.world.broker.now_ms() + self.random.choice((0, 200, 2_000, 6_000))
        request_id = f"id-{number}" if self.random.random() < 0.5 else None
        load.send(
            Sent(f"c{number}", tenant, f"plain-{number}", "UPSERT", {"at": at_ms}, request_id)
        )

    def losers(self) -> set[str]:
        """Those whose topic is not there."""
        asked = {tenant for pair in PAIRS[: self.begun] for tenant in pair}
        return {tenant for tenant in asked if FIRED + tenant not in self.world.broker.topics}

    def only_losers_wait(self) -> bool:
        """Whether all that waits is of those."""
        losers = self.losers()
        return all(
            key.partition(b"/")[0].decode() in losers
            for log in self.world.broker.topics[CHANGELOG]
            for key, row in fold(log, 1 << 62).items()
            if key[:1] != b"\0" and row[1] == PENDING
        )

    def refused(self, sent: Sent, kept: list[Entry]) -> bool:
        """Whether a request was refused since a name was another tenant's."""
        codes = [dict(each.headers or ()).get("belfry-error-code") for each in kept]
        paired = any(sent.tenant in pair for pair in PAIRS[: self.begun])
        had = sent.name in self.last and sent.tenant not in self.losers()
        return paired and codes == [REFUSAL] and not had

    def check(self, definitions: dict[str, Definition]) -> Iterator[str]:
        """What is wrong with who has which topic; what can never fire is left out from here on."""
        for pair in PAIRS[: self.begun]:
            there = [tenant for tenant in pair if FIRED + tenant in self.world.broker.topics]
            if len(there) != 1:
                yield f"I54 of {' and '.join(pair)} these have topics: {there}"
        losers = self.losers()
        for name in [each for each, what in definitions.items() if what.sent.tenant in losers]:
            if name in self.last:
                yield f"I54 {name} was accepted, and its name is another tenant's"
            self.struck.append("a name lost")
            del definitions[name]
