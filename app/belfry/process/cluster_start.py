"""The checks of a worker before it begins: brokers, topics, the registry's schemas.

It waits for a broker for as long as it takes, makes missing topics if it may, and refuses to start
on topics that cannot keep belfry's promises.

    problem                                  what the worker does
    no broker answers                        waits, and says so each second
    no secure connection                     waits, and says what to check: rights may be given
    a right is missing                       says so, and goes on; refuses if topics are hidden
    topics are missing                       makes them, or refuses with their names
    topics or brokers break promises         refuses with each problem
    the registry does not answer             waits within its limit, see `registry/startup.py`

It runs in the main thread before there is an event loop, and blocks. The HTTP port answers
meanwhile from its own thread, and SIGTERM is simply the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import structlog
from confluent_kafka import KafkaException, TopicCollection

from belfry.client.faults import CHECK_SECURITY, Faults
from belfry.host import machine
from belfry.kafka import lacking, librdkafka, topics
from belfry.kafka.agreement import compare_at_start, statement_notes
from belfry.kafka.cluster_checks import check_at_start
from belfry.kafka.lacking import NOT_LET, may_not_create
from belfry.placement.partition_count import PartitionCount
from belfry.process.data_folder import RefusedToStart
from belfry.registry import startup
from belfry.registry.client import Registry
from belfry.registry.subjects import open_registry
from belfry.settings import DeliverySettings

ASK_AGAIN_S: Final = 0.1
CHECK_ADDRESS: Final = (
    "Start a broker, or give the address of one that runs (BELFRY_BOOTSTRAP_SERVERS); the worker"
    " goes on by itself once one answers"
)
Awaits = Callable[[str], object]

log = structlog.get_logger("belfry")


class ClusterState(NamedTuple):
    """The state of the cluster before a worker begins."""

    admin: librdkafka.AdminClient
    # Kafka's id of the cluster, which is compared with the state.
    cluster_id: str
    # None if no registry is configured.
    registry: Registry | None
    # The first bytes of lifecycle events and deliveries.
    frames: startup.Frames
    # The number of partitions that hold schedules, as far as this worker knows.
    counted: PartitionCount


def find(settings: DeliverySettings, awaits: Awaits = str) -> ClusterState:
    """Look at the cluster, once a broker answers; RefusedToStart if it is not suitable.

    It blocks. It may create topics, and register schemas if the settings say so. `awaits` is told
    the cause of the waiting, for `/healthz/ready`.
    """
    faults = Faults()
    admin = asker(settings, error_cb=faults)
    cluster_id = _await_cluster(admin, faults, settings.bootstrap_servers, awaits)
    # The next checks take time as well, but a broker answers now.
    awaits("")
    _rights(admin, settings)
    _topics(admin, settings)
    registry = open_registry(settings)
    frames = startup.WITHOUT
    if registry is not None:
        frames = startup.frames(registry, settings, partial(_say_registry, awaits))
    awaits("")
    return ClusterState(admin, cluster_id, registry, frames, count_partitions(admin, settings))


def asker(settings: DeliverySettings, **more: Any) -> librdkafka.AdminClient:
    """A client that asks the cluster, and creates no topics by that.

    If brokers create topics by themselves, a request for a topic by its name would create it: a
    deleted one came back, with the brokers' settings and not with belfry's.
    """
    given = {**settings.kafka_properties(), "allow.auto.create.topics": False}
    return librdkafka.AdminClient(given | more)


def _say_registry(awaits: Awaits, problem: str) -> None:
    """Log a problem of the registry; the worker still starts."""
    log.warning("registry", problem=problem)
    awaits(problem)


def _await_cluster(
    admin: librdkafka.AdminClient, faults: Faults, servers: str, awaits: Awaits
) -> str:
    """Cluster id, once a broker answers; a worker without access keeps trying, too."""
    while True:
        try:
            return str(admin.list_topics(timeout=5).cluster_id)
        except KafkaException as error:
            admin.poll(0)
            # The callback of the client got the cause; the error of the call is only a timeout.
            reason = faults.last or error.args[0].str()
            if faults.locked_out:
                what, cure = "no secure connection to Kafka", CHECK_SECURITY
            else:
                what, cure = "no Kafka broker answers yet", CHECK_ADDRESS
            tell = log.error if faults.locked_out else log.warning
            tell(what, at=servers, reason=reason, cure=cure)
            awaits(f"{what} at {servers}: {reason}. {cure}")
            machine.sleep(1)


def _rights(admin: librdkafka.AdminClient, settings: DeliverySettings) -> None:
    """Log each missing right; RefusedToStart if topics cannot be seen without it.

    Fewer rights may be enough for less work, so the worker starts with those that it has.
    """
    for each in lacking.missing_rights(admin, settings):
        if each.hides:
            raise RefusedToStart(
                f"{each.problem}: it is unknown whether these topics exist. Grant it: {each.cure}"
            )
        log.error("a right is missing", problem=each.problem, cure=each.cure)


def _topics(admin: librdkafka.AdminClient, settings: DeliverySettings) -> None:
    """Make and check topics; RefusedToStart if some are missing, or cannot keep a promise."""
    if settings.create_topics:
        try:
            created = topics.create(admin, settings)
        except KafkaException as error:
            if error.args[0].code() not in NOT_LET:
                raise
            raise RefusedToStart(
                f"topics are missing, and {may_not_create(settings)}. Or let somebody who may run"
                " `belfry topics create`."
            ) from None
        if created:
            log.info("topics created", topics=created)
    absent = _absent(admin, settings, topics.CREATE_S if settings.create_topics else 0)
    if absent:
        raise RefusedToStart(
            f"topics are missing: {', '.join(absent)}. Run `belfry topics create`, or let the"
            " worker create them (BELFRY_CREATE_TOPICS=true)."
        )
    refusal = check_at_start(admin, settings) or compare_at_start(
        admin, statement_notes(settings), settings
    )
    if refusal:
        raise RefusedToStart(refusal)


def _absent(
    admin: librdkafka.AdminClient, settings: DeliverySettings, patience_s: float
) -> list[str]:
    """Topics that are still missing after some time.

    A broker may learn of a new topic a moment later than the broker that made it.
    """
    deadline = machine.monotonic() + patience_s
    while (absent := topics.missing(admin, settings)) and machine.monotonic() < deadline:
        machine.sleep(ASK_AGAIN_S)
    return [spec.name for spec in absent]


def count_partitions(admin: librdkafka.AdminClient, settings: DeliverySettings) -> PartitionCount:
    """The number of homes, and of partitions that hold schedules: those of the changelog.

    It blocks for 10 s at most. The input may have more partitions than that, and these hold no
    schedules.
    """
    changelog = settings.topic("changelog")
    described = admin.describe_topics(TopicCollection([changelog]))
    there = len(described[changelog].result(10).partitions)
    return PartitionCount(settings.cluster.partitions, there)
