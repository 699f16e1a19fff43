"""Transactions that hold belfry's readers back: who has them open, since when, how to end them.

belfry's own are over within milliseconds, so partitions are looked at twice: one whose last stable
offset stays before its end, where it was, is held back by somebody.  The brokers tell by whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import sleep, time
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.kafka.fetch_position import Where
    from belfry.kafka.holders import OpenTransaction
    from belfry.settings import SharedSettings

ASK_S: Final = 5.0
BETWEEN_S: Final = 1.0
LONG_MS: Final = 10_000
# So many partitions of output topics are named: one transaction may hang in hundreds.
MOST_NAMED: Final = 20
HARM: Final = {
    "changelog": "Nobody can take this partition over before it ends",
    "schedules": "No request behind it is taken in before it ends",
    "tenants": "No policy behind it counts before it ends",
    "lifecycle": "No verdict behind it can be read before it ends",
    "rejected": "No refused request behind it can be read before it ends",
    "deliveries": "No delivery behind it is posted before it ends",
    "undelivered": "No dead letter behind it can be read before it ends",
}
# Tenants' own topics: how their names begin, and what is kept back there.
INPUTS: Final = "schedules."
HARM_OF_INPUTS: Final = "No request of this tenant behind it is taken in before it ends"
# Topics of events: the one that tenants share, and how those of tenants begin.
OUTPUTS: Final = ("fired", "fired.")
# Tenants' own topics of dead letters.
LETTERS: Final = "dead-letters."
HARM_OF_LETTERS: Final = "No dead letter of this tenant behind it can be read before it ends"
HARM_OF_OUTPUTS: Final = "Nobody reads an event behind it before it ends, and belfry goes on firing"


def transaction_checks(admin: Any, settings: SharedSettings) -> Iterator[Check]:
    """One line for each partition that a transaction holds back, or one if there is none."""
    from confluent_kafka import KafkaException

    from belfry.kafka.holders import Untold, untold
    from belfry.kafka.open_transactions import look_up

    try:
        places = _places(admin, settings)
        stuck = _stuck(admin, places, settings)
    except KafkaException as error:
        detail = f"Kafka refuses to tell: {error.args[0].str()}."
        yield Check("transactions", Status.PROBLEM, detail)
        return
    problems: list[Check] = []
    outputs = [place for place in stuck if _is_output(place[0], settings)]
    if more := outputs[MOST_NAMED:]:
        detail = f"{len(more)} more partitions of output topics are held back."
        problems.append(Check("transactions", Status.PROBLEM, detail))
    for place in [place for place in stuck if place not in {*more}]:
        try:
            found = look_up(settings.kafka_properties(), [place])
            problems += judge(place, found, settings, time() * 1000)
        except Untold as error:
            told = untold(error, place, settings)
            detail = f"{place[0]}/{place[1]} is held back: {told.who}."
            problems.append(Check("transactions", Status.PROBLEM, detail, told.to_do))
    yield from problems
    if not problems:
        detail = f"None holds readers of belfry's {len(places)} partitions back."
        yield Check("transactions", Status.OK, detail)


def judge(
    place: Where, found: list[OpenTransaction], settings: SharedSettings, now_ms: float
) -> Iterator[Check]:
    """What the first open transaction of a partition means."""
    from belfry.kafka.holders import tell

    if not found:
        return
    first, name = found[0], place[0].removeprefix(settings.topic(""))
    mine, overdue = first.is_of(settings.cluster.app_id), first.overdue(now_ms)
    if mine and not overdue:
        return
    told = tell(found, place, settings, now_ms)
    lasts = overdue or name == "changelog" or now_ms - first.since_ms >= LONG_MS
    status = Status.PROBLEM if lasts else Status.RISK
    harm = HARM.get(name, _harm_of_tenants(name))
    yield Check("transactions", status, f"{harm}: {told.who}.", told.to_do)


def _harm_of_tenants(name: str) -> str:
    """What it does in a topic of a tenant, or in the one for all tenants' events."""
    if name.startswith(INPUTS):
        return HARM_OF_INPUTS
    return HARM_OF_LETTERS if name.startswith(LETTERS) else HARM_OF_OUTPUTS


def _is_output(topic: str, settings: SharedSettings) -> bool:
    """Whether it is a topic of events or a tenant's own of dead letters, of which many may be."""
    shared, tenants = OUTPUTS
    begins = settings.topic(tenants), settings.topic(LETTERS)
    return topic == settings.topic(shared) or topic.startswith(begins)


def _places(admin: Any, settings: SharedSettings) -> list[Where]:
    topics = admin.list_topics(timeout=ASK_S).topics
    there = [topic for name in HARM if (topic := settings.topic(name)) in topics]
    there += sorted(each for each in topics if each.startswith(settings.topic(INPUTS)))
    # An output topic without a leader is another finding, and hides nobody's transaction.
    there += sorted(
        name
        for name, topic in topics.items()
        if _is_output(name, settings)
        and all(each.leader >= 0 for each in topic.partitions.values())
    )
    return [(topic, each) for topic in there for each in sorted(topics[topic].partitions)]


def _stuck(admin: Any, places: list[Where], settings: SharedSettings) -> list[Where]:
    before = _held_back(admin, places, settings)
    if not before:
        return []
    sleep(BETWEEN_S)
    after = _held_back(admin, sorted(before), settings)
    return [place for place in places if place in after and after[place] == before[place]]


def _held_back(admin: Any, places: list[Where], settings: SharedSettings) -> dict[Where, int]:
    """The last stable offset of each partition that has a later end."""
    from confluent_kafka import IsolationLevel

    # In this order: what is appended in between does not look like something hidden.
    ends = _ends(admin, places, IsolationLevel.READ_UNCOMMITTED, settings)
    stable = _ends(admin, places, IsolationLevel.READ_COMMITTED, settings)
    told = [place for place in places if place in ends and place in stable]
    return {place: stable[place] for place in told if stable[place] < ends[place]}


def _ends(
    admin: Any, places: list[Where], isolation: Any, settings: SharedSettings
) -> Mapping[Where, int]:
    """Where partitions end; one of thousands of output topics that does not tell is left out."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka import admin as kinds

    latest: Any = kinds.OffsetSpec.latest()  # type: ignore[attr-defined,no-untyped-call]
    asked = {TopicPartition(*place): latest for place in places}
    if not asked:
        return {}
    answers = admin.list_offsets(asked, isolation_level=isolation, request_timeout=ASK_S)
    found: dict[Where, int] = {}
    for at, answer in answers.items():
        try:
            found[at.topic, at.partition] = answer.result().offset
        except KafkaException:
            if not _is_output(at.topic, settings):
                raise
    return found
