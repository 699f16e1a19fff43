"""What a node is told, without starting one."""

from __future__ import annotations

from pathlib import Path

from belfry.devstack import Kafka, Node
from belfry.devstack.kafka import new_cluster_id, not_formatted


def test_a_lone_node_is_a_whole_cluster(tmp_path: Path) -> None:
    told = Kafka(tmp_path, 9092)._server_properties()
    assert told["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert told["listeners"].count("://127.0.0.1:") == 2
    assert told["controller.quorum.voters"].startswith("1@127.0.0.1:")
    assert told["transaction.state.log.replication.factor"] == "1"
    assert told["auto.create.topics.enable"] == "false"


def test_a_node_of_several_keeps_kafkas_replication(tmp_path: Path) -> None:
    voters = "1@127.0.0.1:5001,2@127.0.0.1:5002,3@127.0.0.1:5003"
    node = Node(node_id=2, controller_port=5002, voters=voters, cluster_id=new_cluster_id())
    told = Kafka(tmp_path, 9093, node=node)._server_properties()
    assert told["node.id"] == "2"
    assert told["controller.quorum.voters"] == voters
    assert told["listeners"].endswith("CONTROLLER://127.0.0.1:5002")
    assert "offsets.topic.replication.factor" not in told


def test_given_properties_win(tmp_path: Path) -> None:
    properties = {"num.partitions": "8", "message.max.bytes": "2000"}
    told = Kafka(tmp_path, properties=properties)._server_properties()
    assert (told["num.partitions"], told["message.max.bytes"]) == ("8", "2000")


def test_a_port_stays_the_same_over_restarts(tmp_path: Path) -> None:
    kafka = Kafka(tmp_path)
    assert kafka.bootstrap_servers == f"127.0.0.1:{kafka.port}"
    assert f":{kafka.port}," in kafka._server_properties()["listeners"]


def test_cluster_ids_have_kafkas_form() -> None:
    made = {new_cluster_id() for _ in range(1_000)}
    assert len(made) == 1_000
    assert {len(one) for one in made} == {22}
    assert not any(one.startswith("-") for one in made)


def test_a_directory_that_could_not_be_prepared_is_explained_though_the_tool_said_nothing(
    tmp_path: Path,
) -> None:
    log = tmp_path / "format.log"
    assert not_formatted(False, log).endswith("Try again where less is running. It said nothing.")
    log.write_text("\n")
    assert not_formatted(True, log) == "its tool ended with an error. It said nothing."
    log.write_text("no such property\n")
    assert not_formatted(True, log) == "its tool ended with an error.\nno such property"
