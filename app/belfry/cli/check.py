"""What a check of `belfry doctor` finds: a line of its report.

It is apart from `doctor.py` because each module of checks makes such lines, and `doctor.py` imports
these modules.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """How a check ended.

    Only `PROBLEM` gives the command exit code 1. A `RISK` works now, and may hurt later. `SKIPPED`
    says that something could not be looked at, or need not be there.
    """

    OK = "ok"
    SKIPPED = "skipped"
    RISK = "risk"
    PROBLEM = "problem"


class Check(NamedTuple):
    """One line of the report."""

    # What was looked at: kafka, topics, group, clock and so on. Several lines may share it.
    check: str
    status: Status
    # What was found, in whole sentences for people.
    detail: str
    # What to do about it: a command, or a few words. Empty if nothing has to be done.
    to_do: str = ""
