"""Which settings have to be equal on all workers, and what differs from those of before.

A worker that judges by other rules than the one beside it gives a request another outcome, and
which of the two it meets is chance. So an owner keeps a *statement* of these settings with the
state of each partition, and beside it where everybody can read it without the state. A worker that
starts, or takes a partition over, compares its own. Three rules:

    FIXED      for the life of a belfry: who differs does not start
    TOGETHER   equal wherever workers run at the same time: who differs does not start beside others
    ROLLING    changed by a restart of the workers one by one: who differs says so, and goes on

Two workers' secrets agree where each worker believes what the other one signs, so a change of them
passes through rounds in which both are believed. `A+B` is a worker that signs with A and believes B
as well:

    round    worker 1   worker 2   agree, because
    begin    A          A          the same
    1        A+B        A          both sign with A, and both believe A
    1 ends   A+B        A+B
    2        B+A        A+B        each believes what the other one signs with
    2 ends   B+A        B+A
    3        B          B+A        both sign with B
    direct   B          A          refused: neither believes the other

A statement of another release may lack names, or have more: what both have is compared. Secrets are
in it as short digests, made slowly (scrypt, RFC 7914) and with the names of the belfry as salt; an
equal secret of another belfry looks otherwise.

All of it is pure but for the time that scrypt takes, some tens of milliseconds once for each
secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from hashlib import scrypt
from itertools import combinations
from typing import Any, Final, NamedTuple

import orjson

from belfry.settings.delivery import DeliverySettings
from belfry.settings.sources import plain, variable
from belfry.settings.worker import WorkerSettings

# Values by the names of settings, such as JSON can hold.
Statement = Mapping[str, Any]

WORKER_SECRET: Final = "http_worker_secret"  # noqa: S105  # a name
# Enough to tell two secrets apart by chance, and too little to be of use as a key.
DIGEST_BYTES: Final = 6


class AgreementRule(Enum):
    """When workers may differ in a setting."""

    FIXED = "fixed for the life of a belfry"
    TOGETHER = "equal wherever workers run at the same time"
    ROLLING = "changed by a rolling restart"


class Agreed(NamedTuple):
    """A setting that is equal on all workers, and what happens where it is not.

    `why` is a clause for people: what a worker that differs does to a request or an event.
    """

    rule: AgreementRule
    why: str


AGREED: Final[Mapping[str, Agreed]] = {
    "cluster.topic_prefix": Agreed(AgreementRule.FIXED, "state and requests lie under it"),
    "cluster.app_id": Agreed(
        AgreementRule.FIXED, "an owner fences the former one by a name made of it"
    ),
    "cluster.partitions": Agreed(
        AgreementRule.FIXED, "a schedule is looked for where this number says"
    ),
    "http_worker_secret": Agreed(
        AgreementRule.TOGETHER,
        "a worker refuses what another one signs with a secret that it lacks",
    ),
    "http_worker_secret_also": Agreed(
        AgreementRule.TOGETHER, "beside the first one: each worker believes what the others sign"
    ),
    "claims": Agreed(
        AgreementRule.ROLLING, "an unsigned request is accepted by one, and refused by another"
    ),
    "changelog": Agreed(
        AgreementRule.ROLLING,
        "a row is signed by one owner, and not by another (docs/threat-model.md)",
    ),
    "policies": Agreed(
        AgreementRule.ROLLING, "an unsigned policy is carried out by one, and not by another"
    ),
    "unknown_tenants": Agreed(
        AgreementRule.ROLLING, "a tenant without a policy is served by one, and refused by another"
    ),
    "unknown_tenants_most": Agreed(
        AgreementRule.ROLLING, "a tenant beyond the most is served by one, and refused by another"
    ),
    "default_delivery": Agreed(
        AgreementRule.ROLLING, "events of one tenant have the form of their owner's"
    ),
    "lifecycle": Agreed(
        AgreementRule.ROLLING, "an outcome is told by one owner, and not by another"
    ),
    "schema_registry_url": Agreed(
        AgreementRule.ROLLING,
        "whether there is one: records that name a schema's id are refused where there is none."
        " The addresses may differ",
    ),
    "registry_subjects": Agreed(
        AgreementRule.ROLLING,
        "schemas of one topic are kept under two names; records can be read by both",
    ),
    "registry_wait_ms": Agreed(
        AgreementRule.ROLLING,
        "a request whose schema is told late waits at one, and is refused by another",
    ),
    "registry_lookups_per_minute": Agreed(
        AgreementRule.ROLLING,
        "a request with one unknown schema more is refused by one, and not by another",
    ),
    "catch_up_limit_ms": Agreed(
        AgreementRule.ROLLING, "after it events fire although a cancel of them may lie unread"
    ),
    "assignment": Agreed(
        AgreementRule.ROLLING,
        "whoever leads the group decides, so shares move when another one leads",
    ),
    "canary_interval_ms": Agreed(
        AgreementRule.ROLLING,
        "where an owner asks less often than others, `belfry slo` counts an outage",
    ),
    "metering_interval_ms": Agreed(
        AgreementRule.ROLLING,
        "usage is counted by one, and not by another; on all that deliver as well",
    ),
    "standbys": Agreed(
        AgreementRule.ROLLING,
        "whoever leads the group decides, so their number changes with the leader",
    ),
    "webhook_secrets": Agreed(
        AgreementRule.ROLLING,
        "on all that deliver: a receiver refuses what is signed with another secret",
    ),
    "webhook_private_networks": Agreed(
        AgreementRule.ROLLING,
        "on all that deliver: a target is reached by one, and refused by another",
    ),
}

# Settings that each worker has for itself, and why.
OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "where it runs, and how it is reached": (
        *("bootstrap_servers", "kafka", "registry", "data_dir", "secrets_dir", "worker_name"),
        *("worker_rack", "group_instance_id", "http_host", "http_port", "health_host"),
        *("health_port", "http_advertised_url", "log_format", "log_level"),
        *("otlp_url", "otlp_queue_spans"),
    ),
    "what it does, and how much of it": (
        *("role", "worker_weight", "create_topics", "registry_auto_register", "webhook_user"),
        "last_fires",
    ),
    "its pace: outcomes do not depend on it": (
        *("batch_records", "step_bytes", "fire_chunk", "new_topics_per_second", "metrics_tenants"),
        *("webhook_in_flight", "webhook_per_host", "transaction_writer"),
        "client_statistics_interval_ms",
    ),
    "how soon it gives up: Kafka fences owners whatever it is": (
        *("session_timeout_ms", "heartbeat_interval_ms", "transaction_timeout_ms"),
        *("silence_limit_ms", "hand_over_limit_ms", "unfit_limit_ms", "disk_reserve_mb"),
        "clock_tolerance_ms",
    ),
    "its port's own; behind one address give all the same": (
        *("http_api_keys", "http_api_keys_file", "http_allowed_hosts", "http_allowed_origins"),
        *("http_tls_certificate", "http_tls_key", "http_plaintext", "http_body_bytes", "audit"),
        *("http_bulk_bytes", "http_bodies_bytes", "http_under_way", "http_connections"),
        *("http_connections_per_address", "http_requests_per_second", "http_failures_per_second"),
        *("http_proxies", "oidc_issuer", "oidc_audience", "oidc_jwks_url"),
        *("oidc_tenants_claim", "oidc_roles_claim"),
    ),
}


class Difference(NamedTuple):
    """A setting in which a worker differs from what was kept; values as they may be shown.

    `kept` and `given` are texts in which a secret is a digest.
    """

    name: str
    kept: str
    given: str

    @property
    def rule(self) -> AgreementRule:
        """When workers may differ in it."""
        return AGREED[self.name].rule

    def told(self) -> str:
        """The difference in words."""
        return f"{variable(self.name)} is {self.given} here, and was kept as {self.kept}"


def statement(settings: DeliverySettings) -> dict[str, Any]:
    """What a worker says of the settings that it shares with others; no secret in clear.

    Those of deliveries are in it where the worker delivers. A dispatcher has only those that it
    shares with workers. The fixed settings are kept by themselves, as `cluster_fingerprint`.
    """
    said: dict[str, Any] = {
        # Addresses of one registry may differ by network; whether there is one decides about
        # requests.
        "schema_registry_url": settings.schema_registry_url is not None,
        "registry_subjects": settings.registry_subjects,
        "registry_wait_ms": settings.registry_wait_ms,
        WORKER_SECRET: [_digest(settings, each) for each in settings.worker_secrets()],
    }
    if isinstance(settings, WorkerSettings):
        said |= {
            "claims": settings.claims,
            "changelog": settings.changelog,
            "policies": settings.policies,
            "unknown_tenants": settings.unknown_tenants,
            "unknown_tenants_most": settings.unknown_tenants_most,
            "default_delivery": settings.default_delivery,
            "lifecycle": settings.lifecycle,
            "registry_lookups_per_minute": settings.registry_lookups_per_minute,
            "catch_up_limit_ms": settings.catch_up_limit_ms,
            "assignment": settings.assignment,
            "standbys": settings.standbys,
            "canary_interval_ms": settings.canary_interval_ms,
            "metering_interval_ms": settings.metering_interval_ms,
        }
    if settings.role != "schedule":
        secrets = orjson.dumps(plain(settings.webhook_secrets), option=orjson.OPT_SORT_KEYS)
        said["webhook_secrets"] = _digest(settings, secrets) if settings.webhook_secrets else None
        said["webhook_private_networks"] = sorted(settings.webhook_private_networks)
    return said


def encode(said: Any) -> str:
    """A statement as canonical JSON."""
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()


def decode(text: str | bytes) -> dict[str, Any]:
    """A statement out of the text that was kept; an empty one where that cannot be read.

    An empty one agrees with everything: a worker starts rather than stop over a damaged note.
    """
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def differences(kept: Statement, mine: Statement) -> list[Difference]:
    """In which settings, of those that both have, a worker differs from what was kept."""
    both = [name for name in AGREED if name in kept and name in mine]
    return [
        Difference(name, _shown(name, kept[name]), _shown(name, mine[name]))
        for name in both
        if not _agree(name, kept[name], mine[name])
    ]


def disagreements(kept: Mapping[int, Statement]) -> dict[str, dict[str, list[int]]]:
    """Settings in which the statements of partitions differ: the partitions of each value.

    `kept` is by partition. The result has the name of a setting, then each value as it may be
    shown, then the partitions whose owners have it.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for name in AGREED:
        said = {partition: each[name] for partition, each in kept.items() if name in each}
        values = {encode(value): value for value in said.values()}.values()
        if not all(_agree(name, one, other) for one, other in combinations(values, 2)):
            by_value = found.setdefault(name, {})
            for partition, value in said.items():
                by_value.setdefault(_shown(name, value), []).append(partition)
    return found


