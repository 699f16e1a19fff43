"""Reference pages made from code: `docs/settings.md` and `docs/metrics.md`.

``python -m belfry.telemetry.reference DIRECTORY`` writes them (`make docs`); a test compares the
files with what this module makes, so they cannot fall behind.

    column of a setting       comes from
    name, default, allowed    the field of its class: its default, its type, its bounds or pattern
    meaning                   the field's description
    equal on all workers      the rule and the reason in `settings/agreement_rules.py`

A section shows what a class adds to those that it is made of, so each setting stands on the page
once, under the processes that read it.  The page of metrics is the list of families, in its order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from belfry.settings import (
    ClusterSettings,
    CommandSettings,
    DeliverySettings,
    ServerSettings,
    Settings,
    SharedSettings,
)
from belfry.settings.agreement_rules import AGREED, OWN, AgreementRule
from belfry.settings.cluster import AgreedSettings
from belfry.settings.names import OTHERS
from belfry.settings.sources import variable
from belfry.telemetry.families import FAMILIES

_NOTE: Final = "<!-- Made from the code by `make docs`; edit the code. -->"


_SETTINGS_PAGE: Final = """\
# Settings

{note}

Each setting is an environment variable, or a key of the TOML file that `BELFRY_CONFIG_FILE` names
(default `belfry.toml` in the working directory): lower case, without `BELFRY_`, with a table where
the variable has two underscores.  Variables win over the file.  Where `BELFRY_CONFIG_FILE` names a
file that is not there, workers and `belfry config show` say so, and go on without one.

`BELFRY_KAFKA__<property>` gives any librdkafka property to every Kafka client: upper case, dots as
underscores, such as `BELFRY_KAFKA__SECURITY_PROTOCOL=SASL_SSL`.

All processes may share one environment and one file; each reads what concerns it:

| process | its settings |
|---|---|
| `belfry worker` | all but those of commands |
| `belfry worker --role deliver` | every process, workers and dispatchers, deliveries |
| other commands | every process, commands |

## Names that nobody knows

A process ends at once, with exit code 2, where it is given a name that no process of belfry knows:
a variable `BELFRY_…`, a key of the file, or a property of librdkafka (`BELFRY_KAFKA__…`, the table
`kafka`, `-X`) or of the schema registry's client.  The message lists all of them, each with the
nearest name that is known.  Left alone are variables `BELFRY_SECRET_…`, which policies name,
those that Kubernetes sets for a service of that name
(`BELFRY_SERVICE_HOST`, `BELFRY_PORT=tcp://…`), and
those that are not settings: {others}.

## Equal on all workers

The last column says whether a setting has to be equal on all workers of one belfry, and why:

| column | where workers differ |
|---|---|
| yes, fixed | A worker that differs from the state does not start; the value never changes. |
| yes, together | A worker that differs does not start beside others that run. |
| yes, rolling | A worker that differs says so in its log, with both values, and goes on. |
| no | Each worker has its own. |

How each kind is changed, and where differences show, says
[workers.md](workers.md#settings-that-workers-share).

{sections}
"""

# Each section has what a class adds to those that it is made of.
_SECTIONS: Final[Mapping[str, tuple[type[BaseModel], ...]]] = {
    "Every process": (SharedSettings,),
    "Every process: which belfry it is": (ClusterSettings,),
    "Workers and dispatchers": (ServerSettings, SharedSettings),
    "Workers and dispatchers: deliveries": (DeliverySettings, ServerSettings),
    "Workers: what they share": (AgreedSettings,),
    "Workers: what each has for itself": (Settings, DeliverySettings, AgreedSettings),
    "Commands": (CommandSettings, SharedSettings),
}
_RULES: Final = {
    AgreementRule.FIXED: "fixed",
    AgreementRule.TOGETHER: "together",
    AgreementRule.ROLLING: "rolling",
}

_METRICS_PAGE: Final = """\
# Metrics

{note}

Each worker shows its own at `/metrics`, in the text format of Prometheus.  `belfry_verify_…` are
those of [`belfry verify --metrics`](verify.md#as-a-service), and `belfry_mirror_…` those of
[`belfry mirror run --metrics`](mirror.md#how-far-behind-it-is).  Durations are seconds.
No label holds a schedule id.  A tenant is a label of `belfry_tenant_…` alone, for the foremost
`BELFRY_METRICS_TENANTS` (20) by waiting, pending, fires, refusals, lateness and deliveries; the
rest are one, named `(other)`, as no tenant can be.  These are left out for callers who may not see
all tenants: scrape the port for health, or show a key that is bound to `*`.

Two dashboards for Grafana 12 show them: `dashboards/belfry.json` for operators,
`dashboards/tenants.json` for tenants.  Import them, or let the chart (`monitoring.dashboards`).

`belfry_client_…` tell of the Kafka clients of partitions and of deliveries by their purpose:
`writer` writes steps, `requests` and `tenant_inputs` read requests, `changelog` reads state,
`deliveries` reads deliveries and writes the follow-up records,
`targets` writes to topics that are targets.
Those of belfry's own tell of each request, which takes 2 µs.  Those of librdkafka tell every
`BELFRY_CLIENT_STATISTICS_INTERVAL_MS` (10 000), which takes 33 µs each: `deliveries` and
`targets`, and of `writer` what is written at least once, or with
`BELFRY_TRANSACTION_WRITER=librdkafka` all of it.

| metric | kind | labels | meaning |
|---|---|---|---|
{metrics}
"""


def settings_page() -> str:
    """The page of all settings: name, default, allowed values, meaning."""
    sections = "\n\n".join(_section(*each) for each in _SECTIONS.items())
    others = ", ".join(f"`{name}`" for name in sorted(OTHERS))
    return _SETTINGS_PAGE.format(note=_NOTE, others=others, sections=sections)


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


def _section(title: str, classes: tuple[type[BaseModel], ...]) -> str:
    """The settings that the first class adds to the others."""
    settings, *others = classes
    known = {name for each in others for name in each.model_fields}
    columns = ["setting", "default", "allowed", "meaning", "equal on all workers"]
    if settings is CommandSettings:
        columns.pop()
    rows = [columns, *(row[: len(columns)] for row in _settings_rows(settings, known))]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|---" * len(columns) + "|")
    return f"## {title}\n\n" + "\n".join(lines)


def _settings_rows(settings: type[BaseModel], known: set[str]) -> Iterator[list[str]]:
    below = "cluster." if settings is ClusterSettings else ""
    for name, info in settings.model_fields.items():
        if name != "cluster" and name not in known:
            shown = variable(below + name) + ("__…" if _origin(info) is dict else "")
            meaning = info.description or ""
            yield [f"`{shown}`", _default(info), _allowed(info), meaning, _equal(below + name)]


def _equal(name: str) -> str:
    """Whether a setting has to be equal on all workers, and why."""
    if name in AGREED:
        rule, why = AGREED[name]
        return f"yes, {_RULES[rule]}: {why}"
    return next((f"no: {why}" for why, names in OWN.items() if name in names), "")


def _origin(info: FieldInfo) -> Any:
    return get_origin(info.annotation)


def _default(info: FieldInfo) -> str:
    if info.default_factory is not None or info.default is None:
        return "none"
    shown = str(info.default).lower() if isinstance(info.default, bool) else str(info.default)
    return f"`{shown}`"


def _allowed(info: FieldInfo) -> str:
    """The allowed values of a setting: bounds, choices, pattern, or type."""
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
