"""Fields of a request that hold a JSON object as text, such as `bulk` and `days_off`.

They are seldom used and have many parts, so they are one text in the schema and not ten fields that
every request would carry.  Here the text is read up to its names; the values are checked where they
are known (`bulk`, `calendars`).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple


class JsonField(NamedTuple):
    """The limits of such a field.

    `action` is the one that needs the field, `most` how many characters are read at most, `names`
    which names the object may have, and `example` a good one for error messages.
    """

    action: str
    most: int
    names: Collection[str]
    example: str

    def read(self, text: str | None) -> dict[str, Any] | str:
        """The content of the text, or its fault, as the end of a sentence.

        The caller puts the field's name before the sentence.  RecursionError is caught because
        some thousand open brackets are enough for it, and a request must never raise.
        """
        if not text:
            return f"is missing: {self.action} needs it, such as {self.example}"
        if len(text) > self.most:
            return f"has {len(text)} characters; at most {self.most} are read"
        try:
            said: Any = json.loads(text)
        except (ValueError, RecursionError):
            return f"{text[:60]!r} is no JSON: give an object such as {self.example}"
        if not isinstance(said, dict):
            return f"{text[:60]!r} is no JSON object: give one such as {self.example}"
        odd = [name for name in said if name not in self.names]
        if odd:
            return f"has {odd[0][:60]!r}, which is none of {', '.join(self.names)}"
        return said
