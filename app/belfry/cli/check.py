"""What a check of `belfry doctor` finds: a line of its report."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    SKIPPED = "skipped"
    RISK = "risk"
    PROBLEM = "problem"


class Check(NamedTuple):
    """One line of the report."""

    check: str
    status: Status
    detail: str
    to_do: str = ""
