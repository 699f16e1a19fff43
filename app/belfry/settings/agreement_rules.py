"""Which settings have to be equal on all workers, with the rule and the reason of each.

A worker that judges by other rules than the one beside it gives a request another outcome, and
which of the two it meets is chance. So each setting that decides about outcomes has a rule:

    FIXED      for the life of a belfry: who differs does not start
    TOGETHER   equal wherever workers run at the same time: who differs does not start beside others
    ROLLING    changed by a restart of the workers one by one: who differs says so, and goes on

Every other setting of a worker stands in `OWN`, with the reason why each may have its own. A
setting that stands in neither fails a test, so nobody adds one without an answer. `agreement.py`
compares, and docs/settings.md shows rule and reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple


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
    "key_group_moves": Agreed(
        AgreementRule.ROLLING,
        "a move of a key group is begun by one owner, and refused by another",
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
        "the group's leader decides, so shares move when another one leads",
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
        "the group's leader decides, so their number changes with the leader",
    ),
    "payload_store": Agreed(
        AgreementRule.ROLLING,
        "payloads of one tenant lie in two folders, and its consumers look into one",
    ),
    "day_store": Agreed(
        AgreementRule.ROLLING,
        "a worker without it cannot read back what another one has put there: it would fire late",
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
        *("otlp_url", "otlp_queue_spans", "checkpoint_store", "checkpoint_options"),
        *("payload_store_options", "day_store_options"),
    ),
    "what it does, and how much of it": (
        *("role", "worker_weight", "create_topics", "registry_auto_register", "webhook_user"),
        *("last_fires", "checkpoint_peers", "day_store_after_days"),
    ),
    "its pace: outcomes do not depend on it": (
        *("batch_records", "step_bytes", "fire_chunk", "new_topics_per_second", "metrics_tenants"),
        *("webhook_in_flight", "webhook_per_host", "transaction_writer"),
        *("transactional_ids", "client_statistics_interval_ms", "checkpoint_interval_s"),
        *("checkpoint_peer_bytes_per_s", "commit_interval_ms"),
    ),
    "how soon it gives up: Kafka fences owners whatever it is": (
        *("session_timeout_ms", "heartbeat_interval_ms", "transaction_timeout_ms"),
        *("silence_limit_ms", "hand_over_limit_ms", "unfit_limit_ms", "disk_reserve_mb"),
        "clock_tolerance_ms",
    ),
    "its port's own; behind one address give all the same": (
        *("http_api_keys", "http_api_keys_file", "http_allowed_hosts", "http_allowed_origins"),
        *("http_tls_certificate", "http_tls_key", "http_tls_authorities", "http_plaintext"),
        *("http_body_bytes", "audit"),
        *("http_bulk_bytes", "http_bodies_bytes", "http_under_way", "http_connections"),
        *("http_connections_per_address", "http_requests_per_second", "http_failures_per_second"),
        *("http_proxies", "oidc_issuer", "oidc_audience", "oidc_jwks_url"),
        *("oidc_tenants_claim", "oidc_roles_claim"),
    ),
}
