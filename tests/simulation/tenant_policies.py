"""Policies of the tenants of one world, as operators set them in the topic of policies.

    source_header             events say where their request lies
    claim_check_over_bytes    payloads of more bytes lie elsewhere; here most have three to five
    payload_key_ref           payloads are encrypted at rest; none at first, or an older key

Each seed draws which tenants have which of these before any worker starts.  Amid the run some get a
newer key (`renew`), and jobs encrypt what waits anew under it (REKEY), or are paused and limited
(`policy_changes`).  Other rules of a policy are as they are by default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from random import Random
from typing import TYPE_CHECKING, Any, Final

import fastavro

from tests.simulation.murmur import partition_of
from tests.simulation.payload_keys import NEW, OLD, newest_id
from tests.simulation.sent import Sent, head, schema

if TYPE_CHECKING:
    from tests.simulation.load import Load

TOPIC: Final = "belfry.tenants"
SCHEMA: Final = schema("TenantPolicy")
HEAD: Final = head("TenantPolicy")
# How long a job may take, the policy's way to all workers included.
JOB_MS: Final = 30_000


@dataclass(slots=True)
class Rules:
    """What one tenant's policy says; `first_keys` is what it said of keys in the beginning."""

    source: bool = False
    claims_over: int | None = None
    first_keys: str | None = None
    spread: int = 1
    keys: str | None = None
    # Pause and limits, by their names in the policy.
    limits: dict[str, Any] = field(default_factory=dict)

    def is_large(self, payload: bytes) -> bool:
        """Whether such a payload lies elsewhere."""
        return self.claims_over is not None and len(payload) > self.claims_over


class TenantPolicies:
    """Draws policies and writes them; `written` are all, with their instants in epoch ms."""

    def __init__(
        self, load: Load, random: Random, tenants: tuple[str, ...], chance: float, level: str
    ) -> None:
        """Each rule holds for a tenant by this chance; `level` is the one of its lifecycle."""
        self._load, self._random, self._level = load, random, level
        self.written: list[tuple[int, dict[str, Any]]] = []
        self._rules: dict[str, Rules] = {}
        self.renewed: list[str] = []
        for tenant in tenants if chance else ():
            self._rules[tenant] = self._drawn(chance)

    def spread(self, shards: dict[str, int]) -> None:
        """These tenants live in so many shards, from the beginning on."""
        for tenant, number in shards.items():
            self._rules.setdefault(tenant, Rules()).spread = number

    def _drawn(self, chance: float) -> Rules:
        draws = [self._random.random() < chance for _ in range(3)]
        over, keys = self._random.choice((0, 2, 3)), self._random.choice((None, OLD, OLD))
        keys = keys if draws[2] else None
        return Rules(draws[0], over if draws[1] else None, keys, keys=keys)

    def also(self, tenant: str, **said: Any) -> None:
        """A tenant's policy says this, too, from the beginning on."""
        self._rules.setdefault(tenant, Rules()).limits |= said

    def of(self, tenant: str) -> Rules:
        """What holds for a tenant."""
        return self._rules.get(tenant) or Rules()

    @property
    def any_claims(self) -> bool:
        """Whether anybody's payloads may lie elsewhere."""
        return any(rules.claims_over is not None for rules in self._rules.values())

    def write(self) -> None:
        """Write the policies that hold from the beginning on."""
        for tenant, rules in self._rules.items():
            if rules != Rules():
                self._write(tenant)

    def _write(self, tenant: str) -> None:
        rules, broker = self.of(tenant), self._load.broker
        policy = {
            "tenant": tenant,
            "lifecycle": self._level,
            "source_header": rules.source,
            "claim_check_over_bytes": rules.claims_over,
            "payload_key_ref": rules.keys,
            "spread": rules.spread,
            **rules.limits,
        }
        buffer = BytesIO()
        fastavro.schemaless_writer(buffer, SCHEMA, policy)
        key = tenant.encode()
        log = broker.log(TOPIC, partition_of(key, self._load.partitions))
        entry = broker.append(log, (key, HEAD + buffer.getvalue(), None))
        self.written.append((entry.timestamp_ms, policy))

    def set(self, tenant: str, name: str, value: Any) -> None:
        """Set a limit of a tenant, or whether it is paused."""
        self._rules.setdefault(tenant, Rules()).limits[name] = value
        self._write(tenant)

    def later(self, ms: float, action: Callable[[], None]) -> None:
        """Do something in so many milliseconds."""
        self._load.broker.stage.later(ms, action)

    # -- a newer key -------------------------------------------------------------------------------

    def renew(self) -> None:
        """Give a tenant a newer key, and have a job or two encrypt anew what waits."""
        left = [name for name, rules in self._rules.items() if rules.keys != NEW]
        if not left:
            return
        tenant = self._random.choice(left)
        self.of(tenant).keys = NEW
        self.renewed.append(tenant)
        self._write(tenant)
        for _ in range(self._random.choice((1, 1, 2))):
            after_ms = self._random.choice((0.0, 30.0, 800.0, 3_000.0)) * self._random.random()
            self._load.broker.stage.later(after_ms, lambda: self._rekey(tenant))

    def _rekey(self, tenant: str) -> None:
        number = len(self._load.sent)
        said = {
            "action": "REKEY",
            "prefix": self._random.choice(("", "", "", "plain-", "a")),
            "group": None,
            "key": newest_id(tenant),
            "per_second": self._random.choice((5, 20, 100)),
        }
        fields = {"bulk": json.dumps(said)}
        self._load.expect(self._load.broker.now_ms() + JOB_MS)
        name = f"j{number}"
        self._load.send(Sent(name, tenant, f"job-{number}", "BULK", fields, f"id-{number}"))

    def keys_over_time(self, tenant: str) -> Iterator[str | None]:
        """What the policy of a tenant has said of keys, in order."""
        rules = self.of(tenant)
        yield rules.first_keys
        if rules.keys != rules.first_keys:
            yield rules.keys
