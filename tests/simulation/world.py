"""One world: broker, group, machines, users; built from a scenario and a seed."""

from __future__ import annotations

from random import Random
from typing import Final

from belfry.engine.partition import PartitionEngine
from tests.simulation import topic_targets
from tests.simulation.broker import Broker, Entry, Log
from tests.simulation.calling import Calling
from tests.simulation.colliding import Colliding
from tests.simulation.day_objects import DayObjects
from tests.simulation.delivering import settled
from tests.simulation.direct import nodes_of
from tests.simulation.disk import Disk
from tests.simulation.feature_load import FeatureLoad
from tests.simulation.group import Group
from tests.simulation.growing import Growing
from tests.simulation.hanging import KINDS, LEFT_MS, Hanging
from tests.simulation.late_markers import LateMarkers
from tests.simulation.leading import LedGroup
from tests.simulation.load import TENANTS, Load
from tests.simulation.machine import Machine, Weather
from tests.simulation.objects import URL, Objects
from tests.simulation.payloads import Payloads
from tests.simulation.placing import Placing
from tests.simulation.policy_changes import PolicyChanges
from tests.simulation.preemption import Preemption
from tests.simulation.reading_back import ReadingBack
from tests.simulation.redriving import Redriving
from tests.simulation.registry import SimRegistry
from tests.simulation.replication import Cluster
from tests.simulation.respreading import Respreading
from tests.simulation.rules import RuleLoad
from tests.simulation.scenario import Scenario
from tests.simulation.stage import Stage
from tests.simulation.stores import check_disk
from tests.simulation.tenant_policies import TenantPolicies
from tests.simulation.timetable_load import TableLoad
from tests.simulation.webhooks import Hooks
from tests.simulation.worker import SimSender, SimWorker, settings_of

QUIET_MS: Final = 90_000.0
LOOK_MS: Final = 500.0
# A topic that was refused several times is tried again after a minute.
AGAIN_MS: Final = 75_000


