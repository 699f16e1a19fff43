"""Help pages: plain text, options under the headings that say what they are about.

Typer's own boxes leave a quarter of a narrow terminal to the words. A heading comes from the
option's ``rich_help_panel``, so that the sources stay what a reader of Typer expects.

    Usage: belfry schedule create [OPTIONS] TENANT ID

    Arguments:      what has to be there
    When (…):       headings of the command's own options, in the order of their first option
    Options:        options without a heading
    Everywhere:     options that each command takes

`Program` is the only Typer application that this room makes, so each command and group has such
pages. `belfry.cli.reference` makes docs/cli.md from the same rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

OWN: Final = "Options"
EVERYWHERE: Final = "Everywhere"
Row = tuple[str, str]

# How Typer writes what a number may be, and how people do.
BOUNDS: Final = (
    (re.compile(r"\b(-?[0-9.]+)<=x<=(-?[0-9.]+)"), r"\1 to \2"),
    (re.compile(r"\bx>=(-?[0-9.]+)"), r"\1 or more"),
    (re.compile(r"\bx<=(-?[0-9.]+)"), r"\1 or less"),
)
# Both spellings of help, and lines of at most 100 characters.
CONTEXT: Final = {"help_option_names": ["--help", "-h"], "max_content_width": 100}


def sections(command: TyperCommand | TyperGroup, context: Context) -> dict[str, list[Row]]:
    """Options and arguments as rows of name and help, by heading.

    Headings come in the order in which a page shows them. Options that Typer hides have no row.
    """
    found: dict[str, list[Row]] = {}
    for parameter in command.get_params(context):
        row = parameter.get_help_record(context)
        if row is None:
            continue
        heading = getattr(parameter, "rich_help_panel", None) or OWN
        if parameter.param_type_name == "argument":
            # Typer adds its type, and that it is required, which the line of usage shows.
            said = row[1].replace("  [required]", "").replace("; required]", "]")
            heading, row = "Arguments", (row[0].split(" ")[0], said)
        found.setdefault(heading, []).append((row[0], _worded(row[1])))
    return dict(sorted(found.items(), key=_rank))


def _worded(text: str) -> str:
    """A help text with bounds as people write them, in the bracket of the default.

    That a number is 1 or more goes without saying.
    """
    text = text.removesuffix("  [x>=1]").replace("]  [", "; ")
    for typed, said in BOUNDS:
        text = typed.sub(said, text)
    return text


def _rank(section: tuple[str, list[Row]]) -> int:
    """What is particular to the command comes first."""
    heading = section[0]
    return 2 if heading == EVERYWHERE else 1 if heading == OWN else 0


def _write(command: TyperCommand | TyperGroup, context: Context, page: HelpFormatter) -> None:
    """Write all sections of a command onto a page."""
    for heading, rows in sections(command, context).items():
        with page.section(heading):
            page.write_dl(rows)


class Command(TyperCommand):
    """A command whose help has headings."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """Names of arguments without Typer's braces."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "") for piece in pieces]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Options under their headings."""
        _write(self, ctx, formatter)


class HelpGroup(TyperGroup):
    """A group of commands whose help begins with them."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Commands, then options under their headings."""
        self.format_commands(ctx, formatter)
        _write(self, ctx, formatter)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Commands with the whole of their first sentence, where Typer would cut it."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = [(name, each) for name, each in found if each is not None and not each.hidden]
        rows = [(name, (each.help or "").split("\n\n")[0].strip()) for name, each in shown]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl([(name, " ".join(said.split())) for name, said in rows])


class Program(typer.Typer):
    """A group of commands, or the whole program, with this house's help pages."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            cls=options.pop("cls", HelpGroup),
            no_args_is_help=True,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            context_settings=dict(CONTEXT),
            **options,
        )

    def command(self, name: str | None = None, **options: Any) -> Any:
        """Typer's, with the same help pages for each command."""
        options = {"cls": Command, "context_settings": dict(CONTEXT), **options}
        return super().command(name, **options)
