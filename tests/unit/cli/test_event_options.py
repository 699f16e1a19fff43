"""Options of what is posted: headers, and a warning of credentials that stand there as they are."""

from __future__ import annotations

import pytest

from belfry.cli.event_options import EventOptions
from belfry.cli.failures import WrongUse

URL = "https://api.example.com/"
REFERENCE = "authorization=Bearer ${env:BELFRY_SECRET_SHOP}"


def test_a_header_goes_to_each_target_with_its_reference() -> None:
    event = EventOptions(webhook=[URL, URL + "two"], webhook_header=[REFERENCE, "x-a=b=c"])
    for target in event.arguments()["http_targets"]:
        assert target["headers"] == [
            {"name": "authorization", "value": "Bearer ${env:BELFRY_SECRET_SHOP}"},
            {"name": "x-a", "value": "b=c"},
        ]
    assert event.warning() is None


def test_a_literal_credential_is_warned_of() -> None:
    warning = EventOptions(webhook=[URL], webhook_header=["authorization=Bearer abc"]).warning()
    assert warning is not None
    assert "abc" not in warning


def test_a_header_without_a_target_is_wrong_use() -> None:
    with pytest.raises(WrongUse, match="--webhook URL"):
        EventOptions(webhook_header=[REFERENCE]).arguments()


def test_a_header_without_a_value_is_wrong_use() -> None:
    with pytest.raises(WrongUse, match="--webhook-header 'x' is no header"):
        EventOptions(webhook=[URL], webhook_header=["x"]).arguments()
