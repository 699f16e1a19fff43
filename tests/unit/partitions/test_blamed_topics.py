"""A roll-back has topics looked at where it blames one, and not where it blames none."""

from __future__ import annotations

from typing import Any

import pytest

from belfry.kafka.outcome import Aborted
from tests.unit.partitions.test_owner import Firing


@pytest.mark.parametrize(
    ("end", "looked_for"),
    [
        (Aborted("the broker was away"), []),
        (Aborted("somewhere it may not write", blocked=True), [{}]),
        (Aborted("a topic is gone", {"t": "gone"}), [{"t": "gone"}]),
    ],
    ids=["blames nobody", "blames somebody", "blames a topic"],
)
def test_topics_are_looked_at_where_a_roll_back_blames_one(
    end: Aborted, looked_for: list[dict[str, str]]
) -> None:
    """That asks the cluster from the owner's thread, and ends the term if it gives no answer."""
    firing = Firing()
    firing.ends = [end]
    assert firing.step() is None
    outputs: Any = firing.runner._outputs
    assert [call.args[0] for call in outputs.hold.call_args_list] == looked_for
    assert firing.step() is not None