class World:
    """Everything that one run consists of."""

    slept_ms = 0.0

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario = scenario.drawn(Random(f"{seed}/swarm"))
        self.random = Random(f"{seed}/faults")
        self.stage = Stage(Random(f"{seed}/turns"), traced=scenario.preempted)
        if scenario.preempted:
            self.stage.begins = Preemption(self.stage, Random(f"{seed}/lines")).trace
        self.broker = Broker(self.stage)
        self.broker.began_ms = scenario.began_ms(Random(f"{seed}/begin"))
        self._copy(Random(f"{seed}/copies"))
        self.objects = Objects(self.broker, Random(f"{seed}/objects"))
        self.days = DayObjects(self.broker, Random(f"{seed}/days"))
        self.payloads = Payloads(self.objects)
        self.load = Load(
            self.broker,
            Random(f"{seed}/load"),
            scenario.partitions,
            scenario.rhythms,
            scenario.schema_ids,
            bulk=scenario.bulk,
            keys=scenario.keys,
            alike=scenario.alike,
            payloads=self.payloads,
        )
        self._draw_users(seed)
        self.registry = SimRegistry(Random(f"{seed}/registry"), scenario.seconds * 1000.0)
        self.weather = Weather(Random(f"{seed}/weather"), **scenario.weather)
        drawn = self.random.choice(("ALL", "FAILURES"))
        level = str(scenario.settings.get("lifecycle", drawn))
        # Draws of their own: whoever writes, the rest of a seed stays as it is.
        writers = Random(f"{seed}/writer")
        writer = writers.choice(("librdkafka", "direct"))
        self.broker.own_epochs = writers.random() < 0.5
        if scenario.own_epochs is not None:
            self.broker.own_epochs = scenario.own_epochs
        written = {"transaction_writer": writer, "transactional_ids": writers.choice((1, 2, 2))}
        policies = Random(f"{seed}/policies"), TENANTS, scenario.policies, level
        self.policies = TenantPolicies(self.load, *policies)
        written |= {"payload_store": URL} if self.policies.any_claims else {}
        self.settings = settings_of(
            scenario.partitions, **{"lifecycle": level, **written, **scenario.settings}
        )
        self._place(Random(f"{seed}/placing"))
        self.reading = self._read_back(Random(f"{seed}/reads"))
        self._ask_much(seed)
        self.hooks = self._hooked(Random(f"{seed}/hooks")) if scenario.webhooks else None
        self.changes = PolicyChanges(self.policies, TENANTS, Random(f"{seed}/changes"))
        self.group = self._grouped(Random(f"{seed}/group"))
        self.growing = (
            Growing(self, Random(f"{seed}/growth")) if scenario.faults.get("grow") else None
        )
        self.redriving = Redriving(self.broker, self.weather, Random(f"{seed}/redrives"))
        processes = scenario.machines + scenario.senders
        self.disks = [Disk(Random(f"{seed}/disk{n}")) for n in range(processes)]
        self.workers: list[SimWorker] = []
        self.lives: list[SimWorker] = []
        self.problems: list[str] = []

    def _copy(self, random: Random) -> None:
        """Several brokers may hold copies of all logs, and go away."""
        nodes, broker = nodes_of(self.broker), self.broker
        if self.scenario.copies is None:
            return
        broker.cluster = cluster = Cluster(broker, random, self.scenario.copies)

        def goes(log: Log) -> None:
            for where in nodes.elect(nodes.leader_of((log.topic, log.partition)), cluster.random):
                cluster.elect(broker.log(*where))

        cluster.goes = goes

    def _place(self, random: Random) -> None:
        """Tenants may be spread, or have topics of their own, and the input may grow."""
        scenario = self.scenario
        if scenario.spread or scenario.inputs or scenario.grows:
            chances = scenario.spread, scenario.inputs
            placing = Placing(self.broker, random, TENANTS, scenario.partitions, *chances)
            self.load.placing = placing
            self.policies.spread(placing.spreads)

    def _ask_much(self, seed: int) -> None:
        """Callers may write over HTTP, spreads of tenants change, and transactions hang."""
        self.calling = Calling(self, Random(f"{seed}/calls")) if self.scenario.calls else None
        self.respreading = self._respread(Random(f"{seed}/respreads"))
        self.hanging = self._hung(Random(f"{seed}/hangs"))
        late = "slow_marker" in self.scenario.faults
        self.late_markers = (
            LateMarkers(self.broker, Random(f"{seed}/late markers")) if late else None
        )
        collides = "collide" in self.scenario.faults
        self.colliding = Colliding(self, Random(f"{seed}/collisions")) if collides else None

    def _grouped(self, random: Random) -> Group | LedGroup:
        """Who deals the partitions: where others stand by, the shipped assignor."""
        timeout_ms, standbys = self.settings.session_timeout_ms, self.scenario.standbys
        if standbys:
            return LedGroup(self.broker, timeout_ms, standbys)
        return Group(self.stage, random, self.scenario.partitions, timeout_ms)

    def _read_back(self, random: Random) -> ReadingBack | None:
        """Clients may read what was written."""
        return ReadingBack(self, random) if "read_back" in self.scenario.faults else None

    def _respread(self, random: Random) -> Respreading | None:
        """Spreads of tenants may change."""
        self.load.wanders = "respread" in self.scenario.faults
        return Respreading(self.policies, TENANTS, random) if self.load.wanders else None

    def _hung(self, random: Random) -> Hanging | None:
        """Transactions may hang."""
        if not KINDS & self.scenario.faults.keys():
            return None
        hanging = Hanging(self.broker, random)
        self.broker.loses_marker = hanging.loses_marker
        return hanging

    def _hooked(self, random: Random) -> Hooks:
        """Most tenants may have targets."""
        hooks = Hooks(self.stage, random)
        if self.scenario.topics:
            hooks.adds = topic_targets.add_to
            for topic in topic_targets.TOPICS:
                self.broker.create(topic, topic_targets.PARTITIONS)
        if self.scenario.senders and random.random() < 0.5:
            self.settings = self.settings.model_copy(update={"role": "schedule"})
        hooks.give(self.policies, TENANTS)
        return hooks

    def _draw_users(self, seed: int) -> None:
        """Who sends what recurs by rules, requests of later features, and what elections lose."""
        load, scenario = self.load, self.scenario
        if self.broker.cluster is not None:
            self.broker.cluster.lost = load.lose
        if scenario.rules:
            zones, tables = scenario.zones, Random(f"{seed}/tables")
            drawn = (Random(f"{seed}/rules"), TableLoad(tables, zones) if zones else None)
            load.rules, load.ruled = RuleLoad(load, TENANTS, *drawn), scenario.rules
        if scenario.features:
            features = (Random(f"{seed}/features"), scenario.only)
            load.features = FeatureLoad(load, TENANTS, *features)
            load.share = scenario.features

    # -- machines --------------------------------------------------------------------------------

    def open(self) -> None:
        """Start all machines."""
        for topic in ("schedules", "changelog", "lifecycle", "rejected", "deliveries", "tenants"):
            self.broker.create(f"belfry.{topic}", self.scenario.partitions)
            policy = "compact" if topic in ("changelog", "tenants") else "delete"
            kind = "LogAppendTime" if topic in ("schedules", "changelog") else "CreateTime"
            self.broker.configs[f"belfry.{topic}"] = {
                "cleanup.policy": policy,
                "message.timestamp.type": kind,
            }
        self.policies.write()
        if self.load.placing is not None:
            self.load.placing.open()
        self.load.pile(self.scenario.backlog)
        for number in range(len(self.disks)):
            self.workers.append(self._booted(number))
        if self.load.features is not None:
            self.load.features.read()
        if self.growing is not None:
            self.growing.open()

    def _booted(self, number: int, skew_ms: float = 0.0) -> SimWorker:
        machine = Machine(
            f"m{number}",
            broker=self.broker,
            weather=self.weather,
            disk=self.disks[number],
            objects=self.objects,
            days=self.days,
            hooks=self.hooks,
            calling=self.calling,
            skew_ms=skew_ms,
        )
        registry = self.registry if self.scenario.schema_ids else None
        checks = self.growing is not None
        kind = SimSender if number >= self.scenario.machines else SimWorker
        worker = kind(machine, self.group, self.settings, registry, checks=checks)
        self.lives.append(worker)
        worker.boot(self.stage)
        return worker

    def crash(self, worker: SimWorker) -> None:
        """SIGKILL; the machine's disk keeps what had reached it."""
        machine = worker.machine
        if not machine.dead:
            machine.disk.crash()
            self.problems += check_disk(machine.disk, self.broker, f"{machine.name} after a crash")
            self.stage.kill(machine)

    def restart(self, worker: SimWorker) -> None:
        """Start a process again where none is left."""
        if not worker.alive and worker in self.workers:
            number = self.workers.index(worker)
            skew_ms = worker.machine.skew_ms
            worker.machine.disk.crash()
            self.workers[number] = self._booted(number, skew_ms)

    # -- the end ---------------------------------------------------------------------------------

    def heal(self) -> None:
        """All faults end, and every machine runs."""
        self.weather.calm()
        self.broker.refused.clear()
        if self.broker.cluster is not None:
            self.broker.cluster.heal()
        self.objects.heal()
        self.days.heal()
        if self.hooks is not None:
            self.hooks.heal()
        if self.hanging is not None:
            self.hanging.heal()
        if self.late_markers is not None:
            self.late_markers.heal()
        if self.calling is not None:
            self.calling.heal()
        if self.scenario.changes:
            self.changes.end()
        for worker in list(self.workers):
            machine = worker.machine
            machine.strikes.clear()
            machine.skew_ms, machine.cut = 0.0, False
            self.stage.resume(machine)
            self.restart(worker)
        if self.load.features is not None:
            self.load.features.end()

    def drain(self) -> bool:
        """Wait until everything due has left; False where that does not come."""
        self._wait_for_markers()
        if self.colliding is not None:
            self.colliding.ask_last()
        if self.load.features is not None:
            self._wait_for_features()
        elif self.scenario.bulk and self.scenario.faults.get("refuse_topic"):
            self.load.expect(self.broker.now_ms() + AGAIN_MS)
        self._pass_what_is_due()
        if self.growing is not None:
            self.growing.finish()
        if self.redriving.asked:
            self.redriving.finish()
            self._pass_what_is_due()
        if self.load.features is not None:
            self.load.features.clear()
        deadline_ms = self.stage.now_ms + QUIET_MS
        while self.stage.now_ms < deadline_ms:
            # What fires meanwhile may still be acknowledged.
            if self.drained() and self.load.last_due_ms <= self.broker.now_ms():
                return True
            self.stage.sleep(LOOK_MS)
            for worker in list(self.workers):
                self.restart(worker)
        return False

    def _wait_for_operator(self, hanging: Hanging) -> None:
        """Somebody looks when a minute has passed, and rolls back what hangs."""
        until_ms = self.stage.now_ms + LEFT_MS
        while self.stage.now_ms < until_ms:
            self.stage.sleep(10 * LOOK_MS)
            for worker in list(self.workers):
                self.restart(worker)
        hanging.looks()
        hanging.end()

    def _wait_for_markers(self) -> None:
        """Wait until all have come, or were written by somebody."""
        if self.hanging is not None:
            self._wait_for_operator(self.hanging)
        while self.late_markers is not None and self.late_markers.left_ms > 0:
            self.stage.sleep(10 * LOOK_MS)
            for worker in list(self.workers):
                self.restart(worker)

    def _pass_what_is_due(self) -> None:
        """Let time pass until nothing is due any more, as far as the load knows."""
        while (due_in_ms := self.load.last_due_ms - self.broker.now_ms()) > 0:
            self.stage.sleep(due_in_ms)
        self.stage.sleep(2_000)

    def _wait_for_features(self) -> None:
        """Wait until all is taken in, and give what follows its time."""
        deadline_ms = self.stage.now_ms + QUIET_MS
        while self._caught_up() is None and self.stage.now_ms < deadline_ms:
            self.stage.sleep(LOOK_MS)
            for worker in list(self.workers):
                self.restart(worker)
        refused = bool(self.scenario.faults.get("refuse_topic"))
        self.load.expect(self.broker.now_ms() + (AGAIN_MS if refused else 20_000))

    def drained(self) -> bool:
        """Whether each partition has an owner that has taken everything in and fired it."""
        engines = self._caught_up()
        delivered = self.hooks is None or settled(self.broker)
        delivered = delivered and (self.calling is None or self.calling.settled())
        if engines is None or not delivered:
            return False
        if not any(each.pending for each in engines):
            return True
        return self.colliding is not None and self.colliding.only_losers_wait()

    def _caught_up(self) -> list[PartitionEngine] | None:
        """The engines of all partitions, once each has taken everything in."""
        engines = {
            runner.partition: runner.owned.engine
            for worker in self.workers
            if worker.owners is not None and worker.alive
            for runner in worker.owners.runners()
            if runner.owned is not None
        }
        logs = self.broker.topics["belfry.schedules"]
        handed_over = self.load.placing is None or self.load.placing.handed_over()
        caught_up = (
            handed_over
            and len(engines) == len(logs)
            and all(
                not engine.aside.any and engine.manifest.position >= logs[number].end
                for number, engine in engines.items()
            )
        )
        return list(engines.values()) if caught_up else None

    def close(self) -> None:
        """Stop one worker in order and kill the others; wait for all tasks to end."""
        for worker in self.workers:
            worker.terminate()
        self.stage.sleep(8_000)
        for worker in self.lives:
            if not worker.machine.dead:
                worker.machine.disk.crash()
                self.stage.kill(worker.machine)
        while any(worker.machine.tasks for worker in self.lives):
            self.stage.sleep(1)

    def committed(self, topic: str) -> list[Entry]:
        """Committed records of a topic in the order in which they were appended."""
        logs = self.broker.topics.get(topic, [])
        return sorted(
            (entry for log in logs for entry in log.history if entry.committed),
            key=lambda entry: entry.order,
        )
