"""The chart without helm: its values, its settings, and what it has from the code.

`make manifests` renders it; this holds wherever the tests run.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml

from belfry import __version__
from belfry.kafka.strimzi import chart_files
from belfry.settings import Settings, SharedSettings
from belfry.settings.names import unknown_names
from tests.architecture.tree import ROOT

CHART: Final = ROOT / "deploy" / "helm" / "belfry"
TEMPLATE: Final = "\n".join(
    (CHART / "templates" / name).read_text("utf-8") for name in ("statefulset.yaml", "sweeps.yaml")
)
GIVEN: Final = sorted((CHART / "ci").glob("*.yaml"))
PAGE: Final = (ROOT / "docs" / "how-to" / "kubernetes.md").read_text("utf-8")
BLOCK: Final = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
VARIABLE: Final = re.compile(r"name: (BELFRY_[A-Z_]+)\b")
LEAST_CASES: Final = 60


def read(path: str) -> Any:
    """A YAML file of the chart."""
    return yaml.safe_load((CHART / path).read_text("utf-8"))


def merged(base: Any, over: Any) -> Any:
    """Values as helm merges them."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


def variables(values: Any) -> dict[str, str]:
    """The variables that values add to those of the template."""
    named = [*values["settings"], *(each["setting"] for each in values["secrets"])]
    return dict.fromkeys((f"BELFRY_{name.upper()}" for name in named), "")


SCHEMA: Final = jsonschema_rs.validator_for(json.loads((CHART / "values.schema.json").read_text()))


@pytest.mark.parametrize("path", GIVEN, ids=lambda path: path.name)
def test_values_fit_their_schema(path: Any) -> None:
    SCHEMA.validate(merged(read("values.yaml"), yaml.safe_load(path.read_text("utf-8"))))


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicass": 3},
        {"cluster": {"partitions": 0}},
        {"kafka": {"bootstrapServers": "kafka"}},
        {"image": {"digest": "latest"}},
        {"http": {"plaintext": "yes"}},
        {"settings": {"Standbys": 1}},
        # Less than 24h: each run of the sweep would be refused.
        {"dayFiles": {"sweep": {"olderThan": "12h"}}},
        {"dayFiles": {"sweep": {"olderThan": "0d"}}},
        {"secrets": [{"setting": "http_api_keys", "value": "secret"}]},
    ],
)
def test_wrong_values_do_not(wrong: dict[str, Any]) -> None:
    assert not SCHEMA.is_valid(merged(read("values.yaml"), wrong))


def test_the_schema_knows_every_value() -> None:
    described = json.loads((CHART / "values.schema.json").read_text())["properties"]
    assert {*read("values.yaml"), "global"} == set(described)


def test_every_setting_of_the_chart_exists() -> None:
    given = dict.fromkeys(VARIABLE.findall(TEMPLATE), "")
    assert len(given) >= 12
    for path in (CHART / "values.yaml", *GIVEN):
        given |= variables(merged(read("values.yaml"), yaml.safe_load(path.read_text("utf-8"))))
    assert unknown_names(given, {}, ()) == ""


def test_settings_that_the_chart_gives_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "BELFRY_HTTP_ADVERTISED_URL", "http://belfry-0.belfry-workers.events.svc:8700"
    )
    monkeypatch.setenv("BELFRY_HTTP_ALLOWED_HOSTS", '["belfry","belfry.events.svc"]')
    monkeypatch.setenv("BELFRY_WORKER_RACK", "")
    monkeypatch.setenv("BELFRY_GROUP_INSTANCE_ID", "belfry-0")
    assert Settings().http_allowed_hosts == ["belfry", "belfry.events.svc"]


def test_a_hand_over_ends_within_the_grace() -> None:
    values = read("values.yaml")
    left = values["terminationGracePeriodSeconds"] - values["preStopSeconds"]
    assert left * 1000 >= 10 * Settings.model_fields["hand_over_limit_ms"].default


def test_alerts_dashboards_topics_and_rights_are_those_of_the_code() -> None:
    for path in sorted((ROOT / "dashboards").iterdir()):
        if path.suffix in (".yml", ".json"):
            ships = (CHART / "files" / path.name).read_text("utf-8")
            assert ships == path.read_text("utf-8"), f"{path.name}: run make docs"
    for name, text in chart_files(SharedSettings()).items():
        assert (CHART / "files" / name).read_text("utf-8") == text, f"{name}: run make docs"


def test_the_chart_is_of_this_version() -> None:
    chart = read("Chart.yaml")
    assert chart["appVersion"] == chart["version"] == __version__


def test_the_chart_has_cases_for_each_template() -> None:
    suites = [read(f"tests/{path.name}") for path in (CHART / "tests").glob("*.yaml")]
    assert sum(len(each["tests"]) for each in suites) >= LEAST_CASES
    tested = {template for each in suites for template in each["templates"]}
    there = {f"templates/{path.name}" for path in (CHART / "templates").glob("*.yaml")}
    assert tested == there


def test_the_page_installs_with_values_that_the_chart_has() -> None:
    given: dict[str, Any] = {}
    for name, value in re.findall(r"--set ([\w.]+)=(\S+)", PAGE):
        nested: Any = value
        for part in reversed(name.split(".")):
            nested = {part: nested}
        given = merged(given, nested)
    assert set(given) == {"image", "kafka", "http"}
    SCHEMA.validate(merged(read("values.yaml"), given))
    for folder in re.findall(r"(?:docker build -f|helm install belfry) (\S+)", PAGE):
        assert (ROOT / folder).exists()


def test_the_values_that_the_page_shows_fit_the_chart() -> None:
    (shown,) = (text for text in BLOCK.findall(PAGE) if text.startswith("settings:"))
    values = merged(read("values.yaml"), yaml.safe_load(shown))
    SCHEMA.validate(values)
    assert unknown_names(variables(values), {}, ()) == ""


def test_the_page_makes_the_secrets_that_the_chart_refers_to() -> None:
    made = set(re.findall(r"--from-literal=([\w-]+)=", PAGE))
    assert {each["key"] for each in read("values.yaml")["secrets"]} == made
    assert {each["secret"] for each in read("values.yaml")["secrets"]} == {"belfry-http"}
