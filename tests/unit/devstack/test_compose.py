"""The Docker files, as far as they go without Docker: versions, ports, names, workers' settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from belfry.devstack.artifacts import pins
from belfry.settings import Settings
from belfry.settings.names import unknown_names

FOLDER: Final = Path(__file__).parents[3] / "compose"
TEXT: Final = (FOLDER / "compose.yaml").read_text("utf-8")
COMPOSE: Final[dict[str, Any]] = yaml.safe_load(TEXT)
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
BROKERS: Final = ("kafka-1", "kafka-2", "kafka-3")
WORKERS: Final = ("worker-1", "worker-2")
KEY: Final = {"name": "page", "sha256": "0" * 64, "tenants": ["*"], "role": "operate"}
# What whoever starts it has to give.
GIVEN: Final = {
    "BELFRY_HTTP_API_KEYS": json.dumps([KEY]),
    "BELFRY_HTTP_WORKER_SECRET": "a secret that is long enough for all",
}


def pinned_version(bundle: str, artifact: str) -> str:
    (version,) = {
        pin.coordinates.split(":")[2]
        for pin in pins(bundle)
        if pin.coordinates.split(":")[1] == artifact
    }
    return version


def test_what_runs_is_what_it_says_and_nothing_helps_out() -> None:
    assert set(SERVICES) == {*BROKERS, "registry", *WORKERS, "prometheus", "grafana"}


def test_images_have_the_pinned_versions() -> None:
    images = dict(re.findall(r"image: (\S+):(\S+)", TEXT))
    assert images["apache/kafka"] == pinned_version("kafka", "kafka_2.13")
    assert images["apicurio/apicurio-registry"] == pinned_version(
        "registry", "apicurio-registry-app"
    )
    assert all(re.search(r"\d+\.\d+\.\d+$", version) for version in images.values())


def test_ports_are_published_on_the_loopback_address_only_and_once() -> None:
    published = [port for each in SERVICES.values() for port in each["ports"]]
    assert len({port.split(":")[1] for port in published}) == len(published) == len(SERVICES)
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_brokers_form_one_cluster_that_survives_one_of_them() -> None:
    for number, name in enumerate(BROKERS, 1):
        settings = SERVICES[name]["environment"]
        host = SERVICES[name]["ports"][0].split(":")[1]
        advertised = f"INSIDE://{name}:19092,HOST://127.0.0.1:{host}"
        assert settings["KAFKA_ADVERTISED_LISTENERS"] == advertised
        assert settings["KAFKA_NODE_ID"] == str(number)
        voters = [f"{node}@{each}:29093" for node, each in enumerate(BROKERS, 1)]
        assert settings["KAFKA_CONTROLLER_QUORUM_VOTERS"] == ",".join(voters)
        for setting, value in settings.items():
            if setting.endswith("REPLICATION_FACTOR"):
                assert value == "3"
            elif setting.endswith(("MIN_ISR", "MIN_INSYNC_REPLICAS")):
                assert value == "2"


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_takes_its_settings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {**SERVICES[name]["environment"], **GIVEN}
    assert unknown_names(environment, {}, ()) == ""
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    settings = Settings()
    assert settings.http_advertised_url == f"http://{name}:8700"
    assert settings.bootstrap_servers == ",".join(f"{each}:19092" for each in BROKERS)
    assert name in settings.http_allowed_hosts


@pytest.mark.parametrize("variable", GIVEN)
def test_secrets_have_to_be_given_and_none_is_known(variable: str) -> None:
    for name in WORKERS:
        assert re.fullmatch(rf"\$\{{{variable}:\?.+\}}", SERVICES[name]["environment"][variable])


def test_what_is_named_is_there() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            named = source in COMPOSE["volumes"] or (FOLDER / source).resolve().is_file()
            assert named, volume


def test_each_worker_is_asked_for_its_metrics_and_grafana_asks_prometheus() -> None:
    asks = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))
    (job,) = asks["scrape_configs"]
    port = SERVICES["worker-1"]["environment"]["BELFRY_HEALTH_PORT"]
    assert job["static_configs"] == [{"targets": [f"{each}:{port}" for each in WORKERS]}]
    mounted = {volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]}
    assert set(asks["rule_files"]) <= mounted
    sources = yaml.safe_load((FOLDER / "grafana" / "datasources.yml").read_text("utf-8"))
    assert sources["datasources"][0]["url"] == "http://prometheus:9090"
    boards = yaml.safe_load((FOLDER / "grafana" / "dashboards.yml").read_text("utf-8"))
    folder = boards["providers"][0]["options"]["path"]
    shown = [volume for volume in SERVICES["grafana"]["volumes"] if f":{folder}/" in volume]
    assert len(shown) == 2
