"""The checker: what was sent, against what the topics say; it shares no code with the engine.

Requests are folded in the order of their home partition, each with the verdict that the lifecycle
topic tells.  From that follows which definitions had to fire once, and which never; the fired
records have to say the same.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from tests.simulation.answered import check_answered
from tests.simulation.broker import T0, Entry
from tests.simulation.bulk import REKEY, Definition, JobsSeen, Standing
from tests.simulation.coverage import OUTCOME
from tests.simulation.delivered import check_delivered
from tests.simulation.delivering import is_deliverers
from tests.simulation.dependents import GIVEN_UP
from tests.simulation.features import check_features
from tests.simulation.filed import check_filed
from tests.simulation.fires import FiresSeen, Throttled
from tests.simulation.governed import LIMITS, Governed, check_governed
from tests.simulation.grown import check_places
from tests.simulation.hanging import check_hanging
from tests.simulation.late_markers import check_late
from tests.simulation.priorities import check_priorities
from tests.simulation.reading_back import check_read
from tests.simulation.redriven import check_redriven, sent_again
from tests.simulation.respreading import check_respread
from tests.simulation.rules import check_rules
from tests.simulation.sent import Sent
from tests.simulation.stores import check_stores
from tests.simulation.taking import Seen, is_move, last_places, origin, passes_on, taken_in
from tests.simulation.topics_held import check_topics
from tests.simulation.trail import Step, headers_of, steps_of
from tests.simulation.transactions import check_transactions
from tests.simulation.treated import UNSTORED, check_treated
from tests.simulation.usage import check_usage
from tests.simulation.world import World

# Requests that define no schedule, and are judged by checks of their own.
OF_OTHERS: Final = ("ACK", "CALENDAR", "CALENDAR_REMOVE")
# How a refusal names where its request lies.
NAMED: Final = ("topic", "partition", "offset")
# After one of these a store may not have answered in time: one of its own, or a worker's pause.
TROUBLES: Final = {"store_away", "store_slow", "store_silent", "pause_at"}


def check(world: World, covered: Counter[str]) -> list[str]:
    """All that is wrong with a finished world; outcomes are counted."""
    try:
        partitions = steps_of(world)
    except AssertionError as error:
        return [f"I4 {error}"]
    checker = Checker(world, partitions)
    checker.fold()
    colliding = [] if world.colliding is None else world.colliding.check(checker.definitions)
    checker.problems += colliding
    covered.update(f"{OUTCOME} {each.sent.action}, {each.outcome}" for each in checker.seen.taken)
    checker.given_up()
    fires = FiresSeen(checker.definitions, world.scenario.early_ms)
    fires.compare(partitions, checker.throttled)
    fires.orders()
    problems = checker.problems + fires.problems + check_features(checker.seen, checker.jobs)
    if not world.scenario.moves:
        # It compares what waits in one partition.
        problems += check_priorities(world, checker.seen, checker.jobs)
    problems += check_treated(world, partitions, checker.jobs, checker.definitions)
    problems += check_filed(world, partitions)
    problems += check_redriven(world) + check_transactions(partitions) + check_stores(world)
    problems += check_rules(world) + check_governed(world, partitions, checker.seen)
    problems += check_places(world, partitions, checker.seen)
    problems += check_read(world, partitions)
    problems += check_answered(world, partitions)
    problems += check_respread(world, checker.seen, checker.definitions)
    problems += check_delivered(world, partitions)
    problems += check_topics(world, partitions)
    problems += check_hanging(world, checker.seen, checker.definitions, covered)
    problems += check_late(world, checker.definitions, covered)
    return problems + checker.jobs.problems() + check_usage(world, partitions)


class Checker:
    """Folds verdicts: what was accepted, replaced and cancelled, and may fire."""

    def __init__(self, world: World, partitions: list[list[Step]]) -> None:
        self.problems: list[str] = []
        self._world = world
        self._partitions = partitions
        # A marker lasts for a day: after a night it may be gone.
        self._moves = world.scenario.moves or bool(world.scenario.faults.get("respread"))
        self._nights = bool(world.scenario.faults.get("night"))
        self.definitions: dict[str, Definition] = {}
        # Whether the request that is judged was refused for want of a store, or for a limit.
        self._unstored = False
        self._standing: defaultdict[tuple[str, str], Standing] = defaultdict(Standing)
        self.jobs = JobsSeen(self._standing)
        self.throttled: list[Throttled] = []
        self.seen = Seen(partitions, self.definitions)
        self._governed = Governed(world)
        self._sent = {each.place: each for each in world.load.sent if not each.lost}

    def _wrong(self, invariant: str, what: str) -> None:
        self.problems.append(f"{invariant} {what}")

    # -- verdicts --------------------------------------------------------------------------------

    def fold(self) -> None:
        """Give each request its verdict, in the order in which they were taken in."""
        answered: Counter[int] = Counter()
        seen: Counter[int] = Counter()
        logs = self._world.broker.topics["belfry.schedules"]
        last = last_places(logs) if self._moves else {}
        for step, entry in self._taken_in():
            # A step takes requests in first, and goes on with jobs then.
            steps = self._partitions[step.partition]
            seen[step.partition] = self.jobs.see(steps, seen[step.partition], step.index)
            place = origin(entry, step.partition)
            if last.get(place, (step.partition, entry.offset)) != (step.partition, entry.offset):
                # It was sent on to where its key group lies.
                continue
            sent = self._sent.get(place) or self._again(entry, place)
            if sent is None and is_deliverers(entry.txn):
                # A retry is asked for; `delivered` looks whether it comes.
                continue
            if sent is None:
                self._wrong("I4", f"{entry} came from nobody")
            elif not passes_on(sent, step.partition, entry, moves=self._moves):
                answered[id(sent)] += 1
                self._judge(sent, step, entry)
        for steps in self._partitions:
            self.jobs.see(steps, seen[steps[0].partition] if steps else 0, len(steps))
        for sent in self._world.load.sent:
            if answered[id(sent)] != (not sent.lost):
                self._wrong("I5", f"{sent.name} was taken in {answered[id(sent)]} times")

    def _taken_in(self) -> Iterator[tuple[Step, Entry]]:
        """What was taken in: partition after partition, or where groups move as it came to be."""
        found: list[tuple[Step, Entry]] = []
        logs = self._world.broker.topics["belfry.schedules"]
        # What was added to the input passes all on.
        for steps, log in zip(self._partitions, logs, strict=False):
            entries = [entry for entry in log.history if entry.committed and not is_move(entry)]
            found += taken_in(steps, entries)
        if self._moves:
            found.sort(key=lambda each: (each[0].order, each[1].offset))
        yield from found

    def _again(self, entry: Entry, place: tuple[str, int, int]) -> Sent | None:
        """A request that a redrive has sent again, and where it lies now."""
        sent = sent_again(self._world, entry, self._sent)
        if sent is not None:
            (sent.topic, sent.partition, sent.offset), sent.appended_ms = place, entry.timestamp_ms
            self._sent[place] = sent
        return sent

    def _judge(self, sent: Sent, step: Step, entry: Entry) -> None:
        place = (sent.topic.encode(), b"%d" % sent.partition, b"%d" % sent.offset)
        kept = [
            each
            for each in step.rejected
            if tuple(headers_of(each)[f"belfry-error-{name}"] for name in NAMED) == place
        ]
        if sent.poison:
            if len(kept) != 1:
                self._wrong("I5", f"poison {sent.name} was refused {len(kept)} times")
            return
        if sent.schema_id and self._unread(sent, kept):
            return
        self._unstored = self._is_unstored(sent, kept) or self._is_beyond(sent, kept)
        if self._world.colliding is not None and self._world.colliding.refused(sent, kept):
            self._unstored = True
        outcome = self._outcome(sent, step)
        if bool(kept) != (outcome == "REJECTED"):
            self._wrong("I5", f"{sent.name} ended in {outcome}, and was kept {len(kept)} times")
        if not self._unstored:
            # No feature has a part in that.
            self.seen.note(sent, step, outcome)
        if sent.action in ("BULK", "BULK_STOP"):
            self._judge_job(sent, outcome)
        elif sent.action not in OF_OTHERS:
            # Offsets of two partitions say nothing of what was asked for first.
            seq = len(self.seen.taken) if self._moves else entry.offset
            self._apply(sent, outcome, step, seq)

    def _judge_job(self, sent: Sent, outcome: str) -> None:
        """A job was asked for, or its end."""
        if sent.action == "BULK_STOP":
            self.jobs.stop(sent, outcome)
        elif outcome == "ACCEPTED":
            self.jobs.begin(sent)
        elif outcome != "DUPLICATE" and not self._lacks_key(sent, outcome):
            self._wrong("I5", f"{sent.name} (BULK) ended in {outcome}, which cannot be")

    def _unread(self, sent: Sent, kept: list[Entry]) -> bool:
        """Whether it was refused for want of its schema; that has to agree with the registry."""
        registry, named = self._world.registry, f"{sent.name} (schema {sent.schema_id})"
        codes = [headers_of(each)["belfry-error-code"].decode() for each in kept]
        if not set(codes) & {"schema_unavailable", "unknown_schema_id"}:
            if not registry.may_be_read(sent.schema_id):
                self._wrong("I17", f"{named} was read, and nobody knows its schema")
            return False
        if len(codes) != 1:
            self._wrong("I5", f"{named} was refused {codes}")
        refused_ms = kept[0].timestamp_ms - T0
        if not registry.may_be_refused(sent.schema_id, sent.appended_ms - T0, refused_ms):
            self._wrong("I17", f"{named} was refused, and the registry knows its schema")
        return True

    def _is_unstored(self, sent: Sent, kept: list[Entry]) -> bool:
        """Whether it was refused since its payload could not be stored; that has to be possible."""
        codes = [headers_of(each)["belfry-error-code"].decode() for each in kept]
        if UNSTORED not in codes:
            return False
        rules, payload = self._world.policies.of(sent.tenant), sent.name.encode()
        keeps = sent.action in ("UPSERT", "CREATE")
        may = keeps and rules.is_large(payload) and self._world.scenario.faults.keys() & TROUBLES
        if not may or codes != [UNSTORED]:
            self._wrong("I35", f"{sent.name} ({sent.action}) was refused {codes}")
        return True

    def _is_beyond(self, sent: Sent, kept: list[Entry]) -> bool:
        """Whether it was refused for a limit of its tenant; such a limit has to be in force."""
        codes = [headers_of(each)["belfry-error-code"].decode() for each in kept]
        if not LIMITS.keys() & set(codes):
            return False
        for code in codes:
            if not self._governed.may_refuse(sent.tenant, code, kept[0].timestamp_ms):
                self._wrong("I37", f"{sent.name} ({sent.action}) was refused: {code}")
        return True

    def _lacks_key(self, sent: Sent, outcome: str) -> bool:
        """Whether a job may be refused: its worker has not read yet that there is a key."""
        rekeys = json.loads(sent.fields["bulk"])["action"] == REKEY
        first_keys = self._world.policies.of(sent.tenant).first_keys
        return outcome == "REJECTED" and rekeys and first_keys is None

    def _outcome(self, sent: Sent, step: Step) -> str:
        if sent.request_id is None:
            return "REJECTED" if self._unstored else "ACCEPTED"
        told = [
            event
            for event in step.told
            if event["request_id"] == sent.request_id
            and (event["source_topic"], event["source_partition"], event["source_offset"])
            in (sent.place, (None, None, None))
        ]
        if len(told) == 1:
            return str(told[0]["outcome"])
        told_here = [event["outcome"] for event in told]
        if told_here.count("DUPLICATE") == len(told_here) - 1 or set(told_here) == {"DUPLICATE"}:
            # Several repeats in one step; which of them is which does not matter.
            return str(min(told_here, key=lambda each: each == "DUPLICATE")) if told_here else ""
        self._wrong("I5", f"{sent.name} was answered {told_here}")
        return ""

    def _apply(self, sent: Sent, outcome: str, step: Step, seq: int) -> None:
        standing = self._standing[sent.tenant, sent.schedule_id]
        waiting = standing.waiting
        if not self._fits(sent, standing).get(outcome):
            self._wrong("I5", f"{sent.name} ({sent.action}) ended in {outcome}, which cannot be")
        if outcome == "TOO_LATE" and waiting is not None:
            self._in_time(sent, waiting)
        self._follow(sent, outcome, standing)
        if outcome in ("ACCEPTED", "UPDATED"):
            standing.waiting = self.definitions[sent.name] = Definition(sent, step, seq)
            standing.waiting.follow(waiting if outcome == "UPDATED" else None)
            standing.fired = False
        if outcome == "TRIGGERED" and waiting is not None:
            waiting.extras += 1

    def _fits(self, sent: Sent, standing: Standing) -> dict[str, bool]:
        """Which outcomes a request may have, for all that the requests before it tell."""
        waiting = standing.waiting
        fits = {
            "ACCEPTED": not standing.fired if waiting is None else True,
            "UPDATED": waiting is not None,
            "CANCELLED": waiting is not None,
            "TRIGGERED": waiting is not None,
            "TOO_LATE": waiting is not None or standing.fired,
            "NOT_FOUND": (waiting is None and not standing.fired) or self._nights,
            "CONFLICT": "expected_version" in sent.fields or sent.action == "CREATE",
            "DUPLICATE": True,
            "REJECTED": sent.action == "TRIGGER" or sent.of_feature or self._unstored,
            "UNCHANGED": "throttle_ms" in sent.fields or sent.action in ("PAUSE", "RESUME"),
            "PAUSED": waiting is not None and sent.action == "PAUSE",
            "RESUMED": waiting is not None and sent.action == "RESUME",
        }
        if "throttle_ms" in sent.fields:
            fits["UPDATED"] = False
        if standing.fired:
            fits["ACCEPTED"] = True
        if "throttle_ms" in sent.fields:
            fits["UPDATED"] = False
        return fits

    def _follow(self, sent: Sent, outcome: str, standing: Standing) -> None:
        """What ended under the name by now, as the outcome tells; then what was throttled."""
        waiting = standing.waiting
        if outcome in ("ACCEPTED", "TOO_LATE", "NOT_FOUND") and waiting is not None:
            waiting.must_fire, standing.waiting, standing.fired = True, None, True
            standing.last = waiting
        if "throttle_ms" in sent.fields and outcome in ("ACCEPTED", "UNCHANGED"):
            self._note_throttled(sent, standing, dropped=outcome == "UNCHANGED")
        if outcome in ("UPDATED", "CANCELLED") and waiting is not None:
            waiting.must_fire, standing.waiting, standing.fired = False, None, False
            standing.last = None

    def _note_throttled(self, sent: Sent, standing: Standing, *, dropped: bool) -> None:
        """Remember what a request met that is throttled, until it is known when that fired."""
        met = standing.waiting or standing.last
        if met is not None:
            self.throttled.append((sent, met, dropped))
        elif dropped:
            self._wrong("I25", f"{sent.name} was throttled, and nothing was there")

    def _in_time(self, sent: Sent, waiting: Definition) -> None:
        """What was in the log in good time must not come too late."""
        margin_ms = self._world.scenario.in_time_ms
        early_ms = waiting.due_ms - sent.appended_ms
        strays = sent.stray or waiting.sent.stray
        if margin_ms and early_ms >= margin_ms and sent.action == "CANCEL" and not strays:
            self._wrong("in time", f"{sent.name} came {early_ms} ms before {waiting.sent.name}")

    def given_up(self) -> None:
        """What waited for an acknowledgement that nobody can give fires no more."""
        for steps in self._partitions:
            for step in steps:
                for event in step.told:
                    waited = self._standing.get((event["tenant"], event["schedule_id"]))
                    if event["code"] == GIVEN_UP and waited and waited.waiting:
                        waited.waiting.given_up_in = step
