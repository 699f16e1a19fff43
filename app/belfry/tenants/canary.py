"""The tenant of belfry's own probes: its schedules lead to every partition, and only workers ask.

Its policy is built in, as that of retries is, so no policy of a topic changes it. The tenant is
spread so widely that for each partition one of a few ids has its home there.

A probe is an ordinary schedule: it is requested, accepted, fired and read back like a user's.
`docs/slo.md` makes a promise about its lateness. `canary/` requests the probes.
"""

from __future__ import annotations

from typing import Final

from belfry.tenants.policy import TenantPolicy

CANARY: Final = "belfry-canary"
CANARY_SHARDS: Final = 16_384
# Names of topics, behind the prefix: one for its events, and one for the measurements.
CANARY_TOPIC: Final = "canary"
SLO_TOPIC: Final = "slo"
HISTORY_MS: Final = 3_600_000


def canary_policy(topic: str) -> TenantPolicy:
    """The tenant's policy: outcomes are reported, and forgotten within an hour."""
    return TenantPolicy(
        CANARY,
        output_topic=topic,
        spread=CANARY_SHARDS,
        lifecycle="OUTCOMES",
        history_ms=HISTORY_MS,
    )
