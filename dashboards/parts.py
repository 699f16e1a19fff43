"""Parts of dashboards: rows, panels and variables, as Grafana's SDK builds them.

A query names metrics alone, and gets the selector of its dashboard here: `belfry_fired_total` is
asked for as `belfry_fired_total{instance=~"$instance"}` where the dashboard can choose workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from grafana_foundation_sdk.builders.common import (
    ReduceDataOptions,
    VizLegendOptions,
    VizTooltipOptions,
)
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (
    DataSourceRef,
    LegendDisplayMode,
    LegendPlacement,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    Threshold,
    ThresholdsMode,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
METRIC: Final = re.compile(r"\bbelfry_\w+\b(?!\{)")
ALL: Final = VariableOption(text="All", value="$__all", selected=True)
WIDTH: Final = 24


class Query(NamedTuple):
    """What is asked of Prometheus, and how its series are named; `everywhere`: of all workers."""

    legend: str
    expr: str
    everywhere: bool = False


class Chart(NamedTuple):
    """Series over time.  `unit` is one of Grafana's; `lowest` is where its axis begins."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    lowest: float | None = 0


class Figure(NamedTuple):
    """One number as of now, orange and red from these values on."""

    title: str
    description: str
    unit: str
    query: Query
    orange: float | None = None
    red: float | None = None


class Group(NamedTuple):
    """Panels under one heading."""

    title: str
    panels: tuple[Chart | Figure, ...]


def dashboard(title: str, uid: str, description: str) -> Dashboard:
    """A dashboard without panels, with a choice of the data source."""
    others = DashboardLink("belfry").type(DashboardLinkType.DASHBOARDS).tags(["belfry"])
    return (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["belfry", "kafka"])
        .timezone("browser")
        .refresh("10s")
        .time("now-1h", "now")
        .editable()
        .link(others.keep_time(True).include_vars(True))
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )


def choice(name: str, label: str, query: str) -> QueryVariable:
    """A variable with the values that a query finds; all of them at first."""
    return (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(ALL)
    )


def quantile(share: float, buckets: str, by: str = "") -> str:
    """The expression of a quantile: of buckets with their range, such as `rate(x_bucket[5m])`."""
    labels = ", ".join(filter(None, ("le", by)))
    return f"histogram_quantile({share}, sum by ({labels}) ({buckets}))"


def put(board: Dashboard, groups: Iterable[Group], selector: str) -> str:
    """The JSON of a dashboard with these panels, whose queries get the selector."""
    number = 0
    for group in groups:
        number += 1
        board.with_row(Row(group.title).id(number))
        for panel in group.panels:
            number += 1
            board.with_panel(_built(panel, selector, number))
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def _built(panel: Chart | Figure, selector: str, number: int) -> Stat | Timeseries:
    if isinstance(panel, Figure):
        return _figure(panel, selector).id(number)
    return _chart(panel, selector).id(number)


def _figure(panel: Figure, selector: str) -> Stat:
    steps = [Threshold(value=None, color="green")]
    for value, color in ((panel.orange, "orange"), (panel.red, "red")):
        if value is not None:
            steps.append(Threshold(value=value, color=color))
    return (
        Stat()
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .min(0)
        .height(4)
        .span(WIDTH // 6)
        .thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
        .reduce_options(ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(_target(panel.query, selector, "A"))
    )


def _chart(panel: Chart, selector: str) -> Timeseries:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).show_legend(True)
    built = (
        Timeseries()
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .height(8)
        .span(WIDTH // 2)
        .legend(legend.placement(LegendPlacement.BOTTOM))
        .tooltip(VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
    )
    if panel.lowest is not None:
        built.min(panel.lowest)
    for at, query in enumerate(panel.queries):
        built.with_target(_target(query, selector, chr(ord("A") + at)))
    return built


def _target(query: Query, selector: str, ref_id: str) -> Dataquery:
    expr = query.expr if query.everywhere else METRIC.sub(rf"\g<0>{{{selector}}}", query.expr)
    asked = Dataquery().expr(expr).legend_format(query.legend).ref_id(ref_id)
    return asked.datasource(SOURCE)
