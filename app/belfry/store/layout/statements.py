"""The row in which an owner says by which settings it judges.

It is JSON behind the head of a text. `settings/agreement.py` says which settings are in it, and
what follows where owners differ. One name is about the partition and not about settings:

    unsigned_until    [id of the input topic, offset]

Requests below this offset may have been sent on by workers that signed nothing: there was no secret
then, or another one. Readers pass over names that they do not know.
"""

from __future__ import annotations

from typing import Final

import orjson

from belfry.store.layout.records import text_of

UNSIGNED_UNTIL: Final = "unsigned_until"


def unsigned_until(row: bytes | None) -> int:
    """The offset of the input below which nobody may have signed; 0 where the row tells none."""
    if row is None:
        return 0
    try:
        _, offset = orjson.loads(text_of(row))[UNSIGNED_UNTIL]
    except (ValueError, KeyError, TypeError):
        return 0
    return offset if isinstance(offset, int) else 0
