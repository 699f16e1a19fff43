"""What a step counts, and can take back: a roll-back costs what the step did, not what is stored.

What waits may be kept for very many tenants, and is not read anew.  So what a step changes is
remembered as it was, until the step is committed or rolled back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Undoable(dict[Key, Value]):
    """A dictionary that can go back to its last commit; no value is None.

    It is read like any other, and changed by `d[key] = …` and `del d[key]` alone.
    """

    __slots__ = ("_before",)

    def __init__(self, given: Mapping[Key, Value] | None = None) -> None:
        super().__init__(given or {})
        self._before: dict[Key, Value | None] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        if key not in self._before:
            self._before[key] = self.get(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Key) -> None:
        if key not in self._before:
            self._before[key] = self[key]
        dict.__delitem__(self, key)

    def committed(self) -> None:
        """What it says now stays so."""
        self._before.clear()

    def aborted(self) -> None:
        """Take back what was changed since the last commit."""
        for key, value in self._before.items():
            if value is not None:
                dict.__setitem__(self, key, value)
            elif key in self:
                dict.__delitem__(self, key)
        self._before.clear()

    def _unseen(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("what is changed in this way could not be taken back")

    clear = pop = popitem = setdefault = update = __ior__ = _unseen
