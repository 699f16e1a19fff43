"""``belfry plan``: what a cluster needs for so many schedules, so many fires a second.

The model is `belfry.capacity.model`, which is pure. Its constants say what one schedule, fire or
byte costs. They are measured ones that belfry ships, or those of your hardware:

    belfry bench calibrate > here.json
    belfry plan --pending 1e8 --fires-per-second 5e4 --constants here.json

Each figure comes with its formula, and with the parts that weigh most in it, so that a reader can
see what to change. The output names inputs that are larger than any run that was measured. Neither
Kafka nor a worker is asked, and the command takes a moment, so it may be tried with several loads.

    demand (options) ─┐
                      ├─► estimates ─► text: figures, formulas, where each constant comes from
    constants ────────┘            └─► JSON: the same, with all constants that were used
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from belfry.cli.failures import WrongUse
from belfry.cli.session import Session, with_session
from belfry.schedules.instants import parse_duration

if TYPE_CHECKING:
    from belfry.capacity.constants import Constants
    from belfry.capacity.demand import Demand
    from belfry.capacity.estimate import Estimate

# The option is read in ms as all durations are; the model takes hours.
HOUR_MS: Final = 3_600_000
# Characters of a figure with its unit.
WIDTH: Final = 24

Pending = Annotated[
    float, typer.Option("--pending", metavar="N", help="Schedules that wait.", show_default=False)
]
Fires = Annotated[
    float,
    typer.Option("--fires-per-second", metavar="N", help="Events a second.", show_default=False),
]
Requests = Annotated[
    float | None,
    typer.Option(
        "--requests-per-second", metavar="N", help="Requests a second.  [default: as many as fires]"
    ),
]
Payload = Annotated[float, typer.Option("--payload", metavar="BYTES", help="Bytes of a payload.")]
Tenants = Annotated[float, typer.Option("--tenants", metavar="N", help="Tenants, a topic each.")]
Replicas = Annotated[float, typer.Option("--replicas", metavar="N", help="Copies of each topic.")]
Standbys = Annotated[float, typer.Option("--standbys", metavar="N", help="Standbys a partition.")]
Consumers = Annotated[
    float, typer.Option("--consumers", metavar="N", help="Readers of each fired event.")
]
Retention = Annotated[
    int,
    typer.Option(
        "--retention",
        parser=parse_duration,
        metavar="DURATION",
        help="How long requests and fired events are kept.",
    ),
]
# A file of another release may lack constants; the shipped ones fill in.
File = Annotated[
    Path | None,
    typer.Option(
        "--constants",
        metavar="FILE",
        help="What `belfry bench calibrate` has printed.  [default: the shipped ones]",
    ),
]


def register(app: typer.Typer) -> None:
    """Add ``plan`` to the program."""
    app.command("plan")(with_session(plan))


def plan(
    session: Session,
    *,
    pending: Pending,
    fires_per_second: Fires,
    requests_per_second: Requests = None,
    payload: Payload = 400,
    tenants: Tenants = 100,
    replicas: Replicas = 3,
    standbys: Standbys = 1,
    retention: Retention = "7d",  # type: ignore[assignment]  # Typer parses the default as well
    consumers: Consumers = 1,
    constants: File = None,
) -> None:
    """Compute partitions, workers, memory, disks and brokers for a load, with the formulas.

    A model, no measurement: docs/scale.md says how far it was off where it was compared. Example:

    belfry plan --pending 1e10 --fires-per-second 1e6 --payload 400
    """
    from belfry.capacity.constants import BadConstants
    from belfry.capacity.demand import BadDemand, Demand
    from belfry.capacity.model import plan as planned

    asked = fires_per_second if requests_per_second is None else requests_per_second
    demand = Demand(
        pending=pending,
        fires_per_second=fires_per_second,
        requests_per_second=asked,
        payload=payload,
        tenants=tenants,
        replicas=replicas,
        standbys=standbys,
        retention_hours=retention / HOUR_MS,
        consumers=consumers,
    )
    try:
        known = constants_of(constants)
        estimates = planned(demand, known)
    except (BadConstants, BadDemand) as error:
        raise WrongUse(str(error)) from None
    session.printer.one(_record(demand, estimates, known), plan_text(demand, estimates, known))


def constants_of(file: Path | None) -> Constants:
    """The shipped constants, under those of a file.

    A file need not have all of them. Raises `WrongUse` for a file that cannot be read, and
    `BadConstants` for a wrong name or value in it.
    """
    from importlib.resources import files

    import orjson

    from belfry.capacity.constants import constants_from

    shipped = orjson.loads(files("belfry.capacity").joinpath("shipped.json").read_bytes())
    if file is None:
        return constants_from(shipped)
    try:
        return constants_from(shipped, orjson.loads(file.read_bytes()))
    except OSError as error:
        raise WrongUse(f"--constants {file} cannot be read: {error.strerror}.") from None
    except orjson.JSONDecodeError as error:
        raise WrongUse(
            f"--constants {file} is no JSON ({error}): give what `belfry bench calibrate` prints."
        ) from None


def _record(demand: Demand, estimates: list[Estimate], known: Constants) -> dict[str, Any]:
    """A plan for programs: the demand, each estimate with its formula, and all constants used."""
    return {
        "demand": asdict(demand),
        "estimates": [
            {
                "name": each.name,
                "value": _rounded(each.value),
                "unit": each.unit,
                "formula": each.formula,
                "drivers": {name: round(share, 3) for name, share in each.drivers()},
            }
            for each in estimates
        ],
        "constants": [asdict(each) for each in known],
        "beyond_what_was_measured": demand.beyond(),
    }


def plan_text(demand: Demand, estimates: list[Estimate], known: Constants) -> str:
    """A plan for people: figures with their drivers, formulas, and where constants come from.

    Assumed constants come last: they are the ones to doubt first.
    """
    lines = [_figure_line(each) for each in estimates]
    lines += ["", "How each is computed:"]
    lines += [f"  {each.name} = {each.formula}" for each in estimates]
    origins = sorted({each.origin for each in known}, key=lambda origin: origin == "assumed")
    for origin in origins:
        lines += ["", f"Constants, {origin}:"]
        lines += [
            f"  {each.name:30} {each.value:>12g}  {each.meaning}"
            for each in known
            if each.origin == origin
        ]
    # A model is only as good as its runs, so the reader is told where it goes beyond them.
    beyond = ", ".join(f"{name} {getattr(demand, name):g}" for name in demand.beyond())
    lines += ["", f"No measured run has reached: {beyond or 'nothing of it is beyond'}."]
    return "\n".join(lines)


def _figure_line(each: Estimate) -> str:
    """An estimate in a line: name, figure with unit, and what weighs most in it."""
    amount = f"{_rounded(each.value):,.0f}" if each.value >= 100 else f"{_rounded(each.value):g}"
    shares = ", ".join(f"{name} {share:.0%}" for name, share in each.drivers())
    figure = f"{amount.replace(',', ' ')} {each.unit}".rstrip()
    return f"{each.name:40} {figure:>{WIDTH}}  {shares}".rstrip()


def _rounded(value: float) -> float:
    """Three digits: the model knows no more."""
    return float(f"{value:.3g}")
