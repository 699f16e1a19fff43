"""A fault in a check of requests, for no bytes lead to one by themselves."""

from __future__ import annotations

import pytest

from belfry.schedules.rejections import Rejection
from belfry.schedules.request import Request, text_problem


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let checks fail for the schedule `fault`, and run out of memory for `memory`."""

    def planted(request: Request) -> Rejection | None:
        if request["schedule_id"] == "fault":
            raise ZeroDivisionError(request["payload"])
        if request["schedule_id"] == "memory":
            raise MemoryError
        return text_problem(request)

    monkeypatch.setattr("belfry.schedules.checks.text_problem", planted)
