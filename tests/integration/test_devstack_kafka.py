"""The embedded broker is a real one, and its data outlive it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from belfry.devstack import Kafka, KafkaNodes

Naming = Callable[[str], str]


def create_topic(bootstrap: str, topic: str, *, replicas: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(topic, 4, replicas)])
    created[topic].result(30)


def produce(bootstrap: str, topic: str, *values: str, transactional_id: str = "") -> None:
    settings = {"transactional.id": transactional_id} if transactional_id else {}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    if transactional_id:
        producer.init_transactions(30)
        producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    if transactional_id:
        producer.commit_transaction(30)
    assert producer.flush(30) == 0


def read(bootstrap: str, topic: str, count: int) -> set[str]:
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: set[str] = set()
    try:
        for _ in range(300):
            message = consumer.poll(0.1)
            if message and not message.error():
                found.add((message.value() or b"").decode())
            if len(found) == count:
                break
    finally:
        consumer.close()
    return found


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics)


def test_what_is_produced_in_a_transaction_is_read(kafka: str, unique: Naming) -> None:
    topic = unique("orders")
    create_topic(kafka, topic)
    produce(kafka, topic, "one", "two", transactional_id=topic)
    assert read(kafka, topic, 2) == {"one", "two"}


def test_topics_are_never_created_by_accident(kafka: str, unique: Naming) -> None:
    topic = unique("typo")
    AdminClient({"bootstrap.servers": kafka}).list_topics(topic, timeout=10)
    assert topic not in topics(kafka)


@pytest.mark.slow
def test_a_restart_and_a_kill_keep_topics_records_and_cluster_id(tmp_path: Path) -> None:
    kafka = Kafka(tmp_path).start().wait_ready()
    try:
        bootstrap, cluster_id = kafka.bootstrap_servers, kafka.cluster_id
        create_topic(bootstrap, "kept")
        produce(bootstrap, "kept", "before the stop")
        kafka.stop()
        kafka.start().wait_ready()
        produce(bootstrap, "kept", "before the kill")
        kafka.kill()
        kafka.start().wait_ready()
        assert (kafka.bootstrap_servers, kafka.cluster_id) == (bootstrap, cluster_id)
        assert read(bootstrap, "kept", 2) == {"before the stop", "before the kill"}
    finally:
        kafka.stop()


@pytest.mark.slow
def test_three_nodes_make_a_cluster_that_survives_the_loss_of_one(tmp_path: Path) -> None:
    with KafkaNodes(tmp_path, nodes=3) as cluster:
        bootstrap = cluster.bootstrap_servers
        create_topic(bootstrap, "replicated", replicas=3)
        cluster.nodes[0].kill()
        produce(bootstrap, "replicated", "still here")
        assert read(bootstrap, "replicated", 1) == {"still here"}
