"""One run: a scenario, a seed, and what the checker has to say about it."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Any, Final

import structlog

from tests.simulation import crowded, faults, growing
from tests.simulation.checker import check
from tests.simulation.coverage import SAID, counted
from tests.simulation.delivered import ends_of
from tests.simulation.grown import moved
from tests.simulation.raised import Raised
from tests.simulation.replayed import OTHERS, played_again
from tests.simulation.respreading import parted
from tests.simulation.scenario import Scenario
from tests.simulation.seams import HURRIED, replaced, slotted
from tests.simulation.stage import enter, here, leave
from tests.simulation.stores import check_believed
from tests.simulation.treated import struck_by_policies
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.verifying import Passes

# What a partition may start over from; anything else is a bug.
EXPECTED: Final = (
    *("ConnectionError", "Damaged", "Kafka does not answer", "KafkaException", "LostRange"),
)
# Of which worlds `belfry verify` makes a pass, and the share of them that some are.
SOME, ALL, ALONE, NONE = "some", "all", "alone", "none"
VERIFIED: Final = 0.5


@dataclass(slots=True)
class Report:
    """What came of one run."""

    scenario: str
    seed: int
    problems: list[str]
    fingerprint: str
    fired: int = 0
    requests: int = 0
    transactions: int = 0
    struck: list[str] = field(default_factory=list)
    replayed: Counter[str] = field(default_factory=Counter)
    # States, transitions, outcomes and lines of the log that this world came by (`coverage`).
    covered: Counter[str] = field(default_factory=Counter)
    # What `belfry verify` looked at, where it made a pass.
    verified: Counter[str] = field(default_factory=Counter)
    # Errors of a program that is wrong in itself, by kind and place (`raised`).
    raised: Counter[str] = field(default_factory=Counter)


def simulate(scenario: Scenario, seed: int, *, replays: bool = False, verify: str = SOME) -> Report:
    """Play a seed, let all faults end, and judge.

    With `replays` an engine plays its logs again.  `verify` says of which worlds `belfry verify`
    makes a pass: `SOME`, which the seed draws, `ALL`, `NONE`, or `ALONE`: of all, and what else
    is found is left unsaid.
    """
    with slotted(scenario.slots), _undisturbed() if scenario.preempted else nullcontext():
        return _simulated(scenario, seed, replays=replays, verify=verify)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Within it Python looks for no garbage, and there is none of other worlds.

    What is left of a world has generators that run their last lines when they are found.  In a
    traced thread those lines draw from the seed, whenever that is: the run would be another one
    than that of the seed alone.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _simulated(scenario: Scenario, seed: int, *, replays: bool, verify: str) -> Report:
    world = World(scenario, seed)
    notes: list[str] = []
    covered: Counter[str] = Counter()
    raised = Raised()
    world.stage.failed = raised.error
    looks = Random(f"{seed}/verify")
    _listen(notes, covered, raised)
    enter(world.stage)
    try:
        with replaced(_doors(world)), counted(covered):
            passes = _passes(world, looks, verify)
            if passes is not None and world.hanging is not None:
                world.hanging.looks = passes.look_while_hanging
            _play(world, looks, passes)
            healed = world.drain()
            crowds = crowded.found_in(world)
            world.close()
            believed = check_believed(world)
            if passes is not None:
                passes.look(last=True)
                passes.close()
    finally:
        leave()
    problems = [f"I20 a task ended: {each}" for each in world.stage.failures]
    problems += [f"I20 {note}" for note in notes]
    problems += [f"I20 refused: {each}" for life in world.lives for each in life.refusals]
    if not healed:
        problems.append("I15 the backlog does not drain")
    problems += world.problems + check(world, covered) + believed + crowds
    replayed: Counter[str] = Counter()
    if replays and scenario.name not in OTHERS:
        differing, replayed = played_again(world)
        problems += [f"I26 replay: {each}" for each in differing]
    found = [] if passes is None else passes.found
    problems = found if verify == ALONE else problems + found
    return Report(
        scenario.name,
        seed,
        problems,
        _fingerprint(world),
        sum(len(world.committed(topic)) for topic in world.broker.topics if "fired" in topic),
        len(world.load.sent),
        world.broker.decided,
        _struck(world),
        replayed,
        covered,
        Counter() if passes is None else passes.looked,
        raised.counts,
    )


def _passes(world: World, random: Random, verify: str) -> Passes | None:
    """Passes of `belfry verify` over a world, if this world is one of those."""
    drawn = random.random() < VERIFIED
    if verify == NONE or (verify == SOME and not drawn):
        return None
    # What commands need takes long to import.
    from tests.simulation.verifying import Passes

    return Passes(world)


def _doors(world: World) -> list[tuple[Any, str, Any]]:
    """What else stands in where commands are given or workers are called, and in a hurry."""
    found = [] if world.growing is None else growing.doors()
    found += HURRIED if world.scenario.hurried else []
    found += crowded.doors(world.scenario.room) if world.scenario.room else []
    if world.calling is not None:
        from tests.simulation import ports

        found += ports.doors()
    return found


def _struck(world: World) -> list[str]:
    """What came about in a world, a name each time."""
    found = [step for life in world.lives for step in life.machine.struck]
    rules, cluster = world.load.rules, world.broker.cluster
    found += [] if cluster is None else [*cluster.struck, *["a request lost"] * world.load.lost]
    found += [] if world.load.placing is None else world.load.placing.struck
    found += [*_wraps(world), *world.days.struck, *_by_features(world), *crowded.struck_in(world)]
    found += [] if world.growing is None else [*world.growing.struck, *moved(world)]
    return found + struck_by_policies(world) + ([] if rules is None else rules.struck)


def _by_features(world: World) -> list[str]:
    """What hung, what moved by its spread, what targets did, and how deliveries ended."""
    found = [] if world.hanging is None else list(world.hanging.struck)
    found += [] if world.late_markers is None else world.late_markers.struck
    found += [] if world.colliding is None else world.colliding.struck
    found += [] if world.reading is None else world.reading.struck
    found += [] if world.calling is None else world.calling.struck
    if world.respreading is not None:
        found += [*world.respreading.struck, *parted(world)]
    return found if world.hooks is None else [*found, *world.hooks.struck, *ends_of(world)]


def _wraps(world: World) -> list[str]:
    """Once for each manifest that has come to the slot of an earlier one."""
    slots, found = world.scenario.slots, list[str]()
    for log in world.broker.topics["belfry.changelog"] if slots else ():
        manifests = sum(each.committed and (each.key or b"")[:2] == b"\0m" for each in log.history)
        found += ["a slot used again"] * max(manifests - slots, 0)
    return found


def _play(world: World, looks: Random, passes: Passes | None) -> None:
    scenario, random = world.scenario, world.random
    world.open()
    length_ms = scenario.seconds * 1000.0
    instants = [
        (random.random() * length_ms, world.load.send_one) for _ in range(scenario.requests)
    ]
    for name, count in scenario.faults.items():
        fault = faults.KINDS[name]
        instants += [
            (random.random() * length_ms, lambda fault=fault: fault(world))  # type: ignore[misc]
            for _ in range(count)
        ]
    changes = [random.random() * length_ms for _ in range(scenario.changes)]
    instants += [(at_ms, world.changes.change) for at_ms in changes]
    instants.sort(key=lambda each: each[0])
    # Behind which of them somebody looks; in every other world nobody does.
    looked_at = looks.randrange(2 * len(instants) + 1)
    for number, (at_ms, act) in enumerate(instants):
        left_ms = at_ms + world.slept_ms - world.stage.now_ms
        if left_ms > 0:
            world.stage.sleep(left_ms)
        act()
        if passes is not None and number == looked_at:
            passes.look(last=False)
    world.heal()


def _listen(notes: list[str], covered: Counter[str], raised: Raised) -> None:
    """Hear what the shell's log says of a partition that starts over."""

    def hear(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> str:
        cause = str(event.get("cause", ""))
        # A process that was killed writes nothing while its threads unwind.
        killed = here().current.host.dead
        if not killed:
            covered[f"{SAID} {event.get('event')}"] += 1
        if event.get("exc_info") and not killed:
            raised.of_log(event["exc_info"])
        if event.get("exc_info") and not killed and not cause.startswith(EXPECTED):
            notes.append(f"{event.get('event')}: {cause or event.get('reason')}")
        if event.get("reason") == "check failed" and not killed:
            raised.of_fault(event["where"])
            # Somebody was refused or held back, and the partition went on: a bug all the same.
            notes.append(f"{event.get('event')}: {' '.join(event['where'].split()[-12:])}")
        raise structlog.DropEvent

    structlog.configure(processors=[hear], cache_logger_on_first_use=False)


def _fingerprint(world: World) -> str:
    digest = blake2b(digest_size=8)
    for topic in sorted(world.broker.topics):
        for log in world.broker.topics[topic]:
            for entry in log.history:
                digest.update(repr((topic, entry[:5], entry.order)).encode())
    return digest.hexdigest()
