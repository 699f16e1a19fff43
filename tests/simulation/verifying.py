"""`belfry verify --state` beside a world: the command's own passes over the topics (I50).

    world's topics ─► SimConsumer, SimAdmin ─► session, readers, state file, rules ─► findings
                      of the simulator         as the command has them

    10:00:00  a pass amid the world, in every other one: what is open and undecided hides the rest
    10:00:15  the faults end, all is quiet
    10:00:31  the last pass goes on from there, or begins: what is missing now stays away

The command runs as shipped, from `verify_once` on.  What stands in are the clients of Kafka, the
time of day, a state file that is kept in memory, and how many manifests a world keeps.  Who looks
is an onlooker: it takes no time of the world and draws nothing from its seed, so a world is the
same run whether it is verified or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from belfry.cli import verify_cluster, verify_outputs, verify_service
from belfry.cli.session import Session
from belfry.cli.verify import DAY_MS, line
from belfry.cli.verify_cluster import PassTerms
from belfry.cli.verify_service import VerifyRun
from belfry.cli.verify_state import StateFile
from belfry.client import kafka, tenants
from belfry.client.errors import Unavailable
from belfry.store.signatures import FILLER
from belfry.verification import sequence
from belfry.verification.findings import Breach, Breached, CheckCounts, Spot
from belfry.verification.rows import MANIFESTS_KEPT
from tests.simulation import clients
from tests.simulation.admin import SimAdmin
from tests.simulation.beside import LATEST_MS, beside_of
from tests.simulation.disk import Disk
from tests.simulation.governed import LOOSE, Governed
from tests.simulation.machine import Machine, Weather
from tests.simulation.readers import SimConsumer
from tests.simulation.seams import stand_in
from tests.simulation.stage import here
from tests.simulation.tenant_policies import TOPIC as POLICIES
from tests.simulation.trail import CHANGELOG, FIRED

if TYPE_CHECKING:
    from tests.simulation.world import World

# As the command has them but for the grace: milliseconds until what is due is overdue, and for how
# long what is settled is remembered.
TERMS: Final = PassTerms(grace_s=0.0, overdue_ms=60_000, forget_ms=7 * DAY_MS)


class Onlooker(Machine):
    """A machine beside the world, to which the broker is no way at all."""

    def travel(self, timeout_ms: float) -> bool:
        """Be there at once."""
        del timeout_ms
        return True


class Glance(SimConsumer):
    """A reader that takes what is there, and waits for no more."""

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[clients.SimMessage]:
        """Messages that are there."""
        del timeout
        return super().consume(num_messages, 0.0)


class KeptFile(StateFile):
    """A state file that the next pass finds as it was saved."""

    def close(self) -> None:
        """Forget what was not saved."""
        self.rows.execute("ROLLBACK")
        self.rows.execute("BEGIN")


class Passes:
    """Passes over one world: what they have found, and how much they have looked at."""

    def __init__(self, world: World) -> None:
        self.found: list[str] = []
        self.looked: Counter[str] = Counter(worlds=1)
        self._world = world
        self._named: set[Spot] = set()
        self._file: KeptFile | None = None

    def look_while_hanging(self) -> None:
        """Make a pass though readers do not see all: it has to end, and to call nothing lost."""
        self.looked.update(hung=1)
        self.look(last=False, calm=True)

    def look(self, *, last: bool, calm: bool = False) -> None:
        """Make a pass; one amid the world may meet a leader that does not know its log yet.

        That is no excuse where it is `calm`, or the last one.
        """
        session, told = Session({}), list[tuple[list[Breached], CheckCounts]]()
        # Those of a worker have all that a command asks for.
        settings: Any = self._world.settings
        session.settings = settings
        run = VerifyRun(None, [], TERMS)
        try:
            with stand_in(self._doors()), self._looking_on():
                verify_service.verify_once(session, run, lambda *of: told.append(of))
        except Exception as error:  # noqa: BLE001  # whatever it is, nothing was verified
            # An open transaction may hide policies to the end, and the command says so.
            logs = self._world.broker.topics[POLICIES]
            may_fail = not (last or calm) or any(log.open for log in logs)
            if not (may_fail and isinstance(error, Unavailable)):
                self.found.append(f"I50 no pass: {type(error).__name__}: {error}")
            return
        [(found, counts)] = told
        strangers = self._strangers()
        self._named |= strangers.intersection(each.spot for each in found)
        wrong = [each for each in found if each.spot not in strangers and not self._excused(each)]
        when = "" if last else "amid the world, "
        self.found += [f"I50 {when}{line(each)}" for each in wrong]
        if last:
            unnamed = sorted(strangers - self._named)
            self.found += [f"I50 a stranger's record is not told of: {each}" for each in unnamed]
        self.looked.update(passes=1, **asdict(counts))
        self.looked.update(strangers=len(self._named) if last else 0)

    def _excused(self, found: Breached) -> bool:
        """Whether an event came twice while its policy promised no more, which promised more later.

        It left beside transactions then; `belfry verify` knows of no policy but the last.
        """
        if found.breach is not Breach.DOUBLED:
            return False
        spot, world, governed = found.spot, self._world, Governed(self._world)
        log = world.broker.log(spot.topic, spot.partition)
        [entry] = [each for each in log.history if each.offset == spot.offset]
        fire_id = dict(entry.headers or ())["belfry-fire-id"] or b""
        left = [each.timestamp_ms for _, _, each in beside_of(world).get(fire_id, ())]
        tenant = spot.topic.removeprefix(FIRED)
        return any(
            LOOSE in governed.of(tenant, "guarantee", at_ms - round(LATEST_MS), at_ms)
            for at_ms in left
        )

    def _strangers(self) -> set[Spot]:
        """Where rows lie in the changelog that no worker wrote: workers write transactions."""
        return {
            Spot(CHANGELOG, log.partition, entry.offset)
            for log in self._world.broker.topics[CHANGELOG]
            for entry in log.entries
            if entry.committed and entry.txn is None and entry.key != FILLER
        }

    def close(self) -> None:
        """Look no more."""
        if self._file is not None:
            self._file.rows.close()

    def _doors(self) -> list[tuple[Any, str, Any]]:
        """Clients of Kafka, the time of day and the file, in the rooms of commands."""
        return [
            (kafka, "Consumer", Glance),
            (kafka, "AdminClient", SimAdmin),
            (verify_outputs, "headers_of", clients.headers_of),
            (verify_cluster, "time", lambda: self._world.broker.now_ms() / 1000),
            (verify_service, "StateFile", self._kept),
            # Where an open transaction hides policies, a second passes with each look for more.
            (tenants, "monotonic", count().__next__),
            # So few in some worlds (`slotted`).
            (sequence, "MANIFESTS_KEPT", self._world.scenario.slots or MANIFESTS_KEPT),
        ]

    def _kept(self, path: Path | None, world: str) -> KeptFile:
        if self._file is None:
            self._file = KeptFile(path, world)
        return self._file

    @contextmanager
    def _looking_on(self) -> Iterator[None]:
        """Let the current task belong to an onlooker, who is told the truth about topics."""
        calm, broker = Weather(Random(0)), self._world.broker
        calm.calm()
        onlooker = Onlooker("onlooker", broker=broker, weather=calm, disk=Disk(Random(0)))
        task, hearsay = here().current, broker.hearsay
        before, task.host, broker.hearsay = task.host, onlooker, None
        try:
            yield
        finally:
            task.host, broker.hearsay = before, hearsay
