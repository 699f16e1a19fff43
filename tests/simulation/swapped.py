"""Puts edited functions in the place of those of modules that are imported already.

Most plants change what is within a function, so belfry need not be imported anew to have them: the
function stays the object that everybody holds, and gets other code.

    text before ─► code ─┬─ alike but for functions ─► each function that differs gets its new code
    text behind ─► code ─┘  anything else differs    ─► `Unlike`: the file has to be imported anew

What runs when a file is imported counts as "anything else": constants, classes, defaults, names,
and a function that is asked for then, whose answer somebody may keep.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from dis import get_instructions
from types import CodeType, FunctionType
from typing import Final, NamedTuple

# Of functions, as against bodies of modules and classes, which have run when they are imported.
_OPTIMIZED: Final = 1


class Unlike(Exception):
    """Two texts differ in more than their functions."""


class Changed(NamedTuple):
    """One function that differs."""

    before: CodeType
    behind: CodeType


def changes(file: str, before: str, behind: str) -> list[Changed]:
    """The functions in which two texts of a file differ, by its whole name; raises Unlike."""
    codes = (compile(text, file, "exec", dont_inherit=True) for text in (before, behind))
    return list(_within(*codes))


def swap(changed: list[Changed]) -> None:
    """Give each of these functions its new code, whoever holds it; AssertionError for none."""
    held: defaultdict[tuple[object, ...], list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType:
            held[_place(each.__code__)].append(each)
    for before, behind in changed:
        functions = held[_place(before)]
        assert functions, f"nobody holds {before.co_qualname} of {before.co_filename}"
        kept = [each.co_qualname for each in _inside(before) if held[_place(each)]]
        assert not kept, f"{before.co_qualname} has made these before it got its code: {kept}"
        for function in functions:
            function.__code__ = behind


def _inside(code: CodeType) -> Iterator[CodeType]:
    """Functions that a function makes, and those that these make."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)


def _place(code: CodeType) -> tuple[object, ...]:
    """Where it is written, by which two codes are known to be of one text."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _within(before: CodeType, behind: CodeType) -> Iterator[Changed]:
    """What differs in the body of a module or a class."""
    if _frame(before) != _frame(behind) or len(before.co_consts) != len(behind.co_consts):
        raise Unlike(before.co_qualname)
    asked_for = set(_asked_for(before))
    for one, other in zip(before.co_consts, behind.co_consts, strict=True):
        if not (isinstance(one, CodeType) and isinstance(other, CodeType)):
            if not _equal(one, other):
                raise Unlike(before.co_qualname)
        elif not _is_function(one):
            yield from _within(one, other)
        elif not _same(one, other):
            # Comprehensions and the like have run, or run once.
            if one.co_name.startswith("<") or one.co_name in asked_for:
                raise Unlike(one.co_qualname)
            if _outside(one) != _outside(other):
                raise Unlike(one.co_qualname)
            yield Changed(one, other)


def _asked_for(body: CodeType) -> Iterator[str]:
    """Names that the body of a module or a class asks for, with classes within it."""
    yield from (each.argval for each in get_instructions(body) if each.opname == "LOAD_NAME")
    for each in body.co_consts:
        if isinstance(each, CodeType) and not _is_function(each):
            yield from _asked_for(each)


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & _OPTIMIZED)


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two functions do the same, on whatever lines they stand."""
    if _frame(one) != _frame(other) or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _same(here, there)
        if isinstance(here, CodeType) and isinstance(there, CodeType)
        else _equal(here, there)
        for here, there in zip(one.co_consts, other.co_consts, strict=True)
    )


def _equal(one: object, other: object) -> bool:
    """Whether two constants are one; Python takes (3,) and (3.0,) for equal."""
    return repr(one) == repr(other)


def _frame(code: CodeType) -> tuple[object, ...]:
    """What a body does, but for its constants."""
    return code.co_code, code.co_names, code.co_exceptiontable, *_outside(code), code.co_varnames


def _outside(code: CodeType) -> tuple[object, ...]:
    """What those rely on who make and call it: its name, parameters, and what it closes over."""
    count = code.co_argcount + code.co_kwonlyargcount
    return (
        *(code.co_qualname, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        *(code.co_varnames[:count], code.co_freevars, code.co_flags),
    )
