"""The message on an unknown name: the nearest known one, and all of them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def unknown_name(given: str, known: Sequence[str], what: str = "field") -> str:
    """Why a name is refused, in a sentence; `what` is the kind of the name."""
    close = get_close_matches(given.lower().replace("-", "_")[:100], known, 1)
    meant = f"; did you mean {close[0]}?" if close else "."
    return f"unknown {what} {given[:60]!r}{meant} Known are {', '.join(known)}."
