"""Faults: what may strike a world while requests come.

Each is a function that takes the world and draws the rest; a scenario says how many of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belfry.store.signatures import FILLER
from tests.simulation.feature_faults import (
    ask_move,
    grow,
    move_group,
    newer_key,
    redrive,
    redrive_together,
)
from tests.simulation.forging import forge
from tests.simulation.load import TENANTS
from tests.simulation.machine import Machine, Strike
from tests.simulation.reader_faults import (
    call,
    collide,
    fail_host,
    hang,
    hang_for_others,
    lose_marker,
    lose_marker_for_others,
    read_back,
    respread,
    slow_marker,
)
from tests.simulation.store_faults import (
    days_away,
    days_damaged,
    days_silent,
    days_slow,
    store_away,
    store_silent,
    store_slow,
)
from tests.simulation.topic_targets import refuse_target
from tests.simulation.worker import SimWorker
from tests.simulation.world import World

MOST_ADDED: Final = 2
DAY_MS: Final = 86_400_000
NIGHT_MS: Final = DAY_MS * 1.1
# A clock that drifts is set so often, by little.
DRIFT_LOOK_MS: Final = 50.0
STEPS: Final = (
    *("S0", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9"),
    *("R1", "R2", "R3", "R4"),
)
STORED: Final = "P1"
FILED: Final = ("D1", "D2")


def _one(world: World) -> SimWorker:
    return world.random.choice(world.workers)


def _restart_soon(world: World, worker: SimWorker) -> None:
    world.stage.later(world.random.choice((20.0, 300.0, 4_000.0)), lambda: world.restart(worker))


def crash(world: World) -> None:
    """SIGKILL at any instant."""
    worker = _one(world)
    world.crash(worker)
    _restart_soon(world, worker)


def crash_at(world: World) -> None:
    """SIGKILL at a named step."""
    worker = _one(world)
    _strike(world, worker, _killing(world, worker))


def crash_stored(world: World) -> None:
    """SIGKILL when large payloads are stored, and what claims them is not committed."""
    worker = _one(world)
    after = world.random.choice((1, 1, 3))
    worker.machine.strikes.append(Strike(STORED, after, _killing(world, worker)))


def _killing(world: World, worker: SimWorker) -> Callable[[Machine], None]:
    def kill(_machine: Machine) -> None:
        _restart_soon(world, worker)
        world.crash(worker)

    return kill


def pause_at(world: World) -> None:
    """SIGSTOP at a named step, and SIGCONT when a session has passed, or sooner."""
    worker = _one(world)

    def stop(machine: Machine) -> None:
        ms = world.random.choice((100.0, 2_500.0, 6_000.0))
        world.stage.later(ms, lambda: world.stage.resume(machine))
        world.stage.pause(machine)

    _strike(world, worker, stop)


def _strike(world: World, worker: SimWorker, what: Callable[[Machine], None]) -> None:
    after = world.random.choice((1, 1, 2, 5, 12))
    worker.machine.strikes.append(Strike(world.random.choice(STEPS), after, what))


def stop(world: World) -> None:
    """SIGTERM."""
    worker = _one(world)
    worker.terminate()
    world.stage.later(6_000.0, lambda: world.restart(worker))


def all_down(world: World) -> None:
    """A power cut: every process is gone for some seconds."""
    for worker in list(world.workers):
        world.crash(worker)
        world.stage.later(3_000.0, lambda worker=worker: world.restart(worker))  # type: ignore[misc]


def cut(world: World) -> None:
    """The network of one machine is gone for some seconds."""
    machine = _one(world).machine
    machine.cut = True

    def mend() -> None:
        machine.cut = False

    world.stage.later(world.random.choice((300.0, 3_000.0, 11_000.0)), mend)


def step_clock(world: World) -> None:
    """A clock is set, forward or back, by little or much."""
    machine = _one(world).machine
    machine.skew_ms += world.random.choice((-40_000, -700, -200, -30, 30, 200, 700, 40_000))

    def mend() -> None:
        machine.skew_ms = 0.0

    world.stage.later(world.random.choice((500.0, 4_000.0)), mend)


def skew(world: World) -> None:
    """A clock is wrong by less than the tolerance, and stays so."""
    _one(world).machine.skew_ms = world.random.choice((-400.0, -50.0, 50.0, 300.0))


def drift(world: World) -> None:
    """A machine's clocks run fast or slow for some seconds: both together, or its wall clock alone.

    Both together as a crystal does, by one in two thousand at most; alone as one that is set right
    slowly, by up to one in a hundred.
    """
    machine = _one(world).machine
    both = world.random.random() < 0.5
    rate = world.random.choice((-1, -0.1, 0.1, 1)) * (0.0005 if both else 0.01)
    until_ms = world.stage.now_ms + world.random.choice((2_000.0, 9_000.0))

    def go_on() -> None:
        if world.stage.now_ms < until_ms and not machine.dead:
            machine.skew_ms += rate * DRIFT_LOOK_MS
            machine.slept_ms -= both * rate * DRIFT_LOOK_MS
            world.stage.later(DRIFT_LOOK_MS, go_on)

    go_on()


def suspend(world: World) -> None:
    """A machine sleeps: its monotonic clock stands still, and its wall clock goes on."""
    machine = _one(world).machine
    lasts_ms = world.random.choice((150.0, 1_500.0, 5_000.0))

    def wake() -> None:
        machine.slept_ms += lasts_ms
        world.stage.resume(machine)

    world.stage.later(lasts_ms, wake)
    world.stage.pause(machine)


def wake_amid(world: World) -> None:
    """SIGSTOP at a named step, and SIGCONT while another one takes over: before or after a fence.

    At the latest after nine seconds, where nobody does.
    """
    worker = _one(world)

    def stop(machine: Machine) -> None:
        def wake(_successor: Machine) -> None:
            world.stage.resume(machine)

        step = world.random.choice(STEPS[-4:])
        for other in world.workers:
            if other is not worker:
                other.machine.strikes.append(Strike(step, 1, wake))
        world.stage.later(9_000.0, lambda: world.stage.resume(machine))
        world.stage.pause(machine)

    _strike(world, worker, stop)


def rebalance(world: World) -> None:
    """The group deals its partitions anew, without a reason."""
    world.group.rebalance()


def lose_disk(world: World) -> None:
    """A process is killed, and its directory deleted."""
    worker = _one(world)
    world.crash(worker)
    worker.machine.disk.lose()
    _restart_soon(world, worker)


def old_disk(world: World) -> None:
    """A process is killed, and its directory put back as it was some time ago."""
    worker = _one(world)
    world.crash(worker)
    worker.machine.disk.put_back()
    _restart_soon(world, worker)


def copy_disk(world: World) -> None:
    """Somebody copies a directory."""
    _one(world).machine.disk.copy()


def damage_disk(world: World) -> None:
    """A block of a store is damaged."""
    _one(world).machine.disk.damage()


def refuse_topic(world: World) -> None:
    """The output topic of a tenant refuses records for some seconds."""
    topic = f"belfry.fired.{world.random.choice(TENANTS)}"
    world.broker.refused[topic] = "not authorised"

    def mend() -> None:
        world.broker.refused.pop(topic, None)

    world.stage.later(2_500.0, mend)


def stranger_in_changelog(world: World) -> None:
    """A stranger's transaction is open in a partition of the changelog, and is rolled back."""
    _stranger(world, "belfry.changelog", world.random.choice((300.0, 3_000.0, 9_000.0)))


