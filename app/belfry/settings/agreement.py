"""A worker's statement of the settings that all workers share, and its differences from before.

An owner keeps a *statement* of these settings with the state of each partition, and beside it where
everybody can read it without the state. A worker that starts, or takes a partition over, compares
its own. The rule of a setting decides what a difference leads to (`agreement_rules.py`).

Two workers' secrets agree where each worker believes the signatures of the other one, so a change
of them passes through rounds in which both are believed. `A+B` is a worker that signs with A and
believes B as well:

    round    worker 1   worker 2   agree, because
    begin    A          A          the same
    1        A+B        A          both sign with A, and both believe A
    1 ends   A+B        A+B
    2        B+A        A+B        each believes the signatures of the other one
    2 ends   B+A        B+A
    3        B          B+A        both sign with B
    direct   B          A          refused: neither believes the other

A statement of another release may lack names, or have more: the names that both have are compared.
Secrets are in it as short digests, made slowly (scrypt, RFC 7914) and with the names of the belfry
as salt; an equal secret of another belfry looks otherwise.

All of it is pure but for the time that scrypt takes, some tens of milliseconds once for each
secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import scrypt
from itertools import combinations
from typing import Any, Final, NamedTuple

import orjson

from belfry.settings.agreement_rules import AGREED, AgreementRule
from belfry.settings.delivery import DeliverySettings
from belfry.settings.sources import plain, variable
from belfry.settings.worker import WorkerSettings
from belfry.store.layout.statements import UNSIGNED_UNTIL

# Values by the names of settings, such as JSON can hold.
Statement = Mapping[str, Any]

WORKER_SECRET: Final = "http_worker_secret"  # noqa: S105  # a name
# Enough to tell two secrets apart by chance, and too little to be of use as a key.
DIGEST_BYTES: Final = 6


class Difference(NamedTuple):
    """A setting in which a worker differs from the kept statement; values as they may be shown.

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
    """A worker's statement of the settings that it shares with others; no secret in clear.

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
            "key_group_moves": settings.key_group_moves,
            "registry_lookups_per_minute": settings.registry_lookups_per_minute,
            "catch_up_limit_ms": settings.catch_up_limit_ms,
            "assignment": settings.assignment,
            "standbys": settings.standbys,
            "canary_interval_ms": settings.canary_interval_ms,
            "metering_interval_ms": settings.metering_interval_ms,
        }
        store = settings.payload_store
        said["payload_store"] = None if store is None else _digest(settings, store.encode())
        store = settings.day_store
        said["day_store"] = None if store is None else _digest(settings, store.encode())
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
    """The settings, of those that both have, in which a worker differs from the kept statement."""
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


def unsigned_before(
    kept: Statement | None, mine: Statement, source: tuple[str, int]
) -> dict[str, Any]:
    """What an owner adds to its statement about requests that were sent on before it.

    `source` is the id of the input topic, and where the log of the partition ends. The former owner
    and its like signed nothing that this one believes, if their secrets do not agree: they had
    none, or another one. All workers were stopped in between, so what they sent on lies before that
    end. Later owners keep the offset, but not for an input that was made anew.

        owner     secret    end of the input    requests below count though nobody signed them
        1, 2      none                          all of them
        3         A         900                 900
        4         A         7000                900
        5         B         8200                8200
    """
    if kept is None or not mine.get(WORKER_SECRET):
        return {}
    if not _agree(WORKER_SECRET, kept.get(WORKER_SECRET), mine[WORKER_SECRET]):
        return {UNSIGNED_UNTIL: list(source)}
    found = kept.get(UNSIGNED_UNTIL)
    same_input = isinstance(found, list) and found[:1] == [source[0]]
    return {UNSIGNED_UNTIL: found} if same_input else {}


def told(found: Iterable[Difference]) -> str:
    """Differences in words."""
    return "; ".join(each.told() for each in found)


def _agree(name: str, kept: Any, mine: Any) -> bool:
    """Whether two values agree. Secrets are lists of digests, that of the signing one first."""
    if name != WORKER_SECRET:
        return bool(kept == mine)
    if any(each and not isinstance(each, list) for each in (kept, mine)):
        # No worker writes that: a damaged note stops no worker.
        return True
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
    """A few bytes of a slow hash: a reader only learns whether two secrets are the same."""
    return _slow_digest(secret, f"{settings.cluster.topic_prefix} {settings.cluster.app_id}")


@cache
def _slow_digest(secret: bytes, salt: str) -> str:
    """scrypt with 16 MB of memory (n × r × 128 bytes), remembered, since settings never change."""
    return scrypt(secret, salt=salt.encode(), n=2**14, r=8, p=1, dklen=DIGEST_BYTES).hex()
