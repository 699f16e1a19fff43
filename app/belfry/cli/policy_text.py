"""A policy as text: a line of a list, a page of one, and several in a file.

A policy has some twenty-five fields, and most tenants set two or three of them. So a line says what
differs from the defaults, and a page begins with it:

    payments  lifecycle=ALL  max_pending=100000

A file holds whole policies, as TOML or as JSON. The output of `belfry tenant list -o json` can be
read back, so that a file can be made from the policies in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from belfry.cli.assignments import NONE
from belfry.cli.failures import WrongUse
from belfry.cli.shown import plain

if TYPE_CHECKING:
    from belfry.tenants.policy import TenantPolicy


def whole(policy: TenantPolicy) -> str:
    """A policy for people: a field in a line, those first that say more than the defaults."""
    from belfry.tenants.policy import TenantPolicy

    defaults = shown(TenantPolicy(policy.tenant))
    fields = shown(policy)
    own = {name: value for name, value in fields.items() if value != defaults[name]}
    rest = {name: value for name, value in fields.items() if name not in {*own, "tenant"}}
    lines = [f"{policy.tenant}: {len(own) or 'no'} fields are not as by default"]
    lines += [f"  {name:24} {_value(value)}" for name, value in own.items()]
    lines += ["as by default:", *(f"  {name:24} {_value(each)}" for name, each in rest.items())]
    return "\n".join(lines)


def _value(value: object) -> str:
    """A value as it is set: in JSON, `none` for a missing one."""
    import orjson

    if value is None:
        return NONE
    return plain(value if isinstance(value, str) else orjson.dumps(value).decode())


def from_file(file: Path, option: str = "--file") -> Iterator[TenantPolicy]:
    """Whole policies of a file; `WrongUse` where it cannot be read, by the option's name."""
    from belfry.client.policy_fields import policy_from

    try:
        records = _records(file)
    except OSError as error:
        raise WrongUse(f"{option} {file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise WrongUse(f"{option} {file}: {error}") from None
    for record in records:
        yield policy_from(record)


def _records(file: Path) -> list[dict[str, Any]]:
    """Policies of a file as dictionaries: TOML by its suffix, a JSON array, or JSON lines.

        [tenants.payments]                       {"tenant": "payments", "max_pending": 100000}
        max_pending = 100000                     one object a line

    The output of `belfry tenant list -o json` can be read back. Raises OSError for a file that
    cannot be read, and ValueError for a text of another form.
    """
    import tomllib

    import orjson

    text = file.read_text("utf-8")
    if file.suffix == ".toml":
        tables = tomllib.loads(text).get("tenants", {})
        return [{"tenant": name, **table} for name, table in tables.items()]
    if text.lstrip().startswith("["):
        listed: list[dict[str, Any]] = orjson.loads(text)
        return listed
    return [orjson.loads(each) for each in text.splitlines() if each.strip()]


def shown(policy: TenantPolicy) -> dict[str, Any]:
    """A policy for programs."""
    from dataclasses import asdict

    return asdict(policy)


def line(policy: TenantPolicy) -> str:
    """A policy in a line: what it says beyond the defaults."""
    from belfry.tenants.policy import TenantPolicy

    defaults = shown(TenantPolicy(policy.tenant))
    own = [f"{name}={value}" for name, value in shown(policy).items() if value != defaults[name]]
    return f"{policy.tenant}  {'  '.join(own) or 'defaults'}"
