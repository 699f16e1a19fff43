"""What was sent, as the sender knows it: one entry per request, with the place it landed at.

The list is the only truth that an audit starts from.  It is written to a file of JSON lines as
delivery reports come in, so that it can be read and doubted without the run that made it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

UPSERT = "UPSERT"
CANCEL = "CANCEL"
TRIGGER = "TRIGGER"
POISON = "POISON"


@dataclass(slots=True)
class Sent:
    """A delivered request; `due_ms` of an UPSERT, `key`, `payload` and `headers` of its event.

    `key` is the key that its fired record has to have.  POISON is what no belfry can accept.
    """

    request_id: str
    action: str
    tenant: str
    schedule_id: str
    due_ms: int = 0
    group: str = ""
    key: bytes = b""
    payload: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    partition: int = -1
    offset: int = -1
    appended_ms: int = 0
    stray: bool = False


def write(sent: Iterable[Sent], path: Path) -> None:
    """Write a list as JSON lines."""
    with path.open("w", encoding="utf-8") as out:
        for one in sent:
            out.write(json.dumps(asdict(one), default=_shown) + "\n")


def load(path: Path) -> list[Sent]:
    """Read a list back."""
    names = {each.name for each in fields(Sent)}
    found: list[Sent] = []
    for line in path.read_text("utf-8").splitlines():
        raw: dict[str, Any] = json.loads(line)
        assert raw.keys() == names, f"another list: {sorted(raw)}"
        raw["key"] = _bytes(raw["key"])
        raw["payload"] = _bytes(raw["payload"])
        raw["headers"] = [(name, _bytes(value)) for name, value in raw["headers"]]
        found.append(Sent(**raw))
    return found


def _shown(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode()}


def _bytes(shown: Any) -> Any:
    return None if shown is None else base64.b64decode(shown["base64"])
