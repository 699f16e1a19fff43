"""Deliveries: each has one end, whatever its targets and dispatchers did (I39).

    fire ──► record, attempt 1 ──► request for attempt 2 ──► record, attempt 2 ──► end
             in the fire's step    in a transaction with the position behind the record

Each record of the topic of deliveries comes to one thing: a request for the next attempt, which
fires once, or an end.  An end is told (DELIVERED, or FAILED with a dead letter), or it is a first
attempt that arrived and of which nobody wants to hear.  So records, requests and ends add up.

Posts are at least once, and not more often than that: none of what had ended by the position that
its dispatcher began with, or had committed itself (`progress_of`).
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final
from zlib import decompress

import fastavro

from tests.simulation.broker import OFFSETS, Entry
from tests.simulation.consumer_groups import GROUP
from tests.simulation.delivering import PREFIX, TOPIC, UNDELIVERED, is_deliverers
from tests.simulation.sent import REQUEST, SOURCE, schema
from tests.simulation.trail import Step, headers_of
from tests.simulation.webhooks import BUSY_S, Posted

if TYPE_CHECKING:
    from tests.simulation.world import World

EVENT: Final = schema("FiredEvent")
LIFECYCLE: Final = schema("LifecycleEvent")
HEAD_BYTES: Final = 10
RETRIES: Final = "belfry-deliveries"
# How addresses of topics begin.
KAFKA: Final = "kafka:"
# A silent host is left alone for so long at most.
LONGEST_PAUSE_MS: Final = 61_000
# Fire and number of the delivery among those of its fire.
Name = tuple[str, int]


@dataclass(slots=True)
class Record:
    """One record of the topic of deliveries; `retry` where it is the fire of a retry."""

    partition: int
    entry: Entry
    event: dict[str, Any]
    state: dict[str, Any]
    retry: bool

    @property
    def name(self) -> Name:
        """Which delivery it is."""
        return self.event["fire_id"], self.state["number"]

    @property
    def urls(self) -> list[str]:
        """Where it may be posted to."""
        return [each["url"] for each in self.state["targets"]]


@dataclass(slots=True)
class Delivery:
    """All that the topics say of one delivery."""

    records: list[Record] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    told: list[tuple[Entry, dict[str, Any]]] = field(default_factory=list)
    letters: int = 0
    posts: list[Posted] = field(default_factory=list)


def record_of(partition: int, entry: Entry) -> Record:
    """What a record says."""
    headers = headers_of(entry)
    event: Any = _avro(entry.value, EVENT)
    state = json.loads(headers["belfry-delivery"])
    # What was given up has no header of its own.
    retry = headers.get("belfry-fire-id", b"").decode() not in ("", event["fire_id"])
    return Record(partition, entry, event, state, retry)


def _avro(value: bytes | None, of: Any) -> Any:
    return fastavro.schemaless_reader(BytesIO((value or b"")[HEAD_BYTES:]), of, None)


def left_by(step: Step) -> list[tuple[str, Entry]]:
    """What a step fired, retries of deliveries included, in the order in which it lies there."""
    retries = [(TOPIC, each) for each in step.delivered if record_of(0, each).retry]
    fired = [*step.fired, *retries]
    return sorted(fired, key=lambda each: each[1].order) if retries else fired


def check_delivered(world: World, partitions: list[list[Step]]) -> list[str]:
    """What is wrong with the deliveries of a world that has some."""
    if world.hooks is None:
        return []
    deliveries = _deliveries(world)
    problems = [*_begun(world, partitions)]
    for name, delivery in deliveries.items():
        if not delivery.records:
            problems.append(f"{name} was posted or told of, and there is no such delivery")
            continue
        problems += [f"{name} {what}" for what in _ends(delivery)]
        problems += [f"{name} {what}" for what in _attempts(delivery)]
    problems += [*_repeated(world, deliveries), *_together(deliveries)]
    return [f"I39 {each}" for each in problems]


def ends_of(world: World) -> list[str]:
    """How deliveries ended, a name each time."""
    found: list[str] = []
    for delivery in _deliveries(world).values():
        codes = [each["code"] for _, each in delivery.told if each["outcome"] == "FAILED"]
        found += ["given up"] * len(codes)
        late = any(e["outcome"] == "DELIVERED" and e["attempt"] > 1 for _, e in delivery.told)
        found += ["delivered by a retry"] * late
        by = {each.machine.name for each in delivery.posts}
        found += ["posted by two workers"] * (len(by) > 1)
        attempts = Counter(each.state["attempt"] for each in delivery.records)
        found += ["postponed"] * sum(number - 1 for number in attempts.values())
    return found


def _deliveries(world: World) -> dict[Name, Delivery]:
    """All deliveries by name; what belongs to none has one without records."""
    found: defaultdict[Name, Delivery] = defaultdict(Delivery)
    by_url: dict[tuple[str, str], Name] = {}
    broker = world.broker
    for log in broker.topics[TOPIC]:
        for entry in log.history:
            if entry.committed:
                record = record_of(log.partition, entry)
                found[record.name].records.append(record)
                by_url |= {(record.event["fire_id"], url): record.name for url in record.urls}
    for delivery in found.values():
        delivery.records.sort(key=lambda each: each.entry.order)
    _add_what_followed(world, found, by_url)
    assert world.hooks is not None
    for posted in world.hooks.posts:
        found[by_url.get(posted.delivery, (posted.delivery[0], -1))].posts.append(posted)
    return found


def _add_what_followed(
    world: World, found: dict[Name, Delivery], by_url: dict[tuple[str, str], Name]
) -> None:
    """Requests for retries, dead letters, and what was told."""
    for entry in world.committed(SOURCE):
        if is_deliverers(entry.txn):
            asked = _avro(entry.value, REQUEST)
            fire_id, number, attempt = asked["schedule_id"].split("/")
            found[fire_id, int(number)].requests.append(int(attempt))
    for entry in world.committed(UNDELIVERED):
        found[record_of(0, entry).name].letters += 1
    for entry in world.committed("belfry.lifecycle"):
        if is_deliverers(entry.txn):
            event = _avro(entry.value, LIFECYCLE)
            name = by_url.get((event["fire_id"], event["target"]), (event["fire_id"], -1))
            found[name].told.append((entry, event))


def _begun(world: World, partitions: list[list[Step]]) -> Iterator[str]:
    """Each fire begins as many deliveries as its tenant's policy asks for, in its own step."""
    for steps in partitions:
        for step in steps:
            begun = [record_of(0, each) for each in step.delivered]
            for topic, entry in step.fired:
                fire_id = headers_of(entry)["belfry-fire-id"].decode()
                said = world.policies.of(topic.removeprefix("belfry.fired.")).limits
                wanted = _wanted(said.get("http_targets", []))
                mine = [e for e in begun if not e.retry and e.event["fire_id"] == fire_id]
                if sorted(each.state["number"] for each in mine) != list(range(wanted)):
                    yield f"{fire_id} began {len(mine)} deliveries instead of {wanted}"
                for each in mine:
                    if each.event["payload"] != entry.value or each.state["attempt"] != 1:
                        yield f"{each.name} begins with {each.event['payload']!r}, {each.state}"


