"""Every field of the table is judged as the table says, by what judges requests."""

from __future__ import annotations

from typing import Any, Final

import pytest

from belfry.schedules.checks import RequestChecks
from belfry.schedules.field import Field, Form
from belfry.schedules.fields import EMPTY, FIELDS, KIND_OF
from belfry.schedules.triggers.registry import KINDS

NOW: Final = 1_800_000_000_000
BAD: Final[dict[Form, Any]] = {
    Form.TEXT: "x" * 300 + "\n",
    Form.SYMBOL: "NOVEL",
    Form.INSTANT: 5,
    Form.DURATION: -1,
    Form.NUMBER: -99,
    Form.FLAG: True,  # `serial`, of an event without a group.
    Form.HEADERS: [{"name": "a", "value": None}] * 300,
    Form.TARGETS: [
        {
            "url": "ftp://a",
            "timeout_ms": 1,
            "max_attempts": 0,
            "secret_ref": None,
            "headers": [],
            "strategy": "ALL",
        }
    ],
    Form.STANDING: {"next_at": 5, "occurrence": 0, "version": 1, "paused": False},
}
# Whatever these hold is good: bytes of the user's, a version that is compared, and a remark.
UNJUDGED: Final = frozenset({"key", "payload", "expected_version", "reason"})


def asked(kind: str) -> Any:
    good = KINDS[kind].examples[0]
    return {**EMPTY, "tenant": "demo", "schedule_id": "a", "kind": kind, **good}


def a_kind_with(field: Field) -> str:
    """A kind of which the field makes sense."""
    return KIND_OF.get(field.name, "CRON")


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_bad_values_are_put_into_is_good(kind: str) -> None:
    assert RequestChecks().problem(asked(kind), NOW) is None


@pytest.mark.parametrize("field", FIELDS.values(), ids=FIELDS)
def test_a_bad_value_is_refused(field: Field) -> None:
    action = {"fire_id": "ACK", "bulk": "BULK"}.get(field.name)
    more = {} if action is None else {"action": action}
    request: Any = {**asked(a_kind_with(field)), field.name: BAD.get(field.form), **more}
    found = RequestChecks().problem(request, NOW)
    assert (found is None) is (field.name in UNJUDGED), f"{field.name}: {found}"
    assert (field.check is None) is (field.name in UNJUDGED), f"{field.name}: name its check"