def stranger_in_input(world: World) -> None:
    """A stranger's transaction is open in a partition of the requests, and is rolled back."""
    _stranger(world, "belfry.schedules", world.random.choice((300.0, 3_000.0, 9_000.0)))


def stranger_in_policies(world: World) -> None:
    """A stranger's transaction is open among the policies for longer than a start may take."""
    _stranger(world, "belfry.tenants", 45_000.0)


def _stranger(world: World, topic: str, lasts_ms: float) -> None:
    name = f"stranger-{world.stage.now_ms:.3f}"
    place = (topic, world.random.randrange(world.scenario.partitions))
    producer = (name, world.broker.init(name, lambda _ms: None))
    world.broker.produce(producer, place, [(b"stranger", name.encode(), None)], 2 * lasts_ms)
    world.stage.later(lasts_ms, lambda: world.broker.end(producer, "abort"))


def write_in_changelog(world: World) -> None:
    """A stranger writes into the changelog: rubbish, and copies of rows, the newest included."""
    log = world.random.choice(world.broker.topics["belfry.changelog"])
    rows = [entry for entry in log.entries if entry.key not in (None, FILLER)]
    copied = [*world.random.sample(rows, min(len(rows), 6)), *rows[-2:]]
    records = [(entry.key, entry.value, entry.headers) for entry in copied]
    rubbish = [(b"a/1", b"\1\1", None), (b"order", b"{}", None), (b"\0m\0\0", None, None)]
    for record in world.random.sample([*records, *rubbish], len(records) + len(rubbish)):
        world.broker.append(log, record, None)


