"""YAML whose places are known: each value with the line that it stands in.

A file is read by PyYAML's safe loader, so it makes plain values only.  Its nodes are kept until the
values are judged, for a message has to name file, line and field.  A key that stands twice in one
mapping is an error here: YAML's loaders take the last one in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

import yaml

_TOO_DEEP: Final = "lists or mappings stand too deep in one another"


class BadDeclaration(ValueError):
    """Files that cannot be applied; the message has a line for each thing that is wrong."""


@dataclass(slots=True)
class Complaints:
    """All that is wrong with some files, in the order in which it was found.

    A line is ``file:line: path: message``, as editors and compilers have it.
    """

    lines: list[str] = field(default_factory=list)

    def add(self, at: Entry, path: str, message: str) -> None:
        """Note a mistake in a field."""
        self.lines.append(f"{at.file}:{at.line}: {path}: {message}")

    def check(self) -> None:
        """Raise `BadDeclaration` where anything was noted."""
        if self.lines:
            raise BadDeclaration("\n".join(self.lines))


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value: both as text and numbers, and as nodes of the file."""

    file: str
    line: int
    # The key, or the number of an element of a sequence.
    name: Any
    node: yaml.Node
    loader: yaml.SafeLoader

    def value(self) -> Any:
        """The plain value; `ValueError` if YAML cannot read it.

        YAML takes 1:30 for the number 90, in base 60. As an interval that is 90 ms, and it was
        hardly meant. So such a number is refused.
        """
        try:
            found = self.loader.construct_object(self.node, deep=True)
        except yaml.YAMLError as error:
            raise ValueError(_first_line(error)) from None
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        text = self.node.value
        if isinstance(found, int | float) and isinstance(text, str) and ":" in text:
            raise ValueError(f"{text}, which YAML takes for {found}: put a text in quotes")
        return found

    @property
    def is_mapping(self) -> bool:
        """Whether it has entries of its own."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_empty(self) -> bool:
        """Whether the key has no value."""
        return bool(self.node.tag == "tag:yaml.org,2002:null")

    def entries(self, complaints: Complaints, path: str) -> list[Entry]:
        """Its own entries, in the order of the file, each name once.

        Merged mappings (``<<``) are flattened. A value that is not a mapping is a complaint, and an
        empty value has no entries.
        """
        if self.is_empty:
            return []
        if not isinstance(self.node, yaml.MappingNode):
            complaints.add(self, path, "this has to be a mapping of names to values")
            return []
        self._check_names(complaints, path)
        try:
            self.loader.flatten_mapping(self.node)
        except yaml.YAMLError as error:
            complaints.add(self, path, _first_line(error))
            return []
        found = {each.name: each for each in map(self._entry, self.node.value)}
        return list(found.values())

    def items(self) -> list[Entry]:
        """The elements of a sequence, under their numbers."""
        if not isinstance(self.node, yaml.SequenceNode):
            return []
        return [
            Entry(self.file, node.start_mark.line + 1, number, node, self.loader)
            for number, node in enumerate(self.node.value)
        ]

    def _entry(self, pair: tuple[yaml.Node, yaml.Node]) -> Entry:
        """A key with its value."""
        key, node = pair
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        return Entry(self.file, key.start_mark.line + 1, name, node, self.loader)

    def _check_names(self, complaints: Complaints, path: str) -> None:
        """Complain of keys that stand twice, and of those that are no names."""
        seen: dict[str, int] = {}
        for pair in self.node.value:
            each = self._entry(pair)
            if not isinstance(pair[0], yaml.ScalarNode):
                complaints.add(each, path, "a list or a mapping is no name: give a text")
                continue
            if each.name in seen and each.name != "<<":
                before = f"stands in line {seen[each.name]} already"
                complaints.add(each, f"{path}.{each.name}", before)
            seen[each.name] = each.line


def documents(file: str, text: str, complaints: Complaints) -> Iterator[Entry]:
    """The documents of a file; a text that is not YAML is a complaint."""
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield Entry(file, node.start_mark.line + 1, "", node, loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        complaints.lines.append(f"{file}:{line}: no YAML: {_first_line(error)}")
    except yaml.YAMLError as error:
        complaints.lines.append(f"{file}:1: no YAML: {_first_line(error)}")
    except RecursionError:
        complaints.lines.append(f"{file}:{loader.line + 1}: no YAML: {_TOO_DEEP}")


def unknown(name: str, known: Sequence[str]) -> str:
    """The message on an unknown name: the nearest one, and all that are allowed."""
    near = get_close_matches(str(name)[:100], known, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    return f"no such field.{guess} Allowed are {', '.join(known)}."


def _first_line(error: yaml.YAMLError) -> str:
    """The message of PyYAML, without its excerpt of the file."""
    if isinstance(error, yaml.MarkedYAMLError):
        return " ".join(part for part in (error.problem, error.context) if part)
    return str(error).splitlines()[0]