def cluster_differences(kept: bytes, mine: bytes) -> list[Difference]:
    """The same for the fixed settings, which are kept by themselves."""
    then, now = ({f"cluster.{k}": v for k, v in decode(text).items()} for text in (kept, mine))
    return differences(then, now)


def told(found: Iterable[Difference]) -> str:
    """Differences in words."""
    return "; ".join(each.told() for each in found)


def _agree(name: str, kept: Any, mine: Any) -> bool:
    """Whether two values agree. Secrets are lists of digests, that of the signing one first."""
    if name != WORKER_SECRET:
        return bool(kept == mine)
    if not kept or not mine:
        return not kept and not mine
    return kept[0] in mine and mine[0] in kept


def _shown(name: str, value: Any) -> str:
    """A value for people; a secret as its digest."""
    if name == WORKER_SECRET:
        return f"a secret of digest {' and '.join(map(str, value))}" if value else "no secret"
    if name == "webhook_secrets":
        return f"secrets of digest {value}" if value else "no secrets"
    if name == "schema_registry_url":
        return "set" if value else "not set"
    return str(value) if isinstance(value, str | int) else encode(value)


def _digest(settings: DeliverySettings, secret: bytes) -> str:
    """A few bytes of a slow hash: who reads it learns whether two secrets are the same."""
    return _slow_digest(secret, f"{settings.cluster.topic_prefix} {settings.cluster.app_id}")


@cache
def _slow_digest(secret: bytes, salt: str) -> str:
    """scrypt with 16 MB of memory (n × r × 128 bytes), remembered, since settings never change."""
    return scrypt(secret, salt=salt.encode(), n=2**14, r=8, p=1, dklen=DIGEST_BYTES).hex()
