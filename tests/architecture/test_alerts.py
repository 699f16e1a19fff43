"""Each alert has a test of its rule: a moment at which it is silent, and one at which it is told.

`make alerts` runs them by promtool; that they are there holds wherever the tests run.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import pytest
import yaml

from tests.architecture.tree import ROOT

RULES: Final = yaml.safe_load((ROOT / "dashboards" / "alerts.yml").read_text("utf-8"))
ALERTS: Final = [rule["alert"] for group in RULES["groups"] for rule in group["rules"]]
SUITES: Final = sorted((ROOT / "tests" / "alerts").glob("*.test.yml"))


@cache
def suites() -> tuple[dict[str, Any], ...]:
    """What all suites say."""
    return tuple(yaml.safe_load(path.read_text("utf-8")) for path in SUITES)


def looks(alert: str) -> list[Any]:
    """What is looked for of an alert, in all suites."""
    return [
        look
        for suite in suites()
        for case in suite["tests"]
        for look in case["alert_rule_test"]
        if look["alertname"] == alert
    ]


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_seen_silent_and_told(alert: str) -> None:
    told = [bool(look["exp_alerts"]) for look in looks(alert)]
    assert set(told) == {True, False}


def test_no_suite_looks_for_what_is_not_there() -> None:
    asked = {
        look["alertname"]
        for suite in suites()
        for case in suite["tests"]
        for look in case["alert_rule_test"]
    }
    assert asked == set(ALERTS)


def test_every_suite_tests_the_rules_that_are_shipped() -> None:
    for suite in suites():
        assert suite["rule_files"] == ["../../dashboards/alerts.yml"]
    run = (ROOT / "Makefile").read_text("utf-8")
    assert "test rules tests/alerts/*.test.yml" in run
