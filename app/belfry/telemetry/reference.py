"""Reference pages made from code: `docs/settings.md` and `docs/metrics.md`.

``python -m belfry.telemetry.reference DIRECTORY`` writes them (`make docs`); a test compares the
files with what this module makes, so they cannot fall behind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from belfry.settings import ClusterSettings, Settings
from belfry.telemetry.metrics import FAMILIES

_NOTE: Final = "<!-- Made from the code by `make docs`; edit the code. -->"


_SETTINGS_PAGE: Final = """\
# Settings

{note}

Each setting is an environment variable, or a key of the TOML file that `BELFRY_CONFIG_FILE` names
(default `belfry.toml` in the working directory): lower case, without `BELFRY_`, with a table where
the variable has two underscores.  Variables win over the file.

`BELFRY_KAFKA__<property>` gives any librdkafka property to every Kafka client: upper case, dots as
underscores, such as `BELFRY_KAFKA__SECURITY_PROTOCOL=SASL_SSL`.

## Process settings

Each worker has its own.

| setting | default | allowed | meaning |
|---|---|---|---|
{process}

## Cluster settings

Equal on all workers of one belfry; they are stored with the state and compared at start.

| setting | default | allowed | meaning |
|---|---|---|---|
{cluster}
"""

_METRICS_PAGE: Final = """\
# Metrics

{note}

Each worker shows its own at `/metrics`, in the text format of Prometheus.  Durations are seconds.
No label holds a schedule id or a tenant.

| metric | kind | labels | meaning |
|---|---|---|---|
{metrics}
"""


def settings_page() -> str:
    """The page of all settings: name, default, what is allowed, what it means."""
    process = "\n".join(_settings_rows(Settings, "BELFRY_"))
    cluster = "\n".join(_settings_rows(ClusterSettings, "BELFRY_CLUSTER__"))
    return _SETTINGS_PAGE.format(note=_NOTE, process=process, cluster=cluster)


def metrics_page() -> str:
    """The page of all metrics: name, kind, labels, meaning."""
    rows = (
        f"| `{family.name}` | {family.kind} | {_codes(family.labels)} | {family.meaning} |"
        for family in FAMILIES
    )
    return _METRICS_PAGE.format(note=_NOTE, metrics="\n".join(rows))


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "metrics.md": metrics_page,
    "settings.md": settings_page,
}


def write_pages(directory: Path) -> None:
    """Write every page into a directory."""
    for name, page in PAGES.items():
        (directory / name).write_text(page(), encoding="utf-8")


def _settings_rows(settings: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, info in settings.model_fields.items():
        if name == "cluster":
            continue
        variable = f"{prefix}{name.upper()}" + ("__…" if _origin(info) is dict else "")
        yield f"| `{variable}` | {_default(info)} | {_allowed(info)} | {info.description} |"


def _origin(info: FieldInfo) -> Any:
    return get_origin(info.annotation)


def _default(info: FieldInfo) -> str:
    if info.default_factory is not None or info.default is None:
        return "none"
    shown = str(info.default).lower() if isinstance(info.default, bool) else str(info.default)
    return f"`{shown}`"


def _allowed(info: FieldInfo) -> str:
    """What a value may be: its bounds, its choices, its pattern, or its type."""
    if _origin(info) is Literal:
        return _codes(get_args(info.annotation))
    low = high = None
    for rule in info.metadata:
        low = getattr(rule, "ge", low)
        high = getattr(rule, "le", high)
        pattern = getattr(rule, "pattern", None)
        if pattern is not None:
            return f"`{pattern}`"
    if low is not None or high is not None:
        return f"{_number(low)} to {_number(high)}"
    return _TYPES.get(_plain_type(info), "text")


_TYPES: Final[Mapping[Any, str]] = {bool: "true, false", Path: "a path", dict: "properties"}


def _plain_type(info: FieldInfo) -> Any:
    """Type of a setting without `| None` and without its parameters."""
    given = info.annotation
    if get_origin(given) in (Union, UnionType):
        given = next(kind for kind in get_args(given) if kind is not NoneType)
    return get_origin(given) or given


def _number(value: Any) -> str:
    return f"{value:,}".replace(",", "\u202f")


def _codes(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
