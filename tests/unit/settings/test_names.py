"""Names that no process knows: each is found, with the nearest one, and no value is shown."""

from __future__ import annotations

import pytest

from belfry.settings import ClusterSettings
from belfry.settings.names import RENAMED, known_settings, may_hold_secrets, unknown_names


def of_variable(name: str, value: str = "1") -> str:
    """What is said of one variable."""
    return unknown_names({name: value}, {}, ())


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("BELFRY_BATCH_RECORD", "BELFRY_BATCH_RECORDS"),
        ("belfry_htp_port", "BELFRY_HTTP_PORT"),
        ("BELFRY_CLUSTER__PARTITION", "BELFRY_CLUSTER__PARTITIONS"),
        ("BELFRY_CLUSTER_PARTITIONS", "BELFRY_CLUSTER__PARTITIONS"),
        ("BELFRY_HTTP_PORT__X", "BELFRY_HTTP_PORT"),
        ("BELFRY_WEBHOOK_SECRET__MAIN", "BELFRY_WEBHOOK_SECRETS"),
        ("BELFRY_KAFKA__SASL_USRNAME", "BELFRY_KAFKA__SASL_USERNAME"),
        ("BELFRY_REGISTRY__BASIC_AUTH_USERINFO", "BELFRY_REGISTRY__BASIC_AUTH_USER_INFO"),
        ("BELFRY_FAILPOINTS", "BELFRY_FAILPOINT"),
        ("BELFRY_CONFIG", "BELFRY_CONFIG_FILE"),
    ],
)
def test_a_variable_that_nobody_knows_is_told_with_the_nearest(given: str, nearest: str) -> None:
    said = of_variable(given, "hunter2")
    assert said.startswith(f"{given} is no ")
    assert f"did you mean {nearest}?" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("name", known_settings())
def test_each_setting_is_known_to_all_processes(name: str) -> None:
    assert of_variable(f"BELFRY_{name.upper()}") == ""
    assert unknown_names({}, {name: 1}, ()) == ""


@pytest.mark.parametrize("name", ClusterSettings.model_fields)
def test_each_cluster_setting_is_known(name: str) -> None:
    assert of_variable(f"BELFRY_CLUSTER__{name.upper()}") == ""
    assert unknown_names({}, {"cluster": {name: 1}}, ()) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BELFRY_SECRET_MAIL", "x"),
        ("BELFRY_CONFIG_FILE", "x"),
        ("BELFRY_CACHE_DIR", "x"),
        ("BELFRY_FAILPOINT", "S5:kill"),
        ("BELFRY_BENCH_LOG_LEVEL", "info"),
        ("BELFRY_SECRETS__MAIL", "x"),
        ("BELFRY_WEBHOOK_SECRETS__MAIN", "x"),
        ("BELFRY_KAFKA__SSL_CA_LOCATION", "x"),
        ("BELFRY_KAFKA__LOG_LEVEL", "3"),
        ("BELFRY_REGISTRY__SSL_CA_LOCATION", "x"),
        ("BELFRY_KAFKA", "no JSON"),
        ("BELFRYX", "x"),
        ("HOME", "x"),
        # Of Kubernetes, for services that are called belfry and belfry-api.
        ("BELFRY_SERVICE_HOST", "10.0.0.1"),
        ("BELFRY_SERVICE_PORT", "8700"),
        ("BELFRY_API_SERVICE_PORT_HTTP", "8700"),
        ("BELFRY_PORT", "tcp://10.0.0.1:8700"),
        ("BELFRY_PORT_8700_TCP", "tcp://10.0.0.1:8700"),
        ("BELFRY_PORT_8700_TCP_ADDR", "10.0.0.1"),
    ],
)
def test_what_others_name_is_left_alone(name: str, value: str) -> None:
    assert of_variable(name, value) == ""


def test_a_port_that_is_no_address_is_a_misspelt_setting() -> None:
    assert "did you mean BELFRY_HTTP_PORT?" in of_variable("BELFRY_HTTPPORT", "8700")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            {"fire_chunks": 1},
            (
                "fire_chunks in the settings file is no setting of belfry's: did you"
                " mean fire_chunk?"
            ),
        ),
        (
            {"cluster": {"partition": 1}},
            (
                "partition of cluster in the settings file is no setting"
                " of belfry's: did you mean partitions?"
            ),
        ),
        (
            {"kafka": {"sasl.usrname": "me"}},
            (
                "sasl.usrname of kafka in the settings file is no"
                " property of librdkafka: did you mean sasl.username?"
            ),
        ),
        (
            {"registry": {"basic.auth": "me"}},
            (
                "basic.auth of registry in the settings file is no"
                " property of the schema registry's client: did you mean basic.auth.user.info?"
            ),
        ),
        (
            {"zzz": 1},
            ("zzz in the settings file is no setting of belfry's: nothing known is called alike."),
        ),
    ],
)
def test_a_key_of_the_file_that_nobody_knows_is_told(file: dict[str, object], said: str) -> None:
    assert unknown_names({}, file, ()).startswith(said)


@pytest.mark.parametrize("name", ["BELFRY_KAFKA", "BELFRY_CLUSTER"])
def test_names_within_a_variable_of_json_are_looked_at(name: str) -> None:
    assert of_variable(name, '{"partition.assignment": 4}').startswith("partition.assignment of")
    assert of_variable(name, "[]") == ""


def test_all_that_is_wrong_is_one_message() -> None:
    variables = {"BELFRY_BATCH_RECORD": "1", "BELFRY_HTTP_PORT": "1", "BELFRY_X_Y_Z": "1"}
    said = unknown_names(variables, {"htp_port": 1}, ["sasl.usrname", "linger.ms"])
    for each in ("BELFRY_BATCH_RECORD ", "BELFRY_X_Y_Z ", "htp_port ", "-X sasl.usrname "):
        assert each in said
    assert "BELFRY_HTTP_PORT " not in said
    assert "linger" not in said
    assert said.count("Allowed are the settings of docs/settings.md") == 1


def test_a_former_name_is_told_with_the_present_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENAMED, "fire_most", "fire_chunk")
    assert of_variable("BELFRY_FIRE_MOST").startswith(
        "BELFRY_FIRE_MOST is called BELFRY_FIRE_CHUNK now."
    )
    said = unknown_names({}, {"fire_most": 1}, ())
    assert said.startswith("fire_most in the settings file is called fire_chunk now.")


def test_a_name_is_not_of_today_and_of_former_times() -> None:
    assert not RENAMED.keys() & known_settings().keys()
    assert set(RENAMED.values()) <= known_settings().keys()


def test_secrets_of_all_processes_are_not_shown() -> None:
    hidden = {name for name in known_settings() if may_hold_secrets(name)}
    assert hidden == {
        *("checkpoint_options", "checkpoint_store"),
        *("http_api_keys", "http_token", "http_worker_secret", "http_worker_secret_also"),
        *("payload_store", "payload_store_options", "day_store", "day_store_options"),
        *("kafka", "mirror_source_kafka", "registry", "schema_registry_url", "secrets"),
        "webhook_secrets",
    }
