"""What `belfry apply` and `diff` read: files that declare, and the days off that these name.

belfry apply shop.yaml more/ -      a file, the YAML of a folder, standard input
fr: {ics: holidays/fr.ics, …}       a file that shop.yaml names, from its own folder
de: {country: DE-BY, …}             public holidays, of the library `holidays`
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from belfry.cli.failures import WrongUse

if TYPE_CHECKING:
    from belfry.declared.calendar_entries import Years

# The name of a file that stands for standard input, and how messages call it.
STDIN: Final = "-"
STDIN_NAME: Final = "stdin"


def texts(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Names and texts of files, and of those of folders in order of their names.

    A folder gives its own files that end in .yaml or .yml, and not those of folders in it.
    `WrongUse` names a file that cannot be read, or that is no UTF-8.
    """
    try:
        for file in files:
            if str(file) == STDIN:
                yield STDIN_NAME, sys.stdin.read()
            elif file.is_dir():
                inside = [each for each in file.iterdir() if each.suffix in (".yaml", ".yml")]
                yield from ((str(each), each.read_text("utf-8")) for each in sorted(inside))
            else:
                yield str(file), file.read_text("utf-8")
    except OSError as error:
        raise WrongUse(f"{error.filename or file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise WrongUse(f"{file} cannot be read: {error}.") from None


def days_named(file: str, kind: str, which: str, years: Years) -> tuple[list[str], str]:
    """The days off that a file names, and where they are from; ValueError says why there are none.

    `kind` is `country`, a code such as DE-BY, or `ics`, a file in the folder of the file that names
    it, or in the working directory if the declaration came by standard input.
    """
    from belfry.client.imported_days import days_of_country, days_of_ics

    if kind == "country":
        code, _, subdivision = which.partition("-")
        found = days_of_country(code.upper(), subdivision or None, years)
    else:
        path = (Path() if file == STDIN_NAME else Path(file).parent) / which
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ValueError(f"has the ics {which!r}, which cannot be read: {error}") from None
        found = days_of_ics(content, path.name, years)
    return found.days, found.source
