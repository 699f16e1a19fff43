"""What a verification says of itself: where a finding lies, and what could not be checked."""

from __future__ import annotations

import pytest

from belfry.verification.findings import CheckCounts, Spot

# Of what was checked nothing is said; of all else, why it was not.
CHECKED = ("transactions", "checked", "fires", "digests", "outputs", "told", "refused", "moves")
NO_REASON = (*CHECKED, "recoveries", "copies")
REASONS = {
    "compacted": "transactions that compaction has thinned out",
    "output_gone": "fires older than what their output topic still holds",
    "output_unread": "fires to topics that were not read",
    "order_unknown": "transactions whose order of fires no row tells",
    "before_begin": "output records older than what the changelog still tells",
    "at_least_once": "output records of tenants whose events may come twice",
    "hidden": "output records that a transaction may explain which an open one hides",
    "copies_alone": "events that a redrive sent again, and that are not there besides",
    "elsewhere": "transactions of another cluster, which a mirror carried",
    "told_anew": "lifecycle events and refusals that were told in both clusters, by a take-over"
    " without the source",
    "marks_unread": "transactions of which nobody can say whether a mirror carried them, for its"
    " marks cannot be read",
    "undecrypted": "schedules that were paused for lack of the key of their payloads, for whether a"
    " key would have opened them is in no topic",
    "held": "due schedules whose tenant is paused, limited, or without a topic",
    "locked": "due schedules behind a fire that is not acknowledged",
    "moving": "due schedules whose key group is on its way to another partition",
    "moves_compacted": "moves of key groups that compaction has thinned out",
    "moves_under_way": "moves of key groups that are not over yet",
}


@pytest.mark.parametrize("field", CheckCounts.__dataclass_fields__)
def test_what_could_not_be_checked_is_told_by_its_reason(field: str) -> None:
    counts = CheckCounts()
    setattr(counts, field, 3)
    reason = REASONS.get(field)
    assert counts.unchecked() == ({} if reason is None else {reason: 3})
    assert (field in REASONS) is (field not in NO_REASON)


def test_a_spot_is_shown_by_topic_partition_and_offset() -> None:
    assert str(Spot("belfry.changelog", 3, 8_211)) == "belfry.changelog/3@8211"
