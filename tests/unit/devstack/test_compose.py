"""The Docker files name the versions that the embedded stack runs."""

from __future__ import annotations

import re
from pathlib import Path

from belfry.devstack.artifacts import pins

COMPOSE = Path(__file__).parents[3] / "compose" / "compose.yaml"


def pinned_version(bundle: str, artifact: str) -> str:
    (version,) = {
        pin.coordinates.split(":")[2]
        for pin in pins(bundle)
        if pin.coordinates.split(":")[1] == artifact
    }
    return version


def test_images_have_the_pinned_versions() -> None:
    images = dict(re.findall(r"image: (\S+):(\S+)", COMPOSE.read_text()))
    assert images["apache/kafka"] == pinned_version("kafka", "kafka_2.13")
    assert images["apicurio/apicurio-registry"] == pinned_version(
        "registry", "apicurio-registry-app"
    )


def test_ports_are_published_on_the_loopback_address_only() -> None:
    published = re.findall(r'- "([^"]+:\d+)"', COMPOSE.read_text())
    assert len(published) == 3
    assert all(port.startswith("127.0.0.1:") for port in published)
