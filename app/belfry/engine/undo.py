"""The undo log: changes of a step in memory, and how to put them back.

A partition keeps in memory besides its store how much waits, which groups are locked, and how far
rates are used up.  These change while a step goes on.  Each such change is noted in the one
`UndoLog` of the partition:

    counts = Tracked(undo)        a dictionary that notes what it was
    undo.attribute(self, "rate")  before an attribute changes
    undo.scratch(dict.clear, joined)
                                  once: what holds for one step only, emptied at the end of each

So commit and roll-back are one call each, in `partition.py`, and no order matters.  The cost of a
roll-back depends on the step, not on the size of the store: nothing is read anew.

A step that fires one event of tenant `a` and is rolled back:

    12:00:00.000   backlog {a: 2}                     step 7 begins
    12:00:00.001   backlog {a: 1}, noted: a was 2     one event leaves; the store's overlay has it
    12:00:00.030   Kafka refuses the transaction
                   backlog {a: 2}, overlay empty      step 8 begins where step 7 did, and the same
                                                      event fires again, under the same id

Why an undo log, and no copy of the state: a step touches a few tenants of some hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from types import BuiltinMethodType
from typing import Any, NoReturn, Self, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class UndoLog:
    """The changes of a step in memory, and how to put them back.

    One for each partition.  Changes are put back in the reverse of their order, so two changes of
    one attribute end at the first value.
    """

    def __init__(self) -> None:
        self._put_back: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._scratch: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.step = 0
        """Number of the step; a participant that sees another one begins to note anew."""

    def note(self, put_back: Callable[..., object], *given: Any) -> None:
        """Call this, should the step be rolled back."""
        self._put_back.append((put_back, given))

    def attribute(self, owner: object, name: str) -> None:
        """An attribute of this object changes now."""
        self.note(setattr, owner, name, getattr(owner, name))

    def scratch(self, clear: Callable[..., object], *given: Any) -> None:
        """Call this at the end of every step.

        Give the container that is to be emptied as an argument: a copy of the partition then
        empties its own.
        """
        bound = isinstance(clear, BuiltinMethodType)
        assert not bound, "a copy of a built-in method still belongs to the original"
        self._scratch.append((clear, given))

    def forget(self) -> None:
        """The step is committed: its changes stay."""
        self._end()

    def roll_back(self) -> None:
        """The step is not to have been: put its changes back, the last one first."""
        for put_back, given in reversed(self._put_back):
            put_back(*given)
        self._end()

    def _end(self) -> None:
        self._put_back.clear()
        self.step += 1
        for clear, given in self._scratch:
            clear(*given)


class Tracked(dict[Key, Value]):
    """A dictionary that a roll-back puts back to its former state; no value is None.

    It is read like any other, and changed by `d[key] = …` and `del d[key]` alone.  The first change
    of a key in a step notes the former value; further ones cost no more than in a plain dictionary.
    Other ways to change it raise an AssertionError, for they could not be put back.
    """

    __slots__ = ("_before", "_of_step", "_undo")

    def __init__(self, undo: UndoLog, given: Mapping[Key, Value] | None = None) -> None:
        super().__init__(given or {})
        self._undo = undo
        self._of_step = -1
        self._before: dict[Key, Value | None] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        if self._of_step != self._undo.step:
            self._begin()
        if key not in self._before:
            self._before[key] = self.get(key)
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Key) -> None:
        if self._of_step != self._undo.step:
            self._begin()
        if key not in self._before:
            self._before[key] = self[key]
        dict.__delitem__(self, key)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same, with a copy of the undo log; between two steps, when there is nothing noted."""
        other = memo[id(self)] = type(self).__new__(type(self))
        # The log refers to the objects that have something to empty, and they refer to this.
        other.__init__(deepcopy(self._undo, memo), deepcopy(dict(self), memo))  # type: ignore[misc]
        return other

    def _begin(self) -> None:
        self._of_step = self._undo.step
        self._before = {}
        self._undo.note(self._put_back, self._before)

    def _put_back(self, before: Mapping[Key, Value | None]) -> None:
        for key, value in before.items():
            if value is not None:
                dict.__setitem__(self, key, value)
            elif key in self:
                dict.__delitem__(self, key)

    def _unseen(self, *_: Any, **__: Any) -> NoReturn:
        raise AssertionError("what is changed in this way could not be put back")

    clear = pop = popitem = setdefault = update = __ior__ = _unseen


class TrackedOrder(Tracked[Key, Value]):
    """The same where the order says something: a roll-back puts that back as well.

    The first change in a step costs a list of all keys.
    """

    __slots__ = ()

    def _begin(self) -> None:
        # The first note is put back last: when all keys are there again.
        self._undo.note(self._put_in_order, list(self))
        super()._begin()

    def _put_in_order(self, order: list[Key]) -> None:
        if list(self) != order:
            values = {key: self[key] for key in order}
            dict.clear(self)
            dict.update(self, values)
