"""What the ends of a transaction say, and which topics they name."""

from __future__ import annotations

from belfry.kafka.outcome import Aborted, TopicGone, Unknown


def test_a_topic_that_went_away_is_named() -> None:
    found = TopicGone("fired.orders")
    assert found.topic == "fired.orders"
    assert str(found) == "fired.orders is not there any more"


def test_a_roll_back_blames_the_topics_that_refused_and_no_right_unless_told() -> None:
    plain, told = Aborted("busy"), Aborted("refused", {"a": "too large"}, blocked=True)
    assert (str(plain), plain.topics, plain.blocked) == ("busy", {}, False)
    assert (str(told), told.topics, told.blocked) == ("refused", {"a": "too large"}, True)


def test_an_end_that_nobody_knows_lacks_no_right_unless_told() -> None:
    assert Unknown("lost").blocked is False
    assert Unknown("lost", blocked=True).blocked is True
    assert str(Unknown("lost")) == "lost"
