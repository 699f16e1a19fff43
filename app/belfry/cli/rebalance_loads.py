"""What `belfry rebalance` measures: the load of each tenant, and how tenants are spread.

    a worker, over HTTP      every tenant: schedules that wait, events fired; looked at twice
                             where key groups lie, and the number of homes
    Kafka                    policies: which tenants are spread; the number of partitions
                             the metering topic: bytes held in the last hours, where it is metered

Fires a second are the difference of two looks. An owner that began anew meanwhile counts from 0,
which shows as no fires, and so does a tenant that the first look did not find.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from belfry.cli.policies import PAGE, kafka_policies
from belfry.cli.remote import Remote, WorkerRefusal

if TYPE_CHECKING:
    from belfry.cli.session import Session
    from belfry.placement.loads import TenantLoad
    from belfry.tenants.policy import TenantPolicy

# Of metering, so much before now is looked at: hours that are over are told within minutes.
METERED_MS: Final = 3 * 3_600_000


class MeasuredTenants(NamedTuple):
    """The loads of all tenants, in so many partitions, and what is missing there.

    `silent` are workers that did not answer, whose share of the loads is missing.  `missing` are
    partitions of which nobody told, as while one is taken over: neither their loads are known, nor
    which of their groups lie elsewhere.  `metered` says whether bytes are known.  `lies` are the
    partitions of key groups that are not at home.
    """

    tenants: list[TenantLoad]
    partitions: int
    silent: list[str]
    metered: bool
    lies: Mapping[int, int] | None = None
    # How many of the partitions are homes; 0 for all of them.
    homes: int = 0
    missing: tuple[int, ...] = ()


def measured(session: Session, over_s: float) -> MeasuredTenants:
    """What all tenants carry, with fires a second over so many seconds; 0 looks once.

    Raises `CommandError` where no worker answers, and `BelfryError` where Kafka does not.
    """
    from belfry.kafka.growth import topic_counts
    from belfry.kafka.wanted_topics import homes_of
    from belfry.placement.loads import LoadVector, TenantLoad

    cluster, admin = session.admin()
    partitions = len(cluster.partitions(admin, session.settings.topic("changelog")))
    policies = kafka_policies(session).all()
    remote = Remote(session)
    # Asked before and behind the looks: what had no owner at either of them may be missing.
    groups_before = _of_groups(remote)
    before, silent_before = _look(remote)
    began_s = monotonic()
    after, silent = before, silent_before
    if over_s > 0:
        sleep(over_s)
        after, silent = _look(remote)
    passed_s = monotonic() - began_s
    held = _held_bytes(session)
    tenants = []
    for name, (pending, fired) in after.items():
        fires = max(0, fired - before.get(name, (0, fired))[1]) / passed_s if over_s else 0.0
        load = LoadVector(pending, fires, (held or {}).get(name, 0.0))
        tenants.append(TenantLoad(name, load, _spreads(name, policies)))
    groups = _of_groups(remote)
    answers = groups_before, groups
    missing = {each for found in answers for each in found.get("missing", ())}
    silent_of_groups = [name for found in answers for name in found.get("silent", ())]
    silent_ones = sorted({*silent_before, *silent, *silent_of_groups})
    # Workers know it for certain; the topic that tells it may be hidden from who asks here.
    homes = groups.get("homes") or homes_of(session.settings.cluster, topic_counts(admin))
    lies = lying(groups.get("key_groups", ()))
    return MeasuredTenants(
        tenants, partitions, silent_ones, held is not None, lies, homes, tuple(sorted(missing))
    )


def _of_groups(remote: Remote) -> dict[str, Any]:
    """The key groups as workers tell of them; empty if the worker cannot tell.

    A worker of a release before this one has moved none, and a key that is bound to some tenants is
    not told.
    """
    try:
        found: dict[str, Any] = remote.get("/v1/key-groups")
    except WorkerRefusal as error:
        if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            return {}
        raise
    return found


def lying(groups: Iterable[dict[str, Any]]) -> dict[int, int]:
    """Where key groups lie, or go, that are not at home."""
    return {
        each["group"]: each["lies"] if each["goes"] is None else each["goes"] for each in groups
    }


def _look(remote: Remote) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Of each tenant how many schedules wait and how many events have fired; who was silent."""
    found: dict[str, tuple[int, int]] = {}
    silent: list[str] = []
    for page in _pages(remote):
        found |= {each["tenant"]: (each["pending"], each["fired"]) for each in page["figures"]}
        silent += page["silent"]
    return found, silent


def _pages(remote: Remote) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        page = remote.get("/v1/tenants", limit=PAGE, cursor=cursor)
        yield page
        cursor = page["cursor"]
        if cursor is None:
            return


def _held_bytes(session: Session) -> dict[str, float] | None:
    """The bytes that each tenant held, in the mean of the last periods; None where not metered."""
    from belfry.client.errors import MissingTopic
    from belfry.client.usage import UsageSpan, read_usage

    now_ms = int(time() * 1000)
    asked = UsageSpan(None, now_ms - METERED_MS, now_ms)
    try:
        found = read_usage(session.cluster(), session.settings.topic("metering"), asked)
    except MissingTopic:
        return None
    sums: dict[str, list[int]] = {}
    for each in found:
        mine = sums.setdefault(each.tenant, [0, 0])
        mine[0] += each.held_byte_ms
        mine[1] += each.until_ms - each.from_ms
    return {name: held / length for name, (held, length) in sums.items() if length} or None


def _spreads(tenant: str, policies: dict[str, TenantPolicy]) -> tuple[int, ...]:
    """How a tenant was and is spread; tenants of belfry's own have policies that are built in."""
    from belfry.tenants.canary import CANARY, CANARY_SHARDS
    from belfry.tenants.deliveries import RETRIES, RETRY_SHARDS

    built_in = {CANARY: CANARY_SHARDS, RETRIES: RETRY_SHARDS}
    if tenant in built_in:
        return (built_in[tenant],)
    policy = policies.get(tenant)
    return (1,) if policy is None else (*policy.former_spreads, policy.spread)
