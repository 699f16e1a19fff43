"""What `belfry doctor` sees of settings that workers share: what the owners of partitions said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status

if TYPE_CHECKING:
    from belfry.settings import SharedSettings

ROLLING_TO_DO: Final = "restart the workers one by one with the same value (docs/workers.md)"
TOGETHER_TO_DO: Final = "give all workers the same at once (docs/workers.md)"


def settings_checks(admin: Any, cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """Whether the owners of all partitions have the same, as each said when it took over."""
    from belfry.kafka.agreement import kept_statements

    changelog = settings.topic("changelog")
    if changelog not in cluster.topics:
        return
    homes = range(len(cluster.topics[changelog].partitions))
    try:
        kept = kept_statements(admin, settings, homes)
    except ConnectionError as error:
        yield Check("settings", Status.SKIPPED, f"Kafka does not tell: {error}.")
        return
    yield from judge(kept, len(homes))


def judge(kept: Mapping[int, Mapping[str, Any]], homes: int) -> Iterator[Check]:
    """What the statements of partitions' owners mean."""
    from belfry.settings.agreement import AGREED, AgreementRule, disagreements
    from belfry.settings.sources import variable

    if not kept:
        detail = "No owner of a partition has said yet what its settings are."
        yield Check("settings", Status.SKIPPED, detail)
        return
    found = disagreements(kept)
    for name, by_value in found.items():
        values = ", ".join(f"{value} at {_listed(at)}" for value, at in by_value.items())
        rule, why = AGREED[name]
        rolling = rule is AgreementRule.ROLLING
        detail = f"{variable(name)} differs between owners: {values}. Why: {why}."
        status = Status.RISK if rolling else Status.PROBLEM
        yield Check("settings", status, detail, ROLLING_TO_DO if rolling else TOGETHER_TO_DO)
    if not found:
        detail = f"Workers agree on what they share, as owners of {len(kept)} of {homes} partitions"
        yield Check("settings", Status.OK, f"{detail} said.")


def _listed(partitions: list[int]) -> str:
    named = "partition" if len(partitions) == 1 else "partitions"
    return f"{named} {', '.join(map(str, partitions))}"
