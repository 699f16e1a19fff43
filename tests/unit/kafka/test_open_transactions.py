"""Who holds readers back: whose it is, whether it will end, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from belfry.kafka.holders import OpenTransaction, tell, untold
from belfry.kafka.transaction_requests import (
    DescribeProducers,
    DescribeTransactions,
    ListTransactions,
)
from belfry.settings import Settings

OUTBOX: Final = OpenTransaction(
    "belfry.schedules", 2, 17, 9, 3, 5_000, "outbox-1", "Ongoing", 1_000, 60_000
)
UNNAMED: Final = OpenTransaction("belfry.schedules", 2, 17, 9, 3, 5_000)


@pytest.mark.parametrize(
    ("name", "own"),
    [("belfry.3", True), ("belfry.tenant_inputs.3", True), ("belfryx.3", False), ("outbox", False)],
)
def test_belfrys_own_are_known_by_their_name(name: str, own: bool) -> None:
    assert replace(OUTBOX, transactional_id=name).is_of("belfry") is own
    assert not UNNAMED.is_of("belfry")


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort"])
def test_what_its_coordinator_will_end_is_overdue_after_its_time_out(state: str) -> None:
    under_way = replace(OUTBOX, state=state)
    assert not under_way.overdue(61_000)
    assert under_way.overdue(61_001)


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort", "Dead", None])
def test_what_no_coordinator_will_end_hangs(state: str | None) -> None:
    assert replace(OUTBOX, state=state).overdue(1_001)


def test_a_stranger_is_named_with_the_way_to_end_it() -> None:
    told = tell([OUTBOX], ("belfry.schedules", 2), Settings(bootstrap_servers="k:1"), 31_000)
    assert told.who.startswith("a stranger: transactional id 'outbox-1', producer 9 (epoch 3)")
    assert "for 30 s, time-out 60 s" in told.who
    command = (
        "kafka-transactions.sh --bootstrap-server k:1 abort --topic belfry.schedules"
        " --partition 2 --start-offset 17"
    )
    assert command in told.to_do


def test_one_that_nobody_knows_is_told_as_what_it_may_be() -> None:
    told = tell([UNNAMED], ("belfry.schedules", 2), Settings(), 31_000)
    assert "for 26 s" in told.who
    assert "it hangs, or is hidden from us" in told.who


@pytest.mark.parametrize(
    ("topic", "then"),
    [
        ("belfry.changelog", "events that fired in it fire once more"),
        ("belfry.schedules", "have to be sent again"),
        ("belfry.fired.ash", "`belfry verify` names the events that are missing then"),
    ],
)
def test_one_of_belfrys_own_says_what_rolling_it_back_would_do(topic: str, then: str) -> None:
    own = replace(OUTBOX, topic=topic, transactional_id="belfry.2", state="Empty")
    told = tell([own], (topic, 2), Settings(), 31_000)
    assert told.who.startswith("belfry's own: ")
    assert "the marker is missing here" in told.who
    assert then in told.to_do


def test_brokers_that_do_not_tell_leave_a_command_that_may() -> None:
    told = untold("error 29", ("belfry.tenants", 0), Settings(bootstrap_servers="k:1"))
    assert told.who == "unknown: error 29"
    assert "--bootstrap-server k:1 describe-producers --topic belfry.tenants" in told.to_do


def test_the_bytes_of_the_requests() -> None:
    """As Kafka's protocol guide has them: compact lengths are one more, no tags."""
    newest = {61: (0, 0), 65: (0, 0), 66: (0, 2)}
    assert DescribeProducers("abc", [1]).prepare(newest).encode() == (
        b"\x02\x04abc\x02\x00\x00\x00\x01\x00\x00"
    )
    assert ListTransactions([5]).prepare(newest).encode() == b"\x01\x02" + bytes(7) + b"\x05\x00"
    assert DescribeTransactions(["ab"]).prepare(newest).encode() == b"\x02\x03ab\x00"