def _wanted(targets: list[dict[str, Any]]) -> int:
    """How many deliveries a fire has: one for each topic, and hosts may share one."""
    hosts = [each["strategy"] for each in targets if not each["url"].startswith(KAFKA)]
    of_hosts = len(hosts) if "ALL" in hosts else min(len(hosts), 1)
    return of_hosts + len(targets) - len(hosts)


def given_up(world: World) -> Iterator[tuple[str, str]]:
    """Fire and address of each delivery that was told to have failed."""
    for delivery in _deliveries(world).values():
        for _, event in delivery.told:
            if event["outcome"] == "FAILED":
                yield event["fire_id"], event["target"]


def _ends(delivery: Delivery) -> Iterator[str]:
    """Records, requests and ends add up, and each end is true."""
    records, told = delivery.records, delivery.told
    asked = Counter(delivery.requests)
    fired = Counter(each.state["attempt"] for each in records if each.retry)
    if asked != fired:
        yield f"has requests for attempts {asked}, and of these came {fired}"
    outcomes = Counter(each["outcome"] for _, each in told)
    untold = len(records) - len(delivery.requests) - len(told)
    if untold not in (0, 1) or len(told) + untold != 1:
        yield f"has {len(records)} records, {len(delivery.requests)} requests and {outcomes}"
    if delivery.letters != outcomes["FAILED"]:
        yield f"has {delivery.letters} dead letters, and {outcomes}"
    for entry, event in told:
        yield from _told(delivery, entry, event)
    if untold == 1:
        first = records[-1]
        if first.state["tell"] or first.state["attempt"] > 1:
            yield "ended, and nobody was told"
        if not any(_heard(each, 1) for each in delivery.posts):
            yield "ended without a word, and no target took it"


def _told(delivery: Delivery, entry: Entry, event: dict[str, Any]) -> Iterator[str]:
    """An end that was told is true."""
    attempt, url = event["attempt"], event["target"]
    last = [each for each in delivery.records if each.state["attempt"] == attempt]
    if not last:
        yield f"ended at attempt {attempt}, which never was"
    elif event["outcome"] != "DELIVERED":
        yield from _given_up(delivery, last[-1], entry, event)
    elif not any(each.url == url and _heard(each, attempt) for each in delivery.posts):
        yield f"was told to be delivered to {url}, which did not say so"


def _heard(posted: Posted, attempt: int) -> bool:
    return posted.heard and posted.taken and posted.attempt == attempt


def _given_up(
    delivery: Delivery, last: Record, entry: Entry, event: dict[str, Any]
) -> Iterator[str]:
    """One that was given up had no attempts left, was too old, or was refused for good."""
    state, attempt = last.state, event["attempt"]
    if attempt == state["attempts"]:
        return
    if any(each.status == 410 and each.attempt == attempt for each in delivery.posts):
        return
    latest_ms = entry.timestamp_ms + _least_wait_ms(state) * 5 // 4 + LONGEST_PAUSE_MS
    if latest_ms <= last.event["fired_at"].timestamp() * 1000 + state["age_ms"]:
        yield f"was given up at attempt {attempt} of {state['attempts']}: {event['reason']}"