def copy_lost_step(world: World) -> None:
    """A stranger writes a step into the changelog once more that was rolled back, all of it."""
    logs = world.broker.topics["belfry.changelog"]
    for log in world.random.sample(logs, len(logs)):
        lost = [entry for entry in log.entries if entry.txn and entry.txn.outcome == "abort"]
        ended = [entry.txn for entry in lost if (entry.key or b"").startswith(b"\0m")]
        if ended:
            for entry in [each for each in lost if each.txn is ended[-1] and not each.marker]:
                world.broker.append(log, (entry.key, entry.value, entry.headers), None)
            return


def copy_at_once(world: World) -> None:
    """For a while a stranger copies all batches of the changelog as soon as they lie there."""
    until_ms = world.stage.now_ms + world.random.choice((20.0, 300.0, 1_500.0))
    world.broker.copied_until_ms = until_ms


def compact(world: World) -> None:
    """The broker compacts the changelog; tombstones stay."""
    for log in world.broker.topics["belfry.changelog"]:
        log.compact(world.broker.now_ms(), DAY_MS)


def night(world: World) -> None:
    """Everybody is away for more than a day; tombstones go; some come back with old state."""
    for worker in list(world.workers):
        world.crash(worker)
    for worker in world.workers:
        if world.random.random() < 0.7:
            worker.machine.disk.put_back()
    before_ms = world.stage.now_ms
    world.stage.sleep(NIGHT_MS)
    for log in world.broker.topics["belfry.changelog"]:
        log.compact(world.broker.now_ms(), DAY_MS)
    for worker in list(world.workers):
        world.restart(worker)
    world.slept_ms += world.stage.now_ms - before_ms


def elect(world: World) -> None:
    """A broker goes away while a batch of it is not yet copied; others lead what it led."""
    begins = ("belfry.changelog", "belfry.fired.", "belfry.schedules", "belfry.lifecycle", "")
    assert world.broker.cluster is not None, "this world has one broker"
    world.broker.cluster.strikes.append(world.random.choice(begins))


def add_partition(world: World) -> None:
    """The input gets one more partition; its owner sends on what comes there."""
    assert world.load.placing is not None, "whose requests go there is drawn by `placing`"
    if len(world.broker.topics["belfry.schedules"]) < world.scenario.partitions + MOST_ADDED:
        world.load.placing.add()
        if world.growing is None:
            # Else members look by themselves.
            world.group.grow()


def forget_ids(world: World) -> None:
    """The broker forgets all transactional ids that have no transaction under way."""
    for known in world.broker.coordinated.values():
        known.forget()


def silent_registry(world: World) -> None:
    """The schema registry answers nothing for a while."""
    world.registry.be_silent(world.stage.now_ms, world.random.choice((300.0, 2_000.0, 5_000.0)))


def crash_filed(world: World) -> None:
    """SIGKILL when a day file is written, or when its rows are about to change."""
    worker = _one(world)
    step, after = world.random.choice(FILED), world.random.choice((1, 2, 4))
    worker.machine.strikes.append(Strike(step, after, _killing(world, worker)))


KINDS: Final[dict[str, Callable[[World], None]]] = {
    each.__name__: each
    for each in (
        crash, crash_at, pause_at, stop, all_down, cut, step_clock, skew, rebalance, lose_disk,
        old_disk, copy_disk, damage_disk, refuse_topic, compact, night,
        write_in_changelog, copy_lost_step, copy_at_once, stranger_in_changelog, stranger_in_input,
        stranger_in_policies, silent_registry, redrive,
        redrive_together, crash_stored, store_away, store_slow, store_silent, newer_key,
        crash_filed, days_away, days_slow, days_silent, days_damaged,
        move_group, drift, suspend, wake_amid, elect,
        add_partition, grow, ask_move, fail_host, hang, lose_marker, respread, read_back,
        hang_for_others, lose_marker_for_others, slow_marker, collide, call, refuse_target,
        forget_ids, forge,
    )
}  # fmt: skip
