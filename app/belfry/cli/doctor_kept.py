"""Checks of `belfry doctor` on the statements that owners of partitions have left in Kafka.

An owner leaves two things when it takes a partition over, as metadata of offsets: a *statement*,
which tells the settings that all workers have to share, and an *anchor*, which tells the world that
the state belongs to (cluster and topics, by their ids).  So the doctor sees workers that disagree,
and topics that were made anew, without a worker's HTTP port and without a data directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from belfry.cli.check import Check, Status
from belfry.cli.shown import partitions_text

if TYPE_CHECKING:
    from belfry.settings import SharedSettings
    from belfry.store.identity import Contradiction, Identity

ROLLING_TO_DO: Final = "restart the workers one by one with the same value (docs/workers.md)"
TOGETHER_TO_DO: Final = "give all workers the same at once (docs/workers.md)"
RECOVER_TO_DO: Final = "belfry recover, which names the choices (docs/recovery.md)"


def settings_checks(cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """Whether the owners of all partitions have the same, as each said when it took over."""
    from belfry.kafka.agreement import kept_statements, statement_notes

    changelog = settings.topic("changelog")
    if changelog not in cluster.topics:
        return
    homes = range(len(cluster.topics[changelog].partitions))
    try:
        kept = kept_statements(statement_notes(settings), homes)
    except ConnectionError as error:
        yield Check("settings", Status.SKIPPED, f"Kafka does not tell: {error}.")
        return
    yield from judge(kept, len(homes))


def judge(kept: Mapping[int, Mapping[str, Any]], homes: int) -> Iterator[Check]:
    """What the statements of partitions' owners mean."""
    from belfry.settings.agreement import disagreements
    from belfry.settings.agreement_rules import AGREED, AgreementRule
    from belfry.settings.sources import variable

    if not kept:
        detail = "No owner of a partition has said yet what its settings are."
        yield Check("settings", Status.SKIPPED, detail)
        return
    found = disagreements(kept)
    for name, by_value in found.items():
        values = ", ".join(f"{value} at {partitions_text(at)}" for value, at in by_value.items())
        rule, why = AGREED[name]
        rolling = rule is AgreementRule.ROLLING
        detail = f"{variable(name)} differs between owners: {values}. Why: {why}."
        status = Status.RISK if rolling else Status.PROBLEM
        yield Check("settings", status, detail, ROLLING_TO_DO if rolling else TOGETHER_TO_DO)
    if not found:
        detail = f"Workers agree on what they share, as owners of {len(kept)} of {homes} partitions"
        yield Check("settings", Status.OK, f"{detail} said.")


def identity_checks(admin: Any, cluster: Any, settings: SharedSettings) -> Iterator[Check]:
    """Whether each partition's state belongs to these topics, as its anchor says."""
    from belfry.kafka.anchors import anchors_of
    from belfry.recovery.identities import Identities

    names = settings.topic("changelog"), settings.topic("schedules")
    if not set(names) <= cluster.topics.keys():
        return
    anchors = anchors_of(settings)
    try:
        here = Identities(admin, str(cluster.cluster_id), names, anchors).now()
        homes = range(len(cluster.topics[names[0]].partitions))
        kept = {number: anchors.read(number) for number in homes}
        empty = _empty(admin, names[0], homes)
    except ConnectionError as error:
        yield Check("identity", Status.SKIPPED, f"Kafka does not tell: {error}.")
        return
    found = 0
    for number, anchor in kept.items():
        problem = contradiction(here, anchor, empty=number in empty)
        if problem is not None:
            found += 1
            detail = f"Partition {number}: {problem.code}: {problem.what}"
            yield Check("identity", Status.PROBLEM, detail, RECOVER_TO_DO)
    if not found:
        told = sum(anchor is not None for anchor in kept.values())
        detail = f"State and topics belong together, as {told} of {len(kept)} partitions tell."
        yield Check("identity", Status.OK, detail)


def contradiction(here: Identity, anchor: Identity | None, *, empty: bool) -> Contradiction | None:
    """Contradictions to the anchor of a partition whose changelog is `empty` or not."""
    from belfry.store.identity import logged_contradiction, lost_changelog

    if anchor is None:
        return None
    if empty:
        return lost_changelog(here, anchor.changelog, "this partition had an owner")
    return logged_contradiction(here, anchor)


def _empty(admin: Any, changelog: str, homes: range) -> set[int]:
    """Partitions of the changelog that hold no record at all."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # its own re-exports

    from belfry.kafka.causes import cause_of

    found = []
    ends: Any = OffsetSpec
    for spec in (ends.earliest(), ends.latest()):
        asked = {TopicPartition(changelog, number): spec for number in homes}
        try:
            answers = admin.list_offsets(asked, request_timeout=5)
            offsets = {place.partition: each.result(5).offset for place, each in answers.items()}
        except (KafkaException, TimeoutError) as error:
            raise ConnectionError(cause_of(error)) from error
        found.append(offsets)
    low, end = found
    return {number for number in homes if low[number] == end[number]}