def _least_wait_ms(state: dict[str, Any]) -> int:
    """How long is waited behind an attempt at least."""
    most_ms = max(state["max_ms"], state["initial_ms"])
    return int(min(state["initial_ms"] << (state["attempt"] - 1), most_ms))


def _attempts(delivery: Delivery) -> Iterator[str]:
    """Posts say what their record says, and keep their distance."""
    by_attempt = {each.state["attempt"]: each for each in reversed(delivery.records)}
    if sorted(by_attempt) != list(range(1, len(by_attempt) + 1)):
        yield f"has records of attempts {sorted(by_attempt)}"
    if max(by_attempt) > delivery.records[0].state["attempts"]:
        yield f"has {max(by_attempt)} attempts"
    earliest: dict[int, float] = {}
    for posted in delivery.posts:
        record = by_attempt.get(posted.attempt)
        if record is None:
            yield f"was posted as attempt {posted.attempt}, which never was committed"
            continue
        said = posted.headers
        told = said["belfry-tenant"], said["belfry-schedule-id"], posted.body
        event = record.event
        if told != (event["tenant"], event["schedule_id"], event["payload"]):
            yield f"was posted as {told}"
        if posted.ended_ms >= 0:
            wait_ms = _least_wait_ms(record.state)
            if posted.heard and posted.status == 429:
                wait_ms = max(wait_ms, int(BUSY_S) * 1000)
            due_ms = posted.ended_ms + wait_ms
            earliest[posted.attempt] = min(earliest.get(posted.attempt, due_ms), due_ms)
    for posted in delivery.posts:
        due_ms = earliest.get(posted.attempt - 1, 0.0)
        # Instants of schedules are whole milliseconds.
        if posted.began_ms < due_ms - 2:
            yield f"was posted {due_ms - posted.began_ms:.0f} ms early at attempt {posted.attempt}"


# -- posts that nobody needed ----------------------------------------------------------------------


def progress_of(world: World) -> Iterator[tuple[float, str, int, int, set[int]]]:
    """What was committed of the topic of deliveries, once that was decided.

    When (stage's ms), by whom, the partition, its position, and what had ended beyond it.
    """
    began_ms = world.broker.began_ms
    for log in world.broker.topics.get(OFFSETS, ()):
        for entry in log.history:
            if entry.marker and is_deliverers(entry.txn) and entry.txn is not None:
                by = entry.txn.producer.removeprefix(PREFIX)
                if entry.txn.outcome == "commit":
                    for (group, topic, partition), (position, text) in entry.txn.offsets.items():
                        if topic == TOPIC and group.endswith(GROUP):
                            at_ms = entry.timestamp_ms - began_ms
                            yield at_ms, by, partition, position, _bits(position, text)


def _bits(position: int, text: str) -> set[int]:
    packed = b64decode(text)
    bits = decompress(packed[1:]) if packed[:1] == b"\1" else packed[1:]
    return {position + at for at in range(len(bits) * 8) if bits[at // 8] >> at % 8 & 1}


def _repeated(world: World, deliveries: dict[Name, Delivery]) -> Iterator[str]:
    """Posts of what had ended when its dispatcher began, or by its own commit."""
    assert world.hooks is not None
    done: defaultdict[tuple[int, int], list[tuple[float, str]]] = defaultdict(list)
    ended = list(progress_of(world))
    for delivery in deliveries.values():
        for record in delivery.records:
            place = record.partition, record.entry.offset
            for at_ms, by, partition, position, beyond in ended:
                if partition == place[0] and (place[1] < position or place[1] in beyond):
                    done[place].append((at_ms, by))
                    break
    for delivery in deliveries.values():
        for posted in delivery.posts:
            mine = [e for e in delivery.records if e.state["attempt"] == posted.attempt]
            ends = [done[e.partition, e.entry.offset] for e in mine]
            if not mine or not all(ends):
                continue
            at_ms, by = max(each[0] for each in ends)
            since_ms = world.hooks.assigned_ms(posted.machine, mine[-1].partition, posted.began_ms)
            if at_ms < since_ms or (by == posted.machine.name and posted.began_ms > at_ms + 1):
                yield f"attempt {posted.attempt} was posted again, and had ended at {at_ms:.0f}"


def _together(deliveries: dict[Name, Delivery]) -> Iterator[str]:
    """Posts of one group, or of one schedule, go out one after the other in a process."""
    rows: defaultdict[tuple[int, bytes, int], list[Posted]] = defaultdict(list)
    for name, delivery in deliveries.items():
        for posted in delivery.posts if delivery.records else ():
            if posted.url.startswith(KAFKA):
                # They keep their order on the way, and nobody waits.
                continue
            key = delivery.records[0].entry.key or b""
            rows[id(posted.machine), key, name[1]].append(posted)
    for (_, key, _), posts in rows.items():
        posts.sort(key=lambda each: each.began_ms)
        for before, after in pairwise(posts):
            if before.ended_ms > after.began_ms:
                yield f"two posts of {key!r} were under way at {after.began_ms:.0f}"
