"""People who give a belfry partitions while it runs, and have key groups lie in them.

The shipped command plays (`belfry.cli.rebalance_grow`), on a machine of its own, which is killed
amid it as often as not; then somebody gives it again.  What it asks workers over HTTP, the shipped
routes answer (`belfry.api.routes.key_groups`), each of what its worker knows.  Transport alone is
the simulator's: a worker that is dead, paused or cut off is silent.

    grow   ─► GET  /v1/key-groups ─► topics ─► GET … GET ─► each partition has an owner
    move   ─► POST /v1/key-groups/7/move ─► a signed record at the home; refused: asked again
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException

from tests.simulation import primitives
from tests.simulation.disk import Disk, SimRocks
from tests.simulation.hearsay import Hearsay
from tests.simulation.machine import Machine, machine
from tests.simulation.murmur import partition_of
from tests.simulation.stage import Host, here

if TYPE_CHECKING:
    from tests.simulation.worker import SimWorker
    from tests.simulation.world import World

LEAST_GROUPS: Final = 4_096
# Partitions beside homes.
MOST_ADDED: Final = 3
ANSWER_MS: Final = 1_000.0
# How often, and how soon, a move is asked for that was refused.
TRIES: Final = 24
AGAIN_MS: Final = 250.0
LIMIT_S: Final = 20.0
# By this chance a worker is killed behind a step of growth, and so much later.
KILLED: Final = 0.7
BEHIND_MS: Final = (1.0, 50.0, 700.0, 1_500.0, 3_000.0)
# By this chance somebody has added a partition to the input alone, before growth; so soon.
BY_HAND: Final = 0.7
SOON_MS: Final = 1_000.0
# Behind all faults the command ends within this time.
QUIET_MS: Final = 60_000.0
# And within this time who sent requests on keeps state: a broker may hear late (`hearsay`), and a
# worker looks every few seconds.
KEEPS_MS: Final = 40_000.0
SCHEDULES: Final = "belfry.schedules"
CHANGELOG: Final = "belfry.changelog"


def doors() -> list[tuple[Any, str, Any]]:
    """What stands in for time, transport and the other workers in commands and routes."""
    from belfry.api.routes import key_groups
    from belfry.api.workers import holdings
    from belfry.cli import rebalance_grow

    return [
        (rebalance_grow, "monotonic", primitives.monotonic),
        (rebalance_grow, "sleep", primitives.sleep),
        (rebalance_grow, "Remote", SimRemote),
        (key_groups, "ask_others", ask_others),
        (holdings, "RocksMap", SimRocks),
    ]


def answered(asked: Coroutine[Any, Any, Any]) -> Any:
    """What a route answers: nothing that it waits for takes an event loop."""
    try:
        asked.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("a route waits for what never comes")


async def ask_others(view: Any, _parts: Any, _caller: Any, _target: Any, _kind: Any) -> Any:
    """The answers of all other members of the group, and who is silent."""
    told, silent = {}, []
    for name, worker in view.members().items():
        if worker is view.worker:
            continue
        if worker is None or not reached(worker):
            silent.append(name)
        else:
            told[name] = worker_routes(view.world, worker).own()
    return SimpleNamespace(told=told, silent=silent)


def reached(worker: SimWorker) -> bool:
    """Whether a worker answers: there and back."""
    mine, its = machine(), worker.machine
    if mine.cut or its.cut or its.dead or its.paused or worker.owners is None:
        here().sleep(ANSWER_MS)
        return False
    here().sleep(mine.weather.latency_ms() + its.weather.latency_ms())
    return worker.alive and not its.paused


class View:
    """What a route sees of the group: its members, by name, as the group knows them."""

    def __init__(self, world: World, worker: SimWorker) -> None:
        self.world, self.worker = world, worker
        self.identity = SimpleNamespace(worker_id=worker.machine.name)

    def members(self) -> dict[str, SimWorker | None]:
        """Workers of the group; None where one has died and the group does not know yet."""
        group: Any = self.world.group
        lives = {each.machine: each for each in self.world.lives if each.alive}
        return {each.name: lives.get(each) for each in group.members()}

    def assignment_map(self) -> Any:
        """The releases of members: none is told."""
        return SimpleNamespace(entries=[])


def worker_routes(world: World, worker: SimWorker) -> Any:
    """The shipped routes of key groups, of one worker."""
    from belfry.api.routes.key_groups import KeyGroupRoutes
    from belfry.api.workers.holdings import Holdings
    from belfry.api.workers.key_group_moves import KeyGroupMoves

    opener, owners, counted = worker.opener, worker.owners, worker.counted
    assert opener is not None, "it is asked once it has begun"
    assert owners is not None, "it is asked once it has begun"

    async def put(asked: Any, _within_s: float) -> int:
        log = world.broker.log(SCHEDULES, asked.partition)
        return world.broker.append(log, (asked.key, asked.value, list(asked.headers))).offset

    view: Any = View(world, worker)
    metrics: Any = SimpleNamespace(moves=SimpleNamespace(ended=list))
    ready = SimpleNamespace(
        moves=KeyGroupMoves(worker.settings, counted, put),
        holdings=Holdings(owners, opener.tenants, counted.homes),
    )
    parts: Any = SimpleNamespace(ready=ready, now_ms=worker.machine.wall_ms)
    return KeyGroupRoutes(view, metrics, parts)


class SimRemote:
    """`Remote` of commands: asks some worker."""

    def __init__(self, session: Any) -> None:
        self._world: World = session.world

    def get(self, _path: str) -> Any:
        """What all workers know of key groups."""
        worker = self._some()
        return answered(worker_routes(self._world, worker).everywhere(None)).model_dump()

    def move(self, group: int, target: int) -> None:
        """Ask for a move; `Problem` where it is refused."""
        caller = SimpleNamespace(name="operator")
        answered(worker_routes(self._world, self._some()).move(caller, group, target))

    def _some(self) -> SimWorker:
        from belfry.cli.failures import CommandError

        worker = machine().weather.random.choice(self._world.workers)
        if not reached(worker):
            raise CommandError("The worker does not answer.")
        return worker


class Session:
    """What the command has of its caller: settings, a client of Kafka, somebody to tell."""

    def __init__(self, world: World) -> None:
        from tests.simulation.admin import SimAdmin

        self.world, self.settings = world, world.settings
        self.printer = SimpleNamespace(note=lambda _said: None, one=lambda *_told: None)
        self.admin = lambda: (None, SimAdmin({}))


class Growing:
    """All that operators do in one world."""

    def __init__(self, world: World, random: Random) -> None:
        self._world, self._random = world, random
        self.struck: list[str] = []
        # How many partitions were asked for last.
        self.partitions = world.scenario.partitions
        self._machines: list[Machine] = []

    def open(self) -> None:
        """From now on brokers hear late of what changes; the first growth is early."""
        world = self._world
        drawn = Random(self._random.random())
        world.broker.hearsay = Hearsay(world.broker, drawn, self._changed)
        if self._random.random() < BY_HAND:
            assert world.load.placing is not None, "whose requests go there is drawn by `placing`"
            world.stage.later(self._random.uniform(0.0, SOON_MS), world.load.placing.add)
        begins_ms = self._random.uniform(0.0, 2 * SOON_MS)
        world.stage.later(world.scenario.grows_after_ms + begins_ms, self.begin)

    def _changed(self, topic: str) -> None:
        """Kill a worker behind a step, mostly: it starts again among brokers that may be late."""
        if self._random.random() < KILLED:
            self._world.stage.later(
                self._random.choice(BEHIND_MS), lambda: self._strike(topic.removeprefix("belfry."))
            )

    def _strike(self, step: str) -> None:
        world, worker = self._world, self._random.choice(self._world.workers)

        def kill() -> None:
            self.struck.append(f"killed behind {step}")
            world.crash(worker)
            world.stage.later(self._random.choice((20.0, 300.0)), lambda: world.restart(worker))

        if not worker.machine.dead:
            # No action of a timer may wait or end.
            world.stage.spawn("kill", kill, Host("kill"))

    def begin(self) -> None:
        """Give the command, for more than there are where there may be; killed amid it, perhaps."""
        most = self._world.scenario.partitions + MOST_ADDED
        there = len(self._world.broker.topics[SCHEDULES])
        self.partitions = max(self.partitions, min(most, there + self._random.choice((1, 1, 2))))
        self._give()

    def _give(self) -> None:
        operator = self._spawn("grows", self._grow)
        if self._random.random() < 0.5:
            lives_ms = self._random.random() * self._random.choice((60.0, 900.0, 4_000.0))
            self._world.stage.later(lives_ms, lambda: self._interrupt(operator))

    def _interrupt(self, operator: Machine) -> None:
        if operator.tasks and not operator.dead:
            self.struck.append("growth interrupted")
            self._kill(operator)
            self._world.stage.later(self._random.choice((50.0, 2_000.0)), self._give)

    def move(self) -> None:
        """Have the key group of a tenant lie elsewhere, in a partition that was added mostly."""
        from tests.simulation.load import TENANTS

        world, random = self._world, self._random
        homes, there = world.scenario.partitions, len(world.broker.topics[CHANGELOG])
        groups = -(-LEAST_GROUPS // homes) * homes
        group = partition_of(random.choice(TENANTS).encode(), groups)
        target = random.randrange(there)
        if there > homes:
            added = random.random() < 0.65
            target = random.randrange(homes, there) if added else group % homes
        self._spawn("moves", lambda: self._move(group, target))

    def finish(self) -> None:
        """Give the command once more, to its end: all that is undone is done."""
        stage = self._world.stage
        for operator in self._machines:
            self._kill(operator)
        operator = self._spawn("grows", self._grow)
        deadline_ms = stage.now_ms + QUIET_MS
        while operator.tasks and stage.now_ms < deadline_ms:
            stage.sleep(50.0)
            for worker in list(self._world.workers):
                self._world.restart(worker)
        if operator.tasks:
            self._world.problems.append("I15 the command that adds partitions does not end")
            self._kill(operator)
        self._await_keepers()

    def _await_keepers(self) -> None:
        """Wait until each partition that the changelog has is owned by one that keeps state."""
        world, deadline_ms = self._world, self._world.stage.now_ms + KEEPS_MS
        while (left := not_kept(world)) and world.stage.now_ms < deadline_ms:
            world.stage.sleep(500.0)
            for worker in list(world.workers):
                world.restart(worker)
        world.problems += [f"I49 {each}" for each in left]

    def _spawn(self, what: str, work: Any) -> Machine:
        world, number = self._world, len(self._machines)
        operator = Machine(
            f"operator-{number}", broker=world.broker, weather=world.weather, disk=Disk(Random(0))
        )
        self._machines.append(operator)
        world.stage.spawn(f"operator {what}", work, operator)
        return operator

    def _kill(self, operator: Machine) -> None:
        operator.dead = True
        for task in operator.tasks:
            here().wake(task)

    # -- on the operator's machine ---------------------------------------------------------------

    def _grow(self) -> None:
        """Until it ends well."""
        from belfry.cli.failures import CommandError
        from belfry.cli.rebalance_grow import GrowthRefused, grow

        session: Any = Session(self._world)
        while True:
            try:
                grow(session, to=self.partitions, limit=LIMIT_S, yes=True, dry=False)
            except GrowthRefused as error:
                # Somebody has added more to the input meanwhile.
                if error.code == "fewer_partitions":
                    self.partitions = len(self._world.broker.topics[SCHEDULES])
                self.struck.append(f"growth refused as {_words(error.code)}")
            except (CommandError, KafkaException, ConnectionError):
                pass
            else:
                self.struck.append("grown")
                return
            here().sleep(AGAIN_MS)

    def _move(self, group: int, target: int) -> None:
        from belfry.api.problems import Problem
        from belfry.cli.failures import CommandError

        session: Any = Session(self._world)
        remote = SimRemote(session)
        for _ in range(TRIES):
            with suppress(CommandError):
                try:
                    remote.move(group, target)
                except Problem as problem:
                    code = str(problem.more["code"])
                    self.struck.append(f"move refused as {_words(code)}")
                    if code == "lies_there":
                        return
                else:
                    self.struck.append("move asked for")
                    return
            here().sleep(AGAIN_MS)


def _words(code: str) -> str:
    return code.replace("_", " ")


def not_kept(world: World) -> list[str]:
    """Partitions with a place for state in which nobody keeps any, at this moment."""
    there = range(len(world.broker.topics[CHANGELOG]))
    owned = {
        runner.partition: runner.owned.keeps_state
        for worker in world.workers
        if worker.alive and worker.owners is not None
        for runner in worker.owners.runners()
        if runner.owned is not None
    }
    how = {None: "has no owner", False: "is owned by one that only sends requests on"}
    return [f"partition {each} {how[owned.get(each)]}" for each in there if not owned.get(each)]
