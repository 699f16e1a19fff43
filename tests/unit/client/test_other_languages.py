"""Each client can say every header that belfry reads, and hear every outcome of a request.

The table of a request's fields (`schedules/fields.py`) is the list.  A field that is added there
fails here until the clients for Go, Java and TypeScript have a name for its header.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from belfry.schedules.outcomes import Outcome
from belfry.schedules.retry_rule import HEADER as RETRY
from belfry.wire.headers import EVENT_TYPE, FIRE_ID, GROUP, PROTOCOL, TENANT, VERSION
from tests.architecture.tree import ROOT

CLIENTS: Final = ROOT / "clients"
SOURCES: Final = {
    "go": sorted((CLIENTS / "go").glob("[a-z]*.go")),
    "java": sorted((CLIENTS / "java/src/main").rglob("*.java")),
    "typescript": sorted((CLIENTS / "typescript/src").glob("*.ts")),
}
# What these headers ask for is a matter of HTTP: jobs on many schedules, and calendars.
BY_HTTP: Final = {"belfry-bulk", "belfry-days-off"}
# Their retriers compute the waits themselves, and say when by `belfry-in`.
BY_RETRIERS: Final = {RETRY}
# What a fired record says of its schedule.
ON_A_FIRE: Final = {FIRE_ID, TENANT, VERSION, GROUP, EVENT_TYPE}


def code(files: list[Path]) -> str:
    """All that a client says, but for its tests."""
    own = (path for path in files if not path.stem.endswith("_test"))
    return "\n".join(path.read_text("utf-8") for path in own).replace("'", '"')


@pytest.mark.parametrize("language", SOURCES)
def test_each_header_can_be_said(language: str) -> None:
    said = code(SOURCES[language])
    missing = {name for name in PROTOCOL | ON_A_FIRE if f'"{name}"' not in said}
    assert missing == BY_HTTP | BY_RETRIERS


@pytest.mark.parametrize("language", SOURCES)
def test_each_outcome_is_known(language: str) -> None:
    said = code(SOURCES[language])
    assert [each for each in Outcome if f'"{each}"' not in said] == []
