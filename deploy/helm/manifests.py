"""`make manifests`: what the chart renders is what Kubernetes takes, for each of its versions.

    values of deploy/helm/belfry/ci ─► helm template ─┬─► Kubernetes' schemas
    belfry acls … --as strimzi ───────────────────────┤
                                                      ├─► definitions of KEDA, Prometheus' operator
                                                      └─► Strimzi's own classes

All of them refuse unknown fields.  Each kind is also judged with a field that does not exist: a
check that takes it is told of.  Runs in an environment of its own (`locks/chart.lock`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import yaml
from definitions import STRIMZI, definitions, read_by_strimzi

CHART: Final = Path(__file__).parent / "belfry"
VERSIONS: Final = [f"1.{minor}" for minor in range(31, 38)]
Manifest = dict[str, Any]


class ManifestCheck:
    """Judges manifests by all schemas, and remembers how many and which kinds."""

    def __init__(self) -> None:
        self._custom = definitions()
        self.passed: Counter[str] = Counter()
        self.kinds: dict[str, tuple[Manifest, str]] = {}

    def mistakes(self, manifest: Manifest, version: str) -> str:
        """What is wrong with a manifest for a version of Kubernetes; empty for nothing."""
        told = self._told(manifest, version)
        if not told:
            self.passed[version] += 1
            self.kinds.setdefault(manifest["kind"], (manifest, version))
        return told

    def blind(self) -> Iterator[str]:
        """Kinds that would be taken with a field that does not exist."""
        for kind, (manifest, version) in self.kinds.items():
            planted = {**manifest, "noSuchField": 1}
            if "spec" in manifest:
                planted = {**manifest, "spec": {**manifest["spec"], "noSuchField": 1}}
            if not self._told(planted, version):
                yield f"{kind}: a field that does not exist is not noticed"

    def _told(self, manifest: Manifest, version: str) -> str:
        own = self._custom.get((manifest["apiVersion"], manifest["kind"]))
        if own is not None:
            found = own.iter_errors(manifest)
            return "; ".join(f"{each.json_path}: {each.message}" for each in found)
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.SchemaNotFoundError:
            return "no schema for this kind"
        except kubernetes_validate.ValidationError as error:
            return f"{'.'.join(map(str, error.path))}: {error.message}"
        return ""


def rendered(helm: str, values: Path, version: str) -> list[Manifest]:
    """What helm makes of the chart with these values."""
    command = [helm, "template", "belfry", str(CHART), "--kube-version", f"{version}.0"]
    told = subprocess.run([*command, "-f", str(values)], capture_output=True, text=True, check=True)
    return [each for each in yaml.safe_load_all(told.stdout) if each]


def by_strimzi(jars: str, manifests: dict[str, str]) -> Iterator[str]:
    """Mistakes of the manifests, which are texts and where they are from; last a planted one's."""
    read = [json.loads(each) for each in manifests]
    planted = [{**each, "spec": {**each["spec"], "noSuchField": 1}} for each in read]
    told = read_by_strimzi(jars, [*read, *planted])
    for manifest, where, said in zip(read, manifests.values(), told, strict=False):
        if said:
            yield f"{where}: {manifest['kind']} {manifest['metadata']['name']}: {said}"
    if not read or not all(told[len(read) :]):
        yield "Strimzi's classes were given nothing, or do not notice a field that does not exist"


def main(helm: str, jars: str, *users: str) -> None:
    """Check all, and KafkaUsers in these files; ends with 1 and the mistakes, if any."""
    check = ManifestCheck()
    strimzis = {json.dumps(yaml.safe_load(Path(each).read_text("utf-8"))): each for each in users}
    mistakes = []
    for values in sorted((CHART / "ci").glob("*.yaml")):
        for version in VERSIONS:
            for each in rendered(helm, values, version):
                if each["apiVersion"].startswith(STRIMZI):
                    strimzis.setdefault(json.dumps(each), values.name)
                elif told := check.mistakes(each, version):
                    place = f"{values.name}, {version}, {each['kind']} {each['metadata']['name']}"
                    mistakes.append(f"{place}: {told}")
    mistakes += [*check.blind(), *by_strimzi(jars, strimzis)]
    for version, number in check.passed.items():
        print(f"{version}: {number} manifests pass")
    print(f"Strimzi: {len(strimzis)} manifests read")
    sys.exit("\n".join(mistakes) or 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
