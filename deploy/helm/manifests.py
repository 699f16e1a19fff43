"""`make manifests`: what the chart renders is what Kubernetes takes, for each of its versions.

    values of deploy/helm/belfry/ci ─► helm template ─► Kubernetes' schemas, unknown fields refused
                                                    └─► definitions of KEDA's own kinds

Kinds that no schema is given for are named at the end, and count as checked nowhere.
Runs in an environment of its own (`locks/chart.lock`).
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import yaml
from jsonschema import Draft202012Validator

CHART: Final = Path(__file__).parent / "belfry"
VERSIONS: Final = [f"1.{minor}" for minor in range(31, 38)]
# The chart's tests by helm-unittest look at these; no module that can be had carries their schemas.
WITHOUT_SCHEMA: Final = {"KafkaTopic", "KafkaUser", "PrometheusRule", "ServiceMonitor"}


def definitions(folders: Iterable[str]) -> dict[tuple[str, str], Draft202012Validator]:
    """Validators of custom resources, by version of the API and kind."""
    found = {}
    for path in (path for folder in folders for path in Path(folder).glob("*.yaml")):
        described = yaml.safe_load(path.read_text("utf-8"))["spec"]
        for version in described["versions"]:
            api = f"{described['group']}/{version['name']}"
            schema = closed(version["schema"]["openAPIV3Schema"])
            found[api, described["names"]["kind"]] = Draft202012Validator(schema)
    return found


def closed(schema: Any) -> Any:
    """The schema, but unknown fields are refused, which Kubernetes would drop in silence."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    open_to_all = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and not open_to_all:
        inner.setdefault("additionalProperties", False)
    return inner


def rendered(helm: str, values: Path, version: str) -> list[dict[str, Any]]:
    """What helm makes of the chart with these values."""
    command = [helm, "template", "belfry", str(CHART), "--kube-version", f"{version}.0"]
    told = subprocess.run([*command, "-f", str(values)], capture_output=True, text=True, check=True)
    return [each for each in yaml.safe_load_all(told.stdout) if each]


def main(helm: str, *crds: str) -> None:
    """Check all, with the definitions of these folders; ends with 1 and the mistakes, if any."""
    custom = definitions(crds)
    checked: Counter[str] = Counter()
    unseen: set[str] = set()
    mistakes = []
    for values in sorted((CHART / "ci").glob("*.yaml")):
        for version in VERSIONS:
            for each in rendered(helm, values, version):
                place = f"{values.name}, {version}, {each['kind']} {each['metadata']['name']}"
                told = mistake(each, version, custom)
                if told is None:
                    unseen.add(each["kind"])
                elif told:
                    mistakes.append(f"{place}: {told}")
                else:
                    checked[version] += 1
    print(*(f"{version}: {number} manifests pass" for version, number in checked.items()), sep="\n")
    print("without a schema:", *sorted(unseen))
    if unseen - WITHOUT_SCHEMA:
        mistakes.append(f"no schema for {', '.join(sorted(unseen - WITHOUT_SCHEMA))}")
    sys.exit("\n".join(mistakes) or 0)


def mistake(
    manifest: dict[str, Any], version: str, custom: dict[tuple[str, str], Draft202012Validator]
) -> str | None:
    """What is wrong with a manifest: empty for nothing, None where no schema is known."""
    own = custom.get((manifest["apiVersion"], manifest["kind"]))
    if own is not None:
        return "; ".join(f"{each.json_path}: {each.message}" for each in own.iter_errors(manifest))
    try:
        kubernetes_validate.validate(manifest, version, strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        return None
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
