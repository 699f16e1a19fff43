"""Whether this worker agrees with the others on the settings that they share.

`belfry.settings.agreement` names these settings, and compares. The statements of workers lie in two
places:

    changelog       a statement in each partition, written by the first commit of an owner
    offset notes    the same beside the anchors, where a start and `belfry doctor` can read it

At start the notes are read, before the group is joined: a worker that must not run beside the
present ones is refused, and one with other differences logs them. At a take-over the changelog is
read, which lasts longer: notes are forgotten some days after the last owner. There a worker is only
refused for the fixed settings: some worker has to take the state over.

    W1, W2 run with secret A                     W3 is started with secret B
    12:00:00  notes of all partitions: A         B differs, rule TOGETHER
    12:00:00  the group has two members          "settings differ … and 2 run": W3 does not start
    12:10:00  W1 and W2 have ended               W3 is started again: none runs, so it starts, and
                                                 says in its log that the secret is another one
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from belfry.kafka.anchors import anchor_group
from belfry.kafka.causes import cause_of
from belfry.kafka.offset_notes import ANSWER_S, OffsetNotes
from belfry.kafka.topics import REACH_S
from belfry.settings import DeliverySettings, SharedSettings
from belfry.settings.agreement import (
    Difference,
    Statement,
    cluster_differences,
    decode,
    differences,
    encode,
    statement,
    told,
    unsigned_before,
)
from belfry.settings.agreement_rules import AgreementRule
from belfry.store.layout.records import encode_text, text_of

DIFFERS: Final = "a setting differs from what other workers have, or had last"

log = structlog.get_logger(__name__)


class OwnershipRefused(Exception):
    """This worker must not own the partition: state or settings do not fit.

    It ends the whole worker, with the message as reason.
    """


class Agreement:
    """Compares with the statement in the changelog of each partition that is taken over.

    One object serves all partitions of a worker; each asks in its own thread.
    """

    def __init__(self, settings: DeliverySettings) -> None:
        self._cluster = settings.cluster_fingerprint()
        self._settings = settings
        self._said: set[Difference] = set()

    def cluster(self, kept: bytes | None) -> bytes | None:
        """The settings that never change, if none are kept; `OwnershipRefused` if others are."""
        differing = [] if kept is None else cluster_differences(kept, self._cluster)
        if differing:
            raise OwnershipRefused(
                f"cluster settings differ: {told(differing)}. They are"
                f" {AgreementRule.FIXED.value}: give all of its workers the same."
            )
        return None if kept == self._cluster else self._cluster

    def statement(self, kept: bytes | None, source: tuple[str, int]) -> bytes | None:
        """The row of this worker's statement, if another one or none is kept.

        `source` is the id of the input topic, and where the log of the partition ends. Each
        difference is logged once, however many partitions are taken over.
        """
        mine = statement(self._settings)
        before = None if kept is None else decode(text_of(kept))
        row = encode_text(encode(mine | unsigned_before(before, mine, source)))
        if before is not None and kept != row:
            found = differences(before, mine)
            for each in found:
                if each not in self._said:
                    self._said.add(each)
                    log.warning(DIFFERS, told=each.told(), may_differ=each.rule.value)
        return None if kept == row else row


class Statements:
    """Statements of partitions' owners about their settings, where all workers can read them."""

    def __init__(self, notes: OffsetNotes, settings: DeliverySettings) -> None:
        self._notes = notes
        self._mine = encode(statement(settings))
        self._said = ""

    def keep(self, partitions: Iterable[int]) -> None:
        """Keep this worker's statement for partitions that it owns; a failure is logged once."""
        try:
            failed = self._notes.write(dict.fromkeys(partitions, self._mine))
        except ConnectionError as error:
            failed = {-1: str(error)}
        why = next(iter(failed.values()), "")
        if why and why != self._said:
            log.warning("this worker's settings are not kept for others", reason=why)
        self._said = why


def kept_statements(notes: OffsetNotes, homes: Iterable[int]) -> dict[int, Statement]:
    """The statement of each partition's last owner; ConnectionError if the cluster is silent."""
    texts = notes.read(homes)
    return {partition: decode(text) for partition, text in texts.items()}


def compare_at_start(admin: AdminClient, notes: OffsetNotes, settings: DeliverySettings) -> str:
    """Log this worker's differences; returns why it must not start beside others, else empty."""
    changelog = admin.list_topics(timeout=REACH_S).topics.get(settings.topic("changelog"))
    homes = range(0 if changelog is None else len(changelog.partitions))
    try:
        kept = kept_statements(notes, homes)
    except ConnectionError as error:
        log.warning("the settings of other workers are not known", reason=str(error))
        return ""
    mine = statement(settings)
    found = {each: None for said in kept.values() for each in differences(said, mine)}
    refused = [each for each in found if each.rule is AgreementRule.TOGETHER]
    others = _others(admin, settings) if refused else 0
    for each in found:
        if not (others and each in refused):
            log.warning(DIFFERS, told=each.told(), may_differ=each.rule.value)
    if not others:
        return ""
    return (
        f"settings differ: {told(refused)}. They have to be {AgreementRule.TOGETHER.value}, and"
        f" {others} run: give this worker what they have, or stop all of them before you change it."
        " How the secret is changed without a stop is in docs/workers.md. A worker that was killed"
        " counts until its session is over (BELFRY_SESSION_TIMEOUT_MS)."
    )


def _others(admin: AdminClient, settings: DeliverySettings) -> int:
    """Number of other workers in the group; a static member does not count itself."""
    group, own = settings.cluster.app_id, settings.group_instance_id
    try:
        asked: Any = admin.describe_consumer_groups([group], request_timeout=ANSWER_S)
        members = asked[group].result(ANSWER_S).members
    except (KafkaException, TimeoutError) as error:
        log.warning("it is not known whether other workers run", reason=cause_of(error))
        return 0
    return sum(own is None or each.group_instance_id != own for each in members)


def statement_notes(settings: SharedSettings) -> OffsetNotes:
    """The notes beside the anchors; they belong to the changelog, and go when that is deleted."""
    return OffsetNotes(settings, anchor_group(settings), settings.topic("changelog"))
