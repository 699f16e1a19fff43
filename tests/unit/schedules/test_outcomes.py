"""The words of a repeated request id, which tell the first answer and are read back."""

from __future__ import annotations

import pytest

from belfry.schedules.outcomes import first_code, repeat_reason, reused_reason


@pytest.mark.parametrize("code", ["", "bad_cron", "never_fires"])
def test_the_first_answer_is_read_back_out_of_the_reason(code: str) -> None:
    reason = repeat_reason("REJECTED", code)
    told = f" ({code})" if code else ""
    assert reason == f"this request id was answered REJECTED{told} before"
    assert first_code(reason) == (code or None)


@pytest.mark.parametrize("reason", [None, "", "anything else"])
def test_another_reason_names_no_first_answer(reason: str | None) -> None:
    assert first_code(reason) is None


@pytest.mark.parametrize(("code", "told"), [("", ""), ("bad_cron", " (bad_cron)")])
def test_an_id_of_another_request_is_told_with_its_answer(code: str, told: str) -> None:
    assert reused_reason("r" * 70, "demo/a at 7", "REJECTED", code) == (
        f"request_id '{'r' * 60}' belongs to another request, demo/a at 7, which was answered"
        f" REJECTED{told} less than an hour before. This one asks for something else and changed"
        " nothing: give it a request_id of its own."
    )
