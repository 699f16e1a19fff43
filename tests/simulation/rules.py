"""Recurring schedules of all sorts: rules that are drawn, and what is asked of them later.

Intervals and cron, from now or from an instant, with an end or a number, each misfire policy,
limits of lateness, jitter, groups; some are paused and resumed, triggered or cancelled.  In worlds
with zones all of them go by the clock on the wall (`timetable_load`).  What came out is judged by
the auditor of recurring schedules, which chaos has too
(`tests/acceptance/harness/rhythm_audit.py`): it walks each rule by arithmetic of its own, and asks
the oracle of timetables (`timetables`).
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from random import Random
from typing import TYPE_CHECKING, Any, Final

import fastavro

from tests.acceptance.harness.reading import Record
from tests.acceptance.harness.rhythm_audit import RhythmEvidence, audit_rhythms
from tests.acceptance.harness.rhythms import Asked, Rhythm
from tests.simulation.sent import Sent, schema
from tests.simulation.timetable_load import TableLoad

if TYPE_CHECKING:
    from tests.simulation.load import Load
    from tests.simulation.world import World

_LIFECYCLE: Final = schema("LifecycleEvent")
MISFIRES: Final = ("FIRE_ONCE", "FIRE_ALL", "SKIP")
LIMITS_MS: Final = (0, 300, 2_000, 20_000)
# What timetables count as an interval: that of a second.
TABLE_MS: Final = 1_000
LATER: Final = ("PAUSE", "TRIGGER", "CANCEL", "")
# What a rule's requests bring; the auditor knows no names of requests.
PAYLOAD: Final = b"0"


class RuleLoad:
    """Draws rules, sends them, and asks something of some of them later."""

    def __init__(
        self, load: Load, tenants: tuple[str, ...], random: Random, tables: TableLoad | None = None
    ) -> None:
        self._load, self._tenants, self._random = load, tenants, random
        self._tables = tables
        self.rules: list[tuple[Rhythm, Sent]] = []
        self.later: list[tuple[Rhythm, Sent]] = []

    @property
    def struck(self) -> list[str]:
        """Which timetables were sent, and what they met."""
        return [] if self._tables is None else self._tables.struck

    def send_one(self) -> None:
        """Draw a rule and send it."""
        load, random = self._load, self._random
        number = len(load.sent)
        rule = self._drawn(f"id-{number}", f"rule-{number}", random.choice(self._tenants))
        sent = Sent(
            f"u{number}", rule.tenant, rule.schedule_id, "UPSERT", rule.fields(), f"id-{number}"
        )
        sent.once = True
        load.send(sent)
        self.rules.append((rule, sent))
        counted_ms = rule.interval_ms * (rule.max_fires or 0)
        load.expect(max(rule.end_ms or 0, load.broker.now_ms() + 3_000 + counted_ms))
        action = random.choice(LATER)
        if action:
            after_ms = random.randint(0, 5_000)
            load.broker.stage.later(after_ms, lambda: self._ask(rule, action))

    def _drawn(self, request_id: str, schedule_id: str, tenant: str) -> Rhythm:
        random, now_ms = self._random, self._load.broker.now_ms()
        kind = "CRON" if random.random() < 0.3 else "EVERY"
        if self._tables is not None:
            return self._by_table(request_id, schedule_id, tenant, self._tables)
        interval_ms = 1_000 if kind == "CRON" else random.choice((90, 250, 700, 1_900))
        rule = Rhythm(
            request_id, tenant, schedule_id, kind, interval_ms,
            random.choice(MISFIRES), random.choice(LIMITS_MS),
        )  # fmt: skip
        if kind == "EVERY" and random.random() < 0.5:
            rule.start_ms = now_ms + random.randint(-2_000, 3_000)
        count = random.randint(1, 12)
        if random.random() < 0.5:
            begins_ms = max(now_ms, rule.start_ms or 0)
            rule.end_ms = begins_ms + 2_000 + count * min(interval_ms, 1_000)
        else:
            rule.max_fires = count
        self._dress(rule)
        return rule

    def _by_table(
        self, request_id: str, schedule_id: str, tenant: str, tables: TableLoad
    ) -> Rhythm:
        """A rule by the clock on the wall, with an end and perhaps a number."""
        random = self._random
        table, end_ms = tables.one(self._load.broker.now_ms())
        kind = str(table.fields["kind"])
        misfire, limit_ms = random.choice(MISFIRES), random.choice(LIMITS_MS)
        rule = Rhythm(request_id, tenant, schedule_id, kind, TABLE_MS, misfire, limit_ms)
        rule.table, rule.end_ms = table, end_ms
        rule.max_fires = random.choice((None, None, 1, 2, 5))
        self._dress(rule)
        return rule

    def _dress(self, rule: Rhythm) -> None:
        """Give it jitter and a group, or none."""
        if self._random.random() < 0.3:
            half, twice = rule.interval_ms // 2, rule.interval_ms * 2
            rule.jitter_ms = self._random.choice((half, twice))
        if self._random.random() < 0.3:
            # Alone in its group: what waits for whom is then known from its records.
            rule.group = rule.schedule_id

    def _ask(self, rule: Rhythm, action: str) -> None:
        load = self._load
        number = len(load.sent)
        sent = Sent(f"v{number}", rule.tenant, rule.schedule_id, action, {}, f"id-{number}")
        sent.once = True
        load.send(sent)
        self.later.append((rule, sent))
        load.expect(load.broker.now_ms() + 1_000)
        if action == "PAUSE":
            after_ms = self._random.randint(0, 4_000)
            load.expect(load.broker.now_ms() + after_ms + 1_000)
            load.broker.stage.later(after_ms, lambda: self._ask(rule, "RESUME"))


def check_rules(world: World) -> list[str]:
    """All that is wrong with the rules of a world."""
    load = world.load.rules
    if load is None:
        return []
    for rule, sent in load.rules:
        rule.appended_ms = sent.appended_ms
    for rule, sent in load.later:
        assert sent.request_id is not None
        rule.later.append(Asked(sent.request_id, sent.action, sent.appended_ms))
    names = {sent.name.encode() for _, sent in load.rules}
    evidence = RhythmEvidence([rule for rule, _ in load.rules], {})
    evidence.fired = [each for each in _fired(world, names) if _is_ours(each)]
    evidence.lifecycle = [
        event for event in _told(world) if event["schedule_id"].startswith("rule-")
    ]
    return [f"I16 {finding.sentence}" for finding in audit_rhythms(evidence)]


def _is_ours(record: Record) -> bool:
    return (record.header("belfry-schedule-id") or b"").startswith(b"rule-")


def _fired(world: World, names: set[bytes]) -> Iterator[Record]:
    for topic, logs in sorted(world.broker.topics.items()):
        if not topic.startswith("belfry.fired."):
            continue
        for log in logs:
            for entry in log.history:
                if entry.committed:
                    value = PAYLOAD if entry.value in names else entry.value
                    headers = list(entry.headers or ())
                    place = (topic, log.partition, entry.offset, entry.timestamp_ms)
                    yield Record(*place, entry.key, value, headers)


def _told(world: World) -> Iterator[dict[str, Any]]:
    for entry in world.committed("belfry.lifecycle"):
        found: Any = fastavro.schemaless_reader(
            BytesIO((entry.value or b"")[10:]), _LIFECYCLE, None
        )
        yield {**found, "appended_ms": entry.timestamp_ms}
