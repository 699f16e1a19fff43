"""The tenant of belfry's own probes: its schedules lead to every partition, and only workers ask.

Its policy is built in, as that of retries is, so no policy of a topic changes it.  It is spread so
widely that among a few ids there is one whose home is a given partition.

A probe is an ordinary schedule: it is asked for, accepted, fired and read back like a user's, and
how late it comes out is what `docs/slo.md` promises about.  `canary/` asks for the probes.
"""

from __future__ import annotations

from typing import Final

from belfry.tenants.policy import TenantPolicy

CANARY: Final = "belfry-canary"
CANARY_SHARDS: Final = 16_384
# Topics behind the prefix: one for its events, and one for the measurements.
CANARY_TOPIC: Final = "canary"
SLO_TOPIC: Final = "slo"
HISTORY_MS: Final = 3_600_000


def canary_policy(topic: str) -> TenantPolicy:
    """How the tenant is treated: outcomes are told, and forgotten within an hour."""
    return TenantPolicy(
        CANARY,
        output_topic=topic,
        spread=CANARY_SHARDS,
        lifecycle="OUTCOMES",
        history_ms=HISTORY_MS,
    )
