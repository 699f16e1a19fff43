"""The text of an error for the end of a sentence: never empty, and its kind not said twice.

A time-out of Python has no text, so a message would end behind its colon; an error of aiokafka
begins its text with its own name.
"""

from __future__ import annotations


def named(error: BaseException) -> str:
    """The kind of an error and its text: ``OSError: no route``, or its kind alone."""
    kind, said = type(error).__name__, str(error).strip().rstrip(".:")
    if not said or said == kind:
        return kind
    return said if said.startswith(f"{kind}:") else f"{kind}: {said}"
