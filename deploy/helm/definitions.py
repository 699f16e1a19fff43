"""Definitions of other operators' kinds, by what these operators publish, pinned with hashes.

    locks/definitions.lock ─► Go modules of KEDA and of the Prometheus operator ─► JSON schemas
    strimzi/               ─► Strimzi's own Java classes, which read a manifest strictly

Strimzi publishes no definition in a package, but the classes that its operator reads manifests by.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator

HERE: Final = Path(__file__).parent
LOCK: Final = HERE.parents[1] / "locks" / "definitions.lock"
STRIMZI: Final = "kafka.strimzi.io/"


def definitions() -> dict[tuple[str, str], Draft202012Validator]:
    """Validators of custom resources, by version of the API and kind."""
    found = {}
    for path in _files():
        read = json.loads if path.suffix == ".json" else yaml.safe_load
        described = read(path.read_text("utf-8"))["spec"]
        for version in described["versions"]:
            api = f"{described['group']}/{version['name']}"
            schema = _closed(version["schema"]["openAPIV3Schema"])
            found[api, described["names"]["kind"]] = Draft202012Validator(schema)
    return found


def _files() -> Iterator[Path]:
    lines = LOCK.read_text("utf-8").splitlines()
    for module, version, pinned, files in (
        line.split() for line in lines if not line.startswith("#")
    ):
        command = ["go", "mod", "download", "-json", f"{module}@{version}"]
        told = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
        if told.get("Sum") != pinned:
            raise SystemExit(
                f"{module}@{version}: {told.get('Error') or told['Sum']}, not {pinned}"
            )
        paths = list(Path(told["Dir"]).glob(files))
        if not paths:
            raise SystemExit(
                f"{module}@{version} has no {files}: look where its definitions are now"
            )
        yield from paths


def _closed(schema: Any) -> Any:
    """The schema, but unknown fields are refused, which Kubernetes would drop in silence."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _closed(value) for name, value in schema.items()}
    open_to_all = schema.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(schema.get("properties"), dict) and not open_to_all:
        inner.setdefault("additionalProperties", False)
    return inner


def read_by_strimzi(jars: str, manifests: Sequence[dict[str, Any]]) -> list[str]:
    """What Strimzi's classes say of each manifest: what is wrong, or nothing."""
    given = "".join(json.dumps(each) + "\n" for each in manifests)
    command = ["java", "-cp", f"{jars}/*", str(HERE / "strimzi" / "Check.java")]
    told = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if told.returncode or len(told.stdout.splitlines()) != len(manifests):
        raise SystemExit(f"Strimzi's classes could not be asked: {told.stderr[-2_000:]}")
    return told.stdout.splitlines()
